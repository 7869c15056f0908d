"""Whether a container comes from dask, found out without importing it."""

from __future__ import annotations

import sys

__all__ = ["is_dask_frame"]


def is_dask_frame(losses: object) -> bool:
    """Whether this is a DataFrame or Series of dask; if dask is not loaded, nothing is."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(losses, (frames.DataFrame, frames.Series))
