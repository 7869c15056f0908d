"""What attrs tell besides losses is kept with moments: training sizes, units and the like."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from rows import with_counts

import cvstats
from cvstats import LogError, Moments


def splits(n_train=40, **attrs):
    """Random splits, as `cvstats.evaluate` leaves them."""
    rng = np.random.default_rng(2)
    rows = [(r, int(p)) for r in range(8) for p in rng.permutation(60)[:20]]
    index = pd.MultiIndex.from_tuples(rows, names=["repetition", "point"])
    log = pd.DataFrame(rng.standard_normal((160, 2)), index=index, columns=["a", "b"])
    log.attrs = {"loss": "squared_error", "n_train": n_train, **attrs}
    return log


SIZES = {
    "one number": 40,
    "numpy": np.int64(40),
    "one for each": [40, 39, 38, 40, 40, 40, 40, 37],
    "an array": np.array([40.0, 39, 38, 40, 40, 40, 40, 37]),
    "by label": {label: 40 - label for label in range(8)},
    "a series": pd.Series({label: 40 - label for label in range(8)}),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("saved", [False, True])
def test_training_sizes_need_not_be_said_again(tmp_path, name, saved):
    log = splits(SIZES[name])
    moments = sum(Moments.of_log(part, pairs=True) for part in (log.iloc[:70], log.iloc[70:]))
    if saved:
        moments.save(tmp_path / "kept")
        moments = Moments.load(tmp_path / "kept")
    for ours, theirs in (
        (moments.corrected_t(), log.cvci.corrected_t()),
        (moments.compare(method="corrected_t"), log.cvci.compare(method="corrected_t")),
    ):
        expected = with_counts(theirs)
        found = with_counts(ours)
        assert set(found) - set(expected) == {"n_batches"}
        pd.testing.assert_frame_equal(found[list(expected)], expected, rtol=1e-11)
        assert "mixed" not in ours.attrs
    assert moments.attrs["loss"] == "squared_error"


@pytest.mark.parametrize("other", [{"n_train": 50}, {}, {"n_train": 40.0}])
def test_batches_that_differ_are_told(tmp_path, other):
    log = splits()
    one, two, last = log.iloc[1:70].copy(), log.iloc[70:].copy(), log.iloc[:1].copy()
    two.attrs = {"loss": "squared_error", **other}
    moments = Moments.of_log(one) + Moments.of_log(two)
    assert moments.attrs == {"loss": "squared_error"}
    moments.save(tmp_path / "kept")
    more = moments + Moments.of_log(last)
    for kept in (moments, Moments.load(tmp_path / "kept"), more):
        with pytest.raises(LogError, match="Pass one number for all splits"):
            kept.corrected_t()
        told = kept.corrected_t(train_size=40).attrs["mixed"]
        assert told == "'n_train': the batches differ there, so it is not used"


def test_what_plain_text_cannot_hold_is_left_out(tmp_path):
    log = splits(numbers=[1, 2.5, None, True], nested={"a": [1, {"b": (1, 2)}]}, odd=object(),
                 frame=log_frame(), none=None, nan=float("nan"))  # fmt: skip
    moments = Moments.of_log(log.iloc[:50]) + Moments.of_log(log.iloc[50:])
    assert set(moments.attrs) == {"loss", "n_train", "numbers", "nested", "none", "nan"}
    moments.save(tmp_path / "kept")
    again = Moments.load(tmp_path / "kept").attrs
    assert again.pop("nan") != 0
    assert again == {name: value for name, value in moments.attrs.items() if name != "nan"}


def log_frame():
    return pd.DataFrame({"a": [1.0]})


def grid(units):
    return xr.DataArray(
        np.arange(12.0).reshape(2, 6), {"fold": ("point", np.arange(6) % 2)}, ("lat", "point"),
        attrs={} if units is None else {"units": units},
    )  # fmt: skip


def test_units_are_kept_and_never_mixed(tmp_path):
    moments = Moments.of_log(grid("K")) + Moments.of_log(grid("K"))
    moments.save(tmp_path / "kept")
    assert Moments.load(tmp_path / "kept").naive()["estimate"].attrs["units"] == "K"
    for other in ("degC", None):
        with pytest.raises(LogError, match=r"units 'K' in one batch and .* in the other"):
            Moments.of_log(grid("K")) + Moments.of_log(grid(other))
    with pytest.raises(LogError, match=r"log\.attrs\['units'\] = 'K'"):
        Moments.of_log(grid(None)) + Moments.of_log(grid("K"))
    log = splits(units="EUR")
    other = splits(units="USD")
    with pytest.raises(LogError, match="units 'EUR' in one batch and 'USD' in the other"):
        Moments.of_log(log) + Moments.of_log(other)


def test_logs_of_several_data_sets():
    rng = np.random.default_rng(3)
    index = pd.MultiIndex.from_product(
        [["x", "y", "z"], range(4), range(5)], names=["dataset", "fold", "point"]
    )
    points = index.get_level_values("fold") * 5 + index.get_level_values("point")
    index = index.set_codes(np.asarray(points), level="point", verify_integrity=False)
    index = index.set_levels(range(20), level="point")
    log = pd.Series(rng.standard_normal(60), index=index)
    moments = sum(
        Moments.of_log(part, by=["dataset", "fold"]) for part in (log.iloc[:25], log.iloc[25:])
    )
    eager = log.cvci.wald(by="dataset")
    pd.testing.assert_frame_equal(moments.wald(by="dataset"), eager, rtol=1e-11)
    pd.testing.assert_series_equal(
        moments.decompose(independent="dataset"), log.cvci.decompose(independent="dataset"),
        rtol=1e-11,
    )  # fmt: skip
    with pytest.raises(LogError, match=r"by='dataset' or independent='dataset'"):
        moments.wald()


@pytest.mark.parametrize("given", [42, None, pd.Series([1.0]), "log.npz"])
def test_moments_are_not_made_by_hand(given):
    with pytest.raises(LogError, match=r"Moments\.of_log\(log\)"):
        Moments(given)


@pytest.mark.parametrize("given", [42, None])
def test_no_path(given):
    for call in (Moments.load, Moments.of_log(grid("K")).save):
        with pytest.raises(LogError, match=f"{given} is not a path"):
            call(given)


def test_no_file(tmp_path):
    with pytest.raises(LogError, match=r"No such file: .*nofile.npz.*Moments\.save") as caught:
        Moments.load(tmp_path / "nofile.npz")
    assert isinstance(caught.value, FileNotFoundError)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(LogError, match="does not contain moments"):
        Moments.load(tmp_path / "empty")


# --- files and levels -----------------------------------------------------------------------------


def folded(rows=600) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    index = pd.MultiIndex.from_arrays(
        [np.repeat([0, 1], rows // 2), rng.integers(0, 3, rows), np.tile(range(rows // 2), 2)],
        names=["repetition", "fold", "point"],
    )
    return pd.DataFrame(rng.normal(size=(rows, 2)), index=index, columns=["a", "b"])


def test_levels_in_another_order_are_the_same_levels():
    frame = folded()
    one = Moments.of_log(frame.iloc[:250], by=("fold", "repetition"), pairs=True)
    two = Moments.of_log(frame.iloc[250:], by=("repetition", "fold"), pairs=True)
    for both, levels in ((one + two, one.levels), (two + one, two.levels)):
        assert both.levels == levels
        pd.testing.assert_frame_equal(both.wald(), cvstats.wald(frame), rtol=1e-12)
        pd.testing.assert_frame_equal(both.compare(), cvstats.compare(frame), rtol=1e-12)
        cells = both.moments(by=("fold", "repetition"))
        pd.testing.assert_frame_equal(
            cells.sort_index(), frame.cvci.moments(by=("fold", "repetition")).sort_index(),
            rtol=1e-12,
        )  # fmt: skip
    with pytest.raises(LogError, match="different levels"):
        one + Moments.of_log(frame, by=("fold",), pairs=True)


@pytest.mark.parametrize(
    "told",
    [b"[1]", b"3", b"null", b'{"format": "cvstats moments 2"}', b"{}", b'{"format": []}',
     b'{"format": "cvstats moments 2", "gaps": null, "cells": {"labels": 3, "levels": 1}}'],
)  # fmt: skip
def test_odd_text_in_a_file_is_refused_in_words(tmp_path, told):
    path = tmp_path / "odd.npz"
    np.savez(path, head=np.frombuffer(told, dtype=np.uint8))
    with pytest.raises(
        LogError,
        match="does not contain moments, or is damaged. Expected a file written by Moments.save",
    ):
        Moments.load(path)
    np.save(tmp_path / "array.npy", np.arange(3))
    with pytest.raises(LogError, match="does not contain moments"):
        Moments.load(tmp_path / "array.npy")


def test_threads_may_save_to_one_path(tmp_path):
    moments, path = Moments.of_log(folded()), tmp_path / "same.npz"

    def save(_: int) -> None:
        moments.save(path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(80)))  # an error in one of them shows here
    assert [file.name for file in tmp_path.iterdir()] == ["same.npz"]
    pd.testing.assert_frame_equal(Moments.load(path).wald(), moments.wald())
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode  # as any file of this user
