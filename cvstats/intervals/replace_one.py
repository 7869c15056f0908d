"""Replace-one cross-validation of Austern and Zhou: how much the error depends on one point."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cvstats.core.cautions import ENOUGH_POINTS, Caution
from cvstats.core.design import Design
from cvstats.core.folds import count_cells, fewest_folds
from cvstats.core.results import Result, interval
from cvstats.intervals._method import IntervalMethod
from cvstats.intervals._requirements import read_sample_numbers, read_samples, sampled
from cvstats.log.log import Log
from cvstats.options import Missing


def replaced_points(design: Design) -> str | None:
    """Require cross-validation of the data, a half, and that half with each point replaced."""
    made = "cvstats.plans.replace_one creates such a log."
    if (problem := sampled(design, made)) is not None:
        return problem
    codes, _ = count_cells(design, ("sample", "repetition", "fold"))
    pairs, folds = np.unique(codes[:, :2], axis=0, return_counts=True)
    if "fold" not in design.levels or folds.min() < 2:
        return f"some sample has no folds (level 'fold'). Expected at least two; {made}"
    _, points = count_cells(design, ("sample", "repetition"))
    data = np.array([design.levels["sample"].labels[code] == 0 for code in pairs[:, 0]])
    n = design.splits().points or int(points[data].max())  # a sample may lack some
    h = int(points[~data].max(initial=0))
    runs = read_sample_numbers(design)
    if h != n // 2 or runs != set(range(h + 2)):
        return (
            f"the log has {len(runs or ()):,} samples, of {n:,} and {h:,} points. Expected 0 (the "
            f"data), 1 (a half of {n // 2:,} points) and 1 + l (the half with its l-th point "
            f"replaced) for every point of the half, {n // 2 + 2:,} in all; {made}"
        )
    repetitions = len(np.unique(codes[:, 1]))
    if len(pairs) != len(runs) * repetitions or np.any(points != np.where(data, n, h)):
        return (
            f"some points are missing in some repetition of some sample: expected {n:,} points "
            f"of the data and {h:,} of each half (missing='drop' may remove points that this "
            f"method needs); {made}"
        )
    return None


@IntervalMethod(
    requires=replaced_points,
    needs="cross-validation of the full data, of half of the data, and of that half with each "
    "point replaced in turn (levels 'sample' and 'fold')",
    target="expected risk of models trained on sets of this size",
    guarantee="asymptotically exact in the number of points for one partition, if the learner "
    "is second-order stable; no theorem for several partitions",
    difference_guarantee="asymptotically exact in the number of points for one partition, if "
    "the difference of the losses is second-order stable relative to its own variance, "
    "which fails if both models converge to the same limit; no theorem for several partitions",
    fits="2K + (n // 2)(K - 1) for each repetition",
    reference="Austern and Zhou (2020), Asymptotics of cross-validation, arXiv:2001.11111",
    made_for=("sample", "fold"),
    recognized_by="cross-validation of half the data, with one training point replaced at a time",
    takes_metrics="averaged",
)
def replace_one(
    log: Log,
    *,
    constant: Literal["efron-stein", "printed"] = "efron-stein",
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Replace-one cross-validation interval, which accounts for training-set variability.

    The target is the expected risk of models trained on sets of this size. The estimate is the mean
    loss of cross-validation of the data (sample 0). Half of the data is also cross-validated
    (sample 1). This is repeated once for each of its points, with that point replaced by a point
    from the other half (sample 1 + l for the l-th point). The variance is computed from the
    resulting changes of the mean.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``sample`` (0, 1, …, 1 + n/2), ``fold``, ``point`` and, if several partitions are
        averaged, ``repetition``.
    constant : {"efron-stein", "printed"}, optional
        The factor of the sum: 1/4, which is consistent, or 1/2, the formula as printed, which
        doubles the variance and is included only to reproduce published results.
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
        ``upper`` and ``se`` in the units of the loss, and ``caution``. ``n_points``, ``n_folds``
        and ``n_repetitions`` are in ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If a point of the half was not replaced, a sample has no folds, or points are missing.

    See Also
    --------
    cvstats.wald : For the models that were trained, with K fits.
    cvstats.conservative_z : Another interval for the algorithm, from splits of halves.
    cvstats.plans.replace_one : The resampling plan this method needs.

    Notes
    -----
    With T_0 the mean loss of half the data, and T_l that with its l-th point replaced,

    .. math::

        \mathrm{se}^2 = \frac14 \sum_l (T_0 - T_l)^2 .

    The interval is asymptotically exact if the learner is second-order stable, which means that the
    joint effect of two points vanishes faster than the effect of each point. For small n, the
    interval is slightly too wide. For several partitions, there is no theorem.

    References
    ----------
    Austern and Zhou (2020), Asymptotics of cross-validation, arXiv:2001.11111.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((40, 1)), np.random.default_rng(1).normal(size=40)
    >>> plan = cvstats.plans.replace_one(4, rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> cvstats.replace_one(losses).round(2)
                    estimate  lower  upper    se caution
    model
    DummyRegressor      1.04   0.37   1.71  0.34  skewed
    """
    # Sum the squared changes of the error of the half when each of its points is replaced.
    # Sample 0 is the data, 1 the half, and each further one the half with one point replaced.
    # Every run has the same points in each repetition, so its pooled mean is the mean of its
    # repetitions.
    cells = log.moments(("sample",))
    samples = read_samples(log, cells)
    n_repetitions = log.design.number("repetition")
    n_points = int(cells.count[samples == 0][0]) // n_repetitions
    mean = cells.mean[np.argsort(samples)]
    total = ((mean[2:] - mean[1]) ** 2).sum(axis=0)
    # sigma^2 / n, with sigma^2 = (n / 4) total; the printed formula has n / 2
    variance = total / (4 if constant == "efron-stein" else 2)
    attrs: dict[str, str] = {"constant": constant}
    if constant == "printed":
        attrs["guarantee"] = "conservative: twice the asymptotically correct variance"
    return interval(
        "replace_one", mean[0], variance, origin=cells.origin, alpha=alpha,
        extra={
            "n_points": n_points, "n_folds": fewest_folds(log.design),
            "n_repetitions": n_repetitions,
        },
        attrs=attrs, caution=Caution.FEW_POINTS if n_points < ENOUGH_POINTS else 0,
    )  # fmt: skip
