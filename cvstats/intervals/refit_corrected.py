"""Interval for the difference of two models that are refitted in every fold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.folds import count_folds, fold_levels
from cvstats.core.results import Result, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError
from cvstats.intervals._method import BAYLE, IntervalMethod
from cvstats.intervals._requirements import named_points_in_folds
from cvstats.intervals._stability import (
    NEARLY_ALIKE,
    find_alike,
    measure_refits,
    read_partitions,
    widen_one_partition,
)
from cvstats.intervals.clustered import clustered
from cvstats.log.log import Log
from cvstats.log.loss_checks import find_whole
from cvstats.options import Missing

NEEDS = (
    "differences of models in K-fold cross-validation, preferably repeated with different "
    "partitions"
)


OF_SOURCES = Caution.SOURCES_IGNORED | Caution.DUPLICATED_POINTS | Caution.SERIAL_DEPENDENCE
"""Cautions that do not apply if sources are the sampling units."""


def find_problem(log: Log) -> str | None:
    """Explain why a log does not show how much refitting adds to the variance of a column."""
    if not log.design.has("repetition"):
        if log.pairs is not None and not log.design.metric:
            return None
        other = (
            "" if log.design.metric else
            ", or the losses of two models: losses.cvci.compare(method='refit_corrected')"
        )  # fmt: skip
        return (
            "the log has one repetition. Expected at least two with different folds "
            f"(cvstats.plans.repeated_k_fold){other}."
        )
    whole = log if log.cells is None else find_whole(log)
    if whole is not None and read_partitions(whole.design).are_equal():
        return (
            f"all {log.design.number('repetition'):,} repetitions divide the points into the "
            "same folds, so the log does not show how much the models depend on the training "
            "points. Repeat the cross-validation with different folds, as "
            "cvstats.plans.repeated_k_fold does, or use wald."
        )
    return None


@IntervalMethod(
    requires=named_points_in_folds,
    of_losses=find_problem,
    needs=NEEDS,
    target="difference of two models in the average test error of the models trained in this "
    "cross-validation",
    guarantee="approximate: accounts to second order for points in each other's training sets; "
    "conservative for randomized learners",
    fits="K for each repetition",
    reference=f"{BAYLE}; derived on the theory page 'The difference of two refitted models'",
    plan="k_fold",
    needs_losses=True,
    takes_kept_losses=True,
    takes_lazy_losses=True,
)
def refit_corrected(
    log: Log, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Result:
    r"""Interval for the difference of two models that are refitted in every fold.

    The target is the average difference between the test errors of the models trained in this
    cross-validation. Every point is tested by models that were trained on other points, and is
    itself used to train the models that are tested on those points. If the two models are nearly
    the same, this mutual training matters as much as their difference, and `wald` can underestimate
    the variance by up to one half, for any number of points. Repeated cross-validation shows how
    much variance is missing, and this interval adds it. `compare` uses it by default for repeated
    cross-validation.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Differences of losses from `difference`, or losses, in K-fold cross-validation with the
        level ``point``, repeated with other partitions of the same points. Any unit. Logs of
        metrics are accepted.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each pair of models, or variables over the carried dimensions: ``estimate``,
        ``lower``, ``upper`` and ``se`` in the units of the loss, and ``caution``. ``n_points``,
        ``n_folds`` and ``n_repetitions`` are in ``attrs``, or columns if they vary between rows.
        With sources as sampling units also ``df`` and ``n_clusters``.

    Raises
    ------
    LogError
        If all repetitions have the same partition; or if there is one repetition, except in
        `compare`, which uses the losses of both models, but not for metrics.

    See Also
    --------
    cvstats.compare : Differences between models, with tests.
    cvstats.wald : The interval that treats points as independent.
    cvstats.corrected_t : For the expected risk of the algorithms.

    Notes
    -----
    With n points, K folds and R repetitions,

    .. math::

        \mathrm{se}^2 = W + K \min\{\max(C + h, 0), s\},

    where W is the squared standard error of `wald`, s the mean variance of a point's difference
    over repetitions, divided by n, C comes from products of the residuals of two points in one
    fold, and ``h = s sqrt(2 / (R K))`` is its noise. The theory page derives it. In simulations of
    nearly equal models with 100 points or more it covered .93 or more with three repetitions and
    .95 with ten, where `wald` covered .72 to .86; for clearly different models it is 1.0 to 1.25
    times as wide. For highly randomized learners, such as forests with different seeds, it is up
    to 2.2 times as wide. The derivation does not cover random splits, where `corrected_t`
    covers .91 to .98 (1,000 simulations each).

    For metrics, the pseudo-losses of the points are used, which is a linear approximation. In 400
    simulations of two logistic regressions (200 points, 3 repetitions of 5 folds) it covered .95 or
    more of differences of AUC and F1, where `wald` covered .87 to .98. `compare` only uses it for
    metrics with ``method="refit_corrected"``, and `summary` where the caution is ``unstable
    difference``.

    If folds keep sources whole, sources are the sampling units instead of points: W is the
    variance of `clustered` plus ``(1 - 1 / R) s``, s and C come from sums over the points of each
    source, and the quantile is Student's t with the degrees of freedom of `clustered`. In
    simulations of nearly equal models with 12 to 100 sources it covered .97 or more, where
    `clustered` covered .73 to .89.

    A single partition contains no information about mutual training. If the two models differ
    clearly, the interval is then that of `wald`. Otherwise it is the wider of two intervals:
    `corrected_t`, and `wald` with twice the variance, which is the most that mutual training can
    add (at 95%; at other levels with the same standard error). By default, `compare` widens the
    interval only for very similar models. It is better to add a second partition.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), Cross-validation confidence intervals for test
    error, NeurIPS 33, arXiv:2007.12671.
    Bayle, Janson and Mackey (2025), arXiv:2508.04409.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "gradient_boosting"])
    >>> losses.cvci.difference().cvci.refit_corrected()[["estimate", "lower", "upper"]].round(0)
                            estimate lower upper
    model other
    ridge gradient_boosting     -143  -406   119
    """
    if log.cells is not None and log.pairs is not None:
        log.moments(())  # raises for logs without pairs, even if they come with losses
    log = find_whole(log) or log.rows()
    design, cut = log.design, read_partitions(log.design)
    repetitions, width = cut.n_repetitions, log.values.width
    of_pairs = log.pairs is not None and repetitions == 1
    if (words := find_problem(log)) is not None:
        raise LogError(f"refit_corrected needs {NEEDS}; {words}")
    counts: dict[str, Any] = {
        "n_points": cut.n_points, "n_folds": count_folds(design), "n_repetitions": repetitions,
    }  # fmt: skip
    caution: IntArray | int = int(Caution.FEW_POINTS) if cut.n_points < ENOUGH_POINTS else 0
    df: FloatArray | None = None
    by_source: FloatArray | None = None  # the variance with sources as the sampling units
    if cut.source is not None:
        base = clustered.record.formula(log, alpha=alpha)
        by_source, df, caution = base.columns["se"] ** 2, base.columns["df"], base.caution
        counts |= {"n_clusters": cut.n_units}
    mean, variance, origin = np.full((3, width), np.nan)
    if of_pairs:
        folds = log.moments(fold_levels(design))
        whole = folds.over(())
        mean, origin = whole.mean[0], whole.origin
        of_points = whole.m2[0] / whole.count**2
        variance = of_points if by_source is None else by_source
        alike = find_alike(log, of_points)[0] < NEARLY_ALIKE
        variance = np.where(alike, widen_one_partition(folds, variance)[0] ** 2, variance)
    for j, column in enumerate(() if of_pairs else log.columns()):
        if column is not None:
            values = column[design.here]
            origin[j] = values[0]
            found = measure_refits(values - values[0], cut)
            mean[j], variance[j] = found.mean, found.total
            if by_source is not None:
                variance[j] = by_source[j] + found.beyond_averages
    result = interval(
        "refit_corrected", mean, variance, origin=np.nan_to_num(origin), alpha=alpha, df=df,
        extra=counts, caution=caution,
    )  # fmt: skip
    return result if cut.source is None else replace(result, allows_for=OF_SOURCES)
