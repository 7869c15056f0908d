"""Is one model better than another? Paired differences, their tests and their log."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.comparisons._adjust import (
    adjust_max_t,
    adjust_p_values,
    adjust_tests,
    check_draws,
    check_one_cell,
)
from cvstats.comparisons._pairs import (
    Options,
    any_log,
    check_method_options,
    check_one_partner,
    choose_pairs,
    compare_pairs,
    confidence_limits,
    degrees_of_each,
    difference_interval,
    distribution,
    has_standard_errors,
    levels_of_options,
    pair_all_models,
    reads_lazy_losses,
)
from cvstats.comparisons.anytime import check_anytime, compute_anytime
from cvstats.comparisons.relative import check_relative, compute_geometric_mean, compute_relative
from cvstats.comparisons.zero_one import SOME_EXACT, apply_tests, find_discordance
from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.results import Result, half_widths, show_own_errors
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._method import BAYLE, RELATIVE_STABILITY, Comparison
from cvstats.intervals._recommend import take_points
from cvstats.intervals._stability import OF_INTERVAL
from cvstats.large.frames import later
from cvstats.large.lazy import adjust_lazily, has_lazy_losses
from cvstats.log.align import difference_from, every_pair, facts_of_differences, subtracted
from cvstats.log.arrow import as_container
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import DIFFERENCES, Log, Losses
from cvstats.log.read import is_dask_frame, read
from cvstats.options import Adjust, Alternative, Missing, Rng, check_rng, seed_of, whole_number


@Comparison(
    requires=any_log,
    needs="two or more models on the same evaluations",
    target="difference of their errors, as the interval it is based on",
    guarantee=OF_INTERVAL,
    fits="as the interval it is based on",
    reference=f"{BAYLE}; {RELATIVE_STABILITY}",
    models=2,
    takes_scores=True,
)
def compare(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    method: str | None = None,
    options: Options = None,
    points: Literal["crossed", "nested"] | None = None,
    alternative: Alternative = "two-sided",
    adjust: Adjust | Literal["max-t"] | None = "holm",
    anytime: bool = False,
    tightest_at: int | None = None,
    relative: bool = False,
    over: str | None = None,
    alpha: float = 0.05,
    n_draws: int = 10_000,
    rng: Rng = None,
    by: str | None = None,
    missing: Missing = "raise",
) -> Any:
    r"""Test whether models differ, on paired losses.

    The target is the difference of what the interval covers; for `wald` the difference of the
    average test errors of the trained models. The losses of two models on the same evaluation are
    subtracted (model minus other, so that negative is better), and the interval of the chosen
    method is taken of these differences. The statistic is their mean divided by its standard
    error.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    method : str, optional
        The interval that gives the standard error and the distribution of the statistic.
        Without it what `interval` chooses for this log (``"bootstrap_oob"`` if that has no
        differences): groups are respected, see there. Where that is `wald` and the
        cross-validation was repeated with other folds, `refit_corrected`. ``"union"`` takes no
        interval of the difference but one of each model, at level ``1 - alpha / 2``, and subtracts
        their limits: ``[L1 - U2, U1 - L2]``. ``"tango"`` gives the score test and limits for
        losses of 0 and 1 of one test set or of folds.
    options : mapping, optional
        Options of that method by name, such as ``{"variance": "within-fold"}`` for `wald`,
        ``{"train_size": 90}`` for `corrected_t` or ``{"test": "f"}`` for `five_by_two`. For
        ``"union"`` those of the interval of each model, and ``"method"``, its name; without it
        the one that is the default for differences.
    points : {"crossed", "nested"}, optional
        Whether points of one name in several sources are the same ones, as for `interval`.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` asks whether the model has the smaller error.
    adjust : {"holm", "bonferroni", "bh", "max-t", None}, optional
        How ``p_adjusted`` allows for several comparisons: against any false difference
        (``"holm"``; ``"bonferroni"``, which is larger), or for the share of false ones (``"bh"``,
        also called ``"fdr"``). All count all pairs of models
        in all carried cells, such as those of a map. ``"max-t"`` is of the first kind and uses
        how the models of one cell depend on each other, so it counts the pairs of each cell by
        itself; it alone also widens ``lower`` and ``upper``, which then cover all differences
        of a cell at once.
    anytime : bool, optional
        Whether the limits are to hold at all looks at a growing test set together, however often
        one looks and whenever one stops: an asymptotic confidence sequence. For one test set, by
        points (`holdout`) or groups (`clustered`); `monitor` looks batch by batch.
    tightest_at : int, optional
        With ``anytime``, the number of points (or groups) at which the limits are to be tightest,
        chosen before the first look; 500 without it.
    relative : bool, optional
        Whether ``difference``, ``lower``, ``upper`` and ``se`` are per cent of the other model's
        loss: -8 means 8% less. Limits are those of Fieller, for whatever method.
    over : str, optional
        With ``relative``, a level such as ``"source"`` whose labels are data sets: the geometric
        mean over them of the ratio of mean losses, each data set alike.
    alpha : float, optional
        One minus the level of the intervals.
    n_draws : int, optional
        For ``"max-t"``, how many draws from the joint distribution.
    rng : int or numpy.random.Generator, optional
        For ``"max-t"``, the seed of these draws; ``attrs["seed"]`` is the one that was used.
    by : str, optional
        A level (or coordinate) of a log in memory: one comparison for each of its labels, by one
        method for all. ``"holm"`` and ``"bh"`` count the pairs of all labels together.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``statistic``,
        ``p_value``, with several comparisons ``p_adjusted``, then what the method adds and
        ``caution``. A frame is indexed by ``(model, other)``, with ``by`` by ``(label, model,
        other)``; an array has a dimension ``pair`` with these coordinates. A method without a
        standard error gives its own limits, NaN for ``se``, and a p-value if it has a test. Of
        losses of 0 and 1, ``attrs["test"]`` names the test.

    Raises
    ------
    LogError
        If the models were evaluated on different points or folds; nothing unpaired is ever
        computed in their place. If ``"max-t"`` or a one-sided test is asked of a method whose
        intervals are not made of standard errors, ``"max-t"`` of one pair of models in many
        carried cells, or ``"tango"`` of losses other than 0 and 1. With ``anytime`` also if the
        log has folds, which are tested with several models, or if a one-sided test or ``"max-t"``
        is asked for.

    See Also
    --------
    cvstats.best_set : Which of many models may be the best.
    cvstats.equivalence : Whether a difference is too small to matter.
    cvstats.power : How many points a difference takes.
    cvstats.difference : The log of the differences.

    Notes
    -----
    On folds, `wald` is exact as the points grow if the *difference* of the losses is relatively
    stable: one training point more or less must change it little beside its own spread over
    points. That each learner is stable is not enough. Where both approach one limit, such as
    nested models of which the smaller one is right, the spread vanishes as fast as the change:
    95% intervals then cover from 70% to 85% at every number of points. Under the condition the
    one-sided test has asymptotically the level alpha where the errors are equal, and a smaller
    one where the model is worse.

    Repeated cross-validation shows how much of the variance is missing, and `refit_corrected`
    adds it. With ``method="wald"``, ``caution`` says ``unstable difference`` where that is a large
    share (of moments of more than 50,000 losses: where the means of three repetitions or more
    differ, in standard deviations, by more than 0.3 of the standard error, and ``refit_corrected``
    is not the default); of one partition of 100 points or more where the models are so much alike
    that it may be; and for a log with each point replaced, all of whose losses are at hand, where
    such an exchange changes the difference as much. A log without the label may still be unstable.
    `corrected_t` and `nested_cv` do not need the condition, nor does
    ``"union"``, which holds wherever both intervals of one model do; but it ignores that the
    losses are paired, and is many times wider where the models are alike.

    Losses of 0 and 1, each point evaluated once, are tested as `mcnemar` does where two models
    disagree on fewer than 25 points: the p-value is that of the exact test, and the limits are
    Tango's score limits, reaching to 0 where the exact test finds no difference. Such pairs have
    the label ``few discordant points``, also where normal tests stay: with repetitions, with
    ``"max-t"``, and with a method by name. ``"tango"`` has McNemar's score test for any number of
    discordant points, and averages its counts over repetitions, for the same number of points.

    ``"max-t"`` draws the models' means from the normal distribution that has the standard
    errors of all differences (with Student's t, from the t distribution that shares its degrees
    of freedom), and compares each statistic to the largest one of a draw. Where a method uses the
    normal distribution, its standard errors are estimates all the same: the largest of a draw is
    then taken to Student's t of one less than the points. ``p_adjusted <= alpha`` exactly where
    the interval excludes 0. Many models on few points with skewed differences make too many
    differences significant still; ``caution`` then says ``many models few points``.

    With n points (or groups) and a rate r that is chosen before the first look, limits with
    ``anytime`` are

    .. math::

        \bar d \pm \mathrm{se} \sqrt{\frac{2 (n r + 1)}{n r}
            \log\frac{\sqrt{n r + 1}}{\alpha}} ,

    and ``p_value`` is the alpha at which they end at 0. A look after every 20 of 2,000 points, and
    a stop at the first significant difference, go wrong in 30% to 39% of cases with the usual
    interval, and in 1% to 4% with these. The price is a width of 1.55 to 1.7 times the usual one.
    The points have to come in random order. Until there are 30 points (or groups), and for losses
    of 0 and 1 also 25 points on which the two models disagree, the limits are infinite, and
    ``caution`` says ``no limits yet``; below 100, where losses are other ones, it says
    ``early look``.

    With ``relative`` and mean losses A and B, the estimate is ``100 (A / B - 1)``. Its limits are
    the r at which the interval of the mean of ``a - (1 + r) b``, by the same method, ends at 0
    (Fieller): they contain 0 exactly where the interval of the difference does, and ``p_value`` is
    that of the difference. Where B is not significantly different from 0 there is no interval, and
    ``caution`` says ``reference near zero``. For gamma losses of 20, 50 and 200 points 95% limits
    covered 97%, 95% and 95%, those of the delta method 91%, 93% and 94%. ``over`` takes the t
    interval of the logarithms of the ratios of data sets, five or more of them.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671.
    Fieller (1954), JRSS B 16(2), 175-185, doi:10.1111/j.2517-6161.1954.tb00159.x.
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52(6), 2613-2640,
    arXiv:2103.06476.
    Bayle, Janson and Mackey (2025), arXiv:2508.04409.
    Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.
    Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x.
    Hothorn, Bretz and Westfall (2008), doi:10.1002/bimj.200810425.
    Tango (1998), Statistics in Medicine 17(8), 891-908,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest", "gradient_boosting"])
    >>> table = losses.cvci.compare(reference="ridge")
    >>> table[["difference", "lower", "upper", "p_adjusted"]].round(3)
                             difference    lower    upper  p_adjusted
    model             other
    random_forest     ridge     181.842  -69.026  432.709       0.311
    gradient_boosting ridge     143.377 -119.401  406.155       0.311
    """
    given = check_method_options(method, options)
    looked_at = None
    if anytime:
        looked_at = check_anytime(
            tightest_at, method=method, options=given, alternative=alternative, adjust=adjust
        )
    elif tightest_at is not None:
        raise LogError(
            f"tightest_at={tightest_at!r} is for limits that hold at every look. Expected "
            f"anytime=True beside it."
        )
    check_rng(rng)
    check_relative(relative, over, method, anytime, adjust)
    if adjust == "max-t" and method == "tango":
        raise LogError(
            "adjust='max-t' needs standard errors, and the limits of tango are not made of them. "
            "Expected adjust='holm', or method='wald'."
        )
    if adjust == "max-t":
        check_draws(n_draws, alpha)
    else:
        whole_number("n_draws", n_draws, 1)
    if is_dask_frame(losses):
        ask = partial(
            compare, reference=reference, method=method, options=options, points=points,
            alternative=alternative,
            adjust=adjust, anytime=anytime, tightest_at=tightest_at, alpha=alpha,
            n_draws=n_draws, rng=rng, by=by, relative=relative, over=over,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, levels=(by, over), missing=missing)
    lazy = has_lazy_losses(losses, other)
    across = adjust in ("holm", "bonferroni", "bh")  # all carried cells together
    run = partial(
        compare_columns, method=method, options=given, alternative=alternative,
        alpha=alpha, adjust=None if across else adjust,
        n_draws=n_draws, seed=seed_of(rng) if adjust == "max-t" else 0, tightest_at=looked_at,
    )  # fmt: skip
    example = partial(run, n_draws=min(n_draws, DRAWS_OF_EXAMPLE))
    levels = levels_of_options(method, given)
    if over is not None:
        levels = (*levels, over)
        run = partial(compute_geometric_mean, over=over, alternative=alternative, alpha=alpha)
        example = run
    elif relative:
        run, example = (
            partial(
                compute_relative, each, method=method, options=given, alternative=alternative,
                adjust=adjust, alpha=alpha,
            )
            for each in (run, example)
        )  # fmt: skip
    table = compare_pairs(
        losses, other, reference, missing, run, by=by, all_pairs=adjust == "max-t",
        levels=levels, example=example,
        finish=partial(adjust_tests, adjust=adjust) if across else None,
        reads_losses=partial(reads_lazy_losses, method, given),
        prepare=partial(take_points, points=points),
    )  # fmt: skip
    if adjust == "max-t" and "p_adjusted" not in table:
        check_one_cell(table["difference"].size)  # some cells do not see those of the others
    if lazy and method is None and "test" in table.attrs:
        table.attrs["test"] = SOME_EXACT
    if "n_draws" in table.attrs:
        table.attrs["n_draws"] = n_draws
    if relative and hasattr(table, "data_vars"):
        for name in ("difference", "lower", "upper", "se"):
            table[name].attrs["units"] = "percent"
    return adjust_lazily(table, adjust_p_values, str(adjust)) if lazy and across else table


DRAWS_OF_EXAMPLE = 999
"""Draws for the form of a lazy result, of which no number is kept."""


def compare_columns(log: Log, differences: Differences, **options: Any) -> Result:
    """Test differences, and show their standard errors as they are without pseudo-errors."""
    return show_own_errors(compute_comparison(log, differences, **options))


def compute_comparison(
    log: Log,
    differences: Differences,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alternative: Alternative,
    adjust: str | None,
    alpha: float,
    n_draws: int,
    seed: int,
    tightest_at: int | None,
) -> Result:
    """Test the differences of pairs of models, in each cell of the remaining dimensions.

    ``tightest_at`` is None where the limits are those of one look.
    """
    grouped = log.design.by is not None
    if grouped and (tightest_at is not None or adjust == "max-t"):
        raise DifferentGroups("looks and maxima are of one group at a time.")
    if tightest_at is not None:
        return compute_anytime(
            log, differences, method=method, options=options, alpha=alpha, tightest_at=tightest_at
        )
    base = difference_interval(log, differences, method, options, alpha)
    result = replace(compute_tests(base, alternative=alternative, alpha=alpha), method="compare")
    if grouped:  # of losses other than 0 and 1
        return result
    result = apply_tests(
        result, find_discordance(log, differences, base), method=method, adjust=adjust,
        alternative=alternative, alpha=alpha,
    )  # fmt: skip
    if adjust != "max-t":
        return result
    columns = log.columns_by_cell()
    n_cells = columns.shape[1]
    if differences.width == n_cells:
        return result
    everything = pair_all_models(log)
    if differences.width < everything.width:
        base = difference_interval(log, everything, method, options, alpha)
    model = np.empty(columns.size, dtype=np.int64)
    model[columns] = np.arange(len(columns))[:, None]
    one_cell = slice(None, None, n_cells)  # pairs are the same in each cell
    left, right = model[differences.left[one_cell]], model[differences.right[one_cell]]
    return adjust_max_t(
        result, base, (left, right), len(columns),
        alternative=alternative, alpha=alpha, n_draws=n_draws, seed=seed,
    )  # fmt: skip


def compute_tests(base: Result, *, alternative: str, alpha: float) -> Result:
    """Turn an interval of mean differences into tests of no difference.

    Interval and test are duals: the interval excludes 0 where ``p_value < alpha``. A method
    without a symmetric standard error keeps its own limits, and its own test if it has one.
    """
    if not has_standard_errors(base):
        return keep_own_tests(base, alternative=alternative)
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    df = degrees_of_each(base)
    down, up = half_widths(alternative, alpha, df)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((se == 0) & (estimate == 0), 0.0, estimate / se)
    p = np.where((se == 0) & (estimate == 0), 1.0, p_values(statistic, df, alternative))
    lower, upper = confidence_limits(estimate, se, down, up)
    tests: dict[str, NDArray[Any]] = {
        "difference": estimate,
        "lower": lower,
        "upper": upper,
        "se": se,
        "statistic": statistic,
        "p_value": np.where(np.isnan(se), np.nan, p),
    }
    attrs = {**base.attrs, "alternative": alternative, "alpha": alpha}
    # A difference of models that agree everywhere is not a small sample.
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    return Result(base.method, {**tests, **columns}, caution, attrs, calls=base.calls)


def p_values(statistic: FloatArray, df: float | FloatArray | None, alternative: str) -> FloatArray:
    """Probability of a statistic as far out, under no difference.

    ``"less"`` asks whether the model has the smaller error. An infinite statistic (a
    difference without any variance) gives 0 or 1.
    """
    if alternative == "two-sided":
        return 2 * distribution(-np.abs(statistic), df)
    return distribution({"less": statistic, "greater": -statistic}[alternative], df)


def keep_own_tests(base: Result, *, alternative: str) -> Result:
    """Take limits, statistic and p-value as a method without standard errors gives them."""
    if alternative != "two-sided":
        raise LogError(
            f"alternative={alternative!r} needs a standard error, and {base.method} with these "
            f"options has none. Expected alternative='two-sided', or another method."
        )
    columns = dict(base.columns)
    estimate = columns.pop("estimate")
    tests = {name: columns.pop(name) for name in ("lower", "upper", "se")}
    for name in ("statistic", "p_value"):
        tests[name] = columns.pop(name, np.full_like(estimate, np.nan))
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    caution[np.isnan(tests["p_value"]) & ~np.isnan(estimate)] |= np.int64(Caution.NO_TEST)
    attrs = {**base.attrs, "alternative": alternative}
    columns = {"difference": estimate, **tests, **columns}
    return Result(base.method, columns, caution, attrs, calls=base.calls)


# --- the log of differences -----------------------------------------------------------------------


@Comparison(
    requires=any_log,
    needs="two or more models on the same evaluations",
    target="the log of paired differences, itself a log",
    guarantee="none by itself; the interval taken of it states what holds for differences",
    fits="as the log has",
    reference=f"{BAYLE}; {RELATIVE_STABILITY}",
    models=2,
    needs_losses=True,
    takes_lazy_losses=True,
)
def difference(losses: Losses, other: Losses | None = None, *, reference: Hashable = None) -> Any:
    """Take paired differences: the loss of the model minus the loss of the other.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models: the others minus this one.
        With neither, all pairs.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A loss log again, with the levels of ``losses``; negative where the model is better.
        All pairs of a frame have columns ``(model, other)``, those of an array a dimension
        ``pair``. Its ``attrs`` are those of the log, or those in which two logs agree: whether it
        holds scores of splits, the training sizes, the metric and its direction.

    Raises
    ------
    LogError
        If the two logs differ in points or folds (the first that do are named) or in what they
        hold (scores or losses, the metric, the loss, units), or there is only one model.

    See Also
    --------
    cvstats.compare : The test of the same differences.
    cvstats.heterogeneity : Whether a difference varies between groups.

    Notes
    -----
    Every method that takes a log takes this one: its estimate is then the difference in
    error. ``attrs["kind"]`` is ``"differences"``, and what an interval promises of it has the
    condition that `compare` states. Losses of 0 and 1 have differences of -1, 0 and 1, so
    intervals for proportions do not apply.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671, section 4.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> gap = losses["ridge"].cvci.difference(losses["random_forest"])
    >>> float(gap.mean().round(1))
    -181.8
    """
    check_one_partner(other, reference)
    losses, other = as_container(losses), as_container(other)
    if other is not None:
        gaps = subtracted(losses, other)
    else:
        choose_pairs(read(losses), reference)
        gaps = every_pair(losses) if reference is None else difference_from(losses, reference)
        gaps.attrs = facts_of_differences(losses.attrs)
    gaps.attrs = {**gaps.attrs, **DIFFERENCES}
    return gaps
