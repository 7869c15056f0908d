"""Several files or objects: those of one model each, and logs that were saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, listed
from cvstats.io.asked import Asked
from cvstats.io.columns import turned
from cvstats.io.paths import LONGEST
from cvstats.io.tidy import Tidy

__all__ = ["Saved", "Several", "flattened", "is_saved", "named", "saved_logs", "together"]

COUNTED = ("n_errored", "n_incomplete")
"""The facts about files that add up."""


@dataclass(frozen=True)
class Saved:
    """A log that `save_log` wrote."""

    log: Any


@dataclass(frozen=True)
class Several:
    """Objects of several models, or files that hold them."""

    named: bool
    parts: dict[str, Any]


def is_saved(found: Any) -> bool:
    """Whether this is a log that needs no reader of a tool."""
    return isinstance(found, (Saved, xr.DataArray, xr.Dataset))


def saved_logs(found: Several, tool: str | None) -> dict[str, Any]:
    """Name the logs of several files, each of which was saved by `save_log` or is an array."""
    others = [key for key, part in found.parts.items() if not is_saved(part)]
    if others or tool is not None:
        saved = next(key for key, part in found.parts.items() if is_saved(part))
        other = f"{Path(others[0]).name!r} is not" if others else f"format={tool!r} is of a tool"
        raise LogError(
            f"{Path(saved).name!r} is a log of cvstats, and {other}. Expected files of one kind: "
            f"save the others as logs first, with cvstats.save_log."
        )
    logs: dict[str, Any] = {}
    for key, part in found.parts.items():
        name = key if found.named else Path(key).stem
        if name in logs:
            raise LogError(
                f"two files are called {name!r}, and models are named after their files. Expected "
                f"a name for each, as in read_log({{'ridge': 'a/{name}.csv', …}})."
            )
        logs[name] = part.log if isinstance(part, Saved) else part
    return logs


def flattened(found: Several) -> Several:
    """Take the model out of each directory that holds a single one."""
    parts: dict[str, Any] = {}
    for key, part in found.parts.items():
        if isinstance(part, Several):
            if len(part.parts) > 1:
                raise LogError(
                    f"{Path(key).name!r} holds several models: "
                    f"{listed(map(repr, part.parts))}. Expected a file for each model, or this "
                    f"directory alone."
                )
            (part,) = part.parts.values()
        parts[key] = part
    return Several(found.named, parts)


def together(
    read: Sequence[tuple[str, Tidy]], found: Several, asked: Asked
) -> tuple[str, Tidy]:  # fmt: skip
    """Put the models of several objects below each other."""
    names = [name for name, _ in read]
    tidies = [tidy for _, tidy in read]
    if len(set(names)) > 1:
        raise LogError(f"these are of several formats: {listed(sorted(set(names)))}. Expected one.")
    levels = {frozenset(set(tidy.table.columns) & set(LEVELS)) for tidy in tidies}
    if len(levels) > 1:
        raise LogError(
            "the files have different levels, and so no evaluations in common. Expected the same "
            "design in each."
        )
    chances = [tidy.probabilities for tidy in tidies]
    same = all(dict(one) == dict(chances[0]) for one in chances)
    every = Tidy(
        pd.concat([tidy.table for tidy in tidies], ignore_index=True),
        chances[0] if same else {},
        facts_of(tidies),
        told(list(found.parts), [tidy.lost for tidy in tidies]),
        "; ".join(tidy.note for tidy in tidies if tidy.note),
        kept=[name for name in tidies[0].kept if all(name in tidy.kept for tidy in tidies)],
        takes=tidies[0].takes,
        twice="" if found.named else name_them(list(found.parts)),
    )
    if names[0] == "columns":
        return names[0], turned(every, asked.higher_is_better, asked.path)
    return names[0], every


def facts_of(tidies: Sequence[Tidy]) -> dict[str, Any]:
    """Put together what is known of each file: counts add up, training sizes must be the same."""
    attrs = dict(tidies[0].attrs)
    sizes = [tidy.attrs.get("n_train") for tidy in tidies]
    if any(size != sizes[0] for size in sizes):
        attrs.pop("n_train", None)
    for name in COUNTED:
        number = sum(tidy.attrs.get(name, 0) for tidy in tidies)
        if number:
            attrs[name] = number
    files = [tidy.attrs["read_from"] for tidy in tidies if "read_from" in tidy.attrs]
    if files:
        attrs["read_from"] = ", ".join(files)
    return attrs


def told(keys: Sequence[str], words: Sequence[str]) -> str:
    """Say once what all files have in common, and of which file all else is said."""
    if len(set(words)) == 1:
        return words[0]
    return "; ".join(
        f"{Path(key).name}: {said}" for key, said in zip(keys, words, strict=True) if said
    )


def name_them(files: Sequence[str]) -> str:
    """Say how files of the same model are told apart, such as two runs of it."""
    short = [file if len(file) <= LONGEST else Path(file).name for file in files]
    pairs = zip(("'first'", "'second'"), short, strict=False)
    some = [f"{name}: {file!r}" for name, file in pairs] + ["…"] * (len(files) > 2)
    return f"Leave one file out, or name the models: read_log({{{', '.join(some)}}}, …)"


def named(tidy: Tidy, key: str, by_key: bool, which: str) -> Tidy:
    """Give the rows of one object the name of its model."""
    table = tidy.table
    own = "model" in table and (not by_key or table["model"].nunique() > 1)
    if own and by_key and which != "lm-eval":
        table = table.assign(model=key + "/" + table["model"].astype(str))
    elif not own:
        table = table.assign(model=key if by_key else Path(key).stem)
    return replace(tidy, table=table)
