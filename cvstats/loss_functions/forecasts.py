"""Losses of probabilistic forecasts: of intervals, quantiles, ensembles and normal distributions.

Each maps the true values and the columns of the forecast to a loss for each point: Gneiting and
Raftery (2007), doi:10.1198/016214506000001437.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice, checked_flag, checked_share, is_several

ROWS = 4096
"""Rows of an ensemble scored together, to fit in the processor's cache."""


def interval_score(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Width of a central interval, plus 2 / (1 - level) times the distance of a truth outside."""
    lower, upper = limits_of("interval_score", forecast)
    tail = 1 - check_level("interval_score", level)
    below, above = np.maximum(lower - truth, 0), np.maximum(truth - upper, 0)
    score: FloatArray = (upper - lower) + 2 / tail * below + 2 / tail * above
    return score


def coverage(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """1 where a central interval contains the truth, 0 elsewhere."""
    lower, upper = limits_of("coverage", forecast)
    check_level("coverage", level)
    missing = np.isnan(truth + lower + upper)
    return np.where(missing, np.nan, (lower <= truth) & (truth <= upper))


def weighted_interval_score(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Weighted sum of the interval scores of several levels and the error of the median."""
    return sum(parts_of_score(truth, forecast, level), start=np.zeros(len(truth)))


def overprediction(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Part of the weighted interval score of forecasts above the truth."""
    return parts_of_score(truth, forecast, level)[0]


def underprediction(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Part of the weighted interval score of forecasts below the truth."""
    return parts_of_score(truth, forecast, level)[1]


def dispersion(truth: FloatArray, forecast: FloatArray, level: Any) -> FloatArray:
    """Part of the weighted interval score of the width of the intervals."""
    return parts_of_score(truth, forecast, level)[2]


def parts_of_score(
    truth: FloatArray, forecast: FloatArray, level: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Split the weighted interval score (Bracher et al. 2021, doi:10.1371/journal.pcbi.1008618).

    The interval of a level enters with the weight (1 - level) / 2, the median with 1/2, and the
    sum is divided by the number of intervals plus 1/2.
    """
    levels = list(level) if is_several(level) else [level]
    tails = [1 - check_level("weighted_interval_score", each) for each in levels]
    if len(set(levels)) < len(levels):
        raise LogError(f"level={level!r} contains a level twice. Expected each level once.")
    names = ["median", *(f"{end}_{each}" for each in levels for end in ("lower", "upper"))]
    check_columns("weighted_interval_score", forecast, names)
    median = forecast[:, 0]
    over, under = np.maximum(median - truth, 0) / 2, np.maximum(truth - median, 0) / 2
    width = np.where(np.isnan(truth + median), np.nan, 0.0)
    for at, (tail, each) in enumerate(zip(tails, levels, strict=True)):
        limits = forecast[:, 1 + 2 * at : 3 + 2 * at]
        lower, upper = limits_of("weighted_interval_score", limits)
        if len(wrong := np.flatnonzero((median < lower) | (median > upper))):
            row = int(wrong[0])
            raise LogError(
                f"the median of row {row:,}, {median[row]:.6g}, is outside its interval of level "
                f"{each}: {lower[row]:.6g} to {upper[row]:.6g}. Expected the columns as the "
                f"median, then the lower and the upper limit of each level. Sort quantiles that "
                f"cross."
            )
        over = over + np.maximum(lower - truth, 0)
        under = under + np.maximum(truth - upper, 0)
        width = width + tail / 2 * (upper - lower)
    number = len(levels) + 0.5
    missing = np.where(np.isnan(width + over), np.nan, 1.0) / number
    return over * missing, under * missing, width * missing


def crps(
    truth: FloatArray, forecast: FloatArray, fair: Any = None, distribution: Any = None
) -> FloatArray:
    """Continuous ranked probability score of an ensemble, or of a normal distribution."""
    checked_choice("distribution", distribution, (None, "normal"))
    if distribution == "normal":
        if fair is not None:
            raise LogError(
                "fair= applies to ensemble members, but distribution='normal' has none. Omit fair=."
            )
        return crps_of_normal(truth, forecast)
    members = forecast.shape[1]
    pairs = count_pairs("crps", members, fair)
    # Sum of |x_i - x_j| over all pairs: that of (2 i - m - 1) x_(i), twice.
    places = (2 * np.arange(1, members + 1) - members - 1) / pairs
    found = np.empty(len(truth))
    for start in range(0, len(truth), ROWS):
        rows = slice(start, start + ROWS)
        error = forecast[rows] - truth[rows, None]
        error.sort(axis=1)
        spread = error @ places
        found[rows] = np.abs(error, out=error).mean(axis=1) - spread
    return found


def crps_of_normal(truth: FloatArray, forecast: FloatArray) -> FloatArray:
    """Score of a normal distribution in closed form, with its limit for zero standard deviation."""
    check_columns("crps", forecast, ["mean", "sd"])
    mean, sd = forecast.T
    if len(wrong := np.flatnonzero(sd < 0)):
        raise LogError(
            f"the standard deviation of row {wrong[0]:,} is {sd[wrong[0]]:.6g}. Expected the "
            f"columns as [mean, standard deviation], and none below 0."
        )
    error = truth - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        z = error / sd
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        score: FloatArray = error * (2 * ndtr(z) - 1) + sd * (2 * density - 1 / np.sqrt(np.pi))
    return np.where(sd == 0, np.abs(error), score)


def energy_score(truth: FloatArray, forecast: FloatArray, fair: Any = None) -> FloatArray:
    """Energy score of an ensemble of vectors: the CRPS with distances for absolute errors."""
    points = truth.reshape(len(truth), -1)
    size = points.shape[1]
    members, rest = divmod(forecast.shape[1], size)
    if rest or not members:
        raise LogError(
            f"energy_score got {forecast.shape[1]} columns of predictions for {size} columns of "
            "the truth. Expected the same number of members for each: all members of the first "
            "column of the truth, then those of the second, …"
        )
    pairs = count_pairs("energy_score", members, fair)
    found = np.empty(len(truth))
    for start in range(0, len(truth), ROWS):
        rows = slice(start, start + ROWS)
        vectors = forecast[rows].reshape(-1, size, members)
        errors = np.linalg.norm(vectors - points[rows, :, None], axis=1)
        spread = np.zeros(len(errors))
        for at in range(members - 1):
            apart = vectors[:, :, at + 1 :] - vectors[:, :, at : at + 1]
            spread += np.linalg.norm(apart, axis=1).sum(axis=1)
        found[rows] = errors.mean(axis=1) - spread / pairs
    return found


FORECASTS: dict[str, tuple[Callable[..., FloatArray], tuple[str, ...]]] = {
    "interval_score": (interval_score, ("level",)),
    "weighted_interval_score": (weighted_interval_score, ("level",)),
    "overprediction": (overprediction, ("level",)),
    "underprediction": (underprediction, ("level",)),
    "dispersion": (dispersion, ("level",)),
    "crps": (crps, ("fair", "distribution")),
    "energy_score": (energy_score, ("fair",)),
    "coverage": (coverage, ("level",)),
}
"""Losses that read several columns for each model, and their options."""


def check_level(loss: str, level: Any) -> float:
    """Reject an invalid level of a central interval."""
    example = "0.9 for the quantiles 5% and 95%"
    return checked_share(f"{loss} needs the level of the interval", "level", level, example)


def check_columns(loss: str, forecast: FloatArray, names: Sequence[str]) -> None:
    """Reject a forecast with the wrong number of columns."""
    if forecast.shape[1] != len(names):
        raise LogError(
            f"loss={loss!r} got {forecast.shape[1]} columns of predictions for a model. Expected "
            f"{len(names)}, as in cvstats.losses(frame, prediction={{'model': {list(names)}}}, "
            f"loss={loss!r}, …)."
        )


def limits_of(loss: str, forecast: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Read the limits of an interval, the lower one first."""
    check_columns(loss, forecast, ["lower", "upper"])
    lower, upper = forecast[:, 0], forecast[:, 1]
    if len(wrong := np.flatnonzero(lower > upper)):
        row = int(wrong[0])
        raise LogError(
            f"the lower limit of row {row:,} is above the upper one: {lower[row]:.6g} and "
            f"{upper[row]:.6g}. Expected the columns as [lower, upper]."
        )
    return lower, upper


def count_pairs(loss: str, members: int, fair: Any) -> float:
    """Count the pairs of members over which distances are averaged."""
    checked_flag("fair", False if fair is None else fair)
    if fair and members < 2:
        raise LogError(
            f"{loss} with fair=True got one member. Expected at least two, as in "
            f"prediction={{'model': ['member_1', 'member_2', …]}}; omit fair= for one member."
        )
    return float(members * (members - 1) if fair else members**2)


def stack_columns(columns: Sequence[Any]) -> Any:
    """Lay columns side by side, some rows at a time."""
    kind = np.result_type(*columns)
    table = np.empty((len(columns[0]), len(columns)), dtype=kind)
    for start in range(0, len(table), ROWS):
        for at, column in enumerate(columns):
            table[start : start + ROWS, at] = column[start : start + ROWS]
    return table
