"""Logs from files and from other tools, and back: the public functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from cvstats.api.assembling import facts, logged, loss_column
from cvstats.errors import LogError, choice, spelled
from cvstats.io import Asked, Tidy, assembled, named_format, read, save
from cvstats.io.outcomes import refuse_other_outcomes
from cvstats.io.paths import LONGEST, path_of, shortened
from cvstats.io.words import brief, guarded, one_line

__all__ = ["read_log", "read_predictions", "save_log"]


def read_log(
    path_or_object: Any,
    *,
    format: str | None = None,
    loss: str | Callable[[Any, Any], Any] | None = None,
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
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    cv: Any = None,
    filter: str | None = None,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    n_train: float | Sequence[float] | None = None,
    n_test: float | None = None,
    quantile: float | None = None,
    threshold: float | None = None,
    positive: Hashable = None,
    missing: str = "raise",
) -> Any:
    """Read a loss log from a file or from what another tool returned.

    Evaluations are aligned by the names of their points and never by their order, and an
    evaluation that appears twice is refused.

    Parameters
    ----------
    path_or_object : path, object, or several of them
        A file: ``.parquet``, ``.csv``, ``.tsv``, ``.jsonl``, ``.json``, ``.arff``, ``.nc``,
        ``.zarr``, ``.eval``, or a directory of samples of lm-evaluation-harness. An object: a
        table, a mapping of columns, the dict of ``cross_validate``, the array of
        ``cross_val_predict``, a log of inspect. Several models: a list of files, or a mapping
        from the model's name to its file or object, on the same evaluations.
    format : str, optional
        ``cross_validate``, ``cross_val_predict``, ``tidymodels``, ``caret``, ``mlr3``,
        ``openml``, ``autogluon``, ``lm-eval``, ``inspect``, ``nixtla``, ``scores`` (one score
        for each split) or ``columns``. Most are recognised; ``autogluon`` and ``scores`` have
        to be said. Or the kind of a file that its name does not tell, such as ``csv``.
    loss : str or callable, optional
        Where predictions are held: the loss of `cvstats.losses`. ``log_loss`` and ``brier``
        take the probabilities of the classes, other losses the prediction. Where several
        losses or scores are held: the name of one.
    truth, prediction, model : str, optional
        Columns of the truth, of the predictions (a list for several models) and of the
        models' names, where they cannot be known. Of a log that `save_log` wrote,
        ``prediction`` chooses models.
    sample, outer, repetition, fold, source, point, count : str, optional
        Columns of the levels, for ``columns`` and ``scores``; ``source`` for other tables too.
    X, y, groups, cv : optional
        What a tool does not keep: the data and the truth of ``cross_validate``, truth and
        splitter of ``cross_val_predict``, the truth of ``openml`` and ``autogluon`` (a Series,
        by whose index they are aligned). ``groups`` become sources; for ``autogluon`` folds.
    filter, metric : str, optional
        For ``lm-eval`` and ``inspect``: which filter, which score. ``metric`` names the column
        of losses of other tables.
    higher_is_better : bool, optional
        Whether a score is better when it is higher. A score s of ``lm-eval`` or ``inspect``
        becomes the loss 1 - s, one of ``scores`` the loss -s. Of other tables 1 - s where all
        scores are from 0 to 1, else -s; ``attrs["loss"]`` says which.
    n_train : float or sequence, optional
        On how many points each model was trained, for `cvstats.corrected_t`. Known for
        scikit-learn.
    n_test : float, optional
        For ``scores``: the number of points behind each score.
    quantile, threshold, positive : optional
        As in `cvstats.losses`. With ``positive``, a loss of probabilities takes the one of
        that class.
    missing : {"raise", "drop"}, optional
        Whether samples of inspect that ended in an error are refused or left out; what was left
        out of one epoch is left out of all.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A Series for one model, a column for each of several. A single model without a name is
        called after its column, or ``loss``. ``attrs`` say from where it was
        read (``read_from``, ``format``), which ``loss`` it is and ``n_train`` where known.
        What `save_log` wrote comes back as it was.

    Raises
    ------
    LogError
        In one line, whatever is wrong with the file or what is not known about it.
    ImportError
        If a package of the extra ``io`` is needed and not there.

    Warns
    -----
    UserWarning
        If the tool has not written down what an interval needs, its run did not get to its end,
        or the newest of several runs was taken.

    Notes
    -----
    Nothing that is read is executed: no pickle is loaded, no text evaluated, and a Zarr store
    that asks for anything but plain compression is refused. NetCDF and Blosc, which damaged
    files can crash, are tried in a process of their own. A text file may have 16 GiB, a JSON
    document 2 GiB, a line 64 MiB, a table 10,000 columns and 2^30 values.

    A column that is named much like a level that nobody named, such as ``Hospital`` or
    ``CV Split``, stays as an index level of that name, which results then have a caution about
    (``format="columns"``: a table of no known tool).

    Numbered splits are read as folds if every point is in one of them, as repeated folds if
    every point is in r of them and once in each r-th part, and as random splits otherwise.

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
    with brief():
        asked = asking(
            loss, truth, prediction, model, filter, metric, higher_is_better, missing,
            {"sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
             "source": source, "point": point, "count": count},
            {"X": X, "y": y, "groups": groups, "cv": cv}, path_or_object,
        )  # fmt: skip
        tool, found = read(path_or_object, named_format(format), asked)
        refuse_other_outcomes(found, asked, positive, threshold)
        options = {"quantile": quantile, "threshold": threshold, "positive": positive}
        log = logged(found, asked, options)
        if isinstance(found, Tidy):
            for said in found.doubts:
                warnings.warn(said + ".", stacklevel=2)
            log.attrs = facts(path_or_object, tool, found, loss, n_train, n_test)
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
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    cv: Any = None,
) -> pd.DataFrame:
    """Read the predictions themselves, to compute several losses of them.

    Parameters
    ----------
    path_or_object : path, object, or several of them
        A file or an object with predictions, as in `read_log`.
    format, truth, prediction, model : str, optional
        As in `read_log`.
    sample, outer, repetition, fold, source, point, count : str, optional
        Columns of the levels, as in `read_log`.
    X, y, groups, cv : optional
        What a tool does not keep, as in `read_log`.

    Returns
    -------
    DataFrame
        The levels as index; ``y_true``, a column for each model, and its probabilities.
        ``attrs["models"]`` lists the columns of predictions; where there are probabilities,
        ``attrs["probabilities"]`` maps each model to its columns and ``attrs["classes"]``
        lists their classes.

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
    with brief():
        asked = asking(
            None, truth, prediction, model, None, None, None, "raise",
            {"sample": sample, "outer": outer, "repetition": repetition, "fold": fold,
             "source": source, "point": point, "count": count},
            {"X": X, "y": y, "groups": groups, "cv": cv}, path_or_object,
        )  # fmt: skip
        # Any loss says that predictions are wanted, where a table holds losses beside them.
        tool, found = read(
            path_or_object, named_format(format), replace(asked, loss="squared_error")
        )
        if not isinstance(found, Tidy):
            raise LogError("this file is a log that save_log wrote. Read it with read_log.")
        for said in found.doubts:
            warnings.warn(said + ".", stacklevel=2)
        with guarded("this table"):
            parts = assembled(found)
        if loss_column(parts) is not None:
            raise LogError("there are losses here and no predictions. Read them with read_log.")
        frame = parts.frame
        frame.attrs = facts(path_or_object, tool, found, None, None, None)
        frame.attrs["models"] = list(parts.responses.values())
        if parts.probabilities:
            frame.attrs["classes"] = parts.classes
            frame.attrs["probabilities"] = {
                "model" if name is None else str(name): columns
                for name, columns in parts.probabilities.items()
            }
        return frame


def save_log(log: pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset, path: Any) -> None:
    """Write a log to a file, from which `read_log` gets the same object back.

    Parameters
    ----------
    log : Series, DataFrame, DataArray or Dataset
        Losses or predictions. Index, models, types of columns and labels, and ``attrs`` are
        kept.
    path : path
        The suffix says how: ``.parquet``, ``.csv`` and ``.jsonl`` for pandas, ``.nc`` and
        ``.zarr`` for pandas and xarray. A file that is there is replaced.

    Raises
    ------
    LogError
        If a label or an attribute is nothing that a file can hold: text, numbers, dates, and
        lists, tuples and mappings of these. A file that is there then stays as it was.
    ImportError
        If a package of the extra ``io`` is needed and not there.

    Notes
    -----
    CSV and JSONL begin with a line of notes, which other programs skip as a comment or as a
    first row; Parquet has them in its metadata, NetCDF and Zarr in a variable.

    References
    ----------
    Eaton et al. (2024), NetCDF Climate and Forecast (CF) Metadata Conventions,
    doi:10.5281/zenodo.11288138.

    Examples
    --------
    >>> import cvstats, tempfile, pathlib
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     cvstats.save_log(losses, path)
    ...     cvstats.read_log(path).equals(losses)
    True
    """
    if not isinstance(path, (str, PathLike)):
        raise LogError(
            f"the path is {spelled(path)}, of the type {type(path).__name__}. Expected text or a "
            f"path, as in save_log(log, 'losses.parquet')."
        )
    where = Path(path)
    try:
        save(log, where)
    except OSError as error:
        why = error.strerror or one_line(error)
        raise LogError(
            f"{shortened(where.name)} could not be written: {why}. Expected a path where one may "
            f"write."
        ) from None


def asking(
    loss: Any, truth: Any, prediction: Any, model: Any, filter: Any, metric: Any,
    higher_is_better: bool | None, missing: str, levels: dict[str, str | None],
    data: dict[str, Any], where: Any,
) -> Asked:  # fmt: skip
    """Gather the options of a call."""
    if missing not in ("raise", "drop"):
        raise choice("missing", missing, ("raise", "drop"))
    named = {level: name for level, name in levels.items() if name is not None}
    return Asked(
        loss, truth, prediction, model, named, data, filter, metric, higher_is_better, missing,
        file_of(where),
    )  # fmt: skip


def file_of(where: Any) -> str | None:
    """Name a file as it was named, or without its folders where these are many."""
    if not isinstance(where, (str, PathLike)):
        return None
    path = path_of(where)
    return str(path) if len(str(path)) <= LONGEST else path.name
