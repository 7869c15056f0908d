"""Folders: the Parquet files of one log, or the samples of lm-evaluation-harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io import files
from cvstats.io.tools import lm_eval
from cvstats.io.words import guarded

__all__ = ["parquet_in", "rows_of", "samples_in"]


def parquet_in(folder: Path) -> list[Path]:
    """List the Parquet files of a folder; hidden ones, as Spark leaves them, are no data."""
    return [
        file
        for file in sorted(folder.iterdir())
        if files.SUFFIXES.get(file.suffix.lower()) == "parquet"
        and file.is_file() and not file.name.startswith(("_", "."))
    ]  # fmt: skip


def rows_of(folder: Path, parts: list[Path], load: Callable[[Path], Any]) -> Any:
    """Put the rows of several files below each other."""
    tables: list[Any] = []
    cells = 0
    for path in parts:
        table = load(path)
        first = tables[0] if tables else table
        if type(table) is not type(first) or names_in(table) != names_in(first):
            raise LogError(
                f"{path.name!r} has {listed(names_in(table))} and {parts[0].name!r} "
                f"{listed(names_in(first))}. Expected the same columns in each file of the folder: "
                f"the rows of one log. Where each file holds a model, name the files."
            )
        tables.append(table)
        cells += table.size
        if cells > files.MOST_CELLS:
            raise LogError(
                f"the files of {name_of(folder)} hold over {files.MOST_CELLS:,} values. Read them "
                f"in batches: cvstats.scan_parquet(path)."
            )
    with guarded(name_of(folder)):
        return pd.concat(tables, ignore_index=isinstance(tables[0].index, pd.RangeIndex))


def names_in(table: pd.Series | pd.DataFrame) -> list[str]:
    """Name the levels and columns of a table."""
    columns = [table.name] if isinstance(table, pd.Series) else list(table.columns)
    return [repr(name) for name in (*table.index.names, *columns) if name is not None]


def samples_in(folder: Path, told: bool) -> Mapping[str, pd.DataFrame]:
    """Read the samples of each model; below folders of folders only where one says what it is."""
    parts = lm_eval.files_of(folder, told)
    if not parts:
        have = "no samples_*.jsonl" if told else (
            "neither Parquet files nor samples_*.jsonl of lm_eval --log_samples"
        )  # fmt: skip
        raise LogError(
            f"the folder {name_of(folder)} holds {have}. Expected "
            + ("the output of lm_eval --log_samples." if told else "one of these, or a file. "
               "Parquet files in folders below it are read by cvstats.scan_parquet(path).")
        )  # fmt: skip
    with guarded(name_of(folder)):
        return {model: lm_eval.newest(folder, tasks) for model, tasks in parts.items()}


def name_of(folder: Path) -> str:
    """Name a folder, also one such as ``.``, which has no name."""
    return folder.name or str(folder)
