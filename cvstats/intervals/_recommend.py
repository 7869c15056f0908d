"""Which interval fits the design of a log, and why.

`interval`, comparisons, plots and the report share this rule. It respects groups: one source left
out at a time leads to `out_of_source`; folds of whole sources, and one test set of several
sources, lead to `clustered`. If the same points occur under several sources, both are sampling
units. Points alone are the sampling unit only if the design splits sources.
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
from cvstats.errors import LogError, NeedsLosses, spelled
from cvstats.intervals._method import find_method, load_methods
from cvstats.intervals._sources import SOURCES_BY_POINTS
from cvstats.large.lazy import whole_design
from cvstats.log.checks import is_date
from cvstats.log.log import POINTS_ARE, Log
from cvstats.registry import INTERVALS

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

    Returns the name of the method and the reason.
    """
    design = log.planned
    if (resampled := recommend_for_resampling(design)) is not None:
        method, reason = resampled
        if method == "bootstrap_632" and RATES not in log.metadata:
            method = "bootstrap_oob"
            reason += f"; the no-information rate that .632+ needs is missing from attrs[{RATES!r}]"
        return method, reason
    if log.metadata.get("holds") == "scores":
        return "corrected_t", "one score per split and no losses of individual points"
    if takes_two_ways(log):
        return "clustered", describe_crossed(log)
    if log.of_contrasts and design.number("source") > 1:
        return "clustered", (
            f"differences between groups whose points come from {design.number('source'):,} sources"
        )
    sampled = log.only_tested and not log.fixed_sources
    if sampled or not is_partition(design):  # sources are folds only if models were trained
        return recommend_for_test_sets(design, trained=not log.only_tested)
    method, reason = recommend_for_partition(design)
    if method == "out_of_source" and log.fixed_sources:
        reason = f"{design.number('source'):,} fixed sources (tasks), each with the same weight"
    return method, reason


def take_points(log: Log, points: str | None) -> Log:
    """Record whether equal point labels in several sources mean one point; None to detect it."""
    if points == "crossed" and log.lazy is not None and log.lazy.nan_tells:
        log = replace(log, design=whole_design(log))  # NaN marks what was not evaluated
    if points == "crossed" and not has_crossed_sources(log.planned):
        raise LogError(
            "points='crossed' means that the same points occur under several sources, but in "
            "this log they do not. Expected points that occur in several sources, and sources "
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
    """Choose the options of the method that `recommend_method` names."""
    if not takes_two_ways(log):
        of_t = log.metadata.get("quantiles") == "t" and recommend_method(log)[0] == "holdout"
        return {"interval": "t"} if of_t else {}
    if not keeps_points(log.planned):
        raise NeedsLosses(
            "the same points occur in several sources, so both are sampling units, but moments "
            "do not contain the points. Pass the log in memory; for a lazy array pass "
            "points='crossed'; or pass points='nested' if each source numbers its points "
            "separately."
        )
    return {"by": SOURCES_BY_POINTS}


def keeps_points(design: Design) -> bool:
    """Whether points have labels, which moments of cells do not keep."""
    return len(design.levels["point"].labels) > 0


def describe_crossed(log: Log) -> str:
    """Describe which points occur under several sources, and what to pass if they differ."""
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
        f"{sources:,} sources, and both are sampling units"
    )
    if log.metadata.get(POINTS_ARE) == "crossed":
        return reason
    return f"{reason}; pass points='nested' if each source numbers its points separately"


def name_point(label: object) -> str:
    """Format a point label; a timestamp at midnight as its date."""
    return str(label).removesuffix(" 00:00:00") if is_date(label) else spelled(label)


def allows(design: Design, name: str) -> bool:
    """Whether a method applies to logs of this design."""
    return find_method(name).problem(design) is None


def recommend_for_resampling(design: Design) -> tuple[str, str] | None:
    """Choose the method made for the resampling levels of the log; None if it has none.

    Of several, the one that needs the most levels, and among these the first that applies.
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
    if design.metric != "pool" and (by_source or fold_level(design) == "source"):
        how = "left out one at a time" if "fold" in design.levels else "each tested as a whole"
        return "out_of_source", (
            f"{sources:,} sources, {how} (level 'source')"
            + ("; no level is called 'fold'" if folds_are_guessed(design) else "")
        )
    k = fewest_folds(design)
    if sources > 1 and has_whole_sources(design):
        if fold_level(design) == "source":
            return "clustered", f"a metric of all points, of {sources:,} sources"
        return "clustered", f"{k:,} folds of whole sources, {sources:,} in all"
    repetitions = design.number("repetition")
    points = design.splits().points
    what = "leave-one-out" if k == points else f"a partition into {k:,} folds"
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
            "splits cannot be distinguished from one test set evaluated several times. Add the "
            "identity of each point to the index, or choose a method: interval(losses, "
            "method='corrected_t')."
        )
    if covers_all_points(design):
        again = f", evaluated {len(splits.rows):,} times" if len(splits.rows) > 1 else ""
        what = f"one test set of {splits.points:,} points"
        if design.has("source"):
            return "clustered", f"{what} of {design.number('source'):,} sources{again}"
        return "holdout", f"{what}{again}"
    if not trained:
        kept = [name for name in ("source", "point") if name in design.levels]
        raise LogError(
            f"some repetitions evaluate only {int(splits.rows.min()):,} of the {splits.points:,} "
            f"points, so points would have unequal weights. Average the repetitions of each point "
            f"first: log.groupby({kept!r}).mean(); or add the missing evaluations."
        )
    return "corrected_t", (
        f"random splits: {len(splits.rows):,} repetitions that each test some of the points"
    )


def suggest_study(log: Log) -> str:
    """Describe what the study recommends for this number of points.

    Nothing if points have no labels, if they come from sources (which random splits would
    divide), or for language models (which were not trained here).
    """
    n = log.design.splits().points
    made = "quantiles" in log.metadata  # a log made of another
    if n is None or made or log.design.has("source") or log.only_tested:
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
