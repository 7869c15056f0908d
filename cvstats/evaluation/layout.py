"""Where the losses of each fit stand in the log, and the log itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.evaluation.data import Data
from cvstats.plans import BoundPlan, Fit

__all__ = ["Layout", "index_of", "laid_out"]

LABELLED = ("source", "point", "count")
"""Levels that come with the points, and not with the fit."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The rows of the log in the order of the fits.

    Parameters
    ----------
    starts : array of int, shape (fits + 1,)
        Where the rows of each fit start.
    points : array of int, shape (rows,)
        The row of the data that is tested.
    levels : mapping of str to array of int, shape (rows,)
        The numbered levels, and ``count`` where the plan has it.
    places : list of str to label
        The levels of the first evaluation of each fit, for messages.
    n_train : list of int
        Points that the fits to the data themselves were trained on; inner fits and resampled
        data sets are left out.
    apparent : list of int
        The fits that are tested on their own sample.
    """

    starts: IntArray
    points: IntArray
    levels: dict[str, IntArray]
    places: list[dict[str, Hashable]]
    n_train: list[int]
    apparent: list[int]


def laid_out(bound: BoundPlan) -> Layout:
    """Go through a plan once, without training anything."""
    numbered = [name for name in bound.plan.levels if name not in LABELLED]
    labels: dict[str, list[Any]] = {name: [] for name in numbered}
    starts, lengths, points, counts = [0], [], [], []
    places, n_train, apparent = [], [], []
    for number, fit in enumerate(bound):
        for at in fit.evaluations:
            for name in numbered:
                labels[name].append(at.levels[name])
            lengths.append(len(at.points))
            points.append(at.points)
            if at.count is not None:
                counts.append(at.count)
        starts.append(starts[-1] + sum(len(at.points) for at in fit.evaluations))
        places.append(dict(fit.evaluations[0].levels))
        n_train += trained(fit)
        apparent += [number] if fit.apparent else []
    levels = {name: np.repeat(np.array(labels[name]), lengths) for name in numbered}
    if counts:
        levels["count"] = np.concatenate(counts)
    return Layout(np.array(starts), np.concatenate(points), levels, places, n_train, apparent)


def trained(fit: Fit) -> list[int]:
    """Tell the training size of a fit to the data themselves; for a bootstrap that is n."""
    first = fit.evaluations[0]
    at = first.levels
    inner = at.get("sample", 0) != 0 or ("outer" in at and at["outer"] != at["fold"])
    if inner or (first.count is not None and not fit.apparent):
        return []
    return [len(fit.train)]


def index_of(bound: BoundPlan, layout: Layout, data: Data) -> tuple[pd.Index, IntArray]:
    """Make the index of the log, and the order of its rows: by levels, then as the data lie."""
    names = [name for name in bound.plan.levels if name not in LABELLED]
    order = np.lexsort([layout.points, *(layout.levels[name] for name in reversed(names))])
    if bound.plan.levels[0] == "source":  # its fits have no other level
        order = np.arange(len(layout.points))
    parts = {name: numbers(layout.levels[name]) for name in names}
    if data.source is not None:
        parts["source"] = labelled(data.source, layout.points)
    parts["point"] = labelled(data.point, layout.points)
    if "count" in layout.levels:
        parts["count"] = numbers(layout.levels["count"])
    if len(parts) == 1:
        return data.point.take(layout.points[order]).rename("point"), order
    labels: list[Any] = [names for names, _ in parts.values()]
    codes: list[Any] = [places[order] for _, places in parts.values()]
    return pd.MultiIndex(levels=labels, codes=codes, names=list(parts)), order


def labelled(labels: pd.Index, rows: IntArray) -> tuple[pd.Index, NDArray[Any]]:
    """Code a level of labels, of which some rows may share one."""
    if labels.is_unique:
        return labels, rows
    codes, names = pd.factorize(labels)
    return names, codes[rows]


def numbers(values: IntArray) -> tuple[pd.Index, NDArray[Any]]:
    """Code a level of numbers that start near zero and leave none out."""
    least = int(values.min())
    return pd.RangeIndex(least, int(values.max()) + 1), values - least


def table_of(
    values: FloatArray, names: Sequence[Hashable], index: pd.Index, alone: bool
) -> pd.Series | pd.DataFrame:
    """Make the log: a column for each model, or a Series of the only one."""
    if alone:
        return pd.Series(values[:, 0], index=index, name=names[0])
    columns = pd.Index(list(names), name="model", tupleize_cols=False)
    return pd.DataFrame(values, index=index, columns=columns)
