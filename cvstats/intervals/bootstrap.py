"""Intervals from bootstrap samples: arrays of counts and losses in, interval out.

A bootstrap fit is a row, a point a column. ``counts[b, i]`` is how often point i is in the
sample of fit b, and a point that is not in it is out of bag. "ET" numbers are the equations of
Efron and Tibshirani (1997), doi:10.1080/01621459.1997.10474007. Every sum is taken about one of
the losses, so that a large common offset costs no digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, checked_choice

__all__ = [
    "CORRECTIONS",
    "MONTE_CARLO",
    "Bags",
    "Corrected",
    "OutOfBag",
    "bootstrap_632",
    "bootstrap_oob",
    "corrected",
    "drawn_means",
    "harrell",
    "out_of_bag",
    "out_of_bag_error",
    "percentile",
    "weighted_means",
]

CORRECTIONS = ("632+", "632", "harrell")
MONTE_CARLO = ("kept", "removed")

SHARE = 0.632
"""The share of different points in a bootstrap sample of many."""

SLAB = 1 << 17
"""Numbers that are worked on at once: they stay in the processor's cache."""

MUCH_NOISE = 0.25
"""Share of the variance that may come from the number of samples without a caution."""


@dataclass(frozen=True, eq=False)
class Bags:
    """Who is in the samples of the fits of one data set.

    Parameters
    ----------
    counts : array of int, shape (fits, points)
        How often each point is in the sample that a fit was trained on.
    here : array of bool, shape (fits, points), optional
        Which evaluations there are; None where all are.
    """

    counts: IntArray
    here: MaskArray | None = None

    @property
    def slabs(self) -> Iterator[slice]:
        """Cut the fits into runs of a few."""
        fits, points = self.counts.shape
        step = max(1, SLAB // max(points, 1))
        return (slice(start, start + step) for start in range(0, fits, step))

    def out(self, slab: slice) -> MaskArray:
        """Tell which evaluations of some fits are out of bag."""
        out: MaskArray = self.counts[slab] == 0
        return out if self.here is None else out & self.here[slab]

    @cached_property
    def times(self) -> FloatArray:
        """How many fits have each point out of bag."""
        total = np.zeros(self.counts.shape[1])
        for slab in self.slabs:
            total += self.out(slab).sum(axis=0)
        return total

    @cached_property
    def share(self) -> FloatArray:
        """Share of the points that each fit has out of bag."""
        return np.concatenate([self.out(slab).mean(axis=1) for slab in self.slabs])

    @cached_property
    def usual(self) -> FloatArray:
        """Mean count of each point."""
        usual: FloatArray = self.counts.mean(axis=0)
        return usual

    @cached_property
    def first(self) -> tuple[int, int]:
        """Find an evaluation that is out of bag."""
        point = int((self.times > 0).argmax())
        for slab in self.slabs:
            fits = np.flatnonzero(self.out(slab)[:, point])
            if len(fits):
                return slab.start + int(fits[0]), point
        raise LogError("no point is out of bag. Expected evaluations of count 0.")

    def covary(self, fits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum, over the fits, the products of each point's counts with numbers of each fit.

        ``fits`` has a row for each column of losses. Both factors are taken about their means.
        The second array sums the squares of the products.
        """
        apart = fits - fits.mean(axis=1, keepdims=True)
        products = np.zeros((len(fits), self.counts.shape[1]))
        squares = np.zeros_like(products)
        for slab in self.slabs:
            drawn = self.counts[slab] - self.usual
            products += apart[:, slab] @ drawn
            squares += apart[:, slab] ** 2 @ np.square(drawn, out=drawn)
        return products, squares


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """The leave-one-out bootstrap, a number for each column of losses."""

    error: FloatArray
    variance: FloatArray
    noise: FloatArray
    caution: IntArray


def point_means(bags: Bags, losses: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Mean out-of-bag loss over points and for each point, and the sums ``q_b`` of each fit.

    ``losses`` has a row for each fit and a column for each point; what is not out of bag is
    not read. Points (0 where never out of bag) and fits are taken about the overall mean.
    """
    n = bags.counts.shape[1]
    origin = float(losses[bags.first])
    sums, fits = np.zeros(n), np.empty(len(bags.counts))
    for slab in bags.slabs:
        apart = np.where(bags.out(slab), losses[slab] - origin, 0.0)
        sums += apart.sum(axis=0)
        fits[slab] = apart.sum(axis=1)
    used = bags.times > 0
    point = np.zeros(n)
    np.divide(sums, bags.times, out=point, where=used)
    level = point[used].mean()
    point[used] -= level
    return origin + level, point, fits / n - level * bags.share


def out_of_bag_error(bags: Bags, losses: FloatArray) -> float:
    """Estimate the leave-one-out bootstrap error (ET 17)."""
    return point_means(bags, losses)[0]


def out_of_bag(bags: Bags, columns: Iterable[FloatArray | None], *, monte_carlo: str) -> OutOfBag:
    """Estimate the leave-one-out bootstrap error (ET 17) and its variance (ET 35-40).

    ``columns`` gives losses, fits by points, or None for a column without any. The variance is
    the sum of squares of the ``D_i``, the directional derivatives of the error divided by n.
    The noise is the part of it that a finite number of samples adds: the variance that each
    ``D_i`` has if counts and ``q_b`` of a sample are independent.
    """
    checked_choice("monte_carlo", monte_carlo, MONTE_CARLO)
    n, used = bags.counts.shape[1], bags.times > 0
    if used.sum() < 2:
        raise LogError(
            f"{used.sum()} of the {n:,} points is out of bag in some sample. Expected two or "
            f"more. Draw more bootstrap samples."
        )
    nothing = np.nan, np.full(n, np.nan), np.full(len(bags.counts), np.nan)
    found = [nothing if each is None else point_means(bags, each) for each in columns]
    error, point, fits = (np.array(parts) for parts in zip(*found, strict=True))
    if monte_carlo == "kept":
        fits += error[:, None] * bags.share  # as printed: their mean level is noise, no signal
    products, squares = bags.covary(fits)
    point, times = point[:, used], bags.times[used]
    derivative = (2 + 1 / (n - 1)) * point / n + products[:, used] / times
    scale = n / used.sum()
    variance = scale * (derivative**2).sum(axis=1)
    noise = scale * (squares[:, used] / times**2).sum(axis=1)
    caution = np.full(len(error), 0 if used.all() else Caution.NEVER_OUT_OF_BAG, dtype=np.int64)
    caution[noise > MUCH_NOISE * variance] |= Caution.FEW_REPLICATES
    if monte_carlo == "removed":
        variance -= noise
        below = variance < 0
        variance[below] = scale * (point[below] ** 2).sum(axis=1) / n**2
        caution[below] |= Caution.CLAMPED
    return OutOfBag(error, variance, noise, caution)


def weighted_means(bags: Bags, losses: FloatArray, weights: IntArray | None = None) -> FloatArray:
    """Mean loss of each fit, where a point counts as often as it was drawn.

    With ``weights`` it counts so often in every fit instead. NaN where there is no loss.
    """
    means = np.empty(len(bags.counts))
    for slab in bags.slabs:
        weight = bags.counts[slab] if weights is None else weights * np.ones_like(bags.counts[slab])
        if bags.here is not None:
            weight = np.where(bags.here[slab], weight, 0)
        heavy = weight > 0
        origin = losses[slab][np.arange(len(weight)), heavy.argmax(axis=1)]
        apart = np.where(heavy, losses[slab] - origin[:, None], 0.0)
        with np.errstate(invalid="ignore"):
            means[slab] = origin + (weight * apart).sum(axis=1) / weight.sum(axis=1)
    return means


def drawn_means(fit: IntArray, count: IntArray, losses: FloatArray) -> FloatArray:
    """Mean loss of each fit, from the fit, the count and the loss of each point that it drew."""
    apart = losses - losses[0]
    sums = np.bincount(fit, weights=count * apart)
    means: FloatArray = losses[0] + sums / np.bincount(fit, weights=count)
    return means


@dataclass(frozen=True, eq=False)
class Corrected:
    """Errors corrected for optimism, a number for each column."""

    estimate: FloatArray
    weight: FloatArray
    overfitting: FloatArray
    clipped: MaskArray


def corrected(
    apparent: FloatArray, error: FloatArray, no_information: FloatArray | None
) -> Corrected:
    """Weigh apparent and out-of-bag error: .632+ (ET 27-32), or .632 (ET 24) without a rate.

    The relative overfitting rate R stays in [0, 1], and Err1 at or below the no-information
    rate gamma. Differences to the apparent error are what is computed with.
    """
    excess = error - apparent
    if no_information is None:
        weight = np.full_like(excess, SHARE)
        plain = np.full_like(excess, np.nan)
        return Corrected(apparent + weight * excess, weight, plain, np.zeros(excess.shape, bool))
    room = no_information - apparent
    capped = np.minimum(excess, room)
    with np.errstate(divide="ignore", invalid="ignore"):
        overfitting = np.where((excess > 0) & (room > 0), capped / room, 0.0)
    weight = SHARE / (1 - (1 - SHARE) * overfitting)
    clipped = (excess > room) | (excess < 0) | (room <= 0)
    return Corrected(apparent + weight * capped, weight, overfitting, clipped)


def harrell(apparent: float, own: FloatArray, whole: FloatArray) -> float:
    """Subtract the mean optimism from the apparent error.

    ``own`` is the apparent error of each bootstrap fit in its own sample and ``whole`` its
    error on the data that were resampled.
    """
    return float(apparent - (own - whole).mean())


def bootstrap_oob(
    found: OutOfBag, *, alpha: float, n_points: int, n_repetitions: int, monte_carlo: str
) -> Result:
    """Interval for the leave-one-out bootstrap error."""
    extra: dict[str, FloatArray | float] = {"se_monte_carlo": np.sqrt(found.noise)}
    extra |= {"n_points": n_points, "n_repetitions": n_repetitions}
    return interval(
        "bootstrap_oob", found.error, found.variance, alpha=alpha, extra=extra,
        caution=found.caution, attrs={"monte_carlo": monte_carlo},
    )  # fmt: skip


def bootstrap_632(
    found: OutOfBag,
    apparent: FloatArray,
    no_information: FloatArray | None,
    *,
    alpha: float,
    n_points: int,
    n_repetitions: int,
    monte_carlo: str,
) -> Result:
    """Interval for the .632 or .632+ error; the standard error is that of Err1, in proportion.

    The proportion makes sense for errors, which are positive, and is left out for others.
    """
    mixed = corrected(apparent, found.error, no_information)
    with np.errstate(divide="ignore", invalid="ignore"):
        sensible = (found.error > 0) & (mixed.estimate >= 0)
        ratio = np.where(sensible, mixed.estimate / found.error, 1.0)
    caution = found.caution.copy()
    caution[mixed.clipped] |= Caution.BOUNDED
    correction = "632" if no_information is None else "632+"
    extra: dict[str, FloatArray | float] = {"se_monte_carlo": np.sqrt(found.noise) * ratio}
    extra |= {"apparent": apparent, "out_of_bag": found.error}
    if no_information is not None:
        extra |= {"no_information": no_information, "overfitting": mixed.overfitting}
    extra |= {"weight": mixed.weight, "n_points": n_points, "n_repetitions": n_repetitions}
    return interval(
        "bootstrap_632", mixed.estimate, found.variance * ratio**2, alpha=alpha, extra=extra,
        caution=caution, attrs={"correction": correction, "monte_carlo": monte_carlo},
    )  # fmt: skip


def percentile(
    method: str,
    estimate: FloatArray,
    values: FloatArray,
    *,
    shift: FloatArray,
    alpha: float,
    extra: dict[str, FloatArray | float],
    caution: IntArray,
    attrs: dict[str, str | float | int],
) -> Result:
    """Interval between two quantiles (type 7) of replicates, moved by ``shift``.

    ``values`` has a row for each replicate and a column for each model. The standard error is
    NaN: the method has none.
    """
    origin = values[0]
    limits = origin + np.quantile(values - origin, [alpha / 2, 1 - alpha / 2], axis=0) + shift
    columns = {
        "estimate": estimate,
        "lower": limits[0],
        "upper": limits[1],
        "se": np.full_like(estimate, np.nan),
    }
    for name, value in extra.items():
        columns[name] = np.broadcast_to(np.asarray(value), estimate.shape)
    flags = caution.astype(np.int64)
    flags[limits[0] == limits[1]] |= Caution.ZERO_VARIANCE
    if len(values) * alpha < 10:  # fewer than five replicates beyond each limit
        flags |= Caution.FEW_REPLICATES
    flags[np.isnan(estimate)] = Caution.NO_LOSSES
    return Result(method, columns, flags, {"alpha": alpha, **attrs})
