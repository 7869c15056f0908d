"""What methods for sources and other groups share: their points, and their moments."""

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
    """Put the level of repetitions, where the log has one, before others."""
    return (*repetition_level(log.design), *levels)


SOURCES_BY_POINTS = "source", "point"
"""The two levels of logs in which the same points occur under several sources."""

NEW_GROUPS = "mean loss on points of new groups, drawn like these, of models not trained on them"
"""What an interval is about whose sample are groups."""

INDEPENDENT = (
    "exact as groups grow, if they are independent and none occurs in training and in test folds"
)
"""What such an interval promises."""

FEW_CLUSTERS = 30
"""With fewer clusters, or labels of both levels, skewed means make the interval too narrow."""

FEW_DF = 2 - 1e-12
"""Degrees of freedom below which one cluster or two carry the interval; 2 up to rounding."""

OF_FOLDS = f"and, where models were trained in folds, {RELATIVELY_STABLE}"
"""What it asks for besides of the differences of models."""


def count_points(log: Log, by: str, cells: Cells, method: str) -> IntArray:
    """Count the points of each group, each of which must belong to one group in all repetitions."""
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
            f"{method} needs groups that share no point, and {shared}. Expected {by!r} to be the "
            f"same for a point in all repetitions. Name another level in by=, or take one "
            f"repetition: {log.design.take('repetition')}."
        )
    return counts


def doubt_sources(design: Design, *, of_means: bool) -> Caution:
    """Doubt a method that takes points for independent, if the log has sources.

    ``of_means`` says that it looks at the means of test sets only: then sources are ignored
    where test sets divide them.
    """
    if not design.has("source") or (of_means and has_whole_sources(design)):
        return Caution(0)
    return Caution.SOURCES_IGNORED


def flag_ignored_sources(result: Result, design: Design, *, of_means: bool) -> Result:
    """Add to a result whether its method takes the points of one source for independent.

    Not where there is nothing, or the folds are the sources.
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
    doubt = np.where(each & ~settled, np.int64(Caution.SOURCES_IGNORED), np.int64(0))
    return replace(result, caution=result.caution | doubt)


def average_sources(cells: Cells) -> tuple[Cells, FloatArray]:
    """Merge the repetitions of each source; also count the points in it."""
    merged = cells.over(("source",))
    repetitions = cells.over([name for name in cells.levels if name == "repetition"]).n_cells
    return merged, merged.count / merged.repeat(repetitions)[:, 0]


def squared_errors_of_sources(moments: Cells) -> FloatArray:
    """Compute ``var_k / M_k`` of each source, averaged over repetitions.

    Points come back in every repetition, so the mean is not divided by the repetitions.
    """
    lonely = np.flatnonzero(moments.count < 2)
    if len(lonely):
        at = moments.levels.index("source")
        codes = np.unique(moments.codes[lonely, at]).tolist()
        names = [spelled(moments.labels[at][code]) for code in codes]
        raise LogError(
            f"the variance within sources needs at least two points of each, and source "
            f"{listed(names)} has one. Leave these sources out, or ask for "
            f"target='new_source', which needs the means of the sources only."
        )
    each = moments.m2 / ((moments.count - 1) * moments.count)[:, None]
    splits = replace(
        moments, count=np.ones(len(each)), mean=each, m2=each, origin=np.zeros(each.shape[1])
    )
    averaged: FloatArray = splits.over(("source",)).mean
    return averaged


def size_range(points: FloatArray | IntArray, groups: Cells) -> dict[str, IntArray]:
    """Count the points of the smallest and of the largest source, or other group of points."""
    ends = {"smallest": np.minimum, "largest": np.maximum}
    return {
        name: np.rint(end.reduceat(points, groups.starts)).astype(np.int64)[:, None]
        for name, end in ends.items()
    }
