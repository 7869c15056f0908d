"""Logs of pseudo-losses: the mean over each cell is the metric of that cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import ENOUGH_POINTS
from cvstats.core.design import SPLIT, Design
from cvstats.core.folds import fold_level, has_crossed_sources, tested_level
from cvstats.core.orientation import TARGET, TURNED, Better, facts_of_score
from cvstats.core.threads import BLOCK, ordered_map
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_choice, is_number, listed, nearest, place, spelled
from cvstats.log.loss_checks import LIMIT, cell_numbers, mark_shapes
from cvstats.log.metadata import MADE_OF, ONE_PREDICTION, RATIOS, cell_key
from cvstats.log.pandas import design_of
from cvstats.log.xarray import level_dims, levels_along
from cvstats.loss_functions.pointwise import (
    LOSSES,
    LossOptions,
    Values,
    broadcast,
    check_clip,
    facts_of_loss,
    flat_columns,
    flattened,
    floats,
    known,
    list_users,
    loss_name,
    map_columns,
    pointwise,
    probabilities,
    read_classes,
    refuse_other_labels,
    signs,
    stack_columns,
)
from cvstats.metrics import METRICS
from cvstats.metrics.metric import (
    CellNotes,
    Metric,
    MetricOptions,
    Points,
    Rows,
    UndefinedMetricError,
    count_rows,
    first_row,
    pseudo_losses,
    rows_of_cells,
    share_factors,
)
from cvstats.metrics.numbers import UP_AND_DOWN

Columns = Mapping[Hashable, Sequence[Hashable]]

Mask = NDArray[np.bool_] | None
"""Mask of available values; None if all are available."""

OF_THRESHOLD = ("the negative class", "the positive class")
"""The classes of predictions above and below a threshold."""

FURTHER = ("weight", "strata", "event", "reference")
"""Options that name a column."""


@dataclass(frozen=True)
class MetricRequest:
    """The requested metric, with the given options of `cvstats.losses`."""

    metric: Metric
    asked: Mapping[str, Any]

    def __getitem__(self, option: str) -> Any:
        """Get an option, or None if it was not given."""
        return self.asked.get(option)

    def __post_init__(self) -> None:
        """Reject options that the metric does not use, or that are invalid."""
        for option in self.asked:
            if not self.metric.uses(option):
                others = list_users(option)
                raise LogError(
                    f"{self.metric.words} does not use {option}=, which applies only to "
                    f"loss={' or '.join(map(repr, others))}. Omit it."
                )
        for option in ("ddof", "zero_division"):
            if self[option] not in (None, 0, 1):
                raise LogError(f"Invalid {option}={self[option]!r}. Expected 0 or 1.")
        if self.metric.reads == "sets" and self["average"] != "micro":
            raise LogError(
                f"average={self['average']!r} is not supported if the truth has several columns. "
                "Use average='micro'."
            )
        if self["class_shares"] is not None and self["classes"] is not None:
            raise LogError("class_shares= applies to two classes. Omit it, or omit classes=.")
        if self["shares"] is not None and self["strata"] is None:
            raise LogError("shares= requires strata=. Pass both.")
        if self["shares"] is not None:
            check_shares(self["shares"])
        beta, cut, rate = self["beta"], self["threshold"], self["max_fpr"]
        if "max_fpr" in self.metric.takes and not (is_number(rate) and 0 < rate <= 1):
            raise LogError(
                f"partial_auc needs the largest false positive rate, but got max_fpr={rate!r}. "
                "Expected a number above 0 and at most 1, such as max_fpr=0.1."
            )
        if beta is not None and not (is_number(beta) and beta > 0):
            raise LogError(f"beta={beta!r} is not a weight. Expected a number above 0.")
        check_clip(self["clip"])
        check_threshold(cut)
        if "reference" in self.metric.takes and self["reference"] is None:
            raise LogError(
                f"{self.metric.words} needs a reference. Pass the column of its predictions: "
                "reference='mean_model'."
            )

    @property
    def options(self) -> LossOptions:
        """The options of losses of points."""
        return LossOptions.of(self.asked)

    @property
    def by(self) -> Sequence[Hashable]:
        """The levels whose labels each get a value of the metric."""
        return self["by"] or ()

    @property
    def pools(self) -> bool:
        """Whether one value is computed over all folds."""
        return (self["folds"] or self.metric.folds) == "pool"

    @property
    def further(self) -> dict[str, Hashable]:
        """Additional columns besides truth and predictions, by purpose."""
        return {name: self.asked[name] for name in FURTHER if name in self.asked}


def check_threshold(cut: object) -> None:
    """Reject a threshold that is not a number."""
    if cut is not None and not is_number(cut):
        raise LogError(f"threshold={cut!r} is not a number. Expected one, such as 0.5.")


def mean_loss(loss: Any, options: LossOptions) -> Metric:
    """Create the record of the weighted mean of a pointwise loss."""

    def influence(points: Points, options: MetricOptions) -> Any:
        value = sign * float(np.average(points.truth, weights=points.weight))
        return value, sign * points.truth - value

    name = loss_name(loss)
    facts = facts_of_loss(loss, options)
    sign = -1 if facts.get("orientation") in TURNED else 1
    better: Better = "closer" if TARGET in facts else "smaller" if sign > 0 else "larger"
    # One prediction changes a mean of zeros and ones by its share of the weight.
    zero_one = loss in ("zero_one", "coverage")
    bounds = (0.0, 1.0) if zero_one else facts.get("range", UP_AND_DOWN)
    return Metric(
        name, name, "losses", influence, bounds, "pool",
        better=better, target=facts.get(TARGET), span=1.0 if zero_one else None,
        takes=() if callable(loss) else LOSSES[loss].takes,
    )  # fmt: skip


# --- the log --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Labelling:
    """Classes of a log, found once for all models: labels, and which one is positive."""

    labels: list[Any]
    average: str
    positive: int = 0


def metric_log(
    predictions: pd.DataFrame | xr.Dataset,
    truth: Sequence[Hashable],
    models: Columns,
    request: MetricRequest,
) -> tuple[dict[Hashable, Any], dict[str, Any]]:
    """Compute the pseudo-losses of each model, and the facts stored with them."""
    arrays = flatten_columns(predictions, truth, models, request)
    classes = find_classes(arrays, truth, models, request)
    notes: list[CellNotes] = []
    values: dict[Hashable, Any] = {}
    carried: dict[str, list[str]] = {}
    every = {model: [*truth, *cs, *request.further.values()] for model, cs in models.items()}
    if isinstance(predictions, pd.DataFrame):
        missing = [name for name in request.by if name not in predictions.index.names]
        if missing:
            predictions = predictions.set_index(missing, append=True)
        design = design_of(predictions.index)
        run = prepare_run(design, request, classes)
        for model, (found, noticed) in zip(models, run.models(every, arrays), strict=True):
            values[model] = pd.Series(found, index=predictions.index, copy=False)
            notes.append(noticed)
    else:
        for model, names in every.items():
            whole, run, dims = prepare_arrays(predictions, names, request, classes)
            work = partial(apply_to_carried_cells, partial(run.losses, model), len(dims), notes)
            values[model] = map_columns(predictions, names, work, dims)
            carried = {
                str(d): [*map(str, whole[d].to_numpy() if d in whole.coords else range(size))]
                for d, size in whole.sizes.items() if d not in dims
            }  # fmt: skip
    made_of = count_points_of_cells(run, list(map(str, models)), notes)
    if isinstance(predictions, xr.Dataset) and not notes:
        notes += notes_of_truth(predictions, truth, models, run, carried)
    facts = metric_facts(run.request, run.cells, classes, notes) | {MADE_OF: made_of}
    if is_biased_by_fold(run.request, run.design, run.cells, lambda: map(count_rows, run.rows)):
        facts["biased_by_fold"] = True
    if (reach := note_reach(run, list(map(str, models)), notes, carried)) is not None:
        facts[ONE_PREDICTION] = reach
    return values, facts


def flatten_columns(
    predictions: pd.DataFrame | xr.Dataset, truth: Sequence[Hashable], models: Columns,
    request: MetricRequest,
) -> dict[Hashable, Values]:  # fmt: skip
    """Flatten all columns, once for all models; those of dask stay lazy, and are not returned."""
    parts = [*truth, *(c for cs in models.values() for c in cs), *request.further.values()]
    every = dict.fromkeys(parts)
    if isinstance(predictions, pd.DataFrame):
        return {name: flat_columns(predictions[name]) for name in every}
    lazy = any(predictions[name].chunks is not None for name in every)
    of_labels = request.metric.reads == "labels" and request["threshold"] is None
    if lazy and of_labels and not request["labels"]:
        raise LogError(
            f"these predictions are lazy (dask), but {request.metric.words} needs all labels. "
            "Pass labels=[…]."
        )
    return {name: flattened(predictions[name].values) for name in every if not lazy}


def prepare_arrays(
    predictions: xr.Dataset, names: Sequence[Hashable], request: MetricRequest,
    classes: Labelling,
) -> tuple[xr.DataArray, MetricRun, tuple[Hashable, ...]]:  # fmt: skip
    """Broadcast some variables; find their evaluations, and the dimensions along which they lie."""
    parts, whole = broadcast(predictions, names)
    dims = level_dims(whole)
    split = [d for d in dims for p in parts if p.chunks and len(p.chunksizes[d]) > 1]
    if split:
        raise LogError(
            f"the predictions lie in several chunks along {split[0]!r}, but {request.metric.words} "
            f"needs whole cells. Expected one chunk: predictions.chunk({{{split[0]!r}: -1}})."
        )
    design = Design(levels_along(whole, dims), int(np.prod([whole.sizes[d] for d in dims])))
    return whole, prepare_run(design, request, classes), dims


def prepare_run(design: Design, request: MetricRequest, classes: Labelling) -> MetricRun:
    """Find the folds of a metric; evaluations may have the same labels in different groups."""
    design = replace(design, within=tuple(n for n in map(str, request.by) if n in design.levels))
    return MetricRun(design, choose_folds(request, design), classes)


def notes_of_truth(
    predictions: xr.Dataset, truth: Sequence[Hashable], models: Columns, run: MetricRun,
    carried: Mapping[str, list[str]],
) -> list[CellNotes]:  # fmt: skip
    """Note what the truth of lazy predictions shows alone: the points of each class in each cell.

    Nothing for metrics that also depend on how many points were predicted to be in a class, with
    further columns, or if the truth differs between carried cells.
    """
    known = run.request.metric.span is not None and not run.request.further
    if not known or len(truth) > 1 or set(predictions[truth[0]].dims) & carried.keys():
        return []
    labels = np.asarray(predictions[truth[0]].values).reshape(-1)
    if len(labels) != run.design.size:
        return []
    scores = [np.linspace(0, 1, len(labels))] * len(run.request.options.classes or [None])
    _, noticed = run.losses(None, labels, *scores)
    return [noticed] * (len(models) * int(np.prod([len(each) for each in carried.values()])))


def apply_to_carried_cells(
    work: Callable[..., tuple[FloatArray, CellNotes]], levels: int, notes: list[CellNotes],
    *parts: Values,
) -> FloatArray:  # fmt: skip
    """Apply a function of columns to each carried cell; ``levels`` dimensions come last."""
    shape = parts[0].shape
    carried = int(np.prod(shape[: len(shape) - levels]))
    tables = [np.asarray(part).reshape(carried, -1) for part in parts]
    out = np.full(tables[0].shape, np.nan)
    for at in range(len(out)):
        columns = [table[at] for table in tables]
        if not (columns[1].dtype.kind == "f" and np.isnan(columns[1]).all()):
            out[at], noticed = work(*columns)
        else:
            noticed = CellNotes()
        notes.append(noticed)
    return out.reshape(shape)


@dataclass(frozen=True, eq=False)
class MetricRun:
    """The computation of the pseudo-losses of all models that have the same evaluations."""

    design: Design
    request: MetricRequest
    classes: Labelling

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The levels whose combinations are the cells."""
        return cell_names(self.design, self.request)

    @cached_property
    def rows(self) -> list[Rows]:
        """The rows of each cell, once for all models."""
        self.design.cell_table(self.cells)
        return rows_of_cells(partial(self.design.cells, self.cells), self.design.size)

    @property
    def keys(self) -> list[str]:
        """The name of each cell."""
        return [cell_key(self.design, self.cells, first_row(rows)) for rows in self.rows]

    def models(
        self, columns: Columns, arrays: Mapping[Hashable, Values]
    ) -> Iterator[tuple[FloatArray, CellNotes]]:
        """Compute the pseudo-losses of several models; threads share those of a long log."""
        asked = [(model, [arrays[name] for name in names]) for model, names in columns.items()]
        metric, base = self.request.metric, self.request["base"]
        own = METRICS.get(metric.name) is metric and not callable(base)  # not a user's function
        if not own or self.design.size < BLOCK:
            yield from (self.losses(model, *parts) for model, parts in asked)
            return
        _ = self.rows  # found now, once for all threads

        def work(at: int) -> tuple[FloatArray, CellNotes] | LogError:
            try:
                return self.losses(asked[at][0], *asked[at][1])
            except LogError as error:  # that of the first model is raised
                return error

        for found in ordered_map(work, len(asked)):
            if isinstance(found, LogError):
                raise found
            yield found

    def losses(self, model: Hashable, *columns: Values) -> tuple[FloatArray, CellNotes]:
        """Compute the pseudo-losses of a model, from truth, predictions and the further columns."""
        request, classes = self.request, self.classes
        own = columns[: len(columns) - len(request.further)]
        more = dict(zip(request.further, columns[len(own) :], strict=True))
        truth, guess = own[0], own[1]
        if request.metric.reads == "sets":
            labels = len(own) // 2
            truth, guess = np.column_stack(own[:labels]), np.column_stack(own[labels:])
        elif len(own) > 2:
            guess = stack_columns(own[1:])
        points = encode_points(truth, guess, request, classes, more)
        points = replace(points, **weights_and_strata(points, request, more, self.design))
        crossed = ("point",) * has_crossed_sources(self.design)
        for name in ("source", *crossed):
            if name in self.design.levels:
                codes = np.asarray(self.design.levels[name].block(0, self.design.size), int)
                points = replace(points, **{name: codes})
        asked = metric_options(request, classes)
        if request["class_shares"] == "log":
            here = slice(None) if points.there is None else points.there
            weight = None if points.weight is None else points.weight[here]
            counts = np.bincount(points.truth[here], weight, minlength=2)
            asked = replace(asked, class_shares=counts / counts.sum())
        refuse = partial(self.undefined, model, points, asked)
        losses, noticed = pseudo_losses(request.metric, points, self.rows, asked, refuse)
        if points.event is not None and request.metric.reads == "times":
            noticed.censored = not request.metric.assumes and not points.event.all()
        noticed.dominated = request.metric.name in RATIOS and self.has_heavy_parts(points)
        noticed.few_points = self.has_few_points(points)
        noticed.two_scores = request.metric.reads == "scores" and has_two_scores(points)
        return losses, noticed

    def has_few_points(self, points: Points) -> bool:
        """Whether the weights of some group are worth fewer than 30 equal ones (Kish 1965).

        If limits count how much one prediction can change the metric, they include the weights.
        """
        metric = self.request.metric
        weighted = points.weight is not None or points.shares is not None
        if not weighted or metric.reads == "labels" or metric.span is not None:
            return False
        levels = [name for name in (*SPLIT, *self.request.by) if name in self.design.levels]
        weight = np.ones(self.design.size) if points.weight is None else points.weight
        weight = weight if points.there is None else weight * points.there
        if points.shares is not None and points.stratum is not None:
            weight = self.give_shares(weight, points.stratum, points.shares)
        cells = self.design.cells(tuple(map(str, levels)), 0, self.design.size)
        found, squares = (np.bincount(cells, each) for each in (weight, weight**2))
        return bool((found**2 < ENOUGH_POINTS * squares).any())

    def give_shares(self, weight: FloatArray, stratum: IntArray, shares: FloatArray) -> FloatArray:
        """Adjust the weights of each cell to the known shares of the strata."""
        adjusted = weight.copy()
        for rows in self.rows:
            own = np.bincount(stratum[rows], weight[rows], minlength=len(shares))
            n = np.count_nonzero(weight[rows])
            adjusted[rows] *= n * share_factors(shares, own)[stratum[rows]]
        return adjusted

    def has_heavy_parts(self, points: Points) -> bool:
        """Whether a few points of some group dominate one of the two means of a ratio metric."""
        design, metric = self.design, self.request.metric
        if design.size > LIMIT:
            return False
        rows = np.arange(design.size) if points.there is None else np.flatnonzero(points.there)
        names = [name for name in map(str, self.request.by) if name in design.levels]
        group = design.cells(tuple(names), 0, design.size)[rows]
        names = [name for name in ("source", "point") if name in design.levels]
        own = names if "point" in names else [name for name in SPLIT if name in design.levels]
        each = cell_numbers(design, tuple(own), rows)  # the number of its point, or of its split
        order = np.argsort(group, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            at, number = rows[some], len(np.unique(each[some]))
            n_points = number if "point" in names else len(at) // max(1, number)
            truth, prediction = (
                np.asarray(x, dtype=np.float64)[at] for x in (points.truth, points.prediction)
            )
            parts = [truth, prediction]
            if metric.reads == "numbers":
                error = truth - prediction
                parts = [error**2, (truth - truth.mean()) ** 2]
                if metric.name == "wmape":
                    parts = [abs(error), abs(truth)]
            if len(at) and mark_shapes(np.column_stack(parts)[None], [n_points]).any():
                return True
        return False

    def undefined(
        self, model: Hashable, points: Points, options: MetricOptions, row: int, why: str
    ) -> LogError:
        """Create the error for a row in whose cell the metric is undefined."""
        levels = {name: self.design.levels[name] for name in self.cells}
        codes = {name: level.block(0, self.design.size) for name, level in levels.items()}
        where = {name: level.labels[int(codes[name][row])] for name, level in levels.items()}
        fold = fold_level(self.design)
        alike = [codes[name] == codes[name][row] for name in codes if name != fold]
        every = (
            np.flatnonzero(np.logical_and.reduce(alike)) if alike else slice(0, len(points.truth))
        )
        folded = fold is not None
        try:
            pseudo_losses(self.request.metric, points, [every], options, refuse_cell)
        except UndefinedMetricError:
            folded = False
        return undefined(self.request, model, self.classes, where, folded, why)


def refuse_cell(row: int, why: str) -> UndefinedMetricError:
    """Create the exception for a cell in which the metric is undefined."""
    return UndefinedMetricError(why)


def choose_folds(request: MetricRequest, design: Design) -> MetricRequest:
    """Average over the folds of nested or resampled data, whose methods need a value in each."""
    if request["folds"] is not None or design.levels.keys().isdisjoint(("outer", "sample")):
        return request
    return replace(request, asked={**request.asked, "folds": "average"})


def cell_names(design: Design, request: MetricRequest) -> tuple[str, ...]:
    """Name the levels whose combinations are the cells."""
    if "count" in design.levels:
        raise LogError(
            f"{request.metric.words} must be computed on whole test sets, but bootstrap logs "
            "average over samples for each point. Expected a log without the level 'count'. Use "
            "cross-validation, or a loss of individual points."
        )
    for name in request.by:
        if name not in design.levels:
            raise LogError(
                f"by={name!r} is not a level of this log. Expected one of "
                f"{listed(map(repr, design.levels))}.{nearest(name, design.levels)}"
            )
    fold = None if request.pools else tested_level(design)
    names = [name for name in (*SPLIT, fold, *request.by) if name in design.levels]
    return tuple(dict.fromkeys(map(str, names)))


def metric_options(request: MetricRequest, classes: Labelling) -> MetricOptions:
    """Make the options of a metric, with their defaults."""
    names = ("multi_class", "beta", "weights", "zero_division", "clip", "max_fpr", "at")
    given = {name: request.asked[name] for name in names if name in request.asked}
    given["ddof"] = 1 if request["ddof"] is None else request["ddof"]
    k, positive = len(classes.labels), classes.positive
    return MetricOptions(labels=k, positive=positive, average=classes.average, **given)


def undefined(
    request: MetricRequest, model: Hashable, classes: Labelling, labels: Mapping[str, Any],
    folded: bool, why: str,
) -> LogError:  # fmt: skip
    """Create the error for a cell in which the metric is undefined.

    ``folded``: other folds may have a value, because all folds together have one.
    """
    where = f" at {place(labels)}" if labels else ""
    whose = "" if model is None else f" of {spelled(model)}"
    ways = []
    if folded and not request.pools:
        ways.append("stratified folds")
        ways.append("folds='pool'")
    if "zero_division" in request.metric.takes and "predicted" in why:
        ways.append("zero_division=0")
    if "clip" in request.metric.takes and "logit" in why:
        ways = ["clip=1e-6"]
    advice = f" Use {', or '.join(ways)}." if ways else ""
    reason = why.format(*map(name_class, classes.labels))
    return LogError(
        f"{request.metric.words_at(request['at'])}{whose} is not defined{where}: {reason}. "
        f"Expected a value in every cell.{advice}"
    )


# --- inputs of the metric -------------------------------------------------------------------------


def encode_points(
    truth: Values, guess: Values, request: MetricRequest, classes: Labelling,
    more: Mapping[str, Values],
) -> Points:  # fmt: skip
    """Convert columns to the inputs of the metric, and find missing values."""
    reads, options = request.metric.reads, request.options
    event = None
    first: Values
    second: Values
    if reads == "labels" and options.threshold is not None:
        first, here = encode_two_classes(truth, options)
        p = read_numbers(guess, "prediction")
        second, also = mark_positive(p, options.threshold), find_known(p)
    elif reads == "labels":
        first, here = encode_labels(truth, classes.labels, "truth")
        second, also = encode_labels(guess, classes.labels, "prediction")
    elif reads == "sets":
        first, here = read_indicators(truth, "truth", None)
        second, also = read_indicators(guess, "prediction", options.threshold)
    elif reads in ("scores", "probabilities"):
        bounded = reads == "probabilities" or guess.ndim == 2
        second = probabilities(guess) if bounded else read_numbers(guess, "prediction")
        also = find_known(second)
        if guess.ndim == 2:
            first, here = encode_labels(truth, classes.labels, "truth")
        else:
            first, here = encode_two_classes(truth, options)
    elif reads == "losses":
        base, reference = request["base"] or "squared_error", more.get("reference")
        first = pointwise(truth, guess, base, options)
        second = first if reference is None else pointwise(truth, reference, base, options)
        here, also = find_known(first), find_known(second)
    elif reads == "any":
        first, second, event = truth, guess, more.get("event")
        here = known(truth) == 1
        also = known(guess if guess.ndim == 1 else guess.sum(axis=1)) == 1
    else:
        first, second = read_numbers(truth, "truth"), read_numbers(guess, "prediction")
        here, also = find_known(first), find_known(second)
        if "event" in more:
            event, seen = read_events(more["event"])
            also = combine_masks(also, seen)
    return Points(first, second, combine_masks(here, also), event=event)


def read_events(values: Values) -> tuple[NDArray[np.bool_], Mask]:
    """Read whether times are event times, with a mask of known values."""
    expected = "Expected 1 for an event and 0 for a censored time."
    try:
        event = floats(values, "event")
    except LogError as error:
        raise LogError(f"{str(error).partition(',')[0]}. {expected}") from None
    there = find_known(event)
    wrong = np.flatnonzero(~np.isin(event, (0, 1)) & ~np.isnan(event))
    if len(wrong):
        raise LogError(
            f"the event is {spelled(values[wrong[0]])} in row {wrong[0]:,}. {expected} Competing "
            "events are not supported: see riskRegression in R."
        )
    return event == 1, there


def read_numbers(values: Values, what: str) -> Values:
    """Keep numbers of any type, to be converted cell by cell."""
    return values if values.dtype.kind in "biuf" else floats(values, what)


def find_known(values: Values) -> Mask:
    """Return a mask of available numbers."""
    if values.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return None
    rows = values if values.ndim == 1 else values.sum(axis=1)
    return ~np.isnan(rows)


def mark_positive(values: Values, threshold: float) -> IntArray:
    """Mark the predictions from a threshold on; one outside [0, 1] is for scores that are, too."""
    if not (0 <= threshold <= 1 or ((values < 0) | (values > 1)).any()):
        raise LogError(
            f"threshold={threshold!r} is not a probability, but the predictions are. Expected a "
            "number from 0 to 1, such as threshold=0.5."
        )
    positive: IntArray = (values >= threshold).astype(np.int64)
    return positive


def read_indicators(values: Values, what: str, threshold: float | None) -> tuple[IntArray, Mask]:
    """Read label indicators of each point, with a mask of known values."""
    found = np.asarray(read_numbers(values, what), dtype=np.float64)
    there = find_known(found)
    if threshold is not None:
        return mark_positive(found, threshold), there
    stray = np.argwhere(~np.isin(found, (0, 1)) & ~np.isnan(found))
    if len(stray):
        at = tuple(stray[0])
        raise LogError(
            f"the {what} of a label is {spelled(found[at])} in row {at[0]:,}. Expected 0 or 1 in "
            f"the column of each label. For probabilities pass threshold=0.5."
        )
    return (found == 1).astype(np.int64), there


def combine_masks(one: Mask, two: Mask) -> Mask:
    """Combine the masks of two columns."""
    if one is None or two is None:
        return two if one is None else one
    return one & two


def encode_two_classes(truth: Values, options: LossOptions) -> tuple[IntArray, Mask]:
    """Code the negative class as 0 and the positive one as 1, with a mask of known values."""
    if truth.dtype.kind in "bui" and options.positive is None and truth.size:
        low, high = int(truth.min()), int(truth.max())
        if low >= 0 and high <= 1:
            return truth.astype(np.int64, copy=False), None
    y = signs(truth, options)
    return (y > 0).astype(np.int64), find_known(y)


def encode_labels(values: Values, labels: list[Any], what: str) -> tuple[IntArray, Mask]:
    """Find the code of each label, with a mask of known values."""
    numbered = values.dtype.kind in "bui" and labels == list(range(len(labels)))
    if numbered and values.size and values.min() >= 0 and int(values.max()) < len(labels):
        return values.astype(np.int64, copy=False), None
    codes = pd.Index(labels, tupleize_cols=False).get_indexer(pd.Index(values, tupleize_cols=False))
    there = known(values) == 1
    stray = np.flatnonzero((codes < 0) & there)
    if len(stray):
        raise LogError(
            f"the {what} is {spelled(values[stray[0]])} in row {stray[0]:,}, which is not among "
            f"the labels {listed(map(repr, labels))}. Expected every label of truth and "
            f"predictions. Pass them all: labels=[…]."
        )
    return np.maximum(codes, 0).astype(np.int64), there


def find_classes(
    arrays: Mapping[Hashable, Values], truth: Sequence[Hashable], models: Columns,
    request: MetricRequest,
) -> Labelling:  # fmt: skip
    """Find the labels of truth and predictions of all models, and how classes are averaged."""
    reads, options = request.metric.reads, request.options
    if reads == "sets":
        return Labelling([], "micro")
    if reads == "scores" and options.classes is not None:
        labels = read_classes(options)
        average = request["average"] or "macro"
        checked_choice("average", average, ("macro", "weighted"))
        return Labelling(labels, average)
    if reads in ("scores", "probabilities"):  # of two classes, for which averages are the same
        return Labelling(list(OF_THRESHOLD), "binary", 1)
    if reads == "labels" and options.threshold is not None:
        return two_classes(request)
    if reads != "labels":
        return Labelling([], "binary")
    if request["labels"] is not None:
        labels = plain_labels(request["labels"])
        check_labels(labels)
    else:
        (own,) = (arrays[name] for name in truth)
        for names in models.values():
            refuse_other_labels(request.metric.words, own, arrays[names[0]])
        labels = list_labels(own, *(arrays[c] for cs in models.values() for c in cs))
    return choose_classes(labels, request)


def plain_labels(labels: Iterable[Any]) -> list[Any]:
    """Convert scalars of NumPy to those of Python."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def check_labels(labels: list[Any]) -> None:
    """Reject fewer than two labels, and duplicates."""
    if len(set(labels)) < max(2, len(labels)):
        raise LogError(
            f"labels={labels!r} does not name classes. Expected at least two different labels."
        )


def name_class(label: Hashable) -> str:
    """Name a class in a sentence; those of a threshold have no labels."""
    return str(label) if label in OF_THRESHOLD else f"class {label!r}"


def two_classes(request: MetricRequest, positive: int = 1) -> Labelling:
    """Name the classes of one probability: one is positive, or both are averaged."""
    names = list(OF_THRESHOLD)
    return Labelling(names if positive else names[::-1], request["average"] or "binary", positive)


def list_labels(*columns: Values) -> list[Any]:
    """List the labels that occur, sorted where they can be."""
    found: dict[Any, None] = {}
    for values in columns:
        flat = values.reshape(-1)
        for label in pd.unique(flat[known(flat) == 1] if flat.dtype.kind in "fO" else flat):
            plain = label.item() if isinstance(label, np.generic) else label
            whole = isinstance(plain, float) and plain.is_integer()
            found[int(plain) if whole or isinstance(plain, bool) else plain] = None
            if len(found) > 1000:
                raise LogError(
                    "truth and predictions have more than 1,000 labels. Expected classes. For "
                    "numbers use a numeric metric, such as loss='rmse'; for probabilities pass "
                    "threshold=0.5."
                )
    try:
        return sorted(found)
    except TypeError:
        return list(found)


def choose_classes(labels: list[Any], request: MetricRequest) -> Labelling:
    """Decide between one positive class and an average over classes."""
    positive, average = request.options.positive, request["average"]
    if "average" not in request.metric.takes:
        if positive is not None:
            raise LogError(
                f"{request.metric.words} treats all classes equally, and uses positive= only "
                "with threshold=. Omit it."
            )
        return Labelling(labels, "macro")
    if average not in (None, "binary"):
        if positive is not None:
            raise LogError(
                f"average={average!r} is over all classes, and positive= names one of them. "
                "Expected only one of these options."
            )
        return Labelling(labels, str(average))
    if positive is None:
        if len(labels) > 2:
            raise LogError(
                f"truth and predictions have {len(labels)} labels: {listed(map(repr, labels))}. "
                f"Specify how {request.metric.words} averages over classes: average='macro', "
                "'weighted' or 'micro'; or pass positive= for one of them."
            )
        if not set(labels) <= {0, 1} and not set(labels) <= {-1, 1}:
            raise LogError(
                f"the labels are {listed(map(repr, labels))}. Specify which one is positive: "
                f"{' or '.join(f'positive={label!r}' for label in labels)}."
            )
        positive = 1
        labels = labels if len(labels) == 2 else sorted({*labels, 1, 0 if -1 not in labels else -1})
    if positive not in labels:
        raise LogError(
            f"positive={positive!r} is not a label. Expected one of {listed(map(repr, labels))}."
        )
    return Labelling(labels, "binary", labels.index(positive))


def weights_and_strata(
    points: Points, request: MetricRequest, more: Mapping[str, Values], design: Design
) -> dict[str, Any]:
    """Read weights, strata and the known shares of these."""
    found: dict[str, Any] = {}
    there = True if points.there is None else points.there
    if "weight" in more:
        weight = floats(more["weight"], "weight")
        wrong = np.flatnonzero(~((weight >= 0) & (weight < np.inf)) & there)
        if len(wrong):
            raise LogError(
                f"the weight at {design.format_labels(int(wrong[0]))} is {weight[wrong[0]]}. "
                "Expected finite nonnegative weights."
            )
        found["weight"] = weight
    if "strata" in more:
        strata, shares = request["strata"], request["shares"]
        codes, found_labels = pd.factorize(more["strata"])
        labels = found_labels.tolist()
        wrong = np.flatnonzero((codes < 0) & there)
        if len(wrong):
            raise LogError(
                f"there is no stratum at {design.format_labels(int(wrong[0]))}. Expected a label "
                f"of {strata!r} for every point."
            )
        found["stratum"] = np.maximum(codes, 0)
        if shares is not None:
            lack = [label for label in labels if label not in shares]
            if lack:
                raise LogError(
                    f"shares= has no share for the stratum {lack[0]!r}. Expected one for each of "
                    f"{listed(map(repr, labels))}."
                )
            absent = [label for label, s in shares.items() if s and label not in labels]
            if absent:
                raise LogError(
                    f"the stratum {absent[0]!r} has a share but no points. Expected points in "
                    "every stratum. Drop it, or merge strata."
                )
            found["shares"] = np.array([float(shares[label]) for label in labels])
    return found


def check_shares(shares: object) -> None:
    """Raise if the shares of strata are not nonnegative numbers by label."""
    if not isinstance(shares, (Mapping, pd.Series)):
        raise LogError(
            f"shares={shares!r} is not a mapping. Expected the share of each stratum by its label, "
            "such as shares={'case': 0.1, 'control': 0.9}."
        )
    for label, share in shares.items():
        if not (is_number(share) and 0 <= share < np.inf):
            raise LogError(
                f"the share of the stratum {label!r} is {share!r}. Expected a nonnegative number."
            )
    if len(shares) and not any(share > 0 for _, share in shares.items()):
        raise LogError("every share in shares= is 0. Expected a positive number for some stratum.")


# --- facts ----------------------------------------------------------------------------------------


def has_two_scores(points: Points) -> bool:
    """Whether the scores take only two values, as predicted labels do."""
    scores = points.prediction if points.there is None else points.prediction[points.there]
    if scores.ndim > 1 or len(np.unique(scores[:100])) > 2:
        return False
    return len(np.unique(scores)) == 2


def is_biased_by_fold(
    request: MetricRequest,
    design: Design,
    cells: Sequence[str],
    sizes: Callable[[], Iterable[float]],
) -> bool:
    """Whether the bias of the metric in a fold matters beside the standard error of its mean.

    ``cells`` are the levels within which it is computed, and ``sizes`` counts the points of each
    cell. The bias of a mean over K folds of m points is of order 1 / m, its standard error of order
    1 / sqrt(K m).
    """
    levels = set(cells).difference(SPLIT, map(str, request.by))
    if request.pools or not levels or not request.metric.fold_bias:
        return False
    folds = design.cell_table(tuple(name for name in cells if name in levels)).size
    return min(sizes()) < request.metric.fold_bias * folds


def count_points_of_cells(run: MetricRun, models: list[str], notes: list[CellNotes]) -> str:
    """Count the points of each cell, so that later subsets of the log are detected.

    Stored as text, which is shared between logs without copying. If carried cells lack different
    points, or are not computed yet, the rows of each cell are counted.
    """
    cells = run.keys
    found = [tuple(note.points) for note in notes if any(note.points)]
    if len(set(found)) == 1:
        return json.dumps({"points": dict(zip(cells, found[0], strict=True))}, sort_keys=True)
    if len(found) == len(models):
        each = {m: dict(zip(cells, n, strict=True)) for m, n in zip(models, found, strict=True)}
        return json.dumps({"models": each}, sort_keys=True)
    rows = dict(zip(cells, map(count_rows, run.rows), strict=True))
    return json.dumps({"rows": rows}, sort_keys=True)


MOST_REACHES = 100_000
"""Maximum number of values kept in the attrs of a log."""


def note_reach(
    run: MetricRun, models: list[str], notes: list[CellNotes], carried: Mapping[str, list[str]]
) -> str | None:
    """Store the largest change one prediction can make in each cell; None if unknown.

    One list of cells per model and carried cell, or a single list if all are equal.
    """
    cells = run.keys
    order = sorted(range(len(cells)), key=cells.__getitem__)
    size = int(np.prod([len(labels) for labels in carried.values()]))
    if len(notes) != len(models) * size or not any(note.reaches for note in notes):
        return None
    if any(len(note.reaches) not in (0, len(cells)) for note in notes):
        return None
    each = {}
    for at, model in enumerate(models):
        own = [
            [note.reaches[i] for i in order] if note.reaches else []
            for note in notes[at * size : (at + 1) * size]
        ]
        some = [reaches for reaches in own if reaches]
        alike = bool(some) and all(reaches == some[0] for reaches in some)
        each[model] = some[:1] if alike else own
    return write_reaches(sorted(cells), carried, each)


def write_reaches(
    cells: list[str], carried: Mapping[str, list[str]], models: Mapping[str, list[Any]]
) -> str | None:
    """Serialize the largest change of one prediction in each cell as text."""
    if sum(map(len, models.values())) * len(cells) > MOST_REACHES:
        return None
    return json.dumps({"cells": cells, "carried": dict(carried), "models": models})


def metric_facts(
    request: MetricRequest, cells: tuple[str, ...], classes: Labelling, notes: list[CellNotes]
) -> dict[str, Any]:
    """Describe the metric of a log, as needed by its results."""
    metric, options = request.metric, request.options
    by_label = metric.reads == "labels" and options.threshold is None
    several = by_label or (metric.reads == "scores" and options.classes is not None)
    positive = None
    if metric.reads in ("labels", "scores", "probabilities") and classes.average == "binary":
        one = 1 if options.positive is None else options.positive
        positive = classes.labels[classes.positive] if by_label else one
    rarest = [note.rarest for note in notes if note.rarest is not None]
    averaged = "average" in metric.takes and classes.average != "binary"
    # whether times of lazy predictions are censored is unknown: who passes event= says they may be
    unseen = not notes and request["event"] is not None and not metric.assumes
    censored = any(note.censored for note in notes) or (unseen and metric.reads == "times")
    optional = {
        TARGET: metric.target,
        "limits": metric.limits or None,
        "labels": list(classes.labels) if several else None,
        "positive": positive,
        "average": classes.average if averaged else None,
        **{name: request[name] for name in ("weight", "strata", "class_shares")},
        "rarest_class": min(rarest, default=None),
        "assumes": metric.assumes or None,
        "at": request["at"],
        "censored": censored or None,
        "heavy_tails": any(note.dominated for note in notes) or None,
        "few_points": any(note.few_points for note in notes) or None,
        "two_scores": any(note.two_scores for note in notes) or None,
        "cells_without_influence": max((note.constant for note in notes), default=0) or None,
    }
    return {
        **facts_of_score(metric.name, metric.orientation),
        "pseudo": True,
        "range": metric.range if request["max_fpr"] is None else (0.0, request["max_fpr"]),
        "folds": "pool" if request.pools else "average",
        "cells": list(cells),
        **{name: fact for name, fact in optional.items() if fact is not None},
    }
