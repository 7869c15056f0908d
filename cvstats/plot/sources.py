"""The error of each source, and that on a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvstats.errors import LogError
from cvstats.intervals import find_method
from cvstats.intervals._recommend import recommend_method
from cvstats.intervals.wald import wald
from cvstats.log.log import Losses, Table
from cvstats.log.read import read
from cvstats.options import Missing
from cvstats.plot._labels import (
    describe_level,
    describe_loss,
    legend_above,
    set_numbers,
    set_tick_labels,
)
from cvstats.plot._style import (
    COLOURS,
    MARKERS,
    MOST_ROWS,
    canvas,
    check_distinct,
    facts_of,
    offsets,
    rank_models,
    require_memory,
    result_rows,
)
from cvstats.plot.forest import draw_intervals
from cvstats.recommend import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sources(
    losses: Losses, *, alpha: float = 0.05, missing: Missing = "raise", ax: Axes | None = None
) -> Axes:
    """Draw an interval for each source, the best first, and below them that for a new source.

    The target of each row is the error on that source; that of the last row is the mean error on
    sources drawn as these were. Where sources were not left out one at a time, the last row is
    the interval of the mean loss whose sample are the sources, and names its method.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log with a level ``source``, in which each point was tested once per repetition.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each source at y = 0, 1, 2, … downwards, the best mean over the models first,
        then the last row, whose interval is also a pale band over all rows. More than 60 sources
        are so many thin lines without names, in the same order.

    Raises
    ------
    LogError
        If the log has no sources, or more models than there are colours.

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
    ['2013-12', 'mean of new sources']
    """
    require_memory(losses)
    design = read(losses, missing=missing).design
    if not design.has("source"):
        raise LogError("the log has no level 'source' with two labels or more. Expected one.")
    each = result_rows(wald(losses, by="source", alpha=alpha, missing=missing), losses)
    last, whole = group_interval(losses, alpha=alpha, missing=missing)
    last = "mean of new sources" if last == "new source" else last
    whole_rows = result_rows(whole, losses)
    models = rank_models(whole_rows, losses)
    check_distinct(len(models))
    labels = rank_models(each.drop(columns="model").rename(columns={"source": "model"}), losses)
    many = len(labels) > MOST_ROWS
    gap = max(1.0, 0.04 * len(labels))  # where the last row would touch many others
    last_at = len(labels) - 1 + gap
    place = {label: at for at, label in enumerate(labels)}
    ax = canvas(ax, 30 if many else (len(labels) + 1) * max(1.0, 0.45 * len(models)))
    shifts = offsets(len(models), 0.5)
    step = (shifts[1] - shifts[0] if len(models) > 1 else 1.0) / (len(labels) + 1)
    height = 72 * ax.figure.bbox.height / ax.figure.dpi
    size = float(np.clip(0.7 * height * step, 1.2 if many else 2.5, 5.5))
    width = float(np.clip(0.5 * height * step, 0.3, 1.6))
    whole_shifts = offsets(len(models), 0.5 * gap)
    style = zip(models, shifts, whole_shifts, COLOURS, MARKERS, strict=False)
    for model, shift, whole_shift, colour, marker in style:
        part, end = each[each["model"] == model], whole_rows[whole_rows["model"] == model]
        draw_intervals(
            ax, part, [place[source] + shift for source in part["source"]],
            colour=colour, marker=marker, label=model or f"{describe_level(alpha)} interval",
            size=size, width=width,
        )  # fmt: skip
        ax.axvspan(*end[["lower", "upper"]].to_numpy()[0], color=colour, alpha=0.1, linewidth=0)
        draw_intervals(
            ax, end, [last_at + whole_shift], colour=colour, marker=marker, label=None,
            size=max(size, 4.0),
        )  # fmt: skip
    ax.axhline(last_at - gap / 2, color="black", linewidth=0.8)
    if many:
        ax.set_yticks([len(labels) / 2, last_at], [f"{len(labels):,} sources,\nbest first", last])
    else:
        set_tick_labels(ax, "y", [*labels, last])
    ax.set_ylim(last_at + gap / 2, -0.5)
    set_numbers(ax, describe_loss(losses))
    legend_above(ax)
    return ax


def group_interval(losses: Losses, *, alpha: float, missing: Missing) -> tuple[str, Table]:
    """Compute the interval that the design calls for if its sample are the sources.

    Otherwise, where sources are divided, that of `clustered`. Returns what it is for, in a few
    words, and the result.
    """
    name = recommend_method(read(losses, missing=missing))[0]
    method = find_method(name if find_method(name).of_groups else "clustered")
    result = interval(losses, method=method.name, alpha=alpha, missing=missing)
    if method.plan and facts_of(losses).get("sources_are") == "fixed":
        return "mean of all", result
    return "new source" if method.plan else f"all ({method.name})", result
