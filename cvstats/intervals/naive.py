"""Intervals that treat losses, or fold means, as independent: examples of what not to use."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.folds import count_folds_by_group, fold_levels, repetition_level
from cvstats.core.results import Result, interval
from cvstats.errors import LogError
from cvstats.intervals._method import BATES, BAYLE, IntervalMethod
from cvstats.intervals._requirements import partition, several_folds
from cvstats.log.log import Log
from cvstats.options import Missing


@IntervalMethod(
    requires=partition,
    needs="a K-fold partition",
    target="expected risk (claimed, but not covered)",
    guarantee="none: dependent losses are treated as independent",
    fits="K for each repetition",
    reference=BATES,
    plan="k_fold",
    claims_too_much=True,
    groups_at_once=True,
)
def naive(
    log: Log, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Result:
    r"""Interval that treats all losses as independent, included only for comparison.

    The claimed target is the expected risk. The estimate is the mean of all losses, and its
    standard error is their standard deviation divided by the square root of their number, which
    is the number of points times the number of repetitions.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition of the points, or several repetitions of one.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, and a ``caution`` that is never empty.
        ``n_points``, ``n_folds`` and ``n_repetitions`` are in ``attrs``, or columns if they vary
        between rows.

    Raises
    ------
    LogError
        If the log is not a partition.

    See Also
    --------
    cvstats.wald : The interval to use on folds.
    cvstats.holdout : The interval to use on one test set.
    cvstats.clustered : The interval to use for groups of points.

    Notes
    -----
    With e_i the N losses and m their mean,

    .. math::

        \mathrm{se}^2 = \frac{1}{N (N - 1)} \sum_i (e_i - m)^2 .

    The interval has no guarantee. For one repetition, the standard error equals that of `wald` up
    to ``sqrt(n / (n - 1))``, but the interval does not cover the target that is usually claimed for
    it. With r repetitions, it is narrower by a factor of ``sqrt(r)``, although no new points were
    evaluated.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445,
    doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> losses.cvci.naive().round(1)
          estimate  lower  upper  se             caution
    model
    ridge    3,006  2,890  3,122  59  dependence ignored
    """
    # Treat all losses as independent: ``sd / sqrt(number of losses)``.
    cells = log.moments(repetition_level(log.design))
    whole = cells.over(())
    n, repetitions = whole.count[:, None], cells.n_cells
    if n.min() < 2:
        raise LogError(f"naive needs at least two losses, but this log has {n.min():.0f}.")
    return interval(
        "naive", whole.mean, whole.m2 / ((n - 1) * n), origin=whole.origin, alpha=alpha,
        extra={
            "n_points": (n // repetitions).astype(np.int64),
            "n_folds": count_folds_by_group(log.design), "n_repetitions": repetitions,
        },
        caution=Caution.DEPENDENCE_IGNORED,
    )  # fmt: skip


@IntervalMethod(
    requires=several_folds,
    needs="a K-fold partition with at least two folds",
    target="expected risk (claimed, but not covered)",
    guarantee="none: dependent fold means are treated as independent",
    fits="K for each repetition",
    reference=BAYLE,
    plan="k_fold",
    takes_means=True,
    claims_too_much=True,
    takes_metrics="averaged",
    groups_at_once=True,
)
def cv_t(
    log: Log, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Result:
    r"""Interval that treats fold means as independent, included only for comparison.

    The claimed target is the expected risk. The estimate is the mean of the K fold means. Its
    standard error is their standard deviation divided by sqrt(K), and the limits use Student's t
    distribution with K - 1 degrees of freedom. With several repetitions, K is the total number of
    folds.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with K >= 2, or several repetitions of one.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate`` (the mean over
        folds), ``lower``, ``upper`` and ``se`` in the units of the loss, ``df``, and a
        ``caution`` that is never empty. ``n_points``, ``n_folds`` and ``n_repetitions`` are in
        ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If the log has fewer than two folds or is not a partition.

    See Also
    --------
    cvstats.wald : The interval to use on folds.
    cvstats.corrected_t : The same folds, accounting for overlapping training sets.
    cvstats.quadratic : Other variances from the same folds.

    Notes
    -----
    With m_k the mean loss of fold k, and m the mean of these,

    .. math::

        \mathrm{se}^2 = \frac{1}{K (K - 1)} \sum_k (m_k - m)^2 .

    The interval has no guarantee. For one repetition, the squared standard error omits the
    covariance gamma between losses of different folds, which cannot be estimated from one log.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671.
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> losses.xs(0, level="repetition").cvci.cv_t().round(1)
          estimate  lower  upper   se df             caution
    model
    ridge    3,027  2,598  3,456  190  9  dependence ignored
    """
    # Treat all fold means as independent.
    cells = log.moments(fold_levels(log.design))
    repetitions, k = cells.over(repetition_level(log.design)).n_cells, cells.n_cells
    estimate, squares = cells.mean_and_squares()
    n_points = (cells.sum(cells.count) // repetitions).astype(np.int64)
    return interval(
        "cv_t", estimate, squares / (k - 1) / k, origin=cells.origin, alpha=alpha, df=k - 1,
        extra={
            "n_points": n_points, "n_folds": k // repetitions,
            "n_repetitions": repetitions,
        },
        caution=Caution.DEPENDENCE_IGNORED,
    )  # fmt: skip
