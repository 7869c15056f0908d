"""Calibration of predicted probabilities: metrics with a target value instead of a direction.

The slope and intercept of a logistic regression of the truth on the logit of the prediction (Cox
1958, doi:10.1093/biomet/45.3-4.562; Van Calster et al. 2019, doi:10.1186/s12916-019-1466-7) are
solutions of ``sum w (y - m) x = 0``; their influences are those of such estimators (Huber 1967).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from cvstats.core.types import FloatArray
from cvstats.metrics.metric import Influence, Metric, MetricOptions, Points, UndefinedMetricError
from cvstats.metrics.numbers import FROM_ZERO, UP_AND_DOWN, ratio

STEPS = 100
"""Maximum number of Newton steps; a few suffice if the classes are not separated."""

PRECISION = 1e-14
"""Relative step size below which a step is rounding error."""


def logits(probability: FloatArray, options: MetricOptions) -> FloatArray:
    """Take the logit of each probability."""
    if options.clip is not None:
        probability = np.clip(probability, options.clip, 1 - options.clip)
    elif probability.min() <= 0 or probability.max() >= 1:
        raise UndefinedMetricError("a predicted probability is 0 or 1, whose logit is infinite")
    found: FloatArray = special.logit(probability)
    return found


def classes_of(points: Points, options: MetricOptions) -> tuple[FloatArray, FloatArray]:
    """Code the positive class as 1, and compute the share of weight of each point."""
    y = (points.truth == options.positive).astype(np.float64)
    weight = points.weight
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    if not 0 < share @ y < 1 - PRECISION:
        raise UndefinedMetricError("the truth has only one class")
    return y, share


def fit_logistic(
    y: FloatArray, columns: FloatArray, offset: FloatArray, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit a logistic regression: the coefficients, and the influence of each point on them."""

    def log_likelihood(coefficients: FloatArray) -> float:
        logit = offset + columns @ coefficients
        return float(share @ (y * logit - np.logaddexp(0, logit)))

    found = np.zeros(columns.shape[1])
    height = log_likelihood(found)
    for _ in range(STEPS):
        m = special.expit(offset + columns @ found)
        curvature = (columns * (share * m * (1 - m))[:, None]).T @ columns
        step = np.linalg.solve(curvature, columns.T @ (share * (y - m)))
        higher = log_likelihood(found + step)
        while higher < height - PRECISION * abs(height):
            step /= 2
            higher = log_likelihood(found + step)
        found, height = found + step, higher
        if np.abs(step).max() <= PRECISION * (1 + np.abs(found).max()):
            break
    m = special.expit(offset + columns @ found)
    curvature = (columns * (share * m * (1 - m))[:, None]).T @ columns
    phi = np.linalg.solve(curvature, (columns * (y - m)[:, None]).T)
    return found, np.asarray(phi, dtype=np.float64)


def calibration_slope(points: Points, options: MetricOptions) -> Influence:
    """Slope of the truth on the logit of the prediction; below 1 predictions are too extreme."""
    y, share = classes_of(points, options)
    x, some = logits(points.prediction, options), share > 0
    high, low = x[some & (y == 1)], x[some & (y == 0)]
    if x[some].min() == x[some].max():
        raise UndefinedMetricError("the prediction is constant")
    if high.min() >= low.max() or high.max() <= low.min():
        raise UndefinedMetricError("the predictions separate the classes, so the slope is infinite")
    centered = x - share @ x
    columns = np.column_stack([np.ones(len(x)), centered])
    found, phi = fit_logistic(y, columns, np.zeros(len(x)), share)
    return float(found[1]), phi[1]


def calibration_intercept(points: Points, options: MetricOptions) -> Influence:
    """Calibration in the large: the offset to add to the logit of all predictions."""
    y, share = classes_of(points, options)
    columns = np.ones((len(y), 1))
    found, phi = fit_logistic(y, columns, logits(points.prediction, options), share)
    return float(found[0]), phi[0]


def observed_expected(points: Points, options: MetricOptions) -> Influence:
    """Ratio of the number of positives to the sum of their predicted probabilities."""
    y = (points.truth == options.positive).astype(np.float64)
    return ratio(points, y, points.prediction, "the predicted probabilities")


METRICS = [
    Metric(
        "calibration_slope", "calibration slope", "probabilities", calibration_slope, UP_AND_DOWN,
        better="closer", target=1.0, takes=("clip",), biased_by_fold=True,
    ),
    Metric(
        "calibration_intercept", "calibration intercept", "probabilities", calibration_intercept,
        UP_AND_DOWN, better="closer", target=0.0, takes=("clip",),
    ),
    Metric(
        "observed_expected", "ratio of observed to expected positives", "probabilities",
        observed_expected, FROM_ZERO, better="closer", target=1.0, limits="log",
    ),
]  # fmt: skip
