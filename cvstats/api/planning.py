"""How many points do I need? What a pilot log tells of a larger one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

from cvstats.api.comparing_lazily import based_lazily, gaps_of, lazy_losses, of_pairs
from cvstats.api.pairs import averaged, based, paired, usual
from cvstats.api.running import (
    Alternative,
    Losses,
    Missing,
    by_repetition,
    checked_alpha,
    checked_numbers,
)
from cvstats.comparisons.planning import parts_of_variance, planned
from cvstats.containers import Log, is_dask_frame, later
from cvstats.core.columns import Differences
from cvstats.core.result import ALTERNATIVES, Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, NotGiven, checked_choice

__all__ = ["power"]


ONE_BY_ONE = (
    "power splits the variance of each point's difference over repetitions, for which it needs the "
    "losses one by one. Expected losses in memory: log.compute(); or one repetition."
)


def power(
    losses: Losses,
    other: Losses | None = None,
    *,
    effect: float | None = None,
    reference: Hashable = None,
    alternative: Alternative = "two-sided",
    target_power: float = 0.8,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    """Plan a comparison with the spread of a pilot log: power, smallest effect, points needed.

    If the true difference were ``effect``, how probably would `compare` find it, with as many
    points as here? With se the standard error of the mean difference, the power of the
    two-sided test is ``Phi(effect / se - z) + Phi(-effect / se - z)``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several: one test set or K-fold cross-validation,
        repeated or not.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    effect : float
        The difference to be found, in the unit of the loss: what would matter, not what the
        pilot happened to show; it has to be given. Negative is better; the sign counts for
        one-sided tests.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    alternative : {"two-sided", "less", "greater"}, optional
        The test that is planned.
    target_power : float, optional
        The power that ``smallest_effect`` and ``points_needed`` are for.
    alpha : float, optional
        The level of the test that is planned.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference`` and ``se`` of the pilot; ``power`` for ``effect`` with so many points;
        ``smallest_effect``, the difference found with the target power; ``points_needed`` to
        find ``effect`` with it (infinite if its sign is not that of the alternative).
        From repetitions: ``point_variance`` and ``repetition_variance``, the parts of the
        variance of one point's difference that repeating leaves and removes, and
        ``smallest_effect_limit`` and ``points_needed_limit``, the same with no end of
        repetitions; NaN for a single one. Then what the interval adds, and ``caution``.

    Raises
    ------
    LogError
        If ``effect`` is 0 or no number, or the models were evaluated on different points.

    Notes
    -----
    Standard errors fall like one over the root of the number of points, if the further points
    are drawn like these. More points for training change the models too, which no pilot tells.

    The limits for many repetitions take these for independent given the point: true of runs
    of one model, nearly true of partitions, whose models share most of their data. `wald` does
    not shorten its interval for repetitions, `holdout` does. The variance that comes with the
    training data as a whole is in no log: neither more repetitions nor these numbers reach it.

    References
    ----------
    Cohen (1988), Statistical power analysis for the behavioral sciences, 2nd edition.
    Miller (2024), Adding error bars to evals, arXiv:2411.00640.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> plan = losses.cvci.power(effect=100)
    >>> plan[["se", "power", "smallest_effect", "points_needed"]].round(3)
                              se  power  smallest_effect  points_needed
    model other
    ridge random_forest  103.516  0.162          290.008         3718.0
    """
    checked_alpha(alpha)
    if effect is None:
        raise NotGiven(
            "effect is not given, and it has no default: no number in the log says which "
            "difference would matter. Expected it in the unit of the loss, as in effect=0.01."
        )
    checked_numbers("effect", effect)
    checked_numbers("target_power", target_power)
    if effect == 0:
        raise LogError("effect=0 cannot be found by any log. Expected the difference that matters.")
    checked_choice("alternative", alternative, ALTERNATIVES)
    if is_dask_frame(losses):
        ask = partial(
            power, effect=effect, reference=reference, alternative=alternative,
            target_power=target_power, alpha=alpha,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, missing=missing)
    asked = float(effect)

    def run(log: Log, base: Result, gaps: Differences | None = None) -> Result:
        return planned(
            base, effect=asked, alpha=alpha, alternative=alternative, target=target_power,
            n=int(log.design.splits().rows[0]), parts=parts(log, gaps),
        )  # fmt: skip

    if lazy_losses(losses, other):
        return of_pairs(
            gaps_of(losses, other, reference, missing), missing,
            lambda log: run(log, based_lazily(log, None, {}, alpha)),
        )  # fmt: skip
    log, pairs, gaps = paired(losses, other, reference, missing)
    chosen = usual(log)
    result = run(log, based(log, gaps, chosen, {}, alpha), gaps)
    result = replace(result, attrs={**result.attrs, "interval_method": chosen})
    return log.label_pairs(pairs, result)


def parts(log: Log, gaps: Differences | None) -> tuple[FloatArray, FloatArray]:
    """Split the variance of each difference by what repetitions remove."""
    repetitions = log.design.number("repetition")
    found = log.moments(by_repetition(log), gaps)
    n = found.count[0]
    once = (found.m2 / (n - 1)).mean(axis=0)
    if repetitions == 1:
        return parts_of_variance(once, once, 1)
    if gaps is None:
        raise LogError(ONE_BY_ONE)
    points = averaged(log)
    means = points.moments((), Differences(points.panels, gaps.left, gaps.right))
    return parts_of_variance(once, means.m2[0] / (n - 1), repetitions)
