"""Whatever goes wrong inside a library comes out as one line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, listed, nearest

__all__ = ["brief", "guarded", "needed", "one_line", "require"]

LONGEST = 200
"""How many characters of another library's words are repeated."""


def one_line(error: BaseException) -> str:
    """Put what a library said into one short line, without control characters."""
    if isinstance(error, UnicodeDecodeError):
        return f"from byte {error.start:,} on it is no text in UTF-8"
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    words = words.removeprefix("Error tokenizing data. C error: ").removesuffix(".")[:LONGEST]
    if not words:
        return type(error).__name__
    return f"it has no {words}" if isinstance(error, KeyError) else words


@contextmanager
def brief() -> Iterator[None]:
    """Keep messages short that repeat what stands in a file, whatever stands there."""
    try:
        yield
    except LogError as error:
        said = str(error)
        words = re.sub(r"\S{80,}", lambda long: long[0][:40] + "…", said)
        words = "".join(c if c.isprintable() else " " for c in words)
        if words == said:
            raise
        raise LogError(words) from None


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn every failure inside into one line that says what could not be read."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except (LogError, ImportError):
        raise
    except FileNotFoundError:
        raise LogError(f"{what} is not there. Expected the path of a file.") from None
    except Exception as error:
        raise LogError(
            f"{what} could not be read: {one_line(error)}. It may be damaged, or be something else."
        ) from None


def needed(module: str, what: str) -> Any:
    """Import what the extra ``io`` installs."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{what} needs {module.partition('.')[0]}. Type: pip install 'cvstats[io]'"
        ) from None


def require(table: pd.DataFrame, columns: Iterable[str], tool: str) -> None:
    """Refuse a table that lacks columns which the tool always writes."""
    lost = [column for column in columns if column not in table.columns]
    if lost:
        raise LogError(
            f"this is no {tool}: it has no column {listed(map(repr, lost))}. Found "
            f"{listed(map(repr, table.columns))}.{nearest(lost[0], table.columns)}"
        )
