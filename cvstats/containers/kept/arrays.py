"""Moments of a lazy array, computed chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from cvstats.containers.kept.batches import Kept, every_gap, levels_of, plain, read_apart, unheeded
from cvstats.containers.kept.met import met_in
from cvstats.containers.kept.notes import Notes
from cvstats.containers.lazy.arrays import lazy_template_of, told_later
from cvstats.containers.lazy.evaluated import design_at
from cvstats.containers.lazy.graph import lazy_cells, lazy_rows
from cvstats.containers.lazy.naming import needed
from cvstats.containers.log import Log
from cvstats.core.design import Design
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError

__all__ = ["kept_of_array"]

K = TypeVar("K", bound=Kept)


@dataclass(frozen=True)
class Raw:
    """Hand the moments of some columns out as they are.

    Where it is not known yet which cells there are, they are laid out over all labels (a table
    of ``shape``), and what does not occur is NaN.
    """

    by: tuple[str, ...]
    shape: tuple[int, ...] | None

    def __call__(self, log: Log) -> Result:
        """Give means, squared deviations and in each cell the origin of the means."""
        found = log.moments(self.by)
        mean, m2, origin = found.mean, found.m2, np.broadcast_to(found.origin, found.mean.shape)
        if self.shape is not None:
            mean = np.full((*self.shape, found.mean.shape[1]), np.nan)
            m2, origin = mean.copy(), mean.copy()
            at = tuple(found.codes.T)
            mean[at], m2[at], origin[at] = found.mean, found.m2, found.origin
        nothing = np.zeros(mean.size, dtype=np.int64)
        return Result("moments", {"mean": mean, "m2": m2, "origin": origin}, nothing)


def kept_of_array(
    kind: type[K], losses: Any, gaps: Any, by: str | Sequence[str] | None, missing: str
) -> K:
    """Compute the moments of a lazy array, and of its differences if there are any."""
    log, within = read_apart(losses, by, missing)
    levels = levels_of(log, by)
    logs = [log]
    if gaps is not None:
        every_gap(log, len(log.design.cell_table(levels).used))
        logs.append(read_apart(gaps, by, missing)[0])
    panels = told_later(log)
    rows = None if panels is None else lazy_rows(panels)
    *computed, found = needed().compute(*(tables(each, levels) for each in logs), rows)
    design, dropped = log.design, None
    if panels is not None:
        design = design_at(panels.layout, found[0])
        dropped = len(found[1]) - len(found[0]) if panels.drop else None
        design.splits()
    moments = [moments_at(design, levels, arrays, panels is not None) for arrays in computed]
    prints, met = met_in(design, levels)
    return kind(
        moments[0], log.labels, "point" in design.levels, prints,
        moments[1] if gaps is not None else None, 1, dropped, Notes.of(log.noted), within,
        unheeded(log, levels), met,
    )  # fmt: skip


def moments_at(
    design: Design, levels: tuple[str, ...], arrays: dict[str, Any], spread: bool
) -> Moments:
    """Take the cells that occur, out of tables of all labels if they were spread over these."""
    plan = design.cell_table(levels)
    codes, count = design.codes_of(plan), plan.total[plan.used].astype(np.float64)
    labels = tuple(design.levels[name].labels for name in levels)
    at = tuple(codes.T) if spread else (slice(None),)
    mean, m2, origin = (flat(arrays[name][at], len(count)) for name in ("mean", "m2", "origin"))
    return plain(Moments(levels, labels, codes, count, mean, m2, origin[0]))


def flat(values: FloatArray, cells: int) -> FloatArray:
    """Lay carried dimensions out as columns."""
    return np.ascontiguousarray(values).reshape(cells, -1)


def tables(log: Log, levels: tuple[str, ...]) -> dict[str, Any]:
    """Make the lazy means and squared deviations of all columns."""
    unknown = [name for name in levels if name not in lazy_template_of(log, None)[0].levels]
    if len(unknown) > 1:
        raise LogError(
            f"by= names {', '.join(map(repr, unknown))}, which are no levels of a loss log. "
            f"Expected at most one such for a lazy array. Load it: log.compute()."
        )
    template, _ = lazy_template_of(log, unknown[0] if unknown else None)
    template = replace(template, by=None)
    kinds = dict.fromkeys(("mean", "m2", "origin"), np.dtype(np.float64))
    if told_later(log) is not None:
        shape = tuple(len(log.design.levels[name].labels) for name in levels)
        return lazy_cells(log, template, Raw(levels, shape), kinds, shape)
    cells = len(log.design.cell_table(levels).used)
    return lazy_cells(log, template, Raw(levels, None), kinds, (cells,))
