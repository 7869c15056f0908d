"""What the command refuses, in the words of its options; and files that it never writes over."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from plotted import logged
from rows import only_row

import cvstats
from cvstats import cli
from cvstats.cli.wording import as_options


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
    status = cli.main(words.split())
    captured = capsys.readouterr()
    assert captured.err.count("\n") == (1 if status else 0)
    return status, captured.out, captured.err


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
    assert f"'{output.removeprefix('./')}' is the file that is read" in err
    assert "Expected another name for the output" in err
    assert (files / "odd.csv").read_bytes() == before
    status, _, _ = run(capsys, f"convert hard.csv new.csv {ODD}")
    assert status == 0
    assert cvstats.read_log("new.csv").shape == (10, 2)


def test_a_store_is_not_replaced_by_what_it_holds(capsys, files):
    (files / "log.zarr").mkdir()
    (files / "odd.csv").rename(files / "log.zarr" / "odd.csv")
    status, _, err = run(capsys, f"convert log.zarr/odd.csv log.zarr {ODD}")
    assert status == 2
    assert "writing would replace it" in err
    assert (files / "log.zarr" / "odd.csv").exists()


def test_report_does_not_replace_what_it_reads(capsys, files):
    (files / "both.csv").rename(files / "log.htm")
    before = (files / "log.htm").read_bytes()
    for more in ("", "m=log.htm"):
        status, _, err = run(capsys, f"report log.htm {more} --read-as csv -o log.htm")
        assert status == 2
        assert "'log.htm' is the file that is read" in err
    assert (files / "log.htm").read_bytes() == before


@pytest.mark.parametrize("name", ["r.pdf", "both.csv", "r.md"])
def test_a_report_is_called_html(capsys, files, name):
    before = (files / "both.csv").read_bytes()
    status, _, err = run(capsys, f"report both.csv -o {name}")
    assert status == 2
    assert f"{name} ends in '.{name[-3:].strip('.')}', and the report is a page of HTML" in err
    assert f"a name such as {name.partition('.')[0]}.html" in err
    assert (files / "both.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["r.html", "R.HTM", "page"])
def test_names_of_reports(capsys, files, name):
    status, out, _ = run(capsys, f"report both.csv -o {name}")
    assert (status, out) == (0, f"wrote {name}\n")
    assert (files / name).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


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
    assert "cvstats interval scores.csv --read-as scores --n-train 90 --n-test 10" in err
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
    assert out.splitlines()[1].split(",")[1] == str(only_row(cvstats.corrected_t(log))["estimate"])


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
        ("interval odd", "or say it, as in --read-as csv"),
        ("interval odd --read-as abacus", "--read-as abacus is not known"),
        ("interval odd.csv", "as in cvstats interval odd.csv --fold … --point … --metric …"),
        ("compare odd.csv --loss err --fold split", "they differ: --point or --repetition."),
        ("diagnose odd.csv --loss err --fold splt", "Perhaps you meant 'split'"),
        ("interval plain.csv --prediction ridge", "--truth … --prediction … --loss squared_error"),
        ("interval plain.csv --filter f", "does not use --filter"),
        ("interval both.csv --truth y", "Expected --loss with them, as in --loss squared_error"),
        ("interval both.csv --prediction lasso", "and --prediction names 'lasso'"),
        ("interval both.csv --method best", "--method best is not known"),
        ("interval both.csv --alpha 2", "--alpha 2.0 is out of range"),
        ("interval scores.csv --read-as scores --repetition run", "Expected --higher-is-better "
         "(accuracy, R2, neg_…), or --no-higher-is-better (errors)"),
        ("interval odd.csv --loss lossy --fold split", "--loss lossy is not known"),
    ],
)  # fmt: skip
def test_advice_is_about_options(capsys, files, words, said):
    (files / "odd").write_bytes((files / "odd.csv").read_bytes())
    status, out, err = run(capsys, words)
    assert (status, out) == (2, "")
    assert said in err
    assert "read_log" not in err
    assert "None" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # Labels of a log are no options.
        ("appears twice: fold=2, point='a'; fold=3, point='b'", None),
        ("fold=2 has no loss for model='ridge'", None),
        # What needs Python stays Python, and says so.
        ("Pass the truth: read_log(path, y=y, loss=…).",
         "Pass the truth: in Python, read_log(path, y=y, loss=…)."),
        ("as in read_log({'ridge': 'a/x.csv', …}).", "as in cvstats interval ridge=a/x.csv …."),
        ("choose: interval(losses, method='corrected_t').",
         "choose: cvstats interval FILE --method corrected_t."),
        ("as in fold='cv split', point='id'.", "as in --fold 'cv split' --point id."),
        ("such as repetition= or model=.", "such as --repetition or --model."),
        ("read_log(path, prediction=['a', 'b'])",
         "cvstats interval FILE --prediction a --prediction b"),
        ("with cvstats.save_log.", "with cvstats convert."),
        ("see cvstats.methods(losses)", "see cvstats methods FILE"),
        ("pass X= and X=1", None),  # no option
    ],
)  # fmt: skip
def test_translation(words, said):
    assert as_options(words, "interval") == (words if said is None else said)


def test_words_of_other_commands_stay():
    words = "as in format='csv'"
    assert as_options(words, "demo") == words
    assert as_options(words, None) == words
    assert as_options("rng=3", "compare") == "--seed 3"
    assert as_options("method='wald'", "report") == "method='wald'"
