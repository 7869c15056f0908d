"""One score for each split, without the losses of points."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError
from cvstats.io.predictions import LOSS, MODEL, PredictionTable
from cvstats.io.splits import add_split_levels
from cvstats.io.tools._table import ReadOptions, require_columns
from cvstats.io.tools.columns import flatten_index, level_columns, model_columns

SPLITS = ("split", "iteration", "Resample", "id")
"""What a column of splits is called where the caller names none."""
SPLIT_LEVELS = [level for level in LEVELS if level not in ("point", "count")]


def scores(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read scores as losses: as they are, or negated where higher is better."""
    if options.higher_is_better is None:
        raise LogError(
            "scores do not say which way is better. Expected higher_is_better=True (accuracy, "
            "R2, neg_…), or higher_is_better=False (errors)."
        )
    flat = flatten_index(table)
    metric = [] if options.wanted is None else [options.wanted]
    require_columns(flat, metric, "table with this metric=")
    out = level_columns(flat, options, list(metric))
    out = out[[name for name in out if name in (*SPLIT_LEVELS, MODEL)]]
    split = next((name for name in SPLITS if name in flat), None)
    if not {"repetition", "fold", "sample"} & set(out.columns):
        if split is None:
            raise LogError(
                "the column of the splits is not known. Expected one called 'repetition', "
                "'fold' or 'split', or its name: repetition='run'."
            )
        out = add_split_levels(out, flat[split])
    used = {*LEVELS, *options.levels.values(), MODEL, options.model, split}
    others = metric or [str(name) for name in flat.columns if name not in used]
    others = [name for name in others if pd.api.types.is_numeric_dtype(flat[name])]
    if not others:
        raise LogError("no column holds scores. Expected numbers, one for each split.")
    values = -flat[others] if options.higher_is_better else flat[others]
    read = model_columns(out, values, others, LOSS)
    return replace(read, attrs={"holds": "scores"}, called=None)
