"""What all plots share: colours that all eyes tell apart, labels with units, an Axes to draw on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.running import Losses
from cvstats.api.showing import framed
from cvstats.containers import Kept, is_dask_frame
from cvstats.errors import LogError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "GREY",
    "MARKERS",
    "MOST_ROWS",
    "above",
    "canvas",
    "column",
    "few_enough",
    "in_memory",
    "level_words",
    "loss_words",
    "name_x",
    "name_y",
    "numbers",
    "rows_of",
    "rule",
    "spread",
    "tidy",
    "told",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too light for thin lines."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#7A7A7A"
MOST_ROWS = 60
KNOWN = ("model", "other", "repetition", "fold", "source", "rho")


def in_memory(losses: Losses) -> None:
    """Refuse a frame that has no numbers yet, and say how to get them."""
    if is_dask_frame(losses):
        raise LogError(
            "a plot shows numbers, and this is a frame of dask. Expected moments of it, as in: "
            "cvstats.plot.forest(cvstats.scan_dask(frame).compute()); or the losses in memory: "
            "cvstats.plot.forest(cvstats.as_log(frame.compute(), loss=…))."
        )


def canvas(ax: Axes | None, rows: float, *, width: float = 5.0) -> Axes:
    """Take the Axes that was passed, or make one of a height that suits so many rows."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ModuleNotFoundError as error:
            raise needs_matplotlib() from error
        height = min(12.0, 1.3 + 0.27 * rows)
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    ax.tick_params(labelsize=size(ax))
    return ax


def column(ax: Axes) -> float:
    """Width in points of the column in which an Axes stands, its labels included."""
    inches = ax.figure.bbox.width / ax.figure.dpi
    return float(72 * inches * min(1.0, ax.get_position(original=True).width / 0.775))


def size(ax: Axes) -> str:
    """Choose the size of writing: smaller in a narrow column."""
    return "small" if column(ax) < 330 else "medium"


def letters(ax: Axes, share: float) -> int:
    """Count the letters of that size that stand side by side in a share of the column."""
    return max(8, int(share * column(ax) / (5.0 if size(ax) == "small" else 5.9)))


def needs_matplotlib() -> ModuleNotFoundError:
    """Say what to install."""
    return ModuleNotFoundError(
        "plots need matplotlib; type: pip install 'cvstats[plot]'", name="matplotlib"
    )


def attrs_of(losses: Losses) -> dict[Any, Any]:
    """Find the attrs that describe the losses; those of a Dataset's first variable serve too."""
    attrs = dict(losses.attrs)
    variables = getattr(losses, "data_vars", {})
    for variable in list(variables.values())[:1]:
        attrs = {**variable.attrs, **attrs}
    return attrs


def loss_words(losses: Losses, before: str = "", *, power: int = 1) -> str:
    """Put the loss into words for an axis: its long name, and its units in brackets."""
    attrs = attrs_of(losses)
    name = plain(str(attrs.get("long_name", "loss")).replace("_", " "))
    units = plain(str(attrs.get("units", "")))
    if units in ("", "1", "None"):
        return f"{before}{name}"
    if power == 2:
        units = f"({units})²"
    return f"{before}{name} [{units}]"


def level_words(alpha: float) -> str:
    """Write the level of an interval: ``95%``."""
    return f"{100 * (1 - alpha):g}%"


def few_enough(number: int, what: str) -> None:
    """Refuse to draw more rows than anyone can read."""
    if number > MOST_ROWS:
        raise LogError(
            f"the plot would have {number:,} {what}. Expected {MOST_ROWS} or fewer. Choose some "
            f"models, sources or cells first, as in log[['a', 'b']] or log.sel(lead=1)."
        )


def own_name(losses: Losses) -> str | None:
    """Name the one model of a log that has a single one; None where there are several."""
    if isinstance(losses, (pd.DataFrame, xr.Dataset)) or "model" in getattr(losses, "coords", {}):
        return None
    if "model" in getattr(losses, "dims", ()):
        return None
    if isinstance(losses, Kept) and len(losses.models) > 1:
        return None
    return "" if losses.name is None else str(losses.name)


def tidy(result: Any, losses: Losses) -> pd.DataFrame:
    """Lay a result out with its labels as columns; ``model`` names the carried cell too."""
    table = framed(result)
    if isinstance(losses, pd.DataFrame) and "other" not in table.index.names:
        table.index = one_name(table.index, losses.columns.nlevels)
    carried = [str(name) for name in table.index.names if name is not None and name not in KNOWN]
    nameless = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    table = table.reset_index(drop=nameless)
    name = own_name(losses)
    if name is not None and "other" not in table:
        table["model"] = name
    words = [[str(model)] if model != "" else [] for model in table["model"]]
    for name in carried:
        for parts, label in zip(words, table[name], strict=True):
            parts.append(f"{name}={label}")
    table["model"] = [" · ".join(parts) for parts in words]
    return table


def one_name(index: pd.Index, levels: int) -> pd.Index:
    """Put the last levels, which name a model together, into one."""
    if levels == 1:
        return index
    first = range(index.nlevels - levels)
    names = [" · ".join(map(str, label[-levels:])) for label in index]
    models = pd.Index(names, name="model")
    parts = [*(index.get_level_values(i) for i in first), models]
    return pd.MultiIndex.from_arrays(parts) if first else models


def rows_of(result: Any, losses: Losses) -> pd.DataFrame:
    """Lay an interval out as one row for each model or carried cell."""
    table = tidy(result, losses)
    few_enough(len(table), "rows")
    return table


def told(names: Sequence[str], most: int = 28) -> list[str]:
    """Shorten names that leave no room for the plot, in their middle."""
    tail = most * 2 // 5
    short = (
        name if len(name) <= most else f"{name[: most - tail - 1]}…{name[-tail:]}"
        for name in map(str, names)
    )
    return [plain(name) for name in short]


def plain(words: str) -> str:
    """Keep dollar signs from being read as the marks of a formula."""
    return words.replace("$", r"\$")


def rule(ax: Axes, along: Literal["x", "y"], labels: Sequence[Any]) -> None:
    """Label places 0, 1, 2, … by names; of too many, by a few of them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    names = told([str(label) for label in labels], letters(ax, 0.42))
    axis = ax.xaxis if along == "x" else ax.yaxis
    room = letters(ax, 0.7)
    if along == "y" or sum(len(name) + 2 for name in names) <= room:
        axis.set_major_locator(FixedLocator(list(range(len(names)))))
    else:
        most = max(1, room // (2 + max(map(len, names))) - 1)
        axis.set_major_locator(MaxNLocator(nbins=most, integer=True))

    def name(value: float, _: Any = None) -> str:
        at = round(value)
        return names[at] if 0 <= at < len(names) and math.isclose(at, value) else ""

    axis.set_major_formatter(FuncFormatter(name))


def above(ax: Axes, handles: Sequence[Any] | None = None) -> None:
    """Put the legend above the plot, where no data are, in as few lines as fit."""
    found, words = ax.get_legend_handles_labels()
    shown = found if handles is None else list(handles)
    words = words if handles is None else [str(handle.get_label()) for handle in shown]
    words = [plain(word) for word in words]
    widths = [5.0 * len(word) + 34 for word in words]
    columns, room = len(words), 0.97 * column(ax)
    if sum(widths) > room:
        columns = max(1, int(room / max(widths)))
    ax.legend(
        shown, words, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, frameon=False,
        fontsize="small", borderaxespad=0.2, handletextpad=0.4, columnspacing=1.2,
    )  # fmt: skip


def name_x(ax: Axes, *lines: str) -> None:
    """Say what the horizontal axis shows, in lines that fit."""
    most = letters(ax, 0.62)
    ax.set_xlabel("\n".join(fill(line, most) for line in lines), fontsize=size(ax))


def name_y(ax: Axes, words: str) -> None:
    """Say what the vertical axis shows."""
    ax.set_ylabel(words, fontsize=size(ax))


POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def numbers(ax: Axes, *lines: str) -> None:
    """Keep the numbers below the plot few and short, their power of ten in the label."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    most = float(np.abs(ax.get_xlim()).max())
    power = math.floor(math.log10(most)) if most > 0 and math.isfinite(most) else 0
    power = power // 3 * 3 if power >= 5 or power < -3 else 0
    first, *rest = lines
    if power:
        first = f"{first}, in\N{NO-BREAK SPACE}10{str(power).translate(POWERS)}"
        scale = 10.0**power
        words = FuncFormatter(lambda value, _: f"{value / scale:.6g}".replace("-", "−"))
        ax.xaxis.set_major_formatter(words)
    name_x(ax, first, *rest)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=3 if size(ax) == "small" else 4))


def spread(number: int, width: float = 0.6) -> Any:
    """Places beside each other about 0."""
    return np.linspace(-width / 2, width / 2, number) if number > 1 else np.zeros(1)
