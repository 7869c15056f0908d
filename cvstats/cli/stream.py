"""Large files of losses or predictions, read a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import plainly
from cvstats.io.arrow import SUFFIXES, list_files
from cvstats.io.paths import import_extra
from cvstats.io.scan import BATCH, open_file, scan_csv, scan_moments, scan_tables
from cvstats.io.table import LOSS, TRUTH
from cvstats.io.text import MARK, TextOptions, csv_options
from cvstats.io.tools import recognize
from cvstats.io.tools.columns import FACTS, USUAL
from cvstats.large.moments import Moments, SharedAttrs
from cvstats.log.tables import find_columns
from cvstats.loss_functions.losses import find_loss
from cvstats.loss_functions.pointwise import LOSSES

ROWS, BYTES = 4_000_000, 200_000_000
"""Number of rows of Parquet files, and size of CSV files, above which they are streamed."""
TEXT = ("decimal", "thousands", "encoding", "na_values")
STREAMED = {"read_as", "loss", "truth", "prediction", "model", "metric", *LEVELS, *TEXT} - {"count"}
"""The reading options supported by streaming."""


def scan_large(
    source: Any, given: Mapping[str, Any], missing: Any, *, by: str | None, pairs: bool
) -> Moments | None:
    """Compute the moments of a large file or folder, or of one with groups in additional columns.

    None if it is small, or is not a table of losses or predictions of points.
    """
    kind = Path(source).suffix.lower() if isinstance(source, str) else ""
    folder = isinstance(source, str) and Path(source).is_dir()
    parquet = folder or kind in SUFFIXES
    other_format = given.get("read_as", "columns") not in ("columns", "parquet", "csv")
    if not (parquet or kind in (".csv", ".tsv")) or other_format or set(given) - STREAMED:
        return None
    further = by is not None and by not in LEVELS
    found = schema_of_parquet(source, further) if parquet else schema_of_csv(source, given, further)
    if found is None or (further and by not in found):
        return None
    names = list(found)
    named = {level: given.get(level) for level in LEVELS if level != "count"}
    asked = values_of(found, named, given, by)
    if asked is None or recognize(pd.DataFrame(columns=names), None) != "columns":
        return None
    loss, truth, prediction = asked
    values = [loss] if isinstance(loss, str) and truth is None else list(prediction or loss)
    columns = find_columns(names, values, named, given.get("model"), single=len(values) == 1)
    if columns.model is not None and (pairs or missing == "drop"):
        return None
    pairs = pairs and len(values) > 1
    predicted = prediction and values[0] if len(values) == 1 else prediction
    cells = [level for level in columns.levels if level != "point"]
    groups = None if by is None or not further else [by, *cells]
    scan: Any = partial(scan_tables, source, batch_size=BATCH, progress=None)
    if not parquet:
        scan = partial(scan_csv, Path(source), text=text_of(given))
    moments = scan_moments(
        scan, named, loss, truth, predicted, given.get("model"), groups, pairs, missing
    )
    read_from = SharedAttrs({**moments.notes.shared, "read_from": Path(source).name})
    return replace(moments, notes=read_from)


def schema_of_parquet(source: str, further: bool) -> dict[str, bool] | None:
    """List the columns, and whether each holds numbers; None of a small or a saved log."""
    types = import_extra("pyarrow", "Parquet").types
    files = list_files(source)
    if not all(file.path.suffix.lower() in SUFFIXES for file in files):
        return None
    rows = 0
    for file in files:
        with open_file(file.path) as opened:
            rows += opened.metadata.num_rows
            schema = opened.schema_arrow
        if rows >= ROWS or further:
            break
    if (rows < ROWS and not further) or b"cvstats" in (schema.metadata or {}):
        return None
    numbers = {
        field.name: types.is_floating(field.type) or types.is_integer(field.type)
        for field in schema
    }
    return numbers | dict.fromkeys(files[0].keys, False)


def text_of(given: Mapping[str, Any]) -> TextOptions:
    """Choose the options of text."""
    return TextOptions(**{name: given[name] for name in TEXT if name in given})


def schema_of_csv(source: str, given: Mapping[str, Any], further: bool) -> dict[str, bool] | None:
    """List the columns, and whether the first rows of each are numbers."""
    path = Path(source)
    if not path.is_file() or (path.stat().st_size < BYTES and not further):
        return None
    with path.open("rb") as file:
        if file.readline().startswith(MARK.encode()):
            return None
    text = text_of(given)
    options, names = csv_options(path, text, "\t" if path.suffix == ".tsv" else ",")
    first = pd.read_csv(
        path, nrows=1000, names=names, header=0, decimal=text.marks(None)[0], **options
    )
    return {name: pd.api.types.is_numeric_dtype(first[name]) for name in names}


def values_of(
    found: Mapping[str, bool], named: Mapping[str, str | None], given: Mapping[str, Any],
    by: str | None,
) -> tuple[Any, str | None, list[str] | None] | None:  # fmt: skip
    """Find the columns of losses, or the loss with the columns of truth and predictions."""
    loss = given.get("loss")
    column = next((name for name in (given.get("metric"), loss, LOSS) if name in found), None)
    truth = given.get("truth") or next((name for name in (TRUTH, "truth") if name in found), None)
    if column is not None and (truth is None or loss in (None, column)):
        return column, None, None
    if truth is not None:
        function, implied = find_loss(loss)
        usual = [name for name in USUAL if name in found]
        prediction = given.get("prediction") or usual
        prediction = [prediction] if isinstance(prediction, str) else list(prediction)
        if function not in LOSSES or implied or not prediction or (usual and len(usual) > 1):
            return None
        return function, truth, prediction
    if loss is not None:
        return None
    taken = find_columns(list(found), [], named, given.get("model"), single=False)
    used = {by, taken.model, *taken.levels.values()}
    others = [name for name in found if name not in used and not FACTS.fullmatch(plainly(name))]
    return (others, None, None) if others and all(found[name] for name in others) else None
