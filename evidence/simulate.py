"""The log of a plan carried out on many data sets at once, and the errors that it estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from cvstats.log.loss_checks import LIMIT
from cvstats.plans import Plan
from evidence.learners import Array, Sample
from evidence.populations import Drawn, Given, Population

TRUTHS = {
    "trained": "error of the models that were trained, in each run its own",
    "expected": "mean error of models trained as these were",
    "final": "error of the model fitted to all points, in each run its own",
    "expected_at_n": "mean error of models fitted to all points",
    "these_sources": "mean error on these sources of models trained on the others",
    "one_source": "error on one new source of a model trained on these",
}
"""What an interval may be about. `expected` and `expected_at_n` are means over the runs."""


@dataclass(frozen=True)
class Simulation:
    """A log with the dimension ``run``, the true errors of each run and the fits of one run."""

    log: xr.DataArray
    truths: Mapping[str, Array]
    fits: int


def simulate(
    population: Population, plan: Plan | None, n: int, runs: int, seed: int, truths: set[str]
) -> Simulation:
    """Draw data sets, carry out the plan on all of them, and measure the requested errors."""
    rng = np.random.default_rng(seed)
    drawn = population.draw(n, runs, rng)
    if isinstance(drawn, Given):
        truth = np.broadcast_to(np.asarray(drawn.truth, dtype=float), (runs,))
        trained = truth if drawn.trained is None else drawn.trained
        return Simulation(drawn.log, {"trained": trained, "expected": truth}, 0)
    return resample(drawn, plan, truths, rng)


def split_runs(log: xr.DataArray) -> list[xr.DataArray]:
    """Split a log into batches of runs, small enough for intervals to examine every loss.

    Only then are the cautions the same as for logs of single runs.
    """
    runs = log.sizes["run"]
    block = max(1, LIMIT * runs // log.size)
    parts = []
    for start in range(0, runs, block):
        chosen = {"run": slice(start, start + block)}
        part = log.isel(chosen)
        part.attrs = {
            name: fact.isel(chosen) if isinstance(fact, xr.DataArray) else fact
            for name, fact in log.attrs.items()
        }
        parts.append(part)
    return parts


def join_runs(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Combine the answers for the parts of a log."""
    return {
        name: np.concatenate([part[name] for part in parts]) if values.ndim else values
        for name, values in parts[0].items()
    }


def resample(drawn: Drawn, plan: Plan, truths: set[str], rng: np.random.Generator) -> Simulation:
    """Carry out a plan, with each fit for all runs together."""
    sample, n = drawn.sample, drawn.sample.y.shape[1]
    bound = plan.bind(n, groups=drawn.groups)
    losses, levels, risks, sizes, own, rates, fits = [], [], [], [], [], [], 0
    for fit in bound:
        model = sample.fit(fit.train)
        fits += 1
        for at in fit.evaluations:
            losses.append(sample.loss(sample.y[:, at.points], sample.predict(model, at.points)))
            counts = {} if at.count is None else {"count": at.count}
            levels.append({**at.levels, "point": at.points, **counts})
        if fit.apparent:
            rates.append(no_information(sample, model))
        elif truths & {"trained", "expected"} and estimates(fit.evaluations[0].levels):
            risks.append(sample.risk(model))
            sizes.append(len(fit.evaluations[0].points))
        if truths & {"these_sources"}:
            (held_out,) = np.unique(drawn.groups[fit.evaluations[0].points])
            own.append(drawn.on_group(model, held_out))
    found: dict[str, Array] = {}
    if risks:
        found["trained"] = found["expected"] = np.average(risks, axis=0, weights=sizes)
    if truths & {"final", "expected_at_n", "one_source"}:
        whole = sample.fit(np.arange(n))
        found["final"] = found["expected_at_n"] = sample.risk(whole)
    if own:
        found["these_sources"] = np.mean(own, axis=0)
    if "one_source" in truths:
        found["one_source"] = drawn.on_group(whole, -1)
    log = make_log(losses, levels, drawn.groups, rates)
    if set(log.coords) == {"repetition", "point"}:  # random splits, whose log has no training size
        log.attrs["n_train"] = n - len(fit.evaluations[0].points)
    return Simulation(log, found, fits)


def estimates(levels: Mapping[str, object]) -> bool:
    """Whether an evaluation is part of the estimate, not only of its standard error."""
    return levels.get("sample", 0) == 0


def no_information(sample: Sample, model: object) -> Array:
    """Compute the mean loss over all pairs of a prediction and a truth, for each run."""
    n = sample.y.shape[1]
    predicted = sample.predict(model, np.arange(n))
    return sample.loss(sample.y[:, :, None], predicted[:, None, :]).mean(axis=(1, 2))


def make_log(
    losses: list[Array],
    levels: list[Mapping[str, object]],
    groups: Array | None,
    rates: list[Array],
) -> xr.DataArray:
    """Combine the losses of all evaluations, with their levels."""
    table = np.concatenate(losses, axis=1)
    lengths = [block.shape[1] for block in losses]
    coords = {
        name: np.concatenate(
            [np.broadcast_to(np.asarray(block[name]), length)
             for block, length in zip(levels, lengths, strict=True)]
        )
        for name in levels[0]
    }  # fmt: skip
    if groups is not None:
        coords["source"] = groups[coords["point"]]
    named = {name: ("evaluation", values) for name, values in coords.items()}
    log = xr.DataArray(table, named, dims=("run", "evaluation"))
    if len(rates) == 1:  # two-stage samples have one each, which no question uses
        log.attrs["no_information"] = xr.DataArray(rates[0], dims="run")
    return log
