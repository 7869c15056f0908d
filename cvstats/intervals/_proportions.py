"""Intervals of proportions: what `wald` and `holdout` do for losses of 0 and 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.containers import Log
from cvstats.core.cautions import Caution
from cvstats.core.proportions import clopper_pearson, wilson
from cvstats.core.result import Result
from cvstats.core.types import MaskArray
from cvstats.errors import LogError
from cvstats.intervals._differences import is_difference

__all__ = [
    "PROPORTIONS",
    "SOME_WILSON",
    "flag_few_errors",
    "proportion_limits",
    "take_wilson",
]

PROPORTIONS = {"wilson": wilson, "clopper-pearson": clopper_pearson}
"""Intervals for losses of 0 and 1."""

SOME_WILSON = "wilson for losses of 0 and 1, otherwise wald"
"""What `interval` does, where some losses are of both kinds or not computed yet."""

NOT_ZERO_ONE = (
    "squared_error", "absolute_error", "percentage_error", "pinball", "log_loss", "brier", "hinge",
)  # fmt: skip
"""Losses that may be zero everywhere without being errors that did not happen."""

FEW = 10
"""Errors, or points without one, below which normal limits are too narrow."""

OF_NORMAL_LIMITS = {
    "wald": Caution.ZERO_VARIANCE | Caution.FEW_ERRORS,
    "holdout": Caution.ZERO_VARIANCE | Caution.FEW_ERRORS | Caution.FEW_POINTS,
}
"""What is doubtful about normal limits and not about those of a proportion, by method."""


def flag_few_errors(result: Result, zero_one: MaskArray) -> Result:
    """Flag normal limits of losses of 0 and 1 where few points, but some, are of the rarer kind.

    Numbers of errors are averages over repetitions.
    """
    share = result.columns["estimate"]
    rarer = result.columns["n_points"] * np.minimum(share, 1 - share)
    caution = result.caution.copy()
    caution[zero_one & (rarer > 0) & (rarer < FEW - 1e-9)] |= np.int64(Caution.FEW_ERRORS)
    return replace(result, caution=caution)


def proportion_limits(result: Result, zero_one: MaskArray, interval: str) -> Result:
    """Put the limits of a proportion in the place of normal ones.

    Raises
    ------
    LogError
        If the losses of a column are not all 0 or 1.
    """
    if not (zero_one | np.isnan(result.columns["estimate"])).all():
        raise LogError(
            f"interval={interval!r} needs losses that are 0 or 1, once for each point, and this "
            f"log has other losses. Use interval='wald'."
        )
    limits = replace_limits(result, np.ones_like(zero_one), interval)
    return replace(limits, attrs={**limits.attrs, "interval": interval})


def replace_limits(result: Result, at: MaskArray, interval: str) -> Result:
    """Put the limits of a proportion in the place of normal ones, in some columns.

    Repetitions do not make new points: the share of errors is their average, and n is the
    number of points.
    """
    alpha, columns = float(result.attrs["alpha"]), dict(result.columns)
    share, n = np.where(at, columns["estimate"], np.nan), columns["n_points"]
    lower, upper = PROPORTIONS[interval](share, n, alpha, str(result.attrs["alternative"]))
    columns["lower"] = np.where(at, lower, columns["lower"])
    columns["upper"] = np.where(at, upper, columns["upper"])
    gone = np.int64(OF_NORMAL_LIMITS[result.method])
    caution = np.where(at, result.caution & ~gone, result.caution)
    return replace(result, columns=columns, caution=caution)


def take_wilson(result: Result, log: Log) -> Result:
    """Put Wilson's limits in the place of normal ones, in the columns whose losses are 0 or 1.

    Losses that are all zero are errors that did not happen, unless the log names another loss.
    Test sets that were evaluated several times are left: their points have means, not losses.
    """
    averaged = result.method == "holdout" and log.design.number("repetition") > 1
    if result.method not in OF_NORMAL_LIMITS or averaged or is_difference(log, None):
        return result
    at = log.zero_one()
    if log.noted.get("loss") in NOT_ZERO_ONE:
        at &= result.columns["estimate"] > 0
    if not (at.any() or log.some_cells):
        return result
    words = "wilson" if at.all() and not log.some_cells else SOME_WILSON
    limits = replace_limits(result, at, "wilson")
    return replace(limits, attrs={**limits.attrs, "interval": words})
