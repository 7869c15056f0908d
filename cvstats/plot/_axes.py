"""What plots share: palette, Axes, results as rows, names, numbers and labels of axes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.types import FloatArray
from cvstats.errors import LogError, install_command, is_several
from cvstats.facts import LogFacts, examine
from cvstats.formatting import printable, result_frame, write_labels
from cvstats.large.moments import Moments
from cvstats.log.log import Losses
from cvstats.log.read import is_dask_frame
from cvstats.metrics import METRICS
from cvstats.scores import as_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too light for thin lines."""
DIVERGING = ("RdBu_r", "RdBu")
"""Colours of differences of losses and of scores: blue where the first is better."""
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


# --- where to draw ----------------------------------------------------------------------------


def canvas(ax: Axes | None, rows: float, *, width: float = 5.0) -> Axes:
    """Return the Axes that was passed, or make one of a height that suits so many rows."""
    try:
        from matplotlib.axes import Axes as Expected

        if ax is None:
            import matplotlib.pyplot as plt

            height = min(TALLEST, 1.3 + 0.27 * rows)
            ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"plots need matplotlib; type: {install_command('plot')}", name="matplotlib"
        ) from error
    check_axes(ax, Expected)
    ax.tick_params(labelsize=font_size(ax))
    return ax


def check_axes(ax: object, expected: type) -> None:
    """Refuse what one cannot draw on."""
    if not isinstance(ax, expected):
        several = is_several(ax)
        got = "several things" if several else f"a {type(ax).__name__}"
        way = "Choose one, as in ax=axes[0]" if several else "Type: figure, ax = plt.subplots()"
        raise LogError(f"ax= is {got}. Expected the Axes of matplotlib to draw on. {way}.")


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


def letters_down(ax: Axes, taken: float) -> int:
    """Count the letters that fit along the vertical axis, of which some points are taken."""
    return max(8, int((row_height(ax) - taken) / LETTER[font_size(ax)]))


def label_step(ax: Axes, rows: float, lines: int = 1) -> int:
    """Choose which of so many rows have a label without touching: all, each second, each third."""
    free = max(30.0, row_height(ax) - 75)  # without legend, numbers and axis label
    return max(1, math.ceil(lines * LINE[font_size(ax)] * rows / free))


def offsets(number: int, width: float = 0.6) -> FloatArray:
    """Places beside each other about 0."""
    return np.linspace(-width / 2, width / 2, number) if number > 1 else np.zeros(1)


# --- what to draw -----------------------------------------------------------------------------

LEVELS = ("other", "repetition", "fold", "source", "rho")
"""Labels of a result's rows that are not part of the name of a model or cell."""


def show_direction(result: Any, facts: LogFacts) -> Any:
    """Turn a result about losses that were made from a score into one about the score."""
    if not facts.is_score or "score" in result.attrs:
        return result
    result = result.copy()
    named = {name: facts.attrs[name] for name in ("metric", "orientation")}
    result.attrs = {**named, **result.attrs}
    return as_scores(result)


def rank_models(table: pd.DataFrame, facts: LogFacts, by: str = "estimate") -> list[str]:
    """Order models by their mean in a table of rows, the best first."""
    means = table.groupby("model", sort=False)[by].mean()
    return means.sort_values(kind="stable", ascending=not facts.is_score).index.tolist()


def result_rows(result: Any, facts: LogFacts) -> pd.DataFrame:
    """Convert a result to rows with their labels as columns, scores in their own direction.

    Column ``model`` names the model, whatever the columns of the log are called, and the cell
    of further dimensions. Different models have different names.
    """
    table = result_frame(show_direction(result, facts))
    index = table.index
    table = table.reset_index(drop=True)
    nameless = isinstance(index, pd.RangeIndex) and index.name is None
    arrays = isinstance(facts.losses, (xr.DataArray, xr.Dataset))
    single = None if "other" in index.names else name_single(facts.losses)
    parts: list[list[str]] = [[single or ""] for _ in table.index]
    written = write_labels(index, join_label)
    for at, name in enumerate(index.names):
        if name in LEVELS:
            table[str(name)] = written[at] if name == "other" else index.get_level_values(at)
        elif not (name == "model" and single is not None) and not nameless:
            prefix = f"{name}=" if arrays and name != "model" else ""
            for words, label in zip(parts, written[at], strict=True):
                words.append(prefix + label)
    return table.assign(model=[" · ".join(filter(None, words)) for words in parts])


def join_label(label: Any) -> str:
    """Write the label of a model; columns of several levels have a tuple, and no label is NaN."""
    if isinstance(label, tuple):
        return " · ".join(map(str, label))
    return str(None) if label is None or label != label else str(label)


def name_single(losses: Losses) -> str | None:
    """Name the model of a log that has a single one; None where there are several."""
    if isinstance(losses, (pd.DataFrame, xr.Dataset)) or "model" in getattr(losses, "coords", {}):
        return None
    if "model" in getattr(losses, "dims", ()):
        return None
    if isinstance(losses, Moments) and len(losses.models) > 1:
        return None
    return "" if losses.name is None else str(losses.name)


def read_number(result: pd.DataFrame, name: str) -> Any:
    """Read a number that is a column where rows differ and an attribute where they do not."""
    return result[name] if name in result else result.attrs[name]


def read_facts(losses: Losses | LogFacts, missing: str = "raise") -> LogFacts:
    """Return the facts of a log to draw; refuse a frame whose losses are not in memory."""
    if is_dask_frame(losses):
        raise LogError(
            "the losses of a dask frame are not in memory. Expected moments of it, as in "
            "cvstats.plot.forest(cvstats.scan_dask(frame).compute()), or losses in memory: "
            "cvstats.plot.forest(cvstats.as_log(frame.compute(), loss=…))."
        )
    return examine(losses, missing)


def check_rows(number: int, what: str) -> None:
    """Refuse to draw more rows than anyone can read."""
    if number > MOST_ROWS:
        raise LogError(
            f"the plot would have {number:,} {what}. Expected {MOST_ROWS} or fewer. Choose some "
            f"models, sources or cells first, as in log[['a', 'b']] or log.sel(lead=1)."
        )


def check_distinct(number: int) -> None:
    """Refuse more models than there are colours and markers."""
    if number > len(COLOURS):
        raise LogError(
            f"the plot would have {number:,} models or cells. Expected {len(COLOURS)} or fewer, "
            f"as many as colours can distinguish. Choose some, as in log[['a', 'b']]."
        )


# --- names ------------------------------------------------------------------------------------

BREAKS = re.compile(r"([-_/ ·,;:|]+|(?<=[a-z0-9])(?=[A-Z][a-z]))")
"""What separates the words of a name."""


def shorten_names(names: Sequence[str], longest: int = 28) -> list[str]:
    """Shorten names that would leave no space for the plot; those that differ still do.

    A name loses its middle. Where two would then look the same, names of as many words keep the
    words in which they differ, or are numbered by their place among the names.
    """
    full = {name: printable(name) for name in names}
    short = {name: cut_middle(text, longest) for name, text in full.items()}
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
    """Find the names whose short form is that of another name, too."""
    number = Counter(short.values())
    return {name for name, form in short.items() if number[form] > 1}


def cut_end(name: str, end: str, longest: int) -> str:
    """Replace the end of a name by another."""
    return name[: max(0, longest - len(end))] + end


def cut_middle(name: str, longest: int) -> str:
    """Cut the middle out of a long name."""
    if len(name) <= longest:
        return name
    return cut_end(name, f"…{name[-(longest * 2 // 5) :]}", longest)


def keep_differing_words(names: Sequence[str], longest: int) -> list[str]:
    """Keep the words in which names differ, and as many beside them as fit; nothing if none do."""
    split = [BREAKS.split(name) for name in names]  # words, with what separates them
    places = range(0, len(split[0]), 2)
    shown = {at for at in places if len({parts[at] for parts in split}) > 1}
    forms = [join_words(parts, shown) for parts in split]
    if not shown or max(map(len, forms)) > longest:
        return []
    distance = {at: min(abs(at - other) for other in shown) for at in places}
    near = sorted((at for at in places if distance[at] <= 4), key=lambda at: (distance[at], -at))
    for at in (0, *near):  # the first word, often the family of the model, and neighbours
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


def set_tick_labels(ax: Axes, along: Literal["x", "y"], labels: Sequence[Any]) -> None:
    """Label places 0, 1, 2, … by names; of too many, by some of them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    names = shorten_names([str(label) for label in labels], letters_across(ax, 0.42))
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


# --- the legend -------------------------------------------------------------------------------


def legend_above(ax: Axes, handles: Sequence[Any] | None = None) -> None:
    """Put the legend above the plot, where no data are, in as few lines as fit.

    Names are shortened until the legend stays within the figure; its size is measured, since the
    width of letters differs.
    """
    found, _ = ax.get_legend_handles_labels()
    shown = found if handles is None else list(handles)
    names = [str(handle.get_label()) for handle in shown]
    width, height = measure_space(ax)
    previous: list[str] = []
    for longest in (99, 60, 45, 36, 28, 22, 16, 12, 8):
        short = shorten_names(names, longest)
        if short == previous:
            continue
        previous = short
        for columns in range(len(names), 0, -1):
            legend = ax.legend(
                shown, short, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns,
                frameon=False, fontsize="small", borderaxespad=0.2, handletextpad=0.4,
                columnspacing=1.2,
            )  # fmt: skip
            box = legend.get_window_extent()
            if box.width <= width:
                break
        if box.width <= width and (box.height <= height or longest <= 16):
            return


def measure_space(ax: Axes) -> tuple[float, float]:
    """Width and height in pixels that a legend may take."""
    to_pixels = ax.figure.dpi / 72
    if ax.figure.get_layout_engine() is not None:  # it moves the plot, up to a point
        return 0.95 * column_width(ax) * to_pixels, 0.4 * row_height(ax) * to_pixels
    place, page = ax.get_position(original=True), ax.figure.bbox
    width = min(column_width(ax) * to_pixels, float(place.x1 * page.width))
    return 0.98 * width, float((1 - place.y1) * page.height)


# --- what an axis shows -----------------------------------------------------------------------

LOSSES = {
    "brier": "Brier score",
    "crps": "CRPS",
    "huber": "Huber loss",
    "zero one": "error rate",
    "1 - accuracy": "error rate",
}
"""Names of losses in words, where they are not the name with spaces."""

MEAN = "mean "
OF_CELLS = {"error rate", "Brier score", *(metric.words for metric in METRICS.values())}
"""Names that are those of a mean already, or of a metric of many points."""


def describe_name(facts: LogFacts) -> str:
    """Name the loss, or the score that it was made from, in words."""
    attrs = facts.attrs
    metric = attrs["metric"] if isinstance(attrs.get("metric"), str) else ""
    words = METRICS[metric].words_at(attrs.get("at")) if metric in METRICS else metric
    said = words if facts.is_score else attrs.get("long_name") or words or attrs.get("loss")
    name = str(said or "loss").replace("_", " ")
    return escape_math(printable(LOSSES.get(name, name)))


def describe_loss(facts: LogFacts, before: str = "", *, power: int = 1) -> str:
    """Describe the loss, or its score, for an axis: the name in words, and units in brackets."""
    name = describe_name(facts)
    before = "" if before == MEAN and name in OF_CELLS else before
    units = escape_math(printable(str(facts.attrs.get("units", ""))))
    if units in ("", "1", "None"):
        return f"{before}{name}"
    return f"{before}{name} [({units})²]" if power == 2 else f"{before}{name} [{units}]"


def describe_level(alpha: float) -> str:
    """Write the level of an interval: ``95%``."""
    return f"{100 * (1 - alpha):g}%"


def describe_evidence(alpha: float, adjust: str | None, number: int) -> str:
    """Say what a full mark means."""
    return f"p < {alpha:g}" + (f" ({adjust})" if adjust and number > 1 else "")


def label_x(ax: Axes, *lines: str) -> None:
    """Label the horizontal axis, in lines that fit below it."""
    ticks = ax.yaxis.get_major_formatter().format_ticks(ax.yaxis.get_majorticklocs().tolist())
    beside = max((len(line) for text in ticks for line in text.split("\n")), default=0)
    # The label is centred below the plot, which begins after the names of its rows.
    most = min(letters_across(ax, 0.62), max(8, letters_across(ax, 0.95) - beside - 2))
    ax.set_xlabel("\n".join(fill(line, most) for line in lines), fontsize=font_size(ax))


def label_y(ax: Axes, *lines: str) -> None:
    """Label the vertical axis, in lines that fit beside it, below the legend."""
    legend = ax.get_legend()
    taken = 0.0 if legend is None else 72 / ax.figure.dpi * legend.get_window_extent().height
    most = letters_down(ax, 30 + taken)
    ax.set_ylabel("\n".join(fill(line, most) for line in lines), fontsize=font_size(ax))


def add_bar(ax: Axes, image: Any, words: str, letters: int) -> None:
    """Add a bar of the colours, named in lines of so many letters."""
    writing, power = scale_numbers(*image.get_clim())
    bar: Any = ax.figure.colorbar(image, ax=ax, format=writing)
    bar.set_label(fill(words + power, max(14, letters)), fontsize="small", labelpad=2)
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)
    bar.solids.set(rasterized=False, edgecolor="face")  # an SVG without pixels


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def scale_numbers(low: float, high: float) -> tuple[Any, str]:
    """Choose a formatter for numbers between limits that writes few digits.

    Returns the formatter, and the words for what was subtracted from all of them and for their
    power of ten; matplotlib would put these where the legend is.
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


def set_numbers(ax: Axes, first: str, *rest: str, along: Literal["x", "y"] = "x") -> None:
    """Keep the numbers of an axis few and short, their power of ten in its label."""
    from matplotlib.ticker import MaxNLocator

    axis, limits = (ax.xaxis, ax.get_xlim()) if along == "x" else (ax.yaxis, ax.get_ylim())
    formatter, words = scale_numbers(*sorted(limits))
    axis.set_major_formatter(formatter)
    if along == "y":
        label_y(ax, first + words, *rest)
        return
    axis.set_major_locator(MaxNLocator(nbins=3 if font_size(ax) == "small" else 4))
    label_x(ax, first + words, *rest)
