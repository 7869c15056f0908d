"""All estimators of the variance of a mean over sources: Table 1, (11) and (12)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.cells import mean_and_squares
from cvstats.core.results import Result
from cvstats.errors import LogError, listed, looked_up, nearest, spelled
from cvstats.intervals._groups import (
    average_sources,
    repeated_levels,
    size_range,
    squared_errors_of_sources,
)
from cvstats.intervals._method import LogMethod
from cvstats.intervals._references import GERAS
from cvstats.intervals._requirements import one_source_out
from cvstats.log.log import Log
from cvstats.options import Missing

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
    """Refuse a second source without a first one, or one source twice."""
    source, other = options["source"], options["other"]
    if source is None and other is not None:
        raise LogError("other names the second source of a pair. Expected source with it.")
    pair = [name for name in (source, other) if isinstance(name, Hashable)]
    if source is not None and len(pair) > len(set(pair)):
        raise LogError(f"source and other are both {source!r}. Expected two different sources.")


@LogMethod(
    check=check_pair,
    requires=one_source_out,
    needs="a log that leaves one source out at a time (level 'source'; no 'fold', or folds that "
    "are sources)",
    target="variance of the mean over these sources, from one data set to another",
    guarantee="none: each estimator has the bias that its name states",
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
    r"""All estimators of the variance of the mean over these sources, for study.

    The target is theta, the variance over data sets from the same K sources of the mean of the
    source means. It mixes the variance sigma_k^2 of a loss of source k, the covariance omega_k of
    two losses of it, and the covariance gamma_kl of losses of two sources. No estimator is
    unbiased for it whatever these are.

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
        If the log does not leave one source out at a time, a source has one point, or there
        is not a source of that name.

    See Also
    --------
    cvstats.out_of_source : The interval from two of these estimators.
    cvstats.source_components : The parts themselves, from several logs.
    cvstats.decompose : The same for folds.

    Notes
    -----
    With M_k the number of losses of source k,

    .. math::

        \theta = \frac{1}{K^2} \left[\sum_k \frac{\sigma_k^2}{M_k}
            + \sum_k \left(1 - \frac{1}{M_k}\right) \omega_k + \sum_{k \ne l} \gamma_{kl}\right] .

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
    # Estimate (7) in all ways of Geras and Sutton.
    #
    # Products of means are taken about the estimate: their differences would otherwise lose
    # digits.
    cells = log.moments(repeated_levels(log, "source"))
    codes = [None if name is None else find_source(log, name) for name in (source, other)]
    part, points = average_sources(cells)
    k = len(part.count)
    mean, squares = mean_and_squares(part.mean)
    apart, mean = part.mean - mean, part.origin + mean
    spread = squares / (k - 1)  # V_b
    noise = squared_errors_of_sources(cells)
    columns: dict[str, NDArray[Any]] = {}
    if source is not None:
        at = int(np.flatnonzero(part.codes[:, 0] == codes[0])[0])
        columns["theta_omega_k"] = noise[at] - apart[at] * (2 * mean + apart[at])
        if other is not None:
            to = int(np.flatnonzero(part.codes[:, 0] == codes[1])[0])
            both = apart[at] + apart[to]
            columns["theta_gamma_kl"] = -(mean * both + apart[at] * apart[to])
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
    used = log.design.codes_of(log.design.cell_table(("source",)))[:, 0].tolist()
    code = looked_up(name, {labels[code]: code for code in used})
    if code is None:
        names = [labels[code] for code in used]
        raise LogError(
            f"there is no source {spelled(name)}. Expected one of {listed(map(spelled, names))}."
            f"{nearest(name, names)}"
        )
    return code
