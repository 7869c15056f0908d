"""Moments of the differences of many pairs, from matrices of co-moments of the models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cvstats.core import kernels
from cvstats.core.chunked.cells import of_columns
from cvstats.core.chunked.columns import Differences, Panels, Table
from cvstats.core.design import Design, Plan
from cvstats.core.levels import frozen
from cvstats.core.moments import Moments, choose_origin
from cvstats.core.threads import spans
from cvstats.core.types import FloatArray, IntArray

__all__ = ["co_moments", "cross_products", "of_pairs", "worth"]

TABLE = 1 << 18
"""Numbers in the one extra table of rows that all pairs need."""

LARGEST = 1 << 25
"""Numbers in all matrices of co-moments together, at the most."""

ALIKE = 1e-3
"""Pairs whose difference keeps a smaller share of the models' spread are summed directly."""


def worth(design: Design, losses: Differences, by: Sequence[str]) -> bool:
    """Whether the pairs are so many that one matrix for each cell is less work."""
    models = len(np.unique(np.concatenate([losses.left, losses.right])))
    dense = losses.width > max(2 * models, models**2 // 4)  # not pairs of carried cells
    return dense and len(design.plan(tuple(by)).used) * models**2 <= LARGEST


def of_pairs(design: Design, losses: Differences, by: Sequence[str]) -> Moments:
    """Moments of many differences, from one matrix of co-moments for each cell.

    With centred losses x and y of a cell, ``sum (x - y)^2 = sum x^2 + sum y^2 - 2 sum x y``.
    """
    plan = design.plan(tuple(by))
    models = np.unique(np.concatenate([losses.left, losses.right]))
    left, right = np.searchsorted(models, losses.left), np.searchsorted(models, losses.right)
    with np.errstate(invalid="ignore", over="ignore"):  # losses that are no numbers: named later
        count, mean, cross, level = co_moments(design, losses.panels, models, by)
        own = np.einsum("kii->ki", cross)
        both = own[:, left] + own[:, right]
        m2 = np.maximum(both - 2 * cross[:, left, right], 0.0)
        apart, gap = level[left] - level[right], mean[:, left] - mean[:, right]
        origin = choose_origin(count, apart + gap, m2)
        gap += apart - origin
        alike = np.flatnonzero(~(m2 >= ALIKE * both).all(axis=0))
    if len(alike):
        few = Differences(losses.panels, losses.left[alike], losses.right[alike])
        direct = of_columns(design, few, by)
        gap[:, alike], m2[:, alike], origin[alike] = direct.mean, direct.m2, direct.origin
    labels = tuple(design.levels[name].labels for name in plan.by)
    return Moments(plan.by, labels, design.codes_of(plan), count, gap, m2, origin)


def co_moments(
    design: Design, panels: Panels, models: IntArray, by: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum counts, means and matrices of centred cross products of columns, for each cell.

    Columns are taken about their first loss, so that their levels cost no digits, and rows
    about their own mean over the columns, so that the sums hold only what the models do not
    share. Differences of columns stay what they are; single means and products do not. The
    levels come last: the difference of two means is that of their means and of their levels.
    """
    row = 0 if design.present is None else int(design.present.argmax())
    level = panels.some(models, row, row + 1)[:, 0]
    plan = design.plan(tuple(by))
    count = np.zeros(len(plan.used))
    mean = np.zeros((len(plan.used), len(models)))
    cross = np.zeros((len(plan.used), len(models), len(models)))
    for at, part, middle in _centred(design, panels, models, plan, level):
        n = part.shape[1]
        step, total = middle - mean[at], count[at] + n
        cross[at] += part @ part.T
        if count[at]:
            cross[at] += np.outer(step, step) * (count[at] * n / total)
        mean[at] += step * (n / total)
        count[at] = total
    return count, mean, cross, level


def cross_products(
    design: Design, panels: Panels, models: IntArray, found: Moments
) -> tuple[FloatArray, FloatArray]:
    """Sum the cross products of columns about their cells' means, over all cells.

    ``found`` holds the moments of these columns. Also gives what is left of each column when
    its cells' means are taken away: nothing, but for rounding.
    """
    plan = design.plan(found.levels)
    mean = np.zeros((plan.size, len(models)))
    mean[plan.used] = found.location
    whole = plan.size == 1 and design.present is None
    cells = np.empty(0, dtype=np.int32)
    total = np.zeros((len(models), len(models)))
    rest = np.zeros(len(models))
    rows = max(256, TABLE // len(models))
    memory = np.empty(rows * len(models))
    for start, stop in spans(design.size, rows):
        if not whole:
            cells = design.cells(plan.by, start, stop)
        table, row, picks = _table(panels, models, start, stop)
        part = memory[: (stop - start) * len(models)]
        if panels.across:
            out = part.reshape(stop - start, -1)
            kernels.residuals_across(table, row, frozen(cells), picks, mean, out, rest)
            total += out.T @ out
        else:
            out = part.reshape(len(models), -1)
            kernels.residuals_down(table, row, frozen(cells), picks, mean, out, rest)
            total += out @ out.T
    return total, rest


def _centred(
    design: Design, panels: Panels, models: IntArray, plan: Plan, level: FloatArray
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield the rows of each block and cell as (cell, residuals, their means).

    The residuals have a line for each model, in memory that is used again for the next.
    """
    where = np.full(plan.size, -1)
    where[plan.used] = np.arange(len(plan.used))
    rows = max(256, TABLE // len(models))
    memory = np.empty(rows * len(models))
    for start, stop in spans(design.size, rows):
        cells = design.cells(plan.by, start, stop)
        table, begin, picks = _table(panels, models, start, stop)
        for k in np.unique(cells[cells >= 0]):
            at = begin + np.flatnonzero(cells == k)
            middle = np.empty(len(models))
            part = memory[: len(at) * len(models)]
            if panels.across:
                out = part.reshape(len(at), -1)
                kernels.centre_across(table, at, picks, level, out, middle)
                yield int(where[k]), out.T, middle
            else:
                out = part.reshape(len(models), -1)
                kernels.centre_down(table, at, picks, level, out, middle)
                yield int(where[k]), out, middle


def _table(panels: Panels, models: IntArray, start: int, stop: int) -> tuple[Table, int, IntArray]:
    """Find a table for the kernels, where its rows start, and which of its columns to take.

    It has a line for each row if these lie in one piece, else a line for each column.
    """
    if panels.across:
        table, row, _ = panels.tile(slice(0, panels.width), start, stop)
        return table, row, models
    if panels.down:
        table, _, row = panels.lines(slice(0, panels.width), start, stop)
        return table, row, models
    return frozen(panels.some(models, start, stop)), 0, np.arange(len(models))
