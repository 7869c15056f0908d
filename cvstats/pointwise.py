"""Truth and prediction in, one loss for each point out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.errors import LogError, choice
from cvstats.types import FloatArray

__all__ = ["LOSSES", "LossOptions", "pointwise"]

Values = NDArray[Any]


@dataclass(frozen=True)
class LossOptions:
    """What some losses need to know besides truth and prediction."""

    quantile: float | None = None
    threshold: float | None = None
    classes: Sequence[Hashable] | None = None
    positive: Hashable = None


def squared_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared difference, in squared units of the truth."""
    return difference(truth, prediction) ** 2


def absolute_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Absolute difference, in units of the truth."""
    return np.abs(difference(truth, prediction))


def percentage_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Absolute difference as a share of the absolute truth: 0.1 is 10%."""
    wrong = np.flatnonzero(floats(truth, "truth") == 0)
    if len(wrong):
        raise LogError(
            f"percentage_error divides by the truth, which is 0 in row {wrong[0]:,} (and "
            f"{len(wrong) - 1:,} more). Expected a truth other than 0. Use absolute_error."
        )
    return np.abs(difference(truth, prediction) / floats(truth, "truth"))


def pinball(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Loss of a predicted quantile (Koenker and Bassett 1978, doi:10.2307/1913643)."""
    level = options.quantile
    if level is None or not 0 < level < 1:
        raise LogError(
            f"pinball needs the level of the predicted quantile, and got quantile={level!r}. "
            f"Expected a number between 0 and 1, such as quantile=0.9."
        )
    above = difference(truth, prediction)
    return np.maximum(level * above, (level - 1) * above)


def zero_one(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """0 for the right label, 1 for a wrong one."""
    if options.threshold is not None:
        says_yes = probabilities(prediction) >= options.threshold
        wrong = np.where(np.isnan(floats(prediction, "prediction")), np.nan, 1.0)
        return np.where(says_yes == (signs(truth, options) > 0), 0.0, wrong) * known(truth)
    if prediction.dtype.kind == "f" and truth.dtype.kind in "biuf":
        between = np.flatnonzero((prediction > 0) & (prediction < 1))
        if len(between) and set(np.unique(truth[known(truth) == 1])) <= {0, 1}:
            raise LogError(
                f"zero_one compares labels, and the predictions look like probabilities (row "
                f"{between[0]:,}: {prediction[between[0]]!r}). Expected labels such as 0 and 1. "
                f"Pass threshold=0.5, or use brier or log_loss."
            )
    wrong = np.asarray(truth != prediction, dtype=np.float64)
    return wrong * known(truth) * known(prediction)


def log_loss(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Minus the logarithm of the probability given to what happened, in nats."""
    with np.errstate(divide="ignore"):
        if prediction.ndim == 2:
            _, given = one_hot(truth, prediction, options)
            return -np.log(given)
        p = probabilities(prediction)
        y = signs(truth, options)
        return np.where(np.isnan(y), np.nan, np.where(y > 0, -np.log(p), -np.log1p(-p)))


def brier(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared error of probabilities (Brier 1950).

    For one probability ``(p - y)^2``; for a probability of each class the sum over classes,
    which for two classes is twice as much.
    """
    if prediction.ndim == 2:
        hot, _ = one_hot(truth, prediction, options)
        total: FloatArray = ((probabilities(prediction) - hot) ** 2).sum(axis=1)
        return total
    y = (signs(truth, options) + 1) / 2
    return (probabilities(prediction) - y) ** 2


def hinge(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """``max(0, 1 - y s)`` for a score s and y = 1 or -1."""
    margin = 1 - signs(truth, options) * floats(prediction, "prediction")
    return np.maximum(margin, 0.0)


LOSSES: dict[str, Callable[[Values, Values, LossOptions], FloatArray]] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "zero_one": zero_one,
    "log_loss": log_loss,
    "brier": brier,
    "pinball": pinball,
    "percentage_error": percentage_error,
    "hinge": hinge,
}


def pointwise(
    truth: Values,
    prediction: Values,
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> FloatArray:
    """One loss for each point, by name or by a function of one's own."""
    if callable(loss):
        values = np.asarray(loss(truth, prediction), dtype=np.float64)
        if values.shape != truth.shape:
            raise LogError(
                f"the loss function returned the shape {values.shape} for {len(truth):,} points. "
                f"Expected one number for each point: do not average inside it."
            )
        return values
    if loss not in LOSSES:
        raise choice("loss", loss, [*LOSSES, "a function (truth, prediction) -> losses"])
    if prediction.ndim == 2 and loss not in ("log_loss", "brier"):
        raise LogError(
            f"loss={loss!r} takes one prediction for each point, and several columns were "
            f"given with classes=. Expected loss='log_loss' or loss='brier'."
        )
    return LOSSES[loss](truth, prediction, options)


def floats(values: Values, what: str) -> FloatArray:
    """Numbers, or an error that shows the first thing that is none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise LogError(
            f"the {what} holds {values.dtype} values (first: {values.flat[0]!r}). Expected "
            f"numbers for this loss. For labels use loss='zero_one'."
        ) from error


def difference(truth: Values, prediction: Values) -> FloatArray:
    """Truth minus prediction."""
    return floats(truth, "truth") - floats(prediction, "prediction")


def known(values: Values) -> FloatArray:
    """1 where there is a value, NaN where there is none."""
    missing = np.array([v is None or v != v for v in values]) if values.dtype == object else (
        np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    )  # fmt: skip
    return np.where(missing, np.nan, 1.0)


def probabilities(prediction: Values) -> FloatArray:
    """Numbers from 0 to 1."""
    p = floats(prediction, "prediction")
    outside = np.argwhere((p < 0) | (p > 1))
    if len(outside):
        at = tuple(outside[0])
        raise LogError(
            f"a predicted probability is {p[at]!r} (row {at[0]:,}). Expected numbers from 0 to "
            f"1. If these are scores, use hinge, or turn them into probabilities."
        )
    return p


def signs(truth: Values, options: LossOptions) -> FloatArray:
    """1 for the positive class, -1 for the other one, NaN where the truth is missing."""
    there = known(truth)
    labels = list(dict.fromkeys(truth[there == 1].tolist()))
    positive: Any = options.positive
    if positive is None:
        if not set(labels) <= {0, 1} and not set(labels) <= {-1, 1}:
            raise LogError(
                f"the truth has the labels {labels[:4]!r}. Expected 0 and 1 (or -1 and 1, or "
                f"booleans) where one probability or score is predicted. Name the label that "
                f"it is for: positive={labels[0]!r}; or pass a probability for each class with "
                f"classes=."
            )
        positive = 1
    elif len(labels) > 2:
        raise LogError(
            f"the truth has {len(labels)} labels. Expected two where one probability or score "
            f"is predicted. Pass a probability for each class with classes=."
        )
    return np.where(np.asarray(truth == positive), 1.0, -1.0) * there


def one_hot(
    truth: Values, prediction: Values, options: LossOptions
) -> tuple[FloatArray, FloatArray]:
    """Which class happened, as a table; and the probability given to it."""
    classes = list(options.classes or ())
    hot = np.column_stack([np.asarray(truth == label, dtype=np.float64) for label in classes])
    stray = np.flatnonzero((hot.sum(axis=1) != 1) & ~np.isnan(known(truth)))
    if len(stray):
        raise LogError(
            f"the truth is {truth[stray[0]]!r} in row {stray[0]:,}, which is none of "
            f"classes={classes!r}. Expected the classes in the order of their columns."
        )
    p = probabilities(prediction)
    off = np.flatnonzero(np.abs(p.sum(axis=1) - 1) > 1e-3)
    if len(off):
        raise LogError(
            f"the probabilities of row {off[0]:,} add to {p[off[0]].sum():.6g}. Expected 1, with "
            f"one column for each of classes={classes!r}."
        )
    there = known(truth)
    return hot * there[:, None], (p * hot).sum(axis=1) * there
