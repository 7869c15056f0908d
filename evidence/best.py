"""Whether the set of possibly best models contains a best model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import cvstats
from evidence.comparisons import PLANS, Match, compete
from evidence.designs import describe
from evidence.intervals import ALPHA, digits, share
from evidence.learners import Array

DRAWS = 1999


@dataclass(frozen=True)
class Selection(Match):
    """A contest in which all models are equal, or the first is better."""

    effect: float = 0.0


def run(cell: Selection, runs: int, seed: int) -> dict[str, Array]:
    """Compute the size of the set in each run, and the share of the best models in it."""
    log, truths, _ = compete(cell, runs, seed, cell.effect)
    best = truths["trained"] <= truths["trained"].min(axis=0) + 1e-12
    table = cvstats.best_set(log, alpha=ALPHA, n_draws=DRAWS, rng=seed % 2**32)
    kept = table["in_set"].transpose("model", "run").values.astype(bool)
    return {
        "kept": (kept & best).sum(axis=0) / best.sum(axis=0),
        "size": kept.sum(axis=0),
        "models": np.array(len(kept)),
    }


def summarize(cell: Selection, found: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Return one row. If models are equally good in a run, the set should contain each of them."""
    make, _ = PLANS[cell.plan]
    return [{
        "population": cell.population,
        "plan": cell.plan if make is None else describe(make(0)),
        "n": cell.n,
        "alpha": ALPHA,
        "effect": cell.effect,
        "runs": len(found["kept"]),
        "models": int(found["models"]),
        "inclusion": share(found["kept"]),
        "set_size": digits(float(found["size"].mean())),
    }]  # fmt: skip


def list_selections() -> list[Selection]:
    """List every selection of the study."""
    found = [
        Selection("ten classifiers", n, "test set, many", 1000, 100, effect)
        for n in (50, 200, 1000)
        for effect in (0.0, 0.04)
    ]
    found += [Selection("ten neighbours", n, "10-fold, many", 500, 50) for n in (100, 1000)]
    found += [
        Selection(name, n, "10-fold", 2000, 100)
        for name in ("one feature each", "soft thresholds")
        for n in (100, 1000)
    ]
    return found
