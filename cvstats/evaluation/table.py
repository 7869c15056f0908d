"""The losses of all fits in the order of the plan, and their conversion to a log."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, place
from cvstats.evaluation.fit import Data, FitResult, Loss, ScoringSpec, response_of
from cvstats.loss_functions.losses import find_loss, join_metrics, losses, split_options
from cvstats.loss_functions.pointwise import LossOptions, checked_loss
from cvstats.metrics import METRICS
from cvstats.plans import BoundPlan, Fit

POINT_LEVELS = ("source", "point", "count")
"""Levels that describe points, not fits."""


@dataclass(frozen=True, eq=False)
class LossTable:
    """A table with one row per evaluation in the order of the fits, and one column per model.

    Parameters
    ----------
    plan : BoundPlan
        The plan of the rows.
    models : list of str
        The names of the columns.
    starts : array of int, shape (fits + 1,)
        Where the rows of each fit start.
    points : array of int, shape (rows,)
        The rows of the data that are tested.
    levels : mapping of str to array of int, shape (rows,)
        The numbered levels, and ``count`` if the plan has it.
    places : list of mapping of str to label
        The levels of the first evaluation of each fit, for messages.
    train_sizes : list of int
        Number of training points of the fits to the data, without inner fits and resampled data
        sets.
    apparent : list of int
        The fits that are tested on their own sample.
    losses : array of float, shape (rows, models)
        NaN until a fit has been added.
    rates : mapping of (fit, model) to float
        The no-information rates of the apparent fits.
    """

    plan: BoundPlan
    models: list[Hashable]
    starts: IntArray
    points: IntArray
    levels: dict[str, IntArray]
    places: list[dict[str, Hashable]]
    train_sizes: list[int]
    apparent: list[int]
    losses: FloatArray
    rates: dict[tuple[int, Hashable], float | None] = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: BoundPlan, models: Sequence[Hashable], width: int = 1) -> LossTable:
        """Make an empty table for a plan, with ``width`` numbers per point."""
        numbered = numbered_levels(plan)
        labels: dict[str, list[Any]] = {name: [] for name in numbered}
        starts, lengths, points, counts = [0], [], [], []
        places, train_sizes, apparent = [], [], []
        for number, fit in enumerate(plan):
            for at in fit.evaluations:
                for name in numbered:
                    labels[name].append(at.levels[name])
                lengths.append(len(at.points))
                points.append(at.points)
                if at.count is not None:
                    counts.append(at.count)
            starts.append(starts[-1] + sum(len(at.points) for at in fit.evaluations))
            places.append(dict(fit.evaluations[0].levels))
            train_sizes += [len(fit.train)] if is_fit_to_data(fit) else []
            apparent += [number] if fit.apparent else []
        levels = {name: np.repeat(np.array(labels[name]), lengths) for name in numbered}
        if counts:
            levels["count"] = np.concatenate(counts)
        return cls(
            plan, list(models), np.array(starts), np.concatenate(points), levels, places,
            train_sizes, apparent, np.full((starts[-1], len(models) * width), np.nan),
        )  # fmt: skip

    def add(self, result: FitResult) -> None:
        """Enter the losses of a fit.

        Raises
        ------
        LogError
            If the fit failed; its exception is the cause.
        """
        if result.losses is None:
            where = place(self.places[result.fit]) or "its one split"
            raise LogError(
                f"model {result.model!r} failed at {where}: {type(result.failure).__name__}: "
                f"{result.failure}"
            ) from result.failure
        rows = slice(*self.starts[result.fit : result.fit + 2])
        _, at = np.unique(self.points[rows], return_inverse=True)
        width = self.losses.shape[1] // len(self.models)
        first = self.models.index(result.model) * width
        self.losses[rows, first : first + width] = result.losses.reshape(-1, width)[at]
        if result.no_information is not None:
            self.rates[result.fit, result.model] = result.no_information

    def to_log(self, data: Data, as_series: bool) -> pd.Series | pd.DataFrame:
        """Make the log: one column per model, or a Series for a single model."""
        index, order = self.index_and_order(data)
        values = self.losses[order]
        if as_series:
            return pd.Series(values[:, 0], index=index, name=self.models[0])
        columns = pd.Index(self.models, name="model", tupleize_cols=False)
        return pd.DataFrame(values, index=index, columns=columns)

    def index_and_order(self, data: Data) -> tuple[pd.Index, IntArray]:
        """Make the index of the log, and the order of its rows: by level, then as in the data."""
        names = numbered_levels(self.plan)
        order = np.lexsort([self.points, *(self.levels[name] for name in reversed(names))])
        if self.plan.plan.levels[0] == "source":  # fits have no other level
            order = np.arange(len(self.points))
        parts = {name: factorize_range(self.levels[name]) for name in names}
        if data.source is not None:
            parts["source"] = factorize_labels(data.source, self.points)
        parts["point"] = factorize_labels(data.point, self.points)
        if "count" in self.levels:
            parts["count"] = factorize_range(self.levels["count"])
        if len(parts) == 1:
            return data.point.take(self.points[order]).rename("point"), order
        labels: list[Any] = [names for names, _ in parts.values()]
        codes: list[Any] = [places[order] for _, places in parts.values()]
        return pd.MultiIndex(levels=labels, codes=codes, names=list(parts)), order

    def attrs(self) -> dict[Hashable | None, Any]:
        """Collect the training sizes and the no-information rates, if there are any."""
        found: dict[Hashable | None, Any] = {}
        if self.train_sizes:
            first, *others = self.train_sizes
            found["n_train"] = self.train_sizes if set(others) - {first} else first
        if self.apparent:
            rates = {name: [self.rates[fit, name] for fit in self.apparent] for name in self.models}
            resampled = "sample" in self.plan.plan.levels
            found["no_information"] = (
                rates if resampled else {name: each[0] for name, each in rates.items()}
            )
        return found


def numbered_levels(plan: BoundPlan) -> list[str]:
    """List the numbered levels of the fits."""
    return [name for name in plan.plan.levels if name not in POINT_LEVELS]


def is_fit_to_data(fit: Fit) -> bool:
    """Whether this is a fit to the data, neither an inner fit nor a fit to resampled data."""
    first = fit.evaluations[0]
    at = first.levels
    inner = at.get("sample", 0) != 0 or ("outer" in at and at["outer"] != at["fold"])
    return not inner and (first.count is None or fit.apparent)


def factorize_labels(labels: pd.Index, rows: IntArray) -> tuple[pd.Index, NDArray[Any]]:
    """Factorize a level of labels."""
    if labels.is_unique:
        return labels, rows
    codes, names = pd.factorize(labels)
    return names, codes[rows]


def factorize_range(values: IntArray) -> tuple[pd.Index, NDArray[Any]]:
    """Factorize a level of numbers that start near zero and have no gaps."""
    least = int(values.min())
    return pd.RangeIndex(least, int(values.max()) + 1), values - least


def asks_for_metrics(loss: Loss | Sequence[Loss]) -> bool:
    """Whether there are several losses, or one that is not a mean over points."""
    if not isinstance(loss, str):
        return isinstance(loss, Sequence)
    return find_loss(loss)[0] in METRICS and loss != "accuracy"


def split_losses(
    loss: Loss | Sequence[Loss], given: Mapping[str, Any]
) -> dict[str, tuple[Loss, dict[str, Any]]]:
    """Find the options of each loss, by its name; a single metric has all of them."""
    if not isinstance(loss, str):
        return split_options(loss if isinstance(loss, Sequence) else [loss], given)
    known, implied = find_loss(loss)
    return {loss: (known, {**given, **implied})}


def prediction_spec(
    loss: Loss | Sequence[Loss], given: Mapping[str, Any], truth: NDArray[Any], plan: BoundPlan
) -> ScoringSpec:
    """Find which predictions every fit must keep."""
    wanted = split_losses(loss, given).values()
    if "count" in plan.plan.levels:
        raise LogError(
            f"{plan.plan.name} draws bootstrap samples, whose methods average pointwise losses. "
            "Expected one pointwise loss, such as loss='zero_one'. For metrics use "
            "cvstats.plans.k_fold."
        )
    for one, own in wanted:
        metric = METRICS.get(one) if isinstance(one, str) else None
        if metric is None:
            checked_loss(one, LossOptions.of(own))
        elif "reference" in metric.takes or metric.assumes:
            what = "events of censored times" if metric.assumes else "predictions of a reference"
            raise LogError(
                f"loss={one!r} requires the {what}. Use another metric, or save the predictions "
                f"and use cvstats.losses(…, {'event' if metric.assumes else 'reference'}=…)."
            )
    responses = tuple(dict.fromkeys(response_of(one, own) for one, own in wanted))
    labels = {"predict_proba", "decision_function"} & set(responses) or any(
        isinstance(one, str)
        and (one == "zero_one" or (one in METRICS and METRICS[one].reads == "labels"))
        for one, _ in wanted
    )
    classes = tuple(np.unique(truth).tolist()) if labels else ()
    return ScoringSpec(next(iter(wanted))[0], responses[0], classes, LossOptions(), responses)


def metric_log(
    found: LossTable,
    data: Data,
    spec: ScoringSpec,
    loss: Loss | Sequence[Loss],
    given: Mapping[str, Any],
) -> pd.DataFrame:
    """Convert the predictions of all fits to a log of the requested losses."""
    index, order = found.index_and_order(data)
    values, truth = found.losses[order], data.truth[found.points[order]]
    table: dict[Hashable, Any] = {"truth": truth}
    columns: dict[str, dict[Hashable, Any]] = {}
    at = 0
    for model in found.models:
        for response, width in zip(spec.responses, spec.widths, strict=True):
            names = [f"{response} {at + j}" for j in range(width)]
            for j, name in enumerate(names):
                column = values[:, at + j]
                if response == "predict" and spec.classes:
                    column = np.array(spec.classes)[column.astype(np.int64)]
                table[name] = column
            columns.setdefault(response, {})[model] = names if width > 1 else names[0]
            at += width
    frame = pd.DataFrame(table, index=index)
    logs = {}
    for name, (one, own) in split_losses(loss, given).items():
        response = response_of(one, own)
        own |= options_of(one, response, spec, own)
        made: Any = losses(frame, "truth", columns[response], one, **own)
        logs[name] = made.rename_axis(columns="model")
    log: pd.DataFrame = logs[loss] if isinstance(loss, str) else join_metrics(logs)
    return log


def options_of(
    loss: Loss, response: str, spec: ScoringSpec, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the option that names the classes, or the positive one of two."""
    if response != "predict":
        several = len(spec.classes) > 2
        return {"classes": spec.classes} if several else {"positive": spec.classes[1]}
    metric = METRICS.get(loss) if isinstance(loss, str) and loss != "accuracy" else None
    binary = len(spec.classes) == 2 and own.get("average", "binary") == "binary"
    if metric is not None and metric.uses("average") and binary:
        return {"positive": spec.classes[1]}
    return {}
