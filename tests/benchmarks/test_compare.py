"""Two commits side by side, on a repository of two commits whose package only waits."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks import compare

ROOT = Path(__file__).parents[2]
OLD = """
import time

def wald(losses, **options):
    time.sleep(0.03)

def best_set(losses, **options):
    pass

def __getattr__(name):
    return print
"""
NEW = OLD.replace("0.03", "0.3").replace("pass", "raise AttributeError")
TINY = ["--scale", "tiny", "--pairs", "2", "--rounds", "1"]

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        shutil.which("git") is None, reason="the commits are those of a repository of git"
    ),
]


@pytest.fixture
def repository(tmp_path, monkeypatch):
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


def run(monkeypatch, *options):
    """Call the command in this process."""
    monkeypatch.setattr(sys, "argv", ["compare", *options])
    compare.main()


def test_a_slower_call_is_marked_and_a_missing_one_named(repository, monkeypatch, capsys):
    only = ["--only", "wald all-pairs, 100 rows, checked", "best_set", "import cvstats"]
    run(monkeypatch, "HEAD~1", "HEAD", *TINY, *only)
    old, new, _, head, imported, wald, missing = capsys.readouterr().out.splitlines()
    assert (old[-4:], new[-4:]) == (" Old", " New")
    assert head.split()[:4] == ["work", "old", "new", "new"]
    assert imported.startswith("import cvstats")
    assert wald.endswith("SLOWER")
    assert "AttributeError" in missing


@pytest.mark.parametrize(
    ("revisions", "words"),
    [
        (["nowhere", "HEAD"], "nowhere"),
        (["HEAD", "HEAD~9"], "HEAD~9"),
        (["HEAD", "HEAD", "--only", "sleep"], "['sleep'] in its name: --list shows them"),
    ],
)
def test_what_cannot_be_compared_is_named(repository, monkeypatch, capsys, revisions, words):
    with pytest.raises(SystemExit) as left:
        run(monkeypatch, *revisions)
    assert left.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]
