"""What comparisons need of groups: the residuals from which an interval takes its variance."""

from __future__ import annotations

from functools import partial

import numpy as np

from cvstats.core.cells import Moments
from cvstats.core.columns import Differences
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.intervals import find_method
from cvstats.intervals._groups import squared_errors_of_sources
from cvstats.intervals._method import WeighGroups
from cvstats.log.log import Log


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


def task_residuals(points: Moments) -> tuple[FloatArray, FloatArray]:
    """Scale what is left of the mean of each task: squares add to the variance of the plain mean.

    ``points`` are the answers to each point, averaged. The tasks are taken as they are, so that
    the variance is ``K^-2 sum_k var_k / M_k``. Also return the means over tasks.
    """
    tasks = points.once().over(("source",))
    of_point = np.searchsorted(tasks.codes[:, 0], points.codes[:, points.levels.index("source")])
    size = tasks.count[of_point]
    scale = 1 / (len(tasks.count) * np.sqrt(size * (size - 1)))
    mean = tasks.mean.mean(axis=0)
    return scale[:, None] * (points.mean - tasks.mean[of_point]), points.origin + mean


def variance_per_repetition(log: Log, differences: Differences, base: Result) -> FloatArray:
    """Average over repetitions the variance that an interval has from one of them."""
    if "df" not in base.columns:  # these sources, such as the tasks of a benchmark
        tasks = squared_errors_of_sources(log.moments(("repetition", "source"), differences))
        factor = 2 if base.attrs["variance"] == "theta_b" else 1
        return np.asarray(factor * tasks.sum(axis=0) / len(tasks) ** 2)
    options = {name: base.attrs[name] for name in ("correction",) if name in base.attrs}
    weigh = partial(weights_of(base.method), **options)
    level = str(base.attrs.get("by", "source"))
    found = log.moments(("repetition", level), differences).groups("repetition")
    each = [(group_residuals(cells, weigh)[0] ** 2).sum(axis=0) for cells in found]
    return np.asarray(np.mean(each, axis=0))
