"""Two commits side by side, on a repository of two commits whose package only waits."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OLD = """
import time

def wald(losses, **options):
    time.sleep(0.03)

def compare(losses):
    pass
"""
NEW = OLD.replace("0.03", "0.3").split("def compare")[0]
TINY = ["--scale", "tiny", "--pairs", "2", "--rounds", "1"]

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None, reason="the commits are those of a repository of git"
)


@pytest.fixture
def compare(monkeypatch):
    """Import the module; the benchmarks are not installed."""
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.compare")


@pytest.fixture
def repository(tmp_path, monkeypatch, compare):
    """Make two commits, the second slower, and one before them without a package."""
    folder, temporary = tmp_path / "repository", tmp_path / "temporary"
    package = folder / "cvstats" / "__init__.py"
    package.parent.mkdir(parents=True)
    temporary.mkdir()
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")

    def git(*arguments):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        command = ["git", *identity, "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "Nothing yet")
    for words, text in (("Old", OLD), ("New", NEW)):
        package.write_text(text, "utf-8")
        git("add", "cvstats")
        git("commit", "--quiet", "--message", words)
    package.write_text("broken", "utf-8")  # what is not committed is not measured, and stays
    monkeypatch.setattr(compare, "ROOT", folder)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield git
    assert package.read_text("utf-8") == "broken"
    assert git("status", "--porcelain", "--untracked-files=no") == " M cvstats/__init__.py\n"
    assert len(git("worktree", "list").splitlines()) == 1
    assert list(temporary.iterdir()) == []


def run(compare, monkeypatch, *options):
    """Call the command in this process."""
    monkeypatch.setattr(sys, "argv", ["compare", *options])
    compare.main()


def test_a_slower_call_is_marked_and_a_missing_one_told(repository, compare, monkeypatch, capsys):
    only = ["--only", "wald all-pairs, 100 rows, checked", "compare all pairs"]
    run(compare, monkeypatch, "HEAD~1", "HEAD", *TINY, *only)
    old, new, _, head, wald, pairs = capsys.readouterr().out.splitlines()
    assert (old[-4:], new[-4:]) == (" Old", " New")
    assert head.split() == ["work", "old", "new", "new", "/", "old", "95%", "interval", "beyond",
                            "noise"]  # fmt: skip
    assert wald.startswith("wald all-pairs, 100 rows, checked")
    assert wald.endswith("SLOWER")
    assert "new cannot: AttributeError" in pairs


def test_imports_are_timed_in_processes_of_their_own(repository, compare, monkeypatch, capsys):
    run(compare, monkeypatch, "HEAD", "HEAD", *TINY, "--only", "import cvstats")
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("import cvstats")
    assert "cannot" not in line


@pytest.mark.parametrize(
    ("revisions", "words"),
    [
        (["nowhere", "HEAD"], "expected a commit, branch or tag of this repository, got 'nowhere'"),
        (["HEAD", "HEAD~9"], "`git log --oneline` lists the commits"),
        (["HEAD~2", "HEAD"], "expected a commit with the package cvstats, got 'HEAD~2' without it"),
        (["HEAD", "HEAD", "--only", "sleep"], "got 'sleep': --list names all"),
    ],
)
def test_what_cannot_be_is_one_line(repository, compare, monkeypatch, capsys, revisions, words):
    with pytest.raises(SystemExit) as left:
        run(compare, monkeypatch, *revisions)
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_folder_without_git_is_told(compare, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compare, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SystemExit):
        run(compare, monkeypatch, "HEAD", "HEAD")
    (line,) = capsys.readouterr().err.splitlines()
    assert "not a git repository" in line


def test_a_process_that_dies_is_one_line_and_nothing_is_left(
    repository, compare, monkeypatch, capsys
):
    monkeypatch.setattr(compare, "LEAST", 0)
    worker = compare.ROOT / "benchmarks" / "worker.py"
    worker.write_text("raise RuntimeError('no such worker')", "utf-8")
    with pytest.raises(SystemExit):
        run(compare, monkeypatch, "HEAD~1", "HEAD", *TINY)
    (line,) = capsys.readouterr().err.splitlines()
    assert "a process ended early: RuntimeError: no such worker" in line


def test_a_process_that_says_much_does_not_stop(repository, compare, monkeypatch, capsys):
    worker = compare.ROOT / "benchmarks" / "worker.py"
    text = worker.read_text("utf-8")
    loud = "import sys\nsys.stderr.write('a warning\\n' * 50_000)\n"
    worker.write_text(text.replace("import json\nimport sys\n", f"import json\n{loud}"), "utf-8")
    run(compare, monkeypatch, "HEAD~1", "HEAD", "--only", "wald within-fold, 100 rows", *TINY)
    assert "wald within-fold, 100 rows" in capsys.readouterr().out


def test_another_package_than_that_of_the_commit_is_refused(
    repository, compare, monkeypatch, capsys
):
    worker = compare.ROOT / "benchmarks" / "worker.py"
    worker.write_text('print(\'{"answer": "/elsewhere/cvstats/__init__.py"}\')', "utf-8")
    with pytest.raises(SystemExit):
        run(compare, monkeypatch, "HEAD~1", "HEAD", *TINY)
    elsewhere = os.path.join(os.sep, "elsewhere", "cvstats")
    assert f"expected cvstats of the commit, and Python imports {elsewhere}" in (
        capsys.readouterr().err
    )


def test_names_are_listed(compare, monkeypatch, capsys):
    run(compare, monkeypatch, "--list")
    names = capsys.readouterr().out.splitlines()
    assert {"import cvstats", "wald within-fold, 10,000,000 rows, first call"} < set(names)
    assert len(names) == len(set(names)) == 2 + 17 + 17


def test_the_worker_times_every_workload(compare):
    worker = importlib.import_module("benchmarks.worker")
    side = worker.Side()
    for name in worker.workloads("tiny"):
        assert 1 <= side.ready("tiny", name) <= 101
        side.times = 1
        assert side.time() > 0


def test_a_change_is_marked_only_beyond_noise(compare):
    def line(*rounds):
        return compare.Line("a", [[(1.0, ratio) for ratio in ratios] for ratios in rounds])

    assert line([0.9, 0.91, 0.9], [0.89, 0.9, 0.92]).mark() == "faster"
    assert line([1.1, 1.11, 1.1], [1.09, 1.1, 1.08]).mark() == "SLOWER"
    assert line([0.98, 0.98, 0.98], [0.98, 0.98, 0.98]).mark() == ""  # too little
    assert line([0.8, 0.8, 0.8], [1.01, 0.9, 1.02]).mark() == ""  # one round disagrees
    assert line([0.5, 1.5, 0.9], [0.5, 1.5, 0.9]).mark() == ""  # the interval has 1
    found = line([float(k) for k in range(1, 26)])
    # The ranks 8 and 18 of 25: the binomial distribution has 2.2% beyond each.
    assert found.interval() == (8.0, 18.0)
    assert found.cells()[:5] == ("a", "1 s", "13 s", "13.000", "8.000 to 18.000")
