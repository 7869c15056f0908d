"""OpenML: the predictions of a run, as ARFF or as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cvstats.errors import LogError, spelled
from cvstats.io.predictions import PredictionTable
from cvstats.io.tools._table import (
    ReadOptions,
    add_named,
    add_probabilities,
    prefixed,
    require_columns,
)


def openml(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read the predictions of a run; repetitions, folds and rows count from 0."""
    repeat = "repeat" if "repeat" in table else "repeat_nr"
    require_columns(table, [repeat, "fold", "row_id", "prediction"], "table of OpenML predictions")
    if "sample" in table and table["sample"].nunique() > 1:
        raise LogError(
            "this run is a learning curve: its column 'sample' has several values, each a size "
            "of the training sets. Expected the rows of one of them."
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
            "this run holds no truth (no column 'truth' or 'correct'). Expected it from the data "
            "of the task, by row: read_log(path, y=y, loss=…)."
        )
    add_named(out, table, options)
    chances = prefixed(table, "confidence.")
    whole = {label: name for label, name in chances.items() if table[name].notna().all()}
    return PredictionTable(out, add_probabilities(out, table, whole))


def looked_up(y: object, rows: pd.Series) -> pd.Series:
    """Look the truth up by the row of the data set."""
    truth = y if isinstance(y, pd.Series) else pd.Series(np.asarray(y))
    if not truth.index.is_unique:
        raise LogError("the index of y names a row twice. Expected one truth for each row.")
    absent = ~rows.isin(truth.index)
    if absent.any():
        raise LogError(
            f"y has no truth for row_id {spelled(rows[absent].iloc[0])} (and "
            f"{int(absent.sum()) - 1:,} more). Expected one for each row of the data set, "
            f"counted from 0."
        )
    return pd.Series(truth.reindex(rows).array, index=rows.index)
