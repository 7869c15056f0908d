"""A log of which only the moments of its cells are known, with the interface of any log.

The losses are gone (streamed away) or not there yet (lazy). What a method asks of the design is
answered from the cells; what only single losses can answer is refused in words.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.containers.apart import Apart
from cvstats.containers.hashing import Prints, as_index
from cvstats.containers.log import Log
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Columns, Differences, Panels
from cvstats.core.design import LEVELS, SPLIT, Design, Keys, Level, Plan, Splits
from cvstats.core.moments import Moments
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, listed, spelled

__all__ = [
    "CellDesign",
    "CellLog",
    "CellPanels",
    "Prints",
    "as_index",
    "canonical",
    "cell_levels",
    "in_order",
]


def cell_levels(design: Design) -> tuple[str, ...]:
    """Name the levels that tell cells apart: all but the points and how often they were drawn."""
    found = tuple(name for name in LEVELS if name in design.levels)
    if "count" in found:
        raise LogError(
            "this is a bootstrap log (level 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources; or this log in memory, and all "
            "of it."
        )
    return tuple(name for name in found if name != "point")


class CellPanels(Panels):
    """As many columns as the log has, whose losses nobody can have."""

    def __init__(self, width: int, words: str) -> None:
        object.__setattr__(self, "_width", width)
        object.__setattr__(self, "words", words)

    @property
    def width(self) -> int:
        """Number of columns."""
        return self._width

    @cached_property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """Refuse: there are no losses to look at."""
        raise LogError(self.words)

    _width: int
    words: str


@dataclass(frozen=True, eq=False)
class CellDesign(Apart):
    """The design of a log, as far as its cells tell.

    Parameters
    ----------
    whole : Moments
        The cells; only their labels and counts are used.
    prints : array of uint64, shape (cells,), optional
        Sums of the hashes of the points.
    words : str
        What to say to somebody who asks for more than cells.
    within : str
        The level that tells several logs apart, if these are several.
    """

    name: str = field(kw_only=True, default="")
    whole: Moments = field(kw_only=True)
    prints: Prints | None = field(kw_only=True, default=None)
    words: str = field(kw_only=True)
    within: str = field(kw_only=True, default="")

    @classmethod
    def of(
        cls, cells: Moments, prints: Prints | None, pointed: bool, words: str, within: str = ""
    ) -> CellDesign:
        """Make levels of the labels of the cells; a level of points has a name and no labels."""
        levels = {
            level: Level(labels, cells.codes[:, i])
            for i, (level, labels) in enumerate(zip(cells.levels, cells.labels, strict=True))
        }
        if pointed:
            levels["point"] = Level((), np.zeros(0, dtype=np.int64))
        size = int(cells.count.sum())
        return cls(levels, size, whole=cells, prints=prints, words=words, within=within)

    def plan(self, by: tuple[str, ...]) -> Plan:
        """Count the losses in the cells of some levels (remembered)."""
        if ("plan", by) not in self.facts:
            self.facts["plan", by] = self._counted(by)
        found: Plan = self.facts["plan", by]
        return found

    def _counted(self, by: tuple[str, ...]) -> Plan:
        unknown = [level for level in by if level not in self.whole.levels]
        if unknown:
            raise LogError(self.words)
        keys, cell = self._numbered(by)
        total = np.zeros(len(keys), dtype=np.int64)
        np.add.at(total, cell, self.whole.count.astype(np.int64))
        return Plan(by, keys.sizes, max(self.size, 1), total, keys)

    def _numbered(self, by: tuple[str, ...]) -> tuple[Keys, IntArray]:
        """Merge the cells that these levels do not tell apart; also find each among them."""
        sizes = [len(self.levels[name].labels) for name in by]
        codes = self.whole.codes[:, [self.whole.levels.index(name) for name in by]].T
        return Keys.numbered(sizes, codes)

    def cells(
        self, by: Sequence[str], start: int, stop: int, out: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Refuse: there are no rows to look at."""
        raise LogError(self.words)

    def splits(self) -> Splits:
        """Count rows and points; that repetitions test the same ones is told by the prints."""
        if self.within not in ("", self.name):
            raise LogError(
                f"the same evaluation stands in several logs, which the level {self.within!r} "
                f"tells apart. Expected a question for each of them, as in by={self.within!r} or "
                f"independent={self.within!r}."
            )
        if "splits" not in self.facts:
            self.facts["splits"] = self._counted_splits()
        found: Splits = self.facts["splits"]
        return found

    def _counted_splits(self) -> Splits:
        by = tuple(level for level in SPLIT if level in self.whole.levels)
        rows = self.plan(by).total
        if len(rows) == 1:
            return Splits(rows, int(rows[0]))
        if self.prints is None:
            return Splits(rows, None)
        if self._alike(by, np.ones(len(self.prints), dtype=bool)):
            return Splits(rows, int(rows[0]))
        return Splits(
            rows, None,
            "its repetitions do not test the same points, so these are random splits, or some "
            "of the log is missing. A partition tests every point once in each repetition. "
            "Random splits are what corrected_t is for; else add what is missing.",
        )  # fmt: skip

    def _alike(self, by: tuple[str, ...], rows: NDArray[np.bool_]) -> bool:
        """Whether all splits hold the same points, among some cells."""
        if self.prints is None:
            return False
        keys, split = self._numbered(by)
        sums = np.zeros(len(keys), dtype=np.uint64)
        counts = np.zeros(len(sums))
        np.add.at(sums, split[rows], self.prints[rows])
        np.add.at(counts, split[rows], self.whole.count[rows])
        return bool((sums == sums[0]).all() and (counts == counts[0]).all())

    def points(self) -> tuple[IntArray, str | None]:
        """Count the different points under each label of the level (remembered)."""
        if ("points", self.name) not in self.facts:
            self.facts["points", self.name] = self._counted_points(), None
        found: tuple[IntArray, str | None] = self.facts["points", self.name]
        return found

    def _counted_points(self) -> IntArray:
        splits = tuple(level for level in SPLIT if level in self.whole.levels)
        level = self.levels[self.name]
        codes = self.whole.codes[:, self.whole.levels.index(self.name)]
        counts = np.zeros(len(level.labels), dtype=np.int64)
        number = len(self.plan(splits).used)
        for code in np.unique(codes).tolist():
            rows = codes == code
            if not self._alike(splits, rows):
                raise LogError(
                    f"the repetitions do not test the same points of "
                    f"{self.name}={spelled(level.labels[code])}, and moments do not tell how many "
                    f"different ones there are. Expected all points in each repetition. Ask the "
                    f"log itself, or take one repetition of it."
                )
            counts[code] = round(float(self.whole.count[rows].sum()) / number)
        return counts


@dataclass(frozen=True, eq=False)
class CellLog(Log):
    """A log whose moments were computed before.

    ``gaps`` holds those of the differences of all pairs of models, if they were kept, and
    ``models`` the columns of the models, models by carried cells. ``doubt`` is what was
    doubtful about levels that are not kept.
    """

    found: Moments = field(kw_only=True)
    gaps: Moments | None = field(kw_only=True, default=None)
    models: IntArray = field(kw_only=True)
    doubt: Caution = field(kw_only=True, default=Caution(0))

    def doubts(self) -> Caution:
        """Add what is known of the log itself."""
        return super().doubts() | self.doubt

    def moments(self, by: Sequence[str], losses: Columns | None = None) -> Moments:
        """Merge the cells that these levels do not tell apart."""
        unknown = [level for level in by if level not in self.found.levels]
        if unknown:
            have = listed(map(repr, self.found.levels)) or "none"
            raise LogError(
                f"this needs cells by {unknown[0]!r}, and the moments are by {have}. "
                f"{self._way_out()}"
            )
        if isinstance(losses, Differences):
            return self._apart(losses).over(by)
        return self.found.over(by)

    def _way_out(self) -> str:
        return self.panels.words if isinstance(self.panels, CellPanels) else ""

    def _apart(self, losses: Differences) -> Moments:
        """Pick differences out of those of all pairs, turned round where need be."""
        if self.gaps is None:
            raise LogError(
                "these moments hold nothing that two models share. Expected moments that were "
                "made with pairs=True: cvstats.Moments.of_log(losses, pairs=True)."
            )
        number, cells = self.models.shape
        model, cell = np.empty((2, self.panels.width), dtype=np.int64)
        model[self.models] = np.arange(number)[:, None]
        cell[self.models] = np.arange(cells)
        pair = np.zeros((number, number), dtype=np.int64)
        above = np.triu_indices(number, 1)
        pair[above] = np.arange(len(above[0]))
        pair = pair + pair.T
        left, right = model[losses.left], model[losses.right]
        at = pair[left, right] * cells + cell[losses.left]
        sign = np.sign(right - left).astype(np.float64)
        mean: FloatArray = self.gaps.mean[:, at] * sign
        m2: FloatArray = self.gaps.m2[:, at] * np.abs(sign)
        gaps = self.gaps
        return Moments(gaps.levels, gaps.labels, gaps.codes, gaps.count, mean, m2)

    def name(self, column: int) -> str:
        """Name one column."""
        return self.labels.name(column)


def canonical(labels: Sequence[Hashable]) -> IntArray:
    """Order labels by size where they have one, so that the order of batches does not show."""
    names: list[Any] = list(labels)
    try:
        order = sorted(range(len(names)), key=lambda at: names[at])
    except TypeError:
        order = list(range(len(names)))
    return np.array(order, dtype=np.int64)


def in_order(found: Moments) -> tuple[Moments, IntArray]:
    """Sort the labels of each level and then the cells; also the cells' former places."""
    codes = np.empty_like(found.codes)
    labels = []
    for i, names in enumerate(found.labels):
        if isinstance(names, pd.Index | range):
            codes[:, i] = found.codes[:, i]
            labels.append(names)
            continue
        order = canonical(list(names))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        codes[:, i] = rank[found.codes[:, i]]
        labels.append(as_index([names[at] for at in order.tolist()]))
    keys = [codes[:, i] for i in reversed(range(len(labels)))]
    order = np.lexsort(keys) if keys else np.arange(len(codes))
    sorted_ = Moments(
        found.levels, tuple(labels), codes[order], found.count[order], found.mean[order],
        found.m2[order],
    )  # fmt: skip
    return sorted_, order
