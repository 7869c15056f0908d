"""Parquet files of any length: a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from cvstats.errors import LogError
from cvstats.io.arrow import ParquetFile, list_files
from cvstats.io.paths import import_extra
from cvstats.large.moments import CellMoments
from cvstats.large.scanning import Parts, added, check_stacked, columns_of, part_of, whole_of
from cvstats.log.columns import TableColumns
from cvstats.loss_functions import LOSSES, losses
from cvstats.metrics import METRICS

K = TypeVar("K", bound=CellMoments)

BATCH = 1 << 20
"""Rows that are read together."""

PLAIN = {"float", "double", *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))}
"""Arrow's names of the types that numpy has too."""


def scan_parquet(
    kind: type[K],
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    loss: Any,
    asked: Mapping[str, str | None],
    *,
    truth: str | None,
    prediction: str | Sequence[str] | None,
    model: str | None,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
    batch_size: int,
    progress: Callable[[int], object] | None,
) -> K:
    """Read a file, all files of a folder, or several of these, a batch of rows at a time."""
    total: Parts[K] = {}
    if predicted := truth is not None or prediction is not None:
        check_predicted(loss, truth, prediction)

    def find(known: list[str]) -> TableColumns:
        values = loss if prediction is None else prediction
        columns = columns_of(known, values, asked, by, model, truth)
        check_stacked(columns, pairs, missing)
        return columns

    for batch, columns in scan_tables(path, find, batch_size, progress):
        attrs: Mapping[Hashable, Any] = {}
        if predicted:
            models = columns.values[1:]
            frame = pd.DataFrame({name: batch[name] for name in columns.values}, copy=False)
            computed = losses(frame, truth, list(models), loss)
            batch |= dict(computed.items())
            columns, attrs = replace(columns, values=models), computed.attrs
        total = added([total, part_of(kind, batch, columns, by, pairs, missing, attrs)])
    return whole_of(total)


def check_predicted(loss: Any, truth: str | None, prediction: str | Sequence[str] | None) -> None:
    """Refuse predictions of which no loss can be computed a batch at a time."""
    if truth is None or prediction is None:
        raise LogError(
            "losses are computed of a truth and predictions, and one of them is not named. "
            "Expected both truth= and prediction=, or neither where the file holds losses."
        )
    if not callable(loss) and loss not in LOSSES:
        way = (
            " Metrics of labels are counted by cvstats.scan_predictions." if loss in METRICS else ""
        )
        raise LogError(
            f"loss={loss!r} cannot be computed of a batch of predictions. Expected a function, or "
            f"one of {', '.join(map(repr, LOSSES))}.{way}"
        )


def scan_tables(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    find: Callable[[list[str]], TableColumns],
    batch_size: int,
    progress: Callable[[int], object] | None,
) -> Iterator[tuple[dict[str, Any], TableColumns]]:
    """Read some columns of files, a batch of rows at a time; ``find`` chooses the columns."""
    files = list_files(path)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise LogError(
            f"batch_size={batch_size!r} is out of range. Expected a whole number of rows from 1 on."
        )
    with open_file(files[0].path) as first:
        known = [*first.schema_arrow.names, *files[0].keys]
    columns = find(list(dict.fromkeys(known)))
    for batch in read_ahead(batches_of(files, columns, batch_size)):
        yield batch, columns
        if progress is not None:
            progress(len(batch[columns.names[0]]))


def open_file(path: Path) -> Any:
    """Open a Parquet file."""
    arrow, parquet = (
        import_extra("pyarrow.lib", "Parquet"),
        import_extra("pyarrow.parquet", "Parquet"),
    )
    try:
        return parquet.ParquetFile(path, pre_buffer=False)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise unreadable(path) from error


def batches_of(
    files: Sequence[ParquetFile], columns: TableColumns, batch_size: int
) -> Iterator[dict[str, Any]]:
    """Read the files one by one, some rows at a time: a scan of all would read far ahead."""
    arrow = import_extra("pyarrow.lib", "Parquet")
    for file in files:
        with open_file(file.path) as table:
            stored = [name for name in columns.names if name in table.schema_arrow.names]
            lost = [name for name in columns.names if name not in (*stored, *file.keys)]
            if lost:
                raise LogError(
                    f"{os.fspath(file.path)!r} has no column {lost[0]!r}, and "
                    f"{files[0].path.name!r} has one. Expected the same columns in each file."
                )
            keys = {name: file.keys[name] for name in columns.names if name not in stored}
            try:
                for batch in table.iter_batches(batch_size=batch_size, columns=stored):
                    rows = {name: column_of(batch.column(name)) for name in stored}
                    constant = {name: repeated(label, len(batch)) for name, label in keys.items()}
                    yield {**rows, **constant}
            except (arrow.ArrowException, OSError) as error:
                raise unreadable(file.path) from error


def repeated(label: Any, times: int) -> pd.Categorical:
    """Give each row the same label, or none."""
    known: pd.Index = pd.Index([] if label is None else [label])
    codes = np.full(times, len(known) - 1, dtype=np.int8)
    column: pd.Categorical = pd.Categorical.from_codes(codes, categories=known)
    return column


def unreadable(file: Path) -> LogError:
    """Word the error for a file that is not a Parquet file, or only the beginning of one."""
    size = file.stat().st_size if file.exists() else 0
    found = "it is empty" if size == 0 else f"its {size:,} bytes are none, or cut short"
    return LogError(
        f"{os.fspath(file)!r} cannot be read as a Parquet file: {found}. Expected a whole Parquet "
        f"file; cvstats.read_log reads other files."
    )


def column_of(column: Any) -> Any:
    """View plain numbers without a copy; make any other column one of pandas."""
    if column.null_count == 0 and str(column.type) in PLAIN:
        return column.to_numpy()
    return column.to_pandas()


def read_ahead(parts: Iterator[Any]) -> Iterator[Any]:
    """Read the next part while the last one is computed."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = pool.submit(next, parts, None)
        while (part := waiting.result()) is not None:
            waiting = pool.submit(next, parts, None)
            yield part
