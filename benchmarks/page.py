"""Measure everything and write the page of the documentation: ``python -m benchmarks.page``.

The run is saved as docs/benchmarks/run.json, from which the tables of docs/benchmarks.md (between
marks) and the figures are made; ``--redraw`` makes them again without measuring.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from benchmarks import __main__ as suite
from benchmarks import growth, logs, measure, scaling
from benchmarks.measure import ROOT, Row, Run

MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
GROWTH: dict[str, tuple[tuple[str, ...], float, float]] = {
    "full": (tuple(growth.AXES), 1e8, 0.4),
    "quick": (tuple(growth.AXES), 1e6, 0.1),
    "tiny": (("folds",), 2, 0.0),
}
"""The axes, the largest size and the seconds for each point and call."""


def measured(scale: str) -> Run:
    """Measure all sections and the growth."""
    return {
        "heading": measure.heading(),
        "scale": scale,
        "sections": {
            name: measure.pack(rows) for name, rows in suite.measured(logs.SCALES[scale]).items()
        },
        "growth": growth.measure_all(*GROWTH[scale]),
    }


def rows_of(run: Run, sections: tuple[str, ...], bounded: bool) -> list[Row]:
    """Take the rows of some sections that have a bound, or those that have none."""
    every = [row for name in sections for row in measure.unpack(run["sections"].get(name, []))]
    found = [row for row in every if (row.bound is not None) == bounded]
    return found if bounded else list({(r.work, r.log, r.peer): r for r in found}.values())


def unbounded(*sections: str) -> Callable[[Run], str]:
    """Make a function that lays out the rows of some sections without a bound."""
    return lambda run: measure.table(rows_of(run, sections, False), markdown=True, whole=False)


def of_a_billion(run: Run) -> str:
    """Lay out the log that does not fit into memory, if it was measured."""
    if "billion" not in run:
        return "Not measured in this run."
    found = run["billion"]
    return f"{found['heading']}\n\n{measure.lay_out(found['lines'], left=1, markdown=True)}"


def of_scaling(run: Run) -> str:
    """Lay out how the time of each function grows."""
    if "scaling" not in run:
        return "Not measured in this run."
    return measure.lay_out([scaling.HEAD, *run["scaling"]], left=2, markdown=True)


TABLES: dict[str, Callable[[Run], str]] = {
    "heading": lambda run: str(run["heading"]),
    "promises": lambda run: measure.table(rows_of(run, tuple(suite.SECTIONS), True), markdown=True),
    "peers": unbounded("peers"),
    "machine": unbounded("machine"),
    "sizes": unbounded("calls", "processes"),
    "methods": unbounded("methods"),
    "growth": lambda run: measure.lay_out(growth.lines(run["growth"]), left=2, markdown=True),
    "scaling": of_scaling,
    "billion": of_a_billion,
}
"""The tables between the marks of the page."""


def filled(text: str, run: Run) -> str:
    """Put the tables of a run between the marks of a page."""
    return MARKED.sub(lambda mark: f"{mark[1]}\n{TABLES[mark[2]](run)}\n\n{mark[3]}", text)


def write_page(run: Run, docs: Path) -> None:
    """Write tables and figures."""
    page = docs / "benchmarks.md"
    page.write_text(filled(page.read_text("utf-8"), run), "utf-8")
    growth.draw(run["growth"], docs / "benchmarks")


def main() -> None:
    """Measure or load, then write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--scale", choices=logs.SCALES, default="full")
    parser.add_argument(
        "--redraw", action="store_true", help="tables and figures from the saved run"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    chosen = parser.parse_args()
    path = chosen.docs / "benchmarks" / "run.json"
    before = measure.load(path)
    if chosen.redraw and not before:
        parser.error(f"--redraw needs a saved run, and {path} does not exist: omit it once")
    if not chosen.redraw:
        kept = {name: before[name] for name in ("billion", "scaling") if name in before}
        path.parent.mkdir(parents=True, exist_ok=True)
        measure.save({**measured(chosen.scale), **kept}, path)
    write_page(measure.load(path), chosen.docs)


if __name__ == "__main__":
    main()
