"""Losses by row and column, however they lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cvstats.core.levels import frozen
from cvstats.core.types import FloatArray, IntArray

__all__ = ["Columns", "Differences", "Panels", "Table"]

SIDE_BY_SIDE = 16
"""From so many row-major columns on, a row is read across and not column by column."""

Table = NDArray[Any]


class Columns(Protocol):
    """Losses by row and column, without saying how they lie in memory."""

    @property
    def width(self) -> int:
        """Number of columns."""

    @property
    def across(self) -> bool:
        """Whether neighbouring columns lie side by side."""

    @property
    def down(self) -> bool:
        """Whether neighbouring columns lie one after the other, each in one piece."""

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Take some rows of one column, contiguous, read-only, in float64."""

    def lines(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Give a read-only table with a line for each column, each line in one piece.

        Also say where in it the columns and the rows start: it may be the whole log.
        """

    def tile(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Give a read-only table with a line for each row, and where its rows and columns start."""


def readable(table: Table) -> bool:
    """Whether the kernels read this type of number as it is."""
    return table.dtype in (np.float64, np.float32)


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

    @property
    def down(self) -> bool:
        """Whether there is one table with its columns in one piece, of a type that is read."""
        table = self.tables[0]
        return len(self.tables) == 1 and table.flags.f_contiguous and readable(table)

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

    def some(self, columns: IntArray, start: int, stop: int) -> FloatArray:
        """Take some rows of some columns, a line for each column."""
        table = self.tables[0][start:stop]
        if len(self.tables) == 1 and len(columns) == table.shape[1]:
            return table.T.astype(np.float64, copy=False)
        return np.stack([self.column(int(j), start, stop) for j in columns])

    def lines(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Give the table itself where its columns are in one piece, else a copy of the part."""
        if self.down:
            return frozen(self.tables[0].T), columns.start, start
        part = [self.column(j, start, stop) for j in range(columns.start, columns.stop)]
        return frozen(part[0][None] if len(part) == 1 else np.stack(part)), 0, 0

    def tile(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Give the table itself where the kernel reads its type, else a copy of the tile."""
        table = self.tables[0]
        if readable(table):
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

    @property
    def down(self) -> bool:
        """Differences lie nowhere yet."""
        return False

    def column(self, j: int, start: int, stop: int) -> FloatArray:
        """Take some rows of one difference."""
        left = self.panels.column(int(self.left[j]), start, stop)
        with np.errstate(invalid="ignore"):  # infinite losses are refused by who asks
            return frozen(left - self.panels.column(int(self.right[j]), start, stop))

    def lines(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Take some rows of neighbouring pairs, a line for each pair."""
        part = [self.column(j, start, stop) for j in range(columns.start, columns.stop)]
        return frozen(np.stack(part)), 0, 0

    def tile(self, columns: slice, start: int, stop: int) -> tuple[Table, int, int]:
        """Take some rows of neighbouring pairs, a line for each row."""
        rows = self.panels.tables[0][start:stop]
        sides = (rows[:, side[columns]] for side in (self.left, self.right))
        left, right = (side.astype(np.float64, copy=False) for side in sides)
        with np.errstate(invalid="ignore"):
            return frozen(left - right), 0, 0
