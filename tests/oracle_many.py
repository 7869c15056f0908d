"""Comparisons once more: slow, in plain Python, and written from the papers.

Nothing here knows of moments, of covariances of models or of the package. Losses of models are
lists, one number a point; folds are a list of labels of the same length.

- (L): Lei (2020), Cross-validation with confidence: the Gaussian multiplier bootstrap as
  printed, with a multiplier for each point.
- (D): Demsar (2006), Statistical comparisons of classifiers over multiple data sets.
"""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import combinations, product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy import stats

Losses = Sequence[Sequence[float]]
NORMAL = NormalDist()


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# --- the best of several, with multipliers --------------------------------------------------------


class Lead(NamedTuple):
    """How far a model is behind another: mean, spread, and the centred differences."""

    gap: float
    sigma: float
    centred: list[float]


def lead(model: Sequence[float], other: Sequence[float], folds: Sequence[Hashable]) -> Lead:
    """Differences of two models, centred within their folds; sigma^2 has n - 1 (L)."""
    gaps = [a - b for a, b in zip(model, other, strict=True)]
    of_fold = {k: mean([g for g, f in zip(gaps, folds, strict=True) if f == k]) for k in set(folds)}
    centred = [g - of_fold[f] for g, f in zip(gaps, folds, strict=True)]
    return Lead(mean(gaps), math.sqrt(math.fsum(c * c for c in centred) / (len(gaps) - 1)), centred)


class Best(NamedTuple):
    """The statistic of a model and its p-value."""

    statistic: float
    p_value: float


def normal_of_t(statistic: float, n: int) -> float:
    """The normal quantile of the probability that Student's t of n - 1 gives to a statistic."""
    return float(stats.norm.isf(stats.t.sf(statistic, n - 1)))


def best(losses: Losses, m: int, folds: Sequence[Hashable], *, draws: int, seed: int = 0) -> Best:
    """Algorithm of (L) for one model, without screening, p = (1 + #) / (B + 1).

    The draws are given the variance 1, and the statistic is taken from t to the normal scale.
    """
    n = len(losses[m])
    others = [lead(losses[m], losses[j], folds) for j in range(len(losses)) if j != m]
    statistic = max(math.sqrt(n) * other.gap / other.sigma for other in others)
    reached = normal_of_t(statistic, n) * math.sqrt((n - 1) / n)
    zeta = np.random.default_rng(seed).standard_normal((draws, n))
    drawn = np.max([zeta @ np.array(other.centred) / other.sigma for other in others], axis=0)
    beyond = int((drawn / math.sqrt(n) >= reached).sum())
    return Best(statistic, (1 + beyond) / (draws + 1))


def two_models(losses: Losses, m: int, folds: Sequence[Hashable]) -> float:
    """With one other model the test is the one-sided paired t test."""
    n = len(losses[m])
    other = lead(losses[m], losses[1 - m], folds)
    return float(stats.t.sf(math.sqrt(n) * other.gap / other.sigma, n - 1))


def three_models(losses: Losses, m: int, folds: Sequence[Hashable]) -> float:
    """With two others the drawn leads are a normal pair, whose law scipy integrates."""
    n = len(losses[m])
    one, two = (lead(losses[m], losses[j], folds) for j in range(3) if j != m)
    statistic = max(math.sqrt(n) * other.gap / other.sigma for other in (one, two))
    both = math.fsum(a * b for a, b in zip(one.centred, two.centred, strict=True))
    rho = both / (n - 1) / one.sigma / two.sigma
    law = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    z = normal_of_t(statistic, n)
    return float(1 - law.cdf([z, z]))


def screened(losses: Losses, folds: Sequence[Hashable], level: float) -> list[list[int] | None]:
    """For each model those that count against it; None where it is out beyond doubt (L)."""
    n, models = len(losses[0]), len(losses)
    q = NORMAL.inv_cdf(1 - level / (models - 1))
    threshold = q / math.sqrt(1 - q * q / n) if q * q < n else math.inf
    found: list[list[int] | None] = []
    for m in range(models):
        t = {
            j: math.sqrt(n) * other.gap / other.sigma
            for j in range(models)
            if j != m
            for other in [lead(losses[m], losses[j], folds)]
        }
        far = max(t.values()) >= threshold
        found.append(None if far else [j for j, value in t.items() if value > -2 * threshold])
    return found


# --- the largest of two statistics ----------------------------------------------------------------


def largest_of_two(
    first: Sequence[float], second: Sequence[float], bound: float, alternative: str
) -> float:
    """P(max > bound) of two statistics whose differences are these, by integration.

    Each is t; together they are a normal pair on the normal scale.
    """
    bound = normal_of_t(bound, len(first))
    a, b = mean(first), mean(second)
    saa = math.fsum((x - a) ** 2 for x in first)
    sbb = math.fsum((x - b) ** 2 for x in second)
    sab = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    rho = sab / math.sqrt(saa * sbb)
    law = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    if alternative != "two-sided":
        return float(1 - law.cdf([bound, bound]))
    return float(1 - law.cdf([bound, bound], lower_limit=[-bound, -bound]))


# --- margins --------------------------------------------------------------------------------------


def tost(estimate: float, se: float, low: float, high: float, df: int | None) -> float:
    """The larger p-value of the tests against both ends of a margin."""
    if se == 0:
        return 0.0 if low < estimate < high else 1.0
    law = stats.norm() if df is None else stats.t(df)
    return max(float(law.sf((estimate - low) / se)), float(law.cdf((estimate - high) / se)))


# --- losses of 0 and 1 ----------------------------------------------------------------------------


class Discordance(NamedTuple):
    """Counts of points by (loss of the model, loss of the other), and the exact p-values."""

    n01: int
    n10: int
    chi2: Fraction
    edwards: Fraction
    exact: Fraction
    mid_p: Fraction


def mcnemar(model: Sequence[int], other: Sequence[int]) -> Discordance:
    """Every table as extreme as this one, or more, among those with as many discordant points."""
    n01 = sum((a, b) == (0, 1) for a, b in zip(model, other, strict=True))
    n10 = sum((a, b) == (1, 0) for a, b in zip(model, other, strict=True))
    n, least = n01 + n10, min(n01, n10)
    if n == 0:
        return Discordance(0, 0, Fraction(0), Fraction(0), Fraction(1), Fraction(1))
    weight = [Fraction(math.comb(n, k), 2**n) for k in range(n + 1)]
    # As improbable or more, in both tails; the law is symmetric
    exact = sum(w for k, w in enumerate(weight) if min(k, n - k) <= least)
    below = sum(weight[:least], Fraction(0))
    gap = abs(n01 - n10)
    return Discordance(
        n01, n10, Fraction(gap**2, n), Fraction(max(gap - 1, 0) ** 2, n),
        exact, 2 * below + weight[least],
    )  # fmt: skip


# --- ranks over data sets -------------------------------------------------------------------------


def range_of_normals(q: float, k: int, steps: int = 4000) -> float:
    """P(range of k standard normals > q), by Simpson's rule."""
    low, high = -9.0, 9.0 + q
    h = (high - low) / steps

    def density(z: float) -> float:
        return k * NORMAL.pdf(z) * (NORMAL.cdf(z) - NORMAL.cdf(z - q)) ** (k - 1)

    inner = sum((4 if i % 2 else 2) * density(low + i * h) for i in range(1, steps))
    return 1 - h / 3 * (density(low) + inner + density(high))


def nemenyi(gap: float, n: int, k: int) -> float:
    """Adjusted p-value of a difference of mean ranks (D, section 3.2.2)."""
    return range_of_normals(abs(gap) / math.sqrt(k * (k + 1) / (6 * n)) * math.sqrt(2), k)


# --- planning -------------------------------------------------------------------------------------


def power(effect: float, se: float, alpha: float, alternative: str) -> float:
    """Probability of rejecting, if the estimate is normal about the true difference."""
    law = NormalDist(effect, se)
    if alternative == "two-sided":
        z = NORMAL.inv_cdf(1 - alpha / 2)
        return law.cdf(-z * se) + 1 - law.cdf(z * se)
    z = NORMAL.inv_cdf(1 - alpha)
    return law.cdf(-z * se) if alternative == "less" else 1 - law.cdf(z * se)


def parts_of_variance(runs: Sequence[Sequence[Fraction]]) -> tuple[Fraction, Fraction]:
    """Variance of a point's difference between points, and between runs of a point.

    By all products of two runs: that of the same run holds both parts, that of different ones
    the first alone.
    """
    r, n = len(runs), len(runs[0])
    middle = [sum(run, Fraction(0)) / n for run in runs]

    def product_of(s: int, t: int) -> Fraction:
        pairs = zip(runs[s], runs[t], strict=True)
        return sum(((x - middle[s]) * (y - middle[t]) for x, y in pairs), Fraction(0)) / (n - 1)

    own = sum((product_of(s, s) for s in range(r)), Fraction(0)) / r
    apart = [product_of(s, t) for s, t in product(range(r), repeat=2) if s != t]
    stays = sum(apart, Fraction(0)) / len(apart)
    return stays, own - stays


def pairs(m: int) -> list[tuple[int, int]]:
    """All pairs of models."""
    return list(combinations(range(m), 2))
