"""Means of folds: drawn at the numbers of `moments`."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from plotted import logged

import cvstats
from cvstats import plot

DIABETES = logged("diabetes")
FLIGHTS = logged("flights")


def test_folds_stand_at_the_means_of_the_cells(ax):
    plot.folds(DIABETES, ax=ax)
    cells = cvstats.moments(DIABETES)
    best_first = DIABETES.mean().sort_values().index
    for model, line in zip(best_first, ax.lines, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), cells.loc[model, "mean"])
        codes = cells.loc[model].index.get_level_values("repetition")
        np.testing.assert_allclose(line.get_xdata(), codes, atol=0.3)
    for model, lines in zip(best_first, ax.collections, strict=True):
        heights = np.array(lines.get_segments())[:, 0, 1]
        expected = DIABETES[model].groupby(level="repetition").mean()
        np.testing.assert_allclose(heights, expected, rtol=1e-12)
    assert ax.get_xlabel() == "repetition"
    assert ax.get_ylabel() == "mean squared error [score²]\n← lower is better"


def test_folds_of_one_repetition_and_of_random_splits(ax):
    plot.folds(FLIGHTS["naive_bayes"], ax=ax)
    assert ax.get_xlabel() == "fold"
    line = ax.lines[-1]
    np.testing.assert_allclose(line.get_ydata(), FLIGHTS["naive_bayes"].mean(), rtol=1e-12)
    assert ax.get_legend() is None
    ax = plot.folds(DIABETES["ridge"].droplevel("fold"), ax=Figure().subplots())
    assert ax.get_xlabel() == "repetition"
    numbered = pd.concat({0: FLIGHTS["naive_bayes"]}, names=["repetition"])
    ax = plot.folds(numbered, ax=Figure().subplots())
    assert ax.get_xlabel() == "fold"
