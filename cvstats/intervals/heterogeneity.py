"""Whether groups differ by more than sampling error: Welch's test, Cochran's Q and tau.

Group g has the mean loss y_g with the squared standard error s_g^2. If the groups had one
common expected loss, Q = sum (y_g - y)^2 / s_g^2, about the mean y weighted by 1 / s_g^2, would
follow chi-squared with G - 1 degrees of freedom as the points of each group grow. With few points
Q is too large, because the s_g^2 are estimates; Welch's F accounts for that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import repetition_level, tally
from cvstats.core.results import Result, flag, interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, listed, spelled
from cvstats.intervals._method import LogMethod, flag_ignored_sources
from cvstats.intervals._requirements import partition, several_groups
from cvstats.intervals.clustered import count_points
from cvstats.log.log import Log
from cvstats.log.loss_checks import skewness_within
from cvstats.options import Missing

SHIFT = 0.2
"""Largest shift of Q by skewness, in its standard deviations, that is not flagged."""

STEPS = 200
"""Maximum number of Newton steps; each at least doubles a tau^2 that is far too small."""


def groups_of_partition(design: Design, by: str = "source") -> str | None:
    """Require at least two groups, and that each point is tested in every repetition."""
    return several_groups(design, by) or partition(design)


@LogMethod(
    requires=groups_of_partition,
    needs="a level that identifies at least two independent groups (source)",
    target="standard deviation and mean of the expected losses of groups from the same population",
    guarantee="exact as the number of points per group grows, for normal group means; with "
    "variance='pooled', if groups have equal variances",
    fits="as the log has",
    reference="Welch (1951), doi:10.1093/biomet/38.3-4.330; Hartung and Knapp (2001), "
    "doi:10.1002/sim.791; Cochran (1954), doi:10.2307/3001666; Paule and Mandel (1982), "
    "doi:10.6028/jres.087.022; Viechtbauer (2007), doi:10.1002/sim.2514",
    level_option="by",
    takes_metrics="averaged",
    of_groups=True,
)
def heterogeneity(
    log: Log,
    *,
    by: str = "source",
    variance: Literal["own", "pooled"] = "own",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    r"""Test whether groups differ by more than sampling error, and estimate by how much.

    The targets are the standard deviation tau and the mean of the expected losses, over groups from
    the same population. The statistic Q is the sum of the squared deviations of the group means,
    each divided by its squared standard error. Welch's test accounts for the fact that these
    standard errors are estimated.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log in which each point was tested once in every repetition, with a level that names
        the groups. Losses in any unit.
    by : str, optional
        The level (or coordinate) whose labels are the groups.
    variance : {"own", "pooled"}, optional
        Whether ``s_g^2`` is the sample variance of the group's own losses over their number,
        or a common variance is assumed for all groups. The second allows groups of one point and
        groups of identical losses; the test is then the analysis of variance, ``F = Q / (G - 1)``
        with G - 1 and N - G degrees of freedom.
    alpha : float, optional
        One minus the level of the intervals for the mean and for tau.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` of the mean over groups (Hartung and Knapp); ``statistic`` (F) with
        ``df``, ``df_within`` and ``p_value``; ``q``; ``i2``, the share of the variation of the
        y_g that sampling error does not explain, ``max(0, 1 - df / Q)``; ``tau`` (Paule and
        Mandel) with ``tau_lower`` and ``tau_upper`` (Q-profile) in the units of the loss; and
        ``caution``. ``n_groups`` is in ``attrs``.

    Raises
    ------
    LogError
        If there is only one group, a point is in several groups, or a group has zero variance.

    See Also
    --------
    cvstats.out_of_source : The mean over new groups, and a prediction interval for the next group.
    cvstats.clustered : The mean loss over points of new groups.
    cvstats.source_components : Variances and covariances of each source.

    Notes
    -----
    With y_g the mean loss of group g of G, n_g its points, s_g its standard error, w_g = 1 / s_g^2
    and y the mean of the y_g weighted by w_g,

    .. math::

        Q = \sum_g w_g (y_g - y)^2, \qquad
        F = \frac{Q / (G - 1)}{1 + 2 (G - 2) L / (G^2 - 1)}, \qquad
        L = \sum_g \frac{(1 - w_g / \sum_h w_h)^2}{n_g - 1} .

    If all groups have the same expected loss, F has an F distribution with G - 1 and (G^2 - 1) / (3
    L) degrees of freedom.

    Losses are treated as independent given the group. If the log has sources, such as patients of
    several hospitals, and ``by`` is another level, ``caution`` shows ``sources ignored``: with 40
    to 80 sources per log and intraclass correlations of .4, the test rejected .23 to .81 of logs
    whose groups were equal. `contrast` with `compare` uses the sources as the sampling unit.

    A negative tau^2 is set to zero, and ``caution`` flags it. If both limits are zero, the groups
    differ less than expected by chance. In a leave-one-source-out log, each group is predicted by a
    different model, so tau includes differences between models. With only tens of groups, the
    interval for tau is wide, even if some groups are large.

    With separate variances, the test rejects too often if there are many groups with few points and
    skewed losses: at a nominal 5%, it rejected in .22 of logs with 30 groups of 30 squared errors
    each, and in .13 with 20 groups of 30 points and an error rate of .2. The skewness g of the
    losses within groups raises the mean of Q by about ``2 g^2 sum(1 / n_g)``; ``caution`` contains
    ``skewed`` if that exceeds a fifth of a standard deviation of Q, ``sqrt(2 (G - 1))``. Q itself,
    and with it i2, tau and its limits, is then larger still: Q against chi-squared rejected .30 of
    these logs. ``variance="pooled"`` rejected .04 to .06 there and with 5 points each, if the
    groups have equal variances, and .11 to .21 if not.

    tau^2 is the value at which Q, with the weights ``1 / (s_g^2 + tau^2)``, is its expectation
    G - 1. Its limits are those at which Q is a quantile of chi-squared, so that tau lies between.

    The mean is weighted by ``1 / (s^2 / n_g + t^2)`` with the pooled variance s^2, and t^2 the
    tau^2 for standard errors ``s / sqrt(n_g)``. This holds for either ``variance``: with skewed
    losses, weights from each group's own variance favor groups whose mean happens to be small. Its
    limits use Student's t with G - 1 degrees of freedom.

    References
    ----------
    Welch (1951), Biometrika 38(3/4), 330-336, doi:10.1093/biomet/38.3-4.330.
    Cochran (1954), Biometrics 10(1), 101-129, doi:10.2307/3001666.
    Paule and Mandel (1982), J. Res. Natl. Bur. Stand. 87(5), 377-385, doi:10.6028/jres.087.022.
    Hartung and Knapp (2001), Statistics in Medicine 20(12), 1771-1782, doi:10.1002/sim.791.
    Higgins and Thompson (2002), doi:10.1002/sim.1186.
    Viechtbauer (2007), Statistics in Medicine 26(1), 37-52, doi:10.1002/sim.2514.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> months = losses.cvci.heterogeneity()
    >>> months[["q", "i2", "tau", "tau_lower", "tau_upper"]].round(3)
                       q     i2    tau  tau_lower  tau_upper
    model
    naive_bayes  359.272  0.969  0.028      0.019      0.048
    """
    # Test and estimate how the groups differ, after averaging repetitions.
    cells = log.moments((*repetition_level(log.design), by))
    merged = cells.over((by,))
    n = count_points(log, by, merged, "heterogeneity").astype(np.float64)[:, None]
    parts = cells.groups("repetition") if "repetition" in cells.levels else [cells]
    s2 = squared_errors(parts, variance)
    unit = np.exp2(np.floor(np.log2(np.median(s2, axis=0)) / 2))  # fourth powers stay finite
    y, s2 = merged.mean / unit, s2 / unit**2
    n_groups, width = y.shape
    df = n_groups - 1
    q, _ = cochran_q(y, s2, np.zeros(width))
    f, df_within = welch_test(q, s2, n) if variance == "own" else (
        q / df, np.full(width, n.sum() - n_groups)
    )  # fmt: skip
    lower, tau, upper = (  # the tau^2 at which Q equals its expectation or a quantile
        unit * np.sqrt(q_profile(y, s2, level))
        for level in (special.chdtri(df, alpha / 2), df, special.chdtri(df, 1 - alpha / 2))
    )
    columns: dict[str, NDArray[Any]] = {
        "statistic": f, "df_within": df_within,
        "p_value": special.fdtrc(df, df_within, f),
        "q": q, "i2": 1 - df / np.maximum(q, df), "tau": tau,
    }  # fmt: skip
    columns |= {"tau_lower": lower, "tau_upper": upper, "n_groups": np.full(width, n_groups)}
    empty = np.isnan(y).any(axis=0)
    for name in ("i2", "tau", "tau_lower", "tau_upper"):
        columns[name] = np.where(empty, np.nan, columns[name])
    few = n.min() < ENOUGH_POINTS if variance == "own" else n.sum() < ENOUGH_POINTS
    caution = flag(Caution.CLAMPED, q < df) | (int(Caution.FEW_POINTS) if few else 0)
    if variance == "own":
        shift = 2 * skewness_within(log, by) * (1 / n).sum() / np.sqrt(2 * df)
        caution = caution | flag(Caution.SKEWED, shift > SHIFT)
    mean, squared = hartung_knapp(y, squared_errors(parts, "pooled") / unit**2)
    result = interval(
        "heterogeneity", unit * mean, unit**2 * squared, origin=cells.origin, alpha=alpha, df=df,
        extra=columns, caution=caution, attrs={"by": by, "variance": variance},
    )  # fmt: skip
    if by == "source" or not log.design.has("source"):
        return result
    each, groups, sources = (tally(log.design, *of) for of in ((by, "source"), (by,), ("source",)))
    if len(each.count) == len(groups.count) == len(sources.count):  # each group is a source
        return result
    call = "Evaluate at least two sources in each group."
    if each.within((by,)).n_cells.min() > 1:
        way = f"log.cvci.contrast(by={by!r}).cvci.compare()"
        call = f"Use {way}, whose sampling units are the sources."
    result = replace(result, calls={Caution.SOURCES_IGNORED: call})
    return flag_ignored_sources(result, log.design, of_means=False)


def welch_test(q: FloatArray, s2: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute Welch's F (1951) and its second degrees of freedom from Q."""
    w = 1 / s2
    groups = len(w)
    rest = ((1 - w / w.sum(axis=0)) ** 2 / (n - 1)).sum(axis=0)
    f = q / (groups - 1) / (1 + 2 * (groups - 2) / (groups**2 - 1) * rest)
    return f, (groups**2 - 1) / (3 * rest)


def hartung_knapp(y: FloatArray, s2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the mean over groups and its squared standard error by Hartung and Knapp (2001).

    The error comes from the variation of the groups about the mean; ``s2`` is used only for the
    weights.
    """
    w = 1 / (s2 + q_profile(y, s2, len(y) - 1))
    deviations = y - y[0]  # equal means then vary by exactly zero
    total = w.sum(axis=0)
    middle = (w * deviations).sum(axis=0) / total
    squared: FloatArray = (w * (deviations - middle) ** 2).sum(axis=0) / ((len(y) - 1) * total)
    return y[0] + middle, squared


def cochran_q(y: FloatArray, s2: FloatArray, tau2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute Q with extra variance ``tau2`` between groups, and its negative slope in ``tau2``.

    ``y`` and ``s2`` have a row for each group, ``tau2`` a number for each column.
    """
    weight = 1 / (s2 + tau2)
    deviations = y - y[0]
    deviations = deviations - (weight * deviations).sum(axis=0) / weight.sum(axis=0)
    return (weight * deviations**2).sum(axis=0), ((weight * deviations) ** 2).sum(axis=0)


def q_profile(y: FloatArray, s2: FloatArray, level: float) -> FloatArray:
    """Find the tau^2 at which Q has the given value; 0 if Q is below it at 0.

    Q decreases with tau^2 and is convex, so Newton steps from 0 never overshoot.
    """
    tau2 = np.zeros(y.shape[1])
    for _ in range(STEPS):
        q, slope = cochran_q(y, s2, tau2)
        step = np.divide(q - level, slope, out=np.zeros_like(q), where=(q > level) & (slope > 0))
        before, tau2 = tau2, tau2 + step
        if np.all((tau2 - before <= 1e-15 * tau2) | np.isnan(tau2)):
            break
    return tau2


def squared_errors(parts: list[Cells], variance: str) -> FloatArray:
    """Compute the squared standard error of each group's mean, averaged over repetitions."""
    errors = []
    for part in parts:
        n = part.count[:, None]
        if variance == "pooled":
            spare = part.count.sum() - len(part.count)
            if spare < 1:
                raise LogError(
                    "every group has one point, so points and groups cannot be distinguished. "
                    "Expected two points in some group."
                )
            errors.append(part.m2.sum(axis=0) / spare / n)
            continue
        lonely = np.flatnonzero(part.count < 2)
        if len(lonely):
            one = len(lonely) == 1
            count = "1 group has" if one else f"{len(lonely):,} groups have"
            raise LogError(
                f"{count} only one point{' each' * (not one)}, so {'its' if one else 'their'} "
                f"variance cannot be estimated: {part.levels[0]} "
                f"{join_groups(part, lonely.tolist())}. Drop {'it' if one else 'them'}, or pass "
                "variance='pooled', which assumes equal variances in all groups."
            )
        errors.append(part.m2 / ((n - 1) * n))
    squared: FloatArray = np.mean(errors, axis=0)
    flat = np.flatnonzero((squared == 0).any(axis=1))
    if len(flat):
        words = (
            "or pass variance='pooled', which assumes equal variances in all groups"
            if variance == "own"
            else "or inspect moments(losses): all groups have zero variance"
        )
        raise LogError(
            f"all losses of {parts[0].levels[0]} {join_groups(parts[0], flat.tolist())} are "
            "equal for some model, so their standard error is 0 and Cochran's Q is undefined. "
            f"Drop these groups, {words}."
        )
    return squared


def join_groups(part: Cells, cells: list[int]) -> str:
    """Name the first of some groups."""
    return listed([spelled(part.labels[0][part.codes[cell, 0]]) for cell in cells])
