"""Who may import whom: the rooms of the package, checked on its syntax trees.

A room is a module or a sub-package directly under ``cvstats/``. It imports only rooms with a
lower number, so no change in one room can break what stands below it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

LAYERS = {
    "errors": 0,
    "core": 1,
    **dict.fromkeys(("comparisons", "findings", "intervals", "plans"), 2),
    **dict.fromkeys(("containers", "datasets"), 3),
    "loss_functions": 4,
    **dict.fromkeys(("evaluation", "io"), 5),
    "api": 6,
    "plot": 7,
    "reporting": 8,
    **dict.fromkeys(("accessor", "cli"), 9),
    "__init__": 10,
}
CONTAINERS = {"dask", "pandas", "xarray"}
PURE = {"comparisons", "core", "errors", "intervals"}
KERNELS_MAY = {"numba", "numpy", *sys.stdlib_module_names}
OPTIONAL = {
    "cf_xarray",
    "cyclopts",
    "dask",
    "distributed",
    "h5netcdf",
    "h5py",
    "jinja2",
    "joblib",
    "matplotlib",
    "pyarrow",
    "rich",
    "sklearn",
    "tqdm",
    "zarr",
}

MADE_FOR = {"cli/commands.py": "cyclopts", "cli/inputs.py": "cyclopts"}
"""Modules that are themselves imported by a function, once their optional package is found."""


def imports(node: ast.AST, package: list[str], at_load: bool = True) -> Iterator[tuple[str, bool]]:
    """Yield each import below a node: its dotted name, and if it runs as the module loads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_load) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = package[: len(package) + 1 - child.level] if child.level else []
            module = [child.module] if child.module else []
            yield from ((".".join(base + module + [a.name]), at_load) for a in child.names)
        else:
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            )
            yield from imports(child, package, at_load and not later)


def violations(root: Path) -> list[str]:
    """Say which imports of the package at ``root`` break the rules, a line each."""
    rooms = {path.stem for path in root.iterdir() if path.suffix == ".py" or path.is_dir()}
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        room, file = parts[0], path.relative_to(root).as_posix()
        if room not in LAYERS:
            found.append(f"{file}: {room} has no layer, give it one in {Path(__file__).name}")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, at_load in imports(tree, [root.name, *parts[:-1]]):
            top, *inner = name.split(".")
            if top == root.name:
                # What is not a module of the package is a name out of its __init__.
                target = inner[0] if inner and inner[0] in rooms else "__init__"
                lower = LAYERS.get(target, 99) < LAYERS[room]
                if target != room and not lower:
                    found.append(f"{file}: {room} may not import {target}")
            elif room in PURE and top in CONTAINERS:
                found.append(f"{file}: {room} may not see {top}")
            elif file == "core/kernels.py" and top not in KERNELS_MAY:
                found.append(f"{file}: kernels import numba and numpy only, not {top}")
            elif top in OPTIONAL and at_load and MADE_FOR.get(file) != top:
                found.append(f"{file}: {top} is optional, import it in the function that needs it")
    return list(dict.fromkeys(found))  # one line for several names from one module


def test_rooms_import_only_downwards() -> None:
    spec = find_spec("cvstats")
    assert spec is not None
    assert spec.origin is not None
    assert violations(Path(spec.origin).parent) == []


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("errors.py", "from cvstats.core.design import Design", "errors may not import design"),
        ("errors.py", "from . import kernels", "errors may not import kernels"),
        ("design.py", "from cvstats.core.moments import Moments", "design may not import moments"),
        ("intervals/wald.py", "from ..comparison import pairs", "intervals may not import compar"),
        ("intervals/wald.py", "import cvstats.api", "intervals may not import api"),
        ("intervals/wald.py", "from ..nowhere import x", "intervals may not import __init__"),
        ("api/wald.py", "import cvstats", "api may not import __init__"),
        ("api/wald.py", "from cvstats import __version__", "api may not import __init__"),
        ("cli.py", "def main():\n    from cvstats import wald", "cli may not import __init__"),
        ("comparison/pairs.py", "import xarray as xr", "comparison may not see xarray"),
        ("moments.py", "def f():\n    import dask.array", "moments may not see dask"),
        ("design.py", "from pandas.api.types import is_list_like", "design may not see pandas"),
        ("kernels.py", "from scipy.special import ndtri", "numba and numpy only, not scipy"),
        ("cli.py", "import cyclopts", "cyclopts is optional"),
        ("containers.py", "class A:\n    import dask", "dask is optional"),
        ("chunked.py", "try:\n    import dask\nexcept ImportError: ...", "dask is optional"),
        ("utils.py", "", "utils has no layer"),
        ("errors.py", "from cvstats.api import a, b", "errors may not import api"),
    ],
)
def test_a_bad_import_is_found(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    root = good_tree(tmp_path)
    (root / file).write_text(source, encoding="utf-8")
    (found,) = violations(root)
    assert found.startswith(f"{file}: ")
    assert complaint in found


def test_a_good_tree_passes(tmp_path: Path) -> None:
    assert violations(good_tree(tmp_path)) == []


def good_tree(tmp_path: Path) -> Path:
    """Write a small package that keeps every rule, in each form of import."""
    root = tmp_path / "cvstats"
    files = {
        "__init__.py": "from cvstats.api import wald\nfrom cvstats import moments",
        "kernels.py": "from __future__ import annotations\nimport os\nimport numba, numpy as np",
        "errors.py": "",
        "design.py": "from .errors import LogError",
        "moments.py": "from cvstats import design, kernels",
        "chunked.py": "def total():\n    import dask.array",
        "containers.py": "if TYPE_CHECKING:\n    import dask\nimport pandas\nimport xarray",
        "intervals/__init__.py": "from . import wald",
        "intervals/wald.py": "import scipy.special\nfrom ..moments import Moments",
        "comparison/__init__.py": "from cvstats.comparisons.pairs import pairs",
        "comparison/pairs.py": "from ..moments import Moments",
        "api/__init__.py": "from .wald import wald",
        "api/wald.py": "import cvstats.core.moments\nfrom cvstats.intervals.wald import wald",
        "cli.py": "def main():\n    import cyclopts",
    }
    for name, source in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source, encoding="utf-8")
    return root
