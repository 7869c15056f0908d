"""What the tasks of a lazy array have to know of its design, and a log made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cvstats.containers.apart import apart
from cvstats.containers.cells import CellDesign, CellLog, CellPanels, cell_levels
from cvstats.containers.grouping import Groups
from cvstats.containers.log import Attrs, Log, Table
from cvstats.core.design import Design
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, listed, spelled

__all__ = ["Run", "Template", "complete_of", "sketch", "template_of"]

WORDS = (
    "This needs losses one by one, and a lazy array gives the counts, means and squared "
    "deviations of cells. Expected losses in memory. Load them first: log.compute()."
)

Run = Callable[[Log], Result]


@dataclass(frozen=True, eq=False)
class OriginDesign(CellDesign):
    """Cells whose design asks the whole one, and notes what it was told."""

    origin: Design = field(kw_only=True)

    def points(self) -> Any:
        """Count the points under each label of the level."""
        if ("points", self.name) not in self.facts:
            self.facts["points", self.name] = apart(self.origin, self.name).points()
        return self.facts["points", self.name]


@dataclass(frozen=True, eq=False)
class Template:
    """What a task has to know of the design: labels of the cells' levels, and checked facts.

    Parameters
    ----------
    levels, labels : tuple
        The levels that tell cells apart, and the labels of each.
    pointed : bool
        Whether points have names.
    facts : dict
        What the design was asked, and said.
    by : str, optional
        The level whose labels are answered for one by one, ``parts`` many.
    noted : mapping
        What the attrs of the log tell.
    cells : tuple of array, optional
        Codes and counts of all cells, where chunks do not tell them.
    dropped : int
        How many evaluations were left out.
    complete : Template, optional
        The same of all evaluations, where some were left out.
    """

    levels: tuple[str, ...]
    labels: tuple[Any, ...]
    pointed: bool
    facts: dict[Any, Any]
    by: str | None
    parts: int | None
    noted: Mapping[Hashable, Any]
    cells: tuple[IntArray, FloatArray] | None = None
    dropped: int = 0
    complete: Template | None = None

    def asked(self) -> list[str]:
        """List the levels of which the points under each label were asked for."""
        return [key[1] for key in self.facts if key[0] == "points"]

    def whole(self) -> Moments:
        """Give the cells without their losses, once they are known."""
        codes, count = self.cells or (np.zeros((0, len(self.levels)), np.int64), np.zeros(0))
        nothing = np.zeros((len(count), 1))
        return Moments(self.levels, self.labels, codes, count, nothing, nothing, np.zeros(1))

    def filled(self, found: Moments) -> Moments:
        """Give a chunk in which every carried cell is masked the cells of the others."""
        if self.cells is None or len(found.count):
            return found
        codes, count = self.cells
        nothing = np.full((len(count), found.mean.shape[1]), np.nan)
        return replace(found, codes=codes, count=count, mean=nothing, m2=nothing)

    def log(self, found: Moments, design: CellDesign | None = None) -> CellLog:
        """Look at the moments of some columns as at a log."""
        cells = replace(found, levels=self.levels, labels=self.labels)
        if design is None:
            design = self.design(cells)
        width = cells.mean.shape[1]
        labels, every = Chunk([None]), self.complete
        return CellLog(
            design, CellPanels(width, WORDS), labels, found=cells,
            models=np.arange(width)[None, :], noted=self.noted,
            complete=None if every is None else every.design(every.whole()),
        )  # fmt: skip

    def design(self, cells: Moments) -> CellDesign:
        """Make the design of some cells, which knows what is known."""
        design = CellDesign.of(cells, None, self.pointed, WORDS)
        design.facts.update(self.facts)
        return design

    def answer(self, run: Run, log: Log) -> Result:
        """Ask the log, or each of its parts."""
        if self.by is None:
            return run(log)
        log = replace(log, design=apart(log.design, self.by))
        groups = Groups(log, self.by)
        if len(groups.labels) != self.parts:
            raise LogError(
                f"only {len(groups.labels):,} of {self.parts or 0:,} labels of {self.by!r} have "
                f"any loss, which is known too late for the shape of a lazy result: "
                f"{listed([spelled(name) for name in groups.labels])}. Take these alone, as in "
                f"log.sel({self.by}=[…]), or load the log: log.compute()."
            )
        return groups.answers(run)


@dataclass(frozen=True, eq=False)
class Chunk:
    """The columns of one chunk of carried cells, whose names and labels are put on later."""

    models: Sequence[Hashable]

    def columns(self, model: int) -> IntArray:
        """Refuse: the columns are a part of the grid."""
        raise LogError(WORDS)

    def name(self, column: int) -> str:
        """Name a column by its place."""
        return f"cell {column} of a chunk"

    def may_be_empty(self) -> bool:
        """Allow masked cells."""
        return True

    def table(self, result: Result, attrs: Attrs) -> Table:
        """Refuse: labels are put on later."""
        raise LogError(WORDS)

    def pairs(
        self, pairs: Sequence[tuple[Hashable, Hashable]], result: Result, attrs: Attrs
    ) -> Table:
        """Refuse: labels are put on later."""
        raise LogError(WORDS)

    def cells(self, found: Moments, attrs: Attrs) -> Table:
        """Refuse: labels are put on later."""
        raise LogError(WORDS)


def sketch(
    design: Design, by: str | None, noted: Mapping[Hashable, Any], width: int = 1
) -> tuple[Template, CellLog]:
    """Note what is known before any loss is; and make moments of the right shape of nothing."""
    levels = cell_levels(design)
    if by is not None and by not in levels:
        levels = (*levels, by)
    plan = design.cell_table(levels)
    codes, count = design.codes_of(plan), plan.total[plan.used].astype(np.float64)
    labels = tuple(design.levels[name].labels for name in levels)
    nothing, spread = np.zeros((len(count), width)), np.repeat(count[:, None], width, axis=1)
    found = Moments(levels, labels, codes, count, nothing, spread, np.zeros(width))
    pointed = "point" in design.levels
    plain = CellDesign.of(found, None, pointed, WORDS)
    facts: dict[Any, Any] = {"splits": design.splits()}
    whole = OriginDesign(
        plain.levels, plain.size, facts=facts, taking=design.taking, scores=design.scores,
        whole=found, words=WORDS, origin=design,
    )  # fmt: skip
    parts = None if by is None else len(design.cell_table((by,)).used)
    template = Template(levels, labels, pointed, facts, by, parts, noted)
    return template, template.log(found, whole)


def template_of(design: Design, like: Template) -> Template:
    """Make the template of a design that is known at last, asked what another one was asked."""
    for name in like.asked():
        apart(design, name).splits()
    template, sketched = sketch(design, like.by, like.noted)
    for name in like.asked():
        apart(sketched.design, name).points()
    facts = {key: value for key, value in template.facts.items() if key[0] != "cells"}
    cells = sketched.found.codes, sketched.found.count
    return replace(template, facts=facts, parts=like.parts, cells=cells)


def complete_of(design: Design, like: Template) -> Template | None:
    """Make the template of all evaluations; None where only those that were kept are a log."""
    try:
        return template_of(design, like)
    except LogError:
        return None
