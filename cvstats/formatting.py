"""Results as text: tables, APA sentences, labels of cautions, scores, and BibTeX entries."""

from __future__ import annotations

import json
import re
import tomllib
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from string import ascii_lowercase
from textwrap import fill
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import (
    Caution,
    label_cautions,
    list_cautions,
    narrow_labels,
    sentences_of,
)
from cvstats.core.design import LEVELS
from cvstats.core.orientation import TURNED, turn
from cvstats.core.types import IntArray
from cvstats.errors import LogError, describe_type, is_number, read_names, spelled
from cvstats.log.display import AnyFrame, Digits, display_width, join_tuple, print_cells
from cvstats.log.metadata import LOSS_WORDS, has_several, name_subtracted, select_metric
from cvstats.log.pandas import NAMELESS
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS

NAMES = {
    "brier": "Brier score",
    "crps": "CRPS",
    "hinge": "hinge loss",
    "huber": "Huber loss",
    "percentage error": "absolute percentage error",
    "pinball": "pinball loss",
    "poisson deviance": "Poisson deviance",
    "zero one": "error rate",
}
"""Names of losses in words, unless it is the name with spaces."""


def to_markdown(
    result: Any, *, columns: Sequence[str] | None = None, digits: Digits = "auto"
) -> str:
    """Format a result as a Markdown table: estimates with their intervals, and p-values.

    The table does not name the target, which is in the ``attrs`` of the result.

    Parameters
    ----------
    result : Series, DataFrame or Dataset
        The result of a method.
    columns : sequence of str, optional
        The columns of the result to show, in this order. By default the estimate and its limits are
        combined in one column, as in journals, and standard errors and statistics are omitted. The
        p-value corresponds to the interval; if the interval is not simultaneous, the adjusted
        p-value is shown too.
    digits : int, "auto" or None, optional
        Number of decimals. ``"auto"`` shows two digits of the smallest standard error, None full
        precision.

    Returns
    -------
    str
        The table, without a trailing line break.

    Raises
    ------
    LogError
        If the object is not a result, or has no such column.

    Notes
    -----
    Numbers are rounded for display only; results are never rounded. The header names the loss, or
    the score after `cvstats.as_scores`. Pipes and other markup in names are escaped.

    References
    ----------
    GitHub Flavored Markdown, section 4.10, https://github.github.com/gfm/.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.to_markdown(losses.cvci.wald()))
    | model | mean squared error (95% CI) |
    |:--|--:|
    | ridge | 3,006 (2,640 to 3,372) |
    | random_forest | 3,188 (2,807 to 3,569) |
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
    r"""Format a result as a LaTeX table that fits a column of a journal.

    The target of the numbers is in the ``attrs`` of the result; state it in the caption.

    Parameters
    ----------
    result : Series, DataFrame or Dataset
        The result of a method.
    columns : sequence of str, optional
        The columns of the result to show, in this order. By default the estimate and its limits are
        combined in one column, as in journals, standard errors and statistics are omitted, and only
        the adjusted p-value is shown if there are two.
    digits : int, "auto" or None, optional
        Number of decimals. ``"auto"`` shows two digits of the smallest standard error, None full
        precision.
    caption, label : str, optional
        With either, the table is wrapped in a ``table`` environment. The caption is LaTeX and is
        not escaped.

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
    Numbers are rounded for display only; results are never rounded. The header names the loss, or
    the score after `cvstats.as_scores`. Names are escaped, and long names are broken. The models of
    a pair are stacked, and cautions become notes below the table. A table that is too wide for one
    column of a two-column page is set in a smaller font; if it still does not fit, the numbers of
    each row are written below its name.

    References
    ----------
    Fear, Publication quality tables in LaTeX, https://ctan.org/pkg/booktabs.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.to_latex(losses.cvci.wald()))
    \begin{tabular}{@{}lr@{}}
    \toprule
    model & mean squared error (95\% CI) \\
    \midrule
    ridge & 3,006 (2,640 to 3,372) \\
    random\_forest & 3,188 (2,807 to 3,569) \\
    \bottomrule
    \end{tabular}
    """
    table = result_frame(result)
    if columns is None and "p_adjusted" in table:
        table = table.drop(columns="p_value", errors="ignore")
    (heads, *rows), sides = text_table(table, columns, digits)
    marks, raised = [""] * len(rows), {}
    if columns is None and heads[-1] == "caution":
        labels = [row.pop() for row in rows]
        heads, sides = heads[:-1], sides[:-1]
        letters = zip(dict.fromkeys(filter(None, labels)), ascii_lowercase, strict=False)
        raised = {label: rf"\textsuperscript{{{letter}}}" for label, letter in letters}
        marks = [raised.get(label, "") for label in labels]
    paired = heads[:2] == ["model", "other"]
    body, last = [], None
    for row, mark in zip(rows, marks, strict=True):
        if paired and row[0] != last:
            last = row[0]
            body.append([break_latex(last, " $-$"), *[""] * (len(row) - 2)])
        name = rf"\quad {break_latex(row[1])}" if paired else break_latex(row[0])
        body.append([name + mark, *map(write_latex_cell, row[1 + paired :])])
    head = [*(["model $-$ other"] if paired else [escape_latex(heads[0])])]
    further = [HEADS.get(name, escape_latex(name)) for name in heads[1 + paired :]]
    head += [re.sub(r"(?<!\S)-", "$-$", name) for name in further]
    parts = r"^(difference (?:between groups .*?|from .*? )?in) (.*)"
    short = [re.sub(parts, r"\\shortstack[r]{\1\\\\\2}", name) for name in head]
    size, sides = choose_latex_size([short, *body]), sides[paired:]
    if size is None:
        short, *body = stack_columns(head, body)
        size, sides = "", "lr"
    lines = [" & ".join(cells) + r" \\" for cells in (short, *body)]
    lines = [rf"\begin{{tabular}}{{@{{}}{sides}@{{}}}}", r"\toprule", lines[0],
             r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"]  # fmt: skip
    if raised:
        words = "; ".join(mark + escape_latex(label) for label, mark in raised.items())
        lines.append(rf"\par\smallskip{{\footnotesize {words}\par}}")
    if size:
        lines = [f"{{{size}", *lines, "}"]
    if caption is not None or label is not None:
        named = [rf"\caption{{{caption}}}"] if caption is not None else []
        named += [rf"\label{{{label}}}"] if label is not None else []
        lines = [r"\begin{table}", r"\centering", *named, *lines, r"\end{table}"]
    return "\n".join(lines)


HEADS = {"p": "$p$", "adjusted p": r"adj.\ $p$"}
"""Headers of p-value columns in LaTeX."""
NAME = 24
"""Longer names are broken."""
COLUMN, LETTER = 246.0, 5.15
"""The width of a column in a two-column layout, and of a 10 pt character, in pt."""
SIZES = {"": 1.0, r"\small": 0.92, r"\footnotesize": 0.85, r"\scriptsize": 0.8}
"""Relative width of characters, by font size."""


def choose_latex_size(rows: Sequence[Sequence[str]]) -> str | None:
    """Choose the font size in which a table fits a column, by the characters of its widest cells.

    None if it does not fit in any size.
    """
    widths = [max(map(count_latex_letters, column)) for column in zip(*rows, strict=True)]
    gaps = len(widths) - 1
    for size, scale in SIZES.items():
        if sum(widths) * LETTER * scale + 12 * gaps <= COLUMN:
            return size
    if sum(widths) * LETTER * scale + 6 * gaps <= COLUMN:
        return size + r"\setlength{\tabcolsep}{3pt}"
    return None


def stack_columns(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[list[str]]:
    """Write the numbers of each row below its name."""
    rows = [[head[0], ""]]
    for name, *cells in body:
        rows.append([name, ""])
        if any(cells):  # the first model of a pair has no numbers
            rows += [[rf"\qquad {what}", cell] for what, cell in zip(head[1:], cells, strict=True)]
    return rows


def count_latex_letters(text: str) -> int:
    """Count the characters of a cell; broken names have a fixed width."""
    if r"\parbox" in text:
        return NAME + 3
    if r"\shortstack" in text:
        return max(map(count_latex_letters, text.replace(r"\shortstack[r]", "").split(r"\\")))
    text = text.replace(r"\quad", "---").replace(r"\textsuperscript", "")
    return len(re.sub(r"\\[a-z]+|[\\{}$ ]", "", text)) + text.count(" ") * 2 // 3


def break_latex(name: str, end: str = "") -> str:
    """Format a name; long names are broken in a box."""
    text = escape_latex(name)
    if len(name) <= NAME:
        return text + end
    text = re.sub(r"(\\_|[-./ ])", r"\1\\allowbreak{}", text)
    return rf"\parbox[t]{{{NAME / 2:g}em}}{{\raggedright {text}{end}}}"


def write_latex_cell(cell: str) -> str:
    """Format a cell, with minus signs instead of hyphens before numbers."""
    return re.sub(
        r"(?:(?<![\w.])|(?<=\de))[-−](?=[\d∞])", "$-$", escape_latex(cell).replace("$-$", "−")
    )


def to_apa(result: Any) -> str:
    """Format a result as sentences in APA style, one line per model or pair.

    The sentences do not name the target, which is in the ``attrs`` of the result.

    Parameters
    ----------
    result : Series, DataFrame or Dataset
        The result of a method with limits.

    Returns
    -------
    str
        The sentences, with numbers rounded to two digits of the smallest standard error.

    Raises
    ------
    LogError
        If the object is not a result, or has no limits.

    References
    ----------
    American Psychological Association (2020), Publication manual, 7th edition, sections 6.36-6.44,
    doi:10.1037/0000165-000.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.to_apa(losses.cvci.compare()))
    ridge minus random_forest: difference in squared error = −182, 95% CI [−433, 69], p = .16.
    """
    table = result_frame(result)
    first = next((name for name in ("difference", "estimate") if name in table), None)
    if first is None or not {"lower", "upper"} <= set(table):
        raise LogError(
            "the result has no limits, which a sentence needs. Expected the result of a method "
            "such as wald or compare; cvstats.to_markdown formats any result."
        )
    facts, cells, metrics = table.attrs, print_cells(table), list_metrics(table)
    level = f"{write_level(facts)}CI" if "alpha" in facts else "interval"
    names = {"p_value": "p", "p_adjusted": "adjusted p"}
    if facts.get("alternative") == "equivalence":
        names["p_value"] = "equivalence p"
    if has_simultaneous_limits(table):
        del names["p_value"]
    count, groups = facts.get("n_points"), facts.get("n_sources", facts.get("n_clusters"))
    size = f"n = {count:,.0f}" if is_number(count) else ""
    if size and is_number(groups):
        unit = "sources" if facts.get("by", "source") == "source" else "groups"
        size = f"{size} points in {groups:,.0f} {unit}"
    if facts.get("by") == "source, point" and {"n_first", "n_second"} <= set(facts):
        size = f"n = {facts['n_second']:,} points in {facts['n_first']:,} sources"
    lines: list[str] = []
    for row, metric, (_, cell) in zip(name_rows(table), metrics, cells.iterrows(), strict=True):
        what = name_estimate(select_facts(facts, metric), first)
        parts = [f"{what} = {cell[first]}", f"{level} [{cell['lower']}, {cell['upper']}]"]
        for name in filter(table.columns.__contains__, names):
            p = write_p(table[name].iloc[len(lines)]).replace("0.", ".")
            parts.append(f"{names[name]} {p if '<' in p else f'= {p}'}")
        parts += [size] if size and len(parts) < 3 else []
        caution = f" (Caution: {cell['caution']}.)" if cell.get("caution") else ""
        lines.append(
            f"{row.replace(' − ', ' minus ')}: {', '.join(parts)}.{caution}".replace("<.", "< .")
        )
    return "\n".join(lines)


def list_metrics(table: pd.DataFrame) -> list[Any]:
    """List the metric of each row of a result of several metrics; None otherwise."""
    if "metric" in table.index.names and has_several(table.attrs):
        return table.index.get_level_values("metric").tolist()
    return [None] * len(table)


def select_facts(facts: Mapping[Any, Any], metric: Hashable) -> Mapping[Any, Any]:
    """Select the facts of one of several metrics of a result; all of them if it is None."""
    if metric is None:
        return facts
    own, score = select_metric(dict(facts), metric), facts.get("score")
    return {**own, "score": score[metric]} if isinstance(score, Mapping) else own


def name_estimate(facts: Mapping[Any, Any], first: str) -> str:
    """Name what a row estimates: a mean, or a difference of models or groups in it."""
    what, target = name_value(facts, "" if first == "difference" else "mean "), facts.get("target")
    of_models = str(target).startswith("difference of two models")
    own = first == "estimate" or not of_models  # rows are not differences of models of the log
    groups, model = name_subtracted(facts) if own else ("", None)
    if between := "difference between groups" in str(target):
        what = f"difference between groups{groups and f' ({groups})'} in {what}"
    if of_models or (first == "difference" and not between):  # a contrast may be compared to 0
        what = what.replace("difference between", "differences between", 1)
        what = f"difference in {what}" if model is None else f"difference from {model} in {what}"
    return what


def text_table(
    result: Any, columns: Sequence[str] | None, digits: Digits
) -> tuple[list[list[str]], str]:
    """Format a result as text: a header, the rows, and the alignment of each column."""
    number = isinstance(digits, int) and not isinstance(digits, bool) and digits >= 0
    if not (number or digits is None or digits == "auto"):
        raise LogError(f"digits={digits!r} is out of range. Expected 0, 1, 2, …, 'auto' or None.")
    table = result_frame(result)
    words = [name for name, dtype in table.dtypes.items() if dtype.kind not in "fiu"]
    shown = print_cells(table, digits)
    if columns is None:
        shown = join_limits(shown, table)
    shown = select_columns(shown, columns)
    labels = table.index.to_frame() if table.index.names != [None] else table[[]]
    metrics = list_metrics(table)
    if any(metrics):
        labels["metric"] = [
            name_value(select_facts(table.attrs, name), "mean ") for name in metrics
        ]
    if not len(shown.columns):
        raise LogError("the result has no columns. Expected the result of a method such as wald.")
    header = [*(str(name or "") for name in table.index.names[: labels.shape[1]]), *shown.columns]
    rows = np.column_stack([labels.map(join_tuple).map(str), shown]).tolist()
    sides = "".join("l" if name in words else "r" for name in shown.columns)
    return [[str(name) for name in header], *rows], "l" * labels.shape[1] + sides


def write_level(facts: Mapping[Any, Any]) -> str:
    """Write the level of the limits, which is 1 - 2 alpha for tests of equivalence."""
    alpha = facts.get("alpha")
    tests = 2 if facts.get("alternative") == "equivalence" else 1
    return f"{100 * (1 - tests * alpha):.6g}% " if isinstance(alpha, float) else ""


def join_limits(shown: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Combine an estimate and its limits in one column next to its p-values, as in journals.

    The header names the loss: without it, 1 - AUC could be read as an AUC.
    """
    for name in ("p_adjusted", "p_value"):
        if name in table:
            shown[name] = [write_p(p) for p in table[name]]
    if has_simultaneous_limits(table):
        shown = shown.drop(columns="p_value", errors="ignore")
    if {"lower_rank", "upper_rank"} <= set(shown):
        last = shown.pop("upper_rank")
        several = shown["lower_rank"] != last
        shown["lower_rank"] += (" to " + last).where(several, "")
        shown = shown.drop(columns="statistic", errors="ignore")
    shown = shown.rename(columns=lambda name: WORDS.get(name, name.replace("_", " ")))
    first = next((name for name in ("difference", "estimate") if name in shown), None)
    if first is None or not {"lower", "upper"} <= set(shown):
        return shown
    level = write_level(table.attrs)
    named = table.attrs.get("loss", "loss") != "loss" and not any(list_metrics(table))
    named = named or (first == "estimate" and name_subtracted(table.attrs) != ("", None))
    what = name_estimate(table.attrs, first) if named else first
    joined = shown[first] + " (" + shown["lower"] + " to " + shown["upper"] + ")"
    shown.insert(0, f"{what} ({level}CI)", joined)
    return shown.drop(columns=[first, *(name for name in LEFT_OUT if name in shown)])


def has_simultaneous_limits(table: pd.DataFrame) -> bool:
    """Whether the limits correspond to the adjusted p-values, not to those of single pairs."""
    return table.attrs.get("adjust") == "max-t" and "p_adjusted" in table


WORDS = {
    "p_adjusted": "adjusted p",
    "p_value": "p",
    "in_set": "possibly best",
    "lower_rank": "rank",
}
"""Headers of columns that differ from their names."""
LEFT_OUT = ("lower", "upper", "se", "statistic", "df")
"""Columns that are omitted next to an interval and a p-value."""


def write_p(p: float) -> str:
    """Format a p-value as in journals: two digits, or three for small ones."""
    if not np.isfinite(p):
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def select_columns(table: pd.DataFrame, columns: Sequence[str] | None) -> pd.DataFrame:
    """Select some columns; by default all, except cautions if there are none."""
    if columns is None:
        bare = "caution" in table and not table["caution"].astype(bool).any()
        return table.drop(columns="caution") if bare else table
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise LogError(f"columns={columns!r} is not a list. Expected names of columns.")
    unknown = [name for name in columns if name not in table.columns]
    if unknown:
        raise LogError(
            f"the result has no column {unknown[0]!r}. Available columns: "
            f"{', '.join(map(str, table.columns))}."
        )
    return table[list(columns)]


def result_frame(result: Any) -> pd.DataFrame:
    """Convert any result to a frame with a row per model, pair, or cell of further dimensions.

    The cautions of an array, which are flags, become labels.
    """
    if is_log(result):
        raise LogError(
            "this is a loss log, not a result. Pass the result of a method, such as "
            "log.cvci.interval()."
        )
    if isinstance(result, pd.DataFrame):
        return result
    if isinstance(result, pd.Series):
        name = NAMELESS if result.name is None else result.name
        index = pd.Index([name], name="model", tupleize_cols=False)
        if "difference" in result and isinstance(name, tuple) and len(name) == 2:
            index = pd.MultiIndex.from_tuples([name], names=["model", "other"])  # a row of compare
        table = pd.DataFrame({key: [value] for key, value in result.items()}, index=index)
    elif isinstance(result, xr.Dataset):
        table = flatten(result)
    else:
        raise LogError(
            f"{describe_type(result)} is not a result. Expected the result of a function such "
            "as cvstats.wald: a Series, a DataFrame or a Dataset."
        )
    table.attrs = dict(result.attrs)
    for name in ("metrics", "score"):  # of several metrics
        if isinstance(fact := table.attrs.get(name), str) and fact.startswith("{"):
            table.attrs[name] = json.loads(fact)
    if isinstance(result, xr.Dataset) and "caution" in result:
        table.attrs["cautions"] = sentences_in(result)
    return table


def sentences_in(result: Any) -> dict[str, str]:
    """Read the sentences of the cautions of a result."""
    words = result.attrs.get("cautions")
    if isinstance(words, str):  # of an array
        words = json.loads(words)
    elif words is None and isinstance(result, xr.Dataset) and "caution" in result:
        words = sentences_of(list_cautions(result["caution"].values))
    return dict(words or {})


def narrow_cautions(result: Any) -> list[Caution]:
    """List the cautions of a result whose intervals are too narrow for a decision."""
    labels = sentences_in(result)
    return [caution for label, caution in narrow_labels().items() if label in labels]


def has_caution(result: Any, caution: Caution) -> Any:
    """Find the rows of a result with a caution."""
    if isinstance(result, xr.Dataset):
        return (result["caution"] & int(caution)) != 0
    return result["caution"].str.contains(caution.label, regex=False)


MANY_CELLS = 0.1
"""Share of rows with a caution above which it is not by chance, as in 1% of independent series."""


def occurs_in_many(result: Any, caution: Caution) -> bool:
    """Whether so many rows have a caution that it is not by chance; masked cells do not count."""
    numbers = result[next(iter(result))]
    flagged = np.asarray(has_caution(result, caution))[np.asarray(numbers.notnull())]
    return bool(flagged.mean() >= MANY_CELLS)


def is_log(result: Any) -> bool:
    """Whether this is a log: evaluations, without the columns of a result."""
    if isinstance(result, pd.Series):
        return not all(isinstance(label, str) for label in result.index)
    if isinstance(result, xr.DataArray):
        return bool(set(result.dims) & set(LEVELS))
    if not isinstance(result, (pd.DataFrame, xr.Dataset)) or "cvstats_version" in result.attrs:
        return False
    levels = result.index.names if isinstance(result, pd.DataFrame) else result.dims
    return bool(set(levels) & set(LEVELS)) and not {"estimate", "difference", "mean"} & set(result)


def flatten(result: xr.Dataset) -> pd.DataFrame:
    """Make one row per cell of a Dataset, with labels as index."""
    if not result.data_vars or 0 in result.sizes.values():
        raise LogError(
            "the result is empty. Expected the result of a function such as cvstats.wald, with "
            "at least one cell."
        )
    if "caution" in result:
        labels = cautions(result)
        result = result.assign(caution=(labels.dims, labels.values))
    if not result.dims:
        result = result.expand_dims("model" if "model" in result.coords else {"model": [NAMELESS]})
    dims: list[Hashable] = list(result.dims)
    levels: list[Hashable] = []
    for dim in dims:
        index = result.indexes.get(dim)
        if isinstance(index, pd.MultiIndex):  # a stacked dimension has several levels of labels
            levels += index.names
            result = result.reset_index(dim)
        else:
            levels.append(dim)
    table = result.to_dataframe(dim_order=dims).reset_index()
    keys = [name for name in ("model", "other") if name in table.columns]
    keys += [str(name) for name in levels if name not in (*keys, "pair")]
    return table.set_index(keys)[[name for name in result.data_vars if name not in keys]]


def write_labels(index: pd.Index[Any], write: Callable[[Any], str] = str) -> list[list[str]]:
    """Format the labels of each level of an index; both models of a pair together.

    If two labels would look the same, such as the models 1 and "1", all labels of the level are
    formatted as Python literals.
    """
    levels = [index.get_level_values(at).tolist() for at in range(index.nlevels)]
    for at, labels in enumerate(levels):
        if write is str and tuple in map(type, labels):
            levels[at] = [join_tuple(label) for label in labels]
    sides = [at for at, name in enumerate(index.names) if name in ("model", "other")]
    written = []
    for at, labels in enumerate(levels):
        every = [label for side in sides for label in levels[side]] if at in sides else labels
        words, exact = list(map(write, every)), list(map(spelled, every))
        shown = exact if len(set(words)) < len(set(exact)) else words
        start = len(labels) * sides.index(at) if at in sides else 0
        written.append(shown[start : start + len(labels)])
    return written


def name_rows(table: pd.DataFrame) -> list[str]:
    """Name each row: models by name, pairs with a minus sign, other labels with their level."""
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


class SentenceTable(pd.DataFrame, metaclass=AnyFrame):
    """A table of sentences, which are wrapped when printed; selections are plain frames."""

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    @abstractmethod
    def list_sentences(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the sentence of each row."""

    def write(self, width: int) -> str:
        """Format the sentences next to their names, wrapped to a line length."""
        rows = list(self.list_sentences())
        if not rows:
            return "no problems found"
        indent = max((len(name) for name, _ in rows), default=0) + 2
        return "\n".join(
            fill(
                printable(text), max(40, width), initial_indent=name.ljust(indent),
                subsequent_indent=" " * indent, break_on_hyphens=False,
            )
            for name, text in rows
        )  # fmt: skip

    def __repr__(self) -> str:
        """Format the sentences, followed by the columns of the table."""
        columns = ", ".join(map(str, self.columns))
        shape = f"[{len(self):,} rows x {len(self.columns)} columns: {columns}]"
        width = display_width()
        return "\n\n".join(filter(None, [self.write(width), fill(shape, width)]))

    def _repr_html_(self) -> str:
        """Return the table as HTML, with full sentences."""
        with pd.option_context("display.max_colwidth", None):
            return self.to_html()


def printable(text: str, *, lines: bool = False) -> str:
    """Replace characters that cannot be displayed: control characters and lone surrogates.

    Line breaks are kept with ``lines=True``.
    """
    text = re.sub(r"[\t\r\x0b\x0c]" if lines else r"[\t\n\r\x0b\x0c]", " ", text)
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


OPEN_END = re.compile(r"(?<![.?])$")
"""The end of a sentence without a period or question mark."""


def escape_markdown(text: str) -> str:
    """Escape Markdown markup."""
    text = re.sub(r"([\\|`*\[\]])", r"\\\1", " ".join(text.split()))
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)  # a tag starts with one of these


LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "–": "--", "−": "$-$", "∞": r"$\infty$",
})  # fmt: skip


def escape_latex(text: str) -> str:
    """Escape LaTeX special characters."""
    return " ".join(text.split()).translate(LATEX)


# --- cautions as labels ---------------------------------------------------------------------------


def cautions(result: pd.Series | pd.DataFrame | xr.Dataset) -> Any:
    """Return the cautions of each row or cell of a result, as labels.

    Parameters
    ----------
    result : DataFrame, Series or Dataset
        The result of a function such as `wald` or `compare`.

    Returns
    -------
    Series or DataArray
        The labels of each row or cell joined by ``", "``, or an empty string. Lazy for a lazy
        Dataset.

    Raises
    ------
    LogError
        If the result has no ``caution``.

    Notes
    -----
    A frame has the labels in its column ``caution``, and ``attrs["cautions"]`` maps those that
    occur to their explanation and advice. In a Dataset ``caution`` is a CF variable of independent
    flags (attributes ``flag_masks``, ``flag_meanings`` and ``flag_descriptions``), whose bits mean
    the same in every result, and ``attrs["cautions"]`` is the same mapping as JSON, which can be
    written to files. For a lazy Dataset the labels that occur are not known yet: its flags describe
    all labels, and it has no ``attrs["cautions"]``.

    References
    ----------
    CF Conventions, 3.5 Flags, https://cfconventions.org.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> index = pd.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 2), (1, 3)], names=["fold", "point"])
    >>> result = pd.DataFrame({"tree": [1.0, 3, 2, 2]}, index=index).cvci.wald()
    >>> cvstats.cautions(result)
    model
    tree    few points
    Name: caution, dtype: str
    >>> result.attrs["cautions"]["few points"]  # doctest: +ELLIPSIS
    'There are fewer than 30 points, in total or in at least one group, so the normal ...'
    """
    if isinstance(result, pd.Series) and "cautions" in result.attrs:
        name = NAMELESS if result.name is None else result.name
        index = pd.Index([name], name="model", tupleize_cols=False)
        return pd.Series([", ".join(result.attrs["cautions"])], index=index, name="caution")
    if not isinstance(result, (pd.DataFrame, xr.Dataset)) or "caution" not in result:
        raise LogError(
            f"{describe_type(result)} without 'caution' is not a result. Expected the result "
            "of a function such as cvstats.wald."
        )
    if isinstance(result, pd.DataFrame):
        return result["caution"]
    flags = result["caution"]
    labels: xr.DataArray = xr.apply_ufunc(
        label_flags, flags, dask="parallelized", output_dtypes=[object], keep_attrs=False
    )
    return labels.assign_attrs(long_name=flags.attrs.get("long_name", "")).rename("caution")


def label_flags(flags: IntArray) -> NDArray[Any]:
    """Label each entry of an array of flags."""
    different, at = np.unique(np.asarray(flags, dtype=np.int64), return_inverse=True)
    labels = np.array([label_cautions(value) for value in different.tolist()], dtype=object)
    return labels[at.reshape(np.shape(flags))]


# --- scores ---------------------------------------------------------------------------------------


Result = TypeVar("Result", pd.DataFrame, xr.Dataset)

VALUES = ("estimate", "mean", "err_cv", "err_ncv")
"""Columns with values of the loss, or with differences if models are compared."""

SIGNED = ("difference", "statistic", "bias")
"""Columns that change sign with the loss."""

OTHER_SIDE = {"less": "greater", "greater": "less"}


def as_scores(result: Result) -> Result:
    """Convert a result for losses back to the score from which the losses were made.

    Parameters
    ----------
    result : DataFrame or Dataset
        The result of an interval or a comparison for a log that `cvstats.losses` made from a
        score such as accuracy, AUC, F1 or R2.

    Returns
    -------
    DataFrame or Dataset
        The same with ``estimate`` converted to the score, and ``lower`` and ``upper`` exchanged;
        differences change sign: positive is better. Standard errors and p-values are unchanged.
        ``attrs["score"]`` is the name of the score. Errors such as RMSE are unchanged, as are
        metrics with a target value, such as the calibration slope. If the level ``metric``
        contains several metrics, each has its own sign convention, and ``attrs["score"]`` maps
        each to its name (for a Dataset as JSON, which files can store). A result that was already
        converted is returned unchanged.

    Raises
    ------
    LogError
        If the attrs of the result do not name the score its losses were made from.

    Notes
    -----
    The loss is one minus the score if the score is in [0, 1], and minus the score otherwise. The
    converted interval has the same coverage, because it is the same interval on a different scale.

    References
    ----------
    LeDell, Petersen and van der Laan (2015), Electronic Journal of Statistics 9(1), 1583-1607,
    doi:10.1214/15-EJS1035.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights").xs("2013-01", level="source")
    >>> losses = cvstats.losses(log, prediction=["naive_bayes"], loss="auc", folds="pool")
    >>> cvstats.as_scores(losses.cvci.wald())[["estimate", "lower", "upper"]].round(3)
                estimate  lower  upper
    model
    naive_bayes    0.648  0.619  0.676
    """
    facts = getattr(result, "attrs", {})
    is_log = "loss" in facts and "method" not in facts
    if is_log or not isinstance(result, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"{'a log' if is_log else describe_type(result)} is not a result. Expected "
            "the result of an interval or a comparison, as in "
            "cvstats.as_scores(log.cvci.wald())."
        )
    if "score" in facts:
        return result.copy()
    metric, orientation = facts.get("metric"), facts.get("orientation")
    loss = facts.get("loss")
    if metric is None and isinstance(loss, str) and loss in LOSSES:
        return to_score(result, loss, "error", facts)  # as errors among several metrics
    if metric is None:
        raise LogError(
            "the attrs of this result do not name the score from which its losses were made. "
            "Expected a log from cvstats.losses(…, loss='auc') or another score."
        )
    if orientation is None:
        several: Result = convert_each_metric(result, facts)
        return several
    return to_score(result, str(metric), str(orientation), facts)


def convert_each_metric(result: Any, facts: Mapping[Any, Any]) -> Any:
    """Convert the part of each metric with its own sign convention."""
    parts = facts.get("metrics") or {}
    if isinstance(parts, str):  # xarray results can write this to a file
        parts = json.loads(parts)
    of_array = isinstance(result, xr.Dataset)
    names = np.array([])
    if of_array and "metric" in result.coords:
        names = result["metric"].to_numpy().reshape(-1)
    elif not of_array and "metric" in result.index.names:
        names = result.index.get_level_values("metric").to_numpy()
    if not len(names) or not set(names) <= set(parts):
        raise LogError(
            "this result mixes several metrics with different directions. Expected the level "
            "'metric' in the result. Compute each metric: by='metric'; or select one and keep "
            "its name: log.xs('auc', level='metric', drop_level=False)."
        )
    found, order, words = [], [], {}
    for name in dict.fromkeys(names.tolist()):
        own, rows = parts[name], np.flatnonzero(names == name)
        one = result.iloc[rows] if not of_array else result
        if of_array and "metric" in result.dims:
            one = result.isel(metric=rows)
        metric, orientation = str(own.get("metric", name)), str(own.get("orientation", "error"))
        found.append(to_score(one, metric, orientation, facts))
        order.append(rows)
        words[name] = found[-1].attrs["score"]
    back = np.argsort(np.concatenate(order))
    whole = found[0]
    if not of_array:
        whole = pd.concat(found).iloc[back]
    elif len(found) > 1:
        whole = xr.concat(found, "metric", data_vars="minimal").isel(metric=back)
    whole.attrs = {**facts, "score": json.dumps(words) if of_array else words}
    return whole


def rename_loss(target: str, loss: str, words: str) -> str:
    """Name the score instead of the loss in a target."""
    found = target.replace(loss, words) if loss in target else LOSS_WORDS.sub(words, target)
    return found.replace("average average", "average")  # of average precision


def to_score(result: Result, metric: str, orientation: str, facts: Mapping[Any, Any]) -> Result:
    """Convert the numbers of a result, and name the score."""
    found = result.copy()
    words = name_score(metric, facts.get("at"))
    found.attrs = {**facts, "score": words if metric in METRICS else metric}
    if orientation not in TURNED:
        return found
    if "target" in facts:
        target = rename_loss(str(facts["target"]), facts["loss"], words)
        found.attrs["target"] = target.replace("smallest", "largest")
    if isinstance(found, pd.DataFrame) and "model" in found.index.names:
        found = found.rename(index={facts.get("loss"): metric}, level="model")  # of one column
    way = "-score" if "difference" in found else orientation
    # F and chi-squared have no sign.
    of_difference = "difference" in found and found.attrs.get("test") != "f"
    for name in found:
        if name in VALUES:
            found[name] = turn(found[name], way)
        elif name in SIGNED and (name != "statistic" or of_difference):
            found[name] = 0 - found[name]
    if "lower" in found and "upper" in found:
        lower, upper = found["lower"].copy(), found["upper"].copy()
        found["lower"], found["upper"] = turn(upper, way), turn(lower, way)
    if "margin_low" in facts and "margin_high" in facts:
        found.attrs["margin_low"] = 0 - facts["margin_high"]
        found.attrs["margin_high"] = 0 - facts["margin_low"]
    if facts.get("alternative") in OTHER_SIDE:
        found.attrs["alternative"] = OTHER_SIDE[facts["alternative"]]
    return found


def name_score(metric: str, at: Any = None) -> str:
    """Name a metric, which other software may call differently, in words."""
    if metric in METRICS:
        return METRICS[metric].words_at(at)
    known = read_names("score")
    return " or ".join(known.get(name.replace("_", "-"), name) for name in metric.split(" or "))


def name_mean(loss: str, mean: str = "mean ") -> str:
    """Name the mean of a loss; the Brier score and error rates are means already."""
    loss = loss.removeprefix("mean ")
    name = NAMES.get(loss, loss)
    return name if name.endswith((" score", " rate")) else f"{mean}{name}"


def name_value(facts: Mapping[Any, Any], mean: str) -> str:
    """Name what a result estimates, in words: a mean loss, a metric, or a score as a loss."""
    if "score" in facts:
        score = str(facts["score"])
        name = name_score(score).replace("_", " ")
        of_errors = facts.get("orientation", "error") == "error"
        return name_mean(name, mean) if score in LOSSES and of_errors else name
    loss, metric = str(facts.get("loss", "loss")), facts.get("metric")
    if has_several(facts):  # one of them, and no label shows which one
        return f"{mean}loss"
    if metric in METRICS:
        return loss.replace(str(metric), METRICS[metric].words_at(facts.get("at")))
    loss = loss.replace("_", " ")
    return loss if facts.get("orientation") in TURNED else name_mean(loss, mean)


# --- citations ------------------------------------------------------------------------------------


DOI = re.compile(r"^10\.\d+/")
ARXIV = re.compile(r"^\d{4}\.\d{4,5}$")
WIDTH = 13
"""Width to which field names are padded."""


def cite(result: Any) -> str:
    """Return BibTeX entries for the literature behind a result, and for cvstats itself.

    Parameters
    ----------
    result : DataFrame or Dataset
        The result of a method or a comparison.

    Returns
    -------
    str
        An entry for each work in ``result.attrs["reference"]``, and one for this version of the
        package.

    Raises
    ------
    LogError
        If the object has no ``attrs["reference"]``: it is not a result, or an operation dropped
        its attrs.

    References
    ----------
    Those of the result. Entries are kept in ``citations.toml``.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> print(cvstats.cite(losses.cvci.wald()))  # doctest: +ELLIPSIS
    @inproceedings{bayle2020,
      title         = {Cross-validation confidence intervals for test error},
      author        = {Bayle, Pierre and Bayle, Alexandre and Janson, Lucas and Mackey, Lester},
    ...
    """
    reference = getattr(result, "attrs", {}).get("reference")
    if not isinstance(reference, str):
        raise LogError(
            f"this {type(result).__name__} has no attrs['reference']. Expected the result of a "
            "method with its attrs, as in cvstats.cite(losses.cvci.wald())."
        )
    entries = [write_entry(key, facts) for key, facts in find_works(reference).items()]
    own = {**read_works()["cvstats"], "version": version("cvstats")}
    return "\n\n".join([*entries, write_entry("cvstats", own)])


@cache
def read_works() -> dict[str, dict[str, Any]]:
    """Read the entries of all works, by key."""
    return tomllib.loads(files("cvstats").joinpath("citations.toml").read_text(encoding="utf-8"))


def find_works(reference: str) -> dict[str, dict[str, Any]]:
    """Find the works that a reference names, by their key."""
    return {
        key: facts
        for key, facts in read_works().items()
        if "find" in facts and facts["find"] in reference
    }


def locate_work(facts: Mapping[str, Any]) -> str:
    """Return the address of a work; empty if neither its DOI nor its arXiv number is known."""
    found_by = str(facts.get("doi", facts.get("find", "")))
    if DOI.match(found_by):
        return f"https://doi.org/{quote(found_by, safe='/():;')}"
    return f"https://arxiv.org/abs/{found_by}" if ARXIV.match(found_by) else ""


def write_entry(key: str, facts: Mapping[str, Any]) -> str:
    """Write one entry; a DOI or an arXiv number identifies the work."""
    fields = {name: value for name, value in facts.items() if name not in ("find", "type")}
    found_by = str(facts.get("find", ""))
    if DOI.match(found_by):
        fields["doi"] = found_by
    elif ARXIV.match(found_by):
        fields |= {"eprint": found_by, "archiveprefix": "arXiv"}
    kind = facts.get("type", "article" if "journal" in facts else "misc")
    lines = [f"  {name.ljust(WIDTH)} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
