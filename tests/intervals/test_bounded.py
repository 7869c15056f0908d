"""Bounded losses in small test sets: bets, empirical Bernstein, other programs, and refusals."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import only_row
from scipy import optimize, special
from together import together

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import holdout as of_bounds

STORED = Path(__file__).parents[1] / "reference" / "bounded.json"
CASES = {case["id"]: case for case in json.loads(STORED.read_text())}
BOTH = ("betting", "bernstein")


def one_set(values, name="m"):
    values = np.asarray(values, dtype=float)
    return pd.Series(values, pd.RangeIndex(len(values), name="point"), name=name)


def limits(losses, interval, bounds=(0, 1), **options):
    table = cvstats.holdout(losses, interval=interval, bounds=bounds, **options)
    return table[["lower", "upper"]].to_numpy()


def exact_log_wealth(values, m):
    """The logarithm of the average wealth of all bets, by those of single factors."""
    shares = np.arange(1, 11)[:, None] / 11
    up = np.log1p(shares * (values - m) / m).sum(axis=1)
    down = np.log1p(-shares * (values - m) / (1 - m)).sum(axis=1)
    return special.logsumexp([*up, *down]) - math.log(20)


def exact_lower(values, alpha):
    """The lower limit by a search that knows nothing of convexity."""
    if not any(values):
        return 0.0

    def excess(u):
        return exact_log_wealth(values, math.exp(u)) + math.log(alpha)

    top = math.log(math.fsum(values) / len(values)) - 1e-9
    return math.exp(optimize.brentq(excess, top - 40, top, xtol=1e-14))


def exact_bets(values, alpha):
    return exact_lower(values, alpha), 1 - exact_lower(1 - values, alpha)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_stored_cases(case):
    losses, wanted = one_set(case["inputs"]["loss"]), case["outputs"]
    found = limits(losses, "betting")[0]
    np.testing.assert_allclose(found, wanted["dKelly D=10 fixed n, exact root"], rtol=1e-12)
    low, high = wanted["dKelly D=10 fixed n, grid (confseq)"]
    assert low <= found[0] <= low + 1e-3
    assert high - 1e-3 <= found[1] <= high
    np.testing.assert_allclose(
        limits(losses, "bernstein")[0], np.clip(wanted["maurer_pontil"], 0, 1), rtol=1e-12
    )


@together(
    product([2, 30, 200], ["uniform", "rare", "small", "0/1", "0", "1", "constant"], [0.3, 1e-4]),
    by=lambda n, kind, alpha: kind,
)
def test_bets_against_the_formula(n, kind, alpha):
    draw = np.random.default_rng(n)
    values = {
        "uniform": draw.random(n),
        "rare": np.r_[0.9, np.zeros(n - 1)],
        "small": 1e-5 * draw.random(n),
        "0/1": (draw.random(n) < 0.2).astype(float),
        "0": np.zeros(n),
        "1": np.ones(n),
        "constant": np.full(n, 0.1),
    }[kind]
    found, wanted = limits(one_set(values), "betting", alpha=alpha)[0], exact_bets(values, alpha)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-14)


def test_the_loops_are_their_python(monkeypatch):
    values = np.random.default_rng(0).random((4, 137)) ** 4
    values[3] = np.r_[np.ones(136), 0]
    compiled, plain = np.empty((2, 4)), np.empty((2, 4))
    of_bounds.find_limits(values, 3.0, compiled)
    lines = [*values, np.r_[1.0, np.zeros(40)], np.r_[1e-15, np.zeros(40)], np.zeros(41)]
    lowest = [of_bounds.find_lowest(line, 3.0) for line in lines]
    for name in ("log_product", "log_wealth", "find_lowest"):
        monkeypatch.setattr(of_bounds, name, getattr(of_bounds, name).py_func)
    of_bounds.find_limits.py_func(values, 3.0, plain)
    np.testing.assert_allclose(plain, compiled, rtol=1e-12)
    assert [of_bounds.find_lowest(line, 3.0) for line in lines] == pytest.approx(lowest, rel=1e-12)
    assert of_bounds.log_wealth(np.ones(200), 1e-3) > 1000


def test_a_mean_too_small_to_bet_on_has_the_limit_0():
    row = only_row(cvstats.holdout(one_set([1e-17] * 40), interval="betting", bounds=(0, 1)))
    assert row["lower"] == 0
    assert 0.05 < row["upper"] < 0.2


@pytest.mark.parametrize("interval", BOTH)
def test_repetitions_are_averaged(interval):
    values = np.random.default_rng(4).random((3, 20))
    means = limits(one_set(values.mean(axis=0)), interval)
    twice = pd.concat({r: one_set(part) for r, part in enumerate(values)}, names=["repetition"])
    np.testing.assert_allclose(limits(twice, interval), means, rtol=1e-12)


@pytest.mark.parametrize("interval", BOTH)
@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (None, "needs the smallest and the largest possible loss"),
        ((0, 1, 2), "is not a pair of numbers"),
        (1, "is not a pair of numbers"),
        ((0, np.inf), "is not a pair of numbers"),
        (("0", 1), "is not a pair of numbers"),
        ((1, 0), r"bounds=\(1, 0\) is an empty range"),
        ((0, 0.5), r"the loss of 'm' at point=9 is 0.9, outside of bounds=\(0, 0.5\)"),
        ((0.1, 1), r"the loss of 'm' at point=0 is 0, outside of bounds=\(0.1, 1\)"),
    ],
)
def test_bounds_in_words(interval, bounds, words):
    losses = one_set([0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.1, 0.2, 0.3, 0.9])
    refuses(words, losses.cvci.holdout, interval=interval, bounds=bounds)


def test_other_refusals():
    losses = one_set(np.linspace(0, 1, 20))
    refuses("only used by interval='betting' and 'bernstein'", losses.cvci.holdout, bounds=(0, 1))
    seeds = pd.concat({0: losses, 1: losses}, names=["repetition"])
    with pytest.raises(LogError, match="a point's mean loss of 'm' is 0.9"):
        seeds.cvci.holdout(interval="betting", bounds=(0, 0.9))
    pair = pd.DataFrame({"a": losses, "b": losses[::-1].to_numpy()})
    options = {"interval": "betting", "bounds": (-1, 1)}
    with pytest.raises(LogError, match=r"cvci.holdout\(interval='betting', bounds=...\)"):
        pair.cvci.compare(method="holdout", options=options)
    gap = cvstats.difference(pair).cvci.holdout(**options)
    assert -1 < gap["lower"].iloc[0] < 0 < gap["upper"].iloc[0] < 1
    predictions = pd.DataFrame(
        {"y_true": [0, 1] * 10, "p": np.linspace(0.1, 0.9, 20)}, index=losses.index
    )
    area = cvstats.losses(predictions, prediction="p", loss="auc")
    refuses("was made from a metric", area.cvci.holdout, interval="betting", bounds=(0, 1))
