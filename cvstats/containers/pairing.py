"""Put two logs side by side: the same evaluations, matched by label and never by order."""

from __future__ import annotations

from functools import singledispatch
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.design import LEVELS
from cvstats.errors import MOST, LogError, listed, place, spelled

__all__ = ["against", "aligned", "every_pair", "subtracted"]

WAY_OUT = (
    "Expected the same evaluations in both: the same points in the same folds. Keep the common "
    "ones with log.loc[log.index.intersection(other.index)], or evaluate both models on one plan."
)


@singledispatch
def aligned(one: Any, two: Any) -> Any:
    """Put the second log in the order of the first one's evaluations.

    Raises
    ------
    LogError
        If the two are of different kinds, or were not evaluated on the same points and folds.
    """
    raise LogError(f"a {type(one).__name__} is not a loss log, so nothing can be compared to it.")


def same_kind(one: object, two: object) -> None:
    """Refuse logs in containers of two kinds."""
    if not isinstance(two, type(one)):
        raise LogError(
            f"a {type(one).__name__} cannot be compared to a {type(two).__name__}. Expected two "
            f"logs of one kind."
        )


@aligned.register(pd.Series)
@aligned.register(pd.DataFrame)
def _(one: Any, two: Any) -> Any:
    same_kind(one, two)
    return two.iloc[order(one.index, two.index)].set_axis(one.index, axis=0)


def order(one: pd.Index, two: pd.Index) -> Any:
    """Find where the evaluations of one index stand in another."""
    if one.names == two.names and one.equals(two):
        return slice(None)
    if one.nlevels == 1 and one.name is None:
        raise LogError(
            "two logs without levels cannot be matched row by row. Expected at least a level "
            "'point' that names the evaluations. Type log.rename_axis('point')."
        )
    if set(one.names) != set(two.names):
        apart = sorted(map(str, set(one.names) ^ set(two.names)))
        raise LogError(
            f"the logs have different levels: {listed(map(repr, apart))} in one of them only. "
            f"Expected the same levels in both. Drop it, as in log.droplevel({apart[0]!r})."
        )
    if isinstance(two, pd.MultiIndex):
        two = two.reorder_levels(list(one.names))
    for index, which in ((one, "first"), (two, "second")):
        if not index.is_unique:
            twice = index[index.duplicated()][:MOST]
            raise LogError(
                f"the same evaluation stands twice in the {which} log: "
                f"{listed(map(str, twice))}. Expected each once."
            )
    at = two.get_indexer(one)
    if (at < 0).any() or len(one) != len(two):
        raise not_the_same(one, two, at)
    return at


def not_the_same(one: pd.Index, two: pd.Index, at: Any) -> LogError:
    """Put into words how the evaluations differ; other folds are told from other points."""
    if (
        isinstance(one, pd.MultiIndex)
        and isinstance(two, pd.MultiIndex)
        and "fold" in one.names
        and one.nlevels > 1
    ):
        rest, other = one.droplevel("fold"), two.droplevel("fold")
        if rest.is_unique and other.is_unique and len(rest) == len(other):
            there = other.get_indexer(rest)
            if (there >= 0).all():
                row = int(np.flatnonzero(at < 0)[0])
                folds = (
                    one.get_level_values("fold")[row],
                    two.get_level_values("fold")[there[row]],
                )
                return LogError(
                    f"the models were evaluated in different folds: {words(rest, row)} stands "
                    f"in fold {spelled(folds[0])} of the first log and in fold "
                    f"{spelled(folds[1])} of the second. A paired comparison needs one "
                    f"partition. {WAY_OUT}"
                )
    only_one = np.flatnonzero(at < 0)
    seen = np.zeros(len(two), dtype=bool)
    seen[at[at >= 0]] = True
    only_two = np.flatnonzero(~seen)
    parts = [
        f"only the {which} log has {listed([words(index, int(i)) for i in rows[:MOST]], len(rows))}"
        for which, index, rows in (("first", one, only_one), ("second", two, only_two))
        if len(rows)
    ]
    return LogError(
        f"the models were not evaluated on the same points: {', and '.join(parts)}. {WAY_OUT}"
    )


def words(index: pd.Index, row: int) -> str:
    """Put one label of an index in words."""
    label = index[row]
    labels = label if isinstance(index, pd.MultiIndex) else (label,)
    return place(dict(zip(map(str, index.names), labels, strict=True)))


@aligned.register(xr.DataArray)
@aligned.register(xr.Dataset)
def _(one: Any, two: Any) -> Any:
    same_kind(one, two)
    if set(one.dims) != set(two.dims):
        raise LogError(
            f"the logs have different dimensions: {tuple(one.dims)} and {tuple(two.dims)}. "
            f"Expected the same in both."
        )
    for dim in one.dims:
        mine, yours = one.indexes.get(dim), two.indexes.get(dim)
        if mine is None or yours is None:
            if one.sizes[dim] != two.sizes[dim]:
                raise LogError(
                    f"the logs differ in length along {dim!r}: {one.sizes[dim]:,} and "
                    f"{two.sizes[dim]:,}. Expected the same evaluations in both."
                )
        elif not mine.equals(yours):
            at = yours.get_indexer(mine)
            if (at < 0).any() or len(mine) != len(yours):
                raise not_the_same(mine, yours, at)
            two = two.isel({dim: at})
    for name in LEVELS:
        if name not in one.coords or name not in two.coords:
            continue
        if one.indexes.get(name, pd.Index([])).size:
            continue  # already matched, along its dimension
        mine, yours = one.coords[name], two.coords[name]
        if not mine.equals(yours.transpose(*mine.dims)):
            raise LogError(
                f"the models were evaluated in different {name}s: the coordinate {name!r} "
                f"of the two logs differs. A paired comparison needs one partition. "
                f"Expected the same {name} of each point in both logs."
            )
    return two


def subtracted(one: Any, two: Any) -> Any:
    """Subtract the second log from the first, which keeps its labels and levels."""
    two = aligned(one, two)
    if isinstance(one, (pd.Series, pd.DataFrame)):
        if isinstance(one, pd.DataFrame):
            two = two.set_axis(one.columns, axis=1)
        return one.astype(np.float64) - two.astype(np.float64)
    with xr.set_options(keep_attrs=True):
        return one - two.transpose(*one.dims).drop_vars(
            [name for name in two.coords if name not in one.dims], errors="ignore"
        )


@singledispatch
def against(log: Any, reference: Any) -> Any:
    """Subtract the reference from every other model."""
    raise LogError(f"a {type(log).__name__} has no models to choose a reference from.")


@against.register
def _(log: pd.DataFrame, reference: Any) -> pd.DataFrame:
    return log.drop(columns=[reference]).astype(np.float64).sub(log[reference], axis=0)


@against.register
def _(log: xr.DataArray, reference: Any) -> xr.DataArray:
    others = [label for label in log.indexes["model"] if label != reference]
    return log.sel(model=others) - log.sel(model=reference, drop=True)


@against.register
def _(log: xr.Dataset, reference: Any) -> xr.Dataset:
    gaps: xr.Dataset = log.drop_vars(reference) - log[reference]
    return gaps


@singledispatch
def every_pair(log: Any) -> Any:
    """Subtract the second of each two models from the first."""
    raise LogError(f"a {type(log).__name__} has no models to pair.")


@every_pair.register
def _(log: pd.DataFrame) -> pd.DataFrame:
    pairs = list(combinations(log.columns, 2))
    gaps = {pair: log[pair[0]].astype(np.float64) - log[pair[1]] for pair in pairs}
    columns = pd.MultiIndex.from_tuples(pairs, names=["model", "other"])
    return pd.DataFrame(gaps, index=log.index).set_axis(columns, axis=1)


@every_pair.register
def _(log: xr.DataArray) -> xr.DataArray:
    pairs = list(combinations(log.indexes["model"], 2))
    left, right = (xr.DataArray(list(side), dims="pair") for side in zip(*pairs, strict=True))
    gaps = log.sel(model=left).drop_vars("model") - log.sel(model=right).drop_vars("model")
    return gaps.assign_coords(model=left, other=right)


@every_pair.register
def _(log: xr.Dataset) -> xr.DataArray:
    gaps: xr.DataArray = every_pair(log.to_dataarray("model"))
    return gaps
