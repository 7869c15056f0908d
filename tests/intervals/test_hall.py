"""Skewness-corrected limits, against Hall's transformation inverted by a root finder."""

import math

import numpy as np
import pandas as pd
import pytest
from rows import multi_index, only_row
from scipy import optimize, stats

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import _limits
from cvstats.intervals._limits import invert_hall

RNG = np.random.default_rng(41)


def skewness(values):
    """The third standardized moment, term by term."""
    mean = math.fsum(values) / len(values)
    second = math.fsum((x - mean) ** 2 for x in values) / len(values)
    return math.fsum((x - mean) ** 3 for x in values) / len(values) / second**1.5


def transformed(t, s, n):
    """Hall (1992), of a Studentized mean: a = 1/3 and b = 1/6."""
    return t + s * (t**2 / 3 + 1 / 6) / math.sqrt(n) + s**2 * t**3 / 27 / n


def hall(estimate, se, s, n, low, high):
    """The limits at which the transformed statistic is a normal quantile."""
    at = [
        optimize.brentq(lambda t, q=q: transformed(t, s, n) - q, -1e3, 1e3, xtol=1e-14)
        for q in (stats.norm.isf(low), stats.norm.ppf(high))
    ]
    return estimate - se * at[0], estimate - se * at[1]


def log_of(values, **levels):
    index = pd.MultiIndex.from_arrays(
        [*levels.values(), range(len(values))], names=[*levels, "point"]
    )
    return pd.Series(values, index, name="m")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [5, 40, 300])
def test_one_test_set(n, sign):
    values = sign * RNG.lognormal(0, 1, n)
    row = only_row(cvstats.holdout(log_of(values), interval="hall", alpha=0.1))
    plain = only_row(cvstats.holdout(log_of(values), alpha=0.1))
    assert (row["estimate"], row["se"]) == (plain["estimate"], plain["se"])
    wanted = hall(row["estimate"], row["se"], skewness(values), n, 0.05, 0.05)
    assert [row["lower"], row["upper"]] == pytest.approx(wanted, rel=1e-9)
    assert (row["upper"] - row["estimate"] > row["estimate"] - row["lower"]) == (sign > 0)


@pytest.mark.parametrize("variance", ["all-pairs", "within-fold"])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_cross_validation(alternative, variance):
    values = RNG.gamma(0.5, size=60)
    log = log_of(values, fold=np.arange(60) % 6)
    options = {"alternative": alternative, "variance": variance}
    row = only_row(log.cvci.wald(interval="hall", **options))
    tail = 0.025 if alternative == "two-sided" else 0.05
    lower, upper = hall(row["estimate"], row["se"], skewness(values), 60, tail, tail)
    lower = -np.inf if alternative == "less" else lower
    upper = np.inf if alternative == "greater" else upper
    assert [row["lower"], row["upper"]] == pytest.approx([lower, upper], rel=1e-9)


def test_repetitions():
    """Folds: deviations from the mean of each repetition. One test set: points are averaged."""
    values = RNG.lognormal(0, 1, (3, 50)) + np.array([[0.0], [3.0], [1.0]])
    repetition, point = np.repeat(range(3), 50), np.tile(range(50), 3)
    once = pd.Series(values.reshape(-1), multi_index(repetition=repetition, point=point), name="m")
    row = only_row(once.cvci.holdout(interval="hall"))
    s = skewness(values.mean(axis=0))
    wanted = hall(row["estimate"], row["se"], s, 50, 0.025, 0.025)
    assert [row["lower"], row["upper"]] == pytest.approx(wanted, rel=1e-9)
    fold = pd.Index((point + repetition) % 5, name="fold")
    row = only_row(once.to_frame().set_index(fold, append=True)["m"].cvci.wald(interval="hall"))
    about = (values - values.mean(axis=1, keepdims=True)).reshape(-1)
    wanted = hall(row["estimate"], row["se"], skewness(about), 50, 0.025, 0.025)
    assert [row["lower"], row["upper"]] == pytest.approx(wanted, rel=1e-9)


def test_many_columns_are_read_some_at_a_time(monkeypatch):
    index = pd.RangeIndex(60, name="point")
    frame = pd.DataFrame(RNG.lognormal(0, 1, (60, 7)), index, list("abcdefg"))
    whole = frame.cvci.holdout(interval="hall")
    monkeypatch.setattr(_limits, "TABLE", 120)
    pd.testing.assert_frame_equal(frame.cvci.holdout(interval="hall"), whole, check_exact=True)


def test_without_skewness_limits_are_those_of_wald():
    even = log_of(np.tile([1.0, 2.0, 4.0, 5.0], 10))
    row, plain = only_row(even.cvci.holdout(interval="hall")), only_row(even.cvci.holdout())
    assert [row["lower"], row["upper"]] == pytest.approx([plain["lower"], plain["upper"]])
    flat = only_row(log_of(np.full(40, 2.0)).cvci.holdout(interval="hall"))
    assert (flat["lower"], flat["upper"], flat["caution"]) == (2.0, 2.0, "zero variance")
    for s in (1e-12, 1e-6, 3.0):  # small skewness costs no digits
        t = invert_hall(1.96, np.array([s]), np.array([100]))[0]
        assert transformed(t, s, 100) == pytest.approx(1.96, rel=1e-14)


def test_differences():
    """Tests come from standard errors; the interval of the differences has limits of its own."""
    frame = pd.DataFrame(RNG.lognormal(size=(40, 2)), pd.RangeIndex(40, name="point"), list("ab"))
    with pytest.raises(LogError, match="has limits without a corresponding test"):
        frame.cvci.compare(method="holdout", options={"interval": "hall"})
    gaps = cvstats.difference(frame, reference="b")
    row = only_row(gaps.cvci.holdout(interval="hall"))
    wanted = hall(row["estimate"], row["se"], skewness(frame["a"] - frame["b"]), 40, 0.025, 0.025)
    assert [row["lower"], row["upper"]] == pytest.approx(wanted, rel=1e-9)
