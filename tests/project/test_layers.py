"""Who may import whom, checked on the syntax trees of the package.

A part is a module or a subpackage directly under ``cvstats/``. It imports only parts with a lower
number in the table of ``docs/architecture.md``, so no change in one part can break what lies below
it; and no modules of a part import each other in a circle.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \|", re.MULTILINE)
LAYERS = {
    name.rstrip("/"): int(number)
    for number, names in ROW.findall(PAGE.read_text(encoding="utf-8"))
    for name in re.findall(r"`([\w/]+)`", names)
}
"""The number of each part, from the table of the documentation, which is the only one."""

CONTAINERS = {"dask", "pandas", "xarray"}
(RULE,) = re.findall(r"^- ([^.]+) never import pandas", PAGE.read_text("utf-8"), re.MULTILINE)
PURE = set(re.findall(r"`(\w+)/?`", RULE))
"""The parts that know no container, from the rules below that table."""

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
MADE_FOR = {"cli/commands.py": "cyclopts"}
"""Files that `cli.main` imports when it is called, and the optional package they are made for."""


def imports(node: ast.AST, package: list[str], at_load: bool = True) -> Iterator[tuple[str, bool]]:
    """Yield each import below a node: its dotted name, and if it runs as the module loads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_load) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = package[: len(package) + 1 - child.level] if child.level else []
            module = [child.module] if child.module else []
            yield from ((".".join(base + module + [a.name]), at_load) for a in child.names)
        elif not isinstance(child, ast.expr):  # no expression contains an import
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            )
            yield from imports(child, package, at_load and not later)


@cache
def imports_of(source: str, package: str) -> list[tuple[str, bool]]:
    """List the imports of a module of a package; each module is read once for all rules."""
    return [*imports(ast.parse(source), package.split("."))]


def imports_in(path: Path, root: Path) -> list[tuple[str, bool]]:
    package = ".".join(path.relative_to(root.parent).parts[:-1])
    return imports_of(path.read_text(encoding="utf-8"), package)


def violations(root: Path) -> list[str]:
    """List the imports of the package at ``root`` that break the rules, a line each."""
    parts_of_root = {path.stem for path in root.iterdir() if path.suffix == ".py" or path.is_dir()}
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        part, file = parts[0], path.relative_to(root).as_posix()
        if part not in LAYERS:
            found.append(f"{file}: {part} has no layer, give it one in {PAGE.name}")
            continue
        for name, at_load in imports_in(path, root):
            top, *inner = name.split(".")
            if top == root.name:
                # What is not a module of the package is a name out of its __init__.
                target = inner[0] if inner and inner[0] in parts_of_root else "__init__"
                if target != part and LAYERS.get(target, 99) >= LAYERS[part]:
                    found.append(f"{file}: {part} may not import {target}")
            elif part in PURE and top in CONTAINERS:
                found.append(f"{file}: {part} may not import {top}")
            elif file == "core/kernels.py" and top not in KERNELS_MAY:
                found.append(f"{file}: kernels import numba and numpy only, not {top}")
            elif top in OPTIONAL and at_load and MADE_FOR.get(file) != top:
                found.append(f"{file}: {top} is optional, import it in the function that needs it")
    return list(dict.fromkeys(found))  # one line for several names from one module


def circles(root: Path) -> list[list[str]]:
    """List the modules of each circle of imports, those for type checkers among them."""
    files = {
        ".".join(path.relative_to(root.parent).with_suffix("").parts): path
        for path in sorted(root.rglob("*.py"))
    }
    targets: dict[str, list[str]] = {}
    for module, path in files.items():
        # An import names a module, or a thing out of one.
        found = (next((x for x in (name, name.rpartition(".")[0]) if x in files), None)
                 for name, _ in imports_in(path, root))  # fmt: skip
        targets[module] = [name for name in dict.fromkeys(found) if name]

    def reached(module: str) -> set[str]:
        seen: set[str] = set()
        todo = [module]
        while todo:
            new = [name for name in targets[todo.pop()] if name not in seen]
            seen.update(new)
            todo += new
        return seen

    below = {module: reached(module) for module in targets}
    found = {
        tuple(sorted(name for name in below[module] if module in below[name]))
        for module in targets if module in below[module]
    }  # fmt: skip
    return [list(circle) for circle in sorted(found)]


def package() -> Path:
    spec = find_spec("cvstats")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def test_parts_import_only_downwards() -> None:
    assert violations(package()) == []


def test_every_part_of_the_table_is_there() -> None:
    assert LAYERS.keys() == {
        path.stem for path in package().iterdir() if path.suffix == ".py" or path.is_dir()
    } - {"__pycache__"}


def test_the_files_of_the_page_are_there() -> None:
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE.read_text(encoding="utf-8"))
    roots = package(), package().parent, PAGE.parents[1]
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def test_no_modules_import_each_other() -> None:
    assert circles(package()) == []
