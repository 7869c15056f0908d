"""From an object to a labelled answer: of the whole log, or of each of its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from cvstats.containers import (
    Axis,
    Groups,
    Log,
    Table,
    apart,
    is_dask_frame,
    is_lazy,
    label_stacked,
    later,
    lazily,
    read,
)
from cvstats.core.result import Result

__all__ = ["answered"]


def answered(
    losses: object,
    run: Callable[[Log], Result],
    *,
    by: str | None = None,
    named: str | None = None,
    missing: str = "raise",
    axis: Axis | None = None,
    at_once: Callable[[Groups], Result | None] | None = None,
) -> Table:
    """Read a log, run a method on it or on its part for each label of ``by``, and label it.

    ``named`` is another level whose labels the method needs, and ``axis`` names what it puts
    below each other in its result. ``at_once`` answers for all parts together, or says None if
    some part has to be asked by itself.
    """
    if is_dask_frame(losses):
        ask = partial(answered, run=run, by=by, named=named, axis=axis, at_once=at_once)
        answer: Table = later(losses, ask, levels=(by, named), missing=missing)
        return answer
    log = replace(read(losses, missing=missing, by=by), used=(by, named))
    if named is not None and named in log.design.levels:
        if by is None or is_lazy(log):
            apart(log.design, named).splits()  # every evaluation needs a label of it
        else:
            run = partial(run_labelled, run, named)
    if is_lazy(log):
        return lazily(log, run, by=by, axis=axis)
    axes: list[Axis] = []
    asked: Callable[[Log], Result] = run
    if by is not None:
        axes.append((by, Groups(log, by).labels))
        asked = partial(run_on_parts, run, at_once, by)
    if axis is not None:
        axes.append(axis)
    result = asked(log)
    return label_stacked(log, axes, result) if axes else log.label(result)


def run_on_parts(
    run: Callable[[Log], Result],
    at_once: Callable[[Groups], Result | None] | None,
    by: str,
    log: Log,
) -> Result:
    """Run a method on the part for each label of a level, on all parts together if it can."""
    groups = Groups(log, by)
    together = at_once(groups) if at_once is not None else None
    return groups.answers(run) if together is None else together


def run_labelled(run: Callable[[Log], Result], name: str, log: Log) -> Result:
    """Run a method that needs a label of one more level at every evaluation."""
    if name in log.design.levels:
        apart(log.design, name).splits()
    return run(log)
