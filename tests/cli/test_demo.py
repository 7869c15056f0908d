"""The command: its tables hold the numbers of the functions, and its errors are one line."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats import cli
from cvstats.errors import install_command
from cvstats.log.display import count_decimals

NUMBER = r"-?\d+(?:\.\d+)?"
LOGS = {"diabetes": "squared_error", "flights": "brier"}
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
    after = shown[shown.index(f"{name}: ") :]
    following = [after.find(f"\n{other}: ") for other in LOGS if f"\n{other}: " in after]
    return after[: min(following, default=len(after))]


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
    naive, wald = cvstats.naive(losses), cvstats.wald(losses)
    digits = {"diabetes": 0, "flights": 4}[name]
    levels = [level for level in ("repetition", "fold") if level in losses.index.names]
    folds = losses.groupby(level=levels, observed=True).mean()
    part = part_of(shown, name)
    for model in losses.columns:
        expected = [
            folds[model].mean(),
            folds[model].std(ddof=0),
            *naive.loc[model, ["lower", "upper"]],
            *wald.loc[model, ["lower", "upper"]],
        ]
        assert row_of(part, model) == written(expected, digits)


@pytest.mark.process
@each_log
def test_comparisons_are_those_of_the_function(shown, name):
    pairs = cvstats.compare(logged(name))
    digits = {"diabetes": 0, "flights": 5}[name]
    part = part_of(shown, name)
    for (model, other), row in pairs.iterrows():
        p = "0.001" if row["p_adjusted"] < 0.001 else f"{row['p_adjusted']:.3f}"
        expected = [*written(row[["difference", "lower", "upper"]], digits), p]
        assert row_of(part, f"{model} - {other}") == expected
    assert len(pairs) == 3


@pytest.mark.process
@each_log
def test_sentences_say_what_the_tables_show(shown, name):
    text = " ".join(part_of(shown, name).split())
    losses = logged(name)
    wald, naive = cvstats.wald(losses), cvstats.naive(losses)
    fits = wald.attrs["n_folds"] * wald.attrs["n_repetitions"]
    apart = int((cvstats.compare(losses)["p_adjusted"] < 0.05).sum())
    assert cvstats.datasets.load(name).attrs["title"] in text
    assert text.count("How to read it: ") == 2
    assert f"of the {fits} fits of each model, on new points" in text
    assert f"is below 0.05 for {apart or 'none'} of them." in text
    if name == "diabetes":
        ratio = float((wald["se"] / naive["se"]).mean())
        assert "folds of 44 or 45 points" in text
        assert "treats the 442 points, each tested 10 times, as 4,420 independent points" in text
        assert f"is {ratio:.1f} times narrower" in text
    else:
        assert "folds of 2,000 points" in text
        width = (naive["upper"] - naive["lower"]) / (wald["upper"] - wald["lower"])
        assert "nearly the same limits" in text
        np.testing.assert_allclose(width, 1, rtol=1e-4)


@pytest.mark.process
def test_lines_are_short_and_columns_aligned(shown):
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 100
    assert max(len(line) for line in lines if "  " in line or line.startswith("=")) <= 80
    assert all(line == line.rstrip() for line in lines)
    assert all(line.isprintable() for line in lines)  # and no colours
    for header in ("mean ± std of folds", "difference of errors"):
        for at in [i for i, line in enumerate(lines) if header in line]:
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
    pair = cvstats.compare(losses, alpha=0.2).loc[("ridge", "random_forest")]
    assert row_of(part, "ridge - random_forest")[1:3] == written(pair[["lower", "upper"]], 0)
    assert out.count("has nearly the same limits") == 1  # flights has one repetition
    assert out.count("valid 80% interval") == out.count("  80% interval  Holm p") == 2
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
