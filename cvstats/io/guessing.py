"""The call to type for a table whose columns have names of their own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from cvstats.io.asked import Asked

__all__ = ["call_for", "telling_apart"]

MOST = 12
"""How many columns a message names."""

LIKELY = {
    "fold": r"fold|split|(?:^|_)cv",
    "repetition": r"repeti|repeat|(?:^|_)rep(?:_|$)|seed|(?:^|_)run",
    "truth": r"true|truth|target|label|actual|observed|(?:^|_)obs|^y$|response",
    "prediction": r"pred|hat$|forecast|prob|guess|fitted|oof",
    "model": r"model|learner|algorithm|method|estimator",
    "point": r"(?:^|_)id$|^id(?:_|$)|(?:^|_)row|index|case|record|sample",
    "source": r"source|site|subject|patient|group|cluster|center|centre|hospital|user|month",
}
"""How the columns of each option are often called, in small letters with underscores; what comes
first chooses first."""
BY_NAME = ("fold", "repetition", "truth", "prediction", "model")
"""The options whose columns are known by their names alone."""
LOSSES = r"loss|error|(?:^|_)(?:err|se|ae|mae|rmse|mse)$"
FIRST = ("truth", "prediction", "metric", "loss")


def call_for(table: pd.DataFrame, asked: Asked) -> str:
    """Name the columns of a table, and the call that tells which is which.

    What can be guessed of the names stands in the call, what cannot is left to be filled in.
    """
    names = [str(name) for name in table.columns]
    shown = ", ".join(map(repr, names[:MOST]))
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    free = dict.fromkeys(names)
    held = asked.loss if isinstance(asked.loss, str) and asked.loss in names else None
    given = {**asked.levels, "truth": asked.truth, "model": asked.model}
    given |= {"prediction": asked.prediction, "metric": asked.metric, "loss": held}
    found = {key: name for key, name in given.items() if name is not None}
    for taken in found.values():
        free.pop(str(taken), None)
    known = {"truth", "prediction", "metric", "loss"} & set(found)
    metric = None if known else first(LOSSES, free)
    losses = metric or asked.metric or held
    for option in BY_NAME:
        if option not in found and not (losses and option in ("truth", "prediction")):
            name = first(LIKELY[option], free)
            if name is not None and name != metric:
                found[option] = name
                free.pop(name)
    found |= points_and_sources(table, [name for name in free if name != metric], found)
    if metric is not None:
        found["metric"] = metric
    elif not losses:
        found = {"truth": "…", "prediction": "…", **found}
    if not {"fold", "source", "repetition"} & set(found):
        found["fold"] = "…"
    ordered = sorted(found, key=lambda option: option not in FIRST)
    words = [f"{option}={found[option]!r}" for option in ordered]
    if not losses:
        loss = asked.loss if isinstance(asked.loss, str) else "squared_error"
        words.append(f"loss={loss!r}")
    file = "path" if asked.path is None else repr(asked.path)
    return (
        f"The columns are {shown}{more}. Type which is which: read_log({file}, {', '.join(words)})"
    )


def points_and_sources(
    table: pd.DataFrame, free: Collection[str], found: Mapping[str, Any]
) -> dict[str, str]:
    """Guess which column names the points and which their groups.

    A label that stands once names a point, whatever its column is called, and one that repeats
    may name a group: ``patient_id`` is either. Of each model, or repetition, a point stands once.
    """
    taken = {str(found[name]) for name in ("model", "repetition") if name in found}
    by = [at for at, name in enumerate(map(str, table.columns)) if name in taken]
    points = [name for name in free if matches(LIKELY["point"], name)]
    groups = [name for name in free if matches(LIKELY["source"], name)]
    single = [name for name in (*points, *groups) if once_each(table, name, by)]
    guessed: dict[str, str] = {}
    if "point" not in found:
        others = [name for name in points if name not in groups]
        guessed |= dict(zip(["point"], [*single, *others], strict=False))
    if "source" not in found:
        repeated = [name for name in groups if name not in single]
        guessed |= dict(zip(["source"], repeated, strict=False))
    return guessed


def once_each(table: pd.DataFrame, name: str, by: Collection[int]) -> bool:
    """Whether each label of a column stands once (within the columns ``by``)."""
    at = [*map(str, table.columns)].index(name)
    try:
        return not table.iloc[:, [*by, at]].duplicated().any()
    except TypeError:  # lists or mappings, which name nothing
        return False


def telling_apart(spare: pd.DataFrame, keys: pd.DataFrame, known: Collection[str]) -> str:
    """Name a column that tells evaluations apart which have all their labels in common.

    ``keys`` are the labels of each row, ``known`` the levels that have a column already.
    """
    for level in ("point", "repetition", "fold", "source", "model"):
        if level in known:
            continue
        name = first(LIKELY[level], [str(name) for name in spare.columns])
        if name is None or name not in spare.columns:
            continue
        column = spare[name].reset_index(drop=True)
        if not keys.assign(**{"also this": column}).duplicated().any():
            return f"{level}={name!r}"
    return ""


def first(pattern: str, names: Collection[str]) -> str | None:
    """Find the first name that matches."""
    return next((name for name in names if matches(pattern, name)), None)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is of a kind, however it is written: ``Patient ID`` is ``patient_id``."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return re.search(pattern, re.sub(r"\W+", "_", apart).strip("_").lower()) is not None
