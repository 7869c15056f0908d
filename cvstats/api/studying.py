"""The variance of a mean over sources, for study: estimators, and what they estimate."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

from cvstats.api.answering import answered
from cvstats.api.running import Losses, Missing, Table
from cvstats.api.running_sources import (
    independent_logs,
    run_source_components,
    run_source_estimators,
)
from cvstats.containers import Groups, is_dask_frame, label_stacked, later
from cvstats.errors import LogError

__all__ = ["source_components", "source_estimators"]


def source_estimators(
    losses: Losses,
    *,
    source: Hashable = None,
    other: Hashable = None,
    missing: Missing = "raise",
) -> Table:
    """All estimators of the variance of the mean over these sources, for study.

    The target is theta, the variance over data sets from the same K sources of the mean of the
    source means. With sigma_k^2 the variance of a loss of source k, omega_k the covariance of
    two of its losses and gamma_kl that of losses of two sources,
    ``theta = K^-2 [sum_k sigma_k^2 / M_k + sum_k (1 - 1/M_k) omega_k + sum_kl gamma_kl]``.
    No estimator is unbiased for it whatever these are.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log that leaves one source out at a time, with two points or more in each source.
    source, other : hashable, optional
        Labels of sources: the one whose omega, and with ``other`` the pair whose gamma, is
        taken to be zero by the first two lines of the paper's Table 1.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        Raw estimates in squared units of the loss: ``theta_omega_k`` (with ``source``),
        ``theta_gamma_kl`` (with both), ``theta_omega`` and ``theta_gamma``, the naive
        estimators of Table 1 in its order; ``theta_a`` and ``theta_b``; ``n_points``,
        ``n_sources``, ``smallest``, ``largest`` and ``caution``. ``attrs["bias"]`` gives the
        bias of each in words.

    Raises
    ------
    LogError
        If the log does not leave one source out at a time, a source has one point, or there
        is no source of that name.

    Notes
    -----
    The third and fourth estimators are the means of the first and second over all sources and
    all pairs. The naive four are unbiased only if the expected losses mu_k of all sources are
    equal, besides the covariance that their name says is zero. ``theta_gamma`` is ``V_b / K``,
    which does not tend to zero as sources hold more points: for a new source, and not for
    these, that is as it should be, see `out_of_source`.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300,
    Table 1 and equations (11), (12).

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> found = losses.cvci.source_estimators(source="2013-01", other="2013-02")
    >>> (found.filter(like="theta").T * 1e6).round(1)
    model           naive_bayes
    theta_omega_k        1533.3
    theta_gamma_kl       -218.4
    theta_omega          -705.7
    theta_gamma            66.4
    theta_a                 2.1
    theta_b                 4.2
    """
    if source is None and other is not None:
        raise LogError("other names the second source of a pair. Expected source with it.")
    pair = [name for name in (source, other) if isinstance(name, Hashable)]
    if source is not None and len(pair) > len(set(pair)):
        raise LogError(f"source and other are both {source!r}. Expected two different sources.")
    return answered(
        losses, partial(run_source_estimators, source=source, other=other), missing=missing
    )


def source_components(
    losses: Losses, *, independent: str = "dataset", missing: Missing = "raise"
) -> Table:
    """Estimate variances and covariances of losses, by source, from several independent logs.

    Each log leaves out the same sources, one at a time, on a data set of its own. The target
    is the covariance of the losses: sigma_k^2 for a loss of source k, omega_k for two of its
    losses, gamma_kl for losses of sources k and l. With C the sample covariance over the logs
    of the source means, ``gamma_kl = C_kl``, ``omega_k = C_kk - mean(var_k) mean(1 / M_k)`` and
    ``sigma_k^2 = omega_k + mean(var_k)``.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Logs that leave one source out at a time, below each other: two or more, with the same
        sources and two points or more in each.
    independent : str, optional
        The level (or coordinate) that tells the logs apart.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each (source, other) and model, or dimensions of these names: ``covariance``
        of the two source means, ``sigma2`` and ``omega`` where the two are one source,
        ``gamma`` where they are not, raw and in squared units of the loss; ``n_logs`` and
        ``caution``.

    Raises
    ------
    LogError
        If there is one log only, the level is one of repetitions, folds or points, a log does
        not leave one source out at a time, or the logs differ in their sources.

    Notes
    -----
    Unbiased for independent logs of one design, whatever their number; K sources have K (K - 1)
    / 2 covariances, so that few logs tell each of them badly. `decompose` with ``independent=``
    gives their means and the three parts of the variance of the mean.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300,
    equations (6) and (7).

    Examples
    --------
    >>> import cvstats, pandas as pd
    >>> index = pd.MultiIndex.from_product(
    ...     [[0, 1, 2], ["a", "b"], [0, 1]], names=["dataset", "source", "point"]
    ... )
    >>> losses = pd.Series([1.0, 3, 2, 2, 4, 2, 3, 5, 2, 4, 3, 3], index=index)
    >>> table = losses.cvci.source_components(independent="dataset")
    >>> table["gamma"].unstack("other")
    other     a    b
    source
    a       NaN  0.5
    b       0.5  NaN
    """
    if is_dask_frame(losses):
        ask = partial(source_components, independent=independent)
        answer: Table = later(losses, ask, levels=(independent,), missing=missing)
        return answer
    groups = independent_logs(losses, independent, missing)
    result = run_source_components(groups)
    names = Groups(groups.log, "source").labels
    return label_stacked(groups.log, [("source", names), ("other", names)], result)
