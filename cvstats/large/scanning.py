"""Tables too long for memory: the moments of some rows, and their sums."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.columns import LossColumns
from cvstats.core.design import Design, Level
from cvstats.core.types import Labels
from cvstats.errors import LogError
from cvstats.large.moments import Moments, concat_models, summarize
from cvstats.log.columns import TableColumns, find_columns, no_levels
from cvstats.log.log import Log
from cvstats.log.pandas import FrameLabels, numbers
from cvstats.log.read import unread

Parts = dict[Hashable, Moments]
"""Moments of some rows: of each model that occurs in them, or under None of all columns."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table as a log: levels by code, losses by column, facts about them."""

    levels: Mapping[str, Level]
    losses: Mapping[Any, Any]
    single: bool
    attrs: Mapping[Hashable, Any] = field(default_factory=dict)


@unread.register
def _(losses: Batch, also: object = None) -> Log:
    """Read a batch: nothing is sorted, and no index is made."""
    names = list(losses.losses)
    size = len(losses.losses[names[0]])
    axis = None if losses.single else pd.Index(names, tupleize_cols=False)
    panels = LossColumns(tuple(column[:, None] for column in losses.losses.values()))
    return Log(Design(losses.levels, size), panels, FrameLabels([*names], axis))


def columns_of(
    known: Sequence[str],
    loss: str | Sequence[str],
    named: Mapping[str, str | None],
    by: str | Sequence[str] | None,
    model: str | None = None,
    truth: str | None = None,
) -> TableColumns:
    """Find losses and levels among the columns of a table, and the columns that ``by`` adds.

    With ``truth``, its column comes first, and ``loss`` are columns of predictions.

    Raises
    ------
    LogError
        If a column is missing or is two things, or no level is found.
    """
    single = isinstance(loss, str)
    losses = [loss] if isinstance(loss, str) else list(loss)
    if not losses:
        raise LogError("loss= names no column. Expected a column of losses.")
    more = () if by is None else (by,) if isinstance(by, str) else by
    named = {**named, **{name: name for name in more if named.get(name) is None}}
    values = losses if truth is None else [truth, *losses]
    columns = find_columns(known, values, named, model, single=single)
    if not columns.levels:
        raise no_levels(known, "fold='cv_split'")
    used = list(columns.levels.values())
    twice = [name for name in used if used.count(name) > 1]
    if twice:
        raise LogError(f"the column {twice[0]!r} is named twice. Expected a column for each level.")
    return columns


# --- codes of a column ----------------------------------------------------------------------------


def level_of(column: Any) -> Level:
    """Give the labels of a column numbers; whole numbers close together are their own."""
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
        if high - low < most and high < np.iinfo(np.int64).max:  # no range of pandas goes on
            return Level(range(low, high + 1), (whole.astype(np.int64) - low).astype(np.int32))
    codes, names = pd.factorize(column)
    return Level(as_labels(names), codes)


def as_labels(names: Any) -> Labels:
    """Make an index of labels, whatever array pandas gives."""
    return names if isinstance(names, pd.Index) else pd.Index(names, tupleize_cols=False)


def batch_of(
    table: Mapping[str, Any], columns: TableColumns, attrs: Mapping[Hashable, Any]
) -> Batch:
    """Take some rows of a table as a log."""
    losses = {
        name: numbers(pd.Series(table[name], name=name, copy=False)) for name in columns.values
    }
    return Batch(levels_of(table, columns), losses, columns.single, attrs)


def levels_of(table: Mapping[str, Any], columns: TableColumns) -> dict[str, Level]:
    """Take the levels of some rows of a table."""
    return {level: level_of(table[name]) for level, name in columns.levels.items()}


def check_stacked(columns: TableColumns, pairs: bool, missing: str) -> None:
    """Refuse options for several models at once, where models are stacked in rows."""
    if columns.model is None or not (pairs or missing == "drop"):
        return
    asked = (
        "what models share is asked for" if pairs
        else "missing='drop' leaves an evaluation out for all models"
    )  # fmt: skip
    raise LogError(
        f"{asked}, and the models of this table are stacked in rows (column {columns.model!r}), "
        f"perhaps in different batches. Expected a column of losses for each "
        f"model, as in loss=['ridge', 'forest']."
    )


def part_of(
    table: Mapping[str, Any],
    columns: TableColumns,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
    attrs: Mapping[Hashable, Any],
) -> Parts:
    """Compute the moments of some rows; nothing where there are none.

    ``attrs`` are facts about the losses, such as their name.
    """
    if len(table[columns.names[0]]) == 0:
        return {}
    if columns.model is None:
        return {None: summarize(batch_of(table, columns, attrs), by, pairs, missing)}
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
        parts[names.labels[code]] = summarize(batch, by, False, missing)
    return parts


def added(parts: Iterable[Parts]) -> Parts:
    """Add up what is there, model by model."""
    known: dict[Hashable, list[Moments]] = {}
    for part in parts:
        for name, kept in part.items():
            known.setdefault(name, []).append(kept)
    return {name: reduce(add, each) for name, each in known.items()}


def whole_of(parts: Parts) -> Moments:
    """Take all that was added up: of a table without rows there is nothing."""
    if not parts:
        raise LogError("the log is empty. Expected at least one loss.")
    return parts[None] if None in parts else concat_models(parts)
