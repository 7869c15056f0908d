"""A level of a log: its labels, and which of them each row has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvstats.types import Labels

__all__ = ["Codes", "Grid", "Level", "frozen"]

Codes = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Grid:
    """Codes along some axes of an array of evaluations, repeated along the others.

    Without ``base`` the code is the position along the one axis.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    base: NDArray[np.int32] | None = None

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Make the codes of some rows."""
        if self.axes == tuple(range(len(self.shape))):
            whole = self.base
            return np.arange(rows.start, rows.stop) if whole is None else whole.reshape(-1)[rows]
        every = np.arange(rows.start, rows.stop)
        at = [every // math.prod(self.shape[axis + 1 :]) % self.shape[axis] for axis in self.axes]
        return at[0] if self.base is None else self.base[tuple(at)]


@dataclass(frozen=True, eq=False)
class Level:
    """One level: its labels, and for each row the position of its label (-1: none)."""

    labels: Labels
    codes: Codes | Grid

    def block(self, start: int, stop: int) -> NDArray[np.int32]:
        """Take the codes of some rows, read-only and of one type."""
        return frozen(self.codes[start:stop].astype(np.int32, copy=False))


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Show the same memory read-only: kernels are compiled once, not twice."""
    view = values.view()
    view.flags.writeable = False
    return view
