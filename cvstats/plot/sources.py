"""The interval of each source, and the interval for new sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.intervals.wald import wald
from cvstats.log.log import Losses
from cvstats.options import Missing
from cvstats.plot._axes import (
    LETTER,
    MARKERS,
    MOST_ROWS,
    canvas,
    colours,
    describe_level,
    draw_intervals,
    draw_panels,
    ink,
    keep_inside,
    label_values,
    legend_above,
    letters_across,
    mark_sizes,
    name_cautions,
    offsets,
    rank_models,
    read_facts,
    result_rows,
    set_tick_labels,
)
from cvstats.recommend import group_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LONGEST = 20
"""Maximum number of letters of a name next to panels."""


def sources(
    losses: Losses, *, alpha: float = 0.05, missing: Missing = "raise", ax: Axes | None = None
) -> Axes:
    """Draw an interval for each source, the best first, and the interval for new sources below.

    The target of each row is the error on that source. The target of the last row is the mean error
    on new sources from the same population. If sources were not left out one at a time, the last
    row shows the interval for the mean loss with sources as the sampling unit, labeled with the
    name of its method.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log with a level ``source``, in which each point was tested once per repetition.
    alpha : float, optional
        One minus the level.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each source at y = 0, 1, 2, … downwards, the best mean over the models first,
        then the last row; with one model its interval is also a pale band over all rows. More than
        60 sources are thin lines without names, in the same order. More than seven models, or
        several with more than 60 sources, have a panel each, in ``child_axes``.

    Raises
    ------
    LogError
        If the log has no sources, or the panels of many models do not fit.

    Notes
    -----
    The interval of a source is the `wald` interval of its points, ``mean_k ± z se_k``, which treats
    the points of a source as independent given the source. The intervals are not simultaneous: with
    twelve 95% intervals, about every second plot contains an interval that misses.

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
    ['2013-12', 'mean over new sources']
    """
    facts = read_facts(losses, missing)
    if not facts.design.has("source"):
        raise LogError(
            "plot.sources needs a level 'source' with at least two labels. Add it: "
            "as_log(frame, source='hospital')."
        )
    last, whole = group_interval(facts, alpha=alpha)
    whole_rows = result_rows(whole, facts)
    models = rank_models(whole_rows, facts)
    each, labels = rank_sources(facts, alpha=alpha)
    many = len(labels) > MOST_ROWS
    if last == "new source":
        last = "mean over new sources"
    tables, level = (each, whole_rows), describe_level(alpha)
    if len(models) > len(MARKERS) or (many and len(models) > 1):
        last = last.replace("mean over new", "new")
        names = [last] if many else [*map(str, labels), last]
        beside = 12 + LETTER["small"] * min(LONGEST, max(map(len, names)))
        ax = draw_panels(
            ax, models,
            lambda panel, model: draw_rows(
                panel, *tables, [model], labels, last, level, LONGEST
            ),
            numbers="x", beside=beside, aspect=0.6 if many else 1.0,
        )  # fmt: skip
    else:
        ax = canvas(ax, 30 if many else (len(labels) + 1) * max(1.0, 0.45 * len(models)))
        if len(last) > letters_across(ax, 0.42):
            last = last.replace("mean over new", "new")
        draw_rows(ax, *tables, models, labels, last, level)
        legend_above(ax)
    label_values(ax, facts, below=name_cautions(whole_rows))
    return keep_inside(ax)


def rank_sources(facts: LogFacts, *, alpha: float) -> tuple[pd.DataFrame, list[str]]:
    """Compute the interval of each source and model, and order the sources, the best first."""
    each = result_rows(facts.apply(wald, by="source", alpha=alpha), facts)
    means = each.drop(columns="model").rename(columns={"source": "model"})
    return each, rank_models(means, facts)


def draw_rows(
    ax: Axes, each: pd.DataFrame, whole: pd.DataFrame, models: list[str], labels: list[str],
    last: str, level: str, longest: int | None = None,
) -> None:  # fmt: skip
    """Draw a row for each source, and one below them for all."""
    many = len(labels) > MOST_ROWS
    gap = max(1.0, 0.04 * len(labels))  # so that the last row does not touch the others
    last_at = len(labels) - 1 + gap
    place = {label: at for at, label in enumerate(labels)}
    shifts = offsets(len(models), 0.5)
    step = (shifts[1] - shifts[0] if len(models) > 1 else 1.0) / (len(labels) + 1)
    size, width = mark_sizes(ax, 1 / step, 1.2 if many else 2.5)
    whole_shifts = offsets(len(models), 0.5 * gap)
    style = zip(models, shifts, whole_shifts, colours(ax), MARKERS, strict=False)
    for model, shift, whole_shift, colour, marker in style:
        part, end = each[each["model"] == model], whole[whole["model"] == model]
        draw_intervals(
            ax, part, [place[source] + shift for source in part["source"]],
            colour=colour, marker=marker, label=model or f"{level} interval",
            sizes=(size, width),
        )  # fmt: skip
        if len(models) == 1:
            limits = end[["lower", "upper"]].to_numpy()[0]
            ax.axvspan(*limits, color=colour, alpha=0.15, linewidth=0)
        draw_intervals(
            ax, end, [last_at + whole_shift], colour=colour, marker=marker, label=None,
            sizes=(max(size, 4.0), 1.6),
        )  # fmt: skip
    ax.axhline(last_at - gap / 2, color=ink(ax), linewidth=0.8)
    if many:
        ax.set_yticks([len(labels) / 2, last_at], [f"{len(labels):,} sources,\nbest first", last])
    else:
        set_tick_labels(ax, "y", [*labels, last], longest)
    ax.set_ylim(last_at + gap / 2, -0.5)
