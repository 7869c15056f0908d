"""Wald interval of the cross-validated test error."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.columns import Differences
from cvstats.core.folds import (
    count_folds_by_group,
    fold_levels,
    repetition_level,
)
from cvstats.core.refits import ALIKE
from cvstats.core.results import Result, flag, rescale_limits
from cvstats.core.results import interval as symmetric_interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._limits import (
    flag_few_errors,
    hall_limits,
    measure_skewness,
    proportion_limits,
)
from cvstats.intervals._method import BAYLE, IntervalMethod
from cvstats.intervals._requirements import partition
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.log.log import Log
from cvstats.options import Alternative, Missing

DISAGREEMENT = 1 / 2
"""Standard errors by which the means of repetitions may differ where a learner is stable."""


ENOUGH_TO_TELL = 100
"""With fewer points one partition finds nearly all models alike, also those that are not."""


CLEAR = 4.0
"""So many standard errors from zero a difference is clear, also with twice the variance."""


@IntervalMethod(
    requires=partition,
    needs="a K-fold partition, leave-one-out, or several repetitions of it",
    target="average test error of the models trained in this cross-validation",
    guarantee="exact as the points grow, if the learner is stable; no promise about the risk at "
    "the full sample size",
    difference_guarantee=f"exact as the points grow, {RELATIVELY_STABLE}",
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

    The target is the average test error of the models that this cross-validation trained, R_n: the
    mean over points of the loss that each fold's model has on new points. The estimate is the mean
    of all losses, and its variance is that of the losses divided by the number of points n. Losses
    vary about the overall mean ("all-pairs") or about the mean of their fold ("within-fold").

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition, leave-one-out, or several repetitions of a partition of the same
        points. Losses in any unit.
    interval : {"wald", "hall", "wilson", "clopper-pearson"}, optional
        The limits: symmetric by the standard error; corrected by Hall for the skewness of the
        losses; or, for losses of 0 and 1, limits of a proportion by Wilson's score or by Clopper
        and Pearson, which keep a width if no loss is 1. `interval` uses Wilson's for such losses.
    variance : {"all-pairs", "within-fold"}, optional
        Deviations from the overall mean, or from the mean of each fold. The second needs two
        points in each fold and rests on the weaker stability condition.
    fold_weights : {"size", "equal"}, optional
        How folds of different sizes count in ``sigma^2``: by their sizes, or all alike. The
        estimate is the mean over points either way, except for a metric that was averaged over
        folds: with ``"equal"`` it is the mean of the folds, as ``cross_val_score`` has it.
    scale : {"identity", "logit", "log", "fisher-z"}, optional
        Where the limits are symmetric. ``"logit"`` is for means between 0 and 1, such as AUC, F1
        and error rates, of which it keeps the limits in that range; ``"log"`` for means above 0,
        such as RMSE; ``"fisher-z"`` for correlations and other metrics between -1 and 1.
    alternative : {"two-sided", "less", "greater"}, optional
        ``"less"`` gives an upper limit only, ``"greater"`` a lower one.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the unit of the loss, and ``caution`` (labels, each explained in
        ``attrs["cautions"]``). ``n_points``, ``n_folds`` and ``n_repetitions`` are in ``attrs``, or
        columns where rows differ in them.

    Raises
    ------
    LogError
        If the repetitions do not test the same points, there is one point only, a fold of
        one point meets ``variance="within-fold"``, or a loss is neither 0 nor 1 for
        an interval of proportions; or if the losses are lazy or not at hand for
        ``interval="hall"``.

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

    Exact as n grows, if the loss of the learner is stable under the exchange of one training
    point (all-pairs asks a little more than within-fold). The target has the size of the
    training folds, n (1 - 1/K), and does not contain the chance of the training data: for
    the expected risk the interval is too narrow, clearly so for unstable learners such as
    single trees.

    With r repetitions the variances are averaged and divided by n, never by n times r: the
    points are the same each time. This form is conservative beside the variance of the
    losses averaged point by point. Intervals of proportions do the same: the share of errors is
    the mean over all repetitions, and n is the number of points. With errors on 1% of 50, 100
    and 200 points Wilson's interval covers .91, .92 and .95 (.95 or more on average over error
    rates from 0.5% to 2%), that of Clopper and Pearson .98 or more, and the Wald interval .40,
    .63 and .86.

    Losses skewed to the right, such as squared errors with heavy tails, make the interval lie too
    low. Hall's limits reach further up: for the mean predictor of lognormal(0.5) data in 10-fold
    cross-validation of 100 and 500 points 95% limits cover .92 and .93, where those of Wald cover
    .85 and .91.

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
                   estimate   lower   upper     se caution
    model
    ridge            3006.2  2640.4  3371.9  186.6
    random_forest    3188.0  2807.1  3568.9  194.3
    """
    # Average the variances of the repetitions, divided by the points and never by more.
    #
    # This is form B of the theory page. All-pairs weighted by size needs no folds.
    repeated = repetition_level(log.design)
    folded = (variance, fold_weights) != ("all-pairs", "size")
    cells = log.moments(fold_levels(log.design) if folded else repeated)
    splits = cells.over(repeated)
    n_points, n_folds = splits.first(splits.count), count_folds_by_group(log.design)
    if n_points.min() < 2:
        raise LogError("wald needs at least two points and this log has 1.")
    caution = flag(Caution.FEW_POINTS, n_points < 30) | flag(Caution.ONE_FOLD, n_folds == 1)
    if "fold" not in log.design.levels:
        caution = caution | flag(Caution.SOURCES_AS_FOLDS, n_folds > 1)
    if scale != "identity":
        refuse_scale(log, scale, interval)
    if log.design.metric == "average" and fold_weights == "equal":
        estimate, variances = average_folds(cells, repeated, variance)
    else:
        estimate = cells.over(()).mean
        variances = variance_of_splits(cells, repeated, variance, fold_weights)
    if not log.of_differences and not log.fixed_sources:
        caution = caution | flag(Caution.UNSTABLE, measure_disagreement(splits) > DISAGREEMENT)
    if isinstance(log.differences, Differences) and not (log.fixed_sources or log.design.metric):
        each = splits.average(variances)
        alike = (find_alike(log, log.differences, each) < ALIKE) & (each > 0)
        alike &= (cells.origin + estimate) ** 2 <= CLEAR**2 * each
        once = (splits.n_cells == 1) & (n_folds > 1) & (n_points >= ENOUGH_TO_TELL)
        caution = caution | flag(Caution.UNSTABLE_DIFFERENCE, alike & once)
    result = symmetric_interval(
        "wald", estimate, splits.average(variances), origin=cells.origin, alpha=alpha,
        alternative=alternative,
        extra={
            "n_points": n_points.astype(np.int64), "n_folds": n_folds,
            "n_repetitions": splits.n_cells,
        },
        caution=caution,
        attrs={"interval": interval, "variance": variance, "fold_weights": fold_weights},
    )  # fmt: skip
    if interval == "hall":
        return hall_limits(result, measure_skewness(log, splits))
    if interval != "wald":
        return proportion_limits(result, log.zero_one(), interval)
    if log.differences is None and scale == "identity":
        zero_one = cells.zero_one()
        return flag_few_errors(result, zero_one) if zero_one.any() else result
    return rescale_limits(result, scale)


def find_alike(log: Log, differences: Differences, variance: FloatArray) -> FloatArray:
    """Divide the variance of differences by the mean squared losses of a point; see `core.refits`.

    ``variance`` is that of the mean difference. A small ratio means models so much alike that one
    partition is not enough to compare them.
    """
    losses = replace(log, differences=None).moments(())
    squares = losses.m2 / losses.count[:, None] + losses.location**2
    both = squares[:, differences.left] + squares[:, differences.right]
    n = losses.count[:, None] / log.design.number("repetition")
    return n**2 * variance / np.where(both > 0, both, np.inf)


def refuse_scale(log: Log, scale: str, interval: str) -> None:
    """Refuse a scale for minus a score, whose sign says nothing, and for limits without one."""
    if interval != "wald":
        raise LogError(
            f"scale={scale!r} is for symmetric limits, and those of {interval!r} are not. Expected "
            f"scale='identity', or interval='wald'."
        )
    limits = log.noted.get("range")
    signed = limits is not None and tuple(limits) == (-1.0, 1.0)
    if scale in ("logit", "log") and log.noted.get("orientation") == "-score":
        other = "scale='fisher-z'" if signed else "scale='identity'"
        raise LogError(
            f"scale={scale!r} is for means above 0, and {log.noted['metric']} has no such range. "
            f"Expected {other}."
        )
    if scale == "fisher-z" and not signed:
        raise LogError(
            "scale='fisher-z' is for correlations and other metrics between -1 and 1. Expected a "
            "log of one, such as cvstats.losses(…, loss='pearson'). Use scale='identity'."
        )


def average_folds(
    cells: Cells, splits: tuple[str, ...], variance: str
) -> tuple[FloatArray, FloatArray]:
    """Average the metrics of folds, all alike: the estimate, and the variance of each split.

    With weights 1/K the variance is ``sum_k K^-2 sigma_k^2 / n_k``; for all-pairs the sigma^2 are
    one for all folds, about the mean of the folds.
    """
    parts = cells.within(splits)
    k, n_k = parts.n_cells, parts.count[:, None]
    means, reach = parts.average(parts.mean), 1 / (parts.repeat(k) ** 2 * n_k)
    if variance == "within-fold":
        variances = parts.sum(reach * parts.m2 / (n_k - 1))
    else:
        deviations = parts.m2 / n_k + (parts.mean - parts.repeat(means)) ** 2
        variances = parts.sum(reach) * parts.sum(deviations) / k
    return cells.over(splits).average(means), variances


def measure_disagreement(splits: Cells) -> FloatArray:
    """Divide the standard deviation of repetition means by their all-pairs standard error.

    A row for each group; 0 for fewer than three repetitions.
    """
    number = splits.n_cells
    deviations = splits.mean - splits.repeat(splits.average(splits.mean))
    spread = splits.sum(deviations**2) / np.maximum(1, number - 1)
    variance = splits.average(splits.m2 / splits.count[:, None] ** 2)
    usable = (number >= 3) & (variance > 0)
    ratio: FloatArray = np.sqrt(np.where(usable, spread, 0) / np.where(usable, variance, 1))
    return ratio


def variance_of_splits(
    cells: Cells, splits: tuple[str, ...], variance: str, fold_weights: str
) -> FloatArray:
    """Variance of the mean loss of each split: a row for each, a number for each column.

    ``splits`` are the levels whose labels tell splits apart.
    """
    parts, whole = cells.within(splits), cells.over(splits)
    n_k, n = parts.count[:, None], parts.repeat(whole.count[:, None])
    share = n_k / n if fold_weights == "size" else 1 / parts.repeat(parts.n_cells)
    if variance == "within-fold":
        if n_k.min() < 2:
            raise LogError(
                "variance='within-fold' needs at least two points in each fold, and this log "
                "has folds of one point (leave-one-out?). Use variance='all-pairs'."
            )
        # Bayle et al., sigma_in
        return parts.sum(share / (n_k - 1) / n * parts.m2)
    # Bayle et al., sigma_out
    return parts.sum(share / n * (parts.m2 / n_k + (parts.mean - parts.repeat(whole.mean)) ** 2))
