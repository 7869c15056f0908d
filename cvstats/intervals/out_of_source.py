"""Intervals from a log that leaves one source out at a time.

Geras and Sutton (2013): source k holds M_k losses with mean m_k and sample variance var_k, and
the estimate is the mean of the m_k. With sigma_k^2 the variance of a loss, omega_k the covariance
of two losses of a source and gamma_kl that of losses of two sources, the variance of the estimate
over data sets from the same sources is

    theta = K^-2 [sum sigma_k^2 / M_k + sum (1 - 1/M_k) omega_k + sum_{k != l} gamma_kl].    (7)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.cells import Cells
from cvstats.core.folds import repetition_level
from cvstats.core.results import Result, flag
from cvstats.core.results import interval as symmetric_interval
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, listed, spelled
from cvstats.intervals._limits import cut_limits
from cvstats.intervals._method import GERAS, IntervalMethod
from cvstats.intervals._requirements import one_source_out
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.log.log import Log
from cvstats.options import Missing

TARGETS = {
    "new_source": "expected loss, averaged over new sources from the same population",
    "these_sources": "mean over these sources of the loss on the source left out, averaged over "
    "data sets from these sources",
}
GUARANTEES = {
    "new_source": "asymptotically exact in the number of sources, if they are drawn independently",
    "these_sources": "heuristic: ignores the covariances of the losses",
}
PREDICTION_TARGET = "mean loss on one new source from the same population and with as many points"


PREDICTION_GUARANTEE = (
    "valid for any number of sources if their means are independent draws from one normal "
    "distribution, and not otherwise"
)
"""Target and guarantee of a prediction interval."""


FIXED_TARGET = (
    "expected loss on new points, averaged over these sources (such as tasks), each with the same "
    "weight"
)
FIXED_GUARANTEE = (
    "exact as the points of each source (such as a task) grow, if they are independent and no "
    "model was trained on them"
)
BIASES = {
    "theta_a": "-K^-2 (sum_k omega_k + sum_kl gamma_kl)",
    "theta_b": "K^-2 (sum_k [sigma_k^2 - (M_k + 1) omega_k] / M_k - sum_kl gamma_kl)",
}
"""Bias of each estimator of (7)."""

FEW_SOURCES = 30


def weigh_groups(count: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight all sources equally, regardless of size; the variance is that of a sample mean."""
    k = len(count)
    return np.full(k, 1 / k), np.full(k, 1 / np.sqrt(k * (k - 1)))


@IntervalMethod(
    requires=one_source_out,
    needs="a log that leaves one source out at a time (level 'source', and either no level 'fold' "
    "or one source in each fold)",
    target="mean over new sources of the expected loss, the loss on one new source (interval=), or "
    "the mean loss on these sources (target=)",
    guarantee=GUARANTEES["new_source"],
    difference_guarantee="asymptotically exact in the number of sources for new sources, if "
    f"they are drawn independently, and {RELATIVELY_STABLE}",
    fits="one for each source",
    reference=GERAS,
    plan="leave_one_source_out",
    of_groups=True,
    weigh_groups=weigh_groups,
    groups_at_once=True,
    takes_metrics="averaged",
)
def out_of_source(
    log: Log,
    *,
    interval: Literal["mean", "prediction"] = "mean",
    target: Literal["new_source", "these_sources"] | None = None,
    variance: Literal["theta_b", "theta_a"] | None = None,
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Interval for the error on new sources, on one new source, or on these sources.

    Each of K sources (subjects, sites, months) was tested by a model trained on the others. The
    estimate is the unweighted mean of the mean losses of the sources, and its variance depends on
    the target:

    - the mean over new sources from the same population: the variance is that of the source
      means, with Student's t on K - 1 degrees of freedom;
    - one new source (``interval="prediction"``): a prediction interval for the mean loss of the
      next source, with the same t;
    - these sources, over repeated data sets from them: the variance comes from the losses within
      the sources, with normal quantiles.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log that leaves one source out at a time: level ``source``, and no level ``fold`` or
        folds of one source each. Sources may differ in size; several repetitions (seeds) are
        averaged for each source. Losses in any unit.
    interval : {"mean", "prediction"}, optional
        Whether the interval is for the mean error over new sources, or for the error of a single
        new source. The first narrows with more sources; the second reflects how much sources
        differ.
    target : {"new_source", "these_sources"}, optional
        Whether the interval is for new sources or for these sources. The default is new sources,
        unless ``attrs["sources_are"]`` is "fixed": the tasks of a benchmark are chosen, not
        sampled.
    variance : {"theta_b", "theta_a"}, optional
        The variance estimator for these sources. Both ignore the covariances of the losses;
        theta_b, the default, partly compensates for this. Fixed sources use theta_a: if no model
        was trained on them, the covariances are zero. Their repeated answers to one point are
        averaged first.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate`` (the mean over
        sources), ``lower``, ``upper`` and ``se`` in the units of the loss (of a prediction: of
        the gap between the estimate and the error of a new source), ``df`` (new source, or fixed
        sources of few points) and ``caution``. ``n_points``, ``n_sources`` and the points of the
        ``smallest`` and the ``largest`` source are in ``attrs``, or columns if they vary between
        rows. ``attrs["target"]`` names the target, and ``attrs["bias"]`` gives the bias of the
        variance for these sources.

    Raises
    ------
    LogError
        If the log has no sources or one, if a source is in several folds or a fold holds
        several sources; for these sources also if a source has one point, or if a prediction is
        requested.

    See Also
    --------
    cvstats.clustered : For folds or a test set of whole groups, with the same prediction interval.
    cvstats.heterogeneity : Whether the sources differ, and by how much.
    cvstats.plans.leave_one_source_out : The resampling plan this method needs.

    Notes
    -----
    With V_b the sample variance of the means of the K sources, and var_k the sample variance of
    the M_k losses of source k, the variances are, in the same order,

    .. math::

        \frac{V_b}{K}, \qquad V_b \left(1 + \frac1K\right), \qquad
        \theta_a = \frac{1}{K^2} \sum_k \frac{\mathrm{var}_k}{M_k} ,

    and theta_b is twice theta_a.

    A fixed source of few points has the same weight as the others, and its own variance is hardly
    known: it is 0 if both models are right on two of two points. If the degrees of freedom of
    theta_a with equal variances of points, ``(sum 1 / M_k)^2 / sum 1 / (M_k^2 (M_k - 1))``, are
    fewer than 29, the limits use Student's t with these, and ``caution`` shows ``few points``. In
    4,000 simulations of differences of 0/1 losses with 2, 60 and 150 points, normal limits cover
    .90, and these .96.

    The bias of theta_a and theta_b depends on the learner. In simulations, the expectation of
    theta_b, relative to the true variance for these sources, was 1.5 to 1.8 for ridge regression
    and .97 to 1.06 for the nearest neighbor, whose losses have larger covariances; theta_a was half
    of that.

    The two targets are different quantities. With more points per source, the interval for these
    sources shrinks to zero width. The interval for new sources does not, because sources are the
    sampling unit. It is asymptotically exact in the number of sources, if they were sampled
    independently and the models share most of their training data. ``caution`` flags fewer than
    thirty sources. Each training set lacks one source, so the target is the error of models trained
    on K - 1 sources.

    Most sources lie outside the interval for their mean, just as most people's heights lie outside
    an interval for the mean height. To cover the mean loss of the next source, use the prediction
    interval. It assumes that the next source has as many points as the sources in the log. If it
    has more points, its mean varies less, and the interval is conservative. The prediction interval
    also assumes that the source means are normally distributed, no matter how many sources there
    are, because the central limit theorem does not apply to a single source. A limit below 0 of a
    loss that cannot be negative, or above 1 of a proportion, is replaced by that end of the range.
    For differences of two models it shows how much the advantage varies between sources.

    References
    ----------
    Geras and Sutton (2013), Multiple-source cross-validation, ICML, PMLR 28(3), 1292-1300.
    Hahn and Meeker (1991), Statistical Intervals, chapter 4, doi:10.1002/9780470316771.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("flights_by_month")
    >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
    >>> losses.cvci.out_of_source().round(3)
                 estimate  lower  upper     se  df      caution
    model
    naive_bayes     0.175  0.157  0.193  0.008  11  few sources
    >>> losses.cvci.out_of_source(interval="prediction").round(3)
                estimate  lower  upper     se  df      caution
    model
    naive_bayes    0.175  0.111  0.240  0.029  11  few sources
    >>> losses.cvci.out_of_source(target="these_sources").round(3)
                 estimate  lower  upper     se           caution
    model
    naive_bayes     0.175  0.171  0.179  0.002  sources as folds
    """
    # Treat the source means as a sample, or estimate (7).
    fixed = log.fixed_sources
    if target is None:
        target = "these_sources" if fixed and interval == "mean" else "new_source"
    if interval == "prediction" and target != "new_source":
        raise LogError(
            f"interval='prediction' is for one new source, but target={target!r} is for these "
            "sources. Omit one of the two."
        )
    if target == "new_source" and variance == "theta_a":
        raise LogError(
            f"variance={variance!r} requires target='these_sources': for new sources the "
            "variance of the source means is used. Pass both, or omit variance=."
        )
    cells = log.moments((*repetition_level(log.design), "source"))
    if fixed and "repetition" in cells.levels and "point" in log.design.levels:
        cells = log.moments(("source", "point")).cell_means().over(("source",))
    part, points = average_sources(cells)
    estimate, squares = part.mean_and_squares()
    k, n = part.n_cells, np.rint(part.sum(points)).astype(np.int64)
    df = None
    attrs: dict[str, str | float | int] = {
        "target": TARGETS[target], "guarantee": GUARANTEES[target],
    }  # fmt: skip
    if target == "new_source":
        spread, df = squares / (k - 1), k - 1  # V_b
        squared = spread / k
        if interval == "prediction":
            squared = spread * (1 + 1 / k)
            attrs |= {"target": PREDICTION_TARGET, "guarantee": PREDICTION_GUARANTEE}
        attrs["interval"] = interval
        caution = flag(Caution.FEW_SOURCES, k < FEW_SOURCES)
        skewed = are_skewed(part, part.mean - part.repeat(estimate)) & (k >= FEW_SOURCES)
        caution = caution | flag(Caution.SKEWED, skewed)
    else:
        squared = part.sum(squared_errors_of_sources(cells)) / k**2  # (11)
        variance = variance or ("theta_a" if fixed else "theta_b")
        squared = squared if variance == "theta_a" else 2 * squared  # (12)
        caution = flag(Caution.FEW_POINTS, n < ENOUGH_POINTS)
        attrs |= {"variance": variance}
        if fixed:
            share = 1 / points  # of the variance, if that of points is the same in all sources
            alike = part.sum(share) ** 2 / part.sum(share**2 / (points - 1))
            few = alike < ENOUGH_POINTS - 1
            caution = caution | flag(Caution.FEW_POINTS, few)
            df = np.where(few, alike, np.inf) if few.any() else None
            attrs |= {"target": FIXED_TARGET, "guarantee": FIXED_GUARANTEE}
        else:
            caution = caution | np.int64(Caution.SOURCES_AS_FOLDS)
            attrs |= {"bias": BIASES[variance]}
    result = symmetric_interval(
        "out_of_source", estimate, squared, origin=cells.origin, alpha=alpha, df=df,
        extra={"n_points": n, "n_sources": k, **size_range(points, part)},
        caution=caution, attrs=attrs,
    )  # fmt: skip
    return cut_limits(result, log) if interval == "prediction" else result


def are_skewed(cells: Cells, parts: FloatArray) -> MaskArray:
    """Mark columns whose groups are too few for the skewness of their parts of the mean.

    Cochran's rule for G parts with skewness G1 about their mean of 0: ``25 G1^2 > G``.
    """
    squares = cells.sum(parts**2)
    scaled = parts / cells.repeat(np.sqrt(np.where(squares > 0, squares, 1.0)))
    cubes = scaled * scaled * scaled  # a power of 3 is ten times slower
    return 5 * np.abs(cells.sum(cubes)) > 1


def average_sources(cells: Cells) -> tuple[Cells, FloatArray]:
    """Merge the repetitions of each source; also count the points in it."""
    merged = cells.over(("source",))
    repetitions = cells.over([name for name in cells.levels if name == "repetition"]).n_cells
    return merged, merged.count / merged.repeat(repetitions)[:, 0]


def squared_errors_of_sources(moments: Cells) -> FloatArray:
    """Compute ``var_k / M_k`` of each source, averaged over repetitions.

    Points recur in every repetition, so the mean is not divided by their number.
    """
    lonely = np.flatnonzero(moments.count < 2)
    if len(lonely):
        at = moments.levels.index("source")
        codes = np.unique(moments.codes[lonely, at]).tolist()
        names = [spelled(moments.labels[at][code]) for code in codes]
        raise LogError(
            "the variance within sources needs at least two points per source, but source "
            f"{listed(names)} has one. Drop these sources, or use target='new_source', which "
            "needs only the source means."
        )
    each = moments.m2 / ((moments.count - 1) * moments.count)[:, None]
    splits = replace(
        moments, count=np.ones(len(each)), mean=each, m2=each, origin=np.zeros(each.shape[1])
    )
    return splits.over(("source",)).mean


def size_range(points: FloatArray | IntArray, groups: Cells) -> dict[str, IntArray]:
    """Count the points of the smallest and of the largest source or other group."""
    ends = {"smallest": np.minimum, "largest": np.maximum}
    return {
        name: np.rint(end.reduceat(points, groups.starts)).astype(np.int64)[:, None]
        for name, end in ends.items()
    }
