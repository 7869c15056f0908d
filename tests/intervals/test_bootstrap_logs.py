"""Bootstrap logs in every container, and the numbers that they need besides."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from bootstrap_logs import MODELS, RATES, answer, bootstrap, case, two_stage
from calls import refuses
from rows import only_row
from strategies import ARRAYS

import cvstats


def test_each_cell_has_a_rate_of_its_own():
    log = bootstrap()
    array = ARRAYS["stacked"](log)
    grid = xr.concat([array, 2 * array, array * np.nan], pd.Index([10, 20, 30], name="lat"))
    rates = xr.DataArray([2.5, 1.5], {"model": MODELS}, "model")
    rates = rates * xr.DataArray([1, 2, 1], {"lat": [10, 20, 30]}, "lat")
    result = cvstats.bootstrap_632(grid, no_information=rates[::-1])  # by label
    expected = answer("bootstrap_632", log)
    for lat, unit in ((10, 1), (20, 2)):
        upper = result["upper"].sel(lat=lat, model=MODELS)
        np.testing.assert_allclose(upper, unit * expected["upper"], rtol=1e-12)
    assert np.isnan(result["estimate"].sel(lat=30)).all()


def test_points_of_one_name_in_different_sources():
    log = bootstrap(n=8)
    frame = log.reset_index()
    frame["source"], frame["point"] = frame["point"] // 5, frame["point"] % 5
    scoped = frame.set_index(["repetition", "source", "point", "count"])[MODELS]
    for kind in (scoped, scoped.sample(frac=1, random_state=0), ARRAYS["dense"](scoped)):
        result = cvstats.bootstrap_oob(kind)
        assert result.attrs["n_points"] == 8
        np.testing.assert_allclose(result["se"], cvstats.bootstrap_oob(log)["se"], rtol=1e-12)


def test_repetition_0_of_drawn_points_is_a_sample():
    log = case()
    first = log.rename(lambda number: number - 1, level="repetition")
    pd.testing.assert_frame_equal(answer("case_bootstrap", first), answer("case_bootstrap", log))


@pytest.mark.parametrize("method", ["bootstrap_632", "bootstrap_oob"])
def test_the_fit_on_the_sample_itself_may_count_no_points(method):
    log = bootstrap()
    frame = log.reset_index("count")
    uncounted = frame.assign(count=frame["count"].where(frame.index.get_level_values(0) > 0, 0))
    found = answer(method, uncounted.set_index("count", append=True))
    pd.testing.assert_frame_equal(found, answer(method, log))


def test_losses_in_bag_may_be_missing_where_they_are_not_used():
    log = bootstrap()
    inside = (log.index.get_level_values("count") > 0) & (
        log.index.get_level_values("repetition") > 0
    )
    result = answer("bootstrap_632", log.where(np.column_stack([~inside, ~inside])), missing="drop")
    pd.testing.assert_frame_equal(result, answer("bootstrap_632", log), rtol=1e-12)
    refuses("no row for repetition=1, point=", answer, "bootstrap_632", log[~inside])


@pytest.mark.parametrize(
    "rates",
    [RATES, pd.Series(RATES)[::-1], [2.5, 1.5], np.array([2.5, 1.5]), {**RATES, "svm": 0.1}],
)
def test_rates_by_name_or_in_order(rates):
    log = bootstrap()
    expected = answer("bootstrap_632", log)
    assert list(expected["no_information"]) == [2.5, 1.5]
    for method in ("bootstrap_632", "location_shifted"):
        result = getattr(cvstats, method)(log, no_information=rates)
        pd.testing.assert_frame_equal(result, answer(method, log), check_exact=True)
    log.attrs["no_information"] = rates
    pd.testing.assert_frame_equal(cvstats.bootstrap_632(log), expected, check_exact=True)
    again = only_row(log["tree"].cvci.bootstrap_632(no_information=9.0))
    assert again["no_information"] == 9.0


RATE_FRAME = pd.DataFrame({m: np.linspace(1, 3, 6) for m in MODELS})


@pytest.mark.parametrize(
    "rates",
    [
        RATE_FRAME[MODELS[::-1]],
        RATE_FRAME.to_numpy(),
        {m: dict(RATE_FRAME[m][::-1]) for m in MODELS},
        {m: RATE_FRAME[m].to_numpy() for m in MODELS},
    ],
)
def test_rates_of_samples(rates):
    log = two_stage()
    result = cvstats.two_stage(log, no_information=rates)
    pd.testing.assert_frame_equal(result, answer("two_stage", log), check_exact=True)
    one = RATE_FRAME["tree"]
    for given in (one, one[::-1], list(one), dict(one)):
        single = only_row(cvstats.two_stage(log["tree"], no_information=given))
        assert single["upper"] == result.loc["tree", "upper"]


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        (None, "Pass no_information=, or set losses.attrs"),
        ({"tree": 1.0}, "no number for model 'ridge'"),
        ([1.0], "has 1 numbers, but the log has 2 models"),
        (np.nan, "holds nan"),
        ("0.3", "holds '0.3'"),
        ({"tree": 1.0, "ridge": "high"}, "holds 'high'"),
        (xr.DataArray([1.0], dims="lat"), "an array over"),
    ],
)
def test_rates_that_do_not_fit(rates, words):
    for method in ("bootstrap_632", "location_shifted"):
        refuses(words, getattr(cvstats, method), bootstrap(), no_information=rates)


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        (None, "rate of each sample"),
        (0.5, "is one number, but the log has 6 samples"),
        ([0.5] * 6, "Expected numbers for each model"),
        (np.ones((5, 2)), "6 samples by 2 models"),
        ({"tree": [1.0] * 6}, "no number for model 'ridge'"),
        ({m: [1.0] * 5 for m in MODELS}, "has 5 numbers, but the log has 6 samples"),
        ({m: {0: 1.0} for m in MODELS}, "no number for sample 1, 2, 3, and 2 more"),
    ],
)
def test_rates_of_samples_that_do_not_fit(rates, words):
    refuses(words, cvstats.two_stage, two_stage(), no_information=rates)


def test_leave_one_out_is_a_log_or_plain_losses():
    log = case()
    points = pd.RangeIndex(9, name="point")
    rng = np.random.default_rng(0)
    loo = pd.DataFrame(rng.random((9, 2)), index=points, columns=MODELS)
    result = cvstats.case_bootstrap(log, leave_one_out=loo[MODELS[::-1]])
    np.testing.assert_allclose(result["estimate"], loo.mean())
    plain = cvstats.case_bootstrap(log)
    np.testing.assert_allclose(result["bias"], plain["estimate"] - loo.mean())
    np.testing.assert_allclose(result["upper"] - result["lower"], plain["upper"] - plain["lower"])
    for given in (loo["tree"], loo["tree"].tolist(), loo["tree"].reset_index(drop=True)):
        one = only_row(cvstats.case_bootstrap(log["tree"], leave_one_out=given))
        assert one["lower"] == result.loc["tree", "lower"]
    array = cvstats.case_bootstrap(ARRAYS["stacked"](log), leave_one_out=xr.DataArray(loo,
        dims=("point", "model")))  # fmt: skip
    np.testing.assert_allclose(array["lower"], result["lower"])
    for given, words in (
        (loo["tree"].tolist(), "2 models"),
        (loo[["tree"]], "different models: 'tree', 'ridge' in the first; 'tree' in the second"),
        (loo.iloc[:5], "has 5 points"),
        (loo.rename(columns={"tree": "svm"}), "different models"),
    ):
        refuses(words, cvstats.case_bootstrap, log, leave_one_out=given)
    with pytest.raises(cvstats.LogError, match="has 3 finite losses"):
        cvstats.case_bootstrap(log["tree"], leave_one_out=[1.0, 2.0, 3.0])


def test_leave_one_out_meets_the_log_by_its_labels():
    log = ARRAYS["stacked"](case()).sel(model="tree", drop=True)
    places = pd.Index([10.0, 20.0, 30.0], name="lat")
    grid = xr.concat([log, log + 1, log + 2], places)
    loo = xr.DataArray(np.random.default_rng(0).random((9, 3)), dims=("point", "lat"),
                       coords={"point": range(9), "lat": places})  # fmt: skip
    result = cvstats.case_bootstrap(grid, leave_one_out=loo)
    np.testing.assert_allclose(result["estimate"].sel(lat=places), loo.mean("point"))
    for other in (loo.isel(lat=[2, 0, 1]), loo.isel(point=slice(None, None, -1), lat=[1, 2, 0]).T):
        xr.testing.assert_identical(cvstats.case_bootstrap(grid, leave_one_out=other), result)
    both = {"lon": [1.0, 2.0]}  # dimensions pair by name, in any order
    wide, other = grid.expand_dims(both), loo.expand_dims(both, axis=-1) * [[[1.0, 2.0]]]
    found = cvstats.case_bootstrap(wide, leave_one_out=other.transpose("lat", "point", "lon"))
    np.testing.assert_allclose(found["estimate"].T, other.mean("point"))
    for labels in ([10.0, 20.0, 31.0], [10.0, 20.0, 20.0]):
        with pytest.raises(cvstats.LogError, match="have different labels along 'lat'"):
            cvstats.case_bootstrap(grid, leave_one_out=loo.assign_coords(lat=labels))
    with pytest.raises(cvstats.LogError, match="no carried dimension and the log has .'lat': 3"):
        cvstats.case_bootstrap(grid, leave_one_out=loo.isel(lat=0, drop=True))


@pytest.mark.parametrize("shift", [1, 1000])
def test_leave_one_out_of_other_points_is_refused(shift):
    loo = pd.Series(
        np.random.default_rng(0).random(9), pd.RangeIndex(shift, 9 + shift, name="point")
    )
    with pytest.raises(cvstats.LogError, match="leave_one_out has no loss of 0"):
        cvstats.case_bootstrap(case()["tree"], leave_one_out=loo)
