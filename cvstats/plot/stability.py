"""The interval of the first repetitions, for growing numbers of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvstats.core.design import Design
from cvstats.core.types import IntArray
from cvstats.errors import LogError, checked_choice
from cvstats.facts import LogFacts
from cvstats.intervals import find_method, interval_names
from cvstats.intervals._requirements import recommend_options
from cvstats.large.moments import Moments
from cvstats.log.bootstrap import code_of
from cvstats.log.log import Log, Losses
from cvstats.options import Missing, check_alpha
from cvstats.plot._axes import (
    check_rows,
    describe_level,
    draw_models,
    keep_inside,
    label_values,
    label_x,
    name_cautions,
    rank_models,
    read_facts,
    result_rows,
    styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STEPS = 25
"""Number of points on the curve over repetitions."""
BARS = 5
"""Numbers of repetitions at which intervals of several models are drawn side by side."""


def stability(
    losses: Losses,
    *,
    method: str | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the interval of the first r repetitions, for growing r.

    The target is the target of the method. If the curves are flat, more repetitions would change
    hardly anything. Repetitions never replace new data.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log with at least two repetitions, of any resampling design.
    method : str, optional
        The name of an interval; by default the choice of `cvstats.interval`.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        For each model a line through the estimates over the number of repetitions used, the
        best model first in the legend; numbers too small for the method are omitted. The limits
        of one model are a band; those of several are bars side by side at the labeled numbers.
        More than seven models have a panel each, in ``child_axes``.

    Raises
    ------
    LogError
        If the log has one repetition, no number of them is enough for the method, or the panels of
        many models do not fit.

    Notes
    -----
    Repetitions are used in the order of their labels. With many repetitions, about 25 evenly
    spaced numbers are computed. The point at r is ``mean_r = interval(repetitions 1, …, r)``, not
    a mean over windows.

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
    facts = read_facts(losses, missing)
    check_alpha(alpha)
    checked_choice("method", method, (*interval_names(), None))
    log = facts.log
    total = log.design.number("repetition")
    if total < 2:
        raise LogError(
            "the log has only one repetition. Expected at least two to show convergence."
        )
    options = recommend_options(log) if method is None else {}
    if method is None:
        method = facts.recommended[0]
    steps = np.unique(np.linspace(1, total, min(total, STEPS)).round().astype(int)).tolist()
    parts, run = [], find_method(method).run
    for r in steps:
        try:
            kept = log if r == total else keep_repetitions(facts, r)
            part = log.label(run(kept, alpha=alpha, **options))
            result = result_rows(part, facts)
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
    models = rank_models(last, facts)
    used = table["repetitions"].unique()
    shown = used[np.unique(np.linspace(0, len(used) - 1, BARS).round().astype(int))]
    draw = partial(draw_curves, table=table, shown=shown)
    ax = draw_models(ax, models, draw, rows=7, numbers="y")
    label_x(ax, "repetitions used", *name_cautions(last))
    label_values(ax, facts, f"({target}, {describe_level(alpha)})", along="y")
    return keep_inside(ax)


def draw_curves(ax: Axes, models: list[str], table: pd.DataFrame, shown: IntArray) -> None:
    """Draw the estimates of some models, with a band for one and bars at some numbers for more."""
    width = 0.35 * float(np.ptp(table["repetitions"])) / BARS
    for model, shift, colour, marker in styles(ax, models, width):
        rows = table[table["model"] == model]
        ax.plot(
            rows["repetitions"] + (shift or 0), rows["estimate"], color=colour, marker=marker,
            linewidth=1.4, markersize=4.5 if len(models) == 1 else 0, label=model or "estimate",
        )  # fmt: skip
        if len(models) == 1:
            at = rows["repetitions"]
            ax.fill_between(at, rows["lower"], rows["upper"], color=colour, alpha=0.13, linewidth=0)
            for side in ("lower", "upper"):
                ax.plot(at, rows[side], color=colour, linewidth=0.8)
        else:
            rows = rows[rows["repetitions"].isin(shown)]
            at = rows["repetitions"] + shift
            ax.vlines(at, rows["lower"], rows["upper"], colors=colour, linewidth=1.4)
            ax.plot(
                at, rows["estimate"], linestyle="none", marker=marker, markersize=5, color=colour
            )
    narrow = 72 / ax.figure.dpi * ax.get_window_extent().width < 18 * len(shown)
    ax.set_xticks(shown[[0, -1]] if narrow else shown)


def keep_repetitions(facts: LogFacts, repetitions: int) -> Log:
    """Keep the first repetitions of a log, not counting the fit on the sample itself."""
    log, losses = facts.log, facts.losses
    if isinstance(losses, Moments):
        return losses.keep_repetitions(repetitions).log()
    design = log.design
    used = np.sort(design.cell_table(("repetition",)).codes[:, 0])
    if design.has("count") and code_of(design, "repetition", 0) is not None:
        repetitions += 1  # repetition 0 of a bootstrap log is that fit
    codes = design.levels["repetition"].block(0, design.size)
    keep = np.isin(codes, used[:repetitions]) & design.marks
    return replace(log, design=Design(design.levels, design.size, keep, of_array=design.of_array))
