"""The only room that works with pandas and xarray: objects in, labelled results out."""

from __future__ import annotations

from cvstats.containers.log import Log
from cvstats.containers.reading import dropped, read

__all__ = ["Log", "dropped", "read"]
