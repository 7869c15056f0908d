"""From a log with sources or other groups to a result."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from cvstats.containers import Groups, Log, apart, read
from cvstats.core.columns import Columns
from cvstats.core.design import LEVELS
from cvstats.core.moments import Moments
from cvstats.core.result import Result
from cvstats.core.types import IntArray
from cvstats.errors import LogError, checked_level, listed, looked_up, nearest, spelled
from cvstats.intervals import heterogeneity, independent, source_layouts, sources
from cvstats.intervals.needs import plain
from cvstats.intervals.registry import METHODS, require

__all__ = [
    "independent_logs",
    "run_clustered",
    "run_heterogeneity",
    "run_independent",
    "run_out_of_source",
    "run_source_components",
    "run_source_estimators",
]


def repeated(log: Log, *levels: str) -> tuple[str, ...]:
    """Put the level of repetitions, where the log has one, before others."""
    return (*(("repetition",) if "repetition" in log.design.levels else ()), *levels)


def run_out_of_source(
    log: Log,
    losses: Columns | None = None,
    *,
    target: str = "new_source",
    variance: str = "theta_b",
    alpha: float = 0.05,
) -> Result:
    """Interval for the error on a new source, or on these."""
    require("out_of_source", log.design)
    found = log.moments(repeated(log, "source"), losses)
    return sources.out_of_source(found, target=target, variance=variance, alpha=alpha)


def run_source_estimators(log: Log, *, source: Hashable = None, other: Hashable = None) -> Result:
    """All estimators of the variance of the mean over these sources."""
    require("source_estimators", log.design)
    found = log.moments(repeated(log, "source"))
    codes = [None if name is None else source_code(log, name) for name in (source, other)]
    return sources.estimators(found, source=codes[0], other=codes[1])


def source_code(log: Log, name: Hashable) -> int:
    """Find the code of a source by its label."""
    labels = log.design.levels["source"].labels
    used = log.design.codes_of(log.design.cell_table(("source",)))[:, 0].tolist()
    code = looked_up(name, {labels[code]: code for code in used})
    if code is None:
        names = [labels[code] for code in used]
        raise LogError(
            f"there is no source {spelled(name)}. Expected one of {listed(map(spelled, names))}."
            f"{nearest(name, names)}"
        )
    return code


def group_sizes(log: Log, by: str, cells: Moments, method: str) -> IntArray:
    """Count the points of each group, each of which must belong to one group for good."""
    splits = log.design.splits()
    if len(splits.rows) == 1:
        return cells.count.astype(np.int64)
    counts, shared = apart(log.design, by).points()
    if shared is not None:
        raise LogError(
            f"{method} needs groups that share no point, and {shared}. Expected {by!r} to be the "
            f"same for a point in all repetitions. Name another level in by=, or take one "
            f"repetition: {log.design.take('repetition')}."
        )
    return counts[cells.codes[:, 0]]


def groups_needed(log: Log, by: str, method: str) -> None:
    """Refuse a log without two groups or more, in the words of the method."""
    words = plain(log.design) or source_layouts.clusters(log.design, by)
    if words is not None:
        raise LogError(f"{method} needs {METHODS[method].needs}; {words}")


def run_clustered(
    log: Log,
    losses: Columns | None = None,
    *,
    by: str = "source",
    correction: str = "CR1",
    alpha: float = 0.05,
) -> Result:
    """Interval with clusters as the independent units."""
    groups_needed(log, by, "clustered")
    found = log.moments((by,), losses)
    points = group_sizes(log, by, found, "clustered")
    crossed = source_layouts.across_folds(log.design, by) is not None
    return sources.clustered(found, points, correction=correction, alpha=alpha, crossed=crossed)


def run_heterogeneity(
    log: Log, *, by: str = "source", variance: str = "own", alpha: float = 0.05
) -> Result:
    """Test and measure how groups differ."""
    groups_needed(log, by, "heterogeneity")
    require("wald", log.design)
    found = log.moments(repeated(log, by))
    group_sizes(log, by, found.over((by,)), "heterogeneity")
    return heterogeneity.heterogeneity(found, by=by, variance=variance, alpha=alpha)


def independent_logs(losses: object, name: str, missing: str) -> Groups:
    """Read independent logs that stand below each other, told apart by a level."""
    checked_level("independent", name)
    if name == "repetition":
        raise LogError(
            "independent='repetition': repetitions split the same data anew and share all that "
            "is particular to them, so they are no independent logs and tell nothing of gamma. "
            "Expected a level whose labels are data sets of their own, as in "
            "independent='dataset'. If each of your repetitions drew new data, call it so: "
            "log.rename_axis(index={'repetition': 'dataset'})."
        )
    if name in LEVELS:
        raise LogError(
            f"independent={name!r}: the labels of {name!r} are parts of one experiment on one "
            f"data set, so they are no independent logs. Expected another level, whose labels "
            f"are data sets of their own, as in independent='dataset'."
        )
    groups = Groups(read(losses, missing=missing, by=name), name)
    if len(groups.labels) < 2:
        raise LogError(
            f"level {name!r} has one label, {spelled(groups.labels[0])}: a single log cannot "
            f"tell its own variance. Expected two data sets or more, drawn independently."
        )
    return groups


def leave_sources_out(groups: Groups) -> bool:
    """Whether each of the logs leaves out one source at a time."""
    return all(
        source_layouts.one_source_out(part.design) is None for part in groups.parts()
    )  # fmt: skip


def run_independent(groups: Groups, fold_weights: str) -> Result:
    """Variance components from independent logs."""
    for label, part in zip(groups.labels, groups.parts(), strict=True):
        words = METHODS["decompose"].problem(part.design)
        if words is not None:
            raise LogError(
                f"decompose needs {METHODS['decompose'].needs} in each independent log; "
                f"{groups.name}={spelled(label)}: {words}"
            )
    if leave_sources_out(groups):
        return independent.independent_sources(by_source(groups), fold_weights)
    fold = "fold" if "fold" in groups.design.levels else "source"
    logs = [part.moments(repeated(part, fold)) for part in groups.parts()]
    return independent.independent(logs, fold_weights)


def by_source(groups: Groups) -> Moments:
    """Compute the moments of each source in each log."""
    if groups.design.has("repetition"):
        raise LogError(
            f"the logs that leave a source out have {groups.design.number('repetition'):,} "
            f"repetitions. Expected one in each log: {groups.design.take('repetition')}."
        )
    return groups.log.moments((groups.name, "source"))


def run_source_components(groups: Groups) -> Result:
    """Variance components of each source and pair of sources."""
    for label, part in zip(groups.labels, groups.parts(), strict=True):
        words = METHODS["out_of_source"].problem(part.design)
        if words is not None:
            raise LogError(
                f"source_components needs logs that leave one source out at a time; "
                f"{groups.name}={spelled(label)}: {words}"
            )
    return independent.table(by_source(groups))
