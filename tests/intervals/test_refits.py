"""The variance of a difference of refitted models: by loops, by identities and by simulation."""

import numpy as np
import pytest

from cvstats.intervals._stability import Partitions, measure_refits


def partitions(rng, n, k, repetitions):
    """Random partitions of n points into k folds, and the (repetitions, n) fold numbers."""
    folds = np.array([rng.permutation(n) % k for _ in range(repetitions)])
    rows = np.repeat(np.arange(repetitions), n)
    numbered = folds + k * np.arange(repetitions)[:, None]
    return Partitions(rows, numbered.reshape(-1), np.tile(np.arange(n), repetitions)), folds


@pytest.mark.parametrize(("n", "k", "repetitions"), [(20, 5, 2), (23, 4, 3), (11, 11, 4)])
def test_parts_by_loops(n, k, repetitions):
    rng = np.random.default_rng(n)
    cut, folds = partitions(rng, n, k, repetitions)
    d = rng.standard_normal((repetitions, n)) + 3.0
    found = measure_refits(d.reshape(-1), cut)
    residual = d - d.mean(axis=0)
    products = 0.0
    for r in range(repetitions):
        for i in range(n):
            for j in range(n):
                if i != j and folds[r, i] == folds[r, j]:
                    products += residual[r, i] * residual[r, j]
    refits = d.var(axis=0, ddof=1).mean() / n
    sizes = [np.bincount(fold) / n for fold in folds]
    n_folds = repetitions / sum((size**2).sum() for size in sizes)
    assert found.mean == pytest.approx(d.mean())
    assert found.units == pytest.approx(d.var(axis=1).mean() / n)
    assert found.refits == pytest.approx(refits)
    assert found.mutual == pytest.approx(
        products * repetitions / (repetitions - 1) ** 2 / n**2, abs=1e-15
    )
    assert found.n_folds == pytest.approx(n_folds)
    assert found.noise == pytest.approx(refits * np.sqrt(2 / (repetitions * n_folds)))


def test_sources_are_the_units_of_folds_that_keep_them_whole():
    rng = np.random.default_rng(8)
    source = np.repeat(np.arange(9), rng.integers(1, 6, 9))
    n, k, repetitions = len(source), 3, 4
    folds = np.array([(rng.permutation(9) % k)[source] for _ in range(repetitions)])
    d = rng.standard_normal((repetitions, n)) + 3.0
    order = rng.permutation(d.size)
    numbered = folds + k * np.arange(repetitions)[:, None]
    rows = [np.repeat(np.arange(repetitions), n), numbered.ravel(),
            np.tile(np.arange(n), repetitions), np.tile(source, repetitions)]  # fmt: skip
    found = measure_refits(d.ravel()[order], Partitions(*(row[order] for row in rows)))
    sums = np.array([[d[r, source == g].sum() for g in range(9)] for r in range(repetitions)])
    centered = np.array([[(d[r] - d[r].mean())[source == g].sum() for g in range(9)]
                         for r in range(repetitions)])  # fmt: skip
    residual, products = sums - sums.mean(axis=0), 0.0
    fold_of = np.array([[folds[r, source == g][0] for g in range(9)] for r in range(repetitions)])
    for r in range(repetitions):
        for i in range(9):
            for j in range(9):
                if i != j and fold_of[r, i] == fold_of[r, j]:
                    products += residual[r, i] * residual[r, j]
    assert found.units == pytest.approx((centered**2).sum() / repetitions / n**2)
    assert found.refits == pytest.approx((residual**2).sum() / (repetitions - 1) / n**2)
    assert found.mutual == pytest.approx(
        products * repetitions / (repetitions - 1) ** 2 / n**2, abs=1e-15
    )
    assert found.beyond_averages == pytest.approx(0.75 * found.refits + found.total - found.units)
