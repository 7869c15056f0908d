"""Which column of a table or frame is which level.

Used by `cvstats.as_log`, `cvstats.losses`, `cvstats.read_log`, `cvstats.scan_parquet`,
`cvstats.scan_dask` and dask frames, so that a table means the same in every code path.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS, Design
from cvstats.core.folds import folds_are_guessed
from cvstats.errors import (
    LogError,
    describe_type,
    install_command,
    listed,
    nearest,
    plainly,
    read_names,
)

MODEL = "model"
"""The default name of the column that names the model."""


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table hold values, levels and the names of models.

    Parameters
    ----------
    values : tuple of column names
        Losses, or truth and predictions.
    levels : mapping of str to column name
        The column of each level of the loss log.
    model : column name, optional
        The column that names the model, if models are stacked in rows.
    single : bool
        Whether the values are one column rather than a list of columns.
    unused : tuple of column names
        Other columns whose name resembles a level that the table lacks.
    """

    values: tuple[Any, ...]
    levels: Mapping[str, Any]
    model: Any = None
    single: bool = True
    unused: tuple[Any, ...] = ()

    @property
    def names(self) -> list[Any]:
        """All columns that are read, without duplicates."""
        model = [] if self.model is None else [self.model]
        return list(dict.fromkeys([*self.levels.values(), *self.values, *model]))


def find_columns(
    known: Sequence[Hashable],
    values: Sequence[Hashable],
    named: Mapping[str, Hashable | None],
    model: Hashable | None = None,
    *,
    single: bool = True,
    scores: bool = False,
) -> TableColumns:
    """Find the levels and the model among the columns of a table.

    A level that the caller does not name is the column of the same name, unless that column is used
    otherwise; so is ``model`` if there is a ``single`` column of values. It contains losses, unless
    ``scores`` are converted.

    Raises
    ------
    LogError
        If a column is missing, occurs twice, or is a level and a value at once, or if the column of
        losses is named like a score.
    """
    taken = {*values, *named.values(), model}
    free = [name for name in known if name not in taken]
    if model is None and single:
        model = own_column(MODEL, free)
    levels = {
        level: own_column(level, free) if column is None else column
        for level, column in named.items()
    }
    levels = {level: column for level, column in levels.items() if column is not None}
    roles = [*values] if model is None else [*values, model]
    for column in (*roles, *levels.values()):
        if column not in known:
            used = {*levels.values(), model}
            used.update(sounding_like(known, used, levels))  # perhaps levels
            rest = [name for name in known if name not in used]
            advice = nearest(column, known)
            if column in values and rest and (column == "loss" or not advice):  # by default
                advice += f" {'If not, name' if advice else 'Name'} all columns of losses: "
                advice += f"loss={rest!r}."
            raise LogError(
                f"no column {column!r}. Expected one of the table's columns: "
                f"{listed(map(repr, known))}.{advice}"
            )
        if list(known).count(column) > 1:
            raise LogError(f"several columns are called {column!r}. Expected one. Rename them.")
    both = [column for column in roles if column in levels.values() or roles.count(column) > 1]
    if both:
        raise LogError(
            f"{both[0]!r} is named both as a level and as the loss or the model. Expected "
            "different columns."
        )
    if model is not None and not single:
        kept = [*dict.fromkeys(levels.values()), model]
        raise LogError(
            "model= and several columns in loss= both name models. Expected one. If the columns "
            f"are metrics, stack them: frame.melt({kept!r}, {[*values]!r}, 'metric', 'loss')."
        )
    if single and not scores and len(values) == 1:
        refuse_scores(values)
    return TableColumns(tuple(values), levels, model, single)


TIMES = frozenset(["fit_time", "score_time"])
"""Columns of every result of scikit-learn's ``cross_validate``."""
SCORES = {
    "acc", "acc-norm", "accuracy", "auc", "auprc", "auroc", "average-precision", "bleu", "correct",
    "correctness", "dice", "exact-match", "f1", "hit", "hit-rate", "hits", "iou", "is-correct",
    "mcc", "miou", "mrr", "ndcg", "pass", "passed", "precision", "r2", "recall", "roc-auc", "score",
    "scores", "sensitivity", "specificity", "success", "success-rate", "win-rate",
}  # fmt: skip
"""Names of scores for which larger is better."""
AVERAGES = ("score", "macro", "micro", "weighted")
"""Words that follow the name of a score."""


def refuse_scores(columns: Sequence[Hashable], *, of_splits: bool = False) -> None:
    """Refuse a column of losses that is named like a score, perhaps one per split."""
    name = next(filter(names_a_score, columns), None)
    if name is not None:
        or_splits = ", or for one score per split format='scores', higher_is_better=True"
        raise LogError(
            f"{name!r} is named like a score, of which larger values are better. Expected losses. "
            f"Convert scores: cvstats.read_log(…, loss={name!r}, higher_is_better=True)"
            f"{or_splits * of_splits}; if smaller values are better, pass higher_is_better=False."
        )


def names_a_score(name: object) -> bool:
    """Whether a column is named like a score, such as ``test_accuracy`` or ``ndcg@10``."""
    words = plainly(name).partition("@")[0] if isinstance(name, str) else ""
    (lead, _, last), (first, _, rest) = words.rpartition("-"), words.partition("-")
    with_prefix = lead in ("balanced", "mean", "test", "val") and last in SCORES
    return words in SCORES or with_prefix or (first in SCORES and rest in AVERAGES)


def own_column(level: str, free: Sequence[Hashable]) -> Hashable | None:
    """Find the column with the name of a level, or the only one that differs in case alone."""
    alike = [name for name in free if isinstance(name, str) and name.strip().lower() == level]
    if level in alike:
        return level
    return alike[0] if len(alike) == 1 else None


def no_levels(known: Sequence[Hashable], call: str) -> LogError:
    """Make the error for a table without a level, with the ``call`` to type."""
    return LogError(
        f"no level of a loss log was found among the columns {listed(map(repr, known))}. Expected "
        f"one or more of {', '.join(LEVELS)}. Name the columns, as in {call}."
    )


def index_to_columns(frame: pd.DataFrame, names: Collection[Hashable]) -> pd.DataFrame:
    """Turn some levels of an index into columns."""
    found = [name for name in frame.index.names if name is not None and name in names]
    for name in found:
        if found.count(name) > 1:
            raise LogError(f"two index levels are called {name!r}. Expected different names.")
        if name in frame.columns:
            raise LogError(
                f"{name!r} is a column and an index level. Expected only one of the two. Drop "
                f"the level, as in frame.reset_index({name!r}, drop=True), or rename it."
            )
    return frame.reset_index(found) if found else frame


def unnamed_labels(
    table: pd.DataFrame, columns: TableColumns, inside: Collection[str] = ()
) -> list[str]:
    """Find columns of varying labels whose name resembles a level that the table lacks.

    ``inside`` are the levels of its index.

    They stay in the log as index levels, and results have a caution about them: without them the
    log would silently mean something else.
    """
    taken = {*columns.values, *columns.levels.values(), columns.model}
    return [
        name
        for name in sounding_like(table.columns, taken, [*columns.levels, *inside])
        if pd.api.types.infer_dtype(table[name]) in LABELS and table[name].nunique() > 1
    ]


def set_levels(predictions: Any, values: Sequence[Hashable]) -> Any:
    """Turn columns named as levels into index levels, and such variables into coordinates.

    ``values`` are the columns of truth and predictions. A level of the index stays as it is.
    """
    if isinstance(predictions, xr.Dataset):
        return predictions.set_coords(
            [name for name in predictions.data_vars if name in LEVELS and name not in values]
        )
    frame = predictions
    refuse_stacked(frame, values)
    inside = [name for name in frame.index.names if name in LEVELS]
    lacking = dict.fromkeys(level for level in LEVELS if level not in inside)
    known = list(frame.columns)
    taken = [name for name in dict.fromkeys(values) if name in known]
    found = find_columns(known, taken, lacking, single=False)
    put = [*found.levels, *unnamed_labels(frame, found, inside)]
    if not put:
        return frame
    frame = frame.rename(columns={column: level for level, column in found.levels.items()})
    return frame.set_index(put, append=not has_row_numbers(frame))


def has_row_numbers(frame: pd.DataFrame) -> bool:
    """Whether the index has no name and holds numbers of rows, perhaps of some rows only."""
    return frame.index.nlevels == 1 and frame.index.name is None and frame.index.dtype.kind in "iu"


NAMES_OF_MODELS = ("model_name", "model_id", "learner", "learner_id", "algorithm", "estimator")
"""Columns that name models if their labels occur equally often."""


def refuse_stacked(frame: pd.DataFrame, values: Sequence[Hashable]) -> None:
    """Refuse a table in which models are stacked in rows."""
    free = [name for name in frame.columns if name not in values]
    model = own_column(MODEL, free)
    if model is None:
        for name in filter(None, (own_column(name, free) for name in NAMES_OF_MODELS)):
            counts = frame[name].value_counts()
            if counts.nunique() == 1 and counts.iloc[0] > 1:
                model = name
                break
    if model is None or (number := frame[model].nunique()) < 2:
        return
    way = (
        f"Read such a table with cvstats.read_log(frame, model={model!r}, point=…, truth=…, "
        "prediction=…, loss=…)."
    )
    if len(values) > 2:  # several columns of each model, such as the probabilities of classes
        truth, first, *_ = values
        index = [*(name for name in frame.columns if name in LEVELS), truth]
        pair = (first, frame[model].iloc[0])
        way = (
            f"Make them: wide = frame.pivot(index={index!r}, columns={model!r}, "
            f"values={[*values[1:]]!r}).reset_index({truth!r}). Their names are pairs: "
            f"prediction={{{pair[1]!r}: [{pair!r}, …], …}} and truth={(truth, '')!r}."
        )
    raise LogError(
        f"the column {model!r} contains {number:,} labels, so models are stacked in rows. Expected "
        f"a column of predictions for each model. {way}"
    )


def refuse_table(frame: pd.DataFrame) -> None:
    """Refuse a table of predictions, or of losses and labels, whose rows are only numbered."""
    if not has_row_numbers(frame):
        return
    predicted = [name for name in frame.columns if name in PREDICTED]
    if predicted:
        raise not_losses(predicted[0])
    labels = [name for name in frame.columns if frame[name].dtype.kind not in "fb"]
    for name in sounding_like(labels, (), ()) if labels else ():
        level = suggest_level(name)
        raise LogError(
            f"{name!r} is a column of this frame, and named like the level {level!r}. Expected "
            f"levels in the index and a column of losses for each model. Type cvstats.as_log("
            f"frame, loss=[…], {level}={name!r}); if it is a model, rename it."
        )


TRUTH = "y_true"
"""The default column of true values; no model has this name."""

TRUTHS = (TRUTH, "truth")
"""The names of true values that `cvstats.read_log` finds."""

PREDICTED = (*TRUTHS, "y_pred", "y_prob", "prediction")
"""Columns of tables of predictions, as this package calls them."""


def not_losses(name: str, what: str = "a column of this frame") -> LogError:
    """Make the error for a table of predictions, which has a column of true values."""
    return LogError(
        f"{name!r} is {what}, so it contains predictions and not only losses. Compute them: "
        f"cvstats.losses(frame, truth={name!r}, prediction=[…], loss='squared_error')."
    )


# --- frames of other libraries --------------------------------------------------------------------


def is_arrow(frame: object) -> bool:
    """Whether this is a frame of another library that exports the Arrow C stream."""
    return (
        hasattr(type(frame), "__arrow_c_stream__")  # an array would search its coordinates
        and not isinstance(frame, (pd.DataFrame, pd.Series))
        and (hasattr(frame, "columns") or hasattr(frame, "schema"))
    )


def as_container(losses: Any, also: Iterable[object] = ()) -> Any:
    """Convert a frame of another library to a log; columns named as levels become the index.

    ``also`` are further levels, which may be columns, too, as is one of names of metrics.
    """
    if isinstance(losses, (pd.Series, pd.DataFrame)) or not is_arrow(losses):
        return losses
    frame = set_levels(from_arrow(losses), [])
    names = dict.fromkeys(name for name in also if isinstance(name, str))
    if "metric" in frame.columns and frame["metric"].dtype.kind not in "iufb":
        names["metric"] = None
    further = [name for name in names if name in frame.columns]
    return frame.set_index(further, append=not has_row_numbers(frame)) if further else frame


def from_arrow(frame: Any) -> pd.DataFrame:
    """Convert a frame of another library to pandas: decimals to floats, dates to datetimes.

    Raises
    ------
    LogError
        If the stream does not have named columns.
    ImportError
        If pyarrow is not installed (extra ``io``).
    """
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        kind = type(frame).__module__.partition(".")[0]
        raise ImportError(
            f"a frame of {kind} needs pyarrow. Install it: {install_command('io')}"
        ) from None
    try:
        table = arrow.table(frame)
        for at, field in enumerate(table.schema):
            if arrow.types.is_decimal(field.type):
                table = table.set_column(at, field.name, table.column(at).cast(arrow.float64()))
        found: pd.DataFrame = table.to_pandas(date_as_object=False)
    except (arrow.ArrowException, ValueError, TypeError) as error:
        raise LogError(
            f"{describe_type(frame)} of {type(frame).__module__.partition('.')[0]} cannot be "
            f"read: {' '.join(str(error).split())[:200]}. Expected a frame of named columns."
        ) from error
    return found


# --- which level was meant ------------------------------------------------------------------------


ALONE = dict.fromkeys(("id", "idx", "index", "sample-id", "obs-id"), "point")
"""Names that match only as a whole; next to other words they are ambiguous."""

LABELS = ("boolean", "categorical", "integer", "string")
"""Kinds of values that can be labels, as pandas calls them."""

BESIDES = {
    "code", "cv", "data", "id", "idx", "index", "key", "label", "name", "no", "nr", "num", "number",
}  # fmt: skip

NEAR = 0.86
"""Minimum similarity of a misspelled name: ``sorce`` is ``source``, ``folder`` is not ``fold``."""


def suggest_level(name: str) -> str | None:
    """Guess which level a name stands for; None if it resembles none."""
    whole = plainly(re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name))
    if whole in ALONE:
        return ALONE[whole]
    word = "".join(part for part in whole.split("-") if part not in BESIDES)
    known = read_names("level")
    for spelling in (word, word.removesuffix("s")):
        if spelling in known:
            return known[spelling]
    near = get_close_matches(word, {*known.values()}, n=1, cutoff=NEAR)
    return near[0] if near else None


def sounding_like(
    columns: Iterable[Hashable], taken: Collection[Hashable], levels: Collection[str]
) -> list[str]:
    """Find columns whose name resembles a level that was not named.

    ``taken`` are columns that are already used, ``levels`` the levels that the table has.
    """
    every = list(columns)
    return [
        name
        for name in every
        if isinstance(name, str)
        and name not in taken
        and suggest_level(name) not in (None, "point", *levels)
        and every.count(name) == 1
    ]


def unrecognized_levels(
    design: Design, used: Collection[str | None] = (), *, crossed: bool
) -> dict[str, str]:
    """Find the levels that no method uses, and the missing level that each may stand for.

    ``used`` are levels that were requested by name. Labels with one evaluation each, such as row
    numbers, name points: they are not guessed to be sources or, unless the name says so, folds. In
    a crossed log, sources do not serve as folds, so a level with another name need not be the
    folds.
    """
    found: dict[str, str] = {}
    for name in design.levels:
        if name in LEVELS or name in used:
            continue
        level = suggest_level(name)
        named = level is not None and level not in design.levels
        if not named and (crossed or not folds_are_guessed(design)):
            continue
        if not design.has(name):
            continue
        rows = design.splits().rows  # of each repetition, which may number its rows anew
        of_points = design.number(name) in (rows.sum(), rows.sum() / len(rows))
        if not (of_points and (level == "source" or not named)):
            found[name] = str(level) if named else "fold"
    return found


def suggest_renaming(design: Design, name: str, level: str) -> str:
    """Return the code that renames a level."""
    if design.of_array:
        return f"log.rename({{{name!r}: {level!r}}})"
    return f"log.rename_axis(index={{{name!r}: {level!r}}})"
