"""The plots as methods: ``losses.cvci.plot.forest()``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from cvstats.api.running import Compared, Losses, Missing, Table
from cvstats.options import Rng
from cvstats.plot.of_folds import folds, stability
from cvstats.plot.of_intervals import forest
from cvstats.plot.of_pairs import comparison
from cvstats.plot.of_ranks import best_set
from cvstats.plot.of_sources import sources
from cvstats.plot.of_variance import RHO, decomposition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plots"]


class Plots:
    """Plots of the losses in an object; each takes ``ax=`` and returns the Axes.

    Parameters
    ----------
    losses : Series, DataFrame, DataArray or Dataset
        A loss log.

    Notes
    -----
    Each method is the function of the same name in `cvstats.plot`, with this object as its log.

    Examples
    --------
    >>> import cvstats
    >>> log = cvstats.datasets.load("diabetes")
    >>> cvstats.losses(log, prediction="ridge").cvci.plot
    <cvci.plot: best_set, comparison, decomposition, folds, forest, sources, stability>
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def __repr__(self) -> str:
        """Name the plots."""
        names = ", ".join(sorted(name for name in vars(type(self)) if not name.startswith("_")))
        return f"<cvci.plot: {names}>"

    def forest(
        self,
        *,
        methods: Sequence[str] | Mapping[str, Table] | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the intervals of all models; see `cvstats.plot.forest`."""
        return forest(self._losses, methods=methods, alpha=alpha, missing=missing, ax=ax)

    def folds(self, *, missing: Missing = "raise", ax: Axes | None = None) -> Axes:
        """Draw the mean loss of every fold; see `cvstats.plot.folds`."""
        return folds(self._losses, missing=missing, ax=ax)

    def stability(
        self,
        *,
        method: str | None = None,
        alpha: float = 0.05,
        missing: Missing = "raise",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the interval of the first r repetitions; see `cvstats.plot.stability`."""
        return stability(self._losses, method=method, alpha=alpha, missing=missing, ax=ax)

    def sources(
        self, *, alpha: float = 0.05, missing: Missing = "raise", ax: Axes | None = None
    ) -> Axes:
        """Draw an interval for each source and a new one; see `cvstats.plot.sources`."""
        return sources(self._losses, alpha=alpha, missing=missing, ax=ax)

    def decomposition(
        self,
        *,
        rho: Sequence[float] = RHO,
        missing: Missing = "raise",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the parts of the variance of the mean; see `cvstats.plot.decomposition`."""
        return decomposition(self._losses, rho=rho, missing=missing, ax=ax)

    def comparison(
        self,
        other: Losses | None = None,
        *,
        reference: Hashable = None,
        kind: Literal["intervals", "matrix"] | None = None,
        method: Compared | None = None,
        adjust: Literal["holm", "bh", "max-t"] | None = "holm",
        alpha: float = 0.05,
        rng: Rng = None,
        missing: Missing = "raise",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw paired differences, or a matrix of them; see `cvstats.plot.comparison`."""
        return comparison(
            self._losses, other, reference=reference, kind=kind, method=method, adjust=adjust,
            alpha=alpha, rng=rng, missing=missing, ax=ax,
        )  # fmt: skip

    def best_set(
        self,
        *,
        alpha: float = 0.05,
        center: Literal["fold", "global"] = "fold",
        n_draws: int = 10_000,
        rng: Rng = None,
        missing: Missing = "raise",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the models that may be the best; see `cvstats.plot.best_set`."""
        return best_set(
            self._losses, alpha=alpha, center=center, n_draws=n_draws, rng=rng, missing=missing,
            ax=ax,
        )  # fmt: skip
