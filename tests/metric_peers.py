"""Metrics by other programs or by plain formulas: of truth, prediction and weights."""

from functools import partial
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import stats
from sklearn import metrics as sk


def weighted_pearson(y: Any, p: Any, sample_weight: Any) -> float:
    """Correlation from numpy's weighted covariance."""
    c = np.cov(y, p, aweights=sample_weight)
    return float(c[0, 1] / np.sqrt(c[0, 0] * c[1, 1]))


def pairs(y: Any, p: Any, sample_weight: Any) -> float:
    """C index by a table of all pairs."""
    weight = np.outer(sample_weight, sample_weight) * np.less.outer(y, y)
    right = np.less.outer(p, p) + 0.5 * np.equal.outer(p, p)
    return (weight * right).sum() / weight.sum()


def tau_a(y: Any, p: Any, sample_weight: Any) -> float:
    """Kendall's tau-a by a table of all pairs."""
    weight = np.outer(sample_weight, sample_weight) * ~np.eye(len(y), dtype=bool)
    signs = np.sign(np.subtract.outer(y, y)) * np.sign(np.subtract.outer(p, p))
    return (weight * signs).sum() / weight.sum()


def ordered_gini(y: Any, p: Any, sample_weight: Any) -> float:
    """Covariance with the middle ranks, relative to that of the best order."""

    def covariance(key: Any) -> float:
        rank = [
            sample_weight @ (key < own) + sample_weight @ (key == own) / 2 for own in key
        ]  # fmt: skip
        return float(np.cov(y, rank, aweights=sample_weight)[0, 1])

    return covariance(p) / covariance(y)


def flipped(function: Any) -> Any:
    """The same metric of the other class."""
    return lambda y, p, **k: function(1 - y, 1 - p, **k)


def unweighted(function: Any) -> Any:
    """A metric that knows no weights."""
    return lambda y, p, sample_weight: function(y, p)


def logistic(y: Any, p: Any, sample_weight: Any, *, slope: bool) -> Any:
    """The slope or intercept of a logistic regression on the logits."""
    x = np.log(p / (1 - p))
    ones = np.ones(len(x))
    columns, offset = (np.column_stack([x, ones]), 0 * x) if slope else (ones[:, None], x)
    binomial = sm.families.Binomial()
    return (
        sm.GLM(y, columns, binomial, offset=offset, freq_weights=sample_weight)
        .fit(tol=1e-13)
        .params[0]
    )


def rate(of: Any) -> Any:
    """Map the true and false positives and negatives of each class to a mean of the classes."""

    def value(y: Any, p: Any, sample_weight: Any) -> float:
        table = sk.confusion_matrix(y, p, sample_weight=sample_weight / sample_weight.sum())
        tp, truth, guess = np.diag(table), table.sum(axis=1), table.sum(axis=0)
        return float(of(tp, guess - tp, truth - tp, 1 - truth - guess + tp))

    return value


def auc_of_pairs(y: Any, p: Any, sample_weight: Any) -> float:
    """The mean AUC of one class against another, by their points."""
    w, areas, shares = sample_weight, [], []
    for one, other in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
        here = (y == one) | (y == other)
        areas.append(sk.roc_auc_score(y[here] == one, p[here, one], sample_weight=w[here]))
        shares.append(w[here].sum())
    return float(np.average(areas, weights=shares))


CLASSES = {"classes": [0, 1, 2]}
PEERS: dict[str, tuple[str, dict[str, Any], str, Any]] = {
    "accuracy": ("accuracy", {}, "labels", sk.accuracy_score),
    "precision": ("precision", {}, "labels", sk.precision_score),
    "recall": ("recall", {}, "labels", sk.recall_score),
    "specificity": ("specificity", {}, "labels", flipped(sk.recall_score)),
    "npv": ("npv", {}, "labels", flipped(sk.precision_score)),
    "f1": ("f1", {}, "labels", sk.f1_score),
    "fbeta": ("fbeta", {"beta": 0.5}, "labels", partial(sk.fbeta_score, beta=0.5)),
    "jaccard": ("jaccard", {}, "labels", sk.jaccard_score),
    "balanced_accuracy": ("balanced_accuracy", {}, "three labels", sk.balanced_accuracy_score),
    "matthews": ("matthews", {}, "three labels", sk.matthews_corrcoef),
    "kappa": ("kappa", {"weights": "linear"}, "three labels",
              lambda y, p, **k: sk.cohen_kappa_score(y, p, weights="linear", **k)),
    **{
        f"{name} {average}": (name, {"average": average}, "three labels",
                              lambda y, p, a=average, f=function, **k: f(y, p, average=a, **k))
        for name, function in (
            ("f1", sk.f1_score), ("precision", sk.precision_score), ("recall", sk.recall_score),
            ("jaccard", sk.jaccard_score),
        )
        for average in ("macro", "weighted", "micro")
    },
    "g_mean": ("g_mean", {}, "three labels",
               rate(lambda tp, fp, fn, tn: np.prod(tp / (tp + fn)) ** (1 / 3))),
    "specificity micro": ("specificity", {"average": "micro"}, "three labels",
                          rate(lambda tp, fp, fn, tn: tn.sum() / (tn + fp).sum())),
    "npv macro": ("npv", {"average": "macro"}, "three labels",
                  rate(lambda tp, fp, fn, tn: np.mean(tn / (tn + fn)))),
    "auc": ("auc", {}, "scores", sk.roc_auc_score),
    "gini": ("gini", {}, "scores", lambda y, p, **k: 2 * sk.roc_auc_score(y, p, **k) - 1),
    "average_precision": ("average_precision", {}, "scores", sk.average_precision_score),
    **{
        f"auc ovr {average}": ("auc", {"average": average, **CLASSES}, "chances of three",
                               lambda y, p, a=average, **k: sk.roc_auc_score(
                                   y, p, average=a, multi_class="ovr", **k))
        for average in ("macro", "weighted")
    },
    "auc ovo": ("auc", {"multi_class": "ovo", **CLASSES}, "chances of three",
                unweighted(lambda y, p: sk.roc_auc_score(y, p, multi_class="ovo"))),
    "auc ovo weighted": ("auc", {"multi_class": "ovo", "average": "weighted", **CLASSES},
                         "chances of three", auc_of_pairs),
    "calibration_slope": ("calibration_slope", {}, "chances", partial(logistic, slope=True)),
    "calibration_intercept": (
        "calibration_intercept", {}, "chances", partial(logistic, slope=False),
    ),
    "observed_expected": ("observed_expected", {}, "chances",
                          lambda y, p, sample_weight: (sample_weight @ y) / (sample_weight @ p)),
    "rmse": ("rmse", {}, "numbers", sk.root_mean_squared_error),
    "r2": ("r2", {}, "numbers", sk.r2_score),
    "pearson": ("pearson", {}, "numbers", weighted_pearson),
    "spearman": ("spearman", {}, "numbers", unweighted(lambda y, p: stats.spearmanr(y, p)[0])),
    "kendall": ("kendall", {}, "numbers", unweighted(lambda y, p: stats.kendalltau(y, p)[0])),
    "kendall_a": ("kendall_a", {}, "numbers", tau_a),
    "ordered_gini": ("ordered_gini", {}, "numbers", ordered_gini),
    "concordance": ("concordance", {}, "numbers", pairs),
    "somers_d": ("somers_d", {}, "numbers", lambda y, p, **k: 2 * pairs(y, p, **k) - 1),
    "wmape": ("wmape", {}, "numbers", lambda y, p, sample_weight: (
        (sample_weight * abs(y - p)).sum() / (sample_weight * abs(y)).sum())),
}  # fmt: skip
"""A metric with its options, what it reads, and the same by another program."""

UNWEIGHTED = ("auc ovo", "spearman", "kendall")
"""Those whose other program knows no weights."""
