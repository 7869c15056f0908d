"""A comparison that grows: the same as of the whole log, when it stops, and on another day."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses

from cvstats import Moments, Monitor, monitor

NUMBERS = ["difference", "lower", "upper", "se", "statistic", "p_value", "p_adjusted"]


def answers(n, shift=0.0, *, seed=0, start=0, share=0.5):
    """Losses of 0 and 1 of three models, of which b errs more often by ``shift``."""
    rng = np.random.default_rng([seed, start])
    level = rng.random(n)
    wrong = {
        name: rng.random(n) < np.clip(level * share + more, 0, 1)
        for name, more in (("a", 0.0), ("b", shift), ("c", 0.0))
    }
    points = pd.Index([f"q{start + i}" for i in range(n)], name="point")
    return pd.DataFrame(wrong, index=points).astype(float)


def batches(n, size, **options):
    return [answers(size, start=start, **options) for start in range(0, n, size)]


def watched(parts, **options):
    found = monitor(**options)
    for part in parts:
        found.add(part)
    return found


def test_the_batches_say_what_the_whole_log_says():
    parts = batches(400, 80, shift=0.1)
    found = watched(parts, tightest_at=300)
    whole = pd.concat(parts).cvci.compare(anytime=True, tightest_at=300)
    table = found.interval()
    assert list(table) == [*NUMBERS, "decision", "stopped_at", "caution"]
    np.testing.assert_allclose(table[NUMBERS], whole[NUMBERS], rtol=1e-10, atol=1e-14)
    assert table.attrs["n_points"] == found.n_losses == 400
    assert table.attrs["method"] == "monitor"
    assert isinstance(found.moments, Moments)
    backwards = watched(parts[::-1], tightest_at=300)
    np.testing.assert_allclose(backwards.interval()["upper"], table["upper"], rtol=1e-12)


def test_it_stops_once_every_pair_is_decided_and_takes_nothing_back():
    found = monitor(reference="a", margin=0.1, tightest_at=300)
    assert repr(found) == "<Monitor of nothing yet>"
    assert not found.stop
    assert found.n_losses == 0
    sizes = []
    for part in batches(3000, 50, shift=0.2):
        found.add(part)
        sizes.append(found.n_losses)
        if found.stop:
            break
    table = found.interval()
    assert table["decision"].tolist() == ["worse", "alike"]
    assert table["stopped_at"].is_monotonic_increasing
    assert table["stopped_at"].max() == sizes[-1] < 3000
    assert repr(found) == f"<Monitor of {sizes[-1]:,} evaluations: stop, 2 of 2 pairs decided>"
    assert (table["lower"].iloc[1], table["upper"].iloc[1]) > (-0.1, -0.1)
    assert table["upper"].iloc[1] < 0.1
    # what comes later cannot undo it
    found.add(answers(400, -0.4, start=10_000))
    assert found.interval()["decision"].tolist() == ["worse", "alike"]
    better = watched(batches(400, 100, shift=0.3), reference="b")
    assert better.interval()["decision"].tolist() == ["better", "better"]


def test_nothing_is_decided_too_early():
    for n, words in ((29, "too few to decide"), (30, "0 of 3 pairs decided")):
        assert repr(monitor(answers(n))) == f"<Monitor of {n} evaluations: {words}>"
    few = monitor(answers(1, 0.3), reference="a")
    assert few.n_losses == 1
    refuses("holdout needs at least two points", few.interval)
    few.add(answers(20, 0.3, start=1))
    assert (few.interval()["decision"] == "").all()
    # clear, but not losses of 0 and 1: wait for 100
    large = answers(60, 0.3) * 2 + [0.0, 3.0, 0.0]
    early = monitor(large[["a", "b"]])
    table = early.interval()
    assert table["lower"].item() < table["upper"].item() < 0
    assert table["decision"].item() == ""
    assert math.isnan(table["stopped_at"].item())
    assert "early look" in table["caution"].item()
    early.add((answers(60, 0.3, start=60) * 2 + [0.0, 3.0, 0.0])[["a", "b"]])
    assert early.interval()["decision"].item() == "better"
    assert early.interval()["stopped_at"].item() == 120


def test_answers_to_one_question_are_averaged():
    parts = []
    for k in range(3):
        runs = {r: answers(50, 0.2, start=50 * k, seed=r) for r in range(4)}
        parts.append(pd.concat(runs, names=["repetition"]))
    found = watched(parts, tightest_at=200)
    whole = pd.concat(parts).cvci.compare(anytime=True, tightest_at=200)
    table = found.interval()
    np.testing.assert_allclose(table[NUMBERS], whole[NUMBERS], rtol=1e-9, atol=1e-13)
    assert table["caution"].tolist() == whole["caution"].tolist()
    assert table.attrs["n_points"] == 150
    refuses("different levels", found.add, answers(50, start=500))
    uneven = pd.concat({0: answers(50), 1: answers(40)}, names=["repetition"])
    refuses("holdout needs one test set", monitor, uneven)
    refuses("holdout needs one test set", monitor, parts[0].droplevel("point"))


def test_sources_are_counted_where_there_are_any():
    parts = [
        pd.concat({f"s{k}": part, f"t{k}": part.add(0.5)}, names=["source"])
        for k, part in enumerate(batches(300, 10, shift=0.2))
    ]
    found = watched(parts)
    table = found.interval()
    whole = pd.concat(parts).cvci.compare(anytime=True, method="clustered")
    np.testing.assert_allclose(table[NUMBERS], whole[NUMBERS], rtol=1e-9, atol=1e-13)
    assert table.attrs["n_clusters"] == 60
    streamed = monitor(sum(Moments.of_log(part, pairs=True) for part in parts))
    np.testing.assert_allclose(streamed.interval()["upper"], table["upper"], rtol=1e-12)


def test_arrays_and_carried_cells():
    rng = np.random.default_rng(2)
    parts = [
        xr.DataArray(
            rng.normal(size=(2, 60, 3)) + np.array([0, 2.0])[:, None, None],
            dims=("model", "point", "lat"),
            coords={"model": ["a", "b"], "point": np.arange(60 * k, 60 * k + 60)},
        )
        for k in range(3)
    ]
    table = watched(parts).interval()
    assert table["decision"].values.tolist() == [["better"] * 3]
    assert (table["stopped_at"] == 120).all()
    gaps = watched([part.where(part["lat"] != 1) for part in (
        part.assign_coords(lat=[0, 1, 2]) for part in parts
    )])  # fmt: skip
    assert gaps.stop
    assert gaps.interval()["decision"].values.tolist() == [["better", "", "better"]]
    assert np.isnan(gaps.interval()["stopped_at"].values[0, 1])


def test_the_next_day(tmp_path):
    path = tmp_path / "watch.npz"
    first, second = batches(240, 120, shift=0.25)
    found = monitor(first, reference="c", margin=(-0.2, None), tightest_at=150, alpha=0.1)
    found.save(path)
    again = Monitor.load(path)
    pd.testing.assert_frame_equal(again.interval(), found.interval())
    assert "monitor" not in again.moments.attrs
    for one in (found, again):
        one.add(second)
    pd.testing.assert_frame_equal(again.interval(), found.interval())
    assert repr(again) == repr(found)
    assert Moments.load(path).n_losses == 120
    young = monitor(answers(5))
    young.save(path)
    assert repr(Monitor.load(path)) == "<Monitor of 5 evaluations: too few to decide>"
    young.moments.save(path)
    refuses("contains moments, not a monitor", Monitor.load, path)
    refuses("this monitor is empty", monitor().save, path)


def test_a_batch_that_does_not_fit_changes_nothing():
    found = monitor(answers(60, 0.2))
    before = found.interval()
    refuses("appear", found.add, answers(60, 0.2))
    refuses("different models", found.add, answers(60, start=60)[["a", "b"]])
    pd.testing.assert_frame_equal(found.interval(), before)
    refuses("Unknown model 'z'", monitor, answers(60), reference="z")
    refuses("the log has only one", monitor, answers(60)["a"])
    folds = answers(60).set_index(pd.Index(np.arange(60) % 3, name="fold"), append=True)
    refuses("this log has 3 folds", monitor, folds)


@pytest.mark.slow
def test_equal_models_are_seldom_decided():
    """2,000 runs of losses of 0 and 1, a look after every 20 questions up to 600, as cells."""
    rng = np.random.default_rng(5)
    runs, n = 2000, 600
    level = rng.random((n, runs))
    wrong = (rng.random((2, n, runs)) < level).astype(np.float32)
    found = monitor(adjust=None, tightest_at=300)
    for start in range(0, n, 20):
        found.add(
            xr.DataArray(
                wrong[:, start : start + 20], dims=("model", "point", "run"),
                coords={"model": ["a", "b"], "point": np.arange(start, start + 20)},
            )
        )  # fmt: skip
    share = (found.interval()["decision"] != "").mean().item()
    assert 0.005 < share < 0.035
