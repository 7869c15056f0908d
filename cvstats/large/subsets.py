"""Rows of a result that a column marks, and points that are not in another log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.columns import LossColumns
from cvstats.core.design import Design
from cvstats.errors import LogError, listed
from cvstats.large.moments import check_same_grid
from cvstats.log.align import partners
from cvstats.log.log import Log, Table
from cvstats.log.sketches import as_index
from cvstats.log.xarray import ArrayLabels


def take_flagged(table: Table, flag: str) -> Table:
    """Keep the one model that a column marks; of a Dataset the one of each carried cell."""
    if isinstance(table, xr.Dataset):
        return table.isel(model=table[flag].argmax("model")).drop_vars(flag)
    frame: Any = table
    kept: pd.DataFrame = frame[frame[flag]].drop(columns=flag)
    kept.attrs = dict(table.attrs)
    return kept


IDENTITY = ("source", "point")
"""Levels that name a point."""


def take_other_points(log: Log, known: Log) -> Log:
    """Leave out the points of one log that another one has, and order its models as in that.

    Raises
    ------
    LogError
        If the two name their points in different ways, have other models or lie on other grids, or
        if no point is left.
    """
    named = [[name for name in IDENTITY if name in one.design.levels] for one in (log, known)]
    if named[0] != named[1]:
        raise LogError(
            f"the logs name their points by different levels: {listed(map(repr, named[0]))} and "
            f"{listed(map(repr, named[1]))}. Expected the same in both."
        )
    keep = ~points_of(log.design).isin(points_of(known.design))
    if log.design.present is not None:
        keep &= log.design.present
    if not keep.any():
        raise LogError(
            "the judge has labelled no point besides those of people, so it cannot help. Expected "
            "its losses of many more points. For those of people alone use holdout."
        )
    mine, yours = log.labels, known.labels
    if isinstance(mine, ArrayLabels) and isinstance(yours, ArrayLabels):
        check_same_grid(yours, mine)
    models = partners(list(yours.models), list(mine.models))
    tables = log.panels
    order = np.empty(tables.width, dtype=np.int64)
    for model, at in enumerate(models):
        order[yours.columns(model)] = mine.columns(at)
    moved = LossColumns(tuple(tables.column(int(j), 0, log.design.size)[:, None] for j in order))
    return replace(
        log, design=replace(log.design, present=keep, facts={}), panels=moved, labels=yours
    )


def points_of(design: Design) -> pd.MultiIndex:
    """List the points of all rows by the levels that name them."""
    levels = [design.levels[name] for name in IDENTITY if name in design.levels]
    return pd.MultiIndex.from_arrays(
        [as_index(level.labels).take(level.block(0, design.size)) for level in levels]
    )
