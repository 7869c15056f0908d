"""Whether the power predicted by `power` from a pilot log is the power of the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import cvstats
from evidence.comparisons import PLANS, Match, compete
from evidence.contests import CONTESTS
from evidence.designs import describe
from evidence.intervals import ALPHA, digits, share
from evidence.learners import Array


def run(cell: Match, runs: int, seed: int) -> dict[str, Array]:
    """Run comparisons of models that differ, and predict their power from as many pilots."""
    effect = CONTESTS[cell.population].effect
    log, truths, _ = compete(cell, runs, seed + 1, effect)
    gap = truths["trained"].mean(axis=1)
    options = {"method": "wald"} if cell.plan == "10-fold" else {}
    found = cvstats.compare(log, alpha=ALPHA, adjust=None, **options).isel(pair=0)
    pilot, _, _ = compete(cell, runs, seed, effect)
    plan = cvstats.power(pilot, effect=float(gap[0] - gap[1]), alpha=ALPHA, **options).isel(pair=0)
    return {
        "found": found["p_value"].values < ALPHA,
        "gap": np.full(runs, gap[0] - gap[1]),
        **{name: plan[name].values for name in ("power", "power_lower", "power_upper")},
    }


def summarize(cell: Match, found: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Return one row: mean predicted power, and share of comparisons that find the effect."""
    observed = share(found["found"])
    make, _ = PLANS[cell.plan]
    inside = (found["power_lower"] <= observed) & (observed <= found["power_upper"])
    return [{
        "population": cell.population,
        "plan": cell.plan if make is None else describe(make(0)),
        "n": cell.n,
        "alpha": ALPHA,
        "effect": digits(abs(float(np.mean(found["gap"])))),
        "predicted": digits(float(np.mean(found["power"]))),
        "observed": observed,
        "range_holds": share(inside),
        "runs": len(found["found"]),
    }]  # fmt: skip


def list_plans() -> list[Match]:
    """Every pilot of the study."""
    return [
        Match(name, n, plan, 2000, 250)
        for name, plan, sizes in (
            ("two classifiers", "test set, labels", (50, 200, 1000)),
            ("two good classifiers", "test set, labels", (200, 1000)),
            ("one feature each", "10-fold", (100, 1000)),
            ("grouped pair", "10-fold of groups", (300, 1000)),
        )
        for n in sizes
    ]
