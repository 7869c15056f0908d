"""The levels of the rows of a log, and the one row of a result."""

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.results import is_count


def multi_index(**levels):
    """The levels of a log, each with a label for every row."""
    return pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))


def product_index(**levels):
    """The levels of a log that has a row for each combination of labels."""
    return pd.MultiIndex.from_product(list(levels.values()), names=list(levels))


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


def counts_to_attrs(table):
    """Move the counts that are the same in all rows with losses to the attrs, as in memory.

    A lazy Dataset holds them row by row where the losses decide what was evaluated.
    """
    table = table.copy()
    for name in filter(is_count, list(table)):
        values = table[name].values.reshape(-1)
        if table[name].dims and "caution" in table:
            caution = table["caution"].transpose(*table[name].dims).values.reshape(-1)
            rows = (caution & np.int64(Caution.NO_LOSSES)) == 0
            values = values[rows] if rows.any() else values
        if (values == values[0]).all():
            table = table.drop_vars(name).assign_attrs({name: values[0].item()})
    return table
