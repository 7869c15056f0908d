"""The interval of a difference from the intervals of both models, which asks for no more.

``compare(method="union")`` is not an interval of one model, so it is not a method of its own: it
takes any of them at level ``1 - alpha / 2``, twice (Bayle, Janson and Mackey 2025, Prop. 6.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from cvstats.core.columns import Differences
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.intervals import find_method
from cvstats.intervals._proportions import PROPORTIONS
from cvstats.intervals._references import RELATIVE_STABILITY
from cvstats.log.log import Log

NAME = "union"
"""What `compare` calls it."""


def compute(
    log: Log, differences: Differences, *, method: str, alpha: float, **options: Any
) -> Result:
    """Subtract the limits of two intervals: ``[L1 - U2, U1 - L2]``.

    Where these reach so many standard errors to both sides, the interval excludes 0 exactly where
    ``p < alpha``, with ``p = 4 F(-|d| / (se1 + se2))``. Otherwise, as for the limits of
    proportions, the p-value is NaN.
    """
    record = find_method(method)
    each = record.run(log, alpha=alpha / 2, **options)
    one, two = (
        {name: values[side] for name, values in each.columns.items()}
        for side in (differences.left, differences.right)
    )
    gap = one["estimate"] - two["estimate"]
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(gap == 0, 0.0, gap / (one["se"] + two["se"]))
    columns = {
        "estimate": gap,
        "lower": one["lower"] - two["upper"],
        "upper": one["upper"] - two["lower"],
        "se": np.full_like(gap, np.nan),
        "statistic": statistic,
        "p_value": np.where(
            np.isnan(statistic) | (each.attrs.get("interval") in PROPORTIONS),
            np.nan,
            find_p_values(statistic, one.get("df")),
        ),
        **{name: values for name, values in one.items() if name.startswith("n_")},
    }
    caution: IntArray = each.caution[differences.left] | each.caution[differences.right]
    attrs = {
        **each.attrs,
        "alpha": alpha,
        "guarantee": "conservative: both intervals of one model cover together at least as often "
        f"as their levels add up to, and of each holds: {each.attrs['guarantee']}",
        "reference": f"{RELATIVE_STABILITY}; {each.attrs['reference']}",
        "interval_of_each": method,
    }
    return Result(NAME, columns, caution, attrs)


def find_p_values(statistic: FloatArray, df: FloatArray | None) -> FloatArray:
    """Find the level at which the interval ends at 0, by the quantiles that both models share."""
    away = -np.abs(statistic)
    tail = special.ndtr(away) if df is None else special.stdtr(df, away)
    return np.asarray(np.minimum(4 * tail, 1.0), dtype=np.float64)
