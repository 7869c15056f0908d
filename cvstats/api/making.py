"""From other tables to a loss log: predictions to losses, tidy frames to levels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.design import LEVELS
from cvstats.errors import MOST, LogError, listed, place
from cvstats.pointwise import LossOptions, pointwise

__all__ = ["as_log", "losses"]

Columns: TypeAlias = (
    Hashable | Sequence[Hashable] | Mapping[Hashable, Hashable | Sequence[Hashable]]
)


def losses(
    predictions: pd.DataFrame | xr.Dataset,
    truth: Hashable = "y_true",
    prediction: Columns = "y_pred",
    loss: str | Callable[[Any, Any], Any] = "squared_error",
    *,
    quantile: float | None = None,
    threshold: float | None = None,
    classes: Sequence[Hashable] | None = None,
    positive: Hashable = None,
) -> Any:
    """Turn logged predictions into a loss log.

    Parameters
    ----------
    predictions : DataFrame or Dataset
        Truth and predictions as columns (variables), with the levels of a loss log.
    truth : hashable, optional
        The column of the truth.
    prediction : hashable, sequence or mapping, optional
        The column of predictions; for several models a list of columns, or a mapping from
        the model's name to its column. With ``classes`` each model has a list of columns, the
        probabilities of the classes.
    loss : str or callable, optional
        ``squared_error``, ``absolute_error``, ``percentage_error`` (a share: 0.1 is 10%),
        ``pinball``, ``zero_one``, ``log_loss`` (nats), ``brier``, ``hinge``; or a function of
        two arrays that returns one loss for each point.
    quantile : float, optional
        For ``pinball``, the level of the predicted quantile.
    threshold : float, optional
        For ``zero_one`` of probabilities: from where on the positive class is predicted.
    classes : sequence, optional
        For ``log_loss`` and ``brier`` of a probability for each class: the labels, in the
        order of the columns.
    positive : hashable, optional
        For one probability or score: the label that it is for, if the truth is not 0 and 1.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        For one column of predictions a Series (DataArray), else a column (variable) for each
        model, with the index of the predictions.

    Raises
    ------
    LogError
        If a column is missing, a probability is not one, or the truth does not fit the loss.

    Notes
    -----
    Where truth or prediction is missing the loss is NaN; nothing is dropped.

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, JASA 102(477), 359-378,
    doi:10.1198/016214506000001437.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=["naive_bayes"], loss="brier")
    >>> float(losses["naive_bayes"].mean().round(5))
    0.17308
    """
    if not isinstance(predictions, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"a {type(predictions).__name__} holds no named predictions. Expected a DataFrame "
            f"or a Dataset with the columns truth={truth!r} and prediction={prediction!r}."
        )
    if classes is not None:  # they may be an array, such as the classes_ of a classifier
        classes = [c.item() if isinstance(c, np.generic) else c for c in classes]
    options = LossOptions(quantile, threshold, classes, positive)
    chosen = models(prediction, classes)
    require_columns(predictions, [truth, *(name for names in chosen.values() for name in names)])
    values: dict[Hashable, Any] = {}
    for model, columns in chosen.items():
        if isinstance(predictions, pd.DataFrame):
            values[model] = of_frame(predictions, truth, columns, loss, options)
        else:
            values[model] = of_dataset(predictions, truth, columns, loss, options)
    several = classes is None and not single(prediction)
    if not several and not isinstance(prediction, Mapping):
        ((name, only),) = values.items()
        return only.rename(name)
    if isinstance(predictions, xr.Dataset):
        return xr.Dataset(values)
    return pd.DataFrame(values, index=predictions.index)


def require_columns(predictions: pd.DataFrame | xr.Dataset, names: Iterable[Hashable]) -> None:
    """Refuse a name that no column has, or several have."""
    frame = isinstance(predictions, pd.DataFrame)
    have = list(predictions.columns if frame else predictions.variables)
    for name in names:
        if name not in have:
            raise LogError(
                f"there is no column {name!r}. Expected truth and prediction among "
                f"{listed(map(repr, predictions))}; name them with truth= and prediction=."
            )
        if have.count(name) > 1:
            raise LogError(f"several columns are called {name!r}. Expected one. Rename them.")


def single(name: Any) -> bool:
    """Whether this is the name of one column and not a collection of names."""
    return isinstance(name, str) or not isinstance(name, Iterable)


def models(prediction: Any, classes: Sequence[Hashable] | None) -> dict[Hashable, list[Hashable]]:
    """Find the columns of each model."""
    chosen: dict[Hashable, list[Hashable]]
    if isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if single(columns) else list(columns)
            for name, columns in prediction.items()
        }
    elif single(prediction):
        chosen = {prediction: [prediction]}
    elif classes is not None:
        chosen = {"model": list(prediction)}
    else:
        chosen = {name: [name] for name in prediction}
    if not chosen:
        raise LogError("prediction= names no column. Expected at least one model's predictions.")
    expected = 1 if classes is None else len(classes)
    for name, columns in chosen.items():
        if len(columns) != expected:
            raise LogError(
                f"model {name!r} has {len(columns)} columns of predictions. Expected {expected}"
                + (
                    ", or classes= with the label of each."
                    if classes is None
                    else f", one for each of classes={list(classes)!r}."
                )
            )
    return chosen


def of_frame(
    predictions: pd.DataFrame,
    truth: Hashable,
    columns: list[Hashable],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> pd.Series:
    """Compute the losses of one model in a frame."""
    y = plain(predictions[truth])
    parts = [plain(predictions[column]) for column in columns]
    guess = parts[0] if options.classes is None else np.column_stack(parts)
    return pd.Series(pointwise(y, guess, loss, options), index=predictions.index)


def plain(column: pd.Series) -> Any:
    """Turn a column into an array of numbers where it holds numbers, else of objects."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not isinstance(column.dtype, np.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return column.to_numpy()
    return column.astype(object).where(column.notna(), None).to_numpy()


def of_dataset(
    predictions: xr.Dataset,
    truth: Hashable,
    columns: list[Hashable],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> xr.DataArray:
    """Compute the losses of one model in a dataset; truth is broadcast to the predictions."""
    parts = xr.broadcast(*(predictions[column] for column in columns), predictions[truth])
    *guesses, y = (part.transpose(*parts[0].dims) for part in parts)
    flat = [flattened(guess) for guess in guesses]
    guess = flat[0] if options.classes is None else np.column_stack(flat)
    values = pointwise(flattened(y), guess, loss, options)
    # The truth may have dimensions that the predictions lack, and coordinates along these.
    result = guesses[0].copy(data=values.reshape(y.shape)).assign_coords(y.coords)
    result.attrs = {"long_name": loss if isinstance(loss, str) else "loss"}
    return result


def flattened(array: xr.DataArray) -> Any:
    """Lay an array out as one column, with None for whatever marks a missing object."""
    values = array.values.reshape(-1)
    if values.dtype == object:
        values = values.copy()
        values[pd.isna(values)] = None
    return values


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
        A row for each evaluation (of each model).
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

    Raises
    ------
    LogError
        If a column is missing, no level is found, or a model has an evaluation twice.

    Notes
    -----
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
    if not isinstance(frame, pd.DataFrame):
        raise LogError(
            f"a {type(frame).__name__} has no named columns. Expected a DataFrame with a row for "
            f"each evaluation."
        )
    named = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point, "count": count,
    }  # fmt: skip
    columns = [loss] if isinstance(loss, str) else list(loss)
    asked = [*columns, *(name for name in (model, *named.values()) if name is not None)]
    frame = out_of_index(frame, asked)
    if model is None and isinstance(loss, str) and "model" in frame.columns:
        model = "model"
    names = columns if model is None else [*columns, model]
    levels = {
        level: column or level
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
    indexed = frame.set_index(list(levels.values()))[names]
    indexed.index.names = list(levels)
    if model is not None:
        return unstacked(indexed, columns, model)
    return indexed[loss] if isinstance(loss, str) else indexed


def out_of_index(frame: pd.DataFrame, asked: Sequence[str]) -> pd.DataFrame:
    """Turn the levels and other names that were asked for from index levels into columns."""
    found = [name for name in frame.index.names if name in LEVELS or name in asked]
    for name in found:
        if name in frame.columns:
            raise LogError(
                f"{name!r} is a column and an index level. Expected one of them. Drop the level, "
                f"as in frame.reset_index({name!r}, drop=True), or rename it."
            )
    return frame.reset_index(found) if found else frame


def check_roles(frame: pd.DataFrame, names: Sequence[str], levels: Sequence[str]) -> None:
    """Refuse a column that is not there, is there twice, or is a loss and a level at once."""
    for column in (*names, *levels):
        if column not in frame.columns:
            raise LogError(
                f"there is no column {column!r}. Expected one of the frame's columns: "
                f"{listed(map(repr, frame.columns))}."
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
