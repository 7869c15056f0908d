"""All plots: legible, as they were, and they leave nothing behind."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images
from plotted import (
    CASES,
    IMAGES,
    as_arrays,
    drawn,
    legible,
    logged,
    many,
    named,
    picture,
)

from cvstats import plot
from cvstats.errors import LogError
from cvstats.plot._axes import COLOURS

DIABETES = logged("diabetes")
FLIGHTS = logged("flights")
MONTHS = logged("flights_by_month")
TOLERANCE = 6  # root mean square of grey levels: edges differ a little between versions


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


@pytest.mark.parametrize("name", ["learner", None])
@pytest.mark.parametrize("case", ["forest", "folds", "stability", "decomposition", "comparison"])
def test_the_columns_of_a_log_may_have_a_name(case, name):
    losses = DIABETES.rename_axis(columns=name)
    ax = getattr(plot, case)(losses, ax=Figure().subplots())
    expected = getattr(plot, case)(DIABETES, ax=Figure().subplots())
    assert named(ax.yaxis) == named(expected.yaxis)
    for line, other in zip(ax.lines, expected.lines, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), other.get_xydata())


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
        "<cvci.plot: best_set, comparison, decomposition, folds, forest, map, reliability, "
        "sources, stability>"
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
        (lambda: plot.sources(DIABETES), "needs a level 'source' with at least two labels"),
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


def test_the_palette_is_that_of_okabe_and_ito():
    assert len(set(COLOURS)) == 7
    assert COLOURS[0] == "#0072B2"


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[plot\]'"):
        plot.forest(DIABETES)


@pytest.mark.process
def test_importing_cvstats_does_not_import_matplotlib():
    code = "import sys, cvstats; print({'matplotlib', 'jinja2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
