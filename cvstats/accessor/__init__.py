"""The accessor ``.cvci`` on pandas and xarray objects. It holds the object and nothing else."""

from __future__ import annotations

from cvstats.accessor.registered import CVAccessor

__all__ = ["CVAccessor"]
