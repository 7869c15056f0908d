"""The commands: what each reads, calls and prints."""

from __future__ import annotations

from importlib.metadata import version
from inspect import signature
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import pandas as pd
from cyclopts import App, Parameter

from cvstats import recommend, reporting
from cvstats.cli.demo import demo
from cvstats.cli.inputs import InputOptions, check_output, note_dropped, read_files, title_of
from cvstats.cli.output import WIDTH, Format, format_result, in_own_direction, indent, show
from cvstats.comparisons.best_set import best_set as rank_models
from cvstats.comparisons.compare import compare as compare_models
from cvstats.comparisons.equivalence import equivalence as test_equivalence
from cvstats.comparisons.power import power as plan_power
from cvstats.describe import describe_log
from cvstats.diagnostics import diagnose as diagnose_log
from cvstats.errors import LogError
from cvstats.intervals import find_method, interval_names
from cvstats.io.save import save_log
from cvstats.options import Missing, check_alpha

HELP = """Valid confidence intervals and comparisons for cross-validated error.

For example:

cvstats interval losses.parquet

cvstats compare ridge=a.parquet forest=b.parquet

cvstats compare predictions.csv --loss squared_error --fold cv_split --reference ridge

cvstats report losses.parquet -o report.html

Completion of words in the shell: eval "$(cvstats completion bash)"
"""

app = App(
    name="cvstats",
    help=HELP,
    version=version("cvstats"),
    # An option that takes several values needs none that empties it.
    default_parameter=Parameter(negative_iterable=()),
)
app.command(demo)


FACTS = ["target", "guarantee", "reference"]
"""What is printed below the rows of a result."""

if TYPE_CHECKING:
    MethodName: TypeAlias = str
else:  # choices for the parser, for completion and for the help
    MethodName = Literal[tuple(interval_names())]


@app.command
def interval(
    file: Path,
    /,
    *more: Path,
    method: MethodName | None = None,
    by: str | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
) -> None:
    """Print the interval that the log calls for.

    Example: cvstats interval losses.parquet --format json

    Example: cvstats interval losses.csv --source hospital --by source

    Example: cvstats interval predictions.csv --loss squared_error --fold cv_split --point id

    Parameters
    ----------
    file
        A log, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
    method
        The name of a method; see cvstats methods FILE.
    by
        A level, such as source, for each of whose labels to print an interval.
    alpha
        One minus the level.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    format
        How to print.
    reading
        How to read the file.
    """
    log = read_files([file, *more], reading, missing)
    if by is None:
        result = recommend.interval(log, method=method, alpha=alpha, missing=missing)
    else:
        result = interval_by(log, by, method, alpha, missing)
    show_result(result, format, ["reason", *FACTS])


def interval_by(log: Any, by: str, method: str | None, alpha: float, missing: Missing) -> Any:
    """Compute an interval for each label of a level, by the method that the first one calls for."""
    index = log.index if isinstance(log, (pd.Series, pd.DataFrame)) else pd.Index([])
    names = [str(name) for name in index.names if name is not None]
    if by not in names:
        raise LogError(
            f"by={by!r} is not a level of this log. Expected one of {', '.join(names) or 'none'}. "
            f"Name its column as a level first: --source {by} --by source."
        )
    if method is None:
        first = log.xs(log.index.get_level_values(by)[0], level=by) if len(names) > 1 else log
        method = str(recommend.interval(first, alpha=alpha, missing=missing).attrs["method"])
    function = find_method(method).function
    if "by" not in signature(function).parameters:
        raise LogError(f"{method} takes whole logs only. Expected another method with by={by!r}.")
    return function(log, by=by, alpha=alpha, missing=missing)


def read_models(files: list[Path], reading: InputOptions | None, missing: Missing) -> Any:
    """Read a log, and refuse one of a single model: models are compared."""
    log = read_files(files, reading, missing)
    if isinstance(log, pd.Series) or (isinstance(log, pd.DataFrame) and log.shape[1] == 1):
        raise LogError(
            "the log has one model. Expected two or more: name a second file, or repeat "
            "--prediction for each model."
        )
    return log


def show_result(result: Any, format: Format, facts: list[str]) -> None:
    """Print a result, some of its facts, and what was left out of it."""
    note_dropped(result.attrs.get("n_dropped"))
    show(format_result(in_own_direction(result), format, facts))


@app.command
def compare(
    file: Path,
    /,
    *more: Path,
    reference: str | None = None,
    method: MethodName | None = None,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    adjust: Literal["holm", "bh", "max-t", "none"] = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
) -> None:
    """Print which model is best or tied, paired differences between models and their tests.

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
    log = read_models([file, *more], reading, missing)
    result = compare_models(
        log, reference=reference, method=cast(Any, method),
        alternative=alternative, adjust=None if adjust == "none" else adjust, alpha=alpha, rng=seed,
        missing=missing,
    )  # fmt: skip
    usual = (reference, method, alternative, adjust) == (None, None, "two-sided", "holm")
    if format == "table" and usual:
        show(f"{reporting.summary(log, alpha=alpha, seed=seed, missing=missing).text}\n")
    show_result(result, format, FACTS)


@app.command
def best_set(
    file: Path,
    /,
    *more: Path,
    alpha: float = 0.05,
    n_draws: int = 10_000,
    seed: int = 0,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
) -> None:
    """Print which models may be the best, and between which ranks each lies.

    Example: cvstats best-set losses.parquet --alpha 0.1

    Parameters
    ----------
    file
        A log of several models, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
    alpha
        The chance to leave the best model out.
    n_draws
        How many draws give the distribution of the largest difference.
    seed
        Their seed.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    format
        How to print.
    reading
        How to read the file.
    """
    log = read_models([file, *more], reading, missing)
    result = rank_models(log, alpha=alpha, n_draws=n_draws, rng=seed, missing=missing)
    show_result(result, format, FACTS)


@app.command
def equivalence(
    file: Path,
    /,
    *more: Path,
    margin: float,
    reference: str | None = None,
    method: MethodName | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
) -> None:
    """Print whether the errors of two models differ by less than a margin.

    Example: cvstats equivalence losses.parquet --margin 0.01 --reference ridge

    Parameters
    ----------
    file
        A log of several models, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
    margin
        The smallest difference that would matter, in units of the loss.
    reference
        The model to compare the others to; all pairs otherwise.
    method
        The interval that gives the standard error.
    alpha
        The level of both one-sided tests.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    format
        How to print.
    reading
        How to read the file.
    """
    log = read_models([file, *more], reading, missing)
    result = test_equivalence(
        log, margin=margin, reference=reference, method=method, alpha=alpha, missing=missing
    )
    show_result(result, format, FACTS)


@app.command
def power(
    file: Path,
    /,
    *more: Path,
    effect: float | None = None,
    reference: str | None = None,
    method: MethodName | None = None,
    alternative: Literal["two-sided", "less", "greater"] = "two-sided",
    target_power: float = 0.8,
    alpha: float = 0.05,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
) -> None:
    """Print how large a difference the next experiment would find, and how many points it needs.

    Example: cvstats power pilot.parquet --effect 0.01

    Parameters
    ----------
    file
        A pilot log of several models, or predictions with --loss.
    more
        Files of further models on the same evaluations: FILE, or NAME=FILE.
    effect
        The true difference to be found, in units of the loss.
    reference
        The model to compare the others to; all pairs otherwise.
    method
        The interval that gives the standard error.
    alternative
        less: the first model has the smaller error.
    target_power
        How probably the difference is to be found.
    alpha
        One minus the level.
    missing
        Whether a missing loss is an error, or leaves the evaluation out.
    format
        How to print.
    reading
        How to read the file.
    """
    log = read_models([file, *more], reading, missing)
    result = plan_power(
        log, effect=effect, reference=reference, method=method, alternative=alternative,
        target_power=target_power, alpha=alpha, missing=missing,
    )  # fmt: skip
    show_result(result, format, FACTS)


@app.command
def report(
    file: Path,
    /,
    *more: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("report.html"),
    title: str | None = None,
    alpha: float = 0.05,
    seed: int = 0,
    missing: Missing = "raise",
    reading: InputOptions | None = None,
    typed: Annotated[str, Parameter(parse=False)] = "cvstats report",
) -> None:
    """Write one page about the log: intervals, comparisons, plots, and reasons to doubt them.

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
        The command itself, which the page shows.
    """
    check_alpha(alpha)
    reporting.check_path(output)
    check_output(output, [file, *more])
    log = read_files([file, *more], reading, missing)
    if title is None and "title" not in log.attrs:
        title = f"Report on {title_of([file, *more])}"
    if missing == "drop" and isinstance(log, (pd.Series, pd.DataFrame)):
        note_dropped(int(pd.DataFrame(log).isna().any(axis=1).sum()))
    written = reporting.write_report(
        log, output, title=title, alpha=alpha, seed=seed, missing=missing, call=typed
    )
    show(f"wrote {written}")


@app.command
def methods(
    file: Path,
    /,
    *more: Path,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
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
    table = recommend.methods(read_files([file, *more], reading, missing))
    if format != "table":
        show(format_result(table, format))
        return
    width = max(map(len, table.index)) + 2
    for name, row in table.iterrows():
        answer = f"yes: {row['target']}" if row["applies"] else f"no: {row['why_not']}"
        show(indent(str(name), answer, width))
    if suggestion := str(table.attrs["suggestion"]):
        show("\n" + fill(suggestion, WIDTH))


@app.command
def diagnose(
    file: Path,
    /,
    *more: Path,
    missing: Missing = "raise",
    format: Format = "table",
    reading: InputOptions | None = None,
) -> None:
    """Print reasons to doubt the log, by code, and what to do about each.

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
    table = diagnose_log(read_files([file, *more], reading, missing))
    if format != "table":
        show(format_result(table, format))
        return
    for row in table.to_dict("records"):
        model = f"{row['model']}: " if row["model"] else ""
        show(indent(row["code"], f"{model}{row['finding']} ({row['value']:.3g}).", 8))
        show(indent("", row["advice"], 8))
    if table.empty:
        show("no diagnostic found anything")


@app.command
def convert(
    file: Path,
    output: Path,
    /,
    *,
    missing: Missing = "raise",
    reading: InputOptions | None = None,
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
    check_output(output, [file])
    log = read_files([file], reading, missing)
    save_log(log, output)
    show(f"wrote {output}: {describe_log(log)}")


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /, *, install: bool = False) -> None:
    """Print the script that completes words in a shell, or install it.

    Example: eval "$(cvstats completion bash)"

    Example: cvstats completion zsh --install

    Parameters
    ----------
    shell
        Which shell.
    install
        Write the script to where the shell looks for it, and a line in its startup file.
    """
    if install:
        print(f"wrote {app.install_completion(shell=shell)}; open a new {shell} to use it")
    else:
        print(app.generate_completion(shell=shell))
