"""Comparisons of 0/1 losses: exact and score tests, equivalence, and what is planned."""

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from hypothesis import example, given
from hypothesis import strategies as st
from paired_logs import ALTERNATIVES
from rows import multi_index, only_row
from scipy import optimize, stats
from strategies import by_row

import cvstats
from cvstats.comparisons.zero_one import score_statistic, tango_limits
from cvstats.errors import LogError


def pair(n10, n01, n, *, both=0, folds=None, repetitions=1):
    """A log of two models with so many points on which only one errs."""
    kinds = np.repeat([0, 1, 2, 3], [n10, n01, both, n - n10 - n01 - both])
    frame = pd.DataFrame({"a": np.isin(kinds, [0, 2]) * 1.0, "b": np.isin(kinds, [1, 2]) * 1.0})
    frame.index.name = "point"
    if folds is not None:
        frame = frame.set_index(pd.Index(np.arange(n) % folds, name="fold"), append=True)
    if repetitions > 1:
        frame = pd.concat(dict.fromkeys(range(repetitions), frame), names=["repetition"])
    return frame


TABLES = st.tuples(*[st.integers(0, 12)] * 3, st.integers(2, 20)).map(
    lambda t: (t[0], t[1], sum(t), t[2])
)


@pytest.mark.parametrize(("n10", "n01", "p"), [(4, 0, 0.125), (5, 0, 0.0625), (0, 6, 0.03125)])
@pytest.mark.parametrize("folds", [None, 5])
def test_few_discordant_points_are_tested_exactly(n10, n01, p, folds):
    table = cvstats.compare(pair(n10, n01, 40, both=3, folds=folds))
    row = table.iloc[0]
    assert row["p_value"] == p
    assert (row["lower"] <= 0 <= row["upper"]) == (p >= 0.05)
    assert row["caution"] == "few discordant points"
    assert table.attrs["test"] == "exact"
    assert "Tango (1998)" in table.attrs["reference"]


@example((5, 0, 20, 2), "two-sided", 0.0625)  # the p-value itself
@given(TABLES, st.sampled_from(ALTERNATIVES), st.sampled_from([0.01, 0.05, 0.3]))
def test_exact_tests_are_those_of_mcnemar(table, alternative, alpha):
    n10, n01, n, both = table
    frame = pair(n10, n01, n, both=min(both, n - n10 - n01))
    row = cvstats.compare(frame, alternative=alternative, alpha=alpha).iloc[0]
    total = n10 + n01
    side = {"two-sided": "two-sided", "less": "less", "greater": "greater"}[alternative]
    wanted = stats.binomtest(n10, total, alternative=side).pvalue if total else 1.0
    assert row["p_value"] == pytest.approx(wanted, rel=1e-10)
    if alternative == "two-sided":
        assert row["p_value"] == pytest.approx(cvstats.mcnemar(frame)["p_value"].item(), rel=1e-12)
    lower, upper = (x.item() for x in tango_limits(*as_arrays(n10, n01), n, alpha, alternative))
    if wanted >= alpha:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    assert (row["lower"], row["upper"]) == pytest.approx((lower, upper), abs=1e-12)
    assert row["statistic"] == pytest.approx((n10 - n01) / np.sqrt(max(total, 1)))


def as_arrays(*numbers):
    return [np.array([number], dtype=float) for number in numbers]


def test_where_normal_tests_stay_they_are_labelled():
    often = pair(4, 0, 40, folds=5, repetitions=3)
    within = {"variance": "within-fold"}
    for table in (
        cvstats.compare(often, method="wald"),
        cvstats.compare(often.droplevel("fold"), method="holdout"),
        cvstats.compare(pair(4, 0, 40, folds=5), method="wald"),
        cvstats.compare(pair(4, 0, 40, folds=5), method="wald", options=within),
        cvstats.compare(pair(4, 0, 40), method="holdout"),
        cvstats.compare(pair(4, 0, 40, folds=5), adjust="max-t", rng=1, n_draws=199),
    ):
        assert table["caution"].item() == "few discordant points"
        assert table["p_value"].item() < 0.05
        assert "test" not in table.attrs
        words = table.attrs["cautions"]["few discordant points"]
        assert words.endswith("compare and mcnemar compute exact p-values by default.")
    assert cvstats.compare(pair(4, 0, 40, folds=5), method="naive")["caution"].item() != (
        "few discordant points"
    )


def repeated_pair(kind, discordant, n=60):
    """Three evaluations of each point: in other folds, in the same folds, or of one test set."""
    frame = pair(discordant, 1, n, both=4)
    runs = {r: frame.assign(fold=np.arange(n) // (r + 1) % 5) for r in range(3)}
    if kind == "the same folds":
        runs = dict.fromkeys(range(3), runs[0])
    log = pd.concat(runs, names=["repetition"]).set_index("fold", append=True)
    return log.droplevel("fold") if kind == "a test set" else log


@pytest.mark.parametrize("kind", ["other folds", "the same folds", "a test set"])
def test_averages_of_few_discordant_points_have_a_pseudo_error_of_each_model(kind):
    log, n = repeated_pair(kind, 3), 60
    table = cvstats.compare(log)
    plain = cvstats.compare(log, method=table.attrs["interval_method"])
    assert list(table["caution"]) == list(plain["caution"]) == ["few discordant points"]
    d, se = plain["difference"], plain["se"]
    wide = (plain["upper"] - d) / se * np.hypot(se, np.sqrt(2) / n)
    np.testing.assert_allclose(table["upper"], d + wide)
    np.testing.assert_allclose(table["se"], se)
    if kind == "other folds":
        near = cvstats.equivalence(log, margin=0.1, alpha=0.025)
        np.testing.assert_allclose(near["upper"], table["upper"])
    if kind == "the same folds":
        part = ["difference", "lower", "upper", "p_value"]
        moments = cvstats.Moments.of_log(log, pairs=True).compare()
        pd.testing.assert_frame_equal(moments[part], table[part])
    for alternative in ALTERNATIVES:
        one, ratio = (log.cvci.compare(relative=r, alternative=alternative) for r in (False, True))
        assert ((ratio["lower"] < 0) == (one["lower"] < 0)).all()
        unit = ratio["difference"] / one["difference"]
        assert (ratio["lower"] <= np.maximum(unit * one["lower"], -100) + 1e-9).all()
        assert (ratio["upper"] >= unit * one["upper"] - 1e-9).all()
    ahead = cvstats.compare(log.assign(c=log["a"]), adjust="max-t", rng=1, n_draws=199)
    assert (ahead["upper"].iloc[0] >= table["upper"]).all()
    log.attrs["loss"] = "zero_one"
    gaps = log.cvci.difference()
    for limits in (gaps.cvci.interval(), gaps.cvci.compare(0)):
        np.testing.assert_allclose(limits[["lower", "upper"]], table[["lower", "upper"]])
    many = repeated_pair(kind, 24)
    found = cvstats.compare(many)
    assert "few discordant points" not in found["caution"].item()
    method = found.attrs["interval_method"]
    pd.testing.assert_frame_equal(found, cvstats.compare(many, method=method), check_like=True)


def test_models_that_always_agree_in_repeated_folds_have_limits():
    log = repeated_pair("other folds", 3)
    log["b"] = log["a"]
    array = by_row(log)
    for form in (log, array, array.chunk()):
        table = cvstats.compare(form)
        assert float(table["lower"].squeeze()) == pytest.approx(-1.959964 * np.sqrt(2) / 60)


@given(TABLES, st.sampled_from(ALTERNATIVES))
def test_tango_is_mcnemars_score_test(table, alternative):
    n10, n01, n, both = table
    frame = pair(n10, n01, n, both=min(both, n - n10 - n01), folds=2)
    found = cvstats.compare(frame, method="tango", alternative=alternative)
    row = found.iloc[0]
    z = (n10 - n01) / np.sqrt(max(n10 + n01, 1))
    tails = {"two-sided": 2 * stats.norm.sf(abs(z)), "less": stats.norm.cdf(z),
             "greater": stats.norm.sf(z)}  # fmt: skip
    assert row["p_value"] == pytest.approx(tails[alternative], rel=1e-9)
    assert row["statistic"] == pytest.approx(z, abs=1e-12)
    limits = tango_limits(*as_arrays(n10, n01), n, 0.05, alternative)
    assert (row["lower"], row["upper"]) == pytest.approx([x.item() for x in limits], abs=1e-12)
    assert ("few discordant points" in row["caution"]) == (n10 + n01 < 25)
    assert found.attrs["test"] == found.attrs["interval_method"] == "tango"
    if alternative == "two-sided":
        chi2 = cvstats.mcnemar(frame, test="chi2")["p_value"].item()
        assert row["p_value"] == pytest.approx(chi2, rel=1e-9)


def test_tango_of_repetitions_counts_points_once():
    often, once = (pair(9, 2, 50, folds=5, repetitions=r) for r in (4, 1))
    names = ["difference", "lower", "upper", "p_value"]
    ours, wanted = (cvstats.compare(log, method="tango")[names] for log in (often, once))
    pd.testing.assert_frame_equal(ours, wanted, rtol=1e-10)


def test_tango_is_refused_in_words():
    frame = pair(9, 2, 50, folds=5)
    other = frame.assign(b=0.3)
    for call in (
        lambda: cvstats.compare(other, method="tango"),
        lambda: cvstats.equivalence(other, method="tango", margin=0.1),
        lambda: cvstats.power(other, method="tango", effect=0.1),
    ):
        refuses("'tango' needs 0/1 losses.*method='wald'", call)
    mixed = frame.assign(c=0.3)  # only one of three pairs is of 0 and 1
    refuses("'tango' needs 0/1 losses", cvstats.compare, mixed, method="tango")
    with pytest.raises(LogError, match="max-t' needs standard errors.*adjust='holm'"):
        cvstats.compare(frame, method="tango", adjust="max-t")
    with pytest.raises(LogError, match="tango has no options"):
        cvstats.compare(frame, method="tango", options={"variance": "within-fold"})
    random = pd.concat({0: frame.iloc[:30], 1: frame.iloc[20:]}, names=["repetition"])
    refuses("wald needs", cvstats.compare, random, method="tango")


@given(TABLES, st.sampled_from([0.01, 0.1, (-0.05, 0.2), (None, 0.1), (-0.3, None), (-1.5, 0.2)]))
def test_equivalence_by_the_score_at_each_margin(table, margin):
    n10, n01, n, both = table
    frame = pair(n10, n01, n, both=min(both, n - n10 - n01))
    found = cvstats.equivalence(frame, margin=margin)
    low, high = margin if isinstance(margin, tuple) else (-margin, margin)
    counts = as_arrays(n10, n01)
    tails = [0.0]
    if low is not None and low >= -1:
        tails.append(stats.norm.sf(score_statistic(*counts, n, low, 0.25)).item())
    if high is not None and high <= 1:
        tails.append(stats.norm.cdf(score_statistic(*counts, n, high, -0.25)).item())
    row = found.iloc[0]
    assert row["p_value"] == pytest.approx(max(tails), rel=1e-9)
    limits = [x.item() for x in tango_limits(*counts, n, 0.1, correction=0.25)]
    assert (row["lower"], row["upper"]) == pytest.approx(limits, abs=1e-12)
    inside = (low is None or limits[0] > low) and (high is None or limits[1] < high)
    if abs(row["p_value"] - 0.05) > 1e-9:
        assert row["equivalent"] == (row["p_value"] < 0.05)
        assert row["equivalent"] == inside
    assert found.attrs["test"] == "tango"


@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize("folds", [None, 5])
def test_models_that_agree_on_few_points_are_not_equivalent(folds, repetitions):
    alike = pair(0, 0, 20, both=4, folds=folds, repetitions=repetitions)
    for margin in (1e-6, 0.01, 0.1):
        row = cvstats.equivalence(alike, margin=margin).iloc[0]
        assert not row["equivalent"]
        assert row["p_value"] > 0.05
        assert row["lower"] == -row["upper"] < -0.1
        assert "few discordant points" in row["caution"]
    assert cvstats.equivalence(alike, margin=0.2)["equivalent"].item()
    many = pair(0, 0, 2000, folds=folds, repetitions=repetitions)
    assert cvstats.equivalence(many, margin=0.01)["equivalent"].item()


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("counts", [(3, 0, 60), (12, 9, 200), (40, 30, 400)])
def test_what_is_planned_is_mcnemars_test(alternative, counts):
    n10, n01, n = counts
    frame, effect = pair(n10, n01, n, folds=5), -0.08 if alternative == "less" else 0.08
    row = cvstats.power(frame, effect=effect, alternative=alternative).iloc[0]
    share = max((n10 + n01) / n, abs(effect))
    z = stats.norm.isf(0.025 if alternative == "two-sided" else 0.05)

    def power(size, difference):
        spread = max(share, difference) if difference > (n10 + n01) / n else (n10 + n01) / n
        away = np.sqrt(spread - difference**2)
        found = stats.norm.cdf((np.sqrt(size) * difference - z * np.sqrt(spread)) / away)
        if alternative == "two-sided":
            found += stats.norm.cdf((-np.sqrt(size) * difference - z * np.sqrt(spread)) / away)
        return found

    assert row["power"] == pytest.approx(power(n, abs(effect)), rel=1e-9)
    needed = optimize.brentq(lambda size: power(size, abs(effect)) - 0.8, 2, 1e6)
    assert row["points_needed"] == pytest.approx(needed, abs=2)
    assert power(n, abs(row["smallest_effect"])) == pytest.approx(0.8, abs=2e-3)
    against = cvstats.power(frame, effect=-effect, alternative=alternative).iloc[0]
    if alternative == "two-sided":
        assert against["points_needed"] == row["points_needed"]
    else:
        assert np.isinf(against["points_needed"])
        assert against["power"] < 0.05


@pytest.mark.parametrize("times", [2, 4])
def test_averages_of_many_points_keep_their_standard_error(times):
    """Several runs of a test set say more than one, which counts of points do not see."""
    rng = np.random.default_rng(5)
    runs = range(times)
    runs = {r: pair(40, 30, 200).sample(frac=1, random_state=rng.integers(99)) for r in runs}
    runs = {r: frame.set_axis(pd.RangeIndex(200, name="point")) for r, frame in runs.items()}
    frame = pd.concat(runs, names=["repetition"])
    found = cvstats.equivalence(frame, margin=0.1)
    pd.testing.assert_frame_equal(found, cvstats.equivalence(frame, margin=0.1, method="holdout"))
    counted = cvstats.equivalence(frame, margin=0.1, method="tango")
    assert counted["upper"].item() > found["upper"].item()
    plan = cvstats.power(frame, effect=0.1).iloc[0]
    z = stats.norm.isf(0.025)
    away = 0.1 / found["se"].item()
    assert plan["power"] == pytest.approx(stats.norm.cdf(away - z) + stats.norm.cdf(-away - z))


def test_models_that_disagree_on_every_point_have_the_end_of_the_scale_as_a_limit():
    index = multi_index(fold=np.arange(20) % 5, point=range(20))
    right = pd.DataFrame({"a": np.zeros(20), "b": np.ones(20)}, index)
    row = only_row(right.cvci.compare(method="tango"))
    assert row["lower"] == row["difference"] == -1
    other = only_row(right[["b", "a"]].cvci.compare(method="tango"))
    assert other["upper"] == other["difference"] == 1
    assert other["lower"] == -row["upper"]
