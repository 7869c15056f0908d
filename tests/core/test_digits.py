"""Digits kept: the NIST univariate sets, and losses far from zero."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from rows import multi_index, only_row

import cvstats

REFERENCE = Path(__file__).parents[1] / "reference"
NIST = json.loads((REFERENCE / "nist.json").read_text(encoding="utf-8"))

EXACT_DIGITS = 15.5
"""More cannot be told in doubles."""


def root(value: Fraction) -> Fraction:
    """A square root to forty digits."""
    scale = 10**80
    return Fraction(math.isqrt(value.numerator * scale // value.denominator), 10**40)


def digits(ours: float, exact: Fraction) -> float:
    """Decimal digits on which two numbers agree: minus the log of the relative error."""
    apart = abs(Fraction(float(ours)) - exact) / abs(exact)
    return EXACT_DIGITS if apart == 0 else min(EXACT_DIGITS, -math.log10(apart))


def as_log(values, folds=1):
    n = len(values)
    index = multi_index(fold=np.arange(n) % folds, point=range(n))
    return pd.Series(values, index=index, dtype=float)


def measured(name):
    """Digits of mean and sd against the doubles' own values and the certified ones."""
    values = [float(text) for text in NIST[name]["data"]]
    held = only_row(cvstats.holdout(as_log(values)))
    n = len(values)
    mean, sd = held["estimate"], held["se"] * math.sqrt(n)
    exact = [Fraction(value) for value in values]
    centre, deviation = oracle.mean(exact), root(oracle.variance(exact))
    certified = Fraction(NIST[name]["mean"]), Fraction(NIST[name]["sd"])
    return (
        digits(mean, centre), digits(sd, deviation),
        digits(mean, certified[0]), digits(sd, certified[1]),
    )  # fmt: skip


@pytest.mark.parametrize("name", NIST)
def test_nist(name):
    mean, sd, certified_mean, certified_sd = measured(name)
    assert mean >= 14
    assert sd >= 12
    assert certified_mean >= 14
    # The doubles nearest to these decimals are another set, with another deviation.
    assert certified_sd >= {"NumAcc3": 9, "NumAcc4": 7.9}.get(name, 12)


@pytest.mark.parametrize("name", NIST)
def test_nist_in_folds(name):
    """The total is the same however it is cut into cells."""
    values = [float(text) for text in NIST[name]["data"]]
    n = len(values)
    exact = [Fraction(value) for value in values]
    for folds in (2, 3) if n > 6 else (3,):
        sd = only_row(cvstats.wald(as_log(values, folds), fold_weights="size"))["se"] * math.sqrt(n)
        assert digits(sd, root(oracle.squares(exact, oracle.mean(exact)) / n)) >= 12
    if n > 6:
        rows = oracle.log(values, fold=[i % 3 for i in range(n)])
        within = only_row(cvstats.wald(as_log(values, 3), variance="within-fold"))["se"]
        assert digits(within, root(oracle.wald(rows, "within-fold").variance)) >= 12


RNG = np.random.default_rng(20)
NOISE = RNG.normal(size=1_000)


def test_cells_of_very_different_level():
    """Each cell keeps its own digits, whatever stands in the others."""
    level = np.where(np.arange(len(NOISE)) % 2, 1e9, 0.0)
    values = NOISE + level
    log = as_log(values, 2)
    rows = oracle.log(values, fold=np.arange(len(values)) % 2)
    cells = log.cvci.moments(by="fold")
    for (fold,), (count, mean, var) in oracle.moments(rows, by=["fold"]).items():
        ours = cells.loc[fold].squeeze()
        assert ours["count"] == count
        assert digits(ours["mean"], mean) >= 12
        assert digits(ours["var"], var) >= 12
    ours = only_row(log.cvci.wald(variance="within-fold"))["se"]
    assert digits(ours, root(oracle.wald(rows, "within-fold").variance)) >= 12
    for name in ("theta_2", "theta_3", "theta_5"):
        exact = oracle.theta(rows[:60], int(name[-1]))
        raw = only_row(cvstats.quadratic(log.iloc[:60], estimator=name))["variance_raw"]
        assert digits(raw, exact) >= 12


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize("at", [0, 1])
def test_an_outlier_in_the_first_row_of_a_cell(at, columns):
    """Sums are kept about the first value of a cell, which here costs four digits."""
    values = NOISE + 5.0
    values[at] = -1e9
    one = as_log(values, 2)
    log = pd.DataFrame({j: one for j in range(columns)})
    rows = oracle.log(values, fold=np.arange(len(values)) % 2)
    cells = log.cvci.moments(by="fold")
    for (fold,), (_, mean, var) in oracle.moments(rows, by=["fold"]).items():
        ours = cells.loc[(columns - 1, fold)]
        assert digits(ours["mean"], mean) >= 11
        assert digits(ours["var"], var) >= 11
    ours = log.cvci.wald(variance="within-fold")["se"].iloc[0]
    assert digits(ours, root(oracle.wald(rows, "within-fold").variance)) >= 11


def test_batches_far_from_each_other():
    """In any order, as the whole log."""
    rng = np.random.default_rng(1)
    offsets = np.repeat([0.0, 1e9, -1e9, 5.0], 1000)
    index = multi_index(fold=np.arange(4000) % 10, point=np.arange(4000))
    log = pd.Series(rng.normal(size=4000) + offsets, index)
    for method in ("naive", "wald"):
        whole = only_row(getattr(cvstats, method)(log))
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
            parts = [cvstats.Moments.of_log(log.iloc[1000 * i : 1000 * i + 1000]) for i in order]
            found = only_row(getattr(cvstats, method)(sum(parts)))
            assert found["se"] == pytest.approx(whole["se"], rel=1e-12)
