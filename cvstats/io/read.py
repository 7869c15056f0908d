"""Read a loss log, or predictions, from files and from the results of other tools.

The steps:

============ ===================================================================================
`load`       a path or an object -> its contents: a table, the object of a tool, a saved log; one
             or several of them -> one table
``tools/``   the contents -> the tool that wrote them, and a table with columns named as levels
             (``table``)
``as_log``   a table -> a column for each model, with the levels as index
`losses_of`  truth and predictions -> losses: `cvstats.losses`
============ ===================================================================================
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.design import LEVELS
from cvstats.errors import MOST, LogError, describe_type, is_several, listed, nearest
from cvstats.io import text as text_files
from cvstats.io.as_log import AlignedPredictions, align
from cvstats.io.paths import LONGEST, PARQUET, SUFFIXES, path_of, raise_as_log_error, refuse_stream
from cvstats.io.save import load_saved, restore_dataset
from cvstats.io.table import (
    LOSS,
    TASK,
    PredictionTable,
    ReadOptions,
    negate_scores,
    refuse_not_numbers,
    refuse_strays,
)
from cvstats.io.text import TextOptions
from cvstats.io.tools import (
    FORMATS,
    SKLEARN,
    is_inspect_log,
    is_lm_eval_sample,
    is_result,
    is_search,
    is_skore,
    parse_format,
    recognize,
    refuse_unused,
)
from cvstats.log.align import align_logs
from cvstats.log.metadata import has_several, shared_attrs
from cvstats.log.tables import TRUTH, from_arrow, is_arrow
from cvstats.loss_functions.losses import (
    LossKeywords,
    choose_columns,
    join_metrics,
    losses,
    refuse_columns,
    refuse_labels,
    refuse_unknown,
    resolve_loss,
    split_options,
    uses_option,
)
from cvstats.loss_functions.pointwise import loss_name
from cvstats.options import check_choices, find_choices


def read_log(
    path_or_object: Any,
    *,
    format: str | None = None,
    loss: str | Callable[[Any, Any], Any] | Sequence[str | Callable[[Any, Any], Any]] | None = None,
    truth: str | None = None,
    prediction: str | Sequence[str] | None = None,
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    count: str | None = None,
    by: str | Sequence[str] | None = None,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    cv: Any = None,
    filter: str | Mapping[str, str] | None = None,
    metric: str | Mapping[str, str] | None = None,
    higher_is_better: bool | None = None,
    n_train: float | Sequence[float] | None = None,
    n_test: float | None = None,
    positive: Hashable = None,
    folds: Literal["average", "pool"] | None = None,
    weight: str | None = None,
    decimal: str | Mapping[str, str] | None = None,
    thousands: str | Mapping[str, str] | None = None,
    encoding: str | None = None,
    na_values: str | Sequence[str] | None = None,
    dayfirst: bool | None = None,
    drop_duplicates: bool = False,
    missing: str = "raise",
    **options: Unpack[LossKeywords],
) -> Any:
    """Read a loss log from a file or from the results of another tool.

    Evaluations are matched by the labels of their points, never by row order. An error is raised if
    an evaluation is a duplicate, or if models were evaluated on different splits.

    Parameters
    ----------
    path_or_object : path, object, or several of them
        A file: ``.parquet``, ``.csv``, ``.tsv``, ``.jsonl``, ``.json``, ``.arff``, ``.nc``,
        ``.zarr``, ``.eval``, a folder of Parquet files (a key in the name of a folder, such as
        ``fold=0``, is a level), of ``.eval`` files, or of samples of lm-evaluation-harness; if a
        model has several runs on a task, the newest is read. An object: a table, a mapping of
        columns, the result of ``cross_validate``, ``cross_val_predict`` or ``cross_val_score``
        (one score per split, with ``cv=`` and the name of the score as ``metric=``), a fitted
        ``GridSearchCV`` or ``RandomizedSearchCV``, or its ``cv_results_`` as a dict, DataFrame or
        CSV file (each candidate is a model with one score per split, since a search stores no
        predictions), a report of skore, a log of inspect. Several models evaluated on the same
        points: a list of files, or a mapping of model names to files or objects.
    format : str, optional
        ``cross_validate``, ``cross_val_predict``, ``cross_val_score``, ``search``, ``skore``,
        ``tidymodels``, ``caret``, ``mlr3``, ``openml``, ``autogluon``, ``lm-eval``, ``inspect``,
        ``nixtla``, ``scores`` (one score per split) or ``columns``. All except ``autogluon`` and
        ``scores`` are recognized automatically. Also the type of a file without a suffix, such as
        ``csv``.
    loss : str, callable or list, optional
        For predictions: the loss or metric of `cvstats.losses`, or a list of them for a log with
        the level ``metric``. ``log_loss``, ``brier`` and ``auc`` use the probabilities of the
        classes, other losses the prediction. For several losses or scores: the name of one.
    truth, prediction, model : str, optional
        Columns of the truth, of the predictions (a list for several models) and of the
        models' names, if they are not recognized. For a log written by `save_log`, ``prediction``
        selects models.
    sample, outer, repetition, fold, source, point, count : str, optional
        Columns of the levels, for ``columns`` and ``scores``; ``source`` for other tables too. For
        arrays, and NetCDF or Zarr files of other programs, dimensions or coordinates, such as
        ``point="time"`` for daily forecasts.
    by : str or sequence of str, optional
        For ``columns``: more columns to keep as levels, such as a segment, for results with the
        same ``by=``. A metric such as ``auc`` has a value for each of their labels.
    X, y, groups, cv : optional
        Inputs that a tool does not store: the data and the truth of ``cross_validate``, truth and
        splitter of ``cross_val_predict``, the splitter of ``cross_val_score`` and of
        ``cv_results_`` (and the data, to count the points of each split), the truth of ``openml``
        and ``autogluon`` (a Series, aligned by index). ``groups`` become sources; for
        ``autogluon``, folds.
    filter, metric : str, optional
        For ``lm-eval`` and ``inspect``: the filter and the score. A task with a single one uses it;
        for several tasks pass a mapping, as in ``metric={"gsm8k": "exact_match", "arc":
        "acc_norm"}``. For other tables, ``metric`` names the column of losses.
    higher_is_better : bool, optional
        Whether higher scores are better. A score s of ``lm-eval`` or ``inspect`` becomes the loss 1
        - s, a score of ``scores`` the loss -s. For other tables the loss is 1 - s if all scores are
        between 0 and 1, otherwise -s; see ``attrs["loss"]``.
    n_train : float or sequence, optional
        Number of training points of each model, for `cvstats.corrected_t`. Read automatically from
        scikit-learn.
    n_test : float, optional
        For ``scores``: the number of points behind each score.
    positive, folds, weight : optional
        As in `cvstats.losses`. With ``positive``, a loss of probabilities uses that class; with
        ``weight``, a metric uses the weights in that column, for ``columns``.
    decimal, thousands : str or mapping of column to str, optional
        For CSV files: the decimal mark (``decimal=","`` for ``0,25``) and the thousands separator
        (``thousands="."`` for ``1.024``), for all columns or some. Percentages are recognized:
        ``12.5%`` is 0.125.
    encoding : str, optional
        For CSV files: the encoding if it is not UTF-8, such as "latin-1".
    na_values : str or sequence of str, optional
        For CSV files: markers of missing values besides the empty string, ``NA`` and ``NaN``, such
        as ``["-", "n/a"]``.
    dayfirst : bool, optional
        For CSV files: whether dates such as 01/02/2024 start with the day or with the month. By
        default such labels remain text.
    drop_duplicates : bool, optional
        Whether to drop rows that are duplicates in every column; ``attrs["n_duplicates"]`` counts
        them. An evaluation with two different losses always raises an error.
    missing : {"raise", "drop"}, optional
        For ``inspect``: whether samples that ended in an error raise an error or are dropped, from
        all epochs. Missing losses of other formats remain NaN; the methods that use the log have
        the same option, as in ``log.cvci.interval(missing="drop")``.
    **options : optional
        Options of individual losses and metrics, such as ``quantile``, ``threshold``, ``clip``,
        ``average``, ``beta`` or ``multi_class``, as in `cvstats.losses`.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A Series for one model, or one column per model. A single model without a name is named
        after its column, or ``loss``. ``attrs`` contain its origin (``read_from``, ``format``), the
        ``loss``, and ``n_train`` if known. Logs written by `save_log` are returned unchanged.

    Raises
    ------
    LogError
        If the file cannot be read as a log; the message is one line.
    ImportError
        If a package of the extra ``io`` is needed but not installed.

    Warns
    -----
    UserWarning
        If the tool did not store what an interval needs, a run did not finish, or the newest of
        several runs was used.

    Notes
    -----
    Code in files is never executed: no pickles are loaded, and no text is evaluated. NetCDF files
    that refer to other files raise an error, and so do Zarr stores with external links or with
    filters other than plain compression.

    Labels in CSV files are read as numbers, unless two of them are the same number (``1`` and
    ``1e0``) or one starts with a zero (``01``); then they are text.

    With ``format="columns"`` (tables of no known tool), a column whose name resembles a missing
    level, such as ``Hospital`` or ``CV Split``, is kept as an index level, and results have a
    caution about it.

    Tasks of a benchmark are sources, and `cvstats.interval` gives each task the same weight:
    ``attrs["sources_are"]`` is "fixed", since the tasks were chosen, not sampled.

    Names such as ``Fold01.Rep2`` are read as repetitions and folds. Splits that a tool only numbers
    are folds if every point is tested in one of them, repeated folds if every point is tested in r
    of them, once in each r-th part, and random splits otherwise.

    References
    ----------
    Wickham (2014), Tidy data, Journal of Statistical Software 59(10),
    doi:10.18637/jss.v059.i10.

    Examples
    --------
    >>> import cvstats
    >>> table = {
    ...     "Resample": ["Fold1.Rep1", "Fold1.Rep1", "Fold2.Rep1", "Fold2.Rep1"],
    ...     "rowIndex": [1, 4, 2, 3],
    ...     "obs": [2.0, 3.5, 1.0, 4.0],
    ...     "pred": [2.5, 3.0, 1.0, 5.0],
    ... }
    >>> cvstats.read_log(table, loss="squared_error")  # as caret writes it
    repetition  fold  point
    1           1     1        0.25
                      4        0.25
                2     2        0.00
                      3        1.00
    Name: loss, dtype: float64
    """
    with shorten_messages():
        refuse_unknown(read_log, options)
        choices = find_choices(read_log) | find_choices(LossKeywords)
        check_choices({**options, "folds": folds}, choices)
        asked = ReadOptions.of_call({**locals(), **options, **parse_format(format)})
        found = read_object(path_or_object, asked)
        if not isinstance(found, PredictionTable):
            return saved_log(found, asked)
        log = log_of(found, asked)
        for said in found.warnings:
            warnings.warn(said + ".", stacklevel=2)
        log.attrs = {**facts_of(path_or_object, found), **log.attrs}
        if n_train is not None:
            sizes = [float(n) for n in n_train] if isinstance(n_train, Iterable) else n_train
            log.attrs["n_train"] = sizes
        if n_test is not None:
            if log.attrs.get("holds") != "scores":
                raise LogError("n_test= applies only to format='scores'. Omit it.")
            log.attrs["n_test"] = n_test
        return log


def read_predictions(
    path_or_object: Any,
    *,
    format: str | None = None,
    truth: str | None = None,
    prediction: str | Sequence[str] | None = None,
    model: str | None = None,
    sample: str | None = None,
    outer: str | None = None,
    repetition: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    point: str | None = None,
    count: str | None = None,
    by: str | Sequence[str] | None = None,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    cv: Any = None,
) -> pd.DataFrame:
    """Read predictions from a file or from the results of another tool, to compute several losses.

    Parameters
    ----------
    path_or_object : path, object, or several of them
        A file or an object with predictions, as in `read_log`.
    format, truth, prediction, model : str, optional
        As in `read_log`.
    sample, outer, repetition, fold, source, point, count, by : str, optional
        Columns of the levels, as in `read_log`.
    X, y, groups, cv : optional
        Inputs that a tool does not store, as in `read_log`.

    Returns
    -------
    DataFrame
        The levels as index; columns ``y_true``, one for each model, and its probabilities.
        ``attrs["models"]`` lists the columns of predictions; if there are probabilities,
        ``attrs["probabilities"]`` maps each model to its columns, and ``attrs["classes"]`` lists
        the classes.

    Raises
    ------
    LogError
        If there are no predictions, and as in `read_log`.

    References
    ----------
    Wickham (2014), Tidy data, Journal of Statistical Software 59(10),
    doi:10.18637/jss.v059.i10.

    Examples
    --------
    >>> import cvstats
    >>> table = {"rowIndex": [1, 2], "obs": ["a", "b"], "pred": ["a", "a"], "a": [0.9, 0.6],
    ...          "b": [0.1, 0.4], "Resample": ["Fold1", "Fold2"]}
    >>> log = cvstats.read_predictions(table)
    >>> log.attrs["classes"], log.attrs["probabilities"]
    (['a', 'b'], {'model': ['prob_a', 'prob_b']})
    >>> cvstats.losses(log, prediction=log.attrs["models"], loss="zero_one")["y_pred"].tolist()
    [0.0, 1.0]
    """
    with shorten_messages():
        # Any loss, so that predictions are read even if a table also has losses.
        any_loss = {**locals(), "loss": "zero_one", **parse_format(format)}
        found = read_object(path_or_object, ReadOptions.of_call(any_loss))
        if not isinstance(found, PredictionTable):
            raise LogError("this file is a log saved by save_log. Read it with read_log.")
        for said in found.warnings:
            warnings.warn(said + ".", stacklevel=2)
        with raise_as_log_error("this table"):
            parts = align(found)
        if TRUTH not in parts.frame:
            raise LogError("this contains losses, not predictions. Read it with read_log.")
        frame = parts.frame.copy()
        frame.attrs = facts_of(path_or_object, found)
        frame.attrs["models"] = list(parts.responses.values())
        if parts.probabilities:
            frame.attrs["classes"] = parts.classes
            frame.attrs["probabilities"] = {
                "model" if name is None else str(name): names
                for name, names in parts.probabilities.items()
            }
        return frame


@contextmanager
def shorten_messages() -> Iterator[None]:
    """Shorten messages that repeat a file's contents."""
    try:
        yield
    except LogError as error:
        said = str(error)
        words = re.sub(r"\S{80,}", lambda long: long[0][:40] + "…", said)
        words = "".join(c if c.isprintable() else " " for c in words)
        if words == said:
            raise
        raise LogError(words) from None


def read_object(source: Any, options: ReadOptions) -> Any:
    """Read any object as a table; logs that need no reader as they are, several by name."""
    if not (options.tool or options.container) and is_predicted(source, options):
        options = replace(options, tool="cross_val_predict")
    found = load(source, options)
    several = isinstance(found, SeveralObjects)
    if any(map(is_saved, found.parts.values() if several else [found])):
        return saved_logs(found, options)
    if is_log(found) and options == ReadOptions():
        return found
    if several:
        table = read_several(found, options)
    elif options.text.given() and not isinstance(source, (str, PathLike)):
        raise not_text(options.text, describe_type(source))
    else:
        table = read_one(found, options, "this object")
    named = table.attrs["format"] == "columns"
    return negate_scores(table, options.higher_is_better) if named else table


def is_predicted(source: Any, options: ReadOptions) -> bool:
    """Whether these are predictions of cross_val_predict, with separate truth and folds."""
    given = {"y", "cv"} & set(options.given())
    if is_search(source) or is_result(source):
        return False
    arrays: tuple[type, ...] = (np.ndarray, pd.Series)
    if "cv" in given:
        arrays = (*arrays, list)
    if isinstance(source, Mapping):
        bare = not options.given() and not {*LEVELS, LOSS, TRUTH, "truth"} & set(source)
        known = bool(source) and (bool(given) or bare)
        return known and all(isinstance(part, arrays) for part in source.values())
    return "cv" in given and isinstance(source, (*arrays, pd.DataFrame))


def is_log(found: Any) -> bool:
    """Whether a table is already a log: levels in the index, and numeric columns."""
    return (
        isinstance(found, pd.DataFrame)
        and set(found.index.names) <= set(LEVELS)
        and found.size > 0
        and all(pd.api.types.is_numeric_dtype(dtype) for dtype in found.dtypes)
        and not {TRUTH, "truth", *LEVELS} & set(found.columns)
    )


def facts_of(source: Any, found: PredictionTable) -> dict[Any, Any]:
    """Collect the attrs of a log: its origin, and what is known about it."""
    name = Path(source).name if isinstance(source, (str, PathLike)) else type(source).__name__
    lost = {"lost": found.lost} if found.lost else {}
    return {"read_from": name, "format": None, **found.attrs, **lost}


# --- saved logs -----------------------------------------------------------------------------------


def is_saved(found: Any) -> bool:
    """Whether this is a log that does not need the reader of a tool."""
    return isinstance(found, (SavedLog, xr.DataArray, xr.Dataset))


def saved_logs(found: Any, options: ReadOptions) -> Any:
    """Return a log that needs no reader, or several by name, with the names of levels."""
    several = isinstance(found, SeveralObjects)
    parts = found.parts if several else {"": found}
    if options.levels and all(isinstance(x, (xr.DataArray, xr.Dataset)) for x in parts.values()):
        parts = {key: name_levels(part, options.levels) for key, part in parts.items()}
        options = replace(options, levels={})
    if options.tool is not None and not several:
        raise LogError(f"this file is a log of cvstats, not of {options.tool}. Omit format=.")
    refuse_unused("a saved log", options, ("truth", "prediction", "by"))
    logs = {key: part.log if isinstance(part, SavedLog) else part for key, part in parts.items()}
    for log in logs.values():
        known = log.index.names if isinstance(log, (pd.Series, pd.DataFrame)) else list(log.coords)
        if lost := [name for name in options.groups if name not in known]:
            raise LogError(
                f"this log has no level {lost[0]!r}. Expected by= to be one of "
                f"{listed(map(repr, known))}.{nearest(lost[0], known)}"
            )
    if not several:
        return logs[""]
    others = [key for key, part in parts.items() if not is_saved(part)]
    if others or options.tool is not None:
        saved = next(key for key in parts if key not in others)
        other = f"format={options.tool!r} is a tool's format"
        if others:
            other = f"{Path(others[0]).name!r} is not"
        raise LogError(
            f"{Path(saved).name!r} is a log of cvstats, and {other}. Expected files of one kind: "
            f"save the others as logs first, with cvstats.save_log."
        )
    names = [key if found.named else Path(key).stem for key in logs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise LogError(
            f"two files are called {twice[0]!r}, but models are named after their files. Pass a "
            f"name for each, as in read_log({{'ridge': 'a/{twice[0]}.csv', …}})."
        )
    return dict(zip(names, logs.values(), strict=True))


def name_levels(
    array: xr.DataArray | xr.Dataset, levels: Mapping[str, str]
) -> xr.DataArray | xr.Dataset:
    """Rename dimensions and coordinates of an array to levels."""
    have = [str(name) for name in dict.fromkeys([*array.dims, *array.coords])]
    for level, name in levels.items():
        if name not in have:
            raise LogError(
                f"{level}={name!r} is not a dimension or coordinate of the array. Expected one of "
                f"{listed(map(repr, have))}.{nearest(name, have)}"
            )
        if level in have and level != name:
            raise LogError(
                f"the array already has {level!r}, but {level}={name!r} names another. Omit it, "
                "or drop one of them."
            )
    return array.rename({name: level for level, name in levels.items() if name != level})


def saved_log(found: Any, options: ReadOptions) -> Any:
    """Return one or several saved logs, or compute the losses of saved predictions."""
    if isinstance(found, dict):
        return join_logs({k: saved_log(part, options) for k, part in found.items()})
    if options.loss is None:
        return choose_models(found, options)
    if not isinstance(found, (pd.DataFrame, xr.Dataset)):
        raise LogError("this file already contains losses. Omit loss=.")
    truth = options.truth or TRUTH
    if truth not in list(found):
        raise LogError(
            f"this file has no column {truth!r} from which a loss could be computed. Pass "
            "truth=, or omit loss= if the file contains losses."
        )
    metadata = found.attrs.get("models")
    known = metadata if isinstance(metadata, list) else []
    models = options.prediction or [name for name in known if name in list(found)]
    models = models or [name for name in found if name != truth]
    return losses(found, truth=truth, prediction=models, loss=options.loss, **options.loss_options)


def choose_models(found: Any, options: ReadOptions) -> Any:
    """Select models of a saved log by ``prediction=``."""
    if options.truth is None and options.prediction is None:
        return found
    frame = isinstance(found, (pd.DataFrame, xr.Dataset))
    known = list(found) if frame else []
    if options.truth is not None or TRUTH in known:
        raise LogError("truth= and prediction= require loss=, as in loss='squared_error'.")
    names = options.predictions
    lost = [name for name in names if name not in known]
    if lost or not frame:
        models = f"the models {listed(map(repr, known))}" if frame else "one model"
        name = (lost or names)[0]
        raise LogError(
            f"this file contains losses of {models}, but prediction= names "
            f"{name!r}.{nearest(name, known)} {'Name one of them' if frame else 'Omit it'}."
        )
    return found[names[0]] if isinstance(options.prediction, str) else found[names]


def join_logs(logs: Mapping[str, Any]) -> pd.DataFrame | xr.Dataset:
    """Combine logs of several files, matching the same evaluations by label."""
    models: dict[str, Any] = {}
    for file, log in logs.items():
        parts = {"": log} if isinstance(log, (pd.Series, xr.DataArray)) else dict(log.items())
        for model, part in parts.items():
            models[file if len(parts) == 1 else f"{file}/{model}"] = part
    names = list(models)
    first = models[names[0]]
    for name in names[1:]:
        try:
            models[name] = align_logs(first, models[name])
        except LogError as error:
            raise LogError(f"{names[0]!r} (first) and {name!r} (second): {error}") from None
    attrs = shared_attrs(list(logs.values()))
    if isinstance(first, xr.DataArray):
        return xr.Dataset(models, attrs=attrs)
    frame = pd.DataFrame(models)
    frame.columns.name = "model"
    frame.attrs = attrs
    return frame


# --- losses ---------------------------------------------------------------------------------------


def log_of(found: PredictionTable, options: ReadOptions) -> Any:
    """Align a table and compute the losses; those of several metrics in the level ``metric``."""
    with raise_as_log_error("this table"):
        parts = {name: align(part) for name, part in found.by_metric().items()}
    held = str(found.attrs.get("loss", "loss"))
    sign = re.match("1 - |-|", held)
    several = found.attrs["metrics"] if has_several(found.attrs) else {}
    logs: dict[str, Any] = {}
    for name, part in parts.items():
        if TRUTH in part.frame:
            whole = {"repetition", "fold"}.isdisjoint(part.frame.index.names)
            one_set = whole and found.attrs.get("format") == "cross_validate"
            asked = options.loss_options
            log = losses_of(part, options.loss, asked, found.called, found.by, one_set)
        else:
            loss = options.loss
            if loss is not None and not (isinstance(loss, str) and loss in held):
                raise LogError(
                    f"this contains losses ({held}), not predictions from which "
                    f"{loss_name(loss)!r} could be computed. Omit loss=."
                )
            if options.loss_options:
                raise LogError(
                    f"{next(iter(options.loss_options))}= applies to predictions, but these are "
                    "losses. Omit it."
                )
            log = stored_losses(part, found.called)
        if name is None:
            return log
        logs[name] = log
        own = {"loss": (sign[0] if sign else "") + name}
        log.attrs |= several.get(name, own)
    return join_metrics(logs)


def stored_losses(parts: AlignedPredictions, called: str | None) -> pd.Series | pd.DataFrame:
    """Return losses as they are, as numbers."""
    index = parts.frame.index
    frame = parts.frame.set_axis(range(len(index)))  # with it, each column would copy the index
    with raise_as_log_error("the column of losses"):
        columns = {}
        for model, name in parts.responses.items():
            refuse_not_numbers(frame[name], called or name)
            values = pd.to_numeric(frame[name]).astype(np.float64).to_numpy()
            if np.isinf(values).any():
                raise LogError(f"a loss of {name!r} is infinite. Expected finite numbers.")
            columns[(called or LOSS) if model is None else model] = values
        if len(columns) == 1:
            ((model, only),) = columns.items()
            return pd.Series(only, index, name=model)
        return pd.DataFrame(columns, index).rename_axis(columns="model")


def losses_of(
    parts: AlignedPredictions, loss: Any, options: Mapping[str, Any], called: str | None,
    by: Sequence[str], one_set: bool,
) -> Any:  # fmt: skip
    """Compute the losses of predictions; metrics for each label of the levels ``by``.

    If they are of one split, whose sources are not folds, metrics are computed on all of its points
    by default.
    """
    if loss is None:
        raise LogError(
            "this contains predictions, not losses. Specify the loss to compute: "
            "loss='squared_error', 'zero_one', 'log_loss', …; or cvstats.read_predictions."
        )
    if is_several(loss):
        several = split_options(loss, options).items()
        return join_metrics({
            name: losses_of(parts, one, own, called, by, one_set) for name, (one, own) in several
        })  # fmt: skip
    loss, own = resolve_loss(loss, options)
    if by and uses_option(loss, "by", own):
        own = {**own, "by": list(by)}
    if one_set and uses_option(loss, "folds", own):
        own = {"folds": "pool", **own}
    columns, own = choose_columns(parts.responses, parts.probabilities, parts.classes, loss, own)
    refuse_labels(parts.frame, "y_true", columns, loss, own)
    if None in columns:
        columns = {called or LOSS: columns[None]}
    with nullcontext() if callable(loss) else raise_as_log_error("the predictions"):
        made: Any = losses(parts.frame, prediction=columns, loss=loss, **own)
    if len(columns) > 1:
        made.columns.name = "model"
        return made
    only = made.iloc[:, 0]
    only.attrs = made.attrs
    return only


# --- files and objects ----------------------------------------------------------------------------


@dataclass(frozen=True)
class SavedLog:
    """A log written by `save_log`."""

    log: Any


@dataclass(frozen=True)
class SeveralObjects:
    """Objects or files of several models; ``named`` if a mapping names them."""

    named: bool
    parts: dict[str, Any]


def load(source: Any, options: ReadOptions) -> Any:
    """Load a file, or several by name; return other objects unchanged."""
    if isinstance(source, (str, PathLike)):
        return load_path(path_of(source), options)
    if is_arrow(source):
        return from_arrow(source)
    compared = getattr(source, "reports_", None)  # for a comparison by skore
    if isinstance(compared, Mapping):
        return SeveralObjects(True, {str(name): part for name, part in compared.items()})
    if isinstance(source, Mapping) and len(source):
        result = is_result(source) or is_inspect_log(source) or is_search(source)
        kinds: tuple[Any, ...] = (str, PathLike, pd.DataFrame, Mapping)
        if options.tool in ("cross_val_predict", "autogluon", *SKLEARN):
            kinds = (*kinds, np.ndarray, pd.Series, list)
        known = (isinstance(p, kinds) or is_skore(p) or is_arrow(p) for p in source.values())
        if not result and all(known):
            parts = {str(key): load(part, options) for key, part in source.items()}
            return SeveralObjects(True, parts)
    if isinstance(source, (list, tuple)):
        if not len(source):
            raise LogError(
                f"the {type(source).__name__} is empty. Expected paths of files, or records of a "
                f"table."
            )
        if all(isinstance(part, (str, PathLike)) for part in source):
            paths = [path_of(part) for part in source]
            return SeveralObjects(False, {str(path): load_path(path, options) for path in paths})
        if all(isinstance(part, Mapping) for part in source):
            if is_lm_eval_sample(source[0]):
                from cvstats.io.tools.llm import tabulate_samples

                with raise_as_log_error("these samples"):
                    return tabulate_samples(source)
            return pd.DataFrame.from_records(list(source))
    return source


UNPACK = {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip"}
"""The program that decompresses a file, by suffix."""


def load_path(path: Path, options: ReadOptions) -> Any:
    """Load one file, or a folder of them."""
    container, tool, text = options.container, options.tool, options.text
    if path.is_dir() and container in (None, "parquet") and path.suffix != ".zarr":
        return load_folder(path, tool)
    refuse_stream(path)
    suffix = path.suffix.lower()
    if path.is_file() and suffix in UNPACK:
        raise LogError(
            f"{path.name} is compressed ({suffix[1:]}). Expected an uncompressed file. Unpack it "
            f"first: {UNPACK[suffix]} {path.name}"
        )
    if not path.exists():
        raise LogError(f"No such file: {path.name!r}. Expected the path of a file or folder.")
    kind = container or SUFFIXES.get(suffix)
    if kind is None:
        has = f"ends in {path.suffix!r}, which names" if path.suffix else "has no suffix, and so"
        raise LogError(
            f"{path.name} {has} no known file type. Expected one of {', '.join(SUFFIXES)}; or "
            "pass the type, as in format='csv'."
        )
    if text.given() and kind not in ("csv", "tsv"):
        raise not_text(text, path.name)
    with raise_as_log_error(path.name):
        if kind in ("netcdf", "zarr"):
            from cvstats.io import netcdf

            dataset, header = netcdf.read_dataset(path, kind)
            if header is None:
                return netcdf.foreign(dataset)
            return SavedLog(restore_dataset(dataset, header))
        saved = load_saved(path, kind) if tool is None else None
        if saved is None:
            return load_table(path, kind, tool, text)
        if text.given():
            raise not_text(text, "a saved log")
        return SavedLog(saved)


def not_text(text: TextOptions, what: str) -> LogError:
    """Make the error for an option that applies only to CSV files."""
    return LogError(f"{text.given()[0]}= applies to CSV files, but this is {what}. Omit it.")


def load_table(path: Path, kind: str, tool: str | None, text: TextOptions) -> Any:
    """Load a file written by another program."""
    match kind:
        case "csv" | "tsv":
            return text_files.read_csv(path, "," if kind == "csv" else "\t", text)
        case "jsonl":
            first = next(text_files.records(path), {})
            if tool == "lm-eval" or (tool is None and is_lm_eval_sample(first)):
                from cvstats.io.tools.llm import read_samples

                return read_samples(path)
            return text_files.read_jsonl(text_files.records(path))
        case "parquet":
            from cvstats.io.arrow import read_parquet

            return read_parquet(path)
        case "arff":
            return text_files.read_arff(path)
        case "eval":
            from cvstats.io.tools.llm import read_archive

            return read_archive(path)
    document = text_files.read_json(path)
    refuse_head(document)
    if isinstance(document, list) and document and all(isinstance(r, dict) for r in document):
        return text_files.read_jsonl(document)
    if not is_mapping_of_columns(document) and not is_inspect_log(document):
        labeled = isinstance(document, dict) and all(isinstance(v, dict) for v in document.values())
        way = " With pandas, write it by frame.to_json(path, orient='records')." if labeled else ""
        raise LogError(
            f"{path.name} is neither an inspect log nor an object of columns. Expected one of "
            f"these, or a list of objects (JSONL also works).{way}"
        )
    return document


def refuse_head(value: object) -> None:
    """Refuse a log of inspect without samples, and the means of lm-evaluation-harness."""
    if isinstance(value, Mapping) and {"results", "lm_eval_version"} <= set(value):
        raise LogError(
            "this file has the mean scores of lm-evaluation-harness, not its samples. Expected the "
            "files samples_*.jsonl that lm_eval --log_samples writes next to it: pass their folder "
            "to read_log."
        )
    if isinstance(value, Mapping) and {"eval", "status"} <= set(value) and "samples" not in value:
        raise LogError(
            "this is the header of an inspect log, without its samples. Expected the whole log: "
            "read the file itself, or read_eval_log(path) without header_only=True."
        )


def load_folder(folder: Path, tool: str | None) -> Any:
    """Load the rows of one log from several files, or the samples of several models."""
    name = folder.name or str(folder)
    entries = [] if tool == "lm-eval" else [
        entry for entry in folder.iterdir() if not entry.name.startswith(("_", "."))
    ]  # fmt: skip
    # Not deeper than the folders of a partitioned log: this may be a home directory.
    if any(e.suffix.lower() in PARQUET for e in entries if e.is_file()) or any(
        "=" in entry.name for entry in entries if entry.is_dir()
    ):
        with raise_as_log_error(name):
            return load_parquet_folder(folder)
    from cvstats.io.tools.llm import load_runs

    found = load_runs(folder, tool)
    if found is None and tool == "lm-eval":
        raise LogError(
            f"the folder {name} contains no samples_*.jsonl. Expected the output of lm_eval "
            "--log_samples."
        )
    if found is None:
        raise LogError(
            f"the folder {name} contains neither Parquet files nor samples_*.jsonl of lm_eval "
            "--log_samples, nor .eval files. Expected one of these, or a file. Parquet files in "
            "folders below it are read by cvstats.scan_parquet(path)."
        )
    return found if isinstance(found, pd.DataFrame) else SeveralObjects(True, found)


def load_parquet_folder(folder: Path) -> Any:
    """Concatenate the rows of the Parquet files of a folder, with the keys of each."""
    from cvstats.io import arrow

    tables: list[Any] = []
    saved = []
    files = arrow.list_files(folder)
    for file in files:
        found = load_saved(file.path, "parquet")
        saved.append(found is not None)
        table = arrow.read_parquet(file.path) if found is None else found
        if file.keys:
            table = (table.to_frame() if isinstance(table, pd.Series) else table).assign(
                **file.keys
            )
        first = tables[0] if tables else table
        if type(table) is not type(first) or names_in(table) != names_in(first):
            raise LogError(
                f"{file.path.name!r} has the columns {listed(names_in(table))}; "
                f"{files[0].path.name!r} has {listed(names_in(first))}. Expected the same columns "
                "in each file of the folder: the rows of one log. If each file contains one model, "
                "pass the files by name."
            )
        tables.append(table)
    whole = pd.concat(tables, ignore_index=isinstance(tables[0].index, pd.RangeIndex))
    return SavedLog(whole) if all(saved) and not files[0].keys else whole


def names_in(table: pd.Series | pd.DataFrame) -> list[str]:
    """List the levels and columns of a table."""
    names = [table.name] if isinstance(table, pd.Series) else list(table.columns)
    return [repr(name) for name in (*table.index.names, *names) if name is not None]


def is_mapping_of_columns(value: Any) -> bool:
    """Whether this is a mapping of columns."""
    kinds = (list, tuple, range, np.ndarray, pd.Series, pd.Index)
    return isinstance(value, Mapping) and len(value) > 0 and all(
        isinstance(column, kinds) and getattr(column, "ndim", 1) == 1 for column in value.values()
    )  # fmt: skip


# --- one table ------------------------------------------------------------------------------------


OF_TASKS = {"lm-eval", "inspect"}
"""Formats with one file per model and task."""
COUNTED = ("n_errored", "n_incomplete", "n_duplicates")
"""The attrs of files that are summed."""
OF_READING = ("format", "read_from", text_files.SPELLINGS, text_files.NESTED)
"""The attrs of a table that describe how it was read, and not its losses."""


def read_one(found: Any, options: ReadOptions, what: str) -> PredictionTable:
    """Read one object with the reader of its tool."""
    tool = recognize(found, options.tool)
    form = FORMATS[tool]
    if isinstance(options.metric, Mapping) and tool not in OF_TASKS:
        raise LogError(
            f"metric={options.metric!r} names scores of tasks, but format={tool!r} has no tasks. "
            "Expected the name of one column."
        )
    refuse_unused(f"format={tool!r}", options, form.takes)
    if tool != "columns":
        refuse_columns(options.loss_options)
    with raise_as_log_error(f"{what} (as format={tool!r})"):
        table = as_table(found) if form.of_table else found
        if tool == "columns" and not len(table):
            raise LogError("the table is empty. Expected at least one evaluation.")
        copies = 0
        if options.drop_duplicates:
            table, copies = drop_copies(table, tool)
        reader = resolve_name(f"cvstats.io.tools.{form.reader}")
        read: PredictionTable = replace(reader(table, options), takes=form.takes)
        refuse_strays(read, options)
        dropped = {"n_duplicates": copies} if copies else {}
        known: Any = table.attrs if tool == "columns" and TRUTH not in read.table else {}
        own = {name: fact for name, fact in known.items() if name not in OF_READING}
        return replace(read, attrs={**own, "format": tool, **read.attrs, **dropped})


def drop_copies(table: Any, tool: str) -> tuple[pd.DataFrame, int]:
    """Drop rows that duplicate an earlier row in every column and index level."""
    if not isinstance(table, pd.DataFrame):
        raise LogError(
            f"drop_duplicates= applies to rows of a table, but format={tool!r} has none. Omit it."
        )
    spellings: dict[str, pd.Series] = table.attrs.get(text_files.SPELLINGS, {})
    whole = table.assign(**spellings)
    if all(name is not None for name in table.index.names):
        whole = whole.reset_index()
    nested = whole.map(lambda value: isinstance(value, (dict, list))).any(axis=None)
    first = ~(whole.map(repr) if nested else whole).duplicated().to_numpy()
    kept = table[first]
    kept.attrs = dict(table.attrs)
    if spellings:
        kept.attrs[text_files.SPELLINGS] = {name: text[first] for name, text in spellings.items()}
    return kept, int((~first).sum())


def decimals_to_floats(table: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of decimals, as databases write them, unless they are long numbers."""
    found = [
        name
        for name, column in table.select_dtypes(object).items()
        if pd.api.types.infer_dtype(column, skipna=True) == "decimal"
        and column.dropna().abs().max() < 2**53
    ]
    if not found or not table.columns.is_unique:
        return table
    return table.astype(dict.fromkeys(found, np.float64))


def as_table(found: Any) -> pd.DataFrame:
    """Convert an object to a table."""
    if isinstance(found, pd.DataFrame):
        return decimals_to_floats(found)
    if isinstance(found, pd.Series):
        return found.to_frame("loss" if found.name is None else found.name)
    if is_inspect_log(found):
        from cvstats.io.tools.llm import tabulate_log

        return tabulate_log(found)
    refuse_head(found)
    if is_split_table(found):
        return pd.DataFrame(found["data"], columns=found["columns"])
    if is_mapping_of_columns(found):
        lengths = {str(name): len(values) for name, values in found.items()}
        if len(set(lengths.values())) > 1:
            raise LogError(
                "the columns have different lengths: "
                f"{listed(f'{name!r} {n:,}' for name, n in lengths.items())}. Expected equal "
                "lengths."
            )
        return pd.DataFrame(
            {
                name: v.array if isinstance(v, (pd.Series, pd.Index)) else np.asarray(v)
                for name, v in found.items()
            }
        )
    raise unreadable(found)


SPLIT_TABLE = {"columns", "data", "index"}
"""The keys of a table as JSON with ``orient="split"``."""


def is_split_table(value: Any) -> bool:
    """Whether this is a table as JSON of pandas and MLflow: names of columns, and rows."""
    if not (isinstance(value, Mapping) and {"columns", "data"} <= value.keys() <= SPLIT_TABLE):
        return False
    columns, rows = value["columns"], value["data"]
    return isinstance(columns, list) and isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == len(columns) for row in rows
    )  # fmt: skip


def unreadable(found: Any) -> LogError:
    """Make the error for an object that cannot be read, with a call that converts it."""
    library = type(found).__module__.partition(".")[0]
    kind = "" if library in ("builtins", "_io") else f"{library} "
    ways = {
        "to_pandas": "Convert it to pandas: read_log(table.to_pandas(), …).",
        "collect": "Load it into memory: read_log(frame.collect(), …).",
        "compute": "Load it into memory: read_log(table.compute(), …).",
        "read": "Pass the path of the file, or a table: pandas.read_csv(file).",
    }
    way = next((f" {words}" for name, words in ways.items() if hasattr(found, name)), "")
    if isinstance(found, Mapping):
        some = {str(key): value for key, value in list(found.items())[:MOST]}
        held = listed(
            (f"{key!r}: {type(value).__name__}" for key, value in some.items()), len(found)
        )
        return LogError(
            f"a {kind}{type(found).__name__} of {held or 'nothing'} cannot be read. Expected "
            f"columns of one length, a file or table for each model, or the result of "
            f"cross_validate. Arrays of predictions of several models need y= and cv=."
        )
    name = f"{kind}{type(found).__name__}"
    return LogError(
        f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name} cannot be read. Expected a path, a "
        f"pandas table, a mapping of columns, or the result of scikit-learn's cross_validate.{way}"
    )


# --- several objects ------------------------------------------------------------------------------


def read_several(found: SeveralObjects, options: ReadOptions) -> PredictionTable:
    """Read objects with one model each, and stack the models in rows."""
    tools = {recognize(part, options.tool) for part in found.parts.values()}
    if not found.named and tools <= OF_TASKS:
        from cvstats.io.tools.llm import join_tasks

        joined = join_tasks(found.parts)
        if isinstance(joined, pd.DataFrame):
            return read_one(joined, options, "these files")
        found = found if joined is None else SeveralObjects(True, joined)
    parts = dict(found.parts)
    for key, part in found.parts.items():
        if isinstance(part, SeveralObjects):  # a directory
            if len(part.parts) > 1:
                raise LogError(
                    f"{Path(key).name!r} contains several models: {listed(map(repr, part.parts))}. "
                    "Expected a file for each model, or only this directory."
                )
            (parts[key],) = part.parts.values()
    read = {key: read_one(part, options, Path(key).name) for key, part in parts.items()}
    tables = name_tasks([name_models(table, key, found.named) for key, table in read.items()])
    formats = {table.attrs["format"] for table in tables}
    if len(formats) > 1:
        raise LogError(
            f"the files have several formats: {listed(sorted(formats))}. Expected one format."
        )
    if len({frozenset(set(table.table.columns) & set(LEVELS)) for table in tables}) > 1:
        raise LogError(
            "the files have different levels, so they share no evaluations. Expected the same "
            "design in each."
        )
    same = all(dict(table.probabilities) == dict(tables[0].probabilities) for table in tables)
    lost = tables[0].lost
    if any(table.lost != lost for table in tables):
        said = zip(parts, tables, strict=True)
        lost = "; ".join(f"{Path(key).name}: {table.lost}" for key, table in said if table.lost)
    short = [file if len(file) <= LONGEST else Path(file).name for file in parts]
    some = [f"{name}: {file!r}" for name, file in zip(("'first'", "'second'"), short, strict=False)]
    some += ["…"] * (len(parts) > 2)
    call = f"Omit one file, or name the models: read_log({{{', '.join(some)}}}, …)"
    return PredictionTable(
        pd.concat([table.table for table in tables], ignore_index=True),
        tables[0].probabilities if same else {},
        common_facts(tables),
        lost,
        "; ".join(table.note for table in tables if table.note),
        kept=[name for name in tables[0].kept if all(name in table.kept for table in tables)],
        takes=tables[0].takes,
        twice="" if found.named else call,
        separate=True,
    )


def name_tasks(tables: Sequence[PredictionTable]) -> list[PredictionTable]:
    """Use the task of each file as its source, if there are several tasks."""
    tasks = {table.attrs.get(TASK) for table in tables}
    if len(tasks) < 2 or not any(tasks):
        return list(tables)
    named = []
    for table in tables:
        task = table.attrs.get(TASK)
        if task is not None and "source" not in table.table:
            table = replace(table, table=table.table.assign(source=task))
        rest = {name: fact for name, fact in table.attrs.items() if name != TASK}
        named.append(replace(table, attrs={**rest, "sources_are": "fixed"}))
    return named


def name_models(found: PredictionTable, key: str, by_key: bool) -> PredictionTable:
    """Add the name of its model to the rows of one object."""
    found = found.stacked()
    table = found.table
    own = "model" in table and (not by_key or table["model"].nunique() > 1)
    if own and by_key and found.attrs["format"] != "lm-eval":
        table = table.assign(model=key + "/" + table["model"].astype(str))
    elif not own:
        table = table.assign(model=key if by_key else Path(key).stem)
    return replace(found, table=table)


def common_facts(tables: Sequence[PredictionTable]) -> dict[str, Any]:
    """Combine the attrs of files: counts are summed, training sizes must be equal."""
    attrs = dict(tables[0].attrs)
    sizes = [table.attrs.get("n_train") for table in tables]
    if any(size != sizes[0] for size in sizes):
        attrs.pop("n_train", None)
    for name in COUNTED:
        number = sum(table.attrs.get(name, 0) for table in tables)
        if number:
            attrs[name] = number
    files = [table.attrs["read_from"] for table in tables if "read_from" in table.attrs]
    if files:
        attrs["read_from"] = ", ".join(files)
    return attrs
