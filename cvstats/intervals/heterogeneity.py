"""Do groups differ by more than their points explain? Welch's test, Cochran's Q and tau.

Group g has the mean loss y_g with the squared standard error s_g^2. If the groups had one
common expected loss, Q = sum (y_g - y)^2 / s_g^2, about the mean y weighted by 1 / s_g^2, would
follow chi-squared with G - 1 degrees of freedom as the points of each group grow. With few of
them Q is too large, because the s_g^2 are estimates; Welch's F allows for that.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.core.design import Design
from cvstats.core.results import Result, interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, listed, spelled
from cvstats.intervals._method import LogMethod
from cvstats.intervals._requirements import partition, several_groups
from cvstats.intervals._sources import count_points, repeated_levels
from cvstats.log.log import Log
from cvstats.options import Missing

FEWEST_ROOT = 60.0
"""Points of the smallest group, over the root of the groups, from which Welch's test holds."""

FEWEST_POOLED = 10.0
"""Points of the smallest group from which the test with a pooled variance holds."""

STEPS = 200
"""Newton steps at most; each at least doubles a tau^2 that is far too small."""


def groups_of_partition(design: Design, by: str = "source") -> str | None:
    """Ask for two groups or more, and for each point to be tested in every repetition."""
    return several_groups(design, by) or partition(design)


@LogMethod(
    requires=groups_of_partition,
    needs="a level that names independent groups (source), two groups or more",
    target="standard deviation and mean of the expected losses of groups drawn as these were",
    guarantee="exact as the points of each group grow, for groups that differ normally; with "
    "variance='pooled', if they vary alike",
    fits="as the log has",
    reference="Welch (1951), doi:10.1093/biomet/38.3-4.330; Hartung and Knapp (2001), "
    "doi:10.1002/sim.791; Cochran (1954), doi:10.2307/3001666; DerSimonian and Laird (1986), "
    "doi:10.1016/0197-2456(86)90046-2; Viechtbauer (2007), doi:10.1002/sim.2514",
    level_option="by",
    takes_metrics="averaged",
)
def heterogeneity(
    log: Log,
    *,
    by: str = "source",
    variance: Literal["own", "pooled"] = "own",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    r"""Test whether groups differ by more than their points explain, and measure by how much.

    The targets are the standard deviation tau and the mean of the expected losses of groups drawn
    as these were. The statistic Q adds up the squared deviations of the groups' mean losses, each
    divided by its squared standard error. The test is that of Welch, which allows for these
    standard errors being estimates.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log in which each point was tested once in every repetition, with a level that names
        the groups. Losses in any unit.
    by : str, optional
        The level (or coordinate) whose labels are the groups.
    variance : {"own", "pooled"}, optional
        Whether ``s_g^2`` is the sample variance of the group's own losses over their number,
        or takes the variance within groups to be one for all. The second allows groups of one
        point, and groups in which all losses are the same; the test is then that of the analysis
        of variance, ``F = Q / (G - 1)`` with G - 1 and N - G degrees of freedom.
    alpha : float, optional
        One minus the level of the intervals for the mean and for tau.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` of the mean over groups (Hartung and Knapp); ``statistic`` (F) with
        ``df``, ``df_within`` and ``p_value``; ``q``; ``i2``, the share of the scatter of the y_g
        that the points do not explain, ``max(0, 1 - df / Q)``; ``tau`` (DerSimonian and Laird) with
        ``tau_lower`` and ``tau_upper`` (Q-profile) in the unit of the loss; and ``caution``.
        ``n_groups`` is in ``attrs``.

    Raises
    ------
    LogError
        If there is one group only, a point is in several, or a group has no variance.

    See Also
    --------
    cvstats.out_of_source : The mean over new groups, and where the next one will lie.
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

    If the groups have one expected loss, F has G - 1 and (G^2 - 1) / (3 L) degrees of freedom.

    Losses of a group are treated as independent given the group. tau below zero is shown as
    zero, and ``caution`` says so; limits of zero and zero mean that the groups differ less
    than chance alone would make them. On a log that leaves sources out, each group has a
    model of its own, and tau is about both. Groups in the tens make a wide interval; the few
    largest do not make it narrow.

    With own variances the test rejects too often where groups are many, their points few and the
    losses skewed: at 5%, .22 of logs of 30 groups with 30 squared errors each. ``caution`` says
    ``few points`` where the smallest group has fewer than ``60 sqrt(G)`` points; from there on it
    rejected .04 to .08. Q itself, and with it i2, tau and its limits, is then larger still: Q
    against chi-squared rejected .30 of these logs. ``variance="pooled"`` rejected .04 to .06 there
    and with 5 points each, if the groups vary alike; if their variances differ, .11 to .21.

    The mean is weighted by ``1 / (s^2 / n_g + tau^2)`` with the pooled variance s^2, whichever
    ``variance`` is: weights from each group's own variance prefer groups whose mean happens to be
    small, where losses are skewed. Its limits use Student's t with G - 1 degrees of freedom.

    References
    ----------
    Welch (1951), Biometrika 38(3/4), 330-336, doi:10.1093/biomet/38.3-4.330.
    Cochran (1954), Biometrics 10(1), 101-129, doi:10.2307/3001666.
    DerSimonian and Laird (1986), doi:10.1016/0197-2456(86)90046-2.
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
    naive_bayes  359.272  0.969  0.027      0.019      0.048
    """
    # Test and measure how the groups differ, repetitions averaged.
    cells = log.moments(repeated_levels(log, by))
    merged = cells.over((by,))
    n = count_points(log, by, merged, "heterogeneity").astype(np.float64)[:, None]
    parts = cells.groups("repetition") if "repetition" in cells.levels else [cells]
    y = merged.mean
    s2 = squared_errors(parts, variance)
    n_groups, width = y.shape
    df = n_groups - 1
    q, _ = cochran_q(y, s2, np.zeros(width))
    f, df_within = welch_test(q, s2, n) if variance == "own" else (
        q / df, np.full(width, n.sum() - n_groups)
    )  # fmt: skip
    raw = excess_variance(q, s2)
    lower, upper = (  # Viechtbauer (2007): the tau^2 under which Q is not a surprise
        np.sqrt(q_profile(y, s2, float(special.chdtri(df, tail))))
        for tail in (alpha / 2, 1 - alpha / 2)
    )
    columns: dict[str, NDArray[Any]] = {
        "statistic": f, "df": np.full(width, df), "df_within": df_within,
        "p_value": special.fdtrc(df, df_within, f),
        "q": q, "i2": 1 - df / np.maximum(q, df),
        "tau": np.sqrt(np.maximum(raw, 0.0)),
    }  # fmt: skip
    columns |= {"tau_lower": lower, "tau_upper": upper, "n_groups": np.full(width, n_groups)}
    empty = np.isnan(y).any(axis=0)
    for name in ("i2", "tau_lower", "tau_upper"):
        columns[name] = np.where(empty, np.nan, columns[name])
    fewest = FEWEST_ROOT * np.sqrt(n_groups) if variance == "own" else FEWEST_POOLED
    doubt = Caution.FEW_POINTS if n.min() < fewest else Caution(0)
    mean, squared = hartung_knapp(y, squared_errors(parts, "pooled"))
    return interval(
        "heterogeneity", mean, squared, origin=cells.origin, alpha=alpha, df=df, extra=columns,
        caution=np.where(raw < 0, np.int64(doubt | Caution.CLAMPED), np.int64(doubt)),
        attrs={"by": by, "variance": variance},
    )  # fmt: skip


def welch_test(q: FloatArray, s2: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute Welch's F (1951) and its second degrees of freedom from Q."""
    w = 1 / s2
    groups = len(w)
    rest = ((1 - w / w.sum(axis=0)) ** 2 / (n - 1)).sum(axis=0)
    f = q / (groups - 1) / (1 + 2 * (groups - 2) / (groups**2 - 1) * rest)
    return f, (groups**2 - 1) / (3 * rest)


def excess_variance(q: FloatArray, s2: FloatArray) -> FloatArray:
    """Estimate tau^2 as DerSimonian and Laird do, also below zero.

    They solve ``E Q = G - 1 + tau^2 (sum w - sum w^2 / sum w)``.
    """
    w = 1 / s2
    found: FloatArray = (q - (len(w) - 1)) / (w.sum(axis=0) - (w**2).sum(axis=0) / w.sum(axis=0))
    return found


def hartung_knapp(y: FloatArray, s2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the mean over groups and its squared standard error by Hartung and Knapp (2001).

    The error comes from the scatter of the groups about the mean and not from ``s2``, which
    only weights them.
    """
    q, _ = cochran_q(y, s2, np.zeros(y.shape[1]))
    w = 1 / (s2 + np.maximum(excess_variance(q, s2), 0.0))
    deviations = y - y[0]  # equal means then vary by exactly zero
    total = w.sum(axis=0)
    middle = (w * deviations).sum(axis=0) / total
    squared: FloatArray = (w * (deviations - middle) ** 2).sum(axis=0) / ((len(y) - 1) * total)
    return y[0] + middle, squared


def cochran_q(y: FloatArray, s2: FloatArray, tau2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute Q for groups that differ by ``tau2`` besides, and its negative slope in ``tau2``.

    ``y`` and ``s2`` have a row for each group, ``tau2`` a number for each column.
    """
    weight = 1 / (s2 + tau2)
    deviations = y - y[0]
    deviations = deviations - (weight * deviations).sum(axis=0) / weight.sum(axis=0)
    return (weight * deviations**2).sum(axis=0), ((weight * deviations) ** 2).sum(axis=0)


def q_profile(y: FloatArray, s2: FloatArray, level: float) -> FloatArray:
    """Find the tau^2 at which Q has the given value; 0 where it is below that from the start.

    Q falls with tau^2 and is convex, so that Newton's steps from 0 never go too far.
    """
    tau2 = np.zeros(y.shape[1])
    for _ in range(STEPS):
        q, slope = cochran_q(y, s2, tau2)
        step = np.divide(q - level, slope, out=np.zeros_like(q), where=(q > level) & (slope > 0))
        before, tau2 = tau2, tau2 + step
        if np.all((tau2 - before <= 1e-15 * tau2) | np.isnan(tau2)):
            break
    return tau2


def squared_errors(parts: list[Moments], variance: str) -> FloatArray:
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
            raise LogError(
                f"{part.levels[0]} {join_groups(part, lonely.tolist())} has one point, which has "
                f"no variance. Leave these groups out, or pass variance='pooled', which takes the "
                f"points of all groups to vary alike."
            )
        errors.append(part.m2 / ((n - 1) * n))
    squared: FloatArray = np.mean(errors, axis=0)
    flat = np.flatnonzero((squared == 0).any(axis=1))
    if len(flat):
        words = (
            "or pass variance='pooled', which takes the points of all groups to vary alike"
            if variance == "own"
            else "or look at moments(losses): no group varies at all"
        )
        raise LogError(
            f"all losses of {parts[0].levels[0]} {join_groups(parts[0], flat.tolist())} are the "
            f"same for some model, so their standard error is 0 and Cochran's Q has no value. "
            f"Leave these groups out, {words}."
        )
    return squared


def join_groups(part: Moments, cells: list[int]) -> str:
    """Name the first of some groups."""
    return listed([spelled(part.labels[0][part.codes[cell, 0]]) for cell in cells])
