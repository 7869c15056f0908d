"""Limits for the mean of losses in declared bounds, which hold for any number of points.

What `holdout` does with ``interval="betting"`` and ``interval="bernstein"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cvstats.containers import Log
from cvstats.core.betting import find_limits
from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.threads import block_bounds, ordered_map
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, is_number

__all__ = ["BOUNDED", "bounded_limits", "check_bounds"]

BOUNDED = ("betting", "bernstein")
"""Intervals that need to know what a loss can be."""

TILE = 1 << 18
"""Losses that one task works on."""

ROUNDING = 1e-6
"""Losses that are outside by this share of the range are rounding, as of a float32."""

GUARANTEE = (
    "finite-sample: covers with probability 1 - alpha or more for any number of independent test "
    "points, if no loss can be outside of the bounds"
)

REFERENCES = {
    "betting": "Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86(1), "
    "1-27, doi:10.1093/jrsssb/qkad009",
    "bernstein": "Maurer and Pontil (2009), COLT, arXiv:0907.3740",
}


def check_bounds(options: Mapping[str, Any]) -> None:
    """Refuse bounds that are missing, are none, or belong to another interval."""
    interval, bounds = options["interval"], options["bounds"]
    if interval not in BOUNDED:
        if bounds is not None:
            raise LogError(
                f"bounds={bounds!r} belongs to interval='betting' or 'bernstein'. Expected one of "
                f"these, or no bounds=."
            )
        return
    if bounds is None:
        raise LogError(
            f"interval={interval!r} needs the smallest and the largest loss that can be, which no "
            f"log shows. Declare them: holdout(losses, interval={interval!r}, bounds=(0, 1))."
        )
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2
    if not pair or not all(is_number(end) and np.isfinite(end) for end in bounds):
        raise LogError(f"bounds={bounds!r} is not a pair of numbers. Expected such as (0, 1).")
    if bounds[0] >= bounds[1]:
        raise LogError(f"bounds={bounds!r} has no room. Expected the smaller number first.")


def bounded_limits(
    result: Result, log: Log, points: Moments | None, bounds: tuple[float, float]
) -> Result:
    """Put limits that hold for any number of points in the place of normal ones.

    ``points`` are the means of points over several repetitions, where there are such.

    Raises
    ------
    LogError
        If a loss is outside of the bounds, or if there are moments or pseudo-losses of a metric
        in place of losses.
    """
    log = log if log.cells is None else log.cells.rows()
    if log.design.metric:
        raise LogError(
            "bounds are those of single losses, and this log holds pseudo-losses of a metric. "
            "Expected interval='wald', or a loss of points."
        )
    alpha, interval = float(result.attrs["alpha"]), str(result.attrs["interval"])
    width, lowest, span = log.panels.width, bounds[0], bounds[1] - bounds[0]
    present = np.arange(log.design.size)
    if log.design.present is not None:
        present = np.flatnonzero(log.design.present)
    limits = np.full((2, width), np.nan)
    tiles = block_bounds(width, max(1, TILE // log.design.size))

    def work(tile: int) -> None:
        start, stop = tiles[tile]
        if points is None:
            table, column, row = log.panels.lines(slice(start, stop), 0, log.design.size)
            part = table[column : column + stop - start, present + row].astype(np.float64)
        else:
            part = points.location[:, start:stop].T
        share = np.ascontiguousarray((part - lowest) / span)
        outside = np.argwhere((share < -ROUNDING) | (share > 1 + ROUNDING))
        if len(outside):
            line, at = outside[0].tolist()
            where = None if points is not None else log.design.format_labels(int(present[at]))
            raise outside_bounds(log.name(start + line), where, part[line, at], bounds)
        known = ~np.isnan(share[:, 0])
        find = bet if interval == "betting" else bound_by_bernstein
        limits[:, start:stop][:, known] = lowest + span * find(np.clip(share[known], 0, 1), alpha)

    for _ in ordered_map(work, len(tiles)):
        pass
    columns = {**result.columns, "lower": limits[0], "upper": limits[1]}
    caution = result.caution & ~np.int64(Caution.ZERO_VARIANCE)
    attrs: dict[str, str | float | int] = {
        **result.attrs, "bounds": f"[{bounds[0]:g}, {bounds[1]:g}]", "guarantee": GUARANTEE,
        "reference": REFERENCES[interval],
    }  # fmt: skip
    allowed = Caution.SKEWED | Caution.HEAVY_TAILS
    return replace(result, columns=columns, caution=caution, attrs=attrs, allows_for=allowed)


def outside_bounds(
    name: str, where: str | None, value: float, bounds: tuple[float, float]
) -> LogError:
    """Word the first loss that is outside."""
    what = f"the loss of {name} at {where}" if where else f"a point's mean loss of {name}"
    return LogError(
        f"{what} is {value:g}, outside of bounds=({bounds[0]:g}, {bounds[1]:g}). Expected the "
        f"smallest and the largest loss that can be, for a loss that has both."
    )


def bet(share: FloatArray, alpha: float) -> FloatArray:
    """Find the means on which constant bets do not win: both limits of each line of losses."""
    out = np.empty((2, len(share)))
    find_limits(share, -np.log(alpha), out)
    return out


def bound_by_bernstein(share: FloatArray, alpha: float) -> FloatArray:
    """Reach ``sqrt(2 V L / n) + 7 L / (3 (n - 1))``, L = ln(4 / alpha), V the variance."""
    n, level = share.shape[1], np.log(4 / alpha)
    mean, variance = share.mean(axis=1), share.var(axis=1, ddof=1)
    reach = np.sqrt(2 * variance * level / n) + 7 * level / (3 * (n - 1))
    limits: FloatArray = np.clip([mean - reach, mean + reach], 0, 1)
    return limits
