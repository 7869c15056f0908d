"""Results as scores, with the requested name and direction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.orientation import TURNED, turn
from cvstats.errors import LogError, describe_type
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS

Result = TypeVar("Result", pd.DataFrame, xr.Dataset)

LEVELS = ("estimate", "mean", "err_cv", "err_ncv")
"""Columns with values of the loss, or with differences if models are compared."""

LIMITS = ("lower", "upper")
SIGNED = ("difference", "statistic", "bias")
"""Columns that change sign with the loss."""

MARGINS = ("margin_low", "margin_high")
OTHER_SIDE = {"less": "greater", "greater": "less"}


def as_scores(result: Result) -> Result:
    """Convert a result for losses back to the score from which the losses were made.

    Parameters
    ----------
    result : DataFrame or Dataset
        The result of an interval or a comparison for a log that `cvstats.losses` made from a
        score such as accuracy, AUC, F1 or R2.

    Returns
    -------
    DataFrame or Dataset
        The same with ``estimate`` converted to the score, and ``lower`` and ``upper`` exchanged;
        differences change sign: positive is better. Standard errors and p-values are unchanged.
        ``attrs["score"]`` is the name of the score. Errors such as RMSE are unchanged, as are
        metrics with a target value, such as the calibration slope. If the level ``metric``
        contains several metrics, each has its own sign convention, and ``attrs["score"]`` maps
        each to its name (for a Dataset as JSON, which files can store).

    Raises
    ------
    LogError
        If the attrs of the result do not name the score its losses were made from.

    Notes
    -----
    The loss is one minus the score if the score is in [0, 1], and minus the score otherwise. The
    converted interval has the same coverage, because it is the same interval on a different scale.

    References
    ----------
    LeDell, Petersen and van der Laan (2015), Electronic Journal of Statistics 9(1), 1583-1607,
    doi:10.1214/15-EJS1035.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=["naive_bayes"], loss="auc", folds="pool")
    >>> cvstats.as_scores(losses.cvci.wald())[["estimate", "lower", "upper"]].round(3)
                estimate  lower  upper
    model
    naive_bayes    0.648  0.640  0.656
    """
    facts = getattr(result, "attrs", {})
    is_log = "loss" in facts and "method" not in facts
    if is_log or not isinstance(result, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"{'a log' if is_log else describe_type(result)} is not a result. Expected "
            "the result of an interval or a comparison, as in "
            "cvstats.as_scores(log.cvci.wald())."
        )
    metric, orientation = facts.get("metric"), facts.get("orientation")
    loss = facts.get("loss")
    if metric is None and isinstance(loss, str) and loss in LOSSES:
        return turned(result, loss, "error", facts)  # as errors among several metrics
    if metric is None:
        raise LogError(
            "the attrs of this result do not name the score from which its losses were made. "
            "Expected a log from cvstats.losses(…, loss='auc') or another score."
        )
    if orientation is None:
        several: Result = each_metric_turned(result, facts)
        return several
    return turned(result, str(metric), str(orientation), facts)


def each_metric_turned(result: Any, facts: Mapping[Any, Any]) -> Any:
    """Convert the part of each metric with its own sign convention."""
    parts = facts.get("metrics") or {}
    if isinstance(parts, str):  # xarray results can write this to a file
        parts = json.loads(parts)
    of_array = isinstance(result, xr.Dataset)
    names = np.array([])
    if of_array and "metric" in result.coords:
        names = result["metric"].to_numpy().reshape(-1)
    elif not of_array and "metric" in result.index.names:
        names = result.index.get_level_values("metric").to_numpy()
    if not len(names) or not set(names) <= set(parts):
        raise LogError(
            "this result mixes several metrics with different directions. Expected the level "
            "'metric' in the result. Compute each metric: by='metric'; or select one and keep "
            "its name: log.xs('auc', level='metric', drop_level=False)."
        )
    found, order, words = [], [], {}
    for name in dict.fromkeys(names.tolist()):
        own, rows = parts[name], np.flatnonzero(names == name)
        one = result.iloc[rows] if not of_array else result
        if of_array and "metric" in result.dims:
            one = result.isel(metric=rows)
        metric, orientation = str(own.get("metric", name)), str(own.get("orientation", "error"))
        found.append(turned(one, metric, orientation, facts))
        order.append(rows)
        words[name] = found[-1].attrs["score"]
    back = np.argsort(np.concatenate(order))
    if not of_array:
        whole = pd.concat(found).iloc[back]
    else:
        whole = xr.concat(found, "metric").isel(metric=back) if len(found) > 1 else found[0]
    whole.attrs = {**facts, "score": json.dumps(words) if of_array else words}
    return whole


def turned(result: Result, metric: str, orientation: str, facts: Mapping[Any, Any]) -> Result:
    """Convert the numbers of a result, and name the score."""
    found = result.copy()
    found.attrs = {**facts, "score": score_words(metric)}
    if orientation not in TURNED:
        return found
    way = "-score" if "difference" in found else orientation
    for name in found:
        if name in LEVELS:
            found[name] = turn(found[name], way)
        elif (
            name in SIGNED and "in_set" not in found
        ):  # the statistic of a best set has no direction
            found[name] = 0 - found[name]
    if all(name in found for name in LIMITS):
        lower, upper = (found[name].copy() for name in LIMITS)
        found["lower"], found["upper"] = turn(upper, way), turn(lower, way)
    if all(name in facts for name in MARGINS):
        low, high = (facts[name] for name in MARGINS)
        found.attrs |= dict(zip(MARGINS, (0 - high, 0 - low), strict=True))
    if facts.get("alternative") in OTHER_SIDE:
        found.attrs["alternative"] = OTHER_SIDE[facts["alternative"]]
    return found


def score_words(metric: str) -> str:
    """Return the name of a metric for texts."""
    return METRICS[metric].words if metric in METRICS else metric
