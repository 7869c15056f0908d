"""A log is written as a whole or not at all; what cannot be written is told with what to type."""

import os
import re
import stat
import sys
import zlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal
from rows import multi_index
from zarr_stores import writes_zarr

import cvstats
from cvstats.errors import LogError
from cvstats.io import arrow, netcdf, text

ZARR = pytest.param("zarr", marks=writes_zarr)
SUFFIXES = ["parquet", "csv", "jsonl", "nc", ZARR]
LOG = pd.Series([1.0, 2.0], index=pd.Index(["a", "b"], name="point"), name="loss")

refused = partial(refusal, cvstats.save_log)


def labelled(label):
    index = pd.Index([label, "b"], name="point", dtype=object)
    return pd.Series([1.0, 2.0], index=index, name="loss")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failure_leaves_the_file_as_it_was(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"log.{suffix}"
    cvstats.save_log(LOG, path)
    writers = {text: ("write_csv", "write_jsonl"), arrow: ("write_parquet",)}
    for module, names in {**writers, netcdf: ("write_dataset",)}.items():
        for name in names:
            writer = getattr(module, name)

            def broken(*columns_header_path, writer=writer):
                writer(*columns_header_path)
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(module, name, broken)
    words = refused(LOG * 2, path)
    assert words == (
        f"'log.{suffix}' could not be written: No space left on device. Expected a writable path."
    )
    assert cvstats.read_log(path).equals(LOG)
    assert os.listdir(tmp_path) == [path.name]  # and nothing beside it


@pytest.mark.skipif(os.name == "nt", reason="no such links and modes")
def test_links_and_modes_stay(tmp_path):
    path, link = tmp_path / "log.csv", tmp_path / "link.csv"
    cvstats.save_log(LOG, path)
    path.chmod(0o640)
    link.symlink_to(path)
    cvstats.save_log(LOG * 2, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert cvstats.read_log(path).equals(LOG * 2)


def test_zero_bytes_in_netcdf(tmp_path):
    path = tmp_path / "log.nc"
    cvstats.save_log(LOG, path)
    words = refused(labelled("a\0b"), path)
    assert words == (
        "'point' contains 'a\\x00b', but a null byte cannot be written to this type of file. "
        "Expected text without null bytes. Remove it, or save to .parquet or .csv."
    )
    assert cvstats.read_log(path).equals(LOG)
    cvstats.save_log(labelled("a\0b"), tmp_path / "log.parquet")
    assert cvstats.read_log(tmp_path / "log.parquet").index[0] == "a\0b"
    array = xr.DataArray([1.0, 2.0], coords={"point": ["a\0b", "c"]}, dims="point")
    assert "'point' contains 'a\\x00b'" in refused(array, path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_half_a_character(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    cvstats.save_log(LOG, path)
    log = labelled("é\ud800")
    if suffix == "jsonl":  # which writes all letters as escapes
        cvstats.save_log(log, path)
        return
    assert "'point' contains 'é\\ud800', which has a lone surrogate" in refused(log, path)
    assert cvstats.read_log(path).equals(LOG)


def test_what_a_library_refuses_for_another_reason(tmp_path, monkeypatch):
    def broken(columns, header, path):
        raise TypeError("no such type")

    monkeypatch.setattr(arrow, "write_parquet", broken)
    assert refused(LOG, tmp_path / "log.parquet") == (
        "log.parquet could not be written: no such type. Expected numbers, text or dates. Another "
        "file type may support it: .csv."
    )


@pytest.mark.parametrize(
    ("path", "words"), [(5, "an int"), (None, "a NoneType"), (["log.csv"], "a list"), (LOG, "a ")]
)
def test_the_path_is_none(path, words):
    found = refused("log.csv" if path is LOG else LOG, path)
    assert re.match(f"the path is {words}[A-Za-z]*\\. Expected a string or a path, as in", found)
    assert "\n" not in found  # of a log in the place of the path


SPANS = [
    pd.period_range("2024", periods=2),
    pd.interval_range(0, 2),
    list(pd.period_range("2024", periods=2)),
]


@pytest.mark.parametrize("labels", SPANS)
@pytest.mark.parametrize("levels", [1, 2])
def test_spans_as_labels(tmp_path, labels, levels):
    index = multi_index(fold=[0, 1], month=labels)
    log = pd.Series([1.0, 2.0], index=index if levels == 2 else pd.Index(labels, name="month"))
    _, _, typed = refused(log, tmp_path / "log.csv").partition(" As text: ")
    assert typed.startswith("log.index = log.index")
    exec(typed, {"log": log})
    cvstats.save_log(log, tmp_path / "log.csv")
    back = cvstats.read_log(tmp_path / "log.csv")
    assert back.index.get_level_values("month").tolist() == [str(label) for label in labels]


def test_spans_as_a_column(tmp_path):
    log = pd.DataFrame({"y_true": pd.period_range("2024", periods=2)}, index=LOG.index)
    exec(refused(log, tmp_path / "log.csv").partition(" As text: ")[2], {"log": log})
    cvstats.save_log(log, tmp_path / "log.csv")


def test_columns_of_several_levels(tmp_path):
    log = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    words = refused(log, tmp_path / "log.csv")
    exec(words.partition("the models: ")[2].removesuffix("."), {"log": log})
    cvstats.save_log(log, tmp_path / "log.csv")
    assert list(cvstats.read_log(tmp_path / "log.csv")) == ["a/1", "a/2"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_file_that_was_cut_off_is_refused_wherever_it_was_cut(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    values = np.random.default_rng(1).normal(size=4)
    cvstats.save_log(pd.Series(values, index=pd.RangeIndex(4, name="point"), name="a"), path)
    whole = path.read_bytes()
    for size in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(LogError):
            cvstats.read_log(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_changed_number_is_refused_and_other_line_ends_are_not(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    cvstats.save_log(LOG, path)
    whole = path.read_bytes()
    first, _, rows = whole.partition(b"\n")
    assert f'"checksum": {zlib.crc32(rows)}'.encode() in first
    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert cvstats.read_log(path).equals(LOG)
    path.write_bytes(whole.replace(b"2.0", b"3.0"))
    with pytest.raises(LogError, match="changed after save_log wrote its 2 rows") as caught:
        cvstats.read_log(path)
    assert str(caught.value) == (
        f"log.{suffix} was truncated or changed after save_log wrote its 2 rows: they do not match "
        "the checksum in its first line. Expected the whole file. Copy or save it again; if the "
        "change is intended, delete the first line and name the columns."
    )


def test_a_file_of_an_older_version_has_no_checksum(tmp_path):
    path = tmp_path / "log.csv"
    cvstats.save_log(LOG, path)
    first, _, rows = path.read_text("utf-8").partition("\n")
    path.write_text(re.sub(r', "rows": 2, "checksum": \d+', "", first) + "\n" + rows, "utf-8")
    assert "checksum" not in path.read_text("utf-8")
    assert cvstats.read_log(path).equals(LOG)


def test_only_compressed_indexes_of_other_programs_need_cf_xarray(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cf_xarray", None)
    losses = xr.DataArray([1.0, 2.0], {"point": [0, 1]}, name="loss")
    losses.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    assert cvstats.read_log(tmp_path / "plain.nc").shape == (2,)
    losses.assign_coords(at=("point", [0, 1], {"compress": "fold point"})).to_netcdf(
        tmp_path / "compressed.nc", engine="h5netcdf"
    )
    with pytest.raises(ImportError, match="a compressed MultiIndex needs cf_xarray"):
        cvstats.read_log(tmp_path / "compressed.nc")
