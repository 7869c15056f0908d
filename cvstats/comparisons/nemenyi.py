"""Which of many models differ over many data sets? Nemenyi's test on their mean ranks."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.comparisons._mean_ranks import (
    DEMSAR,
    critical_difference,
    rank_error,
    read_data_sets,
    several_data_sets,
)
from cvstats.core.cautions import Caution
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.intervals._method import Comparison
from cvstats.large.frames import later
from cvstats.log.log import Losses
from cvstats.log.read import is_dask_frame
from cvstats.options import Missing


@Comparison(
    requires=several_data_sets,
    needs="a level that names data sets, two or more, and three models or more",
    target="differences of mean ranks over data sets drawn as these were",
    guarantee="exact as the data sets grow, if they are independent",
    fits="as the log has",
    reference=DEMSAR,
    models=3,
    takes_scores=True,
    needs_pairs=False,
    level_option="by",
    takes_metrics="averaged",
)
def nemenyi(
    losses: Losses, *, by: str = "source", alpha: float = 0.05, missing: Missing = "raise"
) -> Any:
    r"""Test which of many models differ over many data sets, by their mean ranks.

    For each two models the difference of their mean ranks (as in `friedman`) is compared to the
    studentized range, which allows for all pairs at once: a difference above the critical
    difference is significant. The target is the population from which the data sets were drawn.

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

    The normal approximation of mean ranks needs about ten data sets and five models. With
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
    if is_dask_frame(losses):
        ask = partial(nemenyi, by=by, alpha=alpha)
        return later(losses, ask, levels=(by,), missing=missing)
    log, ranks, columns = read_data_sets(losses, by, missing, nemenyi.record)
    k, n = len(columns), len(ranks)
    rank = ranks.mean(axis=0)[columns]
    left, right = np.triu_indices(k, 1)
    gap = (rank[left] - rank[right]).reshape(-1)
    table: dict[str, NDArray[Any]] = {
        "rank_difference": gap,
        "p_value": compute(gap, n, k),
        "critical_difference": np.full(gap.shape, critical_difference(n, k, alpha)),
        "n_blocks": np.full(gap.shape, n),
    }
    caution = np.where(np.isnan(gap), np.int64(Caution.NO_LOSSES), np.int64(0))
    attrs: dict[str, Any] = {**nemenyi.record.facts(), "by": by, "alpha": alpha}
    pairs = list(combinations(log.labels.models, 2))
    return log.label_pairs(pairs, Result("nemenyi", table, caution, attrs))


def compute(gap: FloatArray, n: int, k: int) -> FloatArray:
    """Compute adjusted p-values of differences of mean ranks of k models on n data sets."""
    from scipy import stats

    known = ~np.isnan(gap)
    p = np.full(gap.shape, np.nan)
    p[known] = stats.studentized_range.sf(np.abs(gap[known]) / rank_error(n, k), k, np.inf)
    clipped: FloatArray = np.clip(p, 0.0, 1.0)
    return clipped
