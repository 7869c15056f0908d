"""Are two models as good as equal? Differences against a margin."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cvstats.api.comparing_lazily import based_lazily, gaps_of, lazy_losses, of_pairs
from cvstats.api.pairs import Options, based, checked_options, paired, usual
from cvstats.api.running import Compared, Losses, Missing, checked_alpha, checked_numbers
from cvstats.api.running_resampled import TrainSize, checked_train_size, train_sizes
from cvstats.comparisons.margins import Margin, checked_margin, equivalent, posterior
from cvstats.containers import Log, is_dask_frame, later
from cvstats.core.columns import Differences
from cvstats.core.result import Result
from cvstats.errors import LogError
from cvstats.intervals import layouts
from cvstats.intervals.registry import require

__all__ = ["equivalence", "rope"]


def equivalence(
    losses: Losses,
    other: Losses | None = None,
    *,
    margin: Margin | None = None,
    reference: Hashable = None,
    method: Compared | None = None,
    options: Options = None,
    alpha: float = 0.05,
    missing: Missing = "raise",
) -> Any:
    """Test whether the difference of two models is too small to matter.

    Two one-sided tests: is the difference above the lower end of the margin, and below its
    upper end? With d the mean difference, the p-value is the larger of
    ``1 - F((d - low) / se)`` and ``F((d - high) / se)``, F the law of the statistic.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    margin : float or pair of float
        The largest difference that does not matter, in the unit of the loss; or the ends
        ``(low, high)``. An end of None is open: ``(None, 0.01)`` asks for non-inferiority,
        whether the model is at most 0.01 worse than the other. It has to be given: no number
        in the log says what matters.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    method : str, optional
        The interval that gives standard error and law, as in `compare`.
    options : mapping, optional
        Options of that method, as in `compare`.
    alpha : float, optional
        The level of the test, below 0.5. The interval has level ``1 - 2 alpha``.
    missing : {"raise", "drop"}, optional
        Whether a NaN loss is an error, or leaves the evaluation out for all models.

    Returns
    -------
    DataFrame or Dataset
        ``difference``, ``se``, ``lower``, ``upper`` (at ``1 - 2 alpha``) in the unit of the
        loss, ``p_value``, ``equivalent`` (``p_value < alpha``), what the method adds, and
        ``caution``; a frame is indexed by ``(model, other)``, an array has a dimension
        ``pair``.

    Raises
    ------
    LogError
        If the margin is no margin, the method has no standard error, or the models were
        evaluated on different points or folds.

    Notes
    -----
    ``equivalent`` is true exactly where the interval lies within the margin. A test that finds
    no difference does not show equivalence; this one does. A difference without any variance
    is equivalent, with p = 0, if it lies within the margin. Several comparisons are not
    adjusted for.

    References
    ----------
    Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680,
    doi:10.1007/BF01068419.

    Examples
    --------
    Is logistic regression within 0.01 of gradient boosting, in Brier score?

    >>> import cvstats
    >>> log = cvstats.datasets.load("flights")
    >>> losses = cvstats.losses(log, prediction=log.attrs["models"], loss="brier")
    >>> a, b = losses["logistic_regression"], losses["gradient_boosting"]
    >>> a.cvci.equivalence(b, margin=0.01)[["difference", "lower", "upper", "equivalent"]].round(4)
                                           difference   lower  upper  equivalent
    model               other
    logistic_regression gradient_boosting      0.0006  0.0003  0.001        True
    """
    checked_alpha(alpha)
    if alpha >= 0.5:
        raise LogError(f"alpha={alpha!r} leaves no interval at 1 - 2 alpha. Expected below 0.5.")
    ends = checked_margin(margin)
    given = checked_options(method, options)
    if is_dask_frame(losses):
        ask = partial(
            equivalence, margin=margin, reference=reference, method=method, options=options,
            alpha=alpha,
        )  # fmt: skip
        return later(losses, ask, other=other, pairs=True, missing=missing)
    if lazy_losses(losses, other):

        def run(log: Log) -> Result:
            return equivalent(based_lazily(log, method, given, alpha), margin=ends, alpha=alpha)

        return of_pairs(gaps_of(losses, other, reference, missing), missing, run)
    log, pairs, gaps = paired(losses, other, reference, missing)
    chosen = usual(log) if method is None else method
    result = equivalent(based(log, gaps, chosen, given, alpha), margin=ends, alpha=alpha)
    result = replace(result, attrs={**result.attrs, "interval_method": chosen})
    return log.label_pairs(pairs, result)


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
    """Probability that a model is better, as good as equal, or worse: the correlated t test.

    With the J means of the differences over test sets, their mean d and sample variance S^2,
    the difference of the expected errors has a t distribution with J - 1 degrees of freedom
    about d, with squared scale ``(1/J + rho / (1 - rho)) S^2``. The margin around zero is the
    region of practical equivalence. The target is the difference of the expected risks of the
    two algorithms at the size of the training sets.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The losses of one model, or of several: K-fold cross-validation, repeated or not, or
        random splits.
    other : the same kind, optional
        The losses of the other model on the same evaluations, in any order.
    margin : float or pair of float
        The largest difference that does not matter, in the unit of the loss; or the ends
        ``(low, high)``, None for an open one. 0 leaves two probabilities. It has to be given.
    reference : hashable, optional
        In place of ``other``, the name of one of several models, to which the others are
        compared. With neither, all pairs are.
    rho : float, optional
        Correlation of the means of two test sets. Without it the share of the test set is
        taken: 1 / K for K equal folds.
    train_size : float, sequence, mapping or Series, optional
        Without ``rho``, on how many points each model was trained, as in `corrected_t`. Folds
        tell it themselves, random splits do not.
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

    Notes
    -----
    These are posterior probabilities under a flat prior, not p-values. With ``margin=0``,
    ``p_worse`` is the one-sided p-value of `corrected_t` for the model being better. The value
    of rho is a heuristic; no log tells it. Test sets that all have the same difference put all
    probability where it lies.

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
    ends = checked_margin(margin, zero=True)
    if rho is not None:
        checked_numbers("rho", rho)
    if rho is not None and not 0 <= rho < 1:
        raise LogError(f"rho={rho!r} is out of range. Expected a correlation from 0 to below 1.")
    checked_train_size(train_size)
    if is_dask_frame(losses):
        ask = partial(rope, margin=margin, reference=reference, rho=rho, train_size=train_size)
        return later(losses, ask, other=other, pairs=True, missing=missing)

    def run(log: Log, gaps: Differences | None = None) -> Result:
        require("rope", log.design)
        found = log.moments(layouts.split_levels(log.design), gaps)
        if rho is None:
            ratio = float(np.mean(found.count / train_sizes(log, found, train_size)))
        else:
            ratio = rho / (1 - rho)
        return posterior(found, ratio, margin=ends)

    if lazy_losses(losses, other):
        return of_pairs(gaps_of(losses, other, reference, missing), missing, run)
    log, pairs, gaps = paired(losses, other, reference, missing)
    return log.label_pairs(pairs, run(log, gaps))
