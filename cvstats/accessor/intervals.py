"""Intervals as methods of the accessor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from numpy.typing import ArrayLike

from cvstats.accessor.telling import Holder, told_by
from cvstats.api import (
    bootstrapping,
    intervals,
    percentiles,
    resampled,
)
from cvstats.api.bootstrapping import MonteCarlo
from cvstats.api.percentiles import Correction
from cvstats.api.rates import Rates
from cvstats.api.running import Alternative, Losses, Missing, Table
from cvstats.api.running_resampled import TrainSize

__all__ = ["Intervals"]


class Intervals(Holder):
    """Methods that answer with an interval."""

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
