"""Compiled loops: arrays and integers in, arrays out.

Nothing is validated here. A negative code means that the row is skipped. Sums are kept in float64,
about a shift within the range of the values. Four accumulators (lanes) take turns, so that
consecutive rows of a cell need not wait for the previous addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

FEW = 1 << 14
"""Maximum number of losses, or rows, that are computed with numpy: loading the first compiled loop
takes numba a third of a second, more than the rest of a small log."""

LANES = 4
"""Number of accumulators per cell."""

RUN = 1024
"""Rows processed together: they are often of one cell, or none of them is skipped."""

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]
Hashes = NDArray[np.uint64]
F = TypeVar("F", bound=Callable[..., Any])


def compiled(reorder: bool = False) -> Callable[[F], F]:
    """Compile a loop that releases the interpreter lock, and cache it on disk.

    With ``reorder`` the compiler may change the order of additions, to use vectors.
    """
    fastmath: set[str] | bool = {"reassoc", "contract"} if reorder else False

    def decorate(loop: F) -> F:
        try:
            return cast(F, njit(nogil=True, cache=True, fastmath=fastmath)(loop))
        except RuntimeError:  # no writable folder for the cache
            return cast(F, njit(nogil=True, fastmath=fastmath)(loop))

    return decorate


@compiled()
def combine(cells: Ints, codes: Ints, size: int) -> None:
    """Append one level to the cell numbers, in place: ``cells = cells * size + codes``."""
    factor, nowhere = np.int32(size), np.int32(-1)
    for i in range(cells.shape[0]):
        code = np.int32(codes[i])
        number = np.int32(cells[i] * factor + code)
        cells[i] = number if (cells[i] | code) >= 0 else nowhere  # branch-free: vectorized


@compiled()
def count_rows(cells: Ints, rows: int, counts: Ints, first: Ints) -> None:
    """Count the rows of each cell in each block of ``rows``, and find the first of them.

    Both tables have one line per block and are zeroed by the caller.
    """
    for b in range(counts.shape[0]):
        number, begin = counts[b], first[b]
        for i in range(b * rows, min((b + 1) * rows, cells.shape[0])):
            k = cells[i]
            if k >= 0:
                if number[k] == 0:
                    begin[k] = i - b * rows
                number[k] += 1


@compiled()
def mark_seen(
    seen: NDArray[np.uint8], groups: Ints, points: Ints, low: int, origin: int, width: int
) -> None:
    """Mark each (group, point) as seen, within the window of the table.

    The table has ``width`` points, starting at ``origin``, for each group starting at ``low``.
    """
    place, size = np.empty(RUN, np.int64), np.uint64(seen.shape[0])
    for start in range(0, groups.shape[0], RUN):
        here, named = groups[start : start + RUN], points[start : start + RUN]
        for i in range(here.shape[0]):
            line, at = np.int64(here[i]) - low, np.int64(named[i]) - origin
            place[i] = line * width + at if (line >= 0) & (at >= 0) & (at < width) else -1
        for i in range(here.shape[0]):
            one = np.uint64(place[i])
            if one < size:
                seen[one] = 1


@compiled()
def sum_hashes(hashes: Hashes, points: Ints, cells: Ints, sums: Hashes) -> None:
    """Add the hash of each row's point to the sum of its cell, modulo 2^64."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and points[i] >= 0:
            sums[cells[i]] += hashes[i]


@compiled(reorder=True)
def accumulate_one_cell(values: Floats, shift: float, sums: Floats) -> None:
    """Add ``x - shift`` and its square if all rows are in one cell, in any order."""
    total = square = 0.0
    for i in range(values.shape[0]):
        d = values[i] - shift
        total += d
        square += d * d
    sums[0] += total
    sums[1] += square


@compiled()
def accumulate_one_shift(values: Floats, cells: Ints, shift: float, sums: Floats) -> None:
    """Add ``x - shift`` and its square to the sums of the row's cell; all cells share the shift.

    ``sums`` has ``LANES`` pairs for each cell: a sum and a sum of squares, side by side so
    that the processor adds both at once. Unsigned positions need no test for a negative one.
    """
    wide, one = np.uint64(LANES * 2), np.uint64(1)
    for start in range(0, values.shape[0], RUN):
        run, here = values[start : start + RUN], cells[start : start + RUN]
        rows, first = run.shape[0], here[0]
        others = first ^ first
        for i in range(rows):
            others |= here[i] ^ first
        if first >= 0 and others == 0:
            own = np.int64(first) * LANES * 2
            accumulate_one_cell(run, shift, sums[own : own + 2])
        else:
            for i in range(rows):
                if here[i] >= 0:
                    at = np.uint64(here[i]) * wide + np.uint64(i % LANES * 2)
                    d = run[i] - shift
                    sums[at] += d
                    sums[at + one] += d * d


@compiled()
def accumulate_own_shifts(values: Floats, cells: Ints, shift: Floats, sums: Floats) -> None:
    """Add ``x - shift`` and its square to the sums of the row's cell, which has its own shift.

    ``sums`` has ``LANES`` pairs for each cell, as for `accumulate_one_shift`.
    """
    for i in range(values.shape[0]):
        k = cells[i]
        if k >= 0:
            d = values[i] - shift[k]
            at = (np.int64(k) * LANES + i % LANES) * 2
            sums[at] += d
            sums[at + 1] += d * d


@compiled()
def accumulate(
    table: Floats,
    column: int,
    row: int,
    rows: int,
    size: int,
    cells: Ints,
    only: Ints,
    shift: Floats,
    sums: Floats,
) -> None:
    """Add losses minus a shift, and their squares, in blocks of ``rows`` of some columns.

    ``table`` has one line per column; ``column`` and ``row`` are the start, ``size`` is the number
    of rows. ``only`` has, for each block, the cell that contains all of its rows, or -1 to use
    ``cells``. ``shift`` has shape (blocks, columns, 1 or cells) and ``sums`` (2, blocks, cells,
    columns).
    """
    lanes = np.empty(sums.shape[2] * LANES * 2)
    for b in range(shift.shape[0]):
        start, stop = b * rows, min((b + 1) * rows, size)
        for j in range(shift.shape[1]):
            values = table[column + j][row + start : row + stop]
            about, only_cell = shift[b, j], only[b]
            lanes[:] = 0.0
            if only_cell >= 0:
                at = LANES * 2 * only_cell
                accumulate_one_cell(values, about[only_cell % len(about)], lanes[at : at + 2])
            elif len(about) == 1:
                accumulate_one_shift(values, cells[start:stop], about[0], lanes)
            else:
                accumulate_own_shifts(values, cells[start:stop], about, lanes)
            for k in range(sums.shape[2]):
                total = square = 0.0
                for lane in range(LANES):
                    total += lanes[(k * LANES + lane) * 2]
                    square += lanes[(k * LANES + lane) * 2 + 1]
                sums[0, b, k, j] = total
                sums[1, b, k, j] = square


@compiled()
def accumulate_wide(
    table: Floats, row: int, column: int, cells: Ints, shift: Floats, sums: Floats
) -> None:
    """Add losses minus a shift, and their squares, for contiguous columns.

    ``row`` and ``column`` are the start in ``table``, which has one line per row.
    ``shift`` has shape (cells, columns), ``sums`` (cells, 2, columns).
    """
    width = shift.shape[1]
    for i in range(cells.shape[0]):
        k = cells[i]
        if k >= 0:
            line = table[row + i][column : column + width]  # avoids a test of each index for < 0
            about, total, square = shift[k], sums[k, 0], sums[k, 1]
            for j in range(width):
                d = line[j] - about[j]
                total[j] += d
                square[j] += d * d


@compiled(reorder=True)
def center_columns(
    table: Floats, rows: Ints, columns: Ints, level: Floats, part: Floats, middle: Floats
) -> None:
    """Take some rows of some columns less the level, the row's mean and then the column's.

    ``table`` and ``part`` have a line for each column. ``middle`` gets the columns' means. The
    part may have room for more rows, which are not touched.
    """
    models, n = part.shape[0], rows.shape[0]
    mean = np.zeros(n)
    begin, end = rows[0], rows[n - 1] + 1
    for m in range(models):
        line, out, about = table[columns[m]], part[m], level[m]
        if end - begin == n:  # no gaps, so that it is vectorized
            line = line[begin:end]
            for i in range(n):
                d = line[i] - about
                out[i] = d
                mean[i] += d
        else:
            for i in range(n):
                d = line[rows[i]] - about
                out[i] = d
                mean[i] += d
    for i in range(n):
        mean[i] /= models
    for m in range(models):
        out = part[m]
        total = 0.0
        for i in range(n):
            out[i] -= mean[i]
            total += out[i]
        middle[m] = total / n
        for i in range(n):
            out[i] -= middle[m]


@compiled(reorder=True)
def center_rows(
    table: Floats, rows: Ints, columns: Ints, level: Floats, part: Floats, middle: Floats
) -> None:
    """Take some rows of some columns less the level, the row's mean and then the column's.

    ``table`` and ``part`` have a line for each row. ``middle`` gets the columns' means. The part
    may have room for more rows, which are not touched.
    """
    n, models = rows.shape[0], part.shape[1]
    first, adjacent = columns[0], True
    for m in range(models):
        adjacent &= columns[m] == first + m
    middle[:] = 0.0
    for i in range(n):
        line, out = table[rows[i]], part[i]
        total = 0.0
        if adjacent:  # so that it is vectorized
            line = line[first : first + models]
            for m in range(models):
                d = line[m] - level[m]
                out[m] = d
                total += d
        else:
            for m in range(models):
                d = line[columns[m]] - level[m]
                out[m] = d
                total += d
        total /= models
        for m in range(models):
            out[m] -= total
            middle[m] += out[m]
    for m in range(models):
        middle[m] /= n
    for i in range(n):
        out = part[i]
        for m in range(models):
            out[m] -= middle[m]


@compiled(reorder=True)
def residual_columns(
    table: Floats, row: int, cells: Ints, columns: Ints, mean: Floats, part: Floats, rest: Floats
) -> None:
    """Take rows of some columns less the mean of their cell; rows of no cell become zero.

    ``table`` and ``part`` have a line for each column, ``mean`` a row for each cell. What the
    residuals of each column sum to is added to ``rest``.
    """
    n = part.shape[1]
    for m in range(part.shape[0]):
        line, out, about = table[columns[m]][row : row + n], part[m], mean[:, m].copy()
        total = 0.0
        if len(about) == 1 and cells.shape[0] == 0:  # all rows are in one cell
            middle = about[0]
            for i in range(n):
                out[i] = line[i] - middle
                total += out[i]
        else:
            for i in range(n):
                k = cells[i]
                out[i] = line[i] - about[k] if k >= 0 else 0.0
                total += out[i]
        rest[m] += total


@compiled(reorder=True)
def residual_rows(
    table: Floats, row: int, cells: Ints, columns: Ints, mean: Floats, part: Floats, rest: Floats
) -> None:
    """Take rows of some columns less the mean of their cell; rows of no cell become zero.

    ``table`` and ``part`` have a line for each row, ``mean`` a row for each cell. What the
    residuals of each column sum to is added to ``rest``.
    """
    for i in range(part.shape[0]):
        k = 0 if cells.shape[0] == 0 else cells[i]
        line, out = table[row + i], part[i]
        if k >= 0:
            about = mean[k]
            for m in range(part.shape[1]):
                out[m] = line[columns[m]] - about[m]
                rest[m] += out[m]
        else:
            out[:] = 0.0


@compiled()
def raise_to_gaps(
    draws: Floats, line: int, others: Ints, scale: Floats, both_sides: bool, largest: Floats
) -> None:
    """Update the largest scaled gap between one line and others, for each draw.

    ``draws`` has one line per model. With ``both_sides`` the absolute gap counts. Four other lines
    are processed at once (the last one is repeated if necessary), so that ``largest`` is read and
    written less often.
    """
    own, last = draws[line], others.shape[0] - 1
    for p in range(0, others.shape[0], 4):
        a, b, c, d = p, min(p + 1, last), min(p + 2, last), min(p + 3, last)
        one, two, three, four = (
            draws[others[a]],
            draws[others[b]],
            draws[others[c]],
            draws[others[d]],
        )
        for i in range(largest.shape[0]):
            w, x = (own[i] - one[i]) * scale[a], (own[i] - two[i]) * scale[b]
            y, z = (own[i] - three[i]) * scale[c], (own[i] - four[i]) * scale[d]
            if both_sides:
                w, x, y, z = abs(w), abs(x), abs(y), abs(z)
            w = w if w > x else x
            y = y if y > z else z
            w = w if w > y else y
            largest[i] = w if w > largest[i] else largest[i]


def mark_few_seen(
    seen: NDArray[np.uint8], groups: Ints, points: Ints, low: int, origin: int, width: int
) -> None:
    """Mark each (group, point) as `mark_seen` does, but with numpy, for few rows."""
    line, place = groups.astype(np.int64) - low, points.astype(np.int64) - origin
    inside = (line >= 0) & (line < len(seen) // width) & (place >= 0) & (place < width)
    seen[line[inside] * width + place[inside]] = 1
