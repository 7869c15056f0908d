"""Wald interval of the cross-validated test error."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import Cells
from cvstats.core.folds import count_folds_by_group, fold_levels, repetition_level
from cvstats.core.results import Result, flag, rescale_limits
from cvstats.core.results import interval as symmetric_interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._limits import flag_few_errors, hall_limits, proportion_limits
from cvstats.intervals._method import BAYLE, OF_FIXED_MODELS, IntervalMethod
from cvstats.intervals._requirements import partition
from cvstats.intervals._stability import ALIKE, RELATIVELY_STABLE, find_alike
from cvstats.log.log import Log
from cvstats.log.metadata import AVERAGED
from cvstats.options import Alternative, Missing

DISAGREEMENT = 1 / 2
"""Number of standard errors by which repetition means of a stable learner may differ."""


CLEAR = 4.0
"""A difference this many standard errors from zero is clear, even with twice the variance."""


@IntervalMethod(
    requires=partition,
    needs="a K-fold partition (single or repeated) or leave-one-out",
    target="average test error of the models trained in this cross-validation",
    guarantee="asymptotically exact for stable learners; does not cover the risk of a model "
    "trained on all the data",
    difference_guarantee=f"asymptotically exact in the number of points, {RELATIVELY_STABLE}",
    of_fixed_models=OF_FIXED_MODELS,
    fits="K for each repetition",
    reference=BAYLE,
    plan="k_fold",
    groups_at_once=True,
)
def wald(
    log: Log,
    *,
    interval: Literal["wald", "hall", "wilson", "clopper-pearson"] = "wald",
    variance: Literal["all-pairs", "within-fold"] = "all-pairs",
    fold_weights: Literal["size", "equal"] = "size",
    scale: Literal["identity", "logit", "log", "fisher-z"] = "identity",
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Wald interval for the cross-validated test error.

    The target is R_n, the average test error of the models that were trained in this
    cross-validation: the expected loss of each model on new points, averaged with the sizes of the
    test folds as weights. The estimate is the mean of all losses, and its variance is the variance
    of the losses divided by the number of points n. The variance of the losses is computed about
    the overall mean ("all-pairs") or about the fold means ("within-fold").

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition, leave-one-out, or several repetitions of a partition of the same
        points. Losses in any unit.
    interval : {"wald", "hall", "wilson", "clopper-pearson"}, optional
        The limits: symmetric, from the standard error; corrected for the skewness of the losses
        by Hall's method; or, for 0/1 losses, Wilson or Clopper-Pearson limits of a proportion,
        which have positive width even if no loss is 1. `interval` uses Wilson's for such losses.
    variance : {"all-pairs", "within-fold"}, optional
        Deviations from the overall mean, or from the mean of each fold. The second needs two
        points in each fold and requires a weaker stability condition.
    fold_weights : {"size", "equal"}, optional
        Weights of folds of different sizes in ``sigma^2``: by size, or equal. The estimate is the
        mean over points either way, except for a metric that was averaged over folds: with
        ``"equal"`` it is the mean over folds, as in ``cross_val_score``.
    scale : {"identity", "logit", "log", "fisher-z"}, optional
        The scale on which the limits are symmetric. ``"logit"`` is for means between 0 and 1,
        such as AUC, F1 and error rates, and keeps the limits in that range; ``"log"`` for means
        above 0, such as RMSE; ``"fisher-z"`` for correlations and other metrics between -1 and 1.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` gives an upper limit only, ``"greater"`` a lower one.
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
        ``upper`` and ``se`` in the units of the loss, and ``caution`` (labels, each explained in
        ``attrs["cautions"]``). ``n_points``, ``n_folds`` and ``n_repetitions`` are in ``attrs``,
        or columns if they vary between rows.

    Raises
    ------
    LogError
        If the repetitions do not test the same points, there is only one point, a fold has one
        point and ``variance="within-fold"``, or a loss is neither 0 nor 1 for an interval of
        proportions; if the losses are lazy or not in the log for ``interval="hall"``; or if an
        estimate is outside the range of ``scale``, or limits other than Wald's have a scale.

    See Also
    --------
    cvstats.corrected_t : For the algorithm, on data sets of this size.
    cvstats.holdout : For one test set.
    cvstats.clustered : For points that come in groups.
    cvstats.compare : The difference of two models.

    Notes
    -----
    With e_i the n losses, R their mean, and var_k the sample variance of the n_k losses of fold k,

    .. math::

        \mathrm{se}^2 = \frac{\sigma^2}{n}, \qquad
        \sigma^2_\mathrm{all\ pairs} = \frac1n \sum_i (e_i - R)^2, \qquad
        \sigma^2_\mathrm{within\ fold} = \sum_k \frac{n_k}{n}\, \mathrm{var}_k .

    The interval is asymptotically exact if the learner is stable, which means that its losses
    hardly change when one training point is replaced (all-pairs requires slightly more than
    within-fold). The target refers to training sets of n (1 - 1/K) points. The interval does not
    account for training-set variability, so it is too narrow for the expected risk, especially for
    unstable learners such as single trees.

    With r repetitions, the variances are averaged and divided by n, not by n r, because the points
    are the same in every repetition. This is conservative compared with the variance of the losses
    averaged over the repetitions of each point. Intervals for proportions are computed in the same
    way: the error rate is the mean over all repetitions, and n is the number of points. With errors
    on 1% of 50, 100 and 200 points Wilson's interval covers .91, .92 and .95 (.95 or more on
    average over error rates from 0.5% to 2%), that of Clopper and Pearson .98 or more, and the Wald
    interval .40, .63 and .86.

    If losses are skewed to the right, such as squared errors with heavy tails, the interval is
    often too low. Hall's limits correct for this: for the mean predictor of lognormal(0.5) data in
    10-fold cross-validation of 100 and 500 points, 95% limits cover .92 and .94, compared with .85
    and .91 for Wald limits.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), Cross-validation confidence intervals for test
    error, NeurIPS 33, arXiv:2007.12671.
    Hall (1992), doi:10.1111/j.2517-6161.1992.tb01444.x.
    Wilson (1927), doi:10.1080/01621459.1927.10502953.
    Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> losses.cvci.wald().round(1)
                  estimate  lower  upper   se caution
    model
    ridge            3,006  2,640  3,372  187
    random_forest    3,188  2,807  3,569  194
    """
    # Average the variances of the repetitions and divide by the number of points only.  This is
    # form B of the theory page. All-pairs weighted by size does not use folds.
    repeated = repetition_level(log.design)
    folded = (variance, fold_weights) != ("all-pairs", "size")
    cells = log.moments(fold_levels(log.design) if folded else repeated)
    splits = cells.over(repeated)
    n_points, n_folds = splits.first(splits.count), count_folds_by_group(log.design)
    if n_points.min() < 2:
        raise LogError("wald needs at least two points, but this log has 1.")
    caution = flag(Caution.FEW_POINTS, n_points < ENOUGH_POINTS)
    caution = caution | flag(Caution.ONE_FOLD, n_folds == 1)
    if "fold" not in log.design.levels:
        caution = caution | flag(Caution.SOURCES_AS_FOLDS, n_folds > 1)
    if scale != "identity":
        refuse_scale(log, scale, interval)
    if log.design.metric == "average" and fold_weights == "equal":
        estimate, variances = average_folds(cells, splits, variance)
    else:
        estimate = cells.over(()).mean
        variances = variance_of_splits(cells, splits, variance, fold_weights)
    if not log.of_differences and not log.only_tested:
        caution = caution | flag(Caution.UNSTABLE, measure_disagreement(splits) > DISAGREEMENT)
    if log.pairs is not None and not (
        log.only_tested or log.design.metric or AVERAGED in log.metadata
    ):
        each = splits.average(variances)
        alike = (find_alike(log, each) < ALIKE) & (each > 0)
        alike &= (cells.origin + estimate) ** 2 <= CLEAR**2 * each
        once = (splits.n_cells == 1) & (n_folds > 1) & (n_points >= ENOUGH_POINTS)
        caution = caution | flag(Caution.UNSTABLE_DIFFERENCE, alike & once)
    at_sources = log.only_tested and "source" in log.design.levels
    result = symmetric_interval(
        "wald", estimate, splits.average(variances), origin=cells.origin, alpha=alpha,
        alternative=alternative,
        extra={
            "n_points": n_points.astype(np.int64), "n_folds": n_folds,
            "n_repetitions": splits.n_cells,
        },
        caution=caution,
        attrs={
            "interval": interval, "variance": variance, "fold_weights": fold_weights,
            **({"target": "mean loss on new points from the same sources"} if at_sources else {}),
        },
    )  # fmt: skip
    if interval == "hall":
        return hall_limits(result, log, splits)
    if interval != "wald":
        return proportion_limits(result, log.zero_one(), interval)
    if log.pairs is None and scale == "identity":
        zero_one = cells.zero_one()
        return flag_few_errors(result, zero_one) if zero_one.any() else result
    return rescale_limits(result, scale)


def refuse_scale(log: Log, scale: str, interval: str) -> None:
    """Reject a scale for a negated score, and for limits that have no scale."""
    if interval != "wald":
        raise LogError(
            f"scale={scale!r} applies to symmetric limits only, and those of {interval!r} are "
            "not. Use scale='identity' or interval='wald'."
        )
    limits = log.metadata.get("range")
    signed = limits is not None and tuple(limits) == (-1.0, 1.0)
    if scale in ("logit", "log") and log.metadata.get("orientation") == "-score":
        other = "scale='fisher-z'" if signed else "scale='identity'"
        raise LogError(
            f"scale={scale!r} requires means above 0, but {log.metadata['metric']} can be "
            f"negative. Use {other}."
        )
    if scale == "fisher-z" and not signed:
        raise LogError(
            "scale='fisher-z' requires a correlation or another metric between -1 and 1, such "
            "as cvstats.losses(…, loss='pearson'). Use scale='identity'."
        )


def average_folds(cells: Cells, splits: Cells, variance: str) -> tuple[FloatArray, FloatArray]:
    """Average metrics of folds with equal weights: the estimate, and the variance of each split.

    With weights 1/K the variance is ``sum_k K^-2 sigma_k^2 / n_k``; for all-pairs all folds share
    one sigma^2, about the mean of the folds.
    """
    parts = cells.within(splits.levels)
    k, n_k = parts.n_cells, parts.count[:, None]
    means, reach = parts.average(parts.mean), 1 / (parts.repeat(k) ** 2 * n_k)
    if variance == "within-fold":
        variances = parts.sum(reach * parts.m2 / (n_k - 1))
    else:
        deviations = parts.m2 / n_k + (parts.mean - parts.repeat(means)) ** 2
        variances = parts.sum(reach) * parts.sum(deviations) / k
    return splits.average(means), variances


def measure_disagreement(splits: Cells) -> FloatArray:
    """Divide the standard deviation of repetition means by their all-pairs standard error.

    One row per group; 0 for fewer than three repetitions.
    """
    number = splits.n_cells
    deviations = splits.mean - splits.repeat(splits.average(splits.mean))
    spread = splits.sum(deviations**2) / np.maximum(1, number - 1)
    variance = splits.average(splits.m2 / splits.count[:, None] ** 2)
    usable = (number >= 3) & (variance > 0)
    return np.sqrt(np.where(usable, spread, 0) / np.where(usable, variance, 1))


def variance_of_splits(cells: Cells, splits: Cells, variance: str, fold_weights: str) -> FloatArray:
    """Variance of the mean loss of each split: one row per split, one number per column.

    ``splits`` are the levels that identify splits.
    """
    parts = cells.within(splits.levels)
    n_k, n = parts.count[:, None], parts.repeat(splits.count[:, None])
    share = n_k / n if fold_weights == "size" else 1 / parts.repeat(parts.n_cells)
    if variance == "within-fold":
        if n_k.min() < 2:
            raise LogError(
                "variance='within-fold' needs at least two points in each fold, but this log "
                "has folds of one point (leave-one-out?). Use variance='all-pairs'."
            )
        # Bayle et al., sigma_in
        return parts.sum(share / (n_k - 1) / n * parts.m2)
    # Bayle et al., sigma_out
    return parts.sum(share / n * (parts.m2 / n_k + (parts.mean - parts.repeat(splits.mean)) ** 2))
