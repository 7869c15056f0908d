"""dask: the same methods on lazy arrays and on DataFrames whose rows are still to be computed.

A method is run once on cells of the right shape that hold no losses: this gives the names of its
numbers, and what it refuses of the levels alone. The losses are looked at when the result is
computed: one reduction aggregates the cells of each chunk and adds up the chunks, and the method
is run on the cells of each chunk of the carried dimensions. No task holds more than a chunk of
losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import Caution, flag_attrs
from cvstats.core.cells import Moments
from cvstats.core.columns import Differences, LossColumns
from cvstats.core.design import LEVELS, CellIndex, Design, GridCodes, Level, SplitSizes
from cvstats.core.reduce import compute_moments
from cvstats.core.results import Result, separate_counts
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, install_command, listed, spelled
from cvstats.large.cells import Cells, CountPoints, cell_levels, design_of_cells
from cvstats.large.moments import CellMoments, assembled, every_pair, levels_of, read_batch
from cvstats.large.scanning import added, check_stacked, columns_of, part_of, whole_of
from cvstats.large.task_names import Named, token_of
from cvstats.log.align import aligned, same_facts
from cvstats.log.gaps import NOTHING_LEFT, answer_cells, find_gaps, keep_design
from cvstats.log.groups import Groups, answer_groups
from cvstats.log.log import (
    DIFFERENT_GAPS,
    Log,
    doubted,
    facts_of,
    hide_losses,
    infinite_loss,
    missing_loss,
    refuse_same_names,
    too_large,
    unequal_points,
)
from cvstats.log.read import read
from cvstats.log.stacking import Axis
from cvstats.log.xarray import IN_LOSS_UNITS, ArrayLabels, Layout, LazyArray, file_attrs, unlabelled

M = TypeVar("M", bound=CellMoments)
Run = Callable[[Log], Result]
PairRun = Callable[[Log, Differences], Result]
Pairs = tuple[tuple[int, ...], tuple[int, ...]]
"""The numbers of the two models of each pair."""

FAN = 8
"""So many parts are added up in one task."""

WORDS = (
    "This needs losses one by one, and a lazy array gives the counts, means and squared "
    "deviations of cells. Expected losses in memory. Load them first: log.compute()."
)


def import_dask() -> Any:
    """Import dask, or say which extra brings it."""
    try:
        import dask.array
        import dask.delayed
    except ImportError as error:
        raise ImportError(f"this needs dask. Type: {install_command('dask')}") from error
    return dask


def is_lazy(log: Log) -> bool:
    """Whether the losses of a log are still to be computed."""
    return log.lazy is not None


def has_lazy_losses(*logs: object) -> bool:
    """Whether the losses of one of these objects are still to be computed."""
    arrays: list[Any] = []
    for log in logs:
        if isinstance(log, xr.DataArray):
            arrays.append(log)
        elif isinstance(log, xr.Dataset):
            arrays.extend(log.data_vars.values())
    return any(array.chunks is not None for array in arrays)


# --- one chunk ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChunkReduction(Named):
    """How a chunk is summed up: plain numbers only, so that logs share these tasks.

    Parameters
    ----------
    sizes : tuple of int
        How many labels each level has whose labels distinguish cells.
    shape : tuple of int
        How many places there are along each dimension of evaluations.
    nan_tells : bool
        Whether a place where every loss is NaN holds no evaluation.
    model_axis : int, optional
        Which of the carried dimensions holds the models, where pairs of them are asked for.
    pairs : tuple of tuple of int
        The numbers of the two models of each pair.
    """

    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    nan_tells: bool
    model_axis: int | None = None
    pairs: Pairs = ((), ())

    @property
    def places(self) -> np.dtype[Any]:
        """The type of what is known of each place: its row, its labels, whether it is kept."""
        codes = [(f"code{i}", np.int32) for i in range(len(self.sizes))]
        return np.dtype([("row", np.int64), ("kept", np.bool_), *codes])

    def model_columns(self, carried: tuple[int, ...]) -> IntArray:
        """List the columns of each model in a chunk, models by carried cells."""
        numbers = np.arange(math.prod(carried), dtype=np.int64).reshape(carried)
        if self.model_axis is None:
            return numbers.reshape(1, -1)
        return np.moveaxis(numbers, self.model_axis, 0).reshape(carried[self.model_axis], -1)


@dataclass(frozen=True, eq=False)
class ChunkMoments:
    """What a chunk, or several chunks of the same columns, say of their losses.

    Parameters
    ----------
    cells, gaps : Moments, optional
        The moments of all columns and of differences of pairs; None where nothing was evaluated.
    carried : tuple of int
        The shape of the columns.
    missing : array of int, shape (columns,)
        How many losses are missing or infinite.
    first : array of int, shape (columns,)
        The row of the first of these, and the column of a loss that is there in that row; -1
        where there is none.
    beside : array of int, shape (columns,)
    infinite : array of bool, shape (columns,)
        Whether that first loss is infinite.
    seen : list of (start, stop, bits)
        Which places hold evaluations, box by box, where the losses decide it.
    """

    cells: Moments | None
    gaps: Moments | None
    carried: tuple[int, ...]
    missing: IntArray
    first: IntArray
    beside: IntArray
    infinite: MaskArray
    seen: list[tuple[IntArray, IntArray, NDArray[np.uint8]]]

    def __add__(self, other: ChunkMoments) -> ChunkMoments:
        """Add another chunk of the same columns."""
        later = (self.missing == 0) | ((other.missing > 0) & (other.first < self.first))
        return ChunkMoments(
            add_moments(self.cells, other.cells), add_moments(self.gaps, other.gaps), self.carried,
            self.missing + other.missing, np.where(later, other.first, self.first),
            np.where(later, other.beside, self.beside),
            np.where(later, other.infinite, self.infinite), self.seen + other.seen,
        )  # fmt: skip


def add_moments(one: Moments | None, two: Moments | None) -> Moments | None:
    """Add moments up, of which there may be none."""
    if one is None or two is None:
        return two if one is None else one
    with np.errstate(invalid="ignore", over="ignore"):  # infinite losses: named later
        return one + two


def flatten_parts(parts: Any) -> list[ChunkMoments]:
    """List what nested lists of chunks hold."""
    if isinstance(parts, list):
        return [one for part in parts for one in flatten_parts(part)]
    return [parts]


def add_chunks(parts: Any, axis: Any, keepdims: Any) -> ChunkMoments:
    """Add chunks up."""
    return reduce(ChunkMoments.__add__, flatten_parts(parts))


def number_places(*parts: Any, reduction: ChunkReduction, axes: Sequence[Any]) -> Any:
    """Note for each place of a chunk its row in the whole array, its labels, and if it is kept."""
    wide = len(reduction.shape)
    *along, kept = parts[: wide + 1]
    bases = list(parts[wide + 1 :])
    shape = tuple(map(len, along))
    positions = [part.reshape([-1 if i == at else 1 for i in range(wide)])
                 for at, part in enumerate(along)]  # fmt: skip
    places = np.empty(shape, dtype=reduction.places)
    places["row"] = np.ravel_multi_index(tuple(np.broadcast_arrays(*positions)), reduction.shape)
    places["kept"] = kept
    for i, axis in enumerate(axes):
        if isinstance(axis, int):
            places[f"code{i}"] = positions[axis]
        else:
            base = bases.pop(0)
            places[f"code{i}"] = base.reshape(
                [shape[at] if at in axis else 1 for at in range(wide)]
            )
    return places


def sum_chunk(
    values: NDArray[Any], weights: NDArray[Any], axis: tuple[int, ...], keepdims: bool,
    reduction: ChunkReduction, computing_meta: bool = False,
) -> Any:  # fmt: skip
    """Compute the moments of the cells in one chunk, whose first dimensions hold evaluations."""
    if computing_meta:  # dask asks for the kind of answer, and takes it for an array
        return values
    tested = len(axis)
    carried = values.shape[tested:]
    rows, width = math.prod(values.shape[:tested]), math.prod(carried)
    table = np.asarray(values).reshape(rows, width)
    table = table.view(np.uint8) if table.dtype.kind == "b" else table
    nothing = np.zeros(width, dtype=np.int64)
    empty = ChunkMoments(
        None, None, carried, nothing, nothing - 1, nothing - 1, nothing.astype(bool), []
    )
    if rows == 0 or width == 0:
        return empty
    places = np.ascontiguousarray(weights[(slice(None),) * tested + (0,) * len(carried)]).reshape(
        rows
    )
    here = places["kept"].copy()
    seen = []
    if reduction.nan_tells:
        here &= ~np.isnan(table).all(axis=1)
        start, last = (np.array(np.unravel_index(places["row"][at], reduction.shape))
                       for at in (0, -1))  # fmt: skip
        seen = [(start, last + 1, np.packbits(here))]
    if not here.all():
        table, places = table[here], places[here]
    if not len(table):
        return replace(empty, seen=seen)
    levels = tuple(f"code{i}" for i in range(len(reduction.sizes)))
    codes = np.stack([places[name] for name in levels]) if levels else np.zeros((0, len(table)))
    keys, cell = CellIndex.numbered(reduction.sizes, codes.astype(np.int32))
    design = Design({"cell": Level(range(len(keys)), cell.astype(np.int32))}, len(table))
    labels = tuple(range(size) for size in reduction.sizes)
    panels = LossColumns((table,))

    def moments(losses: LossColumns | Differences) -> Moments:
        with np.errstate(invalid="ignore", over="ignore"):
            found = compute_moments(design, losses, ("cell",))
        return replace(found, levels=levels, labels=labels, codes=keys.codes())

    cells, gaps = moments(panels), None
    if reduction.pairs[0]:
        columns = reduction.model_columns(carried)
        left, right = (columns[list(side)].reshape(-1) for side in reduction.pairs)
        gaps = moments(Differences(panels, left, right))
    whole = replace(empty, cells=cells, gaps=gaps, seen=seen)
    finite = np.isfinite(cells.mean).all(axis=0) & np.isfinite(cells.m2).all(axis=0)
    return whole if finite.all() else note_missing(whole, table, places["row"])


def note_missing(found: ChunkMoments, table: NDArray[Any], rows: IntArray) -> ChunkMoments:
    """Count the losses of each column that are missing or infinite, and find the first."""
    wrong = ~np.isfinite(table)
    missing, at = wrong.sum(axis=0), wrong.argmax(axis=0)
    beside = np.full(len(missing), -1)
    for row in np.unique(at[missing > 0]).tolist():
        there = np.flatnonzero(~wrong[row])
        beside[at == row] = there[0] if len(there) else -1
    infinite = np.isinf(table[at, np.arange(table.shape[1])])
    first = np.where(missing > 0, rows[at], -1)
    return replace(found, missing=missing, first=first, beside=beside, infinite=infinite)


# --- what was evaluated ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KnownCells(Named):
    """What a task has to know of the design: the cells without losses, and what was checked.

    Parameters
    ----------
    whole : Moments
        The cells that occur, of no column.
    splits : SplitSizes
        The rows of each split, and how many points there are.
    points : mapping
        The distinct points under each label of the levels of which a method asks for them.
    named_points : bool
        Whether points have names.
    scores : bool
        Whether each loss is a score of a whole split.
    metric : str
        Whether the losses are those of a metric.
    taking : str
        How one types to keep one label of a level.
    rows : array of int, optional
        The rows of the evaluations, where the losses decide which these are.
    dropped : int
        How many evaluations were left out.
    complete : KnownCells, optional
        The same of all evaluations, where some were left out.
    """

    whole: Moments
    splits: SplitSizes
    points: Mapping[str, tuple[IntArray, str | None]]
    named_points: bool
    scores: bool
    metric: str
    taking: str
    rows: IntArray | None = None
    dropped: int = 0
    complete: KnownCells | None = None

    @property
    def every(self) -> IntArray | None:
        """The rows of all evaluations, if some were left out and all are a log."""
        return None if self.complete is None else self.complete.rows

    def design(self) -> Design:
        """Make the design of the cells."""
        made = design_of_cells(self.whole, self.splits, self.named_points, WORDS, self.taking)
        return replace(made, scores=self.scores, metric=self.metric)


def known_cells(design: Design, levels: tuple[str, ...], asked: Sequence[str]) -> KnownCells:
    """Check a design, and note what its cells are."""
    splits = design.splits()
    plan = design.cell_table(levels)
    count = plan.total[plan.used].astype(np.float64)
    nothing = np.zeros((len(count), 0))
    labels = tuple(design.levels[name].labels for name in levels)
    codes = design.codes_of(plan)
    whole = Moments(levels, labels, codes, count, nothing, nothing, np.zeros(0))
    points = {name: design.count_points(name) for name in asked}
    return KnownCells(
        whole, splits, points, "point" in design.levels, design.scores, design.metric,
        design.taking,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LaterCells(Named):
    """What is needed to find the cells once the losses decide what was evaluated."""

    layout: Layout
    levels: tuple[str, ...]
    asked: tuple[str, ...]
    within: tuple[str, ...]
    scores: bool
    metric: str

    def design_at(self, rows: IntArray) -> Design:
        """Make the design of the evaluations at some rows."""
        design = self.layout.design_at(rows)
        return replace(design, within=self.within, scores=self.scores, metric=self.metric)


def find_cells(
    later: LaterCells, parts: Sequence[ChunkMoments], kept: Any, any_loss: Any
) -> KnownCells:
    """Find the cells of what was evaluated; all checks of a design are done here.

    ``kept`` and ``any_loss`` mark places with losses of every and of any model, where evaluations
    that some model misses are left out.
    """
    layout = later.layout
    if kept is None:
        here = np.zeros(layout.shape, dtype=bool)
        for part in parts:
            mark_seen(here, part)
        every = here
    else:
        here, every = kept, any_loss
    rows = np.flatnonzero(here)
    if not len(rows):
        raise LogError(
            NOTHING_LEFT if every.any() else "the log is empty. Expected at least one loss."
        )
    check_labels(layout, rows)
    known = replace(known_cells(later.design_at(rows), later.levels, later.asked), rows=rows)
    dropped = int(np.count_nonzero(every)) - len(rows)
    if not dropped:
        return known
    try:
        complete = known_cells(later.design_at(np.flatnonzero(every)), later.levels, later.asked)
    except LogError:
        return replace(known, dropped=dropped)  # only what is left is a log
    complete = replace(complete, rows=np.flatnonzero(every))
    return replace(known, dropped=dropped, complete=complete)


def mark_seen(here: MaskArray, part: ChunkMoments) -> None:
    """Mark the places that hold an evaluation in some chunks."""
    for start, stop, bits in part.seen:
        box = tuple(slice(int(a), int(b)) for a, b in zip(start, stop, strict=True))
        shape = here[box].shape
        here[box] |= np.unpackbits(bits, count=math.prod(shape)).astype(bool).reshape(shape)


# --- the method on the cells of a chunk -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LazyAnswer(Named):
    """How the cells of a chunk become numbers: the method, and what it may know of the log.

    Parameters
    ----------
    run : callable
        The method, of a log, or of a log and pairs of its columns.
    reduction : ChunkReduction
        How chunks were summed up.
    layout : Layout
        How the evaluations lie.
    labels : ArrayLabels
        The carried dimensions, their sizes and labels.
    noted : mapping
        The attrs of the log.
    used : sequence
        Levels that were asked for by name.
    doubt : Caution
        What is doubtful about the levels of the log.
    by : str, optional
        The level whose labels are parts.
    leading : tuple of int
        The dimensions of the result before those that are carried, the parts first.
    asked : tuple of tuple of int
        The numbers of the models of the pairs that are compared.
    drop : bool
        Whether evaluations that some model misses are left out.
    dtype : dtype
        A field for each number of the result.
    """

    run: Callable[..., Result]
    reduction: ChunkReduction
    layout: Layout
    labels: ArrayLabels
    noted: Mapping[Hashable, Any]
    used: Sequence[str | None]
    doubt: Caution
    by: str | None
    leading: tuple[int, ...]
    asked: Pairs = ((), ())
    drop: bool = False
    dtype: np.dtype[Any] | None = None

    def __call__(self, found: ChunkMoments, known: KnownCells, *along: IntArray) -> NDArray[Any]:
        """Compute the numbers of one chunk of carried cells; pairs replace the models."""
        labels = self.labels_of(along)
        out, axis = self.empty_numbers(found.carried), self.reduction.model_axis
        if out.size:
            name = labels.name
            refuse_missing(found, known, self.layout, name, self.drop)
            log = self.log_of(found, known, labels, known.points.__getitem__)
            put_columns(out, self.answer(log, found.carried))
        return out if axis is None else np.moveaxis(out, 0, axis)

    def empty_numbers(self, carried: tuple[int, ...]) -> NDArray[Any]:
        """Make room for the numbers of a chunk; pairs replace the models, and come first."""
        shape, axis = list(carried), self.reduction.model_axis
        if axis is not None:
            shape = [len(self.asked[0]), *shape[:axis], *shape[axis + 1 :]]
        return np.empty((*self.leading, *shape), dtype=self.dtype)

    def labels_of(self, along: Sequence[IntArray]) -> ArrayLabels:
        """Take the labels of one chunk of the carried dimensions."""
        whole = self.labels
        here = dict(zip(whole.dims, along, strict=True))
        models = whole.models
        if "model" in here:
            models = [models[int(i)] for i in here["model"]]
        coords = {dim: whole.coords[dim][rows] for dim, rows in here.items() if dim in whole.coords}
        sizes = tuple(map(len, along))
        return ArrayLabels(models, whole.dims, coords, sizes, whole.model_dim, None)

    def log_of(
        self, found: ChunkMoments, known: KnownCells, labels: ArrayLabels, points: CountPoints
    ) -> Log:
        """Look at the moments of a chunk as at a log."""
        whole, width = known.whole, math.prod(found.carried)
        columns = self.reduction.model_columns(found.carried)
        left, right = (np.array(side, dtype=np.int64) for side in self.reduction.pairs)
        wide = {"cells": width, "gaps": len(left) * columns.shape[1]}
        parts: dict[str, Moments] = {}
        for name, part in (("cells", found.cells), ("gaps", found.gaps)):
            if part is None:  # every carried cell is masked
                nothing = np.full((len(whole.count), wide[name]), np.nan)
                parts[name] = replace(whole, mean=nothing, m2=nothing, origin=np.zeros(wide[name]))
            else:
                parts[name] = replace(part, levels=whole.levels, labels=whole.labels)
        cells = Cells(
            parts["cells"], WORDS, points, columns,
            parts["gaps"] if len(left) else None, (left, right),
        )  # fmt: skip
        return Log(
            known.design(), hide_losses(width, WORDS), labels, noted=self.noted, used=self.used,
            complete=None if known.complete is None else known.complete.design(), cells=cells,
        )  # fmt: skip

    def answer(self, log: Log, carried: tuple[int, ...]) -> Result:
        """Run the method, and add what is doubtful about the levels of the log."""
        return doubted(self.ask(log, carried), self.doubt)

    def ask(self, log: Log, carried: tuple[int, ...]) -> Result:
        """Run the method on the log, on its pairs of models, or on each of its parts."""
        if self.asked[0]:
            columns = self.reduction.model_columns(carried)
            left, right = (columns[list(side)].reshape(-1) for side in self.asked)
            pairs = Differences(log.panels, left, right)
            return answer_cells(log, self.run, pairs)
        if self.by is None:
            return answer_cells(log, self.run)
        groups = Groups(log, self.by)
        if len(groups.labels) != self.leading[0]:
            raise LogError(
                f"only {len(groups.labels):,} of {self.leading[0]:,} labels of {self.by!r} have "
                f"any loss, which is known too late for the shape of a lazy result: "
                f"{listed([spelled(name) for name in groups.labels])}. Take these alone, as in "
                f"log.sel({self.by}=[…]), or load the log: log.compute()."
            )
        ask = partial(answer_groups, self.by, groups.labels, self.run, None)
        return answer_cells(log, ask)


def put_columns(out: NDArray[Any], result: Result) -> None:
    """Put the numbers of a result into the fields of an array."""
    columns = {**result.columns, "caution": result.caution}
    for column in out.dtype.names or ():
        out[column] = np.asarray(columns[column]).reshape(out.shape)


@dataclass(frozen=True, eq=False)
class GridAnswer(Named):
    """How carried cells are answered for by all losses of a chunk.

    So are those that may miss different evaluations, and all of methods that read single losses.

    Parameters
    ----------
    numbers : LazyAnswer
        The method, and what it may know of the log.
    nan_tells : bool
        Whether NaN in all cells says that nothing was evaluated.
    within : tuple of str
        More levels that distinguish evaluations.
    scores : bool
        Whether each loss is a score of a whole split.
    """

    numbers: LazyAnswer
    nan_tells: bool
    within: tuple[str, ...]
    scores: bool

    def __call__(
        self, values: NDArray[Any], evaluated: MaskArray, *along: IntArray
    ) -> NDArray[Any]:
        """Compute the numbers of one chunk, which holds every evaluation of its cells."""
        numbers, layout = self.numbers, self.numbers.layout
        carried, axis = values.shape[len(layout.shape) :], numbers.reduction.model_axis
        out = numbers.empty_numbers(carried)
        if out.size:
            design = replace(layout.design(), within=self.within, scores=self.scores)
            here = evaluated.reshape(-1)
            if self.nan_tells and not here.all():
                check_labels(layout, np.flatnonzero(here))
                design = replace(design, present=here)
            design.splits()
            table = np.asarray(values).reshape(design.size, math.prod(carried))
            log = Log(
                design, LossColumns((table,)), numbers.labels_of(along), noted=numbers.noted,
                used=numbers.used,
            )  # fmt: skip
            if numbers.drop:
                log = replace(log, gaps=find_gaps(log, log.columns_by_cell()))
            put_columns(out, numbers.answer(log, carried))
        return out if axis is None else np.moveaxis(out, 0, axis)


def check_labels(layout: Layout, rows: IntArray) -> None:
    """Refuse evaluations that lack a label."""
    for name in layout.levels:
        lost = np.flatnonzero(layout.codes(name, rows) < 0) if name in LEVELS else ()
        if len(lost):
            raise unlabelled(name, layout.design_at(rows[lost[:1]]).format_labels(0))


def refuse_missing(
    found: ChunkMoments,
    known: KnownCells,
    layout: Layout,
    name: Callable[[int], str],
    drop: bool,
) -> None:
    """Refuse losses that are missing or infinite, but for columns that have none at all."""
    number = int(known.whole.count.sum())
    missing, first, beside = found.missing, found.first, found.beside
    seen = 0 if found.cells is None else int(found.cells.count.sum())
    if seen < number and found.cells is not None and known.rows is not None:
        here = np.zeros(layout.shape, dtype=bool)
        mark_seen(here, found)
        lost = known.rows[~here.reshape(-1)[known.rows]]
        if len(lost):  # other columns, in other chunks, hold losses there
            missing = missing + len(lost)
            earlier = (found.missing == 0) | (int(lost[0]) < first)
            first, beside = np.where(earlier, lost[0], first), np.where(earlier, -2, beside)
    bad = np.flatnonzero((missing > 0) & (missing < number))
    for column in bad[:1] if found.cells is not None else bad[:0]:
        total = int(missing[column])
        where = layout.design_at(np.array([first[column]])).format_labels(0)
        where = where if total == 1 else f"{where}; and {total - 1:,} more"
        whose = name(int(column))
        if drop and not found.infinite[column]:
            raise LogError(
                f"the losses of {whose} are all missing (NaN) in one chunk and not in another. "
                f"Expected a number for every evaluation, or none at all. Fill the gap, mask it "
                f"everywhere, or load the log: log.compute()."
            )
        if found.infinite[column] and beside[column] != -2:
            raise infinite_loss(whose, where)
        if beside[column] == -1:
            raise missing_loss(whose, where)
        other = "another model or cell" if beside[column] == -2 else name(int(beside[column]))
        raise unequal_points(whose, where, other)
    for part in (found.cells, found.gaps):
        if part is None:
            continue
        large = np.isfinite(part.mean).all(axis=0) & ~np.isfinite(part.m2).all(axis=0)
        if (large if part is found.gaps else large & (missing == 0)).any():
            at = int(np.flatnonzero(large)[0])
            raise too_large(name(at) if part is found.cells else "two models")


# --- from a lazy log to a lazy result -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LazyCells:
    """The cells of a lazy array: what is known of them now, and what is computed later.

    Parameters
    ----------
    lazy : LazyArray
        The losses.
    levels : tuple of str
        The levels whose labels distinguish cells.
    reduction : ChunkReduction
        How chunks are summed up.
    """

    lazy: LazyArray
    levels: tuple[str, ...]
    reduction: ChunkReduction

    @classmethod
    def of(
        cls, lazy: LazyArray, levels: tuple[str, ...],
        pairs: Pairs = ((), ()),
    ) -> LazyCells:  # fmt: skip
        """Choose what is summed up."""
        layout, carried = lazy.layout, lazy.array.dims[len(lazy.dims) :]
        sizes = tuple(len(layout.levels[name].labels) for name in levels)
        axis = carried.index("model") if "model" in carried else None
        reduction = ChunkReduction(
            sizes, layout.shape, lazy.nan_tells, axis if pairs[0] else None, pairs
        )
        return cls(lazy, levels, reduction)

    @property
    def tested(self) -> int:
        """How many dimensions hold evaluations; they come first."""
        return len(self.lazy.dims)

    def kept(self) -> tuple[Any, Any]:
        """Mark where every model has a loss, and where any has one, lazily."""
        da = import_dask().array
        x, tested = self.lazy.array.data, self.tested
        carried = tuple(range(tested, x.ndim))
        if x.dtype.kind != "f":
            every = da.ones(x.shape[:tested], chunks=x.chunks[:tested], dtype=bool)
            return every, every
        there = x.map_blocks(mark_losses, tested=tested, dtype=np.uint8)
        some = (there > 1).any(axis=carried)
        kept = (there > 0).all(axis=carried) & some
        every = some if self.lazy.nan_tells else da.ones_like(kept)
        layout = self.lazy.layout
        if not {"repetition", "point"} <= set(layout.levels):
            return kept, every
        delayed = import_dask().delayed
        known = delayed(layout, pure=True, traverse=False)
        whole = delayed(keep_points, pure=True)(known, kept, every)
        return da.from_delayed(whole, layout.shape, bool).rechunk(kept.chunks), every

    def gaps_differ(self) -> Any:
        """Say lazily whether carried cells miss different evaluations, and they are left out."""
        x, tested = self.lazy.array.data, self.tested
        if not self.lazy.drop or x.dtype.kind != "f" or number_cells(self.lazy) == 1:
            return False
        there = x.map_blocks(mark_losses, tested=tested, dtype=np.uint8)
        kept, some = there > 0, there > 1
        if "model" in self.lazy.array.dims:
            axis = self.lazy.array.dims.index("model")
            kept, some = kept.all(axis=axis), some.any(axis=axis)
        carried = tuple(range(tested, kept.ndim))
        return ((kept & some).any(axis=carried) & ~kept.all(axis=carried)).any()

    def sums(self) -> Any:
        """Aggregate chunks and add them up: for each chunk of carried cells its moments."""
        da = import_dask().array
        x, layout, tested = self.lazy.array.data, self.lazy.layout, self.tested
        if self.reduction.model_axis is not None:
            x = x.rechunk({tested + self.reduction.model_axis: -1})
        chunks = x.chunks[:tested]
        kept = (
            self.kept()[0] if self.lazy.drop else da.ones(layout.shape, chunks=chunks, dtype=bool)
        )
        args: list[Any] = []
        for at, size in enumerate(layout.shape):
            args += [da.arange(size, chunks=(chunks[at],)), (at,)]
        args += [kept, tuple(range(tested))]
        axes: list[Any] = []
        for name in self.levels:
            codes = layout.levels[name].codes
            if isinstance(codes, GridCodes) and codes.base is None:
                axes.append(codes.axes[0])
                continue
            own, base = (codes.axes, codes.base) if isinstance(codes, GridCodes) else ((0,), codes)
            axes.append(tuple(own))
            cut = tuple(chunks[i] for i in own)
            labels = da.from_array(base, chunks=cut, name=f"codes-{token_of(base, cut)}")
            args += [labels, tuple(own)]
        places = da.blockwise(
            partial(number_places, reduction=self.reduction, axes=axes), tuple(range(tested)),
            *args, dtype=self.reduction.places, meta=np.empty((0,) * tested, self.reduction.places),
        )  # fmt: skip
        wide = x.ndim - tested
        return da.reduction(
            x, partial(sum_chunk, reduction=self.reduction), add_chunks, combine=add_chunks,
            axis=tuple(range(tested)), keepdims=False, dtype=np.float64, split_every=FAN,
            concatenate=False, weights=places.reshape(places.shape + (1,) * wide),
            meta=np.empty((0,) * wide),
        )  # fmt: skip

    def known(self, design: Design, asked: Sequence[str], sums: Any) -> Any:
        """Say what the cells are: now, or once the losses decide what was evaluated."""
        if not self.lazy.known_later:
            return known_cells(design, self.levels, asked)
        delayed = import_dask().delayed
        later = LaterCells(
            self.lazy.layout, self.levels, tuple(asked), design.within, design.scores,
            design.metric,
        )  # fmt: skip
        parts = [] if self.lazy.drop else sums.to_delayed(optimize_graph=False).ravel().tolist()
        marks = self.kept() if self.lazy.drop else (None, None)
        return delayed(find_cells, pure=True)(
            delayed(later, pure=True, traverse=False), parts, *marks
        )


def keep_points(layout: Layout, kept: MaskArray, every: MaskArray) -> MaskArray:
    """Leave points out of all repetitions if one of them lost them; see `keep_design`."""
    rows = np.flatnonzero(every)
    whole = np.zeros(layout.shape, dtype=bool)
    whole.reshape(-1)[rows] = keep_design(layout.design_at(rows), kept.reshape(-1)[rows])
    return whole


def mark_losses(values: NDArray[Any], tested: int) -> NDArray[np.uint8]:
    """Mark each loss that is there by 2, a missing one by 0, and masked columns by 1."""
    gone = np.isnan(values)
    masked = gone.all(axis=tuple(range(tested)), keepdims=True)
    return np.where(masked, np.uint8(1), np.where(gone, np.uint8(0), np.uint8(2)))


# --- results --------------------------------------------------------------------------------------


def run_on_sketch(
    log: Log, answer: LazyAnswer, levels: tuple[str, ...]
) -> tuple[Result, list[str]]:
    """Run a method on cells without losses; also list the levels whose points it counts."""
    known = known_cells(log.design, levels, ())
    asked: dict[str, None] = {}

    def count_points(level: str) -> tuple[IntArray, str | None]:
        asked[level] = None
        return log.design.count_points(level)

    def spread(width: int) -> Moments:
        count = np.repeat(known.whole.count[:, None], width, axis=1)
        half = np.floor(count / 2) / count  # losses of 0 and 1, which every method takes
        squares = count * half * (1 - half)
        return replace(known.whole, mean=half, m2=squares, origin=np.zeros(width))

    pairs = len(answer.reduction.pairs[0])
    carried = (len(answer.labels.models),) if pairs else ()
    width, axis = math.prod(carried), 0 if pairs else None
    nothing = np.zeros(width, dtype=np.int64)
    found = ChunkMoments(
        spread(width), spread(pairs), carried, nothing, nothing, nothing, nothing > 0, []
    )
    labels = ArrayLabels(answer.labels.models, ("model",)[:pairs], {}, carried, axis, None)
    small = replace(answer, reduction=replace(answer.reduction, model_axis=axis))
    try:
        with np.errstate(all="ignore"):
            return small.answer(small.log_of(found, known, labels, count_points), carried), [*asked]
    except LogError as error:
        if log.lazy is None or not log.lazy.nan_tells:
            raise
        raise LogError(
            f"{error} (This array is lazy, and NaN shows what was evaluated in it. Until that is "
            f"known, each point is taken to be tested once in each repetition. If it is not so, "
            f"load the array first: log.compute().)"
        ) from None


def run_on_blank(log: Log, answer: LazyAnswer) -> Result:
    """Run a method that reads losses on masked cells, for the names of its numbers."""
    pairs = bool(answer.asked[0])
    models = answer.labels.models if pairs else [None]
    labels = ArrayLabels(models, ("model",), {}, (len(models),), 0, None)
    blank = LossColumns((np.full((log.design.size, len(models)), np.nan),))
    table = Log(log.design, blank, labels, noted=log.noted, used=log.used)
    small = replace(answer, reduction=replace(answer.reduction, model_axis=0 if pairs else None))
    return small.ask(table, (len(models),))


@dataclass(frozen=True, eq=False)
class LazyNumbers:
    """The numbers of a lazy result: one array each, and what is the same for all."""

    arrays: dict[str, Any]
    attrs: dict[str, Any]
    dropped: Any


def compute_later(
    log: Log,
    run: Callable[..., Result],
    *,
    by: str | None = None,
    leading: tuple[int, ...] = (),
    pairs: Pairs = ((), ()),
    asked: Pairs = ((), ()),
    example: Callable[..., Result] | None = None,
    reads_losses: bool = False,
) -> LazyNumbers:
    """Make lazy arrays of the numbers of a method, chunked as the carried dimensions are.

    A method that reads losses gets all of a carried cell at once.
    """
    da, lazy = import_dask().array, lazy_array(log)
    named = [name for name in (by, *log.used) if name is not None]
    levels = tuple(dict.fromkeys((*cell_levels(log.design), *named)))
    levels = tuple(name for name in levels if name in log.design.levels and name != "point")
    cells = LazyCells.of(lazy, levels, pairs)
    answer = LazyAnswer(
        run, cells.reduction, lazy.layout, labels_along(log, lazy), log.noted, log.used,
        log.doubts(), by, leading, asked, lazy.drop,
    )  # fmt: skip
    quick = replace(answer, run=example or run)
    if reads_losses:
        return compute_cells_later(log, cells, answer, run_on_blank(log, quick))
    form, points = run_on_sketch(log, quick, levels)
    if lazy.drop and number_cells(lazy) > 1:
        return compute_cells_later(log, cells, answer, form)
    columns, counts = (form.columns, {}) if lazy.known_later else separate_counts(form)
    kinds = {name: np.asarray(values).dtype for name, values in columns.items()}
    answer = replace(answer, dtype=np.dtype([*kinds.items(), ("caution", np.int64)]))
    sums = cells.sums()
    known = cells.known(log.design, points, sums)
    carried = tuple(range(sums.ndim))
    ahead = tuple(range(sums.ndim, sums.ndim + len(leading)))
    along: list[Any] = []
    for at, sizes in enumerate(sums.chunks):
        along += [da.arange(sum(sizes), chunks=(sizes,)), (at,)]
    axis, ndim = cells.reduction.model_axis, len(leading) + sums.ndim
    task = answer if lazy.known_later else partial(answer_known, answer, known)
    out = da.blockwise(
        task, (*ahead, *carried), sums, carried, *((known, None) if lazy.known_later else ()),
        *along, new_axes=dict(zip(ahead, leading, strict=True)), dtype=answer.dtype,
        adjust_chunks=None if axis is None else {axis: len(asked[0])},
        meta=np.empty((0,) * ndim, answer.dtype), concatenate=True, align_arrays=False,
    )  # fmt: skip
    dropped = None
    if lazy.drop:
        number = import_dask().delayed(count_dropped, pure=True)(known)
        dropped = da.from_delayed(number, (), dtype=np.int64)
    names = [*kinds, "caution"]
    attrs = facts_of(form, log.noted) | counts | dict(log.attrs)
    return LazyNumbers({name: out[name] for name in names}, attrs, dropped)


def number_cells(lazy: LazyArray) -> int:
    """Count the carried cells, of which each holds all models."""
    carried = lazy.array.dims[len(lazy.dims) :]
    return math.prod(lazy.array.sizes[dim] for dim in carried if dim != "model")


def compute_cells_later(
    log: Log, cells: LazyCells, answer: LazyAnswer, form: Result
) -> LazyNumbers:
    """Make lazy arrays of numbers for which all losses of a carried cell are needed at once.

    All evaluations of a carried cell come together in one task; where these would be large, the
    chunks hold fewer cells.
    """
    da, lazy = import_dask().array, lazy_array(log)
    x, tested = lazy.array.data, cells.tested
    axis = cells.reduction.model_axis
    carried = tuple(range(tested, x.ndim))
    whole = dict.fromkeys(range(tested), -1) | ({} if axis is None else {tested + axis: -1})
    if "model" in lazy.array.dims:
        whole[lazy.array.dims.index("model")] = -1
    x = x.rechunk({**dict.fromkeys(carried, "auto"), **whole})
    evaluated = cells.kept()[1].rechunk(-1)
    columns, counts = (form.columns, {}) if lazy.known_later else separate_counts(form)
    kinds = {name: np.asarray(values).dtype for name, values in columns.items()}
    if lazy.drop:
        kinds["n_dropped"] = np.dtype(np.int64)
    answer = replace(answer, dtype=np.dtype([*kinds.items(), ("caution", np.int64)]))
    task = GridAnswer(answer, lazy.nan_tells, log.design.within, log.design.scores)
    leading = answer.leading
    ahead = tuple(range(x.ndim, x.ndim + len(leading)))
    along: list[Any] = []
    for at in carried:
        along += [da.arange(x.shape[at], chunks=(x.chunks[at],)), (at,)]
    out = da.blockwise(
        task, (*ahead, *carried), x, tuple(range(x.ndim)), evaluated, tuple(range(tested)), *along,
        new_axes=dict(zip(ahead, leading, strict=True)), dtype=answer.dtype,
        adjust_chunks=None if axis is None else {tested + axis: len(answer.asked[0])},
        meta=np.empty((0,) * (len(leading) + len(carried)), answer.dtype), concatenate=True,
        align_arrays=False,
    )  # fmt: skip
    attrs = facts_of(form, log.noted) | counts | dict(log.attrs)
    return LazyNumbers({name: out[name] for name in (*kinds, "caution")}, attrs, None)


def labels_of_log(log: Log) -> ArrayLabels:
    """Take the labels of an array."""
    if not isinstance(log.labels, ArrayLabels):
        raise TypeError("the losses are not in an array")
    return log.labels


def lazy_array(log: Log) -> LazyArray:
    """Take the losses that are still to be computed."""
    if log.lazy is None:
        raise TypeError("the losses are in memory")
    return log.lazy


def labels_along(log: Log, lazy: LazyArray) -> ArrayLabels:
    """Take names and labels of the carried dimensions, to name columns by."""
    array = lazy.array
    dims = array.dims[len(lazy.dims) :]
    sizes = tuple(array.sizes[dim] for dim in dims)
    axis = dims.index("model") if "model" in dims else None
    indexes = {dim: array.indexes[dim] for dim in dims if dim in array.indexes}
    return ArrayLabels(list(log.labels.models), dims, indexes, sizes, axis, None)


def answer_known(
    answer: LazyAnswer, known: KnownCells, found: ChunkMoments, *along: IntArray
) -> NDArray[Any]:
    """Compute the numbers of a chunk whose cells are known beforehand."""
    return answer(found, known, *along)


def count_dropped(known: KnownCells) -> NDArray[np.int64]:
    """Count the evaluations that were left out."""
    return np.array(known.dropped, dtype=np.int64)


def lazily(
    log: Log, run: Run, *, by: str | None = None, axis: Axis | None = None,
    reads_losses: bool = False,
) -> xr.Dataset:  # fmt: skip
    """Run a method later; what it needs of the levels is checked now."""
    axes: list[Axis] = [(by, Groups(log, by).labels)] if by is not None else []
    axes += [axis] if axis is not None else []
    leading = tuple(len(names) for _, names in axes)
    numbers = compute_later(log, run, by=by, leading=leading, reads_losses=reads_losses)
    return label_along(log, axes, numbers, numbers.attrs)


def label_along(
    log: Log, axes: Sequence[Axis], numbers: LazyNumbers, attrs: dict[str, Any]
) -> xr.Dataset:
    """Put labels on lazy numbers, some axes before the carried dimensions."""
    labels = log.labels
    coords: dict[Hashable, Any] = {**getattr(labels, "coords", {})}
    for name, names in axes:
        things = np.empty(len(names), dtype=object)
        things[:] = list(names)
        coords[name] = (name, xr.Variable((name,), things).to_index())
    dims = (*(name for name, _ in axes), *getattr(labels, "dims", ()))
    return make_dataset(dims, coords, getattr(labels, "units", None), numbers, attrs)


def make_dataset(
    dims: tuple[Hashable, ...],
    coords: Mapping[Hashable, Any],
    units: str | None,
    numbers: LazyNumbers,
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Make a variable of each lazy number, with its units; the last one counts what was dropped."""
    variables: dict[str, Any] = {}
    for name, values in numbers.arrays.items():
        facts = {"units": units} if units and name in IN_LOSS_UNITS else {}
        variables[name] = (dims, values, flag_attrs(tuple(Caution)) if name == "caution" else facts)
    refuse_same_names(variables, (*dims, *coords))
    table = xr.Dataset(variables, coords=coords, attrs=file_attrs(attrs))
    return table if numbers.dropped is None else table.assign(n_dropped=((), numbers.dropped))


def compare_lazily(
    losses: Any,
    other: Any,
    choose: Callable[[Log], tuple[Sequence[tuple[Hashable, Hashable]], IntArray, IntArray]],
    run: PairRun,
    *,
    missing: str = "raise",
    levels: Sequence[str] = (),
    every: bool = False,
    example: PairRun | None = None,
    reads_losses: bool = False,
) -> xr.Dataset:
    """Compare models later; what it needs of the levels is checked now.

    Parameters
    ----------
    losses, other : DataArray or Dataset
        The models of one log, or each of them and its partner in another log (or None).
    choose : callable
        Chooses the pairs in one log: their names, and the numbers of the left and right models.
    run : callable
        Makes a result with a number for each pair and carried cell from a log and these pairs.
    missing : {"raise", "drop"}
        What to do where a loss is NaN.
    levels : sequence of str
        The levels that the comparison was asked for by name.
    every : bool
        Whether all pairs are needed besides those that are chosen.
    example : callable, optional
        A quicker way to a result of the same form.
    reads_losses : bool
        Whether all losses of a carried cell are needed at once.
    """
    if other is None:
        log = read(losses, missing=missing, levels=levels)
        names, left, right = choose(log)
    else:
        names, beside = beside_other(losses, other)
        log = read(beside, missing=missing, levels=levels)
        left, right = np.arange(len(names)), np.arange(len(names)) + len(names)
    asked = tuple(map(int, left)), tuple(map(int, right))
    more: Pairs = ((), ())
    if every:
        one, two = np.triu_indices(len(log.labels.models), 1)
        more = tuple(map(int, one)), tuple(map(int, two))
    numbers = compute_later(
        log, run, pairs=more if every else asked, asked=asked, example=example,
        reads_losses=reads_losses,
    )  # fmt: skip
    labels = labels_of_log(log)
    coords = {
        name: coord
        for name, coord in labels.coords.items()
        if "model" not in getattr(coord, "dims", ("model",))
    }
    coords |= {side: ("pair", [str(pair[at]) for pair in names]) for at, side in enumerate(SIDES)}
    dims = tuple("pair" if dim == "model" else dim for dim in labels.dims)
    attrs = numbers.attrs
    table = make_dataset(dims, coords, labels.units, numbers, attrs)
    single = other is not None and isinstance(losses, xr.DataArray) and "model" not in losses.dims
    return table.squeeze("pair") if single else table.transpose("pair", ...)


def adjust_lazily(
    table: xr.Dataset, adjust_p_values: Callable[..., FloatArray], adjust: str
) -> xr.Dataset:
    """Add adjusted p-values, for which those of all pairs and cells come together."""
    p = table["p_value"]
    if p.size < 2:
        return table
    dask = import_dask()
    # The keys stay what they are, so that no chunk of losses is read twice.
    (whole,) = p.data.rechunk(-1).to_delayed(optimize_graph=False).ravel()
    adjusted = dask.delayed(adjust_p_values, pure=True)(whole, adjust)
    together = dask.array.from_delayed(adjusted, p.shape, dtype=np.float64)
    columns = {}
    for name, variable in table.data_vars.items():
        columns[name] = variable
        if name == "p_value":
            columns["p_adjusted"] = p.copy(data=together.rechunk(p.chunks))
    return xr.Dataset(columns, table.coords, {**table.attrs, "adjust": adjust})


SIDES = ("model", "other")


def beside_other(one: Any, two: Any) -> tuple[list[tuple[Hashable, Hashable]], xr.DataArray]:
    """Put the models of two logs beside each other, those of the second in the first's order."""
    facts = same_facts(one, two)
    two = aligned(one, two)
    mine, yours = list(read(one).labels.models), list(read(two).labels.models)
    names = [
        ("model" if a is None else a, "other" if b is None else b)
        for a, b in zip(mine, yours, strict=True)
    ]
    arrays = [as_array(log) for log in (one, two)]
    first = arrays[0]
    dims = ("model", *(dim for dim in first.dims if dim != "model"))
    bare: list[xr.DataArray] = []
    for array in arrays:
        wide = array.drop_vars("model", errors="ignore")
        wide = wide if "model" in wide.dims else wide.expand_dims("model")
        wide = wide.transpose(*dims)
        own = wide.chunks is None
        bare.append(wide.chunk(token=token_of(wide.variable)) if own else wide)
    whole = xr.concat(bare, "model", coords="minimal", compat="override", join="override")
    sides = ((mine, "first"), (yours, "second"))
    whose = [f"{name or 'log'} of the {side} log" for each, side in sides for name in each]
    models = pd.Index(whose, name="model")
    return names, whole.assign_coords(model=models).assign_attrs(facts)


def as_array(losses: Any) -> xr.DataArray:
    """Make one array of the models of a dataset."""
    if not isinstance(losses, xr.Dataset):
        array: xr.DataArray = losses
        return array
    units = {array.attrs.get("units") for array in losses.data_vars.values()}
    whole = losses.to_dataarray("model")
    one = units.pop() if len(units) == 1 else None
    whole.attrs = {"units": one} if one else {}
    return whole


def lazy_table(log: Log, by: tuple[str, ...]) -> xr.Dataset:
    """Lay count, mean and variance of cells out; the count is known now, if levels give it."""
    lazy, da = lazy_array(log), import_dask().array
    labels = [(name, list(log.design.levels[name].labels)) for name in by]
    shape = tuple(len(names) for _, names in labels)
    log = replace(log, used=(*log.used, *by))
    numbers = compute_later(log, SpreadCells(by, shape), leading=shape)
    numbers.arrays.pop("caution")
    table = label_along(log, labels, numbers, {"method": "moments", **log.attrs})
    if "n_dropped" in numbers.arrays:  # each carried cell has counts of its own
        return table[["count", "mean", "var", "n_dropped"]]
    table = table.drop_vars("count")
    cells = LazyCells.of(lazy, tuple(dict.fromkeys((*cell_levels(log.design), *by))))
    known = cells.known(log.design, (), cells.sums())
    if lazy.known_later:
        later = import_dask().delayed(count_cells, pure=True)(known, by, shape)
        count = da.from_delayed(later, shape, dtype=np.int64)
    else:
        count = count_cells(known, by, shape)
    names = ["mean", "var"] if numbers.dropped is None else ["mean", "var", "n_dropped"]
    return table.assign(count=(by, count))[["count", *names]]


def count_cells(known: KnownCells, by: tuple[str, ...], shape: tuple[int, ...]) -> IntArray:
    """Spread the counts of cells over a table of all labels."""
    found = known.whole.over(by)
    count = np.zeros(shape, dtype=np.int64)
    count[tuple(found.codes.T)] = found.count
    return count


@dataclass(frozen=True)
class SpreadCells(Named):
    """Spread means and variances over a table of all labels; what does not occur is NaN."""

    by: tuple[str, ...]
    shape: tuple[int, ...]

    def __call__(self, log: Log) -> Result:
        """Make the table of some columns."""
        found = log.moments(self.by)
        location = found.location
        mean = np.full((*self.shape, location.shape[1]), np.nan)
        variance, count = mean.copy(), np.zeros(mean.shape, dtype=np.int64)
        at = tuple(found.codes.T)
        mean[at] = location
        count[at] = np.where(np.isnan(location), 0, found.count[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            n = found.count[:, None]
            variance[at] = np.where(n > 1, found.m2 / (n - 1), np.nan)
        nothing = np.zeros(mean.size, dtype=np.int64)
        return Result("moments", {"count": count, "mean": mean, "var": variance}, nothing)


def moments_of_array(
    kind: type[M], losses: Any, by: str | Sequence[str] | None, pairs: bool, missing: str
) -> M:
    """Compute the moments of a lazy array chunk by chunk, and of the differences of models."""
    log, within = read_batch(losses, by, missing)
    levels, lazy = levels_of(log, by), lazy_array(log)
    chosen: Pairs = ((), ())
    if pairs:
        every_pair(log, len(log.design.cell_table(levels).used))
        one, two = np.triu_indices(len(log.labels.models), 1)
        chosen = tuple(map(int, one)), tuple(map(int, two))
    cells = LazyCells.of(lazy, levels, chosen)
    sums = cells.sums()
    if import_dask().compute(cells.gaps_differ())[0]:
        raise LogError(DIFFERENT_GAPS)
    blocks, known = import_dask().compute(
        sums.to_delayed().ravel().tolist(), cells.known(log.design, (), sums)
    )
    labels = labels_along(log, lazy)
    axis = cells.reduction.model_axis
    whole = known.whole
    table = np.full((len(whole.count), 3, *labels.sizes), np.nan)
    rest = [size for at, size in enumerate(labels.sizes) if at != axis]
    gaps = np.full((len(whole.count), 3, len(chosen[0]), *rest), np.nan)
    ends = [np.cumsum([0, *sizes]) for sizes in sums.chunks]
    for at, found in zip(np.ndindex(sums.numblocks), blocks, strict=True):
        here = tuple(slice(ends[i][k], ends[i][k + 1]) for i, k in enumerate(at))

        def name(column: int, here: tuple[slice, ...] = here) -> str:
            shape = tuple(part.stop - part.start for part in here)
            place = np.unravel_index(column, shape)
            row = tuple(int(i) + part.start for i, part in zip(place, here, strict=True))
            return labels.name(int(np.ravel_multi_index(row, labels.sizes)) if row else 0)

        refuse_missing(found, known, lazy.layout, name, lazy.drop)
        if found.cells is not None:
            put_block(table, here, found.cells)
        if found.gaps is not None:
            others = tuple(part for i, part in enumerate(here) if i != axis)
            put_block(gaps, (slice(None), *others), found.gaps)
    design = log.design if known.rows is None else lazy.layout.design_at(known.rows)
    pair_cells = columns_of_table(whole, gaps) if pairs else None
    dropped = known.dropped if lazy.drop else None
    complete = None if known.every is None else lazy.layout.design_at(known.every)
    return assembled(
        kind, log, design, columns_of_table(whole, table), pair_cells, dropped, within, complete
    )


def put_block(table: FloatArray, here: tuple[slice, ...], part: Moments) -> None:
    """Put means, squared deviations and origins of some columns where they belong."""
    origin = np.broadcast_to(part.origin, part.mean.shape)
    for i, values in enumerate((part.mean, part.m2, origin)):
        place: tuple[Any, ...] = (slice(None), i, *here)
        table[place] = values.reshape(table[place].shape)


def columns_of_table(whole: Moments, table: FloatArray) -> Moments:
    """Make moments of means, squared deviations and origins."""
    mean, m2, origin = (
        np.ascontiguousarray(table[:, i]).reshape(len(table), -1) for i in range(3)
    )  # fmt: skip
    return replace(whole, mean=mean, m2=m2, origin=np.nan_to_num(origin[0]))


# --- DataFrames of dask ---------------------------------------------------------------------------

NUMBERS = (
    "Expected columns named as the levels (repetition, fold, source, point) and a column of "
    "numbers for each model. Name others by cvstats.as_log(frame, loss='squared_error', "
    "fold='cv_split')."
)


def tabular(losses: Any) -> tuple[Any, bool]:
    """Make a frame whose levels are all columns; also report whether it was a Series."""
    single = losses.ndim == 1
    frame = losses.to_frame(name=losses.name or "loss") if single else losses
    index = frame.index.name
    if index in LEVELS and index not in frame.columns:
        frame = frame.reset_index()
    return frame, single


def models_of(frame: Any, levels: Sequence[str]) -> list[str]:
    """Name the columns of losses: those of numbers that are not levels."""
    return [
        str(name)
        for name, dtype in frame.dtypes.items()
        if name not in levels and name not in LEVELS and pd.api.types.is_numeric_dtype(dtype)
    ]


def scan_dask(
    kind: type[M],
    frame: Any,
    loss: str | Sequence[str],
    asked: Mapping[str, str | None],
    *,
    model: str | None,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: str,
) -> Any:
    """Make delayed moments of a dask frame: of each partition, and a tree of sums."""
    delayed = import_dask().delayed
    if not hasattr(frame, "to_delayed") or not hasattr(frame, "columns"):
        raise LogError(
            f"a {type(frame).__name__} is not a dask DataFrame. Expected one, as of "
            f"dask.dataframe.read_parquet; cvstats.Moments.of_log takes pandas and xarray."
        )
    columns = columns_of([*map(str, frame.columns)], loss, asked, by, model)
    check_stacked(columns, pairs, missing)
    work, add = delayed(part_of, pure=True), delayed(added, pure=True)
    parts = [
        work(kind, part, columns, by, pairs, missing, {})
        for part in frame[columns.names].to_delayed()
    ]
    while len(parts) > 1:
        parts = [add(parts[at : at + FAN]) for at in range(0, len(parts), FAN)]
    return delayed(whole_of, pure=True)(parts[0])


def later(
    losses: Any,
    ask: Callable[[CellMoments], Any],
    *,
    other: object = None,
    levels: Sequence[str | None] = (),
    pairs: bool = False,
    missing: str = "raise",
) -> Any:
    """Ask the moments of a frame of dask, once they are there.

    ``levels`` are columns that the question needs besides the levels of a log. Questions that
    need the same cells share the tasks that look at losses.
    """
    if other is not None:
        raise LogError(
            "two frames of dask cannot be paired: their partitions need not hold the same rows. "
            "Expected one frame with a column for each model. Join them before, as in "
            "a.merge(b, on=['repetition', 'fold', 'point'])."
        )
    frame, single = tabular(losses)
    if not set(LEVELS) & set(frame.columns) and not any(levels):
        raise LogError(
            f"no level of a loss log was found among the columns "
            f"{listed(map(repr, frame.columns))}. Expected some of {', '.join(LEVELS)}. Name the "
            f"columns first: frame = cvstats.as_log(frame, loss='squared_error', fold='cv_split'), "
            f"or cvstats.scan_dask(frame, loss='squared_error', fold='cv_split')."
        )
    own = [name for name in LEVELS if name in frame.columns and name not in ("point", "count")]
    more = [name for name in levels if name is not None and name not in own]
    for name in more:
        if name not in frame.columns:
            raise LogError(
                f"the frame has no column {name!r}. Expected some of its columns: "
                f"{listed(map(repr, frame.columns))}."
            )
    if "count" in frame.columns:
        raise LogError(
            "this is a bootstrap log (column 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources. Load it first: frame.compute()."
        )
    found = models_of(frame, more)
    stacked = "model" in frame.columns and "model" not in found
    if not found or (stacked and len(found) > 1):
        which = listed(map(repr, found)) or "none"
        raise LogError(
            f"of the columns {listed(map(repr, frame.columns))} these hold numbers: {which}. "
            + ("With a column 'model', expected one of losses. " if stacked else "") + NUMBERS
        )  # fmt: skip
    kept = scan_dask(
        CellMoments, frame, found[0] if single or stacked else found, dict.fromkeys(LEVELS),
        model="model" if stacked else None, by=(*own, *more) if more else None, pairs=pairs,
        missing=missing,
    )  # fmt: skip
    return import_dask().delayed(ask, pure=True)(kept)


def relabelled(
    frame: Any,
    loss: str | Sequence[str],
    model: str | None,
    asked: Mapping[str, str | None],
) -> Any:
    """Name the columns of a frame as the levels are, and leave out what is not part of the log."""
    frame, _ = tabular(frame)
    columns = columns_of([*map(str, frame.columns)], loss, asked, None, model)
    names = {column: level for level, column in columns.levels.items()}
    if columns.model is not None:
        names[columns.model] = "model"
    return frame[columns.names].rename(columns=names)


def mapped(
    predictions: Any,
    ask: Callable[[pd.DataFrame], Any],
    needed: Sequence[Hashable],
    models: Sequence[str],
) -> Any:
    """Turn the predictions in each partition into a column of losses for each model."""
    frame, _ = tabular(predictions)
    kept = [name for name in frame.columns if name in LEVELS and name not in needed]
    types = frame.dtypes[kept].to_dict() | dict.fromkeys(models, np.dtype(np.float64))
    meta = pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})
    return frame.map_partitions(with_levels, ask, kept, models, meta=meta)


def with_levels(
    part: pd.DataFrame, ask: Callable[[pd.DataFrame], Any], kept: list[str], models: list[str]
) -> pd.DataFrame:
    """Put the losses of some rows beside the levels of these rows."""
    found = ask(part)
    table = found.to_frame() if isinstance(found, pd.Series) else found
    levels = part[kept].copy()  # row by row: labels of an index may stand there twice
    for name, column in zip(models, table.columns, strict=True):
        levels[name] = table[column].to_numpy(dtype=np.float64)
    return levels


def describe(losses: Any) -> str:
    """Say in one line what was understood of a frame, of which nothing was looked at."""
    frame, _ = tabular(losses)
    levels = [name for name in LEVELS if name in frame.columns]
    models = models_of(frame, levels)
    return (
        f"a frame of dask in {frame.npartitions:,} partitions, by "
        f"{', '.join(map(repr, levels)) or 'no level'}; {len(models):,} "
        f"model{'' if len(models) == 1 else 's'}"
    )
