"""Moments of a log that is read in batches: computed for each batch, and added.

Hashes of the labels of evaluations show whether batches repeat an evaluation, and whether all
repetitions test the same points. The losses of some evaluations are kept, to be examined one by
one.
"""

from __future__ import annotations

import datetime
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial, reduce
from operator import add, and_
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core import kernels
from cvstats.core.cautions import Caution
from cvstats.core.cells import Cells, join_columns, sort_labels
from cvstats.core.design import LEVELS, SPLIT, Codes, Design, GridCodes, Level, SplitSizes
from cvstats.core.folds import RESAMPLED, covers_all_points, is_resampled, tally
from cvstats.core.loss_columns import LossColumns
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import FloatArray, IntArray, Labels, MaskArray
from cvstats.errors import LogError, NoSuchFile, describe_type, listed, place, spelled, unpaired
from cvstats.large.lazy import compute_cells, levels_needed
from cvstats.log.align import align_logs, check_same_grid
from cvstats.log.groups import METRIC
from cvstats.log.log import (
    ONLY_MOMENTS,
    TYPE,
    CellSource,
    Log,
    Losses,
    ResultLabels,
    Sample,
    design_of_cells,
    find_pairs,
    hide_losses,
)
from cvstats.log.loss_checks import FEWEST_ROWS, LIMIT, choose_step, find_dates, read_calendar
from cvstats.log.metadata import has_several, levels_of_cells, select_metric
from cvstats.log.pandas import FrameLabels, MetricLabels, as_index
from cvstats.log.plain import from_plain, pack_labels, replacing, to_plain, unpack_labels
from cvstats.log.read import is_dask_frame, read, read_container
from cvstats.log.tables import as_container
from cvstats.log.xarray import ArrayLabels, units_of
from cvstats.options import Missing
from cvstats.registry import LOGS, add_methods

if TYPE_CHECKING:
    from cvstats.log.methods import MomentsMethods

    Methods = MomentsMethods[pd.DataFrame | Any]  # a Dataset if the batches were arrays
else:
    Methods = object

MOST_GAPS = 1 << 26
"""Maximum number of differences of all pairs."""

WORDS = f"This method needs individual losses, but {ONLY_MOMENTS}"

WITHIN = "within each of {} batches"
ACROSS = f"{WITHIN} and across them: no evaluation appears twice"
UNNAMED = (
    f"{WITHIN}, not across them: an evaluation in more than one batch is counted more than once"
)
SAMPLED = (
    f"{WITHIN}, and across them a sample of {{:,}} evaluations: a batch that was added twice is "
    "detected, but a few evaluations that appear in two batches may not be"
)

FORMAT = "cvstats moments 1"

FACTS = ("pairs", "pointed", "batches", "dropped", "within", "cautions")
"""Fields with plain values."""

NUMBERS = ("codes", "count", "mean", "m2", "origin")


# --- attrs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedAttrs:
    """The attrs that are equal in all batches, as JSON, and the names of the others.

    ``n_train`` is one of them: `cvstats.corrected_t` reads the training sizes there.
    """

    shared: Mapping[str, Any] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()

    @classmethod
    def of(cls, attrs: Mapping[Any, Any]) -> SharedAttrs:
        """Keep what can be written: text, numbers, dates, and lists or mappings of these."""
        plain = {}
        for name, value in attrs.items():
            with suppress(LogError):
                plain[str(name)] = to_plain(
                    value.to_dict() if isinstance(value, pd.Series) else value
                )
        return cls(plain)

    def __and__(self, other: SharedAttrs) -> SharedAttrs:
        """Keep attrs that are equal in both, and the names of the others."""
        equal = {
            name: value
            for name, value in self.shared.items()
            if name in other.shared and repr(value) == repr(other.shared[name])
        }
        rest = (name for name in (*self.shared, *other.shared) if name not in equal)
        return SharedAttrs(equal, tuple(dict.fromkeys((*self.mixed, *other.mixed, *rest))))


# --- cells by label -------------------------------------------------------------------------------


def model_columns(labels: ResultLabels) -> IntArray:
    """List the columns of the models, models by carried cells."""
    return np.stack([labels.columns(model) for model in range(len(labels.models))])


Parts = tuple[Cells, ...]
Part = TypeVar("Part", Cells, "KeptLosses")


def append_parts(parts: tuple[Part, ...], more: tuple[Part, ...]) -> tuple[Part, ...]:
    """Append parts of a sum, and add up those of similar size.

    Therefore n batches with new cells take O(n log n) time, not O(n^2).
    """
    kept = list(parts)
    for part in more:
        kept.append(part)
        while len(kept) > 1 and len(kept[-2].count) < 2 * len(kept[-1].count):
            kept[-2:] = [kept[-2] + kept[-1]]
    return tuple(kept)


def add_parts(parts: tuple[Part, ...]) -> Part:
    """Add up parts, the smallest first."""
    return reduce(add, reversed(parts))


# --- moments of batches ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Moments(Methods):
    """Counts, means and squared deviations of the cells of a log, instead of the log itself.

    Create moments from a batch with `of_log`, add batches with ``+``, save them to a file, and use
    them like a log. They are useful for monitoring, for logs on several machines, and for logs that
    do not fit into memory. All functions of `cvstats` that need only cells accept moments, as in
    ``cvstats.wald(moments)``; functions that need individual losses raise an error.

    Notes
    -----
    You do not have to know the labels in advance. The order of the batches affects only rounding:
    standard errors agree to about 14 digits, no matter how far from zero the losses are. Models are
    matched by name.

    Each batch is checked like any log. In addition, two checks use hashes of labels across batches:
    whether all repetitions test the same points, and whether an evaluation occurs in two batches.
    The second check compares all evaluations of a log of up to 65,536, and a sample of that size of
    longer logs. This detects a batch that was added twice, but may miss a few evaluations. Points
    without names cannot be checked. ``attrs["checked"]`` of a result describes what was checked.

    Up to 50,000 losses (rows times models and carried cells), or a sample of a longer log, are also
    kept, so that results have the same cautions about tails, order in time, duplicates and selected
    models as in memory. A file of moments contains these losses. Attributes (``attrs``) that are
    equal in all batches are kept, such as ``n_train`` and ``units``; ``attrs["mixed"]`` of a result
    names the others. Batches in different units raise an error.

    References
    ----------
    Chan, Golub and LeVeque (1983), The American Statistician 37(3), 242-247,
    doi:10.1080/00031305.1983.10483115.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
    >>> morning, evening = losses.iloc[:1000], losses.iloc[1000:]
    >>> both = cvstats.Moments.of_log(morning) + cvstats.Moments.of_log(evening)
    >>> both
    <Moments of 4,420 evaluations in 100 cells by 'repetition', 'fold'; 2 models>
    >>> both.wald().round(0)
                  estimate  lower  upper   se caution
    model
    ridge            3,006  2,640  3,372  187
    random_forest    3,188  2,807  3,569  194
    """

    parts: Parts  # of decreasing size
    labels: ResultLabels = FrameLabels((), None)  # for a mistaken call instead of Moments.of_log
    pairs: bool = False  # whether differences of all pairs of models are among the columns
    pointed: bool = False  # whether the log names its points
    batches: int = 1
    dropped: int | None = None  # evaluations dropped because some model lacks them
    notes: SharedAttrs = field(default_factory=SharedAttrs)
    within: str = ""  # a level without which an evaluation would appear several times
    cautions: Caution = Caution(0)  # about levels that are not kept
    sketch: PointSketch | None = None
    planned: Parts = ()  # counts before evaluations were dropped, if any were
    kept: tuple[KeptLosses, ...] = ()  # losses of some evaluations, to be examined one by one

    def __post_init__(self) -> None:
        """Refuse arguments meant for `of_log`."""
        if not isinstance(self.parts, tuple):
            raise LogError(
                f"Moments cannot be created from {describe_type(self.parts)}. For a loss log "
                "use cvstats.Moments.of_log(log), for a file cvstats.Moments.load(path)."
            )

    @classmethod
    def of_log(
        cls,
        losses: Losses,
        *,
        by: str | Sequence[str] | None = None,
        pairs: bool = False,
        missing: Missing = "raise",
    ) -> Moments:
        """Compute the moments of a batch, or of a whole log.

        Parameters
        ----------
        losses : Series, DataFrame, DataArray or Dataset
            A loss log, or some rows of one. A lazy array (dask) is computed chunk by chunk.
        by : str or sequence of str, optional
            The levels whose labels define cells; by default those of ``sample``, ``outer``,
            ``repetition``, ``fold`` and ``source`` that the log has. Other levels of the index are
            allowed; if all of them are others, as in ``by="segment"``, the default levels are
            added. With fewer levels, fewer methods apply, and repetitions or sources that are
            left out are ignored: ``caution`` shows ``dependence ignored`` or ``sources ignored``.
            ``sample``, ``outer``, and ``metric`` of several metrics are always among them.
        pairs : bool, optional
            Whether to keep the moments of the differences of all pairs of models too, which
            `compare` needs. They take models^2 / 2 numbers per cell.
        missing : {"raise", "drop"}, optional
            Whether NaN losses raise an error, or their evaluations are dropped for all models.

        Returns
        -------
        Moments
            The moments, with one cell per combination of labels that occurs.

        Raises
        ------
        LogError
            If the batch is not a loss log, or a bootstrap log.

        Examples
        --------
        >>> import cvstats
        >>> log = cvstats.datasets.load("flights")
        >>> losses = cvstats.losses(log, prediction="naive_bayes", loss="brier")
        >>> cvstats.Moments.of_log(losses, by="fold")
        <Moments of 24,000 evaluations in 12 cells by 'fold'; 1 model>
        """
        if is_dask_frame(losses):
            raise LogError(
                "this is a dask frame. Expected cvstats.scan_dask(frame, loss=…), whose "
                ".compute() gives the moments."
            )
        if isinstance(losses, Moments):
            raise LogError("these are moments already. Expected a loss log.")
        log, within = read_batch(losses, by, missing)
        if log.design.scores:
            raise LogError(
                "this log has one score per split, but moments need losses of individual points. "
                "Use the log itself, which is short."
            )
        levels = levels_of(log, by)
        if pairs:
            models, carried = model_columns(log.labels).shape
            if models < 2:
                raise LogError(
                    "paired differences need several models, but the log has only one. Expected at "
                    "least two: a frame with a column for each model."
                )
            used = len(log.design.cell_table(levels).used)
            number = used * carried * models * (models - 1) // 2
            if number > MOST_GAPS:
                raise LogError(
                    f"pairs=True would keep {number:,} differences. Expected at most "
                    f"{MOST_GAPS:,}. Compare fewer models, or use fewer levels: by='fold'."
                )
        if log.lazy is not None:
            log, cells, gaps, some = compute_cells(log, levels, pairs)
            return assemble(log, cells, gaps, within, some)
        log.design.check_labels(levels)
        gaps = log.with_all_pairs().moments(levels) if pairs else None
        return assemble(log, log.moments(levels), gaps, within)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the moments to one small file.

        The file is a numpy ``.npz`` without pickled objects. `load` returns the same numbers, to
        the last bit. Labels can be text, numbers, dates, or tuples of these.

        Parameters
        ----------
        path : str or path
            Where to write; an existing file is replaced once the new one is complete.

        Raises
        ------
        LogError
            If ``path`` is not a path, labels are of another type, or the file cannot be written.
        """
        head: dict[str, Any] = {
            "format": FORMAT,
            "labels": pack_columns(self.labels),
            "notes": [self.notes.shared, self.notes.mixed],
            "sketch": None if self.sketch is None else self.sketch.limit,
            **{name: getattr(self, name) for name in FACTS},
        }
        arrays: dict[str, Any] = {}
        for name, parts in (("cells", self.parts), ("planned", self.planned)):
            if parts:
                table = add_parts(parts)
                levels = zip(table.levels, table.labels, strict=True)
                head[name] = {level: pack_names(labels, level) for level, labels in levels}
                arrays |= {f"{name}_{number}": getattr(table, number) for number in NUMBERS}
                if table.prints is not None:
                    arrays[f"{name}_prints"] = table.prints
        if self.kept:
            losses = add_parts(self.kept)
            named = zip(losses.cells.levels, losses.cells.labels, strict=True)
            head["kept"] = {level: pack_names(labels, level) for level, labels in named}
            head["examined"] = [losses.whole, losses.dates, losses.pointed]
            arrays["kept_codes"] = losses.cells.codes.astype(np.int32)
            arrays["kept_losses"] = losses.cells.mean
        if self.sketch is not None:
            arrays["hashes"] = self.sketch.hashes
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        target = checked_path(path)
        try:
            with replacing(target) as beside, beside.open("wb") as file:
                np.savez(file, **arrays)
        except OSError as error:
            raise LogError(
                f"{target.name!r} could not be written: {error.strerror or error}. Expected a "
                "writable path."
            ) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read moments from a file written by `save`.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Moments
            The same numbers, to the last bit.

        Raises
        ------
        LogError
            If the file does not exist, is damaged, or is not a file of moments.
        """
        source = checked_path(path)
        if not source.is_file():
            raise NoSuchFile(
                f"No such file: {os.fspath(path)!r}. Expected a file written by Moments.save."
            )
        try:
            with zipfile.ZipFile(source) as archive:
                unpacked = sum(entry.file_size for entry in archive.infolist())
            if unpacked > source.stat().st_size:
                raise ValueError("compressed")
            with np.load(source, allow_pickle=False) as file:
                arrays = dict(file)
            head = json.loads(arrays["head"].tobytes())
            if head["format"] != FORMAT:
                raise ValueError(head["format"])
            tables = [name for name in ("cells", "planned") if name in head]
            cells, *planned = (unpack_cells(arrays, name, head[name]) for name in tables)
            shared, mixed = head["notes"]
            sketch = None
            if head["sketch"] is not None:
                sketch = PointSketch(arrays["hashes"], head["sketch"])
            kept = (unpack_losses(arrays, head),) if "kept" in head else ()
            facts = {name: head[name] for name in FACTS} | {"cautions": Caution(head["cautions"])}
            return cls(
                (cells,), unpack_columns(head["labels"]), planned=tuple(planned), sketch=sketch,
                notes=SharedAttrs(shared, tuple(mixed)), kept=kept, **facts,
            )  # fmt: skip
        except Exception as error:  # other files may fail in any way
            raise LogError(
                f"{os.fspath(path)!r} does not contain moments, or is damaged. Expected a file "
                "written by Moments.save of this version of cvstats."
            ) from error

    @cached_property
    def table(self) -> Cells:
        """The cells of all batches, with columns of models and then of their pairs."""
        return add_parts(self.parts)

    @property
    def cells(self) -> Cells:
        """The cells of all batches, with a column for each model (and carried cell)."""
        return self.table.take_columns(np.arange(model_columns(self.labels).size))

    @property
    def prints(self) -> Prints | None:
        """Sums of the hashes of the points of each cell."""
        return self.table.prints

    @property
    def models(self) -> list[Hashable]:
        """The names of the models."""
        return list(self.labels.models)

    @property
    def name(self) -> Hashable:
        """The name of the only model; None if there are several."""
        return self.models[0] if len(self.models) == 1 else None

    @property
    def metrics(self) -> list[Hashable]:
        """The labels of the level or dimension ``metric``; empty without it."""
        if METRIC in self.levels:
            return list(self.table.labels[self.levels.index(METRIC)])
        labels: Any = self.labels
        return np.asarray(labels.coords[METRIC]).tolist() if METRIC in labels.coords else []

    @property
    def attrs(self) -> Mapping[Hashable, Any]:
        """The attrs that are equal in all batches, such as ``n_train``; they cannot be changed."""
        shared = self.notes.shared.items()
        return MappingProxyType({name: from_plain(value) for name, value in shared})

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels whose labels identify a cell."""
        return self.parts[0].levels

    @property
    def n_losses(self) -> int:
        """Number of evaluations, of each model."""
        return int(sum(part.count.sum() for part in self.parts))

    def __repr__(self) -> str:
        """Describe the moments."""
        pairs = ", with pairs" if self.pairs else ""
        return (
            f"<Moments of {self.n_losses:,} evaluations in {len(self.table.count):,} cells "
            f"by {', '.join(map(repr, self.levels)) or 'nothing'}; "
            f"{len(self.models):,} model{'s' if len(self.models) > 1 else ''}{pairs}>"
        )

    def __add__(self, other: Moments) -> Moments:
        """Add another batch of the same log: models are matched by name, cells by label."""
        if not isinstance(other, Moments):
            return NotImplemented
        check_same_kind(self, other)
        columns, signs = match_columns(self, other)
        theirs = tuple(
            part.reorder_levels(self.levels).take_columns(columns).turn_signs(signs)
            for part in other.parts
        )
        check_same_masks(self.labels, self.parts[-1], theirs[-1])
        planned: Parts = ()
        if self.planned or other.planned:
            more = tuple(part.reorder_levels(self.levels) for part in other.all_cells())
            planned = append_parts(self.all_cells(), more)
        sketch = None
        if self.sketch is not None and other.sketch is not None:
            sketch = self.sketch + other.sketch
        known = [part.dropped for part in (self, other) if part.dropped is not None]
        kept: tuple[KeptLosses, ...] = ()
        if self.kept and other.kept:
            models = match_models(self.labels, other.labels)
            levels = self.kept[0].cells.levels
            others = tuple(part.reorder(levels, models) for part in other.kept)
            kept = append_parts(self.kept, others)
        return replace(
            self, parts=append_parts(self.parts, theirs), batches=self.batches + other.batches,
            dropped=sum(known) if known else None, notes=self.notes & other.notes,
            within=self.within or other.within, cautions=self.cautions | other.cautions,
            sketch=sketch, planned=planned, kept=kept,
        )  # fmt: skip

    def all_cells(self) -> Parts:
        """Count the cells before evaluations were dropped."""
        return self.planned or tuple(part.without_columns() for part in self.parts)

    def keep_repetitions(self, number: int) -> Moments:
        """Keep the cells of the first repetitions, without the kept losses."""
        first = in_order(self.table)
        codes = first.codes[:, self.levels.index("repetition")]
        rows = np.isin(codes, np.unique(codes)[:number])
        return replace(self, parts=(drop_unused_labels(first.take(rows)),), planned=(), kept=())

    def __radd__(self, other: object) -> Moments:
        """Support ``sum``, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def carry_metrics(self) -> Moments:
        """Make columns of the metrics, whose labels are a level of the cells."""
        found = list(in_order(self.table).labels[self.levels.index(METRIC)])
        known = filter(found.__contains__, self.attrs.get("metrics", ()))
        metrics = list(dict.fromkeys((*known, *found)))
        if len(metrics) == 1:
            return replace(self, within="")
        each = {metric: self.take_metric(metric) for metric in metrics}
        whole, labels = concat_models(each), MetricLabels.of_metrics(self.labels, metrics)
        order = list(map(whole.models.index, metrics))
        columns, own = (
            np.arange(width).reshape(len(metrics), -1)[order].T.reshape(-1)
            for width in (whole.table.mean.shape[1], model_columns(labels).size)
        )
        losses = [
            replace(part, cells=part.cells.take_columns(np.append(own, [-2, -1])))
            for part in whole.kept
            if choose_step(len(own)) == 1
        ]
        return replace(
            whole, parts=(whole.table.take_columns(columns),), within="", labels=labels,
            kept=tuple(losses),
            dropped=None if self.dropped is None else self.dropped // len(metrics),
        )  # fmt: skip

    def take_metric(self, metric: Hashable) -> Moments:
        """Select the cells of one label of the level ``metric``."""
        planned = add_parts(self.planned) if self.planned else None
        kept = add_parts(self.kept) if self.kept else None
        return replace(
            self, parts=(cells_of_metric(self.table, metric),), within="",
            planned=() if planned is None else (cells_of_metric(planned, metric),),
            kept=() if kept is None else (kept.take_metric(metric),),
        )  # fmt: skip

    def split_metrics(self) -> dict[Hashable, Moments]:
        """Split the moments of several metrics into those of each, with its attrs."""
        carried, found = METRIC not in self.levels, {}
        for metric in self.metrics:
            part = self.take_columns(metric) if carried else self.take_metric(metric)
            shared = SharedAttrs.of(select_metric(dict(self.attrs), metric)).shared
            found[metric] = replace(part, notes=replace(self.notes, shared=shared))
        return found

    def take_columns(self, metric: Hashable) -> Moments:
        """Select the columns of one of the metrics that are carried."""
        labels: Any = self.labels
        at = labels.dims.index(METRIC)
        own = np.asarray(labels.coords[METRIC]).tolist().index(metric)
        models = model_columns(labels)
        columns = np.take(np.arange(models.size).reshape(labels.sizes), own, axis=at).reshape(-1)
        cells = np.isin(models[0], columns)  # the same for all models and pairs
        pairs = len(models) * (len(models) - 1) // 2 * self.pairs
        numbers = np.arange(pairs * len(cells)).reshape(pairs, len(cells))
        both = models.size + numbers[:, cells].reshape(-1)
        table = self.table.take_columns(np.concatenate([columns, both]))
        kept = tuple(
            part.take_cells(len(models), cells)
            for part in self.kept
            if choose_step(models.size) == 1
        )
        return replace(self, parts=(table,), labels=labels.without(METRIC, own), kept=kept)

    def log(self) -> Log:
        """Return a log whose cells are these moments."""
        table, models = in_order(self.table), model_columns(self.labels)
        attrs: dict[str, Any] = {}
        if self.batches > 1:
            attrs = {"n_batches": self.batches, "checked": self._checked()}
        if self.dropped is not None:
            attrs["n_dropped"] = self.dropped
        if self.notes.mixed:
            names = listed(map(repr, self.notes.mixed))
            attrs["mixed"] = f"{names}: the batches differ there, so it is not used"
        width, bare = table.mean.shape[1], table.without_columns()
        source = CellSource(
            table.take_columns(np.arange(models.size)), WORDS, partial(point_counts, bare), models,
            table.take_columns(np.arange(models.size, width)) if self.pairs else None,
        )  # fmt: skip
        kept = add_parts(self.kept) if self.kept else None
        crossed = kept is not None and kept.crossed()
        complete = None
        if self.planned:
            complete = self.design_of(in_order(add_parts(self.planned)), crossed)
        log = Log(
            self.design_of(bare, crossed), hide_losses(models.size, WORDS), self.labels,
            attrs, cells=source, cautions=self.cautions, complete=complete,
        )  # fmt: skip
        part = self.pointed and complete is not None and covers_all_points(complete)
        if part and not covers_all_points(log.design):  # in memory, a point is dropped everywhere
            raise LogError(
                "missing='drop' drops a point from all repetitions, but the repetitions of a point "
                "may be in different batches. Expected the same points in each repetition. Drop "
                "these points before you aggregate, or pass the log in memory with missing='drop'."
            )
        if kept is None:
            return log
        return replace(log, cells=replace(source, sample=kept.sample(log, models, crossed)))

    def design_of(self, cells: Cells, crossed: bool) -> Design:
        """Make the design of some cells; ``crossed`` if sources are known to share points.

        Otherwise hashes show whether two sources, and all splits, have the same points.
        """
        splits = cells.over(tuple(level for level in SPLIT if level in cells.levels))
        rows, known = splits.count.astype(np.int64), splits.prints is not None
        if len(rows) == 1 or (known and same_points(splits)):
            sizes = SplitSizes(rows, int(rows[0]))
        else:
            sizes = SplitSizes(rows, None, RANDOM_SPLITS if known else "")
        found = design_of_cells(cells, sizes, self.pointed, WORDS)
        if "point" not in cells.levels:
            if not crossed and cells.prints is not None and "source" in cells.levels:
                sources = cells.over(("source",))
                several = sources.take(sources.count > 1)
                crossed = len(list_points(several)) < len(several.count)
            found.facts["crossed", None] = crossed
        return found

    def _checked(self) -> str:
        """Describe what was compared between batches."""
        number = f"{self.batches:,}"
        if self.sketch is None:
            return UNNAMED.format(number)
        if self.sketch.complete:
            return ACROSS.format(number)
        return SAMPLED.format(number, len(self.sketch.hashes))


add_methods(Moments, without=("largest_differences", *LOGS))


@read_container.register
def _(losses: Moments, also: tuple[object, ...] = ()) -> Log:
    carries = losses.within == METRIC and isinstance(losses.labels, FrameLabels)
    if carries and METRIC not in also:
        return losses.carry_metrics().log()
    if losses.within and losses.within not in also:
        raise LogError(
            f"the same evaluation appears in several logs, which the level {losses.within!r} "
            f"distinguishes. Analyze each of them separately, as in by={losses.within!r} or "
            f"independent={losses.within!r}."
        )
    return losses.log()


@align_logs.register
def _(one: Moments, two: Any) -> Any:
    raise LogError(
        "the moments of two logs cannot be paired: cross-moments of models are not available. "
        "Expected the moments of one frame with a column for each model, made with pairs=True."
    )


def assemble(
    log: Log, cells: Cells, gaps: Cells | None, within: str, some: Rows | None = None
) -> Moments:
    """Combine the moments of one batch with what is known of its log.

    ``some`` are rows and their losses, if the others are not available.
    """
    levels, used = cells.levels, (*log.used, *cells.levels)
    cautions = replace(log, used=used).find_cautions() & Caution.UNUSED_LEVEL
    if log.design.has("repetition") and not {"repetition", "source"} & {*levels}:
        cautions |= Caution.DEPENDENCE_IGNORED  # repetitions count as further points
    if log.design.has("source") and "source" not in levels:
        cautions |= Caution.SOURCES_IGNORED
    prints, sketch, hashes = hash_evaluations(log.design, levels)
    kept = KeptLosses.of(log, cells, hashes, some)
    if gaps is not None:
        cells = join_columns(cells, gaps)
    return Moments(
        (replace(drop_unused_labels(cells), prints=prints),), log.labels, gaps is not None,
        "point" in log.design.levels, 1, log.attrs.get("n_dropped"), SharedAttrs.of(log.metadata),
        within, cautions, sketch,
        () if log.complete is None else (count_cells(log.complete, levels),), (kept,),
    )  # fmt: skip


def count_cells(design: Design, levels: tuple[str, ...]) -> Cells:
    """Count the evaluations in the cells of a log."""
    cells = drop_unused_labels(tally(design, *levels))
    return replace(cells, prints=hash_evaluations(design, levels)[0])


def read_batch(losses: Any, by: str | Sequence[str] | None, missing: str) -> tuple[Log, str]:
    """Read a batch; if an evaluation appears twice, find the level of ``by`` that differs."""
    more = [name for name in ((by,) if isinstance(by, str) else by or ()) if name not in LEVELS]
    losses = as_container(losses, more)
    names: Any = getattr(losses, "levels", getattr(getattr(losses, "index", None), "names", ()))
    if METRIC in (*more, *names):  # a batch may have some rows of some metrics
        log, attrs = read(losses, missing=missing, by=METRIC, part=True), losses.attrs
        if has_several(attrs):
            kind = {name: fact for name, fact in log.metadata.items() if name == TYPE}
            log = replace(log, metadata=attrs | kind)
        return log, METRIC
    try:
        return read(losses, missing=missing, part=True), ""
    except LogError:
        if not more:
            raise
        return read(losses, missing=missing, by=more[0], part=True), more[0]


def levels_of(log: Log, by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Choose the levels of the cells: those in ``by``, or all that methods use but the points.

    Those of a metric are among them, and those that tell data sets and evaluations apart. If ``by``
    only has levels that no method uses, such as segments, those that methods use are added.
    """
    needed = levels_needed(log)
    if by is None:
        return needed
    names = (by,) if isinstance(by, str) else tuple(by)
    if names and not {*LEVELS, METRIC} & {*names}:
        names = (*names, *needed)
    more = (*RESAMPLED, *levels_of_cells(log.metadata))
    cells = filter(log.design.levels.__contains__, more)
    names = tuple(dict.fromkeys((*names, *log.design.within, *cells)))
    unknown = [name for name in names if name not in log.design.levels]
    if unknown:
        raise LogError(
            f"the log has no level {unknown[0]!r}. Available levels: "
            f"{listed(map(repr, log.design.levels)) or 'none'}."
        )
    return names


# --- matching two batches -------------------------------------------------------------------------


def check_same_kind(one: Moments, two: Moments) -> None:
    """Refuse batches that differ in levels, pairs or units."""
    if set(one.levels) != set(two.levels) or one.pointed != two.pointed:
        mine, yours = (
            ", ".join(map(repr, [*part.levels, *(["point"] if part.pointed else [])])) or "none"
            for part in (one, two)
        )
        raise LogError(
            f"the batches have different levels: {mine} and {yours}. Expected the same in each "
            "batch. Pass the levels that all batches have as by=."
        )
    if one.pairs != two.pairs:
        raise LogError(
            "one batch has cross-moments of models, but the other does not. Expected pairs=True "
            "for both, or for neither."
        )
    units, others = (
        part.labels.units if isinstance(part.labels, ArrayLabels) else units_of(part.attrs)
        for part in (one, two)
    )
    if units != others:
        raise LogError(
            f"the losses are in units {units!r} in one batch and {others!r} in the other. "
            f"Expected the same in each batch. Convert them, or set it: log.attrs['units'] = "
            f"{units or others!r}."
        )


def check_same_masks(labels: ResultLabels, one: Cells, two: Cells) -> None:
    """Refuse a carried cell with losses in only one of the batches."""
    mine, yours = (np.isnan(found.mean).any(axis=0) for found in (one, two))
    apart = np.flatnonzero(mine != yours)
    if len(apart):
        raise LogError(
            f"the losses of {labels.name(int(apart[0]))} are all missing (NaN) in one batch but "
            "not in another. Expected a number for every evaluation, or none at all. Fill the "
            f"gap, or mask it everywhere."
        )


def match_models(one: ResultLabels, two: ResultLabels) -> IntArray:
    """Find the models of one batch in another; their grids must be the same."""
    mine, yours = list(one.models), list(two.models)
    single, alone = (getattr(labels, "columns_axis", None) is None for labels in (one, two))
    if type(one) is not type(two) or single != alone:
        raise LogError(
            "the batches are containers of different kinds. Expected only Series, only "
            "DataFrames, only DataArrays or only Datasets."
        )
    if len(mine) != len(yours) or set(mine) != set(yours):
        raise LogError(
            f"the batches have different models: {listed(map(repr, mine))} in one; "
            f"{listed(map(repr, yours))} in the other. Expected the same names in each batch."
        )
    check_same_grid(one, two)
    return np.array([yours.index(model) for model in mine], dtype=np.int64)


def match_columns(one: Moments, two: Moments) -> tuple[IntArray, IntArray]:
    """Find the columns of one batch in another, and the signs of differences there."""
    models, own = match_models(one.labels, two.labels), model_columns(two.labels)
    columns = np.empty(own.size, dtype=np.int64)
    columns[own] = own[models]
    signs = np.ones(own.size, dtype=np.int64)
    if one.pairs:
        left, right = np.triu_indices(len(own), 1)
        pairs, sides = find_pairs(own, own[models[left]], own[models[right]])
        columns = np.concatenate([columns, own.size + pairs.reshape(-1)])
        signs = np.concatenate([signs, sides.reshape(-1)])
    return columns, signs


def concat_models(parts: Mapping[Hashable, Moments]) -> Moments:
    """Combine models into columns, if all were evaluated on the same points.

    Raises
    ------
    LogError
        If two models differ in a cell, its count, or the sum of the hashes of its points.
    """
    every = list(parts)
    names = [every[at] for at in sort_labels(every).tolist()]
    tables = [in_order(parts[name].table) for name in names]
    first, *others = (points_by_cell(table) for table in tables)
    for name, found in zip(names[1:], others, strict=True):
        for cell in (*first, *found):
            (mine, _), (yours, _) = both = first.get(cell, (0, 0)), found.get(cell, (0, 0))
            if both[0] != both[1]:
                where = place(dict(zip(parts[name].levels, cell, strict=True))) or "the log"
                how = "different points" if mine == yours else f"{mine:,} and {yours:,} points"
                raise unpaired(
                    f"{names[0]!r} and {name!r} have {how} at {where}. Expected every model on "
                    f"every evaluation."
                )
    losses = [add_parts(parts[name].kept) for name in names if parts[name].kept]
    kept = KeptLosses.join_columns(losses) if len(losses) == len(names) else None
    return replace(
        parts[names[0]],
        parts=(join_columns(*tables),),
        labels=FrameLabels(names, pd.Index(names, name="model", tupleize_cols=False)),
        batches=max(part.batches for part in parts.values()),
        notes=reduce(and_, (part.notes for part in parts.values())),
        kept=() if kept is None else (kept,),
    )


def points_by_cell(cells: Cells) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Map the labels of each cell to the number of its points and the sum of their hashes."""
    prints = np.zeros(len(cells.count), dtype=np.uint64) if cells.prints is None else cells.prints
    return {
        tuple(cells.key(cell).values()): (round(n), int(sum_))
        for cell, (n, sum_) in enumerate(zip(cells.count.tolist(), prints, strict=True))
    }


# --- a file of moments ----------------------------------------------------------------------------


def checked_path(path: object) -> Path:
    """Refuse what is not a path."""
    if not isinstance(path, str | os.PathLike):
        raise LogError(
            f"{path!r} is not a path. Expected the name of a file, as in "
            f"Moments.load('moments.npz')."
        )
    return Path(os.fsdecode(path))


def unpack_cells(arrays: Mapping[str, Any], name: str, labels: Mapping[str, Any]) -> Cells:
    """Restore cells, if their arrays match."""
    names = tuple(tuple(unpack_labels(written)) for written in labels.values())
    found = Cells(tuple(labels), names, *(arrays[f"{name}_{number}"] for number in NUMBERS))
    cells, columns = found.mean.shape
    shapes = [(cells, len(names)), (cells,), (cells, columns), (cells, columns), (columns,)]
    if [getattr(found, number).shape for number in NUMBERS] != shapes:
        raise ValueError("shapes")
    if (found.codes < 0).any() or (found.codes >= list(map(len, names))).any():
        raise ValueError("codes")
    prints = arrays.get(f"{name}_prints")
    if prints is not None and prints.shape != (cells,):
        raise ValueError("prints")
    return replace(found, prints=prints)


def unpack_losses(arrays: Mapping[str, Any], head: Mapping[str, Any]) -> KeptLosses:
    """Restore the losses of some evaluations."""
    labels, losses = head["kept"], arrays["kept_losses"]
    rows, width = losses.shape
    plain = {"count": np.ones(rows), "mean": losses, "m2": np.zeros((rows, width)),
             "origin": np.zeros(width), "codes": arrays["kept_codes"].astype(np.int64)}  # fmt: skip
    table = unpack_cells({f"kept_{name}": part for name, part in plain.items()}, "kept", labels)
    whole, dates, pointed = head["examined"]
    return KeptLosses(table, bool(whole), str(dates), bool(pointed))


def pack_names(names: Any, what: Hashable) -> dict[str, Any]:
    """Write labels, or names of models, as JSON."""
    text = f"losses = losses.rename(index=str, level={what!r})"
    return pack_labels(as_index(names), repr(what), text)


def pack_columns(labels: ResultLabels) -> dict[str, Any]:
    """Write the names of models and of carried dimensions as JSON."""
    models = pack_names(labels.models, "model")
    if isinstance(labels, FrameLabels):
        axis = labels.columns_axis
        return {"models": models, "names": None if axis is None else to_plain(list(axis.names))}
    if not isinstance(labels, ArrayLabels):
        raise TypeError(f"labels of type {type(labels).__name__} cannot be written")
    coords = []
    for name, coord in xr.Dataset(coords=labels.coords).coords.items():
        if isinstance(coord.indexes.get(name), pd.MultiIndex):
            raise LogError(
                f"the coordinate {name!r} has several levels, which a file of moments does not "
                f"support. Expected plain coordinates. Use log.reset_index({name!r}) first."
            )
        attrs = SharedAttrs.of(coord.attrs).shared
        coords.append([name, coord.dims, to_plain(coord.values, repr(name)), attrs])
    rest = {name: getattr(labels, name) for name in ("dims", "sizes", "model_dim", "units")}
    return {"models": models, "coords": coords, **rest}


def unpack_columns(written: Mapping[str, Any]) -> ResultLabels:
    """Undo `pack_columns`."""
    models = list(unpack_labels(written["models"]))
    if "coords" not in written:
        names = from_plain(written["names"])
        if names is None:
            return FrameLabels(models, None)
        if len(names) > 1:
            return FrameLabels(models, pd.MultiIndex.from_tuples(models, names=names))
        return FrameLabels(models, pd.Index(models, name=names[0], tupleize_cols=False))
    coords = {
        name: (dims, from_plain(values), from_plain(attrs))
        for name, dims, values, attrs in written["coords"]
    }
    placed = xr.Dataset(coords=coords).coords
    return ArrayLabels(
        models, tuple(written["dims"]), {name: placed[name] for name in coords},
        tuple(written["sizes"]), written["model_dim"], written["units"],
    )  # fmt: skip


# --- points of a streamed log, from the sums of their hashes --------------------------------------


RANDOM_SPLITS = (
    "the repetitions of this log do not test the same points, so these are random splits, or part "
    "of the log is missing. In a partition, every point is tested once per repetition. For random "
    "splits use corrected_t; otherwise add the missing evaluations."
)

Prints = NDArray[np.uint64]

AWARE = np.uint64(0x9E3779B97F4A7C15)
"""Distinguishes times with a time zone from times without one, which are never equal."""

ODD = np.uint64(0xD6E8FEB86659FD93)
"""Distinguishes the parts of a key: seconds from nanoseconds, level from level."""

BITS_OF_METRIC = np.uint64(32)
"""Number of low bits of a key that depend on the metric of an evaluation."""

MOST_HASHES = 1 << 16
"""Number of evaluations of a log that are recognized (half a megabyte)."""

ALL = (1 << 64) - 1

KINDS_OF_NUMBERS = (bool, np.bool_, int, np.integer, float, np.floating, Decimal, Fraction)


def same_points(cells: Cells) -> bool:
    """Whether all cells have the same points, judging by the sums of hashes."""
    return len(list_points(cells)) == 1


def list_points(cells: Cells) -> set[tuple[int, float]]:
    """List the sums of hashes that occur, each with the number of points."""
    prints: Any = cells.prints
    return set(zip(prints.tolist(), cells.count.tolist(), strict=True))


def point_counts(cells: Cells, level: str) -> tuple[IntArray, None]:
    """Count the distinct points under each label of a level of a streamed log."""
    by = tuple(name for name in SPLIT if name in cells.levels)
    at = cells.levels.index(level)
    labels, codes = cells.labels[at], cells.codes[:, at]
    counts = np.zeros(len(labels), dtype=np.int64)
    number = len(cells.over(by).count)
    for code in np.unique(codes).tolist():
        rows = codes == code
        splits = cells.take(rows).over(by)
        if cells.prints is None or len(splits.count) < number or not same_points(splits):
            raise LogError(
                f"the repetitions do not test the same points of {level}="
                f"{spelled(labels[code])}, and moments do not contain the number of distinct "
                "points. Expected all points in each repetition. Use the log itself, or one "
                "repetition of it."
            )
        counts[code] = round(float(cells.count[rows].sum()) / number)
    return counts, None


def in_order(found: Cells) -> Cells:
    """Sort the labels of each level and then the cells, so that the order of batches is lost."""
    codes, labels = found.codes.copy(), list(found.labels)
    for i, names in enumerate(found.labels):
        if not isinstance(names, pd.Index | range):
            order = sort_labels(list(names))
            codes[:, i] = np.argsort(order)[found.codes[:, i]]
            labels[i] = as_index([names[at] for at in order.tolist()])
    moved = replace(found, labels=tuple(labels), codes=codes)
    return moved.take(np.lexsort(codes.T[::-1])) if labels else moved


# --- hashes of labels, the same in every process and for every dtype ------------------------------


def hash_array(values: NDArray[Any]) -> Prints:
    """Hash an array of numbers or strings."""
    return np.asarray(pd.util.hash_array(values, categorize=False), dtype=np.uint64)


def hashes_of(labels: Labels) -> Prints:
    """Hash labels; equal labels have equal hashes, whatever their dtype."""
    index = as_index(labels)
    if isinstance(index, pd.CategoricalIndex):
        return hashes_of(index.categories)[index.codes]
    index = index.infer_objects()
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        return hash_times(np.asarray(index.tz_convert("UTC").tz_localize(None))) ^ AWARE
    values = np.asarray(index)
    if values.dtype.kind in "biuf":
        return hash_numbers(values)
    if values.dtype.kind in "Mm":
        return hash_times(values)
    if pd.api.types.infer_dtype(values, skipna=False) == "string":
        return hash_array(values)
    return hash_objects(values)


def hash_numbers(values: NDArray[Any]) -> Prints:
    """Hash whole numbers as integers, those beyond 64 bits as text, and all others as floats."""
    if np.can_cast(values.dtype, np.int64):
        return hash_array(values.astype(np.int64))
    far = (values >= 2.0**63) | (values < -(2.0**63))
    with np.errstate(invalid="ignore"):
        whole = np.where(far, 0, values).astype(np.int64)
    found = np.where(whole == values, hash_array(whole), hash_array(values.astype(np.float64)))
    far &= np.isfinite(values)
    texts = np.array([str(int(value)) for value in values[far]], dtype=object)
    found[far] = hash_array(texts)
    return found


def hash_times(values: NDArray[Any]) -> Prints:
    """Hash times by seconds and remaining nanoseconds, whatever their unit."""
    kind = values.dtype.kind
    seconds = values.astype(f"{kind}8[s]")
    rest = (values - seconds).astype("m8[ns]")
    return hash_array(seconds.astype(np.int64)) * ODD ^ hash_array(rest.astype(np.int64))


def hash_objects(things: NDArray[Any]) -> Prints:
    """Hash labels of dtype object: mixed types, long numbers, tuples and others."""
    found = np.empty(len(things), dtype=np.uint64)
    simple = [simplify(thing) for thing in things]
    types = [type(thing) for thing in simple]
    for kind in dict.fromkeys(types):
        at = [i for i, own in enumerate(types) if own is kind]
        some = [simple[i] for i in at]
        if kind is pd.Timestamp:  # one by one: their zones may differ
            found[at] = [hashes_of(index_of_time(time))[0] for time in some]
        elif kind is pd.Timedelta:
            found[at] = hashes_of(pd.TimedeltaIndex(some))
        else:
            found[at] = hash_array(np.array(some, dtype=object if kind is str else kind))
    return found


def index_of_time(time: Any) -> pd.DatetimeIndex:
    """Make an index of one time in its own unit, as nanoseconds cannot represent all dates."""
    index = pd.DatetimeIndex(np.array([time.to_datetime64()]))
    return index if time.tz is None else index.tz_localize("UTC").tz_convert(time.tz)


def simplify(label: Any) -> int | float | str | pd.Timestamp | pd.Timedelta:
    """Convert a label to the simplest type that represents it; numbers beyond 64 bits are text."""
    if isinstance(label, KINDS_OF_NUMBERS):
        try:
            whole = int(label)
        except (OverflowError, ValueError):  # infinite, or NaN
            return float(label)
        if whole == label:
            return whole if -(2**63) <= whole < 2**63 else str(whole)
        return float(label) if float(label) == label else str(label)
    if isinstance(label, datetime.datetime | np.datetime64):
        return pd.Timestamp(label)
    if isinstance(label, datetime.timedelta | np.timedelta64):
        return pd.Timedelta(label)
    return str(label) if isinstance(label, str) else spell(label)


def spell(label: Any) -> str:
    """Write a label as text that distinguishes types; sets are sorted, as their order varies."""
    if isinstance(label, tuple):
        return f"({', '.join(map(spell, label))})"
    if isinstance(label, frozenset):
        return f"{{{', '.join(sorted(map(spell, label)))}}}"
    if isinstance(label, pd.Interval):
        return f"Interval({spell(label.left)}, {spell(label.right)}, {label.closed})"
    if isinstance(label, str):
        return repr(str(label))
    simple = simplify(label) if isinstance(label, KINDS_OF_NUMBERS) else label
    return str(pd.Timestamp(label)) if isinstance(label, datetime.datetime) else str(simple)


# --- recognizing evaluations ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointSketch:
    """The hashes of evaluations: all of a short log, the smallest of a long one.

    An evaluation has the same hash in every batch, so it is detected in two batches if both contain
    its hash. If a batch is added twice, many are.

    Parameters
    ----------
    hashes : array of uint64
        One for each evaluation, in ascending order.
    limit : int
        No evaluation with a smaller hash was omitted; 2^64 - 1 if none was omitted.
    """

    hashes: Prints
    limit: int = ALL

    @classmethod
    def smallest(cls, hashes: Prints, limit: int = ALL) -> PointSketch:
        """Keep the smallest of some sorted hashes."""
        if len(hashes) <= MOST_HASHES:
            return cls(hashes, limit)
        return cls(hashes[:MOST_HASHES].copy(), int(hashes[MOST_HASHES]))

    @property
    def complete(self) -> bool:
        """Whether the hashes of all evaluations were kept."""
        return self.limit == ALL

    def __add__(self, other: PointSketch) -> PointSketch:
        """Merge the sketches of two batches that share no evaluation."""
        limit = min(self.limit, other.limit)
        looked = [part.hashes[: np.searchsorted(part.hashes, limit)] for part in (self, other)]
        both = np.sort(np.concatenate(looked), kind="stable")  # two runs, merged in one pass
        again = int(np.count_nonzero(both[1:] == both[:-1]))
        if again:
            what = "evaluation" if again == 1 else "evaluations"
            if limit != ALL:
                what = f"of the {min(map(len, looked)):,} evaluations examined"
            raise LogError(
                f"{again:,} {what} appear{'s' * (again == 1)} in more than one batch. Expected "
                "each evaluation once. Was a batch added twice, or a fold written by two jobs? If "
                "every batch numbers its points from 0, give the points labels that are unique "
                "across batches, or drop the labels: batch.droplevel('point')."
            )
        return PointSketch.smallest(both, limit)


def hash_evaluations(
    design: Design, by: tuple[str, ...]
) -> tuple[Prints | None, PointSketch | None, tuple[IntArray, Prints] | None]:
    """Hash the points of a batch in one pass; nothing if they have no names.

    Returns
    -------
    array of uint64, shape (cells,)
        The sum of the hashes of the points in each cell, modulo 2^64. The sums are additive over
        batches, and different sets of points have the same sum with probability 2^-64 only. They
        show whether repetitions test the same points.
    PointSketch
        The evaluations: the point, split, source and labels of other levels in ``by``, which may
        distinguish several logs. Folds are ignored: a point in two of them occurs twice. None if
        points are positions along a dimension without labels.
    array of int and array of uint64
        The rows of the evaluations with the smallest hashes, and these hashes.
    """
    if "point" not in design.levels:
        return None, None, None
    point, table = design.levels["point"], design.cell_table(by)
    hash_codes = point_hasher(design)
    others = (name for name in by if name not in (*LEVELS, METRIC))
    names = [name for name in (*SPLIT, "source", *others) if name in design.levels]
    salts = [hashes_of(design.levels[name].labels) for name in names]
    if METRIC in by:
        of_metrics = hashes_of(design.levels[METRIC].labels) >> BITS_OF_METRIC
    sums = np.zeros(table.size, dtype=np.uint64)
    found, limit, rows = np.empty(0, dtype=np.uint64), ALL, np.empty(0, dtype=np.int64)
    for start, stop in block_bounds(design.size, BLOCK):
        cells, points = design.cells(by, start, stop), point.block(start, stop)
        key = hash_codes(points)
        kernels.sum_hashes(key, points, cells, sums)
        for name, salt in zip(names, salts, strict=True):
            key = key * ODD ^ salt[design.levels[name].block(start, stop)]
        if METRIC in by:  # in the low bits, so that all metrics of an evaluation are kept or none
            key ^= of_metrics[design.levels[METRIC].block(start, stop)]
        small = (key < np.uint64(limit)) & (cells >= 0) & (points >= 0)
        found = np.concatenate([found, key[small]])
        rows = np.concatenate([rows, start + np.flatnonzero(small)])
        if len(found) > 2 * MOST_HASHES:
            order = np.argpartition(found, MOST_HASHES)
            limit = int(found[order[MOST_HASHES]])
            found, rows = found[order[:MOST_HASHES]], rows[order[:MOST_HASHES]]
    if isinstance(point.labels, range) and isinstance(point.codes, GridCodes):
        return sums[table.used], None, None  # positions in an array, which start at 0 in each batch
    return sums[table.used], PointSketch.smallest(np.sort(found), limit), (rows, found)


def point_hasher(design: Design) -> Callable[[Codes], Prints]:
    """Make the function that hashes the points of some rows, by their codes."""
    level = design.levels["point"]
    labels = level.labels
    if isinstance(labels, range):  # avoids a table as long as the log
        start, step = labels.start, labels.step
        return lambda codes: hash_array(start + step * codes.astype(np.int64))
    if len(labels) <= design.size:
        hashes = hashes_of(labels)
        return lambda codes: hashes[codes]
    used = np.unique(level.block(0, design.size))  # after a filter, labels may be many more
    few = hashes_of(as_index(labels).take(np.maximum(used, 0)))
    return lambda codes: few[np.searchsorted(used, codes)]


# --- losses kept with the cells -----------------------------------------------------------------


BITS = np.uint64(11)
"""Bits of a hash that a float64 cannot represent."""

Rows = tuple[IntArray, FloatArray]
"""Rows of a log, and their losses."""


@dataclass(frozen=True, eq=False)
class KeptLosses:
    """The losses of some evaluations of a log that is read in batches.

    Parameters
    ----------
    cells : Cells
        One row per evaluation. The columns are the models, each in evenly spaced carried cells,
        then the hash of the point, and the number by which evaluations are chosen, the date of the
        point or its hash: those with the smallest are kept.
    whole : bool
        Whether these are all evaluations.
    dates : str
        The level of dates, empty without any.
    pointed : bool
        Whether points have names.
    """

    cells: Cells
    whole: bool
    dates: str
    pointed: bool

    @classmethod
    def of(
        cls, log: Log, cells: Cells, hashes: tuple[IntArray, Prints] | None, some: Rows | None
    ) -> KeptLosses:
        """Select evaluations of a batch.

        Parameters
        ----------
        log : Log
            The batch.
        cells : Cells
            Its cells.
        hashes : tuple of arrays, optional
            The rows with the smallest hashes, and these hashes, if points have names.
        some : tuple of arrays, optional
            The rows whose losses are available, and their losses; None if all are in memory.
        """
        design, models = log.design, model_columns(log.labels)
        rows = np.arange(design.size) if some is None else some[0]
        rows = rows if design.valid is None else rows[design.valid[rows]]
        dates = "" if is_resampled(design) else find_dates(design) or ""
        # Positions in an array, and points without names, do not recur in another batch.
        salt = np.uint64(zlib.crc32(cells.mean.tobytes()))
        if dates:
            number = number_dates(design.levels[dates], rows)
        elif hashes is not None and some is None:
            rows, number = hashes[0], (hashes[1] >> BITS_OF_METRIC).astype(np.float64)
        else:
            number = truncate_hashes(hash_array(hash_array(rows) ^ salt))
        first = np.sort(find_first(number, rows_to_keep(models.size)))
        rows, number = rows[first], number[first]
        point, pointed = number, "point" in design.levels
        if pointed:
            level = design.levels["point"].take(rows)
            prints = hashes_of(as_index(level.labels).take(np.asarray(level.codes)))
            named = dates == "point" or hashes is not None
            point = truncate_hashes(prints if named else hash_array(prints ^ salt))
        columns = models[:, :: choose_step(models.size)].reshape(-1)
        if some is None:
            losses = log.losses.table(rows, columns)
        else:
            losses = some[1][np.ix_(np.searchsorted(some[0], rows), columns)]
        names = [name for name in (*LEVELS, *cells.levels) if name in design.levels]
        levels = tuple(name for name in dict.fromkeys(names) if name != "point")
        table = np.column_stack([losses, point, number])
        parts = [design.levels[name].take(rows) for name in levels]
        codes = np.zeros((len(rows), len(levels)), dtype=np.int64)
        for at, part in enumerate(parts):
            codes[:, at] = np.asarray(part.codes)
        width = table.shape[1]
        found = Cells(
            levels, tuple(part.labels for part in parts), codes, np.ones(len(rows)), table,
            np.zeros((len(rows), width)), np.zeros(width),
        )  # fmt: skip
        return cls(drop_unused_labels(found), len(rows) == design.n_rows, dates, pointed)

    def __add__(self, other: KeptLosses) -> KeptLosses:
        """Keep the evaluations of both that come first."""
        if self.dates != other.dates:
            return self.undated() + other.undated()
        return replace(
            self, cells=self.cells.concat(other.cells), whole=self.whole and other.whole,
            pointed=self.pointed and other.pointed,
        ).cut()  # fmt: skip

    @property
    def count(self) -> FloatArray:
        """The number of losses of each evaluation: 1."""
        return self.cells.count

    def undated(self) -> KeptLosses:
        """Take points for names: numbers such as 1901 are years only if all of them may be."""
        mean = self.cells.mean
        mean = np.hstack([mean[:, :-1], mean[:, -2:-1]])
        return replace(self, cells=replace(self.cells, mean=mean), dates="")

    def cut(self) -> KeptLosses:
        """Keep the first evaluations, as many as for a batch."""
        first = find_first(self.cells.mean[:, -1], rows_to_keep(self.cells.mean.shape[1] - 2))
        if len(first) == len(self.cells.count):
            return self
        return replace(
            self, cells=drop_unused_labels(self.cells.take(np.sort(first))), whole=False
        )  # fmt: skip

    @classmethod
    def join_columns(cls, parts: Sequence[KeptLosses]) -> KeptLosses | None:
        """Combine columns of the evaluations that all parts have; None if points have no names."""
        if not all(part.pointed for part in parts):
            return None
        joined = reduce(Cells.concat, [part.cells for part in parts])
        keys = np.column_stack([joined.mean[:, -2:], joined.codes])
        rows = np.lexsort(keys.T)  # those of an evaluation, part by part
        starts = np.append(True, (keys[rows][1:] != keys[rows][:-1]).any(axis=1))
        times = np.diff(np.append(np.flatnonzero(starts), len(rows)))
        order = rows[np.repeat(times == len(parts), times)].reshape(-1, len(parts)).T
        if not order.size:
            return None
        mean = np.hstack([*(joined.mean[rows, :-2] for rows in order), joined.mean[order[0], -2:]])
        width = mean.shape[1]
        cells = replace(
            joined.take(order[0]), mean=mean, m2=np.zeros_like(mean), origin=np.zeros(width)
        )
        whole = all(part.whole for part in parts)
        return replace(parts[0], cells=cells, whole=whole).cut()

    def reorder(self, levels: tuple[str, ...], models: IntArray) -> KeptLosses:
        """Reorder the levels and the models."""
        losses = self.cells.mean[:, :-2].reshape(len(self.cells.count), len(models), -1)
        mean = losses[:, models].reshape(len(losses), -1)
        cells = self.cells.reorder_levels(levels)
        return replace(self, cells=replace(cells, mean=np.hstack([mean, cells.mean[:, -2:]])))

    def sample(self, log: Log, models: IntArray, crossed: bool) -> Sample:
        """Make a small log of these losses, with columns in the order of the log.

        If ``crossed``, names of points recur in several sources, and points are numbered in each.
        """
        found, step = self.cells, choose_step(models.size)
        order = np.argsort(models[:, ::step].reshape(-1))
        levels = found.to_levels()
        if self.pointed:
            point, names = pd.factorize(found.mean[:, -2], sort=True)
            levels["point"] = Level(pd.Index(names.astype(np.int64)), point)
        if self.dates:
            time, days = pd.factorize(found.mean[:, -1], sort=True)
            levels[self.dates] = Level(pd.DatetimeIndex(days.astype("M8[us]")), time)
        facts = {"scoped": crossed}
        small = Design(levels, len(found.count), within=log.design.within, facts=facts)
        losses = LossColumns((found.mean[:, :-2][:, order],))
        return Sample(
            replace(log, design=small, losses=losses, cells=None, complete=None), step, self.whole
        )

    def take_metric(self, metric: Hashable) -> KeptLosses:
        """Select the losses of one metric."""
        return replace(self, cells=cells_of_metric(self.cells, metric))

    def take_cells(self, models: int, cells: MaskArray) -> KeptLosses:
        """Select the losses in some carried cells."""
        own = np.flatnonzero(np.tile(cells, models))
        return replace(self, cells=self.cells.take_columns(np.append(own, [-2, -1])))

    def crossed(self) -> bool:
        """Whether a point occurs in two sources of one repetition."""
        if "source" not in self.cells.levels or not self.pointed:
            return False
        apart = ("source", "fold")
        at = [i for i, name in enumerate(self.cells.levels) if name not in apart]
        keys = np.column_stack([self.cells.mean[:, -2], self.cells.codes[:, at]])
        return len(np.unique(keys, axis=0)) < len(keys)


def rows_to_keep(width: int) -> int:
    """Choose how many evaluations are kept, by the number of columns."""
    return max(LIMIT // max(1, width), FEWEST_ROWS)


def find_first(number: FloatArray, most: int) -> IntArray:
    """Find the evaluations with the smallest numbers, at most ``most``."""
    return np.arange(len(number)) if len(number) <= most else np.argpartition(number, most)[:most]


def truncate_hashes(hashes: Prints) -> FloatArray:
    """Truncate hashes to the precision of float64."""
    return (hashes >> BITS).astype(np.float64)


def number_dates(level: Level, rows: IntArray) -> FloatArray:
    """Convert the dates of some rows to microseconds, or numbers in the same order."""
    index = as_index(level.labels, plain=True)
    if (calendar := read_calendar(index)) is not None:
        years = not isinstance(calendar, pd.DatetimeIndex)
        index = pd.to_datetime(calendar.astype(str), format="%Y") if years else calendar
    elif isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    elif isinstance(index[0], str) and "Q" in index[0]:
        index = pd.PeriodIndex([label.replace("-", "") for label in index], freq="Q").to_timestamp()
    elif index.dtype == object and not isinstance(index[0], str):  # dates, also of climate models
        minutes = np.array([
            (((day.year * 12 + day.month) * 31 + day.day) * 24 + getattr(day, "hour", 0)) * 60
            + getattr(day, "minute", 0) for day in index
        ])  # fmt: skip
        index = pd.Index(minutes.astype("m8[m]").astype("m8[s]"))
    elif index.dtype.kind != "m":
        index = pd.to_datetime(index, format="ISO8601", utc=True, errors="coerce")
        index = index.tz_localize(None)
    numbers = index.to_numpy().astype(f"{index.dtype.kind}8[us]").astype(np.float64)
    found: FloatArray = numbers[np.asarray(level.take(rows).codes)]
    return found


def cells_of_metric(found: Cells, metric: Hashable) -> Cells:
    """Select the cells of one metric, without the level ``metric``."""
    at = found.levels.index(METRIC)
    rows = np.flatnonzero(found.codes[:, at] == list(found.labels[at]).index(metric))
    rest = tuple(name for name in found.levels if name != METRIC)
    return found.take(rows).reorder_levels(rest)


def drop_unused_labels(found: Cells) -> Cells:
    """Keep only the labels that occur, without a reference to the index of the log."""
    labels, codes = [], np.empty_like(found.codes)
    for i, names in enumerate(found.labels):
        used, codes[:, i] = np.unique(found.codes[:, i], return_inverse=True)
        labels.append(tuple(as_index(names).take(used)))
    return replace(found, labels=tuple(labels), codes=codes)
