"""What a log must have for a method, and which method fits its design.

The functions that a method names as its requirement check a design and describe what is missing.
`interval`, comparisons, plots and the report share the choice of the default method. It respects
groups: one source left out at a time leads to `out_of_source`; folds of whole sources, and one test
set of several sources, lead to `clustered`. If the same points occur in several sources, both
are sampling units. Points alone are the sampling unit only if the design splits sources.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cvstats.core.cells import Cells
from cvstats.core.design import Design
from cvstats.core.folds import (
    RESAMPLED,
    count_cells,
    covers_all_points,
    divides_both,
    fewest_folds,
    find_across_folds,
    find_single_losses,
    find_whole_sources,
    fold_level,
    folds_are_guessed,
    has_crossed_sources,
    is_partition,
    is_resampled,
    pair_labels,
    split_levels,
)
from cvstats.core.types import IntArray
from cvstats.errors import LogError, NeedsLosses, listed, spelled
from cvstats.intervals._method import find_method, load_methods
from cvstats.intervals._stability import read_partitions
from cvstats.large.lazy import whole_design
from cvstats.log.groups import DifferentGroups
from cvstats.log.log import POINTS_ARE, Log
from cvstats.log.loss_checks import find_dates, find_whole, is_date, shares_dates
from cvstats.registry import INTERVALS

# --- folds, splits and test sets ----------------------------------------------------------------


RENAME = (
    "If these are several answers to the same points, rename the level 'sample' to 'repetition'."
)


def single_dataset(design: Design) -> str | None:
    """Require a log of one data set, without resampled copies or inner folds."""
    if design.levels.keys().isdisjoint(RESAMPLED):
        return None
    if design.has("count"):
        return (
            "this is a bootstrap log (level 'count'). Use interval(losses) or compare(losses), "
            "which choose a method made for it."
        )
    for level, what in {
        "outer": "a nested cross-validation log",
        "sample": "a log of several resampled data sets",
    }.items():
        if design.has(level):
            rename = f"{RENAME} Otherwise select" if level == "sample" else "Select"
            return (
                f"this is {what} (level {level!r}). {rename} one part of it first, as in "
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
    if splits.points is None and find_single_losses(design).all():
        return (
            f"the log has {len(splits.rows):,} repetitions, one loss per fold, and no level "
            "'point'. If these are fold means or scores, set log.attrs['holds'] = 'scores' and "
            "use corrected_t; otherwise add an identifier for each point to the index."
        )
    if splits.points is None:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so losses of "
            "the same point cannot be matched. Add an identifier for each point to the index, or "
            f"select one repetition: {design.take('repetition')}."
        )
    least, most = int(splits.rows.min()), int(splits.rows.max())
    if least < splits.points:
        which = "each repetition of this log tests"
        if least < most:
            which = "some repetitions of this log test"
        return (
            f"{which} only {least:,} of the {splits.points:,} points. Either these are random "
            "splits, or some evaluations are missing. In a partition, every point is tested once "
            "per repetition. For random splits use corrected_t, or compare for several models; "
            "otherwise keep only the points that all repetitions test, or treat one repetition as "
            "a test set: "
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


def named_points_in_folds(design: Design) -> str | None:
    """Require K-fold cross-validation with labeled points.

    The points of a small group may be in one fold in some of the repetitions.
    """
    words = partition(design) if design.has(fold_level(design) or "") else several_folds(design)
    if words is not None:
        return words
    if "point" not in design.levels:
        return (
            "the log has no level 'point', so losses of the same point cannot be matched. Add "
            "an identifier for each point to the index."
        )
    return None


def several_splits(design: Design) -> str | None:
    """Require at least two test sets of one data set."""
    if (problem := single_dataset(design)) is not None:
        return problem
    if len(count_cells(design, split_levels(design))[1]) < 2:
        return (
            "the log has one test set. Number the random splits in the level 'repetition' "
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


SOURCES_BY_POINTS = "source", "point"
"""The two sampling levels of crossed logs, in which the same points occur in several sources."""


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
        return f"{no_level('source')}. Leave one source out at a time: {SOURCES_MADE}"
    if design.number("source") < 2:
        only = design.levels["source"].labels[design.cell_table(("source",)).codes[0, 0]]
        return (
            f"the log has only one source, {spelled(only)}, which does not show how sources "
            f"differ. Expected at least two, preferably thirty or more; {SOURCES_MADE}"
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
    if name == "metric":
        return (
            "by='metric' does not name groups of points: each metric has a result of its own "
            "without by=. Omit it, or name the level of the groups, as in by='source'."
        )
    if name not in design.levels:
        return f"{no_level(name)}, or name another level, as in by='month'."
    if design.number(name) < 2:
        only = design.levels[name].labels[design.cell_table((name,)).codes[0, 0]]
        return (
            f"the log has only one cluster, {name}={spelled(only)}, which is a sample of size one. "
            "Expected at least two, preferably thirty or more."
        )
    splits = design.splits()
    if splits.points is None and not splits.apart:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so whether each "
            "point stays in its cluster cannot be checked. Add an identifier for each point to "
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
    if design.has("sample") and design.levels.keys().isdisjoint(("repetition", "fold")):
        return (
            "each label of its level 'sample' has one test set, without splits (levels "
            f"'repetition' or 'fold'). {RENAME} If the data were resampled, {made}"
        )
    numbers = read_sample_numbers(design)
    if numbers is None or 0 not in numbers or min(numbers) < 0:
        return (
            "the labels of its level 'sample' are not whole numbers that include 0, the full "
            f"data. Number the samples; {made}"
        )
    return None


# --- the default method ---------------------------------------------------------------------------


POINTS = "crossed", "nested"
"""Meaning of equal point labels in several sources: the same points, or separate numbering."""


SHOWN = 3
"""Number of point labels shown in a message."""


STUDY = "Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), arXiv:2409.18836"


SMALL = 100
"""Number of points up to which the study of the methods counts a sample as small."""


RATES = "no_information"
"""Where the attrs of a log may hold the no-information rates."""


def recommend_method(log: Log) -> tuple[str, str]:
    """Choose a method by the design, and by whether the log has losses of points.

    Returns the name of the method and the reason. Of several methods made for the resampling levels
    of the log, one that needs the most levels is chosen, preferably one that applies.
    """
    design = log.planned
    if is_resampled(design):
        made: list[Any] = [
            record for record in load_methods(INTERVALS)
            if record.made_for and all(map(design.has, record.made_for))
        ]  # fmt: skip
        most = max(len(record.made_for) for record in made)
        made = [record for record in made if len(record.made_for) == most]
        chosen = next((record for record in made if record.problem(design) is None), made[0])
        if chosen.name == "bootstrap_632" and RATES not in log.metadata:
            return "bootstrap_oob", (
                f"{chosen.recognized_by}; the no-information rate that .632+ needs is missing from "
                f"attrs[{RATES!r}]"
            )
        return chosen.name, chosen.recognized_by
    if log.metadata.get("holds") == "scores":
        return "corrected_t", "one score per split and no losses of individual points"
    if log.fixed_sources and shares_dates(log):
        what = f"{design.number('source'):,} fixed sources with the same dates"
        return "ordered", f"{what}; only the times are sampled"
    if takes_two_ways(log):
        return "clustered", describe_crossed(log)
    if log.of_contrasts and design.number("source") > 1:
        return "clustered", "differences between groups whose points come from several sources"
    sampled = log.only_tested and not log.fixed_sources
    folded = is_partition(design) or (design.has("fold") and covers_all_points(design))
    if sampled or not folded:  # sources are folds only if models were trained
        return recommend_for_test_sets(design, trained=not log.only_tested)
    method, reason = recommend_for_partition(design)
    if method == "out_of_source" and log.fixed_sources:
        reason = f"{design.number('source'):,} fixed sources (tasks), each with the same weight"
    alone = log.pairs is None and log.of_differences  # `interval` takes the method of `compare`
    if alone and ignores_refits(method, log) and shows_refits(log):
        return "refit_corrected", f"{reason}; the models were refitted"
    return method, reason


def ignores_refits(method: str, log: Log) -> bool:
    """Whether a method is the one for independent points, or for folds of whole sources."""
    if method == "clustered":
        of_sources = not (takes_two_ways(log) or log.of_contrasts)
        return of_sources and bool(find_whole_sources(log.planned).all())
    return method == "wald"


def shows_refits(log: Log) -> bool:
    """Whether the log is repeated cross-validation from which mutual training can be estimated.

    It needs individual losses, and at least two repetitions with different partitions.
    """
    if not repeats_refits(log):
        return False
    if log.design.by is not None:
        raise DifferentGroups("partitions are compared in one group at a time.")
    whole = log if log.cells is None else find_whole(log)
    if whole is None:
        return False
    design = whole.design
    if "equal partitions" not in design.facts:
        design.facts["equal partitions"] = read_partitions(design).are_equal()
    return not design.facts["equal partitions"]


def repeats_refits(log: Log) -> bool:
    """Whether the log is repeated cross-validation of models that were refitted in each fold.

    The groups of a log together may be, since each may have other points.
    """
    design = log.design
    return not (
        log.only_tested
        or design.metric
        or design.scores
        or not design.has("repetition")
        or (design.by is None and named_points_in_folds(design) is not None)
    )


def take_points(log: Log, points: str | None) -> Log:
    """Record whether equal point labels in several sources mean one point; None to detect it."""
    if points == "crossed" and log.lazy is not None and log.lazy.nan_tells:
        log = replace(log, design=whole_design(log))  # NaN marks what was not evaluated
    if points == "crossed" and not has_crossed_sources(log.planned):
        raise LogError(
            "points='crossed' means that the same points occur in several sources, but in this "
            "log they do not. Expected points that occur in several sources, and sources "
            "with several points. Omit points=."
        )
    return log if points is None else replace(log, metadata={**log.metadata, POINTS_ARE: points})


def takes_two_ways(log: Log) -> bool:
    """Whether sources and points are both sampling units, and folds do not split them."""
    design = log.planned
    if not log.crossed or is_resampled(design) or log.metadata.get("holds") == "scores":
        return False
    if not covers_all_points(design):
        return False
    return log.metadata.get(POINTS_ARE) == "crossed" or not divides_both(design)


def recommend_options(log: Log) -> dict[str, Any]:
    """Choose the options of the method that `recommend_method` names.

    Raises
    ------
    DifferentGroups
        If the groups of the log are crossed, since each may have other points.
    """
    if log.design.by is not None and log.crossed:
        raise DifferentGroups("two levels are used for one group at a time.")
    if not takes_two_ways(log):
        of_t = log.metadata.get("quantiles") == "t" and recommend_method(log)[0] == "holdout"
        return {"interval": "t"} if of_t else {}
    if not len(log.planned.levels["point"].labels):  # moments of cells do not keep points
        raise NeedsLosses(
            "the same points occur in several sources, so both are sampling units, but moments "
            "do not contain the points. Pass the log in memory; for a lazy array, set "
            "log.attrs['points_are'] = 'crossed'. If each source numbers its points separately, "
            "pass points='nested' to interval or compare, or set log.attrs['points_are'] = "
            "'nested' before the moments are computed."
        )
    return {"by": SOURCES_BY_POINTS}


def describe_crossed(log: Log) -> str:
    """Describe which points occur in several sources, and what to pass if they differ."""
    design = log.planned
    if not len(design.levels["point"].labels):
        return "the same points occur in several sources"
    sources, points = design.number("source"), design.number("point")
    level = design.levels["point"]
    codes = design.cell_table(("point",)).codes[:SHOWN, 0].tolist()
    shown = ", ".join(name_point(level.labels[code]) for code in codes)
    every = design.splits().points == sources * points
    reason = (
        f"the points {shown}{', ...' if points > SHOWN else ''} occur "
        f"{'in every source' if every else 'in several sources'}: {points:,} points in "
        f"{sources:,} sources, and both are sampling units"
    )
    if log.metadata.get(POINTS_ARE) == "crossed":
        return reason
    return f"{reason}; pass points='nested' if each source numbers its points separately"


def name_point(label: object) -> str:
    """Format a point label; a timestamp at midnight as its date."""
    label = label.astype("M8[us]").item() if isinstance(label, np.datetime64) else label
    return str(label).removesuffix(" 00:00:00") if is_date(label) else spelled(label)


def recommend_for_partition(design: Design) -> tuple[str, str]:
    """Choose for cross-validation: by folds or by sources, once or several times."""
    sources = design.number("source")
    by_source = sources > 1 and find_method("out_of_source").problem(design) is None
    if design.metric != "pool" and (by_source or fold_level(design) == "source"):
        how = "left out one at a time" if "fold" in design.levels else "each tested as a whole"
        return "out_of_source", (
            f"{sources:,} sources, {how} (level 'source')"
            + ("; no level is called 'fold'" if folds_are_guessed(design) else "")
        )
    k = fewest_folds(design)
    if sources > 1 and find_whole_sources(design).all():
        if fold_level(design) == "source":
            return "clustered", f"a metric of all points, from {sources:,} sources"
        return "clustered", f"{k:,} folds of whole sources, {sources:,} in all"
    repetitions = design.number("repetition")
    points = design.splits().points
    what = "leave-one-out" if k == points else f"a partition into {k:,} fold{'s' * (k > 1)}"
    groups = (
        "; sources occur in several folds, so points are the sampling unit" if sources > 1 else ""
    )
    if repetitions == 1:
        return "wald", f"{what}: every point is tested once{groups}"
    each = "every point is tested once in each"
    return "wald", f"{repetitions:,} repetitions of {what}: {each}{groups}"


def recommend_for_test_sets(design: Design, *, trained: bool) -> tuple[str, str]:
    """Choose between one test set (evaluated once or several times) and random splits.

    If no model was ``trained``, repetitions that test other points are not random splits.
    """
    splits = design.splits()
    if splits.points is None and not splits.apart:
        raise LogError(
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so random "
            "splits cannot be distinguished from one test set evaluated several times. Add an "
            "identifier for each point to the index, or choose a method: interval(losses, "
            "method='corrected_t')."
        )
    if covers_all_points(design):
        again = f", evaluated {len(splits.rows):,} times" if len(splits.rows) > 1 else ""
        what = f"one test set of {splits.points:,} points"
        if design.has("source"):
            return "clustered", f"{what} from {design.number('source'):,} sources{again}"
        return "holdout", f"{what}{again}"
    if not trained:
        raise LogError(f"{describe_missing_points(design)}.")
    return "corrected_t", (
        f"random splits: {len(splits.rows):,} repetitions that each test some of the points"
    )


def describe_missing_points(design: Design) -> str:
    """Describe repetitions that lack some points, and what to do if all were to be tested."""
    splits = design.splits()
    kept = [name for name in ("source", "point") if name in design.levels]
    number = "" if splits.points is None else f"{splits.points:,} "  # moments keep no points
    return (
        f"some repetitions evaluate only {int(splits.rows.min()):,} of the {number}"
        "points, so points would have unequal weights. Average the repetitions of each point "
        f"first: log.groupby({kept!r}).mean(); or add the missing evaluations"
    )


def suggest_study(log: Log) -> str:
    """Describe what the study recommends for this number of points.

    Nothing if points have no labels, if they have sources or are dates (which random splits would
    divide), or for language models (which were not trained here).
    """
    n, sample = log.design.splits().points, log.cells and log.cells.sample
    made = "quantiles" in log.metadata  # a log made of another
    seen = sample.log if sample else log
    divided = "source" in log.design.levels or find_dates(seen.design) is not None
    if n is None or made or divided or log.only_tested:
        return ""
    if n <= SMALL:
        what = (
            "nested_cv with 5 folds and at least 25 repetitions, or conservative_z with at "
            "least 25 divisions and 10 splits"
        )
    else:
        what = (
            "corrected_t on at least 25 random splits that train on 90% of the points, or "
            "conservative_z with 10 divisions and 5 splits"
        )
    return f"for {n:,} points, {STUDY} recommend {what}"
