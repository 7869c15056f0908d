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
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.oneway import anova_oneway

import cvstats
from cvstats.core.cautions import Caution
from cvstats.intervals.heterogeneity import cochran_q, hartung_knapp, q_profile


@pytest.mark.parametrize("variance", ["own", "pooled"])
@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
def test_heterogeneity_against_the_oracle(sizes, variance):
    rows = random_rows(sizes, 14)
    ours = cvstats.heterogeneity(log_of(rows), variance=variance, alpha=0.1)
    exact = exactly.heterogeneity(exactly.sources_of(rows), 0.1, variance == "pooled")
    for name, value in exact.items():
        assert only_row(ours)[name] == pytest.approx(value, rel=1e-11, abs=1e-300), name
    assert only_row(ours)["n_groups"] == len(sizes)
    assert ("variance clamped" in only_row(ours)["caution"]) == (exact["q"] < exact["df"])


@pytest.mark.parametrize("variance", ["own", "pooled"])
@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
def test_test_against_statsmodels(sizes, variance):
    rows = random_rows(sizes, 21)
    groups = [[float(loss) for loss in source] for source in exactly.sources_of(rows)]
    peer = anova_oneway(
        groups, use_var="unequal" if variance == "own" else "equal", welch_correction=True
    )
    ours = only_row(cvstats.heterogeneity(log_of(rows), variance=variance))
    wanted = (peer.statistic, *peer.df, peer.pvalue)
    found = [ours[name] for name in ("statistic", "df", "df_within", "p_value")]
    assert found == pytest.approx(wanted, rel=1e-9)


def test_mean_against_statsmodels():
    """The error of Hartung and Knapp about the weights of DerSimonian and Laird."""
    rng = np.random.default_rng(4)
    for spread in (2.0, 5.0):
        y, s2 = rng.normal(2, spread, 9), rng.uniform(0.5, 2, 9)
        peer = combine_effects(y, s2, method_re="chi2")
        mean, squared = hartung_knapp(y[:, None], s2[:, None])
        assert mean[0] == pytest.approx(peer.mean_effect_re, rel=1e-12)
        assert squared[0] == pytest.approx(peer.var_hksj_re, rel=1e-12)


def test_few_points_of_a_group_are_said():
    """With 4 groups Welch's test asks for 120 points of each, and the pooled one for 10."""
    rng = np.random.default_rng(5)
    for smallest, variance, said in (
        (119, "own", True), (120, "own", False), (9, "pooled", True), (10, "pooled", False),
    ):  # fmt: skip
        source = np.repeat(range(4), [smallest, 120, 130, 150])
        index = pd.MultiIndex.from_arrays([source, range(len(source))], names=["source", "point"])
        log = pd.Series(rng.normal(size=len(source)), index=index)
        row = only_row(cvstats.heterogeneity(log, variance=variance))
        assert ("few points" in row["caution"]) == said


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
        assert not (own["caution"] & Caution.FEW_POINTS).any()
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
    ours = cvstats.heterogeneity(log)
    assert (
        only_row(ours)["q"],
        only_row(ours)["p_value"],
        only_row(ours)["i2"],
        only_row(ours)["tau"],
    ) == (0, 1, 0, 0)
    assert (only_row(ours)["tau_lower"], only_row(ours)["tau_upper"]) == (0, 0)


def test_a_group_that_does_not_vary_is_named():
    log = log_of(random_rows((3, 3, 3), 1)).sort_index().to_frame("a")
    log["b"] = log["a"].where(log.index.get_level_values("source") != "s2", 1.0)
    with pytest.raises(cvstats.LogError, match=r"all losses of source 's2' are the same for some"):
        cvstats.heterogeneity(log)
