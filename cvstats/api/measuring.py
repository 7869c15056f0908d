"""From logged predictions to losses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.levelling import levelled
from cvstats.containers import dask, is_dask_frame
from cvstats.errors import LogError, listed, nearest
from cvstats.loss_functions import LossOptions, checked_loss, loss_name, pointwise

__all__ = ["is_name", "losses", "single"]

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
        Truth and predictions as columns (variables), with the levels of a loss log. Where the
        index of a frame names no level, columns with the names of levels become its index. A
        frame of dask stays lazy; its levels are columns, and stay so.
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
        model, with the levels of the predictions. The attrs name the loss: ``loss`` of a frame,
        ``long_name`` of an array.

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
    lazy = is_dask_frame(predictions)
    if not lazy and not isinstance(predictions, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"a {type(predictions).__name__} holds no named predictions. Expected a DataFrame "
            f"or a Dataset with the columns truth={truth!r} and prediction={prediction!r}."
        )
    if classes is not None and single(classes):
        raise LogError(f"classes={classes!r} is no list. Expected the label of each column.")
    if classes is not None:  # they may be an array, such as the classes_ of a classifier
        classes = [c.item() if isinstance(c, np.generic) else c for c in classes]
    options = LossOptions(quantile, threshold, classes, positive)
    checked_loss(loss, options)
    chosen = models(prediction, classes)
    needed = [truth, *(name for names in chosen.values() for name in names)]
    require_columns(predictions, needed)
    if lazy:
        ask = partial(
            losses, truth=truth, prediction=prediction, loss=loss, quantile=quantile,
            threshold=threshold, classes=classes, positive=positive,
        )  # fmt: skip
        return dask.mapped(predictions, ask, needed, [*map(str, chosen)])
    if isinstance(predictions, pd.DataFrame):
        predictions = levelled(predictions, needed)
    values: dict[Hashable, Any] = {}
    for model, columns in chosen.items():
        if isinstance(predictions, pd.DataFrame):
            values[model] = of_frame(predictions, truth, columns, loss, options)
        else:
            values[model] = of_dataset(predictions, truth, columns, loss, options)
    several = classes is None and not single(prediction)
    named: dict[Hashable | None, Any] = {"loss": loss_name(loss)}
    if not several and not isinstance(prediction, Mapping):
        ((name, only),) = values.items()
        only = only.rename(name)
        if isinstance(only, pd.Series):
            only.attrs = named
        return only
    if isinstance(predictions, xr.Dataset):
        return xr.Dataset(values)
    table = pd.DataFrame(values, index=predictions.index)
    table.attrs = named
    return table


def require_columns(predictions: pd.DataFrame | xr.Dataset, names: Iterable[Hashable]) -> None:
    """Refuse a name that no column has, or several have."""
    dataset = isinstance(predictions, xr.Dataset)
    have = list(predictions.variables if dataset else predictions.columns)
    for name in names:
        if not is_name(name) or name not in have:
            raise LogError(
                f"there is no column {name!r}. Expected truth and prediction among "
                f"{listed(map(repr, predictions))}; name them with truth= and prediction=."
                f"{nearest(name, have)}"
            )
        if have.count(name) > 1:
            raise LogError(f"several columns are called {name!r}. Expected one. Rename them.")


def single(name: Any) -> bool:
    """Whether this is the name of one column and not a collection of names."""
    text = isinstance(name, (str, bytes))
    return text or not isinstance(name, Iterable) or getattr(name, "ndim", 1) == 0


def is_name(name: object) -> bool:
    """Whether something can be the name of a column: no list, and not pandas' NA."""
    return isinstance(name, Hashable) and name is not pd.NA


def models(prediction: Any, classes: Sequence[Hashable] | None) -> dict[Hashable, list[Hashable]]:
    """Find the columns of each model."""
    chosen: dict[Hashable, list[Hashable]]
    if isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if single(columns) else list(columns)
            for name, columns in prediction.items()
        }
    elif classes is not None and not single(prediction):
        chosen = {"model": list(prediction)}
    else:
        names = [prediction] if single(prediction) else list(prediction)
        chosen = {name: [name] for name in names if is_name(name)}
        if len(chosen) < len(names):
            raise LogError(f"prediction={prediction!r} names no columns, or one of them twice.")
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
