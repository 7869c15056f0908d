"""What a path or an object holds: a table, the object of a tool, a saved log, several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io import text as text_files
from cvstats.io.formats import (
    SKLEARN,
    is_inspect_log,
    is_lm_eval_sample,
    is_result,
    is_search,
    is_skore,
)
from cvstats.io.paths import (
    kind_of,
    no_such_file,
    path_of,
    raise_as_log_error,
    refuse_packed,
    refuse_stream,
)
from cvstats.io.save import load_saved, restore_dataset
from cvstats.io.table import ReadOptions
from cvstats.io.text import TextOptions
from cvstats.log.tables import from_arrow, is_arrow

PARQUET = (".parquet", ".pq")
SPLIT_TABLE = {"columns", "data", "index"}
"""The keys of a table as JSON with ``orient="split"``."""


@dataclass(frozen=True)
class SavedLog:
    """A log written by `save_log`."""

    log: Any


@dataclass(frozen=True)
class SeveralObjects:
    """Objects or files of several models; ``named`` if a mapping names them."""

    named: bool
    parts: dict[str, Any]


def load(source: Any, options: ReadOptions) -> Any:
    """Load a file, or several by name; return other objects unchanged."""
    if isinstance(source, (str, PathLike)):
        return load_path(path_of(source), options)
    if is_arrow(source):
        return from_arrow(source)
    compared = getattr(source, "reports_", None)  # for a comparison by skore
    if isinstance(compared, Mapping):
        return SeveralObjects(True, {str(name): part for name, part in compared.items()})
    if isinstance(source, Mapping) and len(source):
        result = is_result(source) or is_inspect_log(source) or is_search(source)
        kinds: tuple[Any, ...] = (str, PathLike, pd.DataFrame, Mapping)
        if options.tool in ("cross_val_predict", "autogluon", *SKLEARN):
            kinds = (*kinds, np.ndarray, pd.Series, list)
        known = (isinstance(p, kinds) or is_skore(p) or is_arrow(p) for p in source.values())
        if not result and all(known):
            parts = {str(key): load(part, options) for key, part in source.items()}
            return SeveralObjects(True, parts)
    if isinstance(source, (list, tuple)):
        if not len(source):
            raise LogError(
                f"the {type(source).__name__} is empty. Expected paths of files, or records of a "
                f"table."
            )
        if all(isinstance(part, (str, PathLike)) for part in source):
            paths = [path_of(part) for part in source]
            return SeveralObjects(False, {str(path): load_path(path, options) for path in paths})
        if all(isinstance(part, Mapping) for part in source):
            if is_lm_eval_sample(source[0]):
                from cvstats.io.tools.llm import of_records

                with raise_as_log_error("these samples"):
                    return of_records(source)
            return pd.DataFrame.from_records(list(source))
    return source


def load_path(path: Path, options: ReadOptions) -> Any:
    """Load one file, or a folder of them."""
    container, tool, text = options.container, options.tool, options.text
    if path.is_dir() and container in (None, "parquet") and path.suffix != ".zarr":
        return load_folder(path, tool)
    refuse_stream(path)
    refuse_packed(path)
    kind = container or kind_of(path)
    if not path.exists():
        raise no_such_file(path.name)
    if text.given() and kind not in ("csv", "tsv"):
        raise not_text(text, path.name)
    with raise_as_log_error(path.name):
        if kind in ("netcdf", "zarr"):
            from cvstats.io import netcdf

            dataset, header = netcdf.read_dataset(path, kind)
            if header is None:
                return netcdf.foreign(dataset)
            return SavedLog(restore_dataset(dataset, header))
        saved_log = load_saved(path, kind) if tool is None else None
        if saved_log is not None and text.given():
            raise not_text(text, "a saved log")
        if saved_log is not None:
            return SavedLog(saved_log)
        return load_table(path, kind, tool, text)


def not_text(text: TextOptions, what: str) -> LogError:
    """Make the error for an option that applies only to CSV files."""
    return LogError(f"{text.given()[0]}= applies to CSV files, but this is {what}. Omit it.")


def load_table(path: Path, kind: str, tool: str | None, text: TextOptions) -> Any:
    """Load a file written by another program."""
    match kind:
        case "csv" | "tsv":
            return text_files.read_csv(path, "," if kind == "csv" else "\t", text)
        case "jsonl":
            first = next(text_files.records(path), {})
            if tool == "lm-eval" or (tool is None and is_lm_eval_sample(first)):
                from cvstats.io.tools.llm import of_file

                return of_file(path)
            return text_files.read_jsonl(text_files.records(path))
        case "parquet":
            from cvstats.io.arrow import read_parquet

            return read_parquet(path)
        case "arff":
            return text_files.read_arff(path)
        case "eval":
            from cvstats.io.tools.llm import of_archive

            return of_archive(path)
    document = text_files.read_json(path)
    refuse_head(document)
    if not is_mapping_of_columns(document) and not is_inspect_log(document):
        raise LogError(
            f"{path.name} is neither an inspect log nor an object of columns. Expected one of "
            "these, or JSONL."
        )
    return document


def refuse_head(value: object) -> None:
    """Refuse a log of inspect without samples, and the means of lm-evaluation-harness."""
    if isinstance(value, Mapping) and {"results", "lm_eval_version"} <= set(value):
        raise LogError(
            "these are means of lm-evaluation-harness, not samples. Expected the files "
            "samples_*.jsonl that lm_eval --log_samples writes beside it: pass their folder to "
            "read_log."
        )
    if isinstance(value, Mapping) and {"eval", "status"} <= set(value) and "samples" not in value:
        raise LogError(
            "this is the header of an inspect log, without its samples. Expected the whole log: "
            "read the file itself, or read_eval_log(path) without header_only=True."
        )


def load_folder(folder: Path, tool: str | None) -> Any:
    """Load the rows of one log from several files, or the samples of several models."""
    name = folder.name or str(folder)
    entries = [] if tool == "lm-eval" else [
        entry for entry in folder.iterdir() if not entry.name.startswith(("_", "."))
    ]  # fmt: skip
    # Not deeper than the folders of a partitioned log: this may be a home directory.
    if any(e.suffix.lower() in PARQUET for e in entries if e.is_file()) or any(
        "=" in entry.name for entry in entries if entry.is_dir()
    ):
        with raise_as_log_error(name):
            return load_parquet_folder(folder)
    from cvstats.io.tools.llm import load_runs

    found = load_runs(folder, tool)
    if found is None:
        have = "no samples_*.jsonl" if tool == "lm-eval" else (
            "neither Parquet files nor samples_*.jsonl of lm_eval --log_samples, nor .eval files"
        )  # fmt: skip
        raise LogError(
            f"the folder {name} contains {have}. Expected "
            + ("the output of lm_eval --log_samples." if tool == "lm-eval" else "one of these, or "
               "a file. Parquet files in folders below it are read by cvstats.scan_parquet(path).")
        )  # fmt: skip
    return found if isinstance(found, pd.DataFrame) else SeveralObjects(True, found)


def load_parquet_folder(folder: Path) -> Any:
    """Concatenate the rows of the Parquet files of a folder, with the keys of each."""
    from cvstats.io import arrow

    tables: list[Any] = []
    saved = []
    files = arrow.list_files(folder)
    for file in files:
        found = load_saved(file.path, "parquet")
        saved.append(found is not None)
        table = arrow.read_parquet(file.path) if found is None else found
        if file.keys:
            table = (table.to_frame() if isinstance(table, pd.Series) else table).assign(
                **file.keys
            )
        first = tables[0] if tables else table
        if type(table) is not type(first) or names_in(table) != names_in(first):
            raise LogError(
                f"{file.path.name!r} has {listed(names_in(table))}, but {files[0].path.name!r} "
                f"has {listed(names_in(first))}. Expected the same columns in each file of the "
                "folder: the rows of one log. If each file contains one model, pass the files "
                "by name."
            )
        tables.append(table)
    whole = pd.concat(tables, ignore_index=isinstance(tables[0].index, pd.RangeIndex))
    return SavedLog(whole) if all(saved) and not files[0].keys else whole


def names_in(table: pd.Series | pd.DataFrame) -> list[str]:
    """List the levels and columns of a table."""
    names = [table.name] if isinstance(table, pd.Series) else list(table.columns)
    return [repr(name) for name in (*table.index.names, *names) if name is not None]


def is_mapping_of_columns(value: Any) -> bool:
    """Whether this is a mapping of columns."""
    kinds = (list, tuple, range, np.ndarray, pd.Series, pd.Index)
    return isinstance(value, Mapping) and 0 < len(value) == sum(
        isinstance(column, kinds) and getattr(column, "ndim", 1) == 1 for column in value.values()
    )
