"""Welch's degrees of freedom for logs of differences between groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.core.cells import Cells
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result, half_widths
from cvstats.core.types import FloatArray, IntArray
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Log


def qualify_contrast(result: Result, log: Log) -> Result:
    """Label an interval as one for a difference between groups, and use Welch's limits.

    Welch's limits are not used if the sampling unit is sources that occur in several groups.
    """
    target = f"difference between groups in the {result.attrs['target']}"
    result = replace(result, attrs={**result.attrs, "target": target})
    by = str(log.metadata.get("by"))
    if result.method not in ("holdout", "wald", "clustered") or by not in log.design.levels:
        return result
    if log.design.by is not None:
        raise DifferentGroups("degrees of freedom are computed for one group at a time.")
    if result.method != "clustered":
        return take_welch(result, *add_points(log, by))
    cells = log.moments(("source", by)) if log.design.has("source") else None
    if cells is None or len(cells.count) > len(cells.over(("source",)).count):
        return result
    return take_welch(result, *add_sources(cells))


def add_points(log: Log, by: str) -> tuple[FloatArray, FloatArray]:
    """Sum the squared deviations of the points of each group; also count the points.

    One row per group, one column per column of the log.
    """
    repeated = repetition_level(log.design)
    cells = log.moments((*repeated, by))
    parts, whole = cells.within(repeated), cells.over(repeated)
    apart = parts.mean - parts.repeat(whole.mean)
    each = parts.m2 + parts.count[:, None] * apart**2
    return add_up(parts.codes[:, -1], each, parts.count / len(whole.count))


def add_sources(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Sum the squared totals of sources, each of which is in one group."""
    mean = cells.over(()).mean
    each = (cells.count[:, None] * (cells.mean - mean)) ** 2
    return add_up(cells.codes[:, -1], each, np.ones(len(cells.count)))


def add_up(codes: IntArray, each: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum squares and counts by group."""
    groups, at = np.unique(codes, return_inverse=True)
    squares, n = np.zeros((len(groups), each.shape[1])), np.zeros(len(groups))
    np.add.at(squares, at, each)
    np.add.at(n, at, count)
    return squares, n


def take_welch(result: Result, squares: FloatArray, n: FloatArray) -> Result:
    """Use Student's t with the degrees of freedom of Welch and Satterthwaite.

    ``(sum_g S_g)^2 / sum_g S_g^2 / (n_g - 1)`` where S_g is the contribution of group g to the
    squared deviations (Welch 1947, doi:10.1093/biomet/34.1-2.28).
    """
    spare = np.maximum(n - 1, 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        df = squares.sum(axis=0) ** 2 / (squares**2 / spare).sum(axis=0)
    df = np.where(np.isnan(df), n.sum() - 2, df)
    down, up = half_widths(str(result.attrs["alternative"]), float(result.attrs["alpha"]), df)
    columns = dict(result.columns)
    estimate, se = columns["estimate"], columns["se"]
    with np.errstate(invalid="ignore"):
        lower = np.where(np.isinf(down), -np.inf, estimate - down * se)
        upper = np.where(np.isinf(up), np.inf, estimate + up * se)
    missing = np.isnan(columns["lower"])
    first = {
        "estimate": estimate, "lower": np.where(missing, np.nan, lower),
        "upper": np.where(missing, np.nan, upper), "se": se, "df": df,
    }  # fmt: skip
    return replace(result, columns={**columns, **first}, attrs={**result.attrs, "interval": "t"})
