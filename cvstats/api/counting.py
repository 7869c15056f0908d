"""Do models err on different points? Tests for losses of 0 and 1."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from cvstats.api.pairs import columns_of, every_two, paired
from cvstats.api.running import Losses, Missing, Table
from cvstats.comparisons import discordance
from cvstats.comparisons.paired import ADJUSTMENTS, adjusted
from cvstats.containers import Log, read
from cvstats.core.cautions import Caution
from cvstats.core.chunked import all_binary
from cvstats.core.result import Result
from cvstats.errors import LogError, checked_choice, checked_flag
from cvstats.intervals.registry import require

__all__ = ["cochran_q", "mcnemar"]


def checked_binary(log: Log, method: str) -> None:
    """Refuse losses other than 0 and 1; carried cells may be masked."""
    masked = log.masked()
    if len(masked) == 0 and all_binary(log.design, log.panels):
        return
    for j in np.setdiff1d(np.arange(log.panels.width), masked).tolist():
        values = log.panels.column(j, 0, log.design.size)
        here = values if log.design.present is None else values[log.design.present]
        odd = here[(here != 0) & (here != 1) & ~np.isnan(here)]  # NaN is named by its label later
        if len(odd):
            raise LogError(
                f"{method} needs losses that are 0 or 1, and {log.name(j)} holds {odd[0]:g}. "
                f"Expected the zero-one loss: cvstats.losses(…, loss='zero_one'); for other "
                f"losses, use compare."
            )


def mcnemar(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    test: Literal["exact", "chi2", "mid-p"] | None = None,
    correction: bool = False,
    adjust: Literal["holm", "bh"] | None = "holm",
    missing: Missing = "raise",
) -> Any:
    """Test whether two models err equally often, from the points on which they disagree.

    The target is the difference of the error rates of the models that were trained. If they
    err equally often, each discordant point is as likely to be an error of one as of the
    other.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Losses of 0 and 1 of one model, or of several; each point evaluated once.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    test : {"exact", "chi2", "mid-p"}, optional
        The binomial test, McNemar's chi-squared with one degree of freedom, or the binomial
        test that counts half of the observed table. Without it the exact test below 25
        discordant points and chi-squared from there on.
    correction : bool, optional
        Whether chi-squared is corrected for continuity (Edwards), never beyond zero.
    adjust : {"holm", "bh", None}, optional
        How ``p_adjusted`` allows for several comparisons, as in `compare`.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``n01`` (points with loss 0 of the model and 1 of the other: only the other errs),
        ``n10`` (only the model errs), ``statistic`` (chi-squared; for the binomial tests the
        smaller of the two counts), ``p_value`` (two-sided), with several comparisons
        ``p_adjusted``, ``test``, ``n_points`` and ``caution``.

    Raises
    ------
    LogError
        If a loss is neither 0 nor 1, or points are evaluated more than once (repetitions).

    Notes
    -----
    Exact given the models, for one test set. Over the folds of cross-validation the counts are
    pooled: asymptotically it is then `compare`, whose z satisfies
    ``z^2 = chi2 / (1 - chi2 / n)``. Neither knows about the luck of the training data. Models
    that never disagree have p = 1.

    Some authors number the same cells by correct (1) and wrong (0), which swaps ``n01`` and
    ``n10``.

    References
    ----------
    McNemar (1947), doi:10.1007/BF02295996.
    Dietterich (1998), doi:10.1162/089976698300017197.
    Fagerland, Lydersen and Laake (2013), doi:10.1186/1471-2288-13-91.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> late = (log[log.attrs["models"]] > 0.5).astype(float).assign(y_true=log["y_true"])
    >>> losses = cvstats.losses(late, prediction=log.attrs["models"], loss="zero_one")
    >>> table = losses.cvci.mcnemar(reference="gradient_boosting")
    >>> table[["n01", "n10", "statistic", "p_adjusted", "test"]].round(4)
                                           n01  n10  statistic  p_adjusted  test
    model               other
    logistic_regression gradient_boosting  105  114     0.3699      0.5431  chi2
    naive_bayes         gradient_boosting  448  584    17.9225      0.0000  chi2
    """
    checked_choice("adjust", adjust, (*ADJUSTMENTS, None))
    checked_choice("test", test, discordance.TESTS)
    checked_flag("correction", correction)
    log, pairs, gaps = paired(losses, other, reference, missing)
    require("mcnemar", log.design)
    checked_binary(log, "mcnemar")
    result = discordance.mcnemar(log.moments((), gaps), test=test, correction=correction)
    if len(pairs) > 1 and adjust is not None:
        p = adjusted(result.columns["p_value"].reshape(len(pairs), -1), adjust).reshape(-1)
        names = list(result.columns)
        names.insert(names.index("p_value") + 1, "p_adjusted")
        columns = {**result.columns, "p_adjusted": p}
        attrs = {**result.attrs, "adjust": adjust}
        result = replace(result, columns={name: columns[name] for name in names}, attrs=attrs)
    return log.label_pairs(pairs, result)


def cochran_q(losses: Losses, *, missing: Missing = "raise") -> Table:
    """Test whether several models err equally often: Cochran's Q.

    The target is the error rates of the models that were trained. With b and c the discordant
    points of two of M models, ``Q = (M - 1) sum (b - c)^2 / sum (b + c)`` over all pairs, to be
    compared with chi-squared of M - 1 degrees of freedom. Of two models it is McNemar's
    statistic.

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

    Notes
    -----
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
    require("cochran_q", log.design)
    columns = columns_of(log)
    models = len(columns)
    if models < 2:
        raise LogError("the log holds one model. Expected two or more.")
    checked_binary(log, "cochran_q")
    estimate = log.moments(()).mean[0]
    cell = log.moments((), every_two(log))
    q, p = discordance.cochran(cell, models)
    width = log.panels.width
    found = {name: np.empty(width) for name in ("statistic", "p_value")}
    found["statistic"][columns], found["p_value"][columns] = q, p
    table = {
        "estimate": estimate,
        "statistic": found["statistic"],
        "df": np.full(width, models - 1),
        "p_value": found["p_value"],
        "n_points": np.full(width, int(cell.count[0])),
    }
    caution = np.where(np.isnan(estimate), np.int64(Caution.NO_LOSSES), np.int64(0))
    return log.label(Result("cochran_q", table, caution))
