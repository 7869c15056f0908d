"""xarray objects to plain variables and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.errors import LogError
from cvstats.io.encoding import decode, encode, from_plain, to_plain
from cvstats.io.words import needed

__all__ = ["apart", "foreign", "of_columns", "to_columns", "together"]

ROWS = "evaluation"
ALONE = "losses"
"""The name of the variable of a DataArray."""


def of_columns(columns: dict[str, Any], levels: list[str]) -> xr.Dataset:
    """Lay columns along one dimension, the levels as coordinates."""
    variables = {name: ((ROWS,), stored(values)) for name, values in columns.items()}
    return xr.Dataset(
        {name: v for name, v in variables.items() if name not in levels},
        coords={name: variables[name] for name in levels},
    )


def to_columns(dataset: xr.Dataset) -> dict[str, Any]:
    """Undo `of_columns`."""
    return {str(name): v.values for name, v in dataset.variables.items() if v.dims == (ROWS,)}


def stored(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Store truth values as small integers: NetCDF has none of its own."""
    return values.astype(np.int8) if values.dtype == bool else values


def apart(log: xr.DataArray | xr.Dataset) -> tuple[xr.Dataset, dict[str, Any]]:
    """Take an xarray object apart: plain variables, and the note that puts them together."""
    whole = log.to_dataset(name=ALONE) if isinstance(log, xr.DataArray) else log
    multi: dict[str, list[str]] = {}
    for name, index in whole.indexes.items():
        if isinstance(index, pd.MultiIndex) and name in whole.dims:
            multi[str(name)] = [str(level) for level in index.names]
    flat = whole.reset_index(list(multi)) if multi else whole
    notes: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    for name, variable in flat.variables.items():
        if not isinstance(name, str) or "/" in name or not name:
            raise LogError(f"a variable is called {name!r}. Expected text, for a file.")
        if variable.chunks is not None:
            raise LogError("this object is lazy (dask). Expected one in memory: log.compute().")
        if name in multi:
            continue
        array, note = encode(variable.values.reshape(-1), repr(name))
        attrs = to_plain(dict(variable.attrs), f"an attribute of {name!r}")
        variables[name] = (variable.dims, stored(array).reshape(variable.shape), natural(attrs))
        notes[name] = {"attrs": attrs, "coord": name in flat.coords, **note}
    header = {
        "object": type(log).__name__ if isinstance(log, xr.Dataset) else "DataArray",
        "name": to_plain(log.name) if isinstance(log, xr.DataArray) else None,
        "dims": [str(dim) for dim in log.dims],
        "multi": multi,
        "variables": notes,
        "attrs": to_plain(dict(log.attrs), "an entry of attrs"),
    }
    return xr.Dataset(variables, attrs=natural(header["attrs"])), header


def natural(attrs: Any) -> dict[str, Any]:
    """Keep the attributes that other programs can read as well."""
    kept = {
        name: value
        for name, value in attrs.items()
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    }
    return {
        name: value
        for name, value in kept.items()
        if name not in ("_FillValue", "scale_factor", "add_offset", "dtype", "coordinates")
        and (not isinstance(value, int) or abs(value) < 2**63)
        and (not isinstance(value, str) or len(value) < 10_000)
    }


def together(dataset: xr.Dataset, notes: dict[str, Any]) -> xr.DataArray | xr.Dataset:
    """Undo `apart`."""
    variables: dict[str, xr.Variable] = {}
    for name, note in notes["variables"].items():
        if name not in dataset.variables:
            raise LogError(f"the variable {name!r} is gone. Expected a saved log.")
        stored = dataset.variables[name]
        values = np.asarray(decode(stored.values.reshape(-1), note)).reshape(stored.shape)
        if note["kind"] in ("text", "json"):
            numpy_text = str(note["dtype"]).startswith(("<U", ">U"))
            values = values.astype(note["dtype"]) if numpy_text else values.astype(object)
        variables[name] = xr.Variable(stored.dims, values, from_plain(note["attrs"]))
    coords: dict[str, Any] = {
        name: variable for name, variable in variables.items() if notes["variables"][name]["coord"]
    }
    data = {name: variable for name, variable in variables.items() if name not in coords}
    whole = xr.Dataset(data, coords=coords)
    for dim, levels in notes["multi"].items():
        whole = whole.set_index({dim: levels})
    whole.attrs = from_plain(notes["attrs"])
    if notes["object"] == "Dataset":
        return whole
    one = whole[ALONE].rename(from_plain(notes["name"])).transpose(*notes["dims"])
    one.attrs = whole.attrs
    return one


def foreign(dataset: xr.Dataset) -> xr.DataArray | xr.Dataset:
    """Take a dataset that something else wrote; one variable is a DataArray."""
    if any("compress" in v.attrs for v in dataset.variables.values()):
        dataset = needed("cf_xarray", "a compressed MultiIndex").decode_compress_to_multi_index(
            dataset
        )
    names = list(dataset.data_vars)
    if not names:
        raise LogError("the file has no variables. Expected one of losses for each model.")
    return dataset[names[0]] if len(names) == 1 else dataset
