"""File paths and types, one-line errors of other libraries, and optional packages."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cvstats.errors import LogError, install_command

LONGEST = 60
"""Maximum number of characters of a path quoted in a message."""

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".arff": "arff", ".parquet": "parquet", ".pq": "parquet", ".nc": "netcdf", ".nc4": "netcdf",
    ".h5": "netcdf", ".zarr": "zarr", ".eval": "eval",
}  # fmt: skip
"""The type of a file, by suffix."""

PARQUET = tuple(suffix for suffix, kind in SUFFIXES.items() if kind == "parquet")


def shortened(text: str, most: int = LONGEST) -> str:
    """Quote a path, or other text, up to a maximum length."""
    return repr(text if len(text) <= most else text[:most] + "…")


def path_of(given: str | PathLike[str]) -> Path:
    """Check that a value can be a path, not the text of a table."""
    text = os.fsdecode(given)
    if not text:
        raise LogError("the path is empty. Expected the path of a file.")
    if "\0" in text:
        raise LogError(f"{shortened(text)} contains a null byte. Expected the path of a file.")
    if ("\n" in text or "\r" in text) and not os.path.lexists(text):
        raise LogError(
            f"{shortened(text)} is text, not a path. Expected the path of a file. Write the text "
            "to a file, or pass a table: pandas.read_csv(io.StringIO(text))."
        )
    try:
        os.lstat(text)
    except FileNotFoundError:
        pass  # the reader raises
    except OSError as error:
        raise LogError(
            f"{shortened(text)} cannot be opened: {error.strerror}. Expected the path of a file."
        ) from None
    return Path(text)


def refuse_stream(path: Path) -> None:
    """Reject streams: the beginning of a file is read twice."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise LogError(
            f"{shortened(str(path))} is a pipe or a device, not a file. Standard input cannot be "
            "read. Expected the path of a file: save the input to a file first."
        )


def is_store(path: Path) -> bool:
    """Whether a directory describes itself as a Zarr store."""
    return any((path / name).is_file() for name in (".zgroup", ".zarray", "zarr.json"))


def check_file(path: Path) -> None:
    """Reject paths that are not files, and empty files."""
    if not path.is_file():
        raise LogError(f"{path.name} is not a file. Expected the path of a file.")
    if path.stat().st_size == 0:
        raise LogError(f"{path.name} is empty. Expected at least one evaluation.")


LARGE = 1 << 30
"""Unpacked size in bytes below which a file is not checked for a decompression bomb."""

LONGEST_MESSAGE = 200
"""Maximum number of characters quoted from another library's message."""


def one_line(error: BaseException) -> str:
    """Convert another library's message to one short line without control characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    words = words.removeprefix("Error tokenizing data. C error: ").removesuffix(".")[
        :LONGEST_MESSAGE
    ]
    if not words:
        return type(error).__name__
    return f"it has no {words}" if isinstance(error, KeyError) else words


@contextmanager
def raise_as_log_error(what: str) -> Iterator[None]:
    """Raise every failure inside as a one-line error about reading ``what``."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except (LogError, ImportError):
        raise
    except UnicodeDecodeError as error:
        raise LogError(
            f"{what} could not be read: it is not valid {error.encoding.upper()} from byte "
            f"{error.start:,} on. For CSV files with another encoding, pass it as in "
            "encoding='latin-1'."
        ) from None
    except Exception as error:
        raise LogError(
            f"{what} could not be read: {one_line(error)}. The file may be damaged or of "
            "another type."
        ) from None


def refuse_bomb(name: str, stored: int, unpacked: int) -> None:
    """Reject a decompression bomb: no log of losses compresses a thousandfold.

    Sizes are in bytes.
    """
    if unpacked > LARGE and unpacked > 1_000 * stored:
        raise LogError(
            f"{name} has {stored:,} bytes and would take {unpacked / 2**30:,.1f} GB of memory. "
            "Expected a log of losses, which never compresses a thousandfold. To read this file "
            "anyway, open it with pandas or xarray."
        )


def import_extra(module: str, what: str) -> Any:
    """Import a module of the extra ``io``."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{what} needs {module.partition('.')[0]}. Install it: {install_command('io')}"
        ) from None
