"""missing="drop": what kind of log it is does not change, and each carried cell has gaps of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats.errors import LogError

R, P = 3, 24


def frame(seed=0, **levels):
    """Losses of two models, with these levels."""
    index = pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))
    values = np.random.default_rng(seed).normal(size=(len(index), 2))
    return pd.DataFrame(values, index=index, columns=["a", "b"])


def again(labels):
    return np.tile(labels, R)


POINTS = np.arange(P)
REPETITION = np.repeat(range(R), P)
SHUFFLED = np.concatenate([np.random.default_rng(r).permutation(P) % 4 for r in range(R)])
REPEATED = {
    "test set": frame(repetition=REPETITION, point=again(POINTS)),
    "k-fold": frame(repetition=REPETITION, fold=SHUFFLED, point=again(POINTS)),
    "source out": frame(repetition=REPETITION, source=again(POINTS % 4), point=again(POINTS)),
}
QUESTIONS = {
    "interval": cvstats.interval,
    "compare": cvstats.compare,
    "equivalence": lambda log, **options: cvstats.equivalence(log, margin=0.5, **options),
    "power": lambda log, **options: cvstats.power(log, effect=0.5, **options),
    "rope": lambda log, **options: cvstats.rope(log, margin=0.5, **options),
    "best_set": lambda log, **options: cvstats.best_set(log, rng=0, **options),
}

NO_FOLDS = ("test set", "rope")
"""It asks for training sizes, whatever is missing."""


def without(log, point):
    """The log without a point, in any repetition."""
    return log[log.index.get_level_values("point") != point]


def numbers(table):
    return table.select_dtypes("number")


ASKED = [(kind, name) for kind in REPEATED for name in QUESTIONS if (kind, name) != NO_FOLDS]


@pytest.mark.parametrize(("kind", "question"), ASKED)
def test_a_point_that_one_repetition_lost_is_left_out_of_all(kind, question):
    log, ask = REPEATED[kind], QUESTIONS[question]
    gap = log.copy()
    gap.iloc[3, 0] = np.nan
    table = ask(gap, missing="drop")
    rest = ask(without(log, 3))
    if question != "rope":  # the models were trained on all points, which rope counts
        pd.testing.assert_frame_equal(numbers(table), numbers(rest), rtol=1e-12)
        assert table.attrs["n_points"] == P - 1
    known = [name for name in ("estimate", "difference", "se", "scale") if name in table]
    assert np.isfinite(table[known]).all(axis=None)
    assert table.attrs["n_dropped"] == R
    for name in ("method", "interval_method"):
        assert table.attrs.get(name) == ask(log).attrs.get(name)


@pytest.mark.parametrize("kind", REPEATED)
def test_a_repetition_of_which_nothing_is_left_takes_no_points_with_it(kind):
    gap = REPEATED[kind].copy()
    gap.iloc[:P] = np.nan
    table = cvstats.interval(gap, missing="drop")
    pd.testing.assert_frame_equal(numbers(table), numbers(cvstats.interval(gap.iloc[P:])))


def test_points_of_different_sources_may_share_names():
    log = frame(repetition=REPETITION, source=again(POINTS % 4), point=again(POINTS // 4))
    gap = log.copy()
    gap.iloc[5, 1] = np.nan  # source 1, point 1
    table = cvstats.interval(gap, missing="drop")
    levels = [log.index.get_level_values(name) for name in ("source", "point")]
    rest = cvstats.interval(log[(levels[0] != 1) | (levels[1] != 1)])
    pd.testing.assert_frame_equal(numbers(table), numbers(rest), rtol=1e-12)


def test_random_splits_lose_single_evaluations():
    draw = np.random.default_rng(1)
    points = np.concatenate([draw.choice(P, 6, replace=False) for _ in range(10)])
    log = frame(repetition=np.repeat(range(10), 6), point=points)
    gap = log.copy()
    gap.iloc[3, 0] = np.nan
    table = cvstats.corrected_t(gap, train_size=18, missing="drop")
    rest = cvstats.corrected_t(log.drop(log.index[3]), train_size=18)
    pd.testing.assert_frame_equal(numbers(table), numbers(rest))
    assert table.attrs["n_dropped"] == 1


def test_two_folds_of_which_one_is_lost_are_not_one_test_set():
    log = frame(fold=POINTS % 2, point=POINTS)
    log.loc[0] = np.nan
    assert cvstats.interval(log, missing="drop").attrs["method"] == "wald"
    assert cvstats.compare(log, missing="drop").attrs["interval_method"] == "wald"


def test_duplicates_that_are_missing_are_no_duplicates():
    log = REPEATED["k-fold"]
    ours = pd.concat([log, log.iloc[:4] * np.nan])
    with pytest.raises(LogError, match="the same evaluation appears twice"):
        cvstats.wald(ours)
    table = cvstats.wald(ours, missing="drop")
    pd.testing.assert_frame_equal(numbers(table), numbers(cvstats.wald(log)))


@pytest.mark.parametrize("name", ["corrected_t", "wald"])
def test_by_reads_several_logs_before_it_drops(name):
    log = pd.concat({g: frame(i, fold=POINTS % 4, point=POINTS) for i, g in enumerate("abc")})
    log.index.names = ["dataset", "fold", "point"]
    log.iloc[[3, 30], 0] = np.nan
    ask = getattr(cvstats, name)
    table = ask(log, by="dataset", missing="drop")
    for label in "abc":
        alone = ask(log.loc[label], missing="drop")
        pd.testing.assert_frame_equal(
            numbers(table.loc[label])[["estimate", "lower", "upper", "se"]],
            numbers(alone)[["estimate", "lower", "upper", "se"]], rtol=1e-12,
        )  # fmt: skip
