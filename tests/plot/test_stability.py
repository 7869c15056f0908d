"""Stability plots: they end at the interval of all repetitions."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from plotted import as_arrays, logged, repeated
from rows import only_row

import cvstats
from cvstats import plot

DIABETES = logged("diabetes")


def test_stability_ends_at_the_interval_of_all(ax):
    plot.stability(DIABETES["ridge"], ax=ax)
    middle, lower, upper = ax.lines
    whole = only_row(cvstats.wald(DIABETES["ridge"]))
    first = only_row(cvstats.wald(DIABETES["ridge"].loc[[0]]))
    for line, name in ((middle, "estimate"), (lower, "lower"), (upper, "upper")):
        np.testing.assert_allclose(
            line.get_ydata()[[0, -1]], [first[name], whole[name]], rtol=1e-12
        )
    arrays = plot.stability(as_arrays(DIABETES)["ridge"], ax=Figure().subplots())
    np.testing.assert_allclose(arrays.lines[0].get_ydata(), middle.get_ydata(), rtol=1e-12)
    part = plot.stability(DIABETES["ridge"], method="corrected_t", ax=Figure().subplots())
    assert "corrected_t" in part.get_ylabel()


def test_stability_leaves_out_numbers_that_are_too_small(ax):
    one = plot.stability(DIABETES["ridge"], method="quadratic", ax=ax)
    assert one.lines[0].get_xdata().tolist() == [1]  # it takes a single repetition


def test_several_models_have_bars_side_by_side_and_no_bands(ax):
    losses = repeated()
    plot.stability(losses, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"model_{k}" for k in range(4)
    ]
    assert len(ax.patches) == 0
    bars = [collection for collection in ax.collections if hasattr(collection, "get_segments")]
    assert len(bars) == len(ax.collections) == 4
    whole = cvstats.wald(losses)
    middles = []
    for k, collection in enumerate(bars):
        segments = np.array(collection.get_segments())
        assert len(segments) == 5
        np.testing.assert_allclose(
            segments[-1, :, 1], whole.loc[f"model_{k}", ["lower", "upper"]].to_numpy(float)
        )
        middles.append(segments[:, 0, 0])
    assert (np.diff(np.sort(np.concatenate(middles))) > 0.05).all()  # none is on another


@pytest.mark.parametrize("dpi", [40, 300])
@pytest.mark.parametrize(("wide", "ticks"), [(6, [1, 3, 5, 8, 10]), (1, [1, 10])])
def test_ticks_are_as_many_as_fit_at_any_resolution(wide, ticks, dpi):
    ax = plot.stability(DIABETES["ridge"], ax=Figure((wide, 3), dpi=dpi).subplots())
    assert ax.get_xticks().tolist() == ticks


def test_moments_have_the_curve_of_the_log(ax):
    frame = DIABETES[["ridge"]]
    moments = cvstats.Moments.of_log(frame[:2000]) + cvstats.Moments.of_log(frame[2000:])
    plot.stability(moments, ax=ax)
    memory = plot.stability(frame, ax=Figure().subplots())
    for ours, theirs in zip(ax.lines, memory.lines, strict=True):
        np.testing.assert_allclose(ours.get_xydata(), theirs.get_xydata(), rtol=1e-10)
