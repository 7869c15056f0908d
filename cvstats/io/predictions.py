"""Tables of predictions or losses, a row for each evaluation of each model, to loss logs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.types import IntArray
from cvstats.errors import MOST, LogError, listed, place, spelled
from cvstats.io.factorize import (
    Coded,
    all_different,
    coded,
    combined,
    first_rows,
    indexed,
    numbered,
)
from cvstats.io.failures import raise_as_log_error
from cvstats.log.columns import no_levels
from cvstats.loss_functions import check_different, join_metrics, looks_at, losses
from cvstats.metrics import METRICS

TRUTH, PREDICTION, LOSS, MODEL = "y_true", "y_pred", "loss", "model"
OF_PROBABILITIES = ("log_loss", "brier")
"""The losses of probabilities."""
NOT_NUMBERS = {
    "complex": "complex numbers", "period": "periods", "interval": "intervals",
    **dict.fromkeys(("date", "datetime", "datetime64", "time"), "dates"),
    **dict.fromkeys(("timedelta", "timedelta64"), "durations"),
}  # fmt: skip
"""Kinds of values that pandas turns into numbers of another meaning, or cannot turn into any."""


@dataclass(frozen=True)
class PredictionTable:
    """The table that a reader makes of a file or an object.

    Parameters
    ----------
    table : DataFrame
        Columns: levels of a loss log; ``model``; ``loss``, or ``y_true`` with ``y_pred`` and the
        columns of ``probabilities``. Or, instead of ``model`` and ``loss`` or ``y_pred``, the
        columns of ``models``.
    probabilities : mapping
        For each class the column of its probability.
    attrs : dict
        Facts to keep with the log.
    lost : str
        What the tool did not write down, in a sentence; empty if nothing.
    note : str
        What was chosen without being asked for, in a sentence.
    called : str, optional
        The name of the one model of a table that names no model.
    kept : sequence of str
        Columns named much like a level that was not named, to stay as levels of their own names.
    takes : sequence of str, optional
        The options of the format, as far as advice may name them; otherwise any.
    twice : str, optional
        What to do where several files hold the same evaluations.
    separate : bool
        Whether the models were read from different objects, and so perhaps of different splits.
    models : mapping
        For each model the column of its losses or predictions, where each has its own.
    """

    table: pd.DataFrame
    probabilities: Mapping[Hashable, str] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    lost: str = ""
    note: str = ""
    called: str | None = None
    kept: Sequence[str] = ()
    takes: Sequence[str] | None = None
    twice: str = ""
    separate: bool = False
    models: Mapping[Hashable, str] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """The sentences that a reader of the log is warned with."""
        return [said for said in (self.lost, self.note) if said]

    def stacked(self) -> PredictionTable:
        """Put the models below each other, as rows that ``model`` names."""
        if not self.models:
            return self
        held = PREDICTION if TRUTH in self.table else LOSS
        rest = self.table.drop(columns=list(self.models.values()))
        parts = [
            rest.assign(model=str(model), **{held: self.table[name]})
            for model, name in self.models.items()
        ]
        return replace(self, table=pd.concat(parts, ignore_index=True), models={})


@dataclass(frozen=True)
class LossRequest:
    """The loss that a caller asks for, with its options, and the names for messages.

    Parameters
    ----------
    loss : str, callable or None
        As in `cvstats.losses`.
    truth : str
        The column of the truth, as the caller named it.
    quantile, threshold, positive, clip : optional
        As in `cvstats.losses`.
    """

    loss: Any = None
    truth: str = TRUTH
    quantile: float | None = None
    threshold: float | None = None
    positive: Hashable = None
    clip: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of `cvstats.losses`."""
        return {
            "quantile": self.quantile, "threshold": self.threshold, "positive": self.positive,
            "clip": self.clip,
        }  # fmt: skip


@dataclass(frozen=True)
class AlignedPredictions:
    """Evaluations as rows, models as columns; which columns hold what.

    The frame may share its memory with the table that was read.
    """

    frame: pd.DataFrame
    models: list[Hashable]
    responses: dict[Hashable, str]
    probabilities: dict[Hashable, list[str]]
    classes: list[Hashable]


def align(tidy: PredictionTable) -> AlignedPredictions:
    """Check a table and put its models side by side, aligned by their labels."""
    table = tidy.table.reset_index(drop=True)
    if not len(table):
        raise LogError("the table is empty. Expected at least one evaluation.")
    levels = [level for level in LEVELS if level in table.columns]
    if not levels:
        call = "read_log(path, fold='cv_split', point='id', loss=…)"
        raise no_levels(list(table.columns), call)
    parts = {level: coded(table[level], level) for level in levels}
    by_model = rows_by_model(table)
    rows = combined(list(parts.values()))
    first = first_rows(rows)
    if tidy.separate:
        refuse_other_splits(table, parts, by_model, rows)
    if len(first) < len(rows):
        refuse_twice(tidy, table, parts, by_model, rows)
    refuse_other_truths(table, parts)
    beside = {name: numbered(table[name]) for name in tidy.kept}
    beside = {name: it for name, it in beside.items() if (it[0] == it[0][first[rows]]).all()}
    index = indexed({**parts, **beside}, first)
    columns: dict[str, Any] = {}
    if TRUTH in table:
        columns[TRUTH] = spread(table[TRUTH], rows, len(index))
    held = PREDICTION if PREDICTION in table else LOSS
    every = dict.fromkeys(tidy.models, slice(None)) or by_model
    refuse_same_names([*columns, *(str(model) for model in every if model is not None)])
    responses: dict[Hashable, str] = {}
    probabilities: dict[Hashable, list[str]] = {}
    for model, mine in every.items():
        responses[model] = held if model is None else str(model)
        values = table[tidy.models.get(model, held)][mine]
        columns[responses[model]] = spread(values, rows[mine], len(index))
        if tidy.probabilities:
            probabilities[model] = []
            for column in tidy.probabilities.values():
                name = column if len(every) == 1 else f"{model}:{column}"
                probabilities[model].append(name)
                columns[name] = spread(table[column][mine], rows[mine], len(index))
    frame = pd.DataFrame(columns, index=index, copy=False)
    classes = like_truth(list(tidy.probabilities), table)
    return AlignedPredictions(frame, list(every), responses, probabilities, classes)


def refuse_same_names(names: list[str]) -> None:
    """Refuse models that have the same name, as text, or that of the truth."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise LogError(
            f"two of the columns of models and truth are called {twice!r}. Expected different "
            f"names, also as text. Rename one of them."
        )


def rows_by_model(table: pd.DataFrame) -> dict[Hashable, Any]:
    """Find the rows of each model, in the order of their appearance."""
    if MODEL not in table:
        return {None: slice(None)}
    codes, found = pd.factorize(table[MODEL])
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise LogError(f"the model of row {row:,} has no name. Expected a name in every row.")
    names = found.tolist()
    if len(names) == 1:
        return {names[0]: slice(None)}
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    return dict(zip(names, np.split(order, ends[:-1]), strict=True))


def refuse_other_splits(
    table: pd.DataFrame, parts: Mapping[str, Coded], models: Mapping[Hashable, Any], rows: IntArray
) -> None:
    """Refuse models of different splits of the same points: they share evaluations by chance."""
    if "point" not in parts or not {"fold", "repetition"} & set(parts):
        return
    split = "fold" if "fold" in parts else "repetition"
    places = np.arange(len(rows))
    keys = combined([part for name, part in parts.items() if name != split])
    (first, mine), *others = ((model, places[at]) for model, at in models.items())
    for other, its in others:
        gone, new = mine[~np.isin(rows[mine], rows[its])], its[~np.isin(rows[its], rows[mine])]
        moved = gone[np.isin(keys[gone], keys[new])]
        both = np.union1d(rows[mine], rows[its])
        gaps = split != "fold" and len(both) == len(parts[split][1]) * (keys.max() + 1)
        if len(moved) and not gaps:
            row = moved[0]
            there = new[keys[new] == keys[row]][0]
            names = [name for name in ("repetition", "fold") if name in parts]
            shown = [
                place({name: label_of(table, parts, name, at) for name in names})
                for at in (row, there)
            ]
            raise LogError(
                f"{first!r} and {other!r} have different splits: point "
                f"{spelled(label_of(table, parts, 'point', row))} is in {shown[0]} of one and in "
                f"{shown[1]} of the other. Expected the same splits for every model. Evaluate each "
                f"with cv=list(splitter.split(X, y))."
            )


def refuse_twice(
    tidy: PredictionTable, table: pd.DataFrame, parts: Mapping[str, Coded],
    models: Mapping[Hashable, Any], rows: IntArray,
) -> None:  # fmt: skip
    """Refuse an evaluation that a model has twice."""
    again = np.zeros(len(rows), dtype=bool)
    for mine in models.values():
        again[mine] = pd.Index(rows[mine]).duplicated()
    if again.any():
        names = [*parts, MODEL] if len(models) > 1 else list(parts)
        some = np.flatnonzero(again)[:MOST]
        shown = [place({name: label_of(table, parts, name, row) for name in names}) for row in some]
        others = [name for name in ("point", "repetition", MODEL) if name not in names]
        options = [f"{name}=" for name in others if tidy.takes is None or name in tidy.takes]
        advice = "Leave copies of rows out with drop_duplicates=True"
        if options:
            advice += f", or name the column in which they differ: {' or '.join(options)}"
        raise LogError(
            f"an evaluation occurs twice: {listed(shown, int(again.sum()))}. Expected each "
            f"({', '.join(names)}) once. {tidy.twice or advice}."
        )


def label_of(table: pd.DataFrame, parts: Mapping[str, Coded], name: str, row: int) -> Any:
    """Look up the label of a row: of a level, or the name of its model."""
    if name not in parts:
        return table[name].iloc[row]
    codes, names = parts[name]
    return names[codes[row]]


def refuse_other_truths(table: pd.DataFrame, parts: Mapping[str, Coded]) -> None:
    """Refuse a point whose truth is not the same everywhere: its rows are mislabelled."""
    if TRUTH not in table or "point" not in parts:
        return
    codes, labels = parts["point"]
    if all_different(codes, len(labels)):
        return
    who = [name for name in ("source", "point") if name in parts]
    group = combined([parts[name] for name in who])
    truth = table[TRUTH]
    plain = isinstance(truth.dtype, np.dtype) and truth.dtype.kind in "biuf"
    values = truth.to_numpy() if plain else pd.factorize(truth)[0]
    known = np.flatnonzero(truth.notna())
    group = group[known]
    first = np.zeros(len(table), dtype=np.int64)
    first[group[::-1]] = known[::-1]  # what is assigned last stays
    other = np.flatnonzero(values[known] != values[first[group]])
    if len(other):
        bad = np.unique(group[other])
        row = first[bad[0]]
        second = known[other[group[other] == bad[0]][0]]
        where = place({name: label_of(table, parts, name, row) for name in who})
        raise LogError(
            f"the truth of {where} is {spelled(truth.iloc[row])} in one row and "
            f"{spelled(truth.iloc[second])} in another (and {len(bad) - 1:,} more points). "
            f"Expected one truth for each point. "
            f"The labels of the points do not mean the same everywhere."
        )


def spread(values: pd.Series, rows: IntArray, size: int) -> Any:
    """Put the values of rows where they belong; where there is no row they are missing."""
    plain = values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array
    if len(plain) == size and (rows[1:] > rows[:-1]).all():
        return plain
    there = np.flatnonzero(values.notna())[::-1]
    at = np.full(size, -1, dtype=np.int64)
    at[rows[there]] = there  # in reverse, so that the first one stays
    if (at >= 0).all():
        return plain[at]
    return values.reset_index(drop=True).reindex(at).array  # no row has the number -1


def like_truth(classes: list[Hashable], table: pd.DataFrame) -> list[Hashable]:
    """Give classes that were read off column names the type that they have in the truth."""
    if not classes or TRUTH not in table:
        return classes
    known: dict[str, Hashable] = {}
    for label in pd.unique(table[TRUTH].dropna()):
        plain = label.item() if isinstance(label, np.generic) else label
        same = isinstance(plain, float) and plain == np.floor(plain)
        known[str(int(plain)) if same else str(plain)] = plain
    strange = [label for name, label in known.items() if name not in {str(c) for c in classes}]
    if strange:
        raise LogError(
            f"the truth holds {listed(map(repr, strange))}, for which there is no column of "
            f"probabilities. Expected one of {listed(map(repr, classes))}."
        )
    return [known.get(str(name), name) for name in classes]


# --- losses ---------------------------------------------------------------------------------------


def compute_log(
    parts: AlignedPredictions, request: LossRequest, called: str | None
) -> pd.Series | pd.DataFrame:
    """Take losses as they are, or compute those of predictions."""
    if TRUTH in parts.frame:
        return losses_of(parts, request, called)
    if any(value is not None for value in request.options.values()):
        raise LogError(
            "quantile=, threshold=, positive= and clip= are for predictions, and these are losses."
        )
    with raise_as_log_error("the column of losses"):
        columns = {}
        for model, name in parts.responses.items():
            refuse_not_numbers(parts.frame[name], called or name)
            values = pd.to_numeric(parts.frame[name]).astype(np.float64).copy()
            if np.isinf(values.to_numpy()).any():
                raise LogError(f"a loss of {name!r} is infinite. Expected finite numbers.")
            columns[model] = values
        if len(columns) == 1:
            ((model, only),) = columns.items()
            only.name = (called or LOSS) if model is None else model
            return only
        frame = pd.DataFrame(columns)
        frame.columns.name = "model"
        return frame


def losses_of(
    parts: AlignedPredictions, request: LossRequest, called: str | None
) -> pd.Series | pd.DataFrame:
    """Compute the losses of predictions."""
    loss, options = request.loss, request.options
    if loss is None:
        raise LogError(
            "there are predictions here, and no losses. Expected which loss to compute: "
            "loss='squared_error', 'zero_one', 'log_loss', …; or cvstats.read_predictions."
        )
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        return several_losses_of(parts, request, called)
    one = len(parts.models) == 1
    columns: dict[Hashable, Any] = dict(parts.responses)
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    labels = loss == "zero_one" or (metric is not None and metric.reads == "labels")
    of_scores = metric is not None and metric.reads == "scores"
    of_threshold = labels and request.threshold is not None
    if (loss in OF_PROBABILITIES or of_scores or of_threshold) and parts.probabilities:
        columns = dict(parts.probabilities)
        two = of_scores and len(parts.classes) == 2
        if request.positive is None and request.threshold is None and not two:
            options["classes"] = parts.classes
        else:
            last = parts.classes[-1] if two else None
            positive = last if request.positive is None else request.positive
            at = class_at(positive, parts.classes)
            columns = {model: names[at] for model, names in columns.items()}
            options["positive"] = parts.classes[at]
    if one:
        ((model, names),) = columns.items()
        columns = {(called or LOSS) if model is None else model: names}
    if callable(loss):
        made = losses(parts.frame, prediction=columns, loss=loss, **options)
    else:
        with raise_as_log_error("the predictions"):
            made = losses(parts.frame, prediction=columns, loss=loss, **options)
    if one:
        only: pd.Series = made.iloc[:, 0]
        only.attrs = made.attrs
        return only
    table: pd.DataFrame = made
    table.columns.name = "model"
    return table


def several_losses_of(
    parts: AlignedPredictions, request: LossRequest, called: str | None
) -> pd.Series | pd.DataFrame:
    """Compute several losses, by the level ``metric``; each takes the options it looks at."""
    options = {name: value for name, value in request.options.items() if value is not None}
    logs, unused = {}, dict(options)
    for name, loss in zip(check_different(request.loss), request.loss, strict=True):
        own = {
            option: value for option, value in options.items() if looks_at(loss, option, options)
        }
        unused = {option: value for option, value in unused.items() if option not in own}
        logs[name] = losses_of(parts, LossRequest(loss, request.truth, **own), called)
    if unused:
        raise LogError(f"none of loss={list(logs)!r} uses {next(iter(unused))}=. Leave it out.")
    joined: pd.Series | pd.DataFrame = join_metrics(logs)
    return joined


def class_at(positive: Hashable, classes: list[Hashable]) -> int:
    """Find the class of which a loss takes the probability."""
    names = [str(label) for label in classes]
    if positive is None:
        raise LogError(
            f"threshold= is for the probability of one class, and there are "
            f"{listed(map(repr, classes))}. Expected positive={classes[-1]!r} with it."
        )
    if str(positive) not in names:
        raise LogError(
            f"positive={positive!r} is not a class. Expected one of {listed(map(repr, classes))}."
        )
    return names.index(str(positive))


def refuse_not_numbers(values: pd.Series, name: object) -> None:
    """Refuse losses that pandas would turn into numbers of another meaning, such as dates."""
    kind = NOT_NUMBERS.get(pd.api.types.infer_dtype(values, skipna=True))
    if kind is None and values.dtype == object and any(isinstance(v, complex) for v in values):
        kind = "complex numbers"
    if kind is not None:
        raise LogError(
            f"the losses of {spelled(str(name))} are {kind}, the first is "
            f"{str(values.dropna().iloc[0])[:40]}. Expected numbers. Name another column: "
            f"metric='…'."
        )
    known = values.dropna()
    strange = known[pd.to_numeric(known, errors="coerce").isna()]
    if len(strange):
        raise LogError(
            f"the losses of {spelled(str(name))} are not numbers: {str(strange.iloc[0])[:40]!r}. "
            f"Expected numbers. Decimal commas of a CSV file are read with decimal=','."
        )
