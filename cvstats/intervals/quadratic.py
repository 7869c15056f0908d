"""Quadratic estimators of the variance of a cross-validated mean, and its components.

Losses of one fold share a covariance omega, losses of different folds gamma, and each has the
variance sigma^2. With weights ``v_k`` of the folds the variance of the mean is

    theta = H sigma^2 + (S2 - H) omega + (1 - S2) gamma,  S2 = sum v_k^2,  H = sum v_k^2 / n_k.

One log gives unbiased estimates of ``sigma^2 - omega`` (W) and ``omega - gamma`` (D) only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError, checked_choice
from cvstats.intervals.wald import FOLD_WEIGHTS

__all__ = ["ESTIMATORS", "Components", "averaged", "components", "decompose", "quadratic"]

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
    """What one partition tells of the variance; arrays have a number for each column.

    ``within`` is W, ``between`` is D, ``spread`` the sample variance of the fold means and
    ``theta_a`` the sum of ``v_k^2 var_k / n_k``; ``even`` says that all ``v_k`` are equal.
    """

    h: float
    s2: float
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
            return self.mean**2
        if number == 3 and self.even:
            return self.spread / self.folds  # the same, and never below zero by rounding
        factor = {2: -(1 - self.s2), 3: self.s2, 4: 0.0, 5: 1 + self.s2}[number]
        return floor if factor == 0 else floor + factor * self.between

    def described(self) -> dict[str, FloatArray]:
        """List what this partition tells, raw, by the names that users see."""
        if self.points == self.folds:
            raise single_points(self)
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


def components(part: Moments, fold_weights: str = "size") -> Components:
    """Compute the components of one partition with at least two folds.

    Where every fold holds one point (leave-one-out), W and D are undefined and NaN, and so is
    what rests on them.
    """
    checked_choice("fold_weights", fold_weights, FOLD_WEIGHTS)
    n_k, k = part.count, len(part.count)
    n = n_k.sum()
    v = n_k / n if fold_weights == "size" else np.full(k, 1 / k)
    s2, h, g = float((v**2).sum()), float((v**2 / n_k).sum()), float((v / n_k).sum())
    origin = part.mean[0]
    shifted = part.mean - origin  # products of large means would lose what tells them apart
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
        mean=origin + mean,
        within=within,
        between=(weighted - (g - h) * within) / (1 - s2),
        spread=spread,
        products=((origin + mean) ** 2 - v**2 @ part.mean**2) / (1 - s2),
        theta_a=(v**2 / n_k) @ variances if n_k.min() > 1 else nothing,
        even=bool((v == v[0]).all()),
        folds=k,
        points=int(n),
    )


def single_points(part: Components) -> LogError:
    """Explain that folds of one point leave nothing to tell points and folds apart."""
    return LogError(
        f"every one of the {part.folds:,} folds holds one point (leave-one-out), so variance "
        f"within folds cannot be told from variance between them. Expected folds of two or "
        f"more points. Use wald, or quadratic(estimator='theta_3')."
    )


def spoken(bias: Sequence[float]) -> str:
    """Put a bias in words: ``0.5 sigma^2 - omega - 0.5 gamma``."""
    words = ""
    coefficients = (*bias, sum(bias) + 1)  # Proposition 1
    for number, name in zip(coefficients, ("sigma^2", "omega", "gamma", "mu^2"), strict=True):
        if abs(number) > 1e-12:
            size = "" if abs(number) == 1 else f"{abs(number):g} "
            sign = ("-" if number < 0 else "") if not words else ("- " if number < 0 else "+ ")
            words += f"{' ' if words else ''}{sign}{size}{name}"
    return words


def three_numbers(bias: Sequence[float]) -> None:
    """Refuse a bias that has more or fewer coefficients."""
    if len(bias) != 3:
        raise LogError(
            f"bias={bias!r} has {len(bias)} numbers. Expected three, the coefficients of "
            f"sigma^2, omega and gamma, such as bias=(0, 1, -2) for theta_5."
        )


def quadratic(
    moments: Moments,
    *,
    estimator: str,
    bias: Sequence[float] | None,
    fold_weights: str,
    alpha: float,
) -> Result:
    """Interval from one of the quadratic variance estimators."""
    checked_choice("estimator", estimator, ESTIMATORS)
    if bias is not None:
        three_numbers(bias)
        if estimator != "theta_5":
            raise LogError(
                f"estimator={estimator!r} and bias={bias!r} both choose the estimator. Expected "
                f"one of them. The bias of each estimator by name stands in attrs['bias']."
            )
    part = components(moments, fold_weights)
    single = part.points == part.folds
    caution = np.zeros(len(part.mean), dtype=np.int64)
    df = None
    if bias is not None:
        raw, used = part.with_bias(bias), "bias"
    else:
        raw, used = part.theta(int(estimator[-1])), estimator
    if np.isnan(raw).all() and single:
        raise single_points(part)
    variance = raw
    if used in ("theta_2", "theta_3", "theta_5") and not single:
        # The floor stands in for a negative estimate only: theta_3 stays V_b / K.
        variance = np.where(raw < 0, part.h * part.within, raw)
        caution[raw < 0] |= Caution.CLAMPED
    if used == "theta_3":
        df = part.folds - 1
    if used == "theta_1" or (bias is not None and abs(sum(bias) + 1) > 1e-12):
        caution |= Caution.MEAN_DOMINATED
    extra: dict[str, FloatArray | float] = {} if df is None else {"df": df}
    extra |= {"variance_raw": raw, "n_points": part.points, "n_folds": part.folds}
    attrs: dict[str, str | float | int] = {"fold_weights": fold_weights, "estimator": used}
    attrs["bias"] = BIASES[estimator] if bias is None else spoken(bias)
    return interval(
        "quadratic", part.mean, variance, alpha=alpha, df=df, extra=extra, caution=caution,
        attrs=attrs,
    )  # fmt: skip


def decompose(
    moments: Moments, *, rho: float | None, gamma: float | None, fold_weights: str = "size"
) -> Result:
    """Estimate what a log can tell of the variance components, averaged over repetitions."""
    splits = moments.groups("repetition") if "repetition" in moments.levels else [moments]
    parts = [components(part, fold_weights) for part in splits]
    columns: dict[str, NDArray[Any]] = {**averaged([part.described() for part in parts])}
    caution = np.zeros(len(parts[0].mean), dtype=np.int64)
    if rho is not None or gamma is not None:
        spread = np.mean([part.spread for part in parts], axis=0)
        columns |= assumed(columns, spread, rho, gamma)
        caution |= Caution.ASSUMED_GAMMA
    caution[np.isnan(parts[0].mean)] = Caution.NO_LOSSES
    size = np.ones(len(parts[0].mean), dtype=np.int64)
    columns |= {
        "n_points": parts[0].points * size,
        "n_folds": parts[0].folds * size,
        "n_repetitions": len(parts) * size,
    }
    words = "; ".join(f"{name}: {BIASES[name]}" for name in ESTIMATORS)
    return Result("decompose", columns, caution, {"fold_weights": fold_weights, "bias": words})


def averaged(found: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    """Average each column over several parts."""
    return {name: np.mean([part[name] for part in found], axis=0) for name in found[0]}


def checked_rho(rho: float) -> None:
    """Refuse what is no correlation of two fold means."""
    if not 0 <= rho < 1:
        raise LogError(f"rho={rho!r} is out of range. Expected a correlation, 0 <= rho < 1.")


def assumed(
    found: dict[str, FloatArray], spread: FloatArray, rho: float | None, gamma: float | None
) -> dict[str, FloatArray]:
    """Give all components, once gamma (or its share rho of a fold mean's variance) is assumed.

    ``gamma = rho Var(m_k)`` and ``spread`` estimates ``Var(m_k) - gamma``, so that theta is
    ``spread (1/K + rho / (1 - rho))`` for equal folds, as in Nadeau and Bengio (2003).
    """
    if rho is not None:
        checked_rho(rho)
    value = spread * rho / (1 - rho) if rho is not None else np.full_like(spread, gamma)
    omega = found["omega_minus_gamma"] + value
    return {
        "sigma2": found["sigma2_minus_omega"] + omega,
        "omega": omega,
        "gamma": value,
        "theta": found["theta_minus_gamma"] + value,
    }
