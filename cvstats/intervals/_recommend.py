"""Which interval the design of a log calls for, and why.

The one rule that `interval`, comparisons, plots and the report go by. Groups are respected: one
source left out at a time gives `out_of_source`, folds of whole sources and one test set of several
sources `clustered`. Where the same points occur under several sources, both are what was sampled.
Only where the design divides sources are points what counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cvstats.core.design import Design
from cvstats.core.folds import (
    covers_all_points,
    divides_both,
    fewest_folds,
    fold_level,
    folds_are_guessed,
    has_crossed_sources,
    has_whole_sources,
    is_partition,
    is_resampled,
)
from cvstats.errors import LogError, checked_choice, spelled
from cvstats.intervals._method import find_method, load_methods
from cvstats.intervals._sources import SOURCES_BY_POINTS
from cvstats.large.lazy import whole_design
from cvstats.log.checks import is_date
from cvstats.log.log import POINTS_ARE, Log
from cvstats.registry import INTERVALS

POINTS = "crossed", "nested"
"""What points of one name in several sources may be: the same ones, or numbered anew."""

SHOWN = 3
"""So many labels of points are named."""

STUDY = "Schulz-Kümpel, Fischer, Hornung, Boulesteix, Nagler and Bischl (2024), arXiv:2409.18836"

SMALL = 100
"""So many points are few for the study that compared the methods."""

ONLY_TESTED = ("lm-eval", "inspect")
"""Formats of logs of models that were tested and not trained."""

RATES = "no_information"
"""Where the attrs of a log may hold the no-information rates."""


def recommend_method(log: Log) -> tuple[str, str]:
    """Choose by the design, and by whether there are losses of points at all.

    Returns the name of the method and the reason.
    """
    design = log.planned
    if (resampled := recommend_for_resampling(design)) is not None:
        method, reason = resampled
        if method == "bootstrap_632" and RATES not in log.noted:
            method = "bootstrap_oob"
            reason += f"; no no-information rate is in attrs[{RATES!r}], which .632+ needs"
        return method, reason
    if log.noted.get("holds") == "scores":
        return "corrected_t", "one score for each split, and no losses of points"
    if takes_two_ways(log):
        return "clustered", describe_crossed(log)
    if log.of_contrasts and design.number("source") > 1:
        return "clustered", (
            f"differences between groups whose points come from {design.number('source'):,} sources"
        )
    if not is_partition(design):
        return recommend_for_test_sets(design)
    method, reason = recommend_for_partition(design)
    if method == "out_of_source" and log.fixed_sources:
        reason = f"{design.number('source'):,} fixed sources (tasks), each with the same weight"
    return method, reason


def take_points(log: Log, points: str | None) -> Log:
    """Note whether points of one name in several sources are the same ones; None to find out."""
    checked_choice("points", points, (*POINTS, None))
    if points == "crossed" and log.lazy is not None and log.lazy.nan_tells:
        log = replace(log, design=whole_design(log))  # NaN will show what was evaluated
    if points == "crossed" and not has_crossed_sources(log.planned):
        raise LogError(
            "points='crossed' says that the same points occur under several sources, and in this "
            "log they do not. Expected levels 'source' and 'point' whose labels meet several of "
            "the other. Leave points= out."
        )
    return log if points is None else replace(log, noted={**log.noted, POINTS_ARE: points})


def takes_two_ways(log: Log) -> bool:
    """Whether sources and points are both samples, which folds do not divide without asking."""
    design = log.planned
    if not log.crossed or is_resampled(design) or log.noted.get("holds") == "scores":
        return False
    if not covers_all_points(design):
        return False
    return log.noted.get(POINTS_ARE) == "crossed" or not divides_both(design)


def recommend_options(log: Log) -> dict[str, Any]:
    """Choose the options of the method that `recommend_method` names."""
    if not takes_two_ways(log):
        of_t = log.noted.get("quantiles") == "t" and recommend_method(log)[0] == "holdout"
        return {"interval": "t"} if of_t else {}
    if not keeps_points(log.planned):
        raise LogError(
            "the same points occur under several sources, so that both are samples, and cells do "
            "not keep the points. Expected the log in memory; of a lazy array points='crossed'; or "
            "points='nested', where they are numbered anew in each source."
        )
    return {"by": SOURCES_BY_POINTS}


def keeps_points(design: Design) -> bool:
    """Whether the points have their labels, as those of cells have not."""
    return len(design.levels["point"].labels) > 0


def describe_crossed(log: Log) -> str:
    """Say which points occur under several sources, and what to pass if they are not the same."""
    design = log.planned
    if not keeps_points(design):
        return "the same points occur under several sources"
    sources, points = design.number("source"), design.number("point")
    level = design.levels["point"]
    codes = design.cell_table(("point",)).codes[:SHOWN, 0].tolist()
    shown = ", ".join(name_point(level.labels[code]) for code in codes)
    every = design.splits().points == sources * points
    reason = (
        f"the points {shown}{', ...' if points > SHOWN else ''} occur "
        f"{'in every source' if every else 'in several sources'}: {points:,} points under "
        f"{sources:,} sources, both of them samples"
    )
    if log.noted.get(POINTS_ARE) == "crossed":
        return reason
    return f"{reason}; points='nested' if they are numbered anew in each source"


def name_point(label: object) -> str:
    """Name a point; of a day only the day."""
    return str(label).removesuffix(" 00:00:00") if is_date(label) else spelled(label)


def allows(design: Design, name: str) -> bool:
    """Whether a method takes logs of this design."""
    return find_method(name).problem(design) is None


def recommend_for_resampling(design: Design) -> tuple[str, str] | None:
    """Choose the method whose levels of resampling the log has; None where it has none of them.

    Of several, the one that asks for most levels, and among these the first that applies.
    """
    if not is_resampled(design):
        return None
    made = [
        method
        for method in load_methods(INTERVALS)
        if method.made_for and all(map(design.has, method.made_for))
    ]
    most = max(len(method.made_for) for method in made)
    made = [method for method in made if len(method.made_for) == most]
    chosen = next((method for method in made if allows(design, method.name)), made[0])
    return chosen.name, chosen.recognized_by


def recommend_for_partition(design: Design) -> tuple[str, str]:
    """Choose for cross-validation: by folds or by sources, once or several times."""
    sources = design.number("source")
    by_source = sources > 1 and allows(design, "out_of_source")
    if by_source or fold_level(design) == "source":
        how = "left out one at a time" if "fold" in design.levels else "each tested as a whole"
        return "out_of_source", (
            f"{sources:,} sources, {how} (level 'source')"
            + ("; no level is called 'fold'" if folds_are_guessed(design) else "")
        )
    k = fewest_folds(design)
    if sources > 1 and has_whole_sources(design):
        return "clustered", f"{k:,} folds that hold whole sources, {sources:,} of them"
    repetitions = design.number("repetition")
    points = design.splits().points
    what = "leave-one-out" if k == points else f"a partition into {k:,} folds"
    groups = (
        "; sources occur in several folds, so the interval covers these sources, not new ones"
        if sources > 1
        else ""
    )
    if repetitions == 1:
        return "wald", f"{what}: every point is tested once{groups}"
    each = "every point is tested once in each"
    return "wald", f"{repetitions:,} repetitions of {what}: {each}{groups}"


def recommend_for_test_sets(design: Design) -> tuple[str, str]:
    """Choose between one test set, perhaps evaluated several times, and random splits."""
    splits = design.splits()
    if splits.points is None and not splits.apart:
        raise LogError(
            f"the log has {len(splits.rows):,} repetitions and no level 'point', so random splits "
            f"cannot be distinguished from one test set evaluated several times. Add the identity "
            f"of each point to the index, or choose: interval(losses, method='corrected_t')."
        )
    if covers_all_points(design):
        again = f", evaluated {len(splits.rows):,} times" if len(splits.rows) > 1 else ""
        what = f"one test set of {splits.points:,} points"
        if design.has("source"):
            return "clustered", f"{what} of {design.number('source'):,} sources{again}"
        return "holdout", f"{what}{again}"
    return "corrected_t", (
        f"random splits: {len(splits.rows):,} repetitions that each test some of the points"
    )


def suggest_study(log: Log) -> str:
    """Say what the study recommends for so many points.

    Nothing where they have no names; where they come from sources, which random splits would
    divide; and of language models, which were not trained for it.
    """
    n = log.design.splits().points
    made = "quantiles" in log.noted  # a log made of another
    if n is None or made or log.design.has("source") or log.noted.get("format") in ONLY_TESTED:
        return ""
    if n <= SMALL:
        what = (
            "nested_cv with 5 folds and 25 repetitions or more, or conservative_z with 25 "
            "divisions of 10 splits or more"
        )
    else:
        what = (
            "corrected_t on 25 random splits or more that train on 90% of the points, or "
            "conservative_z with 10 divisions of 5 splits"
        )
    return f"{STUDY} recommend {what} for {n:,} points"
