"""A run as JSON, so that tables and figures can be made from it at any time."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.table import Row

Run = dict[str, Any]
"""Its heading, rows by section, and the points of the growth by axis."""

LIBRARIES = ("cvstats", "numpy", "pandas", "xarray", "numba", "scipy")
PEERS = ("polars", "flox", "numbagg")


def versions() -> str:
    """Say what was measured: Python, and the libraries that are there."""
    found = [f"Python {platform.python_version()}"]
    for library in (*LIBRARIES, *PEERS):
        try:
            found.append(f"{library} {version(library)}")
        except PackageNotFoundError:  # a peer that is absent stands in the table as such
            found.append(f"{library} not installed")
    return ", ".join(found)


def machine() -> str:
    """Say on what this was measured."""
    return f"{versions()}; {platform.system()} on {platform.machine()}, {os.cpu_count()} cores."


def heading() -> str:
    """Say on what this was measured, and what a ratio is."""
    return f"{machine()} Each ratio is the median of pairs of calls in turns, ours / theirs."


def packed(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Write rows without what they do not have."""
    empty = {field.name: field.default for field in fields(Row)}
    return [
        {name: value for name, value in asdict(row).items() if value != empty[name]} for row in rows
    ]


def unpacked(rows: Iterable[dict[str, Any]]) -> list[Row]:
    """Read rows that `packed` wrote."""
    return [
        Row(**{**row, "spread": tuple(row["spread"])} if "spread" in row else row) for row in rows
    ]


def save(run: Run, path: Path) -> None:
    """Write a run, three digits more than anybody prints."""
    path.write_text(json.dumps(_short(run), indent=1, ensure_ascii=False) + "\n", "utf-8")


def load(path: Path) -> Run:
    """Read a run; an empty one where there is no file."""
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def _short(value: Any) -> Any:
    """Cut floats to six digits, anywhere inside."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_short(inner) for inner in value]
    return value
