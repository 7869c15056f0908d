"""Losses of some evaluations, which come with the moments of batches to be examined one by one.

The moments of a log show neither its tails nor its order in time nor copies. So a short log keeps
its losses, and a long one those of the evaluations with the smallest hashes or, where points are
dates, the first dates.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pandas as pd

from cvstats.core.cells import Cells
from cvstats.core.columns import LossColumns
from cvstats.core.design import LEVELS, Design, Level
from cvstats.core.folds import is_resampled
from cvstats.core.types import FloatArray, IntArray, Labels
from cvstats.log.checks import FEWEST_ROWS, LIMIT, choose_step, is_dated
from cvstats.log.log import Log, Sample
from cvstats.log.sketches import Prints, as_index, hash_array, hashes_of

BITS = np.uint64(11)
"""A float64 holds a hash without so many of its bits."""

Rows = tuple[IntArray, FloatArray]
"""Rows of a log, and their losses."""


@dataclass(frozen=True, eq=False)
class KeptLosses:
    """The losses of some evaluations of a log that comes in batches.

    Parameters
    ----------
    cells : Cells
        A row for each evaluation. The columns are the models, each in every so many carried
        cells, then the hash or the date of the point, and the number by which evaluations are
        chosen: those with the smallest ones stay.
    whole : bool
        Whether these are all evaluations.
    dated, pointed : bool
        Whether points are dates, and whether they have names.
    """

    cells: Cells
    whole: bool
    dated: bool
    pointed: bool

    @classmethod
    def of(
        cls, log: Log, models: IntArray, cells: Cells, hashes: tuple[IntArray, Prints] | None,
        some: Rows | None = None,
    ) -> KeptLosses:  # fmt: skip
        """Choose evaluations of a batch.

        Parameters
        ----------
        log : Log
            The batch.
        models : array of int, shape (models, carried cells)
            Its columns.
        cells : Cells
            Its cells.
        hashes : tuple of arrays, optional
            The rows with the smallest hashes, and these hashes, where points have names.
        some : tuple of arrays, optional
            The rows whose losses are at hand, and their losses; None where all are in memory.
        """
        design = log.design
        rows = np.arange(design.size) if some is None else some[0]
        rows = rows if design.present is None else rows[design.present[rows]]
        size = design.size if design.present is None else int(design.present.sum())
        dated = is_dated(design) and not is_resampled(design)
        # Places in an array, and points without names, are in no other batch.
        salt = np.uint64(zlib.crc32(cells.mean.tobytes()))
        if dated:
            number = number_dates(design.levels["point"], rows)
        elif hashes is not None and some is None:
            rows, number = hashes[0], shorten(hashes[1])
        else:
            number = shorten(hash_array(hash_array(rows) ^ salt))
        first = np.sort(find_first(number, rows_to_keep(models.size)))
        rows, number = rows[first], number[first]
        point, pointed = number, "point" in design.levels
        if pointed and not dated:
            level = design.levels["point"].take(rows)
            prints = hashes_of(as_index(level.labels).take(np.asarray(level.codes)))
            point = shorten(prints if hashes is not None else hash_array(prints ^ salt))
        columns = models[:, :: choose_step(models.size)].reshape(-1)
        if some is None:
            losses = log.panels.table(rows, columns)
        else:
            losses = some[1][np.ix_(np.searchsorted(some[0], rows), columns)]
        names = [name for name in (*LEVELS, *cells.levels) if name in design.levels]
        levels = tuple(name for name in dict.fromkeys(names) if name != "point")
        table = np.column_stack([losses, point, number])
        parts = [design.levels[name].take(rows) for name in levels]
        codes = np.zeros((len(rows), len(levels)), dtype=np.int64)
        for at, part in enumerate(parts):
            codes[:, at] = np.asarray(part.codes)
        width = table.shape[1]
        found = Cells(
            levels, tuple(part.labels for part in parts), codes, np.ones(len(rows)), table,
            np.zeros((len(rows), width)), np.zeros(width),
        )  # fmt: skip
        return cls(drop_unused_labels(found), len(rows) == size, dated, pointed)

    def __add__(self, other: KeptLosses) -> KeptLosses:
        """Keep the evaluations of both that come first."""
        return replace(
            self, cells=self.cells.concat(other.cells), whole=self.whole and other.whole,
            dated=self.dated and other.dated, pointed=self.pointed and other.pointed,
        ).cut()  # fmt: skip

    def cut(self) -> KeptLosses:
        """Keep the evaluations that come first, as many as of a batch."""
        first = find_first(self.cells.mean[:, -1], rows_to_keep(self.cells.mean.shape[1] - 2))
        if len(first) == len(self.cells.count):
            return self
        return replace(
            self, cells=drop_unused_labels(self.cells.take(np.sort(first))), whole=False
        )  # fmt: skip

    @classmethod
    def beside(cls, parts: Sequence[KeptLosses]) -> KeptLosses | None:
        """Put models side by side that were evaluated on the same points; None if names miss."""
        joined = reduce(Cells.concat, [part.cells for part in parts])
        number = [len(part.cells.count) for part in parts]
        if min(number) < max(number) or not all(part.pointed for part in parts):
            return None
        keys = np.column_stack([joined.mean[:, -2:], joined.codes])
        every = np.arange(len(keys)).reshape(len(parts), -1)
        order = [rows[np.lexsort(keys[rows].T)] for rows in every]
        if any((keys[rows] != keys[order[0]]).any() for rows in order[1:]):
            return None
        mean = np.hstack([*(joined.mean[rows, :-2] for rows in order), joined.mean[order[0], -2:]])
        width = mean.shape[1]
        cells = replace(
            joined.take(order[0]), mean=mean, m2=np.zeros_like(mean), origin=np.zeros(width)
        )
        whole = all(part.whole for part in parts)
        return replace(parts[0], cells=cells, whole=whole).cut()

    def by(self, levels: tuple[str, ...]) -> KeptLosses:
        """Name the same levels in another order."""
        at = [self.cells.levels.index(level) for level in levels]
        labels = tuple(self.cells.labels[i] for i in at)
        return replace(
            self, cells=replace(self.cells, levels=levels, labels=labels,
                                codes=self.cells.codes[:, at]),
        )  # fmt: skip

    def reorder(self, models: IntArray) -> KeptLosses:
        """Put the models in another order."""
        losses = self.cells.mean[:, :-2].reshape(len(self.cells.count), len(models), -1)
        mean = losses[:, models].reshape(len(losses), -1)
        return replace(
            self, cells=replace(self.cells, mean=np.hstack([mean, self.cells.mean[:, -2:]]))
        )  # fmt: skip

    def sample(self, log: Log, models: IntArray) -> Sample:
        """Make a small log of them, whose columns are in the order of the log."""
        found, step = self.cells, choose_step(models.size)
        order = np.argsort(models[:, ::step].reshape(-1))
        levels = {
            name: Level(labels, found.codes[:, at])
            for at, (name, labels) in enumerate(zip(found.levels, found.labels, strict=True))
        }
        if self.pointed:
            point, names = pd.factorize(found.mean[:, -2], sort=True)
            labels: Labels = pd.Index(names.astype(np.int64))
            if self.dated:
                labels = pd.DatetimeIndex(names.astype("M8[us]"))
            levels["point"] = Level(labels, point)
        small = Design(levels, len(found.count), within=log.design.within)
        panels = LossColumns((found.mean[:, :-2][:, order],))
        return Sample(
            replace(log, design=small, panels=panels, cells=None, complete=None), step, self.whole
        )

    def crossed(self) -> bool:
        """Whether a point occurs under two sources of one repetition."""
        if "source" not in self.cells.levels or not self.pointed:
            return False
        apart = ("source", "fold")
        at = [i for i, name in enumerate(self.cells.levels) if name not in apart]
        keys = np.column_stack([self.cells.mean[:, -2], self.cells.codes[:, at]])
        return len(np.unique(keys, axis=0)) < len(keys)


def rows_to_keep(width: int) -> int:
    """Choose how many evaluations are kept of a log with so many columns."""
    return max(LIMIT // max(1, width), FEWEST_ROWS)


def find_first(number: FloatArray, most: int) -> IntArray:
    """Find the evaluations with the smallest numbers, so many at most."""
    return np.arange(len(number)) if len(number) <= most else np.argpartition(number, most)[:most]


def shorten(hashes: Prints) -> FloatArray:
    """Take as much of hashes as float64 holds."""
    return (hashes >> BITS).astype(np.float64)


def number_dates(level: Level, rows: IntArray) -> FloatArray:
    """Give the dates of some rows in microseconds, or numbers in the same order."""
    index = as_index(level.labels).infer_objects()
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    elif index.dtype == object and not isinstance(index[0], str):  # dates, also of climate models
        index = pd.Index([
            pd.Timedelta(
                days=(day.year * 12 + day.month) * 31 + day.day,
                hours=getattr(day, "hour", 0), minutes=getattr(day, "minute", 0),
            ) for day in index
        ])  # fmt: skip
    else:
        index = pd.to_datetime(index, format="ISO8601", utc=True, errors="coerce")
        index = index.tz_localize(None)
    numbers = index.to_numpy().astype(f"{index.dtype.kind}8[us]").astype(np.float64)
    found: FloatArray = numbers[np.asarray(level.take(rows).codes)]
    return found


def drop_unused_labels(found: Cells) -> Cells:
    """Keep the labels that occur, and nothing of the log's own index."""
    labels, codes = [], np.empty_like(found.codes)
    for i, names in enumerate(found.labels):
        used, codes[:, i] = np.unique(found.codes[:, i], return_inverse=True)
        labels.append(tuple(as_index(names).take(used)))
    return replace(found, labels=tuple(labels), codes=codes)
