"""What methods for several test sets share: their means, their order and their sample numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvstats.core.cells import Moments
from cvstats.core.types import IntArray, Labels
from cvstats.log.groups import points_by_group
from cvstats.log.log import Log


def rank_labels(labels: Labels) -> IntArray:
    """Rank labels by their size; labels without an order keep their places."""
    names: list[Any] = list(labels)
    try:
        order = sorted(range(len(names)), key=lambda at: names[at])
    except TypeError:
        order = list(range(len(names)))
    return np.argsort(order)


def sort_cells(found: Moments) -> IntArray:
    """Sort the cells of each group by the labels of their levels, the first level first."""
    keys = [
        found.codes[:, i] if i < found.grouped else rank_labels(labels)[found.codes[:, i]]
        for i, labels in enumerate(found.labels)
    ]
    return np.lexsort(keys[::-1])


def read_samples(log: Log, found: Moments) -> IntArray:
    """Read the labels of ``sample`` of each cell as the numbers that they are."""
    codes = found.codes[:, found.levels.index("sample")]
    labels = log.design.levels["sample"].labels
    return np.array([int(labels[code]) for code in codes.tolist()], dtype=np.int64)


def count_points(log: Log) -> dict[str, IntArray]:
    """Count the points, where the log names them."""
    points = points_by_group(log)
    return {} if points is None else {"n_points": points}
