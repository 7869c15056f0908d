"""Differences that vary by no more than the rounding of the losses vary by nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.api.running import by_repetition
from cvstats.comparisons.paired import symmetric
from cvstats.containers import CellLog, Log
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Differences
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, MaskArray

__all__ = ["ROUNDING", "exact", "levels_of"]

ROUNDING = 4 * np.finfo(float).eps
"""Share of the losses below which the spread of a difference is rounding."""

SURELY = 1e-13
"""A spread that is a smaller share of the mean difference is rounding whatever the losses."""

HEAD = 1 << 16
"""So many losses are looked at first: where the spread is no tiny share of them, it is real."""


def levels_of(mean: FloatArray, squares: FloatArray, rows: float) -> FloatArray:
    """Measure how large losses are: their mean, and once their standard deviation."""
    size: FloatArray = np.abs(mean) + np.sqrt(squares / rows)
    return size


def exact(base: Result, log: Log, gaps: Differences | None = None) -> Result:
    """Put the standard errors of differences at zero where they are rounding.

    ``gaps`` tells which columns of the log were subtracted; without it the log holds the
    differences, and only a mean that is much larger than the spread tells. A mean that is
    rounding as well is zero then. Limits that are not made of standard errors stay.
    """
    estimate, se = base.columns["estimate"], base.columns["se"]
    spread = se * np.sqrt(int(log.design.splits().rows.max()))
    tiny = (spread > 0) & (spread <= SURELY * np.abs(estimate))
    none = np.zeros_like(tiny)
    if gaps is not None and (suspects := (se > 0) & (spread <= 1e-9 * first_losses(log))).any():
        level = both_levels(log, gaps)
        tiny |= suspects & (spread <= ROUNDING * level)
        none = tiny & (np.abs(estimate) <= ROUNDING * level)
    return without_spread(base, tiny, none) if tiny.any() else base


def without_spread(base: Result, tiny: MaskArray, none: MaskArray) -> Result:
    """Make points of the intervals of some columns."""
    columns = dict(base.columns)
    if symmetric(base):
        columns["estimate"] = np.where(none, 0.0, base.columns["estimate"])
        columns["se"] = np.where(tiny, 0.0, base.columns["se"])
        for side in ("lower", "upper"):
            columns[side] = np.where(tiny, columns["estimate"], base.columns[side])
    caution = base.caution.copy()
    caution[tiny] |= np.int64(Caution.ZERO_VARIANCE)
    return replace(base, columns=columns, caution=caution)


def first_losses(log: Log) -> float:
    """Find the largest of the first losses; infinite where only moments are there."""
    if isinstance(log, CellLog):
        return np.inf
    rows = max(1, HEAD // log.panels.width)
    heads = (np.abs(table[:rows].astype(np.float64)) for table in log.panels.tables)
    return float(max(np.fmax.reduce(head, axis=None, initial=0.0) for head in heads))


def both_levels(log: Log, gaps: Differences) -> FloatArray:
    """Measure the losses of each pair, by the larger of the two models."""
    whole = log.moments(by_repetition(log)).over(())
    level = levels_of(whole.mean[0], whole.m2[0], float(whole.count[0]))
    larger: FloatArray = np.maximum(level[gaps.left], level[gaps.right])
    return larger
