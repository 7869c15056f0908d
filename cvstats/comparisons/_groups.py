"""What comparisons need of groups: the residuals from which an interval takes its variance."""

from __future__ import annotations

import numpy as np

from cvstats.containers import Log
from cvstats.core.columns import Differences
from cvstats.core.moments import Moments
from cvstats.core.types import FloatArray
from cvstats.intervals.clustered import residual_scale

__all__ = ["group_residuals", "variance_per_repetition"]


def group_residuals(
    cells: Moments, method: str, correction: str = "CR2"
) -> tuple[FloatArray, FloatArray]:
    """Scale what is left of the mean of each group: squares add to the variance of the mean.

    ``cells`` are the groups, and ``method`` is `clustered` or `out_of_source`. Also return the
    means over groups, weighted as that interval does.
    """
    g = len(cells.count)
    if method == "clustered":
        v = cells.count / cells.count.sum()
        scale = v * residual_scale(v, correction)
    else:
        v, scale = np.full(g, 1 / g), np.full(g, 1 / np.sqrt(g * (g - 1)))
    mean = v @ cells.mean
    return scale[:, None] * (cells.mean - mean), cells.origin + mean


def variance_per_repetition(
    log: Log, differences: Differences, level: str, method: str, correction: str
) -> FloatArray:
    """Average over repetitions the variance that an interval has from one of them."""
    found = log.moments(("repetition", level), differences).groups("repetition")
    each = [(group_residuals(cells, method, correction)[0] ** 2).sum(axis=0) for cells in found]
    return np.asarray(np.mean(each, axis=0))
