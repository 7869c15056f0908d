"""How often the default for a log with groups covers: `clustered` with CR2, and `wild_cluster`.

Points of group g have ``y = b_g + noise``, both with variance from the intraclass correlation. A
column is a run, so that one call gives 2,000 intervals. The targets are known in closed form.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

RUNS = 2_000
SIZES = {
    "40 groups of 3 to 18": tuple(3 + (7 * g) % 16 for g in range(40)),
    "8 unequal groups": (1, 2, 4, 5, 7, 8, 10, 12),
    "9 groups, one of half the points": (64, *(8,) * 8),
    "6 equal groups": (10,) * 6,
}


def index_of(sizes, fold=0):
    """The levels of one test set, or of folds."""
    source = np.repeat(np.arange(len(sizes)), sizes)
    folds = np.broadcast_to(np.asarray(fold), len(sizes))[source]
    return pd.MultiIndex.from_arrays(
        [folds, source, np.arange(len(source))], names=["fold", "source", "point"]
    )


def outcomes(sizes, icc, seed, runs=RUNS):
    """Outcomes of variance one about zero, points by runs."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(len(sizes)), sizes)
    groups = np.sqrt(icc) * rng.standard_normal((len(sizes), runs))
    return groups[source] + np.sqrt(1 - icc) * rng.standard_normal((len(source), runs))


def coverage(table, target):
    return float(((table["lower"] <= target) & (target <= table["upper"])).mean())


def report(capsys, name, **shares):
    with capsys.disabled():
        print(f"\n{name}:", ", ".join(f"{key} {share:.3f}" for key, share in shares.items()))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize("seed", [31])
def test_one_test_set(capsys, sizes, seed):
    """Losses that are normal about 1: the errors of a fixed model with a bias."""
    log = pd.DataFrame(1 + outcomes(sizes, 0.3, seed), index_of(sizes))
    usual = log.cvci.interval()
    assert usual.attrs["method"] == "clustered"
    found = {
        "clustered": coverage(usual, 1),
        "CR1": coverage(log.cvci.clustered(correction="CR1"), 1),
        "holdout": coverage(log.cvci.holdout(), 1),
    }
    if len(sizes) < 12:
        found["wild"] = coverage(log.cvci.wild_cluster(), 1)
        assert found["wild"] >= 0.935
    report(capsys, f"one test set, {len(sizes)} groups", **found)
    assert 0.935 <= found["clustered"] <= 0.965
    assert found["holdout"] <= 0.85


@pytest.mark.slow
def test_one_test_set_of_squared_errors(capsys):
    """Skewed means of groups: many groups make up for it, few do not."""
    shares = {}
    for groups in (10, 100):
        sizes = tuple(4 + g % 9 for g in range(groups))
        log = pd.DataFrame(outcomes(sizes, 0.3, 32) ** 2, index_of(sizes))
        shares[f"{groups} groups"] = coverage(log.cvci.interval(), 1)
        told = log.cvci.interval()["caution"].str.contains("few clusters").all()
        assert told == (groups < 30)
    report(capsys, "squared errors", **shares)
    assert shares["100 groups"] >= 0.93
    assert shares["10 groups"] >= 0.87


@pytest.mark.slow
@pytest.mark.parametrize("groups", [30, 60])
def test_folds_of_whole_groups(capsys, groups):
    """The mean of the other folds predicts; the target is the error of these models."""
    sizes = tuple(4 + (5 * g) % 9 for g in range(groups))
    folds = np.arange(groups) % 5
    y, index = outcomes(sizes, 0.25, 33), index_of(sizes, folds)
    of_fold = index.get_level_values("fold")
    guess = np.stack([y[of_fold != fold].mean(axis=0) for fold in range(5)])
    log = pd.DataFrame((y - guess[of_fold]) ** 2, index)
    share = np.bincount(of_fold) / len(y)
    target = 1 + share @ guess**2
    usual = log.cvci.interval()
    assert usual.attrs["method"] == "clustered"
    found = {"clustered": coverage(usual, target), "wald": coverage(log.cvci.wald(), target)}
    report(capsys, f"folds of {groups} groups", **found)
    assert found["clustered"] >= (0.92 if groups > 30 else 0.90)  # squared errors are skewed
    assert found["wald"] <= 0.88


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [*list(SIZES.values())[:2], (12,) * 10], ids=["40", "8 unequal", "10 equal"]
)
@pytest.mark.parametrize("fold", ["one test set", "grouped folds", "left out"])
def test_two_equal_models(capsys, sizes, fold):
    """Groups move each model in a way of its own; neither is better over all groups."""
    source = np.arange(len(sizes))
    index = index_of(sizes, {"one test set": 0, "grouped folds": source % 4}.get(fold, source))
    shared = outcomes(sizes, 0.3, 34)
    one, two = (
        pd.DataFrame((shared + 0.7 * outcomes(sizes, 0.4, seed)), index) for seed in (35, 36)
    )
    usual = one.cvci.compare(two, adjust=None)
    wanted = "out_of_source" if fold == "left out" else "clustered"
    assert usual.attrs["interval_method"] == wanted
    points = one.cvci.compare(two, adjust=None, method="wald")
    size, ignored = (float((table["p_value"] <= 0.05).mean()) for table in (usual, points))
    report(capsys, f"two equal models, {len(sizes)} groups, {fold}", size=size, points=ignored)
    assert size <= 0.07
    assert ignored >= 0.12
