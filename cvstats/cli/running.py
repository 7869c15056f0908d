"""From the words typed to an exit status: 0, or 2 after a line of what was wrong."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cvstats.cli import commands
from cvstats.cli.demo import demo
from cvstats.cli.reading import Reading
from cvstats.cli.wording import as_options
from cvstats.errors import LogError
from cvstats.io.paths import shortened

if TYPE_CHECKING:
    import cyclopts

__all__ = ["main"]

HELP = """Valid confidence intervals and comparisons for cross-validated error.

For example:

cvstats interval losses.parquet

cvstats compare ridge=a.parquet forest=b.parquet

cvstats compare predictions.csv --loss squared_error --fold cv_split --reference ridge

cvstats report losses.parquet -o report.html

Completion of words in the shell: eval "$(cvstats completion bash)"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 0, or 2 after a line of what was wrong.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the command; that of this process by default.

    Returns
    -------
    int
        The exit status.
    """
    try:
        import cyclopts
    except ModuleNotFoundError:
        return refused("the command line needs cyclopts; type: pip install 'cvstats[cli]'")
    words = sys.argv[1:] if arguments is None else list(arguments)
    print_any_letter()
    command = words[0] if words else None
    try:
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always", UserWarning)
            run, bound, told = application().parse_args(
                words, exit_on_error=False, print_error=False
            )
            typed = {"typed": shlex.join(["cvstats", *words])} if "typed" in told else {}
            run(*bound.args, **bound.kwargs, **typed)
    except (cyclopts.CycloptsError, LogError, OSError, ImportError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read the output had enough of it, such as ``head``.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return refused(in_words(error, words))
    files = files_in(words) if noted else []
    for note in noted:
        said = as_options(" ".join(str(note.message).split()), command, files)
        print("cvstats: note:", said, file=sys.stderr)
    return 0


def print_any_letter() -> None:
    """Print a question mark for each letter that the terminal, or a pipe, has no byte for."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def in_words(error: Exception, words: Sequence[str]) -> str:
    """Say what is wrong in the words of the shell."""
    if isinstance(error, LogError):
        return as_options(str(error), words[0] if words else None, files_in(words))
    if isinstance(error, OSError) and error.filename is not None:
        return f"{shortened(str(error.filename))}: {error.strerror}"
    if "-" in words and str(error).replace('"', "").endswith(": -."):
        return (
            "standard input is not read, and - is no file. Expected the path of a file: save it "
            "to one first"
        )
    return str(error)


def application() -> cyclopts.App:
    """Put the commands together."""
    import cyclopts

    app = cyclopts.App(
        name="cvstats",
        help=HELP,
        version=version("cvstats"),
        # An option that takes several values needs none that empties it.
        default_parameter=cyclopts.Parameter(negative_iterable=()),
    )
    # What reading needs stands in one class; its fields are options of every command.
    cyclopts.Parameter(name="*")(Reading)
    short: Any = Annotated[Path, cyclopts.Parameter(name=("--output", "-o"))]
    commands.report.__annotations__["output"] = short
    untyped: Any = Annotated[str, cyclopts.Parameter(parse=False)]  # `main` passes it
    commands.report.__annotations__["typed"] = untyped
    app.command(demo)
    for command in (
        commands.interval,
        commands.compare,
        commands.report,
        commands.methods,
        commands.diagnose,
        commands.convert,
    ):
        app.command(command)

    @app.command
    def completion(shell: commands.Shell, /, *, install: bool = False) -> None:
        """Print the script that completes words in a shell, or install it.

        Example: eval "$(cvstats completion bash)"

        Example: cvstats completion zsh --install

        Parameters
        ----------
        shell
            Which shell.
        install
            Write the script to where the shell looks for it, and a line in its startup file.
        """
        if install:
            print(f"wrote {app.install_completion(shell=shell)}; open a new {shell} to use it")
        else:
            print(app.generate_completion(shell=shell))

    return app


def files_in(words: Sequence[str]) -> list[str]:
    """Take the files out of the words that were typed, for the calls that messages show."""
    _, bound, _ = application().parse_args(list(words), exit_on_error=False, print_error=False)
    told = bound.arguments
    paths = [told.get("file"), *told.get("more", ())]
    if words[0] == "convert":
        paths.append(told.get("output"))
    return [str(path) for path in paths if path is not None]


def refused(words: str) -> int:
    """Say in one line what is wrong, and return the exit status of bad input."""
    print("cvstats:", " ".join(words.split()), file=sys.stderr)
    return 2
