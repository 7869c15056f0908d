"""Logs that are streamed or lazy: cells instead of losses, with hashes and a sample of the losses.

The design of such a log has one row, with a weight, per cell. Methods use it like any design;
requests that need individual losses raise an error.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.cells import Cells, sort_labels
from cvstats.core.columns import LossColumns
from cvstats.core.design import LEVELS, SPLIT, Codes, Design, GridCodes, Level, SplitSizes
from cvstats.core.folds import is_resampled
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import FloatArray, IntArray, Labels
from cvstats.errors import LogError, spelled
from cvstats.log.checks import FEWEST_ROWS, LIMIT, choose_step, find_dates, read_calendar
from cvstats.log.log import HiddenTable, Log, Sample, words_for_cells
from cvstats.log.pandas import as_index

RANDOM_SPLITS = (
    "the repetitions of this log do not test the same points, so these are random splits, or part "
    "of the log is missing. In a partition, every point is tested once per repetition. For random "
    "splits use corrected_t; otherwise add the missing evaluations."
)

Prints = NDArray[np.uint64]

AWARE = np.uint64(0x9E3779B97F4A7C15)
"""Distinguishes times with a time zone from times without one, which are never equal."""

ODD = np.uint64(0xD6E8FEB86659FD93)
"""Distinguishes the parts of a key: seconds from nanoseconds, level from level."""

MOST_HASHES = 1 << 16
"""Number of evaluations of a log that are recognized (half a megabyte)."""

ALL = (1 << 64) - 1

NUMBERS = (bool, np.bool_, int, np.integer, float, np.floating, Decimal, Fraction)


def cell_levels(design: Design) -> tuple[str, ...]:
    """Name the levels that identify cells: all except the points and their counts."""
    found = [name for name in LEVELS if name in design.levels]
    if "count" in found:
        raise LogError(
            "this is a bootstrap log (level 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources, or the whole log in memory."
        )
    return tuple([name for name in found if name != "point"])


def join_columns(*parts: Cells) -> Cells:
    """Concatenate the columns of the same cells."""
    return replace(
        parts[0],
        mean=np.concatenate([found.mean for found in parts], axis=1),
        m2=np.concatenate([found.m2 for found in parts], axis=1),
        origin=np.concatenate([found.origin for found in parts]),
    )


def design_of_cells(
    cells: Cells,
    splits: SplitSizes | None,
    named_points: bool,
    words: str,
    taking: str = Design.taking,
) -> Design:
    """Make a design with one row per cell; a level of points has a name but no labels."""
    levels = cells.to_levels()
    if named_points:
        missing = words_for_cells("point", cells.levels, words)
        hidden: Any = HiddenTable((len(cells.count),), missing)
        levels["point"] = Level((), hidden)
    facts: dict[Any, Any] = {} if splits is None else {"splits": splits}
    weights = cells.count.astype(np.int64)
    return Design(levels, len(weights), facts=facts, taking=taking, weights=weights)


# --- points of a streamed log, from the sums of their hashes --------------------------------------


def split_sizes(cells: Cells) -> SplitSizes:
    """Count rows and points of each split; hashes show whether all test the same points."""
    by = tuple(level for level in SPLIT if level in cells.levels)
    splits = cells.over(by)
    rows = splits.count.astype(np.int64)
    if len(rows) == 1:
        return SplitSizes(rows, int(rows[0]))
    if splits.prints is None:
        return SplitSizes(rows, None)
    if same_points(splits):
        return SplitSizes(rows, int(rows[0]))
    return SplitSizes(rows, None, RANDOM_SPLITS)


def same_points(cells: Cells) -> bool:
    """Whether all cells have the same points, judging by the sums of hashes."""
    return len(list_points(cells)) == 1


def list_points(cells: Cells) -> set[tuple[int, float]]:
    """List the sums of hashes that occur, each with the number of points."""
    prints: Any = cells.prints
    return set(zip(prints.tolist(), cells.count.tolist(), strict=True))


def sources_share_points(cells: Cells) -> bool:
    """Whether two sources have the same points, judging by their sums of hashes."""
    if cells.prints is None or "source" not in cells.levels:
        return False
    sources = cells.over(("source",))
    several = sources.take(sources.count > 1)
    return len(list_points(several)) < len(several.count)


def point_counts(cells: Cells, level: str) -> tuple[IntArray, None]:
    """Count the distinct points under each label of a level of a streamed log."""
    by = tuple(name for name in SPLIT if name in cells.levels)
    at = cells.levels.index(level)
    labels, codes = cells.labels[at], cells.codes[:, at]
    counts = np.zeros(len(labels), dtype=np.int64)
    number = len(cells.over(by).count)
    for code in np.unique(codes).tolist():
        rows = codes == code
        splits = cells.take(rows).over(by)
        if cells.prints is None or len(splits.count) < number or not same_points(splits):
            raise LogError(
                f"the repetitions do not test the same points of {level}="
                f"{spelled(labels[code])}, and moments do not contain the number of distinct "
                "points. Expected all points in each repetition. Use the log itself, or one "
                "repetition of it."
            )
        counts[code] = round(float(cells.count[rows].sum()) / number)
    return counts, None


def in_order(found: Cells) -> Cells:
    """Sort the labels of each level and then the cells, so that the order of batches is lost."""
    codes, labels = found.codes.copy(), list(found.labels)
    for i, names in enumerate(found.labels):
        if not isinstance(names, pd.Index | range):
            order = sort_labels(list(names))
            codes[:, i] = np.argsort(order)[found.codes[:, i]]
            labels[i] = as_index([names[at] for at in order.tolist()])
    moved = replace(found, labels=tuple(labels), codes=codes)
    return moved.take(np.lexsort(codes.T[::-1])) if labels else moved


# --- hashes of labels, the same in every process and for every dtype ------------------------------


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


# --- losses kept with the cells -----------------------------------------------------------------


BITS = np.uint64(11)
"""Bits of a hash that a float64 cannot represent."""

Rows = tuple[IntArray, FloatArray]
"""Rows of a log, and their losses."""


@dataclass(frozen=True, eq=False)
class KeptLosses:
    """The losses of some evaluations of a log that is read in batches.

    Parameters
    ----------
    cells : Cells
        One row per evaluation. The columns are the models, each in evenly spaced carried cells,
        then the hash of the point, and the number by which evaluations are chosen, the date of the
        point or its hash: those with the smallest are kept.
    whole : bool
        Whether these are all evaluations.
    dates : str
        The level of dates, empty without any.
    pointed : bool
        Whether points have names.
    """

    cells: Cells
    whole: bool
    dates: str
    pointed: bool

    @classmethod
    def of(
        cls, log: Log, models: IntArray, cells: Cells, hashes: tuple[IntArray, Prints] | None,
        some: Rows | None = None,
    ) -> KeptLosses:  # fmt: skip
        """Select evaluations of a batch.

        Parameters
        ----------
        log : Log
            The batch.
        models : array of int, shape (models, carried cells)
            Its columns.
        cells : Cells
            Its cells.
        hashes : tuple of arrays, optional
            The rows with the smallest hashes, and these hashes, if points have names.
        some : tuple of arrays, optional
            The rows whose losses are available, and their losses; None if all are in memory.
        """
        design = log.design
        rows = np.arange(design.size) if some is None else some[0]
        rows = rows if design.valid is None else rows[design.valid[rows]]
        dates = "" if is_resampled(design) else find_dates(design) or ""
        # Positions in an array, and points without names, do not recur in another batch.
        salt = np.uint64(zlib.crc32(cells.mean.tobytes()))
        if dates:
            number = number_dates(design.levels[dates], rows)
        elif hashes is not None and some is None:
            rows, number = hashes[0], shorten(hashes[1])
        else:
            number = shorten(hash_array(hash_array(rows) ^ salt))
        first = np.sort(find_first(number, rows_to_keep(models.size)))
        rows, number = rows[first], number[first]
        point, pointed = number, "point" in design.levels
        if pointed:
            level = design.levels["point"].take(rows)
            prints = hashes_of(as_index(level.labels).take(np.asarray(level.codes)))
            named = dates == "point" or hashes is not None
            point = shorten(prints if named else hash_array(prints ^ salt))
        columns = models[:, :: choose_step(models.size)].reshape(-1)
        if some is None:
            losses = log.losses.table(rows, columns)
        else:
            losses = some[1][np.ix_(np.searchsorted(some[0], rows), columns)]
        names = [name for name in (*LEVELS, *cells.levels) if name in design.levels]
        levels = tuple(name for name in dict.fromkeys(names) if name != "point")
        table = np.column_stack([losses, point, number])
        parts = [design.levels[name].take(rows) for name in levels]
        codes = np.zeros((len(rows), len(levels)), dtype=np.int64)
        for at, part in enumerate(parts):
            codes[:, at] = np.asarray(part.codes)
        width = table.shape[1]
        found = Cells(
            levels, tuple(part.labels for part in parts), codes, np.ones(len(rows)), table,
            np.zeros((len(rows), width)), np.zeros(width),
        )  # fmt: skip
        return cls(drop_unused_labels(found), len(rows) == design.n_rows, dates, pointed)

    def __add__(self, other: KeptLosses) -> KeptLosses:
        """Keep the evaluations of both that come first."""
        if self.dates != other.dates:
            return self.undated() + other.undated()
        return replace(
            self, cells=self.cells.concat(other.cells), whole=self.whole and other.whole,
            pointed=self.pointed and other.pointed,
        ).cut()  # fmt: skip

    @property
    def count(self) -> FloatArray:
        """The number of losses of each evaluation: 1."""
        return self.cells.count

    def undated(self) -> KeptLosses:
        """Take points for names: numbers such as 1901 are years only if all of them may be."""
        mean = self.cells.mean
        mean = np.hstack([mean[:, :-1], mean[:, -2:-1]])
        return replace(self, cells=replace(self.cells, mean=mean), dates="")

    def cut(self) -> KeptLosses:
        """Keep the first evaluations, as many as for a batch."""
        first = find_first(self.cells.mean[:, -1], rows_to_keep(self.cells.mean.shape[1] - 2))
        if len(first) == len(self.cells.count):
            return self
        return replace(
            self, cells=drop_unused_labels(self.cells.take(np.sort(first))), whole=False
        )  # fmt: skip

    @classmethod
    def join_columns(cls, parts: Sequence[KeptLosses]) -> KeptLosses | None:
        """Combine models that were evaluated on the same points; None if points have no names."""
        joined = reduce(Cells.concat, [part.cells for part in parts])
        number = [len(part.cells.count) for part in parts]
        if min(number) < max(number) or not all(part.pointed for part in parts):
            return None
        keys = np.column_stack([joined.mean[:, -2:], joined.codes])
        every = np.arange(len(keys)).reshape(len(parts), -1)
        order = [rows[np.lexsort(keys[rows].T)] for rows in every]
        if any((keys[rows] != keys[order[0]]).any() for rows in order[1:]):
            return None
        mean = np.hstack([*(joined.mean[rows, :-2] for rows in order), joined.mean[order[0], -2:]])
        width = mean.shape[1]
        cells = replace(
            joined.take(order[0]), mean=mean, m2=np.zeros_like(mean), origin=np.zeros(width)
        )
        whole = all(part.whole for part in parts)
        return replace(parts[0], cells=cells, whole=whole).cut()

    def reorder(self, levels: tuple[str, ...], models: IntArray) -> KeptLosses:
        """Reorder the levels and the models."""
        losses = self.cells.mean[:, :-2].reshape(len(self.cells.count), len(models), -1)
        mean = losses[:, models].reshape(len(losses), -1)
        cells = self.cells.reorder_levels(levels)
        return replace(self, cells=replace(cells, mean=np.hstack([mean, cells.mean[:, -2:]])))

    def sample(self, log: Log, models: IntArray) -> Sample:
        """Make a small log of these losses, with columns in the order of the log."""
        found, step = self.cells, choose_step(models.size)
        order = np.argsort(models[:, ::step].reshape(-1))
        levels = found.to_levels()
        if self.pointed:
            point, names = pd.factorize(found.mean[:, -2], sort=True)
            levels["point"] = Level(pd.Index(names.astype(np.int64)), point)
        if self.dates:
            time, days = pd.factorize(found.mean[:, -1], sort=True)
            levels[self.dates] = Level(pd.DatetimeIndex(days.astype("M8[us]")), time)
        small = Design(levels, len(found.count), within=log.design.within)
        losses = LossColumns((found.mean[:, :-2][:, order],))
        return Sample(
            replace(log, design=small, losses=losses, cells=None, complete=None), step, self.whole
        )

    def crossed(self) -> bool:
        """Whether a point occurs in two sources of one repetition."""
        if "source" not in self.cells.levels or not self.pointed:
            return False
        apart = ("source", "fold")
        at = [i for i, name in enumerate(self.cells.levels) if name not in apart]
        keys = np.column_stack([self.cells.mean[:, -2], self.cells.codes[:, at]])
        return len(np.unique(keys, axis=0)) < len(keys)


def rows_to_keep(width: int) -> int:
    """Choose how many evaluations are kept, by the number of columns."""
    return max(LIMIT // max(1, width), FEWEST_ROWS)


def find_first(number: FloatArray, most: int) -> IntArray:
    """Find the evaluations with the smallest numbers, at most ``most``."""
    return np.arange(len(number)) if len(number) <= most else np.argpartition(number, most)[:most]


def shorten(hashes: Prints) -> FloatArray:
    """Truncate hashes to the precision of float64."""
    return (hashes >> BITS).astype(np.float64)


def number_dates(level: Level, rows: IntArray) -> FloatArray:
    """Convert the dates of some rows to microseconds, or numbers in the same order."""
    index = as_index(level.labels).infer_objects()
    if (calendar := read_calendar(index)) is not None:
        years = not isinstance(calendar, pd.DatetimeIndex)
        index = pd.to_datetime(calendar.astype(str), format="%Y") if years else calendar
    elif isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    elif isinstance(index[0], str) and "Q" in index[0]:
        index = pd.PeriodIndex([label.replace("-", "") for label in index], freq="Q").to_timestamp()
    elif index.dtype == object and not isinstance(index[0], str):  # dates, also of climate models
        index = pd.Index([
            pd.Timedelta(
                days=(day.year * 12 + day.month) * 31 + day.day,
                hours=getattr(day, "hour", 0), minutes=getattr(day, "minute", 0),
            ) for day in index
        ])  # fmt: skip
    else:
        index = pd.to_datetime(index, format="ISO8601", utc=True, errors="coerce")
        index = index.tz_localize(None)
    numbers = index.to_numpy().astype(f"{index.dtype.kind}8[us]").astype(np.float64)
    found: FloatArray = numbers[np.asarray(level.take(rows).codes)]
    return found


def drop_unused_labels(found: Cells) -> Cells:
    """Keep only the labels that occur, without a reference to the index of the log."""
    labels, codes = [], np.empty_like(found.codes)
    for i, names in enumerate(found.labels):
        used, codes[:, i] = np.unique(found.codes[:, i], return_inverse=True)
        labels.append(tuple(as_index(names).take(used)))
    return replace(found, labels=tuple(labels), codes=codes)
