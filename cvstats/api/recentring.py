"""Losses that lie far from zero: what their means would round away is kept.

A cell's mean is one number of 16 digits. Where losses are 1e9 and vary by 1, few of these are left
for the differences between cells. So the level is subtracted from each loss, which costs a second
pass, and added to the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cvstats.containers import Log
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Panels, Shifted
from cvstats.core.result import Result
from cvstats.core.types import FloatArray

__all__ = ["recentred"]

FAR = 1e5
"""So many standard deviations from zero, cell means still keep ten digits of their differences."""

BETWEEN = (
    "clustered", "conservative_z", "corrected_t", "cv_t", "five_by_two", "nested_cv",
    "out_of_source", "quadratic", "replace_one",
)  # fmt: skip
"""Intervals whose width comes from differences between the means of cells."""

LOCATIONS = ("estimate", "lower", "upper", "err_ncv", "err_cv")
"""Columns that lie where the losses do."""


def recentred(ask: Callable[[Log], Result], log: Log) -> Result:
    """Ask about the losses, or about what they are less their level where that is far away.

    The answer may be about several parts of the log, one below the other.
    """
    result = ask(log)
    if type(log.panels) is not Panels:
        return result
    if result.method == "decompose":
        level, spread = level_of(log)
        if not (np.abs(level) > FAR * spread).any():
            return result
        near = ask(less(log, level))  # theta_1 has the level in it
        return replace(near, columns={**near.columns, "theta_1": result.columns["theta_1"]})
    if result.method not in BETWEEN:
        return result
    estimate, se = result.columns["estimate"], result.columns["se"]
    spread = se * np.sqrt(int(log.design.splits().rows.max()))
    squared = (result.caution & np.int64(Caution.MEAN_DOMINATED)) != 0
    if squared.any() or not (np.abs(estimate) > FAR * spread).any():
        return result
    level, _ = level_of(log)
    near = ask(less(log, level))
    columns = dict(near.columns)
    for name in LOCATIONS:
        if name in columns:
            columns[name] = (columns[name].reshape(-1, len(level)) + level).reshape(-1)
    return replace(near, columns=columns)


def level_of(log: Log) -> tuple[FloatArray, FloatArray]:
    """Find the mean of each column, 0 where there is none, and its standard deviation."""
    whole = log.moments(())
    mean = whole.mean[0]
    return np.where(np.isfinite(mean), mean, 0.0), np.sqrt(whole.m2[0] / whole.count[0])


def less(log: Log, level: FloatArray) -> Log:
    """Take a level from the losses of each column."""
    return replace(log, panels=Shifted(log.panels.tables, level))
