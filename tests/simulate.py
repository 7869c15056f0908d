"""Simulated loss logs, many data sets at once: a column of a log for each data set.

A plan is a list of `Fit`: which points one model is trained and tested on, and the labels of
that test. A world holds as many data sets as there are runs and fits one simple model to all of
them in a few matrix operations. `log(plan, world)` is then a loss log with a column for each
run, which a method of the package takes as it takes any log, and `Coverage` compares what it
says with the truth, which a world knows in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd


class Fit(NamedTuple):
    """One model: the points it is trained on, those it is tested on, and labels of the test."""

    train: np.ndarray
    test: np.ndarray
    labels: dict[str, Hashable]


Plan = list[Fit]


# --- plans ----------------------------------------------------------------------------------------


def holdout(n: int, n_test: int) -> Plan:
    """The last points test a model that was trained on the others."""
    return [Fit(np.arange(n - n_test), np.arange(n - n_test, n), {})]


def folds_of(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """A random fold for each of n points; sizes differ by one at most."""
    return rng.permutation(np.arange(n) % k)


def k_fold(points: np.ndarray, folds: np.ndarray, **labels: Hashable) -> Plan:
    """Each fold is tested by a model trained on the others; `folds` has one for each point."""
    return [
        Fit(points[folds != fold], points[folds == fold], {**labels, "fold": int(fold)})
        for fold in np.unique(folds)
    ]


def repeated_k_fold(n: int, k: int, repetitions: int, rng: np.random.Generator) -> Plan:
    """Several random partitions."""
    every = np.arange(n)
    return [
        fit for r in range(repetitions) for fit in k_fold(every, folds_of(n, k, rng), repetition=r)
    ]


def subsampling(
    points: np.ndarray, n_test: int, splits: int, rng: np.random.Generator, **labels: Hashable
) -> Plan:
    """Random splits with test sets of one size."""
    fits = []
    for j in range(splits):
        order = rng.permutation(points)
        fits.append(Fit(order[n_test:], order[:n_test], {**labels, "repetition": j}))
    return fits


def paired_subsampling(
    n: int, n_test: int, splits: int, divisions: int, rng: np.random.Generator
) -> Plan:
    """Random splits of the data, and of both halves of random divisions."""
    fits = subsampling(np.arange(n), n_test, splits, rng, sample=0)
    for r in range(1, divisions + 1):
        order = rng.permutation(n)
        halves = order[: n // 2], order[n // 2 : 2 * (n // 2)]
        for sample, half in zip((2 * r - 1, 2 * r), halves, strict=True):
            fits += subsampling(half, n_test, splits, rng, sample=sample)
    return fits


def nested_cv(n: int, k: int, repetitions: int, rng: np.random.Generator) -> Plan:
    """Each fold held out while the others are cross-validated."""
    every = np.arange(n)
    fits = []
    for r in range(repetitions):
        folds = folds_of(n, k, rng)
        for outer in range(k):
            for fold in range(k):
                train = every[(folds != outer) & (folds != fold)]
                labels = {"repetition": r, "outer": outer, "fold": fold}
                fits.append(Fit(train, every[folds == fold], labels))
    return fits


def replace_one(n: int, k: int, repetitions: int, rng: np.random.Generator) -> Plan:
    """Cross-validation of the data, of a half, and of that half with each point replaced."""
    h = n // 2
    order = rng.permutation(n)
    half, other = order[:h], order[h : 2 * h]
    fits = []
    for r in range(repetitions):
        fits += k_fold(np.arange(n), folds_of(n, k, rng), sample=0, repetition=r)
        folds = folds_of(h, k, rng)
        fits += k_fold(half, folds, sample=1, repetition=r)
        for at in range(h):
            points = half.copy()
            points[at] = other[at]
            fits += k_fold(points, folds, sample=2 + at, repetition=r)
    return fits


def index_of(plan: Plan) -> pd.MultiIndex:
    """The levels of the log that a plan makes."""
    names = list(plan[0].labels)
    sizes = [len(fit.test) for fit in plan]
    columns = [np.repeat([fit.labels[name] for fit in plan], sizes) for name in names]
    points = np.concatenate([fit.test for fit in plan])
    return pd.MultiIndex.from_arrays([*columns, points], names=[*names, "point"])


# --- worlds ---------------------------------------------------------------------------------------


class World(Protocol):
    """Data sets, and what the losses and the risk of a model are in each of them."""

    n: int
    runs: int

    def losses(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Losses of the tested points, of shape (test points, runs)."""

    def risk(self, train: np.ndarray) -> np.ndarray:
        """The expected loss of the trained model on a new point, of shape (runs,)."""

    def expected_risk(self, size: int) -> float:
        """The mean risk of models trained on so many points."""


@dataclass
class MeanWorld:
    """Standard normal outcomes, predicted by the mean of the training points; squared loss."""

    n: int
    runs: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.y = self.rng.normal(size=(self.n, self.runs))

    def losses(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        return (self.y[test] - self.y[train].mean(axis=0)) ** 2

    def risk(self, train: np.ndarray) -> np.ndarray:
        return 1 + self.y[train].mean(axis=0) ** 2

    def expected_risk(self, size: int) -> float:
        return 1 + 1 / size


@dataclass
class RidgeWorld:
    """A linear model with normal covariates and noise, fitted by ridge regression; squared loss."""

    n: int
    runs: int
    rng: np.random.Generator
    p: int = 5
    penalty: float = 1.0
    fitted: dict[bytes, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.beta = np.linspace(1, 0, self.p)
        self.x = self.rng.normal(size=(self.runs, self.n, self.p))
        self.y = self.x @ self.beta + self.rng.normal(size=(self.runs, self.n))

    def coefficients(self, train: np.ndarray) -> np.ndarray:
        """Of shape (runs, p); remembered, since nested plans train on the same points twice."""
        key = np.sort(train).tobytes()
        if key not in self.fitted:
            x, y = self.x[:, train], self.y[:, train]
            gram = x.swapaxes(1, 2) @ x + self.penalty * np.eye(self.p)
            self.fitted[key] = np.linalg.solve(gram, x.swapaxes(1, 2) @ y[:, :, None])[:, :, 0]
        return self.fitted[key]

    def losses(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        fit = self.coefficients(train)
        predicted = (self.x[:, test] @ fit[:, :, None])[:, :, 0]
        return ((self.y[:, test] - predicted) ** 2).T

    def risk(self, train: np.ndarray) -> np.ndarray:
        return 1 + ((self.coefficients(train) - self.beta) ** 2).sum(axis=1)

    def expected_risk(self, size: int) -> float:
        """The mean over all runs of the risk of a model trained on so many points."""
        return float(self.risk(np.arange(size)).mean())


def log(plan: Plan, world: World) -> pd.DataFrame:
    """The loss log of a plan, a column for each run."""
    table = np.empty((sum(len(fit.test) for fit in plan), world.runs))
    start = 0
    for fit in plan:
        table[start : start + len(fit.test)] = world.losses(fit.train, fit.test)
        start += len(fit.test)
    return pd.DataFrame(table, index=index_of(plan))


def mean_risk(plan: Plan, world: World) -> np.ndarray:
    """The risk of the models of a plan in each run, weighted by the sizes of their tests."""
    sizes = np.array([len(fit.test) for fit in plan], dtype=float)
    return np.average([world.risk(fit.train) for fit in plan], axis=0, weights=sizes)


# --- coverage -------------------------------------------------------------------------------------


class Coverage(NamedTuple):
    """How often intervals contained their target."""

    name: str
    target: str
    share: float
    error: float
    width: float
    se_ratio: float
    runs: int

    @property
    def line(self) -> str:
        """One row of a table."""
        return (
            f"  {self.name:<34} {self.target:<26} {100 * self.share:5.1f}% ± "
            f"{100 * self.error:3.1f}  {self.width:6.3f}  {self.se_ratio:6.2f}"
        )


def coverage(name: str, table: pd.DataFrame, target: str, truth: np.ndarray | float) -> Coverage:
    """Count how many intervals (rows) contain the truth; an empty one contains nothing.

    The ratio is that of the root mean squared standard error to the root mean squared
    distance of the estimate from the truth.
    """
    held = ((table["lower"] <= truth) & (truth <= table["upper"])).to_numpy()
    share = float(held.mean())
    error = float(np.sqrt(share * (1 - share) / len(held)))
    distance = np.sqrt(np.mean((table["estimate"] - truth) ** 2))
    ratio = float(np.sqrt(np.mean(table["se"] ** 2)) / distance)
    width = float((table["upper"] - table["lower"]).mean())
    return Coverage(name, target, share, error, width, ratio, len(held))


def report(title: str, rows: Iterable[Coverage]) -> str:
    """A table of coverages, to be printed."""
    rows = list(rows)
    head = f"  {'interval':<34} {'target':<26} {'covered':>12}  {'width':>6}  {'se/sd':>6}"
    runs = ", ".join(f"{n:,}" for n in sorted({row.runs for row in rows}))
    return "\n".join([f"\n{title} ({runs} runs, nominal 95%)", head, *(row.line for row in rows)])


Method = Callable[[pd.DataFrame], pd.DataFrame]


def study(
    plan: Plan,
    world: World,
    methods: Sequence[tuple[str, Method]],
    targets: Sequence[tuple[str, np.ndarray | float]],
) -> list[Coverage]:
    """Every method on one log against every target."""
    losses = log(plan, world)
    return [
        coverage(name, table, target, truth)
        for name, method in methods
        for table in [method(losses)]
        for target, truth in targets
    ]
