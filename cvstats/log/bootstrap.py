"""Bootstrap samples of a log as arrays: one row per fit, one column per point."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from cvstats.core.design import LEVELS, Design
from cvstats.core.folds import count_cells
from cvstats.core.threads import block_bounds
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import MOST, LogError, is_number, listed, place, spelled
from cvstats.log.align import match_models
from cvstats.log.log import Log
from cvstats.log.read import read
from cvstats.log.xarray import ArrayLabels, has_loss

T = TypeVar("T")

SLAB = 1 << 17
"""Numbers processed at once, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class BootstrapCounts:
    """How often each point is in the sample of each fit of one data set.

    Parameters
    ----------
    counts : array of int, shape (fits, points)
        How often each point is in the sample that a fit was trained on.
    here : array of bool, shape (fits, points), optional
        Which evaluations exist; None if all do.
    """

    counts: IntArray
    here: MaskArray | None = None

    @property
    def slabs(self) -> Iterator[slice]:
        """Split the fits into slices that fit in the cache."""
        fits, points = self.counts.shape
        return (slice(*bounds) for bounds in block_bounds(fits, SLAB, points))

    def out_of_bag(self, slab: slice) -> MaskArray:
        """Find which evaluations of some fits are out of bag."""
        out: MaskArray = self.counts[slab] == 0
        return out if self.here is None else out & self.here[slab]

    @cached_property
    def times_out(self) -> FloatArray:
        """Number of fits for which each point is out of bag."""
        total = np.zeros(self.counts.shape[1])
        for slab in self.slabs:
            total += self.out_of_bag(slab).sum(axis=0)
        return total

    @cached_property
    def share(self) -> FloatArray:
        """Fraction of the points that are out of bag for each fit."""
        return np.concatenate([self.out_of_bag(slab).mean(axis=1) for slab in self.slabs])

    @cached_property
    def mean_counts(self) -> FloatArray:
        """Mean count of each point."""
        mean_counts: FloatArray = self.counts.mean(axis=0)
        return mean_counts

    @cached_property
    def first_out(self) -> tuple[int, int]:
        """Find an evaluation that is out of bag."""
        point = int((self.times_out > 0).argmax())
        for slab in self.slabs:
            fits = np.flatnonzero(self.out_of_bag(slab)[:, point])
            if len(fits):
                return slab.start + int(fits[0]), point
        raise LogError("no point is out of bag. Expected evaluations of count 0.")

    def covary(self, fits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum, over the fits, the products of each point's counts and a number of each fit.

        ``fits`` has a row for each column of losses. Both factors are centered.
        The second array is the sum of the squared products.
        """
        apart = fits - fits.mean(axis=1, keepdims=True)
        products = np.zeros((len(fits), self.counts.shape[1]))
        squares = np.zeros_like(products)
        for slab in self.slabs:
            drawn = self.counts[slab] - self.mean_counts
            products += apart[:, slab] @ drawn
            squares += apart[:, slab] ** 2 @ np.square(drawn, out=drawn)
        return products, squares


def read_counts(design: Design) -> tuple[IntArray, list[Hashable]]:
    """Read the labels of ``count`` by code (-1: not a count), and list those that are not counts.

    Labels of dropped losses are read too: they still show which points were drawn. Methods require
    that all labels that occur are counts.
    """
    labels = design.levels["count"].labels
    numbers = np.full(len(labels), -1, dtype=np.int64)
    for code in range(len(labels)):
        with suppress(TypeError, ValueError, OverflowError):
            number = int(labels[code])
            if number >= 0 and labels[code] == number:
                numbers[code] = number
    occurring = design.cell_table(("count",)).codes[:, 0].tolist()
    return numbers, [labels[code] for code in occurring if numbers[code] < 0]


def code_of(design: Design, level: str, label: Hashable) -> int | None:
    """Find the code of a label that occurs, such as repetition 0."""
    labels, codes = design.levels[level].labels, design.cell_table((level,)).codes[:, 0].tolist()
    return next((int(code) for code in codes if labels[code] == label), None)


def cached(design: Design, what: Hashable, make: Callable[[], T]) -> T:
    """Look up a cached value for this index, if its labels are unchanged.

    A design caches by the codes of an index, whose labels may be replaced.
    """
    labels = [np.asarray(level.labels) for level in design.levels.values()]
    before, found = design.facts.get(what, ((), None))
    if len(before) != len(labels) or not all(map(np.array_equal, before, labels)):
        found = make()
        design.facts[what] = labels, found
    return cast(T, found)


def count_draws(design: Design) -> tuple[IntArray, IntArray]:
    """Count the rows of count 0, 1 and above per (sample, repetition); also return its codes."""

    def make() -> tuple[IntArray, IntArray]:
        numbers, _ = read_counts(design)
        codes, rows = count_cells(design, ("sample", "repetition", "count"))
        key = codes[:, 0] * (codes[:, 1].max(initial=0) + 1) + codes[:, 1]
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        found = np.zeros((len(first), 3), dtype=np.int64)
        np.add.at(found, (group, np.minimum(numbers[codes[:, 2]], 2)), rows)
        return codes[first, :2], found

    return cached(design, "count_draws", make)


def apparent_fit(design: Design) -> int | None:
    """Find repetition 0, the fit on the sample itself; None if it is a bootstrap sample.

    Counts of 0 next to others show that it is a bootstrap sample like the rest, and so do counts
    above 1 if no repetition has a point out of bag.
    """
    code = code_of(design, "repetition", 0)
    if code is None:
        return None
    groups, found = count_draws(design)
    mine = found[groups[:, 1] == code]
    drawn = np.any((mine[:, 0] > 0) & (mine[:, 1:].sum(axis=1) > 0))
    again = mine[:, 2].any() and not found[:, 0].any()
    return None if drawn or again else code


@dataclass(frozen=True, eq=False)
class Resample:
    """The fits of one data set, and the rows of their losses in the log.

    Parameters
    ----------
    label : hashable
        The label of the data set in the level ``sample``.
    fits : sequence
        The labels of the bootstrap fits in the level ``repetition``.
    bags : BootstrapCounts
        The counts of the bootstrap fits.
    rows : array of int, shape (fits, points), or slice
        The row of each loss; a slice if the rows are in this order.
    apparent : BootstrapCounts, optional
        The fit on the data set itself; its counts are the weights of the points.
    apparent_rows : the same, shape (1, points), optional
        The rows of its losses.
    """

    label: Hashable
    fits: Sequence[Hashable]
    bags: BootstrapCounts
    rows: IntArray | slice
    apparent: BootstrapCounts | None
    apparent_rows: IntArray | slice | None

    def losses(self, values: FloatArray) -> FloatArray:
        """Lay out a column of losses, fits by points."""
        return values[self.rows].reshape(self.bags.counts.shape)

    def check_draws(self) -> None:
        """Refuse samples that are not n draws from n points."""
        n = self.bags.counts.shape[1]
        draws = self.bags.counts.sum(axis=1)
        wrong = np.flatnonzero(draws != n)
        if len(wrong):
            found = [f"{draws[b]:,} in {place({'repetition': self.fits[b]})}" for b in wrong[:MOST]]
            raise LogError(
                f"the log has {n:,} points, and the counts add up to {listed(found, len(wrong))}. "
                f"Expected as many draws as points in every bootstrap sample. Log every point in "
                f"each repetition, with its count; for samples drawn in another way, use "
                f"location_shifted."
            )


@dataclass(frozen=True, eq=False)
class Codes:
    """The labels of a level that occur, sorted if they can be."""

    codes: IntArray
    labels: Any
    number: NDArray[Any]

    @classmethod
    def of(cls, design: Design, level: str) -> Codes:
        """Assign numbers from 0 to the labels that occur, and -1 to all others."""
        if level not in design.levels:
            return cls(np.zeros(1, dtype=np.int64), [0], np.zeros(design.size, dtype=np.int8))
        stored = design.levels[level]
        used = design.cell_table((level,)).codes[:, 0]
        with suppress(TypeError):  # labels that cannot be sorted keep the order of their codes
            used = used[np.argsort(np.asarray(stored.labels)[used], kind="stable")]
        codes = stored.block(0, design.size)
        if np.array_equal(used, np.arange(len(stored.labels))):
            return cls(used, stored.labels, codes)
        number = np.full(len(stored.labels) + 1, -1)
        number[used] = np.arange(len(used))
        return cls(used, stored.labels, number[codes])

    def label(self, number: int) -> Hashable:
        """Return the label of a number."""
        found: Hashable = self.labels[int(self.codes[number])]
        return found

    def __len__(self) -> int:
        """Count the labels."""
        return len(self.codes)


def without_undrawn(log: Log) -> Log:
    """Drop rows that were not drawn and have no loss: cells of a dense table, not evaluations."""
    design = log.design
    undrawn = code_of(design, "count", 0) if "count" in design.levels else None
    if undrawn is None:
        return log
    keep = has_loss(log.losses, design.size)
    keep |= design.levels["count"].block(0, design.size) != undrawn
    keep &= design.marks
    return log if keep.all() else replace(log, design=replace(design, valid=keep, facts={}))


def resamples(design: Design) -> list[Resample]:
    """Lay out the fits of each data set (cached).

    Rows whose loss was dropped keep their counts.

    Raises
    ------
    LogError
        If a repetition lacks points of its data set.
    """

    def make() -> list[Resample]:
        rows = Rows.of(design)
        return [to_resample(rows, s, part) for s, part in enumerate(rows.by_sample())]

    return cached(design, "resamples", make)


@dataclass(frozen=True, eq=False)
class Draws:
    """The points that were drawn, fit after fit, and the rows of their losses in the log.

    Parameters
    ----------
    fit, count : array of int, shape (draws,)
        The number of the fit, and how often its sample contains the point.
    rows : array of int, shape (draws,), or slice
        The row of each loss.
    fits, points : int
        Number of fits and of distinct points.
    whole : bool
        Whether all samples have the same number of draws, at least one per point.
    """

    fit: IntArray
    count: IntArray
    rows: IntArray | slice
    fits: int
    points: int
    whole: bool


def draws(design: Design) -> Draws:
    """List the points that were drawn, without the fit on the data themselves (cached)."""

    def make() -> Draws:
        rows = Rows.of(design)
        order, fit = rows.order, rows.fit.number[rows.order]
        keep = fit != rows.own
        if rows.here is not None:
            keep &= rows.here[order]
        if not keep.all():
            order = (np.arange(design.size) if isinstance(order, slice) else order)[keep]
            fit = fit[keep]
        occurring = np.bincount(fit, minlength=len(rows.fit)) > 0
        points = np.bincount(rows.point.number[order], minlength=len(rows.point))
        number = (np.cumsum(occurring) - 1)[fit]
        # Points that missing="drop" omitted were drawn all the same, and their counts are kept.
        logged = rows.fit.number[rows.order]
        total = np.bincount(logged, rows.count[rows.order], minlength=len(rows.fit))[occurring]
        n = int((points > 0).sum())
        whole = bool((total == total[0]).all() and total[0] >= n)
        return Draws(number, rows.count[order], order, int(occurring.sum()), n, whole)

    return cached(design, "draws", make)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a log, sorted by sample, fit and point."""

    sample: Codes
    fit: Codes
    point: Codes
    count: NDArray[Any]
    here: MaskArray | None
    order: IntArray | slice
    own: int

    @classmethod
    def of(cls, design: Design) -> Rows:
        """Sort the rows unless they are sorted; number points within sources if necessary."""
        numbers, _ = read_counts(design)
        largest = int(numbers.max(initial=0))
        table = np.append(np.maximum(numbers, 0), 0).astype(np.min_scalar_type(largest))
        codes = design.levels["count"].block(0, design.size)
        sample, fit, point = (Codes.of(design, x) for x in ("sample", "repetition", "point"))
        here = design.valid
        usable = np.append(numbers, -1)[codes] >= 0
        for level in (sample, fit, point):
            usable &= level.number >= 0
        rows = slice(0, design.size) if usable.all() else np.flatnonzero(usable)
        key = ravel_codes(sample, fit, point)
        if not np.all(np.diff(key[rows]) > 0):
            rows = argsort_by(rows, key)
            mine = rows if here is None else rows[here[rows]]
            if np.any(np.diff(key[mine]) == 0):  # the points of each source have their own names
                point = nest_points_in_sources(design, point, here)
                rows = argsort_by(rows[point.number[rows] >= 0], ravel_codes(sample, fit, point))
        if len(sample) > 1:  # the number of repetition 0 if it is the fit on the data, otherwise -1
            own = next((b for b in range(len(fit)) if fit.label(b) == 0), -1)
        else:
            code = apparent_fit(design)
            own = -1 if code is None else int(np.flatnonzero(fit.codes == code)[0])
        return cls(sample, fit, point, table[codes], here, rows, own)

    def by_sample(self) -> list[IntArray | slice]:
        """Split the rows where the sample changes."""
        if len(self.sample) == 1:
            return [self.order]
        labels = self.sample.number[self.order]
        starts = np.searchsorted(labels, np.arange(len(self.sample) + 1)).tolist()
        spans = list(pairwise(starts))
        if isinstance(self.order, slice):
            return [slice(start, stop) for start, stop in spans]
        return [self.order[start:stop] for start, stop in spans]


def ravel_codes(sample: Codes, fit: Codes, point: Codes) -> IntArray:
    """Combine sample, fit and point into one number."""
    key = sample.number.astype(np.int64)
    for level in (fit, point):
        key *= len(level)
        key += level.number
    return key


def argsort_by(rows: IntArray | slice, key: IntArray) -> IntArray:
    """Sort rows by their keys."""
    order = np.argsort(key[rows], kind="stable")
    return order + rows.start if isinstance(rows, slice) else rows[order]


def nest_points_in_sources(design: Design, point: Codes, here: MaskArray | None) -> Codes:
    """Assign numbers to points within sources, so that points with the same name differ."""
    source = Codes.of(design, "source")
    pair = source.number.astype(np.int64) * len(point) + point.number
    known = (source.number >= 0) & (point.number >= 0)
    used = np.unique(pair[known if here is None else known & here])
    number = np.minimum(np.searchsorted(used, pair), len(used) - 1)
    number[~known | (used[number] != pair)] = -1
    return Codes(point.codes[used % len(point)], point.labels, number)


def to_resample(rows: Rows, s: int, part: IntArray | slice) -> Resample:
    """Lay out one data set from its rows."""
    here = None if rows.here is None or rows.here[part].all() else rows.here[part]
    fit, point = rows.fit.number[part], rows.point.number[part]
    fits = unique_codes(fit, here, len(rows.fit))
    points = unique_codes(point, here, len(rows.point))
    where = np.arange(part.start, part.stop) if isinstance(part, slice) else part
    tested = None
    if here is None and len(where) == len(fits) * len(points):  # sorted: nothing is missing
        table = where.reshape(len(fits), len(points))
    else:
        table = np.full((len(fits), len(points)), -1)
        for some in (slice(None),) if here is None else (~here, here):  # losses before gaps
            b, i = fit[some], point[some]
            known = np.isin(b, fits) & np.isin(i, points)
            at = np.searchsorted(fits, b[known]), np.searchsorted(points, i[known])
            table[at] = where[some][known]
        if (table < 0).any():
            raise missing_rows_error(rows, fits, points, table < 0)
        tested = None if rows.here is None else rows.here[table]
    counts = rows.count[part].reshape(table.shape) if tested is None else rows.count[table]
    mine = np.flatnonzero(fits == rows.own)
    boots = slice(len(mine), None) if not mine.any() else np.flatnonzero(fits != rows.own)
    own = counts[mine] if counts[mine].any() else np.ones_like(counts[mine])
    return Resample(
        rows.sample.label(s),
        [rows.fit.label(int(b)) for b in fits[boots]],
        BootstrapCounts(counts[boots], None if tested is None else tested[boots]),
        as_slice(table[boots]),
        BootstrapCounts(own, None if tested is None else tested[mine]) if len(mine) else None,
        as_slice(table[mine]) if len(mine) else None,
    )


def unique_codes(number: NDArray[Any], here: MaskArray | None, size: int) -> IntArray:
    """Find the numbers of the labels that occur."""
    return np.flatnonzero(np.bincount(number if here is None else number[here], minlength=size))


def missing_rows_error(rows: Rows, fits: IntArray, points: IntArray, gaps: MaskArray) -> LogError:
    """Name the points that have no row in some repetition."""
    b, i = np.nonzero(gaps)
    where = [
        place({"repetition": rows.fit.label(fits[b[k]]), "point": rows.point.label(points[i[k]])})
        for k in range(min(MOST, len(b)))
    ]
    return LogError(
        f"the log has no row for {listed(where, len(b))}. Expected every point of a data set in "
        "each of its bootstrap samples, because its count shows whether it was drawn. Log the "
        "missing evaluations, with their counts."
    )


def as_slice(table: IntArray) -> IntArray | slice:
    """Return a slice for consecutive rows, so that no loss is copied."""
    first, last = int(table[0, 0]), int(table[-1, -1])
    if first >= 0 and last - first + 1 == table.size and np.all(np.diff(table.ravel()) == 1):
        return slice(first, last + 1)
    return table


Rates: TypeAlias = float | Mapping[Any, Any] | ArrayLike | pd.Series | pd.DataFrame | xr.DataArray

NAME = "no_information"


def no_information_of(
    log: Log, given: Rates | None, *, method: str, without: str, samples: Sequence[Hashable] = ()
) -> FloatArray:
    """Find the no-information rate of each column, as passed in or as stored in the attrs.

    With ``samples``, one row for each of them.

    Raises
    ------
    LogError
        If it is neither passed in nor in the attrs (``without`` is the option that avoids it), or
        if it does not match the models and samples.
    """
    rates = log.metadata.get(NAME) if given is None else given
    if rates is None:
        many = " of each sample" if samples else ""
        raise LogError(
            f"{method} needs the no-information rate{many}, which is the mean loss over all pairs "
            "of a prediction and a true value. Pass no_information=, or set "
            "losses.attrs['no_information'], as cvstats.evaluate does. To compute it, use "
            "loss(y[:, None], f[None, :]).mean(), where y contains the true values and f the "
            "predictions of the model fitted to the whole sample. To do without it, pass "
            f"{without}."
        )
    found = rates_by_sample(log, rates, list(samples)) if samples else rates_by_model(log, rates)
    if not np.isfinite(found).all():
        raise LogError("no_information is not finite for every model. Expected finite numbers.")
    return found


def rates_by_model(log: Log, rates: Any) -> FloatArray:
    """Return the number of each column."""
    width = log.losses.width
    models = list(log.labels.models)
    if isinstance(rates, xr.DataArray):
        return rates_of_array(log, rates)
    if is_scalar(rates):
        return np.full(width, to_float(rates))
    if is_mapping(rates) and models == [None] and len(rates) == 1:
        rates = [value for _, value in rates.items()]
    return repeat_by_model(log, rates_by_label(rates, models, "model"))


def rates_by_sample(log: Log, rates: Any, samples: list[Hashable]) -> FloatArray:
    """Return the number of each column for each sample, one row per sample."""
    models = list(log.labels.models)
    if is_scalar(rates):
        raise LogError(
            f"no_information={rates!r} is one number, but the log has {len(samples):,} samples. "
            "Expected a number for each, in the order of their labels or by label."
        )
    if is_mapping(rates) and any(np.ndim(v) or is_mapping(v) for _, v in rates.items()):
        refuse_missing_labels(rates, models, "model")
        parts = [rates_by_label(rates[model], samples, "sample") for model in models]
        table = np.stack(parts, axis=1)
    elif not is_mapping(rates) and np.ndim(rates) == 2:
        table = np.asarray(rates, dtype=np.float64)
        if table.shape != (len(samples), len(models)):
            raise LogError(
                f"no_information has the shape {table.shape}. Expected {len(samples):,} samples "
                f"by {len(models):,} models."
            )
    elif len(models) > 1:
        raise LogError(
            f"no_information has one number for each sample, but the log has {len(models):,} "
            f"models. Expected numbers for each model: no_information={{{models[0]!r}: […], …}}."
        )
    else:
        table = rates_by_label(rates, samples, "sample")[:, None]
    return np.stack([repeat_by_model(log, row) for row in table])


def is_scalar(rates: Any) -> bool:
    """Whether this is one number."""
    return np.ndim(rates) == 0 and not is_mapping(rates)


def is_mapping(rates: Any) -> bool:
    """Whether the numbers have labels."""
    return isinstance(rates, (Mapping, pd.Series, pd.DataFrame))


def rates_by_label(rates: Any, labels: list[Hashable], what: str) -> FloatArray:
    """Sort numbers by the labels if they have any; otherwise keep their order."""
    if is_mapping(rates):
        refuse_missing_labels(rates, labels, what)
        return np.array([to_float(rates[label]) for label in labels])
    values = [to_float(value) for value in np.asarray(rates).tolist()]
    if len(values) != len(labels):
        raise LogError(
            f"no_information has {len(values):,} numbers, but the log has {len(labels):,} "
            f"{what}s. Expected one for each."
        )
    return np.array(values)


def refuse_missing_labels(rates: Any, labels: list[Hashable], what: str) -> None:
    """Refuse labels without a number."""
    missing = [label for label in labels if label not in rates]
    if missing:
        known = listed([spelled(label) for label, _ in rates.items()]) or "none"
        raise LogError(
            f"no_information has no number for {what} {listed(map(spelled, missing))}; it has them "
            f"for {known}. Expected one for each {what} of the log."
        )


def to_float(value: Any) -> float:
    """Read one number."""
    if not is_number(value) or not math.isfinite(value):
        raise LogError(f"no_information holds {value!r}. Expected a finite number.")
    return float(value)


def repeat_by_model(log: Log, values: Sequence[float] | FloatArray) -> FloatArray:
    """Repeat the number of each model for all its columns (carried cells)."""
    found = np.empty(log.losses.width)
    for model, value in enumerate(values):
        found[log.labels.columns(model)] = value
    return found


def rates_of_array(log: Log, rates: xr.DataArray) -> FloatArray:
    """Broadcast a DataArray over the carried dimensions, by label."""
    labels = log.labels
    if not isinstance(labels, ArrayLabels) or not set(rates.dims) <= set(labels.dims):
        raise LogError(
            f"no_information is an array over {tuple(map(str, rates.dims))}. Expected a number "
            "for each model, or an array over the carried dimensions of the log."
        )
    coords = {dim: labels.coords[dim] for dim in labels.dims if dim in labels.coords}
    template = xr.DataArray(np.zeros(labels.sizes), dims=labels.dims, coords=coords)
    laid, _ = xr.align(rates.reset_coords(drop=True), template, join="right")
    table = laid.broadcast_like(template).transpose(*labels.dims)
    return np.asarray(table.values, dtype=np.float64).reshape(-1)


def leave_one_out_means(log: Log, given: Any, missing: str) -> FloatArray:
    """Average leave-one-out losses, for each column of the log."""
    if not is_log(given):
        try:
            values = np.asarray(given, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError, OverflowError):
            raise LogError(
                f"leave_one_out={given!r} is not numeric. Expected a log of "
                f"leave-one-out cross-validation, or a loss for each point."
            ) from None
        if log.losses.width > 1:
            raise LogError(
                f"leave_one_out has one loss for each point, but the log has "
                f"{log.losses.width:,} models or cells. Expected a log with the same models and "
                "cells."
            )
        points = log.design.number("point")
        if len(values) < points or not np.isfinite(values).all():
            raise LogError(
                f"leave_one_out has {np.isfinite(values).sum():,} finite losses, but the log has "
                f"{points:,} points. Expected one for each."
            )
        return np.array([values[0] + (values - values[0]).mean()])
    given = reorder_cells(log, given)
    other = read(given, missing=missing)
    check_points(log.design, other.design)
    mine, yours = carried_sizes(log), carried_sizes(other)
    if mine != yours:
        raise LogError(
            f"leave_one_out has {yours or 'no carried dimension'} and the log has "
            f"{mine or 'no carried dimension'}. Expected the same cells."
        )
    means = other.moments(()).location[0]
    columns, own = columns_by_name(log), columns_by_name(other)
    found = np.empty(log.losses.width)
    for at, partner in enumerate(match_models(list(log.labels.models), list(other.labels.models))):
        found[columns[at]] = means[own[partner]]
    return found


def carried_sizes(log: Log) -> dict[Hashable, int]:
    """Return the sizes of the carried dimensions of a log, without models."""
    labels: Any = log.labels
    sizes = dict(zip(labels.dims, labels.sizes, strict=True))
    return {dim: size for dim, size in sizes.items() if dim != "model"}


def reorder_cells(log: Log, given: Any) -> Any:
    """Reorder the carried cells of a log of arrays to match another log, by label."""
    if not isinstance(given, xr.DataArray | xr.Dataset):
        return given
    coords = getattr(log.labels, "coords", {})
    for dim in carried_sizes(log):
        own = given.indexes.get(dim)
        if dim not in coords or own is None:
            continue
        labels = coords[dim].to_index()
        places = own.get_indexer(labels) if own.is_unique else np.array([-1])
        if (places < 0).any() or len(own) != len(labels):
            raise LogError(
                f"leave_one_out and the log have different labels along {dim!r}. Expected the same "
                f"carried cells. Select those of the log: leave_one_out.sel({dim}=log[{dim!r}])."
            )
        given = given.isel({dim: places})
    return given


def columns_by_name(log: Log) -> IntArray:
    """List the columns, models by carried cells, with the carried dimensions sorted by name."""
    columns, sizes = log.columns_by_cell(), carried_sizes(log)
    grid = columns.reshape(len(columns), *sizes.values())
    order = [list(sizes).index(dim) + 1 for dim in sorted(sizes, key=str)]
    return grid.transpose(0, *order).reshape(len(columns), -1)


def check_points(sample: Design, other: Design) -> None:
    """Refuse leave-one-out losses that lack a point of the sample."""
    points = sample.number("point")
    number = other.splits().points or other.size
    if number < points:
        raise LogError(
            f"leave_one_out has {number:,} points, but the log has {points:,}. Expected "
            f"leave-one-out cross-validation of the whole sample."
        )
    if "point" not in other.levels:
        return
    known = set(list_points(other))
    lost = [label for label in list_points(sample) if label not in known]
    if lost:
        raise LogError(
            f"leave_one_out has no loss of {listed([spelled(label) for label in lost])}. "
            "Expected leave-one-out cross-validation of the sample itself, with the same names "
            "of points."
        )


def list_points(design: Design) -> list[Hashable]:
    """List the labels of the points that occur."""
    codes = design.cell_table(("point",)).codes[:, 0]
    labels = design.levels["point"].labels
    return [labels[code] for code in codes.tolist()]


def is_log(given: object) -> bool:
    """Whether this is a log; a Series without any known level is an array."""
    if isinstance(given, pd.Series):
        return any(name in LEVELS for name in given.index.names)
    return isinstance(given, (pd.DataFrame, xr.DataArray, xr.Dataset))
