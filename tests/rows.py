"""The one row of a result, with what is the same for all rows."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from cvstats.core.result import is_count


def only_row(result):
    """The numbers of a table of one row, and the counts that its attrs hold."""
    if isinstance(result, pd.Series):  # of `decompose`, or a row already
        return counted(result)
    assert len(result) == 1
    return counted(result.iloc[0])


def counted(numbers):
    counts = {name: value for name, value in numbers.attrs.items() if held(name)}
    return pd.concat([numbers.astype(object), pd.Series(counts, dtype=object)])


def with_counts(result):
    """The whole result, its counts as columns or variables also where attrs hold them."""
    counts = {name: value for name, value in result.attrs.items() if held(name)}
    if isinstance(result, pd.DataFrame):
        return result.assign(**counts).sort_index(axis=1)
    like = result["caution"]
    return result.assign({name: xr.full_like(like, value) for name, value in counts.items()})


def held(name):
    """Whether an attribute is a count that would be a column if rows differed."""
    return is_count(name) and name not in ("n_draws", "n_dropped")
