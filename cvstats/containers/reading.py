"""Read a log from whatever container it is in."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.blocks import BLOCK, spans
from cvstats.chunked import Panels
from cvstats.containers import arrays, frames
from cvstats.containers.log import Log
from cvstats.design import LEVELS, Design
from cvstats.errors import LogError, choice

__all__ = ["dropped", "read"]

MISSING = ("raise", "drop")


def read(losses: object, *, missing: str = "raise") -> Log:
    """Read a loss log and check that each evaluation stands in it once.

    Parameters
    ----------
    losses : pandas.Series, pandas.DataFrame, xarray.DataArray or xarray.Dataset
        The log.
    missing : {"raise", "drop"}
        What to do where a loss is NaN.

    Returns
    -------
    Log
        The design, the losses and the way back to labels.

    Raises
    ------
    LogError
        If the log is empty, holds anything but numbers, lacks labels, or holds an evaluation
        twice.
    """
    if missing not in MISSING:
        raise choice("missing", missing, MISSING)
    log = unread(losses)
    if log.design.size == 0 or (log.design.present is not None and not log.design.present.any()):
        raise LogError("the log is empty. Expected at least one loss.")
    if missing == "drop":
        log = dropped(log)
    log.design.splits()
    return log


def dropped(log: Log) -> Log:
    """Leave out every evaluation that is missing for any model."""
    keep = np.ones(log.design.size, dtype=bool)
    for start, stop in spans(log.design.size, BLOCK):
        for j in range(log.panels.width):
            keep[start:stop] &= ~np.isnan(log.panels.column(j, start, stop))
    if log.design.present is not None:
        before = log.design.present
        keep &= before
        gone = int(before.sum() - keep.sum())
    else:
        gone = int(keep.size - keep.sum())
    if not keep.any():
        raise LogError(
            "missing='drop' leaves nothing: every evaluation is missing for some model. Leave "
            "out the models that have no losses."
        )
    design = log.design
    if gone:
        design = Design(design.levels, design.size, keep)
    return replace(log, design=design, attrs={**log.attrs, "n_dropped": gone})


@singledispatch
def unread(losses: object) -> Log:
    """Find levels and losses; one implementation for each container."""
    raise LogError(
        f"a {type(losses).__name__} is not a loss log. Expected a pandas Series or DataFrame, "
        f"or an xarray DataArray or Dataset. Make one with cvstats.as_log(pandas.DataFrame(…), "
        f"loss='loss', fold='fold', point='id')."
    )


@unread.register
def _(losses: pd.Series) -> Log:
    return Log(
        frames.design_of(losses.index), frames.panels_of(losses), frames.FrameLabels.of(losses)
    )


@unread.register
def _(losses: pd.DataFrame) -> Log:
    labels = frames.FrameLabels.of(losses)
    known = [name for name in losses.columns if name in LEVELS]
    if known and not any(name in LEVELS for name in losses.index.names):
        raise LogError(
            f"{', '.join(map(repr, known))} are columns of this frame. Expected levels in the "
            f"index and a column of losses for each model. Type cvstats.as_log(frame, "
            f"loss=…), or frame.set_index({known!r})."
        )
    return Log(frames.design_of(losses.index), frames.panels_of(losses), labels)


@unread.register
def _(losses: xr.DataArray) -> Log:
    dims = arrays.level_dims(losses)
    panels = Panels((arrays.panel_of(losses, dims),))
    return Log(arrays.design_of(losses, dims, panels), panels, arrays.ArrayLabels.of(losses, dims))


@unread.register
def _(losses: xr.Dataset) -> Log:
    variables: list[Any] = list(losses.data_vars.values())
    if not variables:
        raise LogError("the dataset has no variables. Expected one of losses for each model.")
    if "model" in losses.dims:
        raise LogError(
            "the variables of a dataset are its models, and this one has a dimension 'model' "
            "too. Expected one of both: take one variable, or rename the dimension."
        )
    first = variables[0]
    for variable in variables[1:]:
        if set(variable.dims) != set(first.dims):
            raise LogError(
                f"the models have different dimensions: {first.name!r} has {first.dims} and "
                f"{variable.name!r} has {variable.dims}. Expected the same for every variable. "
                f"Leave out what is no model: log[[{first.name!r}, …]]."
            )
    dims = arrays.level_dims(first)
    tables = [arrays.panel_of(variable.transpose(*first.dims), dims) for variable in variables]
    panels = Panels(tuple(tables))
    labels = arrays.ArrayLabels.of(first, dims)
    names = [variable.name for variable in variables]
    return Log(arrays.design_of(first, dims, panels), panels, labels.with_models(names))
