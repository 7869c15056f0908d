"""The table between readers and loss logs: a row for each evaluation of each model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.core.types import IntArray
from cvstats.errors import MOST, LogError, listed, place, spelled
from cvstats.io.besides import same_within
from cvstats.io.coding import Coded, coded, combined, first_rows, indexed, numbered
from cvstats.io.guessing import telling_apart

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
    note : str
        What was chosen without being asked for, in a sentence.
    spare : DataFrame, optional
        Columns of which nothing was taken: one may tell apart what else is the same.
    called : str, optional
        What to call the one model of a table that names no model.
    kept : sequence of str
        Columns that sound like a level that nobody named, to stay as levels of their own names.
    takes : sequence of str, optional
        The options of the format, as far as advice may name them; any otherwise.
    twice : str, optional
        What to do where several files hold the same evaluations.
    """

    table: pd.DataFrame
    probabilities: Mapping[Hashable, str] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    lost: str = ""
    note: str = ""
    spare: pd.DataFrame | None = None
    called: str | None = None
    kept: Sequence[str] = ()
    takes: Sequence[str] | None = None
    twice: str = ""

    @property
    def doubts(self) -> list[str]:
        """What whoever reads this has to be told."""
        return [said for said in (self.lost, self.note) if said]


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
        raise unnamed(table)
    parts = {level: coded(table[level], level) for level in levels}
    models = names_of(table)
    rows = combined(list(parts.values()))
    refuse_twice(tidy, table, parts, models, rows)
    refuse_other_truths(table, parts)
    first = first_rows(rows)
    beside = {name: numbered(table[name]) for name in tidy.kept}
    beside = {name: it for name, it in beside.items() if same_within(it[0], rows, first)}
    index = indexed({**parts, **beside}, first)
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


def unnamed(table: pd.DataFrame) -> LogError:
    """Words for a table of which no column names a level."""
    return LogError(
        f"no level of a loss log was found among the columns "
        f"{listed(map(repr, table.columns))}. Expected some of {', '.join(LEVELS)}; name "
        f"their columns, as in read_log(path, fold='cv_split', point='id', loss=…)."
    )


def names_of(table: pd.DataFrame) -> dict[Hashable, Any]:
    """Find the rows of each model, in the order of their appearance."""
    if MODEL not in table:
        return {None: slice(None)}
    codes, found = pd.factorize(table[MODEL])
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise LogError(f"the model of row {row:,} has no name. Expected a name in every row.")
    names = found.tolist()
    if len(names) > 10_000:
        raise LogError(f"the table names {len(names):,} models. Expected at most 10,000.")
    if len(names) == 1:
        return {names[0]: slice(None)}
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    return dict(zip(names, np.split(order, ends[:-1]), strict=True))


def refuse_twice(
    tidy: Tidy, table: pd.DataFrame, parts: Mapping[str, Coded], models: Mapping[Hashable, Any],
    rows: IntArray,
) -> None:  # fmt: skip
    """Refuse an evaluation that a model has twice."""
    again = np.zeros(len(rows), dtype=bool)
    for mine in models.values():
        again[mine] = pd.Index(rows[mine]).duplicated()
    if again.any():
        names = [*parts, MODEL] if len(models) > 1 else list(parts)
        some = np.flatnonzero(again)[:MOST]
        shown = [place({name: label_of(table, parts, name, row) for name in names}) for row in some]
        raise LogError(
            f"an evaluation appears twice: {listed(shown, int(again.sum()))}. Expected each "
            f"({', '.join(names)}) once. {tidy.twice or apart(tidy, table, rows, names)}."
        )


def apart(tidy: Tidy, table: pd.DataFrame, rows: IntArray, names: Sequence[str]) -> str:
    """Say which column tells evaluations apart, or which argument may name one."""
    spare, drop = tidy.spare, "Drop the copies"
    advice = f"{drop}, or name the column that tells them apart"
    if spare is not None:
        size = len(spare)  # models of columns of their own stand below each other
        keys = pd.DataFrame({"row": rows[:size]})
        if MODEL in table:
            keys["model"] = table[MODEL].iloc[:size].to_numpy()
        found = telling_apart(spare, keys, {*names, *([MODEL] if MODEL in table else [])})
        if found:
            return f"{advice}: {found}"
    every = [name for name in ("point", "repetition", MODEL) if name not in names]
    taken = [name for name in every if tidy.takes is None or name in tidy.takes]
    others = " or ".join(f"{name}=" for name in taken)
    if others:
        return f"{advice}, such as {others}"
    return drop if every else advice


def label_of(table: pd.DataFrame, parts: Mapping[str, Coded], name: str, row: int) -> Any:
    """Look the label of a row up: of a level, or the name of its model."""
    if name not in parts:
        return table[name].iloc[row]
    codes, names = parts[name]
    return names[codes[row]]


def refuse_other_truths(table: pd.DataFrame, parts: Mapping[str, Coded]) -> None:
    """Refuse a point whose truth is not the same everywhere: its rows are mislabelled."""
    if TRUTH not in table or "point" not in parts:
        return
    who = [name for name in ("source", "point") if name in parts]
    truth = table[TRUTH]
    plain = isinstance(truth.dtype, np.dtype) and truth.dtype.kind in "biuf"
    values = truth.to_numpy() if plain else pd.factorize(truth)[0]
    known = np.flatnonzero(truth.notna())
    if not len(known):
        return
    group = combined([(parts[name][0][known], parts[name][1]) for name in who])
    first = known[first_rows(group)]
    other = np.flatnonzero(values[known] != values[first[group]])
    if len(other):
        bad = np.unique(group[other])
        row = first[bad[0]]
        second = known[other[group[other] == bad[0]][0]]
        where = place({name: label_of(table, parts, name, row) for name in who})
        raise LogError(
            f"the truth of {where} is {spelled(truth.iloc[row])} in one row and "
            f"{spelled(truth.iloc[second])} in another (and {len(bad) - 1:,} more points). "
            f"Expected one truth for each point. "
            f"The labels of the points do not mean the same everywhere."
        )


def spread(values: pd.Series, rows: IntArray, size: int) -> Any:
    """Put values where they belong; what no row tells stays missing."""
    plain = values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array
    if len(plain) == size and np.array_equal(rows, np.arange(size)):
        return plain
    there = np.flatnonzero(values.notna())[::-1]
    at = np.full(size, -1, dtype=np.int64)
    at[rows[there]] = there  # in reverse, so that the first one stays
    if (at >= 0).all():
        return plain[at]
    return values.reset_index(drop=True).reindex(at).array  # no row has the number -1


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
