"""Display of results: rounded numbers, and all columns in a narrow window."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from math import floor, log10
from string import ascii_lowercase
from textwrap import fill
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from cvstats.core.orientation import TURNED
from cvstats.log.metadata import has_several, name_subtracted

Digits: TypeAlias = int | Literal["auto"] | None
LONG = 9
"""Numbers with more decimals are written in scientific notation."""

UNIT = (
    "estimate", "difference", "se", "lower", "upper", "mean", "tau", "tau_lower", "tau_upper",
    "scale",
)  # fmt: skip
"""Columns in units of the loss, which are displayed with the same number of decimals."""


MINUS = re.compile(r"(?:^|(?<=\de))-(?=\d)")
"""The hyphen of a negative number or exponent."""


def display_width() -> int:
    """Return the length of displayed lines, an option of pandas."""
    return int(pd.get_option("display.width") or 80)


class AnyFrame(type):
    """Makes every DataFrame an instance, so that ``pandas.testing`` compares in either order."""

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether this is a DataFrame."""
        return isinstance(instance, pd.DataFrame)


class ResultFrame(pd.DataFrame, metaclass=AnyFrame):
    """A DataFrame that is displayed rounded to its standard errors, with all of its columns.

    The values keep all digits. Selections without a standard error or limits, and all frames if
    ``display.precision`` or ``display.float_format`` is set, are displayed as in pandas.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return ResultFrame

    def __repr__(self) -> str:
        """Format numbers to the precision of their standard errors, in lines that fit."""
        if not is_rounded(self):
            with pd.option_context("display.max_columns", None):
                return super().__repr__()
        return write_frame(self, display_width())

    def _repr_html_(self) -> str:
        """Return the same table as HTML, with a caption and cautions explained on hover."""
        if not is_rounded(self):
            rows = pd.get_option("display.max_rows")
            return str(self.to_html(max_rows=rows, show_dimensions=True, notebook=True))
        return write_html(self)


def is_rounded(frame: pd.DataFrame) -> bool:
    """Whether a frame has standard errors or is a whole result, and no display option is set.

    Columns that a user formatted as text are printed as they are.
    """
    columns = set(frame.columns)
    asked = pd.get_option("display.precision") != 6 or pd.get_option("display.float_format")
    known = columns & {"caution", "se"} or {"lower", "upper"} <= columns
    result = "cvstats_version" in frame.attrs and len(frame) > 0 and frame.columns.is_unique
    if not (result and known) or asked:
        return False
    try:
        frame[[*columns.intersection(UNIT)]].astype(float)
    except (TypeError, ValueError):
        return False
    return True


def write_frame(frame: pd.DataFrame, width: int) -> str:
    """Format a result in lines of at most ``width`` characters.

    If the columns do not fit, cautions are replaced by letters explained below; if they still do
    not fit, the models of a pair are stacked. If that is not enough, rows become columns if they
    fit.
    """
    text, notes = format_rows(frame), ""
    if measure(text) > width and "caution" in text:
        text, notes = letter_cautions(text)
    whole, pairs = text, text.index.names[-2:] == ["model", "other"]
    if measure(text) > width and pairs:
        text = stack_pairs(text)
    if measure(text) > width and measure(whole.T) <= width:
        text = whole.T
    with pd.option_context("display.max_rows", None, "display.max_colwidth", None):
        lines = text.to_string(line_width=width if measure(text) > width else None)
    lines = "\n".join(line.rstrip() for line in lines.splitlines())
    rows = f"[{len(frame):,} rows]" if len(frame) > len(text) else ""
    about = (describe_difference(frame), describe_scale(frame), notes)
    notes = "\n".join(fill(note, width) for note in about if note)
    return "\n\n".join(filter(None, [lines, rows, notes]))


SHOWN = {"estimate", "difference", "mean"}
"""Columns whose values need the notes below a table."""


def describe_scale(frame: pd.DataFrame) -> str:
    """Say that values are losses made from scores, so that 1 - AUC is not read as an AUC."""
    facts = frame.attrs
    if "score" in facts or not SHOWN & set(frame.columns):
        return ""
    several = has_several(facts)
    if several and "metric" not in frame.index.names:  # one of them, unknown
        return ""
    parts = facts["metrics"].values() if several else [facts]
    names = [str(part.get("loss")) for part in parts if part.get("orientation") in TURNED]
    return (
        f"loss: {', '.join(dict.fromkeys(names))} (cvstats.as_scores converts it)" if names else ""
    )


def describe_difference(frame: pd.DataFrame) -> str:
    """Name the model or the group that was subtracted, if no row does."""
    if not SHOWN & set(frame.columns):
        return ""
    groups, model = name_subtracted(frame.attrs)
    notes = [f"contrast: {groups}"] if groups else []
    if "other" in frame.index.names and any(frame.index.get_level_values("other") != 0):
        model = None  # cancels out
    notes += [] if model is None else [f"difference from: {model}"]
    return "; ".join(notes)


def measure(text: pd.DataFrame) -> int:
    """Width of the lines of a table, in characters."""
    return max(map(len, text.to_string().splitlines()))


def format_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Format each number; of a long table, only those of the first and last rows."""
    most, few = pd.get_option("display.max_rows"), pd.get_option("display.min_rows") or 10
    if not most or len(frame) <= most:
        return format_cells(frame, flags=str).rename(index=join_tuple)
    half = max(1, min(few, most) // 2)
    parts = [format_cells(part, flags=str) for part in (frame.head(half), frame.tail(half))]
    gap: Any = "..." if frame.index.nlevels == 1 else ("...",) * frame.index.nlevels
    dots = pd.DataFrame("...", index=[0], columns=frame.columns)
    dots.index = pd.Index([gap]) if frame.index.nlevels == 1 else pd.MultiIndex.from_tuples([gap])
    text = pd.concat([parts[0], dots, parts[1]]).rename(index=join_tuple)
    text.index.names = frame.index.names
    return text


def join_tuple(label: Any) -> Any:
    """Write the label of a model whose column has several levels."""
    return " · ".join(map(str, label)) if isinstance(label, tuple) else label


def letter_cautions(text: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Replace cautions by letters after the row names, and explain them."""
    cells, numbers = text["caution"], text.drop(columns="caution")
    found = dict.fromkeys(label for cell in cells for label in split_labels(cell))
    if not found:
        return numbers, "caution: none"
    if len(found) > len(ascii_lowercase):
        return text, ""
    letters = dict(zip(found, ascii_lowercase, strict=False))
    marks = ["".join(f"({letters[label]})" for label in split_labels(cell)) for cell in cells]
    *outer, inner = (text.index.get_level_values(at) for at in range(text.index.nlevels))
    names = [f"{name} {mark}" if mark else str(name)
             for name, mark in zip(inner, marks, strict=True)]  # fmt: skip
    index = pd.MultiIndex.from_arrays([*outer, names]) if outer else pd.Index(names)
    notes = "; ".join(f"({letter}) {label}" for label, letter in letters.items())
    return numbers.set_axis(index.set_names(text.index.names)), f"caution: {notes}"


def split_labels(cell: str) -> list[str]:
    """Split the labels of a row."""
    return [label for label in cell.split(", ") if label and label != "..."]


def stack_pairs(text: pd.DataFrame) -> pd.DataFrame:
    """Write the first model of each pair, after the group if any, above the second."""
    names: list[str] = []
    rows: list[Any] = []
    last = None
    for (*group, other), cells in zip(text.index, text.to_numpy(), strict=True):
        if group != last:
            names.append(" · ".join(map(str, group)))
            rows.append([""] * text.shape[1])
        names.append(f"- {other}")
        rows.append(cells)
        last = group
    name = " · ".join(map(str, text.index.names[:-1]))
    return pd.DataFrame(rows, index=pd.Index(names, name=f"{name} - other"), columns=text.columns)


def write_html(frame: pd.DataFrame) -> str:
    """Format a result as an HTML table, with its target and numbers of points as caption."""
    text, explained = format_rows(frame), frame.attrs.get("cautions")
    known = explained if isinstance(explained, Mapping) else {}
    names = [escape(str(name or "")) for name in text.index.names]
    heads = [*names, *(escape(str(name)) for name in text.columns)]
    cautions = [str(name) == "caution" for name in text.columns]
    rows = []
    for label, cells in zip(text.index, text.to_numpy(), strict=True):
        labels = label if text.index.nlevels > 1 else (label,)
        side = "".join(f"<th>{escape(str(part))}</th>" for part in labels)
        body = "".join(
            f"<td>{explain(cell, known) if caution else escape(cell)}</td>"
            for cell, caution in zip(cells, cautions, strict=True)
        )
        rows.append(f"<tr>{side}{body}</tr>")
    counted = f"<p>{len(frame):,} rows</p>" if len(frame) > len(text) else ""
    about = [describe(frame.attrs), describe_difference(frame), describe_scale(frame)]
    caption = "; ".join(filter(None, about))
    return "\n".join([
        '<table border="1" class="dataframe">',
        f'<caption style="text-align: left">{escape(caption)}</caption>',
        f'<thead><tr>{"".join(f"<th>{head}</th>" for head in heads)}</tr></thead>',
        "<tbody>", *rows, f"</tbody></table>{counted}",
    ])  # fmt: skip


def explain(cell: str, known: Mapping[str, str]) -> str:
    """Format the cautions of a row, each explained on hover."""
    return ", ".join(
        f'<abbr title="{escape(str(known.get(label, "")))}">{escape(label)}</abbr>'
        for label in cell.split(", ") if label
    )  # fmt: skip


def describe(attrs: Mapping[Any, Any]) -> str:
    """Describe a result in one line: target, sample size and confidence level."""
    counts = [
        f"{attrs[name]:,.0f} {words}"
        for name, words in (
            ("n_points", "points"), ("n_sources", "sources"), ("n_repetitions", "repetitions"),
            ("n_folds", "folds"),
        )
        if isinstance(attrs.get(name), (int, float)) and attrs[name] > 1
    ]  # fmt: skip
    alpha = attrs.get("alpha")
    level = [f"{100 * (1 - alpha):.6g}% limits"] if isinstance(alpha, float) else []
    target = str(attrs.get("target", ""))
    return "; ".join(filter(None, [target[:1].upper() + target[1:], ", ".join(counts), *level]))


def count_decimals(table: pd.DataFrame) -> int:
    """Count the decimals that show two digits of the smallest standard error."""
    se = pd.Series(dtype=float)
    for name in {"se", "scale"} & set(table.columns):
        se = table[name].astype(float)
    if not (se > 0).any() and {"lower", "upper"} <= set(table.columns):
        se = (table["upper"].astype(float) - table["lower"].astype(float)) / 4
    se = se[np.isfinite(se) & (se > 0)]
    if not se.empty:
        return max(0, 1 - floor(log10(float(se.min()))))
    known = [table[name] for name in ("estimate", "difference", "mean") if name in table]
    most = max((float(column.astype(float).abs().max()) for column in known), default=0.0)
    return max(0, 3 - floor(log10(most))) if 0 < most < np.inf else 3


def answer(flag: object) -> str:
    """Format a boolean as yes or no."""
    return "yes" if flag else "no"


def format_cells(
    table: pd.DataFrame,
    digits: Digits = "auto",
    flags: Callable[[object], str] = answer,
    minus: str = "-",
) -> pd.DataFrame:
    """Format every number of a table; results themselves are never rounded."""
    index = table.index
    table = table.set_axis(range(len(table)))  # pandas would copy the index with each column,
    table.attrs = {}  # and the attrs
    decimals = count_decimals(table) if digits == "auto" else digits
    if digits == "auto" and decimals:  # fewer if the numbers were already rounded
        numbers = table[[name for name in UNIT if name in table]].astype(float).to_numpy()
        exact = (d for d in range(decimals) if (np.round(numbers, d) == numbers).all())
        decimals = next(exact, decimals)
    cells = {
        name: [
            flags(value) if isinstance(value, (bool, np.bool_))
            else MINUS.sub(minus, format_value(value, str(name), decimals, digits))
            for value in table[name]
        ]
        for name in table.columns
    }  # fmt: skip
    return pd.DataFrame(cells, index=index)


def print_cells(table: pd.DataFrame, digits: Digits = "auto") -> pd.DataFrame:
    """Format cells for printing, with minus signs instead of hyphens."""
    return format_cells(table, digits, minus="−")


def format_value(value: Any, column: str, decimals: int | None, digits: Digits) -> str:
    """Format one value; p-values and counts have formats of their own."""
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    number = float(value)
    if not np.isfinite(number):
        return "–" if np.isnan(number) else "∞" if number > 0 else "−∞"
    if decimals is None:
        return repr(number)
    if column.startswith("p_"):
        return "<0.001" if number < 0.001 else f"{number:.3f}"
    if digits == "auto" and column == "statistic":
        return f"{number:z.2f}"
    if digits == "auto" and column in UNIT and decimals > LONG and number != 0:
        return f"{number:.{max(0, floor(log10(abs(number))) + decimals)}e}"
    if column in UNIT or digits != "auto":
        return f"{number:z,.{decimals}f}"
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e9 else f"{number:.4g}"
