"""Measuring, printing and saving benchmarks: pairs of calls, new processes, memory."""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COLUMNS = ("work", "log", "peer", "theirs", "ours", "ratio", "middle half", "bound", "met")
LEFT = 3
"""Columns that are aligned to the left."""
LIBRARIES = (
    "cvstats", "numpy", "pandas", "xarray", "numba", "scipy", "polars", "flox", "numbagg",
)  # fmt: skip


# --- rows and tables ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One measurement: ours and theirs in seconds, or only ours in some unit.

    The bound applies to the ratio ours / theirs, or to ours if there is no peer or ``absolute`` is
    set. Half of all pairs of calls had a ratio within ``spread``. ``absent`` is the reason why a
    peer could not be measured.
    """

    work: str
    log: str
    peer: str
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    bound: float | None = None
    unit: str = "s"
    absolute: bool = False
    spread: tuple[float, float] | None = None
    absent: str = ""

    def cells(self) -> tuple[str, ...]:
        """Write each column."""
        theirs = self.absent if self.theirs is None else amount(self.theirs, self.unit)
        ours = "" if self.ours is None else amount(self.ours, self.unit)
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        spread = "" if self.spread is None else " to ".join(f"{end:.3g}" for end in self.spread)
        limit = met = ""
        if self.bound is not None:
            value = self.ours if self.absolute else self.ratio
            met = "yes" if value is not None and value <= self.bound else "NO"
            if self.absolute:
                limit = f"<= {amount(self.bound, self.unit)}"
            else:
                limit = f"<= {self.bound:g}" if self.bound >= 1 else f"<= 1/{1 / self.bound:g}"
        return (self.work, self.log, self.peer, theirs, ours, ratio, spread, limit, met)


def amount(value: float, unit: str = "s") -> str:
    """Format seconds in a suitable unit, or megabytes."""
    if unit != "s":
        return f"{value:.1f} {unit}" if unit in ("MB", "GB/s") else f"{value:g} {unit}"
    for size, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value * 1e6:.3g} us"


def lay_out(lines: Sequence[Sequence[str]], *, left: int, markdown: bool = False) -> str:
    """Lay lines out in aligned columns, or as a table in Markdown; the first one is the head."""
    if markdown:
        rule = ["---" if i < left else "---:" for i in range(len(lines[0]))]
        return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def table(rows: Iterable[Row], *, markdown: bool = False, whole: bool = True) -> str:
    """Lay rows out; columns without a word only in the ``whole``."""
    lines = [COLUMNS, *(row.cells() for row in rows)]
    shown = [
        i for i in range(len(COLUMNS)) if whole or i < LEFT or any(line[i] for line in lines[1:])
    ]
    return lay_out([[line[i] for i in shown] for line in lines], left=LEFT, markdown=markdown)


# --- pairs of calls -------------------------------------------------------------------------------

LEAST, MOST = 5, 101
FEWEST, PATIENCE = 3, 8.0
"""Three pairs suffice if five would take longer than these seconds."""


@dataclass(frozen=True)
class Pairs:
    """Seconds of each pair of calls."""

    theirs: list[float]
    ours: list[float]

    @property
    def ratios(self) -> list[float]:
        """Ours / theirs of each pair."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    def row(self, work: str, log: str, peer: str, bound: float | None = None) -> Row:
        """Make a row of medians; half of the ratios lie within the spread."""
        low, high = min(self.ratios), max(self.ratios)
        if len(self.ours) > 1:
            low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        ours, theirs = statistics.median(self.ours), statistics.median(self.theirs)
        ratio = statistics.median(self.ratios)
        return Row(work, log, peer, ours, theirs, ratio, bound, spread=(low, high))


def seconds(call: Callable[[], Any]) -> float:
    """Time one call, with garbage collection off."""
    gc.disable()
    try:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    finally:
        gc.enable()


def in_turns(
    theirs: Callable[[], Any],
    ours: Callable[[Any], Any],
    *,
    prepare: Callable[[], Any],
    budget: float,
) -> Pairs:
    """Time a peer and ours alternately until the budget (seconds) is spent.

    ``prepare`` makes a new argument of ours each time, and is not timed. Each side is called once
    before, untimed.
    """
    theirs()
    ours(prepare())
    found = Pairs([], [])
    start = time.perf_counter()
    while not is_enough(len(found.ours), time.perf_counter() - start, budget):
        argument = prepare()
        found.theirs.append(seconds(theirs))
        found.ours.append(seconds(lambda argument=argument: ours(argument)))
    return found


def is_enough(pairs: int, spent: float, budget: float) -> bool:
    """Whether enough pairs were measured."""
    if spent >= max(budget, PATIENCE):
        return pairs >= FEWEST
    return pairs >= MOST or (pairs >= LEAST and spent >= budget)


# --- new processes and memory ---------------------------------------------------------------------


def run_python(code: str, **environment: str) -> str:
    """Run code in a new process, and return what it prints.

    An installed package has its bytecode beside it, so a checkout may write its own too.
    """
    settings = {**os.environ, **environment}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env=settings, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def in_new_process(module: str, call: str) -> Any:
    """Evaluate a call of a module of the benchmarks in a new process; it returns JSON."""
    code = f"import json; from benchmarks import {module}; print(json.dumps({module}.{call}))"
    return json.loads(run_python(code))


MEGABYTE = 1e6
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak() -> float:
    """Return the largest resident size of this process so far, in megabytes.

    On Linux a process inherits the ``ru_maxrss`` of the one that started it, which hides any
    growth below that; the kernel's file is reliable.
    """
    if STATUS.exists():
        (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / MEGABYTE
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE


def forget_peak() -> None:
    """Reset the peak to what is resident now, where the system can do that."""
    if os.access(RESET, os.W_OK):
        RESET.write_text("5")


def memory_beyond(
    losses: Any, fresh: Callable[[], Any], work: Callable[[Any], Any]
) -> dict[str, float]:
    """Measure a call twice, in megabytes: resident memory, and allocations of Python and numpy.

    The kernels must be loaded before. ``fresh`` makes a new copy of the log, without a cache.
    """
    forget_peak()
    before = peak()
    work(losses)
    found = {"resident": peak() - before}
    losses = fresh()
    tracemalloc.start()
    work(losses)
    found["traced"] = tracemalloc.get_traced_memory()[1] / MEGABYTE
    tracemalloc.stop()
    return found


# --- saved runs -----------------------------------------------------------------------------------

Run = dict[str, Any]
"""Its heading, rows by section, and the points of the growth by axis."""


def machine() -> str:
    """Describe the machine and the versions of what is measured."""
    found = [f"Python {platform.python_version()}"]
    for library in LIBRARIES:
        try:
            found.append(f"{library} {version(library)}")
        except PackageNotFoundError:  # the rows of this peer say so
            found.append(f"{library} not installed")
    return (
        f"{', '.join(found)}; {platform.system()} on {platform.machine()}, {os.cpu_count()} cores."
    )


def heading() -> str:
    """Describe the machine, and what a ratio is."""
    return f"{machine()} Each ratio is the median of pairs of calls in turns, ours / theirs."


def pack(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Convert rows for JSON, omitting empty fields."""
    empty = {field.name: field.default for field in fields(Row) if field.default is not MISSING}
    return [
        {name: value for name, value in asdict(row).items() if empty.get(name, MISSING) != value}
        for row in rows
    ]


def unpack(rows: Iterable[dict[str, Any]]) -> list[Row]:
    """Read rows that `pack` wrote."""
    return [
        Row(**{**row, "spread": tuple(row["spread"])} if "spread" in row else row) for row in rows
    ]


def save(run: Run, path: Path) -> None:
    """Write a run with floats of six digits."""
    path.write_text(json.dumps(shorten(run), indent=1, ensure_ascii=False) + "\n", "utf-8")


def load(path: Path) -> Run:
    """Read a run; an empty one if the file does not exist."""
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def shorten(value: Any) -> Any:
    """Cut floats to six digits, anywhere inside."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: shorten(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shorten(inner) for inner in value]
    return value
