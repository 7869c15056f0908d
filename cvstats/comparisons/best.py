"""Which models may be the best: cross-validation with confidence, from second moments.

Lei (2020), doi:10.1080/01621459.2019.1672556. Given the log, the Gaussian multiplier bootstrap
of the paper draws the largest coordinate of a normal vector whose covariance is known: that of
the centred losses. It is drawn here directly, once for all models.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.comparisons.joint import critical, maxima
from cvstats.core.cautions import Caution
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, is_number

__all__ = ["CENTERS", "Found", "checked_screening", "may_be_best", "no_losses"]

CENTERS = ("fold", "global")

Found = dict[str, NDArray[np.generic]]


def checked_screening(screening: object, alpha: float) -> None:
    """Refuse a screening level that would let a model into the set that it screens out."""
    known = isinstance(screening, Real) and is_number(screening) and 0 < float(screening) < alpha
    if screening is not None and not known:
        raise LogError(
            f"screening={screening!r} is out of range. Expected None, or a level between 0 and "
            f"alpha={alpha}, such as 0.005."
        )


def leads(apart: FloatArray, squares: FloatArray, n: int) -> FloatArray:
    """Standardize the lead of each model (column) over each (row): ``sqrt(n) dbar / sigma``.

    Infinite where one is ahead by the same amount everywhere, NaN for the same losses.
    """
    gap = apart[:, None] - apart
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = np.sqrt(n) * gap / np.sqrt(squares / (n - 1))
    return found


def may_be_best(
    apart: FloatArray,
    squares: FloatArray,
    same: IntArray,
    *,
    n: int,
    alpha: float,
    n_draws: int,
    seed: int,
    screening: float | None,
) -> Found:
    """Test for each model that no other has a smaller error.

    Parameters
    ----------
    apart : array, shape (models,)
        Mean losses, less any number that they share.
    squares : array, shape (models, models)
        Sums of squares of the centred differences of one repetition (mean over repetitions).
    same : array of int, shape (models,)
        For each model the first one with the very same losses.
    n : int
        Number of points.
    alpha, n_draws, seed, screening
        As in `cvstats.best_set`.

    Returns
    -------
    dict of str to array, shape (models,)
        ``statistic``, ``p_value``, ``in_set``, ``lower_rank``, ``upper_rank``, ``caution``.
    """
    m = len(apart)
    t = leads(apart, squares, n)
    one = same[:, None] == same
    t[one] = 0.0
    ahead = (squares == 0) & ~one & (t > 0)
    dominated = ahead.any(axis=1)
    alone = np.flatnonzero((same == np.arange(m)) & ~dominated)
    statistic, p = np.full(m, np.inf), np.zeros(m)
    statistic[alone], p[alone], bound = among(
        t[np.ix_(alone, alone)], squares[np.ix_(alone, alone)],
        n=n, alpha=alpha, n_draws=n_draws, seed=seed, screening=screening,
    )  # fmt: skip
    statistic, p = statistic[same], p[same]
    better = ~one & (t > bound)  # the column is surely better than the row
    caution = np.where(dominated, np.int64(Caution.DOMINATED), np.int64(0))
    twins = np.bincount(same, minlength=m)[same] > 1
    caution[twins] |= np.int64(Caution.IDENTICAL)
    return {
        "statistic": statistic,
        "p_value": p,
        "in_set": p > alpha,
        "lower_rank": 1 + better.sum(axis=1),
        "upper_rank": m - better.sum(axis=0),
        "caution": caution,
    }


def among(
    t: FloatArray,
    squares: FloatArray,
    *,
    n: int,
    alpha: float,
    n_draws: int,
    seed: int,
    screening: float | None,
) -> tuple[FloatArray, FloatArray, float]:
    """Statistics and p-values of models that all differ, and what a sure difference exceeds."""
    m = len(t)
    if m == 1:
        return np.array([-np.inf]), np.ones(1), -np.inf
    others = ~np.eye(m, dtype=bool)
    top = np.where(others, t, -np.inf).max(axis=1)
    # The drawn variances have the divisor n, the statistics n - 1.
    shrink = np.sqrt((n - 1) / n)
    keep: MaskArray | None = None
    threshold = np.inf
    if screening is not None:
        q = float(special.ndtri(1 - screening / (m - 1)))
        threshold = q / np.sqrt(1 - q**2 / n) if q**2 < n else np.inf
        keep = others & (t > -2 * threshold)
    counts, most = maxima(squares, top, keep=keep, shrink=float(shrink), n_draws=n_draws, seed=seed)
    p = (1 + counts) / (n_draws + 1)
    if screening is not None and keep is not None:
        p = np.where(keep.any(axis=1), p, 1 - screening)
        p = np.where(top >= threshold, screening, p)
    return top, p, critical(most, alpha)


def no_losses(m: int) -> Found:
    """Answer for models that are masked in a carried cell."""
    return {
        "p_value": np.full(m, np.nan),
        "in_set": np.zeros(m, dtype=bool),
        "lower_rank": np.zeros(m, dtype=np.int64),
        "upper_rank": np.zeros(m, dtype=np.int64),
        "statistic": np.full(m, np.nan),
        "caution": np.full(m, np.int64(Caution.NO_LOSSES)),
    }
