"""The table that a reader returns, the options that it gets, and what readers have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.orientation import TURNED, facts_of_score, turn
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import (
    MOST,
    LogError,
    checked_choice,
    checked_flag,
    describe_type,
    is_several,
    listed,
    nearest,
    plainly,
    spelled,
)
from cvstats.io.text import TextOptions, as_numbers
from cvstats.log.tables import TRUTH
from cvstats.loss_functions.losses import OF_COLUMNS, LossKeywords, find_loss, is_loss
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS
from cvstats.plans import folds_in_turn

PREDICTION, LOSS, MODEL = "y_pred", "loss", "model"
METRIC = "metric"
"""The column of a table that names the metric of each row."""
TASK = "task"
"""The attr for the task of a log, which becomes its source next to logs of other tasks."""
NOT_NUMBERS = {
    "complex": "complex numbers", "period": "periods", "interval": "intervals",
    **dict.fromkeys(("date", "datetime", "datetime64", "time"), "dates"),
    **dict.fromkeys(("timedelta", "timedelta64"), "durations"),
}  # fmt: skip
"""Kinds of values that pandas cannot convert to numbers, or not with the same meaning."""


@dataclass(frozen=True)
class PredictionTable:
    """The table that a reader returns.

    Parameters
    ----------
    table : DataFrame
        Columns: levels of a loss log; ``model``; ``loss``, or ``y_true`` with ``y_pred`` and the
        columns of ``probabilities``. Or, instead of ``model`` and ``loss`` or ``y_pred``, the
        columns of ``models``.
    probabilities : mapping
        The column of the probability of each class.
    attrs : dict
        Facts to keep with the log.
    lost : str
        A sentence on what the tool did not store; empty if nothing is missing.
    note : str
        A sentence on what was chosen automatically.
    called : str, optional
        The name of the only model of a table without model names.
    kept : sequence of str
        Columns whose name resembles a missing level, to be kept as levels.
    by : sequence of str
        Columns that were requested as further levels.
    takes : sequence of str, optional
        The options of the format that advice may mention; otherwise any.
    twice : str, optional
        Advice if several files have the same evaluations.
    separate : bool
        Whether the models were read from different objects, so that splits may differ.
    models : mapping
        The column of losses or predictions of each model, if each has its own.
    further : sequence of str
        Columns that a loss needs besides truth and predictions, such as events.
    """

    table: pd.DataFrame
    probabilities: Mapping[Hashable, str] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    lost: str = ""
    note: str = ""
    called: str | None = None
    kept: Sequence[str] = ()
    by: Sequence[str] = ()
    takes: Sequence[str] | None = None
    twice: str = ""
    separate: bool = False
    models: Mapping[Hashable, str] = field(default_factory=dict)
    further: Sequence[str] = ()

    @property
    def warnings(self) -> list[str]:
        """The texts of warnings."""
        return [said for said in (self.lost, self.note) if said]

    def by_metric(self) -> dict[str | None, PredictionTable]:
        """Split the table by metric; under None if rows name no metric."""
        if METRIC not in self.table:
            return {None: self}
        rest = self.table.drop(columns=METRIC)
        labels = self.table[METRIC]
        return {str(name): replace(self, table=rest[labels == name]) for name in labels.unique()}

    def stacked(self) -> PredictionTable:
        """Stack the models in rows, named by the column ``model``."""
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
class ReadOptions:
    """The options of a call that readers use.

    Parameters
    ----------
    tool, container : str, optional
        The tool that wrote the object, and the type of a file, if ``format=`` names them.
    loss : str or callable, optional
        The loss to compute from predictions, or the name of a column of losses.
    truth, prediction, model : optional
        The columns of the truth, of the predictions, and of the models' names.
    levels : dict
        The column of each level of a loss log.
    by : str or sequence, optional
        Columns that become further levels, such as a segment.
    data : dict
        ``X``, ``y``, ``groups`` and ``cv``, for tools that do not store them.
    filter, metric, higher_is_better, missing : optional
        Which of several filters and scores to use (for all tasks or for each), whether higher is
        better, and how to treat failed samples.
    text : TextOptions
        The format of numbers and text in a CSV file.
    drop_duplicates : bool
        Whether to drop duplicate rows.
    loss_options : dict
        The options of `cvstats.losses` that were given.
    """

    tool: str | None = None
    container: str | None = field(default=None, compare=False)
    loss: str | Callable[[Any, Any], Any] | None = None
    truth: str | None = None
    prediction: Any = None
    model: str | None = None
    levels: dict[str, str] = field(default_factory=dict)
    by: Any = None
    data: dict[str, Any] = field(default_factory=dict, compare=False)
    filter: str | Mapping[str, str] | None = None
    metric: str | Mapping[str, str] | None = None
    higher_is_better: bool | None = None
    missing: str = "raise"
    text: TextOptions = TextOptions()
    drop_duplicates: bool = False
    loss_options: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> ReadOptions:
        """Collect the options of a call from its keyword arguments."""
        same = {each.name: call[each.name] for each in fields(cls) if each.name in call}
        given = {name: value for name, value in call.items() if value is not None}
        checked_choice("missing", call.get("missing", "raise"), ("raise", "drop"))
        checked_flag("drop_duplicates", call.get("drop_duplicates", False))
        return cls(
            **same, levels={name: given[name] for name in LEVELS if name in given},
            data={name: call[name] for name in ("X", "y", "groups", "cv")},
            text=TextOptions(**{each.name: call.get(each.name) for each in fields(TextOptions)}),
            loss_options={
                name: given[name]
                for name in ("positive", "folds", "weight", *LossKeywords.__annotations__)
                if name in given
            },
        )  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse several columns where one is expected, and names that are not text."""
        if not all(isinstance(name, str) for name in (self.groups if self.by else ())):
            shown = f"Invalid by={self.by!r}"
            shown = shown if len(shown) < 80 else f"by= is {describe_type(self.by)}"
            raise LogError(f"{shown}. Expected the names of one or more columns.")
        one = ("loss", "metric", "truth", "model")
        for name, value in ({name: getattr(self, name) for name in one} | self.levels).items():
            if name == "metric" and isinstance(value, Mapping):
                continue  # a score for each task
            if name == "loss" and is_several(value) and all(map(is_loss, value)):
                continue  # several losses of predictions
            if is_several(value) and len(value) == 1:
                raise LogError(
                    f"{name}={value!r} is a list. Expected the name of one column: "
                    f"{name}={value[0]!r}."
                )
            if isinstance(value, (np.ndarray, pd.Series, pd.Index)):
                array = {"truth": "y", "source": "groups"}.get(name)
                way = (
                    f" To read arrays of predictions, pass {array}= and cv=: "
                    f"read_log(predictions, y=y, cv=cv, loss=…)." if array else ""
                )  # fmt: skip
                raise LogError(
                    f"{name}= is {describe_type(value)} of {len(value):,} values. Expected the "
                    f"name of a column, such as {name}={name!r}.{way}"
                )
            if is_several(value) or not isinstance(value, Hashable):
                way = ""
                if name in ("loss", "metric") and isinstance(value, Iterable):
                    listed_names = [*map(str, value)]
                    way = (
                        " If each model has a column of losses, call cvstats.as_log(frame, "
                        f"loss={listed_names!r}, …); if it has one of predictions, pass "
                        "prediction=[…], and one loss."
                    )
                    if self.model is not None:
                        way = (
                            " If the columns are metrics, stack them, and pass loss='loss': "
                            f"table.melt(…, {listed_names!r}, 'metric', 'loss')."
                        )
                raise LogError(f"{name}={value!r} names several columns. Expected one.{way}")

    @property
    def groups(self) -> list[str]:
        """The columns that become further levels."""
        return list(self.by) if is_several(self.by) else [] if self.by is None else [self.by]

    @property
    def further(self) -> list[str]:
        """The columns that are named by options of the loss."""
        return [str(self.loss_options[name]) for name in OF_COLUMNS if name in self.loss_options]

    @property
    def metric_name(self) -> str | None:
        """The column of scores that was named."""
        return self.metric if isinstance(self.metric, str) else None

    @property
    def wanted(self) -> str | None:
        """The score that was named, by either option."""
        if self.metric_name is not None:
            return self.metric_name
        return self.loss if isinstance(self.loss, str) else None

    @property
    def wanted_by_task(self) -> str | Mapping[str, str] | None:
        """The score that was named for all tasks, or for each."""
        return self.metric if isinstance(self.metric, Mapping) else self.wanted

    @property
    def losses(self) -> list[Any]:
        """The losses to compute."""
        given: Any = self.loss
        return list(given) if is_several(given) else [given]

    @property
    def predictions(self) -> list[str]:
        """The columns of predictions that were named."""
        if self.prediction is None:
            return []
        if isinstance(self.prediction, Mapping):
            raise LogError(
                "prediction= is a mapping. Expected the name of a column, or a list of them, one "
                "for each model. If a model has several columns, such as the probabilities of "
                "classes, use cvstats.losses(frame, prediction={'model': […]}, classes=[…], …), "
                "for a frame with levels as its index."
            )
        names = self.prediction if is_several(self.prediction) else [self.prediction]
        return [str(name) for name in names]

    def given(self) -> list[str]:
        """List the options that were given, by their names in the call."""
        singles = ("truth", "prediction", "model", "filter", "metric", "higher_is_better", "by")
        named = [name for name in singles if getattr(self, name) is not None]
        data = [name for name, value in self.data.items() if value is not None]
        return [*named, *self.levels, *data]


# --- columns --------------------------------------------------------------------------------------


def require_columns(table: pd.DataFrame, columns: Iterable[str], tool: str) -> None:
    """Refuse a table without columns that the tool always writes."""
    lost = [column for column in columns if column not in table.columns]
    if lost:
        raise LogError(
            f"this is not a {tool}: it has no column {listed(map(repr, lost))}. Found "
            f"{listed(map(repr, table.columns))}.{nearest(lost[0], table.columns)}"
        )


def require_named(table: pd.DataFrame, option: str, columns: Iterable[Any]) -> None:
    """Refuse names of columns that the table does not have."""
    lost = [column for column in columns if column not in table.columns]
    if lost:
        raise LogError(
            f"the table has no column {listed(map(repr, lost))}, which {option}= names. Found "
            f"{listed(map(repr, table.columns))}.{nearest(lost[0], table.columns)}"
        )


def add_named(out: pd.DataFrame, table: pd.DataFrame, options: ReadOptions) -> None:
    """Add the columns that ``model=`` and ``source=`` name."""
    for name, column in (("model", options.model), ("source", options.levels.get("source"))):
        if column is not None:
            require_named(table, name, [column])
            out[name] = table[column]


def metric_column(table: pd.DataFrame, taken: Collection[Hashable]) -> str | None:
    """Find the column that names the metric of each row, if there are several metrics."""
    return next(
        (
            name
            for name in table.columns
            if isinstance(name, str) and plainly(name) in ("metric", "measure")
            and name not in taken and not pd.api.types.is_numeric_dtype(table[name])
            and table[name].nunique() > 1 and table[name].notna().all()
        ),
        None,
    )  # fmt: skip


# --- splits ---------------------------------------------------------------------------------------


FOLD = re.compile(r"(?:fold|slice)_?\s?(\d{1,9})", re.IGNORECASE)
REPEAT = re.compile(r"(?:rep|repeat)_?\s?(\d{1,9})", re.IGNORECASE)
SPLIT = re.compile(r"(?:resample|bootstrap|training|split|iter)_?\s?(\d{1,9})", re.IGNORECASE)
ALONE = ("validation", "train/test split")
"""rsample's name of a single split."""


def parse_split(label: Hashable) -> tuple[int | None, int | None, int | None]:
    """Parse one name as (repetition, fold, split), such as ``Fold01.Rep2`` or ``Repeat1/Fold3``.

    A split is a fold or a repetition: ``Resample01`` may be either.
    """
    found: dict[str, int] = {}
    if isinstance(label, (int, np.integer)) or (isinstance(label, float) and label.is_integer()):
        return None, None, int(label)
    text = str(label)
    for part in re.split(r"[./]|(?<=\d)\s", text[:100]):
        for kind, pattern in (("fold", FOLD), ("repetition", REPEAT), ("split", SPLIT)):
            match = pattern.fullmatch(part.strip())
            if match and kind not in found:
                found[kind] = int(match[1])
                break
        else:
            found = {}
            break
    if not found or ("split" in found and len(found) > 1):
        raise LogError(
            f"the name of a split is {text[:60]!r}. Expected one such as 'Fold1', 'Fold01.Rep2', "
            f"'Repeat1/Fold3', 'Resample01' or a number."
        )
    return found.get("repetition"), found.get("fold"), found.get("split")


def are_repeated_folds(names: Iterable[Hashable]) -> bool:
    """Whether all names contain a repetition and a fold, and the repetitions differ."""
    repetitions = set()
    for name in names:
        try:
            repetition, fold, _ = parse_split(name)
        except LogError:
            return False
        if repetition is None or fold is None:
            return False
        repetitions.add(repetition)
    return len(repetitions) > 1


def add_split_levels(
    table: pd.DataFrame, labels: pd.Series, per: Iterable[str] = ()
) -> pd.DataFrame:
    """Add the columns ``repetition`` and ``fold`` to a table, from the names of splits.

    ``per`` names columns, such as ``model``, within which a point is in a fold only once.
    """
    if labels.isna().any():
        raise LogError(
            f"row {int(np.flatnonzero(labels.isna())[0]):,} names no split. Expected the "
            f"name of a split in every row."
        )
    codes, names = pd.factorize(labels)
    if len(names) == 1 and str(names[0]) in ALONE:
        return table
    parts = [parse_split(name) for name in names]
    kinds = {tuple(part is not None for part in parts) for parts in parts}
    if len(kinds) > 1:
        raise LogError(
            f"the names of the splits are of different kinds: {str(names[0])[:40]!r} and others. "
            f"Expected one scheme."
        )
    ((repeated, in_folds, numbered),) = kinds
    repetition, fold, split = (np.array(numbers)[codes] for numbers in zip(*parts, strict=True))
    if numbered:
        return add_split_numbers(table, split, per)
    if repeated:
        table = table.assign(repetition=repetition)
    return table.assign(fold=fold) if in_folds else table


def add_split_numbers(
    table: pd.DataFrame, split: IntArray, per: Iterable[str] = ()
) -> pd.DataFrame:
    """Add numbered splits to a table as folds, as repeated folds or as random splits.

    Folds contain each point once. If every point is in r of the m splits, and once in each run of m
    / r splits, they are r repetitions of folds in this order. Otherwise they are random splits,
    each a repetition.
    """
    numbers, at = np.unique(split, return_inverse=True)
    if len(numbers) == 1:
        return table
    who = [name for name in (*per, "source", "point") if name in table]
    if "point" not in who:
        return table.assign(repetition=split)
    by = table.groupby(who, sort=False, observed=True).ngroup().to_numpy()
    k = folds_in_turn(by, at)
    if k is None:
        return table.assign(repetition=split)
    if k == len(numbers):
        return table.assign(fold=split)
    return table.assign(repetition=at // k + 1, fold=at % k + 1)


# --- numbers --------------------------------------------------------------------------------------


def negate_scores(tidy: PredictionTable, higher_is_better: bool | None) -> PredictionTable:
    """Convert scores to losses: s between 0 and 1 to 1 - s, any other s to -s."""
    if higher_is_better is None:
        return tidy
    if TRUTH in tidy.table:
        raise LogError(
            "higher_is_better= applies to tables of scores, but here losses are computed from "
            "predictions. Omit it."
        )
    name = tidy.attrs.get("loss", "score")
    held = tidy.models or {tidy.attrs.get("loss", LOSS): LOSS}
    for label, column in held.items():
        refuse_not_numbers(tidy.table[column], label)
    if not higher_is_better:
        return tidy
    values = tidy.table[[*held.values()]].apply(pd.to_numeric).astype(float)
    orientation = find_orientation(values.to_numpy())
    loss = facts_of_score(name, orientation)["loss"]
    return replace(
        tidy,
        table=tidy.table.assign(**turn(values, orientation)),
        attrs={**tidy.attrs, "loss": loss},
        called=loss if tidy.called == name else tidy.called,
    )


def refuse_one_split(number: int) -> None:
    """Refuse the scores of one split, which do not show how they vary."""
    if number == 1:
        raise LogError(
            "there are scores of only one split, and one score has no standard error. Expected at "
            "least two splits. Evaluate the models again and keep the predictions: "
            "cvstats.evaluate does, and cross_validate(…, return_estimator=True, "
            "return_indices=True)."
        )


def find_orientation(scores: FloatArray) -> str:
    """Choose how scores become losses: s between 0 and 1 to 1 - s, any other s to -s."""
    share = ((scores >= 0) & (scores <= 1) | np.isnan(scores)).all()
    return TURNED[0] if share else TURNED[1]


def refuse_not_numbers(values: pd.Series, name: object) -> None:
    """Refuse losses that pandas would convert to numbers with another meaning, such as dates."""
    if getattr(values.dtype, "kind", "O") in "iuf":
        return
    kind = NOT_NUMBERS.get(pd.api.types.infer_dtype(values, skipna=True))
    if kind is None and values.dtype == object and any(isinstance(v, complex) for v in values):
        kind = "complex numbers"
    if kind is not None:
        raise LogError(
            f"the losses of {spelled(str(name))} are {kind}; the first is "
            f"{str(values.dropna().iloc[0])[:40]}. Expected numbers. Name another column: "
            f"metric='…'."
        )
    known = values.dropna()
    strange = known[pd.to_numeric(known, errors="coerce").isna()]
    if len(strange):
        first = str(strange.iloc[0])[:40]
        way = "Decimal commas of a CSV file are read with decimal=','."
        if first.rstrip().endswith("%"):
            way = "Percentages are read if every number of the column has the sign %."
        raise LogError(
            f"the losses of {spelled(str(name))} are not numbers: {first!r}. Expected numbers. "
            f"{way}"
        )


def refuse_strays(read: PredictionTable, options: ReadOptions) -> None:
    """Refuse numeric columns with other values; the error lists all of these."""
    names = [LOSS, *read.models.values()]
    if any(map(reads_numbers, options.losses)):
        names += [TRUTH, PREDICTION]
    elif TRUTH in read.table:
        names = []
    found: list[str] = []
    strays: dict[Hashable, None] = {}
    ways: dict[str, None] = {}
    for name in dict.fromkeys(name for name in names if name in read.table):
        column = read.table[name]
        numbers, with_comma = numbers_in(column, options.text)
        if numbers is None:
            continue  # labels
        if with_comma:
            ways["decimal=','"] = None
            if column[numbers.notna()].str.contains(".", regex=False).any():
                ways["thousands='.'"] = None
        wrong = column[column.notna() & numbers.isna()].value_counts(sort=False)
        strays |= dict.fromkeys(wrong.index)
        values = listed([f"{str(value)[:30]!r} ({n:,})" for value, n in wrong.items()])
        called = name.partition(":")[2] or (read.called if name != TRUTH else None) or name
        found.append(f"{called!r} has {values or repr(column.dropna().iloc[0])}")
    if not found:
        return
    if strays:
        ways[f"na_values={list(strays)[:MOST]!r}"] = None
    way = f"Pass {', '.join(ways)} for a CSV file, or correct the values."
    if not ways:  # text in a table that is not a CSV file
        way = (
            "Convert the text: pandas.to_numeric(column); or, for percentages, "
            "column.str.rstrip('%').astype(float) / 100."
        )
    raise LogError(
        f"numeric columns contain non-numeric values (with counts): {'; '.join(found)}. Expected "
        f"numbers. {way}"
    )


def reads_numbers(loss: object) -> bool:
    """Whether a loss is computed from numbers, not from labels or by a function."""
    found = find_loss(loss)[0]
    known = (LOSSES.get(found) or METRICS.get(found)) if isinstance(found, str) else None
    return known is not None and known.reads == "numbers"


def numbers_in(column: pd.Series, text: TextOptions) -> tuple[pd.Series | None, bool]:
    """Convert text if half are numbers; also return whether more are with a decimal comma."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return None, False
    plain = as_numbers(column, text)
    comma = as_numbers(column, replace(text, decimal=",", thousands="."))
    if comma is not None and (plain is None or comma.count() > plain.count()):
        return comma, True
    return plain, False
