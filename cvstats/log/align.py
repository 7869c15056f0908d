"""Align two logs: evaluations are matched by label, never by position."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS, Design
from cvstats.core.loss_columns import LossColumns
from cvstats.core.orientation import TARGET
from cvstats.core.types import IntArray
from cvstats.errors import MOST, LogError, describe_type, listed, place, spelled, unpaired
from cvstats.log import pandas as frames
from cvstats.log import xarray as arrays
from cvstats.log.log import Log
from cvstats.log.metadata import (
    DIFFERENCE_FROM,
    OF_OTHER,
    ONE_PREDICTION,
    RATIOS,
    attrs_of_log,
    has_own_scale,
    has_several,
    note_of_model,
)
from cvstats.log.pandas import as_index
from cvstats.log.xarray import ArrayLabels

EXPECTED = "Expected the same evaluations in both: the same points in the same folds."


@singledispatch
def align_logs(one: Any, two: Any) -> Any:
    """Reorder the second log to match the evaluations of the first.

    Raises
    ------
    LogError
        If the logs are of different kinds or were not evaluated on the same points and folds.
    """
    raise LogError(
        f"{describe_type(one)} is not a loss log. Expected two pandas or two xarray objects, "
        "one log per model."
    )


def refuse_other_kind(one: object, two: object) -> None:
    """Refuse logs in different kinds of containers."""
    if isinstance(two, type(one)):
        return
    hint = ""
    if isinstance(one, pd.DataFrame) and isinstance(two, pd.Series):
        hint = " Make it a column: log.assign(other=other), and pass reference='other'."
    elif isinstance(two, str):
        hint = f" To name a model, pass reference={two!r}."
    elif isinstance(two, np.ndarray | list | tuple):
        hint = (
            " Plain numbers have no labels for pairing. If they are in the order of the first "
            "log, add its index: pandas.Series(numbers, log.index), or array.copy(data=numbers)."
        )
    raise LogError(
        f"{describe_type(one)} cannot be compared to {describe_type(two)}. Expected two logs "
        f"of the same kind.{hint}"
    )


SAME = ("holds", "metric", "loss", "units")
"""Attrs that must agree if both logs have them."""

NOT_OF_DIFFERENCES = (
    "range", "no_information", "scale", "limits", TARGET, ONE_PREDICTION, OF_OTHER,
)  # fmt: skip
"""Attrs of losses that do not apply to their differences."""


def same_facts(one: Any, two: Any) -> dict[Any, Any]:
    """Find the attrs that two logs share, and refuse losses that mean different things.

    Raises
    ------
    LogError
        If one log holds scores of splits and the other losses of points, or if their metrics,
        losses or units differ.
    """
    return share_facts(attrs_of_log(one), attrs_of_log(two))


def share_facts(mine: Mapping[Any, Any], yours: Mapping[Any, Any]) -> dict[Any, Any]:
    """Find the attrs that are equal, also those of each of several metrics."""
    for name in SAME:
        stated = name == "holds" or (name in mine and name in yours)
        if stated and repr(mine.get(name)) != repr(yours.get(name)):
            raise LogError(
                f"the logs differ in attrs[{name!r}]: {spelled(mine.get(name))} and "
                f"{spelled(yours.get(name))}. Expected the same kind of losses in both. Create "
                "both logs in the same way, or correct the attrs."
            )
    found = {
        name: fact
        for name, fact in mine.items()
        if name in yours and repr(fact) == repr(yours[name])
    }
    if ONE_PREDICTION in mine and ONE_PREDICTION in yours:
        found |= {ONE_PREDICTION: mine[ONE_PREDICTION], OF_OTHER: yours[ONE_PREDICTION]}
    if has_several(mine) and has_several(yours):
        parts, others = mine["metrics"], yours["metrics"]
        found["metrics"] = {
            name: share_facts(part, others[name]) for name, part in parts.items() if name in others
        }
    return found


def facts_of_differences(
    facts: Mapping[Any, Any],
    reference: Hashable = None,
    models: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
) -> dict[Any, Any]:
    """Choose the attrs of differences of losses: a difference of 1 - score is one of -score.

    ``models`` are those of both logs, if a log was subtracted from another.
    """
    found = {name: fact for name, fact in facts.items() if name not in NOT_OF_DIFFERENCES}
    if (reaches := note_both_models(facts, reference, models)) is not None:
        found[ONE_PREDICTION] = reaches
    if found.get("orientation") == "1 - score":
        found["orientation"] = "-score"
    if isinstance(found.get("metrics"), Mapping):
        found["metrics"] = {
            name: facts_of_differences(part, reference, models)
            if isinstance(part, Mapping) else part
            for name, part in found["metrics"].items()
        }  # fmt: skip
    return found


def note_both_models(
    facts: Mapping[Any, Any],
    reference: Hashable,
    models: tuple[Sequence[Hashable], Sequence[Hashable]] | None,
) -> str | None:
    """Note how much one prediction can change both models of a difference; None if unknown.

    Its label names both of them, or one that ``reference`` was subtracted from, or, of two logs,
    the first one.
    """
    if has_own_scale(facts) and facts.get("metric") not in RATIOS:
        return None
    keys = (ONE_PREDICTION,) if models is None else (ONE_PREDICTION, OF_OTHER)
    if not all(isinstance(facts.get(key), str) for key in keys):
        return None
    found, other = (json.loads(facts[key]) for key in (keys[0], keys[-1]))
    same = all(found[name] == other[name] for name in ("cells", "carried"))
    if not same or "differences" in found:
        return None
    found["differences"] = None if reference is None else str(reference)
    if models is not None:
        mine, yours = models
        pairs = list(zip(mine, yours if len(yours) == 1 else mine, strict=True))
        for side, notes in enumerate((found["models"], other["models"])):
            own = {str(pair[0]): note_of_model(notes, pair[side]) for pair in pairs}
            if None in own.values():
                return None
            found["others" if side else "models"] = own
    return json.dumps(found)


def match_models(mine: Sequence[Hashable], yours: Sequence[Hashable]) -> list[int]:
    """For each model of one log, find the position of the model with its name in the other."""
    if len(mine) == len(yours) == 1:
        return [0]
    if len(mine) != len(yours) or set(mine) != set(yours):
        raise LogError(
            f"the logs have different models: {listed(map(repr, mine))} in the first; "
            f"{listed(map(repr, yours))} in the second. Expected one model in each, or the same "
            "in both."
        )
    return [list(yours).index(model) for model in mine]


@align_logs.register(pd.Series)
@align_logs.register(pd.DataFrame)
def _(one: Any, two: Any) -> Any:
    if isinstance(one, pd.Series) and isinstance(two, pd.DataFrame) and two.shape[1] == 1:
        two = two.iloc[:, 0]
    elif isinstance(one, pd.DataFrame) and isinstance(two, pd.Series) and one.shape[1] == 1:
        two = two.to_frame()
    refuse_other_kind(one, two)
    if isinstance(one, pd.DataFrame):
        for log in (one, two):
            frames.FrameLabels.of(log)
        two = two.iloc[:, match_models(list(one.columns), list(two.columns))]
    return two.iloc[match_rows(one.index, two.index)].set_axis(one.index, axis=0)


COMMON_ROWS = (
    "common = log.index.intersection(other.index); log, other = log.loc[common], other.loc[common]"
)
COMMON_CELLS = "log, other = xarray.align(log, other, join='inner')"


def match_rows(one: pd.Index, two: pd.Index, common: str = COMMON_ROWS) -> Any:
    """Find the positions of the evaluations of one index in another."""
    if one.is_(two):
        return slice(None)
    # A MultiIndex of one level has names, but no name.
    one, two = (index.get_level_values(0) if index.nlevels == 1 else index for index in (one, two))
    if set(one.names) != set(two.names):
        both = {*one.names} & {*two.names}
        apart = [name for name in (*one.names, *two.names) if name not in both]
        way = f"Drop it, as in log.droplevel({apart[0]!r})."
        if None in apart:
            apart.remove(None)
            way = (
                f"Put them into the index, as in frame.set_index({apart!r}); or, if both logs have "
                "the same order, use the index of the other: log.set_axis(other.index)."
            )
        raise LogError(
            f"the logs have different levels: only one of them has {listed(map(repr, apart))}. "
            f"Expected the same levels in both. {way}"
        )
    if one.nlevels == 1 and one.name is None:
        raise LogError(
            "two logs without levels cannot be matched row by row. Expected at least a level "
            "'point' that names the evaluations. Type log.rename_axis('point')."
        )
    if isinstance(two, pd.MultiIndex) and one.names != two.names:
        two = two.reorder_levels(list(one.names))
    named = "point" in one.names
    if named and one.equals(two):
        return slice(None)
    for index, which in ((one, "first"), (two, "second")):
        if not index.is_unique:
            raise duplicates_error(index, which, named)
    if one.equals(two):
        return slice(None)
    at = two.get_indexer(one)
    if (at < 0).any() or len(one) != len(two):
        raise unpaired_error(one, two, at, common)
    return at


def duplicates_error(index: pd.Index, which: str, named: bool) -> LogError:
    """Make the error for labels that do not identify evaluations."""
    shown = list_labels(index, np.flatnonzero(index.duplicated()))
    if named:
        return LogError(
            f"the same evaluation appears twice in the {which} log: {shown}. Expected each once. "
            f"Drop the copies: log[~log.index.duplicated()]."
        )
    return LogError(
        f"the {which} log has no level 'point', and its other levels do not identify the "
        f"evaluations: {shown} occurs more than once. Expected an identifier for each point in "
        "both logs. Add it: log.set_axis(points).rename_axis('point'), or cvstats.as_log(frame, "
        "point='id')."
    )


def unpaired_error(one: pd.Index, two: pd.Index, at: IntArray, common: str) -> LogError:
    """Make the error for evaluations that differ; different folds are not different points.

    ``at`` are the positions of the evaluations of the first log in the second, -1 for those that it
    lacks. ``common`` is the code that keeps the evaluations that both logs share, if they share
    any.
    """
    if (
        isinstance(one, pd.MultiIndex) and isinstance(two, pd.MultiIndex)
        and "fold" in one.names and one.nlevels > 1
    ):  # fmt: skip
        rest, other = one.droplevel("fold"), two.droplevel("fold")
        unique = rest.is_unique and other.is_unique and len(rest) == len(other)
        there = other.get_indexer(rest) if unique else at
        if unique and (there >= 0).all():
            row = int((at < 0).argmax())
            folds = one.get_level_values("fold")[row], two.get_level_values("fold")[there[row]]
            plan = "Evaluate both models with the same plan."
            return LogError(
                f"the models were evaluated in different folds: {format_label(rest, row)} is in "
                f"fold {spelled(folds[0])} of the first log but in fold {spelled(folds[1])} of the "
                f"second. A paired comparison needs the same partition for both models. {EXPECTED} "
                f"{suggest_conversion(one, two, common) or plan}"
            )
    only_one, only_two = np.flatnonzero(at < 0), np.setdiff1d(np.arange(len(two)), at)
    parts = [
        f"only the {which} log has {list_labels(index, rows)}"
        for which, index, rows in (("first", one, only_one), ("second", two, only_two))
        if len(rows)
    ]
    some = f"Keep the common ones with {common}; or evaluate" if (at >= 0).any() else "Evaluate"
    advice = suggest_conversion(one, two, common) or f"{some} both models with the same plan."
    return unpaired(f"{', and '.join(parts)}. {EXPECTED} {advice}")


def suggest_conversion(one: pd.Index, two: pd.Index, common: str) -> str:
    """Advise to convert the labels of a level that are equal only when written as text."""
    for name in one.names:
        mine, yours = one.unique(name), two.unique(name)
        if not mine.isin(yours).any() and mine.astype(str).isin(yours.astype(str)).any():
            convert = f"log[{name!r}].astype(str)"
            if common == COMMON_ROWS:
                convert = f"log.rename(index=str, level={name!r})"
            return (
                f"The labels of {name!r} have the type {type(mine[0]).__name__} in the first log "
                f"and {type(yours[0]).__name__} in the second. Convert both to text, as in "
                f"{convert}."
            )
    return ""


def list_labels(index: pd.Index, rows: IntArray) -> str:
    """List the first labels of some rows of an index."""
    return listed([format_label(index, int(row)) for row in rows[:MOST]], len(rows))


def format_label(index: pd.Index, row: int) -> str:
    """Format one label of an index."""
    label = index[row]
    labels = label if isinstance(index, pd.MultiIndex) else (label,)
    return place(dict(zip(map(str, index.names), labels, strict=True)))


@align_logs.register(xr.DataArray)
@align_logs.register(xr.Dataset)
def _(one: Any, two: Any) -> Any:
    refuse_other_kind(one, two)
    if set(one.dims) != set(two.dims):
        raise LogError(
            f"the logs have different dimensions: {tuple(one.dims)} and {tuple(two.dims)}. "
            f"Expected the same in both."
        )
    if isinstance(one, xr.Dataset):
        names = list(two.data_vars)
        two = two[[names[i] for i in match_models(list(one.data_vars), names)]]
    for name in LEVELS:
        if (name in one.coords) != (name in two.coords):
            raise LogError(
                f"the logs have different levels: only one of them has {name!r}. Expected the same "
                f"levels in both. Drop it, as in log.drop_vars({name!r})."
            )
    tested = arrays.level_dims(one if isinstance(one, xr.DataArray) else one[next(iter(one))])
    one, two = load_levels(one, tested), load_levels(two, tested)
    for dim in one.dims:
        two = two.isel({dim: match_labels(one, two, dim, dim in tested)})
    for name in LEVELS:
        if not same_coordinate(one, two, name):
            mine, yours = (pd.Index(np.ravel(log[name]), name=name) for log in (one, two))
            raise LogError(
                f"the models were evaluated in different {name}s: the {name!r} coordinates of the "
                f"two logs differ. A paired comparison needs the same partition for both models. "
                f"Expected each point to be in the same {name} in both logs. "
                f"{suggest_conversion(mine, yours, COMMON_CELLS)}".rstrip()
            )
    if isinstance(one, xr.Dataset):
        pairs = zip(one.data_vars, two.data_vars, strict=True)
        turned = {
            yours: two[yours].variable.transpose(*one[mine].dims)  # coordinates stay as they are
            for mine, yours in pairs
        }
        return two.assign(turned)
    return two.transpose(*one.dims)


def load_levels(log: Any, tested: tuple[Hashable, ...]) -> Any:
    """Load lazy levels, which are compared before any loss is computed."""
    if isinstance(log, xr.DataArray):
        return arrays.in_memory(log, tested)
    loaded = arrays.in_memory(log[next(iter(log))], tested)  # the first model of a Dataset
    return log.assign_coords({name: loaded.coords[name] for name in loaded.coords})


def labels_along(log: Any, dim: Hashable, counted: bool) -> pd.Index | None:
    """Find the labels of a dimension: its index, otherwise the levels along it."""
    if dim in log.indexes:
        index = log.indexes[dim]
        return index if isinstance(index, pd.MultiIndex) else index.rename(str(dim))
    if dim in LEVELS or not counted:
        return None
    along = [name for name in LEVELS if name in log.coords and log.coords[name].dims == (dim,)]
    if along:
        values = [log.coords[name].values for name in along]
        several = len(along) > 1
        labels: pd.Index = (
            pd.MultiIndex.from_arrays(values, names=along)
            if several
            else pd.Index(values[0], name=along[0])
        )
        if "point" in log.coords or labels.is_unique:  # such as scores, one per split
            return labels
    if "point" in log.coords and dim in log.coords["point"].dims:
        return None  # its coordinate is compared as a whole
    raise LogError(
        f"no coordinate along the dimension {dim!r} identifies the points. Expected a coordinate "
        f"'point' in both logs, as in log.assign_coords(point=({dim!r}, points))."
    )


def match_labels(one: Any, two: Any, dim: Hashable, counted: bool) -> Any:
    """Find the positions of the labels of one log's dimension in another."""
    mine, yours = (labels_along(log, dim, counted) for log in (one, two))
    if mine is None or yours is None:
        if one.sizes[dim] != two.sizes[dim]:
            raise LogError(
                f"the logs differ in length along {dim!r}: {one.sizes[dim]:,} and "
                f"{two.sizes[dim]:,}. Expected the same evaluations in both."
            )
        return slice(None)
    if dim == "model":
        return match_models(list(mine), list(yours))
    return slice(None) if mine.equals(yours) else match_rows(mine, yours, COMMON_CELLS)


def same_coordinate(one: Any, two: Any, name: str) -> bool:
    """Whether a level that is a coordinate of both logs is equal in both."""
    if name not in one.coords or name in one.indexes or name in two.indexes:
        return True  # the logs were matched by their indexes
    mine, yours = (log.coords[name].variable.to_base_variable() for log in (one, two))
    if set(mine.dims) != set(yours.dims):
        return False
    return bool(mine.equals(yours.transpose(*mine.dims)))


def subtract_logs(one: Any, two: Any) -> Any:
    """Subtract the second log from the first; labels and levels are those of the first."""
    facts = same_facts(one, two)
    two = align_logs(one, two)
    gaps: Any
    if isinstance(one, pd.Series):
        gaps = (as_floats(one) - as_floats(two)).rename(one.name)
    elif isinstance(one, pd.DataFrame):
        gaps = as_floats(one) - as_floats(two.set_axis(one.columns, axis=1))
    elif isinstance(one, xr.DataArray):
        gaps = subtract_array(one, two)
    else:
        pairs = zip(one.data_vars, two.data_vars, strict=True)
        gaps = one.assign(
            {mine: subtract_array(one[mine], two[yours]).variable for mine, yours in pairs}
        )
    gaps.attrs = facts_of_differences(facts, models=(list_models(one), list_models(two)))
    own, reference = name_only_model(one), name_only_model(two)
    if own is not None and reference not in (None, own):
        gaps.attrs[DIFFERENCE_FROM] = reference
    return gaps


def name_only_model(log: Any) -> Hashable:
    """Return the name of the only model of a log; None for several and without a name."""
    models = list_models(log)
    # The name of an array need not be that of a model.
    return models[0] if len(models) == 1 and not isinstance(log, xr.DataArray) else None


def as_floats(log: Any) -> Any:
    """Convert losses to float64, so that unsigned and boolean ones do not wrap around."""
    if isinstance(log, pd.DataFrame):
        plain = all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in log.dtypes)
        return log.astype(np.float64) if plain else log.apply(as_floats)
    return pd.Series(frames.numbers(log).astype(np.float64), index=log.index, name=log.name)


def subtract_array(one: xr.DataArray, two: xr.DataArray) -> xr.DataArray:
    """Subtract the numbers of another array, whose coordinates have been compared."""
    for array in (one, two):
        if array.dtype.kind not in "fiub":
            raise arrays.no_numbers(array)
    left, right = one.astype(np.float64), two.variable.astype(np.float64)
    with xr.set_options(keep_attrs=True):
        gap: xr.DataArray = left - right
    return gap.transpose(*one.dims)


def zeros_like(losses: Any) -> Any:
    """Make a log of zeros, which differences are compared with."""
    if not isinstance(losses, (pd.Series, pd.DataFrame, xr.DataArray, xr.Dataset)):
        raise LogError(
            f"compare(0) needs losses, but this is {describe_type(losses)}. Expected the log of "
            "differences itself. Use interval, which has the same limits."
        )
    zeros = losses * 0
    if isinstance(zeros, (pd.Series, xr.DataArray)):
        zeros.name = 0
    zeros.attrs = {**getattr(losses, "attrs", {}), CONSTANT: 0}
    if ONE_PREDICTION in zeros.attrs:  # no prediction changes them
        cells = json.loads(zeros.attrs[ONE_PREDICTION])["cells"]
        none = {"cells": cells, "carried": {}, "models": {"": [[[0.0] * 4] * len(cells)]}}
        zeros.attrs[ONE_PREDICTION] = json.dumps(none)
    return zeros


CONSTANT = "constant"
"""Where a log of a single metric names it."""


def difference_from(log: Any, reference: Any) -> Any:
    """Subtract the reference from every other model."""
    if isinstance(log, pd.DataFrame):
        floats = as_floats(log)
        return floats.drop(columns=[reference]).sub(floats[reference], axis=0)
    if isinstance(log, xr.DataArray):
        models = list_models(log)
        others = [i for i, label in enumerate(models) if label != reference]
        return subtract_array(log.isel(model=others), log.isel(model=models.index(reference)))
    if isinstance(log, xr.Dataset):
        rest = log.drop_vars(reference)
        gaps = {name: subtract_array(rest[name], log[reference]) for name in rest.data_vars}
        return rest.assign({name: gap.variable for name, gap in gaps.items()})
    raise LogError(f"{describe_type(log)} has no models to choose a reference from.")


def list_models(log: Any) -> list[Hashable]:
    """List the models of a log: its name if it has one model, numbers without labels."""
    if isinstance(log, (pd.DataFrame, xr.Dataset)):
        return list(log)
    if isinstance(log, pd.Series) or "model" not in log.dims:
        return [log.name]
    return list(log.indexes["model"]) if "model" in log.indexes else list(range(log.sizes["model"]))


def every_pair(log: Any) -> Any:
    """Subtract the second model of each pair from the first."""
    if isinstance(log, pd.DataFrame):
        floats = as_floats(log)
        pairs = list(combinations(log.columns, 2))
        gaps = {pair: floats[pair[0]] - floats[pair[1]] for pair in pairs}
        columns = pd.MultiIndex.from_tuples(pairs, names=["model", "other"])
        return pd.DataFrame(gaps, index=log.index).set_axis(columns, axis=1)
    if not isinstance(log, xr.DataArray | xr.Dataset):
        raise LogError(f"{describe_type(log)} has no models to pair.")
    array = log.to_dataarray("model") if isinstance(log, xr.Dataset) else log
    models = list_models(array)
    left, right = np.triu_indices(len(models), 1)
    paired = array.drop_vars("model", errors="ignore").rename(model="pair")
    gap = subtract_array(paired.isel(pair=left), paired.isel(pair=right))
    names = {"model": [models[i] for i in left], "other": [models[i] for i in right]}
    return gap.assign_coords({name: ("pair", each) for name, each in names.items()})


# --- batches of one log, and logs of other points -------------------------------------------------


def check_same_grid(one: Any, two: Any) -> None:
    """Refuse batches whose carried dimensions differ in order, size or labels."""
    for dim in dict.fromkeys((*one.dims, *two.dims)):
        mine, yours = (
            pd.Index(labels.coords[dim].values) if dim in labels.coords and dim != "model" else None
            for labels in (one, two)
        )
        alike = mine is yours if mine is None or yours is None else mine.equals(yours)
        if one.dims != two.dims or one.sizes != two.sizes or not alike:
            raise LogError(
                f"the batches lie on different grids along {dim!r}: {one.dims} of sizes "
                f"{one.sizes} and {two.dims} of sizes {two.sizes}. Expected the same carried "
                "dimensions and labels, in the same order, in each batch."
            )


IDENTITY = ("source", "point")
"""Levels that name a point."""


def take_other_points(log: Log, known: Log) -> Log:
    """Drop the points of one log that another log has, and reorder its models to match that log.

    Raises
    ------
    LogError
        If the logs name their points differently, have different models or grids, or if no point is
        left.
    """
    named = [[name for name in IDENTITY if name in one.design.levels] for one in (log, known)]
    if named[0] != named[1]:
        raise LogError(
            f"the logs name their points by different levels: {listed(map(repr, named[0]))} in "
            f"judge_on_all; {listed(map(repr, named[1]))} in judge. Expected the same in both."
        )
    keep = ~points_of(log.design).isin(points_of(known.design))
    keep &= log.design.marks
    if not keep.any():
        raise LogError(
            "the judge labeled only the points that people labeled, so it adds no information. "
            "Expected its losses on many more points. For human labels alone use holdout."
        )
    mine, yours = log.labels, known.labels
    if isinstance(mine, ArrayLabels) and isinstance(yours, ArrayLabels):
        check_same_grid(yours, mine)
    models = match_models(list(yours.models), list(mine.models))
    tables = log.losses
    order = np.empty(tables.width, dtype=np.int64)
    for model, at in enumerate(models):
        order[yours.columns(model)] = mine.columns(at)
    moved = LossColumns(tuple(tables.column(int(j), 0, log.design.size)[:, None] for j in order))
    return replace(
        log, design=replace(log.design, valid=keep, facts={}), losses=moved, labels=yours
    )


def points_of(design: Design) -> pd.MultiIndex:
    """List the points of all rows by the levels that name them."""
    levels = [design.levels[name] for name in IDENTITY if name in design.levels]
    return pd.MultiIndex.from_arrays(
        [as_index(level.labels).take(level.block(0, design.size)) for level in levels]
    )
