"""How many points do I need? What a pilot log shows of a larger one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._groups import variance_per_repetition
from cvstats.comparisons._pairs import (
    Options,
    any_log,
    average_repetitions,
    check_method_options,
    compare_pairs,
    degrees_of_freedom,
    difference_interval,
    has_standard_errors,
)
from cvstats.containers import Log, Losses, is_dask_frame, later
from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.layout import repetition_level
from cvstats.core.result import Result, quantile
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, NotGiven
from cvstats.intervals._differences import RELATIVELY_STABLE
from cvstats.intervals._method import Method
from cvstats.options import Alternative, Missing, check_numbers

__all__ = ["power"]

FAR = 1e3
"""More standard errors away from 0 than this a difference need not be told apart."""


def power(
    losses: Losses,
    other: Losses | None = None,
    *,
    effect: float | None = None,
    reference: Hashable = None,
    method: str | None = None,
    options: Options = None,
    alternative: Alternative = "two-sided",
    target_power: float = 0.8,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    """Plan a comparison with the spread of a pilot log: power, smallest effect, points needed.

    If the true difference were ``effect``, how probably would `compare` find it, with as many
    points as here? With se the standard error of the mean difference, the power of the
    two-sided test is ``Phi(effect / se - z) + Phi(-effect / se - z)``, or that of the noncentral
    t distribution where the test has degrees of freedom. The target of that comparison is the
    difference that the interval covers, as in `compare`.

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
    method : str, optional
        The interval that the comparison is based on, as in `compare`; without it the one that
        `compare` takes for this log.
    options : mapping, optional
        Options of that method, as in `compare`.
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
        find ``effect`` with it (infinite if its sign is not that of the alternative), and
        ``groups_needed`` where groups are what counts: ``points_needed`` are then points in so
        many groups of the size that these have on average (``attrs["group_size"]``).
        From repetitions: ``point_variance`` and ``repetition_variance``, the parts of the
        variance of one point's difference that repeating leaves and removes (of the squared
        standard error times the number of points, where groups count), and
        ``smallest_effect_limit`` and ``points_needed_limit``, the same with no end of
        repetitions; NaN for a single one. Then what the interval adds, and ``caution``.

    Raises
    ------
    LogError
        If ``effect`` is 0 or not a number, the method has no standard error, or the models were
        evaluated on different points.

    Notes
    -----
    Standard errors fall like one over the root of the number of points, if the further points
    are drawn like these. More points for training change the models too, which no pilot shows.

    With groups (`clustered`, `out_of_source`) it is the number of groups that counts: more points
    of these groups bring much less. Degrees of freedom grow with the groups.

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
    given = check_method_options(method, options)
    check_numbers("effect", effect)
    check_numbers("target_power", target_power)
    if effect == 0:
        raise LogError("effect=0 cannot be found by any log. Expected the difference that matters.")
    if is_dask_frame(losses):
        ask = partial(
            power, effect=effect, reference=reference, method=method, options=options,
            alternative=alternative, target_power=target_power, alpha=alpha,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, missing=missing)
    expected = float(effect)

    def run(log: Log, differences: Differences) -> Result:
        base = difference_interval(log, differences, method, given, alpha)
        if not has_standard_errors(base):
            raise LogError(
                f"power needs a standard error, and {base.method} with these options has none. "
                f"Use another method, such as method='wald'."
            )
        return compute(
            base, effect=expected, alpha=alpha, alternative=alternative, target=target_power,
            n=int(log.design.splits().rows[0]), parts=variance_parts(log, differences, base),
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
) -> Result:
    """Plan with the differences of a pilot log, whose standard errors fall like 1 / sqrt(n)."""
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    test = PlannedTest(alpha, alternative, degrees_of_freedom(base), count_groups(base))
    away = test.find_distance(target)
    sign = -1.0 if alternative == "less" else 1.0
    helps = alternative == "two-sided" or sign * effect > 0
    stays, goes = parts
    floor = np.sqrt(np.maximum(stays, 0) / n)

    def units(error: FloatArray) -> FloatArray:
        needed = test.find_size(np.abs(effect) / error, target, away, n)
        return np.where(np.isnan(error), np.nan, needed if helps else np.inf)

    def points(error: FloatArray) -> FloatArray:
        if test.groups is None:
            return units(error)
        return np.ceil(units(error) * n / test.groups)

    with np.errstate(divide="ignore"):
        numbers: dict[str, NDArray[Any]] = {
            "difference": estimate,
            "se": se,
            "power": test.power(effect / se, test.df),
            "smallest_effect": sign * away * se,
            "points_needed": points(se),
        }
        if test.groups is not None:
            numbers["groups_needed"] = units(se)
        numbers |= {
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
    if test.groups is not None:
        attrs["group_size"] = n / test.groups
    return Result("power", {**numbers, **columns}, caution, attrs)


def count_groups(base: Result) -> int | None:
    """Count the clusters or sources that an interval takes for independent; None for points."""
    name = {"clustered": "n_clusters", "out_of_source": "n_sources"}.get(base.method)
    return None if name is None else int(base.columns[name].max())


@dataclass(frozen=True)
class PlannedTest:
    """A test of no difference, by the normal distribution or by Student's t.

    Parameters
    ----------
    alpha, alternative
        As in `power`.
    df : float or None
        Degrees of freedom in the pilot; None for the normal distribution.
    groups : int or None
        How many groups the pilot has, where these and not points are independent.
    """

    alpha: float
    alternative: str
    df: float | None
    groups: int | None

    def power(self, distance: FloatArray, df: float | FloatArray | None) -> FloatArray:
        """Compute the probability to find a difference so many standard errors away from 0."""
        two = self.alternative == "two-sided"
        tail = self.alpha / 2 if two else self.alpha
        away = -distance if self.alternative == "less" else distance
        if df is None:
            z = -quantile(tail)
            return np.asarray(special.ndtr(away - z) + (special.ndtr(-away - z) if two else 0.0))
        t = np.asarray(-special.stdtrit(df, tail), dtype=np.float64)
        found: FloatArray = 1 - noncentral_t(df, away, t)
        return found + noncentral_t(df, away, -t) if two else found

    def find_distance(self, target: float) -> float:
        """Find how many standard errors a difference measures that is found with some power."""
        if not self.alpha < target < 1:
            raise LogError(
                f"target_power={target!r} is out of range. Expected a probability above "
                f"alpha={self.alpha} and below 1, such as 0.8."
            )
        if self.df is None and self.alternative != "two-sided":
            return quantile(1 - self.alpha) + quantile(target)
        sign = -1.0 if self.alternative == "less" else 1.0
        if self.power(np.asarray(sign * FAR), self.df) < target:
            return np.inf
        low, high = 0.0, FAR
        for _ in range(100):  # power grows with the distance
            middle = (low + high) / 2
            if self.power(np.asarray(sign * middle), self.df) < target:
                low = middle
            else:
                high = middle
        return high

    def find_size(self, distance: FloatArray, target: float, away: float, n: int) -> FloatArray:
        """Find how many points, or groups, give the power; the pilot's effect is ``distance``.

        Degrees of freedom, and one more, grow like the number of groups.
        """
        pilot = self.groups
        if pilot is None or self.df is None:
            return np.maximum(np.ceil(n * (away / distance) ** 2 * (1 - 1e-12)), 2)
        share = (self.df + 1) / pilot
        sign = -1.0 if self.alternative == "less" else 1.0
        least = np.full(distance.shape, np.ceil(max(2.0, 2 / share * (1 - 1e-12))))

        def reaches(groups: FloatArray) -> MaskArray:
            moved = sign * distance * np.sqrt(groups / pilot)
            found = self.power(moved, np.maximum(share * groups - 1, 1.0))
            return np.asarray(found >= target)

        known = np.isfinite(distance) & (distance > 0)
        distance = np.where(known, distance, 1.0)
        low, high = least - 1, least.copy()
        while not (enough := reaches(high)).all():
            low, high = np.where(enough, low, high), np.where(enough, high, 2 * high)
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            enough = reaches(middle) & (middle >= least)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(known, high, least)


def noncentral_t(df: float | FloatArray, away: FloatArray, t: FloatArray) -> FloatArray:
    """Distribution function of the noncentral t, also so far out that scipy gives up."""
    share = special.nctdtr(df, np.clip(away, -FAR, FAR), t)
    share = np.where(np.isnan(share) | np.isinf(away), away < 0, share)
    return np.where(np.isnan(away), np.nan, share)


def variance_parts(
    log: Log, differences: Differences, base: Result
) -> tuple[FloatArray, FloatArray]:
    """Compute the parts of the variance of each difference that repeating leaves, and removes."""
    repetitions = log.design.number("repetition")
    if count_groups(base) is not None:
        n = log.design.splits().rows[0]
        averaged = n * base.columns["se"] ** 2
        if repetitions == 1:
            return split_variance(averaged, averaged, 1)
        level, correction = (
            str(base.attrs.get(name, default))
            for name, default in (("by", "source"), ("correction", "CR2"))
        )
        once = variance_per_repetition(log, differences, level, base.method, correction)
        return split_variance(n * once, averaged, repetitions)
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
