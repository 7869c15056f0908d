"""Checks are remembered with the index, and only what may be."""

import gc

import numpy as np
import pandas as pd
import pytest
from calls import refuses
from rows import multi_index
from strategies import stacked

import cvstats
from cvstats import LogError
from cvstats.log import pandas as frames
from cvstats.log.read import read


@pytest.fixture
def log():
    """Two repetitions of three folds of twelve points, in an index of its own."""
    rows = [(r, (i * (r + 1) + i // 3) % 3, i) for r in range(2) for i in range(12)]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "fold", "point"])
    return pd.Series(np.random.default_rng(1).random(24), index=index, name="model")


def again(index):
    """The same labels in an index built anew."""
    return pd.MultiIndex.from_arrays(
        [index.get_level_values(name) for name in index.names], names=index.names
    )


def assert_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_facts_are_shared_by_views_of_an_index(log):
    facts = read(log).design.facts
    assert "splits" in facts
    assert read(log).design.facts is facts
    assert read(log * 2).design.facts is facts
    assert read(log.to_frame()).design.facts is facts
    assert read(log.set_axis(log.index.view())).design.facts is facts
    assert read(stacked(log.to_frame())).design.facts is facts


def test_a_part_of_an_index_is_checked_anew(log):
    whole = read(log).design.facts
    for part in (log.iloc[:12], log.iloc[12:], log.iloc[::2], log.iloc[::-1], log.iloc[:0:-1]):
        assert frames.facts_about(part.index) is not whole
    half = cvstats.wald(log.iloc[12:])
    assert half.attrs["n_points"] == 12
    assert half.attrs["n_repetitions"] == 1
    copied = cvstats.wald(log.iloc[12:].set_axis(again(log.index[12:])))
    assert half["se"].item() == copied["se"].item()
    refuses("random splits", cvstats.wald, log.iloc[3:])


def test_facts_are_forgotten_with_the_index(log):
    index = again(log.index)
    gc.collect()
    known = len(frames._remembered)
    read(log.set_axis(index))
    assert len(frames._remembered) == known + 1
    view = log.set_axis(index.view())
    read(view)
    del index
    gc.collect()
    assert len(frames._remembered) == known + 1, "a view of it lives"
    del view
    gc.collect()
    assert len(frames._remembered) == known


def test_changed_losses_are_seen(log):
    before = cvstats.wald(log)
    log.iloc[5] += 1.0
    expected = before["estimate"].item() + 1 / 24
    assert cvstats.wald(log)["estimate"].item() == pytest.approx(expected)
    log.iloc[5] = np.nan
    refuses("missing .NaN. at repetition=0, fold=0, point=5", cvstats.wald, log)
    log.iloc[5] = np.inf
    refuses("infinite at repetition=0, fold=0, point=5", cvstats.wald, log)
    log.iloc[5] = 0.5
    assert np.isfinite(cvstats.wald(log)["se"].item())
    array = stacked(log.to_frame()).copy()
    cvstats.wald(array)
    array[5, 0] = np.nan
    refuses("missing .NaN.", cvstats.wald, array)


def test_left_out_evaluations_are_not_remembered(log):
    part = log.xs(0, level="repetition")
    whole = cvstats.wald(part)
    gap = part.copy()
    gap.iloc[2] = np.nan
    assert cvstats.wald(gap, missing="drop").attrs["n_points"] == 11
    assert_same([cvstats.wald(part)], [whole])
    assert cvstats.wald(gap, missing="drop").attrs["n_points"] == 11
    with pytest.raises(LogError):
        cvstats.wald(gap)


def test_coordinates_beside_the_index_are_looked_at_each_time(log):
    """Two arrays may share an index and differ in a level that is not part of it."""
    short = log.xs(0, level="repetition").droplevel("fold")
    index = multi_index(repetition=np.zeros(12, int), point=short.index)
    array = stacked(pd.DataFrame({"a": short.to_numpy()}, index=index))
    few = array.assign_coords(fold=("evaluation", np.arange(12) % 2))
    many = array.assign_coords(fold=("evaluation", np.arange(12) % 4))
    for _ in range(2):
        assert few.cvci.wald().attrs["n_folds"] == 2
        assert many.cvci.wald().attrs["n_folds"] == 4
        assert many.cvci.moments(by="fold")["count"].values.tolist() == [3, 3, 3, 3]
    same_point = array.drop_vars(["evaluation", "repetition", "point"]).assign_coords(
        fold=("evaluation", np.arange(12) % 2), point=("evaluation", np.arange(12) // 2)
    )
    refuses("a point appears in two folds", same_point.cvci.wald)


def view_of(own, points):
    """A log whose folds are a view of an array that others may write to."""
    size = len(points)
    index = pd.MultiIndex(
        levels=[range(4), pd.RangeIndex(size)], codes=[own[:size], points],
        names=["fold", "point"], verify_integrity=False,
    )  # fmt: skip
    return pd.Series(np.random.default_rng(0).normal(size=size), index)


@pytest.mark.parametrize(("size", "changed"), [(40, 1), (60_000, 1), (200_000, 4_000)])
def test_codes_that_are_written_to_are_read_again(size, changed):
    own = np.tile(np.arange(size, dtype=np.int8) % 4, 2)
    log = view_of(own, np.arange(size))
    before = log.cvci.wald(variance="within-fold")
    place = size // 2 + 1
    own[place : place + changed] = (own[place : place + changed] + 1) % 4
    after = log.cvci.wald(variance="within-fold")
    fresh = log.set_axis(again(log.index)).cvci.wald(variance="within-fold")
    assert_same([after], [fresh])
    assert after["se"].item() != before["se"].item()


def test_windows_on_one_index_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(frames, "MOST_BYTES", 1 << 16)
    log = view_of(np.arange(6_000, dtype=np.int8) % 4, np.arange(6_000))
    for start in range(0, 4_000, 40):
        log.iloc[start : start + 1_000].cvci.moments(by="point")
        last = next(reversed(frames._remembered.values())).facts
        kept = sum(frames.count_bytes(known.facts) for known in frames._remembered.values())
        assert kept - frames.count_bytes(last) <= frames.MOST_BYTES
        assert len(frames._remembered) <= frames.MOST_REMEMBERED
    assert frames.count_bytes(last) > 4_000


def test_labels_that_become_dates_are_looked_at():
    """``set_levels`` keeps the codes, by which a design is remembered."""
    rng, n = np.random.default_rng(0), 300
    index = multi_index(fold=np.arange(n) % 5, point=range(n))
    log = pd.DataFrame({"a": np.cumsum(rng.normal(size=n)) ** 2}, index)
    assert log.cvci.interval()["caution"].tolist() == [""]
    days = index.set_levels(pd.date_range("2020", periods=n), level="point")
    assert log.set_axis(days).cvci.interval()["caution"].tolist() == ["serial dependence"]
    assert log.cvci.interval()["caution"].tolist() == [""]
