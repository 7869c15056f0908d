"""Intervals of sources, and of a new one."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from plotted import logged, named, schools
from rows import only_row

import cvstats
from cvstats import plot

FLIGHTS = logged("flights")
MONTHS = logged("flights_by_month")


def test_sources_and_a_new_one(ax):
    plot.sources(MONTHS["naive_bayes"], ax=ax)
    each = cvstats.wald(MONTHS["naive_bayes"], by="source")
    new = only_row(cvstats.out_of_source(MONTHS["naive_bayes"]))
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), each["estimate"])
    each = each.sort_values("estimate")
    np.testing.assert_array_equal(np.sort(ax.lines[0].get_ydata()), range(len(each)))
    assert ax.lines[1].get_xdata()[0] == new["estimate"]
    box = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    np.testing.assert_allclose([box.x0, box.x1], [new["lower"], new["upper"]])
    assert named(ax.yaxis) == [*each.index, "mean over new sources"]
    random = plot.sources(FLIGHTS["naive_bayes"], ax=Figure().subplots())
    assert named(random.yaxis)[-1] == "all (clustered)"


def test_names_that_read_alike_are_told_apart(ax):
    alike = {"naive_bayes": 1, "gradient_boosting": "1"}
    losses = FLIGHTS[list(alike)].rename(columns=alike)
    plot.sources(losses, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["'1'", "1"]
    each = cvstats.wald(losses, by="source")
    for line, model in zip(ax.lines[:4:2], ["1", 1], strict=True):
        rows = each[each.index.get_level_values("model") == model]
        np.testing.assert_array_equal(line.get_xdata(), rows["estimate"])


def test_the_sources_of_a_log_with_named_columns(ax):
    plot.sources(MONTHS.rename_axis(columns="learner"), ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(
        MONTHS.mean().sort_values().index
    )


def test_any_number_of_sources_is_drawn(ax):
    losses = schools(200)[["ridge"]]
    plot.sources(losses, ax=ax)
    each = cvstats.wald(losses["ridge"], by="source")
    line = next(line for line in ax.lines if line.get_label() == "ridge")
    assert len(line.get_xdata()) == 200
    np.testing.assert_allclose(np.sort(line.get_xdata()), np.sort(each["estimate"]))
    ranks = losses.mean(axis=1).groupby(level="source").mean().rank().to_numpy() - 1
    np.testing.assert_allclose(line.get_ydata(), ranks, atol=0.3)
    assert named(ax.yaxis) == ["200 sources,\nbest first", "mean over new sources"]
    own = plot.sources(losses).figure
    assert own.get_figheight() < 12
    plt.close(own)


def test_many_sources_of_several_models_have_a_panel_and_a_band_for_each():
    losses = schools(200)
    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = plot.sources(losses, ax=figure.subplots())
    whole = cvstats.out_of_source(losses)
    assert {panel.get_title() for panel in ax.child_axes} == {"ridge", "forest"}
    for panel in ax.child_axes:
        (band,) = panel.patches
        box = band.get_extents().transformed(panel.transData.inverted())
        limits = whole.loc[panel.get_title(), ["lower", "upper"]].to_numpy(dtype=float)
        np.testing.assert_allclose([box.x0, box.x1], limits)


def test_the_bands_of_several_models_do_not_cover_each_other(ax):
    plot.sources(MONTHS, ax=ax)
    assert not ax.patches


def test_the_marks_of_a_source_are_beside_its_label(ax):
    plot.sources(MONTHS, ax=ax)
    heights = np.stack([line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2])
    assert len(heights) == MONTHS.shape[1]
    off = np.sort(heights, axis=1) - ax.get_yticks()[:-1]
    np.testing.assert_allclose(off, off[:, :1] * np.ones(off.shape[1]))
    np.testing.assert_allclose(off[:, 0], [-0.25, 0.0, 0.25], atol=0.1)
