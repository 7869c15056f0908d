"""Which columns of a table become levels of the log, asked for or not."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.level_names import can_name, sounding_like

__all__ = ["kept_besides", "levelled"]


def kept_besides(
    frame: pd.DataFrame, names: Sequence[Hashable], levels: Mapping[str, Hashable], stacked: bool
) -> list[str]:
    """Find columns that sound like a level that nobody named, so that they are not lost unseen.

    They stay as levels under their own names if they are labels that vary, and the same for all
    models of an evaluation where these stand below each other.
    """
    kept = []
    for column in sounding_like(frame.columns, {*names, *levels.values()}, levels):
        labels = frame[column]
        if not can_name(pd.api.types.infer_dtype(labels), labels.nunique()):
            continue
        if stacked:
            each = frame.groupby(list(levels.values()), dropna=False, observed=True)[column]
            if (each.nunique(dropna=False) > 1).any():
                continue
        kept.append(column)
    return kept


def levelled(frame: pd.DataFrame, names: Sequence[Hashable]) -> pd.DataFrame:
    """Put the columns that bear the names of levels into an index that has none of them.

    ``names`` are the columns of truth and predictions. Columns that sound like a level that is
    not there stay as levels under their own names, and results doubt them aloud.
    """
    if any(name in LEVELS for name in frame.index.names):
        return frame
    levels = {level: level for level in LEVELS if level in frame.columns and level not in names}
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name is not None:
        return frame.set_index(list(levels), append=True) if levels else frame
    put = [*levels, *kept_besides(frame, names, levels, False)]
    return frame.set_index(put) if put else frame
