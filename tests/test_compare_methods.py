"""Comparisons by any interval that applies to differences, and all pairs from one matrix."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from rows import only_row

import cvstats
from cvstats import plans
from cvstats.api.running import RUNNERS
from cvstats.comparisons import paired
from cvstats.core.result import Result
from cvstats.errors import LogError

RNG = np.random.default_rng(61)
ALTERNATIVES = ["two-sided", "less", "greater"]
FIRST = ["difference", "lower", "upper", "se"]


def from_plan(plan, n=40, names="abc", sources=None):
    """Losses of models that learn nothing, for every evaluation of a plan."""
    groups = {} if sources is None else {"groups": np.arange(n) % sources}
    parts = []
    lasting = RNG.gamma(2.0, size=(n, 1)) + RNG.normal(size=(n, len(names)))
    for fit in plan.bind(n, **groups):
        for test in fit.evaluations:
            levels = {**test.levels, "point": test.points}
            if test.count is not None:
                levels["count"] = test.count
            values = lasting[test.points] + 0.5 * RNG.normal(size=(len(test.points), len(names)))
            values += 0.2 * RNG.normal(size=len(names))
            part = pd.DataFrame(values, columns=list(names))
            parts.append(part.assign(**levels).set_index(list(levels)))
    return pd.concat(parts)


def with_sources(n=40, names="abc"):
    frame = from_plan(plans.k_fold(5, rng=0), n, names)
    points = frame.index.get_level_values("point")
    return frame.assign(source=points % 8).set_index("source", append=True)


LOGS = {
    "wald": lambda: from_plan(plans.k_fold(5, rng=0)),
    "holdout": lambda: from_plan(plans.holdout(rng=0), 100),
    "naive": lambda: from_plan(plans.k_fold(5, rng=0)),
    "cv_t": lambda: from_plan(plans.k_fold(5, rng=0)),
    "quadratic": lambda: from_plan(plans.k_fold(5, rng=0)),
    "corrected_t": lambda: from_plan(plans.repeated_k_fold(5, 2, rng=0)),
    "conservative_z": lambda: from_plan(plans.paired_subsampling(3, 4, rng=0)),
    "five_by_two": lambda: from_plan(plans.five_by_two(rng=0)),
    "nested_cv": lambda: from_plan(plans.nested_cv(4, 5, rng=0)),
    "replace_one": lambda: from_plan(plans.replace_one(4, rng=0)),
    "clustered": with_sources,
    "out_of_source": lambda: from_plan(plans.leave_one_source_out(), sources=6),
    "bootstrap_oob": lambda: from_plan(plans.bootstrap(30, rng=0)),
}


def test_every_runner_has_a_log_here():
    assert set(LOGS) == set(RUNNERS)


@pytest.mark.parametrize("method", LOGS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_interval_is_that_of_the_log_of_differences(method, alternative):
    frame = LOGS[method]()
    own = getattr(frame.cvci.difference().cvci, method)()
    table = frame.cvci.compare(method=method, alternative=alternative)
    assert list(table.index) == list(own.index) == list(itertools.combinations("abc", 2))
    np.testing.assert_allclose(table["difference"], own["estimate"], rtol=1e-11)
    np.testing.assert_allclose(table["se"], own["se"], rtol=1e-11)
    if alternative == "two-sided":
        np.testing.assert_allclose(table[["lower", "upper"]], own[["lower", "upper"]], rtol=1e-11)
        known = ~table["se"].isna()
        apart = (table["lower"] > 0) | (table["upper"] < 0)
        assert (apart == (table["p_value"] < 0.05))[known].all()
    if "df" in own:
        np.testing.assert_array_equal(table["df"], own["df"])
    assert table.attrs["interval_method"] == method
    one = cvstats.compare(frame["a"], frame["c"], method=method, alternative=alternative)
    np.testing.assert_allclose(one[FIRST], table.loc[[("a", "c")], FIRST], rtol=1e-11)


@pytest.mark.parametrize("method", sorted(set(LOGS) - {"quadratic", "nested_cv"}))
def test_max_t_with_every_method(method):
    frame = LOGS[method]()
    table = frame.cvci.compare(method=method, adjust="max-t", rng=0, n_draws=2_000)
    single = frame.cvci.compare(method=method)
    assert (table["p_adjusted"] >= table["p_value"] - 0.05).all()
    assert (table["upper"] - table["lower"] > 0.999 * (single["upper"] - single["lower"])).all()


# --- intervals without a symmetric standard error -------------------------------------------------


def test_the_combined_f_test():
    frame = LOGS["five_by_two"]()
    table = frame.cvci.compare(method="five_by_two", options={"test": "f"})
    own = frame.cvci.difference().cvci.five_by_two(test="f")
    assert table["se"].isna().all()
    for name in ("lower", "upper", "statistic", "p_value"):
        np.testing.assert_allclose(table[name], own[name], rtol=1e-11)
    apart = (table["lower"] > 0) | (table["upper"] < 0)
    whole = table["lower"].notna()
    assert (apart == (table["p_value"] < 0.05))[whole].all()
    assert list(table.columns[:7]) == [*FIRST, "statistic", "p_value", "p_adjusted"]
    for alternative in ("less", "greater"):
        with pytest.raises(LogError, match="needs a standard error, and five_by_two with these"):
            frame.cvci.compare(method="five_by_two", options={"test": "f"}, alternative=alternative)
    with pytest.raises(LogError, match="adjust='max-t' needs standard errors"):
        frame.cvci.compare(method="five_by_two", options={"test": "f"}, adjust="max-t")


def test_percentiles_have_no_test():
    columns = {
        "estimate": np.array([0.2, 0.1, np.nan]),
        "se": np.full(3, np.nan),
        "lower": np.array([0.1, -0.1, np.nan]),
        "upper": np.array([0.4, 0.2, np.nan]),
        "n_points": np.full(3, 9),
    }
    base = Result("percentile", columns, np.array([0, 64, 1]), {"alpha": 0.05})
    found = paired.tested(base, alternative="two-sided", alpha=0.05)
    assert list(found.columns) == [*FIRST, "statistic", "p_value", "n_points"]
    for name in ("lower", "upper"):
        np.testing.assert_array_equal(found.columns[name], columns[name])
    assert np.isnan(found.columns["p_value"]).all()
    assert list(found.caution) == [1 << 21, 1 << 21, 1]
    assert list(base.caution) == [0, 64, 1]


# --- options --------------------------------------------------------------------------------------


def test_options_of_the_method():
    frame = LOGS["wald"]()
    table = frame.cvci.compare(method="wald", options={"variance": "within-fold"})
    own = frame.cvci.difference().cvci.wald(variance="within-fold")
    np.testing.assert_allclose(table["se"], own["se"], rtol=1e-12)
    splits = from_plan(plans.subsampling(6, ratio=0.8, rng=0))
    table = splits.cvci.compare(method="corrected_t", options={"train_size": 32})
    own = splits.cvci.difference().cvci.corrected_t(train_size=32)
    np.testing.assert_allclose(table[FIRST], own[["estimate", "lower", "upper", "se"]], rtol=1e-12)
    sourced = LOGS["clustered"]()
    table = sourced.cvci.compare(method="clustered", options={"correction": "CR3"})
    own = sourced.cvci.difference().cvci.clustered(correction="CR3")
    np.testing.assert_allclose(table["se"], own["se"], rtol=1e-12)


def test_words_of_options():
    frame = LOGS["wald"]()
    cases = {
        "Expected method= beside them": {"options": {"variance": "within-fold"}},
        r"'size', and wald has no such option.*'variance', 'fold_weights'": {
            "method": "wald", "options": {"size": 1},
        },
        "'alpha', and wald has no such option": {"method": "wald", "options": {"alpha": 0.1}},
        "Expected some of: none": {"method": "naive", "options": {"variance": "x"}},
        "variance='inside' is not known": {"method": "wald", "options": {"variance": "inside"}},
        "a difference is none": {"method": "holdout", "options": {"interval": "wilson"}},
    }  # fmt: skip
    for words, options in cases.items():
        with pytest.raises(LogError, match=words):
            frame.cvci.compare(**options)
    with pytest.raises(LogError, match="method='percentile' is not known"):
        frame.cvci.compare(method="percentile")


# --- all pairs from one matrix --------------------------------------------------------------------


def offset(n=2_000, m=12, k=10, repetitions=1):
    """Losses of a million and N(0, 1): exact differences, large squares."""
    rep, row = np.repeat(np.arange(repetitions), n), np.tile(np.arange(n), repetitions)
    index = pd.MultiIndex.from_arrays(
        [rep, (row + rep) % k, row], names=["repetition", "fold", "point"]
    )
    return pd.DataFrame(1e6 + RNG.normal(size=(len(rep), m)), index)


@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize("variance", ["all-pairs", "within-fold"])
def test_all_pairs_are_as_each_alone_on_large_losses(variance, repetitions, capsys):
    frame = offset(repetitions=repetitions)
    options = {"method": "wald", "options": {"variance": variance}, "adjust": None}
    table = frame.cvci.compare(**options)
    worst = 0.0
    for a, b in table.index:
        gap = frame[a] - frame[b]
        alone = gap.cvci.wald(variance=variance)
        own = only_row(alone)[["estimate", "lower", "upper", "se"]].to_numpy(dtype=float)
        off = (
            np.abs(table.loc[(a, b), FIRST].to_numpy(dtype=float) - own).max()
            / only_row(alone)["se"]
        )
        worst = max(worst, off)
    with capsys.disabled():
        print(f"\nall pairs, {variance}, {repetitions} repetitions: worst, in widths, {worst:.1e}")
    assert worst < 1e-12


def test_max_t_and_averages_on_large_losses():
    frame = offset(n=500, m=6).droplevel(["repetition", "fold"])
    table = frame.cvci.compare(adjust="max-t", rng=0)
    near = (frame - 1e6).cvci.compare(adjust="max-t", rng=0)
    np.testing.assert_allclose(table[FIRST], near[FIRST], rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(table["p_adjusted"], near["p_adjusted"])


# --- the accessor ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["compare", "best_set", "equivalence", "rope", "mcnemar", "cochran_q", "friedman", "nemenyi",
     "power"],
)  # fmt: skip
def test_methods_have_the_signature_of_their_function(name):
    function, method = getattr(cvstats, name), getattr(pd.Series([0.0]).cvci, name)
    theirs = list(inspect.signature(function).parameters.values())[1:]
    ours = list(inspect.signature(method).parameters.values())
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]
    assert [p.annotation for p in ours] == [p.annotation for p in theirs]
    assert "losses :" not in method.__doc__


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "wald": "wald", "holdout": "holdout", "corrected_t": "wald", "five_by_two": "wald",
        "out_of_source": "wald", "conservative_z": "conservative_z", "nested_cv": "nested_cv",
        "replace_one": "replace_one", "bootstrap_oob": "bootstrap_oob",
    }.items(),
)  # fmt: skip
def test_without_a_method_the_design_chooses(name, expected):
    log = LOGS[name]()
    usual = cvstats.compare(log, adjust=None)
    assert usual.attrs["interval_method"] == expected
    pd.testing.assert_frame_equal(usual, cvstats.compare(log, adjust=None, method=expected))


def test_random_splits_and_scores_are_compared_by_corrected_t():
    log = from_plan(plans.subsampling(20, ratio=0.9, rng=0))
    with pytest.raises(LogError, match="how many points each model was trained on"):
        cvstats.compare(log)
    log.attrs["n_train"] = 36
    assert cvstats.compare(log).attrs["interval_method"] == "corrected_t"
    assert log["a"].cvci.equivalence(log["b"], margin=9.0)["equivalent"].all()
    scores = log.groupby("repetition").mean()
    scores.attrs = {"holds": "scores", "n_train": 36, "n_test": 4}
    table = cvstats.compare(scores, reference="a")
    assert table.attrs["interval_method"] == "corrected_t"
    assert table["se"].tolist() == pytest.approx(
        [np.sqrt((1 / 20 + 4 / 36) * (scores[m] - scores["a"]).var()) for m in "bc"], rel=1e-12
    )
