"""From the points of a log to its pseudo-losses, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.metrics._metric import Influence, Metric, MetricOptions, UndefinedMetric

__all__ = ["CellNotes", "Points", "pseudo_losses"]


@dataclass(frozen=True, eq=False)
class Points:
    """The points of a log, for one model.

    Parameters
    ----------
    cell : array of int, shape (points,)
        The number of the cell; negative where nothing was evaluated.
    truth, prediction : array, shape (points,)
        What the metric reads: codes of labels, scores (a column for each class), or numbers.
    weight : array of float, shape (points,), optional
        Weights of the points, of which only ratios matter; None where all are alike.
    stratum : array of int, shape (points,), optional
        The strata of the sample.
    shares : array of float, shape (strata,), optional
        The known shares of the strata.
    event : array of bool, shape (points,), optional
        Whether a time is that of an event, and not censored.
    """

    cell: IntArray
    truth: NDArray[Any]
    prediction: NDArray[Any]
    weight: FloatArray | None = None
    stratum: IntArray | None = None
    shares: FloatArray | None = None
    event: NDArray[Any] | None = None


@dataclass(eq=False)
class CellNotes:
    """What was noticed on the way.

    Parameters
    ----------
    rarest : int, optional
        The fewest points that a class has in a cell.
    constant : int
        The number of cells whose value is an agreement, or has no derivative: no influence.
    """

    rarest: int | None = None
    constant: int = 0


Refuse = Callable[[int, str], Exception]
"""Makes the error for a cell, known by one of its rows, in which the metric is not defined."""


def pseudo_losses(
    metric: Metric, points: Points, options: MetricOptions, refuse: Refuse, ddof: int = 0
) -> tuple[FloatArray, CellNotes]:
    """Compute a pseudo-loss for each point, whose mean over each cell is the metric's loss.

    With ``ddof=1`` the influences of each class are multiplied by sqrt(n_c / (n_c - 1)), where
    they sum to zero by themselves: for one cell this is the variance of DeLong.
    """
    notes = CellNotes()
    out = np.empty(len(points.cell))
    for rows in rows_of_cells(points.cell):
        here = take(points, rows)
        if len(here.cell) < 2:
            raise refuse(first_row(rows), "the cell has one point")
        weight, shares_known = weights_of(here, rows, refuse)
        try:
            value, phi = influence(metric, here, weight, options, notes)
        except UndefinedMetric as error:
            raise refuse(first_row(rows), str(error)) from None
        if metric.reads in ("labels", "scores"):
            counts = np.bincount(here.truth, minlength=options.labels)
            least = int(counts.min())
            notes.rarest = least if notes.rarest is None else min(least, notes.rarest)
            if ddof and metric.scales_classes and here.prediction.ndim == 1:
                phi *= np.sqrt(counts / np.maximum(counts - 1, 1))[here.truth]
        z = phi if weight is None else phi * (weight / weight.mean())
        if here.stratum is not None:
            z = center_strata(z, here.stratum, shares_known)
        out[rows] = metric.loss(value + z)
    out[points.cell < 0] = np.nan
    return out, notes


def influence(
    metric: Metric,
    points: Points,
    weight: FloatArray | None,
    options: MetricOptions,
    notes: CellNotes,
) -> Influence:
    """Compute the metric of one cell and the influence of its points."""
    if metric.reads == "labels":
        k = options.labels
        pair = points.truth * k + points.prediction
        counted = np.bincount(pair, weight, k * k).reshape(k, k)
        table = counted / counted.sum()
        try:
            value, phi = metric.influence(table, replace(options, zero_division=None))
        except UndefinedMetric:
            if options.zero_division is None:
                raise
            value, phi = metric.influence(table, options)
            notes.constant += 1
        return value, phi.reshape(-1)[pair]
    if metric.reads == "times":
        return metric.influence(points.truth, points.prediction, weight, options, points.event)
    value, phi = metric.influence(points.truth, points.prediction, weight, options)
    notes.constant += metric.reads == "numbers" and value == 0 and not phi.any()
    return value, phi


def take(points: Points, rows: Any) -> Points:
    """Take the points of one cell."""
    return Points(
        points.cell[rows], points.truth[rows], points.prediction[rows],
        None if points.weight is None else points.weight[rows],
        None if points.stratum is None else points.stratum[rows],
        points.shares, None if points.event is None else points.event[rows],
    )  # fmt: skip


def first_row(rows: Any) -> int:
    """Find the first row of a cell."""
    return int(rows.start if isinstance(rows, slice) else rows[0])


def rows_of_cells(cell: IntArray) -> Iterator[Any]:
    """Go through the cells that occur: a slice where rows lie together, else their numbers."""
    if not len(cell):
        return
    turns = np.flatnonzero(cell[1:] != cell[:-1]) + 1
    starts = np.concatenate([[0], turns])
    ends = np.concatenate([turns, [len(cell)]])
    if len(np.unique(cell[starts])) == len(starts):
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if cell[start] >= 0:
                yield slice(start, end)
        return
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    turns = np.flatnonzero(np.diff(ordered)) + 1
    for rows in np.split(order, turns):
        if cell[rows[0]] >= 0:
            yield rows


def weights_of(points: Points, rows: Any, refuse: Refuse) -> tuple[FloatArray | None, bool]:
    """Weights of the points of a cell; also whether they make known shares of its strata."""
    weight = points.weight
    if weight is not None and not weight.sum() > 0:
        raise refuse(first_row(rows), "every weight is 0")
    if points.stratum is None:
        return weight, False
    if points.shares is None:
        if (np.bincount(points.stratum) == 1).any():
            raise refuse(first_row(rows), "a stratum has one point")
        return weight, False
    weight = np.ones(len(points.cell)) if weight is None else weight
    there = np.bincount(points.stratum, weight, minlength=len(points.shares))
    if ((there == 0) & (points.shares > 0)).any():
        raise refuse(first_row(rows), "a stratum with a share has no points")
    factor = np.divide(points.shares, there, out=np.zeros_like(there), where=there > 0)
    return weight * factor[points.stratum], True


def center_strata(z: FloatArray, stratum: IntArray, shares_known: bool) -> FloatArray:
    """Subtract the mean of each stratum: the shares of the strata do not vary.

    Strata that were sampled have degrees of freedom of their own. Those whose shares are known
    afterwards do not: their sizes are as random as the sample.
    """
    n = np.bincount(stratum)
    centered: FloatArray = z - (np.bincount(stratum, z) / np.maximum(n, 1))[stratum]
    if shares_known:
        return centered
    return centered * np.sqrt(n / np.maximum(n - 1, 1))[stratum]
