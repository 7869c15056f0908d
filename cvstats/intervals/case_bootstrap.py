"""Percentile interval of bootstrap case cross-validation."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cvstats.core.cautions import Caution
from cvstats.core.design import Design
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.intervals._bootstrap import mean_of_draws, percentile_interval
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._requirements import one_sample
from cvstats.log.bootstrap import draws, leave_one_out_means, own_fit, tally, without_undrawn
from cvstats.log.gaps import answer_cells
from cvstats.log.log import Log, Losses, Table
from cvstats.log.read import read
from cvstats.options import Missing

JIANG = (
    "Jiang, Varma and Simon (2008), Statistical Applications in Genetics and Molecular Biology "
    "7(1), 8, doi:10.2202/1544-6115.1322"
)


MADE = "cvstats.plans.case_bootstrap makes such a log."


def case_bootstrap_samples(design: Design) -> str | None:
    """Ask for bootstrap samples in each of which every point drawn was left out once."""
    if (words := one_sample(design, MADE)) is not None:
        return words
    groups, found = tally(design)
    if found[groups[:, 1] != own_fit(design), 0].any():
        return (
            f"the log has evaluations out of bag (count 0). Expected each point of a bootstrap "
            f"sample to be tested by a model that was trained without its copies. Out-of-bag "
            f"losses are what bootstrap_oob is for; {MADE}"
        )
    return None


def summarize_errors(log: Log, *, leave_one_out: FloatArray | None, alpha: float) -> Result:
    """Take percentiles of the errors of the samples; ``leave_one_out`` has a mean a column."""
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
    extra: dict[str, FloatArray | float] = {"n_points": drawn.points}
    extra |= {"n_repetitions": drawn.fits}
    if leave_one_out is not None:
        extra = {"bias": mean - estimate, **extra}
    return percentile_interval(
        "case_bootstrap", estimate, theta, shift=estimate - mean, alpha=alpha, extra=extra,
        caution=np.full(theta.shape[1], 0 if drawn.whole else Caution.OTHER_DRAWS, dtype=np.int64),
        attrs={"correction": "none" if leave_one_out is None else "leave-one-out"},
    )  # fmt: skip


@IntervalMethod(
    prepare=without_undrawn,
    requires=case_bootstrap_samples,
    needs="bootstrap samples whose points were left out in turn, with all their copies (levels "
    "'repetition', 'point' and 'count')",
    target="expected risk",
    guarantee="heuristic",
    fits="about 0.632 n B; n more with leave_one_out",
    reference=JIANG,
    needs_losses=True,
    for_differences=False,
    made_for=("count",),
    recognized_by="bootstrap samples whose own points were left out in turn",
    takes_metrics=False,
).computed_by(summarize_errors)
def case_bootstrap(
    losses: Losses,
    *,
    leave_one_out: Losses | ArrayLike | None = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Table:
    r"""Bootstrap case cross-validation: leave-one-out within each bootstrap sample.

    The target is the expected risk. In each bootstrap sample every different point is tested by a
    model that was trained without any of its copies; the mean of these losses, each weighted by
    the copies of its point, is the error of the sample. The estimate is the mean of these errors,
    and the limits are their quantiles at alpha/2 and 1 - alpha/2. With ``leave_one_out`` the
    estimate is the mean of those losses, and the limits move along.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss for each different point of each bootstrap sample: levels ``repetition``,
        ``point`` and ``count`` (how often the point is in the sample, 1 or more).
    leave_one_out : log or array-like, optional
        Leave-one-out cross-validation of the sample itself: a log of the same models and points,
        matched by their labels as carried dimensions are, or for one model a loss for each point
        in any order.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` (NaN: quantiles have none) in the unit of the loss, ``bias`` (what the
        correction subtracted, with ``leave_one_out``) and ``caution``. ``n_points`` and
        ``n_repetitions`` are in ``attrs``.

    Raises
    ------
    LogError
        If a level is missing, if the log has evaluations out of bag, or if ``leave_one_out``
        has other models or carried cells, or lacks a point.

    See Also
    --------
    cvstats.bootstrap_oob : Fewer fits: points that a bootstrap sample does not contain.
    cvstats.two_stage : A bootstrap within a bootstrap.
    cvstats.plans.case_bootstrap : The resampling plan that it needs.

    Notes
    -----
    With N_ib the copies of point i in sample b, and e_ib its loss, the error of the sample is

    .. math::

        \theta_b = \frac{\sum_i N_{ib}\, e_{ib}}{\sum_i N_{ib}} .

    Heuristic; about 0.632 n B fits, and n for the correction. Training sets of fewer different
    points make the uncorrected estimate too large. Where the counts of the samples do not add
    up to equally many draws, losses of drawn points are missing (or the samples were drawn in
    another way), and ``caution`` says so. Quantiles are of type 7 (linear between
    order statistics); those at 2.5% ask for 200 samples.

    References
    ----------
    Jiang, Varma and Simon (2008), Calculating confidence intervals for prediction error in
    microarray classification using resampling, Statistical Applications in Genetics and
    Molecular Biology 7(1), 8, doi:10.2202/1544-6115.1322.

    Examples
    --------
    The loss of a mean, with all copies of the point left out of it:

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
           estimate  lower  upper   bias
    model
    mean      0.369  0.175  0.641  0.022
    """
    record = case_bootstrap.record
    record.check_options({"alpha": alpha})
    log = read(losses, missing=missing)
    if leave_one_out is None:
        return log.label(answer_cells(log, partial(record.run, alpha=alpha)))
    means = leave_one_out_means(log, leave_one_out, missing)
    return log.label(record.run(log, leave_one_out=means, alpha=alpha))
