"""Comparisons of models as methods of the accessor."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Literal

from cvstats.accessor.telling import Holder, told_by

if TYPE_CHECKING:
    from cvstats.api.pairs import Options
    from cvstats.api.running import Alternative, Compared, Losses, Missing, Table
    from cvstats.api.running_resampled import TrainSize
    from cvstats.comparisons.margins import Margin
    from cvstats.options import Rng

__all__ = ["Comparisons"]


class Comparisons(Holder):
    """Methods that set models against each other."""

    @told_by("cvstats.api.comparing")
    def difference(self, other: Losses | None = None, *, reference: Hashable = None) -> Any:
        from cvstats.api import comparing

        return comparing.difference(self._losses, other, reference=reference)

    @told_by("cvstats.api.comparing")
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
        from cvstats.api import comparing

        return comparing.compare(
            self._losses, other, reference=reference, method=method, options=options,
            alternative=alternative, adjust=adjust, alpha=alpha, n_draws=n_draws, rng=rng,
            missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.ranking")
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
        from cvstats.api import ranking

        return ranking.best_set(
            self._losses, alpha=alpha, center=center, n_draws=n_draws, rng=rng,
            screening=screening, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.margins")
    def equivalence(
        self,
        other: Losses | None = None,
        *,
        margin: Margin | None = None,
        reference: Hashable = None,
        method: Compared | None = None,
        options: Options = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Any:
        from cvstats.api import margins

        return margins.equivalence(
            self._losses, other, margin=margin, reference=reference, method=method,
            options=options, alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.margins")
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
        from cvstats.api import margins

        return margins.rope(
            self._losses, other, margin=margin, reference=reference, rho=rho,
            train_size=train_size, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.counting")
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
        from cvstats.api import counting

        return counting.mcnemar(
            self._losses, other, reference=reference, test=test, correction=correction,
            adjust=adjust, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.counting")
    def cochran_q(self, *, missing: Missing = "raise") -> Table:
        from cvstats.api import counting

        return counting.cochran_q(self._losses, missing=missing)

    @told_by("cvstats.api.mean_ranks")
    def friedman(
        self,
        *,
        by: str = "source",
        test: Literal["chi2", "f"] = "chi2",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import mean_ranks

        return mean_ranks.friedman(self._losses, by=by, test=test, alpha=alpha, missing=missing)

    @told_by("cvstats.api.mean_ranks")
    def nemenyi(
        self, *, by: str = "source", alpha: float = 0.05, missing: Missing = "raise"
    ) -> Any:
        from cvstats.api import mean_ranks

        return mean_ranks.nemenyi(self._losses, by=by, alpha=alpha, missing=missing)

    @told_by("cvstats.api.planning")
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
        from cvstats.api import planning

        return planning.power(
            self._losses, other, effect=effect, reference=reference, alternative=alternative,
            target_power=target_power, alpha=alpha, missing=missing,
        )  # fmt: skip
