"""wald against the oracle, and methods of folds against the R package inferGE."""

import json

import oracle
import pytest
from fold_logs import ALPHAS, REFERENCE, WEIGHTS, agrees, assert_agrees_with_r, frame_log
from hypothesis import assume, given
from hypothesis import strategies as st
from rows import only_row
from strategies import logs, losses, shuffled

import cvstats

R_PEERS = json.loads((REFERENCE / "r_peers.json").read_text(encoding="utf-8"))


def test_agrees_with_r(capsys):
    assert_agrees_with_r(
        R_PEERS,
        lambda case: frame_log(case["log"], case["loss"]),
        lambda case: case["id"].rsplit(" ", 1)[0],
        capsys,
    )


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


@given(logs(sizes=(1, 5), repetitions=(1, 3)))
def test_all_pairs_with_folds_of_one_point(rows):
    assume(len(rows) > 1 and len({row.point for row in rows}) > 1)
    for weights in WEIGHTS:
        ours = cvstats.wald(shuffled(rows), fold_weights=weights)
        agrees(ours, oracle.wald(rows, fold_weights=weights), rows)
    agrees(cvstats.naive(shuffled(rows)), oracle.naive(rows), rows)


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
