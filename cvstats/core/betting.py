"""Limits of the mean of losses in [0, 1], from bets on each candidate for the mean.

For a candidate m a gambler stakes the share c_j = j / 11 of what is at risk on losses above m, and
as much on losses below it, j = 1, ..., 10. If m is the mean no bet gains on average, so that the
average wealth exceeds 1 / alpha with a probability of at most alpha (Ville's inequality).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvstats.core.kernels import compiled

__all__ = ["find_limits", "log_wealth"]

Floats = NDArray[np.float64]

BETS = 10
TOGETHER = 16
"""So many factors are multiplied before their product is looked at."""

LARGE = 1e50
"""A product above this, or below its inverse, is put away as a logarithm."""

FIRST = 0.25
"""The first step below the mean, in logarithms."""

FARTHEST = -34.0
"""The logarithm of the smallest candidate: no 16 factors are larger than 1e240 together."""


@compiled(reorder=True)
def log_product(losses: Floats, keep: float, gain: float) -> float:
    """Logarithm of the product of ``keep + gain x``."""
    total, product = 0.0, 1.0
    whole = len(losses) // TOGETHER * TOGETHER
    for start in range(0, whole, TOGETHER):
        for i in range(TOGETHER):
            product *= keep + gain * losses[start + i]
        if product > LARGE or product < 1 / LARGE:
            total += np.log(product)
            product = 1.0
    for i in range(whole, len(losses)):
        product *= keep + gain * losses[i]
    return float(total + np.log(product))


@compiled()
def log_wealth(losses: Floats, m: float) -> float:
    """Logarithm of the wealth that all bets have on average, if m is the candidate."""
    wealth = np.empty(2 * BETS)
    for j in range(BETS):
        c = (j + 1) / (BETS + 1)
        wealth[j] = log_product(losses, 1 - c, c / m)  # 1 + c (x - m) / m
        wealth[BETS + j] = log_product(losses, 1 - c + c / (1 - m), -c / (1 - m))  # of 1 - x
    largest = wealth.max()
    return float(largest + np.log(np.exp(wealth - largest).mean()))


@compiled()
def find_lowest(losses: Floats, limit: float) -> float:
    """Find the smallest candidate with a log wealth below a limit; 0 if all losses are 0.

    The logarithm of the wealth is convex in that of the candidate, so that a secant through two
    points outside of the interval ends outside of it, and the steps never pass the limit.
    """
    mean = losses.mean()
    if mean == 0:
        return 0.0
    top = np.log(mean)
    step, value, near = FIRST, -1.0, top
    while value <= 0:
        if near <= FARTHEST:
            return 0.0
        near = max(top - step, FARTHEST)
        value = log_wealth(losses, np.exp(near)) - limit
        step *= 2
    far = near - FIRST
    before = log_wealth(losses, np.exp(far)) - limit
    while value > 0 and before > value:
        move = value * (near - far) / (before - value)
        if near + move == near:
            break
        far, before = near, value
        near += move
        value = log_wealth(losses, np.exp(near)) - limit
    return float(np.exp(near))


@compiled()
def find_limits(losses: Floats, limit: float, out: Floats) -> None:
    """Find the smallest and the largest candidate of each line of losses."""
    for i in range(losses.shape[0]):
        out[0, i] = find_lowest(losses[i], limit)
        out[1, i] = 1 - find_lowest(1 - losses[i], limit)
