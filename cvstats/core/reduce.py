"""Counts, means and squared deviations of losses in every cell, in one pass; and cross products.

The log is divided into blocks of rows and tiles of columns whose sizes depend only on the log.
Blocks are merged in a way that does not depend on their order, so that neither the number of
threads nor an exchange of whole blocks changes a bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.cells import Cells, State, choose_origin, pool
from cvstats.core.design import CellTable, Codes, Counts, Design, count_blocks, readonly
from cvstats.core.loss_columns import Columns, Differences, LossColumns, Table
from cvstats.core.threads import BLOCK, PIECE, block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray, MaskArray

T = TypeVar("T")

Numbers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Counts, means, squared deviations and origins."""

Sums = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Counts of some blocks, a shift near each mean, the mean minus the shift, and squares about it."""

AddLosses = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Sums losses minus a shift, and their squares, in each cell."""

TILE = 8
"""Minimum number of columns read at once if columns are contiguous."""

ABREAST = 128
"""Minimum number of columns read at once if rows are contiguous: shorter runs are slow."""

NUMBERS = 1 << 20
"""Approximate number of losses that a thread reads at once."""

SUMS = 10_000
"""Approximate number of sums that a thread updates at once, to stay in the processor's cache."""

BATCH = 64
"""Maximum number of blocks whose moments are kept until they are merged."""

KEPT = 1 << 19
"""Approximate number of values in the moments of these blocks: fewer blocks if cells are many."""

WAITING = 1 << 21
"""Maximum number of values in finished tasks that are waiting to be merged."""

CROWDED = 256
"""With fewer rows per cell than this, each cell has its own shift from the start."""

FAR = 1e3
"""A shift is replaced if it is this much farther from the mean than the losses are."""

TABLE = 1 << 19
"""Numbers in an extra table of rows."""

TOGETHER = 4
"""Number of such tables that threads fill at once."""

LARGEST = 1 << 25
"""Maximum total number of entries in the matrices of co-moments."""

ALIKE = 1e-3
"""Pairs whose difference has less than this share of the models' spread are summed directly."""


def compute_moments(design: Design, losses: Columns, by: Sequence[str]) -> Cells:
    """Compute the moments of every column in every cell, in one pass over the losses."""
    table = design.cell_table(tuple(by))
    if design.size * losses.width <= kernels.FEW:
        lines = losses.take(np.arange(losses.width), 0, design.size)
        cells = design.cells(table.by, 0, design.size)
        numbers = reduce_lines(lines, cells, table.total[table.used])
    elif isinstance(losses, Differences):
        numbers = pair_moments(design, losses, table)
    else:
        numbers = reduce_columns(design, losses, table)
    return Cells(table.by, design.labels(table.by), table.codes, *numbers)


def reduce_lines(lines: FloatArray, cells: Codes, count: NDArray[np.int64]) -> Numbers:
    """Compute the moments of few losses by their cell number (-1: none).

    ``lines`` has one line per column, and ``count`` is the number of losses of each cell.
    """
    if len(count) != 1 or count[0] < len(cells):
        order = np.argsort(cells, kind="stable")
        lines = lines[:, order[len(cells) - int(count.sum()) :]]
    starts, n = np.cumsum(count) - count, count.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
        first = lines[:, starts]
        apart = lines - np.repeat(first, count, axis=1)
        share = np.add.reduceat(apart, starts, axis=1) / count
        apart -= np.repeat(share, count, axis=1)
        m2 = np.add.reduceat(apart * apart, starts, axis=1)
        origin = choose_origin(n, (first + share).T, m2.T)
        mean = (first - origin[:, None]) + share
    return n, mean.T, m2.T, origin


def reduce_columns(design: Design, losses: Columns, table: CellTable) -> Numbers:
    """Compute the moments of columns that are read, or computed, together."""
    few, together = SUMS // max(table.size, 1), max(1, PIECE * BLOCK // table.rows)
    rows = max(1, min(design.size, together * table.rows))
    if losses.order == "C":
        tile = int(np.clip(few, ABREAST, 1024))
    elif losses.order == "F":
        tile = int(np.clip(NUMBERS // rows, TILE, max(TILE, few)))
    else:  # copied or computed one by one, except short ones
        tile = max(1, NUMBERS // 16 // rows)
    tiles = list(starmap(slice, block_bounds(losses.width, tile)))
    if losses.order == "C":  # several blocks even if the rows are few and long
        fewest = max(16 * table.size, NUMBERS // min(tile, losses.width))
        pieces = block_bounds(design.size, min(table.rows, fewest))
    else:
        together = together if losses.order == "F" else 1
        pieces = block_bounds(-(-design.size // table.rows), together)
    read = _read_rows if losses.order == "C" else _read_columns

    def work(task: int) -> Sums:
        t, p = divmod(task, len(pieces))
        return read(design, losses, table, tiles[t], pieces[p])

    numbers = 3 * table.size * min(tile, losses.width)
    batch = int(np.clip(KEPT // max(numbers, 1), 2, BATCH))
    blocks = pieces[0][1] if pieces and losses.order == "F" else 1
    most = WAITING // max(numbers * blocks, 1)
    results = ordered_map(work, len(tiles) * len(pieces), most)
    used = table.used
    mean = np.empty((len(used), losses.width))
    m2 = np.empty_like(mean)
    origin = np.zeros(losses.width)
    for columns in tiles:
        parts: list[State] = []
        waiting = 0
        for piece in pieces:
            n, shift, share, squares = next(results)
            if not parts and not n.any():
                continue  # no evaluation yet
            with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
                if not parts:
                    origin[columns] = choose_origin(n, shift + share, squares)
                parts.append((n, (shift - origin[columns]) + share, squares))
                waiting += len(n)
                if waiting >= batch or piece is pieces[-1]:  # merge the blocks into one
                    n, share, squares = pool(*map(np.concatenate, zip(*parts, strict=True)))
                    parts, waiting = [(n[None], share[None], squares[None])], 1
        for _, share, squares in parts:  # one, unless nothing was evaluated
            mean[:, columns] = share[0, used]
            m2[:, columns] = squares[0, used]
    return table.total[used].astype(np.float64), mean, m2, origin


def _center_sums(counts: Counts, shift: FloatArray, add: AddLosses) -> tuple[Sums, MaskArray]:
    """Convert sums about a shift to the mean minus the shift, and squared deviations.

    Also return where the shift is so far from its cell that the deviations are a small difference
    of large sums.
    """
    n, (sums, squares) = counts.astype(np.float64), add(shift)
    share = sums / np.maximum(n, 1)[..., None]
    m2 = squares - sums * share
    far = ~(sums * share <= FAR * m2)
    return (n, shift, share, np.maximum(m2, 0.0)), far


def _accumulate_about(counts: Counts, shift: FloatArray, add: AddLosses) -> Sums:
    """Accumulate about a shift per cell; if it is too far off, again about the means."""
    with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
        state, far = _center_sums(counts, shift, add)
        mean = shift + state[2]
        far &= np.isfinite(mean)
        if far.any():
            shift = np.where(far, mean, shift)
            state, _ = _center_sums(counts, shift, add)
    return state


def _read_columns(
    design: Design, losses: Columns, table: CellTable, columns: slice, piece: tuple[int, int]
) -> Sums:
    """Read some blocks, one column at a time.

    The shift of a block is first one of its losses, which is fastest. If that is far from some
    cell, they are accumulated again, with a loss of each cell as its shift.
    """
    start, stop = piece[0] * table.rows, min(piece[1] * table.rows, design.size)
    if table.blocks is None:
        numbers = design.cells(table.by, start, stop, narrow=True)
        counts, first = count_blocks(table.rows, numbers, table.size)
    else:
        counts, first = table.blocks
        counts, first = counts[slice(*piece)], first[slice(*piece)]
    values, column, row = losses.column_major(columns, start, stop)
    begin = row + np.arange(len(counts)) * table.rows
    width = columns.stop - columns.start
    largest = counts.argmax(axis=1)
    whole = counts.max(axis=1) == np.diff([*begin, row + stop - start])
    only = np.where(whole, largest, -1)
    cells: Codes = np.empty(0, dtype=np.int32)
    if not whole.all():
        cells = design.cells(table.by, start, stop, narrow=True)
    at = slice(column, column + width)

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        total, square = sums = np.empty((2, len(counts), table.size, width))
        about = np.ascontiguousarray(shift.transpose(0, 2, 1))
        kernels.accumulate(values, column, row, table.rows, stop - start, cells, only, about, sums)
        return total, square

    if table.rows >= CROWDED * table.size:
        blocks = np.arange(len(counts))
        some = values[at][:, begin + first[blocks, largest]].T.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
            state, far = _center_sums(counts, some[:, None], add)
        if not far.any():
            return state
    own = values[at][:, begin[:, None] + first].astype(np.float64).transpose(1, 2, 0)
    own = np.where((counts > 0)[..., None], own, 0.0)
    return _accumulate_about(counts, own, add)


def _read_rows(
    design: Design, losses: Columns, table: CellTable, columns: slice, piece: tuple[int, int]
) -> Sums:
    """Read some rows, many columns of a row at a time."""
    start, stop = piece
    values, row, column = losses.row_major(columns, start, stop)
    cells = design.cells(table.by, start, stop, narrow=True)
    counts, first = count_blocks(stop - start, cells, table.size)

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.zeros((table.size, 2, columns.stop - columns.start))
        kernels.accumulate_wide(values, row, column, cells, shift, sums)
        return sums[:, 0], sums[:, 1]

    among = values[row + first[0], column : column + columns.stop - columns.start]
    shift = np.where((counts[0] > 0)[:, None], among.astype(np.float64), 0.0)
    _, shift, share, m2 = _accumulate_about(counts[0], shift, add)
    return counts.astype(np.float64), shift[None], share[None], m2[None]


# --- many pairs of columns ------------------------------------------------------------------------


def pair_moments(design: Design, losses: Differences, table: CellTable) -> Numbers:
    """Compute moments of differences; of many, from one matrix of co-moments per cell.

    With centered losses x and y of a cell, ``sum (x - y)^2 = sum x^2 + sum y^2 - 2 sum x y``. This
    loses digits for models that are nearly identical, which are subtracted loss by loss.
    """
    models = np.unique(np.concatenate([losses.left, losses.right]))
    many = losses.width > max(2 * len(models), len(models) ** 2 // 4)  # not pairs of carried cells
    if not many or len(table.used) * len(models) ** 2 > LARGEST:
        return reduce_columns(design, losses, table)
    left, right = np.searchsorted(models, losses.left), np.searchsorted(models, losses.right)
    with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
        count, mean, cross, level = co_moments(design, losses.losses, models, table)
        own = np.einsum("kii->ki", cross)
        both = own[:, left] + own[:, right]
        m2 = np.maximum(both - 2 * cross[:, left, right], 0.0)
        apart, gap = level[left] - level[right], mean[:, left] - mean[:, right]
        origin = choose_origin(count, apart + gap, m2)
        gap += apart - origin
        alike = np.flatnonzero(~(m2 >= ALIKE * both).all(axis=0))
    if len(alike):
        pairs = Differences(losses.losses, losses.left[alike], losses.right[alike])
        _, gap[:, alike], m2[:, alike], origin[alike] = reduce_columns(design, pairs, table)
    return count, gap, m2, origin


def co_moments(
    design: Design, losses: LossColumns, models: IntArray, table: CellTable
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum counts, means and matrices of centered cross products of columns, for each cell.

    Columns are centered at their first loss, so that no digits are lost, and rows at their mean
    over the columns, which removes what the models share. Differences of losses are not affected;
    single means and products are. The first losses (levels) are the last column: a difference of
    two means is the difference of the centered means plus that of the levels.
    """
    row = 0 if design.valid is None else int(design.valid.argmax())
    level = losses.take(models, row, row + 1)[:, 0]
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
        if losses.order == "C":
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
            if losses.order == "C":
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
    if losses.order == "C":
        table, row, _ = losses.row_major(slice(0, losses.width), start, stop)
        return table, row, models
    if losses.order == "F":
        table, _, row = losses.column_major(slice(0, losses.width), start, stop)
        return table, row, models
    return readonly(losses.take(models, start, stop)), 0, np.arange(len(models))
