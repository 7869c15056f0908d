"""Comparisons of models, each in the module that has its name.

A module without an underscore in front holds one comparison: the public function, its formula and
its record ``METHOD``. Two more hold what several comparisons share: `multiplicity` and `max_t`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cvstats.intervals._method import Method

__all__ = ["NAMES", "find_method"]

SHARED = ("max_t", "multiplicity")

NAMES = tuple(
    sorted(
        info.name
        for info in iter_modules(__path__)
        if info.name[0] != "_" and info.name not in SHARED
    )
)
"""The comparisons by name."""


def find_method(name: str) -> Method:
    """Import a comparison and return its record."""
    method: Method = import_module(f"{__name__}.{name}").METHOD
    return method
