"""Data that come in groups: the error on a new one, on these, and how much they differ."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from cvstats.api.answering import answered
from cvstats.api.options import checked
from cvstats.api.running import Losses, Missing, Table
from cvstats.api.running_sources import (
    run_clustered,
    run_heterogeneity,
    run_out_of_source,
)
from cvstats.errors import LogError, checked_level

__all__ = ["clustered", "heterogeneity", "out_of_source"]


def out_of_source(
    losses: Losses,
    *,
    target: Literal["new_source", "these_sources"] = "new_source",
    variance: Literal["theta_b", "theta_a"] = "theta_b",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    """Interval for the error on a new source, or on the sources at hand.

    Each of K sources (subjects, sites, months) was tested by a model trained on the others.
    With m_k the mean loss of source k, var_k the sample variance of its M_k losses, and V_b the
    sample variance of the m_k, the estimate is the plain mean of the m_k and its variance

    - for a new source, drawn as these were: ``V_b / K``, with Student's t on K - 1 degrees of
      freedom;
    - for these sources, over data sets that they could give: ``theta_a = K^-2 sum_k var_k /
      M_k`` or ``theta_b``, twice that, with normal quantiles.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log that leaves one source out at a time: level ``source``, and no level ``fold`` or
        folds of one source each. Sources of any sizes; several repetitions (seeds) are
        averaged source by source. Losses in any unit.
    target : {"new_source", "these_sources"}, optional
        What the interval is to cover.
    variance : {"theta_b", "theta_a"}, optional
        For these sources, which estimator. Both leave out the covariances of the losses;
        theta_b makes up for some of that.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an interval of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``estimate`` (the mean over sources), ``se``, ``lower``, ``upper`` in the unit of the
        loss, ``df`` (new source), ``n_points``, ``n_sources``, the points of the ``smallest``
        and the ``largest`` source, and ``caution``; a row for each model, or variables over
        the carried dimensions. ``attrs["target"]`` says which target it was, and
        ``attrs["bias"]`` the bias of the variance for these sources.

    Raises
    ------
    LogError
        If the log has no sources or one, if a source stands in several folds or a fold holds
        several sources; for these sources also if a source has one point.

    Notes
    -----
    The two targets differ by more than a name. As sources grow, the interval for these
    sources shrinks to nothing, and the one for a new source does not: the sources are what was
    sampled. The latter is exact as sources grow if they were drawn independently and the
    models share most of their training data; under ten sources it leans on few numbers and
    ``caution`` says so. The training sets lack one source, so the target is the error of
    training with K - 1 of them.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> losses.cvci.out_of_source().round(3)
                 estimate  lower  upper     se  df caution
    model
    naive_bayes     0.175  0.157  0.193  0.008  11
    >>> losses.cvci.out_of_source(target="these_sources").round(3)
                 estimate  lower  upper     se           caution
    model
    naive_bayes     0.175  0.171  0.179  0.002  sources as folds
    """
    options: dict[str, Any] = {"target": target, "variance": variance, "alpha": alpha}
    checked("out_of_source", options)
    return answered(losses, partial(run_out_of_source, **options), by=by, missing=missing)


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
    Series, DataFrame or Dataset
        ``estimate``, ``se``, ``lower``, ``upper`` in the unit of the loss, ``df``,
        ``n_points``, ``n_clusters``, the points of the ``smallest`` and the ``largest``
        cluster, and ``caution``; a row for each model, or variables over the carried
        dimensions.

    Raises
    ------
    LogError
        If there is one cluster only, or a point stands in several.

    Notes
    -----
    Exact as clusters grow in number, if they are independent and models were trained on other
    clusters than they were tested on. ``caution`` tells of fewer than 30 clusters; of a
    cluster that stands in several folds, so that the interval is about these clusters and not
    about new ones; and of clusters so unequal that CR1 would be a tenth or more below its
    target even if all cluster means varied alike.

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
    There are fewer than 30 clusters: the interval may be too narrow. Use correction='CR3'.
    """
    options: dict[str, Any] = {"by": by, "correction": correction, "alpha": alpha}
    checked("clustered", options)
    checked_level("by", by)
    if per is not None:
        checked_level("per", per)
    if per == by:
        raise LogError(
            f"per={per!r} leaves one cluster in each part. Expected another level than by={by!r}."
        )
    run = partial(run_clustered, **options)
    return answered(losses, run, by=per, named=by, missing=missing)


def heterogeneity(
    losses: Losses,
    *,
    by: str = "source",
    variance: Literal["own", "pooled"] = "own",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    """Test whether groups differ by more than their points explain, and measure by how much.

    The target is the standard deviation tau of the expected losses of groups drawn as these
    were. With y_g the mean loss of group g and s_g its standard error, ``Q = sum_g (y_g -
    y)^2 / s_g^2`` about the mean y weighted by ``1 / s_g^2``; without any difference it follows
    chi-squared with G - 1 degrees of freedom.

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
        point, and groups in which all losses are the same.
    alpha : float, optional
        One minus the level of the interval for tau.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``q``, ``df``, ``p_value``; ``i2``, the share of the scatter of the y_g that the points
        do not explain, ``max(0, 1 - df / Q)``; ``tau`` (DerSimonian and Laird) with
        ``tau_lower`` and ``tau_upper`` (Q-profile) in the unit of the loss; ``n_groups`` and
        ``caution``.

    Raises
    ------
    LogError
        If there is one group only, a point stands in several, or a group has no variance.

    Notes
    -----
    Losses of a group are taken for independent given the group. tau below zero is shown as
    zero, and ``caution`` says so; limits of zero and zero mean that the groups differ less
    than chance alone would make them. On a log that leaves sources out, each group has a
    model of its own, and tau is about both. Groups in the tens make a wide interval; the few
    largest do not make it narrow.

    References
    ----------
    Cochran (1954), Biometrics 10(1), 101-129, doi:10.2307/3001666.
    DerSimonian and Laird (1986), doi:10.1016/0197-2456(86)90046-2.
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
    options: dict[str, Any] = {"by": by, "variance": variance, "alpha": alpha}
    checked("heterogeneity", options)
    checked_level("by", by)
    return answered(losses, partial(run_heterogeneity, **options), named=by, missing=missing)
