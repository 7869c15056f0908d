"""Plots of logs and of results, for type checkers; written by ``python -m tools.stubs``."""

from cvstats import plot
from cvstats.log.log import Losses
from cvstats.log.methods import method
from cvstats.plot.best_set import best_set as best_set
from cvstats.plot.comparison import comparison as comparison
from cvstats.plot.decomposition import decomposition as decomposition
from cvstats.plot.folds import folds as folds
from cvstats.plot.forest import forest as forest
from cvstats.plot.map import map as map
from cvstats.plot.reliability import reliability as reliability
from cvstats.plot.sources import sources as sources
from cvstats.plot.stability import stability as stability

class Plots:
    def __init__(self, losses: Losses) -> None: ...
    best_set = method(plot.best_set)
    comparison = method(plot.comparison)
    decomposition = method(plot.decomposition)
    folds = method(plot.folds)
    forest = method(plot.forest)
    map = method(plot.map)
    reliability = method(plot.reliability)
    sources = method(plot.sources)
    stability = method(plot.stability)
