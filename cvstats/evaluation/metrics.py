"""Experiments that are scored by metrics: every fit keeps its predictions, then come the logs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.evaluation.data import Data
from cvstats.evaluation.fit import RESPONSES, Loss, ScoringSpec
from cvstats.evaluation.loss_table import LossTable
from cvstats.loss_functions import (
    LossOptions,
    check_different,
    checked_loss,
    join_metrics,
    loss_name,
    losses,
    takes_option,
)
from cvstats.metrics import METRICS
from cvstats.plans import BoundPlan


def asks_for_metrics(loss: Loss | Sequence[Loss]) -> bool:
    """Whether there are several losses, or one that is not a mean over points."""
    if not isinstance(loss, str):
        return isinstance(loss, Sequence)
    return loss in METRICS and loss != "accuracy"


def listed_losses(loss: Loss | Sequence[Loss]) -> list[Loss]:
    """List the losses that are asked for."""
    return list(loss) if isinstance(loss, Sequence) and not isinstance(loss, str) else [loss]


def response_of(loss: Loss) -> str:
    """Name the method of a model whose predictions a loss takes."""
    if not isinstance(loss, str):
        return "predict"
    if loss in METRICS:
        return "predict_proba" if METRICS[loss].reads == "scores" else "predict"
    return RESPONSES.get(loss, "predict")


def prediction_spec(
    loss: Loss | Sequence[Loss], quantile: float | None, clip: float | None,
    truth: NDArray[Any], plan: BoundPlan,
) -> ScoringSpec:  # fmt: skip
    """Find which predictions every fit has to keep."""
    wanted = listed_losses(loss)
    check_different(wanted)
    if "count" in plan.plan.levels:
        raise LogError(
            f"{plan.plan.name} draws bootstrap samples, whose methods average losses of points. "
            f"Expected one loss of points, such as loss='zero_one'. For metrics take "
            f"cvstats.plans.k_fold."
        )
    for one in wanted:
        metric = METRICS.get(one) if isinstance(one, str) else None
        if metric is None:
            given: dict[str, Any] = {"quantile": quantile, "clip": clip}
            own = {name: given[name] for name in TAKES_GIVEN.get(str(one), ())}
            checked_loss(one, LossOptions(**own))
        elif "reference" in metric.takes:
            raise LogError(
                f"loss={one!r} needs the predictions of a reference. Expected another metric. "
                f"Log the predictions, and use cvstats.losses(…, reference=…)."
            )
    responses = tuple(dict.fromkeys(map(response_of, wanted)))
    labels = {"predict_proba", "decision_function"} & set(responses) or any(
        isinstance(one, str)
        and (one == "zero_one" or (one in METRICS and METRICS[one].reads == "labels"))
        for one in wanted
    )
    classes = tuple(np.unique(truth).tolist()) if labels else ()
    return ScoringSpec(wanted[0], responses[0], classes, LossOptions(), responses)


def metric_log(
    found: LossTable,
    data: Data,
    spec: ScoringSpec,
    loss: Loss | Sequence[Loss],
    given: Mapping[str, Any],
) -> pd.DataFrame:
    """Turn the predictions of all fits into the log of the losses that are asked for."""
    index, order = found.index_and_order(data)
    values, truth = found.losses[order], data.truth[found.points[order]]
    table: dict[Hashable, Any] = {"truth": truth}
    columns: dict[str, dict[Hashable, Any]] = {}
    at = 0
    for model in found.models:
        for response, width in zip(spec.responses, spec.widths, strict=True):
            names = [f"{response} {at + j}" for j in range(width)]
            for j, name in enumerate(names):
                column = values[:, at + j]
                labels = response == "predict" and spec.classes
                table[name] = from_codes(column, spec.classes) if labels else column
            columns.setdefault(response, {})[model] = names if width > 1 else names[0]
            at += width
    frame = pd.DataFrame(table, index=index)
    logs = {}
    for one in listed_losses(loss):
        made = losses(
            frame, "truth", columns[response_of(one)], one, **options_of(one, spec, given)
        )
        made.columns.name = "model"
        logs[loss_name(one)] = made
    log: pd.DataFrame = logs[loss] if isinstance(loss, str) else join_metrics(logs)
    return log


TAKES_GIVEN = {"pinball": ("quantile",), "log_loss": ("clip",)}
"""The options of `evaluate` that losses of points look at."""


def options_of(loss: Loss, spec: ScoringSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the options that one loss looks at."""
    metric = METRICS.get(loss) if isinstance(loss, str) else None
    if metric is None:
        own = {name: given[name] for name in TAKES_GIVEN.get(str(loss), ())}
    else:
        own = {name: given[name] for name in ("folds", "average") if takes_option(metric, name)}
    if response_of(loss) != "predict":
        several = len(spec.classes) > 2
        return own | ({"classes": spec.classes} if several else {"positive": spec.classes[1]})
    if loss == "accuracy":
        return {}
    if "average" in own and len(spec.classes) == 2 and own["average"] in (None, "binary"):
        own["positive"] = spec.classes[1]
    return own


def from_codes(codes: FloatArray, classes: Sequence[Hashable]) -> NDArray[Any]:
    """Turn the codes of predicted labels back into labels."""
    labels = np.array(classes)
    return labels[codes.astype(np.int64)]
