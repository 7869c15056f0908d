"""Paired comparisons: any order of rows, every container, every method, adjusted p-values."""

import itertools

import numpy as np
import oracle
import pandas as pd
import pytest
import xarray as xr
from golden import COMPARED, log_named
from hypothesis import given
from hypothesis import strategies as st
from paired_logs import ALTERNATIVES, models
from rows import multi_index, only_row
from scipy import special
from strategies import close, logs, shuffled

import cvstats
from cvstats.errors import LogError
from cvstats.intervals import interval_names
from cvstats.intervals._limits import SOME_TANGO

FRAME = models()


@given(logs(sizes=(2, 4), repetitions=(1, 2)), st.integers(0, 99), st.data())
def test_two_logs_in_any_order(rows, seed, data):
    draw = st.lists(st.integers(-40, 40), min_size=len(rows), max_size=len(rows))
    other = [
        row._replace(loss=row.loss + oracle.exact(change / 8))
        for row, change in zip(rows, data.draw(draw), strict=True)
    ]
    one, two = shuffled(rows, seed), shuffled(other, seed + 1).rename("other")
    # The doubles of the second log are sums, rounded; the oracle gets those.
    exact_rows = [row._replace(loss=oracle.exact(float(row.loss))) for row in other]
    gaps = oracle.difference(rows, exact_rows)
    alternative = data.draw(st.sampled_from(ALTERNATIVES))
    exact = oracle.improvement(rows, exact_rows, "all-pairs", alternative=alternative)
    ours = cvstats.compare(one, two, method="wald", alternative=alternative)
    assert list(ours.index) == [("model", "other")]
    ours = ours.iloc[0]
    for name in ("difference", "se", "lower", "upper"):
        assert close(
            only_row(ours)[name], getattr(exact, name), rows + exact_rows + gaps, tolerance=4e-12
        )
    if float(exact.se) > 1e-3:
        assert only_row(ours)["statistic"] == pytest.approx(exact.statistic, rel=1e-9, abs=1e-9)
        assert only_row(ours)["p_value"] == pytest.approx(exact.p_value, rel=1e-8, abs=1e-12)


def test_labels_decide_and_never_the_order():
    one, two = FRAME["ridge"], FRAME["forest"]
    wanted = cvstats.compare(one, two)
    mixed = two.sample(frac=1, random_state=1).reorder_levels(["point", "fold", "repetition"])
    pd.testing.assert_frame_equal(cvstats.compare(one, mixed), wanted, check_exact=True)
    gaps = cvstats.difference(one, mixed)
    pd.testing.assert_index_equal(gaps.index, one.index)
    np.testing.assert_array_equal(gaps, one - two)


FIRST = ["difference", "lower", "upper", "se"]

LOGS = {method: log for method, log, _ in COMPARED[::-1]} | {"wild_cluster": "whole sources"}
"""A log of `golden` for each method."""

WITHOUT_ERRORS = {"wild_cluster"}
"""Methods whose limits are not made of a standard error."""


def test_a_multiindex_of_one_level_is_matched_by_its_labels():
    log = pd.Series(np.random.default_rng(0).normal(size=20), pd.RangeIndex(20, name="point"))
    one = log.set_axis(pd.MultiIndex.from_arrays([log.index]))
    other = (2 * log + log.index).sample(frac=1, random_state=1)
    expected = log.cvci.compare(other)
    again = other.set_axis(pd.MultiIndex.from_arrays([other.index]))
    for first, second in ((one, other), (log, again), (one, again)):
        pd.testing.assert_frame_equal(first.cvci.compare(second), expected)


def test_every_method_for_differences_has_a_log_here():
    assert set(LOGS) == set(interval_names(for_differences=True))


@pytest.mark.parametrize("method", LOGS)
def test_the_interval_is_that_of_the_log_of_differences(method):
    frame = log_named(LOGS[method])
    own = getattr(frame.cvci.difference().cvci, method)()
    for alternative in ("two-sided",) if method in WITHOUT_ERRORS else ALTERNATIVES:
        table = frame.cvci.compare(method=method, alternative=alternative)
        assert list(table.index) == list(own.index) == list(itertools.combinations(frame, 2))
        np.testing.assert_allclose(table["difference"], own["estimate"], rtol=1e-11)
        np.testing.assert_allclose(table["se"], own["se"], rtol=1e-11)
        if "df" in own:
            np.testing.assert_array_equal(table["df"], own["df"])
        assert table.attrs["interval_method"] == method
        first, *_, last = frame
        one = cvstats.compare(frame[first], frame[last], method=method, alternative=alternative)
        np.testing.assert_allclose(one[FIRST], table.loc[[(first, last)], FIRST], rtol=1e-11)
    table = frame.cvci.compare(method=method)
    np.testing.assert_allclose(table[["lower", "upper"]], own[["lower", "upper"]], rtol=1e-11)
    known = ~table["se"].isna()
    apart = (table["lower"] > 0) | (table["upper"] < 0)
    assert (apart == (table["p_value"] < 0.05))[known].all()


@pytest.mark.parametrize("method", sorted(WITHOUT_ERRORS))
def test_what_needs_a_standard_error(method):
    frame = log_named(LOGS[method])
    assert frame.cvci.compare(method=method)["se"].isna().all()
    for alternative in ("less", "greater"):
        with pytest.raises(LogError, match=f"needs a standard error, but {method} with these"):
            frame.cvci.compare(method=method, alternative=alternative)
    with pytest.raises(LogError, match="adjust='max-t' needs standard errors"):
        frame.cvci.compare(method=method, adjust="max-t", rng=0)


def test_the_combined_f_test():
    frame = log_named(LOGS["five_by_two"])
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
        with pytest.raises(LogError, match="needs a standard error, but five_by_two with these"):
            frame.cvci.compare(method="five_by_two", options={"test": "f"}, alternative=alternative)
    with pytest.raises(LogError, match="adjust='max-t' needs standard errors"):
        frame.cvci.compare(method="five_by_two", options={"test": "f"}, adjust="max-t")


def roads_of_a_difference(log: pd.Series):
    """The same log of differences in all containers, whole and lazy, and as moments."""
    array = log.to_xarray().assign_attrs(log.attrs)
    yield from (log, log.to_frame(), array, array.to_dataset(name="a").assign_attrs(log.attrs))
    yield array.chunk()


@pytest.mark.parametrize("repetitions", [1, 5])
def test_the_interval_of_a_log_of_differences_is_that_of_compare(repetitions):
    """Models that were refitted in every repetition have wider intervals than by wald."""
    rng = np.random.default_rng(3)
    level, parts = rng.gamma(2, 1, 200), []
    for r in range(repetitions):
        fold = rng.permutation(200) % 10
        table = {
            "a": level + rng.normal(0, 0.5, 10)[fold] + rng.normal(0, 0.5, 200),
            "b": level + rng.normal(0.1, 0.5, 200),
        }
        names = ["repetition", "fold", "point"]
        index = pd.MultiIndex.from_arrays([[r] * 200, fold, range(200)], names=names)
        parts.append(pd.DataFrame(table, index))
    frame = pd.concat(parts)
    frame = frame.droplevel("repetition") if repetitions == 1 else frame
    frame.attrs["loss"] = "absolute_error"
    expected = frame.cvci.compare(reference="b").iloc[0]
    by_wald = frame.cvci.compare(reference="b", method="wald").iloc[0]
    assert (expected["se"] > 1.5 * by_wald["se"]) == (repetitions > 1)
    log = frame.cvci.difference(reference="b")["a"]
    assert log.cvci.compare(0)["upper"].item() == pytest.approx(expected["upper"], rel=1e-12)
    for road in [*roads_of_a_difference(log), cvstats.Moments.of_log(log)]:
        found = road.interval() if isinstance(road, cvstats.Moments) else road.cvci.interval()
        for name in ("lower", "upper"):
            values = np.asarray(found[name]).reshape(-1)
            np.testing.assert_allclose(values, expected[name], rtol=1e-9)


def test_few_discordant_points_have_the_limits_of_compare_in_a_log_of_differences():
    a = (np.arange(100) < 8).astype(float)
    b = ((np.arange(100) < 3) | (np.arange(100) > 97)).astype(float)
    frame = pd.DataFrame({"a": a, "b": b}, multi_index(fold=np.arange(100) % 5, point=range(100)))
    frame.attrs["loss"] = "zero_one"
    expected = frame.cvci.compare(reference="b").iloc[0]
    log = frame.cvci.difference(reference="b")["a"]
    assert log.cvci.compare(0)["p_value"].item() == expected["p_value"]
    for road in [*roads_of_a_difference(log), cvstats.Moments.of_log(log)]:
        found = road.interval() if isinstance(road, cvstats.Moments) else road.cvci.interval()
        unknown = bool(getattr(road, "chunks", ()))
        for name in ("lower", "upper"):
            np.testing.assert_allclose(np.asarray(found[name]).reshape(-1), expected[name])
        assert found.attrs["interval"] == (SOME_TANGO if unknown else "tango")
        labels = cvstats.cautions(found) if isinstance(found, xr.Dataset) else found["caution"]
        assert np.asarray(labels).item() == "few discordant points"
    other = log.copy()
    other.attrs["loss"] = "absolute_error"  # amounts, which may be other than 0 and 1
    for road in roads_of_a_difference(other):
        found = road.cvci.interval()
        assert found.attrs["interval"] == "wald"
        assert np.asarray(found["upper"]).item() != pytest.approx(expected["upper"], rel=1e-3)


def predictions(design="folds", positives=12):
    """Probabilities of three models; few points are positive."""
    rng = np.random.default_rng(0)
    if design == "crossed":
        frame = pd.DataFrame({"source": np.repeat(range(20), 40), "point": list(range(40)) * 20})
    elif design == "splits":
        splits = [(r, p) for r in range(10) for p in rng.permutation(120)[:60]]
        frame = pd.DataFrame(splits, columns=["repetition", "point"])
    else:
        frame = pd.DataFrame({"fold": np.arange(120) % 5, "point": range(120)})
    levels = list(frame)
    frame["y"] = (frame["point"] < positives) * 1
    for name in "abc":
        frame[name] = special.expit(frame["y"] + rng.normal(size=len(frame)))
    return frame.set_index(levels)


def ask(frame, loss, models="abc", **options):
    """Losses; labels are cut from probabilities."""
    if {"f1", "matthews", "zero_one"} & {*np.atleast_1d(loss)}:
        options["threshold"] = 0.5
    return cvstats.losses(frame, truth="y", prediction=list(models), loss=loss, **options)


def limits_of(table):
    """Lower and upper limits, one row per pair."""
    parts = [np.asarray(table[name], dtype=float).reshape(-1) for name in ("lower", "upper")]
    return np.column_stack(parts)


@pytest.mark.parametrize("loss", ["auc", "f1", "matthews", "r2"])
def test_differences_of_metrics_have_the_limits_of_compare(loss):
    """In which one prediction of each model, or the covariance with the denominator, counts."""
    log = ask(predictions(), loss, folds="pool")
    expected = limits_of(log.cvci.compare(adjust=None))  # of a - b, a - c and b - c
    assert not np.allclose(expected, limits_of(log.cvci.difference().cvci.wald()))
    every, one = log.cvci.difference(), log["a"].cvci.difference(log["b"])
    array = ask(
        predictions().reset_index("fold").to_xarray().set_coords("fold"), loss, folds="pool"
    )
    pairs = array.cvci.difference()
    roads = {
        "pairs": (every, [0, 1, 2]),
        "a pair": (every[("b", "c")], [2]),
        "reference": (log.cvci.difference(reference="c"), [1, 2]),
        "two logs": (one, [0]),
        "renamed": (one.rename("gain"), [0]),
        "two frames": (log[["b"]].cvci.difference(log[["c"]]), [2]),
        "array": (pairs, [0, 1, 2]),
        "a pair of an array": (pairs.isel(pair=1), [1]),
        "pairs of an array": (pairs.isel(pair=[2, 0]), [2, 0]),
        "two arrays": (array["a"].cvci.difference(array["c"]), [1]),
        "lazy": (pairs.chunk({"pair": 1}), [0, 1, 2]),
        "lazy losses": (array.chunk().cvci.difference(), [0, 1, 2]),
    }
    for road, (differences, rows) in roads.items():
        found = limits_of(differences.cvci.interval())
        np.testing.assert_allclose(found, expected[rows], rtol=1e-9, err_msg=road)
    found = limits_of(cvstats.Moments.of_log(every).interval())
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(limits_of(one.cvci.compare(0)), expected[:1], rtol=1e-9)


def test_pairs_without_both_names_do_not_have_the_changes_of_a_model_named_0():
    frame = predictions()
    named = ask(frame, "f1", folds="pool").cvci.difference()
    numbered = frame.rename(columns={"a": 0, "b": 1, "c": 2})
    gaps = ask(numbered, "f1", [0, 1, 2], folds="pool").cvci.difference()
    for found, expected in (
        (gaps[0], named["a"]),  # the columns are the other models
        (gaps.set_axis(["x", "y", "z"], axis=1), named.set_axis(["x", "y", "z"], axis=1)),
    ):
        np.testing.assert_allclose(
            limits_of(found.cvci.interval()), limits_of(expected.cvci.interval())
        )


@pytest.mark.parametrize("loss", ["auc", "f1", "matthews", "r2", "rmse"])
def test_metrics_are_compared_by_group_as_in_each_group_alone(loss):
    frame = predictions().assign(half=np.arange(120) % 2).set_index("half", append=True)
    log = ask(frame, loss, folds="pool", by="half")
    found = limits_of(log.cvci.compare(by="half", adjust=None))
    alone = [ask(frame.xs(half, level="half"), loss, folds="pool") for half in (0, 1)]
    expected = np.vstack([limits_of(part.cvci.compare(adjust=None)) for part in alone])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    if loss != "rmse":  # of which differences have an interval of their own
        gaps = log.cvci.difference()
        np.testing.assert_allclose(limits_of(gaps.cvci.interval(by="half")), expected, rtol=1e-9)


def test_several_metrics_are_compared_by_metric():
    several = ask(predictions(), ["auc", "f1"], folds="pool")
    expected = limits_of(several.cvci.compare(by="metric", adjust=None))
    found = limits_of(several.cvci.difference().cvci.interval(by="metric"))
    np.testing.assert_allclose(found, expected)
    one, two = (ask(predictions(), ["auc", "f1"], model, folds="pool") for model in "ab")
    for found in (
        one.cvci.compare(two, by="metric", adjust=None),  # were refused: F1 of each has attrs
        one.cvci.difference(two).cvci.interval(by="metric"),
    ):
        np.testing.assert_allclose(limits_of(found), expected[[0, 3]])


@pytest.mark.parametrize("loss", ["auc", "f1", "r2"])
def test_differences_from_one_reference_are_compared_as_their_models(loss):
    """The reference is in both differences, so that its predictions do not count."""
    log = ask(predictions(), loss, folds="pool")
    found = log.cvci.difference(reference="b").cvci.compare()
    expected = log[["a", "c"]].cvci.compare()
    np.testing.assert_allclose(limits_of(found), limits_of(expected), rtol=1e-9)


@pytest.mark.parametrize("loss", ["rmse", "pearson"])
def test_differences_of_other_metrics_have_one_interval(loss):
    """`compare` with 0 took a difference of roots for a root, and doubled its standard error."""
    log = ask(predictions(), loss, folds="pool")
    for one, two in (("a", "b"), ("b", "a")):
        gap = log[one].cvci.difference(log[two])
        np.testing.assert_allclose(limits_of(gap.cvci.compare(0)), limits_of(gap.cvci.interval()))


@pytest.mark.parametrize("loss", ["auc", "zero_one"])
def test_differences_over_random_splits_have_the_limits_of_compare(loss):
    log = ask(predictions("splits"), loss)
    log.attrs["n_train"] = 60
    expected = log.cvci.compare(adjust=None)
    found = log.cvci.difference().cvci.interval()
    np.testing.assert_allclose(limits_of(found), limits_of(expected), rtol=1e-9)
    np.testing.assert_allclose(found["se"], expected["se"], rtol=1e-9)


@pytest.mark.parametrize("loss", ["f1", "rmse", "r2", "pearson", "auc"])
def test_metrics_of_random_splits_have_no_folds_to_pool(loss):
    """Each split has one test set, so `corrected_t` has its metric however folds are treated."""
    pooled, averaged = (ask(predictions("splits"), loss, folds=how) for how in ("pool", "average"))
    pooled.attrs["n_train"] = averaged.attrs["n_train"] = 60
    for call in (
        cvstats.interval,
        cvstats.compare,
        lambda log: cvstats.equivalence(log, margin=0.5),
    ):
        found, expected = call(pooled), call(averaged)
        np.testing.assert_allclose(limits_of(found), limits_of(expected), rtol=1e-12)
        assert list(found["caution"]) == list(expected["caution"])
    assert cvstats.summary(pooled).text == cvstats.summary(averaged).text


def test_differences_of_metrics_of_crossed_sources():
    """Few points of a class are counted as by `compare`; equal models have limits."""
    for positives in (4, 12):
        log = ask(predictions("crossed", positives), "auc", folds="pool")
        found = log.cvci.difference().cvci.interval()
        assert found["caution"].str.contains("few of a class").all() == (positives == 4)
        expected = log.cvci.compare(adjust=None)
        assert list(found["caution"]) == list(expected["caution"])
        np.testing.assert_allclose(limits_of(found), limits_of(expected), rtol=0.05)
    equal = log[["a"]].assign(b=log["a"])
    equal.attrs = log.attrs
    lower, upper = limits_of(equal.cvci.difference().cvci.interval())[0]
    assert lower < 0 < upper


def test_moments_of_differences_are_not_compared_with_zero():
    frame = pd.DataFrame({"a": [1.0, 2, 4], "b": [2.0, 4, 3]}, pd.Index(range(3), name="point"))
    moments = cvstats.Moments.of_log(frame.cvci.difference(reference="b"))
    with pytest.raises(LogError, match="Use interval, which has the same limits"):
        moments.compare(0)


def test_differences_by_rounding_are_none():
    losses = 1000 + np.random.default_rng(0).normal(size=200)
    log = pd.DataFrame({"a": losses, "b": losses * 3.3 / 3.3}).rename_axis("point")
    assert 0 < (log["a"] - log["b"]).abs().max() < 1e-12
    row = only_row(log.cvci.compare())
    assert row[["difference", "se", "lower", "upper", "statistic"]].tolist() == [0] * 5
    assert (row["p_value"], row["caution"]) == (1, "zero variance")


def read_accuracies() -> pd.DataFrame:
    """Two models, read from a column of scores: the loss "1 - acc" names the score."""
    rng = np.random.default_rng(0)
    rows = [(m, k, float(rng.random() < p)) for m, p in (("a", 0.8), ("b", 0.6)) for k in range(99)]
    table = pd.DataFrame(rows, columns=["model", "point", "acc"])
    names = {"model": "model", "point": "point"}
    return cvstats.read_log(table, loss="acc", higher_is_better=True, **names)


@pytest.mark.parametrize("of_array", [False, True])
def test_two_logs_of_a_score_are_known_as_such_as_one_is(of_array):
    """Only the result of one log with both models could be converted to scores."""
    log = read_accuracies()
    one, two = log["a"], log["b"]
    if of_array:
        one, two = (
            xr.DataArray(column, name=column.name).assign_attrs(log.attrs) for column in (one, two)
        )
    for name, options in {
        "compare": {}, "equivalence": {"margin": 0.3}, "power": {"effect": 0.1},
    }.items():  # fmt: skip
        expected = cvstats.as_scores(getattr(log.cvci, name)(**options))
        found = cvstats.as_scores(getattr(one.cvci, name)(two, **options))
        assert float(found["difference"].values.item()) == expected["difference"].iloc[0] > 0
        assert found.attrs["score"] == "acc"
    found = cvstats.prediction_powered(log.iloc[:50], log.iloc[:50], log)
    assert cvstats.as_scores(found)["estimate"].tolist() == (1 - found["estimate"]).tolist()


def test_a_result_is_converted_to_scores_once():
    """The second conversion gave error rates, still named by the score."""
    log = read_accuracies()
    for result in (log.cvci.interval(), log.cvci.compare()):
        once = cvstats.as_scores(result)
        assert not once.iloc[:, 0].equals(result.iloc[:, 0])
        pd.testing.assert_frame_equal(cvstats.as_scores(once), once)
    whole = log.to_xarray().to_dataarray("model").assign_attrs(log.attrs)
    once = cvstats.as_scores(whole.cvci.interval())
    xr.testing.assert_identical(cvstats.as_scores(once), once)
