"""Intervals from bootstrap samples: out of bag, .632+, cases, location-shifted and two-stage.

A bootstrap fit is a row, a point a column. ``counts[b, i]`` is how often point i is in the
sample of fit b, and a point that is not in it is out of bag. "ET" numbers are the equations of
Efron and Tibshirani (1997), doi:10.1080/01621459.1997.10474007. Every sum is taken about one of
the losses, so that a large common offset costs no digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.results import Result, flag, interval, make_result
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, checked_flag, listed, spelled
from cvstats.intervals._method import IntervalMethod
from cvstats.log.bootstrap import (
    BootstrapCounts,
    Rates,
    Resample,
    apparent_fit,
    code_of,
    count_draws,
    draws,
    leave_one_out_means,
    no_information_of,
    read_counts,
    resamples,
    without_undrawn,
)
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses, Table
from cvstats.log.read import read
from cvstats.options import Missing

Correction: TypeAlias = Literal["632+", "632", "harrell"]
MonteCarlo: TypeAlias = Literal["kept", "removed"]
Measure = Callable[[Resample, FloatArray], tuple[float, ...]]

EFRON = "Efron and Tibshirani (1997), JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007"
NOMA = (
    "Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Statistics in Medicine 40(26), "
    "5691-5701, doi:10.1002/sim.9148"
)
JIANG = (
    "Jiang, Varma and Simon (2008), Statistical Applications in Genetics and Molecular Biology "
    "7(1), 8, doi:10.2202/1544-6115.1322"
)

MADE = "cvstats.plans.bootstrap creates such a log."
MADE_OF_CASES = "cvstats.plans.case_bootstrap creates such a log."
MADE_OF_SAMPLES = "cvstats.plans.two_stage creates such a log."

MEANING = {
    "sample": "the outer sample that was resampled, 0 for the data itself",
    "repetition": "the bootstrap sample",
    "point": "an identifier for each data point",
    "count": "how often the point was in the sample that the model was trained on",
}
"""Descriptions of the levels of bootstrap samples."""

SHARE = 0.632
"""The expected share of distinct points in a large bootstrap sample."""

INTERPOLATES = 0.05
"""Share of the error below which an apparent error counts as close to zero."""

MUCH_NOISE = 0.25
"""Largest share of Monte Carlo variance that is not flagged."""

OPTIMISTIC = 0.85
"""Share of the corrected error below which apparent errors vary too little."""


BootstrapMethod = partial(IntervalMethod, needs_losses=True, takes_metrics=False)
"""The record of an interval from bootstrap samples, with what all of these need."""


# --- requirements -------------------------------------------------------------------------------


def levels_of_counts(design: Design, names: tuple[str, ...], made: str) -> str | None:
    """Require some levels, and whole numbers in ``count``."""
    for name in names:
        if name not in design.levels:
            missing = f"the log has no level {name!r} ({MEANING[name]})."
            if name == "repetition" and "sample" in design.levels:
                return (
                    f"{missing} If 'sample' numbers the bootstrap samples, rename that level to "
                    f"'repetition'; {made}"
                )
            return f"{missing} Add it to the index; {made}"
    if design.has("outer"):
        return f"the log contains nested cross-validation (level 'outer'); {made}"
    if odd := read_counts(design)[1]:
        return (
            f"its level 'count' has the label {listed(map(spelled, odd))}. Expected whole numbers, "
            f"0 for out of bag; {made}"
        )
    return None


def one_sample(design: Design, made: str) -> str | None:
    """Require several bootstrap samples of one data set."""
    if (problem := levels_of_counts(design, ("repetition", "point", "count"), made)) is not None:
        return problem
    if design.has("sample"):
        return (
            f"the log contains {design.number('sample'):,} resampled data sets (level 'sample'). "
            f"Select one (0 is the data): {design.take('sample')}; or use interval(losses), "
            "which uses all of them."
        )
    samples = design.number("repetition") - (apparent_fit(design) is not None)
    if samples < 2:
        return f"the log has {samples} bootstrap sample{'s'[: samples != 1]}. {made}"
    return None


def bootstrap_samples(design: Design) -> str | None:
    """Require bootstrap samples whose out-of-bag points were evaluated."""
    if (problem := one_sample(design, MADE)) is not None:
        return problem
    groups, found = count_draws(design)
    if not found[groups[:, 1] != apparent_fit(design), 0].any():
        return (
            "the log has no out-of-bag evaluation (count 0). For case cross-validation use "
            "case_bootstrap, and cvstats.difference(losses).cvci.case_bootstrap() to compare "
            f"models; {MADE}"
        )
    return None


def bootstrap_with_apparent_error(design: Design) -> str | None:
    """Require bootstrap samples and the fit on the sample itself."""
    if (problem := bootstrap_samples(design)) is not None:
        return problem
    if apparent_fit(design) is None:
        found = (
            "no repetition 0"
            if code_of(design, "repetition", 0) is None
            else "a bootstrap sample as repetition 0 (some of its counts are 0)"
        )
        return (
            f"the log has {found}. Expected repetition 0 to be the fit on the sample itself, for "
            f"the apparent error, and bootstrap samples from 1 on; {MADE}"
        )
    return None


def case_bootstrap_samples(design: Design) -> str | None:
    """Require bootstrap samples in which every drawn point was left out once."""
    if (problem := one_sample(design, MADE_OF_CASES)) is not None:
        return problem
    groups, found = count_draws(design)
    if found[groups[:, 1] != apparent_fit(design), 0].any():
        return (
            "the log has out-of-bag evaluations (count 0). Expected each point of a bootstrap "
            "sample to be tested by a model trained without its copies. For out-of-bag losses "
            f"use bootstrap_oob; {MADE_OF_CASES}"
        )
    return None


def two_stage_samples(design: Design) -> str | None:
    """Require bootstrap samples, and the fit itself, of the data and of outer samples."""
    names = ("sample", "repetition", "point", "count")
    if (problem := levels_of_counts(design, names, MADE_OF_SAMPLES)) is not None:
        return problem
    if code_of(design, "sample", 0) is None or design.number("sample") < 3:
        codes = design.cell_table(("sample",)).codes[:, 0].tolist()
        shown = listed([spelled(design.levels["sample"].labels[code]) for code in codes])
        return (
            f"its level 'sample' has the labels {shown}. Expected 0 for the data and at least "
            f"two outer samples; {MADE_OF_SAMPLES}"
        )
    groups, found = count_draws(design)
    own = groups[:, 1] == code_of(design, "repetition", 0)
    labels = design.levels["sample"].labels
    for code in np.unique(groups[:, 0]).tolist():
        mine = groups[:, 0] == code
        if not (mine & own).any() or found[mine & own, 0].any():
            return (
                f"sample {spelled(labels[code])} has no repetition 0. Expected the fit on each "
                f"outer sample itself, with counts of 1 and above (how often each point was "
                f"drawn); {MADE_OF_SAMPLES}"
            )
        if not found[mine & ~own, 0].any():
            return (
                f"sample {spelled(labels[code])} has no out-of-bag evaluation (count 0). "
                f"Expected bootstrap samples of each outer sample; {MADE_OF_SAMPLES}"
            )
    return None


# --- errors and limits ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """The leave-one-out bootstrap, one number per column of losses."""

    error: FloatArray
    variance: FloatArray
    noise: FloatArray
    caution: IntArray


def point_means(bags: BootstrapCounts, losses: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Mean out-of-bag loss over points and for each point, and the sums ``q_b`` of each fit.

    ``losses`` has one row per fit and one column per point; only out-of-bag losses are read. Points
    (0 if never out of bag) and fits are relative to the overall mean.
    """
    n = bags.counts.shape[1]
    origin = float(losses[bags.first_out])
    sums, fits = np.zeros(n), np.empty(len(bags.counts))
    for slab in bags.slabs:
        deviations = np.where(bags.out_of_bag(slab), losses[slab] - origin, 0.0)
        sums += deviations.sum(axis=0)
        fits[slab] = deviations.sum(axis=1)
    used = bags.times_out > 0
    point = np.zeros(n)
    np.divide(sums, bags.times_out, out=point, where=used)
    level = point[used].mean()
    point[used] -= level
    return origin + level, point, fits / n - level * bags.share


def estimate_out_of_bag(
    bags: BootstrapCounts, columns: Iterable[FloatArray | None], *, monte_carlo: str
) -> OutOfBag:
    """Estimate the leave-one-out bootstrap error (ET 17) and its variance (ET 35-40).

    ``columns`` gives losses, fits by points, or None for a column without any. The variance is
    the sum of squares of the ``D_i``, the directional derivatives of the error divided by n. The
    noise is the part due to the finite number of samples: the variance of each ``D_i`` if counts
    and ``q_b`` of a sample are independent.
    """
    n, used = bags.counts.shape[1], bags.times_out > 0
    if used.sum() < 2:
        raise LogError(
            f"only {used.sum()} of the {n:,} points is ever out of bag. Expected at least two. "
            "Draw more bootstrap samples."
        )
    nothing = np.nan, np.full(n, np.nan), np.full(len(bags.counts), np.nan)
    found = [nothing if each is None else point_means(bags, each) for each in columns]
    error, point, fits = (np.array(parts) for parts in zip(*found, strict=True))
    if monte_carlo == "kept":
        fits += error[:, None] * bags.share  # as printed: their mean level is noise
    products, squares = bags.covary(fits)
    point, times = point[:, used], bags.times_out[used]
    derivative = (2 + 1 / (n - 1)) * point / n + products[:, used] / times
    scale = n / used.sum()
    variance = scale * (derivative**2).sum(axis=1)
    noise = scale * (squares[:, used] / times**2).sum(axis=1)
    caution = np.full(len(error), 0 if used.all() else Caution.NEVER_OUT_OF_BAG, dtype=np.int64)
    caution[noise > MUCH_NOISE * variance] |= Caution.FEW_REPLICATES
    if monte_carlo == "removed":
        variance -= noise
        below = variance < 0
        variance[below] = scale * (point[below] ** 2).sum(axis=1) / n**2
        caution[below] |= Caution.CLAMPED
    return OutOfBag(error, variance, noise, caution)


def weighted_means(
    bags: BootstrapCounts, losses: FloatArray, weights: IntArray | None = None
) -> FloatArray:
    """Mean loss of each fit, with each point weighted by how often it was drawn.

    With ``weights``, these are used in every fit instead. NaN if there is no loss.
    """
    means = np.empty(len(bags.counts))
    for slab in bags.slabs:
        weight = bags.counts[slab] if weights is None else weights * np.ones_like(bags.counts[slab])
        if bags.here is not None:
            weight = np.where(bags.here[slab], weight, 0)
        heavy = weight > 0
        origin = losses[slab][np.arange(len(weight)), heavy.argmax(axis=1)][:, None]
        deviations = np.where(heavy, losses[slab], origin) - origin
        with np.errstate(invalid="ignore"):
            means[slab] = origin[:, 0] + (weight * deviations).sum(axis=1) / weight.sum(axis=1)
    return means


def mean_of_draws(fit: IntArray, count: IntArray, losses: FloatArray) -> FloatArray:
    """Mean loss of each fit, from the fit, the count and the loss of each point that it drew."""
    deviations = losses - losses[0]
    sums = np.bincount(fit, weights=count * deviations)
    means: FloatArray = losses[0] + sums / np.bincount(fit, weights=count)
    return means


@dataclass(frozen=True, eq=False)
class Corrected:
    """Errors corrected for optimism, one number per column."""

    estimate: FloatArray
    weight: FloatArray
    overfitting: FloatArray
    clipped: MaskArray


def correct_errors(
    apparent: FloatArray, error: FloatArray, no_information: FloatArray | None
) -> Corrected:
    """Weight apparent and out-of-bag error: .632+ (ET 27-32), or .632 (ET 24) without a rate.

    The relative overfitting rate R is clipped to [0, 1], and Err1 to at most the no-information
    rate gamma. Computations use differences from the apparent error.
    """
    excess = error - apparent
    if no_information is None:
        weight = np.full_like(excess, SHARE)
        plain = np.full_like(excess, np.nan)
        return Corrected(apparent + weight * excess, weight, plain, np.zeros(excess.shape, bool))
    highest_excess = no_information - apparent
    capped = np.minimum(excess, highest_excess)
    with np.errstate(divide="ignore", invalid="ignore"):
        overfitting = np.where((excess > 0) & (highest_excess > 0), capped / highest_excess, 0.0)
    weight = SHARE / (1 - (1 - SHARE) * overfitting)
    clipped = (excess > highest_excess) | (excess < 0) | (highest_excess <= 0)
    return Corrected(apparent + weight * capped, weight, overfitting, clipped)


def percentile_interval(
    method: str,
    estimate: FloatArray,
    values: FloatArray,
    *,
    shift: FloatArray,
    alpha: float,
    extra: dict[str, FloatArray | float],
    caution: IntArray,
    attrs: dict[str, str | float | int],
) -> Result:
    """Interval between two quantiles (type 7) of replicates, moved by ``shift``.

    ``values`` has a row for each replicate and a column for each model. The standard error is
    NaN: the method does not provide one.
    """
    origin = values[0]
    limits = origin + np.quantile(values - origin, [alpha / 2, 1 - alpha / 2], axis=0) + shift
    columns = {"estimate": estimate, "lower": limits[0], "upper": limits[1], "se": np.nan, **extra}
    flags = caution | flag(Caution.ZERO_VARIANCE, limits[0] == limits[1])
    if len(values) * alpha < 10:  # fewer than five replicates beyond each limit
        flags |= Caution.FEW_REPLICATES
    return make_result(method, columns, flags, {"alpha": alpha, **attrs})


def apparent_error(data: Resample, values: FloatArray) -> float:
    """Mean loss of the fit on a data set itself, weighted by how often each point is in it."""
    if data.apparent is None:
        return np.nan
    return float(weighted_means(data.apparent, values[data.apparent_rows].reshape(1, -1))[0])


def measure_samples(log: Log, data: Sequence[Resample], measure: Measure, width: int) -> FloatArray:
    """Measure each data set in each column: numbers, data sets by columns; NaN where masked."""
    found = [
        [(np.nan,) * width if values is None else measure(one, values) for one in data]
        for values in log.columns()
    ]
    return np.array(found, dtype=np.float64).transpose(2, 1, 0)


def measure_of(correction: str) -> Measure:
    """Choose what a correction computes from a data set: the apparent and the (corrected) error."""

    def error(data: Resample, values: FloatArray) -> tuple[float, ...]:
        apparent, losses = apparent_error(data, values), data.losses(values)
        if correction != "harrell" or data.apparent is None:
            return apparent, point_means(data.bags, losses)[0]
        # The mean optimism is the error of each fit in its own sample, minus that on the data.
        own = weighted_means(data.bags, losses)
        whole = weighted_means(data.bags, losses, data.apparent.counts)
        return apparent, float(apparent - (own - whole).mean())

    return error


def correct_by(
    correction: str, apparent: FloatArray, error: FloatArray, rates: FloatArray | None
) -> Corrected:
    """Correct apparent errors by a chosen rule."""
    if correction == "harrell":
        plain = np.full_like(error, np.nan)
        return Corrected(error, plain, plain, np.zeros(error.shape, dtype=bool))
    return correct_errors(apparent, error, rates)


def overfitting_caution(apparent: FloatArray, error: FloatArray, least: float) -> IntArray:
    """Flag an apparent error that is too small a share of the error."""
    return flag(Caution.OVERFITTING, (apparent < least * error) & (error > 0))


def never_out_caution(data: Sequence[Resample], correction: str) -> int:
    """Flag data sets with a point that is in all of its samples."""
    if correction == "harrell" or all((one.bags.times_out > 0).all() for one in data):
        return 0
    return int(Caution.NEVER_OUT_OF_BAG)


# --- the methods ---------------------------------------------------------------------------------


@BootstrapMethod(
    requires=bootstrap_samples,
    needs="bootstrap samples with the losses of their out-of-bag points (levels 'repetition', "
    "'point' and 'count')",
    target="expected risk of a model trained on a bootstrap sample (about 0.632 n distinct points)",
    guarantee="heuristic",
    fits="B",
    reference=EFRON,
    made_for=("count",),
    recognized_by="bootstrap samples, without the fit on the sample itself",
)
def bootstrap_oob(
    log: Log,
    *,
    monte_carlo: MonteCarlo = "kept",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Leave-one-out bootstrap interval, from points that a bootstrap sample does not contain.

    The target is the expected risk of a model trained on a bootstrap sample, which contains about
    0.632 n distinct points, so the estimate is slightly too large for n points. The loss of each
    point is averaged over the samples without it, and the estimate is the mean over the points.
    The standard error is that of the infinitesimal jackknife.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Bootstrap samples as levels ``repetition``, ``point`` and ``count`` (how often the point
        was in the sample, 0 out of bag), every point in each repetition. Losses in any unit;
        those in bag, and repetition 0 (the fit on the sample itself), are not used.
    monte_carlo : {"kept", "removed"}, optional
        Whether the standard error is the published formula, or excludes the Monte Carlo variance
        due to the finite number of samples. That variance is estimated, and its larger part,
        which grows with the mean loss, is avoided from the start.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models. Counts
        are still read, so in-bag losses are not needed.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, ``se_monte_carlo`` (the Monte Carlo part of
        the published ``se``; squares add up) and ``caution``. ``n_points`` and ``n_repetitions``
        (bootstrap samples) are in ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If a level is missing, a repetition lacks points, its counts do not sum to n, or fewer
        than two points are ever out of bag.

    See Also
    --------
    cvstats.bootstrap_632 : The same, corrected for the smaller training samples.
    cvstats.case_bootstrap : Leave-one-out within each bootstrap sample.
    cvstats.plans.bootstrap : The resampling plan this method needs.

    Notes
    -----
    With E_i the mean loss of point i over the samples without it, and Err1 their mean,

    .. math::

        \mathrm{se}^2 = \sum_i D_i^2, \qquad
        D_i = \left(2 + \frac{1}{n - 1}\right) \frac{E_i - \mathrm{Err}_1}{n}
            + \frac{\sum_b (N_{ib} - \bar N_i)\, q_b}{\#\{b : N_{ib} = 0\}} ,

    where N_ib counts point i in sample b, q_b is 1/n times the sum of the losses out of bag, and
    the last denominator is the number of samples without point i.

    The method is heuristic and takes B fits. The published standard error is too large unless there
    are many times more samples than points: with as many samples as points, its square is more than
    doubled. It also changes if a constant is added to all losses, because the share of out-of-bag
    points varies between samples. With ``monte_carlo="removed"``, it does not. Points that are
    never out of bag are dropped, and the variance is rescaled accordingly.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007, equations 17 and 35-40.

    Examples
    --------
    The loss of a mean, fitted to 400 bootstrap samples of 20 numbers:

    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=20)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> loss = (y - counts @ y[:, None] / 20) ** 2
    >>> names = ["repetition", "point"]
    >>> index = pd.MultiIndex.from_product([range(1, 401), range(20)], names=names)
    >>> log = pd.DataFrame({"count": counts.ravel(), "mean": loss.ravel()}, index=index)
    >>> losses = log.set_index("count", append=True)["mean"]
    >>> losses.cvci.bootstrap_oob()[["estimate", "se", "se_monte_carlo"]].round(3)
          estimate    se se_monte_carlo
    model
    mean      0.39  0.11           0.04
    """
    # Estimate the out-of-bag error and its variance.
    (data,) = resamples(log.design)
    data.check_draws()
    columns = (None if v is None else data.losses(v) for v in log.columns())
    found = estimate_out_of_bag(data.bags, columns, monte_carlo=monte_carlo)
    fits, points = data.bags.counts.shape
    return interval(
        "bootstrap_oob", found.error, found.variance, origin=0.0, alpha=alpha,
        extra={"se_monte_carlo": np.sqrt(found.noise), "n_points": points, "n_repetitions": fits},
        caution=found.caution, attrs={"monte_carlo": monte_carlo},
    )  # fmt: skip


@BootstrapMethod(
    check=lambda options: checked_flag("plus", options["plus"]),
    requires=bootstrap_with_apparent_error,
    needs="bootstrap samples with the losses of their out-of-bag points, and the fit on the sample "
    "itself (levels 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic: the standard error is that of bootstrap_oob, rescaled; .632 is far "
    "too small for models that fit their training data perfectly",
    fits="B + 1",
    reference=EFRON,
    for_differences=False,
    made_for=("count",),
    recognized_by="bootstrap samples plus a fit to the original data (repetition 0)",
)
def bootstrap_632(
    log: Log,
    *,
    plus: bool = True,
    no_information: Rates | None = None,
    monte_carlo: MonteCarlo = "kept",
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    r""".632+ bootstrap interval: the out-of-bag error, corrected for smaller training samples.

    The target is the expected risk at n points. The estimate is a weighted mean of two errors: the
    apparent error of the model fitted to the whole sample, which is too small, and the error of
    `bootstrap_oob`, which is too large. For .632, the second error has a weight of 0.632. For
    .632+, its weight increases from 0.632 to 1 with the degree of overfitting. The standard error
    of `bootstrap_oob` is multiplied by the ratio of the two estimates.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        As for `bootstrap_oob`, with repetition 0: the losses of the model fitted to the sample
        itself, with a count of 1.
    plus : bool, optional
        Whether to compute .632+ rather than .632, which does not need gamma but is too small for
        models that fit their training data perfectly.
    no_information : float, mapping, sequence or array, optional
        For .632+ the rate gamma: the mean loss over all n^2 pairs of a truth and a prediction of
        the model fitted to the whole sample. A number for all models, or one for each, by name
        or in their order; for an array of losses also an array over its carried dimensions.
        The default is ``losses.attrs["no_information"]``, which `cvstats.evaluate` sets.
    monte_carlo : {"kept", "removed"}, optional
        See `bootstrap_oob`. The Monte Carlo noise compensates for the estimated weight of .632+:
        with "removed" its intervals are too narrow, and for learners that overfit they covered
        65% to 87% instead of 95%.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper``, ``se``, ``se_monte_carlo``, ``apparent`` (err), ``out_of_bag`` (Err1) and
        ``no_information`` (gamma), all in the units of the loss; ``overfitting`` (R), ``weight``
        (w) and ``caution``. ``n_points`` and ``n_repetitions`` are in ``attrs``, or columns if
        they vary between rows.

    Raises
    ------
    LogError
        If repetition 0 or gamma is missing, or for the same reasons as `bootstrap_oob`.

    See Also
    --------
    cvstats.bootstrap_oob : The out-of-bag error alone, which also compares models.
    cvstats.location_shifted : The same estimate, with quantiles of apparent errors.
    cvstats.plans.bootstrap : The resampling plan this method needs.

    Notes
    -----
    With err the apparent error, Err1 that of `bootstrap_oob` and gamma the no-information rate,

    .. math::

        \mathrm{estimate} = (1 - w)\,\mathrm{err} + w\,\mathrm{Err}_1, \qquad
        w_{.632+} = \frac{0.632}{1 - 0.368 R}, \qquad
        R = \frac{\mathrm{Err}_1 - \mathrm{err}}{\gamma - \mathrm{err}} .

    The method is heuristic and takes B + 1 fits. Its coverage depends on the learner and on the
    signal-to-noise ratio. In eight simulated populations with 100 points, 95% intervals of .632+
    covered the error in 36% (interpolating least squares) to 100% of runs: in 48% for the nearest
    neighbor and in 98% for ridge regression. For a model that fits its training data perfectly,
    .632 is always 0.632 Err1, and covered 21% to 26% for nearest neighbors; ``caution`` then
    contains ``overfitting``. R is clipped to [0, 1], and in the estimate Err1 is clipped to at most
    gamma; ``caution`` flags both. The standard error is rescaled only if Err1 is positive.
    Differences between models can be negative and are therefore not supported; use `bootstrap_oob`
    to compare models.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007, equations 24-32.

    Examples
    --------
    A nearest-neighbor classifier of 40 labels that are coin tosses and cannot be predicted:

    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(2)
    >>> x, y = rng.normal(size=40), rng.integers(0, 2, 40)
    >>> counts = rng.multinomial(40, np.full(40, 1 / 40), size=500)
    >>> counts = np.vstack([np.ones(40, dtype=int), counts])  # repetition 0 is the whole sample
    >>> gaps = np.abs(x - x[:, None])
    >>> nearest = [np.where(drawn > 0, gaps, np.inf).argmin(axis=1) for drawn in counts]
    >>> loss = np.array([y[near] != y for near in nearest]).astype(float)
    >>> index = pd.MultiIndex.from_product([range(501), range(40)], names=["repetition", "point"])
    >>> log = pd.DataFrame({"count": counts.ravel(), "1-nn": loss.ravel()}, index=index)
    >>> losses = log.set_index("count", append=True)["1-nn"]
    >>> share = y.mean()
    >>> result = losses.cvci.bootstrap_632(no_information=2 * share * (1 - share))
    >>> result[["estimate", "apparent", "out_of_bag", "no_information"]].round(3)
           estimate  apparent  out_of_bag  no_information
    model
    1-nn      0.499       0.0       0.511           0.499
    >>> print(result.attrs["cautions"]["bounded"])
    The standard error, or the overfitting rate, was clipped to its possible range...
    """
    # Weight apparent and out-of-bag error; the standard error is that of Err1, rescaled.
    # Rescaling makes sense for positive errors only, and is skipped for others.
    rates = None
    if plus:
        rates = no_information_of(
            log, no_information, method="bootstrap_632", without="plus=False (the .632 error)"
        )
    (data,) = resamples(log.design)
    data.check_draws()
    own: list[float] = []

    def columns() -> Iterator[FloatArray | None]:
        for values in log.columns():
            own.append(np.nan if values is None else apparent_error(data, values))
            yield None if values is None else data.losses(values)

    found = estimate_out_of_bag(data.bags, columns(), monte_carlo=monte_carlo)
    n_repetitions, n_points = data.bags.counts.shape
    apparent = np.array(own)
    mixed = correct_errors(apparent, found.error, rates)
    with np.errstate(divide="ignore", invalid="ignore"):
        sensible = (found.error > 0) & (mixed.estimate >= 0)
        ratio = np.where(sensible, mixed.estimate / found.error, 1.0)
    caution = found.caution | flag(Caution.BOUNDED, mixed.clipped)
    caution |= overfitting_caution(apparent, found.error, INTERPOLATES)
    correction = "632" if rates is None else "632+"
    extra: dict[str, FloatArray | float] = {"se_monte_carlo": np.sqrt(found.noise) * ratio}
    extra |= {"apparent": apparent, "out_of_bag": found.error}
    if rates is not None:
        extra |= {"no_information": rates, "overfitting": mixed.overfitting}
    extra |= {"weight": mixed.weight, "n_points": n_points, "n_repetitions": n_repetitions}
    return interval(
        "bootstrap_632", mixed.estimate, found.variance * ratio**2, origin=0.0, alpha=alpha,
        extra=extra,
        caution=caution, attrs={"correction": correction, "monte_carlo": monte_carlo},
    )  # fmt: skip


def summarize_errors(log: Log, *, leave_one_out: FloatArray | None, alpha: float) -> Result:
    """Compute percentiles of the samples' errors; ``leave_one_out`` has one mean per column."""
    drawn = draws(log.design)
    theta = np.stack(
        [
            np.full(drawn.fits, np.nan)
            if values is None
            else mean_of_draws(drawn.fit, drawn.count, values[drawn.rows])
            for values in log.columns()
        ],
        axis=1,
    )
    mean = theta[0] + (theta - theta[0]).mean(axis=0)
    estimate = mean if leave_one_out is None else leave_one_out
    extra: dict[str, FloatArray | float]
    extra = {"n_points": drawn.points, "n_repetitions": drawn.fits}
    if leave_one_out is not None:
        extra = {"bias": mean - estimate, **extra}
    return percentile_interval(
        "case_bootstrap", estimate, theta, shift=estimate - mean, alpha=alpha, extra=extra,
        caution=np.full(theta.shape[1], 0 if drawn.whole else Caution.OTHER_DRAWS, dtype=np.int64),
        attrs={"correction": "none" if leave_one_out is None else "leave-one-out"},
    )  # fmt: skip


@BootstrapMethod(
    prepare=without_undrawn,
    requires=case_bootstrap_samples,
    needs="bootstrap samples in which each point was left out in turn, together with all its "
    "copies (levels 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic",
    fits="about 0.632 n B; n more with leave_one_out",
    reference=JIANG,
    for_differences=False,
    made_for=("count",),
    recognized_by="leave-one-out cross-validation within each bootstrap sample",
).computed_by(summarize_errors)
def case_bootstrap(
    losses: Losses,
    *,
    leave_one_out: Losses | ArrayLike | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    r"""Bootstrap case cross-validation interval: leave-one-out within each bootstrap sample.

    The target is the expected risk. In each bootstrap sample every distinct point is tested by a
    model trained without any of its copies; the mean of these losses, weighted by the number of
    copies, is the error of the sample. The estimate is the mean of these errors, and the limits
    are their quantiles at alpha/2 and 1 - alpha/2. With ``leave_one_out`` the estimate is the
    mean of those losses, and the limits shift with it.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss for each distinct point of each bootstrap sample: levels ``repetition``, ``point``
        and ``count`` (how often the point is in the sample, 1 or more).
    leave_one_out : log or array-like, optional
        Leave-one-out cross-validation of the sample itself: a log of the same models and points,
        matched by label (as are carried dimensions), or, for one model, one loss per point in any
        order.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` (NaN: quantiles have none) in the units of the loss, ``bias`` (the
        amount subtracted by the correction, with ``leave_one_out``) and ``caution``. ``n_points``
        and ``n_repetitions`` are in ``attrs``.

    Raises
    ------
    LogError
        If a level is missing, if the log has evaluations out of bag, or if ``leave_one_out``
        has different models or carried cells, or lacks a point.

    See Also
    --------
    cvstats.bootstrap_oob : Fewer fits: points that a bootstrap sample does not contain.
    cvstats.two_stage : A bootstrap within a bootstrap.
    cvstats.plans.case_bootstrap : The resampling plan this method needs.

    Notes
    -----
    With N_ib the copies of point i in sample b, and e_ib its loss, the error of the sample is

    .. math::

        \theta_b = \frac{\sum_i N_{ib}\, e_{ib}}{\sum_i N_{ib}} .

    The method is heuristic. It takes about 0.632 n B fits, and n more for the correction. The
    uncorrected estimate is too large, because the training sets have fewer distinct points. If the
    counts of the samples do not have equal sums, losses of sampled points are missing (or the
    samples were drawn in a different way), and ``caution`` flags it. Quantiles are of type 7
    (linear between order statistics); the quantile at 2.5% requires 200 samples.

    References
    ----------
    Jiang, Varma and Simon (2008), Calculating confidence intervals for prediction error in
    microarray classification using resampling, Statistical Applications in Genetics and
    Molecular Biology 7(1), 8, doi:10.2202/1544-6115.1322.

    Examples
    --------
    The loss of a mean computed without any copy of the point:

    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=20)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> others = (counts @ y[:, None] - counts * y) / (20 - counts)
    >>> names = ["repetition", "point"]
    >>> index = pd.MultiIndex.from_product([range(1, 401), range(20)], names=names)
    >>> log = pd.DataFrame({"count": counts.ravel(), "mean": ((y - others) ** 2).ravel()}, index)
    >>> losses = log[log["count"] > 0].set_index("count", append=True)["mean"]
    >>> without = (y - (y.sum() - y) / 19) ** 2
    >>> result = losses.cvci.case_bootstrap(leave_one_out=without)
    >>> result[["estimate", "lower", "upper", "bias"]].round(3)
          estimate lower upper   bias
    model
    mean      0.37  0.17  0.64  0.022
    """
    record = case_bootstrap.record
    record.check_options({"alpha": alpha})
    log = read(losses, missing=missing)
    if leave_one_out is None:
        return log.label(answer_cells(log, partial(record.run, alpha=alpha)))
    means = leave_one_out_means(log, leave_one_out, missing)
    return log.label(record.run(log, leave_one_out=means, alpha=alpha))


@BootstrapMethod(
    requires=bootstrap_with_apparent_error,
    needs="bootstrap samples with the losses of their in-bag and out-of-bag points, and the fit on "
    "the sample itself (levels 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic: the spread is that of apparent errors, which is zero for models that "
    "fit their training data perfectly",
    fits="B + 1",
    reference=NOMA,
    for_differences=False,
)
def location_shifted(
    log: Log,
    *,
    correction: Correction = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    r"""Location-shifted bootstrap interval, from quantiles of the apparent errors.

    The target is the expected risk, and the estimate the apparent error of the model fitted to the
    whole sample, corrected for optimism. Each bootstrap fit has an apparent error in its own
    sample, a mean over points weighted by their counts. The limits are the quantiles of these at
    alpha/2 and 1 - alpha/2, shifted by the correction.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        As for `bootstrap_632`: every point in each bootstrap sample, in bag and out of bag, and
        repetition 0.
    correction : {"632+", "632", "harrell"}, optional
        The estimate: as in `bootstrap_632`; or err less the mean over b of app_b minus the
        error of fit b on the whole sample.
    no_information : float, mapping, sequence or array, optional
        For "632+", as in `bootstrap_632`.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper``, ``se`` (NaN: quantiles have none), ``apparent``, ``out_of_bag`` and
        ``no_information`` (if the correction uses them), all in the units of the loss; and
        ``caution``. ``n_points`` and ``n_repetitions`` are in ``attrs``.

    Raises
    ------
    LogError
        If a level, repetition 0 or the no-information rate is missing, or points in a repetition.

    See Also
    --------
    cvstats.bootstrap_632 : The same estimate, with a standard error.
    cvstats.two_stage : Quantiles of corrected errors.
    cvstats.plans.bootstrap : The resampling plan this method needs.

    Notes
    -----
    With err the apparent error of the fit to the whole sample, app_b that of bootstrap fit b in
    its own sample, and q their quantiles, the limits are

    .. math::

        q_{\alpha/2}(\mathrm{app}) + \mathrm{estimate} - \mathrm{err}, \qquad
        q_{1 - \alpha/2}(\mathrm{app}) + \mathrm{estimate} - \mathrm{err} .

    The method is heuristic and takes B + 1 fits. The width of the interval is determined by the
    spread of the apparent errors, which decreases as a model overfits. For least squares with one
    feature per four points, coverage was 46% to 57%, and for a model that fits its training data
    perfectly, the interval has zero width. In these cases ``caution`` contains ``overfitting``. The
    interval need not contain the estimate: bootstrap samples contain some points several times, so
    the apparent errors of their fits are smaller than err.

    References
    ----------
    Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Confidence intervals of prediction
    accuracy measures for multivariable prediction models based on the bootstrap-based optimism
    correction methods, Statistics in Medicine 40(26), 5691-5701, doi:10.1002/sim.9148.

    Examples
    --------
    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=20)
    >>> counts = rng.multinomial(20, np.full(20, 1 / 20), size=400)
    >>> counts = np.vstack([np.ones(20, dtype=int), counts])
    >>> loss = (y - counts @ y[:, None] / 20) ** 2
    >>> index = pd.MultiIndex.from_product([range(401), range(20)], names=["repetition", "point"])
    >>> log = pd.DataFrame({"count": counts.ravel(), "mean": loss.ravel()}, index=index)
    >>> losses = log.set_index("count", append=True)["mean"]
    >>> result = losses.cvci.location_shifted(no_information=y.var())
    >>> result[["estimate", "lower", "upper"]].round(3)
           estimate  lower  upper
    model
    mean      0.333  0.162  0.508
    """
    # Compute percentiles of the apparent errors of the bootstrap fits, shifted by the correction.
    rates = None
    if correction == "632+":
        rates = no_information_of(
            log, no_information, method="location_shifted",
            without="correction='632' or correction='harrell'",
        )  # fmt: skip
    (data,) = resamples(log.design)
    error = measure_of(correction)

    def measure(one: Resample, values: FloatArray) -> tuple[float, ...]:
        own = weighted_means(one.bags, one.losses(values))
        return (*error(one, values), *own.tolist())

    found = measure_samples(log, [data], measure, 2 + len(data.fits))[:, 0]
    apparent, second, own = found[0], found[1], found[2:]
    made = correct_by(correction, apparent, second, rates)
    extra: dict[str, FloatArray | float] = {"apparent": apparent}
    if correction != "harrell":
        extra |= {"out_of_bag": second}
    if rates is not None:
        extra |= {"no_information": rates}
    caution = never_out_caution([data], correction) | flag(Caution.BOUNDED, made.clipped)
    caution |= overfitting_caution(apparent, second, OPTIMISTIC)
    extra |= {"n_points": data.bags.counts.shape[1], "n_repetitions": len(data.fits)}
    return percentile_interval(
        "location_shifted", made.estimate, own, shift=made.estimate - apparent, alpha=alpha,
        extra=extra, caution=caution, attrs={"correction": correction},
    )  # fmt: skip


@BootstrapMethod(
    requires=two_stage_samples,
    needs="bootstrap samples of the data and of resampled data sets, including a fit to each "
    "sample and each data set (levels 'sample', 'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic; 'harrell' and '632' fail for models that fit their training data "
    "perfectly",
    fits="(B_outer + 1) (B_inner + 1)",
    reference=NOMA,
    for_differences=False,
    made_for=("sample", "count"),
    recognized_by="bootstrap samples of bootstrap samples (levels 'sample' and 'count')",
)
def two_stage(
    log: Log,
    *,
    correction: Correction = "632+",
    no_information: Rates | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Result:
    """Two-stage bootstrap interval: the corrected error, recomputed on resampled data sets.

    The target is the expected risk. Each outer bootstrap sample s is treated as a data set. A fit
    on it, and fits on bootstrap samples of it, give an error that is corrected for optimism. The
    estimate is the corrected error of the original data (sample 0). The limits are the quantiles
    ``q(alpha/2)`` and ``q(1 - alpha/2)`` of the corrected errors of the outer samples.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``sample`` (0 the data, others the outer samples), ``repetition`` (0 the fit on
        the sample itself, others its bootstrap samples), ``point`` and ``count``: how often the
        point was in the sample of that fit, which for repetition 0 is how often it was drawn
        into the outer sample. Each distinct point of an outer sample is in all its repetitions.
    correction : {"632+", "632", "harrell"}, optional
        As in `location_shifted`.
    no_information : mapping, sequence, Series, DataFrame or array, optional
        For "632+" a number for each sample, by label or in the order of the labels; for several
        models the same for each, by name, or a frame of samples by models. The default is
        ``losses.attrs["no_information"]``, which `cvstats.evaluate` sets.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` (NaN: quantiles have none) in the units of the loss, and ``caution``.
        ``n_points``, ``n_samples`` (outer samples) and ``n_repetitions`` (bootstrap samples of
        each, the fewest) are in ``attrs``.

    Raises
    ------
    LogError
        If a level, sample 0, a repetition 0 or a no-information rate is missing.

    See Also
    --------
    cvstats.bootstrap_632 : One stage, with far fewer fits.
    cvstats.case_bootstrap : Leave-one-out within each bootstrap sample.
    cvstats.plans.two_stage : The resampling plan this method needs.

    Notes
    -----
    The method is heuristic and takes (B_outer + 1) (B_inner + 1) fits. If a model fits
    its training data perfectly, "harrell" and "632" fail, and ``caution`` contains ``overfitting``.
    If a point was drawn twice into an outer sample, it is out of bag for an inner sample only if
    the inner sample contains no copy of it, and it is then counted once. In apparent errors, points
    are weighted by how often they were drawn.

    References
    ----------
    Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Confidence intervals of prediction
    accuracy measures for multivariable prediction models based on the bootstrap-based optimism
    correction methods, Statistics in Medicine 40(26), 5691-5701, doi:10.1002/sim.9148.

    Examples
    --------
    >>> import cvstats, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> y, parts = rng.normal(size=20), []
    >>> for sample in range(201):
    ...     drawn = np.bincount(rng.integers(0, 20, 20) if sample else range(20), minlength=20)
    ...     counts = np.vstack([drawn, rng.multinomial(20, drawn / 20, size=30)])
    ...     loss = (y - counts @ y[:, None] / 20) ** 2
    ...     index = pd.MultiIndex.from_product([[sample], range(31), range(20)])
    ...     part = pd.DataFrame({"count": counts.ravel(), "mean": loss.ravel()}, index=index)
    ...     parts.append(part[np.tile(drawn > 0, 31)])
    >>> log = pd.concat(parts).rename_axis(["sample", "repetition", "point"])
    >>> losses = log.set_index("count", append=True)["mean"]
    >>> result = losses.cvci.two_stage(correction="632")
    >>> result.round(3)
          estimate  lower  upper se                   caution
    model
    mean     0.354  0.199  0.555  –  skewed, never out of bag
    """
    # Compute percentiles of the corrected error, recomputed on each outer sample.
    data = resamples(log.design)
    rates = None
    if correction == "632+":
        rates = no_information_of(
            log, no_information, method="two_stage", samples=[one.label for one in data],
            without="correction='632' or correction='harrell'",
        )  # fmt: skip
    apparent, second = measure_samples(log, data, measure_of(correction), 2)
    made = correct_by(correction, apparent, second, rates)
    outer = np.array([one.label != 0 for one in data])
    clipped = np.logical_or.reduce(made.clipped)
    caution = never_out_caution(data, correction) | flag(Caution.BOUNDED, clipped)
    whole = int((~outer).argmax())
    caution |= overfitting_caution(apparent[whole], second[whole], INTERPOLATES)
    extra: dict[str, FloatArray | float] = {
        "n_points": data[whole].bags.counts.shape[1],
        "n_samples": int(outer.sum()),
        "n_repetitions": min(len(one.fits) for one in data),
    }
    return percentile_interval(
        "two_stage", made.estimate[~outer][0], made.estimate[outer],
        shift=np.zeros(apparent.shape[1]), alpha=alpha, extra=extra, caution=caution,
        attrs={"correction": correction},
    )  # fmt: skip
