"""What each method says of a log, and which one the design of the log calls for."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import resampled_logs
from resampled_logs import example
from rows import only_row

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import interval_names, list_methods

METHODS = {method.name: method for method in list_methods()}
INTERVALS = interval_names()
WITHOUT_PLAN = ("answers", "clustered", "heterogeneity", "ordered", "wild_cluster")


def of(plan, models=1):
    index = resampled_logs.index_of(plan)
    table = np.random.default_rng(1).gamma(2.0, size=(len(index), models))
    return pd.DataFrame(table, index=index, columns=list("ab")[:models])


def folds(n=24, k=4, repetitions=1):
    log = of(resampled_logs.repeated_k_fold(n, k, repetitions, np.random.default_rng(2)))
    return log if repetitions > 1 else log.droplevel("repetition")


def bootstrap(own=True, out_of_bag=True, samples=40, n=12):
    """Bootstrap samples; `out_of_bag=False` has the points drawn only, as case samples have."""
    rng = np.random.default_rng(4)
    rows = [(0, point, 1) for point in range(n)] if own else []
    for b in range(1, samples + 1):
        counts = np.bincount(rng.integers(n, size=n), minlength=n)
        kept = range(n) if out_of_bag else np.flatnonzero(counts)
        rows += [(b, point, counts[point]) for point in kept]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "point", "count"])
    return pd.DataFrame({"a": rng.gamma(2.0, size=len(rows))}, index=index)


def sources(fold=None, points=range(40)):
    names = ["source", "point"]
    log = pd.DataFrame(
        {"a": np.random.default_rng(3).gamma(2.0, size=40)},
        index=pd.MultiIndex.from_arrays([np.repeat(list("abcde"), 8), points], names=names),
    )
    if fold is not None:
        log = log.set_index(pd.Index(fold(np.arange(40)), name="fold"), append=True)
    return log


def single_test_set():
    return of(resampled_logs.holdout(40, 20))


LOGS = {
    "one test set": (single_test_set, "holdout", "one test set of 20 points"),
    "a test set evaluated again": (
        lambda: pd.concat({"a": single_test_set(), "b": single_test_set()}, names=["repetition"]),
        "holdout",
        "one test set of 20 points, evaluated 2 times",
    ),
    "K-fold": (folds, "wald", "a partition into 4 folds: every point is tested once"),
    "leave-one-out": (
        lambda: folds(10, 10), "wald", "leave-one-out: every point is tested once",
    ),
    "repeated K-fold": (
        lambda: folds(repetitions=3),
        "wald",
        "3 repetitions of a partition into 4 folds: every point is tested once in each",
    ),
    "five by two": (
        lambda: example("five_by_two"),
        "wald",
        "5 repetitions of a partition into 2 folds: every point is tested once in each",
    ),
    "random splits": (
        lambda: example("corrected_t"),
        "corrected_t",
        "random splits: 6 repetitions that each test some of the points",
    ),
    "paired subsampling": (
        lambda: example("conservative_z"),
        "conservative_z",
        "random splits of the data and of its halves (level 'sample')",
    ),
    "replace-one": (
        lambda: example("replace_one"),
        "replace_one",
        "cross-validation of half the data, with one training point replaced at a time",
    ),
    "nested": (
        lambda: example("nested_cv"),
        "nested_cv",
        "nested cross-validation (level 'outer')",
    ),
    "bootstrap": (
        bootstrap,
        "bootstrap_632",
        "bootstrap samples plus a fit to the original data (repetition 0)",
    ),
    "bootstrap without its own fit": (
        lambda: bootstrap(own=False),
        "bootstrap_oob",
        "bootstrap samples, without the fit on the sample itself",
    ),
    "case bootstrap": (
        lambda: bootstrap(own=False, out_of_bag=False),
        "case_bootstrap",
        "leave-one-out cross-validation within each bootstrap sample",
    ),
    "sources left out": (
        sources, "out_of_source", "5 sources, each tested as a whole (level 'source')",
    ),
    "points under several sources": (
        lambda: sources(points=np.tile(range(8), 5)),
        "clustered",
        "the points 0, 1, 2, ... occur in every source: 8 points in 5 sources, and both are "
        "sampling units; pass points='nested' if each source numbers its points separately",
    ),
    "folds that are sources": (
        lambda: sources(lambda row: row // 8),
        "out_of_source",
        "5 sources, left out one at a time (level 'source')",
    ),
    "sources in random folds": (
        lambda: sources(lambda row: row % 4),
        "wald",
        "a partition into 4 folds: every point is tested once; sources occur in several folds, so "
        "points are the sampling unit",
    ),
}  # fmt: skip

NOTED = {"random splits": {"n_train": 16}, "bootstrap": {"no_information": 4.0}}
"""What no level tells, where `cvstats.evaluate` leaves it."""


@pytest.mark.parametrize("kind", LOGS)
def test_the_design_chooses(kind):
    make, method, reason = LOGS[kind]
    log = make()
    log.attrs = dict(NOTED.get(kind, {}))
    found = cvstats.interval(log, alpha=0.1)
    assert found.attrs["method"] == method
    assert chosen_for(found) == reason
    both = {"by": ("source", "point")} if kind == "points under several sources" else {}
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
    log = LOGS[kind][0]()
    log.attrs = {"n_train": 16, "no_information": 4.0}
    table = log.cvci.methods()
    assert sorted(table.index) == sorted(METHODS)
    assert table["applies"].is_monotonic_decreasing
    assert table["applies"].dtype == bool
    for name, row in table.iterrows():
        if name not in INTERVALS:
            continue  # describes a log, or compares models
        if row["applies"]:
            assert row["why_not"] == ""
            if not (kind == "leave-one-out" and name == "quadratic"):  # its default needs more
                assert not cvstats.interval(log, method=name)["estimate"].isna().any()
        else:
            with pytest.raises(LogError) as caught:
                cvstats.interval(log, method=name)
            no_plan = name.startswith("source_") or name in WITHOUT_PLAN
            assert "cvstats.plans." in row["why_not"] or no_plan, row["why_not"]
            assert row["why_not"] in str(caught.value)
            assert str(caught.value).startswith(f"{name} needs {row['needs']}; ")
    for column in ("target", "guarantee", "fits", "reference"):
        assert (table[column].str.len() > 0).all()


def test_what_no_log_tells_is_asked_for():
    log = example("corrected_t")
    with pytest.raises(LogError, match=re.escape("corrected_t(losses, train_size=90)")):
        cvstats.interval(log)
    for metadata in ({"n_train": 16}, {"n_train": [16] * 6}):
        log.attrs = metadata
        found = cvstats.interval(log)
        assert found.attrs["n_train"] == 16.0
        assert cvstats.corrected_t(log, train_size=10).attrs["n_train"] == 10.0
    log.attrs = {"n_train": [16] * 5}  # some splits were taken out since
    with pytest.raises(LogError, match="the number of points each model was trained on"):
        cvstats.interval(log)


# --- what a log does not say ----------------------------------------------------------------------


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
    index = pd.MultiIndex.from_arrays([np.arange(40) % 5, range(40)], names=["fold", "point"])
    log = pd.DataFrame(np.random.default_rng(0).random((40, 2)), index, ["a", "b"])
    table = cvstats.Moments.of_log(log, pairs=pairs).methods()
    assert table.loc["compare", "applies"] == pairs
    assert ("pairs=True" in table.loc["compare", "why_not"]) != pairs


# --- options of the method ------------------------------------------------------------------------

IN_CONTAINERS = {
    "frame": lambda log: log,
    "moments": cvstats.Moments.of_log,
    "lazy": lambda log: log["a"].reset_index("fold").to_xarray().set_coords("fold")["a"].chunk(),
}


@pytest.mark.parametrize("container", IN_CONTAINERS)
@pytest.mark.parametrize("method", [None, "wald"])
def test_options_belong_to_the_method_that_was_chosen(container, method):
    log = folds()
    within = only_row(log.cvci.wald(variance="within-fold"))
    found = cvstats.interval(IN_CONTAINERS[container](log), method=method, variance="within-fold")
    assert float(np.squeeze(found["se"])) == pytest.approx(within["se"], rel=1e-12)
    assert float(np.squeeze(found["se"])) != only_row(log.cvci.wald())["se"]


def test_options_replace_the_limits_of_a_proportion():
    log = (folds() > 2).astype(float)
    assert log.cvci.interval(scale="logit").equals(log.cvci.wald(scale="logit"))
    assert not log.cvci.interval().equals(log.cvci.wald())


def test_these_sources_of_crossed_times():
    times = pd.MultiIndex.from_product(
        [list("abc"), pd.date_range("2030-01-01", periods=40)], names=["source", "point"]
    )
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
        with pytest.raises(LogError, match="individual losses"):
            ask()
    lazy = two.to_xarray().to_dataarray("model").chunk(point=20).assign_attrs(two.attrs)
    with pytest.raises(LogError, match="method='ordered'"):
        lazy.cvci.interval().compute()
    array = two.to_xarray().to_dataarray("model").assign_attrs(two.attrs)
    for any_log in (two, array, array.chunk(point=20), moments):  # .77 covered with such a level
        for call in (cvstats.out_of_source, cvstats.clustered):
            labels = cvstats.cautions(call(any_log)).values.ravel()
            assert all("dependence ignored" in label for label in labels)
    named = two.cvci.compare(method="out_of_source")
    assert "dependence ignored" in named["caution"].iloc[0]
    two.attrs["points_are"] = "nested"
    assert "dependence ignored" not in two.cvci.out_of_source()["caution"].iloc[0]
    one_out = sources(fold=lambda point: point // 8)
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
        call(folds(), **options)
    with pytest.raises(LogError, match="variance='between'"):
        call(folds(), variance="between")
