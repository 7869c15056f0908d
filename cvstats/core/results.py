"""Results of methods before they are labeled: plain columns, one number per model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError

FIELLER = "Fieller (1954), JRSS B 16(2), 175-185, doi:10.1111/j.2517-6161.1954.tb00159.x"

WORKS = {
    "interval": {
        "wilson": "Wilson (1927), doi:10.1080/01621459.1927.10502953",
        "clopper-pearson": "Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404",
        "korn-graubard": "Korn and Graubard (1998), Survey Methodology 24(2), 193-201",
        "hall": "Hall (1992), doi:10.1111/j.2517-6161.1992.tb01444.x",
        "fieller": FIELLER,
    },
    "adjust": {
        "holm": "Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70",
        "bh": "Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x",
        "max-t": "Hothorn, Bretz and Westfall (2008), doi:10.1002/bimj.200810425",
    },
}
"""The works that a result uses besides those of its method, by attr and a part of its value."""


@dataclass(frozen=True, eq=False)
class Result:
    """Columns of numbers, one entry per model, with cautions.

    Parameters
    ----------
    method : str
        Key of the method in the registry.
    columns : mapping of str to array, shape (models,)
        The numbers, in display order, then the counts (integers).
    caution : array of int, shape (models,)
        Bits of `Caution`.
    attrs : mapping
        Facts about the whole result.
    takes_means : bool
        Whether the method needs only the mean of each split, not its losses.
    allows_for : Caution
        Cautions about the losses that do not apply to this result.
    calls : mapping
        The call to use instead because of a caution, if the method found one.
    """

    method: str
    columns: Mapping[str, NDArray[Any]]
    caution: IntArray
    attrs: Mapping[str, str | float | int] = field(default_factory=dict)
    takes_means: bool = False
    allows_for: Caution = Caution(0)
    calls: Mapping[Caution, str] = field(default_factory=dict)

    @property
    def alpha(self) -> float:
        """The error rate of the limits."""
        return float(self.attrs["alpha"])

    @property
    def alternative(self) -> str:
        """Which of the limits are finite."""
        return str(self.attrs.get("alternative", "two-sided"))

    def has_caution(self, caution: Caution) -> MaskArray:
        """Find the rows that have a caution, or one of several."""
        found: MaskArray = (self.caution & np.int64(caution)) != 0
        return found

    def add_caution(self, caution: Caution, where: MaskArray) -> Result:
        """Add a caution to some rows."""
        flagged = np.where(where, self.caution | np.int64(caution), self.caution)
        return replace(self, caution=flagged)

    def drop_caution(self, caution: int, where: MaskArray | bool = True) -> Result:
        """Remove a caution, or several, from some rows."""
        kept = np.where(where, self.caution & ~np.int64(caution), self.caution)
        return replace(self, caution=kept)


def make_result(
    method: str,
    columns: Mapping[str, Any],
    caution: IntArray | int = 0,
    attrs: Mapping[str, str | float | int] | None = None,
) -> Result:
    """Make a result of columns of one shape, and of numbers that are the same in every row.

    The first column is the estimate. Rows without one have the caution that there are no losses,
    and no other. Groups of ``by=`` are rows of two-dimensional columns, which are concatenated.
    """
    missing = np.isnan(next(iter(columns.values())))
    flags = np.broadcast_to(np.asarray(caution, dtype=np.int64), missing.shape).copy()
    flags[missing] = Caution.NO_LOSSES
    rows = {}
    for name, values in columns.items():
        column = np.asarray(values)
        if column.shape != missing.shape:
            column = np.broadcast_to(column, missing.shape)
        rows[name] = column.reshape(-1)
    return Result(method, rows, flags.reshape(-1), attrs or {})


def join_results(
    results: Sequence[Result], columns: Mapping[str, NDArray[Any]], caution: IntArray
) -> Result:
    """Make one result of several, with the facts that they share and all works that they name."""
    shared = {
        name: fact
        for name, fact in results[0].attrs.items()
        if all(other.attrs.get(name) == fact for other in results[1:])
    }
    if "reference" in results[0].attrs:
        named = [str(result.attrs.get("reference", "")).split("; ") for result in results]
        shared["reference"] = "; ".join(dict.fromkeys(filter(None, chain.from_iterable(named))))
    if len({result.method for result in results}) > 1:  # of several metrics
        shared["method"] = "interval"
    return replace(results[0], columns=columns, caution=caution, attrs=shared)


CONSTANTS = ("critical_difference", "crossed", "largest", "rho", "smallest")
"""Columns besides ``n_...`` that describe the log or the method, not a model."""


is_count = re.compile("|".join(["n_.*", *CONSTANTS])).fullmatch
"""Whether a column describes the log or the method, and is moved to attrs if possible."""


def separate_counts(result: Result) -> tuple[dict[str, NDArray[Any]], dict[str, float | int]]:
    """Separate the columns to show from counts that are the same in every row.

    Rows without losses are ignored. A count that differs between rows remains a column.
    """
    columns: dict[str, NDArray[Any]] = {}
    counts: dict[str, float | int] = {}
    rows = None
    for name, values in result.columns.items():
        if is_count(name) and len(values):
            if rows is None:
                rows = (result.caution & np.int64(Caution.NO_LOSSES)) == 0
                rows = rows if rows.any() else ~rows
            first = values[rows.argmax()]
            if (values[rows] == first).all():
                counts[name] = first.item()
                continue
        columns[name] = values
    return columns, counts


def flag(caution: Caution, where: MaskArray) -> IntArray:
    """Return the bits of a caution for the rows where it applies."""
    return np.where(where, np.int64(caution), np.int64(0))


@overload
def quantile(probability: float, df: float | None = None) -> float: ...
@overload
def quantile(probability: float, df: FloatArray | IntArray) -> FloatArray: ...
def quantile(
    probability: float, df: float | FloatArray | IntArray | None = None
) -> float | FloatArray:
    """Quantile of Student's t, or of the standard normal distribution if ``df`` is None."""
    if df is None:
        return float(special.ndtri(float(probability)))  # alpha may be a float32
    found = special.stdtrit(df, float(probability))
    return np.asarray(found) if isinstance(df, np.ndarray) else float(found)


@overload
def half_widths(alternative: str, alpha: float, df: float | None) -> tuple[float, float]: ...
@overload
def half_widths(
    alternative: str, alpha: float, df: float | FloatArray | IntArray | None
) -> tuple[float | FloatArray, float | FloatArray]: ...
def half_widths(
    alternative: str, alpha: float, df: float | FloatArray | IntArray | None
) -> tuple[float | FloatArray, float | FloatArray]:
    """Half-widths of the interval in standard errors, down and up; infinite if one-sided.

    ``df`` may differ between columns.
    """
    if alternative == "two-sided":
        reach = -quantile(alpha / 2, df)  # the lower tail keeps the digits of a tiny alpha
        return reach, reach
    reach = -quantile(alpha, df)
    return (np.inf, reach) if alternative == "less" else (reach, np.inf)


def confidence_limits(
    estimate: FloatArray, se: FloatArray, down: float | FloatArray, up: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute limits from standard errors; infinite on an open side, NaN without any."""
    limits = []
    for reach in (-down, up):
        with np.errstate(invalid="ignore"):  # one-sided with zero variance
            limit = estimate + reach * se
        if np.isinf(reach).any():
            limit = np.where(np.isinf(reach) & ~np.isnan(se), reach, limit)
        limits.append(limit)
    return limits[0], limits[1]


OWN_ERROR = "own_se"
"""The column of standard errors without pseudo-errors."""


def show_own_errors(result: Result) -> Result:
    """Display standard errors without pseudo-errors; limits and tests still account for these."""
    if OWN_ERROR not in result.columns:
        return result
    columns = dict(result.columns)
    columns["se"] = columns.pop(OWN_ERROR)
    return replace(result, columns=columns)


DIGITS = 4 * np.finfo(np.float64).eps
"""Relative rounding error of a mean."""


def rounding_of_means(mean: FloatArray, se: FloatArray, n: FloatArray | float) -> FloatArray:
    """Bound the rounding error of means of n losses, which depends on the order of the losses."""
    return DIGITS * np.sqrt(n) * (np.abs(mean) + np.sqrt(n) * se)


def interval(
    method: str,
    estimate: FloatArray,
    variance: FloatArray,
    *,
    origin: FloatArray | float,
    alpha: float,
    df: float | FloatArray | IntArray | None = None,
    alternative: str = "two-sided",
    extra: Mapping[str, FloatArray | IntArray | float] | None = None,
    caution: IntArray | int = 0,
    attrs: Mapping[str, str | float | int] | None = None,
) -> Result:
    """Compute an interval from estimate, variance and quantile, with the usual cautions.

    ``estimate`` and ``variance`` have one row per group of ``by=``, which are concatenated in the
    result; without groups they may be one-dimensional. ``estimate`` is relative to ``origin``, the
    result is not. ``df``, the degrees of freedom of Student's t, becomes a column, from which
    comparisons take their own limits and p-values. A negative ``variance`` gives NaN for the
    standard error and the limits; a zero one gives an interval of width zero (methods that have a
    floor apply it before). A standard error below the rounding error of the estimate is zero.
    """
    spread = np.sqrt(np.abs(variance))
    zero = (spread <= DIGITS * np.abs(origin + estimate)) | (spread == 0)
    negative = (variance < 0) & ~zero
    se = np.where(zero, 0.0, np.where(negative, np.nan, spread))
    down, up = half_widths(alternative, alpha, df)
    lower, upper = confidence_limits(estimate, np.where(np.isnan(estimate), np.nan, se), down, up)
    columns = {
        "estimate": origin + estimate,
        "lower": origin + lower,
        "upper": origin + upper,
        "se": se,
        **({} if df is None else {"df": df}),
        **(extra or {}),
    }
    flags = zero * np.int64(Caution.ZERO_VARIANCE) | negative * np.int64(Caution.NEGATIVE_VARIANCE)
    facts = {"alpha": alpha, "alternative": alternative, **(attrs or {})}
    return make_result(method, columns, caution | flags, facts)


SCALES = ("identity", "logit", "log", "fisher-z")

RANGES = {
    "logit": (0.0, 1.0, "between 0 and 1"),
    "log": (0.0, np.inf, "above 0"),
    "fisher-z": (-1.0, 1.0, "between -1 and 1"),
}
"""The bounds of each scale, and their description."""


def scale_errors(result: Result, factor: FloatArray) -> Result:
    """Multiply standard errors and the distances of limits from the estimate by a factor."""
    columns, estimate = dict(result.columns), result.columns["estimate"]
    columns["se"] = columns["se"] * factor
    for side in ("lower", "upper"):
        columns[side] = estimate + (columns[side] - estimate) * factor
    return replace(result, columns=columns)


ROUNDING = 1e-12
"""Tolerance for an estimate outside its range."""


def rescale_limits(result: Result, scale: str) -> Result:
    """Compute the limits of an interval on another scale, on which they are symmetric.

    With an estimate e and its standard error s the limits are those of logit(e) with the standard
    error s / (e (1 - e)), of log(e) with s / e, or of atanh(e) with s / (1 - e^2). At the bounds of
    the scale they are NaN.

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
            f"scale={scale!r} requires estimates {expected}, but one is {worst:.6g}. Use "
            "scale='identity'."
        )
    inside = (estimate > bottom + ROUNDING) & (estimate < top - ROUNDING)
    e = np.where(inside, estimate, 0.5)
    down, up = half_widths(result.alternative, result.alpha, result.columns.get("df"))
    forth, back, slope = {
        "logit": (special.logit, special.expit, e * (1 - e)),
        "log": (np.log, np.exp, e),
        "fisher-z": (np.arctanh, np.tanh, 1 - e**2),
    }[scale]
    columns = dict(result.columns)
    for side, reach in (("lower", -down), ("upper", up)):
        limit = back(forth(e) + reach * se / slope)
        columns[side] = np.where(inside & np.isfinite(se), limit, np.nan)
    result = replace(result, columns=columns, attrs={**result.attrs, "scale": scale})
    return result.add_caution(Caution.END_OF_SCALE, ~inside & ~np.isnan(estimate))
