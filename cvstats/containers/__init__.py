"""The only room that works with pandas and xarray: objects in, labelled results out."""

from __future__ import annotations

from cvstats.containers.log import Log, Table
from cvstats.containers.reading import dropped, read

__all__ = ["Log", "Table", "dropped", "read"]
