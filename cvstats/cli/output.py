"""Results as text: a readable table, JSON and CSV with full precision, or Markdown."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections.abc import Sequence
from textwrap import fill
from typing import Any, Literal, TextIO, TypeAlias

import numpy as np
import pandas as pd

from cvstats.formatting import result_frame, select_columns, text_table, to_markdown
from cvstats.scores import as_scores

Format: TypeAlias = Literal["table", "json", "csv", "markdown"]
WIDEST = 96
"""Maximum line length in characters for readability."""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters of a terminal, except tab and line break."""


def show(text: str, *, as_message: bool = False) -> None:
    """Print text; control characters of names and labels as escapes, which JSON reads back."""
    stream = sys.stderr if as_message else sys.stdout
    if stream is not None:  # it may be None
        print(escape_controls(text), file=stream)


def escape_controls(text: str) -> str:
    """Write control characters as JSON does: a backslash, u and four digits."""
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def format_result(result: Any, format: Format, facts: Sequence[str] = ()) -> str:
    """Format a result; a table is followed by some attributes and its cautions."""
    table = result_frame(result)
    if format == "markdown":
        return to_markdown(table)
    numbered = isinstance(table.index, pd.RangeIndex)
    if format == "csv":
        return table.to_csv(index=not numbered, lineterminator="\n").removesuffix("\n")
    if format == "json":
        records = (table if numbered else table.reset_index()).to_dict("records")
        return to_json({**table.attrs, "rows": records})
    rows, _ = text_table(table, select_columns(table, None).columns.tolist(), "auto")
    counts = [f"{name} = {n:,.12g}" for name, n in table.attrs.items()
              if str(name).startswith("n_") and isinstance(n, (int, float))]  # fmt: skip
    notes = [f"{name}: {table.attrs[name]}." for name in facts if table.attrs.get(name)]
    notes += [f"counts: {', '.join(counts)}."] if counts else []
    if isinstance(table.attrs.get("cautions"), dict):
        notes += [f"caution, {label}: {text}" for label, text in table.attrs["cautions"].items()]
    names = len(table.index.names)
    shown = [[" - ".join(row[:names]), *row[names:]] for row in rows]
    return "\n".join([align(shown), "", *(fill(note, line_width()) for note in notes)])


def in_own_direction(result: Any) -> Any:
    """Convert a result back to the score from which its losses were made, if any."""
    facts = result.attrs
    one = isinstance(facts.get("metric"), str) and facts.get("orientation") not in (None, "error")
    return as_scores(result) if one else result


def line_width() -> int:
    """Return the line length: the width of the terminal, up to a readable maximum."""
    return max(40, min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns))


def align(rows: Sequence[Sequence[str]]) -> str:
    """Join cells to lines: the first column to the left, the others to the right.

    In a terminal, columns that do not fit continue below, repeating the first column.
    """
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    terminal = sys.stdout is not None and sys.stdout.isatty()
    most = shutil.get_terminal_size().columns if terminal else sum(widths) + 2 * len(widths)
    parts: list[list[int]] = [[]]
    for at, width in enumerate(widths[1:], 1):
        used = widths[0] + sum(widths[i] + 2 for i in parts[-1])
        if parts[-1] and used + 2 + width > most:
            parts.append([])
        parts[-1].append(at)
    return "\n\n".join(
        "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in part)]).rstrip()
            for row in rows
        )
        for part in parts
    )


def to_json(value: Any) -> str:
    """Write values as JSON, with escapes for characters that the terminal lacks."""
    return json.dumps(to_plain(value), indent=2, ensure_ascii=not is_unicode(sys.stdout))


def is_unicode(stream: TextIO | None) -> bool:
    """Whether a stream can encode any character without escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "").startswith("utf")


def to_plain(value: Any) -> Any:
    """Convert NumPy values to JSON values, and non-finite numbers to null."""
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
