"""Parquet files of any length: a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from cvstats.containers.batches import CellMoments
from cvstats.containers.scanning import (
    Parts,
    added,
    check_stacked,
    columns_of,
    part_of,
    whole_of,
)
from cvstats.errors import LogError, NoSuchFile

__all__ = ["BATCH", "scan_parquet"]

K = TypeVar("K", bound=CellMoments)

BATCH = 1 << 20
"""Rows that are read together."""

PLAIN = {"float", "double", *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))}
"""Arrow's names of the types that numpy has too."""


def scan_parquet(
    kind: type[K],
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    *,
    model: str | None,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
    batch_size: int,
    progress: Callable[[int], object] | None,
) -> K:
    """Read a file, all files of a folder, or several of these, a batch of rows at a time."""
    files = files_of(path)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise LogError(
            f"batch_size={batch_size!r} is out of range. Expected a whole number of rows from 1 on."
        )
    try:
        parquet = import_module("pyarrow.parquet")
        arrow = import_module("pyarrow.lib")
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow. Install it: pip install 'cvstats[io]'."
        ) from error

    def opened(file: Path) -> Any:
        try:
            return parquet.ParquetFile(file, pre_buffer=False)
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise unreadable(file) from error

    with opened(files[0]) as first:
        known = first.schema_arrow.names
    columns = columns_of(known, loss, asked, by, model)
    check_stacked(columns, pairs, missing)

    def batches() -> Iterator[dict[str, Any]]:
        for file in files:  # one by one: a scan of all would read far ahead
            with opened(file) as table:
                lost = [name for name in columns.names if name not in table.schema_arrow.names]
                if lost:
                    raise LogError(
                        f"{os.fspath(file)!r} has no column {lost[0]!r}, and {files[0].name!r} "
                        f"has one. Expected the same columns in each file."
                    )
                rows = table.iter_batches(batch_size=batch_size, columns=columns.names)
                try:
                    for batch in rows:
                        yield {name: column_of(batch.column(name)) for name in columns.names}
                except (arrow.ArrowException, OSError) as error:
                    raise unreadable(file) from error

    total: Parts[K] = {}
    for batch in ahead(batches()):
        total = added([total, part_of(kind, batch, columns, by, pairs, missing)])
        if progress is not None:
            progress(len(batch[columns.names[0]]))
    return whole_of(total)


def files_of(path: object) -> list[Path]:
    """List the files of one path or pattern, or of several, each of them once."""
    paths: list[object] = [path]
    if isinstance(path, Sequence) and not isinstance(path, str | bytes):
        paths = list(path)
    if not paths:
        raise LogError("the list of files is empty. Expected the path of a Parquet file in it.")
    files = [file for one in paths for file in files_at(one)]
    seen: set[Path] = set()
    for file in files:
        if file.resolve() in seen:
            raise LogError(
                f"the file {os.fspath(file)!r} is named twice, and its rows would count twice. "
                f"Expected each file once."
            )
        seen.add(file.resolve())
    return files


def files_at(path: object) -> list[Path]:
    """List the one file, what a pattern matches, or a folder by name without hidden files."""
    if not isinstance(path, str | os.PathLike):
        raise LogError(
            f"{path!r} is no path. Expected the name of a Parquet file, or of a folder of them, as "
            f"in scan_parquet('log.parquet'), or a list of these."
        )
    where = Path(os.fsdecode(path))
    if where.is_file():
        return [where]
    if not where.exists():
        found = sorted(glob(os.fsdecode(path), recursive=True))
        if found:
            return [file for name in found for file in files_at(name)]
        raise NoSuchFile(
            f"there is no file or folder {os.fspath(where)!r}. Expected a Parquet file, a folder "
            f"of them, or a pattern such as 'logs/*.parquet'."
        )
    files = [file for file in sorted(where.rglob("*")) if file.is_file()]
    hidden = ("_", ".")
    files = [
        file
        for file in files
        if not any(part.startswith(hidden) for part in file.relative_to(where).parts)
    ]
    parquet = [file for file in files if file.suffix in (".parquet", ".pq")] or files
    if not parquet:
        raise LogError(
            f"the folder {os.fspath(where)!r} holds no files. Expected Parquet files in it."
        )
    return parquet


def unreadable(file: Path) -> LogError:
    """Words for a file that is no Parquet file, or only the beginning of one."""
    size = file.stat().st_size if file.exists() else 0
    found = "it is empty" if size == 0 else f"its {size:,} bytes are none, or cut short"
    return LogError(
        f"{os.fspath(file)!r} cannot be read as a Parquet file: {found}. Expected a whole Parquet "
        f"file; for other files there is cvstats.read_log."
    )


def column_of(column: Any) -> Any:
    """Take plain numbers as they lie in memory; whatever else as pandas has it."""
    if column.null_count == 0 and str(column.type) in PLAIN:
        return column.to_numpy()
    return column.to_pandas()


def ahead(parts: Iterator[Any]) -> Iterator[Any]:
    """Read the next part while the last one is at work."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = pool.submit(next, parts, None)
        while (part := waiting.result()) is not None:
            waiting = pool.submit(next, parts, None)
            yield part
