"""Which points were met in each cell, by a sum; and which evaluations, by their hashes.

Of a short log all hashes are kept, of a long one the smallest. What appears in two batches has one
hash, and is found if it is among those; of a batch that is added twice many are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvstats.containers.hashing import Prints, as_index, hashed, hashes_of
from cvstats.core import kernels
from cvstats.core.design import Codes, Design, GridCodes, LEVELS, SPLIT
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.errors import LogError

__all__ = ["ALL", "Met", "met_in"]

KEPT = 1 << 16
"""So many evaluations are remembered, in half a megabyte."""

ALL = (1 << 64) - 1

ODD = np.uint64(0xD6E8FEB86659FD93)
"""Tells the label of one level from the same label of another."""


@dataclass(frozen=True, eq=False)
class Met:
    """The hashes of some evaluations: the smallest ones, in ascending order.

    Parameters
    ----------
    hashes : array of uint64
        One for each evaluation, distinct.
    limit : int
        No evaluation with a smaller hash was left out; 2^64 - 1 if none was at all.
    """

    hashes: Prints
    limit: int = ALL

    @property
    def complete(self) -> bool:
        """Whether every evaluation is remembered."""
        return self.limit == ALL

    def __add__(self, other: Met) -> Met:
        """Remember the evaluations of two batches, which share none."""
        limit = min(self.limit, other.limit)
        looked = [part.hashes[: np.searchsorted(part.hashes, limit)] for part in (self, other)]
        both = np.sort(np.concatenate(looked), kind="stable")  # two runs, merged in one pass
        again = int(np.count_nonzero(both[1:] == both[:-1]))
        if again:
            of = "" if limit == ALL else f" of {min(map(len, looked)):,} that were looked at"
            raise LogError(
                f"an evaluation appears in two batches: {again:,}{of}. Expected each evaluation "
                f"once. Was a batch added twice, or a fold written by two jobs? Where each batch "
                f"numbers its points anew, give them names of their own, or none: "
                f"batch.droplevel('point')."
            )
        return smallest(both, limit)


def smallest(hashes: Prints, limit: int) -> Met:
    """Keep the smallest of some hashes, which are in order."""
    if len(hashes) <= KEPT:
        return Met(hashes, limit)
    return Met(hashes[:KEPT].copy(), int(hashes[KEPT]))


def met_in(design: Design, by: tuple[str, ...]) -> tuple[Prints | None, Met | None]:
    """Hash the points of a batch in one pass; nothing where they have no names.

    Returns
    -------
    array of uint64, shape (cells,)
        The sum of the hashes of the points in each cell, modulo 2^64. Sums add up over batches,
        and two sets of points that differ have different sums but for one chance in 2^64. So
        they tell whether repetitions test the same points.
    Met
        Who was evaluated in which split of which source, and of which label of other levels that
        were asked for, as they may tell several logs apart. Folds do not count: a point in two
        of them is there twice. None where points are places along a dimension without labels.
    """
    if "point" not in design.levels:
        return None, None
    plan = design.cell_table(by)
    hash_of = hasher(design)
    others = (name for name in by if name not in LEVELS)
    names = [name for name in (*SPLIT, "source", *others) if name in design.levels]
    salts = [hashes_of(design.levels[name].labels) for name in names]
    sums = np.zeros(plan.size, dtype=np.uint64)
    found, limit = np.empty(0, dtype=np.uint64), ALL
    for start, stop in block_bounds(design.size, BLOCK):
        cells, points = design.cells(by, start, stop), design.levels["point"].block(start, stop)
        key = hash_of(points)
        kernels.sum_hashes(key, points, cells, sums)
        for name, salt in zip(names, salts, strict=True):
            key = key * ODD ^ salt[design.levels[name].block(start, stop)]
        small = (key < np.uint64(limit)) & (cells >= 0) & (points >= 0)
        found = np.concatenate([found, key[small]])
        if len(found) > 2 * KEPT:
            found = np.partition(found, KEPT)
            limit, found = int(found[KEPT]), found[:KEPT]
    point = design.levels["point"]
    if isinstance(point.labels, range) and isinstance(point.codes, GridCodes):
        return sums[plan.used], None  # places in an array, which each batch numbers anew
    return sums[plan.used], smallest(np.sort(found), limit)


def hasher(design: Design) -> Callable[[Codes], Prints]:
    """Make what hashes the points of some rows, by their codes."""
    level = design.levels["point"]
    labels = level.labels
    if isinstance(labels, range):  # whole numbers need no table as long as the log
        start, step = labels.start, labels.step
        return lambda codes: hashed(start + step * codes.astype(np.int64))
    if len(labels) <= design.size:
        hashes = hashes_of(labels)
        return lambda codes: hashes[codes]
    used = np.unique(level.block(0, design.size))  # after a filter there may be many more
    few = hashes_of(as_index(labels).take(np.maximum(used, 0)))
    return lambda codes: few[np.searchsorted(used, codes)]
