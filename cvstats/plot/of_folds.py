"""The means of folds, repetition by repetition, and what more repetitions bring."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cvstats.api.choosing import chosen
from cvstats.api.describing import moments
from cvstats.api.running import INTERVALS, Losses, Missing, checked_alpha
from cvstats.containers import Log, read
from cvstats.core.design import Design
from cvstats.errors import LogError, checked_choice
from cvstats.plot.lettering import above, name_x, numbers, rule
from cvstats.plot.style import (
    COLOURS,
    MARKERS,
    canvas,
    few_enough,
    in_memory,
    level_words,
    loss_words,
    spread,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["folds", "stability"]

STEPS = 25
"""So many numbers of repetitions are enough to see a curve."""


def folds(losses: Losses, *, missing: Missing = "raise", ax: Axes | None = None) -> Axes:
    """Draw the mean loss of every fold, repetition by repetition.

    The target is the log itself: how much folds differ, and how much repetitions do.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log with folds or repetitions.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib.axes.Axes
        A pale mark for each fold at x = 0, 1, 2, …, the number of its repetition; a short line
        at the mean of each repetition. With one repetition x numbers the folds, and a long
        line shows the mean.

    Raises
    ------
    LogError
        If the log has neither folds nor repetitions, or too many models to tell apart.

    Notes
    -----
    The heights are the ``mean`` of `cvstats.moments`; the line is their mean weighted by
    ``count``, ``sum n_k mean_k / sum n_k``. Folds of one repetition share most of their
    training data, and repetitions share all data: their scatter is no standard error.

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
    in_memory(losses)
    table = tidy(moments(losses, missing=missing), losses)
    table = table[table["count"] > 0].dropna(subset="mean")
    fold = next((name for name in ("fold", "source") if name in table), None)
    across = "repetition" if "repetition" in table and table["repetition"].nunique() > 1 else fold
    if across is None:
        raise LogError(
            "the log has neither folds nor repetitions, so there is nothing to put side by side. "
            "Expected a level 'fold' or 'repetition'."
        )
    models = list(dict.fromkeys(table["model"]))
    distinct(models)
    labels = list(dict.fromkeys(table[across]))
    place = {label: at for at, label in enumerate(labels)}
    ax = canvas(ax, 7)
    style = zip(models, spread(len(models), 0.55), COLOURS, MARKERS, strict=False)
    for model, shift, colour, marker in style:
        part = table[table["model"] == model]
        at = part[across].map(place).to_numpy(dtype=float) + shift
        ax.plot(
            at, part["mean"], linestyle="none", marker=marker, color=colour,
            alpha=0.5 if across == "repetition" else 0.9, markersize=4.5,
            markeredgewidth=0, label=model or "fold mean",
        )  # fmt: skip
        half = 0.4 / max(1, len(models))
        if across == "repetition":
            weighted = part["mean"] * part["count"]
            sums = weighted.groupby(part[across]).sum() / part.groupby(across)["count"].sum()
            middle = np.array([place[label] for label in sums.index]) + shift
            ax.hlines(sums, middle - half, middle + half, colors=colour, linewidth=2.2)
        else:
            mean = float((part["mean"] * part["count"]).sum() / part["count"].sum())
            ax.axhline(mean, color=colour, linewidth=1.2)
    rule(ax, "x", labels)
    ax.set_xlim(-0.6, len(labels) - 0.4)
    name_x(ax, across)
    if len(models) > 1:
        above(ax)
    numbers(ax, loss_words(losses, "mean "), along="y")
    return ax


def distinct(models: list[Any]) -> None:
    """Refuse more models than there are colours and marks."""
    if len(models) > len(COLOURS):
        raise LogError(
            f"the plot would have {len(models):,} models or cells. Expected {len(COLOURS)} or "
            f"fewer, as many as one can tell apart. Choose some, as in log[['a', 'b']]."
        )


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
        The name of an interval; what `cvstats.interval` chooses otherwise.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib.axes.Axes
        For each model a line through the estimates and a band between the limits, over the
        number of repetitions used; numbers too small for the method are left out.

    Raises
    ------
    LogError
        If the log has one repetition, no number of them suits the method, or there are too many
        models to tell apart.

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
    in_memory(losses)
    checked_alpha(alpha)
    checked_choice("method", method, (*INTERVALS, None))
    log = read(losses, missing=missing)
    total = log.design.number("repetition")
    if total < 2:
        raise LogError("the log has one repetition. Expected two or more to see how they settle.")
    if method is None:
        method = chosen(log.design)[0]
    steps = np.unique(np.linspace(1, total, min(total, STEPS)).round().astype(int)).tolist()
    parts = []
    for r in steps:
        try:
            result = tidy(part := log.label(INTERVALS[method](first(log, r), alpha=alpha)), losses)
        except LogError as error:
            refused = error
            continue
        parts.append(result.assign(repetitions=r))
        few_enough(len(result), "models or cells")
        target = str(part.attrs["method"])
    if not parts:
        raise refused
    table = pd.concat(parts)
    models = list(dict.fromkeys(table["model"]))
    distinct(models)
    ax = canvas(ax, 7)
    for model, colour, marker in zip(models, COLOURS, MARKERS, strict=False):
        rows = table[table["model"] == model]
        at = rows["repetitions"].to_numpy()
        ax.fill_between(at, rows["lower"], rows["upper"], color=colour, alpha=0.13, linewidth=0)
        ax.plot(
            at, rows["estimate"], color=colour, marker=marker, markersize=4.5, linewidth=1.4,
            label=model or "estimate",
        )  # fmt: skip
        for side in ("lower", "upper"):
            ax.plot(at, rows[side], color=colour, linewidth=0.8)
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    name_x(ax, "repetitions used")
    if len(models) > 1:
        above(ax)
    numbers(ax, loss_words(losses), f"({target}, {level_words(alpha)})", along="y")
    return ax


def first(log: Log, repetitions: int) -> Log:
    """Keep the first repetitions of a log; the fit on the sample itself is no repetition."""
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
