"""What `import cvstats` loads, and that everything public is there although it loads little."""

import ast
import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cvstats
from cvstats import registry
from cvstats.accessor import CVAccessor

ROOMS = ["accessor", "datasets", "errors", "plans", "plot"]
METHODS = [name for name, _ in inspect.getmembers(CVAccessor, inspect.isfunction) if name[0] != "_"]


def told(code: str) -> Any:
    """Run code in a process of its own, which knows nothing yet, and return what it tells."""
    script = f"import json, sys\n{code}\nprint(json.dumps(told))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


# --- what is loaded -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen():
    """What one process sees: little is loaded at first, and all of the package at last."""
    return told("""
import inspect, pkgutil, pydoc, types
import numba, pandas as pd, scipy.special, xarray
told = {"libraries": list(sys.modules)}
import cvstats
told["cvstats"] = list(sys.modules)
told["listed"] = dir(cvstats)
told["kept"] = ["wald" in vars(cvstats), cvstats.wald is vars(cvstats)["wald"]]
cvstats.losses, cvstats.scan_parquet
told["functions"] = list(sys.modules)

CVAccessor = cvstats.accessor.CVAccessor
told["looks"] = {}
for name, place in [
    ("best_set", pd.Series([1.0, 2.0]).cvci), ("power", pd.DataFrame.cvci), ("rope", CVAccessor),
]:
    first = getattr(place, name)
    again = getattr(place, name)
    told["looks"][name] = [type(first).__name__, first == again, first.__doc__,
                           str(inspect.signature(first)), pydoc.plain(pydoc.render_doc(first))]
told["looked"] = list(sys.modules)
told["page"] = pydoc.plain(pydoc.render_doc(CVAccessor))

names = {}
exec("from cvstats import *", names)
told["taken"] = sorted(names)
for found in pkgutil.walk_packages(cvstats.__path__, "cvstats."):
    if not found.name.endswith("__main__"):
        __import__(found.name)
told["modules"] = [
    name for name in cvstats.__all__ if isinstance(getattr(cvstats, name), types.ModuleType)
]
""")


@pytest.mark.process
def test_an_import_loads_nothing_but_a_few_modules_of_its_own(seen):
    added = {*seen["cvstats"]} - {*seen["libraries"]}
    assert {name.partition(".")[0] for name in added} - sys.stdlib_module_names == {"cvstats"}
    rooms = {name.split(".")[1] for name in added if "." in name}
    assert {"cvstats.core.kernels", "cvstats.core.results"} <= added
    assert not rooms & {"api", "cli", "evaluation", "large", "log", "plans", "plot", "reporting"}


@pytest.mark.process
def test_a_function_loads_no_plots_and_no_reports(seen):
    added = {*seen["functions"]} - {*seen["cvstats"]}
    assert "cvstats.log" in added
    assert not {"cvstats.plot", "cvstats.reporting", "cvstats.evaluation"} & added


# --- public names ---------------------------------------------------------------------------------


def read_by_type_checkers() -> dict[str, str]:
    """Find the module of each name that ``cvstats/__init__.pyi`` imports."""
    tree = ast.parse(Path(cvstats.__file__).with_suffix(".pyi").read_text("utf-8"))
    return {
        alias.asname: statement.module
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def test_type_checkers_read_what_python_imports():
    read = read_by_type_checkers()
    assert len(cvstats.__all__) == len(set(cvstats.__all__))
    assert set(read) == set(cvstats.__all__)
    for name, module in read.items():
        found = getattr(cvstats, name)
        if module == "cvstats":
            assert found is sys.modules[f"cvstats.{name}"]
        else:
            assert found is vars(import_module(module))[name], name


@pytest.mark.process
def test_names_stay_what_they_are_when_every_module_is_loaded(seen):
    # A module that is loaded becomes an attribute of its package, over a function of its name.
    assert seen["modules"] == ROOMS


@pytest.mark.process
def test_names_are_listed_before_they_are_loaded_and_loaded_once(seen):
    listed = seen["listed"]
    assert listed == sorted(listed)
    assert {*cvstats.__all__, "__doc__", "__version__"} <= set(listed)
    assert seen["kept"] == [False, True]
    assert seen["taken"] == sorted([*cvstats.__all__, "__builtins__"])


@pytest.mark.process
def test_an_import_loads_what_the_first_interval_would_wait_for_and_rooms_in_every_way():
    assert told("""
import cvstats
told = [name in sys.modules for name in ("numba", "scipy.special", "scipy.stats")]
import cvstats.plans as rooms
from cvstats import datasets
from cvstats.plot import forest
told += [rooms.k_fold.__name__, datasets.list()[0], forest is cvstats.plot.forest]
""") == [True, True, False, "k_fold", "diabetes", True]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("wlad", " Did you mean 'wald'?"),
        ("bootstrap632", " Did you mean 'bootstrap_632'?"),
        ("__wrapped__", ""),
        ("kitchen", ""),
    ],
)
def test_a_wrong_name_is_answered_with_a_near_one(name, hint):
    with pytest.raises(AttributeError) as raised:
        getattr(cvstats, name)
    assert str(raised.value) == f"module 'cvstats' has no attribute {name!r}.{hint}"


@pytest.mark.filterwarnings("error")
def test_a_file_that_is_broken_breaks_its_own_method_only(monkeypatch, tmp_path):
    (tmp_path / "cvstats_broken.py").write_text("def shiny(log:\n")
    monkeypatch.syspath_prepend(tmp_path)
    for names in (registry.INTERVALS, registry.FUNCTIONS):
        monkeypatch.setitem(names, "shiny", "cvstats_broken")
    log = pd.Series([0.5, 1.0, 2.5, 4.0], pd.RangeIndex(4, name="point"))
    assert cvstats.interval(log).attrs["method"] == "holdout"
    with pytest.warns(UserWarning, match=r"cvstats\.shiny cannot be imported: SyntaxError"):
        table = cvstats.methods(log)
    assert table.loc["holdout", "applies"]
    with pytest.raises(SyntaxError):
        registry.find_function("shiny")


# --- methods of the accessor ----------------------------------------------------------------------


@pytest.mark.process
def test_a_method_is_complete_at_the_first_look(seen):
    assert "cvstats.reporting" not in seen["looked"]
    kinds = []
    for name, (kind, same, words, signature, page) in seen["looks"].items():
        kinds.append(kind)
        assert same
        assert words == getattr(CVAccessor, name).__doc__
        assert "losses : " not in words
        assert "missing: 'Missing' = 'raise'" in signature
        assert words.splitlines()[0] in page
    assert kinds == ["method", "function", "function"]


@pytest.mark.process
def test_the_page_of_the_class_tells_of_every_method(seen):
    assert {"best_set", "report", "wald"} < set(METHODS)
    for name in METHODS:
        assert f" {name}(" in seen["page"]
        assert inspect.getdoc(getattr(CVAccessor, name)).splitlines()[0] in seen["page"]


def test_a_method_leads_to_its_function():
    for name in METHODS:
        assert getattr(CVAccessor, name).__wrapped__ is getattr(cvstats, name)
