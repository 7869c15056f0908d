"""Several files for several models on the command line, and words completed by the shell."""

import json
import shutil
import subprocess
import sysconfig

import calls
import numpy as np
import pytest
from plotted import logged, write_without_marks
from rows import only_row
from tool_logs import LOGS

import cvstats
from cvstats import cli
from cvstats.errors import LogError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    losses = logged("diabetes")[["ridge", "random_forest"]]
    (folder / "again").mkdir()
    cvstats.save_log(losses["ridge"], folder / "a.parquet")
    cvstats.save_log(losses["ridge"], folder / "again" / "a.parquet")
    cvstats.save_log(losses["random_forest"].sample(frac=1, random_state=1), folder / "b.csv")
    cvstats.save_log(losses, folder / "both.csv")
    cvstats.save_log(losses["ridge"].iloc[:-2], folder / "short.csv")
    for name in ("ridge", "random_forest"):
        cvstats.save_log(losses[name].to_xarray(), folder / f"{name}.nc")
        table = cvstats.datasets.load("diabetes")[["y_true", name]].rename(columns={name: "y_pred"})
        table.reset_index().to_csv(folder / f"{name}_predicted.csv", index=False)
        cvstats.save_log(table, folder / f"{name}_predicted.parquet")
    return folder


def run(capsys, folder, monkeypatch, *words):
    monkeypatch.chdir(folder)
    return calls.run(capsys, *words)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["a.parquet", "b.csv"], ["a", "b"]),
        (["ridge=a.parquet", "forest=b.csv"], ["ridge", "forest"]),
        (["a.parquet", "forest=b.csv"], ["a", "forest"]),
        (["ridge.nc", "random_forest.nc"], ["ridge", "random_forest"]),
        (
            ["r=ridge_predicted.csv", "f=random_forest_predicted.csv", "--loss", "squared_error"],
            ["r", "f"],
        ),
        (
            ["r=ridge_predicted.parquet", "f=random_forest_predicted.parquet", "--loss",
             "squared_error"],
            ["r", "f"],
        ),
    ],
)  # fmt: skip
def test_a_model_in_each_file(capsys, files, monkeypatch, words, names):
    words = ["compare", *words, "--format", "json"]
    status, out, err = run(capsys, files, monkeypatch, *words)
    assert (status, err) == (0, "")
    (row,) = json.loads(out)["rows"]
    expected = only_row(cvstats.compare(logged("diabetes")[["ridge", "random_forest"]]).iloc[0])
    assert [row["model"], row["other"]] == names
    for name in ("difference", "se", "p_value"):
        np.testing.assert_allclose(row[name], expected[name], rtol=1e-12)


def test_files_of_several_models_have_longer_names(capsys, files, monkeypatch):
    words = ["interval", "b.csv", "all=both.csv", "--format", "json"]
    _, out, _ = run(capsys, files, monkeypatch, *words)
    rows = json.loads(out)["rows"]
    assert [row["model"] for row in rows] == ["b", "all/ridge", "all/random_forest"]
    assert rows[0]["se"] == rows[2]["se"]
    _, out, _ = run(capsys, files, monkeypatch, "interval", "r=a.parquet", "--format", "json")
    assert json.loads(out)["rows"][0]["model"] == "r"


def test_every_command_takes_several_files(capsys, files, monkeypatch, tmp_path):
    monkeypatch.setattr("cvstats.reporting.page.draw_svg", write_without_marks)
    page = str(tmp_path / "page.html")
    status, _, _ = run(capsys, files, monkeypatch, "report", "r=a.parquet", "b.csv", "-o", page)
    assert status == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Report on a.parquet and b.csv" in text
    assert '<th scope="row">r</th>' in text
    for command in ("methods", "diagnose"):
        assert run(capsys, files, monkeypatch, command, "a.parquet", "b.csv")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.parquet", "short.csv"], "'a' (first) and 'short' (second): the models were not "
         "evaluated on the same points: only the first log has repetition=9"),
        (["a.parquet", "again/a.parquet"], "two files are called 'a', but models are named after "
         "their files. Pass names: a1=a.parquet"),
        (["a.parquet", "ridge.nc"], "a Series cannot be compared to a DataArray"),
        (["a.parquet", "ridge_predicted.csv"], "'a' is a log of cvstats, and 'ridge_predicted' is "
         "not. Expected files of one kind"),
        (["a.parquet", "b.csv", "--fold", "k"], "a saved log does not use fold="),
        (["a.parquet", "nowhere.csv"], "No such file: 'nowhere.csv'"),
        (["a.parquet", "b=nowhere.csv"], "No such file: 'nowhere.csv'"),
    ],
)  # fmt: skip
def test_files_that_do_not_go_together(capsys, files, monkeypatch, words, said):
    status, out, err = run(capsys, files, monkeypatch, "compare", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_samples_that_ended_in_an_error_are_left_out_when_asked(
    capsys, files, monkeypatch, tmp_path
):
    words = ["convert", str(LOGS / "inspect_beta.json"), str(tmp_path / "log.csv")]
    status, _, err = run(capsys, files, monkeypatch, *words)
    assert status == 2
    assert "On the command line: --missing." in err
    status, out, err = run(capsys, files, monkeypatch, *words, "--missing", "drop")
    assert status == 0
    assert "19 points, 2 repetitions" in out
    assert err == (
        "cvstats: note: 1 sample ended in an error; 1 sample with a gap dropped from every epoch\n"
    )
    assert len(cvstats.read_log(tmp_path / "log.csv")) == 38
    status, _, err = run(capsys, files, monkeypatch, "interval", str(tmp_path / "log.csv"))
    assert (status, err) == (0, "")  # the saved log is complete as it stands


def test_logs_of_several_files_in_python(files):
    both = cvstats.read_log([files / "a.parquet", files / "b.csv"])
    assert both.columns.tolist() == ["a", "b"]
    assert both.columns.name == "model"
    named = cvstats.read_log({"ridge": files / "a.parquet", "random_forest": files / "b.csv"})
    np.testing.assert_array_equal(named, logged("diabetes")[["ridge", "random_forest"]])
    assert named.attrs == logged("diabetes").attrs
    with pytest.raises(LogError, match="two files are called 'a'"):
        cvstats.read_log([files / "a.parquet", files / "again" / "a.parquet"])


def test_completion_is_printed(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["completion", "bash"]) == 0
    out = capsys.readouterr().out
    assert "cvstats" in out
    assert "diagnose" in out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_is_installed(capsys, tmp_path, monkeypatch, shell):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZSH_CUSTOM", raising=False)
    assert cli.main(["completion", shell, "--install"]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {tmp_path}")
    written = [path.read_text() for path in tmp_path.rglob("*cvstats*") if path.is_file()]
    assert len(written) == 1
    assert "diagnose" in written[0]


TRY = """
eval "$("$1" completion bash)"
complete -p cvstats >/dev/null || exit 1
call=$(complete -p cvstats | sed 's/.*-F \\([^ ]*\\).*/\\1/')
try() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    "$call" cvstats "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[@]}"
}
try cvstats in
try cvstats compare --ref
try cvstats compare a.parquet --adjust ""
try cvstats interval a
"""


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="asks a real bash, and there is none")
def test_a_real_bash_completes(files):
    done = subprocess.run(
        ["bash", "--norc", "-c", TRY, "bash", f"{sysconfig.get_path('scripts')}/cvstats"],
        cwd=files, capture_output=True, check=True, encoding="utf-8",
    )  # fmt: skip
    *words, names = done.stdout.splitlines()
    assert words == ["interval", "--reference", "holm bonferroni bh fdr max-t none"]
    assert set(names.split()) == {"a.parquet", "again"}
