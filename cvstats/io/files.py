"""Files to tables: CSV, JSONL, JSON, ARFF and Parquet, with limits for absurd ones."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pandas as pd

from cvstats.errors import LogError
from cvstats.io.numeric import decimal_comma
from cvstats.io.watching import opened
from cvstats.io.words import needed

__all__ = [
    "EXACT",
    "MOST_CELLS",
    "NESTED",
    "SUFFIXES",
    "TEXT",
    "json_of",
    "kind_of",
    "records",
    "table_of",
]

MOST_BYTES = 16 << 30
"""A text file may have 16 GiB."""
MOST_JSON = 2 << 30
"""A file that is one JSON document may have 2 GiB."""
MOST_CELLS = 1 << 30
"""Rows by columns of a table in memory: 2^30 numbers are 8 GiB."""
MOST_COLUMNS = 10_000
LONGEST_LINE = 64 << 20
"""A line may have 64 MiB."""

NESTED = "nested"
"""The entry of a table's attrs about columns that hold lists or objects: the last of each."""

OLD = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
EXACT: dict[str, Any] = {"float_precision": "round_trip"} if OLD else {}
"""Read numbers to the last digit: pandas 3.1 and newer always do, and have no option for it."""

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".arff": "arff", ".parquet": "parquet", ".pq": "parquet", ".nc": "netcdf", ".nc4": "netcdf",
    ".h5": "netcdf", ".zarr": "zarr", ".eval": "eval",
}  # fmt: skip


TEXT = ("csv", "tsv", "jsonl", "json", "arff")
"""The kinds of files that are text."""


def kind_of(path: Path) -> str:
    """Tell the kind of a file by its suffix."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        has = f"ends in {path.suffix!r}, which names" if path.suffix else "has no suffix, and so"
        raise LogError(
            f"{path.name} {has} no kind of file. "
            f"Expected one of {', '.join(SUFFIXES)}; or say it, as in format='csv'."
        )
    return kind


def table_of(path: Path, kind: str) -> pd.DataFrame:
    """Read a table."""
    check_size(path, MOST_JSON if kind == "json" else MOST_BYTES)
    if kind in ("csv", "tsv"):
        return of_csv(path, kind)
    if kind == "arff":
        return of_arff(path)
    if kind == "parquet":
        return of_parquet(path)
    return of_records(path)


def check_size(path: Path, most: int) -> None:
    """Refuse what is no file, is empty, or is absurdly large."""
    if not path.exists():
        raise LogError(f"{path.name} is not there. Expected the path of a file.")
    if not path.is_file():
        raise LogError(f"{path.name} is no file. Expected the path of one.")
    size = path.stat().st_size
    if size == 0:
        raise LogError(f"{path.name} is empty. Expected at least one evaluation.")
    if size > most:
        raise LogError(
            f"{path.name} has {size / 2**30:.1f} GiB. Expected at most {most >> 30} in one text "
            f"file. Write it as Parquet, or in parts."
        )


def of_csv(path: Path, kind: str) -> pd.DataFrame:
    """Read a CSV file: numbers to the last digit, labels such as 'None' as they stand."""
    with path.open("rb") as file:
        head = file.readline(1 << 20)
    if b"\0" in head:
        raise LogError(f"{path.name} is not text: its first line holds a zero byte.")
    separator = separator_of(head, "," if kind == "csv" else "\t")
    if head.count(separator.encode()) > MOST_COLUMNS:
        raise LogError(f"{path.name} has over {MOST_COLUMNS:,} columns. Expected fewer.")
    with opened(path) as file:
        table: pd.DataFrame = pd.read_csv(
            file, sep=separator, low_memory=False, keep_default_na=False,
            na_values=["", "NA", "NaN", "nan"], encoding="utf-8-sig", **EXACT,
        )  # fmt: skip
    if isinstance(table.index, pd.MultiIndex) or not table.index.equals(pd.RangeIndex(len(table))):
        raise LogError(f"the rows of {path.name} are longer than its header. Expected as many.")
    refuse_decimal_commas(table, path, separator)
    numbers_of_rows = [name for name in table.columns if str(name).startswith("Unnamed: ")]
    if len(numbers_of_rows) == 1 and table.columns[0] == numbers_of_rows[0]:
        table = table.set_index(numbers_of_rows[0]).rename_axis(None)  # as R and pandas write it
    return table


def separator_of(head: bytes, usual: str) -> str:
    """Find what stands between the columns: what is usual, or else what the header line has."""
    plain = re.sub(rb'"[^"]*"', b"", head)  # a quoted name may hold any of them
    return next((mark for mark in (usual, ";", "\t", ",") if mark.encode() in plain), usual)


def refuse_decimal_commas(table: pd.DataFrame, path: Path, separator: str) -> None:
    """Refuse numbers that are written as in ``0,5``: labels and losses would be words.

    Between commas they are in quotes, and may be labels: whoever needs numbers refuses them.
    """
    if separator == ",":
        return
    for name in table.columns:
        column = table[name]
        found = None if pd.api.types.is_numeric_dtype(column) else decimal_comma(column)
        if found is not None:
            raise LogError(
                f"the column {name!r} of {path.name} writes decimals with a comma, as in "
                f"{found}. Expected points. Read it as table = pandas.read_csv(path, "
                f"sep={separator!r}, decimal=','), and then cvstats.read_log(table, …)."
            )


def of_parquet(path: Path) -> pd.DataFrame:
    """Read a Parquet file."""
    parquet = needed("pyarrow.parquet", "Parquet")
    with parquet.ParquetFile(path) as file:
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        if rows < 0 or columns > MOST_COLUMNS or rows * columns > MOST_CELLS:
            raise LogError(
                f"{path.name} claims {rows:,} rows of {columns:,} columns. Expected at most "
                f"{MOST_CELLS:,} values in all. Read it in parts."
            )
        table: pd.DataFrame = file.read().to_pandas()
    return table


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Go through the lines of a text file that hold anything."""
    with TextIOWrapper(opened(path), encoding="utf-8-sig") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise LogError(f"line {number:,} of {path.name} is longer than 64 MiB.")
            if line.strip():
                yield number, line


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Go through the objects of a JSONL file."""
    check_size(path, MOST_BYTES)
    for number, line in lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise LogError(
                f"line {number:,} of {path.name} is no JSON: {shown(line)}. Expected one object "
                f"in each line; the file may have been cut off."
            ) from None
        if not isinstance(value, dict):
            raise LogError(f"line {number:,} of {path.name} is no JSON object: {shown(line)}.")
        yield value


def shown(line: str) -> str:
    """Show the beginning of a line."""
    return repr(line.strip()[:40])


def json_of(path: Path) -> Any:
    """Read one JSON document."""
    check_size(path, MOST_JSON)
    try:
        with TextIOWrapper(opened(path), encoding="utf-8-sig") as file:
            return json.load(file)
    except (ValueError, RecursionError):
        raise LogError(
            f"{path.name} is no JSON document. Expected one; the file may have been cut off."
        ) from None


def of_records(path: Path) -> pd.DataFrame:
    """Read a JSONL file as a table; lists and objects inside rows are left out, and noted."""
    rows = []
    names: dict[str, None] = {}
    nested: dict[str, Any] = {}
    for record in records(path):
        row = {key: value for key, value in record.items() if not isinstance(value, (dict, list))}
        if len(row) < len(record) and len(nested) < MOST_COLUMNS:
            nested |= {key: value for key, value in record.items() if key not in row}
        names |= dict.fromkeys(row)
        if len(names) > MOST_COLUMNS:
            raise LogError(f"{path.name} has over {MOST_COLUMNS:,} columns. Expected fewer.")
        rows.append(row)
    table = pd.DataFrame.from_records(rows, columns=list(names))
    if nested:
        table.attrs[NESTED] = {key: shown(json.dumps(value)) for key, value in nested.items()}
    return table


def of_arff(path: Path) -> pd.DataFrame:
    """Read an ARFF file, as OpenML stores predictions."""
    names: list[str] = []
    numeric: list[bool] = []
    rows: list[list[str]] = []
    data = False
    for number, line in lines(path):
        text = line.strip()
        if text.startswith("%"):
            continue
        if data:
            if text.startswith("{"):
                raise LogError(f"{path.name} is a sparse ARFF file. Expected a value per column.")
            (row,) = csv.reader(
                [text], quotechar="'" if "'" in text else '"', escapechar="\\",
                skipinitialspace=True,
            )  # fmt: skip
            if len(row) != len(names):
                raise LogError(
                    f"line {number:,} of {path.name} has {len(row):,} values. Expected "
                    f"{len(names):,}, one for each attribute."
                )
            rows.append([value.strip() for value in row])
        elif text.lower().startswith("@attribute"):
            name, kind = attribute(text[len("@attribute") :].strip(), path)
            names.append(name)
            numeric.append(kind in ("numeric", "real", "integer"))
        elif text.lower().startswith("@data"):
            data = True
        elif not text.lower().startswith("@relation"):
            raise LogError(f"line {number:,} of {path.name} is no ARFF: {shown(line)}.")
        if len(names) > MOST_COLUMNS:
            raise LogError(f"{path.name} has over {MOST_COLUMNS:,} columns. Expected fewer.")
    if not data or not names or len(set(names)) < len(names):
        raise LogError(f"{path.name} is no ARFF file. Expected @attribute lines and then @data.")
    columns: Mapping[str, Any] = (
        dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    )
    table = pd.DataFrame({name: pd.Series(columns.get(name, ()), dtype=object) for name in names})
    for name, number_ in zip(names, numeric, strict=True):
        column = table[name].mask(table[name] == "?")
        table[name] = pd.to_numeric(column) if number_ else column
    return table


def attribute(text: str, path: Path) -> tuple[str, str]:
    """Take the name and the type of an attribute apart."""
    if text[:1] in ("'", '"'):
        name, quote, kind = text[1:].partition(text[0])
        if not quote:
            raise LogError(f"an attribute of {path.name} has no closing quote: {shown(text)}.")
    else:
        name, _, kind = text.replace("\t", " ").partition(" ")
    return name, kind.strip().lower()
