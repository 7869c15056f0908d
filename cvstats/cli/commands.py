"""The commands, generated from the signatures of functions."""

from __future__ import annotations

import inspect
import os
import tomllib
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, make_dataclass, replace
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from inspect import Parameter as P
from operator import getitem
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_type_hints

import pandas as pd
from cyclopts import App, Parameter

from cvstats import datasets, recommend, reporting
from cvstats.cli import OTHER_NAMES, Format, align, format_result, line_width, show, to_json
from cvstats.comparisons.best_set import best_set as rank_models
from cvstats.comparisons.compare import compare as compare_models
from cvstats.comparisons.equivalence import equivalence as test_equivalence
from cvstats.comparisons.power import power as plan_power
from cvstats.core.cautions import Caution
from cvstats.core.design import LEVELS
from cvstats.describe import count, describe_log, moments
from cvstats.diagnostics import diagnose as diagnose_log
from cvstats.errors import LogError, NeedsLosses, nearest, plainly
from cvstats.formatting import as_scores
from cvstats.intervals import interval_names
from cvstats.intervals.naive import naive
from cvstats.io.arrow import list_files
from cvstats.io.paths import PARQUET, import_extra, path_of, refuse_stream, shortened
from cvstats.io.read import read_log
from cvstats.io.save import save_log
from cvstats.io.scan import BATCH, open_file, scan_csv, scan_moments, scan_tables
from cvstats.io.table import LOSS, METRIC, MODEL
from cvstats.io.text import MARK, TextOptions, csv_options
from cvstats.io.tools import FORMATS, recognize
from cvstats.io.tools.columns import FACTS as FACT_COLUMNS
from cvstats.io.tools.columns import USUAL, is_label
from cvstats.large.moments import Moments, SharedAttrs
from cvstats.log.display import count_decimals
from cvstats.log.tables import TRUTH, find_columns, names_a_score, unnamed_labels
from cvstats.loss_functions.contrast import contrast as contrast_groups
from cvstats.loss_functions.losses import LossKeywords, find_loss, losses
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.options import Missing, check_alpha
from cvstats.reporting.sentences import join_words, read_labels

HELP: dict[str, dict[str, str]] = tomllib.loads(
    files("cvstats.cli").joinpath("help.toml").read_text(encoding="utf-8")
)
"""The help of the commands and of their options."""

app = App(
    name="cvstats",
    help=HELP["command"]["about"],
    version=version("cvstats"),
    # Options with several values need no flag to clear them.
    default_parameter=Parameter(negative_iterable=()),
)


FACTS = ["target", "guarantee", "reference"]
"""Attributes printed below the rows of a result."""

Answer = TypeVar("Answer")

if TYPE_CHECKING:
    MethodName: TypeAlias = str
else:  # choices for the parser, for completion and for the help
    MethodName = Literal[tuple(interval_names())]


# --- options --------------------------------------------------------------------------------------

TOOLS = ", ".join(sorted(name for name, form in FORMATS.items() if form.of_table))
"""The formats of a file; the others are of objects in memory."""

OF_METRICS = ("average", "multi_class", "beta", "weights", "max_fpr")
"""Options of metrics that have the type that `losses` gives them."""

KINDS: dict[str, Any] = {
    **dict.fromkeys(("prediction", "na_values"), list[str]),
    **dict.fromkeys(("higher_is_better", "day_first", "drop_duplicates"), bool),
    "folds": Literal["average", "pool"],
    **dict.fromkeys(("n_train", "n_test", "quantile", "threshold", "clip", "at", "delta"), float),
    **{name: kind for name, kind in get_type_hints(LossKeywords).items() if name in OF_METRICS},
}
"""The types of options about how to read the files; the others are text."""


def describe_option(name: str, words: str) -> Any:
    """Make the annotation of an option about how to read the files."""
    kind: Any = KINDS.get(name, str) | None
    parsed = Parameter(help=words.format(tools=TOOLS), allow_leading_hyphen=name == "na_values")
    return getitem(Annotated, (kind, parsed))


if TYPE_CHECKING:
    InputOptions: TypeAlias = Any
else:
    InputOptions = Parameter(name="*")(  # its fields are options of each command
        make_dataclass(
            "InputOptions",
            [(name, describe_option(name, words), None) for name, words in HELP["reading"].items()],
            namespace={"__module__": __name__},
            frozen=True,
        )
    )

FILE = Annotated[Path, Parameter(help=HELP["command"]["files"])]
MORE = Annotated[Path, Parameter(help=HELP["command"]["more"])]
FORMAT = Annotated[Format, Parameter(help="Output format.")]

OF_COMMAND: dict[str, tuple[Any, Any]] = {
    "method": (MethodName | None, None),
    "by": (str | None, None),
    "between": (tuple[str, str] | None, None),
    "reference": (str | None, None),
    "adjust": (Literal["holm", "bonferroni", "bh", "fdr", "max-t", "none"], "holm"),
    "margin": (float, P.empty),
    "alpha": (float, 0.05),
    "seed": (int, 0),
    "missing": (Missing, "raise"),
}
"""Options of commands whose type or default is not that of the function."""


def from_signature(
    function: Callable[..., Any], *options: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Create a command from some options of a function and the files that it reads.

    The decorated function gets the files, how to read them, the format, and the options.
    """
    known = inspect.signature(function, eval_str=True).parameters

    def make(run: Callable[..., None]) -> Callable[..., None]:
        parameters = [
            P("file", P.POSITIONAL_ONLY, annotation=FILE),
            P("more", P.VAR_POSITIONAL, annotation=MORE),
        ]
        for name in options:
            kind, default = OF_COMMAND.get(name) or (known[name].annotation, known[name].default)
            if name in known and known[name].default is P.empty:
                default = P.empty
            # The function checks the name of a method, which may be that of other software.
            as_typed = (lambda _, tokens: tokens[0].value) if name == "method" else None
            parsed = Parameter(help=HELP["options"][name], converter=as_typed)
            note: Any = getitem(Annotated, (kind, parsed))
            parameters.append(P(name, P.KEYWORD_ONLY, default=default, annotation=note))
        parameters += [
            P("format", P.KEYWORD_ONLY, default="table", annotation=FORMAT),
            P("reading", P.KEYWORD_ONLY, default=None, annotation=InputOptions | None),
        ]

        def command(*files: Path, format: Format = "table", reading: Any = None, **given: Any
                    ) -> None:  # fmt: skip
            chosen = {p.name: given.get(p.name, p.default) for p in parameters if p.name in options}
            run(list(files), reading, format, **chosen)

        command.__name__, command.__doc__ = run.__name__, run.__doc__
        command.__annotations__ = {}  # the parser reads the signature
        vars(command)["__signature__"] = inspect.Signature(parameters)
        app.command(command)
        return command

    return make


# --- commands -------------------------------------------------------------------------------------


@from_signature(recommend.interval, "method", "points", "by", "alpha", "missing")
def interval(
    files: list[Path], reading: Any, format: Format, *, by: str | None, missing: Missing,
    **options: Any,
) -> None:  # fmt: skip
    """Print the recommended interval.

    Example: cvstats interval losses.parquet --format json

    Example: cvstats interval losses.csv --source hospital --by source

    Example: cvstats interval predictions.csv --loss squared_error --fold cv_split --point id
    """

    def answer(log: Any) -> Any:
        return recommend.interval(log, by=by, missing=choose_missing(missing, log), **options)

    result = answer_files(partial(read_files, files, reading, missing, by=by), answer)
    show_result(result, format, ["reason", *FACTS])


def answer_files(read: Callable[..., Any], answer: Callable[[Any], Answer]) -> Answer:
    """Answer from the moments of large files, or from their losses if these are needed."""
    log = read(scans=True)
    try:
        return answer(log)
    except NeedsLosses:
        if not isinstance(log, Moments):
            raise
    return answer(read())


def read_models(
    files: list[Path], reading: Any, missing: Missing, *, by: str | None = None,
    scans: bool = False,
) -> Any:  # fmt: skip
    """Read a log, and reject a log with a single model."""
    log = read_files(files, reading, missing, by=by, pairs=True, scans=scans)
    one = isinstance(log, pd.Series) or (isinstance(log, pd.DataFrame) and log.shape[1] == 1)
    if one and "kind" not in log.attrs:  # one difference is compared with 0
        raise LogError(
            "the log has only one model. Expected at least two: pass a second file, or repeat "
            "--prediction for each model."
        )
    return log


def show_result(result: Any, format: Format, facts: list[str]) -> None:
    """Print a result, some of its attributes, and the number of dropped evaluations."""
    note_dropped(result.attrs.get("n_dropped"))
    about = result.attrs
    one = isinstance(about.get("metric"), str) and about.get("orientation") not in (None, "error")
    if one or "metrics" in about:
        result = as_scores(result)
    show(format_result(result, format, facts))


def show_comparison(
    ask: Callable[..., Any], files: list[Path], reading: Any, format: Format, missing: Missing
) -> None:
    """Print the answer of a function about several models."""
    read = partial(read_models, files, reading, missing)
    found = answer_files(read, lambda log: ask(log, missing=choose_missing(missing, log)))
    show_result(found, format, FACTS)


def show_sentences(table: Any, format: Format) -> None:
    """Print a table of sentences, wrapped to the width of the terminal."""
    show(table.write(line_width()) if format == "table" else format_result(table, format))


@from_signature(
    compare_models,
    "reference", "method", "points", "by", "alternative", "adjust", "relative", "over", "alpha",
    "seed", "missing",
)  # fmt: skip
def compare(
    files: list[Path], reading: Any, format: Format, *, adjust: str, seed: int, missing: Missing,
    **options: Any,
) -> None:  # fmt: skip
    """Print which model is best, and the paired differences between models with their tests.

    Example: cvstats compare losses.parquet --reference ridge

    Example: cvstats compare ridge=a.parquet forest=b.parquet --adjust none

    Example: cvstats compare losses.csv --by segment
    """
    chosen: Any = None if adjust == "none" else adjust
    usual = {
        "reference": None, "method": None, "by": None, "alternative": "two-sided",
        "relative": False,
    }  # fmt: skip
    summarized = format == "table" and adjust == "holm" and options == options | usual

    def answer(log: Any) -> tuple[Any, Any]:
        gaps = choose_missing(missing, log)
        result = compare_models(log, adjust=chosen, rng=seed, missing=gaps, **options)
        return result, (
            reporting.summary(log, alpha=options["alpha"], seed=seed, missing=gaps)
            if summarized else None
        )  # fmt: skip

    read = partial(read_models, files, reading, missing, by=options["by"])
    result, words = answer_files(read, answer)
    if words is not None:
        show(f"{words.paragraphs(line_width())[0]}\n")
    show_result(result, format, FACTS)


@from_signature(contrast_groups, "by", "between", "reference", "adjust", "alpha")
def contrast(
    files: list[Path], reading: Any, format: Format, *, by: str, adjust: str, alpha: float,
    **groups: Any,
) -> None:  # fmt: skip
    """Print the differences between groups of points, such as sexes or sites, with their tests.

    Example: cvstats contrast losses.csv --by sex --between f m

    Example: cvstats contrast losses.csv --by region --reference rest
    """
    log = read_files(files, reading, by=by)
    found = read_labels(log, by)
    labels = {} if found is None else {str(label): label for label in found.unique()}
    if groups["between"]:
        groups["between"] = tuple(labels.get(word, word) for word in groups["between"])
    groups["reference"] = labels.get(groups["reference"], groups["reference"])
    differences = contrast_groups(log, by=by, **groups)
    nothing: Any = 0
    chosen: Any = None if adjust == "none" else adjust
    result = compare_models(differences, nothing, adjust=chosen, alpha=alpha).droplevel("other")
    named = ["contrast"] if isinstance(result.attrs.get("contrast"), str) else []
    show_result(result, format, [*named, *FACTS])


@from_signature(reporting.summary, "method", "by", "alpha", "seed", "missing")
def summary(
    files: list[Path], reading: Any, format: Format, *, by: str | None, missing: Missing,
    **options: Any,
) -> None:  # fmt: skip
    """Print which model is best, by how much and with what confidence, in at most three sentences.

    Example: cvstats summary losses.parquet

    Example: cvstats summary losses.parquet --by segment --source customer
    """

    def answer(log: Any) -> Any:
        found = reporting.summary(log, by=by, missing=choose_missing(missing, log), **options)
        note_missing(log, missing)
        return found

    words = answer_files(partial(read_files, files, reading, missing, by=by, pairs=True), answer)
    several = isinstance(words, reporting.Summaries)
    parts = words if several else {"": words}
    if format == "json":
        found = {label: asdict(part) for label, part in parts.items()}
        show(to_json(found if several else found[""]))
    elif format == "csv":
        rows = [[label, *row] for label, part in parts.items() for row in part.rows()]
        columns = [words.by if several else "", "caution", "sentence", "advice"]
        table = pd.DataFrame(rows, columns=columns)
        show(format_result(table if several else table.iloc[:, 1:], format))
    else:
        show(words.write(line_width()))


@from_signature(rank_models, "alpha", "n_draws", "seed", "missing")
def best_set(
    files: list[Path], reading: Any, format: Format, *, seed: int, missing: Missing, **options: Any
) -> None:
    """Print which models could be the best, and the range of ranks of each.

    Example: cvstats best-set losses.parquet --alpha 0.1
    """
    log = read_models(files, reading, missing)
    show_result(rank_models(log, rng=seed, missing=missing, **options), format, FACTS)


@from_signature(test_equivalence, "margin", "reference", "method", "alpha", "missing")
def equivalence(
    files: list[Path], reading: Any, format: Format, *, missing: Missing, **options: Any
) -> None:
    """Print whether the errors of two models differ by less than a margin.

    Example: cvstats equivalence losses.parquet --margin 0.01 --reference ridge
    """
    show_comparison(partial(test_equivalence, **options), files, reading, format, missing)


@from_signature(
    plan_power,
    "effect", "reference", "method", "alternative", "target_power", "alpha", "missing",
)  # fmt: skip
def power(
    files: list[Path], reading: Any, format: Format, *, missing: Missing, **options: Any
) -> None:
    """Print the difference that the next experiment can detect, and how many points it needs.

    Example: cvstats power pilot.parquet --effect 0.01
    """
    show_comparison(partial(plan_power, **options), files, reading, format, missing)


@from_signature(recommend.methods, "missing")
def methods(files: list[Path], reading: Any, format: Format, *, missing: Missing) -> None:
    """Print every method, whether it applies to the log, and if not, what is missing.

    Example: cvstats methods losses.csv
    """
    table: Any = recommend.methods(read_files(files, reading, missing))
    show_sentences(table, format)
    if format == "table" and (suggestion := str(table.attrs["suggestion"])):
        show("\n" + fill(suggestion, line_width()))


@from_signature(diagnose_log, "missing")
def diagnose(files: list[Path], reading: Any, format: Format, *, missing: Missing) -> None:
    """Print problems of the log by code, with advice for each.

    Example: cvstats diagnose losses.csv --format markdown
    """
    show_sentences(diagnose_log(read_files(files, reading, missing)), format)


@app.command
def report(
    file: FILE,
    /,
    *more: MORE,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("report.html"),
    title: str | None = None,
    alpha: Annotated[float, Parameter(help=HELP["options"]["alpha"])] = 0.05,
    seed: Annotated[int, Parameter(help=HELP["options"]["seed"])] = 0,
    missing: Annotated[Missing, Parameter(help=HELP["options"]["missing"])] = "raise",
    reading: InputOptions | None = None,
    typed: Annotated[str, Parameter(parse=False)] = "cvstats report",
) -> None:
    """Write a one-page report: intervals, comparisons, plots, and warnings.

    Example: cvstats report losses.parquet -o report.html

    Parameters
    ----------
    output
        The page to write.
    title
        Its heading.
    """
    check_alpha(alpha)
    reporting.check_path(output)
    check_output(output, [file, *more])
    files = [file, *more]

    def answer(log: Any) -> Any:
        if isinstance(log, Moments):
            recommend.interval(log)  # raises if the default method needs individual losses
        names = join_words([split_name(file)[1].name for file in files])
        named = title or (None if "title" in log.attrs else f"Report on {names}")
        note_missing(log, missing)
        return reporting.write_report(
            log, output, title=named, alpha=alpha, seed=seed, missing=choose_missing(missing, log),
            call=typed,
        )  # fmt: skip

    read = partial(read_files, files, reading, missing, pairs=True)
    show(f"wrote {answer_files(read, answer)}")


@app.command
def convert(
    file: Path,
    /,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    *,
    missing: Annotated[Missing, Parameter(help=HELP["options"]["missing"])] = "raise",
    reading: InputOptions | None = None,
) -> None:
    """Read a log or predictions of another tool, and save the loss log.

    Example: cvstats convert samples.jsonl losses.parquet --read-as lm-eval --filter none

    Parameters
    ----------
    file
        The file to read.
    output
        The file to write: .parquet, .csv, .jsonl, .nc or .zarr.
    """
    check_output(output, [file])
    log = read_files([file], reading, missing)
    save_log(log, output)
    show(f"wrote {output}: {describe_log(log)}")


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /, *, install: bool = False) -> None:
    """Print or install the shell-completion script.

    Example: eval "$(cvstats completion bash)"

    Example: cvstats completion zsh --install

    Parameters
    ----------
    shell
        The shell.
    install
        Write the script to the directory searched by the shell, and add a line to its startup
        file.
    """
    if install:
        print(f"wrote {app.install_completion(shell=shell)}; start a new {shell} session to use it")
    else:
        print(app.generate_completion(shell=shell))


# --- files ----------------------------------------------------------------------------------------


def read_files(
    files: Sequence[Path], options: Any, missing: Missing = "raise", *, by: str | None = None,
    pairs: bool = False, scans: bool = False,
) -> Any:  # fmt: skip
    """Read the log of one file, or of several with one model each, optionally as NAME=FILE.

    With ``scans`` the moments of a large file, or of one with the groups of ``by`` in a column
    besides the levels, with ``pairs`` of models where these are to be compared.
    """
    given = {} if options is None else asdict(options)
    given = {name: value for name, value in given.items() if value is not None}
    predictions = given.get("prediction", [])
    if len(predictions) == 1:
        given["prediction"] = predictions[0]
    if "positive" in given:
        given["positive"] = number_or_text(given["positive"])
    for name in ("metric", "filter"):
        if "=" in given.get(name, ""):
            given[name] = dict(part.split("=", 1) for part in given[name].split(",") if "=" in part)
    named = [split_name(file) for file in files]
    for _, path in named:
        refuse_stream(path_of(path))
        if not path.exists():
            raise missing_file(path, len(predictions) > 0)
    names = [name for name, _ in named]
    plain = all(file == path for file, (_, path) in zip(files, named, strict=True))
    own = plain and (len(files) == 1 or all(  # a log of inspect or lm_eval names its model
        path.is_dir() or path.suffix == ".eval" or path.name.startswith("samples_")
        for _, path in named
    ))  # fmt: skip
    for name, path in named:
        if names.count(name) > 1 and not own:
            raise LogError(
                f"two files are called {name!r}, but models are named after their files. Pass "
                f"names: {name}1={path} …"
            )
    source: Any = {name: str(path) for name, path in named}
    if own:  # models keep their names from the files
        source = [str(path) for _, path in named] if len(files) > 1 else str(files[0])
    if scans and (moments := scan_large(source, given, missing, by=by, pairs=pairs)) is not None:
        return moments
    given |= {name: given.pop(word) for name, word in OTHER_NAMES.items() if word in given}
    if by is not None and by not in (*LEVELS, METRIC, MODEL):
        given["by"] = by
    log = read_log(source, missing=missing, **given)
    read_from = Path(source).name if isinstance(source, str) else type(source).__name__
    if log.attrs.get("read_from") == read_from:  # recorded when the saved log was created
        note_reading(log, by)
    return log


def note_reading(log: Any, by: str | None) -> None:
    """Warn about levels not named by any option, and about samples and rows that were not read."""
    for name in log.index.names if isinstance(log, (pd.Series, pd.DataFrame)) else ():
        values = log.index.get_level_values(name)
        if name not in (*LEVELS, by) and values.nunique() < len(values):
            note_unused(name)
    errored, gaps = log.attrs.get("n_errored", 0), log.attrs.get("n_incomplete", 0)
    notes = [f"{count(errored, 'sample')} ended in an error"] if errored else []
    notes += [f"{count(gaps, 'sample')} with a gap dropped from every epoch"] if gaps else []
    if notes:
        warnings.warn("; ".join(notes), stacklevel=2)
    if copies := log.attrs.get("n_duplicates"):
        noun = "copy" if copies == 1 else "copies"
        warnings.warn(f"{copies:,} {noun} of rows dropped", stacklevel=2)


def note_unused(name: Hashable) -> None:
    """Warn about a column that may contain a level."""
    warnings.warn(
        f"the column {name!r} is not used. If it contains folds, sources or repetitions, "
        "pass it as --fold, --source or --repetition.",
        stacklevel=3,
    )


def choose_missing(missing: Missing, log: Any) -> Missing:
    """Use missing='raise' if batches already dropped missing losses."""
    return "raise" if isinstance(log, Moments) else missing


def missing_file(path: Path, after_prediction: bool) -> LogError:
    """Format the error for a missing file."""
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = nearest(path.name, beside)
    if set("*?[") & set(path.name):
        hint = " Patterns are not expanded. Pass a folder to read its files as one log."
    elif after_prediction and not path.suffix:
        hint = f" --prediction accepts one column; repeat it for each model.{hint}"
    return LogError(
        f"No such file: {shortened(str(path))}. Expected a log, such as log.parquet.{hint}"
    )


def note_dropped(number: int | None) -> None:
    """Warn about evaluations dropped from a result."""
    if number:
        left_out = f"{count(number, 'evaluation')} dropped"
        warnings.warn(f"{left_out}: the loss of some model is missing", stacklevel=2)


def note_missing(log: Any, missing: Missing) -> None:
    """Warn of evaluations of a log that are left out."""
    if isinstance(log, Moments):
        note_dropped(log.dropped)
    elif missing == "drop" and isinstance(log, (pd.Series, pd.DataFrame)):
        note_dropped(int(pd.DataFrame(log).isna().any(axis=1).sum()))


def number_or_text(word: str) -> str | float:
    """Convert a word to a number if possible: labels of a table are numbers then."""
    for kind in (int, float) if word.lstrip("+-.")[:1].isdigit() else ():
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def split_name(file: Path) -> tuple[str, Path]:
    """Split NAME=FILE; without a name the model is named after the file."""
    name, equals, path = str(file).partition("=")
    if not equals or os.path.exists(file):  # also for invalid file names
        return file.stem, file
    return name, Path(path)


def check_output(output: Path, files: Sequence[Path]) -> None:
    """Raise if writing would overwrite an input file, under any path or link."""
    target = output.resolve()
    for file in (split_name(file)[1] for file in files):
        if not file.exists():
            continue  # reading reports it
        real = file.resolve()
        inside = target.suffix == ".zarr" and real.is_relative_to(target)
        if real == target or inside or (output.exists() and output.samefile(file)):
            raise LogError(
                f"{str(output)!r} is also an input file and would be overwritten. Use another "
                "name for the output."
            )


# --- large files ----------------------------------------------------------------------------------


ROWS, BYTES = 4_000_000, 200_000_000
"""Number of rows of Parquet files, and size of CSV files, above which they are streamed."""
SAMPLE = 1000
"""Number of rows that show the types of columns."""
TEXT = ("decimal", "thousands", "encoding", "na_values")
STREAMED = {"read_as", "loss", "truth", "prediction", "model", "metric", *LEVELS, *TEXT} - {"count"}
"""The reading options supported by streaming."""


def scan_large(
    source: Any, given: Mapping[str, Any], missing: Any, *, by: str | None, pairs: bool
) -> Moments | None:
    """Compute the moments of a large file or folder.

    None if it is small, or is not a table of losses or predictions of points.
    """
    kind = Path(source).suffix.lower() if isinstance(source, str) else ""
    folder = isinstance(source, str) and Path(source).is_dir()
    parquet = folder or kind in PARQUET
    other_format = given.get("read_as", "columns") not in ("columns", "parquet", "csv")
    if not (parquet or kind in (".csv", ".tsv")) or other_format or set(given) - STREAMED:
        return None
    further = by is not None and by not in LEVELS
    first = read_first_rows_of_parquet(source) if parquet else read_first_rows_of_csv(source, given)
    if first is None or (further and by not in first):
        return None
    names = list(first)
    named = {level: given.get(level) for level in LEVELS}
    asked = find_value_columns(first, named, given, by)
    if asked is None or recognize(pd.DataFrame(columns=names), None) != "columns":
        return None
    loss, truth, prediction = asked
    values = [loss] if isinstance(loss, str) and truth is None else list(prediction or loss)
    columns = find_columns(names, values, named, given.get("model"), single=len(values) == 1)
    if "count" in columns.levels or (columns.model is not None and (pairs or missing == "drop")):
        return None
    pairs = pairs and len(values) > 1
    predicted = prediction and values[0] if len(values) == 1 else prediction
    cells = [level for level in columns.levels if level != "point"]
    groups = None if by is None or not further else [by, *cells]
    scan: Any = partial(scan_tables, source, batch_size=BATCH, progress=None)
    if not parquet:
        scan = partial(scan_csv, Path(source), text=choose_text_options(given))
    moments = scan_moments(
        scan, named, loss, truth, predicted, given.get("model"), groups, pairs, missing
    )
    if moments.cautions & Caution.UNUSED_LEVEL:
        for name in unnamed_labels(first, columns):
            note_unused(name)
    read_from = SharedAttrs({**moments.notes.shared, "read_from": Path(source).name})
    return replace(moments, notes=read_from)


def read_first_rows_of_parquet(source: str) -> pd.DataFrame | None:
    """Read the first rows of large files; None of a small or a saved log."""
    import_extra("pyarrow", "Parquet")
    files = list_files(source)
    if not all(file.path.suffix.lower() in PARQUET for file in files):
        return None
    rows = 0
    for file in files:
        with open_file(file.path) as opened:
            rows += opened.metadata.num_rows
            if rows < ROWS:
                continue
            if b"cvstats" in (opened.schema_arrow.metadata or {}):
                return None
            first: pd.DataFrame = next(opened.iter_batches(SAMPLE)).to_pandas()
            return first.reset_index(drop=True).assign(**files[0].keys)
    return None


def choose_text_options(given: Mapping[str, Any]) -> TextOptions:
    """Choose the options of text."""
    return TextOptions(**{name: given[name] for name in TEXT if name in given})


def read_first_rows_of_csv(source: str, given: Mapping[str, Any]) -> pd.DataFrame | None:
    """Read the first rows of a large file; None of a small or a saved log."""
    path = Path(source)
    if not path.is_file() or path.stat().st_size < BYTES:
        return None
    with path.open("rb") as file:
        if file.readline().startswith(MARK.encode()):
            return None
    text = choose_text_options(given)
    options, names = csv_options(path, text, "\t" if path.suffix == ".tsv" else ",")
    first: pd.DataFrame = pd.read_csv(
        path, nrows=SAMPLE, names=names, header=0, decimal=text.marks(None)[0], **options
    )
    return first


def find_value_columns(
    first: pd.DataFrame, named: Mapping[str, str | None], given: Mapping[str, Any],
    by: str | None,
) -> tuple[Any, str | None, list[str] | None] | None:  # fmt: skip
    """Find the columns of losses, or the loss with the columns of truth and predictions."""
    loss = given.get("loss")
    column = next((name for name in (given.get("metric"), loss, LOSS) if name in first), None)
    truth = given.get("truth") or next((name for name in (TRUTH, "truth") if name in first), None)
    if column is not None and (truth is None or loss in (None, column)):
        return column, None, None
    if truth is not None:
        function, implied = find_loss(loss)
        usual = [name for name in USUAL if name in first]
        prediction = given.get("prediction") or usual
        prediction = [prediction] if isinstance(prediction, str) else list(prediction)
        if function not in LOSSES or implied or not prediction or (usual and len(usual) > 1):
            return None
        return function, truth, prediction
    if loss is not None:
        return None
    taken = find_columns(list(first), [], named, given.get("model"), single=False)
    used = {by, taken.model, *taken.levels.values(), *unnamed_labels(first, taken)}
    others = [
        name
        for name in map(str, first)
        if name not in used and not FACT_COLUMNS.fullmatch(plainly(name))
    ]
    others = [name for name in others if not is_label(first, name, others)]
    streamed = (
        others and all(map(pd.api.types.is_any_real_numeric_dtype, first[others].dtypes))
        and not any(map(names_a_score, others))
    )  # fmt: skip
    return (others, None, None) if streamed else None


# --- the demonstration ----------------------------------------------------------------------------


EXAMPLES = {
    "diabetes": ("squared_error", "squared error"),
    "flights_by_month": ("brier", "Brier score"),
}
"""The logs to show, each with its loss and the name of the loss."""


@app.command
def demo(*, alpha: float = 0.05) -> None:
    """Compare valid with conventional intervals on two real data sets.

    Two cross-validation logs ship with the package. For each, print mean ± std over the folds, the
    naive interval and the valid interval of each model, and the summary.

    Example: cvstats demo --alpha 0.1

    Parameters
    ----------
    alpha : float
        One minus the level of the intervals.
    """
    show("\n\n".join(describe_example(name, *loss, alpha) for name, loss in EXAMPLES.items()))


def describe_example(name: str, loss: str, loss_words: str, alpha: float) -> str:
    """Describe a shipped log, the errors of its models and their differences."""
    log = datasets.load(name)
    errors = losses(log, prediction=log.attrs["models"], loss=loss)
    folds = moments(errors)
    usual: Any = naive(errors, alpha=alpha)
    valid: Any = recommend.interval(errors, alpha=alpha)
    head = log.attrs["title"]
    about = (
        f"Data: cvstats.datasets.load({name!r}). Loss: {loss_words}, smaller is better. Target: "
        f"{log.attrs['target']}."
    )
    width = line_width()
    return "\n\n".join(
        [
            f"{head}\n{'=' * len(head)}\n{fill(about, width)}",
            interval_table(folds, usual, valid, alpha),
            fill(interval_words(folds, usual, valid), width),
            reporting.summary(errors, alpha=alpha).write(width),
        ]
    )


def interval_table(
    folds: pd.DataFrame, usual: pd.DataFrame, valid: pd.DataFrame, alpha: float
) -> str:
    """Show mean ± std of the folds, the naive interval and the valid interval side by side."""
    digits, level = count_decimals(valid), f"{100 * (1 - alpha):g}%"
    rows = [["", "mean ± std of folds", f"naive {level} interval", f"valid {level} interval"]]
    rows += [
        # The std divides by the number of folds, as most reports do.
        [str(model), f"{means.mean():.{digits}f} ± {means.std(ddof=0):.{digits}f}",
         write_limits(usual.loc[model], digits), write_limits(valid.loc[model], digits)]
        for model, means in folds["mean"].groupby("model", sort=False)
    ]  # fmt: skip
    return align(rows)


def interval_words(folds: pd.DataFrame, usual: pd.DataFrame, valid: pd.DataFrame) -> str:
    """Explain the table of intervals."""
    sizes = folds["count"]
    size = f"{sizes.min():,}" + (f" or {sizes.max():,}" if sizes.max() > sizes.min() else "")
    number = sizes.groupby("model").sum().iloc[0]
    wide, narrow = (table["upper"] - table["lower"] for table in (valid, usual))
    unit = "sources" if "n_sources" in valid.attrs else "points"
    return (
        f"How to read it: the std measures how much folds of {size} points differ, not the "
        f"precision of their mean. The naive interval treats {number:,} losses as independent. The "
        f"valid interval ({valid.attrs['method']}) is {(wide / narrow).mean():.1f} times as wide, "
        f"because the losses come from only {valid.attrs[f'n_{unit}']:,} {unit}."
    )


def write_limits(row: Any, digits: int) -> str:
    """Write the limits of an interval."""
    return f"[{row['lower']:.{digits}f}, {row['upper']:.{digits}f}]"
