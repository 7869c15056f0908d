"""Skewness-corrected limits of a mean: what `wald` and `holdout` do with ``interval="hall"``.

Hall (1992), Journal of the Royal Statistical Society B 54(1), 221-228: the Studentized mean t of
n losses of skewness s is nearly normal after ``g(t) = t + s (t^2 / 3 + 1 / 6) / sqrt(n) + s^2 t^3 /
(27 n)``, which is monotone, so that normal limits may be taken back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.core.cells import Moments
from cvstats.core.results import Result, half_widths
from cvstats.core.threads import block_bounds
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.log.log import Log

TABLE = 1 << 20
"""Losses looked at in one go, about."""


def hall_limits(result: Result, skewness: FloatArray) -> Result:
    """Put Hall's limits in the place of normal ones."""
    columns = dict(result.columns)
    n, se = columns["n_points"], columns["se"]
    down, up = half_widths(
        str(result.attrs.get("alternative", "two-sided")), float(result.attrs["alpha"]), None
    )
    for side, quantile in (("lower", down), ("upper", -up)):
        if np.isfinite(quantile):
            columns[side] = columns["estimate"] - se * invert_hall(quantile, skewness, n)
    return replace(result, columns=columns)


def invert_hall(quantile: float, skewness: FloatArray, n: FloatArray) -> FloatArray:
    """Find the t at which Hall's g is a normal quantile; the quantile itself without skewness.

    ``3 sqrt(n) / s (r - 1)`` with the cube root r of ``1 + s (quantile - s / (6 sqrt(n))) /
    sqrt(n)``, written so that a small s costs no digits.
    """
    moved = quantile - skewness / (6 * np.sqrt(n))
    root = np.cbrt(1 + skewness * moved / np.sqrt(n))
    found: FloatArray = 3 * moved / (root**2 + root + 1)
    return found


def measure_skewness(log: Log, cells: Moments) -> FloatArray:
    """Measure the skewness of the losses of each column about the means of some cells.

    Losses that do not vary have 0.

    Raises
    ------
    LogError
        If there are cells only and no single losses, or pseudo-losses of a metric.
    """
    refuse_metric(log)
    log = log.rows()
    design, chosen = log.design, log.values
    table = design.cell_table(cells.levels)
    mean, group = np.zeros((table.size, chosen.width)), np.zeros(table.size, dtype=np.int64)
    mean[table.used] = cells.location
    group[table.used] = cells.repeat(np.arange(len(cells.starts))[:, None])[:, 0]
    at = design.cells(cells.levels, 0, design.size)
    here = np.flatnonzero(at >= 0)
    third = np.empty((len(cells.starts), chosen.width))
    for start, stop in block_bounds(chosen.width, max(1, TABLE // max(1, design.size))):
        lines, column, row = chosen.lines(slice(start, stop), 0, design.size)
        part = lines[column : column + stop - start, row : row + design.size]
        apart = part[:, here] - mean[at[here], start:stop].T
        for j, line in enumerate(apart * apart * apart, start):
            third[:, j] = np.bincount(group[at[here]], line, len(third))
    n = cells.sum(cells.count)
    return standardize_third(third / n, cells.sum(cells.m2) / n)


def refuse_metric(log: Log) -> None:
    """Refuse pseudo-losses: a metric that is not a mean is skewed in other ways besides."""
    if log.design.metric:
        raise LogError(
            "interval='hall' corrects a mean of losses, and this log holds pseudo-losses of a "
            "metric, which is not one. Expected interval='wald', or a loss of points."
        )


def skewness_of_means(log: Log, points: Moments) -> FloatArray:
    """Measure the skewness of the mean losses of points, all alike."""
    refuse_metric(log)
    apart = points.mean - points.repeat(points.average(points.mean))
    return standardize_third(points.average(apart**3), points.average(apart**2))


def standardize_third(third: FloatArray, variance: FloatArray) -> FloatArray:
    """Divide third central moments by the cube of the standard deviation, group by group."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = np.where(variance == 0, 0.0, third / variance**1.5)
    return found.reshape(-1)
