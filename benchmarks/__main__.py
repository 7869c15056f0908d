"""Print one table of ratios, all measured in this one run."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

from benchmarks import cases, processes, table


@dataclass(frozen=True)
class Scale:
    """How large the logs are and how long each pair of calls is repeated."""

    rows: tuple[int, ...]
    frame: tuple[int, int]
    pairs: tuple[int, int] | None
    grid: tuple[int, int]
    budget: float
    processes: int


SCALES = {
    "full": Scale((10**5, 10**6, cases.ROWS), cases.FRAME, cases.PAIRS, cases.GRID, 2.0, 7),
    "quick": Scale((10**5, 10**6), (10**4, 100), None, (1_000, 10**4), 0.5, 3),
    "tiny": Scale((1_000,), (100, 20), (100, 5), (20, 30), 0.0, 1),
}


def measured(scale: Scale) -> Iterator[table.Row]:
    """Yield a row for each case of a scale."""
    for rows in scale.rows:
        yield from cases.one_model(rows, scale.budget)
    yield from cases.one_model(100, scale.budget)
    yield from cases.many_models(*scale.frame, scale.budget)
    if scale.pairs:
        yield from cases.all_pairs(*scale.pairs, scale.budget)
    yield from cases.gridded(*scale.grid, scale.budget)
    yield from processes.imports(scale.processes)
    yield from processes.first_interval(scale.processes)
    for rows in scale.rows:
        yield from processes.memory("series", rows)
    if scale.processes > 1:
        yield from processes.memory("frame", *scale.frame)
        yield from processes.memory("grid", *scale.grid)


def heading() -> str:
    """Say on what this was measured."""
    parts = ("cvstats", "numpy", "pandas", "xarray", "numba")
    versions = ", ".join(f"{part} {version(part)}" for part in parts)
    return (
        f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores. Each ratio is "
        f"the median of pairs of calls in turns, ours / theirs."
    )


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to a million rows")
    parser.add_argument("--scale", choices=SCALES, help="tiny only shows that everything runs")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    chosen = parser.parse_args()
    scale = SCALES[chosen.scale or ("quick" if chosen.quick else "full")]
    rows = []
    for row in measured(scale):
        rows.append(row)
        if sys.stderr.isatty():
            print(f"\r{len(rows)} measured", end="", file=sys.stderr, flush=True)
    print(heading(), "", (table.markdown if chosen.markdown else table.text)(rows), sep="\n")


if __name__ == "__main__":
    main()
