"""The formats by name: a reader for each, what it is known by and which options it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, choice
from cvstats.io import columns
from cvstats.io.asked import Asked
from cvstats.io.tidy import Tidy
from cvstats.io.tools import (
    autogluon,
    caret,
    inspect_ai,
    lm_eval,
    mlr3,
    nixtla,
    openml,
    scikit,
    tidymodels,
)

__all__ = ["CONTAINERS", "FORMATS", "SKLEARN", "named_format", "refuse_unused"]

GENERAL = ("truth", "prediction", "model", "metric")


@dataclass(frozen=True)
class Format:
    """A reader, the options that it looks at, and the columns by which its tables are known."""

    reader: Callable[[Any, Asked], Tidy]
    takes: tuple[str, ...]
    known: tuple[frozenset[str], ...] = ()


def sets(*names: str) -> tuple[frozenset[str], ...]:
    """Split words into sets of column names."""
    return tuple(frozenset(name.split()) for name in names)


FORMATS = {
    "cross_validate": Format(scikit.cross_validate, ("X", "y", "groups")),
    "cross_val_predict": Format(scikit.cross_val_predict, ("X", "y", "groups", "cv")),
    "tidymodels": Format(
        tidymodels.tidymodels, ("truth", "model", "source"), sets(".row .pred", ".row .config")
    ),
    "caret": Format(caret.caret, ("model", "source"), sets("pred obs rowIndex")),
    "mlr3": Format(
        mlr3.mlr3,
        ("model", "metric", "source"),
        sets("row_ids iteration", "row_ids truth response"),
    ),
    "openml": Format(
        openml.openml, ("truth", "model", "source", "y"), sets("repeat fold row_id prediction")
    ),
    "autogluon": Format(autogluon.autogluon, ("truth", "point", "y", "groups")),
    "lm-eval": Format(
        lm_eval.lm_eval, ("filter", "metric", "higher_is_better"), sets("doc_id scores")
    ),
    "inspect": Format(
        inspect_ai.inspect,
        ("model", "metric", "higher_is_better", "source"),
        sets("id epoch eval_id", "id epoch sample_id"),
    ),
    "nixtla": Format(nixtla.nixtla, ("truth", "prediction"), sets("unique_id ds cutoff")),
    "scores": Format(columns.scores, (*GENERAL[2:], "higher_is_better", *LEVELS)),
    "columns": Format(columns.columns, (*GENERAL, "higher_is_better", *LEVELS)),
}
"""The readers by the names of their formats."""

ALIASES = {
    "caret": "caret", "inspect-ai": "inspect", "inspect_ai": "inspect", "lm_eval": "lm-eval",
    "lm-evaluation-harness": "lm-eval", "lm_evaluation_harness": "lm-eval", "mapping": "columns",
    "score": "scores", "statsforecast": "nixtla", "mlforecast": "nixtla",
    "neuralforecast": "nixtla",
}  # fmt: skip
CONTAINERS = ("csv", "tsv", "jsonl", "json", "arff", "parquet", "netcdf", "zarr")
SKLEARN = ("sklearn", "scikit-learn")


def named_format(name: str | None) -> str | None:
    """Look a name up: that of a tool, or of a kind of file."""
    if name is None:
        return None
    plain = ALIASES.get(str(name).lower(), str(name).lower())
    if plain not in FORMATS and plain not in (*CONTAINERS, *SKLEARN):
        raise choice("format", name, [*FORMATS, *CONTAINERS])
    return plain


def refuse_unused(who: str, asked: Asked, takes: tuple[str, ...]) -> None:
    """Refuse an option that would change nothing."""
    unused = [name for name in asked.given() if name not in takes]
    if unused:
        can = ", ".join(f"{name}=" for name in takes) or "none"
        raise LogError(f"{who} does not use {unused[0]}=. Expected only {can}. Leave it out.")
