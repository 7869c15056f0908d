"""missing="drop": the design of the log stays, and each carried cell has gaps of its own."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from plotted import write_without_marks
from rows import multi_index
from strategies import by_row, stacked

import cvstats
import cvstats.log.log
from cvstats.errors import LogError, NeedsLosses
from cvstats.log.read import read

R, P = 3, 24


def frame(seed=0, **levels):
    """Losses of two models, with these levels."""
    index = multi_index(**levels)
    values = np.random.default_rng(seed).normal(size=(len(index), 2))
    return pd.DataFrame(values, index=index, columns=["a", "b"])


def again(labels):
    return np.tile(labels, R)


POINTS = np.arange(P)
REPETITION = np.repeat(range(R), P)
SHUFFLED = np.concatenate([np.random.default_rng(r).permutation(P) % 4 for r in range(R)])
REPEATED = {
    "test set": frame(repetition=REPETITION, point=again(POINTS)),
    "k-fold": frame(repetition=REPETITION, fold=SHUFFLED, point=again(POINTS)),
    "source out": frame(repetition=REPETITION, source=again(POINTS % 4), point=again(POINTS)),
}
QUESTIONS = {
    "interval": cvstats.interval,
    "compare": cvstats.compare,
    "equivalence": lambda log, **options: cvstats.equivalence(log, margin=0.5, **options),
    "power": lambda log, **options: cvstats.power(log, effect=0.5, **options),
    "rope": lambda log, **options: cvstats.rope(log, margin=0.5, **options),
    "best_set": lambda log, **options: cvstats.best_set(log, rng=0, **options),
}


def numbers(table):
    return table.select_dtypes("number")


@pytest.mark.parametrize("kind", REPEATED)
def test_a_repetition_of_which_nothing_is_left_takes_no_points_with_it(kind):
    gap = REPEATED[kind].copy()
    gap.iloc[:P] = np.nan
    table = cvstats.interval(gap, missing="drop")
    pd.testing.assert_frame_equal(numbers(table), numbers(cvstats.interval(gap.iloc[P:])))


def test_points_of_different_sources_may_share_names():
    log = frame(repetition=REPETITION, source=again(POINTS % 4), point=again(POINTS // 4))
    gap = log.copy()
    gap.iloc[5, 1] = np.nan  # source 1, point 1
    table = cvstats.interval(gap, missing="drop")
    levels = [log.index.get_level_values(name) for name in ("source", "point")]
    rest = cvstats.interval(log[(levels[0] != 1) | (levels[1] != 1)])
    pd.testing.assert_frame_equal(numbers(table), numbers(rest), rtol=1e-12)


NESTED = xr.DataArray(
    np.random.default_rng(5).gamma(2, 1, (2, 2, 4, P)),
    dims=("model", "repetition", "outer", "point"),
    coords={
        "model": ["a", "b"], "repetition": [0, 1], "outer": range(4), "point": POINTS,
        "fold": (("repetition", "point"), SHUFFLED[: 2 * P].reshape(2, P)),
    },
)  # fmt: skip
"""Nested cross-validation: each repetition tests all points with each fold held out."""


def test_a_point_that_one_outer_fold_lacks_is_dropped_from_nested_cross_validation():
    log, gap = NESTED, NESTED.copy()
    gap.loc[{"model": "a", "outer": 2, "point": 7, "repetition": 0}] = np.nan
    levels = ["repetition", "outer", "fold", "point"]
    table = gap.to_dataframe("loss").reset_index()
    rows = table.pivot(index=levels, columns="model", values="loss")
    rest = log.drop_sel(point=7)
    for ask in (cvstats.interval, cvstats.compare):
        wanted = ask(rest)
        for one in (gap, gap.chunk(outer=1, point=5), rows.sample(frac=1, random_state=0)):
            found = ask(one, missing="drop")
            dropped = found["n_dropped"] if "n_dropped" in found else found.attrs["n_dropped"]
            assert np.all(np.asarray(dropped) == 8)
            for name in ("lower", "upper", "difference" if "difference" in wanted else "estimate"):
                np.testing.assert_allclose(np.asarray(found[name]), wanted[name], rtol=1e-10)
    both = xr.concat([gap, 2 * log], dim="lat")
    for each in (both, both.chunk(lat=1)):
        found = cvstats.interval(each, missing="drop")["upper"]
        for lat, wanted in enumerate((cvstats.interval(rest), cvstats.interval(2 * log))):
            np.testing.assert_allclose(found.sel(lat=lat), wanted["upper"], rtol=1e-10)
    with pytest.raises(LogError, match="evaluations are missing: each of 4 outer folds"):
        cvstats.interval(gap.where((gap.outer != 1) | (gap.fold != 2)), missing="drop")


def test_duplicates_that_are_missing_are_no_duplicates():
    log = REPEATED["k-fold"]
    ours = pd.concat([log, log.iloc[:4] * np.nan])
    refuses("the same evaluation appears twice", cvstats.wald, ours)
    table = cvstats.wald(ours, missing="drop")
    pd.testing.assert_frame_equal(numbers(table), numbers(cvstats.wald(log)))


def test_a_dropped_row_is_not_in_a_group_that_starts_later():
    """Rows of many models are read in pieces; those of the second group begin in a later one."""
    n, drawn = 40_000, np.random.default_rng(1).exponential(size=(40_000, 30))
    drawn[0] = np.nan
    labels = {"segment": np.arange(n) // 39_000, "point": np.arange(n)}
    log = xr.DataArray(drawn, {k: ("point", v) for k, v in labels.items()}, ("point", "model"))
    asked = partial(cvstats.interval, by="segment")
    xr.testing.assert_allclose(asked(log, missing="drop"), asked(log.dropna("point")))


def grid(n=60):
    """Two models on a grid whose cells miss different evaluations, and some all of them."""
    draw = np.random.default_rng(3)
    log = xr.DataArray(
        draw.gamma(2.0, size=(n, 3, 4, 2)), dims=("point", "lat", "lon", "model"),
        coords={"point": range(n), "lat": [10, 20, 30], "lon": range(4), "model": ["a", "b"],
                "fold": ("point", np.arange(n) % 5), "source": ("point", np.arange(n) % 12)},
    )  # fmt: skip
    log[3, 0, 0, 0] = np.nan
    log[5:9, 1, 2, 1] = np.nan
    log[:, 2, 3] = np.nan  # a masked cell
    log[::2, 2, 2, 0], log[1::2, 2, 2, 1] = np.nan, np.nan  # no evaluation that both have
    log[:, 1, 1, 1] = np.nan  # a masked model of a cell
    log[0, 1, 1, 0] = np.nan
    return log


GRID = grid()


def test_p_values_of_all_cells_are_adjusted_together():
    table = cvstats.compare(GRID, missing="drop")
    p = table["p_value"].values
    known = p[~np.isnan(p)]
    holm = np.minimum(np.maximum.accumulate(np.sort(known) * np.arange(len(known), 0, -1)), 1)
    found = table["p_adjusted"].values
    np.testing.assert_allclose(np.sort(found[~np.isnan(found)]), np.sort(holm))
    for each in (GRID, GRID.chunk(lat=1)):
        with pytest.raises(LogError, match="one pair in each of 12 cells"):
            cvstats.compare(each, missing="drop", adjust="max-t", rng=0)


def test_cells_without_an_answer_are_named():
    log = GRID.sel(model="a", drop=True).isel(lat=[0, 1], lon=[0, 1])
    log = log.where((log["lat"] != 20) | (log["lon"] != 1) | (log["source"] == 3))
    words = r"1 of 4 carried cells could not be computed.*lat=20, lon=1.*one cluster.*blank them"
    for each in (log, log.chunk(lat=1)):
        with pytest.raises(LogError, match=words):
            cvstats.clustered(each, missing="drop").compute()
    few = log.where((log["lat"] == 20) | (log["fold"] != 2) | (log["lon"] != 1))
    with pytest.raises(LogError, match="no evaluation of fold=2 is left"):
        cvstats.naive(few.isel(lon=[1]), by="fold", missing="drop")


def test_what_takes_the_same_evaluations_everywhere_says_so(monkeypatch):
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", write_without_marks)
    words = "carried cells of this log lack different evaluations"
    for each in (GRID, GRID.chunk(lat=1)):
        refuses(words, cvstats.Moments.of_log, each, missing="drop")
    three = xr.concat([GRID, GRID.sel(model=["a"]).assign_coords(model=["c"])], "model")
    refuses(words, cvstats.friedman, three, by="source", missing="drop")
    row = cvstats.diagnose(GRID).iloc[0]
    assert row["finding"].endswith(
        "lack different evaluations, so only missing losses were checked"
    )
    assert row["advice"].startswith("Check one cell at a time.")
    refuses("or pass missing='drop'", cvstats.report, GRID)
    page = cvstats.report(GRID, missing="drop")
    assert str(cvstats.summary(GRID, missing="drop")).split(",")[0] in page
    assert row["finding"][1:] in page
    alike = GRID.where(GRID["point"] > 3).isel(lat=[0], lon=[1, 3])
    for each in (alike, alike.chunk(lon=1)):
        assert cvstats.Moments.of_log(each, missing="drop").wald().attrs["n_dropped"] == 4


def halves(log):
    """The moments of a log in two batches."""
    odd = log.index.get_level_values("point") % 2 == 1
    parts = [cvstats.Moments.of_log(log[rows], pairs=True, missing="drop") for rows in (odd, ~odd)]
    return parts[0] + parts[1]


def saved(moments, path):
    """The same moments, read from a file."""
    moments.save(path)
    return cvstats.Moments.load(path)


LOGS = {
    "k-fold": frame(fold=POINTS % 4, point=POINTS),
    "repeated": REPEATED["k-fold"],
    "source out": frame(source=POINTS % 4, point=POINTS),
}
OF_MOMENTS = {
    "interval": cvstats.interval,
    "corrected_t": cvstats.corrected_t,
    "compare": partial(cvstats.compare, method="wald"),
    "compare by corrected_t": lambda log, **more: cvstats.compare(
        log, method="corrected_t", **more
    ),
    "rope": QUESTIONS["rope"],
}


@pytest.mark.parametrize("kind", LOGS)
def test_moments_know_what_was_left_out(kind, tmp_path):
    log = LOGS[kind].copy()
    log.iloc[[3, 17], [0, 1]] = np.nan
    log.iloc[5, 0] = np.nan
    whole = cvstats.Moments.of_log(log, pairs=True, missing="drop")
    lazy = cvstats.Moments.of_log(stacked(log).chunk(), pairs=True, missing="drop")
    roads = (whole, saved(whole, tmp_path / "moments.npz"), halves(log), lazy)
    for road in roads:
        assert road.log().planned.splits().points == P
    for ask in OF_MOMENTS.values():
        wanted = ask(log, missing="drop")
        for found in map(ask, roads):
            for column in numbers(wanted):
                np.testing.assert_allclose(
                    np.asarray(found[column]), wanted[column], rtol=1e-10, err_msg=column
                )


@pytest.mark.parametrize("dims", [("lat",), ("lat", "model"), ("model", "lat")])
def test_moments_need_the_same_gaps_in_each_cell(dims):
    sizes, fold = {"point": 60, "lat": 3, "model": 2}, np.arange(60) % 6
    losses = np.random.default_rng(0).normal(size=[60, *(sizes[dim] for dim in dims)])
    log = xr.DataArray(losses, dims=("point", *dims), coords={"fold": ("point", fold)})
    log[{"point": 3, "lat": 0} | ({"model": 0} if "model" in dims else {})] = np.nan
    for cells in (log, log.chunk(lat=1)):
        refuses("lack different evaluations", cvstats.Moments.of_log, cells, missing="drop")
    log[{"point": 3, "lat": slice(1, 3)} | ({"model": 1} if "model" in dims else {})] = np.nan
    log[{"lat": 1}] = np.nan  # a masked cell
    expected = log.cvci.wald(missing="drop")["se"]
    for cells in (log, log.chunk(lat=1)):
        found = cvstats.Moments.of_log(cells, missing="drop").wald()["se"]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_grid_without_anything_left_names_what_the_method_needs():
    losses = np.full((2, 4, 3), np.nan)
    losses[0, :2], losses[1, 2:] = 1.0, 2.0  # no point is tested in both repetitions
    grid = xr.DataArray(losses, dims=("repetition", "point", "lat"))
    with pytest.raises(LogError, match="corrected_t needs the number of points each model was"):
        grid.cvci.corrected_t(missing="drop")


@pytest.mark.parametrize("window", [1 << 20, 48])
def test_masked_cells_are_found_in_windows(window, monkeypatch):
    monkeypatch.setattr(cvstats.log.log, "WINDOW", window)
    found = read(GRID).masked()
    columns = GRID.transpose("lat", "lon", "model", "point").to_numpy().reshape(24, -1)
    expected = np.flatnonzero(np.isnan(columns).all(axis=1))
    assert sorted(found) == sorted(expected)
    assert len(found) == 3


@pytest.mark.parametrize("road", ["frame", "array"])
def test_labels_have_gaps_of_their_own(road):
    """A point that one label lacks was also dropped from the others, if it has the same name."""
    again = {"repetition": np.repeat(range(2), 30), "point": np.tile(range(30), 2)}
    whole, gap = frame(seed=0, **again), frame(seed=1, **again)
    gap.iloc[3:5] = np.nan
    log = pd.concat({"gap": gap, "whole": whole}, names=["lead"])
    array = by_row(log)
    found = cvstats.holdout(log if road == "frame" else array, by="lead", missing="drop")
    for lead, part in {"gap": gap, "whole": whole}.items():
        one = found.xs(lead) if road == "frame" else found.sel(lead=lead)
        wanted = part.cvci.holdout(missing="drop")
        np.testing.assert_allclose(one["se"], wanted["se"], rtol=1e-12)
    with pytest.raises(NeedsLosses, match=r"each group, .* Load the log first: log.compute\(\)"):
        cvstats.holdout(array.chunk(row=40), by="lead", missing="drop")


@pytest.mark.parametrize("metric", ["auc", "rmse", "pearson"])
def test_points_without_truth_and_points_without_prediction_are_both_left_out(metric):
    truth = np.arange(60) % 2.0
    guess = truth + np.random.default_rng(0).normal(size=60)
    truth[3], guess[7] = np.nan, np.nan
    table = pd.DataFrame({"y": truth, "p": guess}).rename_axis("point")
    log, rest = (cvstats.losses(one, "y", ["p"], metric) for one in (table, table.dropna()))
    assert np.flatnonzero(log["p"].isna()).tolist() == [3, 7]
    pd.testing.assert_frame_equal(log.dropna(), rest)


def test_moments_of_a_log_without_folds_are_those_of_its_sources():
    log = frame(source=POINTS % 4, point=POINTS)
    assert log.cvci.moments().index.names == ["model", "source"]
    folds = frame(fold=POINTS % 3, source=POINTS % 4, point=POINTS)
    assert folds.cvci.moments().index.names == ["model", "fold"]


def test_a_loss_far_below_is_named(monkeypatch):
    losses = pd.Series(np.ones(40), pd.RangeIndex(100, 140, name="point"))
    losses.iloc[33] = np.nan
    monkeypatch.setattr(cvstats.log.log, "BLOCK", 8)
    refuses(r"missing \(NaN\) at point=133\.", losses.cvci.holdout)
