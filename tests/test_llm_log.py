"""The simulated evaluation of language models: what its script makes, and like a real one."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import cvstats

SCRIPT = Path(__file__).parents[1] / "tools" / "datasets" / "make_llm.py"


def test_the_script_makes_the_file(monkeypatch):
    monkeypatch.setattr("sys.argv", [str(SCRIPT), "--check"])
    with pytest.raises(SystemExit) as done:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert done.value.code is None


def test_it_looks_like_a_real_one():
    scores = cvstats.datasets.load("llm")
    assert set(np.unique(scores)) == {0, 1}
    assert scores.groupby("repetition").size().tolist() == [300] * 4
    assert scores.groupby("source", observed=True).size().tolist() == [20] * 60
    rates = scores.mean()
    assert rates.between(0.4, 0.8).all()
    by_item = scores.groupby("point", observed=True).mean()
    assert by_item.corr().to_numpy()[np.triu_indices(8, 1)].min() > 0.3  # hard for one, for all
    equals = ["aster-70b", "cedar-large", "elm"]
    best = cvstats.best_set((1 - scores).droplevel("source"), rng=0)
    assert best.loc[equals, "in_set"].all()
