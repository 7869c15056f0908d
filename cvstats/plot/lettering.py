"""Writing around a plot: names of rows, numbers on an axis, what an axis shows, the legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from cvstats.plot.naming import told
from cvstats.plot.style import LETTER, column, every, letters, size, tall

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["above", "name_x", "numbers", "rule", "scaled"]


def rule(ax: Axes, along: Literal["x", "y"], labels: Sequence[Any]) -> None:
    """Label places 0, 1, 2, … by names; of too many, by a few of them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    names = told([str(label) for label in labels], letters(ax, 0.42))
    axis = ax.xaxis if along == "x" else ax.yaxis
    room = letters(ax, 0.7)
    if along == "y":
        last, step = len(names) - 1, every(ax, len(names))
        axis.set_major_locator(FixedLocator([*range(0, last - step + 1, step), last]))
    elif sum(len(name) + 2 for name in names) <= room:
        axis.set_major_locator(FixedLocator(list(range(len(names)))))
    else:
        most = max(1, room // (2 + max(map(len, names))) - 1)
        axis.set_major_locator(MaxNLocator(nbins=most, integer=True))

    def name(value: float, _: Any = None) -> str:
        at = round(value)
        return names[at] if 0 <= at < len(names) and math.isclose(at, value) else ""

    axis.set_major_formatter(FuncFormatter(name))


def above(ax: Axes, handles: Sequence[Any] | None = None) -> None:
    """Put the legend above the plot, where no data are, in as few lines as fit.

    Names are shortened until the legend stays within the figure; its size is measured, for the
    width of letters differs.
    """
    found, words = ax.get_legend_handles_labels()
    shown = found if handles is None else list(handles)
    words = words if handles is None else [str(handle.get_label()) for handle in shown]
    wide, high = space(ax)
    before: list[str] = []
    for most in (99, 60, 45, 36, 28, 22, 16, 12, 8):
        short = told(words, most)
        if short == before:
            continue
        before = short
        for columns in range(len(words), 0, -1):
            legend = ax.legend(
                shown, short, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns,
                frameon=False, fontsize="small", borderaxespad=0.2, handletextpad=0.4,
                columnspacing=1.2,
            )  # fmt: skip
            box = legend.get_window_extent()
            if box.width <= wide:
                break
        if box.width <= wide and (box.height <= high or most <= 16):
            return


def space(ax: Axes) -> tuple[float, float]:
    """Width and height in pixels of what a legend may take."""
    to_pixels = ax.figure.dpi / 72
    if ax.figure.get_layout_engine() is not None:  # it makes room, but not without end
        return 0.95 * column(ax) * to_pixels, 0.4 * tall(ax) * to_pixels
    place, page = ax.get_position(original=True), ax.figure.bbox
    wide = min(column(ax) * to_pixels, float(place.x1 * page.width))
    return 0.98 * wide, float((1 - place.y1) * page.height)


def name_x(ax: Axes, *lines: str) -> None:
    """Say what the horizontal axis shows, in lines that fit below it."""
    ticks = ax.yaxis.get_major_formatter().format_ticks(ax.yaxis.get_majorticklocs().tolist())
    beside = max((len(line) for text in ticks for line in text.split("\n")), default=0)
    # The label is centred below the plot, and that begins after the names of its rows.
    most = min(letters(ax, 0.62), max(8, letters(ax, 0.95) - beside - 2))
    ax.set_xlabel("\n".join(fill(line, most) for line in lines), fontsize=size(ax))


def name_y(ax: Axes, *lines: str) -> None:
    """Say what the vertical axis shows, in lines that fit beside it, below the legend."""
    legend = ax.get_legend()
    taken = 0.0 if legend is None else 72 / ax.figure.dpi * legend.get_window_extent().height
    most = max(8, int((tall(ax) - 30 - taken) / LETTER[size(ax)]))
    ax.set_ylabel("\n".join(fill(line, most) for line in lines), fontsize=size(ax))


POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def scaled(low: float, high: float) -> tuple[Any, str]:
    """Write numbers between limits in few digits.

    Returns how to write them, and the words for what was taken off all of them and for their
    power of ten; matplotlib would put these where legends stand.
    """
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    base, most, words = 0.0, max(abs(low), abs(high)), ""
    if not math.isfinite(most) or most == 0:
        return ScalarFormatter(useOffset=False), words
    if 0 < high - low < 1e-3 * most:
        unit = 10.0 ** math.ceil(math.log10(high - low))
        base = round((low + high) / 2 / unit) * unit
        most = max(abs(low - base), abs(high - base))
        words = f", {'minus' if base > 0 else 'plus'}\N{NO-BREAK SPACE}{abs(base):,.15g}"
    power = max(-300, math.floor(math.log10(most)))
    power = power // 3 * 3 if power >= 5 or power < -3 else 0
    if power:
        words += f", in\N{NO-BREAK SPACE}10{str(power).translate(POWERS)}"
    if not words:
        return ScalarFormatter(useOffset=False), words
    scale = 10.0**power
    places = 4 - math.floor(math.log10(most / scale))  # what a large base leaves is no number

    def word(at: float, _: Any = None) -> str:
        return f"{round((at - base) / scale, places) + 0.0:.6g}".replace("-", "−")

    return FuncFormatter(word), words


def numbers(ax: Axes, first: str, *rest: str, along: Literal["x", "y"] = "x") -> None:
    """Keep the numbers of an axis few and short, their power of ten in its label."""
    from matplotlib.ticker import MaxNLocator

    axis, limits = (ax.xaxis, ax.get_xlim()) if along == "x" else (ax.yaxis, ax.get_ylim())
    writing, words = scaled(*sorted(limits))
    axis.set_major_formatter(writing)
    if along == "y":
        name_y(ax, first + words, *rest)
        return
    axis.set_major_locator(MaxNLocator(nbins=3 if size(ax) == "small" else 4))
    name_x(ax, first + words, *rest)
