"""Columns that should be numbers and are not: dates, complex numbers, decimals with a comma."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from cvstats.errors import LogError, spelled

__all__ = ["decimal_comma", "refuse_commas", "refuse_no_numbers"]

KINDS = {
    "complex": "complex numbers",
    **dict.fromkeys(("date", "datetime", "datetime64", "time"), "dates"),
    **dict.fromkeys(("timedelta", "timedelta64"), "durations"),
    **dict.fromkeys(("period", "interval"), "spans"),
}
"""What pandas would turn into numbers that are no losses, or not at all."""
MEND = {
    "complex numbers": "Take their size, abs(x), or one part: x.real.",
    "dates": "Name another column: metric='…'.",
    "durations": "Say in which unit: x / pandas.Timedelta('1h').",
    "spans": "Name another column: metric='…'.",
}


def refuse_no_numbers(values: pd.Series, name: object, path: str | None) -> None:
    """Refuse a column of losses that pandas would turn into numbers of another meaning."""
    kind = KINDS.get(pd.api.types.infer_dtype(values, skipna=True))
    if kind is None and values.dtype == object and any(isinstance(v, complex) for v in values):
        kind = "complex numbers"
    if kind is not None:
        first = values.dropna().iloc[0]
        raise LogError(
            f"the losses of {spelled(str(name))} are {kind}, the first is {str(first)[:40]}. "
            f"Expected numbers. {MEND[kind]}"
        )
    refuse_commas([(str(name), values)], path)


def refuse_commas(columns: Iterable[tuple[str, pd.Series]], path: str | None) -> None:
    """Refuse numbers that are written as in ``0,5``, and say how they are read."""
    for name, values in columns:
        found = None if pd.api.types.is_numeric_dtype(values) else decimal_comma(values)
        if found is None:
            continue
        raise LogError(
            f"the column {name!r} writes decimals with a comma, as in {found!r}. Expected points. "
            f"{way_to_read(name, path)}"
        )


def way_to_read(name: str, path: str | None) -> str:
    """Say how a column with decimal commas becomes one of numbers."""
    kind = "" if path is None else Path(path).suffix.lower()
    if kind in (".csv", ".tsv"):
        return (
            "Read it as table = pandas.read_csv(path, decimal=',') (thousands=',' if they are "
            "no decimals), and then cvstats.read_log(table, …)."
        )
    mended = f"table[{name!r}] = table[{name!r}].str.replace(',', '.').astype(float)"
    if kind in (".jsonl", ".ndjson"):
        return (
            f"Read it as table = pandas.read_json(path, lines=True), type {mended}, and then "
            f"cvstats.read_log(table, …)."
        )
    return f"Type {mended}."


def decimal_comma(values: pd.Series) -> str | None:
    """Find a number with a decimal comma in a column that holds nothing but numbers."""
    words = values.dropna().astype(str)
    number = r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
    if not len(words) or not words.str.fullmatch(number).all():
        return None
    commas = words[words.str.contains(",")]
    return str(commas.iloc[0]) if len(commas) else None
