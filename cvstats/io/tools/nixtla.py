"""Nixtla: ``cross_validation`` of statsforecast, mlforecast and neuralforecast."""

from __future__ import annotations

import re

import pandas as pd

from cvstats.errors import LogError, listed, place
from cvstats.io.predictions import PredictionTable
from cvstats.io.tools._table import ReadOptions, require_columns

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
        raise LogError(f"no column holds forecasts. Found {listed(map(repr, table.columns))}.")
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
    """Read time stamps that were written as text; whole numbers stay what they are."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    try:
        return pd.to_datetime(column, format="ISO8601")
    except (ValueError, TypeError, OverflowError):
        raise LogError(
            f"{column.name!r} holds something that is not a time stamp. Expected dates such as "
            f"2024-01-31, or whole numbers."
        ) from None
