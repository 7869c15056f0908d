"""Metrics of ranks: AUC, average precision, Spearman, Kendall and concordance, by sorting.

A metric of pairs is a U-statistic; the influence of a point is twice the deviation of its own pairs
(Hoeffding 1948, doi:10.1214/aoms/1177730196). For the AUC this is DeLong's method (DeLong, DeLong
and Clarke-Pearson 1988, doi:10.2307/2531595; LeDell, Petersen and van der Laan 2015,
doi:10.1214/15-EJS1035).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cvstats.core.kernels import compiled
from cvstats.core.types import FloatArray
from cvstats.metrics.metric import (
    Influence,
    Metric,
    MetricOptions,
    Points,
    UndefinedMetricError,
    correct_classes,
    mean,
)


def area(
    positive: NDArray[Any], score: FloatArray, weight: FloatArray, share: float | None = None
) -> Influence:
    """Probability that a positive scores higher than a negative, with ties counted by half.

    ``share`` is the share of positives; by default, their share of these points.
    """
    both = weight[positive], weight[~positive]
    if not (both[0].sum() > 0 and both[1].sum() > 0):
        raise UndefinedMetricError("the truth has only one class")
    placed = np.empty(len(score))
    order = np.argsort(score)
    total, w0, w1 = class_placements(score, positive, weight, order, placed)
    value = total / w1
    placed -= value
    share = w1 / (w0 + w1) if share is None else share
    if not 0 < share < 1:
        raise UndefinedMetricError("the weights of the other class are too small to count")
    placed *= np.where(positive, 1 / share, 1 / (1 - share))
    return value, placed


def auc(points: Points, options: MetricOptions) -> Influence:
    """Area under the ROC curve, of two classes or averaged over several."""
    truth, score, weight = points.columns
    if score.ndim == 1:
        known = options.class_shares
        positive = None if known is None else float(known[options.positive])
        return area(truth == options.positive, score, weight, positive)
    if options.multi_class == "ovo":
        return one_against_one(truth, score, weight, options)
    found = [area_of_class(c, truth, score, weight, options) for c in range(options.labels)]
    values = np.array([value for value, _ in found])
    phi = np.stack([phi for _, phi in found])
    if options.average == "macro":
        return float(values.mean()), phi.mean(axis=0)
    share = np.bincount(truth, weight, options.labels) / weight.sum()
    return float(share @ values), share @ phi + (values[truth] - share @ values)


def area_of_class(
    c: int, truth: NDArray[Any], score: FloatArray, weight: FloatArray, options: MetricOptions
) -> Influence:
    """AUC of one class against the others."""
    positive = truth == c
    value, phi = area(positive, score[:, c].copy(), weight)
    if options.ddof:
        phi *= correct_classes(positive.astype(np.int64), np.bincount(positive, minlength=2))
    return value, phi


def one_against_one(
    truth: NDArray[Any], score: FloatArray, weight: FloatArray, options: MetricOptions
) -> Influence:
    """Mean over pairs of classes (Hand and Till 2001, doi:10.1023/A:1010920819831).

    Weighted equally, or by the share of the points in the two classes.
    """
    by_size = options.average == "weighted"
    pairs = list(combinations(range(score.shape[1]), 2))
    value, phi = 0.0, np.zeros(len(truth))
    for pair in pairs:
        here = np.isin(truth, pair)
        w = weight[here]
        both = [area_of_class(c, truth[here], score[here], w, options) for c in pair]
        own = (both[0][0] + both[1][0]) / 2
        size = w.sum() / weight.sum()
        share = size / (score.shape[1] - 1) if by_size else 1 / len(pairs)
        value += share * own
        phi[here] += share / size * (both[0][1] + both[1][1]) / 2
        if by_size:
            phi[here] += own / (score.shape[1] - 1)
    return value, phi - value if by_size else phi


def partial_auc(points: Points, options: MetricOptions) -> Influence:
    """Area under the ROC curve up to a false positive rate (Dodd and Pepe 2003).

    Its largest value is that rate. The cutoff is a quantile of the negatives and varies with
    them; its effect on the area is the height of the curve there, which needs no density
    estimate.
    """
    truth, score, weight = points.columns
    positive, limit = truth == options.positive, cast(float, options.max_fpr)
    levels, at = np.unique(-score, return_inverse=True)
    w1, w0 = weight * positive, weight * ~positive
    if not (w1.sum() > 0 and w0.sum() > 0):
        raise UndefinedMetricError("the truth has only one class")
    rates = [
        np.concatenate([[0.0], np.cumsum(np.bincount(at, w, len(levels)))]) / w.sum()
        for w in (w0, w1)
    ]
    (x0, x1), (y0, y1) = ((rate[:-1], rate[1:]) for rate in rates)
    wide = x1 - x0
    inside = np.clip(limit - x0, 0.0, wide)  # the part of each segment before the cut
    part = np.divide(inside, wide, out=1.0 * (x1 <= limit), where=wide > 0)
    value = float((inside * (y0 + part * (y1 - y0) / 2)).sum())
    last = int(np.searchsorted(x1, limit * (1 - ROUNDING)))  # the segment that reaches the cut
    end = float(y0[last] + part[last] * (y1 - y0)[last])
    whole = x1 <= limit
    to_the_right = np.where(whole, limit - (x0 + x1) / 2, 0.0)
    height = np.where(whole, (y0 + y1) / 2 - end, -(y1 - y0) * part**2 / 2)
    cut = ~whole & (x0 < limit)
    to_the_right[cut] = inside[cut] ** 2 / (2 * wide[cut])
    height[x0 >= limit] = 0.0
    phi = np.where(positive, to_the_right[at], height[at] + limit * end) - value
    phi *= weight.sum() / np.where(positive, w1.sum(), w0.sum())
    return value, phi


def gini(points: Points, options: MetricOptions) -> Influence:
    """Gini coefficient of a score: 2 AUC - 1."""
    value, phi = auc(points, options)
    return 2 * value - 1, 2 * phi


def average_precision(points: Points, options: MetricOptions) -> Influence:
    """Mean over the positives of the precision at their score."""
    truth, score, weight = points.columns
    positive = truth == options.positive
    if not positive.any() or not weight[positive].sum() > 0:
        raise UndefinedMetricError("no point is of the positive class")
    phi = np.empty(len(score))
    value = average_precision_terms(score, positive, weight, np.argsort(score), phi)
    return value, phi


def middle_ranks(values: FloatArray, weight: FloatArray) -> tuple[FloatArray, NDArray[Any]]:
    """Centered relative rank of each point (ties by half), and the order."""
    out, order = np.empty(len(values)), np.argsort(values)
    split_sums(values, weight, order, out)
    return out / weight.sum() - 0.5, order


def change_of_ranks(
    key: FloatArray, own: FloatArray, other: FloatArray, weight: FloatArray, order: NDArray[Any]
) -> FloatArray:
    """E_j[(k(x_i, x_j) - F_j) b_j]: effect of point i on the mean of b through the ranks of x."""
    below = np.empty(len(key))
    split_sums(key, weight * other, order, below)
    total = weight.sum()
    change: FloatArray = (other @ weight - below) / total - mean(weight, (own + 0.5) * other)
    return change


def spearman(points: Points, options: MetricOptions) -> Influence:
    """Rank correlation, with middle ranks for ties."""
    truth, prediction, weight = points.columns
    a, of_a = middle_ranks(truth, weight)
    b, of_b = middle_ranks(prediction, weight)
    c, aa, bb = mean(weight, a * b), mean(weight, a**2), mean(weight, b**2)
    refuse_constants(aa, bb)
    to_c = a * b - c + change_of_ranks(truth, a, b, weight, of_a)
    to_c += change_of_ranks(prediction, b, a, weight, of_b)
    to_a = a**2 - aa + 2 * change_of_ranks(truth, a, a, weight, of_a)
    to_b = b**2 - bb + 2 * change_of_ranks(prediction, b, b, weight, of_b)
    value = c / np.sqrt(aa * bb)
    return float(value), to_c / np.sqrt(aa * bb) - value / 2 * (to_a / aa + to_b / bb)


def refuse_constants(of_truth: float, of_prediction: float) -> None:
    """Reject constant truth or predictions."""
    for variation, what in ((of_truth, "truth"), (of_prediction, "prediction")):
        if not variation > 1e-14:
            raise UndefinedMetricError(f"the {what} is constant")


def pairs(
    truth: FloatArray, prediction: FloatArray, weight: FloatArray, event: NDArray[Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Shares of all points that are concordant and comparable with each point."""
    happened = np.ones(len(truth), dtype=bool) if event is None else np.asarray(event, dtype=bool)
    levels, rank = np.unique(prediction, return_inverse=True)
    as_first, as_second = np.zeros((2, 2, len(truth)))
    pair_sums(
        truth, happened, rank, weight, weight, np.argsort(truth), len(levels), as_first, as_second
    )
    same, comparable = (as_first + as_second) / weight.sum()
    return same, comparable


def concordance(points: Points, options: MetricOptions) -> Influence:
    """Harrell's C index: fraction of comparable pairs predicted in the correct order."""
    truth, prediction, weight = points.columns
    same, comparable = pairs(truth, prediction, weight, points.event)
    below = mean(weight, comparable)
    if not below > 0:
        raise UndefinedMetricError("no two points are comparable")
    value = mean(weight, same) / below
    return value, 2 * (same - value * comparable) / below


def somers_d(points: Points, options: MetricOptions) -> Influence:
    """Somers' D: concordant minus discordant pairs, as a fraction of comparable pairs."""
    value, phi = concordance(points, options)
    return 2 * value - 1, 2 * phi


def kendall(points: Points, options: MetricOptions) -> Influence:
    """Kendall's tau-b."""
    truth, prediction, weight = points.columns
    same, of_truth = pairs(truth, prediction, weight)
    # same counts pairs untied in the truth, those tied in the prediction by half
    k = 2 * same - of_truth
    _, at = np.unique(prediction, return_inverse=True)
    of_prediction = 1 - np.bincount(at, weight)[at] / weight.sum()  # with another prediction
    c, a, b = (mean(weight, part) for part in (k, of_truth, of_prediction))
    refuse_constants(a, b)
    value = c / np.sqrt(a * b)
    return float(value), 2 * (
        (k - c) / np.sqrt(a * b) - value / 2 * ((of_truth - a) / a + (of_prediction - b) / b)
    )


def kendall_a(points: Points, options: MetricOptions) -> Influence:
    """Kendall's tau-a: concordant minus discordant pairs, as a fraction of all pairs."""
    truth, prediction, weight = points.columns
    same, of_truth = pairs(truth, prediction, weight)
    total = weight.sum()
    every = 1 - mean(weight, weight) / total  # the share of pairs of two points
    if not every > 0:
        raise UndefinedMetricError("all weight is on one point")
    value = mean(weight, 2 * same - of_truth) / every
    return value, 2 * (2 * same - of_truth - value * (1 - weight / total)) / every


def ordered_gini(points: Points, options: MetricOptions) -> Influence:
    """Covariance of the truth with the ranks of the prediction, relative to its own ranks.

    This is the Gini index of the truth ordered by the prediction (Frees, Meyers and Cummings 2011,
    doi:10.1198/jasa.2011.tm10506), as a share of what the best order would reach.
    """
    truth, prediction, weight = points.columns
    middle = truth - mean(weight, truth)
    found = []
    for key in (prediction, truth):
        ranks, order = middle_ranks(key, weight)
        change = change_of_ranks(key, ranks, middle, weight, order)
        found.append((mean(weight, middle * ranks), middle * ranks + change))
    (own, to_own), (best, to_best) = found
    if not best > ROUNDING * mean(weight, np.abs(middle)):
        raise UndefinedMetricError("the truth is constant")
    value = own / best
    return value, (to_own - value * to_best) / best


ROUNDING = 1e-14
"""Covariance relative to the mean deviation below which it is rounding error."""

# Spans of order: 95% limits of 20 to 200 points in perfect order, except for 2 to 12 with random
# predictions, cover .939 or more for the C index and Kendall's tau (.889 with 1 / 2, as for AUC),
# and .934 or more for Spearman's correlation (.860 with 1, the mean change by a random prediction).
# With half of the times censored, 1 / 2 is enough for the C index: see `note_reach`.
SIGNED = (-1.0, 1.0)
AREA = ("average", "multi_class", "ddof", "class_shares")

METRICS = [
    Metric(
        "auc", "AUC", "scores", auc, folds="average", takes=AREA, scales_classes=True,
        span=0.5,
    ),
    Metric(
        "gini", "Gini coefficient", "scores", gini, SIGNED, "average",
        takes=AREA, scales_classes=True, span=1.0,
    ),
    Metric(
        "partial_auc", "partial AUC", "scores", partial_auc, folds="average", takes=("max_fpr",),
        fold_bias=5.0, span=0.5,
    ),
    Metric(
        "average_precision", "average precision", "scores", average_precision, folds="average",
        fold_bias=np.inf, span=1.0,
    ),
    Metric(
        "spearman", "Spearman correlation", "numbers", spearman, SIGNED, "average",
        fold_bias=5.0, span=1.75,
    ),
    Metric("kendall", "Kendall tau-b", "numbers", kendall, SIGNED, "average", span=1.5),
    Metric("kendall_a", "Kendall tau-a", "numbers", kendall_a, SIGNED, "average", span=1.5),
    Metric(
        "ordered_gini", "ordered Gini index", "numbers", ordered_gini, SIGNED, "average",
        fold_bias=10.0,
    ),
    Metric(
        "concordance", "C index", "times", concordance, folds="average", takes=("event",), span=0.5,
    ),
    Metric(
        "somers_d", "Somers D", "times", somers_d, SIGNED, "average", takes=("event",), span=1.0,
    ),
]  # fmt: skip


# --- loops over the points of a cell --------------------------------------------------------------


Codes = NDArray[np.signedinteger[Any]]


@compiled()
def class_placements(
    score: FloatArray, truth: Any, weight: FloatArray, order: Codes, out: FloatArray
) -> tuple[float, float, float]:
    """Share of the other class on the correct side of each point, with ties counted by half.

    Returns the sum of these over the positives, and the weight of both classes.
    """
    n = len(order)
    negative, positive = 0.0, 0.0
    for i in range(n):
        if truth[i]:
            positive += weight[i]
        else:
            negative += weight[i]
    negative_below, positive_below, area = 0.0, 0.0, 0.0
    start = 0
    while start < n:
        stop = start
        negative_here, positive_here = 0.0, 0.0
        score_here = score[order[start]]
        while stop < n and score[order[stop]] == score_here:
            i = order[stop]
            if truth[i]:
                positive_here += weight[i]
            else:
                negative_here += weight[i]
            stop += 1
        under = (negative_below + 0.5 * negative_here) / negative
        over = (positive - positive_below - 0.5 * positive_here) / positive
        for at in range(start, stop):
            i = order[at]
            out[i] = under if truth[i] else over
        area += under * positive_here
        negative_below += negative_here
        positive_below += positive_here
        start = stop
    return area, negative, positive


@compiled()
def average_precision_terms(
    score: FloatArray, truth: Any, weight: FloatArray, order: Codes, out: FloatArray
) -> float:
    """Average precision, and its influence in ``out``; tied scores enter together."""
    n = len(order)
    precision = np.empty(n)  # at each position of the order
    above = np.empty(n)  # share of points with at least this score
    total = weight.sum()
    found, seen, value, positive = 0.0, 0.0, 0.0, 0.0
    stop = n
    while stop > 0:
        start, here = stop, 0.0
        while start > 0 and score[order[start - 1]] == score[order[stop - 1]]:
            start -= 1
            seen += weight[order[start]]
            if truth[order[start]]:
                here += weight[order[start]]
        found += here
        value += here * (found / seen)
        positive += here
        for at in range(start, stop):
            precision[at], above[at] = found / seen, seen / total
        stop = start
    value /= positive
    share = positive / total
    plain, weighted = 0.0, 0.0  # sums over positives of at most this score: 1/V and precision/V
    start = 0
    while start < n:
        stop = start
        while stop < n and score[order[stop]] == score[order[start]]:
            if truth[order[stop]]:
                plain += weight[order[stop]] / total / above[stop]
                weighted += weight[order[stop]] / total * precision[stop] / above[stop]
            stop += 1
        for at in range(start, stop):
            i = order[at]
            own = precision[at] - value + plain if truth[i] else 0.0
            out[i] = (own - weighted) / share
        start = stop
    return value


@compiled()
def split_sums(key: FloatArray, values: FloatArray, order: Codes, out: FloatArray) -> None:
    """Sum of ``values`` over points with a smaller key, for each point; ties count by half."""
    n = len(order)
    below, start = 0.0, 0
    while start < n:
        stop, here = start, 0.0
        while stop < n and key[order[stop]] == key[order[start]]:
            here += values[order[stop]]
            stop += 1
        for at in range(start, stop):
            out[order[at]] = below + 0.5 * here
        below += here
        start = stop


@compiled()
def add_weight(tree: FloatArray, rank: int, weight: float) -> None:
    """Add to one rank of a Fenwick tree."""
    at = rank + 1
    while at < len(tree):
        tree[at] += weight
        at += at & -at


@compiled()
def sum_below(tree: FloatArray, rank: int) -> float:
    """Add up all ranks below one."""
    at, total = rank, 0.0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@compiled()
def pair_sums(
    time: FloatArray,
    event: Any,
    rank: Codes,
    weight: FloatArray,
    earlier: FloatArray,
    order: Codes,
    ranks: int,
    as_first: FloatArray,
    as_second: FloatArray,
) -> None:
    """Weights of the concordant and of the comparable points of each point.

    Two points are comparable if the earlier time is an event time, or, at tied times, if one of
    them is an event. The first rows of ``as_first`` and ``as_second`` get the weight of points in
    the same order, the second rows that of all comparable points, with the point as the earlier one
    and as the later one (of points with the weight ``earlier``). ``order`` sorts by time; ties of
    ``rank`` count by half. Fenwick trees over the ranks contain the weight on one side of the
    current time: O(n log n).
    """
    n = len(order)
    tree = np.zeros(ranks + 1)
    total = 0.0
    start = 0
    while start < n:  # each point as the later one: events before it
        stop = start
        while stop < n and time[order[stop]] == time[order[start]]:
            stop += 1
        for events in (True, False):  # those without an event come after the events of their time
            for at in range(start, stop):
                i = order[at]
                if event[i] == events:
                    less = sum_below(tree, rank[i])
                    most = sum_below(tree, rank[i] + 1)
                    as_second[0, i] += 0.5 * (less + most)
                    as_second[1, i] += total
            if events:
                for at in range(start, stop):
                    i = order[at]
                    if event[i]:
                        add_weight(tree, rank[i], earlier[i])
                        total += earlier[i]
        start = stop
    tree[:] = 0.0
    total = 0.0
    stop = n
    while stop > 0:  # each event as the earlier one: all after it
        start = stop
        while start > 0 and time[order[start - 1]] == time[order[stop - 1]]:
            start -= 1
        for events in (False, True):
            if events:
                for at in range(start, stop):
                    i = order[at]
                    if event[i]:
                        less = sum_below(tree, rank[i])
                        most = sum_below(tree, rank[i] + 1)
                        as_first[0, i] += total - 0.5 * (less + most)
                        as_first[1, i] += total
            for at in range(start, stop):
                i = order[at]
                if event[i] == events:
                    add_weight(tree, rank[i], weight[i])
                    total += weight[i]
        stop = start
