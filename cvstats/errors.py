"""The one error of the package and the words of its longer messages."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

__all__ = ["LogError"]

MOST = 3
"""How many offending labels a message names before it only counts the rest."""


class LogError(ValueError):
    """A loss log, or a question put to it, that cannot be answered as asked.

    The message says what was expected, what was found (with the first offending labels) and
    what to type instead. The log that was passed in is never changed.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> cvstats.wald(pd.Series([], dtype=float))
    Traceback (most recent call last):
        ...
    cvstats.errors.LogError: the log is empty. Expected at least one loss.
    """


def place(labels: Mapping[str, Hashable]) -> str:
    """Put one evaluation in words: ``repetition=0, fold=2, point='a'``."""
    return ", ".join(f"{level}={spelled(label)}" for level, label in labels.items())


def spelled(label: Hashable) -> str:
    """Spell a label as one would type it: ``2`` and not ``np.int64(2)``."""
    if isinstance(label, np.generic) and label.dtype.kind in "biufU":
        return repr(label.item())
    return repr(label)


def listed(things: Iterable[object], total: int | None = None) -> str:
    """Name the first few things, and how many more there are."""
    every = list(things)
    shown = [str(thing) for thing in every[:MOST]]
    rest = (len(every) if total is None else total) - len(shown)
    return "; ".join(shown) + (f"; and {rest:,} more" if rest > 0 else "")


def choice(name: str, got: object, allowed: Iterable[str]) -> LogError:
    """Refuse an option that is none of a few words."""
    words = ", ".join(word if word == "None" else repr(word) for word in allowed)
    return LogError(f"{name}={got!r} is not known. Expected one of {words}.")
