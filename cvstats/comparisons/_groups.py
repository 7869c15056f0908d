"""What comparisons need of groups: the residuals from which an interval takes its variance."""

from __future__ import annotations

from functools import partial

import numpy as np

from cvstats.containers import Log
from cvstats.core.columns import Differences
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray
from cvstats.intervals import find_method
from cvstats.intervals._method import WeighGroups

__all__ = ["group_residuals", "variance_per_repetition", "weights_of"]


def weights_of(method: str) -> WeighGroups:
    """Find how an interval whose sample are groups weighs them."""
    weigh = find_method(method).weigh_groups
    assert weigh is not None  # the methods that are asked for have one
    return weigh


def group_residuals(cells: Moments, weigh: WeighGroups) -> tuple[FloatArray, FloatArray]:
    """Scale what is left of the mean of each group: squares add to the variance of the mean.

    ``cells`` are the groups. Also return the means over groups, weighted as the interval does.
    """
    share, scale = weigh(cells.count)
    mean = share @ cells.mean
    return scale[:, None] * (cells.mean - mean), cells.origin + mean


def variance_per_repetition(log: Log, differences: Differences, base: Result) -> FloatArray:
    """Average over repetitions the variance that an interval has from one of them."""
    options = {name: base.attrs[name] for name in ("correction",) if name in base.attrs}
    weigh = partial(weights_of(base.method), **options)
    level = str(base.attrs.get("by", "source"))
    found = log.moments(("repetition", level), differences).groups("repetition")
    each = [(group_residuals(cells, weigh)[0] ** 2).sum(axis=0) for cells in found]
    return np.asarray(np.mean(each, axis=0))
