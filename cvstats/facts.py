"""Facts of a log shared by `interval`, `diagnose`, `summary`, report and plots."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.core.cautions import Caution, list_cautions, sentences_of
from cvstats.core.design import LEVELS, Design
from cvstats.core.folds import count_folds, fold_level, is_resampled
from cvstats.core.orientation import TURNED
from cvstats.core.types import FloatArray
from cvstats.errors import LogError
from cvstats.intervals._method import find_call
from cvstats.intervals._requirements import recommend_method
from cvstats.log.log import Log, Losses, Sample
from cvstats.log.loss_checks import Shapes, measure_shapes, pick_columns, tabulate, take_sample
from cvstats.log.metadata import (
    DIFFERENCE_FROM,
    attrs_of_log,
    is_examined,
    names_of_metrics,
    shared_attrs,
)
from cvstats.log.pandas import NAMELESS
from cvstats.log.read import read
from cvstats.log.tables import as_container
from cvstats.options import Missing

LARGE = 1_000_000
"""Maximum number of losses kept in one table, rows by columns."""

UNNAMED = ("loss", "long_name", "metric", "metrics")
"""Attrs of a log of several metrics that do not apply to a single metric."""


class LogFacts:
    """The facts of a log; each is computed when first needed, and the log is read once.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        The log.
    missing : {"raise", "drop"}
        Whether NaN losses raise an error, or their evaluations are dropped for all models.
    """

    def __init__(self, losses: Losses, missing: Missing = "raise") -> None:
        self.losses = as_container(losses)
        for dim in getattr(self.losses, "dims", ()):
            index = self.losses.indexes.get(dim)
            if isinstance(index, pd.MultiIndex) and not {*LEVELS, "model"} & {*index.names}:
                labels = np.fromiter(index, object, len(index))  # one for each cell
                self.losses = self.losses.reset_index(dim).assign_coords({dim: (dim, labels)})
            elif index is not None and dim not in (*LEVELS, "model") and not index.is_unique:
                self.losses = self.losses.drop_vars(dim)  # cells are numbered
        self.missing = missing
        self._results: dict[tuple[object, str], Any] = {}

    def apply(self, function: Callable[..., Any], **options: Any) -> Any:
        """Apply a function of cvstats to the log, cached by options."""
        key = (function, repr(sorted(options.items())))
        if key not in self._results:
            result = function(self.log, **options)
            if isinstance(result, xr.Dataset) and self.log.lazy is not None:
                result = self.advise(result.compute())
            self._results[key] = result
        return self._results[key]

    def advise(self, result: xr.Dataset) -> xr.Dataset:
        """Add the sentences of cautions, and what to call instead, once a lazy result is known."""
        if "caution" not in result:
            return result
        log = self.log.with_all_pairs() if "difference" in result else self.log
        if log is self.log and result["caution"].size == log.losses.width:
            masked = (result["caution"] & np.int64(Caution.NO_LOSSES)) != 0
            log.refuse_empty(masked.to_numpy().reshape(-1))
        used = result.attrs.get("interval_method", result.attrs["method"])
        found = list_cautions(result["caution"].to_numpy())
        calls = tuple(find_call(caution, log, used) for caution in found)
        words = json.dumps(sentences_of(found, calls), ensure_ascii=False)
        return result.assign_attrs(cautions=words)

    # --- the log ----------------------------------------------------------------------------------

    @cached_property
    def raw(self) -> Log:
        """The log with its missing losses."""
        return replace(read(self.losses), remembered={})

    @cached_property
    def log(self) -> Log:
        """The log as methods use it."""
        return self.raw if self.missing == "raise" else read(self.raw, missing=self.missing)

    @cached_property
    def read_error(self) -> str:
        """Why the log cannot be read; empty if it can."""
        return read_words(lambda: self.raw)

    @cached_property
    def error(self) -> str:
        """Why no method can use the log; empty if one can."""
        return read_words(lambda: self.means)

    @cached_property
    def n_cells(self) -> int:
        """Number of carried cells in which a model has losses."""
        seen = self.raw.losses.width - len(self.raw.masked())
        return -(-seen // len(self.raw.shown_models))

    @cached_property
    def n_missing(self) -> dict[str, int]:
        """The number of missing and infinite losses of each model that has some.

        Carried cells without any losses are not counted.
        """
        log = self.raw
        if log.cells is not None:  # refused or left out when the batches were read
            return {}
        masked = set(log.masked().tolist())
        found = {}
        for model in range(len(log.labels.models)):
            total = 0
            for j in log.labels.columns(model).tolist():
                if j not in masked:
                    values = log.losses.column(j, 0, log.design.size)[log.design.here]
                    total += int(np.count_nonzero(~np.isfinite(values)))
            if total:
                found[self.name_model(model)] = total
        return found

    def drop_missing(self) -> LogFacts:
        """Return the facts of the log without its missing losses."""
        if self.missing == "drop" or self.read_error or not self.n_missing:
            return self
        facts = LogFacts(self.losses, "drop")
        facts.raw, facts.n_missing = self.raw, self.n_missing
        return facts

    def are_nameless(self, models: Sequence[Hashable]) -> bool:
        """Whether the only model has no name, or that of the loss, if read from one column."""
        nameless = ([None], [""], [NAMELESS], [self.attrs.get("loss")])
        return list(models) in nameless and DIFFERENCE_FROM not in self.attrs

    def name_model(self, model: int) -> str:
        """Return the name of a model; empty for a single model without a name."""
        models = self.raw.labels.models
        return "" if self.are_nameless(models) else self.write_model(models[model])

    def write_model(self, label: Hashable) -> str:
        """Write the label of a model; a tuple is that of a difference or of several levels."""
        if isinstance(label, tuple):
            return (" − " if self.raw.of_differences else " · ").join(map(str, label))
        name = str(None) if label is None or label != label else str(label)
        reference = self.raw.metadata.get(DIFFERENCE_FROM)
        return name if reference is None else f"{name} − {reference}"

    # --- the design -------------------------------------------------------------------------------

    @property
    def design(self) -> Design:
        """The design of the log."""
        return self.log.design

    @cached_property
    def resampled(self) -> bool:
        """Whether the log contains fits to resampled data."""
        return is_resampled(self.design)

    @cached_property
    def n_folds(self) -> int:
        """Number of folds in a repetition; 1 for resampled data, and if nothing was trained."""
        return 1 if self.resampled or self.log.only_tested else count_folds(self.design)

    @cached_property
    def by_source(self) -> bool:
        """Whether the folds are the sources."""
        return fold_level(self.design) == "source"

    @cached_property
    def n_points(self) -> int:
        """Number of points, or of losses if points have no labels."""
        return self.design.splits().points or self.design.size

    @cached_property
    def recommended(self) -> tuple[str, str]:
        """The recommended method for the design, and the reason."""
        return recommend_method(self.log)

    # --- the losses -------------------------------------------------------------------------------

    @cached_property
    def means(self) -> FloatArray:
        """Mean loss of each column; NaN for an empty cell."""
        means: FloatArray = self.log.moments(()).location[0]
        return means

    @cached_property
    def sample(self) -> Sample | None:
        """The losses that are examined one by one: all, or those kept with moments.

        None for moments of a metric, which come without losses.
        """
        return take_sample(self.log)

    @cached_property
    def values(self) -> FloatArray | None:
        """The examined losses, scores or pseudo-losses, rows by columns; None for many."""
        sample = self.sample
        if sample is None or sample.step > 1:
            return None
        seen = sample.log
        return None if seen.design.size * seen.losses.width > LARGE else tabulate(seen)

    @cached_property
    def shapes(self) -> Shapes:
        """The distribution of the examined losses in each column."""
        sample, unknown = self.sample, np.full(self.log.losses.width, np.nan)
        if sample is None:
            return Shapes(*[unknown] * len(Shapes._fields))
        seen = sample.log
        part = np.full((seen.losses.width, len(Shapes._fields)), np.nan)
        for j, column in enumerate(seen.columns()):
            if column is not None:
                part[j] = measure_shapes(column[seen.design.here])
        columns, spread = pick_columns(self.log, sample, None, sample.step)
        part = part[columns] if isinstance(columns, np.ndarray) else part
        shapes = Shapes(*part[spread].T)
        if self.log.of_contrasts or (self.design.metric and not is_examined(self.log.metadata)):
            # influences are few and large if a class is rare
            names = ("outlier_share", "tail_index", "n_for_skewness", "n_for_tails")
            shapes = shapes._replace(**dict.fromkeys(names, unknown))
        return shapes if sample.whole else self.correct_shapes(shapes)

    def correct_shapes(self, shapes: Shapes) -> Shapes:
        """Take from moments what a sample cannot show: constant losses, and rates of 0 and 1."""
        varies = self.log.moments(()).m2[0] > 0
        return shapes._replace(
            lowest=np.where(varies & (shapes.lowest == shapes.highest), np.nan, shapes.lowest),
            rate=np.where(varies & self.log.zero_one(), self.means, np.nan),
        )

    # --- the metric -------------------------------------------------------------------------------

    @cached_property
    def attrs(self) -> dict[Any, Any]:
        """The attrs of the log, including those that all variables of a Dataset share.

        For a part of several metrics they describe that metric; without a label its name and
        direction are unknown.
        """
        own = getattr(self.losses, "attrs", {})
        variables = list(getattr(self.losses, "data_vars", {}).values())
        variables = [] if "metrics" in own else variables  # they repeat those of all metrics
        attrs = {**(shared_attrs(variables) if variables else {}), **attrs_of_log(self.losses)}
        if self.lost_metrics:
            return {name: fact for name, fact in attrs.items() if name not in UNNAMED}
        return attrs

    @cached_property
    def lost_metrics(self) -> list[Hashable]:
        """The metrics of which the log contains one, if no label identifies it."""
        several = getattr(self.losses, "attrs", {}).get("metrics")
        if not isinstance(several, Mapping) or names_of_metrics(self.losses) is not None:
            return []
        return list(several)

    @cached_property
    def is_score(self) -> bool:
        """Whether the losses were computed from a score for which larger is better."""
        named = isinstance(self.attrs.get("metric"), str)
        return named and self.attrs.get("orientation") in TURNED


def read_words(ask: Callable[[], object]) -> str:
    """Return the message of the error raised by a call; empty if it succeeds."""
    try:
        ask()
    except LogError as error:
        return str(error)
    return ""
