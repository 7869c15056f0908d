"""Any metric that is a function of truth and prediction: its influence by moving the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray
from cvstats.metrics._metric import Influence, Metric, MetricOptions, UndefinedMetricError

STEP = 1e-5
"""How far a weight of mean 1 is moved to either side."""


def metric_of(function: Callable[..., float], better: Literal["larger", "smaller"]) -> Metric:
    """Make the record of a function of truth, prediction and, if it takes them, weights.

    With weights the influence is the central difference in each of them, otherwise the jackknife,
    recentred so that the mean of the pseudo-values is the metric. Either asks for the metric about
    as often as there are points.
    """
    weighted = takes_weights(function)

    def influence(
        truth: NDArray[Any],
        prediction: NDArray[Any],
        weight: FloatArray | None,
        options: MetricOptions,
    ) -> Influence:
        if weighted:
            own = np.ones(len(truth)) if weight is None else weight / weight.mean()
            return by_weights(function, truth, prediction, own)
        if weight is not None and np.ptp(weight) > 0:
            raise UndefinedMetricError("the function takes no weights")
        return by_jackknife(function, truth, prediction)

    name = getattr(function, "__name__", "metric")
    return Metric(name, name, "any", influence, (-np.inf, np.inf), "average", better=better)


def takes_weights(function: Callable[..., float]) -> bool:
    """Whether a function has a third positional parameter."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = [p.kind for p in parameters]
    positional = [k for k in kinds if k in (0, 1)]
    return len(positional) > 2 or inspect.Parameter.VAR_POSITIONAL in kinds


def by_weights(
    function: Callable[..., float], truth: NDArray[Any], prediction: NDArray[Any],
    weight: FloatArray,
) -> Influence:  # fmt: skip
    """Differentiate in the weight of each point."""
    value, n = number(function(truth, prediction, weight.copy())), len(truth)
    slopes = np.empty(n)
    for i in range(n):
        ends = []
        for step in (STEP, -STEP):
            moved = weight.copy()
            moved[i] += step
            ends.append(number(function(truth, prediction, moved)))
        slopes[i] = (ends[0] - ends[1]) / (2 * STEP) * n
    return value, slopes - weight @ slopes / n


def by_jackknife(
    function: Callable[..., float], truth: NDArray[Any], prediction: NDArray[Any]
) -> Influence:
    """Leave out one point at a time."""
    value, n = number(function(truth, prediction)), len(truth)
    if n < 2:
        raise UndefinedMetricError("the cell has one point")
    keep = np.ones(n, dtype=bool)
    without = np.empty(n)
    for i in range(n):
        keep[i] = False
        without[i] = number(function(truth[keep], prediction[keep]))
        keep[i] = True
    return value, (n - 1) * (without.mean() - without)


def number(value: Any) -> float:
    """Take what a metric returns as a number."""
    found = np.asarray(value)
    if found.size != 1 or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise UndefinedMetricError(f"the function returned {value!r}, which is not a finite number")
    return float(found.reshape(()))
