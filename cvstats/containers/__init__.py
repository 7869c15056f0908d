"""pandas, xarray and dask: objects in, labelled results out."""

from __future__ import annotations

from typing import TypeAlias

import pandas as pd
import xarray as xr

from cvstats.containers import dask
from cvstats.containers.batch_files import load, save
from cvstats.containers.batches import CellMoments, summarize
from cvstats.containers.dask import (
    adjust_lazily,
    compare_lazily,
    has_lazy_losses,
    is_lazy,
    later,
    lazily,
    lazy_table,
    moments_of_array,
)
from cvstats.containers.doubts import find_doubts, find_doubts_of_groups
from cvstats.containers.gaps import answer_cells, dropped
from cvstats.containers.groups import Groups, answer_groups, stack
from cvstats.containers.log import Log, Table
from cvstats.containers.metric_facts import (
    attrs_of_log,
    cuts_cells,
    facts_of_metric,
    lost_metrics,
    refuse_parts_of_cells,
)
from cvstats.containers.read import is_dask_frame, read
from cvstats.containers.stacking import Axis, label_stacked
from cvstats.containers.subsets import take_flagged, take_other_points

Losses: TypeAlias = pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset | CellMoments
"""What a public function takes as a loss log."""

__all__ = [
    "Axis",
    "CellMoments",
    "Groups",
    "Log",
    "Losses",
    "Table",
    "adjust_lazily",
    "answer_cells",
    "attrs_of_log",
    "answer_groups",
    "compare_lazily",
    "cuts_cells",
    "dask",
    "dropped",
    "facts_of_metric",
    "find_doubts",
    "find_doubts_of_groups",
    "has_lazy_losses",
    "is_dask_frame",
    "is_lazy",
    "label_stacked",
    "later",
    "lazily",
    "lazy_table",
    "load",
    "lost_metrics",
    "moments_of_array",
    "read",
    "refuse_parts_of_cells",
    "save",
    "stack",
    "summarize",
    "take_flagged",
    "take_other_points",
]
