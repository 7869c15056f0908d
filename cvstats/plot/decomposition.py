"""The parts of the variance of the mean, for assumed correlations of folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvstats.intervals.decompose import decompose
from cvstats.intervals.wald import wald
from cvstats.log.log import Losses
from cvstats.options import Missing, check_numbers
from cvstats.plot._axes import (
    GREY,
    MOST_ROWS,
    canvas,
    colours,
    describe_loss,
    draw_panels,
    ink,
    keep_inside,
    label_step,
    legend_above,
    letters_across,
    mark_sizes,
    paper,
    rank_models,
    read_facts,
    result_rows,
    row_space,
    set_numbers,
    shorten_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RHO = (0.0, 0.1, 0.2, 0.3)


def decomposition(
    losses: Losses,
    *,
    rho: Sequence[float] = RHO,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the components of the variance of the mean, for several assumed correlations of folds.

    The target is theta, the variance of the mean loss over data sets. Two components are
    estimated; the third, the covariance gamma between folds, cannot be estimated from a single
    log.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with at least two points in some fold.
    rho : sequence of float, optional
        Correlations of fold means to assume, each a bar.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        For each model, the best first, and each rho a bar of three parts, end to end: points
        ``(sigma^2 - omega) / n``, folds, and gamma, hatched since it is assumed. Parts may be
        negative, and then reach to the left; a stroke marks theta, their sum. A diamond marks
        the variance that `wald` uses. More than 60 bars are in panels, one for each model, in
        ``child_axes``.

    Raises
    ------
    LogError
        If the log is not a partition into folds, a rho is out of range, or panels do not fit.

    Notes
    -----
    ``theta = (sigma^2 - omega) / n + S2 (omega - gamma) + gamma`` with ``S2 = sum (n_k / n)^2``;
    the numbers are those of `decompose`, and the bar's total is its ``theta``.

    References
    ----------
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> ax = cvstats.plot.decomposition(losses, rho=[0, 0.1], ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['ρ = 0', 'ρ = 0.1']
    """
    facts = read_facts(losses, missing)
    check_numbers("rho", list(rho) if isinstance(rho, Iterable) else rho, several=True)
    values = list(dict.fromkeys(float(value) for value in rho))
    table = result_rows(facts.apply(decompose, rho=values), facts)
    used = result_rows(facts.apply(wald), facts)
    models = rank_models(used, facts)
    table["used"] = table["model"].map(
        dict(zip(used["model"], used["se"].astype(float) ** 2, strict=True))
    )
    n = table["n_points"] if "n_points" in table else table.attrs["n_points"]
    table["points"] = table["sigma2_minus_omega"] / n
    if len(models) * len(values) > MOST_ROWS:

        def draw(panel: Axes, model: str) -> None:
            draw_parts(panel, table[table["model"] == model], [model], values, 0.0)
            name_bars(panel, [model], values, 0.0)

        ax = draw_panels(ax, models, draw, numbers="x", beside=36.0)
        words: list[str] = []
        handles = [*ax.child_axes[0].containers, *ax.child_axes[0].lines[:2]]
    else:
        step = len(values) + (0.8 if len(models) > 1 and len(values) > 1 else 0.0)
        ax = canvas(ax, 0.9 * len(models) * step + 1)
        draw_parts(ax, table, models, values, step)
        words = name_bars(ax, models, values, step)
        handles = [*ax.containers, *ax.lines[:2]]
    set_numbers(ax, describe_loss(facts, "variance of the mean ", power=2), *words)
    legend_above(ax, handles)
    return keep_inside(ax)


def draw_parts(
    ax: Axes, table: pd.DataFrame, models: list[str], values: list[float], step: float
) -> None:
    """Draw a bar of parts for each model and rho, with marks at its total and that of wald."""
    at = np.array(
        [
            models.index(model) * step + values.index(value)
            for model, value in zip(table["model"], table["rho"], strict=True)
        ]
    )
    points, gamma = (table[name].to_numpy(dtype=float) for name in ("points", "gamma"))
    folds = table["theta"].to_numpy(dtype=float) - gamma - points
    parts = {
        "points": (points, colours(ax)[0], ""),
        "folds": (folds, colours(ax)[4], ""),
        "γ, assumed": (gamma, paper(ax), "////"),
    }
    ahead, behind = np.zeros(len(at)), np.zeros(len(at))
    for label, (width, colour, hatch) in parts.items():
        left = np.where(width >= 0, ahead, behind)
        ax.barh(
            at, width, left=left, height=0.75, color=colour, hatch=hatch,
            edgecolor=GREY if hatch else colour, linewidth=0.6, label=label,
        )  # fmt: skip
        ahead += np.maximum(width, 0)
        behind += np.minimum(width, 0)
    size, width = mark_sizes(ax, at.max() + 1)
    ax.plot(
        table["used"], at, linestyle="none", marker="D", markersize=0.8 * size, color=ink(ax),
        markerfacecolor=paper(ax), markeredgewidth=0.6 * width, label="se² of wald",
    )  # fmt: skip
    ax.plot(
        table["theta"], at, linestyle="none", marker="|",
        markersize=min(13.0, row_space(ax, at.max() + 1)), markeredgewidth=1.25 * width,
        color=colours(ax)[1], label="θ, the total",
    )  # fmt: skip
    ax.axvline(0, color=ink(ax), linewidth=0.8)
    ax.set_ylim(at.max() + 0.6, -0.6)


def name_bars(ax: Axes, models: list[str], values: list[float], step: float) -> list[str]:
    """Label each bar, or each model if bars are too narrow, and describe the bars."""
    bars = [f"ρ = {value:g}" for value in values]
    if len(models) == 1:
        some = slice(None, None, label_step(ax, len(bars)))
        ax.set_yticks(range(len(bars))[some], bars[some])
        return []
    end = f", {bars[0]}"
    short = shorten_names(models, max(8, letters_across(ax, 0.42) - len(end)))
    if label_step(ax, len(models) * step) == 1:
        places = [i * step + j for i in range(len(models)) for j in range(len(bars))]
        if short != models and label_step(ax, 1.5 * len(models) * step) == 1:  # two lines
            short, end = shorten_names(models, letters_across(ax, 0.42)), f"\n{bars[0]}"
        ax.set_yticks(places, [word for name in short for word in (f"{name}{end}", *bars[1:])])
        return []
    some = slice(None, None, label_step(ax, len(models)))
    middles = np.arange(len(models)) * step + (len(values) - 1) / 2
    ax.set_yticks(middles[some], short[some])
    listed = ", ".join(f"{value:g}" for value in values)
    return [f"ρ = {listed}" + (" downwards" if len(values) > 1 else "")]
