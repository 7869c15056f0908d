"""Splits that were made elsewhere, such as by a splitter of scikit-learn, as a bound plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import IntArray
from cvstats.errors import LogError, spelled
from cvstats.plans.drawing import Mixing, Points
from cvstats.plans.plan import BoundPlan, Evaluation, Fit, Plan


@dataclass(frozen=True, eq=False)
class GivenSplits:
    """Training and test rows as they are; None where a fit is trained on all other rows."""

    trained: list[IntArray | None]
    tested: list[IntArray]
    labels: list[dict[str, int]]
    mixing: Mixing = "points"

    def check(self, points: Points) -> None:
        """Accept any data: the splits were made for them."""

    def n_fits(self, points: Points | None) -> int:
        """Count the splits."""
        return len(self.tested)

    def fits(self, points: Points) -> Iterator[Fit]:
        """Go through the splits."""
        for train, test, label in zip(self.trained, self.tested, self.labels, strict=True):
            rows = np.delete(np.arange(points.n), test) if train is None else train
            yield Fit(rows, (Evaluation(label, test),))


def bind_splits(splits: Iterable[tuple[Any, Any]], n: int, name: str) -> BoundPlan:
    """Make a bound plan of pairs of training and test rows of ``n`` points.

    Raises
    ------
    LogError
        If there is no split, one is not a pair of rows of the data, or a set is empty.
    """
    trained: list[IntArray | None] = []
    tested: list[IntArray] = []
    for number, pair in enumerate(splits):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise LogError(
                f"cv= has no pair of training and test rows in split {number:,}, but a "
                f"{type(pair).__name__}. Expected pairs, as in cv=list(splitter.split(X, y))."
            )
        train, test = (row_numbers(rows, n, f"split {number:,} of cv=") for rows in pair)
        test = np.sort(test)
        twice = test[:-1][test[1:] == test[:-1]]
        if len(twice):
            raise LogError(f"split {number:,} of cv= tests row {twice[0]:,} twice. Expected once.")
        # What is trained on all others need not be kept: n splits have n rows each.
        others = np.delete(np.arange(n), test)
        trained.append(None if np.array_equal(train, others) else train)
        tested.append(test)
    if not tested:
        raise LogError("cv= has no splits. Expected at least one, such as cv=5.")
    levels, labels = name_splits(tested)
    methods = {"fold": "wald", "repetition": "corrected_t"}
    intervals = tuple(methods[level] for level in levels[:-1]) or ("holdout",)
    design = GivenSplits(trained, tested, labels)
    return BoundPlan(Plan(name, (), levels, intervals, False, design), Points(n))


def row_numbers(rows: Any, n: int, what: str) -> IntArray:
    """Check the numbers of rows, and turn a mask into them."""
    numbers = np.asarray(rows)
    if numbers.dtype == bool and numbers.shape == (n,):
        numbers = np.flatnonzero(numbers)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise LogError(
            f"{what} has a {numbers.dtype} array of the shape {numbers.shape}. Expected numbers of "
            f"rows: one dimension, integers."
        )
    if not len(numbers):
        raise LogError(f"{what} has no training or no test rows. Expected at least one of each.")
    if not 0 <= numbers.min() <= numbers.max() < n:
        wrong = numbers.min() if numbers.min() < 0 else numbers.max()
        raise LogError(f"{what} names row {spelled(wrong)}, and X has {n:,} rows.")
    return numbers.astype(np.int64)


def name_splits(tested: list[IntArray]) -> tuple[tuple[str, ...], list[dict[str, int]]]:
    """Name the levels of splits, and give each its labels."""
    m = len(tested)
    if m == 1:
        return ("point",), [{}]
    points = np.concatenate(tested)
    k = folds_in_turn(
        np.unique(points, return_inverse=True)[1], np.repeat(np.arange(m), list(map(len, tested)))
    )
    if k is None:
        return ("repetition", "point"), [{"repetition": at} for at in range(m)]
    if k == m:
        return ("fold", "point"), [{"fold": at} for at in range(m)]
    labels = [{"repetition": at // k, "fold": at % k} for at in range(m)]
    return ("repetition", "fold", "point"), labels


def folds_in_turn(points: NDArray[Any], splits: NDArray[Any]) -> int | None:
    """Count the folds of a repetition; None if the splits are random ones.

    Splits are folds if they test each point once. If every point is in r splits, and in one of
    each run of m / r of the m splits, they are r repetitions of folds in this order.

    Parameters
    ----------
    points, splits : array of int, shape (evaluations,)
        Codes from 0, none left out.
    """
    times = np.bincount(points)
    r, m = int(times[0]), int(splits.max()) + 1
    if not (times == r).all() or m % r or m == r:
        return None
    k = m // r
    seen = points.astype(np.int64) * r + splits // k
    return k if np.bincount(seen, minlength=len(times) * r).max() == 1 else None
