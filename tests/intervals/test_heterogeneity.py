"""Differences between groups: the oracle and published numbers."""

import numpy as np
import oracle_sources as exactly
import pandas as pd
import pytest
from grouped_logs import LOGS, log_of, random_rows
from rows import multi_index, only_row, product_index

import cvstats


@pytest.mark.parametrize("seed", [14, 15])  # tau is 0 for some of the first, for none of the second
@pytest.mark.parametrize("variance", ["own", "pooled"])
@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
def test_heterogeneity_against_the_oracle(sizes, variance, seed):
    rows = random_rows(sizes, seed)
    ours = only_row(cvstats.heterogeneity(log_of(rows), variance=variance, alpha=0.1))
    exact = exactly.heterogeneity(exactly.sources_of(rows), 0.1, variance == "pooled")
    for name, value in exact.items():
        assert ours[name] == pytest.approx(value, rel=1e-11, abs=1e-300), name
    assert ours["n_groups"] == len(sizes)
    assert ("variance clamped" in ours["caution"]) == (exact["q"] < exact["df"])


def test_skewed_groups_are_said():
    """Squared errors reject too often, .22 of 30 groups of 30; normal losses do not."""
    rng = np.random.default_rng(6)
    index = multi_index(source=np.arange(900) // 30, point=range(900))
    log = pd.DataFrame({"normal": rng.normal(size=900)}, index)
    log["squared"] = rng.standard_t(12, 900) ** 2
    for unit in (1, 1e-100):
        told = (log * unit).cvci.heterogeneity()["caution"].str.contains("skewed")
        assert told.to_dict() == {"normal": False, "squared": True}
        assert not (log * unit).cvci.heterogeneity(variance="pooled")["caution"].any()
    index = product_index(source=range(30), point=range(600))
    large = pd.Series(rng.exponential(size=18_000), index)
    assert "skewed" not in only_row(large.cvci.heterogeneity())["caution"]


@pytest.mark.parametrize(
    ("groups", "size", "rate", "told"),
    [(10, 30, 0.2, True), (20, 100, 0.1, True), (50, 50, 0.2, True),  # .10, .10 and .13 rejected
     (10, 30, 0.5, False), (5, 100, 0.2, False), (20, 200, 0.3, False)],
)  # fmt: skip
def test_error_rates_of_many_small_groups_are_said(groups, size, rate, told):
    wrong = np.tile(np.arange(size) < rate * size, groups) * 1.0
    levels = [np.arange(groups).repeat(size), range(groups * size)]
    log = pd.Series(wrong, pd.MultiIndex.from_arrays(levels, names=["source", "point"]))
    assert ("skewed" in only_row(log.cvci.heterogeneity())["caution"]) == told
    assert "skewed" not in only_row(log.cvci.heterogeneity(variance="pooled"))["caution"]


def test_tau_lies_inside_its_limits_and_has_the_unit_of_the_losses():
    """One source that varies much more than the others, as in data of firms."""
    rng = np.random.default_rng(7)
    spread = np.repeat([0.1, 0.1, 0.2, 0.2, 30.0], 20)
    index = product_index(source=range(5), point=range(20))
    losses = np.repeat([10.0, 100, 30, 60, 150], 20) + spread * rng.normal(size=100)
    columns = ["estimate", "lower", "upper", "se", "tau", "tau_lower", "tau_upper"]
    for variance in ("own", "pooled"):
        row = only_row(cvstats.heterogeneity(pd.Series(losses, index), variance=variance))
        assert row["tau_lower"] < row["tau"] < row["tau_upper"]
        for unit in (2.0**332, 2.0**-332):
            other = only_row(
                cvstats.heterogeneity(pd.Series(losses * unit, index), variance=variance)
            )
            for name in columns:
                assert other[name] == row[name] * unit, name


def test_groups_of_sources_say_that_the_sources_are_ignored():
    """Patients with ten losses each, at two equal hospitals."""
    point = np.arange(400)
    levels = pd.DataFrame({"source": point // 10, "hospital": point // 10 % 2, "point": point})
    losses = np.random.default_rng(9).normal(size=40).repeat(10) + point % 3
    log = pd.Series(losses, pd.MultiIndex.from_frame(levels))
    found = log.cvci.heterogeneity(by="hospital")
    assert found["caution"].item() == "sources ignored"
    assert "log.cvci.contrast(by='hospital').cvci.compare()" in str(found.attrs["cautions"])
    assert log.cvci.contrast(by="hospital").cvci.compare()["p_value"].item() > 0.05
    assert not log.cvci.heterogeneity()["caution"].str.contains("ignored").any()
    assert not log.droplevel("source").cvci.heterogeneity(by="hospital")["caution"].any()


@pytest.mark.parametrize(("sources", "advice"), [(8, None), (9, "two sources"), (16, "contrast")])
def test_groups_that_are_sources_have_nothing_to_ignore(sources, advice):
    """Eight groups that are a source each, that are a source or two, and that are two sources."""
    point = np.arange(480)
    group = point // 60
    source = {8: group, 9: np.where(point < 30, 8, group), 16: point // 30}[sources]
    levels = pd.DataFrame({"group": group, "source": source, "point": point})
    log = pd.Series(np.random.default_rng(0).normal(size=480), pd.MultiIndex.from_frame(levels))
    told = log.cvci.heterogeneity(by="group").attrs["cautions"].get("sources ignored")
    assert (told is None) if advice is None else (advice in told)
