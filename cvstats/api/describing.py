"""What a log holds: its cells, and the components of its variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cvstats.api.running import Losses, Missing, Table, folds_per_repetition, run_decompose
from cvstats.containers import read
from cvstats.errors import LogError, listed

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
        If a level is not in the log.

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
    log = read(losses, missing=missing)
    known = log.design.levels
    names = (by,) if isinstance(by, str) else tuple(by)
    if names == BY:
        fold = "fold" if "fold" in known or "source" not in known else "source"
        names = tuple(name for name in ("repetition", fold) if name in known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise LogError(
            f"the log has no level {unknown[0]!r}. Expected some of its levels: "
            f"{listed(map(repr, known)) or 'none'}."
        )
    found = log.moments(names)
    return log.labels.cells(found, {"method": "moments", **log.attrs})


def decompose(
    losses: Losses,
    *,
    rho: float | None = None,
    gamma: float | None = None,
    missing: Missing = "raise",
) -> Table:
    """Estimate what one log can tell of the variance components of its mean.

    Losses have variance sigma^2, covariance omega within a fold and gamma between folds. The
    target is the variance theta of the mean loss of one repetition. One log determines
    ``sigma^2 - omega``, ``omega - gamma`` and ``theta - gamma`` without bias, and nothing
    more: adding the same random number to all losses changes theta and no difference.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A K-fold partition with K >= 2 and at least two points in some fold; several
        repetitions are averaged.
    rho : float, optional
        Assumed correlation of two fold means, 0 <= rho < 1: then gamma is
        ``rho / (1 - rho)`` times the variance of the fold means. ``1/K`` is the choice of
        Nadeau and Bengio.
    gamma : float, optional
        Assumed covariance of losses of different folds, in squared units of the loss.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    Series, DataFrame or Dataset
        ``sigma2_minus_omega``, ``omega_minus_gamma``, ``theta_minus_gamma``, the estimators
        ``theta_1`` to ``theta_5`` and ``theta_a`` (NaN where a fold holds one point), raw (they
        may be negative) and in squared units of the loss; with ``rho`` or ``gamma`` also
        ``sigma2``, ``omega``, ``gamma`` and ``theta``, which rest on the assumption;
        ``n_points``, ``n_folds``, ``n_repetitions`` and ``caution``.

    Raises
    ------
    LogError
        If the log has fewer than two folds, folds of one point only, or is no partition; if
        both ``rho`` and ``gamma`` are given, or ``rho`` is out of range.

    Notes
    -----
    Repetitions on the same data are not independent logs, and averaging over them brings
    nobody nearer to gamma.

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
    """
    log = read(losses, missing=missing)
    return log.label(run_decompose(log, rho=rho, gamma=gamma))


def understood(losses: Losses) -> str:
    """Say in one line what was understood of a log, or why it is none; never an error."""
    try:
        log = read(losses)
    except LogError as error:
        return f"<cvci: {error}>"
    design = log.design
    points = design.splits().points
    parts = [f"{points:,} points" if points is not None else f"{design.size:,} losses"]
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
    return f"<cvci: {', '.join(parts)}>"
