"""Limits of proportions, bounded metrics, skewed losses and contrasts, instead of normal limits.

The largest change d that one prediction can make is one pseudo-error, added to the variance v of
a metric T between 0 and 1. For a proportion in a survey, Korn and Graubard (1998, Survey
Methodology 24(2), 193-201) use the limits of Clopper and Pearson with ``n* = T (1 - T) / v``
points. Here ``n* = (T (1 - T) + d) / (v + d^2)``, so that a metric at its bound has 1 / d points,
and a plain proportion has its actual n.

Hall (1992), Journal of the Royal Statistical Society B 54(1), 221-228: the Studentized mean t of
n losses of skewness s is nearly normal after ``g(t) = t + s (t^2 / 3 + 1 / 6) / sqrt(n) + s^2 t^3 /
(27 n)``, which is monotone, so normal limits can be transformed back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from cvstats.core.cautions import ENOUGH_DF, FEW_DF, Caution
from cvstats.core.cells import Cells
from cvstats.core.folds import repetition_level, tally
from cvstats.core.orientation import TARGET, TURNED, turn
from cvstats.core.results import (
    OWN_ERROR,
    Result,
    confidence_limits,
    flag,
    half_widths,
    quantile,
    rescale_limits,
    scale_errors,
)
from cvstats.core.threads import block_bounds
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Labels, Log, SomeLabels
from cvstats.log.metadata import (
    FEW,
    FEW_ERRORS,
    NOT_ZERO_ONE,
    OF_OTHER,
    OF_PROBLEMS,
    ONE_PREDICTION,
    PROPORTION_NAMES,
    RATIOS,
    SCALES,
    SIDES,
    has_own_scale,
    has_several,
    note_of_model,
)

Limits: TypeAlias = tuple[FloatArray, FloatArray]


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
    _, power = np.frexp(below)  # in units of about the denominator, fourth powers stay finite
    above, below = np.ldexp(above, -power), np.ldexp(below, -power)
    variances = np.ldexp(variances[0], -2 * power), np.ldexp(variances[1], -2 * power)
    covariance = np.ldexp(covariance, -2 * power)
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


def put_limits(
    result: Result,
    limits: tuple[FloatArray | float, FloatArray | float],
    at: MaskArray | bool = True,
    *,
    settled: int = 0,
    interval: str | None = None,
) -> Result:
    """Replace the limits of some columns, whose ``settled`` cautions no longer apply."""
    columns = dict(result.columns)
    for side, limit in zip(("lower", "upper"), limits, strict=True):
        columns[side] = np.where(at, limit, columns[side])
    attrs = result.attrs if interval is None else {**result.attrs, "interval": interval}
    return replace(result, columns=columns, attrs=attrs).drop_caution(settled, at)


# --- means of 0/1 losses --------------------------------------------------------------------------


BOUNDED = ("betting", "bernstein")
"""Intervals that need the bounds of the loss."""


PROPORTIONS = {"wilson": wilson, "clopper-pearson": clopper_pearson}
"""Intervals for 0/1 losses."""

SOME_WILSON = "wilson for 0/1 losses, otherwise wald"
SOME_TANGO = "tango for 0/1 losses with fewer than 25 discordant points, otherwise wald"
SOME_KORN_GRAUBARD = "korn-graubard for 0/1 losses, otherwise wald"
"""Limits chosen by `interval` if columns are of both kinds or not computed yet."""

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
    few = zero_one & (rarer > 0) & (rarer < FEW_ERRORS - 1e-9)
    return result.add_caution(Caution.FEW_ERRORS, few)


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
    return replace_limits(result, True, interval, name=interval)


def replace_limits(
    result: Result, at: MaskArray | bool, interval: str, *, name: str | None = None
) -> Result:
    """Replace normal limits with those of a proportion, in some columns.

    Repetitions add no points: the error rate is their average, and n is the number of points.
    """
    share, n = np.where(at, result.columns["estimate"], np.nan), result.columns["n_points"]
    limits = PROPORTIONS[interval](share, n, result.alpha, result.alternative)
    settled = OF_NORMAL_LIMITS[result.method]
    return put_limits(result, limits, at, settled=settled, interval=name)


def leave_open(result: Result, at: MaskArray) -> Result:
    """Remove the limits of columns whose variance is uninformative."""
    return put_limits(result, (np.nan, np.nan), at & result.has_caution(Caution.ZERO_VARIANCE))


def find_proportions(log: Log, estimate: FloatArray) -> MaskArray:
    """Find the columns whose losses are 0/1 by name, by type, or because both values occur.

    Costs that are usually zero may all be zero in a log, and still not be 0/1 errors.
    """
    known = log.known_proportions
    if known is False:
        return np.zeros(len(estimate), dtype=bool)
    return log.zero_one() & (bool(known) | (estimate > 0) & (estimate < 1))


def cut_limits(result: Result, log: Log, *, declared: bool = False) -> Result:
    """Replace limits outside the range of the loss by its end; for ``declared`` see `find_ends`.

    Nothing within the range is lost, so the coverage for means of losses does not change.
    """
    if log.of_differences or log.of_contrasts:
        return result
    ends = find_ends(log, result.columns["estimate"], declared=declared)
    lower, upper = result.columns["lower"], result.columns["upper"]
    return put_limits(result, (np.clip(lower, *ends), np.clip(upper, *ends)))


def find_ends(log: Log, estimate: FloatArray, *, declared: bool) -> tuple[FloatArray, FloatArray]:
    """Find the ends of the range of the losses of models; infinite if the range is unknown.

    ``declared``: only if it is the range of a metric or of a proportion, not for losses that
    cannot be negative.
    """
    facts, loss = log.metadata, str(log.metadata.get("loss"))
    name = loss.removeprefix("1 - ")
    lowest, highest = np.full(len(estimate), -np.inf), np.full(len(estimate), np.inf)
    if "range" in facts and not has_several(facts):
        ends = turn(np.array(facts["range"], dtype=float), str(facts.get("orientation")))
        lowest[:], highest[:] = ends.min(), ends.max()
    elif name in NOT_ZERO_ONE:
        lowest[:] = -np.inf if declared else 0.0
    else:
        at = find_proportions(log, estimate)
        at |= log.design.scores and name != loss and name in PROPORTION_NAMES  # not in percent
        lowest[at], highest[at] = 0.0, 1.0
    return lowest, highest


# --- skewed losses: Hall's limits -----------------------------------------------------------------


TABLE = 1 << 20
"""Approximate number of losses processed at once."""


def hall_limits(result: Result, log: Log, cells: Cells, points: Cells | None = None) -> Result:
    """Replace normal limits with Hall's, by the skewness of the losses about the means of cells.

    With ``points``, which were evaluated several times, that of their mean losses is used. Losses
    that do not vary have skewness 0.

    Raises
    ------
    LogError
        If the log has only cells and no individual losses, or pseudo-losses of a metric.
    """
    if log.design.metric:  # not a mean, so it has other sources of skewness
        raise LogError(
            "interval='hall' corrects a mean of losses, but this log was made from a metric. Use "
            "interval='wald', or a loss of individual points."
        )
    if points is None:
        skewness = measure_skewness(log.rows(), cells)
    else:
        deviations = points.mean - points.repeat(points.average(points.mean))
        z = deviations / points.repeat(find_deviations(points.average(deviations**2)))
        skewness = points.average(z**3).reshape(-1)
    columns = dict(result.columns)
    n, se = columns["n_points"], columns["se"]
    down, up = half_widths(result.alternative, result.alpha, None)
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
    """Measure the skewness of the losses of each column about the means of some cells."""
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
    for start, stop in block_bounds(chosen.width, TABLE, design.size):
        lines, column, row = chosen.column_major(slice(start, stop), 0, design.size)
        part = lines[column : column + stop - start, row : row + design.size]
        z = part[:, here] - mean[at[here], start:stop].T
        z /= deviation[group[at[here]], start:stop].T  # cubes of losses may overflow
        for j, line in enumerate(z * z * z, start):
            third[:, j] = np.bincount(group[at[here]], line, len(third))
    return (third / n).reshape(-1)


def find_deviations(variance: FloatArray) -> FloatArray:
    """Take the square root of variances; infinity for 0, so that equal losses have skewness 0."""
    return np.sqrt(np.where(variance == 0, np.inf, variance))


# --- differences between groups: Welch's degrees of freedom ---------------------------------------


def qualify_contrast(result: Result, log: Log) -> Result:
    """Label an interval as one for a difference between groups, and use Welch's limits.

    If the sampling unit is sources that occur in several groups, those without points of the two
    groups add nothing to the variance, and are not counted.
    """
    target = f"difference between groups in the {result.attrs['target']}"
    columns = dict(result.columns)
    if (number := log.metadata.get("points_compared")) is not None:  # of two of several groups
        columns["n_points"] = np.full_like(columns["n_points"], number)
    result = replace(result, attrs={**result.attrs, "target": target}, columns=columns)
    by = str(log.metadata.get("by"))
    if result.method not in ("holdout", "wald", "clustered") or by not in log.design.levels:
        return result
    if log.design.by is not None:
        raise DifferentGroups("degrees of freedom are computed for one group at a time.")
    if result.method == "clustered":
        if not log.design.has("source"):
            return result
        cells = log.moments(("source", by))
        each = (cells.count[:, None] * (cells.mean - cells.over(()).mean)) ** 2
        sources, at = np.unique(cells.codes[:, 0], return_inverse=True)
        squares = np.zeros((len(sources), each.shape[1]))
        np.add.at(squares, at, each)
        used = (squares >= 1e-20 * squares.max(axis=0)).sum(axis=0)  # others are 0 up to rounding
        if (used < len(sources)).any():
            result = replace(result, columns={**result.columns, "n_clusters": used})
        if len(at) > len(sources):
            share = np.maximum(used - 1, 1) / (len(sources) - 1)
            return result if (share == 1).all() else take_t(result, share * result.columns["df"])
        count = np.ones(len(at))
    else:  # points
        repeated = repetition_level(log.design)
        cells = log.moments((*repeated, by))
        parts, whole = cells.within(repeated), cells.over(repeated)
        apart = parts.mean - parts.repeat(whole.mean)
        each = parts.m2 + parts.count[:, None] * apart**2
        cells, count = parts, parts.count / len(whole.count)
    groups, at = np.unique(cells.codes[:, -1], return_inverse=True)
    squares, n = np.zeros((len(groups), each.shape[1])), np.zeros(len(groups))
    np.add.at(squares, at, each)
    np.add.at(n, at, count)
    return take_welch(result, squares, n)


def take_welch(result: Result, squares: FloatArray, n: FloatArray) -> Result:
    """Use Student's t with the degrees of freedom of Welch and Satterthwaite.

    ``(sum_g S_g)^2 / sum_g S_g^2 / (n_g - 1)`` where S_g is the contribution of group g to the
    squared deviations (Welch 1947, doi:10.1093/biomet/34.1-2.28).
    """
    spare = np.maximum(n - 1, 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        df = squares.sum(axis=0) ** 2 / (squares**2 / spare).sum(axis=0)
    return take_t(result, np.where(np.isnan(df), n.sum() - 2, df))


def take_t(result: Result, df: FloatArray) -> Result:
    """Use Student's t with other degrees of freedom, which say whether clusters are few."""
    estimate, se, lower = (result.columns[name] for name in ("estimate", "se", "lower"))
    limits = confidence_limits(estimate, se, *half_widths(result.alternative, result.alpha, df))
    result = put_limits(result, limits, ~np.isnan(lower), interval="t")
    result = replace(result, columns={**result.columns, "df": df})
    if result.method != "clustered":
        return result
    few = df < ENOUGH_DF
    caution = flag(Caution.FEW_CLUSTERS, few) | flag(Caution.VERY_FEW_CLUSTERS, df < FEW_DF)
    return replace(result, caution=result.caution | caution).drop_caution(Caution.SKEWED, few)


def widen_contrast(result: Result, log: Log) -> Result:
    """Add a pseudo-error of each group to the variance of a difference between groups.

    It is the largest change by one prediction: 1 / n for the error rate of n points. The limits of
    Welch then cover .91 to 1.00 of differences of error rates of .005 to .5 in groups of 20 to
    1,000 points, and .95 or more in 95% of 960 cases, by enumeration. Without it they cover .18 to
    .99. In the median they are 1.04 times as wide as those of Newcombe (1998).
    """
    reach = find_reach(log, of_clusters=False) if result.method in OF_NORMAL_LIMITS else None
    if reach is None or not reach.known.any():
        return result
    columns = result.columns
    se = np.hypot(columns["se"], reach.change)
    far = half_widths(result.alternative, result.alpha, columns.get("df"))
    limits = confidence_limits(columns["estimate"], se, *far)
    settled = Caution.ZERO_VARIANCE | Caution.SKEWED
    changed = put_limits(result, limits, reach.known, settled=settled)
    return label_rarity(changed, reach, log.metadata)


# --- metrics between two ends: what one prediction can change -------------------------------------


END = 1e-9
"""Distance from a bound below which a metric is treated as being at the bound."""


LEAST_OF_A_CLASS = 2
"""Minimum effective number of points of a class for which limits are computed."""


OF_CLUSTERS = 0.1
"""Pseudo-errors if clusters are the sampling unit and all errors are in one of them."""


def count_pseudo_errors(t: FloatArray, v: FloatArray, d: FloatArray) -> FloatArray:
    """Count the pseudo-errors of clusters: at most a tenth, and fewer if these are alike.

    A mean t of G equal clusters, of which one changes ``d = 1 / G``, has the squared coefficient
    of variation ``v / (d t^2)`` of its clusters. The more evenly these err, the less an unseen
    cluster can be worse. In simulations of 6 to 80 clusters of 4 to 300 points, with correlations
    of 0 to .5 and at least 10 errors in most logs, limits of proportions covered .94 to 1.00. In
    the median they were 1.1 times as wide as those of Student's t, which covered .47 to .96. With
    no pseudo-errors they covered .73 to 1.00; with a tenth in all logs they were 1.6 times as wide.
    """
    rarer = d * np.minimum(t, 1 - t) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        uneven = np.where(v > 0, v / (v + rarer), 1.0)
    return OF_CLUSTERS * uneven**2


def korn_graubard(
    estimate: FloatArray,
    variance: FloatArray,
    reach: FloatArray,
    alpha: float,
    alternative: str = "two-sided",
    ends: tuple[float | FloatArray, float | FloatArray] = (0.0, 1.0),
    *,
    errors: float | FloatArray | None = 1.0,
    units: tuple[FloatArray, FloatArray] | None = None,
) -> Limits:
    """Exact limits of a bounded metric, from an effective number of points.

    ``reach`` is the largest change that one prediction can make, and ``errors`` the number of such
    changes that are added; None for those of clusters. ``units`` contains the number of points, or
    times, and the degrees of freedom of the variance, if it is not 0.
    """
    size = ends[1] - ends[0]
    t, v, d = (estimate - ends[0]) / size, variance / size**2, reach / size
    t = np.where(np.abs(t) < END, 0.0, np.where(np.abs(t - 1) < END, 1.0, t))
    errors = count_pseudo_errors(t, v, d) if errors is None else errors
    points = (t * (1 - t) + errors * d) / (v + errors * d**2)
    if units is not None:
        number, df = units
        own, whole = (half_widths("two-sided", alpha, each)[0] for each in (df, number - 1))
        points = points * np.where(v > 0, (whole / own) ** 2, 1.0)
    lower, upper = clopper_pearson(t, points, alpha, alternative)
    return ends[0] + size * lower, ends[0] + size * upper


@dataclass(frozen=True, eq=False)
class Reach:
    """Largest change by one prediction, and rarity of a class, in each entry of a result.

    Parameters
    ----------
    change : array
        The largest change of the metric; NaN if unknown.
    rarity : array
        One over the effective number of points, or clusters, of the rarest class.
    """

    change: FloatArray
    rarity: FloatArray

    @property
    def known(self) -> MaskArray:
        """Entries whose change is known."""
        return ~np.isnan(self.change)


FindReach: TypeAlias = Callable[[bool], Reach | None]
"""Finds the reach, given whether clusters are the sampling unit."""


def facts_of_one_metric(log: Log) -> Mapping[Any, Any]:
    """Return the facts of the metric of a log; none if there are several metrics."""
    return {} if has_several(log.metadata) else log.metadata


def find_reach(log: Log, of_clusters: bool) -> Reach | None:
    """Find the largest change one prediction can make in each column, one group at a time.

    For two logs side by side, the columns of both are included. None if unknown.
    """
    if SIDES in log.metadata:
        found = [tabulate_joined_reach(log, of_clusters)]
    else:
        found = [tabulate_reach(log, log.labels, ONE_PREDICTION, of_clusters)]
    if log.other is not None:
        found.append(tabulate_reach(log, log.other, OF_OTHER, of_clusters))
    known = [table for table in found if table is not None]
    if len(known) < len(found):
        return None
    table = np.concatenate(known, axis=1).reshape(-1, 2)
    return Reach(table[:, 0], table[:, 1])


def tabulate_joined_reach(log: Log, of_clusters: bool) -> FloatArray | None:
    """Tabulate the same for two lazy logs, whose models are columns of one array."""
    mine, yours = log.metadata[SIDES]
    tables = [
        tabulate_reach(log, rename_models(log.labels, [*own, *own]), key, of_clusters)
        for own, key in ((mine, ONE_PREDICTION), (yours, OF_OTHER))
    ]
    first, table = tables
    if first is None or table is None:
        return None
    for model in range(len(mine)):
        columns = log.labels.columns(model)
        table[:, columns] = first[:, columns]
    return table


def rename_models(labels: Any, models: list[Hashable]) -> Any:
    """Give the models of labels other names."""
    if isinstance(labels, SomeLabels):
        return replace(labels, whole=rename_models(labels.whole, models))
    return replace(labels, models=models)


def tabulate_reach(log: Log, labels: Labels, key: str, of_clusters: bool) -> FloatArray | None:
    """Tabulate the largest change of one prediction and the rarity of a class: groups by columns.

    For a mean over cells with shares a, it is the sum of ``a^2`` times the value of each cell;
    repetitions are averaged.
    """
    facts = facts_of_one_metric(log)
    written = facts.get(key)
    names = tuple(facts.get("cells", ()))
    if not isinstance(written, str) or not set(names) <= log.design.levels.keys():
        return None
    metadata = json.loads(written)
    tested = tally(log.design, *names)
    place = {key: at for at, key in enumerate(metadata["cells"])}
    labels_of_cells = map(tested.key, range(len(tested.count)))
    keys = [", ".join(str(own[name]) for name in names) for own in labels_of_cells]
    rows = np.array([place.get(key, -1) for key in keys])
    if (rows < 0).any():
        return None
    groups = np.repeat(np.arange(len(tested.starts)), tested.n_cells[:, 0])
    split = groups
    if "repetition" in names and log.design.by != "repetition":
        both = np.column_stack([groups, tested.codes[:, tested.levels.index("repetition")]])
        split = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    share = tested.count / np.bincount(split, tested.count)[split]
    repetitions = np.bincount(groups[np.unique(split, return_index=True)[1]])

    columns = name_columns(labels)
    carried_cells = locate_columns(labels, metadata, len(columns))

    def sum_cells(models: Sequence[Hashable], notes: Mapping[str, Any]) -> FloatArray | None:
        """Sum the notes of a model over its cells, for each column."""
        found = []
        for model, carried in zip(models, carried_cells, strict=True):
            each = note_of_model(notes, model)
            if each is None or carried is None:
                return None
            cells = np.array(each[carried if len(each) > 1 else 0], dtype=float)
            if not len(cells):
                found.append(np.full((len(repetitions), 2), np.nan))
                continue
            own = cells[rows][:, 2:4] if of_clusters else cells[rows][:, :2]
            if of_clusters and log.crossed:  # sources, or points that occur in all of them
                own = cells[rows][:, 2:].reshape(len(rows), -1, 2).max(axis=1)
            sums = [np.bincount(groups, share**2 * part) / repetitions for part in own.T]
            found.append(np.column_stack(sums))
        return np.stack(found, axis=1)

    if "differences" not in metadata:
        return sum_cells(columns, metadata["models"])
    models, others = name_sides(columns, labels, metadata)
    one = sum_cells(models, metadata["models"])
    of_pairs = log.pairs is not None and log.other is None and SIDES not in log.metadata
    if of_pairs and metadata["differences"] is not None:  # the same reference is in both columns
        return one
    two = sum_cells(others, metadata.get("others", metadata["models"]))
    if one is None or two is None:
        return None
    change, rarity = one[..., 0] - two[..., 0], one[..., 1]
    if facts.get("metric") not in RATIOS:  # which have covariances instead, and one denominator
        change, rarity = np.hypot(one[..., 0], two[..., 0]), np.fmax(rarity, two[..., 1])
    return np.stack([change, rarity], axis=-1)


def name_columns(labels: Labels) -> list[Hashable]:
    """List the model of each column."""
    columns = [labels.columns(number).tolist() for number in range(len(labels.models))]
    models: list[Hashable] = [None] * sum(map(len, columns))
    for model, own in zip(labels.models, columns, strict=True):
        for column in own:
            models[column] = model
    return models


def name_sides(
    models: list[Hashable], labels: Labels, metadata: Mapping[str, Any]
) -> tuple[list[Hashable], list[Hashable]]:
    """List both models of each column of a log that `difference` made."""
    reference = metadata["differences"]
    if reference is not None:
        return models, [reference] * len(models)
    if "others" in metadata:  # of two logs with the same models
        return models, models
    at, coords = locate_cells(labels, len(models))
    if not {"model", "other"} <= coords.keys():  # the columns of a frame
        other = (object(),) * 2  # a renamed column does not name its models
        pairs = [pair if isinstance(pair, tuple) and len(pair) == 2 else other for pair in models]
        return [model for model, _ in pairs], [other for _, other in pairs]
    # one pair was selected, or all are a dimension
    pair = at.get("pair", np.zeros(len(models), dtype=np.int64))
    one, two = (np.atleast_1d(coords[name].values)[pair].tolist() for name in ("model", "other"))
    return one, two


def locate_cells(
    labels: Labels, width: int
) -> tuple[dict[Hashable, IntArray], Mapping[Hashable, Any]]:
    """Find the position of each column along each carried dimension, and the coordinates."""
    chosen = np.arange(width)
    if isinstance(labels, SomeLabels):
        chosen, labels = labels.chosen, labels.whole
    dims = getattr(labels, "dims", ())
    at = np.unravel_index(chosen, getattr(labels, "sizes", ())) if dims else ()
    return dict(zip(dims, at, strict=True)), getattr(labels, "coords", {})


def locate_columns(labels: Labels, metadata: Mapping[str, Any], width: int) -> list[int | None]:
    """Find the number that the carried cell of each column had when the log was made.

    Carried cells are identified by their labels, so any subset may be selected in any order.
    """
    carried = metadata.get("carried", {})
    if not carried:
        one = {len(each) for each in metadata["models"].values()} == {1}
        return [0 if one else None] * width
    numbers: IntArray = np.zeros(width, dtype=np.int64)
    at, coords = locate_cells(labels, width)
    for dim, noted_labels in carried.items():
        if dim in at:
            words = list(map(str, coords[dim].values[at[dim]] if dim in coords else at[dim]))
        else:
            words = [str(coords[dim].values) if dim in coords else ""] * width
        place = {label: i for i, label in enumerate(noted_labels)}
        codes = np.array([place.get(word, -UNKNOWN) for word in words])
        numbers = numbers * len(noted_labels) + codes
    return [int(i) if i >= 0 else None for i in numbers.tolist()]


UNKNOWN = 10**9
"""Larger than any number of carried cells."""


# --- the default limits of a log ------------------------------------------------------------------


def take_own_limits(result: Result, log: Log) -> Result:
    """Replace normal limits with those of a proportion or a bounded metric.

    Wilson's limits of a proportion near 0 or 1 cover .84 at worst; using Clopper-Pearson below 10
    of the rarer outcome raises this to .93 (enumerated, n = 30 to 5,000).

    Constant losses other than 0 and 1 have no limits, because nothing is known about their range.
    The points of a test set that was evaluated several times have means, not losses: their limits
    are those of a proportion in which one point changes 1 / n, as for pass@1. For pass^k, one
    problem changes 1 / n, and there are no limits if all problems have the same value between 0
    and 1.

    Coverage in simulations, in brackets that of Student's t:

    - pass^3 of .015 to .05, in 20,000 logs of 30 problems with 5 attempts each: .99 (.71 to .85 on
      the logit scale; for pass^3 of .4 the widths are equal)
    - 6 to 30 unequal sources, left out one at a time, error rates of .02 to .3: .95 to 1.00 (.45
      to .96)
    - 10 to 50 random splits of 50 to 100 points, the same error rates: .94 to 1.00 (.48 to .98,
      with limits often below 0)
    - 2 to 100 fixed sources of 2 to 5,000 points, error rates of .01 to .3: .94 to 1.00 (.10 to
      .99); one point of the smallest source changes the most
    - 5 to 25 sources and their points as sampling units, error rates of .03 to .2: .93 to 1.00;
      see also `count_pseudo_errors`
    """
    if log.of_differences:
        return result
    if log.of_contrasts:
        return widen_contrast(result, log)
    method, columns = result.method, result.columns
    estimate, by_source = columns["estimate"], method == "clustered"
    if log.metadata.get("limits") == OF_PROBLEMS:
        if by_source and result.attrs.get("by") != "source":
            return rescale_limits(leave_open(result, columns["se"] == 0), "logit")
        share = share_of_sources(log, len(estimate)) if by_source else None
        return take_limits_of_means(result, np.ones(len(estimate), dtype=bool), share)
    if method == "out_of_source":
        if averages_sources(result):
            at = find_proportions(log, estimate)
            result = leave_open(result, ~at)
            return take_limits_of_means(result, at) if at.any() else result
        at, reach, *ends = find_bounded_sources(result, log)
        return take_limits_of_means(result, at, reach, ends) if at.any() else result
    if by_source or (method == OF_SPLITS and "n_points" in columns):
        if log.design.metric:
            return take_limits_of_metric(result, log)
        at = find_proportions(log, estimate)
        if not at.any() or (by_source and result.attrs.get("by") not in BY_SOURCES):
            return result
        share = share_of_sources(log, len(at)) if by_source else None
        return take_limits_of_means(result, at, share)
    if method not in OF_NORMAL_LIMITS:
        return result
    at = find_proportions(log, estimate)
    if log.design.metric:
        result = take_limits_of_metric(result, log)
    result = leave_open(result, ~at)
    if not at.any() and (not log.some_cells or log.known_proportions is False):
        return result
    if method == "holdout" and log.design.number("repetition") > 1:
        return take_limits_of_means(result, at)
    rarer = columns["n_points"] * np.minimum(estimate, 1 - estimate)
    few = at & (rarer < FEW_ERRORS - END)
    words = OF_PROPORTIONS[int(few.any()) + int(few.all())]
    if log.some_cells or not at.all():
        words = SOME_WILSON
    result = replace_limits(result, at, "wilson")
    return replace_limits(result, few, "clopper-pearson", name=words)


def averages_sources(result: Result) -> bool:
    """Whether an interval is for the sources of a log, so that points are the sampling unit."""
    return result.method == "out_of_source" and "variance" in result.attrs


def find_bounded_sources(
    result: Result, log: Log
) -> tuple[MaskArray, FloatArray, FloatArray, FloatArray]:
    """Find the columns with bounded losses, the share of one source, and the ends of the range."""
    lowest, highest = find_ends(log, result.columns["estimate"], declared=True)
    at = np.isfinite(lowest) & np.isfinite(highest)
    share = np.broadcast_to(1 / result.columns["n_sources"], at.shape)
    return at, share, np.where(at, lowest, 0.0), np.where(at, highest, 1.0)


def share_of_sources(log: Log, size: int) -> FloatArray:
    """Compute the sum of the squared shares of the sources of each group, for all columns."""
    cells = log.moments(("source",))
    squares = cells.sum((cells.count[:, None] / cells.repeat(cells.sum(cells.count))) ** 2)
    return np.repeat(squares.reshape(-1), size // squares.size)


def take_limits_of_means(
    result: Result,
    at: MaskArray,
    reach: FloatArray | None = None,
    ends: Sequence[FloatArray] = (np.zeros(1), np.ones(1)),
) -> Result:
    """Replace normal limits of means of 0/1 losses by those of a proportion, in some columns.

    ``reach`` is the share of a cluster, or of a time, if these are the sampling unit, instead of
    points. For times, and for clusters and points, the pseudo-error applies only to a variance of
    0. ``ends`` are those of other losses than 0 and 1.
    """
    columns = result.columns
    estimate, variance = columns["estimate"], columns["se"] ** 2
    lowest, highest = ends
    share = (estimate - lowest) / (highest - lowest)
    errors: float | FloatArray | None = None
    units, settled = None, Caution.ZERO_VARIANCE | Caution.FEW_ERRORS
    if reach is not None:
        units = count_units(result)
        if "n_clusters" not in columns and "n_sources" not in columns:
            errors = np.where(variance > 0, 0.0, OF_CLUSTERS)
        reach = reach * (highest - lowest)
    else:
        n = columns["n_points"]
        errors, reach, settled = 1.0, 1 / n, settled | Caution.SKEWED
        if result.method == OF_SPLITS:
            units = count_units(result)
        elif averages_sources(result):
            reach = 1 / (columns["n_sources"] * columns["smallest"])
        else:
            variance = variance * (n - 1) / n
    limits = korn_graubard(
        np.where(at, estimate, np.nan), variance, reach,
        result.alpha, result.alternative, (lowest, highest), errors=errors, units=units,
    )  # fmt: skip
    inside = (columns["se"] == 0) & (np.minimum(share, 1 - share) > END)
    words = "korn-graubard" if at.all() else SOME_KORN_GRAUBARD
    result = put_limits(result, (np.nan, np.nan), at & inside)
    return put_limits(result, limits, at & ~inside, settled=settled, interval=words)


def take_scale(result: Result, find: FindReach, facts: Mapping[Any, Any]) -> Result:
    """Replace normal limits with limits on the scale of the metric.

    Ratios use the log scale, R2 uses log(1 - R2), and correlations use Fisher's z with a
    jackknife variance. The ratio of two mean losses uses Fieller's limits, which do not exist if
    the denominator does not differ from 0.
    """
    scale, columns = facts["limits"], result.columns
    loss, se, n = columns["estimate"], columns["se"], columns["n_points"]
    alpha, clustered = result.alpha, result.method in OF_GROUPS
    if result.alternative != "two-sided" or facts.get("folds") != "pool":
        return result
    if result.method == OF_SPLITS:
        return result
    inflation, own = np.ones(len(loss)), np.zeros(len(loss))
    if scale != "log":
        shape = None if clustered else find(False)
        if shape is None or not shape.known.all():
            return result
        inflation, own = shape.change, shape.rarity
    critical = half_widths("two-sided", alpha, columns.get("df"))[0]
    few = np.ones(len(loss))
    if not clustered:  # Student's t
        ready = result.method == "holdout" or TARGET in facts
        few = np.ones(len(loss)) if ready else n / (n - 1)
        critical = half_widths("two-sided", alpha, n - 1)[0]
    spread = critical * se * np.sqrt(few)
    limits: Limits
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "log":
            shift = float(str(facts.get("orientation")) in TURNED)
            ratio = loss + shift
            factor = np.exp(spread / ratio)
            limits = ratio / factor - shift, ratio * factor - shift
        elif scale == "fisher-z":
            own_variance = few * se**2 * (n - 1) / n * inflation
            middle, far = np.arctanh(loss), critical * np.sqrt(own_variance) / (1 - loss**2)
            limits = np.tanh(middle - far), np.tanh(middle + far)
        else:
            shift = float(facts["metric"] == "skill")
            ratio = loss + shift
            shared, below = (part * n / (n - 1) for part in (inflation, own))
            above = few * se**2 + 2 * ratio * shared + ratio**2 * below
            found = fieller(
                ratio, np.ones(len(loss)), (above, below), shared + ratio * below, critical
            )
            limits = found[0] - shift, found[1] - shift
            none = np.isnan(limits[0]) & ~np.isnan(loss)
            result = result.add_caution(Caution.REFERENCE_NEAR_ZERO, none)
    return put_limits(result, limits, se > 0, interval=str(scale))


OF_PROPORTIONS = (
    "wilson",
    "wilson, clopper-pearson below 10 of the rarer outcome",
    "clopper-pearson",
)
"""Names of the limits of proportions if no, some or all outcomes are rare."""


def take_limits_of_metric(result: Result, log: Log, find: FindReach | None = None) -> Result:
    """Replace normal limits with limits within the bounds of the metric, if the bounds are known.

    The metric is one minus the loss, or minus the loss, so their limits mirror each other. ``find``
    finds the reach of the columns of the result, if these are not all columns of the log.
    """
    facts, find = facts_of_one_metric(log), find or partial(find_reach, log)
    bounds = facts.get("range")
    if facts.get("limits") in SCALES:
        return take_scale(result, find, facts)
    bounded = bounds is not None and bool(np.isfinite(bounds).all())
    if TARGET in facts and not bounded and "df" not in result.columns:
        estimate, df = result.columns["estimate"], result.columns["n_points"] - 1
        far = half_widths("two-sided", result.alpha, df)[0] * result.columns["se"]
        return put_limits(result, (estimate - far, estimate + far), interval="t")
    clustered, of_sources = result.method in OF_GROUPS, result.method == "clustered"
    if of_sources and result.attrs.get("by") not in BY_SOURCES:
        return leave_open(result, result.columns["se"] == 0)
    reach = find(of_sources) if bounded else None
    if bounds is None or reach is None or not reach.known.any():
        return result
    reach = scale_reach(reach, result)
    ends = sorted(turn(np.array(bounds, dtype=float), str(facts.get("orientation"))).tolist())
    columns = result.columns
    variance, n = columns["se"] ** 2, columns["n_points"]
    if result.method == "holdout":
        variance = variance * (n - 1) / n
    limits = korn_graubard(
        columns["estimate"], variance, reach.change, result.alpha, result.alternative,
        (ends[0], ends[1]), errors=None if clustered else 1.0,
        units=count_units(result) if "df" in columns else None,
    )  # fmt: skip
    changed = put_limits(
        result, limits, reach.known, settled=Caution.ZERO_VARIANCE, interval="korn-graubard"
    )
    rare = reach.known & (reach.rarity * LEAST_OF_A_CLASS > 1)
    return label_rarity(put_limits(changed, (np.nan, np.nan), rare), reach, facts)


OF_SPLITS = "corrected_t"
"""The method of random splits, whose sampling unit is the point and whose df those of splits."""

OF_GROUPS = "clustered", "ordered"
"""Methods whose sampling units are groups of points, or times, with degrees of freedom."""


BY_SOURCES = ("source", "source, point", "point, source")
"""Levels of clusters, alone or crossed with points, whose part in each class is known."""


def count_units(result: Result) -> tuple[FloatArray, FloatArray]:
    """Return the number of points or times, and the df: of two ways at most those of the fewer."""
    columns = result.columns
    if "n_first" not in columns:
        return columns["n_times" if "n_times" in columns else "n_points"], columns["df"]
    number = np.minimum(columns["n_first"], columns["n_second"])
    return columns["n_points"], np.minimum(columns["df"], number - 1)


# --- differences of metrics and proportions -------------------------------------------------------


def add_pseudo_errors(base: Result, log: Log, run: Callable[[Log], Result] | None = None) -> Result:
    """Add a pseudo-error of each model to the variance of their difference.

    It is the largest change of a bounded metric, or of an error rate over random splits or, if a
    pair disagrees on few points, fixed sources, by one prediction: ``v + d_a^2 + d_b^2``. A
    difference with zero variance then still has limits and a test. The standard error without it
    is kept: see `show_own_errors`. That of a cluster depends on the intervals of the models, which
    ``run``, the method of ``base``, computes. In a log of differences, which lacks these, it is
    added only to a variance of 0.

    In simulations of 10 to 25 splits of 50 to 300 points, intervals for differences of error rates
    of 0 to .08 covered .95 to 1.00, and those of `corrected_t` .48 to .99. For 2 to 10 fixed
    sources of 30 to 1,000 points they covered .95 to 1.00, and without it .84 to .95.
    """
    clustered = base.method == "clustered"
    facts = facts_of_one_metric(log)
    by_other = log.of_contrasts or base.attrs.get("by") not in BY_SOURCES
    if has_own_scale(facts) or (clustered and by_other):
        return base
    reach = reach_of_pairs(base, log, find_reach(log, clustered), run)
    if reach is None:
        return base
    se = np.sqrt(base.columns["se"] ** 2 + reach.change)
    settled = Caution.ZERO_VARIANCE | (Caution.SKEWED if log.of_contrasts else 0)
    columns = {**base.columns, OWN_ERROR: base.columns["se"], "se": se}
    changed = replace(base, columns=columns).drop_caution(settled, reach.change > 0)
    return label_rarity(changed, reach, facts)


def reach_of_pairs(
    base: Result, log: Log, reach: Reach | None, run: Callable[[Log], Result] | None
) -> Reach | None:
    """Sum the squared pseudo-errors of both models of each pair; None if unknown."""
    if not log.design.metric:
        known, columns = log.known_proportions, base.columns
        of_tasks = averages_sources(base)
        by_splits = base.method == OF_SPLITS and "n_points" in columns
        if known is False or not (by_splits or of_tasks):
            return None
        estimate, se = columns["estimate"], columns["se"]
        n = columns["n_sources"] * columns["smallest"] if of_tasks else columns["n_points"]
        at = log.zero_one_pairs() & (bool(known) | (se > 0) | (estimate != 0))
        if of_tasks:  # averages of repetitions are closer to normal, and few points have t
            few = (n * se) ** 2 < FEW_ERRORS  # about the discordant points, if all tasks are equal
            once = log.design.number("repetition") == 1
            at = at & few & once & np.isinf(columns.get("df", np.inf))
        return Reach(np.where(at, 2 / n**2, 0.0), np.zeros(len(n)))
    if reach is None:
        return None
    square, rarity = reach.change**2, reach.rarity
    clustered = base.method == "clustered"
    if clustered and log.without_pairs().of_differences:
        run = None
    if clustered and run is not None:
        each = run(log.without_pairs())
        lowest, highest = find_ends(log, each.columns["estimate"], declared=True)
        share = (each.columns["estimate"] - lowest) / (highest - lowest)
        part = (each.columns["se"] / (highest - lowest)) ** 2
        square *= count_pseudo_errors(share, part, reach.change / (highest - lowest))
    square = np.nan_to_num(square)
    if log.pairs is not None:
        per_group = len(square) // log.losses.width, -1
        square, rarity = square.reshape(per_group), rarity.reshape(per_group)
        square = sum((square[:, side] for side in log.sides), np.zeros(1)).reshape(-1)
        rarity = np.fmax(*(rarity[:, side] for side in log.sides)).reshape(-1)
    if clustered and run is None:
        square = square * np.where(base.columns["se"] > 0, 0.0, OF_CLUSTERS)
    return scale_reach(Reach(square, rarity), base, power=2)


def scale_reach(reach: Reach, result: Result, power: int = 1) -> Reach:
    """Reduce the reach of a point that is tested in only some of several random splits."""
    columns = result.columns
    if result.method != OF_SPLITS or "n_points" not in columns:
        return reach
    tested = columns["n_test"] / columns["n_points"]
    return Reach(reach.change * tested**power, reach.rarity * tested)


def compare_numerators(base: Result, of_points: Result, log: Log) -> Result:
    """Test differences of ratios with the same denominator, such as R2, by their numerators.

    A difference D of two ratios has the influences ``(a - b - D t) / T``, with t the losses of the
    denominator and T their mean. Under the hypothesis D = 0 these are ``(a - b) / T``, whose
    variance is larger by ``2 D (c_a - c_b) + D^2 v_t``, with c the covariance of a ratio with t /
    T. An outlier in the truth is in all three losses: its influence on D is about 0, however much
    it increases D, whereas the statistic of ``(a - b) / T`` is then at most 1. ``of_points`` has
    the variance of D if points are independent.
    """
    shape = find_reach(log, of_clusters=False)
    if shape is None or not shape.known.all():
        return base
    gap, below = shape.change, shape.rarity
    if log.pairs is not None:
        per_group = -1, log.losses.width
        covariance, below = (part.reshape(per_group) for part in (gap, below))
        left, right = log.sides
        gap = (covariance[:, left] - covariance[:, right]).reshape(-1)
        below = below[:, left].reshape(-1)
    found = base.columns["estimate"]
    added = 2 * found * gap + found**2 * below
    variance, n = of_points.columns["se"] ** 2, of_points.columns["n_points"]
    if of_points.method == "holdout":
        added = added * n / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.sqrt(np.maximum(1 + added / variance, 0))
    return scale_errors(base, np.where(variance > 0, factor, 1.0))


def name_limits(log: Log, method: str, kind: str | None) -> str | None:
    """Name the limits of a lazy log, in which each chunk uses the limits of its own losses.

    ``kind`` names those of 0/1 losses, or of a metric whose points are unknown.
    """
    if log.of_differences:
        return SOME_TANGO if method in OF_NORMAL_LIMITS and log.known_proportions else kind
    if method in OF_NORMAL_LIMITS:
        if not log.design.metric:
            return SOME_WILSON
        if kind == "wald" and log.metadata.get("limits") in SCALES:
            return str(log.metadata["limits"]) if log.metadata.get("folds") == "pool" else kind
        return "korn-graubard" if kind == "wald" and ONE_PREDICTION in log.metadata else kind
    unknown = "range" not in log.metadata and log.known_proportions is None
    return SOME_KORN_GRAUBARD if kind == "korn-graubard" and unknown else kind


def label_rarity(result: Result, reach: Reach, facts: Mapping[Any, Any]) -> Result:
    """Label entries in which some class has few points, instead of labeling the whole log."""
    if not reach.known.all() or "rarest_class" not in facts:
        return result
    result = result.add_caution(Caution.FEW_OF_A_CLASS, reach.rarity * FEW > 1 + END)
    return replace(result, allows_for=result.allows_for | Caution.FEW_OF_A_CLASS)
