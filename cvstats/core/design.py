"""The design of a log: which evaluation each row is, and every check of that."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.levels import Codes, Counts, Grid, Keys, Level, Plan, coarser, counted, frozen
from cvstats.core.threads import BLOCK, PIECE, Scratch, each, pieced, spans
from cvstats.core.types import IntArray, MaskArray
from cvstats.errors import MOST, LogError, listed, place, spelled

__all__ = ["LEVELS", "Design", "Grid", "Keys", "Level", "Plan", "Splits"]

LEVELS = ("sample", "outer", "repetition", "fold", "source", "point", "count")

SPLIT = ("sample", "outer", "repetition")
"""Levels within which a point is evaluated at most once."""

FINE = 1 << 16
"""So many cells of folds are counted at once with the splits that hold them."""

WINDOW = 1 << 24
"""Bytes of the table that marks which points a split has seen."""

TABLE = 1 << 21
"""Counts of the rows of a cell in a block that are remembered, at the most."""

SPARSE = 4, 1 << 16
"""Labels that many times the rows, and that many at the least, hardly all occur."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Who is tested where: rows of each split, and how many different points there are.

    ``points`` is None where the log has no level ``point`` and more than one split.
    """

    rows: NDArray[np.int64]
    points: int | None
    apart: str = ""
    """Words, where it is known that splits test different points and not how many."""


@dataclass(frozen=True, eq=False)
class Design:
    """The levels of a log, row by row.

    Parameters
    ----------
    levels : mapping of str to Level
        Levels found by name, and any other level of the log's index.
    size : int
        Number of rows.
    present : array of bool, shape (rows,), optional
        Which rows are evaluations; None where all are.
    facts : dict
        What has been found out before about this very index; filled as questions come.
    taking : str
        How one types, in this kind of container, to keep one label of a level.
    scores : bool
        Whether each loss is one score for a whole split, and no loss of a point.
    within : str, optional
        One more level that may distinguish evaluations: the same point may occur again in a
        repetition under another of its labels, as where several logs are concatenated.
    weights : array of int, shape (rows,), optional
        How many evaluations each row stands for, where the rows are cells of a log.
    """

    levels: Mapping[str, Level]
    size: int
    present: MaskArray | None = None
    facts: dict[Any, Any] = field(default_factory=dict)
    taking: str = "log.xs({label}, level={level!r})"
    scores: bool = False
    within: str | None = None
    weights: IntArray | None = None

    def has(self, level: str) -> bool:
        """Whether the log tells more than one label of this level apart."""
        return level in self.levels and self.number(level) > 1

    def number(self, level: str) -> int:
        """How many labels of a level occur; 1 where the level is absent."""
        return len(self.plan((level,)).used) if level in self.levels else 1

    def identity(self) -> tuple[str, ...]:
        """List the levels that distinguish evaluations, in the order of messages."""
        known = tuple(level for level in LEVELS if level in self.levels)
        return known if self.within is None or self.within in known else (self.within, *known)

    def take(self, level: str) -> str:
        """Say what to type to keep one label of a level."""
        labels = self.levels[level].labels
        label = spelled(labels[int(self.plan((level,)).used[0])])
        return self.taking.format(label=label, level=level)

    def place(self, row: int, also: str | None = None) -> str:
        """One row in words; ``also`` by a level that tells no evaluations apart."""
        labels, known = {}, self.identity() or tuple(self.levels)
        for name in known if also is None or also in known else (also, *known):
            level = self.levels[name]
            code = int(level.block(row, row + 1)[0])
            labels[name] = level.labels[code] if code >= 0 else None
        return place(labels) if labels else f"row {row}"

    # --- cells ----------------------------------------------------------------------------

    def cells(
        self, by: Sequence[str], start: int, stop: int, out: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Find the cell number of some rows; -1 where nothing was evaluated.

        ``out`` is memory to put them into.
        """
        keys: Keys | None = self.facts.get(("keys", tuple(by)))
        if keys is not None:
            return frozen(keys.find(self._codes(by, start, stop)).astype(np.int32))
        numbers = np.empty(stop - start, dtype=np.int32) if out is None else out
        codes = [frozen(self.levels[name].codes[start:stop]) for name in by]
        sizes = [len(self.levels[name].labels) for name in by]
        if len(by) < 2:
            numbers[:] = codes[0] if by else 0
        else:
            kernels.combine_two(numbers, codes[0], codes[1], sizes[1])
        for code, size in zip(codes[2:], sizes[2:], strict=True):
            kernels.combine(numbers, code, size)
        if self.present is not None:
            numbers[~self.present[start:stop]] = -1
        return frozen(numbers)

    def _codes(self, by: Sequence[str], start: int, stop: int) -> Codes:
        """Lay the codes of some rows out, a line for each level; -1 where nothing is."""
        lines = [self.levels[name].block(start, stop) for name in by]
        codes = np.array(lines, dtype=np.int32).reshape(len(by), stop - start)
        if self.present is not None:
            codes[:, ~self.present[start:stop]] = -1
        return codes

    def plan(self, by: tuple[str, ...]) -> Plan:
        """How the rows fall into the cells of some levels (remembered)."""
        if ("plan", by) not in self.facts:
            finer = self.facts.get(("plan", (*by, "fold")))
            known = None if finer is None else coarser(finer, by)
            self.facts["plan", by] = known or self._plan(by)
        plan: Plan = self.facts["plan", by]
        return plan

    def product(self, by: Sequence[str]) -> int:
        """How many cells the labels of some levels could make."""
        return math.prod(len(self.levels[name].labels) for name in by)

    def _plan(self, by: tuple[str, ...]) -> Plan:
        sizes = tuple(len(self.levels[name].labels) for name in by)
        if self.weights is not None:
            found, cell = Keys.numbered(sizes, self._codes(by, 0, self.size))
            total = np.zeros(len(found), dtype=np.int64)
            np.add.at(total, cell, self.weights)
            return Plan(by, sizes, max(self.size, 1), total, found)
        size = math.prod(sizes)
        keys = None
        if size > min(self._most(), np.iinfo(np.int32).max):
            blocks = spans(self.size, BLOCK)
            keys = Keys.of(sizes, lambda: (self._codes(by, *span) for span in blocks))
            self.facts["keys", by] = keys
            size = len(keys)
        rows = BLOCK
        while rows < 16 * size and rows < self.size:
            rows *= 2
        total, kept = self._count(by, rows, size)
        return Plan(by, sizes, rows, total, keys, kept)

    def _most(self) -> int:
        """How many labels may be without being far more than the rows."""
        times, least = SPARSE
        return max(times * self.size, least)

    def _count(
        self, by: tuple[str, ...], rows: int, size: int
    ) -> tuple[NDArray[np.int64], tuple[Counts, Counts] | None]:
        """Count the rows of each cell; also block by block, where that is no large table."""
        blocks = spans(self.size, rows)
        pieces = spans(len(blocks), pieced(rows))
        found: list[tuple[Counts, Counts]] = []
        keep = len(blocks) * size <= max(TABLE, size)
        total = np.zeros(size, dtype=np.int64)
        scratch, adding = Scratch(), threading.Lock()

        def work(p: int) -> tuple[Counts, Counts] | None:
            start, stop = blocks[pieces[p][0]][0], blocks[pieces[p][1] - 1][1]
            cells = self.cells(by, start, stop, scratch.array("cells", stop - start, np.int32))
            counts, first = counted(rows, cells, size)
            with adding:  # whole numbers: in any order
                np.add(total, counts.sum(axis=0, dtype=np.int64), out=total)
            return (counts, first) if keep else None

        found = [part for part in each(work, len(pieces)) if part is not None]
        if not keep:
            return total, None
        none = np.zeros((0, size), dtype=np.int32)
        counts, first = (
            np.concatenate([none, *(part[which] for part in found)]) for which in (0, 1)
        )
        return total, (counts, first)

    def codes_of(self, plan: Plan) -> NDArray[np.int64]:
        """For each used cell of a plan the codes of its labels, a column for each level."""
        if plan.keys is not None:
            return plan.keys.codes()
        number = plan.used
        codes = np.zeros((len(number), len(plan.by)), dtype=np.int64)
        for at in reversed(range(len(plan.by))):
            number, codes[:, at] = np.divmod(number, plan.sizes[at])
        return codes

    # --- checks ---------------------------------------------------------------------------

    def splits(self) -> Splits:
        """Check that each evaluation occurs once, and count points (remembered)."""
        if self.within is not None and ("labelled", self.within) not in self.facts:
            self.check_labels((self.within,))
            self.facts["labelled", self.within] = True
        if "splits" not in self.facts and ("splits", self.within) not in self.facts:
            self.check_labels([name for name in self.identity() if name != "point"])
            self._find_splits()
        splits: Splits = self.facts.get("splits") or self.facts["splits", self.within]
        return splits

    def check_labels(self, names: Sequence[str]) -> None:
        """Every evaluation needs a label on every known level."""
        for name in names:
            codes = self.levels[name].codes
            if isinstance(codes, np.ndarray) and codes.min(initial=0) >= 0:
                continue
            for start, stop in spans(self.size, BLOCK):
                bad = np.flatnonzero(codes[start:stop] < 0)
                if self.present is not None:
                    bad = bad[self.present[start:stop][bad]]
                if len(bad):
                    raise LogError(
                        f"level {name!r} has no label (NaN) in row {start + bad[0]:,}: "
                        f"{self.place(start + int(bad[0]), name)}. Expected a label for every "
                        f"evaluation. Give these rows a label, or drop them: "
                        f"log[log.index.get_level_values({name!r}).notna()]."
                    )

    def _find_splits(self) -> None:
        by = tuple(level for level in SPLIT if level in self.levels)
        folded = (*by, "fold")
        if "fold" in self.levels and self.product(folded) <= FINE:
            self.plan(folded)  # one pass for both: most methods ask for the folds next
        wider = by if self.within is None or self.within in LEVELS else (self.within, *by)
        for names in dict.fromkeys((by, wider)):
            found = self._unique_splits(names)
            if found is not None:
                self.facts["splits" if names == by else ("splits", self.within)] = found
                return
        self.check_labels(("point",))
        raise self._repeated(wider)

    def _unique_splits(self, by: tuple[str, ...]) -> Splits | None:
        """Count the rows of each split, if no point occurs twice in one."""
        rows = self.plan(by).total
        rows = rows[rows > 0]
        if "point" not in self.levels:
            return Splits(rows, int(rows.sum()) if len(rows) == 1 else None)
        for scoped in (False, True) if "source" in self.levels else (False,):
            unique, points = self._seen(by, scoped)
            if unique:
                self.facts["scoped"] = scoped
                return Splits(rows, points)
        return None

    def pointed(self) -> Level:
        """Take the points; of labels that hardly all occur, as after a filter, those that do."""
        level = self.levels["point"]
        if len(level.labels) <= self._most():
            return level
        if "pointed" not in self.facts:
            codes = level.block(0, self.size)
            used, few = np.unique(codes, return_inverse=True)
            gone = int(np.searchsorted(used, 0))
            few = few.reshape(-1).astype(np.int32) - np.int32(gone)
            self.facts["pointed"] = Level(range(len(used) - gone), np.maximum(few, -1))
        found: Level = self.facts["pointed"]
        return found

    def _point_codes(self, offset: NDArray[np.int64] | None, start: int, stop: int) -> Any:
        codes = self.pointed().block(start, stop)
        if offset is None:
            return codes
        scoped = codes + offset[self.levels["source"].block(start, stop)]
        return frozen(np.where(codes < 0, -1, scoped))

    def _seen(self, by: tuple[str, ...], scoped: bool) -> tuple[bool, int]:
        """Whether every (split, point) stands once, and the number of points.

        Each thread stores ones into one table and nobody reads it meanwhile; if the ones
        are as many as the rows, no two rows shared a place. With ``scoped`` the points are
        numbered within their sources.
        """
        width, offset = len(self.pointed().labels), None
        if scoped:
            offset, width = self._scopes()
        plan = self.plan(by)
        windows = [
            self._window(plan, offset, start, stop - start)
            for start, stop in spans(max(width, 1), WINDOW)  # no point may have a label
        ]
        rows, points = (sum(numbers) for numbers in zip(*windows, strict=True))
        return rows == int(plan.total.sum()), points

    def _window(
        self, plan: Plan, offset: NDArray[np.int64] | None, origin: int, width: int
    ) -> tuple[int, int]:
        """How many (split, point) a window of points has, and how many points."""
        blocks = spans(self.size, PIECE * BLOCK)
        scratch = Scratch()
        found, used = 0, np.zeros(width, dtype=np.uint8)
        for low, high in spans(plan.size, max(1, WINDOW // width)):
            seen = np.zeros((high - low) * width, dtype=np.uint8)

            def work(b: int, low: int = low, seen: NDArray[np.uint8] = seen) -> None:
                start, stop = blocks[b]
                points = self._point_codes(offset, start, stop)
                out = scratch.array("cells", stop - start, np.int32)
                cells = self.cells(plan.by, start, stop, out)
                kernels.mark(seen, cells, points, low, origin, width)

            for _ in each(work, len(blocks)):
                pass
            found += int(np.count_nonzero(seen))
            for line in seen.reshape(-1, width):
                np.maximum(used, line, out=used)
        return found, int(np.count_nonzero(used))

    def _scopes(self) -> tuple[NDArray[np.int64], int]:
        """Where the points of each source start when they are numbered source by source."""
        source, point = self.levels["source"], self.pointed()
        width = np.zeros(len(source.labels), dtype=np.int64)
        for start, stop in spans(self.size, BLOCK):
            np.maximum.at(width, source.block(start, stop), point.block(start, stop) + 1)
        return np.concatenate([[0], np.cumsum(width)[:-1]]), int(width.sum())

    def _repeated(self, by: tuple[str, ...]) -> LogError:
        """Words for rows that share a split and a point."""
        names = (*by, "point", *(["source"] if "source" in self.levels else []))
        keys, full = self._every(names), self._every(self.identity())
        order = np.lexsort((np.arange(self.size), full, keys))  # copies become neighbours
        order = order[keys[order] >= 0]
        again = np.flatnonzero(np.diff(keys[order]) == 0)
        rows = [sorted((int(order[i]), int(order[i + 1]))) for i in again]
        pairs = sorted((two, one) for one, two in rows)
        same = [(two, one) for two, one in pairs if full[one] == full[two]]
        if same:
            return self._duplicates(same)
        moved = [f"{self.place(one)} and {self.place(two)}" for two, one in pairs[:MOST]]
        within = f"one {by[-1]}" if by else "the log"
        return LogError(
            f"a point stands in two folds of {within}: {listed(moved, len(pairs))}. Expected "
            f"each point in one fold of a repetition. If these are several random splits, "
            f"label each as a repetition of its own, as in cvstats.as_log(frame, "
            f"repetition='split'); if the points of different sources share their names, add "
            f"the level 'source'."
        )

    def _every(self, names: Sequence[str]) -> IntArray:
        """Give each row of the log a number for what it has of some levels."""
        sizes = [len(self.levels[name].labels) for name in names]
        return Keys.numbered(sizes, self._codes(names, 0, self.size))[1]

    def _duplicates(self, same: list[tuple[int, int]]) -> LogError:
        shown = [f"{self.place(one)} (rows {one:,} and {two:,})" for two, one in same[:MOST]]
        others = [name for name in self.levels if name not in LEVELS]
        hint = (
            f"The level {others[0]!r} is not one that tells evaluations apart; if it names the "
            f"models, give each a column: log.unstack({others[0]!r})."
            if others
            else "Drop the copies: log[~log.index.duplicated()]; or tell them apart by a level "
            "'repetition'."
        )
        return LogError(
            f"the same evaluation stands twice: {listed(shown, len(same))}. Expected each "
            f"({', '.join(self.identity())}) once. {hint}"
        )

    # --- points under each label ------------------------------------------------------------

    def count_points(self, level: str) -> tuple[IntArray, str | None]:
        """Count the distinct points under each label of a level (remembered).

        Also, in words, a point that occurs under several of them, if there is one.
        """
        if ("points", level) not in self.facts:
            self.facts["points", level] = self._count_points(level)
        counts, shared = self.facts["points", level]
        if shared is None:
            return counts, None
        row, code = shared  # in words only now: an index may get other labels
        other = spelled(self.levels[level].labels[code])
        where = self.place(row, level)
        return counts, f"the point at {where} stands in {level}={other} too"

    def _count_points(self, level: str) -> tuple[IntArray, tuple[int, int] | None]:
        """Count them; also find the row of such a point, and the code of another of its labels."""
        if "scoped" not in self.facts:
            self._unique_splits(tuple(name for name in self.identity() if name in SPLIT))
        offset, width = None, len(self.pointed().labels)
        if self.facts.get("scoped"):
            offset, width = self._scopes()
        owner = np.full(width, -1, dtype=np.int32)
        for _, points, labels in self._labelled_points(level, offset):
            owner[points] = labels
        for rows, points, labels in self._labelled_points(level, offset):
            moved = np.flatnonzero(owner[points] != labels)
            if len(moved):
                place = int(rows[moved[0]]), int(owner[points[moved[0]]])
                return self._count_shared_points(level, offset, width), place
        size = len(self.levels[level].labels)
        return np.bincount(owner[owner >= 0], minlength=size).astype(np.int64), None

    def _labelled_points(
        self, level: str, offset: NDArray[np.int64] | None
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Go through the evaluations: their rows, points and labels of the level."""
        for start, stop in spans(self.size, BLOCK):
            points = self._point_codes(offset, start, stop)
            labels = self.levels[level].block(start, stop).astype(np.int64)
            here = (points >= 0) & (labels >= 0)
            if self.present is not None:
                here &= self.present[start:stop]
            rows = np.flatnonzero(here)
            yield (rows + start).astype(np.int64), points[rows], labels[rows]

    def _count_shared_points(
        self, level: str, offset: NDArray[np.int64] | None, width: int
    ) -> IntArray:
        """Count the points of each label where a point may have several."""
        size = len(self.levels[level].labels)
        counts = np.zeros(size, dtype=np.int64)
        step = max(1, WINDOW // max(width, 1))
        for low in range(0, size, step):
            seen = np.zeros((min(step, size - low), width), dtype=bool)
            for _, points, labels in self._labelled_points(level, offset):
                held = (labels >= low) & (labels < low + step)
                seen[labels[held] - low, points[held]] = True
            counts[low : low + step] = seen.sum(axis=1)
        return counts
