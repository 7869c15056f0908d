"""Forest plots: intervals are drawn at their numbers, sorted, and named."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from plotted import as_arrays, logged, many, marks, named, reach

import cvstats
from cvstats import plot
from cvstats.errors import LogError
from cvstats.plot._axes import GREY

DIABETES = logged("diabetes")
FLIGHTS = logged("flights")


def test_each_difference_of_a_log_of_differences_has_a_row(ax):
    short = DIABETES.rename(columns={"random_forest": "forest", "gradient_boosting": "boosting"})
    log = short.cvci.difference()
    wanted = cvstats.interval(log).sort_values("estimate")
    array = xr.DataArray(short, dims=("evaluation", "model")).unstack("evaluation")
    for differences in (log, array.cvci.difference()):
        ax = plot.forest(differences, ax=Figure().subplots())
        assert named(ax.yaxis) == [f"{one} − {two}" for one, two in wanted.index]
        left, right, row = reach(ax.collections[0])
        np.testing.assert_allclose(np.array([left, right]).T, wanted[["lower", "upper"]])
        assert row.tolist() == [0, 1, 2]
        assert marks(ax)["no difference"].get_xdata()[0] == 0
        assert ax.get_xlabel().startswith("difference in ")
        assert ax.get_xlabel().endswith("← first is better")


def test_the_axis_of_a_contrast_names_its_groups():
    log = DIABETES.xs(0, level="repetition")
    odd = pd.Index(np.where(log.index.get_level_values("point") % 2, "odd", "even"), name="kind")
    groups = log.set_index(odd, append=True).cvci.contrast(by="kind", between=("odd", "even"))
    for draw in (plot.forest, plot.comparison):
        label = draw(groups, ax=Figure().subplots()).get_xlabel()
        assert label.startswith("difference in ")
        assert "(odd - even)" in label


@pytest.mark.parametrize(("models", "between"), [(10, "\n− "), (13, " − ")])
def test_pairs_have_two_lines_each_if_there_is_room(models, between):
    pairs = plot.comparison(many(models), reference="model_0", ax=Figure().subplots())
    assert {row.count(between) for row in named(pairs.yaxis)} == {1}


def test_names_that_read_alike_have_rows_of_their_own(ax):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_arrays([np.arange(40) % 5, range(40)], names=["fold", "point"])
    losses = pd.DataFrame(
        {1: rng.random(40), "1": rng.random(40), "tree": 2.0 + rng.random(40)}, index
    )
    plot.forest(losses, methods=["wald"], ax=ax)
    assert sorted(named(ax.yaxis)) == sorted(["1", "'1'", "'tree'"])
    plot.forest(losses[["1", "tree"]], methods=["wald"], ax=Figure().subplots())
    pairs = plot.comparison(losses, ax=Figure().subplots())
    assert {name for row in named(pairs.yaxis) for name in row.split("\n− ")} == {
        "1",
        "'1'",
        "'tree'",
    }
    matrix = plot.comparison(losses, kind="matrix", ax=Figure().subplots())
    assert named(matrix.yaxis) == ["'1'", "1", "'tree'"]


@pytest.mark.parametrize("losses", [DIABETES, as_arrays(DIABETES), as_arrays(DIABETES, "dim")])
def test_forest_stands_at_the_numbers(ax, losses):
    assert plot.forest(losses, methods=["wald", "naive"], ax=ax) is ax
    for at, name in enumerate(("wald", "naive")):
        table = getattr(cvstats, name)(DIABETES)
        place = table["estimate"].rank() - 1
        line = marks(ax)[f"{name}, 95%"]
        np.testing.assert_allclose(line.get_xdata(), table["estimate"], rtol=1e-12)
        lower, upper, heights = reach(ax.collections[at])
        np.testing.assert_allclose(lower, table["lower"], rtol=1e-12)
        np.testing.assert_allclose(upper, table["upper"], rtol=1e-12)
        np.testing.assert_array_equal(heights, line.get_ydata())
        np.testing.assert_allclose(heights, place, atol=0.3)
    assert named(ax.yaxis) == DIABETES.mean().sort_values().index.tolist()
    assert ax.get_xlabel() == "squared error [score²]\n← lower is better"
    assert ax.yaxis_inverted()
    assert to_hex(marks(ax)["naive, 95%"].get_color()) == GREY.lower()


def test_forest_of_several_methods_and_results(ax):
    tables = {"80%": cvstats.wald(DIABETES, alpha=0.2), "folds": cvstats.cv_t(DIABETES)}
    plot.forest(DIABETES, methods=tables, ax=ax)
    assert list(marks(ax)) == ["80%, 80%", "folds, 95%", "best estimate"]
    assert to_hex(marks(ax)["folds, 95%"].get_color()) == GREY.lower()
    names = ["wald", "corrected_t", "naive"]
    other = plot.forest(DIABETES, methods=names, alpha=0.1, ax=Figure().subplots())
    assert list(marks(other)) == [*(f"{name}, 90%" for name in names), "best estimate"]
    colours = [to_hex(line.get_color()) for line in other.lines[:3]]
    assert len(set(colours)) == 3


def test_one_model_and_carried_cells_are_named(ax):
    plot.forest(DIABETES["ridge"], ax=ax)
    assert named(ax.yaxis) == ["ridge"]
    grid = xr.concat([as_arrays(DIABETES)["ridge"], as_arrays(DIABETES)["ridge"] + 1], dim="lead")
    other = plot.forest(grid.assign_coords(lead=[6, 12]), ax=Figure().subplots())
    assert named(other.yaxis) == ["ridge · lead=6", "ridge · lead=12"]
    one = DIABETES["ridge"].rename(None)
    for log in (one, cvstats.Moments.of_log(one)):
        nameless = plot.forest(log, ax=Figure().subplots())
        assert named(nameless.yaxis) == []


def test_columns_of_several_levels_name_a_model_together(ax):
    losses = DIABETES.set_axis(pd.MultiIndex.from_product([["a"], DIABETES.columns]), axis=1)
    plot.forest(losses, ax=ax)
    assert named(ax.yaxis)[0] == "a · ridge"
    other = plot.folds(losses, ax=Figure().subplots())
    assert len(marks(other)) == 3


def test_losses_are_named_in_words(ax):
    losses = FLIGHTS.copy()
    for name, words in (
        ("zero_one", "error rate\n← lower is better"),
        ("1 - accuracy", "accuracy\nhigher is better →"),
        ("percentage_error", "absolute percentage error\n← lower is better"),
        ("pinball", "pinball loss\n← lower is better"),
        ("hinge", "hinge loss\n← lower is better"),
    ):
        losses.attrs = {"loss": name}
        label = plot.forest(losses, ax=ax).get_xlabel()
        assert label == f"{words}\ncaution: sources ignored"


def test_a_loss_without_units_has_none(ax):
    losses = DIABETES.copy()
    losses.attrs = {"units": "1"}
    plot.forest(losses, ax=ax)
    assert ax.get_xlabel() == "loss\n← lower is better"


def test_a_score_is_drawn_in_its_own_direction(ax):
    log = cvstats.datasets.load("flights")
    losses = cvstats.losses(log, prediction=log.attrs["models"], loss="auc")
    plot.forest(losses, methods=["wald"], ax=ax)
    scores = cvstats.as_scores(cvstats.wald(losses)).sort_values("estimate", ascending=False)
    assert named(ax.yaxis) == list(scores.index)
    np.testing.assert_array_equal(np.sort(ax.lines[0].get_xdata())[::-1], scores["estimate"])
    assert ax.get_xlabel() == "AUC\nhigher is better →\ncaution: sources ignored"
    turned = {"wald": cvstats.as_scores(cvstats.wald(losses))}
    again = plot.forest(losses, methods=turned, ax=Figure().subplots())
    np.testing.assert_array_equal(again.lines[0].get_xdata(), ax.lines[0].get_xdata())
    folds = plot.folds(losses, ax=Figure().subplots())
    assert folds.get_ylabel() == "AUC\nhigher is better →"
    assert folds.lines[0].get_ydata().max() < 1 - losses.to_numpy().min()
    ranks = plot.best_set(losses, rng=0, ax=Figure().subplots())
    assert named(ranks.yaxis) == list(scores.index)
    assert ranks.get_xlabel().startswith("rank by AUC")
    own = plot.stability(
        cvstats.losses(
            cvstats.datasets.load("diabetes"), prediction=["ridge", "random_forest"], loss="r2"
        ),
        ax=Figure().subplots(),
    )
    assert own.lines[0].get_ydata()[-1] > own.lines[2].get_ydata()[-1] > 0


def test_without_methods_there_is_the_chosen_one_and_a_line_at_the_best(ax):
    plot.forest(DIABETES, ax=ax)
    assert list(marks(ax)) == ["wald, 95%", "best estimate"]
    assert marks(ax)["best estimate"].get_xdata()[0] == cvstats.wald(DIABETES)["estimate"].min()
    log = cvstats.datasets.load("flights")
    scores = cvstats.losses(log, prediction=log.attrs["models"], loss="auc")
    line = marks(plot.forest(scores, ax=Figure().subplots()))["best estimate"]
    assert line.get_xdata()[0] == 1 - cvstats.wald(scores)["estimate"].min()
    one = plot.forest(DIABETES[["ridge"]], ax=Figure().subplots())
    assert list(marks(one)) == ["wald, 95%"]
    grid = xr.concat([as_arrays(DIABETES)["ridge"], as_arrays(DIABETES)["ridge"] + 1], dim="lead")
    assert "best estimate" not in marks(plot.forest(grid, ax=Figure().subplots()))


def test_a_metric_with_a_target_has_a_line_there(ax):
    log = cvstats.datasets.load("flights")
    slopes = cvstats.losses(log, prediction=log.attrs["models"], loss="calibration_slope")
    plot.forest(slopes, ax=ax)
    assert marks(ax)["target"].get_xdata()[0] == 1
    assert "better" not in ax.get_xlabel()


def test_one_huge_model_does_not_flatten_the_others_on_a_logarithmic_axis(ax):
    losses = DIABETES.assign(ridge=DIABETES["ridge"] * 1e6)
    plot.forest(losses, log=True, ax=ax)
    assert ax.get_xscale() == "log"
    low, high = ax.transAxes.inverted().transform(ax.transData.transform(
        [(cvstats.wald(losses)[name]["random_forest"], 0) for name in ("lower", "upper")]
    ))[:, 0]  # fmt: skip
    assert high - low > 0.01
    assert 0 < ax.get_xlim()[0] < losses["random_forest"].mean()
    for wrong in (losses - 1e9, losses.assign(ridge=0.0)):
        with pytest.raises(LogError, match="log=True needs positive estimates"):
            plot.forest(wrong, log=True, ax=Figure().subplots())
