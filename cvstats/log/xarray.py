"""xarray: levels are dimensions or coordinates, and every other dimension is carried."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from cvstats.core.cautions import Caution, flag_attrs, list_cautions
from cvstats.core.cells import Cells
from cvstats.core.design import LEVELS, SPLIT, Design, GridCodes, Level
from cvstats.core.loss_columns import LossColumns
from cvstats.core.results import Result
from cvstats.core.threads import block_bounds
from cvstats.core.types import IntArray
from cvstats.errors import LogError, listed
from cvstats.log.log import POINTS_ARE, Attrs, Axis, LazyArray, hide_losses, refuse_same_names
from cvstats.log.pandas import facts_about, index_of

SPARSE = ("sample", "outer", "fold", "source", "count")
"""Levels whose labels do not each contain every point."""

EVERY_FLAG = flag_attrs(tuple(Caution))
"""The meaning of all bits of cautions, whether or not they occur."""

IN_LOSS_UNITS = {
    "estimate", "se", "lower", "upper", "difference", "mean", "scale", "tau", "tau_lower",
    "tau_upper", "smallest_effect", "smallest_effect_limit", "err_cv", "err_ncv", "bias",
}  # fmt: skip


def level_dims(log: xr.DataArray, also: Sequence[object] = ()) -> tuple[Hashable, ...]:
    """Find the dimensions along which evaluations lie, in the order of the array.

    ``also`` are dimensions that were requested by name: a dimension of logs side by side, or two
    crossed dimensions.
    """
    check_sizes(log)
    found: set[Hashable] = set(log.dims).intersection(LEVELS)
    for name, coord in log.coords.variables.items():
        if name in LEVELS:
            if "model" in coord.dims:
                raise LogError(
                    f"the coordinate {name!r} lies along 'model', so it differs between models. "
                    f"Expected the same for all of them: models are compared on the same points "
                    f"in the same folds. Take one model: log.sel(model=…)."
                )
            found |= set(coord.dims)
    if not found and log.ndim == 1:
        found = set(log.dims)
    if not log.dims:
        raise LogError("this array is a single number. Expected a loss for each evaluation.")
    asked = {dim for dim in log.dims if dim in also}
    if found or len(asked) > 1:
        found |= asked
    else:
        like = next((dim for dim in log.dims if dim != "model"), "x")
        raise LogError(
            f"no dimension or coordinate of this array ({', '.join(map(str, log.dims))}) is a "
            f"level of a loss log. Expected one or more of {', '.join(LEVELS)}. Rename a "
            f"dimension, as in log.rename({{{like!r}: 'point'}}), or add a coordinate: "
            f"log.assign_coords(fold=('point', folds))."
        )
    return tuple(filter(found.__contains__, log.dims))


def no_numbers(log: xr.DataArray) -> LogError:
    """Make the error for an array that is not numeric."""
    name = "the log" if log.name is None else repr(log.name)
    return LogError(
        f"the losses of {name} are not numbers: their type is {log.dtype}. Expected one loss for "
        "each evaluation. Convert them with log.astype(float); if these are predictions, use "
        "cvstats.losses to compute losses from them."
    )


def to_matrix(log: xr.DataArray, dims: tuple[Hashable, ...]) -> NDArray[Any]:
    """Reshape the losses to evaluations by carried cells; a view if possible."""
    carried = tuple(dim for dim in log.dims if dim not in dims)
    ordered = log.dims == (*dims, *carried)
    values = (log if ordered else log.transpose(*dims, *carried)).values
    rows, width = math.prod(values.shape[: len(dims)]), math.prod(values.shape[len(dims) :])
    table = values.reshape(rows, width)
    return table.view(np.uint8) if table.dtype.kind == "b" else table


def in_memory(log: xr.DataArray, dims: tuple[Hashable, ...]) -> xr.DataArray:
    """Load lazy levels, which are checked before any loss is computed.

    ``log.chunk()`` makes coordinates lazy although they are in memory, so loading them costs
    nothing; it is done in this process, not on a cluster.
    """
    known = log.indexes
    lazy = {
        name: coord
        for name, coord in log.coords.variables.items()
        if name not in known and coord.chunks is not None and set(coord.dims) & set(dims)
    }
    if not lazy:
        return log
    levels = [name for name, coord in lazy.items() if set(coord.dims) <= set(dims)]
    loaded = {name: lazy[name].compute(scheduler="synchronous") for name in levels}
    return log.drop_vars([name for name in lazy if name not in levels]).assign_coords(loaded)


def to_design(
    log: xr.DataArray,
    logs: Sequence[xr.DataArray],
    dims: tuple[Hashable, ...],
    also: Sequence[object],
) -> tuple[Design, LossColumns, LazyArray | None]:
    """Lay out one array, or several of one model each; lazy losses stay lazy."""
    for each in logs:
        if each.dtype.kind not in "fiub":
            raise no_numbers(each)
    levels = levels_along(log, dims, also)
    dense = len(dims) > 1 and not set(SPARSE).isdisjoint(dims)
    if all(each.chunks is None for each in logs):
        losses = LossColumns(tuple(to_matrix(each, dims) for each in logs))
        return design_of(log, dims, levels, losses, dense), losses, None
    whole = logs[0]
    if len(logs) > 1:  # one model each, side by side
        bare = [one.drop_vars([name for name in one.coords if name not in one.indexes])
                for one in logs]  # fmt: skip
        models = pd.Index([one.name for one in logs], name="model", tupleize_cols=False)
        whole = xr.concat(bare, models, coords="minimal", compat="override")
    whole = whole.transpose(*dims, ...)
    shape, carried = whole.shape[: len(dims)], whole.shape[len(dims) :]
    nan_tells = whole.dtype.kind == "f" and (dense or len(unlabelled(levels)) > 0)
    crossed = log.attrs.get(POINTS_ARE) == "crossed"  # no point is missing in any source
    valid = assume_evaluated(dims, shape, levels) if nan_tells and not crossed else None
    design = Design(levels, math.prod(shape), valid, of_array=True)
    return design, hide_losses(math.prod(carried), LAZY), LazyArray(whole, dims, nan_tells)


def levels_along(
    log: xr.DataArray, dims: tuple[Hashable, ...], also: Sequence[object] = ()
) -> dict[str, Level]:
    """Find the levels of an array by name, and some more dimensions."""
    shape = tuple(map(log.sizes.__getitem__, dims))
    levels: dict[str, Level] = {}
    indexes = dict(log.indexes)
    for dim in dims:
        index = indexes.get(dim)
        if isinstance(index, pd.MultiIndex):
            for i, name in enumerate(index.names):
                axis = (dims.index(dim),)
                codes = np.asarray(index.codes[i])
                stored = codes if len(dims) == 1 else GridCodes(axis, shape, codes.astype(np.int32))
                levels[str(name)] = Level(index.levels[i], stored)
    for name in dict.fromkeys((*log.coords, *dims)):
        if str(name) not in levels and (name in LEVELS or name in log.coords or name in also):
            level = level_of(log, name, dims, shape, indexes.get(name))
            if level is not None:
                levels[str(name)] = level
    return levels


def design_of(
    log: xr.DataArray,
    dims: tuple[Hashable, ...],
    levels: Mapping[str, Level],
    losses: LossColumns,
    dense: bool,
) -> Design:
    """Make the design of an array in memory.

    If a level whose labels do not each contain every point, such as ``fold`` or ``source``, is a
    dimension among others, the array is a dense table in which NaN means not evaluated.
    """
    size = math.prod(map(log.sizes.__getitem__, dims))
    if dense or unlabelled(levels):
        valid = has_loss(losses, size)
        refuse_unlabelled(Design(levels, size), valid)
        if not valid.all():
            return Design(levels, size, valid, of_array=True)
    stacked = log.indexes.get(dims[0]) if len(dims) == 1 else None
    if isinstance(stacked, pd.MultiIndex) and all(name in stacked.names for name in levels):
        # The index has all levels.
        return Design(levels, size, facts=facts_about(stacked), of_array=True)
    return Design(levels, size, of_array=True)


def level_of(
    log: xr.DataArray,
    name: Hashable,
    dims: tuple[Hashable, ...],
    shape: tuple[int, ...],
    index: pd.Index | None,
) -> Level | None:
    """Read one coordinate as a level; None if it does not vary over the evaluations."""
    if name in dims and name not in log.coords:
        return Level(range(log.sizes[name]), GridCodes((dims.index(name),), shape))
    if isinstance(index, pd.MultiIndex):
        return None  # its levels have been read
    coord = log.coords.variables[name]
    along = tuple(filter(coord.dims.__contains__, dims))
    if not along or set(coord.dims) - set(dims):
        return None
    if coord.ndim == 1 and index is not None and index.is_unique and not index.hasnans:
        return Level(index, GridCodes((dims.index(along[0]),), shape))
    coord = coord.transpose(*along)
    codes, labels = factorize_sorted(coord)
    base = codes.astype(np.int32).reshape(coord.shape)
    return Level(labels, GridCodes(tuple(map(dims.index, along)), shape, base))


def factorize_sorted(coord: xr.Variable) -> tuple[NDArray[Any], Any]:
    """Assign numbers to labels in sorted order, as a MultiIndex does, if they can be sorted."""
    values: Any = None
    if coord.ndim == 1 and coord.dtype.kind in "MO":
        index = coord.to_index()  # arrays of NumPy have no time zones
        values = index if isinstance(index.dtype, pd.DatetimeTZDtype) else None
    if values is None:
        values = coord.values.reshape(-1)
        if not values.dtype.isnative:  # pandas requires native byte order
            values = values.astype(values.dtype.newbyteorder("="))
    try:
        return pd.factorize(values, sort=True)
    except TypeError:
        return pd.factorize(values)


def has_loss(losses: LossColumns, size: int) -> NDArray[np.bool_]:
    """Find the rows that hold a number in any column, among ``size`` rows."""
    here = np.empty(size, dtype=bool)
    for start, stop in block_bounds(size, 1 << 20, losses.width):
        here[start:stop] = ~losses.missing(start, stop).all(axis=1)
    return here


# --- lazy arrays ----------------------------------------------------------------------------------

LAZY = (
    "this array is lazy (dask), but this method needs individual losses. Load them into memory: "
    "log.compute(); cvstats.methods(log) lists what can be computed lazily. If moments are "
    "enough (friedman, nemenyi), aggregate first: cvstats.Moments.of_log(log)."
)

ONE_OF = ("fold", "source")
"""Levels in which a point has one label per repetition."""


def assume_evaluated(
    dims: tuple[Hashable, ...], shape: tuple[int, ...], levels: Mapping[str, Level]
) -> NDArray[np.bool_]:
    """Guess what was evaluated: every point once in each repetition, in a fold and a source.

    It determines only the shapes and names of results, and requirements on the levels.
    """
    size = math.prod(shape)
    free = [at for at, dim in enumerate(dims) if dim not in (*ONE_OF, *SPLIT)]
    where, here = np.indices(shape, sparse=True), np.ones(shape, dtype=bool)
    if free:
        points = math.prod(shape[at] for at in free)
        number = np.ravel_multi_index(
            np.ix_(*(range(shape[at]) for at in free)), [shape[at] for at in free]
        )
        number = np.expand_dims(number, [at for at in range(len(dims)) if at not in free])
        spread = [at for at, dim in enumerate(dims) if dim in ONE_OF]
        again = where[dims.index("repetition")] if "repetition" in dims else 0
        for i, at in enumerate(spread):  # one label cycles, the other repeats
            size = shape[at]
            label = number % size if i == 0 else number * size // max(1, points)
            if dims[at] == "fold":  # each repetition has its own folds
                label = (label + again * (number if i else number // size)) % size
            here &= where[at] == label
    here = here.reshape(-1)
    for name in unlabelled(levels):
        here &= levels[name].block(0, len(here)) >= 0
    return here


def unlabelled(levels: Mapping[str, Level]) -> list[str]:
    """List the levels that lack labels, if they must have them: nothing was tested there."""
    found = []
    for name in filter(LEVELS.__contains__, levels):
        stored = levels[name].codes
        base = stored.base if isinstance(stored, GridCodes) else np.asarray(stored)
        if base is not None and base.min(initial=0) < 0:
            found.append(name)
    return found


def refuse_unlabelled(design: Design, valid: NDArray[np.bool_]) -> None:
    """Refuse evaluations that lack a label."""
    for name in unlabelled(design.levels):
        lost = np.flatnonzero(valid & (design.levels[name].block(0, design.size) < 0))
        if len(lost):
            where = design.format_labels(int(lost[0]))
            raise LogError(
                f"level {name!r} has no label (NaN) for the loss at {where}. Expected a label for "
                f"every evaluation. Give it a label, or blank the loss: "
                f"log.where(log[{name!r}].notnull())."
            )


def check_sizes(log: xr.DataArray) -> None:
    """Refuse dask chunks of unknown size, such as those of ``losses[losses > 0]``."""
    dims = [dim for dim, size in log.sizes.items() if math.isnan(size)]
    if dims:
        raise LogError(
            f"the chunks of this array along {listed(map(repr, dims))} have unknown sizes "
            "(dask). Expected known chunk sizes: log = "
            "log.copy(data=log.data.compute_chunk_sizes())."
        )


# --- results --------------------------------------------------------------------------------------


def units_of(attrs: Mapping[Any, Any]) -> str | None:
    """Return the units from attrs if they are a string, as in the CF conventions."""
    units = attrs.get("units")
    return units if isinstance(units, str) else None


def name_coordinate(names: Sequence[Hashable]) -> Any:
    """Make the labels of a coordinate of the names of models: numbers, dates or strings.

    Tuples become strings, because a coordinate of tuples cannot be stored in a file.
    """
    if set(map(type, names)) <= {str} or any(isinstance(name, tuple) for name in names):
        return np.array([*map(str, names)])
    return pd.Index(names)


def describe_units(units: Mapping[Hashable, str]) -> str:
    """Explain why variables of a Dataset with different units are not compared."""
    (a, first), *rest = units.items()
    b, second = next(one for one in rest if one[1] != first)
    return (
        f"the models have different units: {a!r} has {first!r} and {b!r} has {second!r}. "
        "Expected models of the same quantity. Select their variables, as in "
        f"log[[{a!r}, …]]; or call interval, which does not compare models."
    )


@dataclass(frozen=True, eq=False)
class ArrayLabels:
    """Results over the carried dimensions, as a Dataset with a variable for each number."""

    models: Sequence[Hashable]
    dims: tuple[Hashable, ...]
    coords: Mapping[Hashable, Any]
    sizes: tuple[int, ...]
    model_dim: int | None
    units: str | None
    one_pair: bool = False
    not_compared: str = ""
    """Why the variables of a Dataset are not compared, in words, if their units differ."""

    @classmethod
    def of(cls, log: xr.DataArray, dims: tuple[Hashable, ...]) -> ArrayLabels:
        """Read the names and shape of the carried dimensions of a DataArray."""
        carried = tuple(dim for dim in log.dims if dim not in dims)
        coords = {
            name: log.coords[name]
            for name, coord in log.coords.variables.items()
            if set(coord.dims) <= set(carried)
        }
        at = carried.index("model") if "model" in carried else None
        one = log.coords.get("model")
        if at is None:
            models: list[Hashable] = [log.name if one is None or one.ndim else one.item()]
        elif "model" in log.coords:
            models = list(log.indexes["model"])
            if not log.indexes["model"].is_unique:
                raise LogError(
                    f"several models have the same name: {listed(map(repr, models))}. Expected "
                    "different names. Rename them: log.assign_coords(model=[…])."
                )
        else:
            models = list(range(log.sizes["model"]))
        sizes = tuple(map(log.sizes.__getitem__, carried))
        return cls(models, carried, coords, sizes, at, units_of(log.attrs))

    def with_models(self, units: Mapping[Hashable, str | None]) -> ArrayLabels:
        """Make the labels for a Dataset: its variables are the models, the first dimension."""
        models, every = list(units), {*units.values()}
        mixed = {model: one for model, one in units.items() if one is not None}
        coords = {**self.coords, "model": ("model", name_coordinate(models))}
        sizes = (len(models), *self.sizes)
        return ArrayLabels(
            models, ("model", *self.dims), coords, sizes, 0,
            every.pop() if len(every) == 1 else None,
            not_compared=describe_units(mixed) if len({*mixed.values()}) > 1 else "",
        )  # fmt: skip

    def columns(self, model: int) -> IntArray:
        """List the columns of one model: all its carried cells."""
        numbers = np.arange(int(np.prod(self.sizes, dtype=np.int64))).reshape(self.sizes)
        if self.model_dim is None:
            return numbers.reshape(-1)
        columns: IntArray = np.take(numbers, model, axis=self.model_dim).reshape(-1)
        return columns

    def name(self, column: int) -> str:
        """Name one carried cell by its labels."""
        if not self.dims:
            return "the log" if self.models[0] is None else repr(self.models[0])
        at = np.unravel_index(column, self.sizes)
        words = []
        for dim, i in zip(self.dims, at, strict=True):
            if dim == "model":
                label = self.models[int(i)]
            elif dim in self.coords and hasattr(self.coords[dim], "values"):
                label = self.coords[dim].values[int(i)]
            else:
                label = int(i)
            words.append(f"{dim}={label!r}" if not hasattr(label, "item") else f"{dim}={label}")
        return ", ".join(words)

    def may_be_empty(self) -> bool:
        """Return True: a carried cell without any loss is masked (land, or out of view)."""
        return bool(self.dims)

    def table(self, result: Result, attrs: Attrs) -> xr.Dataset:
        """Make a variable of each number, over the dimensions, with its units, and of cautions.

        Dask arrays already have their shape, and any caution may occur in them.
        """
        lazy = not isinstance(result.caution, np.ndarray)
        variables: dict[str, Any] = {}
        for name, values in {**result.columns, "caution": result.caution}.items():
            facts = {"units": self.units} if self.units and name in IN_LOSS_UNITS else {}
            if name == "caution":
                facts = EVERY_FLAG if lazy else flag_attrs(list_cautions(values))
            shaped = values if lazy else np.asarray(values).reshape(self.sizes)
            variables[name] = (self.dims, shaped, facts)
        refuse_same_names(variables, (*self.dims, *self.coords))
        of_files = {  # which can store neither None nor mappings
            name: json.dumps(fact, ensure_ascii=False) if isinstance(fact, Mapping) else fact
            for name, fact in attrs.items()
            if fact is not None
        }
        table = xr.Dataset(variables, coords=dict(self.coords), attrs=of_files)
        return table.squeeze("pair") if self.one_pair else table

    def stack(self, axes: Sequence[Axis]) -> ArrayLabels:
        """Make a dimension of each axis, before the others."""
        coords: dict[Hashable, Any] = {name: index_of(name, labels) for name, labels in axes}
        sizes = tuple(len(labels) for _, labels in axes)
        at = None if self.model_dim is None else self.model_dim + len(axes)
        return ArrayLabels(
            self.models, (*coords, *self.dims), {**self.coords, **coords}, (*sizes, *self.sizes),
            at, self.units, self.one_pair,
        )  # fmt: skip

    def without(self, dim: str, at: int) -> ArrayLabels:
        """Return the labels of one cell along a dimension."""
        axis = self.dims.index(dim)
        coords = {
            name: coord.isel({dim: at}) if dim in getattr(coord, "dims", ()) else coord
            for name, coord in self.coords.items()
            if name != dim
        }
        model = self.model_dim
        return replace(
            self, dims=self.dims[:axis] + self.dims[axis + 1 :], coords=coords,
            sizes=self.sizes[:axis] + self.sizes[axis + 1 :],
            model_dim=model if model is None or model < axis else model - 1,
        )  # fmt: skip

    def of_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> ArrayLabels:
        """Replace the models by a dimension ``pair`` with coordinates ``model`` and ``other``.

        Two logs of one model each have a single pair, which is not a dimension.

        Raises
        ------
        LogError
            If the log already has such a dimension: its losses are differences of models.
        """
        if "pair" in self.dims:
            raise LogError(
                "this log has a dimension 'pair', so its losses are already differences of "
                "models. Expected losses of models. Compare these: losses.cvci.compare(); or "
                "select one pair of the differences: log.isel(pair=0)."
            )
        rest = [i for i in range(len(self.dims)) if i != self.model_dim]
        dims = ("pair", *(self.dims[i] for i in rest))
        sizes = (len(pairs), *(self.sizes[i] for i in rest))
        coords = {
            name: coord
            for name, coord in self.coords.items()
            if name != "model" and set(getattr(coord, "dims", ())) <= set(dims)
        }
        coords |= {
            "model": ("pair", name_coordinate([a for a, _ in pairs])),
            "other": ("pair", name_coordinate([b for _, b in pairs])),
        }
        one = self.model_dim is None
        return ArrayLabels(self.models, dims, coords, sizes, None, self.units, one)

    def cells(self, found: Cells, attrs: Attrs) -> xr.Dataset:
        """Lay out count, mean and variance over the requested levels and the carried dimensions."""
        axes: Any = zip(found.levels, found.labels, strict=True)
        labels = self.stack(list(axes))
        refuse_same_names(("count", "mean", "var"), (*labels.dims, *labels.coords))
        mean, variance = (
            found.tabulate(values, np.nan).reshape(labels.sizes)
            for values in (found.location, found.variance)
        )
        count = found.tabulate(found.count, 0)
        units = {"units": self.units} if self.units else {}
        variables: dict[str, Any] = {
            "count": (found.levels, count), "mean": (labels.dims, mean, units),
            "var": (labels.dims, variance),
        }  # fmt: skip
        return xr.Dataset(variables, coords=dict(labels.coords), attrs=dict(attrs))
