"""Tables of R: mlr3, caret and tidymodels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io.table import (
    PredictionTable,
    ReadOptions,
    add_named,
    add_probabilities,
    add_split_levels,
    add_split_numbers,
    likeliest,
    prefixed,
    require_columns,
)

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
        found = add_probabilities(out, table, prefixed(table, "prob."))
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
    text = not pd.api.types.is_numeric_dtype(table["obs"])
    chances: dict[Hashable, str] = {
        str(name): str(name)
        for name in table.columns
        if text
        and name not in OF_CARET
        and (str(name) in labels or is_chance(table, str(name), labels))
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
        if name not in (*OF_CARET, *chances, *named) and table[name].nunique() > 1
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


def is_chance(table: pd.DataFrame, name: str, labels: set[str]) -> bool:
    """Whether a column is the probability of a class that does not occur in the truth."""
    return name in {str(label) for label in pd.unique(table["pred"].dropna())} - labels


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
        label: name for label, name in prefixed(table, ".pred_").items() if name not in NO_CLASS
    }
    response = next((name for name in (".pred", ".pred_class") if name in table), None)
    if response is None and not chances:
        raise LogError(
            "this table has neither a column '.pred' nor '.pred_class'. Expected predictions of "
            "numbers or classes; predictions of survival models are not supported here."
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
