"""What happens to one chunk of a lazy array when it is computed, wherever that is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats import chunked
from cvstats.chunked import Panels
from cvstats.design import Design, Level
from cvstats.errors import LogError, place
from cvstats.moments import Moments
from cvstats.types import IntArray

__all__ = ["block_moments", "merged"]

Names = Sequence[tuple[Hashable, Any]]
"""For each dimension its name and its labels in this chunk."""


def block_moments(
    values: NDArray[Any],
    levels: tuple[str, ...],
    sizes: tuple[int, ...],
    codes: Sequence[tuple[tuple[int, ...], IntArray]],
    names: Names,
    tested: int,
) -> Moments:
    """Compute the moments of the cells in one chunk, whose first dimensions hold evaluations."""
    shape = values.shape[:tested]
    keys = np.zeros(shape, dtype=np.int64)
    for (axes, base), size in zip(codes, sizes, strict=True):
        wide = [shape[axis] if axis in axes else 1 for axis in range(tested)]
        keys = keys * size + base.reshape(wide)
    rows = keys.size
    table = np.asarray(values).reshape(rows, -1)
    table = table.view(np.uint8) if table.dtype.kind == "b" else table
    used, cell = np.unique(keys, return_inverse=True)
    design = Design({"cell": Level(range(len(used)), cell.reshape(-1).astype(np.int32))}, rows)
    found = chunked.moments(design, Panels((table,)), ("cell",))
    bad = ~(np.isfinite(found.mean).all(axis=0) & np.isfinite(found.m2).all(axis=0))
    for column in np.flatnonzero(bad).tolist():
        checked(table[:, column], column, names, tested)
    keyed = np.empty((len(used), len(levels)), dtype=np.int64)
    number = used
    for at in reversed(range(len(levels))):
        number, keyed[:, at] = np.divmod(number, sizes[at])
    labels = tuple(range(size) for size in sizes)
    return Moments(levels, labels, keyed, found.count, found.mean, found.m2)


def checked(losses: NDArray[Any], column: int, names: Names, tested: int) -> None:
    """Refuse losses that are no numbers, unless a carried cell has none at all: it is masked."""
    missing = np.isnan(losses)
    if missing.all() and len(names) > tested:
        return
    whose = column_name(column, names[tested:])
    rows = np.flatnonzero(~np.isfinite(losses))
    if not len(rows):
        raise LogError(
            f"the losses of {whose} are too large to be squared. Expected numbers below 1e150. "
            f"Divide them by a constant."
        )
    where = named(int(rows[0]), names[:tested])
    if not missing[rows[0]]:
        raise LogError(
            f"the loss of {whose} is infinite at {where}. Expected finite numbers. An infinite "
            f"loss usually comes from log(0): clip the predicted probabilities."
        )
    raise LogError(
        f"the loss of {whose} is missing (NaN) at {where}. Expected a number for every "
        f"evaluation. Fill the gap, or leave this evaluation out of the array."
    )


def named(row: int, names: Names) -> str:
    """Put a place along some dimensions in words."""
    at = np.unravel_index(row, tuple(len(labels) for _, labels in names))
    return place({str(dim): labels[int(i)] for (dim, labels), i in zip(names, at, strict=True)})


def column_name(column: int, names: Names) -> str:
    """Name a carried cell."""
    return named(column, names) if names else "the log"


def merged(parts: Sequence[Moments], names: Names) -> Moments:
    """Add up the moments of chunks; a carried cell is masked in all of them or in none."""
    masks = [np.asarray(np.isnan(part.mean).any(axis=0)) for part in parts]
    for mask in masks[1:]:
        apart = np.flatnonzero(mask != masks[0])
        if len(apart):
            whose = column_name(int(apart[0]), names)
            raise LogError(
                f"the losses of {whose} are all missing (NaN) in one chunk and not in another. "
                f"Expected a number for every evaluation, or none at all. Fill the gap, or mask "
                f"it everywhere."
            )
    return reduce(Moments.__add__, parts)
