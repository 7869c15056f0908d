"""Losses of logged predictions: of single points, and of metrics that are not means of these."""

from cvstats.loss_functions.metric_logs import ACCURACY
from cvstats.loss_functions.names import find_loss, is_loss
from cvstats.loss_functions.pointwise import (
    LOSSES,
    TAKES,
    LossOptions,
    checked_loss,
    loss_name,
    pointwise,
    unknown_loss,
)
from cvstats.loss_functions.predictions import (
    LossKeywords,
    check_different,
    is_name,
    join_metrics,
    looks_at,
    losses,
    single,
    with_implied,
)

__all__ = [
    "ACCURACY",
    "LOSSES",
    "LossKeywords",
    "TAKES",
    "LossOptions",
    "check_different",
    "checked_loss",
    "find_loss",
    "is_loss",
    "is_name",
    "join_metrics",
    "looks_at",
    "loss_name",
    "losses",
    "pointwise",
    "single",
    "unknown_loss",
    "with_implied",
]
