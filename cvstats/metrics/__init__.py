"""Metrics that are no means of losses: each with its influence function, in numpy and numba."""

from __future__ import annotations

from collections.abc import Mapping

from cvstats.metrics import confusion, numbers, ranks
from cvstats.metrics._metric import Influence, Metric, MetricOptions, UndefinedMetric

__all__ = ["METRICS", "Influence", "Metric", "MetricOptions", "UndefinedMetric"]

METRICS: Mapping[str, Metric] = {
    metric.name: metric for metric in (*confusion.METRICS, *ranks.METRICS, *numbers.METRICS)
}
"""Every metric by its name."""
