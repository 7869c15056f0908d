"""The joint normal law of differences between models, and the largest of many of them.

The standard errors of all differences say what the covariance A of the models' means is, as far
as differences can tell: ``se_ij^2 = A_ii + A_jj - 2 A_ij``. Draws g of N(0, A) then give the law
of any maximum of ``(g_i - g_j) / se_ij`` (Hothorn, Bretz and Westfall 2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvstats.core.result import Result
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, is_number

__all__ = [
    "checked_draws",
    "critical",
    "exceeded",
    "factor",
    "largest",
    "maxima",
    "standardized",
]

CHUNK = 1 << 16
"""Numbers drawn at once: they stay in the processor's cache."""

FEWEST = 64
"""Draws made at once, at the least."""

NO_LAW = 1e-8
"""Share of the largest eigenvalue below zero from which on standard errors have no joint law."""

ALIKE = 1e-8
"""Share of the largest variance below which a variance is taken from the draws themselves."""


def checked_draws(n_draws: object, alpha: float) -> None:
    """Refuse so few draws that no p-value could reach ``alpha``."""
    if (
        not is_number(n_draws)
        or not isinstance(n_draws, (int, np.integer))
        or alpha * (n_draws + 1) < 1
    ):
        raise LogError(
            f"n_draws={n_draws!r} is too few. Expected a whole number of draws, at least "
            f"{int(np.ceil(1 / alpha - 1e-9)) - 1:,} for alpha={alpha}; 10,000 is usual."
        )


def factor(squared: FloatArray) -> FloatArray | None:
    """Find L such that the rows of L are as far apart as the models.

    ``squared`` holds the variances of all differences, models by models; ``A = L L'`` is the
    covariance of the models less the one in their middle. Nothing comes back if no covariance
    has these variances, as may be where they were clamped or corrected one by one.
    """
    m = len(squared)
    middle = int(squared.sum(axis=0).argmin())
    rest = np.delete(np.arange(m), middle)
    away = squared[rest, middle]
    cov = (away[:, None] + away - squared[np.ix_(rest, rest)]) / 2
    root = np.zeros((m, max(m - 1, 1)))
    jitter = 4 * m * np.finfo(float).eps * float(away.max(initial=0.0))
    for extra in (0.0, jitter):  # twins make the covariance singular
        try:
            root[rest] = np.linalg.cholesky(cov + extra * np.eye(m - 1))
            return root
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(cov)
    if values[0] < -NO_LAW * values[-1]:
        return None
    root[rest] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def weights(root: FloatArray, squared: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """One over the standard deviation of drawn differences; 0 where two models are one."""
    variance = squared[left, right].copy()
    close = np.flatnonzero((variance > 0) & (variance < ALIKE * squared.max(initial=0.0)))
    if len(close):  # rounding in L may outweigh these: each must still be standard normal
        variance[close] = ((root[left[close]] - root[right[close]]) ** 2).sum(axis=1)
    with np.errstate(divide="ignore"):
        found: FloatArray = np.where(variance > 0, 1 / np.sqrt(variance), 0.0)
    return found


def drawn(
    root: FloatArray, n_draws: int, seed: int, work: Callable[[FloatArray, int, int], None]
) -> None:
    """Hand draws of N(0, L L') to ``work``, models by draws, with the numbers of the draws.

    Each chunk has a random stream of its own, so that neither threads nor carried cells
    change a number.
    """
    chunks = block_bounds(n_draws, max(FEWEST, CHUNK // len(root)))

    def one(c: int) -> None:
        start, stop = chunks[c]
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(c,)))
        work(root @ rng.standard_normal((root.shape[1], stop - start)), start, stop)

    for _ in ordered_map(one, len(chunks)):
        pass


def shrunk(maxima: FloatArray, df: float | None, seed: int) -> FloatArray:
    """Divide each draw by the root of its own chi-squared: from normal to Student's t."""
    if df is None:
        return maxima
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 1)))
    return maxima / np.sqrt(rng.chisquare(df, len(maxima)) / df)


def largest(
    squared: FloatArray,
    left: IntArray,
    right: IntArray,
    *,
    alternative: str,
    df: float | None,
    n_draws: int,
    seed: int,
) -> FloatArray | None:
    """Draw the largest statistic over some pairs if no model differs.

    Parameters
    ----------
    squared : array, shape (models, models)
        Variances of all differences.
    left, right : array of int, shape (pairs,)
        The models of each pair.
    alternative : {"two-sided", "less", "greater"}
        What counts as large: either sign, the negative one, the positive one.
    df : float or None
        Degrees of freedom of the standard errors, which the pairs share.
    n_draws, seed : int
        How many draws, and where their random numbers start.

    Returns
    -------
    array, shape (draws,), or None
        ``-inf`` where no pair has a variance; None where the variances have no joint law.
    """
    root = factor(squared)
    if root is None:
        return None
    scale = weights(root, squared, left, right)
    keep = scale > 0
    left, right, scale = left[keep], right[keep], scale[keep]
    sign = -1.0 if alternative == "less" else 1.0
    if len(np.unique(right)) < len(np.unique(left)):
        left, right, sign = right, left, -sign  # fewer groups below
    order = np.argsort(left, kind="stable")
    left, right, scale = left[order], right[order], scale[order]
    heads, starts, sizes = np.unique(left, return_index=True, return_counts=True)
    groups = [slice(start, start + n) for start, n in zip(starts, sizes, strict=True)]
    out = np.full(n_draws, -np.inf)

    def work(g: FloatArray, start: int, stop: int) -> None:
        for i, group in zip(heads, groups, strict=True):
            gap = g[i] - g[right[group]]
            gap *= (sign * scale[group])[:, None]
            if alternative == "two-sided":
                np.abs(gap, out=gap)
            np.maximum(out[start:stop], gap.max(axis=0), out=out[start:stop])

    drawn(root, n_draws, seed, work)
    return shrunk(out, df, seed)


def maxima(
    squared: FloatArray,
    statistic: FloatArray,
    *,
    keep: MaskArray | None = None,
    shrink: float = 1.0,
    n_draws: int,
    seed: int,
) -> tuple[IntArray, FloatArray]:
    """Count for each model the draws whose largest lead over others reaches a statistic.

    The lead of model m over j is ``(g_m - g_j) / se_mj``, times ``shrink``; ``keep`` (models by
    models) says which j count for m. All models share the draws. Also gives the largest lead
    of any model over any other in each draw. Every pair must have a variance.
    """
    root = factor(squared)
    if root is None:
        raise ValueError("variances of differences that no covariance has")
    m = len(squared)
    every = np.arange(m)
    scale = np.stack([weights(root, squared, np.full(m, i), every) for i in range(m)]) * shrink
    chunks = max(FEWEST, CHUNK // m)
    counts = np.zeros((len(block_bounds(n_draws, chunks)), m), dtype=np.int64)
    most = np.empty(n_draws)

    def work(g: FloatArray, start: int, stop: int) -> None:
        top = np.full(stop - start, -np.inf)
        lead = np.empty_like(g)
        for i in range(m):
            np.subtract(g[i], g, out=lead)
            lead *= scale[i][:, None]
            lead[i] = -np.inf
            if keep is not None:
                np.maximum(top, lead.max(axis=0), out=top)
                lead[~keep[i]] = -np.inf
            best = lead.max(axis=0)
            np.maximum(top, best, out=top)
            counts[start // chunks, i] = np.count_nonzero(best >= statistic[i])
        most[start:stop] = top

    drawn(root, n_draws, seed, work)
    return counts.sum(axis=0), most


def exceeded(statistic: FloatArray, largest_drawn: FloatArray) -> FloatArray:
    """Adjust p-values: the share of draws with a largest statistic at least as large.

    The log itself counts as one draw, so that no p-value is zero.
    """
    ordered = np.sort(largest_drawn)
    below = np.searchsorted(ordered, statistic, side="left")
    p = (1 + len(ordered) - below) / (len(ordered) + 1)
    return np.where(np.isnan(statistic), np.nan, p)


def critical(largest_drawn: FloatArray, alpha: float) -> float:
    """Find the bound that a statistic must exceed for an adjusted p-value of at most alpha."""
    rank = int(alpha * (len(largest_drawn) + 1) * (1 + 1e-12))
    return float(np.sort(largest_drawn)[-rank])


def standardized(result: Result, alternative: str) -> FloatArray:
    """Turn statistics so that large ones speak against no difference."""
    statistic: FloatArray = result.columns["statistic"]
    if alternative == "two-sided":
        return np.abs(statistic)
    return -statistic if alternative == "less" else statistic
