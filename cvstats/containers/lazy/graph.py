"""The tasks of a lazy array: moments of each chunk and a tree of sums, under shared names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.containers.lazy.blocks import block_moments, block_rows, merged
from cvstats.containers.lazy.evaluated import Layout, agreed, design_at, joined_rows
from cvstats.containers.lazy.naming import needed, token_of
from cvstats.containers.lazy.panels import LazyPanels
from cvstats.containers.lazy.template import Run, Template, complete_of, template_of
from cvstats.containers.log import Log
from cvstats.core.design import Grid
from cvstats.core.moments import Moments
from cvstats.core.types import IntArray

__all__ = ["FAN", "lazy_cells", "lazy_rows", "lazy_template"]

FAN = 8
"""So many parts are added up in one task."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """The chunks of an array: which part of it each is, and the task that gives it."""

    panels: LazyPanels
    spans: Sequence[NDArray[Any]]
    blocks: Any
    token: str

    @classmethod
    def of(cls, panels: LazyPanels) -> Chunks:
        """Find the chunks of the losses."""
        data = panels.array.data
        spans = [np.concatenate([[0], np.cumsum(sizes)]) for sizes in data.chunks]
        token = token_of(panels.token, panels.nan_tells, panels.drop, panels.paired)
        return cls(panels, spans, data.to_delayed(optimize_graph=False), token)

    @property
    def tested(self) -> int:
        """How many dimensions hold evaluations; they come first."""
        return len(self.panels.dims)

    def numbers(self, carried: bool) -> list[tuple[int, ...]]:
        """List the chunks along the evaluations, or along the carried dimensions."""
        counts = [len(ends) - 1 for ends in self.spans]
        part = counts[self.tested :] if carried else counts[: self.tested]
        return list(product(*map(range, part)))

    def here(self, at: Sequence[int], first: int = 0) -> list[slice]:
        """Say which part of the array a chunk is, from some dimension on."""
        return [
            slice(int(self.spans[first + i][k]), int(self.spans[first + i][k + 1]))
            for i, k in enumerate(at)
        ]

    def key(self, name: str, at: Sequence[int], *more: object) -> str:
        """Name a task."""
        return "-".join(map(str, (f"cvstats-{name}", self.token, *more, *at)))

    def evaluated_names(self, e: Sequence[int]) -> Any:
        """Name the labels of one chunk of evaluations."""
        rest = [slice(0, 0)] * (len(self.spans) - self.tested)
        return self.panels.names([*self.here(e), *rest])[: self.tested]

    def carried_names(self, c: Sequence[int]) -> Any:
        """Name the labels of one chunk of carried cells."""
        return self.panels.names([slice(0, 0)] * self.tested + self.here(c, self.tested))[
            self.tested :
        ]


# --- what was evaluated -----------------------------------------------------------------------


def agreed_rows(chunks: Chunks, e: tuple[int, ...]) -> Any:
    """Find what was evaluated in the chunks that hold the same evaluations."""
    delayed, panels = needed().delayed, chunks.panels
    find, carried = delayed(block_rows, pure=True), chunks.numbers(carried=True)
    each = [
        find(
            chunks.blocks[(*e, *c)], chunks.tested, panels.nan_tells,
            dask_key_name=chunks.key("rows", (*e, *c)),
        )
        for c in carried
    ]  # fmt: skip
    return delayed(agreed, pure=True)(
        each, chunks.evaluated_names(e), [chunks.carried_names(c) for c in carried], panels.drop,
        dask_key_name=chunks.key("agreed", e),
    )  # fmt: skip


def lazy_rows(panels: LazyPanels) -> Any:
    """Find the places of all evaluations, also with the dropped ones, when computed."""
    chunks = Chunks.of(panels)
    every = chunks.numbers(carried=False)
    carried = [chunks.carried_names(c) for c in chunks.numbers(carried=True)]
    return needed().delayed(joined_rows, pure=True)(
        [agreed_rows(chunks, e) for e in every], [chunks.here(e) for e in every],
        lazy_layout(panels), carried, panels.drop,
        dask_key_name=chunks.key("evaluated", (), panels.layout_token),
    )  # fmt: skip


def lazy_layout(panels: LazyPanels) -> Any:
    """Send the layout once."""
    name = f"cvstats-layout-{panels.layout_token}"
    return needed().delayed(panels.layout, name=name, traverse=False)


def known_at_last(found: tuple[IntArray, IntArray], layout: Layout, like: Template) -> Template:
    """Make the template of what was evaluated indeed; all checks of a design are done here."""
    rows, every = found
    known = template_of(design_at(layout, rows), like)
    dropped = len(every) - len(rows)
    if not dropped:
        return known
    return replace(known, dropped=dropped, complete=complete_of(design_at(layout, every), like))


def lazy_template(panels: LazyPanels, template: Template) -> Any:
    """Send the template once; where losses tell what was evaluated, wait for them."""
    delayed = needed().delayed
    template = replace(template, facts=dict(template.facts))  # what is asked later has no name
    known = delayed(template, name=f"cvstats-design-{token_of(template)}", traverse=False)
    if not panels.told_later:
        return known
    rows, layout = lazy_rows(panels), lazy_layout(panels)
    return delayed(known_at_last, pure=True)(
        rows, layout, known,
        dask_key_name=f"cvstats-known-{token_of(rows.key, layout.key, known.key)}",
    )  # fmt: skip


# --- moments ----------------------------------------------------------------------------------


def cells_of(panels: LazyPanels, levels: tuple[str, ...]) -> tuple[str, Any]:
    """Make the tasks: for each chunk of carried cells the delayed moments of its columns."""
    delayed, chunks = needed().delayed, Chunks.of(panels)
    grids = [panels.layout.levels[name].codes for name in levels]
    parts = [(g.axes, g.base) if isinstance(g, Grid) else ((0,), g) for g in grids]
    sizes = tuple(len(panels.layout.levels[name].labels) for name in levels)
    token = token_of(chunks.token, levels, sizes, parts)
    work, add = delayed(block_moments, pure=True), delayed(merged, pure=True)
    kept = {
        e: agreed_rows(chunks, e) if panels.drop else None for e in chunks.numbers(carried=False)
    }
    found = np.empty(panels.array.data.numblocks[chunks.tested :], dtype=object)
    for c in chunks.numbers(carried=True):
        tasks = []
        for e in chunks.numbers(carried=False):
            here = chunks.here((*e, *c))
            tasks.append(
                work(
                    chunks.blocks[(*e, *c)], levels, sizes,
                    [cut(axes, base, here) for axes, base in parts], panels.names(here),
                    chunks.tested, panels.nan_tells, panels.paired, kept[e],
                    dask_key_name="-".join(map(str, ("cvstats-cells", token, *e, *c))),
                )
            )  # fmt: skip
        names = chunks.carried_names(c)
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
    result = template.answer(run, template.log(template.filled(found)))
    columns = {name: np.asarray(values) for name, values in result.columns.items()}
    columns["caution"] = result.caution.astype(np.int64)
    return {name: values.reshape(shape) for name, values in columns.items()}


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
    token, found = cells_of(panels, template.levels)
    chunks = panels.array.data.chunks[len(panels.dims) :]
    known = lazy_template(panels, template)
    token = token_of(token, known.key, run, leading, kinds)
    finish = dask.delayed(finished, pure=True)
    pick = dask.delayed(dict.__getitem__, pure=True)
    blocks: dict[str, NDArray[Any]] = {name: np.empty(found.shape, dtype=object) for name in kinds}
    for c in np.ndindex(found.shape):
        shape = (*leading, *(sizes[at] for sizes, at in zip(chunks, c, strict=True)))
        at = "-".join(map(str, (token, *c)))
        result = finish(found[c], known, run, shape, dask_key_name=f"cvstats-result-{at}")
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
