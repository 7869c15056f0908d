"""Moments in one file, and back: arrays and plain text, never pickled objects."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from functools import reduce
from io import BytesIO
from operator import add
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.errors import LogError, NoSuchFile, listed
from cvstats.large.moments import CellMoments, LabeledCells, SharedAttrs
from cvstats.log.log import Labels
from cvstats.log.pandas import FrameLabels
from cvstats.log.sketches import PointSketch, as_index
from cvstats.log.xarray import ArrayLabels

M = TypeVar("M", bound=CellMoments)

FORMAT = "cvstats moments 4"

NUMBERS = ("codes", "count", "mean", "m2", "origin")

PLAIN = ("string", "integer", "floating", "boolean", "empty")


def save(part: CellMoments, path: str | os.PathLike[str]) -> None:
    """Write moments to a file of numpy, which is there whole or not at all."""
    target = checked_path(path)
    arrays: dict[str, Any] = {}
    head: dict[str, Any] = {
        "format": FORMAT,
        "labels": write_columns(part.labels),
        "notes": [write_plain(part.notes.shared), part.notes.mixed],
        "sketch": None if part.sketch is None else part.sketch.limit,
    }
    head |= {
        name: getattr(part, name) for name in ("pairs", "pointed", "batches", "dropped", "within")
    }
    head["doubt"] = int(part.doubt)
    tables = {"cells": part.table.cells, "planned": None}
    prints = {"cells": part.table.prints, "planned": None}
    if part.planned:
        planned = reduce(add, reversed(part.planned))
        tables["planned"], prints["planned"] = planned.cells, planned.prints
    for name, found in tables.items():
        if found is not None:
            head[name] = [found.levels, [write_labels(names) for names in found.labels]]
            arrays |= {f"{name}_{number}": getattr(found, number) for number in NUMBERS}
            if prints[name] is not None:
                arrays[f"{name}_prints"] = prints[name]
    if part.sketch is not None:
        arrays["hashes"] = part.sketch.hashes
    arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    unfinished = target.with_name(f"{target.name}.part{uuid4().hex}")  # one of this call's own
    try:
        with unfinished.open("xb") as file:
            np.savez(file, **arrays)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def load(kind: type[M], path: str | os.PathLike[str]) -> M:
    """Read moments from a file of `save`."""
    source = checked_path(path)
    if not source.is_file():
        raise NoSuchFile(f"there is no file {os.fspath(path)!r}. Expected one of Moments.save.")
    try:
        arrays = read_arrays(source)
        head = json.loads(arrays["head"].tobytes())
        if head["format"] != FORMAT:
            raise ValueError(head["format"])
        sketch = head["sketch"]
        return kind(
            (read_moments(arrays, "cells", head),), read_columns(head["labels"]), head["pairs"],
            head["pointed"], head["batches"], head["dropped"],
            SharedAttrs(read_plain(head["notes"][0]), tuple(head["notes"][1])),
            head["within"], Caution(head["doubt"]),
            None if sketch is None else PointSketch(arrays["hashes"], sketch),
            (read_moments(arrays, "planned", head),) if "planned" in head else (),
        )  # fmt: skip
    except Exception as error:  # a file of anything else fails in any way
        raise LogError(
            f"{os.fspath(path)!r} does not hold moments, or is damaged. Expected a file that "
            f"Moments.save of this version of cvstats wrote."
        ) from error


def checked_path(path: object) -> Path:
    """Refuse what is not a path."""
    if not isinstance(path, str | os.PathLike):
        raise LogError(
            f"{path!r} is not a path. Expected the name of a file, as in "
            f"Moments.load('moments.npz')."
        )
    return Path(os.fsdecode(path))


def read_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of a file; what it unpacks to is never larger than the file itself."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        sizes = [entry.file_size for entry in archive.infolist()]
        if sum(sizes) > path.stat().st_size:
            raise ValueError("compressed")
        for entry in archive.infolist():
            content = BytesIO(archive.read(entry))
            np.lib.format.read_magic(content)
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(content)
            values = np.frombuffer(content.read(), dtype=dtype)  # refuses objects
            arrays[entry.filename.removesuffix(".npy")] = values.reshape(
                shape, order="F" if by_columns else "C"
            )
    return arrays


def read_moments(arrays: Mapping[str, Any], name: str, head: Mapping[str, Any]) -> LabeledCells:
    """Put the moments of cells together again."""
    levels, labels = head[name]
    found = Moments(
        tuple(levels), tuple(map(read_labels, labels)), *(arrays[f"{name}_{n}"] for n in NUMBERS)
    )
    cells, columns = found.mean.shape
    shapes = [(cells, len(levels)), (cells,), (cells, columns), (cells, columns), (columns,)]
    if [getattr(found, number).shape for number in NUMBERS] != shapes:
        raise ValueError("shapes")
    if (found.codes < 0).any() or (found.codes >= list(map(len, found.labels))).any():
        raise ValueError("codes")
    return LabeledCells(found, arrays.get(f"{name}_prints"))


def write_labels(labels: Any) -> dict[str, Any]:
    """Write labels of one type as plain values and their dtype."""
    index, values = as_index(labels), list(labels)
    written: dict[str, Any] | None = None
    if isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex | pd.PeriodIndex):
        written = {"dtype": str(index.dtype), "values": index.astype("int64").tolist()}
    elif pd.api.types.infer_dtype(index, skipna=False) in PLAIN or values == [None]:
        written = {"values": index.tolist()}
    elif values and all(isinstance(label, tuple) for label in values):
        written = {"tuples": [write_labels(part) for part in zip(*values, strict=True)]}
    try:
        if written is not None and index.equals(as_index(read_labels(written))):
            return written
    except (TypeError, ValueError):
        pass
    raise LogError(
        f"labels that cannot be written to a file: {listed(map(repr, values[:3]), len(values))}. "
        f"Expected text, numbers or times, all of one type, or tuples of these. Give the level "
        f"labels of text before you compute moments."
    )


def read_labels(written: Mapping[str, Any]) -> tuple[Any, ...]:
    """Read labels."""
    if "tuples" in written:
        return tuple(zip(*map(read_labels, written["tuples"]), strict=True))
    values = written["values"]
    if "dtype" not in written:
        return tuple(values)
    dtype = pd.api.types.pandas_dtype(written["dtype"])
    numbers = np.array(values, dtype=np.int64)
    if isinstance(dtype, pd.PeriodDtype):
        frequency = written["dtype"].removeprefix("period[").removesuffix("]")
        return tuple(pd.Period(ordinal=number, freq=frequency) for number in values)
    if isinstance(dtype, pd.DatetimeTZDtype):
        times = pd.DatetimeIndex(numbers.view(f"M8[{dtype.unit}]"), tz="UTC")
        return tuple(times.tz_convert(dtype.tz))
    return tuple(pd.Index(numbers.view(written["dtype"])))


def write_columns(labels: Labels) -> dict[str, Any]:
    """Write the names of models and of carried dimensions."""
    models = write_labels(labels.models)
    if isinstance(labels, FrameLabels):
        axis = labels.columns_axis
        return {"models": models, "names": None if axis is None else list(axis.names)}
    if not isinstance(labels, ArrayLabels):
        raise TypeError(f"no way to write labels of {type(labels).__name__}")
    coords = []
    for name, coord in labels.coords.items():
        array = coord if isinstance(coord, xr.DataArray) else xr.DataArray(coord[1], dims=coord[0])
        if isinstance(array.indexes.get(name), pd.MultiIndex):
            raise LogError(
                f"the coordinate {name!r} has several levels, which a file of moments does not "
                f"hold. Expected plain coordinates. Type log.reset_index({name!r}) first."
            )
        values = write_labels(pd.Index(array.values.reshape(-1), tupleize_cols=False))
        attrs = write_plain(SharedAttrs.of(array.attrs).shared)
        coords.append([name, array.dims, array.shape, values, attrs])
    rest = {name: getattr(labels, name) for name in ("dims", "sizes", "model_dim", "units")}
    return {"models": models, "coords": coords, **rest}


def read_columns(written: Mapping[str, Any]) -> Labels:
    """Read the names of models and of carried dimensions."""
    models = list(read_labels(written["models"]))
    if "coords" not in written:
        names = written["names"]
        if names is None:
            return FrameLabels(models, None)
        if len(names) > 1:
            return FrameLabels(models, pd.MultiIndex.from_tuples(models, names=names))
        return FrameLabels(models, pd.Index(models, name=names[0], tupleize_cols=False))
    coords = {
        name: (dims, np.asarray(pd.Index(read_labels(values))).reshape(shape), read_plain(attrs))
        for name, dims, shape, values, attrs in written["coords"]
    }
    placed = xr.Dataset(coords=coords).coords
    return ArrayLabels(
        models, tuple(written["dims"]), {name: placed[name] for name in coords},
        tuple(written["sizes"]), written["model_dim"], written["units"],
    )  # fmt: skip


def write_plain(value: Any) -> Any:
    """Write plain values as JSON, whose mappings have texts for keys, and no tuples."""
    if isinstance(value, Mapping):
        return {"pairs": [[write_plain(key), write_plain(entry)] for key, entry in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [write_plain(entry) for entry in value]}
    return [write_plain(entry) for entry in value] if isinstance(value, list) else value


def read_plain(written: Any) -> Any:
    """Read plain values."""
    if isinstance(written, dict) and "pairs" in written:
        return {read_plain(key): read_plain(entry) for key, entry in written["pairs"]}
    if isinstance(written, dict):
        return tuple(map(read_plain, written["tuple"]))
    return list(map(read_plain, written)) if isinstance(written, list) else written
