"""Cross products of columns within cells, and moments of many pairs from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from cvstats.core import kernels
from cvstats.core.cells import Cells, choose_origin
from cvstats.core.columns import Differences, LossColumns, Table
from cvstats.core.design import CellTable, Design, readonly
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray

T = TypeVar("T")

TABLE = 1 << 19
"""Numbers in an extra table of rows."""

TOGETHER = 4
"""Number of such tables that threads fill at once."""

LARGEST = 1 << 25
"""Maximum total number of entries in the matrices of co-moments."""

ALIKE = 1e-3
"""Pairs whose difference has less than this share of the models' spread are summed directly."""


def use_cross_products(design: Design, losses: Differences, by: Sequence[str]) -> bool:
    """Whether there are so many pairs that one matrix per cell is less work."""
    models = len(np.unique(np.concatenate([losses.left, losses.right])))
    dense = losses.width > max(2 * models, models**2 // 4)  # not pairs of carried cells
    return dense and len(design.cell_table(tuple(by)).used) * models**2 <= LARGEST


def pair_moments(design: Design, losses: Differences, by: Sequence[str]) -> tuple[Cells, IntArray]:
    """Compute moments of many differences from one matrix of co-moments per cell.

    With centered losses x and y of a cell, ``sum (x - y)^2 = sum x^2 + sum y^2 - 2 sum x y``.
    Also returns the pairs of models that are so similar that this loses digits.
    """
    table = design.cell_table(tuple(by))
    models = np.unique(np.concatenate([losses.left, losses.right]))
    left, right = np.searchsorted(models, losses.left), np.searchsorted(models, losses.right)
    with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
        count, mean, cross, level = co_moments(design, losses.losses, models, by)
        own = np.einsum("kii->ki", cross)
        both = own[:, left] + own[:, right]
        m2 = np.maximum(both - 2 * cross[:, left, right], 0.0)
        apart, gap = level[left] - level[right], mean[:, left] - mean[:, right]
        origin = choose_origin(count, apart + gap, m2)
        gap += apart - origin
        alike = np.flatnonzero(~(m2 >= ALIKE * both).all(axis=0))
    return Cells(table.by, design.labels(table.by), table.codes, count, gap, m2, origin), alike


def co_moments(
    design: Design, losses: LossColumns, models: IntArray, by: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum counts, means and matrices of centered cross products of columns, for each cell.

    Columns are centered at their first loss, so that no digits are lost, and rows at their mean
    over the columns, which removes what the models share. Differences of losses are not affected;
    single means and products are. The first losses (levels) are the last column: a difference of
    two means is the difference of the centered means plus that of the levels.
    """
    row = 0 if design.valid is None else int(design.valid.argmax())
    level = losses.take(models, row, row + 1)[:, 0]
    table = design.cell_table(tuple(by))
    count = np.zeros(len(table.used))
    mean = np.zeros((len(table.used), len(models)))
    cross = np.zeros((len(table.used), len(models), len(models)))
    for found in _center_cells(design, losses, models, table, level):
        for at, part, middle in found:
            n = part.shape[1] - 1
            step, total = middle - mean[at], count[at] + n
            part[:, n] = step * np.sqrt(count[at] * n / total)  # what the means differ by
            cross[at] += part @ part.T
            mean[at] += step * (n / total)
            count[at] = total
    return count, mean, cross, level


def cross_products(
    design: Design, losses: LossColumns, models: IntArray, found: Cells
) -> tuple[FloatArray, FloatArray]:
    """Sum the cross products of columns about their cells' means, over all cells.

    ``found`` has the moments of these columns. Also returns the sum of the residuals of each
    column, which is zero except for rounding.
    """
    table = design.cell_table(found.levels)
    mean = np.zeros((table.size, len(models)))
    mean[table.used] = found.location
    whole = table.size == 1 and design.valid is None
    total = np.zeros((len(models), len(models)))
    rest = np.zeros(len(models))

    def center(start: int, stop: int, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        cells = np.empty(0, np.int32) if whole else design.cells(table.by, start, stop)
        values, row, picks = _kernel_table(losses, models, start, stop)
        own = np.zeros(len(models))
        part = memory[: (stop - start) * len(models)]
        if losses.c_order:
            out = part.reshape(stop - start, -1)
            kernels.residual_rows(values, row, readonly(cells), picks, mean, out, own)
            return out.T, own
        out = part.reshape(len(models), -1)
        kernels.residual_columns(values, row, readonly(cells), picks, mean, out, own)
        return out, own

    for part, own in _map_blocks(design.size, len(models), 0, center):
        total += part @ part.T
        rest += own
    return total, rest


def _map_blocks(
    size: int, width: int, extra: int, work: Callable[[int, int, FloatArray], T]
) -> Iterator[T]:
    """Yield ``work(start, stop, memory)`` of each block of rows; threads work on a few at once.

    The memory has room for ``width`` numbers per row and for up to ``extra`` more rows, at most as
    many as the block has. It is reused after a few blocks.
    """
    rows = max(256, TABLE // width)
    bounds = block_bounds(size, rows)
    longest = min(rows, size)
    memory = np.empty((min(len(bounds), TOGETHER), (longest + min(extra, longest)) * width))
    for at in range(0, len(bounds), TOGETHER):
        some = bounds[at : at + TOGETHER]

        def one(i: int, some: list[tuple[int, int]] = some) -> T:
            return work(*some[i], memory[i])

        yield from list(ordered_map(one, len(some)))


def _center_cells(
    design: Design, losses: LossColumns, models: IntArray, table: CellTable, level: FloatArray
) -> Iterator[list[tuple[int, FloatArray, FloatArray]]]:
    """Yield for each block of rows its cells as (cell, residuals, their means).

    The residuals have one line per model, with room for one more row at the end.
    """
    where = np.full(table.size, -1)
    where[table.used] = np.arange(len(table.used))

    def center(
        start: int, stop: int, memory: FloatArray
    ) -> list[tuple[int, FloatArray, FloatArray]]:
        cells = design.cells(table.by, start, stop)
        values, begin, picks = _kernel_table(losses, models, start, stop)
        found = []
        for k in np.unique(cells[cells >= 0]):
            at = begin + np.flatnonzero(cells == k)
            middle = np.empty(len(models))
            part, memory = np.split(memory, [(len(at) + 1) * len(models)])
            if losses.c_order:
                out = part.reshape(len(at) + 1, -1)
                kernels.center_rows(values, at, picks, level, out, middle)
                found.append((int(where[k]), out.T, middle))
            else:
                out = part.reshape(len(models), -1)
                kernels.center_columns(values, at, picks, level, out, middle)
                found.append((int(where[k]), out, middle))
        return found

    return _map_blocks(design.size, len(models), len(table.used), center)


def _kernel_table(
    losses: LossColumns, models: IntArray, start: int, stop: int
) -> tuple[Table, int, IntArray]:
    """Find a table for the kernels, where its rows start, and which of its columns to use.

    It has one line per row if rows are contiguous, otherwise one line per column.
    """
    if losses.c_order:
        table, row, _ = losses.row_major(slice(0, losses.width), start, stop)
        return table, row, models
    if losses.f_order:
        table, _, row = losses.column_major(slice(0, losses.width), start, stop)
        return table, row, models
    return readonly(losses.take(models, start, stop)), 0, np.arange(len(models))
