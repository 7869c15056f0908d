"""Moments in one small file, and back: arrays and plain text, never pickled objects."""

from __future__ import annotations

import datetime
import json
import os
import zipfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.containers.arrays import ArrayLabels
from cvstats.containers.frames import FrameLabels
from cvstats.containers.kept.batches import Kept
from cvstats.containers.kept.met import ALL, Met
from cvstats.containers.kept.notes import Notes
from cvstats.containers.log import Labels
from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.errors import LogError, NoSuchFile

__all__ = ["load", "save"]

FORMAT = "cvstats moments 1"

FOREIGN = ValueError, KeyError, EOFError, AttributeError, TypeError, IndexError
"""What reading a file that holds something else may raise."""

K = TypeVar("K", bound=Kept)


def save(part: Kept, path: str | os.PathLike[str]) -> None:
    """Write moments to a file, which is there whole or not at all."""
    arrays: dict[str, Any] = {}
    told = {
        "format": FORMAT,
        "cells": put_moments(arrays, "cells", part.cells),
        "gaps": None if part.gaps is None else put_moments(arrays, "gaps", part.gaps),
        "labels": put_labels(arrays, part.labels),
        "pointed": part.pointed,
        "batches": part.batches,
        "dropped": part.dropped,
        "notes": {name: spelled_out(value) for name, value in part.notes.shared.items()},
        "mixed": list(part.notes.mixed),
        "within": part.within,
        "doubt": int(part.doubt),
    }
    if part.prints is not None:
        arrays["prints"] = part.prints
    if part.met is not None:
        arrays["met"] = part.met.hashes
        told["limit"] = part.met.limit
    arrays["told"] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    target = path_of(path)
    unfinished = target.with_name(f"{target.name}.part{uuid4().hex}")  # one of this call's own
    try:
        with unfinished.open("xb") as file:
            np.savez(file, **arrays)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def load(kind: type[K], path: str | os.PathLike[str]) -> K:
    """Read moments from a file."""
    path = path_of(path)
    if not path.is_file():
        raise NoSuchFile(f"there is no file {os.fspath(path)!r}. Expected one of Moments.save.")
    words = LogError(
        f"{os.fspath(path)!r} does not hold moments. Expected a file that Moments.save wrote."
    )
    try:
        with np.load(path, allow_pickle=False) as file:
            return kept_in(kind, {name: file[name] for name in file.files})
    except (*FOREIGN, zipfile.BadZipFile) as error:
        raise words from error


def kept_in(kind: type[K], arrays: Mapping[str, Any]) -> K:
    """Put moments together again; what was not written by `save` fails in one of many ways."""
    told = json.loads(arrays["told"].tobytes().decode())
    if told["format"] != FORMAT:
        raise ValueError(told["format"])
    gaps = None if told["gaps"] is None else get_moments(arrays, "gaps", told["gaps"])
    return kind(
        get_moments(arrays, "cells", told["cells"]), get_labels(arrays, told["labels"]),
        told["pointed"], arrays.get("prints"), gaps, told["batches"], told["dropped"],
        Notes({name: read_out(value) for name, value in told.get("notes", {}).items()},
              tuple(told.get("mixed", ()))),
        told.get("within", ""), Caution(told.get("doubt", 0)),
        Met(arrays["met"], told.get("limit", ALL)) if "met" in arrays else None,
    )  # fmt: skip


def path_of(path: object) -> Path:
    """Refuse what is no path."""
    if not isinstance(path, str | os.PathLike):
        raise LogError(
            f"{path!r} is no path. Expected the name of a file, as in Moments.load('moments.npz')."
        )
    return Path(os.fsdecode(path))


def put_moments(arrays: dict[str, Any], name: str, found: Moments) -> dict[str, Any]:
    """Put numbers into arrays and names into text."""
    for entry in ("codes", "count", "mean", "m2"):
        arrays[f"{name}_{entry}"] = getattr(found, entry)
    labels = [[spelled_out(label) for label in names] for names in found.labels]
    return {"levels": list(found.levels), "labels": labels}


def get_moments(arrays: Mapping[str, Any], name: str, told: Mapping[str, Any]) -> Moments:
    """Put them together again."""
    labels = tuple(tuple(map(read_out, names)) for names in told["labels"])
    numbers = (arrays[f"{name}_{entry}"] for entry in ("codes", "count", "mean", "m2"))
    return Moments(tuple(told["levels"]), labels, *numbers)


def put_labels(arrays: dict[str, Any], labels: Labels) -> dict[str, Any]:
    """Write down the names of the columns."""
    models = [spelled_out(model) for model in labels.models]
    if isinstance(labels, FrameLabels):
        axis = labels.columns_axis
        names = None if axis is None else [spelled_out(name) for name in axis.names]
        return {"kind": "frame", "models": models, "names": names}
    if not isinstance(labels, ArrayLabels):
        raise TypeError(f"no way to write labels of {type(labels).__name__}")
    coords = []
    for at, (name, coord) in enumerate(labels.coords.items()):
        array = coord if isinstance(coord, xr.DataArray) else xr.DataArray(coord[1], dims=coord[0])
        if isinstance(array.indexes.get(name), pd.MultiIndex):
            raise LogError(
                f"the coordinate {name!r} has several levels, and a file of moments holds none "
                f"such. Expected plain coordinates. Type log.reset_index({name!r}) first."
            )
        values = array.values
        told: dict[str, Any] = {"name": name, "dims": list(array.dims), "attrs": noted(array.attrs)}
        if values.dtype.kind in "biufUMm":
            arrays[f"coord_{at}"] = values.astype(values.dtype.str)  # drops notes on the type
        else:
            told["values"] = [spelled_out(value) for value in values.reshape(-1).tolist()]
            told["shape"] = list(values.shape)
        coords.append(told)
    return {
        "kind": "array", "models": models, "dims": list(labels.dims), "coords": coords,
        "sizes": list(labels.sizes), "model_dim": labels.model_dim, "units": labels.units,
    }  # fmt: skip


def get_labels(arrays: Mapping[str, Any], told: Mapping[str, Any]) -> Labels:
    """Make the names of the columns again."""
    models: list[Hashable] = [read_out(model) for model in told["models"]]
    if told["kind"] == "frame":
        if told["names"] is None:
            return FrameLabels(models, None)
        names = [read_out(name) for name in told["names"]]
        if len(names) > 1:
            tuples = [model for model in models if isinstance(model, tuple)]
            return FrameLabels(models, pd.MultiIndex.from_tuples(tuples, names=names))
        return FrameLabels(models, pd.Index(models, name=names[0], tupleize_cols=False))
    coords = {}
    for at, entry in enumerate(told["coords"]):
        values = arrays.get(f"coord_{at}")
        if values is None:
            values = np.empty(len(entry["values"]), dtype=object)
            values[:] = [read_out(value) for value in entry["values"]]
            values = values.reshape(entry["shape"])
        coords[entry["name"]] = (tuple(entry["dims"]), values, entry["attrs"])
    placed = xr.Dataset(coords=coords).coords
    return ArrayLabels(
        models, tuple(told["dims"]), {name: placed[name] for name in coords},
        tuple(told["sizes"]), told["model_dim"], told["units"],
    )  # fmt: skip


def noted(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Keep the attrs that plain text can hold."""
    return {
        str(name): value for name, value in attrs.items() if isinstance(value, str | int | float)
    }


def spelled_out(label: Any) -> Any:
    """Write a label as plain text or numbers, with its type where these do not tell it."""
    if isinstance(label, np.datetime64 | np.timedelta64):
        label = pd.Timestamp(label) if isinstance(label, np.datetime64) else pd.Timedelta(label)
    elif isinstance(label, np.generic):
        label = label.item()
    plain = label is None or (isinstance(label, int | str) and not isinstance(label, bool))
    if plain:
        return label
    for kind, (tag, write, _) in KINDS.items():
        if isinstance(label, kind):
            return [tag, write(label)]
    raise LogError(
        f"a label of type {type(label).__name__} cannot be written to a file: {label!r}. Expected "
        f"text, numbers, dates, or tuples of these. Name the labels by text before you sum up."
    )


def read_out(written: Any) -> Any:
    """Read a label."""
    if not isinstance(written, list):
        return written
    tag, value = written
    return READ[tag](value)


KINDS: dict[type, tuple[str, Any, Any]] = {
    bool: ("bool", bool, bool),
    float: ("float", float.hex, float.fromhex),
    pd.Timestamp: (
        "timestamp",
        lambda t: [t.tz_convert(None).isoformat() if t.tz else t.isoformat(),
                   str(t.tz) if t.tz else None],
        lambda w: pd.Timestamp(w[0]) if w[1] is None
        else pd.Timestamp(w[0]).tz_localize("UTC").tz_convert(w[1]),
    ),
    pd.Timedelta: ("timedelta", lambda t: t.isoformat(), pd.Timedelta),
    pd.Period: ("period", lambda p: [p.ordinal, p.freqstr],
                lambda w: pd.Period(ordinal=w[0], freq=w[1])),
    pd.Interval: (
        "interval",
        lambda i: [spelled_out(i.left), spelled_out(i.right), i.closed],
        lambda w: pd.Interval(read_out(w[0]), read_out(w[1]), w[2]),
    ),
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    list: ("list", lambda parts: [spelled_out(part) for part in parts],
           lambda parts: list(map(read_out, parts))),
    dict: ("mapping", lambda pairs: [[spelled_out(k), spelled_out(v)] for k, v in pairs.items()],
           lambda pairs: {read_out(k): read_out(v) for k, v in pairs}),
    tuple: ("tuple", lambda parts: [spelled_out(part) for part in parts],
            lambda parts: tuple(map(read_out, parts))),
    frozenset: ("set", lambda parts: [spelled_out(part) for part in parts],
                lambda parts: frozenset(map(read_out, parts))),
}  # fmt: skip
"""For each type of label its name in the file, how it is written and how it is read."""

READ = {tag: read for tag, _, read in KINDS.values()}
