"""Quadratic estimators of the variance of a cross-validated mean, and its components.

Losses of one fold share a covariance omega, losses of different folds gamma, and each has the
variance sigma^2. With weights ``v_k`` of the folds the variance of the mean is

    theta = H sigma^2 + (S2 - H) omega + (1 - S2) gamma,  S2 = sum v_k^2,  H = sum v_k^2 / n_k.

One log gives unbiased estimates of ``sigma^2 - omega`` (W) and ``omega - gamma`` (D) only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cvstats.core.cells import Moments
from cvstats.core.types import FloatArray
from cvstats.errors import LogError

ESTIMATORS = ("theta_1", "theta_2", "theta_3", "theta_4", "theta_5")


BIASES = {
    "theta_1": "mu^2 (none if mu = 0)",
    "theta_2": "-omega (none if omega = 0)",
    "theta_3": "-gamma (none if gamma = 0)",
    "theta_4": "-S2 omega - (1 - S2) gamma (none if omega = gamma = 0)",
    "theta_5": "omega - 2 gamma (none if omega = 2 gamma)",
}
"""Bias of each estimator of theta, with S2 the sum of the squared weights of the folds."""


@dataclass(frozen=True, eq=False)
class Components:
    """What one partition shows of the variance; arrays have a number for each column.

    ``mean`` is relative to ``origin``, ``within`` is W, ``between`` is D, ``spread`` the sample
    variance of the fold means and
    ``theta_a`` the sum of ``v_k^2 var_k / n_k``; ``even`` says that all ``v_k`` are equal.
    """

    h: float
    s2: float
    origin: FloatArray
    mean: FloatArray
    within: FloatArray
    between: FloatArray
    spread: FloatArray
    products: FloatArray
    theta_a: FloatArray
    even: bool
    folds: int
    points: int

    def theta(self, number: int) -> FloatArray:
        """Compute an estimator of Table 2 or section 5 of Geras and Sutton, for any fold sizes."""
        floor = self.h * self.within
        if number == 1:
            return (self.origin + self.mean) ** 2
        if number == 3 and self.even:
            return self.spread / self.folds  # the same, and never below zero by rounding
        factor = {2: -(1 - self.s2), 3: self.s2, 4: 0.0, 5: 1 + self.s2}[number]
        return floor if factor == 0 else floor + factor * self.between

    def to_columns(self) -> dict[str, FloatArray]:
        """List what this partition shows, raw, by the names that users see."""
        if self.points == self.folds:
            raise refuse_single_points(self)
        return {
            "sigma2_minus_omega": self.within,
            "omega_minus_gamma": self.between,
            "theta_minus_gamma": self.theta(3),
            **{name: self.theta(int(name[-1])) for name in ESTIMATORS},
            "theta_a": self.theta_a,
        }

    def with_bias(self, bias: Sequence[float]) -> FloatArray:
        """Compute the estimator whose bias is ``a1 sigma^2 + a2 omega + a3 gamma + a4 mu^2``."""
        a1, a2, a3 = bias
        a4 = a1 + a2 + a3 + 1  # Proposition 1: a1 + a2 + a3 - a4 = -1
        return (
            (self.h + a1) * self.within
            + (self.s2 + a1 + a2) * self.between
            + (a4 * self.products if abs(a4) > 1e-12 else 0.0)
        )


def estimate_components(part: Moments, fold_weights: str = "size") -> Components:
    """Compute the components of one partition with at least two folds.

    Where every fold holds one point (leave-one-out), W and D are undefined and NaN, and so is
    what rests on them.
    """
    n_k, k = part.count, len(part.count)
    n = n_k.sum()
    v = n_k / n if fold_weights == "size" else np.full(k, 1 / k)
    s2, h, g = float((v**2).sum()), float((v**2 / n_k).sum()), float((v / n_k).sum())
    shifted = part.mean - part.mean[0]  # equal means then vary by exactly zero
    mean = v @ shifted
    spread = ((shifted - shifted.mean(axis=0)) ** 2).sum(axis=0) / (k - 1)
    weighted = v @ (shifted - mean) ** 2
    nothing = np.full_like(mean, np.nan)
    within = part.m2.sum(axis=0) / (n - k) if n > k else nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = part.m2 / (n_k - 1)[:, None]
    return Components(
        h=h,
        s2=s2,
        origin=part.origin,
        mean=part.mean[0] + mean,
        within=within,
        between=(weighted - (g - h) * within) / (1 - s2),
        spread=spread,
        products=((part.location[0] + mean) ** 2 - v**2 @ part.location**2) / (1 - s2),
        theta_a=(v**2 / n_k) @ variances if n_k.min() > 1 else nothing,
        even=bool((v == v[0]).all()),
        folds=k,
        points=int(n),
    )


def refuse_single_points(part: Components) -> LogError:
    """Explain that folds of one point leave nothing to tell points and folds apart."""
    return LogError(
        f"every one of the {part.folds:,} folds holds one point (leave-one-out), so variance "
        f"within folds cannot be separated from variance between them. Expected folds of two or "
        f"more points. Use wald, or quadratic(estimator='theta_3')."
    )


def average_columns(found: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    """Average each column over several parts."""
    return {name: np.mean([part[name] for part in found], axis=0) for name in found[0]}


def split_repetitions(cells: Moments) -> list[Moments]:
    """Split a log into its repetitions."""
    return cells.groups("repetition") if "repetition" in cells.levels else [cells]
