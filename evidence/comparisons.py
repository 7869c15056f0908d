"""Size and power of every comparison in a contest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import cvstats
from cvstats import plans
from cvstats.errors import LogError
from cvstats.plans import Plan
from evidence.contests import CONTESTS, Entries
from evidence.designs import Question, ask, describe
from evidence.intervals import ALPHA, digits, share
from evidence.learners import Array
from evidence.populations import Drawn
from evidence.simulate import join_runs, resample, split_runs

MARGIN = {"margin": "the effect"}
"""Placeholder for the effect of the contest: the smallest difference that is not equivalent."""


@dataclass(frozen=True)
class Match:
    """A contest, a number of points, a plan and questions, with the runs of the full study."""

    population: str
    n: int
    plan: str
    runs: int
    batch: int = 500


PLANS: dict[str, tuple[Callable[[int], Plan] | None, tuple[Question, ...]]] = {
    "10-fold": (
        lambda seed: plans.k_fold(10, rng=seed),
        (
            ask("compare", "trained"),
            ask("compare", "trained", method="wald"),
            ask("compare", "expected", method="corrected_t"),
            ask("compare", "trained", method="union"),
            ask("rope", "expected", margin=1e-9),
        ),
    ),
    "5 x 10-fold": (
        lambda seed: plans.repeated_k_fold(10, 5, rng=seed),
        (
            ask("compare", "trained"),
            ask("compare", "trained", method="wald"),
            ask("compare", "expected", method="corrected_t"),
        ),
    ),
    "nested_cv": (
        lambda seed: plans.nested_cv(5, 10, rng=seed),
        (ask("compare", "final", method="nested_cv"),),
    ),
    "10-fold of groups": (
        lambda seed: plans.k_fold(10, grouped=True, rng=seed),
        (
            ask("compare", "trained"),
            ask("compare", "trained", method="wild_cluster", options={"n_draws": 999}),
            ask("compare", "trained", method="wald"),
        ),
    ),
    "5 x 10-fold of groups": (
        lambda seed: plans.repeated_k_fold(10, 5, grouped=True, rng=seed),
        (
            ask("compare", "trained"),
            ask("compare", "trained", method="clustered"),
            ask("compare", "trained", method="wald"),
        ),
    ),
    "test set, labels": (
        None,
        (
            ask("compare", "trained"),
            ask("compare", "trained", anytime=True),
            ask("mcnemar", "trained"),
            ask("mcnemar", "trained", test="exact"),
            ask("mcnemar", "trained", test="chi2"),
            ask("mcnemar", "trained", test="mid-p"),
            ask("equivalence", "trained", **MARGIN),
        ),
    ),
    "test set, times": (
        None,
        (
            ask("compare", "trained", method="ordered"),
            ask("compare", "trained", method="ordered", options={"horizon": 4}),
            ask("compare", "trained", method="holdout"),
        ),
    ),
    "test set, many": (
        None,
        (
            ask("cochran_q", "trained"),
            ask("compare", "trained", adjust="holm"),
            ask("compare", "trained", adjust="max-t"),
            ask("winner", "trained"),
        ),
    ),
    "10-fold, many": (
        lambda seed: plans.k_fold(10, rng=seed),
        (
            ask("compare", "trained", adjust="holm"),
            ask("compare", "trained", adjust="max-t"),
            ask("winner", "trained"),
        ),
    ),
    "test set, sources": (
        None,
        (
            ask("friedman", "trained"),
            ask("friedman", "trained", test="f"),
            ask("nemenyi", "trained"),
            ask("compare", "trained", adjust="holm"),
        ),
    ),
}
"""How each contest is evaluated, and the questions."""


def compete(match: Match, runs: int, seed: int, effect: float) -> tuple[xr.DataArray, Any, int]:
    """Return the log of all models over all runs, the true errors (models, runs), and the fits."""
    rng = np.random.default_rng(seed)
    make, questions = PLANS[match.plan]
    drawn = CONTESTS[match.population].draw(match.n, runs, rng, effect)
    if not isinstance(drawn, Entries):
        truth = np.broadcast_to(drawn.truth[:, None], (len(drawn.truth), runs))
        return drawn.log, {"trained": truth}, 0
    asked = {question.truth for question in questions}
    made = [
        resample(Drawn(sample, drawn.groups), make(seed % 2**32), asked, rng)
        for sample in drawn.samples.values()
    ]
    log = xr.concat([one.log for one in made], "model").assign_coords(model=list(drawn.samples))
    truths = {name: np.array([one.truths[name] for one in made]) for name in made[0].truths}
    return log, truths, sum(one.fits for one in made)


def run(match: Match, runs: int, seed: int) -> dict[str, Array]:
    """Answer all questions, for equal models and for models that differ."""
    found: dict[str, Array] = {}
    effect = CONTESTS[match.population].effect
    for case, size, own in (("null", 0.0, seed), ("effect", effect, seed + 1)):
        log, truths, fits = compete(match, runs, own, size)
        found["fits"] = np.array(fits)
        for number, question in enumerate(PLANS[match.plan][1]):
            truth = truths[question.truth]
            if question.truth.startswith("expected"):
                truth = np.broadcast_to(truth.mean(axis=1, keepdims=True), truth.shape)
            asked = answer_all(log, question, truth, effect)
            for name, values in asked.items():
                found[f"{case}_{name}_{number}"] = values
            found[f"{case}_difference_{number}"] = truth[0] - truth[1]
    return found


def answer_all(
    log: xr.DataArray, question: Question, truth: Array, effect: float
) -> dict[str, Array]:
    """Answer a question for all runs, in batches."""
    parts, at = [], 0
    for part in split_runs(log):
        stop = at + part.sizes["run"]
        parts.append(answer(part, question, truth[:, at:stop], effect))
        at = stop
    return join_runs(parts)


def answer(log: xr.DataArray, question: Question, truth: Array, effect: float) -> dict[str, Array]:
    """Return whether each run misses the true difference, finds one, and has cautions."""
    options = {name: value for name, value in question.options.items() if value != "the effect"}
    if question.options.get("margin") == "the effect":
        options["margin"] = effect
    runs = log.sizes["run"]
    try:
        return READ[question.method](log, options, truth)
    except LogError:
        nothing = np.full(runs, np.nan)
        return {"missed": nothing, "found": nothing, "caution": np.zeros(runs, int)}


def read_compare(log: xr.DataArray, options: Mapping[str, Any], truth: Array) -> dict[str, Array]:
    """Read `compare`: with several pairs, an error in any pair of a run counts."""
    if log.sizes["model"] > 2:
        tables = [cvstats.compare(one, alpha=ALPHA, rng=0, **options) for _, one in each_run(log)]
        table = xr.concat(tables, "run")
        found = (table["p_adjusted"] < ALPHA).any("pair").values
        return {"missed": found, "found": found, "caution": table["caution"].max("pair").values}
    table = cvstats.compare(log, alpha=ALPHA, **{"adjust": None, **options}).isel(pair=0)
    difference = truth[0] - truth[1]
    lower, upper = table["lower"].values, table["upper"].values
    return {
        "missed": (difference < lower) | (difference > upper),
        "found": table["p_value"].values < ALPHA,
        "caution": table["caution"].values,
    }


def each_run(log: xr.DataArray) -> list[tuple[int, xr.DataArray]]:
    """Iterate over the logs of single runs."""
    return [(run, log.isel(run=run)) for run in range(log.sizes["run"])]


def read_equivalence(
    log: xr.DataArray, options: Mapping[str, Any], truth: Array
) -> dict[str, Array]:
    """Read `equivalence`: the roles are reversed, and missing an effect is the error."""
    table = cvstats.equivalence(log, alpha=ALPHA, **options).isel(pair=0)
    found = table["equivalent"].values.astype(bool)
    return {"missed": found, "found": found, "caution": table["caution"].values}


def read_p_value(method: str) -> Callable[..., dict[str, Array]]:
    """Read a test without an interval: finding a difference between equal models is the error."""

    def read(log: xr.DataArray, options: Mapping[str, Any], truth: Array) -> dict[str, Array]:
        table = getattr(cvstats, method)(log, **options)
        (over,) = [dim for dim in table["p_value"].dims if dim != "run"] or [None]
        p_value = table["p_value"] if over is None else table["p_value"].min(over)
        caution = table["caution"] if over is None else table["caution"].max(over)
        found = p_value.values < ALPHA
        return {"missed": found, "found": found, "caution": caution.values}

    return read


def read_rope(log: xr.DataArray, options: Mapping[str, Any], truth: Array) -> dict[str, Array]:
    """Read `rope`: a posterior probability above 97.5% that one is better counts as found."""
    table = cvstats.rope(log, **options).isel(pair=0)
    sure = np.maximum(table["p_better"].values, table["p_worse"].values)
    found = sure > 1 - ALPHA / 2
    return {"missed": found, "found": found, "caution": table["caution"].values}


def read_winner(log: xr.DataArray, options: Mapping[str, Any], truth: Array) -> dict[str, Array]:
    """Read `winner`: whether the interval misses the true error of the selected model."""
    means = log.mean([dim for dim in log.dims if dim not in ("model", "run")])
    selected = means.transpose("model", "run").values.argmin(axis=0)
    error = np.take_along_axis(truth, selected[None], axis=0)[0]
    table = cvstats.winner(log, alpha=ALPHA, rng=0, n_draws=2000, **options)
    missed = (error < table["lower"].values) | (error > table["upper"].values)
    return {
        "missed": missed, "found": np.full(len(missed), np.nan), "caution": table["caution"].values
    }  # fmt: skip


READ: dict[str, Callable[..., dict[str, Array]]] = {
    "compare": read_compare,
    "equivalence": read_equivalence,
    "rope": read_rope,
    "winner": read_winner,
    **{name: read_p_value(name) for name in ("mcnemar", "cochran_q", "friedman", "nemenyi")},
}


def summarize(match: Match, found: Mapping[str, Array]) -> list[dict[str, Any]]:
    """A row for each question.

    The size is the share of runs with equal models that err: the interval misses the true
    difference, or a difference is found. The power is the share of runs that find the effect.
    """
    make, questions = PLANS[match.plan]
    rows = []
    for number, question in enumerate(questions):
        null, effect = (
            {name: found[f"{case}_{name}_{number}"] for name in ("missed", "found", "caution")}
            for case in ("null", "effect")
        )
        if question.method == "equivalence":
            null, effect = effect, null
        refused = np.isnan(null["missed"].astype(float))
        silent = null["caution"][~refused] == 0
        rows.append({
            "method": question.method,
            "options": dict(question.options),
            "population": match.population,
            "plan": match.plan if make is None else describe(make(0)),
            "n": match.n,
            "target": question.truth,
            "alpha": ALPHA,
            "runs": len(refused),
            "size": share(null["missed"][~refused]),
            "effect": digits(abs(np.mean(found[f"effect_difference_{number}"]))),
            "power": None if question.method == "winner" else share(effect["found"][~refused]),
            "cautioned": share(~silent),
            "silent_size": share(null["missed"][~refused][silent]),
            "refused": share(refused),
            "fits": int(found["fits"]),
        })  # fmt: skip
    return rows


def list_matches() -> list[Match]:
    """Every match of the study."""
    matches = []
    for name in ("zero or mean", "extra feature", "soft thresholds", "one feature each"):
        matches += [Match(name, n, "10-fold", 4000) for n in (50, 100, 1000)]
        matches += [Match(name, 10_000, "10-fold", 1000, 50)]
        matches += [
            Match(name, 100, "5 x 10-fold", 2000),
            Match(name, 1000, "5 x 10-fold", 1000, 50),
        ]
        matches += [Match(name, 100, "nested_cv", 500, 100)]
    matches += [Match("neighbours", n, "10-fold", 4000, 250) for n in (100, 1000)]
    matches += [Match("neighbours", 100, "nested_cv", 500, 100)]
    matches += [Match("grouped pair", n, "10-fold of groups", 4000, 250) for n in (100, 300, 1000)]
    for name in ("grouped pair", "grouped zero or mean"):
        matches += [Match(name, n, "5 x 10-fold of groups", 1000, 50) for n in (300, 1000)]
    for name in ("two classifiers", "two good classifiers"):
        matches += [Match(name, n, "test set, labels", 4000) for n in (50, 200, 1000)]
        matches += [Match(name, 10_000, "test set, labels", 1000, 50)]
    for name in ("ten classifiers", "ten good classifiers"):
        matches += [Match(name, n, "test set, many", 1000, 50) for n in (50, 200, 1000)]
    matches += [Match("ten neighbours", 100, "10-fold, many", 500, 50)]
    matches += [Match("forecasts", n, "test set, times", 4000) for n in (50, 200, 1000)]
    for name in ("data sets", "skewed data sets"):
        matches += [Match(name, n, "test set, sources", 1000, 50) for n in (100, 300, 1000)]
    return matches
