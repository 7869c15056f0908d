"""Mean ranks of models over data sets, shared by Friedman's and Nemenyi's tests (Demsar 2006)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.comparisons._pairs import model_columns, rounding_of_means
from cvstats.core.cells import Moments
from cvstats.core.design import Design
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_level, listed
from cvstats.intervals._method import Method
from cvstats.intervals._requirements import single_dataset
from cvstats.log.log import Log, Losses
from cvstats.log.read import read

DEMSAR = "Demsar (2006), JMLR 7, 1-30"


def several_data_sets(design: Design, by: str) -> str | None:
    """Ask for a level that names data sets, two or more."""
    if (words := single_dataset(design)) is not None:
        return words
    if by not in design.levels:
        return (
            f"the log has no level {by!r}. Expected the level that tells data sets apart, as in "
            f"by='dataset'; it has {listed(map(repr, design.levels)) or 'none'}."
        )
    if design.number(by) < 2:
        return (
            f"the log holds one label of {by!r}. Expected two data sets or more: name the level "
            f"that tells them apart in by=."
        )
    return None


def read_data_sets(
    losses: Losses, by: str, missing: str, method: Method
) -> tuple[Log, FloatArray, IntArray]:
    """Rank the models on each data set: the log, ranks by data set and column, and the columns."""
    checked_level("by", by)
    log = replace(read(losses, missing=missing), used=(by,))
    method.require(log.design, {"by": by})
    columns = model_columns(log)
    models = len(columns)
    if models < method.models:
        raise LogError(
            f"the log holds {models} model{'s' if models > 1 else ''}. Expected three or more; "
            f"for two, use compare."
        )
    return log, rank_models(log.moments((by,)), columns), columns


def rank_models(cells: Moments, columns: IntArray) -> FloatArray:
    """Rank models within each data set, 1 for the smallest mean loss.

    ``columns`` are those of the models, models by carried cells. Where a model has no losses the
    ranks are NaN. Models whose means are equal but for rounding share the mean of their ranks.
    """
    from scipy import stats

    n = cells.count[:, None]
    tiny = rounding_of_means(cells.location, np.sqrt(cells.m2) / n, n)
    ranks = np.full(cells.mean.shape, np.nan)
    for cell in columns.T:
        means = cells.location[:, cell]
        if not np.isnan(means).any():
            order = means.argsort(axis=1)
            apart = np.diff(np.take_along_axis(means, order, 1), prepend=-np.inf)
            place = np.empty(means.shape)
            steps = (apart > np.take_along_axis(tiny[:, cell], order, 1)).cumsum(axis=1)
            np.put_along_axis(place, order, steps, 1)
            ranks[:, cell] = stats.rankdata(place, axis=1)
    return ranks


def rank_error(n: int, k: int) -> float:
    """Compute what turns a difference of mean ranks into a studentized range, by division."""
    return float(np.sqrt(k * (k + 1) / (12 * n)))


def critical_difference(n: int, k: int, alpha: float) -> float:
    """Critical difference of the mean ranks of k models over n data sets (Nemenyi)."""
    from scipy import stats

    return float(stats.studentized_range.isf(alpha, k, np.inf)) * rank_error(n, k)
