"""What was evaluated, where the losses of a lazy array tell it: NaN says that nothing was.

The dense form has a dimension for each level. Which evaluations there are is known when the
array is computed, and to none before; until then a usual log is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.containers.lazy.blocks import Names, Rows, column_name, masked_somewhere, named
from cvstats.core.design import LEVELS, SPLIT, Design, GridCodes, Level
from cvstats.core.types import IntArray
from cvstats.errors import LogError

__all__ = ["Layout", "agreed", "assumed_rows", "design_at", "joined_rows", "unlabelled"]

ONE_OF = ("fold", "source")
"""Levels of which a point has one label in each repetition."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How evaluations lie along the dimensions of an array, each with or without a loss."""

    levels: Mapping[str, Level]
    dims: tuple[Hashable, ...]
    shape: tuple[int, ...]
    taking: str

    def codes(self, name: str, rows: IntArray) -> NDArray[Any]:
        """Take the codes of one level at some rows of the flattened array."""
        stored = self.levels[name].codes
        if not isinstance(stored, GridCodes):
            return stored[rows]
        at = np.unravel_index(rows, stored.shape)
        if stored.base is None:
            return at[stored.axes[0]].astype(np.int32)
        return stored.base[tuple(at[axis] for axis in stored.axes)]


def agreed(parts: Sequence[Rows], names: Names, carried: Sequence[Names], drop: bool) -> Rows:
    """Hold what was evaluated in chunks beside each other against each other.

    Raises
    ------
    LogError
        If two chunks hold losses at different places, unless those are to be dropped.
    """
    seen = tuple(part.seen[0] for part in parts)
    known = [(part, cells) for part, cells in zip(parts, carried, strict=True) if part.seen[0]]
    if not known:
        return Rows(parts[0].some, parts[0].whole[:0], seen)  # nothing, wherever one looks
    first, cells = known[0]
    if not drop:
        for part, other in known[1:]:
            lone = np.setxor1d(first.some, part.some)
            if len(lone):
                holds = cells if lone[0] in first.some else other
                misses = other if lone[0] in first.some else cells
                raise LogError(
                    f"the models were not evaluated on the same points: {column_name(0, misses)} "
                    f"has no loss (NaN) at {named(int(lone[0]), names)}, where "
                    f"{column_name(0, holds)} has one. Expected every model on every evaluation. "
                    f"Fill the gap, or pass missing='drop' to leave out each evaluation that any "
                    f"model misses."
                )
        return Rows(first.some, first.whole, seen)
    some, whole = first.some, first.whole
    for part, _ in known[1:]:
        some, whole = np.union1d(some, part.some), np.intersect1d(whole, part.whole)
    return Rows(some, whole, seen)


def joined_rows(
    parts: Sequence[Rows],
    blocks: Sequence[Sequence[slice]],
    layout: Layout,
    carried: Sequence[Names],
    drop: bool,
) -> tuple[IntArray, IntArray]:
    """Find the places of all evaluations in the whole array; also with the dropped ones.

    Raises
    ------
    LogError
        If a carried cell has losses in one chunk and none in another, or nothing is left.
    """
    some = [places_of(part.some, block, layout) for part, block in zip(parts, blocks, strict=True)]
    found = some
    if drop:
        pairs = zip(parts, blocks, strict=True)
        found = [places_of(part.whole, block, layout) for part, block in pairs]
    mask = [part.seen for part, rows in zip(parts, found, strict=True) if len(rows)]
    for chunk, cells in enumerate(carried):
        if len({seen[chunk] for seen in mask}) > 1:
            raise masked_somewhere(column_name(0, cells))
    rows, every = np.sort(np.concatenate(found)), np.sort(np.concatenate(some))
    if not len(rows):
        raise LogError(
            "missing='drop' leaves nothing: every evaluation is missing for some model. Expected "
            "some that all models have. Leave out the models that have no losses."
            if len(every) else "the log is empty. Expected at least one loss."
        )  # fmt: skip
    for name in layout.levels:
        lost = np.flatnonzero(layout.codes(name, rows) < 0) if name in LEVELS else ()
        if len(lost):
            where = design_at(layout, rows[lost[:1]]).format_labels(0)
            raise unlabelled(name, where)
    return rows, every


def places_of(rows: IntArray, block: Sequence[slice], layout: Layout) -> IntArray:
    """Find the places of some rows of a chunk in the whole array."""
    at = np.unravel_index(rows, tuple(axis.stop - axis.start for axis in block))
    whole = [own + axis.start for own, axis in zip(at, block, strict=True)]
    places: IntArray = np.ravel_multi_index(whole, layout.shape).astype(np.int64)
    return places


def unlabelled(name: str, where: str) -> LogError:
    """Words for a loss without a label."""
    return LogError(
        f"level {name!r} has no label (NaN) for the loss at {where}. Expected a label for every "
        f"evaluation. Give it a label, or blank the loss: log.where(log[{name!r}].notnull())."
    )


def design_at(layout: Layout, rows: IntArray) -> Design:
    """Make the design of the evaluations at some rows of the flattened array."""
    levels = {
        name: Level(level.labels, layout.codes(name, rows))
        for name, level in layout.levels.items()
    }  # fmt: skip
    return Design(levels, len(rows), taking=layout.taking)


def assumed_rows(layout: Layout) -> IntArray:
    """Guess what was evaluated: every point once in each repetition, in a fold and a source.

    Only shapes and names of results come of it, and what a method asks of the levels alone.
    """
    spread = [at for at, dim in enumerate(layout.dims) if dim in ONE_OF]
    free = [at for at, dim in enumerate(layout.dims) if dim not in (*ONE_OF, *SPLIT)]
    if not free:  # nothing to spread
        spread = []
    kept = [at for at in range(len(layout.dims)) if at not in spread]
    sizes = tuple(layout.shape[at] for at in kept)
    where = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    places: dict[int, Any] = dict(zip(kept, where, strict=True))
    number = np.zeros(math.prod(sizes), dtype=np.int64)
    for at in free:
        number = number * layout.shape[at] + places[at]
    points = max(1, math.prod(layout.shape[at] for at in free))
    for i, at in enumerate(spread):  # one label goes round, the other one after the other
        size = layout.shape[at]
        places[at] = number % size if i == 0 else number * size // points
    every = [places[at] for at in range(len(layout.dims))]
    rows = np.sort(np.ravel_multi_index(every, layout.shape).astype(np.int64))
    for name in layout.levels:
        if name in LEVELS:
            rows = rows[layout.codes(name, rows) >= 0]
    return rows
