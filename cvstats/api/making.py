"""From tidy frames with any column names to loss logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.levelling import kept_besides
from cvstats.api.measuring import is_name, single
from cvstats.containers import dask, is_dask_frame
from cvstats.core.design import LEVELS
from cvstats.errors import MOST, LogError, listed, nearest, place

__all__ = ["as_log"]


def as_log(
    frame: pd.DataFrame,
    *,
    loss: str | Sequence[str] = "loss",
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    count: str | None = None,
) -> pd.Series | pd.DataFrame:
    """Make a loss log of a tidy table with other column names.

    Parameters
    ----------
    frame : DataFrame
        A row for each evaluation (of each model). One of dask stays lazy.
    loss : str or sequence of str, optional
        The column of losses; a list where each model has a column of its own. Name the
        columns of truth and predictions here to keep them for `cvstats.losses`.
    model : str, optional
        The column that names the model, where the models stand below each other; a column
        called ``model`` is found by itself.
    sample, outer, repetition, fold, source, point, count : str, optional
        The column (or index level) of each level. One that bears the level's own name is
        found by itself.

    Returns
    -------
    Series or DataFrame
        The losses with the levels as index; a column for each model where there are several.
        A frame of dask, which has one index level at most, keeps its levels as columns, under
        the names that all functions know; models that stand below each other stay there.

    Raises
    ------
    LogError
        If a column is missing, no level is found, or a model has an evaluation twice.

    Notes
    -----
    A column that is named much like a level that the log lacks, such as ``subject`` or
    ``cv_fold``, stays as an index level of that name, which results then have a caution about.

    The row order is kept where the models have columns of their own; the table that comes in
    is not changed. A model that misses an evaluation has NaN there, which every method then
    names.

    References
    ----------
    Wickham (2014), Tidy data, Journal of Statistical Software 59(10),
    doi:10.18637/jss.v059.i10.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> table = pd.DataFrame({"cv_split": [0, 0, 1, 1], "id": list("abcd"), "se": [1.0, 2, 3, 4]})
    >>> cvstats.as_log(table, loss="se", fold="cv_split", point="id")
    fold  point
    0     a        1.0
          b        2.0
    1     c        3.0
          d        4.0
    Name: se, dtype: float64
    """
    named = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point, "count": count,
    }  # fmt: skip
    if is_dask_frame(frame):
        log: pd.DataFrame = dask.relabelled(frame, loss, model, named)
        return log
    if not isinstance(frame, pd.DataFrame):
        raise no_frame(frame)
    columns: list[Any] = [loss] if single(loss) else list(loss)
    asked = [*columns, *(name for name in (model, *named.values()) if name is not None)]
    if not columns or not all(map(is_name, asked)):
        strays = [repr(name) for name in asked if not is_name(name)]
        raise LogError(f"{(strays or ['loss='])[0]} names no column. Expected a column's name.")
    frame = out_of_index(frame, asked)
    alone = single(loss)
    if model is None and alone and "model" in frame.columns:
        model = "model"
    names = columns if model is None else [*columns, model]
    levels = {
        level: level if column is None else column
        for level, column in named.items()
        if column is not None or (level in frame.columns and level not in (*asked, model))
    }
    check_roles(frame, names, list(levels.values()))
    if not levels:
        raise LogError(
            f"no level of a loss log was found among the columns "
            f"{listed(map(repr, frame.columns))}. Expected some of {', '.join(LEVELS)}: name "
            f"the columns, as in as_log(frame, fold='cv_split', point='id')."
        )
    kept = kept_besides(frame, names, levels, model is not None)
    indexed = frame.set_index([*levels.values(), *kept])[names]
    indexed.index.names = [*levels, *kept]
    if model is not None:
        return unstacked(indexed, columns, model)
    return indexed[columns[0]] if alone else indexed


def no_frame(given: object) -> LogError:
    """Say how something else than a table becomes a log."""
    name, once = type(given).__name__, "is a log once these bear the names of levels:"
    if isinstance(given, (xr.DataArray, xr.Dataset)):
        dim = next((dim for dim in given.dims if dim not in LEVELS), "cv_split")
        way = f"With dimensions or coordinates it {once} array.rename({{{dim!r}: 'fold'}})."
    elif isinstance(given, pd.Series):
        way = f"With index levels it {once} series.rename_axis(index={{'cv_split': 'fold'}})."
    elif isinstance(given, (str, PurePath)):
        way = "Read a file with cvstats.read_log(path)."
    else:
        way = "Make one: cvstats.as_log(pandas.DataFrame({'fold': …, 'point': …, 'loss': …}))."
    return LogError(
        f"a {name} has no named columns. Expected a DataFrame with a row for each evaluation. {way}"
    )


def out_of_index(frame: pd.DataFrame, asked: Sequence[str]) -> pd.DataFrame:
    """Turn the levels and other names that were asked for from index levels into columns."""
    found = [name for name in frame.index.names if name in LEVELS or name in asked]
    for name in found:
        if found.count(name) > 1:
            raise LogError(f"two index levels are called {name!r}. Expected different names.")
        if name in frame.columns:
            raise LogError(
                f"{name!r} is a column and an index level. Expected one of them. Drop the level, "
                f"as in frame.reset_index({name!r}, drop=True), or rename it."
            )
    return frame.reset_index(found) if found else frame


PREDICTIONS = (
    " Predictions become losses by cvstats.read_log(frame, truth=…, prediction=…, loss=…, fold=…, "
    "point=…)."
)


def check_roles(frame: pd.DataFrame, names: Sequence[str], levels: Sequence[str]) -> None:
    """Refuse a column that is not there, is there twice, or is a loss and a level at once."""
    for column in (*names, *levels):
        if column not in frame.columns:
            raise LogError(
                f"there is no column {column!r}. Expected one of the frame's columns: "
                f"{listed(map(repr, frame.columns))}.{nearest(column, frame.columns)}"
                + (PREDICTIONS if column == "loss" else "")
            )
        if list(frame.columns).count(column) > 1:
            raise LogError(f"several columns are called {column!r}. Expected one. Rename them.")
        if column in names and column in levels:
            raise LogError(
                f"{column!r} is named as a level and as the loss or the model. Expected a column "
                f"for each."
            )


def unstacked(indexed: pd.DataFrame, columns: Sequence[str], model: str) -> pd.DataFrame:
    """Put models that stand below each other side by side, in the order of their appearance."""
    if len(columns) != 1:
        raise LogError("model= and several columns in loss= both name models. Expected one.")
    nameless = np.flatnonzero(indexed[model].isna())
    if len(nameless):
        raise LogError(
            f"the model of row {nameless[0]:,} has no name (NaN). Expected a name in each row of "
            f"{model!r}."
        )
    order = pd.Index(list(dict.fromkeys(indexed[model])), name="model")
    wide = indexed.set_index(model, append=True)[columns[0]]
    twice = wide.index[wide.index.duplicated()]
    if len(twice):
        names = [str(name) for name in wide.index.names]
        shown = [place(dict(zip(names, labels, strict=True))) for labels in twice[:MOST]]
        raise LogError(
            f"a model has the same evaluation twice: {listed(shown, len(twice))}. Expected each "
            f"({', '.join(names)}) once. Name the column that tells them apart: repetition= for "
            f"another split of the same points; or, if point= names a group that has several "
            f"points, source= for the group and point= for what tells its points apart."
        )
    return wide.unstack(model)[list(order)].set_axis(order, axis=1)
