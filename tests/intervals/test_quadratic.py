"""The quadratic estimators against the oracle."""

import numpy as np
import oracle
import pytest
from fold_logs import ALPHAS, WEIGHTS, quantile_of, top_of
from golden import log_named
from hypothesis import given
from hypothesis import strategies as st
from rows import only_row
from strategies import close, logs, shuffled, spread

import cvstats

THETAS = [f"theta_{number}" for number in range(1, 6)]


@given(logs(sizes=(2, 4), folds=(2, 5)), st.sampled_from(list(WEIGHTS)), ALPHAS)
def test_quadratic_by_name(rows, fold_weights, alpha):
    weights = WEIGHTS[fold_weights]
    unit = spread(rows)
    for which, name in enumerate(THETAS, start=1):
        exact = oracle.quadratic_interval(rows, which, weights=weights, alpha=alpha)
        ours = only_row(
            cvstats.quadratic(
                shuffled(rows), estimator=name, fold_weights=fold_weights, alpha=alpha
            )
        )
        assert close(ours["estimate"], exact.estimate, rows)
        if which == 1:  # the mean itself, squared
            level = 2e-12 * top_of(rows) ** 2
            assert ours["variance_raw"] == pytest.approx(float(exact.variance), abs=level)
            continue
        assert close(ours["variance_raw"], exact.variance, rows, 2), name
        if abs(exact.variance) < 1e-6 * unit**2:
            continue  # a sign, or a root, that no double can tell
        assert ("variance clamped" in ours["caution"]) == (exact.variance < 0)
        for limit in ("se", "lower", "upper"):
            wanted = getattr(exact, limit)
            assert close(ours[limit], wanted, rows, tolerance=1e-9 * quantile_of(exact)), name
        assert ours.get("df") == exact.df


@given(
    logs(sizes=(2, 4), folds=(2, 5)),
    st.sampled_from(list(WEIGHTS)),
    st.tuples(*[st.sampled_from([0, 1, -1, 0.5, -2])] * 3),
)
def test_quadratic_by_bias(rows, fold_weights, bias):
    exact = oracle.quadratic(rows, bias, WEIGHTS[fold_weights])
    ours = only_row(cvstats.quadratic(shuffled(rows), bias=bias, fold_weights=fold_weights))
    level = top_of(rows) if sum(bias) != -1 else 0.0
    size = (spread(rows) + level) ** 2
    rounded = 8 * np.finfo(float).eps * top_of(rows) * spread(rows)  # of fold means, as doubles
    slack = 2e-12 * size + rounded
    assert ours["variance_raw"] == pytest.approx(float(exact), rel=1e-12, abs=slack)
    assert ("mean dominates" in ours["caution"]) == (sum(bias) != -1)
    assert "no losses" not in ours["caution"]
    if float(exact) < -1e-9 * size:
        assert ours[["se", "lower", "upper"]].isna().all()
        assert "negative" in ours["caution"]


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
    assert cvstats.quadratic(log_named("k-fold"), bias=bias).attrs["bias"] == words
