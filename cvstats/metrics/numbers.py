"""Metrics of numbers and probabilities: functions of a few means, and logistic calibration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import special

from cvstats.core.kernels import compiled
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.metrics.metric import Influence, Metric, MetricOptions, Points, UndefinedMetricError

LINE = 1024
"""Block size of summation, which limits rounding errors."""


@compiled(reorder=True)
def mean_square(one: FloatArray, other: FloatArray, out: FloatArray) -> float:
    """Square the differences of two columns into ``out``, and average them."""
    total = 0.0
    for start in range(0, len(one), LINE):
        part = 0.0
        for i in range(start, min(start + LINE, len(one))):
            apart = one[i] - other[i]
            out[i] = apart * apart
            part += out[i]
        total += part
    return total / len(one)


@compiled()
def scale_deviations(numbers: FloatArray, mean: float, factor: float) -> None:
    """Multiply deviations from a mean by a factor, in place."""
    for i in range(len(numbers)):
        numbers[i] = (numbers[i] - mean) * factor


def rmse(points: Points, options: MetricOptions) -> Influence:
    """Root mean squared error; without any error its influence is 0."""
    phi = np.empty(len(points.truth))
    m = mean_square(points.truth, points.prediction, phi)
    if points.weight is not None:
        m = points.mean(phi)
    value = float(np.sqrt(m))
    scale_deviations(phi, m, 0.5 / value if value > 0 else 1.0)
    return value, phi


def r2(points: Points, options: MetricOptions) -> Influence:
    """Explained fraction of the variance of the truth about the cell's mean."""
    square, apart = squares_of_r2(points)
    m, s = points.mean(square), points.mean(apart)
    if not s > 0:
        raise UndefinedMetricError("the truth is constant")
    return 1 - m / s, -(square - m / s * apart) / s


def squares_of_r2(points: Points) -> tuple[FloatArray, FloatArray]:
    """Squared errors, and squared deviations of the truth from its mean."""
    apart = points.truth - points.mean(points.truth)
    return (points.truth - points.prediction) ** 2, apart**2


def pearson(points: Points, options: MetricOptions) -> Influence:
    """Linear correlation."""
    standardized = []
    for what, values in (("truth", points.truth), ("prediction", points.prediction)):
        apart = values - points.mean(values)
        variance = points.mean(apart**2)
        if not variance > 0:
            raise UndefinedMetricError(f"the {what} is constant")
        standardized.append(apart / np.sqrt(variance))
    u, v = standardized
    value = points.mean(u * v)
    return value, u * v - value * (u**2 + v**2) / 2


def concordance_correlation(points: Points, options: MetricOptions) -> Influence:
    """Lin's concordance correlation: T = 2C/D with D = A + B + (difference of means)^2."""
    means = points.mean(points.truth), points.mean(points.prediction)
    y, p, gap = points.truth - means[0], points.prediction - means[1], means[0] - means[1]
    a, b, c = points.mean(y**2), points.mean(p**2), points.mean(y * p)
    d = a + b + gap**2
    if not d > 0:
        raise UndefinedMetricError("truth and prediction are the same constant")
    value = 2 * c / d
    of_d = y**2 - a + p**2 - b + 2 * gap * (y - p)
    return value, (2 * (y * p - c) - value * of_d) / d


def skill(points: Points, options: MetricOptions) -> Influence:
    """One minus the ratio of the mean loss to that of a reference on the same points."""
    value, phi = relative_error(points, options)
    return 1 - value, -phi


def relative_error(points: Points, options: MetricOptions) -> Influence:
    """Ratio of the mean loss to that of a reference on the same points."""
    words = "the mean of the losses of the reference is 0"
    return points.ratio(points.truth, points.prediction, words)


def wmape(points: Points, options: MetricOptions) -> Influence:
    """Sum of absolute errors over the sum of the absolute truth."""
    return points.ratio(*absolute_errors(points), "the mean of the absolute truth is 0")


def absolute_errors(points: Points) -> tuple[FloatArray, FloatArray]:
    """Absolute errors, and the absolute truth."""
    return np.abs(points.truth - points.prediction), np.abs(points.truth)


def of_fisher_z(
    correlation: Callable[..., FloatArray], points: Points, phi: FloatArray
) -> tuple[float, float]:
    """Divide the jackknife variance of atanh(r) by that of the influences; 1 with weights.

    ``correlation`` computes r from the sums of squares and of products about the means, and n times
    the squared difference of the means.
    """
    n = len(phi)
    means = points.truth.mean(), points.prediction.mean()
    x, y, gap = points.truth - means[0], points.prediction - means[1], means[0] - means[1]
    xx, yy, xy = (x @ x, y @ y, x @ y)
    k = n / (n - 1)
    apart = (n - 1) * (gap - (x - y) / (n - 1)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.arctanh(correlation(xx - k * x**2, yy - k * y**2, xy - k * x * y, apart))
        delta = (phi @ phi) / n**2 / (1 - correlation(xx, yy, xy, n * gap**2) ** 2) ** 2
        ratio = (n - 1) / n * ((z - z.mean()) ** 2).sum() / delta
    return (float(ratio) if points.weight is None and np.isfinite(ratio) else 1.0), 0.0


def of_pearson(xx: FloatArray, yy: FloatArray, xy: FloatArray, gap: FloatArray) -> FloatArray:
    """Linear correlation from sums of squares."""
    return xy / np.sqrt(xx * yy)


def of_lin(xx: FloatArray, yy: FloatArray, xy: FloatArray, gap: FloatArray) -> FloatArray:
    """Concordance correlation from sums of squares."""
    return 2 * xy / (xx + yy + gap)


def fieller(
    parts: Callable[[Points], tuple[FloatArray, FloatArray]], points: Points, phi: FloatArray
) -> tuple[float, float]:
    """Relative covariance of a ratio with its denominator, and relative variance of that."""
    own, reference = parts(points)
    above, below, weight = points.mean(own), points.mean(reference), points.weight
    share = np.full(len(own), 1 / len(own)) if weight is None else weight / weight.sum()
    to_ratio, to_below = share * (own - above / below * reference) / below, reference / below - 1
    return float(to_ratio @ (share * to_below)), float((share * to_below) @ (share * to_below))


def both_losses(points: Points) -> tuple[FloatArray, FloatArray]:
    """Losses of the model and of the reference."""
    return points.truth, points.prediction


UP_AND_DOWN = (-np.inf, np.inf)
UP_TO_ONE = (-np.inf, 1.0)
FROM_ZERO = (0.0, np.inf)
SIGNED = (-1.0, 1.0)


STEP = 1e-5
"""Step of the numerical derivative in a weight of mean 1."""


def metric_of(function: Callable[..., float], better: Literal["larger", "smaller"]) -> Metric:
    """Create the record of a function of truth, prediction and, optionally, weights.

    With weights the influence is the central difference in each of them, otherwise (also if the
    function does not change with its weights) the jackknife, recentered so that the
    mean of the pseudo-values is the metric. Either calls the metric about once or twice per point.
    """
    weighted, named_weight, own_event, needs_event = arguments_of(function)

    def influence(points: Points, options: MetricOptions) -> Influence:
        weight, event = points.weight, points.event
        if needs_event and event is None:
            raise LogError(
                f"{name} has a parameter for events. Pass the column that is 1 for event times "
                "and 0 for censored times: event='died'."
            )
        columns = [points.truth, points.prediction, *([] if event is None else [event])]

        def ask(rows: Any, *weights: FloatArray, **named: FloatArray) -> float:
            first, second, *events = (column[rows] for column in columns)
            if own_event == "keyword" and events:
                named["event"] = events.pop()
            return number(function(first, second, *weights, *events, **named))

        if weighted:
            return by_weights(ask, points.weights if weight is None else weight / weight.mean())
        if weight is None or np.ptp(weight) == 0:
            return by_jackknife(ask, len(points.truth))
        if not named_weight:
            raise LogError(
                "weight= was passed, but the function does not accept weights. Expected "
                f"{name}(truth, prediction, weight), or a keyword sample_weight. To compute it "
                "without weights, omit weight=."
            )
        return by_weights(
            lambda rows, weights: ask(rows, sample_weight=weights), weight / weight.mean()
        )

    name = name_function(function)
    takes = ("event",) if own_event else ()
    return Metric(name, name, "any", influence, UP_AND_DOWN, "average", better=better, takes=takes)


def name_function(function: Callable[..., float]) -> str:
    """Name a function, or that of which it is partial."""
    return str(getattr(getattr(function, "func", function), "__name__", "metric"))


def arguments_of(function: Callable[..., float]) -> tuple[bool, bool, str, bool]:
    """Whether a function accepts weights, or ``sample_weight``, and how it accepts events.

    Weights are its third parameter, unless that is another option with a default. Events are its
    parameter ``event``, or its fourth parameter. The last value is whether it needs them.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False, False, "", False
    kinds = [p.kind for p in parameters.values()]
    positional = [p for p in parameters.values() if p.kind in (0, 1)]
    unnamed = [p for p in positional if p.name != "event"]
    weighted = inspect.Parameter.VAR_POSITIONAL in kinds
    if len(unnamed) > 2:
        name, required = unnamed[2].name, unnamed[2].default is inspect.Parameter.empty
        weighted = required or name.startswith("w") or "weight" in name
    named = not weighted and "sample_weight" in parameters
    event = parameters.get("event", unnamed[3] if weighted and len(unnamed) > 3 else None)
    if event is None:
        return weighted, named, "", False
    by_name = "keyword" if event.name == "event" else "position"
    return weighted, named, by_name, event.default is inspect.Parameter.empty


def by_weights(ask: Callable[..., float], weight: FloatArray) -> Influence:
    """Differentiate with respect to the weight of each point, if the metric changes with any."""
    every, n = slice(None), len(weight)
    value, slopes = ask(every, weight.copy()), np.empty(n)
    for i in range(n):
        ends = []
        for step in (STEP, -STEP):
            moved = weight.copy()
            moved[i] += step
            ends.append(ask(every, moved))
        slopes[i] = (ends[0] - ends[1]) / (2 * STEP) * n
    if slopes.any():
        return value, slopes - weight @ slopes / n
    value, influences = by_jackknife(lambda rows: ask(rows, weight[rows]), n)
    if np.ptp(weight) > 0 and influences.any():
        raise LogError(
            "the function does not change with its weights. Expected a function that uses them. To "
            "compute it without weights, omit weight=."
        )
    return value, influences


def by_jackknife(ask: Callable[..., float], n: int) -> Influence:
    """Leave out one point at a time."""
    keep = np.ones(n, dtype=bool)
    value = ask(slice(None))
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


# --- calibration ----------------------------------------------------------------------------------


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
    return special.logit(probability)


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
    words = "the mean of the predicted probabilities is 0"
    return points.ratio(y, points.prediction, words)


METRICS = [
    Metric("rmse", "RMSE", "numbers", rmse, FROM_ZERO, better="smaller", fold_bias=2.0),
    Metric(
        "r2", "R2", "numbers", r2, UP_TO_ONE, fold_bias=np.inf, limits="log",
        shape=partial(fieller, squares_of_r2),
    ),
    Metric(
        "pearson", "Pearson correlation", "numbers", pearson, SIGNED, fold_bias=2.0,
        limits="fisher-z", shape=partial(of_fisher_z, of_pearson),
    ),
    Metric(
        "concordance_correlation", "concordance correlation", "numbers", concordance_correlation,
        SIGNED, fold_bias=15.0, limits="fisher-z", shape=partial(of_fisher_z, of_lin),
    ),
    Metric(
        "wmape", "weighted MAPE", "numbers", wmape, FROM_ZERO, better="smaller", fold_bias=2.0,
        shape=partial(fieller, absolute_errors),
    ),
    Metric(
        "skill", "skill", "losses", skill, UP_TO_ONE, takes=("reference",), fold_bias=5.0,
        limits="fieller", shape=partial(fieller, both_losses),
    ),
    Metric(
        "relative_error", "relative error", "losses", relative_error, FROM_ZERO, better="smaller",
        takes=("reference",), fold_bias=5.0, limits="fieller", shape=partial(fieller, both_losses),
    ),
    Metric(
        "calibration_slope", "calibration slope", "probabilities", calibration_slope, UP_AND_DOWN,
        better="closer", target=1.0, takes=("clip",), fold_bias=np.inf,
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
