"""The benchmarks run, compare like with like, and print their table. No time is tested."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cvstats

ROOT = Path(__file__).parents[1]
COLUMNS = ["work", "log", "peer", "theirs", "ours", "ratio", "middle half", "bound", "met"]


@pytest.fixture
def module(monkeypatch):
    """Import a module of the benchmarks, which are not installed."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def test_a_run_prints_its_table():
    command = [sys.executable, "-m", "benchmarks", "--scale", "tiny", "--section", "machine"]
    done = subprocess.run(
        [*command, "--markdown"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    heading, empty, *lines = done.stdout.splitlines()
    assert f"cvstats {cvstats.__version__}, numpy {np.__version__}" in heading
    assert empty == ""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == COLUMNS
    rows = pd.DataFrame(cells[2:], columns=COLUMNS)
    bandwidth, reads = rows[rows["peer"] == ""], rows[rows["peer"] != ""]
    assert bandwidth["ours"].str.endswith(" GB/s").all()
    assert bandwidth["work"].str.startswith("plain read, ").all()
    assert reads["peer"].str.startswith("read of losses").all()
    assert (reads["ratio"].astype(float) > 0).all()


def test_every_case_is_measured(module):
    suite = module("__main__")
    scale = suite.SCALES["tiny"]
    rows = suite.measured(scale, ["calls"])["calls"]
    assert {"np.sum", "groupby.agg", "mean, sem", "X.T @ X", 'mean("point")'} < {
        row.peer for row in rows
    }
    assert len(rows) == 2 * 12 + 12 + 4 + 1 + 4
    for row in rows:
        assert row.theirs > 0
        if row.ratio is not None:
            assert row.spread[0] <= row.ratio <= row.spread[1]
    # The bounds on ratios are for large logs; what a call costs at least is bounded for small.
    bounded = [row for row in rows if row.bound is not None]
    assert len(bounded) == 12
    assert {row.cells()[-2] for row in bounded} == {"<= 1 ms"}


def test_options_are_told(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--help"])
    with pytest.raises(SystemExit):
        module("__main__").main()
    told = capsys.readouterr().out
    assert "--quick" in told
    assert "--markdown" in told


def test_peers_compute_the_same(module):
    cases, logs = module("cases"), module("logs")
    losses = logs.series(2_000)
    pd.testing.assert_frame_equal(
        cases.by_fold(losses), cvstats.moments(losses), check_index_type=False, check_dtype=False
    )
    naive = cvstats.naive(losses)
    limits = naive[["lower", "upper"]].astype(float)
    np.testing.assert_allclose(cases.usual(losses), limits, rtol=1e-3)


def test_logs_are_random_partitions(module):
    logs = module("logs")
    one = cvstats.wald(logs.series(2_000))
    assert one[["n_points", "n_folds", "n_repetitions"]].tolist() == [200, 10, 10]
    assert cvstats.wald(logs.series(100, 1)).attrs["n_repetitions"] == 1
    folds = logs.series(2_000).reset_index().pivot(
        index="point", columns="repetition", values="fold"
    )  # fmt: skip
    assert not folds.T.duplicated().any()
    for order in "CF":
        frame = logs.frame(50, 3, order=order)
        assert frame.to_numpy().flags[f"{order}_CONTIGUOUS"]
        assert cvstats.wald(frame).attrs["n_folds"] == 10
    assert cvstats.wald(logs.crowded(6_000, 30, 20)).attrs["n_folds"] == 20
    grid = logs.grid(30, 4, dtype="float32")
    assert grid.dtype == "float32"
    assert cvstats.wald(grid).sizes == {"cell": 4}


@pytest.mark.parametrize(
    "kind", [("series", 2_000), ("cells", 6_000, 30, 20), ("frame", 50, 3), ("grid", 30, 4)]
)
def test_memory_is_measured_twice(module, kind):
    found = module("memory").main(*kind)
    assert found["log"].startswith(f"{kind[1]:,} ")
    assert list(found["megabytes"]) == ["resident", "traced"]
    assert all(0 <= amount < 64 for amount in found["megabytes"].values())


def test_an_unseen_log_is_the_same_log_with_an_index_of_its_own(module):
    logs = module("logs")
    known = logs.series(2_000)
    fresh = logs.unseen(known)
    pd.testing.assert_series_equal(fresh, known)
    for mine, yours in zip(fresh.index.codes, known.index.codes, strict=True):
        assert not np.shares_memory(mine, yours)


def test_turns_alternate_and_what_is_prepared_is_not_timed(module):
    calls = []
    pairs = module("timing").in_turns(
        lambda: calls.append("theirs"),
        lambda argument: calls.append(argument),
        prepare=lambda: calls.append("prepare") or "ours",
        budget=0.0,
    )
    turn = ["prepare", "theirs", "ours"]
    assert calls == ["theirs", "prepare", "ours", *turn * 5]
    assert len(pairs.ours) == len(pairs.theirs) == 5
    found = module("timing").Pairs([1.0, 2.0, 4.0], [2.0, 2.0, 2.0])
    assert (found.ratio, found.spread, found.beyond) == (1.0, (0.75, 1.5), 0.0)
    assert module("timing").Pairs([1.0], [2.0]).spread == (2.0, 2.0)


@pytest.mark.parametrize(
    ("pairs", "spent", "does"),
    [
        (4, 3.0, False), (5, 1.0, False), (5, 2.0, True), (101, 1.0, True),
        (2, 60.0, False), (3, 7.0, False), (3, 8.0, True),
    ],
)  # fmt: skip
def test_how_many_pairs_do(module, pairs, spent, does):
    assert module("timing").enough(pairs, spent, budget=2.0) == does


def test_bounds_and_units(module):
    table = module("table")
    fast = table.Row("a", "b", "c", ours=0.001, theirs=0.1, ratio=0.01, bound=1 / 30)
    assert fast.cells() == ("a", "b", "c", "100 ms", "1 ms", "0.01", "", "<= 1/30", "yes")
    slow = table.Row("a", "b", "c", ours=2.5e-5, theirs=1e-5, ratio=2.5, bound=2.0)
    assert slow.cells()[3:] == ("10 us", "25 us", "2.5", "", "<= 2", "NO")
    free = table.Row("a", "b", "", ours=1.25)
    assert free.cells()[3:] == ("", "1.25 s", "", "", "", "")
    large = table.Row("a", "b", "", ours=65.0, bound=64.0, unit="MB", absolute=True)
    assert large.cells()[4:] == ("65.0 MB", "", "", "<= 64.0 MB", "NO")
    apart = table.Row("a", "b", "c", 2.0, 1.0, 2.0, 2.0, spread=(1.984, 2.1))
    assert apart.cells()[5:] == ("2", "1.98 to 2.1", "<= 2", "yes")
    lines = table.text([fast, slow]).splitlines()
    assert lines[0].split() == " ".join(COLUMNS).split()
    assert len({len(line) for line in lines[1:]}) <= 2
    assert table.markdown([fast]).splitlines()[1] == f"|{' --- |' * 3}{' ---: |' * 6}"


def test_the_benchmark_of_sources_prints_its_table():
    command = [sys.executable, "-m", "benchmarks.sources", "--rows", "2000", "--sources", "5"]
    done = subprocess.run(
        [*command, "--budget", "0", "--markdown"], cwd=ROOT, capture_output=True, check=False,
        text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    assert lines[0] == COLUMNS
    assert len(lines) == 2 + 6 * 4
