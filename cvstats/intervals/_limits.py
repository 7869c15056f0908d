"""Limits of proportions, bounded or skewed losses and contrasts, instead of normal limits.

Two models evaluated on the same points give four counts. Only two of them show which model is
better: ``n10``, the number of points on which only the model errs, and ``n01``, on which only the
other errs. All functions of proportions are elementwise; counts may be averages over repetitions.

Hall (1992), Journal of the Royal Statistical Society B 54(1), 221-228: the Studentized mean t of
n losses of skewness s is nearly normal after ``g(t) = t + s (t^2 / 3 + 1 / 6) / sqrt(n) + s^2 t^3 /
(27 n)``, which is monotone, so normal limits can be transformed back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.folds import repetition_level
from cvstats.core.kernels import compiled
from cvstats.core.orientation import turn
from cvstats.core.results import Result, half_widths, quantile
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, is_number
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import TYPE, WHOLE, Log
from cvstats.log.metadata import has_several

Limits: TypeAlias = tuple[FloatArray, FloatArray]

HALVINGS = 60
"""Bisection steps for a limit, after which an interval of [-1, 1] is narrower than 2^-59."""


def wilson(
    share: FloatArray, n: FloatArray | float, alpha: float, alternative: str = "two-sided"
) -> Limits:
    """Score interval of a proportion (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
    z = critical_value(alpha, alternative)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # the limits are exactly 0 or 1 if no loss, or every loss, is 1
    lower = np.where(share == 0, 0.0, np.maximum(middle - reach, 0.0))
    upper = np.where(share == 1, 1.0, np.minimum(middle + reach, 1.0))
    return open_side(np.where(np.isnan(share), np.nan, lower), upper, alternative)


def clopper_pearson(
    share: FloatArray, n: FloatArray | float, alpha: float, alternative: str = "two-sided"
) -> Limits:
    """Exact interval of a proportion (Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404)."""
    ones = share * n
    ones = np.minimum(np.where(np.abs(ones - np.rint(ones)) < 1e-6, np.rint(ones), ones), n)
    tail = alpha / 2 if alternative == "two-sided" else alpha
    with np.errstate(invalid="ignore"):
        lower = special.betaincinv(np.where(ones == 0, 1, ones), n - ones + 1, tail)
        upper = special.betainccinv(ones + 1, np.where(ones == n, 1, n - ones), tail)
    lowest: FloatArray = np.where(ones == 0, 0.0, lower)
    highest: FloatArray = np.where(ones == n, 1.0, upper)
    return open_side(lowest, highest, alternative)


def fieller(
    above: FloatArray,
    below: FloatArray,
    variances: tuple[FloatArray, FloatArray],
    covariance: FloatArray,
    critical: float | FloatArray,
) -> Limits:
    """Limits of a ratio of two means by Fieller (1954, doi:10.1111/j.2517-6161.1954.tb00159.x).

    The ratios R at which ``above - R below`` is c standard errors from 0, with c the critical
    value: the roots of ``(B^2 - c^2 v_B) R^2 - 2 (A B - c^2 v_AB) R + A^2 - c^2 v_A``. NaN if the
    denominator is not significantly different from 0: then no interval exists.
    """
    square = np.asarray(critical, dtype=np.float64) ** 2
    a = below**2 - square * variances[1]
    b = above * below - square * covariance
    c = above**2 - square * variances[0]
    with np.errstate(invalid="ignore"):
        root = np.sqrt(np.where(a > 0, np.maximum(b * b - a * c, 0.0), np.nan))
    far = b + np.where(b < 0, -root, root)  # no digits are lost on either side
    with np.errstate(divide="ignore", invalid="ignore"):
        one, two = far / a, np.where(far == 0, 0.0, c / far)
    return np.fmin(one, two) + 0 * root, np.fmax(one, two) + 0 * root


def critical_value(alpha: float, alternative: str) -> float:
    """Return the normal quantile of the limits; a one-sided bound spends all of alpha there."""
    return -quantile(alpha / 2 if alternative == "two-sided" else alpha)


def open_side(lower: FloatArray, upper: FloatArray, alternative: str) -> Limits:
    """Leave one side of the interval open if the alternative is one-sided."""
    if alternative == "less":
        lower = np.where(np.isnan(lower), np.nan, -np.inf)
    elif alternative == "greater":
        upper = np.where(np.isnan(upper), np.nan, np.inf)
    return lower, upper


# --- two proportions on the same points -----------------------------------------------------------


def score_statistic(
    n10: FloatArray,
    n01: FloatArray,
    n: FloatArray | float,
    difference: FloatArray | float,
    correction: float = 0.0,
) -> FloatArray:
    """Score statistic of a difference of paired proportions (Tango 1998, eq. 13).

    Asymptotically standard normal if the true difference is ``difference``; at 0 it is McNemar's
    ``(n10 - n01) / sqrt(n10 + n01)``. With zero variance it is infinite, or 0 without discordant
    points. ``correction`` is subtracted from the difference of the discordant counts.
    """
    deviations = n10 - n01 - n * difference - correction
    spread = np.sqrt(n * null_variance(n10, n01, n, difference))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = deviations / spread
    return np.where((spread == 0) & (deviations == 0), 0.0, statistic)


def null_variance(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, difference: FloatArray | float
) -> FloatArray:
    """Variance of the difference at one point, under the most likely table with that mean.

    The probability q that only the other errs solves ``2 n q^2 + b q + c = 0`` (Tango 1998, eq.
    11); that of the model is ``q + difference``.
    """
    d = np.asarray(difference, dtype=np.float64)
    a = 2.0 * n
    b = (2 * n - n10 + n01) * d - n10 - n01
    c = -n01 * d * (1 - d)
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):  # no digits are lost on either side
        q = np.where(b > 0, -2 * c / (root + b), (root - b) / (2 * a))
    q = np.maximum(q, np.maximum(-d, 0.0))
    return np.maximum(2 * q + d * (1 - d), 0.0)


def tango_limits(
    n10: FloatArray,
    n01: FloatArray,
    n: FloatArray | float,
    alpha: float,
    alternative: str = "two-sided",
    correction: float = 0.0,
) -> Limits:
    """Score interval of a difference of paired proportions (Tango 1998).

    The interval contains all differences whose score statistic is not significant. The statistic
    decreases with the difference, so each limit is the only root between the estimate and the end
    of the range, and bisection finds it.
    """
    z = critical_value(alpha, alternative)
    lower = lower_tango_limit(n10, n01, n, z, correction)
    upper = -lower_tango_limit(n01, n10, n, z, correction)
    return open_side(lower, upper, alternative)


def lower_tango_limit(
    n10: FloatArray, n01: FloatArray, n: FloatArray | float, z: float, correction: float
) -> FloatArray:
    """Find the smallest difference whose score statistic is at most z."""
    high = (n10 - n01) / n
    low = np.where(np.isnan(high), np.nan, -1.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        deviations = n10 - n01 - n * middle - correction
        beyond = deviations > z * np.sqrt(n * null_variance(n10, n01, n, middle))
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.where(n01 == n, -1.0, (low + high) / 2)


def binomial_p_values(
    n10: FloatArray, n01: FloatArray, alternative: str = "two-sided", *, mid: bool = False
) -> FloatArray:
    """Test exactly whether both models are equally likely to err on a discordant point.

    With ``mid`` the observed table counts by half (Fagerland, Lydersen and Laake
    2013, doi:10.1186/1471-2288-13-91). ``"less"`` tests whether the model errs less often.
    """
    if alternative == "two-sided":
        p = 2 * lower_tail(np.minimum(n10, n01), n10 + n01, mid)
        return np.minimum(p, 1.0)
    least = n10 if alternative == "less" else n01
    return lower_tail(least, n10 + n01, mid)


def lower_tail(k: FloatArray, total: FloatArray, mid: bool) -> FloatArray:
    """Probability of at most k heads of a fair coin: an incomplete beta function."""
    upto = np.where(k < total, special.betainc(np.maximum(total - k, 1), k + 1, 0.5), 1.0)
    if mid:
        below = np.where(k > 0, special.betainc(total - k + 1, np.maximum(k, 1), 0.5), 0.0)
        upto = (upto + below) / 2
    return np.where(np.isnan(total), np.nan, upto)


Floats = NDArray[np.float64]

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
def log_product(losses: Floats, keep: float, gain: float) -> float:
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
def log_wealth(losses: Floats, m: float) -> float:
    """Logarithm of the average wealth of all bets, if m is the candidate."""
    wealth = np.empty(2 * BETS)
    for j in range(BETS):
        c = (j + 1) / (BETS + 1)
        wealth[j] = log_product(losses, 1 - c, c / m)  # 1 + c (x - m) / m
        wealth[BETS + j] = log_product(losses, 1 - c + c / (1 - m), -c / (1 - m))  # of 1 - x
    largest = wealth.max()
    return float(largest + np.log(np.exp(wealth - largest).mean()))


@compiled()
def find_lowest(losses: Floats, limit: float) -> float:
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
def find_limits(losses: Floats, limit: float, out: Floats) -> None:
    """Find the smallest and the largest candidate of each line of losses."""
    for i in range(losses.shape[0]):
        out[0, i] = find_lowest(losses[i], limit)
        out[1, i] = 1 - find_lowest(1 - losses[i], limit)


BOUNDED = ("betting", "bernstein")
"""Intervals that need the bounds of the loss."""

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
            "bounds= applies to losses of individual points, but this log has pseudo-losses of a "
            "metric. Use interval='wald', or a loss of individual points."
        )
    alpha, interval = float(result.attrs["alpha"]), str(result.attrs["interval"])
    width, lowest, span = log.losses.width, bounds[0], bounds[1] - bounds[0]
    valid = np.arange(log.design.size)
    if log.design.valid is not None:
        valid = np.flatnonzero(log.design.valid)
    limits = np.full((2, width), np.nan)
    tiles = block_bounds(width, max(1, TILE // log.design.size))

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
    caution = result.caution & ~np.int64(Caution.ZERO_VARIANCE)
    attrs: dict[str, str | float | int] = {
        **result.attrs, "bounds": f"[{bounds[0]:g}, {bounds[1]:g}]", "guarantee": GUARANTEE,
        "reference": REFERENCES[interval],
    }  # fmt: skip
    allowed = Caution.SKEWED | Caution.HEAVY_TAILS
    return replace(result, columns=columns, caution=caution, attrs=attrs, allows_for=allowed)


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


PROPORTIONS = {"wilson": wilson, "clopper-pearson": clopper_pearson}
"""Intervals for 0/1 losses."""

SOME_WILSON = "wilson for 0/1 losses, otherwise wald"
"""Limits chosen by `interval` if columns are of both kinds or not computed yet."""

NOT_ZERO_ONE = (
    "squared_error", "absolute_error", "percentage_error", "pinball", "log_loss", "brier", "hinge",
    "net_benefit", "squared_log_error", "huber", "interval_score", "weighted_interval_score",
    "overprediction", "underprediction", "dispersion", "crps", "energy_score",
)  # fmt: skip
"""Losses that may be zero everywhere without being 0/1 errors."""

PROPORTION_NAMES = (
    "zero_one", "error", "error_rate", "accuracy", "acc", "exact_match", "classif.ce",
    "classif.acc", "coverage",
)  # fmt: skip
"""Losses that are 0 or 1, by name; scores after ``1 - `` too."""

FEW = 10
"""Errors, or points without one, below which normal limits are too narrow."""

OF_NORMAL_LIMITS = {
    "wald": Caution.ZERO_VARIANCE | Caution.FEW_ERRORS,
    "holdout": Caution.ZERO_VARIANCE | Caution.FEW_ERRORS | Caution.FEW_POINTS,
}
"""Cautions that apply to normal limits and not to limits of a proportion, by method."""


def flag_few_errors(result: Result, zero_one: MaskArray) -> Result:
    """Flag normal limits of 0/1 losses with few points, but not none, of the rarer outcome.

    Numbers of errors are averages over repetitions.
    """
    share = result.columns["estimate"]
    rarer = result.columns["n_points"] * np.minimum(share, 1 - share)
    caution = result.caution.copy()
    caution[zero_one & (rarer > 0) & (rarer < FEW - 1e-9)] |= np.int64(Caution.FEW_ERRORS)
    return replace(result, caution=caution)


def proportion_limits(result: Result, zero_one: MaskArray, interval: str) -> Result:
    """Replace normal limits with those of a proportion.

    Raises
    ------
    LogError
        If the losses of a column are not all 0 or 1.
    """
    if not (zero_one | np.isnan(result.columns["estimate"])).all():
        raise LogError(
            f"interval={interval!r} needs one 0/1 loss per point, but this log has other losses. "
            "Use interval='wald'."
        )
    limits = replace_limits(result, np.ones_like(zero_one), interval)
    return replace(limits, attrs={**limits.attrs, "interval": interval})


def replace_limits(result: Result, at: MaskArray, interval: str) -> Result:
    """Replace normal limits with those of a proportion, in some columns.

    Repetitions add no points: the error rate is their average, and n is the number of points.
    """
    alpha, columns = float(result.attrs["alpha"]), dict(result.columns)
    share, n = np.where(at, columns["estimate"], np.nan), columns["n_points"]
    lower, upper = PROPORTIONS[interval](share, n, alpha, str(result.attrs["alternative"]))
    columns["lower"] = np.where(at, lower, columns["lower"])
    columns["upper"] = np.where(at, upper, columns["upper"])
    gone = np.int64(OF_NORMAL_LIMITS[result.method])
    caution = np.where(at, result.caution & ~gone, result.caution)
    return replace(result, columns=columns, caution=caution)


def leave_open(result: Result, at: MaskArray) -> Result:
    """Remove the limits of columns whose variance is uninformative."""
    at = at & ((result.caution & np.int64(Caution.ZERO_VARIANCE)) != 0)
    limits = {side: np.where(at, np.nan, result.columns[side]) for side in ("lower", "upper")}
    return replace(result, columns={**result.columns, **limits})


def find_proportions(log: Log, estimate: FloatArray) -> MaskArray:
    """Find the columns whose losses are 0/1 by name, by type, or because both values occur.

    Costs that are usually zero may all be zero in a log, and still not be 0/1 errors.
    """
    name = str(log.metadata.get("loss")).removeprefix("1 - ")
    if log.design.metric or name in NOT_ZERO_ONE:
        return np.zeros(len(estimate), dtype=bool)
    known = name in PROPORTION_NAMES or log.metadata.get(TYPE) == WHOLE
    return log.zero_one() & (known | (estimate > 0) & (estimate < 1))


def cut_limits(result: Result, log: Log) -> Result:
    """Replace limits outside the range of the loss by its end, if the range is known.

    Nothing within the range is lost, so the coverage for means of losses does not change.
    """
    if log.of_differences or log.of_contrasts:
        return result
    estimate, facts = result.columns["estimate"], log.metadata
    name = str(facts.get("loss")).removeprefix("1 - ")
    lowest, highest = np.full(len(estimate), -np.inf), np.full(len(estimate), np.inf)
    if "range" in facts and not has_several(facts):
        ends = turn(np.array(facts["range"], dtype=float), str(facts.get("orientation")))
        lowest[:], highest[:] = ends.min(), ends.max()
    elif name in NOT_ZERO_ONE:
        lowest[:] = 0.0
    else:
        at = find_proportions(log, estimate)
        lowest[at], highest[at] = 0.0, 1.0
    columns = dict(result.columns)
    for side in ("lower", "upper"):
        columns[side] = np.clip(columns[side], lowest, highest)
    return replace(result, columns=columns)


TABLE = 1 << 20
"""Approximate number of losses processed at once."""


def hall_limits(result: Result, skewness: FloatArray) -> Result:
    """Replace normal limits with Hall's."""
    columns = dict(result.columns)
    n, se = columns["n_points"], columns["se"]
    down, up = half_widths(
        str(result.attrs.get("alternative", "two-sided")), float(result.attrs["alpha"]), None
    )
    for side, limit in (("lower", down), ("upper", -up)):
        if np.isfinite(limit):
            columns[side] = columns["estimate"] - se * invert_hall(limit, skewness, n)
    return replace(result, columns=columns)


def invert_hall(quantile: float, skewness: FloatArray, n: FloatArray) -> FloatArray:
    """Find the t at which Hall's g is a normal quantile; the quantile itself without skewness.

    ``3 sqrt(n) / s (r - 1)`` with the cube root r of ``1 + s (quantile - s / (6 sqrt(n))) /
    sqrt(n)``, written so that a small s costs no digits.
    """
    moved = quantile - skewness / (6 * np.sqrt(n))
    root = np.cbrt(1 + skewness * moved / np.sqrt(n))
    found: FloatArray = 3 * moved / (root**2 + root + 1)
    return found


def measure_skewness(log: Log, cells: Cells) -> FloatArray:
    """Measure the skewness of the losses of each column about the means of some cells.

    Losses that do not vary have 0.

    Raises
    ------
    LogError
        If the log has only cells and no individual losses, or pseudo-losses of a metric.
    """
    refuse_metric(log)
    log = log.rows()
    design, chosen = log.design, log.values
    table = design.cell_table(cells.levels)
    mean, group = np.zeros((table.size, chosen.width)), np.zeros(table.size, dtype=np.int64)
    mean[table.used] = cells.location
    group[table.used] = cells.repeat(np.arange(len(cells.starts))[:, None])[:, 0]
    at = design.cells(cells.levels, 0, design.size)
    here = np.flatnonzero(at >= 0)
    n = cells.sum(cells.count)
    deviation = find_deviations(cells.sum(cells.m2) / n)
    third = np.empty((len(cells.starts), chosen.width))
    for start, stop in block_bounds(chosen.width, max(1, TABLE // max(1, design.size))):
        lines, column, row = chosen.column_major(slice(start, stop), 0, design.size)
        part = lines[column : column + stop - start, row : row + design.size]
        z = part[:, here] - mean[at[here], start:stop].T
        z /= deviation[group[at[here]], start:stop].T  # cubes of losses may overflow
        for j, line in enumerate(z * z * z, start):
            third[:, j] = np.bincount(group[at[here]], line, len(third))
    return (third / n).reshape(-1)


def refuse_metric(log: Log) -> None:
    """Reject pseudo-losses: a metric that is not a mean has other sources of skewness."""
    if log.design.metric:
        raise LogError(
            "interval='hall' corrects a mean of losses, but this log has pseudo-losses of a "
            "metric. Use interval='wald', or a loss of individual points."
        )


def skewness_of_means(log: Log, points: Cells) -> FloatArray:
    """Measure the skewness of the mean losses of points, with equal weights."""
    refuse_metric(log)
    deviations = points.mean - points.repeat(points.average(points.mean))
    z = deviations / points.repeat(find_deviations(points.average(deviations**2)))
    return points.average(z**3).reshape(-1)


def find_deviations(variance: FloatArray) -> FloatArray:
    """Take the square root of variances; infinity for 0, so that equal losses have skewness 0."""
    found: FloatArray = np.sqrt(np.where(variance == 0, np.inf, variance))
    return found


# --- differences between groups: Welch's degrees of freedom ---------------------------------------


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
