"""What a stranger hands in: text for a path, packed files, commas, complex numbers, nested rows."""

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from calls import refusal, refuses

import cvstats

LEVELS = {"fold": [0, 1, 0, 1], "point": [1, 2, 3, 4]}


def refused(source, **options):
    words = refusal(cvstats.read_log, source, **options)
    assert "\n" not in words
    return words


@pytest.mark.parametrize("source", ["x,y\n" * 200, ["x,y\n" * 200], {"ridge": "x,y\r" * 9}])
def test_text_in_the_place_of_a_path(source):
    words = refused(source)
    assert "is text, not a path. Expected the path of a file. Write the text to a file" in words
    assert "pandas.read_csv(io.StringIO(text))" in words
    assert len(words) < 250


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a" * 300 + ".csv", "too long"),
        ("a\0b.csv", "contains a null byte"),
        ("", "the path is empty"),
    ],
)
def test_paths_that_no_file_can_have(source, words):
    said = refused(source)
    assert words in said
    assert "Expected the path of a file" in said
    assert len(said) < 150


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    words = refused(tmp_path / "pipe.csv")
    assert "is a pipe or a device, not a file. Standard input cannot be read" in words


def test_a_file_without_a_suffix(tmp_path):
    path = tmp_path / "losses"
    path.write_text("fold,point,loss\n0,1,0.5\n1,2,1.5\n", "utf-8")
    assert "losses has no suffix, and so no known file type" in refused(path)
    assert len(cvstats.read_log(path, format="csv")) == 2


def packed_as_zip(text):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.csv", text)
    return out.getvalue()


@pytest.mark.parametrize(
    ("suffix", "pack", "program"),
    [
        (".gz", gzip.compress, "gunzip"),
        (".bz2", bz2.compress, "bunzip2"),
        (".xz", lzma.compress, "unxz"),
        (".zip", packed_as_zip, "unzip"),
    ],
)
def test_packed_files(tmp_path, suffix, pack, program):
    content = pack(b"fold,point,loss\n0,1,0.5\n1,2,1.5\n")
    path = tmp_path / f"x.csv{suffix}"
    path.write_bytes(content)
    kind = suffix[1:]
    expected = (
        f"{path.name} is compressed ({kind}). Expected an uncompressed file. Unpack it first: "
        f"{program} {path.name}"
    )
    assert refused(path) == refused(path, format="csv") == expected


def test_tables_of_other_libraries():
    kind = type("DataFrame", (), {"__module__": "polars.frame", "to_pandas": lambda self: None})
    words = refused(kind())
    assert "a polars DataFrame cannot be read. Expected a path, a pandas table" in words
    assert words.endswith("read_log(table.to_pandas(), …).")
    lazy = type("DataFrame", (), {"__module__": "dask.frame", "compute": lambda self: None})
    assert refused(lazy()).endswith("read_log(table.compute(), …).")


def test_an_empty_store(tmp_path):
    (tmp_path / "e.zarr").mkdir()
    pytest.importorskip("zarr")
    assert "e.zarr is an empty directory: it has no .zgroup" in refused(tmp_path / "e.zarr")
    (tmp_path / "e.zarr" / "thesis.txt").write_text("x", "utf-8")
    assert "e.zarr is not a Zarr store" in refused(tmp_path / "e.zarr")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1 + 2j, 2, 3, 4j], "complex numbers"),
        (np.array([1 + 2j, 2, None, 4j], dtype=object), "complex numbers"),
        (pd.date_range("2020", periods=4), "dates"),
        (pd.date_range("2020", periods=4, tz="UTC"), "dates"),
        (list(pd.date_range("2020", periods=4).date), "dates"),
        (pd.to_timedelta(range(4), unit="h"), "durations"),
        (pd.period_range("2020", periods=4), "periods"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"metric": "when"}, {"higher_is_better": True}])
def test_losses_of_another_kind(values, kind, options):
    name = options.get("metric", "loss")
    words = refused({**LEVELS, name: values}, **options)
    assert f"the losses of {name!r} are {kind}; the first is " in words
    assert "Expected numbers." in words


def test_decimal_commas_in_quotes(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('fold,point,loss\n0,1,"0,5"\n1,2,1\n', "utf-8")
    assert "'loss' has '0,5'. Expected numbers. Pass decimal=','" in refused(path)
    assert cvstats.read_log(path, decimal=",").tolist() == [0.5, 1.0]
    path.write_text('fold,point,loss\n0,"0,5",0.5\n1,"0,6",1\n', "utf-8")
    assert cvstats.read_log(path).index.get_level_values("point").tolist() == ["0,5", "0,6"]


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2]])
@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("point", {}), ("case", {"point": "case"}), ("a.b", {"point": "a.b"}), ("model", {}),
        ("run", {"model": "run"}), ("y_true", {}), ("answer", {"truth": "answer"}), ("loss", {}),
        ("error", {"metric": "error"}), ("cost", {"loss": "cost"}),
        ("guess", {"truth": "fold", "prediction": "guess", "loss": "zero_one"}),
    ],
)  # fmt: skip
def test_nested_labels(tmp_path, value, column, options):
    path = tmp_path / "x.jsonl"
    rows = [{"fold": i, "loss": 0.5, column: value if i else 5, "more": [1]} for i in (0, 1)]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    words = refused(path, **options)
    assert f"the column {column!r} contains lists or objects, as in {json.dumps(value)!r}." in words
    assert f"such as '{column}.id', flatten" in words
    assert f"json.dumps(row[{column!r}])" in words
    if "." in column:
        return
    inner = refused(path, point=f"{column}.a", fold="fold")
    assert f"the column {column!r} contains lists or objects" in inner
    assert f"such as '{column}.a', flatten the rows, pd.json_normalize(rows)" in inner


def test_the_default_of_to_json_is_refused_with_the_call_that_is_read(tmp_path):
    table = pd.DataFrame({"point": [1, 2, 3], "loss": [0.1, 0.3, 0.2]})
    path = tmp_path / "x.json"
    table.to_json(path)
    refuses(r"With pandas, write it by .*orient='records'", cvstats.read_log, path)
    table.to_json(path, orient="records")
    assert cvstats.read_log(path).tolist() == [0.1, 0.3, 0.2]
    path.write_text('{"a": 1}', "utf-8")
    refuses(r"JSONL also works\)\.$", cvstats.read_log, path)


def test_a_json_list_of_objects_is_read_as_jsonl(tmp_path):
    rows = [{"fold": i % 2, "point": i, "success": i < 3, "more": {"a": 1}} for i in range(4)]
    for name, text in (("x.json", json.dumps(rows)), ("x.jsonl", "\n".join(map(json.dumps, rows)))):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        assert "'success' is named like a score" in refused(path, metric="success")
        log = cvstats.read_log(path, metric="success", higher_is_better=True)
        assert log.tolist() == [0, 0, 0, 1]


def test_what_nobody_names_is_left_out(tmp_path):
    path = tmp_path / "x.jsonl"
    rows = [{"fold": i, "point": i, "loss": 0.5, "more": [1]} for i in (0, 1)]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    log = cvstats.read_log(path)
    assert log.index.names == ["fold", "point"]
    assert "nested" not in log.attrs


def test_a_path_that_is_not_there(tmp_path):
    assert refused(tmp_path / "resultz") == (
        "No such file: 'resultz'. Expected the path of a file or folder."
    )


def test_a_row_without_a_model_is_named():
    table = pd.DataFrame({"fold": [0, 1] * 2, "point": [0, 1] * 2, "model": ["a", "a", "b", None],
                          "y_true": 1.0, "y_pred": [1.0, 2.0, 3.0, 4.0]})  # fmt: skip
    refuses(r"the model of row 3 has no name\.", cvstats.read_log, table, loss="squared_error")
