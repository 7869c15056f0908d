"""Nested cross-validation of Bates, Hastie and Tibshirani (2024): the error of the error.

Each fold is held out once while the others are cross-validated among themselves. This has
nothing to do with the nesting of a search for hyper-parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import checked_choice

__all__ = ["BIAS_CORRECTIONS", "nested_cv"]

BIAS_CORRECTIONS = ("paper", "code", None)

ENOUGH = 25
"""Repetitions from which on the mean squared error is worth its name."""


def chosen(moments: Moments, rows: MaskArray) -> Moments:
    """Keep some cells."""
    return replace(
        moments, codes=moments.codes[rows], count=moments.count[rows],
        mean=moments.mean[rows], m2=moments.m2[rows],
    )  # fmt: skip


def factor_of(bias_correction: str | None, k: int) -> float:
    """How often the difference of inner and outer error is taken off."""
    checked_choice("bias_correction", bias_correction, BIAS_CORRECTIONS)
    if bias_correction is None:
        return 0.0
    rate = (k - 2) / k
    # (15) of the paper takes the bias to fall like 1/m; its code an exponent of 1.5
    return 1 + (rate if bias_correction == "paper" else rate**1.5)


def nested_cv(
    moments: Moments,
    is_outer: MaskArray,
    *,
    bias_correction: str | None,
    alpha: float,
    n_points: int,
    n_folds: int,
    n_repetitions: int,
) -> Result:
    """Interval from one cell for each repetition, outer fold and tested fold.

    ``is_outer`` marks the cells of outer evaluations, those in which the two folds are one.
    """
    factor = factor_of(bias_correction, n_folds)
    outer, inner = chosen(moments, is_outer), chosen(moments, ~is_outer)
    by = tuple(level for level in moments.levels if level != "fold")
    e_out, e_in = outer.over(by), inner.over(by)  # the same repetitions and folds, in order
    n_j = e_out.count[:, None]
    a = (e_in.mean - e_out.mean) ** 2  # Algorithm 1
    b = e_out.m2 / ((n_j - 1) * n_j)
    mse: FloatArray = a.mean(axis=0) - b.mean(axis=0)  # (10)
    ncv, cv = inner.over(()), outer.over(())
    lowest = ncv.m2[0] / (ncv.count[0] - 1) / n_points  # squared standard error of naive CV
    wanted = (n_folds - 1) / n_folds * mse
    variance = np.clip(wanted, lowest, n_folds * lowest)
    bias = factor * (ncv.mean[0] - cv.mean[0])  # (15)
    caution = np.where(variance != wanted, int(Caution.BOUNDED), 0)
    if n_repetitions < ENOUGH:
        caution |= int(Caution.FEW_REPETITIONS)
    extra = {
        "err_ncv": ncv.mean[0], "err_cv": cv.mean[0], "bias": bias, "mse_raw": mse,
        "n_points": n_points, "n_folds": n_folds, "n_repetitions": n_repetitions,
    }  # fmt: skip
    return interval(
        "nested_cv", ncv.mean[0] - bias, variance, alpha=alpha, extra=extra,
        caution=caution.astype(np.int64), attrs={"bias_correction": str(bias_correction)},
    )  # fmt: skip
