"""The intervals against stored answers, the R package inferGE and the slow oracle."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rows import only_row
from strategies import close, logs, losses, series, shuffled, spread

import cvstats

REFERENCE = Path(__file__).parents[1] / "reference"
GOLDEN = json.loads((REFERENCE / "golden.json").read_text(encoding="utf-8"))
R_PEERS = json.loads((REFERENCE / "r_peers.json").read_text(encoding="utf-8"))

ALPHAS = st.sampled_from([0.05, 0.1, 0.32, 0.001])
WEIGHTS = {"size": "pooled", "equal": "macro"}
THETAS = [f"theta_{number}" for number in range(1, 6)]
LIMITS = ["estimate", "se", "lower", "upper"]

some = settings(max_examples=40, deadline=None)


def frame_log(table, losses):
    """A Series whose index levels are the columns of a table."""
    index = pd.MultiIndex.from_arrays(list(table.values()), names=list(table))
    return pd.Series(losses, index=index, dtype=float)


def golden(column="loss"):
    table = GOLDEN["log"]
    return frame_log({"fold": table["fold"], "point": table["point"]}, table[column])


def printed(expected, decimals):
    """Equal to what a table with so many decimals shows (a half unit, and float noise)."""
    return pytest.approx(expected, rel=0, abs=0.5000001 * 10.0**-decimals)


def agrees(ours, exact, rows):
    """All of estimate, standard error and limits agree with an interval of the oracle."""
    for name in LIMITS:
        expected = getattr(exact, name)
        reach = 1.0 if name in ("estimate", "se") else max(1.0, quantile_of(exact))
        assert close(only_row(ours)[name], expected, rows, tolerance=1e-12 * reach), name


def top_of(rows):
    """The largest loss by size: what a squared mean is measured by."""
    return float(max(abs(row.loss) for row in rows))


def quantile_of(exact):
    """How many standard errors a limit is away from the estimate."""
    ends = [abs(end - exact.estimate) for end in exact[3:5] if math.isfinite(end)]
    return float(max(ends)) / exact.se if exact.se > 0 and ends else 1.0


# --- the golden log -------------------------------------------------------------------------------

GOLDEN_INTERVALS = {
    "wald all-pairs size": lambda log: cvstats.wald(log),
    "wald within-fold size": lambda log: cvstats.wald(log, variance="within-fold"),
    "wald within-fold equal": lambda log: cvstats.wald(
        log, variance="within-fold", fold_weights="equal"
    ),
    "naive": cvstats.naive,
    "cv_t": cvstats.cv_t,
    "holdout fold 0": lambda log: cvstats.holdout(log.xs(0, level="fold")),
}


def test_golden_cells():
    cells = cvstats.moments(golden(), by="fold")
    for cell in GOLDEN["cells"]:
        ours = cells.loc[cell["fold"]].squeeze()
        assert ours["count"] == cell["count"]
        assert ours["mean"] == pytest.approx(cell["mean"], rel=1e-15)
        assert ours["var"] * (cell["count"] - 1) == pytest.approx(cell["m2"], rel=1e-15)


@pytest.mark.parametrize("name", sorted(set(GOLDEN["intervals"]) - {"decimals"}))
def test_golden_intervals(name):
    ours = GOLDEN_INTERVALS[name](golden())
    for column, value in GOLDEN["intervals"][name].items():
        assert only_row(ours)[column] == printed(value, GOLDEN["intervals"]["decimals"]), column


@pytest.mark.parametrize("fold_weights", WEIGHTS)
def test_golden_theta(fold_weights):
    wanted = GOLDEN["theta"][WEIGHTS[fold_weights]]
    decimals = GOLDEN["theta"]["decimals"]
    for name in THETAS:
        ours = cvstats.quadratic(golden(), estimator=name, fold_weights=fold_weights)
        assert only_row(ours)["variance_raw"] == printed(wanted[name], decimals), name
        clamped = wanted[name] < 0
        floor = wanted["theta_4"] if clamped else wanted[name]
        assert only_row(ours)["se"] ** 2 == printed(floor, decimals)
        assert ("variance clamped" in only_row(ours)["caution"]) == clamped
    parts = cvstats.decompose(golden(), fold_weights=fold_weights)
    for name in set(wanted) & set(only_row(parts).index):
        assert only_row(parts)[name] == printed(wanted[name], decimals), name
    if "theta_1 by its bias" in wanted:
        by_bias = cvstats.quadratic(golden(), bias=(0, 0, 0), fold_weights=fold_weights)
        assert only_row(by_bias)["variance_raw"] == printed(wanted["theta_1 by its bias"], decimals)


def test_golden_improvement():
    wanted = GOLDEN["improvement less"]
    ours = cvstats.compare(golden(), golden("other"), alternative="less").iloc[0]
    for column in ("difference", "se", "statistic", "p_value"):
        assert only_row(ours)[column] == printed(wanted[column], wanted["decimals"]), column


# --- inferGE --------------------------------------------------------------------------------------


def test_agrees_with_r(capsys):
    worst: dict[str, float] = {}
    for case in R_PEERS:
        method = getattr(cvstats, case["method"])
        ours = method(frame_log(case["log"], case["loss"]), alpha=case["alpha"], **case["kwargs"])
        wanted = case["expected"]
        width = wanted["upper"] - wanted["lower"]
        apart = max(abs(only_row(ours)[name] - value) for name, value in wanted.items()) / width
        offset = "offset" in case["id"]
        assert apart <= (1e-7 if offset else 1e-9), case["id"]
        label = case["id"].rsplit(" ", 1)[0] + (" (offset)" if offset else "")
        worst[label] = max(worst.get(label, 0.0), apart)
    with capsys.disabled():
        print("\nlargest deviation from inferGE, in widths of the interval")
        for label, apart in worst.items():
            print(f"  {label:<26} {apart:.1e}")


# --- the oracle -----------------------------------------------------------------------------------


@some
@given(st.data(), st.sampled_from(["wald", "t"]), ALPHAS)
def test_holdout(data, interval, alpha):
    rows = data.draw(logs(sizes=(2, 14), folds=(1, 1), repetitions=(1, 3)))
    exact = oracle.holdout(rows, interval, alpha)
    log = series(rows, levels=("repetition", "point"))
    agrees(cvstats.holdout(log, interval=interval, alpha=alpha), exact, rows)


@some
@given(logs(sizes=(2, 30), folds=(1, 1), zero_one=True), ALPHAS)
def test_holdout_of_proportions(rows, alpha):
    log = series(rows, levels=("point",))
    for interval in ("wilson", "clopper-pearson"):
        exact = oracle.holdout(rows, interval, alpha)
        ours = cvstats.holdout(log, interval=interval, alpha=alpha)
        for name in LIMITS:
            assert only_row(ours)[name] == pytest.approx(
                float(getattr(exact, name)), rel=1e-12, abs=1e-15
            )
        assert 0 <= only_row(ours)["lower"] < only_row(ours)["upper"] <= 1
        assert "zero variance" not in only_row(ours)["caution"]


@some
@given(
    logs(sizes=(2, 5), repetitions=(1, 3)),
    st.sampled_from(["all-pairs", "within-fold"]),
    st.sampled_from(list(WEIGHTS)),
    st.sampled_from(["two-sided", "less", "greater"]),
    ALPHAS,
)
def test_wald(rows, variance, fold_weights, alternative, alpha):
    exact = oracle.wald(rows, variance, fold_weights, alternative, alpha)
    ours = cvstats.wald(
        shuffled(rows), variance=variance, fold_weights=fold_weights,
        alternative=alternative, alpha=alpha,
    )  # fmt: skip
    agrees(ours, exact, rows)
    repetitions = len({row.repetition for row in rows})
    assert only_row(ours)["n_points"] == len(rows) // repetitions
    assert only_row(ours)["n_repetitions"] == repetitions
    assert only_row(ours)["n_folds"] == len({row.fold for row in rows})


@some
@given(logs(sizes=(1, 5), repetitions=(1, 3)))
def test_all_pairs_with_folds_of_one_point(rows):
    assume(len(rows) > 1 and len({row.point for row in rows}) > 1)
    for weights in WEIGHTS:
        ours = cvstats.wald(shuffled(rows), fold_weights=weights)
        agrees(ours, oracle.wald(rows, fold_weights=weights), rows)
    agrees(cvstats.naive(shuffled(rows)), oracle.naive(rows), rows)


@some
@given(logs(folds=(2, 5), repetitions=(1, 3)), ALPHAS)
def test_naive_and_cv_t(rows, alpha):
    agrees(cvstats.naive(shuffled(rows), alpha=alpha), oracle.naive(rows, alpha), rows)
    ours = cvstats.cv_t(shuffled(rows), alpha=alpha)
    exact = oracle.cv_t(rows, alpha)
    agrees(ours, exact, rows)
    assert only_row(ours)["df"] == exact.df


@some
@given(st.integers(2, 14).flatmap(losses), ALPHAS)
def test_leave_one_out(values, alpha):
    rows = oracle.log(values, fold=range(len(values)))
    log = shuffled(rows)
    agrees(cvstats.wald(log, alpha=alpha), oracle.wald(rows, alpha=alpha), rows)
    agrees(cvstats.cv_t(log, alpha=alpha), oracle.cv_t(rows, alpha), rows)
    ours = cvstats.quadratic(log, estimator="theta_3", alpha=alpha)
    agrees(ours, oracle.cv_t(rows, alpha), rows)
    for name in ("theta_2", "theta_4", "theta_5"):
        with pytest.raises(cvstats.errors.LogError, match="leave-one-out"):
            cvstats.quadratic(log, estimator=name)
    with pytest.raises(cvstats.errors.LogError, match="leave-one-out"):
        cvstats.quadratic(log, bias=(0, 0, -1))
    with pytest.raises(cvstats.errors.LogError, match="leave-one-out"):
        cvstats.decompose(log)


@some
@given(logs(sizes=(2, 4), folds=(2, 5)), st.sampled_from(list(WEIGHTS)), ALPHAS)
def test_quadratic_by_name(rows, fold_weights, alpha):
    weights = WEIGHTS[fold_weights]
    unit = spread(rows)
    for which, name in enumerate(THETAS, start=1):
        exact = oracle.quadratic_interval(rows, which, weights=weights, alpha=alpha)
        ours = cvstats.quadratic(
            shuffled(rows), estimator=name, fold_weights=fold_weights, alpha=alpha
        )
        assert close(only_row(ours)["estimate"], exact.estimate, rows)
        if which == 1:  # the mean itself, squared
            level = 2e-12 * top_of(rows) ** 2
            assert only_row(ours)["variance_raw"] == pytest.approx(float(exact.variance), abs=level)
            continue
        assert close(only_row(ours)["variance_raw"], exact.variance, rows, 2), name
        if abs(exact.variance) < 1e-6 * unit**2:
            continue  # a sign, or a root, that no double can tell
        assert ("variance clamped" in only_row(ours)["caution"]) == (exact.variance < 0)
        for limit in ("se", "lower", "upper"):
            wanted = getattr(exact, limit)
            assert close(
                only_row(ours)[limit], wanted, rows, tolerance=1e-9 * quantile_of(exact)
            ), name
        assert only_row(ours).get("df") == exact.df


@some
@given(
    logs(sizes=(2, 4), folds=(2, 5)),
    st.sampled_from(list(WEIGHTS)),
    st.tuples(*[st.sampled_from([0, 1, -1, 0.5, -2])] * 3),
)
def test_quadratic_by_bias(rows, fold_weights, bias):
    exact = oracle.quadratic(rows, bias, WEIGHTS[fold_weights])
    ours = cvstats.quadratic(shuffled(rows), bias=bias, fold_weights=fold_weights)
    level = top_of(rows) if sum(bias) != -1 else 0.0
    size = (spread(rows) + level) ** 2
    rounded = 8 * np.finfo(float).eps * top_of(rows) * spread(rows)  # of fold means, as doubles
    slack = 2e-12 * size + rounded
    assert only_row(ours)["variance_raw"] == pytest.approx(float(exact), rel=1e-12, abs=slack)
    assert ("mean dominates" in only_row(ours)["caution"]) == (sum(bias) != -1)
    assert "no losses" not in only_row(ours)["caution"]
    if float(exact) < -1e-9 * size:
        assert only_row(ours)[["se", "lower", "upper"]].isna().all()
        assert "negative" in only_row(ours)["caution"]


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        ((0, 0, -1), "-gamma"),
        ((0, -1, 0), "-omega"),
        ((0.5, -1, -0.5), "0.5 sigma^2 - omega - 0.5 gamma"),
        ((-2, 0, 1), "-2 sigma^2 + gamma"),
        ((0, 1, 0), "omega + 2 mu^2"),
    ],
)
def test_the_bias_in_words(bias, words):
    assert cvstats.quadratic(golden(), bias=bias).attrs["bias"] == words


@some
@given(
    logs(sizes=(2, 4), folds=(2, 4), repetitions=(1, 3)),
    st.sampled_from([0, 0.1, 0.7]),
    st.sampled_from(list(WEIGHTS)),
)
def test_decompose(rows, rho, fold_weights):
    parts = [
        [row for row in rows if row.repetition == repetition]
        for repetition in sorted({row.repetition for row in rows})
    ]
    exact = [oracle.decompose(part, WEIGHTS[fold_weights]) for part in parts]
    gammas = [oracle.gamma_of_rho(part, rho) for part in parts]
    ours = cvstats.decompose(shuffled(rows), rho=rho, fold_weights=fold_weights)
    expected = {name: oracle.mean(part[name] for part in exact) for name in exact[0]}
    gamma = oracle.mean(gammas)
    assert only_row(ours)["theta_1"] == pytest.approx(
        float(expected.pop("theta_1")), abs=2e-12 * top_of(rows) ** 2
    )
    expected |= {
        "gamma": gamma,
        "omega": gamma + expected["omega_minus_gamma"],
        "sigma2": gamma + expected["omega_minus_gamma"] + expected["sigma2_minus_omega"],
        "theta": gamma + expected["theta_minus_gamma"],
    }
    for name, value in expected.items():
        assert close(only_row(ours)[name], value, rows, 2, tolerance=4e-12), name
    given_gamma = cvstats.decompose(shuffled(rows), gamma=float(gamma), fold_weights=fold_weights)
    for name in ("gamma", "omega", "sigma2", "theta"):
        assert close(only_row(given_gamma)[name], expected[name], rows, 2, tolerance=4e-12), name
    assert "assumed correlation" in ours.attrs["cautions"]
    assert (only_row(ours)["n_points"], only_row(ours)["n_repetitions"]) == (
        len(parts[0]),
        len(parts),
    )


# --- refusals -------------------------------------------------------------------------------------


def test_rho_and_gamma():
    for arguments in ({"rho": 1.0}, {"rho": -0.1}, {"rho": 0.1, "gamma": 0.1}):
        with pytest.raises(cvstats.errors.LogError, match="rho"):
            cvstats.decompose(golden(), **arguments)


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("wald", {"variance": "all"}, "variance='all' is not known"),
        ("wald", {"fold_weights": "n"}, "fold_weights='n' is not known"),
        ("wald", {"alternative": "lower"}, "alternative='lower' is not known"),
        ("quadratic", {"estimator": "theta_6"}, "estimator='theta_6' is not known"),
        ("quadratic", {"bias": (0, 1)}, "2 numbers. Expected three"),
        ("quadratic", {"fold_weights": "n"}, "fold_weights='n' is not known"),
        ("cv_t", {"alpha": 1.0}, "alpha=1.0 is out of range"),
        ("naive", {"alpha": 0.0}, "alpha=0.0 is out of range"),
    ],
)
def test_unknown_words(method, arguments, words):
    with pytest.raises(cvstats.errors.LogError, match=words):
        getattr(cvstats, method)(golden(), **arguments)


def test_holdout_refuses():
    log = golden().xs(0, level="fold")
    with pytest.raises(cvstats.errors.LogError, match="0 or 1"):
        cvstats.holdout(log, interval="wilson")
    with pytest.raises(cvstats.errors.LogError, match="interval='score' is not known"):
        cvstats.holdout(log, interval="score")
    with pytest.raises(cvstats.errors.LogError, match="3 folds"):
        cvstats.holdout(golden())
    log = (log > 0.5).astype(float)
    log.iloc[1] = np.nan
    with pytest.raises(cvstats.errors.LogError, match="missing"):
        cvstats.holdout(log, interval="wilson")
    twice = pd.concat({0: golden().xs(0, level="fold")} | {1: log}, names=["repetition"]).fillna(0)
    with pytest.raises(cvstats.errors.LogError, match="2 repetitions"):
        cvstats.holdout(twice, interval="clopper-pearson")
