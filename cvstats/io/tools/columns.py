"""Any other table, with columns that the caller names or that have standard names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, listed, nearest, plainly
from cvstats.io.table import (
    LOSS,
    METRIC,
    MODEL,
    PREDICTION,
    PredictionTable,
    ReadOptions,
    add_split_levels,
    are_repeated_folds,
    metric_column,
    numbers_in,
    require_named,
)
from cvstats.io.text import NESTED, SPELLINGS
from cvstats.log.tables import TRUTH, find_columns, index_to_columns, refuse_scores, unnamed_labels
from cvstats.loss_functions.losses import OF_COLUMNS, is_loss
from cvstats.loss_functions.pointwise import LOSSES, unknown_loss

USUAL = (PREDICTION, "prediction", "pred", "oof_pred")
"""Default names of columns of predictions."""
FACTS = re.compile(
    r"n|n-?(train|test|samples|obs)|(train|test|batch)-size|seed|random-state|weights?"
    r"|((fit|train|training|test|score|predict|run|wall|cpu)-?)?time(-(s|ms|sec|seconds))?"
    r"|runtime|duration|elapsed|seconds|timestamp"
)
"""Names of columns with facts about a fit or a point, not losses of a model."""
MEANS = {
    ("score_val", "fit_order"): "a leaderboard of AutoGluon has one mean for each model. Expected "
    "predictions: predictor.predict_proba_oof(model), read with format='autogluon'.",
    ("number", "value", "state"): "trials of Optuna have one value each. Expected predictions, or "
    "the score of each split: save them in the objective, trial.set_user_attr('scores', scores), "
    "and read a table with the columns model, split and score by format='scores'.",
}
"""Columns of tables that contain only means, without an interval, and what to read instead."""
MOST = 12
"""Maximum number of columns listed in a message."""


def columns(table: pd.DataFrame, options: ReadOptions) -> PredictionTable:
    """Read a table with one row per evaluation: losses, or truth and predictions."""
    table = spell_roles(flatten_index(table), options)
    refuse_nested(table, options)
    check_names(table, options)
    truth = options.truth or next((n for n in (TRUTH, "truth") if n in table.columns), None)
    losses = loss_column(table, options, truth)
    out = level_columns(table, options, [truth, losses, *options.predictions, *options.further])
    if losses is not None:
        found = PredictionTable(
            out.assign(loss=table[losses]), attrs={"loss": losses}, called=own_name(losses)
        )
    elif truth is not None:
        out[TRUTH] = table[truth]
        out = out.assign(**{name: table[name] for name in options.further})
        names = options.predictions or [name for name in USUAL if name in table.columns]
        if options.prediction is None and len(names) != 1:
            raise LogError(f"the column of predictions is unknown. {call_to_type(table)}")
        found = model_columns(out, table, names, PREDICTION)
        found = replace(found, further=options.further)
    else:
        found = loss_columns(table, options, out)
    measure = metric_column(table, [losses, *out.attrs["taken"]])
    if measure is not None and TRUTH not in found.table:
        found = replace(found, table=found.table.assign(**{METRIC: table[measure]}))
    if not set(LEVELS) & set(found.table.columns):
        if truth is None or not options.predictions or MODEL in out:
            raise LogError(
                f"no column has the name of a level of a loss log. {call_to_type(table)}"
            )
        found = replace(found, table=found.table.assign(point=range(len(table))))  # a test set
    kept = [name for name in out.attrs["unnamed"] if name in found.table.columns]
    return replace(found, kept=kept, by=options.groups)


def level_columns(
    table: pd.DataFrame, options: ReadOptions, values: list[str | None]
) -> pd.DataFrame:
    """Select levels and model names from a table; ``values`` are the other columns.

    Columns whose name resembles a missing level are kept; ``attrs["unnamed"]`` lists them, and
    ``attrs["taken"]`` lists all selected columns.
    """
    used = list(dict.fromkeys(name for name in values if name is not None))
    found = find_columns(
        list(table.columns), used, {level: options.levels.get(level) for level in LEVELS},
        options.model, scores=options.higher_is_better is not None,
    )  # fmt: skip
    if found.model in options.groups:
        raise LogError(
            f"by={found.model!r} names the models, and results always have a row for each model. "
            "Expected another column."
        )
    unnamed = unnamed_labels(table, found)
    names = {**found.levels, **{name: name for name in (*unnamed, *options.groups)}}
    if found.model is not None:
        names[MODEL] = found.model
    spellings: Mapping[str, pd.Series] = table.attrs.get(SPELLINGS, {})
    labels = {to: spellings.get(name, table[name]) for to, name in names.items()}
    out = pd.DataFrame(labels, copy=False)
    if "fold" in out and "repetition" not in out and are_repeated_folds(out["fold"].unique()):
        out = add_split_levels(out.drop(columns="fold"), out["fold"])
    out.attrs |= {"unnamed": unnamed, "taken": list(names.values())}
    return out


def flatten_index(table: pd.DataFrame) -> pd.DataFrame:
    """Convert named index levels to columns."""
    flat = index_to_columns(table, list(table.index.names))
    flat.attrs = table.attrs
    return flat


def spell_roles(table: pd.DataFrame, options: ReadOptions) -> pd.DataFrame:
    """Rename default columns that are not in lower case, unless they are named in the call."""
    named = [
        options.truth, options.metric_name, options.loss, options.model,
        *options.predictions, *options.groups, *options.levels.values(),
    ]  # fmt: skip
    roles = {TRUTH, "truth", *USUAL, LOSS} - {*table.columns}
    found = {str(name).lower(): name for name in table.columns if name not in named}
    return table.rename(columns={found[role]: role for role in roles & {*found}})


def refuse_nested(table: pd.DataFrame, options: ReadOptions) -> None:
    """Refuse columns whose lists or objects were skipped on reading."""
    nested = table.attrs.get(NESTED, {})
    names = [options.levels.get(level, level) for level in LEVELS]
    names += [options.model or MODEL, options.truth or TRUTH, options.metric_name or LOSS]
    for name in (*names, options.wanted, *options.predictions) if nested else ():
        column = name if name in nested or name in table else str(name).partition(".")[0]
        if column not in nested:
            continue
        inner = f"{column}.id" if name == column else name
        raise LogError(
            f"the column {column!r} contains lists or objects, as in {nested[column]}. Expected a "
            f"name or a number in each row. For a value inside an object, such as {inner!r}, "
            "flatten the rows, pd.json_normalize(rows); otherwise convert them to text, "
            f"row[{column!r}] = json.dumps(row[{column!r}]), or rename the column if it is "
            "something else."
        )


def check_names(table: pd.DataFrame, options: ReadOptions) -> None:
    """Refuse names of columns that the table lacks, and losses that cannot be computed."""
    for what, name in (("truth", options.truth), ("metric", options.metric_name)):
        require_named(table, what, [] if name is None else [name])
    require_named(table, "prediction", options.predictions)
    require_named(table, "by", options.groups)
    for name in OF_COLUMNS:
        if name in options.loss_options:
            require_named(table, name, [options.loss_options[name]])
    loss = options.loss
    if not isinstance(loss, str) or is_loss(loss) or loss in table.columns:
        return
    near = nearest(loss, table.columns)
    if not near or (options.truth or TRUTH) in table.columns:
        raise unknown_loss(loss)
    raise LogError(
        f"{loss!r} is neither a column nor a loss. Expected the column of losses, or one of "
        f"{', '.join(map(repr, LOSSES))}.{near}"
    )


def loss_column(table: pd.DataFrame, options: ReadOptions, truth: str | None) -> str | None:
    """Find the column of losses; None if losses must be computed or have several columns."""
    wanted = options.metric_name or LOSS
    if isinstance(options.loss, str) and options.loss in table.columns:
        wanted = options.loss  # the name of a column, not a function
    if wanted not in table.columns or (truth is not None and options.loss not in (None, wanted)):
        return None
    unused = [name for name in ("truth", "prediction") if getattr(options, name) is not None]
    if unused:
        raise LogError(
            f"the losses of this table are in the column {wanted!r}, but {unused[0]}= requires "
            "loss=, as in loss='squared_error'. Omit it to use the losses as they are."
        )
    return wanted


def loss_columns(
    table: pd.DataFrame, options: ReadOptions, out: pd.DataFrame
) -> PredictionTable:  # fmt: skip
    """Read a table whose other columns are losses, one per model."""
    if options.loss is not None:
        raise LogError(f"the column of true values is unknown. {call_to_type(table)}")
    used = {*out.columns, *out.attrs["taken"]}
    used.add(metric_column(table, used))
    every = [str(name) for name in table.columns if name not in used]
    others = [name for name in every if not FACTS.fullmatch(plainly(name))]
    labels = [name for name in others if is_label(table, name, others)]
    others = [name for name in others if name not in labels]
    facts = [name for name in every if name not in others]
    for names, words in MEANS.items():
        if {*names} <= {*table.columns}:
            raise LogError(words)
    if options.prediction is not None or not others or not set(LEVELS) & set(out.columns):
        raise LogError(f"no column of losses was found. {call_to_type(table)}")
    text = [
        name
        for name in others
        if not pd.api.types.is_numeric_dtype(table[name])
        and numbers_in(table[name], options.text)[0] is None
    ]
    if text:
        first = listed(f"{name!r}, as in {str(table[name].iloc[0])[:40]!r}" for name in text)
        raise LogError(
            f"non-numeric columns are not losses: {first}. To keep it as a level of the log, pass "
            f"by={text[0]!r}. {call_to_type(table)}"
        )
    if options.higher_is_better is None:
        refuse_scores(others, of_splits="point" not in out)
    found = model_columns(out, table, others, LOSS)
    if not facts:
        return found
    return replace(found, note=(
        f"ignored columns that are {'whole numbers, or ' * bool(labels)}not named like models: "
        f"{listed(map(repr, facts))}. To use them as models, name all columns: "
        f"cvstats.as_log(frame, loss=[{others[0]!r}, …])"
    ))  # fmt: skip


def is_label(table: pd.DataFrame, name: str, others: Sequence[str]) -> bool:
    """Whether a column has repeated whole numbers, next to columns of fractions."""
    values, types = table[name], pd.api.types
    if not types.is_integer_dtype(values) or values.isin([0, 1]).all():
        return False
    rest = [table[other] for other in others if other != name]
    repeated = values.nunique() <= len(values) / 2
    return repeated and any(types.is_float_dtype(other) for other in rest)


def model_columns(
    out: pd.DataFrame, table: pd.DataFrame, names: list[str], to: str
) -> PredictionTable:
    """Add the columns of predictions or losses to the levels, one per model."""
    if len(names) == 1:
        return PredictionTable(out.assign(**{to: table[names[0]]}), called=own_name(names[0]))
    if MODEL in out.columns:
        way = "" if to != LOSS else (
            f" If the columns are metrics, name one of them, as in loss={names[0]!r}, or stack "
            f"them: table.melt(…, {names!r}, 'metric', 'loss')."
        )  # fmt: skip
        raise LogError(
            f"model= and several columns both name models. Expected only one of the two.{way}"
        )
    held: dict[Hashable, str] = {name: f"{to}:{name}" for name in names}
    values = table[names].set_axis(list(held.values()), axis=1)
    # All at once: adding columns one by one would copy the names of all others.
    return PredictionTable(pd.concat([out, values], axis=1), models=held)


def own_name(column: str) -> str | None:
    """Name a model after its column, unless the name is a generic one."""
    return None if column in (*USUAL, LOSS) else column


def call_to_type(table: pd.DataFrame) -> str:
    """List the columns of a table, and the call that names them."""
    names = [repr(str(name)) for name in table.columns]
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return (
        f"The columns are {', '.join(names[:MOST])}{more}. Expected names for some of them, as in "
        f"read_log(path, fold=…, point=…, metric=…) for losses, or read_log(path, fold=…, "
        f"point=…, truth=…, prediction=…, loss='squared_error') for predictions."
    )
