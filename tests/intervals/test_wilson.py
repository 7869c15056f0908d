"""Intervals of proportions for cross-validation, and what `interval` does for 0/1 losses."""

import numpy as np
import oracle
import pandas as pd
import pytest
from rows import multi_index, product_index
from scipy import stats

import cvstats
from cvstats.errors import LogError

KINDS = {"wilson": oracle.wilson, "clopper-pearson": oracle.clopper_pearson}


def few_errors(errors=2, n=50, k=10, repetitions=1):
    """A log of folds in which so many points are wrong, the same each time."""
    index = product_index(repetition=range(repetitions), point=range(n))
    frame = pd.DataFrame({"rule": 0.0}, index)
    frame.loc[(slice(None), list(range(errors))), "rule"] = 1.0
    frame["fold"] = np.tile(np.arange(n) % k, repetitions)
    return frame.set_index("fold", append=True)["rule"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("errors", [0, 1, 7, 25, 50])
def test_limits_of_a_proportion(kind, errors):
    row = cvstats.wald(few_errors(errors), interval=kind, alpha=0.1).iloc[0]
    np.testing.assert_allclose(
        [row["lower"], row["upper"]], KINDS[kind](errors, 50, 0.1), rtol=1e-12, atol=1e-15
    )
    assert row["se"] == cvstats.wald(few_errors(errors))["se"].item()
    assert row["caution"] == ""


def test_other_losses_are_refused():
    log = few_errors(3)
    log.iloc[7] = 0.5
    for by in (None, "fold"):
        with pytest.raises(LogError, match="needs one 0/1 loss per point.*has other losses"):
            cvstats.wald(log, interval="wilson", by=by)
    with pytest.raises(LogError, match="a difference is not one.*method='tango'"):
        cvstats.compare(log, log, method="wald", options={"interval": "wilson"})


@pytest.mark.parametrize("errors", [0, 9, 10])
def test_interval_takes_wilson_for_losses_of_0_and_1(errors):
    folds = few_errors(errors)
    folds.attrs["loss"] = "zero_one"
    test_set = folds.droplevel(["repetition", "fold"])
    for log, run in ((folds, cvstats.wald), (test_set, cvstats.holdout)):
        table = cvstats.interval(log)
        kind = "wilson" if errors >= 10 else "clopper-pearson"
        if kind == "wilson" or run is cvstats.holdout:
            pd.testing.assert_frame_equal(table, run(log, interval=kind))
        assert table.attrs["interval"] == kind
        assert ("Wilson" if kind == "wilson" else "Clopper") in table.attrs["reason"]
        asked = cvstats.interval(log, method=run.__name__)
        pd.testing.assert_frame_equal(asked, run(log))


@pytest.mark.parametrize("unit", [1e-9, 1e-12, 1e-60])
def test_losses_in_a_large_unit_are_no_zeros(unit):
    """Losses of 1e-12 had the limits of a proportion, up to 0.06, by group and in batches."""
    rng = np.random.default_rng(0)
    index = multi_index(fold=np.arange(60) % 5, point=range(60), region=np.repeat(["x", "y"], 30))
    losses = pd.DataFrame({"a": rng.gamma(5, 1, 60), "b": rng.gamma(5, 1, 60)}, index)
    for ask in (
        lambda log: log.cvci.wald(),
        lambda log: log.cvci.interval(by="region"),
        lambda log: cvstats.Moments.of_log(log, pairs=True).interval(),
        lambda log: cvstats.Moments.of_log(log, pairs=True).compare(),
    ):
        wanted, found = ask(losses), ask(losses * unit)
        for name in ("lower", "upper"):
            np.testing.assert_allclose(found[name] / unit, wanted[name], rtol=1e-6)
        assert list(found["caution"]) == list(wanted["caution"])
    zeros = (losses > 6).astype(float)
    assert (cvstats.Moments.of_log(zeros).interval()["lower"] >= 0).all()


def answered(wrong, n_answers: int, **attrs) -> pd.DataFrame:
    """One test set, answered several times; ``wrong`` has a row for each point."""
    wrong = np.broadcast_to(np.asarray(wrong, dtype=float), (len(wrong), n_answers))
    index = product_index(repetition=range(n_answers), point=range(len(wrong)))
    log = pd.DataFrame({"llm": wrong.T.ravel()}, index)
    log.attrs |= attrs
    return log


@pytest.mark.parametrize(("rate", "answers"), [(0.02, 5), (0.3, 5), (0.3, 2)])
def test_several_answers_have_limits_between_0_and_1(rate, answers):
    rng = np.random.default_rng(3)
    chance = rng.beta(0.3, 0.3 * (1 - rate) / rate, (40, 1))
    log = answered(rng.random((40, answers)) < chance, answers)
    found = log.cvci.interval()
    share = log["llm"].groupby("point").mean()
    mean, variance = share.mean(), share.var(ddof=0) / 40
    size = (mean * (1 - mean) + 1 / 40) / (variance + 1 / 40**2)
    ones = mean * size
    wanted = stats.beta.ppf([0.025, 0.975], [ones, ones + 1], [size - ones + 1, size - ones])
    np.testing.assert_allclose(found[["lower", "upper"]].to_numpy()[0], wanted, rtol=1e-9)
    assert found.attrs["interval"] == "korn-graubard"
    once = cvstats.passes(log, k=1).cvci.interval()
    np.testing.assert_allclose(found[["lower", "upper"]], once[["lower", "upper"]], rtol=1e-12)
    array = log["llm"].to_xarray().expand_dims(model=["llm"])
    np.testing.assert_allclose(array.cvci.interval()["lower"], found["lower"], rtol=1e-12)
    both = pd.concat({"x": log, "y": 1 - log}, names=["part"])
    parts = both.cvci.interval(by="part")
    assert parts.attrs["reason"].startswith("part='x': ")
    np.testing.assert_allclose(parts["lower"], [found["lower"].item(), 1 - found["upper"].item()])


@pytest.mark.parametrize("errors", [0, 2, 30])
def test_limits_of_sources_are_those_of_a_proportion(errors):
    rng = np.random.default_rng(2)
    sources = np.repeat(np.arange(20), rng.integers(3, 8, size=20))
    n = len(sources)
    wrong = np.isin(np.arange(n), rng.choice(n, errors, replace=False)).astype(float)
    names = ["fold", "source", "point", "part"]
    index = pd.MultiIndex.from_arrays(
        [np.zeros(n, int), sources, np.arange(n), np.where(sources < 9, "x", "y")], names=names
    )
    log = pd.DataFrame({"a": wrong, "cost": wrong * 3}, index)
    log.attrs["loss"] = "zero_one"
    by_part = log[["a"]].cvci.interval(by="part")
    for part, one in [("x", log.xs("x", level="part")), ("y", log.xs("y", level="part"))]:
        one.attrs["loss"] = "zero_one"
        pd.testing.assert_frame_equal(
            by_part.xs(part, level="part")[["lower", "upper"]],
            one[["a"]].cvci.interval()[["lower", "upper"]],
        )
    found = log.droplevel("part").cvci.interval()
    plain = log.droplevel("part").cvci.clustered()
    share, se, df = (plain.iloc[0][name] for name in ("estimate", "se", "df"))
    reach = (np.bincount(sources) ** 2).sum() / n**2
    uneven = se**2 / (se**2 + reach * share**2) if errors else 1.0
    size = (share * (1 - share) + uneven**2 * reach / 10) / (se**2 + uneven**2 * reach**2 / 10)
    if errors:
        size *= (stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, df)) ** 2
    ones = share * size
    lower = stats.beta.ppf(0.025, ones, size - ones + 1) if errors else 0.0
    assert found["lower"].iloc[0] == pytest.approx(lower, rel=1e-9)
    upper = stats.beta.ppf(0.975, ones + 1, size - ones)
    assert found["upper"].iloc[0] == pytest.approx(upper, rel=1e-9)
    if errors:  # other losses keep Student's t
        assert found["lower"].iloc[1] == pytest.approx(plain["lower"].iloc[1])
