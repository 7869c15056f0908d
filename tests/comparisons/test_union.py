"""The interval of a difference from the intervals of both models: compare(method="union")."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cvstats.errors import LogError

RNG = np.random.default_rng(60)


def models(n=60, k=5, repetitions=2, names="abc"):
    rep, row = np.repeat(np.arange(repetitions), n), np.tile(np.arange(n), repetitions)
    index = pd.MultiIndex.from_arrays(
        [rep, (row + rep) % k, row // 6, row], names=["repetition", "fold", "source", "point"]
    )
    losses = RNG.normal(size=(n, 1))[row] + RNG.normal(size=(len(row), len(names)))
    return pd.DataFrame(losses + np.arange(len(names)), index, list(names))


FRAME = models()
PLAIN = FRAME.droplevel("source")


@pytest.mark.parametrize(
    ("method", "options"),
    [("wald", {}), ("wald", {"variance": "within-fold"}), ("corrected_t", {}), ("quadratic", {})],
)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_limits_are_those_of_both_models_at_half_the_level(method, options, alpha):
    log = PLAIN.xs(0, level="repetition") if method == "quadratic" else PLAIN
    each = getattr(log.cvci, method)(alpha=alpha / 2, **options)
    asked = {**options, "method": method}
    found = log.cvci.compare(method="union", options=asked, alpha=alpha)
    for (one, two), row in found.iterrows():
        assert row["difference"] == pytest.approx(
            each.loc[one, "estimate"] - each.loc[two, "estimate"], rel=1e-12
        )
        assert row["lower"] == each.loc[one, "lower"] - each.loc[two, "upper"]
        assert row["upper"] == each.loc[one, "upper"] - each.loc[two, "lower"]
        assert np.isnan(row["se"])
    assert found.attrs["interval_method"] == "union"
    assert found.attrs["interval_of_each"] == method
    assert found.attrs["alpha"] == alpha


@pytest.mark.parametrize("method", ["wald", "corrected_t"])
def test_the_interval_at_the_p_value_ends_at_zero(method):
    options = {"method": method}
    for pair, row in PLAIN.cvci.compare(method="union", options=options, adjust=None).iterrows():
        table = PLAIN[list(pair)].cvci.compare(
            method="union", options=options, alpha=row["p_value"]
        )
        nearest = table[["lower", "upper"]].abs().min(axis=1).item()
        assert nearest == pytest.approx(0, abs=1e-10)


def test_the_p_value_by_hand():
    each = PLAIN.cvci.wald()
    row = PLAIN[["a", "b"]].cvci.compare(method="union").iloc[0]
    statistic = (each["estimate"]["a"] - each["estimate"]["b"]) / (
        each["se"]["a"] + each["se"]["b"]
    )
    assert row["statistic"] == pytest.approx(statistic, rel=1e-12)
    assert row["p_value"] == pytest.approx(min(1, 4 * stats.norm.sf(abs(statistic))), rel=1e-12)


def test_limits_of_proportions_have_no_p_value():
    wrong = PLAIN.gt(PLAIN.mean()).astype(float)[["a", "b"]]
    for interval, known in (("wald", True), ("wilson", False)):
        found = wrong.cvci.compare(method="union", options={"method": "wald", "interval": interval})
        assert found["p_value"].notna().all() == known
        assert found["lower"].notna().all()


def test_the_interval_of_each_is_the_default_of_differences_unless_another_is_named():
    plain = PLAIN.cvci.compare(method="union")
    named = PLAIN.cvci.compare(method="union", options={"method": "wald"})
    pd.testing.assert_frame_equal(plain, named)
    assert plain.attrs["interval_of_each"] == "wald"
    for sources in (FRAME, PLAIN):
        log = sources.xs(0, level="repetition").droplevel("fold")
        chosen = log.cvci.compare().attrs["interval_method"]
        found = log.cvci.compare(method="union")
        assert found.attrs["interval_of_each"] == chosen != "wald"
        each = getattr(log.cvci, chosen)(alpha=0.025)
        lower = each.loc["a", "lower"] - each.loc["b", "upper"]
        assert found.loc[("a", "b"), "lower"] == pytest.approx(lower, rel=1e-12)


def test_limits_without_standard_errors_have_no_p_value():
    rng = np.random.default_rng(3)
    codes = np.concatenate([rng.permutation(40) % 2 for _ in range(5)])
    index = pd.MultiIndex.from_arrays(
        [np.repeat(range(5), 40), codes, np.tile(range(40), 5)],
        names=["repetition", "fold", "point"],
    )
    log = pd.DataFrame(rng.normal(size=(200, 2)) + 1, index, ["a", "b"])
    options = {"method": "five_by_two", "test": "f"}
    row = log.cvci.compare(method="union", options=options).iloc[0]
    each = log.cvci.five_by_two(test="f", alpha=0.025)
    assert row["lower"] == each.loc["a", "lower"] - each.loc["b", "upper"]
    assert np.isnan(row["p_value"])
    assert "no p-value" in row["caution"]


REFUSALS = {
    "one-sided": ({"alternative": "less"}, "needs a standard error, but union"),
    "max-t": ({"adjust": "max-t"}, "those of union with these options do not"),
    "inside": ({"options": {"method": "union"}}, "Invalid method='union'. Expected one of"),
    "nobody's": ({"options": {"variance": "within-fold"}}, "options= requires method="),
    "option": (
        {"options": {"method": "wald", "train_size": 3}},
        "wald has no option 'train_size' for differences",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    options, words = REFUSALS[case]
    with pytest.raises(LogError) as error:
        PLAIN.cvci.compare(method="union", **options)
    assert words in str(error.value)


def test_equivalence_refuses_it_in_words():
    with pytest.raises(LogError, match="equivalence needs a standard error, but union"):
        PLAIN.cvci.equivalence(margin=0.5, method="union")


def test_an_interval_for_proportions_serves_for_each_model():
    binary = (PLAIN.xs(0, level="repetition").droplevel("fold") > 0).astype(float)
    options = {"method": "holdout", "interval": "wilson"}
    found = binary.cvci.compare(method="union", options=options)
    each = binary.cvci.holdout(interval="wilson", alpha=0.025)
    row = found.loc[("a", "b")]
    assert row["lower"] == each.loc["a", "lower"] - each.loc["b", "upper"]
    with pytest.raises(LogError, match="a difference is not one"):
        binary.cvci.compare(method="holdout", options={"interval": "wilson"})


@pytest.mark.parametrize(("gap", "statistic", "p"), [(0.0, 0.0, 1.0), (1.0, -np.inf, 0.0)])
def test_models_of_one_loss_each(gap, statistic, p):
    log = PLAIN[["a", "b"]] * 0.0 + [1.0, 1.0 + gap]
    row = log.cvci.compare(method="union").iloc[0]
    assert (row["statistic"], row["p_value"]) == (statistic, p)
