"""How time and memory grow: the logs, the exponent, and the command. No time is tested."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cvstats

ROOT = Path(__file__).parents[1]


@pytest.fixture
def growth(monkeypatch):
    """Import the module; the benchmarks are not installed."""
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.growth")


def test_one_size_of_one_axis_is_printed_and_kept(tmp_path):
    path = tmp_path / "growth.json"
    command = [sys.executable, "-m", "benchmarks.growth", "--axis", "cells", "--largest", "1"]
    done = subprocess.run(
        [*command, "--budget", "0", "--markdown", "--json", str(path)],
        cwd=ROOT, capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    assert lines[0][:2] == ["what grows", "call"]
    assert [line[1] for line in lines[2:]] == [
        "wald all-pairs, first call", "wald all-pairs, checked",
        "wald within-fold, first call", "wald within-fold, checked", "np.sum",
    ]  # fmt: skip
    assert {line[6] for line in lines[2:]} == {"less than tenfold in all"}
    ((point,),) = json.loads(path.read_text("utf-8"))["growth"].values()
    assert point["size"] == 1
    assert 0 < point["traced"] < 64
    assert all(value > 0 for value in point["seconds"].values())


@pytest.mark.parametrize("size", [10, 10**4])
@pytest.mark.parametrize("name", ["rows", "models", "folds", "cells"])
def test_every_axis_makes_the_log_it_says(growth, name, size, monkeypatch):
    if name == "models":
        size = 10
    axis = growth.AXES[name]
    losses = axis.make(size * 100 if name == "rows" else size)
    found = cvstats.wald(losses)
    if name == "rows":
        assert (found["n_repetitions"], found["n_folds"]) == (10, 10)
        assert len(losses) == 100 * size
    elif name == "folds":
        assert (found["n_points"], found["n_folds"]) == (growth.POINTS, size)
    else:
        assert losses.shape == (100_000 if name == "models" else 100, size)
    again = cvstats.wald(axis.anew(losses))
    np.testing.assert_array_equal(again["se"], found["se"])


def test_sizes_reach_where_they_should(growth):
    ends = {name: (axis.sizes[0], axis.sizes[-1]) for name, axis in growth.AXES.items()}
    assert ends == {
        "rows": (10**4, 10**8), "models": (1, 1_000), "folds": (2, 10**6), "cells": (1, 10**6),
    }  # fmt: skip
    assert growth.halves(0, 2) == (1, 3, 10, 30, 100)


def test_leave_one_out_is_measured_over_all_pairs_only(growth, monkeypatch):
    monkeypatch.setattr(growth, "POINTS", 2_000)
    folds = growth.Axis("", "", lambda k: growth.folded(2_000, k), 10, ())
    monkeypatch.setitem(growth.AXES, "folds", folds)
    point = growth.measured(folds, 2_000, 0.0)
    assert set(point["seconds"]) == {"all-pairs, first call", "all-pairs, checked", "np.sum"}
    assert "within-fold, checked" in growth.measured(folds, 1_000, 0.0)["seconds"]


def test_the_exponent_is_that_of_the_upper_part(growth):
    sizes = [10**k for k in range(8)]
    fit = growth.exponent(sizes, [1.0 + 1e-3 * size**1.5 for size in sizes])
    assert (fit.start, fit.sizes) == (10**3, 5)
    assert fit.exponent == pytest.approx(1.5, abs=0.02)
    assert 0 < fit.error < 0.02
    assert growth.exponent(sizes, [1.0 + 1e-6 * size for size in sizes]) is None
    # What is long at the left end, by chance, is not the upper part.
    seconds = [50.0, 1.0, 1.0, 1.0, 1.0, 10.0, 100.0, 1000.0]
    fit = growth.exponent(sizes, seconds)
    assert (fit.start, fit.exponent, fit.error) == (10**5, pytest.approx(1.0), pytest.approx(0.0))


def test_the_standard_error_is_that_of_least_squares(growth):
    x = np.arange(6.0)
    y = 2 * x + np.array([0.1, -0.2, 0.05, 0.1, -0.1, 0.05]) + 10
    seconds = [1.0, *np.exp(y)]
    fit = growth.exponent([1, *(1_000 * np.exp(x))], seconds)
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    assert fit.exponent == pytest.approx(slope)
    assert fit.error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_the_table_has_a_line_for_each_curve(growth):
    points = [
        {"size": size, "resident": 1.0, "traced": size / 1e5,
         "seconds": {"all-pairs, checked": 1e-3 + size * 1e-7, "np.sum": size * 1e-9}}
        for size in (10**4, 10**5, 10**6, 10**7)
    ]  # fmt: skip
    _, ours, read = growth.lines({"rows": points})
    assert ours[1:5] == ("wald all-pairs, checked", "10,000", "10,000,000", "2 ms to 1 s")
    assert ours[5:] == ("–", "fixed cost dominates", "1.0 MB resident, 100.0 MB traced")
    assert read[5] == "1.00 ± 0.00"
    assert read[6:] == ("100,000 (3 sizes)", "")
