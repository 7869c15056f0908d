"""The files that a command reads, how it reads them, and the file that it writes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from cyclopts import Parameter

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, nearest
from cvstats.io.paths import path_of, refuse_stream, shortened
from cvstats.io.read import read_log
from cvstats.options import Missing


@Parameter(name="*")  # its fields are options of each command
@dataclass(frozen=True)
class InputOptions:
    """How to read the files.

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
        The column of the predictions, or a model of a saved log; once for each model.
    model
        The column that names the model.
    sample
        The column that says which data set was resampled; 0 is the data themselves.
    outer
        For nested cross-validation: the column of the fold that was held out besides --fold.
    repetition
        The column of the repetition: the random split, seed or run.
    fold
        The column of the fold in which the point was tested.
    source
        The column of the group that the point is from: patient, site, month.
    point
        The column that names the point, the same for every model: the id of a row.
    count
        For the bootstrap: the column of how often the point was trained on; 0 is out of bag.
    filter
        For lm-evaluation-harness: which filter; for each task as in gsm8k=strict.
    metric
        Which score or column of losses; for each task as in arc=acc,gsm8k=exact_match.
    higher_is_better
        Whether more of a score is better; it is turned into a loss then.
    n_train
        On how many points each model was trained.
    n_test
        With --read-as scores: the number of points behind each score.
    quantile
        For the loss pinball.
    threshold
        For the loss zero_one of a probability.
    positive
        The class that a probability is of.
    clip
        For the loss log_loss: the least probability that counts, such as 1e-6.
    decimal
        The decimal mark of a CSV file.
    thousands
        What separates thousands in a CSV file.
    encoding
        The encoding of a CSV file that is not UTF-8, such as latin-1.
    drop_duplicates
        Leave out rows that are copies of one before.
    """

    read_as: str | None = None
    loss: str | None = None
    truth: str | None = None
    prediction: list[str] | None = None
    model: str | None = None
    sample: str | None = None
    outer: str | None = None
    repetition: str | None = None
    fold: str | None = None
    source: str | None = None
    point: str | None = None
    count: str | None = None
    filter: str | None = None
    metric: str | None = None
    higher_is_better: bool | None = None
    n_train: float | None = None
    n_test: float | None = None
    quantile: float | None = None
    threshold: float | None = None
    positive: str | None = None
    clip: float | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    drop_duplicates: bool = False


def read_files(
    files: Sequence[Path], options: InputOptions | None, missing: Missing = "raise"
) -> Any:
    """Read the log of one file, or of several: then each holds a model, and may be NAME=FILE."""
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
    own = plain and (len(files) == 1 or all(names_models(path) for _, path in named))
    for name, path in named:
        if names.count(name) > 1 and not own:
            raise LogError(
                f"two files are called {name!r}, and models are named after their files. Expected "
                f"names: {name}1={path} …"
            )
    source: Any = {name: str(path) for name, path in named}
    if own:  # models keep the names that the files give them
        source = [str(path) for _, path in named] if len(files) > 1 else str(files[0])
    log = read_log(source, format=given.pop("read_as", None), missing=missing, **given)
    read_from = Path(source).name if isinstance(source, str) else type(source).__name__
    if log.attrs.get("read_from") == read_from:  # a saved log was noted when it was made
        note_unused_levels(log)
        note_errored(log.attrs)
        if copies := log.attrs.get("n_duplicates"):
            warnings.warn(f"{count_of(copies, 'copy', 'copies')} of rows left out", stacklevel=2)
    return log


def names_models(path: Path) -> bool:
    """Whether a file is of a kind that names its model: a log of inspect, or samples of lm_eval."""
    return path.is_dir() or path.suffix == ".eval" or path.name.startswith("samples_")


def missing_file(path: Path, after_prediction: bool) -> LogError:
    """Word that a file does not exist."""
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    repeat = " --prediction takes one column; repeat it for each model." if after_prediction else ""
    return LogError(
        f"there is no file {shortened(str(path))}. Expected a log, such as log.parquet."
        f"{repeat}{nearest(path.name, beside)}"
    )


def note_unused_levels(log: Any) -> None:
    """Warn of levels that no option names: without them the log is another one."""
    for name in log.index.names if isinstance(log, (pd.Series, pd.DataFrame)) else ():
        values = log.index.get_level_values(name)
        if name not in LEVELS and values.nunique() < len(values):
            warnings.warn(
                f"the column {name!r} is not used. If it holds folds, sources or repetitions, "
                f"name it by --fold, --source or --repetition.",
                stacklevel=2,
            )


def note_errored(attrs: Mapping[Any, Any]) -> None:
    """Warn of samples that were not read because of an error, in this epoch or another one."""
    errored, gaps = attrs.get("n_errored", 0), attrs.get("n_incomplete", 0)
    notes = [f"{count_of(errored, 'sample')} ended in an error"] if errored else []
    notes += [f"{count_of(gaps, 'sample')} with a gap left out of every epoch"] if gaps else []
    if notes:
        warnings.warn("; ".join(notes), stacklevel=2)


def note_dropped(number: int | None) -> None:
    """Warn of evaluations that a result leaves out."""
    if number:
        left_out = f"{count_of(number, 'evaluation')} left out"
        warnings.warn(f"{left_out}: the loss of a model is missing", stacklevel=2)


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def number_or_text(word: str) -> str | float:
    """Read a word as the number that it spells: labels of a table are numbers then."""
    for kind in (int, float) if word.lstrip("+-.")[:1].isdigit() else ():
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def split_name(file: Path) -> tuple[str, Path]:
    """Split NAME=FILE; a file without a name gives its own to the model."""
    name, equals, path = str(file).partition("=")
    if not equals or os.path.exists(file):  # also of a name that no file can have
        return file.stem, file
    return name, Path(path)


def title_of(files: Sequence[Path]) -> str:
    """Name the files for the heading of a page."""
    names = [split_name(file)[1].name for file in files]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def check_output(output: Path, files: Sequence[Path]) -> None:
    """Raise if writing would replace a file that is read, by whatever path or link."""
    target = output.resolve()
    for file in (split_name(file)[1] for file in files):
        if not file.exists():
            continue  # reading says so
        real = file.resolve()
        inside = target.suffix == ".zarr" and real.is_relative_to(target)
        if real == target or inside or (output.exists() and output.samefile(file)):
            raise LogError(
                f"{str(output)!r} is the file that is read, and writing would replace it. "
                f"Expected another name for the output."
            )
