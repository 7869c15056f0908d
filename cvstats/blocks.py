"""Fixed-size blocks of rows, worked on by a pool of threads.

The size of a block depends on the log alone and results come back in block order, so that the
number of threads never changes a bit of the answer. The environment variable
``CVSTATS_THREADS`` sets that number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["BLOCK", "each", "spans"]

BLOCK = 1 << 17
"""Rows worked on at once: their cell numbers stay in the processor's cache."""

T = TypeVar("T")


def threads() -> int:
    """Number of threads: as asked for, else one a core that this process may use."""
    asked = os.environ.get("CVSTATS_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spans(size: int, rows: int) -> list[tuple[int, int]]:
    """Cut ``size`` rows into blocks of ``rows``: (start, stop) of each."""
    return [(start, min(start + rows, size)) for start in range(0, size, rows)]


def each(work: Callable[[int], T], tasks: int) -> Iterator[T]:
    """Yield ``work(0), work(1), …`` in order, computed by threads a few tasks ahead."""
    workers = min(threads(), tasks)
    if workers <= 1:
        yield from map(work, range(tasks))
        return
    with ThreadPoolExecutor(max_workers=workers) as pool:
        rest = iter(range(tasks))
        ahead = [pool.submit(work, task) for task in islice(rest, 4 * workers)]
        while ahead:
            yield ahead.pop(0).result()
            ahead.extend(pool.submit(work, task) for task in islice(rest, 1))
