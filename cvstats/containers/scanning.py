"""Logs that are tables too long for memory: Parquet files, and frames of dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from cvstats.chunked import Panels
from cvstats.containers.frames import FrameLabels, numbers
from cvstats.containers.kept import Kept, kept_of
from cvstats.containers.log import Log
from cvstats.containers.reading import unread
from cvstats.design import LEVELS, Design, Level
from cvstats.errors import LogError, listed
from cvstats.types import Labels

__all__ = ["Columns", "columns_of", "scan_dask", "scan_parquet"]

K = TypeVar("K", bound=Kept)

BATCH = 1 << 20
"""Rows that are read together."""

FAN = 8

PLAIN = {"float", "double", *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))}
"""Arrow's names of the types that numpy has too."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold losses, and which the levels."""

    losses: tuple[str, ...]
    single: bool
    levels: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [*self.levels.values(), *self.losses]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table as a log: levels by code, losses by column."""

    levels: Mapping[str, Level]
    losses: Mapping[str, Any]
    single: bool


@unread.register
def _(losses: Batch, also: object = None) -> Log:
    """Read a batch: nothing is sorted, and no index is made."""
    names = list(losses.losses)
    size = len(losses.losses[names[0]])
    axis = None if losses.single else pd.Index(names, tupleize_cols=False)
    panels = Panels(tuple(column[:, None] for column in losses.losses.values()))
    return Log(Design(losses.levels, size), panels, FrameLabels([*names], axis))


def columns_of(
    known: Sequence[str],
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    by: str | Sequence[str] | None,
) -> Columns:
    """Find losses and levels among the columns of a table, and what else ``by`` names.

    Raises
    ------
    LogError
        If a column is missing or stands for two things, or no level is found.
    """
    losses = (loss,) if isinstance(loss, str) else tuple(loss)
    levels = {
        level: column or level
        for level, column in asked.items()
        if column is not None or (level in known and level not in losses)
    }
    for name in () if by is None else (by,) if isinstance(by, str) else by:
        levels.setdefault(name, name)
    named = [*losses, *levels.values()]
    lost = [name for name in named if name not in known]
    if lost or not losses:
        raise LogError(
            f"there is no column {lost[0] if lost else ''!r}. Expected some of "
            f"{listed(map(repr, known))}: name them, as in loss='squared_error', fold='cv_split'."
        )
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise LogError(f"the column {twice[0]!r} is named twice. Expected one part for each.")
    if not levels:
        raise LogError(
            f"no level of a loss log was found among the columns {listed(map(repr, known))}. "
            f"Expected some of {', '.join(LEVELS)}: name the columns, as in fold='cv_split'."
        )
    if "model" in known and "model" not in named:
        raise LogError(
            "the table has a column 'model': its models stand below each other, and what they "
            "share may lie in different batches. Expected a column of losses for each model. "
            "Rename that column if it is something else."
        )
    return Columns(losses, isinstance(loss, str), levels)


# --- codes of a column ----------------------------------------------------------------------------


def level_of(column: Any) -> Level:
    """Give the labels of a column numbers; whole numbers close together are their own."""
    values = getattr(column, "array", column)
    if isinstance(values, pd.Categorical):
        return Level(values.categories, np.asarray(values.codes))
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(column):
        whole = np.asarray(column)
        low, high = int(whole.min()), int(whole.max())
        most = max(4 * len(whole), 1 << 10)
        if low >= 0 and high < most and dtype.kind == "i":
            return Level(range(high + 1), whole)
        if high - low < most:
            near = (whole - whole.dtype.type(low)).astype(np.int32)
            return Level(range(low, high + 1), near)
    codes, names = pd.factorize(column)
    return Level(as_labels(names), codes)


def as_labels(names: Any) -> Labels:
    """Make an index of labels, whatever array pandas gives."""
    return names if isinstance(names, pd.Index) else pd.Index(names, tupleize_cols=False)


def batch_of(table: Mapping[str, Any], columns: Columns) -> Batch:
    """Take some rows of a table as a log."""
    levels = {level: level_of(table[name]) for level, name in columns.levels.items()}
    losses = {
        name: numbers(pd.Series(table[name], name=name, copy=False)) for name in columns.losses
    }
    return Batch(levels, losses, columns.single)


def part_of(
    kind: type[K],
    table: Mapping[str, Any],
    columns: Columns,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
) -> K | None:
    """Compute the moments of some rows; None where there are none."""
    if len(table[columns.names[0]]) == 0:
        return None
    return kept_of(kind, batch_of(table, columns), by, pairs, missing)


def added(parts: Sequence[K | None]) -> K | None:
    """Add up what is there."""
    known = [part for part in parts if part is not None]
    return reduce(lambda one, two: one + two, known) if known else None


def there(part: K | None) -> K:
    """Refuse a table without rows."""
    if part is None:
        raise LogError("the log is empty. Expected at least one loss.")
    return part


# --- Parquet --------------------------------------------------------------------------------------


def scan_parquet(
    kind: type[K],
    path: str | os.PathLike[str],
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    *,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
    batch_size: int,
    progress: Callable[[int], object] | None,
) -> K:
    """Read a file, or all files of a folder, a batch of rows at a time."""
    try:
        parquet = import_module("pyarrow.parquet")
        datasets = import_module("pyarrow.dataset")
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow. Install it: pip install 'cvstats[io]'."
        ) from error
    table = datasets.dataset(os.fspath(path), format="parquet")
    columns = columns_of(table.schema.names, loss, asked, by)

    def batches() -> Iterator[dict[str, Any]]:
        for file in table.files:  # one by one: a scan of all would read far ahead
            with parquet.ParquetFile(file, pre_buffer=False) as opened:
                for batch in opened.iter_batches(batch_size=batch_size, columns=columns.names):
                    yield {name: column_of(batch.column(name)) for name in columns.names}

    total: K | None = None
    for batch in ahead(batches()):
        total = added([total, part_of(kind, batch, columns, by, pairs, missing)])
        if progress is not None:
            progress(len(batch[columns.names[0]]))
    return there(total)


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


# --- dask -----------------------------------------------------------------------------------------


def scan_dask(
    kind: type[K],
    frame: Any,
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    *,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
) -> Any:
    """Make delayed moments of a dask frame: of each partition, and a tree of sums."""
    try:
        from dask.delayed import delayed
    except ImportError as error:
        raise ImportError("dask frames need dask. Install it: pip install 'cvstats[dask]'.") from (
            error
        )
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise LogError(
            f"a {type(frame).__name__} is no dask DataFrame. Expected one, as of "
            f"dask.dataframe.read_parquet; cvstats.Moments.of_log takes pandas and xarray."
        )
    columns = columns_of([*map(str, frame.columns)], loss, asked, by)
    work = delayed(part_of, pure=True)
    add = delayed(added, pure=True)
    parts = [
        work(kind, part, columns, by, pairs, missing) for part in frame[columns.names].to_delayed()
    ]
    while len(parts) > 1:
        parts = [add(parts[at : at + FAN]) for at in range(0, len(parts), FAN)]
    return delayed(there, pure=True)(parts[0])
