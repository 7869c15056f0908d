"""Paired differences of models: their tests, and the log of differences.

Limits of a difference that are valid at every look are an asymptotic confidence sequence
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, arXiv:2103.06476). With n independent units
(points, or groups of them) and a rate ``r`` that was chosen before the first look, the limits are

    mean(d) -+ se sqrt( 2 (n r + 1) / (n r)  log( sqrt(n r + 1) / alpha ) ),                (14)

with the standard error ``se`` at that look instead of ``sd / sqrt(n)``. Compared with limits for
one look, they are tightest at n = t if ``r = (-W(-alpha^2 / e) - 1) / t``, with the lower branch W
of Lambert's function.

The ratio R of two mean losses is not significantly different from r if and only if the mean of
``a - r b`` is not significantly different from 0. Its limits are the r at which the interval of
that mean, by any method, ends at 0 (Fieller 1954, doi:10.1111/j.2517-6161.1954.tb00159.x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._adjust import adjust_max_t, adjust_p_values, adjust_tests, check_draws
from cvstats.comparisons._pairs import (
    Options,
    check_method_options,
    check_one_partner,
    choose_pairs,
    compare_pairs,
    default_difference,
    default_method,
    degrees_of_each,
    difference_interval,
    has_standard_errors,
    levels_of_options,
    p_values,
    read_options,
    reads_lazy_losses,
    require_standard_errors,
    test_numerators,
)
from cvstats.comparisons.zero_one import (
    FEW,
    SOME_EXACT,
    find_discordance,
    score_tests,
    take_exact_tests,
    widen_few,
)
from cvstats.core.cautions import Caution
from cvstats.core.folds import repetition_level
from cvstats.core.loss_columns import LossColumns
from cvstats.core.results import (
    FIELLER,
    OWN_ERROR,
    Result,
    confidence_limits,
    half_widths,
    interval,
    show_own_errors,
)
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, NeedsLosses, checked_flag, is_several, listed, nearest, spelled
from cvstats.intervals import find_method
from cvstats.intervals._limits import OF_SPLITS, SOME_TANGO, add_pseudo_errors, fieller
from cvstats.intervals._method import BAYLE, RELATIVE_STABILITY, Comparison
from cvstats.intervals._requirements import recommend_options, take_points, takes_two_ways
from cvstats.intervals._stability import OF_INTERVAL
from cvstats.large.lazy import adjust_lazily, has_lazy_losses
from cvstats.log.align import difference_from, every_pair, facts_of_differences, subtract_logs
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import DIFFERENCES, Log, Losses
from cvstats.log.loss_checks import EVERY_LOOK, take_sample
from cvstats.log.metadata import (
    DIFFERENCE_FROM,
    STRENGTHS,
    is_ratio,
    is_root,
    names_of_metrics,
    put_attrs,
)
from cvstats.log.read import read
from cvstats.log.tables import as_container
from cvstats.options import Adjust, Alternative, Missing, Rng, check_rng, seed_of, whole_number

N_DRAWS = 10_000
"""Default number of draws."""


def check_compare(options: Mapping[str, Any]) -> None:
    """Reject options of `compare` that are invalid for every log."""
    method, adjust, anytime = options["method"], options["adjust"], options["anytime"]
    tightest_at = options["tightest_at"]
    check_method_options(method, options["options"])
    if anytime is not False:
        checked_flag("anytime", anytime)
    if anytime:
        check_anytime(options)
    elif tightest_at is not None:
        raise LogError(
            f"tightest_at={tightest_at!r} requires anytime=True. Pass both, or omit tightest_at=."
        )
    check_rng(options["rng"])
    relative, over = options["relative"], options["over"]
    if relative is not False:
        checked_flag("relative", relative)
    if over is not None and not relative:
        raise LogError(f"over={over!r} requires relative=True. Pass both.")
    if relative and (anytime or method in ("union", "tango")):
        what = "anytime=True" if anytime else f"method={method!r}"
        raise LogError(
            f"relative=True needs standard errors, but {what} has none. Use another method, such "
            "as method='wald' or 'holdout'."
        )
    if over is not None and (method is not None or adjust == "max-t"):
        raise LogError(
            f"over={over!r} uses a t interval of the log ratios of data sets, and does not "
            "support method= or adjust='max-t'. Omit them, or omit over=."
        )
    if adjust == "max-t" and method == "tango":
        raise LogError(
            "adjust='max-t' needs standard errors, which tango does not have. Use adjust='holm' "
            "or method='wald'."
        )
    if adjust == "max-t":
        check_draws(options["n_draws"], options["alpha"])
    elif whole_number("n_draws", options["n_draws"], 1) != N_DRAWS:
        raise LogError(
            f"n_draws={options['n_draws']!r} is only used by adjust='max-t', and adjust={adjust!r} "
            "draws nothing. Omit n_draws=."
        )


@Comparison(
    needs="two or more models on the same evaluations",
    target="difference between the models' errors, with the target of the underlying interval",
    guarantee=OF_INTERVAL,
    fits="as the underlying interval",
    reference=f"{BAYLE}; {RELATIVE_STABILITY}",
    models=2,
    of_interval=True,
    needs_points=True,
    takes_scores=True,
    level_options=("by", "over"),
    check=check_compare,
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
    n_draws: int = N_DRAWS,
    rng: Rng = None,
    by: str | None = None,
    missing: Missing = "raise",
) -> Any:
    r"""Test whether models differ, using paired losses.

    The losses of two models on the same evaluation are subtracted (model minus other, so that
    negative is better), and the interval of the chosen method is computed for these differences.
    The target is the difference between the targets of the two models, which for `wald` are the
    average test errors of the trained models. The test statistic is the mean difference divided by
    its standard error.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        Instead of ``other``, the name of the model to which the others are compared. If neither
        is given, all pairs are compared.
    method : str, optional
        The interval that gives the standard error and the distribution of the statistic. The
        default is the choice of `interval` for this log, which respects groups (``"bootstrap_oob"``
        if that method does not support differences), or `refit_corrected` if a cross-validation was
        repeated with different folds (not for metrics). For one partition of points, `wald` with
        the standard error of `refit_corrected` if the models are very similar. ``"union"`` computes
        the interval of each model at level ``1 - alpha / 2`` instead of the interval of the
        difference, and subtracts their limits: ``[L1 - U2, U1 - L2]``. ``"tango"`` gives the score
        test and limits for 0/1 losses of one test set or of folds.
    options : mapping, optional
        Options of that method by name, such as ``{"variance": "within-fold"}`` for `wald`,
        ``{"train_size": 90}`` for `corrected_t` or ``{"test": "f"}`` for `five_by_two`. For
        ``"union"`` those of the interval of each model, and ``"method"``, its name; the default
        is that for differences.
    points : {"crossed", "nested"}, optional
        Whether equal point labels in several sources mean the same point, as for `interval`.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` tests whether the model has the smaller error.
    adjust : {"holm", "bonferroni", "bh", "max-t", None}, optional
        What ``p_adjusted`` controls in multiple comparisons: the family-wise error rate
        (``"holm"``; ``"bonferroni"``, which is more conservative) or the false discovery rate
        (``"bh"``, also called ``"fdr"``). These adjust for all pairs of models in all carried
        cells, such as those of a map. ``"max-t"`` controls the family-wise error rate and uses
        the dependence between the models of a cell, so it adjusts for the pairs of each cell
        separately; only ``"max-t"`` also widens ``lower`` and ``upper``, which then cover all
        differences of a cell simultaneously.
    anytime : bool, optional
        Whether the limits are valid simultaneously at all looks at a growing test set, and for
        any stopping rule: an asymptotic confidence sequence. For one test set, by points
        (`holdout`) or groups (`clustered`); `monitor` looks batch by batch.
    tightest_at : int, optional
        With ``anytime``, the number of points (or groups) at which the limits are tightest,
        chosen before the first look; 500 by default.
    relative : bool, optional
        Whether ``difference``, ``lower``, ``upper`` and ``se`` are percentages of the other model's
        loss: -8 means 8% less. Limits are those of Fieller, for any method.
    over : str, optional
        With ``relative``, a level such as ``"source"`` whose labels are data sets: the geometric
        mean over them of the ratio of mean losses, with equal weights.
    alpha : float, optional
        One minus the level of the intervals.
    n_draws : int, optional
        For ``"max-t"``, the number of draws from the joint distribution.
    rng : int or numpy.random.Generator, optional
        For ``"max-t"`` with several pairs, the seed of these draws; ``attrs["seed"]`` is the one
        that was used. Otherwise nothing is drawn, and a seed has no effect.
    by : str, optional
        A level (or coordinate): one comparison for each of its labels, all with the same method.
        ``"holm"`` and ``"bh"`` adjust for the pairs of all labels together.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference``, ``lower``, ``upper``, ``se`` in the units of the loss, ``statistic``,
        ``p_value``, with several comparisons ``p_adjusted``, then what the method adds and
        ``caution``. A frame is indexed by ``(model, other)``, with ``by`` by ``(label, model,
        other)``; an array has a dimension ``pair`` with these coordinates. A method without a
        standard error gives its own limits, NaN for ``se``, and a p-value if it has a test. For 0/1
        losses, ``attrs["test"]`` names the test.

    Raises
    ------
    LogError
        If the models were evaluated on different points or folds; an unpaired test is never
        substituted. If ``"max-t"`` or a one-sided test is requested with a method whose intervals
        do not use standard errors, ``"max-t"`` with one pair of models in many carried cells,
        ``n_draws`` without ``"max-t"``, or ``"tango"`` with losses other than 0 and 1. With
        ``anytime`` also if the log has folds, which are tested with several models, or if a
        one-sided test or ``"max-t"`` is requested.

    See Also
    --------
    cvstats.best_set : The set of possibly best models.
    cvstats.equivalence : Whether a difference is too small to matter.
    cvstats.power : How many points are needed to detect a difference.
    cvstats.difference : The log of the differences.

    Notes
    -----
    In cross-validation, `wald` is asymptotically exact in the number of points if the *difference*
    of the losses is relatively stable, which means that replacing one training point changes it
    little compared with its spread over points. It is not enough that each learner is stable. If
    both models approach the same limit, as nested models do if the smaller one is correct, the
    spread vanishes as fast as the change, and the coverage of 95% intervals is only 70% to 85% for
    any number of points. If the condition holds, the one-sided test has asymptotic level alpha if
    the errors are equal, and a smaller level if the model is worse.

    Repeated cross-validation shows how much of the variance is missing, and `refit_corrected`
    adds it. With ``method="wald"``, ``caution`` contains ``unstable difference`` if that share is
    large (for moments of more than 50,000 losses: if the means of at least three repetitions have
    a standard deviation above 0.3 standard errors, and ``refit_corrected`` is not the default);
    for one partition of at least 30 points, if the models are so similar that it may be large
    (without ``method`` their interval is widened); and for replace-one logs with individual
    losses, if such a replacement changes the difference by as much. A log without the label may
    still be unstable. In simulations of one partition of 50 to 10,000 points, tests of similar
    models at the 5% level rejected a true null hypothesis in 21% to 30% of logs with
    ``method="wald"``, and in 1% to 5% by default. `corrected_t` and `nested_cv` do not need the
    condition, nor does ``"union"``, which is valid whenever both single-model intervals are; but it
    ignores the pairing, and is many times wider if the models are similar.

    For metrics with a bounded range, such as AUC and F1, and for 0/1 losses of random splits (and
    of repetitions, if two models disagree on fewer than 25 points, or averaged over fixed sources,
    if they disagree on about 10 points or fewer), the limits and the test also account for one
    pseudo-error of each model, the largest change by a single prediction, which ``se`` does not
    contain: ``statistic`` is then smaller than ``difference / se``. A named ``method`` omits it.

    0/1 losses with each point evaluated once are tested as in `mcnemar` if two models disagree on
    fewer than 25 points: the p-value is that of the exact test, and the limits are Tango's score
    limits, extended to 0 if the exact test is not significant. Such pairs get the label ``few
    discordant points``, even if normal tests are kept: with repetitions, with ``"max-t"``, and with
    an explicit method. With repetitions, one pseudo-error of each model is added, as above.
    ``"tango"`` uses McNemar's score test for any number of discordant points, and averages counts
    over repetitions, with n the number of points.

    ``"max-t"`` draws the models' means from the normal distribution with the standard errors of
    all differences (before those of similar models are widened), and compares each statistic with
    the largest statistic of each draw, which is transformed to Student's t with the degrees of
    freedom of the method (n - 1 if it uses the normal distribution, as its standard errors are
    still estimates). With fewer degrees of freedom than twice the number of models, such as few
    groups, limits are Šidák's if those are wider.
    ``p_adjusted <= alpha`` if and only if the interval excludes 0. With many models, few points and
    skewed differences, too many differences are still significant; ``caution`` then contains
    ``too many models``. ``"holm"``, ``"bonferroni"`` and ``"bh"`` adjust ``p_value``, which is that
    of a normal distribution for most methods, and thus too small in the tails. Without any
    difference, they found one in 13% of logs of 30 points and 20 models, and on maps of 1,000
    cells in 32%, 20%, 10% and 6% for 30, 50, 100 and 300 points; all of these are flagged, too.

    With n points (or groups) and a rate r that is chosen before the first look, limits with
    ``anytime`` are

    .. math::

        \bar d \pm \mathrm{se} \sqrt{\frac{2 (n r + 1)}{n r}
            \log\frac{\sqrt{n r + 1}}{\alpha}} ,

    and ``p_value`` is the alpha at which they end at 0. Looking after every 20 of 2,000 points
    and stopping at the first significant difference leads to a false positive in 30% to 39% of
    cases with the usual interval, and in 1% to 4% with these limits. The cost is a width of 1.55
    to 1.7 times the usual one. The points must come in random order. Below 30 points (or groups),
    and for 0/1 losses also below 25 discordant points, the limits are infinite and ``caution``
    contains ``no limits yet``; for other losses it contains ``early look`` below 100.

    With ``relative`` and mean losses A and B, the estimate is ``100 (A / B - 1)``. Its limits are
    the r at which the interval of the mean of ``a - (1 + r) b``, by the same method, ends at 0
    (Fieller), and for 0/1 losses with an exact test at least those of the difference divided by B.
    They contain 0 if and only if the interval of the difference does, and ``p_value`` is that of
    the difference. If B is not significantly different from 0, no interval exists, and
    ``caution`` contains ``reference near zero``. For gamma losses of 20, 50 and 200 points 95%
    limits covered 97%, 95% and 95%, and those of the delta method 91%, 93% and 94%. ``over`` uses
    the t interval of the log ratios of at least five data sets.

    Without ``reference``, and with ``"max-t"``, time and memory grow with the square of the number
    of models, because every pair is compared.

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
                            difference lower upper p_adjusted
    model             other
    random_forest     ridge        182   -69   433      0.311
    gradient_boosting ridge        143  -119   406      0.311
    """
    given = read_options(method, options)
    looked_at = read_tightest_at(tightest_at) if anytime else None
    lazy = has_lazy_losses(losses, other)
    across = adjust in ("holm", "bonferroni", "bh")  # all carried cells together
    run = partial(
        compute_comparison, method=method, options=given, alternative=alternative,
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
    else:
        run, example = partial(cut_differences, run), partial(cut_differences, example)
    test: dict[str, Any] = {} if anytime else {"alpha": alpha, "alternative": alternative}
    table = compare_pairs(
        losses, other, reference, missing, run, by=by, all_pairs=adjust == "max-t",
        levels=levels, example=example,
        finish=partial(adjust_tests, adjust=adjust, **test) if across else None,
        reads_losses=partial(
            reads_lazy_losses_of_ratio if relative else reads_lazy_losses, method, given
        ),
        prepare=None if points is None else partial(take_points, points=points),
    )  # fmt: skip
    cells = table["difference"].size  # each cell has a covariance of its own
    if adjust == "max-t" and "p_adjusted" not in table and cells > 1:
        raise LogError(
            "adjust='max-t' adjusts for several pairs of models within each carried cell, but "
            f"this log has one pair in each of {cells:,} cells. Use adjust='holm' or "
            "adjust='bh', which adjust for all cells together."
        )
    if lazy and method is None and "test" in table.attrs:
        table.attrs["test"] = SOME_EXACT
    if "n_draws" in table.attrs:
        table.attrs["n_draws"] = n_draws
    if relative and hasattr(table, "data_vars"):
        for name in ("difference", "lower", "upper", "se"):
            table[name].attrs["units"] = "percent"
    if not (lazy and across):
        return table
    return adjust_lazily(table, partial(adjust_p_values, adjust=str(adjust), **test))


DRAWS_OF_EXAMPLE = 999
"""Number of draws used only to find the form of a lazy result."""


def compute_comparison(
    log: Log,
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

    ``tightest_at`` is None for limits of a single look.
    """
    grouped = log.design.by is not None
    if grouped and (tightest_at is not None or adjust == "max-t"):
        raise DifferentGroups("repeated looks and maxima are computed for one group at a time.")
    if tightest_at is not None:
        result = compute_anytime(
            log, method=method, options=options, alpha=alpha, tightest_at=tightest_at
        )
        return show_own_errors(result)
    base = difference_interval(log, method, options, alpha)
    found = None if grouped else find_discordance(log, base)  # groups have losses other than 0, 1
    if found is not None and method is None:
        base = widen_few(base, found)
    result = replace(compute_tests(base, alternative=alternative, alpha=alpha), method="compare")
    if found is not None:
        if method == "tango":
            result = score_tests(result, found, alternative=alternative, alpha=alpha)
        # Simultaneous limits need one covariance of all models, so max-t keeps normal tests.
        elif method is None and adjust != "max-t" and found.repetitions == 1:
            result = take_exact_tests(result, found, alternative=alternative, alpha=alpha)
        result = result.add_caution(Caution.DISCORDANT_FEW, found.few)
    if adjust == "max-t" and len((pairs := log.pair_numbers())[0]) > 1:
        everything = log.with_all_pairs()
        # The wider errors of similar models are bounds, not those of a joint distribution.
        plain = method is None and base.attrs["interval_method"] == "wald" and not log.design.metric
        wider = plain and base.has_caution(Caution.UNSTABLE_DIFFERENCE).any()
        if wider or log.values.width < everything.values.width:
            base = difference_interval(everything, "wald" if plain else method, options, alpha)
            found = find_discordance(everything, base)
            if found is not None and method is None:
                base = widen_few(base, found)
        result = adjust_max_t(
            result, base, pairs, len(log.columns_by_cell()),
            alternative=alternative, alpha=alpha, n_draws=n_draws, seed=seed,
        )  # fmt: skip
    return show_own_errors(result) if OWN_ERROR in result.columns else result


def cut_differences(compute: Callable[[Log], Result], log: Log) -> Result:
    """Compute differences, and cut finite limits at the largest that the losses can have.

    Tests do not change, because the limits still contain 0 if they did.
    """
    result, facts, size = compute(log), log.metadata, np.array(np.inf)
    limits = np.abs([result.columns["lower"], result.columns["upper"]])
    several = "metrics" in facts or (log.pairs is not None and "kind" in facts)
    if several or not ((limits > 1) & np.isfinite(limits)).any():  # no range is smaller
        return result
    if "range" in facts:
        size = np.ptp(facts["range"])
    elif log.design.by is None and log.known_proportions:
        size = np.where(log.zero_one_pairs(), 1.0, np.inf)
    columns = dict(result.columns)
    for side in ("lower", "upper"):
        cut = np.clip(columns[side], -size, size)
        columns[side] = np.where(np.isinf(columns[side]), columns[side], cut)
    return replace(result, columns=columns)


def compute_tests(base: Result, *, alternative: str, alpha: float) -> Result:
    """Convert an interval of mean differences to tests of no difference.

    Interval and test agree: the interval excludes 0 if ``p_value < alpha``. A method without a
    symmetric standard error keeps its own limits, and its own test if it has one.
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
    return replace(base, columns={**tests, **columns}, attrs=attrs)


def take_limits_of_differences(base: Result, log: Log, alpha: float) -> Result:
    """Replace the limits of a log that `difference` made by those that `compare` has by default."""
    if not has_standard_errors(base):
        return base
    wider, found = base, None
    if is_ratio(log.metadata) and base.method != OF_SPLITS:
        wider = test_numerators(base, log, alpha)
    if log.design.metric or base.method == OF_SPLITS:
        wider = add_pseudo_errors(wider, log)
    if log.known_proportions:
        if log.design.by is not None:
            raise DifferentGroups("discordant points are counted for one group at a time.")
        named = replace(base, attrs={**base.attrs, "interval_method": base.method})
        found = find_discordance(log, named)
    few = found is not None and bool(found.few.any())
    if wider is base and not few:
        return base
    if found is not None:
        wider = widen_few(wider, found)
    result = compute_tests(wider, alternative="two-sided", alpha=alpha)
    if found is not None:
        if found.repetitions == 1:
            result = take_exact_tests(result, found, alternative="two-sided", alpha=alpha)
        result = result.add_caution(Caution.DISCORDANT_FEW, found.few)
    result = show_own_errors(result)
    columns = {name: result.columns.get(name, values) for name, values in base.columns.items()}
    attrs = dict(result.attrs)
    test = str(attrs.pop("test", "wald"))
    if "interval" in attrs:
        attrs["interval"] = {"exact": "tango", SOME_EXACT: SOME_TANGO}.get(test, test)
    return replace(
        base, columns=columns, caution=result.caution, attrs=attrs, allows_for=result.allows_for
    )


def keep_own_tests(base: Result, *, alternative: str) -> Result:
    """Keep limits, statistic and p-value of a method without standard errors."""
    if alternative != "two-sided":
        raise LogError(
            f"alternative={alternative!r} needs a standard error, but {base.method} with these "
            "options has none. Use alternative='two-sided', or another method."
        )
    columns = dict(base.columns)
    estimate = columns.pop("estimate")
    tests = {name: columns.pop(name) for name in ("lower", "upper", "se")}
    for name in ("statistic", "p_value"):
        tests[name] = columns.pop(name, np.full_like(estimate, np.nan))
    attrs = {**base.attrs, "alternative": alternative}
    result = replace(base, columns={"difference": estimate, **tests, **columns}, attrs=attrs)
    return result.add_caution(Caution.NO_TEST, np.isnan(tests["p_value"]) & ~np.isnan(estimate))


# --- limits that are valid at every look ----------------------------------------------------------


EVERY_LOOK_REFERENCE = (
    "Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52(6), "
    "2613-2640, arXiv:2103.06476"
)


UNITS_OF_LOOKS = {"holdout": "n_points", "clustered": "n_clusters"}
"""The methods that support repeated looks, and their sampling units."""


TIGHTEST_AT = 500
"""Default number of units at which limits are tightest."""


FEWEST_UNITS = 30
"""Minimum number of units for finite limits."""


EARLY = 100
"""Number of units below which coverage is too low if differences are skewed."""


def check_anytime(options: Mapping[str, Any]) -> None:
    """Reject options of `compare` that anytime limits do not have."""
    method, alternative = options["method"], options["alternative"]
    given = options["options"] or {}
    if method not in (*UNITS_OF_LOOKS, None):
        raise LogError(
            "anytime=True requires points or groups of one test set, and does not support "
            f"method={method!r}. Use method='holdout' or method='clustered'."
        )
    if isinstance(given.get("by"), (tuple, list)):
        raise LogError(
            f"anytime=True supports one sampling level, but by={given['by']!r} names two. Pass "
            "one level."
        )
    if "interval" in given:
        raise LogError(
            f"options={dict(given)!r} selects limits for a single look, but anytime=True has "
            "its own. Omit it."
        )
    if alternative != "two-sided":
        raise LogError(
            f"anytime=True has two-sided limits, but alternative={alternative!r} is one-sided. "
            "Omit it: the sign of the limits shows which model is better."
        )
    if options["adjust"] == "max-t":
        raise LogError(
            "adjust='max-t' is not available with anytime=True, which has no joint distribution "
            "of all looks. Use adjust='holm'."
        )
    read_tightest_at(options["tightest_at"])


def read_tightest_at(number: int | None) -> int:
    """Read the number of units at which limits are tightest."""
    return TIGHTEST_AT if number is None else whole_number("tightest_at", number, FEWEST_UNITS)


def mixture_rate(tightest_at: float, alpha: float) -> float:
    """Choose the rate with which limits are tightest at a number of units."""
    return float(-special.lambertw(-(alpha**2) / math.e, -1).real - 1) / tightest_at


def sequence_multiplier(n: FloatArray | float, rate: float, alpha: float) -> FloatArray:
    """Return the half-width of the limits in standard errors, by (14)."""
    grown = np.asarray(n, dtype=np.float64) * rate
    return np.sqrt(2 * (grown + 1) / grown * np.log(np.sqrt(grown + 1) / alpha))


def sequence_p_values(statistic: FloatArray, n: FloatArray, rate: float) -> FloatArray:
    """Solve (14) for the alpha at which the limits end at 0, at the same rate."""
    grown = n * rate
    found: FloatArray = np.minimum(
        np.sqrt(grown + 1) * np.exp(-(statistic**2) * grown / (2 * (grown + 1))), 1.0
    )
    return found


def compute_anytime(
    log: Log,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alpha: float,
    tightest_at: int,
) -> Result:
    """Test differences by limits that are valid at all looks simultaneously."""
    chosen = choose_test_set(log, method)
    log = replace(log, metadata={**log.metadata, EVERY_LOOK: True})
    base = difference_interval(log, chosen, options, alpha)
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    for name in ("lower", "upper", "df"):
        columns.pop(name, None)
    n = columns[UNITS_OF_LOOKS[chosen]].astype(np.float64)
    rate = mixture_rate(tightest_at, alpha)
    zero_one, few = find_few_discordant(log)
    too_early = (n < FEWEST_UNITS) | (se == 0) | few
    reach = np.where(too_early, np.inf, sequence_multiplier(n, rate, alpha) * se)
    statistic = np.divide(estimate, se, out=np.zeros_like(se), where=se != 0)
    tests = {
        "difference": estimate,
        "lower": estimate - reach,
        "upper": estimate + reach,
        "se": se,
        "statistic": statistic,
        "p_value": np.where(too_early, 1.0, sequence_p_values(statistic, n, rate)),
    }
    missing = np.isnan(estimate)
    for name in ("lower", "upper", "p_value"):
        tests[name] = np.where(missing, np.nan, tests[name])
    attrs = {
        **base.attrs,
        "alternative": "two-sided",
        "alpha": alpha,
        "anytime": True,
        "tightest_at": tightest_at,
        "guarantee": "valid simultaneously at all looks and for any stopping rule, as the "
        f"number of {'points' if chosen == 'holdout' else 'groups'} at the first look grows, "
        "if these are evaluated in random order",
        "reference": EVERY_LOOK_REFERENCE,
    }
    attrs.pop("interval", None)
    result = Result("compare", {**tests, **columns}, base.caution, attrs)
    result = result.drop_caution(Caution.ZERO_VARIANCE)
    result = result.add_caution(Caution.NO_LIMITS_YET, too_early & ~missing)
    early = ~too_early & ~zero_one & (n < EARLY)
    return result.add_caution(Caution.EARLY_LOOK, early & ~missing)


def choose_test_set(log: Log, method: str | None) -> str:
    """Choose the interval of one test set, whose models stay the same at all looks."""
    if log.planned.has("fold"):
        raise LogError(
            "anytime=True requires models that stay the same at every look, but this log has "
            f"{log.planned.number('fold'):,} folds, each used to test a different model. Expected "
            f"one test set. Select one fold: {log.design.take('fold')}."
        )
    chosen = default_method(log) if method is None else method
    if method is None and takes_two_ways(log):
        raise LogError(
            "anytime=True supports one sampling level, but in this log the same points occur in "
            "several sources. Use a log with one of the two, such as the mean of each point; or "
            "points='nested' if each source numbers its points separately; or method='clustered' "
            "for these points only."
        )
    if chosen not in UNITS_OF_LOOKS:
        raise LogError(
            "anytime=True requires points or groups of one test set, but the default interval "
            f"of this log is {chosen}. Use method='holdout' or, for sources, method='clustered'."
        )
    return chosen


def find_few_discordant(log: Log) -> tuple[MaskArray, MaskArray]:
    """Find pairs with 0/1 losses, and those of them with too few discordant points.

    The squares of -1, 0 and 1 sum to the number of points on which two models disagree, here
    averaged over repetitions.
    """
    known = log.zero_one_pairs()
    if not known.any():
        return known, known
    cells = log.moments(repetition_level(log.design))
    return known, known & (cells.squares.mean(axis=0) < FEW - 0.5)


# --- differences as percentages -------------------------------------------------------------------

FLEMING = (
    "Fleming and Wallace (1986), Communications of the ACM 29(3), 218-221, doi:10.1145/5666.5673"
)

QUADRATIC = ("clustered", "corrected_t", "cv_t", "holdout", "naive", "out_of_source", "wald")
"""Methods whose variance of ``a - r b`` follows from those of a, b and a - b for every r."""

FEWEST_DATA_SETS = 5
"""Minimum number of data sets for a geometric mean."""

STEPS = 50
"""Maximum number of steps of the Illinois method, and of doublings before."""

CLOSE = 1e-13
"""Relative step size at which the iteration stops."""


Widths = Callable[[FloatArray], tuple[FloatArray, Any]]
"""Maps ratios to standard errors and degrees of freedom."""


def refuse_scores(log: Log) -> None:
    """Reject losses whose ratio is meaningless or misleading."""
    several = log.metadata.get("metrics")
    for part in several.values() if isinstance(several, Mapping) else [log.metadata]:
        turned = part.get("orientation") if isinstance(part, Mapping) else None
        name = part.get("metric") if isinstance(part, Mapping) else None
        if turned == "1 - score":
            error = "the error rate: loss='zero_one'" if name == "accuracy" else "an error"
            raise LogError(
                f"relative=True computes a ratio of losses, but this log has 1 - {name}, whose "
                f"ratio is not that of {name}. Use relative=False, or {error}."
            )
        if turned == "value":
            raise LogError(
                f"relative=True computes a ratio of losses, but {name} has a target value: "
                "smaller is not better. Use relative=False."
            )
        if turned == "-score":
            has = f"{name} has no zero, so no ratio" if name in STRENGTHS else (
                f"this log has minus {name}, whose ratio is meaningless"
            )  # fmt: skip
            raise LogError(
                f"relative=True is a ratio of losses, and {has}. Expected losses of 0 or more. "
                f"Use relative=False."
            )
    if log.without_pairs().of_differences:
        raise LogError(
            "relative=True computes a ratio of losses, but this log has differences. Pass the "
            "log from which they were computed."
        )


def refuse_negative(log: Log, means: FloatArray) -> None:
    """Reject negative losses, and a reference whose losses are all 0."""
    smallest = means[np.concatenate(log.sides)]
    sample = take_sample(log)
    if sample is not None and not log.design.metric:
        tables = sample.log.losses.tables  # NaN if carried cells lack evaluations
        least = [float(np.fmin.reduce(table, axis=None, initial=0)) for table in tables]
        smallest = np.append(smallest, least)
    if (smallest < 0).any():
        raise LogError(
            "relative=True computes a ratio of losses, but one loss is "
            f"{np.nanmin(smallest):.4g}. Expected nonnegative losses. Use relative=False."
        )
    reference = means[log.sides[1]]
    if (reference == 0).any() and not (reference > 0).any():
        name = log.name(int(log.sides[1][0]))
        raise LogError(
            f"all losses of {name} are 0, so the relative difference is undefined. Expected a "
            "reference with a positive mean loss. Use relative=False, or another reference=."
        )


def reads_lazy_losses_of_ratio(method: str | None, options: Mapping[str, Any], log: Log) -> bool:
    """Whether the ratio needs all lazy losses of a carried cell at once."""
    chosen = default_difference(log) if method is None else method
    return chosen not in QUADRATIC or reads_lazy_losses(method, options, log)


def compute_relative(
    run: Callable[..., Result],
    log: Log,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alternative: str,
    adjust: str | None,
    alpha: float,
) -> Result:
    """Express the test of a difference as a percentage of the reference's loss."""
    refuse_scores(log)
    asked = {"method": method, "options": options}
    if method is None:
        method, options = default_difference(log), recommend_options(log)
    each = find_method(method).run(log.without_pairs(), alpha=alpha, **options)
    require_standard_errors("relative=True needs standard errors", each)
    rows = -1, log.losses.width
    mean, variance = each.columns["estimate"].reshape(rows), each.columns["se"].reshape(rows) ** 2
    for row in mean:
        refuse_negative(log, row)
    result = run(log, **asked)
    d, se = result.columns["difference"], result.columns["se"]
    a, b, va, vb = (
        values[:, side].reshape(-1) for values in (mean, variance) for side in log.sides
    )
    down, up = half_widths(alternative, alpha, degrees_of_each(result))
    own = confidence_limits(d, (1 + 1e-9) * se, down, up)
    outside = (result.columns["lower"] < own[0]) | (result.columns["upper"] > own[1])
    if adjust == "max-t":
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = (d - result.columns["lower"]) / se, (result.columns["upper"] - d) / se
        down, up = (np.where(np.isnan(w), one, w) for w, one in zip(wide, (down, up), strict=True))
    root = is_root(log.metadata)  # tested by the difference of the squares
    if root:
        d, se, va, vb = d * (a + b), se * (a + b), 4 * a**2 * va, 4 * b**2 * vb
        b = b**2
    vd, ratio = se**2, d / np.where(b > 0, b, np.nan)
    shared = (va - vb - vd) / 2  # the covariance of a - b with b
    lower, upper = (
        np.where(
            np.isinf(reach),
            sign * np.inf,
            fieller(d, b, (vd, vb), shared, np.where(np.isinf(reach), 0.0, reach))[at],
        )
        for at, sign, reach in ((0, -1, down), (1, 1, up))
    )
    if method not in QUADRATIC or is_several(options.get("by")):
        widths = widths_of_ratio(log, method, {**options, "alpha": alpha})
        solve = partial(find_end, widths, d, b, alternative=alternative, alpha=alpha)
        fixed = adjust == "max-t"
        lower = solve(lower, down if fixed else None, -1)
        upper = solve(upper, up if fixed else None, 1)
    few = result.has_caution(Caution.DISCORDANT_FEW)
    exact = few & (result.attrs.get("test") in ("exact", SOME_EXACT))
    if adjust != "max-t" and (exact | outside).any():  # limits that do not follow from se
        exact = (b > 0) & (exact | outside)
        low, high = (result.columns[side] / np.where(exact, b, 1) for side in ("lower", "upper"))
        lower = np.where(exact, np.minimum(lower, np.maximum(low, -1)), lower)
        upper = np.where(exact, np.maximum(upper, high), upper)
    lower, upper = (np.where(np.isnan(lower + upper), np.nan, limit) for limit in (lower, upper))
    spread = np.sqrt(np.maximum(vd - 2 * ratio * shared + ratio**2 * vb, 0)) / b
    if root:
        ratio, lower, upper = (np.sqrt(np.maximum(1 + x, 0)) - 1 for x in (ratio, lower, upper))
        spread = spread / (2 * (1 + ratio))
    columns = {
        **result.columns, "difference": 100 * ratio, "lower": 100 * lower, "upper": 100 * upper,
        "se": 100 * spread,
    }  # fmt: skip
    attrs = {**result.attrs, "relative": "percent of the loss of the other model"}
    attrs["reference"] = f"{FIELLER}; {attrs['reference']}"
    attrs["target"] = f"relative {attrs['target']}"
    result = replace(result, columns=columns, attrs=attrs)
    return result.add_caution(Caution.REFERENCE_NEAR_ZERO, np.isnan(lower) & ~np.isnan(d))


def widths_of_ratio(log: Log, method: str, options: Mapping[str, Any]) -> Widths:
    """Return a function that computes standard errors of ``a - (1 + r) b``, one r for each pair."""
    if log.design.by is not None:
        raise DifferentGroups("ratios are computed for one group at a time.")
    if is_root(log.metadata) or not log.in_memory:
        raise NeedsLosses(
            f"relative=True with {method} needs individual losses in memory. Use another "
            f"method, one of {', '.join(QUADRATIC)}."
        )
    record, every = find_method(method), (0, log.design.size)
    left, right = (
        np.nan_to_num(np.stack([log.losses.column(int(j), *every) for j in side], axis=1))
        for side in log.sides  # masked cells, which are NaN, are not used
    )
    pairs = np.arange(left.shape[1])

    def widths(ratios: FloatArray) -> tuple[FloatArray, Any]:
        both = LossColumns((left, np.nan_to_num((1 + ratios) * right)))
        scaled = replace(log, losses=both, pairs=(pairs, pairs + len(pairs)))
        found = record.formula(scaled, **{**record.defaults, **options})
        return found.columns["se"], degrees_of_each(found)

    return widths


def find_end(
    widths: Widths,
    d: FloatArray,
    b: FloatArray,
    start: FloatArray,
    reach: Any,
    side: int,
    alternative: str,
    alpha: float,
) -> FloatArray:
    """Find the ratios at which the interval of ``d - r b`` ends at 0, by the Illinois method.

    ``start`` are approximate ends, and ``side`` is -1 for lower ones. ``reach`` is None if the
    method's own quantile is used, which may depend on the ratio. NaN if the interval contains 0 for
    all ratios on that side.
    """
    known: MaskArray = np.isfinite(start) & (b > 0)
    if not known.any():
        return start

    def excess(r: FloatArray) -> FloatArray:
        """Compute how far the interval extends beyond 0, which is negative outside."""
        se, df = widths(np.where(known, r, 0.0))
        c = half_widths(alternative, alpha, df)[side > 0] if reach is None else reach
        return np.asarray(c * se + side * (d - r * b))

    middle = d / np.where(known, b, 1)
    inner, outer = middle, middle + side * np.abs(start - middle)
    within, beyond = excess(inner), excess(outer)
    for _ in range(STEPS):
        far = known & (beyond > 0)
        if not far.any():
            break
        inner, within = np.where(far, outer, inner), np.where(far, beyond, within)
        outer = np.where(far, 2 * outer - middle, outer)
        beyond = excess(outer)
    known_end, r = known & (beyond <= 0), outer
    for _ in range(STEPS):
        before = r
        with np.errstate(divide="ignore", invalid="ignore"):
            r = outer - beyond * (outer - inner) / (beyond - within)
        r = np.where(beyond == within, outer, r)
        value = excess(r)
        inside = value > 0
        again = inside == (inner == before)  # the same side twice: halve the other value
        inner, outer = np.where(inside, r, inner), np.where(inside, outer, r)
        within, beyond = (
            np.where(inside, value, np.where(again, within / 2, within)),
            np.where(inside, np.where(again, beyond / 2, beyond), value),
        )
        if (np.abs(r - before) <= CLOSE * (1 + np.abs(r)))[known_end].all():
            break
    return np.where(known_end, r, np.where(known, np.nan, start))


def compute_geometric_mean(log: Log, *, over: str, alternative: str, alpha: float) -> Result:
    """Average ratios of mean losses over data sets: Student's t on their logarithms."""
    refuse_scores(log)
    if log.design.by is not None:
        raise DifferentGroups("data sets are averaged for one group at a time.")
    if over not in log.design.levels:
        raise LogError(
            f"the log has no level {over!r}. Expected over= to name the level of the data "
            f"sets.{nearest(over, log.design.levels)}"
        )
    cells = log.without_pairs().moments((over,))
    number = len(cells.count)
    if number < FEWEST_DATA_SETS:
        raise LogError(
            f"over={over!r} averages over data sets, but this log has {number}. Expected at "
            f"least {FEWEST_DATA_SETS} labels of {over!r}. Omit over=."
        )
    mean = cells.location
    low = np.argwhere(mean[:, np.concatenate(log.sides)] <= 0)
    if len(low):
        label = spelled(cells.labels[0][int(cells.codes[low[0][0], 0])])
        raise LogError(
            f"over={over!r} needs mean losses above 0, but that of {over} {listed([label])} is "
            "not. Expected positive mean losses in every data set. Drop that one, or omit over=."
        )
    logs = np.log(np.divide(*(mean[:, side] for side in log.sides)))
    attrs = {
        "interval_method": "geometric_mean",
        "relative": f"percent: geometric mean over {over} of the ratio of mean losses",
        "target": "geometric mean of the ratio of mean losses over data sets of one population",
        "guarantee": "exact for independent data sets whose log ratios are normally distributed",
        "reference": FLEMING,
    }
    base = interval(
        "compare", logs.mean(axis=0), logs.var(axis=0, ddof=1) / number, origin=0.0, alpha=alpha,
        df=number - 1, extra={"n_data_sets": number}, attrs=attrs,
    )  # fmt: skip
    result = compute_tests(base, alternative=alternative, alpha=alpha)
    columns, ratio = dict(result.columns), np.exp(result.columns["difference"])
    for name in ("difference", "lower", "upper"):
        columns[name] = 100 * np.expm1(columns[name])
    columns["se"] = 100 * ratio * columns["se"]
    return replace(result, columns=columns)


# --- the log of differences -----------------------------------------------------------------------


@Comparison(
    needs="two or more models on the same evaluations",
    target="paired differences of two models, as a log",
    guarantee="none by itself; see the guarantee of the interval computed from it",
    fits="as the log has",
    reference=f"{BAYLE}; {RELATIVE_STABILITY}",
    models=2,
    needs_losses=True,
    takes_lazy_losses=True,
).of_any_kind
def difference(losses: Losses, other: Losses | None = None, *, reference: Hashable = None) -> Any:
    """Compute the paired differences between the losses of two models.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        Instead of ``other``, the name of the model to subtract from the others. If neither is
        given, all pairs.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A loss log with the levels of ``losses``; negative values mean that the model is better.
        All pairs of a frame have columns ``(model, other)``, those of an array a dimension
        ``pair``. Its ``attrs`` are those of the log, or those that are equal in both logs: whether
        it has scores of splits, the training sizes, the metric and its direction; and
        ``"difference_from"``, the reference.

    Raises
    ------
    LogError
        If the two logs differ in points or folds (the first ones are named) or in their content
        (scores or losses, the metric, the loss, units), or there is only one model.

    See Also
    --------
    cvstats.compare : The test of the same differences.
    cvstats.heterogeneity : Whether a difference varies between groups.

    Notes
    -----
    You can pass this log to every method that accepts a log. The estimate is then the difference in
    error. ``attrs["kind"]`` is ``"differences"``, and the guarantee of an interval is subject to
    the condition stated in `compare`. `interval` and `summary` have the same limits as `compare`,
    also for bounded metrics, ratios, and models that were refitted in several repetitions, and for
    0/1 losses with few discordant points or of random splits. `compare` also widens the limits for
    nearly identical models in one partition, tests the RMSE by the mean squared errors, and
    accounts for how much one cluster can change a bounded metric. A log of differences lacks the
    losses of both models, which these need.

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
        gaps = subtract_logs(losses, other)
    else:
        by = "metric" if len(names_of_metrics(losses) or []) > 1 else None
        choose_pairs(read(losses, by=by), reference)
        gaps = every_pair(losses) if reference is None else difference_from(losses, reference)
        gaps.attrs = facts_of_differences(losses.attrs, reference)
    of = {} if reference is None else {DIFFERENCE_FROM: reference}
    put_attrs(gaps, {**gaps.attrs, **DIFFERENCES, **of})
    return gaps
