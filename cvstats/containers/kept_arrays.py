"""Moments of a lazy array, computed chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cvstats.containers.cells import prints_of
from cvstats.containers.kept import Kept, every_gap, levels_of, plain
from cvstats.containers.lazy import lazy_cells, needed, sketch
from cvstats.containers.log import Log
from cvstats.containers.reading import read
from cvstats.errors import LogError
from cvstats.moments import Moments
from cvstats.results import Result
from cvstats.types import FloatArray

__all__ = ["kept_of_array"]

K = TypeVar("K", bound=Kept)


@dataclass(frozen=True)
class Raw:
    """Hand the moments of some columns out as they are."""

    by: tuple[str, ...]

    def __call__(self, log: Log) -> Result:
        """Give means and squared deviations, a row for each cell."""
        found = log.moments(self.by)
        nothing = np.zeros(found.mean.size, dtype=np.int64)
        return Result("moments", {"mean": found.mean, "m2": found.m2}, nothing)


def kept_of_array(
    kind: type[K], losses: Any, gaps: Any, by: str | Sequence[str] | None, missing: str
) -> K:
    """Compute the moments of a lazy array, and of its differences if there are any."""
    log = read(losses, missing=missing)
    levels = levels_of(log, by)
    asked = [tasks(log, levels)]
    if gaps is not None:
        every_gap(log, len(log.design.plan(levels).used))
        asked.append(tasks(read(gaps), levels))
    computed = needed().compute(*(arrays for _, arrays in asked))
    found = []
    for (sketched, _), arrays in zip(asked, computed, strict=True):
        count = sketched.count
        mean, m2 = (flat(arrays[name], len(count)) for name in ("mean", "m2"))
        found.append(
            plain(Moments(levels, sketched.labels, sketched.codes, count, mean, m2))
        )  # fmt: skip
    return kind(
        found[0], log.labels, "point" in log.design.levels, prints_of(log.design, levels),
        found[1] if gaps is not None else None,
    )  # fmt: skip


def flat(values: FloatArray, cells: int) -> FloatArray:
    """Lay carried dimensions out as columns."""
    return np.ascontiguousarray(values).reshape(cells, -1)


def tasks(log: Log, levels: tuple[str, ...]) -> tuple[Moments, dict[str, Any]]:
    """Make the lazy means and squared deviations of all columns."""
    unknown = [name for name in levels if name not in sketch(log, None)[0].levels]
    if len(unknown) > 1:
        raise LogError(
            f"by= names {', '.join(map(repr, unknown))}, which are no levels of a loss log. "
            f"Expected at most one such for a lazy array. Load it: log.compute()."
        )
    template, sketched = sketch(log, unknown[0] if unknown else None)
    found = sketched.moments(levels)
    template = type(template)(
        template.levels, template.labels, template.pointed, template.facts, None
    )  # fmt: skip
    kinds = dict.fromkeys(("mean", "m2"), np.dtype(np.float64))
    return found, lazy_cells(log, template, Raw(levels), kinds, (len(found.count),))
