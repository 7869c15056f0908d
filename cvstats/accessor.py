"""The accessor ``.cvci`` on pandas, xarray and dask. It holds the object and nothing else."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from cvstats import comparisons, intervals

if TYPE_CHECKING:
    from cvstats.containers import Losses
    from cvstats.plot import Plots

__all__ = ["CVAccessor", "LazyMethod", "find_function", "register_dask"]

OTHERS = {
    "diagnose": "diagnostics",
    "interval": "selection",
    "methods": "selection",
    "moments": "describe",
    "report": "reporting",
}
"""Functions of a log that are neither an interval nor a comparison, and their modules."""

MODULES = {
    **{name: f"cvstats.intervals.{name}" for name in intervals.NAMES},
    **{name: f"cvstats.comparisons.{name}" for name in comparisons.NAMES},
    **{name: f"cvstats.{module}" for name, module in OTHERS.items()},
}
"""Every function that takes a log, and the module that has it."""

LOSSES_ENTRY = re.compile(r"^    losses : .*\n(?:^        .*\n)+", re.MULTILINE)


def find_function(name: str) -> Callable[..., Any]:
    """Import a function that takes a log."""
    function: Callable[..., Any] = vars(import_module(MODULES[name]))[name]
    return function


class LazyMethod:
    """A function as a method, with its signature and docstring, imported when it is looked up.

    Until then neither the function nor anything that it needs is imported, so that
    ``import cvstats`` stays quick.

    Parameters
    ----------
    name : str
        The name of the function.
    attribute : str, optional
        The attribute of the object that is the log; the object itself by default.
    """

    def __init__(self, name: str, attribute: str | None = None) -> None:
        self._name, self._attribute = name, attribute

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the class whose method this is."""
        self._owner = owner

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        """Put the method in the place of this object, and return it."""
        method = make_method(find_function(self._name), self._attribute)
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


def make_method(function: Callable[..., Any], attribute: str | None) -> Any:
    """Make a method of a function whose first parameter is the log."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return function(getattr(self, attribute) if attribute else self, *args, **options)

    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    parameters = [first.replace(name="self", annotation=inspect.Parameter.empty), *rest]
    vars(method).update(
        __name__=function.__name__,
        __doc__=LOSSES_ENTRY.sub("", function.__doc__ or "", count=1),
        __wrapped__=function,
        __signature__=signature.replace(parameters=parameters),
        __module__=function.__module__,
    )
    return method


class CVAccessor:
    """Confidence intervals and comparisons of the losses in this object.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log. Its levels are looked for when a method is called, not before.

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

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def __repr__(self) -> str:
        """Say what was understood of the log."""
        from cvstats.describe import describe_log

        return describe_log(self._losses)

    def _repr_html_(self) -> str:
        """Say what was understood of the log, as the first section of the report does."""
        from cvstats import reporting

        return reporting.fragment(self._losses)

    @property
    def plot(self) -> Plots:
        """Plots of these losses, as in ``losses.cvci.plot.forest()``; see `cvstats.plot`."""
        from cvstats.plot import Plots

        return Plots(self._losses)


for _name in MODULES:
    _method = LazyMethod(_name, "_losses")
    _method.__set_name__(CVAccessor, _name)
    setattr(CVAccessor, _name, _method)

pd.api.extensions.register_series_accessor("cvci")(CVAccessor)
pd.api.extensions.register_dataframe_accessor("cvci")(CVAccessor)
xr.register_dataarray_accessor("cvci")(CVAccessor)
xr.register_dataset_accessor("cvci")(CVAccessor)


def register_dask() -> None:
    """Register ``.cvci`` on DataFrames and Series of dask.

    Importing `cvstats` does so by itself if ``dask.dataframe`` was imported before. Otherwise,
    and where the order of imports is not yours to choose, call this once. The functions, such as
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
        if not hasattr(kind, "cvci"):  # pandas warns of an accessor that is registered twice
            register("cvci")(CVAccessor)


if "dask.dataframe" in sys.modules:
    register_dask()
