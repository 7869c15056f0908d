"""Several comparisons at once: adjusted p-values, and intervals that cover all differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cvstats.api.running import Alternative
from cvstats.comparisons import joint
from cvstats.comparisons.paired import degrees, limits, symmetric
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError

__all__ = ["checked_law", "simultaneous", "with_adjusted"]


def with_adjusted(result: Result, p: FloatArray, attrs: dict[str, Any]) -> Result:
    """Put adjusted p-values beside the others."""
    names = list(result.columns)
    names.insert(names.index("p_value") + 1, "p_adjusted")
    columns = {**result.columns, "p_adjusted": p}
    ordered = {name: columns[name] for name in names}
    return replace(result, columns=ordered, attrs={**result.attrs, **attrs})


def no_law(whole: Result) -> LogError:
    """Words for standard errors that belong to no joint law."""
    return LogError(
        f"adjust='max-t' needs standard errors that come from one covariance of all models, and "
        f"those of {whole.method} with these options do not. Expected adjust='holm', or a method "
        f"such as 'wald'."
    )


def checked_law(whole: Result) -> None:
    """Refuse an interval that is not made of standard errors."""
    if not symmetric(whole):
        raise no_law(whole)


def simultaneous(
    result: Result,
    whole: Result,
    pairs: tuple[IntArray, IntArray],
    models: int,
    *,
    alternative: Alternative,
    alpha: float,
    n_draws: int,
    seed: int,
) -> Result:
    """Adjust tests and intervals by the largest statistic of the joint law, cell by cell.

    ``whole`` is the interval of every two models (of both logs, where there are two), and
    ``pairs`` the numbers of the two models of each difference in ``result``.
    """
    checked_law(whole)
    left, right = pairs
    cells = len(result.columns["se"]) // len(left)
    variance = (whole.columns["se"] ** 2).reshape(-1, cells)
    seen = ~np.isnan(whole.columns["estimate"]).reshape(-1, cells)
    statistic = joint.standardized(result, alternative).reshape(len(left), cells)
    p = np.full_like(statistic, np.nan)
    bound = np.full(cells, np.nan)
    for c in np.flatnonzero(seen.any(axis=0)):
        there = np.flatnonzero(squared_of(seen[:, c].astype(float), models).any(axis=0))
        here = np.searchsorted(there, np.stack([left, right]))
        known = np.flatnonzero(~np.isnan(statistic[:, c]))
        squared = squared_of(variance[:, c], models)[np.ix_(there, there)]
        tops = None if np.isnan(squared).any() else joint.largest(
            squared, *here[:, known],
            alternative=alternative, df=degrees(whole), n_draws=n_draws, seed=seed,
        )  # fmt: skip
        if tops is None:
            raise no_law(whole)
        p[:, c] = joint.exceeded(statistic[:, c], tops)
        bound[c] = joint.critical(tops, alpha)
    p[result.columns["p_value"].reshape(p.shape) == 1] = 1.0  # the same losses, whatever is drawn
    now = dict(result.columns)
    reach = np.broadcast_to(np.where(np.isinf(bound), 0.0, bound), statistic.shape).reshape(-1)
    now["lower"], now["upper"] = widened(now, reach, alternative)
    facts = {"adjust": "max-t", "n_draws": n_draws, "seed": seed}
    return with_adjusted(replace(result, columns=now), p.reshape(-1), facts)


def squared_of(variance: FloatArray, models: int) -> FloatArray:
    """Lay the variances of all differences out, models by models."""
    squared = np.zeros((models, models))
    above: tuple[IntArray, IntArray] = np.triu_indices(models, 1)
    squared[above] = variance
    return squared + squared.T


def widened(
    columns: dict[str, FloatArray], reach: FloatArray, alternative: Alternative
) -> tuple[FloatArray, FloatArray]:
    """Reach further for all differences at once; an open side stays open."""
    lower, upper = limits(columns["difference"], columns["se"], 0.0, 0.0)
    far = reach * columns["se"]
    down = np.full_like(lower, -np.inf) if alternative == "less" else lower - far
    up = np.full_like(upper, np.inf) if alternative == "greater" else upper + far
    missing = np.isnan(lower)
    return np.where(missing, np.nan, down), np.where(missing, np.nan, up)
