"""Memory of one first call beyond its log, as JSON: ``python -m benchmarks.memory KIND SIZE …``."""

from __future__ import annotations

import json
import os
import resource
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvstats
from benchmarks import logs

MEGABYTE = 1e6
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

MAKE: dict[str, Callable[..., Any]] = {
    "series": logs.series,
    "cells": logs.crowded,
    "frame": lambda points, models: logs.frame(points, models, order="C"),
    "grid": lambda points, cells: logs.grid(points, cells, dtype="float32"),
}
WARM = {
    "series": (400_000,),
    "cells": (400_000, 500, 120),
    "frame": (40_000, 20),
    "grid": (1_000, 1_000),
}
"""Sizes of a log that loads the same kernels: its codes are of the same types."""

WORDS = {
    "series": "{:,} rows", "cells": "{:,} rows, {} x {} folds", "frame": "{:,} x {} models",
    "grid": "{:,} x {:,} cells, float32",
}  # fmt: skip


def peak() -> float:
    """Tell the largest resident size of this process so far, in megabytes.

    On Linux a process inherits the ``ru_maxrss`` of the one that started it, which hides any
    growth below that; the file of the kernel knows better.
    """
    if STATUS.exists():
        (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def forget_peak() -> None:
    """Let the peak be what is resident now, where the system can do that."""
    if os.access(RESET, os.W_OK):
        RESET.write_text("5")


def call(losses: Any) -> None:
    """Compute the interval that needs most: cells of folds, and all checks."""
    cvstats.wald(losses, variance="within-fold")


def beyond(losses: Any, fresh: Callable[[], Any], work: Callable[[Any], Any]) -> dict[str, float]:
    """Measure a call twice: what the system sees, and what Python and numpy asked for.

    In megabytes; the kernels have to be loaded before. ``fresh`` makes the same log anew, about
    which nothing is remembered.
    """
    forget_peak()
    before = peak()
    work(losses)
    found = {"resident": peak() - before}
    losses = fresh()
    tracemalloc.start()
    work(losses)
    found["traced"] = tracemalloc.get_traced_memory()[1] / MEGABYTE
    tracemalloc.stop()
    return found


def main(kind: str, *sizes: int) -> dict[str, Any]:
    """Measure the first call on a log of some kind."""
    call(MAKE[kind](*(min(size, most) for size, most in zip(sizes, WARM[kind], strict=True))))
    losses = MAKE[kind](*sizes)
    found = beyond(losses, lambda: losses if kind == "grid" else logs.unseen(losses), call)
    return {"log": WORDS[kind].format(*sizes), "megabytes": found}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:]))))
