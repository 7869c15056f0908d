"""Conversion of tidy tables (one row per evaluation of each model) to loss logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.core.types import IntArray
from cvstats.errors import (
    MOST,
    LogError,
    checked_flag,
    choice,
    describe_type,
    is_several,
    listed,
    nearest,
    place,
    plainly,
    spelled,
)
from cvstats.io.paths import raise_as_log_error
from cvstats.io.text import TextOptions, as_numbers
from cvstats.large import frames
from cvstats.log.read import is_dask_frame
from cvstats.log.tables import (
    TableColumns,
    find_columns,
    first_missing,
    from_arrow,
    index_to_columns,
    is_arrow,
    no_levels,
    unnamed_labels,
)
from cvstats.loss_functions import (
    OF_COLUMNS,
    LossKeywords,
    check_different,
    find_loss,
    is_loss,
    is_name,
    join_metrics,
    looks_at,
    losses,
    single,
    with_implied,
)
from cvstats.metrics import METRICS
from cvstats.plans.plan import folds_in_turn


def as_log(
    frame: pd.DataFrame,
    *,
    loss: str | Sequence[str] = "loss",
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    count: str | None = None,
) -> pd.Series | pd.DataFrame:
    """Make a loss log from a tidy table with other column names.

    Parameters
    ----------
    frame : DataFrame
        One row per evaluation (of each model). A dask DataFrame stays lazy.
    loss : str or sequence of str, optional
        The column of losses; a list if each model has its own column. Name the columns of truth
        and predictions here to keep them for `cvstats.losses`.
    model : str, optional
        The column that names the model, if models are stacked in rows; by default ``model``, if it
        exists.
    sample, outer, repetition, fold, source, point, count : str, optional
        The column (or index level) of each level; by default the one with the level's name.

    Returns
    -------
    Series or DataFrame
        The losses with the levels as index; one column per model if there are several. A dask
        DataFrame keeps its levels as columns, renamed to the standard names, because it cannot have
        several index levels; models stacked in rows stay stacked.

    Raises
    ------
    LogError
        If a column is missing, no level is found, or a model has an evaluation twice.

    Notes
    -----
    A column whose name resembles a missing level, such as ``subject`` or ``cv_fold``, is kept as an
    index level, and results have a caution about it.

    The order of the rows is kept if each model has a column. The input is not modified. A model
    without some evaluation gets NaN there, which methods refuse by default.

    References
    ----------
    Wickham (2014), Tidy data, Journal of Statistical Software 59(10),
    doi:10.18637/jss.v059.i10.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> table = pd.DataFrame({"cv_split": [0, 0, 1, 1], "id": list("abcd"), "se": [1.0, 2, 3, 4]})
    >>> cvstats.as_log(table, loss="se", fold="cv_split", point="id")
    fold  point
    0     a        1.0
          b        2.0
    1     c        3.0
          d        4.0
    Name: se, dtype: float64
    """
    named = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point, "count": count,
    }  # fmt: skip
    if is_dask_frame(frame):
        log: pd.DataFrame = frames.rename_levels(frame, loss, model, named)
        return log
    if is_arrow(frame):
        frame = from_arrow(frame)
    if not isinstance(frame, pd.DataFrame):
        raise not_a_table(frame)
    alone = single(loss)
    losses: list[Any] = [loss] if alone else list(loss)
    asked = [*losses, *(name for name in (model, *named.values()) if name is not None)]
    if not losses or not all(map(is_name, asked)):
        strays = [repr(name) for name in asked if not is_name(name)]
        raise LogError(f"{(strays or ['loss='])[0]} names no column. Expected a column's name.")
    frame = index_to_columns(frame, [*LEVELS, *asked])
    if "loss" in losses and "loss" not in frame.columns:
        refuse_predictions(frame)
    columns = find_columns(list(frame.columns), losses, named, model, single=alone)
    measure = metric_column(frame, columns.names)
    if not columns.levels:
        raise no_levels(list(frame.columns), "as_log(frame, fold='cv_split', point='id')")
    kept = [name for name in unnamed_labels(frame, columns) if is_shared(frame, name, columns)]
    values = losses if columns.model is None else [*losses, columns.model]
    try:
        put = [*([] if measure is None else [measure]), *columns.levels.values(), *kept]
        indexed = frame.set_index(put)[values]
    except TypeError:
        raise unhashable({to: frame[name] for to, name in columns.levels.items()}) from None
    indexed.index.names = [*([] if measure is None else ["metric"]), *columns.levels, *kept]
    made: pd.Series | pd.DataFrame
    if columns.model is not None:
        made = unstack_models(indexed, losses[0], columns.model)
    else:
        made = indexed[losses[0]] if alone else indexed
    if measure is not None:
        names = [str(name) for name in frame[measure].unique()]
        metrics = {name: {"loss": name} for name in names}
        made.attrs |= {"loss": ", ".join(names), "metric": names, "metrics": metrics}
    return made


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


def not_a_table(given: object) -> LogError:
    """Make the error for an object that is not a table, with a call that converts it."""
    name, once = type(given).__name__, "is a log once they have the names of levels:"
    if isinstance(given, (xr.DataArray, xr.Dataset)):
        dim = next((dim for dim in given.dims if dim not in LEVELS), "cv_split")
        way = f"With dimensions or coordinates it {once} array.rename({{{dim!r}: 'fold'}})."
    elif isinstance(given, pd.Series):
        way = f"With index levels it {once} series.rename_axis(index={{'cv_split': 'fold'}})."
    elif isinstance(given, (str, PurePath)):
        way = "Read a file with cvstats.read_log(path)."
    else:
        way = "Make one: cvstats.as_log(pandas.DataFrame({'fold': …, 'point': …, 'loss': …}))."
    return LogError(
        f"a {name} has no named columns. Expected a DataFrame with a row for each evaluation. {way}"
    )


def refuse_predictions(frame: pd.DataFrame) -> None:
    """Refuse a table of predictions, with the call that computes their losses."""
    if "y_true" in frame.columns:
        raise LogError(
            f"no column 'loss' among {listed(map(repr, frame.columns))}. Expected losses. "
            "Compute losses from predictions with cvstats.read_log(frame, truth=…, "
            "prediction=…, loss=…, fold=…, point=…)."
        )


def is_shared(frame: pd.DataFrame, name: str, columns: TableColumns) -> bool:
    """Whether a column has the same label for all models of an evaluation."""
    if columns.model is None:
        return True
    each = frame.groupby(list(columns.levels.values()), dropna=False, observed=True)[name]
    return not (each.nunique(dropna=False) > 1).any()


def unstack_models(indexed: pd.DataFrame, loss: Hashable, model: Hashable) -> pd.DataFrame:
    """Make one column per model, in order of appearance."""
    row = first_missing(indexed[model])
    if row is not None:
        raise LogError(
            f"the model of row {row:,} has no name (NaN). Expected a name in each row of {model!r}."
        )
    order = pd.Index(list(dict.fromkeys(indexed[model])), name="model")
    wide = indexed.set_index(model, append=True)[loss]
    twice = wide.index[wide.index.duplicated()]
    if len(twice):
        names = [str(name) for name in wide.index.names]
        shown = [place(dict(zip(names, labels, strict=True))) for labels in twice[:MOST]]
        raise LogError(
            f"a model has the same evaluation twice: {listed(shown, len(twice))}. Expected each "
            f"({', '.join(names)}) once. Name the column in which they differ: repetition= for "
            "another split of the same points; or, if point= names a group of several points, "
            "source= for the group and point= for the points in it."
        )
    return wide.unstack(model)[list(order)].set_axis(order, axis=1)


TRUTH, PREDICTION, LOSS, MODEL = "y_true", "y_pred", "loss", "model"
METRIC = "metric"
"""The column of a table that names the metric of each row."""
TASK = "task"
"""The attr for the task of a log, which becomes its source next to logs of other tasks."""
OF_NUMBERS = ("squared_error", "absolute_error", "percentage_error", "pinball", "huber")
"""Pointwise losses of numbers."""
OF_PROBABILITIES = ("log_loss", "brier")
"""Losses of probabilities."""
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
class AlignedPredictions:
    """Evaluations as rows, models as columns, and the roles of columns.

    The frame may share its memory with the table that was read.
    """

    frame: pd.DataFrame
    models: list[Hashable]
    responses: dict[Hashable, str]
    probabilities: dict[Hashable, list[str]]
    classes: list[Hashable]


def align(tidy: PredictionTable) -> AlignedPredictions:
    """Check a table and align its models as columns, by label."""
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
    refuse_other_truths(table, parts, tidy.further)
    beside = {name: numbered(table[name]) for name in tidy.kept}
    beside = {name: it for name, it in beside.items() if (it[0] == it[0][first[rows]]).all()}
    index = indexed({**parts, **beside}, first)
    columns: dict[str, Any] = {}
    if TRUTH in table:
        columns[TRUTH] = spread(table[TRUTH], rows, len(index))
    for name in tidy.further:
        columns[name] = spread(table[name], rows, len(index))
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
    """Refuse models whose names, as text, are equal, or equal to the truth's."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise LogError(
            f"two of the columns of models and truth are called {twice!r}. Expected names that "
            "differ as text. Rename one of them."
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
    """Refuse models evaluated on different splits of the same points."""
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
    """Refuse duplicate evaluations of a model."""
    again = np.zeros(len(rows), dtype=bool)
    for mine in models.values():
        again[mine] = pd.Index(rows[mine]).duplicated()
    if again.any():
        names = [*parts, MODEL] if len(models) > 1 else list(parts)
        some = np.flatnonzero(again)[:MOST]
        shown = [place({name: label_of(table, parts, name, row) for name in names}) for row in some]
        others = [name for name in ("point", "repetition", MODEL) if name not in names]
        options = [f"{name}=" for name in others if tidy.takes is None or name in tidy.takes]
        advice = "Drop duplicate rows with drop_duplicates=True"
        if options:
            advice += f", or name the column in which they differ: {' or '.join(options)}"
        if "point" in names and (tidy.takes is None or "point" in tidy.takes):
            advice += (
                ". If they are lead times or other conditions, create the log from a frame with "
                "such a level, cvstats.losses(frame.set_index(['point', 'lead_time'])), and pass "
                "by='lead_time'"
            )
        raise LogError(
            f"an evaluation occurs twice: {listed(shown, int(again.sum()))}. Expected each "
            f"({', '.join(names)}) once. {tidy.twice or advice}."
        )


def label_of(table: pd.DataFrame, parts: Mapping[str, Coded], name: str, row: int) -> Any:
    """Look up the label of a row in a level, or the name of its model."""
    if name not in parts:
        return table[name].iloc[row]
    codes, names = parts[name]
    return names[codes[row]]


def refuse_other_truths(
    table: pd.DataFrame, parts: Mapping[str, Coded], further: Sequence[str]
) -> None:
    """Refuse a point whose truth differs between rows: its rows are mislabeled."""
    if TRUTH not in table or "point" not in parts:
        return
    codes, labels = parts["point"]
    if all_different(codes, len(labels)):
        return
    who = [name for name in ("source", "point") if name in parts]
    every = combined([parts[name] for name in who])
    for column in (TRUTH, *further):
        refuse_other_values(table, parts, who, every, column)


def refuse_other_values(
    table: pd.DataFrame, parts: Mapping[str, Coded], who: Sequence[str], group: IntArray,
    column: str,
) -> None:  # fmt: skip
    """Refuse a point whose truth, or another column, differs between its rows."""
    truth, what = table[column], "truth" if column == TRUTH else repr(column)
    plain = isinstance(truth.dtype, np.dtype) and truth.dtype.kind in "biuf"
    values = truth.to_numpy() if plain else pd.factorize(truth)[0]
    known = np.flatnonzero(truth.notna())
    group = group[known]
    first = np.zeros(len(table), dtype=np.int64)
    first[group[::-1]] = known[::-1]  # the last assignment wins
    other = np.flatnonzero(values[known] != values[first[group]])
    if len(other):
        bad = np.unique(group[other])
        row = first[bad[0]]
        second = known[other[group[other] == bad[0]][0]]
        where = place({name: label_of(table, parts, name, row) for name in who})
        raise LogError(
            f"the {what} of {where} is {spelled(truth.iloc[row])} in one row but "
            f"{spelled(truth.iloc[second])} in another (and {len(bad) - 1:,} more points). "
            f"Expected one {what} for each point. The labels of points must have the same "
            "meaning in all rows."
        )


def spread(values: pd.Series, rows: IntArray, size: int) -> Any:
    """Scatter the values of rows to their positions; positions without a row are missing."""
    plain = values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array
    if len(plain) == size and (rows[1:] > rows[:-1]).all():
        return plain
    there = np.flatnonzero(values.notna())[::-1]
    at = np.full(size, -1, dtype=np.int64)
    at[rows[there]] = there  # in reverse, so that the first one wins
    if (at >= 0).all():
        return plain[at]
    return values.reset_index(drop=True).reindex(at).array  # no row has the number -1


def like_truth(classes: list[Hashable], table: pd.DataFrame) -> list[Hashable]:
    """Convert classes from column names to the type of the truth."""
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
            f"the truth contains {listed(map(repr, strange))}, but there is no such column of "
            f"probabilities. Expected one of {listed(map(repr, classes))}."
        )
    return [known.get(str(name), name) for name in classes]


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
    share = bool(((values >= 0) & (values <= 1) | values.isna()).all(axis=None))
    loss = f"1 - {name}" if share else f"-{name}"
    return replace(
        tidy,
        table=tidy.table.assign(**(1 - values if share else 0 - values)),
        attrs={**tidy.attrs, "loss": loss},
        called=loss if tidy.called == name else tidy.called,
    )


# --- losses ---------------------------------------------------------------------------------------


def compute_log(
    parts: AlignedPredictions, loss: Any, options: Mapping[str, Any], called: str | None
) -> pd.Series | pd.DataFrame:
    """Return losses unchanged, or compute them from predictions."""
    if TRUTH in parts.frame:
        return losses_of(parts, loss, options, called)
    if options:
        raise LogError(
            f"{next(iter(options))}= applies to predictions, but these are losses. Omit it."
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
    parts: AlignedPredictions, loss: Any, options: Mapping[str, Any], called: str | None
) -> pd.Series | pd.DataFrame:
    """Compute the losses of predictions."""
    if loss is None:
        raise LogError(
            "this contains predictions, not losses. Specify the loss to compute: "
            "loss='squared_error', 'zero_one', 'log_loss', …; or cvstats.read_predictions."
        )
    if isinstance(loss, Sequence) and not isinstance(loss, str):
        return several_losses_of(parts, loss, options, called)
    loss, options = with_implied(loss, options)
    given_positive, threshold = options.get("positive"), options.get("threshold")
    one = len(parts.models) == 1
    columns: dict[Hashable, Any] = dict(parts.responses)
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    labels = loss == "zero_one" or (metric is not None and metric.reads == "labels")
    of_scores = metric is not None and metric.reads == "scores"
    of_threshold = labels and threshold is not None
    if (loss in OF_PROBABILITIES or of_scores or of_threshold) and parts.probabilities:
        columns = dict(parts.probabilities)
        two = of_scores and len(parts.classes) == 2
        if given_positive is None and threshold is None and not two:
            options["classes"] = parts.classes
        else:
            last = parts.classes[-1] if two else None
            positive = last if given_positive is None else given_positive
            at = class_at(positive, parts.classes)
            columns = {model: names[at] for model, names in columns.items()}
            options["positive"] = parts.classes[at]
    if one:
        ((model, names),) = columns.items()
        columns = {(called or LOSS) if model is None else model: names}
    made: Any
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
    parts: AlignedPredictions, wanted: Any, options: Mapping[str, Any], called: str | None
) -> pd.Series | pd.DataFrame:
    """Compute several losses, in the level ``metric``; each gets the options that it uses."""
    logs, unused = {}, dict(options)
    for name, loss in zip(check_different(wanted), wanted, strict=True):
        known, implied = find_loss(loss)
        own = {
            option: value for option, value in options.items() if looks_at(known, option, options)
        }
        unused = {option: value for option, value in unused.items() if option not in own}
        logs[name] = losses_of(parts, known, {**own, **implied}, called)
    if unused:
        raise LogError(f"none of loss={list(logs)!r} uses {next(iter(unused))}=. Omit it.")
    joined: pd.Series | pd.DataFrame = join_metrics(logs)
    return joined


def class_at(positive: Hashable, classes: list[Hashable]) -> int:
    """Find the class whose probability a loss uses."""
    names = [str(label) for label in classes]
    if positive is None:
        raise LogError(
            "threshold= applies to the probability of one class, but there are "
            f"{listed(map(repr, classes))}. Pass positive={classes[-1]!r} with it."
        )
    if str(positive) not in names:
        raise LogError(
            f"positive={positive!r} is not a class. Expected one of {listed(map(repr, classes))}."
        )
    return names.index(str(positive))


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
        raise LogError(
            f"the losses of {spelled(str(name))} are not numbers: {str(strange.iloc[0])[:40]!r}. "
            f"Expected numbers. Decimal commas of a CSV file are read with decimal=','."
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
    raise LogError(
        f"numeric columns contain non-numeric values (with counts): {'; '.join(found)}. Expected "
        f"numbers. Pass {', '.join(ways)} for a CSV file, or correct the values."
    )


def reads_numbers(loss: object) -> bool:
    """Whether a loss is computed from numbers, not from labels or by a function."""
    found = find_loss(loss)[0]
    metric = METRICS.get(found) if isinstance(found, str) else None
    return found in OF_NUMBERS or (metric is not None and metric.reads == "numbers")


def numbers_in(column: pd.Series, text: TextOptions) -> tuple[pd.Series | None, bool]:
    """Convert text if half are numbers; also return whether more are with a decimal comma."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return None, False
    plain = as_numbers(column, text)
    comma = as_numbers(column, replace(text, decimal=",", thousands="."))
    if comma is not None and (plain is None or comma.count() > plain.count()):
        return comma, True
    return plain, False


Coded = tuple[IntArray, pd.Index]
"""A code for each row, and the label of each code."""

MOST_KEYS = FAR = 1 << 62


def coded(labels: pd.Series, level: str) -> Coded:
    """Factorize and check the labels of a level; 1.0, 2.0, … become 1, 2, …."""
    try:
        codes, names = numbered(labels)
    except TypeError:
        raise unhashable({level: labels}) from None
    gone = np.flatnonzero(codes < 0)
    if len(gone):
        more = len(gone) - 1
        rest = f" (and {more:,} more evaluation{'s' if more > 1 else ''})" if more else ""
        raise LogError(
            f"row {gone[0]:,} has no {level}{rest}. Expected a label in every row. Drop rows "
            "without labels, as in frame.dropna(subset=[…])."
        )
    return codes, whole(names, level)


def unhashable(labels: Mapping[str, pd.Series]) -> LogError:
    """Create the error for lists and similar objects as labels of a level."""
    level, odd = next(
        (level, label)
        for level, column in labels.items()
        for label in column
        if not pd.api.types.is_hashable(label)
    )
    return LogError(f"a label of {level!r} is {describe_type(odd)}. Expected names or numbers.")


def numbered(values: Any) -> Coded:
    """Factorize labels in sorted order, with -1 for missing ones."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        every = pd.Categorical.from_codes(range(len(dtype.categories)), dtype=dtype)
        return pd.Categorical(values).codes, pd.CategoricalIndex(every)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(values):
        whole_numbers = np.asarray(values)
        least, most = int(whole_numbers.min()), int(whole_numbers.max())
        if most - least < 4 * len(values) and least > -FAR and most < FAR:
            return close(whole_numbers, least, most)
    found = pd.Categorical(values)
    return found.codes, found.categories


def close(values: IntArray, least: int, most: int) -> Coded:
    """Factorize integers in a narrow range, without a lookup table."""
    small = np.dtype(np.int32 if most - least < 1 << 31 else np.int64)
    at = np.subtract(
        values, least, dtype=np.int64, casting="unsafe", out=np.empty(len(values), small)
    )
    seen = np.zeros(most - least + 1, dtype=bool)
    seen[at] = True
    if not seen.all():
        place = np.cumsum(seen, dtype=at.dtype)
        place -= 1
        at = place[at]
        return at, pd.Index((np.flatnonzero(seen) + least).astype(values.dtype))
    if values.dtype == np.int64:
        return at, pd.RangeIndex(least, most + 1)  # uses no memory
    return at, pd.Index(np.arange(least, most + 1).astype(values.dtype))


def whole(names: pd.Index, level: str) -> pd.Index:
    """Convert whole numbers to integers, and refuse infinite ones."""
    if names.dtype.kind != "f":
        return names
    values = names.to_numpy()
    if np.isinf(values).any():
        raise LogError(f"a label of {level!r} is infinite. Expected names or numbers.")
    exact = (np.abs(values) < 2**53).all() and (values == np.floor(values)).all()
    return names.astype(np.int64) if exact else names


def combined(parts: Sequence[Coded]) -> IntArray:
    """Assign numbers to combinations of labels, in order of appearance."""
    if any(all_different(codes, len(names)) for codes, names in parts):
        return np.arange(len(parts[0][0]))
    key, size = parts[0][0].astype(np.int64), len(parts[0][1])
    for codes, names in parts[1:]:
        if size * len(names) > MOST_KEYS:
            key, known = pd.factorize(key)
            size = len(known)
        key *= len(names)
        key += codes
        size *= len(names)
    ordered = np.sort(key)  # much faster than hashing
    if (ordered[1:] != ordered[:-1]).all():
        return np.arange(len(key))
    rows: IntArray = pd.factorize(key)[0]
    return rows


def all_different(codes: IntArray, size: int) -> bool:
    """Whether no code of 0, 1, …, size - 1 occurs twice."""
    if size < len(codes):
        return False
    seen = np.zeros(size, dtype=bool)
    seen[codes] = True
    return bool(np.count_nonzero(seen) == len(codes))


def first_rows(group: IntArray) -> IntArray:
    """Find the first row of each group, numbered in order of appearance."""
    if group[-1] == len(group) - 1:
        return group  # each occurs once
    first = np.empty(int(group.max()) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)  # the last assignment wins
    return first


def indexed(parts: dict[str, Coded], rows: IntArray) -> pd.Index:
    """Make the index of some rows."""
    if len(parts) == 1:
        ((level, (codes, names)),) = parts.items()
        return names.take(codes[rows]).set_names(level)
    return index_of([(codes[rows], names) for codes, names in parts.values()], list(parts))


def index_of(parts: Sequence[Coded], names: Sequence[Any]) -> pd.MultiIndex:
    """Make an index of numbered labels."""
    levels: list[Any] = [labels for _, labels in parts]
    codes: list[Any] = [numbers for numbers, _ in parts]
    return pd.MultiIndex(levels=levels, codes=codes, names=list(names), verify_integrity=False)


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


def add_split_levels(
    table: pd.DataFrame, labels: pd.Series, per: Iterable[str] = ()
) -> pd.DataFrame:
    """Add the columns ``repetition`` and ``fold`` to a table, from the names of splits.

    ``per`` names columns, such as ``model``, within which a point is in a fold only once.
    """
    if labels.isna().any():
        raise LogError(
            f"row {int(np.flatnonzero(labels.isna())[0]):,} names no split. Expected one in "
            f"every row."
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
    repetition, fold, split = (
        np.array([-1 if part[i] is None else part[i] for part in parts])[codes] for i in range(3)
    )
    if split[0] >= 0:
        return add_split_numbers(table, split, per)
    if repetition[0] >= 0:
        table = table.assign(repetition=repetition)
    return table.assign(fold=fold) if fold[0] >= 0 else table


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


@dataclass(frozen=True)
class ReadOptions:
    """The options of a call that readers use.

    Parameters
    ----------
    loss : str or callable, optional
        The loss to compute from predictions, or the name of a column of losses.
    truth, prediction, model : optional
        The columns of the truth, of the predictions, and of the models' names.
    levels : dict
        The column of each level of a loss log.
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

    loss: str | Callable[[Any, Any], Any] | None = None
    truth: str | None = None
    prediction: Any = None
    model: str | None = None
    levels: dict[str, str] = field(default_factory=dict)
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
        if call.get("missing", "raise") not in ("raise", "drop"):
            raise choice("missing", call["missing"], ("raise", "drop"))
        checked_flag("drop_duplicates", call.get("drop_duplicates", False))
        return cls(
            **same, levels={name: given[name] for name in LEVELS if name in given},
            data={name: call[name] for name in ("X", "y", "groups", "cv")},
            text=TextOptions(**{each.name: call.get(each.name) for each in fields(TextOptions)}),
            loss_options={
                name: given[name]
                for name in ("positive", "folds", *LossKeywords.__annotations__) if name in given
            },
        )  # fmt: skip

    def __post_init__(self) -> None:
        """Refuse several columns where one is expected."""
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
                way = (
                    " If each model has a column of losses, call cvstats.as_log(frame, "
                    f"loss={list(map(str, value))!r}, …); if it has one of predictions, pass "
                    "prediction=[…], and one loss."
                    if name in ("loss", "metric") and isinstance(value, Iterable) else ""
                )  # fmt: skip
                raise LogError(f"{name}={value!r} names several columns. Expected one.{way}")

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
        names = self.prediction if is_several(self.prediction) else [self.prediction]
        return [str(name) for name in names]

    def given(self) -> list[str]:
        """List the options that were given, by their names in the call."""
        singles = ("truth", "prediction", "model", "filter", "metric", "higher_is_better")
        named = [name for name in singles if getattr(self, name) is not None]
        data = [name for name, value in self.data.items() if value is not None]
        return [*named, *self.levels, *data]


def require_columns(table: pd.DataFrame, columns: Iterable[str], tool: str) -> None:
    """Refuse a table without columns that the tool always writes, or that the caller named."""
    lost = [column for column in columns if column not in table.columns]
    if lost:
        raise LogError(
            f"this is not a {tool}: it has no column {listed(map(repr, lost))}. Found "
            f"{listed(map(repr, table.columns))}.{nearest(lost[0], table.columns)}"
        )


def add_named(out: pd.DataFrame, table: pd.DataFrame, options: ReadOptions) -> None:
    """Add the columns that ``model=`` and ``source=`` name."""
    for name, column in (("model", options.model), ("source", options.levels.get("source"))):
        if column is not None:
            require_columns(table, [column], f"table with this {name}=")
            out[name] = table[column]


def add_probabilities(
    out: pd.DataFrame, table: pd.DataFrame, columns: Mapping[Hashable, Any]
) -> dict[Hashable, str]:
    """Add the columns of the probabilities of classes; return their new names."""
    found = {label: f"prob_{label}" for label in columns}
    for label, column in columns.items():
        out[found[label]] = table[column]
    return found


def prefixed(table: pd.DataFrame, prefix: str) -> dict[Hashable, str]:
    """Find the classes whose probabilities are in columns with a prefix."""
    names = [str(name) for name in table.columns if str(name).startswith(prefix)]
    return {name.removeprefix(prefix): name for name in names}


def likeliest(table: pd.DataFrame, columns: Mapping[Hashable, Any]) -> pd.Series:
    """Name the class with the highest probability in each row."""
    numbers = table[list(columns.values())].to_numpy(dtype=float)
    return pd.Series(pd.Index(list(columns))[numbers.argmax(axis=1)], index=table.index)
