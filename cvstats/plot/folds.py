"""The mean loss of every fold, repetition by repetition."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvstats.describe import moments
from cvstats.errors import LogError
from cvstats.log.log import Losses
from cvstats.options import Missing
from cvstats.plot._axes import (
    MEAN,
    draw_models,
    keep_inside,
    label_values,
    label_x,
    rank_models,
    read_facts,
    result_rows,
    set_tick_labels,
    styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def folds(losses: Losses, *, missing: Missing = "raise", ax: Axes | None = None) -> Axes:
    """Draw the mean loss of every fold, repetition by repetition.

    The target is the log itself: how much folds differ, and how much repetitions do.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log with folds or repetitions.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A pale marker for each fold at x = 0, 1, 2, …, the number of its repetition; a short line
        at the mean of each repetition. With one repetition x numbers the folds, and a long line
        shows the mean. More than seven models have a panel each, in ``child_axes``.

    Raises
    ------
    LogError
        If the log has neither folds nor repetitions, if they are pooled, or if the panels of many
        models do not fit.

    Notes
    -----
    The heights are the ``mean`` of `cvstats.moments`; the line is their mean weighted by
    ``count``, ``sum n_k mean_k / sum n_k``. Folds of one repetition share most of their
    training data, and all repetitions use the same data: their scatter is not a standard error.

    References
    ----------
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> ax = cvstats.plot.folds(losses, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'repetition'
    """
    facts = read_facts(losses, missing)
    table = result_rows(facts.apply(moments), facts)
    table = table[table["count"] > 0].dropna(subset="mean").copy()
    fold = next((name for name in ("fold", "source") if name in table), None)
    across = "repetition" if "repetition" in table and table["repetition"].nunique() > 1 else fold
    if across is None and (facts.design.has("fold") or facts.design.has("repetition")):
        raise LogError("folds have no values of their own, because all are pooled in this log.")
    if across is None:
        raise LogError(
            "the log has neither folds nor repetitions. Expected a level 'fold' or 'repetition'."
        )
    table["total"] = table["mean"] * table["count"]
    sums = table.groupby("model", sort=False)[["total", "count"]].sum()
    means = sums["total"] / sums["count"]
    models = rank_models(means.reset_index(name="estimate"), facts)
    labels = list(dict.fromkeys(table[across]))
    draw = partial(draw_folds, table=table, means=means, labels=labels, across=across)
    ax = draw_models(ax, models, draw, rows=7, numbers="y")
    label_x(ax, across)
    label_values(ax, facts, before=MEAN, along="y")
    return keep_inside(ax)


def draw_folds(
    ax: Axes, models: list[str], table: pd.DataFrame, means: pd.Series, labels: list[object],
    across: str,
) -> None:  # fmt: skip
    """Draw the folds of some models side by side, and the means of repetitions."""
    place = {label: at for at, label in enumerate(labels)}
    for model, shift, colour, marker in styles(ax, models, 0.55):
        part = table[table["model"] == model]
        at = part[across].map(place).to_numpy(dtype=float) + shift
        ax.plot(
            at, part["mean"], linestyle="none", marker=marker, color=colour,
            alpha=0.5 if across == "repetition" else 0.9, markersize=4.5,
            markeredgewidth=0, label=model or "fold mean",
        )  # fmt: skip
        half = 0.4 / max(1, len(models))
        if across == "repetition":
            sums = part.groupby(across)[["total", "count"]].sum()
            middle = np.array([place[label] for label in sums.index]) + shift
            heights = sums["total"] / sums["count"]
            ax.hlines(heights, middle - half, middle + half, colors=colour, linewidth=2.2)
        else:
            ax.axhline(float(means[model]), color=colour, linewidth=1.2)
    set_tick_labels(ax, "x", labels)
    ax.set_xlim(-0.6, len(labels) - 0.4)
