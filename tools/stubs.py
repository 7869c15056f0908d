"""Write the names that type checkers and editors read, from the registry of public functions.

    python -m tools.stubs            # write the files
    python -m tools.stubs --check    # fail if one of them is out of date

At run time a function is imported when it is first used, and methods are added to classes, which
type checkers do not see. They read these ``.pyi`` files instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_overloads

import cvstats
from cvstats.registry import FUNCTIONS, PLOTS, TOOLS, find_function

PACKAGE = Path(__file__).parents[1] / "cvstats"
WRITTEN = "written by ``python -m tools.stubs``"
MODULES = ("accessor", "datasets", "errors", "plans", "plot")

METHODS = '''\
"""The functions of a log as methods, for type checkers; {written}."""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import cvstats
from cvstats.log.log import TableFunction

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

class TableMethod(Protocol[P]):
    def __get__(self, instance: MomentsMethods[T], owner: object) -> Callable[P, T]: ...

@overload
def method(function: TableFunction[P]) -> TableMethod[P]: ...
@overload
def method(function: Callable[Concatenate[Any, P], R]) -> staticmethod[P, R]: ...

class MomentsMethods(Generic[T]):
{moments}

class LogMethods(MomentsMethods[T]):
{logs}
'''

PLOT = '''\
"""Plots of logs and of results, for type checkers; {written}."""

from cvstats import plot
from cvstats.log.log import Losses
from cvstats.log.methods import method
{imports}

class Plots:
    def __init__(self, losses: Losses) -> None: ...
{methods}
'''


def write_imports(modules: Mapping[str, str]) -> str:
    """Write the import of each name from its module, as a name that users may import."""
    ordered = sorted((module, name) for name, module in modules.items())
    return "\n".join(f"from {module} import {name} as {name}" for module, name in ordered)


def write_methods(names: Iterable[str]) -> str:
    """Write functions of a log as methods; those with several signatures without types."""
    return "\n".join(
        f"    {name}: Callable[..., Any]"
        if get_overloads(find_function(name))
        else f"    {name} = method(cvstats.{name})"
        for name in sorted(names)
    )


def write_stubs() -> dict[Path, str]:
    """Write the text of each file."""
    modules = dict.fromkeys(MODULES, "cvstats") | {"LogError": "cvstats.errors"}
    imports = write_imports(modules | FUNCTIONS | TOOLS)
    of_moments = [name for name in FUNCTIONS if hasattr(cvstats.Moments, name)]
    return {
        PACKAGE / "__init__.pyi": f'"""The public names, for type checkers; {WRITTEN}."""\n\n'
        f"{imports}\n\n__version__: str\n",
        PACKAGE / "log" / "methods.pyi": METHODS.format(
            written=WRITTEN,
            moments=write_methods(of_moments),
            logs=write_methods(FUNCTIONS.keys() - of_moments),
        ),
        PACKAGE / "plot" / "__init__.pyi": PLOT.format(
            written=WRITTEN,
            imports=write_imports(PLOTS),
            methods="\n".join(f"    {name} = method(plot.{name})" for name in sorted(PLOTS)),
        ),
    }


def main(words: list[str]) -> int:
    """Write the files, or check them; return the exit status."""
    stubs = write_stubs()
    old = [path for path, text in stubs.items()
           if not path.exists() or path.read_text("utf-8") != text]  # fmt: skip
    for path in old:
        if "--check" in words:
            print(f"{path.relative_to(PACKAGE.parent)} is out of date: python -m tools.stubs")
        else:
            path.write_text(stubs[path], "utf-8")
    return int(bool(old) and "--check" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
