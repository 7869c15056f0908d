"""Loops over the (usually sorted) points of a cell: sums below and above each point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.kernels import compiled
from cvstats.core.types import FloatArray

Codes = NDArray[np.signedinteger[Any]]


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
