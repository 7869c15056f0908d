"""From other tables to a loss log: predictions to losses, tidy frames to levels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.design import LEVELS
from cvstats.errors import LogError, listed
from cvstats.pointwise import LossOptions, pointwise

__all__ = ["as_log", "losses"]

Columns = str | Sequence[str] | Mapping[str, str | Sequence[str]]


def losses(
    predictions: pd.DataFrame | xr.Dataset,
    truth: str = "y_true",
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
    truth : str, optional
        The column of the truth.
    prediction : str, sequence or mapping, optional
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
    options = LossOptions(quantile, threshold, classes, positive)
    chosen = models(prediction, classes)
    have = list(predictions.columns if isinstance(predictions, pd.DataFrame) else predictions)
    for name in (truth, *(column for columns in chosen.values() for column in columns)):
        if name not in have:
            raise LogError(
                f"there is no column {name!r}. Expected truth and prediction among "
                f"{listed(map(repr, have))}; name them with truth= and prediction=."
            )
    values: dict[Hashable, Any] = {}
    for model, columns in chosen.items():
        if isinstance(predictions, pd.DataFrame):
            values[model] = of_frame(predictions, truth, columns, loss, options)
        else:
            values[model] = of_dataset(predictions, truth, columns, loss, options)
    if isinstance(prediction, str) or (classes is not None and not isinstance(prediction, Mapping)):
        (only,) = values.items()
        return only[1].rename(only[0])
    if isinstance(predictions, xr.Dataset):
        return xr.Dataset(values)
    return pd.DataFrame(values, index=predictions.index)


def models(prediction: Columns, classes: Sequence[Hashable] | None) -> dict[str, list[str]]:
    """Find the columns of each model."""
    if isinstance(prediction, str):
        chosen = {prediction: [prediction]}
    elif isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if isinstance(columns, str) else list(columns)
            for name, columns in prediction.items()
        }
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
    truth: str,
    columns: list[str],
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
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    return column.astype(object).to_numpy()


def of_dataset(
    predictions: xr.Dataset,
    truth: str,
    columns: list[str],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> xr.DataArray:
    """Compute the losses of one model in a dataset; truth is broadcast to the predictions."""
    parts = xr.broadcast(*(predictions[column] for column in columns), predictions[truth])
    *guesses, y = (part.transpose(*parts[0].dims) for part in parts)
    flat = [guess.values.reshape(-1) for guess in guesses]
    guess = flat[0] if options.classes is None else np.column_stack(flat)
    values = pointwise(y.values.reshape(-1), guess, loss, options)
    result = guesses[0].copy(data=values.reshape(guesses[0].shape))
    result.attrs = {"long_name": loss if isinstance(loss, str) else "loss"}
    return result


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
        The column that names the model, where the models stand below each other.
    sample, outer, repetition, fold, source, point, count : str, optional
        The column of each level. A column that bears the level's own name is found by itself.

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
    if any(name in LEVELS for name in frame.index.names):
        frame = frame.reset_index()
    levels = {
        level: column or level
        for level in LEVELS
        if (column := named[level]) is not None or level in frame.columns
    }
    columns = [loss] if isinstance(loss, str) else list(loss)
    for column in (*columns, *levels.values(), *([model] if model else [])):
        if column not in frame.columns:
            raise LogError(
                f"there is no column {column!r}. Expected one of the frame's columns: "
                f"{listed(map(repr, frame.columns), len(frame.columns))}."
            )
    if not levels:
        raise LogError(
            f"no level of a loss log was found among the columns "
            f"{listed(map(repr, frame.columns))}. Expected some of {', '.join(LEVELS)}: name "
            f"the columns, as in as_log(frame, fold='cv_split', point='id')."
        )
    indexed = frame.set_index(list(levels.values()))[[*columns, *([model] if model else [])]]
    indexed.index.names = list(levels)
    if model is None:
        return indexed[loss] if isinstance(loss, str) else indexed
    if len(columns) > 1:
        raise LogError("model= and several columns in loss= both name models. Expected one.")
    wide = indexed.set_index(model, append=True)[columns[0]]
    twice = wide.index[wide.index.duplicated()]
    if len(twice):
        labels = dict(zip(wide.index.names, twice[0], strict=True))
        raise LogError(
            f"a model has the same evaluation twice: {labels!r} and {len(twice) - 1:,} more. "
            f"Expected each ({', '.join((*levels, model))}) once. Name the level that tells them "
            f"apart, such as repetition=."
        )
    order = list(dict.fromkeys(indexed[model]))
    return wide.unstack(model)[order].rename_axis(columns="model")
