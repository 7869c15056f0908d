"""What a log must be for a method: each function asks, and says in words what is missing."""

from __future__ import annotations

from cvstats.core.design import LEVELS, Design
from cvstats.intervals import layouts, source_layouts
from cvstats.intervals.layouts import fewest_folds
from cvstats.intervals.unused import one_each

__all__ = [
    "clusters",
    "five_times_two",
    "folds",
    "once",
    "one_partition",
    "one_source_out",
    "partition",
    "plain",
    "several_logs",
    "splits",
    "test_set",
]


def plain(design: Design) -> str | None:
    """Ask for a log of one data set, without resampled copies or inner folds."""
    for level, (what, made_for_it) in {
        "count": ("a bootstrap log", "bootstrap_632 or bootstrap_oob"),
        "outer": ("a nested cross-validation log", "nested_cv"),
        "sample": ("a log of several resampled data sets", "conservative_z or replace_one"),
    }.items():
        if design.has(level):
            return (
                f"this is {what} (level {level!r}). Take one part of it first, as in "
                f"{design.take(level)}, or use a method made for it: {made_for_it}."
            )
    return None


def partition(design: Design) -> str | None:
    """Ask for each point to be tested once in every repetition."""
    if (words := plain(design)) is not None:
        return words
    splits = design.splits()
    if splits.apart:
        return splits.apart
    if splits.points is None and one_each(design):
        return (
            f"the log has {len(splits.rows):,} repetitions, one loss in each fold, and no level "
            f"'point'. If these are means of folds or scores, say so with log.attrs['holds'] = "
            f"'scores' and use corrected_t; else add the identity of each point to the index."
        )
    if splits.points is None:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so nothing tells "
            f"which losses belong to one point. Add the identity of each point to the index, "
            f"or take one repetition: {design.take('repetition')}."
        )
    least, most = int(splits.rows.min()), int(splits.rows.max())
    if least < splits.points:
        tested = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"its repetitions test {tested} of the {splits.points:,} points, so these are random "
            f"splits, or some evaluations were left out. A partition tests every point once in "
            f"each repetition. Random splits are what corrected_t is for; else keep the points "
            f"that all repetitions have, or treat one repetition as a test set: "
            f"holdout({design.take('repetition')})."
        )
    return None


def folds(design: Design) -> str | None:
    """Ask for a partition with at least two folds."""
    if (words := partition(design)) is not None:
        return words
    if fewest_folds(design) < 2:
        return (
            "the log has one fold, a single test set. Add the level 'fold' to the index, "
            "or use holdout."
        )
    return None


def one_partition(design: Design) -> str | None:
    """Ask for a single partition with at least two folds."""
    if (words := folds(design)) is not None:
        return words
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions. Take one of them: "
            f"{design.take('repetition')}; or use wald, which knows about repetitions."
        )
    return None


def test_set(design: Design) -> str | None:
    """Ask for one test set, perhaps several times over."""
    if (words := plain(design)) is not None:
        return words
    if design.has("fold"):
        return (
            f"the log has {design.number('fold'):,} folds, each tested with another model. Take "
            f"one of them: {design.take('fold')}; or use wald for all of them."
        )
    if "fold" not in design.levels and design.has("source"):
        return (
            f"a log with sources and no folds leaves one source out at a time, with "
            f"{design.number('source'):,} models. Use out_of_source or wald. If one model met "
            f"them all, say so with a fold: pandas.concat({{0: log}}, names=['fold'])."
        )
    return partition(design)


def splits(design: Design) -> str | None:
    """Ask for two test sets or more, of one data set."""
    return plain(design) or layouts.several_splits(design)


def five_times_two(design: Design) -> str | None:
    """Ask for five repetitions of two folds, of one data set."""
    return plain(design) or layouts.five_times_two(design)


def one_source_out(design: Design) -> str | None:
    """Ask for a partition whose folds are sources, of one data set."""
    return plain(design) or source_layouts.one_source_out(design) or partition(design)


def clusters(design: Design) -> str | None:
    """Ask for two sources or more, of one data set."""
    return plain(design) or source_layouts.clusters(design)


def once(design: Design) -> str | None:
    """Ask for each point to be evaluated once."""
    if (words := partition(design)) is not None:
        return words
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions, and errors of one point in "
            f"several of them are no independent ones. Take one: {design.take('repetition')}; or "
            f"use compare, which knows about repetitions."
        )
    return None


def several_logs(design: Design) -> str | None:
    """Ask for a level besides those of one log, and for logs that leave sources out."""
    others = [name for name in design.levels if name not in LEVELS and design.number(name) > 1]
    if not others:
        return (
            "this is one log. Put several of independent data sets below each other, told apart "
            "by a level of their own: pandas.concat(logs, names=['dataset'])."
        )
    return one_source_out(design)
