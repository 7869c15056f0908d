"""Checks of options that need no log: error rates, numbers, and words of a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from cvstats.errors import LogError, checked_choice, is_number, is_several

__all__ = [
    "Alternative",
    "Missing",
    "check_alpha",
    "check_choices",
    "check_numbers",
    "find_choices",
]

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
Missing: TypeAlias = Literal["raise", "drop"]


def check_alpha(alpha: object) -> None:
    """Refuse what is not an error rate."""
    if not isinstance(alpha, (float, np.floating)) or not 0 < alpha < 1:
        raise LogError(
            f"alpha={alpha!r} is out of range. Expected an error rate between 0 and 1, such as "
            f"0.05 for a 95% interval."
        )


def check_numbers(name: str, got: object, *, several: bool = False) -> None:
    """Refuse what is not a finite number, or with ``several`` not a sequence of them."""
    sequence = is_several(got)
    values: list[Any] = list(got) if isinstance(got, Iterable) and sequence else [got]
    finite = all(is_number(value) and math.isfinite(value) for value in values)
    if several != sequence or not finite:
        expected = "a sequence of finite numbers" if several else "a finite number"
        raise LogError(f"{name}={got!r} is out of range. Expected {expected}.")


def find_choices(function: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Read the allowed words of each option off the annotations: ``Literal["CR1", "CR3"]``."""
    found = {}
    for name, hint in get_type_hints(function).items():
        parts = (hint,) if get_origin(hint) is Literal else get_args(hint)
        words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        if words and all(get_origin(part) is Literal or part is type(None) for part in parts):
            found[name] = (*words, None) if type(None) in parts else tuple(words)
    return found


def check_choices(options: Mapping[str, Any], choices: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse words that an option does not know."""
    for name, allowed in choices.items():
        if name in options:
            checked_choice(name, options[name], allowed)
