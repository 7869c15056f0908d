"""NetCDF and Zarr: external datasets, saved logs, and safety checks before opening."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from cvstats.errors import LogError
from cvstats.io.paths import import_extra, is_store, refuse_bomb
from cvstats.io.text import Columns, Header, parse_header

HEADER = "cvstats_header"
"""The variable with the header of a saved log, since HDF5 attributes are limited in size."""
ROWS = "evaluation"

METADATA = (".zarray", ".zmetadata", "zarr.json", ".zgroup", ".zattrs")
CODECS = {
    "blosc", "bytes", "bz2", "crc32", "crc32c", "adler32", "delta", "endian", "fixedscaleoffset",
    "fletcher32", "gzip", "lz4", "lzma", "quantize", "sharding_indexed", "shuffle", "transpose",
    "vlen-bytes", "vlen-utf8", "zlib", "zstd",
}  # fmt: skip
"""Zarr codecs that only transform bytes; others may unpickle and execute code."""


# --- writing --------------------------------------------------------------------------------------


def dataset_of(columns: Columns, header: Header) -> xr.Dataset:
    """Create a dataset from the columns of a flattened frame, with its levels as coordinates."""
    levels = [note["field"] for note in header["index"]]
    dataset = xr.Dataset({name: ((ROWS,), values) for name, values in columns.items()})
    return dataset.set_coords(levels)


def write_dataset(dataset: xr.Dataset, header: Header, path: Path) -> None:
    """Write a dataset of plain variables, and the header as one of bytes."""
    note = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    whole = dataset.assign({HEADER: ((f"{HEADER}_bytes",), note)})
    if path.suffix.lower() != ".zarr":
        require_netcdf()
        blank = {name: {"_FillValue": None} for name in whole.variables}
        whole.to_netcdf(path, engine="h5netcdf", encoding=blank)
        return
    import_extra("zarr", "Zarr")
    codec = import_extra("numcodecs", "Zarr").Zstd(level=1, checksum=True)
    packed = {name: {"compressors": (codec,)} for name in whole.variables}
    whole.to_zarr(path, mode="w", zarr_format=2, consolidated=True, encoding=packed)


def require_netcdf() -> None:
    """Import both packages of NetCDF: one can be installed without the other."""
    for package in ("h5py", "h5netcdf"):
        import_extra(package, "NetCDF")


# --- reading --------------------------------------------------------------------------------------


def read_dataset(path: Path, kind: str) -> tuple[xr.Dataset, Header | None]:
    """Read the contents of a file, and the header if it was written by `save_log`."""
    if kind == "netcdf":
        require_netcdf()
        refuse_other_files(path)
        options: dict[str, Any] = {"engine": "h5netcdf"}
    else:
        import_extra("zarr", "Zarr")
        refuse_executing(path)
        options = {"engine": "zarr", "consolidated": None}
    with xr.open_dataset(path, **options) as lazy:
        if kind == "zarr":
            stored = sum(item.stat().st_size for item in path.rglob("*") if item.is_file())
            refuse_bomb(path.name, stored, lazy.nbytes)
        dataset = lazy.load()
    if HEADER not in dataset.variables:
        return dataset, None
    header = dataset[HEADER].to_numpy().astype(np.uint8).tobytes().decode()
    return dataset, parse_header(header, path.name)


def foreign(dataset: xr.Dataset) -> xr.DataArray | xr.Dataset:
    """Return a dataset written by another program; a single variable becomes a DataArray."""
    if any("compress" in variable.attrs for variable in dataset.variables.values()):
        compressed = import_extra("cf_xarray", "a compressed MultiIndex")
        dataset = compressed.decode_compress_to_multi_index(dataset)
    names = list(dataset.data_vars)
    if not names:
        raise LogError("the file has no variables. Expected a variable with losses for each model.")
    return dataset[names[0]] if len(names) == 1 else dataset


# --- safety checks before opening ----------------------------------------------------------


def refuse_other_files(path: Path) -> None:
    """Reject a NetCDF file whose values would be read from other files.

    Only the root group is read; nested groups are ignored.
    """
    h5py = import_extra("h5py", "NetCDF")
    unpacked = 0
    with h5py.File(path, "r") as file:
        for name in file:
            outside = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
            item = None if outside else file.get(name)
            if isinstance(item, h5py.Dataset):
                elsewhere = item.file.filename != file.filename
                outside = elsewhere or bool(item.external) or bool(item.is_virtual)
                unpacked += item.size * item.dtype.itemsize if item.size else 0
            if outside:
                raise LogError(
                    f"the values of {name[:40]!r} in {path.name} would be read from another "
                    "file. Expected them in the file itself."
                )
    refuse_bomb(path.name, path.stat().st_size, unpacked)


def refuse_executing(path: Path) -> None:
    """Reject a Zarr store with external links, truncated chunks, or a codec that may execute code.

    Everything that Zarr could open is checked under the name Zarr would use.
    """
    if not path.is_dir():
        raise LogError(f"{path.name} is not a directory. Expected a Zarr store.")
    if not is_store(path):
        empty = "an empty directory" if not any(path.iterdir()) else "not a Zarr store"
        raise LogError(
            f"{path.name} is {empty}: it has no .zgroup and no zarr.json. Expected a Zarr store, "
            "as written by save_log."
        )
    root = path.resolve()
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            item = Path(folder, name)
            if item.is_symlink() and not item.resolve().is_relative_to(root):
                raise LogError(
                    f"{name[:40]!r} in {path.name} is an external link. Expected every part of "
                    "the store inside it."
                )
        for name in set(files) & set(METADATA):
            described = json.loads(Path(folder, name).read_text(encoding="utf-8"))
            for codec in codecs_in(described):
                if str(codec).removeprefix("numcodecs.") not in CODECS:
                    raise LogError(
                        f"{path.name} uses the codec {str(codec)[:40]!r}, which could execute "
                        "code. Expected plain compression."
                    )
            if name in (".zarray", "zarr.json"):
                codecs = [described.get("compressor"), *(described.get("codecs") or ())]
                if "'blosc'" in str(codecs[-1]):
                    refuse_truncated_chunks(Path(folder), path)


def refuse_truncated_chunks(array: Path, store: Path) -> None:
    """Reject truncated chunks of Blosc, which would read memory beyond their end."""
    for chunk in array.rglob("*"):
        if chunk.is_file() and chunk.name not in METADATA:
            with chunk.open("rb") as file:
                header, size = file.read(16), chunk.stat().st_size
            if len(header) < 16 or int.from_bytes(header[12:], "little") != size:
                raise LogError(
                    f"the chunk {chunk.relative_to(store).as_posix()!r} of {store.name} has "
                    f"{size:,} bytes, not the number in its header. The store may not have been "
                    "copied completely."
                )


def codecs_in(described: Any, inside: bool = False) -> Iterator[Any]:
    """Find the names of all codecs in the metadata of a Zarr store, nested ones included."""
    if isinstance(described, dict):
        if inside:
            yield from (described[key] for key in ("id", "name") if key in described)
        for key, item in described.items():
            listed = key in ("filters", "compressor", "codecs", "index_codecs", "compressors")
            yield from codecs_in(item, listed)
    elif isinstance(described, list):
        for item in described:
            yield from codecs_in(item, inside)
    elif inside and isinstance(described, str):
        yield described
