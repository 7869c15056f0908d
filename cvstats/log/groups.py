"""The groups of a log, one for each label of a level (``by=``).

The level is the first key of moments and counts, so that a method computes all groups at once. The
rows of one group are selected for methods that read individual losses, and for the error of a group
that cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from cvstats.core.cautions import Caution
from cvstats.core.design import LEVELS, SPLIT, Design, Level, SplitSizes
from cvstats.core.folds import (
    find_single_losses,
    find_whole_sources,
    fold_level,
    fold_levels,
    has_crossed_sources,
    repetition_level,
    tally,
)
from cvstats.core.loss_columns import LossColumns
from cvstats.core.results import Result, join_results
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed, nearest, spelled
from cvstats.log.log import HiddenTable, Log, add_cautions, hide_losses
from cvstats.log.metadata import cautions_of_metric, folds_of_metric, has_several, select_metric
from cvstats.log.pandas import MetricLabels

Run = Callable[[Log], Result]

WORDS = (
    "This method needs the individual losses of each group, but only moments are available. Load "
    "the log first: log.compute() for a lazy array; for moments, read the losses, as with "
    "cvstats.read_log(path)."
)

ALIKE = 6
"""Groups with at least this many repetitions or folds are equivalent for requirements."""


def within_levels(
    design: Design, names: Sequence[object], coords: Mapping[Any, Any]
) -> tuple[str, ...]:
    """Name more levels that distinguish evaluations, if the log has them.

    ``coords`` are those of the carried dimensions of an array.

    Raises
    ------
    LogError
        If there is no such level.
    """
    gone = [name for name in names if not isinstance(name, str) or name not in design.levels]
    for name in gone[:1]:
        known = listed(map(repr, design.levels)) or "none"
        if not isinstance(name, str):
            raise LogError(f"Invalid level {name!r}. Expected the name of one level: {known}.")
        way = nearest(name, design.levels)
        level, _, part = name.partition(".")
        dims = getattr(coords.get(name), "dims", ())  # of an array; a scalar has none
        if dims:
            along = " and ".join(map(str, dims))
            way = (
                f" {name!r} is along {along}, and every cell has a result of its own without by=. "
                f"For one per label, average cells first: log.groupby({name!r}).mean()."
            )
        elif part and level in design.levels:
            way = f" Add it as a coordinate: log.assign_coords({part}=log.{level}.dt.{part})."
        elif not way and name not in (*LEVELS, "model", "metric", ""):
            way = (
                " To keep a column as a level, name it when you read the log: "
                f"read_log(…, by={name!r})."
            )
        raise LogError(
            f"the log has no level {name!r}. Expected one of its levels or coordinates: "
            f"{known}.{way}"
        )
    return tuple(map(str, names))


def take_rows(design: Design, rows: IntArray) -> Design:
    """Select some rows of a design."""
    levels = {
        name: level if isinstance(level.codes, HiddenTable) else level.take(rows)
        for name, level in design.levels.items()
    }
    valid = None if design.valid is None else design.valid[rows]
    return replace(
        design, levels=levels, size=len(rows), facts={}, within=(),
        valid=None if valid is None or valid.all() else valid,
        weights=None if design.weights is None else design.weights[rows],
    )  # fmt: skip


class Groups:
    """A log and the level whose labels are its groups.

    Parameters
    ----------
    log : Log
        The whole log, whose design was read with this level.
    name : str
        The level.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name = log, name
        self.design = log.design if log.design.by is None else replace(log.design, by=None)
        self.codes = self.design.cell_table((name,)).codes[:, 0]
        self._known: dict[int, IntArray] = {}
        self._sampled: Groups | None = None

    @property
    def labels(self) -> list[Hashable]:
        """The labels that occur, in the order of the groups."""
        labels = self.design.levels[self.name].labels
        if isinstance(labels, pd.Index):
            return labels.take(self.codes).tolist()
        return [labels[code] for code in self.codes.tolist()]

    def together(self) -> Log:
        """Return the log whose moments and counts are per group."""
        known = {} if self.log.remembered is None else self.log.remembered
        return replace(self.log, design=replace(self.design, by=self.name), remembered=known)

    def parts(self) -> Iterator[Log]:
        """Iterate over the groups as separate logs."""
        self._known = dict(enumerate(self.find_rows(range(len(self.codes)))))
        return map(self.part, range(len(self.codes)))

    def part(self, at: int) -> Log:
        """Select the rows of a group, in the order of the log."""
        design, metadata = take_rows(self.design, self._rows(at)), self.log.metadata
        if self.name == "metric" and has_several(metadata):
            metadata = select_metric(dict(metadata), self.labels[at])
            design = replace(design, metric=folds_of_metric(metadata))
        whole = self.log.complete
        if whole is not None:
            code = whole.levels[self.name].block(0, whole.size)
            whole = take_rows(whole, np.flatnonzero(code == self.codes[at]))
        log = replace(self.log, design=design, complete=whole, metadata=metadata)
        if self.log.cells is not None:
            cells = self.log.cells.take_group(self.name, int(self.codes[at]), WORDS)
            if (sample := self.log.cells.sample) is not None:
                groups = self._sampled = self._sampled or Groups(sample.log, self.name)
                if (label := self.labels[at]) in groups.labels:
                    seen = groups.part(groups.labels.index(label))
                    cells = replace(cells, sample=replace(sample, log=seen))
            design.facts.update(self._facts(at, design))
            return replace(log, cells=cells, losses=hide_losses(log.losses.width, WORDS))
        rows = self._rows(at)
        losses = LossColumns(tuple(table[rows] for table in log.losses.tables))
        return replace(log, losses=losses)

    def outline(self, at: int) -> Log:
        """Return a group of a lazy log, without its losses."""
        return replace(self.log, design=self.kind(at))

    def kind(self, at: int) -> Design:
        """Return the design of a group; its codes, and what was computed from them, are cached.

        Labels are not cached, because those of an index may be replaced.
        """
        known, key = self.design, ("kind", self.name, at)
        if key not in known.facts:
            part = take_rows(known, self._rows(at))
            codes = {name: level.codes for name, level in part.levels.items()}
            facts = {} if self.log.cells is None else self._facts(at, part)
            known.facts[key] = codes, part.size, part.valid, part.weights, facts
        codes, size, valid, weights, facts = known.facts[key]
        levels = {name: Level(known.levels[name].labels, codes[name]) for name in codes}
        return replace(
            known, levels=levels, size=size, facts=facts, within=(), valid=valid,
            weights=weights,
        )  # fmt: skip

    def find_rows(self, chosen: Sequence[int]) -> list[IntArray]:
        """Find the rows of some groups, each in their order in the log."""
        design, level = self.design, self.design.levels[self.name]
        place = np.full(len(level.labels) + 1, -1)  # the last one for rows without a label
        place[self.codes[chosen]] = np.arange(len(chosen))
        place = place.astype(np.min_scalar_type(-1 - len(chosen)))
        found, groups = [], []
        for start, stop in block_bounds(design.size, BLOCK):
            here = place[level.codes[start:stop]]
            if design.valid is not None:
                here[~design.valid[start:stop]] = -1
            rows = np.flatnonzero(here >= 0)
            found.append(rows + start)
            groups.append(here[rows])
        group = np.concatenate(groups)
        order = np.argsort(group, kind="stable")  # radix sort: there are usually few labels
        ends = np.cumsum(np.bincount(group, minlength=len(chosen)))
        return np.split(np.concatenate(found)[order], ends[:-1])

    def _rows(self, at: int) -> IntArray:
        """Find the rows of a group, with those of all that stand for others if it is one."""
        if at not in self._known:
            kinds = self.kinds()
            chosen = kinds if at in kinds else range(len(self.codes))
            self._known.update(zip(chosen, self.find_rows(chosen), strict=True))
        return self._known[at]

    def _facts(self, at: int, part: Design) -> dict[Any, Any]:
        """List what the cells of a group do not show: its points, and whether sources share them.

        Sources are taken to share points in each group if they do in any.
        """
        crossed = has_crossed_sources(self.design) and part.has("source")
        return {"splits": self._splits(at), ("crossed", None): crossed}

    def _splits(self, at: int) -> SplitSizes:
        """Count the rows of each split of a group, and its points."""
        design = self.together().design
        cells = tally(design, *SPLIT)
        rows = cells.count[cells.codes[:, 0] == self.codes[at]].astype(np.int64)
        if len(rows) == 1:
            return SplitSizes(rows, int(rows[0]))
        points = self.together().points_by_group()
        return SplitSizes(rows, None if points is None else int(points[at, 0]))

    def kinds(self) -> list[int]:
        """Find representative groups: methods accept or reject the others for the same reasons.

        Cached. Groups of samples (such as bootstrap samples) are all treated as different.
        """
        key = ("kinds", self.name, tuple(self.log.used))
        if key not in self.design.facts:
            found = np.unique(self._features(), axis=0, return_index=True)[1]
            self.design.facts[key] = sorted(found.tolist())
        kinds: list[int] = self.design.facts[key]
        return kinds

    def _features(self) -> IntArray:
        """Compute the features that methods require of a log, one row per group."""
        design = self.together().design
        if any(level in design.levels for level in ("sample", "outer", "count")):
            return np.arange(len(self.codes))[:, None]
        repeated, points = repetition_level(design), self.together().points_by_group()
        splits, folds = tally(design, "repetition"), tally(design, *fold_levels(design))
        least, most = (
            end.reduceat(splits.count, splits.starts) for end in (np.minimum, np.maximum)
        )
        each = folds.within(repeated).n_cells[:, 0]
        found = [
            np.minimum(splits.n_cells[:, 0], ALIKE), least == most, most > 1,
            np.zeros(len(least)) if points is None else points[:, 0] > least,
            np.minimum(np.minimum.reduceat(each, splits.starts), ALIKE),
            np.minimum(np.maximum.reduceat(each, splits.starts), ALIKE),
            find_single_losses(design),
        ]  # fmt: skip
        names = {*design.levels}.intersection((*LEVELS, *self.log.used)) - {"point", self.name}
        for name in sorted(names):
            found.append(tally(design, name).n_cells[:, 0] > 1)
        if "source" in design.levels and fold_level(design) == "fold":
            by = fold_levels(design)
            several = tally(design, *by, "source").within(by).n_cells > 1
            found += [folds.sum(several) > 0, find_whole_sources(design)]
        table = [np.broadcast_to(part.reshape(-1), len(self.codes)) for part in found]
        return np.stack(table, axis=1).astype(np.int64)

    def answers(self, run: Run) -> Result:
        """Run a method on one group after the other, and concatenate the results.

        Raises
        ------
        LogError
            If some group cannot be computed; the first of them are named.
        """
        results: list[Result] = []
        failed: dict[Hashable, LogError] = {}
        for label, part in zip(self.labels, self.parts(), strict=True):
            try:
                own = cautions_of_metric(part.metadata) if self.name == "metric" else Caution(0)
                found = add_cautions(run(part), own) if own else run(part)
                used = (result.attrs.get("interval_method") for result in (found, *results[:1]))
                if len(methods := [*dict.fromkeys(used)]) > 1 and self.name != "metric":
                    raise LogError(
                        f"compare would use {methods[0]} here but {methods[1]} for the first "
                        "group. Pass method= to use one method for all groups."
                    )
                results.append(found)
            except LogError as error:
                failed[label] = error
        if failed:
            raise failed_groups(self.name, failed, len(self.codes))
        # Of some groups, sources are the sampling units of refit_corrected, which then has a df.
        parts = sorted((result.columns for result in results), key=len, reverse=True)
        columns = {
            name: np.concatenate([
                result.columns.get(name, np.full(len(result.caution), np.nan)) for result in results
            ])
            for name in dict.fromkeys(chain(*parts))
        }  # fmt: skip
        caution = np.concatenate([result.caution for result in results])
        return join_results(results, columns, caution)


def failed_groups(name: str, failed: Mapping[Hashable, LogError], number: int) -> LogError:
    """Return the error for groups, of a number of them, for which a method failed."""
    if len(failed) == number and len(set(map(str, failed.values()))) == 1:
        return next(iter(failed.values()))  # the error is not about the groups
    label = next(iter(failed))
    first = f"{name}={spelled(label)}: {failed[label]}"
    if len(failed) == number:
        return LogError(
            f"no result could be computed for any of the {number:,} groups by "
            f"{name!r}. The first error is for {first}"
        )
    names = listed([spelled(name) for name in failed])
    return LogError(
        f"{len(failed):,} of the {number:,} groups by {name!r} could not be "
        f"computed ({names}). The first error is for {first} To omit such groups, "
        f"type log.drop([{spelled(label)}, …], level={name!r}) in pandas."
    )


METRIC = "metric"
"""The level or dimension of several metrics."""


def carry_metrics(log: Log) -> Log:
    """Make columns of the metrics of a frame, which an array has as a dimension.

    Raises
    ------
    LogError
        If an evaluation has no metric, or the metrics have different evaluations.
    """
    design, groups = log.design, Groups(log, METRIC)
    design.check_labels((METRIC,))
    metrics, rows = groups.labels, groups.find_rows(range(len(groups.codes)))
    if len(metrics) == 1:
        return log
    levels = {name: level for name, level in design.levels.items() if name != METRIC}
    codes = [np.asarray(level.codes) for level in levels.values()]
    if not are_alike(codes, rows) and codes:
        rows = [own[np.lexsort([part[own] for part in codes])] for own in rows]
    if not are_alike(codes, rows):
        names = list(map(spelled, metrics))
        raise LogError(
            f"the log contains several metrics, {listed(names)}, with different evaluations. "
            f"Expected the same for each metric. Select one: log.xs({names[0]}, level='metric', "
            "drop_level=False); or pass by='metric' to a function that has by=."
        )
    levels = {name: level.take(rows[0]) for name, level in levels.items()}
    facts = design.facts.setdefault("of each metric", {})
    parts = [slice(own[0], own[-1] + 1) if (np.diff(own) == 1).all() else own for own in rows]
    losses = [
        table[part, j : j + 1]
        for table in log.losses.tables
        for j in range(table.shape[1])
        for part in parts
    ]
    return replace(
        log, design=replace(design, levels=levels, size=len(rows[0]), facts=facts),
        labels=MetricLabels.of_metrics(log.labels, metrics), losses=LossColumns(tuple(losses)),
    )  # fmt: skip


def are_alike(codes: Sequence[IntArray], rows: Sequence[IntArray]) -> bool:
    """Whether several sets of rows have the same labels, row by row."""
    return all(
        len(own) == len(rows[0]) and all(np.array_equal(part[own], part[rows[0]]) for part in codes)
        for own in rows[1:]
    )


def list_kinds(log: Log) -> list[Design]:
    """Return the design of a log, or of its representative groups: see `Groups.kinds`."""
    if log.design.by is None:
        return [log.design]
    groups = Groups(log, log.design.by)
    return list(map(groups.kind, groups.kinds()))


def ask_groups(log: Log, question: Callable[[Design], Any]) -> Any:
    """Evaluate a function of the design of a log, or of its groups if they all agree.

    Raises
    ------
    DifferentGroups
        If they do not; each of them can still be computed alone.
    """
    design = log.design
    if design.by is None:
        return question(design)
    key = ("asked", question, design.by, tuple(log.used))
    if key not in design.facts:
        first, *others = map(question, list_kinds(log))
        if any(other != first for other in others):
            raise DifferentGroups("the groups are logs of different kinds.")
        design.facts[key] = first
    return design.facts[key]


class DifferentGroups(LogError):
    """The groups of a log can only be computed one after the other."""


def answer_groups(by: str, labels: Sequence[Hashable], run: Run, log: Log) -> Result:
    """Run a method on the group of each label of a level; each must have evaluations.

    All groups are computed at once, or one after the other if the method requires it. If that
    fails, each is computed alone too, so that the error names the group.
    """
    groups = Groups(log, by)
    there = groups.labels
    if there != labels and (gone := [label for label in labels if label not in set(there)]):
        raise LogError(f"no evaluation of {by}={spelled(gone[0])} is left.")
    try:
        if by == "metric" and has_several(log.metadata):
            raise DifferentGroups("each metric has facts of its own.")
        return run(groups.together())
    except DifferentGroups:
        return groups.answers(run)
    except LogError:
        groups.answers(run)
        raise
