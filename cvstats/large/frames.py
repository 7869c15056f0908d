"""Tables that do not fit into memory: moments of batches of rows, and dask DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.design import LEVELS, Design, Level
from cvstats.core.loss_columns import LossColumns
from cvstats.errors import LogError, describe_type, listed
from cvstats.large.lazy import SPLIT_EVERY, import_dask
from cvstats.large.moments import Moments, concat_models
from cvstats.log.groups import METRIC
from cvstats.log.log import Log
from cvstats.log.pandas import FrameLabels, numbers
from cvstats.log.read import read_container
from cvstats.log.tables import (
    TRUTHS,
    TableColumns,
    find_columns,
    no_levels,
    not_losses,
    sounding_like,
)

NUMBERS = (
    "Expected columns named as the levels (repetition, fold, source, point) and a column of "
    "numbers for each model. Name others by cvstats.as_log(frame, loss='squared_error', "
    "fold='cv_split')."
)

Parts = dict[Hashable, Moments]
"""Moments of some rows, by model if models are stacked, otherwise under None."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table as a log: levels as codes, losses by column, and attrs."""

    levels: Mapping[str, Level]
    losses: Mapping[Any, Any]
    single: bool
    attrs: Mapping[Hashable, Any] = field(default_factory=dict)
    cautions: Caution = Caution(0)


@read_container.register
def _(losses: Batch, also: object = None) -> Log:
    """Read a batch, without sorting or making an index."""
    names = list(losses.losses)
    size = len(losses.losses[names[0]])
    axis = None if losses.single else pd.Index(names, tupleize_cols=False)
    columns = LossColumns(tuple(column[:, None] for column in losses.losses.values()))
    design, labels = Design(losses.levels, size), FrameLabels([*names], axis)
    return Log(design, columns, labels, cautions=losses.cautions)


def columns_of(
    known: Sequence[str],
    loss: str | Sequence[str],
    named: Mapping[str, str | None],
    by: str | Sequence[str] | None,
    model: str | None = None,
    truth: str | None = None,
) -> TableColumns:
    """Find losses and levels among the columns of a table, including those of ``by``.

    With ``truth``, its column comes first, and ``loss`` lists columns of predictions.

    Raises
    ------
    LogError
        If a column is missing or used twice, or no level is found.
    """
    single = isinstance(loss, str)
    losses = [loss] if isinstance(loss, str) else list(loss)
    if not losses:
        raise LogError("loss= is empty. Expected a column of losses.")
    more = () if by is None else (by,) if isinstance(by, str) else by
    taken = (*losses, *named.values(), model, *more)
    more = (*more, METRIC) if METRIC in known and METRIC not in taken else more
    named = {"count": None, **named, **{name: name for name in more if named.get(name) is None}}
    values = losses if truth is None else [truth, *losses]
    columns = find_columns(known, values, named, model, single=single)
    if not columns.levels:
        raise no_levels(known, "fold='cv_split'")
    used = list(columns.levels.values())
    twice = [name for name in used if used.count(name) > 1]
    if twice:
        raise LogError(f"the column {twice[0]!r} is named twice. Expected a column for each level.")
    return replace(columns, unused=tuple(sounding_like(known, columns.names, columns.levels)))


# --- codes of a column ----------------------------------------------------------------------------


def level_of(column: Any) -> Level:
    """Factorize a column; integers in a narrow range are used as codes."""
    values = getattr(column, "array", column)
    if isinstance(values, pd.Categorical):
        return Level(values.categories, np.asarray(values.codes))
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(column):
        whole = np.asarray(column)
        low, high = int(whole.min()), int(whole.max())
        most = max(4 * len(whole), 1 << 10)
        if low >= 0 and high < most and dtype.kind == "i":
            return Level(range(high + 1), whole)
        if high - low < most and high < np.iinfo(np.int64).max:  # the limit of a pandas range
            return Level(range(low, high + 1), (whole.astype(np.int64) - low).astype(np.int32))
    codes, names = pd.factorize(column)
    return Level(pd.Index(names), codes)


def batch_of(
    table: Mapping[str, Any], columns: TableColumns, attrs: Mapping[Hashable, Any]
) -> Batch:
    """Make a batch of some rows of a table."""
    losses = {
        name: numbers(pd.Series(table[name], name=name, copy=False)) for name in columns.values
    }
    cautions = Caution.UNUSED_LEVEL if columns.unused else Caution(0)
    return Batch(levels_of(table, columns), losses, columns.single, attrs, cautions)


def levels_of(table: Mapping[str, Any], columns: TableColumns) -> dict[str, Level]:
    """Read the levels of some rows of a table."""
    return {level: level_of(table[name]) for level, name in columns.levels.items()}


def check_stacked(columns: TableColumns, pairs: bool, missing: str) -> None:
    """Refuse options that need all models at once, if models are stacked in rows."""
    if columns.model is None or not (pairs or missing == "drop"):
        return
    asked = (
        "pairs=True compares models" if pairs
        else "missing='drop' drops an evaluation for all models"
    )  # fmt: skip
    raise LogError(
        f"{asked}, but the models of this table are stacked in rows (column {columns.model!r}), "
        "possibly in different batches. Expected a column of losses for each "
        f"model, as in loss=['ridge', 'forest']."
    )


def part_of(
    table: Mapping[str, Any],
    columns: TableColumns,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: Any,
    attrs: Mapping[Hashable, Any],
) -> Parts:
    """Compute the moments of some rows; nothing without rows.

    ``attrs`` describe the losses, such as their name.
    """
    if len(table[columns.names[0]]) == 0:
        return {}
    if columns.model is None:
        batch: Any = batch_of(table, columns, attrs)
        return {None: Moments.of_log(batch, by=by, pairs=pairs, missing=missing)}
    names = level_of(table[columns.model])
    codes = names.block(0, len(table[columns.model]))
    if codes.min() < 0:
        raise LogError(
            f"a model has no name (missing). Expected a name in each row of {columns.model!r}."
        )
    parts = {}
    for code in np.unique(codes).tolist():
        rows = codes == code
        own = {name: table[name][rows] for name in columns.names}
        batch = batch_of(own, columns, attrs)
        parts[names.labels[code]] = Moments.of_log(batch, by=by, missing=missing)
    return parts


def sum_parts(parts: Iterable[Parts]) -> Parts:
    """Add up moments by model."""
    known: dict[Hashable, list[Moments]] = {}
    for part in parts:
        for name, kept in part.items():
            known.setdefault(name, []).append(kept)
    return {name: reduce(add, each) for name, each in known.items()}


def whole_of(parts: Parts) -> Moments:
    """Combine all parts; a table without rows has none."""
    if not parts:
        raise LogError("the log is empty. Expected at least one loss.")
    return parts[None] if None in parts else concat_models(parts)


# --- dask DataFrames ------------------------------------------------------------------------------


def tabular(losses: Any) -> Any:
    """Convert a dask frame or Series to a frame with all levels as columns."""
    frame = losses.to_frame(name=losses.name or "loss") if losses.ndim == 1 else losses
    index = frame.index.name
    return frame.reset_index() if index in LEVELS and index not in frame.columns else frame


def models_of(frame: Any, levels: Sequence[str]) -> list[str]:
    """Name the columns of losses: numeric columns that are not, and do not resemble, levels."""
    own = [*levels, *(name for name in LEVELS if name in frame.columns)]
    others = [*own, *sounding_like(frame.columns, own, own)]
    return [
        str(name)
        for name, dtype in frame.dtypes.items()
        if name not in others and pd.api.types.is_numeric_dtype(dtype)
    ]


def scan_dask(
    frame: Any,
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    *,
    model: str | None,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: Any,
) -> Any:
    """Make delayed moments of a dask frame: one per partition, and a tree of sums."""
    delayed = import_dask().delayed
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise LogError(
            f"{describe_type(frame)} is not a dask DataFrame. Expected one, as from "
            "dask.dataframe.read_parquet; cvstats.Moments.of_log accepts pandas and xarray."
        )
    columns = columns_of([*map(str, frame.columns)], loss, asked, by, model)
    check_stacked(columns, pairs, missing)
    work, add = delayed(part_of, pure=True), delayed(sum_parts, pure=True)
    facts, chosen = attrs_of_frame(frame), frame[columns.names]
    parts = [work(part, columns, by, pairs, missing, facts) for part in chosen.to_delayed()]
    while len(parts) > 1:
        parts = [add(parts[at : at + SPLIT_EVERY]) for at in range(0, len(parts), SPLIT_EVERY)]
    return delayed(whole_of, pure=True)(parts[0])


def attrs_of_frame(frame: Any) -> dict[Hashable, Any]:
    """Return the attrs of a dask frame: those of pandas, and what a user assigned."""
    return {**frame._meta.attrs, **vars(frame).get("attrs", {})}


def has_columns_of_models(losses: Any, by: str | None = None) -> bool:
    """Whether a dask frame has several models, as columns: not one, and not stacked in rows."""
    frame = tabular(losses)
    return "model" not in frame.columns and len(models_of(frame, () if by is None else (by,))) > 1


def delay_answer(
    losses: Any,
    ask: Callable[[Moments], Any],
    *,
    other: object = None,
    levels: Sequence[str | None] = (),
    pairs: bool = False,
    missing: str = "raise",
) -> Any:
    """Evaluate a function of the moments of a dask frame lazily.

    ``levels`` are columns that it needs besides the levels of a log. Functions that need the same
    cells share the tasks that read losses.
    """
    if other is not None:
        raise LogError(
            "two dask frames cannot be paired: their partitions may contain different rows. "
            "Expected one frame with a column for each model. Join them first, as in a.merge(b, "
            "on=['repetition', 'fold', 'point'])."
        )
    frame = tabular(losses)
    if not set(LEVELS) & set(frame.columns) and not any(levels):
        raise LogError(
            "no level of a loss log was found among the columns "
            f"{listed(map(repr, frame.columns))}. Expected one or more of {', '.join(LEVELS)}. "
            "Name the columns first: frame = cvstats.as_log(frame, loss='squared_error', "
            "fold='cv_split'), or cvstats.scan_dask(frame, loss='squared_error', fold='cv_split')."
        )
    own = [name for name in LEVELS if name in frame.columns and name not in ("point", "count")]
    own += [METRIC] * (METRIC in frame.columns and frame.dtypes[METRIC].kind not in "iufb")
    more = [name for name in levels if name is not None and name not in own]
    for name in more:
        if name not in frame.columns:
            raise LogError(
                f"the frame has no column {name!r}. Expected one or more of its columns: "
                f"{listed(map(repr, frame.columns))}."
            )
    if "count" in frame.columns:
        raise LogError(
            "this is a bootstrap log (column 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources. Load it first: frame.compute()."
        )
    found = models_of(frame, more)
    for truth in TRUTHS:
        if truth in found and "loss" not in attrs_of_frame(frame):
            raise not_losses(truth)
    stacked = "model" in frame.columns and "model" not in found
    if not found or (stacked and len(found) > 1):
        which = listed(map(repr, found)) or "none"
        raise LogError(
            f"of the columns {listed(map(repr, frame.columns))}, these are numeric: {which}. "
            + ("Next to 'model', expected one column of losses. " if stacked else "") + NUMBERS
        )  # fmt: skip
    kept = scan_dask(
        frame, found[0] if losses.ndim == 1 or stacked else found, dict.fromkeys(LEVELS),
        model="model" if stacked else None, by=(*own, *more) if more else None, pairs=pairs,
        missing=missing,
    )  # fmt: skip
    return import_dask().delayed(ask, pure=True)(kept)


def rename_levels(
    frame: Any,
    loss: str | Sequence[str],
    model: str | None,
    asked: Mapping[str, str | None],
) -> Any:
    """Rename columns to the names of the levels, and drop columns that do not resemble levels."""
    frame = tabular(frame)
    columns = columns_of([*map(str, frame.columns)], loss, asked, None, model)
    names = {column: level for level, column in columns.levels.items()}
    if columns.model is not None:
        names[columns.model] = "model"
    return frame[[*columns.names, *columns.unused]].rename(columns=names)


def map_predictions(
    predictions: Any,
    ask: Callable[[pd.DataFrame], Any],
    needed: Sequence[Hashable],
    models: Sequence[str],
    facts: Mapping[Any, Any],
) -> Any:
    """Compute the losses of each model from the predictions, partition by partition.

    ``facts`` describe the losses: their name and its options.
    """
    frame = tabular(predictions)
    kept = [name for name in frame.columns if name in LEVELS and name not in needed]
    kept += sounding_like(frame.columns, [*kept, *needed], kept)
    types = frame.dtypes[kept].to_dict() | dict.fromkeys(models, np.dtype(np.float64))
    meta = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})
    meta.attrs = dict(facts)
    return frame.map_partitions(with_levels, ask, kept, models, meta=meta)


def concat_metrics(logs: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
    """Concatenate dask frames with the losses of one metric each; its name is a column."""
    named = [log.assign(**{METRIC: name}) for name, log in logs.items()]
    whole = import_module("dask.dataframe").concat(named)
    meta = whole._meta.copy()
    meta.attrs = dict(facts)
    return whole.map_partitions(pd.DataFrame.copy, deep=False, meta=meta)


def with_levels(
    part: pd.DataFrame, ask: Callable[[pd.DataFrame], Any], kept: list[str], models: list[str]
) -> pd.DataFrame:
    """Combine losses with the levels of their rows."""
    found = ask(part)
    table = found.to_frame() if isinstance(found, pd.Series) else found
    levels = part[kept].copy()  # by position: labels of the index may be duplicates
    for name, column in zip(models, table.columns, strict=True):
        levels[name] = table[column].to_numpy(dtype=np.float64)
    return levels


def describe(losses: Any) -> str:
    """Describe in one line how a lazy frame is read."""
    frame = tabular(losses)
    levels = [name for name in LEVELS if name in frame.columns]
    models = models_of(frame, levels)
    return (
        f"a dask frame in {frame.npartitions:,} partitions, by "
        f"{', '.join(map(repr, levels)) or 'no level'}; {len(models):,} "
        f"model{'' if len(models) == 1 else 's'}"
    )
