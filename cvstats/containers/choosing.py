"""Rows of a result that a column marks."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from cvstats.containers.log import Table

__all__ = ["take_flagged"]


def take_flagged(table: Table, flag: str) -> Table:
    """Keep the one model that a column marks; of a Dataset the one of each carried cell."""
    if isinstance(table, xr.Dataset):
        return table.isel(model=table[flag].argmax("model")).drop_vars(flag)
    frame = pd.DataFrame(table)
    kept = frame[frame[flag]].drop(columns=flag)
    kept.attrs = dict(table.attrs)
    return kept
