"""Ranks of models."""

import numpy as np
import pytest
import xarray as xr
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


def test_ranks_of_a_grid_are_drawn_for_one_cell(ax):
    each = many(4).to_xarray()
    grid = xr.concat([each, 2 * each], xr.DataArray([1, 2], dims="lead"))
    with pytest.raises(cvstats.LogError, match="one cell at a time. Select one, as in log.sel"):
        plot.best_set(grid, rng=0, ax=ax)
    plot.best_set(grid.sel(lead=2), rng=0, ax=ax)
