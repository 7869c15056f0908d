"""Readers of the results of other tools, and how the tool that wrote an object is recognized."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, choice, plainly, read_names
from cvstats.io.table import ReadOptions
from cvstats.log.tables import TIMES

SCORE = re.compile(r"split(\d+)_test_(.+)")
"""The columns of scores in ``cv_results_``."""


def is_result(found: Any) -> bool:
    """Whether this is what cross_validate returned, as a dict or a table."""
    if isinstance(found, pd.DataFrame):
        return TIMES.issubset(found)
    return isinstance(found, Mapping) and ("fit_time" in found or "estimator" in found)


def is_search(found: Any) -> bool:
    """Whether this is a search, or its ``cv_results_`` as a dict or a table."""
    if isinstance(found, (Mapping, pd.DataFrame)):
        return "params" in found and any(SCORE.fullmatch(str(name)) for name in found)
    searches = hasattr(found, "cv_results_") or hasattr(found, "refit")
    return searches and not isinstance(found, type)


def is_skore(found: Any) -> bool:
    """Whether this is a report of skore on one estimator."""
    return hasattr(found, "estimator_name_") and (
        hasattr(found, "split_indices") or hasattr(found, "X_test")
    )


def is_inspect_log(found: Any) -> bool:
    """Whether a JSON document is a log of inspect."""
    return isinstance(found, Mapping) and {"eval", "samples"} <= set(found)


def is_lm_eval_sample(record: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a sample of lm-evaluation-harness."""
    return "doc_id" in record and bool({"doc_hash", "filtered_resps", "filter"} & set(record))


def has_columns(*tables: str) -> Callable[[Any], bool]:
    """Make a test of whether a table has all columns that a tool writes, in one of some forms."""

    def recognize_columns(found: Any) -> bool:
        names = set(found) if isinstance(found, Mapping) else set()
        if isinstance(found, (pd.Series, pd.DataFrame)):
            columns = [found.name] if isinstance(found, pd.Series) else found.columns
            names = {str(name) for name in (*columns, *found.index.names)}
        return any(set(columns.split()) <= names for columns in tables)

    return recognize_columns


def is_inspect(found: Any) -> bool:
    """Whether this is a log of inspect, or the table of its samples."""
    return is_inspect_log(found) or has_columns("id epoch eval_id", "id epoch sample_id")(found)


@dataclass(frozen=True)
class Format:
    """How the objects of a tool are recognized, their reader and the options that it uses.

    Parameters
    ----------
    is_format : callable, optional
        Whether an object is of this format; None if such objects look like those of others.
    reader : str
        The function that makes a `PredictionTable`, as ``file:function`` of ``cvstats.io.tools``.
        It is imported when needed, so that a broken file only affects its tools.
    takes : tuple of str
        The options that the reader uses.
    of_table : bool
        Whether the reader accepts a table, not the original object.
    """

    is_format: Callable[[Any], bool] | None
    reader: str
    takes: tuple[str, ...]
    of_table: bool = True


SPLITTING = ("X", "y", "groups", "cv")
SCORING = ("metric", "higher_is_better")
FORMATS = {
    "cross_validate": Format(is_result, "sklearn:cross_validate", (*SPLITTING, *SCORING), False),
    "cross_val_predict": Format(
        lambda found: isinstance(found, np.ndarray), "sklearn:cross_val_predict",
        (*SPLITTING, *SCORING), False,
    ),
    "search": Format(is_search, "sklearn:search", (*SPLITTING, *SCORING), False),
    "skore": Format(is_skore, "sklearn:skore", ("groups",), False),
    "tidymodels": Format(
        has_columns(".row .pred", ".row .config"), "tables:tidymodels", ("truth", "model", "source")
    ),
    "caret": Format(has_columns("pred obs rowIndex"), "tables:caret", ("model", "source")),
    "mlr3": Format(
        has_columns("row_ids iteration", "row_ids truth response"), "tables:mlr3",
        ("model", "metric", "source"),
    ),
    "openml": Format(
        has_columns("repeat fold row_id prediction"), "tables:openml",
        ("truth", "model", "source", "y"),
    ),
    "autogluon": Format(None, "tables:autogluon", ("truth", "point", "y", "groups")),
    "lm-eval": Format(has_columns("doc_id scores"), "llm:lm_eval", ("filter", *SCORING)),
    "inspect": Format(is_inspect, "llm:inspect", ("model", *SCORING, "source")),
    "nixtla": Format(
        has_columns("unique_id ds cutoff"), "tables:nixtla", ("truth", "prediction")
    ),
    "scores": Format(None, "tables:scores", ("model", *SCORING, *LEVELS)),
    "columns": Format(
        None, "columns:columns", ("truth", "prediction", "model", *SCORING, *LEVELS, "by")
    ),
}  # fmt: skip
"""All formats; the first that recognizes an object reads it, ``columns`` any other table."""
CONTAINERS = ("csv", "tsv", "jsonl", "json", "arff", "parquet", "netcdf", "zarr")
SKLEARN = ("sklearn", "scikit-learn")


def parse_format(format: str | None) -> dict[str, str | None]:
    """Read ``format=``: the tool, or the type of a file, as options of a reader."""
    name = None if format is None else str(format).lower()
    name = read_names("format").get(plainly(format), name)
    if name is not None and name not in (*FORMATS, *CONTAINERS, *SKLEARN):
        raise choice("format", format, [*FORMATS, *CONTAINERS])
    of_file = name in CONTAINERS
    return {"tool": None if of_file else name, "container": name if of_file else None}


def recognize(found: Any, tool: str | None) -> str:
    """Choose the format, by name or by the object."""
    if tool in SKLEARN:
        return "cross_validate" if is_result(found) else "cross_val_predict"
    if tool is not None:
        return tool
    known = ((name, form.is_format) for name, form in FORMATS.items())
    return next((name for name, is_it in known if is_it is not None and is_it(found)), "columns")


def refuse_unused(who: str, options: ReadOptions, takes: tuple[str, ...]) -> None:
    """Refuse an option that has no effect."""
    unused = [name for name in options.given() if name not in takes]
    if unused:
        can = ", ".join(f"{name}=" for name in takes) or "none"
        raise LogError(f"{who} does not use {unused[0]}=. It uses only {can}. Omit it.")
