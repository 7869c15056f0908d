"""Logs that do not fit into memory, read in batches of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError
from cvstats.io.arrow import ParquetFile, find_attrs, find_header, list_files
from cvstats.io.paths import import_extra
from cvstats.io.text import TextOptions, csv_options
from cvstats.large import frames
from cvstats.large.moments import Moments
from cvstats.log.tables import TableColumns
from cvstats.loss_functions.label_counts import (
    LabelCounts,
    count_batch,
    count_columns,
    encode_batch,
)
from cvstats.loss_functions.losses import find_loss, losses, refuse_labels
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS
from cvstats.options import Missing

Scanned = tuple[dict[str, Any], TableColumns, Mapping[Hashable, Any]]
"""The columns of a batch of rows, what they are, and the attrs of a saved log."""

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

BATCH = 1 << 20
"""Number of rows per batch."""

PLAIN = {"float", "double", *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64))}
"""Arrow's names of types that numpy also has."""


def scan_parquet(
    path: Paths,
    *,
    loss: str | Sequence[str] | Callable[[Any, Any], Any] = "loss",
    truth: str | None = None,
    prediction: str | Sequence[str] | None = None,
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    by: str | Sequence[str] | None = None,
    pairs: bool = False,
    missing: Missing = "raise",
    batch_size: int = BATCH,
    progress: Callable[[int], object] | None = None,
) -> Moments:
    """Compute the moments of a Parquet log of any length, in batches of rows.

    Parameters
    ----------
    path : str, path, or several of them
        A Parquet file with one row per evaluation, a folder of them, a list of these, or a pattern
        such as ``"logs/2024-*.parquet"`` (``**`` matches any folders).
    loss : str, sequence of str or callable, optional
        The column of losses; a list if each model has its own column. By default the models of a
        file that `save_log` wrote, and in other files the column ``loss``. With ``truth`` and
        ``prediction``, the pointwise loss to compute, such as ``squared_error``, or a function of
        two arrays, as in `cvstats.losses`.
    truth, prediction : str or sequence of str, optional
        The columns of the truth and of the predictions; a list for several models.
    model : str, optional
        The column that names the model, if models are stacked in rows; by default ``model``, if it
        exists. Points of different models are then compared by sums of hashes, and ``pairs`` is not
        available.
    sample, outer, repetition, fold, source, point : str, optional
        The column of each level; by default the column with the level's name.
    by, pairs, missing : optional
        As in `Moments.of_log`; ``by`` may name any column.
    batch_size : int, optional
        Number of rows per batch. Memory use depends on it and on the row groups of the file, but
        not on the length of the log.
    progress : callable, optional
        Called with the number of rows of each batch, for example ``tqdm(total=rows).update``.

    Returns
    -------
    Moments
        Moments from which intervals can be computed, which can be added to others, or saved.

    Raises
    ------
    LogError
        If a column is missing, a batch is not a loss log, or the loss is not a pointwise one.
    ImportError
        If pyarrow is not installed (extra ``io``).

    Notes
    -----
    Each batch is checked separately; see `Moments` for what is checked across them. The ``attrs``
    of a file that `save_log` or pandas wrote, such as the metric of its losses, are used.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats, pathlib, tempfile
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "log.parquet")
    ...     losses.rename("loss").reset_index().to_parquet(file)
    ...     moments = cvstats.scan_parquet(file, batch_size=1000)
    >>> float(moments.wald().loc["loss", "estimate"].round())
    3006.0
    """
    asked = {name: value for name, value in locals().items() if name in LEVELS}
    if truth is None and prediction is None:
        models, groups = find_saved(path)
        loss = models if loss == "loss" and models else loss
        by = groups if by is None else by
    return scan_moments(
        partial(scan_tables, path, batch_size=batch_size, progress=progress),
        asked, loss, truth, prediction, model, by, pairs, missing,
    )  # fmt: skip


def scan_moments(
    scan: Callable[[Callable[[list[str]], TableColumns]], Iterator[Scanned]],
    asked: Mapping[str, str | None],
    loss: Any,
    truth: str | None,
    prediction: str | Sequence[str] | None,
    model: str | None,
    by: str | Sequence[str] | None,
    pairs: bool,
    missing: Missing,
) -> Moments:
    """Add up the moments of the batches that ``scan`` reads."""
    predicted = truth is not None or prediction is not None
    if predicted:
        if truth is None or prediction is None:
            raise LogError(
                "losses are computed from truth and predictions, but only one of them was passed. "
                "Pass both truth= and prediction=, or neither if the file contains losses."
            )
        known_loss = find_loss(loss)[0]
        if not callable(known_loss) and known_loss not in LOSSES:
            of_labels = known_loss in METRICS
            way = " For metrics of labels use cvstats.scan_predictions." if of_labels else ""
            raise LogError(
                f"loss={known_loss!r} cannot be computed from a batch of predictions. Expected a "
                f"function, or one of {', '.join(map(repr, LOSSES))}.{way}"
            )

    def find(known: list[str]) -> TableColumns:
        values: Any = loss if prediction is None else prediction
        columns = frames.columns_of(known, values, asked, by, model, truth)
        frames.check_stacked(columns, pairs, missing)
        return columns

    total: frames.Parts = {}
    for batch, columns, attrs in scan(find):
        if predicted:
            models = columns.values[1:]
            frame = pd.DataFrame({name: batch[name] for name in columns.values}, copy=False)
            refuse_labels(frame, truth, {name: name for name in models}, known_loss, {})
            computed: Any = losses(frame, truth, list(models), loss)
            batch |= dict(computed.items())
            columns, attrs = replace(columns, values=models), computed.attrs
        part = frames.part_of(batch, columns, by, pairs, missing, attrs)
        total = frames.sum_parts([total, part])
    return frames.whole_of(total)


def scan_predictions(
    path: Paths,
    *,
    truth: str = "y_true",
    prediction: str | Sequence[str] | Mapping[str, str] = "y_pred",
    labels: Sequence[Hashable] = (0, 1),
    threshold: float | None = None,
    positive: Hashable = None,
    weight: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    by: str | Sequence[str] | None = None,
    pairs: bool = False,
    missing: Missing = "raise",
    batch_size: int = BATCH,
    progress: Callable[[int], object] | None = None,
) -> LabelCounts:
    """Count the labels in Parquet files of any length, in batches of rows.

    Parameters
    ----------
    path : str, path, or several of them
        Files with one row per evaluation, as in `cvstats.scan_parquet`.
    truth, prediction, labels, threshold, positive, weight : optional
        As in `LabelCounts.of_predictions`.
    sample, outer, repetition, fold, source, point : str, optional
        The column of each level; by default the column with the level's name.
    by, pairs, missing : optional
        As in `LabelCounts.of_predictions`.
    batch_size, progress : optional
        As in `cvstats.scan_parquet`.

    Returns
    -------
    LabelCounts
        Counts from which the moments of any metric of labels can be computed.

    Raises
    ------
    LogError
        If a column is missing, or a batch is not a log.
    ImportError
        If pyarrow is not installed (extra ``io``).

    Notes
    -----
    A CSV file of any length is counted in the same way:
    ``sum(LabelCounts.of_predictions(part) for part in pandas.read_csv(path, chunksize=10**6))``.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats, pathlib, tempfile
    >>> log = cvstats.datasets.load("flights").reset_index()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "predictions.parquet")
    ...     log.to_parquet(file)
    ...     counts = cvstats.scan_predictions(file, prediction="naive_bayes", threshold=0.5)
    >>> cvstats.as_scores(counts.moments("matthews").clustered())[["estimate", "se"]].round(3)
                estimate     se
    model
    naive_bayes    0.100  0.013
    """
    asked = {name: value for name, value in locals().items() if name in LEVELS}
    counted = count_columns(
        truth, prediction, labels=labels, threshold=threshold, positive=positive, weight=weight,
        pairs=pairs,
    )  # fmt: skip

    def find(known: list[str]) -> TableColumns:
        return frames.columns_of(known, [str(name) for name in counted.columns], asked, by)

    total: LabelCounts | None = None
    for table, columns, _ in scan_tables(path, find, batch_size, progress):
        if len(table[columns.names[0]]):
            levels, codes = frames.levels_of(table, columns), encode_batch(table, counted)
            batch = frames.Batch(levels, codes, single=False)
            found = LabelCounts(count_batch(batch, counted, by, missing), counted)
            total = found if total is None else total + found
    if total is None:
        raise LogError("the files have no rows. Expected at least one evaluation.")
    return total


def scan_dask(
    frame: Any,
    *,
    loss: str | Sequence[str] = "loss",
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    by: str | Sequence[str] | None = None,
    pairs: bool = False,
    missing: Missing = "raise",
) -> Any:
    """Compute the moments of a dask DataFrame lazily.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        One row per evaluation, as from ``dask.dataframe.read_parquet``. Folds and points may be in
        any partition, and labels need not be known.
    loss, model, sample, outer, repetition, fold, source, point, by, pairs, missing : optional
        As in `scan_parquet` for a file of losses.

    Returns
    -------
    dask.delayed.Delayed
        Delayed `Moments`: ``scan_dask(frame).compute()`` computes them, and methods can be called
        before, as in ``scan_dask(frame).wald().compute()``. Methods of one object that are computed
        together read the frame once.

    Raises
    ------
    LogError
        If a column is missing; on computation, if a partition is not a loss log.
    ImportError
        If dask is not installed (extra ``dask``).

    Notes
    -----
    Each partition is checked separately; see `Moments` for what is checked across them.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge").rename("loss").reset_index()
    >>> import dask.dataframe  # doctest: +SKIP
    >>> frame = dask.dataframe.from_pandas(losses, npartitions=4)  # doctest: +SKIP
    >>> cvstats.scan_dask(frame).wald().compute()["estimate"].round()  # doctest: +SKIP
    3006.0
    """
    asked = {name: value for name, value in locals().items() if name in LEVELS}
    return frames.scan_dask(frame, loss, asked, model=model, by=by, pairs=pairs, missing=missing)


# --- reading --------------------------------------------------------------------------------------


def scan_tables(
    path: Paths,
    find: Callable[[list[str]], TableColumns],
    batch_size: int,
    progress: Callable[[int], object] | None,
) -> Iterator[Scanned]:
    """Read some columns of files in batches of rows; ``find`` selects the columns."""
    files = list_files(path)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise LogError(f"batch_size={batch_size!r} is out of range. Expected 1 or more rows.")
    with open_file(files[0].path) as first:
        known = [*first.schema_arrow.names, *files[0].keys]
    columns = find(list(dict.fromkeys(known)))
    parts = batches_of(files, columns, batch_size)
    with ThreadPoolExecutor(max_workers=1) as pool:  # which reads the next batch meanwhile
        waiting = pool.submit(next, parts, None)
        while (batch := waiting.result()) is not None:
            waiting = pool.submit(next, parts, None)
            rows, attrs = batch
            yield rows, columns, attrs
            if progress is not None:
                progress(len(rows[columns.names[0]]))


def scan_csv(
    path: Path, find: Callable[[list[str]], TableColumns], text: TextOptions
) -> Iterator[Scanned]:
    """Read some columns of a CSV file in batches of rows; labels are text."""
    options, known = csv_options(path, text)
    columns = find(known)
    labels = {*columns.levels.values(), columns.model} - {None}
    decimal, thousands = text.marks(None)
    with pd.read_csv(
        path, usecols=columns.names, dtype=dict.fromkeys(labels, str), chunksize=BATCH,
        decimal=decimal, thousands=thousands, names=known, header=0, **options,
    ) as batches:  # fmt: skip
        for batch in batches:
            for name in columns.values:
                if not pd.api.types.is_numeric_dtype(batch[name]):
                    raise LogError(
                        f"the column {name!r} of {path.name} contains non-numeric values. "
                        "Expected numbers. Pass markers of missing values as na_values=."
                    )
            yield {str(name): column for name, column in batch.items()}, columns, {}


def find_saved(path: Paths) -> tuple[list[str], str | None]:
    """Find the columns of the models and the groups of a contrast that `save_log` wrote.

    They are those of the first file; no models if it is not a saved frame.
    """
    file = list_files(path)[0].path
    with open_file(file) as first:
        header, attrs = find_header(first.metadata, file), find_attrs(first.metadata, file)
    groups = attrs.get("by") if attrs.get("kind") == "contrasts" else None
    if header is None or header["object"] != "DataFrame":
        return [], groups
    return [column["field"] for column in header["columns"]], groups


def open_file(path: Path) -> Any:
    """Open a Parquet file."""
    arrow = import_extra("pyarrow.lib", "Parquet")
    parquet = import_extra("pyarrow.parquet", "Parquet")
    try:
        return parquet.ParquetFile(path, pre_buffer=False)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise unreadable(path) from error


def batches_of(
    files: Sequence[ParquetFile], columns: TableColumns, batch_size: int
) -> Iterator[tuple[dict[str, Any], Mapping[Hashable, Any]]]:
    """Read the files one by one in batches: Arrow's scan of all would read far ahead."""
    arrow = import_extra("pyarrow.lib", "Parquet")
    kinds: dict[str, str] = {}
    for file in files:
        with open_file(file.path) as table:
            stored = [name for name in columns.names if name in table.schema_arrow.names]
            lost = [name for name in columns.names if name not in (*stored, *file.keys)]
            if lost:
                raise LogError(
                    f"{os.fspath(file.path)!r} has no column {lost[0]!r}, but "
                    f"{files[0].path.name!r} has one. Expected the same columns in each file."
                )
            for name in {*columns.levels.values()} & {*stored}:
                kind = "text" if "string" in str(table.schema_arrow.field(name).type) else "other"
                if kinds.setdefault(name, kind) != kind:
                    raise LogError(
                        f"{name!r} is text in some files and not in others, such as "
                        f"{file.path.name!r}. Expected the same type in each file."
                    )
            attrs = find_attrs(table.metadata, file.path)
            others = [name for name in columns.names if name not in stored]
            keys = {name: pd.Categorical([file.keys[name]]) for name in others}
            try:
                for batch in table.iter_batches(batch_size=batch_size, columns=stored):
                    rows = {name: column_of(batch.column(name)) for name in stored}
                    constant = {name: label.repeat(len(batch)) for name, label in keys.items()}
                    yield {**rows, **constant}, attrs
            except (arrow.ArrowException, OSError) as error:
                raise unreadable(file.path) from error


def unreadable(file: Path) -> LogError:
    """Make the error for a file that is not a Parquet file, or is truncated."""
    size = file.stat().st_size if file.exists() else 0
    found = "it is empty" if size == 0 else f"it is of another type, or truncated ({size:,} bytes)"
    return LogError(
        f"{os.fspath(file)!r} cannot be read as a Parquet file: {found}. Expected a complete "
        "Parquet file; cvstats.read_log reads other files."
    )


def column_of(column: Any) -> Any:
    """View plain numbers without a copy; convert any other column to pandas."""
    if column.null_count == 0 and str(column.type) in PLAIN:
        return column.to_numpy()
    return column.to_pandas()
