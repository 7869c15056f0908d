"""Intervals of resampled logs once more: slow, exact, and written from the papers.

As in `oracle.py` every sum is over individual losses in ``fractions.Fraction`` and nothing comes
from the package. Sources:

- Nadeau & Bengio (2003): corrected resampled t and conservative Z. For folds: Bouckaert & Frank
  (2004).
- Dietterich (1998), 5x2cv t; Alpaydin (1999), combined F.
- (BHT n): Bates, Hastie & Tibshirani (2024), Algorithm 1 and equations (10), (15).
- Austern & Zhou (2020): variance from cross-validation of a half with one point replaced.

An evaluation is a `Loss`: its number and the levels that say which it was.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from oracle import Interval, mean, squares, variance
from scipy import stats


class Loss(NamedTuple):
    """One evaluation; levels a log does not have keep their one label."""

    loss: Fraction
    repetition: Hashable = 0
    fold: Hashable = 0
    point: Hashable = None
    sample: int = 0
    outer: Hashable = None


def cells(log: Iterable[Loss], *levels: str) -> dict[tuple, list[Fraction]]:
    """Losses by some levels, in the order of their sorted labels."""
    found: dict[tuple, list[Fraction]] = {}
    for one in log:
        found.setdefault(tuple(getattr(one, level) for level in levels), []).append(one.loss)
    return {key: found[key] for key in sorted(found)}


def around(estimate: Fraction, square: Fraction, quantile: float, **extra: object) -> Interval:
    """Estimate plus and minus a quantile times the root of a variance."""
    se = math.sqrt(square)
    middle = float(estimate)
    reach = quantile * se
    return Interval(estimate, square, se, middle - reach, middle + reach, extra=extra)


def corrected_t(
    log: Iterable[Loss], train: Sequence[object], alpha: float = 0.05, by: Sequence[str] = ()
) -> Interval:
    """Nadeau & Bengio: ``(1/J + n2/n1) S^2`` with J - 1 degrees of freedom.

    `train` holds n1 of each split, in the order of the sorted labels of `by`.
    """
    splits = cells(log, *(by or ("repetition",)))
    means = [mean(losses) for losses in splits.values()]
    ratios = [Fraction(len(s)) / Fraction(n1) for s, n1 in zip(splits.values(), train, strict=True)]
    j = len(means)
    square = (Fraction(1, j) + mean(ratios)) * variance(means)
    return around(mean(means), square, stats.t.ppf(1 - alpha / 2, j - 1), df=j - 1)


def fold_train_sizes(log: Sequence[Loss]) -> list[int]:
    """What each fold of a (repeated) partition leaves for training."""
    whole = {key[0]: len(losses) for key, losses in cells(log, "repetition").items()}
    return [
        whole[repetition] - len(losses)
        for (repetition, _), losses in cells(log, "repetition", "fold").items()
    ]


def conservative_z(log: Sequence[Loss], alpha: float = 0.05) -> Interval:
    """Nadeau & Bengio: half the mean squared difference of two disjoint halves."""
    splits: dict[int, list[Fraction]] = {}
    for (sample, _), losses in cells(log, "sample", "repetition").items():
        splits.setdefault(sample, []).append(mean(losses))
    means = {sample: mean(values) for sample, values in splits.items()}
    divisions = [(means[2 * r - 1], means[2 * r]) for r in range(1, len(means) // 2 + 1)]
    square = mean((a - b) ** 2 for a, b in divisions) / 2
    return around(means[0], square, stats.norm.ppf(1 - alpha / 2), n_divisions=len(divisions))


def halves_of(log: Iterable[Loss]) -> list[tuple[Fraction, Fraction]]:
    """Both fold means of each of five repetitions."""
    means = [mean(losses) for losses in cells(log, "repetition", "fold").values()]
    return list(zip(means[::2], means[1::2], strict=True))


def five_by_two_t(log: Iterable[Loss], alpha: float = 0.05) -> Interval:
    """Dietterich: the first fold mean over the root of the mean of the s_r^2, five degrees."""
    pairs = halves_of(log)
    square = mean((one - two) ** 2 / 2 for one, two in pairs)
    return around(pairs[0][0], square, stats.t.ppf(1 - alpha / 2, 5), df=5)


class FInterval(NamedTuple):
    """What the combined F test says: of zero, and of every other value."""

    estimate: Fraction
    statistic: Fraction | None
    p_value: float
    radicand: Fraction


def five_by_two_f(log: Iterable[Loss], alpha: float = 0.05, null: object = 0) -> FInterval:
    """Alpaydin: ``f = sum p^2 / (2 sum s^2)`` about the null value, with 10 and 5 degrees.

    The values that the test does not reject solve ``10 (mu - mean)^2 <= radicand``.
    """
    pairs = halves_of(log)
    means = [p for pair in pairs for p in pair]
    noise = sum((one - two) ** 2 / 2 for one, two in pairs)
    centre = mean(means)
    critical = Fraction(float(stats.f.ppf(1 - alpha, 10, 5)))
    radicand = 2 * critical * noise - squares(means, centre)
    if noise == 0:
        return FInterval(centre, None, math.nan, radicand)
    f = squares(means, Fraction(null)) / (2 * noise)
    return FInterval(centre, f, float(stats.f.sf(float(f), 10, 5)), radicand)


def nested_cv(
    log: Sequence[Loss], bias_correction: str | None = "paper", alpha: float = 0.05
) -> Interval:
    """BHT Algorithm 1, loop by loop."""
    a, b, inner_all, outer_all = [], [], [], []
    for repetition in sorted({one.repetition for one in log}):
        part = [one for one in log if one.repetition == repetition]
        for held in sorted({one.outer for one in part}):
            rows = [one for one in part if one.outer == held]
            e_out = [one.loss for one in rows if one.fold == held]
            e_in = [one.loss for one in rows if one.fold != held]
            a.append((mean(e_in) - mean(e_out)) ** 2)  # Algorithm 1, a_list
            b.append(variance(e_out) / len(e_out))  # b_list
            inner_all += e_in
            outer_all += e_out
    k = len({one.outer for one in log})
    n = len({one.point for one in log})
    mse = mean(a) - mean(b)  # (10)
    err_ncv, err_cv = mean(inner_all), mean(outer_all)
    rate = Fraction(k - 2, k)
    factor = {"paper": 1 + rate, "code": Fraction(1 + float(rate) ** 1.5), None: Fraction(0)}
    bias = factor[bias_correction] * (err_ncv - err_cv)  # (15)
    floor = variance(inner_all) / n
    wanted = Fraction(k - 1, k) * mse
    square = min(max(wanted, floor), k * floor)
    return around(
        err_ncv - bias, square, stats.norm.ppf(1 - alpha / 2),
        err_ncv=err_ncv, err_cv=err_cv, bias=bias, mse_raw=mse, wanted=wanted, floor=floor, k=k,
    )  # fmt: skip


def replace_one(
    log: Sequence[Loss], constant: str = "efron-stein", alpha: float = 0.05
) -> Interval:
    """Austern & Zhou: squared changes of the error of a half when one of its points changes."""
    runs = {sample: mean(losses) for (sample,), losses in cells(log, "sample").items()}
    total = sum((runs[1] - runs[1 + number]) ** 2 for number in range(1, len(runs) - 1))
    square = total / (4 if constant == "efron-stein" else 2)
    return around(runs[0], square, stats.norm.ppf(1 - alpha / 2))
