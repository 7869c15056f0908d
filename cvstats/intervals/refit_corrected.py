"""Interval for the difference of two models that cross-validation refits in every fold."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.design import Design
from cvstats.core.folds import count_folds
from cvstats.core.refits import (
    NEARLY_ALIKE,
    Partitions,
    measure_likeness,
    measure_refits,
    widen_one_partition,
)
from cvstats.core.results import Result, interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._method import BAYLE, IntervalMethod
from cvstats.intervals._requirements import several_folds
from cvstats.intervals._stability import read_partitions
from cvstats.log.checks import find_whole
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Log
from cvstats.options import Missing


def named_points_in_folds(design: Design) -> str | None:
    """Ask for K-fold cross-validation of named points."""
    if (words := several_folds(design)) is not None:
        return words
    if "point" not in design.levels:
        return (
            "the log has no level 'point', so it is unknown which losses belong to one point. "
            "Add the identity of each point to the index."
        )
    return None


NEEDS = "differences of models in K-fold cross-validation, best repeated with other partitions"


def find_problem(log: Log) -> str | None:
    """Say why a log does not show what refits add to the variance of one column."""
    if not log.design.has("repetition"):
        return (
            "the log has one repetition. Expected two or more with different folds "
            "(cvstats.plans.k_fold with repetitions=), or the losses of two models: "
            "losses.cvci.compare(method='refit_corrected')."
        )
    whole = log if log.cells is None else find_whole(log)
    if whole is not None and read_partitions(whole.design).are_equal():
        return (
            f"all {log.design.number('repetition'):,} repetitions divide the points into the same "
            f"folds, which does not show how much the models depend on the training points. Repeat "
            f"the cross-validation with other folds, as cvstats.plans.k_fold does, or use wald."
        )
    return None


def shows_refits(log: Log) -> bool:
    """Whether repeated cross-validation of refitted models shows how much they share.

    Its losses have to be at hand, and two repetitions to divide the points differently.
    """
    if not repeats_refits(log):
        return False
    if log.design.by is not None:
        raise DifferentGroups("the partitions are those of one group at a time.")
    whole = log if log.cells is None else find_whole(log)
    if whole is None:
        return False
    design = whole.design
    if "equal partitions" not in design.facts:
        design.facts["equal partitions"] = read_partitions(design).are_equal()
    return not design.facts["equal partitions"]


def repeats_refits(log: Log) -> bool:
    """Whether the log is repeated cross-validation of models that were refitted in each fold."""
    design = log.design
    return not (
        log.fixed_sources  # nothing was trained on the tasks of a benchmark
        or design.metric
        or design.scores
        or not design.has("repetition")
        or named_points_in_folds(design) is not None
    )


@IntervalMethod(
    requires=named_points_in_folds,
    of_losses=find_problem,
    needs=NEEDS,
    target="average difference of the test errors of the models trained in this cross-validation",
    guarantee="approximate: accounts for points that train each other's models to second order; "
    "conservative for models with randomness of their own",
    fits="K for each repetition",
    reference=f"{BAYLE}; derived on the theory page 'The difference of two refitted models'",
    plan="k_fold",
    needs_losses=True,
    takes_kept_losses=True,
    takes_lazy_losses=True,
    takes_metrics=False,
)
def refit_corrected(
    log: Log, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Result:
    r"""Interval for the difference of two models that are refitted in every fold.

    The target is the average difference of the test errors of the models trained in this
    cross-validation. Every point is tested by models that other points trained, and trains the
    models that test these. If the two models are nearly alike, this mutual training is as large
    as their difference, and the variance of `wald` is too small by up to one half, at any number of
    points. Repeated cross-validation shows how much is missing, and this interval adds it.
    `compare` uses it by default for repeated cross-validation.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Differences of losses from `difference`, or losses, in K-fold cross-validation with the
        level ``point``, repeated with other partitions of the same points. Any unit.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each pair of models, or variables over the carried dimensions: ``estimate``,
        ``lower``, ``upper`` and ``se`` in the unit of the loss, and ``caution``. Of one partition
        also ``df``, infinite where the normal distribution is used. ``n_points``, ``n_folds`` and
        ``n_repetitions`` are in ``attrs``, or columns where rows differ in them.

    Raises
    ------
    LogError
        If all repetitions have the same partition; or if there is one repetition, except in
        `compare`, which has the losses of both models.

    See Also
    --------
    cvstats.compare : Differences of models and their tests.
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
    times as wide. It is up to 2.2 times as wide for models with much randomness of their own, such
    as forests of other seeds. The derivation does not cover folds of whole groups and random
    splits.

    One partition contains no trace of mutual training. There the interval is that of `wald` where
    the two models differ clearly, and otherwise the wider one of twice its variance, which is the
    most that mutual training adds, and `corrected_t`. A second partition helps more.

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
                             estimate  lower  upper
    model other
    ridge gradient_boosting    -143.0 -406.0  119.0
    """
    if log.cells is not None and log.differences is not None:
        log.moments(())  # those without pairs are refused, however many losses came with them
    log = find_whole(log) or log.rows()
    design = log.design
    here = slice(None) if design.present is None else design.present
    cut = read_partitions(design)
    repetitions, width = cut.n_repetitions, log.values.width
    pairs = log.differences if repetitions == 1 else None
    if not isinstance(pairs, Differences) and (words := find_problem(log)) is not None:
        raise LogError(f"refit_corrected needs {NEEDS}; {words}")
    mean, variance, origin = np.full((3, width), np.nan)
    df = np.full(width, np.inf)
    for j, column in enumerate(log.columns()):
        if column is None:
            continue
        values = column[here]
        origin[j] = values[0]
        if isinstance(pairs, Differences):
            mean[j] = (values - values[0]).mean()
            se, df[j] = one_partition(log, pairs, j, values, cut, alpha)
            variance[j] = se**2
        else:
            found = measure_refits(values - values[0], cut)
            mean[j], variance[j] = found.mean, found.total
    n_points = cut.n_points
    counts = {
        "n_points": n_points, "n_folds": count_folds(design), "n_repetitions": repetitions,
    }  # fmt: skip
    return interval(
        "refit_corrected", mean, variance, origin=np.nan_to_num(origin), alpha=alpha,
        df=None if repetitions > 1 else df,
        extra=counts if repetitions > 1 else {"df": df, **counts},
        caution=int(Caution.FEW_POINTS) if n_points < 30 else 0,
    )  # fmt: skip


def one_partition(
    log: Log, pairs: Differences, j: int, values: FloatArray, cut: Partitions, alpha: float
) -> tuple[float, float]:
    """Compute standard error and degrees of freedom of a difference from one partition."""
    here = slice(None) if log.design.present is None else log.design.present
    one, two = (
        log.panels.column(int(side[j]), 0, log.design.size)[here]
        for side in (pairs.left, pairs.right)
    )
    if measure_likeness(one, two) < NEARLY_ALIKE:
        return widen_one_partition(values - values[0], cut.fold, alpha)
    return float(values.std() / np.sqrt(len(values))), np.inf
