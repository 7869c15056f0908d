"""The one row of a result, with what is the same for all rows."""

from __future__ import annotations

import pandas as pd

from cvstats.core.result import is_count


def only_row(result):
    """The numbers of a table of one row, and the counts that its attrs hold."""
    if isinstance(result, pd.Series):  # of `decompose`, or a row already
        return counted(result)
    assert len(result) == 1
    return counted(result.iloc[0])


def counted(numbers):
    counts = {name: value for name, value in numbers.attrs.items() if is_count(name)}
    return pd.concat([numbers.astype(object), pd.Series(counts, dtype=object)])


def with_counts(table):
    """The table, or Dataset, with the counts that its attrs hold beside its other numbers."""
    return table.assign(**{name: n for name, n in table.attrs.items() if is_count(name)})
