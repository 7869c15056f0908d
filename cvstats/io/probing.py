"""Let a process of its own open what can crash or hang a library: damaged NetCDF and Blosc."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cvstats.errors import LogError
from cvstats.io import unpacking

__all__ = ["probe", "safe_store"]

SECONDS = 20.0
PER_SECOND = 20 << 20
"""A file is given 20 seconds, and one more for each 20 MiB."""

CODE = """
import math, sys, warnings
warnings.simplefilter("ignore")
sys.tracebacklimit = 0
import h5netcdf, h5py
path = sys.argv[1]
with h5py.File(path, "r") as file:
    file.attrs.get("_nc3_strict")
    for name in file:
        outside = isinstance(file.get(name, getlink=True), h5py.ExternalLink)
        if not outside and isinstance(file[name], h5py.Dataset):
            outside = bool(file[name].external) or file[name].is_virtual
        if outside:
            sys.exit("outside:" + name)
with h5netcdf.File(path, "r", decode_vlen_strings=True) as file:
    for variable in file.variables.values():
        dict(variable.attrs)
        if math.prod(variable.shape) <= 10_000_000:
            variable[...]
"""


def probe(path: Path) -> None:
    """Refuse a file that cannot be opened, or whose values would be read out of other files."""
    last = alone(path, ["-c", CODE, str(path.absolute())], path.stat().st_size)
    if last.startswith("outside:"):
        raise LogError(
            f"the values of {last[8:48]!r} in {path.name} would be read out of another file. "
            f"Expected them in the file itself."
        )
    if last:
        raise unreadable(path, last)


@contextmanager
def safe_store(path: Path) -> Iterator[Path]:
    """Give a Zarr store as it is, or a copy without Blosc, which damaged chunks can crash."""
    if not unpacking.uses_blosc(path):
        yield path
        return
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "store.zarr"
        last = alone(path, [unpacking.__file__, str(path.absolute()), str(copy)], size)
        if last:
            raise unreadable(path, last)
        yield copy


def alone(path: Path, words: list[str], size: int) -> str:
    """Run a program in a process of its own; give the last line of what went wrong, or nothing."""
    limit = SECONDS + size / PER_SECOND
    command = [sys.executable, "-I", *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise LogError(
            f"{path.name} could not be read within {limit:.0f} seconds. It seems to be damaged."
        ) from None
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else f"the library stopped with status {done.returncode}"


def unreadable(path: Path, last: str) -> LogError:
    """Put into words what a library said."""
    kind, _, said = last.partition(": ")
    shown = said if said and kind.endswith("Error") else last
    return LogError(f"{path.name} could not be read: {shown}. It seems to be damaged.")
