"""Losses by row and column, for any memory layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cvstats.core.design import Design, readonly
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import FloatArray, IntArray, MaskArray

SIDE_BY_SIDE = 16
"""With at least this many columns in C order, losses are read row by row."""

FIRST = 16
"""Rows examined at first, which usually show whether there are losses other than 0 and 1."""

Table = NDArray[Any]

KIND = attrgetter("dtype.kind")
"""The kind of dtype of a table: i for integers, f for floating-point numbers."""

READABLE = (np.float64, np.float32)
"""The dtypes that kernels read without conversion."""


@dataclass(frozen=True, eq=False)
class LossColumns:
    """Losses in tables of the same rows, side by side, each of shape (rows, columns)."""

    tables: tuple[Table, ...]

    @cached_property
    def width(self) -> int:
        """Number of columns of all tables together."""
        return sum(map(itemgetter(1), map(np.shape, self.tables)))

    @cached_property
    def order(self) -> str:
        """Memory order of a single table: C if it has many columns, F if kernels read its dtype.

        Otherwise empty.
        """
        table = self.tables[0]
        if len(self.tables) > 1:
            return ""
        if self.width >= SIDE_BY_SIDE and table.flags.c_contiguous:
            return "C"
        return "F" if table.flags.f_contiguous and table.dtype in READABLE else ""

    def find(self, j: int) -> tuple[Table, int]:
        """Find the table of a column, and the column's position in it."""
        for table in self.tables:
            if j < table.shape[1]:
                return table, j
            j -= table.shape[1]
        raise IndexError(j)

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Return some rows of one column: contiguous, read-only, float64."""
        table, at = (self.tables[0], j) if len(self.tables) == 1 else self.find(j)
        return readonly(np.ascontiguousarray(table[start:stop, at], dtype=np.float64))

    def take(self, columns: IntArray, start: int, stop: int) -> FloatArray:
        """Return some rows of some columns, one line per column."""
        table = self.tables[0][start:stop]
        if len(self.tables) == 1:
            every = np.array_equal(columns, np.arange(table.shape[1]))
            return (table if every else table[:, columns]).T.astype(np.float64, copy=False)
        return np.stack([self.column(int(j), start, stop) for j in columns])

    def missing(self, start: int, stop: int) -> MaskArray:
        """Find the missing losses (NaN) of some consecutive rows, in all columns."""
        parts = []
        for table in self.tables:
            part = table[start:stop]
            whole = part.dtype.kind != "f"
            parts.append(np.zeros(part.shape, dtype=bool) if whole else np.isnan(part))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def table(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Copy any rows of any columns, one line per row."""
        if len(self.tables) == 1:
            step = int(columns[1] - columns[0]) if len(columns) > 1 else 1
            at: Any
            if step > 0 and (np.diff(columns) == step).all():
                at = rows, slice(columns[0], columns[-1] + 1, step)  # five times faster
            else:
                at = np.ix_(rows, columns)
            part: FloatArray = self.tables[0][at].astype(np.float64, copy=False)
            return part
        found = map(self.find, columns.tolist())
        return np.stack([table[rows, at] for table, at in found], axis=1).astype(np.float64)

    def column_major(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Return a table with one contiguous line per column: the log itself, or a copy.

        Also return where in it the columns and the rows start.
        """
        if self.order == "F":
            return readonly(self.tables[0].T), columns.start, start
        part = [self.column(j, start, stop) for j in range(columns.start, columns.stop)]
        return readonly(part[0][None] if len(part) == 1 else np.stack(part)), 0, 0

    def row_major(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Return a table with one line per row, and where its rows and columns start.

        It is the log itself if kernels read its dtype, otherwise a copy.
        """
        table = self.tables[0]
        if table.dtype in READABLE:
            return readonly(table), start, columns.start
        part = np.ascontiguousarray(table[start:stop, columns], dtype=np.float64)
        return readonly(part), 0, 0


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of pairs of columns, computed block by block."""

    losses: LossColumns
    left: IntArray
    right: IntArray

    @cached_property
    def width(self) -> int:
        """Number of pairs."""
        return len(self.left)

    @property
    def order(self) -> str:
        """C for many pairs of columns side by side; other differences are not in memory yet."""
        return "C" if self.losses.order == "C" and self.width >= SIDE_BY_SIDE else ""

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Return some rows of one difference."""
        left = self.losses.column(int(self.left[j]), start, stop)
        with np.errstate(invalid="ignore"):  # infinite losses are refused by the caller
            return readonly(left - self.losses.column(int(self.right[j]), start, stop))

    def take(self, columns: IntArray, start: int, stop: int) -> FloatArray:
        """Return some rows of some pairs, one line per pair."""
        left = self.losses.take(self.left[columns], start, stop)
        with np.errstate(invalid="ignore"):  # infinite losses are refused by the caller
            return left - self.losses.take(self.right[columns], start, stop)

    def column_major(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Return some rows of consecutive pairs, one line per pair."""
        part = [self.column(j, start, stop) for j in range(columns.start, columns.stop)]
        return readonly(np.stack(part)), 0, 0

    def row_major(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Return some rows of consecutive pairs, one line per row."""
        rows = self.losses.tables[0][start:stop]
        sides = (rows[:, side[columns]] for side in (self.left, self.right))
        left, right = (side.astype(np.float64, copy=False) for side in sides)
        with np.errstate(invalid="ignore"):
            return readonly(left - right), 0, 0


Columns: TypeAlias = LossColumns | Differences
"""Losses by row and column, for any memory layout."""


def binary_columns(design: Design, losses: Columns, *, signs: bool = False) -> MaskArray:
    """Find the columns whose losses are all exactly 0 or 1 (or -1); NaN is not a loss."""
    first = losses.take(np.arange(losses.width), 0, FIRST)
    here = slice(None) if design.valid is None else design.valid[:FIRST]
    found: MaskArray = np.logical_and.reduce(is_binary(first[:, here], signs), axis=1)
    for start, stop in block_bounds(design.size, BLOCK):
        here = slice(None) if design.valid is None else design.valid[start:stop]
        for j in np.flatnonzero(found).tolist():
            found[j] = is_binary(losses.column(j, start, stop)[here], signs).all()
    return found


def is_binary(values: FloatArray, signs: bool) -> MaskArray:
    """Find the losses that are 0, 1 (or -1) or missing."""
    size = np.abs(values) if signs else values
    found: MaskArray = (size == 0) | (size == 1) | np.isnan(values)
    return found
