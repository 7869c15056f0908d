"""Write a log to a file that `cvstats.read_log` can read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.errors import LogError, describe_type
from cvstats.io.as_log import Coded, factorize, make_multi_index
from cvstats.io.paths import SUFFIXES, is_store, one_line, shortened
from cvstats.io.text import VERSION, Columns, Header, SavedColumns
from cvstats.log.plain import Note, from_plain, pack, replacing, to_plain, unpack
from cvstats.log.tables import as_container

TABLES = {
    "csv": ("text:write_csv", "text:open_csv"),
    "jsonl": ("text:write_jsonl", "text:open_jsonl"),
    "parquet": ("arrow:write_parquet", "arrow:open_parquet"),
}
"""The functions that write and open a table, as ``file:function``, imported when needed."""
DATASETS = ("netcdf", "zarr")
OTHERS = {".nc": ".parquet or .csv", ".zarr": ".nc", ".parquet": ".csv"}
"""The other file type to suggest if one cannot store a value."""
FEW_LABELS = 100
"""Number of labels of a level up to which their order is stored, unless it is alphabetical."""


def save_log(log: pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset, path: Any) -> None:
    """Write a log to a file, from which `read_log` restores the same object.

    Parameters
    ----------
    log : Series, DataFrame, DataArray or Dataset
        Losses or predictions. Index, models, types of columns and labels, and ``attrs`` are
        kept.
    path : path
        The suffix determines the file type: ``.parquet``, ``.csv`` and ``.jsonl`` for pandas,
        ``.nc`` and ``.zarr`` for pandas and xarray. An existing file is replaced.

    Raises
    ------
    LogError
        If a label or an attribute cannot be written. Text, numbers, dates, and lists, tuples and
        mappings of these are supported. An existing file is then unchanged.
    ImportError
        If a package of the extra ``io`` is needed and not installed.

    Notes
    -----
    Index, types and ``attrs`` are stored in a header: the first line of CSV and JSONL, which other
    programs can skip as a comment or as a first row, the metadata of Parquet, or a variable of
    NetCDF and Zarr.

    References
    ----------
    Eaton et al. (2024), NetCDF Climate and Forecast (CF) Metadata Conventions,
    doi:10.5281/zenodo.11288138.

    Examples
    --------
    >>> import cvstats, tempfile, pathlib
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     cvstats.save_log(losses, path)
    ...     cvstats.read_log(path).equals(losses)
    True
    """
    if not isinstance(path, (str, PathLike)):
        raise LogError(
            f"the path is {describe_type(path)}. Expected a string or a path, as in "
            "save_log(log, 'losses.parquet')."
        )
    where = Path(path)
    try:
        write(log, where)
    except OSError as error:
        why = error.strerror or one_line(error)
        raise LogError(
            f"{shortened(where.name)} could not be written: {why}. Expected a writable path."
        ) from None


def write(log: object, path: Path) -> None:
    """Write a log; the suffix of the path determines the file type."""
    kind = kind_to_write(path)
    log = as_container(log)
    dataset: xr.Dataset | None = None
    if isinstance(log, (xr.DataArray, xr.Dataset)):
        if kind not in DATASETS:
            raise LogError(
                f"an xarray object cannot be saved as {path.suffix}. Expected .nc or .zarr; or "
                "convert it to a table: log.to_series(), log.to_dataframe()."
            )
        dataset, header = flatten_array(log)
        columns = {str(name): variable.to_numpy() for name, variable in dataset.variables.items()}
    elif isinstance(log, (pd.Series, pd.DataFrame)):
        columns, header = flatten_frame(log)
    else:
        way = " Save moments by moments.save(path)." if hasattr(log, "save") else ""
        raise LogError(
            f"{describe_type(log)} is not a loss log. Expected a Series, DataFrame, DataArray "
            f"or Dataset.{way}"
        )
    with replacing(path) as beside:
        try:
            if kind in DATASETS:
                with warnings.catch_warnings():  # older xarray warns of nanoseconds
                    warnings.filterwarnings("ignore", "Converting non-nanosecond precision")
                    from cvstats.io import netcdf

                    if dataset is None:
                        dataset = netcdf.dataset_of(columns, header)
                    netcdf.write_dataset(dataset, header, beside)
            else:
                resolve_name(f"cvstats.io.{TABLES[kind][0]}")(columns, header, beside)
        except (LogError, ImportError, OSError):
            raise
        except Exception as error:
            other = OTHERS.get(path.suffix.lower(), ".parquet")
            raise LogError(
                unwritable_text(columns, other)
                or f"{path.name} could not be written: {one_line(error)}. Expected numbers, "
                f"text or dates. Another file type may support it: {other}."
            ) from None


def kind_to_write(path: Path) -> str:
    """Look up the file type by suffix; refuse other directories."""
    kind = SUFFIXES.get(path.suffix.lower(), "")
    if kind not in (*TABLES, *DATASETS):
        which = f"save_log does not write {path.suffix}" if kind else (
            f"{path.name} ends in {path.suffix!r}, which save_log does not write" if path.suffix
            else f"{str(path)!r} has no suffix, which selects the file type"
        )  # fmt: skip
        example = f", as in {path.name}.parquet" if path.name and not path.suffix else ""
        raise LogError(f"{which}. Expected .parquet, .csv, .jsonl, .nc or .zarr{example}.")
    if kind == "zarr" and path.exists() and not is_store(path):
        raise LogError(f"{path.name} exists and is not a Zarr store. Choose another name.")
    if kind != "zarr" and path.is_dir():
        raise LogError(f"{path.name} exists and is a directory. Choose another name.")
    return kind


def unwritable_text(columns: Columns, other: str) -> str | None:
    """Describe text that cannot be written to this file type; None if there is none."""
    for name, values in columns.items():
        for value in np.ravel(values) if values.dtype == object else ():
            text = str(value)
            shown = shortened(text, 40)
            try:
                text.encode()
            except UnicodeEncodeError:
                return (
                    f"{name!r} contains {shown}, which has a lone surrogate and cannot be "
                    "written. Expected valid UTF-8 text. Replace it: text.encode('utf-8', "
                    "'replace').decode()."
                )
            if "\0" in text:
                return (
                    f"{name!r} contains {shown}, but a null byte cannot be written to this type "
                    f"of file. Expected text without null bytes. Remove it, or save to {other}."
                )
    return None


# --- one file -------------------------------------------------------------------------------------


def load_saved(path: Path, kind: str) -> Any:
    """Read a log written by `save_log`; None for any other file, and for a dataset."""
    if kind not in TABLES:
        return None
    opened: SavedColumns | None = resolve_name(f"cvstats.io.{TABLES[kind][1]}")(path)
    return None if opened is None else restore_frame(*opened)


ARRAY = "losses"
"""The name of the variable of a DataArray."""


# --- pandas ---------------------------------------------------------------------------------------


def flatten_frame(log: pd.Series | pd.DataFrame) -> tuple[Columns, Header]:
    """Split a pandas object into plain columns and the header that restores it."""
    frame = log.to_frame("loss") if isinstance(log, pd.Series) else log
    if not len(frame) or not frame.shape[1]:
        raise LogError("the log is empty. Expected at least one loss.")
    if isinstance(frame.columns, pd.MultiIndex):
        raise LogError(
            "the columns have several levels. Expected one level, the models: log.columns = "
            "['/'.join(map(str, name)) for name in log.columns]."
        )
    index = frame.index
    named: list[tuple[Hashable, Any]] = [
        *((name, index.get_level_values(at)) for at, name in enumerate(index.names)),
        *((name, frame.iloc[:, at]) for at, name in enumerate(frame.columns)),
    ]
    columns: Columns = {}
    notes: list[Note] = []
    for at, (name, values) in enumerate(named):
        field = str(name) if is_field(name) and name not in columns else f"column_{at}"
        columns[field], note = pack(values, field, text_call(log, at))
        notes.append({"field": field, "name": to_plain(name, "the name of a column"), **note})
    for level, note in zip(
        index.levels if isinstance(index, pd.MultiIndex) else (), notes, strict=False
    ):
        names = list(level) if len(level) <= FEW_LABELS else []
        if all(isinstance(name, str) for name in names) and names != sorted(names):
            note["order"] = names
    return columns, {
        "cvstats_log": VERSION,
        "object": "Series" if isinstance(log, pd.Series) else "DataFrame",
        "multi": isinstance(index, pd.MultiIndex),
        "index": notes[: index.nlevels],
        "columns": notes[index.nlevels :],
        "columns_name": to_plain(frame.columns.name, "the name of the columns"),
        "name": to_plain(log.name, "the name") if isinstance(log, pd.Series) else None,
        "attrs": to_plain(dict(log.attrs), "an entry of attrs"),
    }


def is_field(name: Hashable) -> bool:
    """Whether a label can name a column in every file type."""
    return (
        isinstance(name, str) and name.isprintable() and 0 < len(name) < 100
        and not name.startswith(("column_", "_", ".")) and "/" not in name
        and name not in ("evaluation", "cvstats_header") and name.strip() == name
    )  # fmt: skip


def text_call(log: pd.Series | pd.DataFrame, at: int) -> str:
    """Return the call that converts a level, or a column after the levels, to text."""
    levels = log.index.nlevels
    if at >= levels:
        what = "log" if isinstance(log, pd.Series) else f"log[{log.columns[at - levels]!r}]"
        return f"{what} = {what}.astype(str)"
    if not isinstance(log.index, pd.MultiIndex):
        return "log.index = log.index.astype(str)"
    name = log.index.names[at]
    level = at if name is None else name
    labels = f"log.index.levels[{at}].astype(str)"
    return f"log.index = log.index.set_levels({labels}, level={level!r})"


def restore_level(values: Any, note: Note) -> Coded:
    """Restore the labels of a level, and the number of each row's label."""
    codes, labels = factorize(unpack(values, note))
    if "order" not in note:
        return codes, labels
    places = labels.get_indexer(pd.Index(note["order"]))
    places = places[places >= 0]
    return np.append(np.argsort(places), -1)[codes], labels[places]


def restore_frame(read: Callable[[str], Any], header: Header) -> pd.Series | pd.DataFrame:
    """Undo `flatten_frame`; ``read`` returns one column at a time, as they may be large."""
    names = [from_plain(note["name"]) for note in header["index"]]
    index: pd.Index
    if header["multi"]:
        parts = [restore_level(read(note["field"]), note) for note in header["index"]]
        index = make_multi_index(parts, names)
    else:
        (note,) = header["index"]
        index = pd.Index(unpack(read(note["field"]), note), name=names[0])
    values = [
        pd.Series(unpack(read(note["field"]), note), index=index, copy=False)
        for note in header["columns"]
    ]
    attrs = from_plain(header["attrs"])
    if header["object"] == "Series":
        one = values[0].rename(from_plain(header["name"]))
        one.attrs = attrs
        return one
    frame = pd.concat(values, axis=1)
    models = [from_plain(note["name"]) for note in header["columns"]]
    frame.columns = pd.Index(models, name=from_plain(header["columns_name"]), tupleize_cols=False)
    frame.attrs = attrs
    return frame


# --- xarray ---------------------------------------------------------------------------------------


def flatten_array(log: xr.DataArray | xr.Dataset) -> tuple[xr.Dataset, Header]:
    """Split an xarray object into plain variables and the header that restores it."""
    whole = log.to_dataset(name=ARRAY) if isinstance(log, xr.DataArray) else log
    multi = {
        str(name): [str(level) for level in index.names]
        for name, index in whole.indexes.items()
        if isinstance(index, pd.MultiIndex) and name in whole.dims
    }
    flat = whole.reset_index(list(multi))
    variables: dict[str, Any] = {}
    notes: dict[str, Note] = {}
    for name, variable in flat.variables.items():
        if not isinstance(name, str) or "/" in name or not name:
            raise LogError(f"a variable is named {name!r}. Expected a string.")
        if variable.chunks is not None:
            raise LogError("this object is lazy (dask). Load it into memory: log.compute().")
        if name in multi:
            continue
        values, note = pack(variable.to_numpy().reshape(-1), repr(name))
        attrs = to_plain(dict(variable.attrs), f"an attribute of {name!r}")
        variables[name] = (variable.dims, values.reshape(variable.shape), readable_attrs(attrs))
        notes[name] = {"attrs": attrs, "coord": name in flat.coords, **note}
    array = isinstance(log, xr.DataArray)
    header = {
        "cvstats_log": VERSION,
        "object": "DataArray" if array else "Dataset",
        "name": to_plain(log.name, "the name") if isinstance(log, xr.DataArray) else None,
        "dims": [str(dim) for dim in log.dims],
        "multi": multi,
        "variables": notes,
        "attrs": to_plain(dict(log.attrs), "an entry of attrs"),
    }
    coords = [name for name in variables if notes[name]["coord"]]
    plain = xr.Dataset(variables, attrs=readable_attrs(header["attrs"]))
    return plain.set_coords(coords), header


def readable_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the attributes that other programs can read from the file."""
    own = ("_FillValue", "scale_factor", "add_offset", "dtype", "coordinates", "calendar")
    return {
        name: value
        for name, value in attrs.items()
        if name not in own
        and (
            (isinstance(value, str) and len(value) < 10_000)
            or isinstance(value, float)
            or (type(value) is int and abs(value) < 2**63)
        )
    }


def restore_dataset(dataset: xr.Dataset, header: Header) -> Any:
    """Undo `flatten_array`, or `netcdf.dataset_of` of a flattened frame."""
    if "variables" not in header:
        return restore_frame(lambda name: dataset.variables[name].to_numpy(), header)
    variables: dict[str, xr.Variable] = {}
    for name, note in header["variables"].items():
        stored = dataset.variables[name]
        values = np.asarray(unpack(stored.to_numpy().reshape(-1), note)).reshape(stored.shape)
        if note["kind"] in ("text", "json"):
            numpy_text = str(note["dtype"]).startswith(("<U", ">U"))
            values = values.astype(note["dtype"] if numpy_text else object)
        variables[name] = xr.Variable(stored.dims, values, from_plain(note["attrs"]))
    coords = [name for name, note in header["variables"].items() if note["coord"]]
    whole = xr.Dataset(
        {name: variable for name, variable in variables.items() if name not in coords},
        coords={name: variables[name] for name in coords},
    )
    for dim, levels in header["multi"].items():
        whole = whole.set_index({dim: levels})
    whole.attrs = from_plain(header["attrs"])
    if header["object"] == "Dataset":
        return whole
    one = whole[ARRAY].rename(from_plain(header["name"])).transpose(*header["dims"])
    one.attrs = whole.attrs
    return one
