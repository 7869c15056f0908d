"""Which reader for which object: by its type, its suffix and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, listed
from cvstats.io import files, folders, saving
from cvstats.io.asked import Asked
from cvstats.io.collected import (
    Saved,
    Several,
    flattened,
    is_saved,
    named,
    saved_logs,
    together,
)  # fmt: skip
from cvstats.io.columns import turned
from cvstats.io.formats import CONTAINERS, FORMATS, SKLEARN, refuse_unused
from cvstats.io.paths import path_of, refuse_packed, refuse_stream
from cvstats.io.tidy import Tidy
from cvstats.io.tools import inspect_ai, lm_eval
from cvstats.io.words import guarded

__all__ = ["read"]


def read(source: Any, name: str | None, asked: Asked) -> tuple[str, Any]:
    """Read anything: the name of its format, and a tidy table or a log that was saved."""
    container = name if name in CONTAINERS else None
    tool = None if name in CONTAINERS else name
    found = loaded(source, container, tool)
    if is_saved(found):
        log = found.log if isinstance(found, Saved) else found
        if tool is not None:
            raise LogError(f"this file is a log of cvstats, not of {tool}. Leave format= out.")
        refuse_unused("a saved log", asked, ("truth", "prediction"))
        return "cvstats", log
    if isinstance(found, Several) and any(map(is_saved, found.parts.values())):
        refuse_unused("a saved log", asked, ("truth", "prediction"))
        return "cvstats", saved_logs(found, tool)
    if tool is None and is_log(found) and asked == Asked(data=asked.data):
        return "cvstats", found
    if isinstance(found, Several):
        return together(read_each(flattened(found), tool, asked), found, asked)
    tool = recognised(found, tool)
    refuse_unused(f"format={tool!r}", asked, FORMATS[tool].takes)
    with guarded(f"this object (as format={tool!r})"):
        tidy = FORMATS[tool].reader(as_table(found, tool), asked)
        tidy = replace(tidy, takes=FORMATS[tool].takes)
        return tool, turned(tidy, asked.higher_is_better, asked.path) if tool == "columns" else tidy


def is_log(found: Any) -> bool:
    """Whether a table is a log as it stands: levels as its index, and numbers."""
    return (
        isinstance(found, pd.DataFrame)
        and set(found.index.names) <= set(LEVELS)
        and found.size > 0
        and all(pd.api.types.is_numeric_dtype(dtype) for dtype in found.dtypes)
        and not {"y_true", "truth", *LEVELS} & set(found.columns)
    )


def loaded(source: Any, container: str | None, tool: str | None) -> Any:
    """Load a file; leave an object as it is."""
    if isinstance(source, (str, PathLike)):
        return from_path(path_of(source), container, tool)
    if isinstance(source, Mapping) and len(source) and not is_result(source):
        kinds: tuple[Any, ...] = (str, PathLike, pd.DataFrame, Mapping)
        if tool in ("cross_val_predict", "autogluon", *SKLEARN):
            kinds = (*kinds, np.ndarray, pd.Series, list)
        if all(isinstance(part, kinds) for part in source.values()):
            inner = {str(key): loaded(part, container, tool) for key, part in source.items()}
            return Several(True, inner)
    if isinstance(source, (list, tuple)) and len(source):
        if all(isinstance(part, (str, PathLike)) for part in source):
            paths = [path_of(part) for part in source]
            return Several(False, {str(p): from_path(p, container, tool) for p in paths})
        if all(isinstance(part, Mapping) for part in source):
            if lm_eval.is_sample(source[0]):
                with guarded("these samples"):
                    return lm_eval.of_records(source)
            return pd.DataFrame.from_records(list(source))
    if isinstance(source, (list, tuple)) and not len(source):
        raise LogError(
            f"the {type(source).__name__} is empty. Expected paths of files, or records of a table."
        )
    return source


def is_result(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping is one result and not several by name."""
    return "fit_time" in source or "estimator" in source or inspect_ai.is_log(source)


def from_path(path: Path, container: str | None, tool: str | None) -> Any:
    """Load one file, or a folder of them."""
    if path.is_dir() and container in (None, "parquet") and path.suffix != ".zarr":
        return from_folder(path, tool)
    refuse_stream(path)
    refuse_packed(path, False)  # x.csv.gz, which is of no kind
    kind = container or files.kind_of(path)
    refuse_packed(path, kind in files.TEXT)
    if not path.exists():
        raise LogError(f"{path.name} is not there. Expected the path of a file.")
    if kind == "eval":
        with guarded(path.name):
            return inspect_ai.of_archive(path)
    if tool is None or kind in ("netcdf", "zarr"):
        log = saving.load(path, kind)
        if log is not None:
            return Saved(log)
    with guarded(path.name):
        if kind == "json":
            document = files.json_of(path)
            inspect_ai.refuse_head(document)
            if not is_mapping_of_columns(document) and not inspect_ai.is_log(document):
                raise LogError(
                    f"{path.name} is neither a log of inspect nor an object of columns. Expected "
                    f"one of these, or JSONL."
                )
            return document
        if kind == "jsonl":
            first = next(files.records(path), {})
            if tool == "lm-eval" or (tool is None and lm_eval.is_sample(first)):
                return lm_eval.of_file(path)
        return files.table_of(path, kind)


def from_folder(folder: Path, tool: str | None) -> Any:
    """Load the rows of one log from several files, or the samples of several models."""
    parts = [] if tool == "lm-eval" else folders.parquet_in(folder)
    if not parts:
        return Several(True, dict(folders.samples_in(folder, tool == "lm-eval")))
    saved: set[bool] = set()

    def load(path: Path) -> Any:
        found = from_path(path, "parquet", tool)
        saved.add(isinstance(found, Saved))
        return found.log if isinstance(found, Saved) else found

    table = folders.rows_of(folder, parts, load)
    return Saved(table) if saved == {True} else table


def is_mapping_of_columns(value: Any) -> bool:
    """Whether a mapping holds columns."""
    return isinstance(value, Mapping) and (
        len(value) > 0
        and all(
            isinstance(v, (list, tuple, range, np.ndarray, pd.Series, pd.Index))
            for v in value.values()
        )
    )


def recognised(found: Any, tool: str | None) -> str:
    """Choose the reader, by name or by what there is."""
    if tool in SKLEARN:
        result = isinstance(found, Mapping) and is_result(found)
        return "cross_validate" if result else "cross_val_predict"
    if tool is not None:
        return tool
    if isinstance(found, Mapping) and ("fit_time" in found or "estimator" in found):
        return "cross_validate"
    if isinstance(found, Mapping) and inspect_ai.is_log(found):
        return "inspect"
    if isinstance(found, np.ndarray):
        return "cross_val_predict"
    table = as_table(found, "columns")
    names = {str(name) for name in (*table.columns, *table.index.names)}
    for name, form in FORMATS.items():
        if any(known <= names for known in form.known):
            return name
    return "columns"


def as_table(found: Any, tool: str) -> Any:
    """Turn what was loaded into what the reader takes."""
    if tool in ("cross_validate", "cross_val_predict", "autogluon"):
        if tool == "cross_validate" and not isinstance(found, Mapping):
            raise LogError(
                f"a {type(found).__name__} is no result of cross_validate. Expected its dict."
            )
        if tool == "autogluon" and not isinstance(found, (pd.Series, pd.DataFrame)):
            raise LogError(
                f"a {type(found).__name__} holds no out-of-fold predictions. Expected what "
                f"predict_oof() or predict_proba_oof() returned."
            )
        return found
    if isinstance(found, pd.DataFrame):
        return found
    if isinstance(found, pd.Series):
        return found.to_frame("loss" if found.name is None else found.name)
    if isinstance(found, Mapping):
        if inspect_ai.is_log(found):
            return inspect_ai.of_log(found)
        inspect_ai.refuse_head(found)
        if is_mapping_of_columns(found):
            lengths = {str(name): len(values) for name, values in found.items()}
            if len(set(lengths.values())) > 1:
                raise LogError(
                    f"the columns have different lengths: "
                    f"{listed(f'{name!r} {n:,}' for name, n in lengths.items())}. Expected one."
                )
            return pd.DataFrame(
                {
                    name: np.asarray(v) if not isinstance(v, (pd.Series, pd.Index)) else v.array
                    for name, v in found.items()
                }
            )
    raise unknown(found)


def unknown(found: Any) -> LogError:
    """Words for an object that no reader takes, and the call that makes one of it."""
    library = type(found).__module__.partition(".")[0]
    kind = (
        type(found).__name__
        if library in ("builtins", "_io")
        else f"{library} {type(found).__name__}"
    )
    ways = {
        "to_pandas": "Make it one of pandas: read_log(table.to_pandas(), …).",
        "compute": "Bring it into memory: read_log(table.compute(), …).",
        "read": "Pass the path of the file, or a table: pandas.read_csv(file).",
    }
    way = next((f" {words}" for name, words in ways.items() if hasattr(found, name)), "")
    return LogError(
        f"a {kind} cannot be read. Expected a path, a table of pandas, a mapping of columns, or "
        f"the result of scikit-learn's cross_validate.{way}"
    )


def read_each(found: Several, tool: str | None, asked: Asked) -> list[tuple[str, Tidy]]:
    """Read each of several objects: the name of its format, and its table with a model."""
    read: list[tuple[str, Tidy]] = []
    for key, part in found.parts.items():
        which = recognised(part, tool)
        form = FORMATS[which]
        refuse_unused(f"format={which!r}", asked, form.takes)
        with guarded(f"{Path(key).name} (as format={which!r})"):
            tidy = form.reader(as_table(part, which), asked)
        read.append((which, named(replace(tidy, takes=form.takes), key, found.named, which)))
    return read
