"""The one error of the package and the words of its longer messages."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from numbers import Real
from pathlib import Path
from urllib.parse import unquote, urlsplit

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


class NoSuchFile(LogError, FileNotFoundError):
    """A file that is not there; a `FileNotFoundError`, for those who look out for it."""


class NotGiven(LogError, TypeError):
    """An argument that has no default was left out; a `TypeError`, as Python raises for it."""


def place(labels: Mapping[str, Hashable]) -> str:
    """Put one evaluation in words: ``repetition=0, fold=2, point='a'``."""
    return ", ".join(f"{level}={spelled(label)}" for level, label in labels.items())


def spelled(label: Hashable) -> str:
    """Spell a label as one would type it: ``2`` and not ``np.int64(2)``."""
    if isinstance(label, np.generic) and label.dtype.kind in "biufcU":
        return repr(label.item())
    return repr(label)


def listed(things: Iterable[object], total: int | None = None) -> str:
    """Name the first few things, and how many more there are."""
    every = list(things)
    shown = [str(thing) for thing in every[:MOST]]
    rest = (len(every) if total is None else total) - len(shown)
    return "; ".join(shown) + (f"; and {rest:,} more" if rest > 0 else "")


def unpaired(details: str) -> LogError:
    """Refuse to pair models; ``details`` say where they differ, and what to do."""
    return LogError(f"the models were not evaluated on the same points: {details}")


def choice(name: str, got: object, allowed: Iterable[object]) -> LogError:
    """Refuse an option that is none of a few words."""
    words = list(allowed)
    return LogError(
        f"{name}={got!r} is not known. Expected one of {', '.join(map(repr, words))}."
        f"{nearest(got, words)}"
    )


def checked_choice(name: str, got: object, allowed: Collection[str | None]) -> None:
    """Refuse an option that is none of a few words, or None where that is one of them."""
    if not (isinstance(got, str) or got is None) or got not in allowed:
        raise choice(name, got, allowed)


def checked_flag(name: str, got: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(got, (bool, np.bool_)):
        raise LogError(f"{name}={got!r} is not known. Expected True or False.")


def checked_level(option: str, got: object) -> None:
    """Refuse what cannot be the name of a level."""
    if not isinstance(got, str):
        raise LogError(
            f"{option}={got!r} is not known. Expected the name of a level, as in {option}='source'."
        )


def check_two_levels(option: str, got: Iterable[object]) -> None:
    """Refuse what does not name two different levels."""
    names = list(got)
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or len(set(names)) < 2:
        raise LogError(
            f"{option}={got!r} is not known. Expected the name of a level, or two different ones, "
            f"as in {option}=('point', 'repetition')."
        )


def is_number(value: object) -> bool:
    """Tell a real number from all else: from True and False, and from what no float can hold."""
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < 1024
    return isinstance(value, Real)


def is_several(value: object) -> bool:
    """Tell a sequence of things from a single one, and from text."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def looked_up(label: object, among: Mapping[Hashable, int]) -> int | None:
    """Find what belongs to a label; None where it is not there, or cannot be a label at all."""
    return among.get(label) if isinstance(label, Hashable) else None


def install_command(extra: str) -> str:
    """Word the command that installs an extra, from where this package was installed.

    pip notes in ``direct_url.json`` what did not come from an index: a folder or a repository.
    """
    try:
        noted = distribution("cvstats").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    origin = json.loads(noted) if noted else {}
    url, editable = str(origin.get("url", "")), ""
    what = f"cvstats[{extra}]"
    if "vcs_info" in origin:
        what = f"{what} @ {origin['vcs_info']['vcs']}+{url}"
    elif "dir_info" in origin and (folder := Path(unquote(urlsplit(url).path))).is_dir():
        what = f"{folder}[{extra}]"
        editable = "-e " if origin["dir_info"].get("editable") else ""
    return f"pip install {editable}{shlex.quote(what)}"


def nearest(got: object, allowed: Iterable[object]) -> str:
    """Name the word that was probably meant, as a sentence of its own; nothing if none is near."""
    words = {plainly(word): word for word in allowed if isinstance(word, str) or word is None}
    near = get_close_matches(plainly(got), words, n=1) if isinstance(got, str) else []
    return f" Perhaps you meant {words[near[0]]!r}." if near else ""


def plainly(word: object) -> str:
    """Write a word without what is easily mistaken: capitals, hyphens and underscores."""
    return str(word).lower().replace("_", "-").replace(" ", "-")
