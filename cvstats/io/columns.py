"""Any other table: columns that the caller names, or that have the names of a loss log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, nearest
from cvstats.io.asked import Asked
from cvstats.io.besides import worth_keeping
from cvstats.io.files import NESTED
from cvstats.io.guessing import call_for
from cvstats.io.labels import put
from cvstats.io.numeric import refuse_no_numbers
from cvstats.io.tidy import LOSS, MODEL, PREDICTION, TRUTH, Tidy
from cvstats.io.words import require
from cvstats.loss_functions import LOSSES, unknown_loss

__all__ = ["columns", "scores", "turned"]

USUAL = (PREDICTION, "prediction", "pred", "oof_pred")
"""What a column of predictions is called where nobody says so."""


def columns(table: pd.DataFrame, asked: Asked) -> Tidy:
    """Read a table with a row for each evaluation: losses, or truth and predictions."""
    refuse_nested(table, asked)
    table = flat(table, asked)
    tidy = evaluations(table, asked)
    if not set(LEVELS) & set(tidy.table.columns):
        raise LogError(
            f"no column is called as a level of a loss log. Expected some of {', '.join(LEVELS)}. "
            f"{call_for(table, asked)}."
        )
    used: list[str | None] = [asked.levels.get(level, level) for level in LEVELS]
    used += [asked.model, MODEL, asked.truth, TRUTH, asked.metric, asked.wanted, LOSS]
    return replace(tidy, spare=table[[name for name in table.columns if name not in used]])


def refuse_nested(table: pd.DataFrame, asked: Asked) -> None:
    """Refuse lists and objects where a label or a number is meant: without them it is another log.

    What no level and no option names is left out.
    """
    nested = table.attrs.get(NESTED, {})
    roles = (asked.model or MODEL, asked.truth or TRUTH, asked.metric or LOSS, asked.wanted)
    named = [*(asked.levels.get(level, level) for level in LEVELS), *roles, *predicted(asked)]
    for name in named if nested else ():
        if name in nested:
            raise LogError(
                f"the column {name!r} holds lists or objects, as in {nested[name]}. Expected a "
                f"name or a number in each row. Make text of them, row[{name!r}] = "
                f"json.dumps(row[{name!r}]), or rename the column if it is something else."
            )


def evaluations(table: pd.DataFrame, asked: Asked) -> Tidy:
    """Take levels, models, and losses or predictions out of a table."""
    levels = {level: asked.levels.get(level, level) for level in LEVELS}
    require(table, asked.levels.values(), "table with these levels")
    levels = {level: name for level, name in levels.items() if name in table.columns}
    out = pd.DataFrame({level: table[name] for level, name in levels.items()})
    named = asked.model or (MODEL if MODEL in table.columns else None)
    if named is not None:
        require(table, [named], "table with this model=")
        out["model"] = table[named]
    if asked.truth is not None:
        require(table, [asked.truth], "table with this truth=")
    truth = asked.truth or next((n for n in (TRUTH, "truth") if n in table.columns), None)
    check_losses(table, asked)
    roles = (named, truth, asked.wanted, *predicted(asked))
    kept = worth_keeping(table, {*levels.values(), *roles}, levels) if levels else []
    out = out.assign(**{name: table[name] for name in kept})
    found = values_of(table, asked, out, truth, named, [*levels.values(), *kept])
    return replace(found, kept=kept)


def values_of(
    table: pd.DataFrame, asked: Asked, out: pd.DataFrame, truth: str | None, named: str | None,
    used: list[str],
) -> Tidy:  # fmt: skip
    """Add losses, or truth and predictions, to the levels and models that are known."""
    wanted = asked.metric or LOSS
    if isinstance(asked.loss, str) and asked.loss in table.columns:
        wanted = asked.loss  # the name of a column and not of a function
    if wanted in table.columns and (truth is None or asked.loss in (None, wanted)):
        refuse_predictions(wanted, asked)
        return Tidy(
            out.assign(loss=table[wanted]), attrs={"loss": wanted}, called=own_name(wanted)
        )  # fmt: skip
    if truth is None:
        return wide(table, asked, out, [*used, named])
    guesses = predictions_of(table, asked)
    out["y_true"] = table[truth]
    return stacked(out, table, guesses, named, "y_pred")


def check_losses(table: pd.DataFrame, asked: Asked) -> None:
    """Refuse a loss that is neither a column nor one that can be computed."""
    if asked.metric is not None:
        require(table, [asked.metric], "table with this metric=")
    loss = asked.loss
    if not isinstance(loss, str) or loss in LOSSES or loss in table.columns:
        return
    near = nearest(loss, table.columns)
    if not near or (asked.truth or TRUTH) in table.columns:
        raise unknown_loss(loss)
    raise LogError(
        f"there is no column {loss!r}, and no loss of this name. Expected the column of losses, or "
        f"one of {', '.join(map(repr, LOSSES))}.{near}"
    )


def refuse_predictions(held: str, asked: Asked) -> None:
    """Refuse columns of predictions that nobody would look at."""
    unused = [name for name in ("truth", "prediction") if getattr(asked, name) is not None]
    if unused:
        raise LogError(
            f"the losses of this table stand in the column {held!r}, and {unused[0]}= is for "
            f"losses to be computed. Expected loss= with it, as in loss='squared_error'. Leave it "
            f"out to take the losses as they are."
        )


def own_name(column: str) -> str | None:
    """Call a model after its column, unless all columns of this kind are called so."""
    return None if column in (*USUAL, LOSS) else column


def flat(table: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """Turn index levels that have a name into columns."""
    names = [name for name in table.index.names if name is not None]
    both = [name for name in names if name in table.columns]
    if both:
        raise LogError(
            f"{both[0]!r} is a column and an index level. Expected one of them: rename it."
        )
    return table.reset_index(names) if names else table


def predictions_of(table: pd.DataFrame, asked: Asked) -> list[str]:
    """Find the columns of predictions."""
    if asked.prediction is None:
        names = [name for name in USUAL if name in table.columns]
        if len(names) != 1:
            raise LogError(
                f"the column of predictions is not known. Expected one called 'y_pred', or its "
                f"name: prediction=. {call_for(table, asked)}."
            )
        return names
    names = predicted(asked)
    require(table, names, "table with these predictions")
    return names


def predicted(asked: Asked) -> list[str]:
    """List the columns of predictions that were named."""
    if asked.prediction is None:
        return []
    if isinstance(asked.prediction, str) or not isinstance(asked.prediction, Sequence):
        return [str(asked.prediction)]
    return [str(name) for name in asked.prediction]


def turned(tidy: Tidy, higher_is_better: bool | None, path: str | None) -> Tidy:
    """Turn scores into losses: shares s into 1 - s, as for other tools, and all else into -s."""
    if higher_is_better is None:
        return tidy
    if LOSS not in tidy.table:
        raise LogError(
            "higher_is_better= is for scores that a table holds, and here losses are computed of "
            "predictions. Leave it out."
        )
    held = tidy.table[LOSS]
    refuse_no_numbers(held, tidy.attrs.get("loss", LOSS), path)
    values = pd.to_numeric(held, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if not higher_is_better or (np.isnan(values) & held.notna()).any():
        return tidy  # what is no number is refused where losses are
    there = values[~np.isnan(values)]
    share = bool(((there >= 0) & (there <= 1)).all())
    name = tidy.attrs.get("loss", "score")
    loss = f"1 - {name}" if share else f"-{name}"
    return replace(
        tidy,
        table=tidy.table.assign(loss=1 - values if share else 0 - values),
        attrs={**tidy.attrs, "loss": loss},
        called=loss if tidy.called == name else tidy.called,
    )


def stacked(out: pd.DataFrame, table: pd.DataFrame, names: list[str], model: Any, to: str) -> Tidy:
    """Put columns of several models below each other."""
    if len(names) == 1:
        return Tidy(out.assign(**{to: table[names[0]]}), called=own_name(names[0]))
    if model is not None:
        raise LogError("model= and several columns both name models. Expected one of them.")
    parts = [out.assign(model=name, **{to: table[name]}) for name in names]
    return Tidy(pd.concat(parts, ignore_index=True))


def wide(table: pd.DataFrame, asked: Asked, out: pd.DataFrame, used: list[Any]) -> Tidy:
    """Read a table whose other columns are losses, one for each model."""
    if asked.loss is not None:
        raise LogError(
            f"the column of the truth is not known. Expected one called 'y_true', or its name: "
            f"truth=. {call_for(table, asked)}."
        )
    others = [str(name) for name in table.columns if name not in used]
    if asked.prediction is not None or not others or not out.shape[1]:
        raise LogError(
            f"no column of losses was found. Expected one called 'loss', or its name: metric=; or "
            f"truth=, prediction= and loss=. {call_for(table, asked)}."
        )
    text = [name for name in others if not pd.api.types.is_numeric_dtype(table[name])]
    if text:
        raise LogError(
            f"the column {text[0]!r} holds no numbers, and so no losses. Expected a column of "
            f"losses for each model. Name one with metric=, or drop the others. "
            f"{call_for(table, asked)}."
        )
    return stacked(out, table, others, asked.model, "loss")


def scores(table: pd.DataFrame, asked: Asked) -> Tidy:
    """Read one score for each split, with words for what can be done with them."""
    if asked.higher_is_better is None:
        raise LogError(
            "scores do not say which way is better. Expected higher_is_better=True (accuracy, "
            "R2, neg_…), or higher_is_better=False (errors)."
        )
    table = flat(table, asked)
    found = next((name for name in ("split", "iteration", "Resample", "id") if name in table), None)
    drop = [found] if found is not None else []
    out = pd.DataFrame(index=table.index)
    for level in LEVELS:
        name = asked.levels.get(level, level)
        if level in asked.levels:
            require(table, [name], "table with these levels")
        if name in table.columns and level not in ("point", "count"):
            out[level] = table[name]
            drop.append(name)
    named = asked.model or (MODEL if MODEL in table.columns else None)
    if not {"repetition", "fold", "sample"} & set(out.columns):
        if found is None:
            raise LogError(
                "the column of the splits is not known. Expected one called 'repetition', "
                "'fold' or 'split', or its name: repetition='run'."
            )
        out = put(out, table[found])
    if named is not None:
        out["model"] = table[named]
    others = [str(n) for n in table.columns if n not in (*drop, named)]
    if asked.wanted is not None:
        require(table, [asked.wanted], "table with this metric=")
        others = [asked.wanted]
    others = [name for name in others if pd.api.types.is_numeric_dtype(table[name])]
    if not others:
        raise LogError("no column holds scores. Expected numbers, one for each split.")
    values = table[others]
    if asked.higher_is_better:
        values = -values
    read = stacked(out, values, others, named, "loss")
    return Tidy(read.table, {}, {"holds": "scores"})
