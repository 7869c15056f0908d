"""caret: ``train$pred`` of a model trained with ``savePredictions``."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from cvstats.errors import LogError
from cvstats.io.predictions import PredictionTable
from cvstats.io.splits import add_split_levels
from cvstats.io.tools._table import ReadOptions, add_named, add_probabilities, require_columns

OWN = ("pred", "obs", "rowIndex", "Resample", "weights", "dataType", "object")


def caret(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read held-out predictions; each set of tuning parameters is a model of its own."""
    require_columns(table, ["pred", "obs", "rowIndex"], "train$pred of caret")
    labels = {str(label) for label in pd.unique(table["obs"].dropna())}
    text = not pd.api.types.is_numeric_dtype(table["obs"])
    chances: dict[Hashable, str] = {
        str(name): str(name)
        for name in table.columns
        if text and name not in OWN and (str(name) in labels or is_chance(table, str(name), labels))
    }
    if chances and not labels <= set(chances):
        chances = {}
    out = pd.DataFrame(
        {"point": table["rowIndex"], "y_true": table["obs"], "y_pred": table["pred"]}
    )
    found = add_probabilities(out, table, chances)
    named = (options.model, options.levels.get("source"))
    tuned = [
        str(name)
        for name in table.columns
        if name not in (*OWN, *chances, *named) and table[name].nunique() > 1
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
        out["fold"] = out["point"]  # method = "LOOCV" writes no Resample: each row is a fold
    return PredictionTable(out, found)


def is_chance(table: pd.DataFrame, name: str, labels: set[str]) -> bool:
    """Whether a column is the probability of a class that no row of the truth has."""
    return name in {str(label) for label in pd.unique(table["pred"].dropna())} - labels
