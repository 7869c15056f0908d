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

__all__ = ["BLOCK", "NUMBER", "PIECE", "Scratch", "each", "is_count", "pieced", "spans"]

BLOCK = 1 << 18
"""Rows worked on at once: their cell numbers stay in the processor's cache."""

PIECE = 4
"""Blocks that one call of a kernel works through: handing over to a thread costs time."""

LONGEST = 32
"""Tasks that one thread takes at once, at the most."""

NUMBER = "CVSTATS_THREADS"
"""The environment variable that sets the number of threads."""

T = TypeVar("T")


def threads() -> int:
    """Count the threads: as asked for, else one a core that this process may use.

    Who asks for no number at all is told so by `chunked`, as moments are made.
    """
    asked = os.environ.get(NUMBER, "")
    if is_count(asked):
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_count(text: str) -> bool:
    """Whether a text is a whole number of 1 or more."""
    return text.strip().isdecimal() and int(text) > 0


def spans(size: int, rows: int) -> list[tuple[int, int]]:
    """Cut ``size`` rows into blocks of ``rows``: (start, stop) of each."""
    return [(start, min(start + rows, size)) for start in range(0, size, rows)]


def pieced(rows: int) -> int:
    """Count the blocks of so many rows that one call of a kernel works through."""
    return max(1, PIECE * BLOCK // rows)


def each(work: Callable[[int], T], tasks: int) -> Iterator[T]:
    """Yield ``work(0), work(1), …`` in order, computed by threads a few tasks ahead.

    Neighbouring tasks go to one thread in one piece: handing over costs more than a block.
    """
    workers = min(threads(), tasks)
    if workers <= 1:
        yield from map(work, range(tasks))
        return

    def piece(span: tuple[int, int]) -> list[T]:
        return [work(task) for task in range(*span)]

    answers: list[T] = []
    with ThreadPoolExecutor(max_workers=workers - 1) as pool:
        rest = iter(spans(tasks, min(max(1, tasks // (4 * workers)), LONGEST)))
        ahead = deque((span, pool.submit(piece, span)) for span in islice(rest, 2 * workers))
        own: dict[tuple[int, int], list[T]] = {}
        while ahead:
            yield from answers
            answers = []
            span, first = ahead[0]
            if span not in own and not first.done():
                # Rather than wait this thread does a piece itself that no other has begun.
                free = (other for other, begun in ahead if other not in own and begun.cancel())
                taken = next(free, None)
                if taken is None:
                    first.exception()  # wait for it
                else:
                    own[taken] = piece(taken)
                continue
            ahead.popleft()
            answers = own.pop(span) if span in own else first.result()
            ahead.extend((span, pool.submit(piece, span)) for span in islice(rest, 1))
    # Who takes just as many answers as there are tasks leaves a generator behind. Had it a pool
    # to shut down as it is thrown away, Python would swallow a Ctrl-C that comes meanwhile.
    yield from answers


class Scratch(threading.local):
    """Memory that a thread uses again for each block, rather than ask for it anew."""

    def __init__(self) -> None:
        self.buffers: dict[str, NDArray[Any]] = {}

    def array(self, name: str, size: int, dtype: Any) -> NDArray[Any]:
        """Hand out an array of this thread's own; what it held is gone at the next call."""
        buffer = self.buffers.get(name)
        if buffer is None or len(buffer) < size or buffer.dtype != dtype:
            buffer = self.buffers[name] = np.empty(size, dtype=dtype)
        return buffer[:size]
