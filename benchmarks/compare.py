"""Compare the speed of two commits: ``python -m benchmarks.compare OLD NEW``.

Each commit is checked out into a temporary folder and runs in its own processes, alternating with
the other: old, new, new, old. Both run the benchmarks of this folder. A change is marked if all
rounds agree on its direction and the median is at least 3%.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import ROOT, amount, lay_out, seconds

LEAST = 0.03
SAMPLE, MOST = 0.02, 101
"""Minimum seconds and maximum number of calls of a sample: short calls are repeated."""
SIZES = {
    "full": (10**7, (10**5, 100), (10**5, 200), (1_000, 10**5), (10**7, 5_000), (10**6, 10**5)),
    "quick": (10**6, (10**4, 100), (10**4, 100), (1_000, 10**4), (10**6, 1_000), (10**5, 10**4)),
    "tiny": (1_000, (100, 5), (100, 5), (20, 30), (1_000, 5), (1_000, 50)),
}
"""Rows of a Series; points and models of a frame, and for all pairs; points and cells; sources;
points and sources of a lazy array."""

LAZY: dict[str, Callable[[Any], Any]] = {
    name: lambda losses, name=name: getattr(losses.cvci, name)().compute()
    for name in ("wald", "compare", "clustered")
}

Workload = tuple[Callable[[], Any], Callable[[Any], Any], bool]
"""A function that makes a log, the call, and whether each call gets a new index."""


def workloads(scale: str) -> dict[str, Workload | str]:
    """Name every workload of a scale; some are scripts that time themselves."""
    import cvstats
    from benchmarks import contract, logs, methods

    rows, frame, pairs, grid, sources, (points, clusters) = SIZES[scale]
    found: dict[str, Workload | str] = {
        "import cvstats": contract.IMPORT.format("cvstats"),
        "first interval in a process": contract.FIRST.format(10_000, "within-fold"),
    }
    for variance in contract.VARIANCES:
        wald = partial(cvstats.wald, variance=variance)
        made = {f"{rows:,} rows": partial(logs.series, rows),
                "100 rows": partial(logs.series, 100, 1)}  # fmt: skip
        for size, make in made.items():
            found[f"wald {variance}, {size}, checked"] = make, wald, False
            found[f"wald {variance}, {size}, first call"] = make, wald, True
        for order in "CF":
            name = f"wald {variance}, {frame[0]:,} x {frame[1]} models, order {order}"
            found[name] = partial(logs.frame, *frame, order=order), wald, False
        for dtype in ("float64", "float32"):
            name = f"wald {variance}, {grid[0]:,} x {grid[1]:,} cells, {dtype}"
            found[name] = partial(logs.grid, *grid, dtype=dtype), wald, False
    for name, (call, _) in contract.COMPARISONS.items():
        name = f"{name.format(pairs[1] * (pairs[1] - 1) // 2)}, {pairs[0]:,} points"
        found[name] = partial(logs.frame, *pairs, order="C"), call, False
    for name, call in contract.OF_GROUPS.items():
        found[f"{name}, {sources[1]:,} sources"] = partial(logs.grouped, *sources), call, False
    for name, call in LAZY.items():
        lazy = partial(logs.lazy, points, clusters if name == "clustered" else 0)
        found[f"lazy {name}, {points:,} points"] = lazy, call, False
    size = methods.SIZES["tiny" if scale == "tiny" else "full"]
    for name, (make, _) in methods.METHODS.items():
        found[f"method {name}, first call"] = (
            partial(make, size), partial(methods.apply_method, name=name, size=size), True,
        )  # fmt: skip
    return found


@lru_cache(maxsize=1)  # the log of one workload at a time
def prepare(scale: str, name: str) -> Callable[[], float]:
    """Make the log of a workload, call once, and return what times one call."""
    from benchmarks import logs

    workload = workloads(scale)[name]
    if isinstance(workload, str):
        command = [sys.executable, "-c", workload]
        call = partial(subprocess.run, command, capture_output=True, text=True, check=True)
        call()
        return lambda: float(call().stdout)
    make, ours, anew = workload
    log = make()
    ours(log)

    def one() -> float:
        argument = logs.unseen(log) if anew else log
        return seconds(lambda: ours(argument))

    return one


def answer(scale: str) -> None:
    """Time the workloads named on standard input, and print lines of JSON."""
    import cvstats

    print(json.dumps(cvstats.__file__), flush=True)
    for line in sys.stdin:
        try:
            one, found, start = prepare(scale, line.strip()), [], time.perf_counter()
            while not found or (time.perf_counter() - start < SAMPLE and len(found) < MOST):
                found.append(one())
            print(json.dumps(median(found)), flush=True)
        except Exception as error:  # an older commit may lack a function or refuse a log
            print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)


class Side:
    """A process of one commit, which runs `answer`."""

    def __init__(self, tree: Path, scale: str) -> None:
        runner = tree.parent / "runner"
        path = os.pathsep.join([str(runner), str(tree)])
        environment = {**os.environ, "PYTHONPATH": path}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # both cache compiled code
        code = f"from benchmarks import compare; compare.answer({scale!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=runner, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        package = Path(str(self.read()))
        if tree.resolve() not in package.resolve().parents:
            self.close()
            raise SystemExit(f"expected cvstats of the commit, and Python imports {package}")

    def read(self) -> Any:
        """Read one answer."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        return json.loads(line) if line else "the process ended early"

    def time(self, name: str) -> float:
        """Time a workload."""
        if self.process.stdin:
            print(name, file=self.process.stdin, flush=True)
        found = self.read()
        if isinstance(found, str):
            raise RuntimeError(found)
        return float(found)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def git(*arguments: str) -> str:
    """Run git in this repository, without hooks."""
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


Rounds = list[list[tuple[float, float]]]
"""Seconds of old and new, pair by pair, in rounds of new processes."""


def compare(
    commits: Sequence[str], names: Sequence[str], scale: str, rounds: int, pairs: int
) -> dict[str, Rounds | str]:
    """Check out both commits, and time every workload in turns; a str is an error."""
    found: dict[str, Rounds | str] = {name: [] for name in names}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        shutil.copytree(ROOT / "benchmarks", folder / "runner" / "benchmarks")
        trees = [folder / "old", folder / "new"]
        for tree, commit in zip(trees, commits, strict=True):
            git("worktree", "add", "--quiet", "--detach", str(tree), commit)
            stack.callback(git, "worktree", "remove", "--force", str(tree))
        for _ in range(rounds):
            with ExitStack() as processes:
                old, new = (Side(tree, scale) for tree in trees)
                processes.callback(old.close)
                processes.callback(new.close)
                for name, times in found.items():
                    if isinstance(times, list):
                        try:
                            times.append(time_in_turns(old, new, name, pairs))
                        except RuntimeError as error:
                            found[name] = str(error)
    return found


def time_in_turns(old: Side, new: Side, name: str, pairs: int) -> list[tuple[float, float]]:
    """Time a workload: old, new, new, old."""
    for side in (old, new):
        side.time(name)  # makes the log
    found = []
    for pair in range(pairs):
        after = new.time(name) if pair % 2 else None
        before = old.time(name)
        found.append((before, new.time(name) if after is None else after))
    return found


def describe(name: str, rounds: Rounds | str) -> tuple[str, ...]:
    """Make a line of the table: medians, the ratio of each round, and whether they agree."""
    if isinstance(rounds, str):
        return (name, "", "", "", "", rounds)
    old, new = (median(times) for times in zip(*chain(*rounds), strict=True))
    middle = median(after / before for before, after in chain(*rounds))
    each = sorted(median(after / before for before, after in pairs) for pairs in rounds)
    mark = ""
    if abs(middle - 1) >= LEAST and (each[-1] < 1 or each[0] > 1):
        mark = "faster" if middle < 1 else "SLOWER"
    span = f"{each[0]:.3f} to {each[-1]:.3f}"
    return (name, amount(old), amount(new), f"{middle:.3f}", span, mark)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("old", nargs="?", default="HEAD~1", help="a commit, branch or tag")
    parser.add_argument("new", nargs="?", default="HEAD", help="another")
    parser.add_argument("--only", nargs="+", help="workloads with one of these in their names")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    parser.add_argument("--scale", choices=SIZES, default="full", help="how large the logs are")
    parser.add_argument("--pairs", type=int, default=8, help="pairs of samples in each round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of new processes")
    chosen = parser.parse_args()
    every = list(workloads(chosen.scale))
    names = [name for name in every if any(part in name for part in chosen.only or [""])]
    if not names:
        parser.error(f"no workload has one of {chosen.only} in its name: --list shows them")
    if chosen.list:
        print(*names, sep="\n")
        return
    try:
        described = [git("log", "-1", "--format=%h %s", name) for name in (chosen.old, chosen.new)]
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip().splitlines()[0])
    found = compare((chosen.old, chosen.new), names, chosen.scale, chosen.rounds, chosen.pairs)
    print(f"old: {described[0]}", f"new: {described[1]}", "", sep="\n")
    head = ("work", "old", "new", "new / old", "of each round", "beyond noise")
    print(lay_out([head, *(describe(*item) for item in found.items())], left=1))


if __name__ == "__main__":
    main()
