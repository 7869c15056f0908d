"""Many models on many data sets: ranks within each data set (Demsar 2006)."""

from __future__ import annotations

import numpy as np

from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice

__all__ = ["TESTS", "checked_blocks", "friedman", "mean_ranks", "nemenyi", "nemenyi_distance"]

TESTS = ("chi2", "f")


def mean_ranks(blocks: FloatArray) -> FloatArray:
    """Rank models (columns) within each data set (row), 1 for the smallest loss, and average.

    Models that tie share the mean of their ranks.
    """
    from scipy import stats

    ranks: FloatArray = stats.rankdata(blocks, axis=1).mean(axis=0)
    return ranks


def friedman(blocks: FloatArray, *, test: str) -> tuple[float, float]:
    """Test whether the mean ranks differ by more than chance: the statistic and its p-value.

    ``"chi2"`` is Friedman's statistic, corrected for ties; ``"f"`` that of Iman and Davenport,
    which is less conservative.
    """
    from scipy import stats

    checked_choice("test", test, TESTS)
    n, k = blocks.shape
    ranks = stats.rankdata(blocks, axis=1)
    apart = ranks - (k + 1) / 2
    spread = float((apart**2).sum())
    if spread == 0:  # all models tie on all data sets
        return 0.0, 1.0
    chi2 = (k - 1) * float((apart.sum(axis=0) ** 2).sum()) / spread
    if test == "chi2":
        return chi2, float(stats.chi2.sf(chi2, k - 1))
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-9 * chi2 else np.inf
    return f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def rank_error(n: int, k: int) -> float:
    """Give what divides a difference of mean ranks to make it a studentized range."""
    return float(np.sqrt(k * (k + 1) / (12 * n)))


def nemenyi(gap: FloatArray, n: int, k: int) -> FloatArray:
    """Compute adjusted p-values of differences of mean ranks of k models on n data sets."""
    from scipy import stats

    known = ~np.isnan(gap)
    p = np.full(gap.shape, np.nan)
    p[known] = stats.studentized_range.sf(np.abs(gap[known]) / rank_error(n, k), k, np.inf)
    clipped: FloatArray = np.clip(p, 0.0, 1.0)
    return clipped


def nemenyi_distance(n: int, k: int, alpha: float) -> float:
    """Critical difference of mean ranks: further apart is too far for chance."""
    from scipy import stats

    return float(stats.studentized_range.isf(alpha, k, np.inf)) * rank_error(n, k)


def checked_blocks(n: int, k: int, by: str) -> None:
    """Ask for two data sets and three models at least."""
    if n < 2:
        raise LogError(
            f"the log holds one label of {by!r}. Expected two data sets or more: name the level "
            f"that tells them apart in by=."
        )
    if k < 3:
        raise LogError(
            f"the log holds {k} model{'s' if k > 1 else ''}. Expected three or more; for two, "
            f"use compare."
        )
