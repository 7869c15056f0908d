"""One panel per model or cell, with a common scale, if there are too many for colors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cvstats.errors import LogError
from cvstats.plot._axes import (
    LETTER,
    MARKERS,
    canvas,
    column_width,
    legend_above,
    row_height,
    scale_numbers,
)
from cvstats.plot._names import shorten_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = (50.0, 40.0)
"""Minimum width and height of a panel, in points."""
ASPECT = 1.4
"""Preferred width of a panel relative to its height."""
BELOW, TITLE = 44.0, 14.0
"""Height in points of what is written below all panels, and above each."""


def draw_models(
    ax: Axes | None,
    models: list[str],
    draw: Callable[[Axes, list[str]], object],
    *,
    rows: float,
    legend_from: int = 2,
    **layout: Any,
) -> Axes:
    """Draw some models in one Axes with a legend, or more than there are markers in a panel each.

    ``rows`` is the height of a new Axes, and ``layout`` the options of `draw_panels`.
    """
    if len(models) > len(MARKERS):
        return draw_panels(ax, models, lambda panel, model: draw(panel, [model]), **layout)
    ax = canvas(ax, rows)
    draw(ax, models)
    if len(models) >= legend_from:
        legend_above(ax)
    return ax


def draw_panels(
    ax: Axes | None,
    names: Sequence[str],
    draw: Callable[[Axes, str], object],
    *,
    numbers: Literal["x", "y"] | None,
    beside: float = 30.0,
    aside: float = 0.0,
    aspect: float = ASPECT,
) -> Axes:
    """Divide an Axes into panels, call ``draw(panel, name)`` for each, and return the Axes.

    The panels are the ``child_axes`` of the Axes, which keeps the labels and has the limits of
    all. ``beside`` and ``aside`` are the widths in points of what is written left of the first
    column and right of the last.
    """
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        columns = len(names) if len(names) < 4 else min(5, math.ceil(math.sqrt(len(names) / 1.5)))
        rows = math.ceil(len(names) / columns)
        width = min(7.0, max(1.3, 0.7 * aspect) * columns + (beside + aside) / 72)
        tall = rows * ((72 * width - beside - aside) / columns / aspect + TITLE) + BELOW
        ax = canvas(None, (tall / 72 - 1.3) / 0.27, width=width)
    else:
        ax = canvas(ax, len(names))
    whole = column_width(ax), row_height(ax)
    wide, high = whole[0] - beside - aside, whole[1] - BELOW

    def misfit(columns: int) -> float:
        rows = math.ceil(len(names) / columns)
        return abs(math.log(wide / columns / (max(1.0, high / rows - TITLE)) / aspect))

    columns = min(range(1, len(names) + 1), key=misfit)
    rows = math.ceil(len(names) / columns)
    if wide / columns < LEAST[0] or high / rows < LEAST[1]:
        raise LogError(
            f"{len(names)} panels do not fit into {whole[0] / 72:.1f} x {whole[1] / 72:.1f} "
            f"inches. Expected a larger Axes, or fewer models: choose some, as in log[['a', 'b']]."
        )
    left, below = beside / (whole[0] - aside), 17.0 / whole[1]
    across, down = (1 - left) / columns, (1 - below) / rows
    titles = shorten_names(names, max(6, int((wide / columns - 4) / LETTER["small"])))
    panels: list[Axes] = []
    for at, (name, title) in enumerate(zip(names, titles, strict=True)):
        row, column = divmod(at, columns)
        bounds = (
            left + column * across, 1 - (row + 1) * down,
            across - 6 / whole[0], down - (TITLE + 2) / whole[1],
        )  # fmt: skip
        shared = panels[0] if panels else None
        panel = ax.inset_axes(bounds, sharex=shared, sharey=shared)
        panels.append(panel)
        draw(panel, name)
        panel.set_title(title, fontsize="small", pad=2)
        panel.tick_params(
            labelsize="small", length=2, labelleft=column == 0,
            labelbottom=at + columns >= len(names),
        )  # fmt: skip
    ax.set_xlim(panels[0].get_xlim())
    ax.set_ylim(panels[0].get_ylim())
    if numbers is not None:  # of all panels: their axes are shared
        x = numbers == "x"
        limits, axis = (ax.get_xlim(), panels[0].xaxis) if x else (ax.get_ylim(), panels[0].yaxis)
        # numbers at the ends would touch those of the next panel
        axis.set_major_locator(MaxNLocator(nbins=4, prune="both") if x else MaxNLocator(nbins=3))
        axis.set_major_formatter(scale_numbers(*sorted(limits))[0])
        texts = axis.get_major_formatter().format_ticks(axis.get_majorticklocs().tolist())
        if x and sum(len(text) + 2 for text in texts) * LETTER["small"] > wide / columns:
            axis.set_major_locator(MaxNLocator(nbins=2, prune="both"))
    ax.set_frame_on(False)
    ax.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
    return ax
