"""How probably are two models as good as equal? The Bayesian correlated t test."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from cvstats.comparisons._pairs import compare_pairs, distribution
from cvstats.comparisons.equivalence import Margin, check_margin
from cvstats.core.cautions import Caution
from cvstats.core.cells import Moments, mean_and_squares
from cvstats.core.columns import Differences
from cvstats.core.folds import split_levels
from cvstats.core.results import Result
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._differences import find_unstable
from cvstats.intervals._groups import flag_ignored_sources
from cvstats.intervals._method import Comparison
from cvstats.intervals._requirements import several_splits
from cvstats.intervals.corrected_t import TrainSize, check_train_size, find_sizes
from cvstats.large.frames import later
from cvstats.log.log import Log, Losses
from cvstats.log.read import is_dask_frame
from cvstats.options import Missing, check_numbers


@Comparison(
    requires=several_splits,
    needs="two random splits or more, or a (repeated) K-fold partition",
    target="difference of the expected risks of models trained on sets of this size",
    guarantee="heuristic: takes the correlation of two test sets to be the test share",
    fits="1 for each split, K for each repetition",
    reference="Corani and Benavoli (2015), Machine Learning 100, 285-304, "
    "doi:10.1007/s10994-015-5486-z",
    models=2,
    takes_scores=True,
)
def rope(
    losses: Losses,
    other: Losses | None = None,
    *,
    margin: Margin | None = None,
    reference: Hashable = None,
    rho: float | None = None,
    train_size: TrainSize = None,
    missing: Missing = "raise",
) -> Any:
    r"""Compute the probability that a model is better, as good as equal, or worse.

    The Bayesian correlated t test: the difference of the expected errors has a t distribution
    about the mean of the differences over J test sets, with J - 1 degrees of freedom and a scale
    that allows for the overlap of training sets. The margin around zero is the region of practical
    equivalence. The target is the difference of the expected risks of the two algorithms at the
    size of the training sets.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several: K-fold cross-validation, repeated or not, or
        random splits. One score for each split does as well.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    margin : float or pair of float
        The largest difference that does not matter, in the unit of the loss; or the ends
        ``(low, high)``, None for an open one. 0 leaves two probabilities. It has no default.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    rho : float, optional
        Correlation of the means of two test sets. Without it the share of the test set is
        taken: 1 / K for K equal folds.
    train_size : float, sequence, mapping or Series, optional
        Without ``rho``, on how many points each model was trained, as in `corrected_t`. Folds
        say it themselves, random splits do not.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference`` and ``scale`` of the posterior in the unit of the loss; ``p_better``
        (below the margin: the model has the smaller error), ``p_equivalent`` (within) and
        ``p_worse``, which add up to 1; ``df``, ``n_splits`` (J), ``rho`` and ``caution``.

    Raises
    ------
    LogError
        If there are fewer than two test sets, or the training size of random splits is not
        given.

    See Also
    --------
    cvstats.corrected_t : The same correction, as a confidence interval.
    cvstats.equivalence : A test for the same question.
    cvstats.compare : Whether there is a difference.

    Notes
    -----
    With S^2 the sample variance of the mean differences of the J test sets, the squared scale is

    .. math::

        \left(\frac1J + \frac{\rho}{1 - \rho}\right) S^2 .

    These are posterior probabilities under a flat prior, not p-values. With ``margin=0``,
    ``p_worse`` is the one-sided p-value of `corrected_t` for the model being better. The value
    of rho is a heuristic, which no log can give. Test sets that all have the same difference
    put all probability where it lies. The posterior does not ask for the relative stability of
    the difference. Where repetitions show that it is missing, ``caution`` says ``unstable
    difference``: the interval of `wald` in `compare` may be far too narrow there.

    References
    ----------
    Corani and Benavoli (2015), Machine Learning 100, 285-304, doi:10.1007/s10994-015-5486-z.
    Benavoli, Corani, Demsar and Zaffalon (2017), JMLR 18(77), 1-36.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> table = losses.cvci.rope(margin=100)
    >>> table[["difference", "p_better", "p_equivalent", "p_worse"]].round(3)
                         difference  p_better  p_equivalent  p_worse
    model other
    ridge random_forest    -182.049      0.76         0.232    0.008
    """
    ends = check_margin(margin, zero=True)
    if rho is not None:
        check_numbers("rho", rho)
    if rho is not None and not 0 <= rho < 1:
        raise LogError(f"rho={rho!r} is out of range. Expected a correlation from 0 to below 1.")
    check_train_size(train_size)
    if is_dask_frame(losses):
        ask = partial(rope, margin=margin, reference=reference, rho=rho, train_size=train_size)
        return later(losses, ask, other=other, pairs=True, missing=missing)

    def run(log: Log, differences: Differences) -> Result:
        rope.record.require(log.design)
        found = log.moments(split_levels(log.design), differences)
        if rho is None:
            tested, trained = find_sizes(log, found, train_size)
            ratio = float(np.mean(tested / trained))
        else:
            ratio = rho / (1 - rho)
        result = compute(found, ratio, margin=ends)
        unstable = find_unstable(log, differences)
        if unstable is not None:
            result.caution[unstable] |= np.int64(Caution.UNSTABLE_DIFFERENCE)
        return flag_ignored_sources(result, log.design, of_means=True)

    return compare_pairs(losses, other, reference, missing, run)


def compute(moments: Moments, ratio: float, *, margin: tuple[float, float]) -> Result:
    """Compute the posterior of the correlated t test over test sets (Corani and Benavoli 2015).

    Given the J means of the test sets, with sample variance S^2, the mean difference has a t
    distribution with J - 1 degrees of freedom about their mean, of squared scale
    ``(1/J + ratio) S^2``, where ``ratio = rho / (1 - rho)`` for a correlation of rho.
    """
    j = len(moments.count)
    middle, squares = mean_and_squares(moments.mean)
    estimate = moments.origin + middle
    scale = np.sqrt((1 / j + ratio) * squares / (j - 1))
    low, high = margin
    shares = split_t_distribution(estimate, scale, low, high, j - 1)
    columns = {
        "difference": estimate,
        "scale": scale,
        **dict(zip(("p_better", "p_equivalent", "p_worse"), shares, strict=True)),
    }
    for name, value in {"df": j - 1, "n_splits": j, "rho": ratio / (1 + ratio)}.items():
        columns[name] = np.full(estimate.shape, value)
    missing = np.isnan(estimate)
    caution = np.where(missing, np.int64(Caution.NO_LOSSES), np.int64(0))
    caution[(scale == 0) & ~missing] |= np.int64(Caution.ZERO_VARIANCE)
    attrs: dict[str, Any] = {**rope.record.facts(), "margin_low": low, "margin_high": high}
    return Result("rope", columns, caution, attrs)


def split_t_distribution(
    center: FloatArray, scale: FloatArray, low: float, high: float, df: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Split a t distribution at two points; without any scale all of it is at its center."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = distribution((low - center) / scale, df)
        right = distribution(-(high - center) / scale, df)
        upper_tail = (
            distribution(-(low - center) / scale, df) - right
        )  # keeps the digits on that side
        middle = np.where(
            center < low, upper_tail, distribution((high - center) / scale, df) - left
        )
    point = scale == 0
    parts = (
        np.where(point, center < low, left),
        np.where(point, (low <= center) & (center <= high), middle),
        np.where(point, center > high, right),
    )
    missing = np.isnan(center)
    better, same, worse = (np.where(missing, np.nan, part.astype(np.float64)) for part in parts)
    return better, same, worse
