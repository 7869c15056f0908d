"""Planning a comparison from a pilot log: how many points it needs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._pairs import (
    Options,
    advise_on_refits,
    average_repetitions,
    check_method_options,
    compare_pairs,
    degrees_of_each,
    difference_interval,
    levels_of_options,
    read_options,
    reads_lazy_losses,
    refuse_impossible,
    require_standard_errors,
    weights_of,
)
from cvstats.comparisons.zero_one import Discordance, check_known, find_discordance, no_evidence
from cvstats.core.cautions import Caution
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result, quantile, show_own_errors
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, NotGiven
from cvstats.intervals._limits import averages_sources, clopper_pearson
from cvstats.intervals._method import REFITS, Comparison, group_residuals
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.intervals.out_of_source import squared_errors_of_sources
from cvstats.log.log import Log, Losses
from cvstats.options import Alternative, Missing, check_numbers, whole_number

OF_POINTS = ("wald", "holdout")
"""Methods with points as the sampling unit, whose differences have a kurtosis and parts."""

TAIL = 0.1
"""Tail probability on each side of the ranges for the pilot's uncertainty."""

TWO_POINTS = 1e-6
"""Kurtosis of differences with two equally frequent values, the smallest possible."""

TINY = np.finfo(float).tiny
"""Value used for a variance of zero in a quotient."""

NUMBERS_NEEDED = ("points_needed", "groups_needed")
PLANS = ("power", "smallest_effect", *NUMBERS_NEEDED)
"""Prefixes of the columns about the planned experiment."""

FAR = 1e3
"""Differences more than this many standard errors from 0 have power 1."""


def check_power(options: Mapping[str, Any]) -> None:
    """Reject options of `power` that are invalid for every log."""
    if options["effect"] is None:
        raise NotGiven(
            "effect is required: the data cannot tell which difference would matter. Pass it in "
            "the units of the loss, as in effect=0.01."
        )
    check_method_options(options["method"], options["options"])
    check_numbers("effect", options["effect"])
    check_numbers("target_power", options["target_power"])
    if options["repetitions"] is not None:
        whole_number("repetitions", options["repetitions"], 1)
    if options["effect"] == 0:
        raise LogError(
            "effect=0 cannot be detected. Expected the smallest difference that matters."
        )


@Comparison(
    needs="one test set or a K-fold partition, repeated or not, and at least two models",
    target="the number of points that a comparison needs",
    guarantee=f"that of the planned comparison: for folds {RELATIVELY_STABLE}; the pilot's "
    "variance is an estimate, and power_lower and power_upper show the resulting range",
    fits="as the underlying interval",
    reference="Cohen (1988), Statistical power analysis for the behavioral sciences; "
    "Miller (2024), arXiv:2411.00640",
    models=2,
    of_interval=True,
    needs_points=True,
    check=check_power,
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
    r"""Compute the power of a planned comparison, and the number of points it needs.

    The power is the probability that `compare` detects a true difference of ``effect`` with this
    many points. It is computed from the standard error of the mean difference in the pilot log
    and the normal distribution, or the noncentral t distribution if the test uses Student's t.
    The target of that comparison is the difference that the interval covers, as in `compare`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several: one test set, K-fold cross-validation,
        repeated or not, or random splits.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    effect : float
        The difference to detect, in the units of the loss: the smallest difference that would
        matter, not the one observed in the pilot. Required. Negative is better; the sign matters
        for one-sided tests.
    repetitions : int, optional
        How often the planned experiment evaluates each point: answers of a language model, runs,
        partitions. The default is as often as in the pilot. The pilot needs at least two
        repetitions.
    reference : hashable, optional
        Instead of ``other``, the name of the model to which the others are compared. If neither
        is given, all pairs are compared.
    method : str, optional
        The interval that the comparison is based on; the default is that of `compare`.
    options : mapping, optional
        Options of that method, as in `compare`.
    alternative : {"two-sided", "less", "greater"}, optional
        The planned test.
    target_power : float, optional
        The power for ``smallest_effect`` and ``points_needed``.
    alpha : float, optional
        The level of the planned test.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference`` and ``se`` of the pilot; with ``repetitions`` the ``planned_se`` for that
        number, from which the rest is computed; ``power`` for ``effect`` with as many points,
        ``power_lower`` and ``power_upper``; ``smallest_effect``, the difference detected with the
        target power; ``points_needed`` to detect ``effect`` with it (infinite if its sign
        contradicts the alternative), ``points_needed_lower`` and ``points_needed_upper``; and
        ``groups_needed`` if groups are the sampling unit: ``points_needed`` is then the number of
        points in that many groups of the pilot's average size (``attrs["group_size"]``). The lower
        and upper ends are 80% ranges over the uncertainty of the pilot's variance. From
        repetitions: ``point_variance`` and ``repetition_variance``, the parts of the variance of
        one point's difference that repetition cannot and can remove (of the squared standard error
        times the number of points, if groups are the sampling unit), and ``smallest_effect_limit``
        and ``points_needed_limit``, the same with infinitely many repetitions; NaN for a single
        repetition, without individual losses, and for methods other than `wald`, `holdout`,
        `corrected_t`, `clustered` and `out_of_source`. Then the columns of the interval, and
        ``caution``.

    Raises
    ------
    LogError
        If ``effect`` is 0 or not a number, ``target_power`` is not between ``alpha`` and 1, the
        method has no standard error, or the models were evaluated on different points. If
        ``repetitions`` is given and the pilot has one, or the interval of the method does not
        narrow with repetitions (`wald` and others for folds).

    See Also
    --------
    cvstats.compare : The planned comparison.
    cvstats.equivalence : Whether a difference is too small to matter.

    Notes
    -----
    With se the standard error of the mean difference, the power of the two-sided test is

    .. math::

        \Phi\left(\frac{\mathrm{effect}}{\mathrm{se}} - z\right)
        + \Phi\left(-\frac{\mathrm{effect}}{\mathrm{se}} - z\right), \qquad
        z = \Phi^{-1}\left(1 - \frac{\alpha}{2}\right) .

    Standard errors are proportional to one over the square root of the number of points, if
    additional points are from the same population. If there are more training points, the models
    also change, which a pilot cannot show.

    If groups are the sampling unit (`clustered`, `out_of_source`), the power depends on the number
    of groups, and more points per group help much less. Degrees of freedom grow with the number of
    groups. The tasks of a benchmark are fixed, and their questions are the sampling unit:
    ``points_needed`` is the total over all tasks, in the proportions of the pilot.

    What `compare` adds to the variance by default is planned for as well: the mutual training of
    models that were refitted in repeated cross-validation or are very similar, and, not contained
    in ``se``, pseudo-errors for bounded metrics and for some 0/1 losses. All of it is assumed to
    decrease like one over the number of points. For `refit_corrected`, whose variance has a part
    that repetitions show but do not remove, the parts of the variance, their limits and the
    ranges are NaN (with groups, only the parts and the limits). In 250 simulations of two nearly
    equal models with 120 points in three partitions, the average planned power was .53 (.77 with
    ``method="wald"``), and `compare` detected the difference in 46%. With one partition, .38 was
    planned, and the difference was detected in 29%.

    For 0/1 losses, the plan uses McNemar's test. A difference of d requires that at least a share d
    of the points is discordant, so a few points are never enough. For models that agree on every
    point, the results are the conservative ends of their ranges, based on a share of ``1 - 0.1^(1 /
    n)``, and ``caution`` contains ``no discordant points``. The plan is for the chi-squared test.
    If the next log has fewer than 25 discordant points, `compare` uses the exact test, which has
    less power: with about ten of them the power was half of that planned, with fifty it was as
    planned. If a test set was evaluated several times, the plan uses the standard error of the
    point averages.

    The ranges show the power and the points needed at both ends of an 80% interval for the variance
    of a difference, which is based on the chi-squared distribution. Its degrees of freedom are
    those of the standard error (groups); for `wald` and `holdout` they match the kurtosis k of the
    pilot's n differences, ``2 (n - 1) / (k - 1)``. In simulations they contained the true value for
    75% to 80% of pilots of 50 to 300 points with normal differences and for 67% to 78% with
    differences of squared errors: a small sample underestimates heavy tails. For cross-validated
    pilots they are less reliable: in five simulations 0% to 40% of the ranges contained the true
    value, and the actual power was .68 to .77 if 80% was planned. The kurtosis is computed from
    individual losses. If these are not available, as for lazy arrays and moments, the ranges are
    NaN, and so they are for methods without degrees of freedom. The ranges do not account for the
    effect of more training points on the models.

    For `corrected_t`, the points are those of a training set and its test set together, and more
    repetitions reduce only the term 1 / J of its variance. The numbers of points are NaN if the log
    has scores of splits whose sizes are unknown.

    The limits for many repetitions treat repetitions as independent given the point: this is true
    for runs of one model, and nearly true for partitions, whose models share most of their data.
    The `wald` interval does not narrow with repetitions; those of `holdout`, `clustered` and
    `out_of_source` do. With ``repetitions=r`` the standard error is the square root of
    ``(point_variance + repetition_variance / r) / n``, where a negative part is set to 0. The
    variance due to the training set as a whole cannot be estimated from a log, and is not
    included.

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
                          se  power smallest_effect points_needed
    model other
    ridge random_forest  128  0.122           358.6         5,684
    """
    given = read_options(method, options)
    planned = None if repetitions is None else int(repetitions)
    expected = cast(float, effect)
    levels = levels_of_options(method, given)
    if len(levels) > 1:
        raise LogError(
            f"power plans the number of points or of groups, but by={levels!r} names two levels. "
            f"Pass one level, as in options={{'by': {levels[0]!r}}}."
        )

    def run(log: Log) -> Result:
        base = difference_interval(log, method, given, alpha)
        require_standard_errors("power needs a standard error", base)
        refuse_impossible("effect", abs(expected), log, base.columns["estimate"])
        if planned is not None:
            check_repetitions(log, base)
        n = int(log.design.splits().rows[0])
        if base.method == "corrected_t":  # the points of a training and a test set
            n = int(np.rint(np.nanmax(base.columns["n_train"] + base.columns["n_test"])))
        result = compute(
            base, effect=expected, alpha=alpha, alternative=alternative, target=target_power,
            n=n, parts=variance_parts(log, base, n),
            factors=variance_factors(log, base), repetitions=planned,
            once=log.design.number("repetition") == 1,
        )  # fmt: skip
        result = advise_on_refits(show_own_errors(result), log, "Omit method=.")
        of_shares = log.metadata.get("holds") == "scores" and "n_test" not in log.metadata
        if "n_second" in base.columns or of_shares:  # the number of points is not enough
            result = drop_plans(result, np.ones(log.values.width, dtype=bool), NUMBERS_NEEDED)
        found = find_discordance(log, base)
        if found is None or planned is not None:
            result = drop_plans(result, no_evidence(log, base))
        else:
            if method == "tango":
                check_known(result, found)
            result = plan_zero_one(result, found)
        if found is None:
            return result
        return result.add_caution(Caution.DISCORDANT_FEW, found.few)

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
    once: bool,
    repetitions: int | None = None,
) -> Result:
    """Plan with the differences of a pilot log, whose standard errors decrease like 1 / sqrt(n)."""
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    pilot = {"difference": estimate, "se": se}
    columns.pop("lower"), columns.pop("upper")
    test = PlannedTest(alpha, alternative, degrees_of_each(base), count_groups(base))
    away, sign = test.find_distance(target), test.sign
    stays, goes = parts
    floor = np.sqrt(np.maximum(stays, 0) / n)
    if repetitions is not None:
        se = np.sqrt((np.maximum(stays, 0) + np.maximum(goes, 0) / repetitions) / n)
        pilot["planned_se"] = se
    low, high = (np.where(se == 0, 0.0, se * np.sqrt(factor)) for factor in factors)
    if not test.detects(effect):  # the power then grows with the standard error
        low, high = high, low

    def units(error: FloatArray) -> FloatArray:
        needed = test.find_size(np.abs(effect) / error, target, away, n)
        return np.where(np.isnan(error), np.nan, needed if test.detects(effect) else np.inf)

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
    attrs = {**base.attrs, "alternative": alternative, "alpha": alpha}
    attrs |= {"effect": effect, "target_power": target}
    if repetitions is not None:
        attrs["planned_repetitions"] = repetitions
    if test.groups is not None:
        attrs["group_size"] = n / test.groups
    result = Result("power", {**numbers, **columns}, base.caution, attrs)
    known = ~np.isnan(estimate)
    if once:
        result = result.add_caution(Caution.ONE_REPETITION, known & np.isnan(stays))
    return result.add_caution(Caution.CLAMPED, known & (stays < 0))


def check_repetitions(log: Log, base: Result) -> None:
    """Reject planning repetitions from a pilot of one, or for intervals that do not narrow."""
    if log.design.number("repetition") < 2:
        raise LogError(
            "repetitions= needs the variance of repeated evaluations of a point, but this log "
            "has one repetition. Expected a pilot with at least two."
        )
    name = base.attrs["interval_method"]
    averages = name == "holdout" or (name == "out_of_source" and log.fixed_sources)
    if name == REFITS or (not averages and count_groups(base) is None):
        raise LogError(
            f"repetitions= does not apply to {name}, whose interval does not narrow with "
            "repetitions as that of an average does. Omit repetitions=, or use one test set."
        )


def count_groups(base: Result) -> int | None:
    """Count the clusters or sources that are the sampling unit; None for points."""
    if averages_sources(base) or "df" not in base.columns:
        return None
    counts = (base.columns[name] for name in ("n_clusters", "n_sources") if name in base.columns)
    return next((int(count.max()) for count in counts), None)


def plan_zero_one(result: Result, found: Discordance) -> Result:
    """Plan McNemar's test for models with 0/1 losses.

    A difference d requires at least a share d of discordant points. If their share is s, the
    statistic has variance s under no difference and ``s - d^2`` at d (Connett, Smith and McHugh
    1987). The ranges come from the exact interval of the share; for models that always agree, its
    upper end is used. Averages over the repetitions of a test set have a variance of their own,
    with which they are planned, unless it is 0.
    """
    at, n = found.counted, found.n
    if found.averaged:
        at = at & (result.columns["se"] == 0)
    agree = at & (found.total == 0)
    low, high = clopper_pearson(found.total / n, n, 2 * TAIL)
    share = np.where(found.total == 0, high, found.total / n)
    attrs = result.attrs
    alternative, effect = result.alternative, float(attrs["effect"])
    test = PlannedTest(result.alpha, alternative, None, None)
    z = quantile(1 - test.tail)
    more, helps = test.find_distance(float(attrs["target_power"])) - z, test.detects(effect)

    def plan(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the power and the points needed for a share of discordant points."""
        null, away = spreads(share, abs(effect))
        ahead = np.sqrt(n) * (abs(effect) if helps else -abs(effect))
        power = special.ndtr((ahead - z * null) / away)
        if alternative == "two-sided":
            power = power + special.ndtr((-ahead - z * null) / away)
        needed = np.ceil(((z * null + more * away) / effect) ** 2 * (1 - 1e-12))
        return power, needed if helps else np.full_like(share, np.inf)

    power, needed = plan(share)
    (most, fewest), (least, largest) = plan(low), plan(high)
    if not helps:
        least, most = most, least
    numbers = {
        "power": power,
        "power_lower": least,
        "power_upper": most,
        "smallest_effect": test.sign * smallest_difference(share, n, z, more),
        "points_needed": needed,
        "points_needed_lower": fewest,
        "points_needed_upper": largest,
    }
    columns = dict(result.columns)
    for name, values in numbers.items():
        columns[name] = np.where(at, values, columns[name])
    # zero variance: no plan for infinitely many repetitions
    for name in ("smallest_effect_limit", "points_needed_limit"):
        stays = ~(columns["point_variance"] > 0)
        columns[name] = np.where(at & stays, np.nan, columns[name])
    result = replace(result, columns=columns).drop_caution(Caution.ZERO_VARIANCE, at)
    return result.add_caution(Caution.ALWAYS_AGREE, agree)


def spreads(share: FloatArray, effect: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Compute standard deviations of a difference: under no difference, and at ``effect``."""
    discordant = np.maximum(share, effect)
    return np.sqrt(discordant), np.sqrt(np.maximum(discordant - np.square(effect), 1e-300))


def smallest_difference(share: FloatArray, n: float, z: float, more: FloatArray) -> FloatArray:
    """Find the difference detected with the target power by bisection; NaN if there is none."""
    low, high = np.zeros_like(share), np.ones_like(share)
    for _ in range(60):
        middle = (low + high) / 2
        null, away = spreads(share, middle)
        found = np.sqrt(n) * middle >= z * null + more * away
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return np.where(high < 1, high, np.nan)


def drop_plans(result: Result, at: MaskArray, plans: tuple[str, ...] = PLANS) -> Result:
    """Remove the plan of pairs whose standard error of zero is uninformative."""
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
    df : float, array or None
        Degrees of freedom in the pilot, possibly per pair; None for the normal distribution.
    groups : int or None
        Number of groups in the pilot, if groups are the sampling unit.
    """

    alpha: float
    alternative: str
    df: float | FloatArray | None
    groups: int | None

    @property
    def tail(self) -> float:
        """The level on each side."""
        return self.alpha / 2 if self.alternative == "two-sided" else self.alpha

    @property
    def sign(self) -> float:
        """The sign of the differences to detect."""
        return -1.0 if self.alternative == "less" else 1.0

    def detects(self, effect: float) -> bool:
        """Whether the test is for differences of this sign."""
        return self.alternative == "two-sided" or self.sign * effect > 0

    def power(self, distance: FloatArray, df: float | FloatArray | None) -> FloatArray:
        """Compute the power for a difference given in standard errors."""
        two, away = self.alternative == "two-sided", self.sign * distance
        if df is None:
            z = -quantile(self.tail)
            return np.asarray(special.ndtr(away - z) + (special.ndtr(-away - z) if two else 0.0))
        t = np.asarray(-special.stdtrit(df, self.tail), dtype=np.float64)
        found: FloatArray = 1 - noncentral_t(df, away, t)
        return found + noncentral_t(df, away, -t) if two else found

    def find_distance(self, target: float) -> FloatArray:
        """Find the difference, in standard errors, that is detected with a given power."""
        if not self.alpha < target < 1:
            raise LogError(
                f"target_power={target!r} is out of range. Expected a probability above "
                f"alpha={self.alpha} and below 1, such as 0.8."
            )
        if self.df is None and self.alternative != "two-sided":
            return np.asarray(quantile(1 - self.alpha) + quantile(target))
        low = np.zeros_like(0.0 if self.df is None else self.df, dtype=np.float64)
        high = np.full_like(low, FAR)
        out_of_reach = self.power(self.sign * high, self.df) < target
        for _ in range(100):  # power grows with the distance
            middle = (low + high) / 2
            less = self.power(self.sign * middle, self.df) < target
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return np.where(out_of_reach, np.inf, high)

    def find_size(
        self, distance: FloatArray, target: float, away: FloatArray, n: int
    ) -> FloatArray:
        """Find the number of points, or groups, for the power; the pilot's effect is ``distance``.

        Degrees of freedom plus one grow like the number of groups.
        """
        pilot = self.groups
        if pilot is None or self.df is None:
            return np.maximum(np.ceil(n * (away / distance) ** 2 * (1 - 1e-12)), 2)
        share = (self.df + 1) / pilot
        fewest = np.ceil(np.fmax(2.0, 2 / share * (1 - 1e-12)))
        least = np.broadcast_to(fewest, distance.shape).copy()

        def reaches(groups: FloatArray) -> MaskArray:
            moved = self.sign * distance * np.sqrt(groups / pilot)
            found = self.power(moved, np.maximum(share * groups - 1, 1.0))
            return np.asarray(found >= target)

        known = np.isfinite(distance) & (distance > 0) & ~np.isnan(share)
        distance = np.where(known, distance, 1.0)
        low, high = least - 1, least.copy()
        while not (enough := reaches(high)).all():
            low, high = np.where(enough, low, high), np.where(enough, high, 2 * high)
        while (high - low > np.maximum(1, 1e-15 * high)).any():  # numbers beyond 2^53 have gaps
            middle = np.floor((low + high) / 2)
            enough = reaches(middle) & (middle >= least)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(known, high, least)


def noncentral_t(df: float | FloatArray, away: FloatArray, t: FloatArray) -> FloatArray:
    """Distribution function of the noncentral t, even in far tails where scipy fails."""
    share = special.nctdtr(df, np.clip(away, -FAR, FAR), t)
    share = np.where(np.isnan(share) | np.isinf(away), away < 0, share)
    return np.where(np.isnan(away), np.nan, share)


def variance_factors(log: Log, base: Result) -> tuple[FloatArray, FloatArray]:
    """Find the factors of the variance of a pilot for the ends of its 80% interval.

    The interval is that of a chi-squared distribution. Its degrees of freedom are those of the
    standard error, or, if points are the sampling unit, match the kurtosis k of the differences
    (averaged over repetitions): ``2 (n - 1) / (k - 1)``. NaN if neither is known.
    """
    df = np.full(log.values.width, np.nan)
    if base.method not in OF_POINTS:
        df = np.asarray(base.columns.get("df", df), np.float64)
    elif log.in_memory:
        points = average_repetitions(log) if log.design.number("repetition") > 1 else log
        for j, column in enumerate(points.columns()):
            if column is not None:
                here = column[points.design.here]
                squares = (here - here.mean()) ** 2
                excess = ((squares / max(squares.mean(), TINY)) ** 2).mean() - 1
                df[j] = 2 * (len(here) - 1) / max(excess, TWO_POINTS)
    return df / special.chdtri(df, TAIL), df / special.chdtri(df, 1 - TAIL)


def variance_parts(log: Log, base: Result, size: int) -> tuple[FloatArray, FloatArray]:
    """Compute the parts of each difference's variance that repetition cannot and can remove."""
    repetitions = log.design.number("repetition")
    unknown = np.full_like(base.columns["se"], np.nan)
    if repetitions == 1 or base.method == REFITS:  # whose variance repetitions reduce only in part
        return unknown, unknown
    if count_groups(base) is not None or base.method == "out_of_source":
        n = log.design.splits().rows[0]
        once = variance_per_repetition(log, base)
        return split_variance(n * once, n * base.columns["se"] ** 2, repetitions)
    if base.method == "corrected_t":
        averaged = size * base.columns["se"] ** 2
        each = 1 / base.columns["n_splits"]  # more splits reduce it, but not n_test / n_train
        stays = averaged * (1 - each / (each + base.columns["n_test"] / base.columns["n_train"]))
        return stays, (averaged - stays) * repetitions
    if base.method not in OF_POINTS or not log.in_memory:
        return unknown, unknown
    found = log.moments(repetition_level(log.design))
    n = found.count[0]
    once = (found.m2 / (n - 1)).mean(axis=0)
    averaged = average_repetitions(log).moments(()).m2[0] / (n - 1)
    return split_variance(once, averaged, repetitions)


def split_variance(
    once: FloatArray, averaged: FloatArray, repetitions: int
) -> tuple[FloatArray, FloatArray]:
    """Split the variance of a point's difference into parts that repetition cannot and can remove.

    ``once`` is the variance over points in one repetition (mean over repetitions) and
    ``averaged`` the variance of the points' means over r repetitions. If repetitions were
    independent given the point, ``once = a + b`` and ``averaged = a + b / r``.
    """
    noise = (once - averaged) * repetitions / (repetitions - 1)
    return once - noise, noise


def variance_per_repetition(log: Log, base: Result) -> FloatArray:
    """Average, over repetitions, the variance that an interval has with one of them."""
    if "df" not in base.columns:  # fixed sources, such as tasks of a benchmark
        tasks = squared_errors_of_sources(log.moments(("repetition", "source")))
        factor = 2 if base.attrs["variance"] == "theta_b" else 1
        return np.asarray(factor * tasks.sum(axis=0) / len(tasks) ** 2)
    options = {name: base.attrs[name] for name in ("correction",) if name in base.attrs}
    weigh = partial(weights_of(base.method), **options)
    level = str(base.attrs.get("by", "source"))
    found = log.moments(("repetition", level)).groups("repetition")
    each = [(group_residuals(cells, weigh)[0] ** 2).sum(axis=0) for cells in found]
    return np.asarray(np.mean(each, axis=0))
