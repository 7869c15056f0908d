"""The intervals of all models, below each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from cvstats.core.orientation import targets_of
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.log.log import Losses, Table
from cvstats.options import Missing
from cvstats.plot._axes import (
    GREY,
    MARKERS,
    canvas,
    check_rows,
    colours,
    describe_level,
    draw_intervals,
    keep_inside,
    label_values,
    legend_above,
    mark_sizes,
    name_cautions,
    offsets,
    rank_models,
    read_facts,
    result_rows,
    set_tick_labels,
)
from cvstats.recommend import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forest(
    losses: Losses,
    *,
    methods: Sequence[str] | Mapping[str, Table] | None = None,
    alpha: float = 0.05,
    log: bool = False,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the intervals of all models, several methods side by side.

    The target of each interval depends on its method; see the ``attrs`` of the result.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log. ``attrs["long_name"]`` and ``attrs["units"]`` label the axis.
    methods : sequence of str, or mapping of str to result, optional
        The names of methods, or results of any methods by the names to show. By default what
        `cvstats.interval` chooses.
    alpha : float, optional
        One minus the level, for methods given by name.
    log : bool, optional
        Whether the axis is logarithmic, so that one huge mean does not flatten all others.
        A lower limit that is not positive then lies outside the plot.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each model or cell at y = 0, 1, 2, … downwards, with the best estimate of the
        first method on top; methods without any guarantee are gray. A legend names the methods. A
        dotted line is at the best estimate of several models, or at the target of a metric.

    Raises
    ------
    LogError
        If a method does not apply to the log, there are more than 60 rows, or an estimate on a
        logarithmic axis is not positive.

    Notes
    -----
    Markers are at ``estimate`` and lines extend from ``lower`` to ``upper``, unrounded. If an
    interval does not exist, only the marker is drawn.

    References
    ----------
    Okabe and Ito (2008), Color universal design, https://jfly.uni-koeln.de/color/.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"])
    >>> ax = cvstats.plot.forest(losses, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['wald, 95%', 'best estimate']
    """
    facts = read_facts(losses, missing)
    results = compute_intervals(facts, methods, alpha)
    rows = {name: result_rows(result, facts) for name, result in results.items()}
    for table in rows.values():
        check_rows(len(table), "rows")
    first = next(iter(rows.values()), pd.DataFrame({"model": [], "estimate": []}))
    ranked = rank_models(first, facts)
    models = list(dict.fromkeys([*ranked, *(m for table in rows.values() for m in table["model"])]))
    place = {model: at for at, model in enumerate(models)}
    if log and any((table["estimate"] <= 0).any() for table in rows.values()):
        raise LogError(
            "log=True needs positive estimates, and at least one is 0 or negative. Omit it."
        )
    ax = canvas(ax, len(models) * max(1.0, 0.7 * len(rows)))
    beside = offsets(len(rows), min(0.6, 0.22 * (len(rows) - 1)))
    trusted: list[pd.DataFrame] = []
    bright = iter(zip(colours(ax) * len(rows), MARKERS * len(rows), strict=False))
    for (name, table), shift in zip(rows.items(), beside, strict=True):
        attrs = results[name].attrs
        grey = str(attrs.get("guarantee", "")).startswith("none")
        colour, marker = (GREY, "o") if grey else next(bright)
        trusted += [] if grey else [table]
        level = describe_level(float(attrs.get("alpha", alpha)))
        draw_intervals(
            ax, table, [place[model] + shift for model in table["model"]],
            colour=colour, marker=marker, label=f"{name}, {level}", filled=not grey,
            sizes=mark_sizes(ax, len(models) * len(rows)),
        )  # fmt: skip
    set_tick_labels(ax, "y", models)
    ax.set_ylim(len(models) - 0.5, -0.5)
    if log:
        ax.set_xscale("log", nonpositive="clip")
        tables = pd.concat(rows.values())
        least = tables["lower"][tables["lower"] > 0].min()
        ax.set_xlim(left=0.9 * min(least, tables["estimate"].min()) if least > 0 else None)
    draw_reference(ax, first, facts)
    label_values(ax, facts, below=name_cautions(pd.concat(trusted)) if trusted else ())
    legend_above(ax)
    return keep_inside(ax)


def draw_reference(ax: Axes, table: pd.DataFrame, facts: LogFacts) -> None:
    """Draw a line at the target of the metric, at 0 for differences, or at the best estimate."""
    found = targets_of(facts.attrs)
    if found and len(found) < len(facts.attrs.get("metrics", found)):
        return  # of some metrics
    targets = set(found.values())
    labels = facts.log.labels
    several = len(table) > 1 and len(labels.models) == facts.log.losses.width
    if len(targets) == 1:
        at, words = targets.pop(), "target"
    elif facts.log.of_differences:
        at, words = 0.0, "no difference"
    elif several and not targets:
        estimates = table["estimate"]
        at, words = estimates.max() if facts.is_score else estimates.min(), "best estimate"
    else:
        return
    ax.axvline(at, color=GREY, linewidth=1.0, linestyle=":", zorder=0, label=words)


def compute_intervals(
    facts: LogFacts, methods: Sequence[str] | Mapping[str, Table] | None, alpha: float
) -> dict[str, Table]:
    """Compute the intervals requested by name; use results as they are."""
    if isinstance(methods, Mapping):
        return dict(methods)
    if isinstance(methods, str) or not isinstance(methods, Iterable | None):
        raise LogError(
            f"methods={methods!r} is not a list. Expected names of methods, such as ['wald'], or "
            "results by name."
        )
    if methods is None:
        chosen = facts.apply(interval, method=None, alpha=alpha)
        return {str(chosen.attrs["method"]): chosen}
    return {name: facts.apply(interval, method=name, alpha=alpha) for name in methods}
