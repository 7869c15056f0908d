"""The commands that read a log from a file."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Literal, TypeAlias

import pandas as pd

from cvstats import reporting
from cvstats.api import choosing, comparing, diagnosing
from cvstats.api.running import Compared, Missing, checked_alpha
from cvstats.cli.printing import Format, printed, spoken
from cvstats.cli.reading import Reading, log_in, tell_dropped, titled
from cvstats.cli.writing import refuse_input
from cvstats.io.write import save_log

__all__ = ["Shell", "compare", "convert", "diagnose", "interval", "methods", "report"]

Shell: TypeAlias = Literal["bash", "zsh", "fish"]
WIDTH = 96


def interval(
    file: Path,
    /,
    *more: Path,
    method: str | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    format: Format = "table",
    reading: Reading | None = None,
) -> None:
    """Print the interval that the log calls for.

    Example: cvstats interval losses.parquet --format json

    Example: cvstats interval predictions.csv --loss squared_error --fold cv_split --point id

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
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
    result = choosing.interval(
        log_in([file, *more], reading, missing), method=method, alpha=alpha, missing=missing
    )
    tell_dropped(result.attrs)
    print(printed(result, format, ["reason", "target", "guarantee", "reference"]))


def compare(
    file: Path,
    /,
    *more: Path,
    reference: str | None = None,
    method: Compared | None = None,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    adjust: Literal["holm", "bh", "max-t", "none"] = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
    format: Format = "table",
    reading: Reading | None = None,
) -> None:
    """Print paired differences between models and their tests.

    Example: cvstats compare losses.parquet --reference ridge

    Example: cvstats compare ridge=a.parquet forest=b.parquet --adjust none

    Parameters
    ----------
    file
        A log of several models, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
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
        log_in([file, *more], reading, missing), reference=reference, method=method,
        alternative=alternative, adjust=None if adjust == "none" else adjust, alpha=alpha, rng=seed,
        missing=missing,
    )  # fmt: skip
    tell_dropped(result.attrs)
    print(printed(result, format, ["target", "guarantee", "reference"]))


def report(
    file: Path,
    /,
    *more: Path,
    output: Path = Path("report.html"),
    title: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
    reading: Reading | None = None,
    typed: str = "cvstats report",
) -> None:
    """Write one page about the log: intervals, comparisons, plots, and what to doubt.

    Example: cvstats report losses.parquet -o report.html

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
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
    typed
        The command itself, to stand on the page.
    """
    checked_alpha(alpha)
    reporting.checked_path(output)
    refuse_input(output, [file, *more])
    log = log_in([file, *more], reading, missing)
    if title is None and "title" not in log.attrs:
        title = f"Cross-validated error in {titled([file, *more])}"
    if missing == "drop" and isinstance(log, (pd.Series, pd.DataFrame)):
        tell_dropped({"n_dropped": int(pd.DataFrame(log).isna().any(axis=1).sum())})
    settings = reporting.Settings(alpha, seed, missing)
    written = reporting.reported(log, output, title, settings, typed)
    print(f"wrote {written}")


def methods(
    file: Path,
    /,
    *more: Path,
    missing: Missing = "raise",
    format: Format = "table",
    reading: Reading | None = None,
) -> None:
    """Print every method: whether the log allows it, and if not, what is missing.

    Example: cvstats methods losses.csv

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
    missing
        Whether an evaluation that ended in an error is refused, or left out.
    format
        How to print.
    reading
        How to read the file.
    """
    table = choosing.methods(log_in([file, *more], reading, missing))
    if format != "table":
        print(printed(table, format, []))
        return
    width = max(map(len, table.index)) + 2
    for name, row in table.iterrows():
        words = f"yes: {row['target']}" if row["applies"] else f"no: {row['why_not']}"
        print(hanging(str(name), words, width))
    print()
    print(fill(str(table.attrs["suggestion"]), WIDTH))


def diagnose(
    file: Path,
    /,
    *more: Path,
    missing: Missing = "raise",
    format: Format = "table",
    reading: Reading | None = None,
) -> None:
    """Print what is to be doubted about the log, by code, and what to do about it.

    Example: cvstats diagnose losses.csv --format markdown

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
    missing
        Whether an evaluation that ended in an error is refused, or left out.
    format
        How to print.
    reading
        How to read the file.
    """
    table = diagnosing.diagnose(log_in([file, *more], reading, missing))
    if format != "table":
        print(printed(table, format, []))
        return
    for row in table.to_dict("records"):
        about = f"{row['model']}: " if row["model"] else ""
        print(hanging(row["code"], f"{about}{row['finding']} ({row['value']:.3g}).", 8))
        print(hanging("", spoken(row["advice"]), 8))
    if table.empty:
        print("no diagnostic found anything")


def convert(
    file: Path,
    output: Path,
    /,
    *,
    missing: Missing = "raise",
    reading: Reading | None = None,
) -> None:
    """Read a log or predictions of another tool, and save the loss log.

    Example: cvstats convert samples.jsonl losses.parquet --read-as lm-eval --filter none

    Parameters
    ----------
    file
        What to read.
    output
        What to write: .parquet, .csv, .jsonl, .nc or .zarr.
    missing
        Whether an evaluation that ended in an error is refused, or left out.
    reading
        How to read the file.
    """
    refuse_input(output, [file])
    log = log_in([file], reading, missing)
    save_log(log, output)
    print(f"wrote {output}: {reporting.about(log)}")


def hanging(name: str, words: str, width: int) -> str:
    """Write words beside a name, all their lines below each other."""
    return fill(
        words, WIDTH, initial_indent=name.ljust(width), subsequent_indent=" " * width
    )  # fmt: skip
