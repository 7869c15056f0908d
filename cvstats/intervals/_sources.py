"""Helpers shared by methods for sources and other groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.design import SPLIT, Design
from cvstats.core.folds import find_whole_sources, has_whole_sources, repetition_level, tally
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, listed, spelled
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.log.log import Log


def repeated_levels(log: Log, *levels: str) -> tuple[str, ...]:
    """Put the repetition level, if the log has one, before other levels."""
    return (*repetition_level(log.design), *levels)


SOURCES_BY_POINTS = "source", "point"
"""The two sampling levels of crossed logs, in which the same points occur under several sources."""

NEW_GROUPS = "mean loss on new groups from the same population that the models were not trained on"
"""The target of an interval whose sampling unit is the group."""

PREDICTION_TARGET = "mean loss on one new source from the same population and with as many points"
PREDICTION_GUARANTEE = (
    "valid for any number of sources if their means are independent draws from one normal "
    "distribution, and not otherwise"
)
"""Target and guarantee of a prediction interval."""

INDEPENDENT = (
    "asymptotically exact in the number of groups, if they are independent and none occurs in "
    "both training and test folds"
)
"""The guarantee of such an interval."""

FEW_CLUSTERS = 30
"""With fewer clusters (or labels of either level), skewed means make the interval too narrow.

Unequal clusters count as their degrees of freedom plus one.
"""

FEW_DF = 2 - 1e-12
"""Degrees of freedom below which one or two clusters dominate the interval; 2 up to rounding."""

OF_FOLDS = f"and, if models were trained in folds, {RELATIVELY_STABLE}"
"""The additional condition for differences of models."""


def count_points(log: Log, by: str, cells: Cells, method: str) -> IntArray:
    """Count the points of each group; a point must stay in one group in all repetitions."""
    design = log.design
    splits = tally(design, *SPLIT)
    if (splits.n_cells == 1).all():
        return cells.count.astype(np.int64)
    if design.by is None or log.cells is not None:
        counts, shared = log.count_points(by)
        counts = counts[cells.codes[:, -1]]
    else:
        names = ("source", "point") if design.facts.get("scoped") else ("point",)
        points = tally(design, by, *names)
        counts = points.within((by,)).n_cells[:, 0]
        moved = points.over(names).n_cells < points.n_cells
        shared = "a point appears in several of them" if moved.any() else None
    if shared is not None:
        raise LogError(
            f"{method} needs groups that share no point, but {shared}. Expected one label of "
            f"{by!r} per point in all repetitions. Name another level in by=, or select one "
            f"repetition: {log.design.take('repetition')}."
        )
    return counts


def flag_sources(design: Design, *, of_means: bool) -> Caution:
    """Find the caution for a method that treats points as independent, if the log has sources.

    ``of_means`` means that the method uses only the means of test sets: then sources are ignored
    if test sets divide them.
    """
    if not design.has("source") or (of_means and has_whole_sources(design)):
        return Caution(0)
    return Caution.SOURCES_IGNORED


def flag_ignored_sources(result: Result, design: Design, *, of_means: bool) -> Result:
    """Flag a result whose method treats the points of one source as independent.

    Results without losses, and folds that are the sources, are not flagged.
    """
    if "source" not in design.levels:
        return result
    ignored: MaskArray = np.full((1, 1), design.has("source"))
    if design.by is not None:
        ignored = tally(design, "source").n_cells > 1
    if of_means and ignored.any():
        ignored &= ~find_whole_sources(design)
    settled = (result.caution & np.int64(Caution.NO_LOSSES | Caution.SOURCES_AS_FOLDS)) != 0
    each = np.repeat(ignored, len(settled) // len(ignored))
    cautions = np.where(each & ~settled, np.int64(Caution.SOURCES_IGNORED), np.int64(0))
    return replace(result, caution=result.caution | cautions)


def are_skewed(cells: Cells, parts: FloatArray) -> MaskArray:
    """Mark columns whose groups are too few for the skewness of their parts of the mean.

    Cochran's rule for G parts with skewness G1 about their mean of 0: ``25 G1^2 > G``.
    """
    squares = cells.sum(parts**2)
    scaled = parts / cells.repeat(np.sqrt(np.where(squares > 0, squares, 1.0)))
    skewed: MaskArray = 5 * np.abs(cells.sum(scaled**3)) > 1
    return skewed


def average_sources(cells: Cells) -> tuple[Cells, FloatArray]:
    """Merge the repetitions of each source; also count the points in it."""
    merged = cells.over(("source",))
    repetitions = cells.over([name for name in cells.levels if name == "repetition"]).n_cells
    return merged, merged.count / merged.repeat(repetitions)[:, 0]


def squared_errors_of_sources(moments: Cells) -> FloatArray:
    """Compute ``var_k / M_k`` of each source, averaged over repetitions.

    Points recur in every repetition, so the mean is not divided by their number.
    """
    lonely = np.flatnonzero(moments.count < 2)
    if len(lonely):
        at = moments.levels.index("source")
        codes = np.unique(moments.codes[lonely, at]).tolist()
        names = [spelled(moments.labels[at][code]) for code in codes]
        raise LogError(
            "the variance within sources needs at least two points per source, but source "
            f"{listed(names)} has one. Drop these sources, or use target='new_source', which "
            "needs only the source means."
        )
    each = moments.m2 / ((moments.count - 1) * moments.count)[:, None]
    splits = replace(
        moments, count=np.ones(len(each)), mean=each, m2=each, origin=np.zeros(each.shape[1])
    )
    averaged: FloatArray = splits.over(("source",)).mean
    return averaged


def size_range(points: FloatArray | IntArray, groups: Cells) -> dict[str, IntArray]:
    """Count the points of the smallest and of the largest source or other group."""
    ends = {"smallest": np.minimum, "largest": np.maximum}
    return {
        name: np.rint(end.reduceat(points, groups.starts)).astype(np.int64)[:, None]
        for name, end in ends.items()
    }
