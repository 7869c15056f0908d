"""Values, columns and labels as JSON and plain arrays, and atomic replacement of files."""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError

Note = dict[str, Any]
"""The original ``kind`` and ``dtype`` of a packed column."""

ISO: dict[str, Any] = {"s": pd.Timestamp, "a": datetime.date, "e": datetime.datetime}


def to_plain(value: Any, what: str = "a label", way: str = "") -> Any:
    """Convert a value for JSON; types that JSON lacks become a dict with one key ``~…``.

    ``way`` is the last sentence of an error.
    """
    if isinstance(value, np.generic):
        value = value.item() if value.dtype.kind in "biufU" else pd.Timestamp(str(value))
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"~f": str(value)}
    if value is pd.NaT or value is pd.NA:
        return {"~m": str(value)}
    if isinstance(value, (list, tuple)):
        inner = [to_plain(item, what, way) for item in value]
        return inner if isinstance(value, list) else {"~t": inner}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("~") for key in value):
            return {key: to_plain(item, what, way) for key, item in value.items()}
        return {"~d": [[to_plain(k, what, way), to_plain(v, what, way)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUmMO":
        numbers = value.view(np.int64) if value.dtype.kind in "mM" else value
        return {"~n": [value.dtype.str, value.shape, to_plain(numbers.ravel().tolist(), what, way)]}
    for tag, kind in ISO.items():
        if type(value) is kind:
            return {f"~{tag}": value.isoformat()}
    raise LogError(
        f"{what} has the type {type(value).__name__}, which cannot be written to a file. Expected "
        f"numbers, text, dates, and lists or tuples of these.{way}"
    )


def from_plain(value: Any) -> Any:
    """Undo `to_plain`."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    key: str
    inner: Any
    key, inner = next(iter(value.items()), ("", None))
    if len(value) != 1 or not key.startswith("~"):
        return {name: from_plain(item) for name, item in value.items()}
    match key[1:]:
        case "f":
            return float(inner)
        case "t":
            return tuple(from_plain(item) for item in inner)
        case "d":
            return {from_plain(name): from_plain(item) for name, item in inner}
        case "m":
            return pd.NA if inner == "<NA>" else pd.NaT
        case "n":
            dtype, shape, written = np.dtype(inner[0]), inner[1], from_plain(inner[2])
            values = np.empty(len(written), dtype=np.int64 if dtype.kind in "mM" else dtype)
            values[:] = written
            return values.view(dtype).reshape(shape)
        case "s":
            return pd.Timestamp(inner)
        case "a":
            return datetime.date.fromisoformat(inner)
        case "e":
            return datetime.datetime.fromisoformat(inner)
    raise LogError(f"Unknown mark {key!r}. The file may be from a later version of cvstats.")


# --- one column -----------------------------------------------------------------------------------


def pack(values: Any, what: str, text: str = "") -> tuple[np.ndarray[Any, Any], Note]:
    """Convert a column to numbers, times without a zone, or text, with a note of its type.

    ``text`` is the code that converts labels to text, if they cannot be written.
    """
    dtype = values.dtype
    way = f" As text: {text}" if text else ""
    if isinstance(dtype, pd.SparseDtype):
        return pack(np.asarray(values), what, text)
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(pd.Categorical(values).codes)
        of = pack_labels(dtype.categories, what, text)
        note = {"kind": "category", "ordered": bool(dtype.ordered), "of": of}
        if of["kind"] == "text" and (codes >= 0).all():
            return np.array(of["labels"], dtype=object)[codes], {**note, "written": "text"}
        return codes.astype(np.int32), note
    if isinstance(dtype, pd.DatetimeTZDtype):
        times = pd.DatetimeIndex(values)
        zone = zone_name(times, what)
        plain = np.asarray(times.tz_convert("UTC").tz_localize(None))
        return plain, {"kind": "time", "dtype": str(plain.dtype), "zone": zone}
    if isinstance(dtype, np.dtype) and dtype.kind in "mMbiuf" and dtype.itemsize <= 8:
        native = dtype.newbyteorder("=")
        note = {"kind": "plain", "dtype": str(native)}
        return np.asarray(values).astype(native, copy=False), note
    strange = isinstance(dtype, np.dtype) and dtype.kind not in "OUT"
    if strange or isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        raise LogError(
            f"{what} has the type {dtype}, which cannot be written to a file. Expected real "
            f"numbers, text or dates.{way}"
        )
    objects = np.asarray(pd.Index(values, tupleize_cols=False).astype(object), dtype=object)
    name = dtype.str if isinstance(dtype, np.dtype) and dtype.kind != "O" else str(dtype)
    if all(type(value) is str for value in objects):
        return objects, {"kind": "text", "dtype": name}
    written = [json.dumps(to_plain(value, f"a value of {what}", way)) for value in objects]
    return np.array(written, dtype=object), {"kind": "json", "dtype": name}


def zone_name(times: pd.DatetimeIndex, what: str) -> str:
    """Name a time zone, if it can be looked up by its name."""
    name = str(times.tz)
    try:
        found = times.tz_convert(name)
        if found.tz_localize(None).equals(times.tz_localize(None)):
            return name
    except (LookupError, ValueError, TypeError, OSError):
        pass
    raise LogError(
        f"{what} has the time zone {times.tz!r}, which cannot be looked up by its name. Expected "
        f"a named zone: times.tz_convert('Europe/Paris')."
    )


def unpack(values: Any, note: Note) -> Any:
    """Undo `pack`: an array, an Index, or for categories a Categorical."""
    kind = note["kind"]
    if kind == "category":
        categories = unpack_labels(note["of"])
        if note.get("written") == "text":
            values = categories.astype(object).get_indexer(pd.Index(values, dtype=object))
            if (values < 0).any():
                raise LogError(
                    "a categorical column has a label that is not one of its categories."
                )
        codes = np.asarray(values).astype(np.int64)
        return pd.Categorical.from_codes(codes, categories, ordered=bool(note["ordered"]))
    if kind == "plain":
        return np.asarray(values).astype(note["dtype"])
    if kind == "time":
        times = pd.DatetimeIndex(np.asarray(values).astype(note["dtype"]))
        return times.tz_localize("UTC").tz_convert(note["zone"])
    if kind not in ("text", "json"):
        raise LogError(f"Unknown kind {str(kind)[:40]!r}. Expected a saved log.")
    objects = np.asarray(values, dtype=object)
    if kind == "json":
        items = [from_plain(json.loads(value)) for value in objects]
        objects = np.empty(len(items), dtype=object)
        objects[:] = items
    of_numpy = note["dtype"].startswith("StringDType")  # as xarray keeps the text of pandas
    return pd.Index(objects, dtype=object if of_numpy else note["dtype"])


def pack_labels(labels: pd.Index, what: str, text: str) -> Note:
    """Write labels as JSON."""
    if isinstance(labels, pd.PeriodIndex):
        numbers = labels.astype(np.int64)
        return {"kind": "period", "dtype": labels.freqstr, "labels": numbers.tolist()}
    values, note = pack(labels, what, text)
    whole = values.astype(np.int64) if values.dtype.kind in "mM" else values
    return {"labels": to_plain(whole.tolist()), **note}


def unpack_labels(written: Note) -> pd.Index:
    """Undo `pack_labels`."""
    if written["kind"] == "period":
        ordinals = [pd.Period(ordinal=n, freq=written["dtype"]) for n in written["labels"]]
        return pd.PeriodIndex(ordinals, freq=written["dtype"])
    values = np.empty(len(written["labels"]), dtype=object)
    values[:] = from_plain(written["labels"])
    labels: pd.Index = pd.Index(unpack(values, written))
    return labels


# --- files that are complete or absent ------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to a temporary path next to the target, which replaces the target once complete."""
    target = Path(os.path.realpath(path))  # a link keeps its target
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target  # a device, such as /dev/stdout, cannot be replaced
        return
    with tempfile.TemporaryDirectory(
        prefix=".cvstats-", dir=target.parent, ignore_cleanup_errors=True
    ) as folder:
        new = Path(folder) / target.name
        yield new
        if target.is_dir():
            swap(new, target, Path(folder) / "old")
            return
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)


def swap(new: Path, target: Path, old: Path) -> None:
    """Replace a directory by another one, which cannot be done atomically."""
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
