"""Do groups differ by more than their points explain? Cochran's Q and what follows from it.

Group g has the mean loss y_g with the squared standard error s_g^2. If the groups had one
common expected loss, Q = sum (y_g - y)^2 / s_g^2, about the mean y weighted by 1 / s_g^2, would
follow chi-squared with G - 1 degrees of freedom.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice, listed, spelled

__all__ = ["VARIANCES", "heterogeneity", "q_profile", "scatter"]

VARIANCES = ("own", "pooled")

STEPS = 200
"""Newton steps at most; each at least doubles a tau^2 that is far too small."""


def scatter(y: FloatArray, s2: FloatArray, tau2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute Q for groups that differ by ``tau2`` besides, and its negative slope in ``tau2``.

    ``y`` and ``s2`` have a row for each group, ``tau2`` a number for each column.
    """
    weight = 1 / (s2 + tau2)
    apart = y - y[0]
    apart = apart - (weight * apart).sum(axis=0) / weight.sum(axis=0)
    return (weight * apart**2).sum(axis=0), ((weight * apart) ** 2).sum(axis=0)


def q_profile(y: FloatArray, s2: FloatArray, level: float) -> FloatArray:
    """Find the tau^2 at which Q has the given value; 0 where it is below that from the start.

    Q falls with tau^2 and is convex, so that Newton's steps from 0 never go too far.
    """
    tau2 = np.zeros(y.shape[1])
    for _ in range(STEPS):
        q, slope = scatter(y, s2, tau2)
        step = np.divide(q - level, slope, out=np.zeros_like(q), where=(q > level) & (slope > 0))
        before, tau2 = tau2, tau2 + step
        if np.all((tau2 - before <= 1e-15 * tau2) | np.isnan(tau2)):
            break
    return tau2


def squared_errors(parts: list[Moments], variance: str) -> FloatArray:
    """Compute the squared standard error of each group's mean, averaged over repetitions."""
    checked_choice("variance", variance, VARIANCES)
    errors = []
    for part in parts:
        n = part.count[:, None]
        if variance == "pooled":
            spare = part.count.sum() - len(part.count)
            if spare < 1:
                raise LogError(
                    "every group has one point, so nothing tells points and groups apart. "
                    "Expected two points in some group."
                )
            errors.append(part.m2.sum(axis=0) / spare / n)
            continue
        lonely = np.flatnonzero(part.count < 2)
        if len(lonely):
            raise LogError(
                f"{part.levels[0]} {named(part, lonely.tolist())} has one point, which has no "
                f"variance. Leave these groups out, or pass variance='pooled', which takes the "
                f"points of all groups to vary alike."
            )
        errors.append(part.m2 / ((n - 1) * n))
    squared: FloatArray = np.mean(errors, axis=0)
    flat = np.flatnonzero((squared == 0).any(axis=1))
    if len(flat):
        words = (
            "or pass variance='pooled', which takes the points of all groups to vary alike"
            if variance == "own"
            else "or look at moments(losses): no group varies at all"
        )
        raise LogError(
            f"all losses of {parts[0].levels[0]} {named(parts[0], flat.tolist())} are the same "
            f"for some model, so their standard error is 0 and Cochran's Q has no value. Leave "
            f"these groups out, {words}."
        )
    return squared


def named(part: Moments, cells: list[int]) -> str:
    """Name the first of some groups."""
    return listed([spelled(part.labels[0][part.codes[cell, 0]]) for cell in cells])


def heterogeneity(moments: Moments, *, by: str, variance: str, alpha: float) -> Result:
    """Test and measure how groups differ; ``moments`` by group, or by repetition and group."""
    parts = moments.groups("repetition") if "repetition" in moments.levels else [moments]
    y = moments.over((by,)).mean
    s2 = squared_errors(parts, variance)
    groups, width = y.shape
    df = groups - 1
    q, _ = scatter(y, s2, np.zeros(width))
    w = 1 / s2
    # DerSimonian and Laird (1986): E Q = df + tau^2 (sum w - sum w^2 / sum w)
    raw = (q - df) / (w.sum(axis=0) - (w**2).sum(axis=0) / w.sum(axis=0))
    lower, upper = (  # Viechtbauer (2007): the tau^2 under which Q is no surprise
        np.sqrt(q_profile(y, s2, float(special.chdtri(df, tail))))
        for tail in (alpha / 2, 1 - alpha / 2)
    )
    columns: dict[str, NDArray[Any]] = {
        "q": q, "df": np.full(width, df), "p_value": special.chdtrc(df, q),
        "i2": 1 - df / np.maximum(q, df),
        "tau": np.sqrt(np.maximum(raw, 0.0)),
    }  # fmt: skip
    columns |= {"tau_lower": lower, "tau_upper": upper, "n_groups": np.full(width, groups)}
    caution = np.where(raw < 0, np.int64(Caution.CLAMPED), np.int64(0))
    missing = np.isnan(y).any(axis=0)
    caution[missing] = Caution.NO_LOSSES
    for name in ("i2", "tau_lower", "tau_upper"):
        columns[name] = np.where(missing, np.nan, columns[name])
    attrs: dict[str, str | float | int] = {"alpha": alpha, "by": by, "variance": variance}
    return Result("heterogeneity", columns, caution, attrs)
