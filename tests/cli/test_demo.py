"""The command: its tables hold the numbers of the functions, and its errors are one line."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pandas as pd
import pytest

import cvstats
from cvstats import cli
from cvstats.errors import install_command
from cvstats.log.display import count_decimals

NUMBER = r"-?\d+(?:\.\d+)?"
LOGS = {"diabetes": "squared_error", "flights_by_month": "brier"}
each_log = pytest.mark.parametrize("name", LOGS)


def logged(name):
    log = cvstats.datasets.load(name)
    return cvstats.losses(log, prediction=log.attrs["models"], loss=LOGS[name])


def command(*arguments, code=None):
    """Run the installed script, or some code in its place, in a process of its own."""
    script = Path(sysconfig.get_path("scripts")) / "cvstats"
    start = [str(script)] if code is None else [sys.executable, "-c", code]
    done = subprocess.run(
        [*start, *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def shown():
    """What ``cvstats demo`` prints, run as a user runs it."""
    status, out, err = command("demo")
    assert (status, err) == (0, "")
    return out


def part_of(shown, name):
    """The part of the output that is about one log."""
    start = {other: shown.index(cvstats.datasets.load(other).attrs["title"]) for other in LOGS}
    later = [at for at in start.values() if at > start[name]]
    return shown[start[name] : min(later, default=len(shown))]


def row_of(part, start):
    """The numbers of the one line that starts so, as they are written."""
    (line,) = [line for line in part.splitlines() if re.match(rf"{re.escape(start)}  +\S", line)]
    return re.findall(NUMBER, line[len(start) :])


def written(values, digits):
    return [f"{value:.{digits}f}" for value in values]


@pytest.mark.process
@each_log
def test_intervals_are_those_of_the_functions(shown, name):
    losses = logged(name)
    naive, valid = cvstats.naive(losses), cvstats.interval(losses)
    assert valid.attrs["method"] == {"diabetes": "wald", "flights_by_month": "out_of_source"}[name]
    digits = {"diabetes": 0, "flights_by_month": 4}[name]
    levels = [level for level in ("repetition", "fold", "source") if level in losses.index.names]
    folds = losses.groupby(level=levels, observed=True).mean()
    part = part_of(shown, name)
    for model in losses.columns:
        expected = [
            folds[model].mean(),
            folds[model].std(ddof=0),
            *naive.loc[model, ["lower", "upper"]],
            *valid.loc[model, ["lower", "upper"]],
        ]
        assert row_of(part, model) == written(expected, digits)


@pytest.mark.process
@each_log
def test_sentences_say_what_the_table_shows(shown, name):
    """The verdict is that of `summary`, which nothing else in the output contradicts."""
    text = " ".join(part_of(shown, name).split())
    losses = logged(name)
    valid, naive = cvstats.interval(losses), cvstats.naive(losses)
    assert f"Data: cvstats.datasets.load({name!r}). Loss: " in text
    assert " ".join(str(cvstats.summary(losses)).split()) in text
    ratio = float(((valid["upper"] - valid["lower"]) / (naive["upper"] - naive["lower"])).mean())
    size, number, method, unit = {
        "diabetes": ("44 or 45", "4,420", "wald", "442 points"),
        "flights_by_month": ("2,000", "24,000", "out_of_source", "12 sources"),
    }[name]
    assert (
        f"the std measures how much folds of {size} points differ, not the precision of their "
        f"mean. The naive interval treats {number} losses as independent. The valid interval "
        f"({method}) is {ratio:.1f} times as wide, because the losses come from only {unit}."
    ) in text


@pytest.mark.process
def test_lines_are_short_and_columns_aligned(shown):
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 100
    assert max(len(line) for line in lines if "  " in line or line.startswith("=")) <= 80
    assert all(line == line.rstrip() for line in lines)
    assert all(line.isprintable() for line in lines)  # and no colours
    for at in [i for i, line in enumerate(lines) if "mean ± std of folds" in line]:
        table = lines[at : at + 4]
        assert len({len(line) for line in table}) == 1  # the last column ends at one place


@pytest.mark.process
def test_in_this_process_it_prints_the_same(shown, capsys):
    assert cli.main(["demo"]) == 0
    captured = capsys.readouterr()
    assert captured.out == shown
    assert captured.err == ""


def test_alpha_is_the_level_of_everything_shown(capsys):
    assert cli.main(["demo", "--alpha", "0.2"]) == 0
    out = capsys.readouterr().out
    losses = logged("diabetes")
    part = part_of(out, "diabetes")
    limits = cvstats.wald(losses, alpha=0.2).loc["ridge", ["lower", "upper"]]
    assert row_of(part, "ridge")[-2:] == written(limits, 0)
    text = " ".join(out.split())
    assert text.count("valid 80% interval") == 2
    assert text.count(" (80% interval ") == 4  # of a difference and of an error, in each summary
    assert "95%" not in out


NEEDS = f"cvstats: the command line needs cyclopts. Install it: {install_command('cli')}\n"


def test_without_cyclopts_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cyclopts", None)
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr() == ("", NEEDS)


@pytest.mark.process
def test_importing_the_command_does_not_import_cyclopts():
    code = (
        "import sys, cvstats.cli; print('cyclopts' in sys.modules, 'rich' in sys.modules); "
        "sys.modules['cyclopts'] = None; sys.exit(cvstats.cli.main())"
    )
    assert command("demo", code=code) == (2, "False False\n", NEEDS)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_names_the_commands(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert "Confidence intervals and comparisons" in out
    assert "Compare valid with conventional intervals on two real data" in out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == cvstats.__version__


@pytest.mark.parametrize(
    ("smallest", "digits"),
    [(1234.0, 0), (186.0, 0), (10.0, 0), (9.9, 1), (1.0, 1), (0.5, 2), (0.0014, 4), (1e-9, 10)],
)
def test_two_digits_of_the_smallest_standard_error(smallest, digits):
    assert count_decimals(pd.DataFrame({"se": [smallest, 5000.0]})) == digits
