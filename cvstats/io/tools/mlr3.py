"""mlr3: the table of ``obs_loss`` and predictions with their iteration."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from cvstats.errors import LogError, listed
from cvstats.io.predictions import PredictionTable
from cvstats.io.splits import add_split_numbers
from cvstats.io.tools._table import (
    ReadOptions,
    add_named,
    add_probabilities,
    prefixed,
    require_columns,
)

OWN = (
    "row_ids", "row_id", "iteration", "truth", "response", "se", "weights", "task", "task_id",
    "learner", "learner_id", "resampling", "resampling_id", "nr", "uhash", "prediction", "set",
)  # fmt: skip


def mlr3(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read losses that mlr3 computed, or predictions."""
    point = "row_ids" if "row_ids" in table else "row_id"
    require_columns(table, [point], "table of mlr3")
    if "iteration" not in table:
        raise LogError(
            "this table of mlr3 has no column 'iteration', as as.data.table(rr$prediction()) "
            "gives it, and so no folds. Expected rr$obs_loss(measure), or the predictions of "
            "rr$predictions() with their iteration: data.table::rbindlist(lapply("
            "rr$predictions(), as.data.table), idcol = 'iteration')."
        )
    for task in ("task_id", "task"):
        if task in table and table[task].nunique() > 1:
            names = pd.unique(table[task]).tolist()
            raise LogError(
                f"the table holds several tasks: {listed(map(repr, names))}. Expected one data "
                f"set for a log. Keep the rows of one: table[table[{task!r}] == {names[0]!r}]."
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
    """Find the column of losses, if it is such a table."""
    used = (*OWN, options.model, *options.levels.values())
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
            f"the table holds the measures {listed(map(repr, measures)) or 'of none'}. Expected "
            f"the name of one: metric={(measures or ['classif.ce'])[0]!r}."
        )
    if table[measure].isna().all():
        raise LogError(
            f"{measure!r} is missing in every row: mlr3 has no loss of single points for it. "
            f"Expected a measure such as 'classif.ce' or 'regr.mse'."
        )
    return measure
