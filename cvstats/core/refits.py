"""The variance of a difference of two models due to refitting on overlapping training sets.

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

import numpy as np
from scipy import special

from cvstats.core.cells import Cells
from cvstats.core.types import FloatArray, IntArray

LARGE_SHARE, SIGNIFICANT = 0.2, 1.645
"""Refits matter if they add at least this share to the variance, and this many times the noise."""

ALIKE, NEARLY_ALIKE = 10.0, 40.0
"""Below these values of `find_alike`, one partition is not enough to compare two models."""

MOST_DF = 9
"""Maximum degrees of freedom for the fold means of one partition."""

LEVEL = 0.025
"""Tail probability at which a quantile of Student's t is compared with a normal one."""


@dataclass(frozen=True, eq=False)
class Partitions:
    """The partitions of a repeated cross-validation, row by row.

    Parameters
    ----------
    repetition, fold, point : array of int, shape (rows,)
        The repetition of each row, its fold among the folds of all repetitions, and its point;
        each point occurs once in each repetition.
    """

    repetition: IntArray
    fold: IntArray
    point: IntArray

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

    def are_equal(self) -> bool:
        """Whether all repetitions have the same folds."""
        order = np.lexsort((self.repetition, self.point))
        together = self.fold[order].reshape(self.n_points, self.n_repetitions)
        return len(np.unique(together, axis=0)) == int(len(np.unique(together[:, 0])))


@dataclass(frozen=True)
class RefitVariance:
    """The parts of the variance of a mean difference over repeated partitions.

    Parameters
    ----------
    mean : float
        The mean difference.
    points : float
        W: variance of the mean as if points were independent.
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
    points: float
    refits: float
    mutual: float
    noise: float
    n_folds: float

    @property
    def total(self) -> float:
        """Variance of the mean difference: ``W + K min(max(C + h, 0), s)``."""
        return self.points + self.n_folds * float(np.clip(self.mutual + self.noise, 0, self.refits))

    @property
    def matters(self) -> bool:
        """Whether refits add a large share to the variance, and more than noise explains."""
        added = self.n_folds * float(np.clip(self.mutual, 0, self.refits))
        return added > LARGE_SHARE * self.points and self.mutual > SIGNIFICANT * self.noise


def measure_refits(differences: FloatArray, partitions: Partitions) -> RefitVariance:
    """Measure the parts of the variance from different partitions of the same points."""
    r, n, k = partitions.n_repetitions, partitions.n_points, partitions.n_folds
    mean = np.bincount(partitions.repetition, differences) / n
    apart = differences - mean[partitions.repetition]
    of_points = np.bincount(partitions.point, differences) / r
    residual = differences - of_points[partitions.point]
    squares = residual @ residual
    sums = np.bincount(partitions.fold, residual)
    refits = squares / (r - 1) / n**2
    return RefitVariance(
        mean=float(mean.mean()),
        points=float(apart @ apart) / r / n**2,
        refits=float(refits),
        mutual=float((sums @ sums - squares) * r / (r - 1) ** 2 / n**2),
        noise=float(refits * np.sqrt(2 / (r * k))),
        n_folds=k,
    )


def widen_one_partition(folds: Cells) -> FloatArray:
    """Compute standard errors for two models that are nearly identical in one partition.

    The larger of two: the one with twice the variance of independent points, the most that refits
    can add, and that of the corrected t interval of the fold means, times the ratio of its quantile
    to the normal one at 95%.
    """
    whole, k = folds.over(()), folds.n_cells
    of_points = np.sqrt(2 * whole.m2) / whole.count[:, None]
    trained = folds.repeat(whole.count[:, None])[:, 0] - folds.count
    factor = 1 / k + folds.average((folds.count / trained)[:, None])
    of_folds = np.sqrt(factor * folds.mean_and_squares()[1] / (k - 1))
    ratio = special.stdtrit(np.minimum(k - 1, MOST_DF), LEVEL) / special.ndtri(LEVEL)
    wider: FloatArray = np.maximum(of_points, ratio * of_folds)
    return wider
