"""Lazy arrays: moments of each chunk and a tree of sums, under names that methods share.

Levels are coordinates and lie in memory, so a log is checked at once. Only the losses are
looked at later: each chunk once, however many methods are computed together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from cvstats.containers.apart import apart
from cvstats.containers.arrays import IN_LOSS_UNITS, LazyPanels, caution_attrs
from cvstats.containers.cells import CellDesign, CellLog, CellPanels, cell_levels
from cvstats.containers.grouping import Groups
from cvstats.containers.lazy_blocks import block_moments, merged
from cvstats.containers.log import Attrs, Log, Table, facts_of
from cvstats.containers.stacking import Axis
from cvstats.design import Design, Grid
from cvstats.errors import LogError
from cvstats.moments import Moments
from cvstats.results import Result
from cvstats.types import IntArray

__all__ = ["is_lazy", "lazily", "lazy_cells", "lazy_table"]

FAN = 8
"""So many parts are added up in one task."""

WORDS = (
    "This needs losses one by one, and a lazy array gives the counts, means and squared "
    "deviations of cells. Expected losses in memory. Load them first: log.compute()."
)

Run = Callable[[Log], Result]


def is_lazy(log: Log) -> bool:
    """Whether the losses of a log are still to be computed."""
    return isinstance(log.panels, LazyPanels)


def needed() -> Any:
    """Import dask, or say which extra brings it."""
    try:
        import dask.array
        import dask.base
    except ImportError as error:
        raise ImportError(
            "lazy arrays need dask. Install it: pip install 'cvstats[dask]'."
        ) from error
    return dask


@dataclass(frozen=True, eq=False)
class OriginDesign(CellDesign):
    """Cells whose design asks the whole one, and notes what it was told."""

    origin: Design = field(kw_only=True)

    def points(self) -> Any:
        """Count the points under each label of the level."""
        if ("points", self.name) not in self.facts:
            self.facts["points", self.name] = apart(self.origin, self.name).points()
        return self.facts["points", self.name]


@dataclass(frozen=True, eq=False)
class Template:
    """What a task has to know of the design: labels of the cells' levels, and checked facts."""

    levels: tuple[str, ...]
    labels: tuple[Any, ...]
    pointed: bool
    facts: dict[Any, Any]
    by: str | None

    def log(self, found: Moments, design: CellDesign | None = None) -> CellLog:
        """Look at the moments of some columns as at a log."""
        cells = Moments(
            self.levels, self.labels, found.codes, found.count, found.mean, found.m2
        )  # fmt: skip
        if design is None:
            design = CellDesign.of(cells, None, self.pointed, WORDS)
            design.facts.update(self.facts)
        width = cells.mean.shape[1]
        labels = Chunk([None])
        return CellLog(
            design, CellPanels(width, WORDS), labels, found=cells,
            models=np.arange(width)[None, :],
        )  # fmt: skip

    def answer(self, run: Run, log: Log) -> Result:
        """Ask the log, or each of its parts."""
        if self.by is None:
            return run(log)
        log = replace(log, design=apart(log.design, self.by))
        return Groups(log, self.by).answers(run)


@dataclass(frozen=True, eq=False)
class Chunk:
    """The columns of one chunk of carried cells, whose names and labels are put on later."""

    models: Sequence[Hashable]

    def columns(self, model: int) -> IntArray:
        """Refuse: the columns are a part of the grid."""
        raise LogError(WORDS)

    def name(self, column: int) -> str:
        """Name a column by its place."""
        return f"cell {column} of a chunk"

    def may_be_empty(self) -> bool:
        """Allow masked cells."""
        return True

    def table(self, result: Result, attrs: Attrs) -> Table:
        """Refuse: labels are put on later."""
        raise LogError(WORDS)

    def pairs(
        self, pairs: Sequence[tuple[Hashable, Hashable]], result: Result, attrs: Attrs
    ) -> Table:
        """Refuse: labels are put on later."""
        raise LogError(WORDS)

    def cells(self, found: Moments, attrs: Attrs) -> Table:
        """Refuse: labels are put on later."""
        raise LogError(WORDS)


def sketch(log: Log, by: str | None) -> tuple[Template, CellLog]:
    """Note what is known before any loss is; and make moments of the right shape of nothing."""
    levels = cell_levels(log.design)
    if by is not None and by not in levels:
        levels = (*levels, by)
    plan = log.design.plan(levels)
    codes, count = log.design.codes_of(plan), plan.total[plan.used].astype(np.float64)
    labels = tuple(log.design.levels[name].labels for name in levels)
    found = Moments(levels, labels, codes, count, np.zeros((len(count), 1)), count[:, None])
    pointed = "point" in log.design.levels
    plain = CellDesign.of(found, None, pointed, WORDS)
    facts: dict[Any, Any] = {"splits": log.design.splits()}
    whole = OriginDesign(
        plain.levels, plain.size, facts=facts, taking=log.design.taking, scores=log.design.scores,
        whole=found, words=WORDS, origin=log.design,
    )  # fmt: skip
    template = Template(levels, labels, pointed, facts, by)
    return template, template.log(found, whole)


def cells_of(panels: LazyPanels, design: Design, levels: tuple[str, ...]) -> tuple[str, Any]:
    """Make the tasks: for each chunk of carried cells the delayed moments of its columns."""
    dask = needed()
    data, count = panels.array.data, len(panels.dims)
    grids = [design.levels[name].codes for name in levels]
    parts = [(g.axes, g.base) if isinstance(g, Grid) else ((0,), g) for g in grids]
    sizes = tuple(len(design.levels[name].labels) for name in levels)
    token = dask.base.tokenize(data.name, data.chunks, levels, sizes, parts)
    blocks = data.to_delayed(optimize_graph=False)
    spans = [np.concatenate([[0], np.cumsum(sizes)]) for sizes in data.chunks]
    work = dask.delayed(block_moments, pure=True)
    add = dask.delayed(merged, pure=True)
    found = np.empty(data.numblocks[count:], dtype=object)
    for c in product(*(range(n) for n in data.numblocks[count:])):
        tasks = []
        for e in product(*(range(n) for n in data.numblocks[:count])):
            here = [slice(spans[i][at], spans[i][at + 1]) for i, at in enumerate((*e, *c))]
            name = "-".join(map(str, ("cvstats-cells", token, *e, *c)))
            tasks.append(
                work(
                    blocks[(*e, *c)], levels, sizes,
                    [cut(axes, base, here) for axes, base in parts],
                    panels.names(here), count, dask_key_name=name,
                )
            )  # fmt: skip
        names = panels.names([slice(0, 0)] * count + here[count:])[count:]
        found[c] = tree(add, tasks, names, "-".join(map(str, ("cvstats-sum", token, *c))))
    return token, found


def tree(add: Any, tasks: list[Any], names: Any, name: str) -> Any:
    """Add parts up, a few in each task."""
    height = 0
    while len(tasks) > 1:
        tasks = [
            add(tasks[at : at + FAN], names, dask_key_name=f"{name}-{height}-{at}")
            for at in range(0, len(tasks), FAN)
        ]
        height += 1
    return tasks[0]


def cut(axes: tuple[int, ...], base: Any, here: Sequence[slice]) -> tuple[Any, ...]:
    """Take the codes of one chunk along their axes."""
    if base is None:
        (axis,) = axes
        return axes, np.arange(here[axis].start, here[axis].stop)
    return axes, np.ascontiguousarray(base[tuple(here[axis] for axis in axes)])


def finished(found: Moments, template: Template, run: Run, shape: tuple[int, ...]) -> Any:
    """Run a method on the moments of some columns; its numbers over the carried cells."""
    result = template.answer(run, template.log(found))
    columns = {name: np.asarray(values) for name, values in result.columns.items()}
    columns["caution"] = result.caution.astype(np.int32)
    return {name: values.reshape(*shape) for name, values in columns.items()}


def lazily(log: Log, run: Run, *, by: str | None = None, axis: Axis | None = None) -> xr.Dataset:
    """Run a method later; what it needs of the levels is checked now."""
    template, sketched = sketch(log, by)
    with np.errstate(all="ignore"):
        example = template.answer(run, sketched)
    axes: list[Axis] = []
    if by is not None:
        axes.append((by, Groups(log, by).labels))
    if axis is not None:
        axes.append(axis)
    kinds = {name: np.asarray(values).dtype for name, values in example.columns.items()}
    kinds["caution"] = np.dtype(np.int32)
    arrays = lazy_cells(log, template, run, kinds, tuple(len(labels) for _, labels in axes))
    return labelled(log, axes, arrays, facts_of(example) | dict(log.attrs))


def lazy_cells(
    log: Log,
    template: Template,
    run: Run,
    kinds: dict[str, np.dtype[Any]],
    leading: tuple[int, ...],
) -> dict[str, Any]:
    """Make a lazy array of each number, chunked as the carried dimensions are."""
    dask = needed()
    panels = log.panels
    if not isinstance(panels, LazyPanels):
        raise TypeError("the losses are in memory")
    token, found = cells_of(panels, log.design, template.levels)
    chunks = panels.array.data.chunks[len(panels.dims) :]
    token = dask.base.tokenize(token, run, template.by, leading)
    finish = dask.delayed(finished, pure=True)
    pick = dask.delayed(dict.__getitem__, pure=True)
    template = dask.delayed(
        template, name=f"cvstats-design-{token}", traverse=False
    )  # a large one is sent once
    blocks: dict[str, NDArray[Any]] = {name: np.empty(found.shape, dtype=object) for name in kinds}
    for c in np.ndindex(found.shape):
        shape = (*leading, *(sizes[at] for sizes, at in zip(chunks, c, strict=True)))
        at = "-".join(map(str, (token, *c)))
        result = finish(found[c], template, run, shape, dask_key_name=f"cvstats-result-{at}")
        for name, dtype in kinds.items():
            value = pick(result, name, dask_key_name=f"cvstats-{name}-{at}")
            blocks[name][c] = dask.array.from_delayed(
                value, shape, dtype=dtype, name=f"cvstats-{name}-block-{at}"
            )
    return {name: joined(dask.array, parts, len(leading)) for name, parts in blocks.items()}


def joined(da: Any, parts: NDArray[Any], leading: int) -> Any:
    """Join chunks to one array."""
    if parts.ndim == 0:
        return parts.item()
    for axis in reversed(range(parts.ndim)):
        shorter = np.empty(parts.shape[:axis], dtype=object)
        for at in np.ndindex(parts.shape[:axis]):
            shorter[at] = da.concatenate(list(parts[at]), axis=leading + axis)
        parts = shorter
    return parts.item()


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
        variables[name] = (dims, values, caution_attrs() if name == "caution" else facts)
    clean = {key: value for key, value in attrs.items() if value is not None}
    return xr.Dataset(variables, coords=coords, attrs=clean)


def lazy_table(log: Log, by: tuple[str, ...]) -> xr.Dataset:
    """Lay count, mean and variance of cells out, of which only the count is known now."""
    template, sketched = sketch(log, None)
    found = sketched.moments(by)
    shape = tuple(len(labels) for labels in found.labels)
    count = np.zeros(shape, dtype=np.int64)
    count[tuple(found.codes.T)] = found.count
    kinds = dict.fromkeys(("mean", "var"), np.dtype(np.float64))
    arrays = lazy_cells(log, template, Spread(by, shape), kinds, shape)
    axes = [(name, list(names)) for name, names in zip(by, found.labels, strict=True)]
    table = labelled(log, axes, arrays, {"method": "moments", **log.attrs})
    return table.assign(count=(by, count))[["count", "mean", "var"]]


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
