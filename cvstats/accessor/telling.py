"""What the parts of the accessor share: the object, and docstrings told by functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from cvstats.api.running import Losses

__all__ = ["Holder", "told_by"]

F = TypeVar("F", bound=Callable[..., Any])

LOSSES_ENTRY = re.compile(r"^    losses : .*\n(?:^        .*\n)+", re.MULTILINE)


def told_by(function: Callable[..., Any]) -> Callable[[F], F]:
    """Give a method the docstring of the function it calls, less the parameter ``losses``."""

    def tell(method: F) -> F:
        method.__doc__ = LOSSES_ENTRY.sub("", function.__doc__ or "", count=1)
        return method

    return tell


class Holder:
    """Hold a loss log and nothing else."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
