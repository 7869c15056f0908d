"""Ranks of models."""

from __future__ import annotations

import numpy as np
from plotted import many, marks, named, reach

import cvstats
from cvstats import plot


def test_ranks(ax):
    plot.best_set(many(), rng=0, ax=ax)
    table = cvstats.best_set(many(), rng=0).sort_values("estimate")
    assert named(ax.yaxis) == list(table.index)
    lower, upper, heights = reach(ax.collections[0])
    inside = table["in_set"].to_numpy()
    np.testing.assert_array_equal(lower, table.loc[inside, "lower_rank"])
    np.testing.assert_array_equal(upper, table.loc[inside, "upper_rank"])
    np.testing.assert_array_equal(heights, np.flatnonzero(inside))
    np.testing.assert_array_equal(marks(ax)["possibly best"].get_xdata(), heights + 1)
