"""Intervals of several models and methods below each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvstats.api.choosing import interval, methods
from cvstats.api.running import Losses, Missing, Table
from cvstats.plot.lettering import above, numbers, rule
from cvstats.plot.style import (
    COLOURS,
    GREY,
    MARKERS,
    canvas,
    in_memory,
    level_words,
    loss_words,
    rows_of,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["forest"]

NAIVE = ("naive", "cv_t")
"""Methods that show what not to use; they are drawn in grey."""


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
        The names of methods, or results of any methods by the names to show. Without it: what
        `cvstats.interval` chooses, and ``naive`` where it applies.
    alpha : float, optional
        One minus the level, for methods given by name.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each model or carried cell, at y = 0, 1, 2, … downwards; ``naive`` and
        ``cv_t`` in grey. A legend names the methods.

    Raises
    ------
    LogError
        If a method does not take the log, or there are more rows than one can read.

    Notes
    -----
    The marks stand at ``estimate`` and the lines reach from ``lower`` to ``upper``, nothing
    rounded. An interval that does not exist leaves its mark alone.

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
    in_memory(losses)
    tables = results(losses, methods, alpha, missing)
    rows = {name: rows_of(table, losses) for name, table in tables.items()}
    models = list(dict.fromkeys(name for table in rows.values() for name in table["model"]))
    place = {model: at for at, model in enumerate(models)}
    ax = canvas(ax, len(models) * max(1.0, 0.7 * len(rows)))
    beside = spread(len(rows), min(0.6, 0.22 * (len(rows) - 1)))
    proper = iter(zip(COLOURS * len(rows), MARKERS * len(rows), strict=False))
    for (name, table), shift in zip(rows.items(), beside, strict=True):
        shown_as = str(tables[name].attrs.get("method", name))
        colour, marker = (GREY, "o") if shown_as in NAIVE or name in NAIVE else next(proper)
        level = float(tables[name].attrs.get("alpha", alpha))
        draw(
            ax, table, [place[model] + shift for model in table["model"]],
            colour=colour, marker=marker, label=f"{name}, {level_words(level)}",
        )  # fmt: skip
    rule(ax, "y", models)
    ax.set_ylim(len(models) - 0.5, -0.5)
    numbers(ax, loss_words(losses))
    above(ax)
    return ax


def results(
    losses: Losses,
    wanted: Sequence[str] | Mapping[str, Table] | None,
    alpha: float,
    missing: Missing,
) -> dict[str, Table]:
    """Compute the intervals that were asked for by name; take results as they are."""
    if isinstance(wanted, Mapping):
        return dict(wanted)
    if wanted is None:
        usual = interval(losses, alpha=alpha, missing=missing)
        found = {str(usual.attrs["method"]): usual}
        if methods(losses).loc["naive", "applies"]:
            found["naive"] = interval(losses, method="naive", alpha=alpha, missing=missing)
        return found
    return {name: interval(losses, method=name, alpha=alpha, missing=missing) for name in wanted}


def draw(
    ax: Axes, table: Any, at: Sequence[float], *, colour: str, marker: str, label: str | None,
    name: str = "estimate", filled: bool = True, size: float = 5.5,
) -> None:  # fmt: skip
    """Draw marks at the estimates and lines between the limits, at these heights."""
    middle = table[name].to_numpy(dtype=float)
    lower, upper = (table[side].to_numpy(dtype=float) for side in ("lower", "upper"))
    # An interval need not hold its estimate (percentiles may not), so lines and marks are apart.
    known = np.isfinite(lower) & np.isfinite(upper)
    heights = np.asarray(at, dtype=float)
    ax.hlines(heights[known], lower[known], upper[known], colors=colour, linewidth=1.6)
    ax.plot(
        middle, heights, linestyle="none", marker=marker, markersize=size, color=colour,
        markerfacecolor=colour if filled else "white", label=label,
    )  # fmt: skip
