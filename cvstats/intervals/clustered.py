"""Cluster-robust interval: groups of points, not points, are the independent units."""

from __future__ import annotations

from typing import Literal

from cvstats.containers import Log, Losses, Table
from cvstats.core.cautions import Caution
from cvstats.core.columns import Columns
from cvstats.core.layout import find_across_folds
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_level
from cvstats.intervals._differences import RELATIVELY_STABLE
from cvstats.intervals._groups import count_points, size_range
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._requirements import groups
from cvstats.options import Missing

__all__ = ["clustered"]

FEW_CLUSTERS = 30
TOO_NARROW = 0.9
"""A share of CR1's own target below which clusters count as too unequal for it."""


def clustered(
    losses: Losses,
    *,
    by: str = "source",
    correction: Literal["CR1", "CR3"] = "CR1",
    alpha: float = 0.05,
    per: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Cluster-robust interval: groups of points, not points, are what was sampled.

    The target is the mean loss over points of groups drawn as these were. The estimate is the
    mean mu of all losses. With v_c the share of the losses in cluster c of G, and m_c their
    mean, the variance is

    - CR1: ``G / (G - 1) sum_c v_c^2 (m_c - mu)^2``,
    - CR3, the jackknife: ``(G - 1) / G sum_c [v_c (m_c - mu) / (1 - v_c)]^2``,

    and the limits take Student's t with G - 1 degrees of freedom.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any log of one data set with a level that names the clusters; each point belongs to
        one cluster. Losses in any unit.
    by : str, optional
        The level (or coordinate) whose labels are the clusters.
    correction : {"CR1", "CR3"}, optional
        CR3 is the safer one where clusters are few, or differ much in size.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    per : str, optional
        Another level, for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the unit of the loss, ``df`` and ``caution`` (labels, each explained
        in ``attrs["cautions"]``). ``n_points``, ``n_clusters`` and the points of the ``smallest``
        and the ``largest`` cluster are in ``attrs``, or columns where rows differ in them.

    Raises
    ------
    LogError
        If there is one cluster only, or a point is in several.

    Notes
    -----
    Exact as clusters grow in number, if they are independent and models were trained on other
    clusters than they were tested on. ``caution`` reports fewer than 30 clusters;
    a cluster that occurs in several folds, so that the interval is about these clusters and not
    about new ones; and clusters so unequal that CR1 would be a tenth or more below its target
    even if all cluster means varied alike.

    Several repetitions give each cluster one mean, over all of its losses: the same numbers
    as averaging each point over the repetitions first. Points and clusters stay as many as
    they are, however often the cross-validation was repeated.

    References
    ----------
    Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13.
    MacKinnon, Nielsen and Webb (2023), Journal of Econometrics 232(2), 272-299,
    doi:10.1016/j.jeconom.2022.04.001.
    Miller (2024), Adding error bars to evals, arXiv:2411.00640.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> result = losses.cvci.clustered()
    >>> result.round(3)
                 estimate  lower  upper     se  df       caution
    model
    naive_bayes     0.175  0.157  0.193  0.008  11  few clusters
    >>> print(result.attrs["cautions"]["few clusters"])
    There are fewer than 30 clusters: the interval may be too narrow. ...
    """
    if per is not None:
        checked_level("per", per)
        checked_level("by", by)
        if per == by:
            raise LogError(
                f"per={per!r} leaves one cluster in each part. "
                f"Expected another level than by={by!r}."
            )
    return METHOD(losses, by=by, correction=correction, alpha=alpha, per=per, missing=missing)


def compute(log: Log, losses: Columns | None, *, by: str, correction: str, alpha: float) -> Result:
    """Take the clusters for independent: each has one mean, over all evaluations of its points."""
    cells = log.moments((by,), losses)
    points = count_points(log, by, cells, "clustered")
    g = len(cells.count)
    v = (cells.count / cells.count.sum())[:, None]
    mean = cells.over(()).mean[0]
    apart = v * (cells.mean - mean)
    if correction == "CR1":  # Liang and Zeger (1986), times G / (G - 1)
        squared = g / (g - 1) * (apart**2).sum(axis=0)
    else:  # the jackknife: without cluster c the mean moves by v_c (mu - m_c) / (1 - v_c)
        squared = (g - 1) / g * ((apart / (1 - v)) ** 2).sum(axis=0)
    caution = Caution.FEW_CLUSTERS if g < FEW_CLUSTERS else Caution(0)
    if correction == "CR1" and expected_cr1_ratio(v[:, 0]) < TOO_NARROW:
        caution |= Caution.UNEQUAL_CLUSTERS
    if find_across_folds(log.design, by) is not None:
        caution |= Caution.SOURCES_ACROSS_FOLDS
    return interval(
        "clustered", mean, squared, origin=cells.origin, alpha=alpha, df=g - 1,
        extra={
            "df": g - 1, "n_points": int(points.sum()), "n_clusters": g, **size_range(points),
        },
        caution=int(caution), attrs={"by": by, "correction": correction},
    )  # fmt: skip


def expected_cr1_ratio(v: FloatArray) -> float:
    """Divide the expectation of CR1 by its target, for cluster means of one variance.

    With independent means of variance one the target is ``S2 = sum v_c^2``, and the
    expectation ``G / (G - 1) sum v_c^2 (1 - 2 v_c + S2)``. It is 1 for equal clusters.
    """
    s2 = float((v**2).sum())
    return len(v) / (len(v) - 1) * (1 + s2 - 2 * float((v**3).sum()) / s2)


METHOD = IntervalMethod(
    clustered,
    compute=compute,
    requires=groups,
    needs="a level that names independent groups (source), two groups or more",
    target="mean loss over points of groups drawn as these were, of models trained on other groups",
    guarantee="exact as groups grow, if they are independent and none occurs in training and in "
    "test folds",
    difference_guarantee="exact as groups grow, if they are independent and none occurs in "
    f"training and in test folds, and, where models were trained in folds, {RELATIVELY_STABLE}",
    fits="as the log has",
    reference="Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13",
    level_option="by",
    group_option="per",
    of_groups=True,
)
