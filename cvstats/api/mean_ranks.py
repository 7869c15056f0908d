"""Many models on many data sets, and which of them differ by their ranks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.api.pairs import columns_of
from cvstats.api.running import Losses, Missing, Table, checked_alpha
from cvstats.comparisons import ranks
from cvstats.containers import Log, is_dask_frame, later, read
from cvstats.core.cautions import Caution
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_choice, checked_level, listed

__all__ = ["friedman", "nemenyi"]


def blocks_of(losses: Losses, by: str, missing: str) -> tuple[Log, FloatArray, IntArray]:
    """Average each model over each data set: data sets by columns."""
    checked_level("by", by)
    log = replace(read(losses, missing=missing), used=(by,))
    if by not in log.design.levels:
        raise LogError(
            f"the log has no level {by!r}. Expected the level that tells data sets apart, as in "
            f"by='dataset'; it has {listed(map(repr, log.design.levels)) or 'none'}."
        )
    columns = columns_of(log)
    means = log.moments((by,)).mean
    ranks.checked_blocks(len(means), len(columns), by)
    return log, means, columns


def friedman(
    losses: Losses,
    *,
    by: str = "source",
    test: Literal["chi2", "f"] = "chi2",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Test whether many models differ over many data sets, by their ranks.

    Within each data set the models are ranked by mean loss (1 is best, ties share the mean of
    their ranks). Friedman's statistic measures how far the mean ranks R_j of k models over N data
    sets are apart; without ties it is ``12 N / (k (k + 1)) sum_j (R_j - (k + 1) / 2)^2``. The
    target is the population from which the data *sets* were drawn, not that of their points.

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

    Notes
    -----
    Data sets are taken for independent, and nothing is assumed about their points. How surely
    a model is better *within* a data set does not count, and ranks of a model depend on which
    others are in the log. `nemenyi` tells which models differ.

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
    checked_alpha(alpha)
    checked_choice("test", test, ranks.TESTS)
    if is_dask_frame(losses):
        ask = partial(friedman, by=by, test=test, alpha=alpha)
        answer: Table = later(losses, ask, levels=(by,), missing=missing)
        return answer
    log, means, columns = blocks_of(losses, by, missing)
    k, cells = columns.shape
    found = {name: np.full((k, cells), np.nan) for name in ("mean_rank", "statistic", "p_value")}
    for c, cell in enumerate(columns.T):
        if not np.isnan(means[:, cell]).any():
            found["mean_rank"][:, c] = ranks.mean_ranks(means[:, cell])
            found["statistic"][:, c], found["p_value"][:, c] = ranks.friedman(
                means[:, cell], test=test
            )
    width = log.panels.width
    table: dict[str, NDArray[Any]] = {}
    for name, values in found.items():
        table[name] = np.empty(width)
        table[name][columns] = values
    table["critical_difference"] = np.full(width, ranks.nemenyi_distance(len(means), k, alpha))
    table["n_blocks"] = np.full(width, len(means))
    missed = np.isnan(table["mean_rank"])
    caution = np.where(missed, np.int64(Caution.NO_LOSSES), np.int64(0))
    attrs: dict[str, str | float | int] = {"by": by, "test": test, "alpha": alpha}
    return log.label(Result("friedman", table, caution, attrs))


def nemenyi(
    losses: Losses, *, by: str = "source", alpha: float = 0.05, missing: Missing = "raise"
) -> Any:
    """Test which of many models differ over many data sets, by their mean ranks.

    For each two models the difference of their mean ranks (as in `friedman`) is compared to
    the studentized range: the p-values allow for all pairs at once. With k models over N data
    sets and q its quantile, the critical difference is ``q sqrt(k (k + 1) / (12 N))``. The target
    is the population from which the data sets were drawn.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A column for each of three models or more.
    by : str, optional
        The level whose labels are the data sets.
    alpha : float, optional
        One minus the level of the critical difference.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        For each pair ``rank_difference`` (negative: the model is better), ``p_value``
        (adjusted), ``critical_difference``, ``n_blocks`` and ``caution``; a frame is indexed by
        ``(model, other)``, an array has a dimension ``pair``.

    Raises
    ------
    LogError
        If there are fewer than three models or two data sets, or no such level.

    Notes
    -----
    The normal approximation of mean ranks asks for some ten data sets and five models. With
    few data sets no difference of ranks can be significant.

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
    checked_alpha(alpha)
    if is_dask_frame(losses):
        ask = partial(nemenyi, by=by, alpha=alpha)
        return later(losses, ask, levels=(by,), missing=missing)
    log, means, columns = blocks_of(losses, by, missing)
    k, cells = columns.shape
    mean_rank = np.full((k, cells), np.nan)
    for c, cell in enumerate(columns.T):
        if not np.isnan(means[:, cell]).any():
            mean_rank[:, c] = ranks.mean_ranks(means[:, cell])
    left, right = np.triu_indices(k, 1)
    gap = (mean_rank[left] - mean_rank[right]).reshape(-1)
    table: dict[str, NDArray[Any]] = {
        "rank_difference": gap,
        "p_value": ranks.nemenyi(gap, len(means), k),
        "critical_difference": np.full(gap.shape, ranks.nemenyi_distance(len(means), k, alpha)),
        "n_blocks": np.full(gap.shape, len(means)),
    }
    caution = np.where(np.isnan(gap), np.int64(Caution.NO_LOSSES), np.int64(0))
    models = list(log.labels.models)
    result = Result("nemenyi", table, caution, {"by": by, "alpha": alpha})
    return log.label_pairs(list(combinations(models, 2)), result)
