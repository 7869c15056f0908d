"""How often `ordered` covers where losses depend on those before, and bounded losses of few points.

A column is a run, so that one call gives 2,000 intervals. The targets are known in closed form.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import signal

import cvstats

RUNS = 2_000


def autoregression(n, correlation, seed):
    """Losses about 1 of which each depends on the one before, times by runs."""
    noise = np.random.default_rng(seed).standard_normal((n + 200, RUNS))
    losses = signal.lfilter([1], [1, -correlation], noise, axis=0)[200:]
    return pd.DataFrame(1 + losses, pd.RangeIndex(n, name="point"))


def coverage(table, target):
    return float(((table["lower"] <= target) & (target <= table["upper"])).mean())


def width(table):
    return float((table["upper"] - table["lower"]).mean())


def report(capsys, name, found):
    with capsys.disabled():
        print(f"\n{name}:", ", ".join(f"{key} {share:.3f}" for key, share in found.items()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "newey_west", "iid"),
    [(100, (0.85, 0.89), (0.64, 0.70)), (400, (0.87, 0.91), (0.64, 0.70))],
)
def test_neighbours_that_are_alike(capsys, n, newey_west, iid):
    log = autoregression(n, 0.6, seed=n)
    tables = {
        "ewc": cvstats.ordered(log),
        "newey-west": cvstats.ordered(log, estimator="newey-west"),
        "holdout": cvstats.holdout(log),
    }
    found = {name: coverage(table, 1) for name, table in tables.items()}
    told = (tables["ewc"]["caution"] == "strong dependence").mean()
    report(capsys, f"autoregression, {n} times", found | {"told": told})
    report(capsys, "widths", {name: width(table) for name, table in tables.items()})
    assert 0.93 <= found["ewc"] <= 0.96
    assert newey_west[0] <= found["newey-west"] <= newey_west[1]
    assert iid[0] <= found["holdout"] <= iid[1]


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 100, 400])
def test_forecasts_several_steps_ahead(capsys, n):
    """Differences that are alike for six steps, and then not at all."""
    noise = np.random.default_rng(n).standard_normal((n + 6, RUNS))
    sums = np.stack([noise[i : i + n] for i in range(7)]).mean(axis=0)
    log = pd.DataFrame(sums, pd.RangeIndex(n, name="point"))
    found = {
        "ewc": coverage(cvstats.ordered(log), 0),
        "diebold-mariano": coverage(cvstats.ordered(log, horizon=7), 0),
    }
    report(capsys, f"seven steps ahead, {n} times", found)
    assert (0.91 if n < 100 else 0.93) <= found["ewc"] <= 0.96
    assert (0.86 if n < 100 else 0.91) <= found["diebold-mariano"] <= 0.96


@pytest.mark.slow
def test_forecasts_that_are_equally_good(capsys):
    """The example of the guide: absolute errors that are like those of the five days before."""
    noise = np.random.default_rng(5).standard_normal((2, 205, RUNS))
    errors = np.stack([noise[:, i : i + 200] for i in range(6)]).sum(axis=0) / 2
    gaps = np.abs(errors[0]) - np.abs(errors[1])
    log = pd.DataFrame(gaps, pd.RangeIndex(200, name="point"))
    tables = {
        "holdout": cvstats.holdout(log),
        "ewc": cvstats.ordered(log),
        "diebold-mariano": cvstats.ordered(log, horizon=6),
    }
    found = {name: 1 - coverage(table, 0) for name, table in tables.items()}
    report(capsys, "equal forecasts that are found to differ", found)
    assert found["holdout"] >= 0.25
    assert found["ewc"] <= 0.07
    assert found["diebold-mariano"] <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.8, 0.9, 0.95])
def test_dependence_that_is_too_strong_is_told(capsys, correlation):
    table = cvstats.ordered(autoregression(100, correlation, seed=7))
    told = table["caution"] == "strong dependence"
    found = {"ewc": coverage(table, 1), "told": told.mean(), "silent": coverage(table[~told], 1)}
    report(capsys, f"autoregression of {correlation}, 100 times", found)
    assert found["ewc"] <= 0.92
    assert found["told"] >= {0.8: 0.35, 0.9: 0.8, 0.95: 0.9}[correlation]


@pytest.mark.slow
def test_rare_errors_in_a_small_test_set(capsys):
    losses = (np.random.default_rng(3).random((30, RUNS)) < 0.02).astype(float)
    log = pd.DataFrame(losses, pd.RangeIndex(30, name="point"))
    tables = {
        name: cvstats.holdout(log, interval=name, bounds=(0, 1) if name[0] == "b" else None)
        for name in ("wald", "wilson", "clopper-pearson", "betting", "bernstein")
    }
    found = {name: coverage(table, 0.02) for name, table in tables.items()}
    report(capsys, "errors of 2%, 30 points", found)
    report(capsys, "widths", {name: width(table) for name, table in tables.items()})
    assert found["wald"] <= 0.5
    assert found["wilson"] >= 0.87
    for name in ("clopper-pearson", "betting", "bernstein"):
        assert found[name] >= 0.95, name


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 100])
def test_skewed_scores_in_a_small_test_set(capsys, n):
    """Most losses near 0, few large: Beta(0.1, 1), of mean 1 / 11."""
    losses = np.random.default_rng(n).beta(0.1, 1.0, (n, RUNS))
    log = pd.DataFrame(losses, pd.RangeIndex(n, name="point"))
    tables = {
        name: cvstats.holdout(log, interval=name, bounds=(0, 1) if name[0] == "b" else None)
        for name in ("wald", "hall", "betting", "bernstein")
    }
    found = {name: coverage(table, 1 / 11) for name, table in tables.items()}
    report(capsys, f"Beta(0.1, 1), {n} points", found)
    report(capsys, "widths", {name: width(table) for name, table in tables.items()})
    assert found["wald"] <= (0.91 if n < 100 else 0.94)
    for name in ("betting", "bernstein"):
        assert found[name] >= 0.95, name
