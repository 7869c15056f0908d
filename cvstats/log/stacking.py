"""Labels for stacked results: by part of a log, by assumed value."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.results import Result
from cvstats.log.log import Attrs, Labels, Log, Table
from cvstats.log.pandas import FrameLabels, body, named_rows
from cvstats.log.xarray import ArrayLabels

Axis = tuple[str, Sequence[Hashable]]
"""A name, and a label for each of the stacked results."""


def label_stacked(log: Log, axes: Sequence[Axis], result: Result) -> Table:
    """Label a result that holds, for each combination of labels, a number for each column."""
    return stacked(log.labels, axes, *log.completed(result))


def label_stacked_pairs(
    log: Log, axis: Axis, pairs: Sequence[tuple[Hashable, Hashable]], result: Result
) -> Any:
    """Label a result that holds, for each label, a number for each pair of models."""
    name, labels = axis
    if not isinstance(log.labels, (FrameLabels, ArrayLabels)):
        raise TypeError(f"no way to stack the labels of {type(log.labels).__name__}")
    result, attrs = log.completed(result)
    if isinstance(log.labels, FrameLabels):
        every = [pair for _ in labels for pair in pairs]
        table = log.labels.pairs(every, result, attrs)
        first = pd.Index(list(labels), name=name, tupleize_cols=False).repeat(len(pairs))
        levels = [first, *(table.index.get_level_values(i) for i in range(2))]
        return table.set_axis(pd.MultiIndex.from_arrays(levels), axis=0)
    shape = log.labels
    wider = ArrayLabels(
        shape.models, (name, *shape.dims),
        {**shape.coords, name: pd.Index(list(labels), name=name, tupleize_cols=False)},
        (len(labels), *shape.sizes),
        None if shape.model_dim is None else shape.model_dim + 1, shape.units,
    )  # fmt: skip

    def by_pair(values: NDArray[Any]) -> NDArray[Any]:
        """Put the pairs before the labels."""
        return values.reshape(len(labels), len(pairs), -1).swapaxes(0, 1).reshape(-1)

    columns = {key: by_pair(values) for key, values in result.columns.items()}
    return wider.pairs(
        pairs, replace(result, columns=columns, caution=by_pair(result.caution)), attrs
    )


@singledispatch
def stacked(labels: Labels, axes: Sequence[Axis], result: Result, attrs: Attrs) -> Table:
    """Add the axes to what the container's labels say; one implementation for each kind."""
    raise TypeError(f"no way to stack the labels of {type(labels).__name__}")


@stacked.register
def _(labels: FrameLabels, axes: Sequence[Axis], result: Result, attrs: Attrs) -> pd.DataFrame:
    """Make an index level of each axis, the models last."""
    parts = [pd.Index(list(names), name=name, tupleize_cols=False) for name, names in axes]
    models = labels.columns_axis
    if models is not None:
        rows = named_rows(models)
        levels = [rows.get_level_values(i) for i in range(rows.nlevels)]
    sizes = [len(part) for part in parts] + ([] if models is None else [len(models)])
    at = np.unravel_index(np.arange(int(np.prod(sizes))), sizes)
    columns = [part.take(codes) for part, codes in zip(parts, at, strict=False)]
    if models is not None:
        columns += [level.take(at[-1]) for level in levels]
    index = columns[0] if len(columns) == 1 else pd.MultiIndex.from_arrays(columns)
    return body(result, index, attrs)


@stacked.register
def _(labels: ArrayLabels, axes: Sequence[Axis], result: Result, attrs: Attrs) -> xr.Dataset:
    """Make a dimension of each axis, before those that are carried through."""
    coords: dict[Hashable, Any] = {
        name: pd.Index(list(names), name=name, tupleize_cols=False) for name, names in axes
    }
    wider = ArrayLabels(
        labels.models, (*(name for name, _ in axes), *labels.dims), {**labels.coords, **coords},
        (*(len(names) for _, names in axes), *labels.sizes), labels.model_dim, labels.units,
    )  # fmt: skip
    return wider.table(result, attrs)
