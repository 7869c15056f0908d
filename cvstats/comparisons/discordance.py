"""Tests of 0/1 losses, from the points on which models disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import checked_choice

__all__ = ["TESTS", "cochran", "discordant", "mcnemar"]

TESTS = ("exact", "chi2", "mid-p", None)

FEW = 25
"""Discordant points below which chi-squared is a poor approximation."""


def discordant(cell: Moments) -> tuple[FloatArray, FloatArray]:
    """Count from one cell of differences where only the other errs, and where only the model.

    Differences of 0/1 losses are -1, 0 or 1: their squares add up to the discordant points and
    they themselves to those where only the model errs, less those where only the other does.
    """
    n, mean = cell.count[0], cell.mean[0]
    both = np.rint(cell.m2[0] + n * mean**2)
    net = np.rint(n * mean)
    return (both - net) / 2, (both + net) / 2


def mcnemar(cell: Moments, *, test: str | None, correction: bool) -> Result:
    """Test whether two models err equally often, from one cell of their differences."""
    checked_choice("test", test, TESTS)
    n01, n10 = discordant(cell)
    total = n01 + n10
    few = total < FEW
    exact = few if test is None else np.full(total.shape, test == "exact")
    middle = np.full(total.shape, test == "mid-p")
    least = np.minimum(n01, n10)
    # P(X <= k) of a binomial with half of n is an incomplete beta function
    tail = special.betainc(np.maximum(total - least, 1), least + 1, 0.5)
    beyond = np.where(least > 0, special.betainc(total - least + 1, np.maximum(least, 1), 0.5), 0)
    apart = np.abs(n10 - n01)
    if correction:
        apart = np.maximum(apart - 1, 0)
    chi2 = apart**2 / np.maximum(total, 1)
    p = np.where(
        exact, np.minimum(2 * tail, 1), np.where(middle, tail + beyond, special.chdtrc(1, chi2))
    )
    p = np.where(total == 0, 1.0, p)
    missing = np.isnan(total)
    caution = np.where(missing, np.int64(Caution.NO_LOSSES), np.int64(0))
    caution[few & ~(exact | middle)] |= np.int64(Caution.DISCORDANT_FEW)
    columns: dict[str, NDArray[Any]] = {
        "n01": counted(n01),
        "n10": counted(n10),
        "statistic": np.where(exact | middle, least, chi2),
        "p_value": np.where(missing, np.nan, p),
        "test": np.where(exact, "exact", np.where(middle, "mid-p", "chi2")),
        "n_points": np.full(total.shape, int(cell.count[0])),
    }
    return Result("mcnemar", columns, caution)


def counted(values: FloatArray) -> IntArray:
    """Turn counts into whole numbers; 0 in a masked cell."""
    return np.where(np.isnan(values), 0, values).astype(np.int64)


def cochran(cell: Moments, n_models: int) -> tuple[FloatArray, FloatArray]:
    """Cochran's Q and its p-value, from the differences of all pairs of models.

    With b and c the discordant points of a pair, ``Q = (M - 1) sum (b - c)^2 / sum (b + c)``:
    of two models it is McNemar's statistic. Columns of ``cell`` are pairs by carried cells.
    """
    n01, n10 = (part.reshape(n_models * (n_models - 1) // 2, -1) for part in discordant(cell))
    total = (n01 + n10).sum(axis=0)
    q = (n_models - 1) * ((n10 - n01) ** 2).sum(axis=0) / np.maximum(total, 1)
    p = np.where(np.isnan(q), np.nan, special.chdtrc(n_models - 1, q))
    return q, p
