"""What a log holds: its cells, and the components of its variance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from cvstats.api.answering import answered
from cvstats.api.options import checked_words
from cvstats.api.running import (
    Losses,
    Missing,
    Table,
    by_fold,
    checked_numbers,
    folds_per_repetition,
)
from cvstats.api.running_sources import independent_logs, run_independent
from cvstats.containers import (
    Axis,
    Log,
    dask,
    is_dask_frame,
    is_lazy,
    later,
    lazy_table,
    read,
    stack,
)
from cvstats.core.result import Result
from cvstats.errors import LogError, is_several, listed, nearest
from cvstats.intervals import quadratic
from cvstats.intervals.registry import require
from cvstats.intervals.unused import renaming, unused

__all__ = ["decompose", "moments"]

BY = ("repetition", "fold")


def moments(losses: Losses, *, by: str | Sequence[str] = BY, missing: Missing = "raise") -> Any:
    """Count, mean and variance of the losses in each cell of a log.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Any loss log.
    by : str or sequence of str, optional
        The levels (or other index levels and coordinates) whose labels tell cells apart. The
        default, repetition and fold, takes whichever of them the log has, and ``source``
        where it has no fold.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``count``, ``mean`` (unit of the loss) and ``var`` (its square; sample variance with
        n - 1, NaN for a single loss), a row for each cell; with several models the first
        index level names the model. For xarray, variables over the levels and the carried
        dimensions.

    Raises
    ------
    LogError
        If a level is not in the log, or an evaluation has no label (NaN) of it.

    Notes
    -----
    Computed in one pass about a mean of each cell, so that a large common offset of the
    losses costs no digits.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> losses.cvci.moments(by="fold").head(2).round(4)
          count   mean     var
    fold
    0      2000  0.175  0.0482
    1      2000  0.171  0.0486
    """
    if is_dask_frame(losses):
        more = () if by == BY else (by,) if isinstance(by, str) else tuple(by)
        return later(losses, partial(moments, by=by), levels=more, missing=missing)
    log = read(losses, missing=missing)
    known = log.design.levels
    names = names_of(by)
    if all(isinstance(name, str) for name in names) and names == BY:
        fold = "fold" if "fold" in known or "source" not in known else "source"
        names = tuple(name for name in ("repetition", fold) if name in known)
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown:
        raise LogError(
            f"the log has no level {unknown[0]!r}. Expected some of its levels: "
            f"{listed(map(repr, known)) or 'none'}.{nearest(unknown[0], known)}"
        )
    if is_lazy(log):
        return lazy_table(log, names)
    log.design.check_labels(names)
    found = log.moments(names)
    return log.labels.cells(found, {"method": "moments", **log.attrs})


def names_of(by: Any) -> tuple[Any, ...]:
    """List the levels asked for, one or several."""
    one = isinstance(by, str) or not isinstance(by, Iterable) or getattr(by, "ndim", 1) == 0
    return (by,) if one else tuple(by)


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
    """Estimate what a log can tell of the variance components of its mean.

    Losses have variance sigma^2, covariance omega within a fold and gamma between folds. The
    target is the variance theta of the mean loss of one repetition, ``theta = H sigma^2 +
    (S2 - H) omega + (1 - S2) gamma`` with fold weights v_k, ``S2 = sum v_k^2`` and ``H = sum
    v_k^2 / n_k``. One log determines ``sigma^2 - omega``, ``omega - gamma`` and ``theta -
    gamma`` without bias, and nothing more: adding the same random number to all losses changes
    theta and no difference. Several independent logs determine all.

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
        A level whose labels tell apart logs of independent data sets of one design. The
        components are then estimated and not assumed.
    fold_weights : {"size", "equal"}, optional
        Whether theta is for the mean over points, or for the mean of the fold means.
    by : str, optional
        A level (or coordinate) for each of whose labels to give an answer of its own.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``sigma2_minus_omega``, ``omega_minus_gamma``, ``theta_minus_gamma``, the estimators
        ``theta_1`` to ``theta_5`` and ``theta_a`` (NaN where a fold holds one point), raw (they
        may be negative) and in squared units of the loss; with ``rho``, ``gamma`` or
        ``independent`` also ``sigma2``, ``omega``, ``gamma`` and ``theta``; with
        ``independent`` the three parts of theta, ``part_sigma2``, ``part_omega`` and
        ``part_gamma``, and ``n_logs``; ``n_points``, ``n_folds``, ``n_repetitions`` (of one
        log, their mean where logs differ) and ``caution``. ``attrs["bias"]`` gives the bias of
        each estimator.

    Raises
    ------
    LogError
        If the log has fewer than two folds, folds of one point only, or is no partition; if
        more than one of ``rho``, ``gamma`` and ``independent`` is given, or ``rho`` is out of
        range; if ``independent`` names repetitions or folds, or a level with one label.

    Notes
    -----
    Repetitions on the same data are not independent logs, and averaging over them brings
    nobody nearer to gamma.

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
    values, axis = assumed_rho(rho)
    if gamma is not None:
        checked_numbers("gamma", gamma)
    if rho is not None and gamma is not None:
        raise LogError("rho and gamma say the same in two ways. Expected one of them.")
    checked_words("decompose", {"fold_weights": fold_weights})
    if independent is not None:
        named = {"rho": rho, "gamma": gamma, "by": by}
        if (other := next((name for name in named if named[name] is not None), None)) is not None:
            raise LogError(
                f"independent and {other} were both given. Expected one of them: several logs "
                f"tell what one log has to assume."
            )
        if is_dask_frame(losses):
            ask = partial(decompose, independent=independent, fold_weights=fold_weights)
            answer: Table = later(losses, ask, levels=(independent,), missing=missing)
            return answer
        groups = independent_logs(losses, independent, missing)
        return groups.log.label(run_independent(groups, fold_weights))

    def run(log: Log) -> Result:
        require("decompose", log.design)
        found = log.moments(by_fold(log))
        return stack(
            [
                quadratic.decompose(found, rho=value, gamma=gamma, fold_weights=fold_weights)
                for value in values
            ]
        )

    return answered(losses, run, by=by, missing=missing, axis=axis)


def assumed_rho(rho: object) -> tuple[list[float | None], Axis | None]:
    """Read one assumed correlation, or several, which then become rows."""
    if rho is None:
        return [None], None
    several = is_several(rho)
    checked_numbers("rho", rho, several=several)
    values = [float(value) for value in np.atleast_1d(np.asarray(rho, dtype=np.float64))]
    if not values:
        raise LogError("rho is empty. Expected a correlation, or several.")
    for value in values:
        quadratic.checked_rho(value)
    return list(values), ("rho", values) if several else None


def understood(losses: Losses) -> str:
    """Say in one line what was understood of a log, or why it is none; never an error."""
    if is_dask_frame(losses):
        return f"<cvci: {dask.describe(losses)}>"
    try:
        log = read(losses)
    except LogError as error:
        return f"<cvci: {error}>"
    design = log.design
    points = design.splits().points
    parts = [
        f"{points:,} points" if points is not None else f"{design.splits().rows.sum():,} losses"
    ]
    fold = folds_per_repetition(log)
    counts = {
        "repetition": design.number("repetition"),
        "fold": fold,
        "source": design.number("source"),
        "model": len(log.labels.models),
    }
    parts += [
        f"{number:,} {name}{'s' if number > 1 else ''}"
        for name, number in counts.items()
        if number > 1 or name == "model"
    ]
    guesses = [
        f"; level {name!r} is not used, and may name the {level}s: {renaming(design, name, level)}"
        for name, level in unused(design).items()
    ]
    return f"<cvci: {', '.join(parts)}{''.join(guesses)}>"
