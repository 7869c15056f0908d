"""Valid confidence intervals and comparisons for cross-validated error.

Importing this package registers the accessor ``.cvci`` on pandas Series and DataFrames and on
xarray DataArrays and Datasets that contain losses indexed by repetition, fold, source and point.
A module is imported when one of its functions is first used; type checkers read ``__init__.pyi``.

Examples
--------
>>> import cvstats
>>> log = cvstats.datasets.load("diabetes")
>>> losses = cvstats.losses(log, prediction="ridge")
>>> losses.cvci.wald().round(0)
      estimate  lower  upper   se caution
model
ridge    3,006  2,640  3,372  187
"""

from __future__ import annotations

from importlib import import_module as _import
from importlib.metadata import version as _version

from cvstats import accessor as accessor
from cvstats import errors as errors
from cvstats.errors import LogError as LogError
from cvstats.errors import nearest as _nearest
from cvstats.registry import FUNCTIONS as _FUNCTIONS
from cvstats.registry import TOOLS as _TOOLS
from cvstats.registry import find_function as _find_function

__version__ = _version("cvstats")

_MODULES = ("datasets", "plans", "plot")

__all__ = sorted(["LogError", "accessor", "errors", *_FUNCTIONS, *_TOOLS, *_MODULES])


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import(f"cvstats.{name}")
    if name not in __all__:
        known = "" if name.startswith("_") else _nearest(name, __all__)  # asked for by tools
        raise AttributeError(f"module 'cvstats' has no attribute {name!r}.{known}")
    found = globals()[name] = _find_function(name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"]


# Preloads numba and scipy, so that the first interval is fast.
_import("cvstats.core.reduce")
_import("cvstats.core.results")
