"""Dependence in time: which labels are dates, and where successive losses depend."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from flagged_logs import autoregressive, dated, labels
from rows import multi_index, product_index

import cvstats
from cvstats import LogError
from cvstats.core.cautions import Caution
from cvstats.log.loss_checks import is_calendar_number, rank_labels, read_calendar


@pytest.mark.parametrize(("cells", "dtype"), [(864, "float64"), (5_000, "float32")])
def test_cells_of_a_large_grid_are_labelled(cells, dtype):
    """Months of an autoregression on a grid of more losses than are read."""
    rng = np.random.default_rng(0)
    noise = autoregressive(rng.normal(size=(400, cells)).astype(dtype), 0.4)
    months = pd.date_range("1980-01-01", periods=400, freq="MS")
    grid = xr.DataArray(noise, dims=("point", "cell"), coords={"point": months})
    told = cvstats.holdout(grid)["caution"].to_numpy() & Caution.SERIAL_DEPENDENCE
    assert (told != 0).mean() > 0.99
    one = cvstats.holdout(grid.isel(cell=slice(0, 1)))
    assert labels(one) == {"serial dependence"}
    assert not (cvstats.ordered(grid[:, :864])["caution"] & Caution.SERIAL_DEPENDENCE).any()
    independent = grid.copy(data=rng.normal(size=grid.shape))
    told = cvstats.holdout(independent)["caution"].to_numpy() & Caution.SERIAL_DEPENDENCE
    assert (told != 0).mean() < 0.03


def test_dates_of_a_large_log_are_read_in_order():
    """Rows in any order, with sources: neighbours are those in time."""
    rng = np.random.default_rng(2)
    noise = autoregressive(rng.normal(size=(3_000, 40)), 0.5)
    index = product_index(point=pd.date_range("2010-01-01", periods=3_000), source=range(40))
    log = pd.Series(noise.ravel(), index).sample(frac=1, random_state=1)
    assert "serial dependence" in labels(cvstats.naive(log))


@pytest.mark.parametrize("form", ["periods", "days", "numbers"])
def test_points_are_dated_by_their_labels(form):
    """Dates and texts are in `test_containers`."""
    losses = dated(0.6)
    folds, days = (losses.index.get_level_values(name) for name in ("fold", "point"))
    other = {
        "periods": lambda: days.to_period("D"),
        "days": lambda: pd.Index([day.date() for day in days]),
        "numbers": lambda: days.factorize(sort=True)[0],
    }[form]()
    losses.index = multi_index(fold=folds, point=other)
    assert ("serial dependence" in labels(losses.cvci.wald())) == (form != "numbers")


@pytest.mark.parametrize("loss", ["rmse", "auc", "observed_expected"])
def test_pseudo_losses_of_successive_dates_may_depend(loss):
    """The RMSE of two equal forecasts of dependent days differed in 42% of logs, without a word."""
    risk = dated(0.9).droplevel("fold").sort_index().rank(pct=True) - 0.001
    frame = pd.DataFrame({"y_true": (risk > 0.5) * 1.0, "a": 0.9 * risk})
    frame["b"] = risk.shift(5).bfill()
    log = cvstats.losses(frame, prediction=["a", "b"], loss=loss)
    assert "serial dependence" in labels(log[["b"]].cvci.interval())
    assert "CVS027" in cvstats.diagnose(log)["code"].tolist()
    assert "using ordered because of serial dependence" in log["b"].cvci.summary().sentences[0]
    assert log.cvci.ordered()["lower"].min() >= 0
    grid = xr.DataArray(log["b"].to_numpy(), dims="point", coords={"point": log.index})
    lazy = grid.assign_attrs(log.attrs).chunk().cvci.holdout().compute()
    assert int(lazy["caution"]) & Caution.SERIAL_DEPENDENCE


def test_dates_of_climate_models_are_dates():
    day = type("DatetimeNoLeap", (int,), {"__module__": "cftime"})
    losses = dated(0.6).droplevel("fold").sort_index()
    losses.index = pd.Index([day(i) for i in range(300)], dtype=object, name="point")
    assert "serial dependence" in labels(losses.cvci.holdout())


def test_independent_days_are_not_serial():
    told = sum(
        "serial dependence" in labels(dated(0.0, seed=seed).cvci.wald()) for seed in range(40)
    )
    assert told <= 2
    assert "serial dependence" not in labels(dated(0.9, n=20).cvci.wald())
    constant = 0 * dated(0.9, n=60) + 0.1  # whose mean is rounded
    assert "serial dependence" not in labels(constant.cvci.wald())


@pytest.mark.parametrize("grid", [False, True])
def test_tests_of_models_examine_their_differences_on_successive_dates(grid):
    """The best of three equal models was often excluded without a word."""
    losses = pd.DataFrame({seed: dated(0.8, seed=seed).droplevel("fold") for seed in range(3)})
    right = losses[[0, 1]] > losses.median().mean()
    told = {"serial dependence"}
    if grid:
        losses, right = (
            frame.to_xarray().to_dataarray("model").astype(float).expand_dims(cell=2) for frame in
            (losses, right)
        )  # fmt: skip
    assert labels(losses.cvci.best_set(rng=0, n_draws=200)) == told
    assert labels(right.astype(float).cvci.mcnemar()) == told
    assert labels(right.astype(float).cvci.cochran_q()) == told
    mixed = losses.copy()
    mixed[:] = np.random.default_rng(0).normal(size=losses.shape)
    assert labels(mixed.cvci.best_set(rng=0, n_draws=200)) == set()
    assert labels((mixed > 0).astype(float).cvci.mcnemar(reference=0)) == set()
    assert labels((mixed > 0).astype(float).cvci.cochran_q()) == set()


def test_tests_without_standard_errors_name_the_comparison_in_time():
    losses = pd.DataFrame({"a": dated(0.8)})
    losses["b"] = dated(0.8, seed=1).droplevel("fold").reindex(losses.index, level="point")
    assert labels(losses.cvci.rope(margin=0.1)) == {"serial dependence"}
    right = (losses > 1).astype(float)
    answers = losses.cvci.rope(margin=0.1), losses.cvci.best_set(rng=0, n_draws=200)
    for table in (*answers, right.cvci.mcnemar(), right.cvci.cochran_q()):
        words = table.attrs["cautions"]["serial dependence"]
        assert "Use log.cvci.compare(method='ordered')" in words


def test_each_source_is_a_series_and_groups_may_depend():
    losses = dated(0.6, n=400)
    day = losses.index.get_level_values("point")
    block = pd.Series(
        losses.to_numpy(), multi_index(source=day.day_of_year // 60 + 10 * day.year, point=day)
    )
    block = pd.concat({0: block}, names=["fold"])
    assert "serial dependence" in labels(block.cvci.holdout())
    assert "serial dependence" not in labels(block.cvci.clustered())
    shuffled = block.groupby("source").transform(
        lambda one: np.random.default_rng(0).permutation(one)
    )
    level = shuffled + 5 * (shuffled.index.get_level_values("source") % 2)
    assert "serial dependence" not in labels(level.cvci.holdout())


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y"])
def test_whole_numbers_that_are_days_or_years_are_dates(form):
    noise = autoregressive(np.random.default_rng(0).normal(size=200), 0.8)
    days = pd.date_range("1850-01-01", periods=200, freq="YS" if form == "%Y" else "D")
    numbers = pd.Index(days.strftime(form).astype(int), name="point")
    assert "serial dependence" in labels(cvstats.interval(pd.Series(noise, numbers)))
    assert labels(cvstats.interval(pd.Series(noise, numbers % 977))) == set()


def test_numbers_of_points_are_no_days_without_a_look_at_all_of_them(monkeypatch):
    seen = []
    real = pd.to_datetime
    monkeypatch.setattr(
        pd, "to_datetime", lambda x, **given: seen.append(len(x)) or real(x, **given)
    )
    assert read_calendar(range(20_000_000, 20_500_000)) is None
    assert seen == [100]
    assert read_calendar([20240131, 20240201]) is not None


@pytest.mark.parametrize("texts", [
    [202400 + month for month in range(1, 14)],  # no month 13
    [f"{number}.1.2024" for number in range(20, 40)],  # no day 32
    ["31.12.2024", "b"],
    ["31.12.2024", 5],
    ["20240131", "7"],
    ["1.2.3", "1.2.4"],
    [1000001, 1000002],
    ["12/31/2024", "31/12/2024"],
])  # fmt: skip
def test_labels_that_only_look_like_dates(texts):
    assert read_calendar(texts) is None


def test_one_date_is_read():
    assert list(read_calendar(["31.12.2024"])) == [pd.Timestamp("2024-12-31")]


@pytest.mark.parametrize("unit", [1, 100, 10_000])
def test_calendar_numbers_are_of_the_years_1800_to_2100(unit):
    low = 1800 if unit == 1 else 1800 * unit + 1
    high = 2100 if unit == 1 else 2101 * unit - 1
    assert [is_calendar_number(at) for at in (low - 1, low, high, high + 1)] == [0, 1, 1, 0]
    assert not is_calendar_number(float(low))


def test_other_dates_are_sorted_by_time():
    for texts in (["01.02.2024", "15.01.2024"], ["02/01/2024", "01/15/2024"],
                   ["2024/2/1", "2024/1/15"], ["202402", "202401"]):  # fmt: skip
        assert rank_labels(texts).tolist() == [1, 0]
    assert rank_labels(["01/02/2024", "15/01/2024"]).tolist() == [1, 0]  # no month 15
    assert rank_labels(["31.12.2024"]).tolist() == [0]


@pytest.mark.parametrize(("name", "found"), [("date", True), ("Month", True), ("station", False)])
def test_dates_next_to_points_have_the_name_of_dates(name, found):
    rng = np.random.default_rng(0)
    noise = autoregressive(rng.normal(size=200), 0.8)
    index = pd.MultiIndex.from_arrays(
        [rng.permutation(200), pd.date_range("2024-01-01", periods=200)], names=["point", name]
    )
    assert ("serial dependence" in labels(pd.Series(noise, index).cvci.holdout())) == found


def test_points_next_to_dates_are_not_put_in_order():
    """Numbers of points are no times if another level has the dates."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200).cumsum()
    index = multi_index(point=rng.permutation(200), date=pd.date_range("2024-01-01", periods=200))
    log = pd.DataFrame({"a": noise, "b": 0.9 * noise}, index)
    with pytest.raises(LogError, match="its dates are on the level 'date'"):
        log.cvci.ordered()
    advice = log.cvci.interval().attrs["cautions"]["serial dependence"]
    assert "ordered" not in advice
    assert "ordered" not in str(log.cvci.summary())
