"""The losses of an array that is still to be computed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from cvstats.containers.cells import CellPanels
from cvstats.containers.lazy.evaluated import Layout, assumed_rows, design_at
from cvstats.containers.lazy.naming import token_of
from cvstats.core.design import LEVELS, Design, GridCodes, Level
from cvstats.errors import LogError, listed

__all__ = ["LazyPanels", "check_sizes"]

LAZY = (
    "this array is lazy (dask), and this needs its losses one by one. Lazily there are methods "
    "for the moments of cells (wald, naive, cv_t, quadratic, corrected_t, out_of_source, "
    "clustered, decompose, moments, compare). Expected losses in memory. Load them first: "
    "log.compute(). If cells are enough (friedman, nemenyi), sum them up: "
    "cvstats.Moments.of_log(log)."
)


class LazyPanels(CellPanels):
    """Losses by chunks, evaluations before carried cells, and how the evaluations lie.

    ``nan_tells`` says that NaN marks what was not evaluated, and ``drop`` that an evaluation is
    left out if it is missing for any model. In both cases it is for the losses to tell what
    there is. ``paired`` says that these are differences of two models.
    """

    def __init__(
        self,
        log: xr.DataArray,
        dims: tuple[Hashable, ...],
        levels: Mapping[str, Level],
        taking: str,
        *,
        dense: bool,
    ) -> None:
        carried = tuple(dim for dim in log.dims if dim not in dims)
        super().__init__(math.prod(log.sizes[dim] for dim in carried), LAZY)
        shape = tuple(log.sizes[dim] for dim in dims)
        own = {
            "array": log.transpose(*dims, *carried),
            "dims": dims,
            "layout": Layout(levels, dims, shape, taking),
            "nan_tells": log.dtype.kind == "f" and (dense or any(map(gaps, levels.items()))),
            "drop": False,
            "paired": False,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def dropping(self) -> LazyPanels:
        """Leave out what is missing for any model."""
        return self._but("drop")

    def of_pairs(self) -> LazyPanels:
        """Take the losses for differences of two models."""
        return self._but("paired")

    def _but(self, flag: str) -> LazyPanels:
        same = LazyPanels.__new__(LazyPanels)
        for name, value in (vars(self) | {flag: True}).items():
            object.__setattr__(same, name, value)
        return same

    @cached_property
    def token(self) -> str:
        """A name for the losses and the labels along them; how they are read is no part of it."""
        data, names = self.array.data, self.names([slice(None)] * self.array.ndim)
        return token_of(data.name, data.chunks, self.dims, names)

    @cached_property
    def layout_token(self) -> str:
        """A name for how the evaluations lie: every level, its labels and codes."""
        return token_of(self.layout)

    @property
    def told_later(self) -> bool:
        """Whether what was evaluated is known when the losses are, and not before."""
        return self.nan_tells or self.drop

    def design(self) -> Design:
        """Make the design, as far as it is known."""
        layout = self.layout
        if self.nan_tells:
            return design_at(layout, assumed_rows(layout))
        return Design(layout.levels, math.prod(layout.shape), taking=layout.taking)

    def names(self, here: Sequence[slice]) -> list[tuple[Hashable, Any]]:
        """Name each dimension and its labels within a chunk."""
        return [
            (dim, self.array.indexes[dim][part] if dim in self.array.indexes
             else range(self.array.sizes[dim])[part])
            for dim, part in zip(self.array.dims, here, strict=True)
        ]  # fmt: skip

    array: xr.DataArray
    dims: tuple[Hashable, ...]
    layout: Layout
    nan_tells: bool
    drop: bool
    paired: bool


def gaps(level: tuple[str, Level]) -> bool:
    """Whether a level lacks labels: nothing was tested there."""
    name, (stored) = level[0], level[1].codes
    base = stored.base if isinstance(stored, GridCodes) else np.asarray(stored)
    return name in LEVELS and base is not None and int(base.min(initial=0)) < 0


def check_sizes(log: xr.DataArray) -> None:
    """Refuse chunks of dask that have no known size, as those of ``losses[losses > 0]``."""
    dims = [dim for dim, size in log.sizes.items() if math.isnan(size)]
    if dims:
        raise LogError(
            f"the chunks of this array along {listed(map(repr, dims))} have no known size (dask). "
            f"Expected sizes that are known before the losses are. Type "
            f"log = log.copy(data=log.data.compute_chunk_sizes())."
        )
