"""dask DataFrames: the same methods on rows that are still to be computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, listed
from cvstats.large.lazy import SPLIT_EVERY, import_dask
from cvstats.large.moments import Moments
from cvstats.large.scanning import added, check_stacked, columns_of, part_of, whole_of

NUMBERS = (
    "Expected columns named as the levels (repetition, fold, source, point) and a column of "
    "numbers for each model. Name others by cvstats.as_log(frame, loss='squared_error', "
    "fold='cv_split')."
)


def tabular(losses: Any) -> tuple[Any, bool]:
    """Make a frame whose levels are all columns; also report whether it was a Series."""
    single = losses.ndim == 1
    frame = losses.to_frame(name=losses.name or "loss") if single else losses
    index = frame.index.name
    if index in LEVELS and index not in frame.columns:
        frame = frame.reset_index()
    return frame, single


def models_of(frame: Any, levels: Sequence[str]) -> list[str]:
    """Name the columns of losses: those of numbers that are not levels."""
    return [
        str(name)
        for name, dtype in frame.dtypes.items()
        if name not in levels and name not in LEVELS and pd.api.types.is_numeric_dtype(dtype)
    ]


def scan_dask(
    frame: Any,
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    *,
    model: str | None,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
) -> Any:
    """Make delayed moments of a dask frame: of each partition, and a tree of sums."""
    delayed = import_dask().delayed
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise LogError(
            f"a {type(frame).__name__} is not a dask DataFrame. Expected one, as of "
            f"dask.dataframe.read_parquet; cvstats.Moments.of_log takes pandas and xarray."
        )
    columns = columns_of([*map(str, frame.columns)], loss, asked, by, model)
    check_stacked(columns, pairs, missing)
    work, add = delayed(part_of, pure=True), delayed(added, pure=True)
    parts = [
        work(part, columns, by, pairs, missing, {}) for part in frame[columns.names].to_delayed()
    ]
    while len(parts) > 1:
        parts = [add(parts[at : at + SPLIT_EVERY]) for at in range(0, len(parts), SPLIT_EVERY)]
    return delayed(whole_of, pure=True)(parts[0])


def later(
    losses: Any,
    ask: Callable[[Moments], Any],
    *,
    other: object = None,
    levels: Sequence[str | None] = (),
    pairs: bool = False,
    missing: str = "raise",
) -> Any:
    """Ask the moments of a frame of dask, once they are there.

    ``levels`` are columns that the question needs besides the levels of a log. Questions that
    need the same cells share the tasks that look at losses.
    """
    if other is not None:
        raise LogError(
            "two frames of dask cannot be paired: their partitions need not hold the same rows. "
            "Expected one frame with a column for each model. Join them before, as in "
            "a.merge(b, on=['repetition', 'fold', 'point'])."
        )
    frame, single = tabular(losses)
    if not set(LEVELS) & set(frame.columns) and not any(levels):
        raise LogError(
            f"no level of a loss log was found among the columns "
            f"{listed(map(repr, frame.columns))}. Expected some of {', '.join(LEVELS)}. Name the "
            f"columns first: frame = cvstats.as_log(frame, loss='squared_error', fold='cv_split'), "
            f"or cvstats.scan_dask(frame, loss='squared_error', fold='cv_split')."
        )
    own = [name for name in LEVELS if name in frame.columns and name not in ("point", "count")]
    more = [name for name in levels if name is not None and name not in own]
    for name in more:
        if name not in frame.columns:
            raise LogError(
                f"the frame has no column {name!r}. Expected some of its columns: "
                f"{listed(map(repr, frame.columns))}."
            )
    if "count" in frame.columns:
        raise LogError(
            "this is a bootstrap log (column 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources. Load it first: frame.compute()."
        )
    found = models_of(frame, more)
    stacked = "model" in frame.columns and "model" not in found
    if not found or (stacked and len(found) > 1):
        which = listed(map(repr, found)) or "none"
        raise LogError(
            f"of the columns {listed(map(repr, frame.columns))} these hold numbers: {which}. "
            + ("With a column 'model', expected one of losses. " if stacked else "") + NUMBERS
        )  # fmt: skip
    kept = scan_dask(
        frame, found[0] if single or stacked else found, dict.fromkeys(LEVELS),
        model="model" if stacked else None, by=(*own, *more) if more else None, pairs=pairs,
        missing=missing,
    )  # fmt: skip
    return import_dask().delayed(ask, pure=True)(kept)


def relabelled(
    frame: Any,
    loss: str | Sequence[str],
    model: str | None,
    asked: Mapping[str, str | None],
) -> Any:
    """Name the columns of a frame as the levels are, and leave out what is not part of the log."""
    frame, _ = tabular(frame)
    columns = columns_of([*map(str, frame.columns)], loss, asked, None, model)
    names = {column: level for level, column in columns.levels.items()}
    if columns.model is not None:
        names[columns.model] = "model"
    return frame[columns.names].rename(columns=names)


def mapped(
    predictions: Any,
    ask: Callable[[pd.DataFrame], Any],
    needed: Sequence[Hashable],
    models: Sequence[str],
) -> Any:
    """Turn the predictions in each partition into a column of losses for each model."""
    frame, _ = tabular(predictions)
    kept = [name for name in frame.columns if name in LEVELS and name not in needed]
    types = frame.dtypes[kept].to_dict() | dict.fromkeys(models, np.dtype(np.float64))
    meta = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})
    return frame.map_partitions(with_levels, ask, kept, models, meta=meta)


def with_levels(
    part: pd.DataFrame, ask: Callable[[pd.DataFrame], Any], kept: list[str], models: list[str]
) -> pd.DataFrame:
    """Put the losses of some rows beside the levels of these rows."""
    found = ask(part)
    table = found.to_frame() if isinstance(found, pd.Series) else found
    levels = part[kept].copy()  # row by row: labels of an index may stand there twice
    for name, column in zip(models, table.columns, strict=True):
        levels[name] = table[column].to_numpy(dtype=np.float64)
    return levels


def describe(losses: Any) -> str:
    """Say in one line what was understood of a frame, of which nothing was looked at."""
    frame, _ = tabular(losses)
    levels = [name for name in LEVELS if name in frame.columns]
    models = models_of(frame, levels)
    return (
        f"a frame of dask in {frame.npartitions:,} partitions, by "
        f"{', '.join(map(repr, levels)) or 'no level'}; {len(models):,} "
        f"model{'' if len(models) == 1 else 's'}"
    )
