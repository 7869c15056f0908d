"""Results as text: tables in Markdown and LaTeX, and the rows and cells that they are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from math import floor, log10
from textwrap import fill
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.cautions import list_cautions, sentences_of
from cvstats.core.design import LEVELS
from cvstats.errors import LogError, spelled
from cvstats.log.cautions import cautions
from cvstats.log.pandas import NAMELESS

Digits: TypeAlias = int | Literal["auto"] | None
LONG = 9
"""With more decimals a number is written with its power of ten."""

UNIT = ("estimate", "difference", "se", "lower", "upper", "mean", "tau", "tau_lower", "tau_upper")
"""Columns in the unit of the loss: they share their decimals."""


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
        Which columns, in which order; all of them by default.
    digits : int, "auto" or None, optional
        Decimals. ``"auto"`` shows two digits of the smallest standard error, None every digit.

    Returns
    -------
    str
        The table, ending without a line break.

    Raises
    ------
    LogError
        If the object is not a result, or has no such column.

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
    lines = [" | ".join(map(escape_markdown, row)) for row in table]
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

    What the numbers cover is in the ``attrs`` of the result; state it in the caption.

    Parameters
    ----------
    result : Series, DataFrame or Dataset
        What a method returned.
    columns : sequence of str, optional
        Which columns, in which order; all of them by default.
    digits : int, "auto" or None, optional
        Decimals. ``"auto"`` shows two digits of the smallest standard error, None every digit.
    caption, label : str, optional
        With either the table is put into a ``table`` environment. The caption is LaTeX and is
        taken as it is.

    Returns
    -------
    str
        The table; it needs ``\usepackage{booktabs}``.

    Raises
    ------
    LogError
        If the object is not a result, or has no such column.

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
    rows = [" & ".join(map(escape_latex, row)) + r" \\" for row in table]
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
    """Format a result as text: a header, the rows, and the side to which each column is aligned."""
    if not (digits is None or digits == "auto" or (isinstance(digits, int) and digits >= 0)):
        raise LogError(f"digits={digits!r} is out of range. Expected 0, 1, 2, …, 'auto' or None.")
    table = result_frame(result)
    shown = select_columns(format_cells(table, digits), columns)
    labels = table.index.to_frame() if table.index.names != [None] else table[[]]
    header = [*(str(name or "") for name in table.index.names[: labels.shape[1]]), *shown.columns]
    rows = np.column_stack([labels.astype(str), shown]).tolist()
    sides = "".join("r" if table[name].dtype.kind in "fiu" else "l" for name in shown.columns)
    return [[str(name) for name in header], *rows], "l" * labels.shape[1] + sides


def select_columns(table: pd.DataFrame, columns: Sequence[str] | None) -> pd.DataFrame:
    """Select some columns; by default all, except cautions if there are none."""
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


def result_frame(result: Any) -> pd.DataFrame:
    """Convert any result to a frame with a row per model, pair, or cell of further dimensions.

    The cautions of an array, which are flags, become labels.
    """
    if is_log(result):
        raise LogError(
            "this is a loss log and not a result. Expected what a method returned: "
            "cvstats.to_markdown(log.cvci.interval())."
        )
    if isinstance(result, pd.DataFrame):
        return result
    if isinstance(result, pd.Series):
        name = NAMELESS if result.name is None else result.name
        index = pd.Index([name], name="model", tupleize_cols=False)
        table = pd.DataFrame({key: [value] for key, value in result.items()}, index=index)
    elif isinstance(result, xr.Dataset):
        table = flatten(result)
    else:
        raise LogError(
            f"a {type(result).__name__} is not a result. Expected what a function such as "
            f"cvstats.wald returned: a Series, a DataFrame or a Dataset."
        )
    table.attrs = dict(result.attrs)
    if isinstance(result, xr.Dataset) and "caution" in result:
        noted = result.attrs.get("cautions")
        if isinstance(noted, str):
            table.attrs["cautions"] = json.loads(noted)
        elif noted is None:
            table.attrs["cautions"] = dict(sentences_of(list_cautions(result["caution"].values)))
    return table


def is_log(result: Any) -> bool:
    """Whether this is the log itself: evaluations, and none of the columns of a result."""
    if isinstance(result, pd.Series):
        return not all(isinstance(label, str) for label in result.index)
    if isinstance(result, xr.DataArray):
        return bool(set(result.dims) & set(LEVELS))
    if not isinstance(result, (pd.DataFrame, xr.Dataset)) or "cvstats_version" in result.attrs:
        return False
    levels = result.index.names if isinstance(result, pd.DataFrame) else result.dims
    return bool(set(levels) & set(LEVELS)) and not {"estimate", "difference", "mean"} & set(result)


def flatten(result: xr.Dataset) -> pd.DataFrame:
    """Make a row for each cell of a Dataset, its labels as index."""
    if not result.data_vars or 0 in result.sizes.values():
        raise LogError(
            "the result is empty. Expected what a function such as cvstats.wald returned, with "
            "a cell at least."
        )
    if "caution" in result:
        result = result.assign(caution=cautions(result))
    if not result.dims:
        result = result.expand_dims("model" if "model" in result.coords else {"model": [NAMELESS]})
    dims: list[Hashable] = list(result.dims)
    table = result.to_dataframe(dim_order=dims).reset_index()
    keys = [name for name in ("model", "other") if name in table.columns]
    keys += [str(dim) for dim in dims if dim not in (*keys, "pair")]
    return table.set_index(keys)[[name for name in result.data_vars if name not in keys]]


def write_labels(index: pd.Index[Any], write: Callable[[Any], str] = str) -> list[list[str]]:
    """Write the labels of each level of an index, those of both models of a pair together.

    Where two labels would read the same, as the models 1 and "1" do, all of their level are
    spelled as one would type them.
    """
    levels = [index.get_level_values(at).tolist() for at in range(index.nlevels)]
    sides = [at for at, name in enumerate(index.names) if name in ("model", "other")]
    written = []
    for at, labels in enumerate(levels):
        every = [label for side in sides for label in levels[side]] if at in sides else labels
        alike = len(set(map(write, every))) < len(set(map(spelled, every)))
        written.append([spelled(label) if alike else write(label) for label in labels])
    return written


def name_rows(table: pd.DataFrame) -> list[str]:
    """Name each row: models by themselves, pairs with a minus, other labels with their level."""
    names = []
    levels = [str(name) for name in table.index.names]
    for parts in zip(*write_labels(table.index), strict=True):
        if len(levels) == 1:
            names.append(parts[0])
            continue
        given = dict(zip(levels, parts, strict=True))
        head = [given.pop(key) for key in ("model", "other") if key in given]
        rest = [f"{level}={label}" for level, label in given.items()]
        names.append(" · ".join([" − ".join(head), *rest] if head else rest))
    return names


def count_decimals(table: pd.DataFrame) -> int:
    """Count the decimals that show two digits of the smallest standard error."""
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


def format_cells(table: pd.DataFrame, digits: Digits = "auto") -> pd.DataFrame:
    """Write every number of a table as text; results themselves are never rounded."""
    decimals = count_decimals(table) if digits == "auto" else digits
    cells = {
        name: [format_value(value, str(name), decimals, digits) for value in table[name]]
        for name in table.columns
    }
    return pd.DataFrame(cells, index=table.index)


def format_value(value: Any, column: str, decimals: int | None, digits: Digits) -> str:
    """Write one value for a reader: p-values and counts in their own ways."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
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
    if digits == "auto" and column in UNIT and decimals > LONG and number != 0:
        return f"{number:.{max(0, floor(log10(abs(number))) + decimals)}e}"
    if column in UNIT or digits != "auto":
        return f"{number:,.{decimals}f}"
    return f"{number:,.0f}" if number == int(number) and abs(number) < 1e9 else f"{number:.4g}"


class SentenceTable(pd.DataFrame):
    """A table of sentences, which are wrapped when it is printed; parts of it are plain frames."""

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def list_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield what is printed: a name, and the sentence next to it."""
        raise NotImplementedError

    def write(self, width: int) -> str:
        """Write the sentences next to their names, in lines of so many letters."""
        rows = list(self.list_sentences())
        indent = max((len(name) for name, _ in rows), default=0) + 2
        return "\n".join(
            fill(
                printable(text), max(40, width), initial_indent=name.ljust(indent),
                subsequent_indent=" " * indent, break_on_hyphens=False,
            )
            for name, text in rows
        )  # fmt: skip

    def __repr__(self) -> str:
        """Write the sentences, and below them the columns of the table."""
        columns = ", ".join(map(str, self.columns))
        shape = f"[{len(self):,} rows x {len(self.columns)} columns: {columns}]"
        width = pd.get_option("display.width") or 80
        return "\n\n".join(filter(None, [self.write(width), fill(shape, width)]))

    def _repr_html_(self) -> str:
        """Write the table as HTML with its sentences in full."""
        with pd.option_context("display.max_colwidth", None):
            return self.to_html()


def printable(text: str) -> str:
    """Replace what no page or picture can show: control characters and halves of characters."""
    text = re.sub(r"[\t\n\r\x0b\x0c]", " ", text)
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def escape_markdown(text: str) -> str:
    """Escape what Markdown would read as markup."""
    text = re.sub(r"([\\|`*\[\]])", r"\\\1", " ".join(text.split()))
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)  # a tag begins with one of these


LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "–": "--", "−": "$-$", "∞": r"$\infty$",
})  # fmt: skip


def escape_latex(text: str) -> str:
    """Escape what LaTeX would read as commands."""
    return " ".join(text.split()).translate(LATEX)
