"""What is measured in this process: each case against each of its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

import cvstats
from benchmarks import logs
from benchmarks.table import Row
from benchmarks.timing import in_turns

VARIANCES = ("all-pairs", "within-fold")
CHECKED, FIRST, SPEED_UP = 2.0, 6.0, 1 / 30
"""Bounds for a log whose index is checked, for the first call, and against groupby."""

ROWS, FRAME, PAIRS, GRID = 10**7, (10**5, 100), (10**5, 200), (1_000, 10**5)
"""The sizes that the bounds are meant for."""


def row(
    work: str,
    log: str,
    peer: str,
    theirs: Callable[[], Any],
    ours: Callable[[Any], Any],
    *,
    argument: Any = None,
    prepare: Callable[[], Any] | None = None,
    bound: float | None = None,
    budget: float,
) -> Row:
    """Measure one case against one peer."""
    found = in_turns(theirs, ours, prepare=prepare or (lambda: argument), budget=budget)
    return Row(
        work,
        log,
        peer,
        ours=median(found.ours),
        theirs=median(found.theirs),
        ratio=found.ratio,
        bound=bound,
    )


def by_fold(losses: pd.Series) -> pd.DataFrame:
    """Tell the moments of each fold, as pandas does."""
    return losses.groupby(level=["repetition", "fold"]).agg(["count", "mean", "var"])


def usual(losses: pd.Series) -> tuple[float, float]:
    """Tell the naive interval, as one writes it with pandas."""
    mean, reach = losses.mean(), 1.96 * losses.sem()
    return mean - reach, mean + reach


def one_model(rows: int, budget: float) -> Iterator[Row]:
    """Compare `wald` on a Series with numpy and pandas; a tiny log has one repetition."""
    losses = logs.series(rows, 10 if rows >= 1_000 else 1)
    values = losses.to_numpy()
    peers: dict[str, tuple[Callable[[], Any], float | None, float | None]] = {
        "np.sum": (lambda: np.sum(values), CHECKED, FIRST),
        "groupby.agg": (lambda: by_fold(losses), SPEED_UP, None),
        "mean, sem": (lambda: usual(losses), None, None),
    }
    for variance in VARIANCES:
        ours = partial(cvstats.wald, variance=variance)
        for peer, (theirs, checked, first) in peers.items():
            yield row(
                f"wald {variance}, checked", f"{rows:,} rows", peer, theirs, ours,
                argument=losses, bound=checked if rows == ROWS else None, budget=budget,
            )  # fmt: skip
            yield row(
                f"wald {variance}, first call", f"{rows:,} rows", peer, theirs, ours,
                prepare=lambda: logs.unseen(losses), bound=first if rows == ROWS else None,
                budget=budget,
            )  # fmt: skip


def many_models(points: int, models: int, budget: float) -> Iterator[Row]:
    """Compare `wald` on a frame with the sum of its block, for both layouts of memory."""
    bound = CHECKED if (points, models) == FRAME else None
    for order, lie in (("C", "rows"), ("F", "columns")):
        losses = logs.frame(points, models, order=order)
        values = losses.to_numpy()
        for variance in VARIANCES:
            yield row(
                f"wald {variance}, {lie} contiguous", f"{points:,} x {models} models", "np.sum",
                partial(np.sum, values), partial(cvstats.wald, variance=variance),
                argument=losses, bound=bound, budget=budget,
            )  # fmt: skip


def all_pairs(points: int, models: int, budget: float) -> Iterator[Row]:
    """Compare `compare` over all pairs with one product of matrices."""
    losses = logs.frame(points, models, order="C")
    values = losses.to_numpy()
    yield row(
        f"compare, {models * (models - 1) // 2:,} pairs", f"{points:,} x {models} models",
        "X.T @ X", lambda: values.T @ values, cvstats.compare,
        argument=losses, bound=2.0 if (points, models) == PAIRS else None, budget=budget,
    )  # fmt: skip


def gridded(points: int, cells: int, budget: float) -> Iterator[Row]:
    """Compare `wald` on a grid with the mean that xarray takes."""
    bound = 3.0 if (points, cells) == GRID else None
    for dtype in ("float64", "float32"):
        losses = logs.grid(points, cells, dtype=dtype)
        for variance in VARIANCES:
            yield row(
                f"wald {variance}, {dtype}", f"{points:,} x {cells:,} cells", 'mean("point")',
                partial(losses.mean, "point"), partial(cvstats.wald, variance=variance),
                argument=losses, bound=bound, budget=budget,
            )  # fmt: skip
