"""Metrics of predicted numbers that are functions of a few means: RMSE, R2, correlations."""

from __future__ import annotations

import numpy as np

from cvstats.core.types import FloatArray
from cvstats.metrics import kernels
from cvstats.metrics._metric import Influence, Metric, MetricOptions, UndefinedMetricError, mean


def rmse(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Root of the mean squared error; without any error its influence is 0."""
    phi = np.empty(len(truth))
    m = kernels.mean_square(truth, prediction, phi)
    if weight is not None:
        m = mean(weight, phi)
    value = float(np.sqrt(m))
    phi -= m
    if value > 0:
        phi /= 2 * value
    return value, phi


def r2(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray | None, options: MetricOptions
) -> Influence:
    """Share of the variance of the truth that is explained, about the cell's own mean."""
    square = (truth - prediction) ** 2
    apart = (truth - mean(weight, truth)) ** 2
    m, s = mean(weight, square), mean(weight, apart)
    if not s > 0:
        raise UndefinedMetricError("the truth is one and the same number throughout")
    return 1 - m / s, -(square - m / s * apart) / s


def standardize(values: FloatArray, weight: FloatArray | None, what: str) -> FloatArray:
    """Subtract the mean, divide by the standard deviation."""
    apart = values - mean(weight, values)
    variance = mean(weight, apart**2)
    if not variance > 0:
        raise UndefinedMetricError(f"the {what} is one and the same number throughout")
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
        raise UndefinedMetricError("truth and prediction are one and the same number throughout")
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


UP_TO_ONE = (-np.inf, 1.0)
FROM_ZERO = (0.0, np.inf)
SIGNED = (-1.0, 1.0)

METRICS = [
    Metric("rmse", "RMSE", "numbers", rmse, FROM_ZERO, better="smaller"),
    Metric("r2", "R2", "numbers", r2, UP_TO_ONE, biased_by_fold=True),
    Metric("pearson", "Pearson correlation", "numbers", pearson, SIGNED),
    Metric(
        "concordance_correlation", "concordance correlation", "numbers", concordance_correlation,
        SIGNED,
    ),
    Metric("wmape", "weighted MAPE", "numbers", wmape, FROM_ZERO, better="smaller"),
    Metric("skill", "skill", "losses", skill, UP_TO_ONE, takes=("reference", "base")),
    Metric(
        "relative_error", "relative error", "losses", relative_error, FROM_ZERO, better="smaller",
        takes=("reference", "base"),
    ),
]  # fmt: skip
