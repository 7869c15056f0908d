"""Resampled logs that lack something, contradict themselves or leave no variance."""

import re

import numpy as np
import pandas as pd
import pytest
import resampled_logs
from calls import refusal, refuses
from resampled_logs import example
from rows import only_row, product_index
from sklearn.dummy import DummyRegressor
from together import together

import cvstats
from cvstats.errors import LogError


def without(frame, **labels):
    """Drop the evaluations that have all of these labels."""
    gone = np.ones(len(frame), dtype=bool)
    for level, label in labels.items():
        gone &= frame.index.get_level_values(level) == label
    return frame[~gone]


def relabel(frame, level, change):
    table = frame.reset_index()
    table[level] = [change(label) for label in table[level]]
    return table.set_index(list(frame.index.names))


REFUSED = [
    ("corrected_t", lambda log: log.xs(0, level="repetition"), "cvstats.plans.subsampling creates"),
    ("conservative_z", lambda log: log.droplevel("sample"), "appears twice"),
    ("conservative_z", lambda log: without(log, sample=3), "sample 4 has no partner"),
    ("conservative_z", lambda log: log[log.index.get_level_values(0) == 0], "no halves"),
    (
        "conservative_z",
        lambda log: relabel(log, "sample", lambda s: f"half {s}"),
        "not whole numbers that include 0, the full data",
    ),
    ("conservative_z", lambda log: relabel(log, "sample", lambda s: s + 0.5), "not whole numbers"),
    ("conservative_z", lambda log: relabel(log, "sample", lambda s: s + 1), "that include 0"),
    ("conservative_z", lambda log: example("replace_one"), "have several folds"),
    ("five_by_two", lambda log: without(log, repetition=3), "4 repetitions of 2 folds"),
    ("five_by_two", lambda log: without(log, repetition=3, fold=1), "5 repetitions of 1 to 2 fold"),
    ("five_by_two", lambda log: log.xs(0, level="repetition"), "no level 'repetition'"),
    ("five_by_two", lambda log: log.xs(0, level="fold"), "no level 'fold'"),
    ("five_by_two", lambda log: without(log, repetition=3, point=1), "do not cover all points"),
    ("five_by_two", lambda log: example("nested_cv"), "is a nested cross-validation log"),
    ("nested_cv", lambda log: log.xs(0, level="fold"), "no level 'fold' (the fold tested)"),
    (
        "nested_cv",
        lambda log: relabel(log, "outer", lambda j: f"out {j}"),
        "a repetition has 0 outer folds",
    ),
    ("nested_cv", lambda log: without(log, repetition=1, outer=2), "evaluations are missing"),
    ("nested_cv", lambda log: without(log, repetition=1, fold=2), "evaluations are missing"),
    ("nested_cv", lambda log: without(log, outer=2, fold=2), "evaluations are missing"),
    ("nested_cv", lambda log: without(log, outer=2, fold=3), "evaluations are missing"),
    ("nested_cv", lambda log: without(log, outer=2, point=3), "not all test the same points"),
    ("nested_cv", lambda log: log.iloc[:0], "the log is empty"),
    ("replace_one", lambda log: example("conservative_z"), "some sample has no folds"),
    ("replace_one", lambda log: without(log, sample=4), "has 7 samples, of 13 and 6 points"),
    ("replace_one", lambda log: without(log, sample=4), "every point of the half, 8 in all"),
    ("replace_one", lambda log: without(log, sample=4, repetition=1), "points are missing"),
    ("replace_one", lambda log: without(log, sample=0, point=3), "points are missing"),
]


@together(REFUSED)
def test_refusals_say_what_is_missing(method, change, words):
    log = change(example(method))
    refuses(re.escape(words), getattr(cvstats, method), log)


@pytest.mark.parametrize(("method", "seeds"), [("interval", 1), ("compare", 2), ("holdout", 1)])
def test_answers_in_a_level_sample_are_not_taken_for_halves(method, seeds):
    """Users of language models call an answer a sample; this was 28% of false differences."""
    index = product_index(sample=range(5), repetition=range(seeds), point=range(4))
    log = pd.DataFrame({"a": np.arange(len(index)) % 3, "b": np.arange(len(index)) % 2}, index)
    refuses("several answers to the same points, rename the level", getattr(cvstats, method), log)


def test_one_split_of_each_half_is_enough():
    """The plan made such logs, and the method refused them, naming the plan."""
    plan = cvstats.plans.paired_subsampling(1, 12, rng=1)
    y = np.random.default_rng(1).normal(size=40)
    log = cvstats.evaluate(DummyRegressor(), np.zeros((40, 1)), y, plan=plan, progress=False)
    means = log.groupby(level="sample").mean().to_numpy().reshape(-1)
    for form in (log, log.to_xarray(), log.to_xarray().chunk()):
        found = cvstats.conservative_z(form)
        assert np.asarray(found["estimate"]).item() == pytest.approx(means[0])
        se = np.sqrt(np.sum((means[1::2] - means[2::2]) ** 2) / 24)
        assert np.asarray(found["se"]).item() == pytest.approx(se)


def test_a_fold_of_two_points_is_enough_and_one_is_not():
    log = example("nested_cv")
    log = log[log.index.get_level_values("repetition") == 0]
    points = log.index.get_level_values("fold").isin([2])
    kept = log[points].index.unique("point")
    one, two = (log[~points | log.index.get_level_values("point").isin(kept[:n])] for n in (1, 2))
    refuses("a fold has only one point", cvstats.nested_cv, one)
    assert np.isfinite(cvstats.nested_cv(two)["se"]).all()
    unnamed = cvstats.nested_cv(log.droplevel("point"))
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(unnamed[name], cvstats.nested_cv(log)[name], rtol=1e-12)


@pytest.mark.parametrize(
    ("train_size", "words"),
    [
        (float("nan"), "train_size contains nan"),
        ([10, 11], "2 numbers, but the log has 6 splits"),
        ({0: 10, 1: 10}, "no number for repetition=2, repetition=3, repetition=4, and 1 more"),
        ([10, 10, 10, 10, 10, "x"], "not a number of points"),
        ([10, 10, 10, 10, 10, 0.2], "train_size contains 0.2"),
    ],
)
def test_train_size(train_size, words):
    refuses(words, cvstats.corrected_t, example("corrected_t"), train_size=train_size)


def test_sources_left_out_are_folds_and_said_so():
    index = product_index(source=list("abcd"), point=range(5))
    log = pd.Series(np.random.default_rng(1).gamma(2.0, size=20), index=index)
    found = only_row(cvstats.corrected_t(log))
    assert (found["n_splits"], found["n_train"]) == (4, 15)
    assert "sources as folds" in found["caution"]
    # random splits of points that have sources: the splits are the repetitions
    split = pd.concat({r: log.iloc[r * 3 : r * 3 + 4] for r in range(4)}, names=["repetition"])
    assert only_row(cvstats.corrected_t(split, train_size=16))["n_splits"] == 4


def test_nested_standard_error_stays_in_range():
    frame = example("nested_cv")
    outer = frame.index.get_level_values("outer").to_numpy()
    fold = frame.index.get_level_values("fold").to_numpy()
    far = frame["a"] + np.where(outer == fold, 50.0, 0.0)  # outer errors far from inner ones
    found = only_row(cvstats.nested_cv(far))
    inner = far[outer != fold]
    naive = inner.std() / np.sqrt(14)
    assert found["se"] == pytest.approx(2 * naive)  # sqrt(K) with K = 4
    assert found["mse_raw"] > 1000
    assert "bounded" in found["caution"]
    assert "few repetitions" in found["caution"]
    assert found["estimate"] == pytest.approx(found["err_ncv"] - found["bias"])
    plain = only_row(cvstats.nested_cv(far, bias_correction=None))
    assert (plain["bias"], plain["estimate"]) == (0.0, plain["err_ncv"])
    for name, factor in (("paper", 1.5), ("code", 1 + 0.5**1.5)):
        bias = only_row(cvstats.nested_cv(far, bias_correction=name))["bias"]
        assert bias == pytest.approx(factor * (found["err_ncv"] - found["err_cv"]))


def test_words_lead_to_what_can_be_typed():
    four = example("five_by_two")["a"]
    four = four[four.index.get_level_values("repetition") < 4]
    with pytest.raises(LogError) as caught:
        cvstats.five_by_two(four)
    assert str(caught.value).count("cvstats.plans.five_by_two") == 1
    assert "Cvstats" not in str(caught.value)
    counted = example("conservative_z")
    counted["count"] = np.arange(len(counted)) % 2
    with pytest.raises(LogError, match=r"\(level 'count'\); cvstats.plans.paired_subsampling"):
        cvstats.conservative_z(counted.set_index("count", append=True))
    with pytest.raises(LogError, match="Expected one of 'paper', 'code', None"):
        cvstats.nested_cv(example("nested_cv"), bias_correction="None")
    folds = example("nested_cv")["a"]
    outer, fold = (folds.index.get_level_values(level) for level in ("outer", "fold"))
    folds = folds[outer == fold].droplevel("outer")
    folds.iloc[0] = np.nan
    with pytest.raises(LogError, match="or of folds with missing points, does not contain"):
        cvstats.corrected_t(folds.iloc[1:])
    assert cvstats.corrected_t(folds, train_size=10, missing="drop").attrs["n_train"] == 10


def test_halves_that_share_a_point_are_doubted():
    words = "overlapping halves"
    log = example("conservative_z")["a"]
    assert words not in only_row(cvstats.conservative_z(log))["caution"]
    assert (
        words not in only_row(cvstats.conservative_z(log.droplevel("point"), alpha=0.1))["caution"]
    )
    labels = list(log.index)
    at = next(row for row, (sample, *_) in enumerate(labels) if sample == 2)
    labels[at] = (*labels[at][:2], next(point for sample, _, point in labels if sample == 1))
    moved = log.set_axis(pd.MultiIndex.from_tuples(labels, names=log.index.names))
    assert words in only_row(cvstats.conservative_z(moved))["caution"]
    # the same name in another source is another point
    source = ["north" if sample % 2 else "south" for sample, *_ in moved.index]
    scoped = moved.to_frame("a").assign(source=source).set_index("source", append=True)["a"]
    assert words not in only_row(cvstats.conservative_z(scoped))["caution"]


@pytest.mark.parametrize("n", [12, 13])
def test_a_dropped_loss_is_not_taken_for_another_half(n):
    index = resampled_logs.index_of(resampled_logs.replace_one(n, 3, 1, np.random.default_rng(1)))
    log = pd.Series(np.random.default_rng(2).gamma(2.0, size=len(index)), index=index)
    assert only_row(cvstats.replace_one(log))["n_points"] == n
    for row in (0, n, len(log) - 1):
        gap = log.where(np.arange(len(log)) != row)
        assert f"expected {n} points of the data and 6 of each half" in refusal(
            cvstats.replace_one, gap, missing="drop"
        )


def test_halves_of_another_test_size():
    """Each half is compared with the data."""
    rng, every = np.random.default_rng(0), np.arange(60)
    fits = resampled_logs.subsampling(every, 12, 4, rng, sample=0)
    for r in range(1, 11):
        order = rng.permutation(60)
        for sample, half in ((2 * r - 1, order[:30]), (2 * r, order[30:])):
            fits += resampled_logs.subsampling(half, 6, 4, rng, sample=sample)
    index = resampled_logs.index_of(fits)
    found = cvstats.conservative_z(pd.Series(rng.gamma(2.0, size=len(index)), index))
    assert only_row(found)["caution"] == "unequal test sizes"


def test_training_sizes_of_parts():
    """Points of one source were tested by models that were trained on all sources."""
    rng = np.random.default_rng(0)
    levels = [np.arange(60) % 5, np.repeat(list("abcdef"), 10), range(60)]
    index = pd.MultiIndex.from_arrays(levels, names=["fold", "source", "point"])
    log = pd.Series(rng.gamma(2.0, size=60), index=index)
    parts = cvstats.corrected_t(log, by="source")
    assert parts.attrs["n_train"] == 48
    assert parts.attrs["n_test"] == 2
    given = cvstats.corrected_t(log, by="source", train_size=48)
    np.testing.assert_allclose(parts["se"], given["se"], rtol=1e-15)
    twice = pd.concat(
        {0: log, 1: log.rename(lambda k: (k + 1) % 5, level="fold")}, names=["repetition"]
    )
    assert cvstats.corrected_t(twice, by="source").attrs["n_train"] == 48
    by_repetition = cvstats.corrected_t(twice, by="repetition")
    assert by_repetition.attrs["n_train"] == 48
    # logs of their own, whose points have the same names, were trained by themselves
    logs = pd.concat({"x": log, "y": log}, names=["dataset"])
    assert cvstats.corrected_t(logs, by="dataset").attrs["n_train"] == 48
    # of another level nobody knows
    region = log.rename_axis(index={"source": "region"})
    with pytest.raises(LogError, match=r"labels of 'region', and models may .* train_size=90\)"):
        cvstats.corrected_t(region, by="region")
    asked = cvstats.corrected_t(region, by="region", train_size=48)
    np.testing.assert_allclose(asked["se"], parts["se"], rtol=1e-15)
