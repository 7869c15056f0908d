"""Differences as percentages of the other model's loss: Fieller's limits, geometric means.

The ratio R of two mean losses is not significantly different from r if and only if the mean of
``a - r b`` is not significantly different from 0. Its limits are the r at which the interval of
that mean, by any method, ends at 0 (Fieller 1954, doi:10.1111/j.2517-6161.1954.tb00159.x).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cvstats.comparisons._pairs import (
    default_difference,
    degrees_of_each,
    p_values,
    reads_lazy_losses,
    require_standard_errors,
)
from cvstats.comparisons.zero_one import SOME_EXACT
from cvstats.core.cautions import Caution
from cvstats.core.columns import LossColumns
from cvstats.core.results import FIELLER, Result, confidence_limits, flag, half_widths, make_result
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError, NeedsLosses, checked_flag, is_several, listed, nearest, spelled
from cvstats.intervals import find_method
from cvstats.intervals._limits import fieller
from cvstats.intervals._requirements import recommend_options
from cvstats.log.checks import take_sample
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import Log
from cvstats.log.metadata import STRENGTHS, is_root

FLEMING = (
    "Fleming and Wallace (1986), Communications of the ACM 29(3), 218-221, doi:10.1145/5666.5673"
)

QUADRATIC = ("clustered", "corrected_t", "cv_t", "holdout", "naive", "out_of_source", "wald")
"""Methods whose variance of ``a - r b`` follows from those of a, b and a - b for every r."""

FEWEST = 5
"""Minimum number of data sets for a geometric mean."""

STEPS = 50
"""Maximum number of steps of the Illinois method, and of doublings before."""

CLOSE = 1e-13
"""Relative step size at which the iteration stops."""


def check_relative(
    relative: bool, over: str | None, method: str | None, anytime: bool, adjust: str | None
) -> None:
    """Reject options that do not apply to relative differences."""
    checked_flag("relative", relative)
    if over is not None and not relative:
        raise LogError(f"over={over!r} requires relative=True. Pass both.")
    if relative and (anytime or method in ("union", "tango")):
        what = "anytime=True" if anytime else f"method={method!r}"
        raise LogError(
            f"relative=True needs standard errors, but {what} has none. Use another method, such "
            "as method='wald' or 'holdout'."
        )
    if over is not None and (method is not None or adjust == "max-t"):
        raise LogError(
            f"over={over!r} uses a t interval of the log ratios of data sets, and does not "
            "support method= or adjust='max-t'. Omit them, or omit over=."
        )


def refuse_scores(log: Log) -> None:
    """Reject losses whose ratio is meaningless or misleading."""
    several = log.metadata.get("metrics")
    for part in several.values() if isinstance(several, Mapping) else [log.metadata]:
        turned = part.get("orientation") if isinstance(part, Mapping) else None
        name = part.get("metric") if isinstance(part, Mapping) else None
        if turned == "1 - score":
            error = "the error rate: loss='zero_one'" if name == "accuracy" else "an error"
            raise LogError(
                f"relative=True computes a ratio of losses, but this log has 1 - {name}, whose "
                f"ratio is not that of {name}. Use relative=False, or {error}."
            )
        if turned == "value":
            raise LogError(
                f"relative=True computes a ratio of losses, but {name} has a target value: "
                "smaller is not better. Use relative=False."
            )
        if turned == "-score":
            has = f"{name} has no zero, so no ratio" if name in STRENGTHS else (
                f"this log has minus {name}, whose ratio is meaningless"
            )  # fmt: skip
            raise LogError(
                f"relative=True is a ratio of losses, and {has}. Expected losses of 0 or more. "
                f"Use relative=False."
            )
    if log.without_pairs().of_differences:
        raise LogError(
            "relative=True computes a ratio of losses, but this log has differences. Pass the "
            "log from which they were computed."
        )


def refuse_negative(log: Log, means: FloatArray) -> None:
    """Reject negative losses, and a reference whose losses are all 0."""
    smallest = means[np.concatenate(log.sides)]
    sample = take_sample(log)
    if sample is not None and not log.design.metric:
        tables = sample.log.losses.tables  # NaN if carried cells lack evaluations
        least = [float(np.fmin.reduce(table, axis=None, initial=0)) for table in tables]
        smallest = np.append(smallest, least)
    if (smallest < 0).any():
        raise LogError(
            "relative=True computes a ratio of losses, but one loss is "
            f"{np.nanmin(smallest):.4g}. Expected nonnegative losses. Use relative=False."
        )
    reference = means[log.sides[1]]
    if (reference == 0).any() and not (reference > 0).any():
        name = log.name(int(log.sides[1][0]))
        raise LogError(
            f"all losses of {name} are 0, so the relative difference is undefined. Expected a "
            "reference with a positive mean loss. Use relative=False, or another reference=."
        )


def reads_lazy_losses_of_ratio(method: str | None, options: Mapping[str, Any], log: Log) -> bool:
    """Whether the ratio needs all lazy losses of a carried cell at once."""
    chosen = default_difference(log) if method is None else method
    return chosen not in QUADRATIC or reads_lazy_losses(method, options, log)


def compute_relative(
    run: Callable[..., Result],
    log: Log,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alternative: str,
    adjust: str | None,
    alpha: float,
) -> Result:
    """Express the test of a difference as a percentage of the reference's loss."""
    refuse_scores(log)
    asked = {"method": method, "options": options}
    if method is None:
        method, options = default_difference(log), recommend_options(log)
    record = find_method(method)
    each = record.run(log.without_pairs(), alpha=alpha, **options)
    require_standard_errors("relative=True needs standard errors", each)
    rows = -1, log.losses.width
    mean, variance = each.columns["estimate"].reshape(rows), each.columns["se"].reshape(rows) ** 2
    for row in mean:
        refuse_negative(log, row)
    result = run(log, **asked)
    d, se = result.columns["difference"], result.columns["se"]
    a, b, va, vb = (
        values[:, side].reshape(-1) for values in (mean, variance) for side in log.sides
    )
    down, up = half_widths(alternative, alpha, degrees_of_each(result))
    if adjust == "max-t":
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = (d - result.columns["lower"]) / se, (result.columns["upper"] - d) / se
        down, up = (np.where(np.isnan(w), one, w) for w, one in zip(wide, (down, up), strict=True))
    root = is_root(log.metadata)  # tested by the difference of the squares
    if root:
        d, se, va, vb = d * (a + b), se * (a + b), 4 * a**2 * va, 4 * b**2 * vb
        a, b = a**2, b**2
    vd, ratio = se**2, d / np.where(b > 0, b, np.nan)
    shared = (va - vb - vd) / 2  # the covariance of a - b with b
    lower, upper = (
        np.where(np.isinf(reach), sign * np.inf, fieller(d, b, (vd, vb), shared, finite(reach))[at])
        for at, sign, reach in ((0, -1, down), (1, 1, up))
    )
    if method not in QUADRATIC or is_several(options.get("by")):
        if log.design.by is not None:
            raise DifferentGroups("ratios are computed for one group at a time.")
        if root or not log.in_memory:
            raise NeedsLosses(
                f"relative=True with {method} needs individual losses in memory. Use another "
                f"method, one of {', '.join(QUADRATIC)}."
            )

        def widths(ratios: FloatArray) -> tuple[FloatArray, Any]:
            given = {**record.defaults, **options, "alpha": alpha}
            found = record.formula(scale_reference(log, ratios), **given)
            return found.columns["se"], degrees_of_each(found)

        fixed = adjust == "max-t"
        solve = partial(find_end, widths, d, b, alternative=alternative, alpha=alpha)
        lower = solve(lower, down if fixed else None, -1)
        upper = solve(upper, up if fixed else None, 1)
    if result.attrs.get("test") in ("exact", SOME_EXACT):  # its limits do not use se
        exact = (b > 0) & ((result.caution & np.int64(Caution.DISCORDANT_FEW)) != 0)
        low, high = (result.columns[side] / np.where(exact, b, 1) for side in ("lower", "upper"))
        lower = np.where(exact, np.minimum(lower, np.maximum(low, -1)), lower)
        upper = np.where(exact, np.maximum(upper, high), upper)
    lower, upper = (np.where(np.isnan(lower + upper), np.nan, limit) for limit in (lower, upper))
    spread = np.sqrt(np.maximum(vd - 2 * ratio * shared + ratio**2 * vb, 0)) / b
    if root:
        ratio, lower, upper = (np.sqrt(np.maximum(1 + x, 0)) - 1 for x in (ratio, lower, upper))
        spread = spread / (2 * (1 + ratio))
    none = np.isnan(lower)
    caution = result.caution.copy()
    caution[none & ~np.isnan(d)] |= np.int64(Caution.REFERENCE_NEAR_ZERO)
    columns = {
        **result.columns, "difference": 100 * ratio, "lower": 100 * lower, "upper": 100 * upper,
        "se": 100 * spread,
    }  # fmt: skip
    attrs = {**result.attrs, "relative": "percent of the loss of the other model"}
    attrs["reference"] = f"{FIELLER}; {attrs['reference']}"
    attrs["target"] = f"relative {attrs['target']}"
    return replace(result, columns=columns, caution=caution, attrs=attrs)


def finite(reach: Any) -> Any:
    """Replace the infinite quantile of an open side by 0."""
    return np.where(np.isinf(reach), 0.0, reach)


def scale_reference(log: Log, ratios: FloatArray) -> Log:
    """Make the log of ``a - (1 + r) b``, with one column per pair."""
    rows = 0, log.design.size
    left, right = (
        np.stack([log.losses.column(int(j), *rows) for j in side], axis=1) for side in log.sides
    )
    losses = (np.nan_to_num(left), np.nan_to_num((1 + ratios) * right))  # masked cells are not used
    sides = np.arange(len(ratios))
    return replace(log, losses=LossColumns(losses), pairs=(sides, sides + len(sides)))


def find_end(
    widths: Callable[[FloatArray], tuple[FloatArray, Any]],
    d: FloatArray,
    b: FloatArray,
    start: FloatArray,
    reach: Any,
    side: int,
    alternative: str,
    alpha: float,
) -> FloatArray:
    """Find the ratios at which the interval of ``d - r b`` ends at 0, by the Illinois method.

    ``start`` are approximate ends, and ``side`` is -1 for lower ones. ``reach`` is None if the
    method's own quantile is used, which may depend on the ratio. NaN if the interval contains 0 for
    all ratios on that side.
    """
    known: MaskArray = np.isfinite(start) & (b > 0)
    if not known.any():
        return start

    def excess(r: FloatArray) -> FloatArray:
        """Compute how far the interval extends beyond 0, which is negative outside."""
        se, df = widths(np.where(known, r, 0.0))
        c = half_widths(alternative, alpha, df)[side > 0] if reach is None else reach
        return np.asarray(c * se + side * (d - r * b))

    middle = d / np.where(known, b, 1)
    inner, outer = middle, middle + side * np.abs(start - middle)
    within, beyond = excess(inner), excess(outer)
    for _ in range(STEPS):
        far = known & (beyond > 0)
        if not far.any():
            break
        inner, within = np.where(far, outer, inner), np.where(far, beyond, within)
        outer = np.where(far, 2 * outer - middle, outer)
        beyond = excess(outer)
    known_end, r = known & (beyond <= 0), outer
    for _ in range(STEPS):
        before = r
        with np.errstate(divide="ignore", invalid="ignore"):
            r = outer - beyond * (outer - inner) / (beyond - within)
        r = np.where(beyond == within, outer, r)
        value = excess(r)
        inside = value > 0
        again = inside == (inner == before)  # the same side twice: halve the other value
        inner, outer = np.where(inside, r, inner), np.where(inside, outer, r)
        within, beyond = (
            np.where(inside, value, np.where(again, within / 2, within)),
            np.where(inside, np.where(again, beyond / 2, beyond), value),
        )
        if (np.abs(r - before) <= CLOSE * (1 + np.abs(r)))[known_end].all():
            break
    return np.where(known_end, r, np.where(known, np.nan, start))


def compute_geometric_mean(log: Log, *, over: str, alternative: str, alpha: float) -> Result:
    """Average ratios of mean losses over data sets: Student's t on their logarithms."""
    refuse_scores(log)
    if log.design.by is not None:
        raise DifferentGroups("data sets are averaged for one group at a time.")
    if over not in log.design.levels:
        raise LogError(
            f"the log has no level {over!r}. Expected over= to name the level of the data "
            f"sets.{nearest(over, log.design.levels)}"
        )
    cells = log.without_pairs().moments((over,))
    number = len(cells.count)
    if number < FEWEST:
        raise LogError(
            f"over={over!r} averages over data sets, but this log has {number}. Expected at "
            f"least {FEWEST} labels of {over!r}. Omit over=."
        )
    mean = cells.location
    low = np.argwhere(mean[:, np.concatenate(log.sides)] <= 0)
    if len(low):
        label = spelled(cells.labels[0][int(cells.codes[low[0][0], 0])])
        raise LogError(
            f"over={over!r} needs mean losses above 0, but that of {over} {listed([label])} is "
            "not. Expected positive mean losses in every data set. Drop that one, or omit over=."
        )
    logs = np.log(np.divide(*(mean[:, side] for side in log.sides)))
    middle = logs.mean(axis=0)
    se = logs.std(axis=0, ddof=1) / np.sqrt(number)
    df = number - 1
    down, up = half_widths(alternative, alpha, df)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where((se == 0) & (middle == 0), 0.0, middle / se)
    p = p_values(statistic, df, alternative)
    ratio = np.exp(middle)
    lower, upper = confidence_limits(middle, se, down, up)
    columns = {
        "difference": 100 * np.expm1(middle),
        "lower": 100 * np.expm1(lower), "upper": 100 * np.expm1(upper),
        "se": 100 * ratio * se, "statistic": statistic, "p_value": p,
        "df": float(df), "n_data_sets": number,
    }  # fmt: skip
    attrs: dict[str, Any] = {
        "alpha": alpha, "alternative": alternative, "interval_method": "geometric_mean",
        "relative": f"percent: geometric mean over {over} of the ratio of mean losses",
        "target": "geometric mean of the ratio of mean losses over data sets of one population",
        "guarantee": "exact for independent data sets whose log ratios are normally distributed",
        "reference": FLEMING,
    }  # fmt: skip
    return make_result("compare", columns, flag(Caution.ZERO_VARIANCE, se == 0), attrs)
