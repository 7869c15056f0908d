"""What happens to one chunk of a lazy array when it is computed, wherever that is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.columns import LossColumns
from cvstats.core.design import CellIndex, Design, Level
from cvstats.core.moments import Moments
from cvstats.core.reduce import compute_moments
from cvstats.core.types import IntArray
from cvstats.errors import LogError, place

__all__ = [
    "Names",
    "Rows",
    "block_moments",
    "block_rows",
    "column_name",
    "masked_somewhere",
    "merged",
    "named",
]

Names = Sequence[tuple[Hashable, Any]]
"""For each dimension its name and its labels in this chunk."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The evaluations in the chunks of some losses: of one chunk, or of all beside each other.

    ``some`` are the rows that hold any loss, and ``whole`` those that none of the carried cells
    misses; ``seen`` says for each chunk whether it holds a loss at all.
    """

    some: IntArray
    whole: IntArray
    seen: tuple[bool, ...]


def block_rows(values: NDArray[Any], tested: int, nan_tells: bool) -> Rows:
    """Find the evaluations in one chunk; a carried cell without any loss misses nothing."""
    table = flat(values, tested)
    if table.dtype.kind != "f":
        every = np.arange(len(table))
        return Rows(every, every, (True,))
    gone = np.isnan(table)
    columns = ~gone.all(axis=0)
    some = np.flatnonzero(~gone.all(axis=1)) if nan_tells else np.arange(len(table))
    whole = np.flatnonzero(~gone[:, columns].any(axis=1))
    return Rows(some, whole, (bool(columns.any()),))


def flat(values: NDArray[Any], tested: int) -> NDArray[Any]:
    """Lay a chunk out, evaluations by carried cells."""
    rows, width = math.prod(values.shape[:tested]), math.prod(values.shape[tested:])
    table = np.asarray(values).reshape(rows, width)
    return table.view(np.uint8) if table.dtype.kind == "b" else table


def block_moments(
    values: NDArray[Any],
    levels: tuple[str, ...],
    sizes: tuple[int, ...],
    codes: Sequence[tuple[tuple[int, ...], IntArray]],
    names: Names,
    tested: int,
    nan_tells: bool = False,
    paired: bool = False,
    kept: Rows | None = None,
) -> Moments:
    """Compute the moments of the cells in one chunk, whose first dimensions hold evaluations.

    With ``nan_tells`` the rows without any loss are no evaluations; with ``kept`` only rows
    that no model misses are.
    """
    shape = values.shape[:tested]
    table = flat(values, tested)
    digits = np.empty((len(levels), len(table)), dtype=np.int32)
    for line, (axes, base) in zip(digits, codes, strict=True):
        wide = [shape[axis] if axis in axes else 1 for axis in range(tested)]
        line.reshape(shape)[...] = base.reshape(wide)
    picked: IntArray | None = None
    if kept is not None:
        picked = kept.whole
    elif nan_tells:
        picked = block_rows(values, tested, nan_tells).some
    if picked is not None and len(picked) < len(table):
        table, digits = table[picked], digits[:, picked]
    labels = tuple(range(size) for size in sizes)
    if not len(table):
        nothing = np.zeros((0, table.shape[1]))
        none = np.zeros((0, len(levels)), dtype=np.int64)
        return Moments(
            levels, labels, none, np.zeros(0), nothing, nothing, np.zeros(table.shape[1])
        )
    keys, cell = CellIndex.numbered(sizes, digits)
    design = Design({"cell": Level(range(len(keys)), cell.astype(np.int32))}, len(table))
    found = compute_moments(design, LossColumns((table,)), ("cell",))
    bad = ~(np.isfinite(found.mean).all(axis=0) & np.isfinite(found.m2).all(axis=0))
    for column in np.flatnonzero(bad).tolist():
        checked(table[:, column], column, names, tested, picked, paired)
    return replace(found, levels=levels, labels=labels, codes=keys.codes())


def checked(
    losses: NDArray[Any],
    column: int,
    names: Names,
    tested: int,
    picked: IntArray | None,
    paired: bool,
) -> None:
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
    row = int(rows[0]) if picked is None else int(picked[rows[0]])
    where = named(row, names[:tested])
    if paired:
        raise LogError(
            f"not both models of {whose} have a finite loss at {where}. Expected a number for "
            f"every model on every evaluation. Fill the gap, or pass missing='drop' to leave out "
            f"each evaluation that any model misses."
        )
    if not missing[rows[0]]:
        raise LogError(
            f"the loss of {whose} is infinite at {where}. Expected finite numbers. An infinite "
            f"loss usually comes from log(0): clip the predicted probabilities."
        )
    raise LogError(
        f"the loss of {whose} is missing (NaN) at {where}. Expected a number for every "
        f"evaluation. Fill the gap, or pass missing='drop' to leave out each evaluation that any "
        f"model misses."
    )


def named(row: int, names: Names) -> str:
    """Put a place along some dimensions in words."""
    at = np.unravel_index(row, tuple(len(labels) for _, labels in names))
    return place({str(dim): labels[int(i)] for (dim, labels), i in zip(names, at, strict=True)})


def column_name(column: int, names: Names) -> str:
    """Name a carried cell."""
    return named(column, names) if names else "the log"


def masked_somewhere(whose: str) -> LogError:
    """Words for a carried cell that has losses in one chunk and none in another."""
    return LogError(
        f"the losses of {whose} are all missing (NaN) in one chunk and not in another. Expected "
        f"a number for every evaluation, or none at all. Fill the gap, or mask it everywhere."
    )


def merged(parts: Sequence[Moments], names: Names) -> Moments:
    """Add up the moments of chunks; a carried cell is masked in all of them or in none."""
    known = [part for part in parts if len(part.count)]
    if not known:
        return parts[0]
    masks = [np.asarray(np.isnan(moments.mean).any(axis=0)) for moments in known]
    for mask in masks[1:]:
        apart = np.flatnonzero(mask != masks[0])
        if len(apart):
            raise masked_somewhere(column_name(int(apart[0]), names))
    return reduce(Moments.__add__, known)
