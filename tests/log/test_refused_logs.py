"""What is not a loss log: the words say what was expected and found, and what to type."""

import json
from decimal import Decimal
from importlib.metadata import PackageNotFoundError

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refuses
from faulty_logs import k_fold, one, refused, with_value
from strategies import as_dataset, by_point, dense
from together import together

import cvstats
from cvstats import LogError, errors

wald, compare = cvstats.wald, cvstats.compare

NUMBER = "Convert them with log.astype(float); if these are predictions"
TEXT = "Convert them with pd.to_numeric; if these are predictions"
BAD_LOGS = {
    "many duplicates": (
        lambda: pd.concat([k_fold(), k_fold(), k_fold()]),
        "(rows 0 and 12); repetition=0, fold=1, point=1 (rows 1 and 13); repetition=0, fold=2, "
        "point=2 (rows 2 and 14); and 21 more.",
    ),
    "models below each other": (
        lambda: k_fold().rename_axis(columns="model").stack(),
        "The level 'model' does not identify evaluations; if it names the models, give "
        "each model a column: log.unstack('model'). If it numbers runs or seeds, rename it to "
        "'repetition'. If it is a lead time or another condition, select a label: log.xs('a', "
        "level='model'); or pass by='model' to a function that has by=.",
    ),
    "NaN without a name": (
        lambda: with_value(one(), np.nan).rename(None), "the loss of the log is missing",
    ),
    "minus infinity in an array": (
        lambda: dense(with_value(k_fold(), -np.inf)), "the loss of model='b' is infinite at",
    ),
    "text": (
        lambda: k_fold().assign(b="good"),
        f"the losses of 'b' are not numbers: their type is {pd.Series(['good']).dtype}, the first "
        "is 'good'. Expected one "
        "loss for each evaluation. Convert them with pd.to_numeric",
    ),
    "objects": (lambda: one().astype(object), "their type is object, the first is 0.", NUMBER),
    "a gap among objects": (
        lambda: with_value(one().astype(object), None), "is object, the first is 0.", NUMBER,
    ),
    "a word among objects": (
        lambda: with_value(one().astype(object), "n/a"), "is object, the first is 'n/a'", TEXT,
    ),
    "text without a name": (
        lambda: one().astype(str).rename(None), "the losses of the log are not numbers", TEXT,
    ),
    "decimals and text": (
        lambda: one().map(Decimal).where(one().index.get_level_values("point") > 0, "x"),
        "the first is 'x'", TEXT,
    ),
    "categories": (lambda: one().round(1).astype("category"), "the first is 0.6.", NUMBER),
    "dates": (lambda: one().astype("datetime64[s]"), "their type is datetime64[s]"),
    "durations": (lambda: pd.to_timedelta(one()), "'a' are not numbers", "total_seconds()"),
    "complex": (
        lambda: k_fold().astype(complex), "their type is complex128, the first is (0.", "abs(log)",
    ),
    "a missing Float64": (
        lambda: with_value(one().astype("Float64"), pd.NA),
        "the loss of 'a' is missing (NaN) at fold=2, point=4", "pass missing='drop'",
    ),
    "text in an array": (lambda: dense(k_fold()).astype(str), "their type is <U"),
    "nothing at all": (lambda: pd.Series(), "the log is empty"),
    "no columns": (lambda: k_fold()[[]], "the log has no columns. Expected a column of losses"),
    "an empty array": (lambda: by_point(k_fold()).isel(point=[]), "the log is empty"),
    "no models": (lambda: by_point(k_fold()).isel(model=[]), "the log is empty"),
    "an empty dataset": (lambda: xr.Dataset(), "the dataset has no variables. Expected one of"),
    "a dataset of nothing": (
        lambda: as_dataset(by_point(k_fold()).isel(point=[])), "the log is empty",
    ),
    "a category that is none": (
        lambda: pd.Series(1.0, pd.CategoricalIndex(["x", None], name="point")),
        "level 'point' has no label (NaN) in row 1",
    ),
    "a loss without a fold": (
        lambda: by_point(k_fold()).assign_coords(fold=("point", [np.nan, *[1.0] * 11])),
        "level 'fold' has no label (NaN) for the loss at repetition=0, fold=None, point=0. "
        "Expected a "
        "label for every evaluation. Give it a label, or blank the loss: "
        "log.where(log['fold'].notnull()).",
    ),
    "an unknown level whose name tells": (
        lambda: one().rename_axis(["subject", "trial"]),
        "Rename a level, as in log.rename_axis(index={'subject': 'source'}), or call "
        "cvstats.as_log(log.reset_index(), source='subject', …).",
    ),
    "unknown dimensions": (
        lambda: by_point(k_fold())
        .isel(repetition=0, drop=True)
        .drop_vars("fold")
        .rename(point="id"),
        "no dimension or coordinate of this array (model, id) is a level of a loss log. Expected "
        "one or more of sample, outer, repetition, fold, source, point, count. Rename a "
        "dimension, as in "
        "log.rename({'id': 'point'}), or add a coordinate",
    ),
    "levels as columns": (
        lambda: one().reset_index(),
        "'fold', 'point' are columns of this frame. Expected levels in the index and a column of "
        "losses for each model. Type cvstats.as_log(frame, loss=…), or frame.set_index(['fold', "
        "'point'])",
    ),
    "one level as a column": (
        lambda: one().reset_index("fold"),
        "'fold' is a column of this frame. Expected levels in the index",
    ),
    "a level as a variable": (
        lambda: as_dataset(by_point(k_fold())).reset_coords("fold"),
        "'fold' is a variable of this dataset. Expected levels as coordinates and a variable of "
        "losses for each model. Type log.set_coords(['fold']).",
    ),
    "columns of one name": (
        lambda: k_fold().set_axis(["a", "a"], axis=1),
        "several columns are called 'a'. Expected one column for each model. Rename them.",
    ),
    "levels of one name": (
        lambda: one().rename_axis(["fold", "fold"]),
        "two index levels are called 'fold'. Expected different names.",
    ),
    "variables of other dimensions": (
        lambda: as_dataset(by_point(k_fold())).assign(c=("point", np.ones(12))),
        "the models have different dimensions: 'a' has ('repetition', 'point') and 'c' has "
        "('point',). Expected the same for every variable. Drop variables that are not models",
    ),
    "models of one name": (
        lambda: dense(k_fold()).assign_coords(model=["a", "a"]),
        "several models have the same name: 'a', 'a'. Expected different names.",
        "log.assign_coords(model=[…])",
    ),
    "folds of each model": (
        lambda: by_point(one().to_frame()).assign_coords(
            fold=(("model", "point"), np.zeros((1, 12), int))
        ),
        "the coordinate 'fold' lies along 'model', so it differs between models",
        "Take one model: log.sel(model=…).",
    ),
    "one number": (lambda: xr.DataArray(3.0), "this array is a single number", "each evaluation"),
    "a dataset of one number": (lambda: xr.Dataset({"a": 3.0}), "is a single number"),
    "an integer": (lambda: 42, "an int is not a loss log. Expected a pandas Series", "as_log("),
    "a list": (
        lambda: [0.1], "a list is not a loss log. Expected a pandas Series or DataFrame",
        "for the losses of one test set, with pandas.Series(losses).rename_axis('point').",
    ),
    "an array of numpy": (lambda: np.ones(3), "a numpy.ndarray is not a loss log", "rename_axis"),
    "a dict": (lambda: {"loss": [0.1]}, "a dict is not a loss log"),
    "None": (lambda: None, "a NoneType is not a loss log"),
    "text itself": (lambda: "log.csv", "Make one with cvstats.as_log(pandas.DataFrame(…), loss="),
}  # fmt: skip


def test_an_array_without_a_name():
    words = refused(wald, xr.DataArray([1.0, np.nan], dims="point"))
    assert words.startswith("the loss of the log is missing (NaN) at point=1")


@together(BAD_LOGS)
def test_no_log(name):
    make, *words = BAD_LOGS[name]
    log = make()
    calls = [wald, cvstats.interval, *([] if isinstance(log, pd.Series) else [compare])]
    if not name.startswith(("NaN", "minus", "a missing")):
        calls.append(cvstats.moments)
    if isinstance(log, (pd.Series, pd.DataFrame, xr.DataArray, xr.Dataset)):
        calls.append(lambda it: it.cvci.naive())
    for call in calls:
        said = refused(call, log)
        assert all(part in said for part in words), said


@pytest.mark.parametrize(("value", "words"), [(np.inf, "'h' is infinite"), (1e200, "too large")])
def test_many_pairs_name_the_loss_too(value, words):
    assert words in refused(compare, with_value(k_fold(models="abcdefgh"), value))


def test_a_masked_model_spoils_its_own_pairs_only():
    log = dense(k_fold(models="abcdefgh")).expand_dims(lat=[1, 2])
    gap = (log["model"] == "c") & (log["lat"] == 2)
    table = compare(log.where(~gap))
    mine = ((table["model"] == "c") | (table["other"] == "c")) & (table["lat"] == 2)
    np.testing.assert_array_equal(np.isnan(table["se"].transpose(*mine.dims)), mine)
    refuses("model 'c' has no losses", compare, log.where(log["model"] != "c"))


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        (None, "pip install 'cvstats[plot]'"),
        ({"url": "file://{folder}", "dir_info": {}}, "pip install '{folder}[plot]'"),
        (
            {"url": "file://{folder}", "dir_info": {"editable": True}},
            "pip install -e '{folder}[plot]'",
        ),
        ({"url": "file:///no/such/folder", "dir_info": {}}, "pip install 'cvstats[plot]'"),
        (
            {"url": "https://example.org/cvstats.git", "vcs_info": {"vcs": "git"}},
            "pip install 'cvstats[plot] @ git+https://example.org/cvstats.git'",
        ),
    ],
)
def test_the_command_that_installs_an_extra_is_one_that_works(
    noted, command, tmp_path, monkeypatch
):
    folder = tmp_path / "a checkout"
    folder.mkdir()

    class Noted:
        @staticmethod
        def read_text(name):
            assert name == "direct_url.json"
            at = str(folder).replace(" ", "%20")
            return None if noted is None else json.dumps(noted).replace("{folder}", at)

    monkeypatch.setattr(errors, "distribution", lambda name: Noted)
    assert errors.install_command("plot") == command.replace("{folder}", str(folder))


def test_without_metadata_the_command_is_the_plain_one(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(errors, "distribution", absent)
    assert errors.install_command("io") == "pip install 'cvstats[io]'"


def test_the_column_of_the_other_role_is_not_what_was_meant():
    frame = pd.DataFrame({"y": [1.0], "y_pred": [2.0]}, pd.RangeIndex(1, name="point"))
    with pytest.raises(LogError, match="no column 'y_true'") as caught:
        cvstats.losses(frame)
    assert "Perhaps" not in str(caught.value)
    refuses("Did you mean 'y_pred'", cvstats.losses, frame, truth="y", prediction="y_prd")


@pytest.mark.parametrize(
    ("got", "suggested"),
    [("None", " Did you mean None?"), ("none", " Did you mean None?"), ("nonsense", ""),
     ("holms", " Did you mean 'holm'?"), ("bonferroni", ""), ("NONE", " Did you mean None?"),
     (3, "")],
)  # fmt: skip
def test_what_was_meant(got, suggested):
    assert errors.nearest(got, ("holm", "bh", None)) == suggested


@pytest.mark.parametrize(
    ("value", "words"),
    [(3, "an int"), (np.zeros(2), "an ndarray"), (pd.Series([1.0]), "a Series"), ((), "a tuple")],
)
def test_types_have_their_article(value, words):
    assert errors.describe_type(value) == words
