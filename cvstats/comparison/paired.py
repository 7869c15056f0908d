"""Tests of one mean difference, and what many of them at once ask for."""

from __future__ import annotations

import numpy as np
from scipy import special

from cvstats.errors import choice
from cvstats.types import FloatArray
from cvstats.results import Caution, Result, half_widths

__all__ = ["ADJUSTMENTS", "adjusted", "p_values", "tested"]

ADJUSTMENTS = ("holm", "bh")


def p_values(statistic: FloatArray, df: float | None, alternative: str) -> FloatArray:
    """Probability of a statistic as far out, under no difference.

    ``"less"`` asks whether the model has the smaller error. An infinite statistic (a
    difference without any variance) gives 0 or 1.
    """
    if alternative == "two-sided":
        return 2 * below(-np.abs(statistic), df)
    return below({"less": statistic, "greater": -statistic}[alternative], df)


def below(statistic: FloatArray, df: float | None) -> FloatArray:
    """Distribution function of Student's t, or of the normal law where ``df`` is None."""
    share = special.ndtr(statistic) if df is None else special.stdtr(df, statistic)
    return np.asarray(share, dtype=np.float64)


def tested(base: Result, *, alternative: str, alpha: float) -> Result:
    """Turn an interval of mean differences into tests of no difference.

    Interval and test are duals: the interval excludes 0 where ``p_value < alpha``.
    """
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    df = float(columns["df"].flat[0]) if "df" in columns else None
    down, up = half_widths(alternative, alpha, df)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((se == 0) & (estimate == 0), 0.0, estimate / se)
    p = np.where((se == 0) & (estimate == 0), 1.0, p_values(statistic, df, alternative))
    missing = np.isnan(se)
    lower = np.full_like(se, -np.inf) if np.isinf(down) else estimate - down * se
    upper = np.full_like(se, np.inf) if np.isinf(up) else estimate + up * se
    tests: dict[str, FloatArray] = {
        "difference": estimate,
        "se": se,
        "lower": np.where(missing, np.nan, lower),
        "upper": np.where(missing, np.nan, upper),
        "statistic": statistic,
        "p_value": np.where(missing, np.nan, p),
    }
    attrs = {**base.attrs, "alternative": alternative, "alpha": alpha}
    # A difference of models that agree everywhere is no small sample.
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    return Result(base.method, {**tests, **columns}, caution, attrs)


def adjusted(p: FloatArray, adjust: str) -> FloatArray:
    """Adjust p-values along the first axis for the number of tests.

    ``"holm"`` bounds the chance of any false difference, whatever the dependence of the
    tests (Holm 1979). ``"bh"`` bounds the expected share of false ones among the differences
    found, for independent or positively dependent tests (Benjamini and Hochberg 1995,
    doi:10.1111/j.2517-6161.1995.tb02031.x). Missing p-values stay missing and do not count.
    """
    if adjust not in ADJUSTMENTS:
        raise choice("adjust", adjust, (*ADJUSTMENTS, "None"))
    order = np.argsort(p, axis=0)  # NaN goes last
    sorted_p = np.take_along_axis(p, order, axis=0)
    m = np.sum(~np.isnan(p), axis=0, keepdims=True)
    rank = np.arange(1, len(p) + 1).reshape(-1, *[1] * (p.ndim - 1))
    if adjust == "holm":
        steps = np.fmax.accumulate(sorted_p * (m - rank + 1), axis=0)
    else:
        steps = np.fmin.accumulate((sorted_p * m / rank)[::-1], axis=0)[::-1]
    steps = np.where(np.isnan(sorted_p), np.nan, np.minimum(steps, 1.0))
    out = np.empty_like(p)
    np.put_along_axis(out, order, steps, axis=0)
    return out
