"""Variance components of the mean of a log: which can be estimated, and which cannot.

One log cannot show how strongly all of its losses vary together. The means of logs of independent
data sets can: their sample variance is unbiased for theta, and together with sigma^2 - omega and
omega - gamma, which a single log can estimate, it determines each component.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells, mean_and_squares
from cvstats.core.design import LEVELS, Design
from cvstats.core.folds import fold_level, fold_levels, repetition_level
from cvstats.core.results import Result, make_result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_level, is_several, listed, looked_up, nearest, spelled
from cvstats.intervals._method import BENGIO, GERAS, Comparison, LogMethod, Method, apply_method
from cvstats.intervals._requirements import one_source_out, several_folds
from cvstats.intervals.out_of_source import (
    average_sources,
    out_of_source,
    size_range,
    squared_errors_of_sources,
)
from cvstats.intervals.quadratic import (
    BIASES,
    ESTIMATORS,
    Components,
    estimate_components,
    find_single_points,
)
from cvstats.large.frames import delay_answer
from cvstats.log.groups import Groups
from cvstats.log.log import Axis, Log, Losses, Table
from cvstats.log.read import is_dask_frame, read
from cvstats.options import Missing, check_numbers


def compute_components(
    log: Log,
    *,
    rho: Sequence[float | None],
    gamma: float | None,
    independent: None,
    fold_weights: str,
) -> Result:
    """Average the estimates over the repetitions; one row per assumed ``rho``."""
    cells = log.moments(fold_levels(log.design))
    repeated = repetition_level(log.design)
    part, splits = estimate_components(cells.within(repeated), fold_weights), cells.over(repeated)
    found: dict[str, Any] = {}
    for name, values in part.to_columns().items():  # by group, rho, column
        found[name] = splits.average(values)[:, None].repeat(len(rho), axis=1)
    caution = Caution(0)
    if rho[0] is not None or gamma is not None:
        found |= assume_gamma(found, splits.average(part.spread)[:, None], rho, gamma)
        caution = Caution.ASSUMED_GAMMA
    found["n_points"] = splits.first(part.points)[:, None]
    found["n_folds"] = splits.first(part.folds)[:, None]
    found["n_repetitions"] = splits.n_cells[:, None]
    words = "; ".join(f"{name}: {BIASES[name]}" for name in ESTIMATORS)
    return make_result("decompose", found, caution, {"fold_weights": fold_weights, "bias": words})


@LogMethod(
    requires=several_folds,
    of_losses=find_single_points,
    needs="one or more K-fold partitions with at least two folds",
    target="components of the variance of one repetition's mean loss",
    guarantee="unbiased for the differences of components; the components themselves cannot be "
    "estimated from one log",
    fits="K for each repetition",
    reference=BENGIO,
    plan="repeated_k_fold",
    takes_metrics="averaged",
    groups_at_once=True,
).computed_by(compute_components)
def decompose(
    losses: Losses,
    *,
    rho: float | Sequence[float] | None = None,
    gamma: float | None = None,
    independent: str | None = None,
    fold_weights: Literal["size", "equal"] = "size",
    by: str | None = None,
    missing: Missing = "raise",
) -> Table:
    r"""Estimate the components of the variance of a cross-validated mean.

    Losses have variance sigma^2, covariance omega within a fold and covariance gamma between folds.
    The target is the variance theta of the mean loss of one repetition, which depends on all three.
    From one log, only ``sigma^2 - omega``, ``omega - gamma`` and ``theta - gamma`` can be estimated
    without bias. (Adding the same random number to all losses changes theta but none of these
    differences.) With several independent logs, all components can be estimated.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with K >= 2 and at least two points in some fold; several
        repetitions are averaged.
    rho : float or sequence of floats, optional
        Assumed correlation of two fold means, 0 <= rho < 1: then gamma is
        ``rho / (1 - rho)`` times the variance of the fold means. ``1/K`` is the choice of
        Nadeau and Bengio. A sequence gives theta as a function of rho: one row per value, or a
        dimension ``rho``.
    gamma : float, optional
        Assumed covariance of losses of different folds, in squared units of the loss.
    independent : str, optional
        A level whose labels distinguish logs of independent data sets with the same design. The
        components are then estimated instead of assumed.
    fold_weights : {"size", "equal"}, optional
        Whether theta is the variance of the mean over points, or of the mean of the fold means.
    by : str, optional
        A level (or coordinate): one result for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        A Series for one model, a row for each of several, or variables over the carried
        dimensions: ``sigma2_minus_omega``, ``omega_minus_gamma``, ``theta_minus_gamma``, the
        estimators ``theta_1`` to ``theta_5`` and ``theta_a`` (NaN if a fold has one point),
        raw (they may be negative) and in squared units of the loss; with ``rho``, ``gamma`` or
        ``independent`` also ``sigma2``, ``omega``, ``gamma`` and ``theta``; with
        ``independent`` the three parts of theta, ``part_sigma2``, ``part_omega`` and
        ``part_gamma``; and ``caution``, except in a Series. ``n_points``, ``n_folds``,
        ``n_repetitions`` (of one log, or their mean if logs differ) and, with ``independent``,
        ``n_logs`` are in ``attrs``. ``attrs["bias"]`` gives the bias of each estimator from one
        log.

    Raises
    ------
    LogError
        If the log has fewer than two folds, folds of one point only, or is not a partition; if
        more than one of ``rho``, ``gamma`` and ``independent`` is given, or ``rho`` is out of
        range; if ``independent`` names repetitions or folds, or a level with one label.

    See Also
    --------
    cvstats.quadratic : Intervals under an assumption about the components.
    cvstats.source_components : The same for each source.
    cvstats.wald : An interval without such an assumption.

    Notes
    -----
    With v_k the weight of fold k and n_k the number of its points,

    .. math::

        \theta = H \sigma^2 + (S_2 - H)\, \omega + (1 - S_2)\, \gamma, \qquad
        S_2 = \sum_k v_k^2, \qquad H = \sum_k \frac{v_k^2}{n_k} .

    Repetitions on the same data are not independent logs, so gamma cannot be estimated from them.

    If each of several independent logs leaves out the same sources one at a time, every source has
    its own sigma_k^2 and omega_k and every pair its gamma_kl. Then ``sigma2``, ``omega`` and
    ``gamma`` are their means, theta and its parts refer to the weighted sum, and
    `source_components` returns each of them.

    References
    ----------
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.
    Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300.
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> parts = losses.cvci.decompose(rho=0.1)
    >>> parts[["sigma2_minus_omega", "omega_minus_gamma", "theta"]].astype(float).round(0)
    sigma2_minus_omega    15381196.0
    omega_minus_gamma        49839.0
    theta                    83950.0
    Name: ridge, dtype: float64

    How theta depends on the assumed correlation:

    >>> losses.cvci.decompose(rho=[0, 0.1, 0.3])["theta"].round(0)
    rho
    0.0     39783.0
    0.1     83950.0
    0.3    210140.0
    Name: theta, dtype: float64
    """
    values, axis = read_rho(rho)
    if gamma is not None:
        check_numbers("gamma", gamma)
    if rho is not None and gamma is not None:
        raise LogError(
            "rho and gamma are two ways to specify the same quantity. Expected only one of them."
        )
    decompose.record.check_options({"fold_weights": fold_weights})
    if independent is not None:
        named = {"rho": rho, "gamma": gamma, "by": by}
        if (other := next((name for name in named if named[name] is not None), None)) is not None:
            raise LogError(
                f"independent and {other} were both given. Pass only one of them: with several "
                "logs no assumption is needed."
            )
        if is_dask_frame(losses):
            ask = partial(decompose, independent=independent, fold_weights=fold_weights)
            answer: Table = delay_answer(losses, ask, levels=(independent,), missing=missing)
            return answer
        return decompose_independent(losses, independent, fold_weights, missing)

    run = partial(decompose.record.run, rho=values, gamma=gamma, fold_weights=fold_weights)
    return apply_method(losses, run, by=by, missing=missing, axis=axis)


def decompose_independent(
    losses: Losses, independent: str, fold_weights: str, missing: str
) -> Table:
    """Estimate all components from logs of independent data sets."""
    groups = read_independent_logs(losses, independent, missing)
    check_logs(
        decompose.record,
        groups,
        f"decompose needs {decompose.record.needs} in each independent log",
    )
    if all(out_of_source.record.problem(part.design) is None for part in groups.parts()):
        result = decompose_source_logs(moments_by_source(groups), fold_weights)
    else:
        fold = fold_level(groups.design) or "source"
        logs = [part.moments((*repetition_level(part.design), fold)) for part in groups.parts()]
        result = decompose_logs(logs, fold_weights)
    attrs = {**decompose.record.facts, **result.attrs}
    return groups.log.label(replace(result, attrs=attrs))


def read_rho(rho: object) -> tuple[list[float | None], Axis | None]:
    """Read one assumed correlation, or several, one per row."""
    if rho is None:
        return [None], None
    several = is_several(rho)
    check_numbers("rho", rho, several=several)
    values = [float(value) for value in np.atleast_1d(np.asarray(rho, dtype=np.float64))]
    if not values:
        raise LogError("rho is empty. Expected at least one correlation.")
    for value in values:
        if not 0 <= value < 1:
            raise LogError(f"rho={value!r} is out of range. Expected a correlation, 0 <= rho < 1.")
    return list(values), ("rho", values) if several else None


def assume_gamma(
    found: dict[str, NDArray[Any]],
    spread: FloatArray,
    rho: Sequence[float | None],
    gamma: float | None,
) -> dict[str, NDArray[Any]]:
    """Compute all components from an assumed gamma (or its share rho of a fold mean's variance).

    ``gamma = rho Var(m_k)`` and ``spread`` estimates ``Var(m_k) - gamma``, so that theta is
    ``spread (1/K + rho / (1 - rho))`` for equal folds, as in Nadeau and Bengio (2003).
    """
    value = np.full_like(spread, gamma)
    if gamma is None:
        share = np.array(rho, dtype=np.float64)[:, None]
        value = spread * share / (1 - share)
    omega = found["omega_minus_gamma"] + value
    return {
        "sigma2": found["sigma2_minus_omega"] + omega,
        "omega": omega,
        "gamma": value,
        "theta": found["theta_minus_gamma"] + value,
    }


def read_independent_logs(losses: object, name: str, missing: str) -> Groups:
    """Read stacked independent logs, distinguished by a level."""
    checked_level("independent", name)
    if name == "repetition":
        raise LogError(
            "independent='repetition': repetitions split the same data again, so they are not "
            "independent logs and are not informative about gamma. Expected a level that "
            "identifies separate data sets, as in independent='dataset'. If each repetition "
            "drew new data, rename the level: log.rename_axis(index={'repetition': 'dataset'})."
        )
    if name in LEVELS:
        raise LogError(
            f"independent={name!r}: the labels of {name!r} are parts of one experiment on one "
            "data set, so they are not independent logs. Expected a level that identifies "
            "separate data sets, as in independent='dataset'."
        )
    groups = Groups(read(losses, missing=missing, by=name), name)
    if len(groups.labels) < 2:
        raise LogError(
            f"level {name!r} has one label, {spelled(groups.labels[0])}: a single log cannot "
            "show its own variance. Expected at least two data sets, drawn independently."
        )
    return groups


def check_logs(method: Method, groups: Groups, needs: str) -> None:
    """Reject logs if the method does not apply to one of them."""
    for label, part in zip(groups.labels, groups.parts(), strict=True):
        words = method.problem(part.design)
        if words is not None:
            raise LogError(f"{needs}; {groups.name}={spelled(label)}: {words}")


def moments_by_source(groups: Groups) -> Cells:
    """Compute the moments of each source in each log."""
    if groups.design.has("repetition"):
        raise LogError(
            f"the leave-one-source-out logs have {groups.design.number('repetition'):,} "
            f"repetitions. Expected one in each log: {groups.design.take('repetition')}."
        )
    return groups.log.moments((groups.name, "source"))


def sample_variance(values: FloatArray) -> FloatArray:
    """Sample variance along the first axis."""
    return mean_and_squares(values)[1] / (len(values) - 1)


def variance_of_one(means: Sequence[FloatArray]) -> FloatArray:
    """Estimate the variance of a single repetition's mean, without bias.

    ``means`` has for each log an array (repetitions, columns). The variance of the mean over the
    r_d repetitions of log d is the part shared by its repetitions plus 1/r_d of the rest.
    """
    theta = sample_variance(np.stack([mean_and_squares(part)[0] for part in means]))
    spare = sum(len(part) - 1 for part in means)
    if spare:
        alone = sum(sample_variance(part) * (len(part) - 1) for part in means if len(part) > 1)
        theta = theta + alone / spare * (1 - float(np.mean([1 / len(part) for part in means])))
    return theta


def decompose_logs(logs: Sequence[Cells], fold_weights: str) -> Result:
    """Estimate sigma^2, omega, gamma and theta from independent logs of the same design.

    Each log has cells by fold, or by repetition and fold. If fold sizes differ between the logs,
    theta is the mean of their variances, and H and S2 are means too.
    """
    logs = [found.shift_origin(logs[0].origin) for found in logs]
    parts = [
        estimate_components(
            found.within([name for name in found.levels if name == "repetition"]), fold_weights
        )
        for found in logs
    ]
    found = average_logs(parts)
    theta = variance_of_one([part.mean for part in parts])
    h, s2 = (
        float(np.concatenate(each).mean())
        for each in zip(*((part.h, part.s2) for part in parts), strict=True)
    )
    within, between = found["sigma2_minus_omega"], found["omega_minus_gamma"]
    gamma = theta - h * within - s2 * between  # theta = gamma + S2 (omega - gamma) + H (…)
    omega = gamma + between
    sigma2 = omega + within
    columns: dict[str, NDArray[Any]] = {
        **found, "sigma2": sigma2, "omega": omega, "gamma": gamma, "theta": theta,
        "part_sigma2": h * sigma2, "part_omega": (s2 - h) * omega, "part_gamma": (1 - s2) * gamma,
    }  # fmt: skip
    return add_counts(columns, parts, fold_weights)


def average_logs(parts: Sequence[Components]) -> dict[str, FloatArray]:
    """Average estimates over the repetitions of each log, and then over logs."""
    each = [part.to_columns() for part in parts]
    return {name: np.mean([found[name].mean(axis=0) for found in each], axis=0) for name in each[0]}


def add_counts(
    columns: Mapping[str, FloatArray], parts: Sequence[Components], fold_weights: str
) -> Result:
    """Append the counts of one log, or their mean if the logs differ."""
    counts = {
        "n_points": [part.points[0, 0] for part in parts],
        "n_folds": [part.folds[0, 0] for part in parts],
        "n_repetitions": [len(part.points) for part in parts],
    }
    found: dict[str, Any] = dict(columns)
    for name, numbers in counts.items():
        one = float(np.mean(numbers))
        found[name] = int(one) if one == int(one) else one
    attrs = {
        "fold_weights": fold_weights,
        "guarantee": "unbiased for independent logs of the same design",
    }
    return make_result("decompose", found | {"n_logs": len(parts)}, attrs=attrs)


@dataclass(frozen=True, eq=False)
class BySource:
    """Components of the mean over sources, with separate components for each source.

    The last axis of all tables is the columns of the losses; ``covariance`` and ``gamma`` are
    tables by pairs of sources, ``sigma2`` and ``omega`` by source. ``size`` is the mean of M_k over
    the logs, ``inverse`` that of 1 / M_k.
    """

    covariance: FloatArray
    sigma2: FloatArray
    omega: FloatArray
    size: FloatArray
    inverse: FloatArray
    logs: int


def by_source(found: Cells) -> BySource:
    """Estimate sigma_k^2, omega_k and gamma_kl from independent logs of the same sources.

    ``found`` has a cell for each log and source, with levels in this order.
    """
    r, k = (len(np.unique(found.codes[:, i])) for i in range(2))
    if len(found.count) < r * k:
        raise absent(found)
    alone = found.count < 2
    if alone.any():
        at = int(np.flatnonzero(alone)[0])
        raise LogError(
            f"{found.levels[1]} {name_of(found, 1, at)} has one point in {found.levels[0]} "
            f"{name_of(found, 0, at)}, so sigma^2 cannot be separated from omega. Expected at "
            "least two points per source in each log."
        )
    shape = (r, k, found.mean.shape[1])
    mean, m2 = found.mean.reshape(shape), found.m2.reshape(shape)
    count = found.count.reshape(r, k)
    deviations = mean - mean[0]  # exactly 0 if the logs are equal
    deviations -= deviations.mean(axis=0)
    covariance = np.einsum("rkw,rlw->klw", deviations, deviations) / (r - 1)
    within = (m2 / (count - 1)[:, :, None]).mean(axis=0)
    inverse = (1 / count).mean(axis=0)
    # E Var(m_k) = omega_k + (sigma_k^2 - omega_k) E(1 / M_k)
    omega = np.einsum("kkw->kw", covariance) - inverse[:, None] * within
    return BySource(covariance, omega + within, omega, count.mean(axis=0), inverse, r)


def name_of(found: Cells, level: int, cell: int) -> str:
    """Format the label of a cell on one level."""
    return spelled(found.labels[level][found.codes[cell, level]])


def absent(found: Cells) -> LogError:
    """List the sources missing from some log."""
    logs, sources = (np.unique(found.codes[:, i]) for i in range(2))
    there = set(map(tuple, found.codes.tolist()))
    lost = [(a, b) for a in logs.tolist() for b in sources.tolist() if (a, b) not in there]
    words = [
        f"{found.levels[0]}={spelled(found.labels[0][a])} has no {found.levels[1]} "
        f"{spelled(found.labels[1][b])}"
        for a, b in lost
    ]
    return LogError(
        f"the independent logs do not have the same sources: {listed(words)}. Expected each "
        "source in each log. Keep the sources common to all logs; if each log has different "
        f"sources, treat them as folds: log.rename_axis(index={{'source': 'fold'}})."
    )


def decompose_source_logs(found: Cells, fold_weights: str) -> Result:
    """Estimate the components from leave-one-source-out logs: (7), with any weights.

    ``sigma2``, ``omega`` and ``gamma`` are means over sources, and over pairs of them.
    """
    parts = [estimate_components(part, fold_weights) for part in found.groups(found.levels[0])]
    each = by_source(found)
    k = len(each.size)
    v = each.size / each.size.sum() if fold_weights == "size" else np.full(k, 1 / k)
    theta = np.einsum("k,klw,l->w", v, each.covariance, v)
    total = each.covariance.sum(axis=(0, 1)) - np.einsum("kkw->w", each.covariance)
    sigma = (v**2 * each.inverse) @ each.sigma2
    omega = (v**2 * (1 - each.inverse)) @ each.omega
    own = np.einsum("k,kkw->w", v**2, each.covariance)
    columns: dict[str, NDArray[Any]] = {
        **average_logs(parts),
        "sigma2": each.sigma2.mean(axis=0), "omega": each.omega.mean(axis=0),
        "gamma": total / (k * (k - 1)), "theta": theta,
        "part_sigma2": sigma, "part_omega": omega, "part_gamma": theta - own,
    }  # fmt: skip
    return add_counts(columns, parts, fold_weights)


# --- variances by source --------------------------------------------------------------------------


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
    each = by_source(moments_by_source(groups))
    own = np.eye(len(each.omega), dtype=bool)[:, :, None]  # pairs of a source with itself
    columns = {
        "covariance": each.covariance,
        "sigma2": np.where(own, each.sigma2, np.nan), "omega": np.where(own, each.omega, np.nan),
        "gamma": np.where(own, np.nan, each.covariance), "n_logs": each.logs,
    }  # fmt: skip
    result = make_result("source_components", columns, attrs=source_components.record.facts)
    names = Groups(groups.log, "source").labels
    return groups.log.label(result, [("source", names), ("other", names)])


BIASES_OF_SOURCES = {
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
    needs="a log that leaves one source out at a time (level 'source', and either no level 'fold' "
    "or one source in each fold)",
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
    cells = log.moments((*repetition_level(log.design), "source"))
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
    sizes = {name: size.item() for name, size in size_range(points, part).items()}
    counts = {"n_points": int(round(points.sum())), "n_sources": k, **sizes}
    words = "; ".join(f"{name}: {BIASES_OF_SOURCES[name]}" for name in columns)
    caution = Caution(0) if source is None else Caution.MEAN_DOMINATED
    return make_result("source_estimators", columns | counts, caution, {"bias": words})


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
