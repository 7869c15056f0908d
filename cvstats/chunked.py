"""Kernels over blocks of rows and tiles of columns, and their moments merged in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cvstats import kernels
from cvstats.blocks import BLOCK, Scratch, each, spans
from cvstats.design import Design, frozen
from cvstats.moments import Moments, State, pool
from cvstats.types import FloatArray, IntArray

__all__ = ["Columns", "Differences", "Panels", "all_binary", "co_moments", "moments"]

SIDE_BY_SIDE = 16
"""From so many row-major columns on, a row is read across and not column by column."""

TILE = 8
BATCH = 64

TABLE = 1 << 20
"""Numbers in the one extra table of rows that all pairs need."""

LARGEST = 1 << 25
"""Numbers in all matrices of co-moments together, at the most."""

FAR = 1e3
"""A shift this much farther from the mean than the losses are is chosen anew."""

ALIKE = 1e-3
"""Pairs whose difference keeps a smaller share of the models' spread are summed directly."""

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

    def some(self, columns: IntArray, start: int, stop: int) -> FloatArray:
        """Take some rows of some columns, a row for each column."""
        table = self.tables[0][start:stop]
        if len(self.tables) == 1 and len(columns) == table.shape[1]:
            return table.T.astype(np.float64, copy=False)
        return np.stack([self.column(int(j), start, stop) for j in columns])

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

    Many pairs of few models come from the models' co-moments, not from a column for each.
    """
    if isinstance(losses, Differences):
        models = len(np.unique(np.concatenate([losses.left, losses.right])))
        cells = len(design.plan(tuple(by)).used)
        dense = losses.width > max(2 * models, models**2 // 4)  # not pairs of carried cells
        if dense and cells * models**2 <= LARGEST:
            return _paired(design, losses, by)
    return _moments(design, losses, by)


def co_moments(
    design: Design, panels: Panels, models: IntArray, by: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum counts, means and matrices of centred cross products of columns, for each cell.

    Columns are taken about their first loss, so that their levels cost no digits, and rows
    about their own mean over the columns, so that the sums hold only what the models do not
    share. Differences of columns stay what they are; single means and products do not. The
    levels come last: the difference of two means is that of their means and of their levels.
    """
    row = 0 if design.present is None else int(design.present.argmax())
    level = panels.some(models, row, row + 1)
    plan = design.plan(tuple(by))
    used = plan.used
    count = np.zeros(len(used))
    mean = np.zeros((len(used), len(models)))
    cross = np.zeros((len(used), len(models), len(models)))
    where = np.full(plan.size, -1)
    where[used] = np.arange(len(used))
    for start, stop in spans(design.size, max(256, TABLE // len(models))):
        table = panels.some(models, start, stop)
        table = table - level
        table -= table.mean(axis=0)
        cells = design.cells(plan.by, start, stop)
        for k in np.unique(cells[cells >= 0]):
            part = table if plan.size == 1 and design.present is None else table[:, cells == k]
            middle = part.mean(axis=1)
            part -= middle[:, None]
            at, n = where[k], part.shape[1]
            step, total = middle - mean[at], count[at] + n
            cross[at] += part @ part.T + np.outer(step, step) * (count[at] * n / total)
            mean[at] += step * (n / total)
            count[at] = total
    return count, mean, cross, level[:, 0]


def _paired(design: Design, losses: Differences, by: Sequence[str]) -> Moments:
    """Moments of many differences, from one matrix of co-moments for each cell.

    With centred losses x and y of a cell, ``sum (x - y)^2 = sum x^2 + sum y^2 - 2 sum x y``.
    """
    plan = design.plan(tuple(by))
    models = np.unique(np.concatenate([losses.left, losses.right]))
    left, right = np.searchsorted(models, losses.left), np.searchsorted(models, losses.right)
    with np.errstate(invalid="ignore", over="ignore"):  # losses that are no numbers: named later
        count, mean, cross, level = co_moments(design, losses.panels, models, by)
        own = np.einsum("kii->ki", cross)
        both = own[:, left] + own[:, right]
        m2 = np.maximum(both - 2 * cross[:, left, right], 0.0)
        gap = mean[:, left] - mean[:, right] + (level[left] - level[right])
        alike = np.flatnonzero(~(m2 >= ALIKE * both).all(axis=0))
    if len(alike):
        few = Differences(losses.panels, losses.left[alike], losses.right[alike])
        direct = _moments(design, few, by)
        gap[:, alike], m2[:, alike] = direct.mean, direct.m2
    labels = tuple(design.levels[name].labels for name in plan.by)
    return Moments(plan.by, labels, design.codes_of(plan), count, gap, m2)


def _moments(design: Design, losses: Columns, by: Sequence[str]) -> Moments:
    """Moments of columns that are read, or made, one beside the other.

    The pass is cut into blocks of rows and tiles of columns whose sizes depend on the log
    alone; blocks merge in their order, so that the number of threads changes nothing.
    """
    plan = design.plan(tuple(by))
    width = losses.width
    across = losses.across
    cached = 10_000 // max(plan.size, 1)  # columns whose sums stay in the processor's cache
    tile = TILE if not across else int(np.clip(min(cached, width // 8), 16, 1024))
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
    with np.errstate(invalid="ignore", over="ignore"):
        return pool(np.stack(count), np.stack(mean), np.stack(m2))


def _state(
    counts: IntArray,
    shift: FloatArray,
    add: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
) -> State:
    """Turn sums about a shift into means and squared deviations about them.

    Where the shift turns out to lie far from the rest of its cell, the deviations would be
    the small difference of large sums; then all is added again, about the means.
    """
    n = counts.astype(np.float64)[:, None]
    with np.errstate(invalid="ignore", over="ignore"):  # named later, by label
        for _ in range(2):
            sums, squares = add(shift)
            share = sums / np.maximum(n, 1)
            m2 = squares - sums * share
            far = sums * share > FAR * m2
            if not far.any():
                break
            shift = np.where(far, shift + share, shift)
        return n[:, 0], shift + share, np.maximum(m2, 0.0)


def _down(
    losses: Columns,
    columns: slice,
    block: tuple[int, int],
    cells: NDArray[np.int32] | None,
    counts: IntArray,
    first: IntArray,
) -> State:
    """One block, a column at a time."""
    values = [losses.column(j, *block) for j in range(columns.start, columns.stop)]
    only = int(counts.argmax())

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.zeros((2, len(values), len(counts), kernels.LANES))
        lanes = sums.reshape(2, len(values), -1)
        for at, column in enumerate(values):
            if cells is None:
                level = shift[only, at]
                kernels.accumulate_one(column, level, sums[0, at, only], sums[1, at, only])
            else:
                about = np.ascontiguousarray(shift[:, at])
                kernels.accumulate(column, cells, about, lanes[0, at], lanes[1, at])
        total = sums.sum(axis=3)
        return total[0].T, total[1].T

    start = np.stack([column[first] for column in values], axis=1)
    return _state(counts, np.where((counts > 0)[:, None], start, 0.0), add)


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

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums, squares = np.zeros_like(shift), np.zeros_like(shift)
        kernels.accumulate_wide(table, row, column, cells, shift, sums, squares)
        return sums, squares

    among = table[row + first, column : column + width].astype(np.float64)
    return _state(counts, np.where((counts > 0)[:, None], among, 0.0), add)


def all_binary(design: Design, losses: Columns) -> bool:
    """Whether every loss that is there is exactly 0 or 1."""
    for start, stop in spans(design.size, BLOCK):
        here = slice(None) if design.present is None else design.present[start:stop]
        for j in range(losses.width):
            values = losses.column(j, start, stop)[here]
            if not np.all((values == 0) | (values == 1) | np.isnan(values)):
                return False
    return True
