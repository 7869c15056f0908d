"""Cluster-robust intervals: exact arithmetic and statsmodels."""

from fractions import Fraction

import numpy as np
import oracle
import oracle_sources as exactly
import pandas as pd
import pytest
import xarray as xr
from grouped_logs import LIMITS, LOGS, log_of, random_rows, series_of, stored_case
from rows import multi_index, only_row
from scipy import stats
from strategies import by_row

import cvstats
from cvstats.core.cells import Cells
from cvstats.intervals.clustered import TOO_NARROW, expected_cr1_ratio

TOLERANCE = 1e-10
SMALL = stored_case("cluster_few")


def test_clustered_is_clubsandwich():
    log, wanted = series_of(SMALL), SMALL["outputs"]
    g = log.index.get_level_values("source").nunique()
    row = only_row(cvstats.clustered(log))
    assert row["df"] == pytest.approx(wanted["CR2"]["df"], rel=TOLERANCE)
    for ours, theirs in {"se": "se", "lower": "lo", "upper": "hi"}.items():
        assert row[ours] == pytest.approx(wanted["CR2"][theirs], rel=TOLERANCE), ours
    p = 2 * stats.t.sf(row["estimate"] / row["se"], row["df"])
    assert p == pytest.approx(wanted["CR2"]["p"], rel=TOLERANCE)
    for correction, factor in {"CR1": 1, "CR3": (g - 1) / g}.items():
        row = only_row(cvstats.clustered(log, correction=correction))
        assert row["se"] ** 2 == pytest.approx(factor * wanted[correction]["V"], rel=TOLERANCE)
        assert row["df"] == g - 1


def test_a_cluster_with_most_of_the_log_leaves_few_degrees_of_freedom():
    log = log_of(random_rows((60, 2, 2, 2, 2), 14))
    row = only_row(cvstats.clustered(log))
    assert 1 < row["df"] < 2
    assert row["caution"] == "few clusters, very few clusters"
    assert only_row(cvstats.clustered(log, correction="CR3"))["caution"] == "few clusters"
    even = only_row(cvstats.clustered(log_of(random_rows((4, 4, 4), 14))))
    assert even["df"] == pytest.approx(2, rel=1e-14)
    assert even["caution"] == "few clusters"


@pytest.mark.parametrize("sizes", LOGS.values(), ids=list(LOGS))
@pytest.mark.parametrize("correction", ["CR1", "CR3"])
@pytest.mark.parametrize("repetitions", [1, 2])
def test_clustered_against_the_oracle(sizes, correction, repetitions):
    rows = random_rows(sizes, 9, repetitions)
    ours = only_row(cvstats.clustered(log_of(rows), correction=correction))
    exact = exactly.clustered(rows, correction)
    for name in LIMITS:
        assert ours[name] == pytest.approx(float(getattr(exact, name)), rel=1e-12), name
    assert (ours["df"], ours["n_clusters"]) == (len(sizes) - 1, len(sizes))
    assert ours["n_points"] == sum(sizes)
    assert (ours["smallest"], ours["largest"]) == (min(sizes), max(sizes))
    assert "few clusters" in ours["caution"]


def cr1_ratio(shares):
    size, zeros = len(shares), np.zeros((len(shares), 1))
    codes = np.arange(size)[:, None]
    clusters = Cells(("source",), (range(size),), codes, np.ones(size), zeros, zeros, zeros[0])
    return expected_cr1_ratio(shares[:, None], clusters).item()


def test_unequal_clusters_are_told():
    equal, uneven = (5,) * 40, (200, *(5,) * 39)
    assert cr1_ratio(np.full(40, 1 / 40)) == pytest.approx(1)
    assert cr1_ratio(np.array(uneven) / sum(uneven)) < TOO_NARROW
    same = only_row(cvstats.clustered(log_of(random_rows(equal, 12)), correction="CR1"))
    assert same["caution"] == ""
    log = log_of(random_rows(uneven, 12))
    usual = only_row(cvstats.clustered(log, correction="CR1"))
    assert usual["caution"] == "few clusters, unequal clusters"
    for correction in ("CR2", "CR3"):
        row = only_row(cvstats.clustered(log, correction=correction))
        assert row["caution"] == "few clusters"
        assert row["se"] > usual["se"]


def labels_of_clusters(sizes, means, rng):
    source = np.repeat(np.arange(len(sizes)), sizes)
    index = multi_index(source=source, point=range(len(source)))
    losses = pd.Series(np.asarray(means)[source] + rng.normal(size=len(source)), index)
    return losses, only_row(losses.cvci.clustered())


def test_sizes_that_go_with_the_error_are_labelled():
    """Forty such clusters cover .86, a hundred .87 (2,000 simulations each)."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        z = rng.normal(size=40)
        losses, row = labels_of_clusters(1 + np.floor(np.exp(2.5 + z)).astype(int), 0.5 * z, rng)
        label = "few clusters" if row["df"] < 29 else "skewed"
        assert label in row["caution"]
        assert label in cvstats.Moments.of_log(losses.to_frame("m")).clustered()["caution"].iloc[0]


def test_skewed_groups_are_labelled_and_equal_normal_ones_are_not():
    rng = np.random.default_rng(4)
    source = np.repeat(np.arange(40), 20)
    coords = {"point": range(800), "source": ("point", source)}
    for make, expected in ((rng.lognormal, "skewed"), (rng.normal, "")):
        losses = make(size=(40, 20))[source] + rng.normal(size=(800, 20))
        log = xr.DataArray(losses, coords, ("point", "run"))
        for found in (
            log.cvci.clustered(), log.cvci.out_of_source(),
            log.cvci.wild_cluster(n_draws=99, rng=0),
        ):  # fmt: skip
            assert (cvstats.cautions(found) == expected).sum() >= 15, (expected, found.attrs)


def test_expected_cr1_ratio_by_exact_arithmetic():
    """Cluster means with variance one and no noise inside: E CR1 against Var(mu) = S2."""
    sizes = (1, 2, 5)
    truth = exactly.Truth(sizes, [0] * 3, [1] * 3, [1] * 3, [[0] * 3] * 3)

    def cr1(sources):
        rows = [oracle.Row(e, 0, k, k, i) for k, s in enumerate(sources) for i, e in enumerate(s)]
        return exactly.clustered(rows).variance

    v = [Fraction(size, 8) for size in sizes]
    ratio = exactly.expected(cr1, truth) / sum(w * w for w in v)
    assert cr1_ratio(np.array(v, dtype=float)) == pytest.approx(float(ratio), rel=1e-14)


def test_clusters_across_folds_are_told():
    rows = random_rows((6, 6, 6), 13)
    levels = ("fold", "source", "point")
    grouped = log_of(rows, levels=levels)
    assert "sources across folds" not in only_row(cvstats.clustered(grouped))["caution"]
    split = log_of([row._replace(fold=row.point % 3) for row in rows], levels=levels)
    assert "sources across folds" in only_row(cvstats.clustered(split))["caution"]
    assert cvstats.clustered(split).attrs["guarantee"].startswith("heuristic")
    assert "asymptotically exact" in cvstats.clustered(grouped).attrs["guarantee"]
    by_fold = only_row(cvstats.clustered(split, by="fold"))
    assert "sources across folds" not in by_fold["caution"]
    theta_3 = only_row(cvstats.decompose(split))["theta_3"]
    assert by_fold["se"] ** 2 == pytest.approx(theta_3, rel=1e-13)


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_seeds_that_differ_more_than_clusters_are_flagged(spread):
    """Two equal models of five seeds each differed in half of such logs, without a caution."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(5, 25, 40)
    source = np.repeat(np.arange(40), sizes)
    shared = np.tile(rng.normal(0, 0.5, 40)[source] + rng.normal(size=len(source)), 5)
    odds = shared[:, None] + np.repeat(rng.normal(0, spread, (5, 2)), len(source), axis=0)
    levels = {"repetition": np.repeat(range(5), len(source)), "source": np.tile(source, 5),
              "point": np.tile(np.arange(len(source)), 5)}  # fmt: skip
    wrong = (rng.random(odds.shape) < 1 / (1 + np.exp(-odds))) * 1.0
    log = pd.DataFrame(wrong, multi_index(**levels), ["a", "b"])
    same_fold = pd.concat({0: log}, names=["fold"])
    log.attrs["models_are"] = "fixed"
    assert ("CVS017" in log.cvci.diagnose()["code"].tolist()) == (spread > 0)
    for table in (log, by_row(log), same_fold):
        for result in (cvstats.clustered(table), cvstats.compare(table)):
            assert ("unstable" in result.attrs["cautions"]) == (spread > 0)
    call = "options={'by': ('source', 'repetition')}"
    assert (call in str(log.cvci.compare().attrs["cautions"])) == (spread > 0)
