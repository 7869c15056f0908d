"""Compiled loops: arrays and integers in, arrays out.

Nothing here checks anything. A negative code means "not here". Sums are kept in float64,
about a shift that lies among the values. Four lanes take turns, so that a run of rows of one
cell need not wait for its own last addition.

The compiled code is kept on disk; with the environment variable ``CVSTATS_CACHE=0`` each
process compiles anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "LANES",
    "accumulate",
    "accumulate_one",
    "accumulate_wide",
    "combine",
    "count",
    "fingerprint",
    "mark",
]

LANES = 4

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]
F = TypeVar("F", bound=Callable[..., None])


def compiled(reorder: bool = False) -> Callable[[F], F]:
    """Compile without the interpreter lock, keeping the machine code on disk where possible.

    ``reorder`` lets the compiler change the order of additions, so that it can use vectors.
    """
    keep = os.environ.get("CVSTATS_CACHE", "1").lower() not in {"0", "false", "no", "off"}
    freedom = {"reassoc", "contract"} if reorder else False

    def compile_(loop: F) -> F:
        try:
            fast = njit(nogil=True, cache=keep, fastmath=freedom)(loop)
        except RuntimeError:  # no folder can be written: neither the package's nor the user's
            fast = njit(nogil=True, fastmath=freedom)(loop)
        return cast(F, fast)

    return compile_


@compiled()
def combine(cells: Ints, codes: Ints, size: int) -> None:
    """Append one level to the cell numbers, in place: ``cells = cells * size + codes``."""
    factor, nowhere = np.int32(size), np.int32(-1)
    for i in range(cells.shape[0]):
        code = np.int32(codes[i])
        number = np.int32(cells[i] * factor + code)
        cells[i] = number if (cells[i] | code) >= 0 else nowhere  # no jump: runs in vectors


@compiled()
def count(cells: Ints, counts: Ints, first: Ints) -> None:
    """Rows of each cell, and the first of them; both arrays come zeroed."""
    for i in range(cells.shape[0]):
        k = cells[i]
        if k >= 0:
            if counts[k] == 0:
                first[k] = i
            counts[k] += 1


@compiled()
def mark(seen: NDArray[np.uint8], groups: Ints, low: int, width: int, points: Ints) -> None:
    """Mark each (group, point) as seen, for the groups from ``low`` that the table holds."""
    high = low + seen.shape[0] // width
    for i in range(groups.shape[0]):
        if low <= groups[i] < high and points[i] >= 0:
            seen[(groups[i] - low) * width + points[i]] = 1


@compiled()
def fingerprint(
    hashes: NDArray[np.uint64], points: Ints, cells: Ints, sums: NDArray[np.uint64]
) -> None:
    """Add the hash of each row's point to the sum of its cell, modulo 2^64."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and points[i] >= 0:
            sums[cells[i]] += hashes[points[i]]


@compiled()
def accumulate(values: Floats, cells: Ints, shift: Floats, sums: Floats, squares: Floats) -> None:
    """Add ``x - shift`` and its square to the lanes of each row's cell.

    ``values`` and ``cells`` have a number for each row, ``shift`` one for each cell, ``sums``
    and ``squares`` ``LANES`` for each cell, which come zeroed.
    """
    rows = values.shape[0]
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        for lane in range(4):
            k = cells[i + lane]
            if k >= 0:
                d = values[i + lane] - shift[k]
                sums[k * 4 + lane] += d
                squares[k * 4 + lane] += d * d
    for i in range(whole, rows):
        k = cells[i]
        if k >= 0:
            d = values[i] - shift[k]
            sums[k * 4] += d
            squares[k * 4] += d * d


@compiled(reorder=True)
def accumulate_one(values: Floats, shift: float, sums: Floats, squares: Floats) -> None:
    """Do the same where all rows are of one cell: the order of additions is the compiler's."""
    total = square = 0.0
    for i in range(values.shape[0]):
        d = values[i] - shift
        total += d
        square += d * d
    sums[0] += total
    squares[0] += square


@compiled()
def accumulate_wide(
    table: Floats, row: int, column: int, cells: Ints, shift: Floats, sums: Floats, squares: Floats
) -> None:
    """Do the same for columns side by side, from a row and a column of ``table`` onwards.

    ``shift``, ``sums`` and ``squares`` have a row for each cell and a number for each column.
    """
    for i in range(cells.shape[0]):
        k = cells[i]
        if k >= 0:
            for j in range(sums.shape[1]):
                d = table[row + i, column + j] - shift[k, j]
                sums[k, j] += d
                squares[k, j] += d * d
