"""Intervals from logs of several resamplings: the public functions."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from cvstats.api.answering import answered
from cvstats.api.options import checked
from cvstats.api.running import Losses, Missing, Table, checked_alpha
from cvstats.api.running_resampled import (
    TrainSize,
    checked_train_size,
    run_conservative_z,
    run_corrected_t,
    run_five_by_two,
    run_nested_cv,
    run_replace_one,
)

__all__ = ["conservative_z", "corrected_t", "five_by_two", "nested_cv", "replace_one"]


def corrected_t(
    losses: Losses,
    *,
    train_size: TrainSize = None,
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Corrected resampled t interval, from random splits or the folds of cross-validation.

    The target is the expected risk at the size of the training sets. With m_j the mean loss of
    test set j of J, the estimate is the plain mean of the m_j and its variance is
    ``(1/J + n_test / n_train) S^2``, where S^2 is their sample variance. The limits take
    Student's t with J - 1 degrees of freedom.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Random splits, each a ``repetition`` with a test set of its own, or a K-fold partition,
        repeated or not. Any unit; losses that are one score for each split do as well.
    train_size : float, sequence, mapping or Series, optional
        On how many points each model was trained: one number, or one for each split, in the
        order of their labels or by label. Folds tell it themselves: it is what they leave of
        their repetition. Random splits do not, unless `cvstats.evaluate` made the log and noted
        it in ``losses.attrs["n_train"]``.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate`` (the mean over splits), ``se``, ``lower``, ``upper`` in the unit of the
        loss, ``df``, ``n_splits`` (J), ``n_train`` and ``n_test`` (points of a training and a
        test set, averaged over splits), ``n_points`` where the log has the level ``point``,
        and ``caution``.

    Raises
    ------
    LogError
        If there are fewer than two test sets, or ``train_size`` is not given for random splits
        or is no number of points.

    Notes
    -----
    Heuristic: the correlation of the means of two test sets, which no log tells, is taken to
    be ``n_test / (n_train + n_test)``. In the large comparisons the interval was slightly too
    short. For test sets of different sizes the ratio is averaged over the splits. A log with
    the level ``source`` and no ``fold`` is read as leaving sources out.

    With ``by="source"`` and folds of several sources, the points of a part are tested by models
    that were trained on all others, and n_train counts these.

    References
    ----------
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.
    Bouckaert and Frank (2004), PAKDD, LNCS 3056, 3-12, doi:10.1007/978-3-540-24775-3_3.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> losses.cvci.corrected_t().round(0)
           estimate   lower   upper     se  df caution
    model
    ridge    3007.0  2592.0  3423.0  209.0  99
    """
    checked_alpha(alpha)
    checked_train_size(train_size)
    run = partial(run_corrected_t, train_size=train_size, alpha=alpha)
    return answered(losses, run, by=by, missing=missing)


def conservative_z(
    losses: Losses, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Table:
    """Conservative Z interval, from random splits of the data and of pairs of halves.

    The target is the expected risk at the size of the training sets. The estimate is the mean
    of the J split means of the data (sample 0). Each of R divisions cuts the data into two
    halves, samples 2r - 1 and 2r; with a_r and b_r the means of the J splits of each half, the
    variance is ``sum (a_r - b_r)^2 / (2 R)``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``sample`` (0, 1, …, 2R) and ``repetition`` (the splits of each sample). All test
        sets are meant to have the same number of points.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``n_divisions`` (R),
        ``n_splits`` (J), ``n_test`` (points of a test set of the data), ``n_points`` where the
        log has the level ``point``, and ``caution``.

    Raises
    ------
    LogError
        If a half is missing, a sample has several folds, or the labels of ``sample`` are not
        the whole numbers from 0.

    Notes
    -----
    Two halves share no point, so that their difference estimates the variance of such a mean
    without bias, for training sets of less than half the points. That variance is the larger
    one where an algorithm steadies with more data: conservative in expectation. ``caution``
    tells of fewer than 10 divisions, and of halves that share a point: both make a poor variance.

    References
    ----------
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((40, 1)), np.random.default_rng(1).normal(size=40)
    >>> plan = cvstats.plans.paired_subsampling(10, 12, rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> cvstats.conservative_z(losses).round(2)
                    estimate  lower  upper    se caution
    model
    DummyRegressor      0.98  -0.04    2.0  0.52
    """
    checked_alpha(alpha)
    run = partial(run_conservative_z, alpha=alpha)
    return answered(losses, run, by=by, missing=missing)


def five_by_two(
    losses: Losses,
    *,
    test: Literal["t", "f"] = "t",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Interval from five repetitions of twofold cross-validation.

    The target is the expected risk at half the points. With p_r1 and p_r2 the two fold means of
    repetition r and ``s_r^2 = (p_r1 - p_r2)^2 / 2``:

    - t: the estimate is p_11 alone, its variance the mean of the s_r^2, and the limits take
      Student's t with 5 degrees of freedom;
    - F: all values that the combined test does not reject, the mean of the ten p_rj plus and
      minus ``sqrt((2 F sum s_r^2 - sum (p_rj - mean)^2) / 10)``, F the quantile for 10 and 5
      degrees of freedom.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Five repetitions of two folds that together hold every point. Differences of two models
        are what both tests were made for.
    test : {"t", "f"}, optional
        Which of the two tests to invert.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se`` (NaN for F), ``lower``, ``upper`` in the unit of the loss; for t
        ``df``; for F ``statistic`` and ``p_value`` of a mean of zero, which are of use on
        differences; ``n_points`` where the log has the level ``point``, ``n_folds``,
        ``n_repetitions`` and ``caution``. ``attrs["first"]`` names the fold of p_11.

    Raises
    ------
    LogError
        If the log has other numbers of repetitions or folds, or ``test`` is not known.

    Notes
    -----
    Heuristic. The t interval depends on which fold comes first. Here it is the one whose
    labels sort first, whatever the order of the rows (labels without an order keep that of
    the level).

    The F test may reject every value, in 1.2% of the cases when the fold means are independent
    and normal. Then the interval is empty: its limits are NaN and ``caution`` says so. In the
    same case the t test rejects a true value in 2.8% of the cases, and the F test in 1.8%,
    where 5% are allowed.

    References
    ----------
    Dietterich (1998), Neural Computation 10(7), 1895-1923, doi:10.1162/089976698300017197.
    Alpaydin (1999), Neural Computation 11(8), 1885-1892, doi:10.1162/089976699300016007.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((60, 1)), np.random.default_rng(1).normal(size=60)
    >>> plan = cvstats.plans.five_by_two(rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> cvstats.five_by_two(losses, test="f").round(2)
                    estimate  lower  upper  se  statistic  p_value caution
    model
    DummyRegressor      0.76   0.45   1.06 NaN      26.04      0.0
    """
    options: dict[str, Any] = {"test": test, "alpha": alpha}
    checked("five_by_two", options)
    return answered(losses, partial(run_five_by_two, **options), by=by, missing=missing)


def nested_cv(
    losses: Losses,
    *,
    bias_correction: Literal["paper", "code"] | None = "paper",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Nested cross-validation of Bates, Hastie and Tibshirani.

    The target is the risk of the model fitted to all data. Each fold j is held out (its own
    loss m_j, variance of a loss v_j, n_j points) while the K - 1 others are cross-validated
    (mean loss e_j). Averaged over folds and repetitions, ``MSE = mean (e_j - m_j)^2 -
    mean v_j / n_j`` is the squared error of cross-validation about the risk. The squared
    standard error is ``(K - 1) / K MSE``, kept between that of naive cross-validation and K
    times it; the estimate is the mean inner loss less the bias.

    This is not the nesting of a search for hyper-parameters: every model is fitted alike.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``outer``, the fold held out, ``fold``, the fold tested by a model that saw
        neither, ``point`` and usually ``repetition``; evaluations with ``outer == fold`` are
        those of the held-out fold itself. Three folds or more.
    bias_correction : {"paper", "code", None}, optional
        How often ``err_ncv - err_cv`` is subtracted: ``1 + (K - 2) / K`` times, which is exact
        if the excess error falls like 1/m in the training size m; with the exponent 1.5 of
        the authors' program, ``1 + ((K - 2) / K)^1.5`` times, which fits 1/m^2; or not at all,
        so that the estimate is ``err_ncv``.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``err_ncv`` (mean of
        all inner losses), ``err_cv`` (mean of all outer ones, ordinary cross-validation),
        ``bias`` (what was subtracted), ``mse_raw`` (before it was kept in range, in squared
        units of the loss, may be negative), ``n_points``, ``n_folds``, ``n_repetitions`` and
        ``caution``.

    Raises
    ------
    LogError
        If a level is missing, evaluations of some pair of folds are left out, there are fewer
        than three folds, or a fold has one point.

    Notes
    -----
    Heuristic: no theorem gives its coverage, and the width leaves out that the bias is itself
    an estimate. The MSE of a few repetitions is noisy and often negative; ``caution`` says so
    below 25, and the paper takes 200.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), Cross-validation: what does it estimate and how well
    does it do it? JASA 119(546), 1434-1445, doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((40, 1)), np.random.default_rng(1).normal(size=40)
    >>> plan = cvstats.plans.nested_cv(5, 25, rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> parts = ["estimate", "lower", "upper", "err_ncv", "err_cv"]
    >>> cvstats.nested_cv(losses)[parts].round(2)
                    estimate  lower  upper  err_ncv  err_cv
    model
    DummyRegressor      0.91   0.28   1.53     0.92    0.91
    """
    options: dict[str, Any] = {"bias_correction": bias_correction, "alpha": alpha}
    checked("nested_cv", options)
    return answered(losses, partial(run_nested_cv, **options), by=by, missing=missing)


def replace_one(
    losses: Losses,
    *,
    constant: Literal["efron-stein", "printed"] = "efron-stein",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Replace-one cross-validation: a variance that includes the chance of the training data.

    The target is the expected risk at the size of the training folds. The estimate is the mean
    loss of cross-validation of the data (sample 0). Half of the data is cross-validated too,
    with mean T_0 (sample 1), and again with its l-th point replaced by one of the other half,
    T_l (sample 1 + l). The squared standard error is ``sum (T_0 - T_l)^2 / 4``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``sample`` (0, 1, …, 1 + n/2), ``fold``, ``point`` and, where several partitions
        are averaged, ``repetition``.
    constant : {"efron-stein", "printed"}, optional
        The factor of the sum: 1/4, which is consistent, or 1/2, the formula as printed, which
        doubles the variance and is here for reproduction only.
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
        ``n_folds``, ``n_repetitions`` and ``caution``.

    Raises
    ------
    LogError
        If a point of the half was not replaced, a sample has no folds, or points are left out.

    Notes
    -----
    Exact as n grows if the learner is stable in second order (what two points do together
    fades faster than what each does), and slightly too wide at small n. For several partitions
    there is no theorem.

    References
    ----------
    Austern and Zhou (2020), Asymptotics of cross-validation, arXiv:2001.11111.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((40, 1)), np.random.default_rng(1).normal(size=40)
    >>> plan = cvstats.plans.replace_one(4, rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> cvstats.replace_one(losses).round(2)
                    estimate  lower  upper    se caution
    model
    DummyRegressor      1.04   0.37   1.71  0.34
    """
    options: dict[str, Any] = {"constant": constant, "alpha": alpha}
    checked("replace_one", options)
    return answered(losses, partial(run_replace_one, **options), by=by, missing=missing)
