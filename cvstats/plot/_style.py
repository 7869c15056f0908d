"""What all plots share: the palette, an Axes to draw on, and results as rows to draw."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.types import FloatArray
from cvstats.errors import LogError, install_command, is_several
from cvstats.formatting import result_frame, write_labels
from cvstats.large.moments import CellMoments
from cvstats.log.log import Losses
from cvstats.log.metrics import attrs_of_log, lost_metrics
from cvstats.log.read import is_dask_frame
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


def facts_of(losses: Losses) -> dict[Any, Any]:
    """Read what the attrs of a log say, those of the first variable of a Dataset included.

    Of several metrics these are the facts of the one that it holds; where no label says which one
    that is, its name and its direction are not known.
    """
    variables = list(getattr(losses, "data_vars", {}).values())
    facts = {**(variables[0].attrs if variables else {}), **attrs_of_log(losses)}
    if lost_metrics(losses):
        return {name: fact for name, fact in facts.items() if name not in LOST}
    return facts


LOST = ("loss", "long_name", "metric", "metrics")


def is_score(losses: Losses) -> bool:
    """Whether the losses were made from one score, of which more is better."""
    facts = facts_of(losses)
    return isinstance(facts.get("metric"), str) and facts.get("orientation") in (
        "1 - score", "-score",
    )  # fmt: skip


def show_direction(result: Any, losses: Losses) -> Any:
    """Turn a result about losses that were made from a score into one about the score."""
    if not is_score(losses) or "score" in result.attrs:
        return result
    facts = facts_of(losses)
    result = result.copy()
    result.attrs = {**{name: facts[name] for name in ("metric", "orientation")}, **result.attrs}
    return as_scores(result)


def rank_models(table: pd.DataFrame, losses: Losses, by: str = "estimate") -> list[str]:
    """Order models by their mean in a table of rows, the best first."""
    means = table.groupby("model", sort=False)[by].mean()
    return means.sort_values(kind="stable", ascending=not is_score(losses)).index.tolist()


def result_rows(result: Any, losses: Losses) -> pd.DataFrame:
    """Convert a result to rows with their labels as columns, scores in their own direction.

    Column ``model`` names the model, whatever the columns of the log are called, and the cell
    of further dimensions. Different models have different names.
    """
    table = result_frame(show_direction(result, losses))
    index = table.index
    table = table.reset_index(drop=True)
    nameless = isinstance(index, pd.RangeIndex) and index.name is None
    arrays = isinstance(losses, (xr.DataArray, xr.Dataset))
    single = None if "other" in index.names else name_single(losses)
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
    """Write the label of a model; columns of several levels have a tuple."""
    return " · ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def name_single(losses: Losses) -> str | None:
    """Name the model of a log that has a single one; None where there are several."""
    if isinstance(losses, (pd.DataFrame, xr.Dataset)) or "model" in getattr(losses, "coords", {}):
        return None
    if "model" in getattr(losses, "dims", ()):
        return None
    if isinstance(losses, CellMoments) and len(losses.models) > 1:
        return None
    return "" if losses.name is None else str(losses.name)


def read_number(result: pd.DataFrame, name: str) -> Any:
    """Read a number that is a column where rows differ and an attribute where they do not."""
    return result[name] if name in result else result.attrs[name]


def require_memory(losses: Losses) -> None:
    """Refuse a frame whose losses are not in memory."""
    if is_dask_frame(losses):
        raise LogError(
            "the losses of a dask frame are not in memory. Expected moments of it, as in "
            "cvstats.plot.forest(cvstats.scan_dask(frame).compute()), or losses in memory: "
            "cvstats.plot.forest(cvstats.as_log(frame.compute(), loss=…))."
        )


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
