"""The benchmarks of many models run and compare like with like. No time is tested."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import cvstats

ROOT = Path(__file__).parents[1]


@pytest.fixture
def many(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.many")


def test_the_smallest_run_prints_a_row_for_each_case(many, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)  # from any folder
    monkeypatch.setattr(sys, "argv", ["many", "--tiny"])
    many.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["work", "log", "peer"]
    assert len(lines) == 1 + 3 + 2 + 3 + 3
    assert "NO" not in {line.split()[-1] for line in lines}


def test_peers_compute_the_same(many):
    losses = importlib.import_module("benchmarks.logs").frame(3_000, 5, order="F")
    table = cvstats.compare(losses)
    np.testing.assert_allclose(table["p_value"], many.pairwise(losses), rtol=5e-3)
    np.testing.assert_allclose(table["statistic"], many.by_hand(losses), rtol=1e-3)


def test_memory_is_told(many, monkeypatch, capsys):
    assert -1 < many.growth("best_set", 2_000, 10) < 64  # megabytes; a page may have been freed
    monkeypatch.setattr(sys, "argv", ["many", "--peak", "compare, all pairs", "500", "4"])
    many.main()
    assert -1 < float(capsys.readouterr().out) < 64
