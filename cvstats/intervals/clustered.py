"""Cluster-robust interval: groups of points, not points, are the independent units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments
from cvstats.core.design import Design
from cvstats.core.folds import find_crossed
from cvstats.core.results import Result, flag, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_level
from cvstats.intervals._groups import (
    FEW_CLUSTERS,
    FEW_DF,
    INDEPENDENT,
    NEW_GROUPS,
    OF_FOLDS,
    count_points,
    size_range,
)
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._requirements import groups
from cvstats.intervals._two_ways import compute_two_ways, two_ways
from cvstats.log.log import Log
from cvstats.options import Missing

TOO_NARROW = 0.9
"""A share of CR1's own target below which clusters count as too unequal for it."""


def check_parts(options: Mapping[str, Any]) -> None:
    """Refuse parts of one cluster each."""
    by, per = options["by"], options.get("per")
    if per is not None:
        checked_level("per", per)
        names = by if isinstance(by, (tuple, list)) else (by,)
        for name in names:
            checked_level("by", name)
        if per in names:
            raise LogError(
                f"per={per!r} leaves one cluster in each part. "
                f"Expected another level than by={by!r}."
            )


def one_or_two_ways(design: Design, by: str | Sequence[str] = "source") -> str | None:
    """Ask for two groups or more of one level, or of two."""
    return groups(design, by) if isinstance(by, str) else two_ways(design, *by)


def weigh_groups(count: FloatArray, correction: str = "CR2") -> tuple[FloatArray, FloatArray]:
    """Compute the shares of the clusters, and what their ``m_c - mu`` is multiplied by.

    The squares of these products add up to the variance.
    """
    v = count / count.sum()
    return v, scale_groups(v, len(v), correction)


def scale_groups(v: FloatArray, g: IntArray | int, correction: str) -> FloatArray:
    """Compute what the deviation of a cluster of share ``v`` among ``g`` is multiplied by."""
    if correction == "CR2":
        return v / np.sqrt(1 - v)
    if correction == "CR1":  # Liang and Zeger (1986), times G / (G - 1)
        return v * np.sqrt(g / (g - 1))
    # the jackknife: without cluster c the mean moves by v_c (mu - m_c) / (1 - v_c)
    return v * np.sqrt((g - 1) / g) / (1 - v)


@IntervalMethod(
    requires=one_or_two_ways,
    needs="a level that names independent groups (source), two groups or more; or two such levels",
    target=NEW_GROUPS,
    guarantee=INDEPENDENT,
    difference_guarantee=f"{INDEPENDENT}, {OF_FOLDS}",
    fits="as the log has",
    reference="Bell and McCaffrey (2002), Survey Methodology 28(2), 169-181; "
    "Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13",
    check=check_parts,
    level_option="by",
    takes_two_levels=True,
    group_option="per",
    of_groups=True,
    weigh_groups=weigh_groups,
    groups_at_once=True,
)
def clustered(
    log: Log,
    *,
    by: str | Sequence[str] = "source",
    correction: Literal["CR2", "CR1", "CR3"] = "CR2",
    alpha: float = 0.05,
    per: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Cluster-robust interval: groups of points, not points, are what was sampled.

    The target is the mean loss over points of groups drawn as these were, and the estimate is the
    mean of all losses. Its variance comes from the deviations of the clusters' totals, and the
    limits use Student's t: with the degrees of freedom of Bell and McCaffrey for CR2, and with one
    less than the number of clusters for CR1 and for CR3, the jackknife. All three are equal for
    clusters of equal size.

    Two levels in ``by``, as in ``("point", "repetition")``, are two samples at once: points and
    seeds, prompts and judges. The target is then the mean loss over new labels of both. The
    variance is that of a balanced analysis of variance where every pair of labels has equally many
    losses; otherwise it is CR1 of the one level plus CR1 of the other, less CR1 of their pairs.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any log of one data set with a level that names the clusters; each point belongs to
        one cluster. Losses in any unit.
    by : str or two of them, optional
        The level (or coordinate) whose labels are the clusters, or two levels that are crossed.
        One of these may hold all points under each of its labels, such as ``"seed"``.
    correction : {"CR2", "CR1", "CR3"}, optional
        CR2 is unbiased where losses are independent and of one variance, and its degrees of
        freedom fall where some clusters hold much of the log. CR1 is the usual one of other
        programs, and too narrow for such clusters. With two levels ``"CR1"`` always takes the
        sum of clusters, and there is no CR3.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    per : str, optional
        Another level: one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the unit of the loss, ``df`` and ``caution`` (labels, each explained
        in ``attrs["cautions"]``). ``n_points``, ``n_clusters`` and the points of the ``smallest``
        and the ``largest`` cluster are in ``attrs``, or columns where rows differ in them; for two
        levels ``n_points``, ``n_first`` and ``n_second``, the labels of each, and ``crossed``, 1
        where pairs have equally many losses.

    Raises
    ------
    LogError
        If there is one cluster only, or a point is in several; for two levels, if each label of
        one occurs with a single label of the other, or points are not at hand (lazy arrays,
        `Moments`) that ``by`` names.

    See Also
    --------
    cvstats.out_of_source : For groups that were left out one at a time.
    cvstats.wild_cluster : For few clusters.
    cvstats.wald : For points that are independent.
    cvstats.heterogeneity : Whether the groups differ.

    Notes
    -----
    With mu the mean of all losses, v_c the share of the losses that cluster c of G has, m_c their
    mean and D_c = v_c (m_c - mu), the variances are

    .. math::

        \mathrm{CR2} &= \sum_c \frac{D_c^2}{1 - v_c} \\
        \mathrm{CR1} &= \frac{G}{G - 1} \sum_c D_c^2 \\
        \mathrm{CR3} &= \frac{G - 1}{G} \sum_c \left(\frac{D_c}{1 - v_c}\right)^2 .

    CR1 and CR3 have G - 1 degrees of freedom, and CR2 has

    .. math::

        \frac{1}{\sum_c v_c^2 + \left(\sum_c q_c\right)^2 - \sum_c q_c^2}, \qquad
        q_c = \frac{v_c^2}{1 - v_c} .

    For two levels with I and J labels, and MS the mean squares of the analysis of variance of the
    pairs' means, the variance and its degrees of freedom (Satterthwaite) are

    .. math::

        \frac{\mathrm{MS}_A + \mathrm{MS}_B - \mathrm{MS}_E}{I J}, \qquad
        \frac{(\mathrm{MS}_A + \mathrm{MS}_B - \mathrm{MS}_E)^2}{
            \frac{\mathrm{MS}_A^2}{I - 1} + \frac{\mathrm{MS}_B^2}{J - 1}
            + \frac{\mathrm{MS}_E^2}{(I - 1)(J - 1)}} .

    Where the pairs have different numbers of losses, the degrees of freedom are min(I, J) - 1.

    Exact as clusters grow in number, if they are independent and models were trained on other
    clusters than they were tested on. ``caution`` reports fewer than 30 clusters, and fewer
    than 2 degrees of freedom; a cluster that occurs in several folds, so that the interval is
    about these clusters and not about new ones; and for CR1 clusters so unequal that it would
    be a tenth or more below its target even if all cluster means varied alike.

    CR3 here is (G - 1) / G times that of clubSandwich, as the jackknife has it.

    Several repetitions give each cluster one mean, over all of its losses: the same numbers
    as averaging each point over the repetitions first. Points and clusters stay as many as
    they are, however often the cross-validation was repeated.

    Of two levels, that of mean squares is exact in all sizes for normal effects of both levels
    but for Satterthwaite's approximation: in simulations 94% to 97% of 95% intervals cover, from
    three seeds on, and 91% with two. A variance below its floor ``MS_E / (I J)`` is replaced by
    that, with the degrees of freedom of MS_E, and ``caution`` says ``two ways clamped``; so it does
    where CR1 of the pairs is not smaller than the sum of the others, which is then kept. Intervals
    of incomplete logs cover too often where a level has few labels, as min(I, J) - 1 is a lower
    bound. ``few of one way`` marks levels of fewer than 10 labels. A level whose labels occur
    within those of another, as pupils in schools, needs no second way: ``by="school"``.

    References
    ----------
    Bell and McCaffrey (2002), Survey Methodology 28(2), 169-181.
    Pustejovsky and Tipton (2018), Journal of Business & Economic Statistics 36(4), 672-683,
    doi:10.1080/07350015.2016.1247004.
    Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13.
    MacKinnon, Nielsen and Webb (2023), Journal of Econometrics 232(2), 272-299,
    doi:10.1016/j.jeconom.2022.04.001.
    Miller (2024), Adding error bars to evals, arXiv:2411.00640.
    Cameron, Gelbach and Miller (2011), Journal of Business & Economic Statistics 29(2), 238-249,
    doi:10.1198/jbes.2010.07136.
    Satterthwaite (1946), Biometrics Bulletin 2(6), 110-114, doi:10.2307/3002019.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> result = losses.cvci.clustered()
    >>> result.round(3)
                 estimate  lower  upper     se    df       caution
    model
    naive_bayes     0.175  0.157  0.193  0.008  11.0  few clusters
    >>> print(result.attrs["cautions"]["few clusters"])
    There are fewer than 30 clusters: the interval may be too narrow, ... Collect more clusters...

    Twenty points under four seeds, of which one is unlucky:

    >>> import pandas as pd
    >>> index = pd.MultiIndex.from_product([range(20), range(4)], names=["point", "seed"])
    >>> rows = index.to_frame()
    >>> one = pd.Series(rows["point"] % 7 / 10 + (rows["seed"] == 3) * 0.2, index, name="net")
    >>> one.cvci.clustered(by=("point", "seed"))[["estimate", "lower", "upper", "df"]].round(3)
           estimate  lower  upper     df
    model
    net       0.335  0.183  0.487  8.709
    """
    # Take the clusters for independent: each has one mean, over all evaluations of its points.
    if not isinstance(by, str):
        return compute_two_ways(log, (by[0], by[1]), correction, alpha)
    cells = log.moments((by,))
    points, g = count_points(log, by, cells, "clustered"), cells.number()
    mean, total = cells.over(()).mean, cells.repeat(cells.sum(cells.count))
    v = cells.count[:, None] / total
    apart = cells.mean - cells.repeat(mean)
    squared = cells.sum((scale_groups(v, cells.repeat(g), correction) * apart) ** 2)
    df = degrees_of_freedom(cells, v, correction)
    caution = flag(Caution.FEW_CLUSTERS, g < FEW_CLUSTERS)
    caution = caution | flag(Caution.VERY_FEW_CLUSTERS, df < FEW_DF)
    if correction == "CR1":
        caution |= flag(Caution.UNEQUAL_CLUSTERS, expected_cr1_ratio(v, cells) < TOO_NARROW)
    caution = caution | flag(Caution.SOURCES_ACROSS_FOLDS, find_crossed(log.design, by))
    return interval(
        "clustered", mean, squared, origin=cells.origin, alpha=alpha, df=df,
        extra={
            "df": df, "n_points": cells.sum(points).astype(np.int64), "n_clusters": g,
            **size_range(points, cells),
        },
        caution=caution, attrs={"by": by, "correction": correction},
    )  # fmt: skip


def degrees_of_freedom(cells: Moments, v: FloatArray, correction: str) -> FloatArray | IntArray:
    """Compute those of Bell and McCaffrey (2002) for CR2; clusters minus one for the others.

    CR2 is a sum of squares, of which Satterthwaite's degrees of freedom are taken as if losses
    were independent and of one variance.
    """
    if correction != "CR2":
        return cells.number() - 1
    q = v**2 / (1 - v)
    return 1 / (cells.sum(v**2) + cells.sum(q) ** 2 - cells.sum(q**2))


def expected_cr1_ratio(v: FloatArray, cells: Moments) -> FloatArray:
    """Divide the expectation of CR1 by its target, for cluster means of one variance.

    With independent means of variance one the target is ``S2 = sum v_c^2``, and the
    expectation ``G / (G - 1) sum v_c^2 (1 - 2 v_c + S2)``. It is 1 for equal clusters.
    """
    g, s2 = cells.number(), cells.sum(v**2)
    return g / (g - 1) * (1 + s2 - 2 * cells.sum(v**3) / s2)
