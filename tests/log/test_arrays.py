"""Results of arrays come back labelled, with what was carried through."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import multi_index

from cvstats.core.cautions import Caution
from cvstats.errors import LogError


@pytest.fixture
def grid():
    """Squared errors of two models in 3 x 2 places and two lead times, ten points, five folds."""
    rng = np.random.default_rng(5)
    return xr.DataArray(
        rng.gamma(2.0, size=(3, 10, 2, 2, 2)),
        {
            "lat": ("lat", [50.0, 51.0, 52.0], {"units": "degrees_north"}),
            "point": list("abcdefghij"),
            "lon": [7, 8],
            "model": ["old", "new"],
            "lead_time": pd.to_timedelta([1, 2], unit="D"),
            "fold": ("point", np.arange(10) % 5),
            "height": ("lat", [3.0, 5.0, 8.0]),
            "run": 17,
        },
        ("lat", "point", "lon", "model", "lead_time"),
        name="squared_error",
        attrs={"units": "K2", "long_name": "squared error", "history": "made up"},
    )


def test_only_the_units_of_the_loss_are_inherited(grid):
    for result in (grid.cvci.wald(), grid.cvci.compare(reference="old"), grid.cvci.decompose()):
        assert "history" not in result.attrs
        for name, variable in result.data_vars.items():
            if name == "caution":
                continue
            in_units = name in {"estimate", "se", "lower", "upper", "difference"}
            assert variable.attrs == ({"units": "K2"} if in_units else {}), name
    cells = grid.cvci.moments(by="fold")
    assert cells["mean"].attrs == {"units": "K2"}
    margin = grid.cvci.rope(margin=1)
    assert margin["scale"].attrs == {"units": "K2"}
    assert margin["p_better"].attrs == {}
    assert cells["var"].attrs == cells["count"].attrs == {}
    bare = grid.copy()
    bare.attrs = {}
    assert "units" not in bare.cvci.wald()["estimate"].attrs


@pytest.mark.parametrize("chunks", [None, {}])
def test_variables_of_different_units_are_not_compared(grid, chunks):
    both = grid.isel(lat=0, lon=0, lead_time=0, drop=True).to_dataset("model")
    both.attrs = {}
    both["old"].attrs = {"units": "K2", "long_name": "error of temperature"}
    both["new"].attrs = {"units": "mm2", "long_name": "error of rain"}
    log = both if chunks is None else both.chunk(chunks)
    assert log.cvci.interval()["estimate"].attrs == {}
    for ask in (log.cvci.compare, log.cvci.summary, lambda: both.cvci.winner(rng=0)):
        refuses("'old' has 'K2' and 'new' has 'mm2'. Expected models", ask)
    both["new"].attrs["units"] = "K2"
    assert "lower mean loss than" in str(both.cvci.summary())
    log = both if chunks is None else both.chunk(chunks)
    assert log.cvci.compare(log)["difference"].attrs == {"units": "K2"}


def test_a_dimension_of_several_levels_next_to_another():
    rows = multi_index(fold=np.arange(12) % 3, point=range(12))
    rows = xr.Coordinates.from_pandas_multiindex(rows, "row")
    losses = np.random.default_rng(2).random((4, 12, 2))
    log = xr.DataArray(losses, {"repetition": range(4), "model": list("ab")},
                       ("repetition", "row", "model")).assign_coords(rows)  # fmt: skip
    frame = log.to_series().unstack("model")
    expected = frame.cvci.interval().to_xarray()
    xr.testing.assert_allclose(log.cvci.interval()["se"], expected["se"], rtol=1e-12)


def test_a_level_may_have_its_dimensions_in_any_order():
    rng = np.random.default_rng(1)
    folds = xr.DataArray(rng.integers(0, 3, (4, 30)), dims=("repetition", "point"))
    log = xr.DataArray(rng.random((4, 30)), dims=folds.dims, coords={"point": np.arange(30)})
    one, two = (log.assign_coords(fold=each) for each in (folds, folds.T))
    call = {"variance": "within-fold"}
    xr.testing.assert_equal(two.cvci.wald(**call), one.cvci.wald(**call))
    frame = one.to_series().to_frame("a").set_index(
        pd.Index(folds.to_numpy().reshape(-1), name="fold"), append=True
    )  # fmt: skip
    expected = frame.cvci.wald(**call)["se"].item()
    np.testing.assert_allclose(one.cvci.wald(**call)["se"], expected, rtol=1e-12)


def test_times_of_a_coordinate_keep_their_zone():
    days = pd.date_range("2020-03-01", periods=60, tz="Europe/Berlin")  # one of them has 23 hours
    frame = pd.DataFrame({"a": np.random.default_rng(0).random(60)}, days.rename("point"))
    month = days.tz_localize(None).to_period("M").to_timestamp().tz_localize(days.tz)
    coords = {"point": ("row", days), "month": ("row", month)}
    array = xr.DataArray(frame["a"].to_numpy(), coords, "row")
    result = array.cvci.ordered()
    assert result["caution"].item() == 0
    np.testing.assert_allclose(result["lower"].item(), frame.cvci.ordered()["lower"].item())
    found = array.cvci.holdout(by="month")
    assert found.indexes["month"].tolist() == month.unique().tolist()
    assert list(array.cvci.summary(by="month")) == month.unique().tolist()


def test_rows_without_a_label_are_dropped_as_the_error_says():
    site = np.array(["x", "y", None], dtype=object)[np.arange(30) % 3]
    log = xr.DataArray(np.arange(30.0), {"site": ("point", site)}, "point")
    with pytest.raises(LogError, match="drop them: ") as refused:
        log.cvci.holdout(by="site")
    kept = eval(str(refused.value).split("drop them: ")[1].rstrip("."), {"log": log})
    np.testing.assert_array_equal(kept.cvci.holdout(by="site")["estimate"], [13.5, 14.5])


def test_caution_is_a_cf_flag_variable(grid):
    caution = grid.cvci.naive()["caution"]
    assert caution.dtype == np.int64
    masks, meanings = caution.attrs["flag_masks"], caution.attrs["flag_meanings"].split()
    assert masks.dtype == caution.dtype
    assert masks.tolist() == [c for c in Caution if (caution.values & c).any()]
    assert len(masks) == len(meanings)
    name = Caution.DEPENDENCE_IGNORED.label.replace(" ", "_")
    assert dict(zip(meanings, masks.tolist(), strict=True))[name] == Caution.DEPENDENCE_IGNORED
    assert ((caution.values & Caution.DEPENDENCE_IGNORED) != 0).all()


@pytest.mark.parametrize(
    "names",
    [None, [10, 20], [0.5, 1.5], pd.to_datetime(["2030-01-01", "2030-01-02"]),
     pd.Index(["a", 1], dtype=object)],
    ids=["none", "integers", "floats", "dates", "mixed"],
)  # fmt: skip
def test_names_of_models_need_not_be_strings(grid, names):
    array = grid.isel(lat=0, lon=0, lead_time=0, drop=True)
    array = array.drop_vars("model") if names is None else array.assign_coords(model=names)
    found = array.cvci.wald()
    first, second = found["model"].to_index()
    pair = array.cvci.compare().squeeze()
    assert (pair["model"].item(), pair["other"].item()) == (
        found["model"][0].item(), found["model"][1].item()
    )  # fmt: skip
    assert array.cvci.compare(reference=first).sizes["pair"] == 1
    words = str(array.cvci.summary())
    assert str(first).removesuffix(" 00:00:00") in words
    assert str(second).removesuffix(" 00:00:00") in words


def test_the_advice_on_duplicates_is_for_arrays():
    points = [*range(19), 4]
    log = xr.DataArray(np.arange(20.0), {"point": points}, dims="point")
    refuses(r"drop them, as in log\.drop_duplicates\('point'\)\.", log.cvci.holdout)
    assert log.drop_duplicates("point").cvci.holdout().attrs["n_points"] == 19
