"""Names of tasks: two tasks have one name only if they do the same to the same.

dask computes one of several tasks of one name and hands its answer to all who asked. So a name
depends on all that the answer depends on, and so do the words of a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray


class Named:
    """Something that a task is given, whose name contains all of its fields."""

    def __dask_tokenize__(self) -> Any:
        """Write all fields out."""
        return written(self)


def token_of(*things: object) -> str:
    """Give things a short name: the same for equal things, and another for any others."""
    from dask.base import tokenize

    token: str = tokenize([written(thing) for thing in things])
    return token


def written(thing: Any) -> Any:
    """Write out what dask's own tokens pass over, and leave the rest to dask.

    They tell apart neither two orders of a mapping, nor a square table and its transpose, nor
    the texts ``"a-b", "c"`` and ``"a", "b-c"``.
    """
    if isinstance(thing, np.ndarray):
        return of_array(thing)
    if isinstance(thing, pd.Index):
        return of_index(thing)
    if isinstance(thing, xr.DataArray | xr.Variable) and thing.chunks is None:
        known = thing.coords if isinstance(thing, xr.DataArray) else {}
        coords = {name: coord.variable for name, coord in known.items()}
        return ["labelled", thing.dims, of_array(thing.values), written(coords),
                written(thing.attrs)]  # fmt: skip
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = [written(getattr(thing, field.name)) for field in fields(thing)]
        return [type(thing).__qualname__, *parts]
    if isinstance(thing, Mapping):
        return ["mapping", *([written(key), written(value)] for key, value in thing.items())]
    if isinstance(thing, list | tuple):
        return [type(thing).__name__, *map(written, thing)]
    if isinstance(thing, partial):
        return ["partial", thing.func, written(thing.args), written(thing.keywords)]
    return thing


def of_array(values: NDArray[Any]) -> Any:
    """Write out an array: in one order of memory, and texts so that none runs into the next."""
    if not values.flags.c_contiguous:
        values = values.copy(order="C")
    if values.dtype != object:
        return values
    things = values.reshape(-1).tolist()
    try:
        text = "\0".join(things)
    except TypeError:  # not all of them are texts
        return values
    if text.count("\0") >= max(len(things), 1):
        return ["texts", values.shape, things]
    return ["text", values.shape, np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)]


def of_index(index: pd.Index) -> Any:
    """Write out labels, with the names of their levels."""
    if isinstance(index, pd.MultiIndex):
        return ["levels", *map(written, (list(index.names), *index.levels, *index.codes))]
    if isinstance(index, pd.CategoricalIndex):
        return ["categories", index.name, of_index(index.categories), index.codes, index.ordered]
    if index.dtype == object or isinstance(index.dtype, pd.StringDtype):
        return ["index", index.name, str(index.dtype), of_array(index.to_numpy(dtype=object))]
    return index
