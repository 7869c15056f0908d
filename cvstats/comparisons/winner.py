"""The error of the model that was selected as best on the same log."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._adjust import (
    check_draws,
    critical_value,
    draw_means,
    factor_covariance,
    flag_few_points,
    inverse_deviations,
    normal_quantile,
    pair_matrix,
    student_quantile,
)
from cvstats.comparisons._pairs import (
    Options,
    check_method_options,
    default_method,
    degrees_of_each,
    difference_interval,
    has_standard_errors,
    levels_of_options,
    one_model,
    read_options,
    refuse_targets,
)
from cvstats.core.cautions import Caution
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result, confidence_limits, is_count, quantile, rounding_of_means
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, checked_choice
from cvstats.intervals import find_method, interval_names
from cvstats.intervals._limits import (
    BY_SOURCES,
    OF_GROUPS,
    OF_NORMAL_LIMITS,
    OF_SPLITS,
    FindReach,
    Reach,
    averages_sources,
    find_bounded_sources,
    find_ends,
    find_proportions,
    find_reach,
    invert_hall,
    measure_skewness,
    share_of_sources,
    take_limits_of_means,
    take_limits_of_metric,
    wilson,
)
from cvstats.intervals._method import Comparison
from cvstats.intervals._requirements import recommend_options
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses, Table, take_flagged
from cvstats.log.loss_checks import find_whole
from cvstats.log.metadata import OF_PROBLEMS
from cvstats.log.read import read
from cvstats.options import Missing, Rng, check_rng, seed_of

REFERENCE = (
    "Hothorn, Bretz and Westfall (2008), doi:10.1002/bimj.200810425; "
    "Tsamardinos, Greasidou and Borboudakis (2018), doi:10.1007/s10994-018-5714-4"
)


def check_winner(options: Mapping[str, Any]) -> None:
    """Reject options of `winner` that are invalid for every log."""
    method = options["method"]
    checked_choice("method", method, (*interval_names(for_differences=True), None))
    check_method_options(method, options["options"])
    check_draws(options["n_draws"], options["alpha"])
    check_rng(options["rng"])


@Comparison(
    needs="two or more models on the same evaluations",
    target="error of the model with the smallest mean loss in this log",
    guarantee="asymptotically valid whichever model is selected, if the interval of each model is",
    fits="as the underlying interval",
    reference=REFERENCE,
    of_interval=True,
    needs_points=True,
    models=2,
    lazy=False,
    takes_scores=True,
    check=check_winner,
)
def winner(
    losses: Losses,
    *,
    method: str | None = None,
    options: Options = None,
    alpha: float = 0.05,
    n_draws: int = 10_000,
    rng: Rng = None,
    missing: Missing = "raise",
) -> Table:
    r"""Interval for the error of the model that was selected as best on this log.

    The target is the error of the model with the smallest mean loss in this log. A conventional
    interval for this model is too low, because the selection favors models that were lucky. The
    limits returned here cover all models simultaneously, and therefore also the selected model. The
    estimate is corrected for the selection by simulation: in each draw from the joint distribution
    of the means, one model is selected, and its error is measured without the random deviation that
    led to its selection.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log of all candidate models. Losses in any unit.
    method : str, optional
        The interval that gives the standard errors of means and of differences. The default is
        the choice of `interval` for this log, which respects groups.
    options : mapping, optional
        Options of that method by name.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    n_draws : int, optional
        Number of draws from the joint distribution of the means.
    rng : int or numpy.random.Generator, optional
        The seed of these draws, 0 by default, so that two calls give the same result;
        ``attrs["seed"]`` is the one that was used.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        One row, whose index names the model that was selected: ``estimate`` (corrected for the
        selection), ``lower``, ``upper`` and ``se`` in the units of the loss, ``mean`` (the
        smallest mean, which is too small), and ``caution``. An array has a winner in each carried
        cell: the coordinate ``model``. ``n_models`` is in ``attrs``.

    Raises
    ------
    LogError
        If the log has one model, if the method has no standard errors of models or differences, or
        if the losses are lazy.

    See Also
    --------
    cvstats.best_set : The set of possibly best models.
    cvstats.compare : How much the models differ, with intervals.
    cvstats.interval : The interval of a model that was fixed beforehand.

    Notes
    -----
    With g drawn from the joint normal distribution of the deviations of the means, the limits of
    model m are

    .. math::

        \mathrm{mean}_m \pm c\, \mathrm{se}_m, \qquad
        c = \text{quantile of } \max_j \frac{|g_j|}{\mathrm{se}_j} .

    If losses are skewed, the smallest of many means is further from normal than a single mean, and
    a model that was selected for its small mean also has a small standard error. If points are the
    sampling unit (`wald`, `holdout`) and losses are skewed to the right, the upper limit is
    therefore Hall's, with the same c and with the skewness of this model or the median skewness of
    all models, whichever is larger. If groups are the sampling unit, the limits are symmetric, and
    ``caution`` contains ``too many models`` if there are too few groups for the number of models:
    with exponential effects of 30 and 60 groups, the limits for the best of 12 equal models covered
    its error in 87% and 90% of runs.

    Each draw selects the model with the smallest mean + g, and the estimate is the average of
    mean - g over the selected models. If a model with a very large standard error moves that
    outside the limits, mean - g is clipped to the limits.

    For 0/1 losses the limits are those of Wilson's score interval with the same c, and n chosen
    to match the standard error of the method: they are never below 0 or above 1. For bounded and
    other metrics, pass@k, and 0/1 losses that are averaged over repetitions or have sources as the
    sampling unit, they are those of `interval` at the level that corresponds to c. In 300
    simulations of the best of 5 models with an AUC of .98 and 15 positives they always covered it;
    mean and standard error covered it in 49%. If some model has no variance, or no covariance of
    all models has the standard errors of the differences, as if these were corrected individually,
    c is that of Bonferroni.

    Asymptotically the interval covers with probability at least ``1 - alpha``, whichever of these
    models is selected and by whatever rule. In 1,000 simulations of 20 equal models each, 95%
    limits for the best covered its error in 99% of runs with 100 normal losses, 98% with squared
    errors and 97% with 200 lognormal losses; symmetric limits in 98%, 85% and 84%. Models that
    were tried and are not in the log cannot be accounted for. The estimate is a heuristic: of the
    bias of the smallest mean, 1.3 and 0.8 standard errors with normal losses, it left less than
    0.2.

    Time and memory grow with the square of the number of models, because every pair is compared.

    References
    ----------
    Hothorn, Bretz and Westfall (2008), doi:10.1002/bimj.200810425.
    Tsamardinos, Greasidou and Borboudakis (2018), Machine Learning 107, 1895-1922,
    doi:10.1007/s10994-018-5714-4.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"])
    >>> losses.cvci.winner(rng=0).round(0)
          estimate  lower  upper   se   mean caution
    model
    ridge    3,039  2,593  3,464  187  3,006
    """
    given = read_options(method, options)
    seed = seed_of(0 if rng is None else rng)
    log = read(losses, missing=missing, levels=levels_of_options(method, given))
    if log.lazy is not None:
        raise LogError(
            "this log is lazy, but winner needs the losses to find the best model. Load them "
            "into memory: log.compute()."
        )
    refuse_targets(log, "winner")
    if len(log.labels.models) < 2:
        raise one_model()
    run = partial(compute, method=method, options=given, alpha=alpha, n_draws=n_draws, seed=seed)
    return take_flagged(log.label(answer_cells(log, run)), SELECTED)


SAMPLES = ("n_clusters", "n_sources", "n_points")
"""Columns that count sampling units."""

SHARE_OF_TAILS = 2 / 5
"""Share of models with heavy tails from which on the best has them: it drew the fewest outliers."""

SELECTED = "selected"
"""The column that marks the winner among all models."""


def compute(
    log: Log, *, method: str | None, options: dict[str, Any], alpha: float, n_draws: int, seed: int
) -> Result:
    """Find the limits of the best model, in each carried cell."""
    chosen = default_method(log) if method is None else method
    options = recommend_options(log) if method is None else options
    base = find_method(chosen).run(log, alpha=alpha, **options)
    gaps = difference_interval(log.with_all_pairs(), chosen, options, alpha)
    proportions = find_proportions(log, base.columns["estimate"])
    proportions |= log.zero_one() & proportions.any()  # all columns are treated alike
    refused = LogError(
        f"winner needs standard errors of all models and their differences, but {chosen} with "
        "these options does not have them. Use a method such as 'wald'."
    )
    if not (has_standard_errors(base) and has_standard_errors(gaps)):
        raise refused
    mean, se = base.columns["estimate"], base.columns["se"]
    degrees = degrees_of_each(base)
    each, df = (degrees, None) if isinstance(degrees, np.ndarray) else (None, degrees)
    points = base.columns["n_points"] if degrees is None and "n_points" in base.columns else None
    groups = base.columns.get("n_clusters", base.columns.get("n_sources"))
    skewness, whole = np.full_like(mean, np.nan), find_whole(log)
    by_points = points is not None and base.method in OF_NORMAL_LIMITS
    no_width = np.nan if method is None and base.method in OF_NORMAL_LIMITS else 0.0  # as interval
    if whole is not None and by_points and not log.design.metric:
        splits = whole.moments(repetition_level(whole.design))
        skewness = measure_skewness(whole, splits).reshape(-1)
    size = int(log.design.splits().rows.max())
    columns = log.columns_by_cell()
    variance = (gaps.columns["se"] ** 2).reshape(-1, columns.shape[1])
    bounded, find = find_bounded(log, base, proportions), cache(partial(find_reach, log))
    lowest, highest = find_ends(log, mean, declared=True)
    numbers = {name: np.full_like(mean, np.nan) for name in ("estimate", "lower", "upper")}
    kind, allows = dict[str, Any](), base.allows_for
    selected, n_models = np.zeros(len(mean), dtype=bool), np.full(len(mean), len(columns))
    caution = np.where(np.isnan(mean), np.int64(Caution.NO_LOSSES), np.int64(0))
    for c, every in enumerate(columns.T):
        selected[every[0]] = True  # of a masked cell
        known = ~np.isnan(mean[every])
        cell = every[known]  # without masked models
        if len(cell) < 2:
            caution[every] = Caution.NO_LOSSES
            continue
        n_models[every] = len(cell)
        ties = mean[cell] - mean[cell].min() <= rounding_of_means(mean[cell], se[cell], size)
        best = cell[ties.argmax()]
        selected[every[0]], selected[best] = False, True
        of_pairs = pair_matrix(variance[:, c], len(every))[known][:, known]
        squared = add_constant(of_pairs, se[cell])
        if np.isnan(squared).any():
            raise refused
        largest, value, exact = draw_selections(
            squared, mean[cell] - mean[best], df=df, n_draws=n_draws, seed=seed
        )
        critical = critical_value(largest, alpha)
        if not exact:
            critical = -quantile(alpha / (2 * len(cell)), df)
        degree = df
        if each is not None:
            degree = float(each[best])
            critical = float(student_quantile(np.asarray(critical), degree))
        if (bounded[best] or proportions[best]) and (se[cell] == 0).any():
            critical = -quantile(alpha / (2 * len(cell)), degree if bounded[best] else None)
        cautions = Caution(0)
        if bounded[best]:
            row = limits_of_one(log, base, int(best), critical, degree, find)
            low, high = (float(row.columns[side][0]) for side in ("lower", "upper"))
            if low == high:
                low, high = low - no_width, high + no_width
            settled, cautions = base.caution[best], Caution(int(row.caution[0]))
            kind |= {"interval": row.attrs["interval"]} if "interval" in row.attrs else {}
            allows |= row.allows_for
        elif proportions[best]:
            low, high = proportion_limits(base, int(best), critical)
            kind["interval"] = "wilson"
            settled = np.int64(OF_NORMAL_LIMITS.get(base.method, Caution.ZERO_VARIANCE))
        else:
            settled = np.int64(0)
            skewed = np.fmax(skewness[best], np.median(skewness[cell]))
            if points is not None:
                if np.isnan(skewed):
                    cautions = flag_few_points(critical, points[best])
                critical = float(student_quantile(np.asarray(critical), points[best] - 1))
            elif groups is not None and degree is not None:
                normal = float(normal_quantile(np.asarray(critical), degree))
                cautions = flag_few_points(normal, groups[best])
            reach = far = critical * se[best] if se[best] > 0 else no_width
            if points is not None and skewed > 0 and reach > 0:
                far = -float(invert_hall(-critical, skewed, points[best])) * se[best]
                settled = np.int64(Caution.SKEWED)
            low, high = mean[best] - reach, mean[best] + far
        low, high = np.clip((low, high), lowest[best], highest[best]).tolist()
        numbers["estimate"][best] = average_inside(mean[best] + value, low, high)
        numbers["lower"][best], numbers["upper"][best] = low, high
        own = base.caution[best] & ~settled
        if np.mean(base.caution[cell] & np.int64(Caution.HEAVY_TAILS) != 0) >= SHARE_OF_TAILS:
            cautions |= Caution.HEAVY_TAILS
        caution[best] = (own | np.int64(cautions)) & ~np.int64(Caution.SELECTED)
    table: dict[str, NDArray[Any]] = {**numbers, "se": se, "mean": mean}
    table |= {name: values for name, values in base.columns.items() if is_count(name)}
    table |= {"n_models": n_models, SELECTED: selected}
    attrs: dict[str, Any] = {
        **base.attrs,
        **kind,
        **winner.record.facts,
        "target": f"{base.attrs['target']}, for the model with the smallest mean loss in this log",
        "guarantee":
            f"{winner.record.guarantee} (here: {base.attrs['guarantee']}); the estimate is a "
            "heuristic",
        "alpha": alpha, "n_draws": n_draws, "seed": seed, "interval_method": chosen,
    }  # fmt: skip
    return Result("winner", table, caution, attrs, allows_for=allows)


def find_bounded(log: Log, base: Result, proportions: MaskArray) -> MaskArray:
    """Find the models whose limits are those of `interval`, at the level of c.

    These are metrics, pass@k, and 0/1 losses of random splits, that are averaged over repetitions
    or over fixed sources, or whose sampling unit is the source.
    """
    problems, by = log.metadata.get("limits") == OF_PROBLEMS, base.attrs.get("by")
    if base.method == "out_of_source":
        of_points = averages_sources(base)
        return proportions | problems if of_points else find_bounded_sources(base, log)[0]
    by_splits = base.method == OF_SPLITS and "n_points" in base.columns
    if log.design.metric:
        groups = base.method in OF_GROUPS and "df" in base.columns
        return np.full(len(proportions), groups or by_splits or base.method in OF_NORMAL_LIMITS)
    if by_splits:
        return proportions
    if base.method == "clustered":
        return proportions & (by in BY_SOURCES) | (problems and by == "source")
    averages = log.design.number("repetition") > 1
    return (proportions & averages | problems) & (base.method == "holdout")


def limits_of_one(
    log: Log, base: Result, at: int, critical: float, df: float | None, find: FindReach
) -> Result:
    """Compute the limits of `interval` for one model, at the level of a critical value."""
    one = slice(at, at + 1)
    columns = {name: values[one] for name, values in base.columns.items()}
    far = np.asarray(critical)
    level = 2 * float(special.ndtr(-far) if df is None else special.stdtr(df, -far))
    if df is None:
        far = student_quantile(far, columns["n_points"][0] - 1)
    columns["lower"], columns["upper"] = confidence_limits(
        columns["estimate"], columns["se"], far, far
    )
    row = Result(base.method, columns, base.caution[one], {**base.attrs, "alpha": level})
    if base.method == "out_of_source" and not averages_sources(base):
        reach, *ends = (values[one] for values in find_bounded_sources(base, log)[1:])
        return take_limits_of_means(row, np.array([True]), reach, ends)
    if not log.design.metric:
        by_source = base.method == "clustered"
        share = share_of_sources(log, len(base.caution))[one] if by_source else None
        return take_limits_of_means(row, np.array([True]), share)

    def find_one(of_clusters: bool) -> Reach | None:
        every = find(of_clusters)
        return None if every is None else Reach(every.change[one], every.rarity[one])

    return take_limits_of_metric(row, log, find_one)


def add_constant(squared: FloatArray, se: FloatArray) -> FloatArray:
    """Add a model with zero losses, so that differences from it are means."""
    m = len(se)
    both = np.zeros((m + 1, m + 1))
    both[:m, :m] = squared
    both[m, :m] = both[:m, m] = se**2
    return both


def proportion_limits(base: Result, best: int, z: float) -> tuple[float, float]:
    """Compute Wilson's limits at a critical value, for the sample size implied by the variance."""
    share, se = base.columns["estimate"][best], base.columns["se"][best]
    counts = [base.columns[name][best] for name in SAMPLES if name in base.columns]
    n = share * (1 - share) / se**2 if se > 0 else float(min(counts))
    low, high = wilson(np.array([share]), n, 2 * float(special.ndtr(-z)))
    return float(low[0]), float(high[0])


def average_inside(values: FloatArray, low: float, high: float) -> float:
    """Average draws; if the average is outside the limits, clip each draw to the limits."""
    middle = float(values.mean())
    outside = middle < low or middle > high
    return float(np.clip(values, low, high).mean()) if outside else middle


def draw_selections(
    squared: FloatArray,
    mean: FloatArray,
    *,
    df: float | None,
    n_draws: int,
    seed: int,
) -> tuple[FloatArray, FloatArray, bool]:
    """Draw the means of all models, and select the best in each draw.

    Parameters
    ----------
    squared : array, shape (models + 1, models + 1)
        Variances of all differences; the last row and column are those of the means.
    mean : array, shape (models,)
        Mean losses, minus the smallest one.
    df, n_draws, seed
        As in `cvstats.comparisons._adjust.max_statistic_draws`.

    Returns
    -------
    tuple of two arrays and a bool
        The largest deviation in standard errors of each draw, the mean of the selected model
        without the deviation for which it was selected, and whether some covariance has these
        variances; otherwise the nearest one is used.
    """
    root, exact = factor_covariance(squared)
    m = len(mean)
    every = np.arange(m)
    scale = inverse_deviations(root, squared, every, np.full(m, m))
    largest, value = np.empty(n_draws), np.empty(n_draws)

    def work(g: FloatArray, start: int, stop: int) -> None:
        away = g[:m] - g[m]
        largest[start:stop] = np.abs(away * scale[:, None]).max(axis=0)
        at = (mean[:, None] + away).argmin(axis=0)
        value[start:stop] = mean[at] - away[at, np.arange(stop - start)]

    draw_means(root, n_draws, seed, work)
    if df is not None:  # Student's t: divided by the root of a chi-squared of its own
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 1)))
        largest = largest / np.sqrt(rng.chisquare(df, len(largest)) / df)
    return largest, value, exact
