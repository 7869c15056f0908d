"""Intervals from test sets of their own: holdout."""

from __future__ import annotations

import numpy as np
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval, quantile
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice

__all__ = ["HOLDOUT", "holdout"]

HOLDOUT = ("wald", "t", "wilson", "clopper-pearson")


def holdout(moments: Moments, *, kind: str, alpha: float, n_repetitions: int) -> Result:
    """Interval from one merged cell: the losses of one test set.

    ``wilson`` and ``clopper-pearson`` take the losses to be 0 or 1; the caller has looked.
    """
    checked_choice("interval", kind, HOLDOUT)
    n = moments.count[0]
    if n < 2:
        raise LogError(f"holdout needs at least two points and this log has {n:.0f}.")
    df = n - 1 if kind == "t" else None
    extra: dict[str, FloatArray | float] = {} if df is None else {"df": df}
    extra |= {"n_points": int(n), "n_repetitions": n_repetitions}
    result = interval(
        "holdout", moments.mean[0], moments.m2[0] / ((n - 1) * n), alpha=alpha, df=df,
        extra=extra, attrs={"interval": kind},
        caution=Caution.FEW_POINTS if n < 30 and kind == "wald" else 0,
    )  # fmt: skip
    if kind in ("wald", "t"):
        return result
    limits = wilson if kind == "wilson" else clopper_pearson
    lower, upper = limits(moments.mean[0], n, alpha)
    # Both intervals have a width even where no loss, or every loss, is 1.
    caution = result.caution & ~np.int64(Caution.ZERO_VARIANCE)
    columns = {**result.columns, "lower": lower, "upper": upper}
    return Result(result.method, columns, caution, result.attrs)


def wilson(share: FloatArray, n: float, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Score interval of a proportion (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
    z = -quantile(alpha / 2)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0)


def clopper_pearson(share: FloatArray, n: float, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Exact interval of a proportion (Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404)."""
    ones = np.rint(share * n)
    with np.errstate(invalid="ignore"):
        lower = special.betaincinv(np.maximum(ones, 1), n - ones + 1, alpha / 2)
        upper = special.betainccinv(ones + 1, np.maximum(n - ones, 1), alpha / 2)
    return np.where(ones == 0, 0.0, lower), np.where(ones == n, 1.0, upper)
