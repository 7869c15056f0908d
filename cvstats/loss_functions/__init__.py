"""Losses of logged predictions: of single points, and of metrics that are no means of these."""

from cvstats.loss_functions.pointwise import (
    LOSSES,
    TAKES,
    LossOptions,
    checked_loss,
    loss_name,
    pointwise,
    unknown_loss,
)
from cvstats.loss_functions.predictions import is_name, losses, single

__all__ = [
    "LOSSES",
    "TAKES",
    "LossOptions",
    "checked_loss",
    "is_name",
    "loss_name",
    "losses",
    "pointwise",
    "single",
    "unknown_loss",
]
