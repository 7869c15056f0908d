"""The parts of a log, one for each label of a level, from one pass over its losses.

A part answers what a log answers: which levels it has, how its rows fall into cells, and the
moments of the cells. It takes the answers for all parts at once from the whole log, keyed by
the level first, and cuts them; its rows are gathered only if somebody asks for losses one by
one. So a method that works on a log works on each of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.containers.apart import Apart
from cvstats.containers.log import Log
from cvstats.core.columns import Columns, LossColumns
from cvstats.core.design import (
    SPLIT,
    CellIndex,
    CellTable,
    Codes,
    Design,
    GridCodes,
    Level,
    SplitSizes,
)
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed, spelled

__all__ = ["Groups", "Part", "PartDesign", "stack"]

Run = Callable[[Log], Result]


@dataclass(frozen=True, eq=False)
class Picked(GridCodes):
    """The codes of some rows, gathered when somebody asks for them."""

    axes: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    of: Codes | GridCodes = field(kw_only=True)
    rows: Callable[[], IntArray] = field(kw_only=True)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Take the codes of some rows of the part."""
        picked = self.rows()[rows]
        if not isinstance(self.of, GridCodes):
            return self.of[picked]
        at = np.unravel_index(picked, self.of.shape)
        if self.of.base is None:
            return at[self.of.axes[0]]
        return self.of.base[tuple(at[axis] for axis in self.of.axes)]


class PickedLevels(Mapping[str, Level]):
    """The levels of a part: the labels of the whole, the codes of some rows."""

    def __init__(self, levels: Mapping[str, Level], rows: Callable[[], IntArray]) -> None:
        self.levels, self.rows = levels, rows

    def __getitem__(self, name: str) -> Level:
        """Make one level; its codes are gathered when they are used."""
        level = self.levels[name]
        return Level(level.labels, Picked(of=level.codes, rows=self.rows))

    def __contains__(self, name: object) -> bool:
        """Whether the log has this level."""
        return name in self.levels

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the levels."""
        return iter(self.levels)

    def __len__(self) -> int:
        """Count the levels."""
        return len(self.levels)


@dataclass(frozen=True, eq=False)
class PartDesign(Design):
    """The design of one part: what it counts is cut out of the counts of the whole."""

    groups: Groups = field(kw_only=True)
    at: int = field(kw_only=True)

    def cell_table(self, by: tuple[str, ...]) -> CellTable:
        """How the rows of the part fall into the cells of some levels (remembered)."""
        if ("cells", by) not in self.facts:
            self.facts["cells", by] = self.groups.cell_table(self.at, by)
        found: CellTable = self.facts["cells", by]
        return found

    def cells(
        self, by: Sequence[str], start: int, stop: int, out: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Find the cell number of some rows of the part."""
        plan = self.cell_table(tuple(by))
        if ("index", plan.by) not in self.facts:
            codes = self.codes_of(plan).T
            self.facts["index", plan.by] = CellIndex.of(plan.sizes, lambda: [codes])
        return super().cells(by, start, stop, out)

    def number(self, level: str) -> int:
        """How many labels of a level occur; 1 where the level is absent."""
        return len(self.groups.cell_codes(self.at, (level,))) if level in self.levels else 1

    def codes_of(self, plan: CellTable) -> IntArray:
        """For each cell of a plan the codes of its labels, a column for each level."""
        return self.groups.cell_codes(self.at, plan.by)

    def splits(self) -> SplitSizes:
        """Count rows and points; that each evaluation stands once is known of the whole."""
        return self.groups.splits(self.at)


class PickedPanels(LossColumns):
    """The losses of some rows, gathered when somebody asks for them one by one."""

    def __init__(self, whole: LossColumns, rows: Callable[[], IntArray]) -> None:
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "_rows", rows)

    @cached_property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """Take the rows out of each table."""
        rows = self._rows()
        return tuple(table[rows] for table in self._whole.tables)

    _whole: LossColumns
    _rows: Callable[[], IntArray]


class Part(Log):
    """The part of a log with one label of a level."""

    def moments(self, by: Sequence[str], losses: Columns | None = None) -> Moments:
        """Cut the moments of the part out of those of the whole log."""
        if not isinstance(self.design, PartDesign):  # somebody has taken rows out
            return super().moments(by, losses)
        return self.design.groups.moments(self.design.at, tuple(by), losses)


class Groups:
    """A log and the level whose labels are its parts.

    Parameters
    ----------
    log : Log
        The whole, read with this level in mind, so that its design is `Apart`.
    name : str
        The level.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name = log, name
        self.design = log.design
        plan = self.design.cell_table((name,))
        self.codes = self.design.codes_of(plan)[:, 0]
        self.rows_of = plan.total[plan.used]
        self._panels = log.panels
        self._same = {entry.name: getattr(log, entry.name) for entry in fields(Log)}
        self._cuts: dict[tuple[str, ...], Cut] = {}
        self._moments: dict[Any, tuple[Moments, IntArray, Columns | None]] = {}

    @property
    def labels(self) -> list[Hashable]:
        """The labels that occur, in the order of the parts."""
        return [self.design.levels[self.name].labels[code] for code in self.codes.tolist()]

    def parts(self) -> Iterator[Part]:
        """Go through the parts."""
        return (self.part(at) for at in range(len(self.codes)))

    def part(self, at: int) -> Part:
        """Look at the log as if it held the rows of one part only."""
        rows = partial(self.rows, at)
        levels = PickedLevels(self.design.levels, rows)
        design = PartDesign(levels, self.size(at), groups=self, at=at, taking=self.design.taking)
        return Part(**(self._same | {"design": design, "panels": PickedPanels(self._panels, rows)}))

    def size(self, at: int) -> int:
        """Count the evaluations of a part."""
        return int(self.rows_of[at])

    def first(self, by: tuple[str, ...]) -> tuple[str, ...]:
        """Put the level of the parts before all others."""
        return (self.name, *(level for level in by if level != self.name))

    def shared(self, by: tuple[str, ...]) -> bool:
        """Whether some cell of these levels has rows in several parts."""
        return len(self.cut(0, by)[0].counts) > len(self.design.cell_table(by).used)

    def starts(self, codes: IntArray) -> IntArray:
        """Find where each part starts among cells that are sorted by part; and their end."""
        return np.append(np.searchsorted(codes, self.codes), len(codes))

    def cell_table(self, at: int, by: tuple[str, ...]) -> CellTable:
        """Cut the cells of a part out of the plan of the whole."""
        cut, here = self.cut(at, by)
        return CellTable(by, cut.sizes, max(self.size(at), 1), cut.counts[here])

    def cell_codes(self, at: int, by: tuple[str, ...]) -> IntArray:
        """Cut the codes of the cells of a part out of those of the whole."""
        cut, here = self.cut(at, by)
        return cut.codes[here]

    def cut(self, at: int, by: tuple[str, ...]) -> tuple[Cut, slice]:
        """Find the cells of some levels, and those of a part among them."""
        if by not in self._cuts:
            self._cuts[by] = self._cut(by)
        cut = self._cuts[by]
        return cut, slice(cut.starts[at], cut.starts[at + 1])

    def _cut(self, by: tuple[str, ...]) -> Cut:
        levels = self.first(by)
        whole = self.design.cell_table(levels)
        codes = self.design.codes_of(whole)
        sizes = tuple(len(self.design.levels[level].labels) for level in by)
        asked = codes[:, [levels.index(level) for level in by]]
        return Cut(self.starts(codes[:, 0]), sizes, asked, whole.total[whole.used])

    def whole_splits(self) -> bool:
        """Whether every split of every part tests all points of the part."""
        splits = tuple(level for level in SPLIT if level in self.design.levels)
        cut, _ = self.cut(0, splits)
        if len(cut.counts) == len(self.codes):
            return True  # one split in each part
        if "point" not in self.design.levels or not isinstance(self.design, Apart):
            return False
        points = np.repeat(self.design.points()[0][self.codes], np.diff(cut.starts))
        return bool((cut.counts == points).all())

    def splits(self, at: int) -> SplitSizes:
        """Count the rows of each split of a part, and its points."""
        rows = self.cell_table(
            at, tuple(level for level in SPLIT if level in self.design.levels)
        ).total
        if len(rows) == 1:
            return SplitSizes(rows, int(rows[0]))
        if "point" not in self.design.levels or not isinstance(self.design, Apart):
            return SplitSizes(rows, None)
        return SplitSizes(rows, int(self.design.points()[0][self.codes[at]]))

    def moments(self, at: int, by: tuple[str, ...], losses: Columns | None) -> Moments:
        """Cut the moments of a part out of those of the whole, which are computed once."""
        levels = self.first(by)
        key = (levels, id(losses) if losses is not None else None)
        if key not in self._moments:
            whole = self.log.moments(levels, losses)
            # Keep the losses too: the number of an object may be used again when it is gone.
            self._moments[key] = whole, self.starts(whole.codes[:, 0]), losses
        whole, starts, _ = self._moments[key]
        here = slice(starts[at], starts[at + 1])
        keep = [levels.index(level) for level in by]
        return Moments(
            by, tuple(whole.labels[i] for i in keep), whole.codes[here][:, keep],
            whole.count[here], whole.mean[here], whole.m2[here], whole.origin,
        )  # fmt: skip

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        codes = self.design.cells((self.name,), 0, self.design.size).astype(np.int64)
        order = np.argsort(codes, kind="stable")
        return order, self.starts(codes[order])

    def rows(self, at: int) -> IntArray:
        """Find the rows of a part, in their order in the log."""
        order, starts = self._sorted
        return order[starts[at] : starts[at + 1]]

    def answers(self, run: Run) -> Result:
        """Ask each part the same, and put the answers one below the other.

        Raises
        ------
        LogError
            If some part cannot answer; the first of them are named.
        """
        results: list[Result] = []
        failed: dict[Hashable, str] = {}
        for label, part in zip(self.labels, self.parts(), strict=True):
            try:
                results.append(run(part))
            except LogError as error:
                failed[label] = str(error)
        if not results and len(set(failed.values())) == 1:
            raise LogError(next(iter(failed.values())))  # not about the parts, but the question
        if failed:
            label, words = next(iter(failed.items()))
            names = listed([spelled(name) for name in failed])
            raise LogError(
                f"{len(failed):,} of {len(self.codes):,} parts by {self.name!r} have no answer "
                f"({names}). {self.name}={spelled(label)}: {words} To leave parts out: "
                f"log.drop([{spelled(label)}, …], level={self.name!r}) in pandas."
            )
        return stack(results)


@dataclass(frozen=True, eq=False)
class Cut:
    """A plan of the whole, sorted by part: where each starts, and its cells."""

    starts: IntArray
    sizes: tuple[int, ...]
    codes: IntArray
    counts: IntArray


def stack(results: Sequence[Result]) -> Result:
    """Put results of the same columns one below the other."""
    columns = {
        name: np.concatenate([result.columns[name] for result in results])
        for name in results[0].columns
    }
    caution = np.concatenate([result.caution for result in results])
    return replace(results[0], columns=columns, caution=caution)
