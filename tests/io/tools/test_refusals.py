"""What readers say of tables that lack something, and the less common ways in."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from calls import refusal
from tool_logs import caret, experiment, mlr3, tidymodels

import cvstats
from cvstats.io.paths import one_line


@pytest.fixture
def table():
    return experiment()


refused = partial(refusal, cvstats.read_log)


def test_predictions_of_no_kind(table):
    laid = tidymodels(table).drop(columns=".pred").assign(**{".pred_time": 1.0})
    assert "neither a column '.pred' nor '.pred_class'" in refused(
        laid, format="tidymodels", loss="squared_error"
    )


def test_the_likeliest_class_stands_in_for_a_missing_one(table):
    laid = tidymodels(table, classes=True)
    without = laid.drop(columns=".pred_class")
    log = cvstats.read_log(without, format="tidymodels", loss="brier")
    pd.testing.assert_frame_equal(log, cvstats.read_log(laid, format="tidymodels", loss="brier"))


def test_models_and_sources_by_name(table):
    laid = tidymodels(table)
    laid["site"] = laid[".row"] % 3
    laid["tried"] = laid[".config"].map(dict(zip(laid[".config"].unique(), "ab", strict=True)))
    log = cvstats.read_log(
        laid, format="tidymodels", truth="price", loss="squared_error", model="tried", source="site"
    )
    assert set(log.columns) == set(laid["tried"])
    assert log.index.get_level_values("source").nunique() == 3


def test_workflows_and_iterations_name_models(table):
    laid = tidymodels(table)
    laid["wflow_id"] = laid[".config"].map(dict(zip(laid[".config"].unique(), "ab", strict=True)))
    log = cvstats.read_log(laid, format="tidymodels", truth="price", loss="squared_error")
    assert list(log) == ["a", "b"]
    laid[".iter"] = (laid["wflow_id"] == "b").astype(int)
    log = cvstats.read_log(laid, format="tidymodels", truth="price", loss="squared_error")
    assert list(log) == ["a/0", "b/1"]


def test_one_split_without_repetitions_and_names(table):
    laid = tidymodels(table).drop(columns=[".config"])
    laid = laid.drop_duplicates(["id", "id2", ".row"])
    log = cvstats.read_log(laid, format="tidymodels", truth="price", loss="squared_error")
    assert isinstance(log, pd.Series) or log.shape[1] == 1


@pytest.mark.parametrize(
    ("make", "gone", "options"),
    [
        (tidymodels, ".row", {"format": "tidymodels"}),
        (caret, "rowIndex", {"format": "caret"}),
        (mlr3, "row_ids", {"format": "mlr3"}),
    ],
)
def test_a_column_that_the_format_has(table, make, gone, options):
    laid = make(table).drop(columns=gone)
    words = refused(laid, loss="squared_error", **options)
    assert gone in words or "row" in words


def nixtla(series=("a",), days=("2024-02-28", "2024-02-29")):
    """Forecasts of one day from the day before, for each series."""
    rows = [
        {"unique_id": name, "ds": day, "cutoff": f"2024-02-{27 + at}", "y": at, "naive": 2.0 * at}
        for name in series
        for at, day in enumerate(days)
    ]
    return pd.DataFrame(rows)


def test_a_single_series_is_not_a_source():
    one = cvstats.read_log(nixtla(), loss="squared_error")
    assert one.index.names == ["fold", "point"]
    two = cvstats.read_log(nixtla(("a", "b")), loss="squared_error")
    assert two.index.names == ["fold", "source", "point"]
    of_old_versions = nixtla(("a", "b")).set_index("unique_id")
    assert cvstats.read_log(of_old_versions, loss="squared_error").equals(two)


def test_columns_of_some_classes_are_neither_probabilities_nor_models(table):
    laid = caret(table, classes=True).drop(columns="high")
    options = {"format": "caret", "loss": "zero_one"}
    without = cvstats.read_log(laid.drop(columns=["low", "mid"]), **options)
    pd.testing.assert_frame_equal(cvstats.read_log(laid, **options), without)
    assert without.shape[1] == 2


REFUSED = {
    "a label without its probability": (
        lambda t: tidymodels(t, classes=True).replace({"grade": {"low": "odd"}}),
        {"format": "tidymodels", "loss": "brier"},
        "the truth contains 'odd', but there is no such column of probabilities. Expected one of "
        "'high'",
    ),
    "a row without a split": (
        lambda t: caret(t).assign(Resample=lambda laid: laid["Resample"].mask(laid.index == 3)),
        {"format": "caret", "loss": "squared_error"},
        "row 3 names no split. Expected the name of a split in every row",
    ),
    "half an iteration": (
        lambda t: mlr3(t).assign(iteration=lambda laid: laid["iteration"] + 0.5),
        {"format": "mlr3", "loss": "squared_error"},
        "an iteration is not a whole number. Expected 1, 2, 3, …",
    ),
    "a day that does not exist": (
        lambda _: nixtla(days=("2024-02-28", "2024-02-30")),
        {"format": "nixtla", "loss": "squared_error"},
        "'ds' contains values that are not time stamps. Expected dates such as 2024-01-31",
    ),
    "columns of other classes": (
        lambda _: pd.DataFrame({"a": [0.5, 0.5], "b": [0.5, 0.5]}),
        {"format": "autogluon", "loss": "brier", "y": pd.Series(["a", "c"])},
        "the predictions have the columns 'a', 'b'. Expected one, or one for each class of y",
    ),
    "a name of two hundred letters": (
        lambda _: pd.DataFrame({"A" * 200: [1.0], "fold": [0]}),
        {"metric": "B" * 200},
        f"'{'B' * 39}…",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_a_reader_refuses(table, name):
    make, options, words = REFUSED[name]
    assert words in refused(make(table), **options)


SAMPLE = {"doc_id": 0, "doc_hash": "a", "filter": "none", "metrics": ["acc"], "acc": 1.0}


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("doc_id", "row 1 has no doc_id, or it has neither doc_hash nor filter. Expected samples "
         "of lm-evaluation-harness. Found 'doc_hash', 'filter', 'metrics', and 1 more"),
        ("filter", "a sample has no filter, but others do. Expected one in each row"),
    ],
)  # fmt: skip
def test_samples_that_lack_what_others_have(tmp_path, gone, words):
    other = {name: value for name, value in SAMPLE.items() if name != gone}
    path = tmp_path / "samples_x_2026-01-01T00-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, [SAMPLE, other])), "utf-8")
    assert words in refused(path)


def test_a_store_that_is_a_file(tmp_path):
    path = tmp_path / "log.zarr"
    path.write_bytes(b"words")
    assert "log.zarr is not a directory. Expected a Zarr store" in refused(path)


def test_an_error_without_words_is_named():
    assert one_line(MemoryError()) == "MemoryError"


def run_of(scores, **changes):
    samples = [
        {"id": at, "epoch": 1, "target": "x", "scores": {"match": {"value": score}}}
        for at, score in enumerate(scores)
    ]
    return {
        "version": 2,
        "status": "success",
        "eval": {"eval_id": "e", "model": "m", "task": "t"},
        "samples": samples,
    } | changes


def stored(tmp_path, log):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(log), "utf-8")
    return path


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (run_of(["C"], samples=3), "no list of samples"),
        (run_of(["C"], status="started"), "did not finish"),
        (run_of(["C"], samples=["C"]), "is not an object"),
        (run_of(["C", "great"]), "is 'great'. Expected a number or one of the grades"),
        (run_of(["C", [1, 2]]), "Expected a number or one of the grades"),
        (run_of([]), ""),
    ],
)
def test_logs_of_inspect_that_cannot_be_read(tmp_path, log, words):
    assert words in refused(stored(tmp_path, log), format="inspect")


def test_grades_of_any_spelling(tmp_path):
    log = cvstats.read_log(
        stored(tmp_path, run_of(["C", "I", "P", "0.25", True, 0, "yes"])), format="inspect"
    )
    values = np.asarray(log, dtype=float).reshape(-1)
    np.testing.assert_allclose(values, [0, 1, 0.5, 0.75, 0, 1, 0])


def test_scores_of_inspect_by_name(tmp_path):
    run = run_of(["C", "I"])
    for sample in run["samples"]:
        sample["scores"]["other"] = {"value": 1.0}
    path = stored(tmp_path, run)
    assert "2 scores" in refused(path, format="inspect")
    assert "Unknown score 'third'" in refused(path, format="inspect", metric="third")
    log = cvstats.read_log(path, format="inspect", metric="match")
    assert np.asarray(log, dtype=float).sum() == 1
