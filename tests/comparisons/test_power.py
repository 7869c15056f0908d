"""Power, the smallest difference that can be found, and the points that are needed."""

from functools import partial

import golden
import numpy as np
import oracle
import oracle_many
import pandas as pd
import pytest
from calls import refuses
from hypothesis import given
from hypothesis import strategies as st
from rows import multi_index, only_row, product_index
from scipy import special, stats
from strategies import stacked

import cvstats

RNG = np.random.default_rng(53)
SIGNS = {"two-sided": 1, "less": -1, "greater": 1}


def models(n=60, k=5, names="abc", repetitions=1, noise=1.0):
    rep = np.repeat(np.arange(repetitions), n)
    row = np.tile(np.arange(n), repetitions)
    levels = {"repetition": rep, "fold": (row + rep) % k, "point": row}
    levels = {name: codes for name, codes in levels.items() if name != "fold" or k > 1}
    index = multi_index(**levels)
    lasting = RNG.normal(size=(n, len(names)))[row]
    return pd.DataFrame(
        lasting + noise * RNG.normal(size=(len(index), len(names))), index, list(names)
    )


FRAME = models()


def auc(positives):
    """A test set of two models with few positives."""
    random, truth = np.random.default_rng(1), np.arange(300) < positives
    scores = {name: truth + random.normal(size=300) for name in "ab"}
    table = pd.DataFrame({"y": truth, **scores}, pd.RangeIndex(300, name="point"))
    return cvstats.losses(table, "y", ["a", "b"], "auc")


DESIGNS = {
    **{
        name: partial(golden.log_named, name)
        for name in (
            "k-fold", "repeated", "leave-one-out", "one set", "seeds", "spread sources",
            "whole sources", "repeated sources", "by source", "crossed", "five by two", "nested",
            "bootstrap",
        )
    },
    "repeated whole sources": lambda: golden.k_fold(sources=12, whole=True, repetitions=2),
    "alike": lambda: models(n=200)[["a"]].assign(b=lambda log: log["a"] + SMALL),
    "auc": lambda: auc(12),
    "splits": lambda: of_splits(golden.log_named("splits")),
    "errors of splits": lambda: of_splits(1.0 * (golden.log_named("splits") > 1)),
}  # fmt: skip
SMALL = RNG.normal(0, 0.01, 200)


def of_splits(log):
    log = log.copy()
    log.attrs["n_train"] = 20
    return log


@pytest.mark.parametrize("name", DESIGNS)
def test_the_plan_is_for_the_test_of_compare(name):
    """The difference detected with power 1/2 by a one-sided test is where its limit excludes 0."""
    log = DESIGNS[name]()
    plan = cvstats.power(log, effect=0.01, alternative="less", target_power=0.5)
    found = cvstats.compare(log, alpha=0.1, adjust=None)
    reach = (found["upper"] - found["lower"]) / 2
    if "df" in found:
        t = stats.t.ppf(0.95, found["df"])
        reach = reach * special.nctdtrinc(found["df"], 0.5, t) / t
    np.testing.assert_allclose(-plan["smallest_effect"], reach, rtol=1e-7)
    np.testing.assert_allclose(plan["se"], found["se"], rtol=1e-12)


@given(st.floats(0.01, 3), st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from([*SIGNS]))
def test_power_as_in_the_oracle(size, alpha, alternative):
    for effect in (size, -size):
        table = FRAME.cvci.power(effect=effect, alpha=alpha, alternative=alternative)
        for _, row in table.iterrows():
            wanted = oracle_many.power(effect, row["se"], alpha, alternative)
            assert row["power"] == pytest.approx(wanted, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("alternative", SIGNS)
@pytest.mark.parametrize("target", [0.06, 0.5, 0.8, 0.99])
def test_the_smallest_effect_has_the_target_power(alternative, target):
    row = (
        FRAME[["a", "b"]].cvci.power(effect=1, alternative=alternative, target_power=target).iloc[0]
    )
    found = FRAME[["a", "b"]].cvci.power(
        effect=row["smallest_effect"], alternative=alternative, target_power=target
    )
    assert found["power"].item() == pytest.approx(target, rel=1e-10)
    assert found["points_needed"].item() == len(FRAME)
    assert np.sign(row["smallest_effect"]) == SIGNS[alternative]


@pytest.mark.parametrize("effect", [-0.2, 0.2])
@pytest.mark.parametrize("alternative", SIGNS)
def test_the_power_is_in_its_range(alternative, effect):
    for frame in (FRAME, FRAME > 1):
        rows = frame.astype(float).cvci.power(effect=effect, alternative=alternative)
        assert (rows["power_lower"] < rows["power"]).all()
        assert (rows["power"] < rows["power_upper"]).all()


@pytest.mark.parametrize("alternative", SIGNS)
def test_the_points_needed_have_the_target_power(alternative):
    effect = 0.07 * SIGNS[alternative]
    row = only_row(FRAME[["a", "b"]].cvci.power(effect=effect, alternative=alternative))
    se = row["se"] * np.sqrt(
        row["n_points"] / np.array([row["points_needed"], row["points_needed"] - 1])
    )
    powers = [oracle_many.power(effect, each, 0.05, alternative) for each in se]
    assert powers[0] >= 0.8 > powers[1]
    assert row["points_needed"] == round(row["points_needed"])


@pytest.mark.parametrize("effect", [1e-4, 1e-9, 1e-30])
def test_a_tiny_effect_needs_the_groups_of_the_normal_distribution(effect):
    """Also where the numbers are too large to differ by one."""
    log = models(n=240, k=1, names="ab")
    log = log.set_index(pd.Index(np.arange(240) // 10, name="source"), append=True)
    row = only_row(cvstats.power(log, effect=effect))
    z = stats.norm.isf(0.025) + stats.norm.isf(0.2)
    expected = 24 * (z * row["se"] / effect) ** 2
    assert row["groups_needed"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("log", "name", "fewest"),
    [("k-fold", "points_needed", 2), ("by source", "groups_needed", 2),
     ("whole sources", "groups_needed", 3)],
)  # fmt: skip
def test_a_plan_has_two_points_or_one_degree_of_freedom(log, name, fewest):
    assert (golden.log_named(log).cvci.power(effect=100)[name] == fewest).all()


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("repetitions", [2, 4])
def test_parts_of_the_variance(k, repetitions):
    frame = models(n=20, k=k, repetitions=repetitions, names="ab")
    row = frame.cvci.power(effect=0.1).iloc[0]
    gap = (frame["a"] - frame["b"]).map(oracle.exact)
    runs = [part.droplevel(["repetition", "fold"][: 1 + (k > 1)]).sort_index().tolist()
            for _, part in gap.groupby(level="repetition")]  # fmt: skip
    stays, goes = oracle_many.parts_of_variance(runs)
    assert row["point_variance"] == pytest.approx(float(stays), rel=1e-11, abs=1e-12)
    assert row["repetition_variance"] == pytest.approx(float(goes), rel=1e-11, abs=1e-12)
    if k == 1:  # a test set: the interval is that of the averaged points
        n = 20
        assert row["se"] ** 2 == pytest.approx(float(stays + goes / repetitions) / n)


def test_words():
    for effect in (0, 0.0):
        refuses("Expected the smallest difference that matters", FRAME.cvci.power, effect=effect)
    refuses("effect=nan is out of range", FRAME.cvci.power, effect=np.nan)
    for target in (0.05, 0.01, 1.0):
        refuses(r"target_power=.*above alpha=0.05", FRAME.cvci.power, effect=1, target_power=target)
    refuses("Invalid alternative='better'", FRAME.cvci.power, effect=1, alternative="better")
    refuses(r"effect is required: the data cannot.*effect=0\.01", FRAME.cvci.power)
    with pytest.raises(TypeError):  # as Python refuses a missing argument
        FRAME.cvci.power()


RANGE = ["power_lower", "power_upper", "points_needed_lower", "points_needed_upper"]


def range_by_hand(d, se, n, effect, alpha=0.05, target=0.8):
    """The ends, with quantiles of chi-squared by bisection of its distribution function."""
    second = np.mean((d - d.mean()) ** 2)
    df = 2 * (len(d) - 1) / (np.mean((d - d.mean()) ** 4) / second**2 - 1)
    errors = [se * np.sqrt(df / stats.chi2.ppf(share, df)) for share in (0.9, 0.1)]
    away = (stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(target)) * np.array(errors)
    powers = [oracle_many.power(effect, error, alpha, "two-sided") for error in errors[::-1]]
    return [*powers, *np.ceil(n * (away / effect) ** 2)]


@pytest.mark.parametrize("repetitions", [1, 3])
def test_the_range_is_that_of_chi_squared_with_the_kurtosis_of_the_pilot(repetitions):
    pair = models(80, repetitions=repetitions)[["a", "b"]] ** 2
    row = pair.cvci.power(effect=0.7).iloc[0]
    points = (pair["a"] - pair["b"]).groupby("point").mean().to_numpy()
    assert row[RANGE].tolist() == pytest.approx(range_by_hand(points, row["se"], 80, 0.7), rel=1e-9)
    assert row["power_lower"] < row["power"] < row["power_upper"]
    assert row["points_needed_lower"] < row["points_needed"] < row["points_needed_upper"]


@pytest.mark.parametrize("repetitions", [1, 4, 25])
def test_repetitions_are_planned_with_the_two_parts_of_the_variance(repetitions):
    frame = models(n=80, k=1, repetitions=4, noise=2.0)
    pilot = frame.cvci.power(effect=0.3)
    plan = frame.cvci.power(effect=0.3, repetitions=repetitions)
    parts = pilot["point_variance"] + pilot["repetition_variance"] / repetitions
    np.testing.assert_allclose(plan["planned_se"], np.sqrt(parts / 80), rtol=1e-12)
    np.testing.assert_allclose(plan["se"], pilot["se"], rtol=1e-14)
    for pair, row in plan.iterrows():
        wanted = oracle_many.power(0.3, row["planned_se"], 0.05, "two-sided")
        assert row["power"] == pytest.approx(wanted, rel=1e-9)
        share = row["planned_se"] / row["se"]
        smallest = share * pilot["smallest_effect"][pair]
        assert row["smallest_effect"] == pytest.approx(smallest)
        assert row["points_needed"] == np.ceil(80 * (smallest / 0.3) ** 2)
    assert plan.attrs["planned_repetitions"] == repetitions
    if repetitions == 4:  # as many as the pilot has
        np.testing.assert_allclose(plan["points_needed"], pilot["points_needed"])
        np.testing.assert_allclose(plan["power_lower"], pilot["power_lower"], rtol=1e-9)


PLANNED = ["power", "smallest_effect", "points_needed"]


def test_answers_are_planned_as_often_as_in_the_pilot():
    """Below 25 discordant points, three times as many points were planned."""
    rng = np.random.default_rng(1)
    easy = rng.random(100)
    right = rng.random((4, 100, 2)) < np.stack([easy**0.15, easy**0.2], axis=1)
    index = product_index(repetition=range(4), point=range(100))
    frame = pd.DataFrame(1.0 - right.reshape(-1, 2), index, columns=["a", "b"])
    plan = frame.cvci.power(effect=0.06)
    asked = frame.cvci.power(effect=0.06, repetitions=4)
    found = plan[PLANNED].to_numpy(float)
    np.testing.assert_allclose(found, asked[PLANNED].to_numpy(float), rtol=1e-9)
    assert "few discordant points" in plan["caution"].item()
    array = frame.to_xarray().to_dataarray("model").cvci.power(effect=0.06)
    assert array["points_needed"].item() == plan["points_needed"].item()


@pytest.mark.parametrize(
    ("folds", "runs", "options", "words"),
    [
        (1, 1, {"repetitions": 4}, "this log has one repetition"),
        (5, 3, {"repetitions": 4}, "wald, whose interval does not narrow"),
        (1, 3, {"repetitions": 4, "method": "tango"}, "tango, whose interval does not narrow"),
        (1, 3, {"repetitions": 0}, "repetitions=0 is out of range"),
    ],
    ids=["one repetition", "folds", "tango", "no number"],
)
def test_repetitions_that_cannot_be_planned(folds, runs, options, words):
    frame = (models(k=folds, repetitions=runs) > 0).astype(float)
    refuses(words, frame.cvci.power, effect=0.1, **options)


def test_repetitions_of_refitted_models_cannot_be_planned():
    parts = ["point_variance", "smallest_effect_limit", "points_needed_limit"]
    words = "refit_corrected, whose interval does not narrow.*Omit repetitions="
    for log in (golden.log_named("repeated"), golden.k_fold(sources=12, whole=True, repetitions=2)):
        refuses(words, log.cvci.power, effect=0.1, repetitions=4)
        plan = log.cvci.power(effect=0.1)
        assert plan.attrs["interval_method"] == "refit_corrected"
        assert plan[parts].isna().all(axis=None)
        assert not plan["caution"].str.contains("one repetition|clamped").any()


@pytest.mark.parametrize("name", ["halves", "nested", "replaced", "bootstrap"])
def test_methods_that_do_not_average_repetitions_have_no_parts(name):
    log = golden.log_named(name)
    for pilot in (log, stacked(log).chunk())[: 1 if name == "bootstrap" else 2]:
        plan = pilot.cvci.power(effect=0.1)
        for part in ("point_variance", "smallest_effect_limit", "points_needed_limit"):
            assert np.isnan(np.asarray(plan[part])).all()
        told = cvstats.cautions(plan).to_numpy().astype(str)
        for label in ("one repetition", "clamped"):
            assert (np.char.find(told, label) < 0).all()


def test_the_variance_of_one_repetition_of_fixed_sources():
    rng = np.random.default_rng(0)
    index = product_index(repetition=range(4), source=range(3), point=range(20))
    log = pd.DataFrame(rng.normal(size=(240, 2)), index, columns=["a", "b"])
    log.attrs["sources_are"] = "fixed"
    row = only_row(log.cvci.power(effect=0.3))
    once = (log["a"] - log["b"]).groupby(["repetition", "source"]).var() / 20
    noise = (once.groupby("repetition").sum().mean() / 9 - row["se"] ** 2) * 4 / 3
    assert row["repetition_variance"] / 60 == pytest.approx(noise)


@pytest.mark.parametrize("scores", [False, True])
def test_random_splits_are_planned_with_the_two_terms_of_their_variance(scores):
    draw = np.random.default_rng(4)
    index = pd.MultiIndex.from_tuples(
        [(r, p) for r in range(15) for p in draw.permutation(200)[:50]],
        names=["repetition", "point"],
    )
    log = pd.DataFrame(draw.normal(size=(750, 2)), index, columns=["a", "b"])
    log.attrs["n_train"] = 150
    if scores:
        log = log.groupby("repetition").mean()
        log.attrs = {"holds": "scores", "n_train": 150, "n_test": 50}
    plan = log.cvci.power(effect=0.1).iloc[0]
    each = (log["a"] - log["b"]).groupby("repetition").mean().var()
    assert plan["se"] ** 2 == pytest.approx((1 / 15 + 50 / 150) * each)
    assert plan["point_variance"] == pytest.approx(200 * 50 / 150 * each)
    assert plan["repetition_variance"] == pytest.approx(200 * each)
    size = 200 * (plan["smallest_effect"] / 0.1) ** 2
    assert plan["points_needed"] == pytest.approx(size, abs=1)
    assert plan["points_needed_limit"] < plan["points_needed"]
    assert plan["smallest_effect_limit"] < plan["smallest_effect"]
    assert plan["caution"] == ""
    if scores:  # of folds of unknown size
        folds = log.rename_axis("fold")
        folds.attrs = {"holds": "scores"}
        assert np.isnan(folds.cvci.power(effect=0.1)["points_needed"].iloc[0])
