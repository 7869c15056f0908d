"""One fit: train a clone, predict, and turn predictions into losses."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError
from cvstats.evaluation.data import Values, rows_of
from cvstats.evaluation.information import no_information
from cvstats.loss_functions import LossOptions, checked_loss, pointwise
from cvstats.plans import Fit

__all__ = ["Answer", "Loss", "Question", "answer", "asked"]

RESPONSES = {"log_loss": "predict_proba", "brier": "predict_proba", "hinge": "decision_function"}
"""What a model is asked for where the loss does not take ``predict``."""

Loss = str | Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Question:
    """What every fit is asked.

    Parameters
    ----------
    loss : str or callable
        As for `cvstats.losses`.
    response : str
        Which method of the model predicts.
    classes : tuple
        The labels of a classification, sorted; empty where ``predict`` is asked.
    options : LossOptions
        What the loss needs to know besides.
    """

    loss: Loss
    response: str
    classes: tuple[Hashable, ...]
    options: LossOptions


@dataclass(frozen=True, eq=False)
class Answer:
    """What came out of one fit of one model.

    Parameters
    ----------
    fit : int
        Number of the fit in the plan.
    model : str
        Name of the model.
    losses : array of float, shape (points,), optional
        A loss for each different test point, in ascending order of rows; None if it failed.
    no_information : float, optional
        Where the fit is tested on its own sample: the mean loss of all pairs of a truth and a
        prediction.
    failure : Exception, optional
        Why it failed.
    """

    fit: int
    model: Hashable
    losses: FloatArray | None = None
    no_information: float | None = None
    failure: BaseException | None = None


def asked(loss: Loss, quantile: float | None, truth: NDArray[Any]) -> Question:
    """Put together what is asked of every fit; refuse a loss that no fit could answer."""
    checked_loss(loss, LossOptions(quantile=quantile))
    response = RESPONSES.get(loss, "predict") if isinstance(loss, str) else "predict"
    if response == "predict":
        return Question(loss, response, (), LossOptions(quantile=quantile))
    if truth.dtype.kind == "f" and np.any(truth % 1 != 0):
        raise LogError(
            f"loss={loss!r} is for classes, and y looks continuous. Expected labels, or another "
            f"loss, such as squared_error."
        )
    classes = tuple(np.unique(truth).tolist())
    if len(classes) < 2:
        raise LogError(f"loss={loss!r} is for classes, and y has only {classes[0]!r}.")
    if len(classes) == 2:
        options = LossOptions(quantile=quantile, positive=classes[1])
    elif response == "decision_function":
        raise LogError(f"loss={loss!r} is for two classes, and y has {len(classes)}.")
    else:
        options = LossOptions(quantile=quantile, classes=classes)
    return Question(loss, response, classes, options)


def answer(
    number: int, fit: Fit, points: IntArray, model: Hashable, estimator: Any, data: Values,
    question: Question,
) -> Answer:  # fmt: skip
    """Train a clone of the estimator and compute its loss at each of the points.

    A failure is handed back and not raised: the exception of a worker process would lose its
    cause on the way.
    """
    clone = import_module("sklearn.base").clone
    try:
        fitted = clone(estimator).fit(rows_of(data.X, fit.train), rows_of(data.y, fit.train))
        predicted = predictions(fitted, rows_of(data.X, points), question)
        truth = data.truth[points]
        losses = pointwise(truth, predicted, question.loss, question.options)
        rate = None
        if fit.apparent:  # each point as often as it stands in the sample
            again = np.searchsorted(points, fit.train)
            rate = no_information(truth[again], predicted[again], question.loss, question.options)
    except Exception as error:
        return Answer(number, model, failure=sendable(error))
    return Answer(number, model, losses, rate)


def predictions(fitted: Any, X: Any, question: Question) -> NDArray[Any]:
    """Ask a model for what the loss needs."""
    if not hasattr(fitted, question.response):
        raise LogError(
            f"a {type(fitted).__name__} has no {question.response}, which "
            f"loss={question.loss!r} needs. Expected a classifier that has it; use zero_one for "
            f"others."
        )
    found = np.asarray(getattr(fitted, question.response)(X))
    if question.response == "predict_proba":
        return probabilities(fitted, found, question.classes)
    if found.ndim == 2 and found.shape[1] == 1:
        return found[:, 0]
    if found.ndim != 1:
        raise LogError(
            f"{question.response} gave the shape {found.shape}. Expected one number a point."
        )
    return found


def probabilities(fitted: Any, found: NDArray[Any], classes: tuple[Hashable, ...]) -> NDArray[Any]:
    """Sort the columns by class; a class that was not in the training sample has probability 0.

    For two classes it is the probability of the second one alone.
    """
    known = np.asarray(fitted.classes_).tolist()
    columns = np.zeros((len(found), len(classes)))
    for at, label in enumerate(known):
        columns[:, classes.index(label)] = found[:, at]
    return columns[:, 1] if len(classes) == 2 else columns


def sendable(error: Exception) -> BaseException:
    """Keep an exception if it survives the way between processes, else its words."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    return error
