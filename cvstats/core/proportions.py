"""Proportions, alone and in pairs: score limits and exact tests for losses of 0 and 1.

Two models that err on the same points make four counts. Only two of them say which model is
better: ``n10``, the points on which the model alone errs, and ``n01``, those on which the other
alone does. All functions are elementwise; counts may be averages over repetitions.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy import special

from cvstats.core.result import quantile
from cvstats.core.types import FloatArray

__all__ = [
    "binomial_p_values",
    "clopper_pearson",
    "score_statistic",
    "tango_limits",
    "wilson",
]

Limits: TypeAlias = tuple[FloatArray, FloatArray]

HALVINGS = 60
"""Steps of the bisection for a limit: what is left of [-1, 1] is below 2^-59."""


def wilson(
    share: FloatArray, n: FloatArray | float, alpha: float, alternative: str = "two-sided"
) -> Limits:
    """Score interval of a proportion (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
    z = critical_value(alpha, alternative)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # 0 and 1 are limits themselves where no loss, or every loss, is 1
    lower = np.where(share == 0, 0.0, np.maximum(middle - reach, 0.0))
    upper = np.where(share == 1, 1.0, np.minimum(middle + reach, 1.0))
    return open_side(np.where(np.isnan(share), np.nan, lower), upper, alternative)


def clopper_pearson(
    share: FloatArray, n: FloatArray | float, alpha: float, alternative: str = "two-sided"
) -> Limits:
    """Exact interval of a proportion (Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404)."""
    ones = share * n
    ones = np.where(np.abs(ones - np.rint(ones)) < 1e-6, np.rint(ones), ones)
    tail = alpha / 2 if alternative == "two-sided" else alpha
    with np.errstate(invalid="ignore"):
        lower = special.betaincinv(np.where(ones == 0, 1, ones), n - ones + 1, tail)
        upper = special.betainccinv(ones + 1, np.where(ones == n, 1, n - ones), tail)
    lowest: FloatArray = np.where(ones == 0, 0.0, lower)
    highest: FloatArray = np.where(ones == n, 1.0, upper)
    return open_side(lowest, highest, alternative)


def critical_value(alpha: float, alternative: str) -> float:
    """How many standard errors away the limits are; all of alpha is on one side of a bound."""
    return -quantile(alpha / 2 if alternative == "two-sided" else alpha)


def open_side(lower: FloatArray, upper: FloatArray, alternative: str) -> Limits:
    """Leave one side of the interval open where the question is one-sided."""
    if alternative == "less":
        lower = np.where(np.isnan(lower), np.nan, -np.inf)
    elif alternative == "greater":
        upper = np.where(np.isnan(upper), np.nan, np.inf)
    return lower, upper


# --- two proportions on the same points -----------------------------------------------------------


def score_statistic(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, difference: FloatArray | float
) -> FloatArray:
    """Score statistic of a difference of paired proportions (Tango 1998, eq. 13).

    Asymptotically standard normal where the true difference is ``difference``; at 0 it is
    McNemar's ``(n10 - n01) / sqrt(n10 + n01)``. Infinite, or 0 without a discordant point, where
    the difference leaves no variance.
    """
    apart = n10 - n01 - n * difference
    spread = np.sqrt(n * null_variance(n10, n01, n, difference))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = apart / spread
    return np.where((spread == 0) & (apart == 0), 0.0, statistic)


def null_variance(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, difference: FloatArray | float
) -> FloatArray:
    """Variance of one point's difference, at the most probable table with that mean difference.

    The probability q that only the other errs solves ``2 n q^2 + b q + c = 0`` (Tango 1998, eq.
    11); that of the model is ``q + difference``.
    """
    d = np.asarray(difference, dtype=np.float64)
    a = 2.0 * n
    b = (2 * n - n10 + n01) * d - n10 - n01
    c = -n01 * d * (1 - d)
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):  # no digits are lost on either side
        q = np.where(b > 0, -2 * c / (root + b), (root - b) / (2 * a))
    q = np.maximum(q, np.maximum(-d, 0.0))
    return np.maximum(2 * q + d * (1 - d), 0.0)


def tango_limits(
    n10: FloatArray,
    n01: FloatArray,
    n: FloatArray | float,
    alpha: float,
    alternative: str = "two-sided",
) -> Limits:
    """Score interval of a difference of paired proportions (Tango 1998).

    All differences whose score statistic is not significant. The statistic falls as the
    difference grows, so that each limit is the only root between the estimate and the end of
    the range, and bisection finds it.
    """
    z = critical_value(alpha, alternative)
    lower = lower_tango_limit(n10, n01, n, z)
    upper = -lower_tango_limit(n01, n10, n, z)
    return open_side(lower, upper, alternative)


def lower_tango_limit(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, z: float
) -> FloatArray:
    """Find the smallest difference whose score statistic is z at the most."""
    high = (n10 - n01) / n
    low = np.where(np.isnan(high), np.nan, -1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        apart = n10 - n01 - n * middle
        beyond = apart > z * np.sqrt(n * null_variance(n10, n01, n, middle))
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.where(n01 == n, -1.0, (low + high) / 2)


def binomial_p_values(
    n10: FloatArray, n01: FloatArray, alternative: str = "two-sided", *, mid: bool = False
) -> FloatArray:
    """Test exactly whether each discordant point is as likely to be an error of one as the other.

    ``mid`` counts half of the probability of the observed table (Fagerland, Lydersen and Laake
    2013, doi:10.1186/1471-2288-13-91). ``"less"`` asks whether the model errs less often.
    """
    if alternative == "two-sided":
        p = 2 * lower_tail(np.minimum(n10, n01), n10 + n01, mid)
        return np.minimum(p, 1.0)
    least = n10 if alternative == "less" else n01
    return lower_tail(least, n10 + n01, mid)


def lower_tail(k: FloatArray, total: FloatArray, mid: bool) -> FloatArray:
    """Probability of at most k heads of a fair coin: an incomplete beta function."""
    upto = np.where(k < total, special.betainc(np.maximum(total - k, 1), k + 1, 0.5), 1.0)
    if mid:
        below = np.where(k > 0, special.betainc(total - k + 1, np.maximum(k, 1), 0.5), 0.0)
        upto = (upto + below) / 2
    return np.where(np.isnan(total), np.nan, upto)
