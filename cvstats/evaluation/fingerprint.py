"""Short marks of plans, data and estimators, the same in every process that has the same ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["mark"]


def mark(value: Any) -> str:
    """Give a value a mark of 16 digits."""
    return hashlib.sha256(told(value).encode()).hexdigest()[:16]


def told(value: Any) -> str:
    """Describe a value completely, without anything that depends on the process."""
    if isinstance(value, (str, bytes, int, float, bool, complex, np.generic, type(None))):
        return f"{type(value).__name__} {value!r}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return f"{named(type(value))} {told(value.get_params(deep=False))}"
    if isinstance(value, Mapping):
        return f"{named(type(value))} {sorted((told(k), told(v)) for k, v in value.items())}"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__} {sorted(map(told, value))}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} {[told(item) for item in value]}"
    if isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        return table(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.dtype} {value.shape} {digest(np.ascontiguousarray(value).data)}"
    if isinstance(value, (type, FunctionType, partial, CodeType)) or callable(value):
        return function(value)
    return str(import_module("joblib").hash(value))


def digest(values: Any) -> str:
    """Mark a stretch of memory."""
    return hashlib.sha256(values).hexdigest()


def table(value: pd.DataFrame | pd.Series | pd.Index) -> str:
    """Describe a table by its rows; the index is no part of it."""
    try:
        rows = pd.util.hash_pandas_object(value, index=False).to_numpy()
    except TypeError:  # a cell holds a list or the like
        return str(import_module("joblib").hash(value))
    columns = told(list(value.columns)) if isinstance(value, pd.DataFrame) else ""
    kinds = value.dtypes.astype(str).tolist() if isinstance(value, pd.DataFrame) else value.dtype
    return f"table {len(value)} {columns} {kinds} {digest(np.ascontiguousarray(rows).data)}"


def function(value: Any) -> str:
    """Describe a function by its name, its code and all that it carries with it."""
    if isinstance(value, CodeType):
        return f"{value.co_name} {value.co_code.hex()} {value.co_names} {told(value.co_consts)}"
    if isinstance(value, partial):
        return f"partial {told([value.func, value.args, value.keywords])}"
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        carried = [value.__defaults__, value.__kwdefaults__, cells]
        return f"{named(value)} {told(value.__code__)} {told(carried)}"
    if hasattr(value, "__name__"):
        return named(value)
    return f"{named(type(value))} {told(getattr(value, '__dict__', None))}"


def named(thing: Any) -> str:
    """Name a class or function with its module."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', thing.__name__)}"
