"""Losses that lie far from zero: what their means would round away is kept.

A cell's mean is one number of 16 digits. Where losses are 1e9 and vary by 1, few of these are left
for the differences between cells. So the level is subtracted from each loss, which costs a second
pass, and added to the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cvstats.chunked import Panels, Shifted
from cvstats.containers import Log
from cvstats.results import Caution, Result
from cvstats.types import FloatArray

__all__ = ["about_level", "far", "recentred"]

FAR = 1e5
"""So many standard deviations from zero, cell means still keep ten digits of their differences."""

BETWEEN = (
    "clustered", "conservative_z", "corrected_t", "cv_t", "five_by_two", "nested_cv",
    "out_of_source", "quadratic", "replace_one",
)  # fmt: skip
"""Intervals whose width comes from differences between the means of cells."""

LOCATIONS = ("estimate", "lower", "upper", "err_ncv", "err_cv")
"""Columns that lie where the losses do."""


def recentred(run: Callable[[Log], Result], log: Log) -> Result:
    """Run a method on the losses, or on what they are less their level where that is far away."""
    result = run(log)
    if result.method not in BETWEEN or type(log.panels) is not Panels:
        return result
    estimate, se = result.columns["estimate"], result.columns["se"]
    spread = se * np.sqrt(int(log.design.splits().rows.max()))
    squared = (result.caution & np.int64(Caution.MEAN_DOMINATED)) != 0
    if squared.any() or not (np.abs(estimate) > FAR * spread).any():
        return result
    again, level = about_level(run, log, estimate)
    columns = dict(again.columns)
    for name in LOCATIONS:
        if name in columns:
            columns[name] = columns[name] + level
    return replace(again, columns=columns)


def far(log: Log) -> bool:
    """Whether the losses of some column lie far from zero."""
    if type(log.panels) is not Panels:
        return False
    whole = log.moments(())
    spread = np.sqrt(whole.m2[0] / whole.count[0])
    return bool((np.abs(whole.mean[0]) > FAR * spread).any())


def about_level(
    run: Callable[[Log], Result], log: Log, level: FloatArray
) -> tuple[Result, FloatArray]:
    """Run a method on losses less a level, one for each column; NaN is none."""
    level = np.where(np.isfinite(level), level, 0.0)
    return run(replace(log, panels=Shifted(log.panels.tables, level))), level
