"""Measure everything and write the page of the documentation: ``python -m benchmarks.page``.

The run is kept as docs/benchmarks/run.json. From it alone come the tables of docs/benchmarks.md,
between marks, and the figures; ``--redraw`` makes them again and measures nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import __main__ as suite
from benchmarks import figures, growth, methods, saved, table
from benchmarks.processes import ROOT
from benchmarks.saved import Run
from benchmarks.table import Row

PAGE, FOLDER = "benchmarks.md", "benchmarks"
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

GROWTH: dict[str, tuple[tuple[str, ...], float, float]] = {
    "full": (tuple(growth.AXES), 1e8, 0.4),
    "quick": (tuple(growth.AXES), 1e6, 0.1),
    "tiny": (("folds",), 10, 0.0),
}
"""The axes, the largest size and the seconds for each point and call."""

METHODS = {"full": ("full", 0.2), "quick": ("tiny", 0.1), "tiny": ("tiny", 0.0)}
"""Sizes of the logs of `benchmarks.methods`, and seconds for each line."""


def said(step: str, start: float) -> None:
    """Tell how far the run is."""
    print(f"{time.perf_counter() - start:5.0f} s  {step}", file=sys.stderr, flush=True)


def measured(scale: str) -> Run:
    """Measure all sections and the growth."""
    start = time.perf_counter()
    run: Run = {"heading": saved.heading(), "scale": scale, "sections": {}, "growth": {}}
    for section in suite.SECTIONS:
        said(section, start)
        (rows,) = suite.measured(suite.SCALES[scale], [section]).values()
        run["sections"][section] = saved.packed(rows)
    said("methods", start)
    size, budget = METHODS[scale]
    rows = list(methods.measured(methods.SIZES[size], budget))
    run["sections"]["methods"] = saved.packed(rows)
    axes, largest, budget = GROWTH[scale]
    for axis in axes:
        said(f"growth with {axis}", start)
        run["growth"] |= growth.run([axis], largest, budget)
    said("done", start)
    return run


def rows_of(run: Run, *sections: str) -> list[Row]:
    """Take the rows of some sections."""
    return [row for name in sections for row in saved.unpacked(run["sections"].get(name, []))]


def promises(run: Run) -> str:
    """Lay out every line that has a bound."""
    return table.markdown(row for row in rows_of(run, *suite.SECTIONS) if row.bound is not None)


def unbounded(run: Run, *sections: str) -> str:
    """Lay out the lines without a bound."""
    rows = [row for row in rows_of(run, *sections) if row.bound is None]
    return table.markdown(short(rows), whole=False)


def short(rows: Iterable[Row]) -> list[Row]:
    """Leave out lines of pairs that another section has as well."""
    return list({(row.work, row.log, row.peer): row for row in rows}.values())


def of_a_billion(run: Run) -> str:
    """Lay out the log that fits into no memory, where it was measured."""
    if "billion" not in run:
        return "Not measured in this run."
    billion = run["billion"]
    rows = saved.unpacked(billion["rows"])
    return f"{billion['heading']}\n\n{table.markdown(rows, whole=False)}"


TABLES: dict[str, Callable[[Run], str]] = {
    "heading": lambda run: str(run["heading"]),
    "promises": promises,
    "peers": lambda run: unbounded(run, "peers"),
    "machine": lambda run: unbounded(run, "machine"),
    "sizes": lambda run: unbounded(run, "calls", "processes"),
    "methods": lambda run: unbounded(run, "methods"),
    "growth": lambda run: growth.markdown(growth.lines(run["growth"])),
    "billion": of_a_billion,
}
"""What stands between the marks of the page."""


def filled(text: str, run: Run) -> str:
    """Put the tables of a run between the marks of a page."""
    return MARKED.sub(lambda mark: f"{mark[1]}\n{TABLES[mark[2]](run)}\n\n{mark[3]}", text)


def write(run: Run, docs: Path) -> None:
    """Write tables and figures."""
    page = docs / PAGE
    page.write_text(filled(page.read_text("utf-8"), run), "utf-8")
    figures.draw(run["growth"], docs / FOLDER)


def main() -> None:
    """Measure or load, then write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--scale", choices=suite.SCALES, default="full")
    parser.add_argument(
        "--redraw", action="store_true", help="tables and figures from the saved run"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    chosen = parser.parse_args()
    path = chosen.docs / FOLDER / "run.json"
    before = saved.load(path)
    if chosen.redraw and not before:
        parser.error(f"--redraw needs a saved run, and there is no {path}: leave it out once")
    if not chosen.redraw:
        kept = {"billion": before["billion"]} if "billion" in before else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        saved.save({**measured(chosen.scale), **kept}, path)
    write(saved.load(path), chosen.docs)


if __name__ == "__main__":
    main()
