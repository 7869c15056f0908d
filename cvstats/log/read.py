"""Read a log from any container."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import PurePath
from typing import Any

import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.core.loss_columns import KIND
from cvstats.errors import LogError, checked_choice
from cvstats.log import pandas as frames
from cvstats.log import xarray as arrays
from cvstats.log.gaps import drop_gaps
from cvstats.log.groups import METRIC, carry_metrics, within_levels
from cvstats.log.log import TYPE, WHOLE, Log
from cvstats.log.metadata import attrs_of_log, folds_of_metric, refuse_parts_of_cells
from cvstats.log.tables import TIMES, TRUTHS, as_container, not_losses, refuse_table

MISSING = ("raise", "drop")


def read(
    losses: object, *, missing: str = "raise", by: object = None, levels: Sequence[str] = (),
    part: bool = False,
) -> Log:  # fmt: skip
    """Read a loss log and check that each evaluation occurs once.

    Parameters
    ----------
    losses : pandas.Series, pandas.DataFrame, xarray.DataArray or xarray.Dataset
        The log, or one that was already read, as in `LogFacts`.
    missing : {"raise", "drop"}
        What to do if a loss is NaN.
    by : str, optional
        A level whose labels are computed separately, so that each may be a log of its own.
    levels : sequence of str
        Additional levels that were requested by name. With two of them, one that is not a standard
        level, such as seeds, may distinguish evaluations: every point may occur under each label.
    part : bool
        Whether it is a batch of a longer log, so that a cell may lack points.

    Returns
    -------
    Log
        The design, the losses and the labels of results.

    Raises
    ------
    LogError
        If the log is empty, has other values than numbers, lacks labels, or has an evaluation
        twice.
    """
    if not (isinstance(missing, str) and missing in MISSING):
        checked_choice("missing", missing, MISSING)
    if not isinstance(losses, (pd.Series, pd.DataFrame)):
        losses = as_container(losses, (by, *levels))
    empty = LogError("the log is empty. Expected at least one loss.")
    if isinstance(losses, (pd.Series, pd.DataFrame)) and len(losses) == 0:
        raise empty
    table = losses if isinstance(losses, (pd.DataFrame, xr.Dataset)) else None
    if table is not None:
        method = table.attrs.get("method", "a method")
        if method == "moments" or ("cautions" in table.attrs and "caution" in table):
            raise LogError(
                f"this is the result of {method}, not a log of losses. Pass the losses from which "
                "it was computed."
            )
    columns: Iterable[object] = () if table is None else table
    if isinstance(losses, xr.DataArray):
        for name in {"variable", "model", "metric"}.intersection(losses.dims, losses.coords):
            columns = [*columns, *losses.coords[name].to_numpy().tolist()]
    if TIMES.issubset(columns):
        raise LogError(
            "this is a result of cross_validate, which contains times and scores of splits, not "
            "losses of models. Read the scores, with cv= as it was passed to cross_validate: "
            "cvstats.read_log(frame, cv=cv, metric='accuracy')."
        )
    crossed = tuple(name for name in levels if name not in LEVELS) if len(levels) > 1 else ()
    also: tuple[Any, ...] = crossed if by is None else (by,)
    log = losses if isinstance(losses, Log) else read_container(losses, also)
    metadata, design = log.metadata, log.design
    if log is not losses:
        named = "metric" in design.levels or "metric" in getattr(losses, "coords", ())
        metadata = attrs_of_log(losses) if named or getattr(losses, "attrs", None) else {}
        tables = log.losses.tables if log.lazy is None else (log.lazy.array,)
        if log.cells is None and INTEGERS.issuperset(map(KIND, tables)):
            metadata = {**metadata, TYPE: WHOLE}
    empty_mask = design.valid is not None and not design.valid.any()
    if 0 in (design.size, log.losses.width) or empty_mask:
        raise empty
    if metadata:
        if by is not None:
            refuse_parts_of_cells(metadata, by)
        design = replace(
            design, scores=design.scores or metadata.get("holds") == "scores",
            metric=folds_of_metric(metadata) or design.metric,
        )  # fmt: skip
    if METRIC in log.labels.dims:  # carried anyway
        also = tuple(name for name in also if name != METRIC)
    if also or design.within:
        design = replace(
            design, within=within_levels(design, also, getattr(log.labels, "coords", {}))
        )
    if metadata or also or levels or log is losses:
        used = levels if by is None else (str(by), *levels)
        used = (*used, metadata["by"]) if "contrast" in metadata else used
        log = replace(log, design=design, metadata=metadata, used=used)
    if metadata and "fold" in design.levels and log.only_tested and design.has("fold"):
        raise LogError(
            f"the log has {design.number('fold'):,} folds, but no model was trained on other "
            "folds: attrs['models_are'] is 'fixed', or attrs['format'] is that of a tool that only "
            "tests. Drop or rename the level 'fold'; if models were trained, delete these attrs."
        )
    if missing == "drop":
        log = drop_gaps(log)
    log.design.splits()
    if metadata and not (part or log is losses):
        log.refuse_parts()
    return log


INTEGERS = frozenset("biu")
"""The kinds of dtypes of integers and booleans."""


def is_dask_frame(losses: object) -> bool:
    """Whether this is a DataFrame or Series of dask, without importing dask."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(losses, (frames.DataFrame, frames.Series))


@singledispatch
def read_container(losses: object, also: tuple[object, ...] = ()) -> Log:
    """Find levels and losses; one implementation per container.

    ``also`` are dimensions to be used as levels, if the container has them; two of them identify
    evaluations even without a standard level.
    """
    if is_dask_frame(losses):
        raise LogError(
            "this is a dask frame, but this method needs individual losses. Lazy evaluation "
            "supports methods based on moments of cells, such as wald, corrected_t, "
            "out_of_source and compare. Expected losses in memory. Load them first: "
            "cvstats.as_log(frame.compute(), loss=…)."
        )
    kind = type(losses)
    path = f"Read a file with cvstats.read_log({str(losses)!r}). "
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise LogError(
        f"{'an' if name[0] in 'aeiou' else 'a'} {name} is not a loss log. Expected a pandas Series "
        f"or DataFrame, an xarray DataArray or Dataset, or a frame of polars, Arrow or DuckDB. "
        f"{path * isinstance(losses, (str, PurePath))}"
        f"Make one with cvstats.as_log(pandas.DataFrame(…), loss='loss', fold='fold', point='id'); "
        f"or, for the losses of one test set, with pandas.Series(losses).rename_axis('point'). "
        f"Scores of cross_val_score are read by cvstats.read_log(scores, cv=cv, "
        f"metric='accuracy'), other scores of splits by cvstats.read_log(frame, format='scores', "
        f"higher_is_better=…)."
    )


@read_container.register
def _(losses: pd.Series, also: tuple[object, ...] = ()) -> Log:
    log = Log(
        frames.design_of(losses.index, also),
        frames.read_columns(losses),
        frames.FrameLabels.of(losses),
    )
    return carry_metrics(log) if METRIC in log.design.levels and METRIC not in also else log


@read_container.register
def _(losses: pd.DataFrame, also: tuple[object, ...] = ()) -> Log:
    labels = frames.FrameLabels.of(losses)
    for truth in TRUTHS:
        if truth in losses.columns and "loss" not in losses.attrs:
            raise not_losses(truth)
    known = list(filter(LEVELS.__contains__, losses.columns))
    if known:
        levels = ", ".join(map(repr, known))
        are = "are columns" if len(known) > 1 else "is a column"
        append = ", append=True" if any(name in LEVELS for name in losses.index.names) else ""
        raise LogError(
            f"{levels} {are} of this frame. Expected levels in the "
            f"index and a column of losses for each model. Type cvstats.as_log(frame, "
            f"loss=…), or frame.set_index({known!r}{append})."
        )
    if losses.index.names == [None]:
        refuse_table(losses)
    log = Log(frames.design_of(losses.index, also), frames.read_columns(losses), labels)
    return carry_metrics(log) if METRIC in log.design.levels and METRIC not in also else log


@read_container.register
def _(losses: xr.DataArray, also: tuple[object, ...] = ()) -> Log:
    for truth in TRUTHS if "model" in losses.indexes else ():
        if truth in losses.indexes["model"] and "loss" not in losses.attrs:
            raise not_losses(truth, "a model of this array")
    dims = arrays.level_dims(losses, also)
    known = arrays.in_memory(losses, dims)
    design, columns, lazy = arrays.to_design(known, [losses], dims, also)
    return Log(design, columns, arrays.ArrayLabels.of(known, dims), lazy=lazy)


@read_container.register
def _(losses: xr.Dataset, also: tuple[object, ...] = ()) -> Log:
    variables: list[Any] = list(losses.data_vars.values())
    if not variables:
        raise LogError("the dataset has no variables. Expected one of losses for each model.")
    known = [name for name in losses.data_vars if name in LEVELS]
    if known:
        levels = ", ".join(map(repr, known))
        are = "are variables" if len(known) > 1 else "is a variable"
        raise LogError(
            f"{levels} {are} of this dataset. Expected levels as coordinates and a variable of "
            f"losses for each model. Type log.set_coords({known!r})."
        )
    for truth in TRUTHS:
        if truth in losses.data_vars and "loss" not in losses.attrs:
            raise not_losses(truth, "a variable of this dataset")
    if "model" in losses.dims:
        raise LogError(
            "the variables of a dataset are its models, but this one also has a dimension "
            "'model'. Expected only one of the two: select one variable, or rename the "
            "dimension."
        )
    first = variables[0]
    for variable in variables[1:]:
        if set(variable.dims) != set(first.dims):
            raise LogError(
                f"the models have different dimensions: {first.name!r} has {first.dims} and "
                f"{variable.name!r} has {variable.dims}. Expected the same for every variable. "
                f"Drop variables that are not models: log[[{first.name!r}, …]]."
            )
    dims = arrays.level_dims(first, also)
    first = arrays.in_memory(first, dims).assign_attrs(losses.attrs)
    models = [variable.transpose(*first.dims) for variable in variables]
    if len(models) == 1 and models[0].chunks is not None:  # a lazy array has a dimension of models
        models = [models[0].expand_dims("model")]
    design, columns, lazy = arrays.to_design(first, models, dims, also)
    labels = arrays.ArrayLabels.of(first, dims)
    labels = labels.with_models({one.name: arrays.units_of(one.attrs) for one in variables})
    return Log(design, columns, labels, lazy=lazy)
