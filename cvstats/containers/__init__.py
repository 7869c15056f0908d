"""The only room that works with pandas and xarray: objects in, labelled results out."""

from __future__ import annotations

from cvstats.containers.apart import apart
from cvstats.containers.cells import CellLog, CellPanels
from cvstats.containers.grouping import Groups, stack
from cvstats.containers.kept import files as kept_files
from cvstats.containers.kept.arrays import kept_of_array
from cvstats.containers.kept.batches import Kept, kept_of
from cvstats.containers.lazy import frames as lazy_frames
from cvstats.containers.lazy.arrays import is_lazy, lazily, lazy_table
from cvstats.containers.lazy.frames import later
from cvstats.containers.lazy.kind import is_dask_frame
from cvstats.containers.lazy.panels import LazyPanels
from cvstats.containers.log import Log, Table
from cvstats.containers.reading import dropped, read
from cvstats.containers.stacking import Axis, label_stacked

__all__ = [
    "Axis",
    "CellLog",
    "CellPanels",
    "Groups",
    "Kept",
    "LazyPanels",
    "Log",
    "Table",
    "apart",
    "dropped",
    "is_dask_frame",
    "is_lazy",
    "kept_files",
    "kept_of",
    "kept_of_array",
    "label_stacked",
    "later",
    "lazily",
    "lazy_frames",
    "lazy_table",
    "read",
    "stack",
]
