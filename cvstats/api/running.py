"""From a log that was read to a result: what each method needs, in one line or two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from cvstats.api.running_bootstrap import (
    run_bootstrap_632,
    run_bootstrap_oob,
    run_case_bootstrap,
    run_location_shifted,
    run_two_stage,
)
from cvstats.api.running_resampled import (
    run_conservative_z,
    run_corrected_t,
    run_five_by_two,
    run_nested_cv,
    run_replace_one,
)
from cvstats.api.running_sources import run_clustered, run_out_of_source
from cvstats.containers import Kept, Log, Table
from cvstats.core.cautions import Caution
from cvstats.core.chunked import Columns, all_binary
from cvstats.core.result import Result
from cvstats.errors import LogError, is_number, is_several
from cvstats.intervals import quadratic as quadratics
from cvstats.intervals import splits, wald
from cvstats.intervals.registry import fold_level, require

__all__ = [
    "INTERVALS",
    "RUNNERS",
    "Alternative",
    "Compared",
    "Losses",
    "Missing",
    "Table",
    "checked_alpha",
    "checked_numbers",
    "run_cv_t",
    "run_holdout",
    "run_naive",
    "run_quadratic",
    "run_wald",
]

Losses: TypeAlias = pd.Series | pd.DataFrame | xr.DataArray | xr.Dataset | Kept
Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
Missing: TypeAlias = Literal["raise", "drop"]
Compared: TypeAlias = Literal[
    "wald",
    "holdout",
    "naive",
    "cv_t",
    "quadratic",
    "corrected_t",
    "conservative_z",
    "five_by_two",
    "nested_cv",
    "replace_one",
    "out_of_source",
    "clustered",
    "bootstrap_oob",
]
"""The names in `RUNNERS`, for type checkers."""


def checked_alpha(alpha: object) -> None:
    """Refuse what is no error rate."""
    if not isinstance(alpha, (float, np.floating)) or not 0 < alpha < 1:
        raise LogError(
            f"alpha={alpha!r} is out of range. Expected an error rate between 0 and 1, such as "
            f"0.05 for a 95% interval."
        )


def checked_numbers(name: str, got: object, *, several: bool = False) -> None:
    """Refuse what is no finite number, or with ``several`` no sequence of them."""
    sequence = is_several(got)
    values: list[Any] = list(got) if isinstance(got, Iterable) and sequence else [got]
    finite = all(is_number(value) and math.isfinite(value) for value in values)
    if several != sequence or not finite:
        expected = "a sequence of finite numbers" if several else "a finite number"
        raise LogError(f"{name}={got!r} is out of range. Expected {expected}.")


def by_fold(log: Log) -> tuple[str, ...]:
    """Name the levels that tell test folds apart."""
    fold = fold_level(log.design)
    levels = log.design.levels
    return tuple(name for name in ("repetition", fold) if name is not None and name in levels)


def by_repetition(log: Log) -> tuple[str, ...]:
    """Name the level that tells repetitions apart, if there is one."""
    return ("repetition",) if "repetition" in log.design.levels else ()


def folds_per_repetition(log: Log) -> int:
    """Count the folds of the first repetition; 1 where nothing names folds."""
    by = by_fold(log)
    if by in ((), ("repetition",)):
        return 1
    codes = log.design.codes_of(log.design.plan(by))
    return int((codes[:, 0] == codes[0, 0]).sum()) if "repetition" in by else len(codes)


def run_wald(
    log: Log,
    losses: Columns | None = None,
    *,
    variance: str = "all-pairs",
    fold_weights: str = "size",
    alternative: str = "two-sided",
    alpha: float = 0.05,
) -> Result:
    """Wald interval of a log, or of differences of its columns."""
    folded = wald.cells_needed(variance, fold_weights)
    require("wald", log.design)
    found = log.moments(by_fold(log) if folded else by_repetition(log), losses)
    n_folds = folds_per_repetition(log)
    caution = 0
    if n_folds == 1:
        caution |= Caution.ONE_FOLD
    elif "fold" not in log.design.levels:
        caution |= Caution.SOURCES_AS_FOLDS
    return wald.wald(
        found, variance=variance, fold_weights=fold_weights, alternative=alternative,
        alpha=alpha, n_folds=n_folds, caution=caution,
    )  # fmt: skip


def run_holdout(
    log: Log, losses: Columns | None = None, *, interval: str = "wald", alpha: float = 0.05
) -> Result:
    """Holdout interval; several repetitions are averaged point by point first."""
    require("holdout", log.design)
    repetitions = log.design.number("repetition")
    if repetitions > 1:
        names = [name for name in ("source", "point") if name in log.design.levels]
        points = log.moments(names, losses)
        one_each = replace(points, count=np.ones_like(points.count), m2=np.zeros_like(points.m2))
        cell = one_each.over(())
    else:
        cell = log.moments((), losses)
    if interval in ("wilson", "clopper-pearson") and (
        repetitions > 1 or not all_binary(log.design, losses or log.panels)
    ):
        found = f"{repetitions} repetitions" if repetitions > 1 else "other losses"
        raise LogError(
            f"interval={interval!r} needs losses that are 0 or 1, once for each point, and this "
            f"log has {found}. Use interval='wald' or interval='t'."
        )
    return splits.holdout(cell, kind=interval, alpha=alpha, n_repetitions=repetitions)


def run_naive(log: Log, losses: Columns | None = None, *, alpha: float = 0.05) -> Result:
    """Naive interval over points."""
    require("naive", log.design)
    found = log.moments(by_repetition(log), losses)
    return wald.naive(found, alpha=alpha, n_folds=folds_per_repetition(log))


def run_cv_t(log: Log, losses: Columns | None = None, *, alpha: float = 0.05) -> Result:
    """Naive t interval over fold means."""
    require("cv_t", log.design)
    found = log.moments(by_fold(log), losses)
    return wald.cv_t(found, alpha=alpha, n_repetitions=log.design.number("repetition"))


def run_quadratic(
    log: Log,
    losses: Columns | None = None,
    *,
    estimator: str = "theta_5",
    bias: Sequence[float] | None = None,
    fold_weights: str = "size",
    alpha: float = 0.05,
) -> Result:
    """Interval from a quadratic variance estimator."""
    require("quadratic", log.design)
    found = log.moments(by_fold(log)[-1:], losses)
    return quadratics.quadratic(
        found, estimator=estimator, bias=bias, fold_weights=fold_weights, alpha=alpha
    )


RUNNERS: dict[str, Callable[..., Result]] = {
    "holdout": run_holdout,
    "wald": run_wald,
    "naive": run_naive,
    "cv_t": run_cv_t,
    "quadratic": run_quadratic,
    "corrected_t": run_corrected_t,
    "conservative_z": run_conservative_z,
    "five_by_two": run_five_by_two,
    "nested_cv": run_nested_cv,
    "replace_one": run_replace_one,
    "out_of_source": run_out_of_source,
    "clustered": run_clustered,
    "bootstrap_oob": run_bootstrap_oob,
}
"""The intervals that also serve for differences of two models."""

INTERVALS: dict[str, Callable[..., Result]] = {
    **RUNNERS,
    "bootstrap_632": run_bootstrap_632,
    "case_bootstrap": run_case_bootstrap,
    "location_shifted": run_location_shifted,
    "two_stage": run_two_stage,
}
"""Every interval by the name of its method; what serves for one model only stands here alone."""
