"""Limits that hold at every look: the closed form, duality, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import only_row, product_index

import cvstats
from cvstats import LogError
from cvstats.comparisons.compare import mixture_rate, sequence_multiplier

RNG = np.random.default_rng(4)


def pair_of(differences, name="point"):
    """Two models with these differences."""
    level = np.round(RNG.normal(3, 1, len(differences)), 3)
    index = pd.RangeIndex(len(differences), name=name)
    return pd.DataFrame({"a": level + differences, "b": level}, index=index)


def right_or_wrong(n, discordant, of_a=0):
    """Losses of 0 and 1 of which so many differ, ``of_a`` of them errors of a alone."""
    a, b = np.zeros(n), np.zeros(n)
    a[:of_a] = 1
    b[of_a:discordant] = 1
    return pd.DataFrame({"a": a, "b": b}, index=pd.RangeIndex(n, name="point"))


def closed_form(d, alpha, tightest_at):
    """The limits in plain Python; r solves x - log(x) = 1 - log(alpha^2) with x = r t + 1."""
    low, high = 1.0, 100.0
    while high - low > 1e-13 * high:
        x = (low + high) / 2
        low, high = (x, high) if x - math.log(x) < 1 - 2 * math.log(alpha) else (low, x)
    r, t = (low - 1) / tightest_at, len(d)
    mean = math.fsum(d) / t
    sd = math.sqrt(math.fsum((e - mean) ** 2 for e in d) / (t - 1))
    reach = 2 * (t * r + 1) / (t**2 * r) * math.log(math.sqrt(t * r + 1) / alpha)
    return mean - sd * math.sqrt(reach), mean + sd * math.sqrt(reach)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("tightest_at", [30, 500, 10_000])
def test_the_limits_are_those_of_the_closed_form(alpha, tightest_at):
    d = RNG.normal(0.3, 1, 150)
    frame = pd.DataFrame({"a": d, "b": 0.0}, index=pd.RangeIndex(150, name="point"))
    found = only_row(frame.cvci.compare(anytime=True, alpha=alpha, tightest_at=tightest_at))
    lower, upper = closed_form(d.tolist(), alpha, tightest_at)
    assert found["lower"] == pytest.approx(lower, rel=1e-10)
    assert found["upper"] == pytest.approx(upper, rel=1e-10)


def test_the_interval_excludes_zero_exactly_where_p_is_below_alpha():
    for shift in np.linspace(0.2, 0.5, 7):
        frame = pair_of(RNG.normal(size=200) + shift)
        p = only_row(frame.cvci.compare(anytime=True))["p_value"]
        if p == 1:
            continue
        for alpha, away in ((p * 1.001, True), (p * 0.999, False)):
            rate = mixture_rate(500, 0.05)  # the rate belongs to the sequence, not to the look
            statistic = abs(only_row(frame.cvci.compare(anytime=True))["statistic"])
            assert (statistic > sequence_multiplier(200, rate, alpha)) == away


def test_no_limits_before_there_is_enough_to_see():
    def labels(frame, **options):
        row = only_row(frame.cvci.compare(anytime=True, **options))
        return row["caution"], math.isinf(row["lower"]) and math.isinf(row["upper"]), row["p_value"]

    d = np.random.default_rng(0).normal(2, 1, 200)
    label, none, p = labels(pair_of(d[:29]))
    assert "no limits yet" in label
    assert "early look" not in label
    assert (none, p) == (True, 1.0)
    label, none, p = labels(pair_of(d[:30]))
    assert "early look" in label
    assert not none
    assert p < 0.05
    assert labels(pair_of(d[:99]))[0] == "early look"
    assert labels(pair_of(d[:100]))[0] == ""
    # losses of 0 and 1 on which the models hardly differ have a small standard error by chance
    assert labels(right_or_wrong(400, 24)) == ("no limits yet", True, 1.0)
    assert labels(right_or_wrong(400, 25))[:2] == ("", False)
    assert labels(right_or_wrong(60, 30, 15))[:2] == ("", False)
    same = pd.DataFrame({"a": d, "b": d}, index=pd.RangeIndex(200, name="point"))
    assert labels(same) == ("no limits yet", True, 1.0)
    for discordant in (24, 25):
        log = right_or_wrong(400, discordant)
        log.attrs["loss"] = "zero_one"
        row = only_row(log.cvci.difference().cvci.compare(0, anytime=True))
        assert (row["caution"] == "no limits yet") == math.isinf(row["upper"]) == (discordant < 25)


def test_groups_are_what_is_counted():
    groups, size = 40, 5
    d = RNG.normal(size=(groups, 1)) + RNG.normal(size=(groups, size))
    index = product_index(fold=[0], source=range(groups), point=range(size))
    frame = pd.DataFrame({"a": d.reshape(-1), "b": 0.0}, index=index)
    frame.attrs["points_are"] = "nested"
    found_table = frame.cvci.compare(anytime=True)
    found = only_row(found_table)
    lower, upper = closed_form(d.mean(axis=1).tolist(), 0.05, 500)
    assert found["lower"] == pytest.approx(lower, rel=1e-10)
    assert found["upper"] == pytest.approx(upper, rel=1e-10)
    assert "early look" in found["caution"]
    assert "df" not in found
    assert "number of groups at the first look grows" in found_table.attrs["guarantee"]
    by_name = frame.droplevel("fold")
    pd.testing.assert_frame_equal(
        by_name.cvci.compare(anytime=True, method="clustered"), found_table
    )
    default = "the default interval of this log is out_of_source.*'clustered'"
    refuses(default, by_name.cvci.compare, anytime=True)
    counted = frame.cvci.compare(anytime=True, method="clustered", options={"correction": "CR1"})
    assert counted.attrs["correction"] == "CR1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tightest_at": 300}, "tightest_at=300 requires anytime=True"),
        ({"anytime": True, "tightest_at": 5}, "tightest_at=5 is out of range"),
        ({"anytime": True, "method": "wald"}, "method='wald'. Use method='holdout'"),
        ({"anytime": True, "alternative": "less"}, "has two-sided limits"),
        ({"anytime": True, "adjust": "max-t"}, "no joint distribution of all looks"),
        (
            {"anytime": True, "method": "holdout", "options": {"interval": "t"}},
            "selects limits for a single look",
        ),
        (
            {"anytime": True, "method": "clustered", "options": {"by": ("point", "repetition")}},
            "names two. Pass one level.",
        ),
    ],
)
def test_options_that_do_not_belong_together(options, words):
    refuses(words, pair_of(RNG.normal(size=120)).cvci.compare, **options)


def test_folds_are_tested_with_several_models():
    frame = pair_of(RNG.normal(size=120)).set_index(
        pd.Index(np.arange(120) % 4, name="fold"), append=True
    )
    with pytest.raises(
        LogError, match=r"this log has 4 folds, each used to test a different model"
    ):
        frame.cvci.compare(anytime=True)


def test_skewness_asks_for_more_points_at_every_look():
    """Limits at every look are further out, where skewness lasts longer."""
    drawn = np.random.default_rng(5).exponential(size=150)
    frame = pair_of(drawn)
    n = int(25 * ((drawn - drawn.mean()) ** 3).mean() ** 2 / drawn.var() ** 3)
    assert n < 150 < 3 * n
    assert "skewed" not in only_row(frame.cvci.compare())["caution"]
    assert "skewed" in only_row(frame.cvci.compare(anytime=True))["caution"]
    lognormal = pair_of(np.random.default_rng(6).lognormal(0, 1.5, 400))
    watch = cvstats.monitor(lognormal)
    assert only_row(watch.interval())["p_value"] < 0.05
    assert not watch.stop  # a decision is never taken back
