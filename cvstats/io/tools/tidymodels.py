"""tidymodels: the table of ``collect_predictions()``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io.predictions import PredictionTable
from cvstats.io.splits import add_split_levels
from cvstats.io.tools._table import (
    ReadOptions,
    add_named,
    add_probabilities,
    likeliest,
    prefixed,
    require_columns,
)

OWN = (".row", ".config", ".iter", ".fold", "id", "id2", "id3", "wflow_id", "model", "preproc")
NO_CLASS = (
    ".pred_class",
    ".pred_lower",
    ".pred_upper",
    ".pred_res",
    ".pred_quantile",
    ".pred_time",
)


def tidymodels(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read predictions that were collected without summarizing."""
    require_columns(table, [".row"], "table of collect_predictions()")
    if "id" not in table:
        raise LogError(
            "this table of collect_predictions() has no column 'id': it was averaged over "
            "repetitions. Expected collect_predictions(x, summarize = FALSE)."
        )
    chances = {
        label: name for label, name in prefixed(table, ".pred_").items() if name not in NO_CLASS
    }
    response = next((name for name in (".pred", ".pred_class") if name in table), None)
    if response is None and not chances:
        raise LogError(
            "this table has no column '.pred' and no '.pred_class'. Expected predictions of "
            "numbers or classes; those of survival models have no loss for each point here."
        )
    truth = options.truth or outcome(table, chances)
    require_columns(table, [truth], "table with this truth=")
    out = pd.DataFrame({"point": table[".row"], "y_true": table[truth]})
    if response is not None:
        out["y_pred"] = table[response]
    else:
        out["y_pred"] = likeliest(table, chances)
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
    """Find the column of the truth, which has the name that it had in the data."""
    others = [
        str(name) for name in table.columns if name not in OWN and not str(name).startswith(".")
    ]
    if len(others) > 1:  # tuning parameters, too; the truth depends on the row alone
        rows = table.groupby(".row", sort=False)
        others = [name for name in others if (rows[name].nunique() <= 1).all()]
    if chances and len(others) > 1:
        others = [name for name in others if set(map(str, table[name].dropna())) <= set(chances)]
    if len(others) > 1:
        others = [name for name in others if table[name].nunique() > 1]
    if len(others) != 1:
        raise LogError(
            f"the column of the truth could be {listed(map(repr, others)) or 'none of these'}. "
            f"Expected its name: truth='price'."
        )
    return others[0]


def models_of(table: pd.DataFrame) -> pd.Series | None:
    """Name the models: the workflow, and the candidate where there are several."""
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
