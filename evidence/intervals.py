"""Compute every interval of a cell, and count how often it covers its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy import special

import cvstats
from cvstats.errors import LogError
from evidence.designs import DESIGNS, Cell, Question, describe
from evidence.learners import Array
from evidence.populations import POPULATIONS
from evidence.simulate import join_runs, simulate, split_runs

ALPHA = 0.05

MEASURED = (
    "coverage", "below", "above", "width", "width_ratio", "median_width_ratio", "cautioned",
    "silent_coverage",
)  # fmt: skip

Arrays = Mapping[str, Array]


def run(cell: Cell, runs: int, seed: int) -> dict[str, Array]:
    """Compute the limits of every question and the true errors, for some runs of a cell."""
    design = DESIGNS[cell.design]
    plan = None if design.plan is None else design.plan(seed % 2**32)
    made = simulate(POPULATIONS[cell.population], plan, cell.n, runs, seed, design.truths)
    found = {f"truth_{name}": values for name, values in made.truths.items()}
    found["fits"] = np.array(made.fits)
    for number, question in enumerate(design.questions):
        asked = join_runs([answer(part, question) for part in split_runs(made.log)])
        for name, values in asked.items():
            found[f"{name}_{number}"] = values
    return found


def answer(log: xr.DataArray, question: Question) -> dict[str, Array]:
    """Compute one interval for all runs of a log; NaN if it is refused."""
    runs = log.sizes["run"]
    function = getattr(cvstats, question.method)
    if question.method == "holdout" and "source" in log.coords:  # one model for all groups
        log = log.assign_coords(fold=("point", np.zeros(log.sizes["point"], dtype=int)))
    try:
        table = function(log, **{"alpha": ALPHA, **question.options})
    except LogError:
        empty = np.full(runs, np.nan)
        return {"estimate": empty, "lower": empty, "upper": empty, "caution": np.zeros(runs, int)}
    found = {name: table[name].values for name in ("estimate", "lower", "upper", "caution")}
    if question.method == "interval":
        found["chosen"] = np.array(table.attrs["method"])
    return found


def summarize(cell: Cell, found: Arrays) -> list[dict[str, Any]]:
    """A row for each question of a cell, from all its runs."""
    plan = DESIGNS[cell.design].plan
    rows = []
    for number, question in enumerate(DESIGNS[cell.design].questions):
        truth = found[f"truth_{question.truth}"]
        if question.truth in ("expected", "expected_at_n"):
            truth = np.full_like(truth, truth.mean())
        limits = {name: found[f"{name}_{number}"] for name in ("estimate", "lower", "upper")}
        alpha = question.options.get("alpha", ALPHA)
        row = {
            "method": question.method,
            "options": dict(question.options),
            "population": cell.population,
            "plan": cell.design if plan is None else describe(plan(0)),
            "n": cell.n,
            "target": question.truth,
            "alpha": alpha,
            "runs": len(truth),
            **measure(truth, **limits, caution=found[f"caution_{number}"], alpha=alpha),
            "fits": int(found["fits"]),
        }
        if question.method == "interval":
            row["chosen"] = str(found[f"chosen_{number}"])
        rows.append(row)
    return rows


def measure(
    truth: Array,
    estimate: Array,
    lower: Array,
    upper: Array,
    caution: Array,
    alpha: float = ALPHA,
) -> dict[str, float | None]:
    """Compute coverage and width over the runs that were not refused.

    Widths are relative to an oracle: the interval of the same level from the true standard
    deviation of the estimate about its target.
    """
    answered = ~np.isnan(lower) & ~np.isnan(upper)
    if not answered.any():
        return {**dict.fromkeys(MEASURED), "refused": 1.0}
    refused = share(~answered)
    truth, estimate, lower, upper, caution = (
        values[answered] for values in (truth, estimate, lower, upper, caution)
    )
    covered, silent = (lower <= truth) & (truth <= upper), caution == 0
    oracle = 2 * float(special.ndtri(1 - alpha / 2)) * np.std(estimate - truth)
    width = upper - lower
    return {
        "coverage": share(covered),
        "below": share(truth < lower),
        "above": share(truth > upper),
        "width": digits(width.mean()),
        "width_ratio": digits(width.mean() / oracle),
        "median_width_ratio": digits(np.median(width) / oracle),
        "cautioned": share(~silent),
        "silent_coverage": share(covered[silent]),
        "refused": refused,
    }


def share(flags: Array) -> float | None:
    """Compute a share to four digits; None without values."""
    return round(float(np.mean(flags)), 4) if len(flags) else None


def digits(value: float) -> float | None:
    """Round to four significant digits; None for NaN."""
    return float(f"{value:.4g}") if np.isfinite(value) else None
