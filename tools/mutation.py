"""Mutation testing: change one expression at a time, and check whether a test fails.

::

    python -m tools.mutation --sample 200 --seed 7
    python -m tools.mutation --sample 50 --only cvstats/intervals --minutes 10 --record folder
    python -m tools.mutation --only cvstats/intervals/wald.py --tests tests/intervals/test_wald.py

Everything happens in a copy of the tree. First the tests run once with coverage, which records the
lines that each of them runs. ``--record`` keeps the record in a folder: a later run on other code
finds its lines again, and records only the tests that are new. The examples of docstrings and pages
are tests too. Then, for each change in a line that some test runs, these tests run until one fails,
first those that run few lines: they are about this one. The lines of a compiled function are run by
the tests that run its calls. A change that no test notices within ``--patience`` seconds is tried
again at the end, with ten times as many tests and seconds, and with the other tests of these files,
which may use what the first of them computed; one that makes them hang counts as killed. Times are
processor times, so that a record made on a busy machine chooses the same tests. The last line says
how many of the changes were killed, with an interval for the share.

What cannot change an answer is left alone: annotations, docstrings, names of types, imports, blocks
for type checkers, ``strict=`` of ``zip``, which only checks that lengths are equal, and the 1 of
``reshape(-1)``, for which numpy takes any other negative number too. ``return False`` becomes
``return True``, and not also ``return None``, which is false too.

The tests of a change run in a fork of this process, which has imported the libraries that they
need: two of them first, then ten, then the others. The test that fails runs again without the
change; one that fails then too is named, left out, and the change is tried again.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import json
import multiprocessing
import os
import random
import re
import resource
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from coverage.numbits import numbits_to_nums

ROOT = Path(__file__).parents[1]
COPIED = ("cvstats", "tests", "tools", "docs", "evidence", "benchmarks", ".ci", ".github")
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
OWN = [option for option in OPTIONS["ini_options"]["addopts"] if not option.startswith("--dist")]
"""Options of the project but that of a plugin which forks leave out."""
PYTEST = ["-q", "-p", "no:cacheprovider", "-o", f"addopts={shlex.join(OWN)}"]
TESTS = ["-m", "not slow and not process", "--ignore=tests/benchmarks", "--ignore=tests/evidence"]
TESTED = ["tests", "cvstats", "docs", "README.md"]
"""What pyproject.toml tests."""

LIBRARIES = (
    "dask.array", "dask.dataframe", "hypothesis", "matplotlib.pyplot", "numba", "pandas",
    "pyarrow.parquet", "scipy.stats", "sklearn.linear_model", "statsmodels.api", "xarray",
)  # fmt: skip
"""Imported once, before any fork."""

FORKED = [*PYTEST, "-x", "--assert=plain", "-p", "no:unraisableexception"]
"""Plugins that forks do not need, which take most of the time of a short test."""

CUTS = (2, 12)
"""Numbers of tests of a change after which a new fork runs the next ones."""

OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""Replacements of operators."""


@dataclass(frozen=True)
class Mutant:
    """One expression of a file, and its replacement."""

    file: str
    line: int
    start: int  # in bytes of the file
    stop: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"


# --- changes --------------------------------------------------------------------------------------


def without_types(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk the nodes that do something: no annotations, docstrings or checks of lengths."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or is_of_types(child):
                continue
            yield child
            yield from without_types(child)


def is_of_types(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True
    called = isinstance(node, ast.Call) and ast.unparse(node.func)
    return called in ("cast", "TypeVar", "NewType") or isinstance(node, ast.Import | ast.ImportFrom)


def is_alias(node: ast.stmt) -> bool:
    """Whether a statement gives a type a name: ``Losses = Series | DataFrame``."""
    return isinstance(node, ast.Assign) and bool(
        re.fullmatch(r"[A-Z][A-Za-z]*[a-z]\w*", ast.unparse(node.targets[0]))
    )


def unknown_sizes(tree: ast.AST) -> set[ast.AST]:
    """Find the 1 of each ``-1`` in a call of ``reshape``."""
    return {
        size.operand
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and name_of(call.func) == "reshape"
        for size in call.args
        if isinstance(size, ast.UnaryOp) and isinstance(size.op, ast.USub)
    }


def changes_of(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Yield the expressions to replace, and their replacements."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHER:
        yield node, ast.Compare(node.left, [OTHER[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OTHER:
        if not any(isinstance(side, ast.Constant | ast.JoinedStr) and not is_number(side)
                   for side in (node.left, node.right)):  # fmt: skip
            yield node, ast.BinOp(node.left, OTHER[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield node, ast.BoolOp(OTHER[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node, node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and is_number(node):
        yield node, ast.Constant(node.value + 1)
    elif isinstance(node, ast.Return) and node.value is not None:
        value = node.value
        if not (isinstance(value, ast.Constant) and isinstance(value.value, bool | None)):
            yield value, ast.Constant(None)
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr
    ):
        yield node.test, ast.UnaryOp(ast.Not(), node.test)


def is_number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    """Yield the changes of single expressions of a file."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not is_alias(node)]
    seen, left_alone = set(), unknown_sizes(tree)
    for node in without_types(tree):
        if node in left_alone:
            continue
        for old, new in changes_of(node):
            start = starts[old.lineno - 1] + old.col_offset
            stop = starts[old.end_lineno - 1] + old.end_col_offset
            before = source[start:stop].decode()
            after = f"({ast.unparse(new)})"
            if "\n" not in before and (start, stop, after) not in seen:
                seen.add((start, stop, after))
                name = path.relative_to(root).as_posix()
                yield Mutant(name, old.lineno, start, stop, before, after)


# --- which tests run which lines ------------------------------------------------------------------


def add_to_record(tree: Path, folder: Path, tests: list[str]) -> None:
    """Run tests once, and record the lines and the duration of each."""
    folder.mkdir(exist_ok=True)
    data = folder / f"{len(list(folder.glob('*.data')))}.data"
    settings = tree / "mutation.ini"
    settings.write_text(f"[run]\nsource_pkgs = cvstats\ndata_file = {data}\n")
    sources = {file: (tree / file).read_text("utf-8").splitlines() for file in files_of(tree)}
    data.with_suffix(".json").write_text(json.dumps(sources), "utf-8")
    times = Times(data.with_suffix(".times"))
    times.path.write_text("")  # all tests may be skipped
    command = [*PYTEST, *TESTS, *tests, "--cov", f"--cov-config={settings}", "--cov-context=test",
               "--cov-report="]  # fmt: skip
    process = in_fork(command, times)
    process.join()
    if process.exitcode not in (0, 1):
        sys.exit(f"the tests cannot be run: pytest ends with {process.exitcode}")
    for name, seconds in times.read().items():
        if seconds == FAILS:
            print(f"fails unchanged: {name}")


def files_of(tree: Path) -> list[str]:
    return sorted(path.relative_to(tree).as_posix() for path in (tree / "cvstats").rglob("*.py"))


def find_new_lines(old: list[str], new: list[str]) -> dict[int, list[int]]:
    """Map the lines of a file to the same lines now, and changed ones to those in their place."""
    found = {}
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for _, start, stop, new_start, new_stop in matcher.get_opcodes():
        same = stop - start == new_stop - new_start
        for at in range(start, stop):
            lines = [new_start + at - start] if same else range(new_start, new_stop)
            found[at + 1] = [line + 1 for line in lines]
    return found


FAILS = float("inf")
"""The time of a test that fails without any change."""


class Times:
    """The processor time of each test, written to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, float]:
        lines = (line.partition(" ") for line in self.path.read_text().splitlines())
        return {name: float(seconds) for seconds, _, name in lines}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            item.user_properties.append(("seconds", time.process_time() - start))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.when == "call":
            seconds = FAILS if report.failed else dict(report.user_properties)["seconds"]
            with self.path.open("a") as file:
                file.write(f"{seconds:.3f} {report.nodeid}\n")


def find_compiled(tree: Path) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Map each line of a compiled function to the lines that call it, which coverage sees."""
    bodies: dict[str, list[tuple[str, int]]] = {}
    calls: dict[str, list[tuple[str, int]]] = {}
    for file in files_of(tree):
        for node in ast.walk(ast.parse((tree / file).read_bytes())):
            if isinstance(node, ast.FunctionDef) and "compiled" in map(
                name_of, node.decorator_list
            ):
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                bodies.setdefault(node.name, []).extend((file, line) for line in lines)
            elif isinstance(node, ast.Call) and (name := name_of(node.func)):
                calls.setdefault(name, []).append((file, node.lineno))
    found = {line: calls.get(name, []) for name, lines in bodies.items() for line in lines}
    for _ in range(3):  # compiled functions call each other
        for line, places in found.items():
            found[line] = sorted({other for place in places for other in found.get(place, [place])})
    return found


def name_of(node: ast.expr) -> str:
    """Name a function that is called or decorates, without what comes before the last dot."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class Record:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.tests: dict[tuple[str, int], set[str]] = {}
        self.lines: dict[str, int] = {}
        self.times: dict[str, float] = {}
        self.compiled = find_compiled(tree)
        self.known: list[str] = []
        for path in sorted(folder.glob("*.data")):
            self.times |= Times(path.with_suffix(".times")).read()
            self.read(path, tree)

    def read(self, path: Path, tree: Path) -> None:
        """Read the data of some tests, and find their lines in the code as it is now."""
        old = json.loads(path.with_suffix(".json").read_text("utf-8"))
        new = {file: (tree / file).read_text("utf-8").splitlines() for file in files_of(tree)}
        moved = {file: find_new_lines(old[file], new[file]) for file in old.keys() & new.keys()}
        with sqlite3.connect(path) as data:
            rows = data.execute(
                "select file.path, context.context, line_bits.numbits from line_bits "
                "join file on file.id = file_id join context on context.id = context_id"
            )
            for file, context, bits in rows:
                name = file[file.rindex("/cvstats/") + 1 :]
                test, _, _ = context.rpartition("|")
                lines = numbits_to_nums(bits) if test in self.times and name in moved else []
                self.lines[test] = self.lines.get(test, 0) + len(lines)
                for line in lines:
                    for now in moved[name].get(line, ()):
                        self.tests.setdefault((name, now), set()).add(test)

    def keep(self, tests: list[str]) -> None:
        """Forget the tests that no longer exist."""
        self.known = tests
        for found in self.tests.values():
            found.intersection_update(tests)

    def tests_of(
        self, mutant: Mutant, most: int, patience: float, *, others: bool = False
    ) -> list[str]:
        """Tests of its line, of few lines first: one of each file, then one more, and so on.

        ``others``: then the other tests of these files.
        """
        line = mutant.file, mutant.line
        places = [line, *self.compiled.get(line, ())]
        every = set().union(*(self.tests.get(place, ()) for place in places))
        found = sorted(every, key=self.lines.__getitem__)
        if others:
            files = {test.split("::")[0] for test in every}
            found += [
                test for test in self.known if test.split("::")[0] in files and test not in every
            ]
        by_file: dict[str, list[str]] = {}
        for test in found:
            if self.time_of(test) != FAILS:
                by_file.setdefault(test.split("::")[0], []).append(test)
        chosen, spent = [], 0.0
        turns = max(map(len, by_file.values()), default=0)
        for turn in range(turns):
            for tests in by_file.values():
                if turn < len(tests) and len(chosen) < most and spent < patience:
                    chosen.append(tests[turn])
                    spent += self.time_of(tests[turn])
        return chosen

    def time_of(self, test: str) -> float:
        return self.times.get(test, 0.01)


# --- trying ---------------------------------------------------------------------------------------


def environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "CVSTATS_THREADS": "2", "CI": "1",
            "OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(tree / "numba")}  # fmt: skip


def copy_tree(to: Path) -> Path:
    for name in COPIED:
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, to)
    return to


def enter(tree: Path) -> None:
    """Let this process, and all that it starts, run in the tree."""
    os.environ.update(environment(tree))
    os.chdir(tree)
    sys.path.insert(0, str(tree))


def collect(tests: list[str]) -> list[str]:
    """List the tests by their ids, which also compiles the tree."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST, *TESTS, *tests, "--collect-only"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "::" in line]


def prepare() -> None:
    """Import what all tests need, before forking."""
    os.environ |= {"MPLBACKEND": "agg", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in LIBRARIES:
        importlib.import_module(name)
    if "cvstats" in sys.modules:
        sys.exit("a library imports cvstats")
    sys.dont_write_bytecode = True


class Failure:
    """The name of the first test that fails, written to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid)


def in_fork(command: list[str], plugin: object, seconds: int | None = None) -> BaseProcess:
    """Run pytest in a new process, which exits with its status, or dies after so much work."""
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=run, args=(command, plugin, seconds))
    process.start()
    return process


def run(command: list[str], plugin: object, seconds: int | None) -> None:
    status = BROKEN
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        with open(os.devnull, "w") as null:
            for stream in (1, 2):
                os.dup2(null.fileno(), stream)
            status = int(pytest.main(command, [plugin]))
    finally:
        os._exit(status)


BROKEN = 70
"""Status of a process in which pytest itself failed."""


def find_failure(tests: list[str], patience: float, *, changed: bool) -> str | None:
    """Name the first test that fails; empty if tests hang, crash or cannot be imported."""
    seconds = int(3 * patience + 60)
    told = Path("failure.txt")
    told.unlink(missing_ok=True)
    process = in_fork([*FORKED, *tests], Failure(told), seconds)
    process.join(10 * seconds)  # what waits does no work
    if process.is_alive():
        process.kill()
        process.join()
    if process.exitcode == 0:
        return None
    exits = (BROKEN, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
    broken = process.exitcode in exits
    if broken and not changed:  # a change may break pytest, such as one that removes its folders
        sys.exit(f"pytest does not run: {tests[:3]}")
    return told.read_text() if told.exists() else ""


def find_killer(mutant: Mutant, tree: Path, tests: list[str], patience: float) -> str | None:
    """Name the test that detects the change."""
    path = tree / mutant.file
    source, time = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.stop :])
    os.utime(path, ns=(0, 0))  # invalidates the compiled file
    try:
        for start, stop in itertools.pairwise((0, *CUTS, None)):
            part = tests[start:stop]
            killer = find_failure(part, patience, changed=True) if part else None
            if killer is not None:
                return killer
        return None
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(time, time))


def survives(
    mutant: Mutant, tree: Path, record: Record, sound: set[str], chosen: argparse.Namespace,
    *, others: bool = False,
) -> bool:  # fmt: skip
    """Whether the change survives all tests that pass without it."""
    while True:
        tests = record.tests_of(mutant, chosen.most, chosen.patience, others=others)
        killer = find_killer(mutant, tree, tests, chosen.patience)
        if killer is None:
            return True
        failed = [killer] if killer else tests
        if not sound.issuperset(failed):
            again = find_failure(failed, chosen.patience, changed=False)
            if again is not None:
                print(f"fails unchanged: {again or failed}")
                record.times[again or failed[0]] = FAILS
                continue
            sound.update(failed)
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=200, help="how many changes to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=["cvstats"], help="files or folders to change")
    parser.add_argument("--tests", nargs="*", default=TESTED, help="the tests to run")
    parser.add_argument("--record", type=Path, help="a folder for what runs which lines")
    parser.add_argument("--minutes", type=float, default=60, help="begin nothing after this time")
    parser.add_argument("--patience", type=float, default=40, help="seconds of tests for a change")
    parser.add_argument("--most", type=int, default=400, help="tests for a change")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder) / "tree")
        kept = (chosen.record or Path(folder) / "record").absolute()
        enter(tree)
        tests, record = collect(chosen.tests), Record(kept, tree)
        if new := [test for test in tests if test not in record.times]:
            add_to_record(tree, kept, new if record.times else chosen.tests)
            record = Record(kept, tree)
        record.keep(tests)
        files = sorted(
            file for only in chosen.only for file in
            ([tree / only] if only.endswith(".py") else (tree / only).rglob("*.py"))
        )  # fmt: skip
        known = [m for file in files for m in mutants_of(file, tree) if record.tests_of(m, 1, 1)]
        sample = random.Random(chosen.seed).sample(known, min(chosen.sample, len(known)))
        print(f"{len(known):,} changes in lines that tests run; {len(sample)} of them are tried")
        prepare()
        report(sample, tree, record, chosen)


LONGER = 10
"""How much longer what survived is tried again."""


def report(sample: list[Mutant], tree: Path, record: Record, chosen: argparse.Namespace) -> None:
    """Try each change, and print those that survived."""
    from scipy.stats import binomtest

    end = time.monotonic() + 60 * chosen.minutes
    tries: list[Mutant] = []
    alive: list[Mutant] = []
    sound: set[str] = set()
    for mutant in sample:
        if time.monotonic() > end:
            break
        tries.append(mutant)
        print(f"{len(tries)} of {len(sample)}: {mutant}", flush=True)
        if survives(mutant, tree, record, sound, chosen):
            print(f"survived so far: {mutant}", flush=True)
            alive.append(mutant)
    chosen.patience, chosen.most = LONGER * chosen.patience, LONGER * chosen.most
    alive = [
        mutant for mutant in alive if survives(mutant, tree, record, sound, chosen, others=True)
    ]
    for mutant in alive:
        print(f"survived: {mutant}")
    tried, killed = len(tries), len(tries) - len(alive)
    low, high = binomtest(killed, tried).proportion_ci(method="wilson") if tried else (0, 1)
    print(f"killed {killed} of {tried} ({killed / max(tried, 1):.1%}, 95% {low:.1%} to {high:.1%})")


if __name__ == "__main__":
    main()
