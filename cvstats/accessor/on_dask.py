"""The same accessor on frames of dask, which may be imported after this package, or never."""

from __future__ import annotations

import sys
from importlib import import_module

from cvstats.accessor.registered import CVAccessor

__all__ = ["register_dask"]


def register_dask() -> None:
    """Register ``.cvci`` on DataFrames and Series of dask.

    Importing `cvstats` does so by itself if ``dask.dataframe`` was imported before. Else, and
    where the order of imports is not yours to choose, call this once. The functions, such as
    ``cvstats.wald(frame)``, take frames of dask with or without it.

    Raises
    ------
    ImportError
        If dask is not installed (extra ``dask``).

    Examples
    --------
    >>> import cvstats
    >>> cvstats.accessor.register_dask()  # doctest: +SKIP
    >>> frame.cvci.wald().compute()  # doctest: +SKIP
    """
    try:
        frames = import_module("dask.dataframe")
        extensions = import_module("dask.dataframe.extensions")
    except ImportError as error:
        raise ImportError("dask frames need dask. Install it: pip install 'cvstats[dask]'.") from (
            error
        )
    for kind, register in (
        (frames.DataFrame, extensions.register_dataframe_accessor),
        (frames.Series, extensions.register_series_accessor),
    ):
        if not hasattr(kind, "cvci"):  # what is there twice is warned of
            register("cvci")(CVAccessor)


if "dask.dataframe" in sys.modules:
    register_dask()
