"""What needs a process of its own: imports, the first interval, and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.table import Row
from benchmarks.timing import Pairs

ROOT = Path(__file__).parents[1]

IMPORT = """
import time
start = time.perf_counter()
import {}
print(time.perf_counter() - start)
"""

LOADED = """
import sys
import cvstats
print(*{"dask", "matplotlib", "sklearn", "scipy.stats"}.intersection(sys.modules))
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


def printed(*arguments: str, **settings: str) -> str:
    """Run Python with settings of its environment, and return what it prints.

    An installed package has its bytecode beside it, so a checkout may write its own too.
    """
    environment = {**os.environ, **settings}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
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
    found = Pairs(theirs, ours)
    yield Row(
        "import cvstats", "", needs, median(ours), median(theirs), found.ratio, 1.1,
        spread=found.spread,
    )  # fmt: skip
    loaded = printed("-c", LOADED).split()
    yield Row(
        f"libraries it loads needlessly: {', '.join(loaded) or 'none'}", "", "", len(loaded),
        bound=0, unit="of 4", absolute=True,
    )  # fmt: skip


def first_interval(turns: int) -> Iterator[Row]:
    """Time the first call in a new process: kernels on disk, and once none of them yet."""
    variances = ("all-pairs", "within-fold")
    scripts = [FIRST.format(variance) for variance in variances]
    for variance, ours in zip(variances, in_turns(scripts, turns), strict=True):
        yield Row(
            f"wald {variance}, first in a process", "10,000 rows", "",
            median(ours), bound=0.3, absolute=True,
        )  # fmt: skip
    with TemporaryDirectory() as empty:
        compiling = printed("-c", FIRST.format("all-pairs"), NUMBA_CACHE_DIR=empty)
    yield Row("wald all-pairs, first ever, kernels compiled", "10,000 rows", "", float(compiling))


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
