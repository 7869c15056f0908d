"""Which resampling made a log: what tells the layouts apart, and words for what is missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvstats.core.design import LEVELS, Design

__all__ = [
    "fewest_folds",
    "five_times_two",
    "fold_level",
    "folds_guessed",
    "halves",
    "halves_overlap",
    "nested",
    "partitioned",
    "replaced",
    "several_splits",
    "split_levels",
    "whole",
]

Counts = NDArray[np.int64]


def fold_level(design: Design) -> str | None:
    """Find the level that names the test folds: ``fold``, else ``source``, else none."""
    return next((level for level in ("fold", "source") if level in design.levels), None)


def fewest_folds(design: Design) -> int:
    """Count the folds of the repetition that has fewest; each may call its folds anew."""
    level = fold_level(design)
    if level is None or not design.has("repetition"):
        return 1 if level is None else design.number(level)
    codes = design.codes_of(design.cell_table(("repetition", level)))
    return int(np.unique(codes[:, 0], return_counts=True)[1].min())


def folds_guessed(design: Design) -> bool:
    """Whether sources serve as folds although another level might be the folds."""
    if fold_level(design) != "source":
        return False
    return any(name not in LEVELS and design.number(name) > 1 for name in design.levels)


def cells(design: Design, levels: tuple[str, ...]) -> tuple[Counts, Counts]:
    """Count the rows of each cell of some levels; an absent level has the one code 0."""
    known = tuple(level for level in levels if level in design.levels)
    plan = design.cell_table(known)
    codes = np.zeros((len(plan.used), len(levels)), dtype=np.int64)
    codes[:, [levels.index(level) for level in known]] = design.codes_of(plan)
    return codes, plan.total[plan.used]


def whole(design: Design) -> bool:
    """Whether each repetition tests every point; without their names, equally many."""
    splits = design.splits()
    if splits.apart:
        return False
    return int(splits.rows.min()) == (splits.points or int(splits.rows.max()))


def partitioned(design: Design) -> bool:
    """Whether the log is K-fold cross-validation, perhaps repeated.

    Sources serve as folds only where the names of the points tell that each was tested once.
    """
    if fold_level(design) == "source" and design.splits().points is None:
        return False
    return fewest_folds(design) > 1 and whole(design)


def split_levels(design: Design) -> tuple[str, ...]:
    """Name the levels whose cells are the test sets, one for each model that was trained."""
    fold = fold_level(design)
    if fold == "source" and not partitioned(design):
        fold = None
    return tuple(level for level in ("repetition", fold) if level in design.levels and level)


def several_splits(design: Design) -> str | None:
    """Ask for two test sets or more."""
    if len(cells(design, split_levels(design))[1]) < 2:
        return (
            "the log has one test set. Label each random split by the level 'repetition' "
            "(cvstats.plans.subsampling makes such a log), or use holdout."
        )
    return None


def five_times_two(design: Design) -> str | None:
    """Ask for five repetitions, each of two folds that hold every point."""
    made = "cvstats.plans.five_by_two makes such a log."
    for level in ("repetition", "fold"):
        if level not in design.levels:
            return f"the log has no level {level!r}. Add it to the index; {made}"
    codes, _ = cells(design, ("repetition", "fold"))
    folds = np.unique(codes[:, 0], return_counts=True)[1]
    if len(folds) != 5 or np.any(folds != 2):
        least, most = folds.min(), folds.max()
        number = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"the log has {len(folds):,} {'repetition' if len(folds) == 1 else 'repetitions'} "
            f"of {number} folds; {made}"
        )
    if not whole(design):
        return f"the two folds of a repetition leave out some points. Expected two halves; {made}"
    return None


def nested(design: Design) -> str | None:
    """Ask for outer and inner evaluations of every pair of folds."""
    made = "cvstats.plans.nested_cv makes such a log."
    for level, what in {
        "outer": "the fold held out besides the one tested",
        "fold": "the fold tested",
    }.items():
        if level not in design.levels:
            return f"the log has no level {level!r} ({what}). Add it to the index; {made}"
    names = {label: code for code, label in enumerate(design.levels["fold"].labels)}
    codes, counts = cells(design, ("repetition", "outer", "fold"))
    labels = list(design.levels["outer"].labels)
    same = np.array([names.get(labels[outer], -1) == fold for _, outer, fold in codes.tolist()])
    folds = {tuple(row) for row in codes[same][:, :2].tolist()}
    per = np.unique(codes[same][:, 0], return_counts=True)[1]
    k = int(per.max(initial=0))
    if k < 3:
        return (
            f"a repetition has {k} outer folds, evaluations with outer == fold. Expected three "
            f"or more, called alike in both levels; {made}"
        )
    pairs = np.unique(codes[:, :2], axis=0)
    inner = np.unique(codes[~same][:, :2], axis=0, return_counts=True)[1]
    complete = len(folds) == len(pairs) == len(inner) and np.all(inner == k - 1)
    if not complete or np.any(per != k):
        return (
            f"evaluations are left out: each of {k} outer folds needs its own fold and the "
            f"{k - 1} others, tested by models that saw neither; {made}"
        )
    if not whole(design):
        return "its repetitions and outer folds do not all test the same points; " + made
    if counts[same].min() < 2:
        return "a fold has one point. Expected two or more in each fold; " + made
    return None


def numbered(design: Design) -> set[int] | None:
    """Read the labels of ``sample`` that occur as numbers; None where one is no number."""
    used = design.codes_of(design.cell_table(("sample",)))[:, 0]
    labels = [design.levels["sample"].labels[code] for code in used.tolist()]
    try:
        numbers = {int(label) for label in labels}
        exact = len(numbers) == len(labels) and all(int(label) == label for label in labels)
    except (TypeError, ValueError):
        return None
    return numbers if exact else None


def sampled(design: Design, made: str) -> str | None:
    """Ask for whole numbers as labels of ``sample``, the data among them, and no bootstrap."""
    if "sample" not in design.levels:
        return f"the log has no level 'sample'. Add it to the index, 0 for the data; {made}"
    for level, what in {"count": "bootstrap samples", "outer": "nested cross-validation"}.items():
        if design.has(level):
            return f"the log holds {what} (level {level!r}); {made}"
    numbers = numbered(design)
    if numbers is None or 0 not in numbers or min(numbers) < 0:
        return (
            "the labels of its level 'sample' are not whole numbers with 0 for the data itself. "
            f"Number the samples; {made}"
        )
    return None


def halves(design: Design) -> str | None:
    """Ask for random splits of the data and of both halves of every division."""
    made = "cvstats.plans.paired_subsampling makes such a log."
    if (words := sampled(design, made)) is not None:
        return words
    codes, _ = cells(design, ("sample", "repetition", "fold"))
    if len(np.unique(codes[:, :2], axis=0)) < len(codes):
        return (
            "its splits have several folds (level 'fold'), as replace-one cross-validation has. "
            f"Expected one test set in each repetition of a sample; {made}"
        )
    numbers = (numbered(design) or set()) - {0}
    lone = sorted(s for s in numbers if (s + 1 if s % 2 else s - 1) not in numbers)
    if lone or not numbers:
        found = f"sample {lone[0]} stands alone" if lone else "no halves (samples 1, 2, …)"
        return f"the log has {found}. Samples 2r - 1 and 2r are the halves of division r; {made}"
    return None


def halves_overlap(design: Design) -> bool:
    """Whether a point is tested in both halves of a division, which should share none."""
    if "point" not in design.levels or not len(design.levels["point"].labels):
        return False  # moments of cells know that there are points, and not which
    names = tuple(name for name in ("sample", "source", "point") if name in design.levels)
    codes = design.codes_of(design.cell_table(names))
    labels = design.levels["sample"].labels
    used, at = np.unique(codes[:, 0], return_inverse=True)
    number = np.array([int(labels[code]) for code in used.tolist()])[at.reshape(-1)]
    points = codes[number > 0, 1:]
    division = (number[number > 0] + 1) // 2
    return len(np.unique(np.column_stack([division, points]), axis=0)) < len(points)


def replaced(design: Design) -> str | None:
    """Ask for cross-validation of the data, of a half and of that half with each point replaced."""
    made = "cvstats.plans.replace_one makes such a log."
    if (words := sampled(design, made)) is not None:
        return words
    codes, _ = cells(design, ("sample", "repetition", "fold"))
    pairs, folds = np.unique(codes[:, :2], axis=0, return_counts=True)
    if "fold" not in design.levels or folds.min() < 2:
        return f"the log has no folds in some sample (level 'fold'). Expected two or more; {made}"
    _, points = cells(design, ("sample", "repetition"))
    data = np.array([design.levels["sample"].labels[code] == 0 for code in pairs[:, 0]])
    n = design.splits().points or int(points[data].max())  # of which a sample may lack some
    h = int(points[~data].max(initial=0))
    runs = numbered(design)
    if h != n // 2 or runs != set(range(h + 2)):
        return (
            f"the log has {len(runs or ()):,} samples, of {n:,} and {h:,} points. Expected 0 (the "
            f"data), 1 (a half of {n // 2:,} points) and 1 + l (the half with its l-th point "
            f"replaced) for every point of the half, {n // 2 + 2:,} in all; {made}"
        )
    repetitions = len(np.unique(codes[:, 1]))
    if len(pairs) != len(runs) * repetitions or np.any(points != np.where(data, n, h)):
        return (
            f"some points are left out in some repetition of some sample, where {n:,} points of "
            f"the data and {h:,} of each half were expected (missing='drop' leaves out more than "
            f"this method can do without); {made}"
        )
    return None
