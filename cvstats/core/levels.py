"""A level of a log: its labels, and which of them each row has; and the cells of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.types import IntArray, Labels

__all__ = [
    "LARGEST",
    "Codes",
    "Counts",
    "Grid",
    "Keys",
    "Level",
    "Plan",
    "coarser",
    "counted",
    "frozen",
]

Codes = NDArray[np.signedinteger[Any]]
Counts = NDArray[np.signedinteger[Any]]

LARGEST = 1 << 62
"""Numbers of combined codes stay below this, so that 64 bits hold each and one step more."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Codes along some axes of an array of evaluations, repeated along the others.

    Without ``base`` the code is the position along the one axis.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    base: NDArray[np.int32] | None = None

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Make the codes of some rows."""
        if self.axes == tuple(range(len(self.shape))):
            whole = self.base
            return np.arange(rows.start, rows.stop) if whole is None else whole.reshape(-1)[rows]
        every = np.arange(rows.start, rows.stop)
        at = [every // math.prod(self.shape[axis + 1 :]) % self.shape[axis] for axis in self.axes]
        return at[0] if self.base is None else self.base[tuple(at)]


@dataclass(frozen=True, eq=False)
class Level:
    """One level: its labels, and for each row the position of its label (-1: none)."""

    labels: Labels
    codes: Codes | Grid

    def block(self, start: int, stop: int) -> NDArray[np.int32]:
        """Take the codes of some rows, read-only and of one type."""
        return frozen(self.codes[start:stop].astype(np.int32, copy=False))


@dataclass(frozen=True, eq=False)
class Keys:
    """The combinations of codes that occur, numbered from 0 in their order.

    A combination is one whole number, the codes its digits. Where the digits of all levels would
    not fit into 64 bits, those of the first ones are replaced by the place of their combination
    among those that occur; ``tables[i]`` lists these, for the first ``i`` levels.
    """

    sizes: tuple[int, ...]
    tables: dict[int, IntArray] = field(default_factory=dict)

    @classmethod
    def of(cls, sizes: Sequence[int], parts: Callable[[], Iterable[Codes]]) -> Keys:
        """Find what occurs; ``parts`` goes through the rows, a line of codes for each level."""
        found, width = cls(tuple(sizes)), 1
        for level, size in enumerate(sizes):
            if width * size >= LARGEST:
                found._list(level, parts)
                width = len(found.tables[level])
            width *= size
        found._list(len(sizes), parts)
        return found

    @classmethod
    def numbered(cls, sizes: Sequence[int], codes: Codes) -> tuple[Keys, IntArray]:
        """Find what occurs among rows, a line of codes for each level; also number each row."""
        found = cls.of(sizes, lambda: [codes])
        return found, found.find(codes)

    def __len__(self) -> int:
        """Count the combinations."""
        return len(self.tables[len(self.sizes)])

    def find(self, codes: Codes) -> IntArray:
        """Find the number of each row; -1 where a code is negative."""
        place = np.searchsorted(self.tables[len(self.sizes)], self._numbers(codes, len(codes)))
        return np.where((codes >= 0).all(axis=0), place, -1)

    def codes(self) -> IntArray:
        """List the combinations, a column for each level."""
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
            every.append(np.unique(self._numbers(codes, levels)[here]))
        self.tables[levels] = np.unique(np.concatenate(every))

    def _numbers(self, codes: Codes, levels: int) -> IntArray:
        """Combine the first codes of each row; what has a negative one gets any number."""
        number = np.zeros(codes.shape[1], dtype=np.int64)
        for level in range(levels):
            if level in self.tables:
                number = np.searchsorted(self.tables[level], number).astype(np.int64, copy=False)
            number *= self.sizes[level]
            number += codes[level]
        return number


@dataclass(frozen=True, eq=False)
class Plan:
    """How the rows fall into cells: how many into each, and into how many blocks they are cut.

    ``keys`` lists the cells that occur where the product of all labels would be too many;
    otherwise it is None and every product has its number. ``blocks`` is None where cells and
    blocks are so many that their table is not kept.
    """

    by: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: int
    total: NDArray[np.int64]
    keys: Keys | None = None
    blocks: tuple[Counts, Counts] | None = None

    @property
    def size(self) -> int:
        """How many cells have a number."""
        return len(self.total)

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """The numbers of the cells that hold any row."""
        return np.flatnonzero(self.total)


def counted(rows: int, cells: NDArray[np.int32], size: int) -> tuple[Counts, Counts]:
    """Count, in each block of some rows, those of each cell, and find the first of them."""
    blocks = -(-len(cells) // rows)
    kind = np.int32 if rows <= np.iinfo(np.int32).max else np.int64
    counts, first = np.zeros((2, blocks, size), dtype=kind)
    kernels.count(cells, rows, counts, first)
    return counts, first


def coarser(plan: Plan, by: tuple[str, ...]) -> Plan | None:
    """Make the plan of a few levels from one that has one level more at the end, if it tells."""
    if plan.keys is not None or plan.blocks is None:
        return None
    counts, first = (table.reshape(len(table), -1, plan.sizes[-1]) for table in plan.blocks)
    begin = np.where(counts > 0, first, np.iinfo(first.dtype).max).min(axis=2)
    number = counts.sum(axis=2, dtype=counts.dtype)
    begin[number == 0] = 0
    total = number.sum(axis=0, dtype=np.int64)
    return Plan(by, plan.sizes[:-1], plan.rows, total, blocks=(number, begin))


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Show the same memory read-only: kernels are compiled once, not twice."""
    view = values.view()
    view.flags.writeable = False
    return view
