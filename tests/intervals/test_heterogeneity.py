"""Differences between groups: the oracle and published numbers."""

from __future__ import annotations

import numpy as np
import oracle_sources as exactly
import pandas as pd
import pytest
import xarray as xr
from grouped_logs import LOGS, log_of, random_rows
from rows import only_row
from scipy import stats

import cvstats
from cvstats.core.cautions import Caution
from cvstats.intervals.heterogeneity import cochran_q, q_profile


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


def test_few_points_are_fewer_than_30():
    """In some group; with a pooled variance, in total."""
    rng = np.random.default_rng(5)
    for sizes, variance, said in (
        ([29, 120, 150], "own", True), ([30] * 20, "own", False),
        ([9, 10, 10], "pooled", True), ([3] * 10, "pooled", False),
    ):  # fmt: skip
        source = np.repeat(range(len(sizes)), sizes)
        index = pd.MultiIndex.from_arrays([source, range(len(source))], names=["source", "point"])
        log = pd.Series(rng.normal(size=len(source)), index=index)
        row = only_row(cvstats.heterogeneity(log, variance=variance))
        assert ("few points" in row["caution"]) == said


def test_skewed_groups_are_said():
    """Squared errors reject too often, .22 of 30 groups of 30; normal losses do not."""
    rng = np.random.default_rng(6)
    index = pd.MultiIndex.from_arrays([np.arange(900) // 30, range(900)], names=["source", "point"])
    log = pd.DataFrame({"normal": rng.normal(size=900)}, index)
    log["squared"] = rng.standard_t(12, 900) ** 2
    for unit in (1, 1e-100):
        told = (log * unit).cvci.heterogeneity()["caution"].str.contains("skewed")
        assert told.to_dict() == {"normal": False, "squared": True}
        assert not (log * unit).cvci.heterogeneity(variance="pooled")["caution"].any()
    index = pd.MultiIndex.from_product([range(30), range(600)], names=["source", "point"])
    large = pd.Series(rng.exponential(size=18_000), index)
    assert "skewed" not in only_row(large.cvci.heterogeneity())["caution"]


def test_tau_lies_inside_its_limits_and_has_the_unit_of_the_losses():
    """One source that varies much more than the others, as in data of firms."""
    rng = np.random.default_rng(7)
    spread = np.repeat([0.1, 0.1, 0.2, 0.2, 30.0], 20)
    index = pd.MultiIndex.from_product([range(5), range(20)], names=["source", "point"])
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squared", "exponential", "brier"])
def test_size_where_nothing_is_said(kind):
    """Groups of one population: rejected at 5% in .08 of logs at most, or the log is labelled."""
    rng = np.random.default_rng(6)
    runs = 2_000
    for groups in (4, 16):
        sizes = np.resize([1, 1, 1.5, 3], groups) * 60 * np.sqrt(groups)
        source = np.repeat(np.arange(groups), sizes.astype(int))
        shape = (len(source), runs)
        losses = {
            "squared": lambda shape=shape: rng.standard_t(12, shape) ** 2,
            "exponential": lambda shape=shape: rng.standard_exponential(shape),
            "brier": lambda shape=shape: (rng.beta(2, 1, shape) - (rng.random(shape) < 0.7)) ** 2,
        }[kind]()
        log = xr.DataArray(
            losses, dims=("point", "run"), coords={"source": ("point", source)},
        ).assign_coords(point=np.arange(len(source)))  # fmt: skip
        own = cvstats.heterogeneity(log)
        pooled = cvstats.heterogeneity(log, variance="pooled")
        assert not (own["caution"] & (Caution.FEW_POINTS | Caution.SKEWED)).any()
        assert (own["p_value"] < 0.05).mean() < 0.08 + 3 * np.sqrt(0.08 * 0.92 / runs)
        assert (pooled["p_value"] < 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / runs)
        covered = (own["lower"] <= losses.mean()) & (losses.mean() <= own["upper"])
        assert covered.mean() > 0.95 - 4 * np.sqrt(0.05 * 0.95 / runs)


VACCINE = np.array([
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619),
    (33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892),
    (29, 7470, 45, 7232), (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338),
    (27, 16886, 29, 17825),
], dtype=float)  # fmt: skip
"""Thirteen trials of a vaccine (Colditz et al. 1994): ill and well, vaccinated and not."""


def test_q_profile_of_a_published_analysis():
    """Log odds ratios: metafor's worked example prints the interval 0.1302 to 1.1812."""
    y = np.log(VACCINE[:, 0] * VACCINE[:, 3] / VACCINE[:, 1] / VACCINE[:, 2])[:, None]
    s2 = (1 / VACCINE).sum(axis=1)[:, None]
    q, _ = cochran_q(y, s2, np.zeros(1))
    assert round(q[0], 4) == 163.1649
    limits = [q_profile(y, s2, stats.chi2.isf(tail, 12))[0] for tail in (0.025, 0.975)]
    assert limits == pytest.approx([0.1302, 1.1812], abs=1.2e-4)  # the precision of its search


def test_groups_that_do_not_differ():
    log = pd.Series(
        [1.0, 2, 1, 2, 1, 2], index=log_of(random_rows((2, 2, 2), 1)).sort_index().index
    )
    ours = only_row(cvstats.heterogeneity(log))
    assert (ours["q"], ours["p_value"], ours["i2"], ours["tau"]) == (0, 1, 0, 0)
    assert (ours["tau_lower"], ours["tau_upper"]) == (0, 0)


def test_a_group_that_does_not_vary_is_named():
    log = log_of(random_rows((3, 3, 3), 1)).sort_index().to_frame("a")
    log["b"] = log["a"].where(log.index.get_level_values("source") != "s2", 1.0)
    with pytest.raises(cvstats.LogError, match=r"all losses of source 's2' are equal for some"):
        cvstats.heterogeneity(log)
