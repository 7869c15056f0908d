"""Learners that are not stable: what tests and intervals about refitted algorithms are worth.

The tables of `docs/guide/better.md` and `docs/theory/resampled.md`. All algorithms here are equally
good by symmetry: each is the nearest neighbour along one of several exchangeable features.
"""

import numpy as np
import pytest
import xarray as xr

import cvstats

pytestmark = pytest.mark.slow
K = 10


def squared_errors(x, y, test, train):
    """Losses of the nearest neighbour on the test points of each data set; x along one feature."""
    nearest = np.abs(x[:, test, None] - x[:, None, train]).argmin(axis=2)
    return (y[:, test] - np.take_along_axis(y[:, train], nearest, axis=1)) ** 2


def exchangeable(models, n, runs, seed):
    """Logs of 10 folds of models that use one feature each, over many data sets."""
    draw = np.random.default_rng(seed)
    x = draw.random((runs, n, models))
    y = np.sin(6 * x).sum(axis=2) + 0.5 * draw.normal(size=(runs, n))
    fold = np.arange(n) % K
    losses = np.empty((models, runs, n))
    for model in range(models):
        for k in range(K):
            test, train = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
            losses[model][:, test] = squared_errors(x[..., model], y, test, train)
    coords = {"model": [f"x{model}" for model in range(models)], "fold": ("point", fold)}
    return xr.DataArray(losses, coords, dims=("model", "run", "point"))


def test_comparisons_of_algorithms_reject_too_often():
    log = exchangeable(2, 100, 1000, seed=1)
    size = {
        method: float((cvstats.compare(log, method=method, adjust=None)["p_value"] < 0.05).mean())
        for method in ("wald", "corrected_t")
    }
    assert 0.11 <= size["wald"] <= 0.19, size
    assert size["corrected_t"] <= 0.065, size


def test_the_best_algorithm_is_lost_from_the_set():
    log = exchangeable(10, 100, 200, seed=2)
    kept = [cvstats.best_set(log.isel(run=run), n_draws=999, rng=0)["in_set"] for run in range(200)]
    assert 0.77 <= np.mean(kept) <= 0.91


def test_random_splits_cover_less_than_one_partition():
    n, runs = 100, 1000
    draw = np.random.default_rng(3)
    x = draw.random((runs, n))
    y = np.sin(6 * x) + 0.5 * draw.normal(size=(runs, n))
    other = draw.random((runs, 2 * n))
    truth = np.sin(6 * other) + 0.5 * draw.normal(size=other.shape)
    risk = squared_errors(other, truth, np.arange(90, 200), np.arange(90)).mean()
    splits = [draw.permutation(n) for _ in range(25)]
    folds = [np.roll(np.arange(n), n // K * k) for k in range(K)]

    def cover(orders):
        parts = [squared_errors(x, y, order[: n // K], order[n // K :]) for order in orders]
        log = xr.DataArray(
            np.concatenate(parts, axis=1),
            {
                "repetition": ("evaluation", np.repeat(np.arange(len(orders)), n // K)),
                "point": ("evaluation", np.concatenate([order[: n // K] for order in orders])),
            },
            dims=("run", "evaluation"),
        )
        found = cvstats.corrected_t(log, train_size=90)
        return float(((found["lower"] <= risk) & (risk <= found["upper"])).mean())

    assert 0.80 <= cover(splits) <= 0.89
    assert 0.89 <= cover(folds) <= 0.96
