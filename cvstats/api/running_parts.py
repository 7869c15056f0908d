"""All parts of a log at once, where there is nothing to refuse in any of them."""

from __future__ import annotations

import numpy as np

from cvstats.containers import Groups
from cvstats.core.cautions import Caution
from cvstats.core.result import Result
from cvstats.core.types import IntArray
from cvstats.intervals import wald
from cvstats.intervals.registry import fold_level

__all__ = ["wald_of_parts"]

RESAMPLED = ("sample", "outer", "count")


def wald_of_parts(
    groups: Groups, *, variance: str, fold_weights: str, alternative: str, alpha: float
) -> Result | None:
    """Wald intervals of all parts; None where one of them has to be asked by itself."""
    folded = wald.cells_needed(variance, fold_weights)
    levels, fold = groups.design.levels, fold_level(groups.design)
    if any(level in levels for level in RESAMPLED) or not groups.whole_splits():
        return None
    repeated = tuple(level for level in ("repetition",) if level in levels)
    by = (*repeated, *((fold,) if fold is not None else ()))
    cells = groups.log.moments(groups.first(by if folded else repeated))
    whole = cells.over(tuple(dict.fromkeys((groups.name, *repeated))))
    if (cells if variance == "within-fold" else whole).count.min() < 2:
        return None
    n_folds = folds_of_parts(groups, by)
    one = np.where(n_folds == 1, np.int64(Caution.ONE_FOLD), np.int64(0))
    if "fold" not in levels:
        one[n_folds > 1] = np.int64(Caution.SOURCES_AS_FOLDS)
    return wald.wald_of_parts(
        cells, variance=variance, fold_weights=fold_weights, alternative=alternative,
        alpha=alpha, n_folds=n_folds, caution=one,
    )  # fmt: skip


def folds_of_parts(groups: Groups, by: tuple[str, ...]) -> IntArray:
    """Count the folds in the first repetition of each part; 1 where nothing names folds."""
    if by in ((), ("repetition",)):
        return np.ones(len(groups.codes), dtype=np.int64)
    cut, _ = groups.cut(0, by)
    starts, cells = cut.starts[:-1], np.diff(cut.starts)
    if "repetition" not in by:
        return cells
    first = np.repeat(cut.codes[starts, 0], cells)
    return np.add.reduceat((cut.codes[:, 0] == first).astype(np.int64), starts)
