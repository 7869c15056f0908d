"""Fixed-size blocks of rows, worked on by a pool of threads.

The size of a block depends on the log alone and results come back in block order, so that the
number of threads never changes a bit of the answer. The environment variable
``CVSTATS_THREADS`` sets that number.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cvstats.errors import LogError

BLOCK = 1 << 18
"""Rows worked on at once: their cell numbers stay in the processor's cache."""

PIECE = 4
"""Blocks that one call of a kernel works through: handing over to a thread costs time."""

LONGEST = 32
"""Tasks that one thread takes at once, at the most."""

VARIABLE = "CVSTATS_THREADS"
"""The environment variable that sets the number of threads."""

T = TypeVar("T")


def count_threads() -> int:
    """Count the threads to use: as set, otherwise one for each core that this process may use.

    Raises
    ------
    LogError
        If the environment variable is not empty, and not a whole number of 1 or more.
    """
    setting = os.environ.get(VARIABLE, "").strip()
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    if setting:
        raise LogError(
            f"the environment variable {VARIABLE} is {os.environ[VARIABLE]!r}. Expected a whole "
            f"number of 1 or more. Type export {VARIABLE}=2; or unset {VARIABLE}, for a thread on "
            f"each core."
        )
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def block_bounds(size: int, rows: int) -> list[tuple[int, int]]:
    """Cut ``size`` rows into blocks of ``rows``: (start, stop) of each."""
    starts = range(0, size, rows)
    return list(zip(starts, (*starts[1:], size), strict=False))


def blocks_per_task(rows: int) -> int:
    """Count the blocks of so many rows that one call of a kernel works through."""
    return max(1, PIECE * BLOCK // rows)


def ordered_map(work: Callable[[int], T], tasks: int, most: int | None = None) -> Iterator[T]:
    """Yield ``work(0), work(1), …`` in order, computed by threads a few tasks ahead.

    Neighbouring tasks go to one thread in one piece: handing over costs more than a block. At
    most ``most`` results wait for their turn, and one at the least.
    """
    workers = min(count_threads(), tasks)
    if workers <= 1:
        yield from map(work, range(tasks))
        return
    limit = tasks if most is None else max(most, 1)
    size = max(1, min(tasks // (4 * workers), LONGEST, limit // (2 * workers)))

    def run(bounds: tuple[int, int]) -> list[T]:
        return [work(task) for task in range(*bounds)]

    results: list[T] = []
    with ThreadPoolExecutor(max_workers=workers - 1) as pool:
        rest = iter(block_bounds(tasks, size))
        first_ones = islice(rest, min(2 * workers, max(1, limit // size)))
        ahead = deque((bounds, pool.submit(run, bounds)) for bounds in first_ones)
        own: dict[tuple[int, int], list[T]] = {}
        while ahead:
            yield from results
            results = []
            bounds, first = ahead[0]
            if bounds not in own and not first.done():
                # Rather than wait this thread does a piece itself that no other has begun.
                free = (other for other, begun in ahead if other not in own and begun.cancel())
                taken = next(free, None)
                if taken is None:
                    first.exception()  # wait for it
                else:
                    own[taken] = run(taken)
                continue
            ahead.popleft()
            results = own.pop(bounds) if bounds in own else first.result()
            ahead.extend((bounds, pool.submit(run, bounds)) for bounds in islice(rest, 1))
    # A caller that takes just as many results as there are tasks leaves the generator behind. If
    # it had a pool to shut down as it is thrown away, Python would swallow a Ctrl-C meanwhile.
    yield from results


class Scratch(threading.local):
    """Memory that a thread uses again for each block, rather than ask for it anew."""

    def array(self, name: str, size: int, dtype: Any) -> NDArray[Any]:
        """Hand out an array of this thread's own; what it held is gone at the next call."""
        buffer: NDArray[Any] | None = vars(self).get(name)
        if buffer is None or len(buffer) < size or buffer.dtype != dtype:
            buffer = vars(self)[name] = np.empty(size, dtype=dtype)
        return buffer[:size]
