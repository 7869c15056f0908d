"""Intervals and other statistics of one log, each in the module that has its name.

A module without an underscore in front holds one method: the public function, its formula and
its record ``METHOD``, from which everything else follows.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cvstats.intervals._method import LogMethod

__all__ = ["NAMES", "find_method", "interval_names"]

NAMES = tuple(sorted(info.name for info in iter_modules(__path__) if info.name[0] != "_"))
"""The methods by name."""


def find_method(name: str) -> LogMethod:
    """Import a method and return its record."""
    method: LogMethod = import_module(f"{__name__}.{name}").METHOD
    return method


def interval_names(*, for_differences: bool = False, of_groups: bool = False) -> list[str]:
    """List the methods that return intervals; those for differences, or for groups, alone."""
    methods = [find_method(name) for name in NAMES]
    return [
        method.name
        for method in methods
        if method.is_interval
        and (method.for_differences or not for_differences)
        and (method.of_groups or not of_groups)
    ]
