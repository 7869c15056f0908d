"""What the tutorials ask for, and that the files of the one on R are those its script makes."""

import importlib
import re
import runpy
from pathlib import Path

import pandas as pd
import pytest

import cvstats

ROOT = Path(__file__).parents[2]
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
    assert losses.cvci.compare().attrs["n_points"] == 120


def test_the_two_workflows_differ_for_who_counts_folds_only():
    """The lesson of the page: p = 0.02 by ten folds, and 0.2 by 120 flats."""
    from scipy import stats

    losses = cvstats.read_log(TUTORIALS / "tidymodels_predictions.csv", loss="squared_error")
    folds = losses.groupby(level=["repetition", "fold"], observed=True).mean() ** 0.5
    assert stats.ttest_rel(folds["recipe_lm"], folds["recipe_knn"]).pvalue < 0.05
    assert losses.cvci.compare()["p_value"].iloc[0] > 0.15


PAGES = sorted(page for page in TUTORIALS.glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_says_first_what_to_install(page):
    text = page.read_text(encoding="utf-8")
    needs = {
        extra
        for extra, signs in {
            "plot": ("import matplotlib", ".cvci.plot."),
            "io": ("import pyarrow", "read_parquet"),
            "dask": ("import dask",),
        }.items()
        if any(sign in text for sign in signs)
    }
    asked = r'^\*\*You need\*\* `pip install "\.\[([\w,]+)\]"` in a checkout'
    said = re.search(asked, text, re.MULTILINE)
    assert said is not None
    assert set(said[1].split(",")) == needs
    assert said.start() < text.index("**The question.**")
    if re.search(r'read_\w+\("[^"]+\.csv"', "".join(cells(page))):
        assert "{download}" in text[said.start() : text.index("**The question.**")]


@pytest.mark.parametrize("folder", [ROOT / "docs", ROOT / "docs" / "guide", TUTORIALS])
def test_pages_install_from_a_checkout(folder):
    """No page counts on a package index: what a reader has is a checkout."""
    pages = sorted(folder.glob("*.md"))
    assert pages
    for page in pages:
        assert not re.search(r"pip install ['\"]?cvstats", page.read_text(encoding="utf-8")), page


def cells(page):
    """The code of a tutorial, cell by cell, without the one that no reader sees."""
    found = re.findall(r"```\{code-cell\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [cell for cell in found if not cell.startswith(":tags:")]


def test_the_page_on_language_models_starts_next_to_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    importlib.import_module("llm_files").write_logs(tmp_path)
    assert (tmp_path / "llm_logs.zip").is_file()
    monkeypatch.chdir(tmp_path)
    exec(cells(TUTORIALS / "llm_logs.md")[0], {})
    assert capsys.readouterr().out.count("lm_eval/") == 4
    assert (tmp_path / "llm_logs" / "inspect_samples.csv").is_file()
