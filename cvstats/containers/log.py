"""A log as the maths sees it: a design, tables of losses, and the way back to labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats import chunked
from cvstats.blocks import BLOCK, spans
from cvstats.chunked import Columns, Differences, Panels
from cvstats.design import Design
from cvstats.errors import MOST, LogError, listed
from cvstats.intervals.registry import METHODS
from cvstats.moments import Moments
from cvstats.results import Result
from cvstats.types import IntArray

__all__ = ["Labels", "Log", "Table", "facts_of"]

Attrs = Mapping[Any, Any]  # of strings; pandas and xarray ask for wider and different types
Table: TypeAlias = pd.Series | pd.DataFrame | xr.Dataset


class Labels(Protocol):
    """How the columns of a log are called, and how results get their labels back."""

    @property
    def models(self) -> Sequence[Hashable]:
        """The names of the models; None for one that has no name."""

    def columns(self, model: int) -> IntArray:
        """List the columns of one model: one, or one for each cell of the carried dimensions."""

    def name(self, column: int) -> str:
        """Put one column in words, for messages."""

    def may_be_empty(self) -> bool:
        """Tell whether a column without any loss is a masked cell and not a mistake."""

    def table(self, result: Result, attrs: Attrs) -> Table:
        """Label a result that has a number for each column."""

    def pairs(
        self, pairs: Sequence[tuple[Hashable, Hashable]], result: Result, attrs: Attrs
    ) -> Any:
        """Label a result that has a number for each pair of models (and carried cell)."""

    def cells(self, found: Moments, attrs: Attrs) -> Any:
        """Label moments cell by cell."""


@cache
def own_version() -> str:
    """Look up the version of the installed package."""
    return version("cvstats")


def facts_of(result: Result) -> dict[str, Any]:
    """Gather the attrs of a labelled result: what was done, what it covers, and by whom."""
    compared = result.attrs.get("interval_method")
    method = METHODS[str(compared or result.method)]
    facts: dict[str, Any] = {"method": result.method, **result.attrs}
    target = f"difference between the models in: {method.target}" if compared else method.target
    facts |= {"target": target, "guarantee": method.guarantee}
    return facts | {"reference": method.reference, "cvstats_version": own_version()}


@dataclass(frozen=True, eq=False)
class Log:
    """A loss log, read.

    Parameters
    ----------
    design : Design
        Which evaluation each row is.
    panels : Panels
        The losses, rows by columns.
    labels : Labels
        The names of the columns and the shape of results.
    attrs : mapping
        Facts to add to every result, such as how many evaluations were left out.
    """

    design: Design
    panels: Panels
    labels: Labels
    attrs: Attrs = field(default_factory=dict)

    def moments(self, by: Sequence[str], losses: Columns | None = None) -> Moments:
        """Compute moments by some levels, of the losses or of differences between them."""
        chosen = losses if losses is not None else self.panels
        found = chunked.moments(self.design, chosen, by)
        bad = ~(np.isfinite(found.mean).all(axis=0) & np.isfinite(found.m2).all(axis=0))
        if bad.any():
            self._refuse(bad, chosen)
        return found

    def _refuse(self, bad: Any, losses: Columns) -> None:
        """Name the first losses that are missing or infinite, unless whole columns are masked."""
        suspects = np.flatnonzero(bad)
        if isinstance(losses, Differences):
            suspects = np.unique(np.concatenate([losses.left[suspects], losses.right[suspects]]))
        for j in suspects:
            rows, total, present = self._not_finite(int(j))
            if total == present and self.labels.may_be_empty():
                continue
            if total:
                raise self._words(int(j), rows, total)
            raise LogError(
                f"the losses of {self.labels.name(int(j))} are too large to be squared. "
                f"Expected numbers below 1e150. Divide them by a constant."
            )

    def _not_finite(self, j: int) -> tuple[list[int], int, int]:
        """Find the first rows of a column that are not finite; count these, and all its rows."""
        rows: list[int] = []
        total = present = 0
        for start, stop in spans(self.design.size, BLOCK):
            values = self.panels.column(j, start, stop)
            bad = ~np.isfinite(values)
            if self.design.present is not None:
                bad &= self.design.present[start:stop]
                present += int(self.design.present[start:stop].sum())
            else:
                present += stop - start
            total += int(bad.sum())
            if len(rows) < MOST:
                rows += [int(row) + start for row in np.flatnonzero(bad)[: MOST - len(rows)]]
        return rows, total, present

    def _words(self, j: int, rows: list[int], total: int) -> LogError:
        """Put into words which losses are infinite or missing, and what to do."""
        where = listed([self.design.place(row) for row in rows], total)
        row, name = rows[0], self.labels.name(j)
        values = [self.panels.column(i, row, row + 1)[0] for i in range(self.panels.width)]
        if np.isinf(values[j]):
            return LogError(
                f"the loss of {name} is infinite at {where}. Expected finite numbers. An "
                f"infinite loss usually comes from log(0): clip the predicted probabilities."
            )
        others = [i for i, value in enumerate(values) if np.isfinite(value)]
        if others:
            return LogError(
                f"the models were not evaluated on the same points: {name} has no loss (NaN) at "
                f"{where}, where {self.labels.name(others[0])} has one. Expected every model on "
                f"every evaluation. Fill the gap, or pass missing='drop' to leave out each "
                f"evaluation that any model misses."
            )
        return LogError(
            f"the loss of {name} is missing (NaN) at {where}. Expected a number for every "
            f"evaluation. Fill the gap, or pass missing='drop' to leave these evaluations out."
        )

    def label(self, result: Result) -> Table:
        """Label a result of the maths, in the shape of the container that came in."""
        return self.labels.table(result, facts_of(result) | dict(self.attrs))

    def label_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]], result: Result) -> Any:
        """Label a result for pairs of models, in the shape of the container that came in."""
        return self.labels.pairs(pairs, result, facts_of(result) | dict(self.attrs))
