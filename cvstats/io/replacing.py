"""Write a file as a whole or not at all: what stood there stays until the new one is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cvstats.errors import LogError
from cvstats.io.paths import shortened
from cvstats.io.words import one_line

__all__ = ["replacing", "written"]

OTHERS = {".nc": ".parquet or .csv", ".zarr": ".nc", ".parquet": ".csv"}
"""What to try where one kind of file cannot hold something."""
LONGEST = 40
"""Up to how many characters of a text a message repeats."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name beside a file, or a directory, and let what is written there take its place."""
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


@contextmanager
def written(columns: Mapping[str, np.ndarray[Any, Any]], path: Path) -> Iterator[None]:
    """Turn what a library could not write into one line that names it."""
    try:
        yield
    except (LogError, ImportError, OSError):
        raise
    except Exception as error:
        other = OTHERS.get(path.suffix.lower(), ".parquet")
        raise LogError(
            odd_text(columns, other)
            or f"{path.name} could not be written: {one_line(error)}. Expected numbers, text or "
            f"dates. Another kind of file may hold it: {other}."
        ) from None


def odd_text(columns: Mapping[str, np.ndarray[Any, Any]], other: str) -> str:
    """Say which text no file, or not this kind of file, can hold; nothing if all is well."""
    for name, values in columns.items():
        for value in values.reshape(-1) if values.dtype == object else ():
            text = str(value)
            if text.isascii() and "\0" not in text:
                continue
            shown = shortened(text, LONGEST)
            try:
                text.encode()
            except UnicodeEncodeError:
                return (
                    f"{name!r} holds {shown}, which has half a character (a surrogate) and cannot "
                    f"be written. Expected text that UTF-8 can hold. Mend it: "
                    f"text.encode('utf-8', 'replace').decode()."
                )
            if "\0" in text:
                return (
                    f"{name!r} holds {shown}, and a zero byte cannot be written to this kind of "
                    f"file. Expected text without one. Take it out, or save to {other}."
                )
    return ""
