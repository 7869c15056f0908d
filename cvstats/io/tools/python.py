"""Tables of Python packages: Nixtla, AutoGluon, OpenML; and tables with one score per split."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.orientation import facts_of_score
from cvstats.errors import LogError, listed, place, spelled
from cvstats.io.table import (
    LOSS,
    MODEL,
    PredictionTable,
    ReadOptions,
    add_named,
    add_probabilities,
    add_split_levels,
    likeliest,
    prefixed,
    require_columns,
)
from cvstats.io.tools.columns import flatten_index, level_columns, model_columns

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
    dates = {name: moments(table[name]) for name in ("ds", "cutoff")}
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


def moments(column: pd.Series) -> pd.Series:
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


def autogluon(predictions: pd.Series | pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read ``predict_oof`` or ``predict_proba_oof``, aligned with the truth by index."""
    y = options.data.get("y")
    table = predictions.to_frame() if isinstance(predictions, pd.Series) else predictions
    if options.levels.get("point"):
        require_columns(table, [options.levels["point"]], "table with this point=")
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
                "AutoGluon copies rows of rare classes. Expected each point once. Drop the "
                "copies."
            )
    absent = table.index.difference(y.index)
    if len(absent):
        raise LogError(
            f"y has no truth for row {spelled(absent[0])} (and {len(absent) - 1:,} more). Expected "
            f"the training data of the predictor."
        )
    columns = {"point": table.index, "y_true": y.reindex(table.index).array}
    out = pd.DataFrame(columns)
    groups = options.data.get("groups")
    if groups is not None:
        if not isinstance(groups, pd.Series) or not groups.index.is_unique:
            raise LogError(
                "groups= does not match the points. Expected a Series with the same index."
            )
        out["fold"] = groups.reindex(table.index).array
    chances = class_columns(table, y)
    if not chances and table.shape[1] != 1:
        raise LogError(
            f"the predictions have the columns {listed(map(repr, table.columns))}. Expected one, "
            f"or one for each class of y."
        )
    plain = table.reset_index(drop=True)
    out["y_pred"] = likeliest(plain, chances) if chances else plain.iloc[:, 0]
    found = add_probabilities(out, plain, chances)
    return PredictionTable(out, found, {}, LOST if groups is None else "")


def class_columns(table: pd.DataFrame, y: pd.Series) -> dict[Hashable, Hashable]:
    """Find the class of each column of probabilities."""
    known: dict[str, Any] = {str(label): label for label in pd.unique(y.dropna())}
    if not {str(name) for name in table.columns} >= set(known) or table.shape[1] < 2:
        return {}
    return {name: name for name in table.columns}


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
        require_columns(table, [truth], "table with this truth=")
        out["y_true"] = table[truth]
    elif y is not None:
        out["y_true"] = looked_up(y, table["row_id"])
    else:
        raise LogError(
            "this run has no truth (no column 'truth' or 'correct'). Pass the truth from the "
            "data of the task, in the order of its rows: read_log(path, y=y, loss=…)."
        )
    add_named(out, table, options)
    chances = prefixed(table, "confidence.")
    whole = {label: name for label, name in chances.items() if table[name].notna().all()}
    return PredictionTable(out, add_probabilities(out, table, whole))


def looked_up(y: object, rows: pd.Series) -> pd.Series:
    """Look the truth up by the row of the data set."""
    truth = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y))
    if not truth.index.is_unique:
        raise LogError("the index of y has a row twice. Expected one truth for each row.")
    absent = ~rows.isin(truth.index)
    if absent.any():
        raise LogError(
            f"y has no truth for row_id {spelled(rows[absent].iloc[0])} (and "
            f"{int(absent.sum()) - 1:,} more). Expected one for each row of the data set, "
            "numbered from 0."
        )
    return pd.Series(truth.reindex(rows).array, index=rows.index)


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
    require_columns(flat, metric, "table with this metric=")
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
    values = -flat[others] if options.higher_is_better else flat[others]
    read = model_columns(out, values, others, LOSS)
    attrs = {"holds": "scores"}
    if options.higher_is_better:
        attrs |= facts_of_score(options.wanted or "score", "-score")
    return replace(read, attrs=attrs, called=None)
