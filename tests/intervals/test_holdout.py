"""holdout against the oracle, and what it refuses."""

from __future__ import annotations

import oracle
import pandas as pd
import pytest
from fold_logs import ALPHAS, LIMITS, agrees
from golden import log_named
from hypothesis import given
from hypothesis import strategies as st
from rows import only_row
from strategies import logs, series

import cvstats


@given(st.data(), st.sampled_from(["wald", "t"]), ALPHAS)
def test_holdout(data, interval, alpha):
    rows = data.draw(logs(sizes=(2, 14), folds=(1, 1), repetitions=(1, 3)))
    exact = oracle.holdout(rows, interval, alpha)
    log = series(rows, levels=("repetition", "point"))
    agrees(cvstats.holdout(log, interval=interval, alpha=alpha), exact, rows)


@given(logs(sizes=(2, 30), folds=(1, 1), zero_one=True), ALPHAS)
def test_holdout_of_proportions(rows, alpha):
    log = series(rows, levels=("point",))
    for interval in ("wilson", "clopper-pearson"):
        exact = oracle.holdout(rows, interval, alpha)
        ours = only_row(cvstats.holdout(log, interval=interval, alpha=alpha))
        for name in LIMITS:
            assert ours[name] == pytest.approx(float(getattr(exact, name)), rel=1e-12, abs=1e-15)
        assert 0 <= ours["lower"] < ours["upper"] <= 1
        assert "zero variance" not in ours["caution"]


def test_proportions_of_several_repetitions_are_refused():
    right = log_named("binary set")
    twice = pd.concat({0: right, 1: right}, names=["repetition"])
    with pytest.raises(cvstats.LogError, match="this log has 2 repetitions"):
        cvstats.holdout(twice, interval="clopper-pearson")
