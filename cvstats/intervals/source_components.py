"""Variances and covariances of losses, by source, from several independent logs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.design import LEVELS, Design
from cvstats.core.results import Result
from cvstats.core.types import IntArray
from cvstats.intervals._independent_logs import (
    by_source,
    check_logs,
    moments_by_source,
    read_independent_logs,
)
from cvstats.intervals._method import Comparison
from cvstats.intervals._references import GERAS
from cvstats.intervals._requirements import one_source_out
from cvstats.intervals.out_of_source import out_of_source
from cvstats.large.frames import later
from cvstats.log.groups import Groups
from cvstats.log.log import Losses, Table
from cvstats.log.read import is_dask_frame
from cvstats.log.stacking import label_stacked
from cvstats.options import Missing


def several_logs(design: Design) -> str | None:
    """Ask for a level besides those of one log, and for logs that leave sources out."""
    others = [name for name in design.levels if name not in LEVELS and design.number(name) > 1]
    if not others:
        return (
            "this is one log. Put several of independent data sets below each other, told apart "
            "by a level of their own: pandas.concat(logs, names=['dataset'])."
        )
    return one_source_out(design)


@Comparison(
    requires=several_logs,
    needs="two independent logs or more, each leaving out the same sources one at a time",
    target="variances and covariances of losses, by source",
    guarantee="unbiased for independent logs of one design",
    fits="one for each source and log",
    reference=GERAS,
    lazy=False,
    takes_metrics="averaged",
)
def source_components(
    losses: Losses, *, independent: str = "dataset", missing: Missing = "raise"
) -> Table:
    r"""Estimate variances and covariances of losses, by source, from several independent logs.

    Each log leaves out the same sources, one at a time, on a data set of its own. The target is
    the covariance of the losses: sigma_k^2 for a loss of source k, omega_k for two losses of it,
    and gamma_kl for a loss of source k and one of source l. All follow from the covariance of the
    sources' means over the logs, and from the variance of the losses within each source.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Logs that leave one source out at a time, below each other: two or more, with the same
        sources and two points or more in each.
    independent : str, optional
        The level (or coordinate) that separates the logs.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each (source, other) and model, or dimensions of these names: ``covariance`` of
        the two source means, ``sigma2`` and ``omega`` where the two are one source, ``gamma`` where
        they are not, raw and in squared units of the loss, and ``caution``. ``n_logs`` is in
        ``attrs``.

    Raises
    ------
    LogError
        If there is one log only, the level is one of repetitions, folds or points, a log does
        not leave one source out at a time, or the logs differ in their sources.

    See Also
    --------
    cvstats.source_estimators : What one log can say of their mean.
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

    Unbiased for independent logs of one design, whatever their number; K sources have K (K - 1)
    / 2 covariances, so that few logs estimate each of them badly. `decompose` with ``independent=``
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
    groups = read_independent_logs(losses, independent, missing)
    check_logs(
        out_of_source.record, groups,
        "source_components needs logs that leave one source out at a time",
    )  # fmt: skip
    result = estimate_by_source(groups)
    names = Groups(groups.log, "source").labels
    return label_stacked(groups.log, [("source", names), ("other", names)], result)


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
