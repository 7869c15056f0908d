"""Metrics that are not means of losses: each with its influence function, in numpy and numba."""

from __future__ import annotations

from collections.abc import Mapping

from cvstats.metrics import calibration, confusion, numbers, ranks, survival
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

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for part in (confusion, ranks, numbers, calibration, survival)
    for metric in part.METRICS
}
"""Every metric by its name."""
