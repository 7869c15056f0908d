"""pandas Series and DataFrame, whose index levels are the levels of the log."""

from __future__ import annotations

import math
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cvstats.core.cautions import label_cautions
from cvstats.core.cells import Cells
from cvstats.core.design import LEVELS, Design, GridCodes, Level
from cvstats.core.kernels import FEW
from cvstats.core.loss_columns import LossColumns
from cvstats.core.results import Result
from cvstats.core.types import IntArray, Labels
from cvstats.errors import LogError, is_number, listed, spelled
from cvstats.log.display import ResultFrame
from cvstats.log.log import Attrs, Axis, too_many_digits
from cvstats.log.tables import suggest_level

MOST_REMEMBERED = 64
"""Maximum number of cached indexes, or slices of them; the least recently used goes first."""

MOST_BYTES = 1 << 25
"""Maximum memory of the cache, without its last entry."""

WHOLE = 1 << 16
"""Up to this number, all codes are compared to detect changes."""

SAMPLE = 1024
"""Number of evenly spaced codes that are compared in a longer index."""


@dataclass(eq=False)
class Remembered:
    """Cached checks and counts of an index, and the codes they are valid for."""

    marks: list[int]
    facts: dict[Any, Any]
    owners: list[weakref.ref[NDArray[Any]]]
    counted: tuple[int, int] = 0, 0

    def count_bytes(self) -> int:
        """Count the bytes of the arrays among the facts; anew only if there are more facts."""
        if self.counted[0] != len(self.facts):
            self.counted = len(self.facts), count_bytes(self.facts)
        return self.counted[1]


_remembered: OrderedDict[tuple[Any, ...], Remembered] = OrderedDict()
"""The cache, keyed by the memory of the index codes and dropped with it."""


def owner(codes: NDArray[Any]) -> NDArray[Any]:
    """Find the array that owns the memory of a view."""
    while isinstance(codes.base, np.ndarray):
        codes = codes.base
    return codes


def facts_about(index: pd.MultiIndex) -> dict[Any, Any]:
    """Look up the cache of this index; views share its memory, and so its cache.

    pandas never changes the codes of an index, but other code may hold the array behind them and
    write to it. Therefore codes are compared to their earlier values: all of them up to `WHOLE`,
    and a sample of longer ones, which detects an array that was refilled or moved but may miss
    single codes.
    """
    codes = list(map(np.asarray, index.codes))
    key: tuple[Any, ...] = tuple(index.names), tuple(map(len, index.levels))
    marks = []
    for part in codes:
        key += (part.ctypes.data, part.size, part.dtype.str, part.strides)
        some = part if part.size <= WHOLE else part[:: part.size // SAMPLE]
        marks.append(zlib.crc32(some.tobytes()))
    known = _remembered.get(key)
    if known is None or known.marks != marks:

        def forget(_: object) -> None:
            _remembered.pop(key, None)

        make_room()
        owners = [weakref.ref(owner(part), forget) for part in codes]
        known = _remembered[key] = Remembered(marks, {}, owners)
    _remembered.move_to_end(key)
    return known.facts


def make_room() -> None:
    """Drop the least recently used entries of a cache that is too large."""
    kept = list(_remembered.values())  # an index may be garbage-collected, and dropped, meanwhile
    sizes = [known.count_bytes() for known in kept]
    total = sum(sizes)
    for size in sizes:
        if total <= MOST_BYTES and len(_remembered) < MOST_REMEMBERED:
            break
        _remembered.popitem(last=False)
        total -= size


def count_bytes(thing: Any) -> int:
    """Count the bytes of the arrays in an object."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(map(count_bytes, thing.values()))
    if isinstance(thing, tuple | list):
        return sum(map(count_bytes, thing))
    return sum(map(count_bytes, vars(thing).values())) if is_dataclass(thing) else 0


def design_of(index: pd.Index, also: Sequence[object] = ()) -> Design:
    """Find the levels of an index by name: a known one, or two that were requested (``also``).

    Codes of a MultiIndex are used directly, without copying, sorting or hashing.
    """
    names = list(index.names)
    if isinstance(index, pd.MultiIndex):
        levels: dict[str, Level] = {}
        for name, labels, codes in zip(names, index.levels, index.codes, strict=True):
            if name is None:
                continue
            if names.count(name) > 1:
                raise LogError(f"two index levels are called {name!r}. Expected different names.")
            levels[str(name)] = Level(labels, np.asarray(codes))
        asked = len(also) > 1 and levels.keys() >= set(also)
        if not asked and levels.keys().isdisjoint(LEVELS):
            raise unknown_levels(names)
        return Design(levels, len(index), facts=facts_about(index))
    if index.name is None:
        return Design({}, len(index))
    if isinstance(index, pd.CategoricalIndex):
        level = Level(index.categories, np.asarray(index.codes))
    elif index.is_unique and not index.hasnans:
        level = Level(index, GridCodes((0,), (len(index),)))
    else:
        found, labels = pd.factorize(index)
        level = Level(labels, found)
    return Design({str(index.name): level}, len(index))


def unknown_levels(names: list[Hashable]) -> LogError:
    """Make the error for an index without a known level."""
    have = ", ".join(map(str, names))
    first = next((name for name in names if name is not None), None)
    if first is None:
        way = f"Name them: log.rename_axis(['fold', 'point']) for {len(names)} levels like these."
    else:
        level = suggest_level(str(first)) or "fold"
        way = (
            f"Rename a level, as in log.rename_axis(index={{{spelled(first)}: {level!r}}}), or "
            f"call cvstats.as_log(log.reset_index(), {level}={spelled(first)}, …)."
        )
    return LogError(
        f"none of the index levels ({have}) is a level of a loss log. Expected one or more "
        f"of {', '.join(LEVELS)}. {way}"
    )


OTHERS = {
    "c": "abs(log)",
    "m": "log.dt.total_seconds()",
    "M": "(log - log.min()).dt.total_seconds()",
}
"""How to convert values of other types to numbers."""


def numbers(column: pd.Series) -> NDArray[Any]:
    """Return the numbers of a column, without a copy if pandas stores plain numbers."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        values = column.to_numpy()
        return values.view(np.uint8) if dtype.kind == "b" else values
    known = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    if known and not pd.api.types.is_complex_dtype(dtype):
        if pd.api.types.is_integer_dtype(dtype) and column.abs().max() >= 2**53:
            raise too_many_digits("the log" if column.name is None else repr(column.name))
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.infer_dtype(column, skipna=True) == "decimal":  # as databases write them
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    strays = (value for value in column if not is_number(value) and value is not None)
    stray = next(strays, None)
    first, way = column.iloc[0], "log.astype(float)"
    if stray is not None:
        first, way = stray, "pd.to_numeric"
    way = OTHERS.get(getattr(dtype, "kind", "O"), way)
    name = "the log" if column.name is None else repr(column.name)
    raise LogError(
        f"the losses of {name} are not numbers: their type is {dtype}, the first is "
        f"{spelled(first)}. Expected one loss for each evaluation. Convert them with {way}; if "
        "these are predictions, use cvstats.losses to compute losses from them; if this column "
        "is not a model, drop it."
    )


def read_columns(log: pd.Series | pd.DataFrame) -> LossColumns:
    """Return the losses as stored by pandas: one block if possible, otherwise columns."""
    if isinstance(log, pd.Series):
        return LossColumns((numbers(log)[:, None],))
    first, *others = set(log.dtypes)
    if not others and isinstance(first, np.dtype) and first.kind in "fiu" and log.shape[1] > 1:
        # One row shows whether there is a single block: pandas then returns views without copying.
        head = log.iloc[:1] if log.size > FEW else None
        if head is None or np.shares_memory(head.to_numpy(), head.iloc[:, 0].to_numpy()):
            return LossColumns((log.to_numpy(),))
    return LossColumns(tuple(numbers(log.iloc[:, j])[:, None] for j in range(log.shape[1])))


NAMELESS = "loss"
"""The row label of a Series without a name."""

AS_SERIES = ("decompose",)
"""Methods that return a Series of numbers for a Series, not a table with one row."""


METRICS_IN_COLUMNS = (
    "the columns have the level 'metric', so different metrics would be compared. Expected "
    "metrics in the index, and a column for each model: log.stack('metric')."
)


@dataclass(frozen=True, eq=False)
class FrameLabels:
    """One row per model, also for a Series."""

    models: Sequence[Hashable]
    columns_axis: pd.Index | None
    dims: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    coords: Mapping[str, pd.Index] = field(default_factory=dict)
    not_compared: str = ""
    """Why the columns are not compared, in words, if they are metrics."""

    @classmethod
    def of(cls, log: pd.Series | pd.DataFrame) -> FrameLabels:
        """Name the models of a log, without duplicates."""
        if isinstance(log, pd.Series):
            return cls([log.name], None)
        if log.shape[1] == 0:
            raise LogError("the log has no columns. Expected a column of losses for each model.")
        if not log.columns.is_unique:
            doubled = log.columns[log.columns.duplicated()].unique()
            raise LogError(
                f"several columns are called {listed(map(repr, doubled))}. Expected one column "
                f"for each model. Rename them."
            )
        axis = log.columns
        metrics = "metric" in axis.names and len(axis.unique("metric")) > 1
        return cls(list(axis), axis, not_compared=METRICS_IN_COLUMNS if metrics else "")

    def columns(self, model: int) -> IntArray:
        """Return the only column of a model."""
        return np.array([model])

    def name(self, column: int) -> str:
        """Name a column."""
        name = self.models[column]
        return "the log" if name is None else repr(name)

    def may_be_empty(self) -> bool:
        """Return False: a column without losses is a mistake."""
        return False

    def table(self, result: Result, attrs: Attrs) -> pd.Series | pd.DataFrame:
        """Make a table of the columns of the method, with the cautions as the last column."""
        if self.columns_axis is not None:
            index = named_rows(self.columns_axis)
        elif result.method in AS_SERIES:
            numbers = {name: values[0] for name, values in result.columns.items()}
            row = pd.Series(numbers, name=self.models[0])
            row.attrs = dict(attrs)
            return row
        else:
            name = NAMELESS if self.models[0] is None else self.models[0]
            if isinstance(name, str):  # cached, as pandas is slow at making an index of strings
                index = text_index((name,), "model").view()
            else:
                index = index_of("model", [name])
        if len(result.caution) < MOST_REMEMBERED:
            labels = caution_labels(tuple(result.caution.tolist()))
        else:
            flags, at = np.unique(result.caution, return_inverse=True)
            labels = caution_labels(tuple(flags.tolist())).take(at)
        table = ResultFrame(dict(enumerate([*result.columns.values(), labels])), index=index)
        # Named at the end, because a cached index of names costs nothing.
        table.columns = text_index((*result.columns, "caution")).view()
        table.attrs = dict(attrs)
        return table

    def stack(self, axes: Sequence[Axis]) -> FrameLabels:
        """Make an index level of each axis, the models last."""
        parts = [index_of(*axis) for axis in axes]
        models = [] if self.columns_axis is None else [named_rows(self.columns_axis)]
        sizes = list(map(len, [*parts, *models]))
        if len(sizes) == 1:
            return FrameLabels(self.models, parts[0])
        at = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        names: list[Hashable] = []
        levels: list[Any] = []
        codes: list[Any] = []
        for part, rows in zip((*parts, *models), at, strict=True):
            whole = part if isinstance(part, pd.MultiIndex) else pd.MultiIndex.from_arrays([part])
            names += whole.names
            levels += whole.levels
            codes += map(itemgetter(rows), map(np.asarray, whole.codes))
        index = pd.MultiIndex(levels=levels, codes=codes, names=names)
        return FrameLabels(self.models, index)

    def of_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> FrameLabels:
        """Make a row for each pair, indexed by (model, other)."""
        make = pair_index
        if len(pairs) < MOST_REMEMBERED and set(map(type, chain(*pairs))) == {str}:
            make = remember_pair_index
        return FrameLabels(self.models, make(tuple(pairs)).view())

    def cells(self, found: Cells, attrs: Attrs) -> pd.DataFrame:
        """Make a row for each cell (of each model) with count, mean and variance."""
        index = cell_index(found)
        count, tables = found.count.astype(np.int64), []
        for mean, variance in zip(found.location.T, found.variance.T, strict=True):
            data = {"count": count, "mean": mean, "var": variance}
            tables.append(pd.DataFrame(data, index=index))
        if self.columns_axis is None:
            table = tables[0]
        elif index is None:
            table = pd.concat(tables, ignore_index=True).set_axis(self.columns_axis)
        else:
            table = pd.concat(tables, keys=range(len(tables)))
            table.index = under_models(self.columns_axis, table.index)
        table.attrs = dict(attrs)
        return table


@dataclass(frozen=True, eq=False)
class MetricLabels(FrameLabels):
    """One row per metric and model: the metrics of a frame are carried, as those of an array.

    The columns are models by metrics. Results are stacked along ``axes``, before the metrics.
    """

    axes: Sequence[Axis] = ()

    @classmethod
    def of_metrics(cls, labels: Any, metrics: Sequence[Hashable]) -> MetricLabels:
        """Add the names of metrics to `FrameLabels`."""
        coords = {"metric": index_of("metric", metrics)}
        sizes = (len(labels.models), len(metrics))
        return cls(labels.models, labels.columns_axis, ("model", "metric"), sizes, coords)

    def columns(self, model: int) -> IntArray:
        """List the columns of a model, one for each metric."""
        number = self.sizes[1]
        return np.arange(model * number, (model + 1) * number)

    def name(self, column: int) -> str:
        """Name a column."""
        model, metric = divmod(column, self.sizes[1])
        return f"{super().name(model)} at metric={spelled(self.coords['metric'][metric])}"

    def table(self, result: Result, attrs: Attrs) -> pd.Series | pd.DataFrame:
        """Make a table whose rows are metrics by models."""
        labels, order = self.rows(len(result.caution))
        numbers = {name: np.asarray(part)[order] for name, part in result.columns.items()}
        return labels.table(replace(result, columns=numbers, caution=result.caution[order]), attrs)

    def rows(self, size: int) -> tuple[FrameLabels, IntArray]:
        """Return the labels of the rows of a table, and the positions of their numbers."""
        metrics = self.coords["metric"]
        models = 1 if self.columns_axis is None else len(self.columns_axis)
        at = np.arange(size).reshape(-1, models, len(metrics)).swapaxes(1, 2)
        labels = FrameLabels(self.models, self.columns_axis)
        return labels.stack([*self.axes, ("metric", list(metrics))]), at.reshape(-1)

    def stack(self, axes: Sequence[Axis]) -> MetricLabels:
        """Make an index level of each axis, before those of metrics and models."""
        return replace(self, axes=axes)

    def of_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> MetricLabels:
        """Make a row for each metric and pair."""
        return replace(self, columns_axis=super().of_pairs(pairs).columns_axis)

    def cells(self, found: Cells, attrs: Attrs) -> pd.DataFrame:
        """Make a row for each cell of each metric and model."""
        labels, order = self.rows(found.mean.shape[1])
        return labels.cells(found.take_columns(order), attrs)


def under_models(models: pd.Index, cells: pd.Index) -> pd.MultiIndex:
    """Replace the numbers of models, the first level of an index, by their names."""
    levels: list[Any] = [models]
    codes: list[Any] = [np.arange(len(models))]
    names: list[Any] = ["model" if models.name is None else models.name]
    if isinstance(models, pd.MultiIndex):
        levels, codes, names = list(models.levels), list(models.codes), list(models.names)
    table = cells.to_frame(index=False)
    number, rest = table.iloc[:, 0].to_numpy(), pd.MultiIndex.from_frame(table.iloc[:, 1:])
    levels += list(rest.levels)
    codes = [*(part[number] for part in codes), *rest.codes]
    return pd.MultiIndex(levels=levels, codes=codes, names=[*names, *rest.names])


def cell_index(found: Cells) -> pd.Index | None:
    """Make an index of the labels of cells; None if there are no levels."""
    if not found.levels:
        return None
    parts = [
        pd.Index(list(labels) if isinstance(labels, tuple) else labels).take(codes)
        for labels, codes in zip(found.labels, found.codes.T, strict=True)
    ]
    if len(parts) == 1:
        return parts[0].rename(found.levels[0])
    return pd.MultiIndex.from_arrays(parts, names=list(found.levels))


def index_of(name: Hashable, labels: Sequence[Hashable]) -> pd.Index:
    """Make an index level of labels, which may be tuples."""
    return pd.Index(list(labels), name=name, tupleize_cols=False)


def as_index(labels: Labels, *, plain: bool = False) -> pd.Index:
    """Make an index of labels, with one entry per label even for tuples.

    With ``plain``, they have the order and the functions of their own type, such as those of dates,
    also if they are categories or come from Arrow.
    """
    if isinstance(labels, range):
        return pd.RangeIndex(labels.start, labels.stop, labels.step)
    index = labels if isinstance(labels, pd.Index) else pd.Index(list(labels), tupleize_cols=False)
    if not plain:
        return index
    if isinstance(index.dtype, (pd.CategoricalDtype, pd.ArrowDtype)):
        index = pd.Index(index.to_numpy(), tupleize_cols=False)
    return index.infer_objects()


def named_rows(models: pd.Index) -> pd.Index:
    """Name the index of rows ``model``, unless it has a name."""
    nameless = models.nlevels == 1 and models.name is None
    return models.rename("model") if nameless else models.view()


@lru_cache(maxsize=MOST_REMEMBERED)
def text_index(texts: tuple[str, ...], name: str | None = None) -> pd.Index:
    """Make an index of strings; callers take views of it."""
    return pd.Index(list(texts), name=name)


def pair_index(pairs: tuple[tuple[Hashable, Hashable], ...]) -> pd.MultiIndex:
    """Make an index of pairs of models."""
    sides = [pd.Index(names, tupleize_cols=False) for names in zip(*pairs, strict=True)]
    return pd.MultiIndex.from_arrays(sides, names=["model", "other"])


remember_pair_index = lru_cache(maxsize=MOST_REMEMBERED)(pair_index)
"""For pairs of strings, of which pandas is slow at making an index; callers take views of it."""


@lru_cache(maxsize=MOST_REMEMBERED)
def caution_labels(flags: tuple[int, ...]) -> Any:
    """Make an array of the labels of some flags; callers copy it."""
    return pd.Series([label_cautions(row) for row in flags]).array


def names_of_frame(losses: object) -> list[Hashable] | None:
    """Name the levels of the index of a DataFrame; None of anything else."""
    return list(losses.index.names) if isinstance(losses, pd.DataFrame) else None


def add_levels(frame: pd.DataFrame, levels: Mapping[str, Any]) -> pd.DataFrame:
    """Add levels to the index of a frame."""
    more = [pd.Index(labels, name=name) for name, labels in levels.items()]
    return frame.set_index(more, append=True) if more else frame
