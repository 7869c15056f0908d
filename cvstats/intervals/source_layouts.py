"""What the levels of a log say about its sources, and words for what is missing."""

from __future__ import annotations

import numpy as np

from cvstats.core.design import Design
from cvstats.core.types import IntArray
from cvstats.errors import listed, spelled
from cvstats.intervals.layouts import fold_level

__all__ = ["across_folds", "clusters", "no_level", "one_source_out"]

MADE = "cvstats.plans.leave_one_source_out makes such a log."


def no_level(name: str) -> str:
    """Say how a log gets a level that names groups."""
    way = (
        "cvstats.as_log(frame, source='subject')"
        if name == "source"
        else f"frame.set_index({name!r}, append=True)"
    )
    return f"the log has no level {name!r}. Add the group of each point to the index, as in {way}"


def repeated(design: Design, one: str, two: str) -> tuple[IntArray, IntArray]:
    """Pair the labels of two levels within each repetition: which codes meet which.

    Returns the codes (repetition, one, two) of every pair that occurs, and for each of them
    how many labels of ``two`` its label of ``one`` meets in that repetition.
    """
    known = tuple(name for name in ("repetition",) if name in design.levels)
    found = design.codes_of(design.cell_table((*known, one, two)))
    codes = np.zeros((len(found), 3), dtype=np.int64)
    codes[:, 3 - found.shape[1] :] = found
    _, at, meets = np.unique(codes[:, :2], axis=0, return_inverse=True, return_counts=True)
    return codes, meets[at.reshape(-1)].astype(np.int64)


def across_folds(design: Design, name: str) -> str | None:
    """Name a label of a level that stands in several folds of a repetition, if one does."""
    fold = fold_level(design)
    if fold is None or fold == name or name not in design.levels:
        return None
    codes, meets = repeated(design, name, fold)
    crossed = np.flatnonzero(meets > 1)
    if not len(crossed):
        return None
    first = codes[crossed[0]]
    label = spelled(design.levels[name].labels[first[1]])
    total = len(np.unique(codes[crossed, 1]))
    rest = f" (and {total - 1:,} more like it)" if total > 1 else ""
    return f"{name} {label} stands in {meets[crossed[0]]:,} folds{rest}"


def one_source_out(design: Design) -> str | None:
    """Ask for folds that are sources: each model is tested on the one source it never saw."""
    if "source" not in design.levels:
        return f"{no_level('source')}, and leave one source out at a time: {MADE}"
    if design.number("source") < 2:
        only = design.levels["source"].labels[design.codes_of(design.cell_table(("source",)))[0, 0]]
        return (
            f"the log has one source, {spelled(only)}, and tells nothing of another. Expected "
            f"two or more, ten or more to say much; {MADE}"
        )
    if "fold" not in design.levels:
        return None
    if (words := across_folds(design, "source")) is not None:
        return (
            f"{words}, so its models were trained on points of the source that tests them. "
            f"Leave one source out at a time ({MADE[:-1]}), or ask about these sources: wald, or "
            f"clustered."
        )
    codes, meets = repeated(design, "fold", "source")
    several = np.flatnonzero(meets > 1)
    if len(several):
        rows = (codes[:, :2] == codes[several[0], :2]).all(axis=1)
        names = [spelled(design.levels["source"].labels[code]) for code in codes[rows, 2]]
        fold = spelled(design.levels["fold"].labels[codes[several[0], 1]])
        return (
            f"fold {fold} tests {len(names):,} sources ({listed(names)}). Expected one source in "
            f"each fold; {MADE} Folds of whole sources answer other questions: clustered, for "
            f"points of new sources; wald, for the models trained here."
        )
    return None


def clusters(design: Design, name: str = "source") -> str | None:
    """Ask for two clusters or more."""
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
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so nothing tells "
            f"whether a point keeps its cluster. Add the identity of each point to the index, "
            f"or take one repetition: {design.take('repetition')}."
        )
    return None
