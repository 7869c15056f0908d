"""NetCDF and Zarr of other programs, and what is refused before it is opened."""

import numpy as np
import pytest
import xarray as xr
from calls import refuses
from zarr_stores import writes_zarr

import cvstats
from cvstats.errors import LogError


def write_with_blosc(log, path, zarr_format):
    from numcodecs import Blosc
    from zarr.codecs import BloscCodec

    codec = Blosc(cname="lz4") if zarr_format == 2 else BloscCodec(cname="lz4")
    packed = {name: {"compressors": (codec,)} for name in log.data_vars}
    log.to_zarr(path, mode="w", zarr_format=zarr_format, consolidated=False, encoding=packed)


@writes_zarr
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compression", ["blosc", "default"])
def test_stores_of_other_programs(tmp_path, zarr_format, compression):
    log = xr.Dataset(
        {"ridge": ("point", np.arange(200.0)), "forest": ("point", np.ones(200))},
        coords={"point": np.arange(200)},
    )
    path = tmp_path / "log.zarr"
    if compression == "blosc":
        write_with_blosc(log, path, zarr_format)
    else:
        log.to_zarr(path, mode="w", zarr_format=zarr_format, consolidated=False)
    before = sorted((file, file.read_bytes()) for file in path.rglob("*") if file.is_file())
    back = cvstats.read_log(path)
    xr.testing.assert_identical(back.drop_attrs(), log)
    after = sorted((file, file.read_bytes()) for file in path.rglob("*") if file.is_file())
    assert after == before


@writes_zarr
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_truncated_chunks(tmp_path, zarr_format):
    """Blosc itself would read memory beyond the end of the chunk, and may crash Python."""
    path = tmp_path / "log.zarr"
    write_with_blosc(xr.Dataset({"ridge": ("point", np.arange(200.0))}), path, zarr_format)
    name = "ridge/0" if zarr_format == 2 else "ridge/c/0"
    chunk = path / name
    written = chunk.read_bytes()
    for size in (0, 10, 40, len(written) - 1):
        chunk.write_bytes(written[:size])
        words = rf"the chunk '{name}' of log.zarr has {size} bytes, .* not have been copied"
        refuses(words, cvstats.read_log, path)


@writes_zarr
def test_every_changed_byte_of_a_saved_chunk_is_noticed(tmp_path):
    path = tmp_path / "log.zarr"
    cvstats.save_log(xr.DataArray(np.arange(200.0), dims="point"), path)
    chunk = path / "losses" / "0"
    written = bytearray(chunk.read_bytes())
    for at in range(6, len(written), len(written) // 6):
        changed = written.copy()
        changed[at] ^= 1
        chunk.write_bytes(changed)
        refuses(r"log.zarr could not be read: .*file may be damaged", cvstats.read_log, path)


def test_a_file_that_would_read_another_one_is_refused(tmp_path):
    import h5py

    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"x" * 80)
    with h5py.File(tmp_path / "spy.nc", "w") as file:
        file.create_dataset("ridge", shape=(10,), dtype="f8", external=[(str(secret), 0, 80)])
    with pytest.raises(LogError, match="'ridge' in spy.nc would be read from another file"):
        cvstats.read_log(tmp_path / "spy.nc")
    with h5py.File(tmp_path / "link.nc", "w") as file:
        file["ridge"] = h5py.ExternalLink(str(tmp_path / "spy.nc"), "/ridge")
    refuses("from another file", cvstats.read_log, tmp_path / "link.nc")
    with h5py.File(tmp_path / "deep.nc", "w") as file:
        file["group/far"] = h5py.ExternalLink(str(tmp_path / "spy.nc"), "/ridge")
        file["ridge"] = h5py.SoftLink("/group/far")
    with pytest.raises(LogError, match="'ridge' in deep.nc would be read from another file"):
        cvstats.read_log(tmp_path / "deep.nc")
    with h5py.File(tmp_path / "virtual.nc", "w") as file:
        layout = h5py.VirtualLayout(shape=(10,), dtype="f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "spy.nc"), "ridge", shape=(10,))
        file.create_virtual_dataset("ridge", layout)
    refuses("from another file", cvstats.read_log, tmp_path / "virtual.nc")
