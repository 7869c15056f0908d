"""The design of a log: which evaluation each row is, and every check of that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats import kernels
from cvstats.blocks import BLOCK, PIECE, Scratch, each, pieced, spans
from cvstats.errors import MOST, LogError, listed, place, spelled
from cvstats.levels import Grid, Level, frozen
from cvstats.types import MaskArray

__all__ = ["LEVELS", "Design", "Grid", "Level", "Plan", "Splits"]

LEVELS = ("sample", "outer", "repetition", "fold", "source", "point", "count")

SPLIT = ("sample", "outer", "repetition")
"""Levels within which a point is evaluated at most once."""

FINE = 1 << 16
"""So many cells of folds are counted at once with the splits that hold them."""

WINDOW = 1 << 24
"""Bytes of the table that marks which points a split has seen."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How the rows fall into cells, block by block.

    ``counts[b, k]`` is the number of rows of block ``b`` in cell ``k`` and ``first[b, k]`` the
    first of them. ``keys`` lists the cells that occur where the product of all labels would
    be too many; otherwise it is None and every product has its number.
    """

    by: tuple[str, ...]
    sizes: tuple[int, ...]
    size: int
    rows: int
    keys: NDArray[np.int64] | None
    counts: NDArray[np.int64]
    first: NDArray[np.int64]

    @cached_property
    def total(self) -> NDArray[np.int64]:
        """Rows of each cell over all blocks."""
        total: NDArray[np.int64] = self.counts.sum(axis=0)
        return total

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """The numbers of the cells that hold any row."""
        return np.flatnonzero(self.total)


def coarser(plan: Plan, by: tuple[str, ...]) -> Plan:
    """Make the plan of a few levels from one that has one level more at the end."""
    shape = (len(plan.counts), math.prod(plan.sizes[: len(by)]), -1)
    counts = plan.counts.reshape(shape)
    first = np.where(counts > 0, plan.first.reshape(shape), np.iinfo(np.int64).max).min(axis=2)
    total = counts.sum(axis=2)
    first[total == 0] = 0
    return Plan(by, plan.sizes[: len(by)], total.shape[1], plan.rows, None, total, first)


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
    """

    levels: Mapping[str, Level]
    size: int
    present: MaskArray | None = None
    facts: dict[Any, Any] = field(default_factory=dict)
    taking: str = "log.xs({label}, level={level!r})"
    scores: bool = False

    def has(self, level: str) -> bool:
        """Whether the log tells more than one label of this level apart."""
        return level in self.levels and self.number(level) > 1

    def number(self, level: str) -> int:
        """How many labels of a level occur; 1 where the level is absent."""
        return len(self.plan((level,)).used) if level in self.levels else 1

    def identity(self) -> tuple[str, ...]:
        """List the known levels of this log, in the order in which messages name them."""
        return tuple(level for level in LEVELS if level in self.levels)

    def take(self, level: str) -> str:
        """Say what to type to keep one label of a level."""
        labels = self.levels[level].labels
        label = spelled(labels[int(self.plan((level,)).used[0])])
        return self.taking.format(label=label, level=level)

    def place(self, row: int) -> str:
        """One row in words."""
        labels = {}
        for name in self.identity() or tuple(self.levels):
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
        plan_keys = self.facts.get(("keys", tuple(by)))
        if plan_keys is not None:
            return self._sparse(by, plan_keys, start, stop)
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

    def _keys(self, by: Sequence[str], start: int, stop: int) -> NDArray[np.int64]:
        keys = np.zeros(stop - start, dtype=np.int64)
        here = np.ones(stop - start, dtype=bool)
        if self.present is not None:
            here &= self.present[start:stop]
        for name in by:
            codes = self.levels[name].block(start, stop)
            keys = keys * len(self.levels[name].labels) + codes
            here &= codes >= 0
        return np.where(here, keys, -1)

    def _sparse(
        self, by: Sequence[str], occurring: NDArray[np.int64], start: int, stop: int
    ) -> NDArray[np.int32]:
        keys = self._keys(by, start, stop)
        numbers = np.searchsorted(occurring, keys)
        return frozen(np.where(keys >= 0, numbers, -1).astype(np.int32))

    def plan(self, by: tuple[str, ...]) -> Plan:
        """How the rows fall into the cells of some levels (remembered)."""
        if ("plan", by) not in self.facts:
            finer = self.facts.get(("plan", (*by, "fold")))
            self.facts["plan", by] = (
                self._plan(by) if finer is None or finer.keys is not None else coarser(finer, by)
            )
        plan: Plan = self.facts["plan", by]
        return plan

    def product(self, by: Sequence[str]) -> int:
        """How many cells the labels of some levels could make."""
        return math.prod(len(self.levels[name].labels) for name in by)

    def _plan(self, by: tuple[str, ...]) -> Plan:
        size = self.product(by)
        keys = None
        if size > max(4 * self.size, 1 << 16):
            every = [self._keys(by, *span) for span in spans(self.size, BLOCK)]
            keys = np.unique(np.concatenate([np.unique(part) for part in every]))
            keys = keys[keys >= 0]
            self.facts["keys", by] = keys
            size = len(keys)
        rows = BLOCK
        while rows < 16 * size and rows < self.size:
            rows *= 2
        blocks = spans(self.size, rows)
        counts = np.zeros((len(blocks), size), dtype=np.int64)
        first = np.zeros((len(blocks), size), dtype=np.int64)
        scratch = Scratch()

        pieces = spans(len(blocks), pieced(rows))

        def work(p: int) -> None:
            here = slice(*pieces[p])
            start, stop = blocks[here][0][0], blocks[here][-1][1]
            cells = self.cells(by, start, stop, scratch.array("cells", stop - start, np.int32))
            kernels.count(cells, rows, counts[here], first[here])

        for _ in each(work, len(pieces)):
            pass
        sizes = tuple(len(self.levels[name].labels) for name in by)
        return Plan(by, sizes, size, rows, keys, counts, first)

    def codes_of(self, plan: Plan) -> NDArray[np.int64]:
        """For each used cell of a plan the codes of its labels, a column for each level."""
        number = plan.used if plan.keys is None else plan.keys[plan.used]
        codes = np.zeros((len(number), len(plan.by)), dtype=np.int64)
        for at in reversed(range(len(plan.by))):
            number, codes[:, at] = np.divmod(number, len(self.levels[plan.by[at]].labels))
        return codes

    # --- checks ---------------------------------------------------------------------------

    def splits(self) -> Splits:
        """Check that each evaluation stands once, and count points (remembered)."""
        if "splits" not in self.facts:
            self._check_labels([name for name in self.identity() if name != "point"])
            self.facts["splits"] = self._splits()
        splits: Splits = self.facts["splits"]
        return splits

    def _check_labels(self, names: Sequence[str]) -> None:
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
                        f"{self.place(start + int(bad[0]))}. Expected a label for every "
                        f"evaluation. Give these rows a label, or drop them: "
                        f"log[log.index.get_level_values({name!r}).notna()]."
                    )

    def _splits(self) -> Splits:
        by = tuple(level for level in SPLIT if level in self.levels)
        folded = (*by, "fold")
        if "fold" in self.levels and self.product(folded) <= FINE:
            self.plan(folded)  # one pass for both: most methods ask for the folds next
        rows = self.plan(by).total
        if "point" not in self.levels:
            return Splits(rows[rows > 0], int(rows.sum()) if np.sum(rows > 0) == 1 else None)
        for scoped in (False, True) if "source" in self.levels else (False,):
            unique, points = self._seen(by, scoped)
            if unique:
                return Splits(rows[rows > 0], points)
        self._check_labels(("point",))
        raise self._repeated(by)

    def _point_codes(self, offset: NDArray[np.int64] | None, start: int, stop: int) -> Any:
        codes = self.levels["point"].block(start, stop)
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
        width, offset = len(self.levels["point"].labels), None
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
        source, point = self.levels["source"], self.levels["point"]
        width = np.zeros(len(source.labels), dtype=np.int64)
        for start, stop in spans(self.size, BLOCK):
            np.maximum.at(width, source.block(start, stop), point.block(start, stop) + 1)
        return np.concatenate([[0], np.cumsum(width)[:-1]]), int(width.sum())

    def _repeated(self, by: tuple[str, ...]) -> LogError:
        """Words for rows that share a split and a point."""
        names = (*by, "point", *(["source"] if "source" in self.levels else []))
        keys = self._keys(names, 0, self.size)
        full = self._keys(self.identity(), 0, self.size)
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
