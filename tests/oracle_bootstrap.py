"""Bootstrap intervals once more: slow, exact, and written from the papers.

Sums run over individual losses in ``fractions.Fraction``; nothing comes from the package. Sources:

- (ET n): Efron & Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap
  method, with their names: N_ib is how often point i is in bootstrap sample b, I_ib = 1 where
  it is not, Q_ib its loss.
- Jiang, Varma & Simon (2008): bootstrap case cross-validation.
- Noma et al. (2021): the location-shifted and the two-stage bootstrap; Harrell's correction.
- Hyndman & Fan (1996): quantiles, definition 7.

An evaluation is a `Loss`. Sample 0 is the data, repetition 0 the fit on the sample itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from oracle import mean
from scipy import stats

ZERO = Fraction(0)
SHARE = Fraction(632, 1000)


class Loss(NamedTuple):
    """One evaluation: a loss, the fit, the point, how often the fit was trained on it."""

    loss: Fraction
    repetition: int
    point: Hashable
    count: int
    sample: int = 0


class Interval(NamedTuple):
    estimate: Fraction
    lower: float
    upper: float
    se: float = math.nan
    extra: Mapping[str, object] = {}


class Fit(NamedTuple):
    """One fit of one data set: losses and counts by point."""

    loss: dict[Hashable, Fraction]
    count: dict[Hashable, int]


def fits(log: Iterable[Loss]) -> list[Fit]:
    """The fits of one data set in the order of their repetitions."""
    found: dict[int, Fit] = {}
    for row in log:
        fit = found.setdefault(row.repetition, Fit({}, {}))
        fit.loss[row.point], fit.count[row.point] = row.loss, row.count
    return [found[label] for label in sorted(found)]


def split(log: Iterable[Loss]) -> tuple[Fit | None, list[Fit]]:
    """The fit on the data themselves, if it was logged, and the bootstrap fits."""
    log = list(log)
    own = fits(row for row in log if row.repetition == 0)
    return (own[0] if own else None), fits(row for row in log if row.repetition != 0)


# --- leave-one-out bootstrap --------------------------------------------------------------------


class LeaveOneOut(NamedTuple):
    error: Fraction
    point: dict[Hashable, Fraction]
    derivative: dict[Hashable, Fraction]
    variance: Fraction
    noise: Fraction


def leave_one_out(boot: Sequence[Fit], removed: bool = False) -> LeaveOneOut:
    """(ET 17), (ET 35)-(40): the error, and its variance by the infinitesimal jackknife.

    ``removed`` takes the losses about their mean before q_b is formed, and subtracts the
    variance that the D_i have since the number of samples is finite.
    """
    points = sorted(boot[0].count)
    n = len(points)
    out = {i: [fit for fit in boot if fit.count[i] == 0] for i in points}
    point = {i: mean([fit.loss[i] for fit in out[i]]) for i in points if out[i]}
    error = mean(list(point.values()))
    middle = error if removed else ZERO
    q = [sum((fit.loss[i] - middle for i in points if fit.count[i] == 0), ZERO) / n for fit in boot]
    derivative, noise = {}, ZERO
    for i in point:
        drawn = [Fraction(fit.count[i]) for fit in boot]
        usual = mean(drawn)
        covariance = sum(((c - usual) * qb for c, qb in zip(drawn, q, strict=True)), ZERO)
        derivative[i] = (2 + Fraction(1, n - 1)) * (point[i] - error) / n + covariance / len(out[i])
        noise += (
            sum(
                ((c - usual) ** 2 * (qb - mean(q)) ** 2 for c, qb in zip(drawn, q, strict=True)),
                ZERO,
            )
            / len(out[i]) ** 2
        )
    share = Fraction(n, len(point))
    variance = share * sum((d**2 for d in derivative.values()), ZERO)
    noise *= share
    if removed:
        variance -= noise
        if variance < 0:
            variance = share * sum(((e - error) ** 2 for e in point.values()), ZERO) / n**2
    return LeaveOneOut(error, point, derivative, variance, noise)


def every_sample(points: Sequence[Hashable]) -> list[tuple[Hashable, ...]]:
    """All n^n ordered samples of n points."""
    return list(product(points, repeat=len(points)))


def error_of_law(law: Mapping[Hashable, Fraction], fitted: Sequence[Fit]) -> Fraction:
    """The leave-one-out bootstrap error Err1(F) where F has any masses, not only 1/n.

    ``fitted`` holds one fit for each of the n^n samples, whose chance under F is the product of
    the masses drawn; a point's mean is over the samples without it.
    """
    chance = [
        math.prod((law[i] ** count for i, count in fit.count.items()), start=Fraction(1))
        for fit in fitted
    ]
    total = ZERO
    for i, mass in law.items():
        without = [(w, fit) for w, fit in zip(chance, fitted, strict=True) if fit.count[i] == 0]
        total += (
            mass
            * sum((w * fit.loss[i] for w, fit in without), ZERO)
            / sum((w for w, _ in without), ZERO)
        )
    return total


def directional_derivative(
    point: Hashable, fitted: Sequence[Fit], step: Fraction = Fraction(1, 10**6)
) -> Fraction:
    """d/de Err1((1 - e) F + e delta_i) at e = 0, by a central difference in exact numbers."""
    points = sorted(fitted[0].count)
    n = len(points)

    def law(e: Fraction) -> dict[Hashable, Fraction]:
        return {i: (1 - e) / n + (e if i == point else 0) for i in points}

    return (error_of_law(law(step), fitted) - error_of_law(law(-step), fitted)) / (2 * step)


def bootstrap_oob(log: Iterable[Loss], alpha: float = 0.05, removed: bool = False) -> Interval:
    found = leave_one_out(split(log)[1], removed)
    return around(found.error, math.sqrt(found.variance), alpha, {"noise": found.noise})


def around(estimate: Fraction, se: float, alpha: float, extra: Mapping[str, object]) -> Interval:
    reach = float(stats.norm.ppf(1 - alpha / 2)) * se
    return Interval(estimate, float(estimate) - reach, float(estimate) + reach, se, extra)


# --- corrected errors ---------------------------------------------------------------------------


def apparent(own: Fit) -> Fraction:
    """The mean loss of a fit on its own data, where a point counts as often as it is in them."""
    total = sum((own.count[i] * own.loss[i] for i in own.loss), ZERO)
    return total / sum(own.count.values())


def plain_632(own: Fraction, out: Fraction) -> Fraction:
    """(ET 24)"""
    return (1 - SHARE) * own + SHARE * out


def plus_632(own: Fraction, out: Fraction, gamma: Fraction) -> Fraction:
    """(ET 27)-(32), with Err1 at most gamma and R in [0, 1]."""
    capped = min(out, gamma)
    overfit = (capped - own) / (gamma - own) if out > own and gamma > own else ZERO
    weight = SHARE / (1 - (1 - SHARE) * overfit)
    return (1 - weight) * own + weight * capped


def no_information(truth: Sequence, predicted: Sequence, loss) -> Fraction:
    """(ET 26): the mean loss if every prediction met every truth."""
    return mean([Fraction(loss(y, f)) for y in truth for f in predicted])


def harrell(own: Fit, boot: Sequence[Fit]) -> Fraction:
    """The apparent error less the mean optimism of the bootstrap fits."""
    size = sum(own.count.values())
    optimism = [
        apparent(fit) - sum((own.count[i] * fit.loss[i] for i in own.loss), ZERO) / size
        for fit in boot
    ]
    return apparent(own) - mean(optimism)


def corrected(own: Fit, boot: Sequence[Fit], correction: str, gamma: Fraction | None) -> Fraction:
    """One of the three corrections of the apparent error."""
    if correction == "harrell":
        return harrell(own, boot)
    out = leave_one_out_error(boot)
    if correction == "632":
        return plain_632(apparent(own), out)
    return plus_632(apparent(own), out, gamma)


def leave_one_out_error(boot: Sequence[Fit]) -> Fraction:
    points = sorted({i for fit in boot for i in fit.count if fit.count[i] == 0})
    return mean([mean([fit.loss[i] for fit in boot if fit.count[i] == 0]) for i in points])


def bootstrap_632(
    log: Iterable[Loss], alpha: float = 0.05, gamma: Fraction | None = None, removed: bool = False
) -> Interval:
    """.632+ (.632 without gamma); the standard error is Err1's, in proportion."""
    own, boot = split(log)
    found = leave_one_out(boot, removed)
    estimate = corrected(own, boot, "632" if gamma is None else "632+", gamma)
    se = math.sqrt(found.variance)
    if found.error > 0 and estimate >= 0:
        se *= float(estimate / found.error)
    return around(estimate, se, alpha, {"apparent": apparent(own), "out_of_bag": found.error})


# --- percentiles --------------------------------------------------------------------------------


def quantile(values: Iterable[Fraction], probability: Fraction) -> Fraction:
    """Definition 7 of Hyndman and Fan: linear between order statistics at (n - 1) p."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * probability
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def percentiles(values: Sequence[Fraction], alpha: float) -> tuple[Fraction, Fraction]:
    half = Fraction(str(alpha)) / 2
    return quantile(values, half), quantile(values, 1 - half)


def case_bootstrap(
    log: Iterable[Loss], alpha: float = 0.05, without: Sequence[Fraction] | None = None
) -> Interval:
    """Jiang, Varma & Simon: percentiles of the weighted mean loss of each bootstrap sample."""
    theta = [apparent(fit) for fit in fits(log)]
    lower, upper = percentiles(theta, alpha)
    bias = ZERO if without is None else mean(theta) - mean(without)
    return Interval(mean(theta) - bias, float(lower - bias), float(upper - bias))


def location_shifted(
    log: Iterable[Loss],
    alpha: float = 0.05,
    gamma: Fraction | None = None,
    correction: str = "632+",
) -> Interval:
    """Noma et al.: percentiles of the apparent errors, moved by the correction."""
    own, boot = split(log)
    estimate = corrected(own, boot, correction, gamma)
    shift = estimate - apparent(own)
    lower, upper = percentiles([apparent(fit) for fit in boot], alpha)
    return Interval(estimate, float(lower + shift), float(upper + shift))


def two_stage(
    log: Iterable[Loss],
    alpha: float = 0.05,
    gamma: Mapping[int, Fraction] | None = None,
    correction: str = "632+",
) -> Interval:
    """Noma et al.: percentiles of the estimate made anew from each outer sample."""
    log = list(log)
    estimates = {}
    for sample in sorted({row.sample for row in log}):
        own, boot = split(row for row in log if row.sample == sample)
        chance = None if gamma is None else gamma[sample]
        estimates[sample] = corrected(own, boot, correction, chance)
    estimate = estimates.pop(0)
    lower, upper = percentiles(list(estimates.values()), alpha)
    return Interval(estimate, float(lower), float(upper))
