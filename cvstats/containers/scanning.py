"""Tables too long for memory: which columns are a log, and the moments of some rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from cvstats.containers.batches import CellMoments, concat_models, summarize
from cvstats.containers.log import Log
from cvstats.containers.pandas import FrameLabels, numbers
from cvstats.containers.read import unread
from cvstats.core.columns import LossColumns
from cvstats.core.design import LEVELS, Design, Level
from cvstats.core.types import Labels
from cvstats.errors import LogError, listed

__all__ = ["Columns", "Parts", "added", "check_stacked", "columns_of", "part_of", "whole_of"]

K = TypeVar("K", bound=CellMoments)

Parts = dict[Hashable, K]
"""Moments of some rows: of each model that stands in them, or under None of all columns."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold losses, and which the levels."""

    losses: tuple[str, ...]
    single: bool
    levels: Mapping[str, str]
    model: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [*self.levels.values(), *self.losses, *([self.model] if self.model else [])]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table as a log: levels by code, losses by column."""

    levels: Mapping[str, Level]
    losses: Mapping[str, Any]
    single: bool


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
    asked: Mapping[str, str | None],
    by: str | Sequence[str] | None,
    model: str | None = None,
) -> Columns:
    """Find losses and levels among the columns of a table, and what else ``by`` names.

    ``model`` is the column that names the model, where models stand below each other.

    Raises
    ------
    LogError
        If a column is missing or stands for two things, or no level is found.
    """
    losses = (loss,) if isinstance(loss, str) else tuple(loss)
    levels = {
        level: column or level
        for level, column in asked.items()
        if column is not None or (level in known and level not in losses)
    }
    for name in () if by is None else (by,) if isinstance(by, str) else by:
        levels.setdefault(name, name)
    if model is None and isinstance(loss, str) and "model" in known and "model" not in (
        loss, *levels.values()
    ):  # fmt: skip
        model = "model"
    named = [*losses, *levels.values(), *([] if model is None else [model])]
    lost = [name for name in named if name not in known]
    if lost or not losses:
        raise LogError(
            f"there is no column {lost[0] if lost else ''!r}. Expected some of "
            f"{listed(map(repr, known))}: name them, as in loss='squared_error', fold='cv_split'."
        )
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise LogError(f"the column {twice[0]!r} is named twice. Expected one part for each.")
    if not levels:
        raise LogError(
            f"no level of a loss log was found among the columns {listed(map(repr, known))}. "
            f"Expected some of {', '.join(LEVELS)}: name the columns, as in fold='cv_split'."
        )
    if model is not None and len(losses) > 1:
        raise LogError("model= and several columns in loss= both name models. Expected one.")
    return Columns(losses, isinstance(loss, str), levels, model)


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


def batch_of(table: Mapping[str, Any], columns: Columns) -> Batch:
    """Take some rows of a table as a log."""
    levels = {level: level_of(table[name]) for level, name in columns.levels.items()}
    losses = {
        name: numbers(pd.Series(table[name], name=name, copy=False)) for name in columns.losses
    }
    return Batch(levels, losses, columns.single)


def check_stacked(columns: Columns, pairs: bool, missing: str) -> None:
    """Refuse what asks for several models at once, where they stand below each other."""
    if columns.model is None or not (pairs or missing == "drop"):
        return
    asked = (
        "what models share is asked for" if pairs
        else "missing='drop' leaves an evaluation out for all models"
    )  # fmt: skip
    raise LogError(
        f"{asked}, and the models of this table stand below each other (column "
        f"{columns.model!r}), perhaps in different batches. Expected a column of losses for each "
        f"model, as in loss=['ridge', 'forest']."
    )


def part_of(
    kind: type[K],
    table: Mapping[str, Any],
    columns: Columns,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
) -> Parts[K]:
    """Compute the moments of some rows; nothing where there are none."""
    if len(table[columns.names[0]]) == 0:
        return {}
    if columns.model is None:
        return {None: summarize(kind, batch_of(table, columns), by, pairs, missing)}
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
        parts[names.labels[code]] = summarize(kind, batch_of(own, columns), by, False, missing)
    return parts


def added(parts: Iterable[Parts[K]]) -> Parts[K]:
    """Add up what is there, model by model."""
    known: dict[Hashable, list[K]] = {}
    for part in parts:
        for name, kept in part.items():
            known.setdefault(name, []).append(kept)
    return {name: reduce(add, each) for name, each in known.items()}


def whole_of(parts: Parts[K]) -> K:
    """Take all that was added up: of a table without rows there is nothing."""
    if not parts:
        raise LogError("the log is empty. Expected at least one loss.")
    return parts[None] if None in parts else concat_models(parts)
