"""Plots of logs and of what the methods say about them; they need matplotlib (extra ``plot``).

Each function takes ``ax=`` to draw on, returns the Axes, shows nothing and leaves no setting
behind. The same plots are methods of the accessor, as in ``losses.cvci.plot.forest()``.
"""

from __future__ import annotations

from cvstats.plot.namespace import Plots
from cvstats.plot.of_folds import folds, stability
from cvstats.plot.of_intervals import forest
from cvstats.plot.of_pairs import comparison
from cvstats.plot.of_ranks import best_set
from cvstats.plot.of_sources import sources
from cvstats.plot.of_variance import decomposition

__all__ = [
    "Plots",
    "best_set",
    "comparison",
    "decomposition",
    "folds",
    "forest",
    "sources",
    "stability",
]
