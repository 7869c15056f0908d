"""Columns that sound like a level and were not named: they stay, so that they are not lost unseen.

A result then has a caution about them, and the command line says which option names them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

import pandas as pd

from cvstats.core.level_names import can_name, sounding_like
from cvstats.core.types import IntArray

__all__ = ["same_within", "worth_keeping"]


def worth_keeping(
    table: pd.DataFrame, taken: Collection[Hashable], levels: Collection[str]
) -> list[str]:
    """Find columns of labels that vary, and are called much like a level that nobody named."""
    return [
        name
        for name in sounding_like(table.columns, taken, levels)
        if can_name(pd.api.types.infer_dtype(table[name]), table[name].nunique())
    ]


def same_within(codes: IntArray, rows: IntArray, first: IntArray) -> bool:
    """Whether a label is the same for all models of an evaluation."""
    return bool((codes == codes[first[rows]]).all())
