"""Differences between the groups of one log, as a log whose mean is the difference."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, singledispatch
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.cautions import ENOUGH_POINTS
from cvstats.core.design import Design
from cvstats.core.folds import count_folds, fold_level, repetition_level, tested_level
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError, checked_level, listed, looked_up, nearest, place, spelled
from cvstats.log.align import facts_of_differences
from cvstats.log.groups import METRIC
from cvstats.log.log import CONTRASTS, TYPE, Log, Losses
from cvstats.log.metadata import (
    MADE_OF,
    ONE_PREDICTION,
    cell_key,
    has_own_scale,
    has_several,
    names_of_metrics,
    put_attrs,
    select_metric,
)
from cvstats.log.read import read
from cvstats.log.tables import as_container
from cvstats.log.xarray import level_dims
from cvstats.loss_functions.losses import join_metrics
from cvstats.loss_functions.metric_logs import write_reaches
from cvstats.metrics import METRICS

REST = "rest"
"""The value of ``reference=`` for all other groups together."""

GROUP = "group"
"""The name of the level ``source`` if the sources themselves are the groups."""


def contrast(
    losses: Losses,
    *,
    by: str,
    between: tuple[Hashable, Hashable] | None = None,
    reference: Hashable = None,
) -> Any:
    r"""Create a log of the difference between groups, such as sexes, sites or segments.

    The target is the mean loss of one group minus the mean loss of another, or the difference
    between their metrics. If two models are compared on this log, it is the difference of the
    differences. The groups contain different points, so the comparison is unpaired.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        Losses of points, or a log of a metric created with the same ``by=``.
    by : str
        The level (or coordinate) whose labels are the groups. Each point belongs to one of them.
    between : (hashable, hashable), optional
        Two labels: the first group minus the second. If neither this nor ``reference`` is given,
        all pairs of groups.
    reference : hashable, optional
        A label, to which each other group is compared; or ``"rest"``: each group against all
        others together.

    Returns
    -------
    Series, DataFrame, DataArray or Dataset
        A loss log with the evaluations of ``losses``, whose mean is the difference: negative if
        the first group has the smaller loss. Several pairs are columns (for an array, a dimension
        ``contrast``) with names such as ``"f - m"``.

    Raises
    ------
    LogError
        If points occur in several groups, a group has one point, or lies in one source if sources
        are the sampling unit; if the metric was computed over several groups together; if a group
        is missing in a fold of a metric averaged over folds.

    See Also
    --------
    cvstats.heterogeneity : Whether several groups differ at all.
    cvstats.equivalence : Whether the difference is too small to matter.
    cvstats.compare : Tests of several differences, with their adjustment.

    Notes
    -----
    With T_a and T_b the means (or metrics) of groups of n_a and n_b of the n points, the losses of
    the log are

    .. math::

        T_a - T_b + \frac{n}{n_a} (\ell_i - T_a) c_a \text{ in } a, \qquad
        T_a - T_b - \frac{n}{n_b} (\ell_i - T_b) c_b \text{ in } b, \qquad
        T_a - T_b \text{ elsewhere,}

    with ``c^2 = n_a / (n_a - 1)``, so that the variance is that of Welch, whose degrees of
    freedom `holdout` and `wald` use. Each label of the rest counts as a group of its own, which
    makes them slightly smaller. If the log has sources, `interval` uses `clustered`, with sources
    as the sampling unit. Sources without points of the two groups are not counted: if G of H
    sources have some, c^2 is G / (G - 1) divided by H / (H - 1). If the groups have no source in
    common, G are the sources of one of them. In simulations of 12 sites of 20 points, with effects
    that differ by group, coverage was 75% for Welch's interval and 96% for the clustered one.

    For a metric that is averaged over folds, the difference is the mean of those in the folds,
    weighted by their numbers of points. The losses of the two groups in a fold also contain how
    much its difference deviates from this mean.

    If points are the sampling unit, `interval` and comparisons of 0/1 losses and bounded metrics
    add to the variance how much one prediction of each group can change the difference, squared:
    ``1 / n_a^2 + 1 / n_b^2`` for error rates. By enumeration, limits for differences of error rates
    of .005 to .5 in groups of 20 to 1,000 points cover .91 to 1.00, and Welch's .18 to .99.

    If there are several pairs of groups, ``contrast(...).cvci.compare(0)`` tests each difference
    against 0 and adjusts for their number (by Holm's method by default). To show that a difference
    is smaller than a margin, use ``equivalence(margin=)``; a difference that is not significant
    does not show this. There is no interval for the largest difference between many groups, because
    it is biased away from 0. Report the pair with the largest difference and its adjusted p-value.

    References
    ----------
    Welch (1947), Biometrika 34(1/2), 28-35, doi:10.1093/biomet/34.1-2.28.
    Bell and McCaffrey (2002), Survey Methodology 28(2), 169-181.

    Examples
    --------
    Are delays harder to predict from May to August than in the other months?

    >>> import cvstats, numpy as np
    >>> log = cvstats.datasets.load("flights")
    >>> month = log.index.get_level_values("source").str[-2:].astype(int)
    >>> log["season"] = np.where(month.isin([5, 6, 7, 8]), "summer", "other")
    >>> losses = cvstats.losses(log.set_index("season", append=True),
    ...                         prediction=["naive_bayes", "gradient_boosting"], loss="brier")
    >>> gap = losses.cvci.contrast(by="season", between=("summer", "other"))
    >>> gap.cvci.interval()[["estimate", "lower", "upper", "df"]].round(3)
                       estimate  lower  upper     df
    model
    naive_bayes           0.018 -0.017  0.053  8.037
    gradient_boosting     0.017 -0.019  0.053  8.614
    <BLANKLINE>
    contrast: summer - other
    """
    checked_level("by", by)
    losses = as_container(losses, [by])
    dims = getattr(losses, "dims", ())
    if by in dims:
        one = f"log[{next(iter(losses))!r}]" if isinstance(losses, xr.Dataset) else "log"
        one += ".isel(model=0, drop=True)" if "model" in dims else ""
        raise LogError(
            f"{by!r} is a dimension of this array. Expected a coordinate along the points. If each "
            f"label has the same points, compare the labels like models: "
            f"{one}.rename({{{by!r}: 'model'}}).cvci.compare(). Otherwise type "
            f"log.stack(evaluation=({by!r}, 'point')).dropna('evaluation')."
        )
    metrics = names_of_metrics(losses) or []
    rows = by != METRIC and isinstance(losses, (pd.Series, pd.DataFrame))
    if len(metrics) > 1 and (rows or has_several(losses.attrs)):
        ask = partial(contrast, by=by, between=between, reference=reference)
        parts = {str(name): ask(take_metric(losses, name)) for name in metrics}
        whole, (part, *_) = join_metrics(parts), parts.values()
        shared = {name: part.attrs[name] for name in ("kind", "by", "contrast")}
        put_attrs(whole, whole.attrs | shared)
        return whole
    log = read(losses, by=by)
    refuse_other_logs(log)
    groups = Groups.of(log, by)
    pairs = groups.choose(between, reference)
    work = Contrasts(log, by, groups, pairs)
    work.check_sources()
    names = [f"{groups.name(a)} - {groups.name(b)}" for a, b in pairs]
    several = names if between is None and len(pairs) > 1 else []
    made = fill(losses, work, several)
    facts = describe(work, several or names[0])
    columns = list(map(str, made.columns)) if isinstance(made, pd.DataFrame) else []
    if (reaches := note_reaches(work, several, columns)) is not None:
        facts[ONE_PREDICTION] = reaches
    put_attrs(made, facts)
    return made


def refuse_other_logs(log: Log) -> None:
    """Reject logs whose groups cannot be contrasted: lazy logs, scores, bootstrap samples."""
    if log.lazy is not None or log.cells is not None:
        raise LogError("contrast needs a log in memory. Load it first: log.compute().")
    if log.design.scores:
        raise LogError(
            "contrast needs losses of individual points, but this log has one score per split. "
            "Save the predictions, as cvstats.evaluate does."
        )
    resampled = {"sample", "count", "outer"} & set(log.design.levels)
    if resampled:
        raise LogError(
            "contrast supports one test set, cross-validation or random splits, but this log "
            f"has the level {min(resampled)!r}. Select one sample, or use cross-validation."
        )


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a log: their labels, and the group of each evaluation (-1 for none)."""

    labels: list[Hashable]
    codes: IntArray

    @classmethod
    def of(cls, log: Log, by: str) -> Groups:
        """Read the groups, and reject points that occur in several of them."""
        design = log.design
        codes = design.levels[by].block(0, design.size).astype(np.int64)
        codes[~design.marks] = -1
        used, numbers = np.unique(codes[codes >= 0], return_inverse=True)
        at = np.full(design.size, -1)
        at[codes >= 0] = numbers
        known = design.levels[by].labels
        groups = cls([known[int(code)] for code in used], at)
        if len(groups.labels) < 2:
            raise LogError(
                f"the log has only one label of {by!r}, {spelled(groups.labels[0])}. Expected at "
                "least two groups."
            )
        groups.refuse_pairs(log, by)
        return groups

    def refuse_pairs(self, log: Log, by: str) -> None:
        """Reject points that occur in several groups, because they are paired."""
        design = log.design
        if "point" not in design.levels or (by == "source" and not log.crossed):
            return
        identity = [name for name in ("source", "point") if name in design.levels and name != by]
        key = number_rows(design, identity)
        here = self.codes >= 0
        both = np.unique(np.stack([key[here], self.codes[here]]), axis=1)
        _, first, times = np.unique(both[0], return_index=True, return_counts=True)
        if (times > 1).any():
            point = int(both[0][first[times.argmax()]])
            row = int(np.flatnonzero(here & (key == point))[0])
            raise LogError(
                f"the same points occur under several labels of {by!r}, such as "
                f"{design.format_labels(row, by)}. Expected each point in one group. For a "
                "paired comparison of the labels, treat them as models: "
                f"log.unstack({by!r}).cvci.compare()."
            )

    def find(self, label: Hashable) -> int:
        """Find the number of a group."""
        at = looked_up(label, {known: i for i, known in enumerate(self.labels)})
        if at is None:
            raise LogError(
                f"Unknown group {label!r}. Expected one of "
                f"{listed(map(spelled, self.labels))}.{nearest(label, self.labels)}"
            )
        return at

    def name(self, number: int) -> str:
        """Name a group, or all others."""
        return REST if number < 0 else str(self.labels[number])

    def choose(self, between: Any, reference: Hashable) -> list[tuple[int, int]]:
        """Choose the pairs of groups; -1 stands for all others together."""
        number = len(self.labels)
        if between is not None:
            if reference is not None:
                raise LogError(
                    "between= and reference= were both given. Expected only one of them."
                )
            if not isinstance(between, tuple | list) or len(between) != 2:
                raise LogError(
                    f"Invalid between={between!r}. Expected two labels, as in "
                    f"between=({', '.join(map(spelled, self.labels[:2]))})."
                )
            a, b = map(self.find, between)
            if a == b:
                raise LogError(
                    f"between=({spelled(between[0])}, {spelled(between[1])}) names the same group "
                    "twice. Expected two different groups."
                )
            return [(a, b)]
        if reference is None:
            return list(combinations(range(number), 2))
        if isinstance(reference, str) and reference == REST and REST not in self.labels:
            return [(a, -1) for a in range(number)]
        at = self.find(reference)
        return [(a, at) for a in range(number) if a != at]

    def rows(self, number: int, other: int) -> MaskArray:
        """Mark the evaluations of a group; of all others than ``other`` where it is -1."""
        if number < 0:
            rest: MaskArray = (self.codes >= 0) & (self.codes != other)
            return rest
        return np.asarray(self.codes == number)


def number_rows(design: Design, names: Sequence[str]) -> IntArray:
    """Give each evaluation the number of its labels of some levels; zeros without any."""
    if not names:
        return np.zeros(design.size, dtype=np.int64)
    blocks = [design.levels[name].block(0, design.size) for name in names]
    return np.unique(np.stack(blocks), axis=1, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The computation of the losses of contrasts, one column of a log at a time."""

    log: Log
    by: str
    groups: Groups
    pairs: Sequence[tuple[int, int]]

    @property
    def by_points(self) -> bool:
        """Whether points are the sampling unit: no sources, or sources that are the groups."""
        return self.by == "source" or not self.log.design.has("source")

    def check_sources(self) -> None:
        """Reject a group within one source if sources are the sampling unit."""
        if self.by_points:
            return
        source = self.log.design.levels["source"].block(0, self.log.design.size)
        for pair in self.pairs:
            for one, other in (pair, pair[::-1]):
                if len(np.unique(source[self.groups.rows(one, other)])) < 2:
                    raise LogError(
                        f"all points of the group {self.groups.name(one)!r} come from one source, "
                        "so the variance between sources cannot be estimated. Expected at least "
                        "two sources in each group. To use points as the sampling unit, drop the "
                        "level: log.droplevel('source')."
                    )

    @property
    def levels(self) -> list[str]:
        """List the levels within which groups are compared."""
        design = self.log.design
        fold = tested_level(design) if design.metric == "average" else None
        names = dict.fromkeys((*repetition_level(design), *([fold] if fold else [])))
        return [name for name in names if name != self.by]

    @cached_property
    def cells(self) -> IntArray:
        """The number of the cell of each evaluation: its labels of these levels."""
        return number_rows(self.log.design, self.levels)

    def count_cells(self) -> tuple[list[str], list[int]]:
        """Name each cell that has groups, and count its evaluations."""
        here = np.flatnonzero(self.groups.codes >= 0)
        _, first, count = np.unique(self.cells[here], return_index=True, return_counts=True)
        keys = [cell_key(self.log.design, self.levels, row) for row in here[first].tolist()]
        return keys, count.tolist()

    def compute(self, column: FloatArray) -> FloatArray:
        """Compute the losses of all pairs from those of one model; one row per pair."""
        design, codes = self.log.design, self.groups.codes
        known = (codes >= 0) & ~np.isnan(column)
        out = np.full((len(self.pairs), design.size), np.nan)
        if not known.any():
            return out
        cells = self.cells
        number = int(cells.max()) + 1
        n = np.bincount(cells[known], minlength=number).astype(np.float64)
        scaled = scales_classes(self.log.metadata)
        folded = design.has("fold") if self.by == "source" else count_folds(design) > 1
        for line, (a, b) in zip(out, self.pairs, strict=True):
            gap, deviations = np.zeros(number), np.zeros(design.size)
            sides = ((a, b), (b, a))
            shared = not self.by_points and self.share_sources(a, b)
            for sign, one, other in ((1, a, b), (-1, b, a)):
                rows = np.flatnonzero(self.groups.rows(one, other) & known)
                at = cells[rows]
                size = np.bincount(at, minlength=number).astype(np.float64)
                self.check_sizes(one, n, size)
                with np.errstate(divide="ignore", invalid="ignore"):
                    first = np.zeros(number)
                    first[at[::-1]] = column[rows[::-1]]
                    mean = np.bincount(at, column[rows] - first[at], number) / size
                    factor = n / size
                    if self.by_points and not scaled:
                        factor = factor * np.sqrt(size / (size - 1))
                    if not self.by_points:
                        factor = factor * self.scale_sources(*(sides if shared else [(one, other)]))
                    if self.by_points and not folded:  # holdout divides by n - 1, and wald by n
                        factor = factor * np.sqrt((n - 1) / n)
                deviations[rows] = sign * factor[at] * (column[rows] - first[at] - mean[at])
                gap += sign * (first + mean)
            line[known] = (gap[cells] + deviations)[known]
            if len(self.levels) > len(repetition_level(design)):
                # Differences of folds are due to the points of the two groups.
                both = (self.groups.rows(a, b) | self.groups.rows(b, a)) & known
                number_of_both = np.bincount(cells[both], minlength=number)
                times = (n / np.maximum(number_of_both, 1))[cells]
                times *= 1 if self.by_points else self.scale_sources(*sides)
                more = (gap - self.mean_of_folds(n, gap))[cells]
                line[known] += (np.where(both, times, 0) * more - more)[known]
        return out

    def mean_of_folds(self, n: FloatArray, gap: FloatArray) -> FloatArray:
        """Return the mean difference of the folds of each cell's repetition, weighted by size."""
        of_cell = np.zeros(len(n), dtype=np.int64)
        of_cell[self.cells] = number_rows(self.log.design, repetition_level(self.log.design))
        total = np.bincount(of_cell, np.where(n > 0, n * gap, 0))
        with np.errstate(invalid="ignore"):
            return (total / np.bincount(of_cell, n))[of_cell]

    def scale_sources(self, *pairs: tuple[int, int]) -> float:
        """Account for estimating a mean from the G sources of some groups.

        They vary about their own mean, with G - 1 degrees of freedom; the log may have others.
        """
        rows = np.any([self.groups.rows(*pair) for pair in pairs], axis=0)
        design = self.log.design
        own = len(np.unique(design.levels["source"].block(0, design.size)[rows]))
        every = design.number("source")
        return float(np.sqrt(own / (own - 1) * (every - 1) / every))

    def share_sources(self, a: int, b: int) -> bool:
        """Whether a source contains points of both groups."""
        source = self.log.design.levels["source"].block(0, self.log.design.size)
        mine, yours = (source[self.groups.rows(*pair)] for pair in ((a, b), (b, a)))
        return bool(np.isin(mine, yours).any())

    def check_sizes(self, group: int, n: FloatArray, size: FloatArray) -> None:
        """Reject a group that has fewer than two points where another group has some."""
        few = np.flatnonzero((n > 0) & (size < 2))
        if not len(few):
            return
        design, row = self.log.design, int(np.flatnonzero(self.cells == few[0])[0])
        labels = {
            name: design.levels[name].labels[int(design.levels[name].block(row, row + 1)[0])]
            for name in self.levels
        }
        where = f" at {place(labels)}" if labels else ""
        have = "no point" if size[few[0]] == 0 else "one point"
        way = "Drop this group, or merge groups."
        if fold_level(design) in self.levels:
            way = "Create the log with cvstats.losses(…, folds='pool')."
        raise LogError(
            f"the group {self.groups.name(group)!r} of {self.by!r} has {have}{where}. Expected "
            f"at least two points in each group. {way}"
        )


def scales_classes(metadata: Mapping[Any, Any]) -> bool:
    """Whether a metric multiplies the influences of each class by sqrt(n / (n - 1))."""
    name = str(metadata.get("metric"))
    return bool(metadata.get("pseudo")) and name in METRICS and METRICS[name].scales_classes


def describe(work: Contrasts, names: Any) -> dict[Hashable, Any]:
    """Describe a log of contrasts: quantity, groups, and number of points."""
    metadata = {name: fact for name, fact in work.log.metadata.items() if name != TYPE}
    facts = facts_of_differences(metadata)
    for gone in ("kind", ONE_PREDICTION):
        facts.pop(gone, None)
    made_of = {"rows": dict(zip(*work.count_cells(), strict=True))}
    if (rarest := count_rarest_outcome(work)) is not None:
        facts["rarest_class"] = rarest
    elif work.by_points and count_fewest_points(work) < ENOUGH_POINTS:
        facts["few_points"] = True
    if isinstance(names, str) and (number := count_compared(work)) is not None:
        facts["points_compared"] = number
    return {
        "metric": facts.get("loss", "loss"), "orientation": "error", "folds": "pool", **facts,
        "pseudo": True, "cells": work.levels, MADE_OF: json.dumps(made_of, sort_keys=True),
        **CONTRASTS, "by": GROUP if work.by == "source" else work.by, "contrast": names,
    }  # fmt: skip


def count_fewest_points(work: Contrasts) -> float:
    """Count the points of the smallest group."""
    sides = [side for pair in work.pairs for side in (pair, pair[::-1])]
    rows = min(int(work.groups.rows(*side).sum()) for side in sides)
    return rows / work.log.design.number("repetition")


def count_compared(work: Contrasts) -> int | None:
    """Count the points of the two groups of the only pair; None if there are no others."""
    (pair,) = work.pairs
    both = work.groups.rows(*pair) | work.groups.rows(*pair[::-1])
    if both.sum() == (work.groups.codes >= 0).sum():
        return None
    return round(int(both.sum()) / work.log.design.number("repetition"))


def count_rarest_outcome(work: Contrasts) -> int | None:
    """Count the errors, or the correct points, of the group with the fewest; None without 0/1."""
    log = work.log
    if log.design.metric or not log.zero_one().all():
        return None
    fewest = [np.inf]
    sides = [side for pair in work.pairs for side in (pair, pair[::-1])]
    for column in filter(lambda column: column is not None, log.columns()):
        for side in sides:
            own = np.asarray(column)[work.groups.rows(*side)]
            own = own[~np.isnan(own)]
            fewest += [own.sum(), len(own) - own.sum()]
    rarest = min(fewest) / log.design.number("repetition")
    return int(rarest) if np.isfinite(rarest) else None


def note_reaches(work: Contrasts, names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Store how much one prediction of each group can change each difference; None if unknown.

    The change is 1 / n for the error rate of n points, and is noted in the log of a metric; the
    squares of both groups are added. ``names`` are those of several pairs, which are in ``columns``
    of a frame and along a dimension of an array.
    """
    measure: Callable[..., dict[str, FloatArray] | None] = partial(measure_error_rate, work)
    carried: dict[str, Any] = {}
    if not counts_errors(work):
        written = work.log.metadata.get(ONE_PREDICTION)
        if has_own_scale(work.log.metadata) or written is None or min(map(min, work.pairs)) < 0:
            return None
        known = json.loads(str(written))
        if "differences" in known:
            return None
        carried = known["carried"]
        measure = partial(measure_metric, work, *read_reaches(known))
    pairs = []
    for pair in work.pairs:
        one, other = measure(pair), measure(pair[::-1])
        if one is None or other is None:
            return None
        both = {}
        for model, mine in one.items():
            change, rarity = np.moveaxis(np.stack([mine, other[model]]), -1, 0)
            clusters = np.full((*change.shape[1:], 2), np.nan)  # not known for groups
            both[model] = np.dstack([np.hypot(*change), rarity.max(axis=0), clusters])
        pairs.append(both)
    models = {}
    if columns and names:
        for at, column in enumerate(columns):
            both = pairs[at % len(names)]
            models[column] = list(both.values())[at // len(names) if len(both) > 1 else 0]
    elif names:
        size = math.prod(map(len, carried.values()))
        carried = {"contrast": names, **carried}
        for model in pairs[0]:
            every = [np.broadcast_to(both[model], (size, *both[model].shape[1:])) for both in pairs]
            models[model] = np.concatenate(every)
    else:
        models = pairs[0]
    keys = work.count_cells()[0]
    return write_reaches(keys, carried, {model: each.tolist() for model, each in models.items()})


def measure_error_rate(work: Contrasts, side: tuple[int, int]) -> dict[str, FloatArray]:
    """Return the change of the error rate of a group by one prediction, and 0, in each cell."""
    size = np.unique(work.cells[work.groups.rows(*side)], return_counts=True)[1]
    return {"": np.stack([1 / size, np.zeros(len(size))], axis=-1)[None]}


def read_reaches(known: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, FloatArray]]:
    """Find the place of each cell of a metric, and a table of the changes for each model.

    A table has the change by one prediction and the rarity of a class: carried cells by cells by 2.
    """
    place = {key: at for at, key in enumerate(known["cells"])}
    masked = [[np.nan] * 2] * len(place)  # of carried cells without losses
    tables = {
        model: np.array([[cell[:2] for cell in cells or masked] for cells in each])
        for model, each in known["models"].items()
    }
    return place, tables


def measure_metric(
    work: Contrasts, place: Mapping[str, int], tables: Mapping[str, FloatArray],
    side: tuple[int, int],
) -> dict[str, FloatArray] | None:  # fmt: skip
    """Select the cells of a group in each table; None if they are not cells of the metric."""
    rows = np.flatnonzero(work.groups.rows(*side))
    first = rows[np.unique(work.cells[rows], return_index=True)[1]]
    names = work.log.metadata["cells"]
    keys = [cell_key(work.log.design, names, row) for row in first.tolist()]
    if not place.keys() >= set(keys):
        return None
    at = [place[key] for key in keys]
    return {model: table[:, at] for model, table in tables.items()}


def counts_errors(work: Contrasts) -> bool:
    """Whether all losses are 0/1 errors of points that are the sampling unit."""
    known = work.log.known_proportions
    if known is False or not work.by_points or not work.log.zero_one().all():
        return False
    if known:
        return True
    means = work.log.moments(()).location  # a model without errors in a log of others with errors
    return bool(((means > 0) & (means < 1)).any())


# --- containers -----------------------------------------------------------------------------------


@singledispatch
def fill(losses: Any, work: Contrasts, names: list[str]) -> Any:
    """Return the losses of contrasts in the container of their log: pandas, or as below.

    ``names`` are those of several pairs of groups.
    """
    log = work.log
    table = np.concatenate([work.compute(column) for column in log.columns() if column is not None])
    models = pd.Index([losses.name]) if isinstance(losses, pd.Series) else losses.columns
    index = losses.index
    if work.by == "source":  # as groups, they are not a sampling unit
        levels = index.to_frame()
        if "point" in levels:
            levels["point"] = number_rows(log.design, ["source", "point"])
        levels = levels.rename(columns={"source": GROUP})
        index = levels.set_index(list(levels.columns)).index
    if not names and isinstance(losses, pd.Series):
        return pd.Series(table[0], index=index, name=losses.name)
    columns = models
    if names:
        columns = pd.Index(names, name="contrast")
        if len(models) > 1:
            columns = pd.MultiIndex.from_product([models, names], names=["model", "contrast"])
    return pd.DataFrame(table.T, index=index, columns=columns)


@fill.register
def _(losses: xr.DataArray, work: Contrasts, names: list[str]) -> xr.DataArray:
    return fill_array(losses, work, 0, names)


@fill.register
def _(losses: xr.Dataset, work: Contrasts, names: list[str]) -> xr.Dataset:
    first, *_ = losses.data_vars.values()
    width = work.log.losses.width // len(losses.data_vars)
    return xr.Dataset({
        name: fill_array(losses[name].transpose(*first.dims), work, at * width, names)
        for at, name in enumerate(losses.data_vars)
    })  # fmt: skip


def fill_array(losses: xr.DataArray, work: Contrasts, first: int, names: list[str]) -> xr.DataArray:
    """Replace the losses of an array by columns, starting from a given one."""
    log, dims = work.log, level_dims(losses, (work.by,))
    carried = [dim for dim in losses.dims if dim not in dims]
    order = ["contrast", *dims, *carried]
    width = int(np.prod([losses.sizes[dim] for dim in carried]))
    columns = (log.losses.column(first + j, 0, log.design.size) for j in range(width))
    lines = [work.compute(column) for column in columns]
    shape = [len(work.pairs), *(losses.sizes[dim] for dim in order[1:])]
    made = xr.DataArray(
        np.stack(lines, axis=-1).reshape(shape), dims=order, coords=losses.coords, name=losses.name
    ).transpose("contrast", *losses.dims)
    made = made.assign_coords(contrast=names) if names else made.isel(contrast=0)
    return made.rename({work.by: GROUP}) if work.by == "source" else made


def take_metric(losses: Any, name: Hashable) -> Any:
    """Select the log of one of several metrics, with its own facts."""
    if isinstance(losses, (xr.DataArray, xr.Dataset)):
        part = losses.sel(metric=name, drop=True)
    else:
        part = losses.xs(name, level="metric")
    part.attrs = select_metric(dict(losses.attrs), name)
    return part
