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
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["LANES", "accumulate", "accumulate_wide", "combine", "count", "mark"]

LANES = 4

Floats = NDArray[np.float64]
Ints = NDArray[np.signedinteger[Any]]
F = TypeVar("F", bound=Callable[..., None])


def compiled(loop: F) -> F:
    """Compile without the interpreter lock, keeping the machine code on disk where possible."""
    keep = os.environ.get("CVSTATS_CACHE", "1").lower() not in {"0", "false", "no", "off"}
    try:
        fast: F = njit(nogil=True, cache=keep)(loop)
    except RuntimeError:  # no folder can be written: neither the package's nor the user's
        fast = njit(nogil=True)(loop)
    return fast


@compiled
def combine(cells: Ints, codes: Ints, size: int) -> None:
    """Append one level to the cell numbers, in place: ``cells = cells * size + codes``."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and codes[i] >= 0:
            cells[i] = cells[i] * size + codes[i]
        else:
            cells[i] = -1


@compiled
def count(cells: Ints, counts: Ints, first: Ints) -> None:
    """Rows of each cell, and the first of them; both arrays come zeroed."""
    for i in range(cells.shape[0]):
        k = cells[i]
        if k >= 0:
            if counts[k] == 0:
                first[k] = i
            counts[k] += 1


@compiled
def mark(seen: NDArray[np.uint8], groups: Ints, low: int, width: int, points: Ints) -> None:
    """Mark each (group, point) as seen, for the groups from ``low`` that the table holds."""
    high = low + seen.shape[0] // width
    for i in range(groups.shape[0]):
        if low <= groups[i] < high:
            seen[(groups[i] - low) * width + points[i]] = 1


@compiled
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


@compiled
def accumulate_wide(
    table: Floats, row: int, column: int, cells: Ints, shift: Floats, sums: Floats, squares: Floats
) -> None:
    """The same for columns side by side, from a row and a column of ``table`` onwards.

    ``shift``, ``sums`` and ``squares`` have a row for each cell and a number for each column.
    """
    for i in range(cells.shape[0]):
        k = cells[i]
        if k >= 0:
            for j in range(sums.shape[1]):
                d = table[row + i, column + j] - shift[k, j]
                sums[k, j] += d
                squares[k, j] += d * d
