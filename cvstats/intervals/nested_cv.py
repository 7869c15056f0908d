"""Nested cross-validation of Bates, Hastie and Tibshirani (2024): the error of an error estimate.

Each fold is held out once while the others are cross-validated among themselves. This is
unrelated to nested cross-validation for hyperparameter tuning.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.design import SPLIT, Design
from cvstats.core.folds import count_cells, covers_all_points, repetition_level, tally
from cvstats.core.results import Result, flag, interval
from cvstats.intervals._method import BATES, IntervalMethod
from cvstats.log.log import Log
from cvstats.options import Missing

ENOUGH = 25
"""Minimum number of repetitions for a reliable mean squared error."""


def nested_folds(design: Design) -> str | None:
    """Require outer and inner evaluations of every pair of folds."""
    made = "cvstats.plans.nested_cv creates such a log."
    for level, what in {
        "outer": "the fold held out in addition to the one tested",
        "fold": "the fold tested",
    }.items():
        if level not in design.levels:
            return f"the log has no level {level!r} ({what}). Add it to the index; {made}"
    names = {label: code for code, label in enumerate(design.levels["fold"].labels)}
    codes, counts = count_cells(design, ("repetition", "outer", "fold"))
    labels = list(design.levels["outer"].labels)
    same = np.array([names.get(labels[outer], -1) == fold for _, outer, fold in codes.tolist()])
    folds = {tuple(row) for row in codes[same][:, :2].tolist()}
    per = np.unique(codes[same][:, 0], return_counts=True)[1]
    k = int(per.max(initial=0))
    if k < 3:
        return (
            f"a repetition has {k} outer folds (evaluations with outer == fold). Expected at "
            f"least three, with the same labels in both levels; {made}"
        )
    pairs = np.unique(codes[:, :2], axis=0)
    inner = np.unique(codes[~same][:, :2], axis=0, return_counts=True)[1]
    complete = len(folds) == len(pairs) == len(inner) and np.all(inner == k - 1)
    if not complete or np.any(per != k):
        return (
            f"evaluations are missing: each of {k} outer folds needs its own fold and the "
            f"{k - 1} others, tested by models trained on neither; {made}"
        )
    if not covers_all_points(design):
        return "the repetitions and outer folds do not all test the same points; " + made
    if counts[same].min() < 2:
        return "a fold has only one point. Expected at least two in each fold; " + made
    return None


@IntervalMethod(
    requires=nested_folds,
    needs="K-fold cross-validation in which each fold's training folds are cross-validated again "
    "(levels 'outer' and 'fold')",
    target="risk of the model fitted to all the data (the same interval is used for the expected "
    "risk)",
    guarantee="heuristic: the mean squared error about that risk is estimated and limited to a "
    "range, and the bias correction assumes that the error falls like 1/m",
    fits="K (K + 1) / 2 for each repetition",
    reference=BATES,
    made_for=("outer",),
    recognized_by="nested cross-validation (level 'outer')",
    takes_metrics="averaged",
    groups_at_once=True,
)
def nested_cv(
    log: Log,
    *,
    bias_correction: Literal["paper", "code"] | None = "paper",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Interval from the nested cross-validation of Bates, Hastie and Tibshirani.

    The target is the risk of the model fitted to all the data. Each fold is held out while the
    other K - 1 folds are cross-validated among themselves. The mean loss of this inner
    cross-validation is compared with the mean loss of the held-out fold. The mean squared error
    of cross-validation is estimated by the squared difference, averaged over folds and
    repetitions, minus the sampling variance of the fold means. The estimate is the mean inner
    loss minus an estimate of its bias, which is due to the smaller training sets.

    This is not the nested cross-validation that is used for hyperparameter tuning: all models are
    fitted in the same way.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``outer``, the fold held out, ``fold``, the fold tested by a model trained on
        neither, ``point`` and usually ``repetition``; evaluations with ``outer == fold`` are
        those of the held-out fold itself. At least three folds.
    bias_correction : {"paper", "code", None}, optional
        How often ``err_ncv - err_cv`` is subtracted: ``1 + (K - 2) / K`` times, which is exact
        if the excess error falls like 1/m in the training size m; with the exponent 1.5 of
        the authors' program, ``1 + ((K - 2) / K)^1.5`` times, which fits 1/m^2; or not at all,
        so that the estimate is ``err_ncv``.
    alpha : float, optional
        One minus the level: 0.05 for a 95% interval.
    by : str, optional
        A level (or coordinate): one interval for each of its labels.
    missing : {"raise", "drop"}, optional
        Whether NaN losses raise an error, or their evaluations are dropped for all models.

    Returns
    -------
    DataFrame or Dataset
        A row for each model, or variables over the carried dimensions: ``estimate``, ``lower``,
        ``upper`` and ``se`` in the units of the loss, ``err_ncv`` (mean of all inner losses),
        ``err_cv`` (mean of all outer ones, ordinary cross-validation), ``bias`` (what was
        subtracted), ``mse_raw`` (before it was clipped, in squared units of the loss, may be
        negative) and ``caution``. ``n_points``, ``n_folds`` and ``n_repetitions`` are in
        ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If a level is missing, evaluations of some pair of folds are missing, there are fewer than
        three folds, or a fold has one point.

    See Also
    --------
    cvstats.wald : For the models that were trained, with K fits.
    cvstats.conservative_z : For the algorithm, from splits of halves.
    cvstats.plans.nested_cv : The resampling plan this method needs.

    Notes
    -----
    With m_j the mean loss of fold j, n_j its points, v_j the sample variance of its losses, and
    e_j the mean inner loss without it,

    .. math::

        \mathrm{MSE} = \mathrm{mean}\,(e_j - m_j)^2 - \mathrm{mean}\,\frac{v_j}{n_j}, \qquad
        \mathrm{se}^2 = \frac{K - 1}{K}\,\mathrm{MSE} ,

    and se is clipped between that of naive cross-validation and sqrt(K) times it.

    The method is heuristic: no theorem gives its coverage, and the width does not account for the
    uncertainty of the bias. The estimate extrapolates the errors with K - 2 and K - 1 training
    folds to all K folds, assuming a learning curve ``e + c/m``. The log cannot confirm this; if the
    learning curve has a different shape, the interval is centered on the wrong value. With few
    repetitions, the MSE is noisy and often negative. ``caution`` flags fewer than 25 repetitions;
    the paper uses 200.

    References
    ----------
    Bates, Hastie and Tibshirani (2024), Cross-validation: what does it estimate and how well
    does it do it? JASA 119(546), 1434-1445, doi:10.1080/01621459.2023.2197686.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((40, 1)), np.random.default_rng(1).normal(size=40)
    >>> plan = cvstats.plans.nested_cv(5, 25, rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> parts = ["estimate", "lower", "upper", "err_ncv", "err_cv"]
    >>> cvstats.nested_cv(losses)[parts].round(2)
                    estimate  lower  upper  err_ncv  err_cv
    model
    DummyRegressor      0.91   0.28   1.53     0.92    0.91
    """
    # Estimate the mean squared error by comparing outer and inner folds.
    cells = log.moments((*repetition_level(log.design), "outer", "fold"))
    at_outer, at_fold = cells.levels.index("outer"), cells.levels.index("fold")
    place_of = {label: code for code, label in enumerate(cells.labels[at_fold])}
    held = np.array([place_of.get(label, -1) for label in cells.labels[at_outer]])
    is_outer = held[cells.codes[:, at_outer]] == cells.codes[:, at_fold]
    repeated = repetition_level(log.design)
    pairs = cells.over((*repeated, "outer"))
    n_folds = cells.over(repeated).first(pairs.within(repeated).n_cells)
    n_repetitions, n_points = cells.over(repeated).n_cells, log.points_by_group()
    if n_points is None:
        splits = tally(log.design, *SPLIT)
        n_points = np.maximum.reduceat(splits.count, splits.starts).astype(np.int64)[:, None]
    # How many times the difference between inner and outer error is subtracted. (15) of the paper
    # assumes a bias that falls like 1/m; the authors' code uses an exponent of 1.5.
    rate = (n_folds - 2) / n_folds
    own = rate if bias_correction == "paper" else rate**1.5
    factor = 0.0 if bias_correction is None else 1 + own
    outer, inner = cells.take(is_outer), cells.take(~is_outer)
    e_out, e_in = outer.over(pairs.levels), inner.over(pairs.levels)  # the same, in order
    n_j = e_out.count[:, None]
    a = e_out.average((e_in.mean - e_out.mean) ** 2)  # Algorithm 1
    mse = a - e_out.average(e_out.m2 / ((n_j - 1) * n_j))  # (10)
    ncv, cv = inner.over(()), outer.over(())
    lowest = ncv.m2 / (ncv.count[:, None] - 1) / n_points  # squared standard error of naive CV
    wanted = (n_folds - 1) / n_folds * mse
    variance = np.clip(wanted, lowest, n_folds * lowest)
    bias = factor * (ncv.mean - cv.mean)  # (15)
    caution = flag(Caution.BOUNDED, variance != wanted)
    caution = caution | flag(Caution.FEW_REPETITIONS, n_repetitions < ENOUGH)
    caution = caution | flag(Caution.FEW_POINTS, n_points < ENOUGH_POINTS)
    extra = {
        "err_ncv": ncv.location, "err_cv": cv.location, "bias": bias, "mse_raw": mse,
        "n_points": n_points, "n_folds": n_folds, "n_repetitions": n_repetitions,
    }  # fmt: skip
    return interval(
        "nested_cv", ncv.mean - bias, variance, origin=cells.origin, alpha=alpha, extra=extra,
        caution=caution, attrs={"bias_correction": str(bias_correction)},
    )  # fmt: skip
