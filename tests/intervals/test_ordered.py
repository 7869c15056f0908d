"""Losses in order of time: the formulas, other programs, containers, panels, gaps and refusals."""

import datetime
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from rows import only_row
from scipy import signal, stats

import cvstats
from cvstats.core.cautions import Caution
from cvstats.intervals.ordered import comes_back
from cvstats.log.loss_checks import is_regular

CASES = json.loads((Path(__file__).parents[1] / "reference" / "ordered.json").read_text())
CASE = CASES[0]
WANTED = CASE["outputs"]
PEER = pd.Series(CASE["inputs"]["d"], pd.RangeIndex(40, name="point"), name="d")
ORDERED = [
    {},
    {"estimator": "newey-west"},
    {"estimator": "newey-west", "lags": 7},
    {"horizon": 3},
    {"horizon": 4, "estimator": "newey-west"},
]


def series(n=60, correlation=0.5, seed=0, start="2024-01-01", models=1):
    """Losses of which neighbouring days are alike, a column for each model."""
    draw = np.random.default_rng(seed).normal(size=(n, models))
    for day in range(1, n):
        draw[day] += correlation * draw[day - 1]
    days = pd.date_range(start, periods=n, name="point")
    return pd.DataFrame(draw, days, [f"m{i}" for i in range(models)])


def exact_variance(losses, estimator=None, horizon=None, lags=None):
    """The variance of the mean and the degrees of freedom, sum by sum as they are printed."""
    n, apart = len(losses), losses - losses.mean()
    gamma = [sum(apart[t] * apart[t - lag] for t in range(lag, n)) / n for lag in range(n)]
    if horizon is not None:
        weigh = (lambda lag: 1 - lag / horizon) if estimator else (lambda lag: 1.0)
        harvey = (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n
        variance = gamma[0] + 2 * sum(weigh(lag) * gamma[lag] for lag in range(1, horizon))
        return variance / n / harvey, n - 1
    if estimator == "newey-west":
        lags = math.floor(4 * (n / 100) ** (2 / 9)) if lags is None else lags
        tail = sum((1 - lag / (lags + 1)) * gamma[lag] for lag in range(1, lags + 1))
        return (gamma[0] + 2 * tail) / n, None
    cosines = math.floor(0.4 * n ** (2 / 3) + 1e-9)
    total = 0.0
    for j in range(1, cosines + 1):
        sums = sum(apart[t - 1] * math.cos(math.pi * j * (t - 0.5) / n) for t in range(1, n + 1))
        total += 2 / n * sums**2
    return total / n / cosines, cosines


def assert_exact(row, losses, alpha=0.05, **options):
    variance, df = exact_variance(np.asarray(losses, dtype=float), **options)
    quantile = stats.norm.isf(alpha / 2) if df is None else stats.t.isf(alpha / 2, df)
    assert row["estimate"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert row["se"] == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert row["upper"] - row["estimate"] == pytest.approx(quantile * row["se"], rel=1e-10)
    assert row["estimate"] - row["lower"] == pytest.approx(quantile * row["se"], rel=1e-10)
    assert ("df" in row) == (df is not None)
    assert df is None or row["df"] == df


@pytest.mark.parametrize("lags", [0, 1, 2, 3, 5])
def test_newey_west_is_that_of_sandwich(lags):
    row = only_row(PEER.cvci.ordered(estimator="newey-west", lags=lags))
    assert row["se"] ** 2 == pytest.approx(WANTED[f"NW{lags}"], rel=1e-12)
    assert row["n_lags"] == lags


@pytest.mark.parametrize(("times", "lags"), [(99, 3), (100, 4)])
def test_the_lags_of_newey_west_are_those_of_its_paper(times, lags):
    losses = pd.Series(np.arange(times) % 7.0, pd.RangeIndex(times, name="point"))
    assert only_row(losses.cvci.ordered(estimator="newey-west"))["n_lags"] == lags


@pytest.mark.parametrize("horizon", [1, 2, 3])
@pytest.mark.parametrize(("estimator", "name"), [(None, "acf"), ("newey-west", "bartlett")])
def test_diebold_mariano_is_that_of_forecast(horizon, estimator, name):
    statistic, p = WANTED[f"dm_{horizon}_{name}"]
    pair = pd.DataFrame({"a": PEER, "b": 0.0})
    options = {"horizon": horizon, "estimator": estimator}
    row = pair.cvci.compare(method="ordered", options=options).iloc[0]
    assert row["statistic"] == pytest.approx(statistic, rel=1e-12)
    assert row["p_value"] == pytest.approx(p, rel=1e-12)
    alone = PEER.cvci.ordered(**options).iloc[0]
    assert (alone["estimate"], alone["se"]) == pytest.approx((row["difference"], row["se"]))


def test_one_sided_as_in_forecast():
    pair = pd.DataFrame({"a": PEER, "b": 0.0})
    table = pair.cvci.compare(method="ordered", options={"horizon": 2}, alternative="greater")
    assert table["p_value"].iloc[0] == pytest.approx(WANTED["dm_2_greater"][1], rel=1e-12)


@pytest.mark.parametrize("options", ORDERED)
@pytest.mark.parametrize("n", [12, 64, 125])
def test_each_estimator_against_its_formula(options, n):
    losses = series(n)
    row = only_row(losses.cvci.ordered(alpha=0.1, **options))
    assert_exact(row, losses["m0"], alpha=0.1, **options)
    assert (row["n_times"], row["n_points"]) == (n, n)
    assert losses.cvci.ordered(**options).attrs["estimator"] == (
        options.get("estimator") or ("diebold-mariano" if "horizon" in options else "ewc")
    )


def as_arrow(days):
    pytest.importorskip("pyarrow", reason="the extra io is not installed")
    return pd.array(days, dtype="timestamp[us][pyarrow]")


@pytest.mark.parametrize(
    "label",
    [
        as_arrow,
        lambda days: pd.CategoricalIndex(days, categories=days[::-1]),
        lambda days: pd.CategoricalIndex(range(len(days)), categories=range(len(days))[::-1]),
        lambda days: days.strftime("%Y-%m-%d"),
        lambda days: days.tz_localize("Europe/Berlin"),
        lambda days: days.to_period("D"),
        lambda days: pd.Index([day.date() for day in days], dtype=object),
        lambda days: pd.CategoricalIndex(days.strftime("%Y-%m-%d")),
        lambda days: np.arange(len(days)) * 0.1,
        lambda days: pd.Index(list(range(-3, len(days) - 3)), dtype=object),
        lambda days: days - days[0],
        lambda days: pd.bdate_range("2024-01-01", periods=len(days)),
        lambda days: pd.date_range("2024-01-31", periods=len(days), freq="ME"),
    ],
)
def test_labels_that_are_times(label):
    losses = series(70)
    wanted = losses.cvci.ordered()
    losses.index = pd.Index(label(losses.index), name="point")
    shuffled = losses.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(shuffled.cvci.ordered(), wanted, rtol=1e-13)
    in_sources = pd.concat({0: losses, 1: losses.iloc[::-1]}, names=["source"])
    pd.testing.assert_frame_equal(in_sources.cvci.ordered(), wanted, rtol=1e-13)
    batches = map(cvstats.Moments.of_log, (losses.iloc[:40], losses.iloc[40:]))
    assert sum(batches).interval().attrs["n_points"] == 70


class DatetimeNoLeap:
    """A date of a calendar in which every month has 30 days."""

    def __init__(self, day):
        self.number = day
        self.year, rest = divmod(day, 360)
        self.month, self.day, self.hour = rest // 30 + 1, rest % 30 + 1, 0

    def __lt__(self, other):
        return self.number < other.number

    def __sub__(self, other):
        return self.number - other.number


DatetimeNoLeap.__module__ = "cftime"


def test_calendars_of_climate_models():
    losses = series()
    wanted = losses.cvci.ordered()
    for days in (range(60), range(0, 60 * 30, 30)):
        labels = [DatetimeNoLeap(day) for day in days]
        losses.index = pd.Index(labels, dtype=object, name="point")
        pd.testing.assert_frame_equal(losses.cvci.ordered(), wanted)
    # months of unequal length, and a day that is missing
    assert is_regular(pd.Index([DatetimeNoLeap(day) for day in (330, 361, 390)], dtype=object))
    assert not is_regular(pd.Index([DatetimeNoLeap(day) for day in (0, 1, 3)], dtype=object))


@pytest.mark.parametrize(
    ("times", "regular"),
    [
        ([5, 9], True),
        ([1, 2, 4], False),
        (["2024-01", "2024-02", "2024-03", "2024-04"], True),
        (["2024-01", "2024-02", "2024-04", "2024-05"], False),
        ([datetime.date(2024, 1, day) for day in (1, 2, 4)], False),
        (pd.period_range("2024-01", periods=5, freq="Q"), True),
        (pd.period_range("2024-01", periods=5, freq="Q").delete(2), False),
        (pd.date_range("2024-03-29", periods=5, tz="Europe/Berlin"), True),
        (pd.date_range("2024-03-30", periods=90, freq="h", tz="Europe/Berlin"), True),
        (pd.date_range("2024-10-26", periods=90, freq="h", tz="Europe/Berlin"), True),
        (pd.date_range("2024-10-26", periods=90, freq="h", tz="Europe/Berlin").delete(30), False),
        (pd.timedelta_range("0h", periods=5, freq="6h"), True),
    ],
)
def test_steps_between_times(times, regular):
    assert is_regular(pd.Index(times)) is regular


@pytest.mark.parametrize("start", ["2024-03-30", "2024-10-26"])
def test_hours_of_a_day_that_is_longer_or_shorter_have_no_gap(start):
    """As text, 02:00+01:00 was sorted before 02:00+02:00, which is an hour earlier."""
    hours = pd.date_range(start, periods=72, freq="h", tz="Europe/Berlin", name="point")
    losses = np.random.default_rng(0).random(72).cumsum()
    universal = pd.Series(losses, hours.tz_convert("UTC")).cvci.ordered()
    assert "gaps" not in universal["caution"].item()
    for labels in (hours, hours.astype(str).rename("point"), hours.strftime("%Y-%m-%dT%H:%M%z")):
        found = pd.Series(losses, pd.Index(labels, name="point")).cvci.ordered()
        pd.testing.assert_frame_equal(found, universal)


@pytest.mark.parametrize("frequency", ["D", "B", "MS"])
def test_days_as_text_with_offsets_are_those_of_the_place(frequency):
    days = pd.date_range("2024-03-01", periods=60, freq=frequency, tz="Europe/Berlin")
    losses = np.random.default_rng(0).random(60).cumsum()
    local, text = (
        pd.Series(losses, pd.Index(labels, name="point")).sample(frac=1, random_state=1)
        for labels in (days, days.astype(str))
    )
    pd.testing.assert_frame_equal(text.cvci.ordered(), local.cvci.ordered())
    assert "gaps" not in text.cvci.ordered()["caution"].item()
    assert "gaps" in text.drop(text.index[30]).cvci.ordered()["caution"].item()


@pytest.mark.parametrize("frequency", ["D", "B", "MS", "ME", "QS"])
@pytest.mark.parametrize(
    "form",
    [
        lambda days: days,
        lambda days: days.tz_localize("Europe/Berlin"),
        lambda days: days.strftime("%Y-%m-%d"),
        lambda days: pd.Index([day.date() for day in days], dtype=object),
    ],
)
def test_steps_between_dates(form, frequency):
    days = pd.date_range("2024-03-29", periods=15, freq=frequency)
    assert is_regular(form(days))
    assert not is_regular(form(days.delete(7)))


def test_gaps_in_time():
    losses = series()
    holed = losses.drop(losses.index[[20, 21]])
    row = only_row(holed.cvci.ordered())
    assert row["caution"] == "gaps in time"
    assert_exact(row, holed["m0"])
    losses = losses.where(losses.index.isin(holed.index)[:, None])
    refuses("missing='drop'", losses.cvci.ordered)
    dropped = losses.cvci.ordered(missing="drop")
    assert dropped.attrs["n_dropped"] == 2
    assert only_row(dropped)["se"] == row["se"]
    assert only_row(dropped)["caution"] == "gaps in time"


def test_serial_dependence_is_allowed_for_and_advised():
    losses = series(400, 0.6, models=4)
    assert set(losses.cvci.holdout()["caution"]) == {"serial dependence"}
    usual = losses.cvci.interval()
    assert "Use log.cvci.ordered()" in usual.attrs["cautions"]["serial dependence"]
    assert "ordered" in cvstats.diagnose(losses).set_index("code").loc["CVS027", "advice"].iloc[0]
    streamed = cvstats.Moments.of_log(losses).interval()
    for found in (usual, streamed):
        assert found.attrs["suggestion"] == ""  # random splits would divide the dates
    assert set(losses.cvci.ordered()["caution"]) == {""}
    assert cvstats.methods(losses).loc["ordered", "applies"]
    table = losses.cvci.compare(method="ordered")
    assert len(table) == 6
    assert table["caution"].iloc[0] == ""
    assert table.attrs["target"].startswith("difference of two models in the long-run mean loss")


def test_dependence_that_is_too_strong():
    losses = series(100, 0.95)
    for options in ({}, {"estimator": "newey-west"}, {"horizon": 2}):
        assert only_row(losses.cvci.ordered(**options))["caution"] == "strong dependence"
    sums = series(100, 0).rolling(3).mean().dropna()  # forecasts three steps ahead
    assert only_row(sums.cvci.ordered(horizon=3))["caution"] == ""
    assert only_row(sums.cvci.ordered(horizon=1))["caution"] == "strong dependence"


def test_false_alarms_are_rare():
    noise = series(200, 0, models=200)
    for options in ORDERED:
        told = noise.cvci.ordered(**options)["caution"] == "strong dependence"
        assert told.mean() <= 0.03, options


@pytest.mark.parametrize(
    ("weights", "times", "least", "most"),
    [
        ((0.9,), 50, 0.7, 1),  # cosines cover .78
        ((0.9,), 100, 0.8, 1),  # .82
        ((0.9,), 200, 0.8, 1),  # .85
        ((0.5, 0.3), 100, 0.4, 1),  # .88
        ((0.6,), 100, 0, 0.05),  # .94
        ((1.2, -0.4), 100, 0, 0.2),  # .95: neighbors correlate .86, but not for long
        ((1.2, -0.4), 200, 0, 0.05),  # .94
    ],
)
def test_dependence_is_told_if_intervals_are_too_narrow(weights, times, least, most):
    noise = np.random.default_rng(times).normal(size=(times + 300, 400))
    losses = signal.lfilter([1], [1, *(-weight for weight in weights)], noise, axis=0)[300:]
    log = xr.DataArray(losses, dims=("point", "run"), coords={"point": np.arange(times)})
    found = cvstats.ordered(log)["caution"].to_numpy() & Caution.STRONG_DEPENDENCE
    assert least <= (found != 0).mean() <= most


def test_a_variance_that_is_not_positive():
    losses = pd.Series([1.0, -1, 1, -1, 1, -1.5, 1, -1, 1, -1, 1, -1], name="m")
    losses.index = pd.RangeIndex(12, name="point")
    row = only_row(losses.cvci.ordered(horizon=2))
    assert row["caution"] == "horizon not used"
    assert_exact(row.drop("caution"), losses, horizon=1)
    pair = pd.DataFrame({"a": losses, "b": 0.0})
    table = pair.cvci.compare(method="ordered", options={"horizon": 2})
    assert "horizon not used" in table["caution"].iloc[0]
    errors = 0.1 * pd.Series([1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0], losses.index)
    for seed in range(9):  # of 0 up to rounding, which depended on the order of the rows
        moved = errors.sample(frac=1, random_state=seed)
        assert "horizon not used" in only_row(moved.cvci.ordered(horizon=3))["caution"]


def test_shares_have_limits_of_a_proportion():
    """Shares of 0.9 in 1,000 series: limits by Student's t cover .90, and are above 1 in .67."""
    errors = series(60, 0.6, models=1000) * 0.8  # of variance 1
    inside = (errors.abs() <= stats.norm.isf(0.05)).astype(float)
    table = inside.cvci.ordered()
    assert ((table["lower"] <= 0.9) & (table["upper"] >= 0.9)).mean() > 0.94
    assert table["upper"].max() <= 1
    row = table[table["se"] > 0].iloc[0]
    share, df = row["estimate"], row["df"]
    n = (
        share
        * (1 - share)
        / row["se"] ** 2
        * (stats.t.isf(0.025, 59) / stats.t.isf(0.025, df)) ** 2
    )
    ones, zeros = share * n, (1 - share) * n
    exact = stats.beta.ppf(0.025, ones, zeros + 1), stats.beta.isf(0.025, ones + 1, zeros)
    assert row[["lower", "upper"]].tolist() == pytest.approx(exact, rel=1e-9)
    grid = xr.DataArray(inside.iloc[:, :3].to_numpy(), dims=("point", "lat"), name="coverage")
    grid = grid.assign_attrs(loss="coverage")
    lazy = grid.chunk({"lat": 1}).cvci.interval(method="ordered").compute()
    np.testing.assert_allclose(lazy["upper"], table["upper"].iloc[:3])
    normal = cvstats.ordered(inside, estimator="newey-west")
    assert (normal["upper"] > 1).any()
    assert normal["caution"].str.contains("few errors").any()
    assert not table["caution"].str.contains("few errors").any()
    grid = xr.ones_like(grid)
    assert cvstats.ordered(grid[:, 0])["upper"] == 1 > cvstats.ordered(grid)["lower"][0]


def test_interval_by_name_is_lazy_too():
    grid = xr.DataArray(series(models=3).to_numpy(), dims=("point", "lat"))
    eager = grid.cvci.interval(method="ordered")
    lazy = grid.chunk({"point": 7}).cvci.interval(method="ordered")
    assert lazy["se"].chunks is not None
    xr.testing.assert_allclose(lazy.compute(), eager)
    assert cvstats.methods(grid.chunk({"point": 7})).loc["ordered", "applies"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "horizon=0 is out of range. Expected a whole number from 1"),
        ({"horizon": 1.5}, "horizon=1.5 is out of range"),
        ({"estimator": "newey-west", "lags": -1}, "lags=-1 is out of range"),
        ({"lags": 2}, "lags=2 is only used by Newey-West without a horizon"),
        ({"horizon": 2, "lags": 1, "estimator": "newey-west"}, "lags=1 is only used by"),
        ({"horizon": 2, "estimator": "ewc"}, "specify two variances"),
        ({"estimator": "hac"}, "estimator='hac'"),
        ({"horizon": 60}, "horizon=60 needs at least 61 times, but this log has 60"),
        ({"estimator": "newey-west", "lags": 59}, "lags=59 needs at least 61 times"),
    ],
)
def test_options_that_no_log_makes_right(options, words):
    refuses(words, series().cvci.ordered, **options)


def test_logs_without_time():
    losses = series(models=2)
    refuses("at least 4 times, but this log has 3", losses.iloc[:3].cvci.ordered)
    plain = losses.reset_index(drop=True)
    refuses("no level 'point', and the order of rows is not used", plain.cvci.ordered)
    named = losses.set_axis(pd.Index([f"q{i}" for i in range(60)], name="point"))
    refuses(
        "the labels of its level 'point' are neither all dates nor all numbers: 'q0'",
        named.cvci.ordered,
    )
    assert not cvstats.methods(named).loc["ordered", "applies"]
    refuses("needs individual losses", cvstats.Moments.of_log(losses).ordered)
    nested = pd.concat({0: losses, 1: losses}, names=["outer"])
    refuses("nested cross-validation log", nested.cvci.ordered)


@pytest.mark.parametrize("season", [7, 12])
@pytest.mark.parametrize(("estimator", "horizon"), [(None, None), ("newey-west", None), (None, 2)])
def test_losses_that_come_back_after_a_season_are_labelled(season, estimator, horizon):
    """Such intervals cover .36 to .82; an autoregression of neighbours is within reach."""
    rng = np.random.default_rng(season)
    times, runs = 400, 100
    seasonal, plain = rng.normal(size=(2, times + 600, runs))
    for t in range(season, times + 600):
        seasonal[t] += 0.7 * seasonal[t - season]
        plain[t] += 0.3 * plain[t - 1] * (horizon is None)
    for noise, share in ((seasonal, 0.99), (plain, 0.05)):
        log = xr.DataArray(noise[600:], dims=("point", "run"), coords={"point": np.arange(times)})
        found = cvstats.ordered(log, estimator=estimator, horizon=horizon)["caution"].to_numpy()
        told = ((found & Caution.STRONG_DEPENDENCE) != 0).mean()
        assert told >= share if noise is seasonal else told <= share


def test_an_autoregression_has_no_season():
    """Its correlation at lag 7, .9^7, is beyond the reach of 21 cosines, but not beyond its own."""
    neighbors, far = np.array([[1.0, 1.0], [0.9, 0.9]]), np.array([[0.9**7, 0.95]])
    assert comes_back(neighbors, far, np.array([7]), 400, 21).tolist() == [False, True]


@pytest.mark.parametrize("season", [5, 7, 12])
def test_four_seasons_show_that_losses_come_back(season):
    rng = np.random.default_rng(season)
    times = pd.date_range("2024-01-01", periods=4 * season, name="point")
    log = pd.Series(np.tile(rng.normal(size=season), 4) + rng.normal(0, 0.1, 4 * season), times)
    for losses, caution in ((log, "strong dependence"), (log.iloc[1:], "")):
        assert losses.cvci.ordered()["caution"].item() == caution
