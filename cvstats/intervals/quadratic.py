"""Quadratic estimators of the variance of a cross-validated mean, and the interval from one.

Losses of one fold share a covariance omega, losses of different folds gamma, and each has the
variance sigma^2. With weights ``v_k`` of the folds the variance of the mean is

    theta = H sigma^2 + (S2 - H) omega + (1 - S2) gamma,  S2 = sum v_k^2,  H = sum v_k^2 / n_k.

One log gives unbiased estimates of ``sigma^2 - omega`` (W) and ``omega - gamma`` (D) only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import count_folds, fold_levels
from cvstats.core.results import Result, interval
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError
from cvstats.intervals._method import GERAS, IntervalMethod
from cvstats.intervals._requirements import several_folds
from cvstats.log.log import Log
from cvstats.options import Missing, check_numbers

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
    """Variance estimates of partitions, one row per partition and one number per column.

    ``mean`` is relative to ``origin``, ``within`` is W, ``between`` is D, ``spread`` the sample
    variance of the fold means and ``theta_a`` the sum of ``v_k^2 var_k / n_k``; ``even`` is whether
    all ``v_k`` are equal.
    """

    h: FloatArray
    s2: FloatArray
    origin: FloatArray
    mean: FloatArray
    within: FloatArray
    between: FloatArray
    spread: FloatArray
    products: FloatArray
    theta_a: FloatArray
    even: MaskArray
    folds: IntArray
    points: IntArray

    def theta(self, number: int) -> FloatArray:
        """Compute an estimator of Table 2 or section 5 of Geras and Sutton, for any fold sizes."""
        floor = self.h * self.within
        if number == 1:
            return (self.origin + self.mean) ** 2
        if number == 4:
            return floor
        factor = {2: -(1 - self.s2), 3: self.s2, 5: 1 + self.s2}[number]
        found = floor + factor * self.between
        if number == 3:  # the same, but not negative due to rounding
            found = np.where(self.even, self.spread / self.folds, found)
        return found

    def to_columns(self) -> dict[str, FloatArray]:
        """List the raw estimates of this partition by their public names."""
        if (self.points == self.folds).any():
            raise refuse_single_points(self.folds.item(0))
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


def estimate_components(parts: Cells, fold_weights: str) -> Components:
    """Compute the components of partitions with at least two folds, each a group of cells.

    If every fold holds one point (leave-one-out), W and D are undefined (NaN), and so is
    everything that depends on them.
    """
    n_k, k = parts.count[:, None], parts.n_cells
    n = parts.sum(n_k)
    v = n_k / parts.repeat(n) if fold_weights == "size" else 1 / parts.repeat(k) + 0 * n_k
    s2, h, g = parts.sum(v**2), parts.sum(v**2 / n_k), parts.sum(v / n_k)
    first = parts.first(parts.mean)
    shifted = parts.mean - parts.repeat(first)  # equal means then vary by exactly zero
    mean = parts.sum(v * shifted)
    weighted = parts.sum(v * (shifted - parts.repeat(mean)) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(n > k, parts.sum(parts.m2) / (n - k), np.nan)
        theta_a = parts.sum(v**2 / n_k * (parts.m2 / (n_k - 1)))
    middle = parts.first(parts.location) + mean
    return Components(
        h=h,
        s2=s2,
        origin=parts.origin,
        mean=first + mean,
        within=within,
        between=(weighted - (g - h) * within) / (1 - s2),
        spread=parts.mean_and_squares()[1] / (k - 1),
        products=(middle**2 - parts.sum(v**2 * parts.location**2)) / (1 - s2),
        theta_a=np.where(parts.sum(n_k == 1) > 0, np.nan, theta_a),
        even=parts.sum(v != parts.repeat(parts.first(v))) == 0,
        folds=k,
        points=n.astype(np.int64),
    )


def refuse_single_points(folds: int) -> LogError:
    """Explain that folds of one point cannot separate points from folds."""
    return LogError(
        f"each of the {folds:,} folds has only one point (leave-one-out), so variance within folds "
        "cannot be separated from variance between them. Expected folds of two or more points. Use "
        "wald, or quadratic(estimator='theta_3')."
    )


def find_single_points(log: Log) -> str | None:
    """Explain why the components of a leave-one-out log are unknown."""
    folds = count_folds(log.design)
    return str(refuse_single_points(folds)) if folds == log.design.splits().points else None


def check_bias(options: Mapping[str, Any]) -> None:
    """Reject a bias that is not three numbers, or a bias together with an estimator."""
    bias, estimator = options["bias"], options["estimator"]
    if bias is None:
        return
    check_numbers("bias", bias, several=True)
    if len(bias) != 3:
        raise LogError(
            f"bias={bias!r} has {len(bias)} numbers. Expected three, the coefficients of "
            f"sigma^2, omega and gamma, such as bias=(0, 1, -2) for theta_5."
        )
    if estimator != "theta_5":
        raise LogError(
            f"estimator={estimator!r} and bias={bias!r} both choose the estimator. Pass only one "
            "of them. The bias of each named estimator is in attrs['bias']."
        )


def one_partition(design: Design) -> str | None:
    """Require a single partition with at least two folds."""
    if (words := several_folds(design)) is not None:
        return words
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions. Select one: "
            f"{design.take('repetition')}; or use wald, which accounts for repetitions."
        )
    return None


@IntervalMethod(
    check=check_bias,
    requires=one_partition,
    of_losses=find_single_points,
    needs="one K-fold partition with at least two folds",
    target="expected risk of models trained on sets of this size",
    guarantee="heuristic: the variance estimator has the bias given in attrs['bias']",
    fits="K",
    reference=GERAS,
    plan="k_fold",
    takes_metrics="averaged",
    groups_at_once=True,
)
def quadratic(
    log: Log,
    *,
    estimator: Literal["theta_1", "theta_2", "theta_3", "theta_4", "theta_5"] = "theta_5",
    bias: Sequence[float] | None = None,
    fold_weights: Literal["size", "equal"] = "size",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Interval from a quadratic estimator of the variance of a cross-validated mean.

    The target is the expected risk of models trained on sets of this size. Losses have variance
    sigma^2, covariance omega within a fold and covariance gamma between folds. The variance theta
    of the mean depends on all three, and no estimator from a single log is always unbiased for it.
    Each of the named estimators is unbiased under a different assumption.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        One K-fold partition with K >= 2 and folds of any sizes.
    estimator : {"theta_1", "theta_2", "theta_3", "theta_4", "theta_5"}, optional
        Unbiased if, in this order: mu = 0; omega = 0; gamma = 0; S2 omega + (1 - S2) gamma =
        0; omega = 2 gamma.
    bias : sequence of 3 floats, optional
        Instead of a name, the desired bias: ``(a1, a2, a3)`` for ``a1 sigma^2 + a2 omega + a3
        gamma + a4 mu^2``, where ``a4 = a1 + a2 + a3 + 1`` follows. ``(0, 1, -2)`` is theta_5.
        Unless a4 is 0 the estimator is not invariant to a shift of all losses.
    fold_weights : {"size", "equal"}, optional
        Whether the estimate is the mean over points or the mean of the fold means; the
        variance is estimated for that mean.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, ``df`` (theta_3), ``variance_raw`` (the
        estimate of theta before any floor, in squared units of the loss) and ``caution``.
        ``n_points`` and ``n_folds`` are in ``attrs``, or columns if they vary between rows.
        ``attrs["bias"]`` is the bias of the estimator in words.

    Raises
    ------
    LogError
        If the log has several repetitions, fewer than two folds, or folds of one point (except
        for theta_1 and theta_3).

    See Also
    --------
    cvstats.decompose : The variance components behind it.
    cvstats.corrected_t : A correction that does better in simulations.
    cvstats.wald : An interval with proven coverage, for the models that were trained.

    Notes
    -----
    With v_k the weight of fold k and n_k the number of its points,

    .. math::

        \theta = H \sigma^2 + (S_2 - H)\, \omega + (1 - S_2)\, \gamma, \qquad
        S_2 = \sum_k v_k^2, \qquad H = \sum_k \frac{v_k^2}{n_k} .

    The method is heuristic. The limits use normal quantiles, except for theta_3, which uses
    Student's t distribution with K - 1 degrees of freedom. If theta_2, theta_3 or theta_5 is
    negative, it is replaced by ``H W``, where W is the variance of losses within folds, and
    ``caution`` flags it. (``H W`` estimates theta if losses are uncorrelated.) With ``bias``, a
    negative estimate is not replaced and gives NaN.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300.
    Bengio and Grandvalet (2004), JMLR 5, 1089-1105.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge").xs(0, level="repetition")
    >>> by_name = losses.cvci.quadratic(estimator="theta_3")
    >>> by_bias = losses.cvci.quadratic(bias=(0, 0, -1))
    >>> bool(abs(by_name.loc["ridge", "se"] - by_bias.loc["ridge", "se"]) < 1e-9)
    True
    """
    # Estimate theta by name or by the requested bias.
    part = estimate_components(log.moments(fold_levels(log.design)[-1:]), fold_weights)
    single = part.points == part.folds
    caution = np.zeros(part.mean.shape, dtype=np.int64)
    df = None
    if bias is not None:
        raw, used = part.with_bias(bias), "bias"
    else:
        raw, used = part.theta(int(estimator[-1])), estimator
    if (single[:, 0] & np.isnan(raw).all(axis=1)).any():
        raise refuse_single_points(part.folds.item(0))
    variance = raw
    if used in ("theta_2", "theta_3", "theta_5"):
        # The floor replaces a negative estimate only: theta_3 stays V_b / K.
        below = ~single & (raw < 0)
        variance = np.where(below, part.h * part.within, raw)
        caution[below] |= Caution.CLAMPED
    if used == "theta_3":
        df = part.folds - 1
    if used == "theta_1" or (bias is not None and abs(sum(bias) + 1) > 1e-12):
        caution |= Caution.MEAN_DOMINATED
    extra: dict[str, FloatArray | IntArray] = {
        "variance_raw": raw, "n_points": part.points, "n_folds": part.folds,
    }  # fmt: skip
    attrs: dict[str, str | float | int] = {"fold_weights": fold_weights, "estimator": used}
    attrs["bias"] = BIASES[estimator] if bias is None else format_bias(bias)
    return interval(
        "quadratic", part.mean, variance, origin=part.origin, alpha=alpha, df=df, extra=extra,
        caution=caution, attrs=attrs,
    )  # fmt: skip


def format_bias(bias: Sequence[float]) -> str:
    """Format a bias: ``0.5 sigma^2 - omega - 0.5 gamma``."""
    words = ""
    coefficients = (*bias, sum(bias) + 1)  # Proposition 1
    for number, name in zip(coefficients, ("sigma^2", "omega", "gamma", "mu^2"), strict=True):
        if abs(number) > 1e-12:
            size = "" if abs(number) == 1 else f"{abs(number):g} "
            sign = ("-" if number < 0 else "") if not words else ("- " if number < 0 else "+ ")
            words += f"{' ' if words else ''}{sign}{size}{name}"
    return words
