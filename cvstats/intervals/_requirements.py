"""Requirements of methods: each function checks a design and describes what is missing."""

from __future__ import annotations

import numpy as np

from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import (
    RESAMPLED,
    count_cells,
    fewest_folds,
    find_across_folds,
    has_one_loss_per_split,
    pair_labels,
    split_levels,
)
from cvstats.core.types import IntArray
from cvstats.errors import listed, spelled
from cvstats.log.log import Log

# --- folds, splits and test sets ----------------------------------------------------------------


def single_dataset(design: Design) -> str | None:
    """Require a log of one data set, without resampled copies or inner folds."""
    if design.levels.keys().isdisjoint(RESAMPLED):
        return None
    for level, what in {
        "count": "a bootstrap log",
        "outer": "a nested cross-validation log",
        "sample": "a log of several resampled data sets",
    }.items():
        if design.has(level):
            return (
                f"this is {what} (level {level!r}). Select one part of it first, as in "
                f"{design.take(level)}, or use interval(losses), which chooses a method made for "
                "it."
            )
    return None


def partition(design: Design) -> str | None:
    """Require that each point is tested once in every repetition."""
    if (problem := single_dataset(design)) is not None:
        return problem
    splits = design.splits()
    if splits.apart:
        return splits.apart
    if splits.points is None and has_one_loss_per_split(design):
        return (
            f"the log has {len(splits.rows):,} repetitions, one loss per fold, and no level "
            "'point'. If these are fold means or scores, set log.attrs['holds'] = 'scores' and "
            "use corrected_t; otherwise add the identity of each point to the index."
        )
    if splits.points is None:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so losses of "
            "the same point cannot be matched. Add the identity of each point to the index, or "
            f"select one repetition: {design.take('repetition')}."
        )
    least, most = int(splits.rows.min()), int(splits.rows.max())
    if least < splits.points:
        tested = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"each repetition of this log tests only {tested} of the {splits.points:,} points, so "
            "these are random splits, or some evaluations are missing. A partition tests every "
            "point once in each repetition. For random splits use corrected_t; otherwise keep only "
            "the points that all repetitions test, or treat one repetition as a test set: "
            f"holdout({design.take('repetition')})."
        )
    return None


def several_folds(design: Design) -> str | None:
    """Require a partition with at least two folds."""
    if (problem := partition(design)) is not None:
        return problem
    if fewest_folds(design) < 2:
        return (
            "the log has one fold, a single test set. Add the level 'fold' to the index, "
            "or use holdout."
        )
    return None


def several_splits(design: Design) -> str | None:
    """Require at least two test sets of one data set."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if len(count_cells(design, split_levels(design))[1]) < 2:
        return (
            "the log has one test set. Label each random split by the level 'repetition' "
            "(cvstats.plans.subsampling creates such a log), or use holdout."
        )
    return None


def one_test_per_point(design: Design) -> str | None:
    """Require that each point is evaluated once."""
    if (problem := partition(design)) is not None:
        return problem
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions, and losses of the same "
            f"point are not independent. Select one: {design.take('repetition')}; or use "
            "compare, which accounts for repetitions."
        )
    return None


# --- sources and other groups --------------------------------------------------------------------

SOURCES_MADE = "cvstats.plans.leave_one_source_out creates such a log."


def no_level(name: str) -> str:
    """Explain how to add a level that names groups."""
    way = (
        "cvstats.as_log(frame, source='subject')"
        if name == "source"
        else f"frame.set_index({name!r}, append=True)"
    )
    return f"the log has no level {name!r}. Add the group of each point to the index: {way}"


def one_source_out(design: Design) -> str | None:
    """Require folds that are sources: each model is tested on the one source left out."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if "source" not in design.levels:
        return f"{no_level('source')}, and leave one source out at a time: {SOURCES_MADE}"
    if design.number("source") < 2:
        only = design.levels["source"].labels[design.cell_table(("source",)).codes[0, 0]]
        return (
            f"the log has one source, {spelled(only)}, which does not support inference about "
            f"others. Expected at least two, and preferably ten or more; {SOURCES_MADE}"
        )
    if "fold" not in design.levels:
        return partition(design)
    if (problem := find_across_folds(design, "source")) is not None:
        return (
            f"{problem}, so models were tested on a source that they had been trained on. "
            f"Leave one source out at a time ({SOURCES_MADE[:-1]}), or use wald or clustered for "
            "these sources."
        )
    codes, meets = pair_labels(design, "fold", "source")
    several = np.flatnonzero(meets > 1)
    if len(several):
        rows = (codes[:, :2] == codes[several[0], :2]).all(axis=1)
        names = [spelled(design.levels["source"].labels[code]) for code in codes[rows, 2]]
        fold = spelled(design.levels["fold"].labels[codes[several[0], 1]])
        return (
            f"fold {fold} tests {len(names):,} sources ({listed(names)}). Expected one source in "
            f"each fold; {SOURCES_MADE} For folds of whole sources, use clustered (points of new "
            "sources) or wald (the models trained here)."
        )
    return partition(design)


def several_groups(design: Design, name: str = "source") -> str | None:
    """Require at least two groups of one data set."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if name not in design.levels:
        return f"{no_level(name)}, or name another level, as in by='month'."
    if design.number(name) < 2:
        only = design.levels[name].labels[design.cell_table((name,)).codes[0, 0]]
        return (
            f"the log has one cluster, {name}={spelled(only)}. Expected at least two, and "
            "preferably thirty or more: a single cluster is a sample of size one."
        )
    splits = design.splits()
    if splits.points is None and not splits.apart:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so whether each "
            "point stays in its cluster cannot be checked. Add the identity of each point to "
            f"the index, or select one repetition: {design.take('repetition')}."
        )
    return None


# --- nested folds, halves and replaced points ----------------------------------------------


def read_sample_numbers(design: Design) -> set[int] | None:
    """Read the labels of ``sample`` as numbers; None if one is not a number."""
    used = design.cell_table(("sample",)).codes[:, 0]
    labels = [design.levels["sample"].labels[code] for code in used.tolist()]
    try:
        numbers = {int(label) for label in labels}
        exact = len(numbers) == len(labels) and all(int(label) == label for label in labels)
    except (TypeError, ValueError):
        return None
    return numbers if exact else None


def read_samples(log: Log, found: Cells) -> IntArray:
    """Read the label of ``sample`` of each cell as a number."""
    codes = found.codes[:, found.levels.index("sample")]
    labels = log.design.levels["sample"].labels
    return np.array([int(labels[code]) for code in codes.tolist()], dtype=np.int64)


def sampled(design: Design, made: str) -> str | None:
    """Require whole numbers as labels of ``sample``, including 0 for the data, and no bootstrap."""
    if "sample" not in design.levels:
        return (
            f"the log has no level 'sample'. Add it to the index, with 0 for the full data; {made}"
        )
    for level, what in {"count": "bootstrap samples", "outer": "nested cross-validation"}.items():
        if design.has(level):
            return f"the log contains {what} (level {level!r}); {made}"
    numbers = read_sample_numbers(design)
    if numbers is None or 0 not in numbers or min(numbers) < 0:
        return (
            "the labels of its level 'sample' are not whole numbers with 0 for the data itself. "
            f"Number the samples; {made}"
        )
    return None
