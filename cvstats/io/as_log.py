"""`as_log`: a tidy table with any column names as a loss log."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import PurePath
from typing import Any

import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.errors import MOST, LogError, listed, place
from cvstats.io.align import unhashable
from cvstats.io.table import metric_column
from cvstats.large import frames
from cvstats.log.read import is_dask_frame
from cvstats.log.tables import (
    TableColumns,
    find_columns,
    first_missing,
    from_arrow,
    index_to_columns,
    is_arrow,
    no_levels,
    unnamed_labels,
)
from cvstats.loss_functions.losses import is_name, single


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
    """Make a loss log from a tidy table with other column names.

    Parameters
    ----------
    frame : DataFrame
        One row per evaluation (of each model). A dask DataFrame stays lazy.
    loss : str or sequence of str, optional
        The column of losses; a list if each model has its own column. Name the columns of truth
        and predictions here to keep them for `cvstats.losses`.
    model : str, optional
        The column that names the model, if models are stacked in rows; by default ``model``, if it
        exists.
    sample, outer, repetition, fold, source, point, count : str, optional
        The column (or index level) of each level; by default the one with the level's name.

    Returns
    -------
    Series or DataFrame
        The losses with the levels as index; one column per model if there are several. A dask
        DataFrame keeps its levels as columns, renamed to the standard names, because it cannot have
        several index levels; models stacked in rows stay stacked.

    Raises
    ------
    LogError
        If a column is missing, no level is found, or a model has an evaluation twice.

    Notes
    -----
    A column whose name resembles a missing level, such as ``subject`` or ``cv_fold``, is kept as an
    index level, and results have a caution about it.

    If each model has a column, the order of the rows is kept. The input is not modified. If a model
    lacks an evaluation, its loss is NaN, for which methods raise an error by default.

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
        log: pd.DataFrame = frames.rename_levels(frame, loss, model, named)
        return log
    if is_arrow(frame):
        frame = from_arrow(frame)
    if not isinstance(frame, pd.DataFrame):
        raise not_a_table(frame)
    alone = single(loss)
    losses: list[Any] = [loss] if alone else list(loss)
    asked = [*losses, *(name for name in (model, *named.values()) if name is not None)]
    if not losses or not all(map(is_name, asked)):
        strays = [repr(name) for name in asked if not is_name(name)]
        raise LogError(f"{(strays or ['loss='])[0]} names no column. Expected a column's name.")
    frame = index_to_columns(frame, [*LEVELS, *asked])
    if "loss" in losses and "loss" not in frame.columns:
        refuse_predictions(frame)
    columns = find_columns(list(frame.columns), losses, named, model, single=alone)
    measure = metric_column(frame, columns.names)
    if not columns.levels:
        raise no_levels(list(frame.columns), "as_log(frame, fold='cv_split', point='id')")
    kept = [name for name in unnamed_labels(frame, columns) if is_shared(frame, name, columns)]
    values = losses if columns.model is None else [*losses, columns.model]
    try:
        put = [*([] if measure is None else [measure]), *columns.levels.values(), *kept]
        indexed = frame.set_index(put)[values]
    except TypeError:
        raise unhashable({to: frame[name] for to, name in columns.levels.items()}) from None
    indexed.index.names = [*([] if measure is None else ["metric"]), *columns.levels, *kept]
    made: pd.Series | pd.DataFrame
    if columns.model is not None:
        made = unstack_models(indexed, losses[0], columns.model)
    else:
        made = indexed[losses[0]] if alone else indexed
    if measure is not None:
        names = [str(name) for name in frame[measure].unique()]
        metrics = {name: {"loss": name} for name in names}
        made.attrs |= {"loss": ", ".join(names), "metric": names, "metrics": metrics}
    return made


def not_a_table(given: object) -> LogError:
    """Make the error for an object that is not a table, with a call that converts it."""
    name, once = type(given).__name__, "is a log once they have the names of levels:"
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


def refuse_predictions(frame: pd.DataFrame) -> None:
    """Refuse a table of predictions, with the call that computes their losses."""
    if "y_true" in frame.columns:
        raise LogError(
            f"no column 'loss' among {listed(map(repr, frame.columns))}. Expected losses. "
            "Compute losses from predictions with cvstats.read_log(frame, truth=…, "
            "prediction=…, loss=…, fold=…, point=…)."
        )


def is_shared(frame: pd.DataFrame, name: str, columns: TableColumns) -> bool:
    """Whether a column has the same label for all models of an evaluation."""
    if columns.model is None:
        return True
    each = frame.groupby(list(columns.levels.values()), dropna=False, observed=True)[name]
    return not (each.nunique(dropna=False) > 1).any()


def unstack_models(indexed: pd.DataFrame, loss: Hashable, model: Hashable) -> pd.DataFrame:
    """Make one column per model, in order of appearance."""
    row = first_missing(indexed[model])
    if row is not None:
        raise LogError(
            f"the model of row {row:,} has no name (NaN). Expected a name in each row of {model!r}."
        )
    order = pd.Index(list(dict.fromkeys(indexed[model])), name="model")
    wide = indexed.set_index(model, append=True)[loss]
    twice = wide.index[wide.index.duplicated()]
    if len(twice):
        names = [str(name) for name in wide.index.names]
        shown = [place(dict(zip(names, labels, strict=True))) for labels in twice[:MOST]]
        raise LogError(
            f"a model has the same evaluation twice: {listed(shown, len(twice))}. Expected each "
            f"({', '.join(names)}) once. Name the column in which they differ: repetition= for "
            "another split of the same points; or, if point= names a group of several points, "
            "source= for the group and point= for the points in it."
        )
    return wide.unstack(model)[list(order)].set_axis(order, axis=1)
