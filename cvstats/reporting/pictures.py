"""Pictures that only the report has: many models at once, and the cells of a grid."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from cvstats.core.types import FloatArray, MaskArray
from cvstats.plot._labels import label_x, label_y, scale_numbers, set_numbers, shorten_names
from cvstats.plot._style import COLOURS, GREY, font_size
from cvstats.reporting.evidence import Evidence
from cvstats.reporting.wording import Scale
from cvstats.scores import score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_lines", "draw_map", "draw_ranking", "most_often_best"]

MOST_LINES = 5
"""So many models are drawn along a dimension."""
TURNED = 0.35
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
            linewidth=max(0.3, min(2.0, 180 / len(order))), alpha=TURNED,
        )  # fmt: skip
        ax.plot(
            estimate[order][here], rank[here], linestyle="none", marker=".", color=colour,
            markersize=max(1.0, min(5.0, 600 / len(order))), label=label,
        )  # fmt: skip
    ax.set_ylim(len(order) + 0.5, 0.5)
    ax.legend(
        loc="upper right" if not scale.larger else "upper left", fontsize="small", frameon=False
    )
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
        ax.legend(fontsize="small", frameon=False)
    set_numbers(ax, scale.name, along="y")
    label_x(ax, evidence.dims[0])
    return ax


def draw_map(
    ax: Axes, evidence: Evidence, scale: Scale, what: str, at: tuple[Hashable, ...]
) -> Axes:
    """Draw the cells of the last two dimensions: errors, half-widths, leads or the best model."""
    rows = [i for i, labels in enumerate(evidence.cells) if labels[:-2] == at]
    y, x = ([evidence.cells[i][side] for i in rows] for side in (-2, -1))
    y_labels, x_labels = ordered(y), ordered(x)
    place = ({v: k for k, v in enumerate(y_labels)}, {v: k for k, v in enumerate(x_labels)})
    i = np.array([place[0][label] for label in y])
    j = np.array([place[1][label] for label in x])
    shape = len(y_labels), len(x_labels)
    values, mark = map_values(evidence, scale, what, np.array(rows))
    field = np.full(shape, np.nan)
    field[i, j] = values
    ax.tick_params(labelsize=font_size(ax))
    options: dict[str, Any] = {"cmap": "viridis"}
    if what == "lead":
        most = float(np.nanmax(np.abs(values))) or 1.0
        options = {"cmap": "RdBu", "vmin": -most, "vmax": most}
    if what == "best":
        draw_categories(ax, evidence, field, mark_field(mark, i, j, shape))
    else:
        image = ax.pcolormesh(field, rasterized=True, **options)
        writing, power = scale_numbers(float(np.nanmin(values)), float(np.nanmax(values)))
        bar = ax.figure.colorbar(image, ax=ax, format=writing, location="bottom", shrink=0.9)
        bar.set_label({"half-width": "half-width of the interval", "lead": "lead"}.get(
            what, scale.name) + power, fontsize="small")  # fmt: skip
        bar.ax.tick_params(labelsize="small")
    if what == "lead" and mark.any():
        size = max(0.6, min(3.0, 150 / max(shape)))
        ax.plot(j[mark] + 0.5, i[mark] + 0.5, linestyle="none", marker=".", color="black", ms=size)
    for axis, labels, name in (
        (ax.xaxis, x_labels, evidence.dims[-1]), (ax.yaxis, y_labels, evidence.dims[-2]),
    ):  # fmt: skip
        some = np.unique(np.linspace(0, len(labels) - 1, min(4, len(labels))).astype(int))
        axis.set_ticks(some + 0.5, shorten_names([write_label(labels[k]) for k in some], 10))
        axis.set_label_text(name, fontsize=font_size(ax))
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


def mark_field(mark: MaskArray, i: Any, j: Any, shape: tuple[int, int]) -> FloatArray:
    """Lay marks out as an opacity for each cell."""
    field = np.full(shape, 0.0)
    field[i, j] = np.where(mark, 1.0, TURNED)
    return field


def draw_categories(ax: Axes, evidence: Evidence, field: FloatArray, opacity: FloatArray) -> None:
    """Colour each cell by its best model, pale where that is tied; the last colour is any other."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    wins = np.bincount(field[~np.isnan(field)].astype(int), minlength=len(evidence.names))
    order = [j for j in np.argsort(-wins, kind="stable") if wins[j]]
    known, others = order[: len(COLOURS) - 1], order[len(COLOURS) - 1 :]
    colour = {j: COLOURS[k] for k, j in enumerate(known)} | dict.fromkeys(others, COLOURS[-1])
    pixels = np.ones((*field.shape, 4))
    for j, shade in colour.items():
        pixels[field == j, :3] = to_rgb(shade)
    pixels[..., 3] = opacity
    ax.pcolormesh(pixels, rasterized=True)
    handles = [Patch(color=colour[j], label=evidence.names[j]) for j in known]
    handles += [Patch(color=COLOURS[-1], label=f"{len(others):,} others")] if others else []
    ax.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small",
        frameon=False,
    )  # fmt: skip


def ordered(labels: list[Any]) -> list[Any]:
    """List the labels of an axis: sorted, or in their own order where they cannot be."""
    found = list(dict.fromkeys(labels))
    try:
        return sorted(found)
    except TypeError:
        return found


def positions(labels: list[Any]) -> FloatArray:
    """Place labels on an axis: numbers where they are, others one after the other."""
    try:
        return np.asarray(labels, dtype=float)
    except (TypeError, ValueError):
        return np.arange(len(labels), dtype=float)


def write_label(label: Any) -> str:
    """Write a label of an axis in few letters."""
    return f"{label:.4g}" if isinstance(label, float) else str(label).removesuffix("T00:00:00")
