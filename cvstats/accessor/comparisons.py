"""Comparisons of models as methods of the accessor."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal

from cvstats.accessor.telling import Holder, told_by

if TYPE_CHECKING:
    from cvstats.api.running import Losses, Table
    from cvstats.api.running_resampled import TrainSize
    from cvstats.comparisons._pairs import Options
    from cvstats.comparisons.equivalence import Margin
    from cvstats.options import Alternative, Missing, Rng

__all__ = ["Comparisons"]


class Comparisons(Holder):
    """Methods that set models against each other."""

    @told_by("cvstats.comparisons.difference")
    def difference(self, other: Losses | None = None, *, reference: Hashable = None) -> Any:
        from cvstats.comparisons.difference import difference

        return difference(self._losses, other, reference=reference)

    @told_by("cvstats.comparisons.compare")
    def compare(
        self,
        other: Losses | None = None,
        *,
        reference: Hashable = None,
        method: str | None = None,
        options: Options = None,
        alternative: Alternative = "two-sided",
        adjust: Literal["holm", "bh", "max-t"] | None = "holm",
        alpha: float = 0.05,
        n_draws: int = 10_000,
        rng: Rng = None,
        missing: Missing = "raise",
    ) -> Any:
        from cvstats.comparisons.compare import compare

        return compare(
            self._losses, other, reference=reference, method=method, options=options,
            alternative=alternative, adjust=adjust, alpha=alpha, n_draws=n_draws, rng=rng,
            missing=missing,
        )  # fmt: skip

    @told_by("cvstats.comparisons.best_set")
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
        from cvstats.comparisons.best_set import best_set

        return best_set(
            self._losses, alpha=alpha, center=center, n_draws=n_draws, rng=rng,
            screening=screening, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.comparisons.equivalence")
    def equivalence(
        self,
        other: Losses | None = None,
        *,
        margin: Margin | None = None,
        reference: Hashable = None,
        method: str | None = None,
        options: Options = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Any:
        from cvstats.comparisons.equivalence import equivalence

        return equivalence(
            self._losses, other, margin=margin, reference=reference, method=method,
            options=options, alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.comparisons.rope")
    def rope(
        self,
        other: Losses | None = None,
        *,
        margin: Margin | None = None,
        reference: Hashable = None,
        rho: float | None = None,
        train_size: TrainSize = None,
        missing: Missing = "raise",
    ) -> Any:
        from cvstats.comparisons.rope import rope

        return rope(
            self._losses, other, margin=margin, reference=reference, rho=rho,
            train_size=train_size, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.comparisons.mcnemar")
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
        from cvstats.comparisons.mcnemar import mcnemar

        return mcnemar(
            self._losses, other, reference=reference, test=test, correction=correction,
            adjust=adjust, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.comparisons.cochran_q")
    def cochran_q(self, *, missing: Missing = "raise") -> Table:
        from cvstats.comparisons.cochran_q import cochran_q

        return cochran_q(self._losses, missing=missing)

    @told_by("cvstats.comparisons.friedman")
    def friedman(
        self,
        *,
        by: str = "source",
        test: Literal["chi2", "f"] = "chi2",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.comparisons.friedman import friedman

        return friedman(self._losses, by=by, test=test, alpha=alpha, missing=missing)

    @told_by("cvstats.comparisons.nemenyi")
    def nemenyi(
        self, *, by: str = "source", alpha: float = 0.05, missing: Missing = "raise"
    ) -> Any:
        from cvstats.comparisons.nemenyi import nemenyi

        return nemenyi(self._losses, by=by, alpha=alpha, missing=missing)

    @told_by("cvstats.comparisons.power")
    def power(
        self,
        other: Losses | None = None,
        *,
        effect: float | None = None,
        reference: Hashable = None,
        alternative: Alternative = "two-sided",
        target_power: float = 0.8,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Any:
        from cvstats.comparisons.power import power

        return power(
            self._losses, other, effect=effect, reference=reference, alternative=alternative,
            target_power=target_power, alpha=alpha, missing=missing,
        )  # fmt: skip
