"""Ours and theirs in turns, so that both meet the same moods of the machine."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LEAST, MOST = 5, 101


@dataclass(frozen=True)
class Pairs:
    """Seconds of each pair of calls."""

    theirs: list[float]
    ours: list[float]

    @property
    def ratio(self) -> float:
        """Median over the pairs of ours / theirs."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def seconds(call: Callable[[], Any]) -> float:
    """Time one call, with garbage collection off."""
    gc.disable()
    try:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    finally:
        gc.enable()


def in_turns(
    theirs: Callable[[], Any],
    ours: Callable[[Any], Any],
    *,
    prepare: Callable[[], Any],
    budget: float,
) -> Pairs:
    """Time a peer and ours alternately until the budget (seconds) is spent.

    ``prepare`` makes the argument of ours anew each time, and is not timed. Each side is
    called once before, untimed.
    """
    theirs()
    ours(prepare())
    found = Pairs([], [])
    end = time.perf_counter() + budget
    while len(found.ours) < LEAST or (time.perf_counter() < end and len(found.ours) < MOST):
        argument = prepare()
        found.theirs.append(seconds(theirs))
        found.ours.append(seconds(lambda argument=argument: ours(argument)))
    return found
