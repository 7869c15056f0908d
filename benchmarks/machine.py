"""What this machine can do at best: plain reads of the same bytes, by one thread and by all.

A read is a sum with vector instructions. No interval of a log can take less time than a read of
its losses; a first call also meets the codes of the levels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs
from benchmarks.cases import row
from benchmarks.table import Row
from benchmarks.timing import LEAST, seconds

WORD = np.dtype(np.int64)
VARIANCE = "within-fold"
"""The variance that needs most: the cells of folds."""


def threads() -> int:
    """Count the threads of a parallel read: one a core."""
    return os.cpu_count() or 1


def words(array: np.ndarray) -> np.ndarray:
    """See the bytes of an array as floats if they are, else as 64-bit integers."""
    flat = array.ravel(order="K")
    if flat.dtype.kind == "f":
        return flat
    whole = len(flat) * flat.itemsize // WORD.itemsize * WORD.itemsize // flat.itemsize
    return flat[:whole].view(WORD)


def read(arrays: Sequence[np.ndarray]) -> None:
    """Read arrays by one thread."""
    for array in arrays:
        np.sum(array)


def read_by(pool: ThreadPoolExecutor, arrays: Sequence[np.ndarray]) -> None:
    """Read arrays by the threads of a pool, an equal part each."""
    parts = [part for array in arrays for part in np.array_split(array, threads())]
    list(pool.map(np.sum, parts))


def losses_of(log: Any) -> list[np.ndarray]:
    """Take the losses, as they lie in memory."""
    return [words(log.to_numpy())]


def codes_of(log: pd.Series) -> list[np.ndarray]:
    """Take the codes of all levels of an index."""
    return [words(np.asarray(codes)) for codes in log.index.codes]


def reads(
    log: Any, size: str, kind: str, prepare: Callable[[], Any], budget: float
) -> Iterator[Row]:
    """Compare `wald` with reads of what it has to read."""
    arrays = losses_of(log) + (codes_of(log) if kind == "first call" else [])
    what = "losses and codes" if kind == "first call" else "losses"
    ours = partial(cvstats.wald, variance=VARIANCE)
    with ThreadPoolExecutor(threads()) as pool:
        peers: dict[str, Callable[[], Any]] = {
            f"read of {what}, 1 thread": partial(read, arrays),
            f"read of {what}, {threads()} threads": partial(read_by, pool, arrays),
        }
        for peer, theirs in peers.items():
            work = f"wald {VARIANCE}, {kind}"
            yield row(work, size, peer, theirs, ours, prepare=prepare, budget=budget)


def bandwidth(rows: int, turns: int) -> Iterator[Row]:
    """Tell how many bytes a second a plain read gets."""
    values = np.random.default_rng(0).standard_normal(rows)
    with ThreadPoolExecutor(threads()) as pool:
        calls: dict[str, Callable[[], Any]] = {
            "plain read, 1 thread": partial(read, [values]),
            f"plain read, {threads()} threads": partial(read_by, pool, [values]),
        }
        for work, call in calls.items():
            call()
            taken = median(seconds(call) for _ in range(turns))
            yield Row(work, f"{values.nbytes / 1e6:g} MB", "", values.nbytes / 1e9 / taken,
                      unit="GB/s")  # fmt: skip


def measured(
    rows: int, frame: tuple[int, int], grid: tuple[int, int], budget: float
) -> Iterator[Row]:
    """Yield the bandwidth, and the reads of each kind of log."""
    for size in (rows // 10, rows):
        yield from bandwidth(size, max(LEAST, int(10 * budget)))
    losses = logs.series(rows)
    words = f"{rows:,} rows"
    yield from reads(losses, words, "checked", lambda: losses, budget)
    yield from reads(losses, words, "first call", lambda: logs.unseen(losses), budget)
    blocks = {"{:,} x {} models".format(*frame): partial(logs.frame, *frame, order="C")}
    for dtype in ("float64", "float32"):
        words = "{:,} x {:,} cells, ".format(*grid) + dtype
        blocks[words] = partial(logs.grid, *grid, dtype=dtype)
    for words, make in blocks.items():
        block = make()
        yield from reads(block, words, "checked", lambda block=block: block, budget)
