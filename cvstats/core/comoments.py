"""Cross products of columns within cells, and moments of many pairs from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cvstats.core import kernels
from cvstats.core.cells import Moments, choose_origin
from cvstats.core.columns import Differences, LossColumns, Table
from cvstats.core.design import CellTable, Design, readonly
from cvstats.core.threads import block_bounds
from cvstats.core.types import FloatArray, IntArray

TABLE = 1 << 18
"""Numbers in the one extra table of rows that all pairs need."""

LARGEST = 1 << 25
"""Numbers in all matrices of co-moments together, at the most."""

ALIKE = 1e-3
"""Pairs whose difference keeps a smaller share of the models' spread are summed directly."""


def use_cross_products(design: Design, losses: Differences, by: Sequence[str]) -> bool:
    """Return whether the pairs are so many that one matrix for each cell is less work."""
    models = len(np.unique(np.concatenate([losses.left, losses.right])))
    dense = losses.width > max(2 * models, models**2 // 4)  # not pairs of carried cells
    return dense and len(design.cell_table(tuple(by)).used) * models**2 <= LARGEST


def pair_moments(
    design: Design, losses: Differences, by: Sequence[str]
) -> tuple[Moments, IntArray]:
    """Compute moments of many differences from one matrix of co-moments for each cell.

    With centered losses x and y of a cell, ``sum (x - y)^2 = sum x^2 + sum y^2 - 2 sum x y``.
    Also returns the pairs of models so alike that this loses digits.
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
    labels = tuple(design.levels[name].labels for name in table.by)
    return Moments(table.by, labels, design.codes_of(table), count, gap, m2, origin), alike


def co_moments(
    design: Design, losses: LossColumns, models: IntArray, by: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum counts, means and matrices of centered cross products of columns, for each cell.

    Columns are taken about their first loss, so that their levels cost no digits, and rows
    about their own mean over the columns, so that the sums hold only what the models do not
    share. Differences of losses stay what they are; single means and products do not. The
    levels come last: the difference of two means is that of their means and of their levels.
    """
    row = 0 if design.present is None else int(design.present.argmax())
    level = losses.some(models, row, row + 1)[:, 0]
    table = design.cell_table(tuple(by))
    count = np.zeros(len(table.used))
    mean = np.zeros((len(table.used), len(models)))
    cross = np.zeros((len(table.used), len(models), len(models)))
    for at, part, middle in _centered_blocks(design, losses, models, table, level):
        n = part.shape[1]
        step, total = middle - mean[at], count[at] + n
        cross[at] += part @ part.T
        if count[at]:
            cross[at] += np.outer(step, step) * (count[at] * n / total)
        mean[at] += step * (n / total)
        count[at] = total
    return count, mean, cross, level


def cross_products(
    design: Design, losses: LossColumns, models: IntArray, found: Moments
) -> tuple[FloatArray, FloatArray]:
    """Sum the cross products of columns about their cells' means, over all cells.

    ``found`` holds the moments of these columns. Also gives what is left of each column when
    its cells' means are taken away: nothing, but for rounding.
    """
    table = design.cell_table(found.levels)
    mean = np.zeros((table.size, len(models)))
    mean[table.used] = found.location
    whole = table.size == 1 and design.present is None
    cells = np.empty(0, dtype=np.int32)
    total = np.zeros((len(models), len(models)))
    rest = np.zeros(len(models))
    rows = max(256, TABLE // len(models))
    memory = np.empty(rows * len(models))
    for start, stop in block_bounds(design.size, rows):
        if not whole:
            cells = design.cells(table.by, start, stop)
        values, row, picks = _kernel_table(losses, models, start, stop)
        part = memory[: (stop - start) * len(models)]
        if losses.c_order:
            out = part.reshape(stop - start, -1)
            kernels.residual_rows(values, row, readonly(cells), picks, mean, out, rest)
            total += out.T @ out
        else:
            out = part.reshape(len(models), -1)
            kernels.residual_columns(values, row, readonly(cells), picks, mean, out, rest)
            total += out @ out.T
    return total, rest


def _centered_blocks(
    design: Design, losses: LossColumns, models: IntArray, table: CellTable, level: FloatArray
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield the rows of each block and cell as (cell, residuals, their means).

    The residuals have a line for each model, in memory that is used again for the next.
    """
    where = np.full(table.size, -1)
    where[table.used] = np.arange(len(table.used))
    rows = max(256, TABLE // len(models))
    memory = np.empty(rows * len(models))
    for start, stop in block_bounds(design.size, rows):
        cells = design.cells(table.by, start, stop)
        values, begin, picks = _kernel_table(losses, models, start, stop)
        for k in np.unique(cells[cells >= 0]):
            at = begin + np.flatnonzero(cells == k)
            middle = np.empty(len(models))
            part = memory[: len(at) * len(models)]
            if losses.c_order:
                out = part.reshape(len(at), -1)
                kernels.center_rows(values, at, picks, level, out, middle)
                yield int(where[k]), out.T, middle
            else:
                out = part.reshape(len(models), -1)
                kernels.center_columns(values, at, picks, level, out, middle)
                yield int(where[k]), out, middle


def _kernel_table(
    losses: LossColumns, models: IntArray, start: int, stop: int
) -> tuple[Table, int, IntArray]:
    """Find a table for the kernels, where its rows start, and which of its columns to take.

    It has a line for each row if these are in one piece, otherwise a line for each column.
    """
    if losses.c_order:
        table, row, _ = losses.tile(slice(0, losses.width), start, stop)
        return table, row, models
    if losses.f_order:
        table, _, row = losses.lines(slice(0, losses.width), start, stop)
        return table, row, models
    return readonly(losses.some(models, start, stop)), 0, np.arange(len(models))
