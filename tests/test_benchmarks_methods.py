"""The benchmark of the methods covers them all, and both sides of it find the same interval."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from cvstats.api.running import INTERVALS

ROOT = Path(__file__).parents[1]


@pytest.fixture
def module(monkeypatch):
    """Import a module of the benchmarks, which are not installed."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def test_every_interval_is_measured(module):
    methods, plain = module("methods"), module("plain")
    assert set(methods.LOGS) == set(plain.FORMULAS) == set(INTERVALS)


@pytest.mark.parametrize("name", INTERVALS)
def test_the_plain_formula_agrees(module, name):
    methods, plain = module("methods"), module("plain")
    losses = methods.LOGS[name](methods.SIZES["tiny"])
    ours = methods.method_of(name, losses)(losses)
    assert methods.agrees(ours, plain.FORMULAS[name](losses))


def test_the_smallest_run_prints_its_table(module, monkeypatch, capsys):
    options = ["methods", "--scale", "tiny", "--budget", "0"]
    monkeypatch.setattr("sys.argv", options)
    module("methods").main()
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["work", "log", "peer"]
    assert len(lines) == 2 * len(INTERVALS)
