"""Populations for comparisons: several models on the same points, with known differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from scipy import special

from evidence.learners import (
    Array,
    Linear,
    Location,
    Moments,
    Neighbour,
    Sample,
    SoftThreshold,
    Wave,
)
from evidence.populations import GROUP, autoregression


@dataclass(frozen=True)
class Entries:
    """Learners on the same data sets, by name."""

    samples: Mapping[str, Sample]
    groups: Array | None = None


@dataclass(frozen=True)
class FixedEntries:
    """A log with the dimension ``model``, and the true error of each model."""

    log: xr.DataArray
    truth: Array


@dataclass(frozen=True)
class Contest:
    """Models to compare, equally good if the effect is 0."""

    name: str
    title: str
    kind: str
    truth: str
    effect: float
    draw: Callable[[int, int, np.random.Generator, float], Entries | FixedEntries]
    design: str = "points"
    reference: str = ""
    stable: bool = True
    """Whether the difference of the losses is relatively stable if there is no effect."""


def zero_or_mean(
    n: int, runs: int, rng: np.random.Generator, effect: float, *, grouped: bool = False
) -> Entries:
    """Always 0, or the mean of the training points; without effect outcomes have mean 0."""
    mean = np.sqrt(effect)
    noise = rng.normal(size=(runs, n))
    groups = np.repeat(np.arange(n // GROUP), GROUP) if grouped else None
    if groups is not None:
        offsets = rng.normal(size=(runs, n // GROUP))[:, groups]
        noise = np.sqrt(0.8) * noise + np.sqrt(0.2) * offsets
    y = mean + noise

    def risk(center: Array) -> Array:
        return 1 + (center - mean) ** 2

    def always_zero(values: Array, axis: int) -> Array:
        return np.zeros(len(values))

    samples = {"zero": Location(y, always_zero, risk), "mean": Location(y, np.mean, risk)}
    return Entries(samples, groups)


def regression(
    n: int, runs: int, rng: np.random.Generator, beta: Array
) -> tuple[Array, Array, Moments]:
    """Normal features and noise."""
    x = rng.normal(size=(runs, n, len(beta)))
    moments = Moments(np.eye(len(beta)), beta, float(beta @ beta + 1))
    return x, x @ beta + rng.normal(size=(runs, n)), moments


def extra_feature(n: int, runs: int, rng: np.random.Generator, effect: float) -> Entries:
    """Least squares without and with a sixth feature, which is noise without an effect."""
    beta = np.array([0.5] * 5 + [np.sqrt(effect)])
    data = regression(n, runs, rng, beta)
    return Entries({"with": Linear(*data), "without": Linear(*data, features=tuple(range(5)))})


def soft_thresholds(n: int, runs: int, rng: np.random.Generator, effect: float) -> Entries:
    """Two soft thresholds, 1 and 2 standard errors, with all 10 coefficients equal to 0."""
    data = regression(n, runs, rng, np.full(10, np.sqrt(effect / 10)))
    return Entries({
        name: SoftThreshold(*data, threshold=size / np.sqrt(n))
        for name, size in (("one", 1.0), ("two", 2.0))
    })  # fmt: skip


def one_feature_each(n: int, runs: int, rng: np.random.Generator, effect: float) -> Entries:
    """Least squares on the first or on the second feature, whose difference is stable."""
    data = regression(n, runs, rng, np.array([np.sqrt(0.5 + effect), np.sqrt(0.5)]))
    return Entries({"first": Linear(*data, features=(0,)), "second": Linear(*data, features=(1,))})


def neighbours(
    n: int, runs: int, rng: np.random.Generator, effect: float, *, models: int = 2
) -> Entries:
    """The nearest neighbor along one of several features, equivalent without an effect."""
    x = rng.random((models, runs, n))
    scales = np.ones(models)
    scales[0] += effect
    waves = [Wave(0.0, scale) for scale in scales]
    mean_of = [wave.integral(np.array(1.0)) - wave.integral(np.array(0.0)) for wave in waves]
    square_of = [
        wave.integral_of_square(np.array(1.0)) - wave.integral_of_square(np.array(0.0))
        for wave in waves
    ]
    variances = np.array(square_of) - np.array(mean_of) ** 2
    y = sum(wave(values) for wave, values in zip(waves, x, strict=True))
    y = y + 0.5 * rng.normal(size=(runs, n))
    entries = {}
    for model in range(models):
        rest = sum(mean_of) - mean_of[model]  # the mean contribution of the other features
        wave = Wave(float(rest), float(scales[model]))
        noise = 0.25 + float(variances.sum() - variances[model])
        entries[f"feature {model}"] = Neighbour(x[model], y, wave, noise)
    return Entries(entries)


def grouped_pair(n: int, runs: int, rng: np.random.Generator, effect: float) -> Entries:
    """One feature each, whose coefficients differ from group to group."""
    groups = np.repeat(np.arange(n // GROUP), GROUP)
    beta = np.array([np.sqrt(0.5 + effect), np.sqrt(0.5)])
    spread = 0.5
    x = rng.normal(size=(runs, n, 2))
    own = beta + spread * rng.normal(size=(runs, n // GROUP, 2))
    y = (x * own[:, groups]).sum(axis=2) + rng.normal(size=(runs, n))
    moments = Moments(np.eye(2), beta, float(beta @ beta + 2 * spread**2 + 1))
    pair = {"first": (0,), "second": (1,)}
    return Entries({name: Linear(x, y, moments, features=at) for name, at in pair.items()}, groups)


def fixed(losses: Array, truth: Array, **coords: Array) -> FixedEntries:
    """A log of losses of shape (models, runs, points)."""
    names = {"model": [f"model {number}" for number in range(len(losses))]}
    levels = {name: ("point", values) for name, values in coords.items()}
    log = xr.DataArray(losses, {**names, **levels}, dims=("model", "run", "point"))
    return FixedEntries(log, truth)


def classifiers(
    n: int, runs: int, rng: np.random.Generator, effect: float, *, models: int, rate: float = 0.2
) -> FixedEntries:
    """Fixed classifiers whose errors are correlated; the first is better by the effect."""
    rates = np.full(models, rate)
    rates[0] -= effect
    latent = np.sqrt(0.8) * rng.normal(size=(1, runs, n))
    latent = latent + np.sqrt(0.2) * rng.normal(size=(models, runs, n))
    return fixed((latent < special.ndtri(rates)[:, None, None]).astype(float), rates)


def forecasts(n: int, runs: int, rng: np.random.Generator, effect: float) -> FixedEntries:
    """Two forecasters whose losses are autocorrelated (0.6)."""
    shared = 0.5 * autoregression(n, runs, rng, 0.6)
    losses = [2 + shared + autoregression(n, runs, rng, 0.6) for _ in range(2)]
    losses[0] -= effect
    return fixed(np.array(losses), np.array([2 - effect, 2.0]), point=np.arange(n))


def data_sets(n: int, runs: int, rng: np.random.Generator, effect: float) -> FixedEntries:
    """Four models on data sets of 10 points; the best model may differ between data sets."""
    count = n // GROUP
    own = 0.5 * rng.normal(size=(4, runs, count)) + rng.normal(size=(1, runs, count))
    own[0] -= effect
    groups = np.repeat(np.arange(count), GROUP)
    losses = 3 + own[:, :, groups] + rng.normal(size=(4, runs, n))
    return fixed(losses, np.array([3 - effect, 3.0, 3.0, 3.0]), source=groups)


def skewed_data_sets(n: int, runs: int, rng: np.random.Generator, effect: float) -> FixedEntries:
    """Four models whose losses are lognormal, on data sets of very different difficulty."""
    count = n // GROUP
    own = np.exp(0.3 * rng.normal(size=(4, runs, count)) + rng.normal(size=(1, runs, count)))
    own[0] *= 1 - effect
    groups = np.repeat(np.arange(count), GROUP)
    losses = own[:, :, groups] * rng.exponential(size=(4, runs, n))
    mean = np.exp((0.3**2 + 1) / 2)
    return fixed(losses, np.array([1 - effect, 1.0, 1.0, 1.0]) * mean, source=groups)


RELATIVE = "Bayle, Janson and Mackey (2025), arXiv:2508.04409"
EXACT = "closed form for each fitted model"

_LIST = [
    Contest("zero or mean", "Always 0, or the mean: of outcomes with mean 0 both have one limit",
            "squared", EXACT, 0.05, zero_or_mean, reference=RELATIVE, stable=False),
    Contest("extra feature", "Least squares without and with a feature that means nothing",
            "squared", EXACT, 0.1, extra_feature, reference=RELATIVE, stable=False),
    Contest("soft thresholds", "Soft thresholding by 1 and by 2 standard errors, nothing to find",
            "squared", EXACT, 0.5, soft_thresholds, reference=RELATIVE, stable=False),
    Contest("one feature each", "Least squares on one of two features that are equally good",
            "squared", EXACT, 0.3, one_feature_each),
    Contest("neighbours", "1-nearest-neighbor regression along one of two features",
            "squared", EXACT, 0.3, neighbours, stable=False),
    Contest("grouped pair", "One of two features, whose coefficients differ between groups of 10",
            "squared", EXACT, 0.3, grouped_pair, "groups"),
    Contest("grouped zero or mean", "Always 0, or the mean, of outcomes in groups of 10",
            "squared", EXACT, 0.1, partial(zero_or_mean, grouped=True), "groups", RELATIVE,
            stable=False),
    Contest("two classifiers", "Two fixed classifiers, 20% errors, mostly the same ones",
            "zero_one", "closed form", 0.04, partial(classifiers, models=2)),
    Contest("two good classifiers", "Two fixed classifiers, 3% errors, mostly the same ones",
            "zero_one", "closed form", 0.02, partial(classifiers, models=2, rate=0.03)),
    Contest("ten classifiers", "Ten fixed classifiers, 20% errors, mostly the same ones",
            "zero_one", "closed form", 0.04, partial(classifiers, models=10)),
    Contest("ten neighbours", "1-nearest-neighbor regression along one of ten features",
            "squared", EXACT, 0.3, partial(neighbours, models=10), stable=False),
    Contest("forecasts", "Two forecasters whose losses are autocorrelated (0.6)",
            "squared", "closed form", 0.2, forecasts, "ordered"),
    Contest("data sets", "Four models on data sets of 10 points each", "absolute", "closed form",
            0.4, data_sets, "sources"),
    Contest("ten good classifiers", "Ten fixed classifiers, 5% errors, mostly the same ones",
            "zero_one", "closed form", 0.03, partial(classifiers, models=10, rate=0.05)),
    Contest("skewed data sets", "Four models on data sets of very different difficulty",
            "absolute", "closed form", 0.3, skewed_data_sets, "sources"),
]  # fmt: skip

CONTESTS = {contest.name: contest for contest in _LIST}
"""Every contest, by name."""
