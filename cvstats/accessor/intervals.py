"""Intervals as methods of the accessor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from cvstats.accessor.telling import Holder, told_by

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cvstats.api.bootstrapping import MonteCarlo
    from cvstats.api.percentiles import Correction
    from cvstats.api.rates import Rates
    from cvstats.api.running import Alternative, Losses, Missing, Table
    from cvstats.api.running_resampled import TrainSize

__all__ = ["Intervals"]


class Intervals(Holder):
    """Methods that answer with an interval."""

    @told_by("cvstats.api.intervals")
    def holdout(
        self,
        *,
        interval: Literal["wald", "t", "wilson", "clopper-pearson"] = "wald",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import intervals

        return intervals.holdout(
            self._losses, interval=interval, alpha=alpha, by=by, missing=missing
        )

    @told_by("cvstats.api.intervals")
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
        from cvstats.api import intervals

        return intervals.wald(
            self._losses, variance=variance, fold_weights=fold_weights,
            alternative=alternative, alpha=alpha, by=by, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.intervals")
    def naive(
        self, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Table:
        from cvstats.api import intervals

        return intervals.naive(self._losses, alpha=alpha, by=by, missing=missing)

    @told_by("cvstats.api.intervals")
    def cv_t(
        self, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Table:
        from cvstats.api import intervals

        return intervals.cv_t(self._losses, alpha=alpha, by=by, missing=missing)

    @told_by("cvstats.api.intervals")
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
        from cvstats.api import intervals

        return intervals.quadratic(
            self._losses, estimator=estimator, bias=bias, fold_weights=fold_weights,
            alpha=alpha, by=by, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.resampled")
    def corrected_t(
        self,
        *,
        train_size: TrainSize = None,
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import resampled

        return resampled.corrected_t(
            self._losses, train_size=train_size, alpha=alpha, by=by, missing=missing
        )

    @told_by("cvstats.api.resampled")
    def conservative_z(
        self, *, alpha: float = 0.05, by: str | None = None, missing: Missing = "raise"
    ) -> Table:
        from cvstats.api import resampled

        return resampled.conservative_z(self._losses, alpha=alpha, by=by, missing=missing)

    @told_by("cvstats.api.resampled")
    def five_by_two(
        self,
        *,
        test: Literal["t", "f"] = "t",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import resampled

        return resampled.five_by_two(self._losses, test=test, alpha=alpha, by=by, missing=missing)

    @told_by("cvstats.api.resampled")
    def nested_cv(
        self,
        *,
        bias_correction: Literal["paper", "code"] | None = "paper",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import resampled

        return resampled.nested_cv(
            self._losses, bias_correction=bias_correction, alpha=alpha, by=by, missing=missing
        )

    @told_by("cvstats.api.resampled")
    def replace_one(
        self,
        *,
        constant: Literal["efron-stein", "printed"] = "efron-stein",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import resampled

        return resampled.replace_one(
            self._losses, constant=constant, alpha=alpha, by=by, missing=missing
        )

    @told_by("cvstats.api.bootstrapping")
    def bootstrap_oob(
        self,
        *,
        monte_carlo: MonteCarlo = "kept",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import bootstrapping

        return bootstrapping.bootstrap_oob(
            self._losses, monte_carlo=monte_carlo, alpha=alpha, by=by, missing=missing
        )

    @told_by("cvstats.api.bootstrapping")
    def bootstrap_632(
        self,
        *,
        plus: bool = True,
        no_information: Rates | None = None,
        monte_carlo: MonteCarlo = "kept",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import bootstrapping

        return bootstrapping.bootstrap_632(
            self._losses, plus=plus, no_information=no_information, monte_carlo=monte_carlo,
            alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.percentiles")
    def case_bootstrap(
        self,
        *,
        leave_one_out: Losses | ArrayLike | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import percentiles

        return percentiles.case_bootstrap(
            self._losses, leave_one_out=leave_one_out, alpha=alpha, missing=missing
        )

    @told_by("cvstats.api.percentiles")
    def location_shifted(
        self,
        *,
        correction: Correction = "632+",
        no_information: Rates | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import percentiles

        return percentiles.location_shifted(
            self._losses, correction=correction, no_information=no_information, alpha=alpha,
            missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.percentiles")
    def two_stage(
        self,
        *,
        correction: Correction = "632+",
        no_information: Rates | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import percentiles

        return percentiles.two_stage(
            self._losses, correction=correction, no_information=no_information, alpha=alpha,
            missing=missing,
        )  # fmt: skip
