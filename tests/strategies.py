"""Loss logs for hypothesis, as rows of the oracle and as a Series in any order of rows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import oracle
import pandas as pd
from hypothesis import strategies as st

LEVELS = ("repetition", "fold", "point")


def series(rows, order=None, name="model", levels=LEVELS):
    """The rows as a loss log, in the order given."""
    rows = [rows[i] for i in order] if order is not None else rows
    columns = [[getattr(row, level) for row in rows] for level in levels]
    index = pd.MultiIndex.from_arrays(columns, names=list(levels))
    return pd.Series([float(row.loss) for row in rows], index=index, name=name)


@st.composite
def losses(draw, size):
    """Doubles of some size and spread, tied values among them."""
    step = draw(st.sampled_from([1.0, 0.1, 0.37, 1e-3, 1e4]))
    offset = draw(st.sampled_from([0.0, 0.0, 1.0, -250.0]))
    widest = draw(st.sampled_from([3, 50, 1000]))
    whole = st.integers(-widest, widest)
    return [offset + step * value for value in draw(st.lists(whole, min_size=size, max_size=size))]


@st.composite
def logs(draw, sizes=(1, 5), folds=(1, 5), repetitions=(1, 1), zero_one=False):
    """A log of one or more partitions of the same points into folds of any sizes.

    A repetition shuffles the points and keeps the sizes of the folds.
    """
    fold_sizes = draw(st.lists(st.integers(*sizes), min_size=folds[0], max_size=folds[1]))
    n = sum(fold_sizes)
    names = [k for k, size in enumerate(fold_sizes) for _ in range(size)]
    rows = []
    for repetition in range(draw(st.integers(*repetitions))):
        points = draw(st.permutations(range(n)))
        values = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n, max_size=n)
                      if zero_one else losses(n))  # fmt: skip
        rows += [
            oracle.Row(Fraction(loss), repetition, fold, 0, point)
            for loss, fold, point in zip(values, names, points, strict=True)
        ]
    return rows


def shuffled(rows, seed=0):
    """A Series of the rows, shuffled."""
    return series(rows, np.random.default_rng(seed).permutation(len(rows)))


def spread(rows):
    """The largest distance of a loss from their mean."""
    centre = oracle.mean(row.loss for row in rows)
    return float(max(abs(row.loss - centre) for row in rows))


def close(ours, exact, rows, power=1, tolerance=1e-12):
    """Whether a number agrees with the oracle, relative to the losses' spread.

    ``power`` is 0 for pure numbers, 1 for numbers in units of the loss and 2 for their
    squares. Sixteen units in the last place of the largest loss are always granted: the
    input is no better known.
    """
    if not math.isfinite(float(exact)):
        return float(ours) == float(exact) or (math.isnan(ours) and math.isnan(float(exact)))
    unit = spread(rows)
    level = float(max(abs(row.loss) for row in rows))
    allowed = tolerance * unit**power + 16 * np.finfo(float).eps * level * unit ** (power - 1) if (
        power) else tolerance  # fmt: skip
    return abs(Fraction(float(ours)) - Fraction(exact)) <= allowed
