"""Limits on another scale: those of the transformed estimate, transformed back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.result import Result, half_widths
from cvstats.errors import LogError

__all__ = ["SCALES", "rescale_limits"]

SCALES = ("identity", "logit", "log", "fisher-z")

RANGES = {
    "logit": (0.0, 1.0, "between 0 and 1"),
    "log": (0.0, np.inf, "above 0"),
    "fisher-z": (-1.0, 1.0, "between -1 and 1"),
}
"""The ends of each scale, in words too."""

ROUNDING = 1e-12
"""How far an estimate may lie outside its range."""


def rescale_limits(result: Result, scale: str) -> Result:
    """Put the limits of an interval where they are symmetric on another scale.

    With an estimate e and its standard error s the limits are those of logit(e) with the standard
    error s / (e (1 - e)), of log(e) with s / e, or of atanh(e) with s / (1 - e^2). At the end of
    the scale there are none.

    Raises
    ------
    LogError
        If an estimate lies outside the scale.
    """
    if scale == "identity":
        return result
    estimate, se = result.columns["estimate"], result.columns["se"]
    bottom, top, expected = RANGES[scale]
    outside = (estimate < bottom - ROUNDING) | (estimate > top + ROUNDING)
    if outside.any():
        worst = float(estimate[outside][0])
        raise LogError(
            f"scale={scale!r} is for means {expected}, and an estimate is {worst:.6g}. Expected "
            f"such a loss or metric. Use scale='identity'."
        )
    inside = (estimate > bottom + ROUNDING) & (estimate < top - ROUNDING)
    e = np.where(inside, estimate, 0.5)
    down, up = half_widths(
        str(result.attrs["alternative"]), float(result.attrs["alpha"]),
        float(result.columns["df"].flat[0]) if "df" in result.columns else None,
    )  # fmt: skip
    forth, back, slope = {
        "logit": (special.logit, special.expit, e * (1 - e)),
        "log": (np.log, np.exp, e),
        "fisher-z": (np.arctanh, np.tanh, 1 - e**2),
    }[scale]
    columns = dict(result.columns)
    for side, reach in (("lower", -down), ("upper", up)):
        limit = back(forth(e) + reach * se / slope)
        columns[side] = np.where(inside & np.isfinite(se), limit, np.nan)
    caution = result.caution.copy()
    caution[~inside & ~np.isnan(estimate)] |= np.int64(Caution.END_OF_SCALE)
    return replace(result, columns=columns, caution=caution, attrs={**result.attrs, "scale": scale})
