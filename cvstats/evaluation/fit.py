"""One fit: select rows of the data, train a clone, predict, and compute losses."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, describe_type, spelled
from cvstats.loss_functions.pointwise import LossOptions, checked_loss, loss_name, pointwise
from cvstats.metrics import METRICS

RESPONSES = {
    **dict.fromkeys(("log_loss", "brier", "net_benefit"), "predict_proba"),
    "hinge": "decision_function",
}
"""The prediction method of losses that do not use ``predict``."""

OF_CHANCES = ("scores", "probabilities")
"""The inputs of metrics that use ``predict_proba``."""

Loss = str | Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class ScoringSpec:
    """How every fit is scored.

    Parameters
    ----------
    loss : str or callable
        As for `cvstats.losses`.
    response : str
        The prediction method of the model.
    classes : tuple
        The sorted class labels; empty if ``predict`` is called.
    options : LossOptions
        The other arguments of the loss.
    responses : tuple of str
        For metrics, the prediction methods whose results are kept; the loss is then not computed.
    """

    loss: Loss
    response: str
    classes: tuple[Hashable, ...]
    options: LossOptions
    responses: tuple[str, ...] = ()

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of values per point of each response."""
        several = len(self.classes) if len(self.classes) > 2 else 1
        return tuple(several if name == "predict_proba" else 1 for name in self.responses)


@dataclass(frozen=True, eq=False)
class FitResult:
    """The losses of one fit of one model.

    Parameters
    ----------
    fit : int
        Number of the fit in the plan.
    model : str
        Name of the model.
    losses : array of float, shape (points,) or (points, numbers), optional
        A loss for each distinct test point, in ascending order of rows, or its predictions; None if
        the fit failed.
    no_information : float, optional
        If the fit is tested on its own sample: the mean loss over all pairs of a truth and a
        prediction.
    failure : Exception, optional
        The exception, if the fit failed.
    """

    fit: int
    model: Hashable
    losses: FloatArray | None = None
    no_information: float | None = None
    failure: BaseException | None = None


def response_of(loss: Loss, given: Mapping[str, Any]) -> str:
    """Name the prediction method that a loss uses."""
    if not isinstance(loss, str):
        return "predict"
    of_chances = loss in METRICS and METRICS[loss].reads in OF_CHANCES
    if of_chances or "threshold" in given:
        return "predict_proba"
    return RESPONSES.get(loss, "predict")


def scoring_spec(loss: Loss, given: Mapping[str, Any], truth: NDArray[Any]) -> ScoringSpec:
    """Check the loss against the target, and find which predictions it uses."""
    options = LossOptions.of(given)
    checked_loss(loss, options)
    if more := [name for name in given if not hasattr(options, name)]:
        raise LogError(
            f"loss={loss_name(loss)!r} is a mean over points and does not use {more[0]}=. Omit it."
        )
    response = response_of(loss, given)
    if response == "predict":
        return ScoringSpec(loss, response, (), options)
    if truth.dtype.kind == "f" and np.any(truth % 1 != 0):
        raise LogError(
            f"loss={loss!r} is for classes, but y looks continuous. Expected labels, or another "
            "loss, such as squared_error."
        )
    classes = tuple(np.unique(truth).tolist())
    if len(classes) < 2:
        raise LogError(f"loss={loss!r} is for classes, but y has only {classes[0]!r}.")
    if len(classes) == 2:
        return ScoringSpec(loss, response, classes, replace(options, positive=classes[1]))
    if response == "decision_function" or options.threshold is not None:
        raise LogError(f"loss={loss!r} is for two classes, but y has {len(classes)}.")
    return ScoringSpec(loss, response, classes, replace(options, classes=classes))


def run_fit(
    score: Callable[..., tuple[FloatArray, float | None]],
    number: int,
    model: Hashable,
    *arguments: Any,
) -> FitResult:
    """Call `fit_and_score` or its cached version, and return an exception as a result.

    If it were raised in a worker process, the exception would lose its cause.
    """
    try:
        return FitResult(number, model, *score(*arguments))
    except Exception as error:
        return FitResult(number, model, failure=picklable_error(error))


def fit_and_score(
    key: str,
    train: IntArray,
    points: IntArray,
    apparent: bool,
    estimator: Any,
    data: Values,
    spec: ScoringSpec,
) -> tuple[FloatArray, float | None]:
    """Train a clone of the estimator and compute its loss at each of the points.

    Parameters
    ----------
    key : str
        Identifies estimator, data and scoring in a cache; not used here.
    train, points : array of int
        Rows to train on, including repeats, and distinct rows to test on, in ascending order.
    apparent : bool
        Whether the fit is tested on its own sample.
    estimator, data, spec
        The estimator to clone, the data, and the scoring.

    Returns
    -------
    losses : array of float, shape (points,)
    no_information : float or None
        The no-information rate of an apparent fit.
    """
    clone = import_module("sklearn.base").clone
    fitted = clone(estimator).fit(take_rows(data.X, train), take_rows(data.y, train))
    if spec.responses:
        return kept_predictions(fitted, take_rows(data.X, points), spec), None
    predicted = predictions(fitted, take_rows(data.X, points), spec)
    truth = data.truth[points]
    losses = pointwise(truth, predicted, spec.loss, spec.options)
    if not apparent:
        return losses, None
    again = np.searchsorted(points, train)  # each point as often as in the sample
    return losses, no_information(truth[again], predicted[again], spec.loss, spec.options)


def kept_predictions(fitted: Any, X: Any, spec: ScoringSpec) -> FloatArray:
    """Compute all predictions that the metrics need, as numbers: labels as codes."""
    columns: list[NDArray[Any]] = []
    for response in spec.responses:
        found = predictions(fitted, X, replace(spec, response=response))
        if response == "predict" and spec.classes:
            found = np.searchsorted(np.array(spec.classes), found)
        columns.append(found.reshape(len(found), -1))
    return np.column_stack(columns).astype(np.float64)


def predictions(fitted: Any, X: Any, spec: ScoringSpec) -> NDArray[Any]:
    """Compute the predictions that the loss uses."""
    if not hasattr(fitted, spec.response):
        raise LogError(
            f"{describe_type(fitted)} has no {spec.response}, which loss={spec.loss!r} "
            "requires. Expected a classifier that has it; for others use zero_one."
        )
    found = np.asarray(getattr(fitted, spec.response)(X))
    if spec.response == "predict_proba":
        return probabilities(fitted, found, spec.classes)
    if found.ndim == 2 and found.shape[1] == 1:
        return found[:, 0]
    if found.ndim != 1:
        raise LogError(
            f"{spec.response} returned the shape {found.shape}. Expected one number for each point."
        )
    return found


def probabilities(fitted: Any, found: NDArray[Any], classes: tuple[Hashable, ...]) -> NDArray[Any]:
    """Sort the columns by class; a class that was not in the training sample has probability 0.

    For two classes, only the probability of the second one is returned.
    """
    known = np.asarray(fitted.classes_).tolist()
    columns = np.zeros((len(found), len(classes)))
    for at, label in enumerate(known):
        columns[:, classes.index(label)] = found[:, at]
    return columns[:, 1] if len(classes) == 2 else columns


def picklable_error(error: Exception) -> BaseException:
    """Return this exception if it can be pickled, otherwise one with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    return error


def no_information(
    truth: NDArray[Any],
    prediction: NDArray[Any],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> float:
    """Average the loss over all pairs of a truth and a prediction (Efron and Tibshirani 1997, 28).

    Squared error, Brier score and 0/1 loss take one step per point, absolute error also a sort.
    Other losses take one step per distinct truth and prediction, which are few for classes.
    """
    if loss == "squared_error":
        return squared(truth, prediction)
    if loss == "brier" and prediction.ndim == 1:
        return squared(truth == options.positive, prediction)
    if loss == "brier":
        pairs = zip(options.classes or (), prediction.T, strict=True)
        return float(sum(squared(truth == label, column) for label, column in pairs))
    if loss == "absolute_error":
        return absolute(truth.astype(np.float64), prediction.astype(np.float64))
    if loss == "zero_one":
        return zero_one(truth, prediction)
    values, shares = counted(truth)
    rates = [
        float(np.mean(pointwise(np.full(len(truth), value), prediction, loss, options)))
        for value in values
    ]
    return float(np.average(rates, weights=shares))


def squared(truth: NDArray[Any], prediction: NDArray[Any]) -> float:
    """``var(y) + var(f) + (mean(y) - mean(f))^2``, the variances with divisor n."""
    y, f = truth.astype(np.float64), prediction.astype(np.float64)
    return float(np.var(y) + np.var(f) + (np.mean(y) - np.mean(f)) ** 2)


def zero_one(truth: NDArray[Any], prediction: NDArray[Any]) -> float:
    """``sum_c p_c (1 - q_c)``, the shares of a class among truths and predictions."""
    labels, shares = counted(truth)
    same = [float(np.mean(np.asarray(prediction == label))) for label in labels]
    return float(sum(p * (1 - q) for p, q in zip(shares, same, strict=True)))


def absolute(truth: FloatArray, prediction: FloatArray) -> float:
    """Mean distance of all pairs, from the sorted predictions and their running sums."""
    origin = np.mean(prediction)  # keeps the precision of running sums
    f = np.sort(prediction - origin)
    y = truth - origin
    n = len(f)
    below = np.searchsorted(f, y)
    running = np.concatenate([[0.0], np.cumsum(f)])
    total = y * below - running[below] + (running[n] - running[below]) - y * (n - below)
    return float(np.mean(total) / n)


def counted(truth: NDArray[Any]) -> tuple[list[Any], list[float]]:
    """Find the distinct truths and their frequencies."""
    values, counts = np.unique(truth, return_counts=True)
    return list(values), (counts / len(truth)).tolist()


# --- input of estimators --------------------------------------------------------------------------


INDEXED_BY_ROW = ("csr", "csc", "lil")
"""Formats of sparse arrays that can be indexed by row."""


@dataclass(frozen=True, eq=False)
class Values:
    """The arrays that a fit needs.

    Parameters
    ----------
    X : array, sparse array, DataFrame or list
        A row for each point.
    y : array or Series
        The target as passed, to train on.
    truth : array, shape (n,)
        The target as plain numbers or labels, to compute losses with.
    """

    X: Any
    y: Any
    truth: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Data:
    """The data of an experiment, with labels of points and sources.

    Parameters
    ----------
    values : Values
        The data themselves.
    point : Index
        A label for each point.
    source : Index, optional
        The source of each point.
    """

    values: Values
    point: pd.Index
    source: pd.Index | None

    @property
    def truth(self) -> NDArray[Any]:
        """The target as plain numbers or labels."""
        return self.values.truth


def take_rows(values: Any, rows: IntArray) -> Any:
    """Select rows, including repeats, of data of any kind."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "shape"):
        return values[rows]
    return [values[row] for row in rows.tolist()]


def target_array(values: Any) -> NDArray[Any]:
    """Convert a target to an array of numbers or labels."""
    if isinstance(values, pd.Series):
        dtype = values.dtype
        if pd.api.types.is_numeric_dtype(dtype) and not isinstance(dtype, np.dtype):
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(values.to_numpy())
    return np.asarray(values)


def read_data(X: Any, y: Any, groups: Any, point: Any) -> Data:
    """Check that data, target, groups and labels match.

    Raises
    ------
    LogError
        If their lengths or their indexes differ, a target is missing, or a label is a duplicate.
    """
    shape = getattr(X, "shape", None)
    if isinstance(X, (str, Mapping)) or (shape is None and not isinstance(X, Sequence)):
        raise LogError(f"X is {describe_type(X)}. Expected an array or a DataFrame.")
    if shape == ():
        raise LogError("X is a single number. Expected an array or a DataFrame.")
    n = int(shape[0]) if shape else len(X)
    if n == 0:
        raise LogError("X is empty. Expected a row for each point.")
    for name, values in {"y": y, "groups": groups, "point": point}.items():
        if values is not None:
            check_length(name, values, n)
            check_index(name, X, values)
    truth = target_array(y)
    missing = np.flatnonzero(pd.isna(truth))
    if len(missing):
        raise LogError(
            f"y is missing (NaN) in row {missing[0]:,}, and {len(missing) - 1:,} more. Expected "
            "the true value of every point. Drop these rows from X and y."
        )
    labels = point_labels(X, point, n)
    source = None if groups is None else label_index(groups)
    check_labels(labels, source)
    if hasattr(X, "tocsr") and X.format not in INDEXED_BY_ROW:
        X = X.tocsr()
    return Data(Values(contiguous(X), contiguous(y), truth), labels, source)


def check_length(name: str, values: Any, n: int) -> None:
    """Raise unless there is one value for each point."""
    shape = getattr(values, "shape", None)
    if shape is None:
        shape = (len(values),) if isinstance(values, Sized) else ()
    if not shape:
        raise LogError(
            f"{name} is {describe_type(values)}. Expected one value for each of {n:,} rows of X."
        )
    if tuple(shape) != (n,):
        raise LogError(
            f"{name} has the shape {tuple(shape)}, but X has {n:,} rows. Expected one value for "
            "each row of X."
        )


def check_index(name: str, X: Any, values: Any) -> None:
    """Raise if values have another index than X: the order would be a guess."""
    pandas = isinstance(X, (pd.DataFrame, pd.Series)) and isinstance(values, pd.Series)
    if pandas and not X.index.equals(values.index):
        raise LogError(
            f"{name} and X have different indexes. Expected the same labels in the same order: "
            f"{name}.loc[X.index]. If only the order of the rows counts, pass {name}.to_numpy()."
        )


def label_index(labels: Any) -> pd.Index:
    """Make an index of labels, without expanding tuples."""
    one_dimensional = isinstance(labels, (pd.Series, np.ndarray, pd.Index))
    if one_dimensional and not isinstance(labels, pd.MultiIndex):
        index: pd.Index = pd.Index(labels).rename(None)
    else:
        index = pd.Index(list(labels), tupleize_cols=False)
    return index


def point_labels(X: Any, point: Any, n: int) -> pd.Index:
    """Label the points by ``point``, the index of X, or the row number."""
    if point is not None:
        return label_index(point)
    if isinstance(X, (pd.DataFrame, pd.Series)):
        return label_index(X.index)
    return pd.RangeIndex(n)


def check_labels(point: pd.Index, source: pd.Index | None) -> None:
    """Raise unless every point has a label that is unique within its source."""
    for name, labels in {"point": point, "groups": source}.items():
        if labels is not None and labels.hasnans:
            at = int(np.flatnonzero(labels.isna())[0])
            raise LogError(f"{name} has no label (NaN) in row {at:,}. Expected one for each row.")
    scope: list[Any] = [point] if source is None else [source, point]
    again = np.flatnonzero(
        pd.MultiIndex.from_arrays([pd.factorize(s)[0] for s in scope]).duplicated()
    )
    if len(again):
        label: Hashable = point[int(again[0])]
        raise LogError(
            f"row {again[0]:,} has the duplicate label {spelled(label)}. Expected a unique label "
            "for each point. Pass labels as point=, or number the rows: "
            f"X.reset_index(drop=True), y.reset_index(drop=True)."
        )


def contiguous(values: Any) -> Any:
    """Copy an array that is not contiguous, so that it is equal in every process."""
    if type(values) is np.ndarray and not (values.flags.c_contiguous or values.flags.f_contiguous):
        return np.ascontiguousarray(values)
    return values
