"""Which of many models may be the best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.api.pairs import averaged, columns_of, directly, products
from cvstats.api.rounding import ROUNDING, levels_of
from cvstats.api.running import (
    Losses,
    Missing,
    Table,
    by_fold,
    by_repetition,
    checked_alpha,
    folds_per_repetition,
)
from cvstats.comparisons.best import CENTERS, checked_screening, may_be_best, no_losses
from cvstats.comparisons.joint import checked_draws
from cvstats.containers import Log, read
from cvstats.core.cautions import Caution
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_choice
from cvstats.intervals.registry import require
from cvstats.plans.drawing import Rng, checked_rng, seed_of

__all__ = ["best_set"]

ALIKE = 1e-6
"""Models whose difference keeps a smaller share of their spread are subtracted directly."""

SMALL_FOLD = 20
"""Points in a fold below which its mean takes a share of the variance worth a word."""


def best_set(
    losses: Losses,
    *,
    alpha: float = 0.05,
    center: Literal["fold", "global"] = "fold",
    n_draws: int = 10_000,
    rng: Rng = None,
    screening: float | None = None,
    missing: Missing = "raise",
) -> Table:
    """Find the models that may be the best: cross-validation with confidence.

    The target is the set of models with the smallest average test error of those trained in
    this cross-validation. For model m the hypothesis is that no other has a smaller error, and
    the statistic ``T_m = max_j sqrt(n) (mean_m - mean_j) / sigma_mj``. Its law under the
    hypothesis is drawn: that of ``max_j (g_m - g_j) / sigma_mj`` with g from N(0, A / n), where
    A holds the cross products of the centred losses and
    ``sigma_mj^2 = (A_mm + A_jj - 2 A_mj) / (n - 1)``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A test set or a K-fold partition, repeated or not; a column for each model. Any unit.
    alpha : float, optional
        One minus the level: a best model stays in the set with probability ``1 - alpha``.
    center : {"fold", "global"}, optional
        Whether A is taken about the means of each fold or about those of all points. The first
        asks for two points in each fold.
    n_draws : int, optional
        How many draws of g, which all models share.
    rng : int or numpy.random.Generator, optional
        The seed of the draws; ``attrs["seed"]`` tells the one that was used.
    screening : float, optional
        A level such as 0.005 (below ``alpha``). Models that are worse beyond doubt then get
        this p-value, and those that are far behind m do not count in the law of T_m. It
        changes little, save where bad models are many and noisy.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        For each model ``estimate`` (mean loss), ``p_value`` and ``in_set`` (``p_value >
        alpha``); ``lower_rank`` and ``upper_rank``, between which its true rank lies, for all
        models at once at level ``1 - alpha``; ``statistic`` (T_m), ``n_points``, ``n_folds``,
        ``n_repetitions`` and ``caution``.

    Raises
    ------
    LogError
        If the models were evaluated on different points, the log is no partition, or a fold
        of one point cannot be centred.

    Notes
    -----
    The set contains each best model with a probability of asymptotically at least ``1 -
    alpha``, for stable learners; how many others it contains is a matter of power. The
    p-value is ``(1 + #{drawn >= T_m}) / (n_draws + 1)``; two models give that of the one-sided
    Wald test, one model has 1.

    Models with the same losses share all numbers. A model that another one beats by the same
    amount on every point has p = 0.

    Ranks: rank 1 is the smallest error. ``lower_rank - 1`` models are surely better and
    ``M - upper_rank`` surely worse, by the two-sided simultaneous intervals of all pairs from
    the same draws.

    The divisor of ``sigma_mj^2`` is n - 1 whatever the centring, as in the paper; within folds of
    few points it makes the leads look larger than they are.

    Repetitions: means are taken over all of them and A is their average, as in `wald`: n is
    the number of points, never points times repetitions. Without folds (several runs of one
    test set) each point is averaged over its repetitions first, as in `holdout`.

    References
    ----------
    Lei (2020), Journal of the American Statistical Association 115(532), 1978-1997,
    doi:10.1080/01621459.2019.1672556.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> losses.cvci.best_set(rng=0)[["estimate", "in_set", "lower_rank", "upper_rank"]].round(4)
                         estimate  in_set  lower_rank  upper_rank
    model
    logistic_regression    0.1695   False           2           2
    gradient_boosting      0.1689    True           1           1
    naive_bayes            0.1731   False           3           3
    """
    checked_alpha(alpha)
    checked_choice("center", center, CENTERS)
    checked_draws(n_draws, alpha)
    checked_screening(screening, alpha)
    checked_rng(rng)
    log = read(losses, missing=missing)
    require("best_set", log.design)
    repetitions, folds = log.design.number("repetition"), folds_per_repetition(log)
    seed = seed_of(rng)
    estimate = log.moments(by_repetition(log)).over(()).mean[0]
    used = averaged(log) if folds == 1 and repetitions > 1 else log
    n = int(used.design.splits().rows[0])
    if n < 2:
        raise LogError("best_set needs at least two points and this log has 1.")
    columns = columns_of(log)
    found: dict[str, NDArray[Any]] = {"estimate": estimate, **no_losses(log.panels.width)}
    for cell, squares, apart, same in spreads(used, columns, center):
        part = may_be_best(
            apart, squares, same, n=n, alpha=alpha, n_draws=n_draws, seed=seed, screening=screening
        )
        for name, values in part.items():
            found[name][cell] = values
    for name, count in {"n_points": n, "n_folds": folds, "n_repetitions": repetitions}.items():
        found[name] = np.full(log.panels.width, count)
    caution = found.pop("caution")
    doubt = Caution.FEW_POINTS if n < 30 else Caution(0)
    if center == "fold" and folds > 1 and n < SMALL_FOLD * folds:
        doubt |= Caution.SMALL_FOLDS
    caution[~np.isnan(estimate)] |= np.int64(doubt)
    attrs: dict[str, Any] = {
        "alpha": alpha, "center": center, "n_draws": n_draws, "seed": seed, "screening": screening,
    }  # fmt: skip
    attrs = {name: fact for name, fact in attrs.items() if fact is not None}
    return log.label(Result("best_set", found, caution, attrs))


def spreads(
    log: Log, columns: IntArray, center: str
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, IntArray]]:
    """Yield for each carried cell its columns, the spread of differences, means and twins.

    Models that are masked there are none of its columns, nor is a cell where all are.
    """
    by = by_fold(log) if center == "fold" and folds_per_repetition(log) > 1 else by_repetition(log)
    found = log.moments(by)
    if center == "fold" and found.count.min() < 2:
        raise LogError(
            "center='fold' needs at least two points in each fold, and this log has folds of one "
            "point (leave-one-out?). Use center='global'."
        )
    whole = found.over(())
    for every in columns.T:
        cell = every[~np.isnan(whole.mean[0, every])]
        if len(cell) == 0:
            continue
        cross, apart = products(log, cell, found)
        level = levels_of(whole.mean[0, cell], cross.diagonal(), float(whole.count[0]))
        yield cell, *exactly(log, cell, by, cross, apart, ROUNDING * level)


def exactly(
    log: Log,
    cell: IntArray,
    by: tuple[str, ...],
    cross: FloatArray,
    apart: FloatArray,
    tiny: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Turn cross products into sums of squares of differences, in one repetition on average.

    Models that are nearly alike are subtracted point by point, for the difference of their sums
    of squares would be rounding. Differences as small as the rounding of the losses are none:
    then two models are twins, and the first of them stands for both.
    """
    m, n = len(cell), log.design.splits().rows.sum()
    own = cross.diagonal()
    both = own[:, None] + own
    squares = np.maximum(both - 2 * cross, 0.0)
    same = np.arange(m)
    alike = np.triu(squares <= ALIKE * both, 1)
    first = np.flatnonzero(alike.any(axis=0))
    pairs = np.column_stack([alike[:, first].argmax(axis=0), first])  # copies of one model
    while len(pairs):
        sums, gaps = directly(log, cell, pairs, by)
        i, j = pairs.T
        squares[i, j] = squares[j, i] = sums
        small = np.maximum(tiny[i], tiny[j])
        for head, twin in pairs[(sums <= n * small**2) & (np.abs(gaps) <= small)].tolist():
            same[twin] = same[head]
        alike[i, j] = False
        lone = same == np.arange(m)
        pairs = np.argwhere((alike & lone & lone[:, None]).T)[:, ::-1]
    squares[squares <= n * np.maximum.outer(tiny, tiny) ** 2] = 0.0
    squares = squares[np.ix_(same, same)]
    return squares / log.design.number("repetition"), apart[same], same
