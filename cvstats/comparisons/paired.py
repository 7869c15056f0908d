"""Tests of one mean difference, and what many of them at once ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.result import Result, half_widths
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice

__all__ = [
    "ADJUSTMENTS",
    "adjusted",
    "below",
    "degrees",
    "limits",
    "p_values",
    "symmetric",
    "tested",
]

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

    Interval and test are duals: the interval excludes 0 where ``p_value < alpha``. A method
    without a symmetric standard error keeps its own limits, and its own test if it has one.
    """
    if not symmetric(base):
        return as_it_stands(base, alternative=alternative)
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    columns.pop("lower"), columns.pop("upper")
    df = degrees(base)
    down, up = half_widths(alternative, alpha, df)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((se == 0) & (estimate == 0), 0.0, estimate / se)
    p = np.where((se == 0) & (estimate == 0), 1.0, p_values(statistic, df, alternative))
    missing = np.isnan(se)
    lower, upper = limits(estimate, se, down, up)
    tests: dict[str, NDArray[Any]] = {
        "difference": estimate,
        "lower": lower,
        "upper": upper,
        "se": se,
        "statistic": statistic,
        "p_value": np.where(missing, np.nan, p),
    }
    attrs = {**base.attrs, "alternative": alternative, "alpha": alpha}
    # A difference of models that agree everywhere is no small sample.
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    return Result(base.method, {**tests, **columns}, caution, attrs)


def symmetric(base: Result) -> bool:
    """Whether the limits are so many standard errors to both sides of the estimate."""
    own = np.isnan(base.columns["se"]) & ~np.isnan(base.columns["lower"])
    return "p_value" not in base.columns and not own.any()


def degrees(base: Result) -> float | None:
    """Read the degrees of freedom of a result; None where its law is the normal one."""
    return float(base.columns["df"].flat[0]) if "df" in base.columns else None


def limits(
    estimate: FloatArray, se: FloatArray, down: float, up: float
) -> tuple[FloatArray, FloatArray]:
    """Reach so many standard errors down and up; infinite on an open side, NaN without any."""
    lower = np.full_like(se, -np.inf) if np.isinf(down) else estimate - down * se
    upper = np.full_like(se, np.inf) if np.isinf(up) else estimate + up * se
    missing = np.isnan(se)
    return np.where(missing, np.nan, lower), np.where(missing, np.nan, upper)


def as_it_stands(base: Result, *, alternative: str) -> Result:
    """Take limits, statistic and p-value as a method without standard errors gives them."""
    if alternative != "two-sided":
        raise LogError(
            f"alternative={alternative!r} needs a standard error, and {base.method} with these "
            f"options has none. Expected alternative='two-sided', or another method."
        )
    columns = dict(base.columns)
    estimate = columns.pop("estimate")
    tests = {name: columns.pop(name) for name in ("lower", "upper", "se")}
    for name in ("statistic", "p_value"):
        tests[name] = columns.pop(name, np.full_like(estimate, np.nan))
    caution = base.caution & ~np.int64(Caution.ONE_FOLD)
    caution[np.isnan(tests["p_value"]) & ~np.isnan(estimate)] |= np.int64(Caution.NO_TEST)
    attrs = {**base.attrs, "alternative": alternative}
    return Result(base.method, {"difference": estimate, **tests, **columns}, caution, attrs)


def adjusted(p: FloatArray, adjust: str) -> FloatArray:
    """Adjust p-values along the first axis for the number of tests.

    ``"holm"`` bounds the chance of any false difference, whatever the dependence of the
    tests (Holm 1979). ``"bh"`` bounds the expected share of false ones among the differences
    found, for independent or positively dependent tests (Benjamini and Hochberg 1995,
    doi:10.1111/j.2517-6161.1995.tb02031.x). Missing p-values stay missing and do not count.
    """
    checked_choice("adjust", adjust, ADJUSTMENTS)
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
