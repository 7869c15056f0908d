"""The exceptions of the package, and helpers to format messages."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from numbers import Real
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

__all__ = ["LogError"]

MOST = 3
"""Number of offending labels listed in a message before the rest is counted."""


class LogError(ValueError):
    """Raised for an invalid loss log, or a call that does not apply to it.

    The message states what was found (with the first offending labels), what was expected, and
    what to type instead. The log is never modified.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> cvstats.wald(pd.Series([], dtype=float))
    Traceback (most recent call last):
        ...
    cvstats.errors.LogError: the log is empty. Expected at least one loss.
    """


class NoSuchFile(LogError, FileNotFoundError):
    """A file does not exist; also a `FileNotFoundError`."""


class NotGiven(LogError, TypeError):
    """A required argument is missing; also a `TypeError`."""


class NeedsLosses(LogError):
    """A call needs individual losses, and the log consists of moments or is lazy."""


def place(labels: Mapping[str, Hashable]) -> str:
    """Format the labels of one evaluation: ``repetition=0, fold=2, point='a'``."""
    return ", ".join(f"{level}={spelled(label)}" for level, label in labels.items())


def spelled(label: Hashable) -> str:
    """Format a label as a user would type it: ``2``, not ``np.int64(2)``."""
    if isinstance(label, np.generic) and label.dtype.kind in "biufcU":
        return repr(label.item())
    return repr(label)


def describe_type(value: object) -> str:
    """Name the type of a value with its article: ``a DataFrame``, ``an int``."""
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeio" or name == "ndarray" else f"a {name}"


def listed(things: Iterable[object], total: int | None = None) -> str:
    """List the first few items, and count the rest; semicolons separate items with commas."""
    every = list(things)
    shown = [str(thing) for thing in every[:MOST]]
    rest = (len(every) if total is None else total) - len(shown)
    mark = "; " if any(", " in thing for thing in shown) else ", "
    return mark.join(shown) + (f"{mark}and {rest:,} more" if rest > 0 else "")


def count_others(total: int) -> str:
    """Count the items other than the first, if there are any: `` (and 3 more)``."""
    return f" (and {total - 1:,} more)" if total > 1 else ""


def unpaired(details: str) -> LogError:
    """Create the error for unpaired models; ``details`` is where they differ, and what to do."""
    return LogError(f"the models were not evaluated on the same points: {details}")


def choice(name: str, got: object, allowed: Iterable[object]) -> LogError:
    """Create the error for an option outside its allowed values."""
    words = list(allowed)
    return LogError(
        f"Invalid {name}={got!r}. Expected one of {', '.join(map(repr, words))}."
        f"{nearest(got, words)}"
    )


def checked_choice(name: str, got: object, allowed: Collection[str | None]) -> None:
    """Reject an option outside its allowed values, which may include None."""
    if not (isinstance(got, str) or got is None) or got not in allowed:
        raise choice(name, got, allowed)


def checked_flag(name: str, got: object) -> None:
    """Reject values other than True and False."""
    if not isinstance(got, (bool, np.bool_)):
        raise LogError(f"Invalid {name}={got!r}. Expected True or False.")


def checked_level(option: str, got: object) -> None:
    """Reject values that cannot be the name of a level."""
    if not isinstance(got, str):
        raise LogError(
            f"Invalid {option}={got!r}. Expected the name of a level, as in {option}='source'."
        )


def check_two_levels(option: str, got: Iterable[object]) -> None:
    """Reject values that do not name two different levels."""
    names = list(got)
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or len(set(names)) < 2:
        raise LogError(
            f"Invalid {option}={got!r}. Expected the name of a level, or two different ones, "
            f"as in {option}=('point', 'repetition')."
        )


def is_number(value: object) -> bool:
    """Whether a value is a real number: not a bool, and representable as a float."""
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < 1024
    return isinstance(value, Real)


def checked_share(needs: str, option: str, got: Any, example: str) -> float:
    """Reject values that are not numbers between 0 and 1."""
    if not is_number(got) or not 0 < got < 1:
        raise LogError(
            f"{needs}, but got {option}={got!r}. Expected a number between 0 and 1, such as "
            f"{option}={example}."
        )
    return float(got)


def is_several(value: object) -> bool:
    """Whether a value is a sequence, and not a single value or a string."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def looked_up(label: object, among: Mapping[Hashable, int]) -> int | None:
    """Look up a label; None if it is absent or unhashable."""
    return among.get(label) if isinstance(label, Hashable) else None


def install_command(extra: str) -> str:
    """Return the command that installs an extra from the origin of this installation.

    pip records in ``direct_url.json`` installations from a folder or a repository.
    """
    try:
        metadata = distribution("cvstats").read_text("direct_url.json")
    except PackageNotFoundError:
        metadata = None
    origin = json.loads(metadata) if metadata else {}
    url, editable = str(origin.get("url", "")), ""
    what = f"cvstats[{extra}]"
    if "vcs_info" in origin:
        what = f"{what} @ {origin['vcs_info']['vcs']}+{url}"
    elif "dir_info" in origin and (folder := Path(unquote(urlsplit(url).path))).is_dir():
        what = f"{folder}[{extra}]"
        editable = "-e " if origin["dir_info"].get("editable") else ""
    return f"pip install {editable}{shlex.quote(what)}"


def nearest(got: object, allowed: Collection[object]) -> str:
    """Suggest the closest word in a sentence; empty if none is close."""
    if not isinstance(got, str):
        return ""
    plain = plainly(got)
    words = {plainly(word): word for word in allowed if isinstance(word, str)}
    if plain == "none" and None in allowed:
        return " Did you mean None?"
    near = get_close_matches(plain, words, n=1)
    return f" Did you mean {words[near[0]]!r}?" if near else ""


@cache
def read_names(kind: str) -> dict[str, str]:
    """Map names in other software to those of this package, as listed in ``names.toml``."""
    import tomllib

    text = files("cvstats").joinpath("names.toml").read_text(encoding="utf-8")
    return {other: name for name, others in tomllib.loads(text)[kind].items() for other in others}


def nearest_option(got: str, known: Collection[str], value: Any = None) -> str:
    """Suggest the option that other software calls ``got``, or the closest one, in a sentence."""
    name = read_names("option").get(plainly(got))
    if name not in known:
        return nearest(got, known)
    if name == "alpha" and is_number(value) and 0.5 < float(value) < 1:
        return f" For {100 * float(value):g}% intervals, pass alpha={1 - float(value):.4g}."
    return f" Did you mean {name!r}?"


def plainly(word: object) -> str:
    """Normalize a word: lowercase, without hyphens and underscores."""
    return str(word).lower().replace("_", "-").replace(" ", "-")
