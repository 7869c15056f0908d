"""The names of a file's columns, without reading the file."""

from __future__ import annotations

import csv
from itertools import islice
from pathlib import Path

from cvstats.errors import LogError
from cvstats.io.files import SUFFIXES, records, separator_of
from cvstats.io.words import guarded, needed

__all__ = ["heading"]

LONGEST = 1 << 20


def heading(path: Path) -> list[str]:
    """List the columns of a file; none where they cannot be told at a glance."""
    kind = SUFFIXES.get(path.suffix.lower(), "")
    try:
        with guarded(path.name):
            if kind in ("csv", "tsv"):
                return of_text(path, "," if kind == "csv" else "\t")
            if kind == "jsonl":
                return list(next(records(path), {}))
            if kind == "parquet":
                with needed("pyarrow.parquet", "Parquet").ParquetFile(path) as file:
                    return list(map(str, file.schema_arrow.names))
    except (LogError, ImportError):
        pass
    return []


def of_text(path: Path, usual: str) -> list[str]:
    """Read the first line of a table that is no note of `save_log`."""
    with path.open("rb") as file:
        lines = islice(iter(lambda: file.readline(LONGEST), b""), 2)
        head = next((line for line in lines if not line.startswith(b"#")), b"")
    words = head.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    return next(csv.reader([words], delimiter=separator_of(head, usual)), [])
