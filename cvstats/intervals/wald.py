"""Wald intervals of cross-validated error, and the two usual repairs that are none."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_choice

__all__ = ["FOLD_WEIGHTS", "VARIANCES", "cells_needed", "cv_t", "naive", "wald", "wald_of_parts"]

VARIANCES = ("all-pairs", "within-fold")
FOLD_WEIGHTS = ("size", "equal")


def cells_needed(variance: str, fold_weights: str) -> bool:
    """Whether fold labels matter; all-pairs weighted by size needs the merged cell only."""
    checked_choice("variance", variance, VARIANCES)
    checked_choice("fold_weights", fold_weights, FOLD_WEIGHTS)
    return (variance, fold_weights) != ("all-pairs", "size")


def of_splits(
    cells: Moments, splits: tuple[str, ...], variance: str, fold_weights: str
) -> FloatArray:
    """Variance of the mean loss of each split: a row for each, a number for each column.

    ``splits`` are the first levels of ``cells``, which are sorted by them; none for one split.
    """
    starts = first_cells(cells, len(splits))
    whole = cells.over(splits)
    at = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cells.count)))
    n_k, n = cells.count[:, None], whole.count[at][:, None]
    share = n_k / n if fold_weights == "size" else 1 / np.bincount(at)[at][:, None]
    if variance == "within-fold":
        if cells.count.min() < 2:
            raise LogError(
                "variance='within-fold' needs at least two points in each fold, and this log "
                "has folds of one point (leave-one-out?). Use variance='all-pairs'."
            )
        # Bayle et al., sigma_in
        terms = share / (n_k - 1) / n * cells.m2
    else:
        apart = cells.mean - (whole.mean[at] if len(starts) > 1 else whole.mean)
        # Bayle et al., sigma_out
        terms = share / n * (cells.m2 / n_k + apart**2)
    variances: FloatArray = (
        terms.sum(axis=0)[None] if len(starts) == 1 else np.add.reduceat(terms, starts)
    )
    return variances


def first_cells(cells: Moments, levels: int) -> IntArray:
    """Find where a new label of the first levels begins among sorted cells."""
    new = np.any(np.diff(cells.codes[:, :levels], axis=0) != 0, axis=1)
    return np.concatenate([[0], np.flatnonzero(new) + 1]).astype(np.int64)


def wald(
    moments: Moments,
    *,
    variance: str,
    fold_weights: str,
    alternative: str,
    alpha: float,
    n_folds: int,
    caution: int = 0,
) -> Result:
    """Interval for the average test error of the trained models.

    Several repetitions: the mean of their variances, form B of the theory page. It is divided
    by the number of points, never by points times repetitions.
    """
    by = ("repetition",) if "repetition" in moments.levels else ()
    splits = moments.over(by)
    n_points = int(splits.count[0])
    if n_points < 2:
        raise LogError("wald needs at least two points and this log has 1.")
    variances = of_splits(moments, by, variance, fold_weights)
    estimate = moments.over(()).mean[0]
    extra = {"n_points": n_points, "n_folds": n_folds, "n_repetitions": len(splits.count)}
    return interval(
        "wald", estimate, variances.mean(axis=0), alpha=alpha, alternative=alternative,
        extra=extra, caution=caution | (Caution.FEW_POINTS if n_points < 30 else 0),
        attrs={"variance": variance, "fold_weights": fold_weights},
    )  # fmt: skip


def wald_of_parts(
    cells: Moments,
    *,
    variance: str,
    fold_weights: str,
    alternative: str,
    alpha: float,
    n_folds: IntArray,
    caution: IntArray,
) -> Result:
    """Do the same for each label of the first level of ``cells`` at once, one below the other.

    ``n_folds`` and ``caution`` have a number for each label. Each has two points or more.
    """
    parts = cells.over(cells.levels[:1])
    by = cells.levels[: 2 if "repetition" in cells.levels[1:2] else 1]
    splits = cells.over(by)
    starts = first_cells(splits, 1)
    repetitions = np.diff(starts, append=len(splits.count))
    each = np.add.reduceat(of_splits(cells, by, variance, fold_weights), starts)
    n_points = splits.count[starts].astype(np.int64)
    few = np.where(n_points < 30, np.int64(Caution.FEW_POINTS), np.int64(0))

    def spread(numbers: IntArray) -> IntArray:
        return np.repeat(numbers, parts.mean.shape[1])

    return interval(
        "wald", parts.mean.reshape(-1), (each / repetitions[:, None]).reshape(-1), alpha=alpha,
        alternative=alternative, caution=spread(caution | few),
        extra={
            "n_points": spread(n_points), "n_folds": spread(n_folds),
            "n_repetitions": spread(repetitions),
        },
        attrs={"variance": variance, "fold_weights": fold_weights},
    )  # fmt: skip


def naive(moments: Moments, *, alpha: float, n_folds: int) -> Result:
    """All losses taken for independent: ``sd / sqrt(number of losses)``."""
    n_repetitions = len(moments.count)
    whole = moments.over(())
    n = whole.count[0]
    if n < 2:
        raise LogError(f"naive needs at least two losses and this log has {n:.0f}.")
    extra = {
        "n_points": int(n) // n_repetitions, "n_folds": n_folds, "n_repetitions": n_repetitions,
    }  # fmt: skip
    return interval(
        "naive", whole.mean[0], whole.m2[0] / ((n - 1) * n), alpha=alpha, extra=extra,
        caution=Caution.NAIVE_POINTS,
    )  # fmt: skip


def cv_t(moments: Moments, *, alpha: float, n_repetitions: int) -> Result:
    """All fold means taken for independent: a t interval over them."""
    k = len(moments.count)
    origin = moments.mean[0]  # equal fold means then have a variance of exactly zero
    apart = moments.mean - origin
    estimate = origin + apart.mean(axis=0)
    between = ((apart - apart.mean(axis=0)) ** 2).sum(axis=0) / (k - 1)
    extra = {
        "df": k - 1, "n_points": int(moments.count.sum()) // n_repetitions,
        "n_folds": k // n_repetitions, "n_repetitions": n_repetitions,
    }  # fmt: skip
    return interval(
        "cv_t", estimate, between / k, alpha=alpha, df=k - 1, extra=extra,
        caution=Caution.NAIVE_FOLDS,
    )  # fmt: skip
