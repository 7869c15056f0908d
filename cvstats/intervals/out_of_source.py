"""Intervals from a log that leaves one source out at a time.

Geras and Sutton (2013): source k holds M_k losses with mean m_k and sample variance var_k, and
the estimate is the mean of the m_k. With sigma_k^2 the variance of a loss, omega_k the covariance
of two losses of a source and gamma_kl that of losses of two sources, the variance of the estimate
over data sets from the same sources is

    theta = K^-2 [sum sigma_k^2 / M_k + sum (1 - 1/M_k) omega_k + sum_{k != l} gamma_kl].    (7)
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.results import Result, flag
from cvstats.core.results import interval as symmetric_interval
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._method import GERAS, IntervalMethod
from cvstats.intervals._requirements import one_source_out
from cvstats.intervals._sources import (
    average_sources,
    repeated_levels,
    size_range,
    squared_errors_of_sources,
)
from cvstats.intervals._stability import RELATIVELY_STABLE
from cvstats.log.log import Log
from cvstats.options import Missing

TARGETS = {
    "new_source": "mean over new sources, drawn as these were, of the expected loss on each",
    "these_sources": "mean over these sources of the loss on the one left out, on average over "
    "data sets that they could have given",
}
GUARANTEES = {
    "new_source": "exact as sources grow, if they are drawn independently",
    "these_sources": "heuristic: the covariances of the losses are left out",
}
PREDICTION_TARGET = (
    "mean loss on one new source, drawn as these were, over as many points as these have"
)
PREDICTION_GUARANTEE = (
    "holds for any number of sources if their means are independent draws from one normal "
    "distribution, and otherwise for none"
)
FIXED_TARGET = (
    "mean over these tasks, each with the same weight, of the expected loss on new points of a task"
)
FIXED_GUARANTEE = (
    "exact as the points of each task grow, if they are independent and no model was trained on "
    "them"
)
BIASES = {
    "theta_a": "-K^-2 (sum_k omega_k + sum_kl gamma_kl)",
    "theta_b": "K^-2 (sum_k [sigma_k^2 - (M_k + 1) omega_k] / M_k - sum_kl gamma_kl)",
}
"""Bias of each estimator of (7)."""

FEW_SOURCES = 30
FEW_POINTS = 30


def weigh_groups(count: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weigh all sources alike, whatever their sizes; their variance is that of a sample mean."""
    k = len(count)
    return np.full(k, 1 / k), np.full(k, 1 / np.sqrt(k * (k - 1)))


@IntervalMethod(
    requires=one_source_out,
    needs="a log that leaves one source out at a time (level 'source'; no 'fold', or folds that "
    "are sources)",
    target="mean over new sources of the expected loss, the loss on one new source (interval=), or "
    "the mean loss on these sources (target=)",
    guarantee="exact for new sources as sources grow, if they are drawn independently; heuristic "
    "for these sources",
    difference_guarantee="exact for new sources as sources grow, if they are drawn independently, "
    f"and {RELATIVELY_STABLE}",
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
    r"""Interval for the error on new sources, on one of them, or on the sources at hand.

    Each of K sources (subjects, sites, months) was tested by a model trained on the others. The
    estimate is the plain mean of the mean losses of the sources, and its variance depends on the
    target:

    - the mean over new sources, drawn as these were: how much the sources' means differ gives the
      variance, with Student's t on K - 1 degrees of freedom;
    - one new source (``interval="prediction"``): where the mean loss of the next source will lie,
      with the same t;
    - these sources, over data sets that they could give: the variance comes from the losses within
      the sources, with normal quantiles.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A log that leaves one source out at a time: level ``source``, and no level ``fold`` or
        folds of one source each. Sources of any sizes; several repetitions (seeds) are
        averaged source by source. Losses in any unit.
    interval : {"mean", "prediction"}, optional
        Whether the interval is to cover the mean error over new sources, or the error of a single
        new one. The first shrinks as sources grow; the second is as wide as sources differ.
    target : {"new_source", "these_sources"}, optional
        Whether the interval is about new sources, or about those at hand. By default about new
        ones, except where ``attrs["sources_are"]`` is "fixed": the tasks of a benchmark are chosen
        and not drawn.
    variance : {"theta_b", "theta_a"}, optional
        For these sources, which estimator. Both leave out the covariances of the losses;
        theta_b, the default, makes up for some of that. Fixed sources have theta_a: where no model
        was trained on them there are no covariances. Their repeated answers to one point are
        averaged first.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate`` (the mean over
        sources), ``lower``, ``upper`` and ``se`` in the unit of the loss (of a prediction: of the
        gap between the estimate and the error of a new source), ``df`` (new source) and
        ``caution``. ``n_points``, ``n_sources`` and the points of the ``smallest`` and the
        ``largest`` source are in ``attrs``, or columns where rows differ in them.
        ``attrs["target"]`` says which target it was, and ``attrs["bias"]`` gives the bias of the
        variance for these sources.

    Raises
    ------
    LogError
        If the log has no sources or one, if a source is in several folds or a fold holds
        several sources; for these sources also if a source has one point, or if a prediction is
        asked for.

    See Also
    --------
    cvstats.clustered : For folds or a test set that hold whole groups.
    cvstats.heterogeneity : Whether the sources differ, and by how much.
    cvstats.plans.leave_one_source_out : The resampling plan that it needs.

    Notes
    -----
    With V_b the sample variance of the means of the K sources, and var_k the sample variance of
    the M_k losses of source k, the variances are, in the same order,

    .. math::

        \frac{V_b}{K}, \qquad V_b \left(1 + \frac1K\right), \qquad
        \theta_a = \frac{1}{K^2} \sum_k \frac{\mathrm{var}_k}{M_k} ,

    and theta_b is twice theta_a.

    The two targets differ by more than a name. As sources grow, the interval for these
    sources shrinks to nothing, and the one for a new source does not: the sources are what was
    sampled. The latter is exact as sources grow if they were drawn independently and the
    models share most of their training data; under thirty sources it leans on few numbers
    and ``caution`` says so. The training sets lack one source, so the target is the error of
    training with K - 1 of them.

    Most sources lie outside the interval for their mean, as most heights lie outside the interval
    for a mean height. The prediction says where the next one will lie. It is about the mean loss of
    that source over as many points as these sources have, so it contains the chance of the points:
    over more points that mean scatters less, and the interval is wide for it. In place of the
    central limit theorem it takes the means of the sources for normally distributed, however many
    there are. Of differences of two models it says how much the advantage varies from source to
    source.

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
    naive_bayes     0.175  0.111   0.24  0.029  11  few sources
    >>> losses.cvci.out_of_source(target="these_sources").round(3)
                 estimate  lower  upper     se           caution
    model
    naive_bayes     0.175  0.171  0.179  0.002  sources as folds
    """
    # Take the source means for a sample, or estimate (7).
    fixed = log.fixed_sources
    if target is None:
        target = "these_sources" if fixed and interval == "mean" else "new_source"
    if interval == "prediction" and target != "new_source":
        raise LogError(
            f"interval='prediction' is about one new source, and target={target!r} is about those "
            f"at hand. Leave one of the two out."
        )
    if target == "new_source" and variance == "theta_a":
        raise LogError(
            f"variance={variance!r} is for target='these_sources': for a new source the variance "
            f"of the source means is used. Pass both, or leave variance out."
        )
    cells = log.moments(repeated_levels(log, "source"))
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
    else:
        squared = part.sum(squared_errors_of_sources(cells)) / k**2  # (11)
        variance = variance or ("theta_a" if fixed else "theta_b")
        squared = squared if variance == "theta_a" else 2 * squared  # (12)
        caution = flag(Caution.FEW_POINTS, n < FEW_POINTS)
        attrs |= {"variance": variance}
        if fixed:
            attrs |= {"target": FIXED_TARGET, "guarantee": FIXED_GUARANTEE}
        else:
            caution = caution | np.int64(Caution.SOURCES_AS_FOLDS)
            attrs |= {"bias": BIASES[variance]}
    extra = {} if df is None else {"df": df}
    return symmetric_interval(
        "out_of_source", estimate, squared, origin=cells.origin, alpha=alpha, df=df,
        extra=extra | {"n_points": n, "n_sources": k, **size_range(points, part)},
        caution=caution, attrs=attrs,
    )  # fmt: skip
