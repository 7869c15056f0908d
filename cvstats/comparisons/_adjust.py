"""Many tests at once: p-values adjusted by Holm, or by Benjamini and Hochberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cvstats.core.results import Result
from cvstats.core.types import FloatArray


def adjust_p_values(p: FloatArray, adjust: str) -> FloatArray:
    """Adjust p-values of any shape for how many there are.

    ``"holm"`` bounds the chance of any false difference, whatever the dependence of the
    tests (Holm 1979). ``"bh"`` bounds the expected share of false ones among the differences
    found, for independent or positively dependent tests (Benjamini and Hochberg 1995,
    doi:10.1111/j.2517-6161.1995.tb02031.x). Missing p-values stay missing and do not count.
    """
    known = ~np.isnan(p)
    order = np.argsort(p[known])
    ascending = p[known][order]
    m = len(ascending)
    rank = np.arange(1, m + 1)
    if adjust == "holm":
        steps = np.maximum.accumulate(ascending * (m - rank + 1))
    else:
        steps = np.minimum.accumulate((ascending * m / rank)[::-1])[::-1]
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(steps, 1.0)
    out = np.full(p.shape, np.nan)
    out[known] = adjusted
    return out


def adjust_tests(result: Result, adjust: str | None) -> Result:
    """Add adjusted p-values to several tests, of all pairs of models and all carried cells."""
    p = result.columns["p_value"]
    if adjust is None or p.size < 2:
        return result
    return add_adjusted(result, adjust_p_values(p, adjust), {"adjust": adjust})


def add_adjusted(
    result: Result, p_adjusted: FloatArray, attrs: Mapping[str, str | float | int]
) -> Result:
    """Put adjusted p-values beside the others."""
    columns = {}
    for name, values in result.columns.items():
        columns[name] = values
        if name == "p_value":
            columns["p_adjusted"] = p_adjusted
    return replace(result, columns=columns, attrs={**result.attrs, **attrs})
