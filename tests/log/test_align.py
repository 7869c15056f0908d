"""Two logs beside each other: paired by name, never by the order in memory."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import cvstats

dask = pytest.importorskip("dask", reason="the extra dask is not installed")

DIMS = ("repetition", "point", "lat", "lon")


def a_map():
    """Losses of points in folds that differ by repetition, over a map without labels."""
    rng = np.random.default_rng(0)
    fold = np.stack([rng.permutation(12) % 3 for _ in range(2)])
    coords = {"fold": (("repetition", "point"), fold), "point": range(12)}
    return xr.DataArray(rng.normal(size=(2, 12, 3, 2)), coords, DIMS)


def dense(log):
    """The same with a dimension for the folds, and NaN where nothing was evaluated."""
    folds = xr.DataArray(range(3), dims="fold", coords={"fold": range(3)})
    return log.drop_vars("fold").where(log["fold"].drop_vars("fold") == folds)


def stacked(log):
    """The same with one dimension of evaluations."""
    return log.stack(evaluation=("repetition", "point")).reset_index("evaluation")


LAYOUTS = {"by point": lambda log: log, "dense": dense, "stacked": stacked}


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=8)
@given(st.data(), st.booleans())
def test_any_order_of_dimensions(layout, data, lazy):
    one = LAYOUTS[layout](a_map())
    two = (one**2).copy()
    wanted = cvstats.compare(one, two, method="wald")
    orders = [data.draw(st.permutations(log.dims)) for log in (one, two)]
    logs = [log.transpose(*order) for log, order in zip((one, two), orders, strict=True)]
    if layout == "by point" and data.draw(st.booleans()):
        logs[1] = logs[1].assign_coords(fold=logs[1]["fold"].transpose())
    logs[1] = logs[1].isel({logs[1].dims[0]: slice(None)})
    if lazy:
        logs = [log.chunk({log.dims[0]: 2}) for log in logs]
    with dask.config.set(scheduler="synchronous"):
        found = cvstats.compare(*logs, method="wald").compute()
    for name in ("difference", "se", "lower", "upper", "p_value"):
        ours = found[name].transpose(*wanted[name].dims)
        np.testing.assert_allclose(ours, wanted[name], rtol=1e-9, atol=1e-13)


def test_places_that_only_one_log_names_are_those_of_the_other_in_order():
    one, two = a_map(), a_map() ** 2
    wanted = cvstats.compare(one, two)["p_value"].to_numpy()
    named = {"lat": [40, 50, 60]}
    for logs in ((one.assign_coords(named), two), (one, two.assign_coords(named))):
        np.testing.assert_allclose(cvstats.compare(*logs)["p_value"], wanted, rtol=1e-12)
    with pytest.raises(cvstats.LogError, match="differ in length along 'lat': 3 and 2"):
        cvstats.compare(one.assign_coords(named), two.isel(lat=[0, 1]))


@pytest.mark.parametrize("whole", [partial(xr.DataArray.to_dataset, dim="model")])
def test_datasets_in_any_order(whole):
    one = xr.concat([a_map(), a_map() + 0.1], "model").assign_coords(model=["x", "y"])
    wanted = cvstats.compare(whole(one), whole(one**2))
    turned = whole((one**2).transpose("lon", "point", "model", "lat", "repetition"))
    found = cvstats.compare(whole(one), turned[["y", "x"]])
    xr.testing.assert_allclose(found, wanted, rtol=1e-12)
    logs = whole(one), turned[["y", "x"]]
    lazily = cvstats.compare(*(log.chunk() for log in logs)).compute()
    xr.testing.assert_allclose(lazily[list(wanted)], wanted, rtol=1e-9)
    xr.testing.assert_allclose(cvstats.difference(*logs), whole(one - one**2), rtol=1e-12)
    for log in logs:
        log["x"].attrs["units"] = "K"
    assert cvstats.difference(*logs)["x"].attrs["units"] == "K"
