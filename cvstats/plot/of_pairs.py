"""Differences between models: intervals about zero, or a matrix of all pairs."""

from __future__ import annotations

from collections.abc import Hashable
from textwrap import fill
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from cvstats.api.comparing import compare
from cvstats.api.running import Compared, Losses, Missing
from cvstats.api.showing import cells
from cvstats.errors import LogError, checked_choice
from cvstats.plans.drawing import Rng
from cvstats.plot.of_intervals import draw
from cvstats.plot.style import (
    COLOURS,
    GREY,
    MOST_ROWS,
    above,
    canvas,
    column,
    few_enough,
    in_memory,
    level_words,
    loss_words,
    name_x,
    numbers,
    tidy,
    told,
)
from cvstats.types import MaskArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["comparison"]

KINDS = ("intervals", "matrix")
MANY = 10
"""More pairs than these make a matrix, unless one asks for intervals."""


def comparison(
    losses: Losses,
    other: Losses | None = None,
    *,
    reference: Hashable = None,
    kind: Literal["intervals", "matrix"] | None = None,
    method: Compared | None = None,
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
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib.axes.Axes
        Intervals: a row for each pair at y = 0, 1, 2, … downwards; full marks where the
        adjusted p-value is below ``alpha``. Matrix: the loss of the row's model minus that of
        the column's, written in the cells where there is room; a dot, or bold writing, where
        the adjusted p-value is below ``alpha``.

    Raises
    ------
    LogError
        If the models cannot be compared, or a matrix is asked of something else than all pairs
        of models.

    Notes
    -----
    Left of zero, or blue, the first model has the smaller loss. Only ``adjust="max-t"`` makes
    intervals that hold at once; otherwise marks and limits may disagree, for the mark
    allows for the number of comparisons and the limits do not.

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
    ['random_forest\n− ridge', 'gradient_boosting\n− ridge']
    """
    in_memory(losses)
    checked_choice("kind", kind, (*KINDS, None))
    table = tidy(
        compare(
            losses, other, reference=reference, method=method, adjust=adjust, alpha=alpha, rng=rng,
            missing=missing,
        ),
        losses,
    )  # fmt: skip
    every = other is None and reference is None and table["model"].str.find(" · ").max() < 0
    if kind == "matrix" and not every:
        raise LogError(
            "a matrix shows all pairs of models. Expected neither other nor reference, and no "
            "carried dimensions. Use kind='intervals'."
        )
    if kind is None:
        kind = "matrix" if every and len(table) > MANY else "intervals"
    p = table["p_adjusted" if "p_adjusted" in table else "p_value"].to_numpy(dtype=float)
    clear = p < alpha
    if kind == "matrix":
        return matrix(table, clear, losses, alpha, adjust, ax)
    return intervals(table, clear, losses, alpha, adjust, ax)


def evidence(alpha: float, adjust: str | None, number: int) -> str:
    """Say what a full mark means."""
    return f"p < {alpha:g}" + (f" ({adjust})" if adjust and number > 1 else "")


def intervals(
    table: pd.DataFrame, clear: MaskArray, losses: Losses, alpha: float, adjust: str | None,
    ax: Axes | None,
) -> Axes:  # fmt: skip
    """Draw a row for each pair."""
    few_enough(len(table), "pairs")
    ax = canvas(ax, 1.6 * len(table))
    at = np.arange(len(table), dtype=float)
    ax.axvline(0, color="black", linewidth=0.9)
    words = evidence(alpha, adjust, len(table))
    for here, colour, filled, label in (
        (clear, COLOURS[0], True, words),
        (~clear, GREY, False, words.replace("<", "≥")),
    ):
        if here.any():
            draw(
                ax, table[here], at[here].tolist(), colour=colour, marker="o", filled=filled,
                label=label, name="difference",
            )  # fmt: skip
    first = told(list(table["model"]))
    second = told(list(table["other"].astype(str)))
    names = [
        f"{a or 'the first'}\n− {b}" if b not in ("", "None") else "difference"
        for a, b in zip(first, second, strict=True)
    ]
    ax.set_yticks(at, names)
    ax.set_ylim(len(table) - 0.4, -0.6)
    what = loss_words(losses, "difference in ")
    numbers(ax, f"{what}, {level_words(alpha)}", "← first is better")
    above(ax)
    return ax


def matrix(
    table: pd.DataFrame, clear: MaskArray, losses: Losses, alpha: float, adjust: str | None,
    ax: Axes | None,
) -> Axes:  # fmt: skip
    """Draw a square for each pair, and its mirror image with the other sign."""
    models = list(dict.fromkeys([*table["model"], *table["other"].astype(str)]))
    if len(models) > MOST_ROWS:
        few_enough(len(models), "models")
    place = {model: at for at, model in enumerate(models)}
    i = table["model"].map(place).to_numpy()
    j = table["other"].astype(str).map(place).to_numpy()
    values = np.full((len(models), len(models)), np.nan)
    found = table["difference"].to_numpy(dtype=float)
    values[i, j], values[j, i] = found, -found
    most = float(np.nanmax(np.abs(values))) or 1.0
    ax = canvas(ax, max(9.0, 1.2 * len(models)))
    wide = column(ax)  # before the colour bar takes a part of it
    names = told(models, 16 if wide < 330 else 28)
    room = (0.85 * wide - 5.5 * max(map(len, names)) - 40) / len(models)
    edges = np.arange(len(models) + 1) - 0.5
    image = ax.pcolormesh(edges, edges, values, cmap="RdBu_r", vmin=-most, vmax=most)
    ax.set_ylim(len(models) - 0.5, -0.5)
    bar = ax.figure.colorbar(image, ax=ax)
    high = 72 * ax.figure.bbox.height / ax.figure.dpi
    words = fill(loss_words(losses, "row − column, "), max(14, int(0.5 * high / 5)))
    bar.set_label(words, fontsize="small", labelpad=2)
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)
    if bar.solids is not None:
        bar.solids.set(rasterized=False, edgecolor="face")  # an SVG without pixels
    texts = cells(table)["difference"].to_list()
    written = max(map(len, texts)) * 5.2 <= room
    for one, two, text, sure in zip(i, j, texts, clear, strict=True):
        mirrored = text[1:] if text.startswith("-") else f"-{text}"
        for y, x, label in ((one, two, text), (two, one, mirrored)):
            shade = "white" if abs(values[y, x]) > 0.6 * most else "black"
            if written:
                weight = "bold" if sure else "normal"
                ax.text(x, y, label.replace("-", "−"), ha="center", va="center", color=shade,
                        fontsize=8, fontweight=weight)  # fmt: skip
            elif sure:
                ax.plot(x, y, marker=".", color=shade, markersize=4)
    ax.set_yticks(range(len(models)), names)
    ax.set_xticks(range(len(models)), names, rotation=90)
    mark = "bold" if written else "dot"
    name_x(ax, f"{mark}: {evidence(alpha, adjust, len(table))}", "blue: the row is better")
    return ax
