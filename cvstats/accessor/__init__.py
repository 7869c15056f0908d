"""The accessor ``.cvci`` on pandas, xarray and dask. It holds the object and nothing else."""

from __future__ import annotations

from cvstats.accessor.on_dask import register_dask
from cvstats.accessor.registered import CVAccessor

__all__ = ["CVAccessor", "register_dask"]
