"""A design in which one more level tells evaluations apart, where it is named for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from cvstats.core.design import LEVELS, SPLIT, WINDOW, Design, SplitSizes
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed, nearest, spelled

__all__ = ["Apart", "apart"]


def apart(design: Design, name: object) -> Apart:
    """Let a level tell evaluations apart, if the log has it.

    Raises
    ------
    LogError
        If there is no such level.
    """
    if not isinstance(name, str) or name not in design.levels:
        known = listed(map(repr, design.levels)) or "none"
        raise LogError(
            f"the log has no level {name!r}. Expected one of its levels, or of the coordinates "
            f"along its evaluations: {known}.{nearest(name, design.levels)}"
        )
    if isinstance(design, Apart):
        return replace(design, name=name)
    same = {entry.name: getattr(design, entry.name) for entry in fields(Design)}
    return Apart(**same, name=name)


@dataclass(frozen=True, eq=False)
class Apart(Design):
    """A design in which one more level may tell evaluations apart.

    A point may then come back in the same repetition under another label of that level, as it
    does where several logs stand below each other.
    """

    name: str = field(kw_only=True)

    def identity(self) -> tuple[str, ...]:
        """List the levels that tell evaluations apart, the added one first."""
        known = super().identity()
        return known if self.name in known else (self.name, *known)

    def splits(self) -> SplitSizes:
        """Check that each evaluation stands once, within its part if it must be (remembered)."""
        if ("labelled", self.name) not in self.facts:
            self.check_labels((self.name,))
            self.facts["labelled", self.name] = True
        if "splits" not in self.facts and ("splits", self.name) not in self.facts:
            self.check_labels([name for name in self.identity() if name != "point"])
            self._checked()
        found: SplitSizes = self.facts.get("splits") or self.facts["splits", self.name]
        return found

    def _checked(self) -> None:
        by = tuple(level for level in SPLIT if level in self.levels)
        wider = by if self.name in LEVELS else (self.name, *by)
        for within in dict.fromkeys((by, wider)):
            found = self._unique(within)
            if found is not None:
                self.facts["splits" if within == by else ("splits", self.name)] = found
                return
        self.check_labels(("point",))
        raise self._repeated_error(wider)

    def _unique(self, by: tuple[str, ...]) -> SplitSizes | None:
        """Count the rows of each split, if no point appears twice in one."""
        rows = self.cell_table(by).total
        rows = rows[rows > 0]
        if "point" not in self.levels:
            return SplitSizes(rows, int(rows.sum()) if len(rows) == 1 else None)
        for scoped in (False, True) if "source" in self.levels else (False,):
            unique, points = self._count_points(by, scoped)
            if unique:
                self.facts["scoped"] = scoped
                return SplitSizes(rows, points)
        return None

    # --- points of each part ----------------------------------------------------------------

    def points(self) -> tuple[IntArray, str | None]:
        """Count the different points under each label of the level (remembered).

        Also, in words, a point that stands under several of them, if there is one.
        """
        if ("points", self.name) not in self.facts:
            self.facts["points", self.name] = self._points()
        counts, moved = self.facts["points", self.name]
        if moved is None:
            return counts, None
        row, code = moved  # in words only now: an index may get other labels
        other = spelled(self.levels[self.name].labels[code])
        return counts, f"the point at {self.format_labels(row)} stands in {self.name}={other} too"

    def _points(self) -> tuple[IntArray, tuple[int, int] | None]:
        """Count them; also find the row of such a point, and the code of another of its labels."""
        if "scoped" not in self.facts:
            self._unique(tuple(level for level in self.identity() if level in SPLIT))
        offset, width = None, len(self.point_level().labels)
        if self.facts.get("scoped"):
            offset, width = self._source_offsets()
        owner = np.full(width, -1, dtype=np.int32)
        for _, points, labels in self._rows(offset):
            owner[points] = labels
        for rows, points, labels in self._rows(offset):
            moved = np.flatnonzero(owner[points] != labels)
            if len(moved):
                place = int(rows[moved[0]]), int(owner[points[moved[0]]])
                return self._shared(offset, width), place
        size = len(self.levels[self.name].labels)
        return np.bincount(owner[owner >= 0], minlength=size).astype(np.int64), None

    def _rows(self, offset: Any) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Go through the evaluations: their rows, points and labels of the level."""
        for start, stop in block_bounds(self.size, BLOCK):
            points = self._point_codes(offset, start, stop)
            labels = self.levels[self.name].block(start, stop).astype(np.int64)
            here = (points >= 0) & (labels >= 0)
            if self.present is not None:
                here &= self.present[start:stop]
            rows = np.flatnonzero(here)
            yield (rows + start).astype(np.int64), points[rows], labels[rows]

    def _shared(self, offset: Any, width: int) -> IntArray:
        """Count the points of each label where a point may have several."""
        size = len(self.levels[self.name].labels)
        counts = np.zeros(size, dtype=np.int64)
        step = max(1, WINDOW // max(width, 1))
        for low in range(0, size, step):
            seen = np.zeros((min(step, size - low), width), dtype=bool)
            for _, points, labels in self._rows(offset):
                held = (labels >= low) & (labels < low + step)
                seen[labels[held] - low, points[held]] = True
            counts[low : low + step] = seen.sum(axis=1)
        return counts
