"""Logs of resampling plans, which are written apart from those of `cvstats.plans`.

A plan is a list of `Fit`: which points one model is trained and tested on, and the labels of
that test.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pandas as pd


class Fit(NamedTuple):
    """One model: the points it is trained on, those it is tested on, and labels of the test."""

    train: np.ndarray
    test: np.ndarray
    labels: dict[str, Hashable]


Plan = list[Fit]


def holdout(n: int, n_test: int) -> Plan:
    """The last points test a model that was trained on the others."""
    return [Fit(np.arange(n - n_test), np.arange(n - n_test, n), {})]


def folds_of(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """A random fold for each of n points; sizes differ by one at most."""
    return rng.permutation(np.arange(n) % k)


def k_fold(points: np.ndarray, folds: np.ndarray, **labels: Hashable) -> Plan:
    """Each fold is tested by a model trained on the others; `folds` has one for each point."""
    return [
        Fit(points[folds != fold], points[folds == fold], {**labels, "fold": int(fold)})
        for fold in np.unique(folds)
    ]


def repeated_k_fold(n: int, k: int, repetitions: int, rng: np.random.Generator) -> Plan:
    """Several random partitions."""
    every = np.arange(n)
    return [
        fit for r in range(repetitions) for fit in k_fold(every, folds_of(n, k, rng), repetition=r)
    ]


def subsampling(
    points: np.ndarray, n_test: int, splits: int, rng: np.random.Generator, **labels: Hashable
) -> Plan:
    """Random splits with test sets of one size."""
    fits = []
    for j in range(splits):
        order = rng.permutation(points)
        fits.append(Fit(order[n_test:], order[:n_test], {**labels, "repetition": j}))
    return fits


def paired_subsampling(
    n: int, n_test: int, splits: int, divisions: int, rng: np.random.Generator
) -> Plan:
    """Random splits of the data, and of both halves of random divisions."""
    fits = subsampling(np.arange(n), n_test, splits, rng, sample=0)
    for r in range(1, divisions + 1):
        order = rng.permutation(n)
        halves = order[: n // 2], order[n // 2 : 2 * (n // 2)]
        for sample, half in zip((2 * r - 1, 2 * r), halves, strict=True):
            fits += subsampling(half, n_test, splits, rng, sample=sample)
    return fits


def nested_cv(n: int, k: int, repetitions: int, rng: np.random.Generator) -> Plan:
    """Each fold held out while the others are cross-validated."""
    every = np.arange(n)
    fits = []
    for r in range(repetitions):
        folds = folds_of(n, k, rng)
        for outer in range(k):
            for fold in range(k):
                train = every[(folds != outer) & (folds != fold)]
                labels = {"repetition": r, "outer": outer, "fold": fold}
                fits.append(Fit(train, every[folds == fold], labels))
    return fits


def replace_one(n: int, k: int, repetitions: int, rng: np.random.Generator) -> Plan:
    """Cross-validation of the data, of a half, and of that half with each point replaced."""
    h = n // 2
    order = rng.permutation(n)
    half, other = order[:h], order[h : 2 * h]
    fits = []
    for r in range(repetitions):
        fits += k_fold(np.arange(n), folds_of(n, k, rng), sample=0, repetition=r)
        folds = folds_of(h, k, rng)
        fits += k_fold(half, folds, sample=1, repetition=r)
        for at in range(h):
            points = half.copy()
            points[at] = other[at]
            fits += k_fold(points, folds, sample=2 + at, repetition=r)
    return fits


def index_of(plan: Plan) -> pd.MultiIndex:
    """The levels of the log that a plan makes."""
    names = list(plan[0].labels)
    sizes = [len(fit.test) for fit in plan]
    columns = [np.repeat([fit.labels[name] for fit in plan], sizes) for name in names]
    points = np.concatenate([fit.test for fit in plan])
    return pd.MultiIndex.from_arrays([*columns, points], names=[*names, "point"])


def example(method, seed=0, models=2, offset=0.0):
    """A frame of two models on a plan of some size."""
    rng = np.random.default_rng(seed)
    plan = {
        "corrected_t": lambda: subsampling(np.arange(20), 4, 6, rng),
        "conservative_z": lambda: paired_subsampling(20, 3, 4, 3, rng),
        "five_by_two": lambda: repeated_k_fold(11, 2, 5, rng),
        "nested_cv": lambda: nested_cv(14, 4, 2, rng),
        "replace_one": lambda: replace_one(13, 3, 2, rng),
    }[method]()
    index = index_of(plan)
    table = offset + rng.gamma(2.0, size=(len(index), models))
    return pd.DataFrame(table, index=index, columns=list("abc")[:models])
