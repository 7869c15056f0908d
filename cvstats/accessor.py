"""The accessor ``.cvci`` on pandas and xarray objects. It holds the object and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar

import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from cvstats import reporting
from cvstats.api import (
    bootstrapping,
    choosing,
    comparing,
    counting,
    describing,
    diagnosing,
    intervals,
    margins,
    mean_ranks,
    percentiles,
    planning,
    ranking,
    resampled,
    sourcing,
    studying,
)
from cvstats.api.bootstrapping import MonteCarlo
from cvstats.api.pairs import Options
from cvstats.api.percentiles import Correction
from cvstats.api.rates import Rates
from cvstats.api.running import Alternative, Compared, Losses, Missing, Table
from cvstats.api.running_resampled import TrainSize
from cvstats.comparison.margins import Margin
from cvstats.plans.drawing import Rng
from cvstats.plot import Plots

__all__ = ["CVAccessor"]

F = TypeVar("F", bound=Callable[..., Any])

LOSSES_ENTRY = re.compile(r"^    losses : .*\n(?:^        .*\n)+", re.MULTILINE)


def told_by(function: Callable[..., Any]) -> Callable[[F], F]:
    """Give a method the docstring of the function it calls, less the parameter ``losses``."""

    def tell(method: F) -> F:
        method.__doc__ = LOSSES_ENTRY.sub("", function.__doc__ or "", count=1)
        return method

    return tell


@pd.api.extensions.register_series_accessor("cvci")
@pd.api.extensions.register_dataframe_accessor("cvci")
@xr.register_dataarray_accessor("cvci")
@xr.register_dataset_accessor("cvci")
class CVAccessor:
    """Confidence intervals and comparisons of the losses in this object.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log. Its levels are looked for when a method is called, not before.

    Notes
    -----
    Each method is the function of the same name in `cvstats`, with this object as its log.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> cvstats.losses(log, prediction="ridge").cvci
    <cvci: 442 points, 10 repetitions, 10 folds, 1 model>
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def __repr__(self) -> str:
        """Say what was understood of the log."""
        return describing.understood(self._losses)

    def _repr_html_(self) -> str:
        """Say what was understood of the log, as the first section of the report does."""
        return reporting.fragment(self._losses)

    @property
    def plot(self) -> Plots:
        """Plots of these losses, as in ``losses.cvci.plot.forest()``; see `cvstats.plot`."""
        return Plots(self._losses)

    @told_by(reporting.report)
    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str | None = None,
        alpha: float = 0.05,
        seed: int = 0,
        missing: Missing = "raise",
    ) -> str | Path:
        return reporting.report(
            self._losses, path, title=title, alpha=alpha, seed=seed, missing=missing
        )

    @told_by(diagnosing.diagnose)
    def diagnose(self) -> pd.DataFrame:
        return diagnosing.diagnose(self._losses)

    @told_by(intervals.holdout)
    def holdout(
        self,
        *,
        interval: Literal["wald", "t", "wilson", "clopper-pearson"] = "wald",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return intervals.holdout(
            self._losses, interval=interval, alpha=alpha, by=by, missing=missing
        )

    @told_by(intervals.wald)
    def wald(
        self,
        *,
        variance: Literal["all-pairs", "within-fold"] = "all-pairs",
        fold_weights: Literal["size", "equal"] = "size",
        alternative: Alternative = "two-sided",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return intervals.wald(
            self._losses, variance=variance, fold_weights=fold_weights,
            alternative=alternative, alpha=alpha, by=by, missing=missing,
        )  # fmt: skip

    @told_by(intervals.naive)
    def naive(
        self, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Table:
        return intervals.naive(self._losses, alpha=alpha, by=by, missing=missing)

    @told_by(intervals.cv_t)
    def cv_t(
        self, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Table:
        return intervals.cv_t(self._losses, alpha=alpha, by=by, missing=missing)

    @told_by(intervals.quadratic)
    def quadratic(
        self,
        *,
        estimator: Literal["theta_1", "theta_2", "theta_3", "theta_4", "theta_5"] = "theta_5",
        bias: Sequence[float] | None = None,
        fold_weights: Literal["size", "equal"] = "size",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return intervals.quadratic(
            self._losses, estimator=estimator, bias=bias, fold_weights=fold_weights,
            alpha=alpha, by=by, missing=missing,
        )  # fmt: skip

    @told_by(resampled.corrected_t)
    def corrected_t(
        self,
        *,
        train_size: TrainSize = None,
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return resampled.corrected_t(
            self._losses, train_size=train_size, alpha=alpha, by=by, missing=missing
        )

    @told_by(resampled.conservative_z)
    def conservative_z(
        self, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Table:
        return resampled.conservative_z(self._losses, alpha=alpha, by=by, missing=missing)

    @told_by(resampled.five_by_two)
    def five_by_two(
        self,
        *,
        test: Literal["t", "f"] = "t",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return resampled.five_by_two(self._losses, test=test, alpha=alpha, by=by, missing=missing)

    @told_by(resampled.nested_cv)
    def nested_cv(
        self,
        *,
        bias_correction: Literal["paper", "code"] | None = "paper",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return resampled.nested_cv(
            self._losses, bias_correction=bias_correction, alpha=alpha, by=by, missing=missing
        )

    @told_by(resampled.replace_one)
    def replace_one(
        self,
        *,
        constant: Literal["efron-stein", "printed"] = "efron-stein",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return resampled.replace_one(
            self._losses, constant=constant, alpha=alpha, by=by, missing=missing
        )

    @told_by(bootstrapping.bootstrap_oob)
    def bootstrap_oob(
        self,
        *,
        monte_carlo: MonteCarlo = "kept",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return bootstrapping.bootstrap_oob(
            self._losses, monte_carlo=monte_carlo, alpha=alpha, by=by, missing=missing
        )

    @told_by(bootstrapping.bootstrap_632)
    def bootstrap_632(
        self,
        *,
        plus: bool = True,
        no_information: Rates | None = None,
        monte_carlo: MonteCarlo = "kept",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return bootstrapping.bootstrap_632(
            self._losses, plus=plus, no_information=no_information, monte_carlo=monte_carlo,
            alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by(percentiles.case_bootstrap)
    def case_bootstrap(
        self,
        *,
        leave_one_out: Losses | ArrayLike | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return percentiles.case_bootstrap(
            self._losses, leave_one_out=leave_one_out, alpha=alpha, missing=missing
        )

    @told_by(percentiles.location_shifted)
    def location_shifted(
        self,
        *,
        correction: Correction = "632+",
        no_information: Rates | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return percentiles.location_shifted(
            self._losses, correction=correction, no_information=no_information, alpha=alpha,
            missing=missing,
        )  # fmt: skip

    @told_by(percentiles.two_stage)
    def two_stage(
        self,
        *,
        correction: Correction = "632+",
        no_information: Rates | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return percentiles.two_stage(
            self._losses, correction=correction, no_information=no_information, alpha=alpha,
            missing=missing,
        )  # fmt: skip

    @told_by(choosing.methods)
    def methods(self) -> pd.DataFrame:
        return choosing.methods(self._losses)

    @told_by(choosing.interval)
    def interval(
        self,
        *,
        method: str | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return choosing.interval(self._losses, method=method, alpha=alpha, missing=missing)

    @told_by(describing.moments)
    def moments(
        self, *, by: str | Sequence[str] = describing.BY, missing: Missing = "raise"
    ) -> Any:
        return describing.moments(self._losses, by=by, missing=missing)

    @told_by(describing.decompose)
    def decompose(
        self,
        *,
        rho: float | Sequence[float] | None = None,
        gamma: float | None = None,
        independent: str | None = None,
        fold_weights: Literal["size", "equal"] = "size",
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return describing.decompose(
            self._losses, rho=rho, gamma=gamma, independent=independent,
            fold_weights=fold_weights, by=by, missing=missing,
        )  # fmt: skip

    @told_by(sourcing.out_of_source)
    def out_of_source(
        self,
        *,
        target: Literal["new_source", "these_sources"] = "new_source",
        variance: Literal["theta_b", "theta_a"] = "theta_b",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return sourcing.out_of_source(
            self._losses, target=target, variance=variance, alpha=alpha, by=by, missing=missing
        )

    @told_by(sourcing.clustered)
    def clustered(
        self,
        *,
        by: str = "source",
        correction: Literal["CR1", "CR3"] = "CR1",
        alpha: float = 0.05,
        per: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return sourcing.clustered(
            self._losses, by=by, correction=correction, alpha=alpha, per=per, missing=missing
        )

    @told_by(sourcing.heterogeneity)
    def heterogeneity(
        self,
        *,
        by: str = "source",
        variance: Literal["own", "pooled"] = "own",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return sourcing.heterogeneity(
            self._losses, by=by, variance=variance, alpha=alpha, missing=missing
        )

    @told_by(studying.source_estimators)
    def source_estimators(
        self, *, source: Hashable = None, other: Hashable = None, missing: Missing = "raise"
    ) -> Table:
        return studying.source_estimators(self._losses, source=source, other=other, missing=missing)

    @told_by(studying.source_components)
    def source_components(
        self, *, independent: str = "dataset", missing: Missing = "raise"
    ) -> Table:
        return studying.source_components(self._losses, independent=independent, missing=missing)

    @told_by(comparing.difference)
    def difference(self, other: Losses | None = None, *, reference: Hashable = None) -> Any:
        return comparing.difference(self._losses, other, reference=reference)

    @told_by(comparing.compare)
    def compare(
        self,
        other: Losses | None = None,
        *,
        reference: Hashable = None,
        method: Compared | None = None,
        options: Options = None,
        alternative: Alternative = "two-sided",
        adjust: Literal["holm", "bh", "max-t"] | None = "holm",
        alpha: float = 0.05,
        n_draws: int = 10_000,
        rng: Rng = None,
        missing: Missing = "raise",
    ) -> Any:
        return comparing.compare(
            self._losses, other, reference=reference, method=method, options=options,
            alternative=alternative, adjust=adjust, alpha=alpha, n_draws=n_draws, rng=rng,
            missing=missing,
        )  # fmt: skip

    @told_by(ranking.best_set)
    def best_set(
        self,
        *,
        alpha: float = 0.05,
        center: Literal["fold", "global"] = "fold",
        n_draws: int = 10_000,
        rng: Rng = None,
        screening: float | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return ranking.best_set(
            self._losses, alpha=alpha, center=center, n_draws=n_draws, rng=rng,
            screening=screening, missing=missing,
        )  # fmt: skip

    @told_by(margins.equivalence)
    def equivalence(
        self,
        other: Losses | None = None,
        *,
        margin: Margin,
        reference: Hashable = None,
        method: Compared | None = None,
        options: Options = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Any:
        return margins.equivalence(
            self._losses, other, margin=margin, reference=reference, method=method,
            options=options, alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by(margins.rope)
    def rope(
        self,
        other: Losses | None = None,
        *,
        margin: Margin,
        reference: Hashable = None,
        rho: float | None = None,
        train_size: TrainSize = None,
        missing: Missing = "raise",
    ) -> Any:
        return margins.rope(
            self._losses, other, margin=margin, reference=reference, rho=rho,
            train_size=train_size, missing=missing,
        )  # fmt: skip

    @told_by(counting.mcnemar)
    def mcnemar(
        self,
        other: Losses | None = None,
        *,
        reference: Hashable = None,
        test: Literal["exact", "chi2", "mid-p"] | None = None,
        correction: bool = False,
        adjust: Literal["holm", "bh"] | None = "holm",
        missing: Missing = "raise",
    ) -> Any:
        return counting.mcnemar(
            self._losses, other, reference=reference, test=test, correction=correction,
            adjust=adjust, missing=missing,
        )  # fmt: skip

    @told_by(counting.cochran_q)
    def cochran_q(self, *, missing: Missing = "raise") -> Table:
        return counting.cochran_q(self._losses, missing=missing)

    @told_by(mean_ranks.friedman)
    def friedman(
        self,
        *,
        by: str = "source",
        test: Literal["chi2", "f"] = "chi2",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return mean_ranks.friedman(self._losses, by=by, test=test, alpha=alpha, missing=missing)

    @told_by(mean_ranks.nemenyi)
    def nemenyi(
        self, *, by: str = "source", alpha: float = 0.05, missing: Missing = "raise"
    ) -> Any:
        return mean_ranks.nemenyi(self._losses, by=by, alpha=alpha, missing=missing)

    @told_by(planning.power)
    def power(
        self,
        other: Losses | None = None,
        *,
        effect: float,
        reference: Hashable = None,
        alternative: Alternative = "two-sided",
        target_power: float = 0.8,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Any:
        return planning.power(
            self._losses, other, effect=effect, reference=reference, alternative=alternative,
            target_power=target_power, alpha=alpha, missing=missing,
        )  # fmt: skip
