"""The accessor ``.cvci`` on pandas, xarray and dask. It stores only the object."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar, overload

import pandas as pd
import xarray as xr

from cvstats.registry import add_methods

if TYPE_CHECKING:
    from cvstats.log.log import Losses
    from cvstats.log.methods import LogMethods
    from cvstats.plot import Plots
else:
    LogMethods = Generic

__all__ = ["CVAccessor"]

T = TypeVar("T")
"""What its methods return: DataFrames for pandas, Datasets for xarray."""


class CVAccessor(LogMethods[T]):
    """Confidence intervals and comparisons of the losses in this object.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log. Its levels are read when a method is called.

    Notes
    -----
    Each method is the function of the same name in `cvstats`, with this object as its log.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> cvstats.losses(log, prediction="ridge").cvci
    <cvci: 442 points, 10 repetitions, 10 folds, 1 model>
    """

    @overload
    def __init__(self: CVAccessor[pd.DataFrame], losses: pd.Series | pd.DataFrame) -> None: ...
    @overload
    def __init__(self: CVAccessor[xr.Dataset], losses: xr.DataArray | xr.Dataset) -> None: ...
    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def __repr__(self) -> str:
        """Summarize the log in one line."""
        from cvstats.describe import describe_log

        return f"<cvci: {describe_log(self._losses)}>"

    def _repr_html_(self) -> str:
        """Describe the log as the first section of the report does."""
        from cvstats import reporting

        return reporting.fragment(self._losses)

    @property
    def plot(self) -> Plots:
        """Plots of these losses, as in ``losses.cvci.plot.forest()``; see `cvstats.plot`."""
        from cvstats.plot import Plots

        return Plots(self._losses)


add_methods(CVAccessor, "_losses")

pd.api.extensions.register_series_accessor("cvci")(CVAccessor)
pd.api.extensions.register_dataframe_accessor("cvci")(CVAccessor)
xr.register_dataarray_accessor("cvci")(CVAccessor)
xr.register_dataset_accessor("cvci")(CVAccessor)


def register_dask() -> None:
    """Register ``.cvci`` on DataFrames and Series of dask."""
    frames = import_module("dask.dataframe")
    extensions = import_module("dask.dataframe.extensions")
    for kind, register in (
        (frames.DataFrame, extensions.register_dataframe_accessor),
        (frames.Series, extensions.register_series_accessor),
    ):
        if not hasattr(kind, "cvci"):  # pandas warns if an accessor is registered twice
            register("cvci")(CVAccessor)


class AfterDask(MetaPathFinder):
    """Register the accessor once ``dask.dataframe`` is imported, which this package never does."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Find ``dask.dataframe`` for its first import, with a loader that registers at its end."""
        if name != "dask.dataframe":
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def then_register(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                register_dask()

            vars(spec.loader)["exec_module"] = then_register
        return spec


if "dask.dataframe" in sys.modules:
    register_dask()
else:
    sys.meta_path.insert(0, AfterDask())
