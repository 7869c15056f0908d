"""Fixed-size blocks of rows, processed by a pool of threads.

The size of a block depends only on the log, and results are returned in block order, so that the
number of threads never changes a bit of the result. The environment variable ``CVSTATS_THREADS``
sets that number.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from cvstats.errors import LogError

BLOCK = 1 << 18
"""Rows processed at once, so that their cell numbers stay in the processor's cache."""

PIECE = 4
"""Blocks that one call of a kernel processes: handing over to a thread costs time."""

LONGEST = 32
"""Maximum number of tasks that one thread takes at once."""

VARIABLE = "CVSTATS_THREADS"
"""The environment variable that sets the number of threads."""

T = TypeVar("T")


def block_bounds(size: int, numbers: int, width: int = 1) -> list[tuple[int, int]]:
    """Divide ``size`` rows of ``width`` numbers into blocks of ``numbers``, but at least one row.

    Returns (start, stop) of each block.
    """
    starts = range(0, size, max(1, numbers // max(1, width)))
    return list(zip(starts, (*starts[1:], size), strict=False))


def ordered_map(work: Callable[[int], T], tasks: int, most: int | None = None) -> Iterator[T]:
    """Yield ``work(0), work(1), …`` in order, computed by threads a few tasks ahead.

    Consecutive tasks go to one thread together: handing over costs more than a block. At most
    ``most`` results wait for their turn, but at least one. The environment variable sets the number
    of threads; by default there is one per core available to this process.

    Raises
    ------
    LogError
        If the environment variable is set, but is not a positive integer.
    """
    setting = os.environ.get(VARIABLE, "").strip()
    if setting and not (setting.isdecimal() and int(setting) > 0):
        raise LogError(
            f"the environment variable {VARIABLE} is {os.environ[VARIABLE]!r}. Expected a whole "
            f"number of 1 or more. Type export {VARIABLE}=2; or unset {VARIABLE}, for a thread on "
            f"each core."
        )
    if setting:
        workers = int(setting)
    elif hasattr(os, "sched_getaffinity"):
        workers = len(os.sched_getaffinity(0))
    else:
        workers = os.cpu_count() or 1
    workers = min(workers, tasks)
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
        first_ones = islice(rest, min(2 * workers, limit))
        ahead = deque((bounds, pool.submit(run, bounds)) for bounds in first_ones)
        own: dict[tuple[int, int], list[T]] = {}
        while ahead:
            yield from results
            results = []
            bounds, first = ahead[0]
            if bounds not in own and not first.done():
                # Rather than waiting, this thread runs a piece that no other thread has started.
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
    # A caller that takes exactly as many results as there are tasks leaves the generator suspended.
    # If it shut down a pool when it is collected, Python would swallow a Ctrl-C meanwhile.
    yield from results
