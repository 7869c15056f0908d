"""Plots of logs and of the results of methods; they need matplotlib (extra ``plot``).

Each function takes ``ax=`` to draw on, returns the Axes, and neither shows the figure nor changes
any settings. The same plots are methods of the accessor, as in ``losses.cvci.plot.forest()``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from cvstats.registry import PLOTS as MODULES
from cvstats.registry import make_method, warn_if_broken

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cvstats.log.log import Losses

PLOTS: dict[str, Callable[..., Axes]] = {}
"""Each plot by its name, which is also that of its file."""
for name, module in MODULES.items():
    with warn_if_broken(module):
        PLOTS[name] = vars(import_module(module))[name]
globals().update(PLOTS)
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


for name, draw in PLOTS.items():
    setattr(Plots, name, make_method(draw, "_losses"))


def __dir__() -> list[str]:
    return __all__
