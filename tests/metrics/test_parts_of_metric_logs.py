"""A part of a log of pseudo-losses is refused: the mean over it is not the metric of that part."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats
from cvstats import LogError

PART = "this is a part of a log of"


def make_predictions(n=200, folds=5):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    columns = {"y_true": y, "a": y * 0.5 + rng.normal(size=n), "b": rng.normal(size=n)}
    return pd.DataFrame({"fold": np.arange(n) % folds, "point": np.arange(n), **columns})


def make_log(loss="auc", **options):
    return cvstats.losses(make_predictions(), prediction=["a", "b"], loss=loss, **options)


CUTS = {
    "drop": lambda log: log.drop(3, level="point"),
    "mask": lambda log: log[log.index.get_level_values("point") > 50],
    "column": lambda log: log["a"].iloc[5:],
    "float32": lambda log: log.astype("float32").iloc[5:],
}


@pytest.mark.parametrize("folds", ["pool", "average"])
@pytest.mark.parametrize("loss", ["auc", "rmse", "r2"])
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_rows_that_are_gone(cut, loss, folds):
    part = cut(make_log(loss, folds=folds))
    with pytest.raises(LogError, match=f"{PART} {loss}.*loss='{loss}'"):
        part.cvci.wald()


@pytest.mark.parametrize(
    "ask",
    [
        lambda part: part.cvci.interval(),
        lambda part: part.cvci.compare(),
        lambda part: part.cvci.summary(),
        lambda part: part.cvci.clustered(by="fold"),
        lambda part: cvstats.Moments.of_log(part).wald(),
    ],
)
def test_every_road_refuses(ask):
    with pytest.raises(LogError, match=PART):
        ask(make_log(folds="average").iloc[5:])


def test_gaps_left_out():
    log = make_log()["a"]
    log = log.where(log.index.get_level_values("point") > 50)
    with pytest.raises(LogError, match=f"{PART}.*missing='drop'"):
        log.cvci.wald(missing="drop")


def test_models_that_miss_different_points():
    predictions = make_predictions().astype({"b": float})
    predictions.loc[3, "b"] = np.nan
    log = cvstats.losses(predictions, prediction=["a", "b"], loss="auc")
    with pytest.raises(LogError, match=PART):  # the AUC of a is that of all points
        log.cvci.wald(missing="drop")
    alone = cvstats.losses(predictions.drop(index=3), prediction="b", loss="auc").cvci.wald()
    for left in (log["b"].cvci.wald(missing="drop"), log["b"].dropna().cvci.wald()):
        assert left["estimate"].item() == pytest.approx(alone["estimate"].item(), abs=1e-12)


def test_whole_cells_and_models_may_be_chosen():
    log = make_log(folds="average")
    whole = log.cvci.wald()
    for chosen in (log[["a"]], log["a"], log.rename(columns={"a": "A"})[["A"]]):
        pd.testing.assert_series_equal(
            chosen.cvci.wald().iloc[0], whole.loc["a"], check_names=False
        )
    folds = log[log.index.get_level_values("fold") > 1]
    own = make_predictions().query("fold > 1")
    expected = cvstats.losses(own, prediction=["a", "b"], loss="auc", folds="average").cvci.wald()
    pd.testing.assert_frame_equal(folds.cvci.wald(), expected)
    assert len(log.xs(0, level="fold").cvci.holdout()) == 2
    sources = make_predictions().rename(columns={"fold": "source"})
    of_sources = cvstats.losses(sources, prediction=["a", "b"], loss="auc", by="source")
    assert len(of_sources.cvci.wald(by="source")) == 10


@pytest.mark.parametrize("lazy", [False, True])
def test_arrays(lazy):
    rng = np.random.default_rng(1)
    both = {name: (("cell", "point"), rng.normal(size=(3, 50))) for name in ("y_true", "m")}
    predictions = xr.Dataset(both, coords={"point": np.arange(50)})
    predictions = predictions.chunk({"cell": 1}) if lazy else predictions
    log = cvstats.losses(predictions, prediction="m", loss="rmse")
    with pytest.raises(LogError, match=r"40 of 50 points"):
        log.isel(point=slice(10, None)).cvci.holdout()
    if not lazy:  # which losses of a lazy array are missing is not known before it is computed
        with pytest.raises(LogError, match=PART):
            log.where(log.point > 3).cvci.holdout(missing="drop")
        with pytest.raises(LogError, match=PART):
            log.where(log > log.min()).cvci.holdout(missing="drop")
    assert log.cvci.holdout().sizes["cell"] == 3
    assert np.isfinite(float(log.isel(cell=0).cvci.holdout()["se"]))


def test_batches_of_a_log_make_the_whole():
    log = make_log("rmse")
    one, two = (cvstats.Moments.of_log(part) for part in (log.iloc[:90], log.iloc[90:]))
    whole, numbers = log.cvci.wald(), ["estimate", "lower", "upper", "se"]  # tails need losses
    pd.testing.assert_frame_equal((one + two).wald()[numbers], whole[numbers])
    with pytest.raises(LogError, match=r"90 of 200"):
        one.wald()


def test_batches_of_several_data_sets_make_the_whole():
    table = pd.concat(
        [make_predictions().assign(dataset=name, a=at) for at, name in enumerate("xy")]
    )
    log = cvstats.losses(table, prediction=["a", "b"], loss="rmse", by="dataset")
    late = log.index.get_level_values("point") > 90
    one, two = (cvstats.Moments.of_log(part, by="dataset") for part in (log[late], log[~late]))
    whole, numbers = log.cvci.wald(by="dataset"), ["estimate", "lower", "upper", "se"]
    pd.testing.assert_frame_equal((one + two).wald(by="dataset")[numbers], whole[numbers])


@pytest.mark.parametrize("loss", ["auc", "rmse"])
def test_a_missing_prediction_is_named_as_such(loss):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"y": rng.integers(0, 2, 60), "a": rng.random(60)},
        pd.MultiIndex.from_arrays([np.arange(60) % 3, np.arange(60)], names=["fold", "point"]),
    )
    table.iloc[4, 1] = np.nan
    options = {"positive": 1} if loss == "auc" else {}
    losses = cvstats.losses(table, truth="y", prediction=["a"], loss=loss, **options)
    with pytest.raises(
        LogError, match=r"1 of \d+ points.* lack a prediction, the truth or the event"
    ):
        losses.cvci.interval()
    whole = cvstats.losses(table.dropna(), truth="y", prediction=["a"], loss=loss, **options)
    limits = ["estimate", "lower", "upper"]
    dropped = losses.cvci.interval(missing="drop")
    pd.testing.assert_frame_equal(dropped[limits], whole.cvci.interval()[limits])


def test_groups_by_two_levels_are_not_advised_to_be_made_anew():
    """The log was made by both levels, but results are by one."""
    table = make_predictions().assign(sex=np.arange(200) % 2, site=np.arange(200) % 3)
    log = cvstats.losses(table.drop(columns="fold"), "y_true", ["a"], "auc", by=["sex", "site"])
    with pytest.raises(LogError, match=r"Invalid level \['sex', 'site'\]. Expected"):
        log.cvci.interval(by=["sex", "site"])
    assert list(log.cvci.interval(by="site").index.unique("site")) == [0, 1, 2]
