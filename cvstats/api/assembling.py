"""From what was read to a log: losses as they stand, or made of predictions; several files."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.measuring import losses
from cvstats.containers.align import aligned
from cvstats.errors import LogError, listed, nearest
from cvstats.io import Asked, Assembled, Tidy, assembled
from cvstats.io.numeric import refuse_commas, refuse_no_numbers
from cvstats.io.words import guarded
from cvstats.loss_functions import loss_name

__all__ = ["facts", "logged", "loss_column"]

CHANCES = ("log_loss", "brier")
"""The losses of probabilities."""


def logged(found: Any, asked: Asked, options: dict[str, Any]) -> Any:
    """Make a log of whatever was read: a table, a saved object, or several of these by name."""
    if isinstance(found, dict):
        return joined({name: logged(part, asked, options) for name, part in found.items()})
    if not isinstance(found, Tidy):
        return chosen(found, asked) if asked.loss is None else of_saved(found, asked, options)
    with guarded("this table"):
        parts = assembled(found)
    held = loss_column(parts)
    if held is None:
        return losses_of(parts, asked, options, found.called)
    if any(value is not None for value in options.values()):
        raise LogError(
            "quantile=, threshold= and positive= are for predictions, and these are not."
        )
    refuse_second_loss(asked.loss, found)
    return log_of(held, parts, found.called, asked.path)


def loss_column(parts: Assembled) -> list[str] | None:
    """Find the columns of losses; None if there are predictions."""
    if "y_true" in parts.frame:
        return None
    return list(parts.responses.values())


def refuse_second_loss(loss: Any, found: Tidy) -> None:
    """Refuse to compute a loss of losses."""
    held = str(found.attrs.get("loss", "loss"))
    if loss is not None and not (isinstance(loss, str) and loss in held):
        raise LogError(
            f"there are losses here already ({held}), and no predictions of which "
            f"{loss_name(loss)!r} could be computed. Leave loss= out."
        )


def log_of(
    held: list[str], parts: Assembled, called: str | None, path: str | None
) -> pd.Series | pd.DataFrame:
    """Turn columns of losses into numbers."""
    with guarded("the column of losses"):
        columns = {}
        for model, name in zip(parts.models, held, strict=True):
            refuse_no_numbers(parts.frame[name], called or name, path)
            values = pd.to_numeric(parts.frame[name]).astype(np.float64)
            if np.isinf(values.to_numpy()).any():
                raise LogError(f"a loss of {name!r} is infinite. Expected finite numbers.")
            columns[model] = values
        if len(columns) == 1:
            ((model, only),) = columns.items()
            only.name = (called or "loss") if model is None else model
            return only
        frame = pd.DataFrame(columns)
        frame.columns.name = "model"
        return frame


def losses_of(
    parts: Assembled, asked: Asked, options: dict[str, Any], called: str | None
) -> Any:  # fmt: skip
    """Compute the losses of predictions."""
    loss = asked.loss
    if loss is None:
        raise LogError(
            "there are predictions here, and no losses. Expected which loss to compute: "
            "loss='squared_error', 'zero_one', 'log_loss', …; or cvstats.read_predictions."
        )
    positive, threshold = options["positive"], options["threshold"]
    chances = loss in CHANCES or (loss == "zero_one" and threshold is not None)
    one = len(parts.models) == 1
    columns: Mapping[Hashable, Any]
    if chances and parts.probabilities:
        columns = parts.probabilities
        if positive is None and threshold is None:
            options = {**options, "classes": parts.classes}
        else:
            at = place_of(positive, parts.classes)
            columns = {model: names[at] for model, names in columns.items()}
            options["positive"] = parts.classes[at]
    else:
        columns = parts.responses
    if one:
        ((model, names),) = columns.items()
        columns = {(called or "loss") if model is None else model: names}
    if callable(loss):
        made = losses(parts.frame, prediction=columns, loss=loss, **options)
    else:
        used = {asked.truth or "y_true": "y_true"} | {
            str(model or called or name): name for model, name in parts.responses.items()
        }
        try:
            with guarded("the predictions"):
                made = losses(parts.frame, prediction=columns, loss=loss, **options)
        except LogError:
            refuse_commas([(word, parts.frame[name]) for word, name in used.items()], asked.path)
            raise
    if one:
        return made.iloc[:, 0]
    made.columns.name = "model"
    return made


def place_of(positive: Hashable, classes: list[Hashable]) -> int:
    """Find the class that one probability is wanted of."""
    names = [str(label) for label in classes]
    if positive is None:
        raise LogError(
            f"threshold= is for the probability of one class, and there are "
            f"{listed(map(repr, classes))}. Expected positive={classes[-1]!r} with it."
        )
    if str(positive) not in names:
        raise LogError(
            f"positive={positive!r} is no class. Expected one of {listed(map(repr, classes))}."
        )
    return names.index(str(positive))


def chosen(found: Any, asked: Asked) -> Any:
    """Choose models of a log that was saved, by the option that names columns otherwise."""
    if asked.truth is None and asked.prediction is None:
        return found
    frame = isinstance(found, (pd.DataFrame, xr.Dataset))
    known = list(found) if frame else []
    truth = asked.truth or "y_true"
    if asked.truth is not None or truth in known:
        raise LogError(
            "truth= and prediction= are for losses to be computed. Expected loss= with them, as "
            "in loss='squared_error'."
        )
    one = isinstance(asked.prediction, str)
    names = [asked.prediction] if one else list(asked.prediction)
    lost = [name for name in names if name not in known]
    if lost or not frame:
        models = f"the models {listed(map(repr, known))}" if frame else "one model"
        raise LogError(
            f"this file holds losses of {models}, and prediction= names "
            f"{(lost or names)[0]!r}.{nearest((lost or names)[0], known)} "
            f"{'Name one of them' if frame else 'Leave it out'}."
        )
    return found[names[0]] if one else found[names]


def of_saved(found: Any, asked: Asked, options: dict[str, Any]) -> Any:
    """Compute the losses of predictions that were saved, or stand in a dataset."""
    if not isinstance(found, (pd.DataFrame, xr.Dataset)):
        raise LogError("this file holds losses already. Leave loss= out.")
    truth = asked.truth or "y_true"
    if truth not in list(found):
        raise LogError(
            f"there is no column {truth!r} in this file, of which a loss could be computed. "
            f"Expected truth=, or no loss= if these are losses."
        )
    noted = found.attrs.get("models")
    models = asked.prediction or [
        name for name in (noted if isinstance(noted, list) else ()) if name in list(found)
    ]
    if not models:
        models = [name for name in found if name != truth]
    return losses(found, truth=truth, prediction=models, loss=asked.loss or "", **options)


def facts(
    source: Any, tool: str, found: Tidy, loss: Any, n_train: Any, n_test: Any
) -> dict[Hashable | None, Any]:
    """Say where a log comes from, and what is known about it."""
    path = isinstance(source, (str, PathLike))
    attrs: dict[Hashable | None, Any] = {
        "read_from": Path(source).name if path else type(source).__name__,
        "format": tool,
    }
    if loss is not None:
        attrs["loss"] = loss_name(loss)
    attrs.update(found.attrs)
    if n_train is not None:
        attrs["n_train"] = n_train if np.isscalar(n_train) else [float(n) for n in n_train]
    if n_test is not None:
        if attrs.get("holds") != "scores":
            raise LogError("n_test= is for format='scores' only: other logs tell it. Leave it out.")
        attrs["n_test"] = n_test
    if found.lost:
        attrs["lost"] = found.lost
    return attrs


def joined(logs: Mapping[str, Any]) -> pd.DataFrame | xr.Dataset:
    """Put logs of several files side by side: the same evaluations, matched by their labels."""
    models: dict[str, Any] = {}
    for file, log in logs.items():
        parts = {"": log} if isinstance(log, (pd.Series, xr.DataArray)) else dict(log.items())
        for model, part in parts.items():
            models[file if len(parts) == 1 else f"{file}/{model}"] = part
    names = list(models)
    first = models[names[0]]
    for name in names[1:]:
        try:
            models[name] = aligned(first, models[name])
        except LogError as error:
            raise LogError(f"{names[0]!r} (first) and {name!r} (second): {error}") from None
    every = [log.attrs for log in logs.values()]
    attrs = {k: v for k, v in every[0].items() if all(same(one.get(k), v) for one in every)}
    if isinstance(first, xr.DataArray):
        return xr.Dataset(models, attrs=attrs)
    frame = pd.DataFrame(models)
    frame.columns.name = "model"
    frame.attrs = attrs
    return frame


def same(one: Any, two: Any) -> bool:
    """Whether two files say the same of themselves."""
    return type(one) is type(two) and bool(np.all(one == two))
