"""Intervals from the means of test sets: corrected t, conservative Z, five times twofold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import special

from cvstats.core.cautions import Caution
from cvstats.core.moments import Moments
from cvstats.core.result import Result, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, checked_choice

__all__ = ["TESTS", "conservative_z", "corrected_t", "five_by_two"]

TESTS = ("t", "f")

Facts = Mapping[str, FloatArray | float]


def spread(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the rows and sum of squares about it; exactly zero where all rows are equal."""
    apart = means - means[0]
    middle = apart.mean(axis=0)
    return means[0] + middle, ((apart - middle) ** 2).sum(axis=0)


def corrected_t(
    moments: Moments,
    train_sizes: FloatArray,
    *,
    alpha: float,
    facts: Facts | None = None,
    caution: int = 0,
) -> Result:
    """Interval from one cell for each split, and how many points each model was trained on.

    Nadeau and Bengio (2003), the corrected resampled t; over the folds of several partitions
    it is that of Bouckaert and Frank (2004). Unequal splits: the ratio is averaged over them.
    """
    j = len(moments.count)
    estimate, squares = spread(moments.mean)
    ratio = float(np.mean(moments.count / train_sizes))
    variance = (1 / j + ratio) * squares / (j - 1)
    extra = {
        "df": j - 1, "n_splits": j, "n_train": float(np.mean(train_sizes)),
        "n_test": float(np.mean(moments.count)), **(facts or {}),
    }  # fmt: skip
    return interval(
        "corrected_t", estimate, variance, alpha=alpha, df=j - 1, extra=extra, caution=caution
    )


def conservative_z(
    moments: Moments,
    samples: IntArray,
    *,
    alpha: float,
    facts: Facts | None = None,
    overlap: bool = False,
) -> Result:
    """Interval from one cell for each split of each sample; ``samples`` numbers the cells.

    Nadeau and Bengio (2003): the halves 2r - 1 and 2r of division r share no point, so half
    the squared difference of their means estimates the variance of either without bias.
    """
    which, group = np.unique(samples, return_inverse=True)
    splits = np.bincount(group)
    sums = np.zeros((len(which), moments.mean.shape[1]))
    origin = moments.mean[0]
    np.add.at(sums, group, moments.mean - origin)
    means = sums / splits[:, None]  # mean of the split means of each sample, about the origin
    halves = means[which > 0]
    apart = halves[::2] - halves[1::2]
    r = len(apart)
    tested = np.bincount(group, moments.count) / splits
    off = np.abs(tested[which > 0] - tested[which == 0]).max()
    caution = Caution.FEW_REPETITIONS if r < 10 else Caution(0)
    other = np.any(splits != splits[which == 0])
    if other or off > max(1.0, 0.1 * float(tested[which == 0][0])):
        caution |= Caution.OTHER_TEST_SIZE
    if overlap:
        caution |= Caution.HALVES_OVERLAP
    extra = {
        "n_divisions": r, "n_splits": int(splits[which == 0][0]),
        "n_test": float(tested[which == 0][0]), **(facts or {}),
    }  # fmt: skip
    return interval(
        "conservative_z", origin + means[which == 0][0], (apart**2).sum(axis=0) / (2 * r),
        alpha=alpha, extra=extra, caution=caution,
    )  # fmt: skip


def five_by_two(
    means: FloatArray, *, test: str, alpha: float, facts: Facts, attrs: Mapping[str, str]
) -> Result:
    """Interval from fold means of shape (5, 2, columns), the first fold first."""
    checked_choice("test", test, TESTS)
    noise = ((means[:, 0] - means[:, 1]) ** 2 / 2).sum(axis=0)  # sum of the s_r^2
    told = {"test": test, **attrs}
    if test == "t":  # Dietterich (1998)
        extra = {"df": 5, **facts}
        return interval(
            "five_by_two", means[0, 0], noise / 5, alpha=alpha, df=5, extra=extra, attrs=told
        )
    return combined_f(means.reshape(10, -1), noise, alpha=alpha, facts=facts, attrs=told)


def combined_f(
    means: FloatArray,
    noise: FloatArray,
    *,
    alpha: float,
    facts: Facts,
    attrs: Mapping[str, str],
) -> Result:
    """Invert the combined F test of Alpaydin (1999), which may reject every value."""
    estimate, squares = spread(means)
    critical = float(special.fdtri(10, 5, 1 - alpha))
    radicand = (2 * critical * noise - squares) / 10
    empty = radicand < 0
    reach = np.sqrt(np.where(empty, np.nan, radicand))
    with np.errstate(divide="ignore", invalid="ignore"):
        f = (means**2).sum(axis=0) / (2 * noise)
    f = np.where((noise == 0) & (np.abs(means).max(axis=0) == 0), 0.0, f)
    columns = {
        "estimate": estimate,
        "lower": estimate - reach,
        "upper": estimate + reach,
        "se": np.full_like(estimate, np.nan),
        "statistic": f,
        "p_value": np.asarray(special.fdtrc(10, 5, f), dtype=np.float64),
    }
    for name, value in facts.items():
        columns[name] = np.broadcast_to(np.asarray(value), estimate.shape)
    missing = np.isnan(estimate)
    flags = np.where(empty & ~missing, int(Caution.EMPTY), 0)
    flags[(radicand == 0) & ~missing] |= int(Caution.ZERO_VARIANCE)
    flags[missing] = int(Caution.NO_LOSSES)
    told: dict[str, str | float | int] = {"alpha": alpha, "alternative": "two-sided", **attrs}
    return Result("five_by_two", columns, flags.astype(np.int64), told)


def checked_sizes(sizes: FloatArray) -> FloatArray:
    """Refuse training sizes that are no numbers of points."""
    if not np.all(np.isfinite(sizes)) or np.any(sizes < 1):
        bad = sizes[~(np.isfinite(sizes) & (sizes >= 1))][0]
        raise LogError(
            f"train_size holds {bad:g}. Expected the number of points that each model was trained "
            f"on, 1 or more; a share of the points is not told."
        )
    return sizes
