"""The data of an experiment, in whatever container: rows of it, truth, sources and point labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import IntArray
from cvstats.errors import LogError, spelled

INDEXED_BY_ROW = ("csr", "csc", "lil")
"""Formats of sparse arrays that can be indexed by row."""


@dataclass(frozen=True, eq=False)
class Values:
    """The arrays that a fit needs.

    Parameters
    ----------
    X : array, sparse array, DataFrame or list
        A row for each point.
    y : array or Series
        The target as it came, to train on.
    truth : array, shape (n,)
        The target as plain numbers or labels, to compute losses with.
    """

    X: Any
    y: Any
    truth: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Data:
    """The data of an experiment, with labels of points and sources.

    Parameters
    ----------
    values : Values
        The data themselves.
    point : Index
        A label for each point.
    source : Index, optional
        The source of each point.
    """

    values: Values
    point: pd.Index
    source: pd.Index | None

    @property
    def truth(self) -> NDArray[Any]:
        """The target as plain numbers or labels."""
        return self.values.truth


def take_rows(values: Any, rows: IntArray) -> Any:
    """Take some rows, repeats included, of data of any kind."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "shape"):
        return values[rows]
    return [values[row] for row in rows.tolist()]


def target_array(values: Any) -> NDArray[Any]:
    """Convert a target to an array of numbers or labels."""
    if isinstance(values, pd.Series):
        dtype = values.dtype
        if pd.api.types.is_numeric_dtype(dtype) and not isinstance(dtype, np.dtype):
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(values.to_numpy())
    return np.asarray(values)


def read_data(X: Any, y: Any, groups: Any, point: Any) -> Data:
    """Check that data, target, groups and labels belong together.

    Raises
    ------
    LogError
        If their lengths or their indexes differ, a target is missing, or a label is a duplicate.
    """
    shape = getattr(X, "shape", None)
    if isinstance(X, (str, Mapping)) or (shape is None and not isinstance(X, Sequence)):
        raise LogError(f"X is a {type(X).__name__}. Expected an array or a DataFrame.")
    if shape == ():
        raise LogError("X is a single number. Expected an array or a DataFrame.")
    n = int(shape[0]) if shape else len(X)
    if n == 0:
        raise LogError("X is empty. Expected a row for each point.")
    for name, values in {"y": y, "groups": groups, "point": point}.items():
        if values is not None:
            check_length(name, values, n)
            check_index(name, X, values)
    truth = target_array(y)
    missing = np.flatnonzero(pd.isna(truth))
    if len(missing):
        raise LogError(
            f"y is missing (NaN) in row {missing[0]:,}, and {len(missing) - 1:,} more. Expected "
            f"the truth of every point. Leave these rows out of X and y."
        )
    labels = point_labels(X, point, n)
    source = None if groups is None else label_index(groups)
    check_labels(labels, source)
    if hasattr(X, "tocsr") and X.format not in INDEXED_BY_ROW:
        X = X.tocsr()
    return Data(Values(contiguous(X), contiguous(y), truth), labels, source)


def check_length(name: str, values: Any, n: int) -> None:
    """Raise unless there is one value for each point."""
    shape = getattr(values, "shape", None)
    if shape is None:
        shape = (len(values),) if isinstance(values, Sized) else ()
    if not shape:
        raise LogError(
            f"{name} is a {type(values).__name__}. Expected one value for each of {n:,} rows of X."
        )
    if tuple(shape) != (n,):
        raise LogError(
            f"{name} has the shape {tuple(shape)} and X has {n:,} rows. Expected one value for "
            f"each row of X."
        )


def check_index(name: str, X: Any, values: Any) -> None:
    """Raise where values have another index than X: which belongs to which is then a guess."""
    pandas = isinstance(X, (pd.DataFrame, pd.Series)) and isinstance(values, pd.Series)
    if pandas and not X.index.equals(values.index):
        raise LogError(
            f"the index of {name} is not that of X. Expected the same labels in the same order: "
            f"{name}.loc[X.index]. If only the order of the rows counts, pass {name}.to_numpy()."
        )


def label_index(labels: Any) -> pd.Index:
    """Make an index of labels, tuples kept as they are."""
    one_dimensional = isinstance(labels, (pd.Series, np.ndarray, pd.Index))
    if one_dimensional and not isinstance(labels, pd.MultiIndex):
        index: pd.Index = pd.Index(labels).rename(None)
    else:
        index = pd.Index(list(labels), tupleize_cols=False)
    return index


def point_labels(X: Any, point: Any, n: int) -> pd.Index:
    """Label the points: by ``point``, or the index of X, or the number of the row."""
    if point is not None:
        return label_index(point)
    if isinstance(X, (pd.DataFrame, pd.Series)):
        return label_index(X.index)
    return pd.RangeIndex(n)


def check_labels(point: pd.Index, source: pd.Index | None) -> None:
    """Raise unless every point has a label, a different one within its source."""
    for name, labels in {"point": point, "groups": source}.items():
        if labels is not None and labels.hasnans:
            at = int(np.flatnonzero(labels.isna())[0])
            raise LogError(f"{name} has no label (NaN) in row {at:,}. Expected one for each row.")
    scope: list[Any] = [point] if source is None else [source, point]
    again = np.flatnonzero(
        pd.MultiIndex.from_arrays([pd.factorize(s)[0] for s in scope]).duplicated()
    )
    if len(again):
        label: Hashable = point[int(again[0])]
        raise LogError(
            f"the label {spelled(label)} is a duplicate in row {again[0]:,}. Expected a label of "
            f"its own for each point. Pass labels as point=, or number the rows: "
            f"X.reset_index(drop=True), y.reset_index(drop=True)."
        )


def contiguous(values: Any) -> Any:
    """Copy an array that is not contiguous, so that fits in every process get the same one."""
    if type(values) is np.ndarray and not (values.flags.c_contiguous or values.flags.f_contiguous):
        return np.ascontiguousarray(values)
    return values
