"""``missing="drop"``: evaluations that any model lacks are dropped, in each carried cell.

The design is preserved: if all repetitions test the same points, a point that is missing in one of
them is dropped from all; in nested cross-validation, from all outer folds, too. Carried cells are
grouped by the evaluations that they lack (patterns of gaps), and a method runs once for each
pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cvstats.core.design import LEVELS, Design
from cvstats.core.folds import covers_all_points
from cvstats.core.loss_columns import LossColumns
from cvstats.core.results import Result, join_results
from cvstats.core.threads import block_bounds
from cvstats.core.types import IntArray, MaskArray
from cvstats.errors import LogError, listed
from cvstats.log.groups import take_rows
from cvstats.log.log import (
    Gaps,
    Log,
    Pattern,
    ResultLabels,
    SomeLabels,
    add_cautions,
    metrics_of_cells,
)
from cvstats.log.metadata import cautions_of_metric, folds_of_metric, select_metric

TILE = 1 << 24
"""Losses of a grid searched for gaps at once."""

NOTHING_LEFT = (
    "missing='drop' leaves nothing: every point is missing for at least one model or repetition. "
    "Expected some points for which all models have losses. Drop models without losses. If NaN "
    "marks points that were not tested, as in random splits, drop these evaluations first: "
    "log.dropna(how='all') for a frame, log.stack(evaluation=('repetition', "
    "'point')).dropna('evaluation', how='all') for an array."
)


# --- what is left ---------------------------------------------------------------------------------


def drop_gaps(log: Log) -> Log:
    """Drop, in each carried cell, every evaluation that is missing for any model."""
    if log.lazy is not None:
        return replace(log, lazy=replace(log.lazy, drop=True))
    if log.cells is not None:
        raise LogError(
            "missing='drop' needs individual losses, but these are moments. Use missing='raise', "
            "or drop evaluations when you aggregate: cvstats.Moments.of_log(batch, missing='drop')."
        )
    columns = log.columns_by_cell()
    if columns.shape[1] > 1:
        gaps = find_gaps(log, columns)
        if len(gaps.patterns) > 1 or len(gaps.empty):
            return replace(log, gaps=gaps)
        keep = gaps.patterns[0].keep
    else:
        keep = np.empty(log.design.size, dtype=bool)
        there = np.setdiff1d(np.arange(log.losses.width), log.masked())
        for start, stop in block_bounds(len(keep), TILE, log.losses.width):
            keep[start:stop] = ~log.losses.missing(start, stop)[:, there].any(axis=1)
        keep = keep_design(log.design, keep)
    gone = log.design.n_rows - int(keep.sum())
    if not keep.any():
        raise LogError(NOTHING_LEFT)
    design = replace(log.design, valid=keep, facts={}) if gone else log.design
    metadata = {**log.attrs, "n_dropped": gone}
    return replace(log, design=design, attrs=metadata, complete=log.design if gone else None)


def find_gaps(log: Log, columns: IntArray) -> Gaps:
    """Group the carried cells by the evaluations that are missing in them."""
    design = log.design
    here = design.marks
    found: dict[bytes, list[int]] = {}
    masked: list[int] = []
    for start, stop in block_bounds(columns.shape[1], TILE, design.size * len(columns)):
        missing = np.zeros((design.size, stop - start), dtype=bool)
        every = np.ones(stop - start, dtype=bool)
        for own in columns[:, start:stop]:
            gone = LossColumns(tuple(take_columns(log.losses, own))).missing(0, design.size)
            bare = gone[here].all(axis=0)
            missing |= gone & ~bare
            every &= bare
        bits = np.packbits(missing & here[:, None], axis=0)
        for cell, code in enumerate(np.ascontiguousarray(bits.T), start):
            if every[cell - start]:
                masked.append(cell)
            else:
                found.setdefault(code.tobytes(), []).append(cell)
    patterns: list[Pattern] = []
    empty: list[int] = []
    for code, cells in found.items():
        gone = np.unpackbits(np.frombuffer(code, dtype=np.uint8), count=design.size).astype(bool)
        keep = keep_design(design, ~gone)
        if keep.any():
            patterns.append(Pattern(np.array(cells), keep, int(here.sum() - keep.sum())))
        else:
            empty += cells
    if not patterns:
        patterns = [Pattern(np.zeros(0, dtype=np.int64), here, 0)]
    return Gaps(columns, patterns, np.array(empty, dtype=int), np.array(masked, dtype=int))


def take_columns(losses: LossColumns, columns: IntArray) -> list[NDArray[Any]]:
    """Take some columns, in ascending order, table by table."""
    parts, first = [], 0
    for table in losses.tables:
        own = columns[(columns >= first) & (columns < first + table.shape[1])] - first
        first += table.shape[1]
        if len(own):
            whole = len(own) == table.shape[1]
            parts.append(table if whole else table[:, own])
    return parts


def keep_design(design: Design, keep: MaskArray) -> MaskArray:
    """Drop a point from all repetitions if one of them lacks it, so that all test the same points.

    In nested cross-validation, each outer fold of a repetition tests all points. Splits with
    nothing left are ignored. Nothing is dropped if splits test different points anyway. Each label
    of ``by=`` has its own points.
    """
    keep = keep & design.marks
    further = tuple(name for name in design.within if name not in LEVELS)
    if further and not keep.all():
        label = design.cells(further, 0, design.size)
        order = np.argsort(label, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
            keep[rows] = keep_design(take_rows(design, rows), keep[rows])
        return keep
    by = tuple(name for name in ("repetition", "outer") if design.has(name))
    if "point" not in design.levels or not by or design.has("sample") or design.has("count"):
        return keep
    try:
        if not covers_all_points(design):
            return keep
    except LogError:  # only what is left is a log
        return keep
    alive = np.zeros(design.cell_table(by).size, dtype=bool)
    split = np.maximum(design.cells(by, 0, design.size), 0)  # -1 where nothing was evaluated
    alive[split[keep]] = True
    point = design.point_numbers()
    gone = np.zeros(int(point.max(initial=-1)) + 1, dtype=bool)
    lost = ~keep & alive[split]
    gone[point[lost & design.marks]] = True
    return keep & ~gone[point]


# --- one result for each pattern of gaps ----------------------------------------------------------


def answer_cells(log: Log, run: Callable[[Log], Result]) -> Result:
    """Run a method on a log, or on the carried cells of each pattern of gaps and each metric.

    Returns
    -------
    Result
        An entry for each column or pair; several rows of them if the method stacks its
        results. Cells with nothing left have no losses.

    Raises
    ------
    LogError
        If some cells cannot be computed; the first of them are named.
    """
    metrics = metrics_of_cells(log) if "metrics" in log.metadata else None
    gaps: Gaps | None = log.gaps
    if gaps is None and (metrics is None or len(set(metrics)) == 1):
        return run(log) if metrics is None else run_on_metric(run, log, metrics[0])
    if gaps is None:
        columns = log.columns_by_cell()
        every = Pattern(np.arange(columns.shape[1]), log.design.marks, 0)
        gaps = Gaps(columns, [every], np.zeros(0, dtype=int), np.zeros(0, dtype=int))
    cell_of = np.empty(gaps.columns.size, dtype=np.int64)
    cell_of[gaps.columns] = np.arange(gaps.columns.shape[1])
    entry_cell = cell_of if log.pairs is None else cell_of[log.pairs[0]]
    results: list[tuple[IntArray, Result]] = []
    failed: dict[int, str] = {}
    for number, pattern in enumerate(gaps.patterns):
        bare = np.concatenate([gaps.empty, gaps.masked]) if number == 0 else gaps.empty[:0]
        own = np.sort(np.concatenate([pattern.cells, bare]))
        for metric in {None: 0} if metrics is None else dict.fromkeys(metrics[own].tolist()):
            cells = own if metrics is None else own[metrics[own] == metric]
            entries = np.flatnonzero(np.isin(entry_cell, cells))
            whole = log.cells is not None  # moments are of all columns
            part = log if whole else take_cells(log, gaps, cells, pattern.keep, entries)
            try:
                found = run(part) if metrics is None else run_on_metric(run, part, metric)
                if whole:
                    found = take_entries(found, entries, len(entry_cell))
                results.append((entries, found))
            except LogError as error:
                if not len(pattern.cells):  # no cell has any losses left
                    raise
                failed |= dict.fromkeys(np.intersect1d(cells, pattern.cells).tolist(), str(error))
    if failed:
        raise no_answer(log, gaps, failed)
    if log.gaps is None:
        return gather_entries(results, len(entry_cell))
    numbers = np.zeros(gaps.columns.shape[1], dtype=np.int64)
    numbers[gaps.empty] = log.design.n_rows
    for pattern in gaps.patterns:
        numbers[pattern.cells] = pattern.dropped
    found = gather_entries(results, len(entry_cell))
    dropped = np.tile(numbers[entry_cell], len(found.caution) // len(entry_cell))
    return replace(found, columns={**found.columns, "n_dropped": dropped})


def run_on_metric(run: Callable[[Log], Result], log: Log, metric: Any) -> Result:
    """Run a method on the carried cells of one metric, with the facts of this metric."""
    part = of_metric(log, metric)
    return add_cautions(run(part), cautions_of_metric(part.metadata))


def of_metric(log: Log, metric: Any) -> Log:
    """Return a log of several metrics with the facts of one of them."""
    metadata = select_metric(dict(log.metadata), metric)
    folds, whole = folds_of_metric(metadata), log.complete
    return replace(
        log, metadata=metadata,
        design=replace(log.design, metric=folds, facts=dict(log.design.facts)),
        complete=None if whole is None else replace(whole, metric=folds, facts=dict(whole.facts)),
    )  # fmt: skip


def no_answer(log: Log, gaps: Gaps, failed: dict[int, str]) -> LogError:
    """Make the error for carried cells that cannot be computed."""
    total, metrics = gaps.columns.shape[1], metrics_of_cells(log)
    own = np.concatenate([pattern.cells for pattern in gaps.patterns])
    others, words = np.setdiff1d(own, list(failed)), next(iter(failed.values()))
    if not len(others) and (len(set(failed.values())) == 1 or log.gaps is None):
        return LogError(words)  # the error is not about the cells
    names = listed([log.name(int(gaps.columns[0, at])) for at in failed])
    if len(others) and metrics is not None and not {*metrics[[*failed]]} & {*metrics[others]}:
        return LogError(
            f"{len(failed):,} of {total:,} carried cells could not be computed ({names}). The "
            f"first: {words} To omit metrics, select the others: "
            f"{'log.sel(metric=[…])' if log.labels.may_be_empty() else 'log.loc[[…]]'}."
        )
    return LogError(
        f"{len(failed):,} of {total:,} carried cells could not be computed after missing='drop' "
        f"({names}). The first: {words} To omit cells with few losses, blank them: "
        "log.where(log.count('point') >= 30)."
    )


def take_cells(log: Log, gaps: Gaps, cells: IntArray, keep: MaskArray, entries: IntArray) -> Log:
    """Select some carried cells and evaluations of a log with gaps; blank its empty cells.

    ``entries`` are the columns or pairs in these cells.
    """
    columns, bare = gaps.columns, gaps.empty
    chosen = np.sort(columns[:, cells].reshape(-1))
    tables = take_columns(log.losses, chosen)
    blank = np.searchsorted(chosen, columns[:, np.intersect1d(cells, bare)].reshape(-1))
    if len(blank):
        tables = [np.concatenate([table.astype(np.float64) for table in tables], axis=1)]
        tables[0][:, blank] = np.nan
    half = len(chosen) if log.other is None else len(chosen) // 2
    gone = log.design.n_rows > int(keep.sum())
    pairs = log.pairs
    if pairs is not None:
        left, right = (np.searchsorted(chosen, side[entries]) for side in pairs)
        pairs = left, right
    return replace(
        log, losses=LossColumns(tuple(tables)), gaps=None, pairs=pairs,
        labels=cast(ResultLabels, SomeLabels(log.labels, chosen[:half])),
        other=None if log.other is None else SomeLabels(log.other, chosen[:half]),
        design=replace(log.design, valid=keep, facts={}) if gone else log.design,
        complete=log.design if gone else None,
    )  # fmt: skip


def take_entries(result: Result, entries: IntArray, width: int) -> Result:
    """Select the numbers of some columns or pairs."""
    numbers = {
        name: np.asarray(values).reshape(-1, width)[:, entries].reshape(-1)
        for name, values in {**result.columns, "caution": result.caution}.items()
    }
    caution = numbers.pop("caution")
    return replace(result, columns=numbers, caution=caution)


def gather_entries(results: list[tuple[IntArray, Result]], width: int) -> Result:
    """Combine the results of all patterns; facts that differ between them are omitted."""
    columns: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys(chain(*(part.columns for _, part in results))):
        lines = [
            np.asarray(part.columns[name]).reshape(-1, len(entries))
            if name in part.columns
            else np.full((len(part.caution) // len(entries), len(entries)), np.nan)
            for entries, part in results
        ]
        columns[name] = put_entries(results, lines, width)
    flags = [part.caution.reshape(-1, len(entries)) for entries, part in results]
    caution = put_entries(results, flags, width).astype(np.int64)
    joined = join_results([part for _, part in results], columns, caution)
    limits = dict.fromkeys(
        str(part.attrs["interval"]) for _, part in results if "interval" in part.attrs
    )
    if len(limits) > 1:
        joined = replace(joined, attrs={**joined.attrs, "interval": " or ".join(limits)})
    return joined


def put_entries(
    results: list[tuple[IntArray, Result]], lines: list[NDArray[Any]], width: int
) -> NDArray[Any]:
    """Put the numbers of all patterns into the order of the whole log."""
    whole = np.empty((len(lines[0]), width), dtype=np.result_type(*lines))
    for (entries, _), values in zip(results, lines, strict=True):
        whole[:, entries] = values
    return whole.reshape(-1)
