"""The results of the compiled loops for few losses, computed with numpy.

Loading the first compiled loop takes numba a third of a second, more than the rest of a small log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray, MaskArray

Codes = NDArray[np.signedinteger[Any]]

FEW = 1 << 14
"""Maximum number of losses, or rows, that are computed without a compiled loop."""


def combine(cells: NDArray[np.int32], codes: Sequence[Codes], sizes: Sequence[int]) -> None:
    """Compute cell numbers from the codes of some levels; -1 if one of them is negative."""
    cells[:] = 0
    for code, size in zip(codes, sizes, strict=True):
        cells *= np.int32(size)
        cells += code.astype(np.int32, copy=False)
    for code in codes:
        cells[code < 0] = -1


def count_rows(cells: Codes, counts: Codes, first: Codes) -> None:
    """Count the rows of each cell, and find the first of them, in zeroed tables."""
    here = np.flatnonzero(cells >= 0)
    counts[:] = np.bincount(cells[here], minlength=len(counts))
    last_to_first = here[::-1]  # the last assignment for a cell wins
    first[cells[last_to_first]] = last_to_first


def mark_seen(
    seen: NDArray[np.uint8], groups: Codes, points: Codes, low: int, origin: int, width: int
) -> None:
    """Mark each (group, point) as seen, within the window of the table."""
    line, place = groups.astype(np.int64) - low, points.astype(np.int64) - origin
    inside: MaskArray = (line >= 0) & (line < len(seen) // width) & (place >= 0) & (place < width)
    seen[line[inside] * width + place[inside]] = 1


def center_cells(
    lines: FloatArray, cells: NDArray[np.int32], count: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find a loss of each cell, its mean minus that loss, and squares about the mean.

    ``lines`` has one line per column, and ``count`` is the number of rows of each used cell.
    """
    if len(count) != 1 or count[0] < len(cells):
        order = np.argsort(cells, kind="stable")
        lines = lines[:, order[len(cells) - int(count.sum()) :]]
    starts = np.cumsum(count) - count
    shift = lines[:, starts]
    apart = lines - np.repeat(shift, count, axis=1)
    share = np.add.reduceat(apart, starts, axis=1) / count
    apart -= np.repeat(share, count, axis=1)
    return shift, share, np.add.reduceat(apart * apart, starts, axis=1)
