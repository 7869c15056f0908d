"""Pairs of models whose losses are 0 and 1: where they disagree, and the tests that rest on it.

A difference of two such losses is -1, 0 or 1, and few points decide: those on which one model
errs and the other does not. Where these are few, standard errors are rough or zero, and Tango's
score test and the binomial test take the place of normal ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.columns import Differences
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result
from cvstats.core.types import FloatArray, MaskArray
from cvstats.errors import LogError
from cvstats.intervals._proportions import binomial_p_values, score_statistic, tango_limits
from cvstats.log.log import Log

FEW = 25
"""Discordant points below which normal approximations are poor."""

SLACK = 1e-4
"""How far from a whole number a sum over the points may be that is one."""

TANGO = (
    "Tango (1998), Statistics in Medicine 17(8), 891-908, "
    "doi:10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B"
)

SOME_EXACT = "exact for losses of 0 and 1 with fewer than 25 discordant points, otherwise wald"
"""The test of `compare` where pairs differ in it, or their losses are not computed yet."""

SOME_SCORE = "tango for losses of 0 and 1, otherwise wald"
"""The same of `equivalence`."""

OF_POINTS = ("holdout", "wald", "tango")
"""Intervals of differences whose sample are the points, each in every repetition."""


@dataclass(frozen=True, eq=False)
class Discordance:
    """The points on which models disagree, a number for each pair.

    Parameters
    ----------
    known : array of bool
        Whether the losses of both models are 0 or 1; the counts of other pairs mean nothing.
    n01, n10 : array
        Points on which the other model alone errs, and on which the model alone does; averages
        over repetitions.
    n : float
        Number of points.
    repetitions : int
        How often each point was evaluated.
    averaged : bool
        Whether the interval averages each point over the repetitions, which makes it shorter.
    alone : bool
        Whether these are all pairs, and no other carried cells are tested in their own way.
    """

    known: MaskArray
    n01: FloatArray
    n10: FloatArray
    n: float
    repetitions: int
    averaged: bool
    alone: bool

    @property
    def total(self) -> FloatArray:
        """Number of points on which the models disagree."""
        return self.n01 + self.n10

    @property
    def counted(self) -> MaskArray:
        """Whether counts serve better than standard errors: not where many points are averaged."""
        return self.few if self.averaged else self.known

    @property
    def few(self) -> MaskArray:
        """Whether both losses are 0 or 1 and the models disagree on few points."""
        return self.known & (self.total < FEW)


def find_discordance(log: Log, differences: Differences, base: Result) -> Discordance | None:
    """Count where the models of each pair disagree; None where points are not the sample.

    The sums of the differences say at once that most losses are other ones. Where they may be 0
    and 1, the losses themselves are looked at.
    """
    if base.attrs["interval_method"] not in OF_POINTS:
        return None
    n = float(log.design.splits().rows[0])
    net, both = sum_differences(log, differences, base, n)
    slack = SLACK + 1e-13 * n
    whole = (np.abs(net - np.rint(net)) <= slack) & (np.abs(both - np.rint(both)) <= slack)
    net, both = np.rint(net), np.rint(both)
    known = np.logical_and.reduce(whole & (np.abs(net) <= both) & (both <= n), axis=0)
    if known.any():
        zero_one = log.zero_one()
        known &= zero_one[differences.left] & zero_one[differences.right]
    n01, n10 = (counts.mean(axis=0) for counts in split_discordant(net, both))
    averaged = len(net) > 1 and base.method == "holdout"
    return Discordance(known, n01, n10, n, len(net), averaged, not log.some_cells)


def split_discordant(net: FloatArray, both: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Count where only the other errs, and where only the model.

    Differences of 0/1 losses are -1, 0 or 1: their squares add up to ``both``, the discordant
    points, and they themselves to ``net``: those where only the model errs, less the others.
    """
    return (both - net) / 2, (both + net) / 2


def sum_differences(
    log: Log, differences: Differences, base: Result, n: float
) -> tuple[FloatArray, FloatArray]:
    """Sum the differences and their squares: a row for each repetition.

    Of one repetition the interval has them already: in its estimate and its standard error.
    """
    plain = ("all-pairs", "size", None)
    attrs = base.attrs
    if log.design.number("repetition") == 1 and (
        attrs.get("variance") in plain and attrs.get("fold_weights") in plain
    ):
        mean, se = base.columns["estimate"][None], base.columns["se"][None]
        return n * mean, (n if base.method == "wald" else n - 1) * n * se**2 + n * mean**2
    cells = log.moments(repetition_level(log.design), differences)
    return n * cells.location, cells.squares


def apply_tests(
    result: Result,
    found: Discordance | None,
    *,
    method: str | None,
    adjust: str | None,
    alternative: str,
    alpha: float,
) -> Result:
    """Test pairs of models with losses of 0 and 1 as `compare` does.

    Simultaneous limits need one covariance of all models, so ``"max-t"`` keeps normal tests.
    """
    if found is None:
        return result
    if method == "tango":
        result = score_tests(result, found, alternative=alternative, alpha=alpha)
    elif method is None and adjust != "max-t" and found.repetitions == 1:
        result = take_exact_tests(result, found, alternative=alternative, alpha=alpha)
    return flag_few(result, found)


def take_exact_tests(
    result: Result, found: Discordance, *, alternative: str, alpha: float
) -> Result:
    """Put exact tests and Tango's limits in the place of normal ones, for few discordant points.

    Points that are evaluated once are as many coins as models disagree on; averages over
    repetitions are not, and keep the normal test. The limits reach to 0 where the exact test
    finds no difference.
    """
    at = found.few
    if not found.known.any():
        return result
    p = binomial_p_values(found.n10, found.n01, alternative)
    lower, upper = tango_limits(found.n10, found.n01, found.n, alpha, alternative)
    kept = p >= alpha
    numbers = {
        "lower": np.where(kept, np.minimum(lower, 0.0), lower),
        "upper": np.where(kept, np.maximum(upper, 0.0), upper),
        "statistic": score_statistic(found.n10, found.n01, found.n, 0.0),
        "p_value": p,
    }
    words = "exact" if at.all() else SOME_EXACT if at.any() else "wald"
    words = words if found.alone else SOME_EXACT
    return replace_numbers(result, at, numbers, words)


def score_tests(result: Result, found: Discordance, *, alternative: str, alpha: float) -> Result:
    """Take Tango's limits, and his test of no difference, which is McNemar's."""
    check_known(result, found)
    lower, upper = tango_limits(found.n10, found.n01, found.n, alpha, alternative)
    z = score_statistic(found.n10, found.n01, found.n, 0.0)
    sides = {"two-sided": -np.abs(z), "less": z, "greater": -z}
    p = special.ndtr(sides[alternative]) * (2 if alternative == "two-sided" else 1)
    numbers = {"lower": lower, "upper": upper, "statistic": z, "p_value": p}
    return replace_numbers(result, found.known, numbers, "tango")


def score_equivalence(
    result: Result, found: Discordance, *, margin: tuple[float, float], alpha: float
) -> Result:
    """Test by Tango's score, at each end of the margin, whether a difference lies within."""
    if not found.counted.any():
        return result
    low, high = margin
    # no difference of two shares lies beyond -1 or 1
    above = score_statistic(found.n10, found.n01, found.n, max(low, -1.0))
    under = score_statistic(found.n10, found.n01, found.n, min(high, 1.0))
    p = np.maximum(
        0.0 if low < -1 else special.ndtr(-above), 0.0 if high > 1 else special.ndtr(under)
    )
    lower, upper = tango_limits(found.n10, found.n01, found.n, 2 * alpha)
    numbers = {"lower": lower, "upper": upper, "p_value": p, "equivalent": p < alpha}
    words = "tango" if found.counted.all() and found.alone else SOME_SCORE
    return replace_numbers(result, found.counted, numbers, words)


def no_evidence(log: Log, differences: Differences, base: Result) -> MaskArray:
    """Find pairs with losses of 0 and 1 whose standard error is zero, which shows nothing.

    Two models agree on the points of a small log although they err on different ones beyond it.
    """
    at: MaskArray = base.columns["se"] == 0
    if at.any():
        zero_one = log.zero_one()
        at = at & zero_one[differences.left] & zero_one[differences.right]
    return at


def check_known(result: Result, found: Discordance) -> None:
    """Refuse pairs with losses other than 0 and 1, but for masked cells."""
    if not (found.known | np.isnan(result.columns["difference"])).all():
        raise LogError(
            "method='tango' needs losses that are 0 or 1, and this log has other losses. For "
            "these use method='wald'."
        )


def replace_numbers(result: Result, at: MaskArray, numbers: Mapping[str, Any], test: str) -> Result:
    """Replace numbers of some pairs, and say by which test they were found."""
    columns = dict(result.columns)
    for name, values in numbers.items():
        columns[name] = np.where(at, values, columns[name])
    caution = np.where(at, result.caution & ~np.int64(Caution.ZERO_VARIANCE), result.caution)
    attrs: dict[str, Any] = {**result.attrs, "test": test}
    if test != "wald":
        attrs["reference"] = f"{attrs['reference']}; {TANGO}"
    return replace(result, columns=columns, caution=caution, attrs=attrs)


def flag_few(result: Result, found: Discordance) -> Result:
    """Flag pairs that disagree on few points."""
    caution = result.caution.copy()
    caution[found.few] |= np.int64(Caution.DISCORDANT_FEW)
    return replace(result, caution=caution)
