"""What a log must be for a method: each function asks, and says in words what is missing."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from cvstats.containers.bootstrap_samples import code_of, counts_and_odd, own_fit, tally
from cvstats.core.design import LEVELS, Design
from cvstats.core.layout import (
    count_cells,
    covers_all_points,
    fewest_folds,
    find_across_folds,
    has_one_loss_per_split,
    pair_labels,
    split_levels,
)
from cvstats.errors import listed, spelled

__all__ = [
    "bootstrap_samples",
    "bootstrap_with_apparent_error",
    "case_bootstrap_samples",
    "five_times_two_folds",
    "groups",
    "halves",
    "halves_overlap",
    "nested_folds",
    "one_partition",
    "one_source_out",
    "one_test_per_point",
    "one_test_set",
    "partition",
    "replaced_points",
    "several_folds",
    "several_logs",
    "several_splits",
    "single_dataset",
    "two_stage_samples",
]

# --- folds, splits and test sets ----------------------------------------------------------------


def single_dataset(design: Design) -> str | None:
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
    if (words := single_dataset(design)) is not None:
        return words
    splits = design.splits()
    if splits.apart:
        return splits.apart
    if splits.points is None and has_one_loss_per_split(design):
        return (
            f"the log has {len(splits.rows):,} repetitions, one loss in each fold, and no level "
            f"'point'. If these are means of folds or scores, say so with log.attrs['holds'] = "
            f"'scores' and use corrected_t; otherwise add the identity of each point to the index."
        )
    if splits.points is None:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so it is unknown "
            f"which losses belong to one point. Add the identity of each point to the index, "
            f"or take one repetition: {design.take('repetition')}."
        )
    least, most = int(splits.rows.min()), int(splits.rows.max())
    if least < splits.points:
        tested = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"its repetitions test {tested} of the {splits.points:,} points, so these are random "
            f"splits, or some evaluations were left out. A partition tests every point once in "
            f"each repetition. Random splits are what corrected_t is for; otherwise keep the "
            f"points that all repetitions have, or treat one repetition as a test set: "
            f"holdout({design.take('repetition')})."
        )
    return None


def several_folds(design: Design) -> str | None:
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
    if (words := several_folds(design)) is not None:
        return words
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions. Take one of them: "
            f"{design.take('repetition')}; or use wald, which allows for repetitions."
        )
    return None


def one_test_set(design: Design) -> str | None:
    """Ask for one test set, perhaps several times over."""
    if (words := single_dataset(design)) is not None:
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


def several_splits(design: Design) -> str | None:
    """Ask for two test sets or more, of one data set."""
    if (words := single_dataset(design)) is not None:
        return words
    if len(count_cells(design, split_levels(design))[1]) < 2:
        return (
            "the log has one test set. Label each random split by the level 'repetition' "
            "(cvstats.plans.subsampling makes such a log), or use holdout."
        )
    return None


def five_times_two_folds(design: Design) -> str | None:
    """Ask for five repetitions, each of two folds that hold every point."""
    if (words := single_dataset(design)) is not None:
        return words
    made = "cvstats.plans.five_by_two makes such a log."
    for level in ("repetition", "fold"):
        if level not in design.levels:
            return f"the log has no level {level!r}. Add it to the index; {made}"
    codes, _ = count_cells(design, ("repetition", "fold"))
    folds = np.unique(codes[:, 0], return_counts=True)[1]
    if len(folds) != 5 or np.any(folds != 2):
        least, most = folds.min(), folds.max()
        number = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return (
            f"the log has {len(folds):,} {'repetition' if len(folds) == 1 else 'repetitions'} "
            f"of {number} folds; {made}"
        )
    if not covers_all_points(design):
        return f"the two folds of a repetition leave out some points. Expected two halves; {made}"
    return None


def one_test_per_point(design: Design) -> str | None:
    """Ask for each point to be evaluated once."""
    if (words := partition(design)) is not None:
        return words
    if design.has("repetition"):
        return (
            f"the log has {design.number('repetition'):,} repetitions, and errors of one point in "
            f"several of them are not independent. Take one: {design.take('repetition')}; or "
            f"use compare, which allows for repetitions."
        )
    return None


# --- sources and other groups --------------------------------------------------------------------

SOURCES_MADE = "cvstats.plans.leave_one_source_out makes such a log."


def no_level(name: str) -> str:
    """Say how a log gets a level that names groups."""
    way = (
        "cvstats.as_log(frame, source='subject')"
        if name == "source"
        else f"frame.set_index({name!r}, append=True)"
    )
    return f"the log has no level {name!r}. Add the group of each point to the index, as in {way}"


def one_source_out(design: Design) -> str | None:
    """Ask for folds that are sources: each model is tested on the one source it never saw."""
    if (words := single_dataset(design)) is not None:
        return words
    if "source" not in design.levels:
        return f"{no_level('source')}, and leave one source out at a time: {SOURCES_MADE}"
    if design.number("source") < 2:
        only = design.levels["source"].labels[design.codes_of(design.cell_table(("source",)))[0, 0]]
        return (
            f"the log has one source, {spelled(only)}, which says nothing about another. Expected "
            f"two or more, ten or more to say much; {SOURCES_MADE}"
        )
    if "fold" not in design.levels:
        return partition(design)
    if (words := find_across_folds(design, "source")) is not None:
        return (
            f"{words}, so its models were trained on points of the source that tests them. "
            f"Leave one source out at a time ({SOURCES_MADE[:-1]}), or ask about these sources: "
            f"wald, or clustered."
        )
    codes, meets = pair_labels(design, "fold", "source")
    several = np.flatnonzero(meets > 1)
    if len(several):
        rows = (codes[:, :2] == codes[several[0], :2]).all(axis=1)
        names = [spelled(design.levels["source"].labels[code]) for code in codes[rows, 2]]
        fold = spelled(design.levels["fold"].labels[codes[several[0], 1]])
        return (
            f"fold {fold} tests {len(names):,} sources ({listed(names)}). Expected one source in "
            f"each fold; {SOURCES_MADE} Folds of whole sources answer other questions: clustered, "
            f"for points of new sources; wald, for the models trained here."
        )
    return partition(design)


def groups(design: Design, name: str = "source") -> str | None:
    """Ask for two groups or more, of one data set."""
    if (words := single_dataset(design)) is not None:
        return words
    if name not in design.levels:
        return f"{no_level(name)}, or name another level, as in by='month'."
    if design.number(name) < 2:
        only = design.levels[name].labels[design.codes_of(design.cell_table((name,)))[0, 0]]
        return (
            f"the log has one cluster, {name}={spelled(only)}. Expected two or more, thirty or "
            f"more to rely on; a single one is a sample of one."
        )
    splits = design.splits()
    if splits.points is None and not splits.apart:
        return (
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so it is unknown "
            f"whether a point keeps its cluster. Add the identity of each point to the index, "
            f"or take one repetition: {design.take('repetition')}."
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


# --- nested folds, halves and replaced points ----------------------------------------------


def nested_folds(design: Design) -> str | None:
    """Ask for outer and inner evaluations of every pair of folds."""
    made = "cvstats.plans.nested_cv makes such a log."
    for level, what in {
        "outer": "the fold held out besides the one tested",
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
    if not covers_all_points(design):
        return "its repetitions and outer folds do not all test the same points; " + made
    if counts[same].min() < 2:
        return "a fold has one point. Expected two or more in each fold; " + made
    return None


def read_sample_numbers(design: Design) -> set[int] | None:
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
    numbers = read_sample_numbers(design)
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
    codes, _ = count_cells(design, ("sample", "repetition", "fold"))
    if len(np.unique(codes[:, :2], axis=0)) < len(codes):
        return (
            "its splits have several folds (level 'fold'), as replace-one cross-validation has. "
            f"Expected one test set in each repetition of a sample; {made}"
        )
    numbers = (read_sample_numbers(design) or set()) - {0}
    lone = sorted(s for s in numbers if (s + 1 if s % 2 else s - 1) not in numbers)
    if lone or not numbers:
        found = f"sample {lone[0]} has no partner" if lone else "no halves (samples 1, 2, …)"
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


def replaced_points(design: Design) -> str | None:
    """Ask for cross-validation of the data, of a half and of that half with each point replaced."""
    made = "cvstats.plans.replace_one makes such a log."
    if (words := sampled(design, made)) is not None:
        return words
    codes, _ = count_cells(design, ("sample", "repetition", "fold"))
    pairs, folds = np.unique(codes[:, :2], axis=0, return_counts=True)
    if "fold" not in design.levels or folds.min() < 2:
        return f"the log has no folds in some sample (level 'fold'). Expected two or more; {made}"
    _, points = count_cells(design, ("sample", "repetition"))
    data = np.array([design.levels["sample"].labels[code] == 0 for code in pairs[:, 0]])
    n = design.splits().points or int(points[data].max())  # of which a sample may lack some
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
            f"some points are left out in some repetition of some sample, where {n:,} points of "
            f"the data and {h:,} of each half were expected (missing='drop' leaves out more than "
            f"this method can do without); {made}"
        )
    return None


# --- bootstrap samples -------------------------------------------------------------------------

MADE = {
    "bootstrap": "cvstats.plans.bootstrap makes such a log.",
    "case": "cvstats.plans.case_bootstrap makes such a log.",
    "two_stage": "cvstats.plans.two_stage makes such a log.",
}


MEANING = {
    "sample": "the outer sample that was resampled, 0 for the data itself",
    "repetition": "the bootstrap sample",
    "point": "the identity of each data point",
    "count": "how often the point was in the sample that the model was trained on",
}


def levels_of_counts(design: Design, names: tuple[str, ...], made: str) -> str | None:
    """Ask for some levels, and for whole numbers in ``count``."""
    for name in names:
        if name not in design.levels:
            return f"the log has no level {name!r} ({MEANING[name]}). Add it to the index; {made}"
    if design.has("outer"):
        return f"the log holds nested cross-validation (level 'outer'); {made}"
    if odd := counts_and_odd(design)[1]:
        return (
            f"its level 'count' has the label {listed(map(spelled, odd))}. Expected whole numbers, "
            f"0 for out of bag; {made}"
        )
    return None


def one_sample(design: Design, made: str) -> str | None:
    """Ask for several bootstrap samples of one data set."""
    if (words := levels_of_counts(design, ("repetition", "point", "count"), made)) is not None:
        return words
    if design.has("sample"):
        return (
            f"the log holds {design.number('sample'):,} resampled data sets (level 'sample'). "
            f"Take one of them, 0 being the data: {design.take('sample')}; or use two_stage for "
            f"all of them."
        )
    samples = design.number("repetition") - (own_fit(design) is not None)
    if samples < 2:
        return f"the log has {samples} bootstrap sample{'s'[: samples != 1]}. {made}"
    return None


def bootstrap_samples(design: Design) -> str | None:
    """Ask for bootstrap samples whose out-of-bag points were evaluated."""
    if (words := one_sample(design, MADE["bootstrap"])) is not None:
        return words
    groups, found = tally(design)
    if not found[groups[:, 1] != own_fit(design), 0].any():
        return (
            f"the log has no evaluation out of bag (count 0). A log of case cross-validation "
            f"is what case_bootstrap is for; {MADE['bootstrap']}"
        )
    return None


def bootstrap_with_apparent_error(design: Design) -> str | None:
    """Ask for the same and for the fit on the sample itself."""
    if (words := bootstrap_samples(design)) is not None:
        return words
    if own_fit(design) is None:
        found = (
            "no repetition 0"
            if code_of(design, "repetition", 0) is None
            else "a bootstrap sample as repetition 0 (some of its counts are 0)"
        )
        return (
            f"the log has {found}. Expected repetition 0 to be the fit on the sample itself, for "
            f"the apparent error, and bootstrap samples from 1 on; {MADE['bootstrap']}"
        )
    return None


def case_bootstrap_samples(design: Design) -> str | None:
    """Ask for bootstrap samples in each of which every point drawn was left out once."""
    if (words := one_sample(design, MADE["case"])) is not None:
        return words
    groups, found = tally(design)
    if found[groups[:, 1] != own_fit(design), 0].any():
        return (
            f"the log has evaluations out of bag (count 0). Expected each point of a bootstrap "
            f"sample to be tested by a model that was trained without its copies. Out-of-bag "
            f"losses are what bootstrap_oob is for; {MADE['case']}"
        )
    return None


def two_stage_samples(design: Design) -> str | None:
    """Ask for bootstrap samples, and the fit itself, of the data and of outer samples."""
    made = MADE["two_stage"]
    names = ("sample", "repetition", "point", "count")
    if (words := levels_of_counts(design, names, made)) is not None:
        return words
    if code_of(design, "sample", 0) is None or design.number("sample") < 3:
        shown = listed(map(spelled, used(design, "sample")))
        return (
            f"its level 'sample' has the labels {shown}. Expected 0 for the data and two outer "
            f"samples or more; {made}"
        )
    groups, found = tally(design)
    own = groups[:, 1] == code_of(design, "repetition", 0)
    labels = design.levels["sample"].labels
    for code in np.unique(groups[:, 0]).tolist():
        mine = groups[:, 0] == code
        if not (mine & own).any() or found[mine & own, 0].any():
            return (
                f"sample {spelled(labels[code])} has no repetition 0. Expected the fit on each "
                f"outer sample itself, with counts of 1 and above (how often each point was "
                f"drawn); {made}"
            )
        if not found[mine & ~own, 0].any():
            return (
                f"sample {spelled(labels[code])} has no evaluation out of bag (count 0). Expected "
                f"bootstrap samples of each outer sample; {made}"
            )
    return None


def used(design: Design, level: str) -> list[Hashable]:
    """List the labels of a level that occur."""
    codes = design.codes_of(design.cell_table((level,)))[:, 0].tolist()
    return [design.levels[level].labels[code] for code in codes]
