"""Which column of a table is which level: the one place that decides it.

`cvstats.as_log`, `cvstats.losses`, `cvstats.read_log`, `cvstats.scan_parquet`, `cvstats.scan_dask`
and frames of dask all ask here, so that a table means the same on every road.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.suggestions import can_name, sounding_like
from cvstats.errors import LogError, listed, nearest

MODEL = "model"
"""The column that names the model where the caller names none."""


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table hold values, levels and the names of models.

    Parameters
    ----------
    values : tuple of column names
        Losses, or truth and predictions.
    levels : mapping of str to column name
        For each level of the loss log its column.
    model : column name, optional
        The column that names the model, where models are stacked in rows.
    single : bool
        Whether the values are one column, and not a list of them.
    """

    values: tuple[Any, ...]
    levels: Mapping[str, Any]
    model: Any = None
    single: bool = True

    @property
    def names(self) -> list[Any]:
        """Every column that is read, each once."""
        model = [] if self.model is None else [self.model]
        return list(dict.fromkeys([*self.levels.values(), *self.values, *model]))


def find_columns(
    known: Sequence[Hashable],
    values: Sequence[Hashable],
    named: Mapping[str, Hashable | None],
    model: Hashable | None = None,
    *,
    single: bool = True,
) -> TableColumns:
    """Find the levels and the model among the columns of a table.

    A level that the caller does not name is the column of its own name, unless that column is
    something else already; so is ``model`` where there is a ``single`` column of values.

    Raises
    ------
    LogError
        If a column is missing, occurs twice, or is a level and a value at once.
    """
    taken = {*values, *(column for column in named.values() if column is not None), model}
    if model is None and single:
        model = own_column(MODEL, [name for name in known if name not in taken])
    free = [name for name in known if name not in {*taken, model}]
    levels = {
        level: own_column(level, free) if column is None else column
        for level, column in named.items()
    }
    levels = {level: column for level, column in levels.items() if column is not None}
    roles = [*values] if model is None else [*values, model]
    for column in (*roles, *levels.values()):
        if column not in known:
            raise LogError(
                f"there is no column {column!r}. Expected one of the table's columns: "
                f"{listed(map(repr, known))}.{nearest(column, known)}"
            )
        if list(known).count(column) > 1:
            raise LogError(f"several columns are called {column!r}. Expected one. Rename them.")
    both = [column for column in roles if column in levels.values() or roles.count(column) > 1]
    if both:
        raise LogError(
            f"{both[0]!r} is named as a level and as the loss or the model. Expected a column "
            f"for each."
        )
    if model is not None and not single:
        raise LogError("model= and several columns in loss= both name models. Expected one.")
    return TableColumns(tuple(values), levels, model, single)


def own_column(level: str, free: Sequence[Hashable]) -> Hashable | None:
    """Find the column of a level's own name, or the only one that is so called in capitals."""
    alike = [name for name in free if isinstance(name, str) and name.strip().lower() == level]
    if level in alike:
        return level
    return alike[0] if len(alike) == 1 else None


def no_levels(known: Sequence[Hashable], call: str) -> LogError:
    """Word the error for a table of which no column is a level, with the ``call`` to type."""
    return LogError(
        f"no level of a loss log was found among the columns {listed(map(repr, known))}. Expected "
        f"some of {', '.join(LEVELS)}: name the columns, as in {call}."
    )


def first_missing(labels: pd.Series) -> int | None:
    """Find the first row without a label."""
    rows = np.flatnonzero(labels.isna())
    return int(rows[0]) if len(rows) else None


def index_to_columns(frame: pd.DataFrame, names: Collection[Hashable]) -> pd.DataFrame:
    """Turn some levels of an index into columns."""
    found = [name for name in frame.index.names if name is not None and name in names]
    for name in found:
        if found.count(name) > 1:
            raise LogError(f"two index levels are called {name!r}. Expected different names.")
        if name in frame.columns:
            raise LogError(
                f"{name!r} is a column and an index level. Expected one of them. Drop the level, "
                f"as in frame.reset_index({name!r}, drop=True), or rename it."
            )
    return frame.reset_index(found) if found else frame


def unnamed_labels(table: pd.DataFrame, columns: TableColumns) -> list[str]:
    """Find labels that vary in a column named much like a level that the table lacks.

    They stay in the log as index levels of their own names, and results have a caution about
    them: without them the log would be another one, without a word.
    """
    taken = {*columns.values, *columns.levels.values(), columns.model}
    return [
        name
        for name in sounding_like(table.columns, taken, columns.levels)
        if can_name(pd.api.types.infer_dtype(table[name]), table[name].nunique())
    ]


def set_level_index(frame: pd.DataFrame, values: Sequence[Hashable]) -> pd.DataFrame:
    """Put the columns named as levels into an index that has no level of a log.

    ``values`` are the columns of truth and predictions.
    """
    if any(name in LEVELS for name in frame.index.names):
        return frame
    found = find_columns(
        list(frame.columns), list(dict.fromkeys(values)), dict.fromkeys(LEVELS), single=False
    )
    frame = frame.rename(columns={column: level for level, column in found.levels.items()})
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name is not None:
        return frame.set_index(list(found.levels), append=True) if found.levels else frame
    put = [*found.levels, *unnamed_labels(frame, found)]
    return frame.set_index(put) if put else frame
