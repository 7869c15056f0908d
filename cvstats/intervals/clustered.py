"""Cluster-robust interval: groups of points, not points, are the sampling units.

With two levels, such as points and seeds, or prompts and judges, there are two sampling units. A
loss is then the sum of a point effect, a seed effect and a residual, and the variance of the mean
has three parts: ``Var(mean) = sigma_A^2 / I + sigma_B^2 / J + sigma_E^2 / (I J)`` for I points
under J seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from cvstats.core.cautions import ENOUGH_DF, FEW_CLUSTERS, FEW_DF, Caution
from cvstats.core.cells import Cells
from cvstats.core.design import SPLIT, Design
from cvstats.core.folds import (
    divides_both,
    find_across_folds,
    find_crossed,
    has_crossed_sources,
    repeats_test_set,
    repetition_level,
    tally,
)
from cvstats.core.results import Result, flag
from cvstats.core.results import interval as symmetric_interval
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, checked_level
from cvstats.intervals._limits import cut_limits
from cvstats.intervals._method import RELATIVE_STABILITY, IntervalMethod
from cvstats.intervals._requirements import (
    SOURCES_BY_POINTS,
    no_level,
    several_groups,
    single_dataset,
)
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.intervals.holdout import flag_seeds
from cvstats.intervals.ordered import (
    ENOUGH,
    FEWEST,
    MeansByTime,
    choose_order,
    choose_seasons,
    choose_weights,
    comes_back,
    is_persistent,
    measure_series,
    share_of_cosines,
    transform_cosines,
)
from cvstats.intervals.out_of_source import (
    PREDICTION_GUARANTEE,
    PREDICTION_TARGET,
    are_skewed,
    size_range,
)
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Log
from cvstats.log.loss_checks import find_dates, order_dates
from cvstats.options import Missing

TOO_NARROW = 0.9
"""Ratio of CR1's expectation to its target below which clusters are too unequal for CR1."""


def check_parts(options: Mapping[str, Any]) -> None:
    """Reject parts of one cluster each."""
    by, per = options["by"], options.get("per")
    if per is not None:
        checked_level("per", per)
        names = by if isinstance(by, (tuple, list)) else (by,)
        for name in names:
            checked_level("by", name)
        if per in names:
            raise LogError(
                f"per={per!r} leaves one cluster in each part. Expected a level other than "
                f"by={by!r}."
            )


def one_or_two_ways(design: Design, by: str | Sequence[str] = "source") -> str | None:
    """Require at least two groups of one level, or of two."""
    return several_groups(design, by) if isinstance(by, str) else two_ways(design, *by)


def needs_pairs(options: Mapping[str, Any], log: Log) -> bool:
    """Whether it needs sources and points of a lazy log, which cells do not contain."""
    return is_sources_by_points(options["by"]) and has_crossed_sources(log.planned)


def check_options(options: Mapping[str, Any]) -> None:
    """Reject parts of one cluster each, and predictions for two levels."""
    check_parts(options)
    if options["interval"] == "prediction" and not isinstance(options["by"], str):
        raise LogError(
            "interval='prediction' is for one new cluster, but by= names two levels. Expected one "
            "level, such as by='source'."
        )


INDEPENDENT = (
    "asymptotically exact in the number of groups, if they are independent and no group is in both "
    "training and test folds"
)
"""The guarantee of an interval whose sampling units are groups."""


FEW_DATES = 5
"""Effective number of dates below which the share that cosines see is too uncertain."""


OF_FOLDS = f"and for models trained in folds {RELATIVELY_STABLE}"
"""The additional condition for differences of models."""


def count_points(log: Log, by: str, cells: Cells, method: str) -> IntArray:
    """Count the points of each group; a point must stay in one group in all repetitions."""
    design = log.design
    splits = tally(design, *SPLIT)
    if (splits.n_cells == 1).all():
        return cells.count.astype(np.int64)
    if design.by is None or log.cells is not None:
        counts, shared = log.count_points(by)
        counts = counts[cells.codes[:, -1]]
        if design.by is not None:  # those are of all labels of by= together
            each, left = np.divmod(cells.count.astype(np.int64), cells.repeat(splits.n_cells)[:, 0])
            counts = counts if left.any() else each  # every repetition tests all points
    else:
        names = ("source", "point") if design.facts.get("scoped") else ("point",)
        points = tally(design, by, *names)
        counts = points.within((by,)).n_cells[:, 0]
        moved = points.over(names).n_cells < points.n_cells
        shared = "a point appears in several of them" if moved.any() else None
    if shared is not None:
        raise LogError(
            f"{method} needs groups that share no point, but {shared}. Expected one label of "
            f"{by!r} per point in all repetitions. Name another level in by=, or select one "
            f"repetition: {log.design.take('repetition')}."
        )
    return counts


def weigh_groups(count: FloatArray, correction: str = "CR2") -> tuple[FloatArray, FloatArray]:
    """Compute the shares of the clusters, and the factors of ``m_c - mu``.

    The squares of these products sum to the variance.
    """
    v = count / count.sum()
    return v, scale_groups(v, len(v), correction)


def scale_groups(v: FloatArray, g: IntArray | int, correction: str) -> FloatArray:
    """Compute the factor of the deviation of a cluster with share ``v`` among ``g`` clusters."""
    if correction == "CR2":
        return v / np.sqrt(1 - v)
    if correction == "CR1":  # Liang and Zeger (1986), times G / (G - 1)
        return v * np.sqrt(g / (g - 1))
    # the jackknife: without cluster c the mean moves by v_c (mu - m_c) / (1 - v_c)
    return v * np.sqrt((g - 1) / g) / (1 - v)


OF_SPLIT_GROUPS = {
    "target": "mean loss on new points from groups in the training data, averaged over the "
    "population of such groups",
    "guarantee": "heuristic, because groups are in both training and test folds",
}
"""The target and the guarantee if groups occur in several folds."""

ClusterMethod = partial(
    IntervalMethod,
    target="mean loss on groups from the same population that were not used for training",
    guarantee=INDEPENDENT,
    difference_guarantee=f"{INDEPENDENT}, {OF_FOLDS}",
    of_fixed_models={
        "target": "mean loss on new groups from the same population",
        "guarantee": "asymptotically exact in the number of groups, if they are independent",
    },
    of_split_sources=OF_SPLIT_GROUPS,
    fits="as the log has",
    level_option="by",
    group_option="per",
    of_groups=True,
    weigh_groups=weigh_groups,
)
"""The record of an interval whose sampling units are the groups of a level."""


@ClusterMethod(
    requires=one_or_two_ways,
    needs="a level that identifies at least two independent groups (source), or two such levels",
    reference="Bell and McCaffrey (2002), Survey Methodology 28(2), 169-181; "
    "Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13",
    check=check_options,
    takes_two_levels=True,
    groups_at_once=True,
    reads_losses=needs_pairs,
)
def clustered(
    log: Log,
    *,
    by: str | Sequence[str] = "source",
    correction: Literal["CR2", "CR1", "CR3"] = "CR2",
    interval: Literal["mean", "prediction"] = "mean",
    alpha: float = 0.05,
    per: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Cluster-robust interval for the mean loss, with groups of points as the sampling unit.

    The target is the mean loss over points of groups from the same population, and the estimate is
    the mean of all losses. The variance is computed from the deviations of the cluster totals, and
    the limits use Student's t distribution. The degrees of freedom are those of Bell and McCaffrey
    for CR2, and the number of clusters minus one for CR1 and for CR3, the jackknife. For clusters
    of equal size, all three give the same interval.

    If ``by`` names two levels, as in ``("point", "repetition")``, both are sampling units: points
    and seeds, or prompts and judges. The target is then the mean loss over new labels of both
    levels. The variance is that of a balanced analysis of variance if every pair of labels has
    equally many losses; otherwise it is the sum of CR1 of each level minus CR1 of their pairs.

    A log is called crossed if the same points occur in several sources, such as dates in stores, or
    items rated by several judges. It then has two sampling units, ``("source", "point")``, which
    `interval` and comparisons use by default. Effects of a date shared by all stores do not average
    out over the stores. If the labels of points are dates, or those of a level such as ``date``
    with one label for each point, losses may also be autocorrelated.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any log of one data set with a level that names the clusters; each point belongs to
        one cluster. Losses in any unit.
    by : str or two of them, optional
        The level (or coordinate) whose labels are the clusters, or two crossed levels. One of
        these may contain all points under each of its labels, such as ``"seed"``.
    correction : {"CR2", "CR1", "CR3"}, optional
        CR2 is unbiased if losses are independent with equal variances, and its degrees of freedom
        are smaller if some clusters contain much of the log. CR1 is the usual correction in other
        software, and too narrow for such clusters. With two levels ``"CR1"`` always uses the sum
        of clusters, and CR3 is not available.
    interval : {"mean", "prediction"}, optional
        Whether the interval is for the mean error on points of new clusters, or for the mean error
        of a single new cluster. The prediction is that of `out_of_source`: its estimate is the
        mean over clusters with equal weights.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    per : str, optional
        Another level: one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, ``df`` and ``caution`` (labels, each
        explained in ``attrs["cautions"]``). ``n_points``, ``n_clusters`` and the points of the
        ``smallest`` and the ``largest`` cluster are in ``attrs``, or columns if they vary between
        rows; for two levels ``n_points``, ``n_first`` and ``n_second``, the labels of each, and
        ``crossed``, 1 if pairs have equally many losses; for dates also ``n_cosines``.

    Raises
    ------
    LogError
        If there is only one cluster, or a point is in several; for two levels, if each label of
        one occurs with a single label of the other, or the points named by ``by`` are not
        available (lazy arrays, `Moments`); for a prediction also if clusters occur in several folds
        or a metric was pooled over them.

    See Also
    --------
    cvstats.out_of_source : For groups that were left out one at a time.
    cvstats.wild_cluster : For few clusters.
    cvstats.wald : For points that are independent.
    cvstats.heterogeneity : Whether the groups differ.

    Notes
    -----
    With mu the mean of all losses, v_c the share of losses in cluster c of G, m_c their mean and
    D_c = v_c (m_c - mu), the variances are

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

    If the pairs have different numbers of losses, the degrees of freedom are min(I, J) - 1.

    For S sources and T points, with e the N losses minus their mean,

    .. math::

        V_S &= \frac{S}{S - 1} \sum_s \Bigl(\frac1N \sum_t e_{st}\Bigr)^2, \qquad
        V_T = \frac{T}{T - 1} \sum_t \Bigl(\frac1N \sum_s e_{st}\Bigr)^2 \\
        V &= \max(V_S + V_T - V_I, V_S, V_T), \qquad
        \mathrm{df} = \frac{(V_S + V_T)^2}{V_S^2 / (S - 1) + V_T^2 / (T - 1)} ,

    where V_I is ``MS_E / (I J)``, or for incomplete logs CR1 of the pairs. For dates V_T is the
    long-run variance of `ordered`, from ``floor(0.4 T^(2/3))`` cosines, whose number is its degrees
    of freedom, divided by the share of the variance that these cosines capture in a first-order
    autoregression. With a correlation of .8 between neighboring dates, 7% of true differences of 0
    are then rejected, and 10% to 13% without this correction.

    The interval is asymptotically exact in the number of clusters, if the clusters are independent
    and no model was trained on the clusters it was tested on. ``caution`` reports fewer than 30
    clusters, and fewer than 2 degrees of freedom; a cluster that occurs in several folds, so that
    the interval is for these clusters rather than new ones; and, for CR1, clusters so unequal that
    it would be at least 10% below its target even if all cluster means had equal variances. Unequal
    clusters count as the degrees of freedom of CR2 plus one: with 40 clusters whose sizes correlate
    with their errors, coverage was 86%, and all of these logs had the label. With 30 or more,
    ``skewed`` marks clusters whose contributions to the mean are too skewed for their number.

    CR3 is the jackknife variance, (G - 1) / G times that of clubSandwich.

    Logs of weighted metrics do not contain the weights, so the shares v_c are those of points. If
    a few clusters have most of the weight, the interval is too narrow: it covered 90% for 40
    clusters with lognormal weights of log standard deviation 1.2, and 93% for one of 0.7.

    With several repetitions, the mean of a cluster is computed from all of its losses. This is
    equivalent to averaging each point over the repetitions first. Repeating the cross-validation
    does not add points or clusters. If a test set was evaluated several times without folds, as
    with several training seeds, and the repetitions differ by more than the clusters explain,
    ``caution`` contains ``unstable``: use ``by=("source", "repetition")``.

    For two levels with normal effects, the interval from mean squares is exact in all sizes, except
    for Satterthwaite's approximation: in simulations coverage was 94% to 97% with three or more
    seeds, and 91% with two. A variance below ``MS_E / (I J)`` is replaced by that floor, with the
    degrees of freedom of MS_E, and ``caution`` contains ``two-way variance clamped``; also if CR1
    of the pairs is not smaller than the sum of the others, which is then used. Intervals for
    incomplete logs are conservative if a level has few labels, as min(I, J) - 1 is a lower bound.
    ``few clusters at one level`` marks levels of fewer than 10 labels. Nested levels, such as
    students in schools, do not need two levels: ``by="school"``.

    For crossed logs V is never below the variance of either level, so it is also valid if equal
    point labels are a coincidence, such as rows numbered separately in each source: in simulations
    at 5% it then rejected 4% of true nulls. With shocks shared by dates it rejected 5% to 8%, and
    8% to 10% if these have an autocorrelation of .8; with sources as the only clusters, 20% to 95%
    (simulations of 3 to 40 sources and 65 to 200 dates).

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
                estimate  lower  upper     se  df       caution
    model
    naive_bayes    0.175  0.157  0.193  0.008  11  few clusters
    >>> print(result.attrs["cautions"]["few clusters"])
    There are fewer than 30 clusters, or they are so unequal that they count as ...

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
    # Treat clusters as independent: each has one mean, over all evaluations of its points.
    if not isinstance(by, str):
        return compute_two_ways(log, (by[0], by[1]), correction, alpha)
    seeds = by != "repetition" and repeats_test_set(log.design)
    of_seeds = repetition_level(log.design) if seeds else ()
    table = log.moments((*of_seeds, by))
    cells = table.over((by,))
    points, g = count_points(log, by, cells, "clustered"), cells.n_cells
    if interval == "prediction":
        return predict_cluster(log, cells, points, by, alpha)
    mean, total = cells.over(()).mean, cells.repeat(cells.sum(cells.count))
    v = cells.count[:, None] / total
    deviations = cells.mean - cells.repeat(mean)
    squared = cells.sum((scale_groups(v, cells.repeat(g), correction) * deviations) ** 2)
    effective = degrees_of_freedom(cells, v)
    df = effective if correction == "CR2" else g - 1
    caution = flag_few_clusters(cells, effective, v * deviations)
    caution |= flag(Caution.VERY_FEW_CLUSTERS, df < FEW_DF)
    if correction == "CR1":
        caution |= flag(Caution.UNEQUAL_CLUSTERS, expected_cr1_ratio(v, cells) < TOO_NARROW)
    across = find_crossed(log.design, by)
    caution = caution | flag(Caution.SOURCES_ACROSS_FOLDS, across)
    facts = OF_SPLIT_GROUPS if across.any() else {}
    result = symmetric_interval(
        "clustered", mean, squared, origin=cells.origin, alpha=alpha, df=df,
        extra={
            "n_points": cells.sum(points).astype(np.int64), "n_clusters": g,
            **size_range(points, cells),
        },
        caution=caution, attrs={"by": by, "correction": correction, **facts},
    )  # fmt: skip
    if not of_seeds:
        return result
    return flag_seeds(result, log, *sum_clusters(table, of_seeds, by))


def sum_clusters(table: Cells, of_seeds: tuple[str, ...], by: str) -> tuple[Cells, Cells]:
    """Treat what each cluster adds to the mean of a repetition as one loss.

    Returns their moments by repetition and by cluster.
    """
    apart = table.mean - table.repeat(table.over(()).mean)
    table = replace(table.cell_means(), mean=table.count[:, None] * apart)
    return table.over(of_seeds), table.over((by,))


def predict_cluster(log: Log, cells: Cells, points: IntArray, by: str, alpha: float) -> Result:
    """Compute the prediction interval of `out_of_source`: its means are those of clusters."""
    if log.design.metric == "pool" or find_crossed(log.design, by).any():
        why = "a metric pooled over all points" if log.design.metric else (
            f"labels of {by!r} that occur in several folds, so models were trained on them"
        )  # fmt: skip
        raise LogError(
            f"interval='prediction' is for the mean loss on one new cluster, but this log has "
            f"{why}. Expected losses of points, and whole clusters in each fold. Use "
            "interval='mean'."
        )
    estimate, squares = cells.mean_and_squares()
    g = cells.n_cells
    result = symmetric_interval(
        "clustered", estimate, squares / (g - 1) * (1 + 1 / g), origin=cells.origin, alpha=alpha,
        df=g - 1,
        extra={
            "n_points": cells.sum(points).astype(np.int64), "n_clusters": g,
            **size_range(points, cells),
        },
        caution=flag_few_clusters(cells, g - 1, cells.mean - cells.repeat(estimate)),
        attrs={
            "by": by, "interval": "prediction", "target": PREDICTION_TARGET,
            "guarantee": PREDICTION_GUARANTEE,
        },
    )  # fmt: skip
    return cut_limits(result, log)


def flag_few_clusters(cells: Cells, df: FloatArray | IntArray, parts: FloatArray) -> IntArray:
    """Flag few or unequal clusters, by their degrees of freedom, and skewed parts of a mean."""
    few = df < ENOUGH_DF
    skewed = are_skewed(cells, parts) & ~few
    return flag(Caution.FEW_CLUSTERS, few) | flag(Caution.SKEWED, skewed)


def degrees_of_freedom(cells: Cells, v: FloatArray) -> FloatArray:
    """Compute the degrees of freedom of Bell and McCaffrey (2002) for CR2.

    CR2 is a sum of squares, with Satterthwaite's degrees of freedom as if losses were independent
    with equal variances.
    """
    q = v**2 / (1 - v)
    return 1 / (cells.sum(v**2) + cells.sum(q) ** 2 - cells.sum(q**2))


def expected_cr1_ratio(v: FloatArray, cells: Cells) -> FloatArray:
    """Divide the expectation of CR1 by its target, for cluster means of equal variance.

    With independent means of variance one the target is ``S2 = sum v_c^2``, and the
    expectation ``G / (G - 1) sum v_c^2 (1 - 2 v_c + S2)``. It is 1 for equal clusters.
    """
    g, s2 = cells.n_cells, cells.sum(v**2)
    return g / (g - 1) * (1 + s2 - 2 * cells.sum(v**3) / s2)


FEW_AT_ONE_LEVEL = 10
"""Number of labels of one level below which its part of the standard error is imprecise."""

ROUNDING = 1e-12
"""Differences of variances below this share of the larger one are rounding errors."""

TWO_WAYS_TARGET = (
    "mean loss over new labels of both levels from the same populations, such as new points under "
    "new seeds"
)
OF_FIXED_LABELS = (
    "asymptotically exact in the labels of both levels, if the labels of each level are independent"
)
TWO_WAYS_GUARANTEE = f"{OF_FIXED_LABELS} and none is in both training and test folds"
TWO_WAYS_REFERENCE = (
    "Cameron, Gelbach and Miller (2011), Journal of Business & Economic Statistics 29(2), 238-249, "
    "doi:10.1198/jbes.2010.07136; Satterthwaite (1946), Biometrics Bulletin 2(6), 110-114, "
    "doi:10.2307/3002019"
)


CROSSED_TARGET = "mean loss of new points in new sources from the same population"
DATES_TARGET = (
    "mean loss in new sources from the same population, if the series continues in the same way"
)
DATES_GUARANTEE = (
    "asymptotically exact in sources and times, if sources are independent, the dependence over "
    "time fades and no model was tested on sources or times it was trained on"
)
OF_FIXED_DATES = (
    "asymptotically exact in sources and times, if sources are independent and the dependence over "
    "time fades"
)
COSINES_REFERENCE = (
    "Lazarus, Lewis, Stock and Watson (2018), Journal of Business & Economic Statistics 36(4), "
    "541-559, doi:10.1080/07350015.2018.1506926"
)


def is_sources_by_points(names: Sequence[str]) -> bool:
    """Whether two levels are sources and points in a crossed log."""
    return sorted(names) == sorted(SOURCES_BY_POINTS)


def two_ways(design: Design, one: str, two: str) -> str | None:
    """Require at least two labels of both levels, of one data set."""
    if (problem := single_dataset(design)) is not None:
        return problem
    for name, other in ((one, two), (two, one)):
        if name not in design.levels:
            return f"{no_level(name)}, or name another level, as in by=('point', 'repetition')."
        points = design.splits().points if name == "point" else None
        if (design.number(name) if points is None else points) < 2:
            return (
                f"the log has only one label of {name!r}, which does not show how much others "
                "would differ. Expected at least two, and preferably ten or more; otherwise use "
                f"by={other!r}."
            )
    return None


def compute_two_ways(log: Log, names: tuple[str, str], correction: str, alpha: float) -> Result:
    """Compute the interval from mean squares in a crossed log, otherwise from sums of clusters."""
    if log.design.by is not None:
        raise DifferentGroups("two levels are used for one group at a time.")
    if correction == "CR3":
        raise LogError(
            "correction='CR3' supports one level of clusters, but by= names two. Use 'CR2', or "
            "'CR1' for the sums of clusters used by other software."
        )
    if of_sources := is_sources_by_points(names):
        names = SOURCES_BY_POINTS
    robust = of_sources and correction == "CR2"
    ways = TwoWays.of(log, find_ways(log.design) if robust else names)
    flags = np.zeros(len(ways.mean), dtype=np.int64)
    target, reference = TWO_WAYS_TARGET, TWO_WAYS_REFERENCE
    guarantee = OF_FIXED_LABELS if log.only_tested else TWO_WAYS_GUARANTEE
    extra: dict[str, int] = {}
    calls: dict[Caution, str] = {}
    if robust:
        of_dates = compute_long_run(ways)
        variance, df = sum_ways(ways, of_dates)
        target = CROSSED_TARGET
        if of_dates is not None:
            target = DATES_TARGET
            guarantee = OF_FIXED_DATES if log.only_tested else DATES_GUARANTEE
            reference = f"{TWO_WAYS_REFERENCE}; {COSINES_REFERENCE}"
            flags |= of_dates.flags
            extra = {"n_cosines": of_dates.df}
            if ways.i < FEW_AT_ONE_LEVEL:
                calls[Caution.FEW_AT_ONE_LEVEL] = (
                    "log.cvci.ordered(), or compare(method='ordered') for differences, if only "
                    f"these {ways.i} sources matter, such as the horizons of a forecast "
                    "(by='source' gives a result for each of them)"
                )
    elif correction == "CR2" and ways.crossed:
        variance, df, clamped = mean_squares(ways)
        flags[clamped] |= np.int64(Caution.TWO_WAYS_CLAMPED)
    else:
        variance, df, clamped = cluster_sums(ways)
        flags[clamped] |= np.int64(Caution.TWO_WAYS_CLAMPED)
    fewest, most = sorted((ways.i, ways.j))
    caution = Caution(0)
    if fewest < FEW_AT_ONE_LEVEL:
        caution |= Caution.FEW_AT_ONE_LEVEL
    if most < FEW_CLUSTERS:
        caution |= Caution.FEW_CLUSTERS
    split = divides_sources(log, names)
    if split:
        caution |= Caution.SOURCES_ACROSS_FOLDS
    flags |= np.int64(caution)
    flags[df < FEW_DF] |= np.int64(Caution.VERY_FEW_CLUSTERS)
    counts = {"n_first": ways.i, "n_second": ways.j}
    if (points := log.design.splits().points) is not None:
        counts = {"n_points": points, **counts}
    if log.of_differences and not log.only_tested:
        guarantee = f"{guarantee}, {OF_FOLDS}"
        reference = f"{reference}; {RELATIVE_STABILITY}"
    if split:
        guarantee = OF_SPLIT_GROUPS["guarantee"]
    result = symmetric_interval(
        "clustered", ways.mean, variance, origin=ways.first.origin, alpha=alpha, df=df,
        extra={**counts, "crossed": int(ways.crossed), **extra}, caution=flags,
        attrs={
            "by": ", ".join(names), "correction": correction, "target": target,
            "guarantee": guarantee, "reference": reference,
        },
    )  # fmt: skip
    return replace(result, calls=calls)


def divides_sources(log: Log, names: tuple[str, str]) -> bool:
    """Whether a label that each point keeps, such as its source, occurs in several folds.

    Each point is tested once in a repetition, and repetitions or judges are in all folds.
    """
    design = log.design
    if is_sources_by_points(names):
        return divides_both(design)
    if "point" in names:
        return False
    named = log.in_memory and "point" in design.levels
    crossed = design.splits().by if named else design.within
    kept = [name for name in names if name not in ("repetition", *crossed)]
    return any(find_across_folds(design, name) is not None for name in kept)


# --- two levels: sums -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoWays:
    """The means of the labels of both levels, and the squared sums of pairs of labels.

    Parameters
    ----------
    first, second : Cells
        One cell per label, with a common origin.
    mean : array, shape (columns,)
        The mean of all losses, about that origin.
    n : int
        Number of losses.
    pairs : int
        Number of pairs of labels that occur.
    squares : array, shape (columns,)
        Sum over pairs of the squared sum of their losses about the mean.
    crossed : bool
        Whether every pair of labels has equally many losses; these are then averaged, and ``n``
        is the number of pairs.
    """

    first: Cells
    second: Cells
    mean: FloatArray
    n: int
    pairs: int
    squares: FloatArray
    crossed: bool

    @property
    def i(self) -> int:
        """Number of labels of the first level."""
        return len(self.first.count)

    @property
    def j(self) -> int:
        """Number of labels of the second level."""
        return len(self.second.count)

    @classmethod
    def of(cls, log: Log, names: tuple[str, str]) -> TwoWays:
        """Compute them in two passes if each pair has one loss, otherwise from all pairs."""
        nested = "source" in log.design.levels and not is_sources_by_points(names)
        one, two = (
            ("source", name) if nested and name == "point" else (name,) for name in names
        )  # points may be numbered by source
        if has_single_losses(log.design, names):
            first = log.moments(one)
            second = log.moments(two).shift_origin(first.origin)
            whole = first.over(())
            found = cls(
                first, second, whole.mean[0], int(whole.count[0]), int(whole.count[0]),
                whole.m2[0], int(whole.count[0]) == len(first.count) * len(second.count),
            )  # fmt: skip
        else:
            found = cls.of_pairs(log.moments(tuple(dict.fromkeys((*one, *two)))), one, two)
        for name, other, labels in ((names[0], names[1], found.i), (names[1], names[0], found.j)):
            if found.pairs == labels:
                way = f"clustered(log, by={other!r}) accounts for both."
                if (name, other) == SOURCES_BY_POINTS:
                    way += " If each source numbers its points separately, set "
                    way += "log.attrs['points_are'] = 'nested'."
                raise LogError(
                    f"each label of {name!r} occurs with one label of {other!r} only: the levels "
                    f"are nested, not crossed. Expected two crossed levels. {way}"
                )
        return found

    @classmethod
    def of_pairs(cls, pairs: Cells, one: tuple[str, ...], two: tuple[str, ...]) -> TwoWays:
        """Merge pairs of labels; if they have equally many losses, use their means."""
        number = len(pairs.count)
        even = bool((pairs.count == pairs.count[0]).all())
        if even:
            pairs = pairs.cell_means()
        first, second, whole = pairs.over(one), pairs.over(two), pairs.over(())
        sums = pairs.count[:, None] * (pairs.mean - whole.mean[0])
        crossed = even and number == len(first.count) * len(second.count)
        return cls(
            first, second, whole.mean[0], int(whole.count[0]), number, (sums**2).sum(axis=0),
            crossed,
        )  # fmt: skip


def has_single_losses(design: Design, names: tuple[str, str]) -> bool:
    """Whether no pair of labels has several losses."""
    repeated = [name for name in ("repetition", *design.within) if design.has(name)]
    if "point" in names and all(name in names for name in repeated):
        return True  # each point is evaluated once in a repetition
    return int(design.cell_table(names).total.max()) == 1


# --- two levels: the variance ---------------------------------------------------------------------


def mean_squares(ways: TwoWays) -> tuple[FloatArray, FloatArray, MaskArray]:
    """Compute ``(MS_A + MS_B - MS_E) / (I J)`` and Satterthwaite's degrees of freedom.

    The mean squares have the expectations ``J sigma_A^2 + sigma_E^2``, ``I sigma_B^2 + sigma_E^2``
    and ``sigma_E^2``, so that the variance is unbiased, and ``sigma_E^2 / (I J)`` its floor. Also
    return where the estimate is below that floor.
    """
    i, j = ways.i, ways.j
    df = i - 1, j - 1, (i - 1) * (j - 1)
    first, second, single = find_mean_squares(ways)
    total = first + second - single
    clamped = total < single * (1 - ROUNDING)  # one error makes all mean squares equal
    spread = first**2 / df[0] + second**2 / df[1] + single**2 / df[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(clamped | (total == 0), df[2], total**2 / spread)
    return np.where(clamped, single, total) / (i * j), freedom, clamped


def find_mean_squares(ways: TwoWays) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the mean squares of both levels and of the residuals."""
    i, j = ways.i, ways.j
    of_first = j * ((ways.first.mean - ways.mean) ** 2).sum(axis=0)
    of_second = i * ((ways.second.mean - ways.mean) ** 2).sum(axis=0)
    rest = np.maximum(ways.squares - of_first - of_second, 0.0)
    return of_first / (i - 1), of_second / (j - 1), rest / ((i - 1) * (j - 1))


def cluster_sums(ways: TwoWays) -> tuple[FloatArray, FloatArray, MaskArray]:
    """Compute ``V_A + V_B - V_AB``, each with its ``G / (G - 1)``, and ``min(I, J) - 1``.

    ``V_A`` is CR1 with the labels of the first level as clusters, and ``V_AB`` with pairs of
    labels. If the result is not positive, ``V_A + V_B`` is used instead, which is also returned.
    """
    first, second, pairs = find_cluster_sums(ways)
    both = first + second
    variance = both - pairs
    clamped = (both > 0) & (variance <= ROUNDING * both)
    df = np.full(len(both), min(ways.i, ways.j) - 1.0)
    return np.where(clamped, both, variance), df, clamped


def find_cluster_sums(ways: TwoWays) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute ``V_A``, ``V_B`` and ``V_AB``."""

    def correct(squares: FloatArray, g: int) -> FloatArray:
        return g / (g - 1) * squares / ways.n**2

    first, second = (
        ((cells.count[:, None] * (cells.mean - ways.mean)) ** 2).sum(axis=0)
        for cells in (ways.first, ways.second)
    )
    return correct(first, ways.i), correct(second, ways.j), correct(ways.squares, ways.pairs)


# --- sources by points ----------------------------------------------------------------------------


def find_ways(design: Design) -> tuple[str, str]:
    """Name the levels of sources and points, or of dates if each point has one, and not few."""
    dates = find_dates(design) or "point"
    several = dates != "point" and design.number(dates) >= FEWEST
    pairs = design.cell_table(("point", dates)).codes if several else ()
    return "source", dates if several and len(pairs) == design.number("point") else "point"


@dataclass(frozen=True, eq=False)
class LongRun:
    """The variance of the mean over dates, which may be autocorrelated.

    Parameters
    ----------
    variance : array, shape (columns,)
        The long-run variance of the sums of the dates, as a share of all losses.
    share : array, shape (columns,)
        How much of it the cosines see, by which it was divided.
    df : int
        Its degrees of freedom: the number of cosines.
    flags : array of int, shape (columns,)
        The cautions of each column.
    sums : array, shape (dates, columns)
        The sums of the dates in order, as deviations of means.
    """

    variance: FloatArray
    share: FloatArray
    df: int
    flags: IntArray
    sums: FloatArray


def order_sums(ways: TwoWays) -> tuple[FloatArray, bool] | None:
    """Sum the losses of each date in order, as deviations of means; None if not dates.

    Also return whether the dates are evenly spaced.
    """
    cells, n = ways.second, ways.j
    dates = order_dates(cells.labels[-1], cells.codes[:, -1]) if n >= FEWEST else None
    if dates is None:
        return None
    sums = (cells.count * n / ways.n)[:, None] * (cells.mean - ways.mean)
    return sums[dates[0]], dates[1]


def compute_long_run(ways: TwoWays) -> LongRun | None:
    """Compute it with equal-weighted cosines if the second level has dates; None otherwise.

    Divided by the share of it that the cosines see if the dates are an autoregression.
    """
    dates, n = order_sums(ways), ways.j
    if dates is None:
        return None
    sums, regular = dates
    zero = np.zeros(sums.shape[1])
    series = MeansByTime(zero, zero, lambda columns: sums[:, columns], n)
    weights, seasons = choose_weights(n, None, None, None), choose_seasons(n)
    near = choose_order(n) + 1
    found, variance = measure_series(series, np.append(np.arange(near), seasons), weights)
    gamma, far = np.split(found, [near])
    alike = is_persistent(gamma, n, min(ENOUGH * weights.cosines, FEW_DATES))
    alike |= comes_back(gamma, far, seasons, n, weights.cosines)
    flags = np.where(alike, np.int64(Caution.STRONG_DEPENDENCE), np.int64(0))
    flags |= np.int64(Caution(0) if regular else Caution.GAPS_IN_TIME)
    share = share_of_cosines(gamma, n, weights.cosines)
    return LongRun(variance / share, share, weights.cosines, flags, sums)


def sum_ways(ways: TwoWays, dates: LongRun | None) -> tuple[FloatArray, FloatArray]:
    """Compute ``max(V_S + V_T - V_I, V_S, V_T)`` and Satterthwaite's degrees of freedom."""
    if ways.crossed:
        size = ways.i * ways.j
        first, second, single = (part / size for part in find_mean_squares(ways))
    else:
        first, second, single = find_cluster_sums(ways)
    df = ways.j - 1
    if dates is not None:
        second, df = dates.variance, dates.df
    both = first + second
    variance = np.maximum(np.maximum(first, second), both - single)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = both**2 / (first**2 / (ways.i - 1) + second**2 / df)
    return variance, np.where(both == 0, min(ways.i - 1, df), freedom)


def two_way_residuals(log: Log) -> tuple[FloatArray, FloatArray]:
    """Scale the residual means of sources and of points, so that squares sum to ``V_S + V_T``.

    ``- V_I`` is omitted, because the covariances of several models would not be a valid covariance
    matrix with it. Also return the means.
    """
    ways = TwoWays.of(log, find_ways(log.design))

    def scale(cells: Cells) -> FloatArray:
        factor = cells.count * np.sqrt(len(cells.count) / (len(cells.count) - 1)) / ways.n
        residuals: FloatArray = factor[:, None] * (cells.mean - ways.mean)
        return residuals

    long_run = compute_long_run(ways)
    if long_run is None:
        of_points = scale(ways.second)
    else:
        of_points = transform_cosines(long_run.sums, long_run.df) / np.sqrt(long_run.share)
    return np.concatenate([scale(ways.first), of_points]), ways.first.origin + ways.mean
