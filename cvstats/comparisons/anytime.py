"""Limits of a difference that are valid at every look: an asymptotic confidence sequence.

Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), arXiv:2103.06476. With n independent units
(points, or groups of them) and a rate ``r`` that was chosen before the first look, the limits are

    mean(d) -+ se sqrt( 2 (n r + 1) / (n r)  log( sqrt(n r + 1) / alpha ) ),                (14)

with the standard error ``se`` at that look instead of ``sd / sqrt(n)``. Compared with limits for
one look, they are tightest at n = t if ``r = (-W(-alpha^2 / e) - 1) / t``, with the lower branch W
of Lambert's function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from cvstats.comparisons._pairs import default_method, difference_interval
from cvstats.comparisons.zero_one import FEW
from cvstats.core.cautions import Caution
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError
from cvstats.intervals._requirements import takes_two_ways
from cvstats.log.checks import EVERY_LOOK
from cvstats.log.log import Log
from cvstats.options import whole_number

REFERENCE = (
    "Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52(6), "
    "2613-2640, arXiv:2103.06476"
)

UNITS = {"holdout": "n_points", "clustered": "n_clusters"}
"""The methods that support repeated looks, and their sampling units."""

TIGHTEST_AT = 500
"""Default number of units at which limits are tightest."""

FEWEST = 30
"""Minimum number of units for finite limits."""

EARLY = 100
"""Number of units below which coverage is too low if differences are skewed."""


def check_anytime(
    tightest_at: object,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alternative: str,
    adjust: str | None,
) -> int:
    """Reject options that anytime limits do not have; return where they are tightest."""
    if method not in (*UNITS, None):
        raise LogError(
            "anytime=True requires points or groups of one test set, and does not support "
            f"method={method!r}. Use method='holdout' or method='clustered'."
        )
    if isinstance(options.get("by"), (tuple, list)):
        raise LogError(
            f"anytime=True supports one sampling level, but by={options['by']!r} names two. Pass "
            "one level."
        )
    if "interval" in options:
        raise LogError(
            f"options={dict(options)!r} selects limits for a single look, but anytime=True has "
            "its own. Omit it."
        )
    if alternative != "two-sided":
        raise LogError(
            f"anytime=True has two-sided limits, but alternative={alternative!r} is one-sided. "
            "Omit it: the sign of the limits shows which model is better."
        )
    if adjust == "max-t":
        raise LogError(
            "adjust='max-t' is not available with anytime=True, which has no joint distribution "
            "of all looks. Use adjust='holm'."
        )
    return TIGHTEST_AT if tightest_at is None else whole_number("tightest_at", tightest_at, FEWEST)


def mixture_rate(tightest_at: float, alpha: float) -> float:
    """Choose the rate with which limits are tightest at a number of units."""
    return float(-special.lambertw(-(alpha**2) / math.e, -1).real - 1) / tightest_at


def sequence_multiplier(n: FloatArray | float, rate: float, alpha: float) -> FloatArray:
    """Return the half-width of the limits in standard errors, by (14)."""
    grown = np.asarray(n, dtype=np.float64) * rate
    found: FloatArray = np.sqrt(2 * (grown + 1) / grown * np.log(np.sqrt(grown + 1) / alpha))
    return found


def sequence_p_values(statistic: FloatArray, n: FloatArray, rate: float) -> FloatArray:
    """Solve (14) for the alpha at which the limits end at 0, at the same rate."""
    grown = n * rate
    found: FloatArray = np.minimum(
        np.sqrt(grown + 1) * np.exp(-(statistic**2) * grown / (2 * (grown + 1))), 1.0
    )
    return found


def compute_anytime(
    log: Log,
    *,
    method: str | None,
    options: Mapping[str, Any],
    alpha: float,
    tightest_at: int,
) -> Result:
    """Test differences by limits that are valid at all looks simultaneously."""
    chosen = choose_method(log, method)
    log = replace(log, metadata={**log.metadata, EVERY_LOOK: True})
    base = difference_interval(log, chosen, options, alpha)
    columns = dict(base.columns)
    estimate, se = columns.pop("estimate"), columns.pop("se")
    for name in ("lower", "upper", "df"):
        columns.pop(name, None)
    n = columns[UNITS[chosen]].astype(np.float64)
    rate = mixture_rate(tightest_at, alpha)
    zero_one, few = find_few_discordant(log)
    too_early = (n < FEWEST) | (se == 0) | few
    reach = np.where(too_early, np.inf, sequence_multiplier(n, rate, alpha) * se)
    statistic = np.divide(estimate, se, out=np.zeros_like(se), where=se != 0)
    tests = {
        "difference": estimate,
        "lower": estimate - reach,
        "upper": estimate + reach,
        "se": se,
        "statistic": statistic,
        "p_value": np.where(too_early, 1.0, sequence_p_values(statistic, n, rate)),
    }
    missing = np.isnan(estimate)
    for name in ("lower", "upper", "p_value"):
        tests[name] = np.where(missing, np.nan, tests[name])
    caution = base.caution & ~np.int64(Caution.ONE_FOLD | Caution.ZERO_VARIANCE)
    for where, label in (
        (too_early, Caution.NO_LIMITS_YET),
        (~too_early & ~zero_one & (n < EARLY), Caution.EARLY_LOOK),
    ):
        caution |= np.where(where & ~missing, np.int64(label), 0)
    attrs = {
        **base.attrs,
        "alternative": "two-sided",
        "alpha": alpha,
        "anytime": True,
        "tightest_at": tightest_at,
        "guarantee": "valid simultaneously at all looks and for any stopping rule, as the "
        f"number of {'points' if chosen == 'holdout' else 'groups'} at the first look grows, "
        "if these are evaluated in random order",
        "reference": REFERENCE,
    }
    attrs.pop("interval", None)
    return Result("compare", {**tests, **columns}, caution, attrs)


def choose_method(log: Log, method: str | None) -> str:
    """Choose the interval of one test set, whose models stay the same at all looks."""
    if log.planned.has("fold"):
        raise LogError(
            "anytime=True requires models that stay the same at every look, but this log has "
            f"{log.planned.number('fold'):,} folds, each tested with a different model. Expected "
            f"one test set. Select one fold: {log.design.take('fold')}."
        )
    chosen = default_method(log) if method is None else method
    if method is None and takes_two_ways(log):
        raise LogError(
            "anytime=True supports one sampling level, but in this log the same points occur in "
            "several sources. Use a log with one of the two, such as the mean of each point; or "
            "points='nested' if each source numbers its points separately; or method='clustered' "
            "for these points only."
        )
    if chosen not in UNITS:
        raise LogError(
            "anytime=True requires points or groups of one test set, but the default interval "
            f"of this log is {chosen}. Use method='holdout' or, for sources, method='clustered'."
        )
    return chosen


def find_few_discordant(log: Log) -> tuple[MaskArray, MaskArray]:
    """Find pairs with 0/1 losses, and those of them with too few discordant points.

    The squares of -1, 0 and 1 sum to the number of points on which two models disagree, here
    averaged over repetitions.
    """
    binary = log.zero_one()
    known = np.logical_and(*(binary[side] for side in log.sides))
    if not known.any():
        return known, known
    cells = log.moments(repetition_level(log.design))
    return known, known & (cells.squares.mean(axis=0) < FEW - 0.5)
