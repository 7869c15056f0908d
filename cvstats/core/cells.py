"""Counts, means and centered second moments of cells, and how they merge.

A cell contains the losses that share a key: one repetition and fold, one source, and so on. It is
stored as ``(count, mean, m2)`` with ``m2`` the sum of squared deviations from the mean, so that
precision is kept if the losses are large and their spread is small. Means are relative to an
origin, one for each column, so that differences between cells keep their digits too. Two cells with
the same key merge exactly (Chan, Golub and LeVeque, doi:10.1080/00031305.1983.10483115).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.design import Level
from cvstats.core.threads import block_bounds
from cvstats.core.types import FloatArray, IntArray, Labels, MaskArray

TILE = 1 << 17
"""Numbers merged at once, so that intermediate arrays stay in the processor's cache."""

NEAR = 64.0
"""Means within this many standard deviations of zero need no origin."""

SLACK = 1e-6
"""Tolerance for a sum of 0/1 losses to be a whole number."""

ROUNDING = 1e-13
"""The same tolerance relative to the number of losses, for very many losses."""

State = tuple[FloatArray, FloatArray, FloatArray]


def choose_origin(count: FloatArray, mean: FloatArray, m2: FloatArray) -> FloatArray:
    """Choose a number near the losses of each column; 0 if they are around zero.

    ``mean`` and ``m2`` have the shape of ``count`` and a last axis for the columns. The origin is a
    multiple of a power of two near the standard deviation, so that parts of a log usually have the
    same origin, and the difference of two origins is exact.
    """
    weight, axes = (count / count.sum())[..., None], tuple(range(count.ndim))
    with np.errstate(all="ignore"):  # a column of NaN, or of losses beyond 1e150, gets 0
        location = (weight * mean).sum(axis=axes)
        variance = (m2 / count.sum() + weight * (mean - location) ** 2).sum(axis=axes)
        far = location**2 > NEAR**2 * variance
        if not far.any():
            return np.zeros(len(location))
        spread = np.sqrt(variance)
        unit = np.where(spread > 0, np.ldexp(1.0, np.frexp(spread)[1]), 0.0)
        unit = np.maximum(unit, np.spacing(np.abs(location)))
        origin = np.rint(location / unit) * unit
    return np.where(far & np.isfinite(origin), origin, 0.0)


def mean_and_squares(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average rows, and sum the squared deviations; exactly zero if all rows are equal."""
    deviations = rows - rows[0]
    middle = deviations.mean(axis=0)
    return rows[0] + middle, ((deviations - middle) ** 2).sum(axis=0)


def pool(count: FloatArray, mean: FloatArray, m2: FloatArray) -> State:
    """Merge the same cells from several blocks of a log.

    ``count`` has shape (blocks, cells), ``mean`` and ``m2`` (blocks, cells, columns). A block may
    lack a cell; a cell that all of them lack gets count 0 and mean 0. The result does not depend on
    the order of the blocks, because terms are sorted before they are added.
    """
    if len(count) == 1:
        return count[0], mean[0], m2[0]
    total = count.sum(axis=0)
    least = np.where((count > 0)[:, :, None], mean, np.inf).min(axis=0)
    least = np.where((total > 0)[:, None], least, 0.0)
    n = count[:, :, None]
    pooled = least + sorted_sum(n * (mean - least)) / np.maximum(total, 1)[:, None]
    apart = mean - pooled
    return total, pooled, sorted_sum(m2 + n * apart * apart)


def sorted_sum(terms: FloatArray) -> FloatArray:
    """Sum over the first axis from the smallest term to the largest."""
    total: FloatArray = np.sort(terms, axis=0).sum(axis=0)
    return total


def sort_labels(labels: Iterable[Hashable]) -> IntArray:
    """Find the order of labels; those that cannot be sorted keep theirs."""
    names: list[Any] = list(labels)
    order = list(range(len(names)))
    with suppress(TypeError):
        order.sort(key=names.__getitem__)
    return np.array(order, dtype=np.int64)


def find_runs(codes: NDArray[np.signedinteger[Any]]) -> IntArray:
    """Find where each run of equal rows begins."""
    if not codes.shape[1]:
        return np.zeros(1, dtype=np.int64)
    new = (codes[1:] != codes[:-1]).any(axis=1)
    return np.concatenate([[0], np.flatnonzero(new) + 1])


@dataclass(frozen=True, eq=False)
class Cells:
    """The moments of a log: a row per cell, a column per model (or carried grid cell).

    Parameters
    ----------
    levels : tuple of str
        The levels whose labels identify a cell, such as ``("repetition", "fold")``.
    labels : tuple of sequences
        The labels of each level.
    codes : array of int, shape (cells, levels)
        The positions of the labels of each cell in ``labels``.
    count : array, shape (cells,)
        Number of losses in each cell, never zero.
    mean, m2 : array, shape (cells, columns)
        Mean loss minus the origin of its column, and sum of squared deviations from the mean (in
        squared units of the loss).
    origin : array, shape (columns,)
        A number near the losses of each column; 0 if they are around zero.
    grouped : int
        How many of the first levels are those of ``by=``, whose groups are computed separately.
        Cells are sorted by group.
    prints : array of uint64, shape (cells,), optional
        Sums of the hashes of the points of each cell, for logs that are read in batches.

    Notes
    -----
    ``one + two`` merges the moments of two parts of a log, cell by cell, matching labels. Parts are
    not checked against each other: a point that occurs in both is counted twice.

    Examples
    --------
    >>> import numpy as np
    >>> from cvstats.core.cells import Cells
    >>> zero = np.zeros(1)
    >>> a = Cells(
    ...     ("fold",), (("x", "y"),), np.array([[0], [1]]), np.array([2.0, 1.0]),
    ...     np.array([[1.5], [6.0]]), np.array([[0.5], [0.0]]), zero,
    ... )
    >>> b = Cells(("fold",), (("x",),), zero[:, None].astype(int), zero + 1, zero[:, None] + 3,
    ...     zero[:, None], zero)
    >>> whole = a + b
    >>> whole.count, whole.location[:, 0], whole.m2[:, 0]
    (array([3., 1.]), array([2., 6.]), array([2., 0.]))
    """

    levels: tuple[str, ...]
    labels: tuple[Labels, ...]
    codes: IntArray
    count: FloatArray
    mean: FloatArray
    m2: FloatArray
    origin: FloatArray
    grouped: int = 0
    prints: NDArray[np.uint64] | None = None

    @cached_property
    def starts(self) -> IntArray:
        """Find the first cell of each group."""
        return find_runs(self.codes[:, : self.grouped])

    @cached_property
    def n_cells(self) -> IntArray:
        """Count the cells of each group, one row per group."""
        return np.diff(self.starts, append=len(self.count))[:, None]

    def sum(self, values: NDArray[Any]) -> FloatArray:
        """Sum values of cells, one row per group."""
        rows = values.reshape(len(self.count), -1).astype(np.float64, copy=False)
        if len(self.starts) == 1:
            return np.asarray(rows.sum(axis=0, keepdims=True))
        return np.asarray(np.add.reduceat(rows, self.starts, axis=0))

    def average(self, values: NDArray[Any]) -> FloatArray:
        """Average values of cells with equal weights, one row per group."""
        return self.sum(values) / self.n_cells

    def first(self, values: NDArray[Any]) -> NDArray[Any]:
        """Select the values of the first cell of each group."""
        return values.reshape(len(self.count), -1)[self.starts]

    def repeat(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Repeat the values of each group for its cells."""
        return numbers if len(numbers) == 1 else np.repeat(numbers, self.n_cells[:, 0], axis=0)

    def mean_and_squares(self) -> tuple[FloatArray, FloatArray]:
        """Average cell means with equal weights, and sum their squared deviations, by group.

        The squared deviations are exactly zero if all means are equal.
        """
        apart = self.mean - self.repeat(self.first(self.mean))
        middle = self.average(apart)
        return self.first(self.mean) + middle, self.sum((apart - self.repeat(middle)) ** 2)

    def within(self, levels: Sequence[str]) -> Cells:
        """Group by some more levels."""
        names = dict.fromkeys((*self.levels[: self.grouped], *levels))
        grouped, names = len(names), names | dict.fromkeys(self.levels)
        if tuple(names) == self.levels:
            return replace(self, grouped=grouped)
        at = list(map(self.levels.index, names))
        order = np.lexsort(self.codes[:, at[::-1]].T)
        return replace(self.take(order).reorder_levels(tuple(names)), grouped=grouped)

    @property
    def location(self) -> FloatArray:
        """Mean loss of each cell; ``mean`` is more precise for differences between cells."""
        return self.origin + self.mean

    @property
    def squares(self) -> FloatArray:
        """Sum of the squared losses of each cell."""
        return self.m2 + self.count[:, None] * self.location**2

    @property
    def variance(self) -> FloatArray:
        """Variance of the losses of each cell; NaN of a single loss."""
        n = self.count[:, None]
        return self.m2 / np.where(n > 1, n - 1, np.nan)

    def tabulate(self, values: NDArray[Any], nothing: float) -> NDArray[Any]:
        """Put values of cells into a table of all labels, an axis for each level."""
        table = np.full((*map(len, self.labels), *values.shape[1:]), nothing)
        table[tuple(self.codes.T)] = values if self.levels else values[0]
        return table

    def cell_means(self) -> Cells:
        """Treat the mean of each cell as a single loss."""
        return replace(self, count=np.ones_like(self.count), m2=np.zeros_like(self.m2))

    def zero_one(self) -> MaskArray:
        """Find the columns whose losses are all 0 or 1, judging by the sums of all cells.

        One group after the other. The losses of a cell and their squares must have the same sum, a
        whole number. Among losses between 0 and 1, and among whole numbers, this holds only for 0
        and 1. A sum of 0 counts only if all losses are zero, not merely small.
        """
        n, share = self.count[:, None], self.location
        total = n * share
        slack = np.maximum(SLACK, ROUNDING * n)
        apart = np.rint(total)
        apart -= total
        whole = np.abs(apart, out=apart) <= slack
        possible = np.logical_and.reduceat(whole, self.starts)
        if not possible.any():
            return possible.reshape(-1)
        same = np.abs(self.m2 - total * (1 - share)) <= slack
        noise = ROUNDING * (np.abs(self.origin) + np.abs(share).max(axis=0, initial=0.0))
        zeros = (np.abs(share) <= noise) & (self.m2 <= n * noise**2)
        sums = whole & same & (zeros | (np.rint(total) != 0))
        found: MaskArray = np.logical_and.reduceat(sums, self.starts)
        return found.reshape(-1)

    def shift_origin(self, origin: FloatArray) -> Cells:
        """Shift the means to another origin."""
        return replace(self, mean=self.mean + (self.origin - origin), origin=origin)

    def take_columns(self, columns: IntArray) -> Cells:
        """Select columns."""
        return replace(
            self, mean=self.mean[:, columns], m2=self.m2[:, columns], origin=self.origin[columns]
        )

    def turn_signs(self, signs: IntArray) -> Cells:
        """Reverse the signs of differences."""
        return replace(
            self, mean=self.mean * signs, m2=self.m2 * np.abs(signs), origin=self.origin * signs
        )

    def reorder_levels(self, levels: tuple[str, ...]) -> Cells:
        """Put the levels into another order, and leave the cells where they are."""
        at = list(map(self.levels.index, levels))
        labels = tuple(map(self.labels.__getitem__, at))
        return replace(self, levels=levels, labels=labels, codes=self.codes[:, at])

    def without_columns(self) -> Cells:
        """Keep only the counts."""
        return self.take_columns(np.arange(0))

    def key(self, cell: int) -> dict[str, Hashable]:
        """Look up the labels of a cell."""
        known = zip(self.levels, self.labels, self.codes[cell].tolist(), strict=True)
        return {name: labels[code] for name, labels, code in known}

    def to_levels(self) -> dict[str, Level]:
        """Make levels of a log with a row for each cell."""
        return dict(zip(self.levels, map(Level, self.labels, self.codes.T), strict=True))

    def take(self, rows: Any) -> Cells:
        """Select cells, in their order."""
        return replace(
            self, codes=self.codes[rows], count=self.count[rows], mean=self.mean[rows],
            m2=self.m2[rows], prints=None if self.prints is None else self.prints[rows],
        )  # fmt: skip

    def over(self, levels: Sequence[str], *, repeated: bool = False) -> Cells:
        """Merge the cells of each group that have the same labels on ``levels``.

        Each run of them is merged about the mean of its first cell.

        Parameters
        ----------
        levels : sequence of str
            Some of this object's levels; without any, one cell per group remains.
        repeated : bool
            Whether several cells may have the same labels on all levels.

        Returns
        -------
        Cells
            Cells sorted by the positions of their labels.
        """
        names = tuple(dict.fromkeys((*self.levels[: self.grouped], *levels)))
        if names == self.levels and not repeated:
            return self
        keep = list(map(self.levels.index, names))
        codes = self.codes[:, keep]
        order: Any = slice(None)
        if names != self.levels[: len(names)] or len(names) == len(self.levels) > 0:
            order = np.lexsort(codes.T[::-1])
            codes = codes[order]
        starts = find_runs(codes)
        n, size = self.count[order][:, None], np.diff(starts, append=len(self.count))
        total = np.add.reduceat(n, starts)
        pooled, m2 = np.empty((2, len(starts), self.mean.shape[1]))
        for bounds in block_bounds(self.mean.shape[1], TILE, len(n)):
            tile = slice(*bounds)
            mean = self.mean[order, tile]
            apart = mean - np.repeat(mean[starts], size, axis=0)
            pooled[:, tile] = mean[starts] + np.add.reduceat(n * apart, starts) / total
            apart = mean - np.repeat(pooled[:, tile], size, axis=0)
            m2[:, tile] = np.add.reduceat(self.m2[order, tile] + n * apart * apart, starts)
        return Cells(
            names, tuple(map(self.labels.__getitem__, keep)), codes[starts], total[:, 0], pooled,
            m2, self.origin, self.grouped,
            None if self.prints is None else np.add.reduceat(self.prints[order], starts),
        )  # fmt: skip

    def groups(self, level: str) -> list[Cells]:
        """Split the cells by the labels of one level, which is then no longer a level."""
        codes = self.codes[:, self.levels.index(level)]
        rest = tuple(name for name in self.levels if name != level)
        return [self.take(codes == code).reorder_levels(rest) for code in np.unique(codes)]

    def __add__(self, other: Cells) -> Cells:
        """Merge the moments of two parts of a log, matching labels.

        The origins are those of the part with more losses.
        """
        both = self.concat(other)
        return both.over(both.levels, repeated=True)

    def concat(self, other: Cells) -> Cells:
        """Concatenate the cells of two parts, matching labels."""
        if self.levels != other.levels:
            raise ValueError(f"moments by {self.levels} do not add to moments by {other.levels}")
        labels, codes, prints = list(self.labels), other.codes.copy(), None
        for i, (mine, theirs) in enumerate(zip(self.labels, other.labels, strict=True)):
            if not (mine is theirs or (isinstance(mine, range) and mine == theirs)):
                place = {label: code for code, label in enumerate(mine)}
                moved = [place.setdefault(label, len(place)) for label in theirs]
                codes[:, i] = np.asarray(moved, dtype=np.int64)[codes[:, i]]
                labels[i] = tuple(place)
        if self.prints is not None and other.prints is not None:
            prints = np.concatenate([self.prints, other.prints])
        origin = (self if self.count.sum() >= other.count.sum() else other).origin
        return Cells(
            self.levels, tuple(labels), np.concatenate([self.codes, codes]),
            np.concatenate([self.count, other.count]),
            np.concatenate([self.shift_origin(origin).mean, other.shift_origin(origin).mean]),
            np.concatenate([self.m2, other.m2]), origin, prints=prints,
        )  # fmt: skip


def join_columns(*parts: Cells) -> Cells:
    """Concatenate the columns of the same cells."""
    return replace(
        parts[0],
        mean=np.concatenate([found.mean for found in parts], axis=1),
        m2=np.concatenate([found.m2 for found in parts], axis=1),
        origin=np.concatenate([found.origin for found in parts]),
    )
