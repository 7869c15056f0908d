"""Logs to files and back: what a pandas or xarray object is, beside its plain columns."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.errors import LogError, listed
from cvstats.io import arrays, stores
from cvstats.io.coding import Coded, index_of, numbered
from cvstats.io.encoding import decode, encode, from_plain, to_plain
from cvstats.io.files import SUFFIXES
from cvstats.io.replacing import replacing, written
from cvstats.io.words import guarded

__all__ = ["load", "save"]

VERSION = 1
TEXT = ("csv", "jsonl")
KINDS = ("csv", "jsonl", "parquet", "netcdf", "zarr")


def save(log: object, path: Path) -> None:
    """Write a log; the suffix of the path says how."""
    kind = kind_to_write(path)
    if isinstance(log, (xr.DataArray, xr.Dataset)):
        if kind not in ("netcdf", "zarr"):
            raise LogError(
                f"an xarray object does not fit into {path.suffix}. Expected .nc or .zarr; or "
                f"a table: log.to_series(), log.to_dataframe()."
            )
        fields, header = arrays.apart(log)
    elif isinstance(log, (pd.Series, pd.DataFrame)):
        columns, header = apart(log)
        if kind in TEXT:
            readable(columns, header)
        if kind not in ("netcdf", "zarr"):
            with replacing(path) as beside, written(columns, path):
                stores.WRITERS[kind](columns, json.dumps(header), beside)
            return
        levels = [note["field"] for note in header["index"]]
        with written(columns, path):
            fields = arrays.of_columns(columns, levels)
    else:
        raise LogError(
            f"a {type(log).__name__} is not a loss log. Expected a Series, DataFrame, DataArray "
            f"or Dataset."
        )
    note = json.dumps({"cvstats_log": VERSION, **header})
    values = {str(name): variable.values for name, variable in fields.variables.items()}
    with replacing(path) as beside, written(values, path):
        stores.write_dataset(fields, note, beside, kind)


def kind_to_write(path: Path) -> str:
    """Tell by its suffix how a file is written; refuse a directory that is something else."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind not in KINDS:
        which = f"save_log does not write {path.suffix}" if kind else (
            f"{path.name} ends in {path.suffix!r}, which save_log does not write" if path.suffix
            else f"{str(path)!r} has no suffix, and the suffix says what to write"
        )  # fmt: skip
        example = f", as in {path.name}.parquet" if path.name and not path.suffix else ""
        raise LogError(f"{which}. Expected .parquet, .csv, .jsonl, .nc or .zarr{example}.")
    if kind == "zarr" and path.exists() and not stores.is_store(path):
        raise LogError(f"{path.name} is there and is no Zarr store. Choose another name.")
    if kind != "zarr" and path.is_dir():
        raise LogError(f"{path.name} is there and is a directory. Choose another name.")
    return kind


def load(path: Path, kind: str) -> Any:
    """Read a log that `save` wrote; None if something else wrote the file."""
    if kind in ("netcdf", "zarr"):
        with guarded(path.name):
            dataset, header = stores.read_dataset(path, kind)
            if header is None:
                return arrays.foreign(dataset)
            notes = checked(header, path)
            if notes["object"] in ("DataArray", "Dataset"):
                return arrays.together(dataset, notes)
            return together(arrays.to_columns(dataset), notes)
    if kind not in KINDS:
        return None
    with guarded(path.name):
        header = stores.header_of(path, kind)
        if header is None:
            return None
        notes = checked(header, path)
        columns = stores.READERS[kind](path, notes)
        return together(columns, notes)


def checked(header: str, path: Path) -> dict[str, Any]:
    """Parse the note of a saved log."""
    notes = json.loads(header)
    if not isinstance(notes, dict) or notes.get("cvstats_log") != VERSION:
        raise LogError(
            f"{path.name} was not written by this version of cvstats. Expected a saved log of "
            f"version {VERSION}."
        )
    return notes


def apart(log: pd.Series | pd.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take a pandas object apart: plain columns, and the note that puts them together."""
    frame = log.to_frame("loss") if isinstance(log, pd.Series) else log
    if not len(frame) or not frame.shape[1]:
        raise LogError("the log is empty. Expected at least one loss.")
    if isinstance(frame.columns, pd.MultiIndex):
        raise LogError(
            "the columns have several levels. Expected one: the models. Type "
            "log.columns = ['/'.join(map(str, name)) for name in log.columns]."
        )
    index = frame.index
    labels = [index.get_level_values(i) for i in range(index.nlevels)]
    named: list[tuple[Hashable, Any]] = [
        *zip(index.names, labels, strict=True),
        *((name, frame.iloc[:, j]) for j, name in enumerate(frame.columns)),
    ]
    fields: dict[str, Any] = {}
    notes = []
    for i, (name, values) in enumerate(named):
        field = str(name) if usable(name, fields) else f"column_{i}"
        array, note = encode(plain(values), field, as_text(log, i))
        fields[field] = array
        notes.append({"field": field, "name": to_plain(name), **note})
    header = {
        "cvstats_log": VERSION,
        "object": type(log).__name__ if isinstance(log, pd.DataFrame) else "Series",
        "multi": isinstance(index, pd.MultiIndex),
        "index": notes[: index.nlevels],
        "columns": notes[index.nlevels :],
        "columns_name": to_plain(frame.columns.name),
        "name": to_plain(log.name) if isinstance(log, pd.Series) else None,
        "attrs": to_plain(dict(log.attrs), "an entry of attrs"),
    }
    return fields, header


def as_text(log: pd.Series | pd.DataFrame, at: int) -> str:
    """Say how a level, or a column after the levels, is made text."""
    levels = log.index.nlevels
    if at >= levels:
        what = "log" if isinstance(log, pd.Series) else f"log[{log.columns[at - levels]!r}]"
        return f"{what} = {what}.astype(str)"
    if not isinstance(log.index, pd.MultiIndex):
        return "log.index = log.index.astype(str)"
    name = log.index.names[at]
    level = at if name is None else name
    labels = f"log.index.levels[{at}].astype(str)"
    return f"log.index = log.index.set_levels({labels}, level={level!r})"


def plain(values: Any) -> Any:
    """Take the array out of a column, or an index as it is."""
    if not isinstance(values, pd.Series):
        return values
    return values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array


def usable(name: Hashable, taken: dict[str, Any]) -> bool:
    """Whether a label may name a column of a file."""
    return (
        isinstance(name, str) and name.isprintable() and 0 < len(name) < 100 and name not in taken
        and not name.startswith(("column_", "_", ".")) and "/" not in name
        and name not in ("evaluation", stores.HEADER) and name.strip() == name
    )  # fmt: skip


def readable(columns: dict[str, Any], header: dict[str, Any]) -> None:
    """Write dates and text categories as words, for those who look into the file."""
    for note in (*header["index"], *header["columns"]):
        field = note["field"]
        if note["kind"] == "time" and note["dtype"].startswith("datetime"):
            times = columns[field].view(note["dtype"])
            columns[field] = np.datetime_as_string(times).astype(object)
            note["written"] = "words"
        elif note["kind"] == "category" and note["of"]["kind"] == "text":
            words = np.array(note["of"]["values"], dtype=object)
            if (columns[field] >= 0).all():
                columns[field] = words[columns[field]]
                note["written"] = "words"


def from_words(values: Any, note: dict[str, Any]) -> Any:
    """Undo `readable`."""
    if note.get("written") != "words":
        return values
    if note["kind"] == "time":
        return np.array(values, dtype=str).astype(note["dtype"]).view(np.int64)
    codes = pd.Index(note["of"]["values"]).get_indexer(pd.Index(values, dtype=object))
    if (codes < 0).any():
        raise LogError(f"the column {note['field']!r} holds a label that is no category of it.")
    return codes


def together(columns: Mapping[str, Any], notes: dict[str, Any]) -> pd.Series | pd.DataFrame:
    """Undo `apart`, one column after the other: each may be large."""
    fields = [note["field"] for note in (*notes["index"], *notes["columns"])]
    lost = [field for field in fields if field not in columns]
    if lost:
        raise LogError(f"the column {listed(map(repr, lost))} is gone. Expected a saved log.")
    names = [from_plain(note["name"]) for note in notes["index"]]
    if notes["multi"]:
        parts = [labels_of(columns[note["field"]], note) for note in notes["index"]]
        lengths = {len(codes) for codes, _ in parts}
        index: pd.Index = index_of(parts, names) if len(lengths) == 1 else pd.Index([])
    else:
        only = notes["index"][0]
        index = pd.Index(
            values_of(columns[only["field"]], only), name=names[0], tupleize_cols=False
        )
        lengths = {len(index)}
    values = []
    for note in notes["columns"]:
        value = values_of(columns[note["field"]], note)
        lengths.add(len(value))
        if len(lengths) != 1 or 0 in lengths:
            raise LogError("the columns of the saved log are empty or of different lengths.")
        values.append(pd.Series(value, index=index, copy=False))
        del value
    attrs = from_plain(notes["attrs"])
    if notes["object"] == "Series":
        one = values[0].rename(from_plain(notes["name"]))
        one.attrs = attrs
        return one
    frame = pd.concat(values, axis=1) if len(values) > 1 else values[0].to_frame()
    columns_of = [from_plain(note["name"]) for note in notes["columns"]]
    frame.columns = pd.Index(
        columns_of, name=from_plain(notes["columns_name"]), tupleize_cols=False
    )
    frame.attrs = attrs
    return frame


def values_of(values: Any, note: dict[str, Any]) -> Any:
    """Undo `encode` for a column of losses or predictions."""
    plain_values = np.asarray(values) if isinstance(values, pd.Categorical) else values
    return decode(from_words(plain_values, note), note)


def labels_of(values: Any, note: dict[str, Any]) -> Coded:
    """Undo `encode` for a level: the numbers of its labels, and the labels."""
    if not isinstance(values, pd.Categorical):
        return numbered(decode(from_words(values, note), note))
    codes, names = numbered(decode(np.asarray(values.categories, dtype=object), note))
    return codes[values.codes], names
