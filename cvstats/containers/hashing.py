"""Numbers for labels, the same in every process and for every type of array that holds them."""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import Labels

__all__ = ["Prints", "as_index", "hashed", "hashes_of"]

Prints = NDArray[np.uint64]

LONGEST = np.iinfo(np.int64)

AWARE = np.uint64(0x9E3779B97F4A7C15)
"""What tells a time of day in some zone from one in none: these are never equal."""

NUMBERS = (bool, np.bool_, int, np.integer, float, np.floating, Decimal, Fraction)


def as_index(labels: Labels) -> pd.Index:
    """Make an index of labels, one entry for each, tuples too."""
    if isinstance(labels, pd.Index):
        return labels
    if isinstance(labels, range):
        return pd.RangeIndex(labels.start, labels.stop, labels.step)
    return pd.Index(list(labels), tupleize_cols=False)


def hashed(values: NDArray[Any]) -> Prints:
    """Hash an array of numbers, or of texts."""
    return np.asarray(pd.util.hash_array(values, categorize=False), dtype=np.uint64)


def hashes_of(labels: Labels) -> Prints:
    """Give each label a number that is as good as random, and the same in every process.

    Equal labels have equal numbers, whatever the type of the array that holds them.
    """
    index = as_index(labels)
    if isinstance(index, pd.CategoricalIndex):
        return hashes_of(index.categories)[index.codes]
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        return hashes_of(index.tz_convert("UTC").tz_localize(None)) ^ AWARE
    values = np.asarray(index)
    if values.dtype.kind in "biuf":
        return hashes_of_numbers(values)
    if values.dtype.kind in "Mm":
        return hashes_of_times(values)
    if pd.api.types.infer_dtype(values, skipna=False) == "string":
        return hashed(values)
    return hashes_of_things(values)


def hashes_of_numbers(values: NDArray[Any]) -> Prints:
    """Hash numbers: whole ones of 64 bits as such, longer ones as text, all others as floats."""
    if np.can_cast(values.dtype, np.int64):
        return hashed(values.astype(np.int64))
    far = (values >= 2.0**63) | (values < -(2.0**63))
    with np.errstate(invalid="ignore"):
        whole = np.where(far, 0, values).astype(np.int64)
    found = np.where(whole == values, hashed(whole), hashed(values.astype(np.float64)))
    for at in np.flatnonzero(far & np.isfinite(values)).tolist():
        found[at] = hashed(np.array([str(int(values[at]))], dtype=object))[0]
    return found


def hashes_of_times(values: NDArray[Any]) -> Prints:
    """Hash times by their nanoseconds, whatever their unit; what lies too far by microseconds."""
    kind = values.dtype.kind
    micro = values.astype(f"{kind}8[us]").astype(np.int64)
    near = np.abs(micro) < LONGEST.max // 1000
    nano = np.where(near, values, np.zeros(1, dtype=values.dtype)).astype(f"{kind}8[ns]")
    return np.where(near, hashed(nano.astype(np.int64)), hashed(micro) ^ AWARE)


def hashes_of_things(things: NDArray[Any]) -> Prints:
    """Hash labels of several types, those of one type together."""
    found = np.empty(len(things), dtype=np.uint64)
    simple = [simplest(thing) for thing in things]
    for kind in dict.fromkeys(kind for kind, _ in simple):
        at = [i for i, (own, _) in enumerate(simple) if own == kind]
        some = [simple[i][1] for i in at]
        if kind in ("time", "span"):
            make: Any = pd.DatetimeIndex if kind == "time" else pd.TimedeltaIndex
            try:
                times = make(some).to_numpy()
            except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
                times = np.array(some, dtype="M8[us]" if kind == "time" else "m8[us]")
            found[at] = hashes_of_times(times)
        elif kind == "zoned":
            found[at] = hashes_of(pd.DatetimeIndex(some))
        else:
            types = {"whole": np.dtype(np.int64), "real": np.dtype(np.float64)}
            values = np.empty(len(some), dtype=types.get(kind, np.dtype(object)))
            values[:] = some
            found[at] = hashed(values)
    return found


def simplest(label: Hashable) -> tuple[str, Any]:
    """Say the same in the simplest type there is, and of what kind it is."""
    if isinstance(label, str):
        return "text", str(label)
    if isinstance(label, NUMBERS):
        return number(label)
    if isinstance(label, datetime.datetime | np.datetime64):
        time = pd.Timestamp(label)
        return ("time", time) if time.tzinfo is None else ("zoned", time.tz_convert("UTC"))
    if isinstance(label, datetime.timedelta | np.timedelta64):
        return "span", pd.Timedelta(label)
    return "text", text_of(label)


def number(label: Any) -> tuple[str, Any]:
    """Take a whole number as such whatever its type; as text where it is longer than 64 bits."""
    try:
        whole = int(label)
    except (OverflowError, ValueError):  # infinite, or no number at all
        return "real", float(label)
    if whole == label:
        near = LONGEST.min <= whole <= LONGEST.max
        return ("whole", whole) if near else ("text", str(whole))
    return ("real", float(label)) if float(label) == label else ("text", str(label))


def text_of(label: Any) -> str:
    """Write a label as text; a set in one order, which Python changes from run to run."""
    if isinstance(label, tuple | frozenset):
        parts = [str(simplest(part)[1]) for part in label]
        if isinstance(label, frozenset):
            return f"frozenset({', '.join(sorted(parts))})"
        return f"tuple({', '.join(parts)})"
    if isinstance(label, pd.Interval):
        ends = ", ".join(str(simplest(end)[1]) for end in (label.left, label.right))
        return f"{'[' if label.closed_left else '('}{ends}{']' if label.closed_right else ')'}"
    return str(label)
