"""From a log of random splits, halves, nested folds or replaced points to a result."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from cvstats.containers import Groups, Log
from cvstats.containers.grouping import PartDesign
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Columns
from cvstats.core.design import LEVELS
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import FloatArray, IntArray, Labels
from cvstats.errors import LogError, is_number, is_several, listed, place
from cvstats.intervals import layouts, nested, replace_one, resampled
from cvstats.intervals.registry import require

__all__ = [
    "TrainSize",
    "checked_train_size",
    "run_conservative_z",
    "run_corrected_t",
    "run_five_by_two",
    "run_nested_cv",
    "run_replace_one",
]

NOTED = "n_train"
"""Where the attrs of a log may tell the training sizes."""

TrainSize: TypeAlias = float | Sequence[float] | Mapping[Hashable, float] | pd.Series | None


def known(log: Log, *levels: str) -> tuple[str, ...]:
    """Keep the levels that the log has."""
    return tuple(level for level in levels if level in log.design.levels)


def ranks(labels: Labels) -> IntArray:
    """Rank labels by their size; labels without an order keep their places."""
    names: list[Any] = list(labels)
    try:
        order = sorted(range(len(names)), key=lambda at: names[at])
    except TypeError:
        order = list(range(len(names)))
    return np.argsort(order)


def in_order(found: Moments) -> IntArray:
    """Sort cells by the labels of their levels, the first level first."""
    keys = [ranks(labels)[found.codes[:, i]] for i, labels in enumerate(found.labels)]
    return np.lexsort(keys[::-1])


def numbers_of(log: Log, found: Moments) -> IntArray:
    """Read the labels of ``sample`` of each cell as the numbers that they are."""
    codes = found.codes[:, found.levels.index("sample")]
    labels = log.design.levels["sample"].labels
    return np.array([int(labels[code]) for code in codes.tolist()], dtype=np.int64)


def points_of(log: Log) -> dict[str, FloatArray | float]:
    """Count the points, where the log names them."""
    points = log.design.splits().points
    return {} if points is None else {"n_points": points}


def checked_train_size(train_size: object) -> None:
    """Refuse what cannot be a number of points, or one for each split."""
    if isinstance(train_size, Real) and is_number(train_size):
        resampled.checked_sizes(np.array([float(train_size)]))
        return
    several = is_several(train_size) or isinstance(train_size, (Mapping, pd.Series))
    if train_size is not None and not several:
        raise LogError(
            f"train_size={train_size!r} is not known. Expected a number of points, or one for "
            f"each split."
        )


def train_sizes(log: Log, found: Moments, train_size: TrainSize) -> FloatArray:
    """Find how many points each model was trained on, or ask."""
    count = len(found.count)
    if train_size is None and layouts.partitioned(log.complete or log.design):
        return left_by_folds(log, found)
    if train_size is None:
        train_size = log.noted.get(NOTED)  # as evaluate leaves it
        if train_size is None or (np.ndim(train_size) == 1 and len(train_size) != count):
            raise LogError(
                "corrected_t needs to know how many points each model was trained on, and a log "
                "of random splits, or of folds with points left out, does not tell. Pass it: "
                "corrected_t(losses, train_size=90), one number for all splits or one for each."
            )
    checked_train_size(train_size)  # the noted one, or one of compare's options
    if isinstance(train_size, Real):
        return resampled.checked_sizes(np.full(count, float(train_size)))
    if isinstance(train_size, (Mapping, pd.Series)):
        return resampled.checked_sizes(by_label(found, dict(train_size.items())))
    return resampled.checked_sizes(one_each(found, train_size))


def left_by_folds(log: Log, found: Moments) -> FloatArray:
    """Count what each fold leaves of its repetition: the points that its model was trained on.

    A part of a log may hold some points of each fold only, and so may a log of which evaluations
    were left out; the models were trained on all.
    """
    design, codes, count = log.design, found.codes, found.count
    here: IntArray = np.arange(len(count))
    whole = log.complete
    if isinstance(design, PartDesign) and trained_together(design.groups, found.levels):
        whole = design.groups.design
    if whole is not None:
        plan = whole.plan(found.levels)
        codes, count = whole.codes_of(plan), plan.total[plan.used].astype(np.float64)
        keys, mine = (np.ravel_multi_index(part.T, plan.sizes) for part in (codes, found.codes))
        here = np.asarray(np.searchsorted(keys, mine))
    repetition = codes[:, 0] if found.levels[0] == "repetition" else np.zeros_like(codes[:, 0])
    left: FloatArray = np.bincount(repetition, count)[repetition] - count
    return left[here]


def trained_together(groups: Groups, folds: tuple[str, ...]) -> bool:
    """Whether the parts are points of one cross-validation, and no logs of their own.

    Raises
    ------
    LogError
        If that may be or not.
    """
    if not groups.shared(folds) or groups.name in LEVELS:
        return groups.shared(folds)
    if "splits" not in groups.design.facts:
        return False  # points come back under other labels: logs that stand below each other
    raise LogError(
        f"corrected_t needs to know how many points each model was trained on, and each fold "
        f"holds points of several labels of {groups.name!r}: nothing tells whether a model was "
        f"trained on all of these or on those of one label. Pass it: corrected_t(losses, "
        f"by={groups.name!r}, train_size=90), one number for all splits or one for each."
    )


def by_label(found: Moments, sizes: Mapping[Any, Any]) -> FloatArray:
    """Look up the training size of each split by its labels."""
    names = [
        tuple(labels[code] for labels, code in zip(found.labels, codes, strict=True))
        for codes in found.codes.tolist()
    ]
    keys = [name[0] if len(name) == 1 else name for name in names]
    lost = [name for name, key in zip(names, keys, strict=True) if key not in sizes]
    if lost:
        shown = [place(dict(zip(found.levels, name, strict=True))) for name in lost[:3]]
        raise LogError(
            f"train_size has no number for {listed(shown, len(lost))}. Expected one for each split."
        )
    return numbers([sizes[key] for key in keys])


def one_each(found: Moments, sizes: Any) -> FloatArray:
    """Hand training sizes out to the splits, in the order of their labels."""
    if len(sizes) != len(found.count):
        raise LogError(
            f"train_size holds {len(sizes):,} numbers and the log has {len(found.count):,} "
            f"splits. Expected one number for all, or one for each, in the order of their labels."
        )
    given = numbers(sizes)
    out = np.empty_like(given)
    out[in_order(found)] = given
    return out


def numbers(values: Sequence[Any] | np.ndarray[Any, Any]) -> FloatArray:
    """Turn training sizes into floats."""
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError):
        raise LogError("train_size holds something that is no number of points.") from None


def run_corrected_t(
    log: Log,
    losses: Columns | None = None,
    *,
    train_size: TrainSize = None,
    alpha: float = 0.05,
) -> Result:
    """Corrected t over the splits or folds of a log."""
    require("corrected_t", log.design)
    by = layouts.split_levels(log.design)
    found = log.moments(by, losses)
    if log.noted.get("holds") == "scores":
        found, train_size = of_scores(log, found, train_size)
    sizes = train_sizes(log, found, train_size)
    caution = int(Caution.SOURCES_AS_FOLDS) if "source" in by else 0
    return resampled.corrected_t(found, sizes, alpha=alpha, facts=points_of(log), caution=caution)


def of_scores(log: Log, found: Moments, train_size: TrainSize) -> tuple[Moments, TrainSize]:
    """Count the points behind each score of a split, which its one number does not tell.

    Scores of equal folds need no numbers: that the ratio of tested to trained points is 1 to
    K - 1 can be read off the folds.
    """
    tested = log.noted.get("n_test")
    if train_size is None:
        train_size = log.noted.get(NOTED)
    if tested is not None:
        return replace(found, count=np.full(len(found.count), float(tested))), train_size
    if train_size is None and layouts.partitioned(log.design):
        return found, None
    raise LogError(
        "corrected_t needs to know how many points are behind each score, in training and in "
        "testing. Pass both to read_log: read_log(…, format='scores', n_train=90, n_test=10)."
    )


def run_conservative_z(log: Log, losses: Columns | None = None, *, alpha: float = 0.05) -> Result:
    """Conservative Z over the splits of the data and of its halves."""
    require("conservative_z", log.design)
    found = log.moments(known(log, "sample", "repetition"), losses)
    samples = numbers_of(log, found)
    overlap = layouts.halves_overlap(log.design)
    return resampled.conservative_z(
        found, samples, alpha=alpha, facts=points_of(log), overlap=overlap
    )


def run_five_by_two(
    log: Log, losses: Columns | None = None, *, test: str = "t", alpha: float = 0.05
) -> Result:
    """Five times twofold cross-validation; its first fold is the one whose labels sort first."""
    require("five_by_two", log.design)
    found = log.moments(("repetition", "fold"), losses)
    order = in_order(found)
    names = {
        level: labels[code]
        for level, labels, code in zip(
            found.levels, found.labels, found.codes[order[0]].tolist(), strict=True
        )
    }
    means = found.mean[order].reshape(5, 2, -1)
    facts = points_of(log) | {"n_folds": 2, "n_repetitions": 5}
    return resampled.five_by_two(
        means, test=test, alpha=alpha, facts=facts, attrs={"first": place(names)}
    )


def run_nested_cv(
    log: Log,
    losses: Columns | None = None,
    *,
    bias_correction: str | None = "paper",
    alpha: float = 0.05,
) -> Result:
    """Nested cross-validation, with the bias that its two errors tell of."""
    require("nested_cv", log.design)
    found = log.moments(known(log, "repetition", "outer", "fold"), losses)
    outer, fold = found.levels.index("outer"), found.levels.index("fold")
    place_of = {label: code for code, label in enumerate(found.labels[fold])}
    held = np.array([place_of.get(label, -1) for label in found.labels[outer]])
    splits = log.design.splits()
    return nested.nested_cv(
        found, held[found.codes[:, outer]] == found.codes[:, fold],
        bias_correction=bias_correction, alpha=alpha,
        n_points=splits.points or int(splits.rows.max()),
        n_folds=log.design.number("outer") if len(found.levels) == 2 else folds_of(found, outer),
        n_repetitions=log.design.number("repetition"),
    )  # fmt: skip


def folds_of(found: Moments, level: int) -> int:
    """Count the folds of the first repetition; each may call its folds anew."""
    at = found.levels.index("repetition")
    first = found.codes[:, at] == found.codes[0, at]
    return len(np.unique(found.codes[first, level]))


def run_replace_one(
    log: Log,
    losses: Columns | None = None,
    *,
    constant: str = "efron-stein",
    alpha: float = 0.05,
) -> Result:
    """Replace-one cross-validation, of one partition or several."""
    require("replace_one", log.design)
    found = log.moments(("sample",), losses)
    samples = numbers_of(log, found)
    repetitions = log.design.number("repetition")
    return replace_one.replace_one(
        found, samples, constant=constant, alpha=alpha,
        n_points=int(found.count[samples == 0][0]) // repetitions,
        n_folds=layouts.fewest_folds(log.design),
        n_repetitions=repetitions,
    )  # fmt: skip
