"""Metrics that are not means of losses, with their influence functions, in NumPy and numba."""

from __future__ import annotations

from importlib import import_module

from cvstats.metrics.metric import Metric
from cvstats.registry import warn_if_broken

FILES = (
    "cvstats.metrics.confusion",
    "cvstats.metrics.ranks",
    "cvstats.metrics.numbers",
    "cvstats.metrics.survival",
)
METRICS: dict[str, Metric] = {}
"""Every metric by name."""

for name in FILES:
    with warn_if_broken(name):
        METRICS |= {metric.name: metric for metric in import_module(name).METRICS}
