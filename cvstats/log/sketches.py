"""Hashes of labels, the same in every process and for every dtype, and of evaluations."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.design import LEVELS, SPLIT, Codes, Design, GridCodes
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import IntArray, Labels
from cvstats.errors import LogError

Prints = NDArray[np.uint64]

AWARE = np.uint64(0x9E3779B97F4A7C15)
"""Distinguishes times with a time zone from times without one, which are never equal."""

ODD = np.uint64(0xD6E8FEB86659FD93)
"""Distinguishes the parts of a key: seconds from nanoseconds, level from level."""

MOST_HASHES = 1 << 16
"""Number of evaluations of a log that are recognized (half a megabyte)."""

ALL = (1 << 64) - 1

NUMBERS = (bool, np.bool_, int, np.integer, float, np.floating, Decimal, Fraction)


def as_index(labels: Labels) -> pd.Index:
    """Make an index of labels, with one entry per label even for tuples."""
    if isinstance(labels, pd.Index):
        return labels
    if isinstance(labels, range):
        return pd.RangeIndex(labels.start, labels.stop, labels.step)
    return pd.Index(list(labels), tupleize_cols=False)


def hash_array(values: NDArray[Any]) -> Prints:
    """Hash an array of numbers or strings."""
    return np.asarray(pd.util.hash_array(values, categorize=False), dtype=np.uint64)


def hashes_of(labels: Labels) -> Prints:
    """Hash labels; equal labels have equal hashes, whatever their dtype."""
    index = as_index(labels)
    if isinstance(index, pd.CategoricalIndex):
        return hashes_of(index.categories)[index.codes]
    index = index.infer_objects()
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        return hash_times(np.asarray(index.tz_convert("UTC").tz_localize(None))) ^ AWARE
    values = np.asarray(index)
    if values.dtype.kind in "biuf":
        return hash_numbers(values)
    if values.dtype.kind in "Mm":
        return hash_times(values)
    if pd.api.types.infer_dtype(values, skipna=False) == "string":
        return hash_array(values)
    return hash_objects(values)


def hash_numbers(values: NDArray[Any]) -> Prints:
    """Hash whole numbers as integers, those beyond 64 bits as text, and all others as floats."""
    if np.can_cast(values.dtype, np.int64):
        return hash_array(values.astype(np.int64))
    far = (values >= 2.0**63) | (values < -(2.0**63))
    with np.errstate(invalid="ignore"):
        whole = np.where(far, 0, values).astype(np.int64)
    found = np.where(whole == values, hash_array(whole), hash_array(values.astype(np.float64)))
    far &= np.isfinite(values)
    texts = np.array([str(int(value)) for value in values[far]], dtype=object)
    found[far] = hash_array(texts)
    return found


def hash_times(values: NDArray[Any]) -> Prints:
    """Hash times by seconds and remaining nanoseconds, whatever their unit."""
    kind = values.dtype.kind
    seconds = values.astype(f"{kind}8[s]")
    rest = (values - seconds).astype("m8[ns]")
    return hash_array(seconds.astype(np.int64)) * ODD ^ hash_array(rest.astype(np.int64))


def hash_objects(things: NDArray[Any]) -> Prints:
    """Hash labels of dtype object: mixed types, long numbers, tuples and others."""
    found = np.empty(len(things), dtype=np.uint64)
    simple = [simplify(thing) for thing in things]
    types = [type(thing) for thing in simple]
    for kind in dict.fromkeys(types):
        at = [i for i, own in enumerate(types) if own is kind]
        some = [simple[i] for i in at]
        if kind is pd.Timestamp:  # one by one: their zones may differ
            found[at] = [hashes_of(index_of_time(time))[0] for time in some]
        elif kind is pd.Timedelta:
            found[at] = hashes_of(pd.TimedeltaIndex(some))
        else:
            found[at] = hash_array(np.array(some, dtype=object if kind is str else kind))
    return found


def index_of_time(time: Any) -> pd.DatetimeIndex:
    """Make an index of one time in its own unit, as nanoseconds cannot represent all dates."""
    index = pd.DatetimeIndex(np.array([time.to_datetime64()]))
    return index if time.tz is None else index.tz_localize("UTC").tz_convert(time.tz)


def simplify(label: Any) -> int | float | str | pd.Timestamp | pd.Timedelta:
    """Convert a label to the simplest type that represents it."""
    if isinstance(label, NUMBERS):
        return simplify_number(label)
    if isinstance(label, datetime.datetime | np.datetime64):
        return pd.Timestamp(label)
    if isinstance(label, datetime.timedelta | np.timedelta64):
        return pd.Timedelta(label)
    return str(label) if isinstance(label, str) else spell(label)


def simplify_number(number: Any) -> int | float | str:
    """Convert a number to a 64-bit integer, a float, or text if neither represents it."""
    try:
        whole = int(number)
    except (OverflowError, ValueError):  # infinite, or NaN
        return float(number)
    if whole == number:
        return whole if -(2**63) <= whole < 2**63 else str(whole)
    return float(number) if float(number) == number else str(number)


def spell(label: Any) -> str:
    """Write a label as text that distinguishes types; sets are sorted, as their order varies."""
    if isinstance(label, tuple):
        return f"({', '.join(map(spell, label))})"
    if isinstance(label, frozenset):
        return f"{{{', '.join(sorted(map(spell, label)))}}}"
    if isinstance(label, pd.Interval):
        return f"Interval({spell(label.left)}, {spell(label.right)}, {label.closed})"
    if isinstance(label, str):
        return repr(str(label))
    simple = simplify(label) if isinstance(label, NUMBERS) else label
    return str(pd.Timestamp(label)) if isinstance(label, datetime.datetime) else str(simple)


# --- recognizing evaluations ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointSketch:
    """The hashes of evaluations: all of a short log, the smallest of a long one.

    An evaluation has the same hash in every batch, so it is detected in two batches if both contain
    its hash. If a batch is added twice, many are.

    Parameters
    ----------
    hashes : array of uint64
        One for each evaluation, in ascending order.
    limit : int
        No evaluation with a smaller hash was omitted; 2^64 - 1 if none was omitted.
    """

    hashes: Prints
    limit: int = ALL

    @classmethod
    def smallest(cls, hashes: Prints, limit: int = ALL) -> PointSketch:
        """Keep the smallest of some sorted hashes."""
        if len(hashes) <= MOST_HASHES:
            return cls(hashes, limit)
        return cls(hashes[:MOST_HASHES].copy(), int(hashes[MOST_HASHES]))

    @property
    def complete(self) -> bool:
        """Whether the hashes of all evaluations were kept."""
        return self.limit == ALL

    def __add__(self, other: PointSketch) -> PointSketch:
        """Merge the sketches of two batches that share no evaluation."""
        limit = min(self.limit, other.limit)
        looked = [part.hashes[: np.searchsorted(part.hashes, limit)] for part in (self, other)]
        both = np.sort(np.concatenate(looked), kind="stable")  # two runs, merged in one pass
        again = int(np.count_nonzero(both[1:] == both[:-1]))
        if again:
            what = "evaluation" if again == 1 else "evaluations"
            if limit != ALL:
                what = f"of the {min(map(len, looked)):,} evaluations examined"
            raise LogError(
                f"{again:,} {what} appear{'s' * (again == 1)} in more than one batch. Expected "
                "each evaluation once. Was a batch added twice, or a fold written by two jobs? If "
                "every batch numbers its points from 0, give the points labels that are unique "
                "across batches, or drop the labels: batch.droplevel('point')."
            )
        return PointSketch.smallest(both, limit)


def hash_evaluations(
    design: Design, by: tuple[str, ...]
) -> tuple[Prints | None, PointSketch | None, tuple[IntArray, Prints] | None]:
    """Hash the points of a batch in one pass; nothing if they have no names.

    Returns
    -------
    array of uint64, shape (cells,)
        The sum of the hashes of the points in each cell, modulo 2^64. The sums are additive over
        batches, and different sets of points have the same sum with probability 2^-64 only. They
        show whether repetitions test the same points.
    PointSketch
        The evaluations: the point, split, source and labels of other levels in ``by``, which may
        distinguish several logs. Folds are ignored: a point in two of them occurs twice. None if
        points are positions along a dimension without labels.
    array of int and array of uint64
        The rows of the evaluations with the smallest hashes, and these hashes.
    """
    if "point" not in design.levels:
        return None, None, None
    point, table = design.levels["point"], design.cell_table(by)
    hash_codes = point_hasher(design)
    others = (name for name in by if name not in LEVELS)
    names = [name for name in (*SPLIT, "source", *others) if name in design.levels]
    salts = [hashes_of(design.levels[name].labels) for name in names]
    sums = np.zeros(table.size, dtype=np.uint64)
    found, limit, rows = np.empty(0, dtype=np.uint64), ALL, np.empty(0, dtype=np.int64)
    for start, stop in block_bounds(design.size, BLOCK):
        cells, points = design.cells(by, start, stop), point.block(start, stop)
        key = hash_codes(points)
        kernels.sum_hashes(key, points, cells, sums)
        for name, salt in zip(names, salts, strict=True):
            key = key * ODD ^ salt[design.levels[name].block(start, stop)]
        small = (key < np.uint64(limit)) & (cells >= 0) & (points >= 0)
        found = np.concatenate([found, key[small]])
        rows = np.concatenate([rows, start + np.flatnonzero(small)])
        if len(found) > 2 * MOST_HASHES:
            order = np.argpartition(found, MOST_HASHES)
            limit = int(found[order[MOST_HASHES]])
            found, rows = found[order[:MOST_HASHES]], rows[order[:MOST_HASHES]]
    if isinstance(point.labels, range) and isinstance(point.codes, GridCodes):
        return sums[table.used], None, None  # positions in an array, which start at 0 in each batch
    return sums[table.used], PointSketch.smallest(np.sort(found), limit), (rows, found)


def point_hasher(design: Design) -> Callable[[Codes], Prints]:
    """Make the function that hashes the points of some rows, by their codes."""
    level = design.levels["point"]
    labels = level.labels
    if isinstance(labels, range):  # avoids a table as long as the log
        start, step = labels.start, labels.step
        return lambda codes: hash_array(start + step * codes.astype(np.int64))
    if len(labels) <= design.size:
        hashes = hashes_of(labels)
        return lambda codes: hashes[codes]
    used = np.unique(level.block(0, design.size))  # after a filter, labels may be many more
    few = hashes_of(as_index(labels).take(np.maximum(used, 0)))
    return lambda codes: few[np.searchsorted(used, codes)]
