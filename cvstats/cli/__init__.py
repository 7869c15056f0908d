"""The command line: from arguments to an exit status, and results as text."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import shlex
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from cvstats.core.design import LEVELS
from cvstats.errors import LogError, install_command
from cvstats.formatting import result_frame, select_columns, text_table, to_markdown
from cvstats.io.paths import shortened
from cvstats.log.display import join_tuple

BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 2, 130, 141
"""Exit statuses; the last two are those a shell reports for SIGINT and SIGPIPE."""

OTHER_NAMES = {"format": "read_as", "rng": "seed", "dayfirst": "day_first"}
"""Options whose name differs from the Python argument."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command-line arguments; those of this process by default.

    Returns
    -------
    int
        0 on success, or 2 after printing one line about an error; silently 130 after Ctrl-C, and
        141 if the reader of the output closes early.
    """
    try:
        with note_interrupts() as interrupts:
            status = run(sys.argv[1:] if arguments is None else list(arguments), interrupts)
        flush_streams()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:  # from writing, not from reading
        for stream in (sys.stdout, sys.stderr):  # Python flushes them again at exit
            try:
                if stream is not None:
                    stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return CLOSED_PIPE if isinstance(error, BrokenPipeError) else BAD_INPUT


@contextmanager
def note_interrupts() -> Iterator[list[int]]:
    """Record presses of Ctrl-C: the parser of pandas raises a different error then."""
    interrupts: list[int] = []

    def note(number: int, _frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # and not ignored, as in the background of a shell
        signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, usual)


def run(words: list[str], interrupts: Sequence[int] = ()) -> int:
    """Run the command, and then show its warnings."""
    try:
        import cyclopts
    except ModuleNotFoundError:
        return refuse(f"the command line needs cyclopts. Install it: {install_command('cli')}")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # unprintable characters become ?
    options: Iterable[str] = ()
    try:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", UserWarning)
            from cvstats.cli.commands import app

            command, bound, unparsed = app.parse_args(words, exit_on_error=False, print_error=False)
            options = option_names(command)
            if "typed" in unparsed:
                bound.arguments["typed"] = shlex.join(["cvstats", *words])
            command(*bound.args, **bound.kwargs)
            flush_streams()
    except BrokenPipeError:
        raise
    except LogError as error:
        if interrupts:
            raise KeyboardInterrupt from None
        return refuse(add_options(str(error), options))
    except (cyclopts.CycloptsError, OSError, ImportError) as error:
        if interrupts:
            raise KeyboardInterrupt from None
        return refuse(describe_error(error, words))
    for note in notes:
        text = add_options(join_lines(str(note.message)), options)
        show(f"cvstats: note: {text}", as_message=True)
    return 0


def option_names(command: Callable[..., Any]) -> set[str]:
    """List the Python arguments for which a command has an option."""
    from cvstats.cli.commands import HELP

    own = set(inspect.signature(command).parameters) - {"file", "more", "output", "typed"}
    if "reading" in own:
        own |= {*HELP["reading"], *OTHER_NAMES} - {"reading", "read_as"}
    return own if "seed" in own else own - {"rng"}


def add_options(message: str, options: Iterable[str]) -> str:
    """Append the command-line options for the arguments that a message recommends.

    Messages are written for Python: ``read_log(path, fold='split')`` or ``log.attrs['n_train'] =
    90``. A level with a value outside of a call is part of a label, as in ``fold=2, point='a'``,
    not a recommendation.
    """
    named = dict.fromkeys(re.findall(r"\b([a-z_]+)(?:=|'\] = )", message))
    call = "read_log(" in message
    bare = re.findall(r"\b([a-z_]+)=(?=[ .,;])", message)
    found = [
        f"--{OTHER_NAMES.get(name, name).replace('_', '-')}"
        for name in named
        if name in options and (call or name in bare or name not in (*LEVELS, "model"))
    ]
    return f"{message} On the command line: {', '.join(found)}." if found else message


def describe_error(error: Exception, words: Sequence[str]) -> str:
    """Format an error of the system or of the parser."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{shortened(str(error.filename))}: {error.strerror}"
    if "-" in words and str(error).replace('"', "").endswith(": -."):
        return "cannot read standard input. Save it to a file first, and pass the path of the file."
    return str(error)


def refuse(message: str) -> int:
    """Print a one-line error, and return the exit status for bad input."""
    show("cvstats: " + join_lines(message), as_message=True)
    return BAD_INPUT


def join_lines(text: str) -> str:
    """Join a text into one line."""
    return escape_controls(" ".join(text.split()))


def flush_streams() -> None:
    """Flush output streams here, so that errors do not occur at process exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()


# --- results as text ------------------------------------------------------------------------------


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
        table = table.rename(index=join_tuple)
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
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    unicode = encoding.lower().replace("-", "").startswith("utf")
    return json.dumps(to_plain(value), indent=2, ensure_ascii=not unicode)


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
