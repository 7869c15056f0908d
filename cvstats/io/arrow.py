"""Parquet: files of a folder, keys in folder names, tables and saved logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from glob import glob
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import numpy as np
import pandas as pd

from cvstats.errors import LogError, NoSuchFile
from cvstats.io.paths import PARQUET, import_extra, refuse_bomb
from cvstats.io.text import Columns, Header, SavedColumns, parse_header
from cvstats.log.plain import from_plain

NULL_KEY = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose rows have no label."""
READ_TOGETHER = 1 << 20
"""Number of values read together: files with many columns are parsed again each time."""


@dataclass(frozen=True)
class ParquetFile:
    """A file, and the keys in the names of its folders, such as ``fold=0``."""

    path: Path
    keys: dict[str, Any] = field(default_factory=dict)


def list_files(given: object) -> list[ParquetFile]:
    """List the files of one or several paths, folders or patterns, without duplicates."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    paths: list[Any] = [*cast("Sequence[Any]", given)] if several else [given]
    if not paths:
        raise LogError("the list of files is empty. Expected at least one path of a Parquet file.")
    files = [file for path in paths for file in files_at(path)]
    seen: set[Path] = set()
    for file in files:
        real = file.path.resolve()
        if real in seen:
            raise LogError(
                f"the file {os.fspath(file.path)!r} is listed twice, so its rows would count "
                "twice. Expected each file once."
            )
        seen.add(real)
    return with_labels(files, not several and os.path.isdir(os.fsdecode(paths[0])))


def files_at(path: object) -> Iterator[ParquetFile]:
    """List one file, the files of a folder, or those that match a pattern."""
    if not isinstance(path, str | os.PathLike):
        raise LogError(
            f"{path!r} is not a path. Expected the name of a Parquet file, the name of a folder of "
            f"Parquet files, or a list of names, as in scan_parquet('log.parquet')."
        )
    where = Path(os.fsdecode(path))
    if where.is_file():
        yield ParquetFile(where, keys_of(where.parts[:-1]))
    elif where.is_dir():
        yield from files_in(where)
    else:
        found = sorted(glob(os.fsdecode(path), recursive=True))
        if not found:
            raise NoSuchFile(
                f"No such file or folder: {os.fspath(where)!r}. Expected a Parquet file, a "
                "folder of them, or a pattern such as 'logs/*.parquet'."
            )
        for name in found:
            yield from files_at(name)


def files_in(folder: Path) -> Iterator[ParquetFile]:
    """List the files below a folder, except those whose names begin with ``_`` or ``.``."""
    arrow, dataset = import_extra("pyarrow", "Parquet"), import_extra("pyarrow.dataset", "Parquet")
    # With a schema no file needs to be opened.
    every = sorted(map(Path, dataset.dataset(folder, schema=arrow.schema([])).files))
    files = [path for path in every if path.suffix in PARQUET] or every
    if not files:
        raise LogError(
            f"the folder {os.fspath(folder)!r} contains no files. Expected Parquet files in it."
        )
    yield from (ParquetFile(path, keys_of(path.relative_to(folder).parts[:-1])) for path in files)


def keys_of(folders: Sequence[str]) -> dict[str, Any]:
    """Read the keys of a partitioned log from the names of folders, such as ``fold=0``."""
    pairs = (folder.partition("=") for folder in folders if "=" in folder.strip("="))
    return {
        unquote(name): None if value == NULL_KEY else unquote(value) for name, _, value in pairs
    }


def with_labels(files: Sequence[ParquetFile], folder: bool) -> list[ParquetFile]:
    """Convert the labels of a key to integers if all are written as integers.

    Unless one ``folder`` was passed, a key shared by all files is omitted.
    """
    found = {name: {file.keys.get(name) for file in files} for file in files for name in file.keys}
    used = {name: labels for name, labels in found.items() if folder or len(labels) > 1}
    whole = {name for name, labels in used.items() if all(map(is_integer, labels))}
    return [
        ParquetFile(
            file.path, {k: int(v) if k in whole else v for k, v in file.keys.items() if k in used}
        )
        for file in files
    ]


def is_integer(label: str | None) -> bool:
    """Whether a label is written as an integer, without leading zeros."""
    try:
        return label is not None and str(int(label)) == label
    except ValueError:
        return False


def read_parquet(path: Path) -> pd.DataFrame:
    """Read the table of one file, with the index and the attrs that pandas stored."""
    with import_extra("pyarrow.parquet", "Parquet").ParquetFile(path) as file:
        table: pd.DataFrame = file.read().to_pandas()
        table.attrs = find_attrs(file.metadata, path)  # older releases of pyarrow drop them
    return table


def write_parquet(columns: Columns, header: Header, path: Path) -> None:
    """Write a Parquet file with the header in its metadata."""
    arrow, parquet = import_extra("pyarrow", "Parquet"), import_extra("pyarrow.parquet", "Parquet")
    arrays = {
        name: arrow.array(values, type=arrow.string() if values.dtype == object else None)
        for name, values in columns.items()
    }
    table = arrow.table(arrays).replace_schema_metadata({"cvstats": json.dumps(header)})
    parquet.write_table(table, path, compression="zstd")


def find_header(about: Any, path: Path) -> Header | None:
    """Find the header that `write_parquet` wrote in the metadata of a file; None in others."""
    written = (about.metadata or {}).get(b"cvstats")
    return None if written is None else parse_header(written.decode(), path.name)


def find_attrs(about: Any, path: Path) -> dict[Any, Any]:
    """Read the attrs of a log in the metadata of a file of `write_parquet` or of pandas."""
    header = find_header(about, path)
    if header is None:
        attrs: dict[Any, Any] = json.loads((about.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
        return attrs
    return dict(from_plain(header["attrs"]))


def open_parquet(path: Path) -> SavedColumns | None:
    """Open a log written by `write_parquet`; None for any other file."""
    parquet = import_extra("pyarrow.parquet", "Parquet")
    with parquet.ParquetFile(path) as file:
        about, fields = file.metadata, file.schema_arrow.names
    refuse_bomb(path.name, path.stat().st_size, 8 * about.num_rows * about.num_columns)
    header = find_header(about, path)
    if header is None:
        return None
    places = {name: at for at, name in enumerate(fields)}
    width = max(1, READ_TOGETHER // max(1, about.num_rows))

    @lru_cache(maxsize=1)
    def read_block(at: int) -> Any:
        with parquet.ParquetFile(path) as file:
            return file.read(columns=fields[at : at + width])

    def read(name: str) -> np.ndarray[Any, Any]:
        at = places[name] // width * width
        values: np.ndarray[Any, Any] = read_block(at).column(name).to_numpy()
        return values

    return read, header
