"""A log as the maths sees it: a design, tables of losses, and the way back to labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core import chunked
from cvstats.core.cautions import Caution, list_cautions, sentences_of
from cvstats.core.chunked import Columns, Differences, Panels
from cvstats.core.design import Design
from cvstats.core.levels import Grid
from cvstats.core.moments import Moments
from cvstats.core.result import Result, separate_counts
from cvstats.core.threads import BLOCK, spans
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import MOST, LogError, listed, spelled
from cvstats.intervals.registry import METHODS, OF_SCORES
from cvstats.intervals.unused import one_each, unused

__all__ = ["Labels", "Log", "Table", "doubted", "facts_of", "refuse_same_names"]

Attrs = Mapping[str, Any]

TAKE_MEANS = ("conservative_z", "cv_t", "five_by_two", "friedman", "nemenyi")
"""Methods to which the mean of a split says as much as its losses."""

WINDOW = 1 << 20
"""Losses looked at together in search of masked cells."""
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


LEAST = 1e-146
"""The squares of smaller deviations are no normal floating-point numbers any more."""


@cache
def own_version() -> str:
    """Look up the version of the installed package."""
    return version("cvstats")


def facts_of(result: Result, noted: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Gather the attrs of a labelled result: what was done, what it covers, and by whom.

    ``noted`` are the attrs of the log, which may name its loss.
    """
    compared = result.attrs.get("interval_method")
    method = METHODS[str(compared or result.method)]
    facts: dict[str, Any] = {"method": result.method, **result.attrs}
    target = str(result.attrs.get("target", method.target))  # some methods have several
    target = f"difference between the models in: {target}" if compared else target
    facts |= {"target": target, "guarantee": result.attrs.get("guarantee", method.guarantee)}
    facts["reference"] = method.reference
    if isinstance(noted.get("loss"), str):
        facts["loss"] = noted["loss"]
    return facts | {"cvstats_version": own_version()}


def refuse_same_names(numbers: Iterable[str], carried: Iterable[Hashable]) -> None:
    """Refuse a dimension or coordinate that has the name of a number of the result."""
    both = sorted(set(numbers).intersection(carried), key=str)
    if both:
        raise LogError(
            f"the log carries a dimension or coordinate {both[0]!r}, and so is a number of the "
            f"result called. Expected another name. Rename yours: "
            f"log.rename({{{both[0]!r}: 'my_{both[0]}'}})."
        )


def doubted(result: Result, doubt: Caution) -> Result:
    """Add to a result what is doubtful about its log, and about the level that was asked for."""
    if result.attrs.get("interval_method", result.method) in TAKE_MEANS:
        doubt &= ~Caution.ONE_EACH
    if float(result.attrs.get("alpha", 0)) > 0.5:
        doubt |= Caution.LARGE_ALPHA
    losses = (result.caution & np.int64(Caution.NO_LOSSES)) == 0
    columns = dict(result.columns)
    if "n_points" in columns and not losses.all():
        columns["n_points"] = np.where(losses, columns["n_points"], 0)
    caution = np.where(losses, result.caution | int(doubt), result.caution)
    return replace(result, columns=columns, caution=caution)


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
    other : Labels, optional
        Where the panels hold two logs side by side, the names of the second one's columns.
    noted : mapping, optional
        The attrs of the container; some methods look there for what they need besides losses.
    used : sequence of str or None, optional
        Levels beyond those that all methods know which were asked for by name.
    complete : Design, optional
        Which evaluation each row is, before evaluations were left out: what was trained on.
    """

    design: Design
    panels: Panels
    labels: Labels
    attrs: Attrs = field(default_factory=dict)
    other: Labels | None = None
    noted: Mapping[Hashable, Any] = field(default_factory=dict)
    used: Sequence[str | None] = ()
    complete: Design | None = None

    def moments(self, by: Sequence[str], losses: Columns | None = None) -> Moments:
        """Compute moments by some levels, of the losses or of differences between them."""
        chosen = losses if losses is not None else self.panels
        found = chunked.moments(self.design, chosen, by)
        bad = ~(np.isfinite(found.mean).all(axis=0) & np.isfinite(found.m2).all(axis=0))
        if bad.any():
            self._refuse(bad, chosen)
        if losses is None:
            self._refuse_digits_lost(found)
        return found

    def columns(self, losses: Columns | None = None) -> Iterator[FloatArray | None]:
        """Give the columns whole, one at a time, their losses finite; None for a masked cell."""
        chosen = losses if losses is not None else self.panels
        gone = self._gone()
        if isinstance(losses, Differences):
            gone = gone[losses.left] | gone[losses.right]
        for j in range(chosen.width):
            values = None if gone[j] else chosen.column(j, 0, self.design.size)
            if values is not None:
                here = values if self.design.present is None else values[self.design.present]
                with np.errstate(over="ignore"):
                    finite = bool(np.isfinite(here @ here))
                if not finite:
                    self._refuse(np.arange(chosen.width) == j, chosen)
            yield values

    def name(self, column: int) -> str:
        """Name one column; where two logs stand side by side, say of which."""
        half = self.panels.width // 2
        if self.other is None or column < half:
            return self.labels.name(column)
        name = self.other.name(column - half)
        return "the second log" if name == "the log" else f"{name} of the second log"

    def _refuse(self, bad: Any, losses: Columns) -> None:
        """Name the first losses that are missing or infinite, unless whole columns are masked."""
        suspects = np.flatnonzero(bad)
        pairs = suspects[:, None]
        if isinstance(losses, Differences):
            pairs = np.column_stack([losses.left[suspects], losses.right[suspects]])
        gone = self._gone()
        self._refuse_empty(gone)
        for j in np.unique(pairs).tolist():
            if not gone[j]:
                rows, total = self._not_finite(j)
                if total:
                    raise self._words(j, rows, total)
        for pair in pairs.tolist():
            if not gone[pair].any():
                raise LogError(
                    f"the losses of {' or '.join(map(self.name, pair))} are too large to be "
                    f"squared. Expected numbers below 1e150. Divide them by a constant."
                )

    def _refuse_digits_lost(self, found: Moments) -> None:
        """Refuse losses whose squares are no numbers any more, and integers that no float holds."""
        largest = np.abs(found.mean).max(axis=0, initial=0.0)
        tiny = (largest > 0) & (largest < LEAST) & (found.m2.sum(axis=0) < LEAST**2)
        for j in np.flatnonzero(tiny).tolist():
            values = self.panels.column(j, 0, self.design.size)
            here = values if self.design.present is None else values[self.design.present]
            if here.min() < here.max():
                raise LogError(
                    f"the losses of {self.name(j)} are too small to be squared. Expected numbers "
                    f"above {LEAST:g}. Multiply them by a constant."
                )
        for j in np.flatnonzero(largest >= 2.0**53).tolist():
            if self.panels.find(j)[0].dtype.kind in "iu":
                raise LogError(
                    f"the losses of {self.name(j)} are whole numbers above 2^53, which lose their "
                    f"last digits here. Expected smaller ones. Subtract a constant first."
                )

    def _refuse_empty(self, masked: MaskArray) -> None:
        """Refuse a model without any loss beside one that has some: it is no masked cell."""
        models = self.labels.models
        gone = [bool(masked[self.labels.columns(model)].all()) for model in range(len(models))]
        if any(gone) and not all(gone):
            empty, full = spelled(models[gone.index(True)]), spelled(models[gone.index(False)])
            raise LogError(
                f"the models were not evaluated on the same points: model {empty} has no loss at "
                f"all (NaN everywhere), and {full} has some. Expected every model on every "
                f"evaluation. Leave that one out: losses.drop_sel(model={empty}), or "
                f"losses.drop_vars({empty}) of a Dataset."
            )

    def masked(self) -> IntArray:
        """Find the columns of carried cells in which every loss is missing."""
        if not self.labels.may_be_empty():
            return np.array([], dtype=np.int64)
        parts: list[IntArray] = []
        for table in self.panels.tables:
            left = np.arange(table.shape[1] if table.dtype.kind == "f" else 0)
            for start, stop in spans(self.design.size, max(1, WINDOW // max(1, table.shape[1]))):
                part = np.isnan(
                    table[start:stop] if len(left) == table.shape[1] else table[start:stop, left]
                )
                if self.design.present is not None:
                    part |= ~self.design.present[start:stop, None]
                left = left[part.all(axis=0)]
            parts.append(left + sum(before.shape[1] for before in self.panels.tables[: len(parts)]))
        return np.concatenate(parts)

    def _gone(self) -> MaskArray:
        """Mark the columns in which every loss is missing."""
        return np.isin(np.arange(self.panels.width), self.masked())

    def _not_finite(self, j: int) -> tuple[list[int], int]:
        """Find the first rows of a column that are not finite, and count them."""
        rows: list[int] = []
        total = 0
        for start, stop in spans(self.design.size, BLOCK):
            bad = ~np.isfinite(self.panels.column(j, start, stop))
            if self.design.present is not None:
                bad &= self.design.present[start:stop]
            total += int(bad.sum())
            if len(rows) < MOST:
                rows += [int(row) + start for row in np.flatnonzero(bad)[: MOST - len(rows)]]
        return rows, total

    def _words(self, j: int, rows: list[int], total: int) -> LogError:
        where = listed([self.design.place(row) for row in rows], total)
        row, name = rows[0], self.name(j)
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
                f"{where}, where {self.name(others[0])} has one. Expected every model on "
                f"every evaluation. Fill the gap, or pass missing='drop' to leave out each "
                f"evaluation that any model misses."
            )
        return LogError(
            f"the loss of {name} is missing (NaN) at {where}. Expected a number for every "
            f"evaluation. Fill the gap, or pass missing='drop' to leave these evaluations out."
            f"{self._untested()}"
        )

    def _untested(self) -> str:
        """Say how a table of random splits tells who was not tested in which of them."""
        levels = [self.design.levels.get(name) for name in ("repetition", "point")]
        if not all(level is not None and isinstance(level.codes, Grid) for level in levels):
            return ""
        return (
            " If nothing was tested there, as in random splits, say so: log.stack(evaluation="
            "('repetition', 'point')).dropna('evaluation', how='all')."
        )

    def label(self, result: Result) -> Table:
        """Label a result of the maths, in the shape of the container that came in."""
        self.refuse_scores(result)
        if (empty := (result.caution & np.int64(Caution.NO_LOSSES)) != 0).any():
            self._refuse_empty(empty)
        return self.labels.table(*self.completed(result))

    def label_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]], result: Result) -> Any:
        """Label a result for pairs of models, in the shape of the container that came in."""
        self.refuse_scores(result)
        return self.labels.pairs(pairs, *self.completed(result))

    def completed(self, result: Result) -> tuple[Result, Attrs]:
        """Add the doubts about this log, and move what all rows share to the attrs."""
        result = doubted(result, self.doubts())
        columns, counts = separate_counts(result)
        attrs = facts_of(result, self.noted) | counts | dict(self.attrs)
        attrs["cautions"] = sentences_of(list_cautions(result.caution))
        return replace(result, columns=columns), attrs

    def doubts(self) -> Caution:
        """Gather what the design makes doubtful, whatever the method."""
        doubt = Caution(0)
        guesses = unused(self.design, self.used).values()
        if any(level != "point" for level in guesses):  # the names of points change no number
            doubt |= Caution.UNUSED_LEVEL
        return doubt | Caution.ONE_EACH if one_each(self.design) else doubt

    def refuse_scores(self, result: Result) -> None:
        """Refuse methods for losses of points where the log holds one score for each split."""
        method = str(result.attrs.get("interval_method") or result.method)
        if self.noted.get("holds") == "scores" and method not in OF_SCORES:
            raise LogError(
                f"this log holds one score for each split, and {method} needs the losses of "
                f"single points. Expected a method for split scores: corrected_t (with "
                f"train_size=) or five_by_two; or predictions, see cvstats.read_predictions."
            )
