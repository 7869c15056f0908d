"""What a metric declares about itself, and what it computes for the points of one cell.

A metric of a cell is a function T of the weighted distribution of its points. Its influence
function phi says how T changes with the weight of each point; ``sum w phi = 0``. The pseudo-value
of a point is ``T + (w / mean w) phi``: the mean over the cell is T, and their variance is that of T
by the delta method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray

Influence = tuple[float, FloatArray]
"""A metric of a cell, and the influence of each point, whose weighted mean is zero."""


class UndefinedMetricError(Exception):
    """A metric has no value on the points of a cell; it becomes a LogError that names the cell."""


@dataclass(frozen=True)
class MetricOptions:
    """What metrics need to know besides truth, prediction and weight.

    Parameters
    ----------
    labels : int
        How many classes there are; truth and predicted labels are codes below it.
    positive : int
        The code of the positive class.
    average : {"binary", "macro", "weighted", "micro"}
        How metrics of single classes become one.
    multi_class : {"ovr", "ovo"}
        Each class against the others, or against each other one.
    beta : float
        Weight of recall in F-beta.
    weights : {None, "linear", "quadratic"}
        How kappa counts disagreement between ordered classes.
    zero_division : float, optional
        The value of 0/0; None where that is an error.
    class_shares : array of float, shape (labels,), optional
        The shares of the classes of the whole log; None for those of the cell.
    """

    labels: int = 2
    positive: int = 1
    average: str = "binary"
    multi_class: str = "ovr"
    beta: float = 1.0
    weights: str | None = None
    zero_division: float | None = None
    class_shares: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Metric:
    """The facts about one metric.

    Parameters
    ----------
    name : str
        How it is asked for.
    words : str
        What it is called in texts, with its capitals.
    reads : {"labels", "sets", "scores", "numbers", "losses", "times", "any"}
        What it reads: predicted labels; for each label whether the point has it; a score or
        probability for a class; numbers; losses of a model and of a reference; numbers of which
        some are censored; whatever it is given.
    influence : callable
        Takes truth, prediction, weights (None where all are alike) and options; returns T and phi.
        A metric of ``labels`` takes the table of shares, truth by prediction, and options.
    range : pair of float
        The least and the largest value.
    folds : {"average", "pool"}
        Whether it is computed in each fold or over all, where the caller does not say.
    better : {"larger", "smaller"}
        Which values are better.
    takes : tuple of str
        The options that it looks at.
    biased_by_fold : bool
        Whether its value on few points is biased, so that the mean over small folds is.
    scales_classes : bool
        Whether the influence of a class sums to zero by itself, so that its degrees of freedom
        can be counted class by class.
    """

    name: str
    words: str
    reads: Literal["labels", "sets", "scores", "numbers", "losses", "times", "any"]
    influence: Callable[..., Influence]
    range: tuple[float, float] = (0.0, 1.0)
    folds: Literal["average", "pool"] = "pool"
    better: Literal["larger", "smaller"] = "larger"
    takes: tuple[str, ...] = ()
    biased_by_fold: bool = False
    scales_classes: bool = False

    @property
    def orientation(self) -> str:
        """How the metric becomes a loss: ``1 - score``, ``-score`` or ``error``."""
        if self.better == "smaller":
            return "error"
        return "1 - score" if self.range == (0.0, 1.0) else "-score"

    def loss(self, value: Any) -> Any:
        """Turn values of the metric, or pseudo-values, into losses: lower is better."""
        if self.better == "smaller":
            return value
        return 1.0 - value if self.range == (0.0, 1.0) else -value


def mean(weight: FloatArray | None, values: FloatArray) -> float:
    """Mean of the values, weighted where there are weights."""
    return float(values.mean() if weight is None else weight @ values / weight.sum())


def shares(codes: NDArray[Any], weight: FloatArray, classes: int) -> FloatArray:
    """Share of the weight that each class has."""
    share: FloatArray = np.bincount(codes, weight, minlength=classes) / weight.sum()
    return share
