"""Which files a command reads, and how."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cvstats.api.running import Missing
from cvstats.core.design import LEVELS
from cvstats.errors import LogError, nearest
from cvstats.intervals.unused import meant
from cvstats.io.paths import SUFFIXES, path_of, refuse_stream, shortened
from cvstats.io.read import read_log

__all__ = ["Reading", "log_in", "named_files", "tell_dropped", "titled"]

LOOKS = {"fold": "folds", "source": "groups", "repetition": "repetitions"}
"""What a column looks like that is called much like a level."""


@dataclass(frozen=True)
class Reading:
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
        The column of the group that the point is of: patient, site, month.
    point
        The column that names the point, the same for every model: the id of a row.
    count
        For the bootstrap: the column of how often the point was trained on; 0 is out of bag.
    filter
        For lm-evaluation-harness and inspect: which filter.
    metric
        Which score or column of losses.
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


def log_in(files: Sequence[Path], how: Reading | None, missing: Missing = "raise") -> Any:
    """Read the log of one file, or of several: then each holds a model, and may be NAME=FILE."""
    asked = {} if how is None else {f.name: getattr(how, f.name) for f in fields(how)}
    given = {name: value for name, value in asked.items() if value is not None}
    models = given.pop("prediction", None)
    if models is not None:
        given["prediction"] = models[0] if len(models) == 1 else models
    if "positive" in given:
        given["positive"] = label(given["positive"])
    named = named_files(files)
    for _, path in named:
        refuse_stream(path_of(path))
    if not all(path.exists() for _, path in named):
        raise absent(next(path for _, path in named if not path.exists()))
    source: Any = {name: str(path) for name, path in named}
    if len(source) < len(named):
        names = [name for name, _ in named]
        twice = next(name for name in names if names.count(name) > 1)
        raise LogError(
            f"two files are called {twice!r}, and models are named after their files. Expected "
            f"names: {twice}1={named[names.index(twice)][1]} …"
        )
    ((_, path), *others) = named
    if not others and files[0] == path:
        source = str(path)  # its models keep their names
    log = read_log(source, format=given.pop("read_as", None), missing=missing, **given)
    read_from = Path(source).name if isinstance(source, str) else "dict"
    if log.attrs.get("read_from") == read_from:  # of a saved log nothing is news
        tell_unused(log)
        tell_errored(log.attrs)
    return log


def absent(lost: Path) -> LogError:
    """Word the error for a file that is not there, or whose name was mistyped."""
    folder = lost.parent
    beside = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    near = nearest(lost.name, [name for name in beside if Path(name).suffix in SUFFIXES])
    return LogError(
        f"there is no file {shortened(str(lost))}. Expected a log, such as log.parquet.{near}"
    )


def tell_unused(log: Any) -> None:
    """Name columns that look like a level and were not named: a log is another one without them."""
    if not hasattr(log, "index"):
        return  # an array
    index = log.index
    for name in index.names:
        level = None if name in LEVELS else meant(str(name))
        if level not in LOOKS or level in index.names:
            continue
        if level == "source" and index.get_level_values(name).nunique() == len(index):
            continue
        option = f"--{level} {shlex.quote(name)}"
        warnings.warn(
            f"the column {name!r} looks like {LOOKS[level]} and is not used: {option}",
            stacklevel=2,
        )


def tell_errored(attrs: Mapping[Any, Any]) -> None:
    """Say how many samples were not read because of an error, in this epoch or another one."""
    errored, gaps = attrs.get("n_errored", 0), attrs.get("n_incomplete", 0)
    said = [f"{counted(errored, 'sample')} ended in an error"] if errored else []
    if gaps:
        said.append(f"{counted(gaps, 'sample')} with a gap left out of every epoch")
    if said:
        warnings.warn("; ".join(said), stacklevel=2)


def counted(number: int, what: str) -> str:
    """Write a number with what it counts."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def tell_dropped(attrs: Mapping[Any, Any]) -> None:
    """Say how many evaluations a result leaves out."""
    number = attrs.get("n_dropped") or 0
    if number:
        left_out = f"{counted(number, 'evaluation')} left out"
        warnings.warn(f"{left_out}: some model misses its loss", stacklevel=2)


def label(word: str) -> str | float:
    """Take a word for the number that it spells: labels of a table are numbers then."""
    for kind in (int, float) if word.lstrip("+-.")[:1].isdigit() else ():
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def named_files(files: Sequence[Path]) -> list[tuple[str, Path]]:
    """Take the names of models and the paths of their files apart."""
    return [split(file) for file in files]


def split(file: Path) -> tuple[str, Path]:
    """Take NAME=FILE apart; a file without a name gives its own to the model."""
    name, equals, path = str(file).partition("=")
    if not equals or os.path.exists(file):  # also of a name that no file can have
        return file.stem, file
    return name, Path(path)


def titled(files: Sequence[Path]) -> str:
    """Name the files for the heading of a page."""
    names = [split(file)[1].name for file in files]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
