"""Counts, means and squared deviations of losses in every cell, in one pass.

The log is divided into blocks of rows and tiles of columns whose sizes depend only on the log.
Blocks are merged in a way that does not depend on their order, so that neither the number of
threads nor an exchange of whole blocks changes a bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from cvstats.core import comoments, kernels, small_logs
from cvstats.core.cells import Cells, State, choose_origin, pool
from cvstats.core.columns import Columns, Differences
from cvstats.core.design import CellTable, Codes, Counts, Design, count_blocks
from cvstats.core.threads import Scratch, block_bounds, blocks_per_task, ordered_map
from cvstats.core.types import FloatArray

Numbers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Counts, means, squared deviations and origins."""

Sums = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Counts of some blocks, a shift near each mean, the mean minus the shift, and squares about it."""

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


def compute_moments(design: Design, losses: Columns, by: Sequence[str]) -> Cells:
    """Compute the moments of every column in every cell, in one pass over the losses.

    Many pairs of few models are computed from cross products, not from a column per pair; those of
    nearly identical models are then subtracted loss by loss.
    """
    if design.size * losses.width <= small_logs.FEW:
        return reduce_few(design, losses, by)
    if not isinstance(losses, Differences) or not comoments.use_cross_products(design, losses, by):
        return reduce_columns(design, losses, by)
    found, alike = comoments.pair_moments(design, losses, by)
    if len(alike):
        pairs = Differences(losses.losses, losses.left[alike], losses.right[alike])
        direct = reduce_columns(design, pairs, by)
        found.mean[:, alike], found.m2[:, alike] = direct.mean, direct.m2
        found.origin[alike] = direct.origin
    return found


def reduce_few(design: Design, losses: Columns, by: Sequence[str]) -> Cells:
    """Compute the moments of few losses at once."""
    table = design.cell_table(tuple(by))
    lines = losses.take(np.arange(losses.width), 0, design.size)
    numbers = reduce_lines(lines, design.cells(table.by, 0, design.size), table.total[table.used])
    return Cells(table.by, design.labels(table.by), table.codes, *numbers)


def reduce_lines(lines: FloatArray, cells: Codes, count: NDArray[np.int64]) -> Numbers:
    """Compute the moments of few losses by their cell number (-1: none).

    ``lines`` has one line per column, and ``count`` is the number of losses of each cell. Returns
    counts, means, squares and origins.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
        shift, share, m2 = small_logs.center_cells(lines, cells, count)
        n = count.astype(np.float64)
        origin = choose_origin(n, (shift + share).T, m2.T)
        mean = (shift - origin[:, None]) + share
    return n, mean.T, m2.T, origin


def reduce_columns(design: Design, losses: Columns, by: Sequence[str]) -> Cells:
    """Compute the moments of columns that are read, or computed, together."""
    table = design.cell_table(tuple(by))
    few, together = SUMS // max(table.size, 1), blocks_per_task(table.rows)
    rows = max(1, min(design.size, together * table.rows))
    if losses.c_order:
        tile = int(np.clip(few, ABREAST, 1024))
    elif losses.f_order:
        tile = int(np.clip(NUMBERS // rows, TILE, max(TILE, few)))
    else:  # copied or computed one by one, except short ones
        tile = max(1, NUMBERS // 16 // rows)
    tiles = list(starmap(slice, block_bounds(losses.width, tile)))
    if losses.c_order:  # several blocks even if the rows are few and long
        fewest = max(16 * table.size, NUMBERS // min(tile, losses.width))
        pieces = block_bounds(design.size, min(table.rows, fewest))
    else:
        together = together if losses.f_order else 1
        pieces = block_bounds(-(-design.size // table.rows), together)
    read = _read_rows if losses.c_order else _read_columns
    scratch = Scratch()

    def work(task: int) -> Sums:
        t, p = divmod(task, len(pieces))
        return read(design, losses, table, tiles[t], pieces[p], scratch)

    numbers = 3 * table.size * min(tile, losses.width)
    batch = int(np.clip(KEPT // max(numbers, 1), 2, BATCH))
    blocks = pieces[0][1] if pieces and losses.f_order else 1
    most = WAITING // max(numbers * blocks, 1)
    results = ordered_map(work, len(tiles) * len(pieces), most)
    used = table.used
    mean = np.empty((len(used), losses.width))
    m2 = np.empty((len(used), losses.width))
    origin = np.zeros(losses.width)
    for columns in tiles:
        parts: list[State] = []
        waiting = 0
        for _ in pieces:
            n, shift, share, squares = next(results)
            if not parts and not n.any():
                continue  # no evaluation yet
            with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
                if not parts:
                    origin[columns] = choose_origin(n, shift + share, squares)
                parts.append((n, (shift - origin[columns]) + share, squares))
            waiting += len(n)
            if waiting >= batch:
                parts, waiting = [_merge(parts)], 1
        if parts:
            _, mean_here, m2_here = _merge(parts)
            mean[:, columns] = mean_here[0, used]
            m2[:, columns] = m2_here[0, used]
    count = table.total[used].astype(np.float64)
    return Cells(table.by, design.labels(table.by), table.codes, count, mean, m2, origin)


def _merge(parts: list[State]) -> State:
    """Merge the blocks of some pieces into one."""
    if len(parts) == 1 and len(parts[0][0]) == 1:
        return parts[0]
    count, mean, m2 = map(np.concatenate, zip(*parts, strict=True))
    with np.errstate(invalid="ignore", over="ignore"):
        total, mean, m2 = pool(count, mean, m2)
    return total[None], mean[None], m2[None]


def _center_sums(
    counts: Counts, shift: FloatArray, sums: FloatArray, squares: FloatArray
) -> tuple[Sums, NDArray[np.bool_]]:
    """Convert sums about a shift to the mean minus the shift, and squared deviations.

    Also return where the shift is so far from its cell that the deviations are a small difference
    of large sums.
    """
    n = counts.astype(np.float64)
    share = sums / np.maximum(n, 1)[..., None]
    m2 = squares - sums * share
    far = ~(sums * share <= FAR * m2)
    return (n, shift, share, np.maximum(m2, 0.0)), far


def _accumulate_about(
    counts: Counts, shift: FloatArray, add: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
) -> Sums:
    """Accumulate about a shift per cell; if it is too far off, again about the means."""
    with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
        state, far = _center_sums(counts, shift, *add(shift))
        mean = shift + state[2]
        far &= np.isfinite(mean)
        if far.any():
            shift = np.where(far, mean, shift)
            state, _ = _center_sums(counts, shift, *add(shift))
    return state


def _read_columns(
    design: Design,
    losses: Columns,
    table: CellTable,
    columns: slice,
    piece: tuple[int, int],
    scratch: Scratch,
) -> Sums:
    """Read some blocks, one column at a time.

    The shift of a block is first one of its losses, which is fastest. If that is far from some
    cell, they are accumulated again, with a loss of each cell as its shift.
    """
    start, stop = piece[0] * table.rows, min(piece[1] * table.rows, design.size)
    if table.blocks is None:
        numbers = design.cells(table.by, start, stop, scratch)
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
        cells = design.cells(table.by, start, stop, scratch)
    at = slice(column, column + width)

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.zeros((len(counts), width, table.size * kernels.LANES * 2))
        kernels.accumulate(values, column, row, table.rows, stop - start, cells, only, shift, sums)
        total, square = merged = np.empty((2, len(counts), table.size, width))
        kernels.merge_lanes(sums, merged)
        return total, square

    if table.rows >= CROWDED * table.size:
        blocks = np.arange(len(counts))
        some = values[at][:, begin + first[blocks, largest]].T.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # reported later, by label
            state, far = _center_sums(counts, some[:, None, :], *add(some[:, :, None]))
        if not far.any():
            return state
    own = values[at][:, begin[:, None] + first].astype(np.float64).transpose(1, 2, 0)
    own = np.where((counts > 0)[..., None], own, 0.0)
    return _accumulate_about(
        counts, own, lambda shift: add(np.ascontiguousarray(shift.transpose(0, 2, 1)))
    )


def _read_rows(
    design: Design,
    losses: Columns,
    table: CellTable,
    columns: slice,
    piece: tuple[int, int],
    scratch: Scratch,
) -> Sums:
    """Read some rows, many columns of a row at a time."""
    start, stop = piece
    values, row, column = losses.row_major(columns, start, stop)
    cells = design.cells(table.by, start, stop, scratch)
    counts, first = count_blocks(stop - start, cells, table.size)

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.zeros((table.size, 2, columns.stop - columns.start))
        kernels.accumulate_wide(values, row, column, cells, shift, sums)
        return sums[:, 0], sums[:, 1]

    among = values[row + first[0], column : column + columns.stop - columns.start]
    shift = np.where((counts[0] > 0)[:, None], among.astype(np.float64), 0.0)
    _, shift, share, m2 = _accumulate_about(counts[0], shift, add)
    return counts.astype(np.float64), shift[None], share[None], m2[None]
