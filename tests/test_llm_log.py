"""The evaluation log that the guide works on is the one that its script makes."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pandas as pd

import cvstats

ROOT = Path(__file__).parents[1]


def test_the_script_makes_the_file(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    script = ROOT / "tools" / "make_llm_log.py"
    monkeypatch.setattr("sys.argv", [str(script), str(path)])
    runpy.run_path(str(script), run_name="__main__")
    assert path.read_bytes() == (ROOT / "docs" / "guide" / "llm_log.csv").read_bytes()


def test_it_looks_like_a_real_one():
    table = pd.read_csv(ROOT / "docs" / "guide" / "llm_log.csv")
    models = list(table.columns[3:])
    assert len(models) == 8
    assert set(np.unique(table[models])) == {0, 1}
    assert not table.duplicated(["epoch", "item"]).any()
    assert table.groupby("epoch")["item"].nunique().tolist() == [300] * 4
    rates = table[models].mean()
    assert rates.between(0.4, 0.8).all()
    by_item = table.groupby("item")[models].mean()
    assert by_item.corr().to_numpy()[np.triu_indices(8, 1)].min() > 0.3  # hard for one, for all
    losses = (1 - table.set_index(["epoch", "item"])[models]).rename_axis(["repetition", "point"])
    equals = ["aster-70b", "cedar-large", "elm"]
    assert cvstats.best_set(losses, rng=0).loc[equals, "in_set"].all()
