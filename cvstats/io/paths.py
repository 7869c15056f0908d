"""What was meant by a path: a file, and not text, a stream, or something that is packed."""

from __future__ import annotations

import os
import stat
from os import PathLike
from pathlib import Path

from cvstats.errors import LogError

__all__ = ["LONGEST", "path_of", "refuse_packed", "refuse_stream", "shortened"]

LONGEST = 60
"""Up to how many characters of a path, or of text in its place, a message repeats."""

UNPACK = {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip"}
"""What is typed to unpack a file, by its suffix."""
MAGIC = {
    b"\x1f\x8b": ".gz", b"BZh91AY": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\x03\x04": ".zip",
}  # fmt: skip
"""With which bytes packed files begin."""


def shortened(text: str, most: int = LONGEST) -> str:
    """Show the beginning of a path, or of another text."""
    return repr(text if len(text) <= most else text[:most] + "…")


def path_of(given: str | PathLike[str]) -> Path:
    """Take a path as one; refuse text of a table, and what can name no file."""
    text = os.fsdecode(given)
    if not text:
        raise LogError("the path is empty. Expected the path of a file.")
    try:
        there = os.path.lexists(text)
    except ValueError:  # a zero byte
        there = False
    if not there and ("\n" in text or "\r" in text):
        raise LogError(
            f"{shortened(text)} is text and no path. Expected the path of a file. Write the text "
            f"to one, or pass a table: pandas.read_csv(io.StringIO(text))."
        )
    if "\0" in text:
        raise LogError(f"{shortened(text)} holds a zero byte. Expected the path of a file.")
    try:
        os.lstat(text)
    except FileNotFoundError:
        pass  # whoever reads it says so
    except OSError as error:
        raise LogError(
            f"{shortened(text)} cannot be opened: {error.strerror}. Expected the path of a file."
        ) from None
    return Path(text)


def refuse_stream(path: Path) -> None:
    """Refuse what can be read once only: a file is looked into before it is read."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise LogError(
            f"{shortened(str(path))} is a pipe or a device, and no file. Standard input is not "
            f"read. Expected the path of a file: save it to one first."
        )


def refuse_packed(path: Path, text: bool) -> None:
    """Refuse a compressed file, and say how it is unpacked: a small one may hold terabytes.

    What is read as ``text`` is known by its first bytes too.
    """
    if not path.is_file():
        return
    kind = path.suffix.lower()
    if text and kind not in UNPACK:
        with path.open("rb") as file:
            head = file.read(8)
        kind = next((suffix for magic, suffix in MAGIC.items() if head.startswith(magic)), "")
    if kind in UNPACK:
        raise LogError(
            f"{path.name} is compressed ({kind[1:]}). Expected the file itself. Unpack it first: "
            f"{UNPACK[kind]} {path.name}"
        )
