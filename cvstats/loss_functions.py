"""The loss functions, and `losses`: logged predictions in, a loss log out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.containers import dask, is_dask_frame
from cvstats.containers.columns import set_level_index
from cvstats.core.types import FloatArray
from cvstats.errors import MOST, LogError, is_number, listed, nearest, plainly, spelled

__all__ = [
    "LOSSES",
    "LossOptions",
    "checked_loss",
    "is_name",
    "loss_name",
    "losses",
    "pointwise",
    "single",
    "unknown_loss",
]

Values = NDArray[Any]
Columns: TypeAlias = (
    Hashable | Sequence[Hashable] | Mapping[Hashable, Hashable | Sequence[Hashable]]
)
NUMBERS = (Real, Decimal, np.bool_)


@dataclass(frozen=True)
class LossOptions:
    """What some losses need to know besides truth and prediction."""

    quantile: float | None = None
    threshold: float | None = None
    classes: Sequence[Hashable] | None = None
    positive: Hashable = None


# --- losses of a table of predictions ----------------------------------------------------


def losses(
    predictions: pd.DataFrame | xr.Dataset,
    truth: Hashable = "y_true",
    prediction: Columns = "y_pred",
    loss: str | Callable[[Any, Any], Any] = "squared_error",
    *,
    quantile: float | None = None,
    threshold: float | None = None,
    classes: Sequence[Hashable] | None = None,
    positive: Hashable = None,
) -> Any:
    """Turn logged predictions into a loss log.

    Parameters
    ----------
    predictions : DataFrame or Dataset
        Truth and predictions as columns (variables), with the levels of a loss log. Where the
        index of a frame names no level, columns with the names of levels become its index. A
        frame of dask stays lazy; its levels are columns, and stay so.
    truth : hashable, optional
        The column of the truth.
    prediction : hashable, sequence or mapping, optional
        The column of predictions; for several models a list of columns, or a mapping from
        the model's name to its column. With ``classes`` each model has a list of columns, the
        probabilities of the classes.
    loss : str or callable, optional
        ``squared_error``, ``absolute_error``, ``percentage_error`` (a share: 0.1 is 10%),
        ``pinball``, ``zero_one``, ``log_loss`` (nats), ``brier``, ``hinge``; or a function of
        two arrays that returns one loss for each point.
    quantile : float, optional
        For ``pinball``, the level of the predicted quantile.
    threshold : float, optional
        For ``zero_one`` of probabilities: from where on the positive class is predicted.
    classes : sequence, optional
        For ``log_loss`` and ``brier`` of a probability for each class: the labels, in the
        order of the columns.
    positive : hashable, optional
        For one probability or score: the label that it is for, if the truth is not 0 and 1.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        For one column of predictions a Series (DataArray), else a column (variable) for each
        model, with the levels of the predictions. The attrs name the loss: ``loss`` of a frame,
        ``long_name`` of an array; ``brier`` says ``binary``, which is (p - y)^2, or
        ``multi-class``, which is the sum over classes.

    Raises
    ------
    LogError
        If a column is missing, a probability is not one, or the truth does not fit the loss.

    Notes
    -----
    Where truth or prediction is missing the loss is NaN; nothing is dropped.

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, JASA 102(477), 359-378,
    doi:10.1198/016214506000001437.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=["naive_bayes"], loss="brier")
    >>> float(losses["naive_bayes"].mean().round(5))
    0.17308
    """
    lazy = is_dask_frame(predictions)
    if not lazy and not isinstance(predictions, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"a {type(predictions).__name__} holds no named predictions. Expected a DataFrame "
            f"or a Dataset with the columns truth={truth!r} and prediction={prediction!r}."
        )
    if classes is not None and single(classes):
        raise LogError(f"classes={classes!r} is no list. Expected the label of each column.")
    if classes is not None:  # they may be an array, such as the classes_ of a classifier
        classes = [c.item() if isinstance(c, np.generic) else c for c in classes]
    options = LossOptions(quantile, threshold, classes, positive)
    checked_loss(loss, options)
    chosen = models(prediction, classes)
    needed = [truth, *(name for names in chosen.values() for name in names)]
    require_columns(predictions, needed)
    if lazy:
        ask = partial(
            losses, truth=truth, prediction=prediction, loss=loss, quantile=quantile,
            threshold=threshold, classes=classes, positive=positive,
        )  # fmt: skip
        return dask.mapped(predictions, ask, needed, [*map(str, chosen)])
    if isinstance(predictions, pd.DataFrame):
        predictions = set_level_index(predictions, needed)
    values: dict[Hashable, Any] = {}
    for model, columns in chosen.items():
        if isinstance(predictions, pd.DataFrame):
            values[model] = of_frame(predictions, truth, columns, loss, options)
        else:
            values[model] = of_dataset(predictions, truth, columns, loss, options)
    several = classes is None and not single(prediction)
    named: dict[Hashable | None, Any] = {"loss": loss_name(loss), **brier_kind(loss, classes)}
    if not several and not isinstance(prediction, Mapping):
        ((name, only),) = values.items()
        only = only.rename(name)
        if isinstance(only, pd.Series):
            only.attrs = named
        return only
    if isinstance(predictions, xr.Dataset):
        return xr.Dataset(values)
    table = pd.DataFrame(values, index=predictions.index)
    table.attrs = named
    return table


def require_columns(predictions: pd.DataFrame | xr.Dataset, names: Iterable[Hashable]) -> None:
    """Refuse a name that no column has, or several have."""
    dataset = isinstance(predictions, xr.Dataset)
    have = list(predictions.variables if dataset else predictions.columns)
    for name in names:
        if not is_name(name) or name not in have:
            raise LogError(
                f"there is no column {name!r}. Expected truth and prediction among "
                f"{listed(map(repr, predictions))}; name them with truth= and prediction=."
                f"{nearest(name, have)}"
            )
        if have.count(name) > 1:
            raise LogError(f"several columns are called {name!r}. Expected one. Rename them.")


def single(name: Any) -> bool:
    """Whether this is the name of one column and not a collection of names."""
    text = isinstance(name, (str, bytes))
    return text or not isinstance(name, Iterable) or getattr(name, "ndim", 1) == 0


def is_name(name: object) -> bool:
    """Whether something can be the name of a column: no list, and not pandas' NA."""
    return isinstance(name, Hashable) and name is not pd.NA


def models(prediction: Any, classes: Sequence[Hashable] | None) -> dict[Hashable, list[Hashable]]:
    """Find the columns of each model."""
    chosen: dict[Hashable, list[Hashable]]
    if isinstance(prediction, Mapping):
        chosen = {
            name: [columns] if single(columns) else list(columns)
            for name, columns in prediction.items()
        }
    elif classes is not None and not single(prediction):
        chosen = {"model": list(prediction)}
    else:
        names = [prediction] if single(prediction) else list(prediction)
        chosen = {name: [name] for name in names if is_name(name)}
        if len(chosen) < len(names):
            raise LogError(f"prediction={prediction!r} names no columns, or one of them twice.")
    if not chosen:
        raise LogError("prediction= names no column. Expected at least one model's predictions.")
    expected = 1 if classes is None else len(classes)
    for name, columns in chosen.items():
        if len(columns) != expected:
            raise LogError(
                f"model {name!r} has {len(columns)} columns of predictions. Expected {expected}"
                + (
                    ", or classes= with the label of each."
                    if classes is None
                    else f", one for each of classes={list(classes)!r}."
                )
            )
    return chosen


def of_frame(
    predictions: pd.DataFrame,
    truth: Hashable,
    columns: list[Hashable],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> pd.Series:
    """Compute the losses of one model in a frame."""
    y = plain(predictions[truth])
    parts = [plain(predictions[column]) for column in columns]
    guess = parts[0] if options.classes is None else np.column_stack(parts)
    return pd.Series(pointwise(y, guess, loss, options), index=predictions.index)


def plain(column: pd.Series) -> Any:
    """Turn a column into an array of numbers where it holds numbers, else of objects."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not isinstance(column.dtype, np.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return column.to_numpy()
    return column.astype(object).where(column.notna(), None).to_numpy()


def of_dataset(
    predictions: xr.Dataset,
    truth: Hashable,
    columns: list[Hashable],
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> xr.DataArray:
    """Compute the losses of one model in a dataset; truth is broadcast to the predictions."""
    parts = xr.broadcast(*(predictions[column] for column in columns), predictions[truth])
    *guesses, y = (part.transpose(*parts[0].dims) for part in parts)
    flat = [flattened(guess) for guess in guesses]
    guess = flat[0] if options.classes is None else np.column_stack(flat)
    values = pointwise(flattened(y), guess, loss, options)
    # The truth may have dimensions that the predictions lack, and coordinates along these.
    result = guesses[0].copy(data=values.reshape(y.shape)).assign_coords(y.coords)
    named = loss if isinstance(loss, str) else "loss"
    result.attrs = {"long_name": named, **brier_kind(loss, options.classes)}
    return result


def flattened(array: xr.DataArray) -> Any:
    """Lay an array out as one column, with None for whatever marks a missing object."""
    values = array.values.reshape(-1)
    if values.dtype == object:
        values = values.copy()
        values[pd.isna(values)] = None
    return values


# --- one loss for each point ----------------------------------------------------------------------


def squared_error(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared difference, in squared units of the truth."""
    with np.errstate(over="ignore"):  # an infinite loss is refused where it is used
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
    level = level_of(options)
    above = difference(truth, prediction)
    return np.abs(np.where(above > 0, level, 1 - level) * above)


def level_of(options: LossOptions) -> float:
    """Read the level of a predicted quantile."""
    level = options.quantile
    if level is None or not is_number(level) or not 0 < level < 1:
        raise LogError(
            f"pinball needs the level of the predicted quantile, and got quantile={level!r}. "
            f"Expected a number between 0 and 1, such as quantile=0.9."
        )
    return level


def zero_one(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """0 for the right label, 1 for a wrong one."""
    if options.threshold is not None:
        says_yes = probabilities(prediction) >= options.threshold
        wrong = np.where(np.isnan(floats(prediction, "prediction")), np.nan, 1.0)
        return np.where(says_yes == (signs(truth, options) > 0), 0.0, wrong) * known(truth)
    if options.positive is not None:
        raise LogError(
            "zero_one compares labels, and needs positive= only for probabilities. Expected "
            "threshold= with it, such as threshold=0.5."
        )
    refuse_other_kinds(truth, prediction)
    if prediction.dtype.kind == "f" and truth.dtype.kind in "biuf":
        between = np.flatnonzero((prediction > 0) & (prediction < 1))
        if len(between) and set(np.unique(truth[known(truth) == 1])) <= {0, 1}:
            raise LogError(
                f"zero_one compares labels, and the predictions look like probabilities (row "
                f"{between[0]:,}: {spelled(prediction[between[0]])}). Expected labels such as 0 "
                f"and 1. Pass threshold=0.5, or use brier or log_loss."
            )
    wrong = np.asarray(truth != prediction, dtype=np.float64)
    return wrong * known(truth) * known(prediction)


def log_loss(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Minus the logarithm of the probability given to what happened, in nats."""
    with np.errstate(divide="ignore"):
        if prediction.ndim == 2:
            _, given = one_hot(truth, prediction, options)
            return 0.0 - np.log(given)  # and not -0.0 where the probability is 1
        p = probabilities(prediction)
        y = signs(truth, options)
        return np.where(np.isnan(y), np.nan, 0.0 - np.where(y > 0, np.log(p), np.log1p(-p)))


def brier(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """Squared error of probabilities (Brier 1950).

    Two classes: ``(p - y)^2``, whether one probability is predicted or both. Three or more: the
    sum over classes.
    """
    if prediction.ndim == 2:
        hot, _ = one_hot(truth, prediction, options)
        squares: FloatArray = (probabilities(prediction) - hot) ** 2
        return squares[:, 1] if squares.shape[1] == 2 else squares.sum(axis=1)
    y = (signs(truth, options) + 1) / 2
    return (probabilities(prediction) - y) ** 2


def hinge(truth: Values, prediction: Values, options: LossOptions) -> FloatArray:
    """``max(0, 1 - y s)`` for a score s and y = 1 or -1."""
    margin = 1 - signs(truth, options) * floats(prediction, "prediction")
    return np.maximum(margin, 0.0)


TAKES: dict[str, tuple[str, ...]] = {
    "zero_one": ("threshold", "positive"),
    "log_loss": ("classes", "positive"),
    "brier": ("classes", "positive"),
    "pinball": ("quantile",),
    "hinge": ("positive",),
}
"""The options that each loss looks at."""

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


OTHER_NAMES = {
    **dict.fromkeys(("mse", "mean-squared-error", "l2", "squared"), "squared_error"),
    **dict.fromkeys(("mae", "mean-absolute-error", "l1", "absolute"), "absolute_error"),
    **dict.fromkeys(("mape", "mean-absolute-percentage-error"), "percentage_error"),
    **dict.fromkeys(("logloss", "log", "nll", "cross-entropy", "deviance"), "log_loss"),
    **dict.fromkeys(("0-1", "01", "error-rate", "misclassification", "error"), "zero_one"),
    **dict.fromkeys(("quantile", "mean-pinball"), "pinball"),
}
"""What other programs call these losses, written plainly."""

NO_MEAN = "It is no mean over points, so it has no loss of a point: take"
SCORES = {
    "accuracy": "1 - accuracy is the mean of loss='zero_one'.",
    "r2": f"{NO_MEAN} loss='squared_error'.",
    **dict.fromkeys(("auc", "roc-auc", "auroc"), f"{NO_MEAN} loss='brier' or loss='log_loss'."),
    **dict.fromkeys(("f1", "precision", "recall", "balanced-accuracy"),
                    f"{NO_MEAN} loss='zero_one'."),
}  # fmt: skip
"""Scores that people ask for, and what to take instead."""


def pointwise(
    truth: Values,
    prediction: Values,
    loss: str | Callable[[Any, Any], Any],
    options: LossOptions,
) -> FloatArray:
    """One loss for each point, by name or by a function of one's own."""
    if callable(loss):
        checked_loss(loss, options)
        values = floats(np.asarray(loss(read_only(truth), read_only(prediction))), "loss")
        if values.shape != truth.shape:
            raise LogError(
                f"the loss function returned the shape {values.shape} for {len(truth):,} points. "
                f"Expected one number for each point: do not average inside it."
            )
        return values
    checked_loss(loss, options)
    return LOSSES[loss](truth, prediction, options)


def checked_loss(loss: object, options: LossOptions) -> None:
    """Refuse an unknown loss, and options that it lacks or does not look at."""
    if callable(loss):
        refuse_unused("a function of your own", options, ("classes",))
        return
    if not isinstance(loss, str) or loss not in LOSSES:
        raise unknown_loss(loss)
    refuse_unused(f"loss={loss!r}", options, TAKES.get(loss, ()))
    if loss == "pinball":
        level_of(options)
    cut = options.threshold
    if cut is not None and not (is_number(cut) and 0 <= cut <= 1):
        raise LogError(
            f"threshold={cut!r} is no probability. Expected a number from 0 to 1, such as "
            f"threshold=0.5."
        )
    if not isinstance(options.positive, Hashable):
        raise LogError(f"positive={options.positive!r} is no label. Expected one of the truth.")


def brier_kind(loss: object, classes: Sequence[Hashable] | None) -> dict[Hashable | None, str]:
    """Make the entry of attrs that says which of its two definitions a Brier score has."""
    if loss != "brier":
        return {}
    return {"brier": "binary" if classes is None or len(classes) == 2 else "multi-class"}


def loss_name(loss: object) -> str:
    """Name a loss: by its word, or a function by its own name."""
    return str(loss if isinstance(loss, str) else getattr(loss, "__name__", "loss"))


def unknown_loss(loss: object) -> LogError:
    """List the losses, and say which of them another name stands for."""
    name = plainly(loss).removeprefix("neg-").removesuffix("-loss").removesuffix("-score")
    known = f"{', '.join(map(repr, LOSSES))}, or a function (truth, prediction) -> losses"
    if name in SCORES:
        return LogError(
            f"loss={loss!r} is a score, of which more is better, and a loss is better the "
            f"smaller it is. Expected one of {known}. {SCORES[name]}"
        )
    meant = OTHER_NAMES.get(name)
    hint = f" What you mean is loss={meant!r}." if meant else nearest(name, LOSSES)
    if name in ("rmse", "root-mean-squared-error"):
        hint = " Take loss='squared_error', and the square root of the estimate and its limits."
    return LogError(f"loss={loss!r} is not known. Expected one of {known}.{hint}")


def refuse_unused(who: str, options: LossOptions, taken: Sequence[str]) -> None:
    """Refuse an option that would change nothing."""
    for option in fields(options):
        if getattr(options, option.name) is not None and option.name not in taken:
            users = [name for name, takes in TAKES.items() if option.name in takes]
            raise LogError(
                f"{who} does not use {option.name}=. Expected it with loss="
                f"{' or '.join(map(repr, users))} only. Leave it out, or choose that loss."
            )


def read_only(values: Values) -> Values:
    """Look at the same memory without the right to write: it is the user's own table."""
    view = values.view()
    view.flags.writeable = False
    return view


def floats(values: Values, what: str) -> FloatArray:
    """Take numbers as float64, or show the first thing that is none; text is no number."""
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    if values.dtype == object:
        stray = next((v for v in values.flat if v is not None and not isinstance(v, NUMBERS)), None)
        if stray is None:
            return np.asarray(values, dtype=np.float64)
    else:
        stray = values.flat[0] if values.size else values.dtype
    shown = spelled(stray) if isinstance(stray, str) else str(stray)
    raise LogError(
        f"the {what} holds {shown}, which is no number. Expected numbers for this loss. "
        f"Convert them with pd.to_numeric; for labels use loss='zero_one'."
    )


def difference(truth: Values, prediction: Values) -> FloatArray:
    """Truth minus prediction."""
    return floats(truth, "truth") - floats(prediction, "prediction")


def known(values: Values) -> FloatArray:
    """Give 1 where there is a value, NaN where there is none."""
    if values.dtype == object:
        missing = np.array([v is None or v != v for v in values], dtype=bool)
    else:
        missing = np.asarray(values != values)  # NaN and NaT
    return np.where(missing, np.nan, 1.0)


def refuse_other_kinds(truth: Values, prediction: Values) -> None:
    """Refuse to compare text with numbers: every label would be wrong."""
    kinds = []
    for values in (truth, prediction):
        labels = values[known(values) == 1]
        plain = labels.dtype.kind not in "OU"
        kinds.append({False} if plain and len(labels) else {isinstance(v, str) for v in labels})
    if all(kinds) and not kinds[0] & kinds[1]:
        here = (known(truth) * known(prediction)) == 1
        row = int(np.flatnonzero(here)[0]) if here.any() else 0
        raise LogError(
            f"zero_one compares labels, and one of truth and prediction holds text, the other "
            f"numbers (row {row:,}: {spelled(truth[row])} and {spelled(prediction[row])}). "
            f"Expected the same labels in both. For probabilities pass threshold=0.5 and "
            f"positive=."
        )


def probabilities(prediction: Values) -> FloatArray:
    """Numbers from 0 to 1."""
    p = floats(prediction, "prediction")
    outside = np.argwhere((p < 0) | (p > 1))
    if len(outside):
        at = tuple(outside[0])
        raise LogError(
            f"a predicted probability is {spelled(p[at])} (row {at[0]:,}). Expected numbers from "
            f"0 to 1. If these are scores, use hinge, or turn them into probabilities."
        )
    return p


def signs(truth: Values, options: LossOptions) -> FloatArray:
    """1 for the positive class, -1 for the other one, NaN where the truth is missing."""
    there = known(truth)
    here = truth[there == 1]
    labels = list(dict.fromkeys(here)) if here.dtype == object else np.unique(here).tolist()
    positive: Any = options.positive
    if positive is None:
        if not set(labels) <= {0, 1} and not set(labels) <= {-1, 1}:
            raise LogError(
                f"the truth has {named_labels(labels)}. Expected 0 and 1 (or -1 and 1, or "
                f"booleans) where one probability or score is predicted. {which_label(labels)}"
            )
        positive = 1
    elif len(labels) > 2:
        raise LogError(
            f"the truth has {len(labels)} labels. Expected two where one probability or score "
            f"is predicted. Pass a probability for each class with classes=."
        )
    elif len(labels) == 2 and positive not in labels:
        raise LogError(
            f"positive={positive!r} is no label of the truth. Expected {labels[0]!r} or "
            f"{labels[1]!r}."
        )
    return np.where(np.asarray(truth == positive), 1.0, -1.0) * there


def named_labels(labels: Sequence[Any]) -> str:
    """List a few labels; count many."""
    if len(labels) == 1:
        return f"the label {labels[0]!r} alone"
    many = len(labels) > MOST
    return f"{len(labels):,} values" if many else f"the labels {listed(map(repr, labels))}"


def which_label(labels: Sequence[Any]) -> str:
    """Ask which of two labels a probability is of, without a guess; of more ask for all."""
    if len(labels) <= 2:
        either = " or ".join(f"positive={label!r}" for label in labels)
        return f"Say which label it is of: {either}{' or positive=…' * (len(labels) == 1)}."
    return (
        "Pass a probability for each class with classes=; for numbers take a loss such as "
        "squared_error."
    )


def one_hot(
    truth: Values, prediction: Values, options: LossOptions
) -> tuple[FloatArray, FloatArray]:
    """Which class happened, as a table; and the probability given to it."""
    classes = list(options.classes or ())
    if options.positive is not None:
        raise LogError("classes= and positive= both say what is predicted. Expected one of them.")
    if len(set(classes)) < len(classes):
        raise LogError(f"classes={classes!r} holds a label twice. Expected each class once.")
    hot = np.column_stack([np.asarray(truth == label, dtype=np.float64) for label in classes])
    stray = np.flatnonzero((hot.sum(axis=1) != 1) & ~np.isnan(known(truth)))
    if len(stray):
        raise LogError(
            f"the truth is {spelled(truth[stray[0]])} in row {stray[0]:,}, which is none of "
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
