"""Text files: tables in CSV, JSONL, JSON and ARFF, and saved logs in CSV and JSONL."""

from __future__ import annotations

import codecs
import csv
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cvstats.errors import LogError, checked_flag, is_several, listed
from cvstats.io.paths import check_file

Columns = dict[str, np.ndarray[Any, Any]]
"""Plain values by the names of their columns."""
Header = dict[str, Any]
"""The description of a log besides its plain columns, as JSON."""
SavedColumns = tuple[Callable[[str], np.ndarray[Any, Any]], Header]
"""A function that reads one column of a saved log, and the header."""
VERSION = 1
MARK = "# cvstats: "
"""The start of the header line of a saved log in CSV."""

NESTED = "nested"
"""The entry of a table's attrs for columns of lists or objects: the last value of each."""
SPELLINGS = "spellings"
"""The entry of a table's attrs for numbers with several spellings: their text."""

PADDED = (rb'0(?<=[\n,;\t" ]0)\d', rb'\+(?<=[\n,;\t" ]\+)\d')
"""Numbers with a leading zero or plus."""

OLD = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
EXACT: dict[str, Any] = {"float_precision": "round_trip"} if OLD else {}
"""Read numbers exactly; pandas 3.1 and newer always do, without an option."""


# --- CSV ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextOptions:
    """The format of numbers and text in a CSV file.

    Parameters
    ----------
    decimal : str or mapping of column to str, optional
        The decimal mark; a period by default.
    thousands : str or mapping of column to str, optional
        The thousands separator; none by default.
    encoding : str, optional
        The encoding; UTF-8 by default.
    na_values : str or sequence of str, optional
        Markers of missing values, besides the empty string, ``NA`` and ``NaN``.
    dayfirst : bool, optional
        Whether dates such as 01/02/2024 start with the day; text by default.
    """

    decimal: str | Mapping[str, str] | None = None
    thousands: str | Mapping[str, str] | None = None
    encoding: str | None = None
    na_values: str | Sequence[str] | None = None
    dayfirst: bool | None = None

    def __post_init__(self) -> None:
        """Refuse marks of several characters, equal marks, and unknown encodings."""
        for name in ("decimal", "thousands"):
            given = getattr(self, name)
            for mark in given.values() if isinstance(given, Mapping) else [given]:
                if mark is not None and (
                    not isinstance(mark, str) or len(mark) != 1 or mark.isalnum()
                ):
                    raise LogError(
                        f"{name}={mark!r} is not a character. Expected one, such as {name}=','."
                    )
        columns = [each for each in (self.decimal, self.thousands) if isinstance(each, Mapping)]
        for column in [None, *(name for each in columns for name in each)]:
            decimal, thousands = self.marks(column)
            if thousands == decimal:
                raise LogError(
                    f"thousands={thousands!r} is also the decimal mark. Expected different "
                    "marks, as in decimal=',', thousands='.'."
                )
        missing = [self.na_values] if isinstance(self.na_values, str) else self.na_values
        if missing is not None and not (
            is_several(missing) and all(isinstance(value, str) for value in missing)
        ):
            raise LogError(
                f"na_values={self.na_values!r} is not text. Expected markers of missing values, "
                "such as na_values=['-', 'n/a']."
            )
        if self.dayfirst is not None:
            checked_flag("dayfirst", self.dayfirst)
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, TypeError, ValueError):
                raise LogError(
                    f"Unknown encoding {self.encoding!r}. Expected one such as 'latin-1' or "
                    f"'utf-16'."
                ) from None

    def marks(self, column: str | None) -> tuple[str, str | None]:
        """Find the decimal mark and the thousands separator of a column."""
        decimal, thousands = (
            given.get(str(column)) if isinstance(given, Mapping) else given
            for given in (self.decimal, self.thousands)
        )
        return decimal or ".", thousands

    @property
    def missing(self) -> list[str]:
        """The markers of missing values."""
        more = [self.na_values] if isinstance(self.na_values, str) else self.na_values
        return ["", "NA", "NaN", "nan", *(more or ())]

    def given(self) -> list[str]:
        """List the options that were given."""
        return [name for name, value in asdict(self).items() if value is not None]


def csv_options(
    path: Path, text: TextOptions, usual: str = ","
) -> tuple[dict[str, Any], list[str]]:
    """Find the pandas options for a CSV file, and the names of its columns."""
    check_file(path)
    encoding = text.encoding or "utf-8-sig"
    with path.open("rb") as file:
        head = file.readline(1 << 20)
    if text.encoding is None and b"\0" in head:
        raise LogError(f"{path.name} is not text: its first line contains a null byte.")
    if text.encoding is not None:
        with path.open(encoding=encoding) as lines_of:
            head = lines_of.readline(1 << 20).encode()
    decimal, _ = text.marks(None)
    usual = ";" if usual == "," and decimal == "," else usual
    plain = re.sub(rb'"[^"]*"', b"", head)  # a quoted name may contain any of them
    separator = next((mark for mark in (usual, ";", "\t", ",") if mark.encode() in plain), usual)
    options: dict[str, Any] = {
        "sep": separator, "keep_default_na": False, "na_values": text.missing,
        "encoding": encoding, "skipinitialspace": f"{separator} ".encode() in head,
    }  # fmt: skip
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0]
    names = [name.strip() for name in header if isinstance(name, str)]
    times = Counter(names)
    if len(times) < len(names):  # pandas would rename the second to a.1
        raise LogError(
            f"two columns of {path.name} are called {times.most_common(1)[0][0]!r}. Expected "
            f"different names. Rename one of them."
        )
    return options, names


def read_csv(path: Path, usual: str = ",", text: TextOptions | None = None) -> pd.DataFrame:
    """Read a CSV file: numbers exactly, and labels such as 'None' as text."""
    text = text or TextOptions()
    options, _ = csv_options(path, text, usual)
    decimal, thousands = text.marks(None)
    # pandas supports thousands= only in its default parser.
    numbers = {"thousands": thousands} if thousands else EXACT
    table: pd.DataFrame = pd.read_csv(path, low_memory=False, decimal=decimal, **options, **numbers)
    if not len(table):
        raise LogError(f"{path.name} has a header but no rows. Expected at least one evaluation.")
    if isinstance(table.index, pd.MultiIndex) or not table.index.equals(pd.RangeIndex(len(table))):
        raise LogError(
            f"the rows of {path.name} have more fields than its header. Expected equal lengths."
        )
    table.columns = table.columns.str.strip()
    marked = bool(thousands) or has_padded_numbers(path)
    kinds = "iuf" if marked else "f"
    whole = [at for at, (_, column) in enumerate(table.items()) if is_whole(column, kinds)]
    if whole:
        written = pd.read_csv(path, usecols=whole, dtype=str, **options)
        written.columns = table.columns[whole]
        found = {
            name: find_spellings(written[name], decimal, thousands) for name in written
            if marked or written[name].nunique() > table[name].nunique()
        }  # fmt: skip
        spellings = {name: labels for name, labels in found.items() if labels is not None}
        if spellings:
            table.attrs[SPELLINGS] = spellings
    convert_text(table, text)
    row_names = [name for name in table.columns if str(name).startswith("Unnamed: ")]
    if len(row_names) == 1 and table.columns[0] == row_names[0]:
        table = table.set_index(row_names[0]).rename_axis(None)  # as written by R and pandas
    return table


def has_padded_numbers(path: Path) -> bool:
    """Whether a number starts with a zero or a plus, which an integer would lose."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return any(re.search(pattern, data) for pattern in PADDED)


def is_whole(column: pd.Series, kinds: str) -> bool:
    """Whether a numeric column has only whole numbers, which may be labels."""
    kind = getattr(column.dtype, "kind", "O")
    if kind != "f":
        return kind in kinds
    values = column.to_numpy()
    known = values[~np.isnan(values)]
    return bool((np.isfinite(known) & (known == np.trunc(known))).all())


def convert_text(table: pd.DataFrame, text: TextOptions) -> None:
    """Convert columns of text: percentages, numbers with custom marks, and dates."""
    given = [each for each in (text.decimal, text.thousands) if isinstance(each, Mapping)]
    unknown = [name for each in given for name in each if name not in table]
    if unknown:
        raise LogError(
            f"decimal= or thousands= names the column {unknown[0]!r}, which the file does not "
            f"have. Available columns: {listed(map(repr, table.columns))}."
        )
    for name, column in list(table.items()):
        if pd.api.types.infer_dtype(column, skipna=True) != "string":
            continue
        own = any(name in each for each in given) or column.dropna().str.endswith("%").all()
        numbers = as_numbers(column, text) if own else None
        if numbers is not None and not (numbers.isna() & column.notna()).any():
            table[name] = numbers
        elif text.dayfirst is not None and column.dropna().str.fullmatch(DATE).all():
            table[name] = pd.to_datetime(column, dayfirst=text.dayfirst, format="mixed")


DATE = r"\d{1,2}([./-])\d{1,2}\1\d{4}([ T]\d.*)?"
"""A date with the year at its end."""


def as_numbers(column: pd.Series, text: TextOptions) -> pd.Series | None:
    """Convert text to numbers or NaN; None unless at least half are numbers."""
    decimal, thousands = text.marks(str(column.name))
    words = column.dropna().astype(str).str.strip()
    plain = words.str.removesuffix("%").str.rstrip()
    if thousands:
        mark = re.escape(thousands)
        grouped = plain.str.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{3}})*({re.escape(decimal)}\d*)?")
        plain = plain.str.replace(thousands, "", regex=False).where(grouped, plain)
    if decimal != ".":
        plain = plain.mask(plain.str.contains(".", regex=False), "").str.replace(
            decimal, ".", regex=False
        )
    numbers = pd.to_numeric(plain, errors="coerce").astype(np.float64)
    percent = words.str.endswith("%")
    numbers = numbers.where(~percent, numbers / 100)
    mixed = percent.any() and words[~percent].str.contains(r"\d").any()
    if numbers.notna().mean() < 0.5 or mixed:
        return None
    return numbers.reindex(column.index)


def find_spellings(column: pd.Series, decimal: str, thousands: str | None) -> pd.Series | None:
    """Return labels as text if numbers would merge (``1``, ``1e0``) or lose zeros (``01``).

    Thousands separators are followed by three digits, unlike in ``01.02.2024`` and ``1.0``.
    """
    labels = pd.Series(column.dropna().unique(), dtype=str)
    if thousands:
        mark = re.escape(thousands)
        if labels.str.contains(rf"{mark}(?!\d{{3}}(?!\d))", regex=True).any():
            return column
        labels = labels.str.replace(thousands, "", regex=False)
        column = column.str.replace(thousands, "", regex=False)
    labels = labels.str.replace(decimal, ".", regex=False)
    padded = labels.str.match(r"[+-]?0\d")
    merged = pd.to_numeric(labels).nunique() < len(labels)
    kept = column.str.replace(decimal, ".", regex=False)
    return kept if merged or padded.any() else None


# --- JSON -----------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Iterate over the lines of a text file that are not blank."""
    with path.open(encoding="utf-8-sig") as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the objects of a JSONL file."""
    check_file(path)
    for number, line in lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise LogError(
                f"line {number:,} of {path.name} is not JSON: {shown(line)}. Expected one object "
                f"in each line; the file may have been cut off."
            ) from None
        if not isinstance(value, dict):
            raise LogError(f"line {number:,} of {path.name} is not a JSON object: {shown(line)}.")
        yield value


def shown(line: str) -> str:
    """Quote the beginning of a line."""
    return repr(line.strip()[:40])


def read_json(path: Path) -> Any:
    """Read one JSON document."""
    check_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        raise LogError(
            f"{path.name} is not a JSON document. Expected one; the file may have been cut off."
        ) from None


def read_jsonl(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a table of the objects of a JSONL file, without nested lists and objects."""
    plain = []
    names: dict[str, None] = {}
    nested: dict[str, Any] = {}
    for record in rows:
        row = {key: value for key, value in record.items() if not isinstance(value, (dict, list))}
        if len(row) < len(record):
            nested |= {key: value for key, value in record.items() if key not in row}
        names |= dict.fromkeys(row)
        plain.append(row)
    table = pd.DataFrame.from_records(plain, columns=list(names))
    if nested:
        table.attrs[NESTED] = {key: shown(json.dumps(value)) for key, value in nested.items()}
    return table


# --- ARFF -----------------------------------------------------------------------------------------


def read_arff(path: Path) -> pd.DataFrame:
    """Read an ARFF file, as OpenML stores predictions."""
    from scipy.io import arff

    check_file(path)
    with path.open(encoding="utf-8-sig") as file:
        values, _ = arff.loadarff(file)
    table = pd.DataFrame(values)
    for name in table.select_dtypes(object).columns:
        text = table[name].str.decode("utf-8")
        table[name] = text.mask(text == "?")
    return table


# --- saved logs -----------------------------------------------------------------------------------


def parse_header(text: str, what: str) -> Header:
    """Parse the header of a saved log."""
    header = json.loads(text)
    if not isinstance(header, dict) or header.get("cvstats_log") != VERSION:
        raise LogError(
            f"{what} was not written by this version of cvstats. Expected a saved log of "
            f"version {VERSION}."
        )
    return header


def as_text(columns: Columns) -> Columns:
    """Write times in ISO 8601 and durations as whole numbers."""
    kinds = {name: values.dtype.kind for name, values in columns.items()}
    return {
        name: np.datetime_as_string(values).astype(object) if kinds[name] == "M"
        else values.view(np.int64) if kinds[name] == "m" else values
        for name, values in columns.items()
    }  # fmt: skip


def checksum(blocks: Iterable[bytes]) -> int:
    """Compute the CRC-32 of text, ignoring line endings, which version control may change."""
    found = 0
    for block in blocks:
        found = zlib.crc32(block.replace(b"\r", b""), found)
    return found


def checked(columns: Columns, header: Header, rows: str) -> Header:
    """Add the number of rows and their checksum to the header."""
    n_rows = len(next(iter(columns.values())))
    return {**header, "rows": n_rows, "checksum": checksum([rows.encode()])}


def check_whole(path: Path, header: Header) -> None:
    """Refuse a log whose rows were changed; older files have no checksum."""
    with path.open("rb") as file:
        file.readline()
        found = checksum(iter(partial(file.read, 1 << 20), b""))
    if found != header.get("checksum", found):
        raise LogError(
            f"{path.name} was truncated or changed after save_log wrote its {header['rows']:,} "
            "rows: they do not match the checksum in its first line. Expected the whole file. "
            "Copy or save it again; if the change is intended, delete the first line and name "
            "the columns."
        )


def write_csv(columns: Columns, header: Header, path: Path) -> None:
    """Write the header as a comment line, followed by CSV."""
    # Quote all text: a bare carriage return would end a row.
    text = any(values.dtype == object for values in columns.values())
    rows = pd.DataFrame(as_text(columns)).to_csv(
        index=False, lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if text else csv.QUOTE_MINIMAL,
    )  # fmt: skip
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(MARK + json.dumps(checked(columns, header, rows)) + "\n")
        file.write(rows)


def open_csv(path: Path) -> SavedColumns | None:
    """Open a log written by `write_csv`; None for any other file."""
    check_file(path)
    with path.open("rb") as file:
        first = file.readline()
    if not first.startswith(MARK.encode()):
        return None
    header = parse_header(first[len(MARK) :].decode(), path.name)
    check_whole(path, header)
    notes = [*header["index"], *header["columns"]]
    kinds = {note["field"]: np.dtype(stored_type(note)) for note in notes}
    floats = {name: dtype for name, dtype in kinds.items() if dtype.kind == "f"}
    table = pd.read_csv(
        path, skiprows=1, index_col=False, keep_default_na=False,
        dtype={name: np.float64 if name in floats else dtype for name, dtype in kinds.items()}
        | {name: str for name, dtype in kinds.items() if dtype.kind in "OM"},
        na_values={name: ["", "nan"] for name in floats}, **EXACT,
    )  # fmt: skip
    return (lambda name: table[name].to_numpy()), header


def stored_type(note: Mapping[str, Any]) -> str:
    """Name the numpy type of a plain column in a text file."""
    if note["kind"] == "category":
        return "object" if note.get("written") == "text" else "int32"
    dtype = note["dtype"] if note["kind"] in ("plain", "time") else "object"
    return "int64" if dtype.startswith("timedelta") else dtype


def write_jsonl(columns: Columns, header: Header, path: Path) -> None:
    """Write the header, and one object per row."""
    lists = [list(map(finite, values.tolist())) for values in as_text(columns).values()]
    objects = (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))
    rows = "".join(json.dumps(row) + "\n" for row in objects)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps({"cvstats": checked(columns, header, rows)}) + "\n")
        file.write(rows)


def finite(value: Any) -> Any:
    """Replace numbers that JSON lacks: NaN by null, infinities by their names."""
    if isinstance(value, float) and not np.isfinite(value):
        return None if value != value else str(value)
    return value


def open_jsonl(path: Path) -> SavedColumns | None:
    """Open a log written by `write_jsonl`; None for any other file."""
    rows = records(path)
    first = next(rows, {})
    if "cvstats" not in first:
        return None
    header = parse_header(json.dumps(first["cvstats"]), path.name)
    check_whole(path, header)
    every = list(rows)

    def read(name: str) -> np.ndarray[Any, Any]:
        values = np.empty(len(every), dtype=object)
        values[:] = [row[name] for row in every]
        return np.array([np.nan if v is None else v for v in values]) if None in values else values

    return read, header
