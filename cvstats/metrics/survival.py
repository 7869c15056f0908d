"""Metrics of censored times, with inverse probability of censoring weights.

That probability is estimated in the cell, by the product limit, and each point influences the
metric in two ways: directly, and through the estimated weights of other points. Censoring must be
independent of the time of the event and of the features.

Graf et al. (1999), doi:10.1002/(SICI)1097-0258(19990915/30)18:17/18<2529::AID-SIM274>3.0.CO;2-5;
Uno et al. (2007), doi:10.1198/016214507000000149; Uno et al. (2011), doi:10.1002/sim.4154; Blanche,
Dartigues and Jacqmin-Gadda (2013), doi:10.1002/sim.5958.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, is_number, is_several
from cvstats.metrics.metric import Influence, Metric, MetricOptions, Points, UndefinedMetricError
from cvstats.metrics.ranks import ROUNDING, area, pair_sums

ASSUMPTION = "censoring is independent of the time of the event and of the features"
"""The assumption of every metric in this module."""


@dataclass(frozen=True, eq=False)
class Censoring:
    """The product-limit estimate of the time until censoring, at each distinct time.

    At tied times events come before censorings.

    Parameters
    ----------
    time, event : array, shape (points,)
        The time of each point, and whether it is an event time.
    times : array, shape (times,)
        The distinct times, ascending.
    place : array of int, shape (points,)
        The index of the time of each point.
    share : array, shape (points,)
        The weight of each point; they sum to 1.
    hazard, at_risk : array, shape (times,)
        The probability of being censored at a time, and the share of the points at risk of it.
    survival : array, shape (times + 1,)
        The probability of not being censored before each time, and after the last one.
    """

    time: FloatArray
    event: NDArray[np.bool_]
    times: FloatArray
    place: IntArray
    share: FloatArray
    hazard: FloatArray
    at_risk: FloatArray
    survival: FloatArray

    def before(self) -> FloatArray:
        """Probability for each point of not being censored before its time."""
        return self.survival[self.place]

    def until(self, time: float) -> float:
        """Probability of not being censored up to a time, this included."""
        return float(self.survival[np.searchsorted(self.times, time, side="right")])


def estimate_censoring(metric: str, points: Points) -> Censoring:
    """Estimate the distribution of the time until censoring from the points of a cell."""
    time, _, weight = points.columns
    event = read_events(metric, time, points.event)
    share = weight / weight.sum()
    order = np.argsort(time)
    ordered = time[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    place = np.empty(len(time), dtype=np.int64)
    place[order] = np.cumsum(first) - 1
    times = ordered[first]
    leaving = np.bincount(place, share, len(times))
    censored = np.bincount(place, share * ~event, len(times))
    at_risk = leaving[::-1].cumsum()[::-1] - (leaving - censored)
    hazard = np.divide(censored, at_risk, out=np.zeros(len(times)), where=censored > 0)
    hazard = np.minimum(hazard, 1)
    survival = np.concatenate([[1.0], np.cumprod(1 - hazard)])
    return Censoring(time, event, times, place, share, hazard, at_risk, survival)


def through_censoring(rate: FloatArray, found: Censoring, limit: float = np.inf) -> FloatArray:
    """Influence of each point on a metric through the estimated censoring distribution.

    ``rate`` is the derivative of the metric in the logarithm of the inverse weight of each point,
    which depends on the censoring up to its time, and up to ``limit``.
    """
    total = np.bincount(found.place, found.share * rate, len(found.times))
    later = total[::-1].cumsum()[::-1] - total
    counts = (found.times <= limit) & (found.hazard > 0) & (found.hazard < 1)
    risk = found.at_risk * (1 - found.hazard)
    own = np.divide(later, risk, out=np.zeros(len(total)), where=counts)
    drift = np.cumsum(found.hazard * own)
    before = np.concatenate([[0.0], drift])[found.place]
    return np.where(found.event, -before, (own - drift)[found.place])


# --- inputs ---------------------------------------------------------------------------------------


def read_events(metric: str, time: FloatArray, event: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Read which times are event times; reject negative or infinite times."""
    if event is None:
        raise LogError(
            f"{metric} needs the censoring of each time. Pass the column that is 1 for event "
            "times and 0 for censored times: event='died'."
        )
    if len(wrong := np.flatnonzero(~(time >= 0) | np.isinf(time))):
        raise LogError(
            f"{metric} needs times since a start, but one of them is {time[wrong[0]]:g}. "
            "Expected finite nonnegative times."
        )
    return np.asarray(event, dtype=bool)


def read_time(metric: str, at: Any) -> float:
    """Read the time at which a metric is computed."""
    if not is_number(at) or not 0 < at < np.inf:
        raise LogError(
            f"{metric} needs a time, but got at={at!r}. Expected a number above 0, in the units "
            "of the truth, such as at=24."
        )
    return float(at)


def read_grid(at: Any, columns: int) -> FloatArray:
    """Read the times of a grid, one for each column of predictions."""
    times = [read_time("integrated_brier", each) for each in at] if is_several(at) else []
    if len(times) < 2 or sorted(set(times)) != times:
        raise LogError(
            f"integrated_brier needs at least two ascending times, but got at={at!r}. Expected the "
            "time of each column of predictions, such as at=[6, 12, 24]."
        )
    if columns != len(times):
        raise LogError(
            f"integrated_brier got {columns} columns of predictions for {len(times)} times. "
            f"Expected the probability of the event by each of at={list(at)!r}: "
            f"prediction={{'model': [{', '.join(f'risk_{time:g}' for time in times)!s}]}}."
        )
    return np.array(times)


def check_probabilities(metric: str, risk: FloatArray) -> None:
    """Reject predictions that are not probabilities, or that decrease with time."""
    outside = risk[~((risk >= 0) & (risk <= 1))]
    if len(outside):
        raise LogError(
            f"{metric} needs the probability of the event by a time, but a prediction is "
            f"{outside[0]:.6g}. Expected numbers from 0 to 1. For scores use auc_at or uno."
        )
    none = np.empty((0, 2), dtype=np.int64)
    falls = np.argwhere(np.diff(risk, axis=1) < 0) if risk.ndim == 2 else none
    if len(falls):
        row, at = falls[0]
        raise LogError(
            f"{metric} needs the probability of the event by each time, which cannot decrease, "
            f"but it goes from {risk[row, at]:.6g} to {risk[row, at + 1]:.6g}. Expected 1 minus "
            "the survival probability, with the columns in the order of at=."
        )


def weigh_observed(found: Censoring, at: float) -> tuple[NDArray[np.bool_], FloatArray]:
    """Find the points with the event by a time, and inverse weights of all points; 0 if unknown."""
    case, control = found.event & (found.time <= at), found.time > at
    for here, why in (
        (case, f"no event occurred by {at:g} (use a later time)"),
        (control, f"no point is observed after {at:g} (use an earlier time)"),
    ):
        if not found.share[here].sum() > 0:
            raise UndefinedMetricError(why)
    before = found.before()
    weight = np.divide(1.0, before, out=np.zeros(len(before)), where=case & (before > 0))
    return case, np.where(control, 1 / found.until(at), weight)


def weigh_events(points: Points, options: MetricOptions) -> tuple[Censoring, FloatArray]:
    """Weight of each event up to a time in the pairs in which it comes first; 0 for others."""
    last = np.inf if options.at is None else read_time("uno", options.at)
    found = estimate_censoring("uno", points)
    before = found.before()
    inside = found.event & (found.time <= last) & (before > 0)
    return found, np.divide(1.0, before**2, out=np.zeros(len(before)), where=inside)


# --- metrics --------------------------------------------------------------------------------------


def squared_errors(risk: FloatArray, found: Censoring, at: float) -> Influence:
    """Brier score at one time."""
    case, inverse = weigh_observed(found, at)
    error = inverse * (case - risk) ** 2
    value = float(found.share @ error)
    return value, error - value + through_censoring(error, found, at)


def brier_at(points: Points, options: MetricOptions) -> Influence:
    """Brier score of the predicted probabilities of the event by a time."""
    at = read_time("brier_at", options.at)
    found = estimate_censoring("brier_at", points)
    check_probabilities("brier_at", points.prediction)
    return squared_errors(points.prediction, found, at)


def integrated_brier(points: Points, options: MetricOptions) -> Influence:
    """Mean Brier score between the first and the last time of a grid, by trapezoids."""
    risk = points.prediction
    grid = read_grid(options.at, 1 if risk.ndim == 1 else risk.shape[1])
    found = estimate_censoring("integrated_brier", points)
    check_probabilities("integrated_brier", risk)
    gaps = np.diff(grid, prepend=grid[0], append=grid[-1])
    parts = (gaps[1:] + gaps[:-1]) / 2 / (grid[-1] - grid[0])
    value, phi = 0.0, np.zeros(len(risk))
    for at, (part, until) in enumerate(zip(parts, grid.tolist(), strict=True)):
        own, of_points = squared_errors(risk[:, at], found, until)
        value += part * own
        phi += part * of_points
    return value, phi


def auc_at(points: Points, options: MetricOptions) -> Influence:
    """Probability that a point with the event by a time has a larger risk than one without."""
    at = read_time("auc_at", options.at)
    found = estimate_censoring("auc_at", points)
    case, inverse = weigh_observed(found, at)
    value, placed = area(case, points.prediction, found.share * inverse)
    rate = inverse * placed / (found.share @ inverse)
    return value, rate + through_censoring(rate, found, at)


def uno(points: Points, options: MetricOptions) -> Influence:
    """Uno's C index: weighted fraction of pairs predicted in the correct order, up to a time."""
    found, inverse = weigh_events(points, options)
    levels, rank = np.unique(points.prediction, return_inverse=True)
    as_first, as_second = np.zeros((2, 2, len(inverse)))
    pair_sums(
        found.time, found.event, rank, found.share, inverse * found.share, np.argsort(found.time),
        len(levels), as_first, as_second,
    )  # fmt: skip
    right, comparable = as_first * inverse
    below = float(found.share @ comparable)
    if not below > 0:
        raise UndefinedMetricError("no two points are comparable")
    value = float(found.share @ right) / below
    if min(value, 1 - value) < ROUNDING:  # all pairs have the same order: no point can change it
        return float(round(value)), np.zeros(len(inverse))
    own = (right - value * comparable) / below
    direct = own + (as_second[0] - value * as_second[1]) / below
    return value, direct + through_censoring(2 * own, found)


def classes_at(points: Points, options: MetricOptions) -> tuple[IntArray, None]:
    """Code points with the event by the (last) time as 1, and those observed after it as 0."""
    at = options.at[-1] if isinstance(options.at, Sequence) else options.at
    case = np.asarray(points.event, dtype=bool)
    return np.where(points.truth > at, 0, np.where(case, 1, -1)), None


def weighted_classes_at(points: Points, options: MetricOptions) -> tuple[IntArray, FloatArray]:
    """Find the classes with the inverse weights."""
    found = estimate_censoring("auc_at", points)
    at = read_time("auc_at", options.at)
    return classes_at(points, options)[0], weigh_observed(found, at)[1]


def weighted_events(points: Points, options: MetricOptions) -> tuple[IntArray, FloatArray]:
    """Find the events that Uno's index counts, 1, and their weights; other points have -1."""
    inverse = weigh_events(points, options)[1]
    return np.where(inverse > 0, 1, -1), inverse


FROM_ZERO = (0.0, np.inf)

METRICS = [
    Metric(
        "brier_at", "Brier score at a time", "times", brier_at, FROM_ZERO, better="smaller",
        takes=("event", "at"), assumes=ASSUMPTION, classes=classes_at,
    ),
    Metric(
        "integrated_brier", "integrated Brier score", "times", integrated_brier, FROM_ZERO,
        better="smaller", takes=("event", "at"), assumes=ASSUMPTION, several=True,
        classes=classes_at,
    ),
    Metric(
        "auc_at", "AUC at a time", "times", auc_at, folds="average", takes=("event", "at"),
        assumes=ASSUMPTION, scales_classes=True, span=0.5, classes=weighted_classes_at,
    ),
    Metric(
        "uno", "Uno C index", "times", uno, folds="average", takes=("event", "at"),
        assumes=ASSUMPTION, span=0.5, classes=weighted_events,
    ),
]  # fmt: skip
