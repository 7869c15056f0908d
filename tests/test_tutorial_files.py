"""The files that the tutorial on R works on are those that their script makes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pandas as pd
import pytest

import cvstats

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"


def test_the_script_makes_the_files(tmp_path, monkeypatch):
    script = ROOT / "tools" / "make_r_logs.py"
    monkeypatch.setattr("sys.argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    for name in ("tidymodels_predictions.csv", "mlr3_predictions.csv"):
        made, kept = (pd.read_csv(folder / name) for folder in (tmp_path, TUTORIALS))
        # To the last digit written: a build of numpy may round the other way there.
        pd.testing.assert_frame_equal(made, kept, rtol=0, atol=0.011)


@pytest.mark.parametrize(
    ("name", "loss", "levels"),
    [
        ("tidymodels", "squared_error", ["repetition", "fold", "point"]),
        ("mlr3", "log_loss", ["fold", "point"]),
    ],
)
def test_they_are_recognised(name, loss, levels):
    losses = cvstats.read_log(TUTORIALS / f"{name}_predictions.csv", loss=loss)
    assert losses.attrs["format"] == name
    assert list(losses.index.names) == levels
    assert losses.cvci.compare()["n_points"].tolist() == [120]


def test_the_two_workflows_differ_for_who_counts_folds_only():
    """The lesson of the page: p = 0.02 by ten folds, and 0.2 by 120 flats."""
    from scipy import stats

    losses = cvstats.read_log(TUTORIALS / "tidymodels_predictions.csv", loss="squared_error")
    folds = losses.groupby(level=["repetition", "fold"], observed=True).mean() ** 0.5
    assert stats.ttest_rel(folds["recipe_lm"], folds["recipe_knn"]).pvalue < 0.05
    assert losses.cvci.compare()["p_value"].iloc[0] > 0.15
