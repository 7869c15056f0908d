"""Plots of logs and of the results of methods; they need matplotlib (extra ``plot``).

Each function takes ``ax=`` to draw on, returns the Axes, and neither shows the figure nor changes
any settings. The same plots are methods of the accessor, as in ``losses.cvci.plot.forest()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cvstats.registry import make_method, warn_if_broken

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvstats.log.log import Losses

with warn_if_broken("cvstats.plot.best_set"):
    from cvstats.plot.best_set import best_set as best_set
with warn_if_broken("cvstats.plot.comparison"):
    from cvstats.plot.comparison import comparison as comparison
with warn_if_broken("cvstats.plot.decomposition"):
    from cvstats.plot.decomposition import decomposition as decomposition
with warn_if_broken("cvstats.plot.folds"):
    from cvstats.plot.folds import folds as folds
with warn_if_broken("cvstats.plot.forest"):
    from cvstats.plot.forest import forest as forest
with warn_if_broken("cvstats.plot.map"):
    from cvstats.plot.map import map as map
with warn_if_broken("cvstats.plot.reliability"):
    from cvstats.plot.reliability import reliability as reliability
with warn_if_broken("cvstats.plot.sources"):
    from cvstats.plot.sources import sources as sources
with warn_if_broken("cvstats.plot.stability"):
    from cvstats.plot.stability import stability as stability

PLOTS: dict[str, Callable[..., Axes]] = {
    name: found
    for name, found in list(globals().items())
    if getattr(found, "__module__", "") == f"{__name__}.{name}"
}
"""Each plot by its name, which is also that of its file."""
__all__ = ["Plots", *PLOTS]


class Plots:
    """Plots of the losses in an object; each accepts ``ax=`` and returns the Axes.

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

    if TYPE_CHECKING:  # what the loop below gives the class

        def __getattr__(self, name: str) -> Callable[..., Axes]:
            """Return a plot."""


for name, draw in PLOTS.items():
    setattr(Plots, name, make_method(draw, "_losses"))


def __dir__() -> list[str]:
    return __all__
