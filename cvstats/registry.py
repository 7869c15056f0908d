"""The public functions that take a log: where each lives, and the same as methods.

Intervals and comparisons are found by the names of their files.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvstats import comparisons, intervals
from cvstats.errors import nearest

if TYPE_CHECKING:
    from cvstats.intervals._method import Method


OTHERS = {
    "diagnose": "diagnostics",
    "interval": "recommend",
    "methods": "recommend",
    "moments": "describe",
    "report": "reporting",
    "summary": "reporting",
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


def unknown_option(name: str, option: str, known: list[str]) -> TypeError:
    """List the options of a method, and say how models are compared for each label of a level."""
    way = nearest(option, known)
    if option == "by" and "reference" in known:
        way = " Differences are a log of their own: log.cvci.difference().cvci.wald(by='source')."
    return TypeError(
        f"{name}() has no option {option!r}. Expected some of {', '.join(known)}.{way}"
    )


def make_method(function: Callable[..., Any], attribute: str | None) -> Any:
    """Make a method of a function whose first parameter is the log."""
    signature = inspect.signature(function)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        for option in options:
            if option not in signature.parameters:
                raise unknown_option(function.__name__, option, list(signature.parameters)[1:])
        return function(getattr(self, attribute) if attribute else self, *args, **options)

    first, *rest = signature.parameters.values()
    parameters = [first.replace(name="self", annotation=inspect.Parameter.empty), *rest]
    facts = {
        "__name__": function.__name__,
        "__qualname__": function.__qualname__,
        "__module__": function.__module__,
        "__doc__": LOSSES_ENTRY.sub("", function.__doc__ or "", count=1),
        "__signature__": signature.replace(parameters=parameters),
        "__wrapped__": function,
    }
    for name, fact in facts.items():
        setattr(method, name, fact)
    return method


def add_methods(
    owner: type, attribute: str | None = None, *, without: tuple[str, ...] = ()
) -> None:
    """Give a class every function that takes a log as a method.

    Parameters
    ----------
    owner : type
        The class.
    attribute : str, optional
        The attribute of its objects that is the log; the object itself by default.
    without : tuple of str
        Functions to leave out.
    """
    for name in MODULES:
        if name not in without:
            method = LazyMethod(name, attribute)
            method.__set_name__(owner, name)
            setattr(owner, name, method)


def list_methods() -> list[Method]:
    """List the records of all methods: intervals, other statistics, comparisons."""
    found: list[Method] = [intervals.find_method(name) for name in intervals.NAMES]
    found.sort(key=lambda method: not method.is_interval)
    return found + [comparisons.find_method(name) for name in comparisons.NAMES]
