"""Plots of logs and of the results of methods; they need matplotlib (extra ``plot``).

Each function takes ``ax=`` to draw on, returns the Axes, shows nothing and leaves no setting
behind. The same plots are methods of the accessor, as in ``losses.cvci.plot.forest()``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from cvstats.plot.comparison import best_set, comparison
from cvstats.plot.intervals import decomposition, folds, forest, sources, stability
from cvstats.plot.map import map
from cvstats.plot.reliability import reliability
from cvstats.registry import describe_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvstats.log.log import Losses

__all__ = [
    "Plots",
    "best_set",
    "comparison",
    "decomposition",
    "folds",
    "forest",
    "map",
    "reliability",
    "sources",
    "stability",
]


def as_method(draw: Callable[..., Axes]) -> Callable[..., Axes]:
    """Make a method of a plot: the log is that of the object."""

    @wraps(draw)
    def method(self: Plots, *args: Any, **options: Any) -> Axes:
        return draw(self._losses, *args, **options)

    method.__doc__ = describe_method(draw)
    return method


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
    >>> cvstats.losses(log, prediction="ridge").cvci.plot  # doctest: +ELLIPSIS
    <cvci.plot: best_set, comparison, ..., reliability, sources, stability>
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    def __repr__(self) -> str:
        """List the plots."""
        names = ", ".join(sorted(name for name in vars(type(self)) if not name.startswith("_")))
        return f"<cvci.plot: {names}>"

    best_set = as_method(best_set)
    comparison = as_method(comparison)
    decomposition = as_method(decomposition)
    folds = as_method(folds)
    forest = as_method(forest)
    map = as_method(map)
    reliability = as_method(reliability)
    sources = as_method(sources)
    stability = as_method(stability)
