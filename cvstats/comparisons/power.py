"""How many points do I need? What a pilot log shows of a larger one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._pairs import (
    Options,
    any_log,
    average_repetitions,
    check_method_options,
    compare_pairs,
    default_method,
    degrees_of_freedom,
    difference_interval,
    group_residuals,
    has_standard_errors,
    levels_of_options,
    reads_lazy_losses,
    weights_of,
)
from cvstats.comparisons.zero_one import (
    Discordance,
    check_known,
    find_discordance,
    flag_few,
    no_evidence,
)
from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result, quantile
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, NotGiven
from cvstats.intervals._limits import clopper_pearson
from cvstats.intervals._method import Comparison
from cvstats.intervals._sources import squared_errors_of_sources
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.large.frames import later
from cvstats.log.log import Log, Losses
from cvstats.log.read import is_dask_frame
from cvstats.options import Alternative, Missing, check_numbers, whole_number

TAIL = 0.1
"""The range over the pilot's uncertainty leaves so much out on either side."""

TWO_POINTS = 1e-6
"""Differences of two values that are equally frequent have a kurtosis of 1, and no more."""

TINY = np.finfo(float).tiny
"""The variance of differences that are all the same, in a quotient."""

NUMBERS_NEEDED = ("points_needed", "groups_needed")
PLANS = ("power", "smallest_effect", *NUMBERS_NEEDED)
"""How the columns that plan begin, in place of those about the pilot."""

FAR = 1e3
"""More standard errors away from 0 than this a difference need not be told apart."""


@Comparison(
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
def power(
    losses: Losses,
    other: Losses | None = None,
    *,
    effect: float | None = None,
    repetitions: int | None = None,
    reference: Hashable = None,
    method: str | None = None,
    options: Options = None,
    alternative: Alternative = "two-sided",
    target_power: float = 0.8,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    r"""Plan a comparison with the spread of a pilot log: power, smallest effect, points needed.

    If the true difference were ``effect``, how probably would `compare` find it, with as many
    points as here? The answer uses the standard error of the mean difference in the pilot log, and
    the normal distribution, or the noncentral t distribution where the test has degrees of
    freedom. The target of that comparison is the difference that the interval covers, as in
    `compare`.

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
    repetitions : int, optional
        How often the planned experiment evaluates each point: answers of a language model, runs,
        partitions. Without it as often as the pilot did. The pilot needs two repetitions or more.
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
        ``difference`` and ``se`` of the pilot; with ``repetitions`` the ``planned_se`` for that
        number, from which the rest is computed; ``power`` for ``effect`` with as many points;
        ``smallest_effect``, the difference found with the target power; ``points_needed`` to
        find ``effect`` with it (infinite if its sign contradicts the alternative), and
        ``groups_needed`` if groups are counted: ``points_needed`` are then points in that many
        groups of the average size of these (``attrs["group_size"]``);
        ``power_lower``, ``power_upper``, ``points_needed_lower`` and ``points_needed_upper``,
        their 80% ranges over the uncertainty of the pilot's variance.
        From repetitions: ``point_variance`` and ``repetition_variance``, the parts of the
        variance of one point's difference that repeating leaves and removes (of the squared
        standard error times the number of points, where groups count), and
        ``smallest_effect_limit`` and ``points_needed_limit``, the same with endlessly
        many repetitions; NaN for a single one. Then what the interval adds, and ``caution``.

    Raises
    ------
    LogError
        If ``effect`` is 0 or not a number, the method has no standard error, or the models were
        evaluated on different points. If ``repetitions`` is given and the pilot has one, or the
        method does not shorten its interval for them (`wald` and others for folds).

    See Also
    --------
    cvstats.compare : The comparison that is planned.
    cvstats.equivalence : Whether a difference is too small to matter.

    Notes
    -----
    With se the standard error of the mean difference, the power of the two-sided test is

    .. math::

        \Phi\left(\frac{\mathrm{effect}}{\mathrm{se}} - z\right)
        + \Phi\left(-\frac{\mathrm{effect}}{\mathrm{se}} - z\right), \qquad
        z = \Phi^{-1}\left(1 - \frac{\alpha}{2}\right) .

    Standard errors fall like one over the root of the number of points, if the further points
    are drawn like these. More points for training change the models too, which no pilot shows.

    With groups (`clustered`, `out_of_source`) it is the number of groups that counts: more points
    of these groups bring much less. Degrees of freedom grow with the groups. The tasks of a
    benchmark stay as they are, and it is their questions that count: ``points_needed`` are those of
    all tasks together, in the shares of the pilot.

    Losses of 0 and 1 are planned for by McNemar's test: a difference d takes at least a share d
    of discordant points, so no pilot promises to find it with a few points. Of models that agree
    on every point the numbers are the cautious ends of their ranges, which rest on a share of
    ``1 - 0.1^(1 / n)``, and ``caution`` says ``no discordant points``. Where a test set was
    evaluated several times, and the models disagree on 25 points or more, the points' averages
    are planned for by their standard error. The plan is that of the chi-squared test. Where the
    next log has fewer than 25 discordant points, `compare` tests exactly and finds less:
    with about ten of them the power was half of that planned, with fifty it was as planned.

    The ranges leave out 10% on either side: they are power and points needed at both ends of an
    80% interval for the variance of a difference, from the chi-squared distribution. Its
    degrees of freedom are those of the standard error (groups); for `wald` and `holdout` they
    match the kurtosis k of the pilot's n differences, ``2 (n - 1) / (k - 1)``. In
    simulations they contain the truth in 75% to 80% of pilots of 50 to 300 points with normal
    differences and in 67% to 78% with differences of squared errors: a small pilot from heavy tails
    shows too little of them. Of cross-validated pilots they promise less: in five simulations 0% to
    40% of the ranges contained the truth, and a planned power of 80% was .68 to .77. The kurtosis
    needs the losses one by one: without them, as for lazy arrays and moments, the ranges are NaN,
    and so they are for methods without degrees of freedom. That more points for training change
    the models is not part of them.

    The limits for many repetitions take these for independent given the point: true of runs
    of one model, nearly true of partitions, whose models share most of their data. `wald` does
    not shorten its interval for repetitions; `holdout`, `clustered` and `out_of_source` do. With
    ``repetitions=r`` the standard error is the root of ``(point_variance + repetition_variance / r)
    / n``, where a negative part counts as 0. The variance that comes with the training data as a
    whole is in no log: neither more repetitions nor these numbers reach it.

    References
    ----------
    Cohen (1988), Statistical power analysis for the behavioral sciences, 2nd edition.
    Miller (2024), Adding error bars to evals, arXiv:2411.00640.
    Connett, Smith and McHugh (1987), Statistics in Medicine 6(1), 53-59,
    doi:10.1002/sim.4780060107.

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
    if effect is None:
        raise NotGiven(
            "effect is not given, and it has no default: no number in the log says which "
            "difference would matter. Expected it in the unit of the loss, as in effect=0.01."
        )
    given = check_method_options(method, options)
    check_numbers("effect", effect)
    check_numbers("target_power", target_power)
    planned = None if repetitions is None else whole_number("repetitions", repetitions, 1)
    if effect == 0:
        raise LogError("effect=0 cannot be found by any log. Expected the difference that matters.")
    if is_dask_frame(losses):
        ask = partial(
            power, effect=effect, repetitions=repetitions, reference=reference, method=method,
            options=options, alternative=alternative, target_power=target_power, alpha=alpha,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, missing=missing)
    expected = float(effect)
    levels = levels_of_options(method, given)
    if len(levels) > 1:
        raise LogError(
            f"power plans the number of points or of groups, and by={levels!r} counts two kinds. "
            f"Expected one level, as in options={{'by': {levels[0]!r}}}."
        )

    def run(log: Log, differences: Differences) -> Result:
        base = difference_interval(log, differences, method, given, alpha, default_method)
        if not has_standard_errors(base):
            raise LogError(
                f"power needs a standard error, and {base.method} with these options has none. "
                f"Use another method, such as method='wald'."
            )
        if planned is not None:
            check_repetitions(log, base)
        result = compute(
            base, effect=expected, alpha=alpha, alternative=alternative, target=target_power,
            n=int(log.design.splits().rows[0]), parts=variance_parts(log, differences, base),
            factors=variance_factors(log, differences, base), repetitions=planned,
        )  # fmt: skip
        if "n_second" in base.columns:  # more of both levels: no number of points says how many
            result = drop_plans(result, np.ones(differences.width, dtype=bool), NUMBERS_NEEDED)
        found = find_discordance(log, differences, base)
        if found is None or planned is not None:
            result = drop_plans(result, no_evidence(log, differences, base))
            return result if found is None else flag_few(result, found)
        if method == "tango":
            check_known(result, found)
        return flag_few(plan_zero_one(result, found), found)

    return compare_pairs(
        losses, other, reference, missing, run,
        levels=levels, reads_losses=partial(reads_lazy_losses, method, given),
    )  # fmt: skip


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
    repetitions: int | None = None,
) -> Result:
    """Plan with the differences of a pilot log, whose standard errors fall like 1 / sqrt(n)."""
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    pilot = {"difference": estimate, "se": se}
    columns.pop("lower"), columns.pop("upper")
    test = PlannedTest(alpha, alternative, degrees_of_freedom(base), count_groups(base))
    away = test.find_distance(target)
    sign = -1.0 if alternative == "less" else 1.0
    helps = alternative == "two-sided" or sign * effect > 0
    stays, goes = parts
    floor = np.sqrt(np.maximum(stays, 0) / n)
    if repetitions is not None:
        se = np.sqrt((np.maximum(stays, 0) + np.maximum(goes, 0) / repetitions) / n)
        pilot["planned_se"] = se
    low, high = (np.where(se == 0, 0.0, se * np.sqrt(factor)) for factor in factors)

    def units(error: FloatArray) -> FloatArray:
        needed = test.find_size(np.abs(effect) / error, target, away, n)
        return np.where(np.isnan(error), np.nan, needed if helps else np.inf)

    def points(error: FloatArray) -> FloatArray:
        if test.groups is None:
            return units(error)
        return np.ceil(units(error) * n / test.groups)

    with np.errstate(divide="ignore"):
        numbers: dict[str, NDArray[Any]] = {
            **pilot,
            "power": test.power(effect / se, test.df),
            "power_lower": test.power(effect / high, test.df),
            "power_upper": test.power(effect / low, test.df),
            "smallest_effect": sign * away * se,
            "points_needed": points(se),
            "points_needed_lower": points(low),
            "points_needed_upper": points(high),
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
    if repetitions is not None:
        attrs["planned_repetitions"] = repetitions
    if test.groups is not None:
        attrs["group_size"] = n / test.groups
    return Result("power", {**numbers, **columns}, caution, attrs)


def check_repetitions(log: Log, base: Result) -> None:
    """Refuse to plan repetitions with a pilot of one, or for intervals that stay as they are."""
    if log.design.number("repetition") < 2:
        raise LogError(
            "repetitions= plans with the variance of one point's difference, and this log has one "
            "repetition, which does not show it. Expected a pilot with two or more."
        )
    name = base.attrs["interval_method"]
    averages = name == "holdout" or (name == "out_of_source" and log.fixed_sources)
    if not averages and count_groups(base) is None:
        raise LogError(
            f"repetitions= plans a shorter interval, and {name} does not shorten its interval for "
            f"repetitions. Expected one test set; or see smallest_effect_limit, which holds for "
            f"any number of them."
        )


def count_groups(base: Result) -> int | None:
    """Count the clusters or sources that an interval takes for a sample; None for points."""
    if "df" not in base.columns:
        return None
    counts = (base.columns[name] for name in ("n_clusters", "n_sources") if name in base.columns)
    return next((int(count.max()) for count in counts), None)


def plan_zero_one(result: Result, found: Discordance) -> Result:
    """Plan McNemar's test of models whose losses are 0 and 1.

    A difference of d takes at least a share d of discordant points. If their share is s, the
    statistic has the variance s under no difference and ``s - d^2`` at d (Connett, Smith and
    McHugh 1987). The range over the pilot's uncertainty is that of the exact interval of the
    share; models that always agree are planned for with its upper end.
    """
    at, n = found.counted, found.n
    agree = at & (found.total == 0)
    low, high = clopper_pearson(found.total / n, n, 2 * TAIL)
    share = np.where(found.total == 0, high, found.total / n)
    attrs = result.attrs
    alternative, effect = str(attrs["alternative"]), float(attrs["effect"])
    alpha, target = float(attrs["alpha"]), float(attrs["target_power"])
    z = quantile(1 - (alpha / 2 if alternative == "two-sided" else alpha))
    more = PlannedTest(alpha, alternative, None, None).find_distance(target) - z
    sign = -1.0 if alternative == "less" else 1.0
    helps = alternative == "two-sided" or sign * effect > 0

    def plan(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the power, and the points needed, if so many points are discordant."""
        null, away = spreads(share, abs(effect))
        ahead = np.sqrt(n) * (abs(effect) if helps else -abs(effect))
        power = special.ndtr((ahead - z * null) / away)
        if alternative == "two-sided":
            power = power + special.ndtr((-ahead - z * null) / away)
        needed = np.ceil(((z * null + more * away) / effect) ** 2 * (1 - 1e-12))
        return power, needed if helps else np.full_like(share, np.inf)

    power, needed = plan(share)
    (most, fewest), (least, largest) = plan(low), plan(high)
    numbers = {
        "power": power,
        "power_lower": least,
        "power_upper": most,
        "smallest_effect": sign * smallest_difference(share, n, z, more),
        "points_needed": needed,
        "points_needed_lower": fewest,
        "points_needed_upper": largest,
    }
    columns = dict(result.columns)
    for name, values in numbers.items():
        columns[name] = np.where(at, values, columns[name])
    # without a spread, the points leave nothing to plan endless repetitions with
    for name in ("smallest_effect_limit", "points_needed_limit"):
        stays = ~(columns["point_variance"] > 0)
        columns[name] = np.where(at & stays, np.nan, columns[name])
    caution = np.where(at, result.caution & ~np.int64(Caution.ZERO_VARIANCE), result.caution)
    caution[agree] |= np.int64(Caution.ALWAYS_AGREE)
    return replace(result, columns=columns, caution=caution)


def spreads(share: FloatArray, effect: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Compute standard deviations of a difference: under none, and at ``effect``."""
    discordant = np.maximum(share, effect)
    return np.sqrt(discordant), np.sqrt(np.maximum(discordant - np.square(effect), 1e-300))


def smallest_difference(share: FloatArray, n: float, z: float, more: float) -> FloatArray:
    """Find the difference found with the target power by bisection; NaN if no difference is."""
    low, high = np.zeros_like(share), np.ones_like(share)
    for _ in range(60):
        middle = (low + high) / 2
        null, away = spreads(share, middle)
        found = np.sqrt(n) * middle >= z * null + more * away
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.where(high < 1, high, np.nan)


def drop_plans(result: Result, at: MaskArray, plans: tuple[str, ...] = PLANS) -> Result:
    """Leave pairs without a plan whose standard error of zero shows nothing."""
    columns = {
        name: np.where(at, np.nan, values) if name.startswith(plans) else values
        for name, values in result.columns.items()
    }
    return replace(result, columns=columns)


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


def variance_factors(
    log: Log, differences: Differences, base: Result
) -> tuple[FloatArray, FloatArray]:
    """Find what to multiply the variance of a pilot by, for the ends of its 80% interval.

    The interval is that of a chi-squared distribution. Its degrees of freedom are those of
    the standard error, or, where points are counted, match the kurtosis k of the differences (of
    points averaged over repetitions): ``2 (n - 1) / (k - 1)``. NaN where neither is known.
    """
    if base.method in ("wald", "holdout"):
        df = match_kurtosis(log, differences)
    else:
        df = np.asarray(base.columns.get("df", np.full(differences.width, np.nan)), np.float64)
    return df / special.chdtri(df, TAIL), df / special.chdtri(df, 1 - TAIL)


def match_kurtosis(log: Log, differences: Differences) -> FloatArray:
    """Find the degrees of freedom of a chi-squared variable that varies as the variance does."""
    df = np.full(differences.width, np.nan)
    if not log.in_memory:
        return df
    points = average_repetitions(log) if log.design.number("repetition") > 1 else log
    means = Differences(points.panels, differences.left, differences.right)
    for j, column in enumerate(points.columns(means)):
        if column is not None:
            here = column if points.design.present is None else column[points.design.present]
            squares = (here - here.mean()) ** 2
            excess = (squares**2).mean() / max(squares.mean() ** 2, TINY) - 1
            df[j] = 2 * (len(here) - 1) / max(excess, TWO_POINTS)
    return df


def variance_parts(
    log: Log, differences: Differences, base: Result
) -> tuple[FloatArray, FloatArray]:
    """Compute the parts of the variance of each difference that repeating leaves, and removes."""
    repetitions = log.design.number("repetition")
    if count_groups(base) is not None or base.method == "out_of_source":
        n = log.design.splits().rows[0]
        averaged = n * base.columns["se"] ** 2
        if repetitions == 1:
            return split_variance(averaged, averaged, 1)
        once = variance_per_repetition(log, differences, base)
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


def variance_per_repetition(log: Log, differences: Differences, base: Result) -> FloatArray:
    """Average over repetitions the variance that an interval has from one of them."""
    if "df" not in base.columns:  # these sources, such as the tasks of a benchmark
        tasks = squared_errors_of_sources(log.moments(("repetition", "source"), differences))
        factor = 2 if base.attrs["variance"] == "theta_b" else 1
        return np.asarray(factor * tasks.sum(axis=0) / len(tasks) ** 2)
    options = {name: base.attrs[name] for name in ("correction",) if name in base.attrs}
    weigh = partial(weights_of(base.method), **options)
    level = str(base.attrs.get("by", "source"))
    found = log.moments(("repetition", level), differences).groups("repetition")
    each = [(group_residuals(cells, weigh)[0] ** 2).sum(axis=0) for cells in found]
    return np.asarray(np.mean(each, axis=0))
