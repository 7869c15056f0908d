"""Intervals from one test set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy import special

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import repetition_level, tally
from cvstats.core.kernels import compiled
from cvstats.core.results import Result, flag
from cvstats.core.results import interval as symmetric_interval
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, is_number
from cvstats.intervals._limits import (
    BOUNDED,
    PROPORTIONS,
    flag_few_errors,
    hall_limits,
    proportion_limits,
)
from cvstats.intervals._method import NADEAU, OF_FIXED_MODELS, IntervalMethod
from cvstats.intervals._requirements import partition, single_dataset
from cvstats.intervals._stability import LARGE_SHARE
from cvstats.log.log import Log
from cvstats.options import Missing

SURE = 0.99
"""Level of the test whether the repetitions of a test set differ."""


def one_test_set(design: Design) -> str | None:
    """Require one test set, evaluated once or several times."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if design.has("fold"):
        return (
            f"the log has {design.number('fold'):,} folds, each used to test a different model. "
            f"Select one fold: {design.take('fold')}; or use wald for all of them."
        )
    if "fold" not in design.levels and design.has("source"):
        return (
            "a log with sources and no folds leaves one source out at a time, with "
            f"{design.number('source'):,} models. Use out_of_source or wald, or by='source' for "
            "one source at a time. If one model was tested on all sources, add a constant fold: "
            f"pandas.concat({{0: log}}, names=['fold'])."
        )
    return partition(design)


def check_bounds(options: Mapping[str, Any]) -> None:
    """Reject bounds that are missing, invalid, or meant for another interval."""
    interval, bounds = options["interval"], options["bounds"]
    if interval not in BOUNDED:
        if bounds is not None:
            raise LogError(
                f"bounds={bounds!r} is only used by interval='betting' and 'bernstein'. Use one "
                "of these, or omit bounds=."
            )
        return
    if bounds is None:
        raise LogError(
            f"interval={interval!r} needs the smallest and the largest possible loss, which the "
            f"data cannot show. Pass them: holdout(losses, interval={interval!r}, bounds=(0, 1))."
        )
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2
    if not pair or not all(is_number(end) and np.isfinite(end) for end in bounds):
        raise LogError(
            f"bounds={bounds!r} is not a pair of numbers. Expected the smallest and the largest "
            "possible loss, such as (0, 1)."
        )
    if bounds[0] >= bounds[1]:
        raise LogError(f"bounds={bounds!r} is an empty range. Expected the smaller number first.")


@IntervalMethod(
    requires=one_test_set,
    needs="one test set",
    target="risk of the trained model on new points from the same population as the test points",
    guarantee="asymptotically exact in the size of the test set, for independent test points",
    of_fixed_models=OF_FIXED_MODELS,
    fits="1",
    reference=NADEAU,
    plan="holdout",
    needs_points=True,
    check=check_bounds,
    groups_at_once=True,
    reads_losses=lambda options, log: options["interval"] in BOUNDED,
)
def holdout(
    log: Log,
    *,
    interval: Literal[
        "wald", "t", "hall", "wilson", "clopper-pearson", "betting", "bernstein"
    ] = "wald",
    bounds: tuple[float, float] | None = None,
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Interval for the risk of one trained model, from one test set.

    The target is the mean loss of this model on points from the same population as the test points.
    The estimate is the mean of the n test losses, and its standard error is their standard
    deviation divided by sqrt(n).

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss for each point of one test set, in any unit. Several repetitions on the same points
        (seeds, epochs) are first averaged for each point.
    interval : {"wald", "t", "hall", "wilson", "clopper-pearson", "betting", "bernstein"}, optional
        The limits: normal or Student quantiles (n - 1 degrees of freedom); normal limits with
        Hall's correction for skewness; for 0/1 losses, Wilson's score interval or the exact
        interval of Clopper and Pearson; for losses with ``bounds``, the betting interval of
        Waudby-Smith and Ramdas, or the empirical Bernstein bound of Maurer and Pontil, which has
        a closed form.
    bounds : (float, float), optional
        The smallest and the largest possible loss, such as ``(0, 1)`` for a Brier score; required
        by ``"betting"`` and ``"bernstein"``. The extremes of the observed losses are not bounds.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, ``df`` for ``"t"``, and ``caution``
        (labels, each explained in ``attrs["cautions"]``). ``n_points`` and ``n_repetitions`` are
        in ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If the log has several folds, fewer than two points, repetitions on different points, or
        repetitions or losses other than 0 and 1 for an interval of proportions; if losses are
        outside of the bounds, or the bounds are missing or not used; or if the log has no losses
        for ``"betting"``, ``"bernstein"`` or ``"hall"`` (for ``"hall"`` also if they are lazy).

    See Also
    --------
    cvstats.wald : For cross-validation.
    cvstats.clustered : For test points that come in groups.
    cvstats.ordered : For test points in order of time.

    Notes
    -----
    With e_i the n test losses and m their mean,

    .. math::

        \mathrm{se}^2 = \frac{1}{n (n - 1)} \sum_i (e_i - m)^2 .

    The interval is asymptotically exact for independent test points. It does not cover the risk of
    a model trained on another training set, or refitted on all the data. If all losses are 0, the
    Wald interval has zero width, but the two intervals for proportions do not.

    If a few points dominate the mean, the Wald interval misses on one side, because the mean is too
    small unless such a point was sampled. Student's t hardly helps. For right-skewed losses, Hall's
    limits extend further up. For lognormal(1) losses of 50 and 200 points, 95% Hall limits cover
    .92 and .94, and Wald limits .89 and .93; for squared t errors with 5 degrees of freedom, .91
    and .93, and .84 and .89.

    Betting and Bernstein intervals cover with probability at least 1 - alpha for every n and any
    distribution within the bounds. The idea of the betting interval is that no gambler can expect
    to win if the losses x, scaled to [0, 1], have mean m. Ten gamblers bet c = 1/11, ..., 10/11 of
    their wealth on losses above m, and ten bet on losses below it. The interval contains m as long
    as their average wealth is below 1 / alpha. With v the variance of x, that wealth, and the
    half-width of Bernstein, are

    .. math::

        \frac{1}{20} \sum_c \left[\prod_i \left(1 + c\, \frac{x_i - m}{m}\right)
            + \prod_i \left(1 - c\, \frac{x_i - m}{1 - m}\right)\right], \qquad
        \sqrt{\frac{2 v L}{n}} + \frac{7 L}{3 (n - 1)}, \quad L = \ln\frac{4}{\alpha} .

    The Bernstein interval is the wider of the two. For 0/1 losses ``"clopper-pearson"`` has the
    same guarantee and is narrower than both.

    References
    ----------
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.
    Hall (1992), doi:10.1111/j.2517-6161.1992.tb01444.x.
    Wilson (1927), doi:10.1080/01621459.1927.10502953.
    Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404.
    Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009.
    Maurer and Pontil (2009), COLT, arXiv:0907.3740.

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> points = pd.RangeIndex(50, name="point")
    >>> losses = pd.Series([0.0, 1.0, 0.0, 0.0, 1.0] * 10, index=points, name="tree")
    >>> cvstats.holdout(losses, interval="wilson").round(4)
          estimate  lower  upper     se caution
    model
    tree     0.400  0.276  0.538  0.070
    >>> cvstats.holdout(losses, interval="betting", bounds=(0, 1)).round(4)
          estimate  lower  upper     se caution
    model
    tree     0.400  0.202  0.619  0.070
    """
    # Average several repetitions for each point, then treat the points as a sample.
    repetitions, points = tally(log.design, "repetition").n_cells, None
    several = int(repetitions.max())
    if several > 1:
        names = [name for name in ("source", "point") if name in log.design.levels]
        points = log.moments(names)
        cell = points.cell_means().over(())
    else:
        cell = log.moments(())
    proportion = interval in PROPORTIONS
    if proportion and several > 1:
        raise LogError(
            f"interval={interval!r} needs one 0/1 loss per point, but this log has {several} "
            "repetitions. Use interval='wald' or interval='t'."
        )
    n = cell.count[:, None].astype(np.int64)
    if n.min() < 2:
        raise LogError(f"holdout needs at least two points, but this log has {n.min()}.")
    df = (n - 1).astype(np.float64) if interval == "t" else None
    result = symmetric_interval(
        "holdout", cell.mean, cell.m2 / ((n - 1) * n), origin=cell.origin, alpha=alpha, df=df,
        extra={"n_points": n, "n_repetitions": repetitions},
        caution=flag(Caution.FEW_POINTS, (n < ENOUGH_POINTS) & (interval in ("wald", "hall"))),
        attrs={"interval": interval},
    )  # fmt: skip
    runs = log.moments(repetition_level(log.design)) if several > 1 else cell
    if points is not None:
        result = flag_seeds(result, log, runs, points)
    if interval == "hall":
        return hall_limits(result, log, cell, points)
    if bounds is not None:
        return bounded_limits(result, log, points, bounds)
    if proportion:
        return proportion_limits(result, log.zero_one(), interval)
    if log.pairs is not None:
        return result
    return flag_few_errors(result, runs.zero_one())


def seeds_matter(runs: Cells, units: Cells) -> tuple[FloatArray, MaskArray]:
    """Compare the repetitions of a test set, as if it were a two-way table of single losses.

    ``runs`` has the moments of the repetitions, ``units`` those of the points, or clusters. Returns
    the standard deviation of the repetition means beyond that of independent answers, in standard
    errors of the mean over units, and whether it is significant and widens the interval; a row for
    each group.
    """
    k, n = runs.n_cells, units.n_cells
    of_runs = n * runs.cell_means().over(()).m2
    rest = np.maximum(units.sum(units.m2) - of_runs, 0) / np.maximum(1, (k - 1) * (n - 1))
    of_runs = of_runs / np.maximum(1, k - 1)
    variance = units.cell_means().over(()).m2 / np.maximum(1, (n - 1) * n)
    between = np.maximum(of_runs - rest, 0) / n
    limit = special.fdtri(np.maximum(1, k - 1), np.maximum(1, (k - 1) * (n - 1)), SURE)
    matters = (k > 1) & (of_runs > limit * rest) & (between / k > LARGE_SHARE * variance)
    scale = np.where(variance > 0, variance, 1)
    return np.sqrt(np.where(variance > 0, between, 0) / scale), matters


def flag_seeds(result: Result, log: Log, runs: Cells, units: Cells) -> Result:
    """Flag a mean over repetitions that differ, and name the call for new repetitions."""
    matters = seeds_matter(runs, units)[1]
    by = f"({units.levels[-1]!r}, 'repetition')"
    call = f"log.cvci.clustered(by={by})"
    if log.pairs is not None:
        call = f"log.cvci.compare(method='clustered', options={{'by': {by}}})"
    calls = {Caution.UNSTABLE: f"{call} if the repetitions are training seeds"}
    result = result.add_caution(Caution.UNSTABLE, matters.reshape(-1))
    return replace(result, calls={**result.calls, **calls})


# --- losses between two bounds: betting and empirical Bernstein limits ----------------------------


BETS = 10


TOGETHER = 16
"""Number of factors multiplied between checks for overflow."""


LARGE = 1e50
"""A product above this, or below its inverse, is moved into the logarithm."""


FIRST = 0.25
"""The first step below the mean, in logarithms."""


FARTHEST = -34.0
"""The logarithm of the smallest candidate: no 16 factors are larger than 1e240 together."""


@compiled(reorder=True)
def log_product(losses: FloatArray, keep: float, gain: float) -> float:
    """Logarithm of the product of ``keep + gain x``."""
    total, product = 0.0, 1.0
    whole = len(losses) // TOGETHER * TOGETHER
    for start in range(0, whole, TOGETHER):
        for i in range(TOGETHER):
            product *= keep + gain * losses[start + i]
        if product > LARGE or product < 1 / LARGE:
            total += np.log(product)
            product = 1.0
    for i in range(whole, len(losses)):
        product *= keep + gain * losses[i]
    return float(total + np.log(product))


@compiled()
def log_wealth(losses: FloatArray, m: float) -> float:
    """Logarithm of the average wealth of all bets, if m is the candidate."""
    wealth = np.empty(2 * BETS)
    for j in range(BETS):
        c = (j + 1) / (BETS + 1)
        wealth[j] = log_product(losses, 1 - c, c / m)  # 1 + c (x - m) / m
        wealth[BETS + j] = log_product(losses, 1 - c + c / (1 - m), -c / (1 - m))  # of 1 - x
    largest = wealth.max()
    return float(largest + np.log(np.exp(wealth - largest).mean()))


@compiled()
def find_lowest(losses: FloatArray, limit: float) -> float:
    """Find the smallest candidate with a log wealth below a limit; 0 if all losses are 0.

    The logarithm of the wealth is convex in that of the candidate, so a secant through two points
    outside the interval ends outside it, and the steps never cross the limit.
    """
    mean = losses.mean()
    if mean == 0:
        return 0.0
    top = np.log(mean)
    step, value, near = FIRST, -1.0, top
    while value <= 0:
        if near <= FARTHEST:
            return 0.0
        near = max(top - step, FARTHEST)
        value = log_wealth(losses, np.exp(near)) - limit
        step *= 2
    far = near - FIRST
    before = log_wealth(losses, np.exp(far)) - limit
    while value > 0 and before > value:
        move = value * (near - far) / (before - value)
        if near + move == near:
            break
        far, before = near, value
        near += move
        value = log_wealth(losses, np.exp(near)) - limit
    return float(np.exp(near))


@compiled()
def find_limits(losses: FloatArray, limit: float, out: FloatArray) -> None:
    """Find the smallest and the largest candidate of each line of losses."""
    for i in range(losses.shape[0]):
        out[0, i] = find_lowest(losses[i], limit)
        out[1, i] = 1 - find_lowest(1 - losses[i], limit)


TILE = 1 << 18
"""Number of losses per task."""


ROUNDING = 1e-6
"""Losses outside the bounds by less than this share of the range are float32 rounding errors."""


GUARANTEE = (
    "finite-sample: coverage of at least 1 - alpha for any number of independent test points, "
    "if no loss can fall outside the bounds"
)


REFERENCES = {
    "betting": "Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86(1), "
    "1-27, doi:10.1093/jrsssb/qkad009",
    "bernstein": "Maurer and Pontil (2009), COLT, arXiv:0907.3740",
}


def bounded_limits(
    result: Result, log: Log, points: Cells | None, bounds: tuple[float, float]
) -> Result:
    """Replace normal limits with limits that are valid for any number of points.

    ``points`` are the means of points over repetitions, if there are several.

    Raises
    ------
    LogError
        If a loss is outside the bounds, or if the log has moments or pseudo-losses of a metric
        instead of losses.
    """
    log = log.rows()
    if log.design.metric:
        raise LogError(
            "bounds= applies to losses of individual points, but this log was made from a metric. "
            "Use interval='wald', or a loss of individual points."
        )
    alpha, interval = result.alpha, str(result.attrs["interval"])
    width, lowest, span = log.losses.width, bounds[0], bounds[1] - bounds[0]
    valid = np.flatnonzero(log.design.marks)
    limits = np.full((2, width), np.nan)
    tiles = block_bounds(width, TILE, log.design.size)

    def work(tile: int) -> None:
        start, stop = tiles[tile]
        if points is None:
            table, column, row = log.losses.column_major(slice(start, stop), 0, log.design.size)
            part = table[column : column + stop - start, valid + row].astype(np.float64)
        else:
            part = points.location[:, start:stop].T
        share = np.ascontiguousarray((part - lowest) / span)
        outside = np.argwhere((share < -ROUNDING) | (share > 1 + ROUNDING))
        if len(outside):
            line, at = outside[0].tolist()
            where = None if points is not None else log.design.format_labels(int(valid[at]))
            raise outside_bounds(log.name(start + line), where, part[line, at], bounds)
        known = ~np.isnan(share[:, 0])
        find = bet if interval == "betting" else bound_by_bernstein
        limits[:, start:stop][:, known] = lowest + span * find(np.clip(share[known], 0, 1), alpha)

    for _ in ordered_map(work, len(tiles)):
        pass
    columns = {**result.columns, "lower": limits[0], "upper": limits[1]}
    attrs: dict[str, str | float | int] = {
        **result.attrs, "bounds": f"[{bounds[0]:g}, {bounds[1]:g}]", "guarantee": GUARANTEE,
        "reference": REFERENCES[interval],
    }  # fmt: skip
    allowed = Caution.SKEWED | Caution.HEAVY_TAILS
    changed = replace(result, columns=columns, attrs=attrs, allows_for=allowed)
    return changed.drop_caution(Caution.ZERO_VARIANCE)


def outside_bounds(
    name: str, where: str | None, value: float, bounds: tuple[float, float]
) -> LogError:
    """Describe the first loss that is out of bounds."""
    what = f"the loss of {name} at {where}" if where else f"a point's mean loss of {name}"
    return LogError(
        f"{what} is {value:g}, outside of bounds=({bounds[0]:g}, {bounds[1]:g}). Expected the "
        "smallest and the largest possible loss, for a loss that has both."
    )


def bet(share: FloatArray, alpha: float) -> FloatArray:
    """Find both limits of each row of losses: the means against which constant bets do not win."""
    out = np.empty((2, len(share)))
    find_limits(share, -np.log(alpha), out)
    return out


def bound_by_bernstein(share: FloatArray, alpha: float) -> FloatArray:
    """Use half-width ``sqrt(2 V L / n) + 7 L / (3 (n - 1))``, L = ln(4 / alpha), V the variance."""
    n, level = share.shape[1], np.log(4 / alpha)
    mean, variance = share.mean(axis=1), share.var(axis=1, ddof=1)
    reach = np.sqrt(2 * variance * level / n) + 7 * level / (3 * (n - 1))
    limits: FloatArray = np.clip([mean - reach, mean + reach], 0, 1)
    return limits
