"""All plots: legible, as they were, and they leave nothing behind."""

import json
import sys
from functools import cache, partial

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from plotted import (
    CASES,
    DESCRIBED,
    DRAWN,
    as_arrays,
    describe_case,
    draw_case,
    legible,
    logged,
    many,
    named,
    repeated,
    schools,
)

from cvstats import plot
from cvstats.errors import LogError
from cvstats.plot._axes import keep_inside
from cvstats.registry import PLOTS

DIABETES = logged("diabetes")
FLIGHTS = logged("flights")
MONTHS = logged("flights_by_month")
STORED = json.loads(DRAWN.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch):
    """No plot shows a window, changes a setting or a log, or leaves a figure open."""
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("shown"))
    settings = dict(mpl.rcParams)
    copies = [(losses, losses.copy(), dict(losses.attrs)) for losses in (DIABETES, FLIGHTS, MONTHS)]
    yield
    assert dict(mpl.rcParams) == settings
    assert plt.get_fignums() == []
    for losses, copy, attrs in copies:
        pd.testing.assert_frame_equal(losses, copy)
        assert losses.attrs == attrs


def new():
    """An Axes for the numbers of a plot: its layout engine, which is not run, places the names."""
    return Figure(layout="constrained").subplots()


@pytest.mark.parametrize(("name", "where"), DESCRIBED)
def test_what_is_drawn_is_as_it_was(name, where):
    """It is also legible, and in a figure that nothing lays out no name is cut off."""
    ax = draw_case(name, where)
    found, stored = describe_case(ax, where), STORED[f"{name} {where}"]
    if where == "own":
        assert plt.get_fignums() == [ax.figure.number]
        plt.close(ax.figure)
    assert [row[:2] for row in found] == [row[:2] for row in stored]
    for (kind, words, numbers), (_, _, others) in zip(found, stored, strict=True):
        assert numbers == pytest.approx(others, rel=2e-4, abs=1e-6), (kind, words)
    if where == "small":
        assert outside(ax) <= 1
    else:
        legible(ax)
        assert name not in CASES or ax.get_position().width > 0.3


@cache
def plain(name):
    """A plot of a log, to compare others with."""
    return getattr(plot, name)(DIABETES, ax=new())


def same_lines(ax, other):
    for one, two in zip(ax.lines, other.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())


OF_FOLDS = ["forest", "folds", "stability", "decomposition", "comparison"]


@pytest.mark.parametrize("case", OF_FOLDS)
def test_the_columns_of_a_log_may_have_a_name(case):
    same_lines(getattr(plot, case)(DIABETES.rename_axis(columns="learner"), ax=new()), plain(case))


def test_methods_of_the_accessor_are_the_functions():
    plots = DIABETES.cvci.plot
    assert repr(plots) == f"<cvci.plot: {', '.join(sorted(PLOTS))}>"
    for name in OF_FOLDS:
        same_lines(getattr(plots, name)(ax=new()), plain(name))
    assert as_arrays(DIABETES).cvci.plot.best_set(rng=0, ax=new()).lines
    assert MONTHS.cvci.plot.sources(ax=new()).lines


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
    tiny, narrow, crowded = (
        Figure(figsize=size).subplots() for size in ((2, 1), (1.25, 4), (1.25, 7))
    )
    cases = [
        (lambda: plot.forest(wide), "100 rows"),
        (lambda: plot.folds(flat), "neither folds nor repetitions"),
        (lambda: plot.folds(many(), ax=tiny), r"12 panels do not fit into 2\.0 x 1\.0 inches"),
        (lambda: plot.folds(many(), ax=narrow), r"12 panels do not fit into 1\.2 x 4\.0"),
        (lambda: plot.folds(many(), ax=crowded), r"12 panels do not fit into 1\.2 x 7\.0"),
        (lambda: plot.stability(FLIGHTS), "one repetition"),
        (lambda: plot.stability(DIABETES, method="best"), "Invalid method='best'"),
        (lambda: plot.sources(DIABETES), "needs a level 'source' with at least two labels"),
        (lambda: plot.comparison(DIABETES, kind="net"), "Invalid kind='net'"),
        (lambda: plot.comparison(DIABETES, reference="ridge", kind="matrix"), "all pairs"),
        (lambda: plot.best_set(DIABETES[["ridge"]]), "one model"),
        (lambda: plot.decomposition(DIABETES, rho=[]), "rho is empty"),
    ]
    figures = plt.get_fignums()
    for draw, words in cases:
        with pytest.raises(LogError, match=words):
            draw()
    assert plt.get_fignums() == figures


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[plot\]'"):
        plot.forest(DIABETES)


LIMIT = 6
AS_MANY = {
    "sources in panels": (
        "sources.MOST_ROWS", lambda n: plot.sources(schools(n), ax=new()).child_axes
    ),
    "bars in panels": (
        "decomposition.MOST_ROWS", lambda n: plot.decomposition(
            repeated().iloc[:, :1], rho=np.linspace(0, 0.5, n), ax=new()).child_axes
    ),
    "a list of sources": (
        "sources.MOST_ROWS",
        lambda n: len(plot.sources(schools(n)[["ridge"]], ax=new()).get_yticks()) < n,
    ),
}  # fmt: skip


@pytest.mark.parametrize("n", [LIMIT, LIMIT + 1])
@pytest.mark.parametrize("what", AS_MANY)
def test_many_are_more_than_the_limit(what, n, monkeypatch):
    constant, is_many = AS_MANY[what]
    place, name = constant.split(".")
    monkeypatch.setattr(sys.modules[f"cvstats.plot.{place}"], name, LIMIT)
    assert bool(is_many(n)) == (n > LIMIT)


@pytest.mark.parametrize("n", [4, 5])
def test_many_models_are_a_matrix_and_too_many_are_none(n, monkeypatch):
    monkeypatch.setattr(sys.modules["cvstats.plot.comparison"], "MANY", 6)  # pairs of four models
    assert bool(plot.comparison(many(n), ax=new()).child_axes) == (n > 4)
    monkeypatch.setattr(sys.modules["cvstats.plot._axes"], "MOST_ROWS", 4)
    for draw in (plot.forest, partial(plot.comparison, kind="matrix")):
        if n <= 4:
            draw(many(n), ax=new())
            continue
        with pytest.raises(LogError, match=r"the plot would have 5 .* Expected at most 4\."):
            draw(many(n), ax=new())


@pytest.mark.parametrize("place", [(-0.4, 0.5), (1.4, 0.5), (0.5, -0.4), (0.5, 1.4)])
def test_writing_on_any_side_is_two_pixels_within_the_figure(place):
    ax = Figure(figsize=(4, 3), dpi=100).subplots()
    shift = [90 * (at - 0.5) for at in place]
    side = [round(at) if at != 0.5 else at for at in place]
    ax.annotate("name", side, shift, "axes fraction", textcoords="offset points",
                ha="center", va="center", annotation_clip=False)  # fmt: skip
    assert outside(ax) > 10
    assert outside(keep_inside(ax)) == pytest.approx(-2, abs=0.01)


def outside(ax):
    """How far names and numbers reach out of the figure, in pixels."""
    box, page = ax.get_tightbbox(), ax.figure.bbox
    return max(page.x0 - box.x0, page.y0 - box.y0, box.x1 - page.x1, box.y1 - page.y1)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("matrix")])
def test_on_a_dark_background_nothing_is_black(name):
    with mpl.rc_context():
        mpl.style.use("dark_background")
        ax = CASES[name](new())
        for line in (line for panel in (ax, *ax.child_axes) for line in panel.lines):
            shown = line.get_linestyle() != "None" or line.get_marker() != "None"
            ring = line.get_marker() != "None" and line.get_markeredgecolor() == "white"
            assert not shown or ring or sum(to_rgb(line.get_color())) > 1
        for collection in ax.collections:
            if hasattr(collection, "get_segments"):
                assert (collection.get_color()[:, :3].sum(axis=1) > 1).all()


@pytest.mark.parametrize("case", ["folds", "stability", "sources"])
def test_more_models_than_colours_have_a_panel_each(case):
    losses = schools(20) if case == "sources" else repeated()
    wide = pd.DataFrame(
        {f"m{k}": losses.iloc[:, k % losses.shape[1]] + k for k in range(8)}, losses.index
    )
    ax = getattr(plot, case)(wide, ax=Figure(figsize=(8, 9), layout="constrained").subplots())
    ax.figure.draw_without_rendering()
    assert [panel.get_title() for panel in ax.child_axes] == [f"m{k}" for k in range(8)]
    assert len({(panel.get_xlim(), panel.get_ylim()) for panel in ax.child_axes}) == 1
    legible(ax)
