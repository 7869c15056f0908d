"""Streams and terminals: what is closed, interrupted, of few letters, or full of controls."""

import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calls import run as told
from packaging.version import Version
from tool_logs import LOGS

import cvstats
from cvstats import cli
from cvstats.cli import align
from cvstats.errors import LogError

COMMAND = str(Path(sysconfig.get_path("scripts")) / "cvstats")


@pytest.fixture
def saved(tmp_path):
    rng = np.random.default_rng(1)
    index = pd.MultiIndex.from_arrays([np.arange(40) % 5, np.arange(40)], names=["fold", "point"])
    log = pd.DataFrame(rng.random((40, 2)), index=index, columns=["forêt", "arbre"])
    cvstats.save_log(log, tmp_path / "log.csv")
    return tmp_path / "log.csv"


def written(monkeypatch, encoding, *words):
    """The bytes that the command writes to a stream of this encoding."""
    out = io.BytesIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
        assert cli.main(list(words)) == 0
        return out.getvalue()


@pytest.mark.parametrize("words", [["methods", "FILE"], ["demo"], ["interval", "FILE"]])
def test_a_terminal_that_knows_few_letters(monkeypatch, capsys, saved, words):
    words = [str(saved) if word == "FILE" else word for word in words]
    out = written(monkeypatch, "ascii", *words)
    assert b"?" in out
    assert out.isascii()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_json_loses_no_letter(monkeypatch, saved, encoding):
    out = written(monkeypatch, encoding, "interval", str(saved), "--format", "json")
    rows = json.loads(out.decode(encoding))["rows"]
    assert [row["model"] for row in rows] == ["forêt", "arbre"]
    assert ("ê".encode() in out) == (encoding == "utf-8")


@pytest.mark.parametrize("words", [["interval", "-"], ["interval", "-", "--read-as", "csv"]])
def test_standard_input_is_not_read(capsys, words):
    status, out, err = told(capsys, *words)
    assert (status, out) == (2, "")
    assert err == (
        "cvstats: cannot read standard input. Save it to a file first, and pass the path of the "
        "file.\n"
    )


@pytest.fixture
def piped():
    """A pipe as standard input."""
    usual = os.dup(0)
    end, start = os.pipe()
    os.write(start, b"fold,loss\n")
    os.dup2(end, 0)
    yield
    os.dup2(usual, 0)
    for opened in (usual, end, start):
        os.close(opened)


@pytest.mark.usefixtures("piped")
@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="no such file here")
@pytest.mark.parametrize("more", [[], ["--read-as", "csv"]])
def test_standard_input_by_its_name(capsys, more):
    status, out, err = told(capsys, "interval", "/dev/stdin", *more)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "'/dev/stdin' is a pipe or a device, not a file. Standard input" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["interval", "x" * 5000 + ".csv"], "cannot be opened: File name too long"),
        (["compare", "a=" + "x" * 5000, "b.csv"], "cannot be opened: File name too long"),
        (["interval", "x,y\n" * 300], "is text, not a path"),
        (["interval", "no " * 50 + ".csv"], "No such file: 'no no"),
    ],
)
def test_names_that_no_file_has(capsys, words, said):
    status, out, err = told(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert len(err) < 300


def test_runs_are_told(capsys, tmp_path):
    (path,) = (LOGS / "lm_eval" / "alpha").glob("samples_parity_*.jsonl")
    (tmp_path / "alpha").mkdir()
    for day in (1, 2):
        name = f"samples_parity_2026-01-0{day}T10-00-00.jsonl"
        (tmp_path / "alpha" / name).write_bytes(path.read_bytes())
    status, _, err = told(capsys, "interval", str(tmp_path / "alpha"), "--metric", "acc")
    assert status == 0
    assert err == (
        "cvstats: note: read was alpha/samples_parity_2026-01-02T10-00-00.jsonl (the newest of 2 "
        "runs).\n"
    )
    log = json.loads((LOGS / "inspect_alpha.json").read_text("utf-8")) | {"status": "cancelled"}
    (tmp_path / "part.json").write_text(json.dumps(log), "utf-8")
    status, _, err = told(capsys, "interval", str(tmp_path / "part.json"))
    assert status == 0
    assert "note: this inspect run did not finish (status 'cancelled'): 40" in err


def test_gaps_of_one_file_in_a_comparison(capsys):
    files = [str(LOGS / f"inspect_{name}.json") for name in ("alpha", "beta")]
    status, out, err = told(capsys, "compare", *files, "--missing", "drop", "--format", "json")
    assert status == 0
    assert json.loads(out)["n_points"] == 19
    assert "note: 1 sample ended in an error; 1 sample with a gap dropped from every epoch" in err
    assert "note: 2 evaluations dropped: the loss of some model is missing" in err


# --- closed and interrupted -----------------------------------------------------------------------


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the tests run in the background and the shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("stage", ["read_files", "format_result"])
def test_ctrl_c_ends_the_command_quietly(capsys, saved, monkeypatch, stage):
    monkeypatch.setattr(
        f"cvstats.cli.commands.{stage}", lambda *_, **__: signal.raise_signal(signal.SIGINT)
    )
    assert told(capsys, "interval", str(saved)) == (130, "", "")


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_that_a_parser_takes_for_a_broken_file(capsys, saved, monkeypatch):
    def read(*_, **__):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise LogError("log.csv could not be read: Calling read(nbytes) on source failed.")

    monkeypatch.setattr("cvstats.cli.commands.read_files", read)
    assert told(capsys, "interval", str(saved)) == (130, "", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_stays_ignored_where_it_was(capsys, saved, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    monkeypatch.setattr(
        "cvstats.cli.commands.note_dropped", lambda *_: signal.raise_signal(signal.SIGINT)
    )
    try:
        assert told(capsys, "interval", str(saved))[0] == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("words", [["demo"], ["dmeo"]])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_without_a_stream_nothing_goes_to_the_other(capsys, monkeypatch, words, stream):
    wrong = words == ["dmeo"]
    monkeypatch.setattr(sys, stream, None)
    assert cli.main(words) == (2 if wrong else 0)
    captured = capsys.readouterr()
    assert bool(captured.out) == (stream == "stderr" and not wrong)
    assert bool(captured.err) == (stream == "stdout" and wrong)


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such file here")
@pytest.mark.parametrize(
    ("words", "stream", "status", "other"),
    [
        ("demo", "stdout", 2, b"cvstats: [Errno 28] No space left on device\n"),
        ("dmeo", "stderr", 2, b""),
    ],
)
def test_a_full_disk_is_one_line(words, stream, status, other):
    with open("/dev/full", "wb") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: full}
        done = subprocess.run([COMMAND, words], check=False, **streams)
    assert done.returncode == status
    assert (done.stderr if stream == "stdout" else done.stdout) == other


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="closes a stream by a shell")
@pytest.mark.parametrize(("words", "status"), [("demo >&-", 0), ("dmeo 2>&-", 2), ("demo 2>&-", 0)])
def test_closed_streams(words, status):
    if "2>&-" in words and Version(np.__version__) < Version("2.1"):
        pytest.skip("numpy 2.0 itself cannot be imported without a standard error stream")
    done = subprocess.run(f"exec '{COMMAND}' {words}", shell=True, capture_output=True, check=False)
    assert done.returncode == status
    assert done.stderr == b""
    assert bool(done.stdout) == (words == "demo 2>&-")


# --- control characters ---------------------------------------------------------------------------

EVIL = "a\x1b]0;title\x07\x1b[2Jb\x9b31m\rc"


@pytest.fixture
def evil(tmp_path):
    """A log whose models and labels hold what a terminal would obey."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"fold": np.arange(40) % 5, "point": np.arange(40), EVIL: rng.random(40),
                          "b\x1b[1m": rng.random(40)})  # fmt: skip
    frame.set_index(["fold", "point"]).to_parquet(tmp_path / "evil.parquet")
    frame.drop(columns="b\x1b[1m").rename(columns={"point": f"p{EVIL}"}).to_parquet(
        tmp_path / "table.parquet"
    )
    return tmp_path


def is_clean(text):
    return all(
        letter == "\n" or ord(letter) > 0x9F or 0x20 <= ord(letter) < 0x7F for letter in text
    )


@pytest.mark.parametrize(
    ("command", "format"),
    [
        *(("interval", format) for format in ("table", "json", "csv", "markdown")),
        *((command, "table") for command in ("compare", "methods", "diagnose")),
    ],
)
def test_control_characters_do_not_reach_the_terminal(capsys, evil, command, format):
    status, out, err = told(capsys, command, str(evil / "evil.parquet"), "--format", format)
    assert status == 0
    assert is_clean(out + err)
    if command == "interval":
        assert "\\u001b" in out
    if command == "interval" and format == "json":
        assert [row["model"] for row in json.loads(out)["rows"]] == [EVIL, "b\x1b[1m"]


def test_control_characters_of_messages(capsys, evil):
    log, table = str(evil / "evil.parquet"), str(evil / "table.parquet")
    for words in (
        ["compare", log, "--reference", f"no{EVIL}"],
        ["interval", table, "--metric", f"x{EVIL}"],
        ["interval", table],
        ["interval", f"nowhere{EVIL}.csv"],
        ["interval", log, "--format", EVIL],
        ["convert", log, f"nowhere{EVIL}/x.csv"],
    ):
        status, out, err = told(capsys, *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert is_clean(err)


@pytest.mark.process
def test_the_package_is_a_command(saved):
    words = [sys.executable, "-m", "cvstats", "interval", str(saved), "--format", "json"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert len(json.loads(done.stdout)["rows"]) == 2


INTERRUPTED = """
import os, signal, sys
import cvstats_command

class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
sys.meta_path.insert(0, Interrupt)
sys.exit(cvstats_command.main())
"""


@pytest.mark.process
def test_ctrl_c_while_the_command_is_imported():
    root = Path(cvstats.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=root, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_tables_and_sentences_fit_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    rows = [["model", *(f"column {k}" for k in range(9))], ["forest", *"123456789"]]
    text = align(rows)
    assert max(map(len, text.splitlines())) <= columns
    assert sorted(text.split()) == sorted([*" ".join(sum(rows, [])).split(),
                                           *["model", "forest"] * text.count("\n\n")])  # fmt: skip
    words = cvstats.methods(pd.Series(np.arange(40.0))).write(columns)
    assert max(map(len, words.splitlines())) <= columns
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert align(rows).count("\n") == 1  # what is read by another program has whole lines
