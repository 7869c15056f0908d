"""Differences of models, as rows and as a matrix."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from plotted import as_arrays, logged, many, marks, named, reach

import cvstats
from cvstats import plot

DIABETES = logged("diabetes")
FLIGHTS = logged("flights")


def test_differences_about_zero(ax):
    plot.comparison(FLIGHTS, reference="naive_bayes", ax=ax)
    table = cvstats.compare(FLIGHTS, reference="naive_bayes").sort_values("difference")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0, 0])
    np.testing.assert_array_equal(marks(ax)["p < 0.05 (Holm)"].get_xdata(), table["difference"])
    lower, upper, _ = reach(ax.collections[0])
    np.testing.assert_array_equal([lower, upper], [table["lower"], table["upper"]])
    open_marks = plot.comparison(DIABETES, ax=Figure().subplots())
    assert marks(open_marks)["p ≥ 0.05 (Holm)"].get_markerfacecolor() == "#ffffff"
    two = plot.comparison(DIABETES["ridge"], DIABETES["random_forest"], ax=Figure().subplots())
    assert list(marks(two)) == ["p ≥ 0.05"]


@pytest.mark.parametrize("losses", [FLIGHTS, as_arrays(FLIGHTS.droplevel("source"))])
def test_matrix_of_all_pairs(ax, losses):
    plot.comparison(losses, kind="matrix", ax=ax)
    values = ax.collections[0].get_array().reshape(3, 3).filled(np.nan)
    best, *others = FLIGHTS.mean().sort_values().index
    assert named(ax.yaxis) == [best, *others]
    table = cvstats.compare(FLIGHTS[[best, *others]])["difference"]
    np.testing.assert_allclose(values[0, 1:], table.iloc[:2], rtol=1e-9)
    np.testing.assert_array_equal(np.nan_to_num(values), -np.nan_to_num(values.T))
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts[(1, 0)] == f"−{-table.iloc[0]:.5f}"
    assert texts[(0, 1)] == f"{-table.iloc[0]:.5f}"


def test_names_below_a_matrix_are_upright(ax):
    plot.comparison(FLIGHTS, kind="matrix", ax=ax)
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {90.0}


def test_many_pairs_become_a_matrix(ax):
    plot.comparison(many(), ax=ax)
    clear = int((cvstats.compare(many())["p_adjusted"] < 0.05).sum())
    dots = [tuple(dot) for line in ax.lines for dot in line.get_xydata()]
    assert len(set(dots)) == len(dots) == 2 * clear  # in each of two cells
    assert set(dots) == {(y, x) for x, y in dots}
    assert list(ax.texts) == []


def test_a_score_is_drawn_in_its_own_direction(ax):
    log = cvstats.datasets.load("flights")
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss="auc")
    table = cvstats.as_scores(cvstats.compare(losses, reference="naive_bayes"))
    assert (table["difference"] > 0).all()
    plot.comparison(losses, reference="naive_bayes", ax=ax)
    np.testing.assert_array_equal(
        marks(ax)["p < 0.05 (Holm)"].get_xdata(), table["difference"].sort_values(ascending=False)
    )
    label = "difference in AUC,\N{NO-BREAK SPACE}95%\nfirst is better →"
    assert ax.get_xlabel() == f"{label}\ncaution: sources ignored"
    matrix = plot.comparison(losses, kind="matrix", ax=Figure().subplots())
    values = matrix.collections[0].get_array().reshape(3, 3).filled(np.nan)
    assert (values[0, 1:] > 0).all()  # the best is on top
    assert matrix.collections[0].get_cmap().name == "RdBu"


def test_errors_of_labels_are_an_error_rate(ax):
    log = cvstats.datasets.load("flights")
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss="zero_one", threshold=0.5)
    assert plot.comparison(losses, ax=ax).get_xlabel().startswith("difference in error rate")
    assert plot.folds(losses, ax=Figure().subplots()).get_ylabel().startswith("error rate\n")


def test_differences_are_compared_under_the_names_of_both_models(ax):
    log = DIABETES.set_axis(["a", "b", "c"], axis=1)
    log.attrs = DIABETES.attrs
    plot.comparison(log.cvci.difference(reference="a"), ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b − a\n− c − a"]
