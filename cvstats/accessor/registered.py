"""The accessor itself: what it says of a log, and the parts that it is made of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import xarray as xr

from cvstats.accessor.comparisons import Comparisons
from cvstats.accessor.intervals import Intervals
from cvstats.accessor.telling import told_by

if TYPE_CHECKING:
    from cvstats.api.running import Missing, Table
    from cvstats.plot import Plots

__all__ = ["CVAccessor"]


@pd.api.extensions.register_series_accessor("cvci")
@pd.api.extensions.register_dataframe_accessor("cvci")
@xr.register_dataarray_accessor("cvci")
@xr.register_dataset_accessor("cvci")
class CVAccessor(Intervals, Comparisons):
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

    def __repr__(self) -> str:
        """Say what was understood of the log."""
        from cvstats.api import describing

        return describing.understood(self._losses)

    def _repr_html_(self) -> str:
        """Say what was understood of the log, as the first section of the report does."""
        from cvstats import reporting

        return reporting.fragment(self._losses)

    @property
    def plot(self) -> Plots:
        """Plots of these losses, as in ``losses.cvci.plot.forest()``; see `cvstats.plot`."""
        from cvstats.plot import Plots

        return Plots(self._losses)

    @told_by("cvstats.reporting")
    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str | None = None,
        alpha: float = 0.05,
        seed: int = 0,
        missing: Missing = "raise",
    ) -> str | Path:
        from cvstats import reporting

        return reporting.report(
            self._losses, path, title=title, alpha=alpha, seed=seed, missing=missing
        )

    @told_by("cvstats.diagnostics")
    def diagnose(self) -> pd.DataFrame:
        from cvstats import diagnostics

        return diagnostics.diagnose(self._losses)

    @told_by("cvstats.api.choosing")
    def methods(self) -> pd.DataFrame:
        from cvstats.api import choosing

        return choosing.methods(self._losses)

    @told_by("cvstats.api.choosing")
    def interval(
        self,
        *,
        method: str | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import choosing

        return choosing.interval(self._losses, method=method, alpha=alpha, missing=missing)

    @told_by("cvstats.api.describing")
    def moments(
        self,
        *,
        by: str | Sequence[str] = ("repetition", "fold"),
        missing: Missing = "raise",
    ) -> Any:
        from cvstats.api import describing

        return describing.moments(self._losses, by=by, missing=missing)

    @told_by("cvstats.api.describing")
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
        from cvstats.api import describing

        return describing.decompose(
            self._losses, rho=rho, gamma=gamma, independent=independent,
            fold_weights=fold_weights, by=by, missing=missing,
        )  # fmt: skip

    @told_by("cvstats.api.sourcing")
    def out_of_source(
        self,
        *,
        target: Literal["new_source", "these_sources"] = "new_source",
        variance: Literal["theta_b", "theta_a"] = "theta_b",
        alpha: float = 0.05,
        by: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import sourcing

        return sourcing.out_of_source(
            self._losses, target=target, variance=variance, alpha=alpha, by=by, missing=missing
        )

    @told_by("cvstats.api.sourcing")
    def clustered(
        self,
        *,
        by: str = "source",
        correction: Literal["CR1", "CR3"] = "CR1",
        alpha: float = 0.05,
        per: str | None = None,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import sourcing

        return sourcing.clustered(
            self._losses, by=by, correction=correction, alpha=alpha, per=per, missing=missing
        )

    @told_by("cvstats.api.sourcing")
    def heterogeneity(
        self,
        *,
        by: str = "source",
        variance: Literal["own", "pooled"] = "own",
        alpha: float = 0.05,
        missing: Missing = "raise",
    ) -> Table:
        from cvstats.api import sourcing

        return sourcing.heterogeneity(
            self._losses, by=by, variance=variance, alpha=alpha, missing=missing
        )

    @told_by("cvstats.api.studying")
    def source_estimators(
        self, *, source: Hashable = None, other: Hashable = None, missing: Missing = "raise"
    ) -> Table:
        from cvstats.api import studying

        return studying.source_estimators(self._losses, source=source, other=other, missing=missing)

    @told_by("cvstats.api.studying")
    def source_components(
        self, *, independent: str = "dataset", missing: Missing = "raise"
    ) -> Table:
        from cvstats.api import studying

        return studying.source_components(self._losses, independent=independent, missing=missing)
