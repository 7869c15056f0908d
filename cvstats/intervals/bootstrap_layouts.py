"""Which logs hold bootstrap samples, and words for what others miss."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import TypeVar, cast

import numpy as np

from cvstats.core.design import Design
from cvstats.core.types import IntArray
from cvstats.errors import listed, spelled
from cvstats.intervals.layouts import cells

__all__ = [
    "bootstrap",
    "case",
    "code_of",
    "counts_of",
    "own_fit",
    "remembered",
    "two_stage",
    "with_own_fit",
]

T = TypeVar("T")

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


def counts_of(design: Design) -> IntArray | None:
    """Read the labels of ``count`` as numbers, by code; None where one that occurs is none."""
    numbers, odd = counts_and_odd(design)
    return None if odd else numbers


def counts_and_odd(design: Design) -> tuple[IntArray, list[Hashable]]:
    """Read the labels of ``count`` by code (-1: no count), and list those that occur and are none.

    Labels of losses that were dropped are read too: they still tell who was drawn.
    """
    labels = design.levels["count"].labels
    numbers = np.full(len(labels), -1, dtype=np.int64)
    for code in range(len(labels)):
        with suppress(TypeError, ValueError, OverflowError):
            number = int(labels[code])
            if number >= 0 and labels[code] == number:
                numbers[code] = number
    occurring = design.codes_of(design.cell_table(("count",)))[:, 0].tolist()
    return numbers, [labels[code] for code in occurring if numbers[code] < 0]


def code_of(design: Design, level: str, label: Hashable) -> int | None:
    """Find the code of a label that occurs, such as repetition 0."""
    labels = design.levels[level].labels
    for code in design.codes_of(design.cell_table((level,)))[:, 0].tolist():
        if labels[code] == label:
            return int(code)
    return None


def remembered(design: Design, what: Hashable, make: Callable[[], T]) -> T:
    """Look up what was found out about this index, if its labels are still the same.

    What a design remembers goes by the codes of an index, which may get other labels.
    """
    labels = [np.asarray(level.labels) for level in design.levels.values()]
    before, found = design.facts.get(what, ((), None))
    if len(before) != len(labels) or not all(map(np.array_equal, before, labels)):
        found = make()
        design.facts[what] = labels, found
    return cast(T, found)


def tally(design: Design) -> tuple[IntArray, IntArray]:
    """Tell, for each (sample, repetition), its codes and the rows of count 0, 1 and above."""
    return remembered(design, "tally", partial(tallied, design))


def tallied(design: Design) -> tuple[IntArray, IntArray]:
    """Count them."""
    numbers = counts_of(design)
    codes, rows = cells(design, ("sample", "repetition", "count"))
    key = codes[:, 0] * (codes[:, 1].max(initial=0) + 1) + codes[:, 1]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    found = np.zeros((len(first), 3), dtype=np.int64)
    if numbers is not None:
        np.add.at(found, (group, np.minimum(numbers[codes[:, 2]], 2)), rows)
    return codes[first, :2], found


def own_fit(design: Design) -> int | None:
    """Find repetition 0, the fit on the sample itself; None where there is none.

    Counts of 0 beside others show that it is a bootstrap sample like the rest; and so do
    counts above 1, if no repetition has a point out of bag.
    """
    code = code_of(design, "repetition", 0)
    if code is None:
        return None
    groups, found = tally(design)
    mine = found[groups[:, 1] == code]
    drawn = np.any((mine[:, 0] > 0) & (mine[:, 1:].sum(axis=1) > 0))
    again = mine[:, 2].any() and not found[:, 0].any()
    return None if drawn or again else code


def levels(design: Design, names: tuple[str, ...], made: str) -> str | None:
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
    if (words := levels(design, ("repetition", "point", "count"), made)) is not None:
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


def bootstrap(design: Design) -> str | None:
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


def with_own_fit(design: Design) -> str | None:
    """Ask for the same and for the fit on the sample itself."""
    if (words := bootstrap(design)) is not None:
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


def case(design: Design) -> str | None:
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


def two_stage(design: Design) -> str | None:
    """Ask for bootstrap samples, and the fit itself, of the data and of outer samples."""
    made = MADE["two_stage"]
    names = ("sample", "repetition", "point", "count")
    if (words := levels(design, names, made)) is not None:
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
