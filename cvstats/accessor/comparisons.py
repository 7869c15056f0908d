"""Comparisons of models as methods of the accessor."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

from cvstats.accessor.telling import Holder, told_by
from cvstats.api import (
    comparing,
    counting,
    margins,
    mean_ranks,
    planning,
    ranking,
)
from cvstats.api.pairs import Options
from cvstats.api.running import Alternative, Compared, Losses, Missing, Table
from cvstats.api.running_resampled import TrainSize
from cvstats.comparison.margins import Margin
from cvstats.plans.drawing import Rng

__all__ = ["Comparisons"]


class Comparisons(Holder):
    """Methods that set models against each other."""

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
