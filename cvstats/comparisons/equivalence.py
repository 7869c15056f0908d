"""Practical equivalence of two models: two one-sided tests, and the Bayesian correlated t test."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from cvstats.comparisons._pairs import (
    Options,
    advise_on_refits,
    check_method_options,
    compare_pairs,
    degrees_of_each,
    difference_interval,
    distribution,
    levels_of_options,
    read_options,
    reads_lazy_losses,
    refuse_impossible,
    refuse_targets,
    require_standard_errors,
    zero_rounding_noise,
)
from cvstats.comparisons.zero_one import (
    SOME_SCORE,
    check_known,
    find_discordance,
    no_evidence,
    score_equivalence,
    widen_few,
)
from cvstats.core.cautions import Caution
from cvstats.core.cells import mean_and_squares
from cvstats.core.folds import split_levels
from cvstats.core.results import (
    Result,
    confidence_limits,
    half_widths,
    interval,
    make_result,
    show_own_errors,
)
from cvstats.errors import LogError, NotGiven, is_number
from cvstats.intervals._method import (
    RELATIVE_STABILITY,
    Comparison,
    flag_ignored_sources,
    flag_serial_dependence,
)
from cvstats.intervals._requirements import several_splits
from cvstats.intervals._stability import OF_INTERVAL, find_unstable
from cvstats.intervals.corrected_t import TrainSize, check_train_size, find_sizes
from cvstats.large.lazy import has_lazy_losses
from cvstats.log.log import Log, Losses
from cvstats.log.loss_checks import find_serial_dependence
from cvstats.options import Missing, check_numbers

Margin: TypeAlias = float | tuple[float | None, float | None]


def check_equivalence(options: Mapping[str, Any]) -> None:
    """Reject options of `equivalence` that are invalid for every log."""
    if (alpha := options["alpha"]) >= 0.5:
        raise LogError(f"alpha={alpha!r} leaves no interval at 1 - 2 alpha. Expected below 0.5.")
    read_margin(options["margin"])
    check_method_options(options["method"], options["options"])


@Comparison(
    needs="two or more models on the same evaluations",
    target="whether a difference is too small to matter",
    guarantee=OF_INTERVAL,
    fits="as the underlying interval",
    reference="Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680, "
    f"doi:10.1007/BF01068419; {RELATIVE_STABILITY}",
    models=2,
    of_interval=True,
    needs_points=True,
    takes_scores=True,
    check=check_equivalence,
)
def equivalence(
    losses: Losses,
    other: Losses | None = None,
    *,
    margin: Margin | None = None,
    reference: Hashable = None,
    method: str | None = None,
    options: Options = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    r"""Test whether the difference of two models is too small to matter.

    Equivalence is tested by two one-sided tests (TOST): whether the difference is above the lower
    end of the margin, and whether it is below the upper end. The p-value is the larger of the two
    p-values. For 0/1 losses, Tango's score test is used at both ends, because standard errors are
    too small if there are few discordant points. The target is the difference that the interval
    covers, as in `compare`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    margin : float or pair of float
        The largest difference that does not matter, in the units of the loss; or the ends ``(low,
        high)``. None leaves an end open: ``(None, 0.01)`` tests for non-inferiority, i.e. whether
        the model is at most 0.01 worse than the other. Required: the data cannot tell which
        difference is negligible.
    reference : hashable, optional
        Instead of ``other``, the name of the model to which the others are compared. If neither
        is given, all pairs are compared.
    method : str, optional
        The interval that gives standard error and distribution, as in `compare`; or ``"tango"``,
        the default for 0/1 losses.
    options : mapping, optional
        Options of that method, as in `compare`.
    alpha : float, optional
        The level of the test, below 0.5. The interval has level ``1 - 2 alpha``.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference``, ``lower``, ``upper`` (at ``1 - 2 alpha``), ``se`` in the units of the
        loss, ``p_value``, ``equivalent`` (``p_value < alpha``), what the method adds, and
        ``caution``; a frame is indexed by ``(model, other)``, an array has a dimension ``pair``.

    Raises
    ------
    LogError
        If the margin is invalid, the method has no standard error, the models were evaluated on
        different points or folds, or a loss is neither 0 nor 1 for ``"tango"``.

    See Also
    --------
    cvstats.compare : Whether there is a difference.
    cvstats.rope : The probability that it is too small to matter.
    cvstats.power : How many points a comparison needs.

    Notes
    -----
    With d the mean difference, se its standard error, F the distribution function of the statistic
    and low and high the ends of the margin,

    .. math::

        p = \max\left\{1 - F\left(\frac{d - \mathrm{low}}{\mathrm{se}}\right),\;
            F\left(\frac{d - \mathrm{high}}{\mathrm{se}}\right)\right\} .

    ``equivalent`` is true if and only if the interval lies within the margin. Unlike a difference
    that is not significant, this shows that the models are practically equivalent. P-values are not
    adjusted for multiple comparisons. A difference with zero variance is equivalent, with p = 0, if
    it lies within the margin; for 0/1 losses it is uninformative, and methods based on standard
    errors give NaN.

    For 0/1 losses of one test set or of folds, p-value and limits are those of Tango's score
    test, with a continuity correction of a quarter of a point. Its exact size at the margin, with
    30 to 500 points and margins from .01 to .1, is at most .051 (.0704 without the correction);
    with standard errors it is up to .6. Two models that agree on all of 20 points are equivalent
    within 0.15, but not within less. Counts are averaged over repetitions, with n the number of
    points. If a test set was evaluated several times and the models disagree on at least 25
    points, the point averages are tested by their standard error. ``attrs["test"]`` names the
    test.

    On folds the difference must be relatively stable, see `compare`. Without ``reference``, time
    and memory grow with the square of the number of models.

    References
    ----------
    Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680,
    doi:10.1007/BF01068419.
    Bayle, Janson and Mackey (2025), arXiv:2508.04409.
    Tango (1998), Statistics in Medicine 17(8), 891-908,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Examples
    --------
    Is logistic regression within 0.005 of gradient boosting, in Brier score?

    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> a, b = losses["logistic_regression"], losses["gradient_boosting"]
    >>> a.cvci.equivalence(b, margin=0.005)[["difference", "lower", "upper", "equivalent"]].round(4)
                                          difference   lower   upper equivalent
    model               other
    logistic_regression gradient_boosting     0.0005 -0.0002  0.0011       True
    """
    ends = read_margin(margin)
    given = read_options(method, options)

    def run(log: Log) -> Result:
        base = difference_interval(log, method, given, alpha)
        refuse_impossible("margin", min(map(abs, ends)), log, base.columns["estimate"])
        found = find_discordance(log, base)
        if found is not None and method is None:
            base = widen_few(base, found)
        result = show_own_errors(compute_equivalence(base, margin=ends, alpha=alpha))
        result = advise_on_refits(result, log, "Omit method=.")
        unknown = no_evidence(log, base)
        result.columns["p_value"][unknown] = np.nan
        result.columns["equivalent"][unknown] = False
        if found is None:
            return result
        if method in (None, "tango"):
            if method == "tango":
                check_known(result, found)
                found = replace(found, averaged=False)
            result = score_equivalence(result, found, margin=ends, alpha=alpha)
        return result.add_caution(Caution.DISCORDANT_FEW, found.few)

    table = compare_pairs(
        losses, other, reference, missing, run,
        levels=levels_of_options(method, given),
        reads_losses=partial(reads_lazy_losses, method, given),
    )  # fmt: skip
    if method is None and "test" in table.attrs and has_lazy_losses(losses, other):
        table.attrs["test"] = SOME_SCORE
    return table


def compute_equivalence(base: Result, *, margin: tuple[float, float], alpha: float) -> Result:
    """Compute two one-sided tests that a difference lies within a margin (Schuirmann 1987).

    ``p < alpha`` if and only if the interval of level ``1 - 2 alpha`` lies within the margin. A
    difference with zero variance is equivalent, with p = 0, if it lies within the margin.
    """
    require_standard_errors("equivalence needs a standard error", base)
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    df = degrees_of_each(base)
    low, high = margin
    with np.errstate(divide="ignore", invalid="ignore"):
        above = distribution(-(estimate - low) / se, df)
        under = distribution((estimate - high) / se, df)
    p = np.maximum(above, under)
    p = np.where(se == 0, np.where((low < estimate) & (estimate < high), 0.0, 1.0), p)
    p = np.where(np.isnan(se), np.nan, p)
    reach, _ = half_widths("two-sided", 2 * alpha, df)
    lower, upper = confidence_limits(estimate, se, reach, reach)
    tests = {
        "difference": estimate, "lower": lower, "upper": upper, "se": se,
        "p_value": p, "equivalent": p < alpha,
    }  # fmt: skip
    attrs = {**base.attrs, "alternative": "equivalence", "alpha": alpha}
    attrs |= {"margin_low": low, "margin_high": high}
    return replace(base, method="equivalence", columns={**tests, **columns}, attrs=attrs, calls={})


def read_margin(margin: object, *, zero: bool = False) -> tuple[float, float]:
    """Read a margin: a number for both sides, or a pair, with None for an open side."""
    if margin is None:
        raise NotGiven(
            "margin is required: the data cannot tell which difference is negligible. Pass it "
            "in the units of the loss, as in margin=0.01, or a pair, as in margin=(-0.01, 0.02)."
        )
    refusal = LogError(
        f"Invalid margin={margin!r}. Expected the largest negligible difference in the units of "
        f"the loss: a number {'from' if zero else 'above'} 0, or a pair (low, high) with low < "
        "high, where None leaves that side open."
    )
    if isinstance(margin, Real) and is_number(margin):
        margin = -float(margin), float(margin)
        if zero and margin[1] == 0:
            return margin
    if not isinstance(margin, (tuple, list)) or len(margin) != 2:
        raise refusal
    if not all(end is None or is_number(end) for end in margin):
        raise refusal
    low = -np.inf if margin[0] is None else float(margin[0])
    high = np.inf if margin[1] is None else float(margin[1])
    if not low < high or (np.isinf(low) and np.isinf(high)):
        raise refusal
    return low, high


# --- the Bayesian correlated t test ---------------------------------------------------------------


def check_rope(options: Mapping[str, Any]) -> None:
    """Reject options of `rope` that are invalid for every log."""
    read_margin(options["margin"], zero=True)
    rho = options["rho"]
    if rho is not None:
        check_numbers("rho", rho)
    if rho is not None and not 0 <= rho < 1:
        raise LogError(f"rho={rho!r} is out of range. Expected a correlation from 0 to below 1.")
    check_train_size(options["train_size"])
    if rho is not None and options["train_size"] is not None:
        raise LogError(
            "rho and train_size are two ways to specify the same correlation. Expected only one of "
            "them."
        )


@Comparison(
    requires=several_splits,
    needs="at least two random splits, or a (repeated) K-fold partition",
    target="difference of two models in the expected risk of models trained on sets of this size",
    guarantee="heuristic: assumes that the correlation of two test sets equals the test fraction",
    fits="1 for each split, K for each repetition",
    reference="Corani and Benavoli (2015), Machine Learning 100, 285-304, "
    "doi:10.1007/s10994-015-5486-z",
    models=2,
    takes_scores=True,
    check=check_rope,
)
def rope(
    losses: Losses,
    other: Losses | None = None,
    *,
    margin: Margin | None = None,
    reference: Hashable = None,
    rho: float | None = None,
    train_size: TrainSize = None,
    missing: Missing = "raise",
) -> Any:
    r"""Compute the probability that a model is better, practically equivalent, or worse.

    This is the Bayesian correlated t-test. The posterior distribution of the difference between the
    expected errors is a t distribution with J - 1 degrees of freedom. It is centered at the mean of
    the differences over J test sets, and its scale accounts for overlapping training sets. The
    margin around zero is the region of practical equivalence. The target is the difference between
    the expected risks of the two algorithms, at the size of the training sets.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several: K-fold cross-validation, repeated or not, or
        random splits. One score per split is enough.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    margin : float or pair of float
        The largest difference that does not matter, in the units of the loss; or the ends ``(low,
        high)``, with None for an open end. With 0 only two probabilities remain. Required.
    reference : hashable, optional
        Instead of ``other``, the name of the model to which the others are compared. If neither
        is given, all pairs are compared.
    rho : float, optional
        Correlation of the means of two test sets. The default is the test fraction: 1 / K for K
        equal folds.
    train_size : float, sequence, mapping or Series, optional
        Instead of ``rho``, the number of points each model was trained on, as in
        `corrected_t`. It is known for folds but not for random splits.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference`` and ``scale`` of the posterior in the units of the loss; ``p_better``
        (below the margin: the model has the smaller error), ``p_equivalent`` (within) and
        ``p_worse``, which sum to 1; ``df`` and ``caution``. ``n_splits`` (J) and ``rho`` are in
        ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If there are fewer than two test sets, the training size of random splits is not given,
        or both ``rho`` and ``train_size`` are.

    See Also
    --------
    cvstats.corrected_t : The same correction, as a confidence interval.
    cvstats.equivalence : A test for the same question.
    cvstats.compare : Whether there is a difference.

    Notes
    -----
    With S^2 the sample variance of the mean differences of the J test sets, the squared scale is

    .. math::

        \left(\frac1J + \frac{\rho}{1 - \rho}\right) S^2 .

    These are posterior probabilities under a flat prior, not p-values. With ``margin=0``,
    ``p_worse`` is the one-sided p-value of `corrected_t` for the model being better. The value of
    rho is a heuristic that cannot be estimated from the log. If all test sets have the same
    difference, the posterior is concentrated at that value. The posterior does not require that the
    difference is relatively stable. If repetitions show that the difference is unstable,
    ``caution`` contains ``unstable difference``: the `wald` interval in `compare` may then be far
    too narrow.

    References
    ----------
    Corani and Benavoli (2015), Machine Learning 100, 285-304, doi:10.1007/s10994-015-5486-z.
    Benavoli, Corani, Demsar and Zaffalon (2017), JMLR 18(77), 1-36.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> table = losses.cvci.rope(margin=100)
    >>> table[["difference", "p_better", "p_equivalent", "p_worse"]].round(3)
                         difference  p_better  p_equivalent  p_worse
    model other
    ridge random_forest    -182.049      0.76         0.232    0.008
    """
    ends = read_margin(margin, zero=True)

    def run(log: Log) -> Result:
        refuse_targets(log, "rope")
        rope.record.require(log.design)
        found = log.moments(split_levels(log.design))
        if rho is None:
            tested, trained = find_sizes(log, found, train_size)
            ratio = float(np.mean(tested / trained))
        else:
            ratio = rho / (1 - rho)
        j, (middle, squares) = len(found.count), mean_and_squares(found.mean)
        variance = (1 / j + ratio) * squares / (j - 1)
        base = interval("rope", middle, variance, origin=found.origin, alpha=0.05, df=j - 1)
        base = zero_rounding_noise(base, log)
        refuse_impossible("margin", min(map(abs, ends)), log, base.columns["estimate"])
        result = compute_posterior(base, j, ratio, ends)
        unstable = find_unstable(log)
        if unstable is not None:
            result = result.add_caution(Caution.UNSTABLE_DIFFERENCE, unstable)
            advice = "rope and, by default, compare account for it."
            result = advise_on_refits(result, log, advice)
        serial = find_serial_dependence(log, len(result.caution))
        result = flag_serial_dependence(result, serial, log, "rope")
        return flag_ignored_sources(result, log.design, of_means=True)

    return compare_pairs(losses, other, reference, missing, run)


def compute_posterior(
    base: Result, n_splits: int, ratio: float, margin: tuple[float, float]
) -> Result:
    """Split the posterior of the correlated t test at the margin (Corani and Benavoli 2015).

    The mean difference of J test sets has a t distribution with J - 1 degrees of freedom about
    ``estimate``, of scale ``se``, where ``ratio = rho / (1 - rho)`` for a correlation of rho.
    """
    center, scale = base.columns["estimate"], base.columns["se"]
    (low, high), df = margin, n_splits - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        left = distribution((low - center) / scale, df)
        right = distribution(-(high - center) / scale, df)
        beyond = distribution(-(low - center) / scale, df) - right  # keeps the digits of that side
        inside = distribution((high - center) / scale, df) - left
    point = scale == 0  # all mass is at the center
    shares = {
        "p_better": np.where(point, center < low, left),
        "p_equivalent": np.where(
            point, (low <= center) & (center <= high), np.where(center < low, beyond, inside)
        ),
        "p_worse": np.where(point, center > high, right),
    }
    missing = np.isnan(center)
    columns = {
        "difference": center,
        "scale": scale,
        **{name: np.where(missing, np.nan, share) for name, share in shares.items()},
        "df": df,
        "n_splits": n_splits,
        "rho": ratio / (1 + ratio),
    }
    attrs: dict[str, Any] = {**rope.record.facts, "margin_low": low, "margin_high": high}
    return make_result("rope", columns, base.caution, attrs)
