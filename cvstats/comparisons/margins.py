"""Differences against a margin: equivalence, non-inferiority, and a posterior."""

from __future__ import annotations

from numbers import Real

import numpy as np

from cvstats.comparisons.paired import below, degrees, limits, symmetric
from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, half_widths
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, NotGiven, is_number

__all__ = ["Margin", "checked_margin", "equivalent", "posterior"]

Margin = float | tuple[float | None, float | None]


def checked_margin(margin: object, *, zero: bool = False) -> tuple[float, float]:
    """Read a margin: a number for both sides, or a pair, with None for an open side."""
    if margin is None:
        raise NotGiven(
            "margin is not given, and it has no default: no number in the log says which "
            "difference is too small to matter. Expected one in the unit of the loss, as in "
            "margin=0.01, or a pair, as in margin=(-0.01, 0.02)."
        )
    words = LogError(
        f"margin={margin!r} is not known. Expected the largest difference that does not matter, "
        f"in the unit of the loss: a number {'from' if zero else 'above'} 0, or a pair (low, "
        f"high) with low < high, where None leaves a side open."
    )
    if isinstance(margin, Real) and is_number(margin):
        low, high = -float(margin), float(margin)
        if not np.isfinite(high) or high < 0 or (high == 0 and not zero):
            raise words
        return low, high
    if not isinstance(margin, (tuple, list)) or len(margin) != 2:
        raise words
    ends = []
    for end, open_side in zip(margin, (-np.inf, np.inf), strict=True):
        if end is not None and not is_number(end):
            raise words
        ends.append(open_side if end is None else float(end))
    low, high = ends
    if not low < high or low == np.inf or high == -np.inf or (np.isinf(low) and np.isinf(high)):
        raise words
    return low, high


def equivalent(base: Result, *, margin: tuple[float, float], alpha: float) -> Result:
    """Two one-sided tests that a difference lies within a margin (Schuirmann 1987).

    ``p < alpha`` exactly where the interval of level ``1 - 2 alpha`` lies within the margin.
    A difference without variance is equivalent, with p = 0, if it lies within.
    """
    if not symmetric(base):
        raise LogError(
            f"equivalence needs a standard error, and {base.method} with these options has none. "
            f"Use another method, such as method='wald'."
        )
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    df = degrees(base)
    low, high = margin
    with np.errstate(divide="ignore", invalid="ignore"):
        above = below(-(estimate - low) / se, df)
        under = below((estimate - high) / se, df)
    p = np.maximum(above, under)
    p = np.where(se == 0, np.where((low < estimate) & (estimate < high), 0.0, 1.0), p)
    p = np.where(np.isnan(se), np.nan, p)
    reach, _ = half_widths("two-sided", 2 * alpha, df)
    lower, upper = limits(estimate, se, reach, reach)
    tests = {
        "difference": estimate, "lower": lower, "upper": upper, "se": se,
        "p_value": p, "equivalent": p < alpha,
    }  # fmt: skip
    attrs = {**base.attrs, "alternative": "equivalence", "alpha": alpha}
    attrs |= {"margin_low": low, "margin_high": high}
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    return Result("equivalence", {**tests, **columns}, caution, attrs)


def posterior(moments: Moments, ratio: float, *, margin: tuple[float, float]) -> Result:
    """Bayesian correlated t test (Corani and Benavoli 2015) over test sets.

    Given the J means of the test sets, with sample variance S^2, the mean difference has a t
    distribution with J - 1 degrees of freedom about their mean, of squared scale
    ``(1/J + ratio) S^2``, where ``ratio = rho / (1 - rho)`` for a correlation of rho.
    """
    j = len(moments.count)
    apart = moments.mean - moments.mean[0]
    middle = apart.mean(axis=0)
    estimate = moments.mean[0] + middle
    squares = ((apart - middle) ** 2).sum(axis=0)
    scale = np.sqrt((1 / j + ratio) * squares / (j - 1))
    low, high = margin
    shares = within(estimate, scale, low, high, j - 1)
    columns = {
        "difference": estimate,
        "scale": scale,
        **dict(zip(("p_better", "p_equivalent", "p_worse"), shares, strict=True)),
    }
    for name, value in {"df": j - 1, "n_splits": j, "rho": ratio / (1 + ratio)}.items():
        columns[name] = np.full(estimate.shape, value)
    missing = np.isnan(estimate)
    caution = np.where(missing, np.int64(Caution.NO_LOSSES), np.int64(0))
    caution[(scale == 0) & ~missing] |= np.int64(Caution.ZERO_VARIANCE)
    return Result("rope", columns, caution, {"margin_low": low, "margin_high": high})


def within(
    centre: FloatArray, scale: FloatArray, low: float, high: float, df: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Divide a t distribution at two points; without any scale all of it is at its centre."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = below((low - centre) / scale, df)
        right = below(-(high - centre) / scale, df)
        upper_tail = below(-(low - centre) / scale, df) - right  # keeps the digits on that side
        middle = np.where(centre < low, upper_tail, below((high - centre) / scale, df) - left)
    point = scale == 0
    parts = (
        np.where(point, centre < low, left),
        np.where(point, (low <= centre) & (centre <= high), middle),
        np.where(point, centre > high, right),
    )
    missing = np.isnan(centre)
    better, same, worse = (np.where(missing, np.nan, part.astype(np.float64)) for part in parts)
    return better, same, worse
