"""Counts, means and squared deviations of columns in every cell, in one pass.

The pass is cut into blocks of rows and tiles of columns whose sizes depend on the log alone.
What is found in the blocks merges in an order that does not depend on theirs, so that neither
the number of threads nor an exchange of whole blocks changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.chunked.columns import Columns
from cvstats.core.design import Design
from cvstats.core.levels import Counts, Plan, counted
from cvstats.core.moments import Moments, State, choose_origin, pool
from cvstats.core.threads import Scratch, each, pieced, spans
from cvstats.core.types import FloatArray

__all__ = ["of_columns"]

Sums = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Counts of some blocks, a shift near each mean, what is left of the mean, and squares about it."""

TILE = 8
"""Columns read in one go, at the least, where each lies in one piece."""

ABREAST = 128
"""Columns read in one go, at the least, where rows lie in one piece: shorter runs are slow."""

NUMBERS = 1 << 20
"""Losses that a thread reads in one go, about."""

SUMS = 10_000
"""Sums that a thread adds to at once, about: they should stay in the processor's cache."""

BATCH = 64
"""Blocks whose moments are kept until they are merged, at the most."""

KEPT = 1 << 19
"""Numbers that the moments of these blocks may take, about: fewer blocks where cells are many."""

WAITING = 1 << 21
"""Numbers that tasks may have found before their turn comes, at the most."""

CROWDED = 64
"""With fewer rows a cell than this, each cell has a shift of its own from the start."""

FAR = 1e3
"""A shift this much farther from the mean than the losses are is chosen anew."""


def of_columns(design: Design, losses: Columns, by: Sequence[str]) -> Moments:
    """Moments of columns that are read, or made, one beside the other."""
    plan = design.plan(tuple(by))
    tile = _tile(design, losses, plan)
    tiles = [slice(*span) for span in spans(losses.width, tile)]
    if losses.across:  # several blocks also where the rows are few and long
        fewest = max(16 * plan.size, NUMBERS // min(tile, losses.width))
        pieces = spans(design.size, min(plan.rows, fewest))
    else:
        pieces = spans(-(-design.size // plan.rows), pieced(plan.rows) if losses.down else 1)
    read = _across if losses.across else _down
    scratch = Scratch()

    def work(task: int) -> Sums:
        t, p = divmod(task, len(pieces))
        return read(design, losses, plan, tiles[t], pieces[p], scratch)

    numbers = 3 * plan.size * min(tile, losses.width)
    batch = int(np.clip(KEPT // max(numbers, 1), 2, BATCH))
    blocks = pieces[0][1] if pieces and losses.down else 1
    results = rounds(work, len(tiles) * len(pieces), WAITING // max(numbers * blocks, 1))
    used = plan.used
    mean = np.empty((len(used), losses.width))
    m2 = np.empty((len(used), losses.width))
    origin = np.zeros(losses.width)
    for columns in tiles:
        parts: list[State] = []
        for _ in pieces:
            n, shift, share, squares = next(results)
            if not parts and not n.any():
                continue  # no evaluation yet
            with np.errstate(invalid="ignore", over="ignore"):  # named later, by label
                if not parts:
                    origin[columns] = choose_origin(n, shift + share, squares)
                parts.append((n, (shift - origin[columns]) + share, squares))
            if sum(len(count) for count, _, _ in parts) >= batch:
                parts = [_pooled(parts)]
        if parts:
            _, mean_here, m2_here = _pooled(parts)
            mean[:, columns] = mean_here[0, used]
            m2[:, columns] = m2_here[0, used]
    labels = tuple(design.levels[name].labels for name in plan.by)
    count = plan.total[used].astype(np.float64)
    return Moments(plan.by, labels, design.codes_of(plan), count, mean, m2, origin)


def rounds(work: Callable[[int], Sums], tasks: int, most: int) -> Iterator[Sums]:
    """Yield the results of all tasks in order; fewer than so many wait for their turn."""
    for start, stop in spans(tasks, max(most, 1)):
        yield from each(partial(_later, work, start), stop - start)


def _later(work: Callable[[int], Sums], start: int, task: int) -> Sums:
    """Do a task of a round that starts at some task."""
    return work(start + task)


def _tile(design: Design, losses: Columns, plan: Plan) -> int:
    """How many columns to read in one go."""
    most = SUMS // max(plan.size, 1)
    rows = max(1, min(design.size, pieced(plan.rows) * plan.rows))
    if losses.across:
        return int(np.clip(most, ABREAST, 1024))
    if losses.down:
        return int(np.clip(NUMBERS // rows, TILE, max(TILE, most)))
    return max(1, NUMBERS // 16 // rows)  # each is copied or made: by itself, but for short ones


def _pooled(parts: list[State]) -> State:
    """Merge the blocks of some pieces into one."""
    count, mean, m2 = (np.concatenate(part) for part in zip(*parts, strict=True))
    with np.errstate(invalid="ignore", over="ignore"):
        total, mean, m2 = pool(count, mean, m2)
    return total[None], mean[None], m2[None]


def _numbers(
    design: Design, plan: Plan, start: int, stop: int, scratch: Scratch
) -> NDArray[np.int32]:
    """Find the cells of some rows, in memory that a thread uses again."""
    out = scratch.array("cells", stop - start, np.int32)
    return design.cells(plan.by, start, stop, out)


def _blocks(
    design: Design, plan: Plan, piece: tuple[int, int], rows: tuple[int, int], scratch: Scratch
) -> tuple[Counts, Counts]:
    """Count the rows of each cell in some blocks, and find the first; remembered if few."""
    if plan.blocks is None:
        return counted(plan.rows, _numbers(design, plan, *rows, scratch), plan.size)
    counts, first = plan.blocks
    return counts[slice(*piece)], first[slice(*piece)]


def _state(
    counts: Counts, shift: FloatArray, sums: FloatArray, squares: FloatArray
) -> tuple[Sums, NDArray[np.bool_]]:
    """Turn sums about a shift into what is left of the mean and squared deviations about it.

    Also say where the shift lies so far from the rest of its cell that the deviations are the
    small difference of large sums.
    """
    n = counts.astype(np.float64)
    share = sums / np.maximum(n, 1)[..., None]
    m2 = squares - sums * share
    far = ~(sums * share <= FAR * m2)
    return (n, shift, share, np.maximum(m2, 0.0)), far


def _about(
    counts: Counts, shift: FloatArray, add: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
) -> Sums:
    """Add about a shift for each cell; where that is far, once more about the means."""
    with np.errstate(invalid="ignore", over="ignore"):  # named later, by label
        state, far = _state(counts, shift, *add(shift))
        mean = shift + state[2]
        far &= np.isfinite(mean)
        if far.any():
            shift = np.where(far, mean, shift)
            state, _ = _state(counts, shift, *add(shift))
    return state


def _down(
    design: Design,
    losses: Columns,
    plan: Plan,
    columns: slice,
    piece: tuple[int, int],
    scratch: Scratch,
) -> Sums:
    """Read some blocks, a column at a time.

    The losses of a block are first taken about one of its losses, which is fastest. Where that
    lies far from some cell, they are taken anew, about a loss of each cell.
    """
    start, stop = piece[0] * plan.rows, min(piece[1] * plan.rows, design.size)
    counts, first = _blocks(design, plan, piece, (start, stop), scratch)
    table, column, row = losses.lines(columns, start, stop)
    begin = row + np.arange(len(counts)) * plan.rows
    width = columns.stop - columns.start
    largest = counts.argmax(axis=1)
    whole = counts.max(axis=1) == np.diff([*begin, row + stop - start])
    only = np.where(whole, largest, -1)
    cells = (
        np.empty(0, dtype=np.int32) if whole.all() else _numbers(design, plan, start, stop, scratch)
    )
    at = slice(column, column + width)

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.zeros((len(counts), width, plan.size, kernels.LANES, 2))
        flat = sums.reshape(len(counts), width, -1)
        kernels.accumulate(table, column, row, plan.rows, stop - start, cells, only, shift, flat)
        total = sums.sum(axis=3)
        return total[..., 0].transpose(0, 2, 1), total[..., 1].transpose(0, 2, 1)

    if plan.rows >= CROWDED * plan.size:
        blocks = np.arange(len(counts))
        some = table[at][:, begin + first[blocks, largest]].T.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # named later, by label
            state, far = _state(counts, some[:, None, :], *add(some[:, :, None]))
        if not far.any():
            return state
    own = table[at][:, begin[:, None] + first].astype(np.float64).transpose(1, 2, 0)
    own = np.where((counts > 0)[..., None], own, 0.0)
    return _about(counts, own, lambda shift: add(np.ascontiguousarray(shift.transpose(0, 2, 1))))


def _across(
    design: Design,
    losses: Columns,
    plan: Plan,
    columns: slice,
    piece: tuple[int, int],
    scratch: Scratch,
) -> Sums:
    """Read some rows, many columns of a row at a time."""
    start, stop = piece
    table, row, column = losses.tile(columns, start, stop)
    cells = _numbers(design, plan, start, stop, scratch)
    counts, first = counted(stop - start, cells, plan.size)

    def add(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = np.zeros((plan.size, 2, columns.stop - columns.start))
        kernels.accumulate_wide(table, row, column, cells, shift, sums)
        return sums[:, 0], sums[:, 1]

    among = table[row + first[0], column : column + columns.stop - columns.start]
    shift = np.where((counts[0] > 0)[:, None], among.astype(np.float64), 0.0)
    _, shift, share, m2 = _about(counts[0], shift, add)
    return counts.astype(np.float64), shift[None], share[None], m2[None]
