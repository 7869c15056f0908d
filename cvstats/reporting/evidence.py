"""The numbers of a summary: the interval of each model and cell, and which are tied."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.comparisons.best_set import best_set
from cvstats.comparisons.compare import compare
from cvstats.core.cautions import Caution
from cvstats.core.orientation import TARGET, targets_of
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.formatting import result_frame, write_labels
from cvstats.recommend import interval

Cell: TypeAlias = tuple[Hashable, ...]
"""The labels of a carried cell; none where nothing is carried."""

MOST_TESTS = 200_000
"""More pairs of models in several carried cells are not tested."""
MOST_PAIRS = 20_000
"""Of more pairs of models in one cell, those of the best model are computed."""
DRAWS, FEWEST_DRAWS = 36_000_000, 999
"""Draws for the set of best models times the square of their number; and the fewest draws."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The lead of each model over each other one, in each cell: positive is better."""

    lead: FloatArray
    lower: FloatArray
    upper: FloatArray
    p: FloatArray

    @classmethod
    def empty(cls, cells: int, models: int) -> Pairs:
        """Make room for all pairs; NaN is what was not compared."""
        return cls(*(np.full((cells, models, models), np.nan) for _ in range(4)))


@dataclass(eq=False)
class Evidence:
    """Intervals and comparisons of a log, each computed when first asked for, and once."""

    facts: LogFacts
    alpha: float
    seed: int
    method: str | None = None
    """The interval by name, of models and of differences; None for those that fit the log."""
    refusals: dict[str, str] = field(default_factory=dict)
    """What could not be computed, and the reason."""

    @property
    def log(self) -> Any:
        """The log with its facts, as plots accept it."""
        return self.facts

    # --- tables -----------------------------------------------------------------------------------

    @cached_property
    def intervals(self) -> Any:
        """The interval of each model."""
        return self.facts.apply(interval, method=self.method, alpha=self.alpha)

    @cached_property
    def comparison(self) -> Any:
        """All pairs of models, with limits and p-values for all of them together.

        By max-t; by Šidák's method in several cells, of very many models, where standard errors
        share no covariance, and where few points decide between models that are right or wrong.
        None if there is no answer.
        """
        if len(self.models) < 2:
            return None
        if self.n_tests > MOST_TESTS and len(self.cells) > 1:
            words = f"{self.n_tests:,} tests are more than anyone reads."
            return self.refuse("comparison", words)
        against_best = len(self.cells) == 1 and self.n_tests > MOST_PAIRS
        if len(self.models) > 2 and len(self.cells) == 1 and not against_best:
            options = {"method": self.method, "adjust": "max-t", "rng": self.seed}
            try:
                table = self.facts.apply(compare, alpha=self.alpha, **options)
            except LogError:  # no common covariance, or no answer at all
                pass
            else:
                if Caution.DISCORDANT_FEW.label not in table.attrs.get("cautions", {}):
                    return table
        first = self.models[int(self.best[0])] if against_best else None
        table = self.ask(
            "comparison", compare, reference=first, method=self.method, adjust=None,
            alpha=self.alpha_of_each,
        )  # fmt: skip
        return table if table is None or self.n_tests == 1 else self.adjust_by_sidak(table)

    @cached_property
    def n_tests(self) -> int:
        """How many differences the limits and p-values account for: all pairs in all cells."""
        return len(self.models) * (len(self.models) - 1) // 2 * len(self.cells)

    @property
    def has_target(self) -> bool:
        """Whether the numbers are those of a metric with a target: neither losses nor scores."""
        return bool(targets_of(self.facts.attrs))

    @cached_property
    def simultaneous(self) -> Any:
        """The interval of each model and cell, by Šidák's method for all of them together."""
        alpha = float(-np.expm1(np.log1p(-self.alpha) / max(1, len(self.frame))))
        return self.facts.apply(interval, method=self.method, alpha=alpha)

    @property
    def alpha_of_each(self) -> float:
        """One minus the level of each difference, if all are to have theirs by Šidák's method."""
        if self.n_tests < 2:
            return self.alpha
        return float(-np.expm1(np.log1p(-self.alpha) / self.n_tests))

    def adjust_by_sidak(self, table: Any) -> Any:
        """Add the p-values that belong to limits at the level of each difference."""
        with np.errstate(divide="ignore"):
            p = -np.expm1(self.n_tests * np.log1p(-table["p_value"]))
        adjusted = table.assign(p_adjusted=p)
        adjusted.attrs = {**table.attrs, "alpha": self.alpha, "adjust": "sidak"}
        return adjusted

    @cached_property
    def candidates(self) -> Any:
        """The possibly best models; None if there is no answer."""
        number = len(self.models)
        if number < 2 or self.dims:
            return None
        draws = max(FEWEST_DRAWS, min(10_000, DRAWS // number**2))
        return self.ask("best_set", best_set, rng=self.seed, n_draws=draws, alpha=self.alpha)

    def ask(self, name: str, function: Callable[..., Any], **options: Any) -> Any:
        """Compute a result; note the reason if there is none."""
        try:
            return self.facts.apply(function, **options)
        except LogError as error:
            return self.refuse(name, str(error))

    def refuse(self, name: str, reason: str) -> None:
        """Note why something was not computed."""
        self.refusals[name] = reason

    # --- labels -----------------------------------------------------------------------------------

    @cached_property
    def dims(self) -> list[str]:
        """The carried dimensions, such as those of a map."""
        found = self.intervals
        return [str(n) for n in found.dims if n != "model"] if isinstance(found, xr.Dataset) else []

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each model and cell; masked cells, which have no loss, are left out."""
        table = result_frame(self.intervals)
        return table[table["estimate"].notna()]

    @cached_property
    def attrs(self) -> dict[Any, Any]:
        """The attrs of the intervals, and the counts that are the same in all rows."""
        counts = self.frame[[name for name in self.frame if str(name).startswith("n_")]]
        same = [name for name in counts if counts[name].nunique() == 1]
        return {**{name: float(counts[name].iloc[0]) for name in same}, **self.intervals.attrs}

    @cached_property
    def models(self) -> list[Hashable]:
        """The models in the order of the log."""
        return list(dict.fromkeys(self.labels(self.frame, "model")))

    @cached_property
    def names(self) -> list[str]:
        """The models in words."""
        index = pd.Index(self.models, dtype=object, tupleize_cols=False)
        return write_labels(index, name_model)[0]

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells that hold losses."""
        return list(dict.fromkeys(self.cell_labels(self.frame)))

    def cell_names(self) -> list[str]:
        """Name each cell by the labels of its dimensions."""
        return [
            ", ".join(f"{dim}={label}" for dim, label in zip(self.dims, labels, strict=True))
            for labels in self.cells
        ]

    def labels(self, table: pd.DataFrame, name: str) -> list[Hashable]:
        """List the labels of the models of a table's rows."""
        index = table.index
        if name in index.names and (index.nlevels > 1 or self.dims):
            return index.get_level_values(name).tolist()
        return [None] * len(index) if self.dims else index.tolist()

    def cell_labels(self, table: pd.DataFrame) -> list[Cell]:
        """List the labels of the cells of a table's rows."""
        levels = [table.index.get_level_values(name).tolist() for name in self.dims]
        return list(zip(*levels, strict=True)) if levels else [()] * len(table)

    # --- numbers, by cell and model ---------------------------------------------------------------

    def spread(self, column: str) -> FloatArray:
        """Lay a column of the intervals out by cell and model."""
        return self.spread_of(self.intervals, column)

    def spread_of(self, intervals: Any, column: str) -> FloatArray:
        """Lay a column of some intervals out by cell and model."""
        frame = result_frame(intervals)
        frame = frame[frame["estimate"].notna()]
        values = np.full((len(self.cells), len(self.models)), np.nan)
        place = places(self.cells), places(self.models)
        at = [place[0][label] for label in self.cell_labels(frame)]
        models = [place[1][label] for label in self.labels(frame, "model")]
        values[at, models] = frame[column].to_numpy(dtype=float)
        return values

    @cached_property
    def estimate(self) -> FloatArray:
        """The mean loss of each model in each cell."""
        return self.spread("estimate")

    @cached_property
    def best(self) -> IntArray:
        """The model with the smallest mean loss of each cell, or the one nearest to a target."""
        target = self.facts.attrs.get(TARGET)
        loss = self.estimate if target is None else np.abs(self.estimate - target)
        return np.asarray(np.nanargmin(loss, axis=1))

    @cached_property
    def pairs(self) -> Pairs | None:
        """Leads of models over others; None if they were not compared."""
        if self.comparison is None:
            return None
        table = result_frame(self.comparison)
        found = Pairs.empty(len(self.cells), len(self.models))
        cell, model = places(self.cells), places(self.models)
        keys = zip(
            self.cell_labels(table), self.labels(table, "model"), self.labels(table, "other"),
            strict=True,
        )  # fmt: skip
        kept, at = [], []
        for row, (where, one, two) in enumerate(keys):
            if where in cell:  # a masked cell has no differences
                kept.append(row)
                at.append((cell[where], model[one], model[two]))
        c, i, j = np.array(at, dtype=int).reshape(-1, 3).T
        p = "p_adjusted" if "p_adjusted" in table else "p_value"
        lead, lower, upper, p_value = (
            table[name].to_numpy(dtype=float)[kept] for name in ("difference", "lower", "upper", p)
        )
        found.lead[c, i, j], found.lead[c, j, i] = -lead, lead
        found.lower[c, i, j], found.lower[c, j, i] = -upper, lower
        found.upper[c, i, j], found.upper[c, j, i] = -lower, upper
        found.p[c, i, j] = found.p[c, j, i] = p_value
        return found

    @cached_property
    def tied(self) -> MaskArray:
        """Which models of each cell no other one is significantly better than; the best is one."""
        known = ~np.isnan(self.estimate)
        if self.pairs is None or self.has_target:
            return known
        tied: MaskArray = known & ~(self.pairs.lower > 0).any(axis=1)  # not where NaN
        tied[np.arange(len(self.cells)), self.best] = True
        return tied


Label = TypeVar("Label", bound=Hashable)


def places(labels: list[Label]) -> dict[Label, int]:
    """Map labels to their places."""
    return {label: at for at, label in enumerate(labels)}


def name_model(label: Hashable) -> str:
    """Write the label of a model; columns of several levels have a tuple."""
    if label is None or label == "":
        return "the model"
    return " · ".join(map(str, label)) if isinstance(label, tuple) else str(label)
