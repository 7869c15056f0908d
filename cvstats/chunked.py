"""Kernels over blocks of rows and tiles of columns, and their moments merged in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cvstats import kernels
from cvstats.blocks import BLOCK, Scratch, each, spans
from cvstats.design import Design, frozen
from cvstats.moments import Moments, State, pool
from cvstats.types import FloatArray, IntArray

__all__ = ["Columns", "Differences", "Panels", "all_binary", "moments"]

SIDE_BY_SIDE = 16
"""From so many row-major columns on, a row is read across and not column by column."""

TILE = 64
BATCH = 64

Table = NDArray[Any]


class Columns(Protocol):
    """Losses by row and column, without saying how they lie in memory."""

    @property
    def width(self) -> int:
        """Number of columns."""

    @property
    def across(self) -> bool:
        """Whether neighbouring columns lie side by side."""

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Take some rows of one column, contiguous, read-only, in float64."""

    def tile(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Give a C-contiguous read-only table, and where in it the rows and columns start."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Tables of the same rows, one beside the other, each of shape (rows, columns)."""

    tables: tuple[Table, ...]

    @property
    def width(self) -> int:
        """Number of columns of all tables together."""
        return sum(table.shape[1] for table in self.tables)

    @property
    def across(self) -> bool:
        """Whether there is one table, of many columns, with its rows in one piece."""
        table = self.tables[0]
        return len(self.tables) == 1 and self.width >= SIDE_BY_SIDE and table.flags.c_contiguous

    def find(self, j: int) -> tuple[Table, int]:
        """Find the table that holds a column, and the column's place in it."""
        for table in self.tables:
            if j < table.shape[1]:
                return table, j
            j -= table.shape[1]
        raise IndexError(j)

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Take some rows of one column, contiguous, read-only, in float64."""
        table, at = self.find(j)
        return frozen(np.ascontiguousarray(table[start:stop, at], dtype=np.float64))

    def tile(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Give the table itself where the kernel reads its type, else a copy of the tile."""
        table = self.tables[0]
        if table.dtype in (np.float64, np.float32):
            return frozen(table), start, columns.start
        part = np.ascontiguousarray(table[start:stop, columns], dtype=np.float64)
        return frozen(part), 0, 0


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of pairs of columns, made block by block."""

    panels: Panels
    left: IntArray
    right: IntArray

    @property
    def width(self) -> int:
        """Number of pairs."""
        return len(self.left)

    @property
    def across(self) -> bool:
        """Whether the columns lie side by side and the pairs are many."""
        return self.panels.across and self.width >= SIDE_BY_SIDE

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Take some rows of one difference."""
        left = self.panels.column(int(self.left[j]), start, stop)
        return frozen(left - self.panels.column(int(self.right[j]), start, stop))

    def tile(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Take some rows of neighbouring pairs."""
        rows = self.panels.tables[0][start:stop]
        left = rows[:, self.left[columns]].astype(np.float64, copy=False)
        return frozen(left - rows[:, self.right[columns]]), 0, 0


def moments(design: Design, losses: Columns, by: Sequence[str]) -> Moments:
    """Moments of every column in every cell, in one pass over the losses.

    The pass is cut into blocks of rows and tiles of columns whose sizes depend on the log
    alone; blocks merge in their order, so that the number of threads changes nothing.
    """
    plan = design.plan(tuple(by))
    width = losses.width
    across = losses.across
    tile = TILE if not across else int(np.clip(10_000 // max(plan.size, 1), 16, 1024))
    tiles = [slice(*span) for span in spans(width, tile)]
    blocks = spans(design.size, plan.rows)
    scratch = Scratch()

    def work(task: int) -> State:
        t, b = divmod(task, len(blocks))
        start, stop = blocks[b]
        cells: NDArray[np.int32] | None = None
        if across or plan.counts[b].max() < stop - start:  # else all rows are of one cell
            out = scratch.array("cells", stop - start, np.int32)
            cells = design.cells(plan.by, start, stop, out)
        if across and cells is not None:
            return _across(losses, tiles[t], start, cells, plan.counts[b], plan.first[b])
        return _down(losses, tiles[t], blocks[b], cells, plan.counts[b], plan.first[b])

    results = each(work, len(tiles) * len(blocks))
    used = plan.used
    mean = np.empty((len(used), width))
    m2 = np.empty((len(used), width))
    count = plan.total[used].astype(np.float64)
    for columns in tiles:
        parts: list[State] = []
        for _ in blocks:
            parts.append(next(results))
            if len(parts) == BATCH:
                parts = [_pooled(parts)]
        _, mean_here, m2_here = _pooled(parts)
        mean[:, columns] = mean_here[used]
        m2[:, columns] = m2_here[used]
    labels = tuple(design.levels[name].labels for name in plan.by)
    return Moments(plan.by, labels, design.codes_of(plan), count, mean, m2)


def _pooled(parts: list[State]) -> State:
    count, mean, m2 = zip(*parts, strict=True)
    return pool(np.stack(count), np.stack(mean), np.stack(m2))


def _state(counts: IntArray, shift: FloatArray, sums: FloatArray, squares: FloatArray) -> State:
    """Turn sums about a shift into a mean and squared deviations about it."""
    n = counts.astype(np.float64)
    share = sums / np.maximum(n, 1)[:, None]
    with np.errstate(invalid="ignore"):  # infinite losses are named later, by their label
        return n, shift + share, np.maximum(squares - sums * share, 0.0)


def _down(
    losses: Columns,
    columns: slice,
    block: tuple[int, int],
    cells: NDArray[np.int32] | None,
    counts: IntArray,
    first: IntArray,
) -> State:
    """One block, a column at a time."""
    names = range(columns.start, columns.stop)
    sums = np.zeros((2, len(names), len(counts), kernels.LANES))
    shift = np.zeros((len(names), len(counts)))
    lanes = sums.reshape(2, len(names), -1)
    only = int(counts.argmax())
    for at, j in enumerate(names):
        values = losses.column(j, *block)
        if cells is None:
            shift[at, only] = values[0]
            kernels.accumulate_one(values, values[0], sums[0, at, only], sums[1, at, only])
            continue
        shift[at] = np.where(counts > 0, values[first], 0.0)
        kernels.accumulate(values, cells, shift[at], lanes[0, at], lanes[1, at])
    total = sums.sum(axis=3)
    return _state(counts, shift.T, total[0].T, total[1].T)


def _across(
    losses: Columns,
    columns: slice,
    start: int,
    cells: NDArray[np.int32],
    counts: IntArray,
    first: IntArray,
) -> State:
    """One block, many columns of a row at a time."""
    table, row, column = losses.tile(columns, start, start + len(cells))
    width = columns.stop - columns.start
    among = table[row + first, column : column + width].astype(np.float64)
    shift = np.where((counts > 0)[:, None], among, 0.0)
    sums, squares = np.zeros_like(shift), np.zeros_like(shift)
    kernels.accumulate_wide(table, row, column, cells, shift, sums, squares)
    return _state(counts, shift, sums, squares)


def all_binary(design: Design, losses: Columns) -> bool:
    """Whether every loss is exactly 0 or 1."""
    for start, stop in spans(design.size, BLOCK):
        here = slice(None) if design.present is None else design.present[start:stop]
        for j in range(losses.width):
            values = losses.column(j, start, stop)[here]
            if not np.all((values == 0) | (values == 1)):
                return False
    return True
