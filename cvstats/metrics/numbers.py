"""Numeric metrics that are functions of a few means: RMSE, R2, correlations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.metrics import kernels
from cvstats.metrics.metric import Influence, Metric, MetricOptions, UndefinedMetricError, mean


def rmse(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Root mean squared error; without any error its influence is 0."""
    phi = np.empty(len(truth))
    m = kernels.mean_square(truth, prediction, phi)
    if weight is not None:
        m = mean(weight, phi)
    value = float(np.sqrt(m))
    phi -= m
    if value > 0:
        phi *= 0.5 / value
    return value, phi


def r2(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Explained fraction of the variance of the truth about the cell's mean."""
    square = (truth - prediction) ** 2
    apart = (truth - mean(weight, truth)) ** 2
    m, s = mean(weight, square), mean(weight, apart)
    if not s > 0:
        raise UndefinedMetricError("the truth is constant")
    return 1 - m / s, -(square - m / s * apart) / s


def standardize(values: FloatArray, weight: FloatArray | None, what: str) -> FloatArray:
    """Subtract the mean, divide by the standard deviation."""
    apart = values - mean(weight, values)
    variance = mean(weight, apart**2)
    if not variance > 0:
        raise UndefinedMetricError(f"the {what} is constant")
    standardized: FloatArray = apart / np.sqrt(variance)
    return standardized


def pearson(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Linear correlation."""
    u = standardize(truth, weight, "truth")
    v = standardize(prediction, weight, "prediction")
    value = mean(weight, u * v)
    return value, u * v - value * (u**2 + v**2) / 2


def concordance_correlation(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Lin's concordance correlation: T = 2C/D with D = A + B + (difference of means)^2."""
    y, p = truth - mean(weight, truth), prediction - mean(weight, prediction)
    gap = mean(weight, truth) - mean(weight, prediction)
    a, b, c = mean(weight, y**2), mean(weight, p**2), mean(weight, y * p)
    d = a + b + gap**2
    if not d > 0:
        raise UndefinedMetricError("truth and prediction are the same constant")
    value = 2 * c / d
    of_d = y**2 - a + p**2 - b + 2 * gap * (y - p)
    return value, (2 * (y * p - c) - value * of_d) / d


def ratio(a: FloatArray, b: FloatArray, weight: FloatArray | None, what: str) -> Influence:
    """Ratio of two means."""
    below = mean(weight, b)
    if not below != 0:
        raise UndefinedMetricError(f"the mean of {what} is 0")
    value = mean(weight, a) / below
    return value, (a - value * b) / below


def skill(
    own: FloatArray, reference: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """One minus the ratio of the mean loss to that of a reference on the same points."""
    value, phi = ratio(own, reference, weight, "the losses of the reference")
    return 1 - value, -phi


def relative_error(
    own: FloatArray, reference: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Ratio of the mean loss to that of a reference on the same points."""
    return ratio(own, reference, weight, "the losses of the reference")


def wmape(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Sum of absolute errors over the sum of the absolute truth."""
    return ratio(np.abs(truth - prediction), np.abs(truth), weight, "the absolute truth")


def of_fisher_z(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, phi: FloatArray
) -> tuple[float, float]:
    """Divide the jackknife variance of atanh(r) by that of the influences; 1 with weights."""
    n = len(truth)
    x, y = truth - truth.mean(), prediction - prediction.mean()
    xx, yy, xy = (x @ x, y @ y, x @ y)
    k = n / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.arctanh((xy - k * x * y) / np.sqrt((xx - k * x**2) * (yy - k * y**2)))
        delta = (phi @ phi) / n**2 / (1 - xy**2 / (xx * yy)) ** 2
        ratio = (n - 1) / n * ((z - z.mean()) ** 2).sum() / delta
    return (float(ratio) if weight is None and np.isfinite(ratio) else 1.0), 0.0


def of_fieller(
    own: FloatArray, reference: FloatArray, weight: FloatArray | None, phi: FloatArray
) -> tuple[float, float]:
    """Relative covariance of the ratio with its denominator, and relative variance of that."""
    above, below = mean(weight, own), mean(weight, reference)
    share = np.full(len(own), 1 / len(own)) if weight is None else weight / weight.sum()
    to_ratio, to_below = share * (own - above / below * reference) / below, reference / below - 1
    return float(to_ratio @ (share * to_below)), float((share * to_below) @ (share * to_below))


def of_explained(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, phi: FloatArray
) -> tuple[float, float]:
    """Covariance and variance of the two mean squares of R2."""
    apart = (truth - mean(weight, truth)) ** 2
    return of_fieller((truth - prediction) ** 2, apart, weight, phi)


def of_absolute(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, phi: FloatArray
) -> tuple[float, float]:
    """Covariance and variance of the mean absolute error and the mean absolute truth."""
    return of_fieller(np.abs(truth - prediction), np.abs(truth), weight, phi)


UP_AND_DOWN = (-np.inf, np.inf)
UP_TO_ONE = (-np.inf, 1.0)
FROM_ZERO = (0.0, np.inf)
SIGNED = (-1.0, 1.0)

METRICS = [
    Metric("rmse", "RMSE", "numbers", rmse, FROM_ZERO, better="smaller"),
    Metric(
        "r2", "R2", "numbers", r2, UP_TO_ONE, biased_by_fold=True, limits="log", shape=of_explained
    ),
    Metric(
        "pearson", "Pearson correlation", "numbers", pearson, SIGNED, limits="fisher-z",
        shape=of_fisher_z,
    ),
    Metric(
        "concordance_correlation", "concordance correlation", "numbers", concordance_correlation,
        SIGNED,
    ),
    Metric(
        "wmape", "weighted MAPE", "numbers", wmape, FROM_ZERO, better="smaller", shape=of_absolute
    ),
    Metric(
        "skill", "skill", "losses", skill, UP_TO_ONE, takes=("reference",), limits="fieller",
        shape=of_fieller,
    ),
    Metric(
        "relative_error", "relative error", "losses", relative_error, FROM_ZERO, better="smaller",
        takes=("reference",), limits="fieller", shape=of_fieller,
    ),
]  # fmt: skip


STEP = 1e-5
"""Step of the numerical derivative in a weight of mean 1."""


def metric_of(function: Callable[..., float], better: Literal["larger", "smaller"]) -> Metric:
    """Create the record of a function of truth, prediction and, optionally, weights.

    With weights the influence is the central difference in each of them, otherwise the jackknife,
    recentered so that the mean of the pseudo-values is the metric. Either calls the metric about
    once per point.
    """
    weighted, own_event, needs_event = arguments_of(function)

    def influence(
        truth: NDArray[Any],
        prediction: NDArray[Any],
        weight: FloatArray | None,
        options: MetricOptions,
        event: NDArray[Any] | None = None,
    ) -> Influence:
        if needs_event and event is None:
            raise LogError(
                f"{name} has a parameter for events. Pass the column that is 1 for event times "
                "and 0 for censored times: event='died'."
            )
        columns = [truth, prediction] if event is None else [truth, prediction, event]

        def ask(rows: Any, *weights: FloatArray) -> float:
            first, second, *events = (column[rows] for column in columns)
            if own_event == "keyword" and events:
                return number(function(first, second, *weights, event=events[0]))
            return number(function(first, second, *weights, *events))

        if weighted:
            own = np.ones(len(truth)) if weight is None else weight / weight.mean()
            return by_weights(ask, own)
        if weight is not None and np.ptp(weight) > 0:
            raise UndefinedMetricError("the function does not accept weights")
        return by_jackknife(ask, len(truth))

    name = getattr(function, "__name__", "metric")
    takes = ("event",) if own_event else ()
    return Metric(name, name, "any", influence, UP_AND_DOWN, "average", better=better, takes=takes)


def arguments_of(function: Callable[..., float]) -> tuple[bool, str, bool]:
    """Whether a function accepts weights, how it accepts events, and whether it needs them.

    Events are its parameter ``event``, or its fourth parameter.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False, "", False
    kinds = [p.kind for p in parameters.values()]
    positional = [p for p in parameters.values() if p.kind in (0, 1)]
    unnamed = [p for p in positional if p.name != "event"]
    weighted = len(unnamed) > 2 or inspect.Parameter.VAR_POSITIONAL in kinds
    event = parameters.get("event", unnamed[3] if len(unnamed) > 3 else None)
    if event is None:
        return weighted, "", False
    by_name = "keyword" if event.name == "event" else "position"
    return weighted, by_name, event.default is inspect.Parameter.empty


def by_weights(ask: Callable[..., float], weight: FloatArray) -> Influence:
    """Differentiate with respect to the weight of each point."""
    every, n = slice(None), len(weight)
    value, slopes = ask(every, weight.copy()), np.empty(n)
    for i in range(n):
        ends = []
        for step in (STEP, -STEP):
            moved = weight.copy()
            moved[i] += step
            ends.append(ask(every, moved))
        slopes[i] = (ends[0] - ends[1]) / (2 * STEP) * n
    return value, slopes - weight @ slopes / n


def by_jackknife(ask: Callable[..., float], n: int) -> Influence:
    """Leave out one point at a time."""
    keep = np.ones(n, dtype=bool)
    value = ask(slice(None))
    if n < 2:
        raise UndefinedMetricError("the cell has one point")
    without = np.empty(n)
    for i in range(n):
        keep[i] = False
        without[i] = ask(keep)
        keep[i] = True
    return value, (n - 1) * (without.mean() - without)


def number(value: Any) -> float:
    """Convert the return value of a metric to a number."""
    found = np.asarray(value)
    if found.size != 1 or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise UndefinedMetricError(f"the function returned {value!r}, which is not a finite number")
    return float(found.reshape(()))
