"""Intervals of several models and methods below each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cvstats.log.log import Losses, Table
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
    GREY,
    MARKERS,
    canvas,
    check_rows,
    offsets,
    rank_models,
    require_memory,
    result_rows,
)
from cvstats.recommend import interval
from cvstats.recommend import methods as list_methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forest(
    losses: Losses,
    *,
    methods: Sequence[str] | Mapping[str, Table] | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the intervals of all models, several methods side by side.

    The target of each interval is that of its method, see the ``attrs`` of its result.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log. ``attrs["long_name"]`` and ``attrs["units"]`` label the axis.
    methods : sequence of str, or mapping of str to result, optional
        The names of methods, or results of any methods by the names to show. By default what
        `cvstats.interval` chooses, and `naive` where it applies.
    alpha : float, optional
        One minus the level, for methods given by name.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each model or cell at y = 0, 1, 2, … downwards, the best estimate of the
        first method first; methods without any guarantee in grey. A legend names the methods.

    Raises
    ------
    LogError
        If a method does not take the log, or there are more than 60 rows.

    Notes
    -----
    The marks are at ``estimate`` and the lines reach from ``lower`` to ``upper``, nothing
    rounded. Where an interval does not exist there is only a mark.

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
    ['wald, 95%', 'naive, 95%']
    """
    require_memory(losses)
    results = compute_intervals(losses, methods, alpha, missing)
    rows = {name: result_rows(result, losses) for name, result in results.items()}
    for table in rows.values():
        check_rows(len(table), "rows")
    first = next(iter(rows.values()), pd.DataFrame({"model": [], "estimate": []}))
    ranked = rank_models(first, losses)
    models = list(dict.fromkeys([*ranked, *(m for table in rows.values() for m in table["model"])]))
    place = {model: at for at, model in enumerate(models)}
    ax = canvas(ax, len(models) * max(1.0, 0.7 * len(rows)))
    beside = offsets(len(rows), min(0.6, 0.22 * (len(rows) - 1)))
    bright = iter(zip(COLOURS * len(rows), MARKERS * len(rows), strict=False))
    for (name, table), shift in zip(rows.items(), beside, strict=True):
        facts = results[name].attrs
        grey = str(facts.get("guarantee", "")).startswith("none")
        colour, marker = (GREY, "o") if grey else next(bright)
        level = describe_level(float(facts.get("alpha", alpha)))
        draw_intervals(
            ax, table, [place[model] + shift for model in table["model"]],
            colour=colour, marker=marker, label=f"{name}, {level}",
        )  # fmt: skip
    set_tick_labels(ax, "y", models)
    ax.set_ylim(len(models) - 0.5, -0.5)
    set_numbers(ax, describe_loss(losses))
    legend_above(ax)
    return ax


def compute_intervals(
    losses: Losses,
    methods: Sequence[str] | Mapping[str, Table] | None,
    alpha: float,
    missing: Missing,
) -> dict[str, Table]:
    """Compute the intervals that were asked for by name; take results as they are."""
    if isinstance(methods, Mapping):
        return dict(methods)
    found = {}
    if methods is None:
        chosen = interval(losses, alpha=alpha, missing=missing)
        found[str(chosen.attrs["method"])] = chosen
        methods = ["naive"] if list_methods(losses).loc["naive", "applies"] else []
    for name in methods:
        found[name] = interval(losses, method=name, alpha=alpha, missing=missing)
    return found


def draw_intervals(
    ax: Axes, table: pd.DataFrame, at: Sequence[float], *, colour: str, marker: str,
    label: str | None, name: str = "estimate", filled: bool = True, size: float = 5.5,
    width: float = 1.6,
) -> None:  # fmt: skip
    """Draw marks at the estimates and lines between the limits, at these heights."""
    middle = table[name].to_numpy(dtype=float)
    lower, upper = (table[side].to_numpy(dtype=float) for side in ("lower", "upper"))
    # An interval need not contain its estimate (percentiles may not): lines and marks are separate.
    known = np.isfinite(lower) & np.isfinite(upper)
    heights = np.asarray(at, dtype=float)
    ax.hlines(heights[known], lower[known], upper[known], colors=colour, linewidth=width)
    ax.plot(
        middle, heights, linestyle="none", marker=marker, markersize=size, color=colour,
        markerfacecolor=colour if filled else "white", label=label,
    )  # fmt: skip
