"""Tables of mlr3, caret, tidymodels, Nixtla, AutoGluon and OpenML, and scores of splits."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.orientation import facts_of_score
from cvstats.errors import LogError, count_others, listed, place, spelled
from cvstats.io.table import (
    LOSS,
    MODEL,
    PredictionTable,
    ReadOptions,
    add_named,
    add_split_levels,
    add_split_numbers,
    refuse_one_split,
    require_columns,
    require_named,
)
from cvstats.io.tools.columns import flatten_index, level_columns, model_columns

# --- predicted classes ----------------------------------------------------------------------------


def add_probabilities(
    out: pd.DataFrame, table: pd.DataFrame, columns: Mapping[Hashable, Any]
) -> dict[Hashable, str]:
    """Add the columns of the probabilities of classes; return their new names."""
    found = {label: f"prob_{label}" for label in columns}
    for label, column in columns.items():
        out[found[label]] = table[column]
    return found


def find_prefixed(table: pd.DataFrame, prefix: str) -> dict[Hashable, str]:
    """Find the classes whose probabilities are in columns with a prefix."""
    names = [str(name) for name in table.columns if str(name).startswith(prefix)]
    return {name.removeprefix(prefix): name for name in names}


def most_likely(table: pd.DataFrame, columns: Mapping[Hashable, Any]) -> pd.Series:
    """Name the class with the highest probability in each row."""
    numbers = table[list(columns.values())].to_numpy(dtype=float)
    return pd.Series(pd.Index(list(columns))[numbers.argmax(axis=1)], index=table.index)


# --- mlr3 -----------------------------------------------------------------------------------------


OF_MLR3 = (
    "row_ids", "row_id", "iteration", "truth", "response", "se", "weights", "task", "task_id",
    "learner", "learner_id", "resampling", "resampling_id", "nr", "uhash", "prediction", "set",
)  # fmt: skip


def mlr3(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read losses computed by mlr3, or predictions."""
    point = "row_ids" if "row_ids" in table else "row_id"
    require_columns(table, [point], "table of mlr3")
    if "iteration" not in table:
        raise LogError(
            "this table of mlr3 has no column 'iteration', and therefore no folds, like that of "
            "as.data.table(rr$prediction()). Expected rr$obs_loss(measure), or the predictions "
            "of rr$predictions() with their iteration: data.table::rbindlist(lapply("
            "rr$predictions(), as.data.table), idcol = 'iteration')."
        )
    for task in ("task_id", "task"):
        if task in table and table[task].nunique() > 1:
            names = pd.unique(table[task]).tolist()
            raise LogError(
                f"the table contains several tasks: {listed(map(repr, names))}. Expected one "
                f"data set per log. Keep the rows of one: table[table[{task!r}] == {names[0]!r}]."
            )
    out = pd.DataFrame({"point": table[point]})
    model = next((name for name in ("learner_id", "learner") if name in table), None)
    if model is not None:
        out["model"] = table[model]
    add_named(out, table, options)
    measure = measure_of(table, options)
    found: dict[Hashable, str] = {}
    if measure is not None:
        out["loss"] = table[measure]
    else:
        require_columns(table, ["truth", "response"], "table of predictions of mlr3")
        out["y_true"], out["y_pred"] = table["truth"], table["response"]
        found = add_probabilities(out, table, find_prefixed(table, "prob."))
    iteration = pd.to_numeric(table["iteration"])
    if iteration.isna().any() or (iteration % 1 != 0).any():
        raise LogError("an iteration is not a whole number. Expected 1, 2, 3, …")
    out = add_split_numbers(out, iteration.to_numpy().astype("int64"), ["model"])
    return PredictionTable(out, found, {} if measure is None else {"loss": measure})


def measure_of(table: pd.DataFrame, options: ReadOptions) -> str | None:
    """Find the column of losses, if this is a table of losses."""
    used = (*OF_MLR3, options.model, *options.levels.values())
    measures = [
        str(name)
        for name in table.columns
        if name not in used and not str(name).startswith(("prob.", "q0", "q1", "quantile"))
    ]
    if options.wanted in measures:
        measure = options.wanted
    elif options.metric is None and options.loss is not None:
        return None
    elif len(measures) == 1 and options.metric is None:
        measure = measures[0]
    elif not measures and options.metric is None:
        return None
    else:
        raise LogError(
            f"the measures of this table are {listed(map(repr, measures)) or 'unknown'}. "
            f"Expected the name of one: metric={(measures or ['classif.ce'])[0]!r}."
        )
    if table[measure].isna().all():
        raise LogError(
            f"{measure!r} is missing in every row: mlr3 has no pointwise loss for it. "
            f"Expected a measure such as 'classif.ce' or 'regr.mse'."
        )
    return measure


# --- caret ----------------------------------------------------------------------------------------


OF_CARET = ("pred", "obs", "rowIndex", "Resample", "weights", "dataType", "object")


def caret(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read held-out predictions; each set of tuning parameters is a separate model."""
    require_columns(table, ["pred", "obs", "rowIndex"], "train$pred of caret")
    labels = {str(label) for label in pd.unique(table["obs"].dropna())}
    predicted = {str(label) for label in pd.unique(table["pred"].dropna())}
    text = not pd.api.types.is_numeric_dtype(table["obs"])
    chances: dict[Hashable, str] = {
        str(name): str(name)
        for name in table.columns
        if text and name not in OF_CARET and (str(name) in labels or str(name) in predicted)
    }
    classes = list(chances)
    if not labels <= set(classes):
        chances = {}
    out = pd.DataFrame(
        {"point": table["rowIndex"], "y_true": table["obs"], "y_pred": table["pred"]}
    )
    found = add_probabilities(out, table, chances)
    named = (options.model, options.levels.get("source"))
    tuned = [
        str(name)
        for name in table.columns
        if name not in (*OF_CARET, *classes, *named) and table[name].nunique() > 1
    ]
    if tuned:
        out["model"] = [
            ", ".join(f"{name}={value}" for name, value in zip(tuned, row, strict=True))
            for row in table[tuned].itertuples(index=False, name=None)
        ]
    add_named(out, table, options)
    if "Resample" in table:
        first = str(table["Resample"].iloc[0]) if len(table) else ""
        if first.startswith("AllData"):
            raise LogError(
                "these are predictions for the training data (Resample 'AllData'). Expected "
                "held-out ones: savePredictions = 'final' with cross-validation."
            )
        out = add_split_levels(out, table["Resample"], ["model"])
    elif not out.duplicated([n for n in ("point", "model") if n in out]).any():
        out["fold"] = out["point"]  # method = "LOOCV" has no Resample: each row is a fold
    return PredictionTable(out, found)


# --- tidymodels -----------------------------------------------------------------------------------


OF_TIDYMODELS = (
    ".row", ".config", ".iter", ".fold", "id", "id2", "id3", "wflow_id", "model", "preproc",
)  # fmt: skip
NO_CLASS = (
    ".pred_class", ".pred_lower", ".pred_upper", ".pred_res", ".pred_quantile", ".pred_time",
)  # fmt: skip


def tidymodels(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read predictions that were collected with ``summarize = FALSE``."""
    require_columns(table, [".row"], "table of collect_predictions()")
    if "id" not in table:
        raise LogError(
            "this table of collect_predictions() has no column 'id': it was averaged over "
            "repetitions. Expected collect_predictions(x, summarize = FALSE)."
        )
    chances = {
        label: name
        for label, name in find_prefixed(table, ".pred_").items()
        if name not in NO_CLASS
    }
    response = next((name for name in (".pred", ".pred_class") if name in table), None)
    if response is None and not chances:
        raise LogError(
            "this table has neither a column '.pred' nor '.pred_class'. Expected predictions of "
            "numbers or classes; predictions of survival models are not supported here."
        )
    truth = options.truth or outcome(table, chances)
    require_named(table, "truth", [truth])
    out = pd.DataFrame({"point": table[".row"], "y_true": table[truth]})
    out["y_pred"] = most_likely(table, chances) if response is None else table[response]
    found = add_probabilities(out, table, chances)
    model = models_of(table)
    if model is not None:
        out["model"] = model
    add_named(out, table, options)
    names = table["id"].astype(str)
    if "id2" in table and table["id2"].notna().any():
        names = names + "/" + table["id2"].astype(str)
    out = add_split_levels(out, names.where(table["id"].notna()), ["model"])
    return PredictionTable(out, found)


def outcome(table: pd.DataFrame, chances: Mapping[Hashable, str]) -> str:
    """Find the column of the truth, which has its name in the data."""
    others = [
        str(name)
        for name in table.columns
        if name not in OF_TIDYMODELS and not str(name).startswith(".")
    ]
    if len(others) > 1:  # exclude tuning parameters: the truth depends only on the row
        rows = table.groupby(".row", sort=False)
        others = [name for name in others if (rows[name].nunique() <= 1).all()]
    if chances and len(others) > 1:
        others = [name for name in others if set(map(str, table[name].dropna())) <= set(chances)]
    if len(others) > 1:
        others = [name for name in others if table[name].nunique() > 1]
    if len(others) != 1:
        raise LogError(
            "the column of the truth is unknown; candidates: "
            f"{listed(map(repr, others)) or 'none'}. Pass its name, as in truth='price'."
        )
    return others[0]


def models_of(table: pd.DataFrame) -> pd.Series | None:
    """Name the models by workflow, and by candidate if there are several."""
    parts = [name for name in ("wflow_id", ".config", ".iter") if name in table]
    if ".config" in parts and "wflow_id" in parts:
        per = table.groupby("wflow_id", sort=False)[".config"].nunique()
        if (per <= 1).all():
            parts.remove(".config")
    if ".iter" in parts and table[".iter"].nunique() <= 1:
        parts.remove(".iter")
    if not parts:
        return None
    name = table[parts[0]].astype(str)
    for part in parts[1:]:
        name = name + "/" + table[part].astype(str)
    return name


# --- Nixtla, AutoGluon, OpenML, scores ------------------------------------------------------------


LIMIT = re.compile(r".*-(lo|hi)-\d+(\.\d+)?")


def nixtla(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read forecasts: a window is a fold, a series a source, a time stamp a point."""
    if "unique_id" not in table.columns and "unique_id" in table.index.names:
        table = table.reset_index("unique_id")
    truth = options.truth or "y"
    require_columns(
        table, ["unique_id", "ds", "cutoff", truth], "table of Nixtla's cross_validation()"
    )
    models = options.predictions
    if not models:
        models = [
            str(name)
            for name in table.columns
            if name not in ("unique_id", "ds", "cutoff", truth, "index")
            and not LIMIT.fullmatch(str(name))
            and not str(name).startswith("Unnamed")
        ]
    require_columns(table, models, "table with these forecasts")
    if not models:
        raise LogError(
            f"no column of forecasts was found among {listed(map(repr, table.columns))}."
        )
    dates = {name: parse_times(table[name]) for name in ("ds", "cutoff")}
    keys = pd.DataFrame(
        {"fold": dates["cutoff"], "source": table["unique_id"], "point": dates["ds"]}
    )
    again = keys.duplicated(["source", "point"], keep=False) & ~keys.duplicated(keep=False)
    if again.any():
        row = keys[again].iloc[0]
        raise LogError(
            f"the windows overlap: {place({'unique_id': row['source'], 'ds': row['point']})} is "
            f"forecast from several cutoffs. Expected each time stamp once: cross_validation "
            f"with step_size equal to h, or the rows of one horizon."
        )
    parts = [
        keys.assign(model=model, y_true=table[truth].array, y_pred=table[model].array)
        for model in models
    ]
    out = pd.concat(parts, ignore_index=True)
    if keys["source"].nunique() == 1:
        out = out.drop(columns="source")
    return PredictionTable(out)


def parse_times(column: pd.Series) -> pd.Series:
    """Parse time stamps that are text; whole numbers are kept."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    try:
        return pd.to_datetime(column, format="ISO8601")
    except (ValueError, TypeError, OverflowError):
        raise LogError(
            f"{column.name!r} contains values that are not time stamps. Expected dates such as "
            "2024-01-31, or whole numbers."
        ) from None


LOST = (
    "AutoGluon averages each out-of-fold prediction over its bags and does not record the fold "
    "of a point: the log has no repetition or fold, so only methods for one test set apply, and "
    "they treat all predictions as those of one model"
)


def autogluon(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read ``predict_oof`` or ``predict_proba_oof``, aligned with the truth by index."""
    y = options.data.get("y")
    if options.levels.get("point"):
        require_named(table, "point", [options.levels["point"]])
        table = table.set_index(options.levels["point"])
    truth = options.truth
    if y is None and truth is not None and truth in table.columns:
        y, table = table[truth], table.drop(columns=truth)
    if not isinstance(y, pd.Series):
        raise LogError(
            "the true values of these out-of-fold predictions are unknown. Pass the label "
            "column of the training data, y=train['label'] (a Series, aligned by index)."
        )
    for what, index in (("the predictions", table.index), ("y", y.index)):
        if not index.is_unique:
            again = index[index.duplicated()][0]
            raise LogError(
                f"the index of {what} contains row {spelled(again)} twice, which happens if "
                "AutoGluon copies rows of rare classes. Expected each point once. Drop the copies."
            )
    truths = look_up(y, table.index, "row", "the training data of the predictor")
    out = pd.DataFrame({"point": table.index, "y_true": truths})
    groups = options.data.get("groups")
    if groups is not None:
        if not isinstance(groups, pd.Series) or not groups.index.is_unique:
            raise LogError(
                "groups= does not match the points. Expected a Series with the same index."
            )
        out["fold"] = groups.reindex(table.index).array
    known = {str(label) for label in pd.unique(y.dropna())}
    is_complete = table.shape[1] > 1 and {str(name) for name in table.columns} >= known
    chances: dict[Hashable, Any] = {name: name for name in table.columns} if is_complete else {}
    if not chances and table.shape[1] != 1:
        raise LogError(
            f"the predictions have the columns {listed(map(repr, table.columns))}. Expected one, "
            f"or one for each class of y."
        )
    plain = table.reset_index(drop=True)
    out["y_pred"] = most_likely(plain, chances) if chances else plain.iloc[:, 0]
    found = add_probabilities(out, plain, chances)
    return PredictionTable(out, found, {}, LOST if groups is None else "")


def openml(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read the predictions of a run; repetitions, folds and rows are numbered from 0."""
    repeat = "repeat" if "repeat" in table else "repeat_nr"
    require_columns(table, [repeat, "fold", "row_id", "prediction"], "table of OpenML predictions")
    if "sample" in table and table["sample"].nunique() > 1:
        raise LogError(
            "this run is a learning curve: its column 'sample' has several training sizes. "
            "Expected the rows of one of them."
        )
    out = pd.DataFrame({"point": table["row_id"], "y_pred": table["prediction"]})
    if table[repeat].nunique() > 1:
        out["repetition"] = table[repeat]
    if table["fold"].nunique() > 1:
        out["fold"] = table["fold"]
    truth = options.truth or next((n for n in ("truth", "correct") if n in table), None)
    y = options.data.get("y")
    if truth is not None:
        require_named(table, "truth", [truth])
        out["y_true"] = table[truth]
    elif y is not None:
        named = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y))
        if not named.index.is_unique:
            raise LogError("the index of y has a row twice. Expected one truth for each row.")
        every = "one for each row of the data set, numbered from 0"
        out["y_true"] = look_up(named, table["row_id"], "row_id", every)
    else:
        raise LogError(
            "this run has no truth (no column 'truth' or 'correct'). Pass the truth from the "
            "data of the task, in the order of its rows: read_log(path, y=y, loss=…)."
        )
    add_named(out, table, options)
    chances = find_prefixed(table, "confidence.")
    whole = {label: name for label, name in chances.items() if table[name].notna().all()}
    return PredictionTable(out, add_probabilities(out, table, whole))


def look_up(y: pd.Series, rows: Any, what: str, expected: str) -> Any:
    """Look up the truth of rows of the data."""
    absent = list(dict.fromkeys(rows[~rows.isin(y.index)]))
    if absent:
        whole = isinstance(absent[0], float) and absent[0].is_integer()  # in an ARFF file
        first = int(absent[0]) if whole else absent[0]
        raise LogError(
            f"y has no truth for {what} {spelled(first)}{count_others(len(absent))}. "
            f"Expected {expected}."
        )
    return y.reindex(rows).array


SPLITS = ("split", "iteration", "Resample", "id")
"""Default names of the column of splits."""
SPLIT_LEVELS = [level for level in LEVELS if level not in ("point", "count")]


def scores(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read scores as losses, negated if higher is better."""
    if options.higher_is_better is None:
        raise LogError(
            "the direction of these scores is unknown. Pass higher_is_better=True (accuracy, "
            "R2, neg_…), or higher_is_better=False (errors)."
        )
    flat = flatten_index(table)
    metric = [] if options.wanted is None else [options.wanted]
    require_named(flat, "metric", metric)
    out = level_columns(flat, options, list(metric))
    taken = out.attrs["taken"]
    out = out[[name for name in out if name in (*SPLIT_LEVELS, MODEL)]]
    split = next((name for name in SPLITS if name in flat), None)
    if not {"repetition", "fold", "sample"} & set(out.columns):
        if split is None:
            raise LogError(
                "the column of the splits is unknown. Expected one named 'repetition', 'fold' "
                "or 'split', or its name: repetition='run'."
            )
        out = add_split_levels(out, flat[split])
    used = {*LEVELS, *taken, MODEL, split}
    others = metric or [str(name) for name in flat.columns if name not in used]
    others = [name for name in others if pd.api.types.is_numeric_dtype(flat[name])]
    if not others:
        raise LogError("no column of scores was found. Expected one number per split.")
    levels = [name for name in out if name != MODEL]
    refuse_one_split(len(out[levels].drop_duplicates()) if levels else 1)
    values = -flat[others] if options.higher_is_better else flat[others]
    read = model_columns(out, values, others, LOSS)
    attrs = {"holds": "scores"}
    if options.higher_is_better:
        attrs |= facts_of_score(options.wanted or "score", "-score")
    return replace(read, attrs=attrs, called=None)
