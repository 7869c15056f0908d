"""The variance of cross-validation over data sets of the same sources, and its estimators.

The experiment of Geras and Sutton (2013, figure 6) with sources whose regressions are known: ten
sources are fixed, and their points are redrawn in every run. Ridge regression is stable, the
nearest neighbor is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import cvstats
from cvstats import plans
from evidence.intervals import digits
from evidence.learners import Array, Linear, Moments, Neighbour, Wave
from evidence.populations import Drawn
from evidence.simulate import resample

SOURCES = 10
BY_SOURCE = ("theta_gamma", "theta_a", "theta_b")
BY_FOLD = ("theta_3", "theta_5")


@dataclass(frozen=True)
class Experiment:
    """The number of points per source."""

    n: int
    runs: int
    batch: int = 250
    learner: str = "ridge"
    population: str = "ten sources that stay"


def draw(per_source: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Draw new points of ten sources with different coefficients, for ridge regression."""
    x = rng.normal(size=(runs, SOURCES * per_source, 4))
    x[:, :, 0] = 1
    own = np.random.default_rng(2013).normal([0.0, 1, 1, 1], 0.4, size=(SOURCES, 4))
    groups = np.repeat(np.arange(SOURCES), per_source)
    y = np.einsum("rni,ni->rn", x, own[groups]) + rng.normal(size=x.shape[:2])
    unused = Moments(np.eye(4), np.zeros(4), 1.0)
    return Drawn(Linear(x, y, unused, penalty=1.0), groups)


def draw_neighbours(per_source: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Draw new points of ten sources with different levels, for the nearest neighbor."""
    groups = np.repeat(np.arange(SOURCES), per_source)
    own = np.random.default_rng(2013).normal(0, 0.4, SOURCES)[groups]
    wave = Wave(0.0, 1.0)
    x = rng.random((runs, SOURCES * per_source))
    y = wave(x) + own + 0.5 * rng.normal(size=x.shape)
    return Drawn(Neighbour(x, y, wave, noise=0.25), groups)


LEARNERS = {"ridge": draw, "nearest neighbor": draw_neighbours}


def run(cell: Experiment, runs: int, seed: int) -> dict[str, Array]:
    """Means and estimated variances: one source left out at a time, and random folds."""
    rng = np.random.default_rng(seed)
    drawn = LEARNERS[cell.learner](cell.n, runs, rng)
    by_source = resample(drawn, plans.leave_one_source_out(), set(), rng).log
    without = Drawn(drawn.sample)
    by_fold = resample(without, plans.k_fold(SOURCES, rng=seed % 2**32), set(), rng).log
    estimators, components = cvstats.source_estimators(by_source), cvstats.decompose(by_fold)
    return {
        "mean_by_source": by_source.mean("evaluation").values,
        "mean_by_fold": by_fold.mean("evaluation").values,
        **{name: estimators[name].values for name in BY_SOURCE},
        **{name: components[name].values for name in BY_FOLD},
    }


def summarize(cell: Experiment, found: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Return one row: both variances, and the mean of each estimator relative to its variance."""
    by_source, by_fold = (float(np.var(found[f"mean_by_{what}"])) for what in ("source", "fold"))
    return [{
        "learner": cell.learner,
        "points": cell.n,
        "runs": len(found["mean_by_source"]),
        "theta_cvs": digits(by_source),
        "theta_cvr": digits(by_fold),
        **{name: digits(float(found[name].mean()) / by_source) for name in BY_SOURCE},
        **{name: digits(float(found[name].mean()) / by_fold) for name in BY_FOLD},
    }]  # fmt: skip


def list_experiments() -> list[Experiment]:
    """From few points of each source to many."""
    ridge = [Experiment(n, 4000, batch=250 if n <= 100 else 50) for n in (5, 20, 100, 500)]
    return [*ridge, *(Experiment(n, 2000, 250, "nearest neighbor") for n in (5, 20, 100))]
