"""Data sets of many runs at once, their learners, and the true risks.

A sample contains ``runs`` data sets of ``n`` points. Its learner is fitted to the same rows of all
data sets in a few array operations, and the expected loss of each fitted model is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special

Array = np.ndarray
Loss = Callable[[Array, Array], Array]


def squared(truth: Array, prediction: Array) -> Array:
    """Squared error; for predicted labels it is 0 or 1."""
    return (truth - prediction) ** 2


def absolute(truth: Array, prediction: Array) -> Array:
    return np.abs(truth - prediction)


class Sample(Protocol):
    """Data sets with one learner: rows are runs, columns are points."""

    y: Array
    loss: Loss

    def fit(self, train: Array) -> Any:
        """Fit to these points of every run, possibly with repeats."""

    def predict(self, model: Any, points: Array) -> Array:
        """Predictions, of shape (runs, points)."""

    def risk(self, model: Any) -> Array:
        """The expected loss of the fitted models on a new point, of shape (runs,)."""


@dataclass(frozen=True)
class Location:
    """A constant prediction: the mean or the median of the training points."""

    y: Array
    center: Callable[..., Array]
    risk_of: Callable[[Array], Array]
    loss: Loss = squared

    def fit(self, train: Array) -> Array:
        return self.center(self.y[:, train], axis=1)

    def predict(self, model: Array, points: Array) -> Array:
        return np.broadcast_to(model[:, None], (len(model), len(points)))

    def risk(self, model: Array) -> Array:
        return self.risk_of(model)


@dataclass(frozen=True)
class Density:
    """A normal density fitted to standard normal points, judged by its log loss."""

    y: Array

    @staticmethod
    def loss(truth: Array, prediction: Array) -> Array:
        """Minus the log density; a prediction is the mean and, as imaginary part, the sd."""
        mean, sd = prediction.real, prediction.imag
        return 0.5 * np.log(2 * np.pi) + np.log(sd) + ((truth - mean) / sd) ** 2 / 2

    def fit(self, train: Array) -> Array:
        y = self.y[:, train]
        return y.mean(axis=1) + 1j * y.std(axis=1)

    def predict(self, model: Array, points: Array) -> Array:
        return np.broadcast_to(model[:, None], (len(model), len(points)))

    def risk(self, model: Array) -> Array:
        mean, sd = model.real, model.imag
        return 0.5 * np.log(2 * np.pi) + np.log(sd) + (1 + mean**2) / (2 * sd**2)


@dataclass(frozen=True)
class Moments:
    """E xx', E xy and E y^2, which determine the squared error of every linear rule."""

    xx: Array
    xy: Array
    yy: float

    def risk(self, coefficients: Array) -> Array:
        """E (y - x'b)^2 for coefficients of shape (..., features)."""
        quadratic = np.einsum("...i,ij,...j->...", coefficients, self.xx, coefficients)
        return self.yy - 2 * coefficients @ self.xy + quadratic


@dataclass(frozen=True)
class Linear:
    """Ridge regression; the minimum-norm solution if there are more features than points.

    ``features`` are the columns that it uses, by default all.
    """

    x: Array
    y: Array
    moments: Moments
    penalty: float = 0.0
    features: tuple[int, ...] | None = None
    loss: Loss = squared

    def fit(self, train: Array) -> Array:
        rows, counts = np.unique(train, return_counts=True)
        weights = np.sqrt(counts)
        x, y = self.x[:, rows] * weights[:, None], self.y[:, rows] * weights
        if self.features is None:
            return self.solve(x, y)
        found = np.zeros((len(y), x.shape[2]))
        found[:, self.features] = self.solve(x[:, :, self.features], y)
        return found

    def solve(self, x: Array, y: Array) -> Array:
        """Solve the equations on the smaller side of the design matrix."""
        across = x.swapaxes(1, 2)
        rows, columns = x.shape[1:]
        if rows < columns and not self.penalty:
            return (across @ np.linalg.solve(x @ across, y[:, :, None]))[:, :, 0]
        gram = across @ x + self.penalty * np.eye(columns)
        return np.linalg.solve(gram, across @ y[:, :, None])[:, :, 0]

    def predict(self, model: Array, points: Array) -> Array:
        return (self.x[:, points] @ model[:, :, None])[:, :, 0]

    def risk(self, model: Array) -> Array:
        return self.moments.risk(model)


@dataclass(frozen=True)
class SoftThreshold(Linear):
    """Marginal regression coefficients, each moved towards zero by a threshold."""

    threshold: float = 0.0

    def solve(self, x: Array, y: Array) -> Array:
        marginal = (x.swapaxes(1, 2) @ y[:, :, None])[:, :, 0] / x.shape[1]
        return np.sign(marginal) * np.maximum(np.abs(marginal) - self.threshold, 0.0)


@dataclass(frozen=True)
class Wave:
    """The function offset + scale sin(6x) on the unit interval, and its integrals."""

    offset: float
    scale: float

    def __call__(self, x: Array) -> Array:
        return self.offset + self.scale * np.sin(6 * x)

    def integral(self, x: Array) -> Array:
        """Integral from 0 to x, up to a constant."""
        return self.offset * x - self.scale * np.cos(6 * x) / 6

    def integral_of_square(self, x: Array) -> Array:
        """Integral of the squared function, up to a constant."""
        of_sine = x / 2 - np.sin(12 * x) / 24
        mixed = -self.offset * self.scale * np.cos(6 * x) / 3
        return self.offset**2 * x + mixed + self.scale**2 * of_sine


@dataclass(frozen=True)
class Neighbour:
    """The nearest neighbor on the unit interval, which interpolates and is far from stable.

    The mean of y given x is a wave. Its risk is an integral over the cells of the training points,
    which extend halfway to their neighbors.
    """

    x: Array
    y: Array
    wave: Wave
    noise: float | None
    """The variance of y given x; None for labels 0 and 1, whose mean is the wave."""
    loss: Loss = squared

    def fit(self, train: Array) -> tuple[Array, Array]:
        """Return the sorted training points of each run, and their predictions."""
        order = np.argsort(self.x[:, train], axis=1)
        rows = np.arange(len(self.x))[:, None]
        return self.x[:, train][rows, order], self.y[:, train][rows, order]

    def predict(self, model: tuple[Array, Array], points: Array) -> Array:
        x, y = model
        runs = 2.0 * np.arange(len(x))[:, None]  # far apart: one search for all runs
        edges = np.concatenate([(x[:, 1:] + x[:, :-1]) / 2, np.full_like(x[:, :1], 1.5)], axis=1)
        cell = np.searchsorted((edges + runs).ravel(), (self.x[:, points] + runs).ravel())
        return y.ravel()[cell].reshape(len(x), -1)

    def risk(self, model: tuple[Array, Array]) -> Array:
        x, y = model
        inner = (x[:, 1:] + x[:, :-1]) / 2
        edges = np.concatenate([np.zeros_like(x[:, :1]), inner, np.ones_like(x[:, :1])], axis=1)
        first = np.diff(self.wave.integral(edges), axis=1)
        if self.noise is None:  # E (Y - y)^2 = p (1 - 2y) + y for labels
            return (first * (1 - 2 * y) + y * np.diff(edges, axis=1)).sum(axis=1)
        second = np.diff(self.wave.integral_of_square(edges), axis=1)
        cells = second - 2 * y * first + y**2 * np.diff(edges, axis=1)
        return self.noise + cells.sum(axis=1)


@dataclass(frozen=True)
class Estimators:
    """Any estimator of scikit-learn, one fit after the other."""

    x: Array
    y: Array
    make: Callable[[], Any]
    risk_of: Callable[[Any], float]
    loss: Loss = squared

    def fit(self, train: Array) -> list[Any]:
        return [self.make().fit(x[train], y[train]) for x, y in zip(self.x, self.y, strict=True)]

    def predict(self, model: list[Any], points: Array) -> Array:
        pairs = zip(model, self.x, strict=True)
        return np.array([fitted.predict(x[points]) for fitted, x in pairs], dtype=float)

    def risk(self, model: list[Any]) -> Array:
        return np.array([self.risk_of(fitted) for fitted in model])


@dataclass(frozen=True)
class Logistic:
    """Logistic regression by Newton's method; the penalty only matters if classes are separable."""

    x: Array
    y: Array
    truth: Array
    penalty: float = 0.01
    steps: int = 12
    loss: Loss = squared

    def fit(self, train: Array) -> Array:
        x, y = self.x[:, train], self.y[:, train]
        across = x.swapaxes(1, 2)
        found = np.zeros((len(x), x.shape[2], 1))
        for _ in range(self.steps):
            chance = special.expit(x @ found)
            gradient = across @ (y[:, :, None] - chance) - self.penalty * found
            curvature = across @ (x * chance * (1 - chance)) + self.penalty * np.eye(x.shape[2])
            found = found + np.linalg.solve(curvature, gradient)
        return found[:, :, 0]

    def predict(self, model: Array, points: Array) -> Array:
        return ((self.x[:, points] @ model[:, :, None])[:, :, 0] > 0).astype(float)

    def risk(self, model: Array) -> Array:
        return logistic_error(model, np.zeros(len(model)), self.truth)


def logistic_error(coefficients: Array, intercept: Array, truth: Array) -> Array:
    """Error of rules 1(x'b + a > 0) for standard normal x and P(Y = 1) = expit(x'truth).

    Given z = x'truth / |truth|, x'b is normal with a known mean and variance; the rest is
    quadrature over z.
    """
    size = np.linalg.norm(truth)
    nodes = np.linspace(-8, 8, 401)
    weights = np.exp(-(nodes**2) / 2)
    weights = weights / weights.sum()
    along = coefficients @ truth / size
    across = np.sqrt(np.maximum((coefficients**2).sum(axis=-1) - along**2, 1e-300))
    positive = special.ndtr((along[:, None] * nodes + intercept[:, None]) / across[:, None])
    chance = special.expit(size * nodes)
    return (chance * (1 - positive) + (1 - chance) * positive) @ weights
