"""Metrics that are not means of losses, with their influence functions, in NumPy and numba."""

from __future__ import annotations

from importlib import import_module

from cvstats.metrics.confusion import F1_OF_SETS
from cvstats.metrics.metric import (
    CellNotes,
    Influence,
    Metric,
    MetricOptions,
    Points,
    Rows,
    UndefinedMetricError,
    count_rows,
    first_row,
    influence_of_counts,
    pseudo_losses,
    rows_of_cells,
)
from cvstats.metrics.numbers import metric_of
from cvstats.registry import warn_if_broken

__all__ = [
    "F1_OF_SETS",
    "METRICS",
    "CellNotes",
    "Influence",
    "Metric",
    "MetricOptions",
    "Points",
    "Rows",
    "UndefinedMetricError",
    "count_rows",
    "first_row",
    "influence_of_counts",
    "metric_of",
    "pseudo_losses",
    "rows_of_cells",
]

FILES = (
    "cvstats.metrics.confusion",
    "cvstats.metrics.ranks",
    "cvstats.metrics.numbers",
    "cvstats.metrics.calibration",
    "cvstats.metrics.survival",
)
METRICS: dict[str, Metric] = {}
"""Every metric by name."""

for name in FILES:
    with warn_if_broken(name):
        METRICS |= {metric.name: metric for metric in import_module(name).METRICS}
