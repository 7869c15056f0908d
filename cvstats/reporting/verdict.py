"""What a log says about its models: intervals and comparisons by cell, ties, and their scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from scipy import special

from cvstats.comparisons.compare import compare
from cvstats.comparisons.winner import winner
from cvstats.comparisons.zero_one import SOME_EXACT
from cvstats.core.cautions import Caution, flag_attrs, list_cautions, narrow_labels
from cvstats.core.orientation import TARGET, TURNED, targets_of, turn
from cvstats.core.types import FloatArray, IntArray, MaskArray
from cvstats.errors import LogError
from cvstats.facts import LogFacts
from cvstats.formatting import (
    has_caution,
    name_mean,
    name_score,
    narrow_cautions,
    occurs_in_many,
    result_frame,
    sentences_in,
    write_labels,
)
from cvstats.log.display import format_value
from cvstats.log.metadata import AVERAGED, UNDESCRIBED
from cvstats.loss_functions.pointwise import LOSSES
from cvstats.metrics import METRICS
from cvstats.recommend import interval, run_other_method

Cell: TypeAlias = tuple[Hashable, ...]
"""The labels of a carried cell; empty without carried dimensions."""

SHARES = (
    "accuracy", "balanced accuracy", "error rate", "exact match", "hit rate", "normalized accuracy",
    "pass rate", "success rate",
)  # fmt: skip
"""Proportions of points, written in percent."""

NOISE = 1e-12
"""Two numbers are equal if they differ by less, relative to the larger one."""

MOST_DECIMALS = 15
"""Maximum number of decimals."""

MOST_TESTS = 200_000
"""Number of pairs in several carried cells above which none are tested."""
MOST_PAIRS = 20_000
"""Number of pairs in one cell above which only those with the best model are computed."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The lead of each model over each other model, in each cell: positive is better.

    NaN means not compared.
    """

    lead: FloatArray
    lower: FloatArray
    upper: FloatArray
    p: FloatArray
    narrow: MaskArray
    """Which limits are flagged as too narrow."""

    @property
    def clear(self) -> MaskArray:
        """Which models are significantly better than which others."""
        return (self.lower > 0) & ~self.narrow


@dataclass(frozen=True, eq=False)
class Switch:
    """A method that replaced the default, the caution that caused it, and the original table."""

    caution: Caution
    method: str
    before: Any
    attrs: Mapping[str, Any]
    """The attrs of the table by the method."""


@dataclass(eq=False)
class Verdict:
    """Intervals and comparisons of a log, each computed once when first needed."""

    facts: LogFacts
    alpha: float
    seed: int
    method: str | None = None
    """The name of the interval for models and differences; None for the defaults of the log."""
    refusals: dict[str, LogError] = field(default_factory=dict)
    """What could not be computed, in words, and why."""
    switches: dict[str, list[Switch]] = field(default_factory=partial(defaultdict, list))
    """Tables by other methods than the default, because cautions require them."""

    # --- tables -----------------------------------------------------------------------------------

    @cached_property
    def intervals(self) -> Any:
        """The interval of each model."""
        return self.settle("intervals", self.compute_intervals)

    def compute_intervals(self, method: str | None, alpha: float | None = None) -> Any:
        """Compute the interval of each model by a method; None for that of the design."""
        compute = interval if method == self.method else run_other_method
        return self.facts.apply(compute, method=method, alpha=alpha or self.alpha)

    @cached_property
    def comparison(self) -> Any:
        """All pairs of models, with simultaneous limits and adjusted p-values.

        By max-t, or by Šidák's method for several cells, very many models, methods without
        standard errors, and few discordant points. None if not available.
        """
        if len(self.models) < 2 or self.facts.attrs.get("kind") == "differences":
            return None
        return self.attempt("Comparison of the models", self.compare_all)

    def compare_all(self) -> Any:
        """Compare all pairs of models, using another method for pairs whose caution requires it."""
        if not 0 < self.n_tests <= MOST_TESTS and len(self.cells) > 1:
            many = f"{self.n_tests:,} tests are too many to report."
            raise LogError(many if self.n_tests else "no cell has losses of two models.")
        joint = None  # by max-t, if its cautions require another method
        if len(self.models) > 2 and len(self.cells) == 1 and not self.against_best:
            options = {"method": self.method, "adjust": "max-t", "rng": self.seed}
            try:
                table = self.facts.apply(compare, alpha=self.alpha, **options)
            except LogError:  # no standard errors, or not available at all
                pass
            else:
                found = sentences_in(table).keys()
                if Caution.DISCORDANT_FEW.label not in found:
                    if self.method is not None or found.isdisjoint(narrow_labels()):
                        return table
                    joint = table
        table = self.settle("comparison", partial(self.compare_by_sidak, joint=joint))
        return table if joint is None or self.switches["comparison"] else joint

    @property
    def against_best(self) -> bool:
        """Whether the number of models is so large that they are only compared with the best."""
        return len(self.cells) == 1 and self.n_tests > MOST_PAIRS

    def compare_by_sidak(self, method: str | None, joint: Any = None) -> Any:
        """Compare pairs of models by a method, each at Šidák's simultaneous level.

        ``joint`` is a comparison by the default method.
        """
        if method is None and joint is not None:
            return self.adjust_by_sidak(joint)
        first = self.models[int(self.best[0])] if self.against_best else None
        table = self.facts.apply(
            compare,
            reference=first,
            method=method,
            adjust=None,
            alpha=split_alpha(self.alpha, self.n_tests),
        )
        few = Caution.FEW_POINTS.label in sentences_in(table)
        return self.adjust_by_sidak(table) if few or self.n_tests > 1 else table

    def settle(self, what: str, compute: Callable[[str | None], Any]) -> Any:
        """Compute a table by the default method, or by those that its cautions require.

        In a comparison each caution replaces the pairs that have it; the first one replaces all
        intervals of models, or those of cells if it occurs in many of them.
        """
        table = compute(self.method)
        gridded = what == "intervals" and {*getattr(table, "dims", ())} - {"model", "pair"}
        for caution in narrow_cautions(table) if self.method is None else ():
            if gridded and not occurs_in_many(table, caution):
                continue
            for name in caution.instead:
                try:
                    other = compute(name)
                except LogError:
                    continue
                if caution in narrow_cautions(other):
                    continue
                self.switches[what].append(Switch(caution, name, table, other.attrs))
                if what == "intervals":
                    other.attrs["reason"] = table.attrs["reason"].partition(";")[0]
                    return other
                table = replace_rows(table, other, caution)
                break
        return table

    @cached_property
    def winner(self) -> Any:
        """The interval of the best model that accounts for its selection; None if not needed."""
        flagged = Caution.SELECTED.label in sentences_in(self.intervals)
        if not flagged or self.method is not None or len(self.cells) > 1:
            return None
        switches = self.switches["intervals"]
        options = {"method": switches[0].method} if switches else {}
        compute = partial(self.facts.apply, winner, alpha=self.alpha, rng=self.seed, **options)
        return self.attempt("Interval of the selected model", compute)

    @cached_property
    def whole(self) -> Verdict | None:
        """The verdict for the mean over all carried cells; None if there is no such mean."""
        losses = self.facts.losses
        has_mean = isinstance(losses, xr.DataArray | xr.Dataset) and len(self.cells) > 1
        if not has_mean or "metric" in self.dims or TARGET in self.facts.attrs:
            return None
        known = self.intervals["estimate"].notnull()
        models = [dim for dim in known.dims if dim not in self.dims]
        shared = (known | ~known.any(self.dims)).all(models)
        if not shared.any():
            return None
        if (known.any(models) > shared).any():  # each model's mean is over the same cells
            losses = losses.where(shared)
        if self.facts.missing == "drop":
            losses = fill_gaps(losses, self.dims)
        weights = area_weights(losses, self.dims)
        cells = losses if weights is None else losses.weighted(weights)
        mean = cells.mean([d for d in losses.dims if str(d) in self.dims], keep_attrs=True)
        mean.attrs = {**mean.attrs, AVERAGED: list(map(str, self.dims))}
        found = Verdict(LogFacts(mean, self.facts.missing), self.alpha, self.seed, self.method)
        if self.attempt("Mean over the cells", lambda: found.intervals) is None:
            return None
        found.follow_cells(self)
        return found

    def follow_cells(self, cells: Verdict) -> None:
        """Use for the mean over cells the methods that the cautions of many cells require."""
        for what in ("intervals", "comparison"):
            before, alone = getattr(self, what), getattr(cells, what)
            if before is None or alone is None or self.switches[what]:
                continue
            compute = self.compute_intervals if what == "intervals" else self.compare_by_sidak
            for switch in cells.switches[what]:
                if not occurs_in_many(switch.before, switch.caution):
                    continue
                try:
                    table = compute(switch.method)
                except LogError:
                    continue
                self.switches[what] = [Switch(switch.caution, switch.method, before, table.attrs)]
                setattr(self, what, table)
                break

    @cached_property
    def n_tests(self) -> int:
        """Number of differences adjusted for: in each cell, all pairs of models with losses."""
        number = (~np.isnan(self.estimate)).sum(axis=1)
        return int((number * (number - 1) // 2).sum())

    @property
    def has_target(self) -> bool:
        """Whether the values have a target, such as coverages and contrasts."""
        return bool(targets_of(self.facts.attrs))

    @property
    def unranked(self) -> bool:
        """Whether no model is best: values with a target, or differences of models."""
        return self.has_target or self.facts.log.of_differences

    @cached_property
    def simultaneous(self) -> Any:
        """Simultaneous intervals of all models and cells, by Šidák's method."""
        alpha = split_alpha(self.alpha, len(self.frame))
        switches = self.switches["intervals"]
        return self.compute_intervals(switches[0].method if switches else self.method, alpha)

    @property
    def tables(self) -> list[Any]:
        """The intervals and the comparison, and those of the mean over all cells."""
        parts = [self] if self.whole is None else [self, self.whole]
        found = [table for part in parts for table in (part.intervals, part.comparison)]
        return [table for table in found if table is not None]

    def adjust_by_sidak(self, table: Any) -> Any:
        """Add the p-values that belong to limits at the level of each difference.

        Normal p-values are transformed to Student's t with n - 1 degrees of freedom, as in max-t:
        standard errors are estimates, which matters in the tails, and with few points.
        """
        names = ("p_value", "statistic", "difference", "se", "lower", "upper", "df", "n_points")
        known = {name: table[name] for name in names if name in table}
        where: Any = xr.where
        if isinstance(table, pd.DataFrame):  # pandas aligns the index at each step
            where = np.where
            known = {name: column.to_numpy() for name, column in known.items()}
        p, points = known["p_value"], table.attrs.get("n_points", known.get("n_points"))
        adjusted = table
        if points is not None or "df" in known:
            difference, statistic, se = known["difference"], abs(known["statistic"]), known["se"]
            far = abs(difference)
            with np.errstate(divide="ignore", invalid="ignore"):
                pseudo = far > (1 + NOISE) * statistic * se
                se = where(pseudo, far / statistic, se)
                df = known["df"] if "df" in known else p * 0 + np.inf
                # The statistic of equal means is 0 with any standard error: that of the limits.
                half, level = (known["upper"] - known["lower"]) / 2, table.attrs["alpha"]
                quantile = -special.stdtrit(df, level / 2)
                if table.attrs.get("adjust") == "max-t":
                    others = np.ravel(half / se)[np.ravel(statistic > 0)]
                    quantile = np.fmax.reduce(others, initial=np.nan)
                se = where((statistic == 0) & (se > 0), np.fmax(se, half / quantile), se)
                own = (abs(p - 2 * special.stdtr(df, -statistic)) <= 1e-12) & (se > 0)
                if table.attrs.get("test") in ("exact", SOME_EXACT):  # their p-value is 1 too
                    few = np.asarray(has_caution(table, Caution.DISCORDANT_FEW))
                    own = own & ~((statistic == 0) & few)
                df = where(~np.isfinite(df), np.inf if points is None else points - 1, df)
                reach = -special.stdtrit(df, split_alpha(self.alpha, self.n_tests) / 2) * se
                p = where(own, 2 * special.stdtr(df, -statistic), p)
                lower = where(own, difference - reach, known["lower"])
                upper = where(own, difference + reach, known["upper"])
            adjusted = adjusted.assign(p_value=p, lower=lower, upper=upper)
        if self.n_tests == 1:
            of_t = points is not None and bool(np.all(own))
            adjusted.attrs = {**table.attrs, "quantiles": "t" if of_t else "exact"}
            return adjusted
        with np.errstate(divide="ignore"):
            adjusted = adjusted.assign(p_adjusted=-np.expm1(self.n_tests * np.log1p(-p)))
        adjusted.attrs = {**table.attrs, "alpha": self.alpha, "adjust": "sidak"}
        return adjusted

    def attempt(self, what: str, compute: Callable[[], Any]) -> Any:
        """Compute a result; if the log does not allow it, record why, and return None."""
        try:
            return compute()
        except LogError as error:
            self.refusals[what] = error
            return None

    # --- labels -----------------------------------------------------------------------------------

    @cached_property
    def dims(self) -> list[str]:
        """The carried dimensions, such as those of a map."""
        found = self.intervals
        dims = found.dims if isinstance(found, xr.Dataset) else self.facts.log.labels.dims
        return [str(name) for name in dims if name not in ("model", "pair")]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each model and cell; masked cells, which have no losses, are dropped."""
        table = result_frame(self.intervals)
        table = table[table["estimate"].notna()]
        table.attrs = {}  # pandas would copy them with each column
        return table

    @cached_property
    def attrs(self) -> dict[Any, Any]:
        """The attrs of the intervals, and the counts common to all rows."""
        counts = self.frame.filter(regex="^n_").items()
        same = {name: float(count.iloc[0]) for name, count in counts if count.nunique() == 1}
        return {**same, **self.intervals.attrs}

    @cached_property
    def dropped(self) -> tuple[int, str]:
        """Number of evaluations that were dropped, and in how many cells if that differs."""
        if "n_dropped" not in self.frame:
            return int(self.attrs["n_dropped"]), ""
        counts = np.fmax.reduce(self.spread("n_dropped"), axis=1, initial=0)
        some = f" in {(counts > 0).sum():,} of {len(counts):,} cells" if len(counts) > 1 else ""
        return int(counts.sum()), some

    @cached_property
    def models(self) -> list[Hashable]:
        """The models in the order of the log."""
        return list(dict.fromkeys(self.models_of(self.frame)))

    @cached_property
    def names(self) -> list[str]:
        """The models in words."""
        if self.facts.are_nameless(self.models):
            return ["the model"]
        index = pd.Index(self.models, dtype=object, tupleize_cols=False)
        return write_labels(index, self.facts.write_model)[0]

    @cached_property
    def quoted(self) -> list[str]:
        """The models in sentences."""
        return quote_names(self.names)

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells that have losses."""
        return list(dict.fromkeys(self.cell_labels(self.frame)))

    @cached_property
    def places(self) -> tuple[dict[Cell, int], dict[Hashable, int]]:
        """The place of each cell among the cells, and of each model among the models."""
        return (
            dict(zip(self.cells, range(len(self.cells)), strict=True)),
            dict(zip(self.models, range(len(self.models)), strict=True)),
        )

    @cached_property
    def scale(self) -> Scale:
        """The scale of the numbers, which are losses if there are several metrics."""
        labels = dict(zip(self.dims, zip(*self.cells, strict=True), strict=False))
        if len(set(labels.get("metric", ()))) > 1:
            return Scale("loss", "error", "")
        facts = {} if self.facts.lost_metrics else self.attrs
        return name_difference(read_scale(self.facts.attrs, facts), self.facts.attrs)

    @property
    def level(self) -> str:
        """The level of the intervals: ``95%``."""
        return f"{100 * (1 - self.alpha):g}%"

    def cell_names(self) -> list[str]:
        """Name each cell by the labels of its dimensions."""
        return [
            ", ".join(f"{dim}={label}" for dim, label in zip(self.dims, labels, strict=True))
            for labels in self.cells
        ]

    def labels(self, table: pd.DataFrame, name: str) -> list[Hashable]:
        """List the labels of the models of a table's rows."""
        index: Any = table.index
        if index.nlevels == len(self.dims):
            return [None] * len(index)
        index = index.droplevel(self.dims)
        named = name in index.names and {"model", "other"}.issuperset(index.names)
        labels = (index.get_level_values(name) if named else index).tolist()
        return [None if label != label else label for label in labels]  # an index may contain NaN

    def models_of(self, intervals: pd.DataFrame) -> list[Hashable]:
        """List the models of the rows of intervals; the pair for a log of differences."""
        models = self.labels(intervals, "model")
        if "other" not in intervals.index.names:
            return models
        return list(zip(models, self.labels(intervals, "other"), strict=True))

    def cell_labels(self, table: pd.DataFrame) -> list[Cell]:
        """List the labels of the cells of a table's rows."""
        if not self.dims:
            return [()] * len(table)
        levels = [table.index.get_level_values(name).tolist() for name in self.dims]
        return list(zip(*levels, strict=True))

    # --- numbers, by cell and model ---------------------------------------------------------------

    def spread(self, column: str, intervals: Any = None) -> FloatArray:
        """Arrange a column of the intervals, or of other ones, by cell and model."""
        frame = self.frame
        if intervals is not None:
            frame = result_frame(intervals)
            frame = frame[frame["estimate"].notna()]
        values = np.full((len(self.cells), len(self.models)), np.nan)
        cell, model = self.places
        at = list(map(cell.__getitem__, self.cell_labels(frame)))
        models = list(map(model.__getitem__, self.models_of(frame)))
        values[at, models] = frame[column].to_numpy(dtype=float)
        return values

    @cached_property
    def estimate(self) -> FloatArray:
        """The mean loss of each model in each cell."""
        return self.spread("estimate")

    @cached_property
    def order(self) -> IntArray:
        """The models of each cell by mean loss, or distance from a target, the smallest first.

        Those that are equal except for rounding keep their order, whatever the order of the rows.
        """
        target = self.facts.attrs.get(TARGET)
        loss = self.estimate if target is None else np.abs(self.estimate - target)
        digits, power = np.frexp(loss)
        return np.argsort(np.ldexp(np.rint(digits / NOISE), power), axis=1, kind="stable")

    @cached_property
    def best(self) -> IntArray:
        """The first model of each cell."""
        return self.order[:, 0]

    @cached_property
    def pairs(self) -> Pairs | None:
        """Leads of models over others; None if they were not compared."""
        return None if self.comparison is None else self.arrange(self.comparison)

    def arrange(self, comparison: Any) -> Pairs:
        """Arrange the pairs of a comparison by cell and models."""
        cell, model = self.places
        table = result_frame(comparison)
        at = np.array([*map(cell.get, self.cell_labels(table), repeat(-1))])
        table, c = table[at >= 0], at[at >= 0]  # without masked cells
        i = list(map(model.__getitem__, self.labels(table, "model")))
        j = list(map(model.__getitem__, self.labels(table, "other")))
        shape = len(cell), len(model), len(model)
        lead, lower, upper, p = np.full((4, *shape), np.nan)
        found = Pairs(lead, lower, upper, p, np.zeros(shape, dtype=bool))
        tests = "p_adjusted" if "p_adjusted" in table else "p_value"
        numbers = table[["difference", "lower", "upper", tests]].to_numpy(dtype=float)
        lead, lower, upper, p = numbers.T
        found.lead[c, i, j], found.lead[c, j, i] = -lead, lead
        found.lower[c, i, j], found.lower[c, j, i] = -upper, lower
        found.upper[c, i, j], found.upper[c, j, i] = -lower, upper
        found.p[c, i, j] = found.p[c, j, i] = p
        if self.method is None:  # a method passed by name is kept
            for caution in narrow_cautions(comparison):
                narrow = has_caution(table, caution).to_numpy()
                found.narrow[c, i, j] |= narrow
                found.narrow[c, j, i] |= narrow
        return found

    def changes(self, one: int, two: int) -> list[tuple[Switch, float]]:
        """List the switches of a pair in the only cell, and the width of its limits before each."""
        found, names = [], {self.models[one], self.models[two]}
        for switch in self.switches["comparison"]:
            table = result_frame(switch.before).dropna(subset=["lower"])
            pairs = zip(self.labels(table, "model"), self.labels(table, "other"), strict=True)
            row = table[[*map(names.__eq__, map(set, pairs))]]
            of_cells = not has_caution(table, switch.caution).any()  # of all pairs: `follow_cells`
            if of_cells or has_caution(row, switch.caution).any():
                found.append((switch, float((row["upper"] - row["lower"]).iloc[0])))
        return found

    @cached_property
    def tied(self) -> MaskArray:
        """Which models of each cell are not significantly worse than another model."""
        known = ~np.isnan(self.estimate)
        if self.pairs is None or self.has_target:
            return known
        tied: MaskArray = known & ~self.pairs.clear.any(axis=1)  # not where NaN
        tied[np.arange(len(self.cells)), self.best] = True
        return tied


def quote_names(names: Sequence[str]) -> list[str]:
    """Quote names that contain commas, such as those of candidates of a search."""
    quoted = list(names)
    for at, name in enumerate(names):
        if ", " in name:
            quoted[at] = f"'{name}'"
    return quoted


def split_alpha(alpha: float, tests: int) -> float:
    """Compute one minus the level of each of several intervals, by Šidák's method."""
    return alpha if tests < 2 else float(-np.expm1(np.log1p(-alpha) / tests))


def replace_rows(table: Any, other: Any, caution: Caution) -> Any:
    """Replace the rows of a comparison that have a caution by those of another method.

    Limits that are already wider are kept. The wider limits account for whatever either method
    accounts for.
    """
    at = has_caution(table, caution) & ~np.isnan(other["upper"])
    wider = other["upper"] - other["lower"] >= table["upper"] - table["lower"]
    found = table.copy()
    for name in found:
        if name in other:
            found[name] = table[name].where(~(at & wider), other[name]).astype(table[name].dtype)
    found["caution"] = found["caution"].where(~at | wider, without(table["caution"], caution))
    for new in narrow_cautions(other):
        if new.instead:
            known = at & wider & ~has_caution(table, new)
            found["caution"] = found["caution"].where(~known, without(found["caution"], new))
    found.attrs = dict(table.attrs)
    words = {**sentences_in(other), **sentences_in(table)}
    if isinstance(found, xr.Dataset):
        flags = list_cautions(found["caution"].to_numpy())
        found["caution"].attrs = flag_attrs(flags)
        labels = {caution.label for caution in flags}
    else:
        labels = set(", ".join(found["caution"].unique()).split(", "))
    found.attrs["cautions"] = {label: words[label] for label in words if label in labels}
    return found


def without(labels: Any, caution: Caution) -> Any:
    """Remove a caution from the labels, or flags, of each row."""
    if labels.dtype.kind == "i":
        return labels & ~int(caution)
    kept = [", ".join(filter(caution.label.__ne__, text.split(", "))) for text in labels]
    return pd.Series(kept, labels.index, dtype=labels.dtype)


# --- the scale of the numbers --------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """The loss of a log, or the score from which it was made: name, units and direction."""

    name: str
    orientation: str = "error"
    units: str = ""
    target: float | None = None
    """The value of a perfect model, for metrics that are neither a loss nor a score."""

    @property
    def larger(self) -> bool:
        """Whether larger values are better."""
        return self.orientation in TURNED

    @cached_property
    def percent(self) -> bool:
        """Whether values, or each of several scores, are proportions, written in percent.

        Scores that are not between 0 and 1 were negated; they may be percents already.
        """
        return self.orientation != TURNED[1] and set(self.name.split(" or ")) <= set(SHARES)

    @property
    def unit_words(self) -> str:
        """The units with a leading space, to follow a number."""
        return f" {self.units}" if self.units else ""

    def value(self, loss: float, decimals: int) -> str:
        """Write the value that belongs to a mean loss."""
        return self._write(turn(loss, self.orientation), decimals) + ("%" if self.percent else "")

    def difference(self, value: float, decimals: int) -> str:
        """Write a difference of two values."""
        text = self._write(value, decimals)
        return f"{text} percentage points" if self.percent else text

    def range(self, lower: float, upper: float, decimals: int, *, of_values: bool) -> str:
        """Format limits of values (converted from the loss) or of a difference."""
        if of_values and self.larger:
            lower, upper = (turn(limit, self.orientation) for limit in (upper, lower))
        limits = [limit for limit in (lower, upper) if limit and np.isfinite(limit)]
        while not of_values and decimals < MOST_DECIMALS:  # a nonzero limit is not written as 0
            if all(set("123456789") & set(self._write(limit, decimals)) for limit in limits):
                break
            decimals += 1
        unit = "%" if self.percent and of_values else ""
        return " to ".join(self._write(limit, decimals) + unit for limit in (lower, upper))

    def _write(self, number: float, decimals: int) -> str:
        if self.percent:
            number, decimals = 100 * number, max(0, decimals - 2)
        return format_value(number + 0.0, "estimate", decimals, "auto").replace("-", "−")


def read_scale(metadata: Mapping[Any, Any], facts: Mapping[Any, Any]) -> Scale:
    """Read the scale of the numbers from the attrs of a log and its result."""
    named = {**facts, **metadata}
    metric, orientation = named.get("metric"), named.get("orientation")
    units = str(named.get("units", ""))
    units = "" if units in ("1", "None") else units
    if isinstance(metric, str) and orientation is not None:
        if metric in LOSSES and orientation == "error":  # a weighted mean
            return Scale(name_mean(metric.replace("_", " ")), "error", units)
        words = name_score(metric, named.get("at")).replace("_", " ")
        return Scale(words, str(orientation), units, named.get(TARGET))
    loss = str(named.get("long_name") or named.get("loss") or "loss").replace("_", " ")
    if named.get(UNDESCRIBED) and (known := METRICS.get(str(named["loss"]))) is not None:
        turned = known.orientation != "error"  # its losses are not its values
        return Scale(f"mean {known.words} loss" if turned else known.words, "error", units)
    return Scale(name_mean(loss), "error", units)


def name_difference(scale: Scale, metadata: Mapping[Any, Any]) -> Scale:
    """Name a difference; "(f - m)" denotes the groups of a contrast."""
    if "kind" not in metadata:
        return scale
    loss = scale.orientation == "error" and str(metadata.get("metric")) not in METRICS
    name, groups = name_mean(scale.name) if loss else scale.name, metadata.get("contrast")
    words = f"difference in {name}" + (f" ({groups})" if isinstance(groups, str) else "")
    return replace(scale, name=words)


# --- the mean over the cells ----------------------------------------------------------------------


def fill_gaps(losses: Any, dims: list[str]) -> Any:
    """Fill dropped losses of a cell, so that the mean over cells is the mean of their means.

    A cell of T_c of T evaluations contributes its mean m, and (x - m) T / T_c where it has a loss
    x, which vary as much as its mean does. Gaps are those of any model.
    """
    known = losses.notnull()
    known = known.to_dataarray("model") if isinstance(known, xr.Dataset) else known
    models = [dim for dim in ("model", "pair") if dim in known.dims]
    known = (known | ~known.any([dim for dim in known.dims if dim not in models])).all(models)
    tested = known.any(dims)
    total, number = tested.sum(), known.sum(tested.dims).clip(1)
    with xr.set_options(keep_attrs=True):
        mean = losses.where(known).mean(tested.dims)
        filled = ((losses - mean) * (total / number)).where(known, 0.0) + mean
        return losses.where(number == total, filled).where(tested)


def area_weights(losses: Any, dims: list[str]) -> xr.DataArray | None:
    """Weight cells by the cosine of their latitude; None if no coordinate contains latitudes."""
    for name, coord in losses.coords.items():
        along = {str(d) for d in coord.dims}
        called = str(name).lower() in LATITUDES or coord.attrs.get("standard_name") == "latitude"
        number = coord.dtype.kind in "fiu" and bool((abs(coord) <= 90).all())
        if along and along <= set(dims) and called and number:
            weights: xr.DataArray = np.cos(np.deg2rad(coord)).clip(min=0.0)
            return weights
    return None


LATITUDES = ("lat", "latitude")
"""Names of coordinates that contain latitudes."""
