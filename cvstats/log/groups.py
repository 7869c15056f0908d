"""The parts of a log, one for each label of a level (``by=``), from one pass over its losses.

A part is a log whose cells are a slice of those of the whole log: moments are computed once, keyed
by the level first, and cut. Its losses are gathered only if a method needs them one by one. So a
method that works on a log works on each of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.core.columns import Columns, LossColumns
from cvstats.core.design import LEVELS, SPLIT, Design, Level, SplitSizes
from cvstats.core.results import Result
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed, nearest, spelled
from cvstats.log.log import HiddenTable, Log, hide_losses

Run = Callable[[Log], Result]

WORDS = "This is a part of a log, of which only cells are at hand. Expected the whole log."


def within_levels(design: Design, names: Sequence[object]) -> Design:
    """Let some levels distinguish evaluations, if the log has them.

    Raises
    ------
    LogError
        If there is no such level.
    """
    gone = [name for name in names if not isinstance(name, str) or name not in design.levels]
    for name in gone[:1]:
        known = listed(map(repr, design.levels)) or "none"
        raise LogError(
            f"the log has no level {name!r}. Expected one of its levels, or of the coordinates "
            f"along its evaluations: {known}.{nearest(name, design.levels)}"
        )
    return replace(design, within=tuple(map(str, names)))


@dataclass(frozen=True, eq=False)
class CellSlices:
    """The cells of some levels, sorted by part: where each part starts, and the cells."""

    starts: IntArray
    codes: IntArray
    counts: IntArray


@dataclass(frozen=True, eq=False)
class Part:
    """What answers for one part of a log: slices of the cells of the whole."""

    groups: Groups
    at: int

    def moments(self, by: Sequence[str], losses: Columns | None) -> Moments:
        """Cut the moments of the part out of those of the whole log."""
        return self.groups.cut_moments(self.at, tuple(by), losses)

    def count_points(self, level: str) -> tuple[IntArray, str | None]:
        """Count the distinct points of the part under each label of a level."""
        return self.rows().count_points(level)

    def rows(self) -> Log:
        """Gather the rows of the part."""
        return self.groups.gather(self.at)


class Groups:
    """A log and the level whose labels are its parts.

    Parameters
    ----------
    log : Log
        The whole, whose design was read with this level in mind.
    name : str
        The level.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name, self.design = log, name, log.design
        self.codes = self.design.codes_of(self.design.cell_table((name,)))[:, 0]
        self._cells: dict[tuple[str, ...], CellSlices] = {}
        self._moments: dict[Any, tuple[Moments, IntArray, Columns | None]] = {}

    @property
    def labels(self) -> list[Hashable]:
        """The labels that occur, in the order of the parts."""
        labels = self.design.levels[self.name].labels
        if isinstance(labels, pd.Index):
            return list(labels.take(self.codes))
        return [labels[code] for code in self.codes.tolist()]

    def parts(self) -> Iterator[Log]:
        """Go through the parts; those of bootstrap and other samples are gathered row by row."""
        if "count" in self.design.levels or "sample" in self.design.levels:
            return (self.gather(at) for at in range(len(self.codes)))
        return (self.part(at) for at in range(len(self.codes)))

    def part(self, at: int) -> Log:
        """Look at the log as if it held the rows of one part only."""
        known = (*LEVELS, *self.log.used)
        by = tuple(name for name in self.design.levels if name in known and name != "point")
        cells, design = self.cells(by), self.design
        here = slice(cells.starts[at], cells.starts[at + 1])
        levels = {
            name: Level(design.levels[name].labels, cells.codes[here, i])
            for i, name in enumerate(by)
        }
        if "point" in design.levels:
            hidden: Any = HiddenTable((0,), WORDS)
            levels["point"] = Level(design.levels["point"].labels, hidden)
        counts = cells.counts[here]
        part = Design(
            levels, len(counts), facts={"splits": self.splits(at)}, taking=design.taking,
            scores=design.scores, metric=design.metric, weights=counts,
        )  # fmt: skip
        panels = hide_losses(self.log.panels.width, WORDS)
        return replace(
            self.log, design=part, panels=panels, complete=self.planned(at), cells=Part(self, at)
        )

    def planned(self, at: int) -> Design | None:
        """Give the design of a part before evaluations were left out, if some were."""
        whole = self._before_gaps
        if whole is None:
            return None
        return whole.part(int(np.searchsorted(whole.codes, self.codes[at]))).design

    @cached_property
    def _before_gaps(self) -> Groups | None:
        if self.log.complete is None:
            return None
        return Groups(replace(self.log, design=self.log.complete, complete=None), self.name)

    def first(self, by: tuple[str, ...]) -> tuple[str, ...]:
        """Put the level of the parts before all others."""
        return (self.name, *(level for level in by if level != self.name))

    def starts(self, codes: IntArray) -> IntArray:
        """Find where each part starts among cells that are sorted by part; and their end."""
        return np.append(np.searchsorted(codes, self.codes), len(codes))

    def cells(self, by: tuple[str, ...]) -> CellSlices:
        """Find the cells of some levels, sorted by part."""
        if by not in self._cells:
            levels = self.first(by)
            plan = self.design.cell_table(levels)
            codes = self.design.codes_of(plan)
            columns = [levels.index(level) for level in by]
            starts = self.starts(codes[:, 0])
            self._cells[by] = CellSlices(starts, codes[:, columns], plan.total[plan.used])
        return self._cells[by]

    def shared(self, by: tuple[str, ...]) -> bool:
        """Whether some cell of these levels has rows in several parts."""
        return len(self.cells(by).counts) > len(self.design.cell_table(by).used)

    def whole_splits(self) -> bool:
        """Whether every split of every part tests all points of the part."""
        cells = self._split_cells
        if len(cells.counts) == len(self.codes):
            return True  # one split in each part
        if "point" not in self.design.levels:
            return False
        points = np.repeat(self.log.count_points(self.name)[0][self.codes], np.diff(cells.starts))
        return bool((cells.counts == points).all())

    @property
    def _split_cells(self) -> CellSlices:
        return self.cells(tuple(level for level in SPLIT if level in self.design.levels))

    def splits(self, at: int) -> SplitSizes:
        """Count the rows of each split of a part, and its points."""
        cells = self._split_cells
        rows = cells.counts[cells.starts[at] : cells.starts[at + 1]]
        if len(rows) == 1:
            return SplitSizes(rows, int(rows[0]))
        if "point" not in self.design.levels:
            return SplitSizes(rows, None)
        return SplitSizes(rows, int(self.log.count_points(self.name)[0][self.codes[at]]))

    def cut_moments(self, at: int, by: tuple[str, ...], losses: Columns | None) -> Moments:
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
    def _sorted_rows(self) -> tuple[IntArray, IntArray]:
        codes = self.design.levels[self.name].block(0, self.design.size).astype(np.int64)
        if self.design.present is not None:
            codes[~self.design.present] = -1
        order = np.argsort(codes, kind="stable")
        return order, self.starts(codes[order])

    def gather(self, at: int) -> Log:
        """Take the rows of a part, in their order in the log."""
        if self.log.cells is not None:
            return self.log.cells.rows()
        order, starts = self._sorted_rows
        rows, design = order[starts[at] : starts[at + 1]], self.design
        levels = {
            name: Level(level.labels, take_codes(level, rows))
            for name, level in design.levels.items()
        }
        part = Design(
            levels, len(rows), taking=design.taking, scores=design.scores, metric=design.metric
        )  # fmt: skip
        panels = LossColumns(tuple(table[rows] for table in self.log.panels.tables))
        return replace(self.log, design=part, panels=panels)

    def answers(self, run: Run) -> Result:
        """Ask each part the same, and concatenate the answers.

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


def answer_groups(
    by: str,
    labels: Sequence[Hashable],
    run: Run,
    run_groups: Callable[[Groups], Result | None] | None,
    log: Log,
) -> Result:
    """Run a method on the part of a log for each label of a level, of which all must be there."""
    groups = Groups(log, by)
    there = set(groups.labels)
    gone = [label for label in labels if label not in there]
    if gone:
        raise LogError(f"no evaluation of {by}={spelled(gone[0])} is left.")
    together = run_groups(groups) if run_groups is not None else None
    return without_one_fold(groups.answers(run) if together is None else together)


def without_one_fold(result: Result) -> Result:
    """Leave out that a group lies in one fold, where all groups do: that is what was asked for."""
    one, none = np.int64(Caution.ONE_FOLD), np.int64(Caution.NO_LOSSES)
    if ((result.caution & (one | none)) == 0).any():
        return result
    return replace(result, caution=result.caution & ~one)


def take_codes(level: Level, rows: IntArray) -> IntArray:
    """Take the codes of a level at some rows."""
    codes: Any = level.codes
    if isinstance(codes, np.ndarray):
        taken = codes[rows]
    else:
        at = np.unravel_index(rows, codes.shape)
        axes = tuple(at[axis] for axis in codes.axes)
        taken = axes[0] if codes.base is None else codes.base[axes]
    return np.asarray(taken, dtype=np.int64)


def stack(results: Sequence[Result]) -> Result:
    """Concatenate results of the same columns."""
    columns = {
        name: np.concatenate([result.columns[name] for result in results])
        for name in results[0].columns
    }
    caution = np.concatenate([result.caution for result in results])
    return replace(results[0], columns=columns, caution=caution)
