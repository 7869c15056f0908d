"""dask arrays: the same methods on losses that are not yet computed.

Each chunk of losses is reduced to cells, the cells of all chunks are pooled, and the method runs on
the cells of each chunk of the carried dimensions. A method that needs individual losses gets all
losses of a carried cell. The method runs once beforehand, on cells of the right shape without
losses, to find the names of its columns and to check the levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from operator import attrgetter, getitem
from typing import Any, cast
from uuid import uuid4

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells, join_columns
from cvstats.core.design import Codes, Design, GridCodes, Level
from cvstats.core.folds import has_crossed_sources, is_resampled, tally
from cvstats.core.kernels import FEW
from cvstats.core.loss_columns import SIDE_BY_SIDE, Columns, Differences, LossColumns
from cvstats.core.reduce import compute_moments, reduce_lines
from cvstats.core.results import WORKS, Result, separate_counts
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, install_command, listed, spelled
from cvstats.log.gaps import NOTHING_LEFT, answer_cells, find_gaps, keep_design
from cvstats.log.groups import Groups, answer_groups, take_rows
from cvstats.log.log import (
    DIFFERENT_GAPS,
    Axis,
    CellSource,
    LazyArray,
    Log,
    Sample,
    add_cautions,
    cell_levels,
    design_of_cells,
    facts_of,
    hide_losses,
    infinite_loss,
    missing_loss,
    too_large,
    too_many_digits,
    unequal_points,
)
from cvstats.log.loss_checks import LIMIT, choose_step, find_dates, sample_rows
from cvstats.log.metadata import levels_of_cells
from cvstats.log.xarray import ArrayLabels, refuse_unlabelled

Run = Callable[[Log], Result]
ReadsLosses = Callable[[Log], bool]
Pairs = tuple[tuple[int, ...], tuple[int, ...]]
"""The numbers of the two models of each pair."""

NO_PAIRS: Pairs = ((), ())

SPLIT_EVERY = 8
"""Number of parts pooled in one task."""

WORDS = (
    "This method needs individual losses, but a lazy array provides only counts, means and squared "
    "deviations of cells. Load the log first: log.compute()."
)


def import_dask() -> Any:
    """Import dask, or name the extra that installs it."""
    try:
        import dask.array
        import dask.delayed
    except ImportError as error:
        raise ImportError(f"this needs dask. Install it: {install_command('dask')}") from error
    return dask


def has_lazy_losses(*logs: object) -> bool:
    """Whether the losses of any of these objects are lazy."""
    for log in logs:
        if isinstance(log, xr.Dataset) and has_lazy_losses(*log.data_vars.values()):
            return True
        if isinstance(log, xr.DataArray) and log.chunks is not None:
            return True
        if isinstance(log, Log) and log.lazy is not None:
            return True
    return False


# --- from chunks to cells -------------------------------------------------------------------------

FAULT = np.dtype([
    ("missing", np.int64), ("first", np.int64), ("beside", np.int64), ("infinite", np.bool_),
    ("rounded", np.bool_),
])  # fmt: skip
"""The number of missing or infinite losses of a column; the row of the first, a column that has a
loss there (-1: none), and whether it is infinite; whether losses are integers beyond float64."""

NO_FAULT = np.array((0, np.iinfo(np.int64).max, -1, False, False), dtype=FAULT)


@dataclass(frozen=True, eq=False)
class ChunkCells:
    """The cells of a chunk, or of several chunks of the same columns.

    Parameters
    ----------
    cells : Cells
        The moments of all columns by the number of the cell, then those of the differences of pairs
        of models; empty cells are omitted.
    faults : array of FAULT, shape (columns,)
        The losses that are missing or infinite.
    rows : array of int
        The positions of the evaluations that are examined, in ascending order.
    losses : array, shape (rows, columns of some carried cells)
        Their losses.
    """

    cells: Cells
    faults: NDArray[Any]
    rows: IntArray
    losses: FloatArray


FIELDS = attrgetter("cells", "faults", "rows", "losses")


def sum_chunk(
    values: NDArray[Any], cell: IntArray, *, size: int, shape: tuple[int, ...],
    starts: tuple[tuple[int, ...], ...],
    nan_tells: bool, axis: int | None, pairs: Pairs, examined: Examined,
    block_id: tuple[int, ...] = (),
) -> ChunkCells:  # fmt: skip
    """Compute the cells of one chunk, whose first dimensions are evaluations.

    Parameters
    ----------
    values : array
        The losses.
    cell : array of int
        The number of the cell, along the dimensions of evaluations on which it depends.
    size : int
        Number of cells.
    shape : tuple of int
        The sizes of all dimensions of evaluations.
    starts : tuple of tuple of int
        The starts of the chunks along each of them.
    nan_tells : bool
        Whether NaN in all columns means that nothing was evaluated.
    axis : int, optional
        The axis of the models among the carried dimensions.
    pairs : tuple of tuple of int
        The requested pairs of models.
    examined : Examined
        The evaluations and carried cells whose losses are kept.
    block_id : tuple of int
        The position of this chunk.
    """
    tested, carried = values.shape[: len(shape)], values.shape[len(shape) :]
    width = math.prod(carried)
    table = values.reshape(math.prod(tested), width)
    table = table.view(np.uint8) if table.dtype.kind == "b" else table
    number = np.broadcast_to(cell.reshape(cell.shape[: len(shape)]), tested).reshape(-1)
    if nan_tells:
        number = np.where(np.isnan(table).all(axis=1), number.dtype.type(-1), number)
    chunk = Design({"cell": Level(range(size), number)}, len(number))
    table = np.asarray(table, order="C" if width >= SIDE_BY_SIDE else "F")
    cells, columns = sum_cells(chunk, table), None
    left, right = pairs
    if left or examined.step > 1:
        columns = model_columns(carried, axis)
    if left and columns is not None:
        sides = columns[list(left)].reshape(-1), columns[list(right)].reshape(-1)
        cells = join_columns(cells, sum_cells(chunk, table, sides))
    faults, begin = np.full(width, NO_FAULT), [*map(getitem, starts, block_id)]
    taken, inside = examined.find(begin, tested, shape)
    if not np.isfinite(cells.m2).all():  # not finite if a loss is not
        rows = np.flatnonzero(number >= 0)
        places = np.unravel_index(rows, tested) + np.array(begin)[:, None]
        faults = find_faults(table[rows], np.ravel_multi_index(tuple(places), shape))
    if table.dtype.kind in "iu":
        size = np.abs(cells.location[:, :width]).max(axis=0, initial=0.0)
        faults["rounded"] = size >= 2.0**53
    here = number[inside] >= 0
    taken, inside = taken[here], inside[here]
    losses = table[inside]
    if columns is not None and examined.step > 1:
        losses = losses[:, np.sort(columns[:, :: examined.step].reshape(-1))]
    return ChunkCells(cells, faults, taken, losses.astype(np.float64, copy=False))


def sum_cells(
    chunk: Design, table: NDArray[Any], pairs: tuple[IntArray, IntArray] | None = None
) -> Cells:
    """Compute the moments of the columns of a table, or of differences between some of them.

    Few losses are counted on the way, as they are in chunks of any number.
    """
    if len(table) * (table.shape[1] if pairs is None else len(pairs[0])) > FEW:
        own = LossColumns((table,))
        losses: Columns = own if pairs is None else Differences(own, *pairs)
        return compute_moments(chunk, losses, ("cell",))
    labels, codes = chunk.levels["cell"].labels, chunk.levels["cell"].codes
    number = np.asarray(codes, dtype=np.int32)
    count = np.bincount(number[number >= 0], minlength=len(labels))
    used, lines = np.flatnonzero(count), table.T.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):  # reported later
        lines = lines if pairs is None else lines[pairs[0]] - lines[pairs[1]]
    numbers = reduce_lines(lines, number, count[used])
    return Cells(("cell",), (labels,), used[:, None], *numbers)


@dataclass(frozen=True, eq=False)
class Examined:
    """The losses that are kept to be examined one by one.

    Parameters
    ----------
    rows : array of int
        The positions of the evaluations, in ascending order.
    step : int
        Distance between the carried cells that are kept in a chunk.
    whole : bool
        Whether these are all evaluations.
    """

    rows: IntArray
    step: int
    whole: bool

    @classmethod
    def of(cls, log: Log) -> Examined:
        """Choose the losses as for a log in memory; more rows if some hold no evaluation."""
        design, width = log.design, log.losses.width
        rows = np.arange(design.size)
        if design.size * width <= LIMIT:
            return cls(rows, 1, True)
        share = 1
        if design.valid is not None:
            share = max(1, round(design.size / max(1, design.valid.sum())))
        dated = find_dates(design) is not None and not is_resampled(design)
        rows = sample_rows(whole_design(log), rows, share * (LIMIT // width), dated=dated)
        whole = len(rows) == design.size
        return cls(rows, 1 if whole else choose_step(width), whole)

    def find(
        self, begin: Sequence[int], sizes: Sequence[int], shape: tuple[int, ...]
    ) -> tuple[IntArray, IntArray]:
        """Find the positions of those in a chunk, in the whole array and in the chunk."""
        places = np.array(np.unravel_index(self.rows, shape))
        own = places - np.array(begin)[:, None]
        here = ((own >= 0) & (own < np.array(sizes)[:, None])).all(axis=0)
        return self.rows[here], np.ravel_multi_index(tuple(own[:, here]), tuple(sizes))


def model_columns(carried: tuple[int, ...], axis: int | None) -> IntArray:
    """List the columns of each model, models by carried cells."""
    numbers = np.arange(math.prod(carried), dtype=np.int64).reshape(carried)
    models = 1 if axis is None else carried[axis]
    numbers = numbers if axis is None else np.moveaxis(numbers, axis, 0)
    return numbers.reshape(models, numbers.size // max(1, models))


def find_faults(table: NDArray[Any], rows: IntArray) -> NDArray[Any]:
    """Count the losses of each column that are missing or infinite, and find the first."""
    wrong = ~np.isfinite(table)
    faults = np.full(table.shape[1], NO_FAULT)
    faults["missing"], at = wrong.sum(axis=0), wrong.argmax(axis=0)
    faults["first"] = np.where(faults["missing"] > 0, rows[at], faults["first"])
    faults["infinite"] = np.isinf(table[at, np.arange(table.shape[1])])
    for row in np.unique(at[faults["missing"] > 0]).tolist():
        there = np.flatnonzero(~wrong[row])
        faults["beside"][at == row] = there[0] if len(there) else -1
    return faults


def pool_chunks(parts: Any, axis: object, keepdims: object) -> ChunkCells:
    """Pool the cells of several chunks of the same columns."""
    chunks = np.array(parts, dtype=object).reshape(-1)
    cells, faults, rows, losses = zip(*map(FIELDS, chunks), strict=True)
    every = np.stack(faults)
    first = every[every["first"].argmin(axis=0), np.arange(every.shape[1])]
    first["missing"], first["rounded"] = every["missing"].sum(axis=0), every["rounded"].any(axis=0)
    places = np.concatenate(rows)
    order = np.argsort(places)
    return ChunkCells(pool_cells(cells), first, places[order], np.concatenate(losses)[order])


def pool_cells(parts: Sequence[Cells]) -> Cells:
    """Pool cells with the same numbers, one part after the other."""
    parts = [*filter(attrgetter("count.size"), parts)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    used = np.zeros(len(parts[0].labels[0]), dtype=bool)
    for part in parts:
        used[part.codes[:, 0]] = True
    number, place = np.flatnonzero(used), np.cumsum(used) - 1
    origin = parts[0].origin
    total = np.zeros(len(number))
    mean, m2 = np.zeros((2, len(number), len(origin)))
    for part in parts:
        every = len(part.count) == len(number)
        at = slice(None) if every else place[part.codes[:, 0]]
        before, middle = total[at], mean[at]
        whole = before + part.count
        share = part.count / whole
        with np.errstate(invalid="ignore", over="ignore"):  # reported later
            apart = part.mean + (part.origin - origin) - middle
            m2[at] += part.m2 + (before * share)[:, None] * apart * apart
            mean[at] = middle + share[:, None] * apart
        total[at] = whole
    return replace(parts[0], codes=number[:, None], count=total, mean=mean, m2=m2)


def pass_chunk(chunk: Any, axis: object, keepdims: object) -> Any:
    """Pass the cells of a chunk unchanged to the first pooling task."""
    return chunk


# --- evaluations ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KnownCells:
    """What is known of a log besides its losses.

    Parameters
    ----------
    design : Design
        The evaluations.
    cells : Cells
        The cells that occur, without columns.
    table : Design
        The design of the cells, one row per cell.
    dropped : int
        How many evaluations were dropped.
    complete : KnownCells, optional
        The same before evaluations were dropped, if any were.
    """

    design: Design
    cells: Cells
    table: Design
    dropped: int = 0
    complete: KnownCells | None = None

    @classmethod
    def of(cls, design: Design, levels: tuple[str, ...]) -> KnownCells:
        """Check a design, and find its cells."""
        splits, cells = design.splits(), tally(design, *levels)
        table = design_of_cells(cells, splits, "point" in design.levels, WORDS, design.of_array)
        table.facts["crossed", None] = has_crossed_sources(design)
        return cls(design, cells, replace(table, scores=design.scores, metric=design.metric))


def find_evaluated(
    kept: MaskArray, every: MaskArray, *, design: Design, levels: tuple[str, ...]
) -> KnownCells:
    """Find the cells of the evaluations that the losses show, with all checks."""
    kept, every = kept.reshape(-1), every.reshape(-1)
    if not kept.any():
        raise LogError(
            NOTHING_LEFT if every.any() else "the log is empty. Expected at least one loss."
        )
    refuse_unlabelled(design, kept)
    known = KnownCells.of(take_valid(design, kept), levels)
    dropped = int(every.sum() - kept.sum())
    if not dropped:
        return known
    try:
        complete = KnownCells.of(take_valid(design, every), levels)
    except LogError:
        return replace(known, dropped=dropped)  # only the rest is a log
    return replace(known, dropped=dropped, complete=complete)


def take_valid(design: Design, here: MaskArray) -> Design:
    """Select evaluations from a design with one row per position of an array."""
    return replace(design, valid=None if here.all() else here, facts={})


def keep_points(kept: MaskArray, every: MaskArray, *, design: Design) -> MaskArray:
    """Drop points from all repetitions if one lacks them; see `keep_design`."""
    whole = take_valid(design, every.reshape(-1))
    return keep_design(whole, kept.reshape(-1)).reshape(kept.shape)


def mark_losses(values: NDArray[Any], axis: tuple[int, ...]) -> MaskArray:
    """Mark the positions with any loss, for some columns."""
    marks: MaskArray = ~np.isnan(values).all(axis=axis, keepdims=True)
    return marks


def number_cells(
    design: Design, levels: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[Codes, int]:
    """Assign numbers to the cells along the dimensions that they depend on, and count them."""
    small, parts = [1] * len(shape), []
    for name in levels:
        codes = design.levels[name].codes
        part = codes if isinstance(codes, GridCodes) else GridCodes((0,), shape, codes)
        parts.append(part)
        for axis in part.axes:
            small[axis] = shape[axis]
    own = {}
    for name, part in zip(levels, parts, strict=True):
        codes = GridCodes(part.axes, tuple(small), part.base)
        own[name] = Level(design.levels[name].labels, codes)
    cells = Design(own, math.prod(small))
    size = cells.cell_table(levels).size
    number = cells.cells(levels, 0, cells.size).astype(np.min_scalar_type(-1 - size))
    return number.reshape(small), size


@dataclass(frozen=True, eq=False)
class LazyCells:
    """The cells of a lazy array, by chunk of its carried dimensions.

    Parameters
    ----------
    sums : dask array of ChunkCells
        The pooled cells.
    known : KnownCells, or a dask array of it
        What is known besides the losses: now, or once the losses are computed.
    seen : dask array of bool, optional
        The positions with a loss, if this determines what was evaluated.
    """

    sums: Any
    known: Any
    seen: Any = None

    @classmethod
    def of(
        cls, log: Log, lazy: LazyArray, now: KnownCells, examined: Examined,
        pairs: Pairs = NO_PAIRS, masked: MaskArray | None = None,
    ) -> LazyCells:  # fmt: skip
        """Aggregate and pool chunks; ``masked`` are columns without any loss, if known."""
        da = import_dask().array
        x, k = lazy.array.data, len(lazy.dims)
        wide = x.ndim - k
        if pairs[0]:
            x = x.rechunk({k + (model_axis(lazy) or 0): -1})
        known: Any = now
        levels, design, seen = now.cells.levels, whole_design(log), None
        if lazy.known_later:
            kept, every, seen = find_losses(lazy, x, design, masked)
            if lazy.drop and x.dtype.kind == "f":
                x = da.where(kept.reshape(kept.shape + (1,) * wide), x, np.nan)
            known = da.blockwise(
                partial(find_evaluated, design=design, levels=levels), (), kept, range(k), every,
                range(k), concatenate=True, name=unique_name("known"), meta=np.empty((), object),
            )  # fmt: skip
        number, size = number_cells(design, levels, x.shape[:k])
        number = number.reshape(number.shape + (1,) * wide)
        chunks = [sizes if n > 1 else (n,) for sizes, n in zip(x.chunks, number.shape, strict=True)]
        token = import_dask().base.tokenize(number, chunks)
        blocks = da.map_blocks(
            partial(
                sum_chunk, size=size, shape=x.shape[:k], pairs=pairs, axis=model_axis(lazy),
                starts=tuple(map(tuple, map(partial(accumulate, initial=0), x.chunks[:k]))),
                examined=examined,
                nan_tells=lazy.known_later and x.dtype.kind == "f",
            ),
            x, da.from_array(number, tuple(chunks), name=f"cells-{token}"), dtype=np.float64,
            chunks=(*map((1,).__mul__, map(len, x.chunks[:k])), *x.chunks[k:]),
            meta=np.empty((0,) * x.ndim),
        )  # fmt: skip
        sums = da.reduction(
            blocks, pass_chunk, pool_chunks, combine=pool_chunks, axis=tuple(range(k)),
            keepdims=False, dtype=np.float64, split_every=SPLIT_EVERY, concatenate=False,
            meta=np.empty((0,) * wide),
        )  # fmt: skip
        return cls(sums, known, seen)


def axes_of(kind: str, number: int) -> tuple[str, ...]:
    """Name axes of arrays, so that shared axes can be aligned."""
    return tuple(map(f"{kind} {{}}".format, range(number)))


def unique_name(kind: str) -> str:
    """Make a unique name for tasks that dask's own names would not distinguish."""
    return f"{kind}-{uuid4().hex}"


def model_axis(lazy: LazyArray) -> int | None:
    """Find the axis of the models among the carried dimensions."""
    carried = lazy.array.dims[len(lazy.dims) :]
    return carried.index("model") if "model" in carried else None


def whole_design(log: Log) -> Design:
    """Make the design with an evaluation at every position of the array."""
    return log.design if log.design.valid is None else replace(log.design, valid=None, facts={})


def find_losses(
    lazy: LazyArray, x: Any, design: Design, masked: MaskArray | None = None
) -> tuple[Any, Any, Any]:
    """Mark lazily where all models have a loss, where any has, and where those of a chunk have."""
    da, k = import_dask().array, len(lazy.dims)
    if x.dtype.kind != "f":
        every = da.ones(x.shape[:k], chunks=x.chunks[:k], dtype=bool)
        return every, every, None
    carried = tuple(range(k, x.ndim))
    chunks = (*x.chunks[:k], *((1,) * len(sizes) for sizes in x.chunks[k:]))
    seen = x.map_blocks(mark_losses, axis=carried, dtype=bool, chunks=chunks)
    every = some = seen.any(axis=carried)
    if not lazy.drop:
        return some, every, seen
    there = ~da.isnan(x)
    kept = (there if masked is None else there | masked).all(axis=carried)
    if not lazy.nan_tells:
        every = da.ones_like(kept)
    if "point" in design.levels and ("repetition" in design.levels or "outer" in design.levels):
        keep = partial(keep_points, design=design)
        kept = da.map_blocks(keep, kept.rechunk(-1), every.rechunk(-1), dtype=bool,
                             name=unique_name("kept")).rechunk(kept.chunks)  # fmt: skip
    return kept, every, None


# --- running a method on the cells of a chunk -----------------------------------------------------


@dataclass(frozen=True, eq=False)
class MappedMethod:
    """A method mapped over the carried dimensions.

    Parameters
    ----------
    run : callable
        The method, a function of a log, or of a log and pairs of its columns.
    log : Log
        The log without losses; its design has an evaluation at every position of the array.
    labels : ArrayLabels
        The carried dimensions, their sizes and labels.
    cautions : Caution
        Cautions about the levels of the log.
    leading : tuple of int
        The dimensions of the result before the carried ones.
    pairs, asked : tuple of tuple of int
        The model numbers of the pairs whose cells exist, and of those that are compared.
    drop : bool
        Whether missing losses are dropped.
    dtype : dtype
        A field for each column of the result.
    examined : Examined
        Which losses are kept with the cells.
    chosen : str, optional
        The comparison method chosen from the levels alone.
    """

    run: Callable[..., Result]
    log: Log
    labels: ArrayLabels
    cautions: Caution
    leading: tuple[int, ...] = ()
    pairs: Pairs = NO_PAIRS
    asked: Pairs = NO_PAIRS
    drop: bool = False
    dtype: np.dtype[Any] | None = None
    examined: Examined | None = None
    chosen: str | None = None

    def of_cells(
        self, known: KnownCells, found: ChunkCells, seen: MaskArray | None, *along: IntArray
    ) -> NDArray[Any]:
        """Compute the numbers of a chunk of carried cells from their cells."""
        labels = labels_at(self.labels, along)
        out = self.empty_numbers(labels.sizes)
        if out.size:
            refuse_faults(found, known, seen, self.log.design, labels.name)
            log = self.log_of_cells(found, known, labels)
            refuse_lost_digits(log)
            self.put_numbers(out, log)
        return out

    def of_losses(
        self, values: NDArray[Any], evaluated: MaskArray | None, *along: IntArray
    ) -> NDArray[Any]:
        """Compute the numbers of a chunk of carried cells from all their losses."""
        labels = labels_at(self.labels, along)
        out, design = self.empty_numbers(labels.sizes), self.log.design
        if out.size:
            if evaluated is not None:
                refuse_unlabelled(design, evaluated.reshape(-1))
                design = take_valid(design, evaluated.reshape(-1))
                design.splits()
            table = values.reshape(design.size, math.prod(labels.sizes))
            table = np.asarray(table, order="F")  # methods read whole columns
            log = replace(self.log, design=design, losses=LossColumns((table,)), labels=labels)
            if self.drop:
                log = replace(log, gaps=find_gaps(log, log.columns_by_cell()))
            self.put_numbers(out, log)
        return out

    def empty_numbers(self, carried: tuple[int, ...]) -> NDArray[Any]:
        """Allocate the numbers of a chunk, in which pairs replace the models."""
        shape = (len(self.asked[0]), *carried[1:]) if self.asked[0] else carried
        return np.empty((*self.leading, *shape), dtype=self.dtype)

    def put_numbers(self, out: NDArray[Any], log: Log) -> None:
        """Run the method, and put its numbers into the fields of an array."""
        result = add_cautions(self.answer(log), self.cautions)
        columns = {**result.columns, "caution": result.caution}
        name = result.attrs.get("interval_method", result.method)
        other = self.chosen is not None and name != self.chosen
        if other or not columns.keys() >= set(out.dtype.names or ()):
            raise LogError(
                f"the computed evaluations of this lazy array require {name!r}, but its levels "
                "alone suggested another method. Load the log, log.compute(), or pass method=; "
                "if the same points occur in several sources, type log.attrs['points_are'] = "
                "'crossed'."
            )
        for name in out.dtype.names or ():
            out[name] = np.asarray(columns[name]).reshape(out.shape)

    def answer(self, log: Log) -> Result:
        """Run the method on a log, or on its pairs of models."""
        if log.design.metric:
            log.refuse_parts()
        if self.asked[0]:
            left, right = map(np.array, self.asked)
            log = log.with_pairs(left, right)
        return answer_cells(log, self.run)

    def log_of_cells(self, found: ChunkCells, known: KnownCells, labels: ArrayLabels) -> Log:
        """Make a log of cells, with a small log of the losses that were kept with them."""
        columns = model_columns(labels.sizes, self.labels.model_dim)
        left, right = map(np.array, self.pairs)
        whole = label_cells(known.cells, found.cells)
        own, gaps = whole.take_columns(np.arange(columns.size)), None
        if len(left):
            gaps = whole.take_columns(np.arange(columns.size, whole.mean.shape[1]))
        sample, rows, losses = None, found.rows, found.losses
        if self.examined is not None and len(rows):
            design = known.design
            if design.valid is not None:
                here = design.valid[rows]
                rows, losses = rows[here], losses[here]
            if len(rows) < design.size:
                design = replace(take_rows(design, rows), within=design.within)
            small = replace(
                self.log, design=design, losses=LossColumns((losses,)), cells=None, lazy=None,
                complete=None,
            )  # fmt: skip
            sample = Sample(small, self.examined.step, self.examined.whole)
        cells = CellSource(
            own, WORDS, known.design.count_points, columns, gaps, (left, right), sample,
            of_chunk=True,
        )  # fmt: skip
        return replace(
            self.log, design=known.table, losses=hide_losses(columns.size, WORDS), labels=labels,
            complete=None if known.complete is None else known.complete.table, cells=cells,
        )  # fmt: skip


def refuse_lost_digits(log: Log) -> None:
    """Refuse losses whose squares underflow, as in memory."""
    source = log.cells
    if source is None or source.sample is None or source.sample.step > 1:
        return
    small = replace(source.sample.log, labels=log.labels)
    small.refuse_lost_digits(source.found, small.losses)
    if source.gaps is not None and source.pairs is not None:
        left, right = (source.models[side].reshape(-1) for side in source.pairs)
        small.refuse_lost_digits(source.gaps, Differences(small.losses, left, right))


def label_cells(known: Cells, found: Cells) -> Cells:
    """Label the cells; there are none if every column is masked."""
    if len(found.count) == len(known.count):
        return replace(found, levels=known.levels, labels=known.labels, codes=known.codes)
    width = found.mean.shape[1]
    nothing = np.full((len(known.count), width), np.nan)
    return replace(known, mean=nothing, m2=nothing, origin=np.zeros(width))


def labels_at(whole: ArrayLabels, along: Sequence[IntArray]) -> ArrayLabels:
    """Select the labels of one chunk of the carried dimensions."""
    here = dict(zip(whole.dims, along, strict=True))
    models = whole.models
    if "model" in here:
        models = [*map(models.__getitem__, here["model"].tolist())]
    own = {dim: whole.coords[dim][rows] for dim, rows in here.items() if dim in whole.coords}
    if "pair" in here:
        own |= {name: whole.coords[name][here["pair"]] for name in PAIR if name in whole.coords}
    coords = {**whole.coords, **own}
    return replace(whole, models=models, coords=coords, sizes=tuple(map(len, along)))


def refuse_faults(
    found: ChunkCells, known: KnownCells, seen: MaskArray | None, design: Design,
    name: Callable[[int], str],
) -> None:  # fmt: skip
    """Refuse missing or infinite losses, except in columns without any, and lost digits."""
    number = int(known.cells.count.sum())
    faults = found.faults
    missing, first, beside = faults["missing"], faults["first"], faults["beside"]
    apart = np.zeros(len(missing), dtype=bool)
    if seen is not None and 0 < found.cells.count.sum() < number:
        here = known.design.valid
        lost = np.flatnonzero(~seen.reshape(-1) if here is None else here & ~seen.reshape(-1))
        # columns in other chunks have losses there
        apart = lost[0] < first
        missing, first = missing + len(lost), np.where(apart, lost[0], first)
    bad = np.flatnonzero((missing > 0) & (missing < number))
    for column in bad[:1]:
        whose, total = name(int(column)), int(missing[column])
        where = design.format_labels(int(first[column]))
        where = where if total == 1 else f"{where}; and {total - 1:,} more"
        if faults[column]["infinite"] and not apart[column]:
            raise infinite_loss(whose, where)
        if beside[column] == -1 and not apart[column]:
            raise missing_loss(whose, where)
        other = "another model or cell" if apart[column] else name(int(beside[column]))
        raise unequal_points(whose, where, other)
    for at in np.flatnonzero(faults["rounded"])[:1].tolist():
        raise too_many_digits(name(at))
    large = np.isfinite(found.cells.mean).all(axis=0) & ~np.isfinite(found.cells.m2).all(axis=0)
    for at in np.flatnonzero(large)[:1].tolist():
        raise too_large(name(at) if at < len(missing) else "two models")


# --- from a lazy log to a lazy result -------------------------------------------------------------


def map_method(
    log: Log,
    run: Run,
    axes: Sequence[Axis],
    *,
    by: str | None,
    example: Run | None,
    reads_losses: ReadsLosses | None,
    all_pairs: bool,
) -> Any:
    """Compute a method lazily, chunked like the carried dimensions.

    A method that reads losses gets all losses of a carried cell at once.
    """
    lazy, leading = cast(LazyArray, log.lazy), tuple(len(labels) for _, labels in axes)
    pairs = asked = NO_PAIRS
    if log.pairs is not None:  # they replace the models
        pairs = asked = as_pairs(*log.pair_numbers())
        if all_pairs:
            pairs = as_pairs(*np.triu_indices(len(log.labels.models), 1))
        lazy = replace(lazy, array=lazy.array.transpose(*lazy.dims, "model", ...))
    if "metrics" in log.metadata and "metric" in lazy.array.dims:  # each has facts of its own
        lazy = replace(lazy, array=lazy.array.chunk(metric=1))
    now = KnownCells.of(log.design, levels_needed(log, by))
    examined = Examined.of(log)
    bare = replace(log, lazy=None, design=whole_design(log), pairs=None, pair_labels=None)
    method = MappedMethod(
        run, bare, labels_along(log, lazy), log.find_cautions(), leading, pairs, asked, lazy.drop,
        examined=examined,
    )  # fmt: skip
    quick = replace(method, run=example or run)
    parts = [log]
    if by is not None and by not in log.labels.dims:
        groups = Groups(log, by)
        parts = list(map(groups.outline, groups.kinds()))
    reads = reads_losses is not None and any(map(reads_losses, parts))
    form = run_on_blank(log, quick) if reads else run_on_sketch(lazy, quick, now)
    columns, counts = (form.columns, {}) if lazy.known_later else separate_counts(form)
    kinds = {name: np.asarray(values).dtype for name, values in columns.items()}
    whole = reads or (lazy.drop and count_carried(lazy) > 1)
    if whole and lazy.drop:
        kinds["n_dropped"] = np.dtype(np.int64)
    method = replace(
        method, dtype=np.dtype([*kinds.items(), ("caution", np.int64)]),
        chosen=cast("str | None", form.attrs.get("interval_method")),
    )  # fmt: skip
    cells = None if whole else LazyCells.of(log, lazy, now, examined, pairs)
    out = map_losses(method, lazy) if cells is None else map_sums(method, cells)
    found = Result(form.method, {name: out[name] for name in kinds}, out["caution"])
    attrs = facts_of(form, log.metadata) | counts | dict(log.attrs)
    labels = log.pair_labels or log.labels
    table: Any = (labels.stack(axes) if axes else labels).table(found, attrs)
    if cells is None or not lazy.drop:
        return table
    return table.assign(n_dropped=((), cells.known.map_blocks(count_dropped, dtype=np.int64)))


def levels_needed(log: Log, by: str | None = None) -> tuple[str, ...]:
    """List the levels that identify cells: standard ones, those of a metric, and requested ones."""
    more = levels_of_cells(log.metadata) if log.design.metric else ()
    names: dict[Any, None] = dict.fromkeys((*cell_levels(log.design), by, *log.used, *more))
    known = {*log.design.levels} - {"point"}
    return tuple(filter(known.__contains__, names))


def map_sums(method: MappedMethod, cells: LazyCells) -> Any:
    """Map a method over the pooled cells."""
    carried, known, seen = axes_of("carried", cells.sums.ndim), cells.known, cells.seen
    args = [cells.sums, carried]
    task: Any = method.of_cells
    if isinstance(known, KnownCells):
        task = partial(task, known)
    else:
        args = [known, (), *args]
    if seen is None:
        args += [None, None]
    else:
        tested = axes_of("tested", seen.ndim - len(carried))
        args += [seen.rechunk(dict.fromkeys(range(len(tested)), -1)), (*tested, *carried)]
    return map_carried(task, method, args, cells.sums.chunks)


def map_losses(method: MappedMethod, lazy: LazyArray) -> Any:
    """Map a method over the losses of carried cells.

    Large chunks are split into fewer cells.
    """
    x, tested = lazy.array.data, axes_of("tested", len(lazy.dims))
    carried = axes_of("carried", x.ndim - len(tested))
    whole: dict[int, Any] = dict.fromkeys(range(x.ndim), "auto")
    whole |= dict.fromkeys(range(len(tested)), -1)
    if method.labels.model_dim is not None:
        whole[len(tested) + method.labels.model_dim] = -1
    evaluated = None
    if lazy.nan_tells:
        evaluated = find_losses(replace(lazy, drop=False), x, method.log.design)[0].rechunk(-1)
    x = x.rechunk(whole)
    args = [x, (*tested, *carried), evaluated, None if evaluated is None else tested]
    return map_carried(method.of_losses, method, args, x.chunks[len(tested) :])


def map_carried(
    task: Callable[..., Any], method: MappedMethod, args: Sequence[Any], chunks: Any
) -> Any:
    """Run a task for each chunk of the carried dimensions, with its positions."""
    da = import_dask().array
    carried, ahead = axes_of("carried", len(chunks)), axes_of("leading", len(method.leading))
    along: list[Any] = []
    for axis, sizes in zip(carried, chunks, strict=True):
        along += [da.arange(sum(sizes), chunks=(sizes,)), (axis,)]
    models = {carried[0]: len(method.asked[0])} if method.asked[0] else None
    return da.blockwise(
        task, (*ahead, *carried), *args, *along,
        new_axes=dict(zip(ahead, method.leading, strict=True)), dtype=method.dtype,
        adjust_chunks=models, meta=np.empty((0,) * (len(ahead) + len(carried)), method.dtype),
        concatenate=True, align_arrays=False, name=unique_name("numbers"),
    )  # fmt: skip


def run_on_sketch(lazy: LazyArray, method: MappedMethod, known: KnownCells) -> Result:
    """Run a method on cells without losses.

    They are of 0/1 losses, which suit all methods, except where the means of small cells must vary.
    """
    number = len(method.pairs[0])
    models = method.labels.models if number else method.labels.models[:1]
    carried = (len(models),) if number else ()
    labels = ArrayLabels(
        models, ("model",)[: len(carried)], {}, carried, 0 if number else None, None
    )
    width = math.prod(carried)
    count = known.cells.count
    half = np.ceil(count / 2) / count
    faults, nothing = np.full(width, NO_FAULT), np.zeros((0, width))
    small = replace(method, labels=labels)
    refused: list[LogError] = []
    for means in (half, np.arange(1, len(half) + 1) / (len(half) + 1)):
        mean = np.repeat(means[:, None], width + number, axis=1)
        m2 = np.repeat((count * half * (1 - half))[:, None], width + number, axis=1)
        cells = replace(known.cells, mean=mean, m2=m2, origin=np.zeros(width + number))
        found = ChunkCells(cells, faults, np.arange(0), nothing)
        try:
            with np.errstate(all="ignore"):
                result = small.answer(small.log_of_cells(found, known, labels))
                return add_cautions(result, method.cautions)
        except LogError as error:
            refused.append(error)
    if not lazy.nan_tells:
        raise refused[0]
    raise LogError(
        f"{refused[0]} (In this lazy array, NaN marks what was not evaluated. Until it is "
        "computed, each point is assumed to be tested once in each repetition. If that is wrong, "
        "load the array first: log.compute().)"
    )


def run_on_blank(log: Log, method: MappedMethod) -> Result:
    """Run a method that reads losses on masked cells, to find the names of its columns."""
    models = method.labels.models if method.asked[0] else [None]
    labels = ArrayLabels(models, ("model",), {}, (len(models),), 0, None)
    blank = LossColumns((np.full((log.design.size, len(models)), np.nan),))
    table = replace(method.log, design=log.design, losses=blank, labels=labels)
    return method.answer(table)


PAIR = ("model", "other")
"""Coordinates of both models along the dimension ``pair`` of differences."""


def count_carried(lazy: LazyArray) -> int:
    """Count the carried cells, not counting models."""
    carried = lazy.array.dims[len(lazy.dims) :]
    return math.prod(lazy.array.sizes[dim] for dim in carried if dim != "model")


def labels_along(log: Log, lazy: LazyArray) -> ArrayLabels:
    """Return the names and labels of the carried dimensions."""
    array = lazy.array
    dims = array.dims[len(lazy.dims) :]
    sizes = array.shape[len(lazy.dims) :]
    chosen = {name: coord for name, coord in array.coords.items() if not coord.ndim}
    coords: dict[Hashable, Any] = {**chosen, **dict(array.indexes)}
    for name in PAIR:
        if name in array.coords and array.coords[name].dims == ("pair",):
            coords[name] = pd.Index(array.coords[name].values)
    return ArrayLabels(list(log.labels.models), dims, coords, sizes, model_axis(lazy), None)


def count_dropped(known: Any) -> NDArray[np.int64]:
    """Count the evaluations that were dropped."""
    return np.array(known.dropped, dtype=np.int64)


def answer_lazy_groups(by: str, labels: Sequence[Hashable], run: Run, log: Log) -> Result:
    """Run a method on the part of a log for each label of a level; each must have losses."""
    found = Groups(log, by).labels
    if len(found) < len(labels):
        raise LogError(
            f"only {len(found):,} of {len(labels):,} labels of {by!r} have any loss, but the "
            "shape of a lazy result must be known in advance: "
            f"{listed([spelled(name) for name in found])}. Select only these, as in "
            f"log.sel({by}=[…]), or load the log: log.compute()."
        )
    return answer_groups(by, found, run, log)


def as_pairs(left: IntArray, right: IntArray) -> Pairs:
    """Write the models of pairs as plain numbers."""
    return tuple(map(int, left)), tuple(map(int, right))


def adjust_lazily(table: xr.Dataset, adjust_p_values: partial[Any]) -> xr.Dataset:
    """Add adjusted p-values and their cautions, which depend on those of all pairs and cells."""
    p, caution, adjust = table["p_value"], table["caution"], adjust_p_values.keywords["adjust"]
    if p.size < 2:
        return table
    dask = import_dask()
    numbers = {**table.attrs, **table.data_vars}
    points = None
    if "alpha" in adjust_p_values.keywords and "df" not in numbers:
        points = numbers.get("n_clusters", numbers.get("n_points"))
    # Keys are unchanged, so that no chunk of losses is read twice.
    if isinstance(points, xr.DataArray):
        points = points.broadcast_like(p).transpose(*p.dims).chunk().data
        (points,) = points.rechunk(-1).to_delayed(optimize_graph=False).ravel()
    (of_p,) = p.data.rechunk(-1).to_delayed(optimize_graph=False).ravel()
    (of_caution,) = caution.data.rechunk(-1).to_delayed(optimize_graph=False).ravel()
    both = dask.delayed(adjust_p_values, nout=2, pure=True)(of_p, of_caution, points)
    together = dask.array.from_delayed(both[0], p.shape, dtype=np.float64)
    flagged = dask.array.from_delayed(both[1], p.shape, dtype=np.int64)
    columns = {}
    for name, variable in table.data_vars.items():
        columns[name] = variable
        if name == "p_value":
            columns["p_adjusted"] = p.copy(data=together.rechunk(p.chunks))
    if points is not None:
        columns["caution"] = caution.copy(data=flagged.rechunk(caution.chunks))
    attrs = {**table.attrs, "adjust": adjust}
    if adjust in WORKS["adjust"]:
        attrs["reference"] += f"; {WORKS['adjust'][adjust]}"
    return xr.Dataset(columns, table.coords, attrs)


def concat_logs(one: Any, two: Any, models: Sequence[str]) -> xr.DataArray:
    """Put the models of two logs side by side under new names; the second is aligned."""
    arrays = [
        log.to_dataarray("model") if isinstance(log, xr.Dataset) else log for log in (one, two)
    ]
    dims = ("model", *(dim for dim in arrays[0].dims if dim != "model"))
    bare: list[xr.DataArray] = []
    for array in arrays:
        wide = array.drop_vars("model", errors="ignore")
        wide = wide if "model" in wide.dims else wide.expand_dims("model")
        wide = wide.transpose(*dims)
        if wide.chunks is None:
            wide = wide.copy(data=np.ascontiguousarray(wide.values)).chunk()
        bare.append(wide)
    whole = xr.concat(bare, "model", coords="minimal", compat="override", join="override")
    return whole.assign_coords(model=pd.Index(list(models), name="model"))


def count_cells(log: Log, by: tuple[str, ...]) -> Any:
    """Count the evaluations in cells of a lazy log, now if the levels determine them."""
    lazy, count = cast(LazyArray, log.lazy), partial(tabulate_counts, by)
    if not lazy.known_later:
        return count(log)
    known = KnownCells.of(log.design, levels_needed(log))
    shape = [len(log.design.levels[name].labels) for name in by]
    return import_dask().array.blockwise(
        count, range(len(shape)), LazyCells.of(log, lazy, known, Examined.of(log)).known, (),
        new_axes=dict(enumerate(shape)), dtype=np.int64,
    )  # fmt: skip


def tabulate_counts(by: tuple[str, ...], known: Log | KnownCells) -> NDArray[np.int64]:
    """Put the counts of cells into a table of all labels."""
    found = tally(known.design, *by)
    return found.tabulate(found.count.astype(np.int64), 0)


def tabulate_moments(by: tuple[str, ...], log: Log) -> Result:
    """Put counts, means and variances into tables of all labels; cells without losses are NaN."""
    found = log.moments(by)
    mean = found.tabulate(found.location, np.nan)
    columns = {
        "count": found.tabulate(np.where(np.isnan(found.location), 0, found.count[:, None]), 0),
        "mean": mean, "var": found.tabulate(found.variance, np.nan),
    }  # fmt: skip
    return Result("moments", columns, np.zeros(mean.size, dtype=np.int64))


def compute_cells(
    log: Log, levels: tuple[str, ...], pairs: bool
) -> tuple[Log, Cells, Cells | None, tuple[IntArray, FloatArray]]:
    """Compute the cells of a lazy log, and of the differences of models, chunk by chunk.

    Also return the rows whose losses are examined, and these losses.
    """
    lazy = cast(LazyArray, log.lazy)
    chosen = as_pairs(*np.triu_indices(len(log.labels.models), 1)) if pairs else NO_PAIRS
    masked = find_masked(lazy) if lazy.drop else None
    examined = replace(Examined.of(log), step=1)
    cells = LazyCells.of(log, lazy, KnownCells.of(log.design, levels), examined, chosen, masked)
    blocks = cells.sums.to_delayed(optimize_graph=False).ravel().tolist()
    later = [part for part in (cells.known, cells.seen) if hasattr(part, "dask")]
    differ = () if masked is None else gaps_differ(lazy, masked)
    try:
        blocks, differ, *found = import_dask().compute(blocks, differ, *later)
    except LogError:
        if not import_dask().compute(differ)[0]:
            raise
        differ = True
    if differ:
        raise LogError(DIFFERENT_GAPS)
    known, seen = [*(found or [cells.known]), None][:2]
    labels, bounds = labels_along(log, lazy), [np.cumsum([0, *n]) for n in cells.sums.chunks]
    width = math.prod(labels.sizes)
    grid = np.arange(width).reshape(labels.sizes)
    axis = labels.model_dim if pairs else None
    pair_sizes = (len(chosen[0]), *(n for at, n in enumerate(labels.sizes) if at != axis))
    pair_grid = width + np.arange(math.prod(pair_sizes)).reshape(pair_sizes)
    mean, m2 = np.full((2, len(known.cells.count), width + pair_grid.size), np.nan)
    origin = np.zeros(mean.shape[1])
    losses = np.full((len(examined.rows), width), np.nan)
    for at, part in zip(np.ndindex(cells.sums.numblocks), blocks, strict=True):
        along = [np.arange(ends[k], ends[k + 1]) for ends, k in zip(bounds, at, strict=True)]
        look = None if seen is None else seen[(..., *(slice(k, k + 1) for k in at))]
        refuse_faults(part, known, look, whole_design(log), labels_at(labels, along).name)
        columns = grid[np.ix_(*along)].reshape(-1)
        losses[np.ix_(np.searchsorted(examined.rows, part.rows), columns)] = part.losses
        if pairs:
            others = [rows for i, rows in enumerate(along) if i != axis]
            part_of_grid = pair_grid[np.ix_(np.arange(len(pair_grid)), *others)]
            columns = np.concatenate([columns, part_of_grid.reshape(-1)])
        found = label_cells(known.cells, part.cells)
        mean[:, columns], m2[:, columns], origin[columns] = found.mean, found.m2, found.origin
    whole = replace(known.cells, mean=mean, m2=m2, origin=origin)
    complete = None if known.complete is None else known.complete.design
    attrs = {"n_dropped": known.dropped} if lazy.drop else {}
    return (
        replace(log, design=known.design, complete=complete, attrs=attrs),
        whole.take_columns(np.arange(width)),
        whole.take_columns(np.arange(width, len(origin))) if pairs else None,
        (examined.rows, losses),
    )  # fmt: skip


def find_masked(lazy: LazyArray) -> MaskArray | None:
    """Find the columns without any loss, if several carried cells may drop evaluations."""
    if count_carried(lazy) == 1 or lazy.array.dtype.kind != "f":
        return None
    da, tested = import_dask().array, tuple(range(len(lazy.dims)))
    masked: MaskArray = da.isnan(lazy.array.data).all(axis=tested).compute()
    return masked


def gaps_differ(lazy: LazyArray, masked: MaskArray) -> Any:
    """Return lazily whether carried cells lack different evaluations."""
    x, axis = lazy.array.data, model_axis(lazy)
    there = ~import_dask().array.isnan(x) | masked
    gone: Any = masked
    if axis is not None:
        there, gone = there.all(axis=len(lazy.dims) + axis), masked.all(axis=axis)
    carried = tuple(range(len(lazy.dims), there.ndim))
    return ((there & ~gone).any(axis=carried) & ~there.all(axis=carried)).any()
