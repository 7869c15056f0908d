"""Do many models differ over many data sets? Friedman's test on their ranks."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons._mean_ranks import (
    DEMSAR,
    critical_difference,
    read_data_sets,
    several_data_sets,
)
from cvstats.core.cautions import Caution
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.intervals._method import Comparison
from cvstats.large.frames import later
from cvstats.log.log import Losses, Table
from cvstats.log.read import is_dask_frame
from cvstats.options import Missing


@Comparison(
    requires=several_data_sets,
    needs="a level that names data sets, two or more, and three models or more",
    target="mean ranks of the models over data sets drawn as these were",
    guarantee="exact as the data sets grow, if they are independent",
    fits="as the log has",
    reference=DEMSAR,
    models=3,
    takes_scores=True,
    needs_pairs=False,
    level_option="by",
    takes_metrics="averaged",
)
def friedman(
    losses: Losses,
    *,
    by: str = "source",
    test: Literal["chi2", "f"] = "chi2",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    r"""Test whether many models differ over many data sets, by their ranks.

    Within each data set the models are ranked by mean loss (1 is best, ties share the mean of
    their ranks). Friedman's statistic measures how far the mean ranks of the models are apart. The
    target is the population from which the data *sets* were drawn, not that of points.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A column for each of three models or more. Losses may be those of single points, or one
        score for each data set; units may differ between data sets.
    by : str, optional
        The level whose labels are the data sets.
    test : {"chi2", "f"}, optional
        Friedman's chi-squared, corrected for ties, or the F statistic of Iman and Davenport
        made of it, which is less conservative.
    alpha : float, optional
        One minus the level of the critical difference.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        For each model ``mean_rank``; then numbers of all models together: ``statistic`` and
        ``p_value`` of the test, ``critical_difference`` (mean ranks that are further apart
        differ, by Nemenyi's test at ``alpha``), ``n_blocks`` (data sets); and ``caution``.

    Raises
    ------
    LogError
        If there are fewer than three models or two data sets, or no such level.

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

    The approximations need about ten data sets. With fewer than five the F test rejects too often
    (equal models in 7% to 20% of cases at 5%), and ``caution`` says ``few data sets``; chi-squared
    rejects too seldom. If all data sets rank the models alike, F is infinite, and its p-value is
    the exact probability of that, ``1 / k!^(N - 1)`` without ties.

    Models whose means are equal but for rounding tie, whatever the order of the rows.

    Data sets are treated as independent, and nothing is assumed about their points. How surely
    a model is better *within* a data set does not count, and ranks of a model depend on which
    others are in the log. `nemenyi` says which models differ.

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
    if is_dask_frame(losses):
        ask = partial(friedman, by=by, test=test, alpha=alpha)
        answer: Table = later(losses, ask, levels=(by,), missing=missing)
        return answer
    log, ranks, columns = read_data_sets(losses, by, missing, friedman.record)
    k, (n, width) = len(columns), ranks.shape
    rank, statistic, p = ranks.mean(axis=0), np.full(width, np.nan), np.full(width, np.nan)
    for cell in columns.T:
        if not np.isnan(rank[cell]).any():
            statistic[cell], p[cell] = compute(ranks[:, cell], test=test)
    table: dict[str, NDArray[Any]] = {
        "mean_rank": rank,
        "statistic": statistic,
        "p_value": p,
        "critical_difference": np.full(width, critical_difference(n, k, alpha)),
        "n_blocks": np.full(width, n),
    }
    few = Caution.FEW_DATA_SETS if test == "f" and n < FEWEST else 0
    caution = np.where(np.isnan(rank), np.int64(Caution.NO_LOSSES), np.int64(few))
    attrs: dict[str, Any] = {**friedman.record.facts(), "by": by, "test": test, "alpha": alpha}
    return log.label(Result("friedman", table, caution, attrs))


FEWEST = 5
"""Data sets below which F is too often significant: at 5%, in 7% to 20% of equal models."""


def compute(ranks: FloatArray, *, test: str) -> tuple[float, float]:
    """Test whether the mean ranks differ by more than chance: the statistic and its p-value.

    ``"chi2"`` is Friedman's statistic, corrected for ties; ``"f"`` that of Iman and Davenport,
    which is less conservative. F is infinite where all data sets rank the models alike, of which
    the probability is known: each has one order of k! (fewer with ties).
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
    if (ranks == ranks[0]).all():
        ties = np.unique(ranks[0], return_counts=True)[1]
        orders = special.factorial(k) / special.factorial(ties).prod()
        return np.inf, float(orders ** (1 - n))
    f = (n - 1) * chi2 / (n * (k - 1) - chi2)
    return f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))
