"""Which files a command may write: none that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cvstats.cli.reading import named_files
from cvstats.errors import LogError

__all__ = ["refuse_input"]


def refuse_input(output: Path, files: Sequence[Path]) -> None:
    """Refuse to write over a file that is read, by whatever path or link it is named."""
    target = output.resolve()
    for _, file in named_files(files):
        if not file.exists():
            continue  # reading says so
        real = file.resolve()
        inside = target.suffix == ".zarr" and real.is_relative_to(target)
        if real == target or inside or (output.exists() and output.samefile(file)):
            raise LogError(
                f"{str(output)!r} is the file that is read, and writing would replace it. "
                f"Expected another name for the output."
            )
