"""Corrected t, conservative Z, five by two, nested CV and replace-one: R, oracle, properties."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle_resampled as slow
import pandas as pd
import pytest
import resampled_logs
from hypothesis import given
from hypothesis import strategies as st
from rows import only_row
from strategies import close, losses

import cvstats

R_CASES = json.loads(
    (Path(__file__).parents[1] / "reference" / "r_resampled.json").read_text(encoding="utf-8")
)
FIRST = ["estimate", "se", "lower", "upper"]
ALPHAS = st.sampled_from([0.05, 0.1, 0.32, 0.001])


# --- logs -----------------------------------------------------------------------------------------


def splits(draw, rng):
    n = draw(st.integers(6, 12))
    fits = resampled_logs.subsampling(np.arange(n), 2, draw(st.integers(2, 6)), rng)
    cut = [draw(st.integers(1, 2)) for _ in fits]  # test sets of different sizes
    return [f._replace(test=f.test[:size]) for f, size in zip(fits, cut, strict=True)]


PLANS = {
    "corrected_t": splits,
    "folds": lambda draw, rng: resampled_logs.repeated_k_fold(
        draw(st.integers(4, 11)), draw(st.integers(2, 4)), draw(st.integers(1, 3)), rng
    ),
    "conservative_z": lambda draw, rng: resampled_logs.paired_subsampling(
        draw(st.integers(8, 11)), 2, draw(st.integers(1, 3)), draw(st.integers(1, 3)), rng
    ),
    "five_by_two": lambda draw, rng: resampled_logs.repeated_k_fold(
        draw(st.integers(2, 9)), 2, 5, rng
    ),
    "nested_cv": lambda draw, rng: resampled_logs.nested_cv(
        draw(st.integers(8, 11)), draw(st.integers(3, 4)), draw(st.integers(1, 3)), rng
    ),
    "replace_one": lambda draw, rng: resampled_logs.replace_one(
        draw(st.integers(6, 11)), draw(st.integers(2, 3)), draw(st.integers(1, 2)), rng
    ),
}


@st.composite
def logs(draw, design):
    """Evaluations of a plan, with losses of any kind, for the oracle."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    index = resampled_logs.index_of(PLANS[design](draw, rng))
    values = draw(losses(len(index)))
    return [
        slow.Loss(Fraction(loss), **dict(zip(index.names, key, strict=True)))
        for loss, key in zip(values, index, strict=True)
    ]


def series(rows, levels, seed=0):
    """The evaluations as a Series, shuffled."""
    columns = [[getattr(row, level) for row in rows] for level in levels]
    index = pd.MultiIndex.from_arrays(columns, names=levels)
    log = pd.Series([float(row.loss) for row in rows], index=index, name="model")
    return log.iloc[np.random.default_rng(seed).permutation(len(log))]


def agrees(ours, exact, rows, quantile=1.0):
    for name in FIRST:
        assert close(
            only_row(ours)[name], getattr(exact, name), rows, tolerance=4e-12 * quantile
        ), name


def quantile_of(exact):
    return max(1.0, (exact.upper - exact.lower) / (2 * exact.se)) if exact.se > 0 else 1.0


# --- R --------------------------------------------------------------------------------------------


def r_log(case):
    """The log of a case; a level whose labels come in runs is stored as label, times, …"""
    levels = {
        name: np.repeat(column["runs"][::2], column["runs"][1::2])
        if isinstance(column, dict)
        else column
        for name, column in case["log"].items()
    }
    index = pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))
    return pd.Series(case["loss"], index=index)


def test_agrees_with_r(capsys):
    worst: dict[str, float] = {}
    for case in R_CASES:
        method, wanted = case["method"], case["expected"]
        ours = only_row(
            getattr(cvstats, method)(r_log(case), alpha=case["alpha"], **case["kwargs"])
        )
        width = wanted["upper"] - wanted["lower"]
        apart = max(abs(ours[name] - value) for name, value in wanted.items()) / width
        offset = "offset" in case["id"]
        assert apart <= (1e-7 if offset else 1e-9), case["id"]
        label = method + (" (offset)" if offset else "")
        worst[label] = max(worst.get(label, 0.0), apart)
    with capsys.disabled():
        print("\nlargest deviation from inferGE, in widths of the interval")
        for label, apart in sorted(worst.items()):
            print(f"  {label:<26} {apart:.1e}")


# --- the oracle -----------------------------------------------------------------------------------


@given(st.data(), ALPHAS)
def test_corrected_t_of_splits(data, alpha):
    rows = data.draw(logs("corrected_t"))
    log = series(rows, ["repetition", "point"])
    labels = sorted({row.repetition for row in rows})
    sizes = data.draw(st.lists(st.integers(2, 30), min_size=len(labels), max_size=len(labels)))
    exact = slow.corrected_t(rows, sizes, alpha)
    by_label = dict(zip(labels[::-1], sizes[::-1], strict=True))
    for train_size in (sizes, np.array(sizes), by_label, pd.Series(by_label)):
        ours = cvstats.corrected_t(log, train_size=train_size, alpha=alpha)
        agrees(ours, exact, rows, quantile_of(exact))
    assert (only_row(ours)["df"], only_row(ours)["n_splits"]) == (len(sizes) - 1, len(sizes))
    assert only_row(ours)["n_train"] == pytest.approx(np.mean(sizes))
    one = cvstats.corrected_t(log, train_size=7, alpha=alpha)
    agrees(one, slow.corrected_t(rows, [7] * len(sizes), alpha), rows, quantile_of(exact))


@given(logs("folds"), ALPHAS)
def test_corrected_t_of_folds(rows, alpha):
    by = ("repetition", "fold")
    exact = slow.corrected_t(rows, slow.fold_train_sizes(rows), alpha, by)
    ours = cvstats.corrected_t(series(rows, [*by, "point"]), alpha=alpha)
    agrees(ours, exact, rows, quantile_of(exact))
    sizes = range(5, 5 + len(slow.cells(rows, *by)))
    other = slow.corrected_t(rows, sizes, alpha, by)
    ours = cvstats.corrected_t(series(rows, [*by, "point"]), alpha=alpha, train_size=list(sizes))
    agrees(ours, other, rows, quantile_of(other))


@given(logs("conservative_z"), ALPHAS)
def test_conservative_z(rows, alpha):
    exact = slow.conservative_z(rows, alpha)
    ours = cvstats.conservative_z(series(rows, ["sample", "repetition", "point"]), alpha=alpha)
    agrees(ours, exact, rows, quantile_of(exact))
    assert only_row(ours)["n_divisions"] == exact.extra["n_divisions"]


@given(logs("five_by_two"), ALPHAS)
def test_five_by_two(rows, alpha):
    log = series(rows, ["repetition", "fold", "point"])
    exact = slow.five_by_two_t(rows, alpha)
    ours = cvstats.five_by_two(log, alpha=alpha)
    agrees(ours, exact, rows, quantile_of(exact))
    f = slow.five_by_two_f(rows, alpha)
    ours = cvstats.five_by_two(log, test="f", alpha=alpha)
    assert close(only_row(ours)["estimate"], f.estimate, rows)
    assert np.isnan(only_row(ours)["se"])
    unit = float(max(abs(row.loss - f.estimate) for row in rows)) or 1.0
    if abs(f.radicand) < 1e-9 * unit**2:
        return  # its sign is beyond doubles
    assert ("empty interval" in only_row(ours)["caution"]) == (f.radicand < 0)
    if f.radicand < 0:
        assert only_row(ours)[["lower", "upper"]].isna().all()
    else:
        reach = float(f.radicand / 10) ** 0.5
        tolerance = 1e-11 * max(1.0, reach / unit)
        assert close(only_row(ours)["upper"], float(f.estimate) + reach, rows, tolerance=tolerance)
        assert close(only_row(ours)["lower"], float(f.estimate) - reach, rows, tolerance=tolerance)
        for end in (
            only_row(ours)["lower"],
            only_row(ours)["upper"],
        ):  # where the test just rejects
            at_end = slow.five_by_two_f(rows, alpha, null=float(end)).p_value
            assert at_end == pytest.approx(alpha, rel=1e-4)
    if f.statistic is not None:
        assert only_row(ours)["statistic"] == pytest.approx(float(f.statistic), rel=1e-6)
        assert only_row(ours)["p_value"] == pytest.approx(f.p_value, rel=1e-5)


@given(logs("nested_cv"), st.sampled_from(["paper", "code", None]), ALPHAS)
def test_nested_cv(rows, bias_correction, alpha):
    log = series(rows, ["repetition", "outer", "fold", "point"])
    exact = slow.nested_cv(rows, bias_correction, alpha)
    ours = cvstats.nested_cv(log, bias_correction=bias_correction, alpha=alpha)
    for name in ("err_ncv", "err_cv", "bias"):
        assert close(only_row(ours)[name], exact.extra[name], rows), name
    assert close(only_row(ours)["mse_raw"], exact.extra["mse_raw"], rows, power=2)
    assert only_row(ours)["n_folds"] == exact.extra["k"]
    floor, wanted = exact.extra["floor"], exact.extra["wanted"]
    agrees(ours, exact, rows, 10 * quantile_of(exact))
    if min(abs(wanted - floor), abs(wanted - exact.extra["k"] * floor)) > 1e-9 * floor:
        assert ("bounded" in only_row(ours)["caution"]) == (exact.variance != wanted)


@given(logs("replace_one"), st.sampled_from(["efron-stein", "printed"]), ALPHAS)
def test_replace_one(rows, constant, alpha):
    log = series(rows, ["sample", "repetition", "fold", "point"])
    exact = slow.replace_one(rows, constant, alpha)
    ours = cvstats.replace_one(log, constant=constant, alpha=alpha)
    agrees(ours, exact, rows, 10 * quantile_of(exact))
    assert only_row(ours)["n_points"] == sum(r.sample == 0 and r.repetition == 0 for r in rows)
