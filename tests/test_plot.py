"""Plots: what is drawn stands where the numbers are, can be read, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images
from plotted import CASES, IMAGES, drawn, legible, logged, many, picture

import cvstats
from cvstats import plot
from cvstats.errors import LogError
from cvstats.plot.style import COLOURS, GREY

DIABETES, FLIGHTS, MONTHS = (logged(name) for name in ("diabetes", "flights", "flights_by_month"))
TOLERANCE = 6  # root mean square of grey levels: edges differ a little between versions


@pytest.fixture
def ax():
    return Figure(figsize=(5, 4), layout="constrained").subplots()


def named(axis):
    axis.figure.draw_without_rendering()
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def marks(ax):
    """The marks of an Axes by their label."""
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def reach(collection):
    """The ends of lines, and where they stand."""
    segments = np.array(collection.get_segments())
    return segments[:, 0, 0], segments[:, 1, 0], segments[:, 0, 1]


def as_arrays(losses, models="variables"):
    dataset = losses.to_xarray()
    for name in dataset.data_vars:
        dataset[name].attrs = dict(losses.attrs)
    return (
        dataset
        if models == "variables"
        else dataset.to_dataarray("model").assign_attrs(losses.attrs)
    )


@pytest.mark.parametrize("losses", [DIABETES, as_arrays(DIABETES), as_arrays(DIABETES, "dim")])
def test_forest_stands_at_the_numbers(ax, losses):
    assert plot.forest(losses, ax=ax) is ax
    for at, name in enumerate(("wald", "naive")):
        table = getattr(cvstats, name)(DIABETES)
        line = marks(ax)[f"{name}, 95%"]
        np.testing.assert_allclose(line.get_xdata(), table["estimate"], rtol=1e-12)
        lower, upper, heights = reach(ax.collections[at])
        np.testing.assert_allclose(lower, table["lower"], rtol=1e-12)
        np.testing.assert_allclose(upper, table["upper"], rtol=1e-12)
        np.testing.assert_array_equal(heights, line.get_ydata())
        np.testing.assert_allclose(heights, np.arange(3), atol=0.3)
    assert named(ax.yaxis) == list(DIABETES.columns)
    assert ax.get_xlabel() == "squared error [score²]"
    assert ax.yaxis_inverted()
    assert to_hex(marks(ax)["naive, 95%"].get_color()) == GREY.lower()


def test_forest_of_several_methods_and_results(ax):
    tables = {"80%": cvstats.wald(DIABETES, alpha=0.2), "folds": cvstats.cv_t(DIABETES)}
    plot.forest(DIABETES, methods=tables, ax=ax)
    assert list(marks(ax)) == ["80%, 80%", "folds, 95%"]
    assert to_hex(marks(ax)["folds, 95%"].get_color()) == GREY.lower()
    names = ["wald", "corrected_t", "naive"]
    other = plot.forest(DIABETES, methods=names, alpha=0.1, ax=Figure().subplots())
    assert list(marks(other)) == [f"{name}, 90%" for name in names]
    colours = [to_hex(line.get_color()) for line in other.lines]
    assert len(set(colours)) == 3


def test_one_model_and_carried_cells_are_named(ax):
    plot.forest(DIABETES["ridge"], ax=ax)
    assert named(ax.yaxis) == ["ridge"]
    grid = xr.concat([as_arrays(DIABETES)["ridge"], as_arrays(DIABETES)["ridge"] + 1], dim="lead")
    other = plot.forest(grid.assign_coords(lead=[6, 12]), ax=Figure().subplots())
    assert named(other.yaxis) == ["ridge · lead=6", "ridge · lead=12"]
    nameless = plot.forest(DIABETES["ridge"].rename(None), ax=Figure().subplots())
    assert named(nameless.yaxis) == []


def test_folds_stand_at_the_means_of_the_cells(ax):
    plot.folds(DIABETES, ax=ax)
    cells = cvstats.moments(DIABETES)
    for model, line in zip(DIABETES.columns, ax.lines, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), cells.loc[model, "mean"])
        codes = cells.loc[model].index.get_level_values("repetition")
        np.testing.assert_allclose(line.get_xdata(), codes, atol=0.3)
    for model, lines in zip(DIABETES.columns, ax.collections, strict=True):
        heights = np.array(lines.get_segments())[:, 0, 1]
        expected = DIABETES[model].groupby(level="repetition").mean()
        np.testing.assert_allclose(heights, expected, rtol=1e-12)
    assert ax.get_xlabel() == "repetition"
    assert ax.get_ylabel() == "mean squared error [score²]"


def test_folds_of_one_repetition_and_of_random_splits(ax):
    plot.folds(FLIGHTS["naive_bayes"], ax=ax)
    assert ax.get_xlabel() == "fold"
    line = ax.lines[-1]
    np.testing.assert_allclose(line.get_ydata(), FLIGHTS["naive_bayes"].mean(), rtol=1e-12)
    assert ax.get_legend() is None
    ax = plot.folds(DIABETES["ridge"].droplevel("fold"), ax=Figure().subplots())
    assert ax.get_xlabel() == "repetition"


def test_stability_ends_at_the_interval_of_all(ax):
    plot.stability(DIABETES["ridge"], ax=ax)
    middle, lower, upper = ax.lines
    whole, first = cvstats.wald(DIABETES["ridge"]), cvstats.wald(DIABETES["ridge"].loc[[0]])
    for line, name in ((middle, "estimate"), (lower, "lower"), (upper, "upper")):
        np.testing.assert_allclose(
            line.get_ydata()[[0, -1]], [first[name].item(), whole[name].item()], rtol=1e-12
        )
    arrays = plot.stability(as_arrays(DIABETES)["ridge"], ax=Figure().subplots())
    np.testing.assert_allclose(arrays.lines[0].get_ydata(), middle.get_ydata(), rtol=1e-12)
    part = plot.stability(DIABETES["ridge"], method="corrected_t", ax=Figure().subplots())
    assert "corrected_t" in part.get_ylabel()


def test_sources_and_a_new_one(ax):
    plot.sources(MONTHS["naive_bayes"], ax=ax)
    each = cvstats.wald(MONTHS["naive_bayes"], by="source")
    new = cvstats.out_of_source(MONTHS["naive_bayes"])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), each["estimate"])
    assert ax.lines[1].get_xdata()[0] == new["estimate"].item()
    box = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    np.testing.assert_allclose([box.x0, box.x1], [new["lower"].item(), new["upper"].item()])
    assert named(ax.yaxis) == [*each.index, "new source"]
    random = plot.sources(FLIGHTS["naive_bayes"], ax=Figure().subplots())
    assert named(random.yaxis)[-1] == "all (clustered)"


@pytest.mark.parametrize("losses", [DIABETES, as_arrays(DIABETES)])
def test_bars_add_up_to_theta(ax, losses):
    rho = [0.0, 0.1, 0.4]
    plot.decomposition(losses, rho=rho, ax=ax)
    total = sum(np.array([bar.get_width() for bar in parts]) for parts in ax.containers)
    theta = cvstats.decompose(DIABETES, rho=rho)["theta"].unstack("rho").reindex(DIABETES.columns)
    heights = [bar.get_y() for bar in ax.containers[0]]
    order = np.argsort(heights)
    np.testing.assert_allclose(total[order], theta.to_numpy().reshape(-1), rtol=1e-9)
    strokes = marks(ax)["θ, their sum"]
    np.testing.assert_allclose(strokes.get_xdata(), total, rtol=1e-9)
    diamonds = marks(ax)["se² of wald"]
    expected = np.repeat(cvstats.wald(DIABETES)["se"] ** 2, 3)
    np.testing.assert_allclose(np.sort(diamonds.get_xdata()), np.sort(expected), rtol=1e-12)
    assert "(score²)²" in ax.get_xlabel().replace("\n", "")


def test_differences_about_zero(ax):
    plot.comparison(FLIGHTS, reference="naive_bayes", ax=ax)
    table = cvstats.compare(FLIGHTS, reference="naive_bayes")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0, 0])
    np.testing.assert_array_equal(marks(ax)["p < 0.05 (holm)"].get_xdata(), table["difference"])
    lower, upper, _ = reach(ax.collections[0])
    np.testing.assert_array_equal([lower, upper], [table["lower"], table["upper"]])
    open_marks = plot.comparison(DIABETES, ax=Figure().subplots())
    assert marks(open_marks)["p ≥ 0.05 (holm)"].get_markerfacecolor() == "white"
    two = plot.comparison(DIABETES["ridge"], DIABETES["random_forest"], ax=Figure().subplots())
    assert list(marks(two)) == ["p ≥ 0.05"]


@pytest.mark.parametrize("losses", [FLIGHTS, as_arrays(FLIGHTS.droplevel("source"))])
def test_matrix_of_all_pairs(ax, losses):
    plot.comparison(losses, kind="matrix", ax=ax)
    values = ax.collections[0].get_array().reshape(3, 3).filled(np.nan)
    table = cvstats.compare(FLIGHTS)["difference"]
    np.testing.assert_allclose(values[0, 1:], table.iloc[:2], rtol=1e-9)
    np.testing.assert_array_equal(np.nan_to_num(values), -np.nan_to_num(values.T))
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts[(1, 0)] == f"{table.iloc[0]:.5f}"
    assert texts[(0, 1)] == f"−{table.iloc[0]:.5f}"


def test_many_pairs_become_a_matrix(ax):
    plot.comparison(many(), ax=ax)
    clear = int((cvstats.compare(many())["p_adjusted"] < 0.05).sum())
    dots = [tuple(dot) for line in ax.lines for dot in line.get_xydata()]
    assert len(set(dots)) == len(dots) == 2 * clear  # in each of two cells
    assert set(dots) == {(y, x) for x, y in dots}
    assert list(ax.texts) == []


def test_ranks(ax):
    plot.best_set(many(), rng=0, ax=ax)
    table = cvstats.best_set(many(), rng=0).sort_values("estimate")
    assert named(ax.yaxis) == list(table.index)
    lower, upper, heights = reach(ax.collections[0])
    inside = table["in_set"].to_numpy()
    np.testing.assert_array_equal(lower, table.loc[inside, "lower_rank"])
    np.testing.assert_array_equal(upper, table.loc[inside, "upper_rank"])
    np.testing.assert_array_equal(heights, np.flatnonzero(inside))
    np.testing.assert_array_equal(marks(ax)["may be the best"].get_xdata(), heights + 1)


@pytest.mark.parametrize("width", [3.4, 5.0, 7.0])
@pytest.mark.parametrize("name", CASES)
def test_no_two_texts_overlap_and_none_is_cut_off(name, width):
    _, ax = drawn(name, width)
    legible(ax)
    assert ax.get_position().width > 0.3


@pytest.mark.parametrize("name", CASES)
def test_pictures_are_as_they_were(name, tmp_path):
    picture(name, tmp_path / f"{name}.png")
    expected = tmp_path / "expected.png"  # differences are written beside it
    expected.write_bytes((IMAGES / f"{name}.png").read_bytes())
    assert compare_images(str(expected), str(tmp_path / f"{name}.png"), TOLERANCE) is None


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_behind(name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("shown"))
    before, figures = dict(mpl.rcParams), plt.get_fignums()
    drawn(name, 5)
    assert plt.get_fignums() == figures
    ax = CASES[name](None)
    assert len(plt.get_fignums()) == len(figures) + 1
    plt.close(ax.figure)
    assert dict(mpl.rcParams) == before


def test_the_log_stays_as_it_was():
    copies = {name: logged(name).copy() for name in ("diabetes", "flights_by_month")}
    for case in ("forest", "folds", "stability", "sources", "decomposition"):
        drawn(case, 5)
    for name, copy in copies.items():
        pd.testing.assert_frame_equal(logged(name), copy)
        assert logged(name).attrs == copy.attrs


def test_methods_of_the_accessor_are_the_functions():
    plots = DIABETES.cvci.plot
    assert repr(plots) == (
        "<cvci.plot: best_set, comparison, decomposition, folds, forest, sources, stability>"
    )
    for name in ("forest", "folds", "stability", "decomposition", "comparison"):
        ax = getattr(plots, name)(ax=Figure().subplots())
        other = getattr(plot, name)(DIABETES, ax=Figure().subplots())
        for one, two in zip(ax.lines, other.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())
    assert as_arrays(DIABETES).cvci.plot.best_set(rng=0, ax=Figure().subplots()).lines
    assert MONTHS.cvci.plot.sources(ax=Figure().subplots()).lines


def test_names_are_no_formulas(ax):
    losses = DIABETES.rename(columns={"ridge": "$x_{1$ and $", "random_forest": "<b>&"})
    losses.attrs = {"long_name": "$loss", "units": "$"}
    for draw in (plot.forest, plot.folds, plot.comparison, plot.decomposition):
        figure = Figure(layout="constrained")
        draw(losses, ax=figure.subplots()).figure.draw_without_rendering()
    long = DIABETES.rename(columns={"ridge": "a model with a name that is far too long for this"})
    plot.forest(long, ax=ax)
    assert "…" in named(ax.yaxis)[0]


def test_a_loss_without_units_has_none(ax):
    losses = DIABETES.copy()
    losses.attrs = {"units": "1"}
    plot.forest(losses, ax=ax)
    assert ax.get_xlabel() == "loss"


def test_what_cannot_be_drawn_is_told():
    wide = xr.DataArray(
        np.random.default_rng(0).normal(size=(40, 100)), dims=("point", "cell"),
    )  # fmt: skip
    flat = pd.Series(np.arange(9.0), pd.RangeIndex(9, name="point"))
    cases = [
        (lambda: plot.forest(wide), "100 rows"),
        (lambda: plot.folds(flat), "neither folds nor repetitions"),
        (lambda: plot.folds(many()), "12 models or cells"),
        (lambda: plot.stability(FLIGHTS), "one repetition"),
        (lambda: plot.stability(DIABETES, method="best"), "method='best' is not known"),
        (lambda: plot.sources(DIABETES), "no level 'source'"),
        (lambda: plot.comparison(DIABETES, kind="net"), "kind='net' is not known"),
        (lambda: plot.comparison(DIABETES, reference="ridge", kind="matrix"), "all pairs"),
        (lambda: plot.best_set(DIABETES[["ridge"]]), "one model"),
        (lambda: plot.decomposition(DIABETES, rho=[]), "rho is empty"),
    ]
    figures = plt.get_fignums()
    for draw, words in cases:
        with pytest.raises(LogError, match=words):
            draw()
    assert plt.get_fignums() == figures


def test_stability_leaves_out_numbers_that_are_too_small(ax):
    one = plot.stability(DIABETES["ridge"], method="quadratic", ax=ax)
    assert one.lines[0].get_xdata().tolist() == [1]  # it takes a single repetition


def test_the_palette_is_that_of_okabe_and_ito():
    assert len(set(COLOURS)) == 7
    assert COLOURS[0] == "#0072B2"


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'cvstats\[plot\]'"):
        plot.forest(DIABETES)


def test_importing_cvstats_does_not_import_matplotlib():
    code = "import sys, cvstats; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
