"""The design of a log: which evaluation each row is, its cells, and all checks."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.threads import BLOCK, PIECE, block_bounds, ordered_map
from cvstats.core.types import IntArray, Labels, MaskArray
from cvstats.errors import MOST, LogError, listed, place, spelled

LEVELS = ("sample", "outer", "repetition", "fold", "source", "point", "count")

COMPLETE = frozenset(LEVELS) - {"point"}
"""Levels in which every evaluation must have a label."""

SPLIT = ("sample", "outer", "repetition")
"""Levels within which a point is evaluated at most once."""

FINE = 1 << 16
"""Up to this number, cells of folds are counted in the same pass as splits."""

WINDOW = 1 << 24
"""Size in bytes of the table that marks which points occur in a split."""

TABLE = 1 << 21
"""Maximum number of counts (cells times blocks) that are cached."""

ROWS_OF_A_CELL = 64
"""Minimum number of rows of a block per cell: merging blocks takes longer than reading."""

SPARSE = 4, 1 << 16
"""With this many labels per row, and at least this many in all, most labels do not occur."""

LARGEST = 1 << 62
"""Upper bound of combined codes, which leaves room for one more step in 64 bits."""

LABELS_OF = attrgetter("labels")

Codes = NDArray[np.signedinteger[Any]]
Counts = NDArray[np.signedinteger[Any]]


# --- levels and cells ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GridCodes:
    """Codes along some axes of an array of evaluations, repeated along the others.

    Without ``base`` the code is the position along the only axis.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    base: NDArray[np.int32] | None = None

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Return the codes of some rows."""
        if self.base is not None and self.axes == tuple(range(len(self.shape))):
            return self.base.reshape(-1)[rows]
        if len(self.shape) == 1:
            kind = np.int32 if rows.stop <= np.iinfo(np.int32).max else np.int64
            return np.arange(rows.start, rows.stop, dtype=kind)
        return self.take(np.arange(rows.start, rows.stop))

    def take(self, rows: IntArray) -> NDArray[Any]:
        """Return the codes of single rows."""
        at = [rows // math.prod(self.shape[axis + 1 :]) % self.shape[axis] for axis in self.axes]
        return at[0] if self.base is None else self.base[tuple(at)]


@dataclass(frozen=True, eq=False)
class Level:
    """One level: its labels, and the position of the label of each row (-1: none)."""

    labels: Labels
    codes: Codes | GridCodes

    def block(self, start: int, stop: int) -> NDArray[np.int32]:
        """Return the codes of some rows, read-only and of one dtype."""
        return readonly(self.codes[start:stop].astype(np.int32, copy=False))

    def take(self, rows: IntArray) -> Level:
        """Take the codes of some rows."""
        return Level(self.labels, self.codes.take(rows))


@dataclass(frozen=True, eq=False)
class CellIndex:
    """The combinations of codes that occur, sorted and numbered from 0.

    A combination is one whole number with the codes as digits. If the digits of all levels would
    not fit into 64 bits, those of the first levels are replaced by the rank of their combination
    among those that occur; ``tables[i]`` lists these for the first ``i`` levels.
    """

    sizes: tuple[int, ...]
    tables: dict[int, IntArray] = field(default_factory=dict)

    @classmethod
    def of(cls, sizes: Sequence[int], parts: Callable[[], Iterable[Codes]]) -> CellIndex:
        """Find what occurs; ``parts`` iterates over the rows, one line of codes per level."""
        found, width = cls(tuple(sizes)), 1
        for level, size in enumerate(sizes):
            if width * size >= LARGEST:
                found._list(level, parts)
                width = len(found.tables[level])
            width *= size
        found._list(len(sizes), parts)
        return found

    @classmethod
    def numbered(cls, sizes: Sequence[int], codes: Codes) -> tuple[CellIndex, IntArray]:
        """Find what occurs among rows, one line of codes per level; also number each row."""
        found = cls.of(sizes, lambda: [codes])
        return found, found.find(codes)

    def __len__(self) -> int:
        """Count the combinations."""
        return len(self.tables[len(self.sizes)])

    def find(self, codes: Codes) -> IntArray:
        """Find the number of each row; -1 if a code is negative."""
        place = np.searchsorted(self.tables[len(self.sizes)], self._numbers(codes, len(codes)))
        return np.where((codes >= 0).all(axis=0), place, -1)

    def codes(self) -> IntArray:
        """List the combinations, one column per level."""
        number = self.tables[len(self.sizes)]
        codes = np.zeros((len(number), len(self.sizes)), dtype=np.int64)
        for level in reversed(range(len(self.sizes))):
            number, codes[:, level] = np.divmod(number, self.sizes[level])
            if level in self.tables:
                number = self.tables[level][number]
        return codes

    def _list(self, levels: int, parts: Callable[[], Iterable[Codes]]) -> None:
        every = [np.zeros(0, dtype=np.int64)]
        for codes in parts():
            here = (codes[:levels] >= 0).all(axis=0)
            every.append(sorted_distinct(self._numbers(codes, levels)[here]))
        self.tables[levels] = sorted_distinct(np.concatenate(every))

    def _numbers(self, codes: Codes, levels: int) -> IntArray:
        """Combine the first codes of each row; rows with a negative code get any number."""
        number = np.zeros(codes.shape[1], dtype=np.int64)
        for level in range(levels):
            if level in self.tables:
                number = np.searchsorted(self.tables[level], number).astype(np.int64, copy=False)
            number *= self.sizes[level]
            number += codes[level]
        return number


def sorted_distinct(numbers: IntArray) -> IntArray:
    """Sort the distinct numbers by comparing neighbors: `numpy.unique` is slower."""
    found = np.sort(numbers)
    new = np.ones(len(found), dtype=bool)
    np.not_equal(found[1:], found[:-1], out=new[1:])
    return found[new]


@dataclass(frozen=True, eq=False)
class CellTable:
    """The number of rows in each cell, in total and by block.

    ``index`` lists the cells that occur if the product of all labels is too large; otherwise it is
    None, and every combination has a number. ``blocks`` is None if the table of cells by blocks is
    too large to keep.
    """

    by: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: int
    total: NDArray[np.int64]
    index: CellIndex | None = None
    blocks: tuple[Counts, Counts] | None = None

    @cached_property
    def size(self) -> int:
        """Number of cells, including empty ones."""
        return len(self.total)

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """The cells that are not empty."""
        return np.flatnonzero(self.total)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The codes of the labels of each used cell, one column per level."""
        if self.index is not None:
            return self.index.codes()
        if not self.by:
            return np.zeros((len(self.used), 0), dtype=np.int64)
        return np.stack(np.unravel_index(self.used, self.sizes), axis=1)


def count_blocks(rows: int, cells: Codes, size: int, *, few: bool = False) -> tuple[Counts, Counts]:
    """Count the rows of each cell in each block, and find the first of them."""
    blocks = -(-len(cells) // rows)
    kind = np.int32 if rows <= np.iinfo(np.int32).max else np.int64
    counts, first = np.zeros((2, blocks, size), dtype=kind)
    if few and blocks == 1:
        here = np.flatnonzero(cells >= 0)
        counts[0] = np.bincount(cells[here], minlength=size)
        last_to_first = here[::-1]  # the last assignment for a cell wins
        first[0, cells[last_to_first]] = last_to_first
    else:
        kernels.count_rows(cells, rows, counts, first)
    return counts, first


def merge_levels(finer: CellTable, by: tuple[str, ...]) -> CellTable | None:
    """Merge cells with the same labels on ``by``; None if they must be counted again."""
    labelled = COMPLETE.issuperset(finer.by) and by == tuple(filter(by.__contains__, finer.by))
    if finer.index is not None or finer.blocks is None or not labelled:
        return None
    shape = (len(finer.blocks[0]), *finer.sizes)
    counts, first = finer.blocks[0].reshape(shape), finer.blocks[1].reshape(shape)
    others = tuple(1 + np.flatnonzero(~np.isin(finer.by, by)))
    begin = np.where(counts > 0, first, np.iinfo(first.dtype).max).min(axis=others)
    number = counts.sum(axis=others, dtype=counts.dtype)
    begin[number == 0] = 0
    total = number.sum(axis=0, dtype=np.int64)
    blocks = number.reshape(len(number), -1), begin.reshape(len(number), -1)
    return CellTable(by, number.shape[1:], finer.rows, total.reshape(-1), blocks=blocks)


def readonly(values: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, so that kernels are compiled only once."""
    view = values.view()
    view.flags.writeable = False
    return view


# --- the design ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SplitSizes:
    """Rows of each split, and the number of distinct points.

    ``points`` is None if the log has no level ``point`` and more than one split.
    """

    rows: NDArray[np.int64]
    points: int | None
    apart: str = ""
    """Used if splits are known to test different points but their number is unknown."""

    by: tuple[str, ...] = ()
    """The levels whose labels identify splits, if single evaluations are known."""


@dataclass(frozen=True, eq=False)
class Design:
    """The levels of a log, row by row.

    Parameters
    ----------
    levels : mapping of str to Level
        Known levels, and any other level of the log's index.
    size : int
        Number of rows.
    valid : array of bool, shape (rows,), optional
        Which rows are evaluations; None if all are.
    facts : dict
        Cache of results for this index.
    of_array : bool
        Whether the log is an xarray object, for the code in messages.
    scores : bool
        Whether each loss is a score of a whole split, not a loss of a point.
    metric : {"", "average", "pool"}
        Whether the losses are pseudo-losses of a metric, averaged over folds or pooled.
    within : tuple of str
        More levels that may distinguish evaluations: a point may occur in a repetition once under
        each of their labels, as in concatenated logs.
    weights : array of int, shape (rows,), optional
        How many evaluations each row represents, if the rows are cells of a log.
    by : str, optional
        The level whose labels are groups that are computed separately.
    """

    levels: Mapping[str, Level]
    size: int
    valid: MaskArray | None = None
    facts: dict[Any, Any] = field(default_factory=dict)
    of_array: bool = False
    scores: bool = False
    metric: str = ""
    within: tuple[str, ...] = ()
    weights: IntArray | None = None
    by: str | None = None

    def has(self, level: str) -> bool:
        """Whether the log has more than one label of this level."""
        return level in self.levels and len(self.cell_table((level,)).used) > 1

    def number(self, level: str) -> int:
        """How many labels of a level occur; 1 if the level is absent."""
        return len(self.cell_table((level,)).used) if level in self.levels else 1

    def labels(self, names: Sequence[str]) -> tuple[Labels, ...]:
        """Return the labels of some levels."""
        return tuple(map(LABELS_OF, map(self.levels.__getitem__, names)))

    def identity(self) -> tuple[str, ...]:
        """List the levels that identify evaluations, in the order used in messages."""
        known = tuple(filter(self.levels.__contains__, LEVELS))
        return (*(name for name in self.within if name not in known), *known)

    def take(self, level: str) -> str:
        """Return the code that selects one label of a level."""
        labels = self.levels[level].labels
        return self.suggest_selection(level, labels[int(self.cell_table((level,)).used[0])])

    def suggest_selection(self, level: str, label: object) -> str:
        """Return the code that selects one label of a level."""
        if self.of_array:
            return f"log.sel({level}={spelled(label)})"
        return f"log.xs({spelled(label)}, level={level!r})"

    def format_labels(self, row: int, also: str | None = None) -> str:
        """Format the labels of one row; ``also`` includes a level that is not a standard one."""
        labels, known = {}, self.identity() or tuple(self.levels)
        for name in known if also is None or also in known else (also, *known):
            level = self.levels[name]
            code = int(level.block(row, row + 1)[0])
            labels[name] = level.labels[code] if code >= 0 else None
        return place(labels) if labels else f"row {row}"

    # --- cells ----------------------------------------------------------------------------

    def cells(self, by: Sequence[str], start: int, stop: int, *, narrow: bool = False) -> Codes:
        """Find the cell number of some rows; -1 if nothing was evaluated.

        With ``narrow``, for kernels: as stored, or in 8 or 16 bits if possible.
        """
        index: CellIndex | None = self.facts.get(("index", tuple(by)))
        if index is not None:
            return readonly(index.find(self._codes(by, start, stop)).astype(np.int32))
        checked = SPLIT if "splits" in self.facts else ()  # no evaluation is outside of them
        codes, sizes = [], []
        for name in by:
            level = self.levels[name]
            if name not in checked or len(level.labels) > 1:
                codes.append(readonly(level.codes[start:stop]))
                sizes.append(len(level.labels))
        if narrow and len(codes) == 1 and codes[0].itemsize <= 2 and self.valid is None:
            return codes[0]
        kind = np.min_scalar_type(-1 - math.prod(sizes)) if narrow else np.dtype(np.int32)
        numbers = np.empty(stop - start, dtype=kind)
        if len(codes) < 2:
            numbers[:] = codes[0] if codes else 0
        elif len(numbers) <= kernels.FEW:
            numbers[:] = 0
            for code, size in zip(codes, sizes, strict=True):
                numbers *= np.int32(size)
                numbers += code.astype(np.int32, copy=False)
            for code in codes:
                numbers[code < 0] = -1
        else:
            numbers[:] = codes[0]
            for code, size in zip(codes[1:], sizes[1:], strict=True):
                kernels.combine(numbers, code, size)
        if self.valid is not None:
            numbers[~self.valid[start:stop]] = -1
        return readonly(numbers)

    def _codes(self, by: Sequence[str], start: int, stop: int) -> Codes:
        """Lay out the codes of some rows, one line per level; -1 if not an evaluation."""
        lines = [self.levels[name].block(start, stop) for name in by]
        codes = np.array(lines, dtype=np.int32).reshape(len(by), stop - start)
        if self.valid is not None:
            codes[:, ~self.valid[start:stop]] = -1
        return codes

    def cell_table(self, by: tuple[str, ...]) -> CellTable:
        """Count the rows in the cells of some levels (cached)."""
        table: CellTable | None = self.facts.get(("cells", by))
        if table is None:
            for key in list(self.facts):
                if table is None and key[0] == "cells" and set(key[1]).issuperset(by):
                    table = merge_levels(self.facts[key], by)
            if table is None:
                table = self._count(by)
            self.facts["cells", by] = table
        return table

    def _count(self, by: tuple[str, ...]) -> CellTable:
        """Count the rows of each cell; also by block, if that table is not too large."""
        sizes = tuple(map(len, self.labels(by)))
        size, index = math.prod(sizes), None
        if size > min(max(SPARSE[0] * self.size, SPARSE[1]), np.iinfo(np.int32).max):
            blocks = block_bounds(self.size, BLOCK)
            index = CellIndex.of(sizes, lambda: (self._codes(by, *bounds) for bounds in blocks))
            self.facts["index", by] = index
            size = len(index)
        if self.weights is not None:
            cells = self.cells(by, 0, self.size)
            here = cells >= 0
            total = np.bincount(cells[here], self.weights[here], size).astype(np.int64)
            return CellTable(by, sizes, max(self.size, 1), total, index)
        rows = BLOCK
        while rows < ROWS_OF_A_CELL * size and rows < self.size:
            rows *= 2
        blocks = block_bounds(self.size, rows)
        pieces = block_bounds(len(blocks), PIECE * BLOCK, rows)
        keep = len(blocks) * size <= max(TABLE, size)
        total = np.zeros(size, dtype=np.int64)
        adding = threading.Lock()

        def work(p: int) -> tuple[Counts, Counts] | None:
            start, stop = blocks[pieces[p][0]][0], blocks[pieces[p][1] - 1][1]
            cells = self.cells(by, start, stop, narrow=True)
            counts, first = count_blocks(rows, cells, size, few=self.size <= kernels.FEW)
            with adding:  # whole numbers: in any order
                np.add(total, counts.sum(axis=0, dtype=np.int64), out=total)
            return (counts, first) if keep else None

        parts: list[Any] = [np.zeros((2, 0, size), dtype=np.int32)]
        parts += filter(None, ordered_map(work, len(pieces)))
        counts, first = map(np.concatenate, zip(*parts, strict=True))
        return CellTable(by, sizes, rows, total, index, (counts, first) if keep else None)

    # --- rows that hold an evaluation -----------------------------------------------------

    @property
    def marks(self) -> MaskArray:
        """The rows that hold an evaluation, as a mask."""
        return np.ones(self.size, dtype=bool) if self.valid is None else self.valid

    @cached_property
    def here(self) -> slice | MaskArray:
        """Selects the rows that hold an evaluation from an array of all rows."""
        return slice(None) if self.valid is None else self.valid

    def codes(self, name: str) -> NDArray[np.int32]:
        """Return the codes of the evaluations at a level."""
        return self.levels[name].block(0, self.size)[self.here]

    @property
    def n_rows(self) -> int:
        """The number of evaluations."""
        return self.size if self.valid is None else int(self.valid.sum())

    # --- checks ---------------------------------------------------------------------------

    def splits(self) -> SplitSizes:
        """Check that each evaluation occurs once, and return the number of points (cached)."""
        if self.within:
            self.require_labels(self.within)
        found: SplitSizes | None = self.facts.get("splits", self.facts.get(("splits", self.within)))
        if found is not None:
            return found
        self.check_labels(filter("point".__ne__, self.identity()))
        by = tuple(filter(self.levels.__contains__, SPLIT))
        folded = (*by, "fold")
        if "fold" in self.levels and math.prod(map(len, self.labels(folded))) <= FINE:
            self.cell_table(folded)  # one pass for both: most methods need the folds next
        more = tuple(name for name in self.within if name not in LEVELS)
        wider = (*more, *by)
        for names in dict.fromkeys((by, *((name, *by) for name in more), wider)):
            found = self._unique_splits(names)
            if found is not None:
                self.facts["splits" if names == by else ("splits", self.within)] = found
                return found
        self.check_labels(("point",))
        raise self._repeated_error(wider)

    def require_labels(self, names: Sequence[str]) -> None:
        """Require that every evaluation has a label in these levels (cached)."""
        for name in names:
            if name not in LEVELS and name in self.levels and ("labeled", name) not in self.facts:
                self.check_labels((name,))
                self.facts["labeled", name] = True

    def check_labels(self, names: Iterable[str]) -> None:
        """Require that every evaluation has a label in every known level."""
        for name in names:
            codes = self.levels[name].codes
            if isinstance(codes, np.ndarray) and codes.min(initial=0) >= 0:
                continue
            for start, stop in block_bounds(self.size, BLOCK):
                bad = np.flatnonzero(codes[start:stop] < 0)
                if self.valid is not None:
                    bad = bad[self.valid[start:stop][bad]]
                if len(bad):
                    keep = f"log[log.index.get_level_values({name!r}).notna()]"
                    if self.of_array:
                        keep = f"log.where(log[{name!r}].notnull(), drop=True)"
                    raise LogError(
                        f"level {name!r} has no label (NaN) in row {start + bad[0]:,}: "
                        f"{self.format_labels(start + int(bad[0]), name)}. Expected a label for "
                        f"every evaluation. Give these rows a label, or drop them: {keep}."
                    )

    def _unique_splits(self, by: tuple[str, ...]) -> SplitSizes | None:
        """Count the rows of each split, unless a point occurs twice in one.

        Threads only store ones in a shared table; if there are as many ones as rows, no two rows
        have the same entry. Points are numbered within their sources if names recur in several.
        """
        table = self.cell_table(by)
        rows = table.total[table.total > 0]
        if "point" not in self.levels:
            return SplitSizes(rows, int(rows.sum()) if len(rows) == 1 else None, by=by)
        for scoped in (False, True) if "source" in self.levels else (False,):
            offset, width = self._point_offsets(scoped)
            distinct = points = 0
            for start, stop in block_bounds(max(width, 1), WINDOW):  # maybe no point has a label
                marked, used = self._count_window(table, offset, start, stop - start)
                distinct, points = distinct + marked, points + used
            if distinct == rows.sum():
                self.facts["scoped"] = scoped
                return SplitSizes(rows, points, by=by)
        return None

    def point_level(self) -> Level:
        """Return the level of points, without unused labels if most are unused."""
        level = self.levels["point"]
        if len(level.labels) <= max(SPARSE[0] * self.size, SPARSE[1]):
            return level
        if "pointed" not in self.facts:
            codes = level.block(0, self.size)
            used, few = np.unique(codes, return_inverse=True)
            gone = int(np.searchsorted(used, 0))
            few = few.reshape(-1).astype(np.int32) - np.int32(gone)  # -1 remains -1
            self.facts["pointed"] = Level(range(len(used) - gone), few)
        found: Level = self.facts["pointed"]
        return found

    def _point_codes(self, offset: NDArray[np.int64] | None, start: int, stop: int) -> Any:
        codes = self.point_level().block(start, stop)
        if offset is None:
            return codes
        scoped = codes + offset[self.levels["source"].block(start, stop)]
        return readonly(np.where(codes < 0, -1, scoped))

    def point_numbers(self) -> IntArray:
        """Assign a number to the point of each row; within sources, if names recur in several."""
        offset, _ = self._point_offsets(self.facts.get("scoped", False))
        return np.asarray(self._point_codes(offset, 0, self.size), dtype=np.int64)

    def _count_window(
        self, table: CellTable, offset: NDArray[np.int64] | None, origin: int, width: int
    ) -> tuple[int, int]:
        """Count the distinct (split, point) in a window of points, and the points."""
        blocks = block_bounds(self.size, PIECE * BLOCK)
        mark_seen = kernels.mark_few_seen if self.size <= kernels.FEW else kernels.mark_seen
        found, used = 0, np.zeros(width, dtype=np.uint8)
        for low, high in block_bounds(table.size, WINDOW, width):
            seen = np.zeros((high - low) * width, dtype=np.uint8)

            def work(b: int, low: int = low, seen: NDArray[np.uint8] = seen) -> None:
                start, stop = blocks[b]
                points = self._point_codes(offset, start, stop)
                cells = self.cells(table.by, start, stop, narrow=True)
                mark_seen(seen, cells, points, low, origin, width)

            for _ in ordered_map(work, len(blocks)):
                pass
            found += int(np.count_nonzero(seen))
            np.maximum(used, seen.reshape(-1, width).max(axis=0), out=used)
        return found, int(np.count_nonzero(used))

    def _point_offsets(self, scoped: bool) -> tuple[NDArray[np.int64] | None, int]:
        """Count the labels of points; if they are numbered source by source, from which number."""
        point = self.point_level()
        if not scoped:
            return None, len(point.labels)
        source = self.levels["source"]
        width = np.zeros(len(source.labels), dtype=np.int64)
        for start, stop in block_bounds(self.size, BLOCK):
            np.maximum.at(width, source.block(start, stop), point.block(start, stop) + 1)
        return np.concatenate([[0], np.cumsum(width)[:-1]]), int(width.sum())

    def _repeated_error(self, by: tuple[str, ...]) -> LogError:
        """Make the error for rows that share a split and a point."""
        names = (*by, "point", *(["source"] if "source" in self.levels else []))
        keys, full = self._number_rows(names), self._number_rows(self.identity())
        order = np.lexsort((np.arange(self.size), full, keys))  # duplicates become neighbors
        order = order[keys[order] >= 0]
        again = np.flatnonzero(np.diff(keys[order]) == 0)
        rows = [sorted((int(order[i]), int(order[i + 1]))) for i in again]
        pairs = sorted((two, one) for one, two in rows)
        same = [(two, one) for two, one in pairs if full[one] == full[two]]
        if same:
            return self._duplicate_error(same)
        moved = [
            f"{self.format_labels(one)} and {self.format_labels(two)}" for two, one in pairs[:MOST]
        ]
        within = f"one {by[-1]}" if by else "the log"
        return LogError(
            f"a point appears in two folds of {within}: {listed(moved, len(pairs))}. Expected "
            "each point in only one fold of each repetition. If these are several random splits, "
            "label each as a separate repetition, as in cvstats.as_log(frame, repetition='split'); "
            "if points of different sources have the same labels, add the level 'source'."
        )

    def _number_rows(self, names: Sequence[str]) -> IntArray:
        """Assign numbers to the rows of the log by their labels in some levels."""
        sizes = [len(self.levels[name].labels) for name in names]
        return CellIndex.numbered(sizes, self._codes(names, 0, self.size))[1]

    def _duplicate_error(self, same: list[tuple[int, int]]) -> LogError:
        """Make the error for rows that share all their labels."""
        others = [name for name in self.levels if name not in LEVELS]
        shown = [
            f"{self.format_labels(one)} (rows {one:,} and {two:,})" for two, one in same[:MOST]
        ]
        drop = ": log[~log.index.duplicated()]"
        if self.of_array:
            drop = f", as in log.drop_duplicates({self.identity()[-1]!r})"
        hint = (
            f"If rows are duplicates, drop them{drop}. If they are "
            "runs or seeds, number them in a level 'repetition'. If they are lead times or other "
            "conditions, add a level such as 'lead_time' and pass by='lead_time'."
        )
        if others:
            name = others[0]
            models = f"give each model a column: log.unstack({name!r})"
            if self.of_array:
                models = "make it a dimension 'model'"
            select = self.suggest_selection(name, self.levels[name].labels[0])
            hint = (
                f"The level {name!r} does not identify evaluations; if it names the models, "
                f"{models}. If it numbers runs or seeds, rename it to 'repetition'. If it is a "
                f"lead time or another condition, select a label: {select}; or pass by={name!r} to "
                "a function that has by=."
            )
        return LogError(
            f"the same evaluation appears twice: {listed(shown, len(same))}. Expected each "
            f"({', '.join(self.identity())}) once. {hint}"
        )

    # --- points under each label ------------------------------------------------------------

    def count_points(self, level: str) -> tuple[IntArray, str | None]:
        """Count the distinct points under each label of a level (cached).

        Also describe a point that occurs under several labels, if there is one.
        """
        if ("points", level) not in self.facts:
            self.facts["points", level] = self._count_points(level)
        counts, shared = self.facts["points", level]
        if shared is None:
            return counts, None
        row, code = shared  # formatted only now: the labels of an index may be replaced
        other = spelled(self.levels[level].labels[code])
        where = self.format_labels(row, level)
        return counts, f"the point at {where} appears in {level}={other} too"

    def _count_points(self, level: str) -> tuple[IntArray, tuple[int, int] | None]:
        """Count the points; also find the row and another label code of a shared point."""
        if "scoped" not in self.facts:
            self._unique_splits(tuple(name for name in self.identity() if name in SPLIT))
        offset, width = self._point_offsets(self.facts.get("scoped", False))
        owner = np.full(width, -1, dtype=np.int32)
        for _, points, labels in self._labelled_points(level, offset):
            owner[points] = labels
        for rows, points, labels in self._labelled_points(level, offset):
            moved = np.flatnonzero(owner[points] != labels)
            if len(moved):
                place = int(rows[moved[0]]), int(owner[points[moved[0]]])
                return self._count_shared_points(level, offset, width), place
        size = len(self.levels[level].labels)
        return np.bincount(owner[owner >= 0], minlength=size).astype(np.int64), None

    def _labelled_points(
        self, level: str, offset: NDArray[np.int64] | None
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Iterate over the evaluations: their rows, points and labels of the level."""
        for start, stop in block_bounds(self.size, BLOCK):
            points = self._point_codes(offset, start, stop)
            labels = self.levels[level].block(start, stop).astype(np.int64)
            here = (points >= 0) & (labels >= 0)
            if self.valid is not None:
                here &= self.valid[start:stop]
            rows = np.flatnonzero(here)
            yield (rows + start).astype(np.int64), points[rows], labels[rows]

    def _count_shared_points(
        self, level: str, offset: NDArray[np.int64] | None, width: int
    ) -> IntArray:
        """Count the points of each label if a point may have several labels."""
        size = len(self.levels[level].labels)
        counts = np.zeros(size, dtype=np.int64)
        for low, high in block_bounds(size, WINDOW, width):
            seen = np.zeros((high - low, width), dtype=bool)
            for _, points, labels in self._labelled_points(level, offset):
                held = (labels >= low) & (labels < high)
                seen[labels[held] - low, points[held]] = True
            counts[low:high] = seen.sum(axis=1)
        return counts
