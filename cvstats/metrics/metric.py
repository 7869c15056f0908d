"""The record of a metric, and its computation for the points of one cell.

A metric of a cell is a function T of the weighted distribution of its points. Its influence
function phi says how T changes with the weight of each point; ``sum w phi = 0``. The pseudo-value
of a point is ``T + (w / mean w) phi``: the mean over the cell is T, and their variance is that of T
by the delta method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.core.design import readonly
from cvstats.core.orientation import TURNED, Better, turn
from cvstats.core.types import FloatArray, IntArray

Influence = tuple[float, FloatArray]
"""A metric of a cell, and the influence of each point, whose weighted mean is zero."""


class UndefinedMetricError(Exception):
    """A metric is undefined in a cell; converted to a LogError that names the cell."""


@dataclass(frozen=True)
class MetricOptions:
    """Options of metrics besides truth, prediction and weight.

    Parameters
    ----------
    labels : int
        Number of classes; true and predicted labels are codes below it.
    positive : int
        The code of the positive class.
    average : {"binary", "macro", "weighted", "micro"}
        How metrics of single classes are averaged.
    multi_class : {"ovr", "ovo"}
        Each class against the rest, or all pairs of classes.
    beta : float
        Weight of recall in F-beta.
    weights : {None, "linear", "quadratic"}
        How kappa weights disagreement between ordered classes.
    zero_division : float, optional
        The value of 0/0; None if it raises an error.
    class_shares : array of float, shape (labels,), optional
        The class shares of the whole log; None for those of the cell.
    ddof : {0, 1}
        Whether the influences of a class are corrected for its degrees of freedom.
    clip : float, optional
        Probabilities closer to 0 or 1 are replaced by this, or by one minus it.
    max_fpr : float, optional
        The false positive rate up to which the area under the ROC curve is taken.
    at : float or sequence of float, optional
        The time, or times, by which an event is predicted.
    """

    labels: int = 2
    positive: int = 1
    average: str = "binary"
    multi_class: str = "ovr"
    beta: float = 1.0
    weights: str | None = None
    zero_division: float | None = None
    class_shares: FloatArray | None = None
    ddof: int = 0
    clip: float | None = None
    max_fpr: float | None = None
    at: float | Sequence[float] | None = None


OPTIONS_OF: dict[str, tuple[str, ...]] = {
    "labels": ("labels", "positive", "threshold"), "sets": ("threshold",), "scores": ("positive",),
    "losses": ("base", "quantile", "threshold", "classes", "positive"), "any": ("classes",),
    "numbers": (), "times": (), "probabilities": ("positive",),
}  # fmt: skip
"""The options of all metrics with the same inputs."""


@dataclass(frozen=True, eq=False)
class Metric:
    """The facts about one metric.

    Parameters
    ----------
    name : str
        Its public name.
    words : str
        Its name in texts, with capitals.
    reads : {"labels", "sets", "scores", "probabilities", "numbers", "losses", "times", "any"}
        Its inputs: predicted labels; label indicators; a score or probability for a class; a
        probability of one of two classes; numbers; losses of a model and of a reference; possibly
        censored times; anything.
    influence : callable
        Maps `Points` and options to T and phi. A metric of ``labels`` receives the table of shares,
        truth by prediction, and options.
    range : pair of float
        The smallest and the largest value.
    folds : {"average", "pool"}
        Whether it is computed per fold or over all folds by default.
    better : {"larger", "smaller", "closer"}
        Which values are better: with ``"closer"``, those nearer to the target.
    target : float, optional
        With ``"closer"``, the value of a perfect model.
    takes : tuple of str
        Its own options, besides those of all metrics with the same inputs.
    fold_bias : float
        A mean over folds is too biased for its standard error if a fold has fewer points than this
        times the number of folds: 0 if never, infinite if always.
    scales_classes : bool
        Whether the influence of a class sums to zero by itself, so that its degrees of freedom
        can be counted class by class.
    span : float, optional
        The largest change by one prediction, times the number of points of its class.
    several : bool
        Whether it reads several columns of predictions for a model.
    classes : callable, optional
        For metrics of times: maps `Points` and options to the class of each point, 0 or 1, or -1
        if unknown, and inverse weights of the points (None if all are equal).
    assumes : str
        Assumptions of its interval, besides those of the interval method.
    limits : {"", "log", "fisher-z", "fieller"}
        The scale of the limits of `interval`: ratios and one minus R2 use logarithms,
        correlations Fisher's z, and ratios of losses the limits of Fieller.
    shape : callable, optional
        Maps `Points` and influences to the two numbers that those limits need besides the
        variance.
    """

    name: str
    words: str
    reads: Literal["labels", "sets", "scores", "probabilities", "numbers", "losses", "times", "any"]
    influence: Callable[..., Influence]
    range: tuple[float, float] = (0.0, 1.0)
    folds: Literal["average", "pool"] = "pool"
    better: Better = "larger"
    target: float | None = None
    takes: tuple[str, ...] = ()
    fold_bias: float = 0.0
    scales_classes: bool = False
    span: float | None = None
    several: bool = False
    classes: Callable[[Points, MetricOptions], tuple[Codes, FloatArray | None]] | None = None
    assumes: str = ""
    limits: Literal["", "log", "fisher-z", "fieller"] = ""
    shape: Callable[[Points, FloatArray], tuple[float, float]] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that it uses, besides those of all metrics."""
        classes = ("classes",) if "multi_class" in self.takes else ()
        return (*self.takes, *classes, *OPTIONS_OF[self.reads])

    def words_at(self, at: Any) -> str:
        """Return its name in texts, with the requested time."""
        single = isinstance(at, (int, float))
        return self.words.replace(" a time", f" {at:g}") if single else self.words

    def uses(self, option: str) -> bool:
        """Whether it uses an option."""
        return option in self.options or option in ("folds", "by", "weight", "strata", "shares")

    @property
    def orientation(self) -> str:
        """How the metric becomes a loss: ``1 - score``, ``-score``, ``error`` or ``value``."""
        if self.better == "larger":
            return TURNED[self.range != (0.0, 1.0)]
        return "error" if self.better == "smaller" else "value"

    @property
    def sign(self) -> int:
        """The sign with which the influence of a point enters its loss."""
        return -1 if self.orientation in TURNED else 1

    def loss(self, value: Any) -> Any:
        """Convert values of the metric, or pseudo-values, to losses."""
        return turn(value, self.orientation)


def mean(weight: FloatArray | None, values: FloatArray) -> float:
    """Mean of the values, weighted if weights are given."""
    return float(values.mean() if weight is None else weight @ values / weight.sum())


@dataclass(frozen=True, eq=False)
class Points:
    """The points of a log, for one model.

    Parameters
    ----------
    truth, prediction : array, shape (points,)
        Inputs of the metric: codes of labels, scores (a column for each class), or numbers.
    there : array of bool, shape (points,), optional
        Whether truth and prediction are known; None if all are.
    weight : array of float, shape (points,), optional
        Weights of the points, of which only ratios matter; None if all are equal.
    stratum : array of int, shape (points,), optional
        The strata of the sample.
    shares : array of float, shape (strata,), optional
        The known shares of the strata.
    event : array of bool, shape (points,), optional
        Whether a time is an event time, not censored.
    source : array of int, shape (points,), optional
        The sources of the points.
    point : array of int, shape (points,), optional
        The labels of the points, if they occur in several sources.
    """

    truth: NDArray[Any]
    prediction: NDArray[Any]
    there: NDArray[Any] | None = None
    weight: FloatArray | None = None
    stratum: IntArray | None = None
    shares: FloatArray | None = None
    event: NDArray[Any] | None = None
    source: IntArray | None = None
    point: IntArray | None = None

    @property
    def weights(self) -> FloatArray:
        """The weights of the points, 1 by default."""
        return np.ones(len(self.truth)) if self.weight is None else self.weight

    @property
    def columns(self) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        """Truth, prediction and weights."""
        return self.truth, self.prediction, self.weights

    def take(self, rows: Any) -> Points:
        """Return some of the points, all of whose values are known."""
        columns = ("truth", "prediction", "weight", "stratum", "event", "source", "point")
        parts = {name: take_rows(getattr(self, name), rows) for name in columns}
        return Points(**parts, shares=self.shares)

    def mean(self, values: FloatArray) -> float:
        """Mean of values of the points, weighted if they have weights."""
        return mean(self.weight, values)

    def ratio(
        self, a: FloatArray, b: FloatArray, words: str, zero_division: float | None = None
    ) -> Influence:
        """Ratio of two means; ``words`` say why it is undefined if the second one is 0."""
        below = self.mean(b)
        if below == 0:
            if zero_division is None:
                raise UndefinedMetricError(words)
            return float(zero_division), np.zeros(len(a))
        value = self.mean(a) / below
        return value, (a - value * b) / below


def take_rows(values: Any, rows: Any) -> Any:
    """Return some rows of a column, if there is one."""
    return None if values is None else values[rows]


@dataclass(eq=False)
class CellNotes:
    """Facts collected during the computation.

    Parameters
    ----------
    rarest : int, optional
        The fewest points of a class in a cell.
    constant : int
        The number of cells whose value is set by convention or has no derivative: no influence.
    points : list of int
        The number of points with truth and prediction in each cell.
    dominated : bool
        Whether a few points dominate one of the means of a ratio metric.
    few_points : bool
        Whether weights are worth fewer than 30 equal ones, in limits that do not include them.
    two_scores : bool
        Whether scores take only two values, as predicted labels do.
    span : float, optional
        The range of the influences in the current cell, including combinations without points.
    reaches : list of list
        For each cell, the largest change by one prediction and one over the effective number of
        points of the rarest class; then the same with whole sources instead of points, and with
        all predictions of a point if it occurs in several sources.
    censored : bool
        Whether times are censored and the metric does not account for it.
    """

    rarest: int | None = None
    constant: int = 0
    points: list[int] = field(default_factory=list)
    dominated: bool = False
    few_points: bool = False
    two_scores: bool = False
    span: float | None = None
    reaches: list[list[float]] = field(default_factory=list)
    censored: bool = False

    def see_class(self, points: int) -> None:
        """Record the number of points of the rarest class of a cell."""
        self.rarest = points if self.rarest is None else min(points, self.rarest)


Codes = NDArray[np.signedinteger[Any]]
Rows = slice | IntArray
"""The rows of a cell: a slice if contiguous."""

Refuse = Callable[[int, str], Exception]
"""Creates the error for a cell, given one of its rows, in which the metric is undefined."""


def pseudo_losses(
    metric: Metric,
    points: Points,
    cells: Sequence[Rows],
    options: MetricOptions,
    refuse: Refuse,
) -> tuple[FloatArray, CellNotes]:
    """Compute a pseudo-loss for each point, whose mean over each cell is the metric's loss.

    With ``ddof=1`` the influences of each class are multiplied by sqrt(n_c / (n_c - 1)) if they
    sum to zero within the class: for one cell this is the variance of DeLong.
    """
    notes = CellNotes()
    out = np.empty(len(points.truth))
    if points.there is not None or sum(map(count_rows, cells)) < len(out):
        out[:] = np.nan  # some points may be in no cell
    for every_row in cells:
        rows = keep_known(every_row, points.there)
        n = count_rows(rows)
        notes.points.append(n)
        if n == 0:
            continue
        if n < 2:
            raise refuse(first_row(rows), "the cell has only one point")
        here = points.take(rows)  # numbers are converted to float64 one cell at a time
        if metric.reads in ("numbers", "times"):
            here = replace(here, truth=as_floats(here.truth))
        if metric.reads in ("scores", "probabilities", "numbers", "times"):
            here = replace(here, prediction=as_floats(here.prediction))
        weight, shares_known = weights_of(here, rows, refuse)
        here = replace(here, weight=weight)
        try:
            value, phi = influence(metric, here, options, notes)
        except UndefinedMetricError as error:
            raise refuse(first_row(rows), str(error)) from None
        if metric.reads in ("labels", "scores", "probabilities"):
            counts = np.bincount(here.truth, minlength=options.labels)
            notes.see_class(int(counts.min()))
            if options.ddof and metric.scales_classes and here.prediction.ndim == 1:
                phi *= correct_classes(here.truth, counts)
        classed = here
        if metric.classes is not None:
            classed = keep_known_classes(metric.classes, here, options, notes)
        if metric.reads == "labels" or metric.span is not None:
            note_reach(metric, classed, options, notes)
        if metric.shape is not None and here.stratum is None:
            notes.reaches.append([*metric.shape(here, phi)] * 2)
        z = phi if weight is None else phi * (weight / weight.mean())
        if here.stratum is not None:
            z = center_strata(z, here.stratum, shares_known)
        add = np.add if metric.sign > 0 else np.subtract
        if isinstance(rows, slice):
            add(metric.loss(value), z, out=out[rows])
        else:
            out[rows] = add(metric.loss(value), z)
    return out, notes


def correct_classes(truth: IntArray, counts: IntArray) -> FloatArray:
    """Return the factor of each influence that corrects for the degrees of freedom of its class."""
    factor: FloatArray = np.sqrt(counts / np.maximum(counts - 1, 1))[truth]
    return factor


def note_reach(metric: Metric, points: Points, options: MetricOptions, notes: CellNotes) -> None:
    """Record the largest change by one prediction in a cell, if known."""
    span = notes.span if metric.reads == "labels" else metric.span
    if span is None:
        return
    classes = encode_classes(metric, points)
    number = max(options.labels, int(classes.max()) + 1)
    weights = points.weights
    of_each: FloatArray
    total: FloatArray = np.bincount(classes, weights, minlength=number).astype(float)
    found: list[float] = []
    recurring = () if points.point is None else (points.point,)
    for groups in (None, points.source, *recurring):
        if groups is None:
            of_each, owner = weights, classes
        else:
            of_each = np.bincount(groups * number + classes, weights).astype(float)
            owner = np.arange(len(of_each)) % number
        squares: FloatArray = np.bincount(owner, of_each**2, minlength=number).astype(float)
        if metric.reads == "labels":
            found += reach_of_labels(span, total, squares)
            continue
        each = share_of_one(total, squares)
        own = metric.reads == "times" and not metric.scales_classes
        if own or metric.reads in ("numbers", "losses"):  # events, or all points
            more = 1.0
            if own and metric.classes is None:  # more pairs if all are events
                more += float(total[1] / total.sum()) / 2
            found += [span * more * float(each[1]), float(each[1])]
            continue
        if points.prediction.ndim > 1:
            found += [span * change_of_classes(total, each, options), float(each.max())]
            continue
        share, change = options.max_fpr, each
        if share is not None:  # only negatives up to the rate count: most positions are beyond it
            each[1 - options.positive] /= share
            change = share * each
            change[options.positive] *= 2 - share
        both = metric.scales_classes or share is not None
        reach = float(change.max() if both else each[options.positive])
        found += [span * reach, float(each.max())]
    notes.reaches.append(found)


def share_of_one(total: FloatArray, squares: FloatArray) -> FloatArray:
    """Divide one by the effective number of points of each class, from sums of weights."""
    return np.divide(squares, total**2, out=np.zeros(len(total)), where=total > 0)


def change_of_classes(total: FloatArray, each: FloatArray, options: MetricOptions) -> float:
    """Find the largest change of an average over classes, relative to that of two classes.

    In pairs of classes, a point counts in those of its own class. With each class against the rest,
    it is a positive of its own class and a negative of every other. ``total`` is the weight of each
    class, and ``each`` the share of one of its points.
    """
    k, whole, by_size = len(total), total.sum(), options.average == "weighted"
    if options.multi_class == "ovo":
        pairs = (whole + (k - 2) * total) / (whole * (k - 1)) if by_size else 2 / k
        return float((pairs * each).max())
    share = total / whole if by_size else np.full(k, 1 / k)
    of_rest = share / (whole - total)
    return float((share * each + total * each * (of_rest.sum() - of_rest)).max())


def reach_of_labels(span: float, total: FloatArray, squares: FloatArray) -> list[float]:
    """Find the largest change by one label, and one over the points of the rarest class."""
    each = share_of_one(total, squares)
    return [span * float((total / total.sum() * each).max()), float(each.max())]


def encode_classes(metric: Metric, points: Points) -> IntArray:
    """Code the class of each point."""
    if metric.reads == "times" and metric.classes is None:
        none = np.ones(len(points.truth), dtype=np.int64)
        return none if points.event is None else points.event.astype(np.int64)
    if metric.reads in ("labels", "scores", "times"):
        return points.truth
    return np.ones(len(points.truth), dtype=np.int64)


def keep_known_classes(
    classes: Callable[[Points, MetricOptions], tuple[Codes, FloatArray | None]],
    points: Points,
    options: MetricOptions,
    notes: CellNotes,
) -> Points:
    """Return the points of a cell of times with known class, as two classes."""
    codes, inverse = classes(points, options)
    known = codes >= 0
    notes.see_class(int(np.bincount(codes[known], minlength=2)[codes[known].min() :].min()))
    if points.weight is not None and inverse is not None:
        inverse = inverse * points.weight
    return replace(points.take(known), truth=codes[known], weight=take_rows(inverse, known))


def influence(
    metric: Metric, points: Points, options: MetricOptions, notes: CellNotes
) -> Influence:
    """Compute the metric of one cell and the influence of its points."""
    if metric.reads == "labels":
        k = options.labels
        pair = points.truth * k + points.prediction
        counts = np.bincount(pair, points.weight, k * k).reshape(k, k)
        value, phi = influence_of_counts(metric, counts, options, notes)
        notes.span = float(np.ptp(phi)) if phi.any() else None
        return value, phi.reshape(-1)[pair]
    if metric.reads == "sets":
        return with_zero_division(partial(metric.influence, points), options, notes)
    value, phi = metric.influence(points, options)
    notes.constant += metric.reads == "numbers" and value == 0 and not phi.any()
    return value, phi


def influence_of_counts(
    metric: Metric, counts: NDArray[Any], options: MetricOptions, notes: CellNotes
) -> Influence:
    """Compute a metric of labels from counts, or sums of weights, of truth by label."""
    return with_zero_division(partial(metric.influence, counts / counts.sum()), options, notes)


def with_zero_division(
    work: Callable[[MetricOptions], Influence], options: MetricOptions, notes: CellNotes
) -> Influence:
    """Record a cell whose value is set by convention."""
    try:
        return work(replace(options, zero_division=None))
    except UndefinedMetricError:
        if options.zero_division is None:
            raise
        notes.constant += 1
        return work(options)


def as_floats(values: NDArray[Any]) -> FloatArray:
    """Convert numbers of any type to contiguous float64, so kernels are compiled once."""
    return readonly(np.ascontiguousarray(values, dtype=np.float64))


def count_rows(rows: Rows) -> int:
    """Count the rows of a cell."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def first_row(rows: Rows) -> int:
    """Find the first row of a cell."""
    return int(rows.start if isinstance(rows, slice) else rows[0])


def keep_known(rows: Rows, there: NDArray[Any] | None) -> Rows:
    """Drop the rows without truth or prediction."""
    if there is None or there[rows].all():
        return rows
    every = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    known: IntArray = every[there[rows]]
    return known


BLOCK = 1 << 18
"""Number of rows whose cells are looked up together."""


def rows_of_cells(number: Callable[[int, int], Codes], size: int) -> list[Rows]:
    """Find the rows of each cell that occurs.

    ``number`` gives the number of the cell of some rows, negative where there is none.
    """
    runs: dict[int, slice] = {}
    last = -1
    for start in range(0, size, BLOCK):
        cell = number(start, min(start + BLOCK, size))
        turns = [0, *(np.flatnonzero(cell[1:] != cell[:-1]) + 1).tolist(), len(cell)]
        for begin, end in pairwise(turns):
            name = int(cell[begin])
            if name >= 0 and name == last:
                runs[name] = slice(runs[name].start, start + end)
            elif name in runs:
                return sorted_rows(number(0, size))
            elif name >= 0:
                runs[name] = slice(start + begin, start + end)
            last = name
    return list(runs.values())


def sorted_rows(cell: Codes) -> list[Rows]:
    """Find the rows of each cell if they are not contiguous."""
    small = len(cell) and cell.max() < np.iinfo(np.int16).max  # sorted by NumPy in linear time
    order = np.argsort(cell.astype(np.int16) if small else cell, kind="stable")
    ordered = cell[order]
    turns = np.flatnonzero(np.diff(ordered)) + 1
    return [rows for rows in np.split(order, turns) if cell[rows[0]] >= 0]


def weights_of(points: Points, rows: Rows, refuse: Refuse) -> tuple[FloatArray | None, bool]:
    """Weights of the points of a cell; also whether they are adjusted to known strata shares."""
    weight = points.weight
    if weight is not None and not weight.sum() > 0:
        raise refuse(first_row(rows), "every weight is 0")
    if points.stratum is None:
        return weight, False
    if points.shares is None:
        if (np.bincount(points.stratum) == 1).any():
            raise refuse(first_row(rows), "a stratum has only one point")
        return weight, False
    weight = np.ones(len(points.truth)) if weight is None else weight
    there = np.bincount(points.stratum, weight, minlength=len(points.shares))
    if ((there == 0) & (points.shares > 0)).any():
        raise refuse(first_row(rows), "a stratum with a share has no points")
    return weight * share_factors(points.shares, there)[points.stratum], True


def share_factors(shares: FloatArray, weights: NDArray[Any]) -> FloatArray:
    """Return the factors that give strata with these sums of weights their known shares."""
    factors: FloatArray = np.divide(shares, weights, out=np.zeros(len(shares)), where=weights > 0)
    return factors


def center_strata(z: FloatArray, stratum: IntArray, shares_known: bool) -> FloatArray:
    """Subtract the mean of each stratum, because the shares of the strata are fixed.

    Sampled strata have their own degrees of freedom. Poststrata with known shares do not: their
    sizes are random.
    """
    n = np.bincount(stratum)
    centered: FloatArray = z - (np.bincount(stratum, z) / np.maximum(n, 1))[stratum]
    if shares_known:
        return centered
    return centered * np.sqrt(n / np.maximum(n - 1, 1))[stratum]
