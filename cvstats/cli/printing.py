"""A result as text: a table for eyes, JSON and CSV with every digit, Markdown for a page."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from textwrap import fill
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from cvstats.api.showing import framed, text_table, to_markdown
from cvstats.cli.demo import aligned

__all__ = ["Format", "printed", "spoken"]

Format: TypeAlias = Literal["table", "json", "csv", "markdown"]
WIDTH = 96


def printed(result: Any, format: Format, facts: Sequence[str]) -> str:
    """Write a result; a table is followed by some facts about it, in words."""
    table = framed(result)
    if format == "markdown":
        return to_markdown(table)
    plain = isinstance(table.index, pd.RangeIndex)
    if format == "csv":
        return table.to_csv(index=not plain, lineterminator="\n").removesuffix("\n")
    if format == "json":
        records = (table if plain else table.reset_index()).to_dict("records")
        attrs = {str(key): value for key, value in table.attrs.items()}
        everything = cleaned({**attrs, "rows": records})
        return json.dumps(everything, indent=2, ensure_ascii=not any_letter())
    rows, _ = text_table(table, None, "auto")
    caution = rows[0].index("caution") if "caution" in rows[0] else None
    notes = []
    if caution is not None:  # too long for a column
        notes = [f"caution, {row[0]}: {row[caution]}." for row in rows[1:] if row[caution]]
        cautions = table.attrs.get("cautions", {})
        notes += [f"{label}: {spoken(words)}" for label, words in cautions.items()]
        rows = [[cell for i, cell in enumerate(row) if i != caution] for row in rows]
    names = len(table.index.names)
    told = [f"{name}: {table.attrs[name]}." for name in facts if table.attrs.get(name)]
    shown = [joined(row, names) for row in rows]
    return "\n".join([aligned(shown), "", *(fill(words, WIDTH) for words in [*told, *notes])])


def any_letter() -> bool:
    """Whether standard output takes any letter, or some have to be written as escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "").startswith("utf")


def spoken(words: str) -> str:
    """Say as an option what a caution or an advice says as Python."""
    holds = "log.attrs['holds'] = 'scores'"
    words = words.replace(holds, f"--read-as scores (or {holds} in Python)")
    return words.replace("See diagnose()", "See cvstats diagnose")


def joined(row: Sequence[str], names: int) -> list[str]:
    """Write the labels of a row as one cell, which `aligned` puts to the left."""
    return [" - ".join(row[:names]), *row[names:]]


def cleaned(value: Any) -> Any:
    """Make plain values of numpy's, and null of what JSON has no number for."""
    if isinstance(value, dict):
        return {str(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [cleaned(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
