"""Differences between models, pair by pair, and their ranks."""

from __future__ import annotations

import math
from collections.abc import Hashable
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.comparisons.best_set import best_set as compute_best_set
from cvstats.comparisons.compare import compare
from cvstats.core.orientation import targets_of
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, checked_choice
from cvstats.facts import LogFacts
from cvstats.formatting import format_cells
from cvstats.log.log import Losses
from cvstats.options import Missing, Rng
from cvstats.plot._axes import (
    COLOURS,
    DIVERGING,
    GREY,
    LETTER,
    LINE,
    MOST_ROWS,
    TALLEST,
    add_bar,
    canvas,
    check_rows,
    column_width,
    describe_evidence,
    describe_level,
    describe_loss,
    describe_name,
    font_size,
    label_step,
    label_x,
    legend_above,
    letters_across,
    read_facts,
    result_rows,
    row_height,
    set_numbers,
    set_tick_labels,
    shorten_names,
)
from cvstats.plot.intervals import draw_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


KINDS = ("intervals", "matrix")
BAR, BELOW = 70.0, 45.0
"""Points that the colour bar takes beside a matrix, and the words below it."""
MANY = 10
"""More pairs than these make a matrix, unless one asks for intervals."""


def comparison(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    kind: Literal["intervals", "matrix"] | None = None,
    method: str | None = None,
    adjust: Literal["holm", "bh", "max-t"] | None = "holm",
    alpha: float = 0.05,
    rng: Rng = None,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the paired differences of models, with a line at zero; or all pairs as a matrix.

    The target is the difference of what the interval covers, see `compare`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations.
    reference : hashable, optional
        In place of ``other``, the model to which the others are compared; all pairs otherwise.
    kind : {"intervals", "matrix"}, optional
        Without it, a matrix for more than ten pairs.
    method, adjust, alpha, rng, missing : optional
        As in `compare`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Intervals: a row for each pair at y = 0, 1, 2, … downwards, the one most in favour of its
        first model first; full marks where the adjusted p-value is below ``alpha``. Matrix: the
        loss of the row's model minus that of the column's, the best model first, written in the
        cells where it fits; a dot, or bold writing, where the adjusted p-value is below ``alpha``.

    Raises
    ------
    LogError
        If the models cannot be compared, or a matrix is asked for something other than all pairs
        of models.

    Notes
    -----
    Left of zero, or blue, the first model has the smaller loss. A log that was made from a score
    is drawn as the score: then the first is better right of zero. Only ``adjust="max-t"`` gives
    simultaneous intervals; otherwise marks and limits may disagree, since the marks are
    adjusted for the number of comparisons and the limits are not.

    References
    ----------
    Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"])
    >>> ax = cvstats.plot.comparison(losses, reference="ridge", ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['gradient_boosting\n− ridge', 'random_forest\n− ridge']
    """
    facts = read_facts(losses, missing)
    checked_choice("kind", kind, (*KINDS, None))
    options: dict[str, Any] = {"reference": reference, "method": method, "adjust": adjust}
    options |= {"alpha": alpha, "rng": rng}
    found = facts.apply(compare, **options) if other is None else (
        compare(losses, other, missing=missing, **options)
    )  # fmt: skip
    return draw_comparison(
        found, facts, alpha=alpha, adjust=adjust, ax=ax, kind=kind,
        one_log=other is None and reference is None,
    )  # fmt: skip


def draw_comparison(
    found: Any, facts: LogFacts, *, alpha: float, adjust: str | None, ax: Axes | None,
    kind: str | None = None, one_log: bool = True,
) -> Axes:  # fmt: skip
    """Draw a comparison that was computed; ``one_log`` if all models of a log may be paired."""
    table = result_rows(found, facts)
    n = len({*table["model"], *table["other"]})
    all_pairs = one_log and len(table) == n * (n - 1) // 2
    if kind == "matrix" and not all_pairs:
        raise LogError(
            "a matrix shows all pairs of models. Expected neither other nor reference, and no "
            "dimensions besides the models. Use kind='intervals'."
        )
    if kind is None:
        kind = "matrix" if all_pairs and len(table) > MANY else "intervals"
    if kind == "intervals":
        table = table.sort_values("difference", kind="stable", ascending=not facts.is_score)
        table = table.reset_index(drop=True)
    p = table["p_adjusted" if "p_adjusted" in table else "p_value"].to_numpy(dtype=float)
    clear = p < alpha
    if kind == "matrix":
        return draw_matrix(table, clear, facts, alpha, adjust, ax)
    return draw_rows(table, clear, facts, alpha, adjust, ax)


def draw_rows(
    table: pd.DataFrame, clear: MaskArray, facts: LogFacts, alpha: float, adjust: str | None,
    ax: Axes | None,
) -> Axes:  # fmt: skip
    """Draw a row for each pair."""
    check_rows(len(table), "pairs")
    ax = canvas(ax, max(3.0, 1.6 * len(table)))
    at = np.arange(len(table), dtype=float)
    ax.axvline(0, color="black", linewidth=0.9)
    words = describe_evidence(alpha, adjust, len(table))
    for here, colour, filled, label in (
        (clear, COLOURS[0], True, words),
        (~clear, GREY, False, words.replace("<", "≥")),
    ):
        if here.any():
            draw_intervals(
                ax, table[here], at[here].tolist(), colour=colour, marker="o", filled=filled,
                label=label, name="difference",
            )  # fmt: skip
    name_pairs(ax, list(table["model"]), list(table["other"]))
    ax.set_ylim(len(table) - 0.4, -0.6)
    what = describe_loss(facts, "difference in ")
    # The level does not get a line of its own.
    better = "first is better →" if facts.is_score else "← first is better"
    direction = [] if targets_of(facts.attrs) else [better]
    set_numbers(ax, f"{what},\N{NO-BREAK SPACE}{describe_level(alpha)}", *direction)
    legend_above(ax)
    return ax


def name_pairs(ax: Axes, first: list[str], second: list[str]) -> None:
    """Name each row, the other model on a second line; of too many rows, some on one line."""
    pairs = len(first)
    one_line = label_step(ax, pairs, lines=2) > 1
    names = list(dict.fromkeys([*first, *second]))  # shortened together: one form for each
    room = letters_across(ax, 0.42) - 2
    short = dict(
        zip(names, shorten_names(names, max(8, (room - 1) // 2 if one_line else room)), strict=True)
    )
    between = " − " if one_line else "\n− "
    words = [
        f"{short[a] or 'the first'}{between}{short[b]}" if b not in ("", "None") else "difference"
        for a, b in zip(first, second, strict=True)
    ]
    some = slice(None, None, label_step(ax, pairs) if one_line else 1)
    ax.set_yticks(range(pairs)[some], words[some])


def draw_matrix(
    table: pd.DataFrame, clear: MaskArray, facts: LogFacts, alpha: float, adjust: str | None,
    ax: Axes | None,
) -> Axes:  # fmt: skip
    """Draw a square for each pair, and its mirror image with the other sign."""
    models = list(dict.fromkeys([*table["model"], *table["other"]]))
    if len(models) > MOST_ROWS:
        check_rows(len(models), "models")
    place = {model: at for at, model in enumerate(models)}
    i = table["model"].map(place).to_numpy()
    j = table["other"].map(place).to_numpy()
    values = np.full((len(models), len(models)), np.nan)
    found = table["difference"].to_numpy(dtype=float)
    values[i, j], values[j, i] = found, -found
    order = np.argsort(np.nanmean(values, axis=1), kind="stable")  # of the means, the least first
    if facts.is_score:
        order = order[::-1]
    models, values = [models[at] for at in order], values[np.ix_(order, order)]
    i, j = np.argsort(order)[i], np.argsort(order)[j]
    most = float(np.nanmax(np.abs(values))) or 1.0
    ax, side = square_canvas(models, ax)
    edges = np.arange(len(models) + 1) - 0.5
    image = ax.pcolormesh(
        edges, edges, values, cmap=DIVERGING[facts.is_score], vmin=-most, vmax=most
    )
    ax.set_ylim(len(models) - 0.5, -0.5)
    add_bar(ax, image, describe_loss(facts, "row − column, "), int(0.9 * side[1] / 5))
    texts = format_cells(table)["difference"].to_list()
    wide, high = (length / len(models) for length in side)
    if max(map(len, texts)) * 5.6 + 2 <= wide and high > 10:
        write_differences(ax, i, j, texts, clear, values)
        mark = "bold"
    else:
        draw_dots(ax, i[clear], j[clear], values, min(4.0, 0.8 * wide, 0.8 * high))
        mark = "dot"
    direction = [] if targets_of(facts.attrs) else ["blue: the row is better"]
    label_x(ax, f"{mark}: {describe_evidence(alpha, adjust, len(table))}", *direction)
    return ax


def write_differences(
    ax: Axes, i: Any, j: Any, texts: list[str], clear: MaskArray, values: FloatArray
) -> None:
    """Write each difference in its cell, and with the other sign in the mirrored one."""
    dark = np.abs(values) > 0.6 * np.nanmax(np.abs(values))
    for one, two, text, sure in zip(i, j, texts, clear, strict=True):
        mirrored = text[1:] if text.startswith("-") else f"-{text}"
        for y, x, label in ((one, two, text), (two, one, mirrored)):
            ax.text(
                x, y, label.replace("-", "−"), ha="center", va="center", fontsize=8,
                color="white" if dark[y, x] else "black", fontweight="bold" if sure else "normal",
            )  # fmt: skip


def draw_dots(ax: Axes, i: Any, j: Any, values: FloatArray, size: float) -> None:
    """Put a dot into cells and their mirror images, as large as a cell has room for."""
    y, x = np.concatenate([i, j]), np.concatenate([j, i])
    dark = np.abs(values[y, x]) > 0.6 * np.nanmax(np.abs(values))
    for here, colour in ((dark, "white"), (~dark, "black")):
        if here.any():
            ax.plot(
                x[here], y[here], linestyle="none", marker=".", color=colour, markersize=size
            )  # fmt: skip


def square_canvas(models: list[str], ax: Axes | None) -> tuple[Axes, tuple[float, float]]:
    """Name the rows and columns of a matrix as far as there is room; measure its sides in points.

    A new figure has a row of writing for each model, and cells about as high as wide.
    """
    number = len(models)
    if ax is None:
        most = 28 if number < 20 else 20  # many names are better short
        beside = LETTER["medium"] * max(map(len, shorten_names(models, most))) + 10
        square = max(190.0, (40.0 if number <= 8 else 13.0) * number)  # room for numbers, or names
        wide = min(72 * TALLEST, max(360.0, square + beside + BAR))
        square = min(wide - beside - BAR, 72 * TALLEST - beside - BELOW)
        ax = canvas(None, ((square + beside + BELOW) / 72 - 1.3) / 0.27, width=wide / 72)
    else:
        ax = canvas(ax, number)
        most = 16 if column_width(ax) < 330 else 28
    names = shorten_names(models, most)
    writing = font_size(ax) if number < 20 else "small"
    ax.tick_params(labelsize=writing)
    beside = LETTER[writing] * max(map(len, names)) + 10
    side = column_width(ax) - beside - BAR, row_height(ax) - beside - BELOW
    if ax.figure.get_layout_engine() is None:  # then the Axes stays, but for the colour bar's part
        box = ax.get_window_extent()
        side = 72 / ax.figure.dpi * 0.8 * box.width, 72 / ax.figure.dpi * box.height
    side = max(30.0, side[0]), max(30.0, side[1])
    some = slice(None, None, math.ceil(LINE[writing] * number / min(side)))
    ax.set_yticks(range(number)[some], names[some])
    ax.set_xticks(range(number)[some], names[some], rotation=90)
    return ax, side


def best_set(
    losses: Losses,
    *,
    alpha: float = 0.05,
    center: Literal["fold", "global"] = "fold",
    n_draws: int = 10_000,
    rng: Rng = None,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    """Draw the range of the rank of each model, and the possibly best models.

    The target is the set of models with the smallest error, and the rank of each, see
    `cvstats.best_set`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A test set or a K-fold partition of several models.
    alpha, center, n_draws, rng, missing : optional
        As in `cvstats.best_set`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each model at y = 0, 1, 2, … downwards, the best estimate first: a line
        from ``lower_rank`` to ``upper_rank``, a mark at the rank of its mean loss, full and
        blue for the models in the set.

    Raises
    ------
    LogError
        If there is one model, the log does not suit `cvstats.best_set`, or there are carried
        dimensions.

    Notes
    -----
    Rank intervals are simultaneous at level ``1 - alpha``. A model whose rank interval begins
    at 1 may still be out of the set, whose test is the sharper one.

    References
    ----------
    Lei (2020), JASA 115(532), 1978-1997, doi:10.1080/01621459.2019.1672556.

    Examples
    --------
    >>> import cvstats
    >>> from matplotlib.figure import Figure
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> ax = cvstats.plot.best_set(losses, rng=0, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['gradient_boosting', 'logistic_regression', 'naive_bayes']
    """
    facts = read_facts(losses, missing)
    found = facts.apply(compute_best_set, alpha=alpha, center=center, n_draws=n_draws, rng=rng)
    table = result_rows(found, facts)
    if isinstance(found, xr.Dataset) and len(found.sizes) > 1:
        raise LogError("ranks are drawn for one cell at a time. Choose one, as in log.sel(lead=1).")
    if len(table) < 2:
        raise LogError("the log has one model. Expected two or more to rank.")
    check_rows(len(table), "models")
    upwards = not facts.is_score
    table = table.sort_values("estimate", kind="stable", ascending=upwards).reset_index(drop=True)
    ax = canvas(ax, len(table))
    at = np.arange(len(table))
    inside = table["in_set"].to_numpy(dtype=bool)
    own = table["estimate"].rank(method="min", ascending=upwards).to_numpy()
    for here, colour, filled, label in (
        (inside, COLOURS[0], True, "possibly best"),
        (~inside, GREY, False, "excluded"),
    ):
        if here.any():
            ends = table.loc[here, ["lower_rank", "upper_rank"]].to_numpy(dtype=float)
            ax.hlines(at[here], ends[:, 0], ends[:, 1], colors=colour, linewidth=1.8)
            ax.plot(
                own[here], at[here], linestyle="none", marker="o", markersize=6, color=colour,
                markerfacecolor=colour if filled else "white", label=label,
            )  # fmt: skip
    set_tick_labels(ax, "y", list(table["model"]))
    ax.set_ylim(len(table) - 0.5, -0.5)
    aside = max(0.4, 0.025 * len(table))  # no mark is on the frame
    ax.set_xlim(1 - aside, len(table) + aside)
    ax.set_xticks(choose_ticks(len(table), letters_across(ax, 0.5) // 3))
    label_x(
        ax,
        f"rank by {describe_name(facts)}, 1\N{NO-BREAK SPACE}is\N{NO-BREAK SPACE}best",
        f"({describe_level(alpha)}, simultaneous)",
    )
    legend_above(ax)
    return ax


def choose_ticks(last: int, most: int) -> list[int]:
    """Choose ranks to write below the axis: the first always, then even steps."""
    step = next(
        step
        for power in count()
        for step in (10**power, 2 * 10**power, 5 * 10**power)
        if (last - 1) / step < most
    )
    return list(range(1, last + 1, step)) if step < 5 else [1, *range(step, last + 1, step)]
