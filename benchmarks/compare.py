"""Compare the speed of two commits: ``python -m benchmarks.compare OLD NEW``.

Each commit is checked out as a worktree in a temporary folder, and called in processes of its own,
in turns with the other: old, new, new, old. The benchmarks are those of this folder for both. A
change is marked where it is beyond noise: every round of new processes agrees on its direction,
the interval of the median ratio excludes 1, and it is 3% at least.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from scipy import stats

from benchmarks import growth, processes
from benchmarks.processes import ROOT
from benchmarks.table import amount
from benchmarks.workloads import SIZES, workloads

SCRIPTS = {
    "import cvstats": processes.IMPORT.format("cvstats"),
    "first interval in a process": processes.FIRST.format("within-fold"),
}
LEAST, LEVEL = 0.03, 0.95


class Problem(Exception):
    """What one line tells the user."""


def git(*arguments: str) -> str:
    """Run git in this repository; no hook of the user's runs."""
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(done.stderr.strip().splitlines()[-1] if done.stderr else "git failed")
    return done.stdout.strip()


def commit_of(revision: str) -> str:
    """Find the commit that a revision names."""
    git("rev-parse", "--git-dir")  # says so where there is no repository
    try:
        found = git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except Problem:
        raise Problem(
            f"expected a commit, branch or tag of this repository, got {revision!r}: "
            f"`git log --oneline` lists the commits"
        ) from None
    if not git("ls-tree", found, "cvstats/__init__.py"):
        raise Problem(f"expected a commit with the package cvstats, got {revision!r} without it")
    return found


@contextmanager
def worktree(commit: str, folder: Path) -> Iterator[Path]:
    """Check a commit out into a folder, and remove it again whatever happens."""
    git("worktree", "add", "--quiet", "--detach", str(folder), commit)
    try:
        yield folder
    finally:
        git("worktree", "remove", "--force", str(folder))


class Side:
    """A process of one commit."""

    def __init__(self, tree: Path, runner: Path) -> None:
        path = os.pathsep.join([str(runner), str(tree)])
        self.environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # both keep what they compile
        # A pipe that nobody reads would stop the process once it is full.
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"], cwd=runner, env=self.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
        )  # fmt: skip
        self.tree, self.runner = tree, runner

    def __enter__(self) -> Side:
        """Wait for the first answer: the package that the process imports."""
        with ExitStack() as failing:
            failing.callback(self.close)
            package = Path(self.answer())
            if self.tree.resolve() not in package.parents:
                raise Problem(f"expected cvstats of the commit, and Python imports {package}")
            failing.pop_all()
        return self

    def __exit__(self, *problem: object) -> None:
        """End the process, and wait until it is gone."""
        self.close()

    def answer(self) -> Any:
        """Read one answer."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            self.process.wait()
            self.errors.seek(0)
            words = self.errors.read().strip()
            raise Problem(f"a process ended early: {words.splitlines()[-1] if words else 'killed'}")
        told = json.loads(line)
        if "problem" in told:
            raise Problem(told["problem"])
        return told["answer"]

    def ask(self, *task: str) -> Any:
        """Give a task and wait for its answer."""
        if self.process.stdin:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        return self.answer()

    def ready(self, scale: str, name: str) -> None:
        """Prepare a workload; a script is run once, so that its files are in memory."""
        if name in SCRIPTS:
            self.sample(name)
        else:
            self.ask("ready", scale, name)

    def sample(self, name: str) -> float:
        """Time a workload, or run a script that times itself."""
        if name not in SCRIPTS:
            return float(self.ask("time"))
        done = subprocess.run(
            [sys.executable, "-c", SCRIPTS[name]], cwd=self.runner, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise Problem(done.stderr.strip().splitlines()[-1])
        return float(done.stdout)

    def close(self) -> None:
        """End the process, its pipes and what it said."""
        self.process.kill()
        self.process.communicate()
        self.errors.close()


@dataclass
class Line:
    """Seconds of old and new, pair by pair, in rounds."""

    name: str
    rounds: list[list[tuple[float, float]]] = field(default_factory=list)
    problem: str = ""

    def ratios(self) -> list[float]:
        """New / old of each pair."""
        return [new / old for pairs in self.rounds for old, new in pairs]

    def interval(self) -> tuple[float, float]:
        """Bound the median ratio by order statistics; by all pairs where they are few."""
        ratios = sorted(self.ratios())
        outside = max(0, int(stats.binom.ppf((1 - LEVEL) / 2, len(ratios), 0.5)) - 1)
        return ratios[outside], ratios[-1 - outside]

    def mark(self) -> str:
        """Say whether the change is beyond noise."""
        low, high = self.interval()
        middle = median(self.ratios())
        rounds = [median(new / old for old, new in pairs) for pairs in self.rounds]
        if middle <= 1 / (1 + LEAST) and high < 1 and max(rounds) < 1:
            return "faster"
        if middle >= 1 + LEAST and low > 1 and min(rounds) > 1:
            return "SLOWER"
        return ""

    def cells(self) -> tuple[str, ...]:
        """Lay out a line of the table."""
        if self.problem:
            return (self.name, "", "", "", "", self.problem)
        pairs = [pair for part in self.rounds for pair in part]
        old, new = (median(side) for side in zip(*pairs, strict=True))
        spread = " to ".join(f"{end:.3f}" for end in self.interval())
        return (
            self.name, amount(old, "s"), amount(new, "s"), f"{median(self.ratios()):.3f}", spread,
            self.mark(),
        )  # fmt: skip


def one_round(old: Side, new: Side, scale: str, line: Line, pairs: int) -> None:
    """Time a workload in turns; what one side cannot do is told, not timed."""
    found = []
    for side, which in ((old, "old"), (new, "new")):
        try:
            side.ready(scale, line.name)
        except Problem as problem:
            line.problem = f"{which} cannot: {problem}"
            return
    for pair in range(pairs):
        if pair % 2:
            after = new.sample(line.name)
            found.append((old.sample(line.name), after))
        else:
            found.append((old.sample(line.name), new.sample(line.name)))
    line.rounds.append(found)


def compared(
    commits: Sequence[str], names: Sequence[str], scale: str, pairs: int, rounds: int
) -> list[Line]:
    """Check both commits out and time every workload."""
    lines = [Line(name) for name in names]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmarks-")))
        runner = folder / "runner"
        shutil.copytree(
            ROOT / "benchmarks", runner / "benchmarks", ignore=shutil.ignore_patterns("__pycache__")
        )
        trees = [
            stack.enter_context(worktree(commit, folder / side))
            for side, commit in zip(("old", "new"), commits, strict=True)
        ]
        for turn in range(rounds):
            with Side(trees[0], runner) as old, Side(trees[1], runner) as new:
                for line in lines:
                    if sys.stderr.isatty():
                        words = f"\rround {turn + 1} of {rounds}: {line.name:<60}"
                        print(words, end="", file=sys.stderr, flush=True)
                    if not line.problem:
                        one_round(old, new, scale, line, pairs)
    return lines


def chosen_of(names: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Keep the workloads whose names contain one of some words."""
    found = [name for name in names if not only or any(word in name for word in only)]
    if not found:
        asked = " or ".join(map(repr, only or ()))
        raise Problem(f"expected a part of the name of a workload, got {asked}: --list names all")
    return found


def stop(number: int, frame: FrameType | None) -> None:
    """Leave as by an error, so that the worktrees are removed."""
    raise SystemExit(128 + number)


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
    names = [*SCRIPTS, *workloads(chosen.scale)]
    try:
        names = chosen_of(names, chosen.only)
        if chosen.list:
            print(*names, sep="\n")
            return
        commits = [commit_of(revision) for revision in (chosen.old, chosen.new)]
        lines = compared(commits, names, chosen.scale, chosen.pairs, chosen.rounds)
    except Problem as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
    for side, commit in zip(("old", "new"), commits, strict=True):
        print(f"{side}: {git('log', '-1', '--format=%h %s', commit)}")
    head = ("work", "old", "new", "new / old", f"{LEVEL:.0%} interval", "beyond noise")
    print("", growth.text([head, *(line.cells() for line in lines)]), sep="\n")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main()
