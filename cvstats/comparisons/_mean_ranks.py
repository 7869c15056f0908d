"""Mean ranks of models over data sets, shared by Friedman's and Nemenyi's tests (Demsar 2006)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cvstats.comparisons._pairs import model_columns
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
    """Average each model over each data set: the log, data sets by columns, and the columns."""
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
    return log, log.moments((by,)).location, columns


def mean_ranks(losses: FloatArray, columns: IntArray) -> FloatArray:
    """Rank models within each data set, 1 for the smallest loss, and average over data sets.

    ``losses`` are data sets by columns, and ``columns`` those of the models, models by carried
    cells, as is the result: NaN in cells where a model has no losses. Models that tie share the
    mean of their ranks.
    """
    from scipy import stats

    ranks = np.full(columns.shape, np.nan)
    for c, cell in enumerate(columns.T):
        if not np.isnan(losses[:, cell]).any():
            ranks[:, c] = stats.rankdata(losses[:, cell], axis=1).mean(axis=0)
    return ranks


def rank_error(n: int, k: int) -> float:
    """Compute what turns a difference of mean ranks into a studentized range, by division."""
    return float(np.sqrt(k * (k + 1) / (12 * n)))


def critical_difference(n: int, k: int, alpha: float) -> float:
    """Critical difference of the mean ranks of k models over n data sets (Nemenyi)."""
    from scipy import stats

    return float(stats.studentized_range.isf(alpha, k, np.inf)) * rank_error(n, k)
