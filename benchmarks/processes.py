"""What needs a process of its own: imports, the first interval, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.table import Row

ROOT = Path(__file__).parents[1]

IMPORT = """
import time
start = time.perf_counter()
import {}
print(time.perf_counter() - start)
"""

FIRST = """
import time
import cvstats
from benchmarks import logs
losses = logs.series(10_000)
start = time.perf_counter()
cvstats.wald(losses, variance={!r})
print(time.perf_counter() - start)
"""


def printed(*arguments: str) -> str:
    """Run Python and return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def in_turns(scripts: Sequence[str], turns: int) -> list[list[float]]:
    """Run scripts alternately and collect the seconds that they print.

    With more than one turn there is one before, which fills the caches and does not count.
    """
    found: list[list[float]] = [[] for _ in scripts]
    for turn in range(0 if turns == 1 else -1, turns):
        for collected, script in zip(found, scripts, strict=True):
            measured = float(printed("-c", script))
            if turn >= 0:
                collected.append(measured)
    return found


def imports(turns: int) -> Iterator[Row]:
    """Compare the import of cvstats with that of what it needs."""
    needs = "pandas, xarray, numba, scipy.special"
    theirs, ours = in_turns([IMPORT.format(needs), IMPORT.format("cvstats")], turns)
    ratio = median(o / t for o, t in zip(ours, theirs, strict=True))
    yield Row("import cvstats", "", needs, median(ours), median(theirs), ratio, 1.1)


def first_interval(turns: int) -> Iterator[Row]:
    """Time the first call in a new process; the compiled kernels lie on disk."""
    variances = ("all-pairs", "within-fold")
    scripts = [FIRST.format(variance) for variance in variances]
    for variance, ours in zip(variances, in_turns(scripts, turns), strict=True):
        yield Row(
            f"wald {variance}, first in a process", "10,000 rows", "",
            median(ours), bound=0.3, absolute=True,
        )  # fmt: skip


def memory(kind: str, *sizes: int) -> Iterator[Row]:
    """Tell how much memory the first call takes beyond the log."""
    if sys.platform == "win32":
        return
    found = json.loads(printed("-m", "benchmarks.memory", kind, *map(str, sizes)))
    for work, megabytes in found["megabytes"].items():
        yield Row(
            f"memory of the first call, {work}", found["log"], "", megabytes,
            bound=64.0, unit="MB", absolute=True,
        )  # fmt: skip
