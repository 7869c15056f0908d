"""RMSE is compared where it is linear, and pseudo-losses are examined as losses are."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cvstats


def make_predictions(seed=0, n=200, outliers=()):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    models = {name: y + rng.normal(size=n) * 0.5 for name in "abc"}
    for at, name in enumerate(outliers):
        models[name][at] += 200 + 5 * rng.normal()
    folds = np.arange(n) % 5
    index = {"fold": folds, "point": np.arange(n), "source": np.arange(n) // 10}
    return pd.DataFrame({**index, "y_true": y, "reference": rng.normal(size=n) * 0.1, **models})


def make_log(loss, predictions=None, **options):
    predictions = make_predictions() if predictions is None else predictions
    return cvstats.losses(predictions, prediction=list("abc"), loss=loss, folds="pool", **options)


@pytest.mark.parametrize("method", ["wald", "clustered", "naive"])
def test_the_test_is_that_of_the_mean_squared_errors(method):
    predictions = make_predictions(outliers="a")
    roots = make_log("rmse", predictions).cvci.compare(method=method, adjust=None)
    squares = cvstats.losses(predictions, prediction=list("abc")).cvci.compare(
        method=method, adjust=None
    )
    np.testing.assert_allclose(roots["p_value"], squares["p_value"], rtol=1e-9)
    each = make_log("rmse", predictions).cvci.wald()["estimate"]
    total = np.array([each[a] + each[b] for a, b in (("a", "b"), ("a", "c"), ("b", "c"))])
    for name in ("difference", "lower", "upper"):
        np.testing.assert_allclose(roots[name] * total, squares[name], rtol=1e-9)
    assert ((roots["lower"] > 0) | (roots["upper"] < 0)).eq(roots["p_value"] < 0.05).all()


def test_one_test_on_every_road():
    log = make_log("rmse", make_predictions(outliers="a"))
    expected = log.cvci.compare()
    streamed = cvstats.Moments.of_log(log, pairs=True).compare()
    numbers = ["difference", "lower", "upper", "p_value"]
    pd.testing.assert_frame_equal(streamed[numbers], expected[numbers], rtol=1e-9)
    float32 = log.astype("float32").cvci.compare()
    pd.testing.assert_frame_equal(float32[numbers], expected[numbers], rtol=1e-3, atol=1e-5)
    other = log["a"].cvci.compare(log["b"])
    np.testing.assert_allclose(
        other[numbers].iloc[0], log[["a", "b"]].cvci.compare()[numbers].iloc[0], rtol=1e-9
    )
    pytest.importorskip("dask")
    array = log.droplevel(["fold", "source"]).to_xarray().assign_attrs(log.attrs)
    whole, lazy = array.cvci.compare(), array.chunk().cvci.compare().compute()
    np.testing.assert_allclose(lazy["p_value"], whole["p_value"], rtol=1e-9)
    np.testing.assert_allclose(
        whole["p_value"].to_numpy().reshape(-1),
        log.droplevel(["fold", "source"]).cvci.compare()["p_value"],
        rtol=1e-9,
    )


@pytest.mark.parametrize("loss", ["rmse", "r2", "skill", "relative_error"])
def test_equal_models_with_an_outlier_are_not_different_in_silence(loss):
    options = {"reference": "reference"} if loss in ("skill", "relative_error") else {}
    silent = wrong = 0
    for seed in range(6):
        predictions = make_predictions(seed, outliers="ab")
        log = cvstats.losses(predictions, prediction=["a", "b"], loss=loss, **options)
        row = log.cvci.compare().iloc[0]
        silent += row["caution"] == ""
        wrong += loss == "rmse" and row["p_value"] < 0.05
    assert silent == 0
    assert wrong == 0


def test_an_outlier_in_the_truth_is_in_both_means_of_a_ratio():
    predictions = make_predictions()
    predictions.loc[5, "y_true"] += 300
    for loss in ("r2", "wmape"):
        table = make_log(loss, predictions).cvci.wald()
        assert table["caution"].str.contains("heavy tails").all()
    predictions = predictions.drop(columns="source")
    for folds in ("average", "pool"):  # a metric of numbers that is no ratio, and one of classes
        roots = cvstats.losses(predictions, prediction=["a"], loss="rmse", folds=folds)
        assert roots.cvci.wald()["caution"].item() == "skewed, heavy tails"
    rare = predictions.assign(y_true=predictions["y_true"].rank() > 195)
    scores = cvstats.losses(rare, prediction=["a"], loss="auc", folds="pool")
    assert scores.cvci.wald()["caution"].item() == "few of a class"


RATIOS = {
    "r2": "squared_error",
    "skill": "squared_error",
    "relative_error": "squared_error",
    "wmape": "absolute_error",
}


def ratio_log(loss, outlier, dropped=()):
    """Two equal models, and a truth that one point has far from both."""
    predictions = make_predictions(seed=1).drop(columns=["c", *dropped])
    predictions.loc[5, "y_true"] += outlier
    options = {"reference": "reference"} if loss in ("skill", "relative_error") else {}
    if not options:
        predictions = predictions.drop(columns="reference")
    return cvstats.losses(predictions, prediction=["a", "b"], loss=loss, **options)


@pytest.mark.parametrize("by", [None, "half"])
@pytest.mark.parametrize("pointed", [True, False])
def test_repetitions_and_groups_do_not_hide_heavy_parts_of_a_ratio(pointed, by):
    """150 points are not 300 after a second repetition, nor in each of their two halves."""
    rng, n = np.random.default_rng(1), 150
    truth = np.exp(0.75 * rng.normal(size=n))

    def rows(repetition, half):
        return pd.DataFrame({
            "repetition": repetition, "half": half, "fold": rng.permutation(n) % 5,
            "point": np.arange(n) + n * half, "y_true": truth,
            "a": 0.5 * truth + 0.3 * rng.normal(size=n),
        })  # fmt: skip

    levels = ["repetition", "half", "fold", "point"][: 4 if pointed else 3]
    again = [rows(repetition, 0) for repetition in (0, 1)]
    if by is not None:
        again = [rows(0, half) for half in (0, 1)]
    table = pd.concat(again).set_index(levels)
    log = cvstats.losses(table, prediction=["a"], loss="wmape", **({"by": by} if by else {}))
    assert log.attrs.get("heavy_tails") is True


@pytest.mark.parametrize("loss", ["r2", "wmape", "auc"])
@pytest.mark.parametrize("form", ["two logs", "two datasets", "difference", "cells"])
def test_two_lazy_logs_are_tested_as_in_memory(loss, form):
    """An outlier of the truth made the limits of two lazy R2 a third narrower."""
    pytest.importorskip("dask")
    rng, n = np.random.default_rng(0), 60
    truth = rng.normal(size=n)
    truth[5] += 20 * (loss != "auc")
    coords = {"point": ("row", np.arange(n)), "fold": ("row", np.arange(n) % 3)}
    data = xr.Dataset({"y": ("row", (truth > 0.4) * 1 if loss == "auc" else truth)}, coords)
    for name, spread in (("a", 0.1), ("b", 0.3), ("c", 1.0)):
        shape = (n, 2) if form == "cells" else (n,)
        own = data["y"] + spread * xr.DataArray(
            rng.normal(size=shape), dims=("row", "lat")[: len(shape)]
        )
        data[name] = own
    log = cvstats.losses(data, "y", ["a", "b", "c"], loss)
    one, two = {
        "two logs": (log["a"], log["c"]),
        "two datasets": (log[["a", "b"]], log[["b", "c"]].rename({"b": "a", "c": "b"})),
        "difference": (cvstats.difference(log, reference="c"), 0),
        "cells": (log["a"], log["c"]),
    }[form]
    wanted = cvstats.compare(one, two)
    other = two if form == "difference" else two.chunk(row=25)
    found = cvstats.compare(one.chunk(row=25), other).compute()
    for name in ("difference", "lower", "upper", "se", "p_value"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-8, err_msg=name)
    np.testing.assert_array_equal(cvstats.cautions(found), cvstats.cautions(wanted))


@pytest.mark.parametrize("loss", RATIOS)
@pytest.mark.parametrize("dropped", [[], ["source"], ["fold", "source"]])
def test_differences_of_ratios_are_tested_above_the_line(loss, dropped):
    """One outlier of the truth made R2 of two equal models different (p < 1e-9)."""
    for outlier in (0, 400):
        method = "holdout" if "fold" in dropped else "wald"
        found, wanted = (
            ratio_log(name, outlier, dropped).cvci.compare(method=method).iloc[0]
            for name in (loss, RATIOS[loss])
        )
        assert found["p_value"] == pytest.approx(wanted["p_value"], rel=1e-8)
        assert ((found["lower"] > 0) or (found["upper"] < 0)) == (found["p_value"] < 0.05)
    assert found["p_value"] > 0.05
    assert "heavy tails" in found["caution"]


def test_ratios_of_groups_clusters_and_chunks():
    numbers = ["difference", "lower", "upper", "p_value"]
    log = ratio_log("r2", 400)
    grouped = log.cvci.compare(method="clustered").iloc[0]
    assert grouped["p_value"] > 0.05
    expected = log.cvci.compare()
    streamed = cvstats.Moments.of_log(log, pairs=True).compare()
    pd.testing.assert_frame_equal(streamed[numbers], expected[numbers], rtol=1e-9)
    pytest.importorskip("dask")
    log = ratio_log("r2", 400, ["fold", "source"])
    array = log.to_xarray().to_array("model").assign_attrs(log.attrs)
    lazy = array.chunk({"point": 50}).cvci.compare().compute()
    wanted = log.cvci.compare()
    for name in numbers:
        np.testing.assert_allclose(lazy[name].to_numpy().ravel(), wanted[name], rtol=1e-9)
