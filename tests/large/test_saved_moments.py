"""Moments in files: read as they were written; what is no such file, or damaged, is refused."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import golden
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from hypothesis import given
from strategies import frames

import cvstats
from cvstats import LogError, Moments

LOG = golden.log_named("repeated sources")
WRITTEN = ("integers", "floats", "strings", "dates", "periods", "tuples", "categories")


@given(frames(labels=WRITTEN))
def test_save_and_load(tmp_path_factory, kind_frame):
    _, frame = kind_frame
    path = tmp_path_factory.mktemp("kept") / "moments.npz"
    moments = Moments.of_log(frame, pairs=frame.shape[1] > 1)
    moments.save(path)
    again = Moments.load(path)
    assert again.cells.labels == moments.cells.labels
    pd.testing.assert_frame_equal(again.moments(), moments.moments(), check_exact=True)
    pd.testing.assert_frame_equal(again.wald(), moments.wald(), check_exact=True)
    first, second = (Moments.of_log(frame[part::2], pairs=True) for part in (0, 1)) if (
        frame.shape[1] > 1
    ) else (None, None)  # fmt: skip
    if first is not None:
        first.save(path)
        both = (Moments.load(path) + second).compare(adjust=None)
        pd.testing.assert_frame_equal(both, (first + second).compare(adjust=None))
    assert [file.name for file in path.parent.iterdir()] == ["moments.npz"]


def test_a_saved_grid(tmp_path):
    rng = np.random.default_rng(0)
    log = xr.DataArray(
        rng.standard_normal((3, 20, 2)),
        {"fold": ("point", np.arange(20) % 4), "lat": [1.5, 2.5, 4.0], "name": ("lat", list("xyz")),
         "time": ("model", pd.date_range("2020", periods=2)), "model": ["a", "b"],
         "code": ("lat", np.array(["x", 3, None], dtype=object)), "run": 5},
        ("lat", "point", "model"), attrs={"units": "K"},
    )  # fmt: skip
    Moments.of_log(log, pairs=True).save(tmp_path / "grid")
    again = Moments.load(tmp_path / "grid")
    xr.testing.assert_identical(again.wald(), cvstats.Moments.of_log(log).wald())
    xr.testing.assert_allclose(again.compare(), cvstats.compare(log))
    stacked = Moments.of_log(log.drop_vars("name").stack(cell=("lat", "model")))
    with pytest.raises(LogError, match=r"'cell' has several levels.*log.reset_index\('cell'\)"):
        stacked.save(tmp_path / "grid")


def test_labels_are_read_as_they_were(tmp_path):
    days = pd.date_range("2024-03-30", periods=3, tz="Europe/Berlin")
    for labels in (days, days.as_unit("s"), days - days[0], pd.Index([1, "1"], dtype=object)):
        log = pd.Series(1.0, pd.Index(labels.repeat(2), name="fold"))
        Moments.of_log(log).save(tmp_path / "days")
        assert Moments.load(tmp_path / "days").cells.labels == Moments.of_log(log).cells.labels


def test_what_plain_text_cannot_hold_is_left_out(tmp_path):
    attrs = {"numbers": [1, 2.5, None, True], "nested": {"a": [1, {"b": (1, 2)}]},
             "odd": object(), "frame": pd.DataFrame({"a": [1.0]}), "none": None,
             "nan": float("nan")}  # fmt: skip
    log = LOG.copy()
    log.attrs = attrs
    moments = Moments.of_log(log.iloc[:50]) + Moments.of_log(log.iloc[50:])
    assert set(moments.attrs) == set(attrs) - {"odd", "frame"}
    moments.save(tmp_path / "kept")
    again = dict(Moments.load(tmp_path / "kept").attrs)
    assert again.pop("nan") != 0
    assert again == {name: value for name, value in moments.attrs.items() if name != "nan"}


@pytest.mark.parametrize("labels", [[object(), object()], [frozenset("a"), frozenset("b")]])
def test_labels_that_no_file_can_hold(labels, tmp_path):
    log = pd.Series([1.0, 2.0], index=pd.Index(labels, name="fold", tupleize_cols=False))
    with pytest.raises(LogError, match=r"of 'fold' has the type .*cannot be written") as told:
        Moments.of_log(log).save(tmp_path / "odd")
    assert "As text: losses = losses.rename(index=str, level='fold')" in str(told.value)
    assert not (tmp_path / "odd").exists()


def save_array(path):
    with path.open("wb") as file:
        np.save(file, np.arange(3))


def save_head(head, path):
    np.savez(path, head=np.frombuffer(head, np.uint8))


ODD = {
    "a pickle": lambda path: LOG.to_pickle(path),
    "nothing": lambda path: path.write_bytes(b""),
    "other numbers": lambda path: np.savez(path, a=1),
    "an array": save_array,
    **{
        f"a head of {head}": partial(save_head, head)
        for head in (
            b"[1]", b"3", b"null", b"{}", b'{"format": []}', b'{"format": "cvstats moments 2"}',
            b'{"format": "cvstats moments 2", "gaps": null, "cells": {"labels": 3, "levels": 1}}',
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_file_of_moments(name, tmp_path):
    path = tmp_path / "odd.npz"
    ODD[name](path)
    refuses("does not contain moments", Moments.load, path)


@pytest.mark.parametrize("given", [42, None])
def test_no_path(given):
    for call in (Moments.load, Moments.of_log(LOG).save):
        refuses(f"{given} is not a path", call, given)


def test_no_file(tmp_path):
    with pytest.raises(LogError, match=r"No such file: .*nofile.npz.*Moments\.save") as caught:
        Moments.load(tmp_path / "nofile.npz")
    assert isinstance(caught.value, FileNotFoundError)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path, moments = tmp_path / "moments.npz", Moments.of_log(LOG)
    moments.save(path)

    def fill(file, **arrays):
        file.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fill)
    refuses(r"'moments.npz' could not be written: No space left", moments.save, path)
    assert [file.name for file in tmp_path.iterdir()] == ["moments.npz"]
    pd.testing.assert_frame_equal(Moments.load(path).wald(), moments.wald())


def test_threads_may_save_to_one_path(tmp_path):
    moments, path = Moments.of_log(LOG), tmp_path / "same.npz"

    def save(_: int) -> None:
        moments.save(path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(80)))  # an error in one of them shows here
    assert [file.name for file in tmp_path.iterdir()] == ["same.npz"]
    pd.testing.assert_frame_equal(Moments.load(path).wald(), moments.wald())
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode  # as any file of this user


def test_a_file_that_unpacks_to_more_than_it_is_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, head=np.zeros(30_000_000, np.uint8))
    tracemalloc.start()
    refuses("does not contain moments", Moments.load, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_damaged_file_is_refused_in_one_way(tmp_path):
    path, draw = tmp_path / "moments.npz", np.random.default_rng(0)
    moments = Moments.of_log(LOG)
    moments.save(path)
    whole, expected = path.read_bytes(), moments.wald()
    for i in range(60):
        damaged = bytearray(whole)
        if i % 2:
            damaged = damaged[: draw.integers(len(whole))]
        else:
            damaged[draw.integers(len(whole))] ^= 1 << draw.integers(8)
        path.write_bytes(damaged)
        with suppress(LogError):  # and nothing else; some bits of an archive are never read
            pd.testing.assert_frame_equal(Moments.load(path).wald(), expected)


def test_files_whose_cells_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "moments.npz"
    Moments.of_log(LOG).save(path)
    arrays = dict(np.load(path))
    for name, change in (
        ("cells_codes", lambda codes: codes + 1), ("cells_count", lambda count: count[1:]),
        ("cells_prints", lambda prints: prints[1:]), ("cells_origin", lambda origin: origin[:1]),
        ("cells_mean", lambda mean: mean.T),
    ):  # fmt: skip
        np.savez(path, **{**arrays, name: change(arrays[name])})
        refuses("is damaged", Moments.load, path)


def test_attrs_of_moments_cannot_be_changed():
    """They are those of all batches."""
    moments = Moments.of_log(LOG)
    with pytest.raises(TypeError, match="does not support item assignment"):
        moments.attrs["metric"] = "auc"
