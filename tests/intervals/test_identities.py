"""What ties the methods to each other, and what they do when there is next to nothing."""

import itertools

import oracle
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rows import only_row
from strategies import losses, series, shuffled, spread

import cvstats

WEIGHTS = ["size", "equal"]


def variance(result):
    return only_row(result)["se"] ** 2


@given(
    st.integers(2, 20).flatmap(losses),
    st.sampled_from(["two-sided", "less", "greater"]),
    st.sampled_from(["wald", "cv_t", "naive"]),
)
def test_interval_and_test_are_duals(values, alternative, method):
    rows = oracle.log(values, fold=[i % 2 for i in range(len(values))])
    one = shuffled(rows)
    two = pd.Series(0.0, index=one.index)
    arguments = {"method": method, "alternative": alternative}
    table = only_row(cvstats.compare(one, two, **arguments).iloc[0])
    assume(table["se"] > 1e-6 * spread(rows))
    p = table["p_value"]
    assume(1e-5 < p < 1 - 1e-9)  # a quantile near one knows a small alpha less well
    for alpha, excluded in ((p * (1 + 1e-9), True), (p * (1 - 1e-9), False)):
        ours = cvstats.compare(one, two, alpha=alpha, **arguments).iloc[0]
        assert (not only_row(ours)["lower"] <= 0 <= only_row(ours)["upper"]) == excluded, (
            alpha,
            ours,
        )
        assert only_row(ours)["p_value"] == p


def log_of(values, folds=None, repetitions=None):
    n = len(values)
    rows = oracle.log(
        values, fold=folds, repetition=repetitions,
        point=[i % (n // len(set(repetitions or [0]))) for i in range(n)],
    )  # fmt: skip
    return series(rows)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e9 + 0.3])
def test_equal_losses_make_a_point(value):
    log = log_of([value] * 7, [0, 0, 0, 1, 1, 2, 2])
    calls = [cvstats.wald, cvstats.naive, cvstats.cv_t]
    calls += [
        lambda log, kind=kind, w=w: cvstats.wald(log, variance=kind, fold_weights=w)
        for kind, w in itertools.product(("all-pairs", "within-fold"), WEIGHTS)
    ]
    calls += [
        lambda log, name=f"theta_{i}", w=w: cvstats.quadratic(log, estimator=name, fold_weights=w)
        for i, w in itertools.product(range(2, 6), WEIGHTS)
    ]
    calls += [lambda log: cvstats.holdout(log.droplevel("fold"))]
    for call in calls:
        ours = only_row(call(log))
        assert ours["estimate"] == ours["lower"] == ours["upper"] == value
        assert ours["se"] == 0
        assert "zero variance" in ours["caution"]
        assert "clamped" not in ours["caution"]
    parts = only_row(cvstats.decompose(log))
    assert (parts[["sigma2_minus_omega", "omega_minus_gamma", "theta_5", "theta_a"]] == 0).all()


def test_folds_may_be_called_anew_in_each_repetition():
    values = [1.0, 2, 3, 5, 1, 2, 4, 7]
    repetitions = [0] * 4 + [1] * 4
    log = log_of(values, list("aabbccdd"), repetitions)
    same = log_of(values, [0, 0, 1, 1] * 2, repetitions)
    for call in (cvstats.cv_t, lambda x: cvstats.wald(x, variance="within-fold")):
        pd.testing.assert_frame_equal(call(log), call(same), check_exact=True)
    pd.testing.assert_series_equal(
        cvstats.decompose(log), cvstats.decompose(same), check_exact=True
    )
