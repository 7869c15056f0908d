"""How far a call travels: the functions of the package between a log and its result.

Each trip is made twice and the second one is counted, with everything imported, compiled and
remembered. Counted are the frames of files of the package, those of comprehensions among them (so
Python 3.11 counts more than 3.12), on one thread::

    python -m tools.trips            # a table
    python -m tools.trips --where wald    # how often a trip calls each function
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import dask
import numpy as np
import pandas as pd
import xarray as xr

import cvstats

PACKAGE = str(Path(cvstats.__file__).parent) + os.sep

READS_ALL = {"compute_moments"}
"""The functions that read every loss: each call of them is a pass."""


@dataclass
class Trip:
    """What one call did."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)  # by module and function
    deepest: int = 0
    logs: int = 0
    read: float | None = None  # how often each loss of a lazy array was read

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.calls}

    @property
    def passes(self) -> int:
        return sum(many for (_, name), many in self.calls.items() if name in READS_ALL)

    def row(self) -> list[str]:
        read = "" if self.read is None else f"{self.read:g}"
        numbers = (self.calls.total(), len(self.calls), len(self.modules), self.deepest, self.logs)
        return [*(f"{number:,}" for number in numbers), str(self.passes), read]


COLUMNS = ["calls", "functions", "modules", "deepest", "Logs made", "passes", "lazy losses read"]


def follow(call: Callable[[], object]) -> Trip:
    """Count what the second call does."""
    call()
    trip, depth = Trip(), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        code = frame.f_code
        if event not in ("call", "return"):
            return
        if code.co_name == "__init__" and event == "call":  # that of a dataclass has no file
            trip.logs += type(next(iter(frame.f_locals.values()), None)).__qualname__ == "Log"
        if not code.co_filename.startswith(PACKAGE):
            return
        if event == "return":
            depth -= 1
            return
        depth += 1
        trip.deepest = max(trip.deepest, depth)
        trip.calls[code.co_filename.removeprefix(PACKAGE), code.co_qualname] += 1

    gc.disable()  # a collection would count what frees the logs of other calls
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return trip


# --- the logs -------------------------------------------------------------------------------------


def frame() -> pd.DataFrame:
    """Three models, three repetitions of 10 folds of 2,000 points in seven sources."""
    rng, n, repetitions = np.random.default_rng(1), 2_000, 3
    folds = [rng.permutation(n) % 10 for _ in range(repetitions)]
    levels = {
        "repetition": np.repeat(np.arange(repetitions), n), "fold": np.concatenate(folds),
        "source": np.tile(np.arange(n) % 7, repetitions),
        "point": np.tile(np.arange(n), repetitions),
    }  # fmt: skip
    index = pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))
    return pd.DataFrame(rng.gamma(2.0, size=(len(index), 3)), index=index, columns=list("abc"))


def array() -> xr.DataArray:
    """3 repetitions x 500 points x 6 latitudes x 3 models."""
    rng, n, repetitions = np.random.default_rng(2), 500, 3
    fold = np.stack([rng.permutation(n) % 10 for _ in range(repetitions)])
    return xr.DataArray(
        rng.gamma(2.0, size=(repetitions, n, 6, 3)),
        dims=("repetition", "point", "lat", "model"),
        coords={
            "repetition": range(repetitions), "point": range(n), "lat": np.arange(6.0),
            "model": list("abc"), "fold": (("repetition", "point"), fold),
        },
    )  # fmt: skip


LOSSES_READ = [0]


def counted(values: Any) -> Any:
    LOSSES_READ[0] += values.size
    return values


@cache
def in_chunks() -> xr.DataArray:
    """The array in eight chunks, which counts the losses that are read."""
    lazy = array().chunk(point=125, lat=3)
    empty = np.empty((0,) * lazy.ndim)
    return lazy.copy(data=lazy.data.map_blocks(counted, dtype=float, meta=empty))


def lazily(name: str) -> Callable[[], Trip]:
    """Follow a method of the lazy array, from the call to its numbers."""

    def followed() -> Trip:
        log = in_chunks()
        getattr(log.cvci, name)().compute()
        before = LOSSES_READ[0]
        trip = follow(lambda: getattr(log.cvci, name)().compute())
        trip.read = (LOSSES_READ[0] - before) / 2 / log.size
        return trip

    return followed


def written(log: pd.DataFrame) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return cvstats.report(log, Path(folder) / "report.html")


def in_memory(
    call: Callable[[pd.DataFrame], object], *, sources: bool = True
) -> Callable[[], Trip]:
    """Follow a call on the frame, with its sources or without."""

    def followed() -> Trip:
        log = frame() if sources else frame().droplevel("source")
        return follow(lambda: call(log))

    return followed


TRIPS: dict[str, Callable[[], Trip]] = {
    "wald": in_memory(lambda log: log.cvci.wald()),
    "wald(by=)": in_memory(lambda log: log.cvci.wald(by="source")),
    "corrected_t(by=)": in_memory(lambda log: log.cvci.corrected_t(by="source")),
    "compare": in_memory(lambda log: log.cvci.compare()),
    "dask wald": lazily("wald"),
    "dask compare": lazily("compare"),
    "summary": in_memory(cvstats.summary, sources=False),
    "report": in_memory(written),
}


@contextmanager
def one_thread() -> Iterator[None]:
    """Run everything on this thread, where it is seen."""
    before = os.environ.get("CVSTATS_THREADS")
    os.environ["CVSTATS_THREADS"] = "1"
    try:
        with dask.config.set(scheduler="synchronous"), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        del os.environ["CVSTATS_THREADS"]
        if before is not None:
            os.environ["CVSTATS_THREADS"] = before


def measure(name: str) -> Trip:
    """Make one trip."""
    with one_thread():
        return TRIPS[name]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--where", choices=TRIPS, help="list the functions of this trip")
    chosen = parser.parse_args().where
    if chosen:
        for (module, function), many in measure(chosen).calls.most_common():
            print(f"{many:7,}  {module}: {function}")
        return
    rows = [["trip", *COLUMNS], *([name, *measure(name).row()] for name in TRIPS)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print(name.ljust(widths[0]), *numbers, sep="  ")


if __name__ == "__main__":
    main()
