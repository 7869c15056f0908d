"""Results as scores: in the direction and by the name that they were asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.orientation import TURNED, turn
from cvstats.errors import LogError
from cvstats.metrics import METRICS

Result = TypeVar("Result", pd.DataFrame, xr.Dataset)

LEVELS = ("estimate", "mean", "err_cv", "err_ncv")
"""Numbers of a result that are values of the loss, or differences where it compares models."""

LIMITS = ("lower", "upper")
SIGNED = ("difference", "statistic", "bias")
"""Numbers that change their sign with the loss."""

MARGINS = ("margin_low", "margin_high")
OTHER_SIDE = {"less": "greater", "greater": "less"}


def as_scores(result: Result) -> Result:
    """Turn a result about losses into one about the score that they were made from.

    Parameters
    ----------
    result : DataFrame or Dataset
        What an interval or a comparison returned for a log that `cvstats.losses` made of a score
        such as accuracy, AUC, F1 or R2.

    Returns
    -------
    DataFrame or Dataset
        The same with ``estimate`` turned into the score, and ``lower`` and ``upper`` exchanged;
        differences change their sign: positive is better. Standard errors and p-values stay.
        ``attrs["score"]`` is the name of the score. Errors such as RMSE stay as they are, and so
        do metrics with a target, such as the calibration slope. Where
        the level ``metric`` names several metrics, each has its own direction, and
        ``attrs["score"]`` maps each to its name (of a Dataset as JSON, which files can hold).

    Raises
    ------
    LogError
        If the attrs of the result do not name the score its losses were made from.

    Notes
    -----
    A loss is one minus a score in [0, 1], or minus another score. The interval covers the score
    with the same probability, since it is the same interval.

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
    naive_bayes     0.648   0.64  0.656
    """
    facts = getattr(result, "attrs", {})
    is_log = "loss" in facts and "method" not in facts
    if is_log or not isinstance(result, (pd.DataFrame, xr.Dataset)):
        raise LogError(
            f"{'a log' if is_log else f'a {type(result).__name__}'} is not a result. Expected what "
            f"an interval or a comparison returned, as in cvstats.as_scores(log.cvci.wald())."
        )
    metric, orientation = facts.get("metric"), facts.get("orientation")
    if metric is None:
        raise LogError(
            "the attrs of this result do not name the score its losses were made from. Expected a "
            "log of cvstats.losses(…, loss='auc') or of another score."
        )
    if orientation is None:
        several: Result = each_metric_turned(result, facts)
        return several
    return turned(result, str(metric), str(orientation), facts)


def each_metric_turned(result: Any, facts: Mapping[Any, Any]) -> Any:
    """Turn the part of each metric in its own direction."""
    parts = facts.get("metrics") or {}
    if isinstance(parts, str):  # what results of xarray can write to a file
        parts = json.loads(parts)
    of_array = isinstance(result, xr.Dataset)
    names = np.array([])
    if of_array and "metric" in result.coords:
        names = result["metric"].to_numpy().reshape(-1)
    elif not of_array and "metric" in result.index.names:
        names = result.index.get_level_values("metric").to_numpy()
    if not len(names) or not set(names) <= set(parts):
        raise LogError(
            "this result mixes several metrics, each with a direction of its own. Expected the "
            "level 'metric' in the result. Ask for each metric: by='metric'; or for one that keeps "
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
    """Turn the numbers of a result, and name the score."""
    found = result.copy()
    found.attrs = {**facts, "score": score_words(metric)}
    if orientation not in TURNED:
        return found
    way = "-score" if "difference" in found else orientation
    for name in found:
        if name in LEVELS:
            found[name] = turn(found[name], way)
        elif name in SIGNED and "in_set" not in found:  # that of a best set has no direction
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
    """Name a metric in texts."""
    return METRICS[metric].words if metric in METRICS else metric
