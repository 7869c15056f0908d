"""Which evaluations were met: all of a short log, a sample of a long one.

An evaluation has a hash, and the smallest hashes are kept. What stands in two batches has the same
hash in both, so that it is found if it is among these; of copies of whole batches many are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cvstats.blocks import BLOCK, spans
from cvstats.containers.hashing import Prints, hashes_of
from cvstats.design import SPLIT, Design
from cvstats.errors import LogError
from cvstats.levels import Codes

__all__ = ["Met", "met_in"]

KEPT = 1 << 16
"""So many evaluations are remembered, in half a megabyte."""

ALL = 1 << 64


@dataclass(frozen=True, eq=False)
class Met:
    """The hashes of some evaluations: those below a limit, in ascending order.

    Parameters
    ----------
    hashes : array of uint64
        One for each evaluation, distinct.
    limit : int
        No evaluation with a smaller hash was left out; 2^64 if none was at all.
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
        looked = [below(part.hashes, limit) for part in (self, other)]
        both = np.sort(np.concatenate(looked), kind="stable")  # two runs, merged in one pass
        again = int(np.count_nonzero(both[1:] == both[:-1]))
        if again:
            fewest = min(map(len, looked))
            of = "" if self.complete and other.complete else f" of {fewest:,} that were looked at"
            raise LogError(
                f"an evaluation stands in two batches: {again:,}{of}. Expected each evaluation "
                f"once. Has a batch been added twice, or a fold been written by two jobs? Where "
                f"each batch numbers its points anew, give them names of their own, or none: "
                f"batch.droplevel('point')."
            )
        return smallest(both, limit)


def below(hashes: Prints, limit: int) -> Prints:
    """Take those below a limit."""
    return hashes if limit == ALL else hashes[: np.searchsorted(hashes, np.uint64(limit))]


def smallest(hashes: Prints, limit: int) -> Met:
    """Keep the smallest of some hashes, which are in order."""
    if len(hashes) <= KEPT:
        return Met(hashes, limit)
    return Met(hashes[:KEPT].copy(), int(hashes[KEPT]))


def met_in(design: Design, hash_of: Callable[[Codes], Prints], within: str) -> Met:
    """Hash the evaluations of a batch: who was tested in which split of which source.

    ``hash_of`` hashes points by their codes, and ``within`` is a level that tells several logs
    apart. Folds do not count: a point in two of them is there twice.
    """
    names = [name for name in (*SPLIT, "source", within) if name in design.levels]
    salts = [hashes_of(design.levels[name].labels) for name in names]
    found = np.empty(0, dtype=np.uint64)
    limit = ALL
    for start, stop in spans(design.size, BLOCK):
        points = design.levels["point"].block(start, stop)
        key = hash_of(points)
        for name, salt in zip(names, salts, strict=True):
            key = mixed(key) ^ salt[design.levels[name].block(start, stop)]
        key = mixed(key)
        if design.present is not None:
            key = key[design.present[start:stop]]
        fresh = key if limit == ALL else key[key < np.uint64(limit)]
        found = np.concatenate([found, fresh])
        if len(found) > 2 * KEPT:
            found = np.partition(found, KEPT)[: KEPT + 1]
            limit = int(found[KEPT])
            found = found[:KEPT]
    return smallest(np.sort(found), limit)


def mixed(values: Prints) -> Prints:
    """Mix the bits of numbers, one to one (the finalizer of SplitMix64)."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Prints = z ^ (z >> np.uint64(31))
    return mixed
