"""What training on each other's points adds to the variance of a difference of two models.

In cross-validation the model that predicts point i was trained on point j, and the model that
predicts j was trained on i. For the difference of two models that are nearly alike these mutual
effects are as large as the differences themselves. Errors of two points in different folds are
correlated only through them, and the variance of the mean difference about the mean test error is
``W + K (V - s)``: W the variance of the mean as if points were independent, K the number of folds,
V the variance of the means of repetitions and s what V would be if each refit were independent of
the others. Points of one fold show ``V - s`` with K times the degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from cvstats.core.types import FloatArray, IntArray

LARGE_SHARE, SIGNIFICANT = 0.2, 1.645
"""Refits matter where they add this share to the variance, and more than this many times noise."""

ALIKE, NEARLY_ALIKE = 10.0, 40.0
"""Below these values of `likeness`, one partition is not enough to compare two models."""

MOST_DF = 9
"""More degrees of freedom are not given to the fold means of one partition."""


@dataclass(frozen=True, eq=False)
class Partitions:
    """The partitions of a repeated cross-validation, row by row.

    Parameters
    ----------
    repetition, fold, point : array of int, shape (rows,)
        The repetition of each row, its fold among the folds of all repetitions, and its point;
        each point once in each repetition.
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
        """Whether all repetitions divide the points in the same way."""
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
        s: what independent refits add to the variance of the mean of one repetition.
    mutual : float
        C: the estimate of ``V - s``, raw; it may be negative.
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
        """Whether refits add a large share, and more than noise explains."""
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


def measure_likeness(one: FloatArray, two: FloatArray) -> float:
    """Divide the variance of the differences by the mean squared losses of a point: small if alike.

    The ratio is about 0.65 times the number of directions in which the two models differ by noise
    alone. It depends on the zero of the losses, so it is for losses that have one.
    """
    difference = one - two
    squares = one @ one + two @ two
    if squares == 0:
        return 0.0
    apart = difference - difference.mean()
    return float(len(difference) * (apart @ apart) / squares)


def widen_one_partition(
    differences: FloatArray, fold: IntArray, alpha: float
) -> tuple[float, float]:
    """Compute standard error and degrees of freedom for two models that one partition finds alike.

    The wider of two intervals: with twice the variance of independent points, which is what mutual
    training adds at most, and the corrected t interval of the fold means.
    """
    n, count = len(differences), np.bincount(fold)
    k, trained = len(count), n - count
    apart = differences - differences.mean()
    of_points = float(np.sqrt(2 * (apart @ apart))) / n
    means = np.bincount(fold, differences) / count
    df = min(k - 1, MOST_DF)
    of_folds = float(np.sqrt((1 / k + (count / trained).mean()) * means.var(ddof=1)))
    wider = -special.stdtrit(df, alpha / 2) * of_folds > -special.ndtri(alpha / 2) * of_points
    return (of_folds, float(df)) if wider else (of_points, np.inf)
