"""Wald intervals of cross-validated error, and the two usual repairs that are none."""

from __future__ import annotations

import numpy as np

from cvstats.errors import LogError, choice
from cvstats.moments import Moments
from cvstats.results import Caution, Result, interval
from cvstats.types import FloatArray

__all__ = ["FOLD_WEIGHTS", "VARIANCES", "cells_needed", "cv_t", "naive", "wald"]

VARIANCES = ("all-pairs", "within-fold")
FOLD_WEIGHTS = ("size", "equal")


def cells_needed(variance: str, fold_weights: str) -> bool:
    """Whether fold labels matter; all-pairs weighted by size needs the merged cell only."""
    if variance not in VARIANCES:
        raise choice("variance", variance, VARIANCES)
    if fold_weights not in FOLD_WEIGHTS:
        raise choice("fold_weights", fold_weights, FOLD_WEIGHTS)
    return (variance, fold_weights) != ("all-pairs", "size")


def one_repetition(part: Moments, variance: str, fold_weights: str) -> FloatArray:
    """Variance of the mean loss of one partition; a number for each column."""
    n_k = part.count[:, None]
    n = n_k.sum()
    share = n_k / n if fold_weights == "size" else np.full_like(n_k, 1 / len(n_k))
    if variance == "within-fold":
        if part.count.min() < 2:
            raise LogError(
                "variance='within-fold' needs at least two points in each fold, and this log "
                "has folds of one point (leave-one-out?). Use variance='all-pairs'."
            )
        # Bayle et al., sigma_in
        within: FloatArray = (share * part.m2 / (n_k - 1)).sum(axis=0) / n
        return within
    apart = part.mean - part.over(()).mean
    # Bayle et al., sigma_out
    around: FloatArray = (share * (part.m2 / n_k + apart**2)).sum(axis=0) / n
    return around


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
    splits = moments.groups("repetition") if "repetition" in moments.levels else [moments]
    n_points = int(splits[0].count.sum())
    if n_points < 2:
        raise LogError("wald needs at least two points and this log has 1.")
    variances = np.stack([one_repetition(part, variance, fold_weights) for part in splits])
    estimate = moments.over(()).mean[0]
    extra = {"n_points": n_points, "n_folds": n_folds, "n_repetitions": len(splits)}
    return interval(
        "wald", estimate, variances.mean(axis=0), alpha=alpha, alternative=alternative,
        extra=extra, caution=caution | (Caution.FEW_POINTS if n_points < 30 else 0),
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
