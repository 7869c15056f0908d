"""The documented bounds on speed and memory, each compared with a peer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs
from benchmarks.logs import FULL, Scale
from benchmarks.measure import Pairs, Row, in_new_process, in_turns, memory_beyond, run_python

VARIANCES = ("all-pairs", "within-fold")
OVERHEAD = 1e-3
"""Seconds that a call may take beyond the arithmetic."""
CELLS = 5 * 10**6, 500, 120
"""Rows, repetitions and folds of a log of many cells."""

IMPORT = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
LOADED = """
import sys
import cvstats
print(*{"dask", "matplotlib", "sklearn", "scipy.stats"}.intersection(sys.modules))
"""
FIRST = """
import time
import cvstats
from benchmarks import logs
losses = logs.series({})
start = time.perf_counter()
cvstats.wald(losses, variance={!r})
print(time.perf_counter() - start)
"""


# --- calls in this process ------------------------------------------------------------------------


def calls(scale: Scale) -> Iterator[Row]:
    """Yield a row for each call that has a bound, and for smaller logs of the same kind."""
    for rows in scale.rows:
        yield from one_model(rows, scale.budget if rows == scale.rows[-1] else 0.0)
    yield from one_model(100, min(scale.budget, 0.2))
    yield from overhead(min(scale.budget, 0.5))
    yield from many_models(scale)
    yield from all_pairs(scale)
    yield from gridded(scale)
    yield from in_time(scale)
    yield from groups(scale)
    yield from of_metrics(scale)
    yield from growth_of_ranks(scale)


def by_fold(losses: pd.Series) -> pd.DataFrame:
    """Compute the moments of each fold, as pandas does."""
    return losses.groupby(level=["repetition", "fold"]).agg(["count", "mean", "var"])


def usual(losses: pd.Series) -> tuple[float, float]:
    """Compute the naive interval as usual in pandas."""
    mean, reach = losses.mean(), 1.96 * losses.sem()
    return mean - reach, mean + reach


def one_model(rows: int, budget: float) -> Iterator[Row]:
    """Compare `wald` on a Series with numpy and pandas; a tiny log has one repetition."""
    losses = logs.series(rows, 10 if rows >= 1_000 else 1)
    is_bounded = rows == FULL.rows[-1]
    peers: dict[str, tuple[Callable[[], Any], float | None, float | None]] = {
        "np.sum": (partial(np.sum, losses.to_numpy()), 2.0, 6.0),
        "groupby.agg": (partial(by_fold, losses), 1 / 30, None),
        "mean, sem": (partial(usual, losses), None, None),
    }
    for variance in VARIANCES:
        ours = partial(cvstats.wald, variance=variance)
        for peer, (theirs, checked, first) in peers.items():
            for call, prepare, bound in (
                ("checked", lambda: losses, checked),
                ("first call", lambda: logs.unseen(losses), first),
            ):
                found = in_turns(theirs, ours, prepare=prepare, budget=budget)
                bound = bound if is_bounded else None
                yield found.row(f"wald {variance}, {call}", f"{rows:,} rows", peer, bound)


def by_hand(values: np.ndarray, fold: np.ndarray, variance: str) -> np.ndarray:
    """Compute the interval of `wald` from bare arrays: one partition, points along axis 0."""
    mean = values.mean(axis=0)
    if variance == "all-pairs":
        square = values.var(axis=0)
    else:
        parts = [values[fold == k] for k in range(logs.FOLDS)]
        square = sum(len(part) * part.var(axis=0, ddof=1) for part in parts) / len(values)
    reach = 1.959963984540054 * np.sqrt(square / len(values))
    return np.array([mean, mean - reach, mean + reach])


def overhead(budget: float, points: int = 100, models: int = 3) -> Iterator[Row]:
    """Compare one call on a tiny log with the same formula on bare arrays: the difference."""
    containers: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "Series": (logs.series(points, 1), logs.unseen),
        "DataFrame": (logs.frame(points, models, order="F"), logs.unseen),
        "DataArray": (logs.grid(points, models, dtype="float64"), lambda log: log.copy()),
    }
    for kind, (losses, anew) in containers.items():
        values, fold = losses.to_numpy(), logs.folds(losses)
        for variance in VARIANCES:
            theirs = partial(by_hand, values, fold, variance)
            ours = partial(cvstats.wald, variance=variance)
            for call, prepare in (
                ("checked", lambda losses=losses: losses),
                ("first call", lambda losses=losses, anew=anew: anew(losses)),
            ):
                found = in_turns(theirs, ours, prepare=prepare, budget=budget)
                pairs = zip(found.ours, found.theirs, strict=True)
                yield Row(
                    f"beyond the arithmetic: wald {variance}, {call}", f"{kind} of {len(losses)}",
                    "same formula in numpy", median(mine - other for mine, other in pairs),
                    median(found.theirs), bound=OVERHEAD, absolute=True,
                )  # fmt: skip


def many_models(scale: Scale) -> Iterator[Row]:
    """Compare `wald` on a frame with the sum of its block, for both layouts of memory."""
    points, models = scale.frame
    for order, lie in (("C", "rows"), ("F", "columns")):
        losses = logs.frame(points, models, order=order)
        for variance in VARIANCES:
            found = in_turns(
                partial(np.sum, losses.to_numpy()), partial(cvstats.wald, variance=variance),
                prepare=lambda losses=losses: losses, budget=scale.budget,
            )  # fmt: skip
            bound = 2.0 if scale.frame == FULL.frame else None
            work, log = f"wald {variance}, {lie} contiguous", f"{points:,} x {models} models"
            yield found.row(work, log, "np.sum", bound)


COMPARISONS: dict[str, tuple[Callable[[pd.DataFrame], Any], float]] = {
    "compare, {:,} pairs": (cvstats.compare, 2.0),
    "compare, max-t, {:,} pairs": (partial(cvstats.compare, adjust="max-t", rng=0), 4.0),
    "best_set": (partial(cvstats.best_set, rng=0), 4.0),
}


def all_pairs(scale: Scale) -> Iterator[Row]:
    """Compare functions of all pairs of models with one matrix product."""
    points, models = scale.pairs
    losses = logs.frame(points, models, order="C")
    values = losses.to_numpy()
    for work, (ours, bound) in COMPARISONS.items():
        found = in_turns(
            lambda: values.T @ values, ours, prepare=lambda: losses, budget=scale.budget
        )  # fmt: skip
        yield found.row(
            work.format(models * (models - 1) // 2), f"{points:,} x {models} models", "X.T @ X",
            bound if scale.pairs == FULL.pairs else None,
        )  # fmt: skip


def gridded(scale: Scale) -> Iterator[Row]:
    """Compare `wald` on a grid with the mean of xarray."""
    points, cells = scale.grid
    for dtype in ("float64", "float32"):
        losses = logs.grid(points, cells, dtype=dtype)
        for variance in VARIANCES:
            found = in_turns(
                partial(losses.mean, "point"), partial(cvstats.wald, variance=variance),
                prepare=lambda losses=losses: losses, budget=scale.budget,
            )  # fmt: skip
            yield found.row(
                f"wald {variance}, {dtype}", f"{points:,} x {cells:,} cells", 'mean("point")',
                3.0 if scale.grid == FULL.grid else None,
            )  # fmt: skip


def in_time(scale: Scale) -> Iterator[Row]:
    """Compare `ordered` on a grid of series with one Fourier transform of each."""
    times, cells = scale.grid
    for dtype in ("float64", "float32"):
        losses = logs.grid(times, cells, dtype=dtype).drop_vars("fold")
        found = in_turns(
            partial(np.fft.rfft, losses.to_numpy(), axis=0), cvstats.ordered,
            prepare=lambda losses=losses: losses, budget=scale.budget,
        )  # fmt: skip
        yield found.row(
            f"ordered, {dtype}", f"{times:,} times x {cells:,} cells", "np.fft.rfft",
            3.0 if scale.grid == FULL.grid else None,
        )  # fmt: skip


OF_GROUPS: dict[str, Callable[[Any], Any]] = {
    "clustered": cvstats.clustered,
    "out_of_source": cvstats.out_of_source,
    "heterogeneity": cvstats.heterogeneity,
    "wald(by='source')": partial(cvstats.wald, by="source"),
}


def groups(scale: Scale) -> Iterator[Row]:
    """Compare the intervals of many sources with a sum, and with moments by source in pandas."""
    rows, sources = scale.sources
    losses = logs.grouped(rows, sources)
    peers: dict[str, tuple[Callable[[], Any], float]] = {
        "np.sum": (partial(np.sum, losses.to_numpy()), 6.0),
        "groupby.agg": (
            lambda: losses.groupby(level="source").agg(["count", "mean", "var"]), 1 / 10,
        ),
    }  # fmt: skip
    for work, ours in OF_GROUPS.items():
        for peer, (theirs, bound) in peers.items():
            for call, prepare in (
                ("checked", lambda: losses),
                ("first call", lambda: logs.unseen(losses)),
            ):
                found = in_turns(theirs, ours, prepare=prepare, budget=scale.budget)
                promised = call == "checked" and work in ("clustered", "wald(by='source')")
                yield found.row(
                    f"{work}, {call}", f"{rows:,} rows, {sources:,} sources", peer,
                    bound if promised and scale is FULL else None,
                )  # fmt: skip


METRICS: dict[str, tuple[str, str]] = {
    "auc": ("score", "roc_auc_score"),
    "f1": ("label", "f1_score"),
    "rmse": ("score", "root_mean_squared_error"),
}
"""Metrics, the kind of prediction each one reads, and the function in scikit-learn."""


def of_metrics(scale: Scale) -> Iterator[Row]:
    """Compare metrics of two models in ten folds, with their intervals, with scikit-learn's."""
    rows = scale.rows[-1]
    predictions = logs.predictions(rows)
    folds = np.array_split(np.arange(rows), logs.FOLDS)
    parts = [slice(fold[0], fold[-1] + 1) for fold in folds]
    functions = vars(import_module("sklearn.metrics"))

    def alone(metric: str) -> list[float]:
        kind, name = METRICS[metric]
        truth = predictions["y_true"].to_numpy()
        both = [predictions[f"{kind}_{model}"].to_numpy() for model in "ab"]
        return [functions[name](truth[part], guess[part]) for guess in both for part in parts]

    def ours(log: pd.DataFrame, metric: str) -> pd.DataFrame:
        columns = [f"{METRICS[metric][0]}_{model}" for model in "ab"]
        made = cvstats.losses(log, prediction=columns, loss=metric, folds="average")
        return cvstats.wald(made)

    for metric in METRICS:
        found = in_turns(
            partial(alone, metric), partial(ours, metric=metric), prepare=lambda: predictions,
            budget=scale.budget,
        )  # fmt: skip
        bound = 1.5 if scale is FULL else None
        work = f"{metric} of two models and its interval"
        yield found.row(work, f"{rows:,} predictions", "the metric in scikit-learn", bound)


RANKED = ("auc", "average_precision", "spearman", "kendall", "concordance")
"""Metrics that compare each point with all others."""
TENFOLD = 30.0
"""Maximum ratio of times for ten times the points: n log n and caches need 20, n^2 needs 100."""


def growth_of_ranks(scale: Scale) -> Iterator[Row]:
    """Compare metrics of pairs of points on a log with those on a tenth of it."""
    rows = scale.rows[-1] // 10
    whole = logs.predictions(rows)[["y_true", "score_a"]].droplevel("fold")
    part = whole.iloc[: rows // 10]

    def ours(log: pd.DataFrame, metric: str) -> pd.DataFrame:
        return cvstats.losses(log, prediction=["score_a"], loss=metric, folds="pool")

    for metric in RANKED:
        found = in_turns(
            partial(ours, part, metric), partial(ours, metric=metric), prepare=lambda: whole,
            budget=scale.budget,
        )  # fmt: skip
        bound = TENFOLD if scale is FULL else None
        yield found.row(f"pseudo-losses of {metric}", f"{rows:,} points", "a tenth of it", bound)


# --- in new processes -----------------------------------------------------------------------------


def processes(scale: Scale) -> Iterator[Row]:
    """Yield imports, first intervals and memory, each in a process of its own."""
    needs = "pandas, xarray, numba, scipy.special"
    theirs, ours = alternate([IMPORT.format(needs), IMPORT.format("cvstats")], scale.processes)
    yield Pairs(theirs, ours).row("import cvstats", "", needs, 1.1)
    loaded = run_python(LOADED).split()
    yield Row(
        f"libraries it loads needlessly: {', '.join(loaded) or 'none'}", "", "", len(loaded),
        bound=0, unit="of 4", absolute=True,
    )  # fmt: skip
    scripts = [FIRST.format(10_000, variance) for variance in VARIANCES]
    for variance, times in zip(VARIANCES, alternate(scripts, scale.processes), strict=True):
        work = f"wald {variance}, first in a process"
        yield Row(work, "10,000 rows", "", median(times), bound=0.3, absolute=True)
    with TemporaryDirectory() as empty:
        compiling = run_python(FIRST.format(100_000, "all-pairs"), NUMBA_CACHE_DIR=empty)
    yield Row("wald all-pairs, first ever, kernels compiled", "100,000 rows", "", float(compiling))
    kinds: list[tuple[str, tuple[int, ...]]] = [("series", (rows,)) for rows in scale.rows]
    if scale.processes > 1:
        kinds += [("cells", CELLS), ("frame", scale.frame), ("grid", scale.grid)]
    for kind, sizes in kinds if sys.platform != "win32" else ():
        found = in_new_process("contract", f"memory({kind!r}, *{sizes})")
        for work, megabytes in found.items():
            yield Row(
                f"memory of the first call, {work}", MEMORY[kind][2].format(*sizes), "", megabytes,
                bound=64.0, unit="MB", absolute=True,
            )  # fmt: skip


def alternate(scripts: list[str], turns: int) -> list[list[float]]:
    """Run scripts in turns and collect the seconds they print.

    With more than one turn, a first one that fills the caches is not counted.
    """
    found: list[list[float]] = [[] for _ in scripts]
    for turn in range(0 if turns == 1 else -1, turns):
        for times, script in zip(found, scripts, strict=True):
            measured = float(run_python(script))
            times += [measured] if turn >= 0 else []
    return found


MEMORY: dict[str, tuple[Callable[..., Any], tuple[int, ...], str]] = {
    "series": (logs.series, (400_000,), "{:,} rows"),
    "cells": (logs.crowded, (400_000, 500, 120), "{:,} rows, {} x {} folds"),
    "frame": (partial(logs.frame, order="C"), (40_000, 20), "{:,} x {} models"),
    "grid": (partial(logs.grid, dtype="float32"), (1_000, 1_000), "{:,} x {:,} cells, float32"),
}
"""A function that makes a log, sizes of a log that loads the same kernels, and a description."""


def memory(kind: str, *sizes: int) -> dict[str, float]:
    """Measure the memory of a first call beyond the log, within folds, which needs the most."""
    make, warm, _ = MEMORY[kind]
    call = partial(cvstats.wald, variance="within-fold")
    call(make(*map(min, sizes, warm)))
    losses = make(*sizes)
    return memory_beyond(losses, lambda: losses if kind == "grid" else logs.unseen(losses), call)
