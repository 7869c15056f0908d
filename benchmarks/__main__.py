"""Print one table of ratios, all measured in this one run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cases, machine, peers, processes, saved, table
from benchmarks.table import Row


@dataclass(frozen=True)
class Scale:
    """How large the logs are and how long each pair of calls is repeated."""

    rows: tuple[int, ...]
    frame: tuple[int, int]
    pairs: tuple[int, int] | None
    grid: tuple[int, int]
    bootstrap: tuple[int, int]
    budget: float
    processes: int


SCALES = {
    "full": Scale(
        (10**5, 10**6, cases.ROWS), cases.FRAME, cases.PAIRS, cases.GRID,
        (10_000, peers.RESAMPLES), 2.0, 9,
    ),
    "quick": Scale((10**5, 10**6), (10**4, 100), None, (1_000, 10**4), (10_000, 999), 0.5, 3),
    "tiny": Scale((1_000,), (100, 20), (100, 5), (20, 30), (200, 99), 0.0, 1),
}  # fmt: skip


def of_calls(scale: Scale) -> Iterator[Row]:
    """Yield a row for each call that has a bound, and for smaller logs of the same kind."""
    for rows in scale.rows:
        yield from cases.one_model(rows, scale.budget if rows == scale.rows[-1] else 0.0)
    yield from cases.one_model(100, min(scale.budget, 0.2))
    yield from cases.overhead(min(scale.budget, 0.5))
    yield from cases.many_models(*scale.frame, scale.budget)
    if scale.pairs:
        yield from cases.all_pairs(*scale.pairs, scale.budget)
    yield from cases.gridded(*scale.grid, scale.budget)


def of_processes(scale: Scale) -> Iterator[Row]:
    """Yield imports, first intervals and memory, each in a process of its own."""
    yield from processes.imports(scale.processes)
    yield from processes.first_interval(scale.processes)
    for rows in scale.rows:
        yield from processes.memory("series", rows)
    if scale.processes > 1:
        yield from processes.memory("cells", *cases.CELLS)
        yield from processes.memory("frame", *scale.frame)
        yield from processes.memory("grid", *scale.grid)


def of_peers(scale: Scale) -> Iterator[Row]:
    """Yield the same work by other libraries."""
    yield from peers.measured(
        scale.rows[-1], scale.frame, scale.grid, scale.bootstrap, scale.budget / 2
    )


def of_machine(scale: Scale) -> Iterator[Row]:
    """Yield plain reads."""
    yield from machine.measured(scale.rows[-1], scale.frame, scale.grid, scale.budget / 2)


SECTIONS: dict[str, Callable[[Scale], Iterator[Row]]] = {
    "calls": of_calls,
    "processes": of_processes,
    "machine": of_machine,
    "peers": of_peers,  # the last: their pools of threads stay
}


def measured(scale: Scale, sections: Collection[str] = tuple(SECTIONS)) -> dict[str, list[Row]]:
    """Measure the rows of each section."""
    found: dict[str, list[Row]] = {name: [] for name in SECTIONS if name in sections}
    for name, rows in found.items():
        for row in SECTIONS[name](scale):
            rows.append(row)
            if sys.stderr.isatty():
                print(f"\r{name}: {len(rows)} measured ", end="", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to a million rows")
    parser.add_argument("--scale", choices=SCALES, help="tiny only shows that everything runs")
    parser.add_argument(
        "--section", choices=SECTIONS, action="append", help="measure only this; may be repeated"
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    chosen = parser.parse_args()
    scale = SCALES[chosen.scale or ("quick" if chosen.quick else "full")]
    found = measured(scale, chosen.section or tuple(SECTIONS))
    if chosen.json:
        sections = {name: saved.packed(rows) for name, rows in found.items()}
        saved.save({"heading": saved.heading(), "sections": sections}, chosen.json)
    rows = [row for part in found.values() for row in part]
    shown = table.markdown if chosen.markdown else table.text
    print(saved.heading(), "", shown(rows), sep="\n")


if __name__ == "__main__":
    main()
