"""How many points do I need? What a pilot log shows of a larger one."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._pairs import (
    any_log,
    average_repetitions,
    compare_pairs,
    difference_interval,
)
from cvstats.containers import Log, Losses, is_dask_frame, later
from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.layout import repetition_level
from cvstats.core.result import Result, quantile
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, NotGiven
from cvstats.intervals._differences import RELATIVELY_STABLE
from cvstats.intervals._method import Method
from cvstats.options import Alternative, Missing, check_numbers

__all__ = ["power"]

TAIL = 0.1
"""The range over the pilot's uncertainty leaves so much out on either side."""

TWO_POINTS = 1e-6
"""Differences of two values that are equally frequent have a kurtosis of 1."""


def power(
    losses: Losses,
    other: Losses | None = None,
    *,
    effect: float | None = None,
    reference: Hashable = None,
    alternative: Alternative = "two-sided",
    target_power: float = 0.8,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    """Plan a comparison with the spread of a pilot log: power, smallest effect, points needed.

    If the true difference were ``effect``, how probably would `compare` find it, with as many
    points as here? With se the standard error of the mean difference, the power of the
    two-sided test is ``Phi(effect / se - z) + Phi(-effect / se - z)``. The target of that
    comparison is the difference that the interval covers, as in `compare`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several: one test set or K-fold cross-validation,
        repeated or not.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    effect : float
        The difference to be found, in the unit of the loss: what would matter, not what the
        pilot happened to show; it has no default. Negative is better; the sign counts for
        one-sided tests.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    alternative : {"two-sided", "less", "greater"}, optional
        The test that is planned.
    target_power : float, optional
        The power that ``smallest_effect`` and ``points_needed`` are for.
    alpha : float, optional
        The level of the test that is planned.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference`` and ``se`` of the pilot; ``power`` for ``effect`` with so many points;
        ``smallest_effect``, the difference found with the target power; ``points_needed`` to
        find ``effect`` with it (infinite if its sign is not that of the alternative);
        ``power_lower``, ``power_upper``, ``points_needed_lower`` and ``points_needed_upper``,
        their 80% ranges over the uncertainty of the pilot's variance. From repetitions:
        ``point_variance`` and ``repetition_variance``, the parts of the variance of one point's
        difference that repeating leaves and removes, and ``smallest_effect_limit`` and
        ``points_needed_limit``, the same with no end of repetitions; NaN for a single one. Then
        what the interval adds, and ``caution``.

    Raises
    ------
    LogError
        If ``effect`` is 0 or not a number, or the models were evaluated on different points.

    Notes
    -----
    Standard errors fall like one over the root of the number of points, if the further points
    are drawn like these. More points for training change the models too, which no pilot shows.

    The ranges leave out 10% on either side: they are power and points needed at both ends of an
    80% interval for the variance of a difference, from the chi-squared distribution whose degrees
    of freedom match the kurtosis k of the pilot's n differences, ``2 (n - 1) / (k - 1)``. In
    simulations they contain the truth in 75% to 80% of pilots of 50 to 300 points with normal
    differences, and in 67% to 78% with differences of squared errors: a small pilot from heavy
    tails shows too little of them. They need the losses one by one, and are NaN for lazy arrays
    and moments. That further training changes the models is not part of them.

    The limits for many repetitions take these for independent given the point: true of runs
    of one model, nearly true of partitions, whose models share most of their data. `wald` does
    not shorten its interval for repetitions, `holdout` does. The variance that comes with the
    training data as a whole is in no log: neither more repetitions nor these numbers reach it.

    References
    ----------
    Cohen (1988), Statistical power analysis for the behavioral sciences, 2nd edition.
    Miller (2024), Adding error bars to evals, arXiv:2411.00640.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> plan = losses.cvci.power(effect=100)
    >>> plan[["se", "power", "smallest_effect", "points_needed"]].round(3)
                              se  power  smallest_effect  points_needed
    model other
    ridge random_forest  103.516  0.162          290.008         3718.0
    """
    METHOD.check_options(locals())
    if effect is None:
        raise NotGiven(
            "effect is not given, and it has no default: no number in the log says which "
            "difference would matter. Expected it in the unit of the loss, as in effect=0.01."
        )
    check_numbers("effect", effect)
    check_numbers("target_power", target_power)
    if effect == 0:
        raise LogError("effect=0 cannot be found by any log. Expected the difference that matters.")
    if is_dask_frame(losses):
        ask = partial(
            power, effect=effect, reference=reference, alternative=alternative,
            target_power=target_power, alpha=alpha,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, missing=missing)
    expected = float(effect)

    def run(log: Log, differences: Differences) -> Result:
        return compute(
            difference_interval(log, differences, None, {}, alpha), effect=expected, alpha=alpha,
            alternative=alternative, target=target_power, n=int(log.design.splits().rows[0]),
            parts=variance_parts(log, differences), factors=variance_factors(log, differences),
        )  # fmt: skip

    return compare_pairs(losses, other, reference, missing, run)


def compute(
    base: Result,
    *,
    effect: float,
    alpha: float,
    alternative: str,
    target: float,
    n: int,
    parts: tuple[FloatArray, FloatArray],
    factors: tuple[FloatArray, FloatArray],
) -> Result:
    """Plan with the differences of a pilot log, whose standard errors fall like 1 / sqrt(n)."""
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    away = detectable_distance(alpha, alternative, target)
    sign = -1.0 if alternative == "less" else 1.0
    helps = effect != 0 and (alternative == "two-sided" or sign * effect > 0)
    stays, goes = parts
    floor = np.sqrt(np.maximum(stays, 0) / n)
    low, high = (np.where(se == 0, 0.0, se * np.sqrt(factor)) for factor in factors)

    def points(error: FloatArray) -> FloatArray:
        needed = np.ceil(n * (away * error / effect) ** 2 * (1 - 1e-12))
        return np.where(np.isnan(error), np.nan, np.maximum(needed, 2) if helps else np.inf)

    numbers: dict[str, NDArray[Any]] = {
        "difference": estimate,
        "se": se,
        "power": power_of_test(effect, se, alpha, alternative),
        "power_lower": power_of_test(effect, high, alpha, alternative),
        "power_upper": power_of_test(effect, low, alpha, alternative),
        "smallest_effect": sign * away * se,
        "points_needed": points(se),
        "points_needed_lower": points(low),
        "points_needed_upper": points(high),
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


def detectable_distance(alpha: float, alternative: str, target: float) -> float:
    """Find how many standard errors a difference measures that is found with some probability."""
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


def power_of_test(effect: float, se: FloatArray, alpha: float, alternative: str) -> FloatArray:
    """Probability that the test finds a true difference; ``effect`` is not 0."""
    with np.errstate(divide="ignore"):
        away = effect / se
    if alternative == "two-sided":
        z = quantile(1 - alpha / 2)
        return np.asarray(special.ndtr(away - z) + special.ndtr(-away - z))
    sign = -1.0 if alternative == "less" else 1.0
    return np.asarray(special.ndtr(sign * away - quantile(1 - alpha)))


def variance_factors(log: Log, differences: Differences) -> tuple[FloatArray, FloatArray]:
    """Find what to multiply the variance of a pilot by, for the ends of its 80% interval.

    The interval is that of the chi-squared distribution whose degrees of freedom match the
    kurtosis k of the differences (of points averaged over repetitions): ``2 (n - 1) / (k - 1)``.
    NaN where the differences are not in memory.
    """
    kurtosis = np.full(differences.width, np.nan)
    n = 0
    if log.in_memory:
        points = average_repetitions(log) if log.design.number("repetition") > 1 else log
        means = Differences(points.panels, differences.left, differences.right)
        for j, column in enumerate(points.columns(means)):
            if column is not None:
                here = column if points.design.present is None else column[points.design.present]
                n, squares = len(here), (here - here.mean()) ** 2
                variance = squares.mean()
                kurtosis[j] = (squares**2).mean() / variance**2 if variance > 0 else np.nan
    df = 2 * (n - 1) / np.maximum(kurtosis - 1, TWO_POINTS)
    return df / special.chdtri(df, TAIL), df / special.chdtri(df, 1 - TAIL)


def variance_parts(log: Log, differences: Differences) -> tuple[FloatArray, FloatArray]:
    """Compute the parts of the variance of each difference that repeating leaves, and removes."""
    repetitions = log.design.number("repetition")
    found = log.moments(repetition_level(log.design), differences)
    n = found.count[0]
    once = (found.m2 / (n - 1)).mean(axis=0)
    if repetitions == 1:
        return split_variance(once, once, 1)
    if not log.in_memory:
        raise LogError(
            "power splits the variance of each point's difference over repetitions, for which it "
            "needs the losses one by one. Expected losses in memory: log.compute(); or one "
            "repetition."
        )
    points = average_repetitions(log)
    means = Differences(points.panels, differences.left, differences.right)
    return split_variance(once, points.moments((), means).m2[0] / (n - 1), repetitions)


def split_variance(
    once: FloatArray, averaged: FloatArray, repetitions: int
) -> tuple[FloatArray, FloatArray]:
    """Split the variance of a point's difference: what repeating leaves, and removes.

    ``once`` is the variance over points in one repetition (mean over repetitions) and
    ``averaged`` that of the points' means over r of them. If repetitions were independent given
    the point, ``once = a + b`` and ``averaged = a + b / r``.
    """
    if repetitions == 1:
        unknown = np.full_like(once, np.nan)
        return unknown, unknown
    noise = (once - averaged) * repetitions / (repetitions - 1)
    return once - noise, noise


METHOD = Method(
    power,
    requires=any_log,
    needs="one test set or a K-fold partition, repeated or not, and two models or more",
    target="the points that a comparison needs",
    guarantee=f"that of the comparison that is planned: of folds {RELATIVELY_STABLE}; and the "
    "pilot's variance is an estimate, of which power_lower and power_upper show the range",
    fits="as the interval it is based on",
    reference="Cohen (1988), Statistical power analysis for the behavioral sciences; "
    "Miller (2024), arXiv:2411.00640",
    models=2,
    needs_points=True,
)
