"""Commands on files: they print the numbers of the functions, and refuse in one line."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from calls import run
from plotted import logged

import cvstats
from cvstats.cli.commands import number_or_text


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    predictions = cvstats.datasets.load("diabetes")
    cvstats.save_log(logged("diabetes"), folder / "log.csv")
    predictions.reset_index().to_csv(folder / "predictions.csv", index=False)
    tiny = pd.Series([1.0, 2.0], pd.RangeIndex(2, name="point"), name="m")
    cvstats.save_log(tiny, folder / "tiny.csv")
    (folder / "empty.csv").write_text("")
    (folder / "junk.csv").write_text("a,b\n1\n2,3,4,5\n")
    return folder


PREDICTED = ("--loss", "squared_error", "--truth", "y_true", "--prediction", "ridge",
             "--prediction", "random_forest")  # fmt: skip


def test_interval_in_json_has_every_digit(capsys, files):
    status, out, err = run(capsys, "interval", files / "log.csv", "--format", "json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    table = cvstats.interval(logged("diabetes"))
    for row, (model, expected) in zip(told["rows"], table.iterrows(), strict=True):
        assert row["model"] == model
        for name in ("estimate", "se", "lower", "upper"):
            assert row[name] == expected[name]
    for name in ("method", "alpha", "target", "guarantee", "reference", "reason"):
        assert told[name] == table.attrs[name]


def test_predictions_become_losses(capsys, files):
    words = ("compare", files / "predictions.csv", *PREDICTED, "--format", "json")
    status, out, _ = run(capsys, *words)
    (row,) = json.loads(out)["rows"]
    expected = cvstats.compare(logged("diabetes")[["ridge", "random_forest"]]).iloc[0]
    assert status == 0
    assert row["difference"] == pytest.approx(expected["difference"], rel=1e-12)
    assert (row["model"], row["other"]) == ("ridge", "random_forest")


def test_each_of_several_metrics_is_shown_in_its_own_direction(capsys, tmp_path):
    """As one metric is: the AUC, not 1 - AUC under its name."""
    flights = cvstats.datasets.load("flights")
    models = flights.attrs["models"][:2]
    log = cvstats.losses(flights, prediction=models, loss=["auc", "brier"])
    cvstats.save_log(log, tmp_path / "log.parquet")
    for name in ("interval", "compare"):
        asked = name, tmp_path / "log.parquet", "--by", "metric", "--format", "json"
        status, out, _ = run(capsys, *asked)
        rows = pd.DataFrame(json.loads(out)["rows"]).set_index("metric")
        for metric in ("auc", "brier"):
            own = log.xs(metric, level="metric", drop_level=False)
            result = getattr(cvstats, name)(own)
            expected = cvstats.as_scores(result) if metric == "auc" else result
            for column in ("lower", "upper"):
                np.testing.assert_allclose(rows.loc[[metric], column], expected[column])
        assert status == 0


@pytest.mark.parametrize("folds", ["average", "pool"])
def test_weights_and_folds_of_a_metric(capsys, tmp_path, folds):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"fold": np.arange(90) % 3, "point": range(90), "w": rng.random(90)})
    table = table.assign(y=rng.integers(0, 2, 90), score=rng.random(90))
    table.to_csv(path := tmp_path / "scores.csv", index=False)
    options = {"truth": "y", "prediction": "score", "folds": folds, "weight": "w"}
    expected = cvstats.losses(table, loss="auc", **options)
    pd.testing.assert_series_equal(cvstats.read_log(path, loss="auc", **options), expected)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    status, out, _ = run(capsys, "interval", path, "--loss", "auc", *words, "--format", "json")
    row = cvstats.as_scores(expected.cvci.interval()).iloc[0]
    assert status == 0
    assert json.loads(out)["rows"][0]["se"] == row["se"]
    with pytest.raises(cvstats.LogError, match="no column 'v', which weight= names"):
        cvstats.read_log(path, loss="auc", **{**options, "weight": "v"})


def test_options_of_compare(capsys, files):
    words = ("--reference", "ridge", "--alternative", "greater", "--adjust", "none")
    _, out, _ = run(capsys, "compare", files / "log.csv", *words, "--format", "json")
    told = json.loads(out)
    table = cvstats.compare(
        logged("diabetes"), reference="ridge", alternative="greater", adjust=None
    )
    assert [row["p_value"] for row in told["rows"]] == table["p_value"].tolist()
    assert [row["upper"] for row in told["rows"]] == [None, None]  # infinite
    words = ("--adjust", "max-t", "--seed", "4", "--method", "wald", "--format", "json")
    _, out, _ = run(capsys, "compare", files / "log.csv", *words)
    assert json.loads(out)["seed"] == 4
    for words in ((), ("--adjust", "none")):
        _, out, _ = run(capsys, "compare", files / "log.csv", *words)
        assert "ridge - random_forest" in out
        assert out.startswith("None of the 3 models is") == (not words)


def test_convert_makes_a_log_of_predictions(capsys, files, tmp_path):
    log = tmp_path / "log.jsonl"
    status, out, _ = run(capsys, "convert", files / "predictions.csv", "-o", log, *PREDICTED)
    assert status == 0
    assert out == f"wrote {log}: 442 points, 10 repetitions, 10 folds, 2 models\n"
    back = cvstats.read_log(log)
    np.testing.assert_allclose(back["ridge"].sort_index(), logged("diabetes")["ridge"].sort_index())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["interval", "nowhere.csv"], "No such file: 'nowhere.csv'"),
        (["interval"], "FILE"),
        (["interval", "log.csv", "--format", "xml"], "xml"),
        # Releases of cyclopts word it differently; each names option, value and choices.
        (["interval", "log.csv", "--method", "best"], "--method"),
        (["interval", "log.csv", "--method", "best"], "Invalid method='best'"),
        (["interval", "log.csv", "--method", "best"], "bootstrap_632"),
        (["interval", "log.csv", "--alpha", "2"], "alpha=2.0 is out of range"),
        (["interval", "empty.csv"], "empty"),
        (["interval", "junk.csv"], ""),
        (["interval", "predictions.csv"], "prediction"),
        (["compare", "tiny.csv"], "one model"),
        (["compare", "log.csv", "--reference", "lasso"], "lasso"),
        (["report", "log.csv", "-o", "no/where.html"], "could not write"),
        (["convert", "log.csv", "log.xlsx"], "log.xlsx"),
        (["diagnose", "log.csv", "--read-as", "abacus"], "abacus"),
        (["completion", "cmd"], "cmd"),
        (["intervals", "log.csv"], "intervals"),
        (["dmeo"], "demo"),
        (["demo", "--alpha", "often"], "often"),
        (["demo", "--alpha", "5"], "alpha=5.0 is out of range. Expected an error rate between"),
        (["demo", "--beta", "1"], "--beta"),
        (["demo", "more"], "more"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, files, monkeypatch, words, said):
    monkeypatch.chdir(files)
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith("cvstats: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.process
def test_a_reader_who_leaves_ends_the_command_quietly(files):
    code = "import sys; from cvstats.cli import main; sys.exit(main(['methods', 'log.csv']))"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], cwd=files, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_summary_as_rows(capsys, files):
    log = files / "log.csv"
    rows = pd.read_csv(io.StringIO(run(capsys, "summary", log, "--format", "csv")[1]), dtype=object)
    found = [tuple(row) for row in rows.fillna("").to_numpy()]
    assert found == [*cvstats.summary(logged("diabetes")).rows()]
    _, out, _ = run(capsys, "summary", log, "--by", "repetition", "--format", "csv")
    rows = pd.read_csv(io.StringIO(out))
    assert rows.columns.tolist() == ["repetition", "caution", "sentence", "advice"]
    assert rows["repetition"].unique().tolist() == [*range(10)]


@pytest.mark.parametrize(
    "command",
    ["interval", "compare", "summary", "report", "methods", "diagnose", "convert", "best-set",
     "equivalence", "power", "contrast"],
)  # fmt: skip
def test_help_shows_an_example_and_how_to_read(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "100")
    status, out, _ = run(capsys, command, "--help")
    flat = " ".join(out.split())
    assert status == 0
    assert f"Example: cvstats {command} " in flat
    for option in ("--read-as", "--loss", "--truth", "--prediction", "--fold"):
        assert option in flat
    assert "--reading" not in flat


@pytest.mark.parametrize(
    ("word", "label"), [("1", 1), ("-2", -2), ("1.5", 1.5), (".5", 0.5), ("1a", "1a"), ("a", "a")]
)
def test_labels_that_are_numbers_are_read_as_numbers(word, label):
    found = number_or_text(word)
    assert (found, type(found)) == (label, type(label))
