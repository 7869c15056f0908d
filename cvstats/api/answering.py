"""From an object to a labelled answer: of the whole log, or of each of its parts."""

from __future__ import annotations

from collections.abc import Callable

from cvstats.containers import Axis, Groups, Log, Table, apart, label_stacked, read
from cvstats.results import Result

__all__ = ["answered"]


def answered(
    losses: object,
    run: Callable[[Log], Result],
    *,
    by: str | None = None,
    named: str | None = None,
    missing: str = "raise",
    axis: Axis | None = None,
) -> Table:
    """Read a log, run a method on it or on its part for each label of ``by``, and label it.

    ``named`` is another level whose labels the method needs, and ``axis`` names what it puts
    below each other in its result.
    """
    log = read(losses, missing=missing, by=by)
    if named is not None and named in log.design.levels:
        apart(log.design, named).splits()  # every evaluation needs a label of it
    axes: list[Axis] = []
    if by is None:
        result = run(log)
    else:
        groups = Groups(log, by)
        result = groups.answers(run)
        axes.append((by, groups.labels))
    if axis is not None:
        axes.append(axis)
    return label_stacked(log, axes, result) if axes else log.label(result)
