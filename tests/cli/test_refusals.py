"""What the command refuses, in the words of its options; and files that it never writes over."""

import os

import calls
import numpy as np
import pandas as pd
import pytest
from plotted import logged
from rows import only_row

import cvstats
from cvstats.cli import add_options, option_names
from cvstats.cli.commands import compare, demo, interval, report
from cvstats.reporting.page import Report


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    rows = [(i, i % 3, model, rng.random()) for model in "ab" for i in range(10)]
    pd.DataFrame(rows, columns=["id", "split", "model", "err"]).to_csv("odd.csv", index=False)
    both = logged("diabetes")[["ridge", "random_forest"]]
    cvstats.save_log(both, "both.csv")
    both.reset_index().to_csv("plain.csv", index=False)
    pd.DataFrame({"run": range(8), "acc": rng.random(8)}).to_csv("scores.csv", index=False)
    return tmp_path


def run(capsys, words):
    status, out, err = calls.run(capsys, *words.split())
    assert err.count("\n") == (1 if status else 0)
    return status, out, err


# --- files that are written -----------------------------------------------------------------------

ODD = "--loss err --fold split --point id"


@pytest.mark.parametrize(
    "output", ["odd.csv", "./odd.csv", "sub/../odd.csv", "link.csv", "hard.csv"]
)
def test_convert_does_not_replace_what_it_reads(capsys, files, output):
    (files / "sub").mkdir()
    (files / "link.csv").symlink_to("odd.csv")
    os.link("odd.csv", "hard.csv")
    before = (files / "odd.csv").read_bytes()
    status, out, err = run(capsys, f"convert odd.csv {output} {ODD}")
    assert (status, out) == (2, "")
    assert f"'{output.removeprefix('./')}' is also an input file" in err
    assert "Use another name for the output" in err
    assert (files / "odd.csv").read_bytes() == before
    status, _, _ = run(capsys, f"convert hard.csv new.csv {ODD}")
    assert status == 0
    assert cvstats.read_log("new.csv").shape == (10, 2)


def test_a_store_is_not_replaced_by_what_it_holds(capsys, files):
    (files / "log.zarr").mkdir()
    (files / "odd.csv").rename(files / "log.zarr" / "odd.csv")
    status, _, err = run(capsys, f"convert log.zarr/odd.csv log.zarr {ODD}")
    assert status == 2
    assert "would be overwritten" in err
    assert (files / "log.zarr" / "odd.csv").exists()


def test_report_does_not_replace_what_it_reads(capsys, files):
    (files / "both.csv").rename(files / "log.htm")
    before = (files / "log.htm").read_bytes()
    for more in ("", "m=log.htm"):
        status, _, err = run(capsys, f"report log.htm {more} --read-as csv -o log.htm")
        assert status == 2
        assert "'log.htm' is also an input file" in err
    assert (files / "log.htm").read_bytes() == before


@pytest.mark.parametrize("name", ["r.pdf", "both.csv", "r.md"])
def test_a_report_is_called_html(capsys, files, name):
    before = (files / "both.csv").read_bytes()
    status, _, err = run(capsys, f"report both.csv -o {name}")
    assert status == 2
    assert f"{name} ends in '.{name[-3:].strip('.')}', but the report is an HTML page" in err
    assert f"a name such as {name.partition('.')[0]}.html" in err
    assert (files / "both.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("flag", "name"), [("-o", "r.html"), ("--output", "R.HTM"), ("-o", "page")]
)
def test_names_of_reports(capsys, files, monkeypatch, flag, name):
    made = Report(("A verdict.",), [])  # instead of plots, which take seconds
    monkeypatch.setattr("cvstats.reporting.page.make_report", lambda *_: made)
    status, out, _ = run(capsys, f"report both.csv {flag} {name}")
    assert (status, out) == (0, f"wrote {name}\n")
    page = (files / name).read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "Report on both.csv" in page


# --- options --------------------------------------------------------------------------------------


def test_prediction_chooses_models_of_a_saved_log(capsys, files):
    _, out, _ = run(capsys, "interval both.csv --prediction ridge --format csv")
    assert [line.partition(",")[0] for line in out.splitlines()] == ["model", "ridge"]
    log = cvstats.read_log("both.csv", prediction=["random_forest"])
    assert list(log) == ["random_forest"]
    assert cvstats.read_log("both.csv", prediction="ridge").name == "ridge"


def test_scores_of_random_splits(capsys, files):
    words = "interval scores.csv --read-as scores --repetition run --higher-is-better"
    status, _, err = run(capsys, words)
    assert status == 2
    assert "n_train" in err
    assert "On the command line:" in err
    status, out, _ = run(capsys, f"{words} --n-train 90 --n-test 10 --format csv")
    log = cvstats.read_log(
        "scores.csv",
        format="scores",
        repetition="run",
        higher_is_better=True,
        n_train=90,
        n_test=10,
    )
    assert status == 0
    score = -only_row(cvstats.corrected_t(log))["estimate"]
    assert out.splitlines()[1].split(",")[1] == str(score)


def test_the_class_of_a_probability(capsys, files):
    table = pd.DataFrame({"fold": [0, 0, 1, 1], "point": range(4), "y_true": [1, 0, 1, 0]})
    table.assign(y_pred=[0.9, 0.2, 0.7, 0.4]).to_csv("p.csv", index=False)
    for cut, share in (("0.6", "0.0"), ("0.8", "0.25")):
        options = f"--loss zero_one --threshold {cut} --positive 1 --format csv"
        status, out, _ = run(capsys, f"interval p.csv {options}")
        assert status == 0
        assert out.splitlines()[1].startswith(f"loss,{share},")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("interval odd", "as in format='csv'. On the command line: --read-as."),
        ("interval odd.csv", "line: --fold, --point, --metric, --truth, --prediction, --loss."),
        ("compare odd.csv --loss err --fold split", "point"),
        ("diagnose odd.csv --loss err --fold splt", "Did you mean 'split'"),
        ("interval plain.csv --prediction ridge", "--metric, --truth, --prediction"),
        ("interval plain.csv --filter f", "filter"),
        ("interval both.csv --truth y", "On the command line: --truth, --prediction, --loss."),
        ("interval both.csv --prediction lasso", "prediction= names 'lasso'"),
        ("interval scores.csv --read-as scores --repetition run", "--higher-is-better"),
        ("interval odd.csv --loss lossy --fold split", "Unknown loss 'lossy'"),
    ],
)
def test_advice_names_options(capsys, files, words, said):
    (files / "odd").write_bytes((files / "odd.csv").read_bytes())
    status, out, err = run(capsys, words)
    assert (status, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("message", "options"),
    [
        # Labels of a log are not options, and neither is what a command does not have.
        ("a duplicate: fold=2, point='a'; fold=3, point='b'", ""),
        ("fold=2 has no loss for model='ridge'", ""),
        ("pass X= and y=", ""),
        (
            "at fold=2, point='a'. Name the column: repetition= or model= or source=.",
            "--repetition, --model, --source",
        ),
        ("as in read_log(path, fold='split', point='id').", "--fold, --point"),
        ("read_log(path, y=y, loss=…) or loss=…", "--loss"),
        ("higher_is_better=True", "--higher-is-better"),
        ("format='csv', alpha=0.1", "--read-as, --alpha"),
        ("rng=3", ""),
    ],
)
def test_options_of_arguments(message, options):
    expected = f"{message} On the command line: {options}." if options else message
    assert add_options(message, option_names(interval)) == expected


def test_options_are_those_of_the_command():
    assert add_options("rng=3", option_names(compare)).endswith("On the command line: --seed.")
    assert add_options("method='wald'", option_names(report)) == "method='wald'"
    assert add_options("format='csv'", option_names(demo)) == "format='csv'"


def test_the_size_of_the_training_sets(capsys, tmp_path):
    rows = [(split, point, (point + split) % 3) for split in range(6) for point in range(split, 9)]
    table = pd.DataFrame(rows, columns=["repetition", "point", "loss"])
    table.to_csv(path := tmp_path / "splits.csv", index=False)
    status, _, err = run(capsys, f"summary {path}")
    assert (status, err.rstrip().endswith("= 90. On the command line: --n-train.")) == (2, True)
    status, out, _ = run(capsys, f"summary {path} --n-train 90")
    log = cvstats.as_log(table)
    log.attrs["n_train"] = 90
    assert (status, " ".join(out.split())) == (0, str(log.cvci.summary()).replace("\n", " "))
