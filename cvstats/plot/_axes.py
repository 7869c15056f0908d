"""Helpers shared by plots: palette, Axes, results as rows, intervals, axis labels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.cautions import narrow_labels
from cvstats.core.orientation import targets_of
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, describe_type, install_command, is_several
from cvstats.facts import LogFacts
from cvstats.formatting import (
    NAMES,
    as_scores,
    name_value,
    occurs_in_many,
    printable,
    result_frame,
    select_facts,
    write_labels,
)
from cvstats.large.moments import Moments
from cvstats.log.groups import METRIC
from cvstats.log.log import Losses
from cvstats.log.metadata import has_several
from cvstats.log.read import is_dask_frame
from cvstats.metrics import METRICS
from cvstats.options import Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too light for thin lines."""
ON_DARK = ("#56B4E9", "#E69F00", "#2FC39B", "#E59AC5", "#F0E442", "#F07B3F", "#FFFFFF")
"""The same hues on a dark background, light enough for thin lines."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#7A7A7A"
MOST_ROWS = 60
TALLEST = 12.0
"""Height of the largest figure, in inches."""
LETTER = {"small": 5.0, "medium": 5.9}
"""Width in points of a letter, for most words."""
LINE = {"small": 9.5, "medium": 11.5}
"""Height in points of a line."""

Size = Literal["small", "medium"]


# --- colors -----------------------------------------------------------------------------------


def paper(ax: Axes) -> str:
    """Return the background color: of the Axes, of the figure, or white."""
    from matplotlib.colors import to_hex, to_rgba

    behind = (to_rgba(of.get_facecolor()) for of in (ax, ax.figure) if of.patch.get_visible())
    return next((to_hex(colour) for colour in behind if colour[3] > 0), "#ffffff")


def is_dark(ax: Axes) -> bool:
    """Whether the background of an Axes is dark."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(paper(ax))) < 1.5


def colours(ax: Axes) -> tuple[str, ...]:
    """Return the palette that can be read on the background of an Axes."""
    return ON_DARK if is_dark(ax) else COLOURS


def ink(ax: Axes) -> str:
    """Return the color of lines and text."""
    return "white" if is_dark(ax) else "black"


def diverging(ax: Axes, scores: bool) -> Any:
    """Choose colors of differences of losses, or scores: blue if the first is better.

    Zero has the color of the background, so that differences stand out.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    if not is_dark(ax):
        return colormaps["RdBu" if scores else "RdBu_r"]
    shades = ["#6FC3F2", "#2A5C80", "#1A1A1A", "#8A3D22", "#FF8A5C"]
    return LinearSegmentedColormap.from_list("dark", shades[::-1] if scores else shades)


# --- where to draw ----------------------------------------------------------------------------


def canvas(ax: Any, rows: float, *, width: float = 5.0) -> Axes:
    """Return the Axes that was passed, or create one with a height that fits the rows."""
    try:
        from matplotlib.axes import Axes as Expected

        if ax is None:
            import matplotlib.pyplot as plt

            height = min(TALLEST, 1.3 + 0.27 * rows)
            ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"plots need matplotlib. Install it: {install_command('plot')}", name="matplotlib"
        ) from error
    if not isinstance(ax, Expected):
        several = is_several(ax)
        got = "several things" if several else describe_type(ax)
        way = "Choose one, as in ax=axes[0]" if several else "Type: figure, ax = plt.subplots()"
        raise LogError(f"ax= is {got}. Expected one matplotlib Axes. {way}.")
    ax.tick_params(labelsize=font_size(ax))
    return ax


def keep_inside(ax: Axes) -> Axes:
    """Shrink an Axes that no layout engine moves until its names are within the figure.

    With it, the others of its grid: `Figure.tight_layout` expects each in its place.
    """
    if ax.figure.get_layout_engine() is not None:
        return ax
    page, sides = ax.figure.bbox, ax.figure.subplotpars
    for again in range(3):  # a label longer than the plot moves with it
        box, place = ax.get_tightbbox(), ax.get_position()
        if box is None:
            break
        left = max(0.0, page.x0 + 2 - box.x0) / page.width
        bottom = max(0.0, page.y0 + 2 - box.y0) / page.height
        right = max(0.0, box.x1 - page.x1 + 2) / page.width
        top = max(0.0, box.y1 - page.y1 + 2) / page.height
        if not (left or bottom or right or top):
            break
        if ax.get_subplotspec() is None or again == 2:  # a grid may have margins of its own
            wide, high = place.width - left - right, place.height - bottom - top
            ax.set_position((place.x0 + left, place.y0 + bottom, max(0.1, wide), max(0.1, high)))
            continue
        left, bottom = sides.left + left, sides.bottom + bottom
        ax.figure.subplots_adjust(
            left, bottom, max(left + 0.1, sides.right - right), max(bottom + 0.1, sides.top - top)
        )
    return ax


def column_width(ax: Axes) -> float:
    """Width in points of an Axes and its labels."""
    inches = ax.figure.bbox.width / ax.figure.dpi
    return float(72 * inches * min(1.0, ax.get_position(original=True).width / 0.775))


def row_height(ax: Axes) -> float:
    """Height in points of an Axes and its labels."""
    inches = ax.figure.bbox.height / ax.figure.dpi
    return float(72 * inches * min(1.0, ax.get_position(original=True).height / 0.77))


def font_size(ax: Axes) -> Size:
    """Choose a smaller font in a narrow column."""
    return "small" if column_width(ax) < 330 else "medium"


def letters_across(ax: Axes, share: float) -> int:
    """Count the letters that fit into a share of the width."""
    return max(8, int(share * column_width(ax) / LETTER[font_size(ax)]))


def label_step(ax: Axes, rows: float, lines: int = 1) -> int:
    """Choose a label step so that row labels do not overlap: 1 for all, 2 for every second, ..."""
    free = max(30.0, row_height(ax) - 75)  # without legend, numbers and axis label
    return max(1, math.ceil(lines * LINE[font_size(ax)] * rows / free))


def row_space(ax: Axes, rows: float) -> float:
    """Height in points of one of so many rows."""
    if ax.get_axes_locator() is None:
        return max(30.0, row_height(ax) - 75) / rows
    # a panel, which has no legend or labels of its own
    return 72 / ax.figure.dpi * ax.get_window_extent().height / rows


def mark_sizes(ax: Axes, rows: float, least: float = 1.2) -> tuple[float, float]:
    """Choose the size of markers and the width of lines so that rows do not overlap."""
    height = row_space(ax, rows)
    return float(np.clip(0.8 * height, least, 5.5)), float(np.clip(0.6 * height, 0.3, 1.6))


def offsets(number: int, width: float) -> FloatArray:
    """Evenly spaced offsets around 0."""
    return np.linspace(-width / 2, width / 2, number) if number > 1 else np.zeros(1)


def styles(
    ax: Axes, models: Sequence[str], width: float = 0.0
) -> Iterator[tuple[str, float, str, str]]:
    """Yield each model with its offset, color and marker, for models side by side."""
    yield from zip(models, offsets(len(models), width), colours(ax), MARKERS, strict=False)


# --- what to draw -----------------------------------------------------------------------------

LEVELS = ("other", "repetition", "fold", "source", "rho")
"""Labels of a result's rows that are not part of the name of a model or cell."""


def show_direction(result: Any, facts: LogFacts) -> Any:
    """Convert a result about losses made from a score into one about the score."""
    if not facts.is_score or "score" in result.attrs:
        return result
    result = result.copy()
    named = {name: facts.attrs[name] for name in ("metric", "orientation")}
    result.attrs = {**named, **result.attrs}
    return as_scores(result)


def rank_models(table: pd.DataFrame, facts: LogFacts) -> list[str]:
    """Order models by their mean in a table of rows, the best first, metric by metric."""
    if METRIC in table:
        each = (part.drop(columns=METRIC) for _, part in table.groupby(METRIC, sort=False))
        return [model for part in each for model in rank_models(part, facts)]
    means = table.groupby("model", sort=False)["estimate"].mean()
    return means.sort_values(kind="stable", ascending=not facts.is_score).index.tolist()


def result_rows(result: Any, facts: LogFacts) -> pd.DataFrame:
    """Convert a result to rows with their labels as columns, scores in their own direction.

    Column ``model`` names the model, regardless of the column names of the log, and the cell of
    further dimensions. Different models have different names; those of a log of differences name
    both models.
    """
    table = result_frame(show_direction(result, facts))
    index = table.index
    table = table.reset_index(drop=True)
    losses = facts.losses
    arrays = isinstance(losses, (xr.DataArray, xr.Dataset))
    several = isinstance(losses, (pd.DataFrame, xr.Dataset)) or any(
        "model" in getattr(losses, names, ()) for names in ("coords", "dims")
    )
    several = several or (isinstance(losses, Moments) and len(losses.models) > 1)
    single = None
    if not several and "other" not in index.names:
        single = "" if facts.are_nameless([losses.name]) else str(losses.name)
    parts: list[list[str]] = [[single or ""] for _ in table.index]
    differences = facts.log.of_differences and "difference" not in table
    written = write_labels(index, facts.write_model)
    for at, name in enumerate(index.names):
        if name == "other" and differences:
            for words, label in zip(parts, written[at], strict=True):
                words[-1] += f" − {label}"
        elif name == METRIC and has_several(table.attrs):  # what is shown, such as 1 - AUC
            labels = index.get_level_values(at)
            table[METRIC] = [name_value(select_facts(table.attrs, name), "") for name in labels]
            for words, metric in zip(parts, table[METRIC], strict=True):
                words.insert(0, metric)
        elif name in LEVELS:
            table[str(name)] = written[at] if name == "other" else index.get_level_values(at)
        elif not (name == "model" and single is not None):
            prefix = f"{name}=" if arrays and name != "model" else ""
            for words, label in zip(parts, written[at], strict=True):
                words.append(prefix + label)
    return table.assign(model=[" · ".join(filter(None, words)) for words in parts])


def read_facts(losses: Losses | LogFacts, missing: Missing = "raise") -> LogFacts:
    """Return the facts of a log to draw; reject a frame whose losses are not in memory."""
    if is_dask_frame(losses):
        raise LogError(
            "the losses of a dask frame are not in memory. Pass its moments, as in "
            "cvstats.plot.forest(cvstats.scan_dask(frame).compute()), or losses in memory: "
            "cvstats.plot.forest(cvstats.as_log(frame.compute(), loss=…))."
        )
    return losses if isinstance(losses, LogFacts) else LogFacts(losses, missing)


def check_rows(number: int, what: str) -> None:
    """Reject plots with too many rows to read."""
    if number > MOST_ROWS:
        raise LogError(
            f"the plot would have {number:,} {what}. Expected at most {MOST_ROWS}. Select some "
            "models, sources or cells first, as in log[['a', 'b']] or log.sel(lead=1)."
        )


def set_tick_labels(
    ax: Axes, along: Literal["x", "y"], labels: Sequence[Any], longest: int | None = None
) -> None:
    """Label positions 0, 1, 2, … by names, or by some of them if there are too many."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    names = shorten_names([str(label) for label in labels], longest or letters_across(ax, 0.42))
    axis = ax.xaxis if along == "x" else ax.yaxis
    free = letters_across(ax, 0.7)
    if along == "y":
        last, step = len(names) - 1, label_step(ax, len(names))
        axis.set_major_locator(FixedLocator([*range(0, last - step + 1, step), last]))
    elif sum(len(name) + 2 for name in names) <= free:
        axis.set_major_locator(FixedLocator(list(range(len(names)))))
    else:
        most = max(1, free // (2 + max(map(len, names))) - 1)
        axis.set_major_locator(MaxNLocator(nbins=most, integer=True))

    def name_at(value: float, _: Any = None) -> str:
        at = round(value)
        return names[at] if 0 <= at < len(names) and math.isclose(at, value) else ""

    axis.set_major_formatter(FuncFormatter(name_at))


# --- positions ----------------------------------------------------------------------------------


def is_numeric(labels: xr.DataArray | pd.Index[Any]) -> bool:
    """Whether the labels of a dimension are numbers or only positions."""
    return labels.dtype.kind in "iuf"


def places_of(labels: xr.DataArray | pd.Index[Any]) -> FloatArray:
    """Return the positions of cells along a dimension: their numbers, or 0, 1, 2, …."""
    return np.asarray(labels if is_numeric(labels) else range(labels.size), dtype=float)


def edges_of(places: FloatArray) -> FloatArray:
    """Compute the edges of cells halfway between their centers."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    between = (places[1:] + places[:-1]) / 2
    return np.concatenate([2 * places[:1] - between[:1], between, 2 * places[-1:] - between[-1:]])


# --- intervals --------------------------------------------------------------------------------


def draw_intervals(
    ax: Axes, table: pd.DataFrame, at: Sequence[float], *, colour: str, marker: str,
    label: str | None, sizes: tuple[float, float], name: str = "estimate", filled: bool = True,
) -> None:  # fmt: skip
    """Draw markers at the estimates and lines between the limits, at these heights."""
    size, width = sizes
    middle = table[name].to_numpy(dtype=float)
    lower, upper = (table[side].to_numpy(dtype=float) for side in ("lower", "upper"))
    # Lines and markers are separate: a percentile interval need not contain its estimate.
    known = np.isfinite(lower) & np.isfinite(upper)
    heights = np.asarray(at, dtype=float)
    ax.hlines(heights[known], lower[known], upper[known], colors=colour, linewidth=width)
    ax.plot(
        middle, heights, linestyle="none", marker=marker, markersize=size, color=colour,
        markerfacecolor=colour if filled else paper(ax), label=label,
    )  # fmt: skip


def draw_marked_rows(
    ax: Axes, table: pd.DataFrame, marked: MaskArray, name: str, labels: tuple[str, str]
) -> None:
    """Draw the interval of each row, at 0, 1, 2, …: blue and filled if marked, otherwise gray."""
    at = np.arange(len(table))
    for here, colour, label in ((marked, colours(ax)[0], labels[0]), (~marked, GREY, labels[1])):
        if here.any():
            draw_intervals(
                ax, table[here], at[here].tolist(), colour=colour, marker="o", label=label,
                sizes=mark_sizes(ax, len(table)), name=name, filled=colour != GREY,
            )  # fmt: skip


# --- the legend -------------------------------------------------------------------------------


def legend_above(ax: Axes, handles: Sequence[Any] | None = None, aside: float = 0.0) -> None:
    """Put the legend above the plot, outside the data, in as few lines as possible.

    Names are shortened until the legend stays within the figure; its size is measured, since the
    width of letters differs. ``aside`` is the width in points of what is right of the Axes.
    """
    from matplotlib.lines import Line2D

    found, _ = ax.get_legend_handles_labels()
    shown = found if handles is None else list(handles)
    names = [str(handle.get_label()) for handle in shown]
    width, height = measure_space(ax)
    width -= aside * ax.figure.dpi / 72
    previous: list[str] = []
    fits = False
    for longest in (99, 60, 45, 36, 28, 22, 16, 12, 8):
        short = shorten_names(names, longest)
        if short == previous:
            if fits and longest <= 16:
                return
            continue
        previous = short
        for columns in range(len(names), 0, -1):
            legend = ax.legend(
                shown, short, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns,
                frameon=False, fontsize="small", borderaxespad=0.2, handletextpad=0.4,
                columnspacing=1.2,
            )  # fmt: skip
            for mark in legend.legend_handles:
                if isinstance(mark, Line2D):
                    least = 10.0 if mark.get_marker() == "|" else 4.0
                    mark.set_markersize(max(least, mark.get_markersize()))
            box = legend.get_window_extent()
            if box.width <= width:
                break
        fits = box.width <= width
        if fits and (box.height <= height or longest <= 16):
            return


def measure_space(ax: Axes) -> tuple[float, float]:
    """Width and height in pixels available for a legend."""
    to_pixels = ax.figure.dpi / 72
    if ax.figure.get_layout_engine() is not None:  # a layout engine moves the plot
        return 0.95 * column_width(ax) * to_pixels, 0.4 * row_height(ax) * to_pixels
    place, page = ax.get_position(original=True), ax.figure.bbox
    width = min(column_width(ax) * to_pixels, float(place.x1 * page.width))
    return 0.98 * width, float((1 - place.y1) * page.height)


# --- what an axis shows -----------------------------------------------------------------------

MEAN = "mean "
OF_CELLS = {"error rate", "Brier score", *(metric.words for metric in METRICS.values())}
"""Names that already denote a mean, or a metric of many points."""


def describe_name(facts: LogFacts) -> str:
    """Name the loss, or the score from which it was made, in words."""
    attrs = facts.attrs
    if "metrics" in attrs:  # each has a name of its own
        return "loss"
    metric = attrs["metric"] if isinstance(attrs.get("metric"), str) else ""
    words = METRICS[metric].words_at(attrs.get("at")) if metric in METRICS else metric
    said = words if facts.is_score else attrs.get("long_name") or words or attrs.get("loss")
    name = str(said or "loss").replace("_", " ")
    return escape_math(printable(NAMES.get(name, name)))


def describe_loss(facts: LogFacts, before: str = "", *, power: int = 1) -> str:
    """Describe the loss, or its score, for an axis: the name in words, and units in brackets."""
    name = describe_name(facts)
    before = "" if before == MEAN and name in OF_CELLS else before
    if before in ("", MEAN) and (facts.log.of_differences or facts.log.of_contrasts):
        before = f"difference in {before}"
    groups = facts.attrs.get("contrast")
    name += f" ({escape_math(printable(groups))})" if isinstance(groups, str) else ""
    units = escape_math(printable(str(facts.attrs.get("units", ""))))
    if units in ("", "1", "None"):
        return f"{before}{name}"
    return f"{before}{name} [({units})²]" if power == 2 else f"{before}{name} [{units}]"


def describe_level(alpha: float) -> str:
    """Write the level of an interval: ``95%``."""
    return f"{100 * (1 - alpha):g}%"


ADJUSTMENTS = {"bh": "Benjamini-Hochberg", "holm": "Holm", "sidak": "Šidák"}
"""Adjustments of p-values in words, unless it is their name."""


def describe_significance(alpha: float, adjust: str | None, number: int) -> str:
    """Describe the meaning of a filled marker."""
    name = ADJUSTMENTS.get(str(adjust), adjust)
    return f"p < {alpha:g}" + (f" ({name})" if name and number > 1 else "")


def name_cautions(result: Any) -> list[str]:
    """Name the cautions of a result that is too narrow to decide anything, in a line.

    On a map, those of many cells.
    """
    if isinstance(result, xr.Dataset):
        narrow = narrow_labels().items()
        labels = [label for label, caution in narrow if occurs_in_many(result, caution)]
    else:
        found = set(", ".join(result["caution"].unique()).split(", "))
        labels = list(filter(found.__contains__, narrow_labels()))
    return [f"caution: {', '.join(labels)}"] if labels else []


def label_x(ax: Axes, *lines: str) -> None:
    """Label the horizontal axis, in lines that fit below it."""
    ticks = ax.yaxis.get_major_formatter().format_ticks(ax.yaxis.get_majorticklocs().tolist())
    beside = max(map(len, "\n".join(ticks).split("\n")))
    # The label is centered below the plot, which begins after the names of its rows.
    most = min(letters_across(ax, 0.62), max(8, letters_across(ax, 0.95) - beside - 2))
    ax.set_xlabel("\n".join(map(fill, lines, repeat(most))), fontsize=font_size(ax))


def label_y(ax: Axes, *lines: str) -> None:
    """Label the vertical axis, in lines that fit next to it, below the legend."""
    legend = ax.get_legend()
    taken = 0.0 if legend is None else 72 / ax.figure.dpi * legend.get_window_extent().height
    most = max(8, int((row_height(ax) - 30 - taken) / LETTER[font_size(ax)]))
    ax.set_ylabel("\n".join(fill(line, most) for line in lines), fontsize=font_size(ax))


def add_bar(ax: Axes, image: Any, words: str, letters: int) -> None:
    """Add a color bar next to a plot, with a label wrapped at a number of letters."""
    writing, power = scale_numbers(*image.get_clim())
    beside = ax.inset_axes((1.03, 0.0, 12 / column_width(ax), 1.0))  # as high as the plot
    bar: Any = ax.figure.colorbar(image, cax=beside, format=writing)
    bar.set_label(fill(words + power, max(14, letters)), fontsize="small", labelpad=2)
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)
    bar.solids.set(rasterized=False, edgecolor="face")  # an SVG without pixels


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def scale_numbers(low: float, high: float) -> tuple[Any, str]:
    """Choose a formatter for numbers between limits that writes few digits.

    Returns the formatter, and the words for the subtracted offset and the power of ten;
    matplotlib would place these where the legend is.
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
        words += f", in\N{NO-BREAK SPACE}10{str(power).translate(SUPERSCRIPTS)}"
    if not words:
        return ScalarFormatter(useOffset=False), words
    scale = 10.0**power
    places = 4 - math.floor(math.log10(most / scale))  # a large base leaves rounding noise

    def write(at: float, _: Any = None) -> str:
        return f"{round((at - base) / scale, places) + 0.0:.6g}".replace("-", "−")

    return FuncFormatter(write), words


def label_values(
    ax: Axes, facts: LogFacts, *lines: str, before: str = "", along: Literal["x", "y"] = "x",
    below: Sequence[str] = (),
) -> None:  # fmt: skip
    """Label the axis of the losses, or scores: their name, further lines, and which are better."""
    if not targets_of(facts.attrs):
        what = "first" if facts.log.of_differences else "higher" if facts.is_score else "lower"
        better = f"{what} is better"
        lines = *lines, f"{better} →" if facts.is_score else f"← {better}"
    set_numbers(ax, describe_loss(facts, before), *lines, *below, along=along)


def set_numbers(ax: Axes, first: str, *rest: str, along: Literal["x", "y"] = "x") -> None:
    """Keep the numbers of an axis few and short, their power of ten in its label."""
    from matplotlib.ticker import MaxNLocator, NullFormatter

    if along == "x" and ax.get_xscale() == "log":
        if max(ax.get_xlim()) > 10 * min(ax.get_xlim()):  # powers of ten are at the ticks
            label_x(ax, first, *rest)
            return
        ax.xaxis.set_minor_formatter(NullFormatter())
    axis, limits = (ax.xaxis, ax.get_xlim()) if along == "x" else (ax.yaxis, ax.get_ylim())
    formatter, words = scale_numbers(*sorted(limits))
    axis.set_major_formatter(formatter)
    if along == "y":
        label_y(ax, first + words, *rest)
        return
    axis.set_major_locator(MaxNLocator(nbins=3 if font_size(ax) == "small" else 4))
    label_x(ax, first + words, *rest)


# --- names ----------------------------------------------------------------------------------------


BREAKS = re.compile(r"([-_/ ·,;:|]+|(?<=[a-z0-9])(?=[A-Z][a-z]))")
"""What separates the words of a name."""


def shorten_names(names: Sequence[str], longest: int = 28) -> list[str]:
    """Shorten names that would leave no space for the plot, keeping them distinct.

    The middle of a name is cut. If two names would then look the same, names with the same number
    of words keep the words in which they differ, or are numbered by position.
    """
    full = {name: printable(name) for name in names}
    ends = {name: f"…{text[-(longest * 2 // 5) :]}" for name, text in full.items()}
    short = {
        name: text if len(text) <= longest else cut_end(text, ends[name], longest)
        for name, text in full.items()
    }
    families: dict[int, list[str]] = {}
    for name, text in full.items():
        if len(text) > longest:
            families.setdefault(len(BREAKS.findall(text)), []).append(name)
    doubtful = find_duplicates(short)
    for family in families.values():
        if doubtful & set(family):
            forms = keep_differing_words([full[name] for name in family], longest)
            short |= zip(family, forms, strict=False)
    doubtful = find_duplicates(short)
    taken = set(short.values())
    for number, name in enumerate(short, 1):
        if name in doubtful:
            step = number
            while (form := cut_end(full[name], f"…({step})", longest)) in taken:
                step += len(short)
            short[name] = form
            taken.add(form)
    return [escape_math(short[name]) for name in names]


def escape_math(text: str) -> str:
    """Escape dollar signs, which would begin a formula."""
    return text.replace("$", r"\$")


def find_duplicates(short: dict[str, str]) -> set[str]:
    """Find the names whose short form is not unique."""
    number = Counter(short.values())
    return {name for name, form in short.items() if number[form] > 1}


def cut_end(name: str, end: str, longest: int) -> str:
    """Replace the end of a name by another."""
    return name[: max(0, longest - len(end))] + end


def keep_differing_words(names: Sequence[str], longest: int) -> list[str]:
    """Keep the words in which names differ, and as many others as fit; None if none differ."""
    split = [BREAKS.split(name) for name in names]  # words, with what separates them
    places = range(0, len(split[0]), 2)
    shown = {at for at in places if len({parts[at] for parts in split}) > 1}
    forms = [join_words(parts, shown) for parts in split]
    if not shown or max(map(len, forms)) > longest:
        return []
    distance = {at: min(abs(at - other) for other in shown) for at in places}
    near = sorted((at for at in places if distance[at] <= 4), key=lambda at: (distance[at], -at))
    for at in (0, *near):  # the first word, often the family of the model, and neighbors
        more = [join_words(parts, shown | {at}) for parts in split]
        if max(map(len, more)) <= longest:
            shown, forms = shown | {at}, more
    return forms


def join_words(parts: Sequence[str], shown: set[int]) -> str:
    """Write the words to be shown, and an ellipsis for each run of others."""
    text = ""
    for at in range(0, len(parts), 2):
        if at in shown:
            text += (parts[at - 1] if at - 2 in shown else "") + parts[at]
        elif not text.endswith("…"):
            text += "…"
    return text


# --- panels ---------------------------------------------------------------------------------------


LEAST = (50.0, 40.0)
"""Minimum width and height of a panel, in points."""
ASPECT = 1.4
"""Preferred width of a panel relative to its height."""
BELOW, TITLE = 44.0, 14.0
"""Height in points of what is written below all panels, and above each."""


def draw_models(
    ax: Axes | None,
    models: list[str],
    draw: Callable[[Axes, list[str]], object],
    *,
    rows: float,
    legend_from: int = 2,
    **layout: Any,
) -> Axes:
    """Draw some models in one Axes with a legend, or more than there are markers in a panel each.

    ``rows`` is the height of a new Axes, and ``layout`` the options of `draw_panels`.
    """
    if len(models) > len(MARKERS):
        return draw_panels(ax, models, lambda panel, model: draw(panel, [model]), **layout)
    ax = canvas(ax, rows)
    draw(ax, models)
    if len(models) >= legend_from:
        legend_above(ax)
    return ax


def draw_panels(
    ax: Axes | None,
    names: Sequence[str],
    draw: Callable[[Axes, str], object],
    *,
    numbers: Literal["x", "y"] | None,
    beside: float = 30.0,
    aside: float = 0.0,
    aspect: float = ASPECT,
) -> Axes:
    """Divide an Axes into panels, call ``draw(panel, name)`` for each, and return the Axes.

    The panels are the ``child_axes`` of the Axes, which keeps the labels and has the limits of
    all. ``beside`` and ``aside`` are the widths in points of what is written left of the first
    column and right of the last.
    """
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        columns = len(names) if len(names) < 4 else min(5, math.ceil(math.sqrt(len(names) / 1.5)))
        rows = math.ceil(len(names) / columns)
        width = min(7.0, max(1.3, 0.7 * aspect) * columns + (beside + aside) / 72)
        tall = rows * ((72 * width - beside - aside) / columns / aspect + TITLE) + BELOW
        ax = canvas(None, (tall / 72 - 1.3) / 0.27, width=width)
    else:
        ax = canvas(ax, len(names))
    whole = column_width(ax), row_height(ax)
    wide, high = whole[0] - beside - aside, whole[1] - BELOW

    def misfit(columns: int) -> float:
        rows = math.ceil(len(names) / columns)
        return abs(math.log(wide / columns / (max(1.0, high / rows - TITLE)) / aspect))

    columns = min(range(1, len(names) + 1), key=misfit)
    rows = math.ceil(len(names) / columns)
    if wide / columns < LEAST[0] or high / rows < LEAST[1]:
        raise LogError(
            f"{len(names)} panels do not fit into {whole[0] / 72:.1f} x {whole[1] / 72:.1f} "
            f"inches. Expected a larger Axes, or fewer models: choose some, as in log[['a', 'b']]."
        )
    left, below = beside / (whole[0] - aside), 17.0 / whole[1]
    across, down = (1 - left) / columns, (1 - below) / rows
    titles = shorten_names(names, max(6, int((wide / columns - 4) / LETTER["small"])))
    panels: list[Axes] = []
    for at, (name, title) in enumerate(zip(names, titles, strict=True)):
        row, column = divmod(at, columns)
        bounds = (
            left + column * across, 1 - (row + 1) * down,
            across - 6 / whole[0], down - (TITLE + 2) / whole[1],
        )  # fmt: skip
        shared = panels[0] if panels else None
        panel = ax.inset_axes(bounds, sharex=shared, sharey=shared)
        panels.append(panel)
        draw(panel, name)
        panel.set_title(title, fontsize="small", pad=2)
        panel.tick_params(
            labelsize="small", length=2, labelleft=column == 0,
            labelbottom=at + columns >= len(names),
        )  # fmt: skip
    ax.set_xlim(panels[0].get_xlim())
    ax.set_ylim(panels[0].get_ylim())
    if numbers is not None:  # of all panels: their axes are shared
        x = numbers == "x"
        limits, axis = (ax.get_xlim(), panels[0].xaxis) if x else (ax.get_ylim(), panels[0].yaxis)
        # numbers at the ends would touch those of the next panel
        axis.set_major_locator(MaxNLocator(nbins=4, prune="both") if x else MaxNLocator(nbins=3))
        axis.set_major_formatter(scale_numbers(*sorted(limits))[0])
        texts = axis.get_major_formatter().format_ticks(axis.get_majorticklocs().tolist())
        if x and sum(len(text) + 2 for text in texts) * LETTER["small"] > wide / columns:
            axis.set_major_locator(MaxNLocator(nbins=2, prune="both"))
    ax.set_frame_on(False)
    ax.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
    return ax
