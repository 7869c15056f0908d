"""Metrics of predicted labels, from the table of truth by prediction.

The influence of a point depends only on its true and predicted label, so a table of the shares of
all combinations is sufficient: it is small, and tables of parts can be added.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cvstats.core.types import FloatArray
from cvstats.metrics.metric import Influence, Metric, MetricOptions, Points, UndefinedMetricError


def influence_of_ratio(
    table: FloatArray, a: FloatArray, b: FloatArray, words: str, zero_division: float | None = None
) -> Influence:
    """Ratio of two means: T = A/B, and phi = (a - T b) / B."""
    above, below = float((table * a).sum()), float((table * b).sum())
    if below == 0:
        if zero_division is None:
            raise UndefinedMetricError(words)
        return float(zero_division), np.zeros_like(table)
    value = above / below
    return value, (a - value * b) / below


def parts(name: str, classes: int, c: int, beta: float) -> tuple[FloatArray, FloatArray]:
    """Numerator and denominator of the ratio of one class, for each truth and prediction."""
    truth = np.zeros((classes, classes))
    truth[c] = 1.0
    label = truth.T
    both = truth * label
    neither = (1 - truth) * (1 - label)
    square = beta**2
    return {
        "precision": (both, label),
        "recall": (both, truth),
        "specificity": (neither, 1 - truth),
        "npv": (neither, 1 - label),
        "jaccard": (both, truth + label - both),
        "fbeta": ((1 + square) * both, label + square * truth),
    }[name]


LACK = {
    "precision": "nothing is predicted as {c}",
    "recall": "no point is of {c}",
    "specificity": "every point is of {c}",
    "npv": "everything is predicted as {c}",
    "jaccard": "no point is of {c} and nothing is predicted as it",
    "fbeta": "no point is of {c} and nothing is predicted as it",
}
"""Reasons why the ratio of a class is 0/0."""

TRUTH_ONLY = ("recall", "specificity")
"""Ratios whose denominator does not depend on predictions: 0/0 then depends on the folds."""


def influence_of_classes(name: str, table: FloatArray, options: MetricOptions) -> Influence:
    """Ratio of the positive class, or of all classes averaged."""
    classes = len(table)
    zero = None if name in TRUTH_ONLY else options.zero_division
    if options.average == "binary":
        c = options.positive
        a, b = parts(name, classes, c, options.beta)
        return influence_of_ratio(table, a, b, LACK[name].format(c="the positive class"), zero)
    if options.average == "micro":
        a, b = np.sum([parts(name, classes, c, options.beta) for c in range(classes)], axis=0)
        return influence_of_ratio(table, a, b, "the cell is empty", zero)
    values, phi = influence_of_each_class(name, table, options.beta, zero)
    if options.average == "macro":
        return float(values.mean()), phi.mean(axis=0)
    share = table.sum(axis=1)  # weighted by the frequency of each true class
    own = values - share @ values  # (1[y = c] - p_c) T_c, summed over c
    return float(share @ values), np.tensordot(share, phi, 1) + own[:, None]


def influence_of_each_class(
    name: str, table: FloatArray, beta: float = 1.0, zero_division: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Ratio of each class, and its influence."""
    found = []
    for c in range(len(table)):
        a, b = parts(name, len(table), c, beta)
        words = LACK[name].format(c=f"{{{c}}}")
        found.append(influence_of_ratio(table, a, b, words, zero_division))
    return np.array([value for value, _ in found]), np.stack([phi for _, phi in found])


def accuracy(table: FloatArray, options: MetricOptions) -> Influence:
    """Fraction of correct labels."""
    right = np.eye(len(table))
    value = float(np.trace(table))
    return value, right - value


def balanced_accuracy(table: FloatArray, options: MetricOptions) -> Influence:
    """Mean of the recalls of all classes."""
    values, phi = influence_of_each_class("recall", table)
    return float(values.mean()), phi.mean(axis=0)


def g_mean(table: FloatArray, options: MetricOptions) -> Influence:
    """Geometric mean of the recalls of all classes."""
    values, phi = influence_of_each_class("recall", table)
    if values.min() == 0:
        raise UndefinedMetricError(
            f"the recall of {{{values.argmin()}}} is 0, where the geometric mean has no derivative"
        )
    value = float(np.exp(np.log(values).mean()))
    return value, value * np.tensordot(1 / values, phi, 1) / len(values)


def matthews(table: FloatArray, options: MetricOptions) -> Influence:
    """Correlation of truth and label (Gorodkin's R_K for several classes)."""
    truth, label = table.sum(axis=1), table.sum(axis=0)
    own = np.eye(len(table)) - label[:, None] - truth[None, :] + truth @ label
    of_truth = np.broadcast_to((1 - 2 * truth + truth @ truth)[:, None], table.shape)
    of_label = np.broadcast_to((1 - 2 * label + label @ label)[None, :], table.shape)
    c, a, b = (float((table * part).sum()) for part in (own, of_truth, of_label))
    if a <= ROUNDING or b <= ROUNDING:
        what = "one true class" if a <= ROUNDING else "one predicted class"
        raise UndefinedMetricError(f"there is only {what}")
    root = np.sqrt(a * b)
    value = c / root
    return value, (own - c) / root - value / 2 * ((of_truth - a) / a + (of_label - b) / b)


ROUNDING = 1e-14
"""Variance of labels below which it is rounding error; one point in a billion has 1e-9."""


def kappa(table: FloatArray, options: MetricOptions) -> Influence:
    """Cohen's kappa: agreement beyond chance, with weights for ordered classes."""
    apart = np.abs(np.subtract.outer(np.arange(len(table)), np.arange(len(table)))).astype(float)
    cost = {None: (apart > 0).astype(float), "linear": apart, "quadratic": apart**2}[
        options.weights
    ]
    truth, label = table.sum(axis=1), table.sum(axis=0)
    observed, expected = float((table * cost).sum()), float(truth @ cost @ label)
    if expected <= ROUNDING:
        raise UndefinedMetricError("truth and predictions are all of one class")
    chance = (cost @ label)[:, None] + (truth @ cost)[None, :] - 2 * expected
    phi = -(cost - observed) / expected + observed / expected**2 * chance
    return 1 - observed / expected, phi


def f1_of_sets(points: Points, options: MetricOptions) -> Influence:
    """Micro F1 of points with several labels each: a ratio of two means over points."""
    truth, label = points.truth, points.prediction
    a, b = 2.0 * (truth * label).sum(axis=1), 1.0 * (truth + label).sum(axis=1)
    words = "no point has a label and none is predicted"
    return points.ratio(a, b, words, options.zero_division)


SIGNED = (-1.0, 1.0)
CLASSES = ("average", "zero_division")

METRICS = [
    Metric("accuracy", "accuracy", "labels", accuracy),
    *(
        Metric(
            name,
            words,
            "labels",
            partial(influence_of_classes, ratio),
            takes=(*CLASSES, *more),
            fold_bias=0.0 if ratio in ("recall", "specificity") else 3.0,
        )
        for name, words, ratio, *more in (
            ("precision", "precision", "precision"),
            ("recall", "recall", "recall"),
            ("specificity", "specificity", "specificity"),
            ("npv", "negative predictive value", "npv"),
            ("f1", "F1", "fbeta"),
            ("fbeta", "F-beta", "fbeta", "beta"),
            ("jaccard", "Jaccard index", "jaccard"),
        )
    ),
    Metric("balanced_accuracy", "balanced accuracy", "labels", balanced_accuracy),
    Metric("g_mean", "G-mean", "labels", g_mean, fold_bias=3.0),
    Metric("matthews", "Matthews correlation", "labels", matthews, SIGNED, fold_bias=2.0),
    Metric("kappa", "Cohen kappa", "labels", kappa, SIGNED, takes=("weights",), fold_bias=3.0),
]

F1_OF_SETS = Metric("f1", "micro F1", "sets", f1_of_sets, takes=CLASSES)
"""F1 if the truth has a column for each label."""
