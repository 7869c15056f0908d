"""Entry point of the command line: from arguments to an exit status."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cvstats.cli.output import escape_controls, show
from cvstats.core.design import LEVELS
from cvstats.errors import LogError, install_command
from cvstats.io.paths import shortened

BAD_INPUT, INTERRUPTED, CLOSED_PIPE = 2, 130, 141
"""Exit statuses; the last two are those a shell reports for SIGINT and SIGPIPE."""

OTHER_NAMES = {"format": "--read-as", "rng": "--seed", "dayfirst": "--day-first"}
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
        discard_broken_streams()
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
    from cvstats.cli.commands import READING

    own = set(inspect.signature(command).parameters) - {"file", "more", "output", "typed"}
    if "reading" in own:
        own |= {*READING, *OTHER_NAMES} - {"reading", "read_as"}
    return own if "seed" in own else own - {"rng"}


def add_options(message: str, options: Iterable[str]) -> str:
    """Append the command-line options for the arguments that a message recommends.

    Messages are written for Python: ``read_log(path, fold='split')``. A level outside of a call
    is part of a label, as in ``fold=2, point='a'``, not a recommendation.
    """
    named = dict.fromkeys(re.findall(r"\b([a-z_]+)=", message))
    call = "read_log(" in message
    found = [
        OTHER_NAMES.get(name, "--" + name.replace("_", "-"))
        for name in named
        if name in options and (call or name not in (*LEVELS, "model"))
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


def discard_broken_streams() -> None:
    """Redirect streams without a reader to devnull: Python flushes them again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
