"""How far the reading of a long file is, for whoever watches; results stay on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cvstats.io.watching import watched

__all__ = ["reading"]

LONG = 32 << 20
"""Bytes from which on a file takes so long that one wants to know what is going on."""
STEP = 0.1
"""Where there is no terminal a line is written for each tenth of the file."""


@contextmanager
def reading(path: Path, wanted: bool | None) -> Iterator[None]:
    """Show how much of a file has been read: on a terminal if it is long, or if it is wanted."""
    size = path.stat().st_size
    terminal = sys.stderr.isatty()
    if wanted is False or (wanted is None and not (terminal and size >= LONG)):
        yield
        return
    words = f"reading {path.name} ({size / 2**20:,.1f} MiB)"
    with bar(words) if terminal else lines(words):
        yield
    if terminal:
        print("computing …", file=sys.stderr, flush=True)


@contextmanager
def bar(words: str) -> Iterator[None]:
    """Draw a bar, and take it away in the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
               TimeElapsedColumn())  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(words.replace("[", r"\["), total=None)
        with watched(lambda share: shown.update(task, completed=share, total=1.0)):
            yield


@contextmanager
def lines(words: str) -> Iterator[None]:
    """Write a line now and then."""
    print(words, file=sys.stderr, flush=True)
    with watched(every_step()):
        yield


def every_step() -> Callable[[float], None]:
    """Make a function that writes a share when it is a step further than the last one."""
    told = 0.0

    def tell(share: float) -> None:
        nonlocal told
        if share - told >= STEP or share >= 1 > told:
            print(f"{share:.0%} read", file=sys.stderr, flush=True)
            told = share

    return tell
