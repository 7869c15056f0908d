"""Conservative Z interval of Nadeau and Bengio, from disjoint halves of the data."""

from __future__ import annotations

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.design import CellIndex, Design
from cvstats.core.folds import cached, count_cells, repetition_level
from cvstats.core.results import Result, interval
from cvstats.core.types import IntArray
from cvstats.intervals._method import NADEAU, IntervalMethod
from cvstats.intervals._requirements import RENAME, read_sample_numbers, read_samples, sampled
from cvstats.intervals.corrected_t import count_points
from cvstats.log.log import Log
from cvstats.options import Missing


def halves(design: Design) -> str | None:
    """Require random splits of the data and of both halves of every division."""
    made = "cvstats.plans.paired_subsampling creates such a log."
    if (problem := sampled(design, made)) is not None:
        return problem
    codes, _ = count_cells(design, ("sample", "repetition", "fold"))
    if len(np.unique(codes[:, :2], axis=0)) < len(codes):
        return (
            "its splits have several folds (level 'fold'), as in replace-one cross-validation. "
            f"Expected one test set in each repetition of a sample; {made}"
        )
    numbers = (read_sample_numbers(design) or set()) - {0}
    lone = sorted(s for s in numbers if (s + 1 if s % 2 else s - 1) not in numbers)
    if lone or not numbers:
        what = (
            f"sample {lone[0]} has no partner" if lone else "there are no halves (samples 1, 2, …)"
        )
        return f"in this log, {what}. Samples 2r - 1 and 2r are the halves of division r; {made}"
    if share_points(design) == 1:
        return (
            "the two halves of each division (samples 2r - 1 and 2r) test the same points. "
            f"{RENAME} If the data were resampled, {made}"
        )
    return None


@IntervalMethod(
    requires=halves,
    needs="random splits of the full data, and random splits of both halves of the data for one or "
    "more ways of halving them (levels 'sample' and 'repetition')",
    target="expected risk of models trained on sets of this size",
    guarantee="conservative in expectation, if the estimate varies at least as much with "
    "training sets of less than half the points, whose variance is used; this fails if the error "
    "increases with the number of points",
    fits="J (2R + 1) for J splits and R divisions",
    reference=NADEAU,
    takes_scores=True,
    takes_means=True,
    made_for=("sample",),
    recognized_by="random splits of the data and of its halves (level 'sample')",
    takes_metrics="averaged",
)
def conservative_z(
    log: Log, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
) -> Result:
    r"""Conservative Z interval, from random splits of the data and of pairs of halves.

    The target is the expected risk of models trained on sets of this size. The estimate is the mean
    of the split means of the data (sample 0). In addition, the data are divided into two halves R
    times (samples 2r - 1 and 2r), and each half is split in the same way. The variance is computed
    from the differences between the two halves.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Levels ``sample`` (0, 1, …, 2R) and ``repetition`` (the splits of each sample). All test
        sets should have the same number of points.
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
        ``upper`` and ``se`` in the units of the loss, and ``caution``. ``n_divisions`` (R),
        ``n_splits`` (J), ``n_test`` (points of a test set of the data), and ``n_points`` if the log
        has the level ``point``, are in ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If a half is missing, a sample has several folds, or the labels of ``sample`` are not
        the whole numbers from 0.

    See Also
    --------
    cvstats.corrected_t : A fraction of the fits, with a narrower interval.
    cvstats.nested_cv : For the model fitted to all the data.
    cvstats.plans.paired_subsampling : The resampling plan this method needs.

    Notes
    -----
    With a_r and b_r the means of all splits of the two halves of division r, the variance is

    .. math::

        \mathrm{se}^2 = \frac{1}{2 R} \sum_r (a_r - b_r)^2 .

    The two halves have no point in common, so their difference gives an unbiased estimate of the
    variance of such a mean, but for training sets with less than half of the points. The interval
    is conservative in expectation if this variance is larger than that for the full training size,
    that is, if losses vary less with more training points. The condition fails if the error
    increases between n/2 and n points: least squares of minimum norm with 85 features and 100
    points interpolates better with 50 points than with 90, and the squared standard error is then
    0.003 of the variance. ``caution`` reports fewer than 10 divisions, and halves that share a
    point: both make the variance unreliable.

    References
    ----------
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> import cvstats, numpy as np
    >>> from sklearn.dummy import DummyRegressor
    >>> X, y = np.zeros((40, 1)), np.random.default_rng(1).normal(size=40)
    >>> plan = cvstats.plans.paired_subsampling(10, 12, rng=1)
    >>> losses = cvstats.evaluate(DummyRegressor(), X, y, plan=plan, progress=False)
    >>> cvstats.conservative_z(losses).round(2)
                   estimate  lower upper    se caution
    model
    DummyRegressor     0.98  -0.04  2.00  0.52  skewed
    """
    # Average the squared differences between the means of the two halves of a division.
    #
    # Nadeau and Bengio (2003): the halves 2r - 1 and 2r of division r share no point, so half
    # the squared difference of their means estimates the variance of either without bias.
    cells = log.moments(("sample", *repetition_level(log.design)))
    samples = read_samples(log, cells)
    overlap = share_points(log.design) > 0
    which, group = np.unique(samples, return_inverse=True)
    splits = np.bincount(group)
    sums = np.zeros((len(which), cells.mean.shape[1]))
    np.add.at(sums, group, cells.mean)
    means = sums / splits[:, None]  # mean of the split means of each sample
    of_halves = means[which > 0]
    differences = of_halves[::2] - of_halves[1::2]
    r = len(differences)
    tested = np.bincount(group, cells.count) / splits
    off = np.abs(tested[which > 0] - tested[which == 0]).max()
    caution = Caution.FEW_REPETITIONS if r < 10 else Caution(0)
    other = np.any(splits != splits[which == 0])
    if other or off > max(1.0, 0.1 * float(tested[which == 0][0])):
        caution |= Caution.OTHER_TEST_SIZE
    if overlap:
        caution |= Caution.HALVES_OVERLAP
    extra: dict[str, float | IntArray] = {
        "n_divisions": r, "n_splits": int(splits[which == 0][0]),
        "n_test": float(tested[which == 0][0]), **count_points(log),
    }  # fmt: skip
    return interval(
        "conservative_z", means[which == 0], (differences**2).sum(axis=0, keepdims=True) / (2 * r),
        origin=cells.origin, alpha=alpha, extra=extra, caution=caution,
    )  # fmt: skip


@cached("share of points in both halves", of_labels=True)
def share_points(design: Design) -> float:
    """Share of the points of a half that its other half tests too; the two should be disjoint."""
    if "point" not in design.levels or not len(design.levels["point"].labels):
        return 0.0  # moments of cells do not identify points
    names = tuple(name for name in ("sample", "source", "point") if name in design.levels)
    codes = design.cell_table(names).codes
    labels = design.levels["sample"].labels
    used, at = np.unique(codes[:, 0], return_inverse=True)
    number = np.array([int(labels[code]) for code in used.tolist()])[at.reshape(-1)]
    division, points = (number[number > 0] + 1) // 2, codes[number > 0, 1:]
    sizes = division.max() + 1, *map(len, design.labels(names[1:]))
    distinct = CellIndex.of(sizes, lambda: [np.vstack([division, points.T])])
    return 2 * (1 - len(distinct) / len(points))
