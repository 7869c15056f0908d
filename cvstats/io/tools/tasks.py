"""Benchmarks of several tasks: the score that each task has, and the facts about their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cvstats.errors import LogError, listed

MOST = 10
"""So many names a message lists."""
SEVERAL = {
    "metric": "the samples{of} have {number} scores: {some}. Expected one of them: {call}.",
    "filter": "each sample{of} was scored after several filters: {every}. Expected one of them: "
    "{call}.",
}
UNKNOWN = {
    "metric": "there is no score {wanted!r}{of}. Expected metric= to be one of {every}.",
    "filter": "filter={wanted!r} is not known{of}. Expected one of {every}.",
}


def choose_names(
    option: str, asked: str | Mapping[str, str] | None, names: Mapping[str, Sequence[str]],
    otherwise: str,
) -> dict[str, str]:  # fmt: skip
    """Choose a name for each task: the one that is asked for, or the only one that it has.

    Parameters
    ----------
    option : str
        "metric" or "filter".
    asked : str or mapping, optional
        One name, for the tasks that have it, or the name for each task.
    names : mapping
        The names that each task has.
    otherwise : str
        The name to advise where a task has none.

    Returns
    -------
    dict
        The name for each task.

    Raises
    ------
    LogError
        If a task has several names and none of them was asked for, or lacks the one that was.
    """
    by_task = asked if isinstance(asked, Mapping) else None
    if strange := [task for task in by_task or () if task not in names]:
        raise LogError(
            f"{option}= names the task {strange[0]!r}. Expected some of {listed(map(repr, names))}."
        )
    known = {name for every in names.values() for name in every}
    chosen = {}
    for task, every in names.items():
        wanted = asked if by_task is None else by_task.get(task)
        elsewhere = by_task is None and len(names) > 1 and wanted in known
        if wanted in every:
            chosen[task] = str(wanted)
        elif len(every) == 1 and (wanted is None or elsewhere):
            chosen[task] = every[0]
        else:
            first = every[0] if every else otherwise
            call = f"{option}={first!r}" if len(names) == 1 else f"{option}={{{task!r}: {first!r}}}"
            words = (SEVERAL if wanted is None else UNKNOWN)[option]
            raise LogError(
                words.format(
                    wanted=wanted, number=len(every), some=listed(map(repr, every)), call=call,
                    of="" if len(names) == 1 else f" of the task {task!r}",
                    every=", ".join(map(repr, every[:MOST])) or "the scores, and there are none",
                )
            )  # fmt: skip
    return chosen


def refuse_other_scales(
    scores: pd.Series, task: pd.Series, chosen: Mapping[str, str], lower: Mapping[str, bool]
) -> None:
    """Refuse to average scores that mean different things."""
    if len(set(chosen.values())) == 1:
        return
    worse = [name for name, is_lower in lower.items() if is_lower]
    if worse and len(worse) < len(lower):
        better = next(name for name in lower if name not in worse)
        raise LogError(
            f"the score of the task {worse[0]!r} is better when lower, that of {better!r} when "
            f"higher, and their mean would mean nothing. Expected one direction: read the tasks "
            f"one by one, or pass metric={{{worse[0]!r}: …}}."
        )
    wide = (scores < 0) | (scores > 1)
    if wide.any():
        raise LogError(
            f"the task {task[wide].iloc[0]!r} has the score {scores[wide].iloc[0]:g}, and others "
            f"have other scores. Expected scores from 0 to 1 where these are averaged over tasks: "
            f"read the tasks one by one, or pass metric={{…}}."
        )


def facts_of_scores(chosen: Mapping[str, str], higher: bool) -> dict[str, Any]:
    """Describe the losses: from which scores they were made, and how tasks are averaged."""
    name = " or ".join(dict.fromkeys(chosen.values()))
    facts: dict[str, Any] = {"loss": f"1 - {name}" if higher else name}
    if higher:
        facts |= {"metric": name, "orientation": "1 - score"}
    if len(chosen) > 1:
        facts |= {
            "sources_are": "fixed",
            "task_metrics": dict(chosen),
        }
    return facts
