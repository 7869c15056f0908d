"""Tidy tables as logs: `as_log`, and models aligned as columns by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.core.types import IntArray
from cvstats.errors import MOST, LogError, count_others, describe_type, listed, place, spelled
from cvstats.io.table import LOSS, MODEL, PREDICTION, PredictionTable, metric_column
from cvstats.large import frames
from cvstats.log.metadata import has_several
from cvstats.log.read import is_dask_frame
from cvstats.log.tables import (
    TRUTH,
    TableColumns,
    find_columns,
    from_arrow,
    index_to_columns,
    is_arrow,
    no_levels,
    unnamed_labels,
)
from cvstats.loss_functions.losses import is_name, is_one_name


def as_log(
    frame: pd.DataFrame,
    *,
    loss: str | Sequence[str] = "loss",
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    count: str | None = None,
) -> pd.Series | pd.DataFrame:
    """Make a loss log from a tidy table with other column names.

    Parameters
    ----------
    frame : DataFrame
        One row per evaluation (of each model). A dask DataFrame stays lazy.
    loss : str or sequence of str, optional
        The column of losses; a list if each model has its own column. Name the columns of truth
        and predictions here to keep them for `cvstats.losses`.
    model : str, optional
        The column that names the model, if models are stacked in rows; by default ``model``, if it
        exists.
    sample, outer, repetition, fold, source, point, count : str, optional
        The column (or index level) of each level; by default the one with the level's name.

    Returns
    -------
    Series or DataFrame
        The losses with the levels as index; one column per model if there are several. A dask
        DataFrame keeps its levels as columns, renamed to the standard names, because it cannot have
        several index levels; models stacked in rows stay stacked.

    Raises
    ------
    LogError
        If a column is missing, no level is found, or a model has an evaluation twice.

    Notes
    -----
    A column whose name resembles a missing level, such as ``subject`` or ``cv_fold``, is kept as an
    index level, and results have a caution about it.

    If each model has a column, the order of the rows is kept. The input is not modified. If a model
    lacks an evaluation, its loss is NaN, for which methods raise an error by default.

    References
    ----------
    Wickham (2014), Tidy data, Journal of Statistical Software 59(10),
    doi:10.18637/jss.v059.i10.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> table = pd.DataFrame({"cv_split": [0, 0, 1, 1], "id": list("abcd"), "se": [1.0, 2, 3, 4]})
    >>> cvstats.as_log(table, loss="se", fold="cv_split", point="id")
    fold  point
    0     a        1.0
          b        2.0
    1     c        3.0
          d        4.0
    Name: se, dtype: float64
    """
    named = {
        "sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
        "source": source, "point": point, "count": count,
    }  # fmt: skip
    if is_dask_frame(frame):
        log: pd.DataFrame = frames.rename_levels(frame, loss, model, named)
        return log
    if is_arrow(frame):
        frame = from_arrow(frame)
    if not isinstance(frame, pd.DataFrame):
        raise not_a_table(frame)
    alone = is_one_name(loss)
    losses: list[Any] = [loss] if alone else list(loss)
    asked = [*losses, *(name for name in (model, *named.values()) if name is not None)]
    if not losses or not all(map(is_name, asked)):
        strays = [repr(name) for name in asked if not is_name(name)]
        raise LogError(f"{(strays or ['loss='])[0]} names no column. Expected the name of one.")
    frame = index_to_columns(frame, [*LEVELS, *asked])
    if "loss" in losses and "loss" not in frame.columns and "y_true" in frame.columns:
        raise LogError(
            f"no column 'loss' among {listed(map(repr, frame.columns))}. Expected losses. "
            "Compute losses from predictions with cvstats.read_log(frame, truth=…, "
            "prediction=…, loss=…, fold=…, point=…)."
        )
    columns = find_columns(list(frame.columns), losses, named, model, single=alone)
    measure = metric_column(frame, columns.names)
    if not columns.levels:
        raise no_levels(list(frame.columns), "as_log(frame, fold='cv_split', point='id')")
    kept = [name for name in unnamed_labels(frame, columns) if is_shared(frame, name, columns)]
    values = losses if columns.model is None else [*losses, columns.model]
    try:
        put = [*([] if measure is None else [measure]), *columns.levels.values(), *kept]
        indexed = frame.set_index(put)[values]
    except TypeError:
        raise unhashable({to: frame[name] for to, name in columns.levels.items()}) from None
    indexed.index.names = [*([] if measure is None else ["metric"]), *columns.levels, *kept]
    for name in columns.levels.values():
        refuse_two_types(frame[name], name)
    made: pd.Series | pd.DataFrame
    if columns.model is not None:
        made = unstack_models(indexed, losses[0], columns.model)
    else:
        if alone and "point" in columns.levels:
            refuse_lost_labels(indexed.index, frame.drop(columns=[*put, *values]))
        made = indexed[losses[0]] if alone else indexed
    if measure is not None and not has_several(made.attrs):
        names = [str(name) for name in frame[measure].unique()]
        metrics = {name: {"loss": name} for name in names}
        made.attrs |= {"loss": ", ".join(names), "metric": names, "metrics": metrics}
    return made


def not_a_table(given: object) -> LogError:
    """Make the error for an object that is not a table, with a call that converts it."""
    name, once = type(given).__name__, "is a log once they have the names of levels:"
    if isinstance(given, (xr.DataArray, xr.Dataset)):
        dim = next((dim for dim in given.dims if dim not in LEVELS), "cv_split")
        way = f"With dimensions or coordinates it {once} array.rename({{{dim!r}: 'fold'}})."
    elif isinstance(given, pd.Series):
        way = f"With index levels it {once} series.rename_axis(index={{'cv_split': 'fold'}})."
    elif isinstance(given, (str, PurePath)):
        way = "Read a file with cvstats.read_log(path)."
    else:
        way = "Make one: cvstats.as_log(pandas.DataFrame({'fold': …, 'point': …, 'loss': …}))."
    return LogError(
        f"a {name} has no named columns. Expected a DataFrame with a row for each evaluation. {way}"
    )


def is_shared(frame: pd.DataFrame, name: str, columns: TableColumns) -> bool:
    """Whether a column has the same label for all models of an evaluation."""
    if columns.model is None:
        return True
    each = frame.groupby(list(columns.levels.values()), dropna=False, observed=True)[name]
    return not (each.nunique(dropna=False) > 1).any()


def refuse_lost_labels(index: pd.Index, others: pd.DataFrame) -> None:
    """Refuse repeated evaluations that differ in a column of text that would be left out."""
    kinds = {name: pd.api.types.infer_dtype(others[name]) for name in others}
    text = [name for name, kind in kinds.items() if kind in ("string", "categorical", "boolean")]
    if not text or not index.has_duplicates:
        return
    row = int(np.flatnonzero(index.duplicated())[0])
    levels = index.to_frame(index=False)
    for name in text:
        if not levels.assign(**{MODEL: others[name].to_numpy()}).duplicated().any():
            raise LogError(
                f"an evaluation occurs twice: {place(dict(levels.iloc[row]))}. Expected each "
                f"({', '.join(map(str, levels))}) once. The rows differ in the column {name!r}: "
                f"if it names the models, pass model={name!r}; if it names runs or groups, pass "
                f"repetition={name!r} or source={name!r}."
            )


def unstack_models(indexed: pd.DataFrame, loss: Hashable, model: Hashable) -> pd.DataFrame:
    """Make one column per model, in order of appearance."""
    nameless = np.flatnonzero(indexed[model].isna())
    if len(nameless):
        raise LogError(
            f"the model of row {nameless[0]:,} has no name (NaN). Expected a name in each row of "
            f"{model!r}."
        )
    order = pd.Index(list(dict.fromkeys(indexed[model])), name="model")
    wide = indexed.set_index(model, append=True)[loss]
    twice = wide.index[wide.index.duplicated()]
    if len(twice):
        names = [str(name) for name in wide.index.names]
        shown = [place(dict(zip(names, labels, strict=True))) for labels in twice[:MOST]]
        raise LogError(
            f"a model has the same evaluation twice: {listed(shown, len(twice))}. Expected each "
            f"({', '.join(names)}) once. Name the column in which they differ: repetition= for "
            "another split of the same points; or, if point= names a group of several points, "
            "source= for the group and point= for the points in it."
        )
    made = wide.unstack(model)[list(order)].set_axis(order, axis=1)
    if "fold" in made.index.names and made.isna().any(axis=None):
        table = indexed.index.to_frame(index=False)
        parts = {str(level): factorize_level(table[level], str(level)) for level in table}
        models = {name: np.flatnonzero(indexed[model] == name) for name in order}
        refuse_other_splits(table, parts, models, combine_codes(list(parts.values())))
    return made


# --- models as columns ----------------------------------------------------------------------------


@dataclass(frozen=True)
class AlignedPredictions:
    """Evaluations as rows, models as columns, and the columns of each model.

    The frame may share its memory with the table that was read.
    """

    frame: pd.DataFrame
    responses: dict[Hashable, str]
    probabilities: dict[Hashable, list[str]]
    classes: list[Hashable]


Coded = tuple[IntArray, pd.Index]
"""A code for each row, and the label of each code."""
MOST_KEYS = FAR = 1 << 62


def align(tidy: PredictionTable) -> AlignedPredictions:
    """Check a table and align its models as columns, by label."""
    table = tidy.table.reset_index(drop=True)
    if not len(table):
        raise LogError("the table is empty. Expected at least one evaluation.")
    levels = [level for level in LEVELS if level in table.columns]
    if not levels:
        call = "read_log(path, fold='cv_split', point='id', loss=…)"
        raise no_levels(list(table.columns), call)
    parts = {
        level: factorize_level(table[level], level) for level in dict.fromkeys([*levels, *tidy.by])
    }
    by_model = rows_by_model(table)
    rows = combine_codes(list(parts.values()))
    first = first_rows(rows)
    incomplete = len(first) * len(by_model) != len(rows)
    if incomplete and (tidy.separate or "fold" in parts):
        refuse_other_splits(table, parts, by_model, rows)
    if len(first) < len(rows):
        refuse_twice(tidy, table, parts, by_model, rows)
    refuse_other_truths(table, parts, tidy.further)
    beside = {name: factorize(table[name]) for name in tidy.kept if name not in parts}
    beside = {name: it for name, it in beside.items() if (it[0] == it[0][first[rows]]).all()}
    index = make_index({**parts, **beside}, first)
    columns: dict[str, Any] = {}
    if TRUTH in table:
        columns[TRUTH] = scatter(table[TRUTH], rows, len(index))
    for name in tidy.further:
        columns[name] = scatter(table[name], rows, len(index))
    held = PREDICTION if PREDICTION in table else LOSS
    every = dict.fromkeys(tidy.models, slice(None)) or by_model
    refuse_same_names([*columns, *(str(model) for model in every if model is not None)])
    responses: dict[Hashable, str] = {}
    probabilities: dict[Hashable, list[str]] = {}
    for model, mine in every.items():
        responses[model] = held if model is None else str(model)
        values = table[tidy.models.get(model, held)][mine]
        columns[responses[model]] = scatter(values, rows[mine], len(index))
        if tidy.probabilities:
            probabilities[model] = []
            for column in tidy.probabilities.values():
                name = column if len(every) == 1 else f"{model}:{column}"
                probabilities[model].append(name)
                columns[name] = scatter(table[column][mine], rows[mine], len(index))
    frame = pd.DataFrame(columns, index=index, copy=False)
    classes = like_truth(list(tidy.probabilities), table)
    return AlignedPredictions(frame, responses, probabilities, classes)


def refuse_same_names(names: list[str]) -> None:
    """Refuse models whose names, as text, are equal, or equal to the truth's."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise LogError(
            f"two of the columns of models and truth are called {twice!r}. Expected names that "
            "differ as text. Rename one of them."
        )


def rows_by_model(table: pd.DataFrame) -> dict[Hashable, Any]:
    """Find the rows of each model, in the order of their appearance."""
    if MODEL not in table:
        return {None: slice(None)}
    codes, found = pd.factorize(table[MODEL])
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise LogError(f"the model of row {row:,} has no name. Expected a name in every row.")
    names = found.tolist()
    if len(names) == 1:
        return {names[0]: slice(None)}
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    return dict(zip(names, np.split(order, ends[:-1]), strict=True))


def refuse_other_splits(
    table: pd.DataFrame, parts: Mapping[str, Coded], models: Mapping[Hashable, Any], rows: IntArray
) -> None:
    """Refuse models evaluated on different splits of the same points."""
    if "point" not in parts or not {"fold", "repetition"} & set(parts):
        return
    split = "fold" if "fold" in parts else "repetition"
    places = np.arange(len(rows))
    keys = combine_codes([part for name, part in parts.items() if name != split])
    (first, mine), *others = ((model, places[at]) for model, at in models.items())
    for other, its in others:
        gone, new = mine[~np.isin(rows[mine], rows[its])], its[~np.isin(rows[its], rows[mine])]
        moved = gone[np.isin(keys[gone], keys[new])]
        both = np.union1d(rows[mine], rows[its])
        gaps = split != "fold" and len(both) == len(parts[split][1]) * (keys.max() + 1)
        if len(moved) and not gaps:
            row = moved[0]
            there = new[keys[new] == keys[row]][0]
            names = [name for name in ("repetition", "fold") if name in parts]
            shown = [
                place({name: label_of(table, parts, name, at) for name in names})
                for at in (row, there)
            ]
            raise LogError(
                f"{first!r} and {other!r} have different splits: point "
                f"{spelled(label_of(table, parts, 'point', row))} is in {shown[0]} of one and in "
                f"{shown[1]} of the other. Expected the same splits for every model. Evaluate each "
                f"with cv=list(splitter.split(X, y))."
            )


def refuse_twice(
    tidy: PredictionTable, table: pd.DataFrame, parts: Mapping[str, Coded],
    models: Mapping[Hashable, Any], rows: IntArray,
) -> None:  # fmt: skip
    """Refuse duplicate evaluations of a model."""
    again = np.zeros(len(rows), dtype=bool)
    for mine in models.values():
        again[mine] = pd.Index(rows[mine]).duplicated()
    if again.any():
        names = [*parts, MODEL] if len(models) > 1 else list(parts)
        some = np.flatnonzero(again)[:100]
        each = (place({name: label_of(table, parts, name, row) for name in names}) for row in some)
        shown = list(dict.fromkeys(each))[:MOST]
        own = ("point", "repetition", "fold", MODEL, "source")
        others = [name for name in own if name not in names]
        options = [f"{name}=" for name in others if tidy.takes is None or name in tidy.takes]
        advice = []
        if "point" in names and table.duplicated().to_numpy()[again].all():
            advice.append("Drop duplicate rows with drop_duplicates=True.")
        if options:
            advice.append(f"Name the column in which they differ: {' or '.join(options)}.")
        if "point=" in options and len(models) == 1:
            advice.append(
                "If each row is a different point, number them: table['point'] = range(len(table))."
            )
        plain = set(names) <= {*own, "outer", "sample", "count"}
        if "point" in names and plain and (tidy.takes is None or "point" in tidy.takes):
            advice.append("If they are lead times or other conditions, pass by='lead_time'.")
        raise LogError(
            f"an evaluation occurs twice: {listed(shown, int(again.sum()))}. Expected each "
            f"({', '.join(names)}) once. {f'{tidy.twice}.' if tidy.twice else ' '.join(advice)}"
        )


def label_of(table: pd.DataFrame, parts: Mapping[str, Coded], name: str, row: int) -> Any:
    """Look up the label of a row in a level, or the name of its model."""
    if name not in parts:
        return table[name].iloc[row]
    codes, names = parts[name]
    return names[codes[row]]


def refuse_other_truths(
    table: pd.DataFrame, parts: Mapping[str, Coded], further: Sequence[str]
) -> None:
    """Refuse a point whose truth differs between rows: its rows are mislabeled.

    Truths may differ between the labels of ``by``, such as lead times from one origin.
    """
    if TRUTH not in table or "point" not in parts:
        return
    codes, labels = parts["point"]
    if are_different(codes, len(labels)):
        return
    who = [name for name in parts if name in ("source", "point") or name not in LEVELS]
    every = combine_codes([parts[name] for name in who])
    for column in (TRUTH, *further):
        truth, what = table[column], "truth" if column == TRUTH else repr(column)
        plain = isinstance(truth.dtype, np.dtype) and truth.dtype.kind in "biuf"
        values = truth.to_numpy() if plain else pd.factorize(truth)[0]
        known = np.flatnonzero(truth.notna())
        group = every[known]
        first = np.zeros(len(table), dtype=np.int64)
        first[group[::-1]] = known[::-1]  # the last assignment wins
        other = np.flatnonzero(values[known] != values[first[group]])
        if len(other):
            bad = np.unique(group[other])
            row = first[bad[0]]
            second = known[other[group[other] == bad[0]][0]]
            where = place({name: label_of(table, parts, name, row) for name in who})
            raise LogError(
                f"the {what} of {where} is {spelled(truth.iloc[row])} in one row but "
                f"{spelled(truth.iloc[second])} in another{count_others(len(bad))}. "
                f"Expected one {what} for each point. The labels of points must have the same "
                "meaning in all rows."
            )


def scatter(values: pd.Series, rows: IntArray, size: int) -> Any:
    """Scatter the values of rows to their positions; positions without a row are missing."""
    plain = values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array
    if len(plain) == size and (rows[1:] > rows[:-1]).all():
        return plain
    there = np.flatnonzero(values.notna())[::-1]
    at = np.full(size, -1, dtype=np.int64)
    at[rows[there]] = there  # in reverse, so that the first one wins
    return values.reset_index(drop=True).reindex(at).array  # no row has the number -1


def like_truth(classes: list[Hashable], table: pd.DataFrame) -> list[Hashable]:
    """Convert classes from column names to the type of the truth."""
    if not classes or TRUTH not in table:
        return classes
    known: dict[str, Hashable] = {}
    names, strange = {*map(str, classes)}, []
    for label in pd.unique(table[TRUTH].dropna()):
        plain = label.item() if isinstance(label, np.generic) else label
        whole = isinstance(plain, float) and plain == np.floor(plain)
        spellings = {str(plain), str(int(plain)) if whole else str(plain)}
        known |= dict.fromkeys(spellings, plain)
        if names.isdisjoint(spellings):
            strange.append(plain)
    if strange:
        raise LogError(
            f"the truth contains {listed(map(repr, strange))}, but there is no such column of "
            f"probabilities. Expected one of {listed(map(repr, classes))}."
        )
    return [known.get(str(name), name) for name in classes]


# --- labels as numbers ----------------------------------------------------------------------------


def factorize_level(labels: pd.Series, level: str) -> Coded:
    """Factorize and check the labels of a level; 1.0, 2.0, … become 1, 2, …."""
    try:
        codes, names = factorize(labels)
    except TypeError:
        raise unhashable({level: labels}) from None
    gone = np.flatnonzero(codes < 0)
    if len(gone):
        more = len(gone) - 1
        rest = f" (and {more:,} more evaluation{'s' if more > 1 else ''})" if more else ""
        raise LogError(
            f"row {gone[0]:,} has no {level}{rest}. Expected a label in every row. Drop rows "
            "without labels, as in frame.dropna(subset=[…])."
        )
    if names.dtype.kind == "f":
        values = names.to_numpy()
        if np.isinf(values).any():
            raise LogError(f"a label of {level!r} is infinite. Expected names or numbers.")
        if (np.abs(values) < 2**53).all() and (values == np.floor(values)).all():
            names = names.astype(np.int64)
    refuse_two_types(names, level)
    return codes, names


def refuse_two_types(names: pd.Index | pd.Series, level: str) -> None:
    """Refuse a number that is also a label as text: files of one log may store it as either."""
    if names.dtype != object or pd.api.types.infer_dtype(names, skipna=True) == "string":
        return
    labels = names.unique()
    numbers = {name for name in labels if isinstance(name, (int, float, np.number))}
    text = [name for name in labels if isinstance(name, str)]
    whole = [name for name in text if name.isdecimal() and len(name) < 19]
    twice = next((name for name in whole if int(name) in numbers), None)
    if twice is not None:
        way = "pandas.to_numeric(frame[{0!r}])" if whole == text else "frame[{0!r}].astype(str)"
        raise LogError(
            f"{level!r} has the number {int(twice)} and the text {twice!r} as labels. Expected "
            f"labels of one type. Convert them, as in {way.format(level)}."
        )


def unhashable(labels: Mapping[str, pd.Series]) -> LogError:
    """Create the error for lists and similar objects as labels of a level."""
    level, odd = next(
        (level, label)
        for level, column in labels.items()
        for label in column
        if not pd.api.types.is_hashable(label)
    )
    return LogError(f"a label of {level!r} is {describe_type(odd)}. Expected names or numbers.")


def factorize(values: Any) -> Coded:
    """Factorize labels in sorted order, with -1 for missing ones."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        every = pd.Categorical.from_codes(range(len(dtype.categories)), dtype=dtype)
        return pd.Categorical(values).codes, pd.CategoricalIndex(every)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and len(values):
        whole_numbers = np.asarray(values)
        least, most = int(whole_numbers.min()), int(whole_numbers.max())
        if most - least < 4 * len(values) and least > -FAR and most < FAR:
            return factorize_range(whole_numbers, least, most)
    found = pd.Categorical(values)
    return found.codes, found.categories


def factorize_range(values: IntArray, least: int, most: int) -> Coded:
    """Factorize integers in a narrow range, without a lookup table."""
    small = np.dtype(np.int32 if most - least < 1 << 31 else np.int64)
    at = np.subtract(
        values, least, dtype=np.int64, casting="unsafe", out=np.empty(len(values), small)
    )
    seen = np.zeros(most - least + 1, dtype=bool)
    seen[at] = True
    if not seen.all():
        place = np.cumsum(seen, dtype=at.dtype)
        place -= 1
        at = place[at]
        return at, pd.Index((np.flatnonzero(seen) + least).astype(values.dtype))
    if values.dtype == np.int64:
        return at, pd.RangeIndex(least, most + 1)  # uses no memory
    return at, pd.Index(np.arange(least, most + 1).astype(values.dtype))


def combine_codes(parts: Sequence[Coded]) -> IntArray:
    """Assign numbers to combinations of labels, in order of appearance."""
    if any(are_different(codes, len(names)) for codes, names in parts):
        return np.arange(len(parts[0][0]))
    key, size = parts[0][0].astype(np.int64), len(parts[0][1])
    for codes, names in parts[1:]:
        if size * len(names) > MOST_KEYS:
            key, known = pd.factorize(key)
            size = len(known)
        key *= len(names)
        key += codes
        size *= len(names)
    ordered = np.sort(key)  # much faster than hashing
    if (ordered[1:] != ordered[:-1]).all():
        return np.arange(len(key))
    return pd.factorize(key)[0]


def are_different(codes: IntArray, size: int) -> bool:
    """Whether no code of 0, 1, …, size - 1 occurs twice."""
    if size < len(codes):
        return False
    seen = np.zeros(size, dtype=bool)
    seen[codes] = True
    return bool(np.count_nonzero(seen) == len(codes))


def first_rows(group: IntArray) -> IntArray:
    """Find the first row of each group, numbered in order of appearance."""
    if group[-1] == len(group) - 1:
        return group  # each occurs once
    first = np.empty(int(group.max()) + 1, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)  # the last assignment wins
    return first


def make_index(parts: dict[str, Coded], rows: IntArray) -> pd.Index:
    """Make the index of some rows."""
    if len(parts) == 1:
        ((level, (codes, names)),) = parts.items()
        return names.take(codes[rows]).set_names(level)
    return make_multi_index([(codes[rows], names) for codes, names in parts.values()], list(parts))


def make_multi_index(parts: Sequence[Coded], names: Sequence[Any]) -> pd.MultiIndex:
    """Make an index of numbered labels."""
    levels: list[Any] = [labels for _, labels in parts]
    codes: list[Any] = [numbers for numbers, _ in parts]
    return pd.MultiIndex(levels=levels, codes=codes, names=list(names), verify_integrity=False)
