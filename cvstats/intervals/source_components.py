"""Variances of losses by source: components from several logs, and estimators from one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.cells import mean_and_squares
from cvstats.core.design import LEVELS, Design
from cvstats.core.results import Result
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed, looked_up, nearest, spelled
from cvstats.intervals._method import GERAS, Comparison, LogMethod
from cvstats.intervals._requirements import one_source_out
from cvstats.intervals._sources import (
    average_sources,
    repeated_levels,
    size_range,
    squared_errors_of_sources,
)
from cvstats.intervals.decompose import (
    by_source,
    check_logs,
    moments_by_source,
    read_independent_logs,
)
from cvstats.intervals.out_of_source import out_of_source
from cvstats.log.groups import Groups
from cvstats.log.log import Log, Losses, Table
from cvstats.options import Missing


def several_logs(design: Design) -> str | None:
    """Require a level that identifies the logs, and leave-one-source-out logs."""
    others = [name for name in design.levels if name not in LEVELS and design.number(name) > 1]
    if not others:
        return (
            "this is one log. Concatenate logs of several independent data sets, with a level "
            "that identifies them: pandas.concat(logs, names=['dataset'])."
        )
    return one_source_out(design)


@Comparison(
    requires=several_logs,
    needs="at least two independent logs, each leaving out the same sources one at a time",
    target="variances and covariances of losses, by source",
    guarantee="unbiased for independent logs of the same design",
    fits="one for each source and log",
    reference=GERAS,
    lazy=False,
    takes_metrics="averaged",
    level_options=("independent",),
)
def source_components(
    losses: Losses, *, independent: str = "dataset", missing: Missing = "raise"
) -> Table:
    r"""Estimate the variances and covariances of each source from several independent logs.

    Each log leaves out the same sources, one at a time, on a different data set. The targets are
    the variance sigma_k^2 of the losses of source k, the covariance omega_k of two losses of that
    source, and the covariance gamma_kl between losses of sources k and l. They are computed from
    the covariances of the source means over the logs, and from the variance of the losses within
    each source.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        At least two concatenated leave-one-source-out logs with the same sources and at least two
        points in each source.
    independent : str, optional
        The level (or coordinate) that separates the logs.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each (source, other) and model, or dimensions of these names: ``covariance`` of
        the two source means, ``sigma2`` and ``omega`` if the two are the same source, ``gamma``
        if not, raw and in squared units of the loss, and ``caution``. ``n_logs`` is in ``attrs``.

    Raises
    ------
    LogError
        If there is one log only, the level is one of repetitions, folds or points, a log does
        not leave one source out at a time, or the logs differ in their sources.

    See Also
    --------
    cvstats.source_estimators : Estimates of the variance of their mean from one log.
    cvstats.decompose : The parts of the variance of the mean.
    cvstats.heterogeneity : Whether the sources of one log differ.

    Notes
    -----
    With C the sample covariance of the source means over the logs, var_k the sample variance of
    the M_k losses of source k in a log, and means over the logs,

    .. math::

        \gamma_{kl} = C_{kl}, \qquad
        \omega_k = C_{kk} - \overline{\mathrm{var}_k}\; \overline{1 / M_k}, \qquad
        \sigma_k^2 = \omega_k + \overline{\mathrm{var}_k} .

    The estimates are unbiased for any number of independent logs of the same design. But K sources
    have K (K - 1) / 2 covariances, which cannot be estimated precisely from a few logs. `decompose`
    with ``independent=`` gives their means and the three parts of the variance of the mean.

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
    groups = read_independent_logs(losses, independent, missing)
    check_logs(
        out_of_source.record, groups,
        "source_components needs logs that leave one source out at a time",
    )  # fmt: skip
    result = estimate_by_source(groups)
    names = Groups(groups.log, "source").labels
    return groups.log.label(result, [("source", names), ("other", names)])


def estimate_by_source(groups: Groups) -> Result:
    """Estimate the components: a row for each pair of sources."""
    each = by_source(moments_by_source(groups))
    k, width = each.omega.shape
    own: IntArray = np.arange(k)
    gamma = each.covariance.copy()
    gamma[own, own] = np.nan
    sigma2, omega = np.full_like(gamma, np.nan), np.full_like(gamma, np.nan)
    sigma2[own, own], omega[own, own] = each.sigma2, each.omega
    columns: dict[str, NDArray[Any]] = {
        "covariance": each.covariance, "sigma2": sigma2, "omega": omega, "gamma": gamma,
    }  # fmt: skip
    columns = {name: values.reshape(-1) for name, values in columns.items()}
    columns["n_logs"] = np.full(k * k * width, each.logs)
    caution = np.where(
        np.isnan(columns["covariance"]), np.int64(Caution.NO_LOSSES), np.int64(0)
    )  # fmt: skip
    return source_components.record.add_facts(Result("source_components", columns, caution))


BIASES = {
    "theta_omega_k": "-omega_k + mean(mu)^2 - mu_k^2",
    "theta_gamma_kl": "-gamma_kl + mean(mu)^2 - mu_k mu_l",
    "theta_omega": "-mean_k omega_k - (1 - 1/K) Var(mu)",
    "theta_gamma": "-mean_kl gamma_kl + Var(mu) / K",
    "theta_a": "-K^-2 (sum_k omega_k + sum_kl gamma_kl)",
    "theta_b": "K^-2 (sum_k [sigma_k^2 - (M_k + 1) omega_k] / M_k - sum_kl gamma_kl)",
}
"""Bias of each estimator of (7); mu_k is the expected loss of source k, Var(mu) their sample
variance, and kl runs over pairs of different sources."""


def check_pair(options: Mapping[str, Any]) -> None:
    """Reject a second source without a first, or the same source twice."""
    source, other = options["source"], options["other"]
    if source is None and other is not None:
        raise LogError("other= names the second source of a pair. Pass source= with it.")
    pair = [name for name in (source, other) if isinstance(name, Hashable)]
    if source is not None and len(pair) > len(set(pair)):
        raise LogError(f"source and other are both {source!r}. Expected two different sources.")


@LogMethod(
    check=check_pair,
    requires=one_source_out,
    needs="a log that leaves one source out at a time (level 'source'; no 'fold', or folds that "
    "are sources)",
    target="variance of the mean over these sources, from one data set to another",
    guarantee="none: each estimator has the bias given in attrs['bias']",
    fits="one for each source",
    reference=GERAS,
    takes_metrics="averaged",
)
def source_estimators(
    log: Log,
    *,
    source: Hashable = None,
    other: Hashable = None,
    missing: Missing = "raise",
) -> Result:
    r"""Compute all estimators of the variance of the mean over these sources, for research.

    The target is theta, the variance of the mean of the source means, over data sets from the same
    K sources. It depends on the variance sigma_k^2 of a loss of source k, on the covariance omega_k
    of two losses of that source, and on the covariance gamma_kl between losses of two sources. No
    estimator is always unbiased for it.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log that leaves one source out at a time, with two points or more in each source.
    source, other : hashable, optional
        Labels of sources: the one whose omega, and with ``other`` the pair whose gamma, is
        assumed to be zero in the first two lines of the paper's Table 1.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        Raw estimates in squared units of the loss, a row for each model or variables over the
        carried dimensions: ``theta_omega_k`` (with ``source``), ``theta_gamma_kl`` (with both),
        ``theta_omega`` and ``theta_gamma``, the naive estimators of Table 1 in its order;
        ``theta_a`` and ``theta_b``; and ``caution``. ``n_points``, ``n_sources``, ``smallest`` and
        ``largest`` are in ``attrs``, and ``attrs["bias"]`` gives the bias of each estimator in
        words.

    Raises
    ------
    LogError
        If the log does not leave one source out at a time, a source has one point, or no source
        has that name.

    See Also
    --------
    cvstats.out_of_source : The interval from two of these estimators.
    cvstats.source_components : The components themselves, from several logs.
    cvstats.decompose : The same for folds.

    Notes
    -----
    With M_k the number of losses of source k,

    .. math::

        \theta = \frac{1}{K^2} \left[\sum_k \frac{\sigma_k^2}{M_k}
            + \sum_k \left(1 - \frac{1}{M_k}\right) \omega_k + \sum_{k \ne l} \gamma_{kl}\right] .

    The third and fourth estimators are the means of the first and second over all sources and
    all pairs. The four naive estimators are unbiased only if the covariance in their name is zero
    and the expected losses mu_k of all sources are equal. ``theta_gamma`` is ``V_b / K``, which
    does not tend to zero as sources get more points: this is correct for new sources but not for
    these, see `out_of_source`.

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
    # Estimate (7) by all estimators of Geras and Sutton.  Products of means are taken about the
    # estimate: their differences would otherwise lose digits.
    cells = log.moments(repeated_levels(log, "source"))
    codes = [None if name is None else find_source(log, name) for name in (source, other)]
    part, points = average_sources(cells)
    k = len(part.count)
    mean, squares = mean_and_squares(part.mean)
    deviations, mean = part.mean - mean, part.origin + mean
    spread = squares / (k - 1)  # V_b
    noise = squared_errors_of_sources(cells)
    columns: dict[str, NDArray[Any]] = {}
    if source is not None:
        at = int(np.flatnonzero(part.codes[:, 0] == codes[0])[0])
        columns["theta_omega_k"] = noise[at] - deviations[at] * (2 * mean + deviations[at])
        if other is not None:
            to = int(np.flatnonzero(part.codes[:, 0] == codes[1])[0])
            both = deviations[at] + deviations[to]
            columns["theta_gamma_kl"] = -(mean * both + deviations[at] * deviations[to])
    columns["theta_omega"] = noise.mean(axis=0) - (1 - 1 / k) * spread
    columns["theta_gamma"] = spread / k
    columns["theta_a"] = noise.sum(axis=0) / k**2
    columns["theta_b"] = 2 * columns["theta_a"]
    width = np.ones(len(mean), dtype=np.int64)
    sizes = {name: size.item() for name, size in size_range(points, part).items()}
    counts = {"n_points": int(round(points.sum())), "n_sources": k, **sizes}
    words = "; ".join(f"{name}: {BIASES[name]}" for name in columns)
    caution = np.where(np.isnan(mean), np.int64(Caution.NO_LOSSES), np.int64(0))
    if source is not None:
        caution[~np.isnan(mean)] |= np.int64(Caution.MEAN_DOMINATED)
    columns |= {name: number * width for name, number in counts.items()}
    return Result("source_estimators", columns, caution, {"bias": words})


def find_source(log: Log, name: Hashable) -> int:
    """Find the code of a source by its label."""
    labels = log.design.levels["source"].labels
    used = log.design.cell_table(("source",)).codes[:, 0].tolist()
    code = looked_up(name, {labels[code]: code for code in used})
    if code is None:
        names = [labels[code] for code in used]
        raise LogError(
            f"Unknown source {spelled(name)}. Expected one of "
            f"{listed(map(spelled, names))}.{nearest(name, names)}"
        )
    return code
