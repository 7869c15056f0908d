"""The command on a table of patients: its messages to somebody who has read nothing."""

import json

import numpy as np
import pandas as pd
import pytest
from calls import run
from patients import MODELS, outcomes, patients

import cvstats

PREDICTED = ["--truth", "True Value", "--loss", "squared_error"]
BOTH = [*PREDICTED, "--prediction", MODELS[0], "--prediction", MODELS[1]]
POINT, FOLD, SOURCE = ["--point", "Patient ID"], ["--fold", "CV Split"], ["--source", "Hospital"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    table = patients(rng)
    table.to_csv("preds.csv", index=False)
    gap = table.copy()
    gap.loc[3, MODELS[1]] = np.nan
    gap.to_csv("gap.csv", index=False)
    gap.loc[7, MODELS[0]] = np.nan
    gap.to_csv("gaps.csv", index=False)
    outcomes(table).to_csv("prob.csv", index=False)
    acc = rng.integers(0, 2, 60)
    table[["Patient ID", "CV Split"]].assign(acc=acc).to_csv("acc.csv", index=False)
    scores = pd.DataFrame({"fold": range(5), "auc": rng.random(5), "f1": rng.random(5)})
    scores.to_csv("scores.csv", index=False)
    return tmp_path


def refused(capsys, *words):
    status, out, err = run(capsys, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    return err


# --- what is refused ------------------------------------------------------------------------------


def test_no_label_is_guessed(capsys, folder):
    words = ["--truth", "Outcome", "--prediction", "Prob", "--loss", "brier", *POINT, *FOLD]
    said = refused(capsys, "interval", "prob.csv", *words)
    assert "positive=" in said
    assert said.endswith("On the command line: --positive.\n")
    said = refused(capsys, "interval", "prob.csv", "--truth", "True Value", *words[2:])
    assert "the truth has 60 values. Expected 0 and 1" in said
    status, _, _ = run(capsys, "interval", "prob.csv", "--truth", "Outcome", *words[2:], *SOURCE,
                       "--positive", "yes")  # fmt: skip
    assert status == 0


@pytest.mark.parametrize(("loss", "columns", "options"), [
    ("f1", ("y", "a"), {"average": "macro"}),
    ("fbeta", ("y", "a"), {"average": "weighted", "beta": 2.0}),
    ("kappa", ("y", "a"), {"weights": "quadratic"}),
    ("partial_auc", ("late", "score"), {"max_fpr": 0.3}),
    ("auc", ("late", "score"), {"strata": "site"}),
])  # fmt: skip
def test_the_options_of_a_metric(capsys, tmp_path, loss, columns, options):
    rng = np.random.default_rng(3)
    score, y, guess = rng.random(90), rng.integers(0, 3, 90), rng.integers(0, 3, 90)
    frame = pd.DataFrame({"fold": np.arange(90) % 3, "id": range(90), "y": y, "a": guess,
                          "late": (rng.random(90) < score) * 1, "score": score,
                          "site": np.repeat(["s", "t"], 45)})  # fmt: skip
    frame.to_csv(tmp_path / "p.csv", index=False)
    truth, prediction = columns
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    status, out, _ = run(
        capsys, "interval", str(tmp_path / "p.csv"), "--format", "json", "--fold", "fold",
        "--point", "id", "--truth", truth, "--prediction", prediction, "--loss", loss, *words,
    )  # fmt: skip
    assert status == 0
    found = cvstats.losses(
        frame.set_index(["fold", "id"]).rename_axis(["fold", "point"]), truth, prediction,
        loss=loss, **options,
    )  # fmt: skip
    expected = cvstats.as_scores(found.cvci.interval())
    for name in ("estimate", "lower", "upper"):
        assert json.loads(out)["rows"][0][name] == pytest.approx(expected[name].item(), rel=1e-9)


def test_the_message_names_the_columns_of_the_file(capsys, folder):
    said = refused(capsys, "interval", "preds.csv")
    for column in ("True Value", MODELS[0], "CV Split", "Patient ID", "Hospital"):
        assert column in said
    assert "On the command line: --fold, --point, --metric, --truth, --prediction, --loss" in said


def test_one_model_is_not_compared(capsys, folder):
    words = [*PREDICTED, "--prediction", MODELS[0], *POINT, *FOLD, *SOURCE]
    said = refused(capsys, "compare", "preds.csv", *words)
    assert said == (
        "cvstats: the log has only one model. Expected at least two: pass a second file, or "
        "repeat --prediction for each model.\n"
    )


def test_columns_in_the_place_of_files(capsys, folder):
    words = ["compare", "preds.csv", *PREDICTED, *POINT, *FOLD, "--prediction", *MODELS]
    said = refused(capsys, *words)
    assert "No such file: 'Pred (XGB)'" in said
    assert said.endswith("--prediction accepts one column; repeat it for each model.\n")


def test_a_mistyped_file(capsys, folder):
    for words in ([], ["--prediction", "Ridge"]):
        assert refused(capsys, "interval", "pred.csv", *words) == (
            "cvstats: No such file: 'pred.csv'. Expected a log, such as log.parquet. Did you "
            "mean 'preds.csv'?\n"
        )
    assert "Did you mean" not in refused(capsys, "interval", "zzzzzz.parquet")
    assert "Did you mean" not in refused(capsys, "interval", "nowhere/preds.csv")
    assert "'gap.csv'" in refused(capsys, "compare", "x=preds.csv", "y=gapp.csv")
    said = refused(capsys, "interval", "pre*.csv", "--prediction", "Ridge")
    assert said.endswith("Patterns are not expanded. Pass a folder to read its files as one log.\n")


# --- notes beside the result ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "file", "format", "number"),
    [
        *(("compare", "gap.csv", format, 1) for format in ("csv", "json", "markdown", "table")),
        ("compare", "gaps.csv", "table", 2),
        ("compare", "preds.csv", "table", 0),
        ("interval", "gap.csv", "table", 1),
        ("interval", "gaps.csv", "csv", 2),
        ("interval", "preds.csv", "json", 0),
    ],
)
def test_evaluations_left_out_are_counted(capsys, folder, command, file, format, number):
    words = [*BOTH, *POINT, *FOLD, *SOURCE, "--missing", "drop", "--format", format]
    _, out, err = run(capsys, command, file, *words)
    counted = f"{number} evaluation{'s' * (number > 1)} dropped"
    note = f"cvstats: note: {counted}: the loss of some model is missing\n"
    assert err == note * (number > 0)
    assert counted not in out
    assert "left out" not in out


def test_a_report_counts_them_too(capsys, folder):
    _, _, err = run(capsys, "report", "gaps.csv", *BOTH, *POINT, "--missing", "drop")
    *unused, lost = err.splitlines()
    assert lost == "cvstats: note: 2 evaluations dropped: the loss of some model is missing"
    assert [line.split("'")[1] for line in unused] == ["CV Split", "Hospital"]


def test_columns_that_look_like_levels(capsys, folder):
    note = (
        "cvstats: note: the column {!r} is not used. If it contains folds, sources or repetitions, "
        "pass it as --fold, --source or --repetition.\n"
    )
    fold, group = note.format("CV Split"), note.format("Hospital")
    for command in ("interval", "compare", "methods", "diagnose"):
        assert run(capsys, command, "preds.csv", *BOTH, *POINT)[2] == fold + group
    assert run(capsys, "interval", "preds.csv", *BOTH, *POINT, *FOLD)[2] == group
    assert run(capsys, "interval", "preds.csv", *BOTH, *POINT, *FOLD, *SOURCE)[2] == ""
    _, _, err = run(capsys, "interval", "a=preds.csv", "b=preds.csv", *BOTH, *POINT, *FOLD)
    assert err == group
    metric = [*BOTH[:3], "rmse", *BOTH[4:], *POINT, *FOLD, "--by", "Hospital"]
    assert run(capsys, "interval", "preds.csv", *metric)[2] == ""
    # A label for each row is no group.
    table = pd.read_csv("preds.csv").assign(id=range(60)).drop(columns=["Hospital", "CV Split"])
    table.to_csv("single.csv", index=False)
    assert run(capsys, "interval", "single.csv", *BOTH, "--point", "id")[2] == ""


def test_of_a_saved_log_no_column_can_be_named(capsys, folder):
    run(capsys, "convert", "preds.csv", "log.csv", *BOTH, *POINT)
    status, out, err = run(capsys, "interval", "log.csv")
    assert (status, err) == (0, "")
    assert "caution, unused level: An index level that is not used may contain folds" in out


def test_scores_of_folds_are_read_as_scores(capsys, folder):
    status, _, err = run(capsys, "interval", "scores.csv")
    assert status == 2
    assert err.endswith("On the command line: --loss, --higher-is-better, --read-as.\n")
    words = ["--read-as", "scores", "--higher-is-better", "--n-train", "80", "--n-test", "20"]
    words += ["--format", "json"]
    status, out, _ = run(capsys, "interval", "scores.csv", *words)
    assert status == 0
    assert json.loads(out)["n_train"] == 80


# --- help -----------------------------------------------------------------------------------------


def test_help_says_what_each_level_is(capsys, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = run(capsys, "interval", "--help")
    assert "of the level" not in out
    assert "--empty" not in out
    lines = {line.split()[1]: line for line in out.splitlines() if line.startswith("│ --")}
    for option, words in {
        "--source": "patient, site, month",
        "--sample": "the resampled data set",
        "--outer": "nested cross-validation",
        "--count": "bootstrap",
        "--point": "the same for every model",
        "--repetition": "random split, seed or run",
    }.items():
        assert words in lines[option]
