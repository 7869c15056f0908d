"""The call to type for a table whose columns have names of their own."""

from __future__ import annotations

import re
from collections.abc import Collection

import pandas as pd

from cvstats.readers.asked import Asked

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
"""How the columns of each option are often called; what comes first chooses first."""
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
    for option, pattern in LIKELY.items():
        if option not in found and not (losses and option in ("truth", "prediction")):
            name = first(pattern, free)
            if name is not None and name != metric:
                found[option] = name
                free.pop(name)
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
    return f"The columns are {shown}{more}. Type which is which: read_log(path, {', '.join(words)})"


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
    return next((name for name in names if re.search(pattern, name, re.IGNORECASE)), None)
