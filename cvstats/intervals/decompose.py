"""Variance components of the mean of a log: what can be estimated, and what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.folds import fold_level, fold_levels
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, is_several
from cvstats.intervals._groups import repeated_levels
from cvstats.intervals._independent_logs import (
    check_logs,
    decompose_logs,
    decompose_source_logs,
    moments_by_source,
    read_independent_logs,
)
from cvstats.intervals._method import LogMethod, apply_method
from cvstats.intervals._references import BENGIO
from cvstats.intervals._requirements import several_folds
from cvstats.intervals.out_of_source import out_of_source
from cvstats.intervals.quadratic import (
    BIASES,
    ESTIMATORS,
    average_columns,
    estimate_components,
    split_repetitions,
)
from cvstats.large.frames import later
from cvstats.log.groups import stack
from cvstats.log.log import Log, Losses, Table
from cvstats.log.read import is_dask_frame
from cvstats.log.stacking import Axis
from cvstats.options import Missing, check_numbers


def compute_components(
    log: Log,
    *,
    rho: float | None,
    gamma: float | None,
    independent: None,
    fold_weights: str,
) -> Result:
    """Average the estimates over the repetitions."""
    cells = log.moments(fold_levels(log.design))
    parts = [estimate_components(part, fold_weights) for part in split_repetitions(cells)]
    columns: dict[str, NDArray[Any]] = {**average_columns([part.to_columns() for part in parts])}
    caution = np.zeros(len(parts[0].mean), dtype=np.int64)
    if rho is not None or gamma is not None:
        spread = np.mean([part.spread for part in parts], axis=0)
        columns |= assume_gamma(columns, spread, rho, gamma)
        caution |= Caution.ASSUMED_GAMMA
    caution[np.isnan(parts[0].mean)] = Caution.NO_LOSSES
    size = np.ones(len(parts[0].mean), dtype=np.int64)
    columns |= {
        "n_points": parts[0].points * size,
        "n_folds": parts[0].folds * size,
        "n_repetitions": len(parts) * size,
    }
    words = "; ".join(f"{name}: {BIASES[name]}" for name in ESTIMATORS)
    return Result("decompose", columns, caution, {"fold_weights": fold_weights, "bias": words})


@LogMethod(
    requires=several_folds,
    needs="a K-fold partition with at least two folds, or several repetitions of it",
    target="components of the variance of one repetition's mean loss",
    guarantee="unbiased for the differences of components; the components themselves cannot be "
    "estimated from one log",
    fits="K for each repetition",
    reference=BENGIO,
    plan="repeated_k_fold",
    takes_metrics="averaged",
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
    r"""Estimate the variance components of a mean, as far as a log allows.

    Losses have variance sigma^2, covariance omega within a fold and gamma between folds. The
    target is the variance theta of the mean loss of one repetition, which mixes the three. One log
    determines ``sigma^2 - omega``, ``omega - gamma`` and ``theta - gamma`` without bias, and
    nothing more: adding the same random number to all losses changes theta and none of these
    differences. Several independent logs determine all of them.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with K >= 2 and at least two points in some fold; several
        repetitions are averaged.
    rho : float or sequence of floats, optional
        Assumed correlation of two fold means, 0 <= rho < 1: then gamma is
        ``rho / (1 - rho)`` times the variance of the fold means. ``1/K`` is the choice of
        Nadeau and Bengio. A sequence gives the curve of theta: a row, or dimension ``rho``.
    gamma : float, optional
        Assumed covariance of losses of different folds, in squared units of the loss.
    independent : str, optional
        A level whose labels separate logs of independent data sets of one design. The
        components are then estimated and not assumed.
    fold_weights : {"size", "equal"}, optional
        Whether theta is for the mean over points, or for the mean of the fold means.
    by : str, optional
        A level (or coordinate): one answer for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        A Series for one model, a row for each of several, or variables over the carried
        dimensions: ``sigma2_minus_omega``, ``omega_minus_gamma``, ``theta_minus_gamma``, the
        estimators ``theta_1`` to ``theta_5`` and ``theta_a`` (NaN where a fold holds one point),
        raw (they may be negative) and in squared units of the loss; with ``rho``, ``gamma`` or
        ``independent`` also ``sigma2``, ``omega``, ``gamma`` and ``theta``; with
        ``independent`` the three parts of theta, ``part_sigma2``, ``part_omega`` and
        ``part_gamma``; and ``caution``, except in a Series. ``n_points``, ``n_folds``,
        ``n_repetitions`` (of one log, their mean where logs differ) and, with ``independent``,
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
    cvstats.source_components : The same, source by source.
    cvstats.wald : An interval that needs no such assumption.

    Notes
    -----
    With v_k the weight of fold k and n_k the number of its points,

    .. math::

        \theta = H \sigma^2 + (S_2 - H)\, \omega + (1 - S_2)\, \gamma, \qquad
        S_2 = \sum_k v_k^2, \qquad H = \sum_k \frac{v_k^2}{n_k} .

    Repetitions on the same data are not independent logs, and averaging over them does
    not identify gamma.

    Where each of several independent logs leaves out the same sources one at a time, every
    source has its own sigma_k^2 and omega_k and every pair its gamma_kl: ``sigma2``, ``omega``
    and ``gamma`` are then their means, theta and its parts those of the weighted sum, and
    `source_components` gives each of them.

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

    How far theta depends on what is assumed:

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
        raise LogError("rho and gamma say the same in two ways. Expected one of them.")
    decompose.record.check_options({"fold_weights": fold_weights})
    if independent is not None:
        named = {"rho": rho, "gamma": gamma, "by": by}
        if (other := next((name for name in named if named[name] is not None), None)) is not None:
            raise LogError(
                f"independent and {other} were both given. Expected one of them: with several "
                f"logs nothing has to be assumed."
            )
        if is_dask_frame(losses):
            ask = partial(decompose, independent=independent, fold_weights=fold_weights)
            answer: Table = later(losses, ask, levels=(independent,), missing=missing)
            return answer
        return decompose_independent(losses, independent, fold_weights, missing)

    def run(log: Log) -> Result:
        parts = [
            decompose.record.run(
                log, rho=value, gamma=gamma, fold_weights=fold_weights, independent=None
            )
            for value in values
        ]
        return stack(parts)

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
        logs = [part.moments(repeated_levels(part, fold)) for part in groups.parts()]
        result = decompose_logs(logs, fold_weights)
    return groups.log.label(decompose.record.add_facts(result))


def read_rho(rho: object) -> tuple[list[float | None], Axis | None]:
    """Read one assumed correlation, or several, which then become rows."""
    if rho is None:
        return [None], None
    several = is_several(rho)
    check_numbers("rho", rho, several=several)
    values = [float(value) for value in np.atleast_1d(np.asarray(rho, dtype=np.float64))]
    if not values:
        raise LogError("rho is empty. Expected a correlation, or several.")
    for value in values:
        check_rho(value)
    return list(values), ("rho", values) if several else None


def check_rho(rho: float) -> None:
    """Refuse what is not a correlation of two fold means."""
    if not 0 <= rho < 1:
        raise LogError(f"rho={rho!r} is out of range. Expected a correlation, 0 <= rho < 1.")


def assume_gamma(
    found: dict[str, FloatArray], spread: FloatArray, rho: float | None, gamma: float | None
) -> dict[str, FloatArray]:
    """Give all components, once gamma (or its share rho of a fold mean's variance) is assumed.

    ``gamma = rho Var(m_k)`` and ``spread`` estimates ``Var(m_k) - gamma``, so that theta is
    ``spread (1/K + rho / (1 - rho))`` for equal folds, as in Nadeau and Bengio (2003).
    """
    if rho is not None:
        check_rho(rho)
    value = spread * rho / (1 - rho) if rho is not None else np.full_like(spread, gamma)
    omega = found["omega_minus_gamma"] + value
    return {
        "sigma2": found["sigma2_minus_omega"] + omega,
        "omega": omega,
        "gamma": value,
        "theta": found["theta_minus_gamma"] + value,
    }
