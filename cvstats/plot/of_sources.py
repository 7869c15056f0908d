"""The error source by source, and that on a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvstats.api.intervals import wald
from cvstats.api.running import Losses, Missing
from cvstats.api.sourcing import clustered, out_of_source
from cvstats.containers import read
from cvstats.errors import LogError
from cvstats.plot.lettering import above, numbers, rule
from cvstats.plot.of_folds import distinct
from cvstats.plot.of_intervals import draw
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

__all__ = ["sources"]


def sources(
    losses: Losses, *, alpha: float = 0.05, missing: Missing = "raise", ax: Axes | None = None
) -> Axes:
    """Draw an interval for each source, and below them the one for a new source.

    The target of each row is the error on that source; that of the last row is the error on a
    source drawn as these were (`out_of_source`). Where folds are not sources the last row is
    the cluster-robust interval of the mean (`clustered`), and says so.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log with a level ``source``, in which each point was tested once per repetition.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each source at y = 0, 1, 2, … downwards, then the last row, whose interval is
        also a pale band over all rows.

    Raises
    ------
    LogError
        If the log has no sources, or more of them or of models than one can read.

    Notes
    -----
    A source's interval is `wald` of its points, ``mean_k ± z se_k``: it takes the points of one
    source for independent given the source. Twelve intervals at 95% miss about once in two
    plots: they are not simultaneous.

    References
    ----------
    Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> ax = cvstats.plot.sources(losses, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()][-2:]
    ['2013-12', 'new source']
    """
    in_memory(losses)
    design = read(losses, missing=missing).design
    if not design.has("source"):
        raise LogError("the log has no level 'source' with two labels or more, so it has none.")
    few_enough(design.number("source"), "sources")
    each = tidy(wald(losses, by="source", alpha=alpha, missing=missing), losses)
    try:
        whole = tidy(out_of_source(losses, alpha=alpha, missing=missing), losses)
        last = "new source"
    except LogError:
        whole = tidy(clustered(losses, alpha=alpha, missing=missing), losses)
        last = "all (clustered)"
    models = list(dict.fromkeys(each["model"]))
    distinct(models)
    labels = list(dict.fromkeys(each["source"]))
    place = {label: at for at, label in enumerate(labels)}
    ax = canvas(ax, (len(labels) + 1) * max(1.0, 0.45 * len(models)))
    shifts = spread(len(models), 0.5)
    apart = (shifts[1] - shifts[0] if len(models) > 1 else 1.0) / (len(labels) + 1)
    size = float(np.clip(0.7 * 72 * ax.figure.bbox.height / ax.figure.dpi * apart, 2.5, 5.5))
    style = zip(models, shifts, COLOURS, MARKERS, strict=False)
    for model, shift, colour, marker in style:
        part, end = each[each["model"] == model], whole[whole["model"] == model]
        draw(
            ax, part, [place[source] + shift for source in part["source"]],
            colour=colour, marker=marker, label=model or f"{level_words(alpha)} interval",
            size=size,
        )  # fmt: skip
        ax.axvspan(*end[["lower", "upper"]].to_numpy()[0], color=colour, alpha=0.1, linewidth=0)
        draw(ax, end, [len(labels) + shift], colour=colour, marker=marker, label=None, size=size)
    ax.axhline(len(labels) - 0.5, color="black", linewidth=0.8)
    rule(ax, "y", [*labels, last])
    ax.set_ylim(len(labels) + 0.5, -0.5)
    numbers(ax, loss_words(losses))
    above(ax)
    return ax
