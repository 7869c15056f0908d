"""Ours and theirs in turns, so that both meet the same moods of the machine."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LEAST, MOST = 5, 101
FEWEST, PATIENCE = 3, 8.0
"""Three pairs do where five would take longer than these seconds."""


@dataclass(frozen=True)
class Pairs:
    """Seconds of each pair of calls."""

    theirs: list[float]
    ours: list[float]

    @property
    def ratio(self) -> float:
        """Median over the pairs of ours / theirs."""
        return statistics.median(self.ratios)

    @property
    def ratios(self) -> list[float]:
        """Ours / theirs of each pair."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    @property
    def spread(self) -> tuple[float, float]:
        """Quartiles of the ratios: half of the pairs lie between."""
        if len(self.ours) == 1:
            return self.ratio, self.ratio
        low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    @property
    def beyond(self) -> float:
        """Median over the pairs of ours - theirs."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return statistics.median(ours - theirs for ours, theirs in pairs)


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
    start = time.perf_counter()
    while not enough(len(found.ours), time.perf_counter() - start, budget):
        argument = prepare()
        found.theirs.append(seconds(theirs))
        found.ours.append(seconds(lambda argument=argument: ours(argument)))
    return found


def enough(pairs: int, spent: float, budget: float) -> bool:
    """Whether so many pairs in so many seconds do."""
    if spent >= max(budget, PATIENCE):
        return pairs >= FEWEST
    return pairs >= MOST or (pairs >= LEAST and spent >= budget)
