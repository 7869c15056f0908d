"""Intervals for the mean loss: the public functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from cvstats.api.answering import answered
from cvstats.api.options import checked
from cvstats.api.running import (
    Alternative,
    Losses,
    Missing,
    Table,
    checked_alpha,
    checked_numbers,
    run_cv_t,
    run_holdout,
    run_naive,
    run_quadratic,
    run_wald,
)
from cvstats.api.running_parts import wald_of_parts
from cvstats.intervals.quadratic import three_numbers

__all__ = ["cv_t", "holdout", "naive", "quadratic", "wald"]


def holdout(
    losses: Losses,
    *,
    interval: Literal["wald", "t", "wilson", "clopper-pearson"] = "wald",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Interval for the risk of one trained model, from one test set.

    The target is the mean loss that this very model would have over points drawn as the test
    points were. The estimate is the mean m of the n test losses and its standard error
    ``sqrt(sum (e_i - m)^2 / ((n - 1) n))``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss for each point of one test set, in any unit. Several repetitions on the same
        points (seeds, epochs) are averaged point by point first.
    interval : {"wald", "t", "wilson", "clopper-pearson"}, optional
        The limits: normal or Student quantiles (n - 1 degrees of freedom); or, for losses of
        0 and 1, Wilson's score interval or the exact one of Clopper and Pearson.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``df`` for
        ``"t"``, ``n_points``, ``n_repetitions`` and ``caution``; a row for each model, or
        variables over the carried dimensions.

    Raises
    ------
    LogError
        If the log has several folds, fewer than two points, repetitions on different points,
        or losses other than 0 and 1 for an interval of proportions.

    Notes
    -----
    Exact as n grows, for independent test points. It does not cover what another training
    set would have given, nor the model refitted on all the data. Where no loss is 1 the Wald
    interval is a point; the two intervals for proportions keep a width.

    References
    ----------
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.
    Wilson (1927), doi:10.1080/01621459.1927.10502953.
    Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> points = pd.RangeIndex(50, name="point")
    >>> losses = pd.Series([0.0, 1.0, 0.0, 0.0, 1.0] * 10, index=points, name="tree")
    >>> cvstats.holdout(losses, interval="wilson").round(4)
           estimate   lower   upper    se caution
    model
    tree        0.4  0.2761  0.5382  0.07
    """
    options: dict[str, Any] = {"interval": interval, "alpha": alpha}
    checked("holdout", options)
    return answered(losses, partial(run_holdout, **options), by=by, missing=missing)


def wald(
    losses: Losses,
    *,
    variance: Literal["all-pairs", "within-fold"] = "all-pairs",
    fold_weights: Literal["size", "equal"] = "size",
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Wald interval for the cross-validated test error.

    The target is the average test error of the models that this cross-validation trained:
    ``R_n``, the mean over points of the loss that each fold's model has on new points. The
    estimate is the mean R of all losses and the variance of the mean is ``sigma^2 / n`` with

    - all-pairs: ``sigma^2 = (1/n) sum_i (e_i - R)^2``,
    - within-fold: ``sigma^2 = sum_k (n_k / n) var_k``, with ``var_k`` the sample variance of
      the losses of fold k.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition, leave-one-out, or several repetitions of a partition of the same
        points. Losses in any unit.
    variance : {"all-pairs", "within-fold"}, optional
        Deviations from the overall mean, or from the mean of each fold. The second needs two
        points in each fold and rests on the weaker stability condition.
    fold_weights : {"size", "equal"}, optional
        How folds of different sizes count in ``sigma^2``: by their sizes, or all alike. The
        estimate is the mean over points either way.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` gives an upper limit only, ``"greater"`` a lower one.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``n_points``,
        ``n_folds``, ``n_repetitions`` and ``caution``; a row for each model, or variables
        over the carried dimensions.

    Raises
    ------
    LogError
        If the repetitions do not test the same points, there is one point only, or a fold of
        one point meets ``variance="within-fold"``.

    Notes
    -----
    Exact as n grows, if the loss of the learner is stable under the exchange of one training
    point (all-pairs asks a little more than within-fold). The target has the size of the
    training folds, n (1 - 1/K), and does not contain the chance of the training data: for
    the expected risk the interval is too narrow, clearly so for unstable learners such as
    single trees.

    With r repetitions the variances are averaged and divided by n, never by n times r: the
    points are the same each time. This form is conservative beside the variance of the
    losses averaged point by point.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), Cross-validation confidence intervals for test
    error, NeurIPS 33, arXiv:2007.12671.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> losses.cvci.wald().round(1)
                   estimate   lower   upper     se caution
    model
    ridge            3006.2  2640.4  3371.9  186.6
    random_forest    3188.0  2807.1  3568.9  194.3
    """
    options: dict[str, Any] = {
        "variance": variance,
        "fold_weights": fold_weights,
        "alternative": alternative,
        "alpha": alpha,
    }
    checked("wald", options)
    run, at_once = partial(run_wald, **options), partial(wald_of_parts, **options)
    return answered(losses, run, by=by, missing=missing, at_once=at_once)


def naive(
    losses: Losses, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Table:
    """All losses taken for independent: what many reports do, kept for comparison.

    The claimed target is the expected risk. The estimate is the mean m of the N losses and
    its standard error ``sqrt(sum (e_i - m)^2 / ((N - 1) N))``, with N the number of points
    times repetitions.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition of the points, or several repetitions of one.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper``, ``n_points``, ``n_folds``,
        ``n_repetitions`` and a ``caution`` that is never empty.

    Raises
    ------
    LogError
        If the log is no partition.

    Notes
    -----
    No guarantee. On one repetition the number is that of `wald` up to ``sqrt(n / (n - 1))``,
    for a target that it does not cover. On r repetitions it shrinks with ``sqrt(r)`` although
    no new point was seen.

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
           estimate   lower   upper    se             caution
    model
    ridge    3006.2  2890.5  3121.8  59.0  dependence ignored
    """
    checked_alpha(alpha)
    return answered(losses, partial(run_naive, alpha=alpha), by=by, missing=missing)


def cv_t(
    losses: Losses, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Table:
    """Fold means taken for independent: a t interval, kept for comparison.

    The claimed target is the expected risk. The estimate is the mean of the K fold means m_k
    and its standard error ``sqrt(sum (m_k - mean m)^2 / ((K - 1) K))``; the limits take
    Student's t with K - 1 degrees of freedom. With repetitions K counts all folds of all of
    them.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with K >= 2, or several repetitions of one.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate`` (the mean over folds), ``se``, ``lower``, ``upper``, ``df``,
        ``n_points``, ``n_folds``, ``n_repetitions`` and a ``caution`` that is never empty.

    Raises
    ------
    LogError
        If the log has fewer than two folds or is no partition.

    Notes
    -----
    No guarantee. For one repetition the squared standard error misses the true variance by
    the covariance gamma between losses of different folds, which one log cannot tell.

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
           estimate   lower   upper     se  df          caution
    model
    ridge    3026.6  2597.8  3455.5  189.6   9  dependent folds
    """
    checked_alpha(alpha)
    return answered(losses, partial(run_cv_t, alpha=alpha), by=by, missing=missing)


def quadratic(
    losses: Losses,
    *,
    estimator: Literal["theta_1", "theta_2", "theta_3", "theta_4", "theta_5"] = "theta_5",
    bias: Sequence[float] | None = None,
    fold_weights: Literal["size", "equal"] = "size",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Interval from a quadratic estimator of the variance of a cross-validated mean.

    The target is the expected risk at the size of the training folds. Losses have variance
    sigma^2, covariance omega within a fold and gamma between folds; the variance theta of the
    mean mixes the three, and no estimator from one log is unbiased for it whatever they are.
    Each named estimator is unbiased under an assumption of its own.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        One K-fold partition with K >= 2 and folds of any sizes.
    estimator : {"theta_1", "theta_2", "theta_3", "theta_4", "theta_5"}, optional
        Unbiased if, in this order: mu = 0; omega = 0; gamma = 0; S2 omega + (1 - S2) gamma =
        0; omega = 2 gamma.
    bias : sequence of 3 floats, optional
        In place of a name, the bias wanted: ``(a1, a2, a3)`` for ``a1 sigma^2 + a2 omega +
        a3 gamma + a4 mu^2``, where ``a4 = a1 + a2 + a3 + 1`` follows. ``(0, 1, -2)`` is
        theta_5. Unless a4 is 0 the estimator is no longer blind to a shift of all losses.
    fold_weights : {"size", "equal"}, optional
        Whether the estimate is the mean over points or the mean of the fold means; the
        variance is estimated for that mean.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper``, ``df`` (theta_3), ``variance_raw`` (the
        estimate of theta before any floor, in squared units of the loss), ``n_points``,
        ``n_folds`` and ``caution``.

    Raises
    ------
    LogError
        If the log has several repetitions, fewer than two folds, or folds of one point (save
        for theta_1 and theta_3).

    Notes
    -----
    Heuristic. Limits use the normal law, and Student's t with K - 1 degrees of freedom for
    theta_3. A negative theta_2, theta_3 or theta_5 is replaced by ``H W``, what theta would
    be if all losses were uncorrelated, and ``caution`` says so; a negative estimate with a
    ``bias`` of one's own has no floor and gives NaN.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300.
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge").xs(0, level="repetition")
    >>> by_name = losses.cvci.quadratic(estimator="theta_3")
    >>> by_bias = losses.cvci.quadratic(bias=(0, 0, -1))
    >>> bool(abs(by_name.loc["ridge", "se"] - by_bias.loc["ridge", "se"]) < 1e-9)
    True
    """
    options: dict[str, Any] = {
        "estimator": estimator,
        "bias": bias,
        "fold_weights": fold_weights,
        "alpha": alpha,
    }
    checked("quadratic", options)
    if bias is not None:
        checked_numbers("bias", bias, several=True)
        three_numbers(bias)
    return answered(losses, partial(run_quadratic, **options), by=by, missing=missing)
