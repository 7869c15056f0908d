"""Frames of other libraries, of which only the Arrow C stream is used: polars, Arrow, DuckDB."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pandas as pd

from cvstats.errors import LogError, install_command
from cvstats.log.columns import set_level_index


def is_arrow(frame: object) -> bool:
    """Whether this is a frame of another library that exports the Arrow C stream."""
    return (
        hasattr(frame, "__arrow_c_stream__")
        and not isinstance(frame, (pd.DataFrame, pd.Series))
        and (hasattr(frame, "columns") or hasattr(frame, "schema"))
    )


def as_container(losses: Any) -> Any:
    """Make a log of a frame of another library, whose columns named as levels are its levels."""
    if isinstance(losses, (pd.Series, pd.DataFrame)) or not is_arrow(losses):
        return losses
    return set_level_index(from_arrow(losses), [])


def from_arrow(frame: Any) -> pd.DataFrame:
    """Convert a frame of another library to pandas: decimals to floats, dates to datetimes.

    Raises
    ------
    LogError
        If the stream is not one of named columns.
    ImportError
        If pyarrow is not installed (extra ``io``).
    """
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        kind = type(frame).__module__.partition(".")[0]
        raise ImportError(
            f"a frame of {kind} needs pyarrow. Type: {install_command('io')}"
        ) from None
    try:
        table = arrow.table(frame)
        for at, field in enumerate(table.schema):
            if arrow.types.is_decimal(field.type):
                table = table.set_column(at, field.name, table.column(at).cast(arrow.float64()))
        found: pd.DataFrame = table.to_pandas(date_as_object=False)
    except (arrow.ArrowException, ValueError, TypeError) as error:
        raise LogError(
            f"a {type(frame).__name__} of {type(frame).__module__.partition('.')[0]} cannot be "
            f"read: {' '.join(str(error).split())[:200]}. Expected a frame of named columns."
        ) from error
    return found
