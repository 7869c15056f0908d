"""Maps: the numbers of the intervals and comparisons, cell by cell."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure
from plotted import grid, named

import cvstats
from cvstats import plot
from cvstats.errors import LogError
from cvstats.plot.map import APART, MOST_CELLS

LATE, EARLY = grid()["late"], grid()["early"]


def cells(ax):
    """The numbers of the squares, from bottom to top and from left to right."""
    numbers = ax.collections[0].get_array()
    return numbers.reshape(len(LATE["lat"]), -1).filled(np.nan)


def dots(ax):
    return {tuple(place) for line in ax.lines for place in line.get_xydata()}


def draw(*logs, **options):
    return plot.map(*logs, ax=Figure(figsize=(5, 4), layout="constrained").subplots(), **options)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_one_model_is_a_map_of_half_widths(ax):
    plot.map(LATE, ax=ax)
    result = cvstats.interval(LATE).sortby("lat")
    np.testing.assert_allclose(cells(ax), (result["upper"] - result["lower"]) / 2, rtol=1e-12)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon", "lat")
    bar = ax.child_axes[-1].get_ylabel().replace("\n", " ")
    assert bar == "half-width of the 95% interval, loss"
    assert legend(ax) == ["no losses"]
    wider = draw(LATE, alpha=0.01)
    assert np.nanmean(cells(wider)) > np.nanmean(cells(ax))
    means = draw(LATE.assign_attrs(loss="squared_error", units="K²"), show="estimate")
    np.testing.assert_allclose(cells(means), result["estimate"], rtol=1e-12)
    assert means.child_axes[-1].get_ylabel() == "mean squared error [K²]"


def test_two_models_are_a_map_of_differences_with_dots_where_these_are_clear(ax):
    plot.map(grid(), ax=ax)
    result = cvstats.compare(LATE, EARLY, adjust="bh").sortby("lat")
    np.testing.assert_allclose(cells(ax), result["difference"], rtol=1e-12)
    clear = (result["p_adjusted"] < 0.05).stack(cell=("lon", "lat"))
    assert 0 < clear.sum() < clear.size
    assert dots(ax) == set(clear[clear]["cell"].to_numpy())
    assert legend(ax) == ["late better", "early better", "no losses"]
    assert ax.get_xlabel() == "lon\ndot: p < 0.05 (Benjamini-Hochberg)\nblue: late is better"
    first, second = (np.array(line.get_xydata()) for line in ax.lines)
    better = {
        (lon, lat): float(result["difference"].sel(lon=lon, lat=lat)) for lon, lat in dots(ax)
    }
    assert all(better[tuple(at)] < 0 for at in first)
    assert all(better[tuple(at)] > 0 for at in second)
    low, high = ax.collections[0].get_clim()
    assert low == -high
    np.testing.assert_array_equal(cells(draw(LATE, EARLY)), cells(ax))
    models = grid().to_dataarray("model").assign_attrs(grid().attrs)
    np.testing.assert_allclose(cells(draw(models)), cells(ax), rtol=1e-9)
    everything = draw(LATE, EARLY, adjust=None)
    assert dots(ax) < dots(everything)
    assert everything.get_xlabel() == "lon\ndot: p < 0.05\nblue: late is better"
    assert dots(draw(LATE, EARLY, adjust="holm")) < dots(ax)
    nameless = draw(LATE.rename(None), EARLY.rename(None))
    assert nameless.get_xlabel().endswith("blue: first is better")
    three = grid().assign(middle=LATE / 2 + EARLY / 2)
    assert draw(three).get_xlabel().endswith("blue: first is better")


def test_lazy_arrays_make_the_same_map(ax):
    plot.map(grid().chunk({"lat": 3}), ax=ax)
    np.testing.assert_allclose(cells(ax), cells(draw(grid())), rtol=1e-9)
    assert dots(ax) == dots(draw(grid()))


def test_missing_losses_are_dropped_cell_by_cell(ax):
    holed = LATE.copy()
    holed[3, 2, 5] = np.nan
    with pytest.raises(LogError, match="NaN"):
        plot.map(holed, ax=ax)
    plot.map(holed, missing="drop", ax=ax)
    whole, some = cells(draw(LATE)), cells(ax)
    np.testing.assert_array_equal(np.isnan(whole), np.isnan(some))
    assert (np.abs(some - whole) > 1e-9).sum() == 1


def test_a_score_is_drawn_as_one_and_blue_is_still_better(ax):
    right = (LATE > 1).astype(float).where(LATE.notnull())
    wrong = (EARLY > 1).astype(float).where(EARLY.notnull())
    facts = {"metric": "accuracy", "orientation": "1 - score", "loss": "1 - accuracy"}
    one, two = right.assign_attrs(facts), wrong.assign_attrs(facts)
    plot.map(one, two, ax=ax)
    np.testing.assert_allclose(cells(ax), -cells(draw(right, wrong)), rtol=1e-12)
    assert ax.collections[0].get_cmap().name == "RdBu"
    assert draw(right, wrong).collections[0].get_cmap().name == "RdBu_r"
    assert ax.child_axes[-1].get_ylabel().startswith("difference in accuracy")
    np.testing.assert_allclose(
        cells(draw(one, show="estimate")), 1 - cells(draw(right, show="estimate")), rtol=1e-12
    )


def test_the_order_of_dimensions_and_coordinates_does_not_matter(ax):
    plot.map(LATE, ax=ax)
    turned = draw(LATE.transpose("lon", "lat", "day")[::-1])
    np.testing.assert_array_equal(cells(turned), cells(ax))
    assert turned.get_xlabel() == "lon"
    other = draw(LATE, x="lat")
    assert (other.get_xlabel(), other.get_ylabel()) == ("lat", "lon")
    assert draw(LATE, y="lon").get_xlabel() == "lat"
    np.testing.assert_array_equal(other.collections[0].get_array(), ax.collections[0].get_array().T)
    plain = draw(LATE.rename(lat="b", lon="a").transpose("day", "a", "b"))
    assert (plain.get_xlabel(), plain.get_ylabel()) == ("b", "a")


def test_names_and_dates_are_written(ax):
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])
    log = xr.DataArray(
        np.random.default_rng(0).exponential(size=(30, 2, 3)), dims=("point", "station", "start"),
        coords={"station": ["Oslo", "Bodø"], "start": days},
    )  # fmt: skip
    log["start"].attrs = {"long_name": "start of the forecast", "units": "UTC"}
    plot.map(log, ax=ax)
    assert named(ax.xaxis) == ["2020-01-01", "2020-01-02", "2020-01-03"]
    assert named(ax.yaxis) == ["Oslo", "Bodø"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is on top
    assert ax.get_xlabel() == "start of the forecast [UTC]"
    assert ax.get_legend() is None
    one = draw(log[:, :1])
    assert one.collections[0].get_array().shape == (1, 3)
    assert one.get_ylim() == (0.5, -0.5)  # the only cell has the height of one
    assert draw(log.expand_dims(lead=[1, 2]).isel(lead=[0])).get_ylabel() == "station"


def test_few_clear_cells_have_a_dot_each_however_small():
    rng = np.random.default_rng(0)
    losses = xr.DataArray(rng.normal(size=(2, 60, 90, 80)), dims=("model", "lat", "lon", "point"))
    places = [(3, 8), (29, 1), (40, 77)]
    for row, column in places:
        losses[1, row, column] += 9
    assert dots(draw(losses, adjust="holm")) == {(column, row) for row, column in places}


def test_of_small_cells_some_have_a_dot_and_large_grids_are_pixels():
    rng = np.random.default_rng(0)
    first = xr.DataArray(rng.normal(size=(20, 101, 100)), dims=("point", "row", "col"))
    ax = draw(first, first + 1 + 0.1 * rng.normal(size=first.shape))
    number = sum(len(line.get_xdata()) for line in ax.lines)
    assert 300 < number < first[0].size / 4
    assert number * APART**2 < 72**2 * 5 * 4
    assert first[0].size > MOST_CELLS
    assert ax.collections[0].get_rasterized()
    assert not draw(LATE).collections[0].get_rasterized()


def test_what_is_not_a_grid_is_refused():
    flat = cvstats.datasets.load("diabetes")
    losses = cvstats.losses(flat, prediction="ridge")
    four = LATE.expand_dims(run=[1, 2], lead=[1, 2])
    models = xr.Dataset({"a": LATE, "b": EARLY, "c": EARLY}).expand_dims(lead=[1, 2])
    cases = [
        (lambda: plot.map(losses), "a Series has no grid of cells"),
        (lambda: plot.map(four), r"carries 4 dimensions \(.*isel\(.*=0\)"),
        (lambda: plot.map(LATE[:, 3, 3]), r"carries 0 dimensions \(none\).*forest"),
        (lambda: plot.map(models, show="estimate"), r"3 dimensions .* and several models"),
        (lambda: plot.map(LATE.isel(lat=3)), r"carries 1 dimension \(lon\).*forest"),
        (lambda: plot.map(LATE, EARLY, show="estimate"), "two were passed"),
        (lambda: plot.map(LATE, show="se"), "Invalid show='se'"),
        (lambda: plot.map(LATE, x="lead"), "x='lead' is not a dimension.*'lat', 'lon'"),
        (lambda: plot.map(LATE, x="lat", y="lat"), "x and y are both 'lat'"),
        (lambda: plot.map(LATE * np.nan, missing="drop"), "losses"),
    ]
    for call, words in cases:
        with pytest.raises(LogError, match=words):
            call()


def test_latitudes_and_longitudes_are_drawn_with_equal_areas():
    ax = draw(LATE)
    edges = ax.transData.transform([(0, lat) for lat in (-70, -30, 0, 30, 70)])[:, 1]
    heights = np.sin(np.deg2rad([-70, -30, 0, 30, 70]))
    np.testing.assert_allclose(
        np.diff(edges), np.diff(edges)[0] / np.diff(heights)[0] * np.diff(heights)
    )
    # a map of the globe: cos² of 35° is the mean over its area
    globe = xr.DataArray(
        np.random.default_rng(0).normal(size=(9, 18, 36)), dims=("point", "lat", "lon"),
        coords={"lat": np.arange(-85, 90, 10), "lon": np.arange(-175, 180, 10)},
    )  # fmt: skip
    np.testing.assert_allclose(draw(globe).get_box_aspect(), 2 / (2 / 3) / (2 * np.pi))
    assert all(abs(at) <= 90 for at in draw(globe).get_yticks())
    poles = globe.assign_coords(lat=np.linspace(-90, 90, 18))  # their cells end at the poles
    np.testing.assert_allclose(draw(poles).get_box_aspect(), 2 / (2 / 3) / (2 * np.pi))


def test_a_plane_is_in_proportion_and_other_dimensions_fill_the_axes():
    plane = LATE.rename(lat="y", lon="x").assign_coords(y=np.arange(7.0), x=np.arange(12.0))
    np.testing.assert_allclose(draw(plane).get_box_aspect(), 7 / 12)
    assert draw(plane.rename(y="depth")).get_box_aspect() is None
    assert draw(plane).get_yscale() == "linear"


def test_a_third_dimension_and_several_models_are_panels_with_one_scale():
    three = xr.concat([LATE, 2 * LATE, 3 * LATE], "lead").assign_coords(lead=[6, 12, 18])
    ax = draw(three)
    *panels, bar = ax.child_axes
    assert [panel.get_title() for panel in panels] == ["lead 6", "lead 12", "lead 18"]
    assert len({panel.collections[0].get_clim() for panel in panels}) == 1
    np.testing.assert_allclose(cells(panels[1]), cells(draw(2 * LATE)), rtol=1e-12)
    assert bar.get_ylabel().replace("\n", " ") == "half-width of the 95% interval, loss"
    models = xr.Dataset({"a": LATE, "b": EARLY, "c": EARLY + LATE})
    *panels, _ = draw(models).child_axes
    assert [panel.get_title() for panel in panels] == ["a − b", "a − c", "b − c"]
    np.testing.assert_allclose(cells(panels[0]), cells(draw(LATE, EARLY)), rtol=1e-9)
    *panels, _ = draw(models, show="estimate").child_axes
    assert [panel.get_title() for panel in panels] == ["a", "b", "c"]
