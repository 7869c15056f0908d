"""The table between readers and loss logs: a row for each evaluation of each model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cvstats.design import LEVELS
from cvstats.errors import MOST, LogError, listed, place, spelled

__all__ = ["Assembled", "Tidy", "assembled"]

TRUTH, PREDICTION, LOSS, MODEL = "y_true", "y_pred", "loss", "model"


@dataclass(frozen=True)
class Tidy:
    """What a reader found.

    Parameters
    ----------
    table : DataFrame
        Columns: levels of a loss log; ``model``; ``loss``, or ``y_true`` with ``y_pred`` and the
        columns of ``probabilities``.
    probabilities : mapping
        For each class the column of its probability.
    attrs : dict
        Facts to keep with the log.
    lost : str
        What the tool did not write down, in a sentence; empty if nothing.
    """

    table: pd.DataFrame
    probabilities: Mapping[Hashable, str] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    lost: str = ""


@dataclass(frozen=True)
class Assembled:
    """Evaluations as rows, models as columns; which columns hold what."""

    frame: pd.DataFrame
    models: list[Hashable]
    responses: dict[Hashable, str]
    probabilities: dict[Hashable, list[str]]
    classes: list[Hashable]


def assembled(tidy: Tidy) -> Assembled:
    """Check a tidy table and put its models side by side, aligned by their labels."""
    table = tidy.table.reset_index(drop=True)
    if not len(table):
        raise LogError("the table is empty. Expected at least one evaluation.")
    levels = [level for level in LEVELS if level in table.columns]
    if not levels:
        raise LogError(
            f"no level of a loss log was found among the columns "
            f"{listed(map(repr, table.columns))}. Expected some of {', '.join(LEVELS)}; name "
            f"their columns, as in read_log(path, fold='cv_split', point='id', loss=…)."
        )
    table = table.assign(**{level: whole(table[level], level) for level in levels})
    models = names_of(table)
    refuse_twice(table, levels, len(models) > 1)
    refuse_other_truths(table)
    rows = table.groupby(levels, sort=False, observed=True, dropna=False).ngroup().to_numpy()
    first = table.loc[~pd.Series(rows).duplicated(), levels]
    index = (
        pd.MultiIndex.from_frame(first) if len(levels) > 1 else pd.Index(first[levels[0]])
    ).set_names(levels)
    columns: dict[str, Any] = {}
    if TRUTH in table:
        columns[TRUTH] = spread(table[TRUTH], rows, len(index))
    responses: dict[Hashable, str] = {}
    probabilities: dict[Hashable, list[str]] = {}
    for model, mine in models.items():
        one = len(models) == 1
        for name in (PREDICTION, LOSS):
            if name in table:
                responses[model] = name if one and model is None else str(model)
                columns[responses[model]] = spread(table[name][mine], rows[mine], len(index))
        if tidy.probabilities:
            probabilities[model] = []
            for column in tidy.probabilities.values():
                name = column if one else f"{model}:{column}"
                probabilities[model].append(name)
                columns[name] = spread(table[column][mine], rows[mine], len(index))
    frame = pd.DataFrame(columns, index=index)
    classes = like_truth(list(tidy.probabilities), table)
    return Assembled(frame, list(models), responses, probabilities, classes)


def whole(labels: pd.Series, level: str) -> pd.Series:
    """Check the labels of a level; whole numbers that were written as 1.0 become 1."""
    gone = np.flatnonzero(labels.isna())
    if len(gone):
        raise LogError(
            f"row {gone[0]:,} has no {level} (and {len(gone) - 1:,} more). Expected a label in "
            f"every row."
        )
    if labels.dtype.kind == "f":
        values = labels.to_numpy()
        if np.isinf(values).any():
            raise LogError(f"a label of {level!r} is infinite. Expected names or numbers.")
        if (np.abs(values) < 2**53).all() and (values == np.floor(values)).all():
            return labels.astype(np.int64)
    if labels.dtype == object:
        odd = next((v for v in labels if isinstance(v, (list, dict, set, np.ndarray))), None)
        if odd is not None:
            raise LogError(
                f"a label of {level!r} is a {type(odd).__name__}. Expected names or numbers."
            )
    return labels


def names_of(table: pd.DataFrame) -> dict[Hashable, Any]:
    """Find the rows of each model, in the order of their appearance."""
    if MODEL not in table:
        return {None: slice(None)}
    if table[MODEL].isna().any():
        row = int(np.flatnonzero(table[MODEL].isna())[0])
        raise LogError(f"the model of row {row:,} has no name. Expected a name in every row.")
    names = list(dict.fromkeys(table[MODEL]))
    if len(names) > 10_000:
        raise LogError(f"the table names {len(names):,} models. Expected at most 10,000.")
    if len(names) == 1:
        return {names[0]: slice(None)}
    codes = pd.factorize(table[MODEL])[0]
    return {name: np.flatnonzero(codes == code) for code, name in enumerate(names)}


def refuse_twice(table: pd.DataFrame, levels: Sequence[str], several: bool) -> None:
    """Refuse an evaluation that a model has twice."""
    names = [*levels, MODEL] if several else list(levels)
    again = table.duplicated(names)
    if again.any():
        rows = table.loc[again, names].head(MOST).to_dict("records")
        shown = [place({str(k): v for k, v in row.items()}) for row in rows]
        raise LogError(
            f"an evaluation stands twice: {listed(shown, int(again.sum()))}. Expected each "
            f"({', '.join(names)}) once. Drop the copies, or name the column that tells them "
            f"apart, such as repetition= or model=."
        )


def refuse_other_truths(table: pd.DataFrame) -> None:
    """Refuse a point whose truth is not the same everywhere: its rows are mislabelled."""
    if TRUTH not in table or "point" not in table:
        return
    who = [name for name in ("source", "point") if name in table]
    codes = pd.Series(pd.factorize(table[TRUTH])[0]).where(table[TRUTH].notna().to_numpy())
    by = table.groupby(who, sort=False, observed=True).ngroup().to_numpy()
    found = codes.groupby(by).agg(["min", "max"])
    bad = np.flatnonzero((found["min"] != found["max"]) & found["min"].notna())
    if len(bad):
        rows = np.flatnonzero(by == found.index[bad[0]])
        values = list(dict.fromkeys(table[TRUTH].iloc[rows].dropna()))[:2]
        where = place({name: table[name].iloc[rows[0]] for name in who})
        raise LogError(
            f"the truth of {where} is {spelled(values[0])} in one row and {spelled(values[1])} "
            f"in another (and {len(bad) - 1:,} more points). Expected one truth for each point. "
            f"The labels of the points do not mean the same everywhere."
        )


def spread(values: pd.Series, rows: Any, size: int) -> Any:
    """Put values where they belong; what no row tells stays missing."""
    plain = values.reset_index(drop=True)
    if len(plain) == size and np.array_equal(rows, np.arange(size)):
        return plain.to_numpy() if isinstance(plain.dtype, np.dtype) else plain.array
    there = plain.notna().to_numpy()
    at = pd.Series(np.flatnonzero(there), index=rows[there])
    at = at[~at.index.duplicated()].reindex(range(size))
    if at.notna().all():
        return plain.iloc[at.astype(np.int64)].array
    return plain.reindex(at.fillna(-1).astype(np.int64)).array


def like_truth(classes: list[Hashable], table: pd.DataFrame) -> list[Hashable]:
    """Give classes that were read off column names the type that they have in the truth."""
    if not classes or TRUTH not in table:
        return classes
    known: dict[str, Hashable] = {}
    for label in pd.unique(table[TRUTH].dropna()):
        plain = label.item() if isinstance(label, np.generic) else label
        same = isinstance(plain, float) and plain == np.floor(plain)
        known[str(int(plain)) if same else str(plain)] = plain
    strange = [label for name, label in known.items() if name not in {str(c) for c in classes}]
    if strange:
        raise LogError(
            f"the truth holds {listed(map(repr, strange))}, for which there is no column of "
            f"probabilities. Expected one of {listed(map(repr, classes))}."
        )
    return [known.get(str(name), name) for name in classes]
