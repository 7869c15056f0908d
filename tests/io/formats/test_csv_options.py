"""CSV files as other countries and programs write them, and copies of rows."""

import pandas as pd
import pytest
from calls import refuses

import cvstats
from cvstats import LogError

GERMAN = "fold;punkt;verlust\nStraße;1.001;0,25\nStraße;1.002;1.024,5\nPlatz;1.003;0,75\n"
NAMES = {"fold": "fold", "point": "punkt", "metric": "verlust"}
NUMBERS = {"decimal": ",", "thousands": "."}


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding=encoding)
    return path


@pytest.mark.parametrize("encoding", [None, "latin-1", "utf-16"])
def test_decimal_commas_thousands_and_encodings(tmp_path, encoding):
    path = written(tmp_path, GERMAN, encoding or "utf-8")
    log = cvstats.read_log(path, encoding=encoding, **NUMBERS, **NAMES)
    assert log.tolist() == [0.25, 1024.5, 0.75]
    assert log.index.tolist() == [("Straße", 1001), ("Straße", 1002), ("Platz", 1003)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decimal": "comma"}, "decimal='comma' is not a character"),
        ({"thousands": "0"}, "thousands='0' is not a character"),
        ({"thousands": "."}, "is also the decimal mark"),
        ({"decimal": ",", "thousands": ","}, "is also the decimal mark"),
        ({"encoding": "runes"}, "Unknown encoding 'runes'"),
        ({"encoding": 8}, "Unknown encoding 8"),
        ({"drop_duplicates": "yes"}, "Expected True or False"),
    ],
)
def test_what_is_not_an_option_is_refused(tmp_path, options, words):
    refuses(words, cvstats.read_log, written(tmp_path, GERMAN), **options, **NAMES)


def test_options_of_csv_files_are_for_these(tmp_path):
    table = pd.DataFrame({"point": [1, 2], "loss": [0.5, 1.0]})
    refuses("decimal= applies to CSV files.*a DataFrame", cvstats.read_log, table, decimal=",")
    table.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    refuses("encoding= .*log.jsonl", cvstats.read_log, tmp_path / "log.jsonl", encoding="latin-1")
    cvstats.save_log(cvstats.read_log(table), tmp_path / "saved.csv")
    refuses("thousands= .*a saved log", cvstats.read_log, tmp_path / "saved.csv", thousands=" ")
    with pytest.raises(LogError, match=r"log.csv could not be read: it is not valid"):
        cvstats.read_log(written(tmp_path, GERMAN, "latin-1"), **NUMBERS, **NAMES)


def test_copies_of_rows_are_dropped_on_request(tmp_path):
    text = "source,point,loss\n01,1,0.5\n1,1,0.5\n01,1,0.5\n2,3,1.5\n2,3,1.5\n"
    path = written(tmp_path, text)
    refuses("an evaluation occurs twice", cvstats.read_log, path)
    log = cvstats.read_log(path, drop_duplicates=True)
    assert log.index.tolist() == [("01", 1), ("1", 1), ("2", 3)]
    assert log.attrs["n_duplicates"] == 2
    indexed = pd.DataFrame({"loss": [1.0, 1.0, 1.0]}, pd.Index([1, 2, 2], name="point"))
    assert cvstats.read_log(indexed, drop_duplicates=True).tolist() == [1.0, 1.0]
    assert "n_duplicates" not in cvstats.read_log(indexed[:2], drop_duplicates=True).attrs
    other = written(tmp_path, "point,loss\n1,0.5\n1,0.6\n")
    refuses("an evaluation occurs twice", cvstats.read_log, other, drop_duplicates=True)


def test_copies_in_several_files_and_of_samples_add_up(tmp_path):
    table = pd.DataFrame({"point": [1, 2, 2], "loss": [0.5, 1.0, 1.0]})
    log = cvstats.read_log({"a": table, "b": table}, drop_duplicates=True)
    assert log.shape == (2, 2)
    assert log.attrs["n_duplicates"] == 2
    rows = [
        {"doc_id": 0, "doc_hash": "x", "filter": "none", "metrics": ["acc"], "acc": 1.0},
        {"doc_id": 1, "doc_hash": "y", "filter": "none", "metrics": ["acc"], "acc": 0.0},
    ]
    assert cvstats.read_log([*rows, rows[0]], drop_duplicates=True).sum() == 1
    splits = {"test_score": [1.0], "fit_time": [0.1]}
    refuses("format='cross_validate' has none", cvstats.read_log, splits, drop_duplicates=True)


@pytest.mark.parametrize(
    "labels", [["1.0", "10", "2.0", "20"], ["01.02.2024", "1.02.2024", "03.02.2024", "04.02.2024"]]
)
def test_separators_of_thousands_are_those_of_numbers_and_not_of_labels(tmp_path, labels):
    path = tmp_path / "log.csv"
    rows = [
        f"{label};{loss}" for label, loss in zip(labels, ["1.000", "2", "3,5", "4"], strict=True)
    ]
    path.write_text("\n".join(["point;loss", *rows]))
    log = cvstats.read_log(path, decimal=",", thousands=".")
    assert log.index.tolist() == labels
    assert log.tolist() == [1000, 2, 3.5, 4]
