"""The recipes of CONTRIBUTING.md: followed to the letter in a copy of the package, they work."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cvstats

pytestmark = pytest.mark.process

RECIPES = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n# (cvstats/\S+?\.py)(?:, below: ([^\n]*))?\n(.*?)^```", RECIPES,
                    re.MULTILINE | re.DOTALL)  # fmt: skip
FILES = [name for name, below, _ in BLOCKS if not below]

SEEN = """
import json, sys, warnings
from importlib import import_module
warnings.simplefilter("error")
if sys.argv[1] == "broken":
    warnings.filterwarnings("ignore", message=".* cannot be imported")
import cvstats, pandas as pd
from matplotlib.figure import Figure

log = cvstats.datasets.load("diabetes")
losses = cvstats.losses(log, prediction=["ridge", "random_forest"])
weka = pd.DataFrame({"inst#": [1, 2, 3, 4], "actual": [0.0, 1.0, 1.0, 2.0],
                     "predicted": [0.5, 1.0, 2.0, 2.5], "fold": [1, 1, 2, 2]})
one = losses.loc[[0]]
asked = {
    "wald": lambda: cvstats.wald(losses).index.tolist(),
    "methods": lambda: "every_loss" in losses.cvci.methods().index,
    "method": lambda: cvstats.registry.find_function("every_loss")(one).round(6).to_dict("list"),
    "accessor": lambda: one.cvci.every_loss(alpha=0.1).attrs["alpha"],
    "compare": lambda: one.cvci.compare(method="every_loss").attrs["interval_method"],
    "rmse": lambda: float(cvstats.losses(log, prediction="ridge", loss="rmse").size),
    "metric": lambda: str(
        cvstats.losses(log, prediction="ridge", loss="mean_error").cvci.summary()),
    "forest": lambda: losses.cvci.plot.forest(ax=Figure().subplots()).get_xlabel(),
    "plots": lambda: repr(losses.cvci.plot),
    "plot": lambda: losses.cvci.plot.means(ax=Figure().subplots()).get_xlabel(),
    "columns": lambda: cvstats.read_log(weka.rename(columns={"inst#": "row", "actual": "y_true"}),
        format="columns", truth="y_true", prediction="predicted", point="row", loss="squared_error"
    ).size,
    "reader": lambda: cvstats.read_log(weka, loss="squared_error").tolist(),
    "report": lambda: "<html" in cvstats.report(one),
    "stubs": lambda: import_module("tools.stubs").main([]),
}
found = {}
for name, ask in asked.items():
    try:
        found[name] = ask()
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found, default=str))
"""


def follow(folder: Path, *, broken: bool) -> dict[str, object]:
    """Follow the recipes in a copy, with files that cannot be imported if they are broken."""
    for part in ("cvstats", "tools"):
        shutil.copytree(Path(cvstats.__file__).parents[1] / part, folder / part)
    for name, below, text in BLOCKS:
        file = folder / name
        if below:
            before = file.read_text("utf-8")
            assert before.count(f"{below}\n") == 1, below
            place = before.index(f"{below}\n") + len(below) + 1
            file.write_text(before[:place] + text + before[place:], "utf-8")
        else:
            assert not file.exists()
            file.write_text("def shiny(log:\n" if broken else text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SEEN, "broken" if broken else "whole"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_there_is_a_recipe_of_each_kind():
    assert FILES == [
        "cvstats/intervals/every_loss.py", "cvstats/metrics/bias.py", "cvstats/plot/means.py",
        "cvstats/io/tools/weka.py",
    ]  # fmt: skip
    lines = [text.strip().splitlines() for _, below, text in BLOCKS if below]
    assert [len(entry) for entry in lines] == [1, 1, 1, 1]  # a line each, and nothing else


def test_files_and_names_of_the_recipes_exist():
    root = Path(__file__).parents[2]
    for name in re.findall(r"`((?:cvstats|tests|docs|tools|evidence)/[^`\s]*)`", RECIPES):
        if not re.search("NAME|TASK", name) and name not in FILES:
            assert list(root.glob(name)), name
    named = re.findall(r"`([A-Z_]{4,})` (?:in|of) `([^`]+)`", RECIPES)
    assert len(named) >= 8
    for constant, name in named:
        text = (root / name).read_text("utf-8")
        assert re.search(rf"^{constant}\b.* = ", text, re.MULTILINE), (constant, name)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A copy in which the recipes were followed, and what it answers."""
    folder = tmp_path_factory.mktemp("recipes")
    return folder, follow(folder, broken=False)


def test_what_follows_the_recipes_works(followed):
    _, found = followed
    assert found["wald"] == ["ridge", "random_forest"]
    assert found["methods"] is True
    assert found["accessor"] == 0.1
    assert found["compare"] == "every_loss"
    assert "mean error" in str(found["metric"])
    assert "means" in str(found["plots"])
    assert found["plot"] == "squared error\n← lower is better"
    assert found["reader"] == [0.25, 0.0, 1.0, 0.25]
    assert found["report"] is True


def test_type_checkers_see_what_follows_the_recipes(followed):
    folder, found = followed
    assert found["stubs"] == 0
    for stub, line in {
        "__init__.pyi": "from cvstats.intervals.every_loss import every_loss as every_loss",
        "log/methods.pyi": "    every_loss = method(cvstats.every_loss)",
        "plot/__init__.pyi": "    means = method(plot.means)",
    }.items():
        assert line in (folder / "cvstats" / stub).read_text("utf-8").splitlines()


def test_files_that_cannot_be_imported_break_themselves_only(tmp_path):
    found = follow(tmp_path, broken=True)
    for name in ("method", "accessor", "compare", "metric", "plot", "reader"):
        assert "Error" in str(found[name]), name
    assert found["wald"] == ["ridge", "random_forest"]
    assert found["methods"] is False
    assert found["rmse"] == 4420
    assert found["forest"] == "squared error\n← lower is better"
    assert "means" not in str(found["plots"])
    assert found["columns"] == 4
    assert found["report"] is True
