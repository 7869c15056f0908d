"""The layout of a log: folds, splits, and which labels occur together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import attrgetter, is_
from typing import Any, TypeVar, cast

import numpy as np

from cvstats.core.cells import Cells, find_runs
from cvstats.core.design import LEVELS, SPLIT, Design
from cvstats.core.types import IntArray, MaskArray
from cvstats.errors import spelled

RESAMPLED = ("sample", "outer", "count")
"""Levels that identify nested fits, or fits to samples other than the data."""

FEW = 100
"""Up to this number, losses may be means of folds; leave-one-out has more of them."""


def tally(design: Design, *levels: str) -> Cells:
    """Count the rows of each cell of some levels; the result has no columns.

    Absent levels are ignored. Cells are sorted by group.
    """
    known = filter(design.levels.__contains__, levels)
    names = tuple(known) if design.by is None else tuple(dict.fromkeys((design.by, *known)))
    table = design.cell_table(names)
    count = table.total[table.used].astype(np.float64)
    nothing = np.zeros((len(count), 0))
    return Cells(
        names, design.labels(names), table.codes, count, nothing, nothing, nothing[0],
        int(design.by is not None),
    )  # fmt: skip


F = TypeVar("F", bound=Callable[..., Any])


def cached(name: str, *, of_labels: bool = False) -> Callable[[F], F]:
    """Cache what a function returns for a design, its groups and further arguments.

    ``of_labels``: only for the same labels. A design caches by the codes of an index, whose labels
    may be replaced, as by ``set_levels``.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def look_up(design: Design, *args: str) -> Any:
            key = name, design.by, *args
            known = key in design.facts
            if of_labels:
                labels = tuple(map(attrgetter("labels"), design.levels.values()))
                before = design.facts.get((key, "labels"), ())
                known = known and len(before) == len(labels) and all(map(is_, before, labels))
            if not known:
                design.facts[key] = function(design, *args)
            if of_labels:
                design.facts[key, "labels"] = labels
            return design.facts[key]

        return cast(F, look_up)

    return decorate


def fold_level(design: Design) -> str | None:
    """Find the level that names the test folds: ``fold``, otherwise ``source``, or none."""
    if "fold" in design.levels:
        return "fold"
    return "source" if "source" in design.levels else None


@cached("fewest folds")
def fewest_folds(design: Design) -> int:
    """Count the folds of the repetition with the fewest; fold names may differ in each.

    Cached.
    """
    level = fold_level(design)
    if level is None or not design.has("repetition"):
        return 1 if level is None else design.number(level)
    codes = design.cell_table(("repetition", level)).codes
    return int(np.unique(codes[:, 0], return_counts=True)[1].min())


def folds_are_guessed(design: Design) -> bool:
    """Whether sources serve as folds although another level might be the folds."""
    if fold_level(design) != "source":
        return False
    return any(name not in LEVELS and design.number(name) > 1 for name in design.levels)


def repetition_level(design: Design) -> tuple[str, ...]:
    """Name the level of repetitions, if the log has it."""
    return ("repetition",) if "repetition" in design.levels else ()


def fold_levels(design: Design) -> tuple[str, ...]:
    """Name the levels whose cells are the test folds."""
    fold = fold_level(design)
    levels = repetition_level(design)
    return levels if fold is None else (*levels, fold)


def splits_sources(design: Design) -> bool:
    """Whether repetitions are random splits, so that sources are not folds."""
    return design.has("repetition") and not covers_all_points(design)


def tested_level(design: Design) -> str | None:
    """Find the level that names the test folds; none if repetitions are random splits."""
    if "fold" not in design.levels and splits_sources(design):
        return None
    return fold_level(design)


def count_folds(design: Design) -> int:
    """Count the folds of the first repetition; 1 if no level names folds."""
    return int(count_folds_by_group(design)[0, 0])


@cached("folds")
def count_folds_by_group(design: Design) -> IntArray:
    """Count the folds of the first repetition of each group, one row per group (cached)."""
    if fold_level(design) is None or ("fold" not in design.levels and splits_sources(design)):
        return np.ones((1, 1), dtype=np.int64)
    folds = tally(design, *fold_levels(design)).within(repetition_level(design))
    groups = folds.codes[folds.starts, : int(design.by is not None)]
    return folds.n_cells[find_runs(groups)]


def count_cells(design: Design, levels: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """Count the rows of each cell of some levels; an absent level has only the code 0."""
    known = tuple(filter(design.levels.__contains__, levels))
    plan = design.cell_table(known)
    codes = np.zeros((len(plan.used), len(levels)), dtype=np.int64)
    codes[:, list(map(levels.index, known))] = plan.codes
    return codes, plan.total[plan.used]


def covers_all_points(design: Design) -> bool:
    """Whether each repetition tests every point; for unnamed points, equally many."""
    splits = design.splits()
    if splits.apart:
        return False
    return int(splits.rows.min()) == (splits.points or int(splits.rows.max()))


def repeats_test_set(design: Design) -> bool:
    """Whether one test set, or each source, was evaluated several times, as with several seeds."""
    return not design.has("fold") and design.has("repetition") and covers_all_points(design)


NEARLY_ALL = 3 / 4
"""Average share of the points in a repetition from which the other points count as missing.

Random splits usually test at most half of the points.
"""


def lacks_few_points(design: Design) -> bool:
    """Whether repetitions test nearly all points, but not all, as if evaluations were missing."""
    splits = design.splits()
    if splits.apart or splits.points is None or covers_all_points(design):
        return False
    return bool(splits.rows.mean() >= NEARLY_ALL * splits.points)


def is_partition(design: Design) -> bool:
    """Whether the log is (repeated) K-fold cross-validation.

    Sources serve as folds only if the names of the points show that each was tested once.
    """
    if fold_level(design) == "source" and design.splits().points is None:
        return False
    return fewest_folds(design) > 1 and covers_all_points(design)


def split_levels(design: Design) -> tuple[str, ...]:
    """Name the levels whose cells are the test sets, one per trained model."""
    if fold_level(design) != "source" or is_partition(design):
        return fold_levels(design)
    return repetition_level(design)


@cached("pairs")
def pair_labels(design: Design, one: str, two: str) -> tuple[IntArray, IntArray]:
    """Find which labels of two levels occur together in each repetition (cached).

    Returns the codes (repetition, one, two) of every pair that occurs, and for each of them the
    number of labels of ``two`` that occur with its label of ``one`` in that repetition.
    """
    found = design.cell_table((*repetition_level(design), one, two)).codes
    codes = np.zeros((len(found), 3), dtype=np.int64)
    codes[:, 3 - found.shape[1] :] = found
    _, at, meets = np.unique(codes[:, :2], axis=0, return_inverse=True, return_counts=True)
    return codes, meets[at.reshape(-1)].astype(np.int64)


def find_across_folds(design: Design, name: str) -> str | None:
    """Name a label of a level that occurs in several folds of a repetition, if one does."""
    fold = fold_level(design)
    if fold is None or fold == name or name not in design.levels:
        return None
    codes, meets = pair_labels(design, name, fold)
    crossed = np.flatnonzero(meets > 1)
    if not len(crossed):
        return None
    first = codes[crossed[0]]
    label = spelled(design.levels[name].labels[first[1]])
    total = len(np.unique(codes[crossed, 1]))
    rest = f" (and {total - 1:,} more like it)" if total > 1 else ""
    return f"{name} {label} occurs in {meets[crossed[0]]:,} folds{rest}"


@cached("in several folds")
def find_crossed(design: Design, name: str) -> MaskArray:
    """Find the groups in which a label occurs in several folds, one row per group (cached)."""
    fold = fold_level(design)
    if fold is None or fold == name:
        return np.zeros((1, 1), dtype=bool)
    labels = (*repetition_level(design), name)
    pairs = tally(design, *labels, fold)
    return pairs.over(labels).sum(pairs.within(labels).n_cells > 1) > 0


@cached("whole sources")
def find_whole_sources(design: Design) -> MaskArray:
    """Find the groups whose test sets contain all points of a source or none (cached).

    Random splits are assumed to divide sources if one of them tests every source, or if the number
    of tested points of a source varies.
    """
    divided = find_divided_sources(design)
    if fold_level(design) == "fold":
        several = tally(design, "fold").n_cells > 1
        divided = np.where(several, find_crossed(design, "source"), divided)
    return ~divided


def share_models(design: Design, folds: Sequence[str]) -> bool | None:
    """Whether the groups are points of one cross-validation; None if the log does not show it."""
    whole = design.cell_table(tuple(folds))
    each = tuple(dict.fromkeys((str(design.by), *folds)))
    shared = len(design.cell_table(each).used) > len(whole.used)
    if not shared or design.by in LEVELS:
        return shared
    # If points recur under other labels, these are stacked logs.
    return None if "splits" in design.facts else False


def find_divided_sources(design: Design) -> MaskArray:
    """Find the groups whose random splits test parts of sources, one row per group."""
    splits = tuple(level for level in SPLIT if level in design.levels)
    cells = tally(design, *splits, "source")
    tested, sources = cells.over(splits), cells.over(("source",))
    most = np.maximum.reduceat(cells.within(splits).n_cells[:, 0], tested.starts)[:, None]
    each = cells.within(("source",))
    least, largest = (end.reduceat(each.count, each.starts) for end in (np.minimum, np.maximum))
    found: MaskArray = (tested.n_cells > 1) & (most == sources.n_cells) | (
        sources.sum(least < largest) > 0
    )
    return found


@cached("crossed")
def has_crossed_sources(design: Design) -> bool:
    """Whether the same points occur in several sources, such as dates in stores (cached)."""
    recurs = "point" in design.levels and design.has("source")
    if recurs and design.weights is None:
        design.splits()
        recurs = bool(design.facts.get("scoped", False))
    elif recurs and not len(design.levels["point"].labels):  # cells do not show it, but may know it
        return bool(design.facts.get(("crossed", None), False))
    elif recurs:
        recurs = design.number("point") < len(design.cell_table(("source", "point")).used)
    return recurs and design.has("point")


def divides_both(design: Design) -> bool:
    """Whether the folds keep neither sources whole nor points."""
    return all(find_across_folds(design, name) is not None for name in ("source", "point"))


def is_resampled(design: Design) -> bool:
    """Whether the log has nested fits, or fits to samples other than the data."""
    if design.levels.keys().isdisjoint(RESAMPLED):
        return False
    return any(map(design.has, RESAMPLED))


def find_single_losses(
    design: Design, zero_one: Callable[[], MaskArray] | None = None
) -> MaskArray:
    """Find the groups whose splits have a single unnamed loss each, one row per group.

    With ``zero_one``, few rows without any label also count, unless their losses are 0/1.
    """
    none = np.zeros((1, 1), dtype=bool)
    if design.scores or "point" in design.levels or fold_level(design) == "source":
        return none
    by = [level for level in ("repetition", "fold") if level in design.levels]
    if is_resampled(design):
        return none
    if not by:
        few = not design.levels and 1 < design.cell_table(()).total.sum() < FEW
        return none if zero_one is None or not few or zero_one().all() else ~none
    splits, folds = tally(design, "repetition"), tally(design, *by)
    rows = splits.sum(splits.count)
    found: MaskArray = (rows == folds.n_cells) & (rows < FEW * splits.n_cells) & (rows > 1)
    return found
