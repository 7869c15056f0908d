"""Cautions that depend on the losses: tails, dates, duplicates, selection.

`diagnose` examines the whole log. Interval methods examine logs in memory: up to `LIMIT` losses in
full, which takes a millisecond or two, and a sample of larger logs, so that these keep the speed of
one pass. Duplicates are searched for in whole logs only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.folds import (
    cached,
    find_single_losses,
    fold_levels,
    has_crossed_sources,
    is_resampled,
    repetition_level,
    tally,
)
from cvstats.core.loss_columns import Differences
from cvstats.core.orientation import TARGET
from cvstats.core.results import rounding_of_means
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray, Labels, MaskArray
from cvstats.errors import spelled
from cvstats.log.groups import Groups
from cvstats.log.log import POINTS_ARE, Log, Sample
from cvstats.log.metadata import FEW_ERRORS, NOT_ZERO_ONE, is_examined
from cvstats.log.pandas import as_index

LIMIT = 50_000
"""Maximum number of losses (rows times columns) examined in full; of larger logs, a sample."""

FEWEST_ROWS = 300
"""Number of evaluations per column of a sample."""

MOST_COLUMNS = 3_000
"""Maximum number of columns of a sample; those in between get the cautions of a neighbor."""

EVERY_LOOK = "every_look"
"""In the metadata of a log whose limits hold at every look, which are further out."""

FOR_EVERY_LOOK = 3
"""Such limits need so many times the points that skewness asks of one look."""

FEW_GROUPS = 100
"""Maximum number of groups of ``by=`` examined; those in between get the cautions of a neighbor."""

SHARE, TAIL = 1 / 2, 2.0
"""Outliers: a larger share of the sum of squares in the top 1%. Heavy tails: a smaller index."""

ENOUGH_FOR_TAILS = 25, 4
"""Neither matters if the log has so many times the points that skewness requires, and the examined
losses are so many times as many: without the largest losses, they look less skewed than they are.
"""

SERIAL = 0.1, 2.326
"""Serial dependence: a larger correlation of neighbors, absolute and in standard errors."""

PAIRS = 20
"""Minimum number of pairs of neighboring dates to estimate a correlation."""

LEAST = 10
"""Number of duplicated evaluations below which they may be coincidence."""

NEAR = 5
"""Number of models near the smallest error from which that error is biased by selection."""

Residuals = tuple[FloatArray, FloatArray]
"""Scaled residuals of sampling units, whose squares sum to a variance, and means of columns."""

Group = tuple[int, int, IntArray]
"""The number of a group of ``by=``, a count of it, and evaluations that are examined."""


def find_cautions(
    log: Log, estimate: FloatArray, residuals: Callable[[], list[Residuals] | None] | None = None
) -> IntArray:
    """Find the cautions for the interval of each column, as bits of `Caution`.

    ``estimate`` is the center of each interval, one group of ``by=`` after the other. If sources
    are the sampling unit, dependence within them is accounted for, and ``residuals`` returns the
    residual means of sources for each group of ``by=``, whose squares sum to the variance of a
    column; None if these are fixed. Pseudo-losses of a metric of numbers are checked for tails and
    skewness, and so are those of both models of a difference; those of any metric are checked for
    autocorrelation.
    """
    flags = np.zeros(len(estimate), dtype=np.int64)
    design, sample = log.design, take_sample(log)
    single = find_single_losses(design, log.zero_one)
    if single.any():
        flags[np.repeat(single[:, 0], len(flags) // len(single))] |= Caution.ONE_EACH
    single &= bool(design.levels)  # rows without labels may be points as well
    if sample is None or (single.all() and not design.scores):
        return flags
    seen, of_points = sample.log, not (residuals or design.scores or is_resampled(design))
    dated = of_points and find_dates(seen.design) is not None
    shaped = not design.scores and (not design.metric or is_examined(log.metadata))
    of_many = len(log.labels.models) >= NEAR and has_best_model(log)
    if not (shaped or of_many or dated):
        return flags
    # The losses to examine: all of them, or some rows of some columns.
    pairs = log.pairs and log.differences
    width = (log.losses if pairs is None else pairs).width
    whole = sample.whole and seen.design.size * width <= LIMIT
    step = sample.step if whole else find_step(sample, width)
    columns, spread = pick_columns(log, sample, pairs, step)
    losses = ExaminedLosses(seen, columns, spread, tabulate(seen, columns) if whole else None)
    # The groups to examine, except those that have one loss in each split.
    times = FOR_EVERY_LOOK if log.metadata.get(EVERY_LOOK) else 1
    points = log.points_by_group()
    points = count_kept_points(log) if points is None else points
    before, by_group = flags.copy(), flags.reshape(-1, width)
    groups: list[Group] = []
    n_points = np.zeros(len(by_group), dtype=np.int64)
    most = seen.design.size if whole else LIMIT // width
    if design.by is None:
        valid = seen.design.valid
        size = seen.design.size if valid is None else int(valid.sum())
        count = size if seen is log else int(tally(design).count.sum())
        sampled = [(0, count, sample_rows(seen.design, range(size), most, dated=dated))]
    elif seen is log:
        sampled = sample_groups(log, design.by, most, dated=dated)
    else:
        sampled = sample_known_groups(log, seen.design, design.by, most, dated=dated)
    for at, count, rows in sampled:
        if len(rows) and (design.scores or not (single.any() and single[at, 0])):
            n_points[at] = (count if points is None else int(points[at, 0])) // times
            groups.append((at, int(n_points[at]), rows))
    # One rule after the other.
    if shaped:
        marks = mark_groups(losses, groups, by_group.shape, sides=bool(design.metric))
        # Small groups of a contrast have large weights, so that only its skewness is a sign.
        by_group |= marks & Caution.SKEWED if log.of_contrasts else marks
    if dated:
        by_group |= mark_serial_dependence(losses, groups, by_group.shape)
    if losses.table is not None and of_points and not design.metric:
        alike = losses.table if columns is None else tabulate(seen)
        for at, _, rows in groups:
            if find_duplicates(seen, alike[rows], rows) is not None:
                by_group[at] |= Caution.DUPLICATED_POINTS
    if of_many and step == 1:
        of_units = residuals() if residuals else None
        by_group |= mark_selected(log, losses, groups, estimate.reshape(by_group.shape), of_units)
    if 0 < len(groups) < len(by_group) and design.by is not None:  # those in between
        examined = [at for at, _, _ in groups]
        stands = np.searchsorted(examined, np.arange(len(by_group)), side="right") - 1
        nearest = np.array(examined)[np.maximum(stands, 0)]
        flags = before | (flags & ~before).reshape(by_group.shape)[nearest].reshape(-1)
        n_points = n_points[nearest] if points is None else points[:, 0] // times
    loss = str(log.metadata.get("loss")).removeprefix("1 - ")
    other = log.of_differences or log.of_contrasts or design.metric or loss in NOT_ZERO_ONE
    if shaped and not other:
        rarer = np.repeat(n_points, width) * np.fmin(estimate, 1 - estimate)
        few = (rarer > 0) & (rarer < FEW_ERRORS - 1e-9)
        if few.any():
            flags[few & log.zero_one()] |= Caution.FEW_ERRORS
    return flags


@dataclass(frozen=True, eq=False)
class ExaminedLosses:
    """The losses that are examined one by one.

    Parameters
    ----------
    log : Log
        Their evaluations, in memory.
    columns : array of int or Differences, optional
        The columns, or differences of columns; by default all columns.
    spread : array of int or slice
        For each column of the whole log, which of these represents it.
    table : array, optional
        The losses of all evaluations, if there are few.
    """

    log: Log
    columns: IntArray | Differences | None
    spread: Any
    table: FloatArray | None

    def read(self, rows: IntArray) -> FloatArray:
        """Tabulate some evaluations, rows by columns."""
        return tabulate(self.log, self.columns, rows) if self.table is None else self.table[rows]


def sample_groups(log: Log, by: str, most: int, *, dated: bool) -> list[Group]:
    """Sample about ``most`` evaluations of each group of ``by=``; if many, of some groups.

    Returns the number of the group, its number of evaluations, and the sampled ones. They are
    cached in the design, since finding those of a group reads all codes.
    """
    design, key = log.design, ("sampled", by, most, dated)
    if key not in design.facts:
        groups = Groups(log, by)
        examined = range(0, len(groups.codes), -(-len(groups.codes) // FEW_GROUPS))
        each = most if most >= design.n_rows else most // len(examined)
        number = None if design.valid is None else np.cumsum(design.valid) - 1
        found = []
        for at, rows in zip(examined, groups.find_rows(examined), strict=True):
            some = sample_rows(design, rows if number is None else number[rows], each, dated=dated)
            found.append((at, len(rows), some))
        design.facts[key] = found
    sampled: list[Group] = design.facts[key]
    return sampled


def sample_known_groups(
    log: Log, design: Design, by: str, most: int, *, dated: bool
) -> list[Group]:
    """Sample the groups from evaluations in memory, which have a design of their own."""
    names, counts = Groups(log, by).labels, tally(log.design).count
    examined = range(0, len(names), -(-len(names) // FEW_GROUPS))
    each = most if most >= design.size else most // len(examined)
    codes = design.codes(by)
    place = {label: code for code, label in enumerate(design.levels[by].labels)}
    groups = ((at, np.flatnonzero(codes == place.get(names[at], -2))) for at in examined)
    return [
        (at, int(counts[at]), sample_rows(design, rows, each, dated=dated)) for at, rows in groups
    ]


def take_sample(log: Log) -> Sample | None:
    """Return the losses that can be examined one by one: all of a log in memory."""
    if log.in_memory:
        return Sample(log)
    return None if log.cells is None else log.cells.sample


def find_whole(log: Log) -> Log | None:
    """Return the log in memory, or from its cells if they hold all losses; otherwise None."""
    if log.in_memory:
        return log
    sample = take_sample(log)
    if sample is None or not sample.whole or sample.step > 1:
        return None
    return replace(sample.log, pairs=log.pairs)


def count_kept_points(log: Log) -> IntArray | None:
    """Count the points of moments that keep the losses of a short log; None if unknown."""
    whole = find_whole(log) if log.design.by is None else None
    return None if whole is None else whole.points_by_group()


def find_step(sample: Sample, width: int) -> int:
    """Find how many carried cells one cell of the sample represents."""
    if sample.whole and sample.log.design.size * width <= LIMIT:
        return sample.step
    return sample.step * -(-width // (MOST_COLUMNS * sample.step))


def pick_columns(
    log: Log, sample: Sample, pairs: Differences | None, step: int
) -> tuple[IntArray | Differences | None, Any]:
    """Pick the columns of a sample (or differences of columns) in evenly spaced carried cells.

    Also return, for each column of the log, which of these represents it.
    """
    own = sample.log.losses
    if step == 1 and (pairs is None or own is log.losses):
        return pairs, slice(None)
    cells = log.columns_by_cell()
    number = cells.shape[1]
    known = np.sort(cells[:, :: sample.step].reshape(-1))
    chosen = np.arange(0, number, step)
    stands = np.arange(number) // step
    if pairs is not None:
        sides = (
            np.searchsorted(known, side.reshape(-1, number)[:, chosen].reshape(-1))
            for side in (pairs.left, pairs.right)
        )
        lines = np.arange(pairs.width // number)[:, None] * len(chosen)
        return Differences(own, *sides), (lines + stands).reshape(-1)
    spread = np.empty(cells.size, dtype=np.int64)
    spread[cells] = np.arange(len(cells))[:, None] * len(chosen) + stands
    return np.searchsorted(known, cells[:, chosen].reshape(-1)), spread


def choose_step(width: int) -> int:
    """Choose how many carried cells one cell represents, by the number of columns."""
    return -(-width // MOST_COLUMNS)


def sample_rows(design: Design, rows: IntArray | range, most: int, *, dated: bool) -> IntArray:
    """Sample about ``most`` evaluations: evenly spaced ones, or all of the first dates."""
    size, most = len(rows), max(most, FEWEST_ROWS)
    step = size // most
    if not dated or step < 2:
        number = size if dated else min(size, most)
        places = np.arange(number) * size // max(number, 1)
        return places if isinstance(rows, range) else rows[places]
    rows = np.asarray(rows)
    name = find_dates(design) or "point"
    time = rank_labels(design.levels[name].labels)[design.codes(name)[rows]]
    first = int(time.min())
    return rows[time < first + max(PAIRS, (int(time.max()) - first) // step)]


def tabulate(
    log: Log,
    columns: IntArray | Differences | None = None,
    rows: IntArray | slice = slice(None),
) -> FloatArray:
    """Tabulate evaluations, rows by columns (or differences); NaN in those of masked cells."""
    own, valid = log.losses, log.design.valid
    if valid is not None:
        at = np.flatnonzero(valid)[rows]
    else:
        at = np.arange(log.design.size)[rows] if isinstance(rows, slice) else rows
    if isinstance(columns, Differences):
        found = own.table(at, columns.left)
        return np.subtract(found, own.table(at, columns.right), out=found)
    return own.table(at, np.arange(own.width) if columns is None else columns)


# --- the distribution of the losses ---------------------------------------------------------------


def mark_shapes(values: FloatArray, n_points: Sequence[int]) -> IntArray:
    """Mark columns with heavy tails, outliers, or too much skewness for their number of points.

    ``values`` has shape (groups, evaluations, columns), and ``n_points`` a number for each group;
    the marks are a row for each.
    """
    number, size, width = values.shape
    lines = values.transpose(1, 0, 2).reshape(size, number * width)
    flags, points = np.zeros(number * width, dtype=np.int64), np.repeat(n_points, width)
    some = np.arange(len(flags))
    if size < ENOUGH_FOR_TAIL and points.min() >= COCHRAN * size:
        # The squared skewness of a sample is below its size: only outliers are left to find.
        squares = np.square(lines - lines.mean(axis=0))
        some = np.flatnonzero(
            -(-size // TOP_SHARE) * squares.max(axis=0) > SHARE * squares.sum(axis=0)
        )
        lines = lines[:, some]
    if len(some):
        moments = measure_moments(lines, SHARE)
        at = np.flatnonzero(np.maximum(*moments[-2:]) > points[some])
        if len(at):
            shapes, at = measure_shapes(lines[:, at], [one[at] for one in moments]), some[at]
            flags[at[shapes.n_for_tails > points[at]]] = Caution.HEAVY_TAILS
            flags[at[shapes.n_for_skewness > points[at]]] |= Caution.SKEWED
    return flags.reshape(number, width)


def mark_groups(
    losses: ExaminedLosses, groups: Sequence[Group], shape: tuple[int, int], *, sides: bool
) -> IntArray:
    """Mark the columns of each group, like `mark_shapes`; with ``sides``, those of both models too.

    Groups with equally many evaluations are marked together, as many as fit in the cache.
    """
    marks = np.zeros(shape, dtype=np.int64)
    batches: dict[tuple[int, int], list[Group]] = {}
    for place, group in enumerate(groups):
        size = len(group[2])
        together = max(1, TILE // (size * shape[1]))
        batches.setdefault((size, place // together), []).append(group)
    for batch in batches.values():
        numbers, n_points, taken = zip(*batch, strict=True)
        rows, of_batch = np.concatenate(taken), (len(batch), len(taken[0]), -1)
        if losses.table is None:
            found = mark_columns(losses, rows, n_points)
        else:
            found = mark_shapes(losses.table[rows].reshape(of_batch), n_points)
        if sides and isinstance(losses.columns, Differences):
            for side in (losses.columns.left, losses.columns.right):
                both = tabulate(losses.log, side, rows).reshape(of_batch)
                found |= mark_shapes(both, n_points)
        marks[list(numbers)] = found[:, losses.spread]
    return marks


def mark_columns(losses: ExaminedLosses, rows: IntArray, n_points: Sequence[int]) -> IntArray:
    """Mark the columns of some groups like `mark_shapes`, as many at a time as fit in the cache.

    ``rows`` are equally many evaluations of each group.
    """
    read, width = read_columns(losses.log, losses.columns, rows)
    bounds = block_bounds(width, TILE, len(rows))

    def mark(tile: int) -> IntArray:
        part = read(slice(*bounds[tile]))
        return mark_shapes(part.reshape(len(n_points), -1, part.shape[1]), n_points)

    return np.concatenate(list(ordered_map(mark, len(bounds))), axis=1)


def read_columns(
    log: Log, columns: IntArray | Differences | None, rows: IntArray
) -> tuple[Callable[[slice], FloatArray], int]:
    """Return a function that reads some columns (or differences), and the number of all."""
    if not isinstance(columns, Differences):
        every = np.arange(log.losses.width) if columns is None else columns
        return lambda some: tabulate(log, every[some], rows), len(every)
    models, at = np.unique([columns.left, columns.right], return_inverse=True)
    left, right = at.reshape(2, -1)
    lines = np.ascontiguousarray(tabulate(log, models, rows).T)
    return lambda some: (lines[left[some]] - lines[right[some]]).T, len(left)


def skewness_within(log: Log, by: str) -> FloatArray:
    """Squared skewness of the losses of each column about the means of their groups.

    NaN if the losses cannot be read one by one.
    """
    width, sample = log.losses.width, take_sample(log)
    if sample is None:
        return np.full(width, np.nan)
    seen = sample.log
    number, step = int(tally(seen.design).count.sum()), find_step(sample, width)
    rows = sample_rows(seen.design, range(number), LIMIT // width, dated=False)
    columns, spread = pick_columns(log, sample, None, step)
    at = cell_numbers(seen.design, (by,), rows)
    values, count = tabulate(seen, columns, rows)[np.argsort(at)], np.bincount(at)
    count = count[count > 0]
    starts = np.cumsum(count) - count
    means = np.add.reduceat(values, starts, axis=0) / count[:, None]
    deviations = values - np.repeat(means, count, axis=0)
    points = points_for_skewness(deviations, deviations * deviations)
    found: FloatArray = points[spread] / COCHRAN
    return found


# --- the order of the points ----------------------------------------------------------------------


def find_serial_dependence(log: Log, number: int) -> IntArray:
    """Find serial dependence alone, for tests that need no other caution of single losses."""
    if find_dates(log.design) is None:
        return np.zeros(number, dtype=np.int64)
    return find_cautions(log, np.zeros(number)) & np.int64(Caution.SERIAL_DEPENDENCE)


@cached("dates", of_labels=True)
def find_dates(design: Design) -> str | None:
    """Find the level of dates or times: that of points, or one named so next to it."""
    for name in dict.fromkeys(("point", *design.levels)):
        level = design.levels.get(name)
        named = name == "point" or str(name).lower() in NAMES_OF_DATES
        if level is None or not named or not len(level.labels):
            continue
        first = level.labels[0]
        if is_date(first):
            found = are_sortable(level.labels)
        else:
            number = isinstance(first, (int, np.integer)) and first >= YEARS[0]
            text = isinstance(first, str) and OTHER_DATE.match(first) is not None
            found = (number or text) and read_calendar(level.labels) is not None
        if found:
            return name
    return None


def shares_dates(log: Log) -> bool:
    """Whether fixed sources were evaluated on the same dates, which are then sampled."""
    if log.of_contrasts or log.metadata.get(POINTS_ARE) == "nested":
        return False
    if not has_crossed_sources(log.planned):
        return False
    sample = None if log.in_memory or log.lazy is not None else take_sample(log)
    return find_dates(log.planned if sample is None else sample.log.design) == "point"


def measure_serial(
    design: Design, values: FloatArray, rows: Any = slice(None)
) -> tuple[FloatArray, int] | None:
    """Measure the autocorrelation of neighboring dates; None if the log has no dates.

    ``values`` are the losses of the evaluations ``rows``.

    Returns the correlation of neighbors for each column, and the number of pairs. Each point is
    averaged over its repetitions first. With sources, each source is a series.
    """
    name = find_dates(design)
    if name is None:
        return None
    order = rank_labels(design.levels[name].labels)
    time = order[design.codes(name)[rows]]
    series = np.zeros_like(time)
    if design.has("source"):
        series = design.codes("source")[rows].astype(np.int64)
    keys, at, count = np.unique(series * len(order) + time, return_inverse=True, return_counts=True)
    means = group_means(values, at.reshape(-1), count)
    which = keys // len(order)
    _, at, count = np.unique(which, return_inverse=True, return_counts=True)
    apart = means - group_means(means, at.reshape(-1), count)[at.reshape(-1)]
    same = which[1:] == which[:-1]
    if same.sum() < PAIRS:
        return None
    total = np.square(apart).sum(axis=0)
    products = (apart[1:] * apart[:-1])[same].sum(axis=0)
    varies = total > 1e-26 * np.square(means).sum(axis=0)  # more than by rounding errors
    return products / np.where(varies, total, np.inf), int(same.sum())


def mark_serial_dependence(
    losses: ExaminedLosses, groups: Sequence[Group], shape: tuple[int, int]
) -> IntArray:
    """Mark the columns of each group with serial dependence."""
    marks = np.zeros(shape, dtype=np.int64)
    for at, _, rows in groups:
        serial = measure_serial(losses.log.design, losses.read(rows), rows)
        if serial is not None:
            marks[at] = np.where(is_serial(*serial), Caution.SERIAL_DEPENDENCE, 0)[losses.spread]
    return marks


def group_means(values: FloatArray, at: IntArray, count: IntArray) -> FloatArray:
    """Average the rows of each group."""
    starts = np.concatenate([[0], np.cumsum(count)[:-1]])
    sums = np.add.reduceat(values[np.argsort(at, kind="stable")], starts, axis=0)
    return sums / count[:, None]


def is_serial(correlation: FloatArray, pairs: int) -> MaskArray:
    """Mark columns with an autocorrelation that is significant and large enough to matter."""
    least, errors = SERIAL
    alike: MaskArray = (correlation > least) & (correlation * np.sqrt(pairs) > errors)
    return alike


# --- duplicated points ----------------------------------------------------------------------------


@dataclass(frozen=True)
class DuplicatedPoints:
    """How many evaluations have exactly the same losses as another.

    Parameters
    ----------
    paired : int
        Evaluations with equally many duplicates, mostly one, all in the same fold.
    total : int
        Evaluations that were examined.
    """

    paired: int
    total: int

    @property
    def share(self) -> float:
        """Fraction of the evaluations with duplicates, all in the same fold."""
        return self.paired / max(1, self.total)


def find_duplicates(
    log: Log, values: FloatArray, rows: Any = slice(None)
) -> DuplicatedPoints | None:
    """Look for points that seem to be stored twice.

    None if there are none: losses with few distinct values also coincide across folds.

    Two copies of a point have the same loss whenever one model tested both, that is, in their
    common folds, and differ otherwise. One column of one repetition is not enough evidence, and 0/1
    losses are not evidence. Neither is one common value, such as the width of all intervals that
    contain the truth, nor one of each fold, such as the error of each model for a constant truth.
    Ratings coincide by chance, and then more often for all models but one.
    """
    design = log.design
    values = values[:, ~np.isnan(values).any(axis=0)]
    if not values.size:
        return None
    if values.shape[1] < 2:
        repetition = cell_numbers(design, repetition_level(design), rows)
        if (repetition == repetition[0]).all():
            return None
    telling = ~((values == 0) | (values == 1)).all(axis=1)
    first = values[telling, 0]
    same = np.flatnonzero(np.diff(np.sort(first)) == 0)
    places, total = np.union1d(same, same + 1), len(first)
    if len(places) < LEAST:  # found without the order, which takes longer
        return None
    tied = np.flatnonzero(telling)[np.argsort(first, kind="stable")[places]]
    repetition = cell_numbers(design, repetition_level(design), rows)[tied]
    _, cell, number = np.unique(
        cell_numbers(design, fold_levels(design), rows), return_inverse=True, return_counts=True
    )
    every = np.column_stack([cell, values + 0.0])[telling]
    cell = cell[tied]
    keys = np.column_stack([repetition, values[tied] + 0.0])
    order = np.lexsort(keys.T[::-1])
    new = np.concatenate([[True], (np.diff(keys[order], axis=0) != 0).any(axis=1)])
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=len(order))
    copies = int(np.bincount(sizes[sizes > 1]).argmax()) if (sizes > 1).any() else 2
    groups = starts[sizes == copies]
    cells = cell[order][groups[:, None] + np.arange(copies)]
    together = (cells == cells[:, :1]).all(axis=1)
    whole = number[cells[:, 0]] == copies  # one loss for each fold
    paired = copies * int(np.count_nonzero(together & ~whole))
    elsewhere = int(sizes[sizes > 1].sum()) - paired
    found = DuplicatedPoints(paired, total)
    if len(groups) < 2 or paired < LEAST or found.share < 0.05 or elsewhere > paired / 10:
        return None
    return None if count_nearly_tied(every) > paired / 10 else found


def count_nearly_tied(keys: FloatArray) -> int:
    """Count the rows that equal another one except for some column other than the first.

    The smallest count of all such columns: models with few distinct losses are equal more often. Of
    a single column, count the rows whose loss also occurs with another first number.
    """
    keys = np.column_stack([keys[:, :1], np.unique(keys[:, 1:], axis=1)])  # without twins
    if keys.shape[1] < 3:
        cells, of_cell = np.unique(keys, axis=0, return_counts=True)
        _, value, number = np.unique(cells[:, 1], return_inverse=True, return_counts=True)
        return int(of_cell[number[value] > 1].sum())
    left_out = 1 + np.flatnonzero(((keys[:, 1:] != 0) & (keys[:, 1:] != 1)).any(axis=0))
    if len(left_out) < 2:  # leaving out 0/1 losses changes little
        left_out = np.arange(1, keys.shape[1])
    tied, *rest = (
        np.unique(some, axis=0, return_counts=True)[1]
        for some in (keys, *(np.delete(keys, j, axis=1) for j in left_out))
    )
    return min(int(count[count > 1].sum()) for count in rest) - int(tied[tied > 1].sum())


def cell_numbers(design: Design, by: tuple[str, ...], rows: Any) -> IntArray:
    """Find the cell of each of some evaluations, as a number: equal in the same cell."""
    at = rows if design.valid is None else np.flatnonzero(design.valid)[rows]
    at = np.arange(design.size)[at] if isinstance(at, slice) else at
    numbers = np.zeros(len(at), dtype=np.int64)
    for name in by:
        level = design.levels[name]
        numbers = numbers * len(level.labels) + level.codes.take(at)
    return numbers


# --- the best of many -----------------------------------------------------------------------------


def has_best_model(log: Log) -> bool:
    """Whether a model may have been chosen because its error is the smallest."""
    of_models = not (log.of_differences or log.of_contrasts or is_resampled(log.design))
    return of_models and TARGET not in log.metadata


def mark_selected(
    log: Log, losses: ExaminedLosses, groups: Sequence[Group], estimate: FloatArray,
    of_units: Sequence[Residuals] | None,
) -> IntArray:  # fmt: skip
    """Mark the best model of each group if many others are near it.

    ``of_units`` are the residuals of the sampling units of each group; None for points.
    """
    marks = np.zeros(estimate.shape, dtype=np.int64)
    for at, n, rows in groups:
        units = residuals_of_points(losses.read(rows), n) if of_units is None else of_units[at][0]
        near, best = count_near_best(log, estimate[at], units)
        marks[at, best[near >= NEAR]] = Caution.SELECTED
    return marks


def residuals_of_points(values: FloatArray, n: int) -> FloatArray:
    """Scale the deviations of losses so that squares sum to the variance of a mean of n points."""
    scaled: FloatArray = (values - values.mean(axis=0)) / np.sqrt(len(values) * n)
    return scaled


def count_near_best(
    log: Log, estimate: FloatArray, residuals: FloatArray
) -> tuple[IntArray, IntArray]:
    """Count the models within two standard errors of the smallest error, itself included.

    Returns the count and the column of the best model for each carried cell. The standard error is
    that of the paired difference: the root of the sum of the squared differences of ``residuals``.
    """
    models = len(log.labels.models)
    columns = np.stack([log.labels.columns(model) for model in range(models)])
    found = estimate[columns]
    lowest = np.fmin.reduce(found)  # NaN if a cell is masked
    se = np.sqrt(np.square(residuals).sum(axis=0))
    ties = found <= lowest + rounding_of_means(estimate, se, len(residuals))[columns]
    best = columns[ties.argmax(axis=0), np.arange(columns.shape[1])]
    near = np.empty(columns.shape[1], dtype=np.int64)
    for cell, one in enumerate(best.tolist()):
        apart = residuals[:, columns[:, cell]] - residuals[:, [one]]
        lead = found[:, cell] - lowest[cell]
        near[cell] = np.count_nonzero(lead <= 2 * np.sqrt(np.square(apart).sum(axis=0)))
    return near, best


DATE = re.compile(r"\d{4}-\d\d(-\d\d)?\b|\d{4}-?Q[1-4]$")
"""Start of a date as text: ``2013-05``, ``2013-05-31T12:00``, ``2013Q2``."""

OTHER_DATE = re.compile(r"(\d\d?)([./-])\d\d?\2\d{4}$|\d{4}/\d\d?/\d\d?$|\d{6}$|\d{8}$")
"""Dates as text in another order than that of time, ``31.12.2024``, or without hyphens."""

OFFSET = re.compile(r"([+-]\d\d:?\d\d|Z)$")
"""End of a time as text: its difference from universal time, which may vary."""

NAMES_OF_DATES = {
    "date", "dates", "datetime", "day", "ds", "hour", "month", "period", "quarter", "time",
    "timestamp", "week", "year",
}  # fmt: skip
"""Names of levels next to the points whose labels may be dates."""

YEARS = 1800, 2100
"""Whole numbers from the first to the last are years."""

EVEN = 1e-6
"""Steps between numbers are equal if they differ by less than this fraction of the first."""


@dataclass(frozen=True, eq=False)
class Times:
    """The times of a log.

    Parameters
    ----------
    place : array of int
        For each evaluation, in the order of the log, the rank of its time.
    order : array of int
        The positions of the codes that occur, in the order of time.
    number : int
        Number of distinct times.
    regular : bool
        Whether the times are equally spaced.
    """

    place: IntArray
    order: IntArray
    number: int
    regular: bool


def is_date(label: object) -> bool:
    """Whether a label is a date or time, perhaps elapsed, or as text: ``2013-05-31``."""
    if isinstance(label, str):
        return DATE.match(label) is not None
    if isinstance(label, (date, timedelta, np.datetime64, np.timedelta64, pd.Period)):
        return True
    return type(label).__module__.partition(".")[0] == "cftime"


def are_sortable(labels: Labels) -> bool:
    """Whether labels can be compared; times with and without a zone cannot, for example."""
    try:
        as_index(labels, plain=True).min()
    except (TypeError, ValueError):  # by version of pandas
        return False
    return True


def is_calendar_number(label: object) -> bool:
    """Whether a whole number may be a year, a month as in 202401, or a day as in 20240131."""
    low, high = YEARS
    if not isinstance(label, (int, np.integer)):
        return False
    later = any(unit * low < label < unit * (high + 1) for unit in (100, 10_000))
    return later or bool(low <= label <= high)


def read_calendar(labels: Labels) -> pd.Index | None:
    """Read labels that are all years, months or days as numbers, or all dates as other text.

    None for other labels, also for text in the order of time, such as ``2024-01-31``.
    """
    index = as_index(labels, plain=True)
    if len(index) and isinstance(index[0], str):
        if OTHER_DATE.match(index[0]):
            return read_other_dates(index)
        if ":" in index[0] and OFFSET.search(index[0]):
            return read_offsets(index)
    if index.dtype.kind not in "iu" or not all(map(is_calendar_number, (index.min(), index.max()))):
        return None
    if index.max() <= YEARS[1]:
        return index
    return read_dates(index.astype(str), "%Y%m%d" if len(str(index.max())) == 8 else "%Y%m")


def read_offsets(index: pd.Index) -> pd.Index | None:
    """Read text such as 2024-10-27 02:00+01:00 as universal times, or days as local times.

    None if some of it has no offset.
    """
    if not all(isinstance(label, str) and OFFSET.search(label[-6:]) for label in index):
        return None
    times = pd.DatetimeIndex(pd.to_datetime(index, format="ISO8601", utc=True, errors="coerce"))
    times = times.tz_localize(None)
    if times.hasnans:
        return None
    if is_regular(times.unique().sort_values()):
        return times
    local = pd.Index([OFFSET.sub("", label) for label in index])
    days = pd.DatetimeIndex(pd.to_datetime(local, format="ISO8601"))
    return days if is_regular(days[times.argsort()].unique()) else times


def read_other_dates(index: pd.Index) -> pd.Index | None:
    """Read text such as 31.12.2024, or 12/31/2024 if some day cannot be a month, or digits."""
    if not all(isinstance(label, str) and OTHER_DATE.match(label) for label in index):
        return None
    if index[0].isdigit():
        digits = all(map(str.isdigit, index))
        return read_calendar(index.astype(np.int64)) if digits else None
    mark = next(letter for letter in index[0] if not letter.isdigit())
    orders = ("%Y{0}%m{0}%d",) if index[0][:4].isdigit() else ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y")
    found = (read_dates(index, order.format(mark)) for order in orders)
    return next((days for days in found if days is not None), None)


def read_dates(text: pd.Index, order: str) -> pd.DatetimeIndex | None:
    """Read dates in one format; None if some cannot be read."""
    for part in (text[:100], text):  # consecutive numbers of points have a day 32 soon
        days = pd.DatetimeIndex(pd.to_datetime(part, format=order, errors="coerce"))
        if days.hasnans:
            return None
    return days


def read_times(labels: Labels) -> pd.Index:
    """Read labels whose ascending order is that of time."""
    index = as_index(labels, plain=True)
    calendar = read_calendar(index) if len(index) else None
    return index if calendar is None else calendar


def rank_labels(labels: Labels) -> IntArray:
    """Return the rank of each label in ascending order of time."""
    return pd.factorize(read_times(labels), sort=True)[0].astype(np.int64)


def find_odd_time(labels: Labels) -> str | None:
    """Name the first label that is not a date like the others; None if all are dates or numbers."""
    index = read_times(labels)
    kind = index.dtype.kind
    if kind in "iufmM" or isinstance(index.dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)):
        return None
    for label in index:
        if not is_date(label) or type(label) is not type(index[0]):
            return spelled(label)
    if are_sortable(index):
        return None
    return spelled(next(label for label in index if not are_sortable([index[0], label])))


def order_dates(labels: Labels, codes: IntArray) -> tuple[IntArray, bool] | None:
    """Sort some labels by time; also return whether they are evenly spaced.

    None for other labels: numbers may count anything, unless all are years or days.
    """
    index = as_index(labels, plain=True)[codes]
    calendar = read_calendar(index)
    if calendar is None and index.dtype.kind in "biuf":
        return None
    index = index if calendar is None else calendar
    if find_odd_time(index) is not None:
        return None
    order = np.argsort(rank_labels(index))
    return order, is_regular(index[order])


def order_times(design: Design) -> Times:
    """Sort the evaluations of a log by the labels of its points, which are times."""
    used, at = np.unique(design.codes("point"), return_inverse=True)
    index = read_times(as_index(design.levels["point"].labels)[used])
    rank = pd.factorize(index, sort=True)[0].astype(np.int64)
    order = np.argsort(rank)
    return Times(rank[at.reshape(-1)], order, len(used), is_regular(index[order]))


def is_regular(index: pd.Index) -> bool:
    """Whether ascending times are equally spaced.

    A step may be any length of time, a number of months, or a number of weekdays.
    """
    if len(index) < 3:
        return True
    if isinstance(index, pd.PeriodIndex):
        return has_one_step(index.astype("int64").to_numpy())
    if index.dtype.kind in "iufm":
        return has_one_step(index.to_numpy())
    if index.dtype == object and not isinstance(index[0], (str, date)):  # climate models
        one_step = len({two - one for one, two in pairwise(index)}) == 1
        return one_step or has_one_step([12 * day.year + day.month for day in index])
    if isinstance(index[0], str) and "Q" in index[0]:
        quarters = pd.PeriodIndex([label.replace("-", "") for label in index], freq="Q")
        return has_one_step(quarters.astype("int64").to_numpy())
    if isinstance(index, pd.DatetimeIndex) and has_one_step(index.asi8):
        return True  # hours of a day of 23 hours; its days have the same local time
    dates = (
        index.tz_localize(None)
        if isinstance(index, pd.DatetimeIndex)
        else pd.to_datetime(index, format="ISO8601", utc=True, errors="coerce").tz_localize(None)
    )
    if dates.hasnans or has_one_step(dates.asi8):
        return not dates.hasnans
    days = dates.to_numpy().astype("datetime64[D]")
    return has_one_step(12 * dates.year + dates.month) or (
        bool(np.is_busday(days).all()) and has_one_step(np.busday_count(days[0], days))
    )


def has_one_step(values: Any) -> bool:
    """Whether ascending numbers are equally spaced."""
    steps = np.diff(values).astype(np.float64)
    return bool(steps[0] > 0 and np.ptp(steps) <= EVEN * steps[0])


TOP_SHARE = 100
"""One in this many losses belongs to the top 1%, which shows outliers."""

FEW = 100
"""Minimum number of losses for a top 1%."""

ENOUGH_FOR_TAIL = 1000
"""Minimum number of losses to estimate a tail."""

TOP = 50
"""A tail is the top 2% of the losses, but at least this many."""


COCHRAN = 25
"""Points for each unit of squared skewness."""

HEAD = 16
"""First losses of a column, which usually show whether there are others than 0, 1 and -1."""

TILE = 1 << 16
"""Losses processed at once, so that intermediate arrays stay in the processor's cache."""


class Shapes(NamedTuple):
    """The shape of the distribution of the losses in each column; NaN if a measure does not apply.

    Constant losses have only the first two numbers. 0/1 losses have a ``rate``, and they and their
    differences have none of the fields below it.
    """

    lowest: FloatArray
    highest: FloatArray
    negative: FloatArray
    rate: FloatArray
    outlier_share: FloatArray
    tail_index: FloatArray
    n_for_skewness: FloatArray
    n_for_tails: FloatArray


def measure_shapes(values: FloatArray, moments: list[FloatArray] | None = None) -> Shapes:
    """Measure the losses of some columns, whose `measure_moments` may be known."""
    if values.ndim == 1:
        return Shapes(*(measure[0] for measure in measure_shapes(values[:, None])))
    lowest, highest = values.min(axis=0), values.max(axis=0)
    varies, negative = lowest < highest, np.count_nonzero(values < 0, axis=0) / len(values)
    few_values = np.ones(values.shape[1], dtype=bool)  # 0/1 losses, or differences of such losses
    for some in (values[:HEAD], values):
        if few_values.any():
            some = some[:, few_values]
            few_values[few_values] = ((some == 0) | (np.abs(some) == 1)).all(axis=0)
    shaped = varies & ~few_values
    moments = measure_moments(values) if moments is None else moments
    return Shapes(
        lowest,
        highest,
        np.where(varies, negative, np.nan),
        np.where(varies & few_values & (lowest == 0), values.mean(axis=0), np.nan),
        *(np.where(shaped, measure, np.nan) for measure in moments),
    )


def measure_moments(values: FloatArray, least: float = 0.0) -> list[FloatArray]:
    """Measure the last four fields of `Shapes`, whatever the losses; see `measure_tails`."""
    if (tile := max(2, TILE // len(values))) < values.shape[1]:
        bounds = block_bounds(values.shape[1], tile)
        parts = [measure_moments(values[:, start:stop], least) for start, stop in bounds]
        return list(map(np.concatenate, zip(*parts, strict=True)))
    deviations = values - values.mean(axis=0)
    squares = deviations * deviations
    points = points_for_skewness(deviations, squares)
    share, index = measure_tails(squares, least)
    log, sample = ENOUGH_FOR_TAILS
    for_tails = np.where(sample * points > len(values), np.inf, log * points)
    for_tails = np.where((share > SHARE) | (index < TAIL), for_tails, 0)
    return [share, index, points, for_tails]


def measure_tails(squares: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Find the share of the top 1% in the sum of squares, and Hill's estimate.

    A share below ``least`` may be given as 0, which is faster. Hill (1975), Annals of Statistics
    3(5), 1163-1174, estimates the tail index of ``|loss - mean|``: moments of higher order do not
    exist. It is infinite for thin tails.
    """
    size, total = len(squares), squares.sum(axis=0)
    share, index = np.zeros_like(total), np.full_like(total, np.inf)
    if size < FEW:
        return share, index
    top = -(-size // TOP_SHARE)
    large = np.flatnonzero(top * squares.max(axis=0) >= least * total)
    keep, tailed = top, size >= ENOUGH_FOR_TAIL
    if tailed:
        keep, large = max(TOP, size // 50) + 1, np.arange(len(total))  # the tail, plus one
    if not len(large):
        return share, index
    part = squares[:, large]
    part.partition(size - keep, axis=0)
    largest = np.sort(part[size - keep :], axis=0)
    share[large] = largest[-top:].sum(axis=0) / np.where(total > 0, total, np.inf)[large]
    if tailed:
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.log(largest / largest[0]).sum(axis=0) / 2 / (keep - 1)
            index = np.where(excess > 0, 1 / excess, np.inf)  # excess is NaN if largest[0] is 0
    return share, index


def points_for_skewness(deviations: FloatArray, squares: FloatArray) -> FloatArray:
    """Cochran's rule: the number of points needed for a normal approximation at 95%.

    Cochran (1977), Sampling Techniques, 3rd edition, section 2.15.
    """
    variance = squares.sum(axis=0) / len(squares)
    varies = np.where(variance > 0, variance, np.inf)
    # in units of the standard deviation, as cubes may overflow; a power of 3 is ten times slower
    third = np.einsum("ij,j,ij->j", squares, 1 / np.sqrt(varies), deviations) / len(squares)
    points: FloatArray = COCHRAN * np.square(third / varies)
    return points
