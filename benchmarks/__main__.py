"""Print a table of ratios, all measured in this run: work, bound, ratio, and whether it is met."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator

from benchmarks import contract, logs, measure, methods, peers
from benchmarks.logs import Scale
from benchmarks.measure import Row


def of_methods(scale: Scale) -> Iterator[Row]:
    """Yield every interval against the same formula by hand."""
    size = methods.SIZES["full" if scale is logs.FULL else "tiny"]
    yield from methods.methods(size, scale.budget / 10)


SECTIONS: dict[str, Callable[[Scale], Iterator[Row]]] = {
    "calls": contract.calls,
    "processes": contract.processes,
    "machine": peers.machine,
    "peers": peers.peers,  # their pools of threads stay
    "methods": of_methods,
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
    parser.add_argument("--scale", choices=logs.SCALES, default="full", help="size of the logs")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", help="measure these sections only")
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    chosen = parser.parse_args()
    found = measured(logs.SCALES[chosen.scale], chosen.only or tuple(SECTIONS))
    rows = [row for part in found.values() for row in part]
    print(measure.heading(), "", measure.table(rows, markdown=chosen.markdown), sep="\n")


if __name__ == "__main__":
    main()
