"""Results as scores: in the direction and by the name that they were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import pandas as pd
import xarray as xr

from cvstats.errors import LogError
from cvstats.metrics import METRICS

__all__ = ["as_scores"]

Result = TypeVar("Result", pd.DataFrame, xr.Dataset)

LEVELS = ("estimate", "mean")
"""Numbers of a result that are values of the loss."""

LIMITS = ("lower", "upper")
DIFFERENCES = ("difference", "statistic")
"""Numbers that change their sign with the loss."""

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
        ``attrs["score"]`` is the name of the score. Errors such as RMSE stay as they are.

    Raises
    ------
    LogError
        If the result does not say from which score its losses were made.

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
    facts = result.attrs
    metric, orientation = facts.get("metric"), facts.get("orientation")
    if isinstance(metric, (list, tuple)) or (metric is not None and orientation is None):
        raise LogError(
            "this result holds several metrics, each with a direction of its own. Expected one. "
            "Take one metric of the log before: log.xs('auc', level='metric')."
        )
    if metric is None:
        raise LogError(
            "this result does not say from which score its losses were made. Expected a log of "
            "cvstats.losses(…, loss='auc') or of another score."
        )
    return turned(result, str(metric), str(orientation), facts)


def turned(result: Result, metric: str, orientation: str, facts: Mapping[Any, Any]) -> Result:
    """Turn the numbers of a result, and say of which score they are."""
    found = result.copy()
    if orientation != "error":
        paired = "difference" in found
        for name in found:
            if name in LEVELS:
                found[name] = score(found[name], orientation)
            elif name in DIFFERENCES:
                found[name] = 0 - found[name]
        if all(name in found for name in LIMITS):
            lower, upper = (found[name].copy() for name in LIMITS)
            turn = "-score" if paired else orientation
            found["lower"], found["upper"] = score(upper, turn), score(lower, turn)
    words = METRICS[metric].words if metric in METRICS else metric
    side = facts.get("alternative")
    found.attrs = {**facts, "score": words}
    if orientation != "error" and side in OTHER_SIDE:
        found.attrs["alternative"] = OTHER_SIDE[side]
    return found


def score(loss: Any, orientation: str) -> Any:
    """Turn losses into scores."""
    return 1 - loss if orientation == "1 - score" else 0 - loss
