"""Moments of a log that comes in batches: made of each batch, added up, asked in place of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from cvstats.containers.arrays import ArrayLabels
from cvstats.containers.cells import (
    CellDesign,
    CellLog,
    CellPanels,
    Prints,
    as_index,
    cell_levels,
    in_order,
)
from cvstats.containers.frames import FrameLabels
from cvstats.containers.kept.matching import matched, picked, reordered, rows_of
from cvstats.containers.kept.met import Met, met_in
from cvstats.containers.kept.notes import Notes
from cvstats.containers.log import Labels, Log
from cvstats.containers.pairing import aligned
from cvstats.containers.reading import read, unread
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Differences
from cvstats.core.design import LEVELS
from cvstats.core.moments import Moments
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed

__all__ = ["Kept", "kept_of", "model_columns"]

K = TypeVar("K", bound="Kept")

MOST_GAPS = 1 << 26
"""Numbers that the differences of all pairs may take, at the most."""

WORDS = (
    "This needs losses one by one, and moments hold only the counts, means and squared "
    "deviations of cells. Expected the log itself."
)

WITHIN = "within each of {} batches"
ACROSS = f"{WITHIN} and across them: no evaluation stands twice"
UNNAMED = f"{WITHIN}, not across them: an evaluation that stands in two batches is counted twice"
SAMPLED = (
    f"{WITHIN}, and across them a sample of {{:,}} evaluations: a batch that was added twice is "
    f"found, and a few evaluations that stand in two batches may not be"
)


def model_columns(labels: Labels) -> IntArray:
    """List the columns of the models, models by carried cells."""
    return np.stack([labels.columns(model) for model in range(len(labels.models))])


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a log: the moments of its cells and the names of its models.

    Parameters
    ----------
    cells : Moments
        A cell for each combination of labels, a column for each model (and carried cell).
    labels : Labels
        The names of the columns.
    pointed : bool
        Whether the log names its points.
    prints : array of uint64, shape (cells,), optional
        Sums of the hashes of the points of each cell.
    gaps : Moments, optional
        The same cells of the differences of all pairs of models.
    batches : int
        How many batches have been added up.
    dropped : int, optional
        How many evaluations were left out because some model missed them.
    notes : Notes
        What the attrs of all batches say.
    within : str
        A level without which an evaluation would stand several times: these are several logs.
    doubt : Caution
        What was doubtful about the levels of the log, of which not all are kept.
    met : Met, optional
        Some of the evaluations, so that those of two batches are known again.
    """

    cells: Moments
    labels: Labels = FrameLabels((), None)  # for one who takes this for Moments.of_log
    pointed: bool = False
    prints: Prints | None = None
    gaps: Moments | None = None
    batches: int = 1
    dropped: int | None = None
    notes: Notes = field(default_factory=Notes)
    within: str = ""
    doubt: Caution = Caution(0)
    met: Met | None = None

    @property
    def models(self) -> list[Hashable]:
        """The names of the models."""
        return list(self.labels.models)

    @property
    def name(self) -> Hashable:
        """The name of the one model; None where there are several."""
        return self.models[0] if len(self.models) == 1 else None

    @property
    def attrs(self) -> dict[Hashable, Any]:
        """What the attrs of all batches say, such as ``n_train``."""
        return {str(name): value for name, value in self.notes.shared.items()}

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels whose labels tell cells apart."""
        return self.cells.levels

    @property
    def n_losses(self) -> int:
        """How many evaluations were added up, of each model."""
        return int(self.cells.count.sum())

    def __repr__(self) -> str:
        """Say what was added up."""
        pairs = ", with pairs" if self.gaps is not None else ""
        return (
            f"<Moments of {self.n_losses:,} evaluations in {len(self.cells.count):,} cells by "
            f"{', '.join(map(repr, self.levels)) or 'nothing'}; "
            f"{len(self.models):,} model{'s' if len(self.models) > 1 else ''}{pairs}>"
        )

    def __add__(self: K, other: Kept) -> K:
        """Add another batch of the same log: models are matched by name, cells by label."""
        if not isinstance(other, Kept):
            return NotImplemented
        if set(self.levels) == set(other.levels):
            other = other.by(self.levels)
        if self.levels != other.levels or self.pointed != other.pointed:
            raise LogError(
                f"the batches have different levels: {told_levels(self)} and "
                f"{told_levels(other)}. Expected the same in each batch. Pass by= the levels that "
                f"all batches have."
            )
        if (self.gaps is None) != (other.gaps is None):
            raise LogError(
                "one batch keeps what two models share and the other does not. Expected "
                "pairs=True for both, or for none."
            )
        same_units(self, other)
        models, pairs = matched(self.labels, other.labels)
        theirs = column_order(other, models)
        same_masks(self, other.cells.mean[:, theirs])
        cells = self.cells + picked(other.cells, theirs)
        gaps = None
        if self.gaps is not None and other.gaps is not None:
            gaps = self.gaps + turned(other, pairs)
        prints = None
        if self.prints is not None and other.prints is not None:
            prints = np.zeros(len(cells.count), dtype=np.uint64)
            for part in (self, other):
                at = rows_of(cells, part.cells)
                prints[at] += np.uint64(0) if part.prints is None else part.prints
        met = None if self.met is None or other.met is None else self.met + other.met
        known = [part.dropped for part in (self, other) if part.dropped is not None]
        return replace(
            self, cells=cells, prints=prints, gaps=gaps, batches=self.batches + other.batches,
            dropped=sum(known) if known else None, notes=self.notes & other.notes,
            within=self.within or other.within, doubt=self.doubt | other.doubt, met=met,
        )  # fmt: skip

    def by(self: K, levels: tuple[str, ...]) -> K:
        """Name the same levels in another order."""
        if levels == self.levels:
            return self
        gaps = None if self.gaps is None else reordered(self.gaps, levels)
        return replace(self, cells=reordered(self.cells, levels), gaps=gaps)

    def __radd__(self: K, other: object) -> K:
        """Let ``sum`` start from its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def log(self) -> CellLog:
        """Look at the moments as at a log."""
        cells, order = in_order(self.cells)
        prints = None if self.prints is None else self.prints[order]
        gaps = None if self.gaps is None else in_order(self.gaps)[0]
        design = CellDesign.of(cells, prints, self.pointed, WORDS, self.within)
        attrs: dict[str, Any] = {}
        if self.batches > 1:
            attrs = {"n_batches": self.batches, "checked": self._checked()}
        if self.dropped is not None:
            attrs["n_dropped"] = self.dropped
        if (mixed := self.notes.words()) is not None:
            attrs["mixed"] = mixed
        return CellLog(
            design, CellPanels(cells.mean.shape[1], WORDS), self.labels, attrs,
            found=cells, gaps=gaps, models=model_columns(self.labels), doubt=self.doubt,
        )  # fmt: skip

    def _checked(self) -> str:
        """Say what was compared between batches."""
        number = f"{self.batches:,}"
        if self.met is None:
            return UNNAMED.format(number)
        if self.met.complete:
            return ACROSS.format(number)
        return SAMPLED.format(number, len(self.met.hashes))


@unread.register
def _(losses: Kept, also: object = None) -> Log:
    return losses.log()


@aligned.register
def _(one: Kept, two: Any) -> Any:
    raise LogError(
        "the moments of two logs cannot be paired: what the models share is gone. Expected the "
        "moments of one frame with a column for each model, made with pairs=True."
    )


def told_levels(part: Kept) -> str:
    """List the levels of a batch."""
    names = [*part.levels, *(["point"] if part.pointed else [])]
    return ", ".join(map(repr, names)) or "none"


def kept_of(
    kind: type[K], losses: object, by: str | Sequence[str] | None, pairs: bool, missing: str
) -> K:
    """Compute the moments of one batch."""
    if isinstance(losses, Kept):
        raise LogError("these are moments already. Expected a loss log.")
    log, within = read_apart(losses, by, missing)
    if log.design.scores:
        raise LogError(
            "this log holds one score for each split, and moments are of the losses of single "
            "points. Expected losses. Ask the log itself: it is short."
        )
    levels = levels_of(log, by)
    log.design.check_labels(levels)
    cells = log.moments(levels)
    gaps = None
    if pairs:
        gaps = plain(log.moments(levels, every_gap(log, len(cells.count))))
    prints, met = met_in(log.design, levels)
    return kind(
        plain(cells), log.labels, "point" in log.design.levels, prints, gaps, 1,
        log.attrs.get("n_dropped"), Notes.of(log.noted), within, unheeded(log, levels), met,
    )  # fmt: skip


def read_apart(losses: object, by: str | Sequence[str] | None, missing: str) -> tuple[Log, str]:
    """Read a batch; where an evaluation stands twice, see if a level of ``by`` tells them apart."""
    more = [name for name in ((by,) if isinstance(by, str) else by or ()) if name not in LEVELS]
    try:
        return read(losses, missing=missing), ""
    except LogError:
        if not more:
            raise
        return read(losses, missing=missing, by=more[0]), more[0]


def levels_of(log: Log, by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Read which levels tell cells apart: those asked for, or all but the points."""
    if by is None:
        return cell_levels(log.design)
    names = (by,) if isinstance(by, str) else tuple(by)
    unknown = [name for name in names if name not in log.design.levels]
    if unknown:
        raise LogError(
            f"the log has no level {unknown[0]!r}. Expected some of its levels: "
            f"{listed(map(repr, log.design.levels)) or 'none'}."
        )
    return names


def unheeded(log: Log, levels: tuple[str, ...]) -> Caution:
    """Say whether the log has a level that is not kept, and that sounds like one of ours."""
    return replace(log, used=levels).doubts() & Caution.UNUSED_LEVEL


def every_gap(log: Log, cells: int) -> Differences:
    """Pair all models with each other, in each carried cell."""
    columns = model_columns(log.labels)
    if len(columns) < 2:
        raise LogError(
            "pairs=True asks for what models share, and the log holds one model. Expected two "
            "or more: a frame with a column for each model."
        )
    left, right = np.triu_indices(len(columns), 1)
    if cells * len(left) * columns.shape[1] > MOST_GAPS:
        raise LogError(
            f"pairs=True would keep {cells * len(left) * columns.shape[1]:,} differences. "
            f"Expected at most {MOST_GAPS:,}. Compare fewer models, or fewer levels: by='fold'."
        )
    return Differences(log.panels, columns[left].reshape(-1), columns[right].reshape(-1))


def plain(found: Moments) -> Moments:
    """Keep the labels that occur, and nothing of the log's own index."""
    labels, codes = [], np.empty_like(found.codes)
    for i, names in enumerate(found.labels):
        used, codes[:, i] = np.unique(found.codes[:, i], return_inverse=True)
        labels.append(tuple(as_index(names).take(used)))
    return replace(found, labels=tuple(labels), codes=codes)


def same_units(one: Kept, two: Kept) -> None:
    """Refuse losses in different units, of which a sum means nothing."""
    mine, yours = (
        part.labels.units if isinstance(part.labels, ArrayLabels) else part.attrs.get("units")
        for part in (one, two)
    )
    if mine != yours:
        raise LogError(
            f"the losses are in units {mine!r} in one batch and {yours!r} in the other. Expected "
            f"the same in each batch. Convert them, or set it: log.attrs['units'] = "
            f"{mine or yours!r}."
        )


def column_order(part: Kept, models: IntArray) -> IntArray:
    """Lay the columns of a batch out in the order of another one's models."""
    own = model_columns(part.labels)
    order = np.empty(own.size, dtype=np.int64)
    order[own.reshape(-1)] = own[models].reshape(-1)
    return order


def turned(part: Kept, pairs: Sequence[tuple[int, int]]) -> Moments:
    """Take the differences of a batch for pairs in another order, turned round where need be."""
    log = part.log()
    own = model_columns(part.labels)
    left, right = (own[[pair[side] for pair in pairs]].reshape(-1) for side in (0, 1))
    found = log.moments(part.levels, Differences(log.panels, left, right))
    return plain(found)


def same_masks(one: Kept, means: Any) -> None:
    """Refuse a carried cell that has losses in one batch and none in the other."""
    mine, yours = (np.isnan(table).any(axis=0) for table in (one.cells.mean, means))
    apart = np.flatnonzero(mine != yours)
    if len(apart):
        name = one.labels.name(int(apart[0]))
        raise LogError(
            f"the losses of {name} are all missing (NaN) in one batch and not in another. "
            f"Expected a number for every evaluation, or none at all. Fill the gap, or mask "
            f"it everywhere."
        )
