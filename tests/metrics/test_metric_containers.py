"""Logs of metrics in every container, from functions, of several metrics, and on other scales."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.metrics import brier_score_loss, mean_squared_error, roc_auc_score

import cvstats
from cvstats import LogError
from cvstats.core.cautions import Caution


def frame(seed: int = 0, n: int = 90) -> pd.DataFrame:
    """Two repetitions of three folds of unequal sizes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    parts = []
    for repetition in range(2):
        fold = np.minimum(rng.permutation(n) // 28, 2)
        score = y + rng.normal(size=(3, n))
        parts.append(
            pd.DataFrame(
                {
                    "repetition": repetition, "fold": fold, "point": np.arange(n), "y": y,
                    "a": score[0], "b": score[1], "p": 1 / (1 + np.exp(-score[2])),
                    "label": (score[0] > 0.5).astype(int), "w": rng.gamma(2.0, size=n),
                    "half": np.where(np.arange(n) % 2, "x", "z"),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def arrays() -> xr.Dataset:
    """The same over the dimensions repetition and point, the fold a coordinate."""
    data = frame().set_index(["repetition", "point"]).to_xarray()
    return data.set_coords(["fold", "half"])


@pytest.mark.parametrize(
    ("loss", "folds"),
    [("auc", "average"), ("f1", "pool"), ("rmse", "average"), ("kendall", "pool")],
)
def test_an_array_holds_the_same_as_a_frame(loss: str, folds: Any) -> None:
    columns = ["label"] if loss == "f1" else ["a", "b"]
    table = cvstats.losses(frame(), "y", columns, loss, folds=folds, weight="w")
    whole = cvstats.losses(arrays(), "y", columns, loss, folds=folds, weight="w")
    assert whole.attrs == {**table.attrs}
    for name in columns:
        again = whole[name].to_series().reorder_levels(["repetition", "point"])
        expected = table[name].droplevel("fold")
        pd.testing.assert_series_equal(again.sort_index(), expected.sort_index(), rtol=1e-13)
        assert whole[name].attrs["long_name"] == table.attrs["loss"]
    left, right = whole.cvci.wald(), table.cvci.wald()
    np.testing.assert_allclose(left["se"], right["se"], rtol=1e-12)


@pytest.mark.parametrize("loss", ["auc", "rmse", "r2"])
def test_carried_dimensions_have_a_metric_each(loss: str) -> None:
    data = arrays()
    shifts = xr.DataArray([0.0, 1.0, -2.0], dims="lead")
    rng = np.random.default_rng(1)
    noise = xr.DataArray(rng.normal(size=(3, *data["a"].shape)), dims=("lead", *data["a"].dims))
    several = data.assign(a=data["a"] + shifts + noise).transpose("point", ...)
    whole = cvstats.losses(several, "y", "a", loss)
    assert set(whole.dims) == {"lead", "point", "repetition"}
    for at in range(3):
        one = cvstats.losses(several.isel(lead=at), "y", "a", loss)
        xr.testing.assert_allclose(whole.isel(lead=at), one, rtol=1e-13)
    lazy = cvstats.losses(several.chunk({"lead": 1}), "y", "a", loss)
    assert lazy.chunks is not None
    xr.testing.assert_allclose(lazy.compute(), whole, rtol=1e-13)
    np.testing.assert_allclose(
        lazy.cvci.wald()["upper"].compute(), whole.cvci.wald()["upper"], rtol=1e-12
    )
    unknown = (lazy.cvci.wald()["caution"].compute() & Caution.FEW_OF_A_CLASS) > 0
    assert unknown.all() == unknown.any() == (loss == "r2")  # what one point changes


def test_lazy_predictions_come_in_whole_cells_and_with_their_labels() -> None:
    data = arrays().chunk({"point": 30})
    with pytest.raises(LogError, match="several chunks along 'point'.*chunk"):
        cvstats.losses(data, "y", "a", "auc")
    with pytest.raises(LogError, match="needs all labels"):
        cvstats.losses(data.chunk({"point": -1}), "y", "label", "f1")
    lazy = cvstats.losses(data.chunk({"point": -1}), "y", "label", "f1", labels=[0, 1])
    xr.testing.assert_allclose(lazy.compute(), cvstats.losses(arrays(), "y", "label", "f1"))
    lazy = cvstats.losses(data.chunk({"point": -1}), "y", "p", "f1", threshold=0.5)
    xr.testing.assert_allclose(
        lazy.compute(), cvstats.losses(arrays(), "y", "p", "f1", threshold=0.5)
    )


def test_a_frame_of_dask_has_no_whole_cells() -> None:
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(LogError, match="whole cells.*compute"):
        cvstats.losses(dd.from_pandas(frame(), npartitions=2), "y", "a", "auc")


def test_masked_cells_stay_masked() -> None:
    data = arrays()
    several = xr.concat([data["a"], data["a"] * np.nan], "lat").to_dataset(name="a")
    several["y"] = data["y"]
    found = cvstats.losses(several, "y", "a", "auc")
    assert found.isel(lat=1).isnull().all()
    assert not found.isel(lat=0).isnull().any()


# --- several metrics, and functions ---------------------------------------------------------------


def test_several_metrics_are_levels_of_one_log() -> None:
    wanted = ["accuracy", "log_loss", "auc", "f1"]
    log = cvstats.losses(frame(), "y", ["p"], wanted, threshold=0.5, folds="average")
    assert log.index.names == ["metric", "repetition", "fold", "point"]
    assert log.attrs["metric"] == wanted
    table = log.cvci.wald(by="metric")
    for name in wanted:
        own = {"folds": "average"} if name in ("auc", "f1") else {}
        own |= {"threshold": 0.5} if name in ("accuracy", "f1") else {}
        one = cvstats.losses(frame(), "y", ["p"], name, **own).cvci.wald()
        np.testing.assert_allclose(
            table.loc[name, ["estimate", "lower", "upper"]].astype(float).to_numpy().ravel(),
            one[["estimate", "lower", "upper"]].to_numpy().ravel(), rtol=1e-12,
        )  # fmt: skip
    whole = cvstats.losses(arrays(), "y", ["p"], ["auc", "brier"])
    assert whole.cvci.wald().sizes == {"model": 1, "metric": 2}
    with pytest.raises(LogError, match="none of loss=.* uses beta="):
        cvstats.losses(frame(), "y", ["p"], ["auc", "brier"], beta=2)
    with pytest.raises(LogError, match="contains a loss twice"):
        cvstats.losses(frame(), "y", ["p"], ["auc", "auc"])


def test_a_function_with_weights_is_differentiated() -> None:
    def f1(truth: Any, prediction: Any, weight: Any) -> float:
        return 2 * (weight * truth) @ prediction / (weight @ truth + weight @ prediction)

    own = cvstats.losses(frame(), "y", ["label"], metric=f1, weight="w")
    named = cvstats.losses(frame(), "y", ["label"], "f1", folds="average", weight="w")
    assert own.attrs["loss"] == "-f1"
    np.testing.assert_allclose(1 + own, named, atol=1e-6)
    error = cvstats.losses(frame(n=30), "y", ["label"], metric=f1, higher_is_better=False)
    assert error.attrs["orientation"] == "error"
    of_weights, of_points = (  # the weights have the mean 1
        cvstats.losses(frame(n=30), "y", ["label"], metric=function, weight="w")
        for function in (
            lambda t, p, w: w @ (t == p) / w.sum(),
            lambda t, p, w: np.mean(w * (t == p)),
        )
    )
    np.testing.assert_allclose(of_points, of_weights, atol=1e-6)


def test_a_function_without_weights_leaves_points_out() -> None:
    one = frame().query("repetition == 0")
    own = cvstats.losses(one, "y", ["a"], metric=roc_auc_score)
    named = cvstats.losses(one, "y", ["a"], "auc")
    means = own.groupby(level="fold").mean() + 1
    np.testing.assert_allclose(means, named.groupby(level="fold").mean(), atol=1e-12)
    ratio = own.cvci.wald()["se"].item() / named.cvci.wald()["se"].item()
    assert 0.97 < ratio < 1.08

    def plain(truth: Any, prediction: Any) -> float:
        return float(np.mean(truth == prediction))

    narrow = one.assign(w=1 + one["point"] % 2 / 2)
    mean, exact = (cvstats.losses(one, "y", ["label"], **of).cvci.wald()["se"].item()
                   for of in ({"metric": plain}, {"loss": "accuracy"}))  # fmt: skip
    assert mean == pytest.approx(exact, rel=1e-12)
    with pytest.raises(LogError, match="the function does not accept weights"):
        cvstats.losses(narrow, "y", ["label"], metric=plain, weight="w")

    by_keyword, exact_weights = (
        cvstats.losses(narrow, "y", ["a"], weight="w", **of)
        for of in ({"metric": roc_auc_score}, {"loss": "auc"})
    )
    np.testing.assert_allclose(  # without the correction for few points of a class
        by_keyword.groupby(level="fold").mean() + 1, exact_weights.groupby(level="fold").mean()
    )
    ratio = by_keyword.cvci.wald()["se"].item() / exact_weights.cvci.wald()["se"].item()
    assert 0.93 < ratio < 1.01

    def unused(truth: Any, prediction: Any, weight: Any) -> float:
        return plain(truth, prediction)

    def labeled(truth: Any, prediction: Any, labels: Any = None) -> float:
        assert labels is None
        return plain(truth, prediction)

    def optioned(truth: Any, prediction: Any, tolerance: float = 0.5) -> float:
        return float(np.mean(np.abs(truth - prediction) < tolerance))

    for function in (
        unused,
        labeled,
        optioned,
        lambda truth, prediction, *_: plain(truth, prediction),
    ):
        own = cvstats.losses(one, "y", ["label"], metric=function)
        assert own.cvci.wald()["se"].item() == pytest.approx(exact, rel=1e-12)
    with pytest.raises(LogError, match="the function does not change with its weights"):
        cvstats.losses(narrow, "y", ["label"], metric=unused, weight="w")
    same = narrow.assign(label=narrow["y"])
    assert cvstats.losses(same, "y", ["label"], metric=unused, weight="w").eq(-1).all(axis=None)

    def neg_error(truth: Any, prediction: Any) -> float:
        return -float(mean_squared_error(truth, prediction))

    score = cvstats.losses(one, "y", ["label"], metric=neg_error)
    with pytest.raises(LogError, match="mean_squared_error has the name of an error"):
        cvstats.losses(one, "y", ["label"], metric=partial(mean_squared_error, sample_weight=None))
    for function in (mean_squared_error, brier_score_loss):
        with pytest.raises(LogError, match=f"{function.__name__} has the name of an error"):
            cvstats.losses(one, "y", ["label"], metric=function)
        error = cvstats.losses(one, "y", ["label"], metric=function, higher_is_better=False)
        np.testing.assert_allclose(error, score, atol=1e-12)

    def broken(truth: Any, prediction: Any) -> Any:
        return [1, 2]

    with pytest.raises(LogError, match="not a finite number"):
        cvstats.losses(frame(), "y", ["label"], metric=broken)


# --- scales and scores ----------------------------------------------------------------------------


def test_limits_on_another_scale() -> None:
    log = cvstats.losses(frame(), "y", ["a", "b"], "auc")
    plain, logit = log.cvci.wald(), log.cvci.wald(scale="logit")
    e, s = plain["estimate"], plain["se"]
    z = 1.959963984540054
    for side, sign in (("lower", -1), ("upper", 1)):
        at = np.log(e / (1 - e)) + sign * z * s / (e * (1 - e))
        np.testing.assert_allclose(logit[side], 1 / (1 + np.exp(-at)), rtol=1e-13)
    assert logit.attrs["scale"] == "logit"
    pd.testing.assert_series_equal(plain["se"], logit["se"])
    rmse = cvstats.losses(frame(), "y", ["a"], "rmse")
    plain, log_scale = rmse.cvci.wald(), rmse.cvci.wald(scale="log")
    e, s = plain["estimate"], plain["se"]
    np.testing.assert_allclose(log_scale["upper"], e * np.exp(z * s / e), rtol=1e-13)
    one = log.cvci.wald(scale="logit", alternative="less")
    assert (one["lower"] == 0).all()
    groups = cvstats.losses(frame(), "y", ["a"], "auc", by="half").cvci.wald(
        by="half", scale="logit"
    )
    assert (groups["upper"] < 1).all()


@pytest.mark.parametrize("loss", ["pearson", "matthews"])
def test_limits_on_the_scale_of_fisher(loss: str) -> None:
    column = "label" if loss == "matthews" else "a"
    log = cvstats.losses(frame(), "y", [column], loss)
    plain, found = log.cvci.wald(), log.cvci.wald(scale="fisher-z")
    e, s = plain["estimate"], plain["se"]
    z = 1.959963984540054
    for side, sign in (("lower", -1), ("upper", 1)):
        at = np.arctanh(e) + sign * z * s / (1 - e**2)
        np.testing.assert_allclose(found[side], np.tanh(at), rtol=1e-13)
    score = cvstats.as_scores(found)
    np.testing.assert_allclose(score["lower"], -found["upper"])
    assert found.attrs["scale"] == "fisher-z"


def test_a_scale_needs_its_range() -> None:
    with pytest.raises(LogError, match="scale='fisher-z' requires a correlation"):
        cvstats.losses(frame(), "y", ["a"], "auc").cvci.wald(scale="fisher-z")
    two = cvstats.losses(frame(), "y", ["a", "b"], "pearson")
    with pytest.raises(LogError, match="scale='fisher-z' requires a correlation"):
        two.cvci.difference().cvci.wald(scale="fisher-z")
    best = cvstats.losses(frame().assign(a=lambda t: t["y"]), "y", ["a"], "pearson")
    found = best.cvci.wald(scale="fisher-z")
    assert found[["lower", "upper"]].isna().all(axis=None)
    assert "end of scale" in found["caution"].item()
    large = frame().assign(a=10.0)
    with pytest.raises(LogError, match="scale='logit' requires estimates between 0 and 1"):
        cvstats.losses(large, "y", ["a"], "squared_error").cvci.wald(scale="logit")
    with pytest.raises(LogError, match="matthews can be negative.*fisher-z"):
        cvstats.losses(frame(), "y", ["label"], "matthews").cvci.wald(scale="log")
    best = frame().assign(a=frame()["y"])
    found = cvstats.losses(best, "y", ["a"], "auc").cvci.wald(scale="logit")
    assert found[["lower", "upper"]].isna().all(axis=None)
    assert "end of scale" in found["caution"].item()


def test_a_file_of_predictions_is_read_as_a_metric() -> None:
    one = frame().query("repetition == 0")
    expected = cvstats.losses(one, "y", "p", "auc").cvci.wald()
    read = cvstats.read_log(caret(), loss="auc")
    assert (read.attrs["metric"], read.attrs["positive"]) == ("auc", "well")
    np.testing.assert_allclose(read.cvci.wald()["se"], expected["se"], rtol=1e-12)
    label = cvstats.losses(one, "y", "p", "f1", threshold=0.5).cvci.wald()
    for options in ({"threshold": 0.5, "positive": "well"}, {"positive": "well"}):
        again = cvstats.read_log(caret(), loss="f1", **options)
        np.testing.assert_allclose(again.cvci.wald()["estimate"], label["estimate"], rtol=1e-12)


def caret() -> pd.DataFrame:
    """Predictions as caret writes them, of labels and of probabilities."""
    one = frame().query("repetition == 0")
    truth = np.where(one["y"] == 1, "well", "ill")
    return pd.DataFrame(
        {
            "rowIndex": one["point"], "obs": truth, "pred": np.where(one["p"] > 0.5, "well", "ill"),
            "ill": 1 - one["p"], "well": one["p"], "Resample": one["fold"].map("Fold{}".format),
        }
    )  # fmt: skip


def test_a_file_is_read_as_several_metrics() -> None:
    wanted = ["accuracy", "log_loss", "auc", "f1"]
    log = cvstats.read_log(caret(), loss=wanted, positive="well", clip=1e-6)
    assert log.index.names[0] == "metric"
    assert log.attrs["metric"] == wanted
    table = log.cvci.wald(by="metric")
    for name in wanted:
        own: dict[str, Any] = {} if name == "accuracy" else {"positive": "well"}
        own |= {"clip": 1e-6} if name == "log_loss" else {}
        one = cvstats.read_log(caret(), loss=name, **own).cvci.wald()
        np.testing.assert_allclose(
            table.loc[name, ["estimate", "se"]].to_numpy(float).ravel(),
            one[["estimate", "se"]].to_numpy().ravel(), rtol=1e-12,
        )  # fmt: skip
    label = cvstats.read_log(caret(), loss=["accuracy", "f1"], threshold=0.5, positive="well")
    np.testing.assert_allclose(label.xs("f1"), log.xs("f1"))
    assert cvstats.read_log(caret(), loss=["auc"]).index.names[0] == "metric"
    for refused, why in (
        ({"loss": ["auc", "auc"]}, "contains a loss twice"),
        ({"loss": ["auc", "brier"], "threshold": 0.5}, "none of loss=.* uses threshold="),
        ({"loss": ["auc", "price"]}, "names several columns"),
    ):
        with pytest.raises(LogError, match=why):
            cvstats.read_log(caret(), **refused)


def test_predictions_that_were_read_know_their_columns() -> None:
    predictions = cvstats.read_predictions(caret())
    wanted = ["accuracy", "auc", "average_precision", "f1", "brier"]
    log = cvstats.losses(predictions, loss=wanted, positive="well")
    for name in wanted:
        own = {"positive": "well"} if name == "f1" else {}
        read = cvstats.read_log(caret(), loss=name, **own)
        np.testing.assert_allclose(log.xs(name, level="metric"), read, rtol=1e-12)
        np.testing.assert_allclose(cvstats.losses(predictions, loss=name, **own), read, rtol=1e-12)
    label = cvstats.losses(predictions, loss="f1", threshold=0.5, positive="well")
    np.testing.assert_allclose(label, log.xs("f1", level="metric"))
    ill = cvstats.losses(predictions, loss="auc", positive="ill")
    np.testing.assert_allclose(ill.mean(), log.xs("auc", level="metric").mean())
    cut = {"threshold": 0.3, "positive": "ill"}
    for loss, options in (("auc", {}), ("brier", {}), ("f1", cut)):
        expected = cvstats.losses(predictions, loss=loss, **options)
        for names in (predictions.attrs["models"], ["model"], {"caret": "y_pred"}):
            named = cvstats.losses(predictions, prediction=names, loss=loss, **options)
            assert list(named) == list(names)
            np.testing.assert_array_equal(named.squeeze(), expected)
        alone = cvstats.losses(predictions, prediction="model", loss=loss, **options)
        assert alone.name == "model"
    column = cvstats.losses(predictions, prediction="prob_ill", loss="auc", positive="ill")
    np.testing.assert_array_equal(column, ill)


@pytest.mark.parametrize(
    ("chunks", "as_array"), [(None, False), (None, True), ({"metric": 1}, True)]
)
def test_arrays_without_attrs_are_named_after_their_labels(chunks: Any, as_array: bool) -> None:
    """`DataFrame.to_xarray` drops attrs; the labels of ``metric`` remain."""
    columns = ["repetition", "fold", "point", "y", "a", "b"]
    table = cvstats.losses(frame()[columns], "y", ["a", "b"], ["rmse", "r2"])
    array: Any = table.to_xarray()
    array = array.to_dataarray("model") if as_array else array
    array = array if chunks is None else array.chunk(chunks)
    assert array.attrs == {}
    assert array.cvci.wald()["metric"].values.tolist() == ["rmse", "r2"]
    assert array.sel(metric="rmse").cvci.wald().attrs["loss"] == "rmse"
    if chunks is None:
        rmse, r2 = array.cvci.summary().values()
        assert "has a lower RMSE than" in str(rmse) or "The RMSE of" in str(rmse)
        assert "mean R2 loss" in str(r2)
        assert r2.advice["metric not described"] == (
            "Copy the attrs, which pandas' to_xarray drops: array.attrs = frame.attrs."
        )
        assert rmse.cautions["metric not described"].startswith("The losses are named rmse, but")
        described = array.assign_attrs(table.attrs).cvci.summary()
        assert "metric not described" not in described["r2"].cautions
        assert " R2 " in str(described["r2"])
        assert "R2 loss" not in str(described["r2"])
    assert array.drop_vars("metric").cvci.wald().attrs["loss"] == "loss"


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_the_auc_of_several_classes_is_computed_lazily(how: str) -> None:
    """It was refused, as if there were one score for three classes."""
    pytest.importorskip("dask")
    rng = np.random.default_rng(2)
    rows = {name: ("point", rng.random(90)) for name in ("p0", "p1", "p2")}
    table = xr.Dataset(
        {**rows, "y": ("point", np.arange(90) % 3)}, {"fold": ("point", np.arange(90) // 18)}
    )
    options = {"truth": "y", "prediction": {"m": ["p0", "p1", "p2"]}, "classes": [0, 1, 2]}
    found, wanted = (
        cvstats.losses(one, loss="auc", multi_class=how, **options).cvci.interval().compute()
        for one in (table.chunk(), table)
    )
    xr.testing.assert_allclose(found[list(wanted)], wanted, rtol=1e-12)
