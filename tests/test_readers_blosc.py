"""Zarr stores that Blosc packed: unpacked by a process that may crash, in place of this one."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from packaging.version import Version

import cvstats
from cvstats.errors import LogError
from cvstats.io import probing, unpacking

pytestmark = pytest.mark.skipif(
    Version(xr.__version__) < Version("2025.1.1"), reason="older ones cannot write with zarr 3"
)


def stored(path, zarr_format=2, **options):
    """Write a log as other programs do, packed by Blosc."""
    from numcodecs import Blosc
    from zarr.codecs import BloscCodec

    log = xr.Dataset(
        {"ridge": ("point", np.arange(200.0)), "forest": ("point", np.ones(200))},
        coords={"point": np.arange(200)},
    )
    codec = Blosc(cname="lz4") if zarr_format == 2 else BloscCodec(cname="lz4")
    packed = {name: {"compressors": (codec,), **options} for name in log.data_vars}
    log.to_zarr(path, mode="w", zarr_format=zarr_format, consolidated=False, encoding=packed)
    return log


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_stores_of_other_programs(tmp_path, zarr_format):
    path = tmp_path / "log.zarr"
    log = stored(path, zarr_format)
    assert unpacking.uses_blosc(path)
    before = sorted((file, file.read_bytes()) for file in path.rglob("*") if file.is_file())
    back = cvstats.read_log(path)
    xr.testing.assert_identical(back.drop_attrs(), log)
    after = sorted((file, file.read_bytes()) for file in path.rglob("*") if file.is_file())
    assert after == before
    unpacking.copy_plain(path, tmp_path / "plain.zarr")
    assert not unpacking.uses_blosc(tmp_path / "plain.zarr")
    xr.testing.assert_equal(xr.open_zarr(tmp_path / "plain.zarr", consolidated=False), log)


def test_what_cvstats_writes_needs_no_copy(tmp_path, monkeypatch):
    log = stored(tmp_path / "log.zarr")
    cvstats.save_log(log, tmp_path / "own.zarr")
    assert not unpacking.uses_blosc(tmp_path / "own.zarr")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a process was started"))
    xr.testing.assert_equal(cvstats.read_log(tmp_path / "own.zarr"), log)


@pytest.mark.process
def test_damaged_chunks(tmp_path, monkeypatch):
    path = tmp_path / "log.zarr"
    stored(path)
    chunk = path / "ridge" / "0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:20])
    with pytest.raises(LogError, match="log.zarr could not be read: .*seems to be damaged"):
        cvstats.read_log(path)
    chunk.write_bytes(whole)
    crash = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"]
    run = subprocess.run
    monkeypatch.setattr("subprocess.run", lambda _, **options: run(crash, **options))
    with pytest.raises(LogError, match=r"the library stopped with status -\d+. It seems to be dam"):
        cvstats.read_log(path)
    monkeypatch.undo()
    monkeypatch.setattr(probing, "SECONDS", 0.001)
    with pytest.raises(LogError, match="could not be read within 0 seconds"):
        cvstats.read_log(path)


def test_chunks_that_claim_too_much(tmp_path, monkeypatch):
    stored(tmp_path / "log.zarr")
    monkeypatch.setattr(unpacking, "MOST", 100)
    with pytest.raises(ValueError, match="more than 8 GiB unpacked"):
        unpacking.copy_plain(tmp_path / "log.zarr", tmp_path / "copy.zarr")


def test_blosc_in_a_place_where_it_cannot_be_taken_out():
    shards = {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": ["blosc"]}}]}
    with pytest.raises(ValueError, match="Blosc within shards cannot be read"):
        unpacking.strip(shards)
    assert not unpacking.strip([1])
    assert not unpacking.strip({"codecs": [{"name": "bytes"}, {"name": "zstd"}]})
    described = json.loads('{"codecs": [{"name": "bytes"}, {"name": "blosc"}], "shape": [1]}')
    assert unpacking.strip(described)
    assert described == {"codecs": [{"name": "bytes"}], "shape": [1]}
