"""The one row of a result, with what is the same for all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.results import is_count


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


OF_LOSSES = (
    Caution.HEAVY_TAILS, Caution.SKEWED, Caution.SERIAL_DEPENDENCE, Caution.DUPLICATED_POINTS,
    Caution.SELECTED,
)  # fmt: skip
"""Labels of small logs in memory: they take a second look at the losses."""


def without_second_look(table):
    """Leave out the labels that a lazy or streamed log does not get."""
    if "caution" not in table:
        return table
    if not isinstance(table, pd.DataFrame):
        flags = table["caution"]
        seen = flags.copy(data=flags.data & ~np.int64(sum(OF_LOSSES)))
        return table.assign(caution=seen)
    gone = {caution.label for caution in OF_LOSSES}
    found = table.copy()
    kept = [
        ", ".join(label for label in labels.split(", ") if label not in gone)
        for labels in table["caution"]
    ]
    found["caution"] = pd.Series(kept, table.index, dtype=table["caution"].dtype)
    if "cautions" in table.attrs:
        words = table.attrs["cautions"].items()
        found.attrs["cautions"] = {label: text for label, text in words if label not in gone}
    return found
