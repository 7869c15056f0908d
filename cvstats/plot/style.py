"""What all plots share: colours that all eyes tell apart, labels with units, an Axes to draw on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.running import Losses
from cvstats.containers import Kept, is_dask_frame
from cvstats.errors import LogError, is_several
from cvstats.formatting import result_frame
from cvstats.plot.naming import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "GREY",
    "LETTER",
    "LINE",
    "MARKERS",
    "MOST_ROWS",
    "TALLEST",
    "canvas",
    "column",
    "every",
    "few_enough",
    "in_memory",
    "letters",
    "level_words",
    "loss_words",
    "rows_of",
    "size",
    "spread",
    "tall",
    "tidy",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, without its yellow, which is too light for thin lines."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#7A7A7A"
MOST_ROWS = 60
TALLEST = 12.0
"""No figure is higher, in inches."""
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
        height = min(TALLEST, 1.3 + 0.27 * rows)
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    else:
        checked_axes(ax)
    ax.tick_params(labelsize=size(ax))
    return ax


def checked_axes(ax: object) -> None:
    """Refuse what one cannot draw on, and say how to come by an Axes."""
    try:
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        raise needs_matplotlib() from error
    if isinstance(ax, Axes):
        return
    several = is_several(ax)
    got = "several things" if several else f"a {type(ax).__name__}"
    way = "Choose one, as in ax=axes[0]" if several else "Type: figure, ax = plt.subplots()"
    raise LogError(f"ax= is {got}. Expected the Axes of matplotlib to draw on. {way}.")


def column(ax: Axes) -> float:
    """Width in points of the column in which an Axes stands, its labels included."""
    inches = ax.figure.bbox.width / ax.figure.dpi
    return float(72 * inches * min(1.0, ax.get_position(original=True).width / 0.775))


def tall(ax: Axes) -> float:
    """Height in points of the row in which an Axes stands, its labels included."""
    inches = ax.figure.bbox.height / ax.figure.dpi
    return float(72 * inches * min(1.0, ax.get_position(original=True).height / 0.77))


def size(ax: Axes) -> Literal["small", "medium"]:
    """Choose the size of writing: smaller in a narrow column."""
    return "small" if column(ax) < 330 else "medium"


LETTER = {"small": 5.0, "medium": 5.9}
"""Width in points of a letter, for most words."""
LINE = {"small": 9.5, "medium": 11.5}
"""Height in points of a line."""


def letters(ax: Axes, share: float) -> int:
    """Count the letters of that size that stand side by side in a share of the column."""
    return max(8, int(share * column(ax) / LETTER[size(ax)]))


def every(ax: Axes, rows: float, lines: int = 1) -> int:
    """Of so many rows, choose which have a label: all, or each second, third, …, without touch."""
    free = max(30.0, tall(ax) - 75)  # legend, numbers and what they are
    return max(1, math.ceil(lines * LINE[size(ax)] * rows / free))


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
    name = plain(str(attrs.get("long_name") or attrs.get("loss") or "loss").replace("_", " "))
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
    table = result_frame(result)
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


def spread(number: int, width: float = 0.6) -> Any:
    """Places beside each other about 0."""
    return np.linspace(-width / 2, width / 2, number) if number > 1 else np.zeros(1)
