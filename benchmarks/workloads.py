"""What two commits are compared by: one call each, on a log made before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import cvstats
from benchmarks import logs, methods

SIZES = {
    "full": (10**7, (10**5, 100), (10**5, 200), (1_000, 10**5)),
    "quick": (10**6, (10**4, 100), (10**4, 100), (1_000, 10**4)),
    "tiny": (1_000, (100, 5), (100, 5), (20, 30)),
}
"""Rows of a Series; points and models of a frame; the same for all pairs; points and cells."""


@dataclass(frozen=True)
class Workload:
    """Makes a log, what is called on it, and what makes the argument of each call."""

    make: Callable[[], Any]
    name: str
    options: dict[str, Any]
    prepare: Callable[[Any], Any] = lambda log: log

    def ready(self) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
        """Make the log once; give what prepares an argument, and the call."""
        log = self.make()
        return partial(self.prepare, log), partial(getattr(cvstats, self.name), **self.options)


def of_methods(scale: str) -> dict[str, Workload]:
    """Take each interval on the log that it needs."""
    size = methods.SIZES["tiny" if scale == "tiny" else "full"]
    found = {}
    for name, make in methods.LOGS.items():
        options = {"train_size": size.n - size.n // 10} if name == "corrected_t" else {}
        found[f"method {name}, first call"] = Workload(
            partial(make, size), name, options, logs.unseen
        )
    return found


def workloads(scale: str) -> dict[str, Workload]:
    """Name every workload of a scale."""
    rows, frame, pairs, grid = SIZES[scale]
    found: dict[str, Workload] = {}
    for variance in ("all-pairs", "within-fold"):
        options = {"variance": variance}
        for size, make in (
            (f"{rows:,} rows", partial(logs.series, rows)),
            ("100 rows", partial(logs.series, 100, 1)),
        ):
            found[f"wald {variance}, {size}, checked"] = Workload(make, "wald", options)
            found[f"wald {variance}, {size}, first call"] = Workload(
                make, "wald", options, logs.unseen
            )
        for order, lie in (("C", "rows"), ("F", "columns")):
            size = "{:,} x {} models".format(*frame)
            found[f"wald {variance}, {size}, {lie} contiguous"] = Workload(
                partial(logs.frame, *frame, order=order), "wald", options
            )
        for dtype in ("float64", "float32"):
            size = "{:,} x {:,} cells".format(*grid)
            found[f"wald {variance}, {size}, {dtype}"] = Workload(
                partial(logs.grid, *grid, dtype=dtype), "wald", options
            )
    size = "{:,} x {} models".format(*pairs)
    found[f"compare all pairs, {size}"] = Workload(
        partial(logs.frame, *pairs, order="C"), "compare", {}
    )
    return found | of_methods(scale)
