"""Pictures that only the report has: many models at once, and the cells of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.types import FloatArray, MaskArray
from cvstats.plot._labels import (
    add_bar,
    label_x,
    label_y,
    legend_above,
    set_numbers,
)
from cvstats.plot._style import COLOURS, GREY, font_size, letters_down
from cvstats.plot.map import draw_cells, draw_dots, edges_of, name_axes, places_of
from cvstats.reporting.evidence import Cell, Evidence
from cvstats.reporting.wording import Scale
from cvstats.scores import score

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_LINES = 5
"""So many models are drawn along a dimension."""
PALE = 0.35
"""Opacity of what is tied."""


def values_of(evidence: Evidence, scale: Scale) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates and limits by cell and model, as scores where the losses were made from one."""
    estimate, lower, upper = (
        score(evidence.spread(name), scale.orientation) if scale.larger else evidence.spread(name)
        for name in ("estimate", "lower", "upper")
    )
    return estimate, np.fmin(lower, upper), np.fmax(lower, upper)


def draw_ranking(ax: Axes, evidence: Evidence, scale: Scale) -> Axes:
    """Draw the intervals of many models below each other, the best at the top."""
    estimate, lower, upper = (values[0] for values in values_of(evidence, scale))
    order = np.argsort(evidence.estimate[0], kind="stable")
    rank = np.arange(1, len(order) + 1)
    ax.tick_params(labelsize=font_size(ax))
    for here, colour, label in (
        (evidence.tied[0][order], COLOURS[0], "may be the best"),
        (~evidence.tied[0][order], GREY, "not the best"),
    ):
        ax.hlines(
            rank[here], lower[order][here], upper[order][here], colors=colour,
            linewidth=max(0.3, min(2.0, 180 / len(order))), alpha=PALE,
        )  # fmt: skip
        ax.plot(
            estimate[order][here], rank[here], linestyle="none", marker=".", color=colour,
            markersize=max(1.0, min(5.0, 600 / len(order))), label=label,
        )  # fmt: skip
    ax.set_ylim(len(order) + 0.5, 0.5)
    legend_above(ax)
    label_y(ax, "rank of the model")
    set_numbers(ax, scale.name)
    return ax


def draw_lines(ax: Axes, evidence: Evidence, scale: Scale) -> Axes:
    """Draw the error of each model along the one carried dimension."""
    estimate, lower, upper = values_of(evidence, scale)
    labels = [labels[0] for labels in evidence.cells]
    at = positions(labels)
    order = np.argsort(at)
    ax.tick_params(labelsize=font_size(ax))
    best = np.argsort(np.nanmean(evidence.estimate, axis=0), kind="stable")[:MOST_LINES]
    for colour, j in zip(COLOURS, best, strict=False):
        ax.fill_between(at[order], lower[order, j], upper[order, j], color=colour, alpha=0.2, lw=0)
        ax.plot(at[order], estimate[order, j], color=colour, label=evidence.names[j])
    if len(best) > 1:
        legend_above(ax)
    set_numbers(ax, scale.name, along="y")
    label_x(ax, evidence.dims[0])
    return ax


def draw_map(ax: Axes, evidence: Evidence, scale: Scale, what: str, at: Cell) -> Axes:
    """Draw the cells of the last two dimensions: errors, half-widths, leads or the best model."""
    rows = [row for row, labels in enumerate(evidence.cells) if labels[:-2] == at]
    values, mark = map_values(evidence, scale, what, np.array(rows))
    index = pd.MultiIndex.from_tuples(
        [evidence.cells[row][-2:] for row in rows], names=evidence.dims[-2:]
    )
    field, clear = (pd.Series(numbers, index).to_xarray() for numbers in (values, mark))
    ax.tick_params(labelsize=font_size(ax))
    if what == "best":
        draw_categories(ax, evidence, field, clear.fillna(0).astype(bool))
    else:
        image = draw_cells(ax, field, symmetric=what == "lead", turned=True)
        words = {"half-width": "half-width of the interval"}.get(what, what)
        add_bar(ax, image, scale.name if what == "estimate" else words, letters_down(ax, 50))
    if what == "lead":
        draw_dots(ax, clear.fillna(0).astype(bool), "more than chance")
    name_axes(ax, field)
    return ax


def map_values(
    evidence: Evidence, scale: Scale, what: str, rows: Any
) -> tuple[FloatArray, MaskArray]:
    """Compute what a map shows in each cell, and where it is marked."""
    best = evidence.best[rows]
    alone = evidence.tied[rows].sum(axis=1) == 1
    if what == "lead" and evidence.pairs is not None:
        return evidence.pairs.lead[rows, 0, 1], evidence.pairs.p[rows, 0, 1] < evidence.alpha
    if what == "best":
        return best.astype(float), alone
    model = most_often_best(evidence)
    estimate, lower, upper = (values[rows, model] for values in values_of(evidence, scale))
    return (estimate if what == "estimate" else (upper - lower) / 2), alone


def most_often_best(evidence: Evidence) -> int:
    """Find the model that is best in most cells."""
    return int(np.bincount(evidence.best).argmax())


def draw_categories(ax: Axes, evidence: Evidence, field: xr.DataArray, alone: xr.DataArray) -> None:
    """Colour each cell by its best model, pale where that is tied; the last colour is any other."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    best = field.to_numpy()
    wins = np.bincount(evidence.best, minlength=len(evidence.names))
    order = [int(j) for j in np.argsort(-wins, kind="stable") if wins[j]]
    known, others = order[: len(COLOURS) - 1], order[len(COLOURS) - 1 :]
    colour = {j: COLOURS[k] for k, j in enumerate(known)} | dict.fromkeys(others, COLOURS[-1])
    pixels = np.ones((*best.shape, 4))
    for j, shade in colour.items():
        pixels[best == j, :3] = to_rgb(shade)
    pixels[..., 3] = np.where(alone, 1.0, PALE)
    down, across = (edges_of(places_of(field[name])) for name in field.dims)
    ax.pcolormesh(across, down, pixels, rasterized=True)
    handles = [Patch(color=colour[j], label=evidence.names[j]) for j in known]
    handles += [Patch(color=COLOURS[-1], label=f"{len(others):,} others")] if others else []
    legend_above(ax, handles)


def positions(labels: list[Any]) -> FloatArray:
    """Place labels on an axis: numbers where they are, others one after the other."""
    try:
        return np.asarray(labels, dtype=float)
    except (TypeError, ValueError):
        return np.arange(len(labels), dtype=float)
