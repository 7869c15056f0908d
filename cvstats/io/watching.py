"""Who wants to know how much of a file has been read: the command line, and nobody else."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

__all__ = ["opened", "share_read", "watched"]

Tell = Callable[[float], None]
"""Takes the share of the file that has been read, from 0 to 1."""

listener: ContextVar[Tell | None] = ContextVar("listener", default=None)


@contextmanager
def watched(tell: Tell) -> Iterator[None]:
    """Let somebody know how much has been read, as long as this lasts."""
    token = listener.set(tell)
    try:
        yield
    finally:
        listener.reset(token)


def share_read(share: float) -> None:
    """Tell how much has been read, if anybody wants to know."""
    tell = listener.get()
    if tell is not None:
        tell(share)


class Counted(io.FileIO):
    """A file that tells how much of it has been read."""

    def __init__(self, path: Path, tell: Tell) -> None:
        super().__init__(path)
        self.size, self.tell_share = max(1, path.stat().st_size), tell

    def readinto(self, buffer: Any, /) -> int:
        """Read some bytes."""
        number = super().readinto(buffer)
        self.tell_share(self.tell() / self.size)
        return number


def opened(path: Path) -> IO[bytes]:
    """Open a file to read it from beginning to end."""
    tell = listener.get()
    if tell is None:
        return path.open("rb")
    return io.BufferedReader(Counted(path, tell), 1 << 20)
