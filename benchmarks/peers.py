"""The same work by other libraries, and plain reads of the same bytes, against `cvstats.wald`.

The peers compute only what `wald` needs, the counts, means and variances of folds, without an
interval and without checking the log. Their input is prepared before timing: flox, numbagg and
numpy get the cell number of each loss, polars its own table. If a library computes one moment at a
time, only the variance is computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

import cvstats
from benchmarks import logs
from benchmarks.contract import VARIANCES
from benchmarks.logs import Scale
from benchmarks.measure import LEAST, Row, in_turns, seconds

Call = Callable[[], Any]
Maker = Callable[[Any], Call]
"""Makes the call of a peer from a log, untimed."""

ALL_PAIRS, WITHIN = VARIANCES


def cells(losses: pd.Series | pd.DataFrame) -> np.ndarray:
    """Number the cells of (repetition, fold)."""
    repetition, fold = (np.asarray(codes, dtype=np.int64) for codes in losses.index.codes[:2])
    return repetition * logs.FOLDS + fold


def rest_quietly() -> None:
    """Make OpenMP threads sleep between calls; otherwise they spin while ours is timed.

    The setting is read when the first thread starts.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def by_pandas(losses: pd.Series | pd.DataFrame) -> Call:
    """Group by the levels of the index."""
    return lambda: losses.groupby(level=["repetition", "fold"]).agg(["count", "mean", "var"])


def by_polars(losses: pd.Series | pd.DataFrame) -> Call:
    """Group a table of polars; with several models, one expression for all."""
    import polars

    repetition, fold = (np.asarray(codes) for codes in losses.index.codes[:2])
    columns = losses.to_frame() if isinstance(losses, pd.Series) else losses
    arrays = {name: np.ascontiguousarray(columns[name].to_numpy()) for name in columns}
    table = polars.DataFrame({"repetition": repetition, "fold": fold, **arrays})
    models = polars.col(*arrays)
    moments = [
        models.count().name.suffix(" count"),
        models.mean().name.suffix(" mean"),
        models.var().name.suffix(" var"),
    ]
    return lambda: table.group_by("repetition", "fold").agg(moments)


def by_flox(losses: pd.Series | pd.DataFrame) -> Call:
    """Reduce the last axis by cells, which are known beforehand; the variance alone."""
    from flox import groupby_reduce

    cell, values = cells(losses), np.ascontiguousarray(losses.to_numpy().T)
    return partial(
        groupby_reduce, values, cell, func="var", expected_groups=np.arange(cell.max() + 1),
        finalize_kwargs={"ddof": 1},
    )  # fmt: skip


def by_numbagg(losses: pd.Series | pd.DataFrame) -> Call:
    """Take the variance by cells along the first axis."""
    import numbagg

    rest_quietly()
    cell, values = cells(losses), losses.to_numpy()
    number = int(cell.max()) + 1
    return partial(numbagg.group_nanvar, values, cell, axis=0, num_labels=number)


def by_bincount(losses: pd.Series) -> Call:
    """Count and sum twice: for the means, and for squares about them."""
    cell, values = cells(losses), losses.to_numpy()

    def call() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        count = np.bincount(cell)
        mean = np.bincount(cell, values) / count
        return count, mean, np.bincount(cell, (values - mean[cell]) ** 2) / (count - 1)

    return call


def by_repetition(losses: pd.Series) -> Call:
    """Take the variance of each repetition; its rows lie together."""
    repetitions = len(losses.index.levels[0])
    return partial(np.var, losses.to_numpy().reshape(repetitions, -1), axis=1)


def of_columns(losses: pd.DataFrame | xr.DataArray) -> Call:
    """Take the variance along the points."""
    return partial(np.var, losses.to_numpy(), axis=0)


def of_columns_by_numbagg(losses: pd.DataFrame | xr.DataArray) -> Call:
    """Take the variance along the points, past NaN."""
    import numbagg

    rest_quietly()
    return partial(numbagg.nanvar, losses.to_numpy(), axis=0)


def of_columns_by_polars(losses: pd.DataFrame) -> Call:
    """Take the variance of each column of a table of polars."""
    import polars

    table = polars.DataFrame({name: losses[name].to_numpy() for name in losses})
    return lambda: table.select(polars.all().var())


def grid_by_xarray(losses: xr.DataArray) -> Call:
    """Group by the coordinate; xarray may hand this to flox where that is installed."""
    return lambda: losses.groupby("fold").var("point", ddof=1)


def grid_by_flox(losses: xr.DataArray) -> Call:
    """Reduce by the coordinate, in the way that flox chooses."""
    from flox.xarray import xarray_reduce

    return partial(xarray_reduce, losses, "fold", func="var", ddof=1)


def grid_by_numbagg(losses: xr.DataArray) -> Call:
    """Take the variance by folds along the points."""
    import numbagg

    rest_quietly()
    values, fold = losses.to_numpy(), losses["fold"].to_numpy()
    return partial(numbagg.group_nanvar, values, fold, axis=0, num_labels=logs.FOLDS)


def bootstrapped(losses: pd.Series, resamples: int) -> Call:
    """Resample the losses and take percentiles of the means."""
    return partial(
        stats.bootstrap, (losses.to_numpy(),), np.mean, n_resamples=resamples, batch=100,
        method="percentile",
    )  # fmt: skip


SERIES: dict[str, tuple[str, Maker, Sequence[str]]] = {
    "pandas groupby.agg": ("pandas", by_pandas, [WITHIN]),
    "polars group_by.agg": ("polars", by_polars, [WITHIN]),
    "flox var": ("flox", by_flox, [WITHIN]),
    "numbagg group_nanvar": ("numbagg", by_numbagg, [WITHIN]),
    "np.bincount, centred": ("numpy", by_bincount, [WITHIN]),
    "np.var": ("numpy", by_repetition, [ALL_PAIRS]),
}
FRAME: dict[str, tuple[str, Maker, Sequence[str]]] = {
    "pandas groupby.agg": ("pandas", by_pandas, [WITHIN]),
    "polars group_by.agg": ("polars", by_polars, [WITHIN]),
    "flox var": ("flox", by_flox, [WITHIN]),
    "numbagg group_nanvar": ("numbagg", by_numbagg, [WITHIN]),
    "np.var": ("numpy", of_columns, [ALL_PAIRS]),
    "numbagg nanvar": ("numbagg", of_columns_by_numbagg, [ALL_PAIRS]),
    "polars var": ("polars", of_columns_by_polars, [ALL_PAIRS]),
}
GRID: dict[str, tuple[str, Maker, Sequence[str]]] = {
    "xarray groupby.var": ("xarray", grid_by_xarray, [WITHIN]),
    "flox xarray_reduce": ("flox", grid_by_flox, [WITHIN]),
    "numbagg group_nanvar": ("numbagg", grid_by_numbagg, [WITHIN]),
    "np.var": ("numpy", of_columns, [ALL_PAIRS]),
    "numbagg nanvar": ("numbagg", of_columns_by_numbagg, [ALL_PAIRS]),
}
"""Peer: the library, the maker of its call, and the variance with the same work."""


def against(
    peers: dict[str, tuple[str, Maker, Sequence[str]]],
    log: Any,
    size: str,
    budget: float,
    calls: Sequence[str] = ("checked",),
) -> Iterator[Row]:
    """Yield a row for each peer, also for one that is not installed."""
    for peer, (library, maker, variances) in peers.items():
        theirs = maker(log) if find_spec(library) else None
        for variance, call in product(variances, calls):
            work = f"wald {variance}, {call}"
            if theirs is None:
                yield Row(work, size, peer, absent="not installed")
                continue
            prepare = partial(logs.unseen, log) if call == "first call" else lambda: log
            ours = partial(cvstats.wald, variance=variance)
            yield in_turns(theirs, ours, prepare=prepare, budget=budget).row(work, size, peer)


def peers(scale: Scale) -> Iterator[Row]:
    """Yield a row for each peer and kind of log."""
    budget, rows = scale.budget / 2, scale.rows[-1]
    both = "checked", "first call"
    yield from against(SERIES, logs.series(rows), f"{rows:,} rows", budget, both)
    size = "{:,} x {} models".format(*scale.frame)
    yield from against(FRAME, logs.frame(*scale.frame, order="C"), size, budget)
    size = "{:,} x {:,} cells, float64".format(*scale.grid)
    yield from against(GRID, logs.grid(*scale.grid, dtype="float64"), size, budget)
    points, resamples = scale.bootstrap
    losses = logs.series(points, 1)
    found = in_turns(
        bootstrapped(losses, resamples), cvstats.wald, prepare=partial(logs.unseen, losses),
        budget=budget,
    )  # fmt: skip
    name = f"scipy.stats.bootstrap, {resamples:,} resamples"
    yield found.row("wald all-pairs, first call", f"{points:,} rows", name)


# --- plain reads ----------------------------------------------------------------------------------
# A read is a sum with vector instructions. No interval of a log can take less time than a read of
# its losses; a first call also reads the codes of the levels.

THREADS = os.cpu_count() or 1


def as_words(array: np.ndarray) -> np.ndarray:
    """View an array as floats if it holds them, otherwise as 64-bit integers."""
    flat = array.ravel(order="K")
    if flat.dtype.kind == "f":
        return flat
    return flat[: len(flat) * flat.itemsize // 8 * 8 // flat.itemsize].view(np.int64)


def reads(pool: ThreadPoolExecutor, arrays: Sequence[np.ndarray]) -> dict[str, Call]:
    """Make the calls that read arrays: by one thread, and by all threads in equal parts."""
    parts = [part for array in arrays for part in np.array_split(array, THREADS)]
    return {
        "1 thread": lambda: [np.sum(array) for array in arrays],
        f"{THREADS} threads": lambda: list(pool.map(np.sum, parts)),
    }


def machine(scale: Scale) -> Iterator[Row]:
    """Yield the bandwidth of plain reads, and `wald` compared with reads of the same data."""
    budget, rows = scale.budget / 2, scale.rows[-1]
    with ThreadPoolExecutor(THREADS) as pool:
        for size in (rows // 10, rows):
            values = np.random.default_rng(0).standard_normal(size)
            for threads, call in reads(pool, [values]).items():
                call()
                taken = median(seconds(call) for _ in range(max(LEAST, int(10 * budget))))
                speed = values.nbytes / 1e9 / taken
                size_text = f"{values.nbytes / 1e6:g} MB"
                yield Row(f"plain read, {threads}", size_text, "", speed, unit="GB/s")
        series = partial(logs.series, rows)
        kinds: list[tuple[str, Callable[[], Any], str]] = [
            (f"{rows:,} rows", series, "checked"),
            (f"{rows:,} rows", series, "first call"),
            ("{:,} x {} models".format(*scale.frame),
             partial(logs.frame, *scale.frame, order="C"), "checked"),
            *(("{:,} x {:,} cells, ".format(*scale.grid) + dtype,
               partial(logs.grid, *scale.grid, dtype=dtype), "checked")
              for dtype in ("float64", "float32")),
        ]  # fmt: skip
        for size, make, call in kinds:
            log = make()
            arrays, what = [as_words(log.to_numpy())], "losses"
            prepare = lambda log=log: log  # noqa: E731
            if call == "first call":
                arrays += [as_words(np.asarray(codes)) for codes in log.index.codes]
                what, prepare = "losses and codes", partial(logs.unseen, log)
            ours = partial(cvstats.wald, variance=WITHIN)
            for threads, theirs in reads(pool, arrays).items():
                found = in_turns(theirs, ours, prepare=prepare, budget=budget)
                yield found.row(f"wald {WITHIN}, {call}", size, f"read of {what}, {threads}")
