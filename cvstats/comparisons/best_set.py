"""The set of possibly best models: cross-validation with confidence, from second moments.

Lei (2020), doi:10.1080/01621459.2019.1672556. Given the log, the Gaussian multiplier bootstrap
of the paper draws the largest coordinate of a normal vector whose covariance is known: that of
the centered losses. It is drawn here directly, once for all models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._adjust import (
    check_draws,
    count_leads,
    critical_value,
    flag_few_points,
    normal_quantile,
    student_quantile,
)
from cvstats.comparisons._pairs import (
    ROUNDING,
    advise_on_refits,
    average_repetitions,
    default_difference,
    default_method,
    difference_interval,
    loss_magnitude,
    one_model,
    refuse_targets,
    weights_of,
)
from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import Cells
from cvstats.core.folds import (
    count_folds,
    fold_levels,
    repeats_test_set,
    repetition_level,
    tally,
)
from cvstats.core.reduce import cross_products
from cvstats.core.results import Result, is_count
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, is_number
from cvstats.intervals import find_method
from cvstats.intervals._limits import averages_sources
from cvstats.intervals._method import (
    REFITS,
    RELATIVE_STABILITY,
    Comparison,
    flag_serial_dependence,
    group_residuals,
)
from cvstats.intervals._requirements import partition, recommend_options
from cvstats.intervals._stability import ALIKE, RELATIVELY_STABLE, find_unstable, repeats_folds
from cvstats.intervals.clustered import two_way_residuals
from cvstats.intervals.ordered import average_times, transform_cosines
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses, Table
from cvstats.log.loss_checks import find_serial_dependence, order_times
from cvstats.log.read import read
from cvstats.options import Missing, Rng, check_rng, seed_of

NEARLY_EQUAL = 1e-6
"""Models are subtracted directly if their difference is below this share of their spread."""

SMALL_FOLD = 20
"""Points in a fold below which centering removes a relevant share of the variance."""

SINGLE_POINTS = (
    "center='fold' needs at least two points in each fold, but this log has folds of one point "
    "(leave-one-out?). Use center='global'."
)

Numbers: TypeAlias = dict[str, NDArray[np.generic]]
Residuals: TypeAlias = Callable[[Log], tuple[FloatArray, FloatArray]]
"""Scaled residuals of groups for pairs of models, and the means."""
CellLeads: TypeAlias = tuple[IntArray, FloatArray, FloatArray, IntArray]
"""Columns, sums of squares of differences, means and twins of a carried cell."""


def find_problem(log: Log) -> str | None:
    """Explain why the default centering does not apply, if folds have one point."""
    if find_method(default_method(log)).of_groups or count_folds(log.design) == 1:
        return None
    smallest = tally(log.design, *fold_levels(log.design)).count.min()
    return SINGLE_POINTS if smallest < 2 else None


@Comparison(
    requires=partition,
    of_losses=find_problem,
    needs="one test set or a K-fold partition, repeated or not, and at least two models",
    models=2,
    target="the models with the smallest average test error of those trained in this "
    "cross-validation",
    guarantee="contains each best model with probability at least 1 - alpha as the number of "
    f"points grows, {RELATIVELY_STABLE}; for one test set, if points are independent",
    fits="K for each model and repetition",
    reference="Lei (2020), JASA 115(532), 1978-1997, doi:10.1080/01621459.2019.1672556; "
    f"{RELATIVE_STABILITY}",
    needs_losses=True,
)
def best_set(
    losses: Losses,
    *,
    alpha: float = 0.05,
    center: Literal["fold", "global"] = "fold",
    method: Literal["holdout", "wald", "clustered", "out_of_source"] | None = None,
    n_draws: int = 10_000,
    rng: Rng = None,
    screening: float | None = None,
    missing: Missing = "raise",
) -> Table:
    r"""Find the set of models that could be the best, by cross-validation with confidence.

    The target is the set of models with the smallest average test error among the models trained in
    this cross-validation. For each model, the null hypothesis is that no other model has a smaller
    error. The test statistic is the largest standardized difference between its mean loss and the
    mean loss of another model. The distribution of this maximum is simulated from a normal
    distribution with the covariance matrix of the losses.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A test set or a K-fold partition, repeated or not, with a column for each model. Any unit.
    alpha : float, optional
        One minus the level: a best model stays in the set with probability ``1 - alpha``.
    center : {"fold", "global"}, optional
        Whether A is centered at the mean of each fold or at the overall mean. The first requires
        two points in each fold. Ignored if sources are the sampling unit.
    method : {"holdout", "wald", "clustered", "out_of_source"}, optional
        The sampling unit: points (`holdout` for one test set, `wald` for folds), or sources
        (``"clustered"``, ``"out_of_source"``). The default is the choice of `interval` for this
        log: sources, unless folds split them.
    n_draws : int, optional
        Number of draws of g, shared by all models.
    rng : int or numpy.random.Generator, optional
        The seed of the draws; ``attrs["seed"]`` is the one that was used.
    screening : float, optional
        A level such as 0.005 (below ``alpha``). Clearly worse models then get this p-value, and
        models far behind m are excluded from the distribution of T_m. It matters little unless
        there are many noisy bad models.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        For each model ``estimate`` (mean loss), ``p_value`` and ``in_set`` (``p_value >
        alpha``); ``lower_rank`` and ``upper_rank``, simultaneous limits for its true rank at
        level ``1 - alpha``; ``statistic`` (T_m) and ``caution``. ``n_points``, ``n_folds`` and
        ``n_repetitions`` are in ``attrs``, or variables if they vary between carried cells.

    Raises
    ------
    LogError
        If the models were evaluated on different points, the log is not a partition, or a fold
        of one point cannot be centered.

    See Also
    --------
    cvstats.compare : The differences themselves, with intervals.
    cvstats.equivalence : Whether a model is as good, within a margin.
    cvstats.nemenyi : Many models over many data sets.

    Notes
    -----
    With A the cross products of the centered losses, and g drawn from N(0, A / (n - 1)), the
    statistic of model m and a draw of it are

    .. math::

        T_m = \max_j \frac{\sqrt n\,(\mathrm{mean}_m - \mathrm{mean}_j)}{\sigma_{mj}}, \qquad
        T_m^* = \max_j \frac{g_m - g_j}{\sigma_{mj}}, \qquad
        \sigma_{mj}^2 = \frac{A_{mm} + A_{jj} - 2 A_{mj}}{n - 1} .

    Because these variances are estimated, T_m is first transformed from Student's t with n - 1
    degrees of freedom to the normal distribution.

    The set contains each best model with probability at least ``1 - alpha`` as the number of
    points grows, if the *differences* of the losses are relatively stable (see `compare`;
    stability of each learner is not enough), or if one test set was used. By default the standard
    errors of the leads are those of `compare`: larger with repetitions (`refit_corrected`), for
    models that are very similar in one partition, and for metrics near the end of their scale. With
    ``method="wald"`` and at least three repetitions, ``caution`` contains ``unstable difference``
    for a model whose difference from its closest rival is unstable. If this difference is
    correlated on successive dates, it contains ``serial dependence``, and the set may lack a best
    model. How many other models the set contains is a matter of power.

    More models need more points: with symmetric differences of losses, 30 points were enough for
    200 models; with skewed differences, 20 models need hundreds of points, and ``caution``
    contains ``too many models`` if there are fewer. The p-value is ``(1 + #{drawn >= T_m})
    / (n_draws + 1)``; with two models it is that of the one-sided paired t test.

    Models with identical losses have identical results. A model that is worse than another by the
    same amount on every point has p = 0.

    Ranks: rank 1 is the smallest error. ``lower_rank - 1`` models are significantly better and
    ``M - upper_rank`` significantly worse, by the two-sided simultaneous intervals of all pairs
    from the same draws.

    The divisor of ``sigma_mj^2`` is n - 1 for either centering, as in the paper; with few points
    per fold it inflates the leads.

    Sources: the covariance of the models' means is that of `clustered` (CR2) or of `out_of_source`,
    and each lead is transformed from Student's t with the degrees of freedom of that interval to
    the normal distribution before it is compared with the draws. The target is then that of the
    interval, and its cautions also apply.

    Repetitions: means are computed over all of them and A is averaged, as in `wald`: n is the
    number of points, not points times repetitions. Without folds (several runs of one test set)
    each point is averaged over its repetitions first, as in `holdout`.

    Time and memory grow with the square of the number of models, because every pair is tested.

    References
    ----------
    Lei (2020), Journal of the American Statistical Association 115(532), 1978-1997,
    doi:10.1080/01621459.2019.1672556.
    Bayle, Janson and Mackey (2025), arXiv:2508.04409.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> losses.cvci.best_set(rng=0)[["estimate", "in_set", "lower_rank", "upper_rank"]].round(4)
                         estimate  in_set  lower_rank  upper_rank
    model
    logistic_regression    0.1713    True           1           2
    gradient_boosting      0.1709    True           1           2
    naive_bayes            0.1753   False           3           3
    """
    check_draws(n_draws, alpha)
    if screening is not None and not (is_number(screening) and 0 < screening < alpha):
        raise LogError(
            f"screening={screening!r} is out of range. Expected None, or a level between 0 and "
            f"alpha={alpha}, such as 0.005."
        )
    check_rng(rng)
    log = read(losses, missing=missing)
    refuse_targets(log, "best_set")
    run = partial(
        choose_models, method=method, alpha=alpha, center=center, n_draws=n_draws,
        screening=screening, seed=seed_of(rng),
    )  # fmt: skip
    return log.label(answer_cells(log, run))


def choose_models(
    log: Log,
    *,
    method: str | None,
    alpha: float,
    center: str,
    n_draws: int,
    screening: float | None,
    seed: int,
) -> Result:
    """Find the possibly best models in each carried cell."""
    best_set.record.require(log.design)
    if len(log.labels.models) < 2:
        raise one_model()
    if not log.in_memory:
        raise log.lacks_losses("best_set")
    chosen = default_method(log) if method is None else method
    find_method(chosen).require(log.design)
    by_groups = find_method(chosen).of_groups
    options = recommend_options(log) if method is None else {}
    dated = method is None and chosen == "ordered"
    if dated:
        pilot = over_dates(log)
    elif chosen == "out_of_source" and log.fixed_sources:
        pilot = over_tasks(log)
    else:
        pilot = over_groups(log, chosen, options) if by_groups else over_points(log, center)
    of_pairs = default_difference(log) if method is None else chosen
    table: Numbers = {"estimate": pilot.estimate, **masked_columns(log.losses.width)}
    unstable = np.zeros(log.losses.width, dtype=bool)
    cells = list(pilot.cells)
    factors = None
    if method is None:
        factors = widen_leads(log, chosen, options, pilot.squared_loss, cells)
    repeated = of_pairs == "wald" and repeats_folds(log)
    once = of_pairs == "wald" and not log.design.metric
    rivals = np.arange(log.losses.width)
    for at, (cell, squares, mean, same) in enumerate(cells):
        t = standardized_leads(mean, squares, pilot.n)
        rivals[cell] = cell[closest_rival(t)]
        if repeated:
            unstable[cell] = find_unstable(replace(log, pairs=(cell, rivals[cell])))
        if factors is not None:
            t /= factors[at]
            if once:  # nearly alike in one partition
                unstable[cell] = factors[at][np.arange(len(cell)), closest_rival(t)] > 1
        part = compute(
            t, squares, same, n=pilot.n, df=float(np.max(pilot.df[cell])),
            alpha=alpha, n_draws=n_draws, seed=seed, screening=screening,
        )  # fmt: skip
        for name, values in part.items():
            table[name][cell] = values
    counts = {"n_folds": count_folds(log.design), "n_repetitions": log.design.number("repetition")}
    for name, count in {**pilot.counts, **counts}.items():
        table[name] = np.full(log.losses.width, count)
    caution = table.pop("caution").astype(np.int64)
    caution[unstable] |= np.int64(Caution.UNSTABLE_DIFFERENCE)
    caution |= np.where(np.isnan(pilot.estimate), 0, np.int64(pilot.cautions))
    columns = log.columns_by_cell().reshape(-1)
    leads = replace(log, pairs=(columns, rivals[columns]))
    calls: Mapping[Caution, str] = {}
    if repeats_test_set(log.design) or "by" in options:  # two ways, perhaps over dates
        found = difference_interval(leads, method, options, alpha)
        caution[columns] |= found.caution & np.int64(Caution.UNSTABLE | Caution.STRONG_DEPENDENCE)
        calls = found.calls
    attrs: dict[str, Any] = {
        **best_set.record.facts, **pilot.attrs, "alpha": alpha, "n_draws": n_draws, "seed": seed,
        "interval_method": of_pairs,
    }  # fmt: skip
    if screening is not None:
        attrs["screening"] = screening
    result = Result("best_set", table, caution, attrs, calls=calls)
    result = advise_on_refits(result, log, "Omit method=.")
    if by_groups or dated:
        return result
    serial = np.zeros_like(caution)
    serial[columns] = find_serial_dependence(leads, columns.size)
    return flag_serial_dependence(result, serial, leads, "best_set")


def widen_leads(
    log: Log,
    method: str,
    options: Mapping[str, Any],
    squared_loss: FloatArray | None,
    cells: Sequence[CellLeads],
) -> list[FloatArray] | None:
    """Divide the standard errors by which `compare` judges each pair by the plain ones.

    They are larger for bounded metrics, for models that were refitted or are nearly alike, and for
    error rates over fixed sources on which models agree.
    Returns a table of models by models for each of the ``cells``, or None if all are the same.
    """
    by_folds = method == "wald" and not log.only_tested
    refitted = not log.only_tested and default_difference(log) == REFITS
    of_tasks = method == "out_of_source" and log.fixed_sources
    if not (log.design.metric or refitted or of_tasks):
        if not by_folds or squared_loss is None or log.design.number("repetition") > 1:
            return None
        if not any(may_be_alike(squared_loss[cell], squares) for cell, squares, *_ in cells):
            return None
    pairs = log.with_all_pairs()
    wide = difference_interval(pairs, None, {}, 0.05).columns["se"]
    plain = find_method(method).run(pairs, **options).columns["se"]
    ratio = np.divide(wide, plain, out=np.ones_like(wide), where=(plain > 0) & (wide > 0))
    left, right = pairs.sides
    columns = log.columns_by_cell()
    model = columns.argsort(axis=None) // columns.shape[1]
    table = np.ones((columns.size, len(columns)))
    table[left, model[right]] = table[right, model[left]] = ratio
    return [table[np.ix_(cell[same], model[cell[same]])] for cell, _, _, same in cells]


def may_be_alike(squared_loss: FloatArray, squares: FloatArray) -> bool:
    """Whether `wald` may call two models nearly alike, whose variance is at least as large."""
    both = np.add.outer(squared_loss, squared_loss)
    return bool(((squares > 0) & (squares < ALIKE * both)).any())


@dataclass(frozen=True, eq=False)
class Leads:
    """The statistics of a log that the test needs, over points or groups.

    Parameters
    ----------
    estimate : array, shape (columns,)
        The estimate of each column.
    cells : iterator
        The leads in each carried cell.
    n : int
        Number of points, or of groups.
    df : array, shape (columns,)
        Degrees of freedom of Student's t for the leads, the same for all models of a cell.
    counts, attrs : dict
        Additional columns and attrs of the result.
    cautions : array of int, shape (columns,)
        Cautions for all models of a cell.
    squared_loss : array, shape (columns,)
        The mean squared loss of each column, if points are the sampling unit.
    """

    estimate: FloatArray
    cells: Iterator[CellLeads]
    n: int
    df: FloatArray
    counts: dict[str, int]
    attrs: dict[str, Any]
    cautions: IntArray
    squared_loss: FloatArray | None = None


def over_points(log: Log, center: str) -> Leads:
    """Collect statistics over independent points, in their folds."""
    repetitions, folds = log.design.number("repetition"), count_folds(log.design)
    used = average_repetitions(log) if folds == 1 and repetitions > 1 else log
    n = int(used.design.splits().rows[0])
    if n < 2:
        raise LogError("best_set needs at least two points, but this log has 1.")
    cautions = Caution.SOURCES_IGNORED if log.design.has("source") else Caution(0)
    if n < ENOUGH_POINTS:
        cautions |= Caution.FEW_POINTS
    if center == "fold" and folds > 1 and n < SMALL_FOLD * folds:
        cautions |= Caution.SMALL_FOLDS
    by = repetition_level(used.design)
    if center == "fold" and folds > 1:
        by = fold_levels(used.design)
    found = used.moments(by)
    if center == "fold" and found.count.min() < 2:
        raise LogError(SINGLE_POINTS)
    whole = found if used is log else log.moments(repetition_level(log.design))
    total = whole.over(())
    squared_loss = total.m2[0] / total.count[0] + total.location[0] ** 2
    cells = iterate_cells(used, log.columns_by_cell(), found)
    width = log.losses.width
    return Leads(
        total.location[0], cells, n, np.full(width, n - 1.0), {"n_points": n}, {"center": center},
        np.full(width, int(cautions)), squared_loss,
    )  # fmt: skip


def over_groups(log: Log, method: str, options: Mapping[str, Any]) -> Leads:
    """Collect statistics over independent sources, as the interval ``method`` does."""
    base, n = find_method(method).run(log, **options), log.design.number("source")

    def residuals(pairs: Log) -> tuple[FloatArray, FloatArray]:
        if options:
            return two_way_residuals(pairs)
        return group_residuals(pairs.moments(("source",)), weights_of(method))

    guarantee = (
        "contains each best model with probability at least 1 - alpha as the number of sources "
        "grows, if they are independent and, if models were trained in folds, "
        f"{RELATIVELY_STABLE}"
    )
    leads = leads_of(log, base, residuals, n, base.columns["df"], {"guarantee": guarantee})
    known = np.unique(leads.df[~np.isnan(leads.df)])  # empty if all cells are masked
    alike = len(known) == 1
    return replace(leads, attrs={"df": float(known[0]), **leads.attrs}) if alike else leads


def over_tasks(log: Log) -> Leads:
    """Collect statistics over independent points of fixed tasks."""
    base = find_method("out_of_source").run(log)
    if "point" not in log.design.levels:
        raise LogError(
            "best_set matches the points of tasks by label, but this log has no level 'point'. "
            "Add an identifier for each point to the index."
        )

    def residuals(pairs: Log) -> tuple[FloatArray, FloatArray]:
        # Squares sum to the variance of the plain mean of fixed tasks: K^-2 sum_k var_k / M_k.
        points = pairs.moments(("source", "point"))
        tasks = points.cell_means().over(("source",))
        source = points.codes[:, points.levels.index("source")]
        of_point = np.searchsorted(tasks.codes[:, 0], source)
        size = tasks.count[of_point]
        scale = 1 / (len(tasks.count) * np.sqrt(size * (size - 1)))
        mean = points.origin + tasks.mean.mean(axis=0)
        return scale[:, None] * (points.mean - tasks.mean[of_point]), mean

    n, tasks = int(base.columns["n_points"].max()), log.design.number("source")
    guarantee = (
        "contains each best model with probability at least 1 - alpha as the number of points "
        "per source (such as a task) grows, if they are independent"
    )
    few = "df" in base.columns and averages_sources(base)
    df = base.columns["df"].min() if few else n - tasks
    return leads_of(log, base, residuals, n, df, {"guarantee": guarantee})


def over_dates(log: Log) -> Leads:
    """Collect statistics over the dates that fixed sources share, as `ordered` does."""
    base, times = find_method("ordered").run(log), order_times(log.design)
    cosines = int(np.nanmin(base.columns["df"]))

    def residuals(pairs: Log) -> tuple[FloatArray, FloatArray]:
        series = average_times(pairs, times)
        waves = transform_cosines(series.take(slice(0, len(series.mean))), cosines)
        return waves, series.origin + series.mean

    guarantee = (
        "contains each best model with probability at least 1 - alpha as the number of times "
        "grows, for stationary losses whose autocovariances have a finite sum"
    )
    return leads_of(log, base, residuals, times.number, cosines, {"guarantee": guarantee})


def leads_of(
    log: Log, base: Result, residuals: Residuals, n: int, df: Any, attrs: dict[str, Any]
) -> Leads:
    """Collect the statistics of the test for an interval over groups."""
    known = ~np.isnan(base.columns["estimate"])
    counts = {
        name: int(values[known.argmax()]) for name, values in base.columns.items() if is_count(name)
    }
    own = np.int64(Caution.NO_LOSSES | Caution.ZERO_VARIANCE | Caution.FEW_ERRORS)
    columns, cautions = log.columns_by_cell(), np.zeros_like(base.caution)
    cautions[columns] = np.bitwise_or.reduce((base.caution & ~own)[columns], axis=0)
    each = np.broadcast_to(np.asarray(df, dtype=np.float64), cautions.shape)
    fewest = np.empty(cautions.shape)
    fewest[columns] = np.fmin.reduce(each[columns], axis=0)
    return Leads(
        base.columns["estimate"],
        iterate_group_cells(log, known, residuals, n),
        n,
        fewest,
        counts,
        {"target": f"the models with the smallest {base.attrs['target']}", **attrs},
        cautions,
    )


# --- the test, from second moments ----------------------------------------------------------------


def compute(
    t: FloatArray,
    squares: FloatArray,
    same: IntArray,
    *,
    n: int,
    df: float,
    alpha: float,
    n_draws: int,
    seed: int,
    screening: float | None,
) -> Numbers:
    """Test for each model of one carried cell that no other has a smaller error.

    Parameters
    ----------
    t : array, shape (models, models)
        The standardized lead of each model (column) over each other (row).
    squares : array, shape (models, models)
        Sums of squares of the centered differences of one repetition (mean over repetitions).
    same : array of int, shape (models,)
        The first model with identical losses, for each model.
    n : int
        Number of points, or of groups.
    df : float
        Degrees of freedom of Student's t for the leads.
    alpha, n_draws, seed, screening
        As in `cvstats.best_set`.

    Returns
    -------
    dict of str to array, shape (models,)
        ``statistic``, ``p_value``, ``in_set``, ``lower_rank``, ``upper_rank``, ``caution``.
    """
    m = len(t)
    one = same[:, None] == same
    ahead = (squares == 0) & ~one & (t > 0)
    dominated = ahead.any(axis=1)
    alone = np.flatnonzero((same == np.arange(m)) & ~dominated)
    statistic, p = np.full(m, np.inf), np.zeros(m)
    statistic[alone], p[alone], critical = model_confidence_set(
        t[np.ix_(alone, alone)], squares[np.ix_(alone, alone)],
        n=n, df=df, alpha=alpha, n_draws=n_draws, seed=seed, screening=screening,
    )  # fmt: skip
    statistic, p = statistic[same], p[same]
    bound = float(student_quantile(np.array(critical), df))
    better = ~one & (t > bound)  # the column is significantly better than the row
    cautions = np.int64(flag_few_points(critical, n))
    caution = np.where(dominated, cautions | np.int64(Caution.DOMINATED), cautions)
    twins = np.bincount(same, minlength=m)[same] > 1
    caution[twins] |= np.int64(Caution.IDENTICAL)
    return {
        "statistic": statistic,
        "p_value": p,
        "in_set": p > alpha,
        "lower_rank": 1 + better.sum(axis=1),
        "upper_rank": m - better.sum(axis=0),
        "caution": caution,
    }


def standardized_leads(mean: FloatArray, squares: FloatArray, n: int) -> FloatArray:
    """Standardize the lead of each model (column) over each other (row): ``sqrt(n) dbar / sigma``.

    Infinite if one leads by the same amount on all points, NaN for identical losses.
    """
    gap = mean[:, None] - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = np.sqrt(n) * gap / np.sqrt(squares / (n - 1))
    return found


def closest_rival(t: FloatArray) -> IntArray:
    """Find the model with the largest standardized lead over each model."""
    found: IntArray = np.where(np.isnan(t), -np.inf, t).argmax(axis=1)
    return found


def model_confidence_set(
    t: FloatArray,
    squares: FloatArray,
    *,
    n: int,
    df: float,
    alpha: float,
    n_draws: int,
    seed: int,
    screening: float | None,
) -> tuple[FloatArray, FloatArray, float]:
    """Compute statistics and p-values of distinct models, and the bound for a significant lead.

    The bound is on the normal scale, and the statistics are on the scale of t.
    """
    m = len(t)
    if m == 1:
        return np.array([-np.inf]), np.ones(1), -np.inf
    others = ~np.eye(m, dtype=bool)
    top = np.where(others, t, -np.inf).max(axis=1)
    keep: MaskArray | None = None
    threshold = np.inf
    if screening is not None:
        q = float(special.ndtri(1 - screening / (m - 1)))
        threshold = q / np.sqrt(1 - q**2 / n) if q**2 < n else np.inf
        keep = others & (t > -2 * threshold)
    counts, most = count_leads(
        squares, normal_quantile(top, df), keep=keep, n_draws=n_draws, seed=seed
    )
    p = (1 + counts) / (n_draws + 1)
    if screening is not None and keep is not None:
        p = np.where(keep.any(axis=1), p, 1 - screening)
        p = np.where(top >= threshold, screening, p)
    return top, p, critical_value(most, alpha)


def masked_columns(m: int) -> Numbers:
    """Fill in values for models that are masked in a carried cell."""
    return {
        "p_value": np.full(m, np.nan),
        "in_set": np.zeros(m, dtype=bool),
        "lower_rank": np.zeros(m, dtype=np.int64),
        "upper_rank": np.zeros(m, dtype=np.int64),
        "statistic": np.full(m, np.nan),
        "caution": np.full(m, np.int64(Caution.NO_LOSSES)),
    }


# --- second moments of differences ----------------------------------------------------------------


def iterate_cells(log: Log, columns: IntArray, found: Cells) -> Iterator[CellLeads]:
    """Yield the leads in each carried cell from moments of points.

    ``found`` has the means about which the losses are centered. Models that are masked in a cell
    are omitted, as are fully masked cells.
    """
    whole = found.over(())
    for every in columns.T:
        cell = every[~np.isnan(whole.mean[0, every])]
        if len(cell) == 0:
            continue
        some, count = found.take_columns(cell), found.count.sum()
        cross, rest = cross_products(log.design, log.losses, cell, some)
        apart = some.location - some.location[:, :1]  # a large common level loses no digits
        mean = (found.count / count) @ apart + (rest - rest[0]) / count
        level = loss_magnitude(whole.location[0, cell], cross.diagonal(), float(whole.count[0]))
        yield cell, *difference_squares(log, cell, found.levels, cross, mean, ROUNDING * level)


def iterate_group_cells(
    log: Log, known: MaskArray, residuals: Residuals, n: int
) -> Iterator[CellLeads]:
    """Yield the same from residuals of groups, for each model minus the first of its cell.

    The sums of squares are scaled so that the variance of a difference over n groups, or points of
    tasks, is ``squares / (n - 1) / n``. Twins differ only by rounding in every group.
    """
    whole = log.moments(repetition_level(log.design)).over(())
    level = loss_magnitude(whole.location[0], whole.m2[0], float(whole.count[0]))
    for every in log.columns_by_cell().T:
        cell = every[known[every]]
        if len(cell):
            to_first = cell, np.full(len(cell), cell[0])
            apart, mean = residuals(replace(log, pairs=to_first))
            squares = np.stack([((apart - one[:, None]) ** 2).sum(axis=0) for one in apart.T])
            small = np.maximum.outer(ROUNDING * level[cell], ROUNDING * level[cell])
            squares[squares <= small**2] = 0.0
            twins = (squares == 0) & (np.abs(mean[:, None] - mean) <= small)
            same = np.arange(len(mean))
            for i, first in enumerate(twins.argmax(axis=1).tolist()):
                same[i] = same[first]
            yield cell, n * (n - 1) * squares[np.ix_(same, same)], mean[same], same


def difference_squares(
    log: Log,
    cell: IntArray,
    by: tuple[str, ...],
    cross: FloatArray,
    mean: FloatArray,
    tiny: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Convert cross products to sums of squares of differences, averaged over repetitions.

    Nearly identical models are subtracted point by point, because the difference of their sums of
    squares would be a rounding error. Models that differ only by rounding of the losses are twins:
    they get the results of the first of them.
    """
    m, n = len(cell), log.design.splits().rows.sum()
    own = cross.diagonal()
    both = own[:, None] + own
    squares = np.maximum(both - 2 * cross, 0.0)
    same = np.arange(m)
    alike = np.triu(squares <= NEARLY_EQUAL * both, 1)
    first = np.flatnonzero(alike.any(axis=0))
    pairs = np.column_stack([alike[:, first].argmax(axis=0), first])  # copies of one model
    while len(pairs):
        i, j = pairs.T
        found = replace(log, pairs=(cell[i], cell[j])).moments(by)
        sums, gaps = found.m2.sum(axis=0), found.over(()).location[0]
        squares[i, j] = squares[j, i] = sums
        small = np.maximum(tiny[i], tiny[j])
        for head, twin in pairs[(sums <= n * small**2) & (np.abs(gaps) <= small)].tolist():
            same[twin] = same[head]
        alike[i, j] = False
        lone = same == np.arange(m)
        pairs = np.argwhere((alike & lone & lone[:, None]).T)[:, ::-1]
    squares[squares <= n * np.maximum.outer(tiny, tiny) ** 2] = 0.0
    squares = squares[np.ix_(same, same)]
    return squares / log.design.number("repetition"), mean[same], same
