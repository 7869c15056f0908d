"""Whether the difference of two models is stable relative to its spread, as far as a log shows.

A cross-validation interval that treats points as the sampling unit requires relative stability:
the change of a difference of losses when one training point is replaced must be small compared
with its spread over points (Bayle, Janson and Mackey 2025). Two stable learners do not imply
this: if both approach the same limit, their difference vanishes as fast as it changes.

In cross-validation the model that predicts point i was trained on point j, and the model that
predicts j was trained on i. For the difference of two nearly identical models these mutual
effects are as large as the differences themselves. They are the only reason why errors of points in
different folds are correlated, and the variance of the mean difference about the mean test error is
``W + K (V - s)``, where W is the variance of the mean as if points were independent, K the number
of folds, V the variance of the means of repetitions, and s the value of V if refits were
independent. Points of one fold show ``V - s`` with K times the degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy import special

from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import (
    count_folds_by_group,
    covers_all_points,
    find_whole_sources,
    fold_level,
    fold_levels,
    is_resampled,
    repetition_level,
)
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.log.groups import DifferentGroups, ask_groups
from cvstats.log.log import Log
from cvstats.log.loss_checks import find_whole

RELATIVELY_STABLE = (
    "if the difference between the losses is relatively stable (it is not if both models converge "
    "to the same limit; stability of each learner is not enough)"
)
"""The condition under which an interval over points is valid for a difference."""

OF_INTERVAL = (
    "that of the interval it is based on; for folds asymptotically exact in the number of "
    f"points, {RELATIVELY_STABLE}"
)
"""The guarantee of a comparison that uses the interval of a method."""

ENOUGH = 3
"""Minimum number of repetitions for a meaningful standard deviation."""

LARGEST_RATIO = 0.3
"""Ratio reached if two models approach one limit; for clearly different models it is about 0.1."""

REMEMBERED = 1 << 20
"""Maximum number of evaluations whose repetitions, folds and points are cached."""

LARGEST_CHANGE = 1.0
"""Exchange ratio above which a difference is unstable; stable differences are near 0."""


LARGE_SHARE, SIGNIFICANT = 0.2, 1.645
"""Refits matter if they add at least this share to the variance, and this many times the noise."""

ALIKE, NEARLY_ALIKE = 10.0, 40.0
"""Below these values of `find_alike`, one partition is not enough to compare two models."""

MOST_DF = 9
"""Maximum degrees of freedom for the fold means of one partition."""

LEVEL = 0.025
"""Tail probability at which a quantile of Student's t is compared with a normal one."""


def repeats_folds(log: Log) -> bool:
    """Whether the log is a cross-validation that was repeated often enough to compare."""
    if log.only_tested or "fold" not in log.planned.levels:  # sources are the same folds each time
        return False
    folded = count_folds_by_group(log.planned) > 1
    if folded.any() != folded.all():
        raise DifferentGroups("some groups lie in one fold.")
    return bool(folded.all() and ask_groups(log, is_repeated))


def is_repeated(design: Design) -> bool:
    """Whether enough repetitions test the same points."""
    enough = not is_resampled(design) and design.number("repetition") >= ENOUGH
    return enough and covers_all_points(design)


def find_unstable(log: Log) -> MaskArray | None:
    """Find the differences that are unstable according to the log; None if it cannot show it."""
    whole = find_whole(log)
    if repeats_folds(log):
        if whole is not None and {"fold", "point"} <= set(whole.design.levels):
            return refits_matter(whole)
        return repetition_ratio(log.moments(repetition_level(log.design))) > LARGEST_RATIO
    if whole is not None and {"sample", "fold", "point"} <= set(whole.design.levels):
        ratio = exchange_ratio(whole)
        return None if ratio is None else ratio > LARGEST_CHANGE
    return None


def refits_matter(log: Log) -> MaskArray:
    """Find the differences whose variance is largely due to refitting."""
    if log.design.by is not None:
        raise DifferentGroups("points are compared over repetitions for one group at a time.")
    cut = read_partitions(log.design)
    found = np.zeros(log.values.width, dtype=bool)
    for j, column in enumerate(log.columns()):
        if column is not None:
            values = column[log.design.here]
            found[j] = measure_refits(values - values[0], cut).matters
    return found


def find_alike(log: Log, variance: FloatArray) -> FloatArray:
    """Divide the variance of differences by the mean squared loss of a point; small if similar.

    ``variance`` is that of the mean difference. The ratio is about 0.65 times the number of
    directions in which the two models differ by noise alone. It depends on the zero of the losses,
    so it is only meaningful for losses that have one.
    """
    losses = log.without_pairs().moments(())
    squares = losses.m2 / losses.count[:, None] + losses.location**2
    both = np.add(*(squares[:, side] for side in log.sides))
    n = losses.count[:, None] / log.design.number("repetition")
    return n**2 * variance / np.where(both > 0, both, np.inf)


def read_partitions(design: Design) -> Partitions:
    """Read the repetition, fold and point of each evaluation (cached, if not too many)."""
    if (known := design.facts.get("partitions")) is not None:
        return cast(Partitions, known)

    def number(names: tuple[str, ...]) -> IntArray:
        occurs = design.cell_table(names).total > 0
        return (np.cumsum(occurs) - 1)[design.cells(names, 0, design.size)[design.here]]

    point = design.point_numbers()[design.here]
    place = np.cumsum(np.bincount(point) > 0) - 1
    source = None
    if design.has("source") and fold_level(design) == "fold" and find_whole_sources(design).all():
        source = number(("source",))
    found = Partitions(
        number(repetition_level(design)), number(fold_levels(design)), place[point], source
    )
    if design.size <= REMEMBERED:
        design.facts["partitions"] = found
    return found


def repetition_ratio(repetitions: Cells) -> FloatArray:
    """Divide the standard deviation of the repetition means by the standard error of one.

    ``repetitions`` has a cell for each repetition. The ratio is 0 if nothing varies.
    """
    se = np.sqrt(repetitions.average(repetitions.m2)) / repetitions.average(repetitions.count)
    squares = repetitions.mean_and_squares()[1]
    return divide_spreads(np.sqrt(squares / (repetitions.n_cells - 1)), se).reshape(-1)


def divide_spreads(change: FloatArray, spread: FloatArray) -> FloatArray:
    """Divide two standard deviations or variances; 0 if nothing varies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(change == 0, 0.0, change / spread)


def exchange_ratio(log: Log) -> FloatArray | None:
    """Loss stability times points over variance, from a log with each point of a half replaced.

    The loss stability is the variance, over the points of a test fold, of the change of their
    losses when one training point is replaced (mean over folds and replaced points). The ratio
    is ``n * stability / variance`` with n the points of the half and the variance that of its
    losses. Stable differences have ratios near 0. None if no fold kept its points.
    """
    sample, point, cell = read_replaced(log)
    half = sample == 1
    if not half.any():
        return None
    before = find_rows(point[half], point)
    # The fold that contains the replaced point keeps its model but tests a new point.
    refitted = np.bincount(cell, before < 0) == 0
    rows = np.flatnonzero((sample > 1) & (refitted & (np.bincount(cell) > 1))[cell])
    if not len(rows):
        return None
    earlier = np.flatnonzero(half)[before[rows]]
    _, fold, size = np.unique(cell[rows], return_inverse=True, return_counts=True)
    stability, variance = np.full((2, log.values.width), np.nan)
    for j, column in enumerate(log.columns()):
        if column is not None:
            values = column[log.design.here]
            change = values[rows] - values[earlier]
            change -= (np.bincount(fold, change) / size)[fold]
            stability[j] = np.mean(np.bincount(fold, change**2) / (size - 1))
            variance[j] = values[half].var()
    n = half.sum() / log.design.number("repetition")
    return divide_spreads(n * stability, variance)


def read_replaced(log: Log) -> tuple[IntArray, IntArray, IntArray]:
    """Read the sample of each evaluation; number its point in its repetition, and its test fold."""
    design = log.design
    codes = {name: design.codes(name).astype(np.int64) for name in design.levels}
    sample = np.array(list(design.levels["sample"].labels), dtype=np.int64)[codes["sample"]]
    repetition = codes.get("repetition", np.zeros_like(sample))
    point = repetition * len(design.levels["point"].labels) + codes["point"]
    cells = np.stack([codes["sample"], repetition, codes["fold"]])
    return sample, point, np.unique(cells, axis=1, return_inverse=True)[1].reshape(-1)


def find_rows(known: IntArray, asked: IntArray) -> IntArray:
    """Find the position of each requested number among distinct known ones; -1 if absent."""
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)
    return np.where(known[order[place]] == asked, order[place], -1)


# --- the variance due to refitting ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Partitions:
    """The partitions of a repeated cross-validation, row by row.

    Parameters
    ----------
    repetition, fold, point : array of int, shape (rows,)
        The repetition of each row, its fold among the folds of all repetitions, and its point;
        each point occurs once in each repetition.
    source : array of int, shape (rows,), optional
        The source of each row, if folds keep sources whole. Sources are then the sampling units,
        otherwise points.
    """

    repetition: IntArray
    fold: IntArray
    point: IntArray
    source: IntArray | None = None

    @cached_property
    def n_repetitions(self) -> int:
        """Number of repetitions."""
        return int(self.repetition.max()) + 1

    @cached_property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.point.max()) + 1

    @cached_property
    def n_folds(self) -> float:
        """Number of folds of a repetition; of folds of unequal sizes, the effective number."""
        shares = np.bincount(self.fold) / self.n_points
        return float(self.n_repetitions / (shares @ shares))

    @cached_property
    def n_units(self) -> int:
        """Number of sampling units."""
        return self.n_points if self.source is None else int(self.source.max()) + 1

    @cached_property
    def units(self) -> tuple[IntArray, IntArray]:
        """The number and the fold of each unit in each repetition, in the order of `sum_units`."""
        if self.source is None:
            return self.point, self.fold
        fold = np.empty(self.n_repetitions * self.n_units, dtype=np.int64)
        fold[self.repetition * self.n_units + self.source] = self.fold
        return np.tile(np.arange(self.n_units), self.n_repetitions), fold

    def sum_units(self, values: FloatArray) -> FloatArray:
        """Sum values over the points of each unit in each repetition."""
        if self.source is None:
            return values
        row = self.repetition * self.n_units + self.source
        return np.bincount(row, values).astype(np.float64, copy=False)

    def are_equal(self) -> bool:
        """Whether all repetitions have the same folds."""
        order = np.lexsort((self.repetition, self.point))
        together = self.fold[order].reshape(self.n_points, self.n_repetitions)
        joint = len(np.unique(together, axis=0))  # parts that no repetition divides
        return len(np.unique(self.fold)) == self.n_repetitions * joint


@dataclass(frozen=True)
class RefitVariance:
    """The parts of the variance of a mean difference over repeated partitions.

    Parameters
    ----------
    mean : float
        The mean difference.
    units : float
        W: variance of the mean as if the sampling units (points or sources) were independent.
    refits : float
        s: the variance of the mean of one repetition if refits were independent.
    mutual : float
        C: the unconstrained estimate of ``V - s``, which may be negative.
    noise : float
        h: the standard deviation of C if refits were independent.
    n_folds : float
        K.
    """

    mean: float
    units: float
    refits: float
    mutual: float
    noise: float
    n_folds: float
    n_repetitions: int

    @property
    def total(self) -> float:
        """Variance of the mean difference: ``W + K min(max(C + h, 0), s)``."""
        added = self.n_folds * float(np.clip(self.mutual + self.noise, 0, self.refits))
        return self.units + added

    @property
    def beyond_averages(self) -> float:
        """The part of ``total`` that the average of each unit over the repetitions lacks."""
        return (1 - 1 / self.n_repetitions) * self.refits + (self.total - self.units)

    @property
    def matters(self) -> bool:
        """Whether refits add a large share to the variance, and more than noise explains."""
        added = self.n_folds * float(np.clip(self.mutual, 0, self.refits))
        return added > LARGE_SHARE * self.units and self.mutual > SIGNIFICANT * self.noise


def measure_refits(differences: FloatArray, partitions: Partitions) -> RefitVariance:
    """Measure the parts of the variance from different partitions of the same points."""
    r, n, k = partitions.n_repetitions, partitions.n_points, partitions.n_folds
    mean = np.bincount(partitions.repetition, differences) / n
    apart = partitions.sum_units(differences - mean[partitions.repetition])
    unit, fold = partitions.units
    sums = partitions.sum_units(differences)
    of_units: FloatArray = np.bincount(unit, sums) / r
    residual = sums - of_units[unit]
    squares = residual @ residual
    by_fold = np.bincount(fold, residual)
    refits = squares / (r - 1) / n**2
    return RefitVariance(
        mean=float(mean.mean()),
        units=float(apart @ apart) / r / n**2,
        refits=float(refits),
        mutual=float((by_fold @ by_fold - squares) * r / (r - 1) ** 2 / n**2),
        noise=float(refits * np.sqrt(2 / (r * k))),
        n_folds=k,
        n_repetitions=r,
    )


def widen_one_partition(folds: Cells, variance: FloatArray | None = None) -> FloatArray:
    """Compute standard errors for two models that are nearly identical in one partition.

    The larger of two: the one with twice the ``variance``, by default that of independent points,
    which is the most that refits can add, and that of the corrected t interval of the fold means,
    times the ratio of its quantile to the normal one at 95%.
    """
    whole, k = folds.over(()), folds.n_cells
    of_points = whole.m2 / whole.count[:, None] ** 2 if variance is None else variance
    trained = folds.repeat(whole.count[:, None])[:, 0] - folds.count
    factor = 1 / k + folds.average((folds.count / trained)[:, None])
    of_folds = np.sqrt(factor * folds.mean_and_squares()[1] / (k - 1))
    ratio = special.stdtrit(np.minimum(k - 1, MOST_DF), LEVEL) / special.ndtri(LEVEL)
    return np.maximum(np.sqrt(2 * of_points), ratio * of_folds)
