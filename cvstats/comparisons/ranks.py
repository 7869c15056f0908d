"""Many models over many data sets: the rank tests of Friedman and Nemenyi."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import special

from cvstats.comparisons._pairs import choose_pairs, refuse_targets
from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.results import make_result, rounding_of_means
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_level, listed
from cvstats.intervals._method import Comparison, Method
from cvstats.intervals._requirements import single_dataset
from cvstats.log.log import Log, Losses, Table, metrics_of_cells
from cvstats.log.metadata import cautions_of_metric, select_metric
from cvstats.log.read import read
from cvstats.options import Missing

DEMSAR = "Demsar (2006), JMLR 7, 1-30"


def several_data_sets(design: Design, by: str) -> str | None:
    """Require a level with at least two data sets."""
    if (words := single_dataset(design)) is not None:
        return words
    if by not in design.levels:
        return (
            f"the log has no level {by!r}. Pass the level that identifies data sets, as in "
            f"by='dataset'. Available levels: {listed(map(repr, design.levels)) or 'none'}."
        )
    if design.number(by) < 2:
        return (
            f"the log has only one label of {by!r}. Expected at least two data sets: pass the "
            "level that identifies them as by=."
        )
    return None


def read_data_sets(
    losses: Losses, by: str, missing: str, method: Method
) -> tuple[Log, FloatArray, IntArray]:
    """Rank the models on each data set: the log, ranks by data set and column, and the columns."""
    checked_level("by", by)
    log = read(losses, missing=missing, by=None if by == "source" else by)
    method.require(log.design, {"by": by})
    refuse_targets(log, method.name)
    columns = log.columns_by_cell()
    models = len(columns)
    if models < method.models:
        raise LogError(
            f"the log has {models} model{'s' if models > 1 else ''}. Expected at least three; "
            "for two, use compare."
        )
    return log, rank_models(log.moments((by,)), columns), columns


def rank_models(cells: Cells, columns: IntArray) -> FloatArray:
    """Rank models within each data set, 1 for the smallest mean loss.

    ``columns`` are the columns of the models, models by carried cells. Ranks are NaN if a model has
    no losses. Models whose means are equal up to rounding share the mean of their ranks.
    """
    from scipy import stats

    n = cells.count[:, None]
    tiny = rounding_of_means(cells.location, np.sqrt(cells.m2) / n, n)
    ranks = np.full(cells.mean.shape, np.nan)
    for cell in columns.T:
        means = cells.location[:, cell]
        if not np.isnan(means).any():
            order = means.argsort(axis=1)
            apart = np.diff(np.take_along_axis(means, order, 1), prepend=-np.inf)
            place = np.empty(means.shape)
            steps = (apart > np.take_along_axis(tiny[:, cell], order, 1)).cumsum(axis=1)
            np.put_along_axis(place, order, steps, 1)
            ranks[:, cell] = stats.rankdata(place, axis=1)
    return ranks


DEPENDENT = ("repetition", "fold")
"""Levels whose labels are parts of one experiment, whose models share training data."""
INSTEAD = {Caution.DEPENDENCE_IGNORED: "Use log.cvci.compare()."}


def cautions_of_cells(log: Log, by: str) -> IntArray:
    """Collect the cautions about the data sets, and the metric of each carried cell, if several."""
    shared = Caution.DEPENDENCE_IGNORED if by in DEPENDENT else Caution(0)
    metrics = metrics_of_cells(log)
    names = [] if metrics is None else metrics.tolist()
    each = [cautions_of_metric(select_metric(dict(log.metadata), name)) for name in names]
    return np.array(each or [Caution(0)], dtype=np.int64) | np.int64(shared)


def rank_error(n: int, k: int) -> float:
    """Compute the divisor that converts a difference of mean ranks to a studentized range."""
    return float(np.sqrt(k * (k + 1) / (12 * n)))


def critical_difference(n: int, k: int, alpha: float) -> float:
    """Critical difference of the mean ranks of k models over n data sets (Nemenyi)."""
    from scipy import stats

    return float(stats.studentized_range.isf(alpha, k, np.inf)) * rank_error(n, k)


# --- Friedman's test ------------------------------------------------------------------------------


RankTest = partial(
    Comparison,
    requires=several_data_sets,
    needs="a level that identifies at least two data sets, and at least three models",
    guarantee="asymptotically exact in the number of data sets, if they are independent",
    fits="as the log has",
    reference=DEMSAR,
    models=3,
    takes_scores=True,
    needs_pairs=False,
    lazy=False,
    level_option="by",
    takes_metrics="averaged",
)
"""The record of a test of ranks, but for its target."""


@RankTest(target="mean ranks of the models over data sets from the same population")
def friedman(
    losses: Losses,
    *,
    by: str = "source",
    test: Literal["chi2", "f"] = "chi2",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    r"""Test whether models differ over many data sets, by Friedman's test.

    Within each data set, the models are ranked by mean loss (1 is best, and tied models get the
    mean of their ranks). Friedman's statistic measures how much the mean ranks of the models
    differ. The target is the population from which the data *sets* were sampled, not a population
    of points.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A column for each of at least three models. Losses may be those of single points, or one
        score per data set; units may differ between data sets.
    by : str, optional
        The level whose labels are the data sets.
    test : {"chi2", "f"}, optional
        Friedman's chi-squared, corrected for ties, or the F statistic of Iman and Davenport
        derived from it, which is less conservative.
    alpha : float, optional
        One minus the level of the critical difference.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        For each model ``mean_rank``; then values common to all models: ``statistic`` and
        ``p_value`` of the test; and ``caution``. ``critical_difference`` (mean ranks that differ
        by more are significantly different, by Nemenyi's test at ``alpha``) and ``n_blocks`` (data
        sets) are in ``attrs``.

    Raises
    ------
    LogError
        If there are fewer than three models or two data sets, or the level does not exist.

    See Also
    --------
    cvstats.nemenyi : Which models differ.
    cvstats.compare : Two models on one data set.
    cvstats.cochran_q : Losses of 0 and 1 on one data set.

    Notes
    -----
    With R_j the mean rank of model j of k over N data sets, and no ties, the statistic is

    .. math::

        \chi^2 = \frac{12 N}{k (k + 1)} \sum_j \left(R_j - \frac{k + 1}{2}\right)^2 .

    The approximations need about ten data sets. With fewer than five, the F test rejects too often
    (in 7% to 20% of cases at a nominal 5%, if the models are equal), and ``caution`` contains ``few
    data sets``; the chi-squared test is conservative. If all data sets rank the models in the same
    order, F is infinite, and its p-value is the exact probability of this event, ``1 / k!^(N - 1)``
    without ties.

    Models whose means are equal up to rounding tie, regardless of the order of the rows.

    The data sets are treated as independent, and nothing is assumed about their points: each data
    set may number its folds and points from 0. Folds and repetitions of one experiment are not
    independent; if they are passed as ``by``, ``caution`` shows ``dependence ignored``. The test
    ignores how precise each difference is *within* a data set. The rank of a model depends on which
    other models are in the log. `nemenyi` shows which models differ.

    References
    ----------
    Demsar (2006), JMLR 7, 1-30.
    Friedman (1937), doi:10.1080/01621459.1937.10503522.
    Iman and Davenport (1980), doi:10.1080/03610928008827904.

    Examples
    --------
    Months as data sets:

    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> table = losses.cvci.friedman(by="source")
    >>> table[["mean_rank", "p_value"]].round(4)
                         mean_rank  p_value
    model
    logistic_regression     1.6667   0.0004
    gradient_boosting       1.4167   0.0004
    naive_bayes             2.9167   0.0004
    >>> round(table.attrs["critical_difference"], 4)
    0.9568
    """
    log, ranks, columns = read_data_sets(losses, by, missing, friedman.record)
    k, (n, width) = len(columns), ranks.shape
    rank, statistic, p = ranks.mean(axis=0), np.full(width, np.nan), np.full(width, np.nan)
    for cell in columns.T:
        if not np.isnan(rank[cell]).any():
            statistic[cell], p[cell] = compute_friedman(ranks[:, cell], test=test)
    table = {
        "mean_rank": rank,
        "statistic": statistic,
        "p_value": p,
        "critical_difference": critical_difference(n, k, alpha),
        "n_blocks": n,
    }
    few = Caution.FEW_DATA_SETS if test == "f" and n < FEWEST else 0
    attrs: dict[str, Any] = {**friedman.record.facts, "by": by, "test": test, "alpha": alpha}
    caution = np.full(width, int(few))
    caution[columns] |= cautions_of_cells(log, by)
    return log.label(replace(make_result("friedman", table, caution, attrs), calls=INSTEAD))


FEWEST = 5
"""Data sets below which F rejects too often: 7% to 20% at a nominal 5%."""


def compute_friedman(ranks: FloatArray, *, test: str) -> tuple[float, float]:
    """Test whether the mean ranks differ: the statistic and its p-value.

    ``"chi2"`` is Friedman's statistic, corrected for ties; ``"f"`` that of Iman and Davenport,
    which is less conservative. F is infinite if all data sets rank the models in the same order,
    whose probability is known: each has one order out of k! (fewer with ties).
    """
    from scipy import stats

    n, k = ranks.shape
    deviations = ranks - (k + 1) / 2
    spread = float((deviations**2).sum())
    if spread == 0:  # all models tie on all data sets
        return 0.0, 1.0
    chi2 = (k - 1) * float((deviations.sum(axis=0) ** 2).sum()) / spread
    if test == "chi2":
        return chi2, float(stats.chi2.sf(chi2, k - 1))
    if not np.ptp(ranks, axis=0).any():
        ties = np.unique(ranks, return_counts=True)[1] / n
        orders = special.factorial(k) / special.factorial(ties).prod()
        return np.inf, float(orders ** (1 - n))
    f = (n - 1) * chi2 / (n * (k - 1) - chi2)
    return f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


# --- Nemenyi's test -------------------------------------------------------------------------------


@RankTest(target="differences of mean ranks over data sets from the same population")
def nemenyi(
    losses: Losses, *, by: str = "source", alpha: float = 0.05, missing: Missing = "raise"
) -> Any:
    r"""Test which pairs of models differ over many data sets, by Nemenyi's test.

    For each pair of models, the difference of their mean ranks (as in `friedman`) is compared with
    the studentized range distribution, which adjusts for all pairs. A difference is significant if
    it is above the critical difference. The target is the population from which the data sets were
    sampled.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A column for each of at least three models.
    by : str, optional
        The level whose labels are the data sets.
    alpha : float, optional
        One minus the level of the critical difference.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        For each pair ``rank_difference`` (negative: the model is better), ``p_value``
        (adjusted) and ``caution``; a frame is indexed by ``(model, other)``, an array has a
        dimension ``pair``. ``critical_difference`` and ``n_blocks`` are in ``attrs``.

    Raises
    ------
    LogError
        If there are fewer than three models or two data sets, or the level does not exist.

    See Also
    --------
    cvstats.friedman : Whether any models differ.
    cvstats.best_set : The best models on one data set.
    cvstats.compare : Two models on one data set.

    Notes
    -----
    With k models over N data sets, and q the quantile of the studentized range, the critical
    difference is

    .. math::

        \mathrm{CD} = q \sqrt{\frac{k (k + 1)}{12 N}} .

    The normal approximation for mean ranks needs about ten data sets and five models. With few data
    sets, no difference in ranks can be significant.

    References
    ----------
    Demsar (2006), JMLR 7, 1-30.
    Nemenyi (1963), Distribution-free multiple comparisons, Princeton University.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> losses.cvci.nemenyi()[["rank_difference", "p_value"]].round(4)
                                           rank_difference  p_value
    model               other
    logistic_regression gradient_boosting             0.25   0.8134
                        naive_bayes                  -1.25   0.0062
    gradient_boosting   naive_bayes                  -1.50   0.0007
    """
    from scipy import stats

    log, ranks, columns = read_data_sets(losses, by, missing, nemenyi.record)
    k, n = len(columns), len(ranks)
    rank = ranks.mean(axis=0)[columns]
    left, right = np.triu_indices(k, 1)
    gap = (rank[left] - rank[right]).reshape(-1)
    known = ~np.isnan(gap)
    p = np.full(gap.shape, np.nan)
    p[known] = stats.studentized_range.sf(np.abs(gap[known]) / rank_error(n, k), k, np.inf)
    table = {
        "rank_difference": gap,
        "p_value": np.clip(p, 0.0, 1.0),
        "critical_difference": critical_difference(n, k, alpha),
        "n_blocks": n,
    }
    attrs: dict[str, Any] = {**nemenyi.record.facts, "by": by, "alpha": alpha}
    each = cautions_of_cells(log, by)
    caution = np.broadcast_to(each, (len(left), columns.shape[1])).reshape(-1)
    result = replace(make_result("nemenyi", table, caution, attrs), calls=INSTEAD)
    return choose_pairs(log, None).label(result)
