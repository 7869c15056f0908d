"""Logs of any size, made without copies, so that memory can be measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

FOLDS = 10


@dataclass(frozen=True)
class Scale:
    """The sizes of logs, the time budget of pairs of calls, and the number of processes."""

    rows: tuple[int, ...]
    frame: tuple[int, int]
    pairs: tuple[int, int]
    grid: tuple[int, int]
    sources: tuple[int, int]
    bootstrap: tuple[int, int]
    budget: float
    processes: int


FULL = Scale(
    (10**5, 10**6, 10**7), (10**5, 100), (10**5, 200), (1_000, 10**5), (10**7, 5_000),
    (10_000, 9_999), 2.0, 9,
)  # fmt: skip
"""The sizes to which the bounds apply."""
SCALES = {
    "full": FULL,
    "quick": Scale(
        (10**5, 10**6), (10**4, 100), (10**4, 50), (1_000, 10**4), (10**6, 1_000), (10_000, 999),
        0.5, 3,
    ),
    "tiny": Scale((1_000,), (100, 20), (100, 5), (20, 30), (1_000, 5), (200, 99), 0.0, 1),
}  # fmt: skip
"""The smallest scale only checks that everything runs."""


def index(points: int, repetitions: int) -> pd.MultiIndex:
    """Index the repetitions of a random partition of some points into ten folds."""
    rng = np.random.default_rng(1)
    rows = points * repetitions
    repetition, fold = np.empty(rows, np.int8), np.empty(rows, np.int8)
    point = np.empty(rows, np.int32 if points > 32_767 else np.int16)
    for r in range(repetitions):
        here = slice(r * points, (r + 1) * points)
        repetition[here] = r
        point[here] = np.arange(points, dtype=point.dtype)
        fold[here] = point[here] % FOLDS
        rng.shuffle(fold[here])
    return pd.MultiIndex(
        levels=[range(repetitions), range(FOLDS), range(points)],
        codes=[repetition, fold, point],
        names=["repetition", "fold", "point"],
        verify_integrity=False,
    )


def series(rows: int, repetitions: int = 10) -> pd.Series:
    """Repetitions of ten random folds; losses of one model."""
    values = np.empty(rows)
    np.random.default_rng(2).standard_normal(out=values)
    return pd.Series(
        values, index=index(rows // repetitions, repetitions), name="model", copy=False
    )


def crowded(rows: int, repetitions: int, folds: int) -> pd.Series:
    """Repetitions of many random folds, each of which is a cell."""
    rng = np.random.default_rng(6)
    points = rows // repetitions
    kind = np.int32 if points > 32_767 else np.int16
    fold = np.tile(np.arange(points) % folds, (repetitions, 1)).astype(np.int16)
    index = pd.MultiIndex(
        levels=[range(repetitions), range(folds), range(points)],
        codes=[
            np.repeat(np.arange(repetitions, dtype=np.int16), points),
            rng.permuted(fold, axis=1, out=fold).reshape(-1),
            np.tile(np.arange(points, dtype=kind), repetitions),
        ],
        names=["repetition", "fold", "point"],
        verify_integrity=False,
    )
    values = rng.standard_normal(points * repetitions)
    return pd.Series(values, index=index, name="model", copy=False)


def frame(points: int, models: int, *, order: str) -> pd.DataFrame:
    """One partition with one column per model; rows (C) or columns (F) are contiguous."""
    values = np.empty((points, models) if order == "C" else (models, points))
    np.random.default_rng(3).standard_normal(out=values)
    table = values if order == "C" else values.T
    names = [f"model {j}" for j in range(models)]
    return pd.DataFrame(table, index=index(points, 1), columns=names, copy=False)


def grid(points: int, cells: int, *, dtype: str) -> xr.DataArray:
    """A loss for each point and grid cell, with the fold as a coordinate along the points."""
    values = np.empty((points, cells), dtype=dtype)
    np.random.default_rng(4).standard_normal(out=values, dtype=np.dtype(dtype))
    folds = np.random.default_rng(5).permutation(np.arange(points) % FOLDS)
    coords = {"point": np.arange(points), "fold": ("point", folds)}
    return xr.DataArray(values, dims=("point", "cell"), coords=coords, name="loss")


def lazy(points: int, sources: int = 0) -> xr.DataArray:
    """Losses of three models in eight chunks, with a fold or a source for each point."""
    rng = np.random.default_rng(7)
    level, labels = ("source", sources) if sources else ("fold", FOLDS)
    coords = {
        "point": np.arange(points), "model": list("abc"),
        level: ("point", rng.permutation(np.arange(points) % labels)),
    }  # fmt: skip
    log = xr.DataArray(rng.standard_normal((points, 3)), coords, ("point", "model"), name="loss")
    return log.chunk(point=-(-points // 8))


def folds(log: pd.Series | pd.DataFrame | xr.DataArray) -> np.ndarray:
    """Return the fold of each evaluation, as integers from 0."""
    if isinstance(log, xr.DataArray):
        return log["fold"].to_numpy()
    return np.asarray(log.index.codes[log.index.names.index("fold")])


def unseen(log: pd.Series | pd.DataFrame) -> pd.Series | pd.DataFrame:
    """Give the same log a new index, without a cache."""
    known = log.index
    fresh = pd.MultiIndex(
        levels=known.levels,
        codes=[np.array(codes) for codes in known.codes],
        names=known.names,
        verify_integrity=False,
    )
    return log.set_axis(fresh, axis=0)


def grouped(rows: int, sources: int) -> pd.Series:
    """Points of sources whose sizes differ by factors, in random order."""
    rng = np.random.default_rng(1)
    share = rng.lognormal(size=sources)
    starts = np.sort(rng.permutation(rows)[: sources * 4])  # four points at least for each
    source = rng.choice(sources, size=rows, p=share / share.sum()).astype(np.int16)
    source[starts] = np.tile(np.arange(sources, dtype=np.int16), 4)
    index = pd.MultiIndex(
        levels=[range(sources), range(rows)], codes=[source, np.arange(rows, dtype=np.int32)],
        names=["source", "point"], verify_integrity=False,
    )  # fmt: skip
    return pd.Series(rng.standard_normal(rows), index=index, name="model", copy=False)


def predictions(points: int) -> pd.DataFrame:
    """Predictions of two models for two classes, in ten folds one after the other."""
    rng = np.random.default_rng(3)
    fold = np.repeat(np.arange(FOLDS, dtype=np.int8), -(-points // FOLDS))[:points]
    index = pd.MultiIndex(
        levels=[range(FOLDS), range(points)], codes=[fold, np.arange(points)],
        names=["fold", "point"], verify_integrity=False,
    )  # fmt: skip
    truth = rng.integers(0, 2, points)
    columns = {"y_true": truth}
    for model in "ab":
        columns[f"score_{model}"] = truth + rng.standard_normal(points)
        columns[f"label_{model}"] = (columns[f"score_{model}"] > 0.5).astype(np.int64)
    return pd.DataFrame(columns, index=index)
