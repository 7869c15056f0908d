"""Equivalence, non-inferiority and the region of practical equivalence."""

import math

import numpy as np
import oracle
import oracle_many
import pandas as pd
import pytest
from calls import refuses
from hypothesis import given
from hypothesis import strategies as st
from paired_logs import MARGINS, equivalent_models
from scipy import stats
from strategies import logs, shuffled

import cvstats
from cvstats.comparisons.zero_one import CORRECTION, score_statistic
from cvstats.errors import LogError

FRAME = equivalent_models()


@given(logs(sizes=(3, 6), folds=(2, 4)), st.integers(0, 99), MARGINS)
def test_two_one_sided_tests_as_in_the_oracle(rows, seed, margin):
    low, high = margin
    one = shuffled(rows, seed)
    ours = cvstats.equivalence(one, one * 0, margin=margin, method="wald").iloc[0]
    exact = oracle.wald(rows)
    if exact.se > 1e-3:
        wanted = oracle_many.tost(float(exact.estimate), exact.se, low, high, None)
        assert ours["p_value"] == pytest.approx(wanted, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("method", [None, "corrected_t", "naive", "cv_t"])
def test_equivalent_where_the_interval_lies_within(alpha, method):
    frame = equivalent_models(names="abcdef")
    plain = frame.cvci.compare(method=method, alpha=2 * alpha, adjust=None)
    for margin in (0.05, 0.3, 0.6, (-0.1, 0.4), (None, 0.2), (-0.3, None)):
        table = frame.cvci.equivalence(margin=margin, alpha=alpha, method=method)
        for name in ("difference", "se", "lower", "upper"):
            np.testing.assert_array_equal(table[name], plain[name])
        low, high = margin if isinstance(margin, tuple) else (-margin, margin)
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        inside = (table["lower"] > low) & (table["upper"] < high)
        np.testing.assert_array_equal(table["equivalent"], inside)
        np.testing.assert_array_equal(table["equivalent"], table["p_value"] < alpha)
        assert table["equivalent"].dtype == bool


def test_without_variance():
    whole = (FRAME[["a"]] * 1000).round()  # the difference is then exactly constant
    frame = whole.assign(twin=whole["a"], up=whole["a"] + 1000)
    table = frame.cvci.equivalence(margin=1000)
    assert list(table["p_value"]) == [0, 1, 1]  # the margin itself is not within
    assert list(table["equivalent"]) == [True, False, False]
    assert list(frame.cvci.equivalence(margin=1001)["p_value"]) == [0, 0, 0]


def test_words_of_margins():
    for margin in (0, -1, math.nan, math.inf, "wide", (0.1,), (0.2, 0.1), (None, None),
                   (None, -math.inf), (math.inf, None), (math.nan, 1), ("a", 1), True,
                   "1"):  # fmt: skip
        with pytest.raises(LogError, match=r"Invalid margin=.*None leaves that side open"):
            FRAME.cvci.equivalence(margin=margin)
    for call in (FRAME.cvci.equivalence, FRAME.cvci.rope):
        refuses(r"margin is required: the data cannot.*margin=0\.01", call)
        with pytest.raises(TypeError):  # as Python refuses a missing argument
            call()
    refuses("Expected below 0.5", FRAME.cvci.equivalence, margin=1, alpha=0.5)
    halves = equivalent_models(n=10, k=2, repetitions=5)
    with pytest.raises(LogError, match="needs a standard error, but five_by_two"):
        halves.cvci.equivalence(margin=1, method="five_by_two", options={"test": "f"})


def test_percentage_points_are_no_fractions():
    flips = np.random.default_rng(0).random((200, 2)) < 0.3
    wrong = pd.DataFrame(flips * 1.0, columns=["a", "b"]).rename_axis("point")
    flights = cvstats.datasets.load("flights")
    metric = cvstats.losses(flights, prediction=flights.attrs["models"][:2], loss="auc")
    for log in (wrong, cvstats.Moments.of_log(wrong, pairs=True), metric):
        for call, option in ((cvstats.equivalence, "margin"), (cvstats.power, "effect")):
            words = f"{option}=2 is too large, because all values are between 0 and 1.*=0.02 is 2 p"
            refuses(words, call, log, **{option: 2})
    for watched in (wrong, cvstats.Moments.of_log(wrong, pairs=True), metric.droplevel("fold")):
        refuses("margin=2 is too large", cvstats.monitor, watched, margin=2)
    refuses("margin=0.01 is 1 percentage point", wrong.cvci.equivalence, margin=1)
    assert wrong.cvci.equivalence(margin=(None, 0.9))["equivalent"].all()
    for free in (0.0 * wrong, 3 * wrong, wrong + 0.1):
        assert free.cvci.equivalence(margin=2).attrs["margin_high"] == 2
        assert cvstats.monitor(free, margin=2).n_losses == 200


def largest_size(n, margin):
    """The exact probability of equivalence at the margin, at the worst rate of disagreement."""
    n10, n01 = (counts.astype(float) for counts in np.indices((n + 1, n + 1)))
    z = stats.norm.isf(0.05)
    region = n10 + n01 <= n
    region &= score_statistic(n10, n01, n, margin, -CORRECTION) < -z
    region &= score_statistic(n10, n01, n, -margin, CORRECTION) > z
    above = np.cumsum(region[::-1], axis=0)[::-1]  # a run of counts for each n01: its ends
    last = np.where(region.any(axis=0), n - region[::-1].argmax(axis=0), -1)
    first = np.where(region.any(axis=0), region.argmax(axis=0), 0)
    assert (above[0] == np.where(last < 0, 0, last - first + 1)).all()
    counts, found = np.arange(n + 1), 0.0
    for q in np.r_[0, 1e-4, 1e-3, np.geomspace(4e-3, (1 - margin) / 2, 15)]:
        share = min((q + margin) / (1 - q), 1.0)
        inside = stats.binom.cdf(last, n - counts, share)
        inside -= stats.binom.cdf(first - 1, n - counts, share)
        found = max(found, float((stats.binom.pmf(counts, n, q) * inside)[last >= 0].sum()))
    return found


@pytest.mark.parametrize("n", [30, 45, 65, 90, 150, 300, 500])
def test_size_at_the_margin(n):
    sizes = [largest_size(n, margin) for margin in (0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1)]
    assert max(sizes) <= 0.051
    assert max(sizes) > 0.025
    assert "is at most .051" in str(cvstats.equivalence.__doc__)
