"""What the maths returns, before it is labelled: plain columns, a number per model each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import checked_choice

__all__ = [
    "ALTERNATIVES",
    "CAUTIONS",
    "Caution",
    "Result",
    "caution_attrs",
    "half_widths",
    "interval",
    "quantile",
]

ALTERNATIVES = ("two-sided", "less", "greater")


class Caution(IntFlag):
    """Reasons to doubt a number, as bits that may come together.

    They fill the 32 bits of an integer of NetCDF 3, whose last one is the sign.
    """

    NO_LOSSES = 1
    ZERO_VARIANCE = 2
    CLAMPED = 4
    NEGATIVE_VARIANCE = 8
    NAIVE_POINTS = 16
    NAIVE_FOLDS = 32
    ONE_FOLD = 64
    SOURCES_AS_FOLDS = 128
    MEAN_DOMINATED = 256
    ASSUMED_GAMMA = 512
    FEW_POINTS = 1024
    FEW_REPETITIONS = 1 << 11
    EMPTY = 1 << 12
    NEVER_OUT_OF_BAG = 1 << 13
    LARGE_ALPHA = 1 << 14
    FEW_REPLICATES = 1 << 15
    FEW_SOURCES = 1 << 16
    FEW_CLUSTERS = 1 << 17
    SOURCES_ACROSS_FOLDS = 1 << 18
    UNEQUAL_CLUSTERS = 1 << 19
    DISCORDANT_FEW = 1 << 20
    NO_TEST = 1 << 21
    IDENTICAL = 1 << 22
    DOMINATED = 1 << 23
    ONE_REPETITION = 1 << 24
    SMALL_FOLDS = 1 << 25
    HALVES_OVERLAP = 1 << 26
    OTHER_DRAWS = 1 << 27
    UNUSED_LEVEL = 1 << 28
    BOUNDED = 1 << 29
    OTHER_TEST_SIZE = 1 << 30
    ONE_EACH = 1 << 31


CAUTIONS: Mapping[Caution, str] = {
    Caution.NO_LOSSES: "no losses here",
    Caution.ZERO_VARIANCE: "the estimated variance is zero: the interval is a point",
    Caution.CLAMPED: "the variance estimate was negative and was replaced by its floor",
    Caution.NEGATIVE_VARIANCE: "the variance estimate is negative: no interval",
    Caution.NAIVE_POINTS: "takes every loss for a new point: too narrow with repetitions, and no "
    "promise; use wald",
    Caution.NAIVE_FOLDS: "takes dependent fold means for independent ones; use wald",
    Caution.ONE_FOLD: "one fold is a single test set: holdout is made for it",
    Caution.UNUSED_LEVEL: "a level that is not used may name folds, sources or repetitions: see "
    "diagnose()",
    Caution.ONE_EACH: "one loss in each fold or split, and no level 'point': if these are means or "
    "scores, say so with log.attrs['holds'] = 'scores' and use corrected_t",
    Caution.SOURCES_AS_FOLDS: "the folds are sources: covers these sources, not a new one",
    Caution.MEAN_DOMINATED: "the estimator contains the squared mean, which dominates it",
    Caution.ASSUMED_GAMMA: "rests on the value of gamma or rho that was passed in",
    Caution.FEW_POINTS: "fewer than 30 points: the normal approximation is rough",
    Caution.FEW_REPETITIONS: "few repetitions: the standard error itself is noisy",
    Caution.EMPTY: "no value agrees with the log at this level: the interval is empty",
    Caution.NEVER_OUT_OF_BAG: "some points were never out of bag and do not count; draw more",
    Caution.LARGE_ALPHA: "alpha is the share that is left out: 0.05 for a 95% interval",
    Caution.FEW_REPLICATES: "few bootstrap samples for these limits; draw more",
    Caution.FEW_SOURCES: "fewer than 10 sources: a small sample of sources",
    Caution.FEW_CLUSTERS: "fewer than 30 clusters: the interval may be too narrow",
    Caution.SOURCES_ACROSS_FOLDS: "sources stand in training and in test folds: covers these "
    "sources, not a new one",
    Caution.UNEQUAL_CLUSTERS: "a few clusters hold much of the log: too narrow; use CR3",
    Caution.DISCORDANT_FEW: "fewer than 25 discordant points: chi2 is rough, use the exact test",
    Caution.NO_TEST: "the method gives an interval and no p-value: see whether it excludes 0",
    Caution.IDENTICAL: "another model has the very same losses and shares these numbers",
    Caution.DOMINATED: "another model is better by one and the same amount everywhere",
    Caution.ONE_REPETITION: "one repetition: nothing tells what more of them would bring",
    Caution.SMALL_FOLDS: "folds of fewer than 20 points: centring within them overstates leads; "
    "use center='global'",
    Caution.BOUNDED: "the standard error, or the overfitting rate, was put at the end of its "
    "possible range",
    Caution.HALVES_OVERLAP: "the halves of a division share points: too narrow",
    Caution.OTHER_DRAWS: "the counts do not add up to one draw a point in each sample: losses of "
    "points that were drawn may be missing",
    Caution.OTHER_TEST_SIZE: "halves and data are not tested on equally many points",
}


@cache
def flags_told() -> dict[str, Any]:
    """Describe the flags as CF does for a variable of independent flags."""
    masks = np.array([int(flag) for flag in Caution], dtype=np.int64).astype(np.int32)
    return {
        "long_name": "reasons to doubt the interval",
        "flag_masks": masks,
        "flag_meanings": " ".join(str(flag.name).lower() for flag in Caution),
        "flag_descriptions": "; ".join(
            f"{mask}: {CAUTIONS[flag]}" for flag, mask in zip(Caution, masks, strict=True)
        ),
    }


def caution_attrs() -> dict[str, Any]:
    """Give each result a description of its own."""
    told = flags_told()
    return {**told, "flag_masks": told["flag_masks"].copy()}


@dataclass(frozen=True, eq=False)
class Result:
    """Columns of numbers, one entry for each model, with what to doubt about each.

    Parameters
    ----------
    method : str
        Key of the method in the registry.
    columns : mapping of str to array, shape (models,)
        The numbers, in the order in which they are shown; counts are integers.
    caution : array of int, shape (models,)
        Bits of `Caution`.
    attrs : mapping
        Single facts about the whole result.
    """

    method: str
    columns: Mapping[str, NDArray[Any]]
    caution: IntArray
    attrs: Mapping[str, str | float | int] = field(default_factory=dict)


def quantile(probability: float, df: float | None = None) -> float:
    """Quantile of Student's t, or of the standard normal law where ``df`` is None."""
    if df is None:
        return float(special.ndtri(float(probability)))  # also where alpha is a float32
    return float(special.stdtrit(df, float(probability)))


def half_widths(alternative: str, alpha: float, df: float | None) -> tuple[float, float]:
    """How many standard errors the interval reaches down and up; infinite on an open side."""
    checked_choice("alternative", alternative, ALTERNATIVES)
    if alternative == "two-sided":
        reach = -quantile(alpha / 2, df)  # the lower tail keeps the digits of a tiny alpha
        return reach, reach
    reach = -quantile(alpha, df)
    return (np.inf, reach) if alternative == "less" else (reach, np.inf)


def interval(
    method: str,
    estimate: FloatArray,
    variance: FloatArray,
    *,
    origin: FloatArray | float,
    alpha: float,
    df: float | None = None,
    alternative: str = "two-sided",
    extra: Mapping[str, FloatArray | IntArray | float] | None = None,
    caution: IntArray | int = 0,
    attrs: Mapping[str, str | float | int] | None = None,
) -> Result:
    """Build an interval of estimate, standard error and critical value, with the usual cautions.

    ``estimate`` is relative to ``origin``, the result is not.

    A negative ``variance`` gives NaN for the standard error and the limits; a zero one gives
    the point, never widened (methods that have a floor apply it before).
    """
    negative = variance < 0
    se = np.sqrt(np.where(negative, np.nan, variance))
    down, up = half_widths(alternative, alpha, df)
    columns = {
        "estimate": origin + estimate,
        "se": se,
        "lower": np.full_like(se, -np.inf) if np.isinf(down) else origin + (estimate - down * se),
        "upper": np.full_like(se, np.inf) if np.isinf(up) else origin + (estimate + up * se),
    }
    missing = np.isnan(estimate)
    for bound in ("lower", "upper"):
        columns[bound] = np.where(missing | negative, np.nan, columns[bound])
    for name, value in (extra or {}).items():
        columns[name] = np.broadcast_to(np.asarray(value), estimate.shape)
    flags = np.broadcast_to(np.asarray(caution, dtype=np.int64), estimate.shape).copy()
    flags[variance == 0] |= Caution.ZERO_VARIANCE
    flags[negative] |= Caution.NEGATIVE_VARIANCE
    flags[missing] = Caution.NO_LOSSES
    facts = {"alpha": alpha, "alternative": alternative, **(attrs or {})}
    return Result(method, columns, flags, facts)
