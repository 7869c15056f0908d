"""What a pilot log tells about a larger one: power, detectable differences, points needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.result import Result, quantile
from cvstats.core.types import FloatArray
from cvstats.errors import LogError

__all__ = ["parts_of_variance", "planned"]


def reach(alpha: float, alternative: str, target: float) -> float:
    """How many standard errors a difference must measure to be found with some probability."""
    if not alpha < target < 1:
        raise LogError(
            f"target_power={target!r} is out of range. Expected a probability above alpha={alpha} "
            f"and below 1, such as 0.8."
        )
    if alternative != "two-sided":
        return quantile(1 - alpha) + quantile(target)
    z = quantile(1 - alpha / 2)
    low, high = 0.0, z + abs(quantile(target)) + 1
    for _ in range(100):  # power grows with the distance; the far tail is part of it
        middle = (low + high) / 2
        if special.ndtr(middle - z) + special.ndtr(-middle - z) < target:
            low = middle
        else:
            high = middle
    return high


def power(effect: float, se: FloatArray, alpha: float, alternative: str) -> FloatArray:
    """Probability that the test finds a true difference; ``effect`` is not 0."""
    with np.errstate(divide="ignore"):
        away = effect / se
    if alternative == "two-sided":
        z = quantile(1 - alpha / 2)
        return np.asarray(special.ndtr(away - z) + special.ndtr(-away - z))
    sign = -1.0 if alternative == "less" else 1.0
    return np.asarray(special.ndtr(sign * away - quantile(1 - alpha)))


def parts_of_variance(
    once: FloatArray, averaged: FloatArray, repetitions: int
) -> tuple[FloatArray, FloatArray]:
    """Split the variance of a point's difference: what repeating leaves, and what it removes.

    ``once`` is the variance over points in one repetition (mean over repetitions) and
    ``averaged`` that of the points' means over r of them. If repetitions were independent given
    the point, ``once = a + b`` and ``averaged = a + b / r``.
    """
    if repetitions == 1:
        unknown = np.full_like(once, np.nan)
        return unknown, unknown
    noise = (once - averaged) * repetitions / (repetitions - 1)
    return once - noise, noise


def planned(
    base: Result,
    *,
    effect: float,
    alpha: float,
    alternative: str,
    target: float,
    n: int,
    parts: tuple[FloatArray, FloatArray],
) -> Result:
    """Plan with the differences of a pilot log, whose standard errors fall like 1 / sqrt(n)."""
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    away = reach(alpha, alternative, target)
    sign = -1.0 if alternative == "less" else 1.0
    helps = effect != 0 and (alternative == "two-sided" or sign * effect > 0)
    stays, goes = parts
    floor = np.sqrt(np.maximum(stays, 0) / n)

    def points(error: FloatArray) -> FloatArray:
        needed = np.ceil(n * (away * error / effect) ** 2 * (1 - 1e-12))
        return np.where(np.isnan(error), np.nan, np.maximum(needed, 2) if helps else np.inf)

    numbers: dict[str, NDArray[Any]] = {
        "difference": estimate,
        "se": se,
        "power": power(effect, se, alpha, alternative),
        "smallest_effect": sign * away * se,
        "points_needed": points(se),
        "point_variance": stays,
        "repetition_variance": goes,
        "smallest_effect_limit": sign * away * floor,
        "points_needed_limit": points(floor),
    }
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    known = ~np.isnan(estimate)
    caution[known & np.isnan(stays)] |= np.int64(Caution.ONE_REPETITION)
    caution[known & (stays < 0)] |= np.int64(Caution.CLAMPED)
    attrs = {**base.attrs, "alternative": alternative, "alpha": alpha}
    attrs |= {"effect": effect, "target_power": target}
    return Result("power", {**numbers, **columns}, caution, attrs)
