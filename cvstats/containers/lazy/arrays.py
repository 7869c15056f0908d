"""Lazy arrays: what a method will say, with names and shapes now and numbers when computed.

Levels are coordinates and lie in memory, so a log is checked at once. Only the losses are
looked at later: each chunk once, however many methods are computed together. Where NaN tells
what was evaluated, that is checked later too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from cvstats.containers.arrays import IN_LOSS_UNITS, file_attrs
from cvstats.containers.cells import CellLog
from cvstats.containers.grouping import Groups
from cvstats.containers.lazy.graph import lazy_cells, lazy_template
from cvstats.containers.lazy.naming import needed
from cvstats.containers.lazy.panels import LazyPanels
from cvstats.containers.lazy.template import Run, Template, sketch
from cvstats.containers.log import Log, doubted, facts_of, refuse_same_names
from cvstats.containers.stacking import Axis
from cvstats.core.cautions import Caution, flag_attrs
from cvstats.core.result import Result, separate_counts
from cvstats.errors import LogError

__all__ = ["is_lazy", "lazily", "lazy_table", "lazy_template_of", "told_later"]


def is_lazy(log: Log) -> bool:
    """Whether the losses of a log are still to be computed."""
    return isinstance(log.panels, LazyPanels)


def told_later(log: Log) -> LazyPanels | None:
    """Give the losses if it is for them to tell what was evaluated, and else nothing."""
    panels = log.panels
    return panels if isinstance(panels, LazyPanels) and panels.told_later else None


def lazy_template_of(log: Log, by: str | None, width: int = 1) -> tuple[Template, CellLog]:
    """Sketch a log whose losses are still to be computed."""
    return sketch(log.design, by, log.noted, width)


def example_of(log: Log, template: Template, sketched: CellLog, run: Run) -> Result:
    """Run a method on a sketch, for the names of its numbers and for what it refuses."""
    try:
        with np.errstate(all="ignore"):
            return template.answer(run, sketched)
    except LogError as error:
        if not (isinstance(log.panels, LazyPanels) and log.panels.nan_tells):
            raise
        raise LogError(
            f"{error} (This array is lazy, and NaN tells what was evaluated in it. Until that is "
            f"known, each point is taken to be tested once in each repetition. If it is not so, "
            f"load the array first: log.compute().)"
        ) from None


def lazily(
    log: Log,
    run: Run,
    *,
    by: str | None = None,
    axis: Axis | None = None,
    width: int = 1,
    example: Run | None = None,
) -> xr.Dataset:
    """Run a method later; what it needs of the levels is checked now.

    ``width`` is the number of columns of the sketch, for a method that looks at several, and
    ``example`` a quicker method with an answer of the same form.
    """
    run = partial(run_doubted, run, log.doubts())
    template, sketched = lazy_template_of(log, by, width)
    form = example_of(log, template, sketched, run if example is None else example)
    axes: list[Axis] = []
    if by is not None:
        axes.append((by, Groups(log, by).labels))
    if axis is not None:
        axes.append(axis)
    columns, counts = (form.columns, {}) if told_later(log) else separate_counts(form)
    kinds = {name: np.asarray(values).dtype for name, values in columns.items()}
    kinds["caution"] = np.dtype(np.int64)
    arrays = lazy_cells(log, template, run, kinds, tuple(len(labels) for _, labels in axes))
    attrs = facts_of(form, log.noted) | counts | dict(log.attrs)
    table = labelled(log, axes, arrays, attrs)
    return with_dropped(log, template, table)


def run_doubted(run: Run, doubt: Caution, log: Log) -> Result:
    """Run a method, and add what is doubtful about the log, of which its cells tell less."""
    return doubted(run(log), doubt)


def with_dropped(log: Log, template: Template, table: xr.Dataset) -> xr.Dataset:
    """Tell how many evaluations were left out, which attrs cannot hold before it is known."""
    if not isinstance(log.panels, LazyPanels) or not log.panels.drop:
        return table
    dask = needed()
    number = dask.delayed(dropped_of, pure=True)(lazy_template(log.panels, template))
    return table.assign(n_dropped=((), dask.array.from_delayed(number, (), dtype=np.int64)))


def dropped_of(template: Template) -> Any:
    """Say how many evaluations were left out."""
    return np.array(template.dropped, dtype=np.int64)


def labelled(
    log: Log, axes: Sequence[Axis], arrays: dict[str, Any], attrs: dict[str, Any]
) -> xr.Dataset:
    """Put labels and units on lazy numbers."""
    labels = log.labels
    dims = (*(name for name, _ in axes), *getattr(labels, "dims", ()))
    units = getattr(labels, "units", None)
    coords = {**getattr(labels, "coords", {})}
    for name, names in axes:
        things = np.empty(len(names), dtype=object)
        things[:] = list(names)
        coords[name] = (name, xr.Variable((name,), things).to_index())
    variables: dict[str, Any] = {}
    for name, values in arrays.items():
        facts = {"units": units} if units and name in IN_LOSS_UNITS else {}
        variables[name] = (dims, values, flag_attrs(tuple(Caution)) if name == "caution" else facts)
    refuse_same_names(variables, (*dims, *coords))
    return xr.Dataset(variables, coords=coords, attrs=file_attrs(attrs))


def lazy_table(log: Log, by: tuple[str, ...]) -> xr.Dataset:
    """Lay count, mean and variance of cells out; the count is known now, if levels tell it."""
    template, sketched = lazy_template_of(log, None)
    found = sketched.moments(by)
    shape = tuple(len(labels) for labels in found.labels)
    kinds = dict.fromkeys(("mean", "var"), np.dtype(np.float64))
    arrays = lazy_cells(log, template, Spread(by, shape), kinds, shape)
    axes = [(name, list(names)) for name, names in zip(by, found.labels, strict=True)]
    table = labelled(log, axes, arrays, {"method": "moments", **log.attrs})
    count: Any = spread_count(found, shape)
    if (panels := told_later(log)) is not None:
        dask = needed()
        later = dask.delayed(count_of, pure=True)(lazy_template(panels, template), by, shape)
        count = dask.array.from_delayed(later, shape, dtype=np.int64)
    table = table.assign(count=(by, count))[["count", "mean", "var"]]
    return with_dropped(log, template, table)


def spread_count(found: Any, shape: tuple[int, ...]) -> Any:
    """Spread the counts of cells over a table of all labels."""
    count = np.zeros(shape, dtype=np.int64)
    count[tuple(found.codes.T)] = found.count
    return count


def count_of(template: Template, by: tuple[str, ...], shape: tuple[int, ...]) -> Any:
    """Count the evaluations of cells once they are known."""
    return spread_count(template.whole().over(by), shape)


@dataclass(frozen=True)
class Spread:
    """Spread means and variances over a table of all labels; what does not occur is NaN."""

    by: tuple[str, ...]
    shape: tuple[int, ...]

    def __call__(self, log: Log) -> Result:
        """Make the table of some columns."""
        found = log.moments(self.by)
        mean = np.full((*self.shape, found.mean.shape[1]), np.nan)
        variance = mean.copy()
        at = tuple(found.codes.T)
        mean[at] = found.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            n = found.count[:, None]
            variance[at] = np.where(n > 1, found.m2 / (n - 1), np.nan)
        nothing = np.zeros(mean.size, dtype=np.int64)
        return Result("moments", {"mean": mean, "var": variance}, nothing)
