"""Bars of the parts of the variance add up to it."""

import numpy as np
import pytest
from plotted import as_arrays, logged, marks

import cvstats
from cvstats import plot

DIABETES = logged("diabetes")
BEST_FIRST = DIABETES.mean().sort_values().index


@pytest.mark.parametrize("losses", [DIABETES, as_arrays(DIABETES)])
def test_bars_add_up_to_theta(ax, losses):
    rho = [0.0, 0.1, 0.4]
    plot.decomposition(losses, rho=rho, ax=ax)
    total = sum(np.array([bar.get_width() for bar in parts]) for parts in ax.containers)
    theta = cvstats.decompose(DIABETES, rho=rho)["theta"].unstack("rho").reindex(BEST_FIRST)
    heights = [bar.get_y() for bar in ax.containers[0]]
    order = np.argsort(heights)
    np.testing.assert_allclose(total[order], theta.to_numpy().reshape(-1), rtol=1e-9)
    table = cvstats.decompose(DIABETES, rho=rho).reset_index()
    of_points = table["sigma2_minus_omega"] / table.attrs["n_points"]
    widths = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(np.sort(widths), np.sort(of_points), rtol=1e-9)
    strokes = marks(ax)["θ, the total"]
    np.testing.assert_allclose(strokes.get_xdata(), total, rtol=1e-9)
    diamonds = marks(ax)["se² of wald"]
    expected = np.repeat(cvstats.wald(DIABETES)["se"] ** 2, 3)
    np.testing.assert_allclose(np.sort(diamonds.get_xdata()), np.sort(expected), rtol=1e-12)
    assert "(score²)²" in ax.get_xlabel().replace("\n", "")
