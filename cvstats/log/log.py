"""A log without its container: a design, tables of losses, and labels for the results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, cast, overload

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import Caution, members_of, sentences_of
from cvstats.core.cells import Cells
from cvstats.core.design import LEVELS, SPLIT, Design, GridCodes, Level, SplitSizes
from cvstats.core.folds import find_single_losses, has_crossed_sources, repetition_level, tally
from cvstats.core.loss_columns import KIND, Columns, Differences, LossColumns, binary_columns
from cvstats.core.reduce import compute_moments
from cvstats.core.results import WORKS, Result, separate_counts
from cvstats.core.threads import BLOCK, block_bounds
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import MOST, LogError, NeedsLosses, listed, spelled, unpaired
from cvstats.log.metadata import (
    DIFFERENCE_FROM,
    NOT_ZERO_ONE,
    PROPORTION_NAMES,
    assumptions_of,
    cautions_of_metric,
    facts_of_metric,
    has_several,
    name_target,
    refuse_parts_of_logs,
)
from cvstats.log.tables import unrecognized_levels

Attrs = Mapping[Any, Any]

WINDOW = 1 << 20
"""Losses searched for masked cells at once."""
Table: TypeAlias = pd.Series | pd.DataFrame | xr.Dataset


class Batches(Protocol):
    """The moments of a log that was read in batches, instead of its losses."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels whose labels identify a cell."""

    @property
    def name(self) -> Hashable:
        """The name of the only model; None if there are several."""

    @property
    def attrs(self) -> Mapping[Hashable, Any]:
        """The attrs that are equal in all batches."""


Axis: TypeAlias = tuple[str, Sequence[Hashable]]
"""The name of an axis, and the labels of the results that are stacked along it."""

Losses: TypeAlias = pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset | Batches
"""What public functions accept as a loss log."""

P = ParamSpec("P")


class TableFunction(Protocol[P]):
    """A function of a log: of pandas objects it returns a DataFrame, of arrays a Dataset."""

    __name__: str

    @overload
    def __call__(
        self, losses: pd.Series | pd.DataFrame, *args: P.args, **options: P.kwargs
    ) -> pd.DataFrame: ...
    @overload
    def __call__(
        self, losses: xr.DataArray | xr.Dataset, *args: P.args, **options: P.kwargs
    ) -> xr.Dataset: ...
    @overload
    def __call__(self, losses: Batches, *args: P.args, **options: P.kwargs) -> Table: ...


def of_its_kind(function: Callable[Concatenate[Losses, P], Any]) -> TableFunction[P]:
    """Tell type checkers that pandas objects give a DataFrame, and arrays a Dataset."""
    return cast(TableFunction[P], function)


class Labels(Protocol):
    """The names of the columns of a log."""

    @property
    def models(self) -> Sequence[Hashable]:
        """The names of the models; None for an unnamed one."""

    def columns(self, model: int) -> IntArray:
        """List the columns of one model: one, or one for each cell of the carried dimensions."""

    def name(self, column: int) -> str:
        """Describe one column, for messages."""

    def may_be_empty(self) -> bool:
        """Whether a column without any loss is a masked cell and not a mistake."""


class ResultLabels(Labels, Protocol):
    """Labels of results."""

    @property
    def dims(self) -> tuple[Hashable, ...]:
        """The names of the carried dimensions, and of that of the models."""

    def table(self, result: Result, attrs: Attrs) -> Table:
        """Label a result that has a number for each column."""

    def stack(self, axes: Sequence[Axis]) -> ResultLabels:
        """Return the labels of results that are stacked along some axes, before the columns."""

    def of_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> ResultLabels:
        """Return the labels of results for each pair of models (and carried cell)."""

    def cells(self, found: Cells, attrs: Attrs) -> Any:
        """Label moments cell by cell."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Losses that are examined one by one: all or some of a log.

    Parameters
    ----------
    log : Log
        The evaluations, in memory. Its columns are those of every ``step``-th carried cell, for all
        models, in the order of the whole log.
    step : int
        Distance between the carried cells in the sample.
    whole : bool
        Whether no evaluation is missing.
    """

    log: Log
    step: int = 1
    whole: bool = True


CountPoints = Callable[[str], "tuple[IntArray, str | None]"]
"""Counts the distinct points under each label of a level, like `Design.count_points`."""


ONLY_MOMENTS = (
    "moments contain only counts, means and squared deviations of cells. Call it on the losses, "
    "as from cvstats.read_log(path)."
)

WITHOUT_PAIRS = (
    "these moments were made without pairs=True, which comparisons need. Pass pairs=True to "
    "Moments.of_log, scan_parquet or scan_dask. This needs a column of losses for each model"
)


@dataclass(frozen=True, eq=False)
class CellSource:
    """The moments of the cells of a log, instead of its losses.

    Parameters
    ----------
    found : Cells
        The cells.
    words : str
        The error for a request that needs more than cells.
    count_points : callable
        Counts the distinct points under each label of a level.
    models : array of int, shape (models, carried cells)
        The columns of the models.
    gaps : Cells, optional
        The same cells for the differences of pairs of models, pairs before carried cells.
    pairs : tuple of array of int, optional
        The numbers of the two models of each pair; by default all pairs, as in ``triu_indices``.
    sample : Sample, optional
        Losses of some evaluations, to be examined one by one.
    of_chunk : bool
        Whether they are of a chunk of a lazy array, whose result has no sentences yet.
    """

    found: Cells
    words: str
    count_points: CountPoints
    models: IntArray
    gaps: Cells | None = None
    pairs: tuple[IntArray, IntArray] | None = None
    sample: Sample | None = None
    of_chunk: bool = False

    def moments(self, by: Sequence[str], losses: Differences | None) -> Cells:
        """Return the moments of all columns, or of differences between them, by some levels."""
        if not set(by).issubset(self.found.levels):
            raise NeedsLosses(self.words)
        if losses is None:
            return self.found.over(by)
        if self.gaps is None:
            raise LogError(f"{WITHOUT_PAIRS}.")
        at, signs = find_pairs(self.models, losses.left, losses.right, self.pairs)
        return self.gaps.take_columns(at).turn_signs(signs).over(by)

    def take_group(self, by: str, code: int, words: str) -> CellSource:
        """Select the cells of one group, without its sample; ``words`` is then the error."""

        def count_points(_: str) -> tuple[IntArray, str | None]:
            raise LogError(words)

        rows = np.flatnonzero(self.found.codes[:, self.found.levels.index(by)] == code)
        return replace(
            self, found=self.found.take(rows), words=words, count_points=count_points,
            gaps=None if self.gaps is None else self.gaps.take(rows), sample=None,
        )  # fmt: skip


def find_pairs(
    models: IntArray,
    left: IntArray,
    right: IntArray,
    pairs: tuple[IntArray, IntArray] | None = None,
) -> tuple[IntArray, IntArray]:
    """Find differences of columns among those that are kept, and their signs.

    ``models`` are the columns of the models by carried cells; see `CellSource` for ``pairs``.
    """
    number, cells = models.shape
    model, cell = np.empty((2, models.size), dtype=np.int64)
    model[models] = np.arange(number)[:, None]
    cell[models] = np.arange(cells)
    one, two = np.triu_indices(number, 1) if pairs is None else pairs
    place, sign = np.zeros((2, number, number), dtype=np.int64)
    place[two, one] = place[one, two] = np.arange(len(one))
    sign[two, one], sign[one, two] = -1, 1
    return place[model[left], model[right]] * cells + cell[left], sign[model[left], model[right]]


class HiddenTable:
    """A table of known shape whose entries cannot be read; ``words`` is the error."""

    def __init__(self, shape: tuple[int, ...], words: str) -> None:
        self.shape, self.words = shape, words

    def __getitem__(self, part: object) -> Any:
        """Refuse: nothing can be read."""
        raise NeedsLosses(self.words)


def cell_levels(design: Design) -> tuple[str, ...]:
    """Name the levels that identify cells: all except the points and their counts."""
    if "count" in design.levels:
        raise LogError(
            "this is a bootstrap log (level 'count'), and its methods need the losses of each "
            "point. Expected a log of folds, splits or sources. Call them on the log in memory, as "
            "from log.compute() or cvstats.read_log(path)."
        )
    known = design.levels.keys() - {"point"}
    return tuple(filter(known.__contains__, LEVELS))


def design_of_cells(
    cells: Cells,
    splits: SplitSizes | None,
    named_points: bool,
    words: str,
    of_array: bool = False,
) -> Design:
    """Make a design with one row per cell; a level of points has a name but no labels."""
    levels = cells.to_levels()
    if named_points:
        hidden: Any = HiddenTable((len(cells.count),), words)
        levels["point"] = Level((), hidden)
    facts: dict[Any, Any] = {} if splits is None else {"splits": splits}
    weights = cells.count.astype(np.int64)
    return Design(levels, len(weights), facts=facts, of_array=of_array, weights=weights)


def hide_losses(width: int, words: str) -> LossColumns:
    """Make columns whose losses cannot be read."""
    table: Any = HiddenTable((0, width), words)
    return LossColumns((table,))


DIFFERENT_GAPS = (
    "the carried cells of this log lack different evaluations, but this method needs the same "
    "evaluations in all cells. Expected every loss, or the same gaps everywhere. Select one cell "
    "at a time, or fill the gaps: log.fillna(…)."
)

TYPE, WHOLE = "type", "whole numbers"
"""The attr that stores the integer or boolean dtype of losses, which moments no longer show."""

POINTS_ARE = "points_are"
"""The attr for whether points with the same name in several sources are the same point."""

ONLY_TESTED = ("lm-eval", "inspect")
"""Formats of logs in which models were tested but not trained."""

DIFFERENCES = {"kind": "differences"}
"""The attrs of a log of paired differences."""

CONTRASTS = {"kind": "contrasts"}
"""The attrs of a log of differences between its groups."""

NO_COLUMNS: IntArray = np.zeros(0, dtype=np.int64)

LEAST = 1e-146
"""The squares of smaller deviations are subnormal floating-point numbers."""


MOST_KEPT = 100_000
"""Maximum number of means that an examination keeps, cells by columns."""


@cache
def own_version() -> str:
    """Look up the version of the installed package."""
    return version("cvstats")


def facts_of(result: Result, metadata: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Collect the attrs of a labeled result: method, target, guarantee and reference.

    ``metadata`` are the attrs of the log, which may name its loss; otherwise it is "loss".
    """
    loss = metadata.get("loss")
    facts: dict[str, Any] = {"method": result.method, **result.attrs}
    facts["loss"] = loss if isinstance(loss, str) else "loss"
    if "metric" in metadata:
        facts |= facts_of_metric(metadata)
        if "target" in facts:
            facts["target"] = name_target(facts["target"], metadata)
        if "guarantee" in facts and (assumptions := assumptions_of(metadata)):
            facts["guarantee"] = f"{facts['guarantee']}; and {assumptions}"
    if DIFFERENCE_FROM in metadata:
        facts[DIFFERENCE_FROM] = metadata[DIFFERENCE_FROM]
    for attr, works in WORKS.items():
        for part, work in works.items():
            if part in str(facts.get(attr)) and work not in facts["reference"]:
                facts["reference"] += f"; {work}"
    return facts | {"cvstats_version": own_version()}


def missing_loss(whose: str, where: str, hint: str = "") -> LogError:
    """Make the error for a loss that is missing for all models."""
    return LogError(
        f"the loss of {whose} is missing (NaN) at {where}. Expected a number for every "
        f"evaluation. Fill in the loss, or pass missing='drop' to drop these evaluations.{hint}"
    )


def infinite_loss(whose: str, where: str) -> LogError:
    """Make the error for an infinite loss."""
    return LogError(
        f"the loss of {whose} is infinite at {where}. Expected finite numbers. An infinite loss "
        "usually comes from log(0). Bound the probabilities away from 0: pass loss='log_loss' and "
        "clip=1e-6 to cvstats.losses, read_log or evaluate."
    )


def unequal_points(whose: str, where: str, other: str, *, apart: bool = False) -> LogError:
    """Make the error for a loss that is missing for one model but not for another.

    ``apart`` if no evaluation has a loss of both.
    """
    both = ", and no evaluation has a loss of both" if apart else ""
    advice = (
        "To compare models on different points, such as the arms of an A/B test, keep all losses "
        "in one column, with the model as a level: log.stack().dropna().cvci.contrast(by='model')."
        if apart
        else "Fill in the loss, or pass missing='drop' to drop these evaluations for all models."
    )
    return unpaired(
        f"{whose} has no loss (NaN) at {where}, where {other} has one{both}. Expected a loss from "
        f"every model for every evaluation. {advice}"
    )


def too_many_digits(whose: str) -> LogError:
    """Make the error for integers that float64 rounds."""
    return LogError(
        f"the losses of {whose} are whole numbers above 2^53, which lose their last digits here. "
        f"Expected smaller ones. Subtract a constant first."
    )


def too_large(whose: str) -> LogError:
    """Make the error for losses whose squares are infinite."""
    return LogError(
        f"the losses of {whose} are too large to be squared. Expected numbers below 1e150. "
        f"Divide them by a constant."
    )


def refuse_same_names(numbers: Iterable[str], carried: Iterable[Hashable]) -> None:
    """Refuse a dimension or coordinate with the name of a variable of the result."""
    both = sorted(set(numbers).intersection(carried), key=str)
    if both:
        raise LogError(
            f"the log has a dimension or coordinate {both[0]!r}, which is also the name of a "
            "variable of the result. Expected another name. Rename it: "
            f"log.rename({{{both[0]!r}: 'my_{both[0]}'}})."
        )


def add_cautions(result: Result, cautions: Caution) -> Result:
    """Add cautions about the log and the confidence level to a result."""
    cautions &= ~result.allows_for
    if result.takes_means:
        cautions &= ~Caution.ONE_EACH
    if float(result.attrs.get("alpha", 0)) > 0.5:
        cautions |= Caution.LARGE_ALPHA
    losses = (result.caution & np.int64(Caution.NO_LOSSES)) == 0
    columns = dict(result.columns)
    if "n_points" in columns and not losses.all():
        columns["n_points"] = np.where(losses, columns["n_points"], 0)
    caution = np.where(losses, result.caution | int(cautions), result.caution)
    return replace(result, columns=columns, caution=caution)


@dataclass(frozen=True, eq=False)
class LazyArray:
    """Losses that are not yet computed, evaluations before carried cells.

    ``nan_tells``: NaN marks what was not evaluated. ``drop``: an evaluation is dropped if it is
    missing for any model. In both cases the losses determine which evaluations exist.
    """

    array: xr.DataArray
    dims: tuple[Hashable, ...]
    nan_tells: bool
    drop: bool = False

    @property
    def known_later(self) -> bool:
        """Whether the evaluations are known only once the losses are computed."""
        return self.nan_tells or self.drop


@dataclass(frozen=True, eq=False)
class Pattern:
    """The carried cells in which the same evaluations are dropped.

    Parameters
    ----------
    cells : array of int
        The numbers of these carried cells.
    keep : array of bool, shape (rows,)
        The evaluations that are kept.
    dropped : int
        How many were dropped.
    """

    cells: IntArray
    keep: MaskArray
    dropped: int


@dataclass(frozen=True, eq=False)
class Gaps:
    """The patterns of gaps in a grid of carried cells, and the cells with nothing left.

    Parameters
    ----------
    columns : array of int, shape (models, carried cells)
        The columns of each carried cell.
    patterns : list of Pattern
        The evaluations that are kept in each cell; at least one pattern, possibly of no cell.
    empty : array of int
        The carried cells in which every evaluation is missing for some model.
    masked : array of int
        The carried cells without any loss.
    """

    columns: IntArray
    patterns: list[Pattern]
    empty: IntArray
    masked: IntArray

    @property
    def lacking(self) -> IntArray:
        """The carried cells in which evaluations are dropped."""
        some = (pattern.cells for pattern in self.patterns if pattern.dropped)
        return np.concatenate([self.empty, *some])


@dataclass(frozen=True, eq=False)
class SomeLabels:
    """The names of the columns of some carried cells, for all models."""

    whole: Labels
    chosen: IntArray

    @property
    def models(self) -> Any:
        """The names of the models."""
        return self.whole.models

    def columns(self, model: int) -> IntArray:
        """List the columns of one model among the selected ones."""
        own = self.whole.columns(model)
        return np.searchsorted(self.chosen, own[np.isin(own, self.chosen)]).astype(np.int64)

    def name(self, column: int) -> str:
        """Name a column as the whole log does."""
        return self.whole.name(int(self.chosen[column]))

    def may_be_empty(self) -> bool:
        """Return True: these are carried cells."""
        return True


@dataclass(frozen=True, eq=False)
class Log:
    """A loss log that was read and checked.

    Parameters
    ----------
    design : Design
        Which evaluation each row is.
    losses : LossColumns
        The losses, rows by columns.
    labels : Labels
        The names of the columns and the shape of results.
    attrs : mapping
        Facts to add to every result, such as how many evaluations were dropped.
    other : Labels, optional
        The names of the columns of the second log, if the losses are those of two logs side by
        side.
    metadata : mapping, optional
        The attrs of the container, in which some methods look for more than losses.
    used : sequence of str or None, optional
        Additional levels that were requested by name.
    complete : Design, optional
        Which evaluation each row is, before evaluations were dropped.
    cells : CellSource, optional
        The source of moments if the losses are not in memory; each row of the design is then a
        cell.
    cautions : Caution
        Cautions about levels that are not kept.
    lazy : LazyArray, optional
        The losses, if they are not yet computed.
    gaps : Gaps, optional
        If carried cells lack different evaluations: which are dropped in each cell. The design is
        then that of the whole log, and `answer_cells` computes the cells of each pattern.
    pairs : tuple of array of int, optional
        The columns of both models of each pair: methods are applied to their differences.
    pair_labels : ResultLabels, optional
        The labels of results for these pairs.
    remembered : dict, optional
        Moments of an examination or of groups, by design, losses and levels, which several
        functions need.
    """

    design: Design
    losses: LossColumns
    labels: ResultLabels
    attrs: Attrs = field(default_factory=dict)
    other: Labels | None = None
    metadata: Mapping[Hashable, Any] = field(default_factory=dict)
    used: Sequence[str | None] = ()
    complete: Design | None = None
    cells: CellSource | None = None
    cautions: Caution = Caution(0)
    lazy: LazyArray | None = None
    gaps: Gaps | None = None
    pairs: tuple[IntArray, IntArray] | None = None
    pair_labels: ResultLabels | None = None
    remembered: dict[tuple[Design, LossColumns, Sequence[str]], Cells] | None = None

    @cached_property
    def differences(self) -> Differences | None:
        """The differences of the pairs, if methods are applied to them."""
        return None if self.pairs is None else Differences(self.losses, *self.pairs)

    @property
    def sides(self) -> tuple[IntArray, IntArray]:
        """The columns of both models of each pair; empty without pairs."""
        return self.pairs or (NO_COLUMNS, NO_COLUMNS)

    @property
    def values(self) -> Columns:
        """The columns that methods are applied to: the losses, or differences between them."""
        return self.differences or self.losses

    @cached_property
    def planned(self) -> Design:
        """The design before evaluations were dropped, which determines the kind of log."""
        return self.design if self.complete is None else replace(self.complete, by=self.design.by)

    @property
    def some_cells(self) -> bool:
        """Whether these are only some carried cells, so that a model may have no losses."""
        return isinstance(self.labels, SomeLabels)

    def columns_by_cell(self) -> IntArray:
        """List the columns, models by carried cells; of both logs, if there are two."""
        own = np.stack(list(map(self.labels.columns, range(len(self.labels.models)))))
        return own if self.other is None else np.concatenate([own, own + self.losses.width // 2])

    def with_pairs(
        self, left: IntArray, right: IntArray, labels: ResultLabels | None = None
    ) -> Log:
        """Return the log of the differences of models, by their numbers, in each carried cell."""
        columns = self.columns_by_cell()
        pairs = columns[left].reshape(-1), columns[right].reshape(-1)
        return replace(self, pairs=pairs, pair_labels=labels)

    def with_all_pairs(self) -> Log:
        """Return the log of the differences of all pairs of models, in each carried cell."""
        return self.with_pairs(*np.triu_indices(len(self.columns_by_cell()), 1))

    def pair_numbers(self) -> tuple[IntArray, IntArray]:
        """Find the numbers of both models of the pairs of `with_pairs`."""
        columns = self.columns_by_cell()
        model = np.empty(columns.size, dtype=np.int64)
        model[columns] = np.arange(len(columns))[:, None]
        left, right = self.sides
        return model[left[:: columns.shape[1]]], model[right[:: columns.shape[1]]]

    def without_pairs(self) -> Log:
        """Return the log of the models themselves."""
        return replace(self, pairs=None, pair_labels=None)

    def moments(self, by: Sequence[str]) -> Cells:
        """Compute moments by some levels, of the losses or of differences between them."""
        if self.gaps is not None:
            raise LogError(DIFFERENT_GAPS)
        levels = tuple(by)
        if self.design.by is not None:
            levels = tuple(dict.fromkeys((self.design.by, *by)))
        differences = self.pairs and self.differences
        key = self.design, self.losses, levels
        if self.remembered and not differences and key in self.remembered:
            found = self.remembered[key]
        elif self.cells is not None:
            found = self.cells.moments(levels, differences)
        else:
            chosen = differences or self.losses
            found = compute_moments(self.design, chosen, levels)
            bad = ~(np.isfinite(found.mean).all(axis=0) & np.isfinite(found.m2).all(axis=0))
            if bad.any():
                self._refuse(bad, chosen)
            self.refuse_lost_digits(found, chosen)
            if self.remembered is not None and not differences and found.mean.size <= MOST_KEPT:
                self.remembered[key] = found
        return found if self.design.by is None else replace(found, grouped=1)

    def columns(self) -> Iterator[FloatArray | None]:
        """Iterate over whole columns of finite losses; None for a masked cell."""
        if self.gaps is not None:
            raise LogError(DIFFERENT_GAPS)
        chosen = self.differences or self.rows().losses
        gone = np.isin(np.arange(self.losses.width), self.masked())
        if self.pairs is not None:
            left, right = self.pairs
            gone = gone[left] | gone[right]
        for j in range(chosen.width):
            values = None if gone[j] else chosen.column(j, 0, self.design.size)
            if values is not None:
                here = values[self.design.here]
                with np.errstate(over="ignore"):
                    finite = bool(np.isfinite(here @ here))
                if not finite:
                    self._refuse(np.arange(chosen.width) == j, chosen)
            yield values

    def rows(self) -> Log:
        """Return the log itself, if it has rows."""
        if self.cells is not None:
            raise NeedsLosses(self.cells.words)
        return self

    @cached_property
    def in_memory(self) -> bool:
        """Whether the losses can be read one by one."""
        return self.cells is None and self.lazy is None

    def lacks_losses(self, request: str) -> NeedsLosses:
        """Make the error for a request that needs losses in memory."""
        lazy = "this array is lazy (dask). Load it into memory: log.compute()."
        have = ONLY_MOMENTS if self.lazy is None else lazy
        return NeedsLosses(f"{request} needs individual losses, but {have}")

    @property
    def lacks_pairs(self) -> bool:
        """Whether these are moments of several models without those of their differences."""
        return self.cells is not None and self.cells.gaps is None and len(self.labels.models) > 1

    @cached_property
    def of_differences(self) -> bool:
        """Whether the columns are differences of models, made here or by `difference`."""
        return self.pairs is not None or DIFFERENCES.items() <= self.metadata.items()

    @property
    def shown_models(self) -> Sequence[Hashable]:
        """The models, or the pairs that a log of differences names by a dimension ``pair``."""
        coords: Any = getattr(self.labels, "coords", {})
        if not (self.of_differences and {"model", "other"} <= coords.keys()):
            return self.labels.models
        if {*coords["model"].dims, *coords["other"].dims} - {"pair"}:
            return self.labels.models
        model, other = (np.atleast_1d(coords[name]).tolist() for name in ("model", "other"))
        return list(zip(model, other, strict=True))

    @cached_property
    def of_contrasts(self) -> bool:
        """Whether the columns are differences between groups, made by `contrast`."""
        return CONTRASTS.items() <= self.metadata.items()

    @property
    def known_proportions(self) -> bool | None:
        """Whether the losses can only be 0 or 1, or cannot, by name or type; None if unknown."""
        name = str(self.metadata.get("loss")).removeprefix("1 - ")
        if self.design.metric or name in NOT_ZERO_ONE:
            return False
        return True if name in PROPORTION_NAMES or self.metadata.get(TYPE) == WHOLE else None

    @cached_property
    def fixed_sources(self) -> bool:
        """Whether the sources were chosen, such as the tasks of a benchmark, and not sampled."""
        return self.metadata.get("sources_are") == "fixed"

    @property
    def source_name(self) -> str:
        """What sources are called: "task" in the logs of benchmarks of language models."""
        of_tasks = self.fixed_sources and self.metadata.get("format") in ONLY_TESTED
        return "task" if of_tasks else "source"

    @cached_property
    def only_tested(self) -> bool:
        """Whether no model was trained on parts of this log, such as answers of language models."""
        of = self.metadata
        chosen = of.get("sources_are") == "fixed" and "fold" not in self.planned.levels
        return chosen or of.get("models_are") == "fixed" or of.get("format") in ONLY_TESTED

    @cached_property
    def crossed(self) -> bool:
        """Whether the same points occur in several sources, and are treated as the same points."""
        said = self.metadata.get(POINTS_ARE)
        nested = said == "nested" or (self.fixed_sources and said != "crossed")
        return not nested and has_crossed_sources(self.planned)

    def zero_one(self) -> MaskArray:
        """Find the columns of models whose losses are all 0 or 1, one group after the other.

        For groups, and if the losses are not in memory, the sums of cells decide; see
        `Cells.zero_one`. Pseudo-losses of a metric are not such losses, whatever their values.
        """
        if self.design.by is not None:
            found = self.without_pairs().moments(repetition_level(self.design)).zero_one()
            return found & (not self.design.metric)
        if self.design.metric:
            return np.zeros(self.losses.width, dtype=bool)
        if self.cells is None:
            return binary_columns(self.design, self.losses)
        levels = tuple(name for name in self.design.levels if name != "point")
        return self.without_pairs().moments(levels).zero_one()

    def zero_one_pairs(self) -> MaskArray:
        """Find the pairs of models whose losses are all 0 or 1.

        A log of differences does not have these losses: it must be declared to be of that kind.
        """
        if not DIFFERENCES.items() <= self.metadata.items():
            zero_one = self.zero_one()
            return np.logical_and(*(zero_one[side] for side in self.sides))
        found = np.full(self.values.width, bool(self.known_proportions))
        if found.any() and self.in_memory:
            found &= binary_columns(self.design, self.values, signs=True)
        return found

    def count_points(self, level: str) -> tuple[IntArray, str | None]:
        """Count the distinct points under each label of a level; see `Design.count_points`."""
        return (self.design if self.cells is None else self.cells).count_points(level)

    def points_by_group(self) -> IntArray | None:
        """Count the points of each group, one row per group; None if unknown."""
        design = self.design
        if design.by is None:
            points = design.splits().points
            return None if points is None else np.array([[points]])
        splits = tally(design, *SPLIT)
        if (splits.n_cells == 1).all():
            return splits.count.astype(np.int64)[:, None]
        if "point" not in design.levels:
            return None
        counts: IntArray = self.count_points(design.by)[0][splits.first(splits.codes[:, 0])]
        return counts

    def refuse_parts(self) -> None:
        """Refuse pseudo-losses of a metric that lack points of a cell."""
        metrics, gaps = metrics_of_cells(self), self.gaps
        cells = NO_COLUMNS if gaps is None else gaps.lacking
        lacking = {None} if metrics is None else {*metrics[cells]}
        refuse_parts_of_logs(
            self.metadata, self.labels.models, self.design, self.planned,
            carried=metrics is not None, lacking=lacking if len(cells) else (),
        )  # fmt: skip

    def name(self, column: int) -> str:
        """Name one column, and its log if there are two."""
        if self.other is None:
            return self.labels.name(column)
        half = self.losses.width // 2
        labels, which = (self.labels, "first") if column < half else (self.other, "second")
        name = labels.name(column % half)
        return f"the {which} log" if name == "the log" else f"{name} of the {which} log"

    def _refuse(self, bad: Any, losses: Columns) -> None:
        """Name the first losses that are missing or infinite, unless whole columns are masked."""
        suspects = np.flatnonzero(bad)
        pairs = suspects[:, None]
        if isinstance(losses, Differences):
            pairs = np.column_stack([losses.left[suspects], losses.right[suspects]])
        gone = np.isin(np.arange(self.losses.width), self.masked())
        self.refuse_empty(gone)
        for j in np.unique(pairs).tolist():
            if not gone[j]:
                rows, total = self._not_finite(j)
                if total:
                    raise self._words(j, rows, total)
        for pair in pairs.tolist():
            if not gone[pair].any():
                raise too_large(" or ".join(map(self.name, pair)))

    def refuse_lost_digits(self, found: Cells, losses: Columns) -> None:
        """Refuse losses whose squares underflow, unless constant, and integers beyond float64."""
        sides = np.arange(losses.width)[:, None]
        if isinstance(losses, Differences):
            sides = np.column_stack([losses.left, losses.right])
        alike = np.flatnonzero(found.m2.sum(axis=0) < LEAST**2)
        size = np.abs(found.location[:, alike]).max(axis=0, initial=0.0)
        for j in alike[(size > 0) & (size < LEAST)].tolist():
            here = losses.column(j, 0, self.design.size)[self.design.here]
            if here.min() < here.max():
                names = " or ".join(map(self.name, sides[j].tolist()))
                raise LogError(
                    f"the losses of {names} are too small to be squared. Expected numbers "
                    f"above {LEAST:g}. Multiply them by a constant."
                )
        if {"i", "u"}.isdisjoint(map(KIND, self.losses.tables)):
            return
        if isinstance(losses, Differences):
            row = 0 if self.design.valid is None else int(self.design.valid.argmax())
            first = self.losses.take(np.arange(self.losses.width), row, row + 1).ravel()
            size = np.abs(first)[sides].max(axis=1)
        else:
            size = np.abs(found.location).max(axis=0, initial=0.0)
        for side in sides[size >= 2.0**53].reshape(-1).tolist():
            if self.losses.find(side)[0].dtype.kind in "iu":
                raise too_many_digits(self.name(side))

    def refuse_empty(self, masked: MaskArray) -> None:
        """Refuse a model without losses if others have some: it is not a masked cell."""
        if self.some_cells:
            return
        models = self.labels.models
        gone = [bool(masked[self.labels.columns(model)].all()) for model in range(len(models))]
        if any(gone) and not all(gone):
            empty, full = spelled(models[gone.index(True)]), spelled(models[gone.index(False)])
            raise unpaired(
                f"model {empty} has no losses (NaN everywhere), but {full} has some. Expected "
                "a loss from every model for every evaluation. Drop that model: "
                f"losses.drop_sel(model={empty}), or for a Dataset losses.drop_vars({empty})."
            )

    def masked(self) -> IntArray:
        """Find the columns of carried cells in which every loss is missing."""
        if not self.labels.may_be_empty():
            return np.array([], dtype=np.int64)
        if self.cells is not None:
            return np.flatnonzero(np.isnan(self.cells.found.mean).any(axis=0))
        gone = np.ones(self.losses.width, dtype=bool)
        for start, stop in block_bounds(self.design.size, WINDOW, len(gone)):
            missing = self.losses.missing(start, stop)
            if self.design.valid is not None:
                missing |= ~self.design.valid[start:stop, None]
            gone &= missing.all(axis=0)
            if not gone.any():
                break
        return np.flatnonzero(gone)

    def _not_finite(self, j: int) -> tuple[list[int], int]:
        """Find the first rows of a column that are not finite, and count them."""
        rows: list[int] = []
        total = 0
        for start, stop in block_bounds(self.design.size, BLOCK):
            bad = ~np.isfinite(self.losses.column(j, start, stop))
            if self.design.valid is not None:
                bad &= self.design.valid[start:stop]
            total += int(bad.sum())
            if len(rows) < MOST:
                rows += [int(row) + start for row in np.flatnonzero(bad)[: MOST - len(rows)]]
        return rows, total

    def _words(self, j: int, rows: list[int], total: int) -> LogError:
        where = listed([self.design.format_labels(row) for row in rows], total)
        row, name = rows[0], self.name(j)
        values = [self.losses.column(i, row, row + 1)[0] for i in range(self.losses.width)]
        if np.isinf(values[j]):
            return infinite_loss(name, where)
        others = [i for i, value in enumerate(values) if np.isfinite(value)]
        if others:
            apart = total < self.design.n_rows and not any(
                np.isfinite(
                    self.losses.column(j, *block) + self.losses.column(others[0], *block)
                ).any()
                for block in block_bounds(self.design.size, BLOCK)
            )
            return unequal_points(name, where, self.name(others[0]), apart=apart)
        levels = [self.design.levels.get(name) for name in ("repetition", "point")]
        if not all(level is not None and isinstance(level.codes, GridCodes) for level in levels):
            return missing_loss(name, where)
        return missing_loss(
            name, where, " If nothing was tested there, as in random splits, stack the array: "
            "log.stack(evaluation=('repetition', 'point')).dropna('evaluation', how='all').",
        )  # fmt: skip

    def label(self, result: Result, axes: Sequence[Axis] = ()) -> Table:
        """Label a result, in the kind of container of the input, with cautions about this log.

        It has a number for each column or pair, or for each combination of labels of some axes.
        Counts that are the same in all rows become attrs.
        """
        labels = self.pair_labels or self.labels
        empty = (result.caution & np.int64(Caution.NO_LOSSES)) != 0
        if axes:
            labels = labels.stack(axes)
        elif labels is self.labels and empty.any():
            self.refuse_empty(empty)
        result = add_cautions(result, self.find_cautions())
        columns, counts = separate_counts(result)
        found = members_of(int(np.bitwise_or.reduce(result.caution, axis=None)))
        cautions = dict(sentences_of(found, tuple(map(result.calls.get, found))))
        # First, because the text of a Dataset shows only some of its attrs.
        attrs = {"cautions": cautions, **facts_of(result, self.metadata), **counts, **self.attrs}
        return labels.table(replace(result, columns=columns), attrs)

    def find_cautions(self) -> Caution:
        """Collect cautions about the design that apply to any method."""
        cautions = self.cautions
        if not self.design.levels.keys() <= set(LEVELS):
            guesses = unrecognized_levels(self.design, self.used, crossed=self.crossed)
            if set(guesses.values()) - {"point"}:  # names of points change nothing
                cautions |= Caution.UNUSED_LEVEL
        several = "metrics" in self.metadata and has_several(self.metadata)
        named = several and ("metric" in self.used or names_metrics(self.labels))
        if self.metadata and not named:
            cautions |= cautions_of_metric(self.metadata)
        zero_one = self.zero_one if self.lazy is None else None
        if "point" not in self.design.levels and find_single_losses(self.design, zero_one).all():
            cautions |= Caution.ONE_EACH
        return cautions


def metrics_of_cells(log: Log) -> NDArray[Any] | None:
    """List the metric of each carried cell of an array of several metrics; None for other logs."""
    labels: Any = log.labels
    if not has_several(log.metadata) or not names_metrics(labels):
        return None
    at = np.unravel_index(labels.columns(0), labels.sizes)[labels.dims.index("metric")]
    names: NDArray[Any] = np.array(labels.coords["metric"]).astype(object)[at]
    return names


def names_metrics(labels: Any) -> bool:
    """Whether a carried dimension names the metric of each cell."""
    return "metric" in getattr(labels, "dims", ()) and "metric" in labels.coords


def take_flagged(table: Table, flag: str) -> Table:
    """Keep the model that a column marks; in a Dataset, the model of each carried cell."""
    if isinstance(table, xr.Dataset):
        return table.isel(model=table[flag].argmax("model")).drop_vars(flag)
    frame: Any = table
    kept: pd.DataFrame = frame[frame[flag]].drop(columns=flag)
    kept.attrs = dict(table.attrs)
    return kept
