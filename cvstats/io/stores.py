"""Plain columns and a note, in five kinds of files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.errors import LogError
from cvstats.io.files import EXACT, MOST_CELLS, check_size, lines, records
from cvstats.io.probing import probe, safe_store
from cvstats.io.watching import opened, share_read
from cvstats.io.words import needed

__all__ = [
    "HEADER", "READERS", "WRITERS", "header_of", "is_store", "read_dataset", "write_dataset",
]  # fmt: skip

HEADER = "cvstats_header"
MARK = "# cvstats: "

CODECS = {
    "blosc", "bytes", "bz2", "crc32", "crc32c", "adler32", "delta", "endian", "fixedscaleoffset",
    "fletcher32", "gzip", "lz4", "lzma", "quantize", "sharding_indexed", "shuffle", "transpose",
    "vlen-bytes", "vlen-utf8", "zlib", "zstd",
}  # fmt: skip
"""Codecs of Zarr that only move bytes; there is one that unpickles, and so executes."""


def write_csv(columns: dict[str, Any], header: str, path: Path) -> None:
    """Write a line of note, and a CSV file below it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(MARK + header + "\n")
        # A bare carriage return would be read as the end of a row: quote whatever is text.
        text = any(values.dtype == object for values in columns.values())
        pd.DataFrame(columns).to_csv(
            file,
            index=False,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC if text else csv.QUOTE_MINIMAL,
        )


def write_jsonl(columns: dict[str, Any], header: str, path: Path) -> None:
    """Write the note, and an object for each row."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps({"cvstats": json.loads(header)}) + "\n")
        lists = [list(map(finite, values.tolist())) for values in columns.values()]
        for row in zip(*lists, strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")


def finite(value: Any) -> Any:
    """Keep what JSON knows: NaN becomes null, infinities words."""
    if isinstance(value, float) and not np.isfinite(value):
        return None if value != value else str(value)
    return value


def write_parquet(columns: dict[str, Any], header: str, path: Path) -> None:
    """Write a Parquet file, with the note in its metadata."""
    arrow, parquet = needed("pyarrow", "Parquet"), needed("pyarrow.parquet", "Parquet")
    arrays = {
        name: arrow.array(values, type=arrow.string() if values.dtype == object else None)
        for name, values in columns.items()
    }
    table = arrow.table(arrays).replace_schema_metadata({"cvstats": header})
    parquet.write_table(table, path, compression="zstd")


def header_of(path: Path, kind: str) -> str | None:
    """Find the note in a file; None if there is none."""
    check_size(path, 1 << 50)
    if kind == "parquet":
        parquet = needed("pyarrow.parquet", "Parquet")
        found = (parquet.read_schema(path).metadata or {}).get(b"cvstats")
        return None if found is None else str(found, "utf-8")
    _, first = next(lines(path), (0, ""))
    if kind == "csv":
        return first[len(MARK) :] if first.startswith(MARK) else None
    if not first.startswith('{"cvstats":'):
        return None
    return json.dumps(json.loads(first)["cvstats"])


def read_csv(path: Path, notes: dict[str, Any]) -> dict[str, Any]:
    """Read the columns of a CSV file below its note."""
    types: dict[str, Any] = {}
    blank: dict[str, list[str]] = {}
    for note in (*notes["index"], *notes["columns"]):
        dtype = np.dtype(note["dtype"]) if note["kind"] == "number" else None
        if dtype is None:
            whole = note["kind"] in ("time", "category") and "written" not in note
            types[note["field"]] = np.int64 if whole else str
        elif dtype.kind == "f":
            types[note["field"]], blank[note["field"]] = np.float64, ["", "nan"]
        else:
            types[note["field"]] = dtype
    with opened(path) as file:
        table = pd.read_csv(
            file, skiprows=1, dtype=types, keep_default_na=False, na_values=blank,
            index_col=False, **EXACT,
        )  # fmt: skip
    return {str(name): table[name].to_numpy() for name in table}


def read_jsonl(path: Path, notes: dict[str, Any]) -> dict[str, Any]:
    """Read the columns of a JSONL file below its note."""
    rows = records(path)
    next(rows)
    every = list(rows)
    columns: dict[str, Any] = {}
    for note in (*notes["index"], *notes["columns"]):
        name = note["field"]
        values = [row[name] for row in every if name in row]
        if len(values) != len(every):
            raise LogError(f"a row has no {name!r}. Expected a value in every row.")
        if note["kind"] == "number" and np.dtype(note["dtype"]).kind == "f":
            columns[name] = np.array([np.nan if v is None else float(v) for v in values])
        elif note["kind"] == "number":
            columns[name] = np.array(values, dtype=np.dtype(note["dtype"]))
        else:
            columns[name] = np.array(values, dtype=object)
    return columns


class ParquetColumns(Mapping[str, Any]):
    """The columns of a Parquet file, each read when it is asked for."""

    def __init__(self, path: Path, notes: dict[str, Any]) -> None:
        arrow, parquet = needed("pyarrow", "Parquet"), needed("pyarrow.parquet", "Parquet")
        self.plain = {arrow.float64(), arrow.float32(), arrow.int64(), arrow.int32()}
        with parquet.ParquetFile(path) as file:
            meta = file.metadata
            self.rows, self.names = meta.num_rows, file.schema_arrow.names
            if not 0 <= self.rows * len(self.names) <= MOST_CELLS:
                raise LogError(f"{path.name} claims {self.rows:,} rows. Expected fewer.")
            first = meta.row_group(0) if meta.num_row_groups else None
        # Text comes as numbers and a list of labels, which saves an object for each row. Where
        # the file itself does not keep it so, its bytes are many, and are numbered after reading.
        self.text = {
            note["field"] for note in (*notes["index"], *notes["columns"]) if note["kind"] == "text"
        }
        few = [] if first is None else [
            name for at, name in enumerate(self.names[: first.num_columns])
            if name in self.text and first.column(at).total_uncompressed_size < 4 * first.num_rows
        ]  # fmt: skip
        self.open = partial(parquet.ParquetFile, path, read_dictionary=few)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Any:
        with self.open() as file:
            kind = file.schema_arrow.field(name).type
            if kind in self.plain:
                values = self.numbers(file, name, kind.to_pandas_dtype())
            else:
                column = file.read(columns=[name]).column(name)
                if name not in self.text:
                    values = column.to_numpy()
                else:
                    listed_already = str(kind).startswith("dictionary")
                    column = column if listed_already else column.dictionary_encode()
                    values = column.to_pandas().array
        share_read((self.names.index(name) + 1) / len(self.names))
        return values

    def numbers(self, file: Any, name: str, dtype: Any) -> np.ndarray[Any, Any]:
        """Read a column of numbers in batches, so that it is in memory once."""
        values = np.empty(self.rows, dtype=dtype)
        row = 0
        for batch in file.iter_batches(1 << 20, columns=[name]):
            values[row : row + len(batch)] = batch.column(name)
            row += len(batch)
        if row != self.rows:
            raise LogError(f"{name!r} has {row:,} values. Expected {self.rows:,}.")
        return values


WRITERS: dict[str, Callable[[dict[str, Any], str, Path], None]] = {
    "csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet,
}  # fmt: skip
READERS: dict[str, Callable[[Path, dict[str, Any]], Mapping[str, Any]]] = {
    "csv": read_csv, "jsonl": read_jsonl, "parquet": ParquetColumns,
}  # fmt: skip


def needed_for_netcdf() -> None:
    """Look for both packages: one can be installed without the other."""
    for package in ("h5py", "h5netcdf"):
        needed(package, "NetCDF")


def write_dataset(dataset: xr.Dataset, header: str, path: Path, kind: str) -> None:
    """Write a dataset of plain variables, and the note as one of bytes: it may be long."""
    note = np.frombuffer(header.encode(), dtype=np.uint8)
    whole = dataset.assign({HEADER: ((f"{HEADER}_bytes",), note)})
    if kind == "netcdf":
        needed_for_netcdf()
        blank = {name: {"_FillValue": None} for name in whole.variables}
        whole.to_netcdf(path, engine="h5netcdf", encoding=blank)
        return
    needed("zarr", "Zarr")
    # Zstandard, since a damaged chunk of Blosc, the default, can crash whoever reads it.
    zstd = needed("numcodecs", "Zarr").Zstd(level=3)
    packed = {name: {"compressors": (zstd,)} for name in whole.variables}
    whole.to_zarr(path, mode="w", zarr_format=2, consolidated=True, encoding=packed)


def is_store(path: Path) -> bool:
    """Whether a directory describes itself as a Zarr store."""
    return any((path / name).is_file() for name in (".zgroup", ".zarray", "zarr.json"))


def read_dataset(path: Path, kind: str) -> tuple[xr.Dataset, str | None]:
    """Load a dataset without decoding anything, and the note if there is one."""
    if not path.exists():
        raise LogError(f"{path.name} is not there. Expected the path of a file.")
    if kind == "netcdf":
        needed_for_netcdf()
        probe(path)
        return loaded_from(path, path, {"engine": "h5netcdf"})
    needed("zarr", "Zarr")
    refuse_executing(path)
    with safe_store(path) as store:
        return loaded_from(store, path, {"engine": "zarr", "consolidated": None})


def loaded_from(store: Path, path: Path, options: dict[str, Any]) -> tuple[xr.Dataset, str | None]:
    """Load what is known to be sound."""
    with xr.open_dataset(store, decode_cf=False, chunks=None, cache=False, **options) as lazy:
        cells = sum(int(np.prod(v.shape, dtype=float)) for v in lazy.variables.values())
        if cells > MOST_CELLS:
            raise LogError(
                f"{path.name} claims {cells:,} values. Expected at most {MOST_CELLS:,}. Open it "
                f"with xarray, in parts."
            )
        if HEADER not in lazy.variables:
            return xr.decode_cf(lazy.load()), None
        loaded = lazy.load()
    header = bytes(np.asarray(loaded[HEADER].values, dtype=np.uint8)).decode()
    return loaded.drop_vars(HEADER), header


def refuse_executing(path: Path) -> None:
    """Refuse a Zarr store with a codec that is not known to move bytes only."""
    if not path.is_dir():
        raise LogError(f"{path.name} is no directory. Expected a Zarr store.")
    if not is_store(path):
        empty = "an empty directory" if not any(path.iterdir()) else "no Zarr store"
        raise LogError(
            f"{path.name} is {empty}: it has no .zgroup and no zarr.json. Expected a Zarr store, "
            f"as save_log writes one."
        )
    metadata = (".zarray", ".zmetadata", "zarr.json", ".zgroup", ".zattrs")
    for file in path.rglob("*"):
        if file.name in metadata and file.is_file():
            if file.stat().st_size > 1 << 28:
                raise LogError(f"{file.name} of {path.name} is absurdly large.")
            for codec in codecs(json.loads(file.read_text(encoding="utf-8"))):
                if str(codec).removeprefix("numcodecs.") not in CODECS:
                    raise LogError(
                        f"{path.name} asks for the codec {str(codec)[:40]!r}, which could execute "
                        f"code. Expected plain compression."
                    )


def codecs(value: Any, inside: bool = False) -> Iterator[Any]:
    """Find the names of all codecs in the metadata of a Zarr store."""
    if isinstance(value, dict):
        if inside:
            yield from (value[key] for key in ("id", "name") if key in value)
        for key, item in value.items():
            at = key in ("filters", "compressor", "codecs", "index_codecs", "compressors")
            yield from codecs(item, at)
    elif isinstance(value, list):
        for item in value:
            if inside and isinstance(item, str):
                yield item
            else:
                yield from codecs(item, inside)
