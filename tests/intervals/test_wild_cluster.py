"""The wild cluster bootstrap: stored numbers, a slow enumeration in fractions, and the edges."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from grouped_logs import log_of, random_rows
from rows import only_row
from strategies import by_row

import cvstats
from cvstats.intervals.wild_cluster import draw_signs


def statistic(scores, shares):
    """The square of t, without its factors; infinite where the clusters do not vary."""
    total = sum(scores)
    left = sum((u - v * total) ** 2 for u, v in zip(scores, shares, strict=True))
    if left:
        return total**2 / left
    return math.inf if total else None


def p_value(rows, mean):
    """The share of all draws whose statistic is as large, in fractions: ties are ties."""
    clusters = {}
    for row in rows:
        clusters.setdefault(row.source, []).append(row.loss - mean)
    shares = [Fraction(len(part), len(rows)) for part in clusters.values()]
    scores = [sum(part) for part in clusters.values()]
    own = statistic(scores, shares)
    drawn = [
        statistic([w * u for w, u in zip(signs, scores, strict=True)], shares)
        for signs in product((1, -1), repeat=len(scores))
    ]
    return sum(own is None or t >= own for t in drawn) / len(drawn)


@pytest.mark.parametrize("sizes", [(4, 4, 4), (5, 2, 7, 3), (3, 3, 3, 3, 3, 3), (9, 1, 2, 4, 2, 3)])
@pytest.mark.parametrize("seed", [1, 2])
def test_p_values_in_fractions(sizes, seed):
    rows = random_rows(sizes, seed)
    for mean in (Fraction(1, 2), Fraction(3, 2), sum(row.loss for row in rows) / len(rows)):
        moved = [row._replace(loss=row.loss - mean) for row in rows]
        ours = only_row(cvstats.wild_cluster(log_of(moved)))["p_value"]
        assert ours == p_value(rows, mean)


@pytest.mark.parametrize("sizes", [(9, 1, 2, 4, 2, 3, 3), (5,) * 14])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_limits_are_where_the_test_rejects(sizes, alpha):
    log = log_of(random_rows(sizes, 5))
    row = only_row(cvstats.wild_cluster(log, alpha=alpha, n_draws=999))
    width = row["upper"] - row["lower"]
    assert row["lower"] < row["estimate"] < row["upper"]
    for side, way in (("lower", -1), ("upper", 1)):
        for step, rejected in ((1e-9, True), (-1e-9, False)):
            moved = log - (row[side] + way * step * width)
            p = only_row(cvstats.wild_cluster(moved, n_draws=999))["p_value"]
            assert (p <= alpha) == rejected, (side, step)


def test_draws_are_the_same_for_the_same_log():
    log = log_of(random_rows((5,) * 14, 6))
    once = cvstats.wild_cluster(log, n_draws=499)
    pd.testing.assert_frame_equal(cvstats.wild_cluster(log, n_draws=499), once)
    assert (once.attrs["n_draws"], once.attrs["seed"]) == (499, 0)
    assert only_row(cvstats.wild_cluster(0 * log + 1, n_draws=499))["p_value"] == 1 / 500
    array = by_row(log.sample(frac=1, random_state=0).to_frame("a"))
    for side in ("lower", "upper"):
        ours = cvstats.wild_cluster(array, n_draws=499)[side].item()
        assert ours == pytest.approx(only_row(once)[side], rel=1e-10)
    other = cvstats.wild_cluster(log, n_draws=499, rng=np.random.default_rng(3))
    assert other.attrs["seed"] != 0
    many = only_row(cvstats.wild_cluster(log, n_draws=100_000))  # more than one block of draws
    for row in (only_row(once), only_row(other)):
        for side in ("lower", "upper"):
            assert row[side] == pytest.approx(many[side], abs=0.1 * (many["upper"] - many["lower"]))


def test_all_signs_of_at_most_twelve_clusters_are_used():
    for g, drawn in ((12, 1 << 12), (13, 9_999)):
        assert cvstats.wild_cluster(log_of(random_rows((3,) * g, 6))).attrs["n_draws"] == drawn


def test_with_fewer_than_six_clusters_nothing_is_rejected():
    five = only_row(cvstats.wild_cluster(log_of(random_rows((4,) * 5, 8))))
    assert (five["lower"], five["upper"]) == (-np.inf, np.inf)
    assert five["caution"] == "very few clusters"
    assert five["p_value"] >= 2 / 2**5
    some = only_row(cvstats.wild_cluster(log_of(random_rows((4,) * 5, 8)), alpha=0.1))
    assert np.isfinite([some["lower"], some["upper"]]).all()
    six = only_row(cvstats.wild_cluster(log_of(random_rows((4,) * 6, 8))))
    assert np.isfinite([six["lower"], six["upper"]]).all()
    assert six["caution"] == "few clusters"


def test_clusters_across_folds_and_parts():
    rows = random_rows((6, 6, 6), 13)
    split = [row._replace(fold=row.point % 3) for row in rows]
    log = log_of(split, levels=("fold", "source", "point"))
    assert "sources across folds" in only_row(cvstats.wild_cluster(log))["caution"]
    alike = cvstats.wild_cluster(log).attrs, cvstats.clustered(log).attrs
    for name in ("target", "guarantee"):  # both methods are for the same question
        assert alike[0][name] == alike[1][name]
    assert alike[0]["guarantee"].startswith("heuristic")
    refuses("leaves one cluster in each part", cvstats.wild_cluster, log, per="source")
    parts = cvstats.wild_cluster(log, per="fold")
    alone = cvstats.wild_cluster(log.xs(1, level="fold"))
    assert parts["p_value"].iloc[1] == alone["p_value"].item()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_draws": 10}, "n_draws=10 is out of range"),
        ({"rng": -1}, "rng=-1 is not a seed"),
        ({"by": "site"}, "the log has no level 'site'"),
    ],
)
def test_wrong_options(options, words):
    refuses(words, cvstats.wild_cluster, log_of(random_rows((4, 4, 4), 1)), **options)


@pytest.mark.parametrize(("g", "n_draws"), [(1 << 20, 5), (3, 1 << 20)])
def test_as_many_signs_are_drawn_as_were_asked_for(g, n_draws):
    drawn = [signs.shape for signs in draw_signs(g, n_draws, seed=1)]
    assert len(drawn) > 1
    assert sum(rows for rows, _ in drawn) == n_draws
    assert {columns for _, columns in drawn} == {g}
