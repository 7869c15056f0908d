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

OVERHEAD = 1e-3
"""Seconds that a call may take beyond the arithmetic."""

CELLS = 5 * 10**6, 500, 120
"""Rows, repetitions and folds of a log of many cells."""

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
        spread=found.spread,
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


def tiny(points: int = 100, models: int = 3) -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Make small logs of each container, and what makes one anew that was never met."""
    return {
        "Series": (logs.series(points, 1), logs.unseen),
        "DataFrame": (logs.frame(points, models, order="F"), logs.unseen),
        "DataArray": (logs.grid(points, models, dtype="float64"), lambda log: log.copy()),
    }


def overhead(budget: float) -> Iterator[Row]:
    """Tell what one call on a tiny log costs beyond the same formula on bare arrays."""
    for kind, (losses, anew) in tiny().items():
        values, fold = losses.to_numpy(), logs.folds(losses)
        for variance in VARIANCES:
            theirs = partial(by_hand, values, fold, variance)
            ours = partial(cvstats.wald, variance=variance)
            for call, prepare in (
                ("checked", lambda losses=losses: losses),
                ("first call", lambda losses=losses, anew=anew: anew(losses)),
            ):
                found = in_turns(theirs, ours, prepare=prepare, budget=budget)
                yield Row(
                    f"beyond the arithmetic: wald {variance}, {call}",
                    f"{kind} of {len(losses)}", "same formula in numpy", found.beyond,
                    median(found.theirs), bound=OVERHEAD, absolute=True,
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
