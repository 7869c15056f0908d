"""From predictions to losses, in every container, for one model or several."""

import re

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal

import cvstats
from cvstats.errors import LogError

MODELS = ["ridge", "forest"]


@pytest.fixture
def frame():
    """Predictions of two models for eight points in four folds, rows in no order."""
    rng = np.random.default_rng(5)
    index = pd.MultiIndex.from_arrays(
        [[0, 1, 2, 3] * 2, rng.permutation(list("abcdefgh"))], names=["fold", "point"]
    )
    columns = {name: rng.normal(size=8) for name in ["y_true", "y_pred", *MODELS]}
    frame = pd.DataFrame(columns, index=index)
    frame.attrs["title"] = "made up"
    return frame


# --- losses: one model or several -----------------------------------------------------------


def test_models_with_a_probability_for_each_class(frame):
    p = np.random.default_rng(1).dirichlet([1, 1, 1], (2, 8))
    names = [[f"{model}_{label}" for label in "abc"] for model in MODELS]
    columns = {n: p[i, :, j] for i, row in enumerate(names) for j, n in enumerate(row)}
    wide = pd.DataFrame({"y_true": list("abcabcab"), **columns}, index=frame.index)
    options = {"loss": "brier", "classes": list("abc")}
    got = cvstats.losses(wide, prediction=dict(zip(MODELS, names, strict=True)), **options)
    hot = np.array([[label == y for label in "abc"] for y in wide["y_true"]])
    np.testing.assert_allclose(got, ((p - hot) ** 2).sum(axis=2).T)
    assert got.attrs["brier"] == "multi-class"
    one = cvstats.losses(wide, prediction=names[1], **options)
    pd.testing.assert_series_equal(one, got["forest"].rename("model"))


# --- losses: xarray -------------------------------------------------------------------------


@pytest.fixture
def dataset():
    rng = np.random.default_rng(6)
    dims = ("point", "lat")
    return xr.Dataset(
        {
            "y_true": (dims, rng.normal(size=(6, 3)), {"units": "K"}),
            **{name: (dims, rng.normal(size=(6, 3))) for name in ["y_pred", *MODELS]},
        },
        coords={"fold": ("point", list("xyzxyz")), "point": np.arange(6), "lat": [10.0, 20, 30]},
        attrs={"title": "made up"},
    )


@pytest.mark.parametrize("loss", ["squared_error", lambda y, guess: abs(y - guess)])
def test_a_dataset_in_chunks_stays_lazy(dataset, loss):
    eager = cvstats.losses(dataset, prediction=MODELS, loss=loss)
    dim = next(iter(dataset.sizes))
    chunked = dataset.chunk({dim: 2})
    chunked["y_true"] = dataset["y_true"].chunk({dim: 3})  # other chunks than the predictions
    lazy = cvstats.losses(chunked, prediction=MODELS, loss=loss)
    assert all(array.chunks for array in lazy.values())
    xr.testing.assert_identical(lazy.compute(), eager)
    wrong = chunked.assign(y_true=chunked["y_true"].astype(str))
    with pytest.raises(LogError, match="is not a number"):
        cvstats.losses(wrong, prediction=MODELS, loss="squared_error").compute()


def test_a_model_without_errors_has_limits_in_every_container():
    """Arrays did not keep the name of the loss, so that it had no limits there."""
    right = np.arange(40.0) % 2
    frame = pd.DataFrame(
        {"y": right, "a": right, "b": np.roll(right, 1)}, pd.RangeIndex(40, name="point")
    )
    names, data = ["a", "b"], frame.to_xarray()
    expected = cvstats.losses(frame, truth="y", prediction=names, loss="zero_one").cvci.interval()
    for table in (data, data.chunk(), data.chunk(point=10)):
        log = cvstats.losses(table, truth="y", prediction=names, loss="zero_one")
        for losses in (log, log["a"], log.to_dataarray("model")):
            found = losses.cvci.interval()
            assert found.attrs["loss"] == "zero_one"
            upper = np.atleast_1d(found["upper"].to_numpy())
            assert upper[0] == pytest.approx(expected["upper"].iloc[0], rel=1e-12)


def test_truth_is_broadcast_and_nothing_depends_on_the_order_of_dimensions(dataset):
    truth = dataset["y_true"].isel(lat=0, drop=True)
    got = cvstats.losses(dataset.assign(y_true=truth))
    assert got.dims == ("point", "lat")
    xr.testing.assert_allclose(got, (dataset["y_pred"] - truth) ** 2)
    turned = cvstats.losses(dataset.assign(y_true=dataset["y_true"].transpose()))
    xr.testing.assert_equal(turned, cvstats.losses(dataset))
    known = dataset.assign_coords(y_true=truth)  # the truth may be a coordinate
    xr.testing.assert_allclose(cvstats.losses(known).drop_vars("y_true"), got)


def test_folds_along_a_dimension_of_the_truth_are_kept():
    folds = [[0, 1, 0], [1, 1, 0]]
    data = xr.Dataset(
        {"y_true": (("repetition", "point"), np.eye(2, 3)), "y_pred": ("point", [1.0, 2.0, 3.0])},
        coords={"fold": (("repetition", "point"), folds)},
    )
    got = cvstats.losses(data).transpose("repetition", "point")
    np.testing.assert_array_equal(got["fold"], folds)
    np.testing.assert_array_equal(got, (np.eye(2, 3) - [1, 2, 3]) ** 2)
    assert got.cvci.wald().attrs["n_folds"] == 2


def test_a_stacked_dimension_keeps_its_levels(frame):
    stacked = xr.Dataset.from_dataframe(frame).stack(run=["fold", "point"]).dropna("run")
    got = cvstats.losses(stacked)
    assert got.indexes["run"].names == ["fold", "point"]
    np.testing.assert_allclose(
        got.cvci.wald()["se"], cvstats.losses(frame).cvci.wald()["se"], rtol=1e-12
    )


def test_labels_and_classes_in_a_dataset():
    labels = np.array(["a", "b", None, "a"], dtype=object)
    p = np.array([0.5, 0.25, 0.5, 1.0])
    data = xr.Dataset(
        {"y_true": ("point", labels), "a": ("point", p), "b": ("point", 1 - p)},
        coords={"point": range(4)},
    )
    expected = [0.25, 0.0625, np.nan, 0]
    one = cvstats.losses(data, prediction="a", loss="brier", positive="a")
    np.testing.assert_array_equal(one, expected)
    both = cvstats.losses(data, prediction=["a", "b"], loss="brier", classes=["a", "b"])
    assert one.attrs["brier"] == both.attrs["brier"] == "binary"
    np.testing.assert_array_equal(both, expected)
    assert both.name == "model"
    labels[1] = pd.NA
    gaps = data.assign(y_true=("point", labels), y_pred=("point", list("bbba")))
    got = cvstats.losses(gaps, loss="zero_one")
    np.testing.assert_array_equal(got, [1, np.nan, np.nan, 0])
    assert labels[1] is pd.NA


# --- losses: words --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"truth": "y"}, "no column 'y'. Expected truth= and prediction= to be among 'y_true', "),
        ({"prediction": ["ridge", "tree"]}, "no column 'tree'"),
        ({"prediction": "fold"}, "no column 'fold'"),
        ({"prediction": []}, "prediction= is empty. Expected the predictions of at"),
        ({"prediction": {}}, "prediction= is empty"),
        ({"prediction": 7}, "no column 7"),
        ({"truth": pd.Series([1.0])}, "a Series is not the name of a column"),
        ({"weight": np.ones(2)}, "an ndarray is not the name of a column. Expected names: make"),
        ({"loss": "skill", "reference": xr.DataArray([1.0])}, "a DataArray is not the name of a"),
        (
            {"prediction": {"A": MODELS}},
            "model 'A' has 2 columns of predictions. Expected 1, or classes= with the label of",
        ),
        (
            {"prediction": MODELS, "classes": [1, 2, 3], "loss": "brier"},
            "model 'model' has 2 columns of predictions. Expected 3, one for each of [1, 2",
        ),
    ],
)
@pytest.mark.parametrize("container", ["pandas", "xarray"])
def test_columns_that_do_not_fit_are_named(frame, container, options, words):
    predictions = frame if container == "pandas" else frame.reset_index("fold").to_xarray()
    if container == "xarray":
        predictions = predictions.drop_vars("fold")
    assert words in refusal(cvstats.losses, predictions, **options)


def test_a_column_that_is_there_twice_is_named(frame):
    twice = pd.concat([frame, frame["ridge"]], axis=1)
    with pytest.raises(LogError, match="several columns are named 'ridge'"):
        cvstats.losses(twice, prediction="ridge")
    cvstats.losses(twice)  # another column may be


@pytest.mark.parametrize("thing", [None, [1, 2], np.ones(3), pd.Series([1.0]), {"y_true": [1]}])
def test_other_containers_are_refused(thing):
    article = "an" if isinstance(thing, np.ndarray) else "a"
    words = (
        f"{article} {type(thing).__name__} has no named predictions. Expected a DataFrame or a Data"
    )
    with pytest.raises(LogError, match=words):
        cvstats.losses(thing)


def test_columns_with_the_names_of_levels_become_the_index():
    table = pd.DataFrame(
        {"fold": [0, 1, 0, 1], "point": list("abcd"), "y_true": [1.0, 2, 3, 4], "y_pred": 2.0}
    )
    before = table.copy(deep=True)
    log = cvstats.losses(table)
    assert log.index.names == ["fold", "point"]
    assert log.index.tolist() == [(0, "a"), (1, "b"), (0, "c"), (1, "d")]
    assert log.attrs == {"loss": "squared_error"}
    assert cvstats.losses(table.set_index("point")).index.names == ["point", "fold"]
    named = table.set_index(pd.Index(range(4), name="row"))
    assert cvstats.losses(named).index.names == ["row", "fold", "point"]
    assert cvstats.losses(table, truth="fold", prediction="y_pred").index.names == ["point"]
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize(
    ("loss", "inside"), [("squared_error", "patient"), ("squared_error", "fold"), ("r2", "point")]
)
@pytest.mark.parametrize("container", ["frame", "dataset", "chunks", "dask frame"])
def test_levels_beside_the_index_are_not_lost(container, inside, loss):
    """Without the folds or the sources the log would silently mean something else."""
    rng = np.random.default_rng(0)
    rows = np.arange(60)
    table = pd.DataFrame({"fold": rows % 5, "source": rows % 15, "y_true": rng.normal(size=60)})
    table["y_pred"] = table["y_true"] + rng.normal(size=60)
    frame = (table if inside == "fold" else table.assign(**{inside: rows})).set_index(inside)
    if container == "dask frame":
        loss, frame = "squared_error", dd.from_pandas(frame, npartitions=3, sort=False)
    elif container != "frame":
        frame = table.rename_axis("point").to_xarray()
        frame = frame.chunk(point=-1 if loss == "r2" else 20) if container == "chunks" else frame
    options = {"folds": "pool"} if loss == "r2" else {}
    log = cvstats.losses(frame, loss=loss, **options)
    (found,) = dask.compute(log.cvci.interval())
    wanted = cvstats.losses(table, loss=loss, **options).cvci.clustered()
    assert found.attrs["method"] == "clustered"
    assert float(found["se"].to_numpy().item()) == pytest.approx(wanted["se"].item(), rel=1e-12)


def test_predictions_are_no_losses_and_the_words_say_what_is():
    table = pd.DataFrame({"fold": [0, 1], "y_true": [1.0, 2], "y_pred": 2.0})
    with pytest.raises(LogError, match=r"from predictions with cvstats\.read_log\(frame, truth=…"):
        cvstats.as_log(table)
    log = cvstats.read_log(table, truth="y_true", prediction="y_pred", loss="squared_error")
    assert log.tolist() == [1.0, 0.0]
    one_set = table.drop(columns="fold")  # `losses` accepts it, and read_log asked for levels
    assert cvstats.read_log(one_set, prediction="y_pred", loss="squared_error").tolist() == [1, 0]
    with pytest.raises(LogError, match="no column has the name of a level"):
        cvstats.read_log(one_set, loss="squared_error")


def test_probabilities_of_classes_of_models_in_rows():
    """What the errors say to type works."""
    draw = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    table = pd.DataFrame(draw, columns=["p_cat", "p_dog", "p_emu"])
    table = table.assign(
        model=["lr", "rf"] * 30, point=np.arange(60) // 2, fold=np.arange(60) // 2 % 3,
        y_true=np.array(["cat", "dog", "emu"])[np.arange(60) // 2 % 3],
    )  # fmt: skip
    names, classes = ["p_cat", "p_dog", "p_emu"], ["cat", "dog", "emu"]
    for options, error in (
        ({"prediction": {"lr": names}}, LogError),
        ({"prediction": names, "classes": classes}, TypeError),
    ):
        with pytest.raises(error, match=r"use cvstats.losses\(frame, .*classes="):
            cvstats.read_log(table, loss="log_loss", **options)
    with pytest.raises(LogError, match="models are stacked in rows") as refused:
        cvstats.losses(table, prediction=names, loss="log_loss", classes=classes)
    said = str(refused.value)
    wide = eval(re.search(r"wide = (.*?reset_index\('y_true'\))", said)[1], {"frame": table})
    assert "prediction={'lr': [('p_cat', 'lr'), …], …} and truth=('y_true', '')." in said
    models = {model: [(name, model) for name in names] for model in ("lr", "rf")}
    log = cvstats.losses(wide, ("y_true", ""), models, "log_loss", classes=classes)
    alone = table[table["model"] == "rf"].drop(columns="model")
    wanted = cvstats.losses(alone, "y_true", {"rf": names}, "log_loss", classes=classes)
    pd.testing.assert_series_equal(log["rf"], wanted["rf"].reorder_levels(log.index.names))


def test_a_column_with_a_label_for_each_row_does_not_name_models():
    table = pd.DataFrame({"y": [1.0, 2.0], "p": [1.5, 2.0], "model_id": ["run 1", "run 2"]})
    log = cvstats.losses(table, "y", ["p"], "absolute_error")
    assert log["p"].tolist() == [0.5, 0.0]
    twice = pd.concat([table, table])
    with pytest.raises(LogError, match="'model_id' contains 2 labels, so models are stacked"):
        cvstats.losses(twice, "y", ["p"], "absolute_error")


# --- options of individual losses and metrics -----------------------------------------------------


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("quantil", "an unexpected keyword argument 'quantil'. Did you mean 'quantile'?"),
        ("zzzzzz", "an unexpected keyword argument 'zzzzzz'."),
        (
            "scoring",
            "an unexpected keyword argument 'scoring'. Pass the name of the score as loss=, "
            "as in loss='roc_auc'.",
        ),
        (
            "missing",
            "an unexpected keyword argument 'missing'. A missing prediction has a missing "
            "loss. Pass missing='drop' to the function that uses the losses, as in "
            "losses.cvci.interval(missing='drop').",
        ),
    ],
)
def test_an_option_that_no_loss_has(option, words):
    with pytest.raises(TypeError, match=re.escape(f"losses() got {words}") + "$"):
        cvstats.losses(pd.DataFrame({"y_true": [1.0], "y_pred": [1.0]}), **{option: 1})
