"""The commands that read a log from a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypeAlias

from cvstats import reporting
from cvstats.api import choosing, comparing, diagnosing
from cvstats.api.files import read_log, save_log
from cvstats.api.running import Compared
from cvstats.cli.printing import Format, printed
from cvstats.errors import LogError

__all__ = ["Reading", "Shell", "compare", "convert", "diagnose", "interval", "methods", "report"]

Shell: TypeAlias = Literal["bash", "zsh", "fish"]
LONG = 32 << 20
"""Bytes from which on a file takes so long that one wants to know what is going on."""
WIDTH = 96


@dataclass(frozen=True)
class Reading:
    """How to read the file.

    Attributes
    ----------
    read_as
        Which tool wrote it (caret, inspect, lm-eval, mlr3, nixtla, openml, tidymodels, …), or
        its kind (csv, parquet, …); most are recognised.
    loss
        For a file of predictions: squared_error, absolute_error, zero_one, log_loss, brier, …
    truth
        The column of the truth.
    prediction
        The column of the predictions; once for each model.
    model
        The column that names the model.
    repetition
        The column of the level repetition.
    fold
        The column of the level fold.
    source
        The column of the level source.
    point
        The column of the level point.
    filter
        For lm-evaluation-harness and inspect: which filter.
    metric
        Which score or column of losses.
    """

    read_as: str | None = None
    loss: str | None = None
    truth: str | None = None
    prediction: list[str] | None = None
    model: str | None = None
    repetition: str | None = None
    fold: str | None = None
    source: str | None = None
    point: str | None = None
    filter: str | None = None
    metric: str | None = None


def log_in(file: str, reading: Reading | None) -> Any:
    """Read the log that a file holds."""
    asked = {} if reading is None else {f.name: getattr(reading, f.name) for f in fields(reading)}
    given = {name: value for name, value in asked.items() if value is not None}
    models = given.pop("prediction", None)
    if models is not None:
        given["prediction"] = models[0] if len(models) == 1 else models
    if not Path(file).exists():
        raise LogError(f"there is no file {file!r}. Expected a log, such as losses.parquet.")
    size = Path(file).stat().st_size
    if size >= LONG:
        said(f"reading {file} ({size / 2**20:,.0f} MiB) …")
    log = read_log(file, format=given.pop("read_as", None), **given)
    if size >= LONG:
        said("computing …")
    return log


def said(words: str) -> None:
    """Tell what is going on, to whoever watches; files and pipes get results only."""
    if sys.stderr.isatty():
        print(words, file=sys.stderr, flush=True)


def interval(
    file: str,
    /,
    *,
    method: str | None = None,
    alpha: float = 0.05,
    missing: Literal["raise", "drop"] = "raise",
    format: Format = "table",
    reading: Reading | None = None,
) -> None:
    """Print the interval that the log calls for.

    Example: cvstats interval losses.parquet --format json

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    method
        The name of a method; see cvstats methods FILE.
    alpha
        One minus the level.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    format
        How to print.
    reading
        How to read the file.
    """
    result = choosing.interval(log_in(file, reading), method=method, alpha=alpha, missing=missing)
    print(printed(result, format, ["reason", "target", "guarantee", "reference"]))


def compare(
    file: str,
    /,
    *,
    reference: str | None = None,
    method: Compared | None = None,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    adjust: Literal["holm", "bh", "max-t", "none"] = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    missing: Literal["raise", "drop"] = "raise",
    format: Format = "table",
    reading: Reading | None = None,
) -> None:
    """Print paired differences between models and their tests.

    Example: cvstats compare predictions.csv --loss squared_error --reference ridge

    Parameters
    ----------
    file
        A log of several models, or predictions with --loss.
    reference
        The model to compare the others to; all pairs otherwise.
    method
        The interval that gives the standard error.
    alternative
        less: the first model has the smaller error.
    adjust
        How p-values allow for several comparisons.
    alpha
        One minus the level.
    seed
        The seed of the draws of max-t.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    format
        How to print.
    reading
        How to read the file.
    """
    result = comparing.compare(
        log_in(file, reading), reference=reference, method=method, alternative=alternative,
        adjust=None if adjust == "none" else adjust, alpha=alpha, rng=seed, missing=missing,
    )  # fmt: skip
    print(printed(result, format, ["target", "guarantee", "reference"]))


def report(
    file: str,
    /,
    *,
    output: str = "report.html",
    title: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    missing: Literal["raise", "drop"] = "raise",
    reading: Reading | None = None,
) -> None:
    """Write one page about the log: intervals, comparisons, plots, and what to doubt.

    Example: cvstats report losses.parquet -o report.html

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    output
        The page to write.
    title
        Its heading.
    alpha
        One minus the level of all intervals.
    seed
        The seed of everything that is drawn.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    reading
        How to read the file.
    """
    log = log_in(file, reading)
    if title is None and "title" not in log.attrs:
        title = f"Cross-validated error in {Path(file).name}"
    written = reporting.report(log, output, title=title, alpha=alpha, seed=seed, missing=missing)
    print(f"wrote {written}")


def methods(file: str, /, *, format: Format = "table", reading: Reading | None = None) -> None:
    """Print every method: whether the log allows it, and if not, what is missing.

    Example: cvstats methods losses.csv

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    format
        How to print.
    reading
        How to read the file.
    """
    table = choosing.methods(log_in(file, reading))
    if format != "table":
        print(printed(table, format, []))
        return
    width = max(map(len, table.index)) + 2
    for name, row in table.iterrows():
        words = f"yes: {row['target']}" if row["applies"] else f"no: {row['why_not']}"
        print(hanging(str(name), words, width))
    print()
    print(fill(str(table.attrs["suggestion"]), WIDTH))


def diagnose(file: str, /, *, format: Format = "table", reading: Reading | None = None) -> None:
    """Print what is to be doubted about the log, by code, and what to do about it.

    Example: cvstats diagnose losses.csv --format markdown

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    format
        How to print.
    reading
        How to read the file.
    """
    table = diagnosing.diagnose(log_in(file, reading))
    if format != "table":
        print(printed(table, format, []))
        return
    for row in table.to_dict("records"):
        about = f"{row['model']}: " if row["model"] else ""
        print(hanging(row["code"], f"{about}{row['finding']} ({row['value']:.3g}).", 8))
        print(hanging("", row["advice"], 8))
    if table.empty:
        print("no diagnostic found anything")


def convert(file: str, output: str, /, *, reading: Reading | None = None) -> None:
    """Read a log or predictions of another tool, and save the loss log.

    Example: cvstats convert samples.jsonl losses.parquet --read-as lm-eval --filter none

    Parameters
    ----------
    file
        What to read.
    output
        What to write: .parquet, .csv, .jsonl, .nc or .zarr.
    reading
        How to read the file.
    """
    log = log_in(file, reading)
    save_log(log, output)
    print(f"wrote {output}: {reporting.about(log)}")


def hanging(name: str, words: str, width: int) -> str:
    """Write words beside a name, all their lines below each other."""
    return fill(
        words, WIDTH, initial_indent=name.ljust(width), subsequent_indent=" " * width
    )  # fmt: skip
