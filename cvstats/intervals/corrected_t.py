"""Corrected resampled t interval of Nadeau and Bengio, and its form for repeated folds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells, sort_labels
from cvstats.core.design import CellIndex, Design
from cvstats.core.folds import (
    fold_levels,
    is_partition,
    lacks_few_points,
    share_models,
    split_levels,
    tally,
)
from cvstats.core.results import Result, flag, interval
from cvstats.core.types import FloatArray, IntArray
from cvstats.errors import LogError, is_number, is_several, listed, place
from cvstats.intervals._method import BOUCKAERT, NADEAU, IntervalMethod
from cvstats.intervals._requirements import describe_missing_points, several_splits
from cvstats.log.groups import ask_groups
from cvstats.log.log import Log
from cvstats.log.loss_checks import count_kept_points
from cvstats.options import Missing

NOTED = "n_train"
"""Attribute of a log with the training sizes."""

FEW_SPLITS = 10
"""Number of splits below which the interval is much wider than necessary."""


class SizesByLabel(Protocol):
    """Labeled training sizes, such as a Series."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return labels and sizes."""


TrainSize: TypeAlias = float | Sequence[float] | Mapping[Hashable, float] | SizesByLabel | None


def check_train_size(train_size: object) -> None:
    """Reject values that are not a number of points, or one for each split."""
    if train_size is None:
        return
    if isinstance(train_size, Real) and is_number(train_size):
        check_sizes(np.array([float(train_size)]))
    elif not (is_several(train_size) or has_labels(train_size)):
        raise LogError(
            f"Invalid train_size={train_size!r}. Expected a number of points, or one for "
            f"each split."
        )


@IntervalMethod(
    check=lambda options: check_train_size(options["train_size"]),
    requires=several_splits,
    needs="at least two random splits, or a (repeated) K-fold partition",
    target="expected risk of models trained on sets of this size",
    guarantee="heuristic: assumes that the correlation of two test sets equals the test "
    "fraction; too narrow for random splits of unstable learners",
    fits="1 for each split, K for each repetition",
    reference=f"{NADEAU}; for repeated folds {BOUCKAERT}",
    plan="subsampling",
    takes_scores=True,
    takes_metrics="averaged",
    groups_at_once=True,
)
def corrected_t(
    log: Log,
    *,
    train_size: TrainSize = None,
    alpha: float = 0.05,
    by: str | None = None,
    missing: Missing = "raise",
) -> Result:
    r"""Corrected resampled t interval, from random splits or the folds of cross-validation.

    The target is the expected risk of models trained on sets of this size. The estimate is the
    unweighted mean of the means of the J test sets. Its variance is computed as for independent
    means, and then increased to account for overlapping training sets, by the ratio of test to
    training points. The limits use Student's t distribution with J - 1 degrees of freedom.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Random splits, each a ``repetition`` with its own test set, or a K-fold partition,
        repeated or not. Any units; one score per split is enough.
    train_size : float, sequence, mapping or Series, optional
        The number of points each model was trained on: one number, or one for each split, in the
        order of their labels or by label. It is known for folds: the points outside the fold. For
        random splits it is required, unless `cvstats.evaluate` recorded it in
        ``losses.attrs["n_train"]``.
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
        splits), ``lower``, ``upper`` and ``se`` in the units of the loss, ``df`` and ``caution``.
        ``n_splits`` (J), ``n_train`` and ``n_test`` (points of a training and a test set,
        averaged over splits), and ``n_points`` if the log has the level ``point``, are in
        ``attrs``, or columns if they vary between rows.

    Raises
    ------
    LogError
        If there are fewer than two test sets, or ``train_size`` is not given for random splits
        or is not a number of points.

    See Also
    --------
    cvstats.conservative_z : Wider, from splits of halves of the data.
    cvstats.wald : For the models that were trained, on folds.
    cvstats.rope : The Bayesian version, for two models.
    cvstats.plans.subsampling : Random splits.

    Notes
    -----
    With S^2 the sample variance of the means of the J test sets,

    .. math::

        \mathrm{se}^2 = \left(\frac1J + \frac{n_\mathrm{test}}{n_\mathrm{train}}\right) S^2 .

    The method is heuristic: the correlation between the means of two test sets cannot be estimated
    from a log, and is assumed to be ``n_test / (n_train + n_test)``. For stable learners, the
    interval from 25 random splits is slightly too narrow. For nearest neighbors and other unstable
    learners, it covered 85% to 90% instead of 95%. One partition into 10 folds is the better choice
    for these: it covered 92% to 96%, with fewer than half of the fits. With fewer than 10 splits,
    the interval covers but is wide. If test sets have different sizes, the ratio is averaged over
    the splits. A log with the level ``source`` and no ``fold`` is read as leaving sources out.

    With ``by="source"`` and folds of several sources, the points of a part are tested by models
    that were trained on all others, and n_train counts these.

    References
    ----------
    Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366.
    Bouckaert and Frank (2004), PAKDD, LNCS 3056, 3-12, doi:10.1007/978-3-540-24775-3_3.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction="ridge")
    >>> losses.cvci.corrected_t().round(0)
          estimate  lower  upper   se  df caution
    model
    ridge    3,007  2,592  3,423  209  99
    """
    # Correct the variance of the test-set means for overlapping training sets.  Nadeau and Bengio
    # (2003), the corrected resampled t; over the folds of several partitions it is that of
    # Bouckaert and Frank (2004). Unequal splits: the ratio is averaged over them.
    splits = ask_groups(log, split_levels)
    cells = log.moments(splits)
    tested, trained = find_sizes(log, cells, train_size)
    j = cells.n_cells
    estimate, squares = cells.mean_and_squares()
    caution = flag(Caution.FEW_SPLITS, j < FEW_SPLITS)
    if "source" in splits:
        caution = caution | np.int64(Caution.SOURCES_AS_FOLDS)
    return interval(
        "corrected_t", estimate, (1 / j + cells.average(tested / trained)) * squares / (j - 1),
        origin=cells.origin, alpha=alpha, df=j - 1,
        extra={
            "n_splits": j, "n_train": cells.average(trained),
            "n_test": cells.average(tested), **count_points(log),
        },
        caution=caution,
    )  # fmt: skip


def find_sizes(log: Log, found: Cells, train_size: TrainSize) -> tuple[FloatArray, FloatArray]:
    """Find the numbers of test and training points of each split.

    Scores do not show them. For scores of equal folds they are not needed: the ratio of test to
    training points is 1 to K - 1.
    """
    count = found.count
    if log.metadata.get("holds") == "scores":
        tested = log.metadata.get("n_test")
        if train_size is None:
            train_size = log.metadata.get(NOTED)
        if tested is not None:
            count = np.full(len(count), float(tested))
        elif train_size is not None or not ask_groups(log, is_partition):
            form = "format='scores', " if log.metadata.get("format") == "scores" else ""
            raise LogError(
                "the numbers of training and test points behind each score are unknown. Pass "
                f"both to read_log: read_log(…, {form}n_train=90, n_test=10)."
            )
    return count, find_train_sizes(log, found, train_size)


def has_labels(train_size: object) -> TypeGuard[SizesByLabel]:
    """Whether training sizes come with labels."""
    return hasattr(train_size, "items")


def find_train_sizes(log: Log, found: Cells, train_size: TrainSize) -> FloatArray:
    """Find the number of points each model was trained on, or raise."""
    whole = found if log.complete is None else tally(log.planned, *found.levels)
    number = whole.n_cells
    folded = {*found.levels} & {*fold_levels(log.design)} - {"repetition"}
    planned = log
    if log.complete is not None:
        planned = replace(log, design=log.planned, complete=None)
    if train_size is None and folded and ask_groups(planned, is_partition):
        return count_left_by_folds(log.planned, found)
    if train_size is None:
        train_size = log.metadata.get(NOTED)  # as recorded by evaluate
        if train_size is None or (np.ndim(train_size) == 1 and (number != len(train_size)).any()):
            unfolded = log.design.by is None and not planned.design.has("fold")
            if unfolded and lacks_few_points(planned.design):
                # More likely than random splits: repetitions in which evaluations are missing.
                raise LogError(
                    f"{describe_missing_points(planned.design)}. If these are random splits, pass "
                    "the number of points each model was trained on: corrected_t(losses, "
                    "train_size=90)."
                )
            raise LogError(
                "corrected_t needs the number of points each model was trained on. A log of "
                "random splits, or of folds with missing points, does not contain this number. "
                "Pass one number for all splits, or one for each split, as in "
                "corrected_t(losses, train_size=90), or record it in the log for all functions: "
                "losses.attrs['n_train'] = 90."
            )
    check_train_size(train_size)  # from attrs, or from the options of compare
    if isinstance(train_size, Real):
        return check_sizes(np.full(len(found.count), float(train_size)))
    if has_labels(train_size):
        return check_sizes(sizes_by_label(found, dict(train_size.items())))
    sizes: Any = train_size
    if (number != len(sizes)).any():
        raise LogError(
            f"train_size has {len(sizes):,} numbers, but the log has {number[0, 0]:,} splits. "
            "Expected one number for all, or one for each, in the order of their labels."
        )
    given = np.tile(to_floats(sizes), len(number))
    trained = np.empty_like(given)
    trained[sort_cells(whole)] = given
    if whole is not found:  # some splits may have no losses left
        names = (tuple(whole.key(cell).values()) for cell in range(len(given)))
        known = dict(zip(names, trained, strict=True))
        trained = np.array(
            [known[tuple(found.key(cell).values())] for cell in range(len(found.count))]
        )
    return check_sizes(trained)


def count_left_by_folds(planned: Design, found: Cells) -> FloatArray:
    """Count the training points of each fold: the other points of its repetition.

    A group may have only some points of each fold, as may a log with dropped evaluations; the
    models were trained on all points of ``planned``.
    """
    levels = list(filter(fold_levels(planned).__contains__, found.levels))
    shared = planned.by is not None and share_models(planned, levels)
    if shared is None:
        raise LogError(
            "corrected_t needs the number of points each model was trained on, but each fold "
            f"contains points of several labels of {planned.by!r}, and models may have been "
            "trained on all of these or on one label only. Pass one number for all splits, or one "
            f"for each split, as in corrected_t(losses, by={planned.by!r}, train_size=90)."
        )
    if shared:
        planned = replace(planned, by=None)
    folds = tally(planned, *levels)
    splits = folds.within(levels[: levels.count("repetition")])
    left = splits.repeat(splits.sum(splits.count))[:, 0] - splits.count
    if len(left) == len(found.count):
        return left
    codes = []  # of the labels of all folds: moments have only those of folds with evaluations
    for name, labels in zip(splits.levels, splits.labels, strict=True):
        at, known = found.levels.index(name), dict(zip(labels, range(len(labels)), strict=True))
        mine = np.array([*map(known.__getitem__, found.labels[at])])
        codes.append(mine[found.codes[:, at]])
    sizes = list(map(len, splits.labels))
    return left[CellIndex.numbered(sizes, splits.codes.T)[0].find(np.array(codes))]


def sizes_by_label(found: Cells, sizes: Mapping[Any, Any]) -> FloatArray:
    """Look up the training size of each split by its labels."""
    levels, cells = found.levels[found.grouped :], range(len(found.count))
    names = [tuple(found.key(cell).values())[found.grouped :] for cell in cells]
    keys = [name[0] if len(name) == 1 else name for name in names]
    lost = [name for name, key in zip(names, keys, strict=True) if key not in sizes]
    if lost:
        shown = [place(dict(zip(levels, name, strict=True))) for name in lost[:3]]
        raise LogError(
            f"train_size has no number for {listed(shown, len(lost))}. Expected one for each split."
        )
    return to_floats([sizes[key] for key in keys])


def to_floats(values: Sequence[Any] | np.ndarray[Any, Any]) -> FloatArray:
    """Convert training sizes to floats."""
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError):
        raise LogError(
            "train_size contains a value that is not a number of points. Expected numbers."
        ) from None


def check_sizes(sizes: FloatArray) -> FloatArray:
    """Reject training sizes that are not numbers of points."""
    if not np.all(np.isfinite(sizes)) or np.any(sizes < 1):
        bad = sizes[~(np.isfinite(sizes) & (sizes >= 1))][0]
        raise LogError(
            f"train_size contains {bad:g}. Expected the number of points each model was trained "
            "on, at least 1, not a fraction of the points."
        )
    return sizes


def sort_cells(found: Cells) -> IntArray:
    """Sort the cells of each group by the labels of their levels, the first level first."""
    keys = [
        codes if i < found.grouped else np.argsort(sort_labels(labels))[codes]
        for i, (labels, codes) in enumerate(zip(found.labels, found.codes.T, strict=True))
    ]
    return np.lexsort(keys[::-1])


def count_points(log: Log) -> dict[str, IntArray]:
    """Count the points, if the log names them."""
    points = log.points_by_group()
    points = count_kept_points(log) if points is None else points
    return {} if points is None else {"n_points": points}
