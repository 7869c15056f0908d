"""The no-information error rate: the mean loss if predictions had nothing to do with the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray
from cvstats.loss_functions import LossOptions, pointwise

Values = NDArray[Any]


def no_information(
    truth: Values, prediction: Values, loss: str | Callable[[Any, Any], Any], options: LossOptions
) -> float:
    """Average the loss over all pairs of a truth and a prediction (Efron and Tibshirani 1997, 28).

    Squared error, the Brier score and 0/1 loss take as many steps as there are points, absolute
    error a sort more. For other losses it is one step for each different truth and prediction,
    which is little for classes.
    """
    if loss == "squared_error":
        return squared(truth, prediction)
    if loss == "brier" and prediction.ndim == 1:
        return squared(truth == options.positive, prediction)
    if loss == "brier":
        pairs = zip(options.classes or (), prediction.T, strict=True)
        return float(sum(squared(truth == label, column) for label, column in pairs))
    if loss == "absolute_error":
        return absolute(truth.astype(np.float64), prediction.astype(np.float64))
    if loss == "zero_one":
        return zero_one(truth, prediction)
    values, shares = counted(truth)
    rates = [
        float(np.mean(pointwise(repeated(value, len(truth)), prediction, loss, options)))
        for value in values
    ]
    return float(np.average(rates, weights=shares))


def squared(truth: Values, prediction: Values) -> float:
    """``var(y) + var(f) + (mean(y) - mean(f))^2``, the variances with divisor n."""
    y, f = truth.astype(np.float64), prediction.astype(np.float64)
    return float(np.var(y) + np.var(f) + (np.mean(y) - np.mean(f)) ** 2)


def zero_one(truth: Values, prediction: Values) -> float:
    """``sum_c p_c (1 - q_c)``, the shares of a class among truths and predictions."""
    labels, shares = counted(truth)
    same = [float(np.mean(np.asarray(prediction == label))) for label in labels]
    return float(sum(p * (1 - q) for p, q in zip(shares, same, strict=True)))


def absolute(truth: FloatArray, prediction: FloatArray) -> float:
    """Mean distance of all pairs, from the sorted predictions and their running sums."""
    origin = np.mean(prediction)  # running sums about it keep their digits
    f = np.sort(prediction - origin)
    y = truth - origin
    n = len(f)
    below = np.searchsorted(f, y)
    running = np.concatenate([[0.0], np.cumsum(f)])
    total = y * below - running[below] + (running[n] - running[below]) - y * (n - below)
    return float(np.mean(total) / n)


def counted(truth: Values) -> tuple[list[Any], list[float]]:
    """Find the different truths and their shares."""
    values, counts = np.unique(truth, return_counts=True)
    return list(values), (counts / len(truth)).tolist()


def repeated(value: Any, n: int) -> Values:
    """Make a truth that is the same everywhere."""
    out = np.empty(n, dtype=np.asarray(value).dtype)
    out[:] = value
    return out
