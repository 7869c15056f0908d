"""Measure how often intervals cover in populations with known truth.

Without a name the whole study runs, and its figures are written into the package. It can be stopped
and restarted: finished pieces are kept in ``build/evidence``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # one process per core, one thread per process
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

from evidence import comparisons, designs, results, study  # noqa: E402

CORE_MINUTES = 100
"""The time that the whole study takes on one core."""

QUICK = 0.04
"""The share of runs in a quick study, which has only small samples."""

SLOW = ("deep tree", "sparse logit")
"""Populations whose models are fitted one after the other."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a quick study finds different figures."""
    chosen = read_options(arguments)
    cells = study.list_all()
    if chosen.method and not chosen.again:
        rows = select_rows(results.read(results.FILE), chosen.method)
        print(format_rows(rows, chosen.method))
        return 0
    if chosen.method:
        cells = select(cells, chosen.method)
    if chosen.part:
        cells = {chosen.part: cells[chosen.part]}
    scale = 1.0 if chosen.minutes is None else chosen.minutes * chosen.jobs / CORE_MINUTES
    if chosen.quick:
        with tempfile.TemporaryDirectory() as folder:
            quick = {
                part: [cell for cell in some if is_quick(cell)] for part, some in cells.items()
            }
            found = study.run_study(quick, Path(folder), scale=QUICK, jobs=chosen.jobs)
        changes = list(results.find_changes(results.read(results.FILE), found))
        print(*changes, f"{len(changes)} figures differ from the stored ones", sep="\n")
        return 1 if changes else 0
    folder = chosen.folder / study.fingerprint()
    found = study.run_study(cells, folder, scale=scale, jobs=chosen.jobs)
    if chosen.method:
        print(format_rows(found.rows, chosen.method))
    elif chosen.part:
        stored = results.read(results.FILE)
        results.write(results.replace_part(stored, found, chosen.jobs), results.FILE)
        print(f"wrote {chosen.part} into {results.FILE}")
    else:
        results.write(results.collect(found, chosen.jobs), results.FILE)
        print(f"wrote {results.FILE}")
    return 0


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("method", nargs="?", help="print the stored figures of this method")
    parser.add_argument("--again", action="store_true", help="simulate those of the method again")
    parser.add_argument("--part", choices=study.PARTS, help="run one part, keep the others")
    parser.add_argument("--quick", action="store_true", help="few runs, against the stored figures")
    parser.add_argument("--minutes", type=float, help="scale the runs to end in about so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--folder", type=Path, default=study.ROOT / "build" / "evidence",
                        help="where finished pieces are kept")  # fmt: skip
    return parser.parse_args(arguments)


def select(cells: Mapping[str, list[Any]], method: str) -> dict[str, list[Any]]:
    """Select the cells that evaluate a method."""
    of_design = {
        name for name, design in designs.DESIGNS.items()
        if any(question.method == method for question in design.questions)
    }  # fmt: skip
    of_plan = {
        name for name, (_, questions) in comparisons.PLANS.items()
        if any(question.method == method for question in questions)
    }  # fmt: skip
    found = {
        "intervals": [cell for cell in cells["intervals"] if cell.design in of_design],
        "comparisons": [match for match in cells["comparisons"] if match.plan in of_plan],
        "best": cells["best"] if method == "best_set" else [],
        "power": cells["power"] if method == "power" else [],
        "verdicts": cells["verdicts"] if method == "summary" else [],
        "metrics": [cell for cell in cells["metrics"] if cell.call == method],
    }
    if not any(found.values()):
        sys.exit(f"the study does not ask {method!r}. Expected the name of an interval or test.")
    return found


def is_quick(cell: Any) -> bool:
    """Whether a cell is small enough for a quick study."""
    return cell.n <= 100 and cell.population not in SLOW


def select_rows(stored: Mapping[str, Any], method: str) -> dict[str, list[dict[str, Any]]]:
    """The stored rows of a method, by part."""
    parts = {part: stored.get(part, []) for part in study.PARTS}
    named = {"best": "best_set", "power": "power"}
    found = {
        part: [row for row in rows if row.get("method", named.get(part)) == method]
        for part, rows in parts.items()
    }
    if not any(found.values()):
        sys.exit(f"the study does not ask {method!r}. Expected the name of an interval or test.")
    return found


def format_rows(rows: Mapping[str, list[dict[str, Any]]], method: str) -> str:
    """The rows of one method as a table."""
    import pandas as pd

    tables = []
    for part, found in rows.items():
        some = [row for row in found if row.get("method", method) == method]
        if some:
            tables.append(f"{part}\n{pd.DataFrame(some).to_string(index=False)}")
    return "\n\n".join(tables)


if __name__ == "__main__":
    sys.exit(main())
