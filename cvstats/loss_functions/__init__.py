"""Losses from saved predictions: pointwise losses, and pseudo-losses of other metrics."""

from cvstats.loss_functions.metric_logs import ACCURACY
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
    OF_COLUMNS,
    LossKeywords,
    check_different,
    find_loss,
    is_loss,
    is_name,
    join_metrics,
    looks_at,
    losses,
    refuse_options,
    refuse_unknown,
    single,
    with_implied,
)

__all__ = [
    "ACCURACY",
    "LOSSES",
    "OF_COLUMNS",
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
    "refuse_options",
    "refuse_unknown",
    "single",
    "unknown_loss",
    "with_implied",
]
