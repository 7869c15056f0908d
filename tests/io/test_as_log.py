"""From a tidy table with any column names to a loss log."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from calls import refusal, refuses
from rows import only_row

import cvstats
from cvstats.errors import LogError


@pytest.fixture
def tidy():
    """Two models below each other: 5 points in 2 folds, under names of somebody else."""
    rng = np.random.default_rng(7)
    one = pd.DataFrame({"cv_split": list("xyxyx"), "patient": [11, 12, 13, 14, 15]})
    rows = pd.concat([one.assign(algo="tree"), one.assign(algo="net")], ignore_index=True)
    return rows.assign(mse=rng.normal(5, 1, 10), note="kept out")


NAMES = {"loss": "mse", "fold": "cv_split", "point": "patient"}


def one_model(tidy):
    return tidy[tidy["algo"] == "tree"]


def test_each_level_has_a_column():
    levels = ["sample", "outer", "repetition", "fold", "source", "point", "count"]
    frame = pd.DataFrame({f"my {level}": [i, i + 1] for i, level in enumerate(levels)})
    names = {level: f"my {level}" for level in levels}
    got = cvstats.as_log(frame.assign(loss=[0.5, 0.25]), **names)
    assert list(got.index.names) == levels
    assert got.index.tolist() == [tuple(range(7)), tuple(range(1, 8))]
    own = cvstats.as_log(frame.set_axis(levels, axis=1).assign(loss=[0.5, 0.25]))
    pd.testing.assert_series_equal(own, got)  # found by their own names


def test_a_gap_of_one_model_is_left_for_the_methods_to_name(tidy):
    got = cvstats.as_log(tidy.drop(index=7), model="algo", **NAMES)
    assert got.loc[("x", 13)].isna().tolist() == [False, True]
    refuses("'net' has no loss", got.cvci.wald)
    assert got.cvci.wald(missing="drop").attrs["n_dropped"] == 1


def test_a_column_for_each_model(tidy):
    frame = one_model(tidy).assign(mae=1.0)
    got = cvstats.as_log(frame, **{**NAMES, "loss": ["mse", "mae"]})
    assert got.columns.tolist() == ["mse", "mae"]
    pd.testing.assert_series_equal(got["mse"], cvstats.as_log(frame, **NAMES))


@pytest.mark.parametrize("kind", ["category", "string", "object", "str"])
def test_columns_of_any_type(tidy, kind):
    expected = cvstats.as_log(tidy, model="algo", **NAMES)
    other = tidy.astype({"cv_split": kind, "algo": kind})
    if kind == "category":
        other["algo"] = other["algo"].cat.set_categories(["never", "net", "tree"])
    got = cvstats.as_log(other.astype({"patient": "category"}), model="algo", **NAMES)
    assert got.columns.tolist() == ["tree", "net"]
    pd.testing.assert_frame_equal(
        got.cvci.wald(variance="within-fold"), expected.cvci.wald(variance="within-fold"),
        check_index_type=False,
    )  # fmt: skip
    assert got.cvci.compare().index.tolist() == [("tree", "net")]


def test_index_levels_are_found_too(tidy):
    expected = cvstats.as_log(one_model(tidy), **NAMES)
    for names in (["cv_split"], ["cv_split", "patient"], ["note", "patient"], ["algo", "cv_split"]):
        frame = one_model(tidy).set_index(names)
        pd.testing.assert_series_equal(cvstats.as_log(frame, **NAMES), expected)
        assert list(frame.index.names) == names
    levelled = one_model(tidy).rename(columns={"cv_split": "fold"}).set_index("fold")
    got = cvstats.as_log(levelled, loss="mse", point="patient")
    pd.testing.assert_series_equal(got, expected)
    pd.testing.assert_series_equal(cvstats.as_log(expected.to_frame(), loss="mse"), expected)
    stacked = tidy.set_index(["algo", "cv_split", "patient"])
    pd.testing.assert_frame_equal(
        cvstats.as_log(stacked, model="algo", **NAMES), cvstats.as_log(tidy, model="algo", **NAMES)
    )


def test_leave_one_out_names_a_column_twice(tidy):
    got = cvstats.as_log(one_model(tidy), loss="mse", fold="patient", point="patient")
    assert only_row(got.cvci.wald())["n_folds"] == 5


WRONG = [
    ({"loss": "rmse"}, "no column 'rmse'. Expected one of the table's columns: 'cv_split'"),
    ({"fold": "split"}, "no column 'split'"),
    ({"model": "name"}, "no column 'name'"),
    (
        {"fold": None, "point": None},
        "no level of a loss log was found among the columns 'cv_split'",
    ),
    ({"loss": ["mse", "note"], "model": "algo"}, "model= and several columns in loss= both name"),
    ({"loss": "cv_split"}, "'cv_split' is named both as a level and as the loss or the model"),
    ({"model": "patient"}, "'patient' is named both as a level and as the loss or the model"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_wrong_names_are_told(tidy, options, words):
    before = tidy.copy(deep=True)
    assert words in refusal(cvstats.as_log, tidy, **{**NAMES, **options})
    pd.testing.assert_frame_equal(tidy, before)


def test_what_stands_twice_is_named(tidy):
    twice = pd.concat([tidy, tidy.iloc[[3]]], ignore_index=True)
    assert (
        "a model has the same evaluation twice: fold='y', point=14, algo='tree'. "
        "Expected each (fold, point, algo) once."
        in refusal(cvstats.as_log, twice, model="algo", **NAMES)
    )
    with pytest.raises(LogError, match="the same evaluation appears twice: fold='y', point=14"):
        cvstats.as_log(one_model(twice), **NAMES).cvci.wald()
    with pytest.raises(LogError, match="several columns are called 'mse'"):
        cvstats.as_log(pd.concat([tidy, tidy["mse"]], axis=1), **NAMES)
    with pytest.raises(
        LogError, match="'patient' is a column and an index level. Expected only one"
    ):
        cvstats.as_log(tidy.set_index("patient", drop=False), **NAMES)


def test_a_model_without_a_name_is_told(tidy):
    tidy.loc[6, "algo"] = None
    refuses("the model of row 6 has no name", cvstats.as_log, tidy, model="algo", **NAMES)


@pytest.mark.parametrize("thing", [None, pd.Series([1.0], name="loss"), xr.Dataset(), {"a": [1]}])
def test_other_tables_are_refused(thing):
    refuses(f"a {type(thing).__name__} has no named columns. Expected", cvstats.as_log, thing)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (xr.DataArray([1.0], dims="cv_split"), "array.rename({'cv_split': 'fold'})"),
        (xr.Dataset({"ridge": ("split", [1.0])}), "array.rename({'split': 'fold'})"),
        (
            xr.DataArray([1.0], dims="point"),
            "With dimensions or coordinates it is a log once they have",
        ),
        (pd.Series([1.0]), "series.rename_axis(index={'cv_split': 'fold'})."),
        ("log.csv", "Read a file with cvstats.read_log(path)."),
        ([1.0], "Make one: cvstats.as_log(pandas.DataFrame({'fold': …, 'point': …, 'loss': …}))."),
    ],
)
def test_other_things_are_told_their_way(thing, words):
    assert words in refusal(cvstats.as_log, thing)


def test_levels_of_one_name():
    frame = pd.DataFrame({"loss": [1.0, 2]}, index=pd.MultiIndex.from_arrays([[0, 1]] * 2))
    with pytest.raises(LogError, match="two index levels are called 'fold'"):
        cvstats.as_log(frame.rename_axis(["fold", "fold"]))


def test_columns_are_named_one_by_one():
    frame = pd.DataFrame({0: [0, 1], "loss": [1.0, 2], "fold": [7, 7]})
    assert cvstats.as_log(frame, fold=0).index.tolist() == [0, 1]  # and not the column 'fold'
    assert cvstats.as_log(frame, loss=0, fold="fold").tolist() == [0, 1]
    for wrong in (["fold"], pd.NA, np.array(["fold"]), {}):
        with pytest.raises(LogError, match=re.escape(f"{wrong!r} names no column. Expected the")):
            cvstats.as_log(frame, fold=wrong)
    for wrong in ([], 7, [["loss"]], np.array("loss")):
        refuses(r"names no column|no column", cvstats.as_log, frame, loss=wrong)
    both = frame.assign(other=frame["loss"])
    assert list(cvstats.as_log(both, loss=both.columns[[1, 3]]).columns) == ["loss", "other"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"truth": ["y_true"]}, r"truth=\['y_true'\] is a list of columns"),
        ({"truth": pd.NA}, "no column <NA>"),
        ({"prediction": [["y_pred"]]}, "contains an invalid or duplicated name"),
        ({"prediction": ["y_pred", "y_pred"]}, "contains an invalid or duplicated name"),
        ({"prediction": np.array("y_pred")}, "contains an invalid or duplicated name"),
        ({"classes": 2}, "classes=2 is not a list"),
        ({"loss": "zero_one", "threshold": "half"}, "threshold='half' is not a probability"),
        ({"loss": "zero_one", "threshold": True}, "threshold=True is not a probability"),
        ({"loss": "brier", "positive": [1]}, r"positive=\[1\] is not a label"),
    ],
)
def test_options_of_losses(options, words):
    frame = pd.DataFrame({"y_true": [0, 1], "y_pred": [0.1, 0.9], "fold": [0, 1]}).set_index("fold")
    refuses(words, cvstats.losses, frame, **options)


def test_a_column_that_is_nearly_there():
    frame = pd.DataFrame({"losss": [1.0, 2], "fold": [0, 1], "y_ture": [1, 2], "y_pred": [1, 2]})
    refuses(r"no column 'loss'.*Did you mean 'losss'\?", cvstats.as_log, frame)
    refuses(r"no column 'y_true'.*Did you mean 'y_ture'\?", cvstats.losses, frame)


def test_a_column_of_models_that_is_left_out_is_named() -> None:
    """Without it the rows are repeated evaluations, of which a user might drop all but one."""
    labels = {"algorithm": ["a", "a", "b", "b"], "fold": [0, 1, 0, 1], "point": [3, 4, 3, 4]}
    table = pd.DataFrame(labels | {"loss": [0.5, 0.7, 0.4, 0.6]})
    for frame in (table, table.astype({"algorithm": "category"})):
        refuses("fold=0, point=3.*pass model='algorithm'", cvstats.as_log, frame)
    assert cvstats.as_log(table, model="algorithm").columns.tolist() == ["a", "b"]
    notes = table.iloc[:2].assign(note=[["x"], ["y"]])
    assert len(cvstats.as_log(notes)) == 2
    assert len(cvstats.as_log(table.drop(columns="point"))) == 4


def test_a_missing_default_column_of_losses_names_all_that_may_be_losses():
    frame = pd.DataFrame({"fold": [0, 1], "point": [0, 1], "losses": [1.0, 2.0], "b": [1.0, 2.0]})
    words = refusal(lambda: cvstats.as_log(frame))
    assert words.endswith(
        "Did you mean 'losses'? If not, name all columns of losses: loss=['losses', 'b']."
    )
    words = refusal(lambda: cvstats.as_log(frame, loss="bb"))
    assert words.endswith("Did you mean 'b'?")
    words = refusal(lambda: cvstats.as_log(frame, loss="rmse"))
    assert words.endswith(" Name all columns of losses: loss=['losses', 'b'].")
