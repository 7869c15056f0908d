"""Failures of other libraries as one line, and packages that are not installed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from cvstats.errors import LogError, install_command

LARGE = 1 << 30
"""Files that unpack to fewer bytes are not suspected of being made to fill the memory."""

LONGEST = 200
"""How many characters of another library's message are repeated."""


def one_line(error: BaseException) -> str:
    """Make one short line of another library's message, without control characters."""
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    words = words.removeprefix("Error tokenizing data. C error: ").removesuffix(".")[:LONGEST]
    if not words:
        return type(error).__name__
    return f"it has no {words}" if isinstance(error, KeyError) else words


@contextmanager
def shorten_messages() -> Iterator[None]:
    """Shorten messages that repeat a file's contents."""
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
def raise_as_log_error(what: str) -> Iterator[None]:
    """Raise every failure inside as one line that names ``what`` could not be read."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except (LogError, ImportError):
        raise
    except FileNotFoundError:
        raise LogError(f"{what} is not there. Expected the path of a file.") from None
    except UnicodeDecodeError as error:
        raise LogError(
            f"{what} could not be read: from byte {error.start:,} on it is not text in "
            f"{error.encoding.upper()}. CSV files of another encoding are read with "
            f"encoding='latin-1', or what it is."
        ) from None
    except Exception as error:
        raise LogError(
            f"{what} could not be read: {one_line(error)}. It may be damaged, or be something else."
        ) from None


def refuse_bomb(name: str, stored: int, unpacked: int) -> None:
    """Refuse a file that was made to fill the memory: no log of losses packs a thousandfold.

    Sizes are in bytes.
    """
    if unpacked > LARGE and unpacked > 1_000 * stored:
        raise LogError(
            f"{name} has {stored:,} bytes and would take {unpacked / 2**30:,.1f} GB of memory. "
            f"Expected a log, whose losses never pack a thousandfold. To read it all the same, "
            f"open it with pandas or xarray."
        )


def import_extra(module: str, what: str) -> Any:
    """Import a module of the extra ``io``."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{what} needs {module.partition('.')[0]}. Type: {install_command('io')}"
        ) from None
