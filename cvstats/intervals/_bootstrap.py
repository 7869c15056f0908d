"""What bootstrap intervals share: arrays of counts and losses in, errors and limits out.

A bootstrap fit is a row, a point a column. ``counts[b, i]`` is how often point i is in the
sample of fit b, and a point that is not in it is out of bag. "ET" numbers are the equations of
Efron and Tibshirani (1997), doi:10.1080/01621459.1997.10474007. Every sum is taken about one of
the losses, so that a large common offset costs no digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError
from cvstats.log.bootstrap import BootstrapCounts, Resample
from cvstats.log.log import Log

Correction: TypeAlias = Literal["632+", "632", "harrell"]
MonteCarlo: TypeAlias = Literal["kept", "removed"]
Measure = Callable[[Resample, FloatArray], tuple[float, ...]]

SHARE = 0.632
"""The share of different points in a bootstrap sample of many."""

INTERPOLATES = 0.05
"""Share of the error below which an apparent error is close to zero."""

MUCH_NOISE = 0.25
"""Share of the variance that may come from the number of samples without a caution."""


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """The leave-one-out bootstrap, a number for each column of losses."""

    error: FloatArray
    variance: FloatArray
    noise: FloatArray
    caution: IntArray


def point_means(bags: BootstrapCounts, losses: FloatArray) -> tuple[float, FloatArray, FloatArray]:
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


def out_of_bag_error(bags: BootstrapCounts, losses: FloatArray) -> float:
    """Estimate the leave-one-out bootstrap error (ET 17)."""
    return point_means(bags, losses)[0]


def estimate_out_of_bag(
    bags: BootstrapCounts, columns: Iterable[FloatArray | None], *, monte_carlo: str
) -> OutOfBag:
    """Estimate the leave-one-out bootstrap error (ET 17) and its variance (ET 35-40).

    ``columns`` gives losses, fits by points, or None for a column without any. The variance is
    the sum of squares of the ``D_i``, the directional derivatives of the error divided by n.
    The noise is the part of it that a finite number of samples adds: the variance that each
    ``D_i`` has if counts and ``q_b`` of a sample are independent.
    """
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


def weighted_means(
    bags: BootstrapCounts, losses: FloatArray, weights: IntArray | None = None
) -> FloatArray:
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


def mean_of_draws(fit: IntArray, count: IntArray, losses: FloatArray) -> FloatArray:
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


def correct_errors(
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
    highest_excess = no_information - apparent
    capped = np.minimum(excess, highest_excess)
    with np.errstate(divide="ignore", invalid="ignore"):
        overfitting = np.where((excess > 0) & (highest_excess > 0), capped / highest_excess, 0.0)
    weight = SHARE / (1 - (1 - SHARE) * overfitting)
    clipped = (excess > highest_excess) | (excess < 0) | (highest_excess <= 0)
    return Corrected(apparent + weight * capped, weight, overfitting, clipped)


def subtract_optimism(apparent: float, own: FloatArray, whole: FloatArray) -> float:
    """Subtract the mean optimism from the apparent error.

    ``own`` is the apparent error of each bootstrap fit in its own sample and ``whole`` its
    error on the data that were resampled.
    """
    return float(apparent - (own - whole).mean())


def percentile_interval(
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


def apparent_error(data: Resample, values: FloatArray) -> float:
    """Mean loss of the fit on a data set itself, weighted by how often each point is in it."""
    if data.own is None:
        return np.nan
    return float(weighted_means(data.own, data.own_losses(values))[0])


def measure_samples(log: Log, data: Sequence[Resample], measure: Measure, width: int) -> FloatArray:
    """Measure each data set in each column: numbers, data sets by columns; NaN where masked."""
    found = [
        [(np.nan,) * width if values is None else measure(one, values) for one in data]
        for values in log.columns()
    ]
    return np.array(found, dtype=np.float64).transpose(2, 1, 0)


def measure_of(correction: str) -> Measure:
    """Choose what a correction needs of a data set: apparent error, and error or corrected."""

    def error(data: Resample, values: FloatArray) -> tuple[float, ...]:
        apparent, losses = apparent_error(data, values), data.losses(values)
        if correction != "harrell" or data.own is None:
            return apparent, out_of_bag_error(data.bags, losses)
        own = weighted_means(data.bags, losses)
        whole = weighted_means(data.bags, losses, data.own.counts)
        return apparent, subtract_optimism(apparent, own, whole)

    return error


def correct_by(
    correction: str, apparent: FloatArray, error: FloatArray, rates: FloatArray | None
) -> Corrected:
    """Correct apparent errors by a chosen rule."""
    if correction == "harrell":
        plain = np.full_like(error, np.nan)
        return Corrected(error, plain, plain, np.zeros(error.shape, dtype=bool))
    return correct_errors(apparent, error, rates)


def overfitting_caution(apparent: FloatArray, error: FloatArray, least: float) -> IntArray:
    """Caution where the apparent error is a smaller share of the error than it may be."""
    flagged = (apparent < least * error) & (error > 0)
    return np.where(flagged, np.int64(Caution.OVERFITTING), np.int64(0))


def never_out_caution(data: Sequence[Resample], correction: str) -> int:
    """Caution where some point of some data set is in all of its samples."""
    if correction == "harrell" or all((one.bags.times > 0).all() for one in data):
        return 0
    return int(Caution.NEVER_OUT_OF_BAG)
