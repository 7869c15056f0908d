"""The accessor ``.cvci`` on pandas and xarray objects. It holds the object and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, TypeVar

import pandas as pd
import xarray as xr

from cvstats.api import comparing, describing, intervals
from cvstats.api.running import Alternative, Losses, Missing, Table

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

    @told_by(intervals.holdout)
    def holdout(
        self,
        *,
        interval: Literal["wald", "t", "wilson", "clopper-pearson"] = "wald",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return intervals.holdout(self._losses, interval=interval, alpha=alpha, missing=missing)

    @told_by(intervals.wald)
    def wald(
        self,
        *,
        variance: Literal["all-pairs", "within-fold"] = "all-pairs",
        fold_weights: Literal["size", "equal"] = "size",
        alternative: Alternative = "two-sided",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return intervals.wald(
            self._losses, variance=variance, fold_weights=fold_weights,
            alternative=alternative, alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by(intervals.naive)
    def naive(self, *, alpha: float = 0.05, missing: Missing = "raise") -> Table:
        return intervals.naive(self._losses, alpha=alpha, missing=missing)

    @told_by(intervals.cv_t)
    def cv_t(self, *, alpha: float = 0.05, missing: Missing = "raise") -> Table:
        return intervals.cv_t(self._losses, alpha=alpha, missing=missing)

    @told_by(intervals.quadratic)
    def quadratic(
        self,
        *,
        estimator: Literal["theta_1", "theta_2", "theta_3", "theta_4", "theta_5"] = "theta_5",
        bias: Sequence[float] | None = None,
        fold_weights: Literal["size", "equal"] = "size",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        return intervals.quadratic(
            self._losses, estimator=estimator, bias=bias, fold_weights=fold_weights,
            alpha=alpha, missing=missing,
        )  # fmt: skip

    @told_by(describing.moments)
    def moments(
        self, *, by: str | Sequence[str] = describing.BY, missing: Missing = "raise"
    ) -> Any:
        return describing.moments(self._losses, by=by, missing=missing)

    @told_by(describing.decompose)
    def decompose(
        self,
        *,
        rho: float | None = None,
        gamma: float | None = None,
        missing: Missing = "raise",
    ) -> Table:
        return describing.decompose(self._losses, rho=rho, gamma=gamma, missing=missing)

    @told_by(comparing.difference)
    def difference(self, other: Losses | None = None, *, reference: Hashable = None) -> Any:
        return comparing.difference(self._losses, other, reference=reference)

    @told_by(comparing.compare)
    def compare(
        self,
        other: Losses | None = None,
        *,
        reference: Hashable = None,
        method: Literal["wald", "holdout", "naive", "cv_t", "quadratic"] | None = None,
        alternative: Alternative = "two-sided",
        adjust: Literal["holm", "bh"] | None = "holm",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Any:
        return comparing.compare(
            self._losses, other, reference=reference, method=method, alternative=alternative,
            adjust=adjust, alpha=alpha, missing=missing,
        )  # fmt: skip
