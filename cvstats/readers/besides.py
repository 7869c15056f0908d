"""Columns that sound like a level and were not named: they stay, so that they are not lost unseen.

A result then has a caution about them, and the command line says which option names them.
"""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from cvstats.intervals.unused import meant
from cvstats.types import IntArray

__all__ = ["same_within", "sounding_like"]

LABELS = ("boolean", "categorical", "integer", "string")
"""Kinds of values that can name something."""


def sounding_like(
    table: pd.DataFrame, taken: Collection[object], levels: Collection[str]
) -> list[str]:
    """Find columns of labels that vary, and are called much like a level that nobody named."""
    return [
        name
        for name in table.columns
        if isinstance(name, str)
        and name not in taken
        and meant(name) not in (None, "point", *levels)
        and list(table.columns).count(name) == 1
        and pd.api.types.infer_dtype(table[name]) in LABELS
        and table[name].nunique() > 1
    ]


def same_within(codes: IntArray, rows: IntArray, first: IntArray) -> bool:
    """Whether a label is the same for all models of an evaluation."""
    return bool((codes == codes[first[rows]]).all())
