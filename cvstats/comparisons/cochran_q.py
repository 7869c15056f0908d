"""Do several models err on different points? Cochran's Q for losses of 0 and 1."""

from __future__ import annotations

import numpy as np
from scipy import special

from cvstats.comparisons._pairs import model_columns, pair_all_models
from cvstats.comparisons.mcnemar import check_binary, count_discordant, find_other_loss
from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._groups import flag_ignored_sources
from cvstats.intervals._method import Comparison
from cvstats.intervals._requirements import one_test_per_point
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses, Table
from cvstats.log.read import read
from cvstats.options import Missing


@Comparison(
    requires=one_test_per_point,
    needs="losses of 0 and 1 of each point, evaluated once",
    target="differences of the error rates of the models that were trained",
    guarantee="exact as the points grow on which models disagree",
    fits="1 for a test set, K for folds",
    reference="Cochran (1950), Biometrika 37, 256-266, doi:10.1093/biomet/37.3-4.256",
    models=2,
    of_losses=find_other_loss,
    needs_losses=True,
    takes_metrics=False,
)
def cochran_q(losses: Losses, *, missing: Missing = "raise") -> Table:
    r"""Test whether several models err equally often: Cochran's Q.

    The target is the error rates of the models that were trained. Q measures, over all pairs of
    models, how unequally the discordant points of a pair are divided between its two models. It is
    compared with the chi-squared distribution of M - 1 degrees of freedom for M models. Of two
    models it is McNemar's statistic.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Losses of 0 and 1, a column for each of two models or more; each point evaluated once.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        For each model ``estimate`` (its error rate); then numbers of all models together:
        ``statistic`` (Q), ``df``, ``p_value``, ``n_points``; and ``caution``.

    Raises
    ------
    LogError
        If there is one model, a loss is neither 0 nor 1, or points are evaluated more than
        once (repetitions).

    See Also
    --------
    cvstats.mcnemar : Which models differ.
    cvstats.compare : How much they differ, with intervals.
    cvstats.friedman : Many models over many data sets.

    Notes
    -----
    With b and c the discordant points of a pair, where only the one or only the other model errs,
    summed over all pairs of the M models,

    .. math::

        Q = (M - 1)\, \frac{\sum (b - c)^2}{\sum (b + c)} .

    Asymptotic in the points on which models disagree. It says that some models differ;
    `mcnemar` with ``adjust="holm"`` says which. Models that never disagree have p = 1.

    References
    ----------
    Cochran (1950), Biometrika 37, 256-266, doi:10.1093/biomet/37.3-4.256.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> late = (log[log.attrs["models"]] > 0.5).astype(float).assign(y_true=log["y_true"])
    >>> losses = cvstats.losses(late, prediction=log.attrs["models"], loss="zero_one")
    >>> losses.cvci.cochran_q()[["estimate", "statistic", "p_value"]].round(4)
                         estimate  statistic  p_value
    model
    logistic_regression    0.2356    31.1265      0.0
    gradient_boosting      0.2352    31.1265      0.0
    naive_bayes            0.2409    31.1265      0.0
    """
    log = read(losses, missing=missing)
    return log.label(answer_cells(log, compare_error_rates))


def compare_error_rates(log: Log) -> Result:
    """Test whether the models of a log err equally often, in each carried cell."""
    cochran_q.record.require(log.design)
    columns = model_columns(log)
    models = len(columns)
    if models < 2:
        raise LogError("the log holds one model. Expected two or more.")
    check_binary(log, cochran_q.record)
    estimate = log.moments(()).location[0]
    cell = log.moments((), pair_all_models(log))
    width = log.panels.width
    statistic, p = np.empty(width), np.empty(width)
    statistic[columns], p[columns] = compute(cell, models)
    table = {
        "estimate": estimate,
        "statistic": statistic,
        "df": np.full(width, models - 1),
        "p_value": p,
        "n_points": np.full(width, int(cell.count[0])),
    }
    caution = np.where(np.isnan(estimate), np.int64(Caution.NO_LOSSES), np.int64(0))
    result = Result("cochran_q", table, caution, cochran_q.record.facts())
    return flag_ignored_sources(result, log.design, of_means=False)


def compute(cell: Moments, models: int) -> tuple[FloatArray, FloatArray]:
    """Cochran's Q and its p-value, from the differences of all pairs of models.

    With b and c the discordant points of a pair, ``Q = (M - 1) sum (b - c)^2 / sum (b + c)``:
    of two models it is McNemar's statistic. Columns of ``cell`` are pairs by carried cells.
    """
    n01, n10 = (part.reshape(models * (models - 1) // 2, -1) for part in count_discordant(cell))
    total = (n01 + n10).sum(axis=0)
    q = (models - 1) * ((n10 - n01) ** 2).sum(axis=0) / np.maximum(total, 1)
    p = np.where(np.isnan(q), np.nan, special.chdtrc(models - 1, q))
    return q, p
