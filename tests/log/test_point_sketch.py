"""Evaluations in two batches: all are found in short logs, whole copies in long ones."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from hypothesis import given
from hypothesis import strategies as st

import cvstats
from cvstats.errors import LogError
from cvstats.large import moments as hashing

of_log = cvstats.Moments.of_log
WORDS = "in more than one batch"


def logged(n=60, repetitions=2, seed=0):
    draw = np.random.default_rng(seed)
    levels = [np.repeat(np.arange(repetitions), n), np.tile(np.arange(n) % 5, repetitions)]
    index = pd.MultiIndex.from_arrays(
        [*levels, np.tile([f"id{i}" for i in range(n)], repetitions)],
        names=["repetition", "fold", "point"],
    )
    return pd.Series(draw.normal(size=len(index)), index)


def test_a_batch_added_twice_is_refused(tmp_path):
    log = logged()
    first, second = of_log(log[:70]), of_log(log[70:])
    both = first + second
    np.testing.assert_allclose(both.wald()["se"], log.cvci.wald()["se"], rtol=1e-12)
    assert both.wald().attrs["checked"].endswith("across them: no evaluation appears twice")
    both.save(tmp_path / "both")
    for whole in (both, cvstats.Moments.load(tmp_path / "both")):
        with pytest.raises(
            LogError, match=rf"^70 evaluations appear {WORDS}\. .* Was a batch added twice"
        ):
            whole + first
        with pytest.raises(LogError, match=f"^1 evaluation appears {WORDS}"):
            whole + of_log(log[5:6])


def test_a_point_in_two_folds_is_there_twice():
    log = logged(repetitions=1)
    moved = log.iloc[:3].rename(index={0: 1, 1: 2, 2: 0}, level="fold")
    with pytest.raises(LogError, match=f"^3 evaluations appear {WORDS}"):
        of_log(log) + of_log(moved)
    other = log.rename(index={0: 7}, level="repetition")
    assert (of_log(log) + of_log(other)).wald().attrs["n_repetitions"] == 2


def test_places_along_a_bare_dimension_are_no_names():
    day = xr.DataArray(np.arange(12.0), {"fold": ("point", np.arange(12) % 3)}, "point")
    moments = of_log(day) + of_log(day + 1)
    assert "an evaluation in more than one batch" in moments.wald().attrs["checked"]
    named = day.assign_coords(point=np.arange(12))
    with pytest.raises(LogError, match=WORDS):
        of_log(named) + of_log(named)


def test_parts_of_a_file_and_of_a_frame(tmp_path):
    table = logged().rename("loss").reset_index()
    for name, rows in {"once": [table], "twice": [table, table]}.items():
        pd.concat(rows).to_parquet(tmp_path / f"{name}.parquet", index=False, row_group_size=120)
    scan = cvstats.scan_parquet(tmp_path / "once.parquet", batch_size=50)
    assert scan.wald().attrs["n_points"] == 60
    refuses(WORDS, cvstats.scan_parquet, tmp_path / "twice.parquet", batch_size=50)
    frames = pytest.importorskip("dask.dataframe", reason="the extra dask is not installed")
    once = frames.from_pandas(table, npartitions=2)
    assert cvstats.wald(once).compute().attrs["n_points"] == 60
    refuses(WORDS, cvstats.wald(frames.concat([once, once])).compute)


@given(
    st.lists(st.integers(0, 400), unique=True, min_size=1),
    st.lists(st.integers(1, 399), max_size=5),
    st.randoms(use_true_random=False),
)
def test_samples_of_batches_add_up_to_that_of_the_log(points, cuts, random):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "MOST_HASHES", 16)
        order = np.array(points)
        log = pd.Series(np.arange(len(order)) * 1.0, pd.Index(order, name="point"))
        parts = [part for part in np.split(log.to_numpy(), sorted(cuts)) if len(part)]
        starts = np.cumsum([0, *map(len, parts)])
        batches = [log.iloc[a:b] for a, b in zip(starts, starts[1:], strict=False)]
        random.shuffle(batches)
        whole, added = of_log(log).sketch, sum(map(of_log, batches)).sketch
    assert added.hashes.tolist() == whole.hashes.tolist()
    assert added.limit == whole.limit
    assert len(whole.hashes) == min(16, len(points))
    assert whole.complete == (len(points) <= 16)


def test_long_logs_are_sampled(monkeypatch):
    monkeypatch.setattr(hashing, "MOST_HASHES", 100)
    log = pd.Series(np.zeros(5000) + np.arange(5000) % 7, pd.RangeIndex(5000, name="point"))
    both = of_log(log[:4000]) + of_log(log[4000:])
    words = "across them a sample of 100 evaluations: a batch that was added twice is detected"
    assert words in both.holdout().attrs["checked"]
    with pytest.raises(LogError, match=rf"^\d+ of the \d+ evaluations examined appear {WORDS}"):
        both + of_log(log[4000:])
    share = len(both.sketch.hashes) * 2.0**64 / both.sketch.limit
    assert share == pytest.approx(5000, rel=0.4)  # hashes lie evenly: four standard errors
