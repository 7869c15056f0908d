"""The call to type for a table whose columns have names of their own."""

from __future__ import annotations

import re
from collections.abc import Collection

import pandas as pd

from cvstats.readers.asked import Asked

__all__ = ["call_for"]

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
LOSSES = r"loss|error|(?:^|_)(?:se|ae|mae|rmse|mse)$"


def call_for(table: pd.DataFrame, asked: Asked) -> str:
    """Name the columns of a table, and the call that tells which is which.

    What can be guessed of the names stands in the call, what cannot is left to be filled in.
    """
    names = [str(name) for name in table.columns]
    shown = ", ".join(map(repr, names[:MOST]))
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    free = dict.fromkeys(names)
    given = {**asked.levels, "truth": asked.truth, "model": asked.model}
    given |= {"prediction": asked.prediction, "metric": asked.metric}
    found = {key: name for key, name in given.items() if name is not None}
    for taken in found.values():
        free.pop(str(taken), None)
    metric = None if {"truth", "prediction"} & set(found) else first(LOSSES, free)
    for option, pattern in LIKELY.items():
        if option not in found and not (metric and option in ("truth", "prediction")):
            name = first(pattern, free)
            if name is not None and name != metric:
                found[option] = name
                free.pop(name)
    if "metric" not in found and metric is not None:
        found["metric"] = metric
    elif "metric" not in found:
        found = {"truth": "…", "prediction": "…", **found}
    if not {"fold", "source", "repetition"} & set(found):
        found["fold"] = "…"
    ordered = sorted(found, key=lambda option: option not in ("truth", "prediction", "metric"))
    words = [f"{option}={found[option]!r}" for option in ordered]
    if "metric" not in found:
        loss = asked.loss if isinstance(asked.loss, str) else "squared_error"
        words.append(f"loss={loss!r}")
    return f"The columns are {shown}{more}. Type which is which: read_log(path, {', '.join(words)})"


def first(pattern: str, names: Collection[str]) -> str | None:
    """Find the first name that matches."""
    return next((name for name in names if re.search(pattern, name, re.IGNORECASE)), None)
