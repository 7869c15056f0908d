"""Columns of any type to plain numbers or text and back, with a note of what they were."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError

__all__ = ["decode", "encode", "from_plain", "to_plain"]

Note = dict[str, Any]

ISO: dict[str, Any] = {"s": pd.Timestamp, "a": datetime.date, "e": datetime.datetime}


def to_plain(value: Any, what: str = "a label", way: str = "") -> Any:
    """Turn a value into what JSON can hold; a dict with one key ``~…`` marks the others.

    ``way`` is what an error says at its end.
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
        inner = [to_plain(item, what) for item in value]
        return inner if isinstance(value, list) else {"~t": inner}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("~") for key in value):
            return {key: to_plain(item, what) for key, item in value.items()}
        return {"~d": [[to_plain(k, what), to_plain(v, what)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"~n": [str(value.dtype), list(value.shape), to_plain(value.ravel().tolist())]}
    for tag, kind in ISO.items():
        if type(value) is kind:
            return {f"~{tag}": value.isoformat()}
    raise LogError(
        f"{what} is a {type(value).__name__}, which cannot be written to a file. Expected numbers, "
        f"text, dates, and lists or tuples of these.{way}"
    )


def from_plain(value: Any) -> Any:
    """Undo `to_plain`."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    key, inner = next(iter(value.items()), ("", None))
    if len(value) != 1 or not key.startswith("~"):
        return {name: from_plain(item) for name, item in value.items()}
    return from_mark(key, inner)


def from_mark(key: str, inner: Any) -> Any:
    """Undo one mark of `to_plain`."""
    if key == "~f":
        return float(inner)
    if key == "~t":
        return tuple(from_plain(item) for item in inner)
    if key == "~d":
        return {from_plain(name): from_plain(item) for name, item in inner}
    if key == "~m":
        return pd.NA if inner == "<NA>" else pd.NaT
    if key == "~n":
        dtype, shape, values = inner
        return np.array(from_plain(values), dtype=numeric(dtype, "biufU")).reshape(shape)
    if key == "~s":
        return pd.Timestamp(inner)
    if key[1:] in ISO:
        return (datetime.date if key == "~a" else datetime.datetime).fromisoformat(inner)
    raise LogError(f"the mark {key!r} is not known. It may be of a later version of cvstats.")


def numeric(name: str, kinds: str) -> np.dtype[Any]:
    """Look up a numpy type by its name, if it is one of some kinds."""
    dtype = np.dtype(str(name))
    if dtype.kind not in kinds or dtype.itemsize > 1 << 12:
        raise LogError(f"the type {str(name)[:40]!r} is none of those that are written.")
    return dtype


def encode(values: Any, what: str, mend: str = "") -> tuple[np.ndarray[Any, Any], Note]:
    """Turn a column into an array of numbers, or an object array of text, and a note.

    ``mend`` is what to type to turn labels that cannot be written into text.
    """
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        inner, note = encode(dtype.categories, what, mend)
        categories = {"values": to_plain(inner.tolist()), **note}
        codes = pd.Categorical(values).codes.astype(np.int32)
        return codes, {"kind": "category", "ordered": bool(dtype.ordered), "of": categories}
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise LogError(
            f"{what} has the type {dtype}, which cannot be written to a file. Expected real "
            f"numbers, text or dates."
        )
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 8:
        return np.asarray(values), {"kind": "number", "dtype": dtype.name}
    column = pd.Index(values) if isinstance(values, np.ndarray) else values
    if isinstance(dtype, pd.DatetimeTZDtype):
        whole = pd.DatetimeIndex(column).asi8
        return whole, {"kind": "time", "dtype": f"datetime64[{dtype.unit}]", "tz": str(dtype.tz)}
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        return np.asarray(values).view(np.int64), {"kind": "time", "dtype": dtype.name}
    way = f" As text: {mend}" if mend else ""
    if isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype, pd.SparseDtype)) or (
        isinstance(dtype, np.dtype) and dtype.kind not in "OUT"
    ):
        raise LogError(
            f"{what} has the type {dtype}, which cannot be written to a file. Expected numbers, "
            f"text or dates.{way}"
        )
    objects = np.asarray(column.astype(object), dtype=object)
    own = isinstance(dtype, np.dtype) and dtype.kind != "O"
    name = dtype.str if own else str(dtype)
    if all(type(value) is str for value in objects):
        return objects, {"kind": "text", "dtype": name}
    plain = [json.dumps(to_plain(value, f"a value of {what}", way)) for value in objects]
    return np.array(plain, dtype=object), {"kind": "json", "dtype": name}


def decode(values: np.ndarray[Any, Any], note: Note) -> Any:
    """Undo `encode`: an Index, or for categories a Categorical."""
    kind = note["kind"]
    if kind == "category":
        inner = note["of"]
        listed = from_plain(inner["values"])
        text = inner["kind"] in ("text", "json")
        categories = decode(np.array(listed, dtype=object if text else None), inner)
        codes = np.asarray(values).astype(np.int64)
        return pd.Categorical.from_codes(codes, categories, ordered=bool(note["ordered"]))
    if kind == "number":
        dtype = numeric(note["dtype"], "biuf")
        return np.asarray(values).astype(dtype)
    if kind == "time":
        times = np.asarray(values).astype(np.int64).view(numeric(note["dtype"], "mM"))
        if "tz" in note:
            return pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(note["tz"])
        return pd.Index(times)
    if kind not in ("text", "json"):
        raise LogError(f"the kind {str(kind)[:40]!r} is not known. Expected a saved log.")
    objects = np.asarray(values, dtype=object)
    if kind == "json":
        items = [from_plain(json.loads(value)) for value in objects]
        objects = np.empty(len(items), dtype=object)
        objects[:] = items
    return pd.Index(objects, dtype=note["dtype"], tupleize_cols=False)
