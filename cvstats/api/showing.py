"""Tables for people: any result as plain rows, in Markdown and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from math import floor, log10
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.cautions import cautions
from cvstats.containers.frames import NAMELESS
from cvstats.core.cautions import list_cautions, sentences_of
from cvstats.core.design import LEVELS
from cvstats.errors import LogError

__all__ = ["Digits", "cells", "framed", "row_names", "text_table", "to_latex", "to_markdown"]

Digits: TypeAlias = int | Literal["auto"] | None
LONG = 9
"""With more decimals a number is written with its power of ten."""

UNIT = ("estimate", "difference", "se", "lower", "upper", "mean", "tau", "tau_lower", "tau_upper")
"""Columns in the unit of the loss: they share their decimals."""


def framed(result: Any) -> pd.DataFrame:
    """Lay any result out as rows: a row per model, pair, or carried cell.

    An array's cautions, which are flags, become labels.
    """
    if is_log(result):
        raise LogError(
            "this is a loss log and no result. Expected what a method returned: "
            "cvstats.to_markdown(log.cvci.interval())."
        )
    if isinstance(result, pd.DataFrame):
        return result
    if isinstance(result, pd.Series):
        name = NAMELESS if result.name is None else result.name
        index = pd.Index([name], name="model", tupleize_cols=False)
        table = pd.DataFrame({key: [value] for key, value in result.items()}, index=index)
    elif isinstance(result, xr.Dataset):
        table = unstacked(result)
    else:
        raise LogError(
            f"a {type(result).__name__} is no result. Expected what a function such as "
            f"cvstats.wald returned: a Series, a DataFrame or a Dataset."
        )
    table.attrs = dict(result.attrs)
    if isinstance(result, xr.Dataset) and "caution" in result:
        table.attrs["cautions"] = sentences_of(list_cautions(result["caution"].values))
    return table


def is_log(result: Any) -> bool:
    """Whether somebody passed the log itself: evaluations, and none of the columns of a result."""
    if isinstance(result, pd.Series):
        return not all(isinstance(label, str) for label in result.index)
    if isinstance(result, (pd.DataFrame, xr.Dataset)):
        table = isinstance(result, pd.DataFrame)
        levels = set(result.index.names if table else result.dims) & set(LEVELS)
        named = "cvstats_version" in result.attrs
        return bool(levels) and not named and not {"estimate", "difference", "mean"} & set(result)
    return isinstance(result, xr.DataArray) and bool(set(result.dims) & set(LEVELS))


def unstacked(result: xr.Dataset) -> pd.DataFrame:
    """Make a row for each cell of a Dataset, its labels as index."""
    if not result.data_vars or 0 in result.sizes.values():
        raise LogError(
            "the result is empty. Expected what a function such as cvstats.wald returned, with "
            "a cell at least."
        )
    dims: list[Hashable] = list(result.dims)
    if "caution" in result:
        result = result.assign(caution=cautions(result))
    table = result.expand_dims("model").to_dataframe() if not dims else (
        result.to_dataframe(dim_order=dims)
    )  # fmt: skip
    table = table.reset_index()
    keys = [name for name in ("model", "other") if name in table.columns]
    if not dims and "model" not in result.coords:
        table["model"] = NAMELESS
    keys += [str(dim) for dim in dims if dim not in (*keys, "pair")]
    columns = [name for name in result.data_vars if name not in keys]
    return table.set_index(keys)[columns]


def row_names(table: pd.DataFrame) -> list[str]:
    """Name each row: models by themselves, pairs with a minus, other labels with their level."""
    names = []
    levels = [str(name) for name in table.index.names]
    for labels in table.index:
        parts = list(labels) if isinstance(labels, tuple) and len(levels) > 1 else [labels]
        given = dict(zip(levels, parts, strict=True))
        head = [str(given.pop(key)) for key in ("model", "other") if key in given]
        rest = [f"{level}={label}" for level, label in given.items()]
        names.append(" · ".join([" − ".join(head), *rest] if head else rest))
    return names


def decimals(table: pd.DataFrame) -> int:
    """Decimals that show two digits of the smallest standard error."""
    se = pd.Series(dtype=float)
    if "se" in table:
        se = table["se"].astype(float)
    if not (se > 0).any() and {"lower", "upper"} <= set(table.columns):
        se = (table["upper"].astype(float) - table["lower"].astype(float)) / 4
    se = se[np.isfinite(se) & (se > 0)]
    if not se.empty:
        return max(0, 1 - floor(log10(float(se.min()))))
    known = [table[name].abs() for name in ("estimate", "difference", "mean") if name in table]
    most = max((float(column.max()) for column in known), default=0.0)
    return max(0, 3 - floor(log10(most))) if 0 < most < np.inf else 3


def cells(table: pd.DataFrame, digits: Digits = "auto") -> pd.DataFrame:
    """Write every number of a table as text; nothing inside the library is ever rounded."""
    places = decimals(table) if digits == "auto" else digits
    written = {name: [word(value, str(name), places, digits) for value in table[name]]
               for name in table.columns}  # fmt: skip
    return pd.DataFrame(written, index=table.index)


def word(value: Any, column: str, places: int | None, digits: Digits) -> str:
    """Write one number as a reader wants it: p-values and counts in their own ways."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    number = float(value)
    if np.isnan(number):
        return "–"
    if np.isinf(number):
        return "∞" if number > 0 else "−∞"
    if places is None:
        return repr(number)
    if column.startswith("p_"):
        return "<0.001" if number < 0.001 else f"{number:.3f}"
    if digits == "auto" and column in UNIT and places > LONG and number != 0:
        return f"{number:.{max(0, floor(log10(abs(number))) + places)}e}"
    if column in UNIT or digits != "auto":
        return f"{number:,.{places}f}"
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e9 else f"{number:.4g}"


def chosen_columns(table: pd.DataFrame, columns: Sequence[str] | None) -> pd.DataFrame:
    """Keep the columns asked for; without a wish all, save cautions where there are none."""
    if columns is None:
        bare = "caution" in table and not table["caution"].astype(bool).any()
        return table.drop(columns="caution") if bare else table
    unknown = [name for name in columns if name not in table.columns]
    if unknown:
        raise LogError(
            f"the result has no column {unknown[0]!r}. Expected some of "
            f"{', '.join(map(str, table.columns))}."
        )
    return table[list(columns)]


def to_markdown(
    result: Any, *, columns: Sequence[str] | None = None, digits: Digits = "auto"
) -> str:
    """Write a result as a table in Markdown.

    What the numbers cover is in the ``attrs`` of the result and not in the table.

    Parameters
    ----------
    result : Series, DataFrame or Dataset
        What a method returned.
    columns : sequence of str, optional
        Which columns, in which order; all of them otherwise.
    digits : int, "auto" or None, optional
        Decimals. ``"auto"`` shows two digits of the smallest standard error, None every digit.

    Returns
    -------
    str
        The table, ending without a line break.

    Raises
    ------
    LogError
        If the object is no result, or has no such column.

    Notes
    -----
    Numbers are rounded here, for reading, by ``10^-d`` with d decimals; results never are.
    Pipes and other marks in names are escaped.

    References
    ----------
    GitHub Flavored Markdown, section 4.10, https://github.github.com/gfm/.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.to_markdown(losses.cvci.wald(), columns=["estimate", "lower", "upper"]))
    | model | estimate | lower | upper |
    |:--|--:|--:|--:|
    | ridge | 3,006 | 2,640 | 3,372 |
    | random_forest | 3,188 | 2,807 | 3,569 |
    """
    table, sides = text_table(result, columns, digits)
    lines = [" | ".join(map(marked, row)) for row in table]
    rule = "|".join(":--" if side == "l" else "--:" for side in sides)
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def to_latex(
    result: Any,
    *,
    columns: Sequence[str] | None = None,
    digits: Digits = "auto",
    caption: str | None = None,
    label: str | None = None,
) -> str:
    r"""Write a result as a table in LaTeX, for the package booktabs.

    What the numbers cover is in the ``attrs`` of the result; say it in the caption.

    Parameters
    ----------
    result : Series, DataFrame or Dataset
        What a method returned.
    columns : sequence of str, optional
        Which columns, in which order; all of them otherwise.
    digits : int, "auto" or None, optional
        Decimals. ``"auto"`` shows two digits of the smallest standard error, None every digit.
    caption, label : str, optional
        With either the table stands in a ``table`` environment. The caption is LaTeX and is
        taken as it is.

    Returns
    -------
    str
        The table; it needs ``\usepackage{booktabs}``.

    Raises
    ------
    LogError
        If the object is no result, or has no such column.

    Notes
    -----
    Numbers are rounded here, for reading, by ``10^-d`` with d decimals; results never are.
    Names are escaped.

    References
    ----------
    Fear, Publication quality tables in LaTeX, https://ctan.org/pkg/booktabs.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.to_latex(losses.cvci.wald(), columns=["estimate", "lower", "upper"]))
    \begin{tabular}{lrrr}
    \toprule
    model & estimate & lower & upper \\
    \midrule
    ridge & 3,006 & 2,640 & 3,372 \\
    random\_forest & 3,188 & 2,807 & 3,569 \\
    \bottomrule
    \end{tabular}
    """
    table, sides = text_table(result, columns, digits)
    rows = [" & ".join(map(escaped, row)) + r" \\" for row in table]
    lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rows[0], r"\midrule", *rows[1:]]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption is not None or label is not None:
        named = [rf"\caption{{{caption}}}"] if caption is not None else []
        named += [rf"\label{{{label}}}"] if label is not None else []
        lines = [r"\begin{table}", r"\centering", *named, *lines, r"\end{table}"]
    return "\n".join(lines)


def text_table(
    result: Any, columns: Sequence[str] | None, digits: Digits
) -> tuple[list[list[str]], str]:
    """Lay a result out as text: a head, the rows, and to which side each column goes."""
    if not (digits is None or digits == "auto" or (isinstance(digits, int) and digits >= 0)):
        raise LogError(f"digits={digits!r} is out of range. Expected 0, 1, 2, …, 'auto' or None.")
    table = framed(result)
    shown = cells(table, digits).pipe(chosen_columns, columns)
    labels = [] if isinstance(table.index, pd.RangeIndex) else [
        str(name or "") for name in table.index.names
    ]  # fmt: skip
    rows = [[*labels, *map(str, shown.columns)]]
    for key, row in zip(shown.index, shown.to_numpy().tolist(), strict=True):
        parts = list(key) if isinstance(key, tuple) and len(labels) > 1 else [key]
        rows.append([*map(str, parts if labels else []), *row])
    words = [table[name].dtype.kind not in "fiu" for name in shown.columns]
    sides = "l" * len(labels) + "".join("l" if is_word else "r" for is_word in words)
    return rows, sides


def marked(text: str) -> str:
    """Escape what Markdown would read as marks."""
    text = re.sub(r"([\\|`*\[\]])", r"\\\1", " ".join(text.split()))
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)  # no letter after it, no tag


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "–": "--", "−": "$-$", "∞": r"$\infty$",
}  # fmt: skip


def escaped(text: str) -> str:
    """Escape what LaTeX would read as commands."""
    return "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))
