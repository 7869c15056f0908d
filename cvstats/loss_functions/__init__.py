"""Losses of logged predictions: of single points, and of metrics that are not means of these."""

from cvstats.loss_functions.metric_logs import ACCURACY
from cvstats.loss_functions.pointwise import (
    LOSSES,
    TAKES,
    LossOptions,
    checked_loss,
    is_loss,
    loss_name,
    pointwise,
    unknown_loss,
)
from cvstats.loss_functions.predictions import (
    check_different,
    is_name,
    join_metrics,
    looks_at,
    losses,
    single,
)

__all__ = [
    "ACCURACY",
    "LOSSES",
    "TAKES",
    "LossOptions",
    "check_different",
    "checked_loss",
    "is_loss",
    "is_name",
    "join_metrics",
    "looks_at",
    "loss_name",
    "losses",
    "pointwise",
    "single",
    "unknown_loss",
]
