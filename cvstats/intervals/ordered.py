"""Interval for losses in time order, which may be autocorrelated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import fft

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import mean_and_squares
from cvstats.core.design import Design
from cvstats.core.results import Result, interval
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError
from cvstats.intervals._limits import find_proportions, take_limits_of_means, take_limits_of_metric
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._requirements import partition, single_dataset
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.log.log import Log
from cvstats.log.loss_checks import Times, find_dates, find_odd_time, order_times
from cvstats.options import Missing, whole_number

FEWEST = 4
"""Minimum number of times for one cosine."""


ROUNDING = 1e-12
"""A variance is 0 if it is this small relative to the variance for one step."""

TILE = 1 << 20
"""Losses (times by columns) processed by one task."""

ALIKE = 0.1, 2.326
"""Minimum correlation of successive losses, absolute and in standard errors, to count as real."""

MOST_ALIKE = 0.97
"""Maximum correlation of neighbors for which cosines are corrected."""

HIGHEST_ORDER = 10
"""Highest order of an autoregression."""

ENOUGH = 1.4
"""Independent losses per degree of freedom that an interval needs."""

SEASONS = 4, 5, 7, 12, 24, 48, 52, 96, 168, 365
"""Seasonal lags of quarters, days, months, hours and weeks."""


def check_estimator(options: Mapping[str, Any]) -> None:
    """Reject invalid numbers of steps, and contradictory options."""
    estimator, horizon, lags = (options[name] for name in ("estimator", "horizon", "lags"))
    if horizon is not None:
        whole_number("horizon", horizon, 1)
    if lags is not None:
        whole_number("lags", lags, 0)
    if horizon is not None and estimator == "ewc":
        raise LogError(
            f"horizon={horizon!r} and estimator='ewc' specify two variances. Pass only one of "
            "them: equal-weighted cosines suit every horizon."
        )
    if lags is not None and (horizon is not None or estimator != "newey-west"):
        raise LogError(
            f"lags={lags!r} is only used by Newey-West without a horizon. Pass "
            "estimator='newey-west' with it, and omit horizon=."
        )


def points_in_time(design: Design) -> str | None:
    """Require points whose labels are times, each tested once in every repetition."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if "point" not in design.levels:
        return (
            "the log has no level 'point', and the order of rows is not used. Add the time of "
            "each evaluation to the index, as in cvstats.as_log(frame, point='date'), or rename "
            "a dimension: array.rename(time='point')."
        )
    if (dates := find_dates(design)) not in (None, "point"):
        return (
            f"its dates are on the level {dates!r}, and points have other labels. Expected one "
            "loss per date, with the dates on the level 'point': average the losses of each date, "
            f"and rename {dates!r} to 'point'."
        )
    odd = find_odd_time(design.levels["point"].labels)
    if odd is not None:
        return (
            f"the labels of its level 'point' are neither all dates nor all numbers: {odd}. "
            "Expected dates (2024-01-31) or numbers that count steps: cvstats.as_log(frame, "
            "point='date')."
        )
    return partition(design)


@IntervalMethod(
    check=check_estimator,
    requires=points_in_time,
    needs="points that are times",
    target="long-run mean loss of the trained models, if the series continues in the same way",
    guarantee="asymptotically exact in the number of times, for stationary losses whose "
    "autocovariances have a finite sum",
    difference_guarantee="asymptotically exact in the number of times, for stationary losses "
    "whose autocovariances have a finite sum, and for models trained in folds "
    f"{RELATIVELY_STABLE}",
    of_fixed_models={"target": "long-run mean loss, if the series continues in the same way"},
    fits="as the log has",
    reference="Lazarus, Lewis, Stock and Watson (2018), Journal of Business & Economic Statistics "
    "36(4), 541-559, doi:10.1080/07350015.2018.1506926; Diebold and Mariano (1995), "
    "doi:10.1080/07350015.1995.10524599",
    needs_losses=True,
    takes_lazy_losses=True,
)
def ordered(
    log: Log,
    *,
    estimator: Literal["ewc", "newey-west"] | None = None,
    horizon: int | None = None,
    lags: int | None = None,
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Interval for the mean loss over time, accounting for autocorrelation.

    The target is the long-run mean loss of models such as those tested, if the series continues in
    the same way. The estimate is the mean of the losses at the T times. There are three estimators
    of its variance, which account for the autocovariance of the losses:

    - equal-weighted cosines: the mean power of the first B frequencies, and limits from Student's
      t with B degrees of freedom, or, for 0/1 losses and metrics between two bounds, those by Korn
      and Graubard;
    - Newey-West: autocovariances with weights that fall to 0, and normal quantiles;
    - Diebold-Mariano, for forecasts h steps ahead: autocovariances up to lag h - 1, Harvey's
      correction, and Student's t with T - 1 degrees of freedom.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any log of one data set whose points are times: dates, or numbers that count steps. Losses
        in any unit. Losses are first averaged at each time over repetitions and, in a panel, over
        series (``source``).
    estimator : {"ewc", "newey-west"}, optional
        The variance estimator; by default equal-weighted cosines, or Diebold-Mariano with a
        ``horizon``.
    horizon : int, optional
        Number of steps ahead of the forecasts: selects the variance of Diebold and Mariano with
        Harvey's correction. With ``estimator="newey-west"`` its lags have Newey-West weights.
    lags : int, optional
        The number of lags L of Newey-West, ``floor(4 (T / 100)^(2/9))`` by default.
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
        ``upper`` and ``se`` in the units of the loss, ``df`` if the limits use Student's t, and
        ``caution`` (labels, each explained in ``attrs["cautions"]``). ``n_times``, ``n_points``
        and ``n_lags`` or ``n_cosines`` are in ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If the log has no level ``point``, or its labels are not times; if there are fewer than
        four times, or too few for the horizon or the lags; if options contradict each other; or if
        the log has moments instead of losses.

    See Also
    --------
    cvstats.holdout : For test points that are independent.
    cvstats.clustered : For series, years or other blocks as the sampling unit.
    cvstats.out_of_source : For blocks that were left out one at a time.

    Notes
    -----
    With e_t the losses, m their mean, gamma_l their autocovariance at lag l and C_j their cosine
    of frequency j,

    .. math::

        \gamma_l = \frac1T \sum_t (e_t - m)(e_{t-l} - m), \qquad
        C_j = \sqrt{\frac2T} \sum_t e_t \cos\frac{\pi j (t - 1/2)}{T} ,

    the variances of cosines, Newey-West and Diebold-Mariano are

    .. math::

        V_\mathrm{EWC} &= \frac{1}{T B} \sum_{j=1}^B C_j^2, \qquad
            B = \left\lfloor 0.4\, T^{2/3} \right\rfloor \\
        V_\mathrm{NW} &= \frac1T \left[\gamma_0
            + 2 \sum_{l=1}^L \left(1 - \frac{l}{L + 1}\right) \gamma_l\right] \\
        V_\mathrm{DM} &= \frac{\gamma_0 + 2 \sum_{l=1}^{h-1} \gamma_l}{
            T + 1 - 2 h + h (h - 1) / T} .

    Only this method and `clustered`, for the same dates in several sources, use the order of the
    labels; the order of the rows does not matter. The times are assumed to be equally spaced. If
    they are not, ``caution`` contains ``gaps in time``.

    The interval is asymptotically exact for stationary losses whose autocovariances have a finite
    sum. In 2,000 simulations of a first-order autoregression with correlation .6, with 100 and 400
    times, the coverage of 95% intervals was .939 and .955 for cosines, .856 and .905 for
    Newey-West, and .657 and .678 for `holdout`. If the dependence lasts much longer, or is
    seasonal, none of these intervals is wide enough: coverage was .36 to .82 with a correlation of
    .6 to .8 at lag 7 or 12. ``caution`` contains ``strong dependence`` if the effective number of
    independent losses is below 1.4 times the degrees of freedom, judged by an autoregression of up
    to 10 neighbors (Akaike's criterion selects its order), or below them by the autocorrelation at
    lags 4, 5, 7, 12, 24, 48, 52, 96, 168 and 365. With a first-order correlation of .9, where
    cosines cover .78 to .91, it appeared in 81% to 90% of series of 50 to 400 times, and in 64% of
    those of 1,000. If the sum is infinite (long memory, which is flagged only if it is strong), no
    number of times is enough.

    Diebold and Mariano assume that the errors of forecasts h steps ahead are correlated up to lag h
    - 1. The estimated variance can be negative. In that case the variance for one step is used, as
    in the R package forecast, and ``caution`` contains ``horizon not used``.

    Models trained on other times are treated as fixed, as in `wald`. Averaging over series
    accounts for their dependence at each time. If each series is one observation, such as a
    sample of stores, use `clustered` or `out_of_source`.

    References
    ----------
    Lazarus, Lewis, Stock and Watson (2018), Journal of Business & Economic Statistics 36(4),
    541-559, doi:10.1080/07350015.2018.1506926.
    Newey and West (1987), Econometrica 55(3), 703-708, doi:10.2307/1913610.
    Diebold and Mariano (1995), doi:10.1080/07350015.1995.10524599.
    Harvey, Leybourne and Newbold (1997), doi:10.1016/S0169-2070(96)00719-4.
    Driscoll and Kraay (1998), doi:10.1162/003465398557825.

    Examples
    --------
    >>> import cvstats, numpy as np, pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=200, name="point")
    >>> noise = np.random.default_rng(0).normal(size=205)
    >>> smooth = np.convolve(noise, np.ones(6) / 6, mode="valid")  # like the five days before
    >>> losses = pd.Series(1 + smooth, days, name="model")
    >>> losses.cvci.ordered().round(3)
           estimate  lower  upper     se  df caution
    model
    model     1.007  0.864  1.149  0.066  13
    >>> losses.cvci.holdout().round(3)
           estimate  lower  upper     se            caution
    model
    model     1.007  0.946  1.067  0.031  serial dependence
    """
    # Average the losses at each time, and estimate the long-run variance of their mean.
    log = log.rows()
    times = order_times(log.design)
    n = times.number
    weights = choose_weights(n, estimator, horizon, lags)
    series = average_times(log, times)
    most = len(weights.lags) - 1
    near = np.arange((max(most, choose_order(n)) if horizon is None else most + 1) + 1)
    seasons = choose_seasons(n, horizon or 0)
    found, cosines = measure_series(series, np.append(near, seasons), weights)
    gamma, far = np.split(found, [len(near)])
    flags = np.zeros(len(series.mean), dtype=np.int64)
    if weights.cosines:
        variance = cosines
        resolution: float = weights.cosines
        alike = is_persistent(gamma, n, ENOUGH * resolution)
    else:
        twice = np.where(np.arange(most + 1) > 0, 2, 1) * weights.lags
        variance = twice @ gamma[: most + 1] / n
        if horizon is None:
            resolution = n / (2 * (weights.lags**2).sum() - 1)
            alike = is_persistent(gamma, n, ENOUGH * resolution)
        else:
            resolution = n
            alike = outlasts_horizon(gamma, n)
            negative = (variance <= ROUNDING * gamma[0] / n) & (gamma[0] > 0)
            flags[negative] |= np.int64(Caution.HORIZON_NOT_USED)
            variance = np.where(
                negative,
                gamma[0] / n / correct_small_sample(n, 1),
                variance / correct_small_sample(n, horizon),
            )
    lasts = alike | comes_back(gamma, far, seasons, n, resolution)
    flags[lasts] |= np.int64(Caution.STRONG_DEPENDENCE)
    flags |= np.int64(Caution(0) if times.regular else Caution.GAPS_IN_TIME)
    if n < ENOUGH_POINTS and weights.df is None:
        flags |= np.int64(Caution.FEW_POINTS)
    extra: dict[str, float] = {"n_times": n, "n_points": log.design.splits().points or n}
    extra |= {"n_cosines": weights.cosines} if weights.cosines else {"n_lags": most}
    attrs = {"estimator": weights.name} | ({} if horizon is None else {"horizon": horizon})
    result = interval(
        "ordered", series.mean, variance, origin=series.origin, alpha=alpha, df=weights.df,
        extra=extra, caution=flags, attrs=attrs,
    )  # fmt: skip
    if not weights.cosines:
        return replace(result, allows_for=ALLOWED)
    result = replace(result, allows_for=ALLOWED | Caution.FEW_ERRORS)
    if log.of_differences:
        return result
    if log.design.metric:
        return take_limits_of_metric(result, log)
    # In 3,000 simulated series of 60 to 300 times with shares of .8 to .99 and correlations of 0 to
    # .8, limits of a proportion covered .93 to .99, and Student's t, often above 1, .30 to .95.
    at = find_proportions(log, result.columns["estimate"])
    share = 1 / result.columns["n_times"]
    return take_limits_of_means(result, at, share) if at.any() else result


class Weights(NamedTuple):
    """Weights of the variance of the mean.

    Parameters
    ----------
    name : {"ewc", "newey-west", "diebold-mariano"}
        The estimator.
    cosines : int
        Number of cosines averaged; 0 if lags are weighted.
    lags : array
        The weight of each autocovariance from lag 0 on.
    df : int or None
        Degrees of freedom of Student's t; None for normal quantiles.
    """

    name: str
    cosines: int
    lags: FloatArray
    df: int | None


def choose_weights(n: int, estimator: str | None, horizon: int | None, lags: int | None) -> Weights:
    """Choose the number of cosines or lags for n times, and their weights."""
    if horizon is None and estimator != "newey-west":
        if n < FEWEST:
            raise LogError(
                f"ordered needs at least {FEWEST} times, but this log has {n}. Evaluate more times."
            )
        cosines = int(0.4 * np.cbrt(n) ** 2)
        return Weights("ewc", cosines, np.ones(1), cosines)
    if lags is None:
        lags = int(4 * (n / 100) ** (2 / 9)) if horizon is None else horizon - 1
    option = f"lags={lags}" if horizon is None else f"horizon={horizon}"
    if n < lags + 2:
        raise LogError(
            f"{option} needs at least {lags + 2} times, but this log has {n}. Pass a smaller "
            "number, or evaluate more times."
        )
    flat = estimator != "newey-west"
    weights = np.ones(lags + 1) if flat else 1 - np.arange(lags + 1) / (lags + 1)
    name = "diebold-mariano" if flat else "newey-west"
    return Weights(name, 0, weights, None if horizon is None else n - 1)


def correct_small_sample(n: int, horizon: int) -> float:
    """Correct the variance for estimating the mean."""
    return (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n


def choose_seasons(n: int, horizon: int = 0) -> IntArray:
    """Choose the lags at which n times can show that losses come back after a season."""
    return np.array([lag for lag in SEASONS if horizon <= lag <= n // 4], dtype=np.int64)


def share_of_cosines(gamma: FloatArray, n: int, cosines: int) -> FloatArray:
    """Compute the share of the long-run variance that cosines see, of an autoregression.

    The spectral density of a first-order autoregression at their frequencies, relative to that at
    0. Its correlation is that of neighbors with the bias of Kendall (1954) removed, from 0 to
    `MOST_ALIKE`; of independent times the share is 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        neighbors = np.nan_to_num(gamma[1] / gamma[0])
    r = np.clip(neighbors + (1 + 3 * neighbors) / n, 0, MOST_ALIKE)
    waves = np.cos(np.pi * np.arange(1, cosines + 1) / n)[:, None]
    share: FloatArray = ((1 - r) ** 2 / (1 - 2 * r * waves + r**2)).mean(axis=0)
    return share


def choose_order(n: int) -> int:
    """Choose the highest order of an autoregression of n times."""
    return min(int(np.cbrt(n)), HIGHEST_ORDER)


def is_persistent(gamma: FloatArray, n: int, fewest: float) -> MaskArray:
    """Mark series whose mean varies like that of fewer than ``fewest`` independent losses.

    That number is the variance over the long-run variance of the autoregression that Akaike's
    criterion selects, by Durbin's recursion, minus 2, its bias for one of first order.
    """
    order = choose_order(n)
    error, best = gamma[0], 0.0
    weights = np.empty((0, len(error)))
    found = np.zeros(len(error), dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        for p in range(1, order + 1):
            partial = (gamma[p] - (weights * gamma[p - 1 : 0 : -1]).sum(axis=0)) / error
            weights = np.vstack([weights - partial * weights[::-1], partial])
            error = error * (1 - partial**2)
            criterion = np.log(error / gamma[0]) + 2 * p / n
            number = n * gamma[0] * (1 - weights.sum(axis=0)) ** 2 / error
            found = np.where(criterion < best, number - 2 < fewest, found)
            best = np.fmin(best, criterion)
    return found


def comes_back(
    gamma: FloatArray, far: FloatArray, seasons: IntArray, n: int, resolution: float
) -> MaskArray:
    """Mark series with seasonal or lasting correlation beyond the lags used by the variance.

    ``far`` are the autocovariances at the lags ``seasons``. Only the excess over the correlation
    of a first-order autoregression counts; every s-th time is then treated as a separate series,
    whose effective number of losses must exceed the degrees of freedom.
    """
    lags = seasons[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation, neighbors = far / gamma[0], np.maximum(gamma[1] / gamma[0], 0)
    least, errors = ALIKE
    spread = np.sqrt((1 + neighbors**2) / (1 - neighbors**2) / n)
    beyond = correlation - neighbors**lags
    real = (beyond > least) & (beyond > errors * spread)
    beyond_reach = n * (1 - correlation) < lags * resolution * (1 + correlation)
    found: MaskArray = np.any(real & beyond_reach, axis=0)
    return found


def outlasts_horizon(gamma: FloatArray, n: int) -> MaskArray:
    """Mark series whose losses are still correlated at the first omitted lag."""
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = gamma / gamma[0]
    spread = np.sqrt(2 * (correlation[:-1] ** 2).sum(axis=0) - 1)
    least, errors = ALIKE
    found: MaskArray = (correlation[-1] > least) & (correlation[-1] * np.sqrt(n) > errors * spread)
    return found


# --- losses by time -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MeansByTime:
    """The mean loss at each time, computed by column when needed.

    Parameters
    ----------
    mean, origin : array, shape (columns,)
        The mean over times, relative to an origin.
    take : callable
        Maps a slice of columns to the deviations from the mean, times by columns.
    n : int
        The number of times.
    """

    mean: FloatArray
    origin: FloatArray
    take: Callable[[slice], FloatArray]
    n: int


def average_times(log: Log, times: Times) -> MeansByTime:
    """Average all evaluations at each time; times evaluated once are not copied."""
    if len(times.place) > times.number:
        cells = log.moments(("point",))
        mean, _ = mean_and_squares(cells.mean)
        at = times.order
        return MeansByTime(mean, cells.origin, lambda j: cells.mean[at, j] - mean[j], times.number)
    whole, design = log.moments(()), log.design
    chosen = log.values
    rows = np.flatnonzero(design.marks)
    rows = rows[np.argsort(times.place)]

    def take(columns: slice) -> FloatArray:
        number = columns.stop - columns.start
        if chosen.order == "C":
            table, row, column = chosen.row_major(columns, 0, design.size)
            part = table[row : row + design.size, column : column + number][rows]
        else:
            table, column, row = chosen.column_major(columns, 0, design.size)
            part = table[column : column + number, row : row + design.size].T[rows]
        deviations: FloatArray = part - whole.origin[columns]
        deviations -= whole.mean[0, columns]
        return deviations

    return MeansByTime(whole.mean[0], whole.origin, take, times.number)


def measure_series(
    series: MeansByTime, lags: IntArray, weights: Weights
) -> tuple[FloatArray, FloatArray]:
    """Compute the autocovariances of each column at some lags, and the variance by cosines."""
    width = len(series.mean)
    gamma, variance = np.empty((len(lags), width)), np.zeros(width)
    tiles = block_bounds(width, TILE, series.n)

    def work(tile: int) -> None:
        columns = slice(*tiles[tile])
        deviations = series.take(columns)
        for row, lag in enumerate(lags.tolist()):
            later, before = deviations[lag:], deviations[: series.n - lag]
            gamma[row, columns] = np.einsum("ij,ij->j", later, before) / series.n
        if weights.cosines:
            waves = transform_cosines(deviations, weights.cosines)
            variance[columns] = np.einsum("ij,ij->j", waves, waves)

    for _ in ordered_map(work, len(tiles)):
        pass
    return gamma, variance


def transform_cosines(deviations: FloatArray, cosines: int) -> FloatArray:
    """Weight deviations in time order by cosines: squares add up to the variance of the mean."""
    sums = fft.dct(deviations, axis=0)[1 : cosines + 1]  # 2 sum e_t cos(...)
    waves: FloatArray = sums / (len(deviations) * np.sqrt(2 * cosines))
    return waves


# --- the log --------------------------------------------------------------------------------------


ALLOWED = Caution.SERIAL_DEPENDENCE | Caution.SOURCES_IGNORED
"""This method is made for series that are correlated with each other and over time."""
