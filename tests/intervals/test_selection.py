"""What each method says of a log, and which one the design of the log calls for."""

import re
from itertools import product

import golden
import numpy as np
import pandas as pd
import pytest
from calls import refuses
from resampled_logs import example
from rows import multi_index, only_row, product_index
from strategies import ROADS, stacked
from together import together

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import interval_names, list_methods

METHODS = {method.name: method for method in list_methods()}
INTERVALS = interval_names()
WITHOUT_PLAN = ("answers", "clustered", "heterogeneity", "ordered", "wild_cluster")


def log_of(name, **attrs):
    """A standard log, or a part of one, whose attrs may be set."""
    log = MADE[name]() if name in MADE else golden.log_named(name)
    log = log.copy()
    log.attrs = attrs
    return log


def folds_of_sources():
    log = golden.log_named("by source")
    fold = log.index.get_level_values("source").factorize()[0]
    return log.set_index(pd.Index(fold, name="fold"), append=True)


def two_sources():
    log = golden.log_named("by source")
    return log[log.index.get_level_values("source").isin(log.index.unique("source")[:2])]


MADE = {
    "two sources": two_sources,
    "bootstrap samples alone": lambda: golden.log_named("bootstrap").drop(0, level="repetition"),
    "folds that are sources": folds_of_sources,
}
LOGS = {
    "one set": ("holdout", "one test set of 36 points"),
    "seeds": ("holdout", "one test set of 36 points, evaluated 3 times"),
    "k-fold": ("wald", "a partition into 5 folds: every point is tested once"),
    "leave-one-out": ("wald", "leave-one-out: every point is tested once"),
    "repeated": (
        "wald", "3 repetitions of a partition into 5 folds: every point is tested once in each",
    ),
    "five by two": (
        "wald", "5 repetitions of a partition into 2 folds: every point is tested once in each",
    ),
    "splits": (
        "corrected_t", "random splits: 5 repetitions that each test some of the points",
    ),
    "halves": (
        "conservative_z", "random splits of the data and of its halves (level 'sample')",
    ),
    "replaced": (
        "replace_one",
        "cross-validation of half the data, with one training point replaced at a time",
    ),
    "nested": ("nested_cv", "nested cross-validation (level 'outer')"),
    "bootstrap": (
        "bootstrap_632", "bootstrap samples plus a fit to the original data (repetition 0)",
    ),
    "bootstrap samples alone": (
        "bootstrap_oob", "bootstrap samples, without the fit on the sample itself",
    ),
    "case bootstrap": (
        "case_bootstrap", "leave-one-out cross-validation within each bootstrap sample",
    ),
    "by source": ("out_of_source", "5 sources, each tested as a whole (level 'source')"),
    "two sources": ("out_of_source", "2 sources, each tested as a whole (level 'source')"),
    "crossed": (
        "clustered",
        "the points 0, 1, 2, ... occur in every source: 17 points in 5 sources, and both are "
        "sampling units; pass points='nested' if each source numbers its points separately",
    ),
    "folds that are sources": (
        "out_of_source", "5 sources, left out one at a time (level 'source')",
    ),
    "spread sources": (
        "wald",
        "a partition into 5 folds: every point is tested once; sources occur in several folds, so "
        "points are the sampling unit",
    ),
}  # fmt: skip

NOTED = {"splits": {"n_train": 20}, "bootstrap": {"no_information": 4.0}}
"""What no level tells, where `cvstats.evaluate` leaves it."""


@pytest.mark.parametrize("kind", LOGS)
def test_the_design_chooses(kind):
    method, reason = LOGS[kind]
    log = log_of(kind, **NOTED.get(kind, {}))
    found = cvstats.interval(log, alpha=0.1)
    assert found.attrs["method"] == method
    assert chosen_for(found) == reason
    both = {"by": ("source", "point")} if kind == "crossed" else {}
    alone = getattr(cvstats, method)(log, alpha=0.1, **both)
    pd.testing.assert_frame_equal(found, alone)
    assert alone.attrs.items() <= found.attrs.items()
    same = log.cvci.interval(alpha=0.1)
    pd.testing.assert_frame_equal(same, found)
    assert cvstats.methods(log).loc[method, "applies"]


def chosen_for(result):
    """The reason, less what the study measured."""
    return result.attrs["reason"].partition("; in ")[0]


@pytest.mark.parametrize("kind", LOGS)
def test_what_applies_runs_and_what_does_not_says_why(kind):
    log = log_of(kind, n_train=20, no_information=4.0)
    table = log.cvci.methods()
    assert sorted(table.index) == sorted(METHODS)
    assert table["applies"].is_monotonic_decreasing
    assert table["applies"].dtype == bool
    for name, row in table.iterrows():
        if name not in INTERVALS:
            continue  # describes a log, or compares models
        if row["applies"]:
            assert row["why_not"] == ""
            assert not cvstats.interval(log, method=name)["estimate"].isna().any()
        elif (kind, name) != ("leave-one-out", "quadratic"):  # another estimator applies
            with pytest.raises(LogError) as caught:
                cvstats.interval(log, method=name)
            no_plan = name.startswith("source_") or name in WITHOUT_PLAN
            assert "cvstats.plans." in row["why_not"] or no_plan, row["why_not"]
            assert row["why_not"] in str(caught.value)
            assert str(caught.value).startswith(f"{name} needs {row['needs']}; ")
    for column in ("target", "guarantee", "fits", "reference"):
        assert (table[column].str.len() > 0).all()


OPTIONS = {
    "best_set": {"rng": 0, "n_draws": 100}, "equivalence": {"margin": 0.1},
    "power": {"effect": 0.1}, "rope": {"margin": 0.1}, "winner": {"rng": 0, "n_draws": 100},
    "source_components": {"independent": "dataset"},
}  # fmt: skip
CONTAINERS = {
    "frame": lambda log: log,
    "series": lambda log: log.iloc[:, 0],
    "array": stacked,
    "lazy array": lambda log: stacked(log).chunk(),
    "moments": cvstats.Moments.of_log,
    "moments with pairs": lambda log: cvstats.Moments.of_log(log, pairs=True),
}


@together(product([*LOGS, "binary"], CONTAINERS), by=lambda kind, container: kind)
def test_methods_lists_what_runs(kind, container):
    facts = {"points_are": "crossed"} if kind == "crossed" else {}
    log = log_of(kind, n_train=20, no_information=4.0, **facts)
    if "moments" in container and "count" in log.index.names:
        return  # bootstrap samples have no moments
    losses = CONTAINERS[container](log)
    if "array" in container:
        losses.attrs = log.attrs
    table = cvstats.methods(losses)
    runs, refusals = {}, {}
    for name in table.index:
        try:
            result = getattr(cvstats, name)(losses, **OPTIONS.get(name, {}))
            if container == "lazy array":
                result.compute()
            runs[name] = True
        except LogError as error:
            runs[name], refusals[name] = False, str(error)
    applies = table["applies"].to_dict()
    assert runs == applies, {
        name: refusals.get(name, table.loc[name, "why_not"])
        for name in runs if runs[name] != applies[name]
    }  # fmt: skip


def test_what_no_log_tells_is_asked_for():
    log = example("corrected_t")
    refuses(re.escape("corrected_t(losses, train_size=90)"), cvstats.interval, log)
    for metadata in ({"n_train": 16}, {"n_train": [16] * 6}):
        log.attrs = metadata
        found = cvstats.interval(log)
        assert found.attrs["n_train"] == 16.0
        assert cvstats.corrected_t(log, train_size=10).attrs["n_train"] == 10.0
    log.attrs = {"n_train": [16] * 5}  # some splits were taken out since
    refuses("the number of points each model was trained on", cvstats.interval, log)


def flights(name):
    log = cvstats.datasets.load("flights")
    losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    return losses.rename_axis(index={"fold": name})


def test_sources_are_no_folds_without_a_word():
    """A level that may be the folds under another name is doubted aloud."""
    odd = flights("cv_split")
    for result in (odd.cvci.out_of_source(), odd.cvci.wald(), odd.cvci.interval()):
        assert "unused level" in only_row(result)["caution"]
    assert "no level is called 'fold'" in odd.cvci.interval().attrs["reason"]
    other = odd.rename_axis(index={"cv_split": "decade"})  # whatever its name
    assert "unused level" in only_row(other.cvci.wald())["caution"]
    assert "level 'decade' with" in other.cvci.diagnose().set_index("code").loc["CVS021", "finding"]
    clear = odd.droplevel("cv_split")
    assert "unused level" not in only_row(clear.cvci.out_of_source())["caution"]


@pytest.mark.parametrize("pairs", [False, True])
def test_moments_of_two_models_compare_where_they_have_pairs(pairs):
    index = multi_index(fold=np.arange(40) % 5, point=range(40))
    log = pd.DataFrame(np.random.default_rng(0).random((40, 2)), index, ["a", "b"])
    table = cvstats.Moments.of_log(log, pairs=pairs).methods()
    assert table.loc["compare", "applies"] == pairs
    assert ("pairs=True" in table.loc["compare", "why_not"]) != pairs


FOLDS = golden.log_named("k-fold")[["a"]]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("method", [None, "wald"])
def test_options_belong_to_the_method_that_was_chosen(road, method):
    within = only_row(FOLDS.cvci.wald(variance="within-fold"))
    found = cvstats.interval(ROADS[road](FOLDS), method=method, variance="within-fold")
    assert float(np.squeeze(found["se"])) == pytest.approx(within["se"], rel=1e-12)
    assert float(np.squeeze(found["se"])) != only_row(FOLDS.cvci.wald())["se"]


def test_options_replace_the_limits_of_a_proportion():
    log = (FOLDS > 2).astype(float)
    assert log.cvci.interval(scale="logit").equals(log.cvci.wald(scale="logit"))
    assert not log.cvci.interval().equals(log.cvci.wald())


def test_these_sources_of_crossed_times():
    times = product_index(source=list("abc"), point=pd.date_range("2030-01-01", periods=40))
    log = pd.Series(np.random.default_rng(6).gamma(2.0, size=120), times, name="a")
    found = log.cvci.interval(target="these_sources")
    pd.testing.assert_frame_equal(found, log.cvci.ordered())
    assert found.attrs["method"] == "ordered"
    assert found.attrs["reason"].endswith("for these sources, only the times are sampled")
    array = log.to_xarray().cvci.interval(target="these_sources")
    assert array.attrs["reason"] == found.attrs["reason"]
    two = pd.concat({"a": log, "b": 1.2 * log.iloc[::-1]}, axis=1)
    two.attrs["sources_are"] = "fixed"
    for options in ({}, {"target": "these_sources"}, {"points": "crossed"}):
        fixed = two.cvci.interval(**options)
        pd.testing.assert_frame_equal(fixed, two.cvci.ordered())
        assert fixed.attrs["reason"].startswith("3 fixed sources with the same dates; only the")
    pairs = two.cvci.compare()
    pd.testing.assert_frame_equal(pairs, two.cvci.compare(method="ordered"))
    best = two.cvci.best_set(rng=0)
    assert abs(best["statistic"]["a"]) == pytest.approx(abs(pairs["statistic"].iloc[0]))
    assert "long-run mean loss" in best.attrs["target"]
    moments = cvstats.Moments.of_log(two, pairs=True)
    for ask in (moments.interval, moments.compare):
        refuses("individual losses", ask)
    lazy = two.to_xarray().to_dataarray("model").chunk(point=20).assign_attrs(two.attrs)
    refuses("method='ordered'", lazy.cvci.interval().compute)
    array = two.to_xarray().to_dataarray("model").assign_attrs(two.attrs)
    for any_log in (two, array, array.chunk(point=20), moments):  # .77 covered with such a level
        for call in (cvstats.out_of_source, cvstats.clustered):
            labels = cvstats.cautions(call(any_log)).values.ravel()
            assert all("dependence ignored" in label for label in labels)
    named = two.cvci.compare(method="out_of_source")
    assert "dependence ignored" in named["caution"].iloc[0]
    two.attrs["points_are"] = "nested"
    assert "dependence ignored" not in two.cvci.out_of_source()["caution"].iloc[0]
    one_out = folds_of_sources()
    expected = one_out.cvci.out_of_source(target="these_sources")
    pd.testing.assert_frame_equal(one_out.cvci.interval(target="these_sources"), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"varance": "all-pairs"}, "interval() got an unexpected option 'varance'"),
     ({"alhpa": 0.1}, "Did you mean 'alpha'?"),
     ({"method": "naive", "variance": "all-pairs"}, "unexpected option 'variance'"),
     ({"target": "these_sources"}, "unexpected option 'target'")],
)  # fmt: skip
@pytest.mark.parametrize("call", [cvstats.interval, lambda log, **any: log.cvci.interval(**any)])
def test_options_of_no_method(call, options, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        call(FOLDS, **options)
    refuses("variance='between'", call, FOLDS, variance="between")


def test_the_table_states_the_targets_and_guarantees_of_the_results():
    losses = 1 - cvstats.datasets.load("llm")[["aster-70b", "dahlia"]]
    for log, names in (
        (losses, ["clustered", "wild_cluster"]),
        (losses.droplevel("source"), ["holdout", "wald"]),
        (log_of("spread sources"), ["clustered", "wild_cluster", "wald"]),
    ):
        table = cvstats.methods(log)
        for name in names:
            facts = getattr(cvstats, name)(log).attrs
            assert table.loc[name, "target"] == facts["target"]
            assert table.loc[name, "guarantee"] == facts["guarantee"]
