"""How losses are distributed: outliers, heavy tails, skewness; of one column or of many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cvstats.core.types import FloatArray

__all__ = ["Shapes", "measure_shapes"]

FEW = 100
"""The top 1% of fewer losses is less than one of them."""

TAIL = 1000
"""Fewer losses say nothing about a tail."""

TOP = 50
"""A tail is the top 2% of the losses, and so many at the least."""


class Shapes(NamedTuple):
    """The distribution of the losses in each column; NaN where something does not apply.

    Constant losses have only the first two numbers. Losses of 0 and 1 have a ``rate``, and these
    and their differences nothing below it.
    """

    lowest: FloatArray
    highest: FloatArray
    negative: FloatArray
    rate: FloatArray
    outlier_share: FloatArray
    tail_index: FloatArray
    n_for_skewness: FloatArray


def measure_shapes(values: FloatArray) -> Shapes:
    """Measure the losses of some columns."""
    lowest, highest = values.min(axis=0), values.max(axis=0)
    varies = lowest < highest
    few_values = ((values == 0) | (np.abs(values) == 1)).all(axis=0)
    shaped = varies & ~few_values
    mean, negative = values.mean(axis=0), np.count_nonzero(values < 0, axis=0) / len(values)
    deviations = values - mean
    squares = deviations * deviations
    points = points_for_skewness(deviations, squares)
    total = squares.sum(axis=0)
    largest = take_largest(squares)
    share = outlier_share(largest, total, len(values))
    return Shapes(
        lowest,
        highest,
        np.where(varies, negative, np.nan),
        np.where(varies & few_values & (lowest == 0), mean, np.nan),
        np.where(shaped, share if len(values) >= FEW else 0, np.nan),
        np.where(shaped, tail_index(largest, len(values)), np.nan),
        np.where(shaped, points, np.nan),
    )


def take_largest(squares: FloatArray) -> FloatArray:
    """Take the largest squares that a tail or the top 1% is made of, and one more; reorders."""
    keep = min(len(squares), max(TOP, len(squares) // 50) + 1)
    squares.partition(len(squares) - keep, axis=0)
    largest: FloatArray = np.sort(squares[len(squares) - keep :], axis=0)
    return largest


def outlier_share(largest: FloatArray, total: FloatArray, size: int) -> FloatArray:
    """Share of the sum of squares about the mean that the top 1% of the losses carry."""
    top = max(1, -(-size // 100))
    if top >= size:
        return np.zeros_like(total)
    share: FloatArray = largest[-top:].sum(axis=0) / np.where(total > 0, total, np.inf)
    return share


def tail_index(largest: FloatArray, size: int) -> FloatArray:
    """Hill's estimate of the index of the tail of ``|loss - mean|``; infinite for thin tails.

    Hill (1975), Annals of Statistics 3(5), 1163-1174. Moments of an order above the index do
    not exist.
    """
    if size < TAIL:
        return np.full(largest.shape[1:], np.inf)
    threshold = largest[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(largest / threshold).sum(axis=0) / 2 / (len(largest) - 1)
        index: FloatArray = np.where((threshold > 0) & (excess > 0), 1 / excess, np.inf)
    return index


def points_for_skewness(deviations: FloatArray, squares: FloatArray) -> FloatArray:
    """Cochran's rule: with so many points the normal approximation suits a 95% interval.

    Cochran (1977), Sampling Techniques, 3rd edition, section 2.15.
    """
    variance = squares.mean(axis=0)
    third = (squares * deviations).mean(axis=0)  # a power of 3 would take ten times as long
    scale = np.where(variance > 0, variance, np.inf) ** 1.5
    points: FloatArray = 25 * np.square(third / np.where(scale > 0, scale, np.inf))
    return points
