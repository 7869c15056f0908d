"""Points that are times: in which order they follow each other, and how regularly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from cvstats.containers.hashing import as_index
from cvstats.core.design import Design
from cvstats.core.types import IntArray, Labels
from cvstats.errors import spelled

__all__ = ["Times", "find_odd_time", "is_date", "order_times", "rank_labels"]

DATE = re.compile(r"\d{4}-\d\d(-\d\d)?\b")
"""How a text begins that is a date: ``2013-05``, ``2013-05-31``, ``2013-05-31T12:00``."""

EVEN = 1e-6
"""Steps of numbers that differ by less than this share of the first one are equal."""


@dataclass(frozen=True, eq=False)
class Times:
    """The times of a log.

    Parameters
    ----------
    place : array of int
        For each evaluation, in the order of the log, the place of its time among all.
    order : array of int
        The codes that occur, as places among these, in the order of time.
    number : int
        How many times there are.
    regular : bool
        Whether each time follows the one before after the same step.
    """

    place: IntArray
    order: IntArray
    number: int
    regular: bool


def is_date(label: object) -> bool:
    """Whether a label is a date or time, perhaps as text: ``2013-05-31``."""
    if isinstance(label, str):
        return DATE.match(label) is not None
    if isinstance(label, (date, np.datetime64, pd.Period)):
        return True
    return type(label).__module__.partition(".")[0] == "cftime"


def rank_labels(labels: Labels) -> IntArray:
    """Give the place of each label among all in ascending order."""
    return pd.factorize(as_index(labels).infer_objects(), sort=True)[0].astype(np.int64)


def find_odd_time(labels: Labels) -> str | None:
    """Name the first label that is neither a date nor a number, as all others are; or None."""
    index = as_index(labels).infer_objects()
    kind = index.dtype.kind
    if kind in "iufmM" or isinstance(index.dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)):
        return None
    for label in index:
        if not is_date(label) or type(label) is not type(index[0]):
            return spelled(label)
    return None


def order_times(design: Design) -> Times:
    """Order the evaluations of a log by the labels of its points, which are times."""
    level = design.levels["point"]
    codes = level.block(0, design.size)
    codes = codes if design.present is None else codes[design.present]
    used, at = np.unique(codes, return_inverse=True)
    index = as_index(level.labels).infer_objects()[used]
    rank = rank_labels(index)
    order = np.argsort(rank)
    return Times(rank[at.reshape(-1)], order, len(used), is_regular(index[order]))


def is_regular(index: pd.Index) -> bool:
    """Whether times in ascending order follow each other after one step.

    A step may be any length of time, so many months, or so many days of the week without its end.
    """
    if len(index) < 3:
        return True
    if isinstance(index, pd.PeriodIndex) or isinstance(index[0], pd.Period):
        return has_one_step(pd.PeriodIndex(index).astype("int64").to_numpy())
    if index.dtype.kind in "iufm":
        return has_one_step(index.to_numpy())
    if index.dtype == object and not isinstance(index[0], (str, date)):  # climate models
        one_step = len({two - one for one, two in pairwise(index)}) == 1
        return one_step or has_one_step([12 * day.year + day.month for day in index])
    dates = (
        index.tz_localize(None)
        if isinstance(index, pd.DatetimeIndex)
        else pd.to_datetime(index, format="ISO8601", utc=True, errors="coerce").tz_localize(None)
    )
    if dates.hasnans or has_one_step(dates.asi8):
        return not dates.hasnans
    days = dates.to_numpy().astype("datetime64[D]")
    return has_one_step(12 * dates.year + dates.month) or (
        bool(np.is_busday(days).all()) and has_one_step(np.busday_count(days[0], days))
    )


def has_one_step(values: Any) -> bool:
    """Whether numbers in ascending order are equally far apart."""
    steps = np.diff(values).astype(np.float64)
    return bool(steps[0] > 0 and np.ptp(steps) <= EVEN * steps[0])
