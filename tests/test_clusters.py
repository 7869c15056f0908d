"""Clusters and differences between groups: exact arithmetic, statsmodels, published numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracle
import oracle_sources as exactly
import pandas as pd
import pytest
import statsmodels.api as sm
from cvstats.intervals.sources import TOO_NARROW, narrowing
from grouped_logs import LIMITS, LOGS, log_of, random_rows
from rows import only_row
from scipy import stats
from strategies import ARRAYS

import cvstats
from cvstats.intervals.heterogeneity import q_profile, scatter

TOLERANCE = 1e-10


# --- clustered ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
@pytest.mark.parametrize("correction", ["CR1", "CR3"])
@pytest.mark.parametrize("repetitions", [1, 2])
def test_clustered_against_the_oracle(sizes, correction, repetitions):
    rows = random_rows(sizes, 9, repetitions)
    ours = cvstats.clustered(log_of(rows), correction=correction)
    exact = exactly.clustered(rows, correction)
    for name in LIMITS:
        assert only_row(ours)[name] == pytest.approx(float(getattr(exact, name)), rel=1e-12), name
    assert (only_row(ours)["df"], only_row(ours)["n_clusters"]) == (len(sizes) - 1, len(sizes))
    assert only_row(ours)["n_points"] == sum(sizes)
    assert (only_row(ours)["smallest"], only_row(ours)["largest"]) == (min(sizes), max(sizes))
    assert "few clusters" in only_row(ours)["caution"]


def test_clustered_is_statsmodels(capsys):
    worst = 0.0
    for seed, sizes in enumerate([*LOGS.values(), tuple(range(1, 60))]):
        rows = random_rows(sizes, seed + 30)
        losses = np.array([float(row.loss) for row in rows])
        group = np.array([row.fold for row in rows])
        fitted = sm.OLS(losses, np.ones_like(losses)).fit(
            cov_type="cluster",
            cov_kwds={"groups": group, "use_correction": True, "df_correction": True},
            use_t=True,
        )
        ours = cvstats.clustered(log_of(rows), alpha=0.1)
        # statsmodels multiplies by (N - 1) / (N - p) too, which is 1 for a constant
        theirs = [fitted.params[0], fitted.bse[0], *fitted.conf_int(0.1)[0]]
        found = [abs(only_row(ours)[n] / t - 1) for n, t in zip(LIMITS, theirs, strict=True)]
        worst = max(worst, *found)
    with capsys.disabled():
        print(f"\nclustered against statsmodels, worst relative deviation: {worst:.1e}")
    assert worst <= TOLERANCE


def test_repeating_does_not_make_clusters_or_points():
    """All losses by cluster give the numbers of point means by cluster: what is merged is that."""
    rows = random_rows((4, 6, 3), 10)
    again = [row._replace(repetition=r) for r in range(5) for row in rows]
    once, many = cvstats.clustered(log_of(rows)), cvstats.clustered(log_of(again))
    for name in (*LIMITS, "df", "n_points", "n_clusters", "smallest", "largest"):
        assert only_row(many)[name] == pytest.approx(only_row(once)[name], rel=1e-13), name


def test_random_splits_may_be_clustered():
    rows = random_rows((5, 4, 6), 11, repetitions=3)
    kept = [row for row in rows if (row.repetition + row.point + row.fold) % 3]
    ours = cvstats.clustered(log_of(kept))
    losses = [float(row.loss) for row in kept]
    fitted = sm.OLS(losses, np.ones(len(losses))).fit(
        cov_type="cluster", cov_kwds={"groups": [row.fold for row in kept]}, use_t=True
    )
    assert only_row(ours)["se"] == pytest.approx(fitted.bse[0], rel=1e-10)
    assert only_row(ours)["n_points"] == len({(row.source, row.point) for row in kept})


def test_unequal_clusters_are_told():
    equal, uneven = (5,) * 40, (200, *(5,) * 39)
    assert narrowing(np.full(40, 1 / 40)) == pytest.approx(1)
    assert narrowing(np.array(uneven) / sum(uneven)) < TOO_NARROW
    assert only_row(cvstats.clustered(log_of(random_rows(equal, 12))))["caution"] == ""
    log = log_of(random_rows(uneven, 12))
    assert "unequal clusters" in only_row(cvstats.clustered(log))["caution"]
    assert only_row(cvstats.clustered(log, correction="CR3"))["caution"] == ""
    assert (
        only_row(cvstats.clustered(log, correction="CR3"))["se"]
        > only_row(cvstats.clustered(log))["se"]
    )


def test_narrowing_is_the_expectation_of_cr1():
    """Cluster means with variance one and no noise inside: E CR1 against Var(mu) = S2."""
    sizes = (1, 2, 5)
    truth = exactly.Truth(sizes, [0] * 3, [1] * 3, [1] * 3, [[0] * 3] * 3)

    def cr1(sources):
        rows = [oracle.Row(e, 0, k, k, i) for k, s in enumerate(sources) for i, e in enumerate(s)]
        return exactly.clustered(rows).variance

    v = [Fraction(size, 8) for size in sizes]
    ratio = exactly.expected(cr1, truth) / sum(w * w for w in v)
    assert narrowing(np.array(v, dtype=float)) == pytest.approx(float(ratio), rel=1e-14)


def test_clusters_across_folds_are_told():
    rows = random_rows((6, 6, 6), 13)
    levels = ("fold", "source", "point")
    grouped = log_of(rows, levels=levels)
    assert "not a new one" not in only_row(cvstats.clustered(grouped))["caution"]
    split = log_of([row._replace(fold=row.point % 3) for row in rows], levels=levels)
    assert "sources across folds" in only_row(cvstats.clustered(split))["caution"]
    by_fold = cvstats.clustered(split, by="fold")
    assert "not a new one" not in only_row(by_fold)["caution"]
    theta_3 = only_row(cvstats.decompose(split))["theta_3"]
    assert only_row(by_fold)["se"] ** 2 == pytest.approx(theta_3, rel=1e-13)


# --- heterogeneity ------------------------------------------------------------------------------


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
    q, _ = scatter(y, s2, np.zeros(1))
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


# --- containers and comparisons -----------------------------------------------------------------

ALL = {
    "out_of_source": cvstats.out_of_source,
    "these_sources": lambda log: cvstats.out_of_source(log, target="these_sources"),
    "clustered": cvstats.clustered,
    "CR3": lambda log: cvstats.clustered(log, correction="CR3"),
    "heterogeneity": cvstats.heterogeneity,
    "source_estimators": cvstats.source_estimators,
}


def two_models(sizes=(4, 3, 6)):
    """Two models on the same points, whose names are unique in the log."""
    rows = [row._replace(point=f"{row.source}{row.point}") for row in random_rows(sizes, 15)]
    log = log_of(rows, levels=("source", "point"))
    return pd.DataFrame({"a": log, "b": np.sqrt(abs(log)) + np.arange(len(log)) % 3})


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ARRAYS)
def test_all_containers_agree(name, kind):
    frame = two_models()
    table = ALL[name](frame)
    found = ALL[name](ARRAYS[kind](frame))
    for model in "ab":
        single = ALL[name](frame[model])
        for column in table.columns.drop("caution"):
            assert only_row(single)[column] == table.loc[model, column]
            theirs = float(found[column].sel(model=model))
            assert theirs == pytest.approx(table.loc[model, column], rel=1e-12), column


@pytest.mark.parametrize("method", ["out_of_source", "clustered"])
def test_differences_can_be_compared(method):
    frame = two_models()
    table = frame.cvci.compare(method=method).iloc[0]
    single = getattr(cvstats, method)(frame["a"] - frame["b"])
    assert only_row(table)["difference"] == pytest.approx(only_row(single)["estimate"], rel=1e-13)
    assert only_row(table)["lower"] == pytest.approx(only_row(single)["lower"], rel=1e-13)
    assert only_row(table)["df"] == only_row(single)["df"]


def test_an_offset_changes_nothing_but_the_estimate():
    log = log_of(random_rows((4, 3, 6), 17))
    for name, function in ALL.items():
        near, far = function(log), function(log + 2.0**30)
        for column in only_row(near).index.drop(
            ["caution", *(n for n in only_row(near).index if n in LIMITS)]
        ):
            tolerance = 1e-5 if column == "p_value" else 1e-6
            assert only_row(far)[column] == pytest.approx(only_row(near)[column], rel=tolerance), (
                name,
                column,
            )
        if "se" in only_row(near):
            assert only_row(far)["se"] == pytest.approx(only_row(near)["se"], rel=1e-6)


def test_a_masked_cell_stays_empty():
    array = ARRAYS["dense"](two_models()).expand_dims(lat=[1, 2])
    array = array.where((array["model"] != "b") | (array["lat"] != 2))
    for name, function in ALL.items():
        found = function(array)
        first = next(iter(found.data_vars))
        assert np.isnan(found[first].sel(model="b", lat=2)), name
        assert int(found["caution"].sel(model="b", lat=2)) == 1, name
        assert not np.isnan(found[first].sel(model="b", lat=1)), name


def test_logs_below_each_other_have_intervals_of_their_own():
    """A level may tell logs of the same sources and points apart, as in every other method."""
    logs = {"u": log_of(random_rows((4, 3, 6), 3)), "v": log_of(random_rows((4, 3, 6), 4))}
    table = cvstats.clustered(pd.concat(logs, names=["region"]), per="region")
    for label, log in logs.items():
        single = cvstats.clustered(log)
        for name in LIMITS:
            assert table.loc[label, name] == pytest.approx(only_row(single)[name], rel=1e-13)
    twice = pd.concat([logs["u"], logs["u"]])
    with pytest.raises(cvstats.LogError, match="appears twice"):
        cvstats.clustered(pd.concat({"u": twice}, names=["region"]), per="region")
