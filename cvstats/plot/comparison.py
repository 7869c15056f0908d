"""Differences between models, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from cvstats.comparisons.compare import compare
from cvstats.core.orientation import targets_of
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, checked_choice
from cvstats.facts import LogFacts
from cvstats.log.display import format_cells
from cvstats.log.log import Losses
from cvstats.options import Adjust, Missing, Rng
from cvstats.plot._axes import (
    LETTER,
    LINE,
    TALLEST,
    add_bar,
    canvas,
    check_rows,
    column_width,
    describe_level,
    describe_loss,
    describe_significance,
    diverging,
    draw_marked_rows,
    font_size,
    ink,
    is_dark,
    keep_inside,
    label_step,
    label_x,
    legend_above,
    letters_across,
    name_cautions,
    read_facts,
    result_rows,
    row_height,
    set_numbers,
    shorten_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


KINDS = ("intervals", "matrix")
BAR, BELOW = 70.0, 45.0
"""Space in points for the color bar next to a matrix, and for the text below it."""
MANY = 10
"""Number of pairs above which a matrix is drawn by default."""


def comparison(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    kind: Literal["intervals", "matrix"] | None = None,
    method: str | None = None,
    adjust: Adjust | Literal["max-t"] | None = "holm",
    alpha: float = 0.05,
    rng: Rng = None,
    missing: Missing = "raise",
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the paired differences of models, with a line at zero; or all pairs as a matrix.

    The target is the difference between the targets of the two models; see `compare`.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations.
    reference : hashable, optional
        Instead of ``other``, the model to which the others are compared; all pairs by default.
    kind : {"intervals", "matrix"}, optional
        The default is a matrix for more than ten pairs.
    method, adjust, alpha, rng, missing : optional
        As in `compare`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Intervals: a row for each pair at y = 0, 1, 2, … downwards, sorted so that the pair most
        in favor of its first model is on top; markers are filled if the adjusted p-value is below
        ``alpha``. Matrix: the loss of the row's model minus that of the column's, the best model
        first, written in the cells if it fits; a dot, or bold text, if the adjusted p-value is
        below ``alpha``.

    Raises
    ------
    LogError
        If the models cannot be compared, or a matrix is requested for anything but all pairs of
        models.

    Notes
    -----
    To the left of zero, and in blue squares, the first model has the smaller loss. If the log was
    made from a score, the score is drawn, and the first model is better to the right of zero. Only
    ``adjust="max-t"`` gives simultaneous intervals. Otherwise marks and limits may disagree,
    because the marks are adjusted for the number of comparisons and the limits are not.

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
    """Draw a computed comparison; ``one_log`` if all models of one log were paired."""
    table = result_rows(found, facts)
    n = len({*table["model"], *table["other"]})
    all_pairs = one_log and len(table) == n * (n - 1) // 2
    if kind == "matrix" and not all_pairs:
        raise LogError(
            "a matrix shows all pairs of models, and does not support other=, reference= or "
            "further dimensions. Use kind='intervals'."
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
    ax.axvline(0, color=ink(ax), linewidth=0.9)
    words = describe_significance(alpha, adjust, len(table))
    draw_marked_rows(ax, table, clear, "difference", (words, words.replace("<", "≥")))
    name_pairs(ax, list(table["model"]), list(table["other"]))
    ax.set_ylim(len(table) - 0.4, -0.6)
    what = describe_loss(facts, "difference in ")
    # The level does not get a separate line.
    better = "first is better →" if facts.is_score else "← first is better"
    below = [*([] if targets_of(facts.attrs) else [better]), *name_cautions(table)]
    set_numbers(ax, f"{what},\N{NO-BREAK SPACE}{describe_level(alpha)}", *below)
    legend_above(ax)
    return keep_inside(ax)


def name_pairs(ax: Axes, first: list[str], second: list[str]) -> None:
    """Name each row, with the other model on a second line; with many rows, some on one line."""
    pairs = len(first)
    one_line = label_step(ax, pairs, lines=2) > 1
    names = list(dict.fromkeys([*first, *second]))  # shortened together, to get one form for each
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
        edges, edges, values, cmap=diverging(ax, facts.is_score), vmin=-most, vmax=most
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
    below = [] if targets_of(facts.attrs) else ["blue: the row is better"]
    below += name_cautions(table)
    label_x(ax, f"{mark}: {describe_significance(alpha, adjust, len(table))}", *below)
    return keep_inside(ax)


def write_differences(
    ax: Axes, i: Any, j: Any, texts: list[str], clear: MaskArray, values: FloatArray
) -> None:
    """Write each difference in its cell, and with the other sign in the mirrored one."""
    strong = np.abs(values) > 0.6 * np.nanmax(np.abs(values))
    for one, two, text, sure in zip(i, j, texts, clear, strict=True):
        mirrored = text[1:] if text.startswith("-") else f"-{text}"
        for y, x, label in ((one, two, text), (two, one, mirrored)):
            ax.text(
                x, y, label.replace("-", "−"), ha="center", va="center", fontsize=8,
                color=choose_ink(ax, strong[y, x]),
                fontweight="bold" if sure else "normal",
            )  # fmt: skip


def choose_ink(ax: Axes, strong: bool) -> str:
    """Return a color that can be read on a strong or pale cell.

    It is not pure black or white, which a report replaces on a dark page; cells keep theirs.
    """
    return "#FEFEFE" if strong != is_dark(ax) else "#010101"


def draw_dots(ax: Axes, i: Any, j: Any, values: FloatArray, size: float) -> None:
    """Draw a dot in cells and their mirror images, as large as the cell allows."""
    y, x = np.concatenate([i, j]), np.concatenate([j, i])
    strong = np.abs(values[y, x]) > 0.6 * np.nanmax(np.abs(values))
    for here, colour in ((strong, choose_ink(ax, True)), (~strong, choose_ink(ax, False))):
        if here.any():
            ax.plot(
                x[here], y[here], linestyle="none", marker=".", color=colour, markersize=size
            )  # fmt: skip


def square_canvas(models: list[str], ax: Axes | None) -> tuple[Axes, tuple[float, float]]:
    """Label the rows and columns of a matrix as space allows; measure its sides in points.

    A new figure has one text row per model, and cells about as high as wide.
    """
    number = len(models)
    if ax is None:
        most = 28 if number < 20 else 20  # many names must be short
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
    below, columns = beside, list(names)
    if row_height(ax) - beside - BELOW < 0.4 * row_height(ax):  # columns have numbers of rows
        columns = [str(at) for at in range(1, number + 1)]
        names = [f"{name}  {at}" for name, at in zip(names, columns, strict=True)]
        beside, below = beside + 4 * LETTER[writing], LINE[writing]
    side = column_width(ax) - beside - BAR, row_height(ax) - below - BELOW
    if ax.figure.get_layout_engine() is None:  # the Axes keeps its place, except the color bar
        box = ax.get_window_extent()
        side = 72 / ax.figure.dpi * 0.8 * box.width, 72 / ax.figure.dpi * box.height
    side = max(30.0, side[0]), max(30.0, side[1])
    some = slice(None, None, math.ceil(LINE[writing] * number / min(side)))
    ax.set_yticks(range(number)[some], names[some])
    ax.set_xticks(range(number)[some], columns[some], rotation=90 if below == beside else 0)
    return ax, side
