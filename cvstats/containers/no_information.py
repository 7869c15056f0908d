"""What a bootstrap needs besides its log: rates for each model, and leave-one-out losses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from cvstats.containers.align import partners
from cvstats.containers.log import Log
from cvstats.containers.read import read
from cvstats.containers.xarray import ArrayLabels
from cvstats.core.design import LEVELS, Design
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, is_number, listed, spelled

__all__ = ["Rates", "leave_one_out_means", "no_information_of"]

Rates: TypeAlias = float | Mapping[Any, Any] | ArrayLike | pd.Series | pd.DataFrame | xr.DataArray

NAME = "no_information"


def no_information_of(
    log: Log, given: Rates | None, *, method: str, without: str, samples: Sequence[Hashable] = ()
) -> FloatArray:
    """Find the no-information rate of each column, as passed in or as noted in the log.

    With ``samples`` there is a row for each of them.

    Raises
    ------
    LogError
        If it is neither passed in nor in the log (``without`` is how to do without), or if it
        does not fit the models and samples.
    """
    rates = log.noted.get(NAME) if given is None else given
    if rates is None:
        many = " of each sample" if samples else ""
        raise LogError(
            f"{method} needs the no-information rate{many}, the mean loss if every prediction met "
            f"every truth, and neither no_information= nor losses.attrs['no_information'] has "
            f"it. cvstats.evaluate notes it there. By hand it is loss(y[:, None], f[None, :])."
            f"mean(), with the truths y and the predictions f of the model fitted to the "
            f"whole sample. To do without it, pass {without}."
        )
    found = by_sample(log, rates, list(samples)) if samples else by_model(log, rates)
    if not np.isfinite(found).all():
        raise LogError("no_information is not finite for every model. Expected finite numbers.")
    return found


def by_model(log: Log, rates: Any) -> FloatArray:
    """Give each column its number."""
    width = log.panels.width
    models = list(log.labels.models)
    if isinstance(rates, xr.DataArray):
        return of_array(log, rates)
    if isinstance(rates, Real) or np.ndim(rates) == 0 and not is_mapping(rates):
        return np.full(width, number(rates))
    if is_mapping(rates) and models == [None] and len(rates) == 1:
        return spread(log, [number(value) for _, value in rates.items()])
    return spread(log, each(rates, models, "model"))


def by_sample(log: Log, rates: Any, samples: list[Hashable]) -> FloatArray:
    """Give each column a number for each sample, a row a sample."""
    models = list(log.labels.models)
    if isinstance(rates, Real) or (np.ndim(rates) == 0 and not is_mapping(rates)):
        raise LogError(
            f"no_information={rates!r} is one number and the log has {len(samples):,} samples. "
            f"Expected a number for each, in the order of their labels or by label."
        )
    if is_mapping(rates) and any(np.ndim(v) or is_mapping(v) for _, v in rates.items()):
        missing = [model for model in models if model not in rates]
        if missing:
            raise lacking("model", missing, list(dict(rates.items())))
        parts = [each(rates[model], samples, "sample") for model in models]
        return np.stack([spread(log, row) for row in np.stack(parts, axis=1)])
    if not is_mapping(rates) and np.ndim(rates) == 2:
        table = np.asarray(rates, dtype=np.float64)
        if table.shape != (len(samples), len(models)):
            raise LogError(
                f"no_information has the shape {table.shape}. Expected {len(samples):,} samples "
                f"by {len(models):,} models."
            )
        return np.stack([spread(log, row) for row in table])
    if len(models) > 1:
        raise LogError(
            f"no_information has one number for each sample and the log has {len(models):,} "
            f"models. Expected as much for each model: no_information={{{models[0]!r}: […], …}}."
        )
    return np.stack([spread(log, [value]) for value in each(rates, samples, "sample")])


def is_mapping(rates: Any) -> bool:
    """Tell whether numbers come with labels."""
    return isinstance(rates, (Mapping, pd.Series, pd.DataFrame))


def each(rates: Any, labels: list[Hashable], what: str) -> FloatArray:
    """Put numbers in the order of labels: by label, or as they stand."""
    if is_mapping(rates):
        missing = [label for label in labels if label not in rates]
        if missing:
            raise lacking(what, missing, list(dict(rates.items())))
        return np.array([number(rates[label]) for label in labels])
    values = [number(value) for value in np.asarray(rates).tolist()]
    if len(values) != len(labels):
        raise LogError(
            f"no_information holds {len(values):,} numbers and the log has {len(labels):,} "
            f"{what}s. Expected one for each."
        )
    return np.array(values)


def lacking(what: str, missing: list[Hashable], known: list[Hashable]) -> LogError:
    """Name the labels that have no number."""
    return LogError(
        f"no_information has no number for {what} {listed(map(spelled, missing))}; it has them for "
        f"{listed(map(spelled, known)) or 'none'}. Expected one for each {what} of the log."
    )


def number(value: Any) -> float:
    """Read one number."""
    if not is_number(value) or not math.isfinite(value):
        raise LogError(f"no_information holds {value!r}. Expected a finite number.")
    return float(value)


def spread(log: Log, values: Sequence[float] | FloatArray) -> FloatArray:
    """Give every column (carried cell) of a model the model's number."""
    found = np.empty(log.panels.width)
    for model, value in enumerate(values):
        found[log.labels.columns(model)] = value
    return found


def of_array(log: Log, rates: xr.DataArray) -> FloatArray:
    """Lay a DataArray over the carried dimensions, by label."""
    labels = log.labels
    if not isinstance(labels, ArrayLabels) or not set(rates.dims) <= set(labels.dims):
        raise LogError(
            f"no_information is an array over {tuple(map(str, rates.dims))}. Expected a number "
            f"for each model, or an array over the dimensions that the log carries."
        )
    coords = {dim: labels.coords[dim] for dim in labels.dims if dim in labels.coords}
    template = xr.DataArray(np.zeros(labels.sizes), dims=labels.dims, coords=coords)
    laid, _ = xr.align(rates.reset_coords(drop=True), template, join="right")
    table = laid.broadcast_like(template).transpose(*labels.dims)
    return np.asarray(table.values, dtype=np.float64).reshape(-1)


def leave_one_out_means(log: Log, given: Any, missing: str) -> FloatArray:
    """Average leave-one-out losses, for each column of the log."""
    if not is_log(given):
        try:
            values = np.asarray(given, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError, OverflowError):
            raise LogError(
                f"leave_one_out={given!r} holds what is not a number. Expected a log of "
                f"leave-one-out cross-validation, or a loss for each point."
            ) from None
        if log.panels.width > 1:
            raise LogError(
                f"leave_one_out has one loss for each point and the log has "
                f"{log.panels.width:,} models or cells. Expected a log with the same ones."
            )
        points = log.design.number("point")
        if len(values) < points or not np.isfinite(values).all():
            raise LogError(
                f"leave_one_out holds {np.isfinite(values).sum():,} finite losses and the log has "
                f"{points:,} points. Expected one for each."
            )
        return np.array([values[0] + (values - values[0]).mean()])
    given = in_cells_of(log, given)
    other = read(given, missing=missing)
    check_points(log.design, other.design)
    mine, yours = carried_sizes(log), carried_sizes(other)
    if mine != yours:
        raise LogError(
            f"leave_one_out carries {yours or 'no other dimension'} and the log carries "
            f"{mine or 'no other dimension'}. Expected the same cells."
        )
    means = other.moments(()).location[0]
    columns, own = columns_by_name(log), columns_by_name(other)
    found = np.empty(log.panels.width)
    for at, partner in enumerate(partners(list(log.labels.models), list(other.labels.models))):
        found[columns[at]] = means[own[partner]]
    return found


def carried_sizes(log: Log) -> dict[Hashable, int]:
    """Give the carried dimensions of a log and their sizes; models are none of them."""
    if not isinstance(log.labels, ArrayLabels):
        return {}
    sizes = dict(zip(log.labels.dims, log.labels.sizes, strict=True))
    return {dim: size for dim, size in sizes.items() if dim != "model"}


def in_cells_of(log: Log, given: Any) -> Any:
    """Put the carried cells of a log of arrays in the order of another one, by their labels."""
    if not isinstance(given, xr.DataArray | xr.Dataset):
        return given
    coords = getattr(log.labels, "coords", {})
    for dim in carried_sizes(log):
        own = given.indexes.get(dim)
        if dim not in coords or own is None:
            continue
        labels = coords[dim].to_index()
        places = own.get_indexer(labels) if own.is_unique else np.array([-1])
        if (places < 0).any() or len(own) != len(labels):
            raise LogError(
                f"leave_one_out has other labels along {dim!r} than the log. Expected the same "
                f"carried cells. Take those of the log: leave_one_out.sel({dim}=log[{dim!r}])."
            )
        given = given.isel({dim: places})
    return given


def columns_by_name(log: Log) -> IntArray:
    """List the columns, models by carried cells, the carried dimensions in order of their names."""
    columns, sizes = log.columns_by_cell(), carried_sizes(log)
    grid = columns.reshape(len(columns), *sizes.values())
    order = [list(sizes).index(dim) + 1 for dim in sorted(sizes, key=str)]
    return grid.transpose(0, *order).reshape(len(columns), -1)


def check_points(sample: Design, other: Design) -> None:
    """Refuse leave-one-out losses that lack a point of the sample."""
    points = sample.number("point")
    number = other.splits().points or other.size
    if number < points:
        raise LogError(
            f"leave_one_out has {number:,} points and the log has {points:,}. Expected "
            f"leave-one-out cross-validation of the whole sample."
        )
    if "point" not in other.levels:
        return
    known = set(occurring_labels(other, "point"))
    lost = [label for label in occurring_labels(sample, "point") if label not in known]
    if lost:
        raise LogError(
            f"leave_one_out has no loss of {listed([spelled(label) for label in lost])}. Expected "
            f"leave-one-out cross-validation of the sample itself, whose points bear the same "
            f"names."
        )


def occurring_labels(design: Design, level: str) -> list[Hashable]:
    """List the labels of a level that occur."""
    codes = design.codes_of(design.cell_table((level,)))[:, 0]
    labels = design.levels[level].labels
    return [labels[code] for code in codes.tolist()]


def is_log(given: object) -> bool:
    """Tell a log from plain numbers: a Series without any known level is an array."""
    if isinstance(given, pd.Series):
        return any(name in LEVELS for name in given.index.names)
    return isinstance(given, (pd.DataFrame, xr.DataArray, xr.Dataset))
