"""The interval of the first r repetitions: what more repetitions would change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvstats.core.design import Design
from cvstats.errors import LogError, checked_choice
from cvstats.intervals import find_method, interval_names
from cvstats.intervals._recommend import recommend_method
from cvstats.log.log import Log, Losses
from cvstats.log.read import read
from cvstats.options import Missing, check_alpha
from cvstats.plot._labels import (
    describe_level,
    describe_loss,
    label_x,
    legend_above,
    set_numbers,
)
from cvstats.plot._style import (
    COLOURS,
    MARKERS,
    canvas,
    check_distinct,
    check_rows,
    offsets,
    rank_models,
    require_memory,
    result_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STEPS = 25
"""So many numbers of repetitions are enough to see a curve."""
BARS = 5
"""At so many numbers of repetitions several models have their intervals, side by side."""


def stability(
    losses: Losses,
    *,
    method: str | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the interval of the first r repetitions, for growing r.

    The target is that of the method. Where the curves are flat, more repetitions would change
    nothing; they never replace new data.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log with two repetitions or more, of any resampling.
    method : str, optional
        The name of an interval; by default what `cvstats.interval` chooses.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        For each model a line through the estimates over the number of repetitions used, the
        best model first in the legend; numbers too small for the method are left out. The limits
        of one model are a band; those of several are bars side by side at five of the numbers.

    Raises
    ------
    LogError
        If the log has one repetition, no number of them suits the method, or there are
        more models than colours.

    Notes
    -----
    Repetitions are taken in the order of their labels. Of many, some 25 numbers evenly spread
    are computed. The point at r is ``mean_r = interval(repetitions 1, …, r)``, not a mean over
    windows.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445,
    doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> ax = cvstats.plot.stability(losses, ax=Figure().subplots())
    >>> ax.lines[0].get_xdata().tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    require_memory(losses)
    check_alpha(alpha)
    checked_choice("method", method, (*interval_names(), None))
    log = read(losses, missing=missing)
    total = log.design.number("repetition")
    if total < 2:
        raise LogError("the log has one repetition. Expected two or more to see how they settle.")
    if method is None:
        method = recommend_method(log)[0]
    steps = np.unique(np.linspace(1, total, min(total, STEPS)).round().astype(int)).tolist()
    parts = []
    for r in steps:
        try:
            part = log.label(find_method(method).run(keep_repetitions(log, r), alpha=alpha))
            result = result_rows(part, losses)
        except LogError as error:
            refused = error
            continue
        parts.append(result.assign(repetitions=r))
        check_rows(len(result), "models or cells")
        target = str(part.attrs["method"])
    if not parts:
        raise refused
    table = pd.concat(parts)
    last = table[table["repetitions"] == table["repetitions"].max()]
    models = rank_models(last, losses)
    check_distinct(len(models))
    ax = canvas(ax, 7)
    used = table["repetitions"].unique()
    shown = used[np.unique(np.linspace(0, len(used) - 1, BARS).round().astype(int))]
    shifts = offsets(len(models), 0.35 * (used[-1] - used[0]) / BARS)
    style = zip(models, shifts, COLOURS, MARKERS, strict=False)
    for model, shift, colour, marker in style:
        rows = table[table["model"] == model]
        ax.plot(
            rows["repetitions"], rows["estimate"], color=colour, marker=marker, linewidth=1.4,
            markersize=4.5 if len(models) == 1 else 0, label=model or "estimate",
        )  # fmt: skip
        if len(models) == 1:
            draw_band(ax, rows, colour)
        else:
            draw_bars(ax, rows[rows["repetitions"].isin(shown)], shift, colour, marker)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    label_x(ax, "repetitions used")
    if len(models) > 1:
        legend_above(ax)
    set_numbers(ax, describe_loss(losses), f"({target}, {describe_level(alpha)})", along="y")
    return ax


def draw_band(ax: Axes, rows: pd.DataFrame, colour: str) -> None:
    """Draw the limits of one model as a band."""
    at = rows["repetitions"]
    ax.fill_between(at, rows["lower"], rows["upper"], color=colour, alpha=0.13, linewidth=0)
    for side in ("lower", "upper"):
        ax.plot(at, rows[side], color=colour, linewidth=0.8)


def draw_bars(ax: Axes, rows: pd.DataFrame, shift: float, colour: str, marker: str) -> None:
    """Draw the limits of one of several models as bars beside those of the others."""
    at = rows["repetitions"] + shift
    ax.vlines(at, rows["lower"], rows["upper"], colors=colour, linewidth=1.4)
    ax.plot(at, rows["estimate"], linestyle="none", marker=marker, markersize=5, color=colour)


def keep_repetitions(log: Log, repetitions: int) -> Log:
    """Keep the first repetitions of a log; the fit on the sample itself does not count."""
    design = log.design
    level = design.levels["repetition"]
    used = np.sort(design.codes_of(design.cell_table(("repetition",)))[:, 0])
    if design.has("count") and any(level.labels[code] == 0 for code in used.tolist()):
        repetitions += 1  # repetition 0 of a bootstrap log is that fit
    codes = level.block(0, design.size)
    keep = np.isin(codes, used[:repetitions])
    if design.present is not None:
        keep &= design.present
    return replace(log, design=Design(design.levels, design.size, keep, taking=design.taking))
