"""The only room that works with pandas and xarray: objects in, labelled results out."""

from __future__ import annotations

from cvstats.containers.apart import apart
from cvstats.containers.grouping import Groups, stack
from cvstats.containers.log import Log, Table
from cvstats.containers.reading import dropped, read
from cvstats.containers.stacking import Axis, label_stacked

__all__ = ["Axis", "Groups", "Log", "Table", "apart", "dropped", "label_stacked", "read", "stack"]
