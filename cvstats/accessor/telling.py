"""What the parts of the accessor share: the object, and docstrings told by functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from cvstats.api.running import Losses

__all__ = ["Holder", "told_by"]

F = TypeVar("F", bound=Callable[..., Any])

LOSSES_ENTRY = re.compile(r"^    losses : .*\n(?:^        .*\n)+", re.MULTILINE)


def told_by(room: str) -> Callable[[F], F]:
    """Give a method the words of the function of its name in ``room``, when they are asked for.

    Until then neither the function nor anything that it needs is imported, so that an import of
    `cvstats` stays quick.
    """

    def tell(method: F) -> F:
        # Whoever looks at the method gets the method: type checkers may take it for that.
        return cast(F, Untold(method, room))

    return tell


class Untold:
    """Stand for a method until somebody looks at it, on the class or on an object.

    Parameters
    ----------
    method : callable
        The method, without a docstring.
    room : str
        The module with the function of the same name.
    """

    def __init__(self, method: Callable[..., Any], room: str) -> None:
        self._method = method
        self._room = room

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the class to put the method into."""
        self._owner = owner

    def __get__(self, holder: object | None, owner: type | None = None) -> Any:
        """Tell the method what it does, and hand the place over to it."""
        method = self._method
        function = vars(import_module(self._room))[method.__name__]
        method.__doc__ = LOSSES_ENTRY.sub("", function.__doc__ or "", count=1)
        # The types in its signature are known by name where the function lives, and not here.
        update_wrapper(method, function, assigned=(), updated=())
        setattr(self._owner, method.__name__, method)
        return method.__get__(holder, owner)


class Holder:
    """Hold a loss log and nothing else."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
