"""Write a log to a file, from which `cvstats.read_log` gets it back."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.errors import LogError, spelled
from cvstats.io.failures import one_line
from cvstats.io.formats import netcdf, parquet, tabular
from cvstats.io.paths import SUFFIXES, shortened
from cvstats.io.serialize import Columns, Header, flatten_array, flatten_frame

WRITERS: dict[str, Callable[[Columns, Header, Path], None]] = {
    "csv": tabular.write_csv, "jsonl": tabular.write_jsonl, "parquet": parquet.write_parquet,
}  # fmt: skip
DATASETS = ("netcdf", "zarr")
OTHERS = {".nc": ".parquet or .csv", ".zarr": ".nc", ".parquet": ".csv"}
"""What to try where one kind of file cannot hold something."""


def save_log(log: pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset, path: Any) -> None:
    """Write a log to a file, from which `read_log` gets the same object back.

    Parameters
    ----------
    log : Series, DataFrame, DataArray or Dataset
        Losses or predictions. Index, models, types of columns and labels, and ``attrs`` are
        kept.
    path : path
        The suffix names the kind of file: ``.parquet``, ``.csv`` and ``.jsonl`` for pandas,
        ``.nc`` and ``.zarr`` for pandas and xarray. An existing file is replaced.

    Raises
    ------
    LogError
        If a file cannot hold a label or an attribute: it can hold text, numbers, dates, and
        lists, tuples and mappings of these. An existing file then stays as it was.
    ImportError
        If a package of the extra ``io`` is needed and not installed.

    Notes
    -----
    Index, types and ``attrs`` are in a header: the first line of CSV and JSONL, which other
    programs skip as a comment or as a first row, the metadata of Parquet, a variable of NetCDF
    and Zarr.

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
            f"the path is {spelled(path)}, of the type {type(path).__name__}. Expected text or a "
            f"path, as in save_log(log, 'losses.parquet')."
        )
    where = Path(path)
    try:
        write(log, where)
    except OSError as error:
        why = error.strerror or one_line(error)
        raise LogError(
            f"{shortened(where.name)} could not be written: {why}. Expected a path where one may "
            f"write."
        ) from None


def write(log: object, path: Path) -> None:
    """Write a log; the suffix of the path names the kind of file."""
    kind = kind_to_write(path)
    dataset: xr.Dataset | None = None
    if isinstance(log, (xr.DataArray, xr.Dataset)):
        if kind not in DATASETS:
            raise LogError(
                f"an xarray object does not fit into {path.suffix}. Expected .nc or .zarr; or "
                f"a table: log.to_series(), log.to_dataframe()."
            )
        dataset, header = flatten_array(log)
        columns = {str(name): variable.to_numpy() for name, variable in dataset.variables.items()}
    elif isinstance(log, (pd.Series, pd.DataFrame)):
        columns, header = flatten_frame(log)
    else:
        raise LogError(
            f"a {type(log).__name__} is not a loss log. Expected a Series, DataFrame, DataArray "
            f"or Dataset."
        )
    with replacing(path) as beside:
        try:
            if kind in DATASETS:
                with warnings.catch_warnings():  # older xarray stores nanoseconds, and says so
                    warnings.filterwarnings("ignore", "Converting non-nanosecond precision")
                    if dataset is None:
                        dataset = netcdf.dataset_of(columns, header)
                    netcdf.write_dataset(dataset, header, beside)
            else:
                WRITERS[kind](columns, header, beside)
        except (LogError, ImportError, OSError):
            raise
        except Exception as error:
            other = OTHERS.get(path.suffix.lower(), ".parquet")
            raise LogError(
                unwritable_text(columns, other)
                or f"{path.name} could not be written: {one_line(error)}. Expected numbers, text "
                f"or dates. Another kind of file may hold it: {other}."
            ) from None


def kind_to_write(path: Path) -> str:
    """Look up the kind of a file by its suffix; refuse a directory that is something else."""
    kind = SUFFIXES.get(path.suffix.lower(), "")
    if kind not in (*WRITERS, *DATASETS):
        which = f"save_log does not write {path.suffix}" if kind else (
            f"{path.name} ends in {path.suffix!r}, which save_log does not write" if path.suffix
            else f"{str(path)!r} has no suffix, and the suffix names the kind of file"
        )  # fmt: skip
        example = f", as in {path.name}.parquet" if path.name and not path.suffix else ""
        raise LogError(f"{which}. Expected .parquet, .csv, .jsonl, .nc or .zarr{example}.")
    if kind == "zarr" and path.exists() and not netcdf.is_store(path):
        raise LogError(f"{path.name} exists and is not a Zarr store. Choose another name.")
    if kind != "zarr" and path.is_dir():
        raise LogError(f"{path.name} exists and is a directory. Choose another name.")
    return kind


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Name a file, or a directory, beside another one, and let it take its place once complete."""
    target = Path(os.path.realpath(path))  # a link goes on pointing where it does
    if target.exists() and not target.is_file() and not target.is_dir():
        yield target  # a device, such as /dev/stdout, has nothing to lose
        return
    with tempfile.TemporaryDirectory(
        prefix=".cvstats-", dir=target.parent, ignore_cleanup_errors=True
    ) as folder:
        new = Path(folder) / target.name
        yield new
        if target.is_dir():
            swap(new, target, Path(folder) / "old")
            return
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)


def swap(new: Path, target: Path, old: Path) -> None:
    """Put a directory in the place of another one, which cannot be done in a single step."""
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise


def unwritable_text(columns: Columns, other: str) -> str:
    """Word which text no file, or not this kind of file, can hold; empty if there is none."""
    for name, values in columns.items():
        for value in np.ravel(values) if values.dtype == object else ():
            text = str(value)
            shown = shortened(text, 40)
            try:
                text.encode()
            except UnicodeEncodeError:
                return (
                    f"{name!r} holds {shown}, which has half a character (a surrogate) and cannot "
                    f"be written. Expected text that UTF-8 can hold. Replace it: "
                    f"text.encode('utf-8', 'replace').decode()."
                )
            if "\0" in text:
                return (
                    f"{name!r} holds {shown}, and a zero byte cannot be written to this kind of "
                    f"file. Expected text without one. Take it out, or save to {other}."
                )
    return ""
