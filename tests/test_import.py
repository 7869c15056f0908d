"""What `import cvstats` loads, and that everything public is there although it loads little."""

from __future__ import annotations

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

AT_ONCE = {"LogError", "accessor", "errors"}
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
def loaded():
    """The modules that come with the libraries, the package, and three of its functions."""
    return {
        name: set(modules)
        for name, modules in told("""
import numba, pandas, scipy.special, xarray
told = {"libraries": list(sys.modules)}
import cvstats
told["cvstats"] = list(sys.modules)
cvstats.wald, cvstats.losses, cvstats.scan_parquet
told["functions"] = list(sys.modules)
""").items()
    }


@pytest.mark.process
def test_an_import_loads_nothing_but_a_few_modules_of_its_own(loaded):
    added = loaded["cvstats"] - loaded["libraries"]
    assert {name.partition(".")[0] for name in added} - sys.stdlib_module_names == {"cvstats"}
    rooms = {name.split(".")[1] for name in added if "." in name}
    assert {"cvstats.core.kernels", "cvstats.core.results"} <= added
    assert not rooms & {"api", "cli", "evaluation", "large", "log", "plans", "plot", "reporting"}


@pytest.mark.process
def test_an_import_loads_what_the_first_interval_would_wait_for():
    assert {"numba", "scipy.special"} <= set(told("import cvstats; told = list(sys.modules)"))


@pytest.mark.process
def test_a_function_loads_no_plots_and_no_reports(loaded):
    added = loaded["functions"] - loaded["cvstats"]
    assert "cvstats.log" in added
    assert not {"cvstats.plot", "cvstats.reporting", "cvstats.evaluation"} & added


# --- public names ---------------------------------------------------------------------------------


def read_by_type_checkers() -> dict[str, str]:
    """Find the module of each name that ``cvstats/__init__.py`` imports for type checkers."""
    tree = ast.parse(Path(cvstats.__file__).read_text("utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.asname or alias.name: statement.module
        for statement in block.body
        for alias in statement.names
    }


def test_type_checkers_read_what_python_imports():
    read = read_by_type_checkers()
    assert len(cvstats.__all__) == len(set(cvstats.__all__))
    assert {*read, *AT_ONCE} == set(cvstats.__all__)
    for name, module in read.items():
        found = getattr(cvstats, name)
        if module == "cvstats":
            assert found is sys.modules[f"cvstats.{name}"]
        else:
            assert found is vars(import_module(module))[name], name


@pytest.mark.process
def test_names_stay_what_they_are_when_every_module_is_loaded():
    # A module that is loaded becomes an attribute of its package, over a function of its name.
    modules = told("""
import pkgutil, types
import cvstats
for found in pkgutil.walk_packages(cvstats.__path__, "cvstats."):
    if not found.name.endswith("__main__"):
        __import__(found.name)
told = [n for n in cvstats.__all__ if isinstance(getattr(cvstats, n), types.ModuleType)]
""")
    assert modules == ROOMS


@pytest.mark.process
def test_names_are_listed_before_they_are_loaded_and_loaded_once():
    listed, known, kept, taken = told("""
import cvstats
told = [dir(cvstats), "wald" in vars(cvstats), cvstats.wald is vars(cvstats)["wald"]]
names = {}
exec("from cvstats import *", names)
told.append(sorted(names))
""")
    assert listed == sorted(listed)
    assert {*cvstats.__all__, "__doc__", "__version__"} <= set(listed)
    assert (known, kept) == (False, True)
    assert taken == sorted([*cvstats.__all__, "__builtins__"])


@pytest.mark.process
def test_a_room_is_imported_in_every_way():
    assert told("""
import cvstats.plans as rooms
from cvstats import datasets
from cvstats.plot import forest
import cvstats
told = [rooms.k_fold.__name__, datasets.list()[0], forest is cvstats.plot.forest]
""") == ["k_fold", "diabetes", True]


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
def test_a_method_is_complete_at_the_first_look():
    looks = told("""
import inspect, pydoc
import cvstats, pandas as pd
CVAccessor = cvstats.accessor.CVAccessor
told = {}
for name, place in [
    ("best_set", pd.Series([1.0, 2.0]).cvci), ("power", pd.DataFrame.cvci), ("rope", CVAccessor),
]:
    first = getattr(place, name)
    again = getattr(place, name)
    told[name] = [type(first).__name__, first == again, first.__doc__,
                  str(inspect.signature(first)), pydoc.plain(pydoc.render_doc(first))]
told["loaded"] = list(sys.modules)
""")
    assert "cvstats.reporting" not in looks.pop("loaded")
    kinds = []
    for name, (kind, same, words, signature, page) in looks.items():
        kinds.append(kind)
        assert same
        assert words == getattr(CVAccessor, name).__doc__
        assert "losses : " not in words
        assert "missing: 'Missing' = 'raise'" in signature
        assert words.splitlines()[0] in page
    assert kinds == ["method", "function", "function"]


@pytest.mark.process
def test_the_page_of_the_class_tells_of_every_method():
    page = told("""
import cvstats, pydoc
told = pydoc.plain(pydoc.render_doc(cvstats.accessor.CVAccessor))
""")
    assert {"best_set", "report", "wald"} < set(METHODS)
    for name in METHODS:
        assert f" {name}(" in page
        assert inspect.getdoc(getattr(CVAccessor, name)).splitlines()[0] in page


def test_a_method_leads_to_its_function():
    for name in METHODS:
        assert getattr(CVAccessor, name).__wrapped__ is getattr(cvstats, name)
