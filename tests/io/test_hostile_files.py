"""Files that were made to execute, to hang or to fill the memory when they are read."""

import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from calls import refuses
from zarr_stores import writes_zarr

import cvstats
from cvstats.errors import LogError
from cvstats.io.paths import refuse_bomb

HUGE = 300_000_000
"""So many losses take 2.4 GB."""


class Trap:
    """Makes a directory when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder, in which nothing may have been executed in the end."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not Path("executed").exists()


def write_array(path, *, encoding="utf-8", data=b"", **described):
    """Write an array of Zarr 2, of four losses unless ``described`` otherwise."""
    path.mkdir(parents=True)
    about = {
        "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<f8", "order": "C",
        "fill_value": 0, "compressor": None, "filters": None, **described,
    }  # fmt: skip
    (path / ".zarray").write_bytes(json.dumps(about).encode(encoding))
    (path / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["point"]}', encoding="utf-8")
    (path / "0").write_bytes(data)


def write_store(**traps):
    """Write a store of Zarr 2 with a good array, and others."""
    write_array(Path("log.zarr/loss"), data=np.arange(4.0).tobytes())
    Path("log.zarr/.zgroup").write_text('{"zarr_format": 2}', encoding="utf-8")
    for name, described in traps.items():
        write_array(Path("log.zarr", name), data=pickle.dumps(Trap()), **described)
    return Path("log.zarr")


UNPICKLES = {"dtype": "|O", "fill_value": None, "filters": [{"id": "pickle"}]}


@pytest.mark.parametrize(
    ("trap", "words"),
    [
        (UNPICKLES, "codec 'pickle'"),
        (UNPICKLES | {"encoding": "utf-16"}, "not valid UTF-8"),
        (UNPICKLES | {"encoding": "utf-8-sig"}, "UTF-8 BOM"),
        (UNPICKLES | {"filters": None, "compressor": {"id": "pickle"}}, "codec 'pickle'"),
        (UNPICKLES | {"filters": [{"id": "zlib", "name": "pickle"}]}, "codec 'pickle'"),
        (UNPICKLES | {"filters": [{"id": "PICKLE"}]}, "codec 'PICKLE'"),
    ],
)
def test_a_store_that_unpickles_in_disguise(folder, trap, words):
    pytest.importorskip("zarr")
    refuses(words, cvstats.read_log, write_store(fold=trap))


def test_a_store_that_unpickles_elsewhere(folder):
    pytest.importorskip("zarr")
    store = write_store(deep={})
    (store / "deep").rename(store / "hidden")
    write_array(store / "group/fold", data=pickle.dumps(Trap()), **UNPICKLES)
    refuses("codec 'pickle'", cvstats.read_log, store)
    Path("link.zarr").symlink_to(store)
    refuses("codec 'pickle'", cvstats.read_log, "link.zarr")


def test_only_the_consolidated_metadata_unpickle(folder):
    pytest.importorskip("zarr")
    store = write_store(fold={})
    described = {"zarr_format": 2, "shape": [4], "chunks": [4], "order": "C", "compressor": None}
    metadata = {".zgroup": {"zarr_format": 2}, "fold/.zarray": described | UNPICKLES}
    whole = json.dumps({"zarr_consolidated_format": 1, "metadata": metadata})
    (store / ".zmetadata").write_text(whole, encoding="utf-8")
    refuses("codec 'pickle'", cvstats.read_log, store)


def test_links_to_what_unpickles(folder):
    """Those out of the store are refused as such; those inside are followed."""
    pytest.importorskip("zarr")
    store = write_store()
    for name in ("elsewhere", "log.zarr/hidden"):
        write_array(folder / name, data=pickle.dumps(Trap()), **UNPICKLES)
    (store / "hidden" / ".zarray").rename(store / "hidden" / "metadata")
    (store / "whole").symlink_to(folder / "elsewhere", target_is_directory=True)
    refuses("'whole' in log.zarr is an external link", cvstats.read_log, store)
    (store / "whole").unlink()
    for place, names, words in (
        (folder / "elsewhere", (".zarray", "0"), "in log.zarr is an external link"),
        (
            folder / store / "hidden",
            ("metadata", "0"),
            "uses the codec 'pickle', which could execute",
        ),
    ):
        (store / "ridge").mkdir()
        for own, name in zip((".zarray", "0"), names, strict=True):
            (store / "ridge" / own).symlink_to(place / name)
        refuses(words, cvstats.read_log, store)
        shutil.rmtree(store / "ridge")


@pytest.mark.parametrize(
    "described",
    [
        {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": ["pickle"]}}]},
        {"codecs": [{"name": "sharding_indexed",
                     "configuration": {"index_codecs": [{"name": "numcodecs.pickle"}]}}]},
        {"consolidated_metadata": {"metadata": {"a": {"codecs": [{"name": "pickle"}]}}}},
        {"compressor": "pickle"},
    ],
)  # fmt: skip
def test_nested_codecs_are_found(folder, described):
    pytest.importorskip("zarr")
    (write_store() / "loss" / "zarr.json").write_text(json.dumps(described), encoding="utf-8")
    refuses("uses the codec '(numcodecs.)?pickle'", cvstats.read_log, "log.zarr")


def test_pickles_are_not_files_of_losses(folder):
    for name in ("log.pkl", "log.joblib", "log.npy"):
        Path(name).write_bytes(pickle.dumps(Trap()))
        refuses("names no known file type", cvstats.read_log, name)
        for kind in ("parquet", "netcdf", "inspect"):
            with pytest.raises(LogError):
                cvstats.read_log(name, format=kind)


def test_a_type_of_arrow_that_unpickles_is_read_as_numbers(folder):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Trap()),
    }
    loss = arrow.field("loss", arrow.float64(), metadata=kind)
    table = arrow.table({"point": range(4), "loss": np.arange(4.0)})
    parquet.write_table(table.cast(arrow.schema([table.schema.field(0), loss])), "log.parquet")
    assert cvstats.read_log("log.parquet").to_numpy().tolist() == [0, 1, 2, 3]


CLAIM = r"has [\d,]+ bytes and would take .* GB of memory"


@writes_zarr
def test_a_store_without_its_chunks(folder):
    pytest.importorskip("zarr")
    store = write_store()
    (store / "loss").rename(store.parent / "small")
    write_array(store / "loss", shape=[HUGE], chunks=[HUGE])
    refuses(f"log.zarr {CLAIM}", cvstats.read_log, store)


def test_a_netcdf_file_without_its_chunks(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File("log.nc", "w") as file:
        file.create_dataset("loss", shape=(HUGE,), dtype="f8", chunks=(1000,))
        file["empty"] = h5py.Empty("f8")
    refuses(f"log.nc {CLAIM}", cvstats.read_log, "log.nc")


def test_groups_within_groups_take_no_time(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File("log.nc", "w") as file:
        file["loss"], file["point"] = np.arange(4.0), np.arange(4)
        file["point"].make_scale("point")
        file["loss"].dims[0].attach_scale(file["point"])
        group = file
        for _ in range(1_000):
            group = group.create_group("group")
        group["root"] = h5py.SoftLink("/")
    assert cvstats.read_log("log.nc").shape == (4,)


def test_a_bomb_takes_over_a_gigabyte_and_a_thousandfold():
    refuse_bomb("log", 1, 2**30)
    refuse_bomb("log", 2_000_000, 2_000_000_000)
    for stored, unpacked in ((1, 2**30 + 1), (2_000_000, 2_000_000_001)):
        with pytest.raises(LogError, match=f"log has {stored:,} bytes and would take 1.[09] GB"):
            refuse_bomb("log", stored, unpacked)


def test_a_parquet_file_of_one_value(folder, monkeypatch):
    monkeypatch.setattr("cvstats.io.paths.LARGE", 1 << 24)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"point": np.zeros(1_000_000, int), "loss": np.zeros(1_000_000)})
    with parquet.ParquetWriter("log.parquet", table.schema) as file:
        for _ in range(2):
            file.write_table(table, row_group_size=1_000_000)
    refuses(f"log.parquet {CLAIM}", cvstats.read_log, "log.parquet")


def test_an_archive_of_one_letter(folder, monkeypatch):
    monkeypatch.setattr("cvstats.io.paths.LARGE", 1 << 24)
    head = {"eval": {"task": "t", "model": "m"}, "status": "success"}
    with zipfile.ZipFile("log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(head))
        with archive.open("samples/1_epoch_1.json", "w", force_zip64=True) as sample:
            sample.write(b'{"id": "')
            for _ in range(50):
                sample.write(b"a" * 1_000_000)
            sample.write(b'"}')
    refuses(f"log.eval {CLAIM}", cvstats.read_log, "log.eval")
