"""What the attrs of a log tell besides its losses, kept while batches are added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import listed

__all__ = ["Notes"]


@dataclass(frozen=True)
class Notes:
    """The attrs that all batches share, and the names of those in which they differ.

    ``n_train`` is one of them: `cvstats.corrected_t` looks there for the training sizes.
    """

    shared: Mapping[str, Any] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()

    @classmethod
    def of(cls, attrs: Mapping[Any, Any]) -> Notes:
        """Keep what plain text can hold: text, numbers, and lists or mappings of these."""
        plain = {str(name): simple(value) for name, value in attrs.items()}
        return cls({name: value for name, value in plain.items() if value is not Ellipsis})

    def __and__(self, other: Notes) -> Notes:
        """Keep what both say, and note where they differ or one is silent."""
        names = dict.fromkeys((*self.shared, *other.shared))
        alike = {
            name: self.shared[name]
            for name in names
            if name in self.shared and name in other.shared
            and same(self.shared[name], other.shared[name])
        }  # fmt: skip
        lost = (name for name in names if name not in alike)
        return Notes(alike, tuple(dict.fromkeys((*self.mixed, *other.mixed, *lost))))

    def words(self) -> str | None:
        """Say which attrs were left out, if any were."""
        if not self.mixed:
            return None
        return f"{listed(map(repr, self.mixed))}: the batches differ there, so it is not used"


def simple(value: Any) -> Any:
    """Turn a note into plain text, numbers, lists and mappings; an ellipsis where it is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, pd.Series):
        value = value.to_dict()
    if isinstance(value, Mapping):
        keys = [label(key) for key in value]
        things = [simple(entry) for entry in value.values()]
        known = all(thing is not Ellipsis for thing in (*keys, *things))
        return dict(zip(keys, things, strict=True)) if known else Ellipsis
    if isinstance(value, Sequence | np.ndarray):
        things = [simple(entry) for entry in value]
        return things if all(thing is not Ellipsis for thing in things) else Ellipsis
    return Ellipsis


def label(key: Any) -> Any:
    """Keep a key that is a plain label, or a tuple of such."""
    if isinstance(key, tuple):
        parts = tuple(label(part) for part in key)
        return parts if all(part is not Ellipsis for part in parts) else Ellipsis
    key = simple(key)
    return Ellipsis if isinstance(key, list | dict) else key


def same(one: Any, two: Any) -> bool:
    """Whether two notes say the same; not a number is the same as itself."""
    if isinstance(one, float) and isinstance(two, float) and one != one and two != two:
        return True
    return type(one) is type(two) and bool(one == two)
